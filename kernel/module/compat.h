/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, from Linux 6.1 on
 *
 * The rest is written for the newest of them.
 */
#ifndef _KEVENT_COMPAT_H
#define _KEVENT_COMPAT_H

#ifdef CONFIG_KEVENT
#error "This kernel has kevent."
#endif
/*
 * A later kernel, 7.3, does not clear the slots of a table that ends, so that its files would end
 * with watches, and its pipes do not wake those who poll for an edge.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) ||			\
	LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "The module is for Linux 6.1 to 6.12."
#endif
#ifndef CONFIG_LTO_NONE
#error "LTO may inline the function whose calls tell of a close."
#endif
#if !defined(CONFIG_DYNAMIC_FTRACE) || !defined(CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS)
#error "The module needs ftrace with arguments."
#endif

#include <linux/eventfd.h>
#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched/rt.h>

#define compat_before(x, y)	(LINUX_VERSION_CODE < KERNEL_VERSION(x, y, 0))

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

/* Before 6.12 those who poll a queue may signal an eventfd from the wake-up. */
#define HOST_WAKES_POLLERS	(!compat_before(6, 12))

#if compat_before(6, 12)
#define fd_file(f)			((f).file)
#define EMPTY_FD			((struct fd) {})
#define rt_or_dl_task(task)		rt_task(task)
#define host_fd_counted(f)		((f).flags & FDPUT_FPUT)
#else
#define host_fd_counted(f)		((f).word & FDPUT_FPUT)
#endif

#if compat_before(6, 10)
#define compat_fsnotify_find(inode, group)				\
	fsnotify_find_mark(&(inode)->i_fsnotify_marks, group)
#else
#define compat_fsnotify_find(inode, group)				\
	fsnotify_find_inode_mark(inode, group)
#endif

#if compat_before(6, 9)
/* Of epoll: queues have these ioctls, too. */
struct epoll_params {
	u32	busy_poll_usecs;
	u16	busy_poll_budget;
	u8	prefer_busy_poll;
	u8	__pad;
};

#define EPIOCSPARAMS			_IOW(0x8A, 0x01, struct epoll_params)
#define EPIOCGPARAMS			_IOR(0x8A, 0x02, struct epoll_params)
#endif

/*
 * A pidfd is a regular file of pidfs, whose inode has the struct pid. Before that its file had it,
 * with the inode of all anonymous files.
 */
#if compat_before(6, 9)
#define compat_pidfd_pid(file)						\
	(host_is_anon(file, "[pidfd]") ? (file)->private_data : NULL)
#else
#define compat_pidfd_pid(file)						\
	(file_inode(file)->i_sb->s_magic == PID_FS_MAGIC &&		\
	 S_ISREG(file_inode(file)->i_mode) ? file_inode(file)->i_private : NULL)
#endif

#if compat_before(6, 8)
/* host.c */
struct file *compat_anon_inode(const char *name, const struct file_operations *fops,
			       void *data, int flags);
int compat_anon_start(void);
void compat_anon_stop(void);
#define eventfd_signal(ctx)		eventfd_signal(ctx, 1)
#else
#define compat_anon_inode(name, fops, q, flags)				\
	anon_inode_create_getfile(name, fops, q, flags, NULL)
#define compat_anon_start()		0
#define compat_anon_stop()
#endif

#if compat_before(6, 6)
/*
 * A task does not end a file at once but on its way to user mode. A consumer sleeps before that: so
 * it puts the file as an interrupt does, and what interrupts have put ends here.
 */
static inline void host_fput(struct file *file)
{
	local_bh_disable();
	fput(file);
	local_bh_enable();
	flush_delayed_fput();
}

/* Tables end with an empty entry, and so do copies of ours. */
static inline struct ctl_table_header *
compat_sysctl(const char *path, const struct ctl_table *table, size_t nr)
{
	struct ctl_table *copy = kcalloc(nr + 1, sizeof(*copy), GFP_KERNEL);
	struct ctl_table_header *header = NULL;

	if (copy) {
		memcpy(copy, table, nr * sizeof(*copy));
		header = register_sysctl(path, copy);
	}
	if (!header)
		kfree(copy);
	return header;
}

static inline void compat_sysctl_end(struct ctl_table_header *header)
{
	struct ctl_table *copy = header->ctl_table_arg;

	unregister_sysctl_table(header);
	kfree(copy);
}
#else
#define host_fput(file)			__fput_sync(file)
#define compat_sysctl(path, table, nr)	register_sysctl_sz(path, table, nr)
#define compat_sysctl_end(header)	unregister_sysctl_table(header)
#endif

#if compat_before(6, 5)
#define get_user_pages(start, nr, flags, pages)				\
	get_user_pages(start, nr, flags, pages, NULL)
#endif

#if compat_before(6, 4)
#define untagged_addr_remote(mm, addr)	untagged_addr(addr)
#define PF_USER_WORKER			0
#endif

#if compat_before(6, 2)
#define compat_ftrace_arg(fregs, n)	regs_get_kernel_argument(&(fregs)->regs, n)
#else
#define compat_ftrace_arg(fregs, n)	ftrace_regs_get_argument(fregs, n)
#endif

#endif /* _KEVENT_COMPAT_H */
