// SPDX-License-Identifier: GPL-2.0
/*
 * The system calls but kevent_ctl() and kevent_call(), and the start
 *
 * Section 2 of the manual pages has their arguments and errors. Flags and arguments of waits are
 * checked here, and core/wait.c waits. A module has no system calls,
 * and functions for the file of a queue.
 */

#include <linux/cleanup.h>
#include <linux/file.h>
#include <linux/init.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "call/workers.h"
#include "core/deadline.h"
#include "core/max_running.h"
#include "core/queue.h"
#include "core/queue_ring.h"
#include "core/quota.h"
#include "core/source_ops.h"
#include "core/testpoint.h"
#include "core/wait.h"
#include "core/wake.h"
#include "core/wakeup_source.h"
#include "core/watch_memory.h"
#include "ctl.h"
#include "host.h"
#include "syscalls.h"

/* kevent_init() */

static int kevent_install(struct kevent_queue *q, u32 flags)
{
	int cloexec = flags & KEVENT_INIT_NOCLOEXEC ? 0 : O_CLOEXEC;
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(cloexec);
	if (fd < 0)
		return fd;
	file = host_queue_file(&kevent_fops, q, O_RDWR | cloexec);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	q->nest.file = file;
	q->ino = file_inode(file)->i_ino;
	fd_install(fd, file);
	return fd;
}

int kevent_do_init(struct kevent_ring __user *ring, u32 ring_size, u32 flags)
{
	struct kring kring = {};
	struct kevent_queue *q;
	int ret;

	if (!kevent_allowed())
		return -EPERM;
	if (flags & ~(KEVENT_INIT_NOCLOEXEC | KEVENT_INIT_FAIR |
		      KEVENT_INIT_REFUSE_ALL))
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
	q->home.user = kring.user;
	q->fair = flags & KEVENT_INIT_FAIR;
	q->refuses = flags & KEVENT_INIT_REFUSE_ALL;
	ret = kevent_install(q, flags);
	if (ret < 0)
		kevent_queue_put(q);
	return ret;
}

SYSCALL_DEFINE3(kevent_init, struct kevent_ring __user *, ring, u32, ring_size,
		u32, flags)
{
	return kevent_do_init(ring, ring_size, flags);
}

/* @file is that of any descriptor, which the caller has pinned; here and below. */
int kevent_do_get_events(struct file *file, u32 min_nr, u32 max_nr,
			 struct kevent_timeout timeout, struct ukevent __user *buf)
{
	struct kevent_consumer c __uninitialized;
	struct kring to __uninitialized;
	int err;

	if (!is_kevent_file(file))
		return -EINVAL;
	if (timeout.flags & ~KEVENT_FLAGS_ABSTIME)
		return -EINVAL;
	if (!max_nr || max_nr > INT_MAX / sizeof(*buf) || min_nr > max_nr)
		return -EINVAL;
	c.until.clock = CLOCK_MONOTONIC;
	err = kevent_deadline_get(&c.until, timeout);
	if (err)
		return err;
	to = (struct kring) { .slots = buf, .size = max_nr };
	c.to = &to;
	c.max = max_nr;
	c.min_nr = max(min_nr, 1U);
	c.member = NULL;
	return kevent_wait_buffer(file->private_data, &c);
}

SYSCALL_DEFINE6(kevent_get_events, int, fd, u32, min_nr, u32, max_nr,
		const struct __kernel_timespec __user *, timeout,
		struct ukevent __user *, buf, u32, flags)
{
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_get_events(fd_file(f), min_nr, max_nr,
				    (struct kevent_timeout){ timeout, flags }, buf);
}

/* Not in line: a call for an event takes 15 instructions less. */
static noinline int kevent_look_for_ring(struct kevent_queue *q)
{
	return kevent_ring_back(q) ? 0 : -EXDEV;
}

/* Calls that are about the ring are for address spaces that have it. Returns 0 or -errno. */
int kevent_check_ring(const struct file *file)
{
	struct kevent_queue *q = file->private_data;

	if (!is_kevent_file(file) || !q->ring.size)
		return -EINVAL;
	/* A mapping of a task that runs is not forgotten. */
	if (likely(READ_ONCE(q->ring_mm) == current->mm))
		return 0;
	return kevent_look_for_ring(q);
}

/* Version 0 of the structure */
#define KEVENT_WAIT_ARG_SIZE	offsetofend(struct kevent_wait_arg, max_running)

static int kevent_get_arg(struct kevent_wait_arg *arg,
			  const struct kevent_wait_arg __user *from)
{
	const u32 clocks = BIT(CLOCK_REALTIME) | BIT(CLOCK_MONOTONIC) |
			   BIT(CLOCK_BOOTTIME) | BIT(CLOCK_TAI);
	u32 size;
	int err;

	if (get_user(size, &from->size))
		return -EFAULT;
	if (size < KEVENT_WAIT_ARG_SIZE || size > PAGE_SIZE)
		return size < KEVENT_WAIT_ARG_SIZE ? -EINVAL : -E2BIG;
	err = copy_struct_from_user(arg, sizeof(*arg), from, size);
	if (err)
		return err;
	if ((u32)arg->clockid > CLOCK_TAI || !(clocks & BIT(arg->clockid)) ||
	    arg->nr_changes > KEVENT_CTL_MAX)
		return -EINVAL;
	return 0;
}

/* The signal mask is the caller's wish by now. */
static int kevent_change_and_wait(struct kevent_queue *q, struct kevent_consumer *c,
				  const struct kevent_wait_arg *arg)
{
	int ret;

	kevent_awake_begin(q);
	/* If it fails no change is made. If the changes fail, the thread runs, and counts. */
	if (arg->max_running) {
		ret = kevent_limit_join(&q->limit, arg->max_running, &c->member);
		if (ret)
			return ret;
	}
	if (arg->nr_changes) {
		ret = kevent_make_changes(q, u64_to_user_ptr(arg->changes),
					  arg->nr_changes);
		if (ret < 0)
			return ret;
		if (ret)
			c->until.nowait = true;
	}
	ret = kevent_enter(q, c);
	if (ret)
		return kevent_wait_end(q, c, ret);
	return kevent_wait_ring(q, c, arg->min_wait_ns);
}

static int kevent_wait_with_arg(struct kevent_queue *q, struct kevent_consumer *c,
				struct kevent_timeout timeout,
				const struct kevent_wait_arg __user *uarg)
{
	struct kevent_wait_arg arg;
	int ret;

	ret = kevent_get_arg(&arg, uarg);
	if (ret)
		return ret;
	c->until.clock = arg.clockid;
	c->min_nr = arg.min_nr;
	ret = kevent_deadline_get(&c->until, timeout);
	if (ret)
		return ret;
	ret = host_sigmask_set(u64_to_user_ptr(arg.sigmask), arg.sigsetsize);
	if (ret)
		return ret;
	ret = kevent_change_and_wait(q, c, &arg);
	host_sigmask_restore(ret == -EINTR);
	return ret;
}

/* kevent_wait() without %KEVENT_FLAGS_SERVE */
int kevent_do_wait(struct file *file, u32 num, u32 old_kidx,
		   struct kevent_timeout timeout,
		   const struct kevent_wait_arg __user *uarg)
{
	struct kevent_consumer c __uninitialized;
	int ret = kevent_check_ring(file);

	if (ret)
		return ret;
	if (!num || timeout.flags & ~(KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_ARG))
		return -EINVAL;
	c.max = num;
	c.old_kidx = old_kidx;
	c.member = NULL;
	if (timeout.flags & KEVENT_FLAGS_ARG)
		return kevent_wait_with_arg(file->private_data, &c, timeout, uarg);
	c.min_nr = 1;
	c.until.clock = CLOCK_MONOTONIC;
	ret = kevent_deadline_get(&c.until, timeout);
	if (ret)
		return ret;
	kevent_awake_begin(file->private_data);
	return kevent_wait_ring(file->private_data, &c, 0);
}

SYSCALL_DEFINE6(kevent_wait, int, fd, u32, num, u32, old_kidx,
		const struct __kernel_timespec __user *, timeout, u32, flags,
		const struct kevent_wait_arg __user *, uarg)
{
	struct kevent_timeout t = { timeout, flags };

	if (unlikely(flags & KEVENT_FLAGS_SERVE)) {
		struct kevent_deadline until = { .clock = CLOCK_MONOTONIC };

		if (!IS_ENABLED(CONFIG_KEVENT_AIO) || !num || old_kidx || uarg ||
		    flags & ~(KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_SERVE))
			return -EINVAL;
		return kevent_deadline_get(&until, t) ?: kevent_serve(fd, num, &until);
	}
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_wait(fd_file(f), num, old_kidx, t, uarg);
}

int kevent_do_commit(struct file *file, u64 uidx)
{
	return kevent_check_ring(file) ?:
	       kevent_commit(file->private_data, uidx);
}

/* @over is the high half of the position. */
SYSCALL_DEFINE3(kevent_commit, int, fd, u32, new_uidx, u32, over)
{
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_commit(fd_file(f), (u64)over << 32 | new_uidx);
}

/* The start: what is done once, before the first queue. Returns 0 or -ENOMEM. */
int __init kevent_start(void)
{
	int err;

	if (IS_ENABLED(CONFIG_KEVENT_TIMER))
		kevent_timers_init();
	err = kevent_caches_init();
	if (err)
		return err;
	kevent_quota_init();
	kevent_testpoints_start();
	return 0;
}
host_initcall(kevent_start);
