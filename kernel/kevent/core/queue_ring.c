// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of a queue: where it is in the address spaces of its creator and of others, and its flag
 * KEVENT_RING_MORE
 *
 * A miss that is alone on the ready list sets KEVENT_RING_MORE, unless a consumer was woken and is
 * on its way. Later ones do not set it again. Only calls move misses to the ring. A miss in a
 * process that has no mapping of the ring, or in an interrupt of one, sets no flag. To tell a
 * thread that runs elsewhere would take an interrupt of its CPU, and most threads call anyway when
 * they find the ring empty.
 *
 * A miss that wakes a consumer sets no flag. kevent_more() sets it later if that consumer
 * does not collect soon. A call that leaves events behind sets the flag too, and a call that leaves
 * none clears it.
 *
 * If the memory of the ring is gone, kevent_give_up() of deliver.c says so.
 */

#include <linux/fdtable.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "queue_ring.h"
#include "quota.h"

/* Address spaces that attach one ring, besides the creator's */
#define KEVENT_MAX_MAPPINGS	64

#define KEVENT_MAPPING_BYTES	(KEVENT_MM_BYTES + sizeof(struct kevent_mapping))

/* The mapping of current->mm, or NULL */
static struct kevent_mapping *kevent_mapping_find(struct kevent_queue *q)
{
	struct kevent_mapping *map;

	if (q->home.mm == current->mm)
		return &q->home;
	list_for_each_entry(map, &q->mappings, list)
		if (map->mm == current->mm)
			return map;
	return NULL;
}

/* kevent_ring_select() where the mapping has to be searched for */
bool __kevent_ring_select(struct kevent_queue *q)
{
	struct kevent_mapping *map;

	map = kevent_mapping_find(q);
	if (!map || !map->user || map->left)
		return false;
	kring_move(&q->ring, map->user);
	/* Where it is broken wake-ups keep away, see kevent_report(). */
	if (!(q->ring.flags & KEVENT_RING_BROKEN))
		WRITE_ONCE(q->ring_mm, current->mm);
	return true;
}

static int kevent_is_file(const void *file, struct file *other, unsigned int fd)
{
	return file == other ? fd + 1 : 0;
}

/* Clear the mark of a mapping if the descriptor @fd of the queue is still open. */
static bool kevent_mapping_back(struct kevent_queue *q, unsigned int fd)
{
	struct kevent_mapping *map;
	bool open;

	guard(spinlock_irqsave)(&q->ready_lock);
	scoped_guard(rcu)
		open = files_lookup_fd_raw(current->files, fd) == q->nest.file;
	map = kevent_mapping_find(q);
	if (open && map)
		map->left = false;
	return open;
}

/*
 * As kevent_ring_select(), for callers without ready_lock: waits, commits and ATTACH. A call pins
 * the file, so it may outlive the last descriptor of its process. From then on the program may use
 * the memory of the ring for something else, so this looks for a descriptor. A close first takes
 * the descriptor out of the table, and then marks the mapping. So a task that finds the descriptor
 * in the table under ready_lock knows that the mark is yet to come.
 */
bool kevent_ring_back(struct kevent_queue *q)
{
	unsigned int found;

	scoped_guard(spinlock_irqsave, &q->ready_lock) {
		struct kevent_mapping *map = kevent_mapping_find(q);

		if (!map || !map->left)
			return kevent_ring_select(q);
	}
	/* Threads may open and close descriptors as fast as this looks. */
	do {
		cond_resched();
		found = iterate_fd(current->files, 0, kevent_is_file,
				   q->nest.file);
	} while (found && !kevent_mapping_back(q, found - 1) &&
		 !fatal_signal_pending(current));
	return found;
}

/*
 * A descriptor is being closed. The program may use the memory of the ring for something
 * else after that, and the queue may live on: a child or a message has it, or somebody reads
 * its fdinfo. So nothing is stored here until kevent_ring_back(). The close itself stores nothing
 * either, because some programs free the ring before they close.
 */
void kevent_ring_leave(struct kevent_queue *q)
{
	struct kevent_mapping *map;

	guard(spinlock_irqsave)(&q->ready_lock);
	map = kevent_mapping_find(q);
	if (!map)
		return;
	map->left = true;
	if (q->ring_mm == current->mm)
		WRITE_ONCE(q->ring_mm, KEVENT_NO_MM);
}

static void kevent_mappings_drop(struct kevent_queue *q, struct list_head *gone)
{
	struct kevent_mapping *map, *next;

	list_for_each_entry_safe(map, next, gone, list) {
		mmdrop(map->mm);
		kfree(map);
		kevent_uncharge(q->owner, KEVENT_MAPPING_BYTES);
	}
}

/*
 * Note that current->mm has the ring at @user, if the header says so. -ENOENT: that takes
 * a @new mapping. Mappings of address spaces that have no task left move to @gone.
 */
static int kevent_mapping_enter(struct kevent_queue *q,
				struct kevent_ring __user *user,
				struct kevent_mapping **new, struct list_head *gone)
{
	struct kevent_mapping *map, *next;
	u32 others = 0;
	int err;

	guard(spinlock_irqsave)(&q->ready_lock);
	list_for_each_entry_safe(map, next, &q->mappings, list) {
		if (atomic_read(&map->mm->mm_users))
			others++;
		else
			list_move(&map->list, gone);
	}
	/* It may be gone, or the ring be somewhere else there. */
	WRITE_ONCE(q->ring_mm, KEVENT_NO_MM);
	map = kevent_mapping_find(q);
	err = kring_check_copy(&q->ring, user);
	if (err)
		return err;
	if (map) {
		map->user = user;
		return 0;
	}
	if (others >= KEVENT_MAX_MAPPINGS)
		return -ENOSPC;
	if (!*new)
		return -ENOENT;
	(*new)->user = user;
	/* Until kevent_ring_back() finds a descriptor: another thread may be closing the last. */
	(*new)->left = true;
	list_add(&(*new)->list, &q->mappings);
	*new = NULL;
	return 0;
}

/* Returns 0, -ENOSPC or -ENOMEM. */
static int kevent_mapping_alloc(struct kevent_queue *q,
				struct kevent_mapping **new)
{
	struct kevent_mapping *map;

	if (!kevent_charge(q->owner, KEVENT_MAPPING_BYTES))
		return -ENOSPC;
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map) {
		kevent_uncharge(q->owner, KEVENT_MAPPING_BYTES);
		return -ENOMEM;
	}
	map->mm = current->mm;
	mmgrab(map->mm);
	INIT_LIST_HEAD(&map->list);
	*new = map;
	return 0;
}

/*
 * Let the ring be where the caller has it mapped. An address space that has the ring
 * already moves it. Returns 0 or -errno, as ATTACH.
 */
int kevent_ring_attach(struct kevent_queue *q, struct kring *ring)
{
	struct kevent_mapping *new = NULL;
	LIST_HEAD(gone);
	u32 tries = 0;
	int err;

	kevent_note_taker(q);
	do {
		err = kevent_mapping_enter(q, ring->user, &new, &gone);
		if (err == -EFAULT && ++tries < KRING_FAULT_TRIES)
			err = kring_fault_in(ring) ?: -EAGAIN;
		else if (err == -ENOENT)
			err = kevent_mapping_alloc(q, &new) ?: -EAGAIN;
		cond_resched();
	} while (err == -EAGAIN);
	if (new)
		list_add(&new->list, &gone);
	kevent_mappings_drop(q, &gone);
	if (!err)
		kevent_ring_back(q);
	return err;
}

/* In how many address spaces of living processes is the ring? */
u32 kevent_ring_spaces(const struct kevent_queue *q)
{
	u32 nr = q->home.user && atomic_read(&q->home.mm->mm_users);
	const struct kevent_mapping *map;

	lockdep_assert_held(&q->ready_lock);

	/* Mappings of processes that have ended stay until the next ATTACH. */
	list_for_each_entry(map, &q->mappings, list)
		nr += atomic_read(&map->mm->mm_users) > 0;
	return nr;
}

/* Forget all mappings: the file of the queue is gone. */
void kevent_mappings_free(struct kevent_queue *q)
{
	LIST_HEAD(gone);

	scoped_guard(spinlock_irqsave, &q->ready_lock) {
		list_splice_init(&q->mappings, &gone);
		WRITE_ONCE(q->ring_mm, KEVENT_NO_MM);
	}
	kevent_mappings_drop(q, &gone);
}

/*
 * A watch was put on the ready list, or a consumer leaves some there, which may have been woken for
 * them. Unless another one is on its way, the ring says that they are there, if it is here. Does
 * not try memory that a wake-up has just found away: each fault takes as long as a dozen stores,
 * with interrupts off. Any context.
 */
void kevent_more(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (!list_empty(&q->ready) && !q->nr_woken &&
	    q->ring.size && !q->ring.away && kevent_ring_select(q))
		kring_set_flags(&q->ring, q->ring.flags | KEVENT_RING_MORE);
}
