// SPDX-License-Identifier: GPL-2.0
/*
 * The system calls but kevent_ctl()
 */

#include <linux/anon_inodes.h>
#include <linux/cleanup.h>
#include <linux/file.h>
#include <linux/kevent.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "call/workers.h"
#include "core/deadline.h"
#include "core/deliver.h"
#include "core/max_running.h"
#include "core/queue.h"
#include "core/quota.h"
#include "core/ring_mapping.h"
#include "core/wait.h"
#include "core/wakeup_source.h"
#include "ctl.h"

/* kevent_init() */

static int kevent_install(struct kevent_queue *q, u32 flags)
{
	int cloexec = flags & KEVENT_INIT_NOCLOEXEC ? 0 : O_CLOEXEC;
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(cloexec);
	if (fd < 0)
		return fd;
	file = anon_inode_create_getfile("[kevent]", &kevent_fops, q,
					 O_RDWR | cloexec, NULL);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	q->nest.file = file;
	q->ino = file_inode(file)->i_ino;
	fd_install(fd, file);
	return fd;
}

/**
 * sys_kevent_init - create a queue
 * @ring: where its ring is, or NULL
 * @ring_size: number of slots, a power of two from 2 to 2^20; 0 without a ring
 * @flags: 0 or %KEVENT_INIT_NOCLOEXEC; %KEVENT_INIT_REFUSE() and its like
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
	struct kring kring = {};
	struct kevent_queue *q;
	int ret;

	if (!kevent_allowed())
		return -EPERM;
	if (flags & ~(KEVENT_INIT_NOCLOEXEC | KEVENT_INIT_REFUSE_ALL))
		return -EINVAL;
	if (!ring != !ring_size)
		return -EINVAL;
	if (ring) {
		ret = kring_init(&kring, ring, ring_size);
		if (ret)
			return ret;
	}
	q = kevent_queue_alloc();
	if (!q)
		return -ENOMEM;
	q->ring = kring;
	q->home = kring.user;
	q->refuses = flags & KEVENT_INIT_REFUSE_ALL;
	ret = kevent_install(q, flags);
	if (ret < 0)
		kevent_queue_put(q);
	return ret;
}

/* Waiting: the loops are in wait.c */

static int kevent_get(struct kevent_queue *q, struct kring *buf, u32 min_nr,
		      struct kevent_deadline *until)
{
	int ret;

	kevent_awake_begin(q);
	ret = kevent_collect(q, buf, buf->size, true);
	kevent_awake_end(q);
	if (likely(ret >= (int)min_nr))
		return ret;
	return kevent_get_more(q, buf, min_nr, until, ret);
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
 * wake-up by %KEVENT_CTL_READY or a fault; or when there are none
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
	struct kevent_deadline until __uninitialized;
	struct kring to __uninitialized;
	int err;

	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	if (!is_kevent_file(fd_file(f)))
		return -EINVAL;
	if (flags & ~KEVENT_FLAGS_ABSTIME)
		return -EINVAL;
	if (!max_nr || max_nr > INT_MAX / sizeof(*buf) || min_nr > max_nr)
		return -EINVAL;
	until.clock = CLOCK_MONOTONIC;
	err = kevent_deadline_get(&until, flags & KEVENT_FLAGS_ABSTIME, timeout);
	if (err)
		return err;
	kring_init_buffer(&to, buf, max_nr);
	return kevent_get(fd_file(f)->private_data, &to, max(min_nr, 1U),
			  &until);
}

/* Not in line: a call for an event takes 15 instructions less. */
static noinline int kevent_look_for_ring(struct kevent_queue *q)
{
	unsigned long flags;
	bool here;

	spin_lock_irqsave(&q->ready_lock, flags);
	here = kevent_ring_here(q);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return here ? 0 : -EXDEV;
}

/* Ring calls are for address spaces that have the ring. */
static int kevent_check_ring(const struct file *file)
{
	struct kevent_queue *q = file->private_data;

	if (!is_kevent_file(file) || !q->ring.size)
		return -EINVAL;
	/* A mapping of a task that runs is not forgotten. */
	if (likely(READ_ONCE(q->ring_mm) == current->mm))
		return 0;
	return kevent_look_for_ring(q);
}

/* Entries in the ring that nobody has taken? */
static bool kevent_has_unread(struct kevent_queue *q)
{
	unsigned long flags;
	bool ret;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	ret = kevent_unread(q);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return ret;
}

/* kevent_wait_end() in all cases */
static int kevent_wait_ended(struct kevent_queue *q,
			     const struct kevent_news *news,
			     const struct kevent_deadline *until, int ret)
{
	u32 stored;

	/* Whatever was stored: another thread may have taken it. */
	if (ret == -ECANCELED)
		return 0;
	if (kevent_is_interrupted() && !until->nowait && ret != -ETIME &&
	    !kevent_has_unread(q))
		return -EINTR;
	stored = kevent_stored(q, news->old_kidx);
	if (stored > INT_MAX)
		return -EINVAL;
	return stored || ret == -ETIME ? stored : ret;
}

/* The result of a wait, which @ret has ended */
static int kevent_wait_end(struct kevent_queue *q,
			   const struct kevent_news *news,
			   const struct kevent_deadline *until, int ret)
{
	u32 stored = kevent_stored(q, news->old_kidx);

	if (likely(!ret && stored <= INT_MAX && !signal_pending(current)))
		return stored;
	return kevent_wait_ended(q, news, until, ret);
}

static int kevent_wait_ring(struct kevent_queue *q, u32 num,
			    struct kevent_news *news, u64 min_wait_ns,
			    struct kevent_deadline *until)
{
	u32 stored;
	int ret;

	num = min(num, q->ring.size);
	news->min_nr = clamp(news->min_nr, 1U, q->ring.size);
	kevent_awake_begin(q);
	ret = kevent_collect(q, &q->ring, num, true);
	kevent_awake_end(q);
	stored = kevent_stored(q, news->old_kidx);
	if (stored < news->min_nr) {
		ret = kevent_wait_for_more(q, num, news, min_wait_ns, until,
					   ret);
		return kevent_wait_end(q, news, until, ret);
	}
	return stored > INT_MAX ? -EINVAL : stored;
}

/* Version 0 of the structure */
#define KEVENT_WAIT_ARG_SIZE	offsetofend(struct kevent_wait_arg, max_running)

static int kevent_get_arg(struct kevent_wait_arg *arg,
			  const struct kevent_wait_arg __user *from)
{
	u32 size;
	int err;

	if (get_user(size, &from->size))
		return -EFAULT;
	if (size < KEVENT_WAIT_ARG_SIZE || size > PAGE_SIZE)
		return size < KEVENT_WAIT_ARG_SIZE ? -EINVAL : -E2BIG;
	err = copy_struct_from_user(arg, sizeof(*arg), from, size);
	if (err)
		return err;
	switch (arg->clockid) {
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
		break;
	default:
		return -EINVAL;
	}
	if (arg->nr_changes > KEVENT_CTL_MAX)
		return -EINVAL;
	return 0;
}

static int kevent_set_sigmask(const struct kevent_wait_arg *arg)
{
	void __user *mask = u64_to_user_ptr(arg->sigmask);

	if (!arg->sigmask)
		return 0;
#ifdef CONFIG_COMPAT
	if (in_compat_syscall())
		return set_compat_user_sigmask(mask, arg->sigsetsize);
#endif
	return set_user_sigmask(mask, arg->sigsetsize);
}

/* The signal mask is the caller's wish by now. */
static int kevent_change_and_wait(struct kevent_queue *q, u32 num,
				  u32 old_kidx,
				  const struct kevent_wait_arg *arg,
				  struct kevent_deadline *until)
{
	struct kevent_news news = {
		.old_kidx	= old_kidx,
		.min_nr		= arg->min_nr,
	};
	int ret;

	if (arg->nr_changes) {
		ret = kevent_make_changes(q, u64_to_user_ptr(arg->changes),
					  arg->nr_changes);
		if (ret < 0)
			return ret;
		if (ret)
			until->nowait = true;
	}
	if (arg->max_running) {
		ret = kevent_limit_join(&q->limit, arg->max_running, &news.member);
		if (ret)
			return ret;
	}
	ret = kevent_enter(q, &news, until);
	if (ret)
		return kevent_wait_end(q, &news, until, ret);
	return kevent_wait_ring(q, num, &news, arg->min_wait_ns, until);
}

static int kevent_wait_with_arg(struct kevent_queue *q, u32 num, u32 old_kidx,
				const struct __kernel_timespec __user *timeout,
				u32 flags,
				const struct kevent_wait_arg __user *uarg)
{
	struct kevent_deadline until;
	struct kevent_wait_arg arg;
	int ret;

	ret = kevent_get_arg(&arg, uarg);
	if (ret)
		return ret;
	until.clock = arg.clockid;
	ret = kevent_deadline_get(&until, flags & KEVENT_FLAGS_ABSTIME, timeout);
	if (ret)
		return ret;
	ret = kevent_set_sigmask(&arg);
	if (ret)
		return ret;
	ret = kevent_change_and_wait(q, num, old_kidx, &arg, &until);
	restore_saved_sigmask_unless(ret == -EINTR);
	return ret;
}

static int kevent_wait_to_serve(int fd, u32 limit, u32 old_kidx,
				const struct __kernel_timespec __user *timeout,
				u32 flags,
				const struct kevent_wait_arg __user *uarg)
{
	struct kevent_deadline until = { .clock = CLOCK_MONOTONIC };
	int err;

	if (!limit || old_kidx || uarg ||
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
 * Return: number of events stored past @old_kidx; 0 after a timeout, a wake-up
 * by %KEVENT_CTL_READY, whatever was stored, or a change whose result must be
 * looked at; or
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue with a ring, unknown flag, @num 0, @old_kidx
 *   ahead of the ring, invalid @timeout; @uarg with a size that is too small, an
 *   unknown clock, a bad sigsetsize, too many changes, a limit where the kernel has
 *   none, or in a chain that the thread runs for others
 * * -E2BIG: @uarg has members this kernel does not know
 * * -EXDEV: the ring is not mapped in this process, as far as the queue knows
 * * -EFAULT: @timeout, @uarg, the signal mask or the first change cannot be
 *   read, or the ring not written; events stay in the kernel
 * * -EINTR: a signal, and no entry is unread
 * * -ENOMEM: with a limit
 */
SYSCALL_DEFINE6(kevent_wait, int, fd, u32, num, u32, old_kidx,
		const struct __kernel_timespec __user *, timeout, u32, flags,
		const struct kevent_wait_arg __user *, uarg)
{
	struct kevent_news news = { .old_kidx = old_kidx, .min_nr = 1 };
	struct kevent_deadline until __uninitialized;
	struct kevent_queue *q;
	int ret;

	if (unlikely(flags & KEVENT_FLAGS_SERVE))
		return kevent_wait_to_serve(fd, num, old_kidx, timeout, flags,
					    uarg);
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	ret = kevent_check_ring(fd_file(f));
	if (ret)
		return ret;
	if (!num || flags & ~(KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_ARG))
		return -EINVAL;
	q = fd_file(f)->private_data;
	if (flags & KEVENT_FLAGS_ARG)
		return kevent_wait_with_arg(q, num, old_kidx, timeout, flags,
					    uarg);
	until.clock = CLOCK_MONOTONIC;
	ret = kevent_deadline_get(&until, flags & KEVENT_FLAGS_ABSTIME, timeout);
	if (ret)
		return ret;
	return kevent_wait_ring(q, num, &news, 0, &until);
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
	int err;

	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	err = kevent_check_ring(fd_file(f));
	if (err)
		return err;
	return kevent_commit(fd_file(f)->private_data,
			     (u64)over << 32 | new_uidx);
}
