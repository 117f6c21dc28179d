// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * kevent_ctl(), and the changes of kevent_wait()
 */
#include <fcntl.h>
#include <poll.h>

#include "api/own.h"
#include "api/process.h"
#include "fallback.h"
#include "ops.h"
#include "sys.h"

/* May the request be made? 0 or -errno */
static int fb_allowed(const struct fb_queue *q, __u32 cmd,
		      const struct ukevent *uk)
{
	__u32 refuses = q->refuses;
	__u32 type = uk->type < KEVENT_BOUND ? KEVENT_INIT_REFUSE(uk->type) :
					       KEVENT_INIT_REFUSE_LATER;

	if (cmd > KEVENT_CTL_READY)
		return -EINVAL;
	if (refuses & type ||
	    (refuses & KEVENT_INIT_REFUSE_READY && cmd == KEVENT_CTL_READY) ||
	    (refuses & KEVENT_INIT_REFUSE_CHANGE &&
	     (cmd == KEVENT_CTL_MODIFY || cmd == KEVENT_CTL_REMOVE)))
		return -EPERM;
	if (uk->type >= FB_NR_TYPES)
		return -EINVAL;
	return fb_has_type(uk->type) ? 0 : -ENOSYS;
}

/* 0, 1 when an event is handed back, or -errno */
static int fb_apply(struct fb_queue *q, __u32 cmd, struct ukevent *uk)
{
	int ret = fb_allowed(q, cmd, uk);

	if (ret)
		return ret;
	switch (cmd) {
	case KEVENT_CTL_ADD:
		ret = fb_add(q, uk);
		break;
	case KEVENT_CTL_REMOVE:
		ret = fb_remove(q, uk);
		break;
	case KEVENT_CTL_MODIFY:
		ret = fb_modify(q, uk);
		break;
	default:
		ret = fb_mark(q, uk);
	}
	return ret < 0 ? fb_fd_error(uk, ret) : ret;
}

void fb_set_result(struct ukevent *uk, int ret)
{
	uk->ret_flags = KEVENT_RET_DONE;
	if (!ret)
		return;
	uk->ret_flags |= KEVENT_RET_BROKEN;
	uk->ret_data[0] = 0;
	uk->ret_data[1] = (__u32)ret;
}

/* The same, with the result in the entry */
static int fb_make(struct fb_queue *q, __u32 cmd, struct ukevent *uk)
{
	int ret = fb_apply(q, cmd, uk);

	if (ret <= 0)
		fb_set_result(uk, ret);
	return ret;
}

/* Entries of ADD that the caller must look at go to the front; others of ADD stay as they are. */
static int fb_make_all(struct fb_queue *q, __u32 cmd, __u32 num,
		       struct ukevent *arg)
{
	struct ukevent uk;
	__u32 i, count = 0;
	int ret;

	for (i = 0; i < num; i++) {
		uk = arg[i];
		ret = fb_make(q, cmd, &uk);
		if (cmd != KEVENT_CTL_ADD) {
			arg[i] = uk;
		} else if (ret) {
			arg[i] = arg[count];
			arg[count] = uk;
		}
		count += cmd == KEVENT_CTL_READY ? !ret : !!ret;
	}
	return (int)count;
}

/* One for each that sleeps, and one for the next one that finds nothing */
static int fb_wake_one(struct fb_queue *q)
{
	__u32 sleepers = __atomic_load_n(&q->sleepers.nr, __ATOMIC_SEQ_CST);

	if (q->refuses & KEVENT_INIT_REFUSE_READY)
		return -EPERM;
	if (q->sleepers.ended)
		return 0;
	if (q->sleepers.wakes <= sleepers)
		__atomic_store_n(&q->sleepers.wakes, q->sleepers.wakes + 1, __ATOMIC_RELAXED);
	fb_kick(q);
	return 0;
}

/* All sleeping calls become a herd, and check the queue once more. Single requests are dropped. */
static int fb_wake_all(struct fb_queue *q)
{
	if (q->refuses & KEVENT_INIT_REFUSE_READY)
		return -EPERM;
	__atomic_store_n(&q->sleepers.ended, true, __ATOMIC_RELEASE);
	__atomic_store_n(&q->sleepers.wakes, 0, __ATOMIC_RELAXED);
	fb_kick_all(q);
	return 0;
}

static int fb_ctl_locked(struct fb_queue *q, __u32 cmd, __u32 num,
			 struct ukevent *arg)
{
	if (cmd == KEVENT_CTL_ATTACH && q->refuses & KEVENT_INIT_REFUSE_ATTACH)
		return -EPERM;
	if (cmd == KEVENT_CTL_ATTACH)
		return q->ring.mem && num == q->ring.size ? -EOPNOTSUPP : -EINVAL;
	if (cmd == KEVENT_CTL_WAKE_ALL)
		return num || arg ? -EINVAL : fb_wake_all(q);
	if (cmd > KEVENT_CTL_READY || num > KEVENT_CTL_MAX)
		return -EINVAL;
	if (cmd == KEVENT_CTL_READY && !num)
		return fb_wake_one(q);
	if (num && !arg)
		return -EFAULT;
	return fb_make_all(q, cmd, num, arg);
}

/* KEVENT_FB_PASS: it is no descriptor of the queue. Marks, which are to kick, find out by that. */
static int fb_ctl_named(struct fb_queue *q, int fd, __u32 cmd, __u32 num,
			struct ukevent *arg)
{
	int ret;

	FB_HOLD_QUEUE(q, -1);
	if (cmd == KEVENT_CTL_READY ? fb_kick_first(q, fd) :
				      fb_queue_check(q, fd))
		return KEVENT_FB_PASS;
	__atomic_store_n(&q->fd, fd, __ATOMIC_RELAXED);
	ret = fb_ctl_locked(q, cmd, num, arg);
	fb_kick_if_needed(q);
	return ret;
}

int kevent_fb_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	struct fb_queue *q FB_PUT = fb_get(fd);
	int ret;

	if (!q)
		return KEVENT_FB_PASS;
	if (!kevent_process_is(q->process))
		return fb_queue_abroad(q, fd);
	ret = fb_ctl_named(q, fd, cmd, num, arg);
	return ret == KEVENT_FB_PASS ? fb_not_this(fd, q) : ret;
}

/* As close() of the kernel, which asks no one: a queue that refuses REMOVE is no exception. */
static void fb_unwatch(struct fb_queue *q, int file)
{
	struct ukevent uk = { .id.raw[0] = (__u32)file };

	for (; uk.type < FB_NR_TYPES; uk.type++)
		if (fb_sources[uk.type] && fb_sources[uk.type]->fd)
			(void)fb_remove(q, &uk);
}

void kevent_fb_unwatch(int fd, int file)
{
	struct fb_queue *q FB_PUT = fb_get(fd);

	if (!q || !kevent_process_is(q->process))
		return;
	FB_HOLD_QUEUE(q, -1);
	if (!fb_queue_check(q, fd))
		fb_unwatch(q, file);
}

/*
 * Another thread may close the number, and have another file there, at any time. So a copy is
 * written to, if there is a number for it. No other file is copied: its locks would end with that.
 */
static int fb_ring(int fd)
{
	static const __u64 one = 1;
	int copy, file;
	bool is;

	if (fb_sys(SYS_fcntl, fd, F_GETFD) < 0)
		return -EBADF;
	if (fb_is_kind(fd, "[eventfd]") <= 0)
		return -EINVAL;
	copy = (int)fb_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kevent_own_from);
	file = copy < 0 ? fd : copy;
	is = fb_is_kind(file, "[eventfd]") > 0;
	/* A counter that is full has an event under way: do not wait for it. */
	if (is && fb_poll(file, POLLOUT) & POLLOUT)
		fb_sys(SYS_write, file, &one, sizeof(one));
	fb_close_local(copy);
	return is ? 0 : -EINVAL;
}

/* A change that is for another queue, or for an eventfd; it has no lock. */
static int fb_hand_off(struct kevent_change *c)
{
	int fd = c->result, ret = -EINVAL;

	if (kevent_fb_has(fd))
		ret = kevent_fb_ctl(fd, KEVENT_CTL_READY, 1, &c->uk);
	if (ret >= 0)
		return ret ? 0 : (int)c->uk.ret_data[1];
	/* The number was that of a queue once. */
	if (ret == KEVENT_FB_PASS || !kevent_fb_has(fd))
		ret = fb_ring(fd);
	fb_set_result(&c->uk, ret);
	return ret;
}

static int fb_change(struct fb_queue *q, int fd, struct kevent_change *c)
{
	if (c->cmd == KEVENT_CTL_READY && c->uk.req_flags & KEVENT_REQ_HANDOFF)
		return fb_hand_off(c);
	FB_HOLD_QUEUE(q, fd);
	return fb_make(q, c->cmd, &c->uk);
}

int fb_make_changes(struct fb_queue *q, int fd, struct kevent_change *changes,
		    __u32 nr)
{
	bool look = false;
	__u32 i;

	if (!changes)
		return -EFAULT;
	for (i = 0; i < nr; i++) {
		changes[i].result = fb_change(q, fd, &changes[i]);
		look |= changes[i].result != 0;
	}
	return look;
}
