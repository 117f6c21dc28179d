// SPDX-License-Identifier: GPL-2.0
/*
 * Control: kevent_ctl(), and the changes kevent_wait() makes
 *
 * kevent_ctl() has entries, which share a command, and hands entries back at the front of their
 * array. kevent_wait() has changes: each is an entry with a command and a result of its own.
 */

#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/eventfd.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/file.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "core/queue.h"
#include "core/queue_ring.h"
#include "core/source_ops.h"
#include "core/wait.h"
#include "core/wake.h"
#include "core/watch.h"
#include "ctl.h"
#include "host.h"

/**
 * struct kevent_requests - requests of a call
 * @q:		the queue
 * @first:	the first one, in user memory
 * @at:		the current one there
 * @left:	how many there are from @at on
 * @changes:	they are changes
 * @count:	what kevent_ctl() returns; of changes, how many results are not 0
 *
 * A request is read when its turn has come. Entries that are handed back are stored
 * in front of those yet to be read.
 */
struct kevent_requests {
	struct kevent_queue	*q;
	void __user		*first;
	void __user		*at;
	u32			left;
	bool			changes;
	u32			count;
};

static_assert(!offsetof(struct kevent_change, uk));
static_assert(sizeof(struct ukevent) == 5 * sizeof(u64));

/*
 * Word by word, which takes half of what copy_from_user() does. The command of an entry is
 * that of all entries, and stays.
 */
static bool request_read(const struct kevent_requests *r,
			 struct kevent_change *now)
{
	const struct kevent_change __user *from = r->at;
	const u64 __user *word = r->at;
	u64 *to = (void *)&now->uk;

	if (should_fail_usercopy() ||
	    !user_read_access_begin(from, r->changes ? sizeof(*from) :
						       sizeof(from->uk)))
		return false;
	unsafe_get_user(to[0], word, fault);
	unsafe_get_user(to[1], word + 1, fault);
	unsafe_get_user(to[2], word + 2, fault);
	unsafe_get_user(to[3], word + 3, fault);
	unsafe_get_user(to[4], word + 4, fault);
	if (r->changes) {
		unsafe_get_user(now->cmd, &from->cmd, fault);
		unsafe_get_user(now->result, &from->result, fault);
	}
	user_read_access_end();
	return true;
fault:
	user_read_access_end();
	return false;
}

/* Consumers that a hand-off wakes are to run on this CPU, which the caller is to leave. */
static int request_mark(struct kevent_queue *q,
			const struct kevent_source_ops *ops,
			const struct ukevent *uk, struct file *file)
{
	bool here = unlikely(uk->req_flags & KEVENT_REQ_HANDOFF);
	int err;

	if (here)
		host_handoff_begin();
	err = kevent_mark(q, ops, uk, file);
	if (here)
		host_handoff_end();
	return err;
}

/*
 * Returns 0, 1 when the event of @back is handed back, or -errno. The caller has to fdput()
 * @f.
 */
static int request_make(struct kevent_queue *q, struct kevent_change *now,
			struct fd *f, struct kevent **back)
{
	const struct kevent_source_ops *ops = kevent_source(now->uk.type);
	struct kevent *ke;

	if (now->cmd > KEVENT_CTL_READY)
		return -EINVAL;
	if (unlikely(q->refuses) && (kevent_refuses_type(q, now->uk.type) ||
				     kevent_refuses_cmd(q, now->cmd)))
		return -EPERM;
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	/* Of a type that is driven the library makes it: it has to arm the watch. */
	if (HOST_DRIVES && unlikely(ops->flags & ~now->uk.req_flags & KEVENT_REQ_DRIVEN))
		return -ENOIOCTLCMD;
	if (ops->flags & KEVENT_SOURCE_FILE) {
		*f = fdget(now->uk.id.raw[0]);
		if (!fd_file(*f))
			return -EBADF;
		if (now->uk.id.raw[1])
			return -EINVAL;
	}
	switch (now->cmd) {
	case KEVENT_CTL_ADD:
		ke = kevent_add(q, ops, &now->uk, *f);
		if (IS_ERR(ke))
			return PTR_ERR(ke);
		*back = ke;
		return !!ke;
	case KEVENT_CTL_REMOVE:
		return kevent_remove(q, ops, &now->uk, fd_file(*f));
	case KEVENT_CTL_MODIFY:
		return kevent_modify(q, ops, &now->uk, fd_file(*f));
	default:
		return request_mark(q, ops, &now->uk, fd_file(*f));
	}
}

static void kevent_put_result(struct ukevent __user *to,
			      const struct ukevent *uk)
{
	if (!user_write_access_begin(to, sizeof(*to)))
		return;
	unsafe_put_user(uk->ret_flags, &to->ret_flags, out);
	if (likely(!(uk->ret_flags & KEVENT_RET_BROKEN)))
		goto out;
	unsafe_put_user(uk->ret_data[0], &to->ret_data[0], out);
	unsafe_put_user(uk->ret_data[1], &to->ret_data[1], out);
out:
	user_write_access_end();
}

/*
 * Returns -EFAULT when an entry can't be handed back. A result that can't be written
 * is no reason to deny that the request was fulfilled.
 */
static int entry_put(struct kevent_requests *r, struct kevent_change *now,
		     int result)
{
	struct ukevent __user *to = (struct ukevent __user *)r->first + r->count;

	if (likely(now->cmd != KEVENT_CTL_ADD)) {
		kevent_put_result(r->at, &now->uk);
		r->count += now->cmd == KEVENT_CTL_READY ? !result : !!result;
		return 0;
	}
	if (!result)
		return 0;
	/* Swap two entries: those that are handed back come first in the array. */
	if (r->at != to) {
		/* Declared here: INIT_STACK_ALL_ZERO would clear it for each request. */
		struct ukevent other;

		if (copy_from_user(&other, to, sizeof(other)) ||
		    copy_to_user(r->at, &other, sizeof(other)))
			return -EFAULT;
	}
	if (copy_to_user(to, &now->uk, sizeof(*to)))
		return -EFAULT;
	r->count++;
	return 0;
}

/* The caller has to look at a result that can't be written, too. */
static int change_put(struct kevent_requests *r, struct kevent_change *now,
		      int result)
{
	struct kevent_change __user *to = r->at;

	now->result = result;
	r->count += !!result;
	if (result > 0)
		return copy_to_user(to, now, sizeof(*now)) ? -EFAULT : 0;
	kevent_put_result(&to->uk, &now->uk);
	if (put_user(result, &to->result))
		r->count++;
	return 0;
}

/* Give the caller the @result: 0, 1 when an event is handed back, or -errno. */
static int request_put(struct kevent_requests *r, struct kevent_change *now,
		       int result)
{
	if (HOST_DRIVES && unlikely(result == -ENOIOCTLCMD)) {
		now->uk.ret_flags = KEVENT_RET_DONE | KEVENT_RET_DRIVE;
		result = -ENOSYS;
	} else if (result < 0) {
		now->uk.ret_flags = KEVENT_RET_DONE | KEVENT_RET_BROKEN;
		now->uk.ret_data[0] = 0;
		now->uk.ret_data[1] = result;
	} else if (!result) {
		now->uk.ret_flags = KEVENT_RET_DONE;
	}
	return r->changes ? change_put(r, now, result) :
			    entry_put(r, now, result);
}

/* Not by write(), which would wait while the counter is full. */
static int eventfd_ring(struct file *file)
{
	struct eventfd_ctx *ctx = eventfd_ctx_fileget(file);

	if (IS_ERR(ctx))
		return -EINVAL;
	host_handoff_begin();
	eventfd_signal(ctx);
	host_handoff_end();
	eventfd_ctx_put(ctx);
	return 0;
}

static int request_one(struct kevent_requests *r, struct kevent_change *now)
{
	struct fd f = EMPTY_FD, to = EMPTY_FD;
	struct kevent_queue *q = r->q;
	struct kevent *back = NULL;
	int result, err;

	if (unlikely(r->changes && now->cmd == KEVENT_CTL_READY &&
		     now->uk.req_flags & KEVENT_REQ_HANDOFF)) {
		/* For another queue, whose refusals hold, or an eventfd */
		to = fdget(now->result);
		q = NULL;
		if (!fd_file(to))
			result = -EBADF;
		else if (is_kevent_file(fd_file(to)))
			q = fd_file(to)->private_data;
		else
			result = eventfd_ring(fd_file(to));
	}
	if (q)
		result = request_make(q, now, &f, &back);
	err = request_put(r, now, result);
	if (back) {
		kevent_add_end(back, err);
		err = 0;
	}
	fdput(f);
	fdput(to);
	return err;
}

/* Requests between two looks for signals, and for other tasks that want the CPU */
#define REQUESTS_AT_ONCE	16

/*
 * Make @nr requests, up to one whose result can't be given or that can't be read. Returns
 * the count, see &struct kevent_requests, or the error if that was the first one.
 */
static int requests_all(struct kevent_queue *q, void __user *user, u32 nr,
			u32 cmd, bool changes)
{
	struct kevent_requests r = {
		.q = q, .first = user, .at = user, .left = nr, .changes = changes,
	};
	struct kevent_change now __uninitialized;
	int err = 0;

	now.cmd = cmd;
	for (; r.left && !err; r.left--) {
		if (!(r.left % REQUESTS_AT_ONCE)) {
			cond_resched();
			if (fatal_signal_pending(current)) {
				err = -EINTR;
				break;
			}
		}
		err = request_read(&r, &now) ? request_one(&r, &now) : -EFAULT;
		if (!err)
			r.at += changes ? sizeof(now) : sizeof(now.uk);
	}
	return err && r.at == user ? err : r.count + (changes && err);
}

/* kevent_ctl() */

/* Commands without entries */
static int kevent_ctl_queue(struct kevent_queue *q, u32 cmd, u32 num,
			    struct ukevent __user *arg)
{
	struct kring ring;
	int err;

	if (cmd > KEVENT_CTL_WAKE_ALL)
		return -EINVAL;
	if (kevent_refuses_cmd(q, cmd))
		return -EPERM;
	switch (cmd) {
	case KEVENT_CTL_ATTACH:
		/* @arg is where the caller has mapped the ring, @num its size. */
		if (!q->ring.size || num != q->ring.size)
			return -EINVAL;
		err = kring_check(&ring, (struct kevent_ring __user *)arg, num) ?:
		      kring_check_rights(&ring) ?: kevent_ring_attach(q, &ring);
		/* No consumer may be on the way to what is queued. */
		if (!err)
			kevent_say_more(q);
		return err;
	case KEVENT_CTL_WAKE_ALL:
		if (num || arg)
			return -EINVAL;
		kevent_request_all(q);
		return 0;
	default:
		kevent_request_one(q);
		return 0;
	}
}

/* @file is that of any descriptor, which the caller has pinned. */
int kevent_do_ctl(struct file *file, u32 cmd, u32 num,
		  struct ukevent __user *arg)
{
	struct kevent_queue *q;

	if (!is_kevent_file(file))
		return -EINVAL;
	q = file->private_data;
	if (unlikely(cmd >= KEVENT_CTL_READY && (cmd > KEVENT_CTL_READY || !num)))
		return kevent_ctl_queue(q, cmd, num, arg);
	if (num > KEVENT_CTL_MAX)
		return -EINVAL;
	return requests_all(q, arg, num, cmd, false);
}

SYSCALL_DEFINE4(kevent_ctl, int, fd, u32, cmd, u32, num,
		struct ukevent __user *, arg)
{
	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	return kevent_do_ctl(fd_file(f), cmd, num, arg);
}

/*
 * Make the changes of a kevent_wait() call, and put results there. Returns 0 when all were
 * made, 1 when the caller must look at the results, or -errno if none could be made.
 */
int kevent_make_changes(struct kevent_queue *q,
			struct kevent_change __user *changes, u32 nr)
{
	return min(requests_all(q, changes, nr, 0, true), 1);
}
