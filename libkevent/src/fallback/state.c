// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * What a queue has of a watch: its key, its token, the list that it is on; and its end
 */
#include <errno.h>
#include <stdlib.h>

#include "ops.h"

/* Keys */

static struct fb_watch **fb_chain(struct fb_queue *q, __u32 type, __u64 key)
{
	__u64 mixed = (key ^ (__u64)type << 56) * 0x9e3779b97f4a7c15ULL;

	return &q->hash[(mixed >> 32) & (q->nr_hash - 1)];
}

struct fb_watch *fb_find(struct fb_queue *q, __u32 type, __u64 key)
{
	struct fb_watch *w = *fb_chain(q, type, key);

	while (w && (w->type != type || w->key != key))
		w = w->hash_next;
	return w;
}

static void fb_hash_insert(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_watch **chain = fb_chain(q, w->type, w->key);

	w->hash_next = *chain;
	*chain = w;
}

/* Long chains are slow, not wrong: without memory it stays as it is. */
static void fb_hash_grow(struct fb_queue *q)
{
	struct fb_watch **old = q->hash, *w, *next;
	__u32 nr = q->nr_hash, i;

	if (q->nr_watches < nr || nr >= 1U << 30)
		return;
	q->hash = calloc(2 * (size_t)nr, sizeof(*q->hash));
	if (!q->hash) {
		q->hash = old;
		return;
	}
	q->nr_hash = 2 * nr;
	for (i = 0; i < nr; i++) {
		for (w = old[i]; w; w = next) {
			next = w->hash_next;
			fb_hash_insert(q, w);
		}
	}
	free(old);
}

void fb_watch_link(struct fb_queue *q, struct fb_watch *w)
{
	fb_hash_insert(q, w);
	q->nr_watches++;
	fb_hash_grow(q);
}

static void fb_hash_remove(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_watch **at = fb_chain(q, w->type, w->key);

	while (*at != w)
		at = &(*at)->hash_next;
	*at = w->hash_next;
}

/* Tokens */

static int fb_slots_grow(struct fb_queue *q)
{
	__u32 nr = q->nr_slots, i;
	struct fb_slot *slots;

	if (nr >= 1U << 30)
		return -ENOMEM;
	slots = realloc(q->slots, 2 * (size_t)nr * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = nr; i < 2 * nr; i++)
		slots[i] = (struct fb_slot){ .next = i + 1 };
	q->slots = slots;
	q->nr_slots = 2 * nr;
	return 0;
}

int fb_token_get(struct fb_queue *q, struct fb_watch *w)
{
	__u32 index = q->free_slot;
	struct fb_slot *slot;
	int err;

	if (index == q->nr_slots) {
		err = fb_slots_grow(q);
		if (err)
			return err;
	}
	slot = &q->slots[index];
	q->free_slot = slot->next;
	slot->watch = w;
	if (!++slot->gen)
		slot->gen = 1;
	w->token = (__u64)slot->gen << 32 | index;
	return 0;
}

void fb_token_put(struct fb_queue *q, struct fb_watch *w)
{
	__u32 index = (__u32)w->token;

	if (!w->token)
		return;
	w->token = 0;
	q->slots[index].watch = NULL;
	q->slots[index].next = q->free_slot;
	q->free_slot = index;
}

/* Lists */

static void fb_use_edge(struct fb_queue *q, struct fb_watch *w)
{
	if (q->edges && w->state & FB_REPEATED)
		fb_ops_of(w)->use_edge(q, w);
}

void fb_enqueue(struct fb_queue *q, struct fb_watch *w)
{
	if (w->state & FB_READY)
		return;
	fb_dequeue(q, w);
	fb_list_add_tail(&w->link, &q->ready);
	w->state |= FB_READY;
	q->nr_ready++;
	fb_use_edge(q, w);
}

void fb_dequeue(struct fb_queue *q, struct fb_watch *w)
{
	if (!(w->state & (FB_READY | FB_RECHECK | FB_SHOWN)))
		return;
	fb_list_del(&w->link);
	if (w->state & FB_READY)
		q->nr_ready--;
	else if (w->state & FB_RECHECK)
		q->nr_recheck--;
	w->state &= ~(FB_READY | FB_RECHECK | FB_SHOWN);
}

/*
 * Two calls share the queue, or an entry is unread while a call waits: epoll would
 * repeat level events to threads that must not get them. From now on they are edges
 * for epoll while a call sleeps, and each call polls what was delivered before.
 */
void fb_use_edges(struct fb_queue *q)
{
	struct fb_watch *w;
	__u32 i;

	if (q->edges)
		return;
	__atomic_store_n(&q->edges, true, __ATOMIC_RELAXED);
	for (i = 0; i < q->nr_hash; i++)
		for (w = q->hash[i]; w; w = w->hash_next)
			fb_use_edge(q, w);
}

/* Numbers */

static void fb_lose_number(struct fb_queue *q, struct fb_watch *w)
{
	fb_dequeue(q, w);
	fb_token_put(q, w);
}

/*
 * Whoever has the watch at hand may go on. It goes with the next request that names it, or
 * with the queue.
 */
void fb_number_changed(struct fb_queue *q, int fd, const struct fb_watch *of)
{
	struct fb_watch *w;
	__u32 type;

	for (type = 0; type < FB_NR_TYPES; type++) {
		if (!fb_sources[type] || !fb_sources[type]->file)
			continue;
		w = fb_find(q, type, (__u32)fd);
		if (w && (!of || (w != of && !((w->state ^ of->state) & FB_SECOND))))
			fb_lose_number(q, w);
	}
}

/*
 * To epoll a number and its file are a key. While a watch had the number, what it asks of
 * epoll would be done to the descriptor of the library.
 */
int fb_register_own(struct fb_queue *q, int fd, __u32 events, __u64 token)
{
	int err = fb_epoll_ctl(q->fd, EPOLL_CTL_ADD, fd, events, token);

	if (!err)
		fb_number_changed(q, fd, NULL);
	return err;
}

/* Life */

void fb_kill(struct fb_queue *q, struct fb_watch *w)
{
	fb_dequeue(q, w);
	fb_hash_remove(q, w);
	if (fb_ops_of(w)->detach)
		fb_ops_of(w)->detach(q, w);
	fb_token_put(q, w);
	q->nr_watches--;
	if (fb_ops_of(w)->release)
		fb_ops_of(w)->release(w);
	free(w);
}

void fb_kill_all(struct fb_queue *q)
{
	__u32 i;

	for (i = 0; i < q->nr_hash; i++)
		while (q->hash[i])
			fb_kill(q, q->hash[i]);
}
