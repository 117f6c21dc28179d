// SPDX-License-Identifier: GPL-2.0
/*
 * Control: kevent_ctl(), and the changes kevent_wait() makes
 *
 * Both go through an array in user memory. kevent_ctl() has entries, which share a
 * command, and hands entries back at the front of the array. kevent_wait() has
 * changes: each is an entry with a command and a result of its own.
 */

#include <linux/err.h>
#include <linux/eventfd.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/file.h>
#include <linux/kevent.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "ctl.h"
#include "mapping.h"
#include "ops.h"
#include "queue.h"
#include "watch.h"

/**
 * struct kevent_requests - requests of a call
 * @q:		the queue
 * @first:	the first one, in user memory
 * @at:		the current one there
 * @left:	how many there are from @at on
 * @cmd:	command of all entries; not of changes
 * @look:	a change has a result that the caller must look at
 * @count:	what kevent_ctl() returns
 * @now:	a copy of the current one; of an entry, @now.uk only
 * @stash:	for watches to be added
 *
 * A request is read when its turn has come. Entries that are handed back are stored
 * in front of those yet to be read.
 */
struct kevent_requests {
	struct kevent_queue	*q;
	void __user		*first;
	void __user		*at;
	u32			left;
	u32			cmd;
	bool			look;
	u32			count;
	struct kevent_change	now;
	struct kevent_stash	stash;
};

/* Reading */

static_assert(!offsetof(struct kevent_change, uk));
static_assert(sizeof(struct ukevent) == 5 * sizeof(u64));

static __always_inline u32 request_cmd(const struct kevent_requests *r,
				       bool changes)
{
	return changes ? r->now.cmd : r->cmd;
}

/*
 * Reads an entry, or a change. In line and word by word, which takes half of what
 * copy_from_user() does.
 */
static __always_inline bool request_read(struct kevent_change *now,
					 const void __user *at, bool changes)
{
	const struct kevent_change __user *from = at;
	const u64 __user *word = at;
	u64 *to = (void *)&now->uk;

	if (should_fail_usercopy() ||
	    !user_read_access_begin(from, changes ? sizeof(*from) :
						    sizeof(from->uk)))
		return false;
	unsafe_get_user(to[0], word, fault);
	unsafe_get_user(to[1], word + 1, fault);
	unsafe_get_user(to[2], word + 2, fault);
	unsafe_get_user(to[3], word + 3, fault);
	unsafe_get_user(to[4], word + 4, fault);
	if (changes) {
		unsafe_get_user(now->cmd, &from->cmd, fault);
		unsafe_get_user(now->result, &from->result, fault);
	}
	user_read_access_end();
	return true;
fault:
	user_read_access_end();
	return false;
}

/* Making */

/* Whether a request of a source may be made */
static __always_inline int request_allowed(const struct kevent_queue *q, u32 cmd,
					   u32 type,
					   const struct kevent_source_ops *ops)
{
	if (cmd > KEVENT_CTL_READY)
		return -EINVAL;
	if (unlikely(q->refuses) && (kevent_refuses_type(q, type) ||
				     kevent_refuses_cmd(q, cmd)))
		return -EPERM;
	return PTR_ERR_OR_ZERO(ops);
}

/* Consumers that this wakes are to run on this CPU, which the caller is to leave. */
static noinline int request_mark_here(struct kevent_queue *q,
				      const struct kevent_source_ops *ops,
				      const struct ukevent *uk, struct file *file)
{
	int err;

	current->kevent_handoff = 1;
	err = kevent_mark(q, ops, uk, file);
	current->kevent_handoff = 0;
	return err;
}

/* Any command but ADD */
static __always_inline int request_change(struct kevent_queue *q,
					  const struct kevent_source_ops *ops,
					  u32 cmd, const struct ukevent *uk,
					  struct file *file)
{
	switch (cmd) {
	case KEVENT_CTL_REMOVE:
		return kevent_remove(q, ops, uk, file);
	case KEVENT_CTL_MODIFY:
		return kevent_modify(q, ops, uk, file);
	default:
		if (unlikely(uk->req_flags & KEVENT_REQ_HANDOFF))
			return request_mark_here(q, ops, uk, file);
		return kevent_mark(q, ops, uk, file);
	}
}

/* Returns 0, the watch whose event is handed back, or an ERR_PTR(). */
static __always_inline struct kevent *
request_apply(struct kevent_requests *r, const struct kevent_source_ops *ops,
	      u32 cmd, struct fd f)
{
	struct ukevent *uk = &r->now.uk;

	if (cmd == KEVENT_CTL_ADD) {
		r->stash.want = r->left;
		return kevent_add(r->q, ops, uk, f, &r->stash);
	}
	return ERR_PTR(request_change(r->q, ops, cmd, uk, fd_file(f)));
}

/* Results */

static void kevent_set_result(struct ukevent *uk, int err)
{
	uk->ret_flags = KEVENT_RET_DONE;
	if (!err)
		return;
	uk->ret_flags |= KEVENT_RET_BROKEN;
	uk->ret_data[0] = 0;
	uk->ret_data[1] = err;
}

static __always_inline void kevent_put_result(struct ukevent __user *to,
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

/* Put @uk to @to and what was there to @from. */
static int kevent_hand_back(struct ukevent __user *from,
			    struct ukevent __user *to, const struct ukevent *uk)
{
	struct ukevent other;

	if (from != to && (copy_from_user(&other, to, sizeof(other)) ||
			   copy_to_user(from, &other, sizeof(other))))
		return -EFAULT;
	return copy_to_user(to, uk, sizeof(*uk)) ? -EFAULT : 0;
}

/*
 * Returns -EFAULT when an entry can't be handed back. A result that can't be written
 * is no reason to deny that the request was fulfilled.
 */
static __always_inline int entry_put(struct kevent_requests *r,
				     struct ukevent *uk, int result)
{
	struct ukevent __user *first = r->first;
	int err;

	if (likely(r->cmd != KEVENT_CTL_ADD)) {
		kevent_put_result(r->at, uk);
		r->count += r->cmd == KEVENT_CTL_READY ? !result : !!result;
		return 0;
	}
	if (!result)
		return 0;
	err = kevent_hand_back(r->at, first + r->count, uk);
	r->count += !err;
	return err;
}

static noinline int change_put(struct kevent_requests *r,
			       struct kevent_change *c, int result)
{
	struct kevent_change __user *to = r->at;

	c->result = result;
	r->look |= result;
	if (result > 0)
		return copy_to_user(to, c, sizeof(*c)) ? -EFAULT : 0;
	kevent_put_result(&to->uk, &c->uk);
	if (put_user(c->result, &to->result))
		r->look = true;
	return 0;
}

/* Give the caller the @result: 0, 1 when an event is handed back, or -errno. */
static __always_inline int request_put(struct kevent_requests *r, bool changes,
				       int result)
{
	struct ukevent *uk = &r->now.uk;

	if (result <= 0)
		kevent_set_result(uk, result);
	return changes ? change_put(r, &r->now, result) :
			 entry_put(r, uk, result);
}

static noinline int request_hand_back(struct kevent_requests *r, bool changes,
				      struct kevent *ke)
{
	kevent_handed_back(ke, !request_put(r, changes, 1));
	return 0;
}

/* The iterator */

static __always_inline int request_make(struct kevent_requests *r, bool changes)
{
	const struct kevent_source_ops *ops = kevent_source(r->now.uk.type);
	u32 cmd = request_cmd(r, changes);
	struct fd f = EMPTY_FD;
	struct kevent *ke;
	int err;

	err = request_allowed(r->q, cmd, r->now.uk.type, ops);
	if (err)
		return request_put(r, changes, err);
	if (ops->file) {
		f = fdget(r->now.uk.id.raw[0]);
		if (!fd_file(f))
			return request_put(r, changes, -EBADF);
	}
	ke = request_apply(r, ops, cmd, f);
	err = IS_ERR_OR_NULL(ke) ? request_put(r, changes, PTR_ERR_OR_ZERO(ke)) :
				   request_hand_back(r, changes, ke);
	fdput(f);
	return err;
}

/* Hand-off */

#ifdef CONFIG_EVENTFD
/* Not by write(), which would wait while the counter is full. */
static int eventfd_ring(struct file *file)
{
	struct eventfd_ctx *ctx = eventfd_ctx_fileget(file);

	if (IS_ERR(ctx))
		return -EINVAL;
	current->kevent_handoff = 1;
	eventfd_signal(ctx);
	current->kevent_handoff = 0;
	eventfd_ctx_put(ctx);
	return 0;
}
#else
static int eventfd_ring(struct file *file)
{
	return -EINVAL;
}
#endif

static bool is_handoff(const struct kevent_requests *r)
{
	return r->now.cmd == KEVENT_CTL_READY &&
	       r->now.uk.req_flags & KEVENT_REQ_HANDOFF;
}

/*
 * A change that is for another queue, or for an eventfd. What the caller may do there
 * by a call of its own it may do here: of the other queue its refusals hold.
 */
static noinline int change_hand_off(struct kevent_requests *r)
{
	struct kevent_queue *own = r->q;
	int err;

	CLASS(fd, f)(r->now.result);
	if (!fd_file(f))
		return request_put(r, true, -EBADF);
	if (!is_kevent_file(fd_file(f)))
		return request_put(r, true, eventfd_ring(fd_file(f)));
	r->q = fd_file(f)->private_data;
	err = request_make(r, true);
	r->q = own;
	return err;
}

static __always_inline int request_one(struct kevent_requests *r, bool changes)
{
	if (changes && unlikely(is_handoff(r)))
		return change_hand_off(r);
	return request_make(r, changes);
}

/* Requests between two looks for signals, and for other tasks that want the CPU */
#define REQUESTS_AT_ONCE	16

static __always_inline int requests_pause(const struct kevent_requests *r)
{
	if (r->left % REQUESTS_AT_ONCE)
		return 0;
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* Returns 0 or what ended it early. Without progress that is the caller's error. */
static __always_inline int requests_all(struct kevent_requests *r, bool changes,
					u32 stride)
{
	int err = 0;

	kevent_stash_init(&r->stash);
	for (; r->left && !err; r->left--) {
		err = requests_pause(r);
		if (err)
			break;
		if (!request_read(&r->now, r->at, changes)) {
			err = -EFAULT;
			break;
		}
		err = request_one(r, changes);
		if (!err)
			r->at += stride;
	}
	kevent_stash_drop(&r->stash);
	return err;
}

static __always_inline void requests_init(struct kevent_requests *r,
					  struct kevent_queue *q,
					  void __user *user, u32 nr)
{
	r->q = q;
	r->first = user;
	r->at = user;
	r->left = nr;
	r->look = false;
	r->count = 0;
}

/* kevent_ctl() */

/* ADD of one entry has failed, or returns the event of a watch. */
static noinline int single_hand_back(struct ukevent __user *to,
				     struct ukevent *uk, struct kevent *ke)
{
	bool copied;

	if (IS_ERR(ke))
		kevent_set_result(uk, PTR_ERR(ke));
	copied = !kevent_hand_back(to, to, uk);
	if (IS_ERR(ke))
		return copied ? 1 : -EFAULT;
	kevent_handed_back(ke, copied);
	return copied;
}

static __always_inline int single_make(struct kevent_queue *q,
				       const struct kevent_source_ops *ops,
				       u32 cmd, struct ukevent *uk, struct fd f,
				       struct ukevent __user *arg)
{
	struct kevent *ke;
	int err;

	if (cmd == KEVENT_CTL_ADD) {
		ke = kevent_add(q, ops, uk, f, NULL);
		return ke ? single_hand_back(arg, uk, ke) : 0;
	}
	err = request_change(q, ops, cmd, uk, fd_file(f));
	kevent_set_result(uk, err);
	kevent_put_result(arg, uk);
	return cmd == KEVENT_CTL_READY ? !err : !!err;
}

static noinline int single_refused(struct ukevent __user *arg, u32 cmd,
				   struct ukevent *uk, int err)
{
	if (cmd == KEVENT_CTL_ADD)
		return single_hand_back(arg, uk, ERR_PTR(err));
	kevent_set_result(uk, err);
	kevent_put_result(arg, uk);
	return cmd != KEVENT_CTL_READY;
}

/* One entry, which most calls have, without what an array of them takes */
static __always_inline int kevent_ctl_single(struct kevent_queue *q, u32 cmd,
					     struct ukevent __user *arg)
{
	struct kevent_change now __uninitialized;
	const struct kevent_source_ops *ops;
	struct fd f = EMPTY_FD;
	int ret;

	if (!request_read(&now, arg, false))
		return -EFAULT;
	ops = kevent_source(now.uk.type);
	ret = request_allowed(q, cmd, now.uk.type, ops);
	if (ret)
		return single_refused(arg, cmd, &now.uk, ret);
	if (ops->file) {
		f = fdget(now.uk.id.raw[0]);
		if (!fd_file(f))
			return single_refused(arg, cmd, &now.uk, -EBADF);
	}
	ret = single_make(q, ops, cmd, &now.uk, f, arg);
	fdput(f);
	return ret;
}

static noinline int kevent_ctl_entries(struct kevent_queue *q, u32 cmd, u32 num,
				       struct ukevent __user *arg)
{
	struct kevent_requests r __uninitialized;
	int err;

	requests_init(&r, q, arg, num);
	r.cmd = cmd;
	err = requests_all(&r, false, sizeof(*arg));
	return err && r.at == r.first ? err : r.count;
}

/* @arg is where the caller has mapped the ring, @num its size. */
static int kevent_ctl_attach(struct kevent_queue *q, u32 num,
			     struct ukevent __user *arg)
{
	struct kring ring;
	int err;

	if (kevent_refuses_cmd(q, KEVENT_CTL_ATTACH))
		return -EPERM;
	if (!q->ring.size || num != q->ring.size)
		return -EINVAL;
	err = kring_check(&ring, (struct kevent_ring __user *)arg, num) ?:
	      kring_check_rights(&ring);
	return err ?: kevent_ring_attach(q, &ring);
}

static int kevent_ctl_wake(struct kevent_queue *q)
{
	if (kevent_refuses_cmd(q, KEVENT_CTL_READY))
		return -EPERM;
	kevent_wake_one(q);
	return 0;
}

/* Commands without entries */
static noinline int kevent_ctl_queue(struct kevent_queue *q, u32 cmd, u32 num,
				     struct ukevent __user *arg)
{
	switch (cmd) {
	case KEVENT_CTL_ATTACH:
		return kevent_ctl_attach(q, num, arg);
	case KEVENT_CTL_READY:
		return kevent_ctl_wake(q);
	default:
		return -EINVAL;
	}
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
 * %KEVENT_CTL_ATTACH is different: @arg is where the caller has the memory of
 * the ring, and @num the size of the ring. kevent_wait() and kevent_commit()
 * work there from then on.
 *
 * Return: ADD: entries handed back, which are then the first in @arg; they are
 * ready at once, or failed. REMOVE, MODIFY: entries that failed. READY: entries
 * marked. ATTACH: 0. Or
 * * -EBADF: @fd is not open
 * * -EINVAL: @fd is not a queue, unknown @cmd, @num too large. ATTACH: @fd has
 *   no ring, or one of another size, or @arg is not aligned, or not that ring
 * * -EFAULT: the first entry cannot be read, or cannot be handed back. ATTACH:
 *   the caller may not write all of the memory
 * * -EINTR: killed before the first entry
 * * -ENOSPC: ATTACH: too many processes, or the owner of the queue is charged with
 *   too much
 * * -ENOMEM: ATTACH
 * * -EPERM: the queue refuses ATTACH, or READY
 */
SYSCALL_DEFINE4(kevent_ctl, int, fd, u32, cmd, u32, num,
		struct ukevent __user *, arg)
{
	struct kevent_queue *q;

	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	if (!is_kevent_file(fd_file(f)))
		return -EINVAL;
	q = fd_file(f)->private_data;
	if (unlikely(cmd >= KEVENT_CTL_READY && (cmd > KEVENT_CTL_READY || !num)))
		return kevent_ctl_queue(q, cmd, num, arg);
	if (num == 1)
		return kevent_ctl_single(q, cmd, arg);
	if (num > KEVENT_CTL_MAX)
		return -EINVAL;
	return kevent_ctl_entries(q, cmd, num, arg);
}

/**
 * kevent_make_changes - make the changes of a kevent_wait() call
 * @q: the queue
 * @changes: the changes; results are put there
 * @nr: how many
 *
 * Return: 0 when all were made, 1 when the caller must look at the results, or
 * none could be made: -EFAULT, -EINTR on a fatal signal.
 */
int kevent_make_changes(struct kevent_queue *q,
			struct kevent_change __user *changes, u32 nr)
{
	struct kevent_requests r __uninitialized;
	int err;

	requests_init(&r, q, changes, nr);
	err = requests_all(&r, true, sizeof(*changes));
	return err && r.at == r.first ? err : err || r.look;
}
