/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Needs of kevent in the kernel that it is in: a kernel without patches/linux
 *
 * It is included first, and takes the place of the four ../kevent/host*.h, which say what each
 * function is for. Here it is only said how.
 */
#ifndef _KEVENT_HOST_H
#define _KEVENT_HOST_H
#define _KEVENT_HOST_PAYER_H
#define _KEVENT_HOST_PROCESS_H
#define _KEVENT_HOST_SIGNAL_H

#include <linux/anon_inodes.h>
#include <linux/fdtable.h>
#include <linux/fsnotify_backend.h>
#include <linux/hash.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/pipe_fs_i.h>
#include <linux/rculist_bl.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/sysctl.h>
#include <linux/time_namespace.h>
#include <linux/user_namespace.h>
#include <linux/version.h>
#include <net/busy_poll.h>
#include <net/tcp.h>

#include "compat.h"

struct kevent;
struct kevent_file;
struct kevent_queue;
struct kevent_signals;
struct ukevent;

/* There are no system calls: ioctls of the device call the functions behind them. */
#undef SYSCALL_DEFINEx
#define SYSCALL_DEFINEx(x, name, ...)					\
	static long __maybe_unused sys##name(__MAP(x, __SC_DECL, __VA_ARGS__))

#define host_initcall(start)	extern int start(void)

/* file.c */
extern const struct file_operations kevent_fops;

static inline bool is_kevent_file(const struct file *file)
{
	return file->f_op == &kevent_fops;
}

/**
 * struct host_tag - a part of what is found by an object of the kernel: watched.c
 * @node:	at the place of the object
 * @of:		I: the address of the object
 * @rcu:	for the freeing, where the whole has no other
 */
struct host_tag {
	struct hlist_bl_node	node;
	const void		*of;
	struct rcu_head		rcu;
};

extern struct hlist_bl_head *host_tags;
extern unsigned int host_tags_bits;

static inline struct hlist_bl_head *host_tag_place(const void *of)
{
	return &host_tags[hash_ptr(of, host_tags_bits)];
}

struct host_tag *host_tag_find(const void *of);
void host_tag_add(struct host_tag *tag, const void *of);
void host_tag_remove(struct host_tag *tag);

/* The watches of a file: watched.c, later.c */

/* Only that of the first watch of a file is in use. The next member begins a cache line. */
struct host_file {
	struct host_tag		tag;
};

struct kevent_file *host_watches(struct file *file);
void host_watches_set(struct file *file, struct kevent_file *old,
		      struct kevent_file *first);
bool host_bury_later(struct kevent *ke, struct file *file);
extern void (*host_flush_needed)(void);

/* May sleep. */
static inline void host_watches_begin(struct file *file)
{
	if (unlikely(file->f_op->flush))
		host_flush_needed();
}

void __kevent_flush(struct file *file, fl_owner_t table);

/* sources/timer.c */
void kevent_clock_was_set(void);
void kevent_clock_resumed(void);

/* sources/signal.c */
int __kevent_signal_begin(int sig, const struct kernel_siginfo *info,
			  struct task_struct *t, bool timer);
void __kevent_signal_end(int sig, const struct kernel_siginfo *info,
			 struct task_struct *t, bool timer, bool failed);
void __kevent_drop_signals(void);

/*
 * May the current task let others run? In a callback of ftrace it may, unless another tracer is on
 * the function, when preemption is off. The wait for such tasks before the code is freed knows of
 * them only where there is preemption.
 */
static inline bool host_can_pause(void)
{
	return IS_ENABLED(CONFIG_PREEMPTION) && preemptible();
}

static inline void host_close_pause(void)
{
	if (host_can_pause())
		cond_resched();
}

/* Files of queues: main.c */

long host_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
loff_t host_llseek(struct file *file, loff_t pos, int whence);

/* Owners. The memory cgroup pays for the objects of all caches, one by one. */

/**
 * struct kevent_owner - an owner of queues, one object for each user
 * @tag:	of the user's number
 * @refs:	queues; under the lock of owners
 * @bytes:	what they have the kernel keep
 * @pending:	signals that they keep
 */
struct kevent_owner {
	struct host_tag		tag;
	unsigned int		refs;
	atomic_long_t		bytes;
	atomic_long_t		pending;
};

struct kevent_owner *host_owner_get(kuid_t uid);
void host_owner_put(struct kevent_owner *owner);

#define host_owner_is_root(owner)	(!(owner)->tag.of)

static inline bool host_owner_charge(struct kevent_owner *owner, size_t bytes,
				     long limit)
{
	long sum = atomic_long_read(&owner->bytes);

	do {
		if (sum > limit || bytes > limit - sum)
			return false;
	} while (!atomic_long_try_cmpxchg(&owner->bytes, &sum, sum + bytes));
	return true;
}

#define host_owner_uncharge(owner, nr)	atomic_long_sub(nr, &(owner)->bytes)
#define host_owner_bytes(owner)		((s64)atomic_long_read(&(owner)->bytes))

#define host_payer_get()			NULL
#define host_payer_get_again(payer)		(payer)
#define host_payer_charge(payer, bytes)		0
#define host_payer_uncharge(payer, bytes)	((void)(payer))
#define host_payer_put(payer)			((void)(payer))

struct kmem_cache *host_cache(const char *what, unsigned int size,
			      unsigned int align);
void host_sysctl(const char *path, struct ctl_table *table, size_t nr);

/* Sources */

#define HOST_DRIVES	1

/* With Debian's kernels a server pays for that: Documentation/notebook.rst. */
#define HOST_HOLDS	0

int driven_ioctl(struct kevent_queue *q, const struct ukevent __user *arg);

/* Queues only: nest.c */
#define HOST_NESTS	1

struct hlist_head *kevent_nest_refs(struct file *file);
int kevent_nest_down(struct file *file, int depth);
int kevent_nest_up(struct file *file, int depth);
int kevent_nest_paths(struct file *file, int depth);
int kevent_nest_check(void);
void kevent_nest_done(void);

/* The name cannot be chosen by user space. */
static inline bool host_is_anon(const struct file *file, const char *name)
{
	return file_inode(file)->i_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp(file->f_path.dentry->d_name.name, name);
}

#define host_is_epoll(file)		host_is_anon(file, "[eventpoll]")
#define host_is_uring(file)		host_is_anon(file, "[io_uring]")

/* Only pipes set i_pipe of a FIFO. Their operations are not exported. */
static inline struct pipe_inode_info *host_pipe(struct file *file)
{
	struct inode *inode = file_inode(file);

	return S_ISFIFO(inode->i_mode) ? inode->i_pipe : NULL;
}

/* From 7.3 on a pipe wakes only those who said so for each write, others when it was empty. */
#define HOST_POLL_EDGE		EPOLLET

static inline int host_pipe_peek(const struct pipe_inode_info *pipe,
				 fmode_t mode)
{
	unsigned int head;

	if (!(mode & FMODE_READ) || !READ_ONCE(pipe->writers))
		return -EAGAIN;
	/*
	 * First, as F_SETPIPE_SZ moves both down. Pipes store it plainly, and ->poll() reads
	 * it like this: nothing but whether there is something follows from it.
	 */
	head = data_race(smp_load_acquire(&pipe->head));
	if (head == READ_ONCE(pipe->tail))
		return 0;
	return (__force int)(EPOLLIN | EPOLLRDNORM);
}

int host_sock_peek(const struct socket *sock);

#define HOST_TCP_TELLS	false

#define host_tcp_tell(sock)
#define host_tcp_tell_next(sock)

extern uint host_busy_poll_usecs;

#define host_busy_poll()	((unsigned long)READ_ONCE(host_busy_poll_usecs))

/* security_path_notify() is not exported: who can read a file may watch it. */
#define host_may_notify(file, mask)	0

#define host_pin()			__module_get(THIS_MODULE)
#define host_unpin()			module_put(THIS_MODULE)

/* It ends with the module. */
extern struct workqueue_struct *host_works;

/* The current task */

/* No thread is a member of a group: the scheduler does not say when it blocks. */
#define PF_KEVENT_SERVER	0

static inline bool host_mm_in_use(void)
{
	return likely(in_task()) ||
	       (current->mm && read_cr3_pa() == __pa(current->mm->pgd));
}

/* The scheduler is not asked to place a task: a hand-off is a mark. */
#define host_handoff_begin()		((void)0)
#define host_handoff_end()		((void)0)
#define host_handoff_wanted()		false
#define host_wake_here(task)

int host_sigmask_set(void __user *mask, size_t size);
void host_sigmask_restore(bool interrupted);
ktime_t host_timens(clockid_t clock, ktime_t at);

/*
 * tasklist_lock is not exported. A task that exits sets its state, then wakes wait_pidfd: a watch
 * that has joined there sees the one or gets the other. An exec may replace the leader meanwhile.
 */
#define host_tasks_lock()		rcu_read_lock()
#define host_tasks_unlock()		rcu_read_unlock()
#define host_tasks_assert()

/* ptrace_may_access() is not exported. Parents may know anyway. */
#define host_may_read_stat(task)	ns_capable_noaudit(&init_user_ns, CAP_SYS_PTRACE)
/* The capability is enough. */
#define host_is_dumpable(task)		false

struct pid *host_pidfd_pid(unsigned int fd);

/* Signals: watched.c, signals.c, host.c */

/* A signal is shown when it is pending. */
#define HOST_SIGNALS_FIRST	false

/* The tag comes first in a &struct kevent_signals, too. */
struct host_signals {
	struct host_tag		tag;
};

#define host_signals(signal)						\
	((struct kevent_signals *)host_tag_find(signal))
#define host_signals_add(signal, all)	host_tag_add(&(all)->host.tag, signal)
#define host_signals_end(signal, all)					\
do {									\
	host_tag_remove(&(all)->host.tag);				\
	kfree_rcu(all, host.tag.rcu);					\
} while (0)

/* Not exported where there is lockdep */
#define lockdep_assert_task_sighand_held(task)

struct sighand_struct *host_sighand_lock(struct task_struct *t,
					 unsigned long *flags);

/*
 * The counters of RLIMIT_SIGPENDING are not exported: the owner of the queue has one of its own,
 * with the limit of the receiver. Signals that a handler has posted do not count.
 */
#define host_pending_uncharge(owner, payer)	atomic_long_dec(&(owner)->pending)

static inline bool host_pending_charge(struct kevent_owner *owner,
				       struct task_struct *t,
				       struct ucounts **payer)
{
	*payer = NULL;
	if (atomic_long_inc_return(&owner->pending) <=
	    task_rlimit(t, RLIMIT_SIGPENDING))
		return true;
	host_pending_uncharge(owner, *payer);
	return false;
}

enum siginfo_layout host_siginfo_layout(int sig, int code);
#define siginfo_layout(sig, code)	host_siginfo_layout(sig, code)

long host_signal_post(const struct ukevent __user *arg);
int host_signals_start(void);
void host_signals_stop(void);

/* For one another */

int host_tags_start(void);
void host_tags_stop(void);
int host_start(void);
void host_stop(void);
int host_close_start(void);
int host_close_needed(void);
void host_close_stop(void);

#endif /* _KEVENT_HOST_H */
