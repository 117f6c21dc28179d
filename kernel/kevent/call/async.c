// SPDX-License-Identifier: GPL-2.0
/*
 * Chains of calls that serving threads run: a watch is a chain, its event the end
 *
 * The rest of a chain that would block becomes a watch, keyed by the cookie and charged to
 * the owner of the queue like any watch. ADD makes the same watch from user space, so
 * nothing that kevent_call() submits is special. The watch is ONESHOT, and takes the usual
 * way to the consumer by kevent_ready_locked(). It is not removed:
 * kevent_source_ops.cancel says what REMOVE does in place of that.
 */

#include <linux/sched.h>

#include "../core/quota.h"
#include "../core/source.h"
#include "workers.h"

static struct kevent_job *to_job(struct kevent *ke)
{
	return container_of(ke, struct kevent_job, kk.ke);
}

/* Flags that mean something for a thing that happens once, and cannot be feigned */
#define EV_AIO_REQ							\
	(KEVENT_REQ_ONESHOT | KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL |	\
	 KEVENT_REQ_STAY_AWAKE)

static int ev_aio_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event != KEVENT_AIO_DONE || uk->req_flags & ~EV_AIO_REQ)
		return -EINVAL;
	if (!uk->ret_data[0] || uk->ret_data[0] > KEVENT_CALL_MAX ||
	    uk->ret_data[1] >= uk->ret_data[0])
		return -EINVAL;
	if (!IS_ALIGNED(uk->id.raw_u64, sizeof(u64)))
		return -EINVAL;
	return kevent_call_allowed() ? 0 : -EPERM;
}

static u64 ev_aio_key(const struct ukevent *uk)
{
	return uk->ptr;
}

static int ev_aio_attach(struct kevent *ke, const struct ukevent *uk,
			 struct file *file)
{
	struct kevent_job *job = to_job(ke);
	int err;

	INIT_LIST_HEAD(&job->link);
	job->run = (struct kevent_run) {
		.chain	= u64_to_user_ptr(uk->id.raw_u64),
		.queue	= ke->queue,
		.nr	= uk->ret_data[0],
		.at	= uk->ret_data[1],
	};
	/* A chain ends once. */
	WRITE_ONCE(ke->req_flags, ke->req_flags | KEVENT_REQ_ONESHOT);
	err = kevent_crew_claim(ke->queue) ?: kevent_key_link(&job->kk);
	if (!err)
		kevent_crew_enqueue(ke->queue, job);
	return err;
}

static void ev_aio_detach(struct kevent *ke)
{
	if (ke->queue->crew)
		kevent_crew_dequeue(ke->queue, to_job(ke));
}

/* Not a word of it can be changed. */
static bool ev_aio_may_change(const struct kevent *ke)
{
	return false;
}

static void ev_aio_fill(struct kevent *ke, struct ukevent *uk)
{
	const struct kevent_run *run = &to_job(ke)->run;

	uk->id.raw_u64 = run->at | (run->refused ? KEVENT_CALL_REFUSED : 0);
	uk->ret_data[0] = lower_32_bits(run->result);
	uk->ret_data[1] = upper_32_bits(run->result);
}

/*
 * Leave the rest of a chain, from @run->at on, to a serving thread. Returns 0,
 * -EEXIST, -EXDEV, -ENOSPC or -ENOMEM.
 */
int kevent_aio_submit(struct kevent_queue *q, const struct kevent_run *run,
		      u64 cookie)
{
	struct ukevent uk = {
		.id.raw_u64	= (unsigned long)run->chain,
		.type		= KEVENT_AIO,
		.event		= KEVENT_AIO_DONE,
		.ret_data	= { run->nr, run->at },
		.ptr		= cookie,
	};

	return PTR_ERR_OR_ZERO(kevent_add(q, &kevent_aio_ops, &uk, EMPTY_FD));
}

const struct kevent_source_ops kevent_aio_ops = {
	.name		= "aio",
	.error		= -EFAULT,
	.size		= sizeof(struct kevent_job),
	.check		= ev_aio_check,
	.key		= ev_aio_key,
	.attach		= ev_aio_attach,
	.detach		= ev_aio_detach,
	.may_change	= ev_aio_may_change,
	.cancel		= kevent_crew_cancel,
	.fill		= ev_aio_fill,
};
