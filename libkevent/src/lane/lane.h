/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Lanes: what their files share
 *
 * All words of the shared memory are loaded and stored by these functions, once
 * each: the peer may change any of them at any time.
 */
#ifndef LIBKEVENT_LANE_PRIVATE_H
#define LIBKEVENT_LANE_PRIVATE_H

#include <errno.h>
#include <stdbool.h>

#include "libkevent.h"
#include "api/process.h"

/* The locks of libatomic are in one process: they would not keep the other side out. */
#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "lanes need words of 64 bits that are written without a lock"
#endif

static inline __u64 lane_load(const __u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void lane_store(__u64 *word, __u64 value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/*
 * Between "I have published" and "does it sleep?", and between "I sleep" and "is
 * there a message?"; and the same for room.
 */
static inline void lane_full_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Is there a message that was not taken? */
static inline bool lane_has_message(const struct kevent_lane *l)
{
	const struct kevent_lane_in *in = &l->in;

	return in->size &&
	       lane_load(&in->slot[in->pos & (in->size - 1)].seq) == in->pos + 1;
}

/* The lane is of no use any more: @error from now on. */
static inline int lane_break(struct kevent_lane *l, int error)
{
	__atomic_store_n(&l->state, error, __ATOMIC_RELAXED);
	__atomic_store_n(&l->stopped, 1, __ATOMIC_RELEASE);
	return error;
}

static inline int lane_state(const struct kevent_lane *l)
{
	if (!kevent_process_is(l->process))
		return -EXDEV;
	return __atomic_load_n(&l->state, __ATOMIC_RELAXED);
}

static inline bool lane_gone(const struct kevent_lane *l)
{
	return __atomic_load_n(&l->gone, __ATOMIC_ACQUIRE);
}

/*
 * Wakes the peer's queue. A bell that is full has an event under way. False: there
 * was no memory for it, so the next message tries again, or the next look for one.
 */
bool kevent_lane_ring(const struct kevent_lane *l);

/* Of kevent_lane_in.armed: with a number of its own, or with that of its set */
enum { LANE_AWAKE, LANE_ASLEEP, LANE_ASLEEP_IN_SET };

/* Of kevent_lane_out.hold: kevent_lane_send_get() rings later, and has to */
enum { LANE_RING_NOW, LANE_RING_LATER, LANE_RING_DUE };

/*
 * Instead of a wait, as there is a message. The ring has a level watch once only; a
 * call, now and then, has them looked at.
 */
int kevent_lane_get_beside(__u32 *skipped, struct kevent_queue *q, struct ukevent *ev,
			   __u32 max);

/* Takes the watches from the queue. */
void kevent_lane_unwatch(struct kevent_lane *l);

#endif /* LIBKEVENT_LANE_PRIVATE_H */
