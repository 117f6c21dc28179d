// SPDX-License-Identifier: GPL-2.0
/*
 * Chains that are submitted: what the library makes of the kernel's answers
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "test.h"

#define REFUSED		KEVENT_CALL_REFUSED
#define SUBMITTED	KEVENT_CALL_SUBMITTED
#define ASYNC		KEVENT_CALL_ASYNC
#define FD		7
#define COOKIE		0x8000000000000005ULL
#define NR_CALL		485
#define NR_CTL		481
#define NR_WAIT		483

/* Answers of the fake kernel, and the calls that it got */
static struct {
	long		call;		/* to kevent_call() */
	__u32		at;		/* of that entry */
	__s64		result;		/* its result */
	long		ctl;		/* of the entry of kevent_ctl() */
	bool		queue;		/* the descriptor is one */
	long		wait;
	unsigned int	nr_call, nr_ctl, nr_made;
	__u32		cmd;
	struct ukevent	uk;
	struct fake_call last;
} kernel;

static struct kevent_call calls[4];
static const struct kevent_chain chain = { .calls = calls, .nr = 4 };

static long answer_ctl(const struct fake_call *call)
{
	struct ukevent *uk = (void *)call->arg[3];

	if (!(__u32)call->arg[2])
		return kernel.queue ? 0 : -EINVAL;
	kernel.nr_ctl++;
	kernel.cmd = (__u32)call->arg[1];
	kernel.uk = *uk;
	uk->ret_flags = KEVENT_RET_DONE;
	if (!kernel.ctl)
		return 0;
	uk->ret_flags |= KEVENT_RET_BROKEN;
	uk->ret_data[1] = (__u32)kernel.ctl;
	return 1;
}

static long answer(const struct fake_call *call)
{
	switch (call->nr) {
	case NR_CALL:
		kernel.nr_call++;
		kernel.last = *call;
		calls[kernel.at].result = kernel.result;
		return kernel.call;
	case NR_CTL:
		return answer_ctl(call);
	case NR_WAIT:
		kernel.last = *call;
		return kernel.wait;
	default:
		kernel.nr_made++;
		return 100 + call->arg[0];
	}
}

/* The kernel ends the chain at entry @at. */
static void ends_at(__u32 at, __u32 flag, __s64 result)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.queue = true;
	kernel.call = at | flag;
	kernel.at = at;
	kernel.result = result;
}

static void says(long err)
{
	ends_at(0, 0, 0);
	kernel.call = err;
}

static int submit(void)
{
	unsigned int i;

	fake_kernel = answer;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		calls[i] = (struct kevent_call){
			.nr = SYS_getpid, .on_value = 1, .args = { i },
		};
	return kevent_chain_submit(FD, &chain, COOKIE);
}

static void check_handed_over(__u32 from)
{
	CHECK_EQ(kernel.nr_call, 1);
	CHECK_EQ(kernel.nr_ctl, 1);
	CHECK_EQ(kernel.nr_made, 0);
	CHECK_EQ(kernel.cmd, KEVENT_CTL_ADD);
	CHECK_EQ(kernel.uk.type, KEVENT_AIO);
	CHECK_EQ(kernel.uk.event, KEVENT_AIO_DONE);
	CHECK_EQ(kernel.uk.id.raw_u64, (uintptr_t)calls);
	CHECK_EQ(kernel.uk.ret_data[0], 4);
	CHECK_EQ(kernel.uk.ret_data[1], from);
	CHECK_EQ(kernel.uk.ptr, COOKIE);
}

static void submit_passes_arguments(void)
{
	ends_at(0, SUBMITTED, 0);
	CHECK_EQ(submit(), SUBMITTED);
	CHECK_EQ((int)kernel.last.arg[0], FD);
	CHECK_EQ(kernel.last.arg[1], (long)calls);
	CHECK_EQ((__u32)kernel.last.arg[2], 4);
	CHECK_EQ((__u32)kernel.last.arg[3], ASYNC);
	CHECK_EQ(kernel.last.arg[4], (long)COOKIE);
	CHECK_EQ(kernel.nr_ctl, 0);
	ends_at(3, 0, 1);
	CHECK_EQ(submit(), 3);
	CHECK_EQ(kernel.nr_ctl, 0);
}

static void arguments_are_checked(void)
{
	char *odd = (char *)calls + 4;

	ends_at(0, SUBMITTED, 0);
	fake_kernel = answer;
	CHECK_EQ(kevent_call(FD, calls, 0, ASYNC, 1), -EINVAL);
	CHECK_EQ(kevent_call(FD, calls, KEVENT_CALL_MAX + 1, ASYNC, 1),
		 -EINVAL);
	CHECK_EQ(kevent_call(FD, (void *)odd, 1, ASYNC, 1), -EINVAL);
	CHECK_EQ(kevent_call(FD, calls, 1, ASYNC | 2, 1), -EINVAL);
	CHECK_EQ(kevent_call(-2, calls, 1, 0, 0), -EINVAL);
	CHECK_EQ(kevent_call(-1, calls, 1, 0, 1), -EINVAL);
	CHECK_EQ(kernel.nr_call, 0);
	CHECK_EQ(kevent_call(FD, calls, KEVENT_CALL_MAX, ASYNC, 1), SUBMITTED);
}

/* Also where the library looks at it, and not the kernel */
static void chain_that_is_not_there_is_no_chain(void)
{
	says(-ENOSYS);
	fake_kernel = answer;
	CHECK_EQ(kevent_call(-1, NULL, 1, 0, 0), -EFAULT);
	CHECK_EQ(kevent_call(-1, NULL, 2, 0, 0), -EFAULT);
	CHECK_EQ(kevent_call(FD, NULL, 1, 0, 0), -EFAULT);
	CHECK_EQ(kevent_call(FD, NULL, 1, ASYNC, 1), -EFAULT);
	CHECK_EQ(kevent_call(FD, NULL, 0, 0, 0), -EINVAL);
	CHECK_EQ(kernel.nr_made, 0);
}

/* Also after calls that the kernel did make */
static void refused_call_is_left_to_a_thread(void)
{
	static const int why[] = { -EOPNOTSUPP, -EINTR, -ENOSYS };
	unsigned int i;
	__u32 at;

	for (i = 0; i < ARRAY_SIZE(why); i++) {
		for (at = 0; at < 4; at += 2) {
			ends_at(at, REFUSED, why[i]);
			CHECK_EQ(submit(), SUBMITTED);
			check_handed_over(at);
		}
	}
}

static void result_of_a_call_is_no_refusal(void)
{
	ends_at(2, 0, -EOPNOTSUPP);
	CHECK_EQ(submit(), 2);
	CHECK_EQ(kernel.nr_ctl, 0);
}

static void call_that_no_thread_may_make_ends_the_chain(void)
{
	ends_at(2, REFUSED, -EINVAL);
	CHECK_EQ(submit(), 2 | REFUSED);
	ends_at(2, REFUSED, -EEXIST);
	CHECK_EQ(submit(), 2 | REFUSED);
	ends_at(1, REFUSED, -ENOSYS);
	fake_kernel = answer;
	calls[1].nr = SYS_exit;
	CHECK_EQ(kevent_chain_submit(FD, &chain, COOKIE), 1 | REFUSED);
	CHECK_EQ(kernel.nr_ctl, 0);
}

/* As in the kernel: an error of the entry that nobody can be left with */
static void thread_that_cannot_be_asked_ends_the_chain(void)
{
	ends_at(2, REFUSED, -EOPNOTSUPP);
	kernel.ctl = -EPERM;
	CHECK_EQ(submit(), 2 | REFUSED);
	CHECK_EQ(calls[2].result, -EPERM);
	ends_at(0, REFUSED, -EOPNOTSUPP);
	kernel.ctl = -EEXIST;
	CHECK_EQ(submit(), REFUSED);
	CHECK_EQ(calls[0].result, -EEXIST);
	ends_at(0, REFUSED, -EOPNOTSUPP);
	kernel.ctl = -ENOSYS;
	CHECK_EQ(submit(), -ENOSYS);
}

static void errors_are_returned(void)
{
	static const int errors[] = { -EBADF, -EFAULT, -EPERM, -ENOSYS };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		says(errors[i]);
		CHECK_EQ(submit(), errors[i]);
		CHECK_EQ(kernel.nr_ctl, 0);
		CHECK_EQ(kernel.nr_made, 0);
	}
	says(-EOPNOTSUPP);
	kernel.ctl = -EOPNOTSUPP;
	CHECK_EQ(submit(), -EOPNOTSUPP);
	says(-EOPNOTSUPP);
	CHECK_EQ(submit(), SUBMITTED);
	check_handed_over(0);
}

static void older_kernel_does_not_know_the_flags(void)
{
	const struct timespec bad = { 0, -1 };

	says(-EINVAL);
	CHECK_EQ(submit(), -ENOSYS);
	kernel.wait = -EINVAL;
	CHECK_EQ(kevent_chain_serve(FD, 1, NULL), -ENOSYS);
	CHECK_EQ(kevent_chain_serve(FD, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_chain_serve(FD, 1, &bad), -EINVAL);
	kernel.queue = false;
	CHECK_EQ(submit(), -EINVAL);
	CHECK_EQ(kevent_chain_serve(FD, 1, NULL), -EINVAL);
}

static void serve_passes_arguments(void)
{
	const struct timespec ts = { 1, 2 };

	says(0);
	fake_kernel = answer;
	kernel.wait = 9;
	CHECK_EQ(kevent_chain_serve(FD, 3, &ts), 9);
	CHECK_EQ((int)kernel.last.arg[0], FD);
	CHECK_EQ((__u32)kernel.last.arg[1], 3);
	CHECK_EQ((__u32)kernel.last.arg[2], 0);
	CHECK(kernel.last.arg[3]);
	CHECK_EQ((__u32)kernel.last.arg[4], KEVENT_FLAGS_SERVE);
	CHECK_EQ(kernel.last.arg[5], 0);
	kernel.wait = -EINTR;
	CHECK_EQ(kevent_chain_serve(FD, 3, NULL), -EINTR);
	CHECK_EQ(kernel.last.arg[3], 0);
}

static void cancel_removes_the_watch(void)
{
	static const int errors[] = { 0, -EALREADY, -ENOENT };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		says(0);
		fake_kernel = answer;
		kernel.ctl = errors[i];
		CHECK_EQ(kevent_chain_cancel(FD, COOKIE), errors[i]);
		CHECK_EQ(kernel.cmd, KEVENT_CTL_REMOVE);
		CHECK_EQ(kernel.uk.type, KEVENT_AIO);
		CHECK_EQ(kernel.uk.ptr, COOKIE);
	}
}

/* An event that says so */
static int finish(__u64 id, __s64 result)
{
	struct ukevent ev = {
		.id.raw_u64 = id, .type = KEVENT_AIO,
		.event = KEVENT_AIO_DONE, .ret_flags = KEVENT_RET_DONE,
		.ret_data = { (__u32)result, (__u32)((__u64)result >> 32) },
	};

	return kevent_chain_finish(&chain, &ev);
}

static void finish_says_how_a_chain_ended(void)
{
	ends_at(0, SUBMITTED, 0);
	submit();
	CHECK_EQ(finish(3, 1), 3);
	CHECK_EQ(finish(1, -ENOSYS), 1);
	CHECK_EQ(finish(1, -ECANCELED), 1);
	CHECK_EQ(finish(2 | REFUSED, -EINTR), 2 | REFUSED);
	CHECK_EQ(finish(2 | REFUSED, -EINVAL), 2 | REFUSED);
	CHECK_EQ(finish(2 | REFUSED, -ECANCELED), -ECANCELED);
	CHECK_EQ(kernel.nr_made, 0);
}

static void finish_makes_what_was_refused(void)
{
	static const int why[] = { -EOPNOTSUPP, -ENOSYS };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(why); i++) {
		ends_at(0, SUBMITTED, 0);
		submit();
		calls[0].result = -1;
		CHECK_EQ(finish(1 | REFUSED, why[i]), 3);
		CHECK_EQ(kernel.nr_made, 3);
		CHECK_EQ(calls[0].result, -1);
		CHECK_EQ(calls[1].result, 101);
		CHECK_EQ(calls[3].result, 103);
	}
	calls[2].nr = SYS_exit;
	CHECK_EQ(finish(1 | REFUSED, -ENOSYS), 2 | REFUSED);
	CHECK_EQ(calls[2].result, -ENOSYS);
}

static void finish_refuses_other_events(void)
{
	struct ukevent ev = {
		.type = KEVENT_AIO,
		.ret_flags = KEVENT_RET_DONE | KEVENT_RET_BROKEN,
		.ret_data = { 0, (__u32)-EFAULT },
	};

	ends_at(0, SUBMITTED, 0);
	submit();
	CHECK_EQ(kevent_chain_finish(&chain, &ev), -EFAULT);
	ev.type = KEVENT_USER;
	CHECK_EQ(kevent_chain_finish(&chain, &ev), -EINVAL);
	CHECK_EQ(finish(4, 0), -EINVAL);
	CHECK_EQ(finish(4 | REFUSED, -EOPNOTSUPP), -EINVAL);
	CHECK_EQ(kernel.nr_made, 0);
}

/* The same for a chain that the caller waits for */
static void call_the_kernel_does_not_know_is_made(void)
{
	ends_at(1, REFUSED, -ENOSYS);
	submit();
	kernel.nr_call = 0;
	CHECK_EQ(kevent_chain_run(&chain), 3);
	CHECK_EQ(kernel.nr_call, 1);
	CHECK_EQ(kernel.nr_made, 3);
}

/* Bound calls */

static const struct kevent_call bound = {
	.nr = SYS_getpid, .args = { 40, 2, 3, 4, 5, 6 },
};

static void bind_passes_arguments(void)
{
	ends_at(0, 0, 0);
	fake_kernel = answer;
	CHECK_EQ(kevent_bind(FD, 5, &bound), 5);
	CHECK_EQ(kernel.cmd, KEVENT_CTL_ADD);
	CHECK_EQ(kernel.uk.type, KEVENT_BOUND);
	CHECK_EQ(kernel.uk.event, 5);
	CHECK_EQ(kernel.uk.req_flags, 0);
	CHECK_EQ(kernel.uk.id.raw_u64, 40);
	CHECK_EQ(kernel.uk.ptr, (uintptr_t)&bound);
	kernel.ctl = -EXDEV;
	CHECK_EQ(kevent_bind(FD, 5, &bound), -EXDEV);
	CHECK_EQ(kernel.nr_ctl, 2);
	CHECK_EQ(kevent_bind(FD, KEVENT_BOUND_MAX, &bound), -EINVAL);
	CHECK_EQ(kevent_bind(FD, -1U, &bound), -EINVAL);
	CHECK_EQ(kernel.nr_ctl, 2);
}

static void what_was_not_bound_is_an_ordinary_entry(void)
{
	struct kevent_call room[2];
	struct kevent_chain c;

	kevent_chain_init(&c, room, 2);
	CHECK(kevent_chain_bound(&c, 0, &bound) == &room[0]);
	CHECK(kevent_chain_bound(&c, -ENOSYS, &bound) == &room[1]);
	CHECK_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(room[0].nr, KEVENT_CALL_BOUND);
	CHECK_EQ(room[0].args[0], 0);
	CHECK_EQ(room[0].args[1], (uintptr_t)&bound);
	CHECK_EQ(room[1].nr, SYS_getpid);
	CHECK(!memcmp(room[1].args, bound.args, sizeof(bound.args)));
}

/* The last three of the chain's entries are bound. */
static int run_bound(void)
{
	unsigned int i;

	submit();
	for (i = 1; i < ARRAY_SIZE(calls); i++) {
		calls[i].nr = KEVENT_CALL_BOUND;
		calls[i].args[1] = (uintptr_t)&bound;
	}
	kernel.nr_call = 0;
	return kevent_chain_run_in(FD, &chain);
}

static void run_in_passes_the_queue(void)
{
	ends_at(3, 0, 7);
	CHECK_EQ(run_bound(), 3);
	CHECK_EQ(kernel.nr_call, 1);
	CHECK_EQ((int)kernel.last.arg[0], FD);
	CHECK_EQ((__u32)kernel.last.arg[3], 0);
	CHECK_EQ(kernel.last.arg[4], 0);
	CHECK_EQ(kernel.nr_made, 0);
}

static void bound_call_that_is_refused_is_made(void)
{
	static const int why[] = { -EOPNOTSUPP, -ENOSYS, -EXDEV };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(why); i++) {
		ends_at(1, REFUSED, why[i]);
		CHECK_EQ(run_bound(), 3);
		CHECK_EQ(kernel.nr_made, 3);
		CHECK_EQ(calls[1].result, 140);
		CHECK_EQ(calls[3].result, 140);
		CHECK_EQ(finish(1 | REFUSED, why[i]), 3);
		CHECK_EQ(kernel.nr_made, 6);
	}
	ends_at(1, REFUSED, -EINVAL);
	CHECK_EQ(run_bound(), 1 | REFUSED);
	ends_at(0, REFUSED, -EXDEV);
	CHECK_EQ(run_bound(), REFUSED);
	CHECK_EQ(kernel.nr_made, 0);
}

/* A kernel without bound calls wants -1. */
static void older_kernel_knows_no_queue_here(void)
{
	says(-EINVAL);
	CHECK_EQ(run_bound(), 3);
	CHECK_EQ(kernel.nr_made, 4);
	says(-EINVAL);
	kernel.queue = false;
	CHECK_EQ(run_bound(), -EINVAL);
	CHECK_EQ(kernel.nr_made, 0);
}

static void call_behind_a_bound_one_is_checked(void)
{
	static struct kevent_call bad = { .nr = SYS_exit };

	says(-ENOSYS);
	run_bound();
	calls[2].args[1] = (uintptr_t)&bad;
	CHECK_EQ(kevent_chain_run_in(FD, &chain), 2 | REFUSED);
	CHECK_EQ(calls[2].result, -ENOSYS);
	bad.nr = KEVENT_CALL_BOUND;
	bad.args[1] = (uintptr_t)&bad;
	CHECK_EQ(kevent_chain_run_in(FD, &chain), 2 | REFUSED);
	CHECK_EQ(calls[2].result, -EINVAL);
	calls[2].args[1] = 0;
	CHECK_EQ(kevent_chain_run_in(FD, &chain), 2 | REFUSED);
	CHECK_EQ(calls[2].result, -EINVAL);
	calls[1].flags = 1;
	CHECK_EQ(kevent_chain_run_in(FD, &chain), 1 | REFUSED);
	CHECK_EQ(calls[1].result, -EINVAL);
}

const struct test_case async_tests[] = {
	{ "submit_passes_arguments", submit_passes_arguments },
	{ "arguments_are_checked", arguments_are_checked },
	{ "chain_that_is_not_there_is_no_chain", chain_that_is_not_there_is_no_chain },
	{ "refused_call_is_left_to_a_thread",
	  refused_call_is_left_to_a_thread },
	{ "result_of_a_call_is_no_refusal", result_of_a_call_is_no_refusal },
	{ "call_that_no_thread_may_make_ends_the_chain",
	  call_that_no_thread_may_make_ends_the_chain },
	{ "thread_that_cannot_be_asked_ends_the_chain",
	  thread_that_cannot_be_asked_ends_the_chain },
	{ "errors_are_returned", errors_are_returned },
	{ "older_kernel_does_not_know_the_flags",
	  older_kernel_does_not_know_the_flags },
	{ "serve_passes_arguments", serve_passes_arguments },
	{ "cancel_removes_the_watch", cancel_removes_the_watch },
	{ "finish_says_how_a_chain_ended", finish_says_how_a_chain_ended },
	{ "finish_makes_what_was_refused", finish_makes_what_was_refused },
	{ "finish_refuses_other_events", finish_refuses_other_events },
	{ "call_the_kernel_does_not_know_is_made",
	  call_the_kernel_does_not_know_is_made },
	{ "bind_passes_arguments", bind_passes_arguments },
	{ "what_was_not_bound_is_an_ordinary_entry",
	  what_was_not_bound_is_an_ordinary_entry },
	{ "run_in_passes_the_queue", run_in_passes_the_queue },
	{ "bound_call_that_is_refused_is_made",
	  bound_call_that_is_refused_is_made },
	{ "older_kernel_knows_no_queue_here",
	  older_kernel_knows_no_queue_here },
	{ "call_behind_a_bound_one_is_checked",
	  call_behind_a_bound_one_is_checked },
	{ }
};
