/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, from Linux 6.1 on. The newest comes first.
 */
#ifndef _KEVENT_COMPAT_H
#define _KEVENT_COMPAT_H

#ifdef CONFIG_KEVENT
#error "This kernel has kevent."
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "The module needs Linux 6.1."
#endif
#ifndef CONFIG_LTO_NONE
#error "LTO may inline the function whose calls tell of a close."
#endif
#if !defined(CONFIG_DYNAMIC_FTRACE) || !defined(CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS)
#error "The module needs ftrace with arguments."
#endif

#include <linux/ftrace.h>

/* Those who poll a queue may signal an eventfd from the wake-up in kernels before 6.12. */
#define HOST_WAKES_POLLERS	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)

#define compat_anon_inode(name, fops, q, flags)				\
	anon_inode_create_getfile(name, fops, q, flags, NULL)
#define host_fput(file)			__fput_sync(file)
#define compat_ftrace_arg(fregs, n)	ftrace_regs_get_argument(fregs, n)
#define compat_fsnotify_group(ops)	fsnotify_alloc_group(ops, FSNOTIFY_GROUP_USER)
#define compat_fsnotify_find(inode, group)				\
	fsnotify_find_inode_mark(inode, group)
#define compat_fsnotify_add(fsn, inode)	fsnotify_add_inode_mark(fsn, inode, 0)
#define compat_sysctl(path, table, nr)	register_sysctl_sz(path, table, nr)

/* A pidfd is a regular file of pidfs, whose inode has the struct pid. */
#define compat_pidfd_pid(file)						\
	(file_inode(file)->i_sb->s_magic == PID_FS_MAGIC &&		\
	 S_ISREG(file_inode(file)->i_mode) ? file_inode(file)->i_private : NULL)

#endif

#endif /* _KEVENT_COMPAT_H */
