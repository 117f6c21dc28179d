/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of sources/signal.c to the kernel; a part of host.h
 */
#ifndef _KEVENT_HOST_SIGNAL_H
#define _KEVENT_HOST_SIGNAL_H

#include <linux/cred.h>
#include <linux/lockdep.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

/* Is a signal shown before it is queued? Then a watch may consume it, or have its sender fail. */
#define HOST_SIGNALS_FIRST	true

/* In the list heads of a process, by which the host finds them */
struct host_signals {};

/* The watches of a process, under its siglock as the two below. NULL before the first watch. */
static inline struct kevent_signals *host_signals(struct signal_struct *signal)
{
	return signal->kevent_signals;
}

static inline void host_signals_add(struct signal_struct *signal,
				    struct kevent_signals *all)
{
	WRITE_ONCE(signal->kevent_signals, all);
}

/* They are free after that. */
static inline void host_signals_end(struct signal_struct *signal,
				    struct kevent_signals *all)
{
	WRITE_ONCE(signal->kevent_signals, NULL);
	kfree(all);
}

/* Lock the siglock of a task, under RCU. NULL when the task is gone. */
static inline struct sighand_struct *host_sighand_lock(struct task_struct *t,
						       unsigned long *flags)
{
	return __lock_task_sighand(t, flags);
}

/* The rules of __sigqueue_alloc(). May one more be kept for @t? Then it is charged to *@payer. */
static inline bool host_pending_charge(struct kevent_owner *owner,
				       struct task_struct *t,
				       struct ucounts **payer)
{
	long pending;

	rcu_read_lock();
	*payer = task_ucounts(t);
	pending = inc_rlimit_get_ucounts(*payer, UCOUNT_RLIMIT_SIGPENDING,
					 false);
	rcu_read_unlock();
	if (pending && pending <= task_rlimit(t, RLIMIT_SIGPENDING))
		return true;
	if (pending)
		dec_rlimit_put_ucounts(*payer, UCOUNT_RLIMIT_SIGPENDING);
	return false;
}

static inline void host_pending_uncharge(struct kevent_owner *owner,
					 struct ucounts *payer)
{
	dec_rlimit_put_ucounts(payer, UCOUNT_RLIMIT_SIGPENDING);
}

#endif /* _KEVENT_HOST_SIGNAL_H */
