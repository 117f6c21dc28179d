/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The words of kevent's binary interface, as text
 */
#ifndef DECODE_H
#define DECODE_H

#include <stddef.h>
#include <linux/ukevent.h>

/* A buffer that takes text while there is room; never overflows. */
struct text {
	char	*at;
	size_t	room;
};

void say(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Each appends to @t. */
void say_type(struct text *t, __u32 type);
void say_events(struct text *t, __u32 type, __u32 mask);
void say_req_flags(struct text *t, __u32 flags);
void say_ret_flags(struct text *t, __u32 flags);
void say_init_flags(struct text *t, __u32 flags);
void say_command(struct text *t, __u32 cmd);
void say_ring_flags(struct text *t, __u32 flags);
void say_mode(struct text *t, __u32 type, __u32 flags);
void say_wait_flags(struct text *t, __u32 flags);
void say_id(struct text *t, const struct ukevent *ev);
void say_request(struct text *t, __u32 cmd, const struct ukevent *ev);
void say_event(struct text *t, const struct ukevent *ev);

#endif /* DECODE_H */
