/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: functions that read an event, by what its source puts there
 */
#ifndef LIBKEVENT_GET_H
#define LIBKEVENT_GET_H

#include <stddef.h>
#include <stdint.h>
#include <linux/ukevent.h>
#include "libkevent_inline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two words of an entry as one number */
static inline __u64 __kevent_data(const struct ukevent *ev)
{
	return (__u64)ev->ret_data[1] << 32 | ev->ret_data[0];
}

/**
 * kevent_error() - why an entry failed
 * @ev: an entry after kevent_ctl(), or an event
 *
 * Return: a negative errno if %KEVENT_RET_BROKEN is set, 0 otherwise.
 */
KEVENT_INLINE int kevent_error(const struct ukevent *ev)
{
	return ev->ret_flags & KEVENT_RET_BROKEN ? (int)ev->ret_data[1] : 0;
}

/**
 * kevent_pointer() - the user value of an event as a pointer
 * @ev: an event whose user value is of kevent_from_pointer()
 *
 * Return: the pointer.
 */
KEVENT_INLINE void *kevent_pointer(const struct ukevent *ev)
{
	return (void *)(uintptr_t)ev->ptr;
}

/**
 * kevent_fd() - the descriptor of an event
 * @ev: an event of %KEVENT_SOCKET, %KEVENT_PIPE, %KEVENT_POLL or %KEVENT_INODE
 *
 * The number that was given when the watch was added. The program may have closed
 * it since, and opened another file under the same number: see
 * struct kevent_handles.
 *
 * Return: the descriptor.
 */
KEVENT_INLINE int kevent_fd(const struct ukevent *ev)
{
	return (int)ev->id.raw[0];
}

/**
 * kevent_conditions() - what holds or has happened
 * @ev: an event of %KEVENT_SOCKET, %KEVENT_PIPE, %KEVENT_POLL, %KEVENT_INODE or
 *	%KEVENT_USER
 *
 * Return: a mask of the bits of the type, %KEVENT_SOCKET_RECV and its like.
 */
KEVENT_INLINE __u32 kevent_conditions(const struct ukevent *ev)
{
	return ev->ret_data[0];
}

/**
 * kevent_amount() - how much there is to read or accept
 * @ev: an event of %KEVENT_SOCKET or %KEVENT_PIPE
 *
 * Return: bytes, or connections; 0 if the kernel does not say.
 */
KEVENT_INLINE __u32 kevent_amount(const struct ukevent *ev)
{
	return ev->ret_data[1];
}

/**
 * kevent_marks() - how many marks an event stands for
 * @ev: an event of %KEVENT_USER without %KEVENT_REQ_KEEP_EACH
 *
 * Return: the number of marks since the last event.
 */
KEVENT_INLINE __u32 kevent_marks(const struct ukevent *ev)
{
	return ev->ret_data[1];
}

/**
 * kevent_mark_data() - data of a mark
 * @ev: an event of %KEVENT_USER with %KEVENT_REQ_KEEP_EACH
 *
 * Return: what kevent_set_mark() was given.
 */
KEVENT_INLINE __u64 kevent_mark_data(const struct ukevent *ev)
{
	return __kevent_data(ev);
}

/**
 * kevent_expirations() - how often a timer has expired
 * @ev: an event of %KEVENT_TIMER
 *
 * Return: the number of expirations since the last event.
 */
KEVENT_INLINE __u64 kevent_expirations(const struct ukevent *ev)
{
	return __kevent_data(ev);
}

/**
 * kevent_overrun() - how often a timer of timer_create(2) has expired unnoticed
 * @ev: an event of %KEVENT_POSIX_TIMER
 *
 * Return: the number of expirations since the last event, less one.
 */
KEVENT_INLINE __u64 kevent_overrun(const struct ukevent *ev)
{
	return __kevent_data(ev);
}

/**
 * kevent_signal_number() - which signal came
 * @ev: an event of %KEVENT_SIGNAL
 *
 * Return: the signal.
 */
KEVENT_INLINE int kevent_signal_number(const struct ukevent *ev)
{
	return (int)ev->id.raw[0];
}

/**
 * kevent_signal_sender() - the sender of a signal
 * @ev: an event of %KEVENT_SIGNAL
 *
 * Return: a process id, 0 when the kernel did.
 */
KEVENT_INLINE int kevent_signal_sender(const struct ukevent *ev)
{
	return (int)(ev->id.raw[1] & 0x7fffffffu);
}

/**
 * kevent_signal_code() - why a signal was sent
 * @ev: an event of %KEVENT_SIGNAL
 *
 * Return: si_code of sigaction(2).
 */
KEVENT_INLINE int kevent_signal_code(const struct ukevent *ev)
{
	return (int)ev->ret_data[0];
}

/**
 * kevent_signal_value() - the number that was sent with a signal
 * @ev: an event of %KEVENT_SIGNAL
 *
 * Return: si_int of sigaction(2).
 */
KEVENT_INLINE int kevent_signal_value(const struct ukevent *ev)
{
	return (int)ev->ret_data[1];
}

/**
 * kevent_pid() - which process has exited
 * @ev: an event of %KEVENT_PROC
 *
 * Return: its process id.
 */
KEVENT_INLINE int kevent_pid(const struct ukevent *ev)
{
	return (int)ev->id.raw[0];
}

/**
 * kevent_wait_status() - how a process has ended
 * @ev: an event of %KEVENT_PROC
 * @status: set to its status as of wait(2), if that is known
 *
 * Return: 1 when it is known, 0 otherwise.
 */
KEVENT_INLINE int kevent_wait_status(const struct ukevent *ev, int *status)
{
	if (!(ev->ret_data[1] & KEVENT_PROC_STATUS))
		return 0;
	*status = (int)ev->ret_data[0];
	return 1;
}

/**
 * kevent_futex_word() - which futex an event is about
 * @ev: an event of %KEVENT_FUTEX
 *
 * Return: the word.
 */
KEVENT_INLINE const __u32 *kevent_futex_word(const struct ukevent *ev)
{
	return (const __u32 *)(uintptr_t)ev->id.raw_u64;
}

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_GET_H */
