/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The methods of a source, and the table of sources
 */
#ifndef _KEVENT_SOURCE_OPS_H
#define _KEVENT_SOURCE_OPS_H

#include <linux/bits.h>
#include <linux/err.h>
#include <linux/nospec.h>
#include <linux/types.h>
#include <linux/ukevent.h>

#include "types.h"

/* After the last type. A new source is declared below, and put into sources.c. */
#define KEVENT_NR_TYPES		(KEVENT_BOUND + 1)

/*
 * kevent_source_ops.flags, beside the request flags above 0xff that a source knows.
 *
 * FILE: The id is a file descriptor, and the structure of a watch begins with a &struct
 *	kevent_file. Otherwise it begins with a &struct kevent_keyed.
 * MANY: A queue may have a watch of a descriptor for each event, and otherwise one.
 * LEVEL: The source has collect(), which polls the condition. Without %KEVENT_REQ_ET the next
 *	call polls a watch again after its delivery, since the condition may still hold, and
 *	reports it while it does. An entry has the conditions that collect() returns and an
 *	amount, so there is no fill() or delivered().
 * FOREIGN: Its files may be of any driver. So collect() may never return if it is not atomic.
 * ARMS: modify_unlocked() arms the watch for a MODIFY.
 *
 * With %KEVENT_REQ_DRIVEN a process posts the events of its watches: see kernel/module/driven.c.
 */
#define KEVENT_SOURCE_FILE	BIT(16)
#define KEVENT_SOURCE_MANY	BIT(17)
#define KEVENT_SOURCE_LEVEL	BIT(18)
#define KEVENT_SOURCE_FOREIGN	BIT(19)
#define KEVENT_SOURCE_ARMS	BIT(20)

/* command() returns this when the source has done it all. */
#define KEVENT_COMMAND_DONE	1

/* Bytes that command() may take with each %KEVENT_CTL_READY */
#define KEVENT_MARK_BYTES	32

/**
 * struct kevent_source_ops - what a source does
 * @name:	in fdinfo
 * @flags:	%KEVENT_SOURCE_FILE and its like, and request flags above 0xff that it knows
 * @size:	of the structure of its watches, which begins a cache line with
 *		%KEVENT_SOURCE_LEVEL
 * @pins:	bytes of other objects that each watch keeps: charged with it
 * @marks:	conditions that %KEVENT_CTL_READY reports, as far as the watch and the request
 *		have them
 * @check:	pure validation of a request. Called unlocked. 0 or -errno
 * @key:	the id by which a watch is found; only for sources without a file.
 *		Unlocked; other watches of the source may not have this id. Optional:
 *		the id of the request
 * @attach:	set what the source adds to the watch, which has arbitrary contents; call
 *		kevent_file_link() or kevent_key_link(), and arm the watch, which is
 *		claimed; kevent_ready() may be called from then on. May sleep. Returns the
 *		conditions that hold already, or -errno; detach() is called in either case
 * @detach:	disarm; on return no callback runs or will run, except under RCU
 *		one that expects a dead watch. Called in process context, with
 *		the watched object pinned and after kevent_unlink(); takes no
 *		lock that is held across a ->poll() or a fault. Called once,
 *		after attach() has returned. Optional where callbacks come by kevent_find() only
 * @destroy:	free what attach() allocated. Optional
 * @command:	a task wants %KEVENT_CTL_MODIFY, REMOVE or READY of the watch, which is not dead;
 *		under ready_lock. Returns 0 to have it done, -errno, which is -EPERM if the task
 *		may only take events, or %KEVENT_COMMAND_DONE, but not of MODIFY. REMOVE that is
 *		done leaves the watch, which reports that it is over. READY that is done adds to
 *		&kevent.ready and takes *room, of %KEVENT_MARK_BYTES, if it needs that; without
 *		any it returns -ENOBUFS and is called again. Otherwise READY has collect()
 *		asked, or reports @marks. Optional: all who have the queue may
 * @modified:	events and flags of the watch have changed to what the request
 *		says; under ready_lock. May drop what is not delivered yet, by
 *		kevent_forget(). Optional. With %KEVENT_SOURCE_LEVEL it is for other events only
 * @modify_unlocked: the part of MODIFY that is done without ready_lock. Optional.
 *		With %KEVENT_SOURCE_ARMS it comes first, arms the claimed watch anew, and is like
 *		attach(): if it fails, the watch keeps its events and flags, but may be
 *		disarmed. detach() may be called at the same time, once the watch is dead.
 *		Otherwise it comes last, if the watch was disabled or has lost some of its
 *		events. What was reported to it in the place of others, and it does not want any
 *		more, is for them. It may be dead since. Under RCU, with the watched object
 *		pinned; the result is ignored
 * @collect:	the conditions that hold now, 0 when there is nothing to report.
 *		Either the watch is claimed and held, and the call may sleep. Or it
 *		is @atomic: under ready_lock, for a watch that is not dead;
 *		-EAGAIN when it takes a lock or sleep. Optional: what happened is
 *		only known from kevent_ready() and attach(), and kept until it is
 *		delivered
 * @amount:	how much there is; under ready_lock, any context. With
 *		%KEVENT_SOURCE_LEVEL: the second word of the result, for conditions that hold,
 *		optional. Otherwise: occurrences not yet delivered, for sources that keep each
 *		one; optional: one, while the watch is on the ready list
 * @fill:	put what the source knows of the oldest occurrence into an entry; under
 *		ready_lock, any context. When there is none, something the watch says
 *		of itself. A broken watch has its -errno in the second word of the result, which
 *		is -EIDRM before. Optional: an entry has the conditions, and one that is unread
 *		and has the same makes another one redundant
 * @delivered:	the entry made by fill() of the oldest occurrence has reached
 *		user memory; under ready_lock. Optional
 */
struct kevent_source_ops {
	const char		*name;
	u32			flags;
	u32			size;
	u32			pins;
	u32			marks;
	int (*check)(const struct ukevent *uk, struct file *file);
	u64 (*key)(const struct ukevent *uk);
	int (*attach)(struct kevent *ke, const struct ukevent *uk,
		      struct file *file);
	void (*detach)(struct kevent *ke);
	void (*destroy)(struct kevent *ke);
	int (*command)(struct kevent *ke, u32 cmd, const struct ukevent *uk,
		       void **room);
	void (*modified)(struct kevent *ke, const struct ukevent *uk);
	int (*modify_unlocked)(struct kevent *ke, const struct ukevent *uk);
	int (*collect)(struct kevent *ke, bool atomic);
	u32 (*amount)(struct kevent *ke, u32 ready);
	void (*fill)(struct kevent *ke, struct ukevent *uk);
	void (*delivered)(struct kevent *ke);
};

extern const struct kevent_source_ops kevent_socket_ops;
extern const struct kevent_source_ops kevent_inode_ops;
extern const struct kevent_source_ops kevent_timer_ops;
extern const struct kevent_source_ops kevent_poll_ops;
extern const struct kevent_source_ops kevent_pipe_ops;
extern const struct kevent_source_ops kevent_signal_ops;
extern const struct kevent_source_ops kevent_posix_timer_ops;
extern const struct kevent_source_ops kevent_user_ops;
extern const struct kevent_source_ops kevent_proc_ops;
extern const struct kevent_source_ops kevent_futex_ops;
extern const struct kevent_source_ops kevent_aio_ops;
extern const struct kevent_source_ops kevent_bound_ops;

/* sources.c: by type; NULL when this kernel has no source for it */
extern const struct kevent_source_ops *const kevent_sources[];

/* sources/timer.c: the start, the queue's file and its watches are gone, the end of the module */
void kevent_timers_init(void);
void kevent_timers_stop(struct kevent_queue *q);
void kevent_timers_exit(void);

/* The source of a watch */
static inline const struct kevent_source_ops *
kevent_source_of(const struct kevent *ke)
{
	return kevent_sources[ke->type];
}

static inline bool kevent_has_file(const struct kevent *ke)
{
	return kevent_source_of(ke)->flags & KEVENT_SOURCE_FILE;
}

/* Can what it reports be looked up? */
static inline bool kevent_has_level(const struct kevent *ke)
{
	return kevent_source_of(ke)->flags & KEVENT_SOURCE_LEVEL;
}

/*
 * The source of a type, which is anything a caller may have written: ERR_PTR(-EINVAL) when
 * there is no such type, ERR_PTR(-ENOSYS) when this kernel has no source for it.
 */
static inline const struct kevent_source_ops *kevent_source(u32 type)
{
	const struct kevent_source_ops *ops;

	if (type >= KEVENT_NR_TYPES)
		return ERR_PTR(-EINVAL);
	ops = kevent_sources[array_index_nospec(type, KEVENT_NR_TYPES)];
	return ops ?: ERR_PTR(-ENOSYS);
}

/* Is what a watch reports a condition that holds, and looked up again? */
static inline bool kevent_is_checked(const struct kevent *ke)
{
	return kevent_has_level(ke) &&
	       (ke->req_flags & (KEVENT_REQ_ET | KEVENT_REQ_LAST_CHECK)) !=
	       KEVENT_REQ_ET;
}

#endif /* _KEVENT_SOURCE_OPS_H */
