// SPDX-License-Identifier: GPL-2.0
/*
 * How many watches of one user are about one object
 *
 * For objects whose own lists mix the watches of all users and what is not
 * kevent's: to count those of one user there would take as long as there are
 * others.
 */

#include <linux/build_bug.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "quota_object.h"

/**
 * struct kevent_tally - the watches of one user of one object
 * @node:	in kevent_tallies
 * @owner:	I: the user; a pointer to compare, held by the watches
 * @object:	I: likewise
 * @nr:		watches, at least 1; under kevent_tally_lock
 */
struct kevent_tally {
	struct rb_node		node;
	struct kevent_owner	*owner;
	const void		*object;
	unsigned int		nr;
};

static_assert(sizeof(struct kevent_tally) <= KEVENT_TALLY_BYTES);

/* Held for one look into the tree, which has at most as many as there are watches */
static DEFINE_SPINLOCK(kevent_tally_lock);
static struct rb_root kevent_tallies = RB_ROOT;	/* kevent_tally_lock */

static int kevent_tally_cmp(struct rb_node *a, const struct rb_node *b)
{
	const struct kevent_tally *x = rb_entry(a, struct kevent_tally, node);
	const struct kevent_tally *y = rb_entry(b, struct kevent_tally, node);

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return 0;
}

/* Counts one more in @made or in what the tree has, which is returned. */
static struct kevent_tally *kevent_tally_add(struct kevent_tally *made,
					     unsigned int max)
{
	struct kevent_tally *tally = made;
	struct rb_node *found;

	spin_lock(&kevent_tally_lock);
	found = rb_find_add(&made->node, &kevent_tallies, kevent_tally_cmp);
	if (found)
		tally = rb_entry(found, struct kevent_tally, node);
	if (tally->nr >= max)
		tally = ERR_PTR(-ENOSPC);
	else
		tally->nr++;
	spin_unlock(&kevent_tally_lock);
	return tally;
}

/**
 * kevent_tally_get - count a watch
 * @owner: who pays for it
 * @object: what it is about; neither goes before kevent_tally_put()
 * @max: how many there may be, at least 1
 *
 * May sleep. Return: for kevent_tally_put(), or -ENOSPC or -ENOMEM.
 */
struct kevent_tally *kevent_tally_get(struct kevent_owner *owner,
				      const void *object, unsigned int max)
{
	struct kevent_tally *made, *tally;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return ERR_PTR(-ENOMEM);
	made->owner = owner;
	made->object = object;
	tally = kevent_tally_add(made, max);
	if (tally != made)
		kfree(made);
	return tally;
}

/**
 * kevent_tally_put - a watch has gone
 * @tally: from kevent_tally_get(), an error or NULL
 */
void kevent_tally_put(struct kevent_tally *tally)
{
	if (IS_ERR_OR_NULL(tally))
		return;
	scoped_guard(spinlock, &kevent_tally_lock) {
		if (--tally->nr)
			return;
		rb_erase(&tally->node, &kevent_tallies);
	}
	kfree(tally);
}
