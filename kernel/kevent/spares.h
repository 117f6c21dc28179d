/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of removed watches, for watches to come
 */
#ifndef _KEVENT_SPARES_H
#define _KEVENT_SPARES_H

#include <linux/types.h>

struct kevent;

void kevent_spares_init(void);
bool kevent_spares_put(struct kevent *first, struct kevent *last, u32 nr);
u32 kevent_spares_take(u32 type, void **to, u32 want);

#endif /* _KEVENT_SPARES_H */
