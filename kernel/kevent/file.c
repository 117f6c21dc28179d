// SPDX-License-Identifier: GPL-2.0
/*
 * Watches of descriptors: found through their file, gone with either
 */

#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/io_uring.h>
#include <linux/kevent.h>
#include <linux/poll.h>

/* Needs what poll.h includes. */
#include <linux/eventpoll.h>

#include "kevent.h"

static struct kevent_file *to_file(struct kevent *ke)
{
	return container_of(ke, struct kevent_file, ke);
}

/**
 * kevent_file_check_nesting - may this kind of file be watched?
 * @file: the file
 *
 * Return: 0, or -ELOOP for queues and what queues may be watched by.
 */
int kevent_file_check_nesting(struct file *file)
{
	if (is_kevent_file(file) || is_epoll_file(file) ||
	    io_is_uring_fops(file))
		return -ELOOP;
	return 0;
}

static bool kevent_file_matches(const struct kevent_file *kf,
				const struct kevent_queue *q, u32 type, u32 fd)
{
	return kf->ke.queue == q && kf->ke.type == type &&
	       kf->ke.id_low == fd && !(READ_ONCE(kf->ke.state) & KE_DEAD);
}

/**
 * kevent_file_link - link a watch to its file
 * @kf: the watch, being attached
 * @file: the file; the caller has it pinned
 *
 * Whoever links must then see kevent_file_is_current(), and call
 * kevent_file_unlink() in detach().
 *
 * Return: 0, -EEXIST when the queue has one of this type and descriptor,
 * -ENOSPC when the file has too many of the queue's owner.
 */
int kevent_file_link(struct kevent_file *kf, struct file *file)
{
	struct kevent *ke = &kf->ke;
	struct kevent_file *other;
	unsigned int nr = 0;
	int err = 0;

	kf->file = file;
	kf->table = current->files;
	spin_lock(&file->f_lock);
	for (other = file->f_kevent; other && !err; other = other->next) {
		if (kevent_file_matches(other, ke->queue, ke->type,
					ke->id_low))
			err = -EEXIST;
		else if (other->ke.queue->owner == ke->queue->owner &&
			 ++nr >= KEVENT_MAX_PER_FILE)
			err = -ENOSPC;
	}
	if (!err) {
		kf->next = file->f_kevent;
		/* There are walks under RCU only. */
		smp_store_release(&file->f_kevent, kf);
	}
	spin_unlock(&file->f_lock);
	return err;
}

/**
 * kevent_file_unlink - undo kevent_file_link()
 * @kf: the watch; its file is pinned. Nothing is done when it is not linked
 */
void kevent_file_unlink(struct kevent_file *kf)
{
	struct file *file = kf->file;
	struct kevent_file **at;

	spin_lock(&file->f_lock);
	for (at = &file->f_kevent; *at; at = &(*at)->next) {
		if (*at != kf)
			continue;
		WRITE_ONCE(*at, kf->next);
		break;
	}
	spin_unlock(&file->f_lock);
}

/**
 * kevent_file_is_current - is the descriptor still what it was?
 * @kf: the watch, linked
 *
 * close() and its like clear the slot under file_lock, and then look for
 * watches: either they see this one, which is linked, or the slot is seen here.
 */
bool kevent_file_is_current(const struct kevent_file *kf)
{
	struct files_struct *files = kf->table;
	bool ret;

	spin_lock(&files->file_lock);
	ret = files_lookup_fd_locked(files, kf->ke.id_low) == kf->file;
	spin_unlock(&files->file_lock);
	return ret;
}

/**
 * kevent_file_find - look up a watch by type, descriptor and file
 * @q: the queue
 * @uk: has type and descriptor
 * @file: what the descriptor refers to; the caller has it pinned
 *
 * Return: the watch, which exists as long as the caller's RCU read-side critical
 * section, or NULL.
 */
struct kevent *kevent_file_find(struct kevent_queue *q,
				const struct ukevent *uk, struct file *file)
{
	struct kevent_file *kf;

	spin_lock(&file->f_lock);
	kf = file->f_kevent;
	while (kf && !kevent_file_matches(kf, q, uk->type, uk->id.raw[0]))
		kf = kf->next;
	spin_unlock(&file->f_lock);
	return kf ? &kf->ke : NULL;
}

/**
 * kevent_file_hold - pin the file of a watch
 * @ke: the watch, not dead, under ready_lock: its file exists, because the
 *	file's end goes through kevent_file_release()
 *
 * Return: false when the file is on its way to kevent_file_release().
 */
bool kevent_file_hold(struct kevent *ke)
{
	return atomic_long_inc_not_zero(&to_file(ke)->file->f_count);
}

/**
 * kevent_file_unhold - undo kevent_file_hold()
 * @ke: the watch
 */
void kevent_file_unhold(struct kevent *ke)
{
	fput(to_file(ke)->file);
}

/*
 * Kill the watch if nobody else has. It is linked to its file, under f_lock, so
 * it exists and so does its queue.
 */
static bool kevent_file_kill(struct kevent_file *kf)
{
	struct kevent_queue *q = kf->ke.queue;
	unsigned long flags;
	bool killed;

	lockdep_assert_held(&kf->file->f_lock);

	spin_lock_irqsave(&q->ready_lock, flags);
	killed = kevent_kill(&kf->ke);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return killed;
}

/* Kill one watch of @file whose descriptor has left @table. */
static struct kevent *kevent_file_kill_closed(struct file *file,
					      struct files_struct *table)
{
	struct kevent_file *kf;

	rcu_read_lock();
	spin_lock(&file->f_lock);
	for (kf = file->f_kevent; kf; kf = kf->next)
		if (kf->table == table &&
		    files_lookup_fd_raw(table, kf->ke.id_low) != file &&
		    kevent_file_kill(kf))
			break;
	spin_unlock(&file->f_lock);
	rcu_read_unlock();
	return kf ? &kf->ke : NULL;
}

/**
 * kevent_file_flush - drop watches whose descriptor was closed
 * @file: the file; the caller holds a reference
 * @table: the &struct files_struct it was closed in
 */
void kevent_file_flush(struct file *file, fl_owner_t table)
{
	struct kevent *ke;

	if (!table)
		return;
	while ((ke = kevent_file_kill_closed(file, table))) {
		kevent_bury(ke, false);
		cond_resched();
	}
}

/* Kill one watch of a file nobody has a reference to. */
static struct kevent *kevent_file_kill_last(struct file *file)
{
	struct kevent_file *kf;

	spin_lock(&file->f_lock);
	kf = file->f_kevent;
	/* Everybody else who kills it has the file pinned until it is gone. */
	if (kf && WARN_ON_ONCE(!kevent_file_kill(kf)))
		kf = NULL;
	spin_unlock(&file->f_lock);
	return kf ? &kf->ke : NULL;
}

/**
 * kevent_file_release - drop the watches of a file that is going away
 * @file: the file, without references
 */
void kevent_file_release(struct file *file)
{
	struct kevent *ke;

	while ((ke = kevent_file_kill_last(file))) {
		kevent_bury(ke, false);
		cond_resched();
	}
}
