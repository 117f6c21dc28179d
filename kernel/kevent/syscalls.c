// SPDX-License-Identifier: GPL-2.0
/*
 * The system calls and the file
 */

#include <linux/anon_inodes.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/init.h>
#include <linux/kevent.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/seq_file.h>
#include <linux/syscalls.h>
#include <linux/sysctl.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>

#include "kevent.h"

/* The file */

static const struct file_operations kevent_fops;

/**
 * is_kevent_file - is this what kevent_init() returns a descriptor of?
 * @file: any file
 */
bool is_kevent_file(const struct file *file)
{
	return file->f_op == &kevent_fops;
}

static int kevent_fop_release(struct inode *inode, struct file *file)
{
	struct kevent_queue *q = file->private_data;

	kevent_remove_all(q);
	kevent_queue_put(q);
	return 0;
}

static __poll_t kevent_fop_poll(struct file *file, poll_table *wait)
{
	struct kevent_queue *q = file->private_data;

	poll_wait(file, &q->poll_wait, wait);
	return kevent_pending(q) ? EPOLLIN | EPOLLRDNORM : 0;
}

static void kevent_show_watch(struct seq_file *m, struct kevent_queue *q,
			      struct kevent *ke)
{
	struct ukevent uk;
	unsigned long flags;
	bool show;

	spin_lock_irqsave(&q->ready_lock, flags);
	show = !(ke->state & (KE_NEW | KE_DEAD));
	if (show)
		kevent_fill(ke, &uk, 0);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (!show)
		return;
	seq_printf(m, "kevent: type:%s id:%llx event:%x flags:%x user:%llx\n",
		   kevent_source(uk.type)->name, uk.id.raw_u64, uk.event,
		   uk.req_flags, uk.ptr);
}

static u32 kevent_show_watches(struct seq_file *m, struct kevent_queue *q,
			       bool show)
{
	unsigned long index;
	struct kevent *ke;
	u32 nr = 0;

	rcu_read_lock();
	xa_for_each(&q->watches, index, ke) {
		nr++;
		if (show)
			kevent_show_watch(m, q, ke);
		if (show && seq_has_overflowed(m))
			break;
		if (need_resched()) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();
	return nr;
}

static void kevent_fop_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct kevent_queue *q = file->private_data;
	struct kring ring;
	u64 delivered, hits, misses;
	u32 ready;

	spin_lock_irq(&q->ready_lock);
	if (q->mm == current->mm)
		kring_sync(&q->ring);
	ring = q->ring;
	delivered = q->delivered;
	hits = q->hits;
	misses = q->misses;
	ready = q->nr_listed;
	spin_unlock_irq(&q->ready_lock);

	seq_printf(m, "kevent-watches:\t%u\n",
		   kevent_show_watches(m, q, false));
	seq_printf(m, "kevent-ready:\t%u\n", ready);
	seq_printf(m, "kevent-delivered:\t%llu\n", delivered);
	seq_printf(m, "kevent-ring-size:\t%u\n", ring.size);
	seq_printf(m, "kevent-ring-kidx:\t%llu\n", ring.kidx);
	seq_printf(m, "kevent-ring-uidx:\t%llu\n", ring.uidx);
	seq_printf(m, "kevent-hits:\t%llu\n", hits);
	seq_printf(m, "kevent-misses:\t%llu\n", misses);
	kevent_show_watches(m, q, true);
}

static const struct file_operations kevent_fops = {
	.release	= kevent_fop_release,
	.poll		= kevent_fop_poll,
	.show_fdinfo	= kevent_fop_show_fdinfo,
	.llseek		= noop_llseek,
};

/* kevent_init() */

static int kevent_disabled __read_mostly;
static int kevent_group __read_mostly = -1;

static bool kevent_allowed(void)
{
	kgid_t group;

	switch (READ_ONCE(kevent_disabled)) {
	case 0:
		return true;
	case 1:
		if (capable(CAP_SYS_ADMIN))
			return true;
		group = make_kgid(&init_user_ns, READ_ONCE(kevent_group));
		return gid_valid(group) && in_group_p(group);
	default:
		return false;
	}
}

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
	fd_install(fd, file);
	return fd;
}

/**
 * sys_kevent_init - create a queue
 * @ring: where its ring is, or NULL
 * @ring_size: number of slots, a power of two from 2 to 2^20; 0 without a ring
 * @flags: 0 or %KEVENT_INIT_NOCLOEXEC
 *
 * The ring belongs to the caller's address space. Its header is set to zero.
 *
 * Return: a new file descriptor, or
 * * -EINVAL: unknown flag, bad @ring_size, @ring not aligned to 8 bytes, or only
 *   one of @ring and @ring_size given
 * * -EFAULT: the header cannot be written, or the ring is not user memory
 * * -EPERM: sysctl kernel.kevent_disabled
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
	if (flags & ~KEVENT_INIT_NOCLOEXEC)
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
	ret = kevent_install(q, flags);
	if (ret < 0)
		kevent_queue_put(q);
	return ret;
}

/* kevent_ctl() */

static void kevent_set_error(struct ukevent *uk, int err)
{
	uk->ret_flags = KEVENT_RET_BROKEN | KEVENT_RET_DONE;
	uk->ret_data[0] = 0;
	uk->ret_data[1] = err;
}

/* Put @uk into @arg[@to] and what was there into @arg[@from]. */
static int kevent_hand_back(struct ukevent __user *arg, u32 from, u32 to,
			    const struct ukevent *uk)
{
	struct ukevent other;

	if (from != to &&
	    (copy_from_user(&other, &arg[to], sizeof(other)) ||
	     copy_to_user(&arg[from], &other, sizeof(other))))
		return -EFAULT;
	return copy_to_user(&arg[to], uk, sizeof(*uk)) ? -EFAULT : 0;
}

/**
 * struct kevent_ctl - a kevent_ctl() call
 * @q:		the queue
 * @arg:	the entries
 * @at:		index of the current one
 * @count:	what the call returns
 */
struct kevent_ctl {
	struct kevent_queue	*q;
	struct ukevent __user	*arg;
	u32			at;
	u32			count;
};

/* The entry is handed back when it failed, or is ready at once. */
static int kevent_ctl_add(struct kevent_ctl *ctl, struct ukevent *uk,
			  struct file *file, int err)
{
	struct kevent *ke = NULL;

	if (!err) {
		ke = kevent_add(ctl->q, uk, file);
		if (!ke)
			return 0;
		err = PTR_ERR_OR_ZERO(ke);
	}
	if (err)
		kevent_set_error(uk, err);
	err = kevent_hand_back(ctl->arg, ctl->at, ctl->count, uk);
	if (!IS_ERR_OR_NULL(ke)) {
		kevent_handed_back(ke, !err);
		if (err)
			return 0;
	}
	if (!err)
		ctl->count++;
	return err;
}

/*
 * Results stay where the entry is. One that can't be written is no reason to
 * deny that the change was made.
 */
static void kevent_ctl_change(struct kevent_ctl *ctl, u32 cmd,
			      struct ukevent *uk, struct file *file, int err)
{
	if (!err && cmd == KEVENT_CTL_REMOVE)
		err = kevent_remove(ctl->q, uk, file);
	else if (!err && cmd == KEVENT_CTL_MODIFY)
		err = kevent_modify(ctl->q, uk, file);
	else if (!err)
		err = kevent_mark(ctl->q, uk, file);

	if (cmd == KEVENT_CTL_READY ? !err : err)
		ctl->count++;
	if (err)
		kevent_set_error(uk, err);
	else
		uk->ret_flags = KEVENT_RET_DONE;
	if (copy_to_user(&ctl->arg[ctl->at].ret_flags, &uk->ret_flags,
			 sizeof(uk->ret_flags) + sizeof(uk->ret_data)))
		return;
}

static int kevent_ctl_one(struct kevent_ctl *ctl, u32 cmd)
{
	const struct kevent_source_ops *ops;
	struct fd f = EMPTY_FD;
	struct ukevent uk;
	int err;

	if (copy_from_user(&uk, &ctl->arg[ctl->at], sizeof(uk)))
		return -EFAULT;
	ops = kevent_source(uk.type);
	err = PTR_ERR_OR_ZERO(ops);
	if (!err && ops->file) {
		f = fdget(uk.id.raw[0]);
		if (!fd_file(f))
			err = -EBADF;
	}
	if (cmd == KEVENT_CTL_ADD) {
		err = kevent_ctl_add(ctl, &uk, fd_file(f), err);
	} else {
		kevent_ctl_change(ctl, cmd, &uk, fd_file(f), err);
		err = 0;
	}
	fdput(f);
	return err;
}

static int kevent_ctl_all(struct kevent_ctl *ctl, u32 cmd, u32 num)
{
	int err;

	for (; ctl->at < num; ctl->at++) {
		if (fatal_signal_pending(current))
			return ctl->at ? ctl->count : -EINTR;
		err = kevent_ctl_one(ctl, cmd);
		if (err && !ctl->at)
			return err;
		if (err)
			break;
		cond_resched();
	}
	return ctl->count;
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
 * waiter of the queue.
 *
 * Return: ADD: entries handed back, which are then the first in @arg; they are
 * ready at once, or failed. REMOVE, MODIFY: entries that failed. READY: entries
 * marked. Or
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue, unknown @cmd, @num too large
 * * -EFAULT: the first entry cannot be read, or cannot be handed back
 * * -EINTR: killed before the first entry
 */
SYSCALL_DEFINE4(kevent_ctl, int, fd, u32, cmd, u32, num,
		struct ukevent __user *, arg)
{
	struct kevent_ctl ctl = { .arg = arg };

	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	if (!is_kevent_file(fd_file(f)))
		return -EINVAL;
	if (cmd > KEVENT_CTL_READY || num > KEVENT_CTL_MAX)
		return -EINVAL;
	ctl.q = fd_file(f)->private_data;
	if (cmd == KEVENT_CTL_READY && !num)
		kevent_wake_one(ctl.q);
	return kevent_ctl_all(&ctl, cmd, num);
}

/* Waiting */

static int kevent_get_deadline(struct kevent_deadline *until, u32 flags,
			       const struct __kernel_timespec __user *timeout)
{
	struct timespec64 ts;
	ktime_t at;

	until->at = KTIME_MAX;
	until->slack = current->timer_slack_ns;
	until->poll = false;
	if (!timeout)
		return 0;
	if (get_timespec64(&ts, timeout))
		return -EFAULT;
	if (!timespec64_valid(&ts))
		return -EINVAL;
	at = timespec64_to_ktime(ts);
	if (flags & KEVENT_FLAGS_ABSTIME) {
		until->at = timens_ktime_to_host(CLOCK_MONOTONIC, at);
		until->poll = ktime_compare(until->at, ktime_get()) <= 0;
	} else {
		until->at = ktime_add_safe(ktime_get(), at);
		until->poll = !at;
	}
	return 0;
}

/* Why a consumer that found nothing must not try again, or 0. */
static int kevent_over(const struct kevent_deadline *until)
{
	if (signal_pending(current))
		return -EINTR;
	if (until->poll || ktime_compare(ktime_get(), until->at) >= 0)
		return -ETIME;
	return 0;
}

static int kevent_get(struct kevent_queue *q, struct kring *buf, u32 min_nr,
		      const struct kevent_deadline *until)
{
	bool first = true;
	u32 total = 0;
	int ret;

	for (;;) {
		ret = kevent_collect(q, buf, buf->size - total, first);
		if (ret > 0)
			total += ret;
		if (ret < 0 || total >= min_nr)
			break;
		/* What was ready may turn out not to be, again and again. */
		ret = first ? 0 : kevent_over(until);
		if (!ret)
			ret = kevent_sleep(q, NULL, until);
		if (ret)
			break;
		first = false;
	}
	if (total || ret == -ETIME || ret == -ECANCELED)
		return total;
	return ret;
}

/**
 * sys_kevent_get_events - take events out of the queue
 * @fd: the queue
 * @min_nr: wait for so many; 0 is 1
 * @max_nr: take no more
 * @timeout: how long to wait: NULL for ever, zero not at all
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
	struct kevent_deadline until;
	struct kring to;
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
	err = kevent_get_deadline(&until, flags, timeout);
	if (err)
		return err;
	kring_init_buffer(&to, buf, max_nr);
	return kevent_get(fd_file(f)->private_data, &to, max(min_nr, 1U),
			  &until);
}

/* Ring calls are for the address space the ring is in. */
static int kevent_check_ring(const struct file *file)
{
	const struct kevent_queue *q = file->private_data;

	if (!is_kevent_file(file) || !q->ring.user)
		return -EINVAL;
	return q->mm == current->mm ? 0 : -EXDEV;
}

static int kevent_fill_ring(struct kevent_queue *q, u32 num, u32 old_kidx,
			    const struct kevent_deadline *until)
{
	bool first = true;
	u32 news;
	int ret;

	for (;;) {
		ret = kevent_collect(q, &q->ring, num, first);
		news = (u32)READ_ONCE(q->ring.kidx) - old_kidx;
		if (news)
			return min_t(u32, news, INT_MAX);
		if (ret < 0)
			return ret;
		ret = first ? 0 : kevent_over(until);
		if (!ret)
			ret = kevent_sleep(q, &old_kidx, until);
		if (ret)
			return ret == -EINTR ? ret : 0;
		first = false;
	}
}

/**
 * sys_kevent_wait - have the ring filled
 * @fd: the queue
 * @num: move up to so many events into the ring
 * @old_kidx: low half of the newest kevent_ring.ring_kidx the caller has seen
 * @timeout: how long to wait: NULL for ever, zero not at all
 * @flags: 0 or %KEVENT_FLAGS_ABSTIME: @timeout is a time of CLOCK_MONOTONIC
 * @arg: not used
 *
 * Waits only while the ring holds nothing newer than @old_kidx. While it is full
 * of unread entries that takes a kevent_commit().
 *
 * Return: number of events stored past @old_kidx; 0 after a timeout or a wake-up
 * by %KEVENT_CTL_READY; or
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue with a ring, unknown flag, @num 0, invalid
 *   @timeout
 * * -EXDEV: the ring belongs to another process
 * * -EFAULT: @timeout cannot be read or the ring not written; events stay in the
 *   kernel
 * * -EINTR: a signal
 */
SYSCALL_DEFINE6(kevent_wait, int, fd, u32, num, u32, old_kidx,
		const struct __kernel_timespec __user *, timeout, u32, flags,
		const struct kevent_wait_arg __user *, arg)
{
	struct kevent_deadline until;
	struct kevent_queue *q;
	int err;

	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	err = kevent_check_ring(fd_file(f));
	if (err)
		return err;
	if (!num || flags & ~KEVENT_FLAGS_ABSTIME)
		return -EINVAL;
	err = kevent_get_deadline(&until, flags, timeout);
	if (err)
		return err;
	q = fd_file(f)->private_data;
	return kevent_fill_ring(q, min(num, q->ring.size), old_kidx, &until);
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
 * * -EXDEV: the ring belongs to another process
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

/* Settings */

static const long kevent_watches_max = LONG_MAX;

static struct ctl_table kevent_kernel_table[] = {
	{
		.procname	= "kevent_disabled",
		.data		= &kevent_disabled,
		.maxlen		= sizeof(kevent_disabled),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_TWO,
	},
	{
		.procname	= "kevent_group",
		.data		= &kevent_group,
		.maxlen		= sizeof(kevent_group),
		.mode		= 0644,
		.proc_handler	= proc_dointvec,
	},
};

static struct ctl_table kevent_fs_table[] = {
	{
		.procname	= "max_user_watches",
		.data		= &kevent_max_user_watches,
		.maxlen		= sizeof(kevent_max_user_watches),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
		.extra1		= SYSCTL_LONG_ZERO,
		.extra2		= (void *)&kevent_watches_max,
	},
};

/* Offsets and sizes that user space relies on */
static void __init kevent_check_abi(void)
{
	BUILD_BUG_ON(sizeof(struct kevent_id) != 8);
	BUILD_BUG_ON(sizeof(struct ukevent) != 40);
	BUILD_BUG_ON(offsetof(struct ukevent, type) != 8);
	BUILD_BUG_ON(offsetof(struct ukevent, event) != 12);
	BUILD_BUG_ON(offsetof(struct ukevent, req_flags) != 16);
	BUILD_BUG_ON(offsetof(struct ukevent, ret_flags) != 20);
	BUILD_BUG_ON(offsetof(struct ukevent, ret_data) != 24);
	BUILD_BUG_ON(offsetof(struct ukevent, ptr) != 32);
	BUILD_BUG_ON(sizeof(struct kevent_ring) != 128);
	BUILD_BUG_ON(offsetof(struct kevent_ring, ring_flags) != 8);
	BUILD_BUG_ON(offsetof(struct kevent_ring, ring_uidx) != 64);
	BUILD_BUG_ON(offsetof(struct kevent_ring, event) != 128);
	/* kevent_ctl_change() writes them at once. */
	BUILD_BUG_ON(offsetof(struct ukevent, ret_data) !=
		     offsetofend(struct ukevent, ret_flags));
}

/* A user may spend a twenty-fifth of low memory on watches. */
static int __init kevent_sysinit(void)
{
	struct sysinfo si;

	kevent_check_abi();
	kevent_sources_init();
	si_meminfo(&si);
	kevent_max_user_watches = ((si.totalram - si.totalhigh) / 25) <<
				  PAGE_SHIFT;
	kevent_max_user_watches /= kmem_cache_size(kevent_poll_cache) + 16;
	register_sysctl_init("kernel", kevent_kernel_table);
	register_sysctl_init("fs/kevent", kevent_fs_table);
	return 0;
}
fs_initcall(kevent_sysinit);
