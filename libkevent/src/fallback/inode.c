// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * INODE, by inotify
 *
 * Inotify knows an inode once, so watches of the same inode share what it calls a
 * watch descriptor: its mask is that of all of them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "api/identity.h"
#include "ops.h"
#include "sys.h"

#define FB_INODE_ALL	(KEVENT_INODE_CREATE | KEVENT_INODE_REMOVE | \
			 KEVENT_INODE_MODIFY | KEVENT_INODE_ATTRIB | \
			 KEVENT_INODE_RENAME)
#define FB_INODE_CHAINS	64U
/* Of the inode, not of a child: its last name may be gone, or what inotify has of it. */
#define FB_INODE_SELF	(IN_ATTRIB | IN_DELETE_SELF | IN_UNMOUNT | IN_IGNORED)

/**
 * struct fb_inode - a watch of an inode
 * @w:		the watch
 * @next:	in its chain of fb_queue.inodes
 * @ino:	of the inode, with @dev: the descriptor may come to mean another one
 * @dev:	as statx() has it
 * @opened:	see fb_opened()
 * @wd:		what inotify calls it; -1: nothing, also when the watch is broken
 * @gone:	it has no name any more, and that was reported
 */
struct fb_inode {
	struct fb_watch	w;
	struct fb_inode	*next;
	__u64		ino;
	__u32		dev[2];
	__u32		opened;
	int		wd;
	bool		gone;
};

#define to_inode(watch)	fb_container(watch, struct fb_inode, w)

static struct fb_inode **fb_inode_chain(struct fb_queue *q, int wd)
{
	return &q->inodes[(unsigned int)wd % FB_INODE_CHAINS];
}

/* Masks */

static __u32 fb_inode_mask(__u32 event)
{
	__u32 mask = 0;

	if (event & KEVENT_INODE_CREATE)
		mask |= IN_CREATE;
	if (event & KEVENT_INODE_REMOVE)
		mask |= IN_DELETE | IN_DELETE_SELF | IN_ATTRIB;
	if (event & KEVENT_INODE_MODIFY)
		mask |= IN_MODIFY;
	if (event & KEVENT_INODE_ATTRIB)
		mask |= IN_ATTRIB;
	if (event & KEVENT_INODE_RENAME)
		mask |= IN_MOVE_SELF | IN_MOVED_FROM | IN_MOVED_TO;
	return mask;
}

/* Of a directory's children there are ATTRIB and MODIFY, too, with a name. */
static __u32 fb_inode_events(const struct inotify_event *ev)
{
	__u32 events = 0;

	if (ev->mask & IN_CREATE)
		events |= KEVENT_INODE_CREATE;
	if (ev->mask & IN_DELETE)
		events |= KEVENT_INODE_REMOVE;
	if (ev->mask & IN_MODIFY && !ev->len)
		events |= KEVENT_INODE_MODIFY;
	if (ev->mask & IN_ATTRIB && !ev->len)
		events |= KEVENT_INODE_ATTRIB;
	if (ev->mask & (IN_MOVE_SELF | IN_MOVED_FROM | IN_MOVED_TO))
		events |= KEVENT_INODE_RENAME;
	return events;
}

/* Files */

static bool fb_inode_identify(struct fb_inode *inode, struct kevent_identity *id)
{
	return kevent_identify(fb_fd_of(&inode->w), id) &&
	       id->ino == inode->ino && id->dev[0] == inode->dev[0] &&
	       id->dev[1] == inode->dev[1] &&
	       fb_opened_is(fb_fd_of(&inode->w), inode->opened);
}

/* An inode that is open is not deleted: its last name goes by a change of links. */
static __u32 fb_inode_lost_name(struct fb_inode *inode)
{
	__u32 lost = inode->w.event & KEVENT_INODE_REMOVE;
	struct kevent_identity id;

	if (!fb_inode_identify(inode, &id))
		return 0;
	if (inode->gone || id.nlink)
		lost = 0;
	if (lost || id.nlink)
		inode->gone = lost;
	return lost;
}

static int fb_inode_check(const struct ukevent *uk)
{
	int fd = (int)uk->id.raw[0], flags = fb_call(fcntl(fd, F_GETFL));
	struct kevent_identity id;

	if (flags < 0 || flags & O_PATH || !kevent_identify(fd, &id))
		return -EBADF;
	if (!uk->event || uk->event & ~FB_INODE_ALL)
		return -EINVAL;
	if (!S_ISREG(id.mode) && !S_ISDIR(id.mode))
		return -EINVAL;
	return (flags & O_ACCMODE) == O_WRONLY ? -EACCES : 0;
}

static int fb_inode_current(struct fb_queue *q, struct fb_watch *w)
{
	struct kevent_identity id;

	if (fb_inode_identify(to_inode(w), &id))
		return 0;
	return fb_call(fcntl(fb_fd_of(w), F_GETFD)) < 0 ? -EBADF : -ENOENT;
}

/* Inotify */

static void fb_inodes_free(struct fb_queue *q)
{
	free(q->inodes);
	q->inodes = NULL;
}

static int fb_inodes_get(struct fb_queue *q)
{
	int err;

	if (q->inodes)
		return 0;
	q->inodes = calloc(FB_INODE_CHAINS, sizeof(*q->inodes));
	if (!q->inodes)
		return -ENOMEM;
	err = fb_own_watched(q, FB_OWN_INOTIFY, fb_call(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)));
	if (err)
		fb_inodes_free(q);
	return err;
}

static int fb_inode_listen(struct fb_queue *q, struct fb_inode *inode)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d",
		 fb_fd_of(&inode->w));
	/* IN_MASK_ADD: others may watch the inode. */
	return fb_call(inotify_add_watch(q->own[FB_OWN_INOTIFY], path,
					 IN_MASK_ADD |
					 fb_inode_mask(inode->w.event)));
}

static void fb_inode_link(struct fb_queue *q, struct fb_inode *inode, int wd)
{
	struct fb_inode **chain = fb_inode_chain(q, wd);

	inode->wd = wd;
	inode->next = *chain;
	*chain = inode;
}

static void fb_inode_unlink(struct fb_queue *q, struct fb_inode *inode)
{
	struct fb_inode **at = fb_inode_chain(q, inode->wd);

	while (*at != inode)
		at = &(*at)->next;
	*at = inode->next;
	inode->wd = -1;
}

/* Inotify need not watch what no watch of the queue is about. */
static void fb_inode_drop(struct fb_queue *q, int wd)
{
	struct fb_inode *inode = *fb_inode_chain(q, wd);

	for (; inode; inode = inode->next)
		if (inode->wd == wd)
			return;
	fb_call(inotify_rm_watch(q->own[FB_OWN_INOTIFY], wd));
}

/* The watch gets no more events of inotify. */
static void fb_inode_break(struct fb_queue *q, struct fb_inode *inode)
{
	int wd = inode->wd;

	fb_inode_unlink(q, inode);
	fb_inode_drop(q, wd);
	inode->w.state |= FB_BROKEN;
}

/* Inotify forgets an inode with its last name; the file goes on. */
static void fb_inode_relisten(struct fb_queue *q, struct fb_inode *inode)
{
	int wd = fb_inode_listen(q, inode);

	if (wd < 0) {
		fb_inode_break(q, inode);
		return;
	}
	fb_inode_unlink(q, inode);
	fb_inode_link(q, inode, wd);
}

static void fb_inode_tell(struct fb_queue *q, struct fb_inode *inode,
			  const struct inotify_event *ev)
{
	__u32 events = fb_inode_events(ev) & inode->w.event;
	struct kevent_identity id;

	if (!events && (ev->len || !(ev->mask & FB_INODE_SELF)))
		return;
	/*
	 * The watch went with its descriptor. It stays for the next request that
	 * names it, as the caller may be one.
	 */
	if (!fb_inode_identify(inode, &id))
		return;
	if (ev->mask & (IN_ATTRIB | IN_DELETE_SELF))
		events |= fb_inode_lost_name(inode);
	if (ev->mask & IN_UNMOUNT)
		fb_inode_break(q, inode);
	else if (ev->mask & IN_IGNORED)
		fb_inode_relisten(q, inode);
	if (events || inode->w.state & FB_BROKEN)
		fb_report(q, &inode->w, events);
}

static void fb_inode_happened(struct fb_queue *q, const struct inotify_event *ev)
{
	struct fb_inode *inode = *fb_inode_chain(q, ev->wd), *next;

	for (; inode; inode = next) {
		next = inode->next;
		if (inode->wd == ev->wd)
			fb_inode_tell(q, inode, ev);
	}
}

/* Inotify has dropped some: anything may have happened to each, or it is forgotten. */
static void fb_inode_missed(struct fb_queue *q, struct fb_inode *inode)
{
	__u32 events = inode->w.event;
	struct kevent_identity id;

	if (!fb_inode_identify(inode, &id))
		return;
	/* A file is removed when it has no name, and that can be seen. */
	if (!S_ISDIR(id.mode))
		events &= ~KEVENT_INODE_REMOVE;
	events |= fb_inode_lost_name(inode);
	fb_inode_relisten(q, inode);
	if (events || inode->w.state & FB_BROKEN)
		fb_report(q, &inode->w, events);
}

static void fb_inodes_missed(struct fb_queue *q)
{
	struct fb_inode *inode, *next;
	__u32 i;

	for (i = 0; i < FB_INODE_CHAINS; i++) {
		for (inode = q->inodes[i]; inode; inode = next) {
			next = inode->next;
			fb_inode_missed(q, inode);
		}
	}
}

/*
 * Read only the bytes that are there now, as other programs may change files faster than this loop
 * reads. If FIONREAD fails, read once.
 */
static void fb_inodes_read(struct fb_queue *q, __u32 nr)
{
	union {
		struct inotify_event	ev;
		char			bytes[4096];
	} buf;
	const struct inotify_event *ev;
	long len, at;
	int left = 1;

	fb_sys(SYS_ioctl, q->own[FB_OWN_INOTIFY], FIONREAD, &left);
	for (; left > 0; left -= (int)len) {
		len = fb_sys(SYS_read, q->own[FB_OWN_INOTIFY], &buf, sizeof(buf));
		if (len <= 0)
			return;
		for (at = 0; at < len; at += (long)(sizeof(*ev) + ev->len)) {
			ev = (const void *)(buf.bytes + at);
			if (ev->mask & IN_Q_OVERFLOW)
				fb_inodes_missed(q);
			else
				fb_inode_happened(q, ev);
		}
	}
}

/* Watches */

/*
 * Of kernels from 6.14 on, inotify hears nothing of who writes there. Such a file has no name,
 * and all of them are in one file system.
 */
static bool fb_inode_is_memfd(const struct kevent_identity *id)
{
	struct kevent_identity own;
	bool same;
	int fd;

	if (id->nlink)
		return false;
	fd = fb_call(memfd_create("kevent", MFD_CLOEXEC));
	same = fd >= 0 && kevent_identify(fd, &own) &&
	       id->dev[0] == own.dev[0] && id->dev[1] == own.dev[1];
	fb_close_local(fd);
	return same;
}

static int fb_inode_attach(struct fb_queue *q, struct fb_watch *w,
			   const struct ukevent *uk)
{
	struct fb_inode *inode = to_inode(w);
	struct kevent_identity id;
	int ret;

	inode->wd = -1;
	ret = fb_inodes_get(q);
	if (ret)
		return ret;
	if (!kevent_identify(fb_fd_of(w), &id))
		return -EBADF;
	if (fb_inode_is_memfd(&id))
		return -EOPNOTSUPP;
	inode->ino = id.ino;
	memcpy(inode->dev, id.dev, sizeof(id.dev));
	inode->opened = fb_opened(fb_fd_of(w));
	/* Report earlier events to the other watches: they are not for this one. */
	fb_inodes_read(q, 0);
	ret = fb_inode_listen(q, inode);
	if (ret < 0)
		return ret;
	fb_inode_link(q, inode, ret);
	return (int)fb_inode_lost_name(inode);
}

static void fb_inode_detach(struct fb_queue *q, struct fb_watch *w)
{
	if (to_inode(w)->wd >= 0)
		fb_inode_break(q, to_inode(w));
}

/* Nothing, if the watch is broken. */
static int fb_inode_listen_on(struct fb_queue *q, struct fb_inode *inode)
{
	int wd;

	if (inode->wd < 0)
		return 0;
	wd = fb_inode_listen(q, inode);
	if (wd < 0 || wd == inode->wd)
		return wd < 0 ? wd : 0;
	/* Another thread has the descriptor mean another file by now. */
	fb_inode_drop(q, wd);
	return -ENOENT;
}

/* Changes so far count as far as the new interest has them. */
static int fb_inode_modify(struct fb_queue *q, struct fb_watch *w,
			   const struct ukevent *uk, const struct fb_watch *old)
{
	struct fb_inode *inode = to_inode(w);
	__u32 event = w->event;
	int err;

	/* If this fails, they are for the watch as it was. */
	w->event |= old->event;
	fb_inodes_read(q, 0);
	w->event = event;
	w->state |= old->state & FB_BROKEN;
	err = fb_inode_listen_on(q, inode);
	if (err) {
		w->ready &= old->event;
		if (!w->ready && !(w->state & FB_BROKEN)) {
			fb_dequeue(q, w);
			w->state &= ~FB_FIRED;
		}
		return err;
	}
	if (w->ready & ~w->event & KEVENT_INODE_REMOVE)
		inode->gone = false;
	w->ready &= w->event;
	if (!(w->state & FB_BROKEN))
		fb_dequeue(q, w);
	return (int)(w->ready | fb_inode_lost_name(inode));
}

const struct fb_ops fb_inode_ops = {
	.size		= sizeof(struct fb_inode),
	.marks		= FB_INODE_ALL,
	.fd		= true,
	.check		= fb_inode_check,
	.attach		= fb_inode_attach,
	.detach		= fb_inode_detach,
	.modify		= fb_inode_modify,
	.current	= fb_inode_current,
	.readable	= fb_inodes_read,
	.free_all	= fb_inodes_free,
};
