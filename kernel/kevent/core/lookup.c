// SPDX-License-Identifier: GPL-2.0
/*
 * How watches are found: through their file, or by type and id
 *
 * A watch that is found may be dead. It exists until the caller leaves its RCU read-side
 * critical section.
 */

#include <linux/cleanup.h>
#include <linux/fdtable.h>
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
	       (!(kevent_sources[type]->flags & KEVENT_SOURCE_MANY) ||
		kf->ke.event == event);
}

/* Walk the list of a file, from @other on, before a watch joins. */
static int kevent_file_check(const struct kevent_file *kf,
			     const struct kevent_file *other, struct file *file)
{
	const struct kevent *ke = &kf->ke;
	struct kevent_owner *owner = ke->queue->owner;
	unsigned int nr = 0, users = 0;

	for (; other; other = other->next) {
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
 * it from here on. Returns 0, -EEXIST when the queue has such a watch, or -ENOSPC when the
 * file has too many of the queue's owner, or of all users.
 */
int kevent_file_link(struct kevent_file *kf, struct file *file)
{
	struct kevent_file *first;
	int err = 0;

	host_watches_begin(file);
	spin_lock(&file->f_lock);
	first = host_watches(file);
	if (first)
		err = kevent_file_check(kf, first, file);
	else
		host_watches_set(file, NULL, kf);
	if (first && !err) {
		kf->next = first->next;
		/* There are walks under RCU only. */
		smp_store_release(&first->next, kf);
	}
	spin_unlock(&file->f_lock);
	return err;
}

/*
 * Take a watch, which is dead, off the list of its file. @before: the one in front of it, or
 * NULL when it is the first. Its @next stays: there may be walks under RCU.
 */
void kevent_file_cut(struct kevent_file *kf, struct kevent_file *before)
{
	lockdep_assert_held(&kf->file->f_lock);

	if (before)
		/* There are walks under RCU only. */
		smp_store_release(&before->next, kf->next);
	else
		host_watches_set(kf->file, kf, kf->next);
	kf->table = NULL;
}

/*
 * Undo kevent_file_link(), if that was done; the file is pinned. Only the task that killed a
 * watch takes it off the list. So that task needs no lock to know whether it has done so.
 */
void kevent_file_unlink(struct kevent_file *kf)
{
	struct kevent_file *at, *before = NULL;

	if (!kf->table)
		return;
	guard(spinlock)(&kf->file->f_lock);
	for (at = host_watches(kf->file); at && at != kf; at = at->next)
		before = at;
	if (at)
		kevent_file_cut(kf, before);
}

/* Look up a watch by type, descriptor and file, and by its event if there may be many. Under RCU */
struct kevent *kevent_file_find(struct kevent_queue *q,
				const struct ukevent *uk, struct file *file)
{
	struct kevent_file *kf;

	/* Pairs with kevent_file_link(), kevent_file_cut(). */
	kf = host_watches(file);
	while (kf && !kevent_file_matches(kf, q, uk->type, uk->id.raw[0],
					  uk->event))
		kf = READ_ONCE(kf->next);
	return kf ? &kf->ke : NULL;
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

	guard(spinlock)(&files->file_lock);
	return files_lookup_fd_locked(files, ke->id_low) == kf->file;
}

/* Watches without a file */

static struct kevent_keyed *node_keyed(const struct rb_node *node)
{
	return rb_entry(node, struct kevent_keyed, node);
}

struct kevent_key {
	u64			id;
	u32			type;
};

/* Ids differ more often than types. The highest key comes first. */
static int kevent_key_cmp(const void *what, const struct rb_node *node)
{
	const struct kevent_keyed *kk = node_keyed(node);
	const struct kevent_key *key = what;

	if (key->id != kk->id)
		return key->id < kk->id ? 1 : -1;
	if (key->type != kk->ke.type)
		return key->type < kk->ke.type ? 1 : -1;
	return 0;
}

static int kevent_key_cmp_new(struct rb_node *new, const struct rb_node *node)
{
	const struct kevent_keyed *kk = node_keyed(new);
	struct kevent_key key = { .id = kk->id, .type = kk->ke.type };

	return kevent_key_cmp(&key, node);
}

/*
 * Let a watch that is being attached be found by type and id. As kevent_file_link(). A dead
 * watch that is about to be unlinked gives way. Returns 0 or -EEXIST.
 */
int kevent_key_link(struct kevent_keyed *kk)
{
	struct kevent_keys *keys = &kk->ke.queue->keys;
	struct rb_root *root = &keys->tree.rb_root;
	struct rb_node *other;

	guard(spinlock)(&keys->lock);
	other = rb_first_cached(&keys->tree);
	/* Many programs count ids up, so the end is tried first. */
	if (!other || kevent_key_cmp_new(&kk->node, other) < 0) {
		rb_link_node(&kk->node, other, other ? &other->rb_left : &root->rb_node);
		rb_insert_color_cached(&kk->node, &keys->tree, true);
		return 0;
	}
	other = rb_find_add(&kk->node, root, kevent_key_cmp_new);
	if (!other)
		return 0;
	if (kevent_has_key(&node_keyed(other)->ke))
		return -EEXIST;
	rb_replace_node_cached(other, &kk->node, &keys->tree);
	RB_CLEAR_NODE(other);
	return 0;
}

/* Undo kevent_key_link(), if that was done. */
void kevent_key_unlink(struct kevent_keyed *kk)
{
	struct kevent_keys *keys = &kk->ke.queue->keys;

	guard(spinlock)(&keys->lock);
	if (RB_EMPTY_NODE(&kk->node))
		return;
	rb_erase_cached(&kk->node, &keys->tree);
	RB_CLEAR_NODE(&kk->node);
}

/* Look up a watch by type and id; NULL when there is none. */
struct kevent *kevent_key_find(struct kevent_queue *q, u32 type, u64 id)
{
	struct kevent_key key = { .id = id, .type = type };
	struct rb_node *node;

	guard(spinlock)(&q->keys.lock);
	node = rb_find(&key, &q->keys.tree.rb_root, kevent_key_cmp);
	return node ? &node_keyed(node)->ke : NULL;
}
