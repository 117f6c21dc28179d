// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: memory of the object, and of libkevent in it
 *
 * A handler may interrupt the program's allocator, and then close a connection. So nothing here
 * is of that allocator. All calls of it come here by the linker, see tools/Makefile. They are made
 * with the lock, and so no handler runs in them.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "lane.h"

#define STEP	64U
#define LARGE	16384U		/* from here on each piece is mapped */
#define CHUNK	(64U << 10)

struct piece {
	size_t		size;
	struct piece	*next;	/* of those that are free, and as large */
	max_align_t	bytes[];
};

static struct piece *unused[LARGE / STEP];
static unsigned char *chunk;
static size_t left;		/* of it */

static void *map(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void *cut(size_t size)
{
	void *at;

	if (left < size) {
		at = map(CHUNK);
		if (!at)
			return NULL;
		chunk = at;
		left = CHUNK;
	}
	at = chunk;
	chunk += size;
	left -= size;
	return at;
}

static struct piece *find(size_t size)
{
	struct piece *p;

	if (size >= LARGE)
		return map(size);
	p = unused[size / STEP];
	if (!p)
		return cut(size);
	unused[size / STEP] = p->next;
	return p;
}

void *__wrap_malloc(size_t size)
{
	struct piece *p;

	if (size > PTRDIFF_MAX)
		return NULL;
	size = (sizeof(*p) + size + STEP - 1) & ~(size_t)(STEP - 1);
	p = find(size);
	if (!p)
		return NULL;
	p->size = size;
	return p->bytes;
}

void *__wrap_calloc(size_t nr, size_t size)
{
	void *at;

	if (__builtin_mul_overflow(nr, size, &size))
		return NULL;
	at = __wrap_malloc(size);
	return at ? memset(at, 0, size) : NULL;
}

static struct piece *piece_of(void *at)
{
	return (struct piece *)((char *)at - offsetof(struct piece, bytes));
}

/* Pieces stay with the process, but large ones. */
void __wrap_free(void *at)
{
	struct piece *p;

	if (!at)
		return;
	p = piece_of(at);
	if (p->size >= LARGE) {
		munmap(p, p->size);
		return;
	}
	/* As libc does, for tests */
	if (lane_settings.fill)
		memset(at, lane_settings.fill, p->size - sizeof(*p));
	p->next = unused[p->size / STEP];
	unused[p->size / STEP] = p;
}

void *__wrap_realloc(void *at, size_t size)
{
	size_t old = at ? piece_of(at)->size - sizeof(struct piece) : 0;
	void *other = __wrap_malloc(size);

	if (!other)
		return NULL;
	if (at)
		memcpy(other, at, old < size ? old : size);
	__wrap_free(at);
	return other;
}
