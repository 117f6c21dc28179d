// SPDX-License-Identifier: GPL-2.0
/* Changes of watches whose n-th allocation or copy fails, for each source: see nth_fault.h */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "helpers.h"
#include "nth_fault.h"
#include "proc.h"
#include "signals.h"
#include "timers.h"

/* Sources */

static void set_id(struct scene *s, struct ukevent *ev)
{
	(void)s;
	kevent_set_user(ev, ID, 1, ET, NEW);
}

static void mark_it(struct scene *s)
{
	MUST_EQ(mark_user(s->q.fd, ID, 1), 1);
}

static void set_two(struct scene *s, struct ukevent *ev)
{
	kevent_set_pipe(ev, s->fd[0], KEVENT_SOCKET_RECV, ET, NEW);
}

static void open_stream(struct scene *s)
{
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s->fd), 0);
}

static void set_stream(struct scene *s, struct ukevent *ev)
{
	kevent_set_socket(ev, s->fd[0], KEVENT_SOCKET_RECV, ET, NEW);
}

static void open_counter(struct scene *s)
{
	s->fd[0] = eventfd(0, EFD_CLOEXEC);
	MUST(s->fd[0] >= 0);
}

static void set_input(struct scene *s, struct ukevent *ev)
{
	kevent_set_poll(ev, s->fd[0], KEVENT_POLL_POLLIN, ET, NEW);
}

static void add_to_counter(struct scene *s)
{
	const uint64_t one = 1;

	MUST_EQ(write(s->fd[0], &one, sizeof(one)), sizeof(one));
}

/* Its ->poll() uses two wait queues. */
static void open_fifo(struct scene *s)
{
	char name[] = "/tmp/fail-nth";

	unlink(name);
	MUST_EQ(mkfifo(name, 0600), 0);
	s->fd[0] = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	s->fd[1] = open(name, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	MUST(s->fd[0] >= 0 && s->fd[1] >= 0);
	unlink(name);
}

/* A queue that watches a pipe */
static void open_inner(struct scene *s)
{
	open_pipe(s->fd);
	s->other = kevent_init(NULL, 0, 0);
	MUST(s->other >= 0);
	MUST_EQ(add_pipe(s->other, s->fd[0], KEVENT_SOCKET_RECV, ET, 0), 0);
}

static void open_epoll(struct scene *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	open_pipe(s->fd);
	s->other = epoll_create1(EPOLL_CLOEXEC);
	MUST(s->other >= 0);
	MUST_EQ(epoll_ctl(s->other, EPOLL_CTL_ADD, s->fd[0], &ev), 0);
}

static void set_other(struct scene *s, struct ukevent *ev)
{
	kevent_set_poll(ev, s->other, KEVENT_POLL_POLLIN, ET, NEW);
}

static void set_expiry(struct scene *s, struct ukevent *ev)
{
	(void)s;
	kevent_set_timer(ev, 1000000, 0, KEVENT_TIMER_FIRED,
			 KEVENT_REQ_ONESHOT | KEVENT_REQ_DISABLED, NEW);
	ev->event &= ~KEVENT_TIMER_INTERVAL;
}

static void arm_timer(struct scene *s)
{
	struct ukevent ev;

	set_expiry(s, &ev);
	ev.req_flags &= ~KEVENT_REQ_DISABLED;
	MUST_EQ(kevent_ctl_one(s->q.fd, KEVENT_CTL_MODIFY, &ev), 0);
}

static void set_sigusr1(struct scene *s, struct ukevent *ev)
{
	(void)s;
	kevent_set_signal(ev, SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, NEW);
}

static void send_sigusr1(struct scene *s)
{
	(void)s;
	MUST_EQ(kill(getpid(), SIGUSR1), 0);
}

static void open_child(struct scene *s)
{
	spawn(&s->child, 0);
}

static void set_child(struct scene *s, struct ukevent *ev)
{
	kevent_set_proc(ev, s->child.pid, 0, NEW);
}

static void end_child(struct scene *s)
{
	let_go(&s->child);
	s->child.gate[1] = -1;
}

static void open_tmpfile(struct scene *s)
{
	s->fd[0] = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	MUST(s->fd[0] >= 0);
}

static void set_file(struct scene *s, struct ukevent *ev)
{
	kevent_set_inode(ev, s->fd[0], KEVENT_INODE_MODIFY, 0, NEW);
}

static void write_to_file(struct scene *s)
{
	put_byte(s->fd[0]);
}

static const struct source sources[] = {
	{ "USER", NULL, set_id, mark_it, NULL, true },
	{ "PIPE", open_two, set_two, write_two, NULL, false },
	{ "SOCKET", open_stream, set_stream, write_two, NULL, false },
	{ "POLL of an eventfd", open_counter, set_input, add_to_counter, NULL,
	  false },
	{ "POLL of two wait queues", open_fifo, set_input, write_two, NULL,
	  false },
	{ "POLL of a queue", open_inner, set_other, write_two, close_other,
	  false },
	{ "POLL of an epoll", open_epoll, set_other, write_two, close_other,
	  false },
	{ "TIMER", NULL, set_expiry, arm_timer, NULL, false },
	{ "SIGNAL", NULL, set_sigusr1, send_sigusr1, NULL, false },
	{ "PROC", open_child, set_child, end_child, close_child, false },
	{ "FUTEX", NULL, set_word, wake_word, NULL, false },
	{ "INODE", open_tmpfile, set_file, write_to_file, NULL, false },
};

static int control_it(struct scene *s, uint32_t cmd)
{
	s->source->set(s, &s->ev[0]);
	return kevent_ctl_one(s->q.fd, cmd, &s->ev[0]);
}

static void open_source(struct scene *s)
{
	if (s->source->open)
		s->source->open(s);
}

static void open_watch(struct scene *s)
{
	open_source(s);
	MUST_EQ(control_it(s, KEVENT_CTL_ADD), 0);
}

static unsigned int fire_it(struct scene *s)
{
	s->source->fire(s);
	return 1;
}

static void end_source(struct scene *s)
{
	if (s->source->close)
		s->source->close(s);
}

static int add_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_ADD);
}

static int modify_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_MODIFY);
}

static int remove_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_REMOVE);
}

static int ready_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_READY);
}

static unsigned int no_event(struct scene *s)
{
	CHECK_EQ(fdinfo(s->q.fd, "kevent-watches"), 1);
	return 0;
}

static void fail_each_source(const struct path *p, bool marks, unsigned int least)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (!marks || sources[i].marks)
			fail_each(p, &sources[i], least);
}

/* The entry is read, and memory allocated for the watch. */
static void add_of_each_source(void)
{
	static const struct path add = {
		.name = "ADD", .errors = { -EFAULT }, .prepare = open_source,
		.call = add_it, .fire = fire_it, .end = end_source,
	};
	unsigned int i;

	/* An allocation that is not made each time moves the numbers of those behind it. */
	for (i = 0; i < 3; i++)
		fail_each_source(&add, false, 2);
}

static void modify_of_each_source(void)
{
	static const struct path modify = {
		.name = "MODIFY", .errors = { -EFAULT }, .prepare = open_watch,
		.call = modify_it, .fire = fire_it, .end = end_source,
	};

	fail_each_source(&modify, false, 1);
}

static void remove_of_each_source(void)
{
	static const struct path remove = {
		.name = "REMOVE", .errors = { -EFAULT }, .prepare = open_watch,
		.call = remove_it, .fire = no_event, .end = end_source,
	};

	fail_each_source(&remove, false, 1);
}

static void ready_of_a_mark(void)
{
	static const struct path ready = {
		.name = "READY", .errors = { -EFAULT }, .prepare = open_watch,
		.call = ready_it, .fire = one_event,
	};

	fail_each_source(&ready, true, 1);
}

/* READY with data: a second mark that is not delivered takes memory. */

static int mark_data(struct scene *s)
{
	kevent_set_mark(&s->ev[0], ID, 1, 7);
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_READY, &s->ev[0]);
}

static void open_marked(struct scene *s)
{
	MUST_EQ(add_user(s->q.fd, ID, 1, KEEP, NEW), 0);
	/* The older event waits, so this one does. */
	MUST_EQ(mark_data(s), 1);
}

static void ready_that_keeps_each_mark(void)
{
	static const struct path ready = {
		.name = "READY with data", .errors = { -EFAULT },
		.prepare = open_marked, .call = mark_data, .fire = two_events,
	};

	fail_each(&ready, NULL, 2);
}

/*
 * ADD of something that is ready: the event cannot be handed back. Then it is queued
 * and the call fails, if it was the first entry.
 */

static void open_written(struct scene *s)
{
	open_pipe(s->fd);
	put_byte(s->fd[1]);
}

static int add_handed_back(struct scene *s)
{
	int ret;

	kevent_set_pipe(&s->ev[0], s->fd[0], KEVENT_SOCKET_RECV, ET | HAND_BACK,
			NEW);
	ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]);
	s->given = ret == 1 && s->ev[0].ret_flags & KEVENT_RET_DONE;
	return ret;
}

static unsigned int unless_given(struct scene *s)
{
	return !s->given && fdinfo(s->q.fd, "kevent-watches") == 2;
}

static void event_that_is_handed_back(void)
{
	static const struct path add = {
		.name = "ADD, handed back", .errors = { -EFAULT },
		.prepare = open_written, .call = add_handed_back,
		.changes = true, .fire = unless_given,
	};

	fail_each(&add, NULL, 3);
}

/* A duplicate comes back, to the place of an entry that was added. */

static int add_duplicate(struct scene *s)
{
	unsigned int i;
	int ret;

	for (i = 0; i < 3; i++)
		kevent_set_user(&s->ev[i], ID + i % 2, 1, ET, NEW);
	s->ev[0].ret_flags = 0;
	ret = kevent_ctl(s->q.fd, KEVENT_CTL_ADD, 3, s->ev);
	CHECK(ret <= 0 || s->ev[0].ret_flags & KEVENT_RET_BROKEN);
	return ret;
}

/* A fault when it is put there: it is not counted, and where it was. */
static unsigned int mark_duplicate(struct scene *s)
{
	if (fdinfo(s->q.fd, "kevent-watches") == 1)
		return 0;
	mark_it(s);
	return 1;
}

static void duplicate_that_is_handed_back(void)
{
	static const struct path add = {
		.name = "ADD of a duplicate", .errors = { -EFAULT },
		.call = add_duplicate, .changes = true, .fire = mark_duplicate,
	};

	fail_each(&add, NULL, 5);
}

/* Many entries: each fails for itself, and what failed comes back, with its errno. */

static int add_many(struct scene *s)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		kevent_set_user(&s->ev[i], i, 1, ET, NEW);
	return kevent_ctl(s->q.fd, KEVENT_CTL_ADD, MANY, s->ev);
}

static bool is_added(struct scene *s, unsigned int id)
{
	struct ukevent ev;

	kevent_set_user(&ev, id, 1, 0, 0);
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_REMOVE, &ev) == 0;
}

/*
 * Of those that were read, exactly those that did not come back are there. One that
 * can't be read ends the call.
 */
static unsigned int remove_many(struct scene *s)
{
	unsigned int i, read, failed = 0;
	bool added[MANY], back[MANY] = {};

	while (failed < MANY && s->ev[failed].ret_flags & KEVENT_RET_BROKEN) {
		CHECK_EQ(kevent_error(&s->ev[failed]), -ENOMEM);
		MUST(s->ev[failed].id.raw_u64 < MANY);
		back[s->ev[failed++].id.raw_u64] = true;
	}
	for (i = 0; i < MANY; i++)
		added[i] = is_added(s, i);
	for (read = MANY; read && !added[read - 1] && !back[read - 1]; )
		read--;
	CHECK(read == MANY || s->hit);
	for (i = 0; i < read; i++)
		CHECK_EQ(added[i] + back[i], 1);
	return 0;
}

static void add_of_many(void)
{
	static const struct path add = {
		.name = "ADD of many", .errors = { -EFAULT }, .call = add_many,
		.changes = true, .fire = remove_many,
	};

	fail_each(&add, NULL, 10);
}

/*
 * The first watch that holds off a suspend makes the wakeup source of the queue, which
 * stays, and is charged, even if there is then no memory for the watch.
 */

static int add_awake(struct scene *s)
{
	kevent_set_user(&s->ev[0], ID, 1, ET | KEVENT_REQ_STAY_AWAKE, NEW);
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]);
}

static unsigned int add_and_mark(struct scene *s)
{
	if (fdinfo(s->q.fd, "kevent-watches") == 1)
		CHECK_EQ(add_awake(s), 0);
	mark_it(s);
	return 1;
}

static void watch_that_stays_awake(void)
{
	static const struct path awake = {
		.name = "ADD, STAY_AWAKE", .errors = { -EFAULT },
		.call = add_awake, .changes = true, .fire = add_and_mark,
	};

	fail_each(&awake, NULL, 5);
}

static const struct test_case cases[] = {
	TEST_LIMIT(add_of_each_source, 360),
	TEST_LIMIT(modify_of_each_source, 60),
	TEST_LIMIT(remove_of_each_source, 60),
	TEST(ready_of_a_mark),
	TEST(ready_that_keeps_each_mark),
	TEST(event_that_is_handed_back),
	TEST(duplicate_that_is_handed_back),
	TEST_LIMIT(add_of_many, 60),
	TEST_LIMIT(watch_that_stays_awake, 60),
	{}
};

const struct test_suite fail_nth_suite = {
	.name = "fail_nth", .cases = cases
};
