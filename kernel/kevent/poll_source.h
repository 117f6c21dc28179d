/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What sources of files that can be polled share
 */
#ifndef _KEVENT_POLL_SOURCE_H
#define _KEVENT_POLL_SOURCE_H

struct file;
struct kevent;
struct ukevent;

int ev_poll_attach(struct kevent *ke, const struct ukevent *uk,
		   struct file *file);
void ev_poll_detach(struct kevent *ke);
void ev_poll_destroy(struct kevent *ke);
void ev_poll_modified(struct kevent *ke, const struct ukevent *uk);
void ev_poll_hand_on(struct kevent *ke);
int ev_poll_ask(struct kevent *ke);

#define EV_POLL_OPS(_name, _check)			\
	.name		= _name,			\
	.file		= true,				\
	.level		= true,				\
	.align		= L1_CACHE_BYTES,		\
	.check		= _check,			\
	.detach		= ev_poll_detach,		\
	.modified	= ev_poll_modified,		\
	.hand_on	= ev_poll_hand_on

#endif /* _KEVENT_POLL_SOURCE_H */
