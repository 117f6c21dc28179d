// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Signals that watches of the module consume
 *
 * The module takes a signal out of what is pending, so one that threads block. Others are
 * delivered when they are sent. A handler gets them, and offers them to all watches of the
 * process by one call of the device, whichever queues these are in. A signal that none of
 * them wants has the effect that it would have without the handler: so it stays when the
 * last watch goes, which the library may not see.
 */
#include <pthread.h>
#include <signal.h>

#include "api/device.h"
#include "api/process.h"
#include "fallback/sys.h"
#include "before.h"
#include "posted.h"
#include "siginfo.h"

#define NR_SIGNALS	64U

/* By signal; changed under kevent_process_lock() */
static struct fb_before olds[NR_SIGNALS];

/* Atomic: the process that has watches, not a child of its, and a queue of the latest */
static pid_t watching;
static int queue = -1;

/* It may interrupt any code, itself included. */
static void caught(int signal, siginfo_t *info, void *context)
{
	struct fb_siginfo si = fb_siginfo_of(signal, info);
	struct ukevent uk;

	kevent_set_signal(&uk, signal, KEVENT_SIGNAL_CONSUME, 0, 0);
	uk.id.raw_u64 |= (__u64)(si.pid & 0x7fffffffU) << 32;
	uk.ret_data[0] = si.code;
	uk.ret_data[1] = si.value;
	if (si.observed || __atomic_load_n(&watching, __ATOMIC_ACQUIRE) != getpid() ||
	    kevent_device_post(&uk, __atomic_load_n(&queue, __ATOMIC_RELAXED)))
		fb_as_before(&olds[signal - 1], signal, info, context);
}

/*
 * Children that nobody waits for send no signal, and are not to send one. The C library has
 * two signals for itself: without a handler, a watch takes what is blocked.
 */
static void catch_signal(int signal, int fd)
{
	struct sigaction now;

	pthread_mutex_lock(kevent_process_lock());
	__atomic_store_n(&queue, fd, __ATOMIC_RELAXED);
	__atomic_store_n(&watching, getpid(), __ATOMIC_RELEASE);
	if (!fb_call(sigaction(signal, NULL, &now)) && !fb_has_handler(&now, caught) &&
	    !(signal == SIGCHLD && now.sa_handler == SIG_IGN))
		fb_before_replace(&olds[signal - 1], signal, &now, caught);
	pthread_mutex_unlock(kevent_process_lock());
}

bool kevent_signal_retry(struct ukevent *uk, int fd)
{
	__u64 signal = uk->id.raw_u64 & ~KEVENT_SIGNAL_NOMASK;

	if (uk->type != KEVENT_SIGNAL || kevent_error(uk) != -ENOSYS ||
	    !(uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK) || !signal ||
	    signal > NR_SIGNALS)
		return false;
	catch_signal((int)signal, fd);
	uk->id.raw_u64 |= KEVENT_SIGNAL_POSTED;
	uk->ret_flags = 0;
	return true;
}

void kevent_signal_retried(struct ukevent *uk, int result)
{
	/* An event that is handed back has an id of its own. */
	if (result <= 0 || kevent_error(uk))
		uk->id.raw_u64 &= ~KEVENT_SIGNAL_POSTED;
	if (result < 0) {
		uk->ret_flags = KEVENT_RET_DONE | KEVENT_RET_BROKEN;
		uk->ret_data[1] = (__u32)result;
	} else if (!result) {
		uk->ret_flags = KEVENT_RET_DONE;
	}
}
