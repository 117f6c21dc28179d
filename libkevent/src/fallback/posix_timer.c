// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * POSIX_TIMER: timers of timer_create(), whose signals a thread of the library takes
 *
 * The kernel sends the signal of a timer to that thread alone, which is one of a process. It is
 * the one that C libraries have for timers, so programs neither block nor handle it. The thread
 * finds the queue of the timer, and counts. Signals come in order: if an expiry may be under way
 * when a timer is set, the thread's own timer expires, too, and is awaited. Then none of before
 * is. Any other signal needs memory, which there is for that of a timer from the start.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <linux/time_types.h>

#include "api/process.h"
#include "fallback.h"
#include "ops.h"
#include "sys.h"

#ifndef sigev_notify_thread_id	/* as musl has it */
#define sigev_notify_thread_id	_sigev_un._tid
#endif

/* On 32-bit machines the call without 64 has 32-bit times. */
#ifndef SYS_rt_sigtimedwait_time64
#define SYS_rt_sigtimedwait_time64 SYS_rt_sigtimedwait
#endif
#ifndef SYS_timer_settime64
#define SYS_timer_settime64	SYS_timer_settime
#endif

#define TIMER_SIGNAL		32
#define TIMER_SET		(1ULL << (TIMER_SIGNAL - 1))
#define BUCKETS			64U

/**
 * struct fb_posix - the watch of a POSIX timer
 * @w:		the watch
 * @next:	in timers
 * @q:		the queue
 * @expired:	how often, since the last entry
 * @reported:	an expiry may not be delivered yet
 * @taken:	of a timer without an interval: no expiry can be under way once it stands still
 * @steady:	nobody can set its clock back
 */
struct fb_posix {
	struct fb_watch		w;
	struct fb_posix		*next;
	struct fb_queue		*q;
	__u64			expired;
	bool			reported;
	bool			taken;
	bool			steady;
};

/* By id; under kevent_process_lock(), which nests in the lock of a queue */
static struct fb_posix *timers[BUCKETS];
/* A timer that is being made, of the caller; -1: none. And its clock */
static _Thread_local int in_making = -1;
static _Thread_local int clock_of_it;
/*
 * The thread, and the process that has it: its mark, which may be 0, and its id. Under
 * kevent_process_lock(); the first is a futex.
 */
static __u32 thread;
static __u32 process;
static pid_t process_id;
/* The timer of the thread itself, and how often it has heard of that: a futex */
static int own_timer;
static __u32 passed;
/* One at a time sets or deletes a timer; the locks of queues nest in it */
static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER;

#define to_posix(watch)	fb_container(watch, struct fb_posix, w)

static struct fb_posix **place_of(__u32 id)
{
	return &timers[id % BUCKETS];
}

static int create(int clock, int notify, int signal, int to, __u64 user)
{
	struct sigevent sev = { .sigev_notify = notify, .sigev_signo = signal };
	int id = 0, ret;

	sev.sigev_value.sival_ptr = (void *)(uintptr_t)user;
	sev.sigev_notify_thread_id = to;
	ret = (int)fb_sys(SYS_timer_create, clock, &sev, &id);
	return ret < 0 ? ret : id;
}

static int settime(int id, int flags, const struct __kernel_itimerspec *to,
		   struct __kernel_itimerspec *was)
{
	return (int)fb_sys(SYS_timer_settime64, id, flags, to, was);
}

/* Have the thread hear of its own timer: 0 or -errno */
static int call_thread(void)
{
	static const struct __kernel_itimerspec at_once = { .it_value.tv_nsec = 1 };

	return settime(own_timer, TIMER_ABSTIME, &at_once, NULL);
}

static int stop(int id, struct __kernel_itimerspec *was)
{
	static const struct __kernel_itimerspec never;

	return settime(id, 0, &never, was);
}

/* The watch of a timer, or NULL */
static struct fb_posix *watch_of(struct fb_queue *q, int id)
{
	struct fb_watch *w = fb_find(&q->index, KEVENT_POSIX_TIMER, (__u32)id);

	return w ? to_posix(w) : NULL;
}

/* The queue that the timer has or, if it has gone, had; or NULL */
static struct fb_queue *find_queue(int id)
{
	struct fb_posix *p;

	FB_HOLD(kevent_process_lock());
	if (!kevent_process_is(process))
		return NULL;
	p = *place_of((__u32)id);
	while (p && p->w.id != (__u32)id)
		p = p->next;
	return p ? p->q : NULL;
}

/*
 * The same, referenced. Without the lock, which the end of a queue takes: here may be its last
 * reference. A queue that is used again by then does not have the timer.
 */
static struct fb_queue *queue_of(int id)
{
	struct fb_queue *q = find_queue(id);

	return q && fb_ref(q) ? q : NULL;
}

/* The thread */

static void expired(int id, int overrun)
{
	struct fb_queue *q FB_PUT = queue_of(id);
	struct fb_posix *p;

	if (!q) {
		stop(id, NULL);
		return;
	}
	FB_HOLD_QUEUE(q, -1);
	p = watch_of(q, id);
	if (p) {
		p->expired += 1 + (__u64)overrun;
		p->reported = true;
		p->taken = true;
		fb_occurred(q, &p->w, KEVENT_POSIX_TIMER_FIRED);
	}
}

/* Wait until the thread has what was sent before. Under @setting */
static void pass(void)
{
	__u32 now = __atomic_load_n(&passed, __ATOMIC_ACQUIRE);

	if (!call_thread())
		while (__atomic_load_n(&passed, __ATOMIC_ACQUIRE) == now)
			fb_sleep_at(&passed, now, NULL);
}

/* Others may send the signal to a program that is more than they are. They do not know the value. */
static void took(const siginfo_t *info)
{
	if (info->si_code == SI_TIMER && info->si_value.sival_ptr == timers)
		expired(info->si_timerid, info->si_overrun);
	if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &passed)
		return;
	fb_bump(&passed, 1);
}

/* The first signal of its own timer; others may be sent before. Where none comes nobody waits on. */
static bool gets_signal(const __u64 *set)
{
	const struct __kernel_timespec patience = { .tv_sec = 3 };
	siginfo_t info;
	long ret;

	if (call_thread())
		return false;
	do {
		ret = fb_sys(SYS_rt_sigtimedwait_time64, set, &info, &patience,
			     sizeof(*set));
	} while (ret == -EINTR ||
		 (ret == TIMER_SIGNAL && info.si_value.sival_ptr != &passed));
	return ret == TIMER_SIGNAL;
}

/*
 * Does the thread get signals of timers? Its id, or -errno: filters may refuse what that takes by
 * any error.
 */
static int try_signal(const __u64 *set)
{
	int tid = (int)fb_sys(SYS_gettid);

	own_timer = create(CLOCK_MONOTONIC, SIGEV_THREAD_ID, TIMER_SIGNAL, tid,
			   (uintptr_t)&passed);
	if (own_timer < 0)
		return own_timer == -EAGAIN ? -EAGAIN : -ENOSYS;
	if (gets_signal(set))
		return tid;
	fb_sys(SYS_timer_delete, own_timer);
	return -ENOSYS;
}

static void *take_signals(void *arg)
{
	const __u64 set = TIMER_SET;
	siginfo_t info;
	int tid;

	fb_sys(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, sizeof(set));
	tid = try_signal(&set);
	__atomic_store_n(&thread, (__u32)tid, __ATOMIC_RELEASE);
	fb_sys(SYS_futex, &thread, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
	while (tid > 0) {
		if (fb_sys(SYS_rt_sigtimedwait, &set, &info, NULL, sizeof(set)) == TIMER_SIGNAL)
			took(&info);
	}
	return arg;
}

static int start_thread(void)
{
	pthread_t it;

	thread = 0;
	if (fb_start_thread(&it, take_signals, NULL))
		return -EAGAIN;
	pthread_detach(it);
	while (!__atomic_load_n(&thread, __ATOMIC_ACQUIRE))
		fb_sleep_at(&thread, 0, NULL);
	return (int)thread > 0 ? 0 : (int)thread;
}

/* Its id, or -errno. A child has neither the thread nor timers. */
static int get_thread(void)
{
	int ret = 0;
	__u32 i;

	FB_HOLD(kevent_process_lock());
	if ((int)thread <= 0 || process_id != getpid() || !kevent_process_is(process)) {
		for (i = 0; i < BUCKETS; i++)
			timers[i] = NULL;
		pthread_mutex_init(&setting, NULL);
		ret = start_thread();
		process = kevent_process_mark();
		process_id = getpid();
	}
	return ret ? ret : (int)thread;
}

/* The source */

static int fb_posix_timer_check(const struct ukevent *uk)
{
	return uk->event != KEVENT_POSIX_TIMER_FIRED || uk->id.raw[1] ?
	       -EINVAL : 0;
}

/* Only kevent_timer_create() makes a watch. */
static int fb_posix_timer_attach(struct fb_queue *q, struct fb_watch *w,
				 const struct ukevent *uk)
{
	struct fb_posix **at = place_of(uk->id.raw[0]), *p = to_posix(w);

	if (in_making < 0 || uk->id.raw[0] != (__u32)in_making)
		return -EINVAL;
	FB_HOLD(kevent_process_lock());
	w->stage = FB_WAITS;
	p->taken = true;
	p->steady = clock_of_it != CLOCK_REALTIME && clock_of_it != CLOCK_REALTIME_ALARM &&
		    clock_of_it != CLOCK_TAI;
	p->q = q;
	p->next = *at;
	*at = p;
	return 0;
}

/* The timer goes on without notifying anybody, until the thread hears of it. */
static void fb_posix_timer_detach(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_posix **at = place_of((__u32)w->id), *p = to_posix(w);

	if (!p->q)
		return;
	FB_HOLD(kevent_process_lock());
	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
}

static int fb_posix_timer_modify(struct fb_queue *q, struct fb_watch *w,
				 const struct ukevent *uk, const struct fb_watch *old)
{
	return to_posix(w)->expired ? (int)KEVENT_POSIX_TIMER_FIRED : 0;
}

static void fb_posix_timer_fill(struct fb_queue *q, struct fb_watch *w, struct ukevent *uk)
{
	__u64 overrun = to_posix(w)->expired;

	overrun -= !!overrun;
	uk->ret_data[0] = (__u32)overrun;
	uk->ret_data[1] = (__u32)(overrun >> 32);
}

static void fb_posix_timer_delivered(struct fb_queue *q, struct fb_watch *w)
{
	to_posix(w)->expired = 0;
}

/* A mark has no effect: expirations are reported anyway. */
static int fb_posix_timer_mark(struct fb_queue *q, struct fb_watch *w, const struct ukevent *uk)
{
	return 0;
}

const struct fb_ops fb_posix_timer_ops = {
	.size		= sizeof(struct fb_posix),
	.silent		= true,
	.driven		= true,
	.check		= fb_posix_timer_check,
	.attach		= fb_posix_timer_attach,
	.detach		= fb_posix_timer_detach,
	.modify		= fb_posix_timer_modify,
	.fill		= fb_posix_timer_fill,
	.delivered	= fb_posix_timer_delivered,
	.mark		= fb_posix_timer_mark,
};

/* The calls */

static int add_watch(int queue, int id, int clock, __u64 user)
{
	struct ukevent uk;
	int err;

	kevent_set_posix_timer(&uk, (__u32)id, 0, user);
	in_making = id;
	clock_of_it = clock;
	err = kevent_ctl_one(queue, KEVENT_CTL_ADD, &uk);
	in_making = -1;
	return err;
}

int kevent_timer_create(int queue, int clock, __u64 user)
{
	int to, id, err;

	if (!kevent_fb_has(queue)) {
		if (kevent_kernel_there())
			return create(clock, SIGEV_KEVENT, 0, queue, user);
		err = kevent_ctl(queue, KEVENT_CTL_ADD, 0, NULL);
		if (err)
			return err;
	}
	to = get_thread();
	if (to < 0)
		return to;
	id = create(clock, SIGEV_THREAD_ID, TIMER_SIGNAL, to, (uintptr_t)timers);
	if (id < 0)
		return id;
	err = add_watch(queue, id, clock, user);
	if (!err)
		return id;
	fb_sys(SYS_timer_delete, id);
	return err;
}

static bool is_zero(const struct __kernel_timespec *ts)
{
	return !ts->tv_sec && !ts->tv_nsec;
}

/* May a signal of the timer, as it @was, be under way? If its clock was set back, nobody knows. */
static bool may_come(const struct fb_posix *p, const struct __kernel_itimerspec *was)
{
	if (!is_zero(&was->it_interval))
		return true;
	if (is_zero(&was->it_value))
		return !p->taken;
	/* The kernel has not dealt with an expiry yet if 1 ns is left. */
	return !p->steady || (!was->it_value.tv_sec && was->it_value.tv_nsec == 1);
}

static void forget(struct fb_queue *q, struct fb_posix *p)
{
	if (!p)
		return;
	p->expired = 0;
	p->reported = false;
	fb_take_back(q, &p->w);
}

/* Under @setting and the lock of the queue, which is released meanwhile */
static void flush(struct fb_queue *q, int id)
{
	stop(id, NULL);
	fb_queue_unlock(q);
	pass();
	fb_queue_lock(q, -1);
	forget(q, watch_of(q, id));
}

/*
 * Set a timer, and drop what it has reported. The thread waits for the lock if the timer expires
 * at once. Returns 0, or -errno.
 */
static int set_anew(struct fb_queue *q, int id, int flags, const struct __kernel_itimerspec *to,
		    struct __kernel_itimerspec *was)
{
	int err = settime(id, flags, to, was);
	struct fb_posix *p = watch_of(q, id);

	if (err || !p)
		return err;
	if (may_come(p, was)) {
		flush(q, id);
		err = settime(id, flags, to, NULL);
		p = watch_of(q, id);
	} else if (p->reported) {
		forget(q, p);
	}
	if (p)
		p->taken = is_zero(&to->it_value);
	return err;
}

static int set_locked(struct fb_queue *q, int id, int flags,
		      const struct __kernel_itimerspec *to, struct __kernel_itimerspec *was)
{
	FB_HOLD(&setting);
	FB_HOLD_QUEUE(q, -1);
	return set_anew(q, id, flags, to, was);
}

static bool is_time(const struct timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < 1000000000;
}

static struct __kernel_timespec kernel_time(const struct timespec *ts)
{
	return (struct __kernel_timespec){ ts->tv_sec, ts->tv_nsec };
}

static struct timespec user_time(const struct __kernel_timespec *ts)
{
	return (struct timespec){ (time_t)ts->tv_sec, (long)ts->tv_nsec };
}

int kevent_timer_settime(int timer, int flags, const struct itimerspec *value,
			 struct itimerspec *old)
{
	struct fb_queue *q FB_PUT = queue_of(timer);
	struct __kernel_itimerspec now, was;
	int ret = -EINVAL;

	now.it_interval = kernel_time(&value->it_interval);
	now.it_value = kernel_time(&value->it_value);
	if (is_time(&value->it_interval) && is_time(&value->it_value)) {
		if (q)
			ret = set_locked(q, timer, flags, &now, &was);
		else
			ret = settime(timer, flags, &now, &was);
	}
	if (!ret && old) {
		old->it_interval = user_time(&was.it_interval);
		old->it_value = user_time(&was.it_value);
	}
	return ret;
}

int kevent_timer_delete(int timer)
{
	static const struct __kernel_itimerspec never;
	struct fb_queue *q FB_PUT = queue_of(timer);
	struct __kernel_itimerspec was;
	struct fb_posix *p;

	if (q) {
		set_locked(q, timer, 0, &never, &was);
		FB_HOLD_QUEUE(q, -1);
		p = watch_of(q, timer);
		if (p)
			fb_end_watch(q, &p->w);
	}
	return (int)fb_sys(SYS_timer_delete, timer);
}
