/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of kevent to the kernel that it is in
 *
 * This kernel has patches/linux, so most functions are one line. The module, kernel/module,
 * has a host.h of its own in the place of this one, for kernels without the patches.
 * Nothing else in this folder knows the difference.
 */
#ifndef _KEVENT_HOST_H
#define _KEVENT_HOST_H

#include <linux/anon_inodes.h>
#include <linux/compat.h>
#include <linux/eventpoll.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/io_uring.h>
#include <linux/kevent.h>
#include <linux/kmemleak.h>
#include <linux/lockdep.h>
#include <linux/net.h>
#include <linux/percpu_counter.h>
#include <linux/pipe_fs_i.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/security.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/time_namespace.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/busy_poll.h>

#include <asm/tlb.h>

struct kevent;

/* Called before the first queue is made; not in a module, which calls it */
#define host_initcall(start)	fs_initcall(start)

/* The watches of a file */

/* In each of them, by which the host finds the first one */
struct host_file {};

/* A watch of @file is about to be linked to it. */
static inline void host_watches_begin(struct file *file) {}

/* The first watch of a file; under &file.f_lock, which protects the list, or RCU. */
static inline struct kevent_file *host_watches(struct file *file)
{
	return READ_ONCE(file->f_kevent);
}

/**
 * host_watches_set - let the list of the watches of a file begin with another one
 * @file: the file, whose f_lock is held
 * @old: the first one, which goes; NULL when there is none
 * @first: what takes its place, and has not been the first yet; or NULL
 */
static inline void host_watches_set(struct file *file, struct kevent_file *old,
				    struct kevent_file *first)
{
	/* There are walks under RCU only. */
	smp_store_release(&file->f_kevent, first);
}

/*
 * Between two watches, or parts of one, that a close, an exit or an exec removes: lets others run,
 * where a task may do so there.
 */
static inline void host_close_pause(void)
{
	cond_resched();
}

/*
 * A watch is dead, since a descriptor of @file was closed, or a program has ended: then @file is
 * NULL. Does the host bury it, later?
 */
static inline bool host_bury_later(struct kevent *ke, struct file *file)
{
	return false;
}

/* Did fdget() take a reference? Where it did not, no other task has the file table. */
static inline bool host_fd_counted(struct fd f)
{
	return f.word & FDPUT_FPUT;
}

/* The last reference of a consumer to a file: it ends here, and not on the way to user mode. */
static inline void host_fput(struct file *file)
{
	__fput_sync(file);
}

/* The queue's file */

static inline struct file *host_queue_file(const struct file_operations *fops,
					   void *q, int flags)
{
	return anon_inode_create_getfile("[kevent]", fops, q, flags, NULL);
}

/* Commands of ioctl() that only the module has */
static inline long host_ioctl(struct file *file, unsigned int cmd,
			      unsigned long arg)
{
	return -ENOIOCTLCMD;
}

#define host_llseek	noop_llseek

/* Users, and what they have the kernel keep */

/**
 * struct kevent_owner - an owner of queues, one object for each user
 * @of: the user
 */
struct kevent_owner {
	struct user_struct	of;
};

/* NULL without memory */
static inline struct kevent_owner *host_owner_get(kuid_t uid)
{
	struct user_struct *user = alloc_uid(uid);

	return user ? container_of(user, struct kevent_owner, of) : NULL;
}

static inline void host_owner_put(struct kevent_owner *owner)
{
	free_uid(&owner->of);
}

static inline bool host_owner_is_root(const struct kevent_owner *owner)
{
	return &owner->of == INIT_USER;
}

/* Bytes that a CPU may count for itself before it takes the lock of the counter */
#define HOST_CHARGE_BATCH	SZ_64K

/* Any context. False, and nothing was added, if that is over @limit. */
static inline bool host_owner_charge(struct kevent_owner *owner, size_t bytes,
				     long limit)
{
	struct percpu_counter *sum = &owner->of.kevent_bytes;

#ifdef CONFIG_SMP
	return __percpu_counter_limited_add(sum, limit, bytes,
					    HOST_CHARGE_BATCH);
#else
	return percpu_counter_limited_add(sum, limit, bytes);
#endif
}

static inline void host_owner_uncharge(struct kevent_owner *owner, size_t bytes)
{
	percpu_counter_add_batch(&owner->of.kevent_bytes, -(s64)bytes,
				 HOST_CHARGE_BATCH);
}

static inline s64 host_owner_bytes(struct kevent_owner *owner)
{
	return percpu_counter_sum_positive(&owner->of.kevent_bytes);
}

/**
 * host_cache - make a cache of objects
 * @what: they are
 * @size: of an object
 * @align: likewise
 *
 * host_payer_charge() accounts for them.
 */
static inline struct kmem_cache *
host_cache(const char *what, unsigned int size, unsigned int align)
{
	/* Stays: the name of a cache that is merged with another one is not copied at boot. */
	const char *name = kasprintf(GFP_KERNEL, "kevent_%s", what);

	kmemleak_not_leak(name);
	return kmem_cache_create(name, size, align, SLAB_PANIC, NULL);
}

static inline void __init host_sysctl(const char *path,
				      struct ctl_table *table, size_t nr)
{
	kmemleak_not_leak(register_sysctl_sz(path, table, nr));
}

/* Sources: what a file is, and what can be seen of it without a lock */

/* Bits of the key of a ->poll() that arms a watch, so that each edge wakes the watch up */
#define HOST_POLL_EDGE	0

/* May a queue watch epoll files and queues? Then epoll's check against loops knows queues. */
#define HOST_NESTS	IS_ENABLED(CONFIG_EPOLL)
/* Types without a source are driven: the processes post the events of their watches. */
#define HOST_DRIVES	0

/* Are events held back for others unless a program wants them at once? See wake_coalesce.c. */
#define HOST_HOLDS	1

static inline bool host_is_epoll(struct file *file)
{
	return is_file_epoll(file);
}

static inline bool host_is_uring(struct file *file)
{
	return io_is_uring_fops(file);
}

/* The pipe of a file, or NULL: there are FIFOs that are no pipes, as in rpc_pipefs. */
static inline struct pipe_inode_info *host_pipe(struct file *file)
{
	return get_pipe_info(file, false);
}

/* Returns what ->poll() says of data, or -EAGAIN when it has to be called. The same of a socket. */
static inline int host_pipe_peek(const struct pipe_inode_info *pipe,
				 fmode_t mode)
{
	return pipe_peek_poll(pipe, mode);
}

static inline int host_sock_peek(const struct socket *sock)
{
	const struct proto_ops *ops = READ_ONCE(sock->ops);

	return sock->sk && ops->peek_poll ? ops->peek_poll(sock) : -EAGAIN;
}

/* Do security modules allow the current task to learn of changes of a file? */
static inline int host_may_notify(struct file *file, u64 mask)
{
	return security_path_notify(&file->f_path, mask,
				    FSNOTIFY_OBJ_TYPE_INODE);
}

/* Does TCP say when all that was written is acknowledged? */
#define HOST_TCP_TELLS	true

/* Have it tell. */
static inline void host_tcp_tell(struct socket *sock)
{
	set_bit(SOCK_TELL_EMPTY, &sock->flags);
}

/* And that it is not so now */
static inline void host_tcp_tell_next(struct socket *sock)
{
	set_bit(SOCK_NOT_EMPTY, &sock->flags);
}

/* net.core.busy_poll */
static inline unsigned long host_busy_poll(void)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	return READ_ONCE(sysctl_net_busy_poll);
#else
	return 0;
#endif
}

/* The code of kevent stays until host_unpin(): callbacks come after the file of a queue. */
static inline void host_pin(void) {}
static inline void host_unpin(void) {}

/* Timers */

static inline void
host_timer_setup(struct hrtimer *timer,
		 enum hrtimer_restart (*function)(struct hrtimer *),
		 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}

static inline void
host_timer_setup_on_stack(struct hrtimer *timer,
			  enum hrtimer_restart (*function)(struct hrtimer *),
			  clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init_on_stack(timer, clock, mode);
	timer->function = function;
}

static inline void host_sleeper_setup_on_stack(struct hrtimer_sleeper *sleeper,
					       clockid_t clock,
					       enum hrtimer_mode mode)
{
	hrtimer_init_sleeper_on_stack(sleeper, clock, mode);
}

/* Where work is queued that any CPU may do */
#define host_works	system_unbound_wq

/* The current task */

/*
 * Is the address space in use that of current->mm? A task is interrupted where it
 * is not: a firmware call, by a driver for a user's read() too, runs in efi_mm with
 * interrupts on. A task that stores itself is not in such a place.
 */
static inline bool host_mm_in_use(void)
{
	return likely(in_task()) || nmi_uaccess_okay();
}

/* Whom the current task wakes up is to run on this CPU, which it is about to leave. */
static inline void host_handoff_begin(void)
{
	current->kevent_handoff = 1;
}

static inline void host_handoff_end(void)
{
	current->kevent_handoff = 0;
}

/* An interrupt has nothing to do with what the task it interrupts asked for. */
static inline bool host_handoff_wanted(void)
{
	return unlikely(current->kevent_handoff) && in_task();
}

/* Wake a task up. The scheduler is asked to place it on this CPU. */
static inline void host_wake_here(struct task_struct *task)
{
	DECLARE_WAIT_QUEUE_HEAD_ONSTACK(head);
	DECLARE_WAITQUEUE(entry, task);

	add_wait_queue(&head, &entry);
	__wake_up_on_current_cpu(&head, TASK_NORMAL, NULL);
}

/* Until host_sigmask_restore() the signal mask is that in user memory, if there is one. */
static inline int host_sigmask_set(void __user *mask, size_t size)
{
#ifdef CONFIG_COMPAT
	if (in_compat_syscall())
		return set_compat_user_sigmask(mask, size);
#endif
	return set_user_sigmask(mask, size);
}

/* If a signal has @interrupted the wait, it is handled before that. */
static inline void host_sigmask_restore(bool interrupted)
{
	restore_saved_sigmask_unless(interrupted);
}

/* A point of time on a clock of the current task's namespace */
static inline ktime_t host_timens(clockid_t clock, ktime_t at)
{
	return timens_ktime_to_host(clock, at);
}

#endif /* _KEVENT_HOST_H */
