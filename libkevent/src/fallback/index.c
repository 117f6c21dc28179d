// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Watches, and how a queue finds them: by key, and by what epoll hands back
 */
#include <errno.h>
#include <stdlib.h>

#include "index.h"

#define FB_INDEX_BITS	4

int fb_index_init(struct fb_index *index)
{
	index->nr = 0;
	index->tokens = 0;
	index->shift = 64 - FB_INDEX_BITS;
	index->hash = calloc(1 << FB_INDEX_BITS, sizeof(*index->hash));
	index->nr_hash = index->hash ? 1 << FB_INDEX_BITS : 0;
	return index->hash ? 0 : -ENOMEM;
}

void fb_index_free(struct fb_index *index)
{
	free(index->hash);
	index->hash = NULL;
	index->nr_hash = 0;
}

static struct fb_watch **fb_chain_of(const struct fb_index *index, __u32 type, __u64 key)
{
	return fb_chain(index, key ^ (__u64)type << 32);
}

struct fb_watch *fb_find(struct fb_index *index, __u32 type, __u64 key)
{
	struct fb_watch *w = *fb_chain_of(index, type, key);

	while (w && (w->type != type || w->key != key))
		w = w->hash_next;
	return w;
}

static void fb_hash_insert(struct fb_index *index, struct fb_watch *w)
{
	struct fb_watch **chain = fb_chain_of(index, w->type, w->key);

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
	index->shift--;
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
	struct fb_watch **at = fb_chain_of(index, w->type, w->key);

	while (*at != w)
		at = &(*at)->hash_next;
	*at = w->hash_next;
	index->nr--;
}
