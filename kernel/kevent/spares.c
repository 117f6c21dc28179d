// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of removed watches, for watches to come
 *
 * The slab allocator gives memory back page by page, and a new page has to be found
 * and cleared, which takes a fifth of an ADD. So some removed watches of all queues
 * are kept. They belong to nobody: nobody is charged with them, as with free objects
 * of a slab, and one limit holds for all users together.
 */

#include <linux/init.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "kevent.h"
#include "ops.h"
#include "spares.h"

/* KASAN is to see who uses a watch that was removed. */
#define KEVENT_SPARES_MAX	(IS_ENABLED(CONFIG_KASAN) ? 0 : SZ_1M)

/* Freed at once, when memory is short */
#define KEVENT_SPARES_BATCH	32U

/*
 * kevent_spares_lock protects all of this, and is the innermost lock. Walks are as
 * long as what is taken. Lists are by kevent_alike().
 */
static DEFINE_SPINLOCK(kevent_spares_lock);
static struct kevent *kevent_spares[KEVENT_NR_TYPES];
static size_t kevent_spares_bytes;
static bool kevent_spares_on __ro_after_init;

/**
 * kevent_spares_put - keep the memory of watches
 * @first: the watches, of one cache, linked by next_dead; a grace period is over
 * @last: the last one
 * @nr: how many
 *
 * Any context. Return: false when the caller must free them.
 */
bool kevent_spares_put(struct kevent *first, struct kevent *last, u32 nr)
{
	struct kevent **list = &kevent_spares[kevent_alike(first->type)];
	size_t bytes = nr * kevent_size(first->type);
	unsigned long flags;
	bool fits;

	if (!kevent_spares_on)
		return false;
	spin_lock_irqsave(&kevent_spares_lock, flags);
	fits = kevent_spares_bytes + bytes <= KEVENT_SPARES_MAX;
	if (fits) {
		WRITE_ONCE(kevent_spares_bytes, kevent_spares_bytes + bytes);
		last->next_dead = *list;
		WRITE_ONCE(*list, first);
	}
	spin_unlock_irqrestore(&kevent_spares_lock, flags);
	return fits;
}

/**
 * kevent_spares_take - memory for watches
 * @type: of the watches
 * @to: receives it, with arbitrary contents
 * @want: how many
 *
 * Return: how many there are.
 */
u32 kevent_spares_take(u32 type, void **to, u32 want)
{
	struct kevent *ke, **list = &kevent_spares[kevent_alike(type)];
	u32 nr = 0;

	if (!READ_ONCE(*list))
		return 0;
	spin_lock_irq(&kevent_spares_lock);
	for (ke = *list; ke && nr < want; ke = ke->next_dead)
		to[nr++] = ke;
	WRITE_ONCE(*list, ke);
	WRITE_ONCE(kevent_spares_bytes,
		   kevent_spares_bytes - nr * kevent_size(type));
	spin_unlock_irq(&kevent_spares_lock);
	return nr;
}

static unsigned long kevent_spares_count(struct shrinker *shrinker,
					 struct shrink_control *sc)
{
	return READ_ONCE(kevent_spares_bytes) / sizeof(struct kevent) ?:
	       SHRINK_EMPTY;
}

static unsigned long kevent_spares_scan(struct shrinker *shrinker,
					struct shrink_control *sc)
{
	unsigned long freed = 0;
	void *some[KEVENT_SPARES_BATCH];
	u32 type, nr;

	for (type = 0; type < KEVENT_NR_TYPES; type++) {
		while (freed < sc->nr_to_scan) {
			nr = kevent_spares_take(type, some, KEVENT_SPARES_BATCH);
			if (!nr)
				break;
			kfree_bulk(nr, some);
			freed += nr;
		}
	}
	return freed ?: SHRINK_STOP;
}

/**
 * kevent_spares_init - keep memory from now on
 *
 * Not where objects are to be cleared when they are freed.
 */
void __init kevent_spares_init(void)
{
	struct shrinker *shrinker;

	if (!KEVENT_SPARES_MAX || want_init_on_free())
		return;
	shrinker = shrinker_alloc(0, "kevent");
	if (!shrinker)
		return;
	shrinker->count_objects = kevent_spares_count;
	shrinker->scan_objects = kevent_spares_scan;
	shrinker_register(shrinker);
	kevent_spares_on = true;
}
