/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of kevent in core files
 */
#ifndef _LINUX_KEVENT_H
#define _LINUX_KEVENT_H

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

struct k_itimer;
struct path;
struct sock;

#ifdef CONFIG_KEVENT

extern const struct file_operations kevent_fops;
void __kevent_flush(struct file *file, fl_owner_t table);

/**
 * is_kevent_file - is this what kevent_init() returns a descriptor of?
 * @file: any file
 */
static inline bool is_kevent_file(const struct file *file)
{
	return file->f_op == &kevent_fops;
}

/* Has a file a watch? Looks without a lock. */
static inline bool is_kevent_watched(const struct file *file)
{
	return READ_ONCE(file->f_kevent);
}

/**
 * kevent_flush - a descriptor of @file has left the file table @table
 * @file: the file; the caller holds a reference
 * @table: the &struct files_struct the descriptor was in
 *
 * Drops the watches added through descriptors of @table that no longer refer
 * to @file. The caller has cleared the slot under &files_struct.file_lock: a
 * watch added since has seen that, see kevent_is_current().
 *
 * Every slot that is emptied leads here before its reference to the file is
 * dropped, so no file is released with a watch.
 */
static inline void kevent_flush(struct file *file, fl_owner_t table)
{
	if (unlikely(READ_ONCE(file->f_kevent)))
		__kevent_flush(file, table);
}

#else

static inline void kevent_flush(struct file *file, fl_owner_t table) {}

static inline bool is_kevent_file(const struct file *file)
{
	return false;
}

static inline bool is_kevent_watched(const struct file *file)
{
	return false;
}

#endif /* CONFIG_KEVENT */

/* For epoll, whose check against loops goes through queues */
#if defined(CONFIG_KEVENT) && defined(CONFIG_EPOLL)

struct hlist_head *kevent_nest_refs(struct file *file);
int kevent_nest_down(struct file *file, int depth);
int kevent_nest_up(struct file *file, int depth);
int kevent_nest_paths(struct file *file, int depth);
int kevent_nest_check(void);
void kevent_nest_done(void);

#else

static inline struct hlist_head *kevent_nest_refs(struct file *file)
{
	return NULL;
}

static inline int kevent_nest_down(struct file *file, int depth)
{
	return 0;
}

static inline int kevent_nest_up(struct file *file, int depth)
{
	return 0;
}

static inline int kevent_nest_paths(struct file *file, int depth)
{
	return 0;
}

static inline int kevent_nest_check(void)
{
	return 0;
}

static inline void kevent_nest_done(void) {}

#endif /* CONFIG_KEVENT && CONFIG_EPOLL */

#ifdef CONFIG_KEVENT_SOCK_DIRECT

bool kevent_wake_sock(struct wait_queue_entry *wait, struct sock *sk);

/**
 * kevent_sock_readable - a socket has data
 * @wq: its wait queue, not empty
 * @sk: the socket
 *
 * Reports to the watch that is alone in @wq, if one is. A task that joins @wq after
 * this has looked will see the data: the caller has made it visible, then executed
 * the full barrier of skwq_has_sleeper(). That pairs with kevent_modify_locked(), too:
 * who changes what the watch wants sees the data, or is seen here. Under
 * rcu_read_lock(), any context.
 *
 * Return: false when @wq has to be woken up.
 */
static inline bool kevent_sock_readable(struct socket_wq *wq, struct sock *sk)
{
	struct wait_queue_entry *wait = rcu_dereference(wq->kevent);

	return wait && READ_ONCE(wq->wait.head.next) == &wait->entry &&
	       READ_ONCE(wq->wait.head.prev) == &wait->entry &&
	       kevent_wake_sock(wait, sk);
}

#else

static inline bool kevent_sock_readable(struct socket_wq *wq, struct sock *sk)
{
	return false;
}

#endif /* CONFIG_KEVENT_SOCK_DIRECT */

#ifdef CONFIG_KEVENT_TIMER

void kevent_clock_was_set(void);
void kevent_clock_resumed(void);

#else

static inline void kevent_clock_was_set(void) {}
static inline void kevent_clock_resumed(void) {}

#endif /* CONFIG_KEVENT_TIMER */

#ifdef CONFIG_KEVENT_POSIX_TIMER

int kevent_posix_timer_create(struct k_itimer *timer, int fd);

#else

static inline int kevent_posix_timer_create(struct k_itimer *timer, int fd)
{
	return -EINVAL;
}

#endif /* CONFIG_KEVENT_POSIX_TIMER */

#ifdef CONFIG_KEVENT_SIGNAL

int __kevent_signal_begin(int sig, const struct kernel_siginfo *info,
			  struct task_struct *t, bool timer);
void __kevent_signal_end(int sig, const struct kernel_siginfo *info,
			 struct task_struct *t, bool timer, bool failed);
void __kevent_drop_signals(void);

/**
 * kevent_signal_begin - a signal is about to be sent
 * @sig: the signal
 * @info: about it, or SEND_SIG_NOINFO or SEND_SIG_PRIV
 * @t: to this task or its process; the caller holds its siglock
 * @timer: it is the expiry of a POSIX timer
 *
 * Must come before the signal is dropped for being ignored or pending. It still
 * stops and continues processes, and is kept for a child being forked, whatever
 * is returned. kevent_signal_end() must follow.
 *
 * Return: 0, 1 when a watch consumes it and it must not be queued, or -EAGAIN
 * when it cannot be kept: the sender fails. Never that for a timer.
 */
static inline int kevent_signal_begin(int sig,
				      const struct kernel_siginfo *info,
				      struct task_struct *t, bool timer)
{
	if (likely(!t->signal->kevent_signals))
		return 0;
	return __kevent_signal_begin(sig, info, t, timer);
}

/**
 * kevent_signal_end - a signal was sent, or not
 * @sig: as for kevent_signal_begin()
 * @info: as before
 * @t: as before; the caller has held its siglock since
 * @timer: as before
 * @err: 0, or what the sender gets instead
 */
static inline void kevent_signal_end(int sig, const struct kernel_siginfo *info,
				     struct task_struct *t, bool timer, int err)
{
	if (unlikely(t->signal->kevent_signals))
		__kevent_signal_end(sig, info, t, timer, err);
}

/**
 * kevent_drop_signals - drop the watches of signals to the current process
 *
 * For exec, and for the exit of the last thread: no other thread may be left
 * that could add one.
 */
static inline void kevent_drop_signals(void)
{
	if (unlikely(READ_ONCE(current->signal->kevent_signals)))
		__kevent_drop_signals();
}

#else

static inline int kevent_signal_begin(int sig,
				      const struct kernel_siginfo *info,
				      struct task_struct *t, bool timer)
{
	return 0;
}

static inline void kevent_signal_end(int sig, const struct kernel_siginfo *info,
				     struct task_struct *t, bool timer, int err)
{
}

static inline void kevent_drop_signals(void) {}

#endif /* CONFIG_KEVENT_SIGNAL */

#ifdef CONFIG_KEVENT_AIO

void __kevent_drop_chains(void);
bool kevent_opens(const struct path *path);
void __kevent_leave_limit(void);
void kevent_server_sleeping(struct task_struct *task);
void kevent_server_running(struct task_struct *task);

/**
 * kevent_drop_chains - drop the chains of calls of the current process
 *
 * For exec, and for the exit of the last thread: no other thread may be left
 * that could submit one.
 */
static inline void kevent_drop_chains(void)
{
	if (unlikely(!hlist_empty(&current->signal->kevent_crews)))
		__kevent_drop_chains();
}

/**
 * kevent_leave_limit - the current thread exits, or executes another program
 *
 * It is no consumer any more of a queue of which some may run at once.
 */
static inline void kevent_leave_limit(void)
{
	if (unlikely(current->flags & PF_KEVENT_SERVER))
		__kevent_leave_limit();
}

#else

static inline void kevent_drop_chains(void) {}
static inline void kevent_leave_limit(void) {}
static inline void kevent_server_sleeping(struct task_struct *task) {}
static inline void kevent_server_running(struct task_struct *task) {}

static inline bool kevent_opens(const struct path *path)
{
	return true;
}

#endif /* CONFIG_KEVENT_AIO */

#endif /* _LINUX_KEVENT_H */
