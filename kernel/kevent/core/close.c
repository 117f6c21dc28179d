// SPDX-License-Identifier: GPL-2.0
/*
 * What close() does to the watches of a file
 */

#include <linux/fdtable.h>
#include <linux/file.h>

#include "../host.h"
#include "queue.h"
#include "remove.h"
#include "source_ops.h"
#include "state.h"
#include "watch.h"

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

/* Kill a watch of the list, or one that shares its place. */
static struct kevent *kevent_file_kill_alike(struct kevent_file *kf)
{
	struct kevent_shared *shared = kevent_shared(kf), *other;

	if (kevent_file_kill(kf))
		return &kf->ke;
	if (!shared)
		return NULL;
	list_for_each_entry(other, &shared->alike, alike)
		if (kevent_file_kill(&other->kf))
			return &other->kf.ke;
	return NULL;
}

/* Kill one watch of @file whose descriptor has left @table. */
static struct kevent *kevent_file_kill_closed(struct file *file,
					      struct files_struct *table)
{
	struct kevent *ke = NULL;
	struct kevent_file *kf;

	rcu_read_lock();
	spin_lock(&file->f_lock);
	for (kf = *host_watches(file); kf && !ke; kf = kf->next)
		if (kf->table == table &&
		    files_lookup_fd_raw(table, kf->ke.id_low) != file)
			ke = kevent_file_kill_alike(kf);
	spin_unlock(&file->f_lock);
	rcu_read_unlock();
	return ke;
}

/**
 * __kevent_flush - drop watches whose descriptor was closed
 * @file: the file; the caller holds a reference
 * @table: the &struct files_struct it was closed in
 */
void __kevent_flush(struct file *file, fl_owner_t table)
{
	struct kevent *ke;

	if (!table)
		return;
	while ((ke = kevent_file_kill_closed(file, table))) {
		if (!host_bury_later(ke, file))
			kevent_bury(ke, false);
		host_close_pause();
	}
}
