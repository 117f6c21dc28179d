// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the table of descriptors, and the lock
 */
#include <pthread.h>
#include <sys/single_threaded.h>

#include "lane.h"

struct object **lane_table[PAGES];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool locked;	/* @mutex, and not only the single thread */

/* A handler that runs within the lock is put off: see signals.c. */
static __thread volatile sig_atomic_t inside __attribute__((tls_model("initial-exec")));

void lane_lock(void)
{
	inside = 1;
	if (__libc_single_threaded)
		return;
	pthread_mutex_lock(&mutex);
	locked = true;
}

void lane_unlock(void)
{
	if (locked) {
		locked = false;
		pthread_mutex_unlock(&mutex);
	}
	inside = 0;
	if (__builtin_expect(lane_put_off, 0))
		lane_signals_again(false);
}

void lane_lock_in_child(void)
{
	pthread_mutex_init(&mutex, NULL);
	locked = false;
	inside = 0;
	lane_signals_again(true);
}

bool lane_is_inside(void)
{
	return inside;
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

static struct object **slot_of(int fd, bool make)
{
	unsigned int nr = (unsigned int)fd;
	struct object **page;

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
	struct object **slot = slot_of(fd, o), *old;

	if (!slot)
		return false;
	old = *slot;
	__atomic_store_n(slot, o, __ATOMIC_RELEASE);
	if (old)
		lane_put(old);
	return true;
}

/* The first descriptor from @first on that has @o, or any object for NULL; -1: none */
int lane_number_of(const struct object *o, int first)
{
	unsigned int nr = (unsigned int)first;

	while (nr < PAGES * PAGE_SLOTS) {
		struct object **page = lane_table[nr / PAGE_SLOTS];

		if (!page)
			nr |= PAGE_SLOTS - 1;
		else if (o ? page[nr % PAGE_SLOTS] == o : page[nr % PAGE_SLOTS] != NULL)
			return (int)nr;
		nr++;
	}
	return -1;
}
