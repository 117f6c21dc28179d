// SPDX-License-Identifier: GPL-2.0
/*
 * Signals to the process that adds the watch
 *
 * A signal that is sent must not pay for watches of other signals or processes. A watch is
 * linked to a list of its signal, under the siglock. The lists of a process are one object,
 * which host_signals() finds from its first watch to its last. The hooks make one load
 * where there is none. A signal that is sent touches its own watches, at most 16. The
 * siglock belongs to a task, so the watch keeps the struct pid of its process:
 * ev_signal_detach() goes from there to a task and its sighand, and finds none only if the
 * process is gone. Nothing else of the process is touched from outside. The process drops
 * its watches itself, in do_exit() after the last thread and in exec after de_thread(),
 * when no thread is left that could add one. It also unlinks watches that another task has
 * killed: their detach() finds nothing to do.
 *
 * The two hooks in __send_signal_locked() and send_sigqueue() run under the siglock,
 * possibly in hard interrupts, and the first may still fail. queue_signal_locked() is the
 * first without its hooks, for ptrace_signal(), which puts back a signal that has been
 * seen. A sender to a process group has a consumed signal remembered for a child that is
 * being forked, like one that is queued. So the first hook reserves memory for each watch,
 * then offers the signal to watches that consume. If none takes it, it is sent, and the
 * second hook offers it to watches that observe, or returns the memory. A watch takes a
 * signal and keeps it in one step under ready_lock: MODIFY and REMOVE come before or
 * after. So a program loses nothing if it first lets a watch observe, reads the events
 * that wait, and then removes it.
 *
 * A standard signal needs no memory: the watch has room for one that is not delivered yet,
 * and more of them merge with it. Each real-time signal is kept, in memory that is charged
 * to the receiver like that of a pending signal, and to the owner of the queue as well.
 * Signals that may neither fail nor be lost use the room of the watch when there is no
 * memory.
 *
 * A watch that consumes may find a signal that is pending, from before ADD or MODIFY. Then
 * it does what a signalfd does: a task of the process that added it takes the signal when
 * it collects events, for all watches of that process that consume. A host that is no part
 * of the kernel sees each signal when it is pending already, and tells such watches of it.
 * A signal that a handler of the process got is offered to them by the handler: see
 * host_signal_post() in kernel/module.
 */

#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/slab.h>

#include "signal_kept.h"
#include "signal_pending.h"

/*
 * Watches of one signal to one process, in all queues. The sender of the signal goes
 * through them with interrupts off, and takes the lock of each queue.
 */
#define KEVENT_MAX_PER_SIGNAL	16U

/*
 * Signals of a terminal to a process that may not use it now. The process tries
 * again at once, and would not stop trying if the signal had no effect.
 */
#define STOPS_AT_TTY	(rt_sigmask(SIGTTIN) | rt_sigmask(SIGTTOU))

static u64 signo_of(const struct ukevent *uk)
{
	const u64 bits = KEVENT_SIGNAL_NOMASK |
			 (HOST_SIGNALS_FIRST ? 0 : KEVENT_SIGNAL_POSTED);

	return uk->id.raw_u64 & ~bits;
}

static int ev_signal_check(const struct ukevent *uk, struct file *file)
{
	bool nomask = uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK;
	bool posted = uk->id.raw_u64 & KEVENT_SIGNAL_POSTED;
	u64 sig = signo_of(uk);

	if (uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	if (sig < 1 || sig > _NSIG || sig_kernel_only(sig))
		return -EINVAL;
	if (nomask && siginmask(sig, STOPS_AT_TTY))
		return -EINVAL;
	if (HOST_SIGNALS_FIRST || nomask == posted)
		return 0;
	return nomask ? -ENOSYS : -EINVAL;
}

static int ev_signal_link(struct kevent_signal *ks)
{
	struct kevent_signals *room = kzalloc(sizeof(*room), GFP_KERNEL_ACCOUNT), *all;
	struct signal_struct *signal = current->signal;
	spinlock_t *lock = ev_signal_own_lock();
	struct hlist_node *other;
	u32 nr = 0;

	if (!room)
		return -ENOMEM;
	spin_lock_irq(lock);
	if (!host_signals(signal)) {
		host_signals_add(signal, room);
		room = NULL;
	}
	all = host_signals(signal);
	hlist_for_each(other, &all->of[ks->kk.id - 1])
		nr++;
	if (nr < KEVENT_MAX_PER_SIGNAL) {
		hlist_add_head(&ks->node, &all->of[ks->kk.id - 1]);
		all->watched |= BIT_ULL(ks->kk.id - 1);
	}
	spin_unlock_irq(lock);
	kfree(room);
	return nr < KEVENT_MAX_PER_SIGNAL ? 0 : -ENOSPC;
}

/* Called under the siglock of its process. It may have left already. */
static void ev_signal_leave(struct kevent_signal *ks,
			    struct signal_struct *signal)
{
	struct kevent_signals *all = host_signals(signal);

	if (hlist_unhashed(&ks->node))
		return;
	hlist_del_init(&ks->node);
	if (hlist_empty(&all->of[ks->kk.id - 1]))
		all->watched &= ~BIT_ULL(ks->kk.id - 1);
	if (!all->watched)
		host_signals_end(signal, all);
}

static int ev_signal_attach(struct kevent *ke, const struct ukevent *uk,
			    struct file *file)
{
	struct kevent_signal *ks = to_signal(ke);
	int err;

	memset_after(ks, 0, kk);
	INIT_LIST_HEAD(&ks->infos);
	ks->tgid = get_pid(task_tgid(current));
	scoped_guard(spinlock_irqsave, &ke->queue->ready_lock)
		ev_signal_consume(ks, uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK);
	err = kevent_key_link(to_kevent_keyed(ke)) ?: ev_signal_link(ks);
	if (!err)
		ev_signal_take(ks);
	return err;
}

/* false: @t is gone */
static bool ev_signal_unlink(struct kevent_signal *ks, struct task_struct *t)
{
	struct sighand_struct *sighand;
	unsigned long flags;

	/* As lock_task_sighand(), in a way that sparse can follow */
	sighand = host_sighand_lock(t, &flags);
	if (!sighand)
		return false;
	__acquire(&sighand->siglock);
	ev_signal_leave(ks, t->signal);
	spin_unlock_irqrestore(&sighand->siglock, flags);
	return true;
}

static void ev_signal_detach(struct kevent *ke)
{
	struct kevent_signal *ks = to_signal(ke);
	struct task_struct *t;

	scoped_guard(spinlock_irqsave, &ke->queue->ready_lock)
		hlist_del_init(&ks->taker);
	guard(rcu)();
	/* A leader that another thread replaces by exec may be gone alone. */
	do
		t = pid_task(ks->tgid, PIDTYPE_TGID);
	while (t && !ev_signal_unlink(ks, t));
}

static void ev_signal_modified(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_signal *ks = to_signal(ke);

	ev_signal_consume(ks, uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK);
	/* Report signals that KEVENT_REQ_DISPATCH has held back. */
	if (ks->nr)
		kevent_ready_locked(ke, KEVENT_SIGNAL_DELIVERY);
}

/*
 * An interval timer of setitimer() goes on when its signal is dequeued, which
 * this one will not be. The tick bounds the load by a short interval.
 */
static void ev_signal_restart_itimer(struct signal_struct *signal)
{
#ifdef CONFIG_POSIX_TIMERS
	struct hrtimer *timer = &signal->real_timer;
	ktime_t now = hrtimer_cb_get_time(timer);

	if (!signal->it_real_incr || hrtimer_is_queued(timer))
		return;
	if (signal->it_real_incr < TICK_NSEC)
		now = ktime_add_ns(now, TICK_NSEC);
	hrtimer_forward(timer, now, signal->it_real_incr);
	hrtimer_restart(timer);
#endif
}

/* The caller has seen that there are watches, and has siglock since. */
static struct hlist_head *ev_signal_watches(int sig, struct task_struct *t)
{
	return &host_signals(t->signal)->of[sig - 1];
}

/*
 * Offer a signal to watches, under the siglock of @t. @info may be SEND_SIG_NOINFO or
 * SEND_SIG_PRIV. @timer: it is the expiry of a POSIX timer. Returns 0, 1 when it is
 * consumed, or -EAGAIN when it cannot be kept. __kevent_signal_end() follows.
 */
int __kevent_signal_begin(int sig, const struct kernel_siginfo *info,
			  struct task_struct *t, bool timer)
{
	struct kevent_sent sent = { .t = t, .sig = sig };
	struct kevent_signal *ks;
	struct hlist_head *watches = ev_signal_watches(sig, t);
	bool consumed = false;

	lockdep_assert_task_sighand_held(t);

	if (hlist_empty(watches) || t->signal->flags & SIGNAL_GROUP_EXIT)
		return 0;
	ev_signal_describe(&sent, info, timer);
	hlist_for_each_entry(ks, watches, node)
		if (ev_signal_reserve(ks, &sent))
			return -EAGAIN;
	if (sent.fault)
		return 0;
	hlist_for_each_entry(ks, watches, node)
		consumed |= HOST_SIGNALS_FIRST && ev_signal_offer(ks, &sent, true);
	if (consumed && sig == SIGALRM)
		ev_signal_restart_itimer(t->signal);
	return consumed;
}

/*
 * Have watches observe a signal, or take it later, or forget it if it has @failed. The arguments
 * are those of __kevent_signal_begin(), and the siglock is held since.
 */
void __kevent_signal_end(int sig, const struct kernel_siginfo *info,
			 struct task_struct *t, bool timer, bool failed)
{
	struct kevent_sent sent = { .t = t, .sig = sig };
	struct hlist_head *watches = ev_signal_watches(sig, t);
	struct kevent_signal *ks;

	lockdep_assert_task_sighand_held(t);

	if (hlist_empty(watches))
		return;
	ev_signal_describe(&sent, info, timer);
	hlist_for_each_entry(ks, watches, node) {
		if (failed)
			ev_signal_release(ks);
		else if (!ev_signal_offer(ks, &sent, false))
			ev_signal_tell(ks, t);
	}
}

/*
 * The current process or its program ends. No other thread of it is left that could add a
 * watch. The last one takes the list heads with it.
 */
void __kevent_drop_signals(void)
{
	struct kevent_signals *all;
	struct kevent_signal *ks;
	bool mine;

	for (;;) {
		scoped_guard(spinlock_irq, ev_signal_own_lock()) {
			all = host_signals(current->signal);
			if (!all)
				return;
			ks = hlist_entry(all->of[__ffs64(all->watched)].first,
					 struct kevent_signal, node);
			mine = kevent_kill_one(&ks->kk.ke, false);
			ev_signal_leave(ks, current->signal);
		}
		if (mine && !host_bury_later(&ks->kk.ke, NULL))
			kevent_bury(&ks->kk.ke, false);
		host_close_pause();
	}
}

static int ev_signal_command(struct kevent *ke, u32 cmd, const struct ukevent *uk,
			     void **room)
{
	if (!ev_signal_may_change(ke))
		return -EPERM;
	if (cmd != KEVENT_CTL_READY)
		return 0;
	if (uk->event && uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	to_signal(ke)->marked = true;
	ke->ready |= KEVENT_SIGNAL_DELIVERY;
	return KEVENT_COMMAND_DONE;
}

const struct kevent_source_ops kevent_signal_ops = {
	.name		= "signal",
	.pins		= roundup_pow_of_two(sizeof(struct kevent_signals)),
	.size		= sizeof(struct kevent_signal),
	.check		= ev_signal_check,
	.key		= signo_of,
	.attach		= ev_signal_attach,
	.detach		= ev_signal_detach,
	.destroy	= ev_signal_destroy,
	.command	= ev_signal_command,
	.modified	= ev_signal_modified,
	.collect	= ev_signal_collect,
	.amount		= ev_signal_amount,
	.fill		= ev_signal_fill,
	.delivered	= ev_signal_delivered,
};
