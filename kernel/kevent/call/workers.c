// SPDX-License-Identifier: GPL-2.0
/*
 * AIO: the serving threads of a queue, and the chains that wait for them
 *
 * The rest of a chain that would block becomes a watch, keyed by the cookie and charged to
 * the owner of the queue like any watch; its event is the end. ADD makes the same watch from
 * user space, so nothing that kevent_call() submits is special. The watch is ONESHOT, and
 * takes the usual way to the consumer by kevent_ready_locked(). It is not removed:
 * ev_aio_command() says what REMOVE does in place of that.
 *
 * A chain that would block needs a task that can block, with the credentials, files and
 * memory of its program. The kernel has no such task, so the program lends one. A serving
 * thread is a thread of the process that submits chains. It has called kevent_wait() with
 * KEVENT_FLAGS_SERVE, and makes the calls of a chain as its own. So there is no kernel
 * thread, and no credential, file table or address space is kept.
 *
 * A thread is a member of kevent_crew.limit as long as it serves, and at most so many of them
 * run. core/max_running.c decides that, in kevent_limit_enter(), and which thread is next. A
 * thread that blocks in a call does not count: the scheduler says so, as it does for workqueues,
 * and another one takes the next chain. A thread takes a chain when it begins it: one that leaves
 * for a signal leaves it to another. If a call oopses, do_exit() drops the member before it can
 * block.
 *
 * A queue has chains of one process, since they are addresses. kevent_crew.process is a
 * pointer to compare. If the last descriptor of the queue is closed while the process
 * ends, they are nobody's, and the release of the file removes them. Only that process
 * cancels them by REMOVE. exec and the last thread's exit cancel the chains that wait, in
 * kevent_drop_chains(), and then clear the pointer. Until then no other process can submit
 * chains to the queue, so the cancellation comes to an end. Chains that ran have ended, with
 * -EINTR, when the other threads were killed.
 *
 * Serving threads hold the queue's file by a reference of their own, because a call of the
 * chain may close the descriptor. So that they do not keep the queue for ever, ->flush()
 * has them check their descriptors if one was closed in their table, and not in that of a
 * child. Each wakes the next one, and nobody walks their list.
 * A thread that begins to serve checks first: the descriptor may have been closed after
 * the file was found.
 */

#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/freezer.h>
#include <linux/kevent.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "../core/max_running.h"
#include "../core/quota.h"
#include "../core/source.h"
#include "../core/testpoint.h"
#include "chain.h"
#include "workers.h"

/**
 * struct kevent_job - a chain that was left to serving threads: a watch of type AIO
 * @kk:		the watch, found by its user value. While a thread runs the chain, which
 *		has the queue's file, nobody removes the watch
 * @link:	in &kevent_crew.jobs; empty when a thread has begun it, or it is cancelled. Under
 *		&kevent_limit.lock
 * @run:	the chain, and where to begin; how it has ended. Under
 *		&kevent_queue.ready_lock
 */
struct kevent_job {
	struct kevent_keyed	kk;
	struct list_head	link;
	struct kevent_run	run;
};

#define to_job(watch)	container_of(watch, struct kevent_job, kk.ke)

/* Crews of processes: taken to claim a crew, and at the end of a process or queue */
static DEFINE_SPINLOCK(kevent_crews_lock);

/* A job is not to be done. Returns false when a thread has it, or it was taken before. */
static bool kevent_job_del(struct kevent_crew *crew, struct kevent_job *job)
{
	guard(raw_spinlock_irqsave)(&crew->limit.lock);
	if (list_empty(&job->link))
		return false;
	list_del_init(&job->link);
	kevent_limit_del_job(&crew->limit);
	return true;
}

/* Are the chains of a queue those of the current process? */
static bool kevent_crew_is_mine(const struct kevent_queue *q)
{
	/* Only the last thread of a process gives its crews up. */
	return READ_ONCE(q->crew.process) == current->signal;
}

/* The current process is to submit chains, or to serve. Returns 0, or -EXDEV for another one. */
static int kevent_crew_claim(struct kevent_queue *q)
{
	struct kevent_crew *crew = &q->crew;

	if (kevent_crew_is_mine(q))
		return 0;
	guard(spinlock)(&kevent_crews_lock);
	if (!crew->process) {
		WRITE_ONCE(crew->process, current->signal);
		hlist_add_head(&crew->member, &current->signal->kevent_crews);
	}
	return crew->process == current->signal ? 0 : -EXDEV;
}

/*
 * A chain, not dead, is not to be run: its event says so. The calls from the step @run.at
 * on are not made. Returns 0, -EPERM for a chain of another process, or -EALREADY when a
 * thread has begun with it.
 */
static int kevent_crew_cancel(struct kevent *ke)
{
	struct kevent_job *job = to_job(ke);

	lockdep_assert_held(&ke->queue->ready_lock);

	if (!kevent_crew_is_mine(ke->queue))
		return -EPERM;
	if (!kevent_job_del(&ke->queue->crew, job))
		return -EALREADY;
	job->run.refused = true;
	job->run.result = -ECANCELED;
	kevent_ready_locked(ke, KEVENT_AIO_DONE);
	return 0;
}

/* Cancel the oldest chain, if there is one. RCU keeps its watch, which may be removed meanwhile. */
static bool kevent_crew_cancel_one(struct kevent_queue *q)
{
	struct kevent_job *job;

	guard(rcu)();
	scoped_guard(raw_spinlock_irq, &q->crew.limit.lock)
		job = list_first_entry_or_null(&q->crew.jobs, struct kevent_job, link);
	if (!job)
		return false;
	kevent_testpoint(q, KEVENT_TESTPOINT_CANCEL);
	guard(kevent_queue)(q);
	if (!kevent_is_dead(&job->kk.ke))
		kevent_crew_cancel(&job->kk.ke);
	else
		kevent_job_del(&q->crew, job);
	return true;
}

/*
 * The current process ends, or executes another program. It is the last thread: no
 * chain runs, and none is submitted. If the file of a queue goes meanwhile, its chains are
 * nobody's, and cannot be cancelled: kevent_fop_release() removes them.
 */
void __kevent_drop_chains(void)
{
	struct hlist_head *crews = &current->signal->kevent_crews;
	struct kevent_queue *q;

	for (;;) {
		/* The crew stays that of the process: nobody submits before kevent_crew_end(). */
		scoped_guard(spinlock, &kevent_crews_lock) {
			if (hlist_empty(crews))
				return;
			q = hlist_entry(crews->first, struct kevent_queue, crew.member);
			hlist_del_init(&q->crew.member);
			/* The file has a reference as long as the crew is a member. */
			refcount_inc(&q->refs);
		}
		while (kevent_crew_is_mine(q) && kevent_crew_cancel_one(q))
			cond_resched();
		kevent_testpoint(q, KEVENT_TESTPOINT_DROPPED);
		kevent_crew_end(q);
		kevent_queue_put(q);
	}
}

/*
 * A crew is nobody's any more: the file of its queue is gone, or its process ends. There
 * are no servers: they have a reference to the file, and were other threads.
 */
void kevent_crew_end(struct kevent_queue *q)
{
	/* Nobody becomes the process here: it would have the file, or be this one. */
	if (!READ_ONCE(q->crew.process))
		return;
	guard(spinlock)(&kevent_crews_lock);
	WRITE_ONCE(q->crew.table, NULL);
	WRITE_ONCE(q->crew.process, NULL);
	hlist_del_init(&q->crew.member);
}

/* Serving */

/*
 * A close of a descriptor in the table of the current thread has servers look from now on.
 * It is seen there, or the thread sees that the descriptor is closed when it first looks.
 */
static void kevent_crew_note(struct kevent_crew *crew)
{
	const void *table = cmpxchg(&crew->table, NULL, current->files);

	if (table && table != current->files)
		WRITE_ONCE(crew->table, KEVENT_TAKERS);
	/* Pairs with kevent_fop_flush(). */
	smp_mb();
}

static bool kevent_is_open(int fd, const struct kevent_queue *q)
{
	struct file *file;

	guard(rcu)();
	file = files_lookup_fd_raw(current->files, fd);
	return file && is_kevent_file(file) && file->private_data == q;
}

/*
 * Wait for a job, or an error: -EINTR, -ETIME, -EBADF. It is interrupted before it looks at a
 * job, and leaves chains to others when it is to be frozen.
 */
static struct kevent_job *kevent_server_wait(struct kevent_member *m, struct kevent_queue *q,
					     int fd, const struct kevent_deadline *until)
{
	bool timed_out = until->nowait;
	struct kevent_job *job;

	for (;;) {
		if (unlikely(freezing(current))) {
			kevent_limit_rest(m);
			kevent_freeze();
		}
		if (kevent_is_interrupted())
			return ERR_PTR(-EINTR);
		switch (kevent_limit_enter(m, !timed_out)) {
		case KEVENT_LIMIT_ADMITTED:
			scoped_guard(raw_spinlock_irq, &q->crew.limit.lock) {
				m->job = false;
				job = list_first_entry_or_null(&q->crew.jobs, struct kevent_job,
							       link);
				if (job)
					list_del_init(&job->link);
			}
			/* NULL: it was cancelled meanwhile. */
			if (job)
				return job;
			continue;
		case KEVENT_LIMIT_LOOK:
			if (!kevent_is_open(fd, q))
				return ERR_PTR(-EBADF);
			continue;
		case KEVENT_LIMIT_PARKED:
			break;
		default:
			return ERR_PTR(-ETIME);
		}
		kevent_testpoint(q, KEVENT_TESTPOINT_IDLE);
		timed_out = kevent_schedule(until);
		kevent_limit_unparked(m);
		kevent_recheck_signals();
	}
}

static void kevent_server_run(struct kevent_member *m, struct kevent_queue *q,
			      struct kevent_job *job)
{
	struct kevent_run run = job->run;
	int err = kevent_run_chain(&run, false);

	kevent_run_settle();
	/* It counts until it parks or leaves. */
	m->waits = true;
	kevent_testpoint(q, KEVENT_TESTPOINT_RAN);
	guard(kevent_queue)(q);
	job->run = run;
	/* The memory of the chain is not there, or it has ended. @job goes with the event. */
	if (err)
		kevent_broken_locked(&job->kk.ke);
	else
		kevent_ready_locked(&job->kk.ke, KEVENT_AIO_DONE);
}

/*
 * Run the chains of a queue. From now on @limit servers of it may run at once. Returns the
 * number of chains that were run, which is 0 after the timeout, or -EINTR after a signal,
 * -EBADF, -EXDEV, -ENOMEM.
 */
int kevent_serve(int fd, u32 limit, struct kevent_deadline *until)
{
	/* A call of a chain may close @fd. */
	struct file *file __free(fput) = fget(fd);
	struct kevent_member *m;
	struct kevent_queue *q;
	struct kevent_job *job;
	int err, nr = 0;

	if (!file)
		return -EBADF;
	if (!is_kevent_file(file))
		return -EINVAL;
	if (!kevent_call_allowed())
		return -EPERM;
	q = file->private_data;
	kevent_testpoint(q, KEVENT_TESTPOINT_SERVE);
	err = kevent_crew_claim(q) ?: kevent_limit_serve(&q->crew.limit, limit, &m);
	if (err)
		return err;
	kevent_crew_note(&q->crew);
	kevent_deadline_start(until);
	while (!IS_ERR(job = kevent_server_wait(m, q, fd, until))) {
		kevent_server_run(m, q, job);
		if (nr < INT_MAX)
			nr++;
	}
	/* Others may go on with what it leaves. */
	kevent_limit_leave(NULL);
	err = PTR_ERR(job);
	return nr || err == -ETIME ? nr : err;
}

/* The watch */

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
	struct kevent_crew *crew = &ke->queue->crew;
	struct kevent_job *job = to_job(ke);
	int err;

	INIT_LIST_HEAD(&job->link);
	job->run = (struct kevent_run) {
		.chain	= u64_to_user_ptr(uk->id.raw_u64),
		.queue	= ke->queue,
		.nr	= uk->ret_data[0],
		.at	= uk->ret_data[1],
		.observed = kevent_call_observed(),
	};
	/* A chain ends once. */
	WRITE_ONCE(ke->req_flags, ke->req_flags | KEVENT_REQ_ONESHOT);
	err = kevent_crew_claim(ke->queue) ?: kevent_key_link(&job->kk);
	if (err)
		return err;
	guard(raw_spinlock_irq)(&crew->limit.lock);
	list_add_tail(&job->link, &crew->jobs);
	kevent_limit_add_job(&crew->limit);
	return 0;
}

static void ev_aio_detach(struct kevent *ke)
{
	kevent_job_del(&ke->queue->crew, to_job(ke));
}

/* Not a word of it can be changed. The end of a chain is always reported. */
static int ev_aio_command(struct kevent *ke, u32 cmd, const struct ukevent *uk,
			  void **room)
{
	if (cmd != KEVENT_CTL_REMOVE)
		return -EPERM;
	return kevent_crew_cancel(ke) ?: KEVENT_COMMAND_DONE;
}

static void ev_aio_fill(struct kevent *ke, struct ukevent *uk)
{
	const struct kevent_run *run = &to_job(ke)->run;

	uk->id.raw_u64 = run->at | (run->refused ? KEVENT_CALL_REFUSED : 0);
	uk->ret_data[0] = lower_32_bits(run->result);
	uk->ret_data[1] = kevent_is_broken(ke) ? -EFAULT : upper_32_bits(run->result);
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
	.size		= sizeof(struct kevent_job),
	.check		= ev_aio_check,
	.key		= ev_aio_key,
	.attach		= ev_aio_attach,
	.detach		= ev_aio_detach,
	.command	= ev_aio_command,
	.fill		= ev_aio_fill,
};
