// SPDX-License-Identifier: GPL-2.0
/*
 * Control: kevent_ctl(), and the changes kevent_wait() makes
 *
 * Both go through an array in user memory. kevent_ctl() has entries, which share a
 * command, and hands entries back at the front of the array. kevent_wait() has
 * changes: each is an entry with a command and a result of its own.
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/kevent.h>
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
 * @stride:	from one to the next, in bytes
 * @cmd:	command of all entries; not of changes
 * @changes:	these are changes
 * @look:	a change has a result that the caller must look at
 * @count:	what kevent_ctl() returns
 * @some:	copies of some, from the current one on, @stride apart. Each begins
 *		with a &struct ukevent. Entries that are handed back are stored in
 *		front of those yet to be read
 * @stash:	for watches to be added
 */
struct kevent_requests {
	struct kevent_queue	*q;
	void __user		*first;
	void __user		*at;
	u32			stride;
	u32			cmd;
	bool			changes;
	bool			look;
	u32			count;
	struct kevent_change	some[KEVENT_CTL_BATCH];
	struct kevent_stash	stash;
};

/* Reading */

static_assert(!offsetof(struct kevent_change, uk));

static __always_inline struct ukevent *request_next(struct kevent_requests *r,
						    struct ukevent *uk)
{
	return (void *)uk + r->stride;
}

static __always_inline u32 request_cmd(const struct kevent_requests *r,
				       const struct ukevent *uk)
{
	return r->changes ? container_of(uk, struct kevent_change, uk)->cmd :
			    r->cmd;
}

/* Read up to @nr requests; where not all are readable, one. Returns how many. */
static u32 requests_read(struct kevent_requests *r, u32 nr)
{
	nr = min(nr, KEVENT_CTL_BATCH);
	if (nr > 1 && !copy_from_user(r->some, r->at, (size_t)nr * r->stride))
		return nr;
	/* With a constant size it is known that they fit. */
	if (r->changes)
		return !copy_from_user(r->some, r->at, sizeof(*r->some));
	return !copy_from_user(r->some, r->at, sizeof(r->some->uk));
}

/* For as many of the @nr requests as add one of the type that is added first */
static void requests_stash(struct kevent_requests *r, u32 nr)
{
	struct ukevent *uk = &r->some[0].uk;
	u32 type = 0, adds = 0;

	if (!r->changes && r->cmd != KEVENT_CTL_ADD) {
		kevent_stash_none(&r->stash);
		return;
	}
	for (; nr--; uk = request_next(r, uk)) {
		if (request_cmd(r, uk) != KEVENT_CTL_ADD)
			continue;
		if (!adds)
			type = uk->type;
		adds += uk->type == type;
	}
	kevent_stash_init(&r->stash, type, adds);
}

/* Making */

/*
 * Whether a request may be made, and the file it is about, if it is about one; the
 * caller fdput()s it.
 */
static int kevent_ctl_file(const struct kevent_queue *q, u32 cmd,
			   const struct ukevent *uk, struct fd *f)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);

	*f = EMPTY_FD;
	if (cmd > KEVENT_CTL_READY)
		return -EINVAL;
	if (unlikely(q->refuses) && (kevent_refuses_type(q, uk->type) ||
				     kevent_refuses_cmd(q, cmd)))
		return -EPERM;
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	if (!ops->file)
		return 0;
	*f = fdget(uk->id.raw[0]);
	return fd_file(*f) ? 0 : -EBADF;
}

/* Returns 0, the watch whose event is handed back, or an ERR_PTR(). */
static struct kevent *request_apply(struct kevent_requests *r, u32 cmd,
				    struct ukevent *uk, struct file *file)
{
	switch (cmd) {
	case KEVENT_CTL_ADD:
		return kevent_add(r->q, uk, file, &r->stash);
	case KEVENT_CTL_REMOVE:
		return ERR_PTR(kevent_remove(r->q, uk, file));
	case KEVENT_CTL_MODIFY:
		return ERR_PTR(kevent_modify(r->q, uk, file));
	default:
		return ERR_PTR(kevent_mark(r->q, uk, file));
	}
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

static void kevent_put_result(struct ukevent __user *to,
			      const struct ukevent *uk)
{
	if (!user_write_access_begin(to, sizeof(*to)))
		return;
	unsafe_put_user(uk->ret_flags, &to->ret_flags, out);
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
static __always_inline int request_put(struct kevent_requests *r,
				       struct ukevent *uk, int result)
{
	if (result <= 0)
		kevent_set_result(uk, result);
	if (r->changes)
		return change_put(r, container_of(uk, struct kevent_change, uk),
				  result);
	return entry_put(r, uk, result);
}

/* The iterator */

static int request_make(struct kevent_requests *r, struct ukevent *uk)
{
	u32 cmd = request_cmd(r, uk);
	struct kevent *ke;
	struct fd f;
	int err;

	err = kevent_ctl_file(r->q, cmd, uk, &f);
	ke = err ? ERR_PTR(err) : request_apply(r, cmd, uk, fd_file(f));
	if (IS_ERR_OR_NULL(ke)) {
		err = request_put(r, uk, PTR_ERR_OR_ZERO(ke));
	} else {
		err = request_put(r, uk, 1);
		kevent_handed_back(ke, !err);
		err = 0;
	}
	fdput(f);
	return err;
}

static int requests_some(struct kevent_requests *r, u32 nr)
{
	struct ukevent *uk = &r->some[0].uk;
	int err;

	for (; nr--; uk = request_next(r, uk), r->at += r->stride) {
		if (fatal_signal_pending(current))
			return -EINTR;
		err = request_make(r, uk);
		if (err)
			return err;
	}
	cond_resched();
	return 0;
}

/* Returns 0 or what ended it early. Without progress that is the caller's error. */
static int requests_all(struct kevent_requests *r, u32 num)
{
	int err = 0;
	u32 nr;

	for (; num && !err; num -= nr) {
		nr = requests_read(r, num);
		if (!nr)
			return -EFAULT;
		requests_stash(r, nr);
		err = requests_some(r, nr);
		kevent_stash_drop(&r->stash);
	}
	return err;
}

static void requests_init(struct kevent_requests *r, struct kevent_queue *q,
			  void __user *user, u32 stride)
{
	r->q = q;
	r->first = user;
	r->at = user;
	r->stride = stride;
	r->look = false;
	r->count = 0;
}

/* kevent_ctl() */

static int kevent_ctl_entries(struct kevent_queue *q, u32 cmd, u32 num,
			      struct ukevent __user *arg)
{
	struct kevent_requests r __uninitialized;
	int err;

	requests_init(&r, q, arg, sizeof(*arg));
	r.changes = false;
	r.cmd = cmd;
	err = requests_all(&r, num);
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
	if (cmd == KEVENT_CTL_ATTACH)
		return kevent_ctl_attach(q, num, arg);
	if (cmd > KEVENT_CTL_READY || num > KEVENT_CTL_MAX)
		return -EINVAL;
	if (cmd == KEVENT_CTL_READY && !num)
		return kevent_ctl_wake(q);
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

	requests_init(&r, q, changes, sizeof(*changes));
	r.changes = true;
	err = requests_all(&r, nr);
	return err && r.at == r.first ? err : err || r.look;
}
