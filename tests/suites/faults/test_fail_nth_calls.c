// SPDX-License-Identifier: GPL-2.0
/*
 * What is no change of a watch and whose n-th allocation or copy fails: see nth_fault.h. New
 * queues, waits, polls, signals, queues of other processes, chains and bound calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "helpers.h"
#include "nth_fault.h"
#include "proc.h"
#include "signals.h"
#include "timers.h"

#ifdef __LP64__	/* a chain of a 32-bit program is refused */

/* A chain that takes a byte */
static struct kevent_call *taking(struct scene *s)
{
	static struct kevent_call c;
	static char byte;

	c = (struct kevent_call){
		.nr = SYS_read,
		.args = { (uint64_t)s->fd[0], KEVENT_ARG(&byte), 1 },
	};
	return &c;
}

#endif

/* kevent_init() */

static int init_plain(struct scene *s)
{
	s->other = kevent_init(NULL, 0, 0);
	return s->other;
}

static int init_ring(struct scene *s)
{
	static KEVENT_RING_STORAGE(8) mem;

	s->other = kevent_init(&mem.ring, 8, 0);
	return s->other;
}

static void new_queue(void)
{
	static const struct path plain = {
		.name = "kevent_init()", .call = init_plain, .end = close_other,
	};
	static const struct path ring = {
		.name = "kevent_init(), a ring", .call = init_ring,
		.end = close_other,
	};

	fail_each(&plain, NULL, 3);
	fail_each(&ring, NULL, 3);
}

/* A POSIX timer; timer_create() says EAGAIN when it finds no memory. */

static int create_timer(struct scene *s)
{
	s->other = create(s->q.fd, CLOCK_MONOTONIC, NEW);
	return s->other;
}

static unsigned int expire(struct scene *s)
{
	MUST_EQ(settime(s->other, 0, MS, 0), 0);
	return 1;
}

static void delete_timer(struct scene *s)
{
	CHECK_EQ(delete(s->other), 0);
}

static void timer_of_a_queue(void)
{
	static const struct path timer = {
		.name = "timer_create()", .errors = { -EFAULT, -EAGAIN },
		.call = create_timer, .fire = expire, .end = delete_timer,
	};

	fail_each(&timer, NULL, 4);
}

/* Waiting: nothing is taken by a call that fails. */

static int wait_a_moment(struct scene *s)
{
	static const struct timespec zero;

	return kevent_get_events(s->q.fd, 1, 1, &zero, s->ev, 0);
}

static int wait_for_ring(struct scene *s)
{
	static const struct timespec zero;

	return kevent_wait(s->q.fd, SIZE, 0, &zero, 0, NULL);
}

/* A change, a signal mask and a time limit */
static int wait_for_all(struct scene *s)
{
	static const struct timespec zero;

	kevent_wait_arg_init(&s->arg);
	sigemptyset(&s->mask);
	s->arg.sigmask = (uintptr_t)&s->mask;
	s->arg.sigsetsize = 8;
	s->arg.changes = (uintptr_t)&s->change;
	s->arg.nr_changes = 1;
	memset(&s->change, 0, sizeof(s->change));
	kevent_set_user(&s->change.uk, ID, 1, ET | KEVENT_REQ_READY, NEW);
	s->change.cmd = KEVENT_CTL_ADD;
	return kevent_wait(s->q.fd, SIZE, 0, &zero, KEVENT_FLAGS_ARG, &s->arg);
}

/* The thread becomes a member of the queue's group. */
static int wait_with_limit(struct scene *s)
{
	static const struct timespec zero;

	kevent_wait_arg_init(&s->arg);
	s->arg.max_running = 1;
	return kevent_wait(s->q.fd, SIZE, 0, &zero, KEVENT_FLAGS_ARG, &s->arg);
}

/* A thread that is a member of another queue's group stays one. */
static void join_group(struct scene *s)
{
	static KEVENT_RING_STORAGE(8) mem;

	MUST(wait_with_limit(s) >= 0);
	s->other = kevent_init(&mem.ring, 8, 0);
	MUST(s->other >= 0);
}

static int wait_elsewhere(struct scene *s)
{
	static const struct timespec zero;

	kevent_wait_arg_init(&s->arg);
	s->arg.max_running = 1;
	return kevent_wait(s->other, 1, 0, &zero, KEVENT_FLAGS_ARG, &s->arg);
}

/* A change that failed says so; then a second call makes it. */
static unsigned int change_was_made(struct scene *s)
{
	if (s->change.result == -ENOMEM) {
		CHECK_EQ(fdinfo(s->q.fd, "kevent-watches"), 1);
		CHECK(wait_for_all(s) >= 0);
	}
	CHECK_EQ(s->change.result, 0);
	return 1;
}

/* What get_events() took is in the buffer. */
static unsigned int put_back(struct scene *s)
{
	CHECK_EQ(s->ev[0].ptr, WAITED);
	put_byte(s->waits[1]);
	return 0;
}

static void calls_that_wait(void)
{
	static const struct path get = {
		.name = "kevent_get_events()", .errors = { -EFAULT },
		.call = wait_a_moment, .fire = put_back,
	};
	static const struct path ring = {
		.name = "kevent_wait()", .errors = { -EFAULT },
		.call = wait_for_ring,
	};
	static const struct path all = {
		.name = "kevent_wait() with a change", .errors = { -EFAULT },
		.call = wait_for_all, .fire = change_was_made,
	};
	static const struct path limited = {
		.name = "kevent_wait() with a limit",
		.errors = { -EFAULT, -ENOMEM }, .call = wait_with_limit,
	};
	static const struct path member = {
		.name = "kevent_wait() with a limit, of a member", .errors = { -EFAULT },
		.prepare = join_group, .call = wait_elsewhere, .end = close_other,
	};

	fail_each(&get, NULL, 1);
	fail_each(&ring, NULL, 1);
	fail_each(&all, NULL, 5);
	fail_each(&limited, NULL, 4);
	fail_each(&member, NULL, 4);
}

/* Others who use a queue */

static int poll_it(struct scene *s)
{
	struct pollfd pfd = { .fd = s->q.fd, .events = POLLIN };

	return poll(&pfd, 1, 0) < 0 ? -errno : 0;
}

static int epoll_it(struct scene *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(s->fd[0], EPOLL_CTL_ADD, s->q.fd, &ev) ? -errno : 0;
}

static void open_set_of_it(struct scene *s)
{
	s->fd[0] = epoll_create1(EPOLL_CLOEXEC);
	MUST(s->fd[0] >= 0);
}

static unsigned int epoll_sees_it(struct scene *s)
{
	struct epoll_event ev;

	CHECK_EQ(epoll_wait(s->fd[0], &ev, 1, 0), 1);
	return 0;
}

/* A thread that polls, by the parameters of epoll */
static int set_params(struct scene *s)
{
	const uint64_t usecs = 100;

	return ioctl(s->q.fd, _IOW(0x8A, 1, uint64_t), &usecs) ? -errno : 0;
}

static int get_params(struct scene *s)
{
	uint64_t usecs;

	return ioctl(s->q.fd, _IOR(0x8A, 2, uint64_t), &usecs) ? -errno : 0;
}

static void files_of_files(void)
{
	static const struct path polled = {
		.name = "poll() of a queue", .errors = { -EFAULT },
		.call = poll_it,
	};
	static const struct path watched = {
		.name = "epoll_ctl() of a queue", .errors = { -EFAULT },
		.prepare = open_set_of_it, .call = epoll_it,
		.fire = epoll_sees_it,
	};
	static const struct path set = {
		.name = "EPIOCSPARAMS", .errors = { -EFAULT },
		.call = set_params,
	};
	static const struct path get = {
		.name = "EPIOCGPARAMS", .errors = { -EFAULT },
		.call = get_params,
	};

	fail_each(&polled, NULL, 1);
	fail_each(&watched, NULL, 3);
	fail_each(&set, NULL, 1);
	fail_each(&get, NULL, 1);
}

/*
 * Signals: kill() of a standard signal needs no memory to be kept. A queued one that
 * cannot be kept fails, as it does without a watch.
 */

static int send_standard(struct scene *s)
{
	(void)s;
	return kill(getpid(), SIGUSR1) ? -errno : 0;
}

static int send_queued(struct scene *s)
{
	(void)s;
	return queue_value(RT, 5);
}

static void watch_signal(struct scene *s, int sig)
{
	kevent_set_signal(&s->ev[0], sig, KEVENT_SIGNAL_CONSUME, 0, NEW);
	MUST_EQ(kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]), 0);
}

static void watch_standard(struct scene *s)
{
	watch_signal(s, SIGUSR1);
}

static void watch_queued(struct scene *s)
{
	watch_signal(s, RT);
	/* What comes with the watch is taken. */
	MUST_EQ(queue_value(RT, 4), 0);
}

static void signals_that_are_consumed(void)
{
	static const struct path standard = {
		.name = "kill()", .prepare = watch_standard,
		.call = send_standard, .fire = one_event,
	};
	static const struct path queued = {
		.name = "sigqueue()", .errors = { -EAGAIN, -EFAULT },
		.prepare = watch_queued, .call = send_queued,
		.fire = two_events,
	};

	fail_each(&standard, NULL, 0);
	fail_each(&queued, NULL, 2);
}

/* The queue of another process, to which this one and its memory are new */

/* Memory of both processes, and the socket that the queue comes over */
static struct kevent_ring *shared_ring;

static int handing[2];

static int make_queue(struct child *c)
{
	int kq = kevent_init(shared_ring, SIZE, 0);

	if (kq < 0)
		return 1;
	send_fd(handing[1], kq);
	close(kq);
	pass_gate(c);
	return 0;
}

static void open_foreign(struct scene *s)
{
	shared_ring = mmap(NULL, KEVENT_RING_BYTES(SIZE), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared_ring != MAP_FAILED);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, handing), 0);
	s->child.fn = make_queue;
	spawn(&s->child, 0);
	s->other = receive_fd(handing[0]);
	MUST(s->other >= 0);
	close_all(handing, 2);
}

static void close_foreign(struct scene *s)
{
	close_child(s);
	close_other(s);
	s->child.fn = NULL;
	munmap(shared_ring, KEVENT_RING_BYTES(SIZE));
}

static int attach_it(struct scene *s)
{
	return kevent_ctl(s->other, KEVENT_CTL_ATTACH, SIZE,
			  (struct ukevent *)shared_ring);
}

/* Attached, it takes an event from the ring. */
static unsigned int use_foreign(struct scene *s)
{
	struct queue q = { .fd = s->other, .size = SIZE, .ring = shared_ring };
	struct ukevent ev;

	MUST_EQ(add_user(q.fd, ID, 1, KEVENT_REQ_READY, NEW), 0);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, NEW);
	return 0;
}

static int watch_word(struct scene *s)
{
	set_word(s, &s->ev[0]);
	return kevent_ctl_one(s->other, KEVENT_CTL_ADD, &s->ev[0]);
}

static unsigned int wake_foreign(struct scene *s)
{
	wake_word(s);
	CHECK_EQ(get_events(s->other, 1, 1, 0, s->ev), 1);
	CHECK_EQ(s->ev[0].ptr, NEW);
	return 0;
}

static void queue_of_another_process(void)
{
	static const struct path ring = {
		.name = "ATTACH", .prepare = open_foreign, .call = attach_it,
		.fire = use_foreign, .end = close_foreign,
	};
	static const struct path word = {
		.name = "ADD of a word", .errors = { -EFAULT },
		.prepare = open_foreign, .call = watch_word,
		.fire = wake_foreign, .end = close_foreign,
	};

	fail_each(&ring, NULL, 1);
	fail_each(&word, NULL, 4);
}

#ifdef __LP64__

/* Chains for serving threads, and calls that are checked once */

static void open_quiet(struct scene *s)
{
	MUST_EQ(pipe2(s->fd, O_CLOEXEC), 0);
}

/* 0: the byte is not there, and a thread is to serve the chain. */
static int submit_read(struct scene *s)
{
	struct kevent_call *c = taking(s);
	long ret = raw_kevent(__NR_kevent_call, s->q.fd, c, 1, KEVENT_CALL_ASYNC,
			      (uint64_t)NEW);

	if (ret < 0)
		return -errno;
	return ret == KEVENT_CALL_SUBMITTED ? 0 : (int)c->result;
}

static int serve_now(struct scene *s)
{
	static const struct timespec zero;

	return kevent_wait(s->q.fd, 1, 0, &zero, KEVENT_FLAGS_SERVE, NULL);
}

static int serve_elsewhere(struct scene *s)
{
	static const struct timespec zero;

	return kevent_wait(s->other, 1, 0, &zero, KEVENT_FLAGS_SERVE, NULL);
}

static unsigned int serve_read(struct scene *s)
{
	write_two(s);
	MUST_EQ(serve_now(s), 1);
	return 1;
}

static int bind_read(struct scene *s)
{
	kevent_set_bound(&s->ev[0], 0, taking(s));
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]);
}

static unsigned int make_bound_read(struct scene *s)
{
	struct kevent_call c = { .nr = KEVENT_CALL_BOUND };

	write_two(s);
	CHECK_EQ(raw_kevent(__NR_kevent_call, s->q.fd, &c, 1, 0, 0ul), 0);
	CHECK_EQ(c.result, 1);
	return 0;
}

static void chains_and_bound_calls(void)
{
	static const struct path submit = {
		.name = "kevent_call() that submits", .errors = { -EFAULT },
		.prepare = open_quiet, .call = submit_read, .fire = serve_read,
	};
	static const struct path serve = {
		.name = "kevent_wait() that serves", .errors = { -EFAULT },
		.call = serve_now,
	};
	static const struct path member = {
		.name = "kevent_wait() that serves, of a member", .errors = { -EFAULT },
		.prepare = join_group, .call = serve_elsewhere, .end = close_other,
	};
	static const struct path bind = {
		.name = "ADD of a bound call", .errors = { -EFAULT },
		.prepare = open_two, .call = bind_read,
		.fire = make_bound_read,
	};

	fail_each(&submit, NULL, 2);
	fail_each(&serve, NULL, 1);
	fail_each(&member, NULL, 1);
	fail_each(&bind, NULL, 4);
}

#endif

static const struct test_case cases[] = {
	TEST_LIMIT(new_queue, 60),
	TEST(timer_of_a_queue),
	TEST(calls_that_wait),
	TEST(files_of_files),
	TEST(signals_that_are_consumed),
	TEST(queue_of_another_process),
#ifdef __LP64__
	TEST(chains_and_bound_calls),
#endif
	{}
};

const struct test_suite fail_nth_calls_suite = {
	.name = "fail_nth_calls", .cases = cases
};
