/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Windows: places between two steps where a test can hold a task up
 *
 * A race has a window in which the other side must act. A test arms a window,
 * the next task that comes to it with a queue of the test's address space waits
 * there, and the test acts and lets it go. Only test kernels have windows.
 */
#ifndef _KEVENT_WINDOW_H
#define _KEVENT_WINDOW_H

#include <linux/compiler.h>

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
 * @KEVENT_WINDOW_MORE_FAULT:	the ring was faulted in on the way to user mode, and
 *				its flag is not stored yet
 * @KEVENT_WINDOW_SERVE:	a thread is to serve, and has not looked at its descriptor
 * @KEVENT_NR_WINDOWS:		how many there are
 */
enum kevent_window {
	KEVENT_WINDOW_NONE,
	KEVENT_WINDOW_HIT_STORED,
	KEVENT_WINDOW_SETTLE,
	KEVENT_WINDOW_TURN,
	KEVENT_WINDOW_VERIFIED,
	KEVENT_WINDOW_MORE_FAULT,
	KEVENT_WINDOW_SERVE,
	KEVENT_NR_WINDOWS,
};

#ifdef CONFIG_KEVENT_WINDOWS

extern enum kevent_window kevent_window_armed;
void kevent_window_enter(const struct kevent_queue *q, enum kevent_window w);

/**
 * kevent_window - a window
 * @q: the queue the caller works on
 * @w: which window
 *
 * Any context; the caller may hold any spinlock.
 */
static inline void kevent_window(const struct kevent_queue *q,
				 enum kevent_window w)
{
	if (unlikely(READ_ONCE(kevent_window_armed) == w))
		kevent_window_enter(q, w);
}

#else

static inline void kevent_window(const struct kevent_queue *q,
				 enum kevent_window w)
{
}

#endif /* CONFIG_KEVENT_WINDOWS */

#endif /* _KEVENT_WINDOW_H */
