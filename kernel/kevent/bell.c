// SPDX-License-Identifier: GPL-2.0
/*
 * Bells: descriptors that wake a consumer of a queue, and do nothing else
 *
 * A program gives a bell to those who are to wake it and may not have its queue. To ring it is
 * a wake request of the queue: one bit, however often and by however many it is rung. So a
 * ring takes no memory, and waits for nobody.
 *
 * A bell keeps the queue, and not its file, as a watch does. When the file has gone there is
 * nobody to wake. What is left of the queue then is less than what a descriptor of it would
 * keep. It is bounded as those are, by the descriptors of the process that has the bell. The
 * owner of the queue is not charged: it cannot have others close the bells that it gave
 * them, and they could use up what it may have.
 */

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/refcount.h>

#include "core/queue.h"
#include "entry.h"
#include "host.h"

/* Has its queue a file? Without a lock a hint: a ring that comes too late wakes nobody. */
bool kevent_bell_has_queue(const struct file *bell)
{
	const struct kevent_queue *q = bell->private_data;

	return READ_ONCE(q->nest.file);
}

/* Make a bell of a queue, whose file the caller has pinned. Returns a descriptor or -errno. */
int kevent_bell_make(struct kevent_queue *q)
{
	int fd;

	refcount_inc(&q->refs);
	fd = anon_inode_getfd("[kevent-bell]", &kevent_bell_fops, q,
			      O_RDWR | O_CLOEXEC);
	if (fd < 0)
		kevent_queue_put(q);
	return fd;
}

/* Returns 0, or -EPIPE when the queue is closed. */
int kevent_bell_ring(const struct file *bell)
{
	if (!kevent_bell_has_queue(bell))
		return -EPIPE;
	kevent_wake_one(bell->private_data);
	return 0;
}

/* The caller is to leave this CPU: who is woken runs here. @fd is anything a caller gave. */
int kevent_bell_hand_off(unsigned long fd)
{
	int err;

	if (fd > INT_MAX)
		return -EBADF;
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	if (!is_kevent_bell(fd_file(f)))
		return -EINVAL;
	host_handoff_begin();
	err = kevent_bell_ring(fd_file(f));
	host_handoff_end();
	return err;
}
