/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls that are bound to a descriptor, and made by a slot: ev_bound.c
 */
#ifndef _KEVENT_BOUND_H
#define _KEVENT_BOUND_H

#include <linux/errno.h>
#include <linux/list.h>
#include <linux/types.h>

#include "kevent.h"

struct file;
struct kevent_queue;
struct pt_regs;

/**
 * struct kevent_bound - a bound call
 * @kf:		the watch; its event is the slot
 * @alike:	F: a ring of the bound calls of the same queue, descriptor and file table. The
 *		list of the file has one of them, and walks of others pass one
 * @listed:	F: it is the one on the list
 * @nr:		I: number of the call
 * @quick:	I: it is a read() of a length that vfs_read() does not cut
 * @arg:	I: its arguments behind the descriptor, as far as a call of the list in
 *		bound_check() has any; the others are 0
 */
struct kevent_bound {
	struct kevent_file	kf;
	struct list_head	alike;
	u32			nr;
	bool			quick;
	bool			listed;
	u64			arg[3];
};

static inline struct kevent_bound *to_bound(struct kevent *ke)
{
	return container_of(ke, struct kevent_bound, kf.ke);
}

#ifdef CONFIG_KEVENT_AIO

#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/xacct.h>

#include "queue.h"

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

struct kevent *kevent_bound_find(struct kevent_queue *q, u32 slot, u32 fd,
				 const struct file *file);
long kevent_bound_call(struct kevent_queue *q, u64 slot, struct pt_regs *regs,
		       bool *refused);
long kevent_bound_nowait(struct kevent_queue *q, u64 slot,
			 struct pt_regs *regs, bool parts, bool *refused);
void kevent_bound_drop(struct kevent_queue *q);
long kevent_bound_read_any(struct file *file, char __user *buf, size_t count);

/* What a file has whose reads are made in line: no lock of its position, no stream */
#define KEVENT_BOUND_MODES	(FMODE_READ | FMODE_CAN_READ |		\
				 FMODE_ATOMIC_POS | FMODE_STREAM)

/*
 * vfs_read() of a quick call, and what read() does with
 * the position, in line.
 */
static __always_inline long kevent_bound_read_file(struct file *file,
						   char __user *buf,
						   size_t count)
{
	loff_t pos = file->f_pos;
	long ret;

	ret = rw_verify_area(READ, file, &pos, count);
	if (ret)
		return ret;
	ret = file->f_op->read(file, buf, count, &pos);
	if (ret > 0) {
		fsnotify_access(file);
		add_rchar(current, ret);
	}
	inc_syscr(current);
	if (ret >= 0)
		file->f_pos = pos;
	return ret;
}

/*
 * The file and the arguments of a quick bound call, if its descriptor is the file. No
 * other task has the file table, so nobody closes the descriptor meanwhile, and a
 * file that is there needs no reference: that is fdget() in line.
 */
static __always_inline struct file *
kevent_bound_quick(struct kevent_queue *q, u64 slot, char __user **buf,
		   size_t *count)
{
	struct files_struct *files = current->files;
	struct kevent_bound_table *t;
	struct kevent_bound *kb;
	struct file *file;

	/* Pairs with put_files_struct(), see fdget(). */
	if (unlikely(atomic_read_acquire(&files->count) != 1))
		return NULL;
	guard(rcu)();
	t = rcu_dereference(q->bound);
	if (unlikely(!t || t->mm != current->mm || slot >= t->nr))
		return NULL;
	kb = rcu_dereference(t->slot[array_index_nospec(slot, t->nr)]);
	if (unlikely(!kb || !kb->quick))
		return NULL;
	file = files_lookup_fd_raw(files, kb->kf.ke.id_low);
	if (unlikely(file != kb->kf.file))
		return NULL;
	*buf = (char __user *)kb->arg[0];
	*count = kb->arg[1];
	return file;
}

/**
 * kevent_bound_read - make a bound call, if it is a read() of a process with one thread
 * @q: the queue that has it
 * @slot: its slot, anything a program may have written
 * @ret: receives what read() returns
 *
 * Return: false when nothing has happened, and kevent_bound_call() is to be asked.
 */
static __always_inline bool kevent_bound_read(struct kevent_queue *q, u64 slot,
					      long *ret)
{
	char __user *buf;
	struct file *file;
	size_t count;

	file = kevent_bound_quick(q, slot, &buf, &count);
	if (unlikely(!file))
		return false;
	if (file->f_op->read && (file->f_mode & KEVENT_BOUND_MODES) ==
				(FMODE_READ | FMODE_CAN_READ))
		*ret = kevent_bound_read_file(file, buf, count);
	else
		*ret = kevent_bound_read_any(file, buf, count);
	return true;
}

#else

static inline struct kevent *kevent_bound_find(struct kevent_queue *q,
					       u32 slot, u32 fd,
					       const struct file *file)
{
	return NULL;
}

static inline long kevent_bound_call(struct kevent_queue *q, u64 slot,
				     struct pt_regs *regs, bool *refused)
{
	*refused = true;
	return -ENOSYS;
}

static inline long kevent_bound_nowait(struct kevent_queue *q, u64 slot,
				       struct pt_regs *regs, bool parts,
				       bool *refused)
{
	*refused = true;
	return -ENOSYS;
}

static inline bool kevent_bound_read(struct kevent_queue *q, u64 slot,
				     long *ret)
{
	return false;
}

static inline void kevent_bound_drop(struct kevent_queue *q) {}

#endif

#endif /* _KEVENT_BOUND_H */
