// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * How long a wait looks before it sleeps
 *
 * A look that finds something saves a wake-up. So no look is longer than that, and what the
 * looks of a set have cost above what they have saved is its debt. A set with a debt of a few
 * wake-ups rests: it sleeps at once, then tries again, and rests for longer if that is in vain.
 *
 * Pauses serve a peer on another CPU, sched_yield() one on this CPU. Only the CPU time of this
 * thread counts: while the peer runs here, nothing is wasted. A program that computes may get
 * the CPU instead, and keeps it for longer than any wake-up takes: that is a whole debt.
 */
#include <errno.h>
#include <sys/timerfd.h>

#include "look.h"
#include "raw_syscall.h"

#define DEBT		8U		/* wake-ups that looks may cost above what they save */
#define PART		64U		/* of a wake-up: the unit of a debt */
#define REST_MIN	64U		/* waits */
#define REST_MAX	32768U
#define REST_HITS	512U		/* looks that pay shorten a rest by a part each */
#define PAUSES		8U		/* looks between two yields */
#define SWITCH		1000U		/* ns that a yield takes of this thread at most */
#define LONG		500000U		/* ns of a yield to a program that computes */
#define SAMPLES		5U
#define AHEAD		20000U		/* ns: the thread sleeps when the timer expires */
#define MOST		50000U		/* ns of a wake-up, more is by chance */
#define USUAL		5000U		/* ns, where it cannot be measured */

static __u32 min(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __u32 max(__u32 a, __u32 b)
{
	return a < b ? b : a;
}

/* --- the policy ---------------------------------------------------------- */

__u32 kevent_look_bound(struct kevent_look *l, __u32 cost)
{
	if (l->left) {
		l->left--;
		return 0;
	}
	return l->need ? min(max(2U * l->need, cost / 8U), cost) : cost;
}

static void look_rest(struct kevent_look *l)
{
	l->rest = (__u16)(l->rest < REST_MIN ? REST_MIN : min(2U * l->rest, REST_MAX));
	l->left = l->rest;
	l->debt = (DEBT - 1) * PART;
	l->need = 0;
}

void kevent_look_learn(struct kevent_look *l, __u32 cost, __u32 spent, bool found)
{
	__u32 parts = (min(spent, DEBT * cost) * PART + cost - 1) / cost;
	__u32 saved = PART - min(parts, PART);

	if (!found) {
		l->debt = (__u16)(l->debt + parts);
		if (l->debt >= DEBT * PART)
			look_rest(l);
		return;
	}
	l->debt = (__u16)(l->debt - min(l->debt, saved));
	l->rest = (__u16)(l->rest - (l->rest * saved / PART + REST_HITS - 1) / REST_HITS);
	l->need = (__u16)max(max(l->need - l->need / 256U, min(spent, cost)), 1);
}

/* --- the cost of a wake-up ----------------------------------------------- */

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return kevent_ns(&now);
}

/* How late a thread runs that sleeps until a timer expires */
static __u64 lateness(int fd)
{
	__u64 at = now_ns() + AHEAD, now, nr;
	struct itimerspec timer = { .it_value = {
		.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000),
	} };

	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &timer, NULL))
		return USUAL / 2;
	kevent_call6(SYS_read, fd, (long)&nr, sizeof(nr), 0, 0, 0);
	now = now_ns();
	return now < at ? 0 : now - at;
}

/* The median, twice: a peer that wakes this thread spends about as much on it. */
static __u32 measure(void)
{
	int saved = errno, fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	__u64 late[SAMPLES], new;
	__u32 i, j;

	for (i = 0; i < SAMPLES; i++) {
		new = lateness(fd);
		for (j = i; j && late[j - 1] > new; j--)
			late[j] = late[j - 1];
		late[j] = new;
	}
	if (fd >= 0)
		kevent_close_fd(fd);
	errno = saved;
	new = 2 * late[SAMPLES / 2];
	return new < MOST ? (__u32)new + 1 : MOST;
}

/* Threads may measure it at the same time. */
static __u32 wake_up_cost(void)
{
	static __u32 known;
	__u32 cost = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!cost) {
		cost = measure();
		__atomic_store_n(&known, cost, __ATOMIC_RELAXED);
	}
	return cost;
}

/* --- looking ------------------------------------------------------------- */

static bool look_often(__u32 looks, bool (*found)(const void *set), const void *set)
{
	for (; looks; looks--) {
		if (found(set))
			return true;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	}
	return false;
}

static bool look_learned(struct kevent_look *l, __u32 cost, __u32 bound,
			 bool (*found)(const void *set), const void *set)
{
	__u64 start, now = now_ns(), away = 0, spent = 0;
	__u32 looks = 1;
	bool is_found;

	for (;;) {
		start = now;
		is_found = look_often(looks, found, set);
		now = now_ns();
		spent += now - start;
		if (is_found || spent >= bound || away >= LONG)
			break;
		/* A set may be so large that several looks take longer than a wake-up. */
		if (looks == 1 && now - start < bound / PAUSES) {
			looks = PAUSES;
			continue;
		}
		start = now;
		kevent_call6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
		now = now_ns();
		away = now - start;
		spent += away < SWITCH ? away : SWITCH;
	}
	if (away >= LONG)
		kevent_look_learn(l, cost, DEBT * cost, false);
	else
		kevent_look_learn(l, cost, spent < cost ? (__u32)spent : cost, is_found);
	return is_found;
}

bool kevent_look(struct kevent_look *l, __u32 looks, const struct timespec *timeout,
		 bool (*found)(const void *set), const void *set)
{
	__u32 cost, bound;

	if (looks != KEVENT_LOOKS_LEARNED)
		return look_often(looks, found, set);
	if (found(set))
		return true;
	cost = wake_up_cost();
	if (timeout && !timeout->tv_sec && timeout->tv_nsec < (long)cost)
		return false;
	bound = kevent_look_bound(l, cost);
	return bound && look_learned(l, cost, bound, found, set);
}
