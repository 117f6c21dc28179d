// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that set all bits of their pages all the time, for the object of kevent-lane
 *
 * It is linked into the object, with --wrap for the calls below. Another process could not set
 * bits as often as this does: before each look. So no thread has an end of what there is to do. The
 * object has to leave its lock all the same, after so many steps that can be counted.
 *
 * With LANE_BITS in the environment, only the peer of the first page does so, and while the file
 * that it names exists. With LANE_FLOOD, peers go on writing to memory that this side leaves.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/socket.h>

#include "stream/stream.h"

#define MOST	100000	/* steps with the lock; each of one stream */

struct kevent_stream *__real_kevent_streams_next(struct kevent_streams *set);
struct kevent_stream *__wrap_kevent_streams_next(struct kevent_streams *set);
int __real_kevent_streams_look(struct kevent_streams *set, const struct timespec *timeout);
int __wrap_kevent_streams_look(struct kevent_streams *set, const struct timespec *timeout);
int __real_kevent_streams_arm(struct kevent_streams *set);
int __wrap_kevent_streams_arm(struct kevent_streams *set);
ssize_t __real_kevent_stream_read(struct kevent_stream *s, void *buf, size_t size);
ssize_t __wrap_kevent_stream_read(struct kevent_stream *s, void *buf, size_t size);
void __real_lane_lock(void);
void __wrap_lane_lock(void);

static unsigned int steps;

/* Of the side that has @p: it is to believe that its peer has set them. */
static void set_bits(const struct pair *p)
{
	__u64 *ready = p->side ? p->page->slot[p->slot].ready : p->page->ready;
	__u32 i;

	for (i = 0; i < PAIR_WORDS; i++)
		lane_store(&ready[i], ~0ULL);
}

static void step(const struct kevent_streams *set)
{
	const char *file = getenv("LANE_BITS");
	const struct pair *p;

	if (!kevent_process_is(set->process))
		return;
	if (++steps > MOST) {
		fprintf(stderr, "lane_bits: the lock was held for %d steps\n", MOST);
		raise(SIGKILL);
	}
	if (file && access(file, F_OK))
		return;
	/* The last one of the list was made first. */
	for (p = set->pairs; p; p = p->next)
		if (!file || !p->next)
			set_bits(p);
}

struct kevent_stream *__wrap_kevent_streams_next(struct kevent_streams *set)
{
	step(set);
	return __real_kevent_streams_next(set);
}

int __wrap_kevent_streams_look(struct kevent_streams *set, const struct timespec *timeout)
{
	step(set);
	return __real_kevent_streams_look(set, timeout);
}

int __wrap_kevent_streams_arm(struct kevent_streams *set)
{
	step(set);
	return __real_kevent_streams_arm(set);
}

/* Of what the object takes from a stream that goes back to its socket */
ssize_t __wrap_kevent_stream_read(struct kevent_stream *s, void *buf, size_t size)
{
	if (s->in.mem && state_of(s->phase) == STREAM_SOCKET && getenv("LANE_FLOOD"))
		lane_store((__u64 *)&s->peer->head, s->in.tail + STREAM_RING);
	return __real_kevent_stream_read(s, buf, size);
}

void __wrap_lane_lock(void)
{
	__real_lane_lock();
	steps = 0;
}
