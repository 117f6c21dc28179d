// SPDX-License-Identifier: GPL-2.0
/*
 * Signals to the process that adds the watch
 *
 * A signal that is sent must not pay for watches of other signals or processes. A watch is
 * linked to a list of its signal, under the siglock. The lists of a process are one
 * object, which host_signals() finds from its first watch to its last:
 * the hooks make one load where there is none, and a signal that is sent touches its own
 * watches, at most 16. The siglock belongs to a task, so the watch keeps the struct pid of
 * its process: ev_signal_detach() goes from there to a task and its sighand, and finds
 * none only if the process is gone. Nothing else of the process is touched from outside.
 * The process drops its watches itself, in do_exit() after the last thread and in exec
 * after de_thread(), when no thread is left that could add one. It also unlinks watches
 * that another task has killed: their detach() finds nothing to do.
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
 * Those that may neither fail nor be lost use the room of the watch when there is no
 * memory.
 *
 * A watch that consumes may find a signal that is pending, from before ADD or MODIFY. Then
 * it does what a signalfd does: a task of the process that added it takes the signal when
 * it collects events, for all watches of that process that consume. A host that is no part
 * of the kernel sees each signal when it is pending already, and tells such watches of it.
 * A signal that a handler of the process got is offered to them by the handler: see
 * ev_signal_post().
 */

#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/slab.h>

#include "../core/source.h"
#include "../host_signal.h"

/*
 * Watches of one signal to one process, in all queues. The sender of the signal goes
 * through them with interrupts off, and takes the lock of each queue.
 */
#define KEVENT_MAX_PER_SIGNAL	16U

/* Signals that a watch keeps at most of those that were pending, or came to a handler */
#define KEVENT_SIGNAL_MAX_KEPT	65536U

/* What the CPU can make of an instruction; as in dequeue_signal(). */
#define FAULTS	(rt_sigmask(SIGSEGV) | rt_sigmask(SIGBUS) |		\
		 rt_sigmask(SIGILL) | rt_sigmask(SIGTRAP) |		\
		 rt_sigmask(SIGFPE) | rt_sigmask(SIGSYS))

/*
 * What the terminal sends to a process that may not use it now. The process tries
 * again at once, and would not stop trying if the signal had no effect.
 */
#define STOPS_AT_TTY	(rt_sigmask(SIGTTIN) | rt_sigmask(SIGTTOU))

/**
 * struct kevent_siginfo - a signal, as its event will describe it
 * @link:	in &kevent_signal.infos
 * @ucounts:	who is charged for it, if it @counts as a pending signal
 * @id:		as in the event
 * @timer:	the POSIX timer it comes from, or -1
 * @code:	si_code
 * @value:	si_int, or 0
 * @counts:	in RLIMIT_SIGPENDING
 */
struct kevent_siginfo {
	struct list_head	link;
	struct ucounts		*ucounts;
	u64			id;
	int			timer;
	int			code;
	int			value;
	bool			counts;
};

/* What kmalloc() takes for one that is not delivered yet */
#define EV_SIGINFO_BYTES	roundup_pow_of_two(sizeof(struct kevent_siginfo))

/**
 * struct kevent_signals - all watches of signals to one process
 * @host:	S: what host_signals() finds it by
 * @watched:	S: bit n - 1 is set when @of[n - 1] has watches; never 0
 * @of:		S: by signal, up to %KEVENT_MAX_PER_SIGNAL in each
 *
 * The process has it from its first watch to the end of the last one. Each watch is
 * charged for it: any of them may be left alone.
 */
struct kevent_signals {
	struct host_signals	host;
	u64			watched;
	struct hlist_head	of[_NSIG];
};

/**
 * struct kevent_signal - a watch of one signal to one process
 * @kk:		the watch, found by its signal
 * @node:	S: in &kevent_signals.of
 * @tgid:	I: the process
 * @next:	S: memory for the signal that is being sent
 * @asked:	S: the watch may take that signal
 * @infos:	R: signals not yet delivered, oldest first. Senders make it long,
 *		as far as RLIMIT_SIGPENDING of the process and
 *		fs.kevent.max_user_bytes let them
 * @nr:		R: how many
 * @consume:	R: %KEVENT_SIGNAL_NOMASK
 * @own_used:	R: @own is in @infos
 * @marked:	R: a mark by %KEVENT_CTL_READY, without a signal
 * @told:	R: a signal that it may consume was pending. Set and cleared under S as well,
 *		by who sends one, and by who sees that none is left
 * @own:	one that takes no memory and no charge
 *
 * S is the siglock of the process, whose order is siglock > ready_lock. The
 * watch is unlinked before the process, or the program it executes, ends: see
 * kevent_drop_signals(). What has a siglock is found by @tgid until then, and
 * nothing of the process is touched later.
 */
struct kevent_signal {
	struct kevent_keyed	kk;
	struct hlist_node	node;
	struct pid		*tgid;
	struct kevent_siginfo	*next;
	bool			asked;
	struct list_head	infos;
	u32			nr;
	bool			consume;
	bool			own_used;
	bool			marked;
	bool			told;
	struct kevent_siginfo	own;
};

/**
 * struct kevent_sent - a signal on its way
 * @t:		to this task or its process
 * @sig:	the signal
 * @fault:	what the task does now caused it, so it must be delivered
 * @must_keep:	it fails if it cannot be kept
 * @taken:	it was pending, and is not any more
 * @info:	what the event will say
 */
struct kevent_sent {
	struct task_struct	*t;
	int			sig;
	bool			fault;
	bool			must_keep;
	bool			taken;
	struct kevent_siginfo	info;
};

static struct kevent_signal *to_signal(struct kevent *ke)
{
	return container_of(ke, struct kevent_signal, kk.ke);
}

static u64 signo_of(const struct ukevent *uk)
{
	const u64 bits = KEVENT_SIGNAL_NOMASK |
			 (HOST_SIGNALS_FIRST ? 0 : KEVENT_SIGNAL_POSTED);

	return uk->id.raw_u64 & ~bits;
}

static int ev_signal_check(const struct ukevent *uk, struct file *file)
{
	u64 sig = signo_of(uk);

	if (uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	if (sig < 1 || sig > _NSIG || sig_kernel_only(sig))
		return -EINVAL;
	if (uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK &&
	    siginmask(sig, STOPS_AT_TTY))
		return -EINVAL;
	if (HOST_SIGNALS_FIRST)
		return 0;
	switch (uk->id.raw_u64 & (KEVENT_SIGNAL_NOMASK | KEVENT_SIGNAL_POSTED)) {
	case KEVENT_SIGNAL_NOMASK:
		return -ENOSYS;
	case KEVENT_SIGNAL_POSTED:
		return -EINVAL;
	default:
		return 0;
	}
}

/* It does not change but in exec, when no other thread is left. */
static spinlock_t *ev_signal_own_lock(void)
{
	return &rcu_dereference_protected(current->sighand, true)->siglock;
}

static int ev_signal_join(struct kevent_signal *ks, struct kevent_signals *all)
{
	struct hlist_head *head = &all->of[ks->kk.id - 1];
	struct hlist_node *other;
	u32 nr = 0;

	lockdep_assert_held(ev_signal_own_lock());

	hlist_for_each(other, head)
		nr++;
	if (nr >= KEVENT_MAX_PER_SIGNAL)
		return -ENOSPC;
	hlist_add_head(&ks->node, head);
	all->watched |= BIT_ULL(ks->kk.id - 1);
	return 0;
}

static int ev_signal_link(struct kevent_signal *ks)
{
	struct kevent_signals *room = kzalloc(sizeof(*room), GFP_KERNEL_ACCOUNT);
	struct signal_struct *signal = current->signal;
	spinlock_t *lock = ev_signal_own_lock();
	int err;

	if (!room)
		return -ENOMEM;
	spin_lock_irq(lock);
	if (!host_signals(signal)) {
		host_signals_add(signal, room);
		room = NULL;
	}
	err = ev_signal_join(ks, host_signals(signal));
	spin_unlock_irq(lock);
	kfree(room);
	return err;
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

static void ev_signal_take(struct kevent_signal *ks);

static int ev_signal_attach(struct kevent *ke, const struct ukevent *uk,
			    struct file *file)
{
	struct kevent_signal *ks = to_signal(ke);
	int err;

	memset_after(ks, 0, kk);
	INIT_LIST_HEAD(&ks->infos);
	ks->consume = uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK;
	ks->tgid = get_pid(task_tgid(current));
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

	guard(rcu)();
	/* A leader that another thread replaces by exec may be gone alone. */
	do
		t = pid_task(ks->tgid, PIDTYPE_TGID);
	while (t && !ev_signal_unlink(ks, t));
}

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

static void ev_signal_destroy(struct kevent *ke)
{
	struct kevent_signal *ks = to_signal(ke);
	struct kevent_siginfo *info, *next;

	list_for_each_entry_safe(info, next, &ks->infos, link) {
		ev_signal_free_info(ks, info);
		host_close_pause();
	}
	put_pid(ks->tgid);
}

static void ev_signal_modified(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_signal *ks = to_signal(ke);

	ks->consume = uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK;
	ks->told &= ks->consume;
	/* What KEVENT_REQ_DISPATCH has held back */
	if (ks->nr)
		kevent_ready_locked(ke, KEVENT_SIGNAL_DELIVERY);
}

/*
 * Another process that has the queue could turn an observed signal into a
 * consumed one, or have one delivered that the process relies on to be consumed.
 */
static bool ev_signal_may_change(const struct kevent *ke)
{
	return container_of(ke, struct kevent_signal, kk.ke)->tgid ==
	       task_tgid(current);
}

static u32 ev_signal_count(struct kevent *ke)
{
	const struct kevent_signal *ks = to_signal(ke);

	return ks->nr + ks->marked + ks->told;
}

static struct kevent_siginfo *ev_signal_oldest(struct kevent_signal *ks)
{
	return list_first_entry_or_null(&ks->infos, struct kevent_siginfo, link);
}

static void ev_signal_fill(struct kevent *ke, struct ukevent *uk)
{
	struct kevent_signal *ks = to_signal(ke);
	struct kevent_siginfo *info = ev_signal_oldest(ks);

	uk->id.raw_u64 = ks->kk.id;
	uk->ret_data[0] = 0;
	if (!info)
		return;
	uk->id.raw_u64 = info->id;
	uk->ret_data[0] = info->code;
	uk->ret_data[1] = info->value;
}

static void ev_signal_delivered(struct kevent *ke)
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

/* What was pending has been counted when it was sent. */
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

static bool ev_signal_is_armed(const struct kevent_signal *ks)
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

/* What has become pending was offered to those that observe, and is taken by the others. */
static bool ev_signal_is_for(const struct kevent_signal *ks,
			     const struct kevent_sent *sent)
{
	if (sent->taken)
		return ks->consume;
	return HOST_SIGNALS_FIRST || sent->fault || !ks->consume;
}

/* Returns -EAGAIN when the signal cannot be kept. */
static int ev_signal_reserve(struct kevent_signal *ks,
			     const struct kevent_sent *sent)
{
	guard(spinlock_irqsave)(&ks->kk.ke.queue->ready_lock);
	ks->asked = ev_signal_is_armed(ks) && ev_signal_is_for(ks, sent);
	if (!ks->asked || sent->sig < SIGRTMIN || ev_signal_repeats(ks, sent))
		return 0;
	if (sent->taken && !ks->own_used)
		return 0;
	ks->next = ev_signal_room(ks, sent);
	return ks->next || !sent->must_keep ? 0 : -EAGAIN;
}

static void ev_signal_release(struct kevent_signal *ks)
{
	if (ks->next)
		ev_signal_free_info(ks, ks->next);
	ks->next = NULL;
	ks->asked = false;
}

static void ev_signal_append(struct kevent_signal *ks,
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
 * that changes the watch next finds what it has consumed.
 */
static bool ev_signal_offer(struct kevent_signal *ks,
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

static void ev_signal_describe(struct kevent_sent *sent,
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

/* A signal is pending. */
static void ev_signal_tell(struct kevent_signal *ks)
{
	guard(kevent_queue)(ks->kk.ke.queue);
	ks->told = true;
	kevent_recheck_locked(&ks->kk.ke);
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
	hlist_for_each_entry(ks, watches, node) {
		if (HOST_SIGNALS_FIRST)
			consumed |= ev_signal_offer(ks, &sent, true);
		else if (ks->consume)
			ev_signal_tell(ks);
	}
	if (consumed && sig == SIGALRM)
		ev_signal_restart_itimer(t->signal);
	return consumed;
}

/*
 * Have watches observe a signal, or forget it if it has @failed. The arguments are those of
 * __kevent_signal_begin(), and the siglock is held since.
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
	hlist_for_each_entry(ks, watches, node)
		if (failed)
			ev_signal_release(ks);
		else
			ev_signal_offer(ks, &sent, false);
}

/* Pending signals */

/* Offer a signal that is not pending any more to the watches of the current process. */
static bool ev_signal_share(struct kevent_sent *sent)
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
	}
	return taken;
}

/*
 * May a signal be taken for the watch? No other one is sent until the siglock is released, so
 * what is pending has come before the answer.
 */
static bool ev_signal_wants(struct kevent_signal *ks)
{
	guard(spinlock_irqsave)(&ks->kk.ke.queue->ready_lock);
	return ks->consume && !ks->nr && ev_signal_is_armed(ks);
}

static bool ev_signal_is_pending(int sig)
{
	return sigismember(&current->pending.signal, sig) ||
	       sigismember(&current->signal->shared_pending.signal, sig);
}

/*
 * Take a signal of the current process. What dequeues one may release the siglock when it
 * has it: the watch that wanted it gets it in any case, as if nobody had changed it since.
 */
static void ev_signal_take(struct kevent_signal *ks)
{
	struct kevent_sent sent = { .t = current, .sig = ks->kk.id, .taken = true };
	struct kernel_siginfo si;
	enum pid_type type;
	sigset_t others;
	bool found;

	sigfillset(&others);
	sigdelset(&others, sent.sig);
	guard(spinlock_irq)(ev_signal_own_lock());
	if (hlist_unhashed(&ks->node) || !ev_signal_wants(ks))
		return;
	found = dequeue_signal(&others, &si, &type);
	if (found) {
		ev_signal_describe(&sent, &si, false);
		ev_signal_share(&sent);
	}
	guard(kevent_queue)(ks->kk.ke.queue);
	if (found && !ks->nr)
		ev_signal_append(ks, &sent, KEVENT_SIGNAL_NOMASK);
	ks->told = ev_signal_is_pending(sent.sig);
}

static int ev_signal_collect(struct kevent *ke, bool atomic)
{
	struct kevent_signal *ks = to_signal(ke);

	if (atomic) {
		if (ks->nr || ks->marked)
			return KEVENT_SIGNAL_DELIVERY;
		if (!ks->consume)
			return 0;
		return ev_signal_may_change(ke) ? -EAGAIN : -EXDEV;
	}
	ev_signal_take(ks);
	guard(spinlock_irqsave)(&ke->queue->ready_lock);
	return ks->nr || ks->marked ? KEVENT_SIGNAL_DELIVERY : 0;
}

static int ev_signal_mark(struct kevent *ke, const struct ukevent *uk, void **room)
{
	if (uk->event && uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	to_signal(ke)->marked = true;
	ke->ready |= KEVENT_SIGNAL_DELIVERY;
	return 0;
}

/*
 * A handler of the current process got a signal: its watches that consume may have it. @uk
 * is what its event says. Returns 0, -ENOENT when none wants it, or -EINVAL.
 */
static int ev_signal_post(const struct ukevent *uk)
{
	struct kevent_sent sent = {
		.t = current,
		.sig = uk->id.raw[0],
		.taken = true,
		.info = {
			.id = uk->id.raw_u64 & ~KEVENT_SIGNAL_NOMASK,
			.timer = -1,
			.code = uk->ret_data[0],
			.value = uk->ret_data[1],
		},
	};

	if (!valid_signal(uk->id.raw[0]) || !sent.sig)
		return -EINVAL;
	guard(spinlock_irq)(ev_signal_own_lock());
	return ev_signal_share(&sent) ? 0 : -ENOENT;
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

const struct kevent_source_ops kevent_signal_ops = {
	.name		= "signal",
	.pins		= roundup_pow_of_two(sizeof(struct kevent_signals)),
	.size		= sizeof(struct kevent_signal),
	.check		= ev_signal_check,
	.key		= signo_of,
	.attach		= ev_signal_attach,
	.detach		= ev_signal_detach,
	.destroy	= ev_signal_destroy,
	.modified	= ev_signal_modified,
	.may_change	= ev_signal_may_change,
	.collect	= ev_signal_collect,
	.count		= ev_signal_count,
	.fill		= ev_signal_fill,
	.delivered	= ev_signal_delivered,
	.mark		= ev_signal_mark,
	.post		= HOST_SIGNALS_FIRST ? NULL : ev_signal_post,
};
