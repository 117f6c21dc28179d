/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: functions that fill in an entry for kevent_ctl(), one per source
 */
#ifndef LIBKEVENT_SET_H
#define LIBKEVENT_SET_H

#include <stdint.h>
#include <time.h>
#include <linux/ukevent.h>
#include "libkevent_inline.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * kevent_ns() - a time as kevent_set_timer() takes it
 * @ts: the time; neither negative nor more than 2^63 - 1 ns
 *
 * Return: its nanoseconds.
 */
KEVENT_INLINE __u64 kevent_ns(const struct timespec *ts)
{
	return (__u64)ts->tv_sec * 1000000000u + (__u64)ts->tv_nsec;
}

/**
 * kevent_from_pointer() - a pointer as the user value of an entry
 * @pointer: any pointer
 *
 * Return: the value; kevent_pointer() makes the pointer of it.
 */
KEVENT_INLINE __u64 kevent_from_pointer(const void *pointer)
{
	return (uintptr_t)pointer;
}

/* The common part of the kevent_set_*() functions. */
static inline void __kevent_set(struct ukevent *ev, __u32 type, __u32 event,
				__u32 req_flags, __u64 user)
{
	ev->type = type;
	ev->event = event;
	ev->req_flags = req_flags;
	ev->ret_flags = 0;
	ev->ret_data[0] = 0;
	ev->ret_data[1] = 0;
	ev->ptr = user;
}

/**
 * kevent_set_socket() - fill in an entry for a socket
 * @ev: to be filled in
 * @fd: a socket
 * @event: %KEVENT_SOCKET_RECV, %KEVENT_SOCKET_ACCEPT, %KEVENT_SOCKET_SEND,
 *	   %KEVENT_SOCKET_EMPTY
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: returned with each event, in ptr; see kevent_from_pointer()
 */
KEVENT_INLINE void kevent_set_socket(struct ukevent *ev, int fd, __u32 event,
				     __u32 req_flags, __u64 user)
{
	ev->id.raw[0] = (__u32)fd;
	ev->id.raw[1] = 0;
	__kevent_set(ev, KEVENT_SOCKET, event, req_flags, user);
}

/**
 * kevent_set_pipe() - fill in an entry for a pipe or FIFO
 * @ev: to be filled in
 * @fd: an end of a pipe
 * @event: %KEVENT_SOCKET_RECV, %KEVENT_SOCKET_SEND
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: returned with each event, in ptr
 */
KEVENT_INLINE void kevent_set_pipe(struct ukevent *ev, int fd, __u32 event,
				   __u32 req_flags, __u64 user)
{
	kevent_set_socket(ev, fd, event, req_flags, user);
	ev->type = KEVENT_PIPE;
}

/**
 * kevent_set_poll() - fill in an entry for any file poll(2) takes
 * @ev: to be filled in
 * @fd: a file
 * @event: %KEVENT_POLL_POLLIN and its like. Bits of %KEVENT_SOCKET mean something else
 *	here: %KEVENT_SOCKET_ACCEPT is %KEVENT_POLL_POLLPRI, which a listener never has
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: returned with each event, in ptr
 */
KEVENT_INLINE void kevent_set_poll(struct ukevent *ev, int fd, __u32 event,
				   __u32 req_flags, __u64 user)
{
	kevent_set_socket(ev, fd, event, req_flags, user);
	ev->type = KEVENT_POLL;
}

/**
 * kevent_set_user() - fill in an entry for marks of the program itself
 * @ev: to be filled in
 * @id: any number, names the watch within the queue
 * @event: bits %KEVENT_CTL_READY may set
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: returned with each event, in ptr
 */
KEVENT_INLINE void kevent_set_user(struct ukevent *ev, __u64 id, __u32 event,
				   __u32 req_flags, __u64 user)
{
	ev->id.raw_u64 = id;
	__kevent_set(ev, KEVENT_USER, event, req_flags, user);
}

/**
 * kevent_set_mark() - fill in an entry for %KEVENT_CTL_READY, with data
 * @ev: to be filled in
 * @id: of a watch of kevent_set_user() with %KEVENT_REQ_KEEP_EACH
 * @event: bits to mark, 0 for all the watch has
 * @data: delivered as it is, see kevent_mark_data()
 */
KEVENT_INLINE void kevent_set_mark(struct ukevent *ev, __u64 id, __u32 event,
				   __u64 data)
{
	kevent_set_user(ev, id, event, 0, 0);
	ev->ret_data[0] = (__u32)data;
	ev->ret_data[1] = (__u32)(data >> 32);
}

/**
 * kevent_set_inode() - fill in an entry for changes of a file or directory
 * @ev: to be filled in
 * @fd: the file or directory, open
 * @event: %KEVENT_INODE_CREATE and its like
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: returned with each event, in ptr
 */
KEVENT_INLINE void kevent_set_inode(struct ukevent *ev, int fd, __u32 event,
				    __u32 req_flags, __u64 user)
{
	kevent_set_socket(ev, fd, event, req_flags, user);
	ev->type = KEVENT_INODE;
}

/**
 * kevent_set_timer() - fill in an entry for a timer
 * @ev: to be filled in
 * @first_ns: nanoseconds until the first expiry; with %KEVENT_TIMER_ABSTIME the
 *	point of time, see kevent_ns(). At most 2^63 - 1
 * @interval_ns: nanoseconds between later expiries; 0: the timer expires once.
 *	At most 2^63 - 1
 * @event: clock and kind, %KEVENT_TIMER_REALTIME and its like; 0 for
 *	CLOCK_MONOTONIC
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: the name of the timer within the queue, by which MODIFY and REMOVE find
 *	it; returned with each event, in ptr
 */
KEVENT_INLINE void kevent_set_timer(struct ukevent *ev, __u64 first_ns,
				    __u64 interval_ns, __u32 event,
				    __u32 req_flags, __u64 user)
{
	ev->id.raw_u64 = first_ns;
	__kevent_set(ev, KEVENT_TIMER,
		     event | KEVENT_TIMER_FIRED | KEVENT_TIMER_INTERVAL,
		     req_flags, user);
	ev->ret_data[0] = (__u32)interval_ns;
	ev->ret_data[1] = (__u32)(interval_ns >> 32);
}

/**
 * kevent_set_posix_timer() - fill in an entry for a timer of timer_create(2)
 * @ev: to be filled in; not for %KEVENT_CTL_ADD, which timer_create() does
 * @timer: the timer, as the system call returned it
 * @req_flags: %KEVENT_REQ_DISPATCH and its like
 * @user: returned with each event, in ptr; sigev_value at first
 */
KEVENT_INLINE void kevent_set_posix_timer(struct ukevent *ev, __u32 timer,
					  __u32 req_flags, __u64 user)
{
	ev->id.raw[0] = timer;
	ev->id.raw[1] = 0;
	__kevent_set(ev, KEVENT_POSIX_TIMER, KEVENT_POSIX_TIMER_FIRED,
		     req_flags, user);
}

/**
 * enum kevent_signal_how - what an event of a signal means for its delivery
 * @KEVENT_SIGNAL_OBSERVE: nothing: the signal is delivered as well
 * @KEVENT_SIGNAL_CONSUME: the event takes the place of the delivery, see
 *	%KEVENT_SIGNAL_NOMASK
 */
enum kevent_signal_how {
	KEVENT_SIGNAL_OBSERVE,
	KEVENT_SIGNAL_CONSUME,
};

/**
 * kevent_set_signal() - fill in an entry for a signal
 * @ev: to be filled in
 * @sig: the signal
 * @how: %KEVENT_SIGNAL_OBSERVE or %KEVENT_SIGNAL_CONSUME
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: returned with each event, in ptr
 */
KEVENT_INLINE void kevent_set_signal(struct ukevent *ev, int sig,
				     enum kevent_signal_how how,
				     __u32 req_flags, __u64 user)
{
	ev->id.raw_u64 = (__u32)sig;
	if (how == KEVENT_SIGNAL_CONSUME)
		ev->id.raw_u64 |= KEVENT_SIGNAL_NOMASK;
	__kevent_set(ev, KEVENT_SIGNAL, KEVENT_SIGNAL_DELIVERY, req_flags,
		     user);
}

/**
 * kevent_set_proc() - fill in an entry for the exit of a process
 * @ev: to be filled in
 * @pid: its process id
 * @req_flags: %KEVENT_REQ_HAND_BACK and its like
 * @user: returned with the event, in ptr
 */
KEVENT_INLINE void kevent_set_proc(struct ukevent *ev, int pid,
				   __u32 req_flags, __u64 user)
{
	ev->id.raw[0] = (__u32)pid;
	ev->id.raw[1] = 0;
	__kevent_set(ev, KEVENT_PROC, KEVENT_PROC_EXIT, req_flags, user);
}

/**
 * kevent_set_pidfd() - fill in an entry for the exit of a process
 * @ev: to be filled in
 * @pidfd: a descriptor of pidfd_open(2) or clone(2)
 * @req_flags: %KEVENT_REQ_HAND_BACK and its like
 * @user: returned with the event, in ptr
 */
KEVENT_INLINE void kevent_set_pidfd(struct ukevent *ev, int pidfd,
				    __u32 req_flags, __u64 user)
{
	kevent_set_proc(ev, pidfd, req_flags, user);
	ev->event |= KEVENT_PROC_PIDFD;
}

/**
 * kevent_set_futex() - fill in an entry for a futex word
 * @ev: to be filled in
 * @word: the word
 * @expected: the value while there is nothing to report
 * @event: 0 or %KEVENT_FUTEX_PRIVATE
 * @req_flags: %KEVENT_REQ_ONESHOT and its like
 * @user: returned with each event, in ptr
 */
KEVENT_INLINE void kevent_set_futex(struct ukevent *ev, const __u32 *word,
				    __u32 expected, __u32 event,
				    __u32 req_flags, __u64 user)
{
	ev->id.raw_u64 = (uintptr_t)word;
	__kevent_set(ev, KEVENT_FUTEX, event | KEVENT_FUTEX_WAKE, req_flags,
		     user);
	ev->ret_data[0] = expected;
}

/**
 * kevent_set_aio() - fill in an entry for a chain that a serving thread is to run
 * @ev: to be filled in
 * @chain: the chain, see kevent_call(); it stays the thread's until the event comes
 * @nr: how many entries it has
 * @from: the entry to begin with
 * @req_flags: %KEVENT_REQ_WAKEUP_ALL and its like
 * @user: the name of the chain within the queue, by which REMOVE finds it; returned
 *	with the event, in ptr
 *
 * ADD of it is kevent_call() with %KEVENT_CALL_ASYNC that makes no call in the caller.
 */
KEVENT_INLINE void kevent_set_aio(struct ukevent *ev,
				  const struct kevent_call *chain, __u32 nr,
				  __u32 from, __u32 req_flags, __u64 user)
{
	ev->id.raw_u64 = (uintptr_t)chain;
	__kevent_set(ev, KEVENT_AIO, KEVENT_AIO_DONE, req_flags, user);
	ev->ret_data[0] = nr;
	ev->ret_data[1] = from;
}

/**
 * kevent_set_bound() - fill in an entry for a bound call
 * @ev: to be filled in
 * @slot: its slot in the queue, less than %KEVENT_BOUND_MAX
 * @call: the call, with its descriptor as the first argument; ADD reads it
 *
 * See kevent_bind(), which is ADD of it. REMOVE goes by slot and descriptor.
 */
KEVENT_INLINE void kevent_set_bound(struct ukevent *ev, __u32 slot,
				    const struct kevent_call *call)
{
	ev->id.raw[0] = (__u32)call->args[0];
	ev->id.raw[1] = 0;
	__kevent_set(ev, KEVENT_BOUND, slot, 0, kevent_from_pointer(call));
}

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_SET_H */
