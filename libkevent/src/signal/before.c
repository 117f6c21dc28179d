// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The action that a program has set for a signal
 *
 * The kernel calls our handler with all signals blocked, those of the C library included, so that
 * no other handler can interrupt it and jump away. The handler from before runs with the mask that
 * it would have. Nothing else can block signals of the C library: by these our handler tells
 * whether the kernel calls it, or a handler that has found ours and hands signals on to it.
 */
#include <string.h>
#include <ucontext.h>

#include "before.h"
#include "fallback/sys.h"

/* As the kernel has it */
struct fb_mask {
	unsigned long words[8 / sizeof(long)];
};

#define FB_MARK		31	/* bit of the first signal of the C library, in the first word */

static struct fb_mask fb_mask_of(const sigset_t *set)
{
	struct fb_mask mask;

	memcpy(&mask, set, sizeof(mask));
	return mask;
}

static bool fb_by_kernel(void)
{
	struct fb_mask now = { .words[0] = 0 };

	fb_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, sizeof(now));
	return now.words[0] >> FB_MARK & 1;
}

/* The mask that @old would have where the kernel has interrupted the program */
static void fb_set_mask(const struct sigaction *old, int signal,
			const ucontext_t *context)
{
	struct fb_mask mask = fb_mask_of(&context->uc_sigmask);
	struct fb_mask more = fb_mask_of(&old->sa_mask);
	unsigned int bits = 8 * sizeof(long), nr = (unsigned int)signal - 1, i;

	for (i = 0; i < sizeof(mask.words) / sizeof(*mask.words); i++)
		mask.words[i] |= more.words[i];
	if (!(old->sa_flags & SA_NODEFER))
		mask.words[nr / bits] |= 1UL << nr % bits;
	mask.words[0] &= ~(1UL << FB_MARK);
	fb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

static bool fb_is_default(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

/*
 * End or stop the process, as if there were no handler. Of threads that do this at a
 * time, the one that took a handler away puts it back: each time it goes, one does.
 */
static void fb_by_default(int signal)
{
	struct sigaction none = { .sa_handler = SIG_DFL }, before, now;
	long thread = fb_sys(SYS_gettid);
	sigset_t only, mask;

	if (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG ||
	    signal == SIGWINCH)
		return;
	if (sigaction(signal, &none, &before))
		return;
	fb_sys(SYS_tgkill, getpid(), thread, signal);
	sigemptyset(&only);
	sigaddset(&only, signal);
	pthread_sigmask(SIG_UNBLOCK, &only, &mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (!fb_is_default(&before) && !sigaction(signal, NULL, &now) &&
	    fb_is_default(&now))
		sigaction(signal, &before, NULL);
}

static struct fb_action *fb_latest(struct fb_before *before)
{
	return __atomic_load_n(&before->over, __ATOMIC_ACQUIRE) ?
	       &before->last : &before->first;
}

static bool fb_is_function(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO ||
	       (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static struct sigaction fb_action_get(struct fb_action *action)
{
	struct sigaction ret;

	ret = action->copies[__atomic_load_n(&action->at, __ATOMIC_ACQUIRE)];
	if (__atomic_load_n(&action->spent, __ATOMIC_RELAXED)) {
		ret.sa_flags &= ~SA_SIGINFO;
		ret.sa_handler = SIG_DFL;
	}
	return ret;
}

/* Of threads that run one with SA_RESETHAND at a time, one gets the function. */
static struct sigaction fb_action_run(struct fb_action *action)
{
	struct sigaction ret = fb_action_get(action);

	if (fb_is_function(&ret) && ret.sa_flags & (int)SA_RESETHAND &&
	    __atomic_exchange_n(&action->spent, true, __ATOMIC_RELAXED))
		ret = fb_action_get(action);
	return ret;
}

static void fb_action_set(struct fb_action *action, const struct sigaction *to)
{
	__u32 next = !action->at;

	action->copies[next] = *to;
	__atomic_store_n(&action->at, next, __ATOMIC_RELEASE);
	__atomic_store_n(&action->spent, false, __ATOMIC_RELEASE);
}

void fb_as_before(struct fb_before *before, int signal, siginfo_t *info,
		  void *context)
{
	bool by_kernel = fb_by_kernel();
	struct sigaction old = fb_action_run(by_kernel ? fb_latest(before) :
							 &before->first);

	if (fb_is_default(&old))
		fb_by_default(signal);
	if (!fb_is_function(&old))
		return;
	if (by_kernel)
		fb_set_mask(&old, signal, context);
	if (old.sa_flags & SA_SIGINFO)
		old.sa_sigaction(signal, info, context);
	else
		old.sa_handler(signal);
}

bool fb_has_handler(const struct sigaction *action, fb_handler *ours)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == ours;
}

static void fb_before_set(struct fb_before *before, const struct sigaction *now)
{
	if (!before->placed && !before->over) {
		fb_action_set(&before->first, now);
		return;
	}
	fb_action_set(&before->last, now);
	__atomic_store_n(&before->over, true, __ATOMIC_RELEASE);
}

int fb_before_replace(struct fb_before *before, int signal,
		      const struct sigaction *now, fb_handler *ours)
{
	struct sigaction action;
	int err;

	fb_before_set(before, now);
	action.sa_sigaction = ours;
	/* sigfillset() leaves those of the C library out. */
	memset(&action.sa_mask, 0xff, sizeof(action.sa_mask));
	action.sa_flags = SA_SIGINFO | SA_ONSTACK |
			  (fb_is_function(now) ? 0 : SA_RESTART) |
			  (now->sa_flags &
			   (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT));
	err = fb_call(sigaction(signal, &action, NULL));
	before->placed |= !err;
	return err;
}

void fb_before_restore(struct fb_before *before, int signal, fb_handler *ours)
{
	struct sigaction now, old = fb_action_get(fb_latest(before));

	if (fb_call(sigaction(signal, NULL, &now)))
		return;
	if (fb_has_handler(&now, ours))
		before->placed = fb_call(sigaction(signal, &old, NULL));
	else if (before->placed)
		/* It may hand signals on to us. */
		fb_before_set(before, &old);
}
