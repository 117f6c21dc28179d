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

/* It may interrupt any code, itself included. */
static void caught(int signal, siginfo_t *info, void *context)
{
	struct fb_siginfo si = fb_siginfo_of(signal, info);
	struct ukevent uk;

	kevent_set_signal(&uk, signal, KEVENT_SIGNAL_CONSUME, 0, 0);
	uk.id.raw_u64 |= (__u64)(si.pid & 0x7fffffffU) << 32;
	uk.ret_data[0] = si.code;
	uk.ret_data[1] = si.value;
	if (si.observed || kevent_device_post(&uk))
		fb_as_before(&olds[signal - 1], signal, info, context);
}

/* Children that nobody waits for send no signal, and are not to send one. */
static int catch_signal(int signal)
{
	struct sigaction now;
	int err;

	pthread_mutex_lock(kevent_process_lock());
	err = fb_call(sigaction(signal, NULL, &now));
	if (!err && !fb_has_handler(&now, caught) &&
	    !(signal == SIGCHLD && now.sa_handler == SIG_IGN))
		err = fb_before_replace(&olds[signal - 1], signal, &now, caught);
	pthread_mutex_unlock(kevent_process_lock());
	return err;
}

bool kevent_signal_retry(struct ukevent *uk)
{
	__u64 signal = uk->id.raw_u64 & ~KEVENT_SIGNAL_NOMASK;

	if (uk->type != KEVENT_SIGNAL || kevent_error(uk) != -ENOSYS ||
	    !(uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK) || !signal ||
	    signal > NR_SIGNALS || catch_signal((int)signal))
		return false;
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
