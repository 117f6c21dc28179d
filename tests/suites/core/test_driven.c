// SPDX-License-Identifier: GPL-2.0
/*
 * Types that a host lacks and the library drives: what programs see is the same everywhere
 *
 * Those tests of the module that make ioctls themselves show what a process may do there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"

#define WAKE		KEVENT_FUTEX_WAKE
#define PRIVATE		KEVENT_FUTEX_PRIVATE

static void set_word(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	syscall(__NR_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int ctl_word(int kq, uint32_t cmd, uint32_t *word, uint32_t expected, uint64_t user)
{
	struct ukevent ev;

	kevent_set_futex(&ev, word, expected, PRIVATE, 0, user);
	return kevent_ctl_one(kq, cmd, &ev);
}

static void check_word(struct queue *q, uint32_t *word, uint64_t user)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.type, KEVENT_FUTEX);
	CHECK_EQ(ev.id.raw_u64, (uintptr_t)word);
	CHECK_EQ(ev.ret_data[0], WAKE);
	CHECK_EQ(ev.req_flags, 0);
	CHECK_EQ(ev.ptr, user);
}

/* The library's thread may come before or after the change: it sees that. */
static void word_that_changes_is_an_event(struct queue *q)
{
	uint32_t word = 0, i;

	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_ADD, &word, 0, 7), 0);
	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_ADD, &word, 0, 7), -EEXIST);
	for (i = 1; i < 20; i++) {
		set_word(&word, i);
		check_word(q, &word, 6 + i);
		CHECK_NO_EVENT(q);
		CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_MODIFY, &word, i, 7 + i), 0);
	}
	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_MODIFY, &word, 0, 3), 0);
	check_word(q, &word, 3);
	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_READY, &word, 0, 0), 1);
	check_word(q, &word, 3);
	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_REMOVE, &word, 0, 0), 0);
	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_REMOVE, &word, 0, 0), -ENOENT);
	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_MODIFY, &word, 0, 0), -ENOENT);
	CHECK_EQ(ctl_word(q->fd, KEVENT_CTL_READY, &word, 0, 0), -ENOENT);
	set_word(&word, 99);
	CHECK_NO_EVENT(q);
}

/* An event that MODIFY finds has the new user value; REMOVE drops it. */
static void event_that_waits_is_of_the_new_setting(void)
{
	uint32_t word = 0;
	struct queue q;

	open_queue(&q, 0);
	CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_ADD, &word, 1, 1), 0);
	CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_MODIFY, &word, 0, 2), 0);
	check_word(&q, &word, 2);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_MODIFY, &word, 1, 3), 0);
	CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_REMOVE, &word, 0, 0), 0);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void fill_some(struct ukevent *ev, uint32_t *words, int fd)
{
	kevent_set_user(&ev[0], 1, 0, 0, 10);
	kevent_set_futex(&ev[1], &words[0], 1, PRIVATE, HAND_BACK, 11);
	kevent_set_pipe(&ev[2], fd, RECV, 0, 12);
	kevent_set_futex(&ev[3], &words[1], 0, PRIVATE, 0, 13);
	kevent_set_futex(&ev[4], &words[1], 0, PRIVATE, 0, 14);
	kevent_set_futex(&ev[5], (uint32_t *)((char *)words + 1), 0, PRIVATE, 0, 15);
}

/* Each has its result, where it is looked for. */
static void requests_of_many_types_are_one_call(void)
{
	uint32_t words[2] = {}, i, seen = 0;
	struct ukevent ev[6];
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	fill_some(ev, words, fd[0]);
	MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_ADD, 6, ev), 3);
	for (i = 0; i < 3; i++) {
		seen |= 1u << ev[i].ptr;
		CHECK_EQ(kevent_error(&ev[i]), ev[i].ptr == 11 ? 0 :
			 ev[i].ptr == 14 ? -EEXIST : -EINVAL);
	}
	CHECK_EQ(seen, 1u << 11 | 1u << 14 | 1u << 15);
	fill_some(ev, words, fd[0]);
	ev[1].req_flags = 0;
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 5, ev), 5);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_REMOVE, 6, ev), 2);
	CHECK_EQ(kevent_error(&ev[3]), 0);
	CHECK_EQ(kevent_error(&ev[4]), -ENOENT);
	CHECK(kevent_error(&ev[5]) < 0);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* The call waits once all changes are made, and does not if one has a result. */
static void changes_are_made_before_the_wait(void)
{
	struct kevent_change c[2] = {};
	struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.changes = (uintptr_t)c, .nr_changes = 2,
	};
	static const struct timespec hour = { .tv_sec = 3600 };
	uint32_t word = 0;
	struct queue q;

	open_queue(&q, 8);
	c[0].cmd = KEVENT_CTL_ADD;
	kevent_set_futex(&c[0].uk, &word, 1, PRIVATE, 0, 5);
	c[1].cmd = KEVENT_CTL_ADD;
	kevent_set_user(&c[1].uk, 1, 0, 0, 6);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, &hour, KEVENT_FLAGS_ARG, &arg), 1);
	CHECK_EQ(c[0].result, 0);
	CHECK_EQ(c[1].result, 0);
	check_word(&q, &word, 5);
	c[0].cmd = KEVENT_CTL_MODIFY;
	kevent_set_futex(&c[0].uk, &word, 0, PRIVATE, 0, 7);
	CHECK_EQ(kevent_wait(q.fd, 8, 1, &hour, KEVENT_FLAGS_ARG, &arg), 0);
	CHECK_EQ(c[0].result, 0);
	CHECK_EQ(c[1].result, -EEXIST);
	set_word(&word, 1);
	check_word(&q, &word, 7);
	close_queue(&q);
}

static void watch_is_changed_by_a_copy_of_the_descriptor(void)
{
	uint32_t word = 0;
	struct queue q;
	int copy;

	open_queue(&q, 0);
	copy = dup(q.fd);
	CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_ADD, &word, 0, 1), 0);
	CHECK_EQ(ctl_word(copy, KEVENT_CTL_ADD, &word, 0, 1), -EEXIST);
	CHECK_EQ(ctl_word(copy, KEVENT_CTL_MODIFY, &word, 0, 2), 0);
	set_word(&word, 1);
	check_word(&q, &word, 2);
	CHECK_EQ(ctl_word(copy, KEVENT_CTL_MODIFY, &word, 1, 3), 0);
	CHECK_EQ(ctl_word(copy, KEVENT_CTL_REMOVE, &word, 0, 0), 0);
	set_word(&word, 2);
	CHECK_NO_EVENT(&q);
	close(copy);
	close_queue(&q);
}

/* What the program closed by close(2) says nothing in the queue that has the number next. */
static void number_that_comes_back_has_no_watches(void)
{
	uint32_t word = 0;
	struct queue q;
	int old, i;

	for (i = 0; i < 8; i++) {
		open_queue(&q, 0);
		old = q.fd;
		CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_ADD, &word, i, 1), 0);
		close(q.fd);
		open_queue(&q, 0);
		MUST_EQ(q.fd, old);
		set_word(&word, i + 1);
		CHECK_NO_EVENT(&q);
		CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_MODIFY, &word, 0, 2), -ENOENT);
		CHECK_EQ(ctl_word(q.fd, KEVENT_CTL_ADD, &word, i + 1, 3), 0);
		close(q.fd);
	}
}

/* A chain that nobody serves ends with its queue. */
static void chain_of_a_closed_queue_is_not_run(void)
{
	static const struct timespec zero;
	struct kevent_call calls[1];
	struct kevent_chain c;
	struct ukevent ev;
	struct queue q;
	int fd[2], old;

	open_pipe(fd);
	open_queue(&q, 0);
	kevent_chain_init(&c, calls, 1);
	kevent_chain_call(&c, SYS_write, fd[1], "x", 1);
	MUST_EQ(kevent_chain_end(&c), 0);
	kevent_set_aio(&ev, c.calls, c.nr, 0, 0, 77);
	MUST_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	old = q.fd;
	close(q.fd);
	open_queue(&q, 0);
	MUST_EQ(q.fd, old);
	CHECK_EQ(kevent_chain_serve(q.fd, 1, &zero), 0);
	MUST_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(kevent_chain_serve(q.fd, 1, &zero), 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 77);
	CHECK_EQ(kevent_chain_finish(&c, &ev), 0);
	CHECK_EQ(calls[0].result, 1);
	CHECK_EQ(read(fd[0], &(char [2]){}, 2), 1);
	close_queue(&q);
}

static long serve_one(void *arg)
{
	return kevent_chain_serve(*(int *)arg, 1, NULL);
}

static void submit(struct queue *q, const struct kevent_chain *c, uint64_t cookie)
{
	struct ukevent ev;

	kevent_set_aio(&ev, c->calls, c->nr, 0, 0, cookie);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
}

/* One that waits is cancelled, and says so. */
static void chain_that_runs_is_not_removed(void)
{
	struct kevent_call calls[2], other[1];
	struct kevent_chain c, d;
	struct actor server;
	struct ukevent ev;
	int fd[2], begun[2];
	struct queue q;
	char byte;

	open_pipe(fd);
	open_pipe(begun);
	MUST_EQ(fcntl(fd[0], F_SETFL, 0), 0);
	open_queue(&q, 0);
	kevent_chain_init(&c, calls, 2);
	kevent_chain_call(&c, SYS_write, begun[1], "b", 1);
	kevent_chain_call(&c, SYS_read, fd[0], &byte, 1);
	kevent_chain_init(&d, other, 1);
	kevent_chain_call(&d, SYS_getpid);
	MUST(!kevent_chain_end(&c) && !kevent_chain_end(&d));
	submit(&q, &c, 1);
	start_actor(&server, serve_one, &q.fd);
	MUST_EQ(fcntl(begun[0], F_SETFL, 0), 0);
	MUST_EQ(read(begun[0], &byte, 1), 1);
	CHECK_EQ(kevent_chain_cancel(q.fd, 1), -EALREADY);
	submit(&q, &d, 2);
	CHECK_EQ(kevent_chain_cancel(q.fd, 2), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 2);
	CHECK_EQ(kevent_chain_finish(&d, &ev), -ECANCELED);
	put_byte(fd[1]);
	/* It has ended. */
	MUST_EQ(poll(&(struct pollfd){ .fd = q.fd, .events = POLLIN }, 1, PATIENCE_MS), 1);
	CHECK_EQ(kevent_chain_cancel(q.fd, 1), -EALREADY);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 1);
	CHECK_EQ(kevent_chain_finish(&c, &ev), 1);
	CHECK_EQ(kevent_chain_cancel(q.fd, 1), -ENOENT);
	close_queue(&q);
	join_actor(&server, PATIENCE_MS);
	CHECK_EQ(server.ret, 1);
}

#define SERVERS		4

static long serve_many(void *arg)
{
	return kevent_chain_serve(*(int *)arg, SERVERS, NULL);
}

static void wait_for_bytes(int fd, unsigned int nr)
{
	char byte;

	for (; nr; nr--) {
		MUST_EQ(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, PATIENCE_MS), 1);
		MUST_EQ(read(fd, &byte, 1), 1);
	}
}

/* Each of them has a chain, and none ends before all have begun. */
static void threads_that_come_at_once_serve_one_queue(void)
{
	struct kevent_call calls[SERVERS][2];
	struct actor server[SERVERS];
	struct kevent_chain c[SERVERS];
	int gate[2], begun[2], i;
	struct ukevent ev;
	struct queue q;
	char byte;

	open_pipe(gate);
	open_pipe(begun);
	MUST_EQ(fcntl(gate[0], F_SETFL, 0), 0);
	open_queue(&q, 0);
	for (i = 0; i < SERVERS; i++)
		start_actor(&server[i], serve_many, &q.fd);
	for (i = 0; i < SERVERS; i++) {
		kevent_chain_init(&c[i], calls[i], 2);
		kevent_chain_call(&c[i], SYS_write, begun[1], "b", 1);
		kevent_chain_call(&c[i], SYS_read, gate[0], &byte, 1);
		MUST_EQ(kevent_chain_end(&c[i]), 0);
		submit(&q, &c[i], i);
	}
	wait_for_bytes(begun[0], SERVERS);
	for (i = 0; i < SERVERS; i++)
		put_byte(gate[1]);
	for (i = 0; i < SERVERS; i++) {
		MUST_EVENT(&q, &ev);
		MUST(ev.ptr < SERVERS);
		CHECK_EQ(kevent_chain_finish(&c[ev.ptr], &ev), 1);
	}
	close_queue(&q);
	for (i = 0; i < SERVERS; i++)
		join_actor(&server[i], PATIENCE_MS);
}

/* What the chain was kept in is not used any more if this is found there. */
static void take_freed_memory(void)
{
	size_t size;
	int i;

	for (size = 32; size <= 256; size += 16)
		for (i = 0; i < 8; i++)
			memset(malloc(size), 0xff, size);
}

/* It blocks, and counts neither for the queue that has the number next nor against its limit. */
static void chain_that_runs_outlives_its_queue(void)
{
	static const struct timespec zero;
	struct kevent_call calls[2], other[1];
	struct kevent_chain c, d;
	struct actor server;
	int fd[2], begun[2], old;
	struct ukevent ev;
	struct queue q;
	char byte;

	open_pipe(fd);
	open_pipe(begun);
	MUST_EQ(fcntl(fd[0], F_SETFL, 0), 0);
	open_queue(&q, 0);
	old = q.fd;
	kevent_chain_init(&c, calls, 2);
	kevent_chain_call(&c, SYS_write, begun[1], "b", 1);
	kevent_chain_call(&c, SYS_read, fd[0], &byte, 1);
	kevent_chain_init(&d, other, 1);
	kevent_chain_call(&d, SYS_getpid);
	MUST(!kevent_chain_end(&c) && !kevent_chain_end(&d));
	submit(&q, &c, 1);
	start_actor(&server, serve_one, &old);
	wait_for_bytes(begun[0], 1);
	close_queue(&q);
	open_queue(&q, 0);
	take_freed_memory();
	submit(&q, &d, 1);
	CHECK_EQ(kevent_chain_serve(q.fd, 1, &zero), 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(kevent_chain_finish(&d, &ev), 0);
	put_byte(fd[1]);
	join_actor(&server, PATIENCE_MS);
	CHECK_EQ(server.ret, 1);
	CHECK_EQ(calls[1].result, 1);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* The module */

static int raw(int kq, unsigned long request, void *arg)
{
	int ret = ioctl(kq, request, arg);

	return ret < 0 ? -errno : ret;
}

static int raw_ctl(int kq, uint32_t cmd, struct ukevent *ev)
{
	struct kevent_dev_ctl a = { .cmd = cmd, .num = 1, .arg = (uintptr_t)ev };

	return raw(kq, KEVENT_IOC_CTL, &a);
}

/* They are for the library, which lacks nothing then. */
static void raw_requests_come_back_as_they_were(void)
{
	static const uint32_t types[] = { KEVENT_FUTEX, KEVENT_AIO, KEVENT_POSIX_TIMER };
	struct ukevent ev;
	uint32_t cmd, i;
	struct queue q;

	open_queue(&q, 0);
	for (i = 0; i < ARRAY_SIZE(types); i++)
		for (cmd = KEVENT_CTL_ADD; cmd <= KEVENT_CTL_READY; cmd++) {
			ev = (struct ukevent){
				.id.raw_u64 = 64, .type = types[i], .event = 1, .ptr = 2,
				.ret_data = { 3, 4 },
			};
			CHECK_EQ(raw_ctl(q.fd, cmd, &ev), cmd != KEVENT_CTL_READY);
			CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE | KEVENT_RET_DRIVE);
			CHECK(ev.id.raw_u64 == 64 && ev.ptr == 2);
			CHECK(ev.ret_data[0] == 3 && ev.ret_data[1] == 4);
		}
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static int drive(int kq, uint32_t number, uint32_t event)
{
	struct ukevent ev = {
		.id.raw_u64 = 64, .type = KEVENT_FUTEX, .event = event, .ret_flags = number,
	};

	return raw(kq, KEVENT_IOC_DRIVE, &ev);
}

static struct ukevent driven_request(uint32_t number)
{
	return (struct ukevent){
		.id.raw_u64 = 64, .type = KEVENT_FUTEX, .event = WAKE,
		.req_flags = KEVENT_REQ_DRIVEN, .ret_flags = number,
	};
}

static int drives_of_another(void *arg)
{
	struct ukevent ev = driven_request(2);
	int kq = *(int *)arg;

	CHILD_MUST(drive(kq, 1, WAKE) == -ENOENT);
	CHILD_MUST(drive(kq, 1, 0) == -ENOENT);
	CHILD_MUST(raw_ctl(kq, KEVENT_CTL_MODIFY, &ev) == 1 && kevent_error(&ev) == -EPERM);
	ev = driven_request(2);
	CHILD_MUST(raw_ctl(kq, KEVENT_CTL_REMOVE, &ev) == 1 && kevent_error(&ev) == -EPERM);
	return 0;
}

/* By who has added it, and who says the number that it has now */
static void process_drives_its_own_watches(void)
{
	struct ukevent ev = driven_request(1);
	struct queue q;

	open_queue(&q, 0);
	CHECK_EQ(drive(q.fd, 1, WAKE), -ENOENT);
	CHECK_EQ(raw_ctl(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(drive(q.fd, 2, WAKE), -ENOENT);
	CHECK_EQ(join_child(start_child(drives_of_another, &q.fd), PATIENCE_MS), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(drive(q.fd, 1, 2), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(drive(q.fd, 1, WAKE), 0);
	CHECK_EQ(drive(q.fd, 1, 0), WAKE);
	CHECK_EQ(drive(q.fd, 1, 0), 0);
	CHECK_NO_EVENT(&q);
	ev = driven_request(3);
	CHECK_EQ(raw_ctl(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	CHECK_EQ(drive(q.fd, 1, WAKE), -ENOENT);
	CHECK_EQ(drive(q.fd, 3, WAKE), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.req_flags, 0);
	CHECK_EQ(drive(q.fd, 3, 0), 0);
	ev = driven_request(3);
	CHECK_EQ(raw_ctl(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	CHECK_EQ(drive(q.fd, 3, WAKE), -ENOENT);
	CHECK_EQ(raw(q.fd, KEVENT_IOC_DRIVE, (void *)1), -EFAULT);
	close_queue(&q);
}

static struct ukevent raw_chain(void)
{
	return (struct ukevent){
		.id.raw_u64 = 64, .type = KEVENT_AIO, .event = KEVENT_AIO_DONE, .ptr = 5,
		.req_flags = KEVENT_REQ_DRIVEN | KEVENT_REQ_ONESHOT, .ret_flags = 1,
		.ret_data = { 0, 3 },
	};
}

static int add_chain(void *arg)
{
	struct ukevent ev = raw_chain();

	CHILD_MUST(raw_ctl(*(int *)arg, KEVENT_CTL_ADD, &ev) == 0);
	return 0;
}

/* Who would have run it is gone: REMOVE ends it, as a chain that waits. */
static void chain_of_a_process_that_is_gone_is_cancelled(void)
{
	struct ukevent ev = raw_chain();
	struct queue q;

	open_queue(&q, 0);
	CHECK_EQ(raw_ctl(q.fd, KEVENT_CTL_ADD, &ev), 0);
	ev = raw_chain();
	CHECK_EQ(raw_ctl(q.fd, KEVENT_CTL_REMOVE, &ev), 1);
	CHECK_EQ(kevent_error(&ev), -EALREADY);
	CHECK_NO_EVENT(&q);
	close_queue(&q);

	open_queue(&q, 0);
	CHECK_EQ(join_child(start_child(add_chain, &q.fd), PATIENCE_MS), 0);
	CHECK_NO_EVENT(&q);
	ev = raw_chain();
	CHECK_EQ(raw_ctl(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.type, KEVENT_AIO);
	CHECK_EQ(ev.ptr, 5);
	CHECK_EQ(ev.id.raw_u64, KEVENT_CALL_REFUSED | 3);
	CHECK_EQ(ev.ret_data[0], (uint32_t)-ECANCELED);
	CHECK_EQ(ev.ret_data[1], -1U);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

struct number {
	int	kq, nr;
	bool	stop;
};

static long close_and_open(void *arg)
{
	struct number *n = arg;

	while (!__atomic_load_n(&n->stop, __ATOMIC_RELAXED)) {
		MUST_EQ(dup2(n->kq, n->nr), n->nr);
		close(n->nr);
	}
	return 0;
}

/* The call looks twice: EINVAL says that the number is back when it asks why it failed. */
static void number_is_closed_beside_a_call_that_serves(void)
{
	static const struct timespec zero;
	struct number n = {};
	struct actor closer;
	struct queue q;
	int i, ret;

	open_queue(&q, 0);
	n.kq = q.fd;
	n.nr = dup(q.fd);
	start_actor(&closer, close_and_open, &n);
	for (i = 0; i < 20000; i++) {
		ret = kevent_chain_serve(n.nr, 1, &zero);
		if (ret && ret != -EINVAL)
			MUST_EQ(ret, -EBADF);
	}
	__atomic_store_n(&n.stop, true, __ATOMIC_RELAXED);
	join_actor(&closer, PATIENCE_MS);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(word_that_changes_is_an_event),
	TEST(event_that_waits_is_of_the_new_setting),
	TEST(requests_of_many_types_are_one_call),
	TEST(changes_are_made_before_the_wait),
	TEST(watch_is_changed_by_a_copy_of_the_descriptor),
	TEST(number_that_comes_back_has_no_watches),
	TEST(chain_of_a_closed_queue_is_not_run),
	TEST(chain_that_runs_is_not_removed),
	TEST(threads_that_come_at_once_serve_one_queue),
	TEST(chain_that_runs_outlives_its_queue),
	{}
};

const struct test_suite driven_suite = { .name = "driven", .cases = cases };

static const struct test_case drives_cases[] = {
	TEST(raw_requests_come_back_as_they_were),
	TEST(process_drives_its_own_watches),
	TEST(chain_of_a_process_that_is_gone_is_cancelled),
	TEST(number_is_closed_beside_a_call_that_serves),
	{}
};

const struct test_suite drives_suite = { .name = "drives", .cases = drives_cases };
