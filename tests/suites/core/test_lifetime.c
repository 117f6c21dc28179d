// SPDX-License-Identifier: GPL-2.0
/*
 * How long a watch lives, and who may use a queue
 *
 *	watch of (fd, file), added through table T
 *	  close, dup2, close_range, exec of fd in T	removes it
 *	  dup of fd, close of the copy			leaves it
 *	  close of the same number in another table	leaves it
 *	queue in another process
 *	  get_events, ctl				work
 *	  wait, commit					EXDEV
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "helpers.h"

static long long watches(struct queue *q)
{
	return fdinfo(q->fd, "kevent-watches");
}

/* A pipe whose read end is watched; the event carries @user. */
static void watch_pipe(struct queue *q, int fd[2], uint32_t flags,
		       uint64_t user)
{
	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, flags, user), 0);
}

static void close_removes_the_watch_though_the_file_lives(struct queue *q)
{
	int fd[2], copy;

	watch_pipe(q, fd, 0, 0);
	copy = dup(fd[0]);
	CHECK_EQ(watches(q), 1);
	CHECK_EQ(close(fd[0]), 0);
	CHECK_EQ(watches(q), 0);
	put_byte(fd[1]);
	CHECK_NO_EVENT(q);
	CHECK_EQ(dup2(copy, fd[0]), fd[0]);
	CHECK_EQ(remove_file(q->fd, KEVENT_PIPE, fd[0]), -ENOENT);
	CHECK_NO_EVENT(q);
}

/* On each host, though epoll hears of no close() of a file that is open elsewhere */
static void kevent_close_ends_the_watches_of_a_file(struct queue *q)
{
	struct ukevent ev;
	int fd[2], copy;

	watch_pipe(q, fd, 0, 1);
	MUST_EQ(add_poll(q->fd, fd[0], KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 2), 0);
	copy = dup(fd[0]);
	CHECK_EQ(kevent_close(q->fd, fd[0]), 0);
	CHECK_EQ(fcntl(fd[0], F_GETFD), -1);
	put_byte(fd[1]);
	CHECK_NO_EVENT(q);
	CHECK_EQ(watches(q), 0);
	CHECK_EQ(dup2(copy, fd[0]), fd[0]);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, KEVENT_REQ_ET, 3), 0);
	CHECK_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(kevent_close(q->fd, fd[0]), 0);
	CHECK_EQ(kevent_close(q->fd, fd[0]), -EBADF);
	CHECK_EQ(kevent_close(-1, copy), 0);
	CHECK_EQ(fcntl(copy, F_GETFD), -1);
}

static void kevent_close_asks_no_refusal(void)
{
	static const struct timespec at_once;
	static KEVENT_RING_STORAGE(8) mem;
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2], copy;

	MUST_EQ(kevent_queue_init(&q, &mem.ring, 8, KEVENT_INIT_REFUSE_CHANGE), 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 1), 0);
	copy = dup(fd[0]);
	CHECK_EQ(kevent_close(q.fd, fd[0]), 0);
	put_byte(fd[1]);
	CHECK_EQ(kevent_queue_pop(&q, &ev, 1), 0);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &at_once, &ev, 0), 0);
	close(copy);
	kevent_queue_close(&q);
}

static void close_withdraws_a_pending_event(struct queue *q)
{
	int fd[2];

	watch_pipe(q, fd, 0, 0);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 1);
	CHECK_EQ(close(fd[0]), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 0);
	CHECK_EQ(watches(q), 0);
	CHECK_NO_EVENT(q);
}

static void entry_in_the_ring_outlives_its_watch(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	watch_pipe(&q, fd, ET, 4);
	put_byte(fd[1]);
	MUST_EQ(kevent_ring_count(q.ring, q.size), 1);
	close(fd[0]);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(ev.ptr, 4);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void close_of_a_copy_leaves_the_watch(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2], copy;

	open_queue(&q, 0);
	watch_pipe(&q, fd, ET, 1);
	copy = dup(fd[0]);
	CHECK_EQ(close(copy), 0);
	CHECK_EQ(watches(&q), 1);
	put_byte(fd[1]);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	close_queue(&q);
}

static void dup2_over_the_descriptor_removes_the_watch(void)
{
	int fd[2], other[2];
	struct queue q;

	open_queue(&q, 0);
	watch_pipe(&q, fd, 0, 1);
	open_pipe(other);
	CHECK_EQ(dup2(other[0], fd[0]), fd[0]);
	CHECK_EQ(watches(&q), 0);
	put_byte(other[1]);
	CHECK_NO_EVENT(&q);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, HAND_BACK, 1), 1);
	CHECK_EQ(dup3(other[1], fd[0], O_CLOEXEC), fd[0]);
	CHECK_EQ(watches(&q), 0);
	close_queue(&q);
}

static int request(int queue, uint32_t cmd, uint32_t type, int fd)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, fd, RECV, 0, 7);
	ev.type = type;
	return kevent_ctl_one(queue, cmd, &ev);
}

/* A file of a kind that nobody has open elsewhere gets the number. */
static void put_file(int fd, unsigned int kind)
{
	int other[2] = { -1, -1 };

	if (kind == 0)
		open_pipe(other);
	else if (kind == 1)
		other[0] = socket(AF_UNIX, SOCK_DGRAM, 0);
	else
		other[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	MUST_EQ(dup2(other[0], fd), fd);
	close(other[0]);
	if (kind == 0)
		close(other[1]);
}

/* The first request that names the number is told so, and the file can be watched. */
static void request_about_another_file_is_refused(void)
{
	static const struct {
		uint32_t	cmd;
		int		says[3];	/* of a pipe, a socket, /dev/null */
	} cases[] = {
		{ KEVENT_CTL_MODIFY, { -ENOENT, -EINVAL, -EINVAL } },
		{ KEVENT_CTL_REMOVE, { -ENOENT, -ENOENT, -ENOENT } },
		{ KEVENT_CTL_READY, { -ENOENT, -ENOENT, -ENOENT } },
	};
	struct queue q;
	unsigned int i, kind;
	int fd[2];

	open_queue(&q, 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (kind = 0; kind < 3; kind++) {
			watch_pipe(&q, fd, 0, 1);
			put_file(fd[0], kind);
			CHECK_EQ(request(q.fd, cases[i].cmd, KEVENT_PIPE, fd[0]),
				 cases[i].says[kind]);
			CHECK_EQ(watches(&q), 0);
			CHECK_EQ(add_poll(q.fd, fd[0], KEVENT_POLL_POLLPRI, 0, 1), 0);
			CHECK_EQ(request(q.fd, KEVENT_CTL_MODIFY, KEVENT_SOCKET, fd[0]),
				 kind == 1 ? -ENOENT : -ENOTSOCK);
			put_file(fd[0], (kind + 1) % 3);
			CHECK_EQ(request(q.fd, cases[i].cmd, KEVENT_POLL, fd[0]), -ENOENT);
			CHECK_EQ(watches(&q), 0);
			close(fd[0]);
			close(fd[1]);
		}
	}
	close_queue(&q);
}

/* The slot holds the file all the time. */
static void dup2_of_the_same_file_leaves_the_watch(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2], copy;

	open_queue(&q, 0);
	watch_pipe(&q, fd, ET, 1);
	CHECK_EQ(dup2(fd[0], fd[0]), fd[0]);
	CHECK_EQ(watches(&q), 1);
	copy = dup(fd[0]);
	CHECK_EQ(dup2(copy, fd[0]), fd[0]);
	CHECK_EQ(watches(&q), 1);
	put_byte(fd[1]);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	close_queue(&q);
}

/* More than are removed at once, between those of a copy */
static void close_removes_many_watches_of_a_file(void)
{
	struct queue q[70];
	int fd[2], copy, i;
	struct ukevent ev;

	open_pipe(fd);
	copy = dup(fd[0]);
	for (i = 0; i < 70; i++) {
		open_queue(&q[i], 0);
		if (i % 3)
			MUST_EQ(add_pipe(q[i].fd, copy, RECV, KEVENT_REQ_WAKEUP_ALL, 2), 0);
		MUST_EQ(add_pipe(q[i].fd, fd[0], RECV, KEVENT_REQ_WAKEUP_ALL, 1), 0);
	}
	CHECK_EQ(close(fd[0]), 0);
	put_byte(fd[1]);
	for (i = 0; i < 70; i++) {
		CHECK_EQ(watches(&q[i]), !!(i % 3));
		if (i % 3) {
			MUST_EVENT(&q[i], &ev);
			CHECK_EQ(ev.ptr, 2);
		}
	}
	/* The file still knows those that stayed. */
	close(copy);
	for (i = 0; i < 70; i++) {
		CHECK_EQ(watches(&q[i]), 0);
		close_queue(&q[i]);
	}
	close(fd[1]);
}

static void close_range_removes_watches(void)
{
	int fd[2], other[2], first;
	struct queue q;

	open_queue(&q, 0);
	watch_pipe(&q, fd, 0, 0);
	watch_pipe(&q, other, 0, 1);
	first = other[0] < other[1] ? other[0] : other[1];
	CHECK_EQ(close_range(first, first + 1, CLOSE_RANGE_CLOEXEC), 0);
	CHECK_EQ(watches(&q), 2);
	CHECK_EQ(close_range(first, first + 1, 0), 0);
	CHECK_EQ(watches(&q), 1);
	CHECK_EQ(remove_file(q.fd, KEVENT_PIPE, fd[0]), 0);
	close_queue(&q);
}

/* The last reference goes with the close of a number that has no watch. */
static void last_reference_in_flight_removes_nothing_twice(void)
{
	struct queue q;
	int fd[2], sock[2], got;

	open_queue(&q, 0);
	watch_pipe(&q, fd, 0, 0);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	send_fd(sock[0], fd[0]);
	CHECK_EQ(close(fd[0]), 0);
	CHECK_EQ(watches(&q), 0);
	got = receive_fd(sock[1]);
	MUST(got >= 0);
	MUST_EQ(add_pipe(q.fd, got, RECV, 0, 1), 0);
	CHECK_EQ(close(got), 0);
	CHECK_EQ(watches(&q), 0);
	close_queue(&q);
}

static void closing_the_queue_ends_its_watches(void)
{
	struct queue q[2];
	int fd[2], i;

	open_pipe(fd);
	for (i = 0; i < 2; i++) {
		open_queue(&q[i], 8);
		MUST_EQ(add_pipe(q[i].fd, fd[0], RECV, 0, i), 0);
	}
	close_queue(&q[0]);
	CHECK_EQ(watches(&q[1]), 1);
	put_byte(fd[1]);
	CHECK_EQ(kevent_ring_count(q[1].ring, q[1].size), 1);
	close_queue(&q[1]);
	put_byte(fd[1]);
	CHECK_EQ(take_bytes(fd[0]), 2);
}

static void waiter_outlives_the_close_of_its_queue(void)
{
	struct waiter w;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	watch_pipe(&q, fd, ET, 3);
	start_waiter(&w, &q, 1);
	CHECK_EQ(close(q.fd), 0);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(w.ev[0].ptr, 3);
}

static void watched_fd_closed_while_others_wait(void)
{
	struct ukevent ev;
	struct waiter w;
	struct queue q;
	int fd[2][2];

	open_queue(&q, 0);
	watch_pipe(&q, fd[0], 0, 0);
	watch_pipe(&q, fd[1], 0, 1);
	start_waiter(&w, &q, 1);
	CHECK_EQ(close(fd[0][0]), 0);
	CHECK(waiter_asleep(&w));
	put_byte(fd[1][1]);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(w.ev[0].ptr, 1);
	CHECK_EQ(take_bytes(fd[1][0]), 1);
	CHECK_EQ(next_event(&q, &ev, 0), 0);
	close_queue(&q);
}

/* What a child does to a queue it inherited */
struct heir {
	struct queue	*q;
	int		*fd;
};

static int heir_tries_ring_calls(void *arg)
{
	struct heir *h = arg;
	struct ukevent ev;

	CHILD_MUST(wait_ring(h->q, 1, 0) == -EXDEV);
	CHILD_MUST(kevent_commit(h->q->fd, 0, 0) == -EXDEV);
	CHILD_MUST(get_events(h->q->fd, 1, 1, 0, &ev) == 1);
	CHILD_MUST(ev.ptr == 7);
	CHILD_MUST(add_user(h->q->fd, 5, 1, 0, 8) == 0);
	CHILD_MUST(mark_user(h->q->fd, 5, 1) == 1);
	return 0;
}

static void ring_belongs_to_the_process_that_made_it(void)
{
	struct queue q;
	struct heir h = { .q = &q };
	struct ukevent ev;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_child(start_child(heir_tries_ring_calls, &h),
			    PATIENCE_MS), 0);
	CHECK_EQ(q.ring->ring_kidx, 0);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 8);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* A child that fires an event: delivered to the parent at its next call */
static int heir_writes(void *arg)
{
	struct heir *h = arg;

	return write(h->fd[1], "", 1) != 1;
}

static void event_of_another_process_reaches_the_ring(void)
{
	struct queue q;
	int fd[2];
	struct heir h = { .q = &q, .fd = fd };
	struct waiter w;

	open_queue(&q, 8);
	watch_pipe(&q, fd, ET, 7);
	start_waiter(&w, &q, 8);
	CHECK_EQ(join_child(start_child(heir_writes, &h), PATIENCE_MS), 0);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(q.ring->event[0].ptr, 7);
	close_queue(&q);
}

static int heir_closes_everything(void *arg)
{
	struct heir *h = arg;

	return close(h->fd[0]) || close(h->q->fd);
}

static int heir_just_exits(void *arg)
{
	(void)arg;
	return 0;
}

static void close_in_a_child_leaves_the_watch(void)
{
	static int (*const heirs[])(void *) = {
		heir_closes_everything, heir_just_exits,
	};
	struct queue q;
	int fd[2];
	struct heir h = { .q = &q, .fd = fd };
	struct ukevent ev;
	unsigned int i;

	open_queue(&q, 0);
	watch_pipe(&q, fd, ET, 7);
	for (i = 0; i < ARRAY_SIZE(heirs); i++) {
		CHECK_EQ(join_child(start_child(heirs[i], &h), PATIENCE_MS),
			 0);
		CHECK_EQ(watches(&q), 1);
		put_byte(fd[1]);
		CHECK_EQ(next_event(&q, &ev, 0), 1);
		CHECK_EQ(ev.ptr, 7);
	}
	close_queue(&q);
}

/* A watch that a child added goes with the child's table, not with the file. */
static int heir_adds(void *arg)
{
	struct heir *h = arg;

	CHILD_MUST(add_poll(h->q->fd, h->fd[0], KEVENT_POLL_POLLIN, ET, 9) ==
		   0);
	CHILD_MUST(watches(h->q) == 2);
	return 0;
}

static void watch_added_by_a_child_ends_with_it(void)
{
	unsigned int counts[10] = {};
	struct queue q;
	int fd[2];
	struct heir h = { .q = &q, .fd = fd };

	open_queue(&q, 0);
	watch_pipe(&q, fd, ET, 7);
	CHECK_EQ(join_child(start_child(heir_adds, &h), PATIENCE_MS), 0);
	CHECK_EQ(watches(&q), 1);
	put_byte(fd[1]);
	CHECK_EQ(drain(&q, counts, 10), 1);
	CHECK_EQ(counts[7], 1);
	close_queue(&q);
}

static void killed_child_leaves_the_queue_usable(void)
{
	struct queue q;
	int fd[2];
	struct ukevent ev;
	pid_t pid;

	open_queue(&q, 0);
	watch_pipe(&q, fd, ET, 7);
	pid = fork();
	if (!pid)
		_exit(get_events(q.fd, 1, 1, -1, &ev));
	MUST(sleeps_in(pid, __NR_kevent_get_events));
	kill(pid, SIGKILL);
	CHECK_EQ(join_child(pid, 1000), -SIGKILL);
	put_byte(fd[1]);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	close_queue(&q);
}

/* Takes the queue from a socket, as an unrelated program does. */
static int stranger_uses_queue(void *arg)
{
	int *sock = arg, kq = receive_fd(sock[1]);
	struct timespec zero = {};
	struct ukevent ev;
	int fd[2];

	CHILD_MUST(kq >= 0);
	CHILD_MUST(kevent_wait(kq, 1, 0, &zero, 0, NULL) == -EXDEV);
	CHILD_MUST(kevent_commit(kq, 0, 0) == -EXDEV);
	CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 1);
	CHILD_MUST(ev.ptr == 7);
	CHILD_MUST(pipe(fd) == 0);
	CHILD_MUST(add_pipe(kq, fd[0], RECV, ET, 8) == 0);
	CHILD_MUST(write(fd[1], "", 1) == 1);
	CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 1);
	CHILD_MUST(ev.ptr == 8);
	return 0;
}

static void passed_queue_works_without_its_ring(void)
{
	struct queue q;
	int sock[2];
	pid_t pid;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	pid = start_child(stranger_uses_queue, sock);
	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	send_fd(sock[0], q.fd);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK_EQ(watches(&q), 1);
	CHECK_EQ(q.ring->ring_kidx, 0);
	close_queue(&q);
}

/* A queue inside a socket that it watches, all numbers closed: no leak. */
static void queue_in_its_own_socket_is_collected(void)
{
	struct queue q;
	int sock[2], i;

	for (i = 0; i < 50; i++) {
		open_queue(&q, 8);
		MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
		MUST_EQ(add_socket(q.fd, sock[0], KEVENT_SOCKET_RECV, 0, 0),
			0);
		send_fd(sock[1], q.fd);
		send_fd(sock[1], sock[1]);
		CHECK_EQ(close(sock[0]), 0);
		CHECK_EQ(close(sock[1]), 0);
		close_queue(&q);
	}
}

/*
 * exec: the queue and one pipe stay open, the other pipe is close-on-exec and
 * its watch goes. The new image has another address space: no ring calls. Each
 * way to fail has its exit status.
 */
int after_exec(int argc, char **argv)
{
	struct timespec zero = {};
	struct ukevent ev;
	int kq, wr;

	if (argc < 4)
		return 100;
	kq = atoi(argv[2]);
	wr = atoi(argv[3]);
	if (fdinfo(kq, "kevent-watches") != 1)
		return 101;
	if (kevent_wait(kq, 1, 0, &zero, 0, NULL) != -EXDEV)
		return 102;
	if (write(wr, "", 1) != 1)
		return 103;
	if (get_events(kq, 1, 1, 0, &ev) != 1 || ev.ptr != 1)
		return 104;
	return 0;
}

static int exec_with_queue(void *arg)
{
	int kept[2], gone[2];
	char kq[12], wr[12];
	struct queue q;

	(void)arg;
	open_queue(&q, 8);
	CHILD_MUST(pipe(kept) == 0 && pipe2(gone, O_CLOEXEC) == 0);
	CHILD_MUST(add_pipe(q.fd, kept[0], RECV, ET, 1) == 0);
	CHILD_MUST(add_pipe(q.fd, gone[0], RECV, ET, 2) == 0);
	CHILD_MUST(fcntl(q.fd, F_SETFD, 0) == 0);
	CHILD_MUST(write(gone[1], "", 1) == 1);
	snprintf(kq, sizeof(kq), "%d", q.fd);
	snprintf(wr, sizeof(wr), "%d", kept[1]);
	execl("/proc/self/exe", "kevent-tests", "--after-exec", kq, wr, NULL);
	CHILD_MUST(!"exec");
	return 0;
}

static void exec_closes_what_is_close_on_exec(void)
{
	CHECK_EQ(join_child(start_child(exec_with_queue, NULL), PATIENCE_MS),
		 0);
}

static void address_space_may_end_before_the_queue(void)
{
	struct ukevent ev;
	int sock[2], kq;
	struct queue q;
	pid_t pid;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	pid = fork();
	if (!pid) {
		open_queue(&q, 8);
		add_user(q.fd, 1, 1, 0, 7);
		mark_user(q.fd, 1, 1);
		send_fd(sock[0], q.fd);
		_exit(0);
	}
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	kq = receive_fd(sock[1]);
	MUST(kq >= 0);
	CHECK_EQ(get_events(kq, 1, 1, 0, &ev), 1);
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(mark_user(kq, 1, 1), 1);
	CHECK_EQ(get_events(kq, 1, 1, 0, &ev), 1);
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 1);
	close(kq);
}

/*
 * A signalfd's wait queue is that of the process that polls it. The child
 * shares the table but not the signal handlers: when it ends, the wait queue
 * dies, the descriptor and the watch stay.
 */
struct pollfree {
	struct queue	*q;
	int		fd;
	int		ret;
};

static int add_signalfd(void *arg)
{
	struct pollfree *p = arg;

	p->ret = add_poll(p->q->fd, p->fd, KEVENT_POLL_POLLIN, ET, 1);
	return 0;
}

static void wait_queue_that_dies_first_is_left(void)
{
	static char stack[1 << 16];
	struct pollfree p;
	struct ukevent ev;
	struct queue q;
	sigset_t mask;
	pid_t pid;
	int i;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	MUST_EQ(sigprocmask(SIG_BLOCK, &mask, NULL), 0);
	for (i = 0; i < 20; i++) {
		open_queue(&q, 8);
		p = (struct pollfree){ .q = &q, .ret = -1 };
		p.fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
		MUST(p.fd >= 0);
		pid = clone(add_signalfd, stack + sizeof(stack),
			    CLONE_VM | CLONE_FILES | SIGCHLD, &p);
		MUST(pid > 0);
		CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
		CHECK_EQ(p.ret, 0);
		MUST(next_event(&q, &ev, 0) >= 0);
		MUST_EQ(add_user(q.fd, 2, 1, 0, 2), 0);
		MUST_EQ(mark_user(q.fd, 2, 1), 1);
		MUST_EQ(next_event(&q, &ev, 0), 1);
		CHECK_EQ(ev.ptr, 2);
		if (i & 1)
			remove_file(q.fd, KEVENT_POLL, p.fd);
		CHECK_EQ(close(p.fd), 0);
		CHECK_EQ(watches(&q), 1);
		close_queue(&q);
	}
}

static void signalfd_watch_serves_its_own_process(void)
{
	struct ukevent ev;
	struct queue q;
	sigset_t mask;
	int fd;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	MUST_EQ(sigprocmask(SIG_BLOCK, &mask, NULL), 0);
	open_queue(&q, 8);
	fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLIN, 0, 1), 0);
	MUST_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ret_data[0], KEVENT_POLL_POLLIN);
	take_bytes(fd);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void threads_share_the_ring(void)
{
	struct waiter w;
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	start_waiter(&w, &q, 8);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&w), 1);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(close_removes_the_watch_though_the_file_lives),
	TEST_EACH(kevent_close_ends_the_watches_of_a_file),
	TEST(kevent_close_asks_no_refusal),
	TEST_EACH(close_withdraws_a_pending_event),
	TEST(entry_in_the_ring_outlives_its_watch),
	TEST(close_of_a_copy_leaves_the_watch),
	TEST(dup2_over_the_descriptor_removes_the_watch),
	TEST(request_about_another_file_is_refused),
	TEST(dup2_of_the_same_file_leaves_the_watch),
	TEST(close_removes_many_watches_of_a_file),
	TEST(close_range_removes_watches),
	TEST(last_reference_in_flight_removes_nothing_twice),
	TEST(closing_the_queue_ends_its_watches),
	TEST(waiter_outlives_the_close_of_its_queue),
	TEST(watched_fd_closed_while_others_wait),
	TEST(ring_belongs_to_the_process_that_made_it),
	TEST(event_of_another_process_reaches_the_ring),
	TEST(close_in_a_child_leaves_the_watch),
	TEST(watch_added_by_a_child_ends_with_it),
	TEST(killed_child_leaves_the_queue_usable),
	TEST(passed_queue_works_without_its_ring),
	TEST(queue_in_its_own_socket_is_collected),
	TEST(exec_closes_what_is_close_on_exec),
	TEST(address_space_may_end_before_the_queue),
	TEST(wait_queue_that_dies_first_is_left),
	TEST(signalfd_watch_serves_its_own_process),
	TEST(threads_share_the_ring),
	{}
};

const struct test_suite lifetime_suite = {
	.name = "lifetime",
	.cases = cases,
};
