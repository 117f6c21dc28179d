// SPDX-License-Identifier: GPL-2.0
/*
 * Chains of watches: what the library makes of the kernel's answers
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "test.h"

#define REFUSED		KEVENT_CALL_REFUSED
#define QUEUE		7
#define FD		9
#define COOKIE		0x8000000000000005ULL
#define NR_CALL		485
#define NR_CTL		481
#define POLLIN		KEVENT_POLL_POLLIN

/* Answers of the fake kernel, and the calls that it got */
static struct {
	int		add;		/* to ADD */
	long		call;		/* to kevent_call(); 0: all calls were made */
	long		first;		/* of the call that makes the first entry */
	unsigned int	nr_call, nr_made;
	unsigned int	nr_ctl;
	struct ukevent	uk;		/* of the last ADD */
	long		nr;		/* entries of the last kevent_call() */
} kernel;

static struct kevent_call calls[4];
static const struct kevent_chain chain = { .calls = calls, .nr = 4 };

static long answer_ctl(const struct fake_call *call)
{
	struct ukevent *uk = (void *)call->arg[3];
	int err;

	CHECK_EQ((int)call->arg[0], QUEUE);
	CHECK_EQ((__u32)call->arg[1], KEVENT_CTL_ADD);
	kernel.nr_ctl++;
	kernel.uk = *uk;
	err = kernel.add;
	uk->ret_flags = KEVENT_RET_DONE;
	if (!err)
		return 0;
	uk->ret_flags |= KEVENT_RET_BROKEN;
	uk->ret_data[1] = (__u32)err;
	return 1;
}

static long make(long arg)
{
	kernel.nr_made++;
	return arg || !kernel.first ? 100 + arg : kernel.first;
}

/* As the kernel does, where an entry jumps to the next one or ends the chain */
static long answer_call(struct kevent_call *call, long nr)
{
	long i;

	kernel.nr_call++;
	kernel.nr = nr;
	if (kernel.call)
		return kernel.call;
	for (i = 0; i < nr; i++) {
		call[i].result = make((long)call[i].args[0]);
		if (!(call[i].result < 0 ? call[i].on_error : call[i].on_value))
			return i;
	}
	return nr - 1;
}

static long answer(const struct fake_call *call)
{
	if (call->nr == NR_CTL)
		return answer_ctl(call);
	if (call->nr == NR_CALL)
		return answer_call((void *)call->arg[1], call->arg[2]);
	return make(call->arg[0]);
}

static void start(void)
{
	unsigned int i;

	memset(&kernel, 0, sizeof(kernel));
	fake_kernel = answer;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		calls[i] = (struct kevent_call){
			.nr = SYS_getpid, .on_value = 1, .args = { i },
		};
}

static int watch(__u32 req_flags)
{
	return kevent_chain_watch(QUEUE, &chain, FD, POLLIN, req_flags, COOKIE);
}

static void watch_passes_arguments(void)
{
	start();
	CHECK_EQ(watch(KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(kernel.nr_ctl, 1);
	CHECK_EQ(kernel.uk.type, KEVENT_POLL);
	CHECK_EQ(kernel.uk.event, POLLIN);
	CHECK_EQ(kernel.uk.id.raw_u64, FD);
	CHECK_EQ(kernel.uk.req_flags,
		 KEVENT_REQ_DISPATCH | KEVENT_REQ_LAST_CHECK);
	CHECK_EQ(kernel.uk.ptr, COOKIE);
}

static void errors_of_watches_are_returned(void)
{
	static const int errors[] = { -EBADF, -EEXIST, -EPERM, -ENOSPC, -EINVAL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		start();
		kernel.add = errors[i];
		CHECK_EQ(watch(0), errors[i]);
		CHECK_EQ(kernel.nr_ctl, 1);
	}
}

/* The kernel would not see what is wrong. */
static void chain_is_checked(void)
{
	struct kevent_chain bad[] = { chain, chain, chain, chain };
	unsigned int i;

	start();
	bad[0].nr = 0;
	bad[1].nr = KEVENT_CALL_MAX + 1;
	bad[2].calls = (void *)((char *)calls + 4);
	bad[3].error = -ENOSPC;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(kevent_chain_watch(QUEUE, &bad[i], FD, POLLIN, 0, 0),
			 -EINVAL);
	CHECK_EQ(watch(KEVENT_REQ_HAND_BACK), -EINVAL);
	CHECK_EQ(kernel.nr_ctl, 0);
}

static int finish(void)
{
	struct ukevent ev = {
		.id.raw_u64 = FD, .type = KEVENT_POLL, .event = POLLIN,
		.ret_flags = KEVENT_RET_DONE, .ret_data = { POLLIN },
	};

	return kevent_chain_finish(&chain, &ev);
}

static void other_events_run_nothing(void)
{
	struct ukevent ev = { .type = KEVENT_SOCKET, .event = POLLIN };

	start();
	CHECK_EQ(kevent_chain_finish(&chain, &ev), -EINVAL);
	ev.type = KEVENT_POLL;
	ev.ret_flags = KEVENT_RET_BROKEN;
	ev.ret_data[1] = (__u32)-EIDRM;
	CHECK_EQ(kevent_chain_finish(&chain, &ev), -EIDRM);
	CHECK_EQ(kernel.nr_made, 0);
	CHECK_EQ(kernel.nr_call, 0);
}

static void event_of_a_file_runs_the_chain(void)
{
	start();
	CHECK_EQ(finish(), 3);
	CHECK_EQ(kernel.nr_call, 1);
	CHECK_EQ(kernel.nr, 4);
	CHECK_EQ(kernel.nr_made, 4);
	start();
	kernel.call = -ENOSYS;
	CHECK_EQ(finish(), 3);
	CHECK_EQ(kernel.nr_made, 4);
	start();
	kernel.call = -EFAULT;
	CHECK_EQ(finish(), -EFAULT);
	CHECK_EQ(kernel.nr_made, 0);
}

/* Wherever an error would jump */
static void first_call_is_the_check(void)
{
	start();
	calls[0].on_error = 2;
	kernel.first = -EAGAIN;
	CHECK_EQ(finish(), -EAGAIN);
	CHECK_EQ(kernel.nr_made, 1);
	CHECK_EQ(calls[0].on_error, 2);
	kernel.first = -EMFILE;
	CHECK_EQ(finish(), 3);
	CHECK_EQ(kernel.nr_made, 1 + 3);
	CHECK_EQ(calls[0].on_error, 2);
	CHECK_EQ(calls[1].result, -ECANCELED);
	calls[0].on_error = 0;
	CHECK_EQ(finish(), 0);
	CHECK_EQ(kernel.nr_made, 1 + 3 + 1);
	calls[0].on_error = 4;
	CHECK_EQ(finish(), 0);
}

/* Only the queue has them. */
static void bound_call_of_a_watch_is_made(void)
{
	static const struct kevent_call bound = {
		.nr = SYS_getpid, .args = { 40 },
	};

	start();
	kernel.call = 0 | REFUSED;
	calls[0].nr = KEVENT_CALL_BOUND;
	calls[0].args[1] = (uintptr_t)&bound;
	calls[0].result = -EINVAL;
	CHECK_EQ(finish(), 3);
	CHECK_EQ(calls[0].result, 140);
	CHECK_EQ(kernel.nr_made, 4);
	calls[0].nr = SYS_exit;
	CHECK_EQ(finish(), REFUSED);
	CHECK_EQ(kernel.nr_made, 4);
}

const struct test_case watch_tests[] = {
	{ "watch_passes_arguments", watch_passes_arguments },
	{ "errors_of_watches_are_returned", errors_of_watches_are_returned },
	{ "chain_is_checked", chain_is_checked },
	{ "other_events_run_nothing", other_events_run_nothing },
	{ "event_of_a_file_runs_the_chain", event_of_a_file_runs_the_chain },
	{ "first_call_is_the_check", first_call_is_the_check },
	{ "bound_call_of_a_watch_is_made", bound_call_of_a_watch_is_made },
	{ }
};
