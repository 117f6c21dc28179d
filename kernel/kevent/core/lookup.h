/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How watches are found, and what they watch is pinned
 */
#ifndef _KEVENT_LOOKUP_H
#define _KEVENT_LOOKUP_H

#include <linux/fs.h>
#include <linux/net.h>
#include <linux/ukevent.h>

#include "../host.h"
#include "source_ops.h"
#include "types.h"

/*
 * Watches on the list of one file: of one user, and of all users but root. They bound the
 * walks of the list, one of which has interrupts off. The second limit can be reached by
 * those who have the file open, if they are several users. Root has its own place, so that
 * they cannot keep it from watching a file that it shares with them.
 */
#define KEVENT_MAX_PER_FILE	1000
#define KEVENT_MAX_OF_USERS	(4 * KEVENT_MAX_PER_FILE)

int kevent_file_link(struct kevent_file *kf, struct file *file);
void kevent_file_cut(struct kevent_file *kf, struct kevent_file *before);
void kevent_file_unlink(struct kevent_file *kf);
struct kevent *kevent_file_find(struct kevent_queue *q,
				const struct ukevent *uk, struct file *file);
bool kevent_is_current(const struct kevent *ke);
int kevent_key_link(struct kevent_keyed *kk);
void kevent_key_unlink(struct kevent_keyed *kk);
struct kevent *kevent_key_find(struct kevent_queue *q, u32 type, u64 id);

#define to_kevent_file(watch)	container_of(watch, struct kevent_file, ke)

#define to_kevent_keyed(watch)	container_of(watch, struct kevent_keyed, ke)

/* Undo kevent_file_link() or kevent_key_link(). */
static inline void kevent_unlink(struct kevent *ke)
{
	if (kevent_has_file(ke))
		kevent_file_unlink(to_kevent_file(ke));
	else
		kevent_key_unlink(to_kevent_keyed(ke));
}

/* The id by which a watch of a source without a file is found */
static inline u64 kevent_key_of(const struct kevent_source_ops *ops, const struct ukevent *uk)
{
	return ops->key ? ops->key(uk) : uk->id.raw_u64;
}

/* Look up the watch that @uk names, of @file or, if that is NULL, by its key. Under RCU */
static inline struct kevent *kevent_find(const struct kevent_source_ops *ops,
					 struct kevent_queue *q,
					 const struct ukevent *uk,
					 struct file *file)
{
	if (ops->flags & KEVENT_SOURCE_FILE)
		return kevent_file_find(q, uk, file);
	return kevent_key_find(q, uk->type, kevent_key_of(ops, uk));
}

/*
 * Pin what a watch watches. The watch is not dead, under ready_lock: somebody has a
 * reference to its file, see kevent_flush(). Sources without a file need no pin: RCU and
 * their own locks order detach() and the end of the object.
 */
static inline void kevent_hold(struct kevent *ke)
{
	if (kevent_has_file(ke))
		get_file(to_kevent_file(ke)->file);
}

/* The file that kevent_hold() has pinned: NULL for a source without a file */
static inline struct file *kevent_held_file(const struct kevent *ke)
{
	return kevent_has_file(ke) ? to_kevent_file(ke)->file : NULL;
}

/*
 * Undo kevent_hold(). If the file was closed meanwhile it ends here, and not on the way to
 * user mode: the caller may be a consumer that sleeps next, for long. So no lock is held,
 * and ->release() takes as long as it takes.
 */
static inline void kevent_unhold_file(struct file *file)
{
	if (file)
		host_fput(file);
}

/* The socket of a file, NULL if it is none */
static inline struct socket *kevent_socket(struct file *file)
{
	return IS_ENABLED(CONFIG_NET) ? sock_from_file(file) : NULL;
}

#endif /* _KEVENT_LOOKUP_H */
