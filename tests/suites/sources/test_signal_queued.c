// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_SIGNAL: several signals before one is delivered, and timers
 *
 *	standard		one event, with the siginfo of the first
 *	real-time, queued	an event for each, in order; EAGAIN at the limit
 *	real-time by kill()	the same; one event in all beyond the limit
 *	a POSIX timer		expiries in a row are one event
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "signals.h"

#define MANY	3000	/* A user may have 3934 with 1 GB of memory. */

static void standard_signals_merge_into_the_first(struct queue *q)
{
	int i, value;

	MUST_EQ(add_signal(q->fd, SIGUSR1, CONSUME, 0), 0);
	for (value = 1; value < 30; value += 10) {
		for (i = 0; i < 5; i++)
			CHECK_EQ(queue_value(SIGUSR1, value + i), 0);
		must_signal(q, SIGUSR1, true, getpid(), SI_QUEUE, value);
		CHECK_NO_EVENT(q);
	}
}

/* The first entry is in the ring when the second signal comes: two events. */
static void merging_ends_at_delivery(void)
{
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(queue_value(SIGUSR1, 1), 0);
	MUST_EQ(wait_ring(&q, 8, 0), 1);
	CHECK_EQ(queue_value(SIGUSR1, 2), 0);
	must_signal(&q, SIGUSR1, true, getpid(), SI_QUEUE, 1);
	must_signal(&q, SIGUSR1, true, getpid(), SI_QUEUE, 2);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static int send_three(void *arg)
{
	int i;

	for (i = 1; i <= 3; i++)
		CHILD_MUST(sigqueue(*(pid_t *)arg, RT,
				    (union sigval){ .sival_int = i }) == 0);
	return 0;
}

static void sender_and_value_come_with_each(void)
{
	pid_t pid, me = getpid();
	struct queue q;
	int i;

	open_queue(&q, 0);
	handle(RT, count_signal);
	MUST_EQ(add_signal(q.fd, RT, OBSERVE, 0), 0);
	pid = start_child(send_three, &me);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	for (i = 1; i <= 3; i++)
		must_signal(&q, RT, false, pid, SI_QUEUE, i);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(handled, 3);
	close_queue(&q);
}

static bool is_value(const struct ukevent *ev, int value)
{
	return ev->type == KEVENT_SIGNAL &&
	       ev->id.raw_u64 == ((uint64_t)getpid() << 32 | RT | NOMASK) &&
	       (int)ev->ret_data[0] == SI_QUEUE &&
	       (int)ev->ret_data[1] == value;
}

static void queue_many(int from, int to)
{
	while (from < to)
		MUST_EQ(queue_value(RT, from++), 0);
}

static void many_come_in_order_by_small_batches(void)
{
	struct ukevent ev[40];
	int ret, i, size = 1, next = 0;
	struct queue q;

	set_limit(MANY + 10);
	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	queue_many(0, MANY);
	while ((ret = get_events(q.fd, 1, size, 0, ev)) > 0) {
		for (i = 0; i < ret; i++)
			MUST(is_value(&ev[i], next++));
		size = size % 40 + 1;
	}
	CHECK_EQ(ret, 0);
	CHECK_EQ(next, MANY);
	close_queue(&q);
}

static void many_come_in_order_through_a_ring_of_16(void)
{
	struct ukevent ev;
	struct queue q;
	int next = 0;

	set_limit(MANY + 10);
	open_queue(&q, 16);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	queue_many(0, MANY);
	while (next_event(&q, &ev, 0) == 1)
		MUST(is_value(&ev, next++));
	CHECK_EQ(next, MANY);
	close_queue(&q);
}

/*
 * Signals come while the ring is full; the test takes three events at a time.
 */
static void many_come_in_order_through_a_full_ring(void)
{
	int next = 0, i, sent = 0;
	struct ukevent ev;
	struct queue q;

	set_limit(MANY + 10);
	open_queue(&q, 16);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	while (next < MANY) {
		if (sent < MANY) {
			queue_many(sent, sent + 5);
			sent += 5;
		}
		MUST(wait_ring(&q, 16, 0) >= 0);
		if (sent - next >= 16) {
			MUST_EQ(q.ring->ring_kidx - q.ring->ring_uidx, 16);
			MUST_EQ(!!(q.ring->ring_flags & KEVENT_RING_MORE),
				sent - next > 16);
		}
		for (i = 0; i < 3; i++)
			if (kevent_ring_next(q.ring, q.size, &ev))
				MUST(is_value(&ev, next++));
		MUST(kevent_commit(q.fd, (uint32_t)q.ring->ring_uidx,
				   q.ring->ring_uidx >> 32) >= 0);
	}
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void sender_gets_eagain_at_the_limit(void)
{
	struct queue q;
	int i, nr;

	set_limit(20);
	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	for (nr = 0; nr < 30 && !queue_value(RT, nr); nr++)
		;
	CHECK_EQ(nr, 20);
	CHECK_EQ(queue_value(RT, nr), -EAGAIN);
	/*
	 * kill() must not fail because of the limit: these two become one
	 * event.
	 */
	CHECK_EQ(kill(getpid(), RT), 0);
	CHECK_EQ(kill(getpid(), RT), 0);
	must_signal(&q, RT, true, getpid(), SI_QUEUE, 0);
	CHECK_EQ(queue_value(RT, 77), 0);
	for (i = 1; i < nr; i++)
		must_signal(&q, RT, true, getpid(), SI_QUEUE, i);
	must_signal(&q, RT, true, getpid(), SI_USER, 0);
	must_signal(&q, RT, true, getpid(), SI_QUEUE, 77);
	CHECK_NO_EVENT(&q);
	/* The whole charge is gone. */
	queue_many(0, 20);
	CHECK_EQ(queue_value(RT, 0), -EAGAIN);
	close_queue(&q);
}

/* Beyond the limit they become one. */
static void limit_holds_for_all_that_are_kept(void)
{
	int i, nr, turn;
	struct ukevent ev;
	struct queue q;

	set_limit(20);
	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < 60; i++)
			MUST_EQ(kill(getpid(), RT), 0);
		for (nr = 0; next_event(&q, &ev, 0) == 1; nr++)
			;
		CHECK_EQ(nr, 21);
	}
	close_queue(&q);
}

/* Either the watch or the pending signal lacks memory: no receiver gets it. */
static void signal_that_failed_is_nowhere(void)
{
	struct timespec zero = {};
	int limit, nr, i;
	siginfo_t info;
	struct queue q;
	sigset_t set;

	block(RT, SIG_BLOCK);
	sigemptyset(&set);
	sigaddset(&set, RT);
	for (limit = 9; limit >= 8; limit--) {
		set_limit(limit);
		open_queue(&q, 0);
		MUST_EQ(add_signal(q.fd, RT, OBSERVE, 0), 0);
		for (nr = 0; nr < 30 && !queue_value(RT, nr); nr++)
			;
		CHECK_EQ(nr, 4);
		for (i = 0; i < nr; i++) {
			must_signal(&q, RT, false, getpid(), SI_QUEUE, i);
			MUST_EQ(sigtimedwait(&set, &info, &zero), RT);
			CHECK_EQ(info.si_value.sival_int, i);
		}
		CHECK_NO_EVENT(&q);
		CHECK(!is_pending(RT));
		close_queue(&q);
	}
}

static void remove_drops_what_is_not_delivered(void)
{
	struct queue q;
	int i;

	set_limit(50);
	open_queue(&q, 0);
	for (i = 0; i < 20; i++) {
		MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
		queue_many(0, 50);
		CHECK_EQ(queue_value(RT, 0), -EAGAIN);
		CHECK_EQ(remove_signal(q.fd, RT), 0);
		CHECK_NO_EVENT(&q);
	}
	close_queue(&q);
}

/* The owner of the queue is charged too for the signals it keeps. */

static long long charged(const struct queue *q)
{
	return fdinfo(q->fd, "kevent-user-bytes");
}

static void queued_signals_are_charged_in_bytes(void)
{
	struct ukevent ev[10];
	long long before, each;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	before = charged(&q);
	queue_many(0, 1);
	each = charged(&q) - before;
	CHECK(each > 0);
	queue_many(1, 10);
	CHECK_EQ(charged(&q), before + 10 * each);
	MUST_EQ(get_events(q.fd, 1, 4, 0, ev), 4);
	CHECK_EQ(charged(&q), before + 6 * each);
	MUST_EQ(remove_signal(q.fd, RT), 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	CHECK_EQ(charged(&q), before);
	/* A standard signal needs no memory of its own. */
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	before = charged(&q);
	CHECK_EQ(queue_value(SIGUSR1, 0), 0);
	CHECK_EQ(charged(&q), before);
	close_queue(&q);
}

static void owner_of_the_queue_limits_them(void)
{
	char old[32], value[32];
	long long before, each;
	struct queue q;
	int nr;

	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	before = charged(&q);
	queue_many(0, 1);
	each = charged(&q) - before;
	read_file(MAX_BYTES, old, sizeof(old));
	snprintf(value, sizeof(value), "%lld", before + 5 * each);
	write_file(MAX_BYTES, value);
	for (nr = 1; nr < 10 && !queue_value(RT, nr); nr++)
		;
	CHECK_EQ(queue_value(RT, nr), -EAGAIN);
	CHECK_EQ(kill(getpid(), RT), 0);
	write_file(MAX_BYTES, old);
	MUST_EQ(nr, 5);
	for (nr = 0; nr < 5; nr++)
		must_signal(&q, RT, true, getpid(), SI_QUEUE, nr);
	must_signal(&q, RT, true, getpid(), SI_USER, 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(charged(&q), before);
	close_queue(&q);
}

/* Timers. Time makes them expire, but the test does not measure it. */

static timer_t start_timer(int sig, int value, unsigned int ms, bool interval)
{
	struct sigevent sev = { .sigev_notify = SIGEV_SIGNAL,
				.sigev_signo = sig,
				.sigev_value.sival_int = value };
	struct itimerspec its = { .it_value = ms_to_timespec(ms) };
	timer_t timer;

	if (interval)
		its.it_interval = its.it_value;
	MUST_EQ(timer_create(CLOCK_MONOTONIC, &sev, &timer), 0);
	MUST_EQ(timer_settime(timer, 0, &its, NULL), 0);
	return timer;
}

static void wait_handled(int nr)
{
	uint64_t start = now_ns();

	while (handled < nr && patient(start, PATIENCE_MS))
		;
	CHECK(handled >= nr);
}

static void posix_timer_goes_on_when_observed_or_consumed(struct queue *q)
{
	timer_t timer;
	int i;

	handle(RT, count_signal);
	MUST_EQ(add_signal(q->fd, RT, OBSERVE, 0), 0);
	timer = start_timer(RT, 5, 2, true);
	for (i = 0; i < 5; i++)
		must_signal(q, RT, false, 0, SI_TIMER, 5);
	wait_handled(5);
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, CONSUME, 0), 0);
	atomic_store(&handled, 0);
	/* At either end one expiry may have been under way. */
	for (i = 0; i < 2; i++) {
		struct ukevent ev;

		MUST_EVENT(q, &ev);
		CHECK_EQ(ev.ret_data[0], (uint32_t)SI_TIMER);
	}
	for (i = 0; i < 5; i++)
		must_signal(q, RT, true, 0, SI_TIMER, 5);
	CHECK_EQ(handled, 0);
	CHECK_EQ(remove_signal(q->fd, RT), 0);
	wait_handled(2);
	CHECK_EQ(timer_delete(timer), 0);
}

static void wait_for_expiry(timer_t timer)
{
	struct itimerspec its;
	uint64_t start = now_ns();

	do
		MUST_EQ(timer_gettime(timer, &its), 0);
	while ((its.it_value.tv_sec || its.it_value.tv_nsec) &&
	       patient(start, PATIENCE_MS));
}

static void expire(timer_t timer)
{
	struct itimerspec its = { .it_value.tv_nsec = 1 };

	MUST_EQ(timer_settime(timer, 0, &its, NULL), 0);
	wait_for_expiry(timer);
}

static void expiries_in_a_row_merge(void)
{
	timer_t timer[2];
	struct queue q;
	int i;

	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	for (i = 0; i < 2; i++)
		timer[i] = start_timer(RT, i, 100000, false);
	expire(timer[0]);
	expire(timer[0]);
	expire(timer[1]);
	expire(timer[0]);
	expire(timer[0]);
	MUST_EQ(queue_value(RT, 7), 0);
	expire(timer[0]);
	must_signal(&q, RT, true, 0, SI_TIMER, 0);
	must_signal(&q, RT, true, 0, SI_TIMER, 1);
	must_signal(&q, RT, true, 0, SI_TIMER, 0);
	must_signal(&q, RT, true, getpid(), SI_QUEUE, 7);
	must_signal(&q, RT, true, 0, SI_TIMER, 0);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* The sender is no timer. */
static void signals_in_the_name_of_a_timer_are_kept_each(void)
{
	struct queue q;
	siginfo_t info;
	int i;

	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	for (i = 0; i < 3; i++) {
		info = (siginfo_t){ .si_signo = RT, .si_code = SI_TIMER };
		info.si_value.sival_int = i;
		MUST_EQ(syscall(SYS_rt_sigqueueinfo, getpid(), RT, &info), 0);
	}
	for (i = 0; i < 3; i++)
		must_signal(&q, RT, true, 0, SI_TIMER, i);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void consumed_expiries_are_overruns_later(void)
{
	siginfo_t info;
	struct queue q;
	timer_t timer;
	sigset_t set;
	int i;

	open_queue(&q, 0);
	block(RT, SIG_BLOCK);
	sigemptyset(&set);
	sigaddset(&set, RT);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	timer = start_timer(RT, 5, 2, true);
	for (i = 0; i < 5; i++)
		must_signal(&q, RT, true, 0, SI_TIMER, 5);
	CHECK_EQ(remove_signal(q.fd, RT), 0);
	MUST_EQ(sigwaitinfo(&set, &info), RT);
	CHECK(info.si_overrun >= 5);
	CHECK_EQ(timer_delete(timer), 0);
	close_queue(&q);
}

static void timers_need_no_room_at_the_limit(void)
{
	timer_t timer;
	struct queue q;
	int i;

	open_queue(&q, 0);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	timer = start_timer(RT, 6, 100000, false);
	set_limit(10);
	for (i = 0; i < 9; i++)
		MUST_EQ(queue_value(RT, i), 0);
	CHECK_EQ(queue_value(RT, i), -EAGAIN);
	expire(timer);
	for (i = 0; i < 9; i++)
		must_signal(&q, RT, true, getpid(), SI_QUEUE, i);
	must_signal(&q, RT, true, 0, SI_TIMER, 6);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void itimer_goes_on_when_observed_or_consumed(struct queue *q)
{
	struct itimerval it = { { 0, 2000 }, { 0, 2000 } }, off = {};
	struct ukevent ev;
	int i;

	handle(SIGALRM, count_signal);
	MUST_EQ(add_signal(q->fd, SIGALRM, CONSUME, 0), 0);
	MUST_EQ(setitimer(ITIMER_REAL, &it, NULL), 0);
	for (i = 0; i < 5; i++)
		must_signal(q, SIGALRM, true, 0, SI_KERNEL, 0);
	CHECK_EQ(handled, 0);
	/*
	 * Far shorter than a tick: it causes no storm, and the events can be
	 * read.
	 */
	it.it_interval.tv_usec = it.it_value.tv_usec = 1;
	MUST_EQ(setitimer(ITIMER_REAL, &it, NULL), 0);
	for (i = 0; i < 20; i++)
		must_signal(q, SIGALRM, true, 0, SI_KERNEL, 0);
	it.it_interval.tv_usec = it.it_value.tv_usec = 2000;
	MUST_EQ(setitimer(ITIMER_REAL, &it, NULL), 0);
	MUST_EQ(remove_signal(q->fd, SIGALRM), 0);
	/* A call may have moved two events into the ring. */
	while (next_event(q, &ev, 0) == 1)
		;
	wait_handled(3);
	atomic_store(&handled, 0);
	MUST_EQ(add_signal(q->fd, SIGALRM, OBSERVE, 0), 0);
	for (i = 0; i < 5; i++)
		must_signal(q, SIGALRM, false, 0, SI_KERNEL, 0);
	wait_handled(5);
	MUST_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
}

/* An interval timer without an interval expires once. */
static void itimer_expires_once_when_consumed(struct queue *q)
{
	const struct itimerval it = { .it_value.tv_usec = 1000 };
	struct ukevent ev;
	int i;

	MUST_EQ(add_signal(q->fd, SIGALRM, CONSUME, 0), 0);
	for (i = 0; i < 3; i++) {
		MUST_EQ(setitimer(ITIMER_REAL, &it, NULL), 0);
		must_signal(q, SIGALRM, true, 0, SI_KERNEL, 0);
	}
	CHECK_EQ(next_event(q, &ev, 20), 0);
}

static const struct test_case cases[] = {
	TEST_EACH(standard_signals_merge_into_the_first),
	TEST(merging_ends_at_delivery),
	TEST(sender_and_value_come_with_each),
	TEST(many_come_in_order_by_small_batches),
	TEST(many_come_in_order_through_a_ring_of_16),
	TEST(many_come_in_order_through_a_full_ring),
	TEST(sender_gets_eagain_at_the_limit),
	TEST(limit_holds_for_all_that_are_kept),
	TEST(signal_that_failed_is_nowhere),
	TEST(remove_drops_what_is_not_delivered),
	TEST(queued_signals_are_charged_in_bytes),
	TEST(owner_of_the_queue_limits_them),
	TEST_EACH(posix_timer_goes_on_when_observed_or_consumed),
	TEST(expiries_in_a_row_merge),
	TEST(signals_in_the_name_of_a_timer_are_kept_each),
	TEST(consumed_expiries_are_overruns_later),
	TEST(timers_need_no_room_at_the_limit),
	TEST_EACH(itimer_goes_on_when_observed_or_consumed),
	TEST_EACH(itimer_expires_once_when_consumed),
	{}
};

const struct test_suite signal_queued_suite = {
	.name = "signal_queued",
	.cases = cases,
};
