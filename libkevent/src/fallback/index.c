// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Watches, and how a queue finds them: by key, and by what epoll hands back
 */
#include <errno.h>
#include <stdlib.h>

#include "index.h"

#define FB_INDEX_MIN	16U

int fb_index_init(struct fb_index *index)
{
	index->nr = 0;
	index->nr_hash = FB_INDEX_MIN;
	index->hash = calloc(index->nr_hash, sizeof(*index->hash));
	index->nr_slots = FB_INDEX_MIN;
	index->slots = calloc(index->nr_slots, sizeof(*index->slots));
	index->free_slot = 0;
	if (!index->hash || !index->slots)
		return -ENOMEM;
	for (__u32 i = 0; i < index->nr_slots; i++)
		index->slots[i].next = i + 1;
	return 0;
}

void fb_index_free(struct fb_index *index)
{
	free(index->hash);
	free(index->slots);
	index->hash = NULL;
	index->slots = NULL;
}

/* Keys */

static struct fb_watch **fb_chain(struct fb_index *index, __u32 type, __u64 key)
{
	__u64 mixed = (key ^ (__u64)type << 56) * 0x9e3779b97f4a7c15ULL;

	return &index->hash[(mixed >> 32) & (index->nr_hash - 1)];
}

struct fb_watch *fb_find(struct fb_index *index, __u32 type, __u64 key)
{
	struct fb_watch *w = *fb_chain(index, type, key);

	while (w && (w->type != type || w->key != key))
		w = w->hash_next;
	return w;
}

static void fb_hash_insert(struct fb_index *index, struct fb_watch *w)
{
	struct fb_watch **chain = fb_chain(index, w->type, w->key);

	w->hash_next = *chain;
	*chain = w;
}

/* Long chains are slow, not wrong: without memory it stays as it is. */
static void fb_hash_grow(struct fb_index *index)
{
	struct fb_watch **old = index->hash, *w, *next;
	__u32 nr = index->nr_hash, i;

	if (index->nr < nr || nr >= 1U << 30)
		return;
	index->hash = calloc(2 * (size_t)nr, sizeof(*index->hash));
	if (!index->hash) {
		index->hash = old;
		return;
	}
	index->nr_hash = 2 * nr;
	for (i = 0; i < nr; i++) {
		for (w = old[i]; w; w = next) {
			next = w->hash_next;
			fb_hash_insert(index, w);
		}
	}
	free(old);
}

void fb_watch_link(struct fb_index *index, struct fb_watch *w)
{
	fb_hash_insert(index, w);
	index->nr++;
	fb_hash_grow(index);
}

void fb_watch_unlink(struct fb_index *index, struct fb_watch *w)
{
	struct fb_watch **at = fb_chain(index, w->type, w->key);

	while (*at != w)
		at = &(*at)->hash_next;
	*at = w->hash_next;
	index->nr--;
}

/* Tokens */

static int fb_slots_grow(struct fb_index *index)
{
	__u32 nr = index->nr_slots, i;
	struct fb_slot *slots;

	if (nr >= 1U << 30)
		return -ENOMEM;
	slots = realloc(index->slots, 2 * (size_t)nr * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = nr; i < 2 * nr; i++)
		slots[i] = (struct fb_slot){ .next = i + 1 };
	index->slots = slots;
	index->nr_slots = 2 * nr;
	return 0;
}

int fb_token_get(struct fb_index *index, struct fb_watch *w)
{
	__u32 nr = index->free_slot;
	struct fb_slot *slot;
	int err;

	if (nr == index->nr_slots) {
		err = fb_slots_grow(index);
		if (err)
			return err;
	}
	slot = &index->slots[nr];
	index->free_slot = slot->next;
	slot->watch = w;
	if (!++slot->gen)
		slot->gen = 1;
	w->token = (__u64)slot->gen << 32 | nr;
	return 0;
}

void fb_token_put(struct fb_index *index, struct fb_watch *w)
{
	__u32 nr = (__u32)w->token;

	if (!w->token)
		return;
	w->token = 0;
	index->slots[nr].watch = NULL;
	index->slots[nr].next = index->free_slot;
	index->free_slot = nr;
}
