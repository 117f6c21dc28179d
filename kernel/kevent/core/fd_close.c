// SPDX-License-Identifier: GPL-2.0
/*
 * close() of a descriptor: its watches go with it
 */

#include <linux/cleanup.h>
#include <linux/fdtable.h>
#include <linux/fs.h>

#include "../host.h"
#include "lookup.h"
#include "watch.h"

/* So many watches die under one hold of the lock of their file, and are buried after it. */
#define KEVENT_CLOSE_AT_ONCE	32

/*
 * Kill watches of @file whose descriptor has left @table, and unlink them. All of them take one
 * walk of the list, which may be long, with watches of other users. close() has cleared the slot
 * of its descriptor. The end of a table does not clear slots: its last user has taken the count
 * to 0 before, and is alone with it. Returns how many were killed. If that is less than
 * %KEVENT_CLOSE_AT_ONCE, no more are left.
 */
static unsigned int kevent_file_kill_closed(struct file *file,
					    struct files_struct *table,
					    struct kevent_file *dead[])
{
	struct kevent_file *kf, *before = NULL;
	unsigned int nr = 0;

	guard(rcu)();
	guard(spinlock)(&file->f_lock);
	for (kf = host_watches(file); kf && nr < KEVENT_CLOSE_AT_ONCE;
	     kf = kf->next) {
		if (kf->table == table &&
		    (files_lookup_fd_raw(table, kf->ke.id_low) != file ||
		     !atomic_read(&table->count)) &&
		    kevent_kill_one(&kf->ke, false)) {
			kevent_file_cut(kf, before);
			dead[nr++] = kf;
		} else {
			before = kf;
		}
	}
	return nr;
}

/*
 * A descriptor of a file, which the caller has pinned, was closed in @table. Drop its
 * watches.
 */
void __kevent_flush(struct file *file, fl_owner_t table)
{
	struct kevent_file *dead[KEVENT_CLOSE_AT_ONCE];
	unsigned int nr, i;

	if (!table)
		return;
	do {
		nr = kevent_file_kill_closed(file, table, dead);
		for (i = 0; i < nr; i++) {
			if (!host_bury_later(&dead[i]->ke, file))
				kevent_bury(&dead[i]->ke, false);
			host_close_pause();
		}
	} while (nr == KEVENT_CLOSE_AT_ONCE);
}
