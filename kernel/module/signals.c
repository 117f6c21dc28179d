// SPDX-License-Identifier: GPL-2.0
/*
 * How the module learns of signals
 *
 * Each signal that is sent comes to the tracepoint signal_generate, under the siglock, and may be
 * queued by then. Documentation/module.rst says what that means, and why nothing else would do.
 */

#include <linux/cleanup.h>
#include <linux/nospec.h>
#include <linux/sched/task_stack.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <trace/events/signal.h>

#include "../kevent/sources/signal_pending.h"

static struct tracepoint *generate;

static void signal_probe(void *unused, int sig, struct kernel_siginfo *info,
			 struct task_struct *t, int group, int result)
{
	/* A program may say so, whose siginfo is copied to the stack; a timer's is kept. */
	bool timer = info > SEND_SIG_PRIV && info->si_code == SI_TIMER &&
		     !object_is_on_stack(info);

	if (result == TRACE_SIGNAL_OVERFLOW_FAIL || !host_signals(t->signal))
		return;
	__kevent_signal_begin(sig, info, t, timer);
	__kevent_signal_end(sig, info, t, timer, false);
}

/*
 * A handler of the current process got a signal: its watches that consume may have it. @arg is
 * what its event says. Returns 0, -ENOENT when none wants it, -EINVAL or -EFAULT.
 */
long host_signal_post(const struct ukevent __user *arg)
{
	const u64 bits = KEVENT_SIGNAL_NOMASK | KEVENT_SIGNAL_POSTED;
	struct kevent_sent sent = { .t = current, .taken = true };
	struct ukevent uk;

	if (copy_from_user(&uk, arg, sizeof(uk)))
		return -EFAULT;
	if (uk.type != KEVENT_SIGNAL || !uk.id.raw[0] || !valid_signal(uk.id.raw[0]))
		return -EINVAL;
	sent.sig = array_index_nospec(uk.id.raw[0], _NSIG + 1);
	sent.info.id = uk.id.raw_u64 & ~bits;
	sent.info.timer = -1;
	sent.info.code = uk.ret_data[0];
	sent.info.value = uk.ret_data[1];
	guard(spinlock_irq)(ev_signal_own_lock());
	return ev_signal_share(&sent) ? 0 : -ENOENT;
}

static void find_generate(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "signal_generate"))
		generate = tp;
}

int host_signals_start(void)
{
	for_each_kernel_tracepoint(find_generate, NULL);
	return generate ? tracepoint_probe_register(generate, signal_probe, NULL) :
			  -EOPNOTSUPP;
}

void host_signals_stop(void)
{
	tracepoint_probe_unregister(generate, signal_probe, NULL);
	tracepoint_synchronize_unregister();
}
