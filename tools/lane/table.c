// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the table of descriptors, and the lock
 */
#include <pthread.h>
#include <sys/single_threaded.h>

#include "lane.h"

uintptr_t *lane_table[PAGES];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool locked;	/* @mutex, and not only the single thread */
unsigned int lane_awake;

/* A handler that runs within the lock is put off: see signals.c. */
static __thread volatile sig_atomic_t inside __attribute__((tls_model("initial-exec")));

void lane_lock(void)
{
	inside = 1;
	if (!__libc_single_threaded) {
		pthread_mutex_lock(&mutex);
		locked = true;
	}
	lane_awake = 0;
}

/* Of a thread that sleeps itself, so it has looked at what there is to do */
void lane_unlock_only(void)
{
	if (locked) {
		locked = false;
		pthread_mutex_unlock(&mutex);
	}
	inside = 0;
	if (__builtin_expect(lane_put_off, 0))
		lane_signals_again();
}

void lane_unlock(void)
{
	lane_settle();
	lane_unlock_only();
}

/* Of a thread that has forked with the lock */
void lane_unlock_in_child(void)
{
	pthread_mutex_init(&mutex, NULL);
	locked = false;
	inside = 0;
	lane_signals_again();
}

bool lane_is_inside(void)
{
	return inside;
}

void *lane_new(enum kind kind, size_t size)
{
	static __u64 serial;
	struct object *o = calloc(1, size);

	if (!o)
		return NULL;
	o->kind = kind;
	o->refs = 1;
	o->serial = ++serial;
	return o;
}

static void end_object(struct object *o)
{
	if (o->kind == CONN)
		lane_conn_end((struct conn *)o);
	else if (o->kind == EPOLL)
		lane_epoll_end((struct epoll *)o);
	free(o);
}

void lane_put(struct object *o)
{
	if (!--o->refs)
		end_object(o);
}

static uintptr_t *slot_of(int fd, bool make)
{
	unsigned int nr = (unsigned int)fd;
	uintptr_t *page;

	if (nr >= PAGES * PAGE_SLOTS)
		return NULL;
	page = lane_table[nr / PAGE_SLOTS];
	if (!page && make) {
		page = calloc(PAGE_SLOTS, sizeof(*page));
		__atomic_store_n(&lane_table[nr / PAGE_SLOTS], page, __ATOMIC_RELEASE);
	}
	return page ? &page[nr % PAGE_SLOTS] : NULL;
}

bool lane_table_set(int fd, struct object *o)
{
	struct object *old = lane_find(fd);
	uintptr_t *slot = slot_of(fd, o);

	if (!slot)
		return false;
	__atomic_store_n(slot, (uintptr_t)o | (o ? o->kind : 0), __ATOMIC_RELEASE);
	if (old)
		lane_put(old);
	return true;
}

/* The first descriptor from @first on that has @o, or any object for NULL; -1: none */
int lane_number_of(const struct object *o, int first)
{
	unsigned int nr = (unsigned int)first;

	while (nr < PAGES * PAGE_SLOTS) {
		const struct object *found = lane_find((int)nr);

		if (!lane_table[nr / PAGE_SLOTS])
			nr |= PAGE_SLOTS - 1;
		else if (o ? found == o : found != NULL)
			return (int)nr;
		nr++;
	}
	return -1;
}
