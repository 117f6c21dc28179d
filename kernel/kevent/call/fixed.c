// SPDX-License-Identifier: GPL-2.0
/*
 * Bound calls: a call of a file, checked once, that entries of chains name by a slot
 *
 * A bound call is a watch of the file, without events, linked to the file like any watch
 * of a descriptor, so it goes with the descriptor. A type of watches has one structure,
 * and that of AIO has no file: so bound calls are a type of their own, and a queue can
 * refuse them without refusing chains. A descriptor has one bound call in each slot, and
 * kevent.event, which MODIFY cannot change, is the slot; kevent_file_find() finds them in
 * the table. The program chooses the slot, because ADD writes nothing back for an entry
 * that it has fulfilled.
 *
 * A call is memory of one address space. The table of slots, kevent_queue.bound, belongs
 * to that, kevent_bound_table.mm, held by mmgrab() once and not by each watch. It is
 * allocated with the first bound call, replaced by a larger one under keys.lock when a slot
 * is beyond its end, and read under RCU. Each call compares the address space with the
 * caller's: another process could have the same file at the same descriptor, and would
 * write to an address that a stranger chose. A process can take a queue's table over when
 * it is empty, or when its address space has no task left. Watches of the process before,
 * which nothing would find any more, are removed first.
 *
 * ADD checks what cannot change: which call it is, that its buffer is an address of a
 * program, that length and offset are not negative, and that the file is open for it. For
 * each call kevent_bound_unfold() puts the arguments where calls expect them, and
 * kevent_call_run_any() makes the ordinary call, if nobody sees or filters the calls of
 * the task, as for each entry, and the descriptor is the file. A watch may be dead while
 * it is still in its slot, and its file then freed and used again, so the pointer in the
 * watch is only compared with what fdget() says of the descriptor. A file that is equal
 * and is another one all the same has what the descriptor says; the call asks it for its
 * mode again, as any call does. The call finds the descriptor once more, so another thread
 * may put another file there in between.
 *
 * A new table is copied with keys.lock held, 128 KiB at most, and twice as large each time;
 * only tasks that add or remove watches of the same queue wait for that. The list of a
 * file has one entry for each queue and descriptor, see KEVENT_MAX_PER_FILE; a close finds
 * the rest from there.
 */

#include <linux/cleanup.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>

#include "../core/source.h"
#include "chain.h"
#include "dispatch.h"

/**
 * struct kevent_bound - a bound call
 * @shared:	the watch; its event is the slot
 * @nr:		I: number of the call
 * @arg:	I: its arguments behind the descriptor, as far as a call of the list in
 *		bound_check() has any; the others are 0
 */
struct kevent_bound {
	struct kevent_shared	shared;
	u32			nr;
	u64			arg[3];
};

static inline struct kevent_bound *to_bound(struct kevent *ke)
{
	return container_of(ke, struct kevent_bound, shared.kf.ke);
}

#define KEVENT_BOUND_MIN	16U

/* The table */

/**
 * struct kevent_bound_table - slots of bound calls
 * @rcu:	for the freeing
 * @mm:		I: whose calls they are; a pointer to compare, held by mmgrab()
 * @cost:	I: bytes charged to the owner of the queue
 * @nr:		I: how many slots there are, up to %KEVENT_BOUND_MAX
 * @used:	K: how many are taken
 * @slot:	K: read under RCU
 *
 * A table that is too small is replaced by one of at least twice its size.
 */
struct kevent_bound_table {
	struct rcu_head		rcu;
	struct mm_struct	*mm;
	u32			cost;
	u32			nr;
	u32			used;
	struct kevent_bound __rcu *slot[] __counted_by(nr);
};

static struct kevent_bound_table *bound_table(struct kevent_queue *q)
{
	return rcu_dereference_protected(q->bound,
					 lockdep_is_held(&q->keys.lock));
}

/* Nobody can make the calls of an address space without tasks. */
static bool bound_is_nobodys(const struct kevent_bound_table *t)
{
	return !t->used || !atomic_read(&t->mm->mm_users);
}

static struct kevent_bound_table *bound_alloc(struct kevent_queue *q, u32 slot)
{
	u32 nr = roundup_pow_of_two(max(slot + 1, KEVENT_BOUND_MIN)), cost;
	struct kevent_bound_table *t;

	cost = struct_size(t, slot, nr);
	if (current->mm != q->mm)
		cost += KEVENT_MM_BYTES;
	if (!kevent_charge(q->owner, cost))
		return ERR_PTR(-ENOSPC);
	t = kvzalloc(struct_size(t, slot, nr), GFP_KERNEL_ACCOUNT);
	if (!t) {
		kevent_uncharge(q->owner, cost);
		return ERR_PTR(-ENOMEM);
	}
	t->nr = nr;
	t->cost = cost;
	t->mm = current->mm;
	mmgrab(t->mm);
	return t;
}

/*
 * Who compares @mm under RCU has an address space of its own, which is another one as
 * long as it does.
 */
static void bound_free(struct kevent_queue *q, struct kevent_bound_table *t)
{
	if (!t)
		return;
	kevent_uncharge(q->owner, t->cost);
	mmdrop(t->mm);
	kvfree_rcu(t, rcu);
}

/* Returns the table that is not in use: the old one, or @new. */
static struct kevent_bound_table *bound_replace(struct kevent_queue *q,
						struct kevent_bound_table *new)
{
	struct kevent_bound_table *old = bound_table(q);

	lockdep_assert_held(&q->keys.lock);

	if (old && old->mm == new->mm) {
		if (old->nr >= new->nr)
			return new;
		memcpy(new->slot, old->slot, flex_array_size(old, slot, old->nr));
		new->used = old->used;
	} else if (old && !bound_is_nobodys(old)) {
		return new;
	}
	rcu_assign_pointer(q->bound, new);
	return old;
}

/*
 * Kill a call of an address space without tasks, from the slot @i on. It is in the table,
 * so it exists. Its file does, too, until it is dead.
 */
static struct kevent *bound_kill_old(struct kevent_queue *q, u32 *i)
{
	struct kevent_bound_table *t;
	struct kevent_bound *kb;

	guard(spinlock)(&q->keys.lock);
	t = bound_table(q);
	if (!t || t->mm == current->mm || !bound_is_nobodys(t))
		return NULL;
	for (; *i < t->nr; ++*i) {
		kb = rcu_dereference_protected(t->slot[*i], true);
		if (kb && kevent_kill_one(&kb->shared.kf.ke, true))
			return &kb->shared.kf.ke;
	}
	return NULL;
}

/* Calls that nobody can make would not be found once their table is replaced. */
static void bound_bury_old(struct kevent_queue *q)
{
	struct kevent *ke;
	u32 i = 0;

	while ((ke = bound_kill_old(q, &i))) {
		kevent_bury(ke, true);
		cond_resched();
	}
}

static int bound_grow(struct kevent_queue *q, u32 slot)
{
	struct kevent_bound_table *t;

	/* First: what it gives back may be what the new table is charged with. */
	bound_bury_old(q);
	t = bound_alloc(q, slot);
	if (IS_ERR(t))
		return PTR_ERR(t);
	scoped_guard(spinlock, &q->keys.lock)
		t = bound_replace(q, t);
	bound_free(q, t);
	return 0;
}

/* As kevent_key_link(); -EAGAIN: there is no such slot yet. */
static int bound_enter(struct kevent_queue *q, struct kevent_bound *kb)
{
	struct kevent_bound_table *t = bound_table(q);
	u32 slot = kb->shared.kf.ke.event;
	struct kevent_bound *old;

	lockdep_assert_held(&q->keys.lock);

	if (!t)
		return -EAGAIN;
	if (t->mm != current->mm)
		return bound_is_nobodys(t) ? -EAGAIN : -EXDEV;
	if (slot >= t->nr)
		return -EAGAIN;
	old = rcu_dereference_protected(t->slot[slot], true);
	if (old && !kevent_is_dead(&old->shared.kf.ke))
		return -EEXIST;
	t->used += !old;
	rcu_assign_pointer(t->slot[slot], kb);
	return 0;
}

static int bound_link(struct kevent_bound *kb)
{
	struct kevent_queue *q = kb->shared.kf.ke.queue;
	int err;

	do {
		scoped_guard(spinlock, &q->keys.lock)
			err = bound_enter(q, kb);
		if (err != -EAGAIN)
			return err;
		err = bound_grow(q, kb->shared.kf.ke.event);
	} while (!err);
	return err;
}

/* Give the table up: the file of the queue is gone. */
void kevent_bound_drop(struct kevent_queue *q)
{
	struct kevent_bound_table *t;

	scoped_guard(spinlock, &q->keys.lock) {
		t = bound_table(q);
		rcu_assign_pointer(q->bound, NULL);
	}
	bound_free(q, t);
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

static int bound_check_buffer(const struct kevent_call *call)
{
	if ((s64)call->args[2] < 0)
		return -EINVAL;
	return access_ok((void __user *)call->args[1], call->args[2]) ?
	       0 : -EFAULT;
}

/* What an ordinary call would say each time, and -ENOSYS for other calls */
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
	return bound_check_buffer(call);
}

static int bound_describe(struct kevent_bound *kb, const struct ukevent *uk,
			  struct file *file)
{
	struct kevent_call call;
	int err;

	if (copy_from_user(&call, u64_to_user_ptr(uk->ptr), sizeof(call)))
		return -EFAULT;
	if (call.flags || call.args[0] != uk->id.raw[0])
		return -EINVAL;
	err = bound_check(&call, file);
	if (err)
		return err;
	kb->nr = call.nr;
	memcpy(kb->arg, &call.args[1], sizeof(kb->arg));
	return 0;
}

static int ev_bound_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_bound *kb = to_bound(ke);

	memset_after(kb, 0, shared.kf);
	INIT_LIST_HEAD(&kb->shared.alike);
	return bound_describe(kb, uk, file) ?:
	       kevent_file_link(&kb->shared.kf, file) ?: bound_link(kb);
}

static void ev_bound_detach(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;
	struct kevent_bound_table *t;

	spin_lock(&q->keys.lock);
	t = bound_table(q);
	if (t && ke->event < t->nr &&
	    rcu_access_pointer(t->slot[ke->event]) == to_bound(ke)) {
		RCU_INIT_POINTER(t->slot[ke->event], NULL);
		t->used--;
	}
	spin_unlock(&q->keys.lock);
}

/* MODIFY: another call has another slot, or comes after REMOVE. */
static int ev_bound_rearm(struct kevent *ke, const struct ukevent *uk)
{
	return -EPERM;
}

/* Its slot says which one a request means. */
static struct kevent *ev_bound_find(struct kevent_queue *q,
				    const struct ukevent *uk,
				    const struct file *file)
{
	struct kevent_bound_table *t = rcu_dereference(q->bound);
	struct kevent_file *kf;
	struct kevent_bound *kb;

	if (!t || uk->event >= t->nr)
		return NULL;
	kb = rcu_dereference(t->slot[array_index_nospec(uk->event, t->nr)]);
	if (!kb)
		return NULL;
	kf = &kb->shared.kf;
	if (kf->ke.id_low != uk->id.raw[0] || kf->file != file ||
	    kevent_is_dead(&kf->ke))
		return NULL;
	return &kf->ke;
}

const struct kevent_source_ops kevent_bound_ops = {
	.name		= "bound",
	.file		= true,
	.size		= sizeof(struct kevent_bound),
	.check		= ev_bound_check,
	.find		= ev_bound_find,
	.attach		= ev_bound_attach,
	.detach		= ev_bound_detach,
	.rearm		= ev_bound_rearm,
};

/* Calls */

/*
 * The call in a slot, under RCU: its watch may be about to be removed, and its file be
 * gone. Or why there is none.
 */
static struct kevent_bound *bound_get(struct kevent_queue *q, u64 slot)
{
	struct kevent_bound_table *t;
	struct kevent_bound *kb;

	if (!q || slot >= KEVENT_BOUND_MAX)
		return ERR_PTR(-EINVAL);
	t = rcu_dereference(q->bound);
	if (!t)
		return ERR_PTR(-EBADF);
	if (t->mm != current->mm)
		return ERR_PTR(-EXDEV);
	if (slot >= t->nr)
		return ERR_PTR(-EBADF);
	kb = rcu_dereference(t->slot[array_index_nospec(slot, t->nr)]);
	return kb ?: ERR_PTR(-EBADF);
}

/* Receives the call as a program would write it. Returns its file, to compare. */
static struct file *bound_read(struct kevent_queue *q, u64 slot,
			       struct pt_regs *regs, u32 *nr)
{
	struct kevent_bound *kb;

	guard(rcu)();
	kb = bound_get(q, slot);
	if (IS_ERR(kb))
		return ERR_CAST(kb);
	*nr = kb->nr;
	regs->KEVENT_CALL_ARG0 = kb->shared.kf.ke.id_low;
	regs->KEVENT_CALL_ARG1 = kb->arg[0];
	regs->KEVENT_CALL_ARG2 = kb->arg[1];
	regs->KEVENT_CALL_ARG3 = kb->arg[2];
	regs->KEVENT_CALL_ARG4 = 0;
	regs->KEVENT_CALL_ARG5 = 0;
	return kb->shared.kf.file;
}

/*
 * Look up a bound call, to make it: @regs receives its arguments. @slot is anything a
 * program may have written. Returns the number of the call, or -EBADF, as the call itself:
 * its descriptor was closed or is another file. Refused: -EINVAL for no queue or no such
 * slot, -EXDEV for calls of another process, -ENOSYS without bound calls in this kernel.
 */
long kevent_bound_unfold(struct kevent_queue *q, u64 slot, struct pt_regs *regs)
{
	struct file *file;
	u32 nr;

	file = bound_read(q, slot, regs, &nr);
	if (IS_ERR(file))
		return PTR_ERR(file);
	CLASS(fd, f)(regs->KEVENT_CALL_ARG0);
	if (fd_file(f) != file)
		return -EBADF;
	return nr;
}
