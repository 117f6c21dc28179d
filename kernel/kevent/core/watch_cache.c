// SPDX-License-Identifier: GPL-2.0
/*
 * The slab caches of watches, one for each source, and what a watch costs its owner
 */

#include <linux/bug.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "../host.h"
#include "source_ops.h"

/* What a watch takes in the index of its queue, at most */
#define KEVENT_INDEX_COST	16

struct kmem_cache *kevent_caches[KEVENT_NR_TYPES] __ro_after_init;
u32 kevent_sizes[KEVENT_NR_TYPES] __ro_after_init;
u32 kevent_costs[KEVENT_NR_TYPES] __ro_after_init;

static void __init kevent_source_check(const struct kevent_source_ops *ops)
{
	WARN_ON(!ops->name || !ops->check || !ops->attach || !ops->detach);
	WARN_ON(ops->size < (ops->file ? sizeof(struct kevent_file) :
					 sizeof(struct kevent_keyed)));
	WARN_ON(ops->file && ops->key);
	WARN_ON(ops->count && !ops->delivered);
	WARN_ON(ops->room && !ops->mark);
	WARN_ON(ops->cancel && ops->file);
	WARN_ON(ops->rearm && ops->hand_on);
	WARN_ON(ops->level && (!ops->collect || ops->fill || ops->delivered ||
			       ops->count));
}

/* Its objects are paid for in advance: see kevent_index_insert(). */
static struct kmem_cache *__init
kevent_cache_create(const struct kevent_source_ops *ops)
{
	return host_cache(ops->name, ops->size, ops->align ?: __alignof__(u64));
}

static int __init kevent_source_init(unsigned int type)
{
	const struct kevent_source_ops *ops = kevent_sources[type];

	kevent_source_check(ops);
	kevent_caches[type] = kevent_cache_create(ops);
	if (!kevent_caches[type])
		return -ENOMEM;
	kevent_sizes[type] = kmem_cache_size(kevent_caches[type]);
	kevent_costs[type] = kevent_sizes[type] +
			     KEVENT_INDEX_COST + ops->pins +
			     (ops->file ? HOST_FILE_BYTES : 0);
	return 0;
}

/* Prepare all sources. Returns 0 or -ENOMEM. */
int __init kevent_sources_init(void)
{
	unsigned int i;
	int err = 0;

	/* A pointer to a watch is one to what it is a part of. */
	BUILD_BUG_ON(offsetof(struct kevent_keyed, ke));
	BUILD_BUG_ON(offsetof(struct kevent_file, ke));

	for (i = 0; i < KEVENT_NR_TYPES && !err; i++)
		if (kevent_sources[i])
			err = kevent_source_init(i);
	return err;
}
