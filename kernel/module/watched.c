// SPDX-License-Identifier: GPL-2.0
/*
 * The watches of a file, a process or a user, without a member of its structure
 *
 * They hang on what is found by the address of the object in a hash that grows. Its function has to
 * spread addresses well: the hash refuses an entry of a long chain while it has yet to grow. There
 * are at most as many entries as there are watches, and each watch is charged with one: of a file it
 * is a &struct host_watched, see HOST_FILE_BYTES.
 *
 * Each close() of the system asks whether its file has watches. For most a table of counters, of the
 * files whose addresses lead to an entry, says that it has none, without a lock.
 */

#include <linux/cred.h>
#include <linux/random.h>
#include <linux/rhashtable.h>

#include "../kevent/core/types.h"

/**
 * struct host_watched - a file with watches
 * @tag:	of the file, whose end comes after that of this object
 * @first:	F: its watches
 * @nr:		F: places taken on that list
 *
 * F: &file.f_lock
 */
struct host_watched {
	struct host_tag		tag;
	struct kevent_file	*first;
	unsigned int		nr;
};

/* In line, which memcmp() would not be */
static int watched_cmp(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct host_tag *tag = obj;

	return tag->of != *(const void *const *)arg->key;
}

static const struct rhashtable_params watched_params = {
	.key_len		= sizeof(void *),
	.key_offset		= offsetof(struct host_tag, of),
	.head_offset		= offsetof(struct host_tag, node),
	.obj_cmpfn		= watched_cmp,
	.automatic_shrinking	= true,
};

static struct rhashtable watched;
static struct kmem_cache *watched_cache;
static struct kevent_file *no_watches;

static void tag_free(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct host_tag, rcu));
}

static_assert(sizeof(struct host_watched) <= HOST_FILE_BYTES);

atomic_t host_nr_watched[HOST_NR_WATCHED];
u64 host_watched_seed __ro_after_init;

struct host_tag *host_tag_find(const void *of)
{
	return rhashtable_lookup_fast(&watched, &of, watched_params);
}

int host_tag_add(struct host_tag *tag, const void *of)
{
	tag->of = of;
	return rhashtable_insert_fast(&watched, &tag->node, watched_params) ?
	       -ENOMEM : 0;
}

void host_tag_remove(struct host_tag *tag)
{
	rhashtable_remove_fast(&watched, &tag->node, watched_params);
	call_rcu(&tag->rcu, tag_free);
}

static struct host_watched *watched_find(struct file *file)
{
	/* NULL stays NULL: the tag comes first. */
	return container_of(host_tag_find(file), struct host_watched, tag);
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
		err = host_tag_add(&made->tag, file);
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
	made->nr = 1;
	err = watched_take(file, made);
	if (err)
		kmem_cache_free(watched_cache, made);
	return err == -EEXIST ? 0 : err;
}

void host_watches_put(struct file *file)
{
	struct host_watched *w = watched_find(file);

	lockdep_assert_held(&file->f_lock);

	if (WARN_ON_ONCE(!w) || --w->nr)
		return;
	host_tag_remove(&w->tag);
	atomic_dec(host_watched_count(file));
}

bool host_is_watched(struct file *file)
{
	return host_tag_find(file);
}

/* Owners: as many as there are users with queues. No object has a user's number for address. */

static DEFINE_SPINLOCK(owners_lock);

struct kevent_owner *host_owner_get(void)
{
	const void *uid = (void *)(unsigned long)__kuid_val(current_uid());
	struct kevent_owner *owner, *made;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return NULL;
	spin_lock(&owners_lock);
	owner = container_of(host_tag_find(uid), struct kevent_owner, tag);
	if (!owner && !host_tag_add(&made->tag, uid))
		swap(owner, made);
	if (owner)
		owner->refs++;
	spin_unlock(&owners_lock);
	kfree(made);
	return owner;
}

/* The last queue of a user has returned all bytes. In a hook it must not sleep, nor here. */
void host_owner_put(struct kevent_owner *owner)
{
	spin_lock(&owners_lock);
	if (!--owner->refs)
		host_tag_remove(&owner->tag);
	spin_unlock(&owners_lock);
}

int __init host_watched_start(void)
{
	int err = rhashtable_init(&watched, &watched_params);

	host_watched_seed = get_random_u64() | 1;
	if (err)
		return err;
	watched_cache = host_cache("watched", sizeof(struct host_watched), 0);
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
