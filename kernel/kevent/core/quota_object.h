/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For sources that limit the watches of a user and an object
 */
#ifndef _KEVENT_QUOTA_OBJECT_H
#define _KEVENT_QUOTA_OBJECT_H

struct kevent_tally;
struct kevent_owner;

/* A tally takes no more, for &kevent_source_ops.pins. */
#define KEVENT_TALLY_BYTES	64

struct kevent_tally *kevent_tally_get(struct kevent_owner *owner,
				      const void *object, unsigned int max);
void kevent_tally_put(struct kevent_tally *tally);

#endif /* _KEVENT_QUOTA_OBJECT_H */
