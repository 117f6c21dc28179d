// SPDX-License-Identifier: GPL-2.0
/*
 * Signals that watches keep until they are delivered: pending ones of signal_pending.c, and those
 * that are being sent, of signal.c
 */

#include <linux/cleanup.h>
#include <linux/log2.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/slab.h>

#include "signal_kept.h"

/* A watch that keeps so many takes no more that were pending, or came to a handler. */
#define KEVENT_SIGNAL_MAX_KEPT	65536U

/* Signals that an instruction may cause: SYNCHRONOUS_MASK of kernel/signal.c */
#define FAULTS	(rt_sigmask(SIGSEGV) | rt_sigmask(SIGBUS) |		\
		 rt_sigmask(SIGILL) | rt_sigmask(SIGTRAP) |		\
		 rt_sigmask(SIGFPE) | rt_sigmask(SIGSYS))

/* Bytes that kmalloc() takes for a signal that is not delivered yet */
#define EV_SIGINFO_BYTES	roundup_pow_of_two(sizeof(struct kevent_siginfo))

static void ev_signal_free_info(struct kevent_signal *ks,
				struct kevent_siginfo *info)
{
	struct kevent_owner *owner = ks->kk.ke.queue->owner;

	if (info == &ks->own)
		return;
	if (info->counts)
		host_pending_uncharge(owner, info->ucounts);
	kevent_uncharge(owner, EV_SIGINFO_BYTES);
	kfree(info);
}

void ev_signal_destroy(struct kevent *ke)
{
	struct kevent_signal *ks = to_signal(ke);
	struct kevent_siginfo *info, *next;

	list_for_each_entry_safe(info, next, &ks->infos, link) {
		ev_signal_free_info(ks, info);
		host_close_pause();
	}
	put_pid(ks->tgid);
}

u32 ev_signal_amount(struct kevent *ke, u32 ready)
{
	const struct kevent_signal *ks = to_signal(ke);

	return ks->nr + ks->marked + ks->told;
}

static struct kevent_siginfo *ev_signal_oldest(struct kevent_signal *ks)
{
	return list_first_entry_or_null(&ks->infos, struct kevent_siginfo, link);
}

void ev_signal_fill(struct kevent *ke, struct ukevent *uk)
{
	struct kevent_signal *ks = to_signal(ke);
	struct kevent_siginfo *info = ev_signal_oldest(ks);

	uk->id.raw_u64 = ks->kk.id;
	uk->ret_data[0] = 0;
	uk->ret_data[1] = 0;
	if (!info)
		return;
	uk->id.raw_u64 = info->id;
	uk->ret_data[0] = info->code;
	uk->ret_data[1] = info->value;
}

void ev_signal_delivered(struct kevent *ke)
{
	struct kevent_signal *ks = to_signal(ke);
	struct kevent_siginfo *info = ev_signal_oldest(ks);

	if (!info) {
		ks->marked = false;
		return;
	}
	list_del(&info->link);
	ks->nr--;
	if (info == &ks->own)
		ks->own_used = false;
	ev_signal_free_info(ks, info);
}

/* Get memory for a signal. A signal that was pending was counted when it was sent. */
static struct kevent_siginfo *ev_signal_room(const struct kevent_signal *ks,
					     const struct kevent_sent *sent)
{
	bool counts = !sent->taken;
	struct kevent_owner *owner = ks->kk.ke.queue->owner;
	struct kevent_siginfo *info;
	struct ucounts *ucounts = NULL;

	if (!kevent_charge(owner, EV_SIGINFO_BYTES))
		return NULL;
	if (counts ? !host_pending_charge(owner, sent->t, &ucounts) :
		     ks->nr >= KEVENT_SIGNAL_MAX_KEPT)
		goto uncharge;
	info = kmalloc(sizeof(*info), GFP_ATOMIC | __GFP_ACCOUNT);
	if (info) {
		info->ucounts = ucounts;
		info->counts = counts;
		return info;
	}
	if (counts)
		host_pending_uncharge(owner, ucounts);
uncharge:
	kevent_uncharge(owner, EV_SIGINFO_BYTES);
	return NULL;
}

bool ev_signal_is_armed(const struct kevent_signal *ks)
{
	const u32 once = KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH;
	const struct kevent *ke = &ks->kk.ke;

	if (!kevent_is_armed(ke))
		return false;
	return !ks->nr || !(ke->req_flags & once);
}

/* Expiries of a timer merge until another signal comes. */
static bool ev_signal_repeats(const struct kevent_signal *ks,
			      const struct kevent_sent *sent)
{
	return sent->info.timer >= 0 && ks->nr &&
	       list_last_entry(&ks->infos, struct kevent_siginfo,
			       link)->timer == sent->info.timer;
}

/* Returns -EAGAIN when the signal cannot be kept, and its sender is to know. */
int ev_signal_reserve(struct kevent_signal *ks,
		      const struct kevent_sent *sent)
{
	guard(spinlock_irqsave)(&ks->kk.ke.queue->ready_lock);
	/* Only consuming watches take a pending signal: others were offered it when it was sent. */
	ks->asked = ev_signal_is_armed(ks) &&
		    (sent->taken ? ks->consume :
				   HOST_SIGNALS_FIRST || sent->fault || !ks->consume);
	if (!ks->asked || sent->sig < SIGRTMIN || ev_signal_repeats(ks, sent))
		return 0;
	if (sent->taken && !ks->own_used)
		return 0;
	ks->next = ev_signal_room(ks, sent);
	return ks->next || !sent->must_keep ? 0 : -EAGAIN;
}

void ev_signal_release(struct kevent_signal *ks)
{
	if (ks->next)
		ev_signal_free_info(ks, ks->next);
	ks->next = NULL;
	ks->asked = false;
}

void ev_signal_append(struct kevent_signal *ks,
		      const struct kevent_sent *sent, u64 nomask)
{
	struct kevent_siginfo *info = ks->next;

	lockdep_assert_held(&ks->kk.ke.queue->ready_lock);

	if (ev_signal_repeats(ks, sent) || (!info && ks->own_used))
		return;
	if (!info) {
		info = &ks->own;
		ks->own_used = true;
	}
	ks->next = NULL;
	info->id = sent->info.id | nomask;
	info->timer = sent->info.timer;
	info->code = sent->info.code;
	info->value = sent->info.value;
	list_add_tail(&info->link, &ks->infos);
	ks->nr++;
	kevent_ready_locked(&ks->kk.ke, KEVENT_SIGNAL_DELIVERY);
}

/*
 * Decide whether the watch wants the signal, and keep the signal, in one step: a task
 * that changes the watch next finds what it has consumed. Of a second signal for which there was
 * no room nothing is kept, as in a full queue of signals.
 */
bool ev_signal_offer(struct kevent_signal *ks,
		     const struct kevent_sent *sent, bool consume)
{
	bool taken;

	if (!ks->asked)
		return false;
	scoped_guard(kevent_queue, ks->kk.ke.queue) {
		taken = ev_signal_is_armed(ks) && (ks->consume || !consume);
		if (taken)
			ev_signal_append(ks, sent,
					 consume ? KEVENT_SIGNAL_NOMASK : 0);
	}
	if (taken || !consume)
		ev_signal_release(ks);
	return taken;
}

void ev_signal_describe(struct kevent_sent *sent,
			const struct kernel_siginfo *si, bool timer)
{
	struct kevent_siginfo *info = &sent->info;
	pid_t pid = 0;

	if (si == SEND_SIG_PRIV) {
		info->code = SI_KERNEL;
	} else if (si == SEND_SIG_NOINFO) {
		info->code = SI_USER;
		pid = task_tgid_nr_ns(current, task_active_pid_ns(sent->t));
	} else {
		enum siginfo_layout layout = siginfo_layout(sent->sig,
							    si->si_code);

		info->code = si->si_code;
		if (layout == SIL_KILL || layout == SIL_CHLD ||
		    layout == SIL_RT)
			pid = si->si_pid;
		if (layout == SIL_RT || layout == SIL_TIMER)
			info->value = si->si_int;
		sent->must_keep = HOST_SIGNALS_FIRST && !timer &&
				  si->si_code != SI_USER;
		sent->fault = si->si_code > SI_USER &&
			      siginmask(sent->sig, FAULTS);
	}
	info->timer = timer ? si->si_tid : -1;
	info->id = sent->sig | (u64)(pid & INT_MAX) << 32;
}
