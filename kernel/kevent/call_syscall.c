// SPDX-License-Identifier: GPL-2.0
/*
 * kevent_call(): a chain of system calls in one
 *
 * With KEVENT_CALL_ASYNC a chain runs as far as no call blocks. The rest is left to
 * a serving thread of the same process: call/workers.c. Calls that are allowed are in
 * call/chain.c.
 */

#include <linux/cleanup.h>
#include <linux/file.h>
#include <linux/kevent.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>
#include <linux/ukevent.h>

#include "call/chain.h"
#include "call/workers.h"
#include "core/queue.h"
#include "core/quota.h"

/* The return value of kevent_call() for a chain that has ended */
static long kevent_call_ended(const struct kevent_run *run)
{
	return run->at | (run->refused ? KEVENT_CALL_REFUSED : 0);
}

static long kevent_call_async(struct kevent_run *run, u64 cookie)
{
	struct kevent_queue *q = run->queue;
	int err;

	if (!IS_ENABLED(CONFIG_KEVENT_AIO))
		return -ENOSYS;
	if (kevent_refuses_type(q, KEVENT_AIO))
		return -EPERM;
	err = kevent_run_chain(run, true);
	if (err != -EAGAIN)
		return err ?: kevent_call_ended(run);
	/* The rest of the chain is for a serving thread. If there can be none, that ends it. */
	err = kevent_aio_submit(q, run, cookie);
	if (!err)
		return KEVENT_CALL_SUBMITTED;
	run->refused = true;
	return put_user(err, &run->chain[run->at].result) ? -EFAULT : kevent_call_ended(run);
}

/* A call of the chain may close @fd: the queue is held by a reference. */
static long kevent_call_queue(int fd, struct kevent_run *run, u32 flags,
			      u64 cookie)
{
	struct file *file __free(fput) = fget(fd);

	if (!file)
		return -EBADF;
	if (!is_kevent_file(file))
		return -EINVAL;
	run->queue = file->private_data;
	if (flags)
		return kevent_call_async(run, cookie);
	return kevent_run_chain(run, false) ?: kevent_call_ended(run);
}

SYSCALL_DEFINE5(kevent_call, int, fd, struct kevent_call __user *, chain,
		u32, nr, u32, flags, u64, cookie)
{
	struct kevent_run run = { .chain = chain, .nr = nr };
	int err;

	BUILD_BUG_ON(sizeof(struct kevent_call) != 64);

	if (!kevent_call_allowed())
		return -EPERM;
	if (flags & ~KEVENT_CALL_ASYNC || !nr || nr > KEVENT_CALL_MAX)
		return -EINVAL;
	if (!IS_ALIGNED((unsigned long)chain, sizeof(u64)))
		return -EINVAL;
	if (!flags && (fd < -1 || cookie))
		return -EINVAL;
	if (fd != -1 || flags)
		return kevent_call_queue(fd, &run, flags, cookie);
	err = kevent_run_chain(&run, false);
	return err ?: kevent_call_ended(&run);
}
