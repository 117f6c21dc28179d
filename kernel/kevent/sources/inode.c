// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of files and directories, by marks of fsnotify
 *
 * A task that changes an inode calls its listeners, so other users must not be able to
 * make that long. A user has one group of fsnotify, and one fsnotify mark in it for each
 * inode that his queues watch. The watches of that inode are on the mark's list, at most
 * 128. So a task that changes the inode calls 128 callbacks per user, however many queues
 * that user has, and an inode has no more of these marks than it has users. A group has
 * one mutex, under which marks come and go and change their mask: ADD holds it while it
 * may allocate (without file system recursion), MODIFY and detach() take it, and nobody
 * holds it over a fault or a ->poll(). Each user has a mutex of his own.
 *
 * The mask of a mark is what its watches ask for together. MODIFY changes the interest
 * under ready_lock, where the mask of the inode can't be recalculated; modify_done() does
 * that afterwards, before MODIFY returns. It needs the inode only, which the caller has
 * pinned, so the watch may be gone by then. It also checks whether a name was lost while
 * nobody asked for that.
 *
 * fsnotify calls ev_inode_handle() under SRCU only, and a worker waits for that before it
 * frees a mark. A listener of fanotify that does not answer may hold a mark without end.
 * So the mark is an object of its own, and mark->lock covers list and report: detach()
 * takes the watch off the list, and no callback that still runs finds it. The order is
 * mutex of the group > mark->lock > ready_lock. The file is pinned where we destroy marks,
 * so the reference to the inode that goes with it is never the last one. For the same
 * reason a group does not end by fsnotify_destroy_group(), which waits for all who hold
 * its marks, but is put after its last mark was detached; a task that holds a mark holds
 * its group.
 *
 * While a descriptor is open, FS_DELETE_SELF does not come. FS_ATTRIB does when a name is
 * removed; a count of links that is zero then means REMOVE, once until the inode has a
 * name again. ADD reads the count after it has added the mark.
 */

#include <linux/cleanup.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/rbtree.h>
#include <linux/slab.h>

#include "../core/source.h"
#include "../host.h"
#include "../host_inode.h"

#define EV_INODE_EVENTS							\
	(KEVENT_INODE_CREATE | KEVENT_INODE_REMOVE | KEVENT_INODE_MODIFY | \
	 KEVENT_INODE_ATTRIB | KEVENT_INODE_RENAME)

#define EV_INODE_NR_EVENTS	5
static_assert(BIT(EV_INODE_NR_EVENTS) - 1 == EV_INODE_EVENTS);

/* What a watch may ask for, now or by MODIFY: security modules are asked once. */
#define EV_INODE_FS_EVENTS						\
	(FS_CREATE | FS_DELETE | FS_MODIFY | FS_ATTRIB | FS_MOVE |	\
	 FS_DELETE_SELF | FS_MOVE_SELF)

/*
 * Watches of one inode, over all queues of a user. A task that changes the inode
 * calls that many callbacks, under the lock of the inode. By default a user has
 * as many inotify instances, with one mark of an inode each.
 */
#define EV_INODE_MAX	128

/**
 * struct ev_inode_user - the marks of a user
 * @node:	in ev_inode_users, under its lock
 * @owner:	I: the user; a pointer to compare, held by the queues of @refs
 * @marks:	their group, I, with a reference, and its mutex, mark_mutex: that makes
 *		ADD, MODIFY and REMOVE of this user wait for one another, and for
 *		nobody else's
 * @refs:	marks, and calls at work; under the lock of ev_inode_users
 *
 * As many as there are users with INODE watches.
 */
struct ev_inode_user {
	struct rb_node		node;
	struct kevent_owner	*owner;
	struct host_marks	marks;
	unsigned int		refs;
};

/**
 * struct kevent_inode_mark - what fsnotify knows of the watches of one user and
 *			      one inode
 * @fsn:	the mark; its mask has what the watches ask for
 * @user:	I: whose it is, with a reference until the last watch has gone
 * @mask:	what the watches ask for; under mark_mutex, read by callbacks
 * @watches:	the watches, at most %EV_INODE_MAX: each callback walks them, under
 *		@fsn.lock. Changed under that and mark_mutex
 * @nr:		their number; under mark_mutex
 * @asking:	how many of them ask for each event; under mark_mutex
 *
 * fsnotify calls back under SRCU, and may hold a mark after it was destroyed.
 * So a mark is freed on its own, later than its watches.
 */
struct kevent_inode_mark {
	struct fsnotify_mark	fsn;
	struct ev_inode_user	*user;
	u32			mask;
	struct list_head	watches;
	unsigned int		nr;
	u8			asking[EV_INODE_NR_EVENTS];
};

static_assert(EV_INODE_MAX <= U8_MAX);

/**
 * struct kevent_inode - a watch of a file or directory
 * @kf:		the watch
 * @mark:	I: what it is on; NULL when attach() failed early
 * @link:	in &kevent_inode_mark.watches
 * @nameless:	the inode was seen without a name; under the lock of the mark
 * @asked:	the events for which it is counted in &kevent_inode_mark.asking
 */
struct kevent_inode {
	struct kevent_file		kf;
	struct kevent_inode_mark	*mark;
	struct list_head		link;
	bool				nameless;
	u8				asked;
};

static struct kmem_cache *ev_inode_marks __ro_after_init;
static DEFINE_SPINLOCK(ev_inode_users_lock);
static struct rb_root ev_inode_users = RB_ROOT;	/* ev_inode_users_lock */

static struct kevent_inode *to_inode(struct kevent *ke)
{
	return container_of(ke, struct kevent_inode, kf.ke);
}

static struct kevent_inode_mark *to_mark(struct fsnotify_mark *fsn)
{
	return container_of(fsn, struct kevent_inode_mark, fsn);
}

/* Events */

/* Has the inode lost its last name since the watch saw it with one? */
static bool ev_inode_lost_name(struct kevent_inode *ki,
			       const struct inode *inode)
{
	bool before = ki->nameless;

	lockdep_assert_held(&ki->mark->fsn.lock);

	/* Not all file systems count the links of a directory. */
	ki->nameless = S_ISDIR(inode->i_mode) ? IS_DEADDIR(inode) :
						!READ_ONCE(inode->i_nlink);
	return ki->nameless && !before;
}

/* What has to be asked for to learn of these. See also ev_inode_events(). */
static u32 ev_inode_fs_mask(u32 events)
{
	u32 mask = 0;

	if (events & KEVENT_INODE_CREATE)
		mask |= FS_CREATE;
	if (events & KEVENT_INODE_REMOVE)
		mask |= FS_DELETE | FS_ATTRIB | FS_DELETE_SELF;
	if (events & KEVENT_INODE_MODIFY)
		mask |= FS_MODIFY;
	if (events & KEVENT_INODE_ATTRIB)
		mask |= FS_ATTRIB;
	if (events & KEVENT_INODE_RENAME)
		mask |= FS_MOVE | FS_MOVE_SELF;
	return mask;
}

/*
 * While a descriptor is open fsnotify does not report the end of its inode. It
 * reports a change of the number of links, as FS_ATTRIB.
 */
static u32 ev_inode_events(struct kevent_inode *ki, u32 mask,
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
	    ev_inode_lost_name(ki, inode))
		events |= KEVENT_INODE_REMOVE;
	return events;
}

static int ev_inode_handle(struct fsnotify_mark *fsn, u32 mask,
			   struct inode *inode, struct inode *dir,
			   const struct qstr *name, u32 cookie)
{
	struct kevent_inode_mark *mark = to_mark(fsn);
	struct kevent_inode *ki;
	u32 events;

	mask &= READ_ONCE(mark->mask);
	/* With a watch on the list, detach() waits for the lock. */
	spin_lock(&fsn->lock);
	list_for_each_entry(ki, &mark->watches, link) {
		events = ev_inode_events(ki, mask, inode);
		/* MODIFY sets this first, and makes us look afterwards. */
		if (events & READ_ONCE(ki->kf.ke.event))
			kevent_ready(&ki->kf.ke, events);
	}
	spin_unlock(&fsn->lock);
	return 0;
}

/* No watch is left, or others destroy the mark as a last name goes. */
static void ev_inode_freeing(struct fsnotify_mark *fsn,
			     struct fsnotify_group *group)
{
	struct kevent_inode_mark *mark = to_mark(fsn);
	struct kevent_inode *ki;

	spin_lock(&fsn->lock);
	list_for_each_entry(ki, &mark->watches, link)
		kevent_broken(&ki->kf.ke);
	spin_unlock(&fsn->lock);
}

static void ev_inode_free_mark(struct fsnotify_mark *fsn)
{
	kmem_cache_free(ev_inode_marks, to_mark(fsn));
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

/* With a reference, or NULL */
static struct ev_inode_user *ev_inode_user_find(struct kevent_owner *owner)
{
	struct ev_inode_user *user;

	spin_lock(&ev_inode_users_lock);
	user = rb_entry_safe(rb_find(owner, &ev_inode_users, ev_inode_user_cmp),
			     struct ev_inode_user, node);
	if (user)
		user->refs++;
	spin_unlock(&ev_inode_users_lock);
	return user;
}

static struct ev_inode_user *ev_inode_user_new(struct kevent_owner *owner)
{
	struct ev_inode_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	if (host_marks_init(&user->marks, &ev_inode_fsnotify_ops)) {
		kfree(user);
		return NULL;
	}
	user->owner = owner;
	user->refs = 1;
	return user;
}

/*
 * No mark of the group is attached, nor will be. fsnotify_destroy_group() would
 * wait for listeners of fanotify, with whom it shares the marks of an inode they
 * have not let go of. Such a mark keeps the group, and who lets it go uses the
 * group under SRCU, for which the mark's end waits.
 */
static void ev_inode_user_free(struct ev_inode_user *user)
{
	fsnotify_put_group(user->marks.group);
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

/* Puts @made in the tree, unless another task was first: returns what is there. */
static struct ev_inode_user *ev_inode_user_add(struct ev_inode_user *made)
{
	struct ev_inode_user *user = made;
	struct rb_node *found;

	spin_lock(&ev_inode_users_lock);
	found = rb_find_add(&made->node, &ev_inode_users, ev_inode_node_cmp);
	if (found) {
		user = rb_entry(found, struct ev_inode_user, node);
		user->refs++;
	}
	spin_unlock(&ev_inode_users_lock);
	return user;
}

/* With a reference, made if need be; NULL when there is no memory */
static struct ev_inode_user *ev_inode_user_get(struct kevent_owner *owner)
{
	struct ev_inode_user *user = ev_inode_user_find(owner), *made;

	if (user)
		return user;
	made = ev_inode_user_new(owner);
	if (!made)
		return NULL;
	user = ev_inode_user_add(made);
	if (user != made)
		ev_inode_user_free(made);
	return user;
}

/* Marks */

/* The watch asks for other events than before. */
static void ev_inode_ask(struct kevent_inode *ki, u32 events)
{
	struct kevent_inode_mark *mark = ki->mark;
	unsigned int i;

	host_marks_assert(&mark->user->marks);

	for (i = 0; i < EV_INODE_NR_EVENTS; i++) {
		mark->asking[i] += !!(events & BIT(i));
		mark->asking[i] -= !!(ki->asked & BIT(i));
	}
	ki->asked = events;
}

/* Have the mark ask for what the watches ask for. */
static void ev_inode_update(struct kevent_inode_mark *mark)
{
	u32 events = 0;
	unsigned int i;

	host_marks_assert(&mark->user->marks);

	for (i = 0; i < EV_INODE_NR_EVENTS; i++)
		events |= mark->asking[i] ? BIT(i) : 0;
	WRITE_ONCE(mark->mask, ev_inode_fs_mask(events));
	host_mark_ask(&mark->fsn, mark->mask);
}

/* What happened to the name while nobody asked for it */
static void ev_inode_look(struct kevent_inode_mark *mark,
			  const struct inode *inode)
{
	struct kevent_inode *ki;

	spin_lock(&mark->fsn.lock);
	list_for_each_entry(ki, &mark->watches, link)
		if (ev_inode_lost_name(ki, inode))
			kevent_ready(&ki->kf.ke, KEVENT_INODE_REMOVE);
	spin_unlock(&mark->fsn.lock);
}

static void ev_inode_link(struct kevent_inode_mark *mark,
			  struct kevent_inode *ki)
{
	host_marks_assert(&mark->user->marks);

	ki->mark = mark;
	/* A MODIFY that comes before this is seen here, a later one settles it. */
	ev_inode_ask(ki, READ_ONCE(ki->kf.ke.event));
	spin_lock(&mark->fsn.lock);
	/* The newest comes first, as with other files. */
	list_add(&ki->link, &mark->watches);
	mark->nr++;
	spin_unlock(&mark->fsn.lock);
}

/* Returns whether it was the last. */
static bool ev_inode_unlink(struct kevent_inode *ki)
{
	struct kevent_inode_mark *mark = ki->mark;

	host_marks_assert(&mark->user->marks);

	ev_inode_ask(ki, 0);
	spin_lock(&mark->fsn.lock);
	list_del(&ki->link);
	mark->nr--;
	spin_unlock(&mark->fsn.lock);
	return !mark->nr;
}

/* The first mark of the user on the inode; it takes over the reference of @user. */
static int ev_inode_new_mark(struct kevent_inode *ki, struct inode *inode,
			     struct ev_inode_user *user)
{
	struct kevent_inode_mark *mark;
	int err;

	mark = kmem_cache_alloc(ev_inode_marks, GFP_KERNEL);
	if (!mark)
		return -ENOMEM;
	host_pin();
	fsnotify_init_mark(&mark->fsn, user->marks.group);
	mark->user = user;
	INIT_LIST_HEAD(&mark->watches);
	mark->nr = 0;
	memset(mark->asking, 0, sizeof(mark->asking));
	ev_inode_link(mark, ki);
	mark->mask = ev_inode_fs_mask(ki->asked);
	err = host_mark_add(&user->marks, &mark->fsn, inode, mark->mask);
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

	host_marks_lock(&user->marks);
	fsn = host_mark_find(&user->marks, inode);
	if (!fsn) {
		err = ev_inode_new_mark(ki, inode, user);
	} else if (to_mark(fsn)->nr >= EV_INODE_MAX) {
		err = -ENOSPC;
	} else {
		ev_inode_link(to_mark(fsn), ki);
		ev_inode_update(to_mark(fsn));
	}
	host_marks_unlock(&user->marks);
	if (fsn)
		fsnotify_put_mark(fsn);
	if (fsn || err)
		ev_inode_user_put(user);
	return err;
}

/* The file is pinned and with it the inode: no mark's end is the inode's. */
static void ev_inode_leave(struct kevent_inode *ki)
{
	struct kevent_inode_mark *mark = ki->mark;
	struct ev_inode_user *user = mark->user;
	bool last;

	host_marks_lock(&user->marks);
	last = ev_inode_unlink(ki);
	if (last)
		host_mark_detach(&user->marks, &mark->fsn);
	else
		ev_inode_update(mark);
	host_marks_unlock(&user->marks);
	if (!last)
		return;
	host_mark_free(&mark->fsn);
	fsnotify_put_mark(&mark->fsn);
	ev_inode_user_put(user);
}

/* Watches */

/* What may be read may be watched, as with inotify. */
static int ev_inode_check(const struct ukevent *uk, struct file *file)
{
	umode_t mode = file_inode(file)->i_mode;

	if (!uk->event || uk->event & ~EV_INODE_EVENTS)
		return -EINVAL;
	if (!S_ISREG(mode) && !S_ISDIR(mode))
		return -EINVAL;
	return file->f_mode & FMODE_READ ? 0 : -EACCES;
}

/* The mark asks already, so no later loss of a name is missed. */
static u32 ev_inode_holds(struct kevent_inode *ki, const struct inode *inode)
{
	bool lost;

	spin_lock(&ki->mark->fsn.lock);
	lost = ev_inode_lost_name(ki, inode);
	spin_unlock(&ki->mark->fsn.lock);
	return lost ? KEVENT_INODE_REMOVE : 0;
}

static int ev_inode_mark(struct kevent_inode *ki, struct inode *inode)
{
	struct ev_inode_user *user = ev_inode_user_get(ki->kf.ke.queue->owner);

	return user ? ev_inode_join(ki, inode, user) : -ENOMEM;
}

static int ev_inode_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_inode *ki = to_inode(ke);
	struct inode *inode = file_inode(file);
	int err;

	memset_after(ki, 0, kf);
	err = kevent_file_link(&ki->kf, file);
	if (!err)
		err = host_may_notify(file, EV_INODE_FS_EVENTS);
	if (!err)
		err = ev_inode_mark(ki, inode);
	/* The inode's marks are being destroyed: so would this one. */
	if (err == -ENOENT)
		kevent_broken(ke);
	else if (err)
		return err;
	return err ? 0 : ev_inode_holds(ki, inode) & uk->event;
}

static void ev_inode_detach(struct kevent *ke)
{
	struct kevent_inode *ki = to_inode(ke);

	if (ki->mark)
		ev_inode_leave(ki);
}

/*
 * Interests have changed: see that the mark asks for all of them before MODIFY
 * returns. The watch may be gone by now; which one it was does not matter.
 */
static void ev_inode_modify_done(struct kevent_queue *q, struct file *file)
{
	struct ev_inode_user *user = ev_inode_user_find(q->owner);
	struct inode *inode = file_inode(file);
	struct fsnotify_mark *fsn;
	struct kevent_inode *ki;

	if (!user)
		return;
	host_marks_lock(&user->marks);
	fsn = host_mark_find(&user->marks, inode);
	if (fsn) {
		list_for_each_entry(ki, &to_mark(fsn)->watches, link)
			ev_inode_ask(ki, READ_ONCE(ki->kf.ke.event));
		ev_inode_update(to_mark(fsn));
		ev_inode_look(to_mark(fsn), inode);
	}
	host_marks_unlock(&user->marks);
	if (fsn)
		fsnotify_put_mark(fsn);
	ev_inode_user_put(user);
}

/* What is not wanted any more is not reported. */
static void ev_inode_modified(struct kevent *ke, const struct ukevent *uk)
{
	ke->ready &= uk->event;
	if (!ke->ready && !kevent_is_broken(ke))
		kevent_forget(ke);
}

static int ev_inode_init(void)
{
	ev_inode_marks = host_cache("inode_mark",
				    sizeof(struct kevent_inode_mark),
				    __alignof__(struct kevent_inode_mark), false);
	return ev_inode_marks ? 0 : -ENOMEM;
}

const struct kevent_source_ops kevent_inode_ops = {
	.name		= "inode",
	.file		= true,
	.marks		= EV_INODE_EVENTS,
	.size		= sizeof(struct kevent_inode),
	/* As if it were alone on its inode. */
	.pins		= sizeof(struct kevent_inode_mark) +
			  sizeof(struct fsnotify_mark_connector),
	.init		= ev_inode_init,
	.check		= ev_inode_check,
	.attach		= ev_inode_attach,
	.detach		= ev_inode_detach,
	.modified	= ev_inode_modified,
	.modify_done	= ev_inode_modify_done,
};
