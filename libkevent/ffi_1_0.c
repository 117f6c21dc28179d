// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * libkevent-ffi: tables of handles, for programs that were linked to 1.0.0
 *
 * Functions that are inline in such a program may use the same table. So a table has the
 * layout of the headers of 1.0.0: a free slot has the next handle, and the next free
 * slot in place of an object.
 */
#include <stddef.h>
#include <linux/ukevent.h>

struct kevent_handle {
	__u64			handle;
	union {
		void		*object;
		__u32		next;
	};
};

struct kevent_handles {
	struct kevent_handle	*slot;
	__u32			mask;
	__u32			free;
};

/* The name and the version of a function; libkevent-ffi.map does not export ours. */
#define KEVENT_1_0(name) \
	__asm__(".symver " #name "_1_0, " #name "@LIBKEVENT_FFI_1.0")

void kevent_handles_init_1_0(struct kevent_handles *t, struct kevent_handle *slot,
			     __u32 nr);
void kevent_handles_grow_1_0(struct kevent_handles *t, struct kevent_handle *slot,
			     __u32 nr);
__u64 kevent_handle_new_1_0(struct kevent_handles *t, void *object);
void *kevent_handle_object_1_0(const struct kevent_handles *t, __u64 handle);
void *kevent_handle_release_1_0(struct kevent_handles *t, __u64 handle);

KEVENT_1_0(kevent_handles_init);
KEVENT_1_0(kevent_handles_grow);
KEVENT_1_0(kevent_handle_new);
KEVENT_1_0(kevent_handle_object);
KEVENT_1_0(kevent_handle_release);

static void handles_add(struct kevent_handles *t, __u32 from)
{
	__u32 i = t->mask + 1;

	while (i-- > from) {
		t->slot[i].handle = (__u64)1 << 32 | i;
		t->slot[i].next = t->free;
		t->free = i + 1;
	}
}

void kevent_handles_init_1_0(struct kevent_handles *t, struct kevent_handle *slot,
			     __u32 nr)
{
	t->slot = slot;
	t->mask = nr - 1;
	t->free = 0;
	handles_add(t, 0);
}

void kevent_handles_grow_1_0(struct kevent_handles *t, struct kevent_handle *slot,
			     __u32 nr)
{
	__u32 old = t->mask + 1;

	t->slot = slot;
	t->mask = nr - 1;
	handles_add(t, old);
}

__u64 kevent_handle_new_1_0(struct kevent_handles *t, void *object)
{
	struct kevent_handle *slot;

	if (!t->free)
		return 0;
	slot = &t->slot[t->free - 1];
	t->free = slot->next;
	slot->object = object;
	return slot->handle;
}

void *kevent_handle_object_1_0(const struct kevent_handles *t, __u64 handle)
{
	const struct kevent_handle *slot = &t->slot[(__u32)handle & t->mask];

	return slot->handle == handle ? slot->object : NULL;
}

void *kevent_handle_release_1_0(struct kevent_handles *t, __u64 handle)
{
	struct kevent_handle *slot = &t->slot[(__u32)handle & t->mask];
	void *object;

	if (slot->handle != handle)
		return NULL;
	object = slot->object;
	slot->handle += (__u64)1 << 32;
	if (!(slot->handle >> 32))
		slot->handle += (__u64)1 << 32;
	slot->next = t->free;
	t->free = (__u32)(slot - t->slot) + 1;
	return object;
}
