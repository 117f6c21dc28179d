/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * kevent: unified event notification with a ring in user memory
 */
#ifndef _UAPI_LINUX_UKEVENT_H
#define _UAPI_LINUX_UKEVENT_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: ring ordering
 *
 * A ring is a &struct kevent_ring in ordinary memory of the process that
 * called kevent_init(). Positions are free-running 64-bit counts; the entry
 * at position p is ``event[p & (ring_size - 1)]``. Entries from
 * @ring_uidx up to but excluding @ring_kidx are unread.
 *
 * Filling. The kernel writes an entry, then @ring_kidx with release
 * ordering. A consumer loads @ring_kidx with acquire ordering before it reads
 * an entry. The kernel reuses a slot only after it has seen @ring_uidx pass
 * it; a consumer copies the entry before it advances @ring_uidx with release
 * ordering.
 *
 * Consuming. Several consumers may share a ring: copy the entry at @ring_uidx,
 * then advance @ring_uidx by compare-and-swap. The consumer that succeeds owns
 * the event; a copy whose compare-and-swap failed must be thrown away.
 *
 * Commit before process. A consumer advances @ring_uidx past an entry, executes a full barrier, and
 * only then reads the state the entry is about (the file, say). The kernel stores no
 * second entry for a watch of a file while an unread one already says as much. It pairs this
 * barrier with the one it executes between observing the event and reading @ring_uidx. A consumer
 * that reads the file first can miss an event.
 *
 * A program may advance @ring_uidx itself, or call kevent_commit(), which
 * also refills the freed slots.
 */

/**
 * struct kevent_id - what a watch is about
 * @raw:	two words. SOCKET, PIPE, POLL, INODE, BOUND: a file descriptor and 0.
 *		POSIX_TIMER: the timer and 0. PROC: a process id, or a pidfd,
 *		and 0
 * @raw_u64:	the same as one word. USER: any value. TIMER: nanoseconds.
 *		FUTEX: the address of the futex word. SIGNAL: the signal, with
 *		%KEVENT_SIGNAL_NOMASK to consume it; in events the sender's
 *		process id is in bits 32 to 62. AIO: the address of a chain; in
 *		events what kevent_call() would have returned for it
 */
struct kevent_id {
	union {
		__u32		raw[2];
		__aligned_u64	raw_u64;
	};
};

/**
 * struct ukevent - a request to kevent_ctl(), and an event
 * @id:		what is watched, see &struct kevent_id
 * @type:	%KEVENT_SOCKET and its like
 * @event:	mask of the conditions of interest, per type. BOUND: the slot
 * @req_flags:	%KEVENT_REQ_ONESHOT and its like
 * @ret_flags:	%KEVENT_RET_BROKEN and its like; ignored in requests
 * @ret_data:	what happened. SOCKET, PIPE, POLL, INODE: a mask of conditions,
 *		and an amount. TIMER: expirations, as one 64-bit number, low
 *		word first. POSIX_TIMER: overrun, likewise. SIGNAL: si_code and
 *		si_int. PROC: wait status, and %KEVENT_PROC_STATUS if it is
 *		known. FUTEX: the event. USER: the bits marked and the number of
 *		marks, or data. AIO: the result of the step that ended
 *		the chain, as one 64-bit number, low word first. With
 *		%KEVENT_RET_BROKEN @ret_data[1] is a negative errno. In requests
 *		it is read by TIMER with %KEVENT_TIMER_INTERVAL, FUTEX, marks of
 *		USER with %KEVENT_REQ_KEEP_EACH, and AIO: the length of the
 *		chain, and the step to begin with; others ignore it
 * @user:	opaque value of the caller, returned with each event. BOUND: read by
 *		ADD, the address of the &struct kevent_call that is bound
 * @ptr:	the same 64 bits as one word
 */
struct ukevent {
	struct kevent_id	id;
	__u32			type;
	__u32			event;
	__u32			req_flags;
	__u32			ret_flags;
	__u32			ret_data[2];
	union {
		__u32		user[2];
		__aligned_u64	ptr;
	};
};

/**
 * struct kevent_ring - a ring of events in user memory
 * @ring_kidx:	position after the newest entry: events ever stored. Written by
 *		the kernel only
 * @ring_flags:	%KEVENT_RING_MORE and its like. Written by the kernel only
 * @__pad0:	zero
 * @ring_uidx:	position of the oldest unread entry: events ever consumed.
 *		Written by consumers, and by the kernel in kevent_commit()
 * @__pad1:	zero
 * @event:	the slots, as many as the ring_size given to kevent_init()
 *
 * Words of the kernel and of consumers live on different cache lines when the
 * ring is aligned to 64 bytes; 8 bytes are required.
 */
struct kevent_ring {
	__aligned_u64	ring_kidx;
	__u32		ring_flags;
	__u32		__pad0[13];

	__aligned_u64	ring_uidx;
	__u32		__pad1[14];

	/* C++ has no such arrays: g++ warns of the bounds of one, clang++ of [] */
#if defined(__cplusplus) && defined(__clang__)
	__extension__ struct ukevent	event[0];
#elif defined(__cplusplus)
	__extension__ struct ukevent	event[];
#else
	struct ukevent	event[];
#endif
};

/**
 * struct kevent_change - a change that kevent_wait() makes before it waits
 * @uk:		the entry, as for kevent_ctl(); its results are in place
 * @cmd:	%KEVENT_CTL_ADD, %KEVENT_CTL_REMOVE, %KEVENT_CTL_MODIFY or
 *		%KEVENT_CTL_READY
 * @result:	0, 1 when ADD hands the entry back because it is ready at once,
 *		or a negative errno. Read before READY with %KEVENT_REQ_HANDOFF:
 *		the descriptor of another queue, which has the watch, or of an
 *		eventfd, to which 1 is added whatever else is in @uk
 */
struct kevent_change {
	struct ukevent	uk;
	__u32		cmd;
	__s32		result;
};

/**
 * struct kevent_wait_arg - more arguments of kevent_wait()
 * @size:	sizeof(struct kevent_wait_arg); sizes of later versions are
 *		accepted if what is unknown is zero
 * @clockid:	clock of the timeout: CLOCK_REALTIME, CLOCK_MONOTONIC,
 *		CLOCK_BOOTTIME or CLOCK_TAI
 * @min_nr:	wait for so many entries; 0 is 1, more than the ring has slots
 *		is that many
 * @sigsetsize:	bytes at @sigmask, 8
 * @sigmask:	address of the signal mask during the call, or 0
 * @min_wait_ns: once so many nanoseconds have passed, one entry is enough;
 *		0: never
 * @changes:	address of an array of &struct kevent_change
 * @nr_changes:	its length, up to %KEVENT_CTL_MAX
 * @max_running: how many threads that wait so shall run at once; 0: no limit
 *
 * Changes are made in order, each on its own. If one fails or hands its entry
 * back, the call returns without sleeping.
 *
 * A thread that gives a limit runs from the end of the call to its next one, but not while
 * it blocks, in any system call. While @max_running others run it takes no events and
 * sleeps. The newest limit holds for all threads that give one for the queue.
 */
struct kevent_wait_arg {
	__u32		size;
	__s32		clockid;
	__u32		min_nr;
	__u32		sigsetsize;
	__aligned_u64	sigmask;
	__aligned_u64	min_wait_ns;
	__aligned_u64	changes;
	__u32		nr_changes;
	__u32		max_running;
};

/**
 * struct kevent_call - a step of kevent_call()
 * @nr:		system call number of this architecture, or %KEVENT_CALL_BOUND
 * @on_error:	how many steps forward for a result < 0; 0 ends the chain,
 *		and so does a number that leads past its last step
 * @on_zero:	the same for 0
 * @on_value:	the same for a result > 0
 * @flags:	%KEVENT_CALL_BACK() of arguments that are results; of BOUND 0
 * @result:	written by the kernel: what the call returned; the same error as that
 *		of a step whose result is an argument; -ECANCELED if a jump to a
 *		step behind leaves this one out
 * @args:	of the call; of BOUND: the slot. The library finds the address of the
 *		call that is bound behind it, and the kernel does not look at that
 */
struct kevent_call {
	__u32		nr;
	__u8		on_error;
	__u8		on_zero;
	__u8		on_value;
	__u8		flags;
	__s64		result;
	__aligned_u64	args[6];
};

#define KEVENT_CALL_BOUND	0x80000000U

/*
 * Flag of a step: @args[arg] says how many steps back the one is whose result is the
 * argument. With 1 it is the step in front.
 */
#define KEVENT_CALL_BACK(arg)	(1U << (arg))

/*
 * In what kevent_call() returns: the call of the step that ended the chain was
 * not made, and its result says why.
 */
#define KEVENT_CALL_REFUSED	0x10000U

/* Flag of kevent_call(): what would block is left to serving threads */
#define KEVENT_CALL_ASYNC	0x1U

/*
 * The result of kevent_call() with KEVENT_CALL_ASYNC when it has left the rest of the chain to a
 * serving thread: an event of KEVENT_AIO will say how it ended.
 */
#define KEVENT_CALL_SUBMITTED	0x20000U

/* Most steps of a chain */
#define KEVENT_CALL_MAX		1024U

#define KEVENT_RING_MIN		2U
#define KEVENT_RING_MAX		(1U << 20)

/* Flags of kevent_ring.ring_flags */
#define KEVENT_RING_MORE	0x1U	/* events without an entry: call */
#define KEVENT_RING_BROKEN	0x2U	/* a store faulted for good */

/* Flags of kevent_init() */
#define KEVENT_INIT_NOCLOEXEC	0x1U
#define KEVENT_INIT_FAIR	0x2U	/* wake the thread that sleeps longest */

/**
 * DOC: refusals
 *
 * The upper half of kevent_init()'s flags says what the queue refuses with
 * EPERM, for every caller, until it is closed. A type has the bit 16 + its number:
 * no watch of it is added, and no request is made of one. Bits 28 to 31:
 *
 * %KEVENT_INIT_REFUSE_LATER: all types that have no bit of their own, so also
 * those of later kernels.
 * %KEVENT_INIT_REFUSE_CHANGE: MODIFY and REMOVE; a watch stays as it was added.
 * %KEVENT_INIT_REFUSE_READY: READY and WAKE_ALL; each event comes from its source.
 * %KEVENT_INIT_REFUSE_ATTACH: ATTACH; the ring stays where it was created.
 *
 * The answer is in the entry; without entries, and of timer_create() and %KEVENT_CALL_ASYNC, in
 * the call. A seccomp filter sees the flags as the third argument of kevent_init().
 */
#define KEVENT_INIT_REFUSE(type)	(0x10000U << (type))
#define KEVENT_INIT_REFUSE_LATER	0x10000000U
#define KEVENT_INIT_REFUSE_CHANGE	0x20000000U
#define KEVENT_INIT_REFUSE_READY	0x40000000U
#define KEVENT_INIT_REFUSE_ATTACH	0x80000000U
#define KEVENT_INIT_REFUSE_ALL		0xffff0000U

/* Commands of kevent_ctl() */
#define KEVENT_CTL_ADD		0U
#define KEVENT_CTL_REMOVE	1U
#define KEVENT_CTL_MODIFY	2U
#define KEVENT_CTL_READY	3U
#define KEVENT_CTL_ATTACH	4U	/* arg: this process's mapping of the ring */
#define KEVENT_CTL_WAKE_ALL	5U	/* from now on no wait for events sleeps */

/* Most entries in one kevent_ctl() call */
#define KEVENT_CTL_MAX		4096U

/* Flags of kevent_wait() and kevent_get_events() */
#define KEVENT_FLAGS_ABSTIME	0x1U	/* the timeout is a point of time */
#define KEVENT_FLAGS_ARG	0x2U	/* kevent_wait(): arg is given */
#define KEVENT_FLAGS_SERVE	0x4U	/* kevent_wait(): run chains */

/* Types */
#define KEVENT_SOCKET		0U
#define KEVENT_INODE		1U
#define KEVENT_TIMER		2U
#define KEVENT_POLL		3U
#define KEVENT_NAIO		4U	/* reserved */
#define KEVENT_AIO		5U
#define KEVENT_PIPE		6U
#define KEVENT_SIGNAL		7U
#define KEVENT_POSIX_TIMER	8U
#define KEVENT_USER		9U
#define KEVENT_PROC		10U
#define KEVENT_FUTEX		11U
#define KEVENT_BOUND		12U	/* no events: for KEVENT_CALL_BOUND */

/* Slots for bound calls that a queue has; the event of KEVENT_BOUND is less */
#define KEVENT_BOUND_MAX	0x4000U

/*
 * Events of KEVENT_SOCKET; KEVENT_PIPE has RECV and SEND. ret_data[0] may also hold
 * KEVENT_POLL_POLLERR, KEVENT_POLL_POLLHUP and KEVENT_POLL_POLLRDHUP.
 */
#define KEVENT_SOCKET_RECV	0x1U
#define KEVENT_SOCKET_ACCEPT	0x2U
#define KEVENT_SOCKET_SEND	0x4U
#define KEVENT_SOCKET_EMPTY	0x20U	/* TCP, AF_UNIX: all written has arrived */

/* Events of KEVENT_POLL; the values are those of poll(2) on most machines */
#define KEVENT_POLL_POLLIN	0x0001U
#define KEVENT_POLL_POLLPRI	0x0002U
#define KEVENT_POLL_POLLOUT	0x0004U
#define KEVENT_POLL_POLLERR	0x0008U	/* always reported */
#define KEVENT_POLL_POLLHUP	0x0010U	/* always reported */
#define KEVENT_POLL_POLLRDNORM	0x0040U
#define KEVENT_POLL_POLLRDBAND	0x0080U
#define KEVENT_POLL_POLLWRNORM	0x0100U
#define KEVENT_POLL_POLLWRBAND	0x0200U
#define KEVENT_POLL_POLLMSG	0x0400U
#define KEVENT_POLL_POLLRDHUP	0x2000U

/*
 * Events of KEVENT_INODE. In a directory the first two, and RENAME, are about
 * its entries; of the inode itself REMOVE says that its last name is gone.
 */
#define KEVENT_INODE_CREATE	0x1U
#define KEVENT_INODE_REMOVE	0x2U
#define KEVENT_INODE_MODIFY	0x4U
#define KEVENT_INODE_ATTRIB	0x8U
#define KEVENT_INODE_RENAME	0x10U

/*
 * Events of KEVENT_TIMER. The key of the watch is its user value. Without
 * INTERVAL a relative timer is periodic unless ONESHOT, and an absolute one
 * expires once.
 */
#define KEVENT_TIMER_FIRED	0x1U
#define KEVENT_TIMER_ABSTIME	0x2U	/* id is a point of time */
#define KEVENT_TIMER_INTERVAL	0x4U	/* ret_data: nanoseconds, low word first */
#define KEVENT_TIMER_CANCEL_ON_SET 0x8U	/* BROKEN when the clock is set */
/* Its clock; none of them: CLOCK_MONOTONIC */
#define KEVENT_TIMER_REALTIME	0x10U
#define KEVENT_TIMER_BOOTTIME	0x20U
#define KEVENT_TIMER_TAI	0x40U

/* Event of KEVENT_AIO. The key of the watch is its user value */
#define KEVENT_AIO_DONE		0x1U

/* Event of KEVENT_POSIX_TIMER */
#define KEVENT_POSIX_TIMER_FIRED 0x1U

/* Event of KEVENT_SIGNAL, and bit of its id: no normal delivery */
#define KEVENT_SIGNAL_DELIVERY	0x1U
#define KEVENT_SIGNAL_NOMASK	0x8000000000000000ULL
/* Of requests to the module, which need it with NOMASK: a handler uses KEVENT_IOC_POST */
#define KEVENT_SIGNAL_POSTED	0x4000000000000000ULL

/* Events of KEVENT_PROC */
#define KEVENT_PROC_EXIT	0x1U
#define KEVENT_PROC_PIDFD	0x2U	/* id is a pidfd; events have the pid */
/* In ret_data[1]: ret_data[0] is the wait status */
#define KEVENT_PROC_STATUS	0x1U

/* Events of KEVENT_FUTEX. The expected value is in ret_data[0] */
#define KEVENT_FUTEX_WAKE	0x1U
#define KEVENT_FUTEX_PRIVATE	0x2U	/* as FUTEX_PRIVATE_FLAG */

/* sigevent.sigev_notify: the queue's descriptor is sigev_notify_thread_id */
#define SIGEV_KEVENT		8

/* Request flags */
#define KEVENT_REQ_ONESHOT	0x01U	/* remove at delivery */
#define KEVENT_REQ_WAKEUP_ALL	0x02U	/* wake every waiter, not one */
#define KEVENT_REQ_ET		0x04U	/* one report per activity */
#define KEVENT_REQ_LAST_CHECK	0x08U	/* always verify before delivery */
#define KEVENT_REQ_HAND_BACK	0x10U	/* ADD returns what is ready at once */
#define KEVENT_REQ_READY	0x20U	/* ADD, MODIFY: mark the watch ready */
#define KEVENT_REQ_DISPATCH	0x40U	/* disarm at delivery, MODIFY re-arms */
#define KEVENT_REQ_DISABLED	0x80U	/* report nothing until MODIFY */
#define KEVENT_REQ_KEEP_EACH	0x100U	/* USER: an event for each mark */
#define KEVENT_REQ_STAY_AWAKE	0x200U	/* no suspend until it is processed */
#define KEVENT_REQ_HANDOFF	0x400U	/* READY: who is woken runs on this CPU */
#define KEVENT_REQ_DRIVEN	0x800U	/* module: the process posts the events */

/* Return flags */
#define KEVENT_RET_BROKEN	0x1U	/* ret_data[1] holds -errno */
#define KEVENT_RET_DONE		0x2U	/* the entry was processed */
#define KEVENT_RET_COPY_FAILED	0x4U	/* reserved */
#define KEVENT_RET_DRIVE	0x8U	/* module: only with KEVENT_REQ_DRIVEN */

/*
 * ioctl() of a queue: how long an event of a file may wait for others, in nanoseconds,
 * before a consumer that sleeps is woken; 0: not at all
 */
#define KEVENT_IOC_SET_DELAY	_IOW(0x8A, 0x10, __u32)
#define KEVENT_IOC_GET_DELAY	_IOR(0x8A, 0x11, __u32)
#define KEVENT_DELAY_MAX	1000000000U

/*
 * The device: where the engine is a module, an ioctl of /dev/kevent makes a queue, and the
 * calls of a queue are ioctls of its descriptor. Each does, and returns, what the system call
 * of its name does. Pointers are in __u64.
 */
#define KEVENT_DEVICE	"/dev/kevent"

struct kevent_dev_init {		/* kevent_init() */
	__u64	ring;
	__u32	ring_size, flags;
};

struct kevent_dev_ctl {			/* kevent_ctl() */
	__u32	cmd, num;
	__u64	arg;
};

struct kevent_dev_get {			/* kevent_get_events() */
	__u32	min_nr, max_nr;
	__u64	timeout;
	__u64	buf;
	__u32	flags;
	__u32	reserved;		/* must be 0: EINVAL */
};

struct kevent_dev_wait {		/* kevent_wait() */
	__u32	num, old_kidx;
	__u64	timeout;
	__u32	flags, reserved;
	__u64	arg;
};

struct kevent_dev_commit {		/* kevent_commit() */
	__u64	uidx;			/* whole position */
};

/* of /dev/kevent: bit 1 << type for each source; a new queue, whose descriptor is returned */
#define KEVENT_IOC_TYPES	_IOR(0xBE, 0x00, __u64)
#define KEVENT_IOC_INIT		_IOW(0xBE, 0x01, struct kevent_dev_init)
/* of both, by a handler: has a watch of the process this event? ENOENT: none wants it */
#define KEVENT_IOC_POST		_IOW(0xBE, 0x02, struct ukevent)
/* of the queue; DRIVE: an event of a driven watch; without event bits: take it back */
#define KEVENT_IOC_CTL		_IOW(0xBE, 0x10, struct kevent_dev_ctl)
#define KEVENT_IOC_GET_EVENTS	_IOW(0xBE, 0x11, struct kevent_dev_get)
#define KEVENT_IOC_WAIT		_IOW(0xBE, 0x12, struct kevent_dev_wait)
#define KEVENT_IOC_COMMIT	_IOW(0xBE, 0x13, struct kevent_dev_commit)
#define KEVENT_IOC_DRIVE	_IOW(0xBE, 0x14, struct ukevent)

/*
 * lseek(queue, KEVENT_SEEK(num, old_kidx), whence) is kevent_wait() without flags, and cheaper than
 * an ioctl. SEEK_CUR waits without a limit of time, SEEK_SET does not wait. @num is below 2^31. The
 * position is negative, so another file, which has got the number of the queue, stays where it is.
 * Some of these return 0; a queue fails with EAGAIN where kevent_wait() returns 0.
 */
#define KEVENT_SEEK(num, old_kidx)					\
	((__s64)(1ULL << 63 | (__u64)(num) << 32 | (__u32)(old_kidx)))

#endif /* _UAPI_LINUX_UKEVENT_H */
