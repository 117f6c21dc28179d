// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of files and directories, by marks of fsnotify
 *
 * A task that changes an inode calls its listeners, so other users must not be able to
 * make that long. A user has one group of fsnotify, and one fsnotify mark in it for each
 * inode that his queues watch. The watches of that inode are on the mark's list, at most
 * 128. So a task that changes the inode notifies 128 watches per user, however many queues
 * that user has, and an inode has no more of these marks than it has users. Each user has
 * a mutex, under which marks come and go: ADD holds it while it may allocate, detach() takes
 * it, and nobody holds it over a fault or a ->poll().
 *
 * A mark asks for all that its watches may ask for, so MODIFY has nothing to do there: under
 * ready_lock the mask of an inode can't be recalculated. A write to a file that is watched for
 * something else calls one callback per user. A name may be lost while the watch does not ask for
 * REMOVE: MODIFY then finds that. It and the callback read the count of links under ready_lock.
 *
 * fsnotify calls ev_inode_handle() under SRCU only, and a worker waits for that before it frees a
 * mark. A listener of fanotify that does not answer may hold a mark without end. So the mark is an
 * object of its own, and mark->lock covers list and report: detach() takes the watch off the list,
 * and no callback that still runs finds it. The order is mark_mutex > mutex of the group >
 * mark->lock > ready_lock. We destroy marks only while the file is pinned, so the reference of a
 * mark to its inode is never the last one. A group does not end by fsnotify_destroy_group(), which
 * would wait for a listener that holds a mark. Its reference is dropped after its last mark was
 * detached. A task that holds a mark holds its group.
 *
 * FS_DELETE_SELF does not come when a name is removed by which the file is open. FS_ATTRIB does; a
 * count of links that is zero then means REMOVE, once until the inode has a name again. If the last
 * name is another one, kernels like 6.1 destroy the marks with it. ADD reads the count after it has
 * added the mark.
 */

#include <linux/cleanup.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/slab.h>

#include "../core/source.h"
#include "../host.h"

#define EV_INODE_EVENTS							\
	(KEVENT_INODE_CREATE | KEVENT_INODE_REMOVE | KEVENT_INODE_MODIFY | \
	 KEVENT_INODE_ATTRIB | KEVENT_INODE_RENAME)

/* Marks and security modules get, once, all events that a watch may want now or after MODIFY. */
#define EV_INODE_FS_EVENTS						\
	(FS_CREATE | FS_DELETE | FS_MODIFY | FS_ATTRIB | FS_MOVE |	\
	 FS_DELETE_SELF | FS_MOVE_SELF)

/* Watches of one inode, over all queues of a user: by default as many as inotify instances */
#define EV_INODE_MAX	128

/**
 * struct ev_inode_user - the marks of a user
 * @node:	in ev_inode_users, under its lock
 * @owner:	I: the user; a pointer to compare, held by the queues of @refs
 * @group:	I: the group of the marks, with a reference
 * @mark_mutex:	who holds it may take a mark out and destroy it. It makes ADD and
 *		REMOVE of this user wait for one another, and for nobody else's
 * @refs:	marks, and calls at work; under the lock of ev_inode_users
 *
 * As many as there are users with INODE watches.
 */
struct ev_inode_user {
	struct rb_node		node;
	struct kevent_owner	*owner;
	struct fsnotify_group	*group;
	struct mutex		mark_mutex;	/* order: see above */
	unsigned int		refs;
};

/**
 * struct kevent_inode_mark - what fsnotify knows of the watches of one user and
 *			      one inode
 * @fsn:	the mark
 * @user:	I: whose it is, with a reference until the last watch has gone
 * @watches:	the watches, at most %EV_INODE_MAX: each callback walks them, under
 *		@fsn.lock. Changed under that and mark_mutex
 * @nr:		their number; under mark_mutex
 */
struct kevent_inode_mark {
	struct fsnotify_mark	fsn;
	struct ev_inode_user	*user;
	struct list_head	watches;
	unsigned int		nr;
};

/**
 * struct kevent_inode - a watch of a file or directory
 * @kf:		the watch
 * @mark:	I: what it is on; NULL when attach() failed early
 * @link:	in &kevent_inode_mark.watches
 * @nameless:	R: KEVENT_INODE_REMOVE was reported since the inode had a name
 */
struct kevent_inode {
	struct kevent_file		kf;
	struct kevent_inode_mark	*mark;
	struct list_head		link;
	bool				nameless;
};

static DEFINE_SPINLOCK(ev_inode_users_lock);
static struct rb_root ev_inode_users = RB_ROOT;	/* ev_inode_users_lock */

#define to_inode(watch)	container_of(watch, struct kevent_inode, kf.ke)

#define to_mark(mark)	container_of(mark, struct kevent_inode_mark, fsn)

/* Events */

/* Does the watch want to know that the inode has no name, and does it not know yet? */
static bool ev_inode_lost_name(struct kevent_inode *ki,
			       const struct inode *inode)
{
	/* Not all file systems count the links of a directory. */
	bool gone = S_ISDIR(inode->i_mode) ? IS_DEADDIR(inode) :
					     !READ_ONCE(inode->i_nlink);
	bool lost = gone && !ki->nameless &&
		    ki->kf.ke.event & KEVENT_INODE_REMOVE;

	if (lost || !gone)
		ki->nameless = gone;
	return lost;
}

/* Conditions, and the events of fsnotify that report them, besides the loss of a name */
static const struct {
	u32	event;
	u32	mask;
} ev_inode_pairs[] = {
	{ KEVENT_INODE_CREATE,	FS_CREATE },
	{ KEVENT_INODE_REMOVE,	FS_DELETE },
	{ KEVENT_INODE_MODIFY,	FS_MODIFY },
	{ KEVENT_INODE_ATTRIB,	FS_ATTRIB },
	{ KEVENT_INODE_RENAME,	FS_MOVE | FS_MOVE_SELF },
};

/* @inode: it may have lost its last name; or NULL */
static void ev_inode_report(struct kevent_inode *ki, u32 events,
			    const struct inode *inode)
{
	struct kevent *ke = &ki->kf.ke;

	guard(kevent_queue)(ke->queue);
	if (inode && ev_inode_lost_name(ki, inode))
		events |= KEVENT_INODE_REMOVE;
	kevent_ready_locked(ke, events);
}

static int ev_inode_handle(struct fsnotify_mark *fsn, u32 mask,
			   struct inode *inode, struct inode *dir,
			   const struct qstr *name, u32 cookie)
{
	struct kevent_inode_mark *mark = to_mark(fsn);
	struct kevent_inode *ki;
	u32 events = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(ev_inode_pairs); i++)
		if (mask & ev_inode_pairs[i].mask)
			events |= ev_inode_pairs[i].event;
	if (!(mask & (FS_ATTRIB | FS_DELETE_SELF)))
		inode = NULL;
	/* With a watch on the list, detach() waits for the lock. */
	guard(spinlock)(&fsn->lock);
	list_for_each_entry(ki, &mark->watches, link)
		if (inode || events & READ_ONCE(ki->kf.ke.event))
			ev_inode_report(ki, events, inode);
	return 0;
}

/* No watch is left, or others destroy the mark as a last name goes. */
static void ev_inode_freeing(struct fsnotify_mark *fsn,
			     struct fsnotify_group *group)
{
	struct kevent_inode_mark *mark = to_mark(fsn);
	struct kevent_inode *ki;

	guard(spinlock)(&fsn->lock);
	list_for_each_entry(ki, &mark->watches, link)
		kevent_broken(&ki->kf.ke);
}

static void ev_inode_free_mark(struct fsnotify_mark *fsn)
{
	kfree(to_mark(fsn));
	host_unpin();
}

static const struct fsnotify_ops ev_inode_fsnotify_ops = {
	.handle_inode_event	= ev_inode_handle,
	.freeing_mark		= ev_inode_freeing,
	.free_mark		= ev_inode_free_mark,
};

/* Users */

static int ev_inode_user_cmp(const void *owner, const struct rb_node *node)
{
	const struct ev_inode_user *user = rb_entry(node, struct ev_inode_user,
						    node);

	if (owner == user->owner)
		return 0;
	return owner < (void *)user->owner ? -1 : 1;
}

static int ev_inode_node_cmp(struct rb_node *a, const struct rb_node *b)
{
	return ev_inode_user_cmp(rb_entry(a, struct ev_inode_user, node)->owner,
				 b);
}

static struct ev_inode_user *ev_inode_user_new(struct kevent_owner *owner)
{
	struct ev_inode_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	user->group = fsnotify_alloc_group(&ev_inode_fsnotify_ops,
					   FSNOTIFY_GROUP_USER);
	if (IS_ERR(user->group)) {
		kfree(user);
		return NULL;
	}
	mutex_init(&user->mark_mutex);
	user->owner = owner;
	user->refs = 1;
	return user;
}

/* No mark of the group is attached, nor will be. A mark that another task holds keeps the group. */
static void ev_inode_user_free(struct ev_inode_user *user)
{
	fsnotify_put_group(user->group);
	kfree(user);
}

static void ev_inode_user_put(struct ev_inode_user *user)
{
	scoped_guard(spinlock, &ev_inode_users_lock) {
		if (--user->refs)
			return;
		rb_erase(&user->node, &ev_inode_users);
	}
	ev_inode_user_free(user);
}

/* With a reference, made if need be; NULL when there is no memory */
static struct ev_inode_user *ev_inode_user_get(struct kevent_owner *owner)
{
	struct ev_inode_user *user, *made = NULL;
	struct rb_node *found;

	for (;;) {
		scoped_guard(spinlock, &ev_inode_users_lock) {
			found = made ? rb_find_add(&made->node, &ev_inode_users,
						   ev_inode_node_cmp) :
				       rb_find(owner, &ev_inode_users, ev_inode_user_cmp);
			user = rb_entry_safe(found, struct ev_inode_user, node);
			if (user)
				user->refs++;
		}
		if (user || made)
			break;
		made = ev_inode_user_new(owner);
		if (!made)
			return NULL;
	}
	if (user && made)
		ev_inode_user_free(made);
	return user ?: made;
}

/* Marks */

static void ev_inode_link(struct kevent_inode_mark *mark,
			  struct kevent_inode *ki)
{
	ki->mark = mark;
	guard(spinlock)(&mark->fsn.lock);
	/* The newest comes first, as with other files. */
	list_add(&ki->link, &mark->watches);
	mark->nr++;
}

/* Returns whether it was the last. */
static bool ev_inode_unlink(struct kevent_inode *ki)
{
	struct kevent_inode_mark *mark = ki->mark;

	guard(spinlock)(&mark->fsn.lock);
	list_del(&ki->link);
	return !--mark->nr;
}

/* The first mark of the user on the inode; it takes over the reference of @user. */
static int ev_inode_new_mark(struct kevent_inode *ki, struct inode *inode,
			     struct ev_inode_user *user)
{
	struct kevent_inode_mark *mark;
	int err;

	mark = kzalloc(sizeof(*mark), GFP_KERNEL_ACCOUNT);
	if (!mark)
		return -ENOMEM;
	host_pin();
	fsnotify_init_mark(&mark->fsn, user->group);
	mark->fsn.mask = EV_INODE_FS_EVENTS;
	mark->user = user;
	INIT_LIST_HEAD(&mark->watches);
	ev_inode_link(mark, ki);
	err = fsnotify_add_inode_mark(&mark->fsn, inode, 0);
	if (err) {
		ev_inode_unlink(ki);
		ki->mark = NULL;
		fsnotify_put_mark(&mark->fsn);
	}
	return err;
}

/* @user: with a reference, which is dropped unless a new mark takes it over */
static int ev_inode_join(struct kevent_inode *ki, struct inode *inode,
			 struct ev_inode_user *user)
{
	struct fsnotify_mark *fsn;
	int err = 0;

	mutex_lock(&user->mark_mutex);
	fsn = fsnotify_find_inode_mark(inode, user->group);
	if (!fsn) {
		err = ev_inode_new_mark(ki, inode, user);
	} else if (to_mark(fsn)->nr >= EV_INODE_MAX) {
		err = -ENOSPC;
	} else {
		ev_inode_link(to_mark(fsn), ki);
		/*
		 * Others may destroy the mark meanwhile, as a last name goes: they clear the flag
		 * under mark->lock, and then break what is on the list. This may be too late.
		 */
		if (!(READ_ONCE(fsn->flags) & FSNOTIFY_MARK_FLAG_ALIVE))
			err = -ENOENT;
	}
	mutex_unlock(&user->mark_mutex);
	if (fsn)
		fsnotify_put_mark(fsn);
	if (fsn || err)
		ev_inode_user_put(user);
	return err;
}

/* Watches */

/* A watch needs the right to read the file, as one of inotify does. */
static int ev_inode_check(const struct ukevent *uk, struct file *file)
{
	umode_t mode = file_inode(file)->i_mode;

	if (!uk->event || uk->event & ~EV_INODE_EVENTS)
		return -EINVAL;
	if (!S_ISREG(mode) && !S_ISDIR(mode))
		return -EINVAL;
	return file->f_mode & FMODE_READ ? 0 : -EACCES;
}

static int ev_inode_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_inode *ki = to_inode(ke);
	struct inode *inode = file_inode(file);
	struct ev_inode_user *user;
	int err;

	memset_after(ki, 0, kf);
	err = kevent_file_link(&ki->kf, file) ?:
	      host_may_notify(file, EV_INODE_FS_EVENTS);
	if (err)
		return err;
	user = ev_inode_user_get(ke->queue->owner);
	if (!user)
		return -ENOMEM;
	err = ev_inode_join(ki, inode, user);
	/* The inode's marks are being destroyed: so would this one. */
	if (err == -ENOENT) {
		kevent_broken(ke);
		return 0;
	}
	if (err)
		return err;
	/* The mark asks already, so no later loss of a name is missed. */
	guard(spinlock_irq)(&ke->queue->ready_lock);
	return ev_inode_lost_name(ki, inode) ? KEVENT_INODE_REMOVE : 0;
}

/* The file is pinned and with it the inode: no mark's end is the inode's. */
static void ev_inode_detach(struct kevent *ke)
{
	struct kevent_inode_mark *mark = to_inode(ke)->mark;
	struct ev_inode_user *user;
	bool last;

	if (!mark)
		return;
	user = mark->user;
	mutex_lock(&user->mark_mutex);
	last = ev_inode_unlink(to_inode(ke));
	if (last)
		fsnotify_destroy_mark(&mark->fsn, user->group);
	mutex_unlock(&user->mark_mutex);
	if (!last)
		return;
	fsnotify_put_mark(&mark->fsn);
	ev_inode_user_put(user);
}

/* Drop events that the watch no longer wants. A name may have been lost before. */
static void ev_inode_modified(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_inode *ki = to_inode(ke);

	/* ADD may have found it, and not have given it to anybody yet. */
	if (!(uk->event & KEVENT_INODE_REMOVE) &&
	    (ke->ready & KEVENT_INODE_REMOVE || kevent_is_claimed(ke)))
		ki->nameless = false;
	ke->ready &= uk->event;
	if (!ke->ready && !kevent_is_broken(ke))
		kevent_forget(ke);
	if (ev_inode_lost_name(ki, file_inode(ki->kf.file)))
		kevent_ready_locked(ke, KEVENT_INODE_REMOVE);
}

const struct kevent_source_ops kevent_inode_ops = {
	.name		= "inode",
	.flags		= KEVENT_SOURCE_FILE,
	.size		= sizeof(struct kevent_inode),
	/* As if it were alone on its inode. */
	.pins		= roundup_pow_of_two(sizeof(struct kevent_inode_mark)) +
			  sizeof(struct fsnotify_mark_connector),
	.marks		= EV_INODE_EVENTS,
	.check		= ev_inode_check,
	.attach		= ev_inode_attach,
	.detach		= ev_inode_detach,
	.modified	= ev_inode_modified,
};
