// SPDX-License-Identifier: GPL-2.0
/*
 * Types that this kernel has no source for: their watches are driven by the process
 *
 * A watch is an ordinary one of its queue, with its modes and limits. The library of the process
 * that has added it knows the object that it waits for. The library posts events by
 * KEVENT_IOC_DRIVE, and takes back what is not delivered when it changes or removes the watch. It
 * gives each watch a number at ADD, and says it with each event: the descriptor may have come to
 * mean another queue, or the watch may be a later one. Requests of programs come back with
 * KEVENT_RET_DRIVE, as they were, and the library makes them.
 *
 * Nothing here trusts the library. A process can post what it likes, to its own watches.
 */

#include <linux/cleanup.h>
#include <linux/pid.h>
#include <linux/uaccess.h>

#include "../kevent/core/source.h"

/**
 * struct kevent_driven - a watch whose events its process posts
 * @kk:		the watch
 * @tgid:	I: the process, referenced; NULL before attach()
 * @number:	R: what the library calls the watch, since ADD or MODIFY
 * @id:		R: what an entry has as its id
 * @data:	R: what it has as its result, of the event that is not delivered; of a POSIX timer
 *		how often it has expired
 * @from:	I: of a chain: the entry that it begins with
 */
struct kevent_driven {
	struct kevent_keyed	kk;
	struct pid		*tgid;
	u32			number;
	u64			id;
	u64			data;
	u32			from;
};

static struct kevent_driven *to_driven(struct kevent *ke)
{
	return container_of(ke, struct kevent_driven, kk.ke);
}

static u64 driven_data(const struct ukevent *uk)
{
	return (u64)uk->ret_data[1] << 32 | uk->ret_data[0];
}

/* The library has checked the rest. */
static int driven_check(const struct ukevent *uk, struct file *file)
{
	return uk->event ? 0 : -EINVAL;
}

/* Timers have ids of their process. */
static u64 driven_key(const struct ukevent *uk)
{
	if (uk->type == KEVENT_AIO)
		return uk->ptr;
	if (uk->type == KEVENT_POSIX_TIMER)
		return (u64)task_tgid_nr(current) << 32 | uk->id.raw[0];
	return uk->id.raw_u64;
}

/* The result of the request has the conditions that hold already. */
static int driven_attach(struct kevent *ke, const struct ukevent *uk, struct file *file)
{
	struct kevent_driven *kd = to_driven(ke);

	kd->tgid = get_pid(task_tgid(current));
	kd->number = uk->ret_flags;
	kd->id = uk->id.raw_u64;
	kd->data = 0;
	kd->from = uk->ret_data[1];
	return kevent_key_link(to_kevent_keyed(ke)) ?:
	       (int)(uk->ret_data[0] & uk->event & S32_MAX);
}

static void driven_destroy(struct kevent *ke)
{
	put_pid(to_driven(ke)->tgid);
}

/* Events that are on their way to the module are of the former setting. */
static void driven_modified(struct kevent *ke, const struct ukevent *uk)
{
	to_driven(ke)->number = uk->ret_flags;
}

/* Until the process is gone it alone can know what the watch is to say. Under RCU */
static bool driven_is_left(const struct kevent_driven *kd)
{
	return !pid_task(kd->tgid, PIDTYPE_TGID);
}

/* The library cancels a chain that no thread runs yet, and posts its end. */
static int driven_cancel(struct kevent *ke)
{
	struct kevent_driven *kd = to_driven(ke);

	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->ready || !driven_is_left(kd))
		return -EALREADY;
	kd->id = KEVENT_CALL_REFUSED | kd->from;
	kd->data = -ECANCELED;
	kevent_ready_locked(ke, KEVENT_AIO_DONE);
	return KEVENT_COMMAND_DONE;
}

static int driven_command(struct kevent *ke, u32 cmd, const struct ukevent *uk, void **room)
{
	const struct kevent_driven *kd = to_driven(ke);

	if (cmd == KEVENT_CTL_REMOVE && ke->type == KEVENT_AIO)
		return driven_cancel(ke);
	return kd->tgid != task_tgid(current) && !driven_is_left(kd) ? -EPERM : 0;
}

static void driven_fill(struct kevent *ke, struct ukevent *uk)
{
	struct kevent_driven *kd = to_driven(ke);
	u64 data = kd->data;

	uk->id.raw_u64 = kd->id;
	uk->req_flags &= ~KEVENT_REQ_DRIVEN;
	if (ke->type == KEVENT_FUTEX)
		return;
	if (ke->type == KEVENT_POSIX_TIMER && data)
		data--;
	uk->ret_data[0] = lower_32_bits(data);
	uk->ret_data[1] = upper_32_bits(data);
}

static void driven_delivered(struct kevent *ke)
{
	to_driven(ke)->data = 0;
}

#define DRIVEN_OPS							\
	.flags		= KEVENT_REQ_DRIVEN,				\
	.size		= sizeof(struct kevent_driven),			\
	.pins		= sizeof(struct pid),				\
	.check		= driven_check,					\
	.key		= driven_key,					\
	.attach		= driven_attach,				\
	.destroy	= driven_destroy,				\
	.modified	= driven_modified,				\
	.command	= driven_command,				\
	.fill		= driven_fill,					\
	.delivered	= driven_delivered

const struct kevent_source_ops kevent_futex_ops = {
	DRIVEN_OPS,
	.name	= "futex",
	.marks	= KEVENT_FUTEX_WAKE,
};

const struct kevent_source_ops kevent_posix_timer_ops = {
	DRIVEN_OPS,
	.name	= "posix_timer",
};

const struct kevent_source_ops kevent_aio_ops = {
	DRIVEN_OPS,
	.name	= "aio",
};

/* The conditions that are not delivered; an entry that is on its way to a consumer is. */
static int driven_take_back(struct kevent *ke)
{
	int ready = kevent_is_claimed(ke) ? 0 : ke->ready & S32_MAX;

	lockdep_assert_held(&ke->queue->ready_lock);

	if (ready) {
		kevent_forget(ke);
		to_driven(ke)->data = 0;
	}
	return ready;
}

static void driven_post(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_driven *kd = to_driven(ke);
	u64 data = kd->data;

	lockdep_assert_held(&ke->queue->ready_lock);

	if (!(uk->event & ke->event))
		return;
	kd->id = uk->id.raw_u64;
	kd->data = driven_data(uk);
	if (ke->type == KEVENT_POSIX_TIMER)
		kd->data += data + 1;
	kevent_ready_locked(ke, uk->event & ke->event);
}

/* The id of an event of a chain is where that has ended: it is found by its pointer. */
static struct kevent *driven_find(struct kevent_queue *q, const struct ukevent *uk)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);

	if (IS_ERR(ops) || !(ops->flags & KEVENT_REQ_DRIVEN))
		return NULL;
	return kevent_find(ops, q, uk, NULL);
}

/* Returns 0, the bits that were taken back, or -ENOENT: there is no such watch any more. */
int driven_ioctl(struct kevent_queue *q, const struct ukevent __user *arg)
{
	struct ukevent uk;
	struct kevent *ke;

	if (copy_from_user(&uk, arg, sizeof(uk)))
		return -EFAULT;
	guard(rcu)();
	ke = driven_find(q, &uk);
	if (!ke)
		return -ENOENT;
	guard(kevent_queue)(q);
	if (!kevent_is_alive(ke) || to_driven(ke)->number != uk.ret_flags ||
	    to_driven(ke)->tgid != task_tgid(current))
		return -ENOENT;
	if (!uk.event)
		return driven_take_back(ke);
	driven_post(ke, &uk);
	return 0;
}
