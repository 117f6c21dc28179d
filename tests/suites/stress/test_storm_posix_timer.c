// SPDX-License-Identifier: GPL-2.0
/*
 * Races of KEVENT_POSIX_TIMER, with a time budget
 */
#define _GNU_SOURCE
#include "timer_storm.h"

struct posix_clockwork {
	struct clockwork	c;	/* what the storms of timers share */
	int			stable[STABLE];
	int			churned[CHURNED];
};

/* A timer that expires once; the thread that takes its event deletes it. */
static void shoot(struct stormer *me)
{
	long nr = next_shot(me->storm->world);
	int id;

	if (nr < 0)
		return;
	id = create(me->storm->q.fd, CLOCK_MONOTONIC, SHOT_USER + nr);
	storm_expect(me->storm, id >= 0 &&
		     !settime(id, 0, 1 + next_random(&me->rnd) % (50 * US), 0));
}

static void churn(struct stormer *me)
{
	static const clockid_t kinds[] = {
		CLOCK_MONOTONIC, CLOCK_MONOTONIC, CLOCK_REALTIME,
		CLOCK_BOOTTIME_ALARM, CLOCK_PROCESS_CPUTIME_ID,
	};
	static const uint32_t flags[] = {
		0, 0, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED,
		KEVENT_REQ_ONESHOT, KEVENT_REQ_READY,
	};
	unsigned int i = next_random(&me->rnd) % CHURNED;
	struct posix_clockwork *p = me->storm->world;
	int kq = me->storm->q.fd, id = p->churned[i];

	switch (next_random(&me->rnd) % 16) {
	case 0:
		delete(id);
		break;
	case 1:
		id = create(kq, kinds[next_random(&me->rnd) % ARRAY_SIZE(kinds)],
			    CHURN_USER + i);
		if (id >= 0)
			id = __atomic_exchange_n(&p->churned[i], id,
						 __ATOMIC_RELAXED);
		delete(id);
		break;
	case 2 ... 7:
		settime(id, 0, next_random(&me->rnd) % (100 * US),
			next_random(&me->rnd) % (90 * US));
		break;
	case 8:
		gettime(id);
		break;
	case 9 ... 10:
		modify_posix_timer(kq, id, flags[next_random(&me->rnd) % ARRAY_SIZE(flags)],
				   CHURN_USER + i);
		break;
	case 11:
		remove_posix_timer(kq, id);
		break;
	case 12:
		control_posix_timer(kq, KEVENT_CTL_READY, id, 0, 0);
		break;
	default:
		shoot(me);
	}
}

static void account(struct storm *s, const struct ukevent *ev)
{
	storm_expect(s, ev->type == KEVENT_POSIX_TIMER);
	if (account_expiry(s, ev, 1 + overrun(ev)))
		storm_expect(s, !delete(ev->id.raw[0]));
}

static void control_calls_race_expiries(void)
{
	struct posix_clockwork p;
	struct storm s = { .world = &p, .account = account };
	unsigned int i;

	raise_pending_limit();
	open_queue(&s.q, 0);
	open_clockwork(&p.c);
	for (i = 0; i < STABLE; i++) {
		p.stable[i] = create(s.q.fd, CLOCK_MONOTONIC, i);
		MUST(p.stable[i] >= 0);
		MUST_EQ(settime(p.stable[i], TIMER_ABSTIME, p.c.first,
				stable_period(i)), 0);
	}
	for (i = 0; i < CHURNED; i++)
		p.churned[i] = -1;
	race_expiries(&s, churn);
	for (i = 0; i < CHURNED; i++)
		delete(p.churned[i]);
	check_stable(&s);
	for (i = 0; i < STABLE; i++)
		CHECK_EQ(delete(p.stable[i]), 0);
	check_shots(&s);
}

/* The queue and the timers end in any order, while timers expire. */
#define DOOMED	8

struct doom {
	_Atomic int	kq;
	_Atomic int	id[DOOMED];
	_Atomic long	rounds;
};

static void settime_soon(int id, uint64_t *rnd)
{
	settime(id, 0, 1 + next_random(rnd) % 50000, 1 + next_random(rnd) % 50000);
}

static void meddle(struct stormer *me)
{
	struct doom *d = me->storm->world;
	int id = atomic_load(&d->id[next_random(&me->rnd) % DOOMED]);
	struct ukevent ev[4];
	int ret = get_events(atomic_load(&d->kq), 1, 4, 0, ev);

	if (ret > 0)
		atomic_fetch_add(&me->storm->taken, ret);
	switch (next_random(&me->rnd) % 4) {
	case 0:
		settime_soon(id, &me->rnd);
		break;
	case 1:
		delete(id);
		break;
	case 2:
		remove_posix_timer(atomic_load(&d->kq), id);
	}
}

static void open_and_end(struct storm *s)
{
	struct doom *d = s->world;
	struct queue q;
	int i, id;

	open_queue(&q, 0);
	atomic_store(&d->kq, q.fd);
	for (i = 0; i < DOOMED; i++) {
		id = create(q.fd, CLOCK_MONOTONIC, i);
		MUST(id >= 0);
		settime_soon(id, &s->seed);
		atomic_store(&d->id[i], id);
	}
	spin(next_random(&s->seed) % 1000);
	if (d->rounds % 2)
		close_queue(&q);
	for (i = 0; i < DOOMED; i++)
		delete(d->id[i]);
	if (d->rounds % 2 == 0)
		close_queue(&q);
	d->rounds++;
}

static bool ten_rounds(const struct storm *s)
{
	return ((struct doom *)s->world)->rounds > 10;
}

static void ends_of_queue_and_timers_race(void)
{
	struct doom d = {};
	struct storm s = { .world = &d, .enough = ten_rounds };

	raise_pending_limit();
	storm_begin(&s);
	storm_helpers(&s, 2, meddle);
	storm_run(&s, open_and_end);
	storm_end(&s, NULL);
	note("%ld rounds, %ld events", d.rounds, s.taken);
	CHECK(ten_rounds(&s));
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

static void arm_in_a_child(struct storm *s)
{
	MUST_EQ(join_child(start_child(arm_and_leave, &s->q), PATIENCE_MS), 0);
	++*(unsigned int *)s->world;
}

static void take_any(struct stormer *me)
{
	struct ukevent ev[8];
	int ret = get_events(me->storm->q.fd, 1, ARRAY_SIZE(ev), 1, ev);

	if (ret > 0)
		atomic_fetch_add(&me->storm->taken, ret);
}

static void exits_race_collections(void)
{
	unsigned int rounds = 0;
	struct storm s = { .world = &rounds };

	open_queue(&s.q, 0);
	storm_begin(&s);
	storm_helpers(&s, 2, take_any);
	storm_run(&s, arm_in_a_child);
	storm_end(&s, NULL);
	/* A consumer that is busy with a watch frees it later. */
	CHECK_NO_EVENT(&s.q);
	note("%u processes, %ld events", rounds, s.taken);
	storm_close(&s, 0);
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
