// SPDX-License-Identifier: GPL-2.0
/*
 * A program that was linked to libkevent-ffi 1.0.0: the library's functions and those that
 * were inline in the program, which are written out here, share a table of handles
 */
#include <stdio.h>
#include <stdint.h>

struct kevent_handle {
	uint64_t		handle;
	union {
		void		*object;
		uint32_t	next;
	};
};

struct kevent_handles {
	struct kevent_handle	*slot;
	uint32_t		mask, free;
};

#define OF_1_0(name)	__asm__(".symver " #name ", " #name "@LIBKEVENT_FFI_1.0")

OF_1_0(kevent_handles_init);
OF_1_0(kevent_handles_grow);
OF_1_0(kevent_handle_new);
OF_1_0(kevent_handle_object);
OF_1_0(kevent_handle_release);

void kevent_handles_init(struct kevent_handles *t, struct kevent_handle *slot, uint32_t nr);
void kevent_handles_grow(struct kevent_handles *t, struct kevent_handle *slot, uint32_t nr);
uint64_t kevent_handle_new(struct kevent_handles *t, void *object);
void *kevent_handle_object(const struct kevent_handles *t, uint64_t handle);
void *kevent_handle_release(struct kevent_handles *t, uint64_t handle);

#define HANDLE(used, i)	((uint64_t)(used) << 32 | (i))
#define CHECK(good)	do { if (!(good)) return printf("line %d: %s\n", __LINE__, #good); } while (0)

int main(void)
{
	struct kevent_handle slot[4];
	struct kevent_handles t;
	int a, b;

	/* The program takes handles from a table that the library has filled in. */
	kevent_handles_init(&t, slot, 2);
	CHECK(t.free == 1 && slot[0].handle == HANDLE(1, 0) && slot[0].next == 2);
	CHECK(slot[1].handle == HANDLE(1, 1) && !slot[1].next);
	t.free = slot[0].next;
	slot[0].object = &a;
	CHECK(kevent_handle_object(&t, HANDLE(1, 0)) == &a);

	/* The library gives the handle that is left, and then the one that the program releases. */
	CHECK(kevent_handle_new(&t, &b) == HANDLE(1, 1) && !kevent_handle_new(&t, &b));
	slot[0].handle = HANDLE(2, 0);
	slot[0].next = t.free;
	t.free = 1;
	CHECK(!kevent_handle_object(&t, HANDLE(1, 0)));
	CHECK(kevent_handle_new(&t, &a) == HANDLE(2, 0));

	CHECK(kevent_handle_release(&t, HANDLE(1, 1)) == &b);
	CHECK(t.free == 2 && slot[1].handle == HANDLE(2, 1) && !slot[1].next);
	kevent_handles_grow(&t, slot, 4);
	CHECK(t.free == 3 && slot[2].next == 4 && slot[3].next == 2);
	return 0;
}
