// SPDX-License-Identifier: GPL-2.0
/*
 * The system calls but kevent_call(), and the start of a kernel that has kevent
 *
 * A call finds the file and leaves the rest to entry.c and ctl.c.
 */

#include <linux/cleanup.h>
#include <linux/file.h>
#include <linux/init.h>
#include <linux/syscalls.h>

#include "call/chain.h"
#include "core/deadline.h"
#include "entry.h"

/**
 * sys_kevent_init - create a queue
 * @ring: where its ring is, or NULL
 * @ring_size: number of slots, a power of two from 2 to 2^20; 0 without a ring
 * @flags: 0 or %KEVENT_INIT_NOCLOEXEC, %KEVENT_INIT_FAIR; %KEVENT_INIT_REFUSE() and its like
 *
 * The ring belongs to the caller's address space. Its header is set to zero.
 *
 * Return: a new file descriptor, or
 * * -EINVAL: unknown flag, bad @ring_size, @ring not aligned to 8 bytes, or only
 *   one of @ring and @ring_size given
 * * -EFAULT: the caller may not write all of the ring
 * * -EPERM: sysctl kernel.kevent_disabled
 * * -EINTR: killed
 * * -EMFILE, -ENFILE, -ENOMEM
 */
SYSCALL_DEFINE3(kevent_init, struct kevent_ring __user *, ring, u32, ring_size,
		u32, flags)
{
	return kevent_do_init(ring, ring_size, flags);
}

/**
 * sys_kevent_ctl - add, remove, modify or mark watches
 * @fd: the queue
 * @cmd: %KEVENT_CTL_ADD and its like
 * @num: number of entries, up to %KEVENT_CTL_MAX
 * @arg: the entries
 *
 * Entries are dealt with in order, each on its own. What went wrong with one is
 * in its ret_flags and ret_data[1]. %KEVENT_CTL_READY with @num 0 wakes one
 * waiter of the queue. After %KEVENT_CTL_WAKE_ALL, with @num 0 and @arg NULL, each
 * wait for events returns where it would sleep, those that sleep now and all later
 * ones.
 *
 * %KEVENT_CTL_ATTACH is different: @arg is where the caller has the memory of
 * the ring, and @num the size of the ring. kevent_wait() and kevent_commit()
 * work there from then on.
 *
 * Return: ADD: entries handed back, which are then the first in @arg; they are
 * ready at once, or failed. REMOVE, MODIFY: entries that failed. READY: entries
 * marked. ATTACH, WAKE_ALL: 0. Or
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue, unknown @cmd, @num too large. ATTACH: @fd has
 *   no ring, or one of another size, or @arg is not aligned, or not that ring.
 *   WAKE_ALL: @num or @arg is not 0
 * * -EFAULT: the first entry cannot be read, or cannot be handed back. ATTACH:
 *   the caller may not write all of the memory
 * * -EINTR: killed before the first entry
 * * -ENOSPC: ATTACH: too many processes, or the owner of the queue is charged with
 *   too much
 * * -ENOMEM: ATTACH
 * * -EPERM: the queue refuses ATTACH, or READY, and so WAKE_ALL
 */
SYSCALL_DEFINE4(kevent_ctl, int, fd, u32, cmd, u32, num,
		struct ukevent __user *, arg)
{
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_ctl(fd_file(f), cmd, num, arg);
}

/**
 * sys_kevent_get_events - take events out of the queue
 * @fd: the queue
 * @min_nr: wait for so many; 0 is 1
 * @max_nr: take no more
 * @timeout: how long to wait: NULL without a limit, zero not at all
 * @buf: where to put the events
 * @flags: 0 or %KEVENT_FLAGS_ABSTIME: @timeout is a time of CLOCK_MONOTONIC
 *
 * Events are taken from the kernel, not from the ring, by any process that has
 * the descriptor. What cannot be written stays in the kernel.
 *
 * Return: number of events, less than @min_nr after a timeout, a signal, a
 * wake-up by %KEVENT_CTL_READY or %KEVENT_CTL_WAKE_ALL, or a fault; or when there
 * are none
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue, unknown flag, @max_nr 0, too large or less
 *   than @min_nr, invalid @timeout
 * * -EFAULT: @timeout cannot be read or @buf not written
 * * -EINTR: a signal
 */
SYSCALL_DEFINE6(kevent_get_events, int, fd, u32, min_nr, u32, max_nr,
		const struct __kernel_timespec __user *, timeout,
		struct ukevent __user *, buf, u32, flags)
{
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_get_events(fd_file(f), min_nr, max_nr, timeout, buf,
				    flags);
}

static int kevent_wait_to_serve(int fd, u32 limit, u32 old_kidx,
				const struct __kernel_timespec __user *timeout,
				u32 flags,
				const struct kevent_wait_arg __user *uarg)
{
	struct kevent_deadline until = { .clock = CLOCK_MONOTONIC };
	int err;

	if (!IS_ENABLED(CONFIG_KEVENT_AIO) || !limit || old_kidx || uarg ||
	    flags & ~(KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_SERVE))
		return -EINVAL;
	err = kevent_deadline_get(&until, flags & KEVENT_FLAGS_ABSTIME, timeout);
	return err ?: kevent_serve(fd, limit, &until);
}

/**
 * sys_kevent_wait - have the ring filled
 * @fd: the queue
 * @num: move up to so many events into the ring
 * @old_kidx: low half of the newest kevent_ring.ring_kidx the caller has seen
 * @timeout: how long to wait: NULL without a limit, zero not at all
 * @flags: %KEVENT_FLAGS_ABSTIME: @timeout is a point of time;
 *	   %KEVENT_FLAGS_ARG: @arg is given; %KEVENT_FLAGS_SERVE: see below
 * @uarg: clock, signal mask, numbers to wait for, changes to make first, how many
 *	  threads that wait may run; see &struct kevent_wait_arg. Without it the clock is
 *	  CLOCK_MONOTONIC
 *
 * Waits only while the ring holds nothing newer than @old_kidx. While it is full
 * of unread entries that takes a kevent_commit().
 *
 * With %KEVENT_FLAGS_SERVE the calling thread runs chains of the queue, which needs no
 * ring, until @timeout. @num is how many threads that serve the queue may run at once;
 * @old_kidx is 0, and @uarg NULL. Return: the number of chains that it ran, -EBADF
 * also when @fd was closed, -EXDEV when the chains are another process's, -EINTR:
 * a signal, and it ran none, -ENOMEM, -EPERM: sysctl kernel.kevent_disabled.
 *
 * Return: number of events stored past @old_kidx; 0 after a timeout or
 * %KEVENT_CTL_WAKE_ALL, a wake-up by %KEVENT_CTL_READY, whatever was stored, or a
 * change whose result must be looked at; or
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue with a ring, unknown flag, @num 0, @old_kidx
 *   ahead of the ring, invalid @timeout; @uarg with a size that is too small, an
 *   unknown clock, a bad sigsetsize, too many changes, a limit where the kernel has
 *   none, or in a chain that the thread runs for others
 * * -E2BIG: @uarg has members this kernel does not know
 * * -EXDEV: the ring is not mapped in this process, as far as the queue knows
 * * -EFAULT: @timeout, @uarg, the signal mask or the first change cannot be
 *   read, or the ring not written; events stay in the kernel
 * * -EINTR: a signal, and no entry is unread, or none past @old_kidx
 * * -ENOMEM: with a limit
 */
SYSCALL_DEFINE6(kevent_wait, int, fd, u32, num, u32, old_kidx,
		const struct __kernel_timespec __user *, timeout, u32, flags,
		const struct kevent_wait_arg __user *, uarg)
{
	if (unlikely(flags & KEVENT_FLAGS_SERVE))
		return kevent_wait_to_serve(fd, num, old_kidx, timeout, flags,
					    uarg);
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_wait(fd_file(f), num, old_kidx, timeout, flags, uarg);
}

/**
 * sys_kevent_commit - free slots of the ring
 * @fd: the queue
 * @new_uidx: low half of the position of the first entry that stays unread
 * @over: high half of that position
 *
 * Moves kevent_ring.ring_uidx forward and refills the ring with events that wait
 * in the kernel.
 *
 * Return: slots freed, 0 when the position is not ahead of
 * kevent_ring.ring_uidx; or
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue with a ring, or the position is beyond
 *   kevent_ring.ring_kidx
 * * -EXDEV: the ring is not mapped in this process, as far as the queue knows
 * * -EFAULT: the ring's header cannot be written
 * * -EINTR: killed
 */
SYSCALL_DEFINE3(kevent_commit, int, fd, u32, new_uidx, u32, over)
{
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_commit(fd_file(f), (u64)over << 32 | new_uidx);
}

fs_initcall(kevent_start);
