// SPDX-License-Identifier: GPL-2.0
/*
 * Index of watches whose source has no file: by type and 64-bit id
 */

#include <linux/rbtree.h>

#include "kevent.h"

static int kevent_key_cmp(u32 type, u64 id, const struct kevent_keyed *kk)
{
	if (type != kk->ke.type)
		return type < kk->ke.type ? -1 : 1;
	if (id != kk->id)
		return id < kk->id ? -1 : 1;
	return 0;
}

static int kevent_node_cmp(struct rb_node *a, const struct rb_node *b)
{
	const struct kevent_keyed *kk = rb_entry(a, struct kevent_keyed, node);

	return kevent_key_cmp(kk->ke.type, kk->id,
			      rb_entry(b, struct kevent_keyed, node));
}

/**
 * kevent_key_insert - make a watch findable
 * @kk: the watch, with its id set
 *
 * A dead watch that is about to be erased gives way. Return: 0 or -EEXIST.
 */
int kevent_key_insert(struct kevent_keyed *kk)
{
	struct kevent_queue *q = kk->ke.queue;
	struct kevent_keyed *other;
	struct rb_node *found;
	int err = 0;

	spin_lock(&q->key_lock);
	found = rb_find_add(&kk->node, &q->by_key, kevent_node_cmp);
	if (found) {
		other = rb_entry(found, struct kevent_keyed, node);
		if (READ_ONCE(other->ke.state) & KE_DEAD) {
			rb_replace_node(found, &kk->node, &q->by_key);
			RB_CLEAR_NODE(found);
		} else {
			err = -EEXIST;
		}
	}
	spin_unlock(&q->key_lock);
	return err;
}

/**
 * kevent_key_erase - undo kevent_key_insert()
 * @kk: the watch; nothing is done when its node is cleared already
 */
void kevent_key_erase(struct kevent_keyed *kk)
{
	struct kevent_queue *q = kk->ke.queue;

	spin_lock(&q->key_lock);
	if (!RB_EMPTY_NODE(&kk->node)) {
		rb_erase(&kk->node, &q->by_key);
		RB_CLEAR_NODE(&kk->node);
	}
	spin_unlock(&q->key_lock);
}

/**
 * kevent_key_find - look up a watch
 * @q: the queue
 * @type: its type
 * @id: its id
 *
 * Return: the watch, which may be dead and exists as long as the caller's RCU
 * read-side critical section, or NULL.
 */
struct kevent *kevent_key_find(struct kevent_queue *q, u32 type, u64 id)
{
	struct kevent *found = NULL;
	struct rb_node *node;

	spin_lock(&q->key_lock);
	for (node = q->by_key.rb_node; node;) {
		struct kevent_keyed *kk = rb_entry(node, struct kevent_keyed,
						   node);
		int c = kevent_key_cmp(type, id, kk);

		if (!c) {
			found = &kk->ke;
			break;
		}
		node = c < 0 ? node->rb_left : node->rb_right;
	}
	spin_unlock(&q->key_lock);
	return found;
}
