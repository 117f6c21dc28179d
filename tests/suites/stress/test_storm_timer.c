// SPDX-License-Identifier: GPL-2.0
/*
 * Races of KEVENT_TIMER, with a time budget
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
	_Atomic long	shots;		/* one-shot timers added */
	_Atomic long	sum[STABLE];	/* expirations */
	_Atomic long	taken;
	_Atomic long	wrong;
	_Atomic bool	stop;
	unsigned char	*seen;		/* per shot */
};

static void churn(struct storm *s, uint64_t *rnd)
{
	static const uint32_t modes[] = {
		0, ONESHOT, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED,
		KEVENT_REQ_READY, KEVENT_REQ_WAKEUP_ALL,
	};
	static const uint32_t events[] = {
		0, REALTIME, KEVENT_TIMER_BOOTTIME, KEVENT_TIMER_TAI, ABS,
		REALTIME | ABS | ON_SET, REALTIME | ABS | ON_SET,
	};
	uint64_t user = CHURN_USER + next_random(rnd) % CHURNED;
	uint32_t mode = modes[next_random(rnd) % ARRAY_SIZE(modes)];
	uint32_t event = events[next_random(rnd) % ARRAY_SIZE(events)];
	int64_t first = 1 + next_random(rnd) % (200 * US);
	long shot;

	if (event & ABS)
		first += clock_ns(event & REALTIME ? CLOCK_REALTIME :
				  CLOCK_MONOTONIC);
	switch (next_random(rnd) % 16) {
	case 0 ... 3:
		add_timer(s->q.fd, first, next_random(rnd) % (90 * US), event,
			  mode, user);
		break;
	case 4 ... 9:
		modify_timer(s->q.fd, first, next_random(rnd) % (90 * US),
			     event, mode, user);
		break;
	case 10:
		remove_timer(s->q.fd, user);
		break;
	case 11:
		set_timer(s->q.fd, KEVENT_CTL_READY, 0, NONE, 0, 0, user);
		break;
	case 12:
		if (next_random(rnd) % 16 == 0)
			step_clock(1);
		break;
	default:
		shot = atomic_fetch_add(&s->shots, 1);
		if (shot >= SHOTS ||
		    add_timer(s->q.fd, 1 + next_random(rnd) % (50 * US), NONE,
			      0, ONESHOT, SHOT_USER + shot))
			atomic_fetch_add(&s->wrong, 1);
	}
}

struct stormer {
	struct actor	actor;
	struct storm	*storm;
	unsigned int	nr;
};

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
	if (ev->type != KEVENT_TIMER)
		atomic_fetch_add(&s->wrong, 1);
	else if (ev->ptr < STABLE)
		atomic_fetch_add(&s->sum[ev->ptr], ticks(ev));
	else if (ev->ptr >= SHOT_USER && ev->ptr < SHOT_USER + SHOTS)
		__atomic_fetch_add(&s->seen[ev->ptr - SHOT_USER], 1,
				   __ATOMIC_RELAXED);
	else if (ev->ptr < CHURN_USER || ev->ptr >= CHURN_USER + CHURNED)
		atomic_fetch_add(&s->wrong, 1);
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

/* Every one-shot timer comes once. */
static void check_shots(struct storm *s)
{
	uint64_t start = now_ns();
	struct ukevent ev;
	long i, missing;

	for (i = 0; i < CHURNED; i++)
		remove_timer(s->q.fd, CHURN_USER + i);
	for (i = 0; i < STABLE; i++)
		remove_timer(s->q.fd, i);
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

/* Stable timers are exact at any time, so take one more event of each. */
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
	}
}

static void control_calls_race_expiries(void)
{
	struct stormer stormers[ACTORS];
	struct storm s = { .seed = test_seed() };
	struct actor takers[2];
	int64_t first;
	long i;

	s.seen = mmap(NULL, SHOTS, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(s.seen != MAP_FAILED);
	open_queue(&s.q, 0);
	first = now_ns();
	for (i = 0; i < STABLE; i++)
		MUST_EQ(add_timer(s.q.fd, first, (i + 1) * 100 * US, ABS, 0, i),
			0);
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
	check_stable(&s, first);
	check_shots(&s);
	CHECK_EQ(s.wrong, 0);
	note("%ld events, %ld one-shot timers", s.taken, s.shots);
	close_queue(&s.q);
}

static long clock_setter(void *arg)
{
	while (!atomic_load((_Atomic bool *)arg)) {
		step_clock(1);
		usleep(100);
	}
	return 0;
}

/* So many timers do not expire in one softirq. */
static void add_many(struct queue *q)
{
	int64_t at = now_ns();
	int i;

	for (i = 0; i < 500; i++)
		MUST_EQ(add_timer(q->fd, at + 2 * MS, NONE, ABS, ONESHOT,
				  1000 + i), 0);
	while ((int64_t)now_ns() < at + 2 * MS)
		;
}

static void close_races_expiries(void)
{
	uint64_t rnd = test_seed(), until = now_ns() + storm_ns();
	_Atomic bool stop = false;
	unsigned int rounds = 0, i;
	struct actor setter;
	struct queue q;

	start_actor(&setter, clock_setter, &stop);
	while (now_ns() < until) {
		open_queue(&q, rounds % 2 ? 8 : 0);
		if (rounds % 8 == 1)
			add_many(&q);
		if (rounds % 3 == 0)
			MUST_EQ(add_timer(q.fd, clock_ns(CLOCK_REALTIME), US,
					  ABS | REALTIME | ON_SET, 0, 99), 0);
		for (i = 0; i < 16; i++)
			MUST_EQ(add_timer(q.fd, 1 + next_random(&rnd) % 99000,
					  next_random(&rnd) % 50000, 0, 0, i),
				0);
		if (rounds % 4 == 0 && rounds % 3)
			wait_until_ready(&q, 16);
		close_queue(&q);
		rounds++;
	}
	atomic_store(&stop, true);
	join_actor(&setter, PATIENCE_MS);
	note("%u rounds", rounds);
	CHECK(rounds > 10);
}

static const struct test_case cases[] = {
	TEST_LIMIT(control_calls_race_expiries, 30),
	TEST_LIMIT(close_races_expiries, 30),
	{}
};

const struct test_suite storm_timer_suite = {
	.name = "storm_timer", .cases = cases,
};
