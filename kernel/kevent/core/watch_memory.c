// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of watches: slab caches, and who pays; and the index of all watches of a queue, by
 * a number that it chooses
 *
 * Watches are looked up by what they watch. The index is for those who want
 * all of them, and is made to be changed cheaply. A memory cgroup is charged with
 * watches, a page at a time, until they are freed.
 */

#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/init.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../host.h"
#include "../host_payer.h"
#include "source_ops.h"
#include "types.h"
#include "watch_memory.h"

#define KEVENT_BLOCK_SIZE	512
#define KEVENT_SLOT_BITS	6
#define KEVENT_SLOT_MASK	(BIT(KEVENT_SLOT_BITS) - 1)
#define KEVENT_SLOTS		((KEVENT_BLOCK_SIZE -			\
				  offsetof(struct kevent_block, slot)) / \
				 sizeof(void *))

/**
 * struct kevent_block - some watches
 * @room:	X: on &kevent_index.room, unless it is full
 * @rcu:	for the freeing
 * @id:		I: in &kevent_index.blocks
 * @used:	X: slots with a watch
 * @free:	X: first slot without one
 * @slot:	X: watches; in free ones the number of the next, as a value entry.
 *		Read under RCU
 */
struct kevent_block {
	union {
		struct list_head	room;
		struct rcu_head		rcu;
	};
	u32			id;
	u16			used;
	u16			free;
	void			*slot[];
};

/* The memory cgroup is charged with so many bytes at once. */
#define KEVENT_PAY_BYTES	SZ_4K

/* Caches, one for each source */

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

/* Paying for watches to come */

static int kevent_index_pay(struct kevent_index *index)
{
	if (host_payer_charge(index->payer, KEVENT_PAY_BYTES))
		return -ENOMEM;
	xa_lock(&index->blocks);
	index->paid += KEVENT_PAY_BYTES;
	xa_unlock(&index->blocks);
	return 0;
}

/* Removed watches */

static void kevent_index_free(struct rcu_head *rcu)
{
	struct kevent *ke = container_of(rcu, struct kevent, rcu);
	struct obj_cgroup *payer = ke->payer;
	u8 type = ke->type;

	kmem_cache_free(kevent_caches[type], ke);
	host_payer_uncharge(payer, kmem_cache_size(kevent_caches[type]));
	host_payer_put(payer);
}

/* Blocks */

void kevent_index_init(struct kevent_index *index)
{
	*index = (struct kevent_index) { .payer = host_payer_get() };
	xa_init_flags(&index->blocks, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&index->room);
}

/* All watches are gone, and nobody looks. */
void kevent_index_destroy(struct kevent_index *index)
{
	struct kevent_block *block;
	unsigned long id;

	xa_for_each(&index->blocks, id, block)
		kfree(block);
	xa_destroy(&index->blocks);
	host_payer_uncharge(index->payer, index->paid);
	host_payer_put(index->payer);
}

static struct kevent_block *kevent_block_alloc(void)
{
	struct kevent_block *block;
	unsigned int i;

	BUILD_BUG_ON(KEVENT_SLOTS >> KEVENT_SLOT_BITS);
	block = kmalloc(KEVENT_BLOCK_SIZE, GFP_KERNEL_ACCOUNT);
	if (!block)
		return NULL;
	block->used = 0;
	block->free = 0;
	for (i = 0; i < KEVENT_SLOTS; i++)
		block->slot[i] = xa_mk_value(i + 1);
	return block;
}

static int kevent_index_grow(struct kevent_index *index)
{
	struct kevent_block *block = kevent_block_alloc();
	int err;

	if (!block)
		return -ENOMEM;
	xa_lock(&index->blocks);
	err = __xa_alloc(&index->blocks, &block->id, block,
			 XA_LIMIT(0, U32_MAX >> KEVENT_SLOT_BITS), GFP_KERNEL);
	if (!err)
		list_add(&block->room, &index->room);
	xa_unlock(&index->blocks);
	if (err)
		kfree(block);
	return err;
}

/* May release the lock. */
static int kevent_index_prepare(struct kevent_index *index, u32 bytes)
	__must_hold(&index->blocks.xa_lock)
{
	bool full = list_empty(&index->room);
	int err = 0;

	lockdep_assert_held(&index->blocks.xa_lock);

	if (likely(!full && index->paid >= bytes))
		return 0;
	xa_unlock(&index->blocks);
	err = full ? kevent_index_grow(index) : kevent_index_pay(index);
	xa_lock(&index->blocks);
	return err ?: -EAGAIN;
}

/*
 * Put a watch into the index; its number goes to @ke->index. Returns 0 or -ENOMEM. May
 * sleep.
 */
int kevent_index_insert(struct kevent_index *index, struct kevent *ke)
{
	u32 bytes = kmem_cache_size(kevent_caches[ke->type]);
	struct kevent_block *block;
	int err;
	u16 at;

	xa_lock(&index->blocks);
	do {
		err = kevent_index_prepare(index, bytes);
	} while (unlikely(err == -EAGAIN));
	if (unlikely(err))
		goto out;
	index->paid -= bytes;
	block = list_first_entry(&index->room, struct kevent_block, room);
	at = block->free;
	block->free = xa_to_value(block->slot[at]);
	ke->index = block->id << KEVENT_SLOT_BITS | at;
	/* Pairs with the dependency on what kevent_index_next() reads. */
	smp_store_release(&block->slot[at], ke);
	if (++block->used == KEVENT_SLOTS)
		list_del(&block->room);
out:
	xa_unlock(&index->blocks);
	return err;
}

/* The last block with room stays, for the next watch. */
static void kevent_index_shrink(struct kevent_index *index,
				struct kevent_block *block)
{
	lockdep_assert_held(&index->blocks.xa_lock);

	if (list_is_singular(&index->room))
		return;
	index->last = NULL;
	list_del(&block->room);
	__xa_erase(&index->blocks, block->id);
	kfree_rcu(block, rcu);
}

/* Watches that are removed one after the other often have one block. */
static struct kevent_block *kevent_index_block(struct kevent_index *index, u32 id)
{
	lockdep_assert_held(&index->blocks.xa_lock);

	if (!index->last || index->last->id != id)
		index->last = xa_load(&index->blocks, id);
	return index->last;
}

static void kevent_index_clear(struct kevent_index *index, struct kevent *ke)
{
	u16 at = ke->index & KEVENT_SLOT_MASK;
	struct kevent_block *block;

	lockdep_assert_held(&index->blocks.xa_lock);

	block = kevent_index_block(index, ke->index >> KEVENT_SLOT_BITS);
	WRITE_ONCE(block->slot[at], xa_mk_value(block->free));
	block->free = at;
	if (block->used-- == KEVENT_SLOTS)
		list_add(&block->room, &index->room);
	if (!block->used)
		kevent_index_shrink(index, block);
}

/* Take a watch out of the index, which frees it after a grace period. */
void kevent_index_erase(struct kevent_index *index, struct kevent *ke)
{
	xa_lock(&index->blocks);
	kevent_index_clear(index, ke);
	xa_unlock(&index->blocks);
	ke->payer = host_payer_get_again(index->payer);
	call_rcu(&ke->rcu, kevent_index_free);
}

/*
 * The watch with the lowest number that is at least *@at, which becomes its number; NULL
 * when there is none. Under RCU.
 */
struct kevent *kevent_index_next(struct kevent_index *index, u32 *at)
{
	unsigned long id, first = *at >> KEVENT_SLOT_BITS;
	struct kevent_block *block;
	unsigned int i;
	void *entry;

	xa_for_each_start(&index->blocks, id, block, first) {
		i = id == first ? *at & KEVENT_SLOT_MASK : 0;
		for (; i < KEVENT_SLOTS; i++) {
			entry = READ_ONCE(block->slot[i]);
			if (xa_is_value(entry))
				continue;
			*at = id << KEVENT_SLOT_BITS | i;
			return entry;
		}
	}
	return NULL;
}
