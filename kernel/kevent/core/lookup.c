// SPDX-License-Identifier: GPL-2.0
/*
 * How watches are found: through their file, or by type and id
 *
 * What is found may be dead, and exists as long as the caller's RCU read-side
 * critical section.
 */

#include <linux/cleanup.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/rbtree.h>

#include "../host.h"
#include "lookup.h"
#include "queue.h"
#include "source_ops.h"
#include "state.h"

/* Watches of descriptors */

static bool kevent_file_matches(const struct kevent_file *kf,
				const struct kevent_queue *q, u32 type, u32 fd,
				u32 event)
{
	return kf->ke.queue == q && kf->ke.type == type &&
	       kf->ke.id_low == fd && !kevent_is_dead(&kf->ke) &&
	       (!kevent_sources[type]->many || kf->ke.event == event);
}

/* Walk the list of a file before a watch joins: 0, -EEXIST or -ENOSPC. */
static int kevent_file_check(const struct kevent_file *kf, struct file *file)
{
	const struct kevent *ke = &kf->ke;
	struct kevent_owner *owner = ke->queue->owner;
	unsigned int nr = 0, users = 0;
	struct kevent_file *other;

	lockdep_assert_held(&file->f_lock);

	for (other = *host_watches(file); other; other = other->next) {
		if (kevent_file_matches(other, ke->queue, ke->type, ke->id_low,
					ke->event) &&
		    kevent_has_key(&other->ke))
			return -EEXIST;
		nr += other->ke.queue->owner == owner;
		users += !host_owner_is_root(other->ke.queue->owner);
	}
	if (nr >= KEVENT_MAX_PER_FILE ||
	    (!host_owner_is_root(owner) && users >= KEVENT_MAX_OF_USERS))
		return -ENOSPC;
	return 0;
}

/*
 * Let a watch that is being attached be found through its file, which the caller has
 * pinned. All that MODIFY changes in the watch must have been set: another task may modify
 * it from here on. May sleep. Returns 0, -EEXIST when the queue has such a watch, -ENOSPC
 * when the file has too many of the queue's owner, or of all users, or -ENOMEM.
 */
int kevent_file_link(struct kevent_file *kf, struct file *file)
{
	struct kevent_file **first;
	int err = host_watches_get(file);

	if (err)
		return err;
	spin_lock(&file->f_lock);
	err = kevent_file_check(kf, file);
	if (err) {
		host_watches_put(file);
	} else {
		first = host_watches(file);
		kf->next = *first;
		/* There are walks under RCU only. */
		smp_store_release(first, kf);
	}
	spin_unlock(&file->f_lock);
	return err;
}

/* Undo kevent_file_link(), if that was done; the file is pinned. */
void kevent_file_unlink(struct kevent_file *kf)
{
	struct file *file = kf->file;
	struct kevent_file **at;

	spin_lock(&file->f_lock);
	for (at = host_watches(file); *at; at = &(*at)->next) {
		if (*at != kf)
			continue;
		/* There are walks under RCU only. */
		smp_store_release(at, kf->next);
		host_watches_put(file);
		break;
	}
	spin_unlock(&file->f_lock);
}

/*
 * Look up a watch by type, descriptor and file, and by its event if there may be many. The
 * type is valid, and the caller has pinned the file. Under RCU.
 */
struct kevent *kevent_file_find(struct kevent_queue *q,
				const struct ukevent *uk, struct file *file)
{
	struct kevent_file *kf;

	/* Pairs with kevent_file_link(), kevent_file_unlink(). */
	kf = READ_ONCE(*host_watches(file));
	while (kf && !kevent_file_matches(kf, q, uk->type, uk->id.raw[0],
					  uk->event))
		kf = READ_ONCE(kf->next);
	return kf ? &kf->ke : NULL;
}

/* Would kevent_file_link() find that the queue has such a watch? Under RCU. */
bool kevent_file_has(struct kevent_queue *q, const struct ukevent *uk,
		     struct file *file)
{
	const struct kevent *ke = kevent_file_find(q, uk, file);

	return ke && kevent_has_key(ke);
}

/*
 * Is the descriptor of a watch, which is linked, still what it was? close() and its like
 * clear the slot under file_lock, and then look for watches: either they see this one, or
 * the slot is seen here.
 */
bool kevent_is_current(const struct kevent *ke)
{
	struct kevent_file *kf = to_kevent_file(ke);
	struct files_struct *files = kf->table;
	bool ret;

	spin_lock(&files->file_lock);
	ret = files_lookup_fd_locked(files, ke->id_low) == kf->file;
	spin_unlock(&files->file_lock);
	return ret;
}

/* Watches without a file */

static struct kevent_keyed *node_keyed(struct rb_node *node)
{
	return rb_entry(node, struct kevent_keyed, node);
}

/* Ids differ more often than types. */
static int kevent_key_cmp(u32 type, u64 id, struct rb_node *node)
{
	const struct kevent_keyed *kk = node_keyed(node);

	if (id != kk->id)
		return id < kk->id ? -1 : 1;
	if (type != kk->ke.type)
		return type < kk->ke.type ? -1 : 1;
	return 0;
}

/* The place of a key, and above what that is, by a walk from the root */
static struct rb_node **kevent_key_walk(struct kevent_queue *q, u32 type,
					u64 id, struct rb_node **parent)
{
	struct rb_node **at = &q->keys.tree.rb_node;
	int c;

	lockdep_assert_held(&q->keys.lock);

	*parent = NULL;
	while (*at) {
		c = kevent_key_cmp(type, id, *at);
		if (!c)
			break;
		*parent = *at;
		at = c < 0 ? &(*at)->rb_left : &(*at)->rb_right;
	}
	return at;
}

/*
 * The place of a key in the tree: of the watch that has it, or an empty one. Many
 * programs count ids up, so the end is tried first.
 */
static struct rb_node **kevent_key_place(struct kevent_queue *q, u32 type,
					 u64 id, struct rb_node **parent)
{
	*parent = q->keys.last;
	if (*parent && kevent_key_cmp(type, id, *parent) > 0)
		return &(*parent)->rb_right;
	return kevent_key_walk(q, type, id, parent);
}

static void kevent_key_erase(struct kevent_queue *q, struct rb_node *node)
{
	lockdep_assert_held(&q->keys.lock);

	if (q->keys.last == node)
		q->keys.last = rb_prev(node);
	rb_erase(node, &q->keys.tree);
	RB_CLEAR_NODE(node);
}

static int kevent_key_insert(struct kevent_queue *q, struct kevent_keyed *kk)
{
	struct rb_node *parent, **at;

	at = kevent_key_place(q, kk->ke.type, kk->id, &parent);
	if (*at) {
		if (kevent_has_key(&node_keyed(*at)->ke))
			return -EEXIST;
		kevent_key_erase(q, *at);
		at = kevent_key_place(q, kk->ke.type, kk->id, &parent);
	}
	if (parent == q->keys.last && (!parent || at == &parent->rb_right))
		q->keys.last = &kk->node;
	rb_link_node(&kk->node, parent, at);
	rb_insert_color(&kk->node, &q->keys.tree);
	return 0;
}

/*
 * Let a watch that is being attached be found by type and id. As kevent_file_link(). A dead
 * watch that is about to be unlinked gives way. Returns 0 or -EEXIST.
 */
int kevent_key_link(struct kevent_keyed *kk)
{
	struct kevent_queue *q = kk->ke.queue;
	int err;

	spin_lock(&q->keys.lock);
	err = kevent_key_insert(q, kk);
	spin_unlock(&q->keys.lock);
	return err;
}

/* Undo kevent_key_link(), if that was done. */
void kevent_key_unlink(struct kevent_keyed *kk)
{
	struct kevent_queue *q = kk->ke.queue;

	spin_lock(&q->keys.lock);
	if (!RB_EMPTY_NODE(&kk->node))
		kevent_key_erase(q, &kk->node);
	spin_unlock(&q->keys.lock);
}

/* Look up a watch by type and id; NULL when there is none. */
struct kevent *kevent_key_find(struct kevent_queue *q, u32 type, u64 id)
{
	struct rb_node *node, *parent;

	spin_lock(&q->keys.lock);
	node = *kevent_key_walk(q, type, id, &parent);
	spin_unlock(&q->keys.lock);
	return node ? &node_keyed(node)->ke : NULL;
}
