// SPDX-License-Identifier: GPL-2.0
/*
 * Races of KEVENT_POSIX_TIMER, with a time budget
 *
 *	stable		no calls		expirations agree with the clock
 *	one-shot	added all the time	each comes once
 *	churned		any call at random	no event of others
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "timers.h"

#define STABLE		4
#define CHURNED		8
#define CHURN_USER	1000
#define SHOT_USER	1000000
#define SHOTS		4000000
#define ACTORS		3

struct storm {
	struct queue	q;
	uint64_t	seed;
	uint64_t	until;
	int		stable[STABLE];
	int		churned[CHURNED];
	_Atomic long	sum[STABLE];
	_Atomic long	shots;
	_Atomic long	taken;
	_Atomic long	wrong;
	_Atomic bool	stop;
	unsigned char	*seen;
};

struct stormer {
	struct actor	actor;
	struct storm	*storm;
	unsigned int	nr;
};

/* A timer that expires once; the thread that takes its event deletes it. */
static void shoot(struct storm *s, uint64_t *rnd)
{
	long nr = atomic_load(&s->shots);
	int id;

	do {
		if (nr >= SHOTS)
			return;
	} while (!atomic_compare_exchange_weak(&s->shots, &nr, nr + 1));
	id = create(s->q.fd, CLOCK_MONOTONIC, SHOT_USER + nr);
	if (id < 0 || settime(id, 0, 1 + next_random(rnd) % (50 * US), 0))
		atomic_fetch_add(&s->wrong, 1);
}

static void churn(struct storm *s, uint64_t *rnd)
{
	static const clockid_t kinds[] = {
		CLOCK_MONOTONIC, CLOCK_MONOTONIC, CLOCK_REALTIME,
		CLOCK_BOOTTIME_ALARM, CLOCK_PROCESS_CPUTIME_ID,
	};
	static const uint32_t flags[] = {
		0, 0, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED,
		KEVENT_REQ_ONESHOT, KEVENT_REQ_READY,
	};
	unsigned int i = next_random(rnd) % CHURNED;
	int id = s->churned[i];

	switch (next_random(rnd) % 16) {
	case 0:
		delete(id);
		break;
	case 1:
		id = create(s->q.fd, kinds[next_random(rnd) %
					   ARRAY_SIZE(kinds)], CHURN_USER + i);
		if (id >= 0)
			id = __atomic_exchange_n(&s->churned[i], id,
						 __ATOMIC_RELAXED);
		delete(id);
		break;
	case 2 ... 7:
		settime(id, 0, next_random(rnd) % (100 * US),
			next_random(rnd) % (90 * US));
		break;
	case 8:
		gettime(id);
		break;
	case 9 ... 10:
		modify(s->q.fd, id, flags[next_random(rnd) %
					  ARRAY_SIZE(flags)], CHURN_USER + i);
		break;
	case 11:
		remove_watch(s->q.fd, id);
		break;
	case 12:
		control(s->q.fd, KEVENT_CTL_READY, id, 0, 0);
		break;
	default:
		shoot(s, rnd);
	}
}

static long churner(void *arg)
{
	struct stormer *me = arg;
	struct storm *s = me->storm;
	uint64_t rnd = (s->seed + me->nr * 0x9e3779b97f4a7c15ull) | 1;

	while (now_ns() < s->until)
		churn(s, &rnd);
	return 0;
}

static void account(struct storm *s, const struct ukevent *ev)
{
	atomic_fetch_add(&s->taken, 1);
	if (ev->type != KEVENT_POSIX_TIMER) {
		atomic_fetch_add(&s->wrong, 1);
	} else if (ev->ptr < STABLE) {
		atomic_fetch_add(&s->sum[ev->ptr], 1 + overrun(ev));
	} else if (ev->ptr >= SHOT_USER && ev->ptr < SHOT_USER + SHOTS) {
		__atomic_fetch_add(&s->seen[ev->ptr - SHOT_USER], 1,
				   __ATOMIC_RELAXED);
		if (delete(ev->id.raw[0]))
			atomic_fetch_add(&s->wrong, 1);
	} else if (ev->ptr < CHURN_USER || ev->ptr >= CHURN_USER + CHURNED) {
		atomic_fetch_add(&s->wrong, 1);
	}
}

static long taker(void *arg)
{
	struct storm *s = arg;
	struct ukevent ev[8];
	int i, ret;

	while (!atomic_load(&s->stop)) {
		ret = get_events(s->q.fd, 1, 8, 1, ev);
		for (i = 0; i < ret; i++)
			account(s, &ev[i]);
	}
	return 0;
}

static void check_stable(struct storm *s, int64_t first)
{
	int64_t before, after, period;
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < STABLE; i++) {
		period = (i + 1) * 100 * US;
		do {
			before = now_ns();
			MUST_EVENT(&s->q, &ev);
			after = now_ns();
			account(s, &ev);
		} while (ev.ptr != i);
		CHECK(s->sum[i] >= due(before, first, period));
		CHECK(s->sum[i] <= due(after, first, period));
		CHECK_EQ(delete(s->stable[i]), 0);
	}
}

static void check_shots(struct storm *s)
{
	uint64_t start = now_ns();
	struct ukevent ev;
	long i, missing;

	do {
		while (next_event(&s->q, &ev, 0) == 1)
			account(s, &ev);
	} while (fdinfo(s->q.fd, "kevent-watches") &&
		 patient(start, PATIENCE_MS));
	CHECK_EQ(fdinfo(s->q.fd, "kevent-watches"), 0);
	for (i = missing = 0; i < s->shots; i++)
		missing += s->seen[i] != 1;
	CHECK_EQ(missing, 0);
}

static void control_calls_race_expiries(void)
{
	struct stormer stormers[ACTORS];
	struct storm s = { .seed = test_seed() };
	struct actor takers[2];
	int64_t first;
	long i;

	raise_pending_limit();
	s.seen = mmap(NULL, SHOTS, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(s.seen != MAP_FAILED);
	open_queue(&s.q, 0);
	first = now_ns();
	for (i = 0; i < STABLE; i++) {
		s.stable[i] = create(s.q.fd, CLOCK_MONOTONIC, i);
		MUST(s.stable[i] >= 0);
		MUST_EQ(settime(s.stable[i], TIMER_ABSTIME, first,
				(i + 1) * 100 * US), 0);
	}
	for (i = 0; i < CHURNED; i++)
		s.churned[i] = -1;
	s.until = first + storm_ns();
	for (i = 0; i < ACTORS; i++) {
		stormers[i].storm = &s;
		stormers[i].nr = i;
		start_actor(&stormers[i].actor, churner, &stormers[i]);
	}
	for (i = 0; i < 2; i++)
		start_actor(&takers[i], taker, &s);
	for (i = 0; i < ACTORS; i++)
		join_actor(&stormers[i].actor, PATIENCE_MS + storm_ns() / MS);
	atomic_store(&s.stop, true);
	for (i = 0; i < 2; i++)
		join_actor(&takers[i], PATIENCE_MS);
	for (i = 0; i < CHURNED; i++)
		delete(s.churned[i]);
	check_stable(&s, first);
	check_shots(&s);
	CHECK_EQ(s.wrong, 0);
	note("%ld events, %ld one-shot timers", s.taken, s.shots);
	close_queue(&s.q);
}

/* The queue and the timers end in any order, while timers expire. */
#define DOOMED	8

struct doom {
	_Atomic int	kq;
	_Atomic int	id[DOOMED];
	_Atomic bool	stop;
	uint64_t	seed;
	long		events;
};

static long meddle(void *arg)
{
	struct doom *d = arg;
	uint64_t rnd = d->seed;
	struct ukevent ev[4];
	int id, ret;

	while (!atomic_load(&d->stop)) {
		id = atomic_load(&d->id[next_random(&rnd) % DOOMED]);
		ret = get_events(atomic_load(&d->kq), 1, 4, 0, ev);
		d->events += ret > 0 ? ret : 0;
		switch (next_random(&rnd) % 4) {
		case 0:
			settime(id, 0, 1 + next_random(&rnd) % 50000,
				1 + next_random(&rnd) % 50000);
			break;
		case 1:
			delete(id);
			break;
		case 2:
			remove_watch(atomic_load(&d->kq), id);
		}
	}
	return 0;
}

static void ends_of_queue_and_timers_race(void)
{
	uint64_t until = now_ns() + storm_ns();
	struct doom d = { .seed = test_seed() };
	uint64_t rnd = d.seed ^ 0x5555;
	unsigned int rounds = 0, i;
	struct actor a[2];
	struct queue q;
	int id;

	raise_pending_limit();
	for (i = 0; i < 2; i++)
		start_actor(&a[i], meddle, &d);
	for (; now_ns() < until; rounds++) {
		open_queue(&q, 0);
		atomic_store(&d.kq, q.fd);
		for (i = 0; i < DOOMED; i++) {
			id = create(q.fd, CLOCK_MONOTONIC, i);
			MUST(id >= 0);
			settime(id, 0, 1 + next_random(&rnd) % 50000,
				1 + next_random(&rnd) % 50000);
			atomic_store(&d.id[i], id);
		}
		for (i = next_random(&rnd) % 1000; i; i--)
			atomic_signal_fence(memory_order_seq_cst);
		if (rounds % 2)
			close_queue(&q);
		for (i = 0; i < DOOMED; i++)
			delete(d.id[i]);
		if (rounds % 2 == 0)
			close_queue(&q);
	}
	atomic_store(&d.stop, true);
	for (i = 0; i < 2; i++)
		join_actor(&a[i], PATIENCE_MS);
	note("%u rounds, %ld events", rounds, d.events);
	CHECK(rounds > 10);
}

static int arm_and_leave(void *arg)
{
	struct queue *q = arg;
	int i, id;

	for (i = 0; i < DOOMED; i++) {
		id = create(q->fd, CLOCK_MONOTONIC, i);
		CHILD_MUST(id >= 0);
		CHILD_MUST(!settime(id, 0, 1 + i * 7 * US, 1 + i * 3 * US));
	}
	return 0;
}

static void exits_race_collections(void)
{
	uint64_t until = now_ns() + storm_ns();
	struct storm s = { .seed = 1 };
	unsigned int rounds = 0, i;
	struct actor a[2];

	open_queue(&s.q, 0);
	for (i = 0; i < 2; i++)
		start_actor(&a[i], taker, &s);
	for (; now_ns() < until; rounds++)
		MUST_EQ(join_child(start_child(arm_and_leave, &s.q),
				   PATIENCE_MS), 0);
	atomic_store(&s.stop, true);
	for (i = 0; i < 2; i++)
		join_actor(&a[i], PATIENCE_MS);
	/* A consumer that is busy with a watch frees it later. */
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), 0);
	CHECK_NO_EVENT(&s.q);
	note("%u processes, %ld events", rounds, s.taken);
	close_queue(&s.q);
}

static const struct test_case cases[] = {
	TEST_LIMIT(control_calls_race_expiries, 30),
	TEST_LIMIT(ends_of_queue_and_timers_race, 30),
	TEST_LIMIT(exits_race_collections, 30),
	{}
};

const struct test_suite storm_posix_timer_suite = {
	.name = "storm_posix_timer", .cases = cases,
};
