/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels: Linux 6.1, and 6.12 to 7.3
 *
 * The rest is written for the newest of them.
 */
#ifndef _KEVENT_COMPAT_H
#define _KEVENT_COMPAT_H

#define compat_before(x, y)	(LINUX_VERSION_CODE < KERNEL_VERSION(x, y, 0))

#ifdef CONFIG_KEVENT
#error "This kernel has kevent."
#endif
/* Others were not tried: a file that ended with a watch would be a use after free. */
#if compat_before(6, 1) || (!compat_before(6, 2) && compat_before(6, 12)) || !compat_before(7, 4)
#error "The module is for Linux 6.1, and for 6.12 to 7.3."
#endif
#ifndef CONFIG_LTO_NONE
#error "LTO may inline the function whose calls tell of a close."
#endif
#ifdef CONFIG_PREEMPT_RT
#error "The hook of close() cannot take the locks of a kernel with PREEMPT_RT."
#endif
#if !defined(CONFIG_DYNAMIC_FTRACE) || !defined(CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS)
#error "The module needs ftrace with arguments."
#endif

#include <linux/eventfd.h>
#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched/rt.h>

#if compat_before(6, 13)
#define host_timer_setup(timer, fn, clock, mode)			\
	(hrtimer_init(timer, clock, mode), (timer)->function = (fn))
#define host_timer_setup_on_stack(timer, fn, clock, mode)		\
	(hrtimer_init_on_stack(timer, clock, mode), (timer)->function = (fn))
#define host_sleeper_setup_on_stack	hrtimer_init_sleeper_on_stack
#else
#define host_timer_setup		hrtimer_setup
#define host_timer_setup_on_stack	hrtimer_setup_on_stack
#define host_sleeper_setup_on_stack	hrtimer_setup_sleeper_on_stack
#endif

#if compat_before(6, 12)
#define fd_file(f)			((f).file)
#define dequeue_signal(mask, info, type)	dequeue_signal(current, mask, info, type)
#define EMPTY_FD			((struct fd) {})
#define rt_or_dl_task(task)		rt_task(task)
#define host_fd_counted(f)		((f).flags & FDPUT_FPUT)
#define untagged_addr_remote(mm, addr)	untagged_addr(addr)
#define PF_USER_WORKER			0
#define eventfd_signal(ctx)		eventfd_signal(ctx, 1)
#define register_sysctl_sz(path, table, nr)	register_sysctl(path, table)
#define get_user_pages(start, nr, flags, pages)				\
	get_user_pages(start, nr, flags, pages, NULL)
#define fsnotify_find_inode_mark(inode, group)				\
	fsnotify_find_mark(&(inode)->i_fsnotify_marks, group)
#define compat_ftrace_arg(fregs, n)	regs_get_kernel_argument(&(fregs)->regs, n)

/* Of a queue that is pinned: sources/file_nest.c */
#define get_file_active(file)		get_file(*(file))

/* host.c */
struct file *host_queue_file(const struct file_operations *fops, void *q,
			     int flags);

/* The file of a pidfd has the struct pid, and the inode of all anonymous files. */
#define compat_pidfd_pid(file)						\
	(host_is_anon(file, "[pidfd]") ? (file)->private_data : NULL)

/* Of epoll: queues have these ioctls, too. */
struct epoll_params {
	u32	busy_poll_usecs;
	u16	busy_poll_budget;
	u8	prefer_busy_poll;
	u8	__pad;
};

#define EPIOCSPARAMS			_IOW(0x8A, 0x01, struct epoll_params)
#define EPIOCGPARAMS			_IOR(0x8A, 0x02, struct epoll_params)

/*
 * A task ends a file on its way to user mode. A consumer sleeps before that: so it puts the file as
 * an interrupt does, and a worker ends it.
 */
static inline void host_fput(struct file *file)
{
	local_bh_disable();
	fput(file);
	local_bh_enable();
}
#else
#define host_fd_counted(f)		((f).word & FDPUT_FPUT)
#define host_fput(file)			__fput_sync(file)
#define compat_ftrace_arg(fregs, n)	ftrace_regs_get_argument(fregs, n)
#define host_queue_file(fops, q, flags)					\
	anon_inode_create_getfile("[kevent]", fops, q, flags, NULL)
/* A pidfd is a regular file of pidfs, whose inode has the struct pid. */
#define compat_pidfd_pid(file)						\
	(file_inode(file)->i_sb->s_magic == PID_FS_MAGIC &&		\
	 S_ISREG(file_inode(file)->i_mode) ? file_inode(file)->i_private : NULL)
#endif

#endif /* _KEVENT_COMPAT_H */
