// SPDX-License-Identifier: GPL-2.0
/*
 * Attached chains: files that can be polled, each with a chain that is run when it is
 * ready
 *
 * The look at the condition is the chain: a consumer runs it, outside all locks, and as
 * if the file were non-blocking. If the first entry says -EAGAIN nothing is ready, and
 * otherwise the event has the end of the chain. What a run has done cannot be undone, so
 * its result is kept until user memory has it, however long the ring is full.
 */

#include <linux/cleanup.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "call.h"
#include "poll_report.h"
#include "poll_source.h"
#include "source.h"

/**
 * struct kevent_attached - a file, and a chain to run when it is ready
 * @kp:		the watch
 * @mm:		I: whose memory @chain is in; a pointer to compare, held by mmgrab().
 *		Other than that of the queue it is charged
 * @process:	I: who added it, with a reference: another one may share @mm. The chain is
 *		never run by another process, which has other descriptors and rights than
 *		those who wrote it
 * @chain:	the chain. The four below are those of the task that is busy with the
 *		watch, and of all who have ready_lock while none is
 * @nr:		its length
 * @done:	the conditions that held when the chain was run, and the event of that is yet
 *		to be delivered; 0: there is none. Meanwhile the chain is not run, and cannot
 *		be taken away
 * @at:		of @done: how it ended, as kevent_call() returns it
 * @result:	of @done: the result of the entry that ended it
 * @kept:	R: of @done: a wake-up came while its event found no room or memory, and has
 *		its look after that event
 * @seen:	the conditions that the last look under ready_lock has found, for the run that
 *		follows at once; 0: none, or they are to be asked for
 */
struct kevent_attached {
	struct kevent_poll	kp;
	struct mm_struct	*mm;
	struct pid		*process;
	struct kevent_call __user *chain;
	u32			nr;
	u32			done;
	u32			seen;
	s64			result;
	u32			at;
	bool			kept;
};

static struct kevent_attached *to_attached(struct kevent *ke)
{
	return container_of(ke, struct kevent_attached, kp.kf.ke);
}

/* An event's id, with how its chain ended, names the watch, too. */
#define EV_CHAIN_ID_HIGH	(KEVENT_CALL_REFUSED | (KEVENT_CALL_REFUSED - 1))

static u64 ev_chain_address(const struct ukevent *uk)
{
	return (u64)uk->ret_data[1] << 32 | uk->ret_data[0];
}

static int ev_chain_check(const struct ukevent *uk, struct file *file)
{
	u16 how = uk->req_flags & (KEVENT_REQ_LAST_CHECK | KEVENT_REQ_HAND_BACK);

	if (uk->event & ~(__force u32)EV_POLL_EVENTS ||
	    how != KEVENT_REQ_LAST_CHECK)
		return -EINVAL;
	if (!uk->id.raw[1] || uk->id.raw[1] > KEVENT_CALL_MAX)
		return -EINVAL;
	if (!IS_ALIGNED(ev_chain_address(uk), sizeof(u64)))
		return -EINVAL;
	return kevent_call_allowed() ? 0 : -EPERM;
}

/* Owners */

static u32 ev_chain_mm_cost(const struct kevent_attached *ka)
{
	return ka->mm == ka->kp.kf.ke.queue->mm ? 0 : KEVENT_MM_BYTES;
}

static int ev_chain_own(struct kevent_attached *ka)
{
	ka->mm = current->mm;
	if (!kevent_charge(ka->kp.kf.ke.queue->owner, ev_chain_mm_cost(ka))) {
		ka->mm = NULL;
		return -ENOSPC;
	}
	mmgrab(ka->mm);
	ka->process = get_pid(task_tgid(current));
	return 0;
}

static void ev_chain_destroy(struct kevent *ke)
{
	struct kevent_attached *ka = to_attached(ke);

	ev_poll_destroy(ke);
	if (!ka->mm)
		return;
	kevent_uncharge(ke->queue->owner, ev_chain_mm_cost(ka));
	mmdrop(ka->mm);
	put_pid(ka->process);
}

/* Does the current task mean by addresses and descriptors what those of the chain do? */
static bool ev_chain_is_mine(const struct kevent_attached *ka)
{
	return ka->mm == current->mm && ka->process == task_tgid(current) &&
	       ka->kp.kf.table == current->files;
}

/* The chain */

static void ev_chain_set(struct kevent_attached *ka, const struct ukevent *uk)
{
	ka->chain = u64_to_user_ptr(ev_chain_address(uk));
	ka->nr = uk->id.raw[1];
}

static int ev_chain_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_attached *ka = to_attached(ke);

	ev_chain_set(ka, uk);
	return ev_chain_own(ka) ?: ev_poll_attach(ke, uk, file);
}

/* MODIFY. No consumer is busy with the watch: -EBUSY has been said. */
static int ev_chain_rearm(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_attached *ka = to_attached(ke);

	if (!ev_chain_is_mine(ka))
		return -EXDEV;
	if (ka->done)
		return -EBUSY;
	ev_chain_set(ka, uk);
	return 0;
}

/* REMOVE. Who gets 0 may free the chain. */
static int ev_chain_cancel(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (kevent_is_alive(ke) &&
	    (kevent_is_busy(ke) || to_attached(ke)->done))
		return -EBUSY;
	return 1;
}

/* Running */

/* Run the chain: 0, -EAGAIN, or why it was not run. */
static int ev_chain_go(struct kevent_attached *ka, struct kevent_run *run)
{
	if (!kevent_call_allowed())
		return -EPERM;
	return ev_chain_is_mine(ka) ? kevent_run_attached(run) : -EXDEV;
}

static int ev_chain_run(struct kevent_attached *ka, u32 mask)
{
	struct kevent_run run = {
		.chain	= ka->chain,
		.queue	= ka->kp.kf.ke.queue,
		.nr	= ka->nr,
	};
	int err = ev_chain_go(ka, &run);

	if (err == -EAGAIN)
		return 0;
	if (err) {
		run.result = err;
		run.refused = true;
	}
	ka->at = run.at | (run.refused ? KEVENT_CALL_REFUSED : 0);
	ka->result = run.result;
	ka->kept = false;
	ka->done = mask;
	return mask;
}

static int ev_chain_collect(struct kevent *ke, bool atomic)
{
	struct kevent_attached *ka = to_attached(ke);
	int mask;

	if (ka->done) {
		ka->kept = true;
		return ka->done;
	}
	if (atomic) {
		mask = ev_poll_peek(ke);
		ka->seen = max(mask, 0);
		return mask ? -EAGAIN : 0;
	}
	mask = ka->seen ?: ev_poll_ask(ke);
	return mask ? ev_chain_run(ka, mask) : 0;
}

static void ev_chain_fill(struct kevent *ke, struct ukevent *uk, u32 nth)
{
	const struct kevent_attached *ka = to_attached(ke);

	/* fdinfo, while a task uses what is below */
	if (kevent_is_busy(ke))
		return;
	if (!ka->done) {
		uk->id.raw[1] = kevent_is_broken(ke) ? KEVENT_CALL_REFUSED :
						       ka->nr;
		return;
	}
	uk->id.raw[1] = ka->at;
	uk->ret_data[0] = lower_32_bits(ka->result);
	uk->ret_data[1] = upper_32_bits(ka->result);
}

/*
 * The run took what there was then. A look that was due while its result was kept may be
 * about something newer. The level watches have theirs in any case, as have those that
 * are modified first.
 */
static void ev_chain_delivered(struct kevent *ke)
{
	struct kevent_attached *ka = to_attached(ke);
	bool looks = ka->kept && ke->req_flags & KEVENT_REQ_ET &&
		     !(ke->req_flags & (KEVENT_REQ_ONESHOT |
					KEVENT_REQ_DISPATCH));

	ka->done = 0;
	if (looks)
		kevent_look_locked(ke);
}

const struct kevent_source_ops kevent_chain_ops = {
	EV_POLL_OPS("chain", ev_chain_check),
	.alone		= true,
	.id_high	= EV_CHAIN_ID_HIGH,
	.size		= sizeof(struct kevent_attached),
	.pins		= sizeof(struct pid) + sizeof(struct upid),
	.attach		= ev_chain_attach,
	.destroy	= ev_chain_destroy,
	.rearm		= ev_chain_rearm,
	.cancel		= ev_chain_cancel,
	.collect	= ev_chain_collect,
	.fill		= ev_chain_fill,
	.delivered	= ev_chain_delivered,
};
