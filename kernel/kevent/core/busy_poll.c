// SPDX-License-Identifier: GPL-2.0
/*
 * Busy polling: look for events, and at a device's queue, before a consumer sleeps
 *
 * The parameters and their checks are those of epoll's EPIOCSPARAMS.
 */

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/processor.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <net/busy_poll.h>
#include <net/sock.h>
#include <uapi/linux/eventpoll.h>

#include "../host.h"
#include "busy_poll.h"
#include "deadline.h"
#include "queue.h"

/* kevent_busy_note() once busy polling is on */
void kevent_busy_note_sock(struct kevent_busy *busy, const struct sock *sk)
{
	u32 id = READ_ONCE(sk->sk_napi_id);

	if (id >= MIN_NAPI_ID)
		WRITE_ONCE(busy->id, id);
}

/**
 * struct kevent_busy_waiter - a consumer that polls
 * @q: its queue
 * @c: the consumer
 */
struct kevent_busy_waiter {
	struct kevent_queue		*q;
	const struct kevent_consumer	*c;
};

/* Is there something for the consumer? Peeks, while others change the list: a hint. */
static bool kevent_busy_found(const struct kevent_busy_waiter *w)
{
	struct kevent_queue *q = w->q;

	/* The list is changed under ready_lock by plain stores: an old answer will do. */
	if (data_race(!list_empty_careful(&q->ready)) ||
	    READ_ONCE(q->wake_request))
		return true;
	return kevent_wants_ring(w->c) &&
	       (u32)READ_ONCE(q->ring.kidx) - w->c->old_kidx >= w->c->min_nr;
}

static bool kevent_busy_end(void *arg, unsigned long start)
{
	struct kevent_busy_waiter *w = arg;
	unsigned long usecs = READ_ONCE(w->q->busy.usecs) ?: host_busy_poll();

	return kevent_busy_found(w) || signal_pending(current) ||
	       !usecs || time_after(busy_loop_current_time(), start + usecs) ||
	       kevent_deadline_is_past(&w->c->until);
}

/*
 * Events come from other CPUs. Neither they nor this consumer pay for a sleep that
 * would have been short.
 */
static void kevent_busy_spin(struct kevent_busy_waiter *w)
{
	unsigned long start = busy_loop_current_time();

	if (num_online_cpus() == 1)
		return;
	while (!kevent_busy_end(w, start)) {
		cpu_relax();
		cond_resched();
	}
}

/* Forgets a device queue that brings nothing. A socket that becomes ready brings it back. */
static void kevent_busy_poll_device(struct kevent_busy_waiter *w, u32 id)
{
	struct kevent_busy *busy = &w->q->busy;

	napi_busy_loop(id, w->c->until.nowait ? NULL : kevent_busy_end, w,
		       READ_ONCE(busy->prefer),
		       READ_ONCE(busy->budget) ?: BUSY_POLL_BUDGET);
	if (!kevent_busy_found(w))
		WRITE_ONCE(busy->id, 0);
}

/* kevent_busy_wait() once busy polling is on */
void kevent_busy_wait_on(struct kevent_queue *q, const struct kevent_consumer *c)
{
	struct kevent_busy_waiter wait = {
		.q	= q,
		.c	= c,
	};
	struct kevent_busy *busy = &q->busy;
	u32 id = READ_ONCE(busy->id);

	atomic_inc(&busy->spinning);
	if (id >= MIN_NAPI_ID)
		kevent_busy_poll_device(&wait, id);
	else if (!c->until.nowait && READ_ONCE(busy->usecs))
		kevent_busy_spin(&wait);
	atomic_dec(&busy->spinning);
}

/* EPIOCSPARAMS or EPIOCGPARAMS */
long kevent_busy_ioctl(struct kevent_queue *q, unsigned int cmd,
		       unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct kevent_busy *busy = &q->busy;
	struct epoll_params params = {};

	if (cmd == EPIOCGPARAMS) {
		params.busy_poll_usecs = READ_ONCE(busy->usecs);
		params.busy_poll_budget = READ_ONCE(busy->budget);
		params.prefer_busy_poll = READ_ONCE(busy->prefer);
		return copy_to_user(user, &params, sizeof(params)) ? -EFAULT : 0;
	}
	if (copy_from_user(&params, user, sizeof(params)))
		return -EFAULT;
	if (params.__pad || params.busy_poll_usecs > S32_MAX || params.prefer_busy_poll > 1)
		return -EINVAL;
	if (params.busy_poll_budget > NAPI_POLL_WEIGHT && !capable(CAP_NET_ADMIN))
		return -EPERM;
	WRITE_ONCE(busy->usecs, params.busy_poll_usecs);
	WRITE_ONCE(busy->budget, params.busy_poll_budget);
	WRITE_ONCE(busy->prefer, params.prefer_busy_poll);
	return 0;
}
