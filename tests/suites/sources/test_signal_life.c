// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_SIGNAL: a watch belongs to a process
 *
 *	fork		the child has none
 *	exec		gone, and can be added again
 *	last thread	gone, though another process has the queue
 *	a passed queue	events are about the process that added the watch,
 *			which alone may change it
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/userfaultfd.h>

#include "signals.h"

struct team {
	struct queue	q;
	int		to_child[2];
	int		to_parent[2];
};

static void open_team(struct team *t, uint32_t size)
{
	open_queue(&t->q, size);
	MUST_EQ(pipe(t->to_child), 0);
	MUST_EQ(pipe(t->to_parent), 0);
}

static bool signal_peer(int fd[2])
{
	return write(fd[1], "", 1) == 1;
}

static bool await(int fd[2])
{
	char c;
	ssize_t ret;

	do
		ret = read(fd[0], &c, 1);
	while (ret < 0 && errno == EINTR);
	return ret == 1;
}

static int child_without_watch(void *arg)
{
	struct team *t = arg;

	(void)t;
	atomic_store(&handled, 0);
	CHILD_MUST(kill(getpid(), SIGUSR1) == 0);
	CHILD_MUST(handled == 1);
	return 0;
}

static void fork_does_not_inherit_watches(void)
{
	struct team t;

	open_team(&t, 0);
	handle(SIGUSR1, count_signal);
	MUST_EQ(add_signal(t.q.fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(join_child(start_child(child_without_watch, &t),
			    PATIENCE_MS), 0);
	CHECK_NO_EVENT(&t.q);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(&t.q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_EQ(handled, 0);
	close_queue(&t.q);
}

/* Adds a watch, waits, and ends while a signal is unread. */
static int watching_child(void *arg)
{
	struct team *t = arg;

	signal(RT, SIG_IGN);
	CHILD_MUST(add_signal(t->q.fd, RT, CONSUME, 0) == 0);
	CHILD_MUST(queue_value(RT, 1) == 0);
	CHILD_MUST(signal_peer(t->to_parent) && await(t->to_child));
	CHILD_MUST(queue_value(RT, 2) == 0);
	CHILD_MUST(queue_value(RT, 3) == 0);
	return 0;
}

static void check_exit(uint32_t size)
{
	struct team t;
	int i;

	open_team(&t, size);
	for (i = 0; i < 20; i++) {
		pid_t pid = start_child(watching_child, &t);

		MUST(await(t.to_parent));
		must_signal(&t.q, RT, true, pid, SI_QUEUE, 1);
		CHECK_EQ(fdinfo(t.q.fd, "kevent-watches"), 1);
		CHECK_EQ(add_signal(t.q.fd, RT, CONSUME, 0), -EEXIST);
		CHECK(signal_peer(t.to_child));
		CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
		CHECK_EQ(fdinfo(t.q.fd, "kevent-watches"), 0);
		CHECK_EQ(fdinfo(t.q.fd, "kevent-ready"), 0);
		CHECK_NO_EVENT(&t.q);
	}
	CHECK_EQ(add_signal(t.q.fd, RT, CONSUME, 0), 0);
	close_queue(&t.q);
}

static void exit_drops_watches_of_a_queue_elsewhere(void)
{
	check_exit(0);
	check_exit(16);
}

static long survive_leader(void *arg)
{
	struct team *t = arg;
	char path[64], text[512];
	uint64_t start = now_ns();

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	do
		read_file(path, text, sizeof(text));
	while (!strstr(text, ") Z") && patient(start, PATIENCE_MS));
	signal_peer(t->to_parent);
	await(t->to_child);
	_exit(remove_signal(t->q.fd, SIGUSR1));
}

static int leader_that_leaves(void *arg)
{
	struct team *t = arg;
	pthread_t thread;

	signal(SIGUSR1, SIG_IGN);
	CHILD_MUST(add_signal(t->q.fd, SIGUSR1, CONSUME, 0) == 0);
	CHILD_MUST(pthread_create(&thread, NULL, (void *(*)(void *))
				  (void *)survive_leader, t) == 0);
	syscall(SYS_exit, 1);
	return 1;
}

static void watch_outlives_the_first_thread(void)
{
	struct team t;
	pid_t pid;

	open_team(&t, 0);
	pid = start_child(leader_that_leaves, &t);
	MUST(await(t.to_parent));
	CHECK_EQ(fdinfo(t.q.fd, "kevent-watches"), 1);
	CHECK_EQ(kill(pid, SIGUSR1), 0);
	must_signal(&t.q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_EQ(remove_signal(t.q.fd, SIGUSR1), -EPERM);
	CHECK_EQ(fdinfo(t.q.fd, "kevent-watches"), 1);
	CHECK(signal_peer(t.to_child));
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(t.q.fd, "kevent-watches"), 0);
	close_queue(&t.q);
}

/* What the new program does; each way to fail has its exit status. */
int signals_after_exec(int argc, char **argv)
{
	struct ukevent ev;
	int kq;

	if (argc < 3)
		return 100;
	kq = atoi(argv[2]);
	if (fdinfo(kq, "kevent-watches") != 0)
		return 101;
	if (get_events(kq, 1, 1, 0, &ev) != 0)
		return 102;
	if (add_signal(kq, SIGUSR1, CONSUME, 0) != 0)
		return 103;
	kill(getpid(), SIGUSR1);
	if (get_events(kq, 1, 1, 0, &ev) != 1 || ev.id.raw[0] != SIGUSR1)
		return 104;
	return 0;
}

static long do_exec(void *arg)
{
	char kq[12];

	snprintf(kq, sizeof(kq), "%d", *(int *)arg);
	execl("/proc/self/exe", "kevent-tests", "--signals-after-exec", kq,
	      NULL);
	return -errno;
}

static int exec_child(void *arg)
{
	struct team *t = arg;
	struct actor a;

	signal(SIGUSR1, SIG_IGN);
	CHILD_MUST(add_signal(t->q.fd, SIGUSR1, CONSUME, 0) == 0);
	CHILD_MUST(kill(getpid(), SIGUSR1) == 0);
	CHILD_MUST(fcntl(t->q.fd, F_SETFD, 0) == 0);
	if (t->q.size)		/* by another thread */
		start_actor(&a, do_exec, &t->q.fd);
	else
		do_exec(&t->q.fd);
	while (t->q.size)
		pause();
	return 1;
}

static void exec_drops_watches_which_can_be_added_again(struct queue *q)
{
	struct team t = { .q = *q };

	CHECK_EQ(join_child(start_child(exec_child, &t), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static int exec_fails(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	signal(SIGUSR1, SIG_IGN);
	CHILD_MUST(add_signal(q->fd, SIGUSR1, CONSUME, 0) == 0);
	execl("/nonexistent", "nonexistent", NULL);
	CHILD_MUST(kill(getpid(), SIGUSR1) == 0);
	CHILD_MUST(next_event(q, &ev, 0) == 1);
	return 0;
}

static void exec_that_fails_keeps_them(void)
{
	struct queue q;

	open_queue(&q, 0);
	CHECK_EQ(join_child(start_child(exec_fails, &q), PATIENCE_MS), 0);
	close_queue(&q);
}

static int stranger(void *arg)
{
	struct team *t = arg;
	int kq = receive_fd(t->to_child[0]);

	CHILD_MUST(kq >= 0);
	atomic_store(&handled, 0);
	CHILD_MUST(add_signal(kq, SIGUSR1, CONSUME, 0) == 0);
	CHILD_MUST(close(kq) == 0);
	CHILD_MUST(signal_peer(t->to_parent) && await(t->to_child));
	CHILD_MUST(handled == 0);
	CHILD_MUST(signal_peer(t->to_parent) && await(t->to_child));
	CHILD_MUST(handled == 1);
	return 0;
}

/*
 * The process that added the watch gets the signal; the other one has the
 * queue.
 */
static void passed_queue_tells_of_who_added_the_watch(void)
{
	struct team t;
	pid_t pid;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, t.to_child), 0);
	MUST_EQ(pipe(t.to_parent), 0);
	handle(SIGUSR1, count_signal);
	pid = start_child(stranger, &t);
	open_queue(&t.q, 8);
	send_fd(t.to_child[1], t.q.fd);
	MUST(await(t.to_parent));
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	CHECK_NO_EVENT(&t.q);
	CHECK_EQ(change_signal(t.q.fd, KEVENT_CTL_MODIFY, SIGUSR1, OBSERVE, 0),
		 -EPERM);
	CHECK_EQ(change_signal(t.q.fd, KEVENT_CTL_READY, SIGUSR1, 0, 0),
		 -EPERM);
	CHECK_EQ(remove_signal(t.q.fd, SIGUSR1), -EPERM);
	CHECK_EQ(kill(pid, SIGUSR1), 0);
	must_signal(&t.q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK(signal_peer(t.to_child) && await(t.to_parent));
	/* The watch ends with the queue, which another process closes. */
	close_queue(&t.q);
	CHECK_EQ(kill(pid, SIGUSR1), 0);
	CHECK(signal_peer(t.to_child));
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

/* A process that inherits a queue cannot change the watches of others. */

static int meddles(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	CHILD_MUST(change_signal(q->fd, KEVENT_CTL_MODIFY, SIGUSR1,
				 CONSUME, 0) == -EPERM);
	CHILD_MUST(remove_signal(q->fd, SIGUSR1) == -EPERM);
	/* With ONESHOT it would end the watch. */
	CHILD_MUST(change_signal(q->fd, KEVENT_CTL_READY, SIGUSR1, 0, 0) ==
		   -EPERM);
	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	CHILD_MUST(kevent_ctl(q->fd, KEVENT_CTL_REMOVE, 1, &ev) == 1);
	CHILD_MUST((int)ev.ret_data[1] == -EPERM);
	CHILD_MUST(remove_signal(q->fd, SIGUSR2) == -ENOENT);
	return 0;
}

static long changes_in_thread(void *arg)
{
	return change_signal(*(int *)arg, KEVENT_CTL_MODIFY, SIGUSR1,
			     CONSUME, 0);
}

static void others_may_not_change_a_watch(struct queue *q)
{
	struct actor a;

	handle(SIGUSR1, count_signal);
	MUST_EQ(add_signal(q->fd, SIGUSR1, OBSERVE, 0), 0);
	CHECK_EQ(join_child(start_child(meddles, q), PATIENCE_MS), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	must_signal(q, SIGUSR1, false, getpid(), SI_USER, 0);
	/* Other threads of the process can. */
	start_actor(&a, changes_in_thread, &q->fd);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	must_signal(q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_EQ(join_child(start_child(meddles, q), PATIENCE_MS), 0);
	CHECK_EQ(remove_signal(q->fd, SIGUSR1), 0);
}

/*
 * A signal to a process group also goes to a child whose fork is not complete.
 * A watch of the parent consumes only the parent's signal. userfaultfd blocks
 * the fork until its event is read.
 */
static long forks(void *arg)
{
	pid_t pid = fork();

	(void)arg;
	if (!pid)
		_exit(is_pending(SIGUSR1) | is_pending(RT) << 1 |
		      is_pending(SIGTSTP) << 2 | is_pending(SIGCONT) << 3);
	return join_child(pid, PATIENCE_MS);
}

static int open_fork_events(void)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_EVENT_FORK };
	size_t size = sysconf(_SC_PAGESIZE);
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(fd >= 0 && page != MAP_FAILED);
	MUST_EQ(ioctl(fd, UFFDIO_API, &api), 0);
	reg.range.start = (uintptr_t)page;
	reg.range.len = size;
	MUST_EQ(ioctl(fd, UFFDIO_REGISTER, &reg), 0);
	return fd;
}

static int signals_own_group(void *arg)
{
	const int sigs[] = { SIGUSR1, RT, SIGTSTP, SIGCONT };
	struct pollfd pfd = { .fd = open_fork_events(), .events = POLLIN };
	struct queue *q = arg;
	struct uffd_msg msg;
	struct ukevent ev;
	struct actor a;
	unsigned int i;

	CHILD_MUST(setpgid(0, 0) == 0);
	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		block(sigs[i], SIG_BLOCK);
		CHILD_MUST(add_signal(q->fd, sigs[i], CONSUME, 0) == 0);
	}
	start_actor(&a, forks, NULL);
	CHILD_MUST(poll(&pfd, 1, PATIENCE_MS * slowness) == 1);
	/* The last call reverts the third. */
	for (i = 0; i < ARRAY_SIZE(sigs); i++)
		CHILD_MUST(kill(0, sigs[i]) == 0);
	CHILD_MUST(read(pfd.fd, &msg, sizeof(msg)) == sizeof(msg));
	CHILD_MUST(msg.event == UFFD_EVENT_FORK);
	close(msg.arg.fork.ufd);
	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		CHILD_MUST(next_event(q, &ev, 0) == 1);
		CHILD_MUST((ev.id.raw_u64 & ~((uint64_t)INT_MAX << 32)) ==
			   (NOMASK | sigs[i]));
		CHILD_MUST(!is_pending(sigs[i]));
	}
	join_actor(&a, 2 * PATIENCE_MS);
	CHILD_MUST(a.ret == (1 | 2 | 8));
	return 0;
}

static void child_being_forked_gets_what_is_consumed(void)
{
	struct queue q;

	open_queue(&q, 0);
	CHECK_EQ(join_child(start_child(signals_own_group, &q),
			    3 * PATIENCE_MS), 0);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(fork_does_not_inherit_watches),
	TEST(exit_drops_watches_of_a_queue_elsewhere),
	TEST(watch_outlives_the_first_thread),
	TEST_EACH(exec_drops_watches_which_can_be_added_again),
	TEST(exec_that_fails_keeps_them),
	TEST(passed_queue_tells_of_who_added_the_watch),
	TEST_EACH(others_may_not_change_a_watch),
	TEST(child_being_forked_gets_what_is_consumed),
	{}
};

const struct test_suite signal_life_suite = {
	.name = "signal_life",
	.cases = cases,
};
