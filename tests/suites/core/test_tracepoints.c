// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints: kevent_add, kevent_ready, kevent_deliver, kevent_wait
 *
 * They are read from an instance of tracefs, which no other test sees, and by the
 * number of the queue, which fdinfo has too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "helpers.h"

#define TRACE	"/sys/kernel/tracing"

struct trace {
	char	path[64];	/* of the instance */
	char	text[16384];	/* what was read */
};

static void trace_path(const struct trace *t, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", t->path, name);
}

static void set_trace(const struct trace *t, const char *name, const char *to)
{
	char path[128];

	trace_path(t, name, path);
	write_file(path, to);
}

static void start_trace(struct trace *t)
{
	/* It may be mounted already. */
	if (mount("tracefs", TRACE, "tracefs", 0, NULL))
		MUST_EQ(errno, EBUSY);
	snprintf(t->path, sizeof(t->path), TRACE "/instances/%d", getpid());
	MUST_EQ(mkdir(t->path, 0700), 0);
	set_trace(t, "events/kevent/enable", "1");
}

static void end_trace(struct trace *t)
{
	char path[128];

	set_trace(t, "events/kevent/enable", "0");
	trace_path(t, "trace", path);
	read_file(path, t->text, sizeof(t->text));
	MUST_EQ(rmdir(t->path), 0);
}

/* How many lines of @event have all that @want says? */
static int count_lines(const struct trace *t, const char *event,
		       const char *want)
{
	const char *at = t->text;
	int nr = 0;

	while ((at = strstr(at, event))) {
		const char *end = strchr(at, '\n'), *hit = strstr(at, want);

		nr += hit && hit < end;
		at = end;
	}
	return nr;
}

/* Fields of each event of the watch below */
static void check_watch(const struct trace *t, const struct queue *q, int fd,
			const char *event, const char *rest, int nr)
{
	char want[256];

	snprintf(want, sizeof(want),
		 "queue=%lld type=6 id=%d event=1 req_flags=4 ret_flags=0 %s user=abc",
		 fdinfo(q->fd, "ino"), fd, rest);
	if (!CHECK_EQ(count_lines(t, event, want), nr))
		note("%s: %s", event, want);
}

/* A sleeper has the event of another process. */
static void sleeper_is_traced(struct queue *q)
{
	struct waiter w;
	struct trace t;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET, 0xabc), 0);
	start_waiter(&w, q, 1);
	start_trace(&t);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	end_trace(&t);
	check_watch(&t, q, fd[0], "kevent_ready: ", "ready=1 nr=1 ring=0", 1);
	check_watch(&t, q, fd[0], "kevent_ready: ", "ready=1 nr=1 ring=1", 0);
	check_watch(&t, q, fd[0], "kevent_deliver: ", q->size ?
		    "ready=1 nr=1 ring=1" : "ready=1 nr=1 ring=0", 1);
}

static void each_step_is_traced(struct queue *q)
{
	const bool ring = q->size;
	struct ukevent ev;
	struct trace t;
	char want[64];
	int fd[2];

	start_trace(&t);
	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET, 0xabc), 0);
	CHECK_NO_EVENT(q);
	put_byte_from_outside(fd[1]);
	MUST_EVENT(q, &ev);
	end_trace(&t);
	check_watch(&t, q, fd[0], "kevent_add: ", ring ?
		    "ready=0 nr=1 ring=1" : "ready=0 nr=1 ring=0", 1);
	check_watch(&t, q, fd[0], "kevent_ready: ", "ready=1 nr=1 ring=0", 1);
	check_watch(&t, q, fd[0], "kevent_deliver: ", ring ?
		    "ready=1 nr=1 ring=1" : "ready=1 nr=1 ring=0", 1);
	snprintf(want, sizeof(want), "queue=%lld ring=%d ret=%d",
		 fdinfo(q->fd, "ino"), ring, -ETIME);
	CHECK(count_lines(&t, "kevent_wait: ", want) >= 1);
}

static void hits_are_traced(void)
{
	struct ukevent ev;
	struct trace t;
	struct queue q;
	int fd[2];

	open_queue(&q, 4);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0xabc), 0);
	start_trace(&t);
	put_byte(fd[1]);
	end_trace(&t);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 1);
	MUST_EVENT(&q, &ev);
	check_watch(&t, &q, fd[0], "kevent_ready: ", "ready=1 nr=1 ring=1", 1);
	check_watch(&t, &q, fd[0], "kevent_add: ", "", 0);
	check_watch(&t, &q, fd[0], "kevent_deliver: ", "", 0);
	close_queue(&q);
}

/* A queue without a ring, and a watch that waits for its next look */
static void misses_without_a_ring_are_traced(void)
{
	struct ukevent ev;
	struct trace t;
	struct queue q;
	char want[128];
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 0xabc), 0);
	start_trace(&t);
	put_byte(fd[1]);
	MUST_EVENT(&q, &ev);
	put_byte(fd[1]);
	end_trace(&t);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 0xabc);
	snprintf(want, sizeof(want),
		 "queue=%lld type=6 id=%d event=1 req_flags=0 ret_flags=0 ready=0 nr=1 ring=0",
		 fdinfo(q.fd, "ino"), fd[0]);
	CHECK_EQ(count_lines(&t, "kevent_ready: ", want), 2);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(each_step_is_traced),
	TEST_EACH(sleeper_is_traced),
	TEST(hits_are_traced),
	TEST(misses_without_a_ring_are_traced),
	{}
};

const struct test_suite tracepoints_suite = {
	.name = "tracepoints",
	.cases = cases,
};
