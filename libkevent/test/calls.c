// SPDX-License-Identifier: GPL-2.0
/*
 * The wrappers: numbers, arguments, errors
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <linux/time_types.h>
#include <sys/syscall.h>

#include "test.h"

static struct fake_call last;
static long next_ret;

static long record(const struct fake_call *call)
{
	last = *call;
	return next_ret;
}

static void answer_with(long ret)
{
	memset(&last, 0, sizeof(last));
	next_ret = ret;
	fake_kernel = record;
}

static void check_ts(long arg, long long sec, long long nsec)
{
	const struct __kernel_timespec *ts = (void *)arg;

	CHECK_EQ(ts->tv_sec, sec);
	CHECK_EQ(ts->tv_nsec, nsec);
}

static void init_passes_arguments(void)
{
	static KEVENT_RING_STORAGE(4) mem;
	struct kevent_queue q;

	answer_with(7);
	CHECK_EQ(kevent_init(&mem.ring, 4, KEVENT_INIT_NOCLOEXEC), 7);
	CHECK_EQ(last.nr, 480);
	CHECK_EQ(last.arg[0], (long)&mem.ring);
	CHECK_EQ((__u32)last.arg[1], 4);
	CHECK_EQ((__u32)last.arg[2], KEVENT_INIT_NOCLOEXEC);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, 4, KEVENT_INIT_REFUSE_ATTACH |
				   KEVENT_INIT_REFUSE(KEVENT_SIGNAL)), 0);
	CHECK_EQ((__u32)last.arg[2], 0x80800000);
}

static void ctl_passes_arguments(void)
{
	struct ukevent ev;

	answer_with(2);
	CHECK_EQ(kevent_ctl(3, KEVENT_CTL_MODIFY, 5, &ev), 2);
	CHECK_EQ(last.nr, 481);
	CHECK_EQ((int)last.arg[0], 3);
	CHECK_EQ((__u32)last.arg[1], KEVENT_CTL_MODIFY);
	CHECK_EQ((__u32)last.arg[2], 5);
	CHECK_EQ(last.arg[3], (long)&ev);
}

static struct timespec *seen_timeout;

static long check_wait_time(const struct fake_call *call)
{
	check_ts(call->arg[3], seen_timeout->tv_sec, seen_timeout->tv_nsec);
	return record(call);
}

static void get_events_passes_arguments(void)
{
	struct timespec ts = { .tv_sec = 1LL << 40, .tv_nsec = 999999999 };
	struct ukevent ev;

	answer_with(1);
	seen_timeout = &ts;
	fake_kernel = check_wait_time;
	CHECK_EQ(kevent_get_events(3, 4, 5, &ts, &ev, 1), 1);
	CHECK_EQ(last.nr, 482);
	CHECK_EQ((int)last.arg[0], 3);
	CHECK_EQ((__u32)last.arg[1], 4);
	CHECK_EQ((__u32)last.arg[2], 5);
	CHECK_EQ(last.arg[4], (long)&ev);
	CHECK_EQ((__u32)last.arg[5], KEVENT_FLAGS_ABSTIME);

	answer_with(0);
	CHECK_EQ(kevent_get_events(3, 4, 5, NULL, &ev, 0), 0);
	CHECK_EQ(last.arg[3], 0);
}

static void wait_passes_arguments(void)
{
	struct timespec ts = { .tv_sec = -1, .tv_nsec = 7 };
	const struct kevent_wait_arg *arg = (void *)&ts;

	answer_with(6);
	seen_timeout = &ts;
	fake_kernel = check_wait_time;
	CHECK_EQ(kevent_wait(3, 4, 0xfffffffe, &ts, 1, arg), 6);
	CHECK_EQ(last.nr, 483);
	CHECK_EQ((int)last.arg[0], 3);
	CHECK_EQ((__u32)last.arg[1], 4);
	CHECK_EQ((__u32)last.arg[2], 0xfffffffe);
	CHECK_EQ((__u32)last.arg[4], KEVENT_FLAGS_ABSTIME);
	CHECK_EQ(last.arg[5], (long)arg);

	answer_with(0);
	CHECK_EQ(kevent_wait(3, 4, 5, NULL, 0, NULL), 0);
	CHECK_EQ(last.arg[3], 0);
}

static void commit_passes_arguments(void)
{
	answer_with(9);
	CHECK_EQ(kevent_commit(3, 0xffffffff, 2), 9);
	CHECK_EQ(last.nr, 484);
	CHECK_EQ((int)last.arg[0], 3);
	CHECK_EQ((__u32)last.arg[1], 0xffffffff);
	CHECK_EQ((__u32)last.arg[2], 2);
}

static void failure_is_returned_and_errno_kept(void)
{
	struct ukevent ev;

	answer_with(-EBADF);
	errno = ENOTTY;
	CHECK_EQ(kevent_init(NULL, 0, 0), -EBADF);
	CHECK_EQ(kevent_ctl(1, 0, 0, &ev), -EBADF);
	CHECK_EQ(kevent_get_events(1, 1, 1, NULL, &ev, 0), -EBADF);
	CHECK_EQ(kevent_wait(1, 1, 0, NULL, 0, NULL), -EBADF);
	CHECK_EQ(kevent_commit(1, 0, 0), -EBADF);
	CHECK_EQ(errno, ENOTTY);
}

static void supported_tells_why_not(void)
{
	answer_with(-ENOSYS);
	CHECK_EQ(kevent_supported(), -ENOSYS);
	answer_with(-EPERM);
	CHECK_EQ(kevent_supported(), -EPERM);
}

static long close_or_record(const struct fake_call *call)
{
	return call->nr == SYS_close ? close((int)call->arg[0]) : record(call);
}

static void supported_closes_its_queue(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	answer_with(fd);
	fake_kernel = close_or_record;
	CHECK_EQ(kevent_supported(), 0);
	CHECK_EQ(last.nr, 480);
	CHECK_EQ(last.arg[0], 0);
	CHECK_EQ((__u32)last.arg[1], 0);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

static void set_delay_tells_why_not(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	errno = EINTR;
	CHECK_EQ(kevent_set_delay(-1, 100), -EBADF);
	CHECK_EQ(kevent_set_delay(fd, 100), -ENOTTY);
	CHECK_EQ(errno, EINTR);
	close(fd);
}

static void busy_poll_tells_why_not(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	errno = EINTR;
	CHECK_EQ(kevent_busy_poll(-1, 100), -EBADF);
	CHECK_EQ(kevent_busy_poll(fd, 100), -ENOTTY);
	CHECK_EQ(errno, EINTR);
	close(fd);
}

static __u32 entry_flags;
static int entry_errno;

static long answer_entry(const struct fake_call *call)
{
	struct ukevent *ev = (void *)call->arg[3];

	CHECK_EQ((__u32)call->arg[2], 1);
	CHECK_EQ(ev->ret_flags, 0);
	ev->ret_flags = entry_flags;
	ev->ret_data[1] = (__u32)entry_errno;
	return next_ret;
}

static int ctl_one(long ret, __u32 ret_flags, int err)
{
	struct ukevent ev = { .ret_flags = ~0U };

	next_ret = ret;
	entry_flags = ret_flags;
	entry_errno = err;
	fake_kernel = answer_entry;
	return kevent_ctl_one(3, KEVENT_CTL_ADD, &ev);
}

static void ctl_one_tells_failure_from_ready(void)
{
	const __u32 broken = KEVENT_RET_BROKEN | KEVENT_RET_DONE;

	CHECK_EQ(ctl_one(0, 0, 0), 0);
	CHECK_EQ(ctl_one(1, KEVENT_RET_DONE, 5), 1);
	CHECK_EQ(ctl_one(1, broken, -EEXIST), -EEXIST);
	CHECK_EQ(ctl_one(0, broken, -ENOENT), -ENOENT);
	CHECK_EQ(ctl_one(-EFAULT, 0, 0), -EFAULT);
}

static void initialisers_fill_every_field(void)
{
	struct ukevent want = { .event = 5, .req_flags = 6, .ptr = 1ULL << 63 };
	struct ukevent ev;

	want.id.raw[0] = 4;
	memset(&ev, 0xff, sizeof(ev));
	want.type = KEVENT_SOCKET;
	kevent_set_socket(&ev, 4, 5, 6, 1ULL << 63);
	CHECK(!memcmp(&ev, &want, sizeof(ev)));

	memset(&ev, 0xff, sizeof(ev));
	want.type = KEVENT_PIPE;
	kevent_set_pipe(&ev, 4, 5, 6, 1ULL << 63);
	CHECK(!memcmp(&ev, &want, sizeof(ev)));

	memset(&ev, 0xff, sizeof(ev));
	want.type = KEVENT_POLL;
	kevent_set_poll(&ev, 4, 5, 6, 1ULL << 63);
	CHECK(!memcmp(&ev, &want, sizeof(ev)));

	memset(&ev, 0xff, sizeof(ev));
	want.type = KEVENT_USER;
	want.id.raw_u64 = 0x123456789abcdef0ULL;
	kevent_set_user(&ev, 0x123456789abcdef0ULL, 5, 6, 1ULL << 63);
	CHECK(!memcmp(&ev, &want, sizeof(ev)));
}

/* All but the type and the id, which each function has its own way with */
static void check_rest(const struct ukevent *ev, __u32 type, __u32 event)
{
	CHECK_EQ(ev->type, type);
	CHECK_EQ(ev->event, event);
	CHECK_EQ(ev->req_flags, 6);
	CHECK_EQ(ev->ret_flags, 0);
	CHECK_EQ(ev->ptr, 7);
}

static void initialisers_know_their_source(void)
{
	const struct timespec when = { 5000000000, 999999999 };
	struct ukevent ev;
	__u32 word;

	memset(&ev, 0xff, sizeof(ev));
	kevent_set_inode(&ev, 4, KEVENT_INODE_MODIFY, 6, 7);
	check_rest(&ev, KEVENT_INODE, KEVENT_INODE_MODIFY);
	CHECK_EQ(ev.id.raw[0], 4);
	CHECK_EQ(ev.id.raw[1], 0);
	kevent_set_timer(&ev, kevent_ns(&when), 0x123456789ULL,
			 KEVENT_TIMER_TAI, 6, 7);
	check_rest(&ev, KEVENT_TIMER, KEVENT_TIMER_FIRED |
		   KEVENT_TIMER_INTERVAL | KEVENT_TIMER_TAI);
	CHECK_EQ(ev.id.raw_u64, 5000000000999999999ULL);
	CHECK_EQ(ev.ret_data[0], 0x23456789);
	CHECK_EQ(ev.ret_data[1], 1);
	kevent_set_timer(&ev, 1, 0, 0, 6, 7);
	check_rest(&ev, KEVENT_TIMER,
		   KEVENT_TIMER_FIRED | KEVENT_TIMER_INTERVAL);
	CHECK_EQ(ev.ret_data[0], 0);
	CHECK_EQ(ev.ret_data[1], 0);
	kevent_set_posix_timer(&ev, 9, 6, 7);
	check_rest(&ev, KEVENT_POSIX_TIMER, KEVENT_POSIX_TIMER_FIRED);
	CHECK_EQ(ev.id.raw[0], 9);
	kevent_set_proc(&ev, 10, 6, 7);
	check_rest(&ev, KEVENT_PROC, KEVENT_PROC_EXIT);
	CHECK_EQ(ev.id.raw[0], 10);
	kevent_set_pidfd(&ev, 11, 6, 7);
	check_rest(&ev, KEVENT_PROC, KEVENT_PROC_EXIT | KEVENT_PROC_PIDFD);
	CHECK_EQ(ev.id.raw[0], 11);
	kevent_set_futex(&ev, &word, 12, KEVENT_FUTEX_PRIVATE, 6, 7);
	check_rest(&ev, KEVENT_FUTEX,
		   KEVENT_FUTEX_WAKE | KEVENT_FUTEX_PRIVATE);
	CHECK_EQ(ev.id.raw_u64, (uintptr_t)&word);
	CHECK_EQ(ev.ret_data[0], 12);
}

static void signals_have_their_sender_in_the_id(void)
{
	struct ukevent ev;

	kevent_set_signal(&ev, 10, KEVENT_SIGNAL_OBSERVE, 6, 7);
	check_rest(&ev, KEVENT_SIGNAL, KEVENT_SIGNAL_DELIVERY);
	CHECK_EQ(ev.id.raw_u64, 10);
	kevent_set_signal(&ev, 10, KEVENT_SIGNAL_CONSUME, 6, 7);
	CHECK_EQ(ev.id.raw_u64, 10 | KEVENT_SIGNAL_NOMASK);
	CHECK_EQ(kevent_signal_sender(&ev), 0);
	ev.id.raw_u64 |= 1234ULL << 32;
	CHECK_EQ(kevent_signal_sender(&ev), 1234);
}

static void mark_hands_on_its_data(void)
{
	struct ukevent ev;

	kevent_set_mark(&ev, 5, 1, 0x123456789abcdef0ULL);
	CHECK_EQ(ev.type, KEVENT_USER);
	CHECK_EQ(ev.id.raw_u64, 5);
	CHECK_EQ(ev.event, 1);
	CHECK_EQ(kevent_mark_data(&ev), 0x123456789abcdef0ULL);
}

static void wait_arg_asks_for_nothing(void)
{
	struct kevent_wait_arg arg, want = {
		.size = sizeof(arg),
		.clockid = CLOCK_MONOTONIC,
	};

	memset(&arg, 0xff, sizeof(arg));
	kevent_wait_arg_init(&arg);
	CHECK(!memcmp(&arg, &want, sizeof(arg)));
}

/* The error of a chain, by the kernel or a filter */
static long no_chain = -ENOSYS;

/* Calls return their first argument; the kernel makes no chains. */
static long makes_no_chain(const struct fake_call *call)
{
	if (call->nr == 485)
		return no_chain;
	last = *call;
	return call->arg[0];
}

static int run_three(struct kevent_call *c, __s64 first, __u8 flags, __u64 arg)
{
	fake_kernel = makes_no_chain;
	memset(&last, 0, sizeof(last));
	memset(c, 0, 3 * sizeof(*c));
	c[0] = (struct kevent_call){ .nr = SYS_close, .args = { (__u64)first } };
	c[1] = c[0];
	c[2] = c[0];
	c[0].on_error = c[0].on_value = 1;
	c[0].on_zero = 2;
	c[1].on_error = c[1].on_value = 1;
	c[1].args[0] = 50;
	c[2].flags = flags;
	c[2].args[0] = c[2].args[5] = arg;
	return kevent_call(-1, c, 3, 0, 0);
}

static void results_become_arguments(void)
{
	static const __u64 bad[] = { 0, 3, 4, 1ull << 63, ~0ull };
	struct kevent_call c[3];
	unsigned int i;

	CHECK_EQ(run_three(c, 7, 0x21, 2), 2);
	CHECK_EQ(last.arg[0], 7);
	CHECK_EQ(last.arg[5], 7);
	CHECK_EQ(c[2].args[0], 2);
	CHECK_EQ(run_three(c, 7, 0x20, 1), 2);
	CHECK_EQ(last.arg[0], 1);
	CHECK_EQ(last.arg[5], 50);
	CHECK_EQ(run_three(c, -EIO, 1, 2), 2);
	CHECK_EQ(c[2].result, -EIO);
	CHECK_EQ(last.arg[0], 50);
	CHECK_EQ(run_three(c, 0, 1, 1), 2);
	CHECK_EQ(c[1].result, -ECANCELED);
	CHECK_EQ(c[2].result, -ECANCELED);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(run_three(c, 7, 0x20, bad[i]), 2 | KEVENT_CALL_REFUSED);
		CHECK_EQ(c[2].result, -EINVAL);
		CHECK_EQ(last.arg[0], 50);
	}
	CHECK_EQ(run_three(c, 7, 0x40, 1), 2 | KEVENT_CALL_REFUSED);
	CHECK_EQ(c[2].result, -EINVAL);
}

static void refused_chain_is_made_call_by_call(void)
{
	static const int why[] = { EPERM, EACCES, EOPNOTSUPP, EIO, ENOSYS };
	struct kevent_call c[3];
	unsigned int i;

	for (i = 0; i < sizeof(why) / sizeof(*why); i++) {
		no_chain = -why[i];
		CHECK_EQ(run_three(c, 7, 1, 2), 2);
		CHECK_EQ(c[2].result, 7);
	}
	no_chain = -EFAULT;
	CHECK_EQ(run_three(c, 7, 1, 2), -EFAULT);
	no_chain = -ENOSYS;
}

/* The kernel has made the first call when a signal comes. */
static long ends_by_a_signal(const struct fake_call *call)
{
	struct kevent_call *c = (void *)call->arg[1];

	if (call->nr != 485)
		return makes_no_chain(call);
	c[0].result = 9;
	c[1].result = -EINTR;
	return 1 | KEVENT_CALL_REFUSED;
}

static void rest_is_made_after_a_signal(void)
{
	struct kevent_call c[3] = {
		{ .nr = SYS_close },
		{ .nr = SYS_close, .on_value = 1, .args = { 5 } },
		{ .nr = SYS_close, .args = { 2 }, .flags = KEVENT_CALL_BACK(0) },
	};

	fake_kernel = ends_by_a_signal;
	CHECK_EQ(kevent_call(-1, c, 3, 0, 0), 2);
	CHECK_EQ(c[1].result, 5);
	CHECK_EQ(c[2].result, 9);
}

static void cookie_holds_index_and_generation(void)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, 4, 1, 0, kevent_cookie(0xfffffff0, 0x80000001));
	CHECK_EQ(kevent_cookie_index(&ev), 0xfffffff0);
	CHECK_EQ(kevent_cookie_gen(&ev), 0x80000001);
}

const struct test_case call_tests[] = {
	{ "init_passes_arguments", init_passes_arguments },
	{ "ctl_passes_arguments", ctl_passes_arguments },
	{ "get_events_passes_arguments", get_events_passes_arguments },
	{ "wait_passes_arguments", wait_passes_arguments },
	{ "commit_passes_arguments", commit_passes_arguments },
	{ "failure_is_returned_and_errno_kept",
	  failure_is_returned_and_errno_kept },
	{ "supported_tells_why_not", supported_tells_why_not },
	{ "supported_closes_its_queue", supported_closes_its_queue },
	{ "busy_poll_tells_why_not", busy_poll_tells_why_not },
	{ "set_delay_tells_why_not", set_delay_tells_why_not },
	{ "ctl_one_tells_failure_from_ready",
	  ctl_one_tells_failure_from_ready },
	{ "initialisers_fill_every_field", initialisers_fill_every_field },
	{ "initialisers_know_their_source", initialisers_know_their_source },
	{ "signals_have_their_sender_in_the_id",
	  signals_have_their_sender_in_the_id },
	{ "mark_hands_on_its_data", mark_hands_on_its_data },
	{ "wait_arg_asks_for_nothing", wait_arg_asks_for_nothing },
	{ "results_become_arguments", results_become_arguments },
	{ "refused_chain_is_made_call_by_call", refused_chain_is_made_call_by_call },
	{ "rest_is_made_after_a_signal", rest_is_made_after_a_signal },
	{ "cookie_holds_index_and_generation",
	  cookie_holds_index_and_generation },
	{ }
};
