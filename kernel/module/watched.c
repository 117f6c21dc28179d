// SPDX-License-Identifier: GPL-2.0
/*
 * The watches of a file, without a member of struct file
 *
 * They hang on a &struct host_watched, found by the address of the file in a hash that grows, and
 * takes a new seed if a chain becomes long. There are at most as many of these as there are watches,
 * and each watch is charged with one, see HOST_FILE_BYTES.
 *
 * Each close() of the system asks whether its file has watches. For most a table of counters, of the
 * files whose addresses lead to an entry, says that it has none, without a lock.
 */

#include <linux/random.h>
#include <linux/rhashtable.h>

#include "../kevent/core/types.h"

/**
 * struct host_watched - a file with watches
 * @node:	in watched
 * @file:	I: the file; its end comes after that of the object
 * @first:	F: its watches
 * @nr:		F: places taken on that list
 * @rcu:	for the freeing
 *
 * F: &file.f_lock
 */
struct host_watched {
	struct rhash_head	node;
	struct file		*file;
	struct kevent_file	*first;
	unsigned int		nr;
	struct rcu_head		rcu;
};

/* A multiplier that nobody knows: each close() of the system comes here. */
static u32 watched_hash(const void *data, u32 len, u32 seed)
{
	unsigned long file = (unsigned long)*(struct file *const *)data;
	u64 odd = ((u64)seed << 32 | ~seed) * 0x9e3779b97f4a7c15ULL | 1;

	return (file * odd) >> 32;
}

static int watched_cmp(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct host_watched *w = obj;

	return w->file != *(struct file *const *)arg->key;
}

static const struct rhashtable_params watched_params = {
	.key_len		= sizeof(struct file *),
	.key_offset		= offsetof(struct host_watched, file),
	.head_offset		= offsetof(struct host_watched, node),
	.hashfn			= watched_hash,
	.obj_cmpfn		= watched_cmp,
	.automatic_shrinking	= true,
};

static struct rhashtable watched;
static struct kmem_cache *watched_cache;
static struct kevent_file *no_watches;

static void watched_free(struct rcu_head *rcu)
{
	kmem_cache_free(watched_cache, container_of(rcu, struct host_watched, rcu));
}

static_assert(sizeof(struct host_watched) <= HOST_FILE_BYTES);

atomic_t host_nr_watched[HOST_NR_WATCHED];
u64 host_watched_seed __ro_after_init;

/* What it returns is there under RCU, or under f_lock. */
static struct host_watched *watched_find(struct file *file)
{
	return rhashtable_lookup_fast(&watched, &file, watched_params);
}

struct kevent_file **host_watches(struct file *file)
{
	struct host_watched *w = watched_find(file);

	return w ? &w->first : &no_watches;
}

/* Takes a place in what is there, or in @made. */
static int watched_take(struct file *file, struct host_watched *made)
{
	struct host_watched *w;
	int err = -ENOENT;

	spin_lock(&file->f_lock);
	w = watched_find(file);
	if (w) {
		w->nr++;
		err = -EEXIST;
	} else if (made) {
		err = rhashtable_insert_fast(&watched, &made->node,
					     watched_params);
		if (!err)
			atomic_inc(host_watched_count(file));
	}
	spin_unlock(&file->f_lock);
	return err;
}

int host_watches_get(struct file *file)
{
	struct host_watched *made;
	int err = watched_take(file, NULL);

	if (err == -EEXIST)
		return 0;
	made = kmem_cache_zalloc(watched_cache, GFP_KERNEL);
	if (!made)
		return -ENOMEM;
	made->file = file;
	made->nr = 1;
	err = watched_take(file, made);
	if (err)
		kmem_cache_free(watched_cache, made);
	return !err || err == -EEXIST ? 0 : -ENOMEM;
}

void host_watches_put(struct file *file)
{
	struct host_watched *w = watched_find(file);

	lockdep_assert_held(&file->f_lock);

	if (WARN_ON_ONCE(!w) || --w->nr)
		return;
	rhashtable_remove_fast(&watched, &w->node, watched_params);
	atomic_dec(host_watched_count(file));
	call_rcu(&w->rcu, watched_free);
}

bool host_is_watched(struct file *file)
{
	return watched_find(file);
}

int __init host_watched_start(void)
{
	int err = rhashtable_init(&watched, &watched_params);

	host_watched_seed = get_random_u64() | 1;
	if (err)
		return err;
	watched_cache = host_cache("watched", sizeof(struct host_watched), 0,
				   false);
	if (!watched_cache)
		rhashtable_destroy(&watched);
	return watched_cache ? 0 : -ENOMEM;
}

void host_watched_stop(void)
{
	/* No queue is left, and no watch. */
	WARN_ON_ONCE(atomic_read(&watched.nelems) ||
		     memchr_inv(host_nr_watched, 0, sizeof(host_nr_watched)));
	rhashtable_destroy(&watched);
}
