// SPDX-License-Identifier: GPL-2.0
/*
 * Control: kevent_ctl(), and the changes kevent_wait() makes
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/kevent.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "kevent.h"

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
 * @uk:		some entries, from the current one on. Those handed back in
 *		their place are put before what is yet to be read
 * @stash:	for watches to be added
 */
struct kevent_ctl {
	struct kevent_queue	*q;
	struct ukevent __user	*arg;
	u32			at;
	u32			count;
	struct ukevent		uk[KEVENT_CTL_BATCH];
	struct kevent_stash	stash;
};

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

/* The entry is handed back when it failed, or is ready at once. */
static int kevent_ctl_add(struct kevent_ctl *ctl, struct ukevent *uk,
			  struct file *file, int err)
{
	struct kevent *ke = NULL;

	if (!err) {
		ke = kevent_add(ctl->q, uk, file, &ctl->stash);
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

/* Anything but ADD */
static int kevent_change(struct kevent_queue *q, u32 cmd, struct ukevent *uk,
			 struct file *file)
{
	switch (cmd) {
	case KEVENT_CTL_REMOVE:
		return kevent_remove(q, uk, file);
	case KEVENT_CTL_MODIFY:
		return kevent_modify(q, uk, file);
	default:
		return kevent_mark(q, uk, file);
	}
}

/*
 * Results stay where the entry is. One that can't be written is no reason to
 * deny that the change was made.
 */
static void kevent_ctl_change(struct kevent_ctl *ctl, u32 cmd,
			      struct ukevent *uk, struct file *file, int err)
{
	if (!err)
		err = kevent_change(ctl->q, cmd, uk, file);
	if (cmd == KEVENT_CTL_READY ? !err : err)
		ctl->count++;
	if (err)
		kevent_set_error(uk, err);
	else
		uk->ret_flags = KEVENT_RET_DONE;
	kevent_put_result(&ctl->arg[ctl->at], uk);
}

/*
 * Whether a request may be made, and the file it is about, if it is about one; the
 * caller fdput()s it.
 */
static int kevent_ctl_file(const struct kevent_queue *q, u32 cmd,
			   const struct ukevent *uk, struct fd *f)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);

	*f = EMPTY_FD;
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

static int kevent_ctl_one(struct kevent_ctl *ctl, u32 cmd, struct ukevent *uk)
{
	struct fd f;
	int err;

	err = kevent_ctl_file(ctl->q, cmd, uk, &f);
	if (cmd == KEVENT_CTL_ADD) {
		err = kevent_ctl_add(ctl, uk, fd_file(f), err);
	} else {
		kevent_ctl_change(ctl, cmd, uk, fd_file(f), err);
		err = 0;
	}
	fdput(f);
	return err;
}

/* Read up to @num entries; where not all are readable, one. Returns how many. */
static u32 kevent_ctl_read(struct kevent_ctl *ctl, u32 num)
{
	struct ukevent __user *from = &ctl->arg[ctl->at];

	num = min(num, KEVENT_CTL_BATCH);
	if (num > 1 && !copy_from_user(ctl->uk, from, num * sizeof(*from)))
		return num;
	return !copy_from_user(ctl->uk, from, sizeof(*from));
}

/* For as many of the @nr entries as are of the first one's type */
static void kevent_ctl_stash(struct kevent_ctl *ctl, u32 nr)
{
	u32 i, same = 1;

	for (i = 1; i < nr; i++)
		same += ctl->uk[i].type == ctl->uk[0].type;
	kevent_stash_init(&ctl->stash, ctl->uk[0].type, same);
}

static int kevent_ctl_some(struct kevent_ctl *ctl, u32 cmd, u32 nr)
{
	u32 i;
	int err;

	for (i = 0; i < nr; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		err = kevent_ctl_one(ctl, cmd, &ctl->uk[i]);
		if (err)
			return err;
		ctl->at++;
	}
	cond_resched();
	return 0;
}

static int kevent_ctl_batch(struct kevent_ctl *ctl, u32 cmd, u32 num)
{
	u32 nr = kevent_ctl_read(ctl, num);
	int err;

	if (!nr)
		return -EFAULT;
	if (cmd != KEVENT_CTL_ADD)
		return kevent_ctl_some(ctl, cmd, nr);
	kevent_ctl_stash(ctl, nr);
	err = kevent_ctl_some(ctl, cmd, nr);
	kevent_stash_drop(&ctl->stash);
	return err;
}

static int kevent_ctl_all(struct kevent_ctl *ctl, u32 cmd, u32 num)
{
	int err = 0;

	while (ctl->at < num && !err)
		err = kevent_ctl_batch(ctl, cmd, num - ctl->at);
	return err && !ctl->at ? err : ctl->count;
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
	struct kevent_ctl ctl __uninitialized;

	CLASS(fd, f)(fd);
	if (!fd_file(f))
		return -EBADF;
	if (!is_kevent_file(fd_file(f)))
		return -EINVAL;
	ctl.q = fd_file(f)->private_data;
	ctl.arg = arg;
	ctl.at = 0;
	ctl.count = 0;
	if (cmd == KEVENT_CTL_ATTACH)
		return kevent_ctl_attach(ctl.q, num, arg);
	if (cmd > KEVENT_CTL_READY || num > KEVENT_CTL_MAX)
		return -EINVAL;
	if (cmd == KEVENT_CTL_READY && !num)
		return kevent_ctl_wake(ctl.q);
	return kevent_ctl_all(&ctl, cmd, num);
}

/* Changes of kevent_wait() */

/**
 * struct kevent_changes - the changes of a kevent_wait() call
 * @q:		the queue
 * @at:		the current one
 * @look:	the caller must look at results
 * @c:		some of them, from the current one on
 * @stash:	for watches to be added
 */
struct kevent_changes {
	struct kevent_queue	*q;
	struct kevent_change __user *at;
	bool			look;
	struct kevent_change	c[KEVENT_CTL_BATCH];
	struct kevent_stash	stash;
};

static int kevent_change_add(struct kevent_changes *ch, struct kevent_change *c,
			     struct file *file)
{
	struct kevent *ke = kevent_add(ch->q, &c->uk, file, &ch->stash);
	int err;

	if (IS_ERR_OR_NULL(ke))
		return PTR_ERR_OR_ZERO(ke);
	c->result = 1;
	err = copy_to_user(ch->at, c, sizeof(*c)) ? -EFAULT : 0;
	kevent_handed_back(ke, !err);
	return 1;
}

/* Returns 0, 1 for an event that is handed back, or -errno. */
static int kevent_change_make(struct kevent_changes *ch,
			      struct kevent_change *c)
{
	struct fd f;
	int err;

	if (c->cmd > KEVENT_CTL_READY)
		return -EINVAL;
	err = kevent_ctl_file(ch->q, c->cmd, &c->uk, &f);
	if (!err && c->cmd == KEVENT_CTL_ADD)
		err = kevent_change_add(ch, c, fd_file(f));
	else if (!err)
		err = kevent_change(ch->q, c->cmd, &c->uk, fd_file(f));
	fdput(f);
	return err;
}

static int kevent_change_one(struct kevent_changes *ch,
			     struct kevent_change *c)
{
	c->uk.ret_flags = KEVENT_RET_DONE;
	c->result = kevent_change_make(ch, c);
	ch->look |= c->result;
	if (c->result > 0)
		return 0;
	if (c->result)
		kevent_set_error(&c->uk, c->result);
	kevent_put_result(&ch->at->uk, &c->uk);
	return put_user(c->result, &ch->at->result);
}

static u32 kevent_changes_read(struct kevent_changes *ch, u32 nr)
{
	nr = min(nr, KEVENT_CTL_BATCH);
	if (nr > 1 && !copy_from_user(ch->c, ch->at, nr * sizeof(*ch->c)))
		return nr;
	return !copy_from_user(ch->c, ch->at, sizeof(*ch->c));
}

/* For as many of the @nr changes as add one of the type that is added first */
static void kevent_changes_stash(struct kevent_changes *ch, u32 nr)
{
	u32 i, type = 0, adds = 0;

	for (i = 0; i < nr; i++) {
		if (ch->c[i].cmd != KEVENT_CTL_ADD)
			continue;
		if (!adds)
			type = ch->c[i].uk.type;
		adds += ch->c[i].uk.type == type;
	}
	kevent_stash_init(&ch->stash, type, adds);
}

static int kevent_changes_some(struct kevent_changes *ch, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++, ch->at++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (kevent_change_one(ch, &ch->c[i]))
			ch->look = true;
	}
	cond_resched();
	return 0;
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
	struct kevent_changes ch __uninitialized;
	u32 some, left;
	int err = 0;

	ch.q = q;
	ch.at = changes;
	ch.look = false;
	for (left = nr; left && !err; left -= some) {
		some = kevent_changes_read(&ch, left);
		if (!some)
			return ch.at == changes ? -EFAULT : 1;
		kevent_changes_stash(&ch, some);
		err = kevent_changes_some(&ch, some);
		kevent_stash_drop(&ch.stash);
	}
	return err && ch.at == changes ? err : err || ch.look;
}
