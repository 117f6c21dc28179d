/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kevent needs of the kernel that it is in: a kernel without patches/linux
 *
 * It is included first, and takes the place of the four ../kevent/host*.h, which say what each
 * function is for. Here it is only said how.
 */
#ifndef _KEVENT_HOST_H
#define _KEVENT_HOST_H
#define _KEVENT_HOST_INODE_H
#define _KEVENT_HOST_PAYER_H
#define _KEVENT_HOST_PROCESS_H

#include <linux/anon_inodes.h>
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/err.h>
#include <linux/eventpoll.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/pipe_fs_i.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/signal.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/busy_poll.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "compat.h"

struct kevent;
struct kevent_file;

/* file.c */
extern const struct file_operations kevent_fops;

static inline bool is_kevent_file(const struct file *file)
{
	return file->f_op == &kevent_fops;
}

/* The watches of a file: close.c */

struct kevent_file **host_watches(struct file *file);
int host_watches_get(struct file *file);
void host_watches_put(struct file *file);
bool host_bury_later(struct kevent *ke, struct file *file);
void __kevent_flush(struct file *file, fl_owner_t table);

/* sources/timer.c */
void kevent_clock_was_set(void);
void kevent_clock_resumed(void);

/* What a watch of a descriptor keeps here, as if it were alone on its file */
#define HOST_FILE_BYTES		64

/* A task that closes a file is in a callback of ftrace. */
static inline void host_close_pause(void) {}

/* Files of queues: main.c */

static inline struct file *host_queue_file(const struct file_operations *fops,
					   void *q, int flags)
{
	return compat_anon_inode("[kevent]", fops, q, flags);
}

long host_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
loff_t host_llseek(struct file *file, loff_t pos, int whence);

/* Owners: owner.c. The memory cgroup pays for the objects of all caches, one by one. */

/**
 * struct kevent_owner - an owner of queues, one object for each user
 * @node:	in owners, under its lock
 * @uid:	I: the user
 * @refs:	queues; under the lock of owners
 * @bytes:	what they have the kernel keep
 */
struct kevent_owner {
	struct rb_node		node;
	kuid_t			uid;
	unsigned int		refs;
	atomic_long_t		bytes;
};

struct kevent_owner *host_owner_get(void);
void host_owner_put(struct kevent_owner *owner);

static inline bool host_owner_is_root(const struct kevent_owner *owner)
{
	return uid_eq(owner->uid, GLOBAL_ROOT_UID);
}

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

static inline void host_owner_uncharge(struct kevent_owner *owner, size_t bytes)
{
	atomic_long_sub(bytes, &owner->bytes);
}

static inline s64 host_owner_bytes(struct kevent_owner *owner)
{
	return atomic_long_read(&owner->bytes);
}

static inline struct obj_cgroup *host_payer_get(void)
{
	return NULL;
}

static inline int host_payer_charge(struct obj_cgroup *payer, size_t bytes)
{
	return 0;
}

static inline void host_payer_uncharge(struct obj_cgroup *payer, size_t bytes) {}
static inline void host_payer_put(struct obj_cgroup *payer) {}

static inline struct obj_cgroup *host_payer_get_again(struct obj_cgroup *payer)
{
	return NULL;
}

struct kmem_cache *host_cache(const char *what, unsigned int size,
			      unsigned int align, bool paid);
void host_sysctl(const char *path, struct ctl_table *table, size_t nr);

/* Sources */

#define HOST_NESTS	0

/* The name cannot be chosen by user space. */
static inline bool host_is_anon(const struct file *file, const char *name)
{
	return file_inode(file)->i_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp(file->f_path.dentry->d_name.name, name);
}

static inline bool host_is_epoll(struct file *file)
{
	return host_is_anon(file, "[eventpoll]");
}

static inline bool host_is_uring(struct file *file)
{
	return host_is_anon(file, "[io_uring]");
}

extern const struct file_operations *host_pipe_fops;

static inline struct pipe_inode_info *host_pipe(struct file *file)
{
	return file->f_op == host_pipe_fops ? file->private_data : NULL;
}

static inline int host_pipe_peek(const struct pipe_inode_info *pipe,
				 fmode_t mode)
{
	unsigned int head;

	if (!(mode & FMODE_READ) || !READ_ONCE(pipe->writers))
		return -EAGAIN;
	/* First, as F_SETPIPE_SZ moves both down */
	head = smp_load_acquire(&pipe->head);
	if (head == READ_ONCE(pipe->tail))
		return 0;
	return (__force int)(EPOLLIN | EPOLLRDNORM);
}

int host_sock_peek(const struct socket *sock);

#define HOST_TCP_TELLS	false

static inline void host_tcp_tell(struct socket *sock) {}
static inline void host_tcp_tell_next(struct socket *sock) {}

extern uint host_busy_poll_usecs;

static inline unsigned long host_busy_poll(void)
{
	return READ_ONCE(host_busy_poll_usecs);
}

/**
 * struct host_marks - the marks of a user
 * @group:	I: what they belong to
 * @lock:	a mark is taken out and destroyed by one who has it
 */
struct host_marks {
	struct fsnotify_group	*group;
	struct mutex		lock;
};

static inline int host_marks_init(struct host_marks *marks,
				  const struct fsnotify_ops *ops)
{
	mutex_init(&marks->lock);
	marks->group = fsnotify_alloc_group(ops, FSNOTIFY_GROUP_USER);
	return PTR_ERR_OR_ZERO(marks->group);
}

static inline void host_marks_lock(struct host_marks *marks)
{
	mutex_lock(&marks->lock);
}

static inline void host_marks_unlock(struct host_marks *marks)
{
	mutex_unlock(&marks->lock);
}

static inline void host_marks_assert(struct host_marks *marks)
{
	lockdep_assert_held(&marks->lock);
}

static inline struct fsnotify_mark *host_mark_find(struct host_marks *marks,
						   struct inode *inode)
{
	return compat_fsnotify_find(inode, marks->group);
}

/*
 * The mask of an inode cannot be calculated again: a mark asks for all that it may ask for, and
 * the engine passes over what it does not want.
 */
#define HOST_MARK_MASK	(FS_CREATE | FS_DELETE | FS_MODIFY | FS_ATTRIB |	\
			 FS_MOVE | FS_DELETE_SELF | FS_MOVE_SELF)

static inline int host_mark_add(struct host_marks *marks,
				struct fsnotify_mark *fsn, struct inode *inode,
				u32 mask)
{
	unsigned int nofs = memalloc_nofs_save();
	int err;

	fsn->mask = HOST_MARK_MASK;
	err = fsnotify_add_inode_mark(fsn, inode, 0);
	memalloc_nofs_restore(nofs);
	return err;
}

static inline void host_mark_ask(struct fsnotify_mark *fsn, u32 mask) {}

static inline void host_mark_detach(struct host_marks *marks,
				    struct fsnotify_mark *fsn)
{
	fsnotify_destroy_mark(fsn, marks->group);
}

static inline void host_mark_free(struct fsnotify_mark *fsn) {}

/* security_path_notify() is not exported: who can read a file may watch it. */
static inline int host_may_notify(struct file *file, u64 mask)
{
	return 0;
}

static inline void host_pin(void)
{
	__module_get(THIS_MODULE);
}

static inline void host_unpin(void)
{
	module_put(THIS_MODULE);
}

void host_queue_work(struct work_struct *work);

/* The current task */

/* No thread is a member of a group: the scheduler does not say when it blocks. */
#define PF_KEVENT_SERVER	0

static inline bool host_mm_in_use(void)
{
#ifdef CONFIG_X86
	return likely(in_task()) ||
	       (current->mm && read_cr3_pa() == __pa(current->mm->pgd));
#else
	return true;
#endif
}

/* The scheduler is not asked to place a task: a hand-off is a mark. */
static inline void host_handoff_begin(void) {}
static inline void host_handoff_end(void) {}

static inline bool host_handoff_wanted(void)
{
	return false;
}

static inline void host_wake_here(struct task_struct *task) {}

int host_sigmask_set(void __user *mask, size_t size);
void host_sigmask_restore(bool interrupted);
ktime_t host_timens(clockid_t clock, ktime_t at);

/*
 * tasklist_lock is not exported. Who exits sets its state, then wakes wait_pidfd: a watch that
 * has joined there sees the one or gets the other.
 */
static inline void host_tasks_lock(void)
{
	rcu_read_lock();
}

static inline void host_tasks_unlock(void)
{
	rcu_read_unlock();
}

static inline void host_tasks_assert(void) {}

/* ptrace_may_access() is not exported. Parents may know anyway. */
static inline bool host_may_read_stat(struct task_struct *task)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_PTRACE);
}

/* Who has the capability needs no more. */
static inline bool host_is_dumpable(struct task_struct *task)
{
	return false;
}

struct pid *host_pidfd_pid(unsigned int fd);

/* For main.c */

int host_close_start(void);
int host_close_needed(void);
void host_close_stop(void);
void host_close_free(void);

#endif /* _KEVENT_HOST_H */
