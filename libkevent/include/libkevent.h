/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: the kevent system calls and the user half of the ring
 *
 * Every function returns a negative errno on failure and leaves errno alone.
 * For queues of the kernel the library starts no thread and allocates nothing
 * but one page, by which it recognises a child of fork(). Unless noted, a
 * function may run in any number of threads at once, and none is a cancellation
 * point.
 */
#ifndef LIBKEVENT_H
#define LIBKEVENT_H

#include <assert.h>
#include <errno.h>
#include <time.h>
#include <linux/ukevent.h>
#include "libkevent_inline.h"
#include "libkevent_call.h"
#include "libkevent_get.h"
#include "libkevent_handles.h"
#include "libkevent_lane.h"
#include "libkevent_stream.h"
#include "libkevent_ring.h"
#include "libkevent_set.h"
#include "libkevent_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with a 64-bit time_t; the program has to agree. */
KEVENT_STATIC_ASSERT(sizeof(((struct timespec *)0)->tv_sec) == 8,
		     "build with -D_TIME_BITS=64 -D_FILE_OFFSET_BITS=64");

/**
 * KEVENT_INIT_NO_FALLBACK - a flag of kevent_init(): the kernel, or nothing
 *
 * The kernel has kevent by itself, or a module has it, which is as good. Without the flag,
 * kevent_init() makes a queue of epoll and its like where there is neither, or it is
 * forbidden, or a filter forbids it: see kevent_fallback(7). In the environment,
 * KEVENT_BACKEND=kernel asks for the same in all programs, KEVENT_BACKEND=module for a queue
 * of the module, and KEVENT_BACKEND=epoll for the opposite, except in those that use this
 * flag. The library takes the flag; the kernel does not know it.
 */
#define KEVENT_INIT_NO_FALLBACK	0x8000U

/**
 * KEVENT_INIT_FALLBACK_ONLY - a flag of kevent_init(): no queue of the kernel
 *
 * The kernel is not asked whether it has kevent. The library takes the flag, too, and
 * KEVENT_BACKEND=kernel does not change it.
 */
#define KEVENT_INIT_FALLBACK_ONLY	0x4000U

/**
 * KEVENT_INIT_ALL_TYPES - a flag of kevent_init(): all that is not refused
 *
 * A queue has each type which the flags do not refuse: where one of the kernel, or of its
 * module, would lack one, it is one of epoll. The library takes the flag, too. See
 * KEVENT_INIT_ONLY().
 */
#define KEVENT_INIT_ALL_TYPES		0x2000U

/**
 * KEVENT_TYPE() - the bit of a type, as of kevent_types()
 * @type: %KEVENT_SOCKET or its like
 */
#define KEVENT_TYPE(type)		(1U << (type))

/**
 * KEVENT_INIT_ONLY() - flags of kevent_init(): types that the program needs
 * @types: bits of KEVENT_TYPE()
 *
 * The queue has these types, and refuses others.
 */
#define KEVENT_INIT_ONLY(types)						\
	(KEVENT_INIT_ALL_TYPES |					\
	 ((types) >> KEVENT_BOUND ? 0U : KEVENT_INIT_REFUSE_LATER) |	\
	 (KEVENT_INIT_REFUSE(0) *					\
	  (~(types) & (KEVENT_TYPE(KEVENT_BOUND) - 1U))))

/**
 * kevent_init() - create a queue
 * @ring: memory for the ring, aligned to 8 bytes (64 avoids false sharing),
 *	KEVENT_RING_BYTES(@ring_size) bytes; NULL for a queue without a ring
 * @ring_size: number of slots, a power of two from %KEVENT_RING_MIN to
 *	%KEVENT_RING_MAX; 0 for a queue without a ring
 * @flags: 0 or %KEVENT_INIT_NOCLOEXEC, %KEVENT_INIT_FAIR, and what the queue refuses:
 *	%KEVENT_INIT_REFUSE() and its like
 *
 * The kernel clears the header of the ring. The memory must stay mapped as
 * long as the queue is used; it belongs to the calling process.
 *
 * Return: a file descriptor, or
 * -EINVAL for an unknown flag, a bad @ring_size, an unaligned @ring, when
 * only one of @ring and @ring_size is zero, or for both of the flags above;
 * -EFAULT when the caller may not write all of @ring;
 * -EINTR when a fatal signal arrived;
 * -EPERM when the sysctl kernel.kevent_disabled forbids it, and -EACCES when the caller may
 * not open the device of the module, and there is to be no fallback;
 * -EOPNOTSUPP when %KEVENT_INIT_ALL_TYPES is set and none has all of them;
 * -EMFILE, -ENFILE, -ENOMEM when out of descriptors, files or memory;
 * -ENOSPC on epoll, when the user has too many watches of epoll;
 * -ENOSYS when the kernel has no kevent, nor a module, and there is to be no fallback.
 */
int kevent_init(struct kevent_ring *ring, __u32 ring_size, __u32 flags);

/**
 * kevent_ctl() - add, remove, change or mark watches
 * @fd: a queue
 * @cmd: %KEVENT_CTL_ADD, %KEVENT_CTL_REMOVE, %KEVENT_CTL_MODIFY or
 *	%KEVENT_CTL_READY; for %KEVENT_CTL_ATTACH see kevent_attach()
 * @num: number of entries, at most %KEVENT_CTL_MAX
 * @arg: the entries; results are written back to them
 *
 * An entry that failed has %KEVENT_RET_BROKEN set, see kevent_error(). ADD
 * moves entries which failed or which are ready at once to the front of @arg.
 * READY with @num 0 wakes one waiter.
 *
 * Return: ADD: entries at the front of @arg; REMOVE and MODIFY: entries that
 * failed; READY: watches marked; or
 * -EBADF when @fd is not open;
 * -EINVAL when @fd is no queue, @cmd is unknown or @num is too large;
 * -EFAULT when @arg can't be accessed and nothing was done;
 * -EINTR when a fatal signal arrived;
 * -EPERM when the queue refuses READY, and @num is 0;
 * -EXDEV in a child of the process that made the queue of epoll.
 */
int kevent_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg);

/**
 * kevent_get_events() - copy events from the kernel, past the ring
 * @fd: a queue, of this or another process
 * @min_nr: wait for that many events; 0 acts as 1
 * @max_nr: room in @buf, at least 1
 * @timeout: how long to wait; NULL: without end, zero: not at all
 * @buf: where the events go
 * @flags: 0, or %KEVENT_FLAGS_ABSTIME when @timeout is a point of
 *	CLOCK_MONOTONIC
 *
 * Events that are in the ring already are not copied.
 *
 * Return: the number of events copied; fewer than @min_nr after a timeout, a
 * wake request, a signal or a fault; or
 * -EBADF when @fd is not open;
 * -EINVAL when @fd is no queue, @max_nr is 0 or @buf would not fit in 2 GiB,
 * @min_nr exceeds @max_nr, a flag is unknown or @timeout is malformed;
 * -EFAULT when @buf can't be written and nothing was copied, or @timeout can't
 * be read;
 * -EINTR when a signal arrived and nothing was copied;
 * -EXDEV in a child of the process that made the queue of epoll.
 */
int kevent_get_events(int fd, __u32 min_nr, __u32 max_nr,
		      const struct timespec *timeout, struct ukevent *buf,
		      __u32 flags);

/**
 * kevent_wait() - move events into the ring and wait for some
 * @fd: a queue with a ring of this process
 * @num: move at most that many events, at least 1
 * @old_kidx: the low half of the ring_kidx up to which the caller has seen
 *	the ring
 * @timeout: how long to wait; NULL: without end, zero: not at all
 * @flags: %KEVENT_FLAGS_ABSTIME when @timeout is a point of time,
 *	%KEVENT_FLAGS_ARG when @arg is given
 * @arg: clock, numbers to wait for, signal mask, changes to make first;
 *	kevent_wait_arg_init() fills in the rest. Without it the clock is
 *	CLOCK_MONOTONIC
 *
 * Returns at once if ring_kidx has moved past @old_kidx, so it does not miss an
 * event stored between the look at the ring and the call.
 *
 * Return: the number of entries stored past @old_kidx; 0 after a timeout or a
 * wake request; or
 * -EBADF when @fd is not open;
 * -EINVAL when @fd is no queue or has no ring, @num is 0, a flag is unknown,
 * @old_kidx is ahead of the ring, @timeout is malformed or @arg has a bad member;
 * -E2BIG when @arg has more than this kernel knows;
 * -EXDEV when the ring belongs to another process and is not attached;
 * -EFAULT when the ring can't be accessed and nothing was stored, or @timeout,
 * @arg or what it points to can't be read;
 * -EINTR when a signal arrived and there is nothing to report;
 * -ENOMEM when out of memory, with a limit in @arg.
 */
int kevent_wait(int fd, __u32 num, __u32 old_kidx,
		const struct timespec *timeout, __u32 flags,
		const struct kevent_wait_arg *arg);

/**
 * kevent_wait_arg_init() - an argument of kevent_wait() that asks for nothing
 * @arg: to be filled in: CLOCK_MONOTONIC, one entry, no mask, no changes, no limit
 */
KEVENT_INLINE void kevent_wait_arg_init(struct kevent_wait_arg *arg)
{
	arg->size = sizeof(*arg);
	arg->clockid = 1;	/* CLOCK_MONOTONIC, which ISO C lacks */
	arg->min_nr = 0;
	arg->sigsetsize = 0;
	arg->sigmask = 0;
	arg->min_wait_ns = 0;
	arg->changes = 0;
	arg->nr_changes = 0;
	arg->max_running = 0;
}

/**
 * kevent_attach() - use the ring of another process's queue
 * @fd: the queue
 * @ring: where this process has mapped the memory of the ring, which is shared
 * @ring_size: number of slots
 *
 * Return: 0, or
 * -EBADF when @fd is not open;
 * -EINVAL when @fd is no queue or has no ring of that size, @ring is not aligned
 * or its header is not that of the ring;
 * -EFAULT when the caller may not write all of @ring;
 * -EPERM when the queue refuses it;
 * -EINTR when a fatal signal arrived;
 * -ENOSPC when too many processes have attached it, or its owner is charged with
 * too much;
 * -ENOMEM when out of memory;
 * -EOPNOTSUPP when this process has made the queue, of epoll; a child of it gets -EXDEV.
 */
KEVENT_INLINE int kevent_attach(int fd, struct kevent_ring *ring,
				__u32 ring_size)
{
	return kevent_ctl(fd, KEVENT_CTL_ATTACH, ring_size,
			  (struct ukevent *)(void *)ring);
}

/**
 * kevent_commit() - hand slots back to the kernel and refill them
 * @fd: a queue with a ring of this process
 * @new_uidx: low half of the position of the oldest entry still needed
 * @over: high half of that position
 *
 * For programs that read the ring in place in one thread. Except on x86 it
 * must not run while another thread pops from the same ring.
 *
 * Return: the number of slots freed; 0 when the position is not ahead of
 * ring_uidx; or
 * -EBADF when @fd is not open;
 * -EINVAL when @fd is no queue or has no ring, or the position is past
 * ring_kidx;
 * -EXDEV when the ring belongs to another process and is not attached;
 * -EFAULT when the ring can't be accessed;
 * -EINTR when a fatal signal arrived.
 */
int kevent_commit(int fd, __u32 new_uidx, __u32 over);

/**
 * kevent_version() - which version of the library runs
 *
 * Return: a number as of KEVENT_VERSION_NUMBER().
 */
unsigned int kevent_version(void);

/**
 * kevent_supported() - find out whether kevent works here
 *
 * Looks for the sysctl kernel.kevent_disabled, and for /dev/kevent, the device of the module.
 * If one is there, opens a queue and closes it again. A program that gives up its view of
 * /proc or /dev, or its right to open the device, calls this before.
 *
 * Return: 0, or
 * -ENOSYS when the kernel has no kevent, or neither /proc nor /dev says that it has;
 * -EPERM when the sysctl kernel.kevent_disabled or a filter forbids it;
 * -EACCES when the caller may not open the device of the module;
 * -EMFILE, -ENFILE, -ENOMEM when it can't find out now.
 */
int kevent_supported(void);

/**
 * kevent_backend() - what a queue is made of
 * @fd: the queue
 *
 * Return: "kevent" for one of the kernel, "module" for one of its module, "epoll" for one of
 * the library, which kevent_fallback(7) describes; NULL when @fd is no queue. In a child of
 * the process that made it, a queue of the library is still "epoll".
 */
const char *kevent_backend(int fd);

/**
 * kevent_types() - which types a queue has
 * @fd: the queue
 *
 * A kernel may have been built without some, and the module lacks some. A type may still
 * lack a condition or a flag.
 *
 * Return: bits of KEVENT_TYPE(), of those types that the queue has and does not refuse;
 * 0 when @fd is no queue.
 */
__u32 kevent_types(int fd);

/**
 * kevent_busy_poll() - look for events for a while before a wait sleeps
 * @fd: the queue
 * @usecs: how long, in microseconds; 0: sleep at once, as a new queue does
 *
 * Avoids sleeps and wake-ups while events arrive within @usecs, at the cost of
 * CPU time. Has no effect with a single CPU. Sets busy_poll_usecs of the ioctl
 * EPIOCSPARAMS, and its other parameters to 0.
 *
 * Return: 0, or
 * -EBADF when @fd is not open;
 * -ENOTTY when @fd is no queue, nor an epoll file, or is one of epoll before Linux 6.9;
 * -EINVAL when @usecs exceeds 2^31 - 1;
 * -EOPNOTSUPP when the kernel is built without NET_RX_BUSY_POLL.
 */
int kevent_busy_poll(int fd, __u32 usecs);

/**
 * kevent_set_delay() - how long an event of a file may wait for others
 * @fd: the queue
 * @ns: at most so many nanoseconds; 0: each event wakes a thread that sleeps
 *
 * Where events come in short succession, the kernel wakes the only thread that waits once
 * for several of them. 1000000 in a new queue, and 0 in one of the module. The kernel also limits
 * the time to a few times that of a wake-up. Nothing waits with a single CPU, nor in a queue of epoll.
 *
 * Return: 0, or
 * -EBADF when @fd is not open;
 * -ENOTTY when @fd is no queue, or the kernel has no such delay;
 * -EINVAL when @ns exceeds KEVENT_DELAY_MAX.
 */
int kevent_set_delay(int fd, __u32 ns);

/**
 * struct kevent_queue - a queue with a ring, owned by the program
 * @fd: the queue, for kevent_ctl()
 * @size: number of slots of @ring
 * @ring: memory given to kevent_queue_init()
 * @process: the process that may use @ring, as a number of the library; 0: any
 * @entered: for the library: how far the ring was read at the last call
 */
struct kevent_queue {
	int			fd;
	__u32			size;
	struct kevent_ring	*ring;
	__u32			process;
	__u32			entered;
};

/* A queue that is not open, which kevent_queue_close() takes: struct kevent_queue q = ... */
#define KEVENT_QUEUE_NONE	{ -1, 0, 0, 0, 0 }

/**
 * kevent_queue_init() - create a queue with a ring
 * @q: to be filled in; its fd is -1 after a failure
 * @ring: memory for the ring, see kevent_init()
 * @size: number of slots, see kevent_init()
 * @flags: see kevent_init()
 *
 * Return: 0, -EINVAL when @ring is NULL, or an errno of kevent_init().
 */
int kevent_queue_init(struct kevent_queue *q, struct kevent_ring *ring,
		      __u32 size, __u32 flags);

/**
 * kevent_queue_attach() - use a queue that was opened in another process
 * @q: as kevent_queue_init() has filled it in, with @ring where this process has
 *	mapped the memory of the ring, which is shared
 *
 * For a child that uses the ring of its parent, in shared memory.
 *
 * Return: 0, or an errno of kevent_attach().
 */
int kevent_queue_attach(struct kevent_queue *q);

/**
 * kevent_close() - close a descriptor that a queue watches
 * @fd: the queue
 * @file: the descriptor; its watches in the queue end: SOCKET, PIPE, POLL, INODE
 *
 * A kernel with kevent, and the module, notice each close(), so this is close() there. A queue
 * of epoll does not, and would have events of a file that others have open. For several queues
 * that watch the descriptor, remove the watch from all but one. Any thread may call it.
 *
 * Return: 0, or an errno of close(2). @fd is not checked: @file is closed in any case.
 */
int kevent_close(int fd, int file);

/**
 * kevent_queue_close() - close a queue
 * @q: a queue no other thread uses any more, except in kevent_chain_serve(), which
 *	returns; may be closed already, and never opened if it is zeros or
 *	%KEVENT_QUEUE_NONE
 *
 * Entries in the ring stay readable; the memory is the caller's again.
 */
void kevent_queue_close(struct kevent_queue *q);

/**
 * kevent_queue_get() - wait for events and take them
 * @q: a queue
 * @ev: where the events go
 * @max: room in @ev, at least 1
 * @timeout: how long to wait; NULL: without end, zero: not at all
 *
 * The call for a program's loop. It takes what the ring holds, without entering the
 * kernel. If the ring is empty, it has the kernel look at level watches and at
 * events that had no room, and waits. It also enters the kernel, without
 * waiting, once for as many events as the ring has slots: a ring that is never
 * empty does not keep the events of level watches out. If other threads take all
 * events, it goes on waiting.
 *
 * Return: the number of events; 0 after @timeout, when kevent_wake() woke the
 * caller, or after kevent_wake_all();
 * -EINVAL for a malformed @timeout or when @max is 0;
 * -EXDEV in a child of the process that opened the queue;
 * -EINTR when a signal handler ran; or an errno of kevent_wait().
 */
int kevent_queue_get(struct kevent_queue *q, struct ukevent *ev, __u32 max,
		     const struct timespec *timeout);

/**
 * kevent_strerror() - what an error of kevent_queue_init() means
 * @error: a negative errno, of kevent_queue_init() or another function
 *
 * Return: text without a newline, that says what to do about it where that is known
 * for kevent, and the text of strerror(3) otherwise. It may be that of another
 * call once strerror(3) is called again.
 */
const char *kevent_strerror(int error);

/**
 * kevent_queue_pop() - take up to @max events
 * @q: a queue
 * @ev: where the events go
 * @max: room in @ev
 *
 * Enters the kernel only if the ring is empty and %KEVENT_RING_MORE says that
 * events wait in the kernel. Never sleeps. A level watch whose condition still
 * holds, and an event that another process or an interrupt has made, may be reported
 * by a call only: most programs want kevent_queue_get().
 *
 * Return: the number of events, 0 when there is none, -EXDEV in a child of the
 * process that opened the queue, or an errno of kevent_wait().
 */
int kevent_queue_pop(struct kevent_queue *q, struct ukevent *ev, __u32 max);

/**
 * kevent_queue_wait() - wait until the ring holds events
 * @q: a queue
 * @timeout: how long to wait; NULL: without end, zero: not at all
 *
 * Does not enter the kernel if the ring holds events, and enters it once if it
 * does not. Another consumer may pop the events before the caller does: then
 * there is nothing to pop, and the caller calls again.
 *
 * Return: the number of unread entries, or of those that came while it waited, if
 * other consumers have taken them; 0 after @timeout, when kevent_wake() woke the
 * caller, or after kevent_wake_all(); -EINVAL for a malformed @timeout; -EXDEV in
 * a child of the process that opened the queue; or an errno of kevent_wait().
 */
int kevent_queue_wait(struct kevent_queue *q, const struct timespec *timeout);

/**
 * kevent_ctl_one() - kevent_ctl() for one entry
 * @fd: a queue
 * @cmd: as for kevent_ctl()
 * @ev: the entry; the result is written back to it
 *
 * Return: an errno of kevent_ctl(), or that of the entry. If there is none, ADD:
 * 1 when @ev is ready at once and was not queued, 0 otherwise; READY: 1; REMOVE
 * and MODIFY: 0.
 */
KEVENT_INLINE int kevent_ctl_one(int fd, __u32 cmd, struct ukevent *ev)
{
	int ret;

	ev->ret_flags = 0;
	ret = kevent_ctl(fd, cmd, 1, ev);
	if (ret < 0)
		return ret;
	return kevent_error(ev) ? kevent_error(ev) : ret;
}

/**
 * kevent_add_or_modify() - add a watch, or change the one that is there
 * @fd: a queue
 * @ev: the entry; the result is written back to it
 *
 * Whether the watch is there need not be known: so a timer that may have expired for the
 * last time is started again. A change is one of %KEVENT_CTL_MODIFY, and else the watch is
 * new. The call goes on while other threads add and remove the watch.
 *
 * Return: as kevent_ctl_one() for %KEVENT_CTL_ADD, but never -EEXIST, or an errno of
 * %KEVENT_CTL_MODIFY.
 */
KEVENT_INLINE int kevent_add_or_modify(int fd, struct ukevent *ev)
{
	const struct ukevent request = *ev;
	int ret;

	do {
		*ev = request;
		ret = kevent_ctl_one(fd, KEVENT_CTL_MODIFY, ev);
		if (ret != -ENOENT)
			return ret;
		*ev = request;
		ret = kevent_ctl_one(fd, KEVENT_CTL_ADD, ev);
	} while (ret == -EEXIST);
	return ret;
}

struct itimerspec;

/**
 * kevent_timer_create() - make a POSIX timer whose expiries are events of a queue
 * @queue: the queue
 * @clock: the clock of timer_create(2), also one of CPU time
 * @user: comes back in the events
 *
 * The watch is one of %KEVENT_POSIX_TIMER, with the number of the timer as its id. Where the
 * kernel has no SIGEV_KEVENT, a thread of the library, which the first call starts and which stays,
 * takes a signal for each expiry, and counts.
 *
 * Return: the number of the timer, which stands still, or
 * -EBADF, -EINVAL when @queue is not open, or no queue; -EINVAL for other clocks, too;
 * -EPERM when the queue refuses the type;
 * -EAGAIN when the user has too many timers or threads;
 * -EOPNOTSUPP when the clock has no timers;
 * -ENOSPC, -ENOMEM as ADD;
 * -EXDEV in a child of the process that made the queue of epoll;
 * -ENOSYS when there is no queue, or a filter refuses the signals.
 */
int kevent_timer_create(int queue, int clock, __u64 user);

/**
 * kevent_timer_settime() - start or stop a timer
 * @timer: of kevent_timer_create()
 * @flags: as for timer_settime(2)
 * @value: first expiry, and interval
 * @old: if not NULL, what was left
 *
 * Expiries from before that are not delivered are dropped.
 *
 * Return: 0, or -EINVAL when there is no such timer, or @value is no time.
 */
int kevent_timer_settime(int timer, int flags, const struct itimerspec *value,
			 struct itimerspec *old);

/**
 * kevent_timer_delete() - delete a timer, and its watch
 * @timer: of kevent_timer_create()
 *
 * Return: 0, or -EINVAL when there is no such timer.
 */
int kevent_timer_delete(int timer);

/**
 * kevent_wake() - have one wait return, though there is no event
 * @fd: a queue
 *
 * The wait that lasts longest returns 0, or the next one, if nobody waits: several requests
 * are one then. To end a pool of threads, use kevent_wake_all(). Not for handlers of signals.
 *
 * Return: 0, or
 * -EBADF when @fd is not open;
 * -EINVAL when @fd is no queue;
 * -EPERM when the queue refuses %KEVENT_CTL_READY;
 * -EXDEV in a child of the process that made the queue of epoll.
 */
KEVENT_INLINE int kevent_wake(int fd)
{
	return kevent_ctl(fd, KEVENT_CTL_READY, 0, 0);
}

/**
 * kevent_wake_all() - have each wait return where it would sleep, from now on
 * @fd: a queue
 *
 * Ends a pool of threads with one call. A wait that sleeps returns 0, and so does each later
 * wait, until the queue is gone: a thread that is about to wait ends as well. It is as if the
 * time of each wait was over. Events that are there come first: a wait reports them, and the
 * next one returns 0. A level watch that stays ready is reported by each wait.
 *
 * It holds for all processes that have the queue. A limit of kevent_wait() holds up nobody any
 * more. poll() of the queue reports events only, and kevent_chain_serve() goes on until the
 * queue is closed. Further calls change nothing. Not for handlers of signals.
 *
 * Return: as kevent_wake(), or -EINVAL also when the kernel has an older kevent.
 */
KEVENT_INLINE int kevent_wake_all(int fd)
{
	return kevent_ctl(fd, KEVENT_CTL_WAKE_ALL, 0, 0);
}

/**
 * kevent_cookie() - make a user value of an index and a generation
 * @index: slot of a table of the program
 * @gen: counts the uses of that slot
 *
 * An entry in the ring outlives its watch. A program that increments the
 * generation of a slot when it removes the watch, and skips events of another
 * generation, never takes such an entry for one of a new watch.
 *
 * Return: the value for the user argument of kevent_set_socket() and others.
 */
KEVENT_INLINE __u64 kevent_cookie(__u32 index, __u32 gen)
{
	return (__u64)gen << 32 | index;
}

/**
 * kevent_cookie_index() - index of the cookie of an event
 * @ev: an event whose user value is of kevent_cookie()
 *
 * Return: the index.
 */
KEVENT_INLINE __u32 kevent_cookie_index(const struct ukevent *ev)
{
	return (__u32)ev->ptr;
}

/**
 * kevent_cookie_gen() - generation of the cookie of an event
 * @ev: an event whose user value is of kevent_cookie()
 *
 * Return: the generation.
 */
KEVENT_INLINE __u32 kevent_cookie_gen(const struct ukevent *ev)
{
	return (__u32)(ev->ptr >> 32);
}

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_H */
