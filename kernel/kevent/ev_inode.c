// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of files and directories, by marks of fsnotify
 */

#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/init.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "kevent.h"

#define EV_INODE_EVENTS							\
	(KEVENT_INODE_CREATE | KEVENT_INODE_REMOVE | KEVENT_INODE_MODIFY | \
	 KEVENT_INODE_ATTRIB | KEVENT_INODE_RENAME)

/* All of them for each mark: the interest may change under ready_lock. */
#define EV_INODE_FS_EVENTS						\
	(FS_CREATE | FS_DELETE | FS_MODIFY | FS_ATTRIB | FS_MOVE |	\
	 FS_DELETE_SELF | FS_MOVE_SELF)

/**
 * struct kevent_inode_mark - what fsnotify knows of a watch
 * @fsn:	the mark; @fsn.lock protects the other members
 * @ke:		the watch, NULL once it is detached
 * @nameless:	the inode was seen without a name
 *
 * fsnotify calls back under SRCU, and may hold a mark after it was destroyed.
 * So a mark is freed on its own, later than the watch.
 */
struct kevent_inode_mark {
	struct fsnotify_mark	fsn;
	struct kevent		*ke;
	bool			nameless;
};

/**
 * struct kevent_inode - a watch of a file or directory
 * @kf:		the watch
 * @mark:	its mark, with a reference; NULL when attach() failed early
 */
struct kevent_inode {
	struct kevent_file		kf;
	struct kevent_inode_mark	*mark;
};

struct kmem_cache *kevent_inode_cache;
static struct kmem_cache *ev_inode_marks __ro_after_init;
static struct fsnotify_group *ev_inode_group __ro_after_init;

static struct kevent_inode *to_inode(struct kevent *ke)
{
	return container_of(ke, struct kevent_inode, kf.ke);
}

static struct kevent_inode_mark *to_mark(struct fsnotify_mark *fsn)
{
	return container_of(fsn, struct kevent_inode_mark, fsn);
}

/* Events */

/* Has the inode lost its last name since it was seen with one? */
static bool ev_inode_lost_name(struct kevent_inode_mark *mark,
			       const struct inode *inode)
{
	bool before = mark->nameless;

	lockdep_assert_held(&mark->fsn.lock);

	/* Not all file systems count the links of a directory. */
	mark->nameless = S_ISDIR(inode->i_mode) ? IS_DEADDIR(inode) :
						  !READ_ONCE(inode->i_nlink);
	return mark->nameless && !before;
}

/*
 * While a descriptor is open the end of its inode is never told. That the
 * number of links has changed is, as FS_ATTRIB.
 */
static u32 ev_inode_events(struct kevent_inode_mark *mark, u32 mask,
			   const struct inode *inode)
{
	u32 events = 0;

	if (mask & FS_CREATE)
		events |= KEVENT_INODE_CREATE;
	if (mask & FS_DELETE)
		events |= KEVENT_INODE_REMOVE;
	if (mask & FS_MODIFY)
		events |= KEVENT_INODE_MODIFY;
	if (mask & FS_ATTRIB)
		events |= KEVENT_INODE_ATTRIB;
	if (mask & (FS_MOVE | FS_MOVE_SELF))
		events |= KEVENT_INODE_RENAME;
	if (mask & (FS_ATTRIB | FS_DELETE_SELF) &&
	    ev_inode_lost_name(mark, inode))
		events |= KEVENT_INODE_REMOVE;
	return events;
}

static int ev_inode_handle(struct fsnotify_mark *fsn, u32 mask,
			   struct inode *inode, struct inode *dir,
			   const struct qstr *name, u32 cookie)
{
	struct kevent_inode_mark *mark = to_mark(fsn);
	u32 events;

	/* With ke seen as set, detach() waits for the lock. */
	spin_lock(&fsn->lock);
	events = ev_inode_events(mark, mask, inode);
	if (mark->ke && events)
		kevent_ready(mark->ke, events, KE_FIRED);
	spin_unlock(&fsn->lock);
	return 0;
}

/* detach() has cleared ke; others destroy marks when a last name goes. */
static void ev_inode_freeing(struct fsnotify_mark *fsn,
			     struct fsnotify_group *group)
{
	struct kevent_inode_mark *mark = to_mark(fsn);

	spin_lock(&fsn->lock);
	if (mark->ke)
		kevent_ready(mark->ke, 0, KE_BROKEN | KE_FIRED);
	spin_unlock(&fsn->lock);
}

static void ev_inode_free_mark(struct fsnotify_mark *fsn)
{
	kmem_cache_free(ev_inode_marks, to_mark(fsn));
}

static const struct fsnotify_ops ev_inode_fsnotify_ops = {
	.handle_inode_event	= ev_inode_handle,
	.freeing_mark		= ev_inode_freeing,
	.free_mark		= ev_inode_free_mark,
};

/* Watches */

/* What may be read may be watched, as with inotify. */
static int ev_inode_check(const struct ukevent *uk, struct file *file)
{
	umode_t mode = file_inode(file)->i_mode;
	int err;

	if (!uk->event || uk->event & ~EV_INODE_EVENTS)
		return -EINVAL;
	err = kevent_file_check_nesting(file);
	if (err)
		return err;
	if (!S_ISREG(mode) && !S_ISDIR(mode))
		return -EINVAL;
	return file->f_mode & FMODE_READ ? 0 : -EACCES;
}

static int ev_inode_new_mark(struct kevent_inode *ki)
{
	struct kevent_inode_mark *mark;

	mark = kmem_cache_alloc(ev_inode_marks, GFP_KERNEL);
	if (!mark)
		return -ENOMEM;
	fsnotify_init_mark(&mark->fsn, ev_inode_group);
	mark->fsn.mask = EV_INODE_FS_EVENTS;
	mark->ke = &ki->kf.ke;
	mark->nameless = false;
	ki->mark = mark;
	return 0;
}

/* The mark was added before the look, so no later loss of a name is missed. */
static u32 ev_inode_holds(struct kevent_inode_mark *mark,
			  const struct inode *inode)
{
	bool lost;

	spin_lock(&mark->fsn.lock);
	lost = ev_inode_lost_name(mark, inode);
	spin_unlock(&mark->fsn.lock);
	return lost ? KEVENT_INODE_REMOVE : 0;
}

static int ev_inode_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_inode *ki = to_inode(ke);
	struct inode *inode = file_inode(file);
	int err;

	err = kevent_file_link(&ki->kf, file);
	if (!err)
		err = security_path_notify(&file->f_path, EV_INODE_FS_EVENTS,
					   FSNOTIFY_OBJ_TYPE_INODE);
	if (!err)
		err = ev_inode_new_mark(ki);
	if (err)
		return err;
	err = fsnotify_add_inode_mark(&ki->mark->fsn, inode, 0);
	/* The inode's marks are being destroyed: so would this one. */
	if (err == -ENOENT)
		kevent_ready(ke, 0, KE_BROKEN | KE_FIRED);
	else if (err)
		return err;
	if (!kevent_file_is_current(&ki->kf))
		return -EBADF;
	return err ? 0 : ev_inode_holds(ki->mark, inode) & uk->event;
}

/* The file is pinned and with it the inode: no mark's end is the inode's. */
static void ev_inode_detach(struct kevent *ke)
{
	struct kevent_inode *ki = to_inode(ke);
	struct fsnotify_mark *fsn;

	kevent_file_unlink(&ki->kf);
	if (!ki->mark)
		return;
	fsn = &ki->mark->fsn;
	spin_lock(&fsn->lock);
	ki->mark->ke = NULL;
	spin_unlock(&fsn->lock);
	fsnotify_destroy_mark(fsn, ev_inode_group);
	fsnotify_put_mark(fsn);
}

/* What is not wanted any more is not reported. */
static void ev_inode_modified(struct kevent *ke, const struct ukevent *uk)
{
	ke->ready &= uk->event;
	if (ke->ready || ke->state & KE_BROKEN)
		return;
	ke->state &= ~KE_FIRED;
	kevent_dequeue(ke);
}

const struct kevent_source_ops kevent_inode_ops = {
	.name		= "inode",
	.file		= true,
	.mergeable	= true,
	.cache		= &kevent_inode_cache,
	.check		= ev_inode_check,
	.attach		= ev_inode_attach,
	.detach		= ev_inode_detach,
	.modified	= ev_inode_modified,
	.find		= kevent_file_find,
	.hold		= kevent_file_hold,
	.unhold		= kevent_file_unhold,
};

static int __init ev_inode_init(void)
{
	BUILD_BUG_ON(offsetof(struct kevent_inode, kf.ke));
	kevent_inode_cache = KMEM_CACHE(kevent_inode,
					SLAB_PANIC | SLAB_ACCOUNT);
	ev_inode_marks = KMEM_CACHE(kevent_inode_mark,
				    SLAB_PANIC | SLAB_ACCOUNT);
	ev_inode_group = fsnotify_alloc_group(&ev_inode_fsnotify_ops,
					      FSNOTIFY_GROUP_DUPS);
	if (IS_ERR(ev_inode_group))
		panic("kevent: no memory for the group of marks");
	return 0;
}
core_initcall(ev_inode_init);
