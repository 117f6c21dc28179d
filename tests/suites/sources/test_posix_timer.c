// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_POSIX_TIMER: timer_create() with SIGEV_KEVENT
 *
 * An event stands for one expiry and the overrun it carries. All expiries so
 * far are compared with the timer's clock, read before and after the call that
 * takes the event: due(before) <= sum of (1 + overrun) <= due(after).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "timers.h"

static void must_expire(struct queue *q, struct ukevent *ev, int id,
			uint64_t user)
{
	MUST_EVENT(q, ev);
	CHECK_EQ(ev->type, KEVENT_POSIX_TIMER);
	CHECK_EQ(ev->event, KEVENT_POSIX_TIMER_FIRED);
	CHECK_EQ(ev->id.raw[0], id);
	CHECK_EQ(ev->id.raw[1], 0);
	CHECK_EQ(ev->ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev->ptr, user);
}

/* No other event comes until another timer, started now, expires. */
static void check_silence(struct queue *q, int64_t ns)
{
	int id = create(q->fd, CLOCK_MONOTONIC, 0x51137);
	struct ukevent ev;

	MUST(id >= 0);
	MUST_EQ(settime(id, 0, ns, 0), 0);
	must_expire(q, &ev, id, 0x51137);
	CHECK_EQ(delete(id), 0);
	CHECK_NO_EVENT(q);
}

static const clockid_t clocks[] = {
	CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI,
	CLOCK_BOOTTIME_ALARM, CLOCK_REALTIME_ALARM,
};

static void each_clock_once(struct queue *q)
{
	const uint64_t user = (uintptr_t)0xfedcba9876543210;
	struct ukevent ev;
	unsigned int i;
	int64_t at;
	int id;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		id = create(q->fd, clocks[i], user + i);
		if (!CHECK(id >= 0)) {
			note("clock %d: -%s", clocks[i], strerrorname_np(-id));
			continue;
		}
		at = clock_ns(clocks[i]) + 3 * MS;
		MUST_EQ(settime(id, 0, 3 * MS, 0), 0);
		must_expire(q, &ev, id, user + i);
		CHECK(clock_ns(clocks[i]) >= at);
		CHECK_EQ(overrun(&ev), 0);
		at = clock_ns(clocks[i]) + 3 * MS;
		MUST_EQ(settime(id, TIMER_ABSTIME, at, 0), 0);
		must_expire(q, &ev, id, user + i);
		CHECK(clock_ns(clocks[i]) >= at);
		CHECK_EQ(overrun(&ev), 0);
		CHECK_EQ(gettime(id), 0);
		check_silence(q, 5 * MS);
		CHECK_EQ(delete(id), 0);
	}
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void intervals_of(struct queue *q, int64_t interval)
{
	int64_t first, before, after, sum;
	unsigned int i, nr;
	struct ukevent ev;
	int id;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		id = create(q->fd, clocks[i], i);
		MUST(id >= 0);
		first = before = clock_ns(clocks[i]) + 5 * MS;
		MUST_EQ(settime(id, TIMER_ABSTIME, first, interval),
			0);
		for (nr = sum = 0; nr < 8; nr++) {
			if (!q->size ||
			    q->ring->ring_kidx == q->ring->ring_uidx)
				before = clock_ns(clocks[i]);
			must_expire(q, &ev, id, i);
			after = clock_ns(clocks[i]);
			sum += 1 + overrun(&ev);
			CHECK(sum >= due(before, first, interval));
			CHECK(sum <= due(after, first, interval));
		}
		CHECK(gettime(id) > 0);
		CHECK(gettime(id) <= interval);
		CHECK_EQ(delete(id), 0);
		/* An entry stays when its timer is deleted. */
		while (q->size && kevent_ring_next(q->ring, q->size, &ev))
			CHECK_EQ(ev.ptr, i);
	}
}

/* Some kernels check timers once per tick, but count in nanoseconds. */
static void intervals_agree_with_the_clock(struct queue *q)
{
	intervals_of(q, MS);
	intervals_of(q, 10 * US);
}

/*
 * Calls of gettime between the events count expiries too; no expiry may be
 * lost.
 */
static void overrun_counts_what_nobody_took(void)
{
	int64_t first, before, after;
	struct ukevent ev;
	struct queue q;
	int id;

	open_queue(&q, 0);
	id = create(q.fd, CLOCK_MONOTONIC, 1);
	MUST(id >= 0);
	first = now_ns() + MS;
	MUST_EQ(settime(id, TIMER_ABSTIME, first, MS), 0);
	while ((int64_t)now_ns() < first + 30 * MS)
		CHECK(gettime(id) > 0);
	before = now_ns();
	must_expire(&q, &ev, id, 1);
	after = now_ns();
	CHECK(1 + overrun(&ev) >= due(before, first, MS));
	CHECK(1 + overrun(&ev) <= due(after, first, MS));
	CHECK_EQ(syscall(SYS_timer_getoverrun, id), overrun(&ev));
	close_queue(&q);
}

static void events_that_cannot_be_stored_lose_nothing(void)
{
	int64_t first, before, after;
	struct ukevent ev;
	struct queue q;
	int id, i;

	open_queue(&q, 2);
	id = create(q.fd, CLOCK_MONOTONIC, 5);
	MUST(id >= 0);
	for (i = 0; i < 2; i++)
		MUST_EQ(add_user(q.fd, i, 1, KEVENT_REQ_READY, i), 0);
	MUST_EQ(wait_ring(&q, 2, 0), 2);
	first = now_ns();
	MUST_EQ(settime(id, TIMER_ABSTIME, first, MS), 0);
	while ((int64_t)now_ns() < first + 20 * MS) {
		MUST(get_events(q.fd, 1, 1, 1, (void *)8) <= 0);
		CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	}
	CHECK_EQ(get_events(q.fd, 1, 1, -1, (void *)8), -EFAULT);
	for (i = 0; i < 2; i++)
		MUST(kevent_ring_next(q.ring, 2, &ev));
	wait_until_ready(&q, 1);
	MUST_EQ(wait_ring(&q, 1, 0), 1);
	after = now_ns();
	MUST(kevent_ring_next(q.ring, 2, &ev));
	CHECK(1 + overrun(&ev) <= due(after, first, MS));
	/* An expiry since the last collection, which failed, may still come. */
	i = 1 + overrun(&ev);
	before = now_ns();
	must_expire(&q, &ev, id, 5);
	after = now_ns();
	CHECK(i + 1 + overrun(&ev) >= due(before, first, MS));
	CHECK(i + 1 + overrun(&ev) <= due(after, first, MS));
	close_queue(&q);
}

/*
 * The kernel reads the clocks of the CPU at each tick, so a timer is never
 * early.
 */
static void clocks_of_the_cpu(struct queue *q)
{
	static const clockid_t cpu[] = {
		CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
	};
	int64_t first, sum;
	uint64_t start;
	struct ukevent ev;
	unsigned int i, nr;
	int id, ret;

	for (i = 0; i < ARRAY_SIZE(cpu); i++) {
		id = create(q->fd, cpu[i], i);
		MUST(id >= 0);
		first = clock_ns(cpu[i]) + 10 * MS;
		MUST_EQ(settime(id, TIMER_ABSTIME, first, 10 * MS), 0);
		start = now_ns();
		for (nr = sum = 0; nr < 4; nr++) {
			while ((ret = next_event(q, &ev, 0)) == 0)
				MUST(now_ns() - start <
				     PATIENCE_MS * slowness * MS);
			MUST_EQ(ret, 1);
			CHECK_EQ(ev.id.raw[0], id);
			sum += 1 + overrun(&ev);
			CHECK(sum <= due(clock_ns(cpu[i]), first, 10 * MS));
		}
		/* A time that has already passed */
		MUST_EQ(settime(id, TIMER_ABSTIME, 1, 0), 0);
		must_expire(q, &ev, id, i);
		CHECK_EQ(overrun(&ev), 0);
		CHECK_EQ(delete(id), 0);
	}
}

/* Uses CPU time until the test ends it. */
static long spend(void *arg)
{
	while (!atomic_load((_Atomic bool *)arg))
		;
	return 0;
}

static void wait_until_reaped(pid_t tid)
{
	uint64_t start = now_ns();
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	while (!access(path, F_OK))
		MUST(patient(start, PATIENCE_MS));
}

/*
 * An expiry on the clock of a thread is reported although the thread has ended.
 */
static void expiry_outlives(struct queue *q, int64_t interval)
{
	_Atomic bool stop = false;
	struct actor spender;
	struct ukevent ev;
	clockid_t clock;
	int id;

	start_actor(&spender, spend, &stop);
	MUST_EQ(pthread_getcpuclockid(spender.thread, &clock), 0);
	id = create(q->fd, clock, 1);
	MUST(id >= 0);
	MUST_EQ(settime(id, 0, MS, interval), 0);
	wait_until_ready(q, 1);
	atomic_store(&stop, true);
	join_actor(&spender, PATIENCE_MS);
	wait_until_reaped(spender.tid);
	must_expire(q, &ev, id, 1);
	CHECK(overrun(&ev) >= 0);
	CHECK(overrun(&ev) <= PATIENCE_MS * slowness);
	CHECK_NO_EVENT(q);
	CHECK(syscall(SYS_timer_getoverrun, id) >= 0);
	CHECK_EQ(delete(id), 0);
}

static void expiry_of_a_thread_that_ended_is_delivered(struct queue *q)
{
	expiry_outlives(q, 0);
	expiry_outlives(q, HOUR);
	expiry_outlives(q, MS);
}

/* A timer expires, and then the clock is set to a time before that expiry. */
static void expiry_before_the_clock_stepped_back_is_delivered(struct queue *q)
{
	const int64_t now = clock_ns(CLOCK_REALTIME);
	struct ukevent ev;
	int id;

	id = create(q->fd, CLOCK_REALTIME, 1);
	MUST(id >= 0);
	MUST_EQ(settime(id, TIMER_ABSTIME, now, HOUR), 0);
	wait_until_ready(q, 1);
	step_clock(-2 * HOUR);
	must_expire(q, &ev, id, 1);
	CHECK_EQ(overrun(&ev), 0);
	CHECK_EQ(syscall(SYS_timer_getoverrun, id), 0);
	CHECK_NO_EVENT(q);
	/* The clock reaches that time again, and the timer expires again. */
	step_clock(2 * HOUR + SECOND);
	must_expire(q, &ev, id, 1);
	CHECK_EQ(overrun(&ev), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(delete(id), 0);
}

static void settime_drops_what_is_pending(struct queue *q)
{
	int id = create(q->fd, CLOCK_MONOTONIC, 1);
	struct ukevent ev;

	MUST(id >= 0);
	/* Expired, but the event was not looked up */
	MUST_EQ(settime(id, 0, 1, 1), 0);
	wait_until_ready(q, 1);
	MUST_EQ(settime(id, 0, 0, 0), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 0);
	CHECK_NO_EVENT(q);
	check_silence(q, 3 * MS);
	/* Counted, but not delivered */
	MUST_EQ(settime(id, 0, 1, 0), 0);
	CHECK_EQ(get_events(q->fd, 1, 1, -1, (void *)8), -EFAULT);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 1);
	MUST_EQ(settime(id, 0, HOUR, 0), 0);
	CHECK_NO_EVENT(q);
	CHECK(gettime(id) > HOUR - 60 * SECOND);
	/* And the timer continues. */
	MUST_EQ(settime(id, 0, MS, 0), 0);
	must_expire(q, &ev, id, 1);
	CHECK_EQ(overrun(&ev), 0);
	MUST_EQ(delete(id), 0);
}

/* A timer that expires while it is set anew: the expiry is of before, or there is none. */
static void settime_drops_what_is_under_way(struct queue *q)
{
	int id = create(q->fd, CLOCK_MONOTONIC, 1), i;
	struct ukevent ev;

	MUST(id >= 0);
	for (i = 0; i < 2000; i++) {
		MUST_EQ(settime(id, 0, 1 + i * 10, 0), 0);
		MUST_EQ(settime(id, 0, HOUR, 0), 0);
		CHECK_NO_EVENT(q);
	}
	MUST_EQ(settime(id, 0, MS, 0), 0);
	must_expire(q, &ev, id, 1);
	CHECK_EQ(overrun(&ev), 0);
	MUST_EQ(delete(id), 0);
}

static void delete_drops_what_is_pending(struct queue *q)
{
	int id[2] = {
		create(q->fd, CLOCK_MONOTONIC, 1),
		create(q->fd, CLOCK_MONOTONIC, 2),
	};

	MUST(id[0] >= 0 && id[1] >= 0);
	MUST_EQ(settime(id[0], 0, 1, 0), 0);
	CHECK_EQ(get_events(q->fd, 1, 1, -1, (void *)8), -EFAULT);
	MUST_EQ(settime(id[1], 0, 1, 1), 0);
	wait_until_ready(q, 2);
	CHECK_EQ(delete(id[0]), 0);
	CHECK_EQ(delete(id[1]), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_EQ(remove_posix_timer(q->fd, id[0]), -ENOENT);
	CHECK_EQ(delete(id[0]), -EINVAL);
}

static int exec_with_timer(void *arg)
{
	char kq[12], wr[12];
	struct queue q;
	int fd[2], id;

	(void)arg;
	open_queue(&q, 8);
	CHILD_MUST(pipe(fd) == 0);
	CHILD_MUST(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET,
			    1) == 0);
	id = create(q.fd, CLOCK_MONOTONIC, 2);
	CHILD_MUST(id >= 0 && settime(id, 0, 1, 1) == 0);
	wait_until_ready(&q, 1);
	CHILD_MUST(fcntl(q.fd, F_SETFD, 0) == 0);
	snprintf(kq, sizeof(kq), "%d", q.fd);
	snprintf(wr, sizeof(wr), "%d", fd[1]);
	/* Expects one watch, and no event but its own. */
	execl("/proc/self/exe", "kevent-tests", "--after-exec", kq, wr, NULL);
	CHILD_MUST(!"exec");
	return 0;
}

static void timers_end_at_exec(void)
{
	CHECK_EQ(join_child(start_child(exec_with_timer, NULL), PATIENCE_MS),
		 0);
}

static int leave_with_timers(void *arg)
{
	struct queue *q = arg;
	int id[2] = {
		create(q->fd, CLOCK_MONOTONIC, 1),
		create(q->fd, CLOCK_MONOTONIC, 2),
	};

	CHILD_MUST(id[0] >= 0 && id[1] >= 0);
	CHILD_MUST(settime(id[0], 0, 1, 1) == 0);
	CHILD_MUST(settime(id[1], 0, HOUR, 0) == 0);
	wait_until_ready(q, 1);
	CHILD_MUST(fdinfo(q->fd, "kevent-watches") == 2);
	return 0;
}

static void timers_end_with_their_process(struct queue *q)
{
	CHECK_EQ(join_child(start_child(leave_with_timers, q), PATIENCE_MS),
		 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_NO_EVENT(q);
}

struct shared {
	struct queue	q;
	int		id;
};

static int share(void *arg)
{
	struct shared *s = arg;
	struct queue *q = &s->q;
	int id;

	/* The child inherits no timer, and the ids of this process begin again. */
	CHILD_MUST(gettime(s->id) == -EINVAL);
	CHILD_MUST(remove_posix_timer(q->fd, s->id) == -ENOENT);
	id = create(q->fd, CLOCK_MONOTONIC, 2);
	CHILD_MUST(id == s->id);
	CHILD_MUST(fdinfo(q->fd, "kevent-watches") == 2);
	CHILD_MUST(settime(id, 0, 1, 0) == 0);
	wait_until_ready(q, 1);
	CHILD_MUST(remove_posix_timer(q->fd, id) == 0);
	CHILD_MUST(remove_posix_timer(q->fd, id) == -ENOENT);
	return 0;
}

static void processes_that_share_a_queue_have_their_own_timers(void)
{
	struct shared s;
	struct ukevent ev;

	open_queue(&s.q, 0);
	s.id = create(s.q.fd, CLOCK_MONOTONIC, 1);
	MUST(s.id >= 0);
	CHECK_EQ(join_child(start_child(share, &s), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), 1);
	CHECK_NO_EVENT(&s.q);
	MUST_EQ(settime(s.id, 0, 1, 0), 0);
	must_expire(&s.q, &ev, s.id, 1);
	close_queue(&s.q);
}

static void timer_works_on_without_its_queue(void)
{
	struct ukevent ev;
	struct queue q;
	int id, i;

	for (i = 0; i < 2; i++) {
		open_queue(&q, 0);
		id = create(q.fd, CLOCK_MONOTONIC, 1);
		MUST(id >= 0);
		MUST_EQ(settime(id, 0, 5 * MS, 5 * MS), 0);
		must_expire(&q, &ev, id, 1);
		if (i)
			CHECK_EQ(remove_posix_timer(q.fd, id), 0);
		else
			close_queue(&q);
		CHECK(gettime(id) > 0);
		CHECK(gettime(id) <= 5 * MS);
		CHECK_EQ(settime(id, 0, HOUR, 0), 0);
		CHECK(gettime(id) > HOUR - 60 * SECOND);
		CHECK_EQ(settime(id, 0, 1, 1), 0);
		if (i) {
			check_silence(&q, 3 * MS);
			CHECK_EQ(remove_posix_timer(q.fd, id), -ENOENT);
			close_queue(&q);
		}
		CHECK_EQ(delete(id), 0);
	}
}

/* Of an epoll that watches a queue: level-triggered or edge-triggered. */
static int epoll_of(const struct queue *q, uint32_t flags)
{
	struct epoll_event event = { .events = EPOLLIN | flags };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	MUST(ep >= 0);
	MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, q->fd, &event), 0);
	return ep;
}

/* All expire at one instant; nobody takes an event before the epolls have one. */
static void expiries_wake_epolls(struct queue *q)
{
	int level = epoll_of(q, 0), edge = epoll_of(q, EPOLLET);
	struct epoll_event event;
	struct ukevent ev;
	int id[8], round;
	unsigned int i;
	int64_t at;

	for (i = 0; i < ARRAY_SIZE(id); i++)
		MUST((id[i] = create(q->fd, CLOCK_MONOTONIC, i)) >= 0);
	for (round = 0; round < 10; round++) {
		at = now_ns() + 10 * MS;
		for (i = 0; i < ARRAY_SIZE(id); i++)
			MUST_EQ(settime(id[i], TIMER_ABSTIME, at, 0), 0);
		CHECK_EQ(epoll_wait(edge, &event, 1, 10000), 1);
		CHECK_EQ(epoll_wait(level, &event, 1, 10000), 1);
		for (i = 0; i < ARRAY_SIZE(id); i++)
			MUST_EVENT(q, &ev);
	}
	for (i = 0; i < ARRAY_SIZE(id); i++)
		CHECK_EQ(delete(id[i]), 0);
	close(level);
	close(edge);
}

/* What wakes the epolls is not left behind when the queue is freed. */
static void queue_ends_while_epolls_are_woken(void)
{
	struct queue q;
	int id, ep, i;

	for (i = 0; i < 300; i++) {
		open_queue(&q, 0);
		ep = epoll_of(&q, 0);
		id = create(q.fd, CLOCK_MONOTONIC, 1);
		MUST(id >= 0);
		MUST_EQ(settime(id, 0, i * 1000 + 1, 0), 0);
		close(ep);
		close_queue(&q);
		CHECK_EQ(delete(id), 0);
	}
}

static void proc_names_the_way_of_notification(void)
{
	char text[4096], want[64];
	struct queue q;
	int id;

	open_queue(&q, 0);
	id = create(q.fd, CLOCK_MONOTONIC, 0x1234);
	MUST(id >= 0);
	read_file("/proc/self/timers", text, sizeof(text));
	snprintf(want, sizeof(want), "notify: kevent/pid.%d\n", getpid());
	if (!CHECK(strstr(text, want) != NULL))
		note("%s", text);
	CHECK(strstr(text, "signal: 0/0000000000001234\n") != NULL);
	close_queue(&q);
}

static void modify_changes_the_mode(struct queue *q)
{
	int id = create(q->fd, CLOCK_MONOTONIC, 1);
	int64_t first, before, after, sum;
	struct ukevent ev;

	MUST(id >= 0);
	MUST_EQ(modify_posix_timer(q->fd, id, KEVENT_REQ_DISABLED, 1), 0);
	first = now_ns();
	MUST_EQ(settime(id, TIMER_ABSTIME, first, MS), 0);
	check_silence(q, 5 * MS);
	/* Time has passed. */
	MUST_EQ(modify_posix_timer(q->fd, id, KEVENT_REQ_DISPATCH, 2), 0);
	before = now_ns();
	must_expire(q, &ev, id, 2);
	after = now_ns();
	sum = 1 + overrun(&ev);
	CHECK(sum >= due(before, first, MS));
	CHECK(sum <= due(after, first, MS));
	check_silence(q, 5 * MS);
	MUST_EQ(modify_posix_timer(q->fd, id, KEVENT_REQ_ONESHOT, 3), 0);
	before = now_ns();
	must_expire(q, &ev, id, 3);
	after = now_ns();
	sum += 1 + overrun(&ev);
	CHECK(sum >= due(before, first, MS));
	CHECK(sum <= due(after, first, MS));
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	check_silence(q, 3 * MS);
	CHECK_EQ(delete(id), 0);
}

static void ready_reports_nothing_by_itself(void)
{
	struct ukevent ev;
	struct queue q;
	int id;

	open_queue(&q, 0);
	id = create(q.fd, CLOCK_MONOTONIC, 1);
	MUST(id >= 0);
	CHECK_EQ(control_posix_timer(q.fd, KEVENT_CTL_READY, id, 0, 1), 1);
	CHECK_NO_EVENT(&q);
	MUST_EQ(modify_posix_timer(q.fd, id, KEVENT_REQ_READY, 1), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(control_posix_timer(q.fd, KEVENT_CTL_READY, id + 1, 0, 1), -ENOENT);
	MUST_EQ(modify_posix_timer(q.fd, id, ONESHOT, 1), 0);
	MUST_EQ(settime(id, 0, 1, 0), 0);
	must_expire(&q, &ev, id, 1);
	CHECK_EQ(control_posix_timer(q.fd, KEVENT_CTL_READY, id, 0, 1), -ENOENT);
	close_queue(&q);
}

static void invalid_requests_are_refused(void)
{
	struct sigevent sev = { .sigev_notify = SIGEV_KEVENT };
	struct ukevent ev;
	struct queue q;
	int fd[2], id;
	char old[64];

	open_pipe(fd);
	open_queue(&q, 0);
	CHECK_EQ(create(-1, CLOCK_MONOTONIC, 0), -EBADF);
	CHECK_EQ(create(999, CLOCK_MONOTONIC, 0), -EBADF);
	CHECK_EQ(create(fd[0], CLOCK_MONOTONIC, 0), -EINVAL);
	CHECK_EQ(create(q.fd, 99, 0), -EINVAL);
	CHECK_EQ(create(q.fd, CLOCK_MONOTONIC_RAW, 0), -EOPNOTSUPP);
	CHECK_EQ(create_as(CLOCK_MONOTONIC, SIGEV_KEVENT | SIGEV_THREAD_ID,
			   q.fd, 0), -EINVAL);
	CHECK_EQ(create_as(CLOCK_MONOTONIC, SIGEV_KEVENT | 1, q.fd, 0),
		 -EINVAL);
	sev._sigev_un._tid = q.fd;
	CHECK_EQ(syscall(SYS_timer_create, CLOCK_MONOTONIC, &sev, 8), -1);
	CHECK_EQ(errno, EFAULT);
	read_file(MAX_BYTES, old, sizeof(old));
	write_file(MAX_BYTES, "0");
	CHECK_EQ(create(q.fd, CLOCK_MONOTONIC, 0), -ENOSPC);
	write_file(MAX_BYTES, strtok(old, "\n"));
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);

	CHECK_EQ(control_posix_timer(q.fd, KEVENT_CTL_ADD, 0, 0, 0), -EINVAL);
	id = create(q.fd, CLOCK_MONOTONIC, 0);
	MUST(id >= 0);
	CHECK_EQ(control_posix_timer(q.fd, KEVENT_CTL_ADD, id, 0, 0), -EINVAL);
	CHECK_EQ(modify_posix_timer(q.fd, id + 1, 0, 0), -ENOENT);
	CHECK_EQ(modify_posix_timer(q.fd, id, KEVENT_REQ_KEEP_EACH, 0), -EINVAL);
	kevent_set_posix_timer(&ev, id, 0, 0);
	ev.event = 3;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -EINVAL);
	kevent_set_posix_timer(&ev, id, 0, 0);
	ev.id.raw[1] = 1;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -EINVAL);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	close_queue(&q);
}

#ifdef __x86_64__
/* A 32-bit program's timer_create(): its sigevent has a 32-bit value. */
static void compat_call(void)
{
	struct {
		uint32_t	value, signo, notify, fd, pad[12];
	} *sev;
	struct ukevent ev;
	struct queue q;
	int *id, ret;

	open_queue(&q, 0);
	sev = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	MUST(sev != MAP_FAILED);
	id = (int *)(sev + 1);
	sev->value = 0x89abcdef;
	sev->notify = SIGEV_KEVENT;
	sev->fd = q.fd;
	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "0" (259), "b" (CLOCK_MONOTONIC), "c" (sev), "d" (id)
		     : "memory", "cc", "r8", "r9", "r10", "r11");
	MUST_EQ(ret, 0);
	MUST_EQ(settime(*id, 0, 1, 0), 0);
	must_expire(&q, &ev, *id, 0x89abcdef);
	close_queue(&q);
}
#endif

#define MANY	1000

static void many_intervals_agree_with_the_clock(void)
{
	static int64_t sum[MANY], first[MANY], interval[MANY];
	static int id[MANY];
	int64_t before, after, until, last[MANY] = {};
	struct ukevent ev[64];
	long events = 0, wrong = 0, total = 0, at;
	struct queue q;
	int i, ret;

	raise_pending_limit();
	open_queue(&q, 0);
	for (i = 0; i < MANY; i++) {
		id[i] = create(q.fd, CLOCK_MONOTONIC, i);
		MUST(id[i] >= 0);
		first[i] = now_ns() + 10 * MS;
		interval[i] = slowness * (5 + i % 60) * MS + i;
		MUST_EQ(settime(id[i], TIMER_ABSTIME, first[i], interval[i]),
			0);
	}
	until = now_ns() + 2 * SECOND * slowness;
	while ((int64_t)now_ns() < until) {
		before = now_ns();
		ret = get_events(q.fd, 1, ARRAY_SIZE(ev), 100, ev);
		after = now_ns();
		MUST(ret >= 0);
		for (i = 0; i < ret; i++) {
			at = ev[i].ptr;
			MUST(at < MANY && (int)ev[i].id.raw[0] == id[at]);
			sum[at] += 1 + overrun(&ev[i]);
			wrong += sum[at] < due(before, first[at], interval[at]);
			wrong += sum[at] > due(after, first[at], interval[at]);
			last[at] = after;
			events++;
		}
	}
	CHECK_EQ(wrong, 0);
	for (i = 0; i < MANY; i++) {
		CHECK(last[i] > 0);
		total += sum[i];
	}
	note("%ld expiries in %ld events", total, events);
	for (i = 0; i < MANY; i++)
		CHECK_EQ(delete(id[i]), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(each_clock_once),
	TEST_EACH(intervals_agree_with_the_clock),
	TEST(overrun_counts_what_nobody_took),
	TEST(events_that_cannot_be_stored_lose_nothing),
	TEST_EACH(clocks_of_the_cpu),
	TEST_EACH(expiry_of_a_thread_that_ended_is_delivered),
	TEST_EACH(expiry_before_the_clock_stepped_back_is_delivered),
	TEST_EACH(settime_drops_what_is_pending),
	TEST_EACH(settime_drops_what_is_under_way),
	TEST_EACH(delete_drops_what_is_pending),
	TEST(timers_end_at_exec),
	TEST_EACH(timers_end_with_their_process),
	TEST(processes_that_share_a_queue_have_their_own_timers),
	TEST(timer_works_on_without_its_queue),
	TEST_EACH(expiries_wake_epolls),
	TEST(queue_ends_while_epolls_are_woken),
	TEST(proc_names_the_way_of_notification),
	TEST_EACH(modify_changes_the_mode),
	TEST(ready_reports_nothing_by_itself),
	TEST(invalid_requests_are_refused),
#ifdef __x86_64__
	TEST(compat_call),
#endif
	TEST_LIMIT(many_intervals_agree_with_the_clock, 30),
	{}
};

const struct test_suite posix_timer_suite = {
	.name = "posix_timer", .cases = cases,
};
