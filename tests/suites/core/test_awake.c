// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_REQ_STAY_AWAKE: no suspend from the event until its consumer is back
 *
 *	put --> event --> consumer has it --> consumer's next call
 *	         |<------- awake ------------------->|
 *
 * debugfs says for how many milliseconds a wakeup source has been active. One that is
 * active reaches 1 at some time; after that 0 means that it was released.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"

#define STAY_AWAKE	KEVENT_REQ_STAY_AWAKE
#define SOME_USER	1000

/* Columns of debugfs after the name */
enum column { ACTIVATIONS = 0, ACTIVE_MS = 4 };

/* Of the queue of process @pid; -1 when there is no wakeup source */
static long source_of(pid_t pid, enum column column)
{
	FILE *f = fopen("/sys/kernel/debug/wakeup_sources", "r");
	char line[256], name[24];
	long v[5], ret = -1;

	MUST(f);
	snprintf(name, sizeof(name), "kevent:%d", pid);
	while (fgets(line, sizeof(line), f)) {
		size_t len = strcspn(line, " \t");

		if (len != strlen(name) || strncmp(line, name, len))
			continue;
		if (sscanf(line + len, "%ld %ld %ld %ld %ld", &v[0], &v[1],
			   &v[2], &v[3], &v[4]) == 5)
			ret = v[column];
	}
	fclose(f);
	return ret;
}

static bool is_awake(pid_t pid)
{
	uint64_t start = now_ns();

	while (source_of(pid, ACTIVE_MS) <= 0)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

#define CHECK_AWAKE()		CHECK(is_awake(getpid()))
#define CHECK_RELEASED()	CHECK_EQ(source_of(getpid(), ACTIVE_MS), 0)

static void edge_holds_until_the_consumer_is_back(struct queue *q)
{
	struct ukevent ev;
	int fd[2], i;

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET | STAY_AWAKE, 1), 0);
	CHECK_RELEASED();
	for (i = 1; i <= 3; i++) {
		put_byte(fd[1]);
		CHECK_AWAKE();
		MUST_EVENT(q, &ev);
		CHECK_EQ(ev.req_flags, ET | STAY_AWAKE);
		CHECK_AWAKE();
		CHECK_NO_EVENT(q);
		CHECK_RELEASED();
		CHECK_EQ(source_of(getpid(), ACTIVATIONS), i);
	}
}

/* The event of another process, in a ring that its fork() leaves writable */
static void edge_of_a_sleeper_holds(void)
{
	struct queue q = { .size = 16, .bytes = 4096 };
	struct ukevent ev;
	struct waiter w;
	int fd[2];

	q.ring = mmap(NULL, q.bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q.ring != MAP_FAILED);
	q.fd = kevent_init(q.ring, q.size, 0);
	MUST(q.fd >= 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET | STAY_AWAKE, 1), 0);
	start_waiter(&w, &q, 1);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(ev.req_flags, ET | STAY_AWAKE);
	CHECK_AWAKE();
	CHECK_NO_EVENT(&q);
	CHECK_RELEASED();
	close_queue(&q);
}

static void level_holds_while_it_is_reported(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, STAY_AWAKE, 1), 0);
	put_byte(fd[1]);
	MUST_EVENT(q, &ev);
	MUST_EVENT(q, &ev);
	CHECK_AWAKE();
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_AWAKE();
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
	CHECK_EQ(source_of(getpid(), ACTIVATIONS), 1);
}

static void oneshot_holds_too(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV,
			 KEVENT_REQ_ONESHOT | STAY_AWAKE, 1), 0);
	put_byte(fd[1]);
	MUST_EVENT(q, &ev);
	CHECK_AWAKE();
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
}

/* Nothing is left to report when the consumer looks. */
static void event_that_is_over_is_released(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, STAY_AWAKE, 1), 0);
	put_byte(fd[1]);
	CHECK_AWAKE();
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
}

static long waits_for_one(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	return q->size ? wait_ring(q, 1, -1) :
			 get_events(q->fd, 1, 1, -1, &ev);
}

/* A consumer that was woken for it finds nothing, and sleeps again. */
static void event_that_is_over_before_a_look_is_released(struct queue *q)
{
	struct waiter w = { .q = q };
	uint64_t start;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, STAY_AWAKE, 1), 0);
	CHECK(start_in_window(&w.actor, "asleep", waits_for_one, q));
	put_byte(fd[1]);
	CHECK_AWAKE();
	CHECK_EQ(take_bytes(fd[0]), 1);
	window_release();
	start = now_ns();
	while (source_of(getpid(), ACTIVE_MS) && patient(start, PATIENCE_MS))
		;
	CHECK_RELEASED();
	CHECK(sleeps_in(w.actor.tid, q->size ? __NR_kevent_wait :
					       __NR_kevent_get_events));
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
}

static void event_that_is_handed_back_holds(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET | HAND_BACK | STAY_AWAKE, 1),
		1);
	CHECK_AWAKE();
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
}

/* The call that makes the change returns with its event. */
static void event_that_a_change_hands_back_holds(void)
{
	struct kevent_change c = { .cmd = KEVENT_CTL_ADD };
	struct kevent_wait_arg arg = {
		.size		= sizeof(arg),
		.clockid	= CLOCK_MONOTONIC,
		.min_nr		= 1,
		.changes	= (uintptr_t)&c,
		.nr_changes	= 1,
	};
	struct queue q;
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	open_queue(&q, 4);
	kevent_set_pipe(&c.uk, fd[0], RECV, ET | HAND_BACK | STAY_AWAKE, 1);
	CHECK_EQ(kevent_wait(q.fd, 4, 0, NULL, KEVENT_FLAGS_ARG, &arg), 0);
	CHECK_EQ(c.result, 1);
	CHECK_AWAKE();
	CHECK_NO_EVENT(&q);
	CHECK_RELEASED();
	close_queue(&q);
}

/* Events of other watches do not hold it, however many there are. */
static void other_events_do_not_hold(struct queue *q)
{
	struct ukevent ev;
	int i, fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET | STAY_AWAKE, 1), 0);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 2), 0);
	put_byte(fd[1]);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ptr, 1);
	CHECK_AWAKE();
	for (i = 0; i < 3; i++) {
		MUST_EQ(mark_user(q->fd, 1, 1), 1);
		MUST_EVENT(q, &ev);
		CHECK_EQ(ev.ptr, 2);
	}
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	if (q->size)
		CHECK_EQ(wait_ring(q, 1, 0), 1);
	else
		MUST_EVENT(q, &ev);
	CHECK_RELEASED();
}

/* The consumer is back, and takes another event than that which it still has to take. */
static void event_that_waits_holds(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 2), 0);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET | STAY_AWAKE, 1), 0);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	put_byte(fd[1]);
	if (q->size)
		CHECK_EQ(wait_ring(q, 1, 0), 1);
	else
		MUST_EVENT(q, &ev);
	CHECK_AWAKE();
	if (q->size)
		MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ptr, 2);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ptr, 1);
	CHECK_AWAKE();
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
}

static void marks_and_timers_hold(struct queue *q)
{
	struct ukevent ev;

	MUST_EQ(add_user(q->fd, 1, 1, STAY_AWAKE, 1), 0);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_AWAKE();
	MUST_EVENT(q, &ev);
	CHECK_AWAKE();
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
	kevent_set_timer(&ev, 1000, 0, KEVENT_TIMER_FIRED, STAY_AWAKE, 2);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_ADD, 1, &ev), 0);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ptr, 2);
	CHECK_AWAKE();
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
}

static void unread_entry_holds(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_pipe(fd);
	open_queue(&q, 4);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET | STAY_AWAKE, 1), 0);
	put_byte(fd[1]);
	CHECK_EQ(wait_ring(&q, 4, 0), 1);
	CHECK_EQ(wait_ring(&q, 4, 0), 0);
	CHECK_EQ(wait_ring(&q, 4, 0), 0);
	CHECK_AWAKE();
	/* It commits first, and then processes the event. */
	MUST_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(kevent_commit(q.fd, 1, 0), 0);
	CHECK_AWAKE();
	CHECK_EQ(wait_ring(&q, 4, 0), 0);
	CHECK_RELEASED();
	close_queue(&q);
}

static void modify_sets_and_clears_it(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET, 1), 0);
	CHECK_EQ(source_of(getpid(), ACTIVE_MS), -1);
	kevent_set_pipe(&ev, fd[0], RECV, ET | STAY_AWAKE, 1);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_MODIFY, 1, &ev), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	CHECK_AWAKE();
	MUST_EVENT(q, &ev);
	CHECK_NO_EVENT(q);
	CHECK_RELEASED();
	kevent_set_pipe(&ev, fd[0], RECV, ET, 1);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_MODIFY, 1, &ev), 0);
	MUST_EVENT(q, &ev);
	put_byte(fd[1]);
	MUST_EVENT(q, &ev);
	CHECK_RELEASED();
	/* For the byte: MODIFY looked at the empty pipe itself. */
	CHECK_EQ(source_of(getpid(), ACTIVATIONS), 1);
}

static void closed_queue_releases(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET | STAY_AWAKE, 1), 0);
	put_byte(fd[1]);
	CHECK_AWAKE();
	close(q->fd);
	CHECK_EQ(source_of(getpid(), ACTIVE_MS), -1);
	q->fd = kevent_init(NULL, 0, 0);
}

static int holds_for_ever(void *arg)
{
	struct queue q;
	int fd[2];

	(void)arg;
	open_pipe(fd);
	open_queue(&q, 4);
	CHILD_MUST(!add_pipe(q.fd, fd[0], RECV, ET | STAY_AWAKE, 1));
	put_byte(fd[1]);
	for (;;)
		pause();
}

static void killed_consumer_releases(void)
{
	pid_t pid = start_child(holds_for_ever, NULL);

	CHECK(is_awake(pid));
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(source_of(pid, ACTIVE_MS), -1);
}

static int tries_without_rights(void *arg)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	(void)arg;
	CHILD_MUST(!setresuid(SOME_USER, SOME_USER, SOME_USER));
	open_pipe(fd);
	open_queue(&q, 4);
	CHILD_MUST(add_pipe(q.fd, fd[0], RECV, STAY_AWAKE, 1) == -EPERM);
	CHILD_MUST(!add_pipe(q.fd, fd[0], RECV, 0, 1));
	kevent_set_pipe(&ev, fd[0], RECV, STAY_AWAKE, 1);
	CHILD_MUST(kevent_ctl(q.fd, KEVENT_CTL_MODIFY, 1, &ev) == 1);
	CHILD_MUST(ev.ret_data[1] == (uint32_t)-EPERM);
	return 0;
}

static void it_needs_a_capability(void)
{
	CHECK_EQ(join_child(start_child(tries_without_rights, NULL),
			    PATIENCE_MS), 0);
}

static long reads_wakeup_count(void *arg)
{
	char buf[32];
	int fd = open("/sys/power/wakeup_count", O_RDONLY | O_CLOEXEC);
	long ret;

	(void)arg;
	if (fd < 0)
		return -errno;
	ret = read(fd, buf, sizeof(buf));
	close(fd);
	return ret;
}

/* Who wants to suspend reads /sys/power/wakeup_count, which waits. */
static void suspend_has_to_wait(void)
{
	struct actor suspender;
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_pipe(fd);
	open_queue(&q, 4);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET | STAY_AWAKE, 1), 0);
	put_byte(fd[1]);
	start_actor(&suspender, reads_wakeup_count, NULL);
	CHECK(sleeps_in(suspender.tid, SYS_read));
	MUST_EVENT(&q, &ev);
	CHECK(is_asleep_in(suspender.tid, SYS_read));
	CHECK_NO_EVENT(&q);
	join_actor(&suspender, PATIENCE_MS);
	CHECK(suspender.ret > 0);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(edge_holds_until_the_consumer_is_back),
	TEST(edge_of_a_sleeper_holds),
	TEST_EACH(level_holds_while_it_is_reported),
	TEST_EACH(oneshot_holds_too),
	TEST_EACH(event_that_is_over_is_released),
	TEST_EACH(event_that_is_over_before_a_look_is_released),
	TEST_EACH(event_that_is_handed_back_holds),
	TEST(event_that_a_change_hands_back_holds),
	TEST_EACH(other_events_do_not_hold),
	TEST_EACH(event_that_waits_holds),
	TEST_EACH(marks_and_timers_hold),
	TEST(unread_entry_holds),
	TEST_EACH(modify_sets_and_clears_it),
	TEST_EACH(closed_queue_releases),
	TEST(killed_consumer_releases),
	TEST(it_needs_a_capability),
	TEST(suspend_has_to_wait),
	{}
};

const struct test_suite awake_suite = { .name = "awake", .cases = cases };
