// SPDX-License-Identifier: GPL-2.0
/*
 * Owners of queues: what a user has the kernel keep is counted here, exactly
 *
 * struct user_struct has no room for it. There are as many owners as there are users with
 * queues.
 */

#include <linux/cred.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(owners_lock);
static struct rb_root owners = RB_ROOT;		/* owners_lock */

static int owner_cmp(struct rb_node *a, const struct rb_node *b)
{
	uid_t x = __kuid_val(rb_entry(a, struct kevent_owner, node)->uid);
	uid_t y = __kuid_val(rb_entry(b, struct kevent_owner, node)->uid);

	return x < y ? -1 : x > y;
}

struct kevent_owner *host_owner_get(void)
{
	struct kevent_owner *owner, *made;
	struct rb_node *found;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return NULL;
	made->uid = current_uid();
	owner = made;
	spin_lock(&owners_lock);
	found = rb_find_add(&made->node, &owners, owner_cmp);
	if (found)
		owner = rb_entry(found, struct kevent_owner, node);
	owner->refs++;
	spin_unlock(&owners_lock);
	if (found)
		kfree(made);
	return owner;
}

/* The last queue of a user has returned all bytes. In a hook it must not sleep, nor here. */
void host_owner_put(struct kevent_owner *owner)
{
	bool last;

	spin_lock(&owners_lock);
	last = !--owner->refs;
	if (last)
		rb_erase(&owner->node, &owners);
	spin_unlock(&owners_lock);
	if (last)
		kfree(owner);
}
