// SPDX-License-Identifier: GPL-2.0
/*
 * Bells: descriptors that wake a consumer of a queue, and do nothing else
 *
 *	owner				peer
 *	kevent_ctl(q, BELL) -> bell	by fork, or over a socket
 *	asleep in q			ring
 *	returns without an event
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"

#define BELL	KEVENT_CTL_BELL
#define READY	KEVENT_CTL_READY
#define RING	KEVENT_FLAGS_RING
#define ROUNDS	200
#define MANY	10000
#define RACES	300

static int make_bell(int kq)
{
	int bell = kevent_ctl(kq, BELL, 0, NULL);

	MUST(bell >= 0);
	return bell;
}

static int ring(int bell)
{
	return kevent_ctl(bell, READY, 0, NULL);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* It was rung: the next wait ends at once, without an event, and takes what there is. */
static void check_rung_once(struct queue *q)
{
	uint64_t start = now_ns();
	struct ukevent ev;

	CHECK_EQ(next_event(q, &ev, PATIENCE_MS * slowness), 0);
	CHECK(now_ns() - start < quick_ns());
	CHECK(!is_readable(q->fd));
}

/* --- what a ring does ---------------------------------------------------- */

static void ring_ends_a_sleep(struct queue *q)
{
	int bell = make_bell(q->fd);
	struct waiter w;

	start_waiter(&w, q, 1);
	CHECK_EQ(ring(bell), 0);
	CHECK_EQ(join_waiter(&w), 0);
	close(bell);
}

static void ring_ends_a_sleep_of_each_queue(void)
{
	each_queue(ring_ends_a_sleep);
}

static void ring_wakes_one_of_several(void)
{
	struct waiter w[2];
	struct queue q;
	int bell;

	open_queue(&q, 8);
	bell = make_bell(q.fd);
	start_waiter(&w[0], &q, 1);
	start_waiter(&w[1], &q, 1);
	CHECK_EQ(ring(bell), 0);
	CHECK_EQ(join_waiter(&w[0]), 0);
	CHECK(waiter_asleep(&w[1]));
	CHECK_EQ(ring(bell), 0);
	CHECK_EQ(join_waiter(&w[1]), 0);
	close(bell);
	close_queue(&q);
}

/* Nobody waits: the ring is kept, and many are as good as one. */
static void rings_are_kept_as_one(void)
{
	struct waiter w;
	struct queue q;
	int bell, i;

	open_queue(&q, 8);
	bell = make_bell(q.fd);
	for (i = 0; i < MANY; i++)
		MUST_EQ(ring(bell), 0);
	check_rung_once(&q);
	start_waiter(&w, &q, 1);
	CHECK_EQ(ring(bell), 0);
	CHECK_EQ(join_waiter(&w), 0);
	close(bell);
	close_queue(&q);
}

static void events_come_before_a_ring(struct queue *q)
{
	int bell = make_bell(q->fd);
	struct ukevent ev;

	MUST_EQ(add_user(q->fd, 3, 1, 0, 7), 0);
	CHECK_EQ(ring(bell), 0);
	MUST_EQ(mark_user(q->fd, 3, 1), 1);
	MUST_EQ(next_event(q, &ev, -1), 1);
	CHECK_EQ(ev.ptr, 7);
	check_rung_once(q);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &ev), 0);
	close(bell);
}

static void rings_lose_no_events(void)
{
	each_queue(events_come_before_a_ring);
}

static long poll_readable(void *p)
{
	return poll(p, 1, PATIENCE_MS * slowness);
}

static void ring_makes_the_queue_readable(void)
{
	struct pollfd p = { .events = POLLIN };
	struct actor a;
	struct queue q;
	int bell;

	open_queue(&q, 8);
	bell = make_bell(q.fd);
	p.fd = q.fd;
	CHECK(!is_readable(q.fd));
	start_actor(&a, poll_readable, &p);
	MUST(sleeps_in(a.tid, SYS_poll));
	CHECK_EQ(ring(bell), 0);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 1);
	check_rung_once(&q);
	close(bell);
	close_queue(&q);
}

/* --- a wait that rings first --------------------------------------------- */

static int ring_and_wait(struct queue *q, long bell, uint32_t flags, int64_t ms)
{
	uint32_t kidx = __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
	const struct timespec ts = ms_to_timespec(ms < 0 ? 0 : ms);

	return kevent_wait(q->fd, q->size, kidx, ms < 0 ? NULL : &ts,
			   RING | flags, (const void *)bell);
}

struct pair {
	struct queue	q[2];
	int		bell[2];
	int		ran_on;
};

static void open_both(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		open_queue(&p->q[i], 8);
		p->bell[i] = make_bell(p->q[i].fd);
	}
}

static void close_both(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(p->bell[i]);
		close_queue(&p->q[i]);
	}
}

/* Each rings for the other one and waits, in one call. The last answer is only a ring. */
static long answer_rings(void *arg)
{
	struct pair *p = arg;
	int i, ret = wait_ring(&p->q[1], 8, -1);

	for (i = 1; !ret && i < ROUNDS; i++) {
		p->ran_on = sched_getcpu();
		ret = ring_and_wait(&p->q[1], p->bell[0], 0, -1);
	}
	return ret ?: ring(p->bell[0]);
}

static void wait_rings_first(void)
{
	struct actor a;
	struct pair p;
	int i;

	open_both(&p);
	start_actor(&a, answer_rings, &p);
	for (i = 0; i < ROUNDS; i++)
		MUST_EQ(ring_and_wait(&p.q[0], p.bell[1], 0,
				      PATIENCE_MS * slowness), 0);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	close_both(&p);
}

static void run_on(pid_t tid, int first, int last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (; first <= last; first++)
		CPU_SET(first, &set);
	MUST_EQ(sched_setaffinity(tid, sizeof(set), &set), 0);
}

/*
 * The other thread has run on the other CPU, and may run on both. The other one is idle:
 * without the request most wake-ups are there.
 */
static void woken_by_a_wait_runs_here(void)
{
	unsigned int i, elsewhere = 0;
	static struct pair p;
	struct actor a;

	MUST(sysconf(_SC_NPROCESSORS_ONLN) > 1);
	open_both(&p);
	run_on(0, 0, 0);
	start_actor(&a, answer_rings, &p);
	for (i = 0; i < ROUNDS; i++) {
		MUST(sleeps_in(a.tid, __NR_kevent_wait));
		run_on(a.tid, i % 2 ? 0 : 1, 1);
		MUST_EQ(ring_and_wait(&p.q[0], p.bell[1], 0,
				      PATIENCE_MS * slowness), 0);
		elsewhere += i % 2 && i < ROUNDS - 1 && p.ran_on;
	}
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	run_on(0, 0, 1);
	/* A tick may move it before it says where it runs. */
	CHECK(elsewhere < ROUNDS / 20);
	close_both(&p);
}

/* A wait that has no limit, and returns at once with the error. */
static void wait_that_cannot_ring_does_not_wait(void)
{
	struct queue q, other;
	int bell, fd[2];

	open_queue(&q, 8);
	open_queue(&other, 0);
	open_pipe(fd);
	bell = make_bell(other.fd);
	CHECK_EQ(ring_and_wait(&q, 4000, 0, -1), -EBADF);
	CHECK_EQ(ring_and_wait(&q, -1, 0, -1), -EBADF);
	if (sizeof(long) == 8)
		CHECK_EQ(ring_and_wait(&q, bell + 0x100000000ll, 0, -1), -EBADF);
	CHECK_EQ(ring_and_wait(&q, fd[1], 0, -1), -EINVAL);
	CHECK_EQ(ring_and_wait(&q, other.fd, 0, -1), -EINVAL);
	CHECK_EQ(ring_and_wait(&q, q.fd, 0, -1), -EINVAL);
	CHECK_EQ(ring_and_wait(&q, bell, KEVENT_FLAGS_ARG, -1), -EINVAL);
	CHECK_EQ(ring_and_wait(&q, bell, KEVENT_FLAGS_SERVE, -1), -EINVAL);
	CHECK(!is_readable(other.fd));
	close_queue(&other);
	CHECK_EQ(ring_and_wait(&q, bell, 0, -1), -EPIPE);
	close(bell);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

/* It rings only if it waits. */
static void wait_that_fails_does_not_ring(void)
{
	const struct timespec never = { .tv_nsec = -1 };
	struct queue q, other;
	int bell;

	open_queue(&q, 8);
	open_queue(&other, 8);
	bell = make_bell(other.fd);
	CHECK_EQ(kevent_wait(q.fd, 0, 0, NULL, RING, (void *)(long)bell),
		 -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, &never, RING, (void *)(long)bell),
		 -EINVAL);
	CHECK_EQ(kevent_wait(bell, 8, 0, NULL, RING, (void *)(long)bell),
		 -EINVAL);
	CHECK(!is_readable(other.fd));
	CHECK_EQ(ring_and_wait(&q, bell, 0, 0), 0);
	check_rung_once(&other);
	/* A bell of the queue itself ends the wait. */
	close(bell);
	bell = make_bell(q.fd);
	CHECK_EQ(ring_and_wait(&q, bell, 0, -1), 0);
	CHECK(!is_readable(q.fd));
	close(bell);
	close_queue(&other);
	close_queue(&q);
}

/* --- what a bell does not ------------------------------------------------ */

static void check_no_file(int bell)
{
	struct epoll_event ee = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	char c = 0;

	CHECK_EQ(write(bell, &c, 1), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(read(bell, &c, 1), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(lseek(bell, 0, SEEK_CUR), -1);
	CHECK_EQ(errno, ESPIPE);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, bell, &ee), -1);
	CHECK_EQ(errno, EPERM);
	close(ep);
}

/* Who has a bell can ring it. */
static void check_only_rings(int bell)
{
	struct ukevent ev[2];
	uint32_t cmd;

	kevent_set_user(&ev[0], 3, 1, 0, 0);
	kevent_set_user(&ev[1], 4, 1, 0, 0);
	for (cmd = KEVENT_CTL_ADD; cmd <= BELL + 1; cmd++) {
		CHECK_EQ(kevent_ctl(bell, cmd, 2, ev), -EINVAL);
		if (cmd != READY)
			CHECK_EQ(kevent_ctl(bell, cmd, 0, NULL), -EINVAL);
	}
	CHECK_EQ(get_events(bell, 1, 2, 0, ev), -EINVAL);
	CHECK_EQ(kevent_wait(bell, 1, 0, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_commit(bell, 0, 0), -EINVAL);
	check_no_file(bell);
}

static void bell_does_nothing_but_ring(void)
{
	struct queue q;
	int bell;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 3, 1, 0, 7), 0);
	bell = make_bell(q.fd);
	check_only_rings(bell);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	CHECK_NO_EVENT(&q);
	close(bell);
	close_queue(&q);
}

static void wrong_requests_make_no_bell(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_pipe(fd);
	open_queue(&q, 8);
	kevent_set_user(&ev, 3, 1, 0, 0);
	CHECK_EQ(kevent_ctl(q.fd, BELL, 1, &ev), -EINVAL);
	CHECK_EQ(kevent_ctl(q.fd, BELL, 1, NULL), -EINVAL);
	CHECK_EQ(kevent_ctl(q.fd, BELL, 0, &ev), -EINVAL);
	CHECK_EQ(kevent_ctl(fd[0], BELL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_ctl(4000, BELL, 0, NULL), -EBADF);
	close_queue(&q);
	open_refusing(&q, KEVENT_INIT_REFUSE_READY);
	CHECK_EQ(kevent_ctl(q.fd, BELL, 0, NULL), -EPERM);
	close_queue(&q);
	open_refusing(&q, KEVENT_INIT_REFUSE_ALL & ~KEVENT_INIT_REFUSE_READY);
	close(make_bell(q.fd));
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

static void descriptors_limit_bells(void)
{
	struct rlimit old, none;
	struct queue q;
	int bell;

	open_queue(&q, 8);
	MUST_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	CHECK_EQ(kevent_ctl(q.fd, BELL, 0, NULL), -EMFILE);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	bell = make_bell(q.fd);
	CHECK_EQ(fcntl(bell, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(ring(bell), 0);
	check_rung_once(&q);
	close(bell);
	close_queue(&q);
}

/* Others may keep a bell for ever: that must not use up what the owner may have. */
static void bells_charge_nobody(void)
{
	long long bytes;
	struct queue q;
	int bell;

	open_queue(&q, 8);
	bytes = fdinfo(q.fd, "kevent-user-bytes");
	bell = make_bell(q.fd);
	CHECK_EQ(fdinfo(q.fd, "kevent-user-bytes"), bytes);
	close_queue(&q);
	close(bell);
}

/* --- lifetime ------------------------------------------------------------ */

static void bell_of_a_closed_queue_is_silent(void)
{
	int bell[2], copy, i;
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 3, 1, 0, 7), 0);
	for (i = 0; i < 2; i++)
		bell[i] = make_bell(q.fd);
	CHECK_EQ(fdinfo(bell[0], "kevent-bell"), 1);
	copy = dup(q.fd);
	close_queue(&q);
	CHECK_EQ(ring(bell[0]), 0);
	close(copy);
	for (i = 0; i < 2; i++)
		CHECK_EQ(ring(bell[i]), -EPIPE);
	CHECK_EQ(fdinfo(bell[1], "kevent-bell"), 0);
	check_only_rings(bell[0]);
	close(bell[0]);
	CHECK_EQ(ring(bell[1]), -EPIPE);
	close(bell[1]);
}

/* As many as the kernel frees at once */
#define CLOSED	1200

static void bells_keep_what_they_ring(void)
{
	static int bell[CLOSED];
	uint64_t start = now_ns();
	struct queue q;
	int i;

	open_fds(CLOSED + 64);
	for (i = 0; i < CLOSED; i++) {
		open_queue(&q, 0);
		bell[i] = make_bell(q.fd);
		close_queue(&q);
	}
	do
		for (i = 0; i < CLOSED; i++)
			MUST_EQ(ring(bell[i]), -EPIPE);
	while (now_ns() - start < storm_ns());
	for (i = 0; i < CLOSED; i++)
		close(bell[i]);
}

static long ring_until_it_is_closed(void *arg)
{
	const int *bell = arg;
	int ret;

	do
		ret = ring(*bell);
	while (!ret);
	return ret;
}

static void rings_race_the_close(void)
{
	struct actor a;
	struct queue q;
	int bell, i;

	for (i = 0; i < RACES; i++) {
		open_queue(&q, 8);
		bell = make_bell(q.fd);
		start_actor(&a, ring_until_it_is_closed, &bell);
		MUST_EQ(wait_ring(&q, 8, -1), 0);
		close_queue(&q);
		join_actor(&a, PATIENCE_MS);
		MUST_EQ(a.ret, -EPIPE);
		close(bell);
	}
}

/* --- processes ----------------------------------------------------------- */

static int ring_in_child(void *arg)
{
	const int *bell = arg;

	CHILD_MUST(ring(*bell) == 0);
	return 0;
}

static void child_rings(void)
{
	struct waiter w;
	struct queue q;
	int bell;
	pid_t pid;

	open_queue(&q, 8);
	bell = make_bell(q.fd);
	start_waiter(&w, &q, 1);
	pid = start_child(ring_in_child, &bell);
	CHECK_EQ(join_waiter(&w), 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	close(bell);
	close_queue(&q);
}

/* Nothing but the bell: the other descriptors are closed. */
static int ring_as_nobody(void *arg)
{
	const int *sock = arg;
	struct ukevent ev;
	int bell;

	close_range(sock[1] + 1, ~0u, 0);
	bell = receive_fd(sock[1]);
	CHILD_MUST(bell >= 0);
	CHILD_MUST(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	CHILD_MUST(get_events(bell, 1, 1, 0, &ev) == -EINVAL);
	CHILD_MUST(kevent_ctl(bell, BELL, 0, NULL) == -EINVAL);
	CHILD_MUST(ring(bell) == 0);
	return 0;
}

static void another_user_rings(void)
{
	struct waiter w;
	struct queue q;
	int sock[2], bell;
	pid_t pid;

	if (geteuid()) {
		note("not root");
		return;
	}
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	open_queue(&q, 8);
	bell = make_bell(q.fd);
	send_fd(sock[0], bell);
	close(bell);
	start_waiter(&w, &q, 1);
	pid = start_child(ring_as_nobody, sock);
	CHECK_EQ(join_waiter(&w), 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	close(sock[0]);
	close(sock[1]);
	close_queue(&q);
}

static int pass_and_exec(void *arg)
{
	const int *sock = arg;
	struct queue q;
	int bell;

	open_queue(&q, 8);
	bell = kevent_ctl(q.fd, BELL, 0, NULL);
	CHILD_MUST(bell >= 0);
	send_fd(sock[1], bell);
	CHILD_MUST(dup2(sock[1], 1) == 1);
	exec_and_run();
	return 1;
}

/* The program that the owner executes has neither the queue nor the bell. */
static void bell_outlives_the_program_of_the_owner(void)
{
	int sock[2], bell, status;
	pid_t pid;
	char c;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	pid = start_child(pass_and_exec, sock);
	bell = receive_fd(sock[0]);
	MUST(bell >= 0);
	MUST_EQ(read(sock[0], &c, 1), 1);
	CHECK_EQ(ring(bell), -EPIPE);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(ring(bell), -EPIPE);
	close(bell);
	close(sock[0]);
	close(sock[1]);
}

static const struct test_case cases[] = {
	TEST(ring_ends_a_sleep_of_each_queue),
	TEST(ring_wakes_one_of_several),
	TEST(rings_are_kept_as_one),
	TEST(rings_lose_no_events),
	TEST(ring_makes_the_queue_readable),
	TEST(wait_rings_first),
	TEST(woken_by_a_wait_runs_here),
	TEST(wait_that_cannot_ring_does_not_wait),
	TEST(wait_that_fails_does_not_ring),
	TEST(bell_does_nothing_but_ring),
	TEST(wrong_requests_make_no_bell),
	TEST(descriptors_limit_bells),
	TEST(bells_charge_nobody),
	TEST(bell_of_a_closed_queue_is_silent),
	TEST(bells_keep_what_they_ring),
	TEST(rings_race_the_close),
	TEST(child_rings),
	TEST(another_user_rings),
	TEST(bell_outlives_the_program_of_the_owner),
	{}
};

const struct test_suite bell_suite = {
	.name = "bell",
	.cases = cases,
};
