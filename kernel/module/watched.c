// SPDX-License-Identifier: GPL-2.0
/*
 * The watches of a file, a process or a user, without a member of its structure
 *
 * Their list is found by the address of the object, in a table that stays as large as it is.
 * Of a file that is its first watch, so nothing is made for it, and each close() of the system asks
 * without a lock whether the place of its file is empty.
 * Nobody can make others slow by long lists: see Memory in Documentation/module.rst.
 */

#include <linux/cred.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../kevent/core/types.h"

/* Places: one for two pages of memory, or for up to four; 32 MB at most */
#define HOST_TAGS_MAX_BITS	22

/* Written by close.c, which is above this, before there is a queue */
void (*host_flush_needed)(void);

struct hlist_bl_head *host_tags;
unsigned int host_tags_bits;

/* Under the lock of the object, or RCU, which keeps those of others */
struct host_tag *host_tag_find(const void *of)
{
	struct hlist_bl_node *node;
	struct host_tag *tag;

	/* As hlist_bl_for_each_entry_rcu(), for which a spinlock is not enough */
	node = rcu_dereference_check(host_tag_place(of)->first,
				     rcu_read_lock_any_held());
	node = (void *)((unsigned long)node & ~LIST_BL_LOCKMASK);
	for (; node; node = rcu_dereference_raw(node->next)) {
		tag = hlist_bl_entry(node, struct host_tag, node);
		if (tag->of == of)
			return tag;
	}
	return NULL;
}

/* Under the lock of the object. Once for each tag: a walk may still be there. */
void host_tag_add(struct host_tag *tag, const void *of)
{
	struct hlist_bl_head *place = host_tag_place(of);

	guard(irqsave)();
	tag->of = of;
	hlist_bl_lock(place);
	hlist_bl_add_head_rcu(&tag->node, place);
	hlist_bl_unlock(place);
}

void host_tag_remove(struct host_tag *tag)
{
	struct hlist_bl_head *place = host_tag_place(tag->of);

	guard(irqsave)();
	hlist_bl_lock(place);
	hlist_bl_del_rcu(&tag->node);
	hlist_bl_unlock(place);
}

/* The new one stands where the old one did: a walk finds one of them. */
static void tag_replace(struct host_tag *old, struct host_tag *new)
{
	struct hlist_bl_head *place = host_tag_place(old->of);

	guard(irqsave)();
	hlist_bl_lock(place);
	new->of = old->of;
	new->node.next = old->node.next;
	/* There are walks under RCU only: who comes to it goes on. */
	smp_wmb();
	hlist_bl_add_behind(&new->node, &old->node);
	hlist_bl_del_rcu(&old->node);
	hlist_bl_unlock(place);
}

struct kevent_file *host_watches(struct file *file)
{
	struct host_tag *tag = host_tag_find(file);

	return tag ? container_of(tag, struct kevent_file, host.tag) : NULL;
}

void host_watches_set(struct file *file, struct kevent_file *old,
		      struct kevent_file *first)
{
	if (!old)
		host_tag_add(&first->host.tag, file);
	else if (!first)
		host_tag_remove(&old->host.tag);
	else
		tag_replace(&old->host.tag, &first->host.tag);
}

/* Owners: as many as there are users with queues. No object has a user's number for address. */

static DEFINE_SPINLOCK(owners_lock);

struct kevent_owner *host_owner_get(kuid_t kuid)
{
	const void *uid = (void *)(unsigned long)__kuid_val(kuid);
	struct kevent_owner *owner, *made;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return NULL;
	spin_lock(&owners_lock);
	owner = container_of(host_tag_find(uid), struct kevent_owner, tag);
	if (!owner) {
		host_tag_add(&made->tag, uid);
		swap(owner, made);
	}
	owner->refs++;
	spin_unlock(&owners_lock);
	kfree(made);
	return owner;
}

/* The last queue of a user has returned all bytes. In a hook it must not sleep, nor here. */
void host_owner_put(struct kevent_owner *owner)
{
	guard(spinlock)(&owners_lock);
	if (--owner->refs)
		return;
	host_tag_remove(&owner->tag);
	kfree_rcu(owner, tag.rcu);
}

/* Before the first queue, under the lock of hooks. Returns 0 or -ENOMEM. */
int host_tags_start(void)
{
	if (host_tags)
		return 0;
	host_tags_bits = min(ilog2(totalram_pages()) - 1, HOST_TAGS_MAX_BITS);
	host_tags = kvcalloc(BIT(host_tags_bits), sizeof(*host_tags), GFP_KERNEL);
	return host_tags ? 0 : -ENOMEM;
}

void host_tags_stop(void)
{
	/* No queue is left, and no watch. */
	WARN_ON_ONCE(host_tags &&
		     memchr_inv(host_tags, 0,
				sizeof(*host_tags) << host_tags_bits));
	kvfree(host_tags);
}
