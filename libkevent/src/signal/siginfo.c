// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The event of a signal that a handler has got
 */
#include "siginfo.h"

static bool fb_is_fault(int signal, const siginfo_t *info)
{
	return info->si_code > 0 &&
	       (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
		signal == SIGTRAP || signal == SIGFPE || signal == SIGSYS);
}

/* Members of siginfo share their memory: which ones are there, the code says. */
struct fb_siginfo fb_siginfo_of(int signal, const siginfo_t *info)
{
	struct fb_siginfo si = {
		.signal = (__u32)signal,
		.code = (__u32)info->si_code,
		.observed = fb_is_fault(signal, info),
	};

	if (info->si_code > 0 ? signal == SIGCHLD :
	    info->si_code != SI_TIMER && info->si_code != SI_SIGIO) {
		si.pid = (__u32)info->si_pid;
		si.uid = (__u32)info->si_uid;
	}
	if (info->si_code < 0 && info->si_code != SI_SIGIO)
		si.value = (__u32)info->si_value.sival_int;
	return si;
}
