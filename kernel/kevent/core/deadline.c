// SPDX-License-Identifier: GPL-2.0
/*
 * Until when a consumer waits
 */

#include <linux/errno.h>
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time.h>
#include <linux/timekeeping.h>
#include <linux/ukevent.h>

#include "../host.h"
#include "deadline.h"

/* The time of a clock that kevent_wait_arg.clockid may be */
ktime_t kevent_clock_now(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_get_real();
	case CLOCK_BOOTTIME:
		return ktime_get_boottime();
	case CLOCK_TAI:
		return ktime_get_clocktai();
	default:
		return ktime_get();
	}
}

/* The clock for a span of @clock, which must not change when somebody sets the time */
static clockid_t kevent_span_clock(clockid_t clock)
{
	return clock == CLOCK_BOOTTIME ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

/*
 * kevent_deadline_get() where there is a timeout. @until has all but @at, @nowait and
 * @relative. It receives another clock for a span of a clock that can be set.
 */
int kevent_deadline_read(struct kevent_deadline *until, struct kevent_timeout t)
{
	struct timespec64 ts;

	if (get_timespec64(&ts, t.time))
		return -EFAULT;
	if (!timespec64_valid(&ts))
		return -EINVAL;
	until->at = timespec64_to_ktime(ts);
	if (t.flags & KEVENT_FLAGS_ABSTIME) {
		until->at = host_timens(until->clock, until->at);
	} else {
		until->nowait = !until->at;
		until->relative = until->at;
		until->clock = kevent_span_clock(until->clock);
	}
	return 0;
}

/* kevent_deadline_start() where there is a limit */
void kevent_deadline_start_clock(struct kevent_deadline *until)
{
	ktime_t now = kevent_clock_now(until->clock);

	if (until->relative)
		until->at = ktime_add_safe(now, until->at);
	until->relative = false;
	until->nowait = ktime_compare(until->at, now) <= 0;
}

/* Is the time over? */
bool kevent_deadline_is_past(const struct kevent_deadline *until)
{
	if (until->at != KTIME_MAX &&
	    ktime_compare(kevent_clock_now(until->clock), until->at) >= 0)
		return true;
	return until->span != KTIME_MAX &&
	       ktime_compare(ktime_get(), until->span) >= 0;
}

/* Have it end @ns from now, if that is sooner. It was started. Returns true when it may be. */
bool kevent_deadline_bring_forward(struct kevent_deadline *until, u64 ns)
{
	clockid_t clock = kevent_span_clock(until->clock);
	ktime_t at;

	if (until->nowait)
		return false;
	at = ktime_add_safe(kevent_clock_now(clock),
			    ns_to_ktime(min(ns, KTIME_MAX)));
	if (until->at != KTIME_MAX && until->clock != clock) {
		until->span = at;
		return true;
	}
	if (ktime_compare(at, until->at) >= 0)
		return false;
	until->at = at;
	until->clock = clock;
	return true;
}

/* kevent_schedule() where there is a limit */
bool kevent_block_until(const struct kevent_deadline *until)
{
	bool either = until->span != KTIME_MAX, timed_out;
	struct hrtimer_sleeper end;
	ktime_t at = until->at;

	/* The timers of two clocks, since either may be the first */
	if (unlikely(either)) {
		host_sleeper_setup_on_stack(&end, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
		hrtimer_set_expires_range_ns(&end.timer, until->span, until->slack);
		hrtimer_sleeper_start_expires(&end, HRTIMER_MODE_ABS);
	}
	timed_out = !schedule_hrtimeout_range_clock(&at, until->slack, HRTIMER_MODE_ABS,
						    until->clock);
	if (unlikely(either)) {
		hrtimer_cancel(&end.timer);
		destroy_hrtimer_on_stack(&end.timer);
		timed_out |= !end.task;
	}
	return timed_out;
}

/* kevent_recheck_signals() where one is marked */
void __kevent_recheck_signals(void)
{
	struct sighand_struct *sighand =
		rcu_dereference_protected(current->sighand, true);

	if (freezing(current))
		return;
	spin_lock_irq(&sighand->siglock);
	recalc_sigpending();
	spin_unlock_irq(&sighand->siglock);
}

/*
 * The current thread is frozen, if it is to be, until it is thawed. No locks held, and on
 * no list of those who can be woken. It does not end the wait.
 */
void kevent_freeze(void)
{
	try_to_freeze();
	kevent_recheck_signals();
}
