/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What sources/inode.c needs of fsnotify; a part of host.h
 */
#ifndef _KEVENT_HOST_INODE_H
#define _KEVENT_HOST_INODE_H

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/lockdep.h>
#include <linux/security.h>
#include <linux/spinlock.h>

/**
 * struct host_marks - the marks of a user
 * @group:	what they belong to; its mark_mutex is theirs
 */
struct host_marks {
	struct fsnotify_group	*group;
};

static inline int host_marks_init(struct host_marks *marks,
				  const struct fsnotify_ops *ops)
{
	marks->group = fsnotify_alloc_group(ops, FSNOTIFY_GROUP_USER);
	return PTR_ERR_OR_ZERO(marks->group);
}

static inline void host_marks_lock(struct host_marks *marks)
{
	fsnotify_group_lock(marks->group);
}

static inline void host_marks_unlock(struct host_marks *marks)
{
	fsnotify_group_unlock(marks->group);
}

static inline void host_marks_assert(struct host_marks *marks)
{
	lockdep_assert_held(&marks->group->mark_mutex);
}

static inline struct fsnotify_mark *host_mark_find(struct host_marks *marks,
						   struct inode *inode)
{
	return fsnotify_find_inode_mark(inode, marks->group);
}

/* Under the lock, as the one below. The mark is to be called for @mask. */
static inline int host_mark_add(struct host_marks *marks,
				struct fsnotify_mark *fsn, struct inode *inode,
				u32 mask)
{
	fsn->mask = mask;
	return fsnotify_add_inode_mark_locked(fsn, inode, 0);
}

static inline void host_mark_detach(struct host_marks *marks,
				    struct fsnotify_mark *fsn)
{
	fsnotify_detach_mark(fsn);
}

/* After that, without the lock */
static inline void host_mark_free(struct fsnotify_mark *fsn)
{
	fsnotify_free_mark(fsn);
}

/* Do security modules allow the current task to learn of changes of a file? */
static inline int host_may_notify(struct file *file, u64 mask)
{
	return security_path_notify(&file->f_path, mask,
				    FSNOTIFY_OBJ_TYPE_INODE);
}

#endif /* _KEVENT_HOST_INODE_H */
