/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The slab caches of watches, one for each source, and what a watch costs its owner
 */
#ifndef _KEVENT_CACHE_H
#define _KEVENT_CACHE_H

#include <linux/slab.h>
#include <linux/types.h>

/* By type. The cost is in bytes that the owner is charged with. */
extern struct kmem_cache *kevent_caches[];
extern u32 kevent_costs[];

int kevent_caches_init(void);

#endif /* _KEVENT_CACHE_H */
