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

/**
 * enum kevent_window - the windows
 * @KEVENT_WINDOW_NONE:		none is armed
 * @KEVENT_WINDOW_HIT_STORED:	the entry of a level watch is in the ring, the hit
 *				is not over
 * @KEVENT_WINDOW_SETTLE:	entries were stored by a call, whose watches are not
 *				settled yet
 * @KEVENT_WINDOW_TURN:		a watch has been chosen to report in the place of
 *				others, with the wait queue locked
 * @KEVENT_WINDOW_VERIFIED:	files were looked at, whose watches are still busy
 * @KEVENT_WINDOW_SERVE:	a thread is to serve, and has not looked at its
 *				descriptor
 * @KEVENT_WINDOW_TAKEN:	watches were taken, whose files will be looked at
 * @KEVENT_WINDOW_AGAIN:	a collection has let the lock go, and goes on
 * @KEVENT_WINDOW_COMMITTED:	slots are free, and the ring is not refilled yet
 * @KEVENT_WINDOW_STORED:	a call has stored less than it waits for, and will
 *				wake others
 * @KEVENT_WINDOW_SLEEP:	a consumer has found nothing, and is not among the
 *				sleepers yet
 * @KEVENT_WINDOW_ASLEEP:	a consumer is among the sleepers, and runs yet
 * @KEVENT_WINDOW_AWOKE:	a consumer has slept, and has not come for the lock
 * @KEVENT_WINDOW_PARKED:	a member is parked, and runs yet
 * @KEVENT_WINDOW_UNPARKED:	a member was parked, and has not said that it runs
 * @KEVENT_WINDOW_GO_ON:	a member counts as one that runs, and wakes others
 *				next
 * @KEVENT_WINDOW_MORE_WORK:	the work for the flag runs, and has not taken the
 *				lock
 * @KEVENT_WINDOW_MORE_FAULT:	the flag faulted, and its page is here now
 * @KEVENT_WINDOW_MORE_DONE:	the work for the flag has stored it, and is not over
 * @KEVENT_WINDOW_FAULT:	memory of a call is away, and will be faulted in
 * @KEVENT_WINDOW_FAULTED:	it was faulted in
 * @KEVENT_WINDOW_ATTACH:	a watch is to join its source
 * @KEVENT_WINDOW_ATTACHED:	a watch has joined its source, and is busy
 * @KEVENT_WINDOW_HANDED:	the caller of ADD has its event, the watch is busy
 * @KEVENT_WINDOW_FOUND:	a watch was found under RCU, and ready_lock is not
 *				taken yet
 * @KEVENT_WINDOW_MODIFIED:	what a watch wants was changed, and the file not
 *				looked at
 * @KEVENT_WINDOW_HAND_ON:	a watch was modified, and has not handed on what it
 *				took
 * @KEVENT_WINDOW_REARMED:	a source has armed a watch anew, which is busy
 * @KEVENT_WINDOW_ROOM:		READY has found no room, and will allocate some
 * @KEVENT_WINDOW_KILLED:	a watch is dead, and attached to its source
 * @KEVENT_WINDOW_DETACHED:	a dead watch is detached, and not handed over
 * @KEVENT_WINDOW_FIRE:		a wake-up has read what a watch wants, and has not
 *				reported
 * @KEVENT_WINDOW_LEAVE:	a dead watch has found its wait queue, and not
 *				locked it
 * @KEVENT_WINDOW_POLL:		a caller of poll() has joined, and has not looked
 * @KEVENT_WINDOW_RELEASED:	the file of a queue is gone, its watches are not
 * @KEVENT_WINDOW_SLICE:	a slice of the timers that are due has expired
 * @KEVENT_WINDOW_CLOCK_SET:	the clock was set, and the timers of a queue are not
 *				told
 * @KEVENT_WINDOW_IDLE:		a serving thread is among the idle ones, and runs
 *				yet
 * @KEVENT_WINDOW_RAN:		a chain was run, and is not done yet
 * @KEVENT_WINDOW_CANCEL:	a chain that is to be cancelled was found under RCU
 * @KEVENT_WINDOW_DROPPED:	the chains of a process are cancelled, its crew is
 *				not given up
 * @KEVENT_NR_WINDOWS:		how many there are
 */
enum kevent_window {
	KEVENT_WINDOW_NONE,
	KEVENT_WINDOW_HIT_STORED,
	KEVENT_WINDOW_SETTLE,
	KEVENT_WINDOW_TURN,
	KEVENT_WINDOW_VERIFIED,
	KEVENT_WINDOW_SERVE,
	KEVENT_WINDOW_TAKEN,
	KEVENT_WINDOW_AGAIN,
	KEVENT_WINDOW_COMMITTED,
	KEVENT_WINDOW_STORED,
	KEVENT_WINDOW_SLEEP,
	KEVENT_WINDOW_ASLEEP,
	KEVENT_WINDOW_AWOKE,
	KEVENT_WINDOW_PARKED,
	KEVENT_WINDOW_UNPARKED,
	KEVENT_WINDOW_GO_ON,
	KEVENT_WINDOW_MORE_WORK,
	KEVENT_WINDOW_MORE_FAULT,
	KEVENT_WINDOW_MORE_DONE,
	KEVENT_WINDOW_FAULT,
	KEVENT_WINDOW_FAULTED,
	KEVENT_WINDOW_ATTACH,
	KEVENT_WINDOW_ATTACHED,
	KEVENT_WINDOW_HANDED,
	KEVENT_WINDOW_FOUND,
	KEVENT_WINDOW_MODIFIED,
	KEVENT_WINDOW_HAND_ON,
	KEVENT_WINDOW_REARMED,
	KEVENT_WINDOW_ROOM,
	KEVENT_WINDOW_KILLED,
	KEVENT_WINDOW_DETACHED,
	KEVENT_WINDOW_FIRE,
	KEVENT_WINDOW_LEAVE,
	KEVENT_WINDOW_POLL,
	KEVENT_WINDOW_RELEASED,
	KEVENT_WINDOW_SLICE,
	KEVENT_WINDOW_CLOCK_SET,
	KEVENT_WINDOW_IDLE,
	KEVENT_WINDOW_RAN,
	KEVENT_WINDOW_CANCEL,
	KEVENT_WINDOW_DROPPED,
	KEVENT_NR_WINDOWS,
};

#ifdef CONFIG_KEVENT_WINDOWS

extern u8 kevent_windows_used;
void kevent_window_enter(const struct kevent_queue *q, enum kevent_window w);

/**
 * kevent_window - a window
 * @q: the queue the caller works on
 * @w: which window
 *
 * Any context; the caller may hold any spinlock. In a window that testpoint.c lists as one
 * where a task may sleep, it can sleep.
 */
static inline void kevent_window(const struct kevent_queue *q,
				 enum kevent_window w)
{
	if (unlikely(READ_ONCE(kevent_windows_used)))
		kevent_window_enter(q, w);
}

#else

static inline void kevent_window(const struct kevent_queue *q,
				 enum kevent_window w)
{
}

#endif /* CONFIG_KEVENT_WINDOWS */

#endif /* _KEVENT_TESTPOINT_H */
