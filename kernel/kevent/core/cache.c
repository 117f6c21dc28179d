// SPDX-License-Identifier: GPL-2.0
/*
 * The slab caches of watches, one for each source, and what a watch costs its owner
 */

#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/init.h>
#include <linux/slab.h>

#include "../host.h"
#include "cache.h"
#include "source_ops.h"

/* Bytes that a watch takes in the index of its queue, at most */
#define KEVENT_INDEX_COST	16

struct kmem_cache *kevent_caches[KEVENT_NR_TYPES] __ro_after_init;
u32 kevent_costs[KEVENT_NR_TYPES] __ro_after_init;

/* Returns 0 or -ENOMEM. */
int __init kevent_caches_init(void)
{
	const struct kevent_source_ops *ops;
	struct kmem_cache *cache;
	unsigned int i;

	/* A pointer to a watch is one to what it is a part of. */
	BUILD_BUG_ON(offsetof(struct kevent_keyed, ke));
	BUILD_BUG_ON(offsetof(struct kevent_file, ke));

	for (i = 0; i < KEVENT_NR_TYPES; i++) {
		ops = kevent_sources[i];
		if (!ops)
			continue;
		/* Its objects are paid for in advance: see kevent_index_insert(). */
		cache = host_cache(ops->name, ops->size, ops->flags & KEVENT_SOURCE_LEVEL ?
				   L1_CACHE_BYTES : __alignof__(u64));
		if (!cache)
			return -ENOMEM;
		kevent_caches[i] = cache;
		kevent_costs[i] = kmem_cache_size(cache) + KEVENT_INDEX_COST + ops->pins;
	}
	return 0;
}
