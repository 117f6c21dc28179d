/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The entry of an event: what a program reads in the ring or in a buffer
 *
 * kevent_entry() builds it, for hits in report.c and for collections in deliver.c.
 * kring_put() in ring.h stores it in the ring.
 */
#ifndef _KEVENT_ENTRY_H
#define _KEVENT_ENTRY_H

#include <linux/ukevent.h>

#include "types.h"

/* kevent_entry() of the oldest occurrence, with all that its source and its state add */
void kevent_fill(struct kevent *ke, struct ukevent *uk);

/* The id of an entry, unless fill() sets another one */
static inline u64 kevent_id(const struct kevent *ke)
{
	struct kevent_id id = { .raw = { ke->id_low } };

	return id.raw_u64;
}

/*
 * Make the entry of an event of a watch. It needs no memory if the caller is inline, too. A hit has
 * nothing to add: its watch is neither broken nor one for STAY_AWAKE, and its source has no fill().
 */
static inline struct ukevent kevent_entry(const struct kevent *ke, u32 ready,
					  u32 amount)
{
	return (struct ukevent){
		.id.raw_u64	= kevent_id(ke),
		.type		= ke->type,
		.event		= ke->event,
		.req_flags	= ke->req_flags,
		.ret_flags	= KEVENT_RET_DONE,
		.ret_data	= { ready, amount },
		.ptr		= ke->user,
	};
}

#endif /* _KEVENT_ENTRY_H */
