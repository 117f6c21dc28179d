// SPDX-License-Identifier: GPL-2.0
/*
 * close(): watches of a descriptor go with it
 */

#include <linux/fdtable.h>
#include <linux/fs.h>

#include "../host.h"
#include "lookup.h"
#include "watch.h"

/*
 * Is @file not, or no longer, at @fd of a table? Called by the close() of a descriptor of the
 * table, which clears the slot first. The end of a table need not: its last user has taken the
 * count to 0 before, and is alone with it.
 */
static bool kevent_has_left(struct files_struct *table, unsigned int fd,
			    const struct file *file)
{
	return files_lookup_fd_raw(table, fd) != file ||
	       !atomic_read(&table->count);
}

/* Kill one watch of @file whose descriptor has left @table. */
static struct kevent *kevent_file_kill_closed(struct file *file,
					      struct files_struct *table)
{
	struct kevent *ke = NULL;
	struct kevent_file *kf;

	rcu_read_lock();
	spin_lock(&file->f_lock);
	for (kf = host_watches(file); kf && !ke; kf = kf->next)
		if (kf->table == table &&
		    kevent_has_left(table, kf->ke.id_low, file) &&
		    kevent_kill_one(&kf->ke, false))
			ke = &kf->ke;
	spin_unlock(&file->f_lock);
	rcu_read_unlock();
	return ke;
}

/*
 * A descriptor of a file, which the caller has pinned, was closed in @table. Drop its
 * watches.
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
