/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: a table of the program's objects, whose names outlive them safely
 *
 * An entry in the ring outlives its watch, so an event may arrive for an object
 * that the program has freed. A handle is the user value of such an object's
 * watches. The table finds the object by one comparison, and finds nothing once
 * the handle was released, whatever took the place since.
 */
#ifndef LIBKEVENT_HANDLES_H
#define LIBKEVENT_HANDLES_H

#include <stddef.h>
#include <linux/ukevent.h>
#include "libkevent_inline.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct kevent_handle - a slot of a table of handles; for the library only
 * @handle:	of the object: the slot's index, and in the upper half how often it was
 *		used, never 0. In a free slot the lower half is the complement of the
 *		next one's index + 1, or of 0: never the slot's index
 * @object:	the object; NULL in a free slot
 */
struct kevent_handle {
	__u64			handle;
	void			*object;
};

/**
 * struct kevent_handles - a table of handles; the members are for the library only
 * @slot:	the slots
 * @mask:	their number less one
 * @free:	index + 1 of the first free slot; 0: there is none
 *
 * A table does no locking: threads that share it take turns, but for
 * kevent_handle_object(), which may run beside others of its kind.
 */
struct kevent_handles {
	struct kevent_handle	*slot;
	__u32			mask;
	__u32			free;
};

/* Link the slot @i, which was used @used - 1 times, in front of the free ones. */
static inline void __kevent_handle_free(struct kevent_handles *t, __u32 i,
					__u32 used)
{
	t->slot[i].handle = (__u64)used << 32 | (__u32)~t->free;
	t->slot[i].object = NULL;
	t->free = i + 1;
}

/* The slots from @from on are new. */
static inline void __kevent_handles_add(struct kevent_handles *t, __u32 from)
{
	__u32 i = t->mask + 1;

	while (i-- > from)
		__kevent_handle_free(t, i, 1);
}

/**
 * kevent_handles_init() - make a table of handles
 * @t: to be filled in
 * @slot: memory of the program, for as long as the table is used
 * @nr: number of slots there, at least 1: a power of two up to 2^31
 */
KEVENT_INLINE void kevent_handles_init(struct kevent_handles *t,
				       struct kevent_handle *slot, __u32 nr)
{
	t->slot = slot;
	t->mask = nr - 1;
	t->free = 0;
	__kevent_handles_add(t, 0);
}

/**
 * kevent_handles_grow() - give a table more slots
 * @t: the table
 * @slot: memory that begins with a copy of the slots so far, for example of
 *	realloc(3) of the old memory
 * @nr: number of slots there, a power of two above the old one, up to 2^31
 *
 * Handles stay valid.
 */
KEVENT_INLINE void kevent_handles_grow(struct kevent_handles *t,
				       struct kevent_handle *slot, __u32 nr)
{
	__u32 old = t->mask + 1;

	t->slot = slot;
	t->mask = nr - 1;
	__kevent_handles_add(t, old);
}

/**
 * kevent_handle_new() - give an object a handle
 * @t: the table
 * @object: the object
 *
 * Return: the handle, for the user argument of kevent_set_socket() and others.
 * It is never less than 2^32, so smaller numbers are free for other uses. 0 when
 * the table is full: see kevent_handles_grow().
 */
KEVENT_INLINE __u64 kevent_handle_new(struct kevent_handles *t, void *object)
{
	__u32 i = t->free - 1;
	struct kevent_handle *slot;

	if (!t->free)
		return 0;
	slot = &t->slot[i];
	t->free = ~(__u32)slot->handle;
	slot->handle = slot->handle >> 32 << 32 | i;
	slot->object = object;
	return slot->handle;
}

/**
 * kevent_handle_object() - the object of an event
 * @t: the table
 * @handle: the user value of the event, its member ptr
 *
 * Return: the object, or NULL when the handle was released or is none.
 */
KEVENT_INLINE void *kevent_handle_object(const struct kevent_handles *t,
					 __u64 handle)
{
	const struct kevent_handle *slot = &t->slot[(__u32)handle & t->mask];

	return slot->handle == handle ? slot->object : NULL;
}

/**
 * kevent_handle_release() - take the handle from an object
 * @t: the table
 * @handle: the handle
 *
 * Events that still arrive with this handle have no object.
 *
 * Return: the object, or NULL when the handle was released before or is none.
 */
KEVENT_INLINE void *kevent_handle_release(struct kevent_handles *t,
					  __u64 handle)
{
	__u32 i = (__u32)handle & t->mask, used = (__u32)(handle >> 32) + 1;
	void *object = t->slot[i].object;

	if (t->slot[i].handle != handle || i != (__u32)handle)
		return NULL;
	__kevent_handle_free(t, i, used ? used : 1);
	return object;
}

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_HANDLES_H */
