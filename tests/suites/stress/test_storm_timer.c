// SPDX-License-Identifier: GPL-2.0
/*
 * Races of KEVENT_TIMER, with a time budget
 */
#define _GNU_SOURCE
#include "timer_storm.h"

static void shoot(struct stormer *me)
{
	long shot = next_shot(me->storm->world);
	int64_t first = 1 + next_random(&me->rnd) % (50 * US);

	if (shot >= 0)
		storm_expect(me->storm, !add_timer(me->storm->q.fd, first, NONE, 0,
						   ONESHOT, SHOT_USER + shot));
}

static void churn(struct stormer *me)
{
	static const uint32_t modes[] = {
		0, ONESHOT, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED,
		KEVENT_REQ_READY, KEVENT_REQ_WAKEUP_ALL,
	};
	static const uint32_t events[] = {
		0, REALTIME, KEVENT_TIMER_BOOTTIME, KEVENT_TIMER_TAI, ABS,
		REALTIME | ABS | ON_SET, REALTIME | ABS | ON_SET,
	};
	uint64_t user = CHURN_USER + next_random(&me->rnd) % CHURNED;
	uint32_t mode = modes[next_random(&me->rnd) % ARRAY_SIZE(modes)];
	uint32_t event = events[next_random(&me->rnd) % ARRAY_SIZE(events)];
	int64_t first = 1 + next_random(&me->rnd) % (200 * US);
	int64_t interval = next_random(&me->rnd) % (90 * US);
	int kq = me->storm->q.fd;

	if (event & ABS)
		first += clock_ns(event & REALTIME ? CLOCK_REALTIME :
				  CLOCK_MONOTONIC);
	switch (next_random(&me->rnd) % 16) {
	case 0 ... 3:
		add_timer(kq, first, interval, event, mode, user);
		break;
	case 4 ... 9:
		modify_timer(kq, first, interval, event, mode, user);
		break;
	case 10:
		remove_timer(kq, user);
		break;
	case 11:
		set_timer(kq, KEVENT_CTL_READY, 0, NONE, 0, 0, user);
		break;
	case 12:
		if (next_random(&me->rnd) % 16 == 0)
			step_clock(1);
		break;
	default:
		shoot(me);
	}
}

static void account(struct storm *s, const struct ukevent *ev)
{
	storm_expect(s, ev->type == KEVENT_TIMER);
	account_expiry(s, ev, ticks(ev));
}

static void control_calls_race_expiries(void)
{
	struct clockwork c;
	struct storm s = { .world = &c, .account = account };
	unsigned int i;

	open_queue(&s.q, 0);
	open_clockwork(&c);
	for (i = 0; i < STABLE; i++)
		MUST_EQ(add_timer(s.q.fd, c.first, stable_period(i), ABS, 0, i),
			0);
	race_expiries(&s, churn);
	check_stable(&s);
	for (i = 0; i < CHURNED; i++)
		remove_timer(s.q.fd, CHURN_USER + i);
	for (i = 0; i < STABLE; i++)
		remove_timer(s.q.fd, i);
	check_shots(&s);
}

static void set_clock_often(struct stormer *me)
{
	(void)me;
	step_clock(1);
	usleep(100);
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

static void open_and_close(struct storm *s)
{
	uint64_t *rnd = &s->seed;
	struct queue q;
	int i;

	open_queue(&q, s->taken % 2 ? 8 : 0);
	if (s->taken % 8 == 1)
		add_many(&q);
	if (s->taken % 3 == 0)
		MUST_EQ(add_timer(q.fd, clock_ns(CLOCK_REALTIME), US,
				  ABS | REALTIME | ON_SET, 0, 99), 0);
	for (i = 0; i < 16; i++)
		MUST_EQ(add_timer(q.fd, 1 + next_random(rnd) % 99000,
				  next_random(rnd) % 50000, 0, 0, i), 0);
	if (s->taken % 4 == 0 && s->taken % 3)
		wait_until_ready(&q, 16);
	close_queue(&q);
	s->taken++;
}

static bool ten_rounds(const struct storm *s)
{
	return s->taken > 10;
}

static void close_races_expiries(void)
{
	struct storm s = { .enough = ten_rounds };

	storm_begin(&s);
	storm_helpers(&s, 1, set_clock_often);
	storm_run(&s, open_and_close);
	storm_end(&s, NULL);
	note("%ld rounds", s.taken);
	CHECK(ten_rounds(&s));
}

static const struct test_case cases[] = {
	TEST_LIMIT(control_calls_race_expiries, 30),
	TEST_LIMIT(close_races_expiries, 30),
	{}
};

const struct test_suite storm_timer_suite = {
	.name = "storm_timer", .cases = cases,
};
