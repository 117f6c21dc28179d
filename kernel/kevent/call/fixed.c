// SPDX-License-Identifier: GPL-2.0
/*
 * Bound calls: a call of a file, checked once, that steps of chains name by a slot
 *
 * A bound call is a watch of the file, without events, linked to the file like any watch
 * of a descriptor, so it goes with the descriptor. A type of watches has one structure,
 * and that of AIO has no file: so bound calls are a type of their own, and a queue can
 * refuse them without refusing chains. A descriptor has one bound call in each slot, and
 * kevent.event, which MODIFY cannot change, is the slot. The program chooses the slot,
 * because ADD writes nothing back for an entry that it has fulfilled.
 *
 * A call is memory of one address space. All of a queue are those of kevent_bounds.mm, which
 * is held by mmgrab() once and not by each watch. Each call compares the address space with
 * the caller's: another process could have the same file at the same descriptor, and would
 * write to an address that a stranger chose. The check uses the pointer in the watch for a
 * call that was found under RCU. The call was in its slot then, so the queue held the address
 * space, and an equal pointer means the same one. A process can take a queue's slots over
 * when they are empty, or when the address space has no task left. Watches of the process
 * before are removed first. Slots are in tables of %KEVENT_BOUND_TABLE, each allocated for
 * its first bound call, and freed when the file of the queue is gone.
 *
 * ADD checks what cannot change: which call it is, that its buffer is an address of a
 * program, that length and offset are not negative, and that the file is open for it. For
 * each call kevent_step_run_any() checks that nobody sees or filters the calls of the task,
 * as for each step. kevent_bound_unfold() puts the arguments where calls expect them, and
 * checks that the descriptor is still the file. Then the ordinary call is made. A watch may
 * be dead while it is still in its slot, and its file then freed and used again. So nobody
 * follows the pointer in the watch. It is only compared with the file that fdget() returns. A
 * file that is equal and is another one all the same has what the descriptor says; the call
 * asks it for its mode again, as any call does. The call finds the descriptor once more, so
 * another thread may put another file there in between.
 */

#include <linux/cleanup.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "../core/source.h"
#include "dispatch.h"
#include "fixed.h"

/**
 * struct kevent_bound - a bound call
 * @kf:		the watch; its event is the slot
 * @mm:		I: whose call it is, to compare
 * @nr:		I: number of the call
 * @arg:	I: its arguments behind the descriptor, as far as a call of the list in
 *		bound_check() has any; the others are 0
 */
struct kevent_bound {
	struct kevent_file	kf;
	struct mm_struct	*mm;
	u32			nr;
	u64			arg[3];
};

#define to_bound(watch)	container_of(watch, struct kevent_bound, kf.ke)

/* Slots */

#define KEVENT_BOUND_BYTES	(KEVENT_BOUND_TABLE * sizeof(struct kevent_bound *))

static_assert(sizeof_field(struct kevent_bounds, table) * KEVENT_BOUND_TABLE ==
	      KEVENT_BOUND_MAX * sizeof(void *));

/* Where a slot is, less than %KEVENT_BOUND_MAX; NULL: there was no call near it. */
static struct kevent_bound **bound_slot(struct kevent_queue *q, u32 slot)
{
	struct kevent_bound **table;

	/* Pairs with bound_grow(). */
	table = READ_ONCE(q->bounds.table[slot / KEVENT_BOUND_TABLE]);
	return table ? &table[slot % KEVENT_BOUND_TABLE] : NULL;
}

/* Have a table for a slot. Returns 0, -ENOSPC or -ENOMEM. */
static int bound_grow(struct kevent_queue *q, u32 slot)
{
	struct kevent_bound **table;
	int err = -ENOMEM;

	if (bound_slot(q, slot))
		return 0;
	if (!kevent_charge(q->owner, KEVENT_BOUND_BYTES))
		return -ENOSPC;
	table = kzalloc(KEVENT_BOUND_BYTES, GFP_KERNEL_ACCOUNT);
	if (table) {
		/* Pairs with bound_slot(). */
		if (!cmpxchg_release(&q->bounds.table[slot / KEVENT_BOUND_TABLE],
				     NULL, table))
			return 0;
		kfree(table);
		err = 0;
	}
	kevent_uncharge(q->owner, KEVENT_BOUND_BYTES);
	return err;
}

/*
 * Kill a call that nobody can make, since its address space has no tasks, from the slot @i
 * on. In its slot it exists, and as long as it is not dead its file does.
 */
static struct kevent *bound_kill_old(struct kevent_queue *q, u32 *i)
{
	struct kevent_bounds *b = &q->bounds;
	struct kevent_bound **at, *kb;

	guard(spinlock)(&q->keys.lock);
	if (!b->nr || atomic_read(&b->mm->mm_users))
		return NULL;
	for (; *i < KEVENT_BOUND_MAX; ++*i) {
		at = bound_slot(q, *i);
		kb = at ? *at : NULL;
		if (!kb)
			continue;
		WRITE_ONCE(*at, NULL);
		b->nr--;
		if (kevent_kill_one(&kb->kf.ke, true))
			return &kb->kf.ke;
	}
	return NULL;
}

/* The current process is to have calls in a queue. Returns 0, -EXDEV or -ENOSPC. */
static int bound_claim(struct kevent_queue *q)
{
	struct kevent_bounds *b = &q->bounds;

	if (b->mm == current->mm)
		return 0;
	if (b->nr)
		return -EXDEV;
	if (b->mm)
		mmdrop(b->mm);
	else if (!kevent_charge(q->owner, KEVENT_MM_BYTES))
		return -ENOSPC;
	mmgrab(current->mm);
	WRITE_ONCE(b->mm, current->mm);
	return 0;
}

/* As kevent_key_link(). Returns 0, -EEXIST, -EXDEV or -ENOSPC. */
static int bound_enter(struct kevent_queue *q, struct kevent_bound *kb)
{
	struct kevent_bound **at = bound_slot(q, kb->kf.ke.event);
	int err;

	guard(spinlock)(&q->keys.lock);
	err = bound_claim(q);
	if (err)
		return err;
	if (*at && !kevent_is_dead(&(*at)->kf.ke))
		return -EEXIST;
	q->bounds.nr += !*at;
	kb->mm = current->mm;
	/* Pairs with kevent_bound_unfold(). */
	smp_store_release(at, kb);
	return 0;
}

/*
 * Before a call is linked to its file: end those of a program that is gone, which would be in
 * its way there. Returns 0, -EXDEV, -ENOSPC or -ENOMEM.
 */
static int bound_prepare(struct kevent_queue *q, u32 slot)
{
	struct kevent *ke;
	u32 i = 0;
	int err;

	while ((ke = bound_kill_old(q, &i))) {
		kevent_bury(ke, true);
		cond_resched();
	}
	err = bound_grow(q, slot);
	if (err)
		return err;
	guard(spinlock)(&q->keys.lock);
	return bound_claim(q);
}

/* The file of the queue is gone: nobody makes or binds calls. */
void kevent_bound_drop(struct kevent_queue *q)
{
	struct kevent_bounds *b = &q->bounds;
	u32 i;

	guard(spinlock)(&q->keys.lock);
	for (i = 0; i < ARRAY_SIZE(b->table); i++) {
		if (!b->table[i])
			continue;
		kevent_uncharge(q->owner, KEVENT_BOUND_BYTES);
		kfree(b->table[i]);
		b->table[i] = NULL;
	}
	if (!b->mm)
		return;
	kevent_uncharge(q->owner, KEVENT_MM_BYTES);
	mmdrop(b->mm);
	b->mm = NULL;
}

/* The watch */

static int ev_bound_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event >= KEVENT_BOUND_MAX || uk->req_flags)
		return -EINVAL;
	if (!IS_ALIGNED(uk->ptr, sizeof(u64)))
		return -EINVAL;
	if (in_compat_syscall())
		return -EOPNOTSUPP;
	return kevent_call_allowed() ? 0 : -EPERM;
}

/* Make the checks that the ordinary call makes each time. -ENOSYS: the call can't be bound. */
static int bound_check(const struct kevent_call *call, struct file *file)
{
	fmode_t mode = 0, can = 0;

	switch (call->nr) {
	case __NR_pread64:
		if ((s64)call->args[3] < 0)
			return -EINVAL;
		fallthrough;
	case __NR_read:
		mode = FMODE_READ;
		can = FMODE_CAN_READ;
		break;
	case __NR_pwrite64:
		if ((s64)call->args[3] < 0)
			return -EINVAL;
		fallthrough;
	case __NR_write:
		mode = FMODE_WRITE;
		can = FMODE_CAN_WRITE;
		break;
	case __NR_recvfrom:
	case __NR_sendto:
		if (call->args[4] || call->args[5])
			return -EINVAL;
		break;
	case __NR_accept4:
		return kevent_socket(file) ? 0 : -ENOTSOCK;
	default:
		return -ENOSYS;
	}
	if (!mode && !kevent_socket(file))
		return -ENOTSOCK;
	if (mode && !(file->f_mode & mode))
		return -EBADF;
	/* Nor a queue or an epoll file: a watch of those counts as a link between sets. */
	if (mode && !(file->f_mode & can))
		return -EINVAL;
	if ((s64)call->args[2] < 0)
		return -EINVAL;
	return access_ok((void __user *)call->args[1], call->args[2]) ? 0 : -EFAULT;
}

static int ev_bound_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_bound *kb = to_bound(ke);
	struct kevent_call call;
	int err;

	memset_after(kb, 0, kf);
	if (copy_from_user(&call, u64_to_user_ptr(uk->ptr), sizeof(call)))
		return -EFAULT;
	if (call.flags || call.args[0] != uk->id.raw[0])
		return -EINVAL;
	err = bound_check(&call, file);
	if (err)
		return err;
	kb->nr = call.nr;
	memcpy(kb->arg, &call.args[1], sizeof(kb->arg));
	return bound_prepare(ke->queue, ke->event) ?:
	       kevent_file_link(&kb->kf, file) ?: bound_enter(ke->queue, kb);
}

static void ev_bound_detach(struct kevent *ke)
{
	struct kevent_bound **at;

	guard(spinlock)(&ke->queue->keys.lock);
	at = bound_slot(ke->queue, ke->event);
	/* Another one may have the slot: this one is dead. */
	if (at && *at == to_bound(ke)) {
		WRITE_ONCE(*at, NULL);
		ke->queue->bounds.nr--;
	}
}

/* MODIFY: another call has another slot, or comes after REMOVE. */
static int ev_bound_rearm(struct kevent *ke, const struct ukevent *uk)
{
	return -EPERM;
}

const struct kevent_source_ops kevent_bound_ops = {
	.name		= "bound",
	.flags		= KEVENT_SOURCE_FILE | KEVENT_SOURCE_MANY | KEVENT_SOURCE_ARMS,
	.size		= sizeof(struct kevent_bound),
	.check		= ev_bound_check,
	.attach		= ev_bound_attach,
	.detach		= ev_bound_detach,
	.modify_unlocked = ev_bound_rearm,
};

/*
 * Look up a bound call, to make it: @regs receives its arguments. @slot is anything a
 * program may have written. Returns the number of the call, or -EBADF, as the call itself:
 * its descriptor was closed or is another file. Refused: -EINVAL for no queue or no such
 * slot, -EXDEV for calls of another process, -ENOSYS without bound calls in this kernel.
 */
long kevent_bound_unfold(struct kevent_queue *q, u64 slot, struct pt_regs *regs)
{
	struct kevent_bound **at, *kb;
	struct mm_struct *mm;
	struct file *file;
	u32 nr;

	if (!q || slot >= KEVENT_BOUND_MAX)
		return -EINVAL;
	/* Its watch may be about to be removed, and its file be gone. */
	scoped_guard(rcu) {
		at = bound_slot(q, array_index_nospec(slot, KEVENT_BOUND_MAX));
		/* Pairs with bound_enter(). */
		kb = at ? READ_ONCE(*at) : NULL;
		mm = kb ? kb->mm : READ_ONCE(q->bounds.mm);
		if (mm && mm != current->mm)
			return -EXDEV;
		if (!kb)
			return -EBADF;
		nr = kb->nr;
		file = kb->kf.file;
		regs->KEVENT_CALL_ARG0 = kb->kf.ke.id_low;
		regs->KEVENT_CALL_ARG1 = kb->arg[0];
		regs->KEVENT_CALL_ARG2 = kb->arg[1];
		regs->KEVENT_CALL_ARG3 = kb->arg[2];
		regs->KEVENT_CALL_ARG4 = 0;
		regs->KEVENT_CALL_ARG5 = 0;
	}
	CLASS(fd, f)(regs->KEVENT_CALL_ARG0);
	if (fd_file(f) != file)
		return -EBADF;
	return nr;
}
