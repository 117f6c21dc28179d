// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX timers whose expiries go to a queue: SIGEV_KEVENT
 *
 * timer_create() adds the watch. A timer and its watch point at each other.
 * The one that goes first clears both pointers under it_lock, and both objects are
 * freed a grace period after that:
 *
 * - A task that holds it_lock and sees k_itimer.it_notify_data has a watch, and
 *   its queue, that detach() has not left.
 * - A task that comes from the watch loads its pointer under RCU, takes it_lock,
 *   and checks whether the timer still points back.
 *
 * An expiry only makes the watch ready. collect() counts expiries and restarts an
 * interval timer, as dequeue_signal() does for signals. it_lock is taken before
 * ready_lock.
 */

#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/kevent.h>
#include <linux/posix-timers.h>
#include <linux/sched.h>

#include "../core/source.h"

/**
 * struct kevent_posix_timer - a watch of a POSIX timer
 * @kk:		the watch, found by the timer's process and id
 * @timer:	written under it_lock, read under RCU: the timer, or NULL
 * @fired:	protected by it_lock: an expiry has not been counted
 * @pending:	R: expirations counted and not delivered
 */
struct kevent_posix_timer {
	struct kevent_keyed	kk;
	struct k_itimer __rcu	*timer;
	bool			fired;
	u64			pending;
};

/**
 * struct kevent_posix_request - what timer_create() passes to attach()
 * @uk:		the request
 * @timer:	the timer, not valid yet
 */
struct kevent_posix_request {
	struct ukevent		uk;
	struct k_itimer		*timer;
};

#define to_posix_timer(watch)	container_of(watch, struct kevent_posix_timer, kk.ke)

/* Ids are of a process, a queue may have several. */
static u64 ev_posix_timer_key(const struct ukevent *uk)
{
	return (u64)task_tgid_nr(current) << 32 | uk->id.raw[0];
}

static int ev_posix_timer_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event != KEVENT_POSIX_TIMER_FIRED || uk->id.raw[1])
		return -EINVAL;
	return 0;
}

static void ev_posix_timer_unlink(struct k_itimer *timer, struct kevent *ke)
{
	WRITE_ONCE(timer->it_notify_data, NULL);
	RCU_INIT_POINTER(to_posix_timer(ke)->timer, NULL);
}

/*
 * An interval timer is started again when its event is collected, and stays
 * stopped if it has no watch any more.
 */
static void ev_posix_timer_expired(struct k_itimer *timer)
{
	struct kevent *ke = timer->it_notify_data;

	lockdep_assert_held(&timer->it_lock);

	if (!ke)
		return;
	to_posix_timer(ke)->fired = true;
	kevent_recheck(ke);
}

/* Drops what has expired and is not delivered. */
static void ev_posix_timer_reset(struct k_itimer *timer)
{
	struct kevent *ke = timer->it_notify_data;

	lockdep_assert_held(&timer->it_lock);

	if (!ke)
		return;
	to_posix_timer(ke)->fired = false;
	guard(spinlock_irqsave)(&ke->queue->ready_lock);
	WRITE_ONCE(to_posix_timer(ke)->pending, 0);
	kevent_forget(ke);
}

/* Removes the watch. Expiries that are not delivered are dropped. */
static void ev_posix_timer_release(struct k_itimer *timer)
{
	bool mine = false;
	struct kevent *ke;

	if (!READ_ONCE(timer->it_notify_data))
		return;
	/* Unlinked and killed by another, it may be freed from then on. */
	rcu_read_lock();
	scoped_guard(spinlock_irqsave, &timer->it_lock) {
		ke = timer->it_notify_data;
		if (ke) {
			ev_posix_timer_unlink(timer, ke);
			mine = kevent_kill_one(ke, false);
		}
	}
	rcu_read_unlock();
	if (mine)
		kevent_bury(ke, false);
}

static const struct posix_timer_notify ev_posix_timer_notify = {
	.expired	= ev_posix_timer_expired,
	.reset		= ev_posix_timer_reset,
	.release	= ev_posix_timer_release,
};

/* Only timer_create() passes the queue's file; a program's ADD is refused. */
static int ev_posix_timer_attach(struct kevent *ke, const struct ukevent *uk,
				 struct file *file)
{
	struct kevent_posix_timer *kp = to_posix_timer(ke);
	struct k_itimer *timer;
	int err;

	memset_after(kp, 0, kk);
	if (!file)
		return -EINVAL;
	err = kevent_key_link(to_kevent_keyed(ke));
	if (err)
		return err;
	timer = container_of(uk, struct kevent_posix_request, uk)->timer;
	guard(spinlock_irqsave)(&timer->it_lock);
	timer->it_notify_data = ke;
	timer->it_notify = &ev_posix_timer_notify;
	rcu_assign_pointer(kp->timer, timer);
	return 0;
}

static void ev_posix_timer_detach(struct kevent *ke)
{
	struct kevent_posix_timer *kp = to_posix_timer(ke);
	struct k_itimer *timer;

	guard(rcu)();
	timer = rcu_dereference(kp->timer);
	if (!timer)
		return;
	guard(spinlock_irqsave)(&timer->it_lock);
	if (timer->it_notify_data == ke)
		ev_posix_timer_unlink(timer, ke);
}

/* The watch is claimed: only settime, which takes it_lock, clears @pending. */
static int ev_posix_timer_collect(struct kevent *ke, bool atomic)
{
	struct kevent_posix_timer *kp = to_posix_timer(ke);
	struct k_itimer *timer;
	u64 nr;

	/* it_lock comes before ready_lock. */
	if (atomic)
		return -EAGAIN;
	guard(rcu)();
	timer = rcu_dereference(kp->timer);
	if (!timer)
		return 0;
	guard(spinlock_irqsave)(&timer->it_lock);
	/* Without it_signal the timer is not created yet, or deleted. */
	if (timer->it_notify_data == ke && timer->it_signal && kp->fired) {
		kp->fired = false;
		nr = posixtimer_take_expiries(timer);
		guard(spinlock)(&ke->queue->ready_lock);
		WRITE_ONCE(kp->pending, kp->pending + nr);
	}
	return READ_ONCE(kp->pending) ? KEVENT_POSIX_TIMER_FIRED : 0;
}

static void ev_posix_timer_fill(struct kevent *ke, struct ukevent *uk)
{
	struct kevent_posix_timer *kp = to_posix_timer(ke);
	u64 overrun = kp->pending ? kp->pending - 1 : 0;

	uk->ret_data[0] = lower_32_bits(overrun);
	uk->ret_data[1] = upper_32_bits(overrun);
}

static void ev_posix_timer_delivered(struct kevent *ke)
{
	WRITE_ONCE(to_posix_timer(ke)->pending, 0);
}

const struct kevent_source_ops kevent_posix_timer_ops = {
	.name		= "posix_timer",
	.size		= sizeof(struct kevent_posix_timer),
	.check		= ev_posix_timer_check,
	.key		= ev_posix_timer_key,
	.attach		= ev_posix_timer_attach,
	.detach		= ev_posix_timer_detach,
	.collect	= ev_posix_timer_collect,
	.fill		= ev_posix_timer_fill,
	.delivered	= ev_posix_timer_delivered,
};

/* Have the expiries of a timer, which is not valid yet, go to the queue @fd. */
int kevent_posix_timer_create(struct k_itimer *timer, int fd)
{
	struct kevent_posix_request req = {
		.uk.id.raw	= { timer->it_id },
		.uk.type	= KEVENT_POSIX_TIMER,
		.uk.event	= KEVENT_POSIX_TIMER_FIRED,
		.timer		= timer,
	};

	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	if (!is_kevent_file(fd_file(f)))
		return -EINVAL;
	if (kevent_refuses_type(fd_file(f)->private_data, KEVENT_POSIX_TIMER))
		return -EPERM;
	req.uk.ptr = (uintptr_t)timer->sigq->info.si_value.sival_ptr;
	return PTR_ERR_OR_ZERO(kevent_add(fd_file(f)->private_data,
					  &kevent_posix_timer_ops, &req.uk,
					  BORROWED_FD(fd_file(f))));
}
