/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A watch of a signal, and what it keeps
 */
#ifndef _KEVENT_SIGNAL_WATCH_H
#define _KEVENT_SIGNAL_WATCH_H

#include <linux/list.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/types.h>

#include "../core/source.h"
#include "../host_signal.h"

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
 * @taker:	R: in &kevent_queue.takers, once it has consumed
 * @tgid:	I: the process
 * @next:	S: memory for the signal that is being sent
 * @asked:	S: the watch may take that signal
 * @infos:	R: signals not yet delivered, oldest first. Senders make it long, as far as
 *		RLIMIT_SIGPENDING of the process lets them, and the process itself by
 *		those it posts, up to %KEVENT_SIGNAL_MAX_KEPT. fs.kevent.max_user_bytes
 *		limits both
 * @nr:		R: how many
 * @consume:	R: %KEVENT_SIGNAL_NOMASK
 * @own_used:	R: @own is in @infos
 * @marked:	R: a mark by %KEVENT_CTL_READY, without a signal
 * @told:	R: a signal that it may consume is pending, beside those kept: who looks under S
 *		sees whether one is left for it
 * @of_thread:	R: one may be pending of a thread that has not looked. The next look of any
 *		thread wakes all
 * @own:	one that takes no memory and no charge
 *
 * S is the siglock of the process, whose order is siglock > ready_lock. The
 * watch is unlinked before the process, or the program it executes, ends: see
 * kevent_drop_signals(). Until then @tgid leads to a task that has a siglock. Nothing of the
 * process is touched later.
 */
struct kevent_signal {
	struct kevent_keyed	kk;
	struct hlist_node	node;
	struct hlist_node	taker;
	struct pid		*tgid;
	struct kevent_siginfo	*next;
	bool			asked;
	struct list_head	infos;
	u32			nr;
	bool			consume;
	bool			own_used;
	bool			marked;
	bool			told;
	bool			of_thread;
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

#define to_signal(watch)	container_of(watch, struct kevent_signal, kk.ke)

/* It does not change but in exec, when no other thread is left. */
static inline spinlock_t *ev_signal_own_lock(void)
{
	return &rcu_dereference_protected(current->sighand, true)->siglock;
}

/*
 * Another process that has the queue could turn an observed signal into a
 * consumed one, or have one delivered that the process relies on to be consumed.
 */
static inline bool ev_signal_may_change(struct kevent *ke)
{
	return to_signal(ke)->tgid == task_tgid(current);
}

#endif /* _KEVENT_SIGNAL_WATCH_H */
