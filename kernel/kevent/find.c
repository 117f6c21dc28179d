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

#include "find.h"
#include "ops.h"
#include "queue.h"
#include "state.h"

/* Watches of descriptors */

static bool kevent_file_matches(const struct kevent_file *kf,
				const struct kevent_queue *q, u32 type, u32 fd)
{
	return kf->ke.queue == q && kf->ke.type == type &&
	       kf->ke.id_low == fd && !kevent_is_dead(&kf->ke);
}

static int kevent_file_link(struct kevent_file *kf, struct file *file)
{
	struct kevent *ke = &kf->ke;
	struct kevent_file *other;
	unsigned int nr = 0;
	int err = 0;

	spin_lock(&file->f_lock);
	for (other = file->f_kevent; other && !err; other = other->next) {
		if (kevent_file_matches(other, ke->queue, ke->type,
					ke->id_low))
			err = -EEXIST;
		else if (other->ke.queue->owner == ke->queue->owner &&
			 ++nr >= KEVENT_MAX_PER_FILE)
			err = -ENOSPC;
	}
	if (!err) {
		kf->next = file->f_kevent;
		/* There are walks under RCU only. */
		smp_store_release(&file->f_kevent, kf);
	}
	spin_unlock(&file->f_lock);
	return err;
}

static void kevent_file_unlink(struct kevent_file *kf)
{
	struct file *file = kf->file;
	struct kevent_file **at;

	spin_lock(&file->f_lock);
	for (at = &file->f_kevent; *at; at = &(*at)->next) {
		if (*at != kf)
			continue;
		WRITE_ONCE(*at, kf->next);
		break;
	}
	spin_unlock(&file->f_lock);
}

static struct kevent *kevent_file_find(struct kevent_queue *q,
				       const struct ukevent *uk,
				       struct file *file)
{
	struct kevent_file *kf;

	spin_lock(&file->f_lock);
	kf = file->f_kevent;
	while (kf && !kevent_file_matches(kf, q, uk->type, uk->id.raw[0]))
		kf = kf->next;
	spin_unlock(&file->f_lock);
	return kf ? &kf->ke : NULL;
}

/* Watches without a file */

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

/* A dead watch that is about to be erased gives way. */
static int kevent_key_insert(struct kevent_keyed *kk)
{
	struct kevent_queue *q = kk->ke.queue;
	struct kevent_keyed *other;
	struct rb_node *found;
	int err = 0;

	spin_lock(&q->key_lock);
	found = rb_find_add(&kk->node, &q->by_key, kevent_node_cmp);
	if (found) {
		other = rb_entry(found, struct kevent_keyed, node);
		if (kevent_is_dead(&other->ke)) {
			rb_replace_node(found, &kk->node, &q->by_key);
			RB_CLEAR_NODE(found);
		} else {
			err = -EEXIST;
		}
	}
	spin_unlock(&q->key_lock);
	return err;
}

static void kevent_key_erase(struct kevent_keyed *kk)
{
	struct kevent_queue *q = kk->ke.queue;

	spin_lock(&q->key_lock);
	if (!RB_EMPTY_NODE(&kk->node)) {
		rb_erase(&kk->node, &q->by_key);
		RB_CLEAR_NODE(&kk->node);
	}
	spin_unlock(&q->key_lock);
}

static struct kevent *kevent_key_find(struct kevent_queue *q, u32 type, u64 id)
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

/* Either */

/**
 * kevent_link - let a watch be found
 * @ke: the watch, being attached
 * @file: its file, which the caller has pinned; NULL for a source without one
 *
 * All that MODIFY changes in the watch must have been set: another task may modify
 * it from here on.
 *
 * Return: 0, -EEXIST when the queue has such a watch, -ENOSPC when the file has
 * too many of the queue's owner.
 */
int kevent_link(struct kevent *ke, struct file *file)
{
	if (kevent_source_of(ke)->file)
		return kevent_file_link(to_kevent_file(ke), file);
	return kevent_key_insert(to_kevent_keyed(ke));
}

/**
 * kevent_unlink - undo kevent_link()
 * @ke: the watch; its file is pinned. Nothing is done when it is not linked
 */
void kevent_unlink(struct kevent *ke)
{
	if (kevent_source_of(ke)->file)
		kevent_file_unlink(to_kevent_file(ke));
	else
		kevent_key_erase(to_kevent_keyed(ke));
}

/**
 * kevent_find - look up a watch
 * @q: the queue
 * @uk: names it; of a type that has a source
 * @file: what the descriptor refers to, which the caller has pinned; NULL for a
 *	  source without a file
 *
 * Return: the watch or NULL.
 */
struct kevent *kevent_find(struct kevent_queue *q, const struct ukevent *uk,
			   struct file *file)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);

	if (ops->file)
		return kevent_file_find(q, uk, file);
	return kevent_key_find(q, uk->type,
			       ops->key ? ops->key(uk) : uk->id.raw_u64);
}

/**
 * kevent_is_there - would kevent_link() return -EEXIST?
 * @q: the queue
 * @uk: a request
 * @file: its file, or NULL
 *
 * A look before memory is taken, for files only.
 */
bool kevent_is_there(struct kevent_queue *q, const struct ukevent *uk,
		     struct file *file)
{
	if (!file || !READ_ONCE(file->f_kevent))
		return false;
	guard(rcu)();
	return kevent_file_find(q, uk, file);
}

/**
 * kevent_is_current - is the descriptor of a watch still what it was?
 * @ke: the watch, linked
 *
 * close() and its like clear the slot under file_lock, and then look for
 * watches: either they see this one, which is linked, or the slot is seen here.
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

/**
 * kevent_hold - pin what a watch watches
 * @ke: the watch, not dead, under ready_lock: somebody has a reference to its file,
 *	see kevent_flush()
 *
 * Sources without a file need no pin: RCU and their own locks order detach() and
 * the end of the object.
 */
void kevent_hold(struct kevent *ke)
{
	if (kevent_source_of(ke)->file)
		get_file(to_kevent_file(ke)->file);
}

/**
 * kevent_unhold - undo kevent_hold()
 * @ke: the watch
 *
 * May sleep.
 */
void kevent_unhold(struct kevent *ke)
{
	if (kevent_source_of(ke)->file)
		fput(to_kevent_file(ke)->file);
}
