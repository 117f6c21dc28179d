// SPDX-License-Identifier: GPL-2.0
/*
 * Signals that are pending, and taken by watches that consume. A signal that is being sent is
 * consumed by __kevent_signal_begin() of signal.c.
 *
 * A signal is pending from before ADD or MODIFY, or because the host is told of it when it is:
 * see signal.c. Only tasks of the process can take it. One that collects and is of another
 * process passes the watch by, which is then on no list: kevent_ask() finds it for the others.
 */

#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>

#include "../core/wake.h"
#include "signal_kept.h"
#include "signal_pending.h"

static bool ev_signal_is_pending(struct task_struct *t, int sig)
{
	return sigismember(&t->pending.signal, sig) ||
	       sigismember(&t->signal->shared_pending.signal, sig);
}

/* A signal was sent to @t or its process. It is not pending if a watch has consumed it. */
void ev_signal_tell(struct kevent_signal *ks, struct task_struct *t)
{
	if (!ev_signal_is_pending(t, ks->kk.id))
		return;
	guard(kevent_queue)(ks->kk.ke.queue);
	if (!ks->consume)
		return;
	ks->told = true;
	ks->of_thread |= sigismember(&t->pending.signal, ks->kk.id);
	kevent_recheck_locked(&ks->kk.ke);
}

/* Offer a signal that is not pending any more to the watches of the current process. */
bool ev_signal_share(struct kevent_sent *sent)
{
	struct kevent_signals *all = host_signals(current->signal);
	struct kevent_signal *ks;
	bool taken = false;

	lockdep_assert_held(ev_signal_own_lock());

	if (!all)
		return false;
	hlist_for_each_entry(ks, &all->of[sent->sig - 1], node) {
		ev_signal_reserve(ks, sent);
		taken |= ev_signal_offer(ks, sent, true);
		/* It may have been modified in between, and have taken nothing. */
		ev_signal_release(ks);
		guard(spinlock_irqsave)(&ks->kk.ke.queue->ready_lock);
		ks->told &= ks->of_thread || ev_signal_is_pending(current, sent->sig);
	}
	return taken;
}

/*
 * Take a signal of the current process. dequeue_signal() may release the siglock after it
 * has taken a signal. The watch gets the signal in any case, as if nobody had changed the
 * watch since.
 */
void ev_signal_take(struct kevent_signal *ks)
{
	struct kevent_sent sent = { .t = current, .sig = ks->kk.id, .taken = true };
	struct kernel_siginfo si;
	enum pid_type type;
	sigset_t others;
	bool found;

	sigfillset(&others);
	sigdelset(&others, sent.sig);
	guard(spinlock_irq)(ev_signal_own_lock());
	if (hlist_unhashed(&ks->node))
		return;
	/* No other signal is sent with siglock held: what is pending has come before this. */
	scoped_guard(spinlock_irqsave, &ks->kk.ke.queue->ready_lock)
		if (!ks->consume || ks->nr || !ev_signal_is_armed(ks))
			return;
	found = dequeue_signal(&others, &si, &type);
	if (found) {
		ev_signal_describe(&sent, &si, false);
		ev_signal_share(&sent);
	}
	guard(kevent_queue)(ks->kk.ke.queue);
	if (found && !ks->nr)
		ev_signal_append(ks, &sent, KEVENT_SIGNAL_NOMASK);
	ks->told = ev_signal_is_pending(current, sent.sig);
	/* The thread that has one may sleep: it asks before it sleeps on. */
	if (ks->of_thread)
		kevent_ask_all(ks->kk.ke.queue);
	ks->of_thread = false;
}

/*
 * The current task has signals pending that watches consume. The watches of its process are
 * looked at next. Each can take one, so that the caller does not come here for ever. One that
 * keeps a signal, or is disarmed, is looked at when that is over, and the current task, which
 * may sleep by then, is woken.
 */
static void ev_signal_ask(struct kevent_queue *q)
{
	struct kevent_signal *ks;

	hlist_for_each_entry(ks, &q->takers, taker) {
		if (!ks->consume || !ev_signal_is_pending(current, ks->kk.id) ||
		    !ev_signal_may_change(&ks->kk.ke))
			continue;
		if (!ks->nr && ev_signal_is_armed(ks)) {
			kevent_recheck_locked(&ks->kk.ke);
			/* It is looked at when that task is done, by any thread. */
			ks->of_thread |= kevent_is_claimed(&ks->kk.ke);
			continue;
		}
		ks->told = true;
		ks->of_thread = true;
	}
}

/* Under ready_lock. */
void ev_signal_consume(struct kevent_signal *ks, bool consume)
{
	struct kevent_queue *q = ks->kk.ke.queue;

	if (consume != ks->consume) {
		/* It was not told of what is pending. */
		ks->told = consume;
		ks->of_thread = consume;
	}
	ks->consume = consume;
	if (!consume)
		return;
	if (hlist_unhashed(&ks->taker))
		hlist_add_head(&ks->taker, &q->takers);
	q->ask = ev_signal_ask;
	q->consumes |= BIT_ULL(ks->kk.id - 1);
}

int ev_signal_collect(struct kevent *ke, bool atomic)
{
	struct kevent_signal *ks = to_signal(ke);

	if (atomic) {
		if (ks->nr || ks->marked)
			return KEVENT_SIGNAL_DELIVERY;
		if (!ks->consume)
			return 0;
		if (ev_signal_may_change(ke))
			return -EAGAIN;
		/* Tasks of its process can look. Each asks before it sleeps on. */
		kevent_ask_all(ke->queue);
		return 0;
	}
	ev_signal_take(ks);
	guard(spinlock_irqsave)(&ke->queue->ready_lock);
	return ks->nr || ks->marked ? KEVENT_SIGNAL_DELIVERY : 0;
}
