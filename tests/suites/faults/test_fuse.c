// SPDX-License-Identifier: GPL-2.0
/*
 * A ->poll() that never returns: that of a FUSE file whose daemon no longer
 * answers. The test itself is the daemon, a child is the victim.
 *
 *	daemon				victim
 *	answers LOOKUP, OPEN	<----	open("file")
 *	leaves POLL unread	<----	T1: kevent_ctl(ADD), stuck in ->poll()
 *	says go			---->	main: close, exit; or is killed
 *
 * The daemon does not read POLL, because FUSE itself waits for the answer to a
 * request that was read, and no signal ends that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fuse.h"
#include "helpers.h"

/* The victim's side */
struct victim {
	struct queue	q;
	int		fd;		/* the FUSE file */
	int		pipe[2];
	struct actor	stuck;
};

static long add_fuse_file(void *arg)
{
	struct victim *v = arg;

	return add_poll(v->q.fd, v->fd, IN, HAND_BACK, 5);
}

static bool heard_go(int sock)
{
	char byte;

	return read(sock, &byte, 1) == 1;
}

static int open_victim(struct victim *v, struct daemon *d)
{
	close(d->sock[1]);
	close(d->dev);
	v->fd = open_fuse_file(d);
	CHILD_MUST(v->fd >= 0);
	open_queue(&v->q, 0);
	CHILD_MUST(pipe(v->pipe) == 0);
	CHILD_MUST(add_pipe(v->q.fd, v->pipe[0], KEVENT_SOCKET_RECV,
			    KEVENT_REQ_ET, 6) == 0);
	return 0;
}

/* The daemon answers after that: what waited for it would never return. */
static void has_ended(const char *what, uint64_t start)
{
	note("%s: %llu us", what, (unsigned long long)(now_ns() - start) / 1000);
}

/*
 * T1 is blocked in ADD; main closes the file, takes an event and closes the
 * queue.
 */
static int closes_meanwhile(void *arg)
{
	struct daemon *d = arg;
	struct ukevent ev;
	struct victim v;
	uint64_t start;
	int kq;

	CHILD_MUST(open_victim(&v, d) == 0);
	kq = dup(v.q.fd);
	start_actor(&v.stuck, add_fuse_file, &v);
	CHILD_MUST(heard_go(d->sock[0]));
	start = now_ns();
	CHILD_MUST(close(v.fd) == 0);
	has_ended("close of the file", start);
	start = now_ns();
	CHILD_MUST(write(v.pipe[1], "", 1) == 1);
	CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 1 && ev.ptr == 6);
	has_ended("another event", start);
	start = now_ns();
	CHILD_MUST(close(v.q.fd) == 0);
	has_ended("close of the queue", start);
	CHILD_MUST(write(d->sock[0], "", 1) == 1);
	join_actor(&v.stuck, PATIENCE_MS);
	/* The file was closed before the watch was complete. */
	CHILD_MUST(fdinfo(kq, "kevent-watches") == 1);
	CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 0);
	return 0;
}

static void close_ends_while_add_is_stuck(void)
{
	struct daemon d = {};
	pid_t pid;

	mount_fuse(&d);
	pid = start_child(closes_meanwhile, &d);
	close(d.sock[0]);
	serve_until(&d, FUSE_OPEN);
	await_request(&d);
	MUST_EQ(write(d.sock[1], "", 1), 1);
	MUST(heard_go(d.sock[1]));
	serve_until(&d, FUSE_POLL);
	answer_poll(&d, 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	unmount_fuse(&d);
}

static int gets_stuck(void *arg)
{
	struct daemon *d = arg;
	struct victim v;

	CHILD_MUST(open_victim(&v, d) == 0);
	start_actor(&v.stuck, add_fuse_file, &v);
	CHILD_MUST(heard_go(d->sock[0]));
	return 0;
}

/* @sig 0: the victim exits by itself. */
static void check_victim_end(int sig)
{
	struct daemon d = {};
	uint64_t start;
	pid_t pid;

	mount_fuse(&d);
	pid = start_child(gets_stuck, &d);
	close(d.sock[0]);
	serve_until(&d, FUSE_OPEN);
	await_request(&d);
	start = now_ns();
	if (sig)
		MUST_EQ(kill(pid, sig), 0);
	else
		MUST_EQ(write(d.sock[1], "", 1), 1);
	CHECK_EQ(join_child(pid, PATIENCE_MS), -sig);
	has_ended(sig ? "SIGKILL" : "exit", start);
	unmount_fuse(&d);
}

static void exit_ends_while_add_is_stuck(void)
{
	check_victim_end(0);
}

static void kill_ends_while_add_is_stuck(void)
{
	check_victim_end(SIGKILL);
}

static int waits_for_the_answer(void *arg)
{
	struct daemon *d = arg;
	struct ukevent ev;
	struct victim v;

	CHILD_MUST(open_victim(&v, d) == 0);
	start_actor(&v.stuck, add_fuse_file, &v);
	join_actor(&v.stuck, PATIENCE_MS);
	CHILD_MUST(v.stuck.ret == 1);
	CHILD_MUST(get_events(v.q.fd, 1, 1, -1, &ev) == 1 && ev.ptr == 5);
	CHILD_MUST(ev.ret_data[0] == IN);
	return 0;
}

/* The answer comes: ADD hands the event back, and level reports it again. */
static void answered_poll_is_an_event(void)
{
	struct daemon d = {};
	pid_t pid;

	mount_fuse(&d);
	pid = start_child(waits_for_the_answer, &d);
	close(d.sock[0]);
	serve_until(&d, FUSE_POLL);
	answer_poll(&d, POLLIN);
	serve_until(&d, FUSE_POLL);
	answer_poll(&d, POLLIN);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	unmount_fuse(&d);
}

static long collect(void *arg)
{
	struct victim *v = arg;
	struct ukevent ev;
	int ret = get_events(v->q.fd, 1, 1, -1, &ev);

	return ret == 1 ? (long)ev.ptr : ret;
}

/* T1 is blocked in the re-check of a level watch; others can work. */
static int collects_meanwhile(void *arg)
{
	int other = open_expired_timer();
	struct daemon *d = arg;
	struct ukevent ev;
	struct victim v;
	uint64_t start;

	CHILD_MUST(open_victim(&v, d) == 0);
	CHILD_MUST(add_fuse_file(&v) == 1);
	start_actor(&v.stuck, collect, &v);
	CHILD_MUST(heard_go(d->sock[0]));
	start = now_ns();
	CHILD_MUST(add_poll(v.q.fd, other, POLLIN, 0, 8) == 0);
	/* The first call believes what ADD saw. */
	CHILD_MUST(get_events(v.q.fd, 1, 1, 0, &ev) == 1 && ev.ptr == 8);
	CHILD_MUST(get_events(v.q.fd, 1, 1, 0, &ev) == 1 && ev.ptr == 8);
	has_ended("a look at another file", start);
	CHILD_MUST(remove_file(v.q.fd, KEVENT_POLL, other) == 0);
	start = now_ns();
	CHILD_MUST(write(v.pipe[1], "", 1) == 1);
	CHILD_MUST(get_events(v.q.fd, 1, 1, 0, &ev) == 1 && ev.ptr == 6);
	has_ended("another event", start);
	start = now_ns();
	CHILD_MUST(close(v.fd) == 0);
	has_ended("close of the file", start);
	CHILD_MUST(remove_file(v.q.fd, KEVENT_POLL, v.fd) == -EBADF);
	CHILD_MUST(write(d->sock[0], "", 1) == 1);
	CHILD_MUST(heard_go(d->sock[0]));
	CHILD_MUST(write(v.pipe[1], "", 1) == 1);
	join_actor(&v.stuck, PATIENCE_MS);
	CHILD_MUST(v.stuck.ret == 6);
	CHILD_MUST(fdinfo(v.q.fd, "kevent-watches") == 1);
	return 0;
}

static void consumer_stuck_in_poll_blocks_no_other(void)
{
	struct daemon d = {};
	pid_t pid;

	mount_fuse(&d);
	pid = start_child(collects_meanwhile, &d);
	close(d.sock[0]);
	serve_until(&d, FUSE_POLL);
	answer_poll(&d, POLLIN);
	await_request(&d);
	MUST_EQ(write(d.sock[1], "", 1), 1);
	MUST(heard_go(d.sock[1]));
	serve_until(&d, FUSE_POLL);
	answer_poll(&d, POLLIN);
	MUST_EQ(write(d.sock[1], "", 1), 1);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	unmount_fuse(&d);
}

/* A collection is over soon, whatever the file does: fewer looks than these. */
#define MOST_LOOKS	100

static int collects_once(void *arg)
{
	struct daemon *d = arg;
	struct victim v;

	CHILD_MUST(open_victim(&v, d) == 0);
	open_queue(&v.q, 8);
	CHILD_MUST(add_fuse_file(&v) == 0);
	CHILD_MUST(kevent_commit(v.q.fd, 0, 0) == 0);
	CHILD_MUST(write(d->sock[0], "", 1) == 1);
	return 0;
}

/* Answers until the victim is done. Each look finds nothing, and wakes who looks. */
static unsigned int serve_and_fire(struct daemon *d)
{
	struct pollfd pfd[2] = {
		{ .fd = d->dev, .events = POLLIN },
		{ .fd = d->sock[1], .events = POLLIN },
	};
	unsigned int looks = 0;

	for (;;) {
		MUST(poll(pfd, 2, PATIENCE_MS * slowness) > 0);
		if (pfd[1].revents)
			return looks;
		if (serve_one(d) != FUSE_POLL)
			continue;
		if (looks++ < MOST_LOOKS)
			wake_pollers(d);
		answer_poll(d, 0);
	}
}

static void file_that_fires_in_each_poll_keeps_nobody(void)
{
	unsigned int looks;
	struct daemon d = {};
	pid_t pid;

	mount_fuse(&d);
	pid = start_child(collects_once, &d);
	close(d.sock[0]);
	looks = serve_and_fire(&d);
	note("%u looks", looks);
	CHECK(looks > 2);
	CHECK(looks < MOST_LOOKS);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	unmount_fuse(&d);
}

static long close_file(void *arg)
{
	struct victim *v = arg;

	return close(v->fd);
}

/* T1 is stuck in the close of the file, whose number is another one's by now. */
static int uses_the_number(void *arg)
{
	struct daemon *d = arg;
	struct ukevent ev;
	struct victim v;

	CHILD_MUST(open_victim(&v, d) == 0);
	CHILD_MUST(add_fuse_file(&v) == 1);
	CHILD_MUST(get_events(v.q.fd, 1, 1, 0, &ev) == 1 && ev.ptr == 5);
	start_actor(&v.stuck, close_file, &v);
	CHILD_MUST(heard_go(d->sock[0]));
	CHILD_MUST(fcntl(v.pipe[0], F_DUPFD, v.fd) == v.fd);
	CHILD_MUST(get_events(v.q.fd, 1, 1, 0, &ev) == 0);
	CHILD_MUST(fdinfo(v.q.fd, "kevent-watches") == 1);
	CHILD_MUST(!actor_ended(&v.stuck));
	CHILD_MUST(write(d->sock[0], "", 1) == 1);
	join_actor(&v.stuck, PATIENCE_MS);
	return 0;
}

static void watch_ends_before_the_file_is_flushed(void)
{
	struct daemon d = { .flushes = true, .no_poll = true };
	pid_t pid;

	mount_fuse(&d);
	pid = start_child(uses_the_number, &d);
	close(d.sock[0]);
	serve_until(&d, FUSE_POLL);
	await_request(&d);
	MUST_EQ(write(d.sock[1], "", 1), 1);
	MUST(heard_go(d.sock[1]));
	serve_until(&d, FUSE_FLUSH);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	unmount_fuse(&d);
}

#ifdef __LP64__	/* a chain of a 32-bit program is refused */

/* Nobody answers from now on: what asks the daemon must be left to a server. */
static bool is_left(struct victim *v, uint32_t nr, uint64_t a, uint64_t b,
		    uint64_t c)
{
	static uint64_t cookie;
	struct kevent_call call = { .nr = nr, .result = 77, .args = { a, b, c } };

	return kevent_call(v->q.fd, &call, 1, KEVENT_CALL_ASYNC, ++cookie) ==
	       KEVENT_CALL_SUBMITTED && call.result == 77;
}

static int submits_calls(void *arg)
{
	struct daemon *d = arg;
	char path[48], buf[4];
	struct victim v;
	struct stat st;

	CHILD_MUST(open_victim(&v, d) == 0);
	snprintf(path, sizeof(path), "%s/file", d->dir);
	CHILD_MUST(is_left(&v, SYS_fstat, v.fd, KEVENT_ARG(&st), 0));
	CHILD_MUST(is_left(&v, SYS_lseek, v.fd, 0, SEEK_END));
	CHILD_MUST(is_left(&v, SYS_read, v.fd, KEVENT_ARG(buf), 4));
	CHILD_MUST(is_left(&v, SYS_close, v.fd, 0, 0));
	CHILD_MUST(is_left(&v, SYS_openat, AT_FDCWD, KEVENT_ARG(path), O_RDONLY));
	return 0;
}

static void chains_leave_its_files_to_servers(void)
{
	struct daemon d = {};
	pid_t pid;

	mount_fuse(&d);
	pid = start_child(submits_calls, &d);
	close(d.sock[0]);
	serve_until(&d, FUSE_OPEN);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	unmount_fuse(&d);
}

#endif

static const struct test_case cases[] = {
	TEST(close_ends_while_add_is_stuck),
	TEST(exit_ends_while_add_is_stuck),
	TEST(kill_ends_while_add_is_stuck),
	TEST(answered_poll_is_an_event),
	TEST(consumer_stuck_in_poll_blocks_no_other),
	TEST(file_that_fires_in_each_poll_keeps_nobody),
	TEST(watch_ends_before_the_file_is_flushed),
#ifdef __LP64__
	TEST(chains_leave_its_files_to_servers),
#endif
	{}
};

const struct test_suite fuse_suite = { .name = "fuse", .cases = cases };
