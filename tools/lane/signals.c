// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: handlers of signals
 *
 * A handler that the program installs is called by on_signal(). So a wait knows whether
 * the call that it stands for goes on (SA_RESTART), and a handler which interrupts a thread
 * within the lock runs when the thread leaves it: the handler may use a stream.
 */
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "lane.h"

#define NR_SIGNALS	65

/* As the program has given them. A handler may run while another thread changes one. */
static struct sigaction handlers[NR_SIGNALS];

__thread volatile sig_atomic_t lane_interrupted;
__thread volatile sig_atomic_t lane_put_off;
static __thread siginfo_t put_off[NR_SIGNALS];
static __thread volatile sig_atomic_t is_put_off[NR_SIGNALS];
static __thread pid_t put_off_in[NR_SIGNALS];	/* the process: a child leaves its parent's */

/* Of a signal that is put off: is it blocked when the call has restored the mask of the thread? */
#define STAYS_BLOCKED	2

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
	       sig == SIGTRAP || sig == SIGSYS;
}

static int install(int sig, const struct sigaction *act, struct sigaction *old);

static void on_signal(int sig, siginfo_t *info, void *context)
{
	__typeof__(handlers->sa_sigaction) handler =
		__atomic_load_n(&handlers[sig].sa_sigaction, __ATOMIC_ACQUIRE);
	int flags = __atomic_load_n(&handlers[sig].sa_flags, __ATOMIC_RELAXED);
	sigset_t *mask = &((ucontext_t *)context)->uc_sigmask;
	struct sleep *sleep;

	if (lane_is_inside() && !is_fault(sig)) {
		put_off[sig] = *info;
		put_off_in[sig] = getpid();
		is_put_off[sig] = sigismember(mask, sig) ? STAYS_BLOCKED : 1;
		lane_put_off = 1;
		if (flags & (int)SA_RESETHAND)
			install(sig, &handlers[sig], NULL);
		/* Later ones stay in the kernel until then. */
		sigaddset(mask, sig);
		return;
	}
	sleep = lane_before_handler();
	/* As from the kernel, one without SA_SIGINFO has all three, too. */
	handler(sig, info, context);
	lane_after_handler(sleep);
	/* The handler may have slept, too. */
	lane_interrupted |= flags & SA_RESTART ? RESTART : NO_RESTART;
}

static int install(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction mine = *act;

	mine.sa_flags |= SA_SIGINFO;
	mine.sa_sigaction = on_signal;
	return real()->sigaction(sig, &mine, old);
}

void lane_signals_again(void)
{
	sigset_t again, blocked;
	pid_t pid = getpid();
	int sig;

	sigemptyset(&again);
	sigemptyset(&blocked);
	lane_put_off = 0;
	for (sig = 1; sig < NR_SIGNALS; sig++) {
		if (!is_put_off[sig])
			continue;
		if (is_put_off[sig] == STAYS_BLOCKED)
			sigaddset(&blocked, sig);
		is_put_off[sig] = 0;
		if (put_off_in[sig] == pid)
			syscall(SYS_rt_tgsigqueueinfo, pid, gettid(), sig, &put_off[sig]);
		sigaddset(&again, sig);
	}
	pthread_sigmask(SIG_UNBLOCK, &again, NULL);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

static void keep(int sig, const struct sigaction *act)
{
	handlers[sig].sa_mask = act->sa_mask;
	__atomic_store_n(&handlers[sig].sa_flags, act->sa_flags, __ATOMIC_RELAXED);
	__atomic_store_n(&handlers[sig].sa_sigaction, act->sa_sigaction, __ATOMIC_RELEASE);
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction before;
	int ret;

	/* Maybe the first call: real() reads the settings. */
	if (!real()->sigaction || !lane_settings.paths || sig <= 0 || sig >= NR_SIGNALS)
		return real()->sigaction(sig, act, old);
	before = handlers[sig];
	if (act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN) {
		keep(sig, act);
		ret = install(sig, act, old);
	} else {
		ret = real()->sigaction(sig, act, old);
	}
	if (ret)
		keep(sig, &before);
	if (!ret && old && old->sa_sigaction == on_signal)
		*old = before;
	return ret;
}

ALIAS(__sigaction, sigaction);

static sighandler_t set_handler(int sig, sighandler_t handler, unsigned int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = (int)flags };

	sigemptyset(&act.sa_mask);
	return sigaction(sig, &act, &act) ? SIG_ERR : act.sa_handler;
}

static sighandler_t handler_of(int sig)
{
	struct sigaction act;

	return sigaction(sig, NULL, &act) ? SIG_ERR : act.sa_handler;
}

EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler, SA_RESTART);
}

ALIAS(bsd_signal, signal);
ALIAS(ssignal, signal);

EXPORT sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler, SA_RESETHAND | SA_NODEFER);
}

ALIAS(__sysv_signal, sysv_signal);

/* It unblocks what is not SIG_HOLD, and says whether that was blocked. */
EXPORT sighandler_t sigset(int sig, sighandler_t handler)
{
	sigset_t set, before;
	sighandler_t old;

	sigemptyset(&set);
	if (sigaddset(&set, sig) || pthread_sigmask(SIG_SETMASK, NULL, &before))
		return SIG_ERR;
	old = handler == SIG_HOLD ? handler_of(sig) : set_handler(sig, handler, 0);
	if (old != SIG_ERR)
		pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
	return old == SIG_ERR || !sigismember(&before, sig) ? old : SIG_HOLD;
}

EXPORT int siginterrupt(int sig, int on)
{
	struct sigaction act;

	if (sigaction(sig, NULL, &act))
		return -1;
	if (on)
		act.sa_flags &= ~SA_RESTART;
	else
		act.sa_flags |= SA_RESTART;
	return sigaction(sig, &act, NULL);
}
