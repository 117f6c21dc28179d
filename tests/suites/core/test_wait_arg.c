// SPDX-License-Identifier: GPL-2.0
/*
 * struct kevent_wait_arg: clock, numbers to wait for, signal mask, changes
 *
 *	min_nr 3, marks 1 2 3		returns 3
 *	min_nr 3, mark 1, min_wait over	returns 1
 *	min_nr 3, mark 1, timeout	returns 1
 *	change that fails		returns at once, results in place
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

#define ARG	KEVENT_FLAGS_ARG
#define ABS	KEVENT_FLAGS_ABSTIME
#define MS	1000000ull

static const struct timespec zero;

static struct kevent_wait_arg plain_arg(void)
{
	return (struct kevent_wait_arg){
		.size = sizeof(struct kevent_wait_arg),
		.clockid = CLOCK_MONOTONIC,
	};
}

static int wait_arg(struct queue *q, const struct timespec *ts,
		    uint32_t flags, const void *arg)
{
	uint64_t kidx = __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);

	return kevent_wait(q->fd, q->size, (uint32_t)kidx, ts, flags | ARG,
			   arg);
}

static void open_marks(struct queue *q, uint32_t size, unsigned int nr)
{
	unsigned int i;

	open_queue(q, size);
	for (i = 0; i < nr; i++)
		MUST_EQ(add_user(q->fd, i, 1, 0, i), 0);
}

static void each_member_is_checked(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct queue q;
	int clock;

	open_queue(&q, 4);
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), 0);
	arg.size = sizeof(arg) - 1;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -EINVAL);
	arg.size = 0;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -EINVAL);
	arg.size = 4097;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -E2BIG);
	arg = plain_arg();
	/* The suite max_running has what it does in the kernel. */
	arg.max_running = on_fallback();
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), 0);
	arg = plain_arg();
	arg.nr_changes = KEVENT_CTL_MAX + 1;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -EINVAL);
	for (clock = -3; clock < 20; clock++) {
		bool good = clock == CLOCK_REALTIME ||
			    clock == CLOCK_MONOTONIC ||
			    clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;

		arg = plain_arg();
		arg.clockid = clock;
		CHECK_EQ(wait_arg(&q, &zero, 0, &arg), good ? 0 : -EINVAL);
	}
	close_queue(&q);
}

static void bad_addresses_are_refused(void)
{
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct kevent_wait_arg arg = plain_arg();
	struct queue q;

	open_queue(&q, 4);
	CHECK_EQ(wait_arg(&q, &zero, 0, NULL), -EFAULT);
	CHECK_EQ(wait_arg(&q, &zero, 0, gone), -EFAULT);
	arg.sigmask = (uintptr_t)gone;
	arg.sigsetsize = 8;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -EFAULT);
	arg.sigsetsize = 4;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -EINVAL);
	arg = plain_arg();
	arg.changes = (uintptr_t)gone;
	arg.nr_changes = 1;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -EFAULT);
	close_queue(&q);
}

/* A program of the future works here if it asks for nothing new. */
static void later_versions_of_arg_are_understood(void)
{
	struct {
		struct kevent_wait_arg	arg;
		uint64_t		later;
	} next = { .arg = plain_arg() };
	struct queue q;

	open_queue(&q, 4);
	next.arg.size = sizeof(next);
	CHECK_EQ(wait_arg(&q, &zero, 0, &next), 0);
	next.later = 1;
	CHECK_EQ(wait_arg(&q, &zero, 0, &next), -E2BIG);
	close_queue(&q);
}

static const clockid_t clocks[] = {
	CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI,
};

static void no_clock_ends_a_wait_early(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct timespec ts;
	struct queue q;
	unsigned int i;
	int64_t at;

	open_queue(&q, 4);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		arg.clockid = clocks[i];
		at = clock_ns(clocks[i]) + 20 * MS;
		ts.tv_sec = at / (1000 * MS);
		ts.tv_nsec = at % (1000 * MS);
		CHECK_EQ(wait_arg(&q, &ts, ABS, &arg), 0);
		CHECK(clock_ns(clocks[i]) >= at);
		CHECK_EQ(wait_arg(&q, &ts, ABS, &arg), 0);
		ts = ms_to_timespec(20);
		at = clock_ns(clocks[i]) + 20 * MS;
		CHECK_EQ(wait_arg(&q, &ts, 0, &arg), 0);
		CHECK(clock_ns(clocks[i]) >= at);
	}
	close_queue(&q);
}

struct arg_waiter {
	struct actor		actor;
	struct queue		*q;
	struct kevent_wait_arg	arg;
	struct timespec		ts;
	bool			forever;
	uint32_t		flags;
};

static long run_arg_waiter(void *p)
{
	struct arg_waiter *w = p;

	return wait_arg(w->q, w->forever ? NULL : &w->ts, w->flags, &w->arg);
}

static void start_arg_waiter(struct arg_waiter *w)
{
	start_actor(&w->actor, run_arg_waiter, w);
	MUST(sleeps_in(w->actor.tid, __NR_kevent_wait));
}

static long join_arg_waiter(struct arg_waiter *w)
{
	join_actor(&w->actor, PATIENCE_MS);
	return w->actor.ret;
}

static void setting_the_clock_ends_an_absolute_wait(void)
{
	struct arg_waiter w = { .arg = plain_arg(), .flags = ABS };
	struct timespec now, later;
	uint64_t start = now_ns();
	struct queue q;

	open_queue(&q, 4);
	w.q = &q;
	w.arg.clockid = CLOCK_REALTIME;
	MUST_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
	w.ts = (struct timespec){ .tv_sec = now.tv_sec + 3600 };
	start_arg_waiter(&w);
	later = (struct timespec){ .tv_sec = now.tv_sec + 7200 };
	MUST_EQ(clock_settime(CLOCK_REALTIME, &later), 0);
	CHECK_EQ(join_arg_waiter(&w), 0);
	/* The clock cannot be set to a time before the boot. */
	now.tv_sec += 1 + (now_ns() - start) / (1000 * MS);
	MUST_EQ(clock_settime(CLOCK_REALTIME, &now), 0);
	close_queue(&q);
}

/* The clock cannot be set to a time before the boot. */
static void step_seconds(int64_t seconds)
{
	struct timespec ts;

	MUST_EQ(clock_gettime(CLOCK_REALTIME, &ts), 0);
	ts.tv_sec += seconds;
	MUST_EQ(clock_settime(CLOCK_REALTIME, &ts), 0);
}

static const clockid_t settable[] = { CLOCK_REALTIME, CLOCK_TAI };

static void setting_the_clock_does_not_shorten_a_span(void)
{
	struct arg_waiter w;
	struct queue q;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		open_marks(&q, 4, 1);
		w = (struct arg_waiter){
			.q = &q, .arg = plain_arg(), .ts = { .tv_sec = 3600 },
		};
		w.arg.clockid = settable[i];
		start_arg_waiter(&w);
		step_seconds(7200);
		CHECK(sleeps_in(w.actor.tid, __NR_kevent_wait));
		MUST_EQ(mark_user(q.fd, 0, 1), 1);
		CHECK_EQ(join_arg_waiter(&w), 1);
		step_seconds(-7200);
		close_queue(&q);
	}
}

static void setting_the_clock_does_not_lengthen_a_span(void)
{
	struct arg_waiter w;
	struct queue q;
	unsigned int i;

	open_queue(&q, 4);
	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		step_seconds(7200);
		w = (struct arg_waiter){
			.q = &q, .arg = plain_arg(), .ts = { .tv_sec = 1 },
		};
		w.arg.clockid = settable[i];
		start_arg_waiter(&w);
		step_seconds(-7200);
		CHECK_EQ(join_arg_waiter(&w), 0);
	}
	close_queue(&q);
}

/* The kernel has stored entries while a waiter still sleeps. */
static void wait_for_stored(struct queue *q, uint64_t nr)
{
	uint64_t start = now_ns();

	while (__atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE) < nr)
		if (!patient(start, PATIENCE_MS))
			break;
	MUST_EQ(q->ring->ring_kidx, nr);
}

static void wait_returns_when_min_nr_are_there(void)
{
	struct arg_waiter w = { .arg = plain_arg(), .forever = true };
	struct queue q;
	unsigned int i;

	open_marks(&q, 8, 3);
	w.q = &q;
	w.arg.min_nr = 3;
	start_arg_waiter(&w);
	for (i = 0; i < 2; i++) {
		MUST_EQ(mark_user(q.fd, i, 1), 1);
		wait_for_stored(&q, i + 1);
		MUST(sleeps_in(w.actor.tid, __NR_kevent_wait));
	}
	MUST_EQ(mark_user(q.fd, 2, 1), 1);
	CHECK_EQ(join_arg_waiter(&w), 3);
	close_queue(&q);
}

/* Waits for two events, with one of them there. */
static void start_for_two(struct arg_waiter *w, struct queue *q, clockid_t clock,
			  uint64_t min_wait_ns)
{
	w->q = q;
	w->arg = plain_arg();
	w->arg.clockid = clock;
	w->arg.min_nr = 2;
	w->arg.min_wait_ns = min_wait_ns;
	start_arg_waiter(w);
	MUST_EQ(mark_user(q->fd, 0, 1), 1);
	wait_for_stored(q, 1);
	MUST(sleeps_in(w->actor.tid, __NR_kevent_wait));
}

static void min_wait_does_not_follow_the_clock(void)
{
	const uint64_t hour = 3600 * 1000 * MS;
	struct timespec now;
	struct arg_waiter w;
	struct queue q;
	unsigned int i, limited;

	for (i = 0; i < 2 * ARRAY_SIZE(settable); i++) {
		clockid_t clock = settable[i / 2];

		limited = i % 2;
		MUST_EQ(clock_gettime(clock, &now), 0);
		now.tv_sec += 10 * 3600;
		w = (struct arg_waiter){
			.forever = !limited, .ts = now, .flags = ABS,
		};
		open_marks(&q, 4, 2);
		start_for_two(&w, &q, clock, hour);
		step_seconds(7200);
		CHECK(sleeps_in(w.actor.tid, __NR_kevent_wait));
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		CHECK_EQ(join_arg_waiter(&w), 2);
		close_queue(&q);
		open_marks(&q, 4, 2);
		start_for_two(&w, &q, clock, 1000 * MS);
		step_seconds(-7200);
		CHECK_EQ(join_arg_waiter(&w), 1);
		close_queue(&q);
	}
}

static void setting_the_clock_ends_min_wait(void)
{
	struct arg_waiter w = { .flags = ABS };
	struct queue q;

	open_marks(&q, 4, 2);
	MUST_EQ(clock_gettime(CLOCK_TAI, &w.ts), 0);
	w.ts.tv_sec += 3600;
	start_for_two(&w, &q, CLOCK_TAI, 3600 * 1000 * MS);
	step_seconds(7200);
	CHECK_EQ(join_arg_waiter(&w), 1);
	step_seconds(-7200);
	close_queue(&q);
}

/* No waiter waits for more entries than the ring can hold. */
static void a_full_ring_is_enough(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct queue q;
	unsigned int i;

	open_marks(&q, 4, 6);
	for (i = 0; i < 6; i++)
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	arg.min_nr = UINT32_MAX;
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), 4);
	q.ring->ring_uidx = 1;
	arg.min_nr = 3;
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), 1);
	close_queue(&q);
}

static void timeout_returns_what_is_there(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct timespec ts = ms_to_timespec(20);
	struct queue q;
	uint64_t start;

	open_marks(&q, 4, 1);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	arg.min_nr = 2;
	start = clock_ns(CLOCK_MONOTONIC);
	CHECK_EQ(wait_arg(&q, &ts, 0, &arg), 1);
	CHECK(clock_ns(CLOCK_MONOTONIC) - start >= 20 * MS);
	close_queue(&q);
}

/* One waits for two entries, and one for any, which is the newest or not */
static void start_both(struct queue *q, struct arg_waiter *many,
		       struct waiter *one, bool one_last)
{
	open_marks(q, 8, 2);
	*many = (struct arg_waiter){
		.q = q, .arg = plain_arg(), .forever = true
	};
	many->arg.min_nr = 2;
	if (!one_last)
		start_waiter(one, q, 8);
	start_arg_waiter(many);
	if (one_last)
		start_waiter(one, q, 8);
}

/* One waiter wants fewer, and gets those that the other cannot use. */
static void what_is_too_little_for_one_is_for_another(void)
{
	struct arg_waiter many;
	struct waiter one;
	struct queue q;
	int i;

	for (i = 0; i < 2; i++) {
		start_both(&q, &many, &one, i);
		MUST_EQ(mark_user(q.fd, 0, 1), 1);
		CHECK_EQ(join_waiter(&one), 1);
		MUST(sleeps_in(many.actor.tid, __NR_kevent_wait));
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		CHECK_EQ(join_arg_waiter(&many), 2);
		close_queue(&q);
	}
}

/* Whoever stores the entries, they are in the ring for both. */
static void what_one_has_found_is_for_another(void)
{
	struct arg_waiter many;
	struct ukevent ev[2];
	struct waiter one;
	struct queue q;
	int i;

	for (i = 0; i < 2; i++)
		kevent_set_user(&ev[i], i, 1, 0, 0);
	for (i = 0; i < 2; i++) {
		start_both(&q, &many, &one, i);
		CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 2, ev), 2);
		CHECK(join_waiter(&one) > 0);
		CHECK_EQ(join_arg_waiter(&many), 2);
		close_queue(&q);
	}
}

/* A collection is limited to fewer than the caller waits for. */
static void fewer_at_a_time_are_enough(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct queue q;

	open_marks(&q, 8, 3);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST_EQ(mark_user(q.fd, 2, 1), 1);
	arg.min_nr = 2;
	CHECK(kevent_wait(q.fd, 1, 0, NULL, ARG, &arg) >= 2);
	close_queue(&q);
}

/*
 * A commit wakes the waiter that its entries are enough for, not the oldest
 * one.
 */
static void commit_passes_over_who_wants_more(void)
{
	struct arg_waiter many = { .arg = plain_arg(), .forever = true };
	struct waiter one;
	struct queue q;
	unsigned int i;

	open_marks(&q, 4, 5);
	for (i = 0; i < 4; i++)
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	MUST_EQ(wait_ring(&q, 4, 0), 4);
	MUST_EQ(mark_user(q.fd, 4, 1), 1);
	many.q = &q;
	many.arg.min_nr = 4;
	start_arg_waiter(&many);
	start_waiter(&one, &q, 4);
	CHECK_EQ(kevent_commit(q.fd, 2, 0), 2);
	CHECK_EQ(join_waiter(&one), 1);
	MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	/* After a wake request the call returns 0, whatever the ring holds. */
	CHECK_EQ(join_arg_waiter(&many), 0);
	close_queue(&q);
}

static void min_wait_is_waited_for(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct queue q;
	uint64_t start;

	open_marks(&q, 4, 1);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	arg.min_nr = 3;
	arg.min_wait_ns = 20 * MS;
	start = clock_ns(CLOCK_MONOTONIC);
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), 1);
	CHECK(clock_ns(CLOCK_MONOTONIC) - start >= 20 * MS);
	close_queue(&q);
}

static void after_min_wait_one_is_enough(void)
{
	struct arg_waiter w = { .arg = plain_arg(), .forever = true };
	struct queue q;
	int64_t until;

	open_marks(&q, 4, 1);
	w.q = &q;
	w.arg.min_nr = 3;
	w.arg.min_wait_ns = MS;
	start_arg_waiter(&w);
	until = clock_ns(CLOCK_MONOTONIC) + 2 * MS;
	while (clock_ns(CLOCK_MONOTONIC) < until)
		sched_yield();
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	CHECK_EQ(join_arg_waiter(&w), 1);
	close_queue(&q);
}

static void min_nr_ends_min_wait(void)
{
	struct arg_waiter w = { .arg = plain_arg(), .forever = true };
	struct queue q;

	open_marks(&q, 4, 2);
	w.q = &q;
	w.arg.min_nr = 2;
	w.arg.min_wait_ns = 3600ull * 1000 * MS;
	start_arg_waiter(&w);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	wait_for_stored(&q, 1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_arg_waiter(&w), 2);
	close_queue(&q);
}

static volatile sig_atomic_t caught;

static void note_signal(int sig)
{
	caught = sig;
}

static uint64_t mask_of(int sig)
{
	return 1ull << (sig - 1);
}

static bool is_blocked(int sig)
{
	sigset_t set;

	pthread_sigmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, sig);
}

static void unmasked_signal_ends_the_wait(void)
{
	struct kevent_wait_arg arg = plain_arg();
	uint64_t mask = 0;
	sigset_t set;
	struct queue q;

	open_queue(&q, 4);
	signal(SIGUSR1, note_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
	arg.sigmask = (uintptr_t)&mask;
	arg.sigsetsize = sizeof(mask);
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), -EINTR);
	CHECK_EQ(caught, SIGUSR1);
	CHECK(is_blocked(SIGUSR1));
	close_queue(&q);
}

/* The handler runs after the call, with the mask of the program. */
static void masked_signal_does_not_end_the_wait(void)
{
	uint64_t mask = mask_of(SIGUSR1);
	struct arg_waiter w = { .arg = plain_arg(), .forever = true };
	struct queue q;

	open_marks(&q, 4, 1);
	signal(SIGUSR1, note_signal);
	w.q = &q;
	w.arg.sigmask = (uintptr_t)&mask;
	w.arg.sigsetsize = sizeof(mask);
	start_arg_waiter(&w);
	MUST_EQ(syscall(SYS_tgkill, getpid(), (int)w.actor.tid, SIGUSR1), 0);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	CHECK_EQ(join_arg_waiter(&w), 1);
	CHECK_EQ(caught, SIGUSR1);
	CHECK(!is_blocked(SIGUSR1));
	close_queue(&q);
}

static void signal_does_not_hide_what_is_there(void)
{
	struct kevent_wait_arg arg = plain_arg();
	uint64_t mask = 0;
	sigset_t set;
	struct queue q;

	open_marks(&q, 4, 1);
	signal(SIGUSR1, note_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	arg.sigmask = (uintptr_t)&mask;
	arg.sigsetsize = sizeof(mask);
	arg.min_nr = 2;
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), 1);
	CHECK(is_blocked(SIGUSR1));
	close_queue(&q);
}

static void changes_are_made_before_the_wait(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct kevent_change c[4] = {};
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_marks(&q, 8, 2);
	open_pipe(fd);
	put_byte(fd[1]);
	kevent_set_pipe(&c[0].uk, fd[0], KEVENT_SOCKET_RECV, 0, 10);
	c[0].cmd = KEVENT_CTL_ADD;
	kevent_set_user(&c[1].uk, 0, 0, 0, 0);
	c[1].cmd = KEVENT_CTL_REMOVE;
	kevent_set_user(&c[2].uk, 1, 1, 0, 11);
	c[2].cmd = KEVENT_CTL_MODIFY;
	kevent_set_user(&c[3].uk, 1, 1, 0, 0);
	c[3].cmd = KEVENT_CTL_READY;
	c[0].result = c[1].result = c[2].result = c[3].result = -EINPROGRESS;
	arg.changes = (uintptr_t)c;
	arg.nr_changes = 4;
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), 2);
	CHECK_EQ(c[0].result, 0);
	CHECK_EQ(c[1].result, 0);
	CHECK_EQ(c[2].result, 0);
	CHECK_EQ(c[3].result, 0);
	MUST_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 10);
	MUST_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 11);
	CHECK_EQ(mark_user(q.fd, 0, 1), -ENOENT);
	close_queue(&q);
}

/* Without a timeout: a call that sleeps here does not return. */
static void result_to_look_at_ends_the_wait(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct kevent_change c[3] = {};
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	put_byte(fd[1]);
	arg.changes = (uintptr_t)c;
	arg.nr_changes = 3;
	kevent_set_pipe(&c[0].uk, fd[0], KEVENT_SOCKET_RECV,
			HAND_BACK | KEVENT_REQ_ONESHOT, 10);
	kevent_set_pipe(&c[1].uk, 900, KEVENT_SOCKET_RECV, 0, 11);
	kevent_set_user(&c[2].uk, 5, 1, 0, 12);
	c[2].cmd = KEVENT_CTL_ATTACH;
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), 0);
	CHECK_EQ(c[0].result, 1);
	CHECK_EQ(c[0].uk.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(c[0].uk.ret_data[0], KEVENT_SOCKET_RECV);
	CHECK_EQ(c[1].result, -EBADF);
	CHECK_EQ(kevent_error(&c[1].uk), -EBADF);
	CHECK_EQ(c[2].result, -EINVAL);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

/*
 * The change in the last 48 bytes of memory is made; the next one is unmapped.
 */
static void changes_end_where_memory_does(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kevent_change *c = (void *)(page + 4096 - sizeof(*c));
	struct kevent_wait_arg arg = plain_arg();
	struct queue q;

	MUST_EQ(mprotect(page + 4096, 4096, PROT_NONE), 0);
	open_queue(&q, 8);
	kevent_set_user(&c->uk, 5, 1, 0, 12);
	c->cmd = KEVENT_CTL_ADD;
	c->result = -EINPROGRESS;
	arg.changes = (uintptr_t)c;
	arg.nr_changes = 2;
	CHECK_EQ(wait_arg(&q, NULL, 0, &arg), 0);
	CHECK_EQ(c->result, 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	close_queue(&q);
}

static void a_refused_call_makes_no_change(void)
{
	struct kevent_wait_arg arg = plain_arg();
	struct timespec bad = { .tv_nsec = -1 };
	struct kevent_change c = {};
	struct queue q;

	open_queue(&q, 8);
	kevent_set_user(&c.uk, 5, 1, 0, 12);
	arg.changes = (uintptr_t)&c;
	arg.nr_changes = 1;
	CHECK_EQ(wait_arg(&q, &bad, 0, &arg), -EINVAL);
	arg.clockid = -1;
	CHECK_EQ(wait_arg(&q, &zero, 0, &arg), -EINVAL);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

/* The change is made. Who made it must not sleep before he has looked himself. */
static void result_that_cannot_be_written_ends_the_wait(void)
{
	struct kevent_change *change = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct arg_waiter w = { .arg = plain_arg(), .forever = true };
	struct queue q;

	MUST(change != MAP_FAILED);
	open_queue(&q, 4);
	w.q = &q;
	kevent_set_user(&change->uk, 1, 1, 0, 0);
	change->cmd = KEVENT_CTL_ADD;
	change->result = 5;
	MUST_EQ(mprotect(change, 4096, PROT_READ), 0);
	w.arg.changes = (uintptr_t)change;
	w.arg.nr_changes = 1;
	start_actor(&w.actor, run_arg_waiter, &w);
	CHECK_EQ(join_arg_waiter(&w), 0);
	CHECK_EQ(change->result, 5);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	munmap(change, 4096);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(each_member_is_checked),
	TEST(bad_addresses_are_refused),
	TEST(later_versions_of_arg_are_understood),
	TEST(no_clock_ends_a_wait_early),
	TEST(setting_the_clock_ends_an_absolute_wait),
	TEST(setting_the_clock_does_not_shorten_a_span),
	TEST(setting_the_clock_does_not_lengthen_a_span),
	TEST(min_wait_does_not_follow_the_clock),
	TEST(setting_the_clock_ends_min_wait),
	TEST(wait_returns_when_min_nr_are_there),
	TEST(a_full_ring_is_enough),
	TEST(timeout_returns_what_is_there),
	TEST(what_is_too_little_for_one_is_for_another),
	TEST(what_one_has_found_is_for_another),
	TEST(fewer_at_a_time_are_enough),
	TEST(commit_passes_over_who_wants_more),
	TEST(min_wait_is_waited_for),
	TEST(after_min_wait_one_is_enough),
	TEST(min_nr_ends_min_wait),
	TEST(unmasked_signal_ends_the_wait),
	TEST(masked_signal_does_not_end_the_wait),
	TEST(signal_does_not_hide_what_is_there),
	TEST(changes_are_made_before_the_wait),
	TEST(result_to_look_at_ends_the_wait),
	TEST(changes_end_where_memory_does),
	TEST(result_that_cannot_be_written_ends_the_wait),
	TEST(a_refused_call_makes_no_change),
	{}
};

const struct test_suite wait_arg_suite = {
	.name = "wait_arg",
	.cases = cases,
};
