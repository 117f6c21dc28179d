/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Until when a consumer waits
 */
#ifndef _KEVENT_DEADLINE_H
#define _KEVENT_DEADLINE_H

#include <linux/freezer.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/types.h>

struct __kernel_timespec;

/**
 * struct kevent_timeout - how long to wait, as a call has it
 * @time:	NULL: without a limit
 * @flags:	of the call: %KEVENT_FLAGS_ABSTIME says what @time is
 */
struct kevent_timeout {
	const struct __kernel_timespec __user *time;
	u32				flags;
};

/**
 * struct kevent_deadline - until when a consumer waits
 * @at:		time of @clock, KTIME_MAX for no limit; see @relative
 * @slack:	how much later is fine, in nanoseconds
 * @clock:	CLOCK_MONOTONIC and its like
 * @span:	time of CLOCK_MONOTONIC that ends the wait, too, KTIME_MAX for none: the end of
 *		a span, where @at follows a clock that can be set
 * @nowait:	do not sleep at all
 * @relative:	@at counts from when a consumer is about to sleep, never 0
 */
struct kevent_deadline {
	ktime_t			at;
	u64			slack;
	ktime_t			span;
	clockid_t		clock;
	bool			nowait;
	bool			relative;
};

ktime_t kevent_clock_now(clockid_t clock);
int kevent_deadline_read(struct kevent_deadline *until, struct kevent_timeout t);
void kevent_deadline_start_clock(struct kevent_deadline *until);
bool kevent_deadline_is_past(const struct kevent_deadline *until);
bool kevent_deadline_bring_forward(struct kevent_deadline *until, u64 ns);
bool kevent_block_until(const struct kevent_deadline *until);
void kevent_freeze(void);
void __kevent_recheck_signals(void);

/* Has the current thread a signal? A thread that is to be frozen has the same mark. */
static inline bool kevent_is_interrupted(void)
{
	if (likely(!signal_pending(current)))
		return false;
	/* Pairs with the lock of fake_signal_wake_up(): that a task freezes is known first. */
	smp_rmb();
	return !freezing(current);
}

/*
 * The current thread was awake, maybe for the freezer, which marks a thread as for a
 * signal. If it is thawed before it has seen the mark, the mark is left, and means nothing.
 * No locks held.
 */
static inline void kevent_recheck_signals(void)
{
	if (unlikely(signal_pending(current)))
		__kevent_recheck_signals();
}

/* Read the timeout of a caller. @until has its clock, and receives the rest. */
static inline int kevent_deadline_get(struct kevent_deadline *until, struct kevent_timeout t)
{
	until->at = KTIME_MAX;
	until->slack = current->timer_slack_ns;
	until->span = KTIME_MAX;
	until->nowait = false;
	until->relative = false;
	return t.time ? kevent_deadline_read(until, t) : 0;
}

/* A consumer has found nothing. Few do, so the clock is read only here. */
static inline void kevent_deadline_start(struct kevent_deadline *until)
{
	if (!until->nowait && until->at != KTIME_MAX)
		kevent_deadline_start_clock(until);
}

/* Sleep; the caller has set its state, not TASK_FREEZABLE. Returns whether the time is over. */
static inline bool kevent_schedule(const struct kevent_deadline *until)
{
	if (until->at != KTIME_MAX)
		return kevent_block_until(until);
	schedule();
	return false;
}

#endif /* _KEVENT_DEADLINE_H */
