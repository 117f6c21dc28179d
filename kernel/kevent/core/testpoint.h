/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Windows: places between two steps where a test can hold a task up
 *
 * A race has a window in which the other side must act. A test arms a window,
 * the next task that comes to it with a queue of the test's address space waits
 * there, and the test acts and lets it go. A generator of races cannot know what to
 * do in a window. It has tasks that come to one, with any queue, delayed now and then.
 * Only test kernels have windows.
 */
#ifndef _KEVENT_TESTPOINT_H
#define _KEVENT_TESTPOINT_H

#include <linux/compiler.h>
#include <linux/types.h>

struct kevent_queue;

/* The windows */
enum kevent_testpoint {
	KEVENT_TESTPOINT_NONE,		/* none is armed */
	KEVENT_TESTPOINT_HIT_STORED,	/* the entry of a level watch is stored, the hit not over */
	KEVENT_TESTPOINT_SETTLE,	/* entries are stored, their watches not settled yet */
	KEVENT_TESTPOINT_TURN,		/* a watch is to report for others, wait queue locked */
	KEVENT_TESTPOINT_VERIFIED,	/* files were looked at, whose watches are still claimed */
	KEVENT_TESTPOINT_SERVE,		/* a thread is to serve, its descriptor not looked at */
	KEVENT_TESTPOINT_TAKEN,		/* watches were taken, whose files will be looked at */
	KEVENT_TESTPOINT_AGAIN,		/* a collection has let the lock go, and goes on */
	KEVENT_TESTPOINT_COMMITTED,	/* slots are free, and the ring is not refilled yet */
	KEVENT_TESTPOINT_STORED,	/* a call has less than it waits for, will wake others */
	KEVENT_TESTPOINT_SLEEP,		/* a consumer found nothing, is no sleeper yet */
	KEVENT_TESTPOINT_ASLEEP,	/* a consumer is among the sleepers, and runs yet */
	KEVENT_TESTPOINT_AWOKE,		/* a consumer has slept, and has not come for the lock */
	KEVENT_TESTPOINT_PARKED,	/* a member is parked, and runs yet */
	KEVENT_TESTPOINT_UNPARKED,	/* a member was parked, has not said that it runs */
	KEVENT_TESTPOINT_GO_ON,		/* a member counts as running, and wakes others next */
	KEVENT_TESTPOINT_FAULT,		/* memory of a call is away, and will be faulted in */
	KEVENT_TESTPOINT_FAULTED,	/* it was faulted in */
	KEVENT_TESTPOINT_ATTACH,	/* a watch is to join its source */
	KEVENT_TESTPOINT_ATTACHED,	/* a watch has joined its source, and is claimed */
	KEVENT_TESTPOINT_HANDED,	/* the caller of ADD has its event, the watch is claimed */
	KEVENT_TESTPOINT_FOUND,		/* a watch was found under RCU, ready_lock not taken yet */
	KEVENT_TESTPOINT_MODIFIED,	/* what a watch wants was changed, its file not looked at */
	KEVENT_TESTPOINT_HAND_ON,	/* a watch was modified, and has not handed on yet */
	KEVENT_TESTPOINT_REARMED,	/* a source has armed a watch anew, which is claimed */
	KEVENT_TESTPOINT_ROOM,		/* READY has found no room, and will allocate some */
	KEVENT_TESTPOINT_KILLED,	/* a watch is dead, and attached to its source */
	KEVENT_TESTPOINT_DETACHED,	/* a dead watch is detached, and not handed over */
	KEVENT_TESTPOINT_FIRE,		/* a wake-up has read what a watch wants, not reported */
	KEVENT_TESTPOINT_LEAVE,		/* a dead watch has found its wait queue, not locked it */
	KEVENT_TESTPOINT_POLL,		/* a caller of poll() has joined, and has not looked */
	KEVENT_TESTPOINT_RELEASED,	/* the file of a queue is gone, its watches are not */
	KEVENT_TESTPOINT_DUE,		/* a clock is to wait for its turn, not locked yet */
	KEVENT_TESTPOINT_SLICE,		/* a slice of the timers that are due has expired */
	KEVENT_TESTPOINT_PROC,		/* the leader of a process was found, and not looked at */
	KEVENT_TESTPOINT_CLOCK_SET,	/* the clock was set, the timers of a queue are not told */
	KEVENT_TESTPOINT_IDLE,		/* a serving thread is among the idle ones, and runs yet */
	KEVENT_TESTPOINT_RAN,		/* a chain was run, and is not done yet */
	KEVENT_TESTPOINT_CANCEL,	/* a chain that is to be cancelled was found under RCU */
	KEVENT_TESTPOINT_DROPPED,	/* the chains of a process are cancelled, its crew is not */
	KEVENT_NR_TESTPOINTS,
};

#ifdef CONFIG_KEVENT_TESTPOINTS

void kevent_testpoints_start(void);
void kevent_testpoints_stop(void);

extern u8 kevent_testpoints_used;
void kevent_testpoint_enter(const struct kevent_queue *q, enum kevent_testpoint w);

/*
 * Any context; the caller may hold any spinlock. In a window that testpoint.c lists as one
 * where a task may sleep, it can sleep.
 */
static inline void kevent_testpoint(const struct kevent_queue *q,
				    enum kevent_testpoint w)
{
	if (unlikely(READ_ONCE(kevent_testpoints_used)))
		kevent_testpoint_enter(q, w);
}

#else

static inline void kevent_testpoints_start(void) {}
static inline void kevent_testpoints_stop(void) {}

static inline void kevent_testpoint(const struct kevent_queue *q,
				    enum kevent_testpoint w)
{
}

#endif /* CONFIG_KEVENT_TESTPOINTS */

#endif /* _KEVENT_TESTPOINT_H */
