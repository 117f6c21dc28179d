// SPDX-License-Identifier: GPL-2.0
/*
 * The driver of the storms
 */
#define _GNU_SOURCE
#include <sched.h>

#include "storm.h"

#define AT_ONCE		64	/* events that the test takes between two acts */

void storm_begin(struct storm *s)
{
	s->seed = test_seed();
	s->start = now_ns();
	s->until = s->start + storm_ns();
}

static long work(void *arg)
{
	struct stormer *me = arg;

	do
		me->act(me);
	while (++me->acts, storm_on(me->storm));
	atomic_fetch_sub(&me->storm->working, 1);
	return 0;
}

static long help(void *arg)
{
	struct stormer *me = arg;

	for (; !me->ends && !atomic_load(&me->storm->stop); me->acts++)
		me->act(me);
	atomic_store(&me->ended, true);
	return 0;
}

static struct stormer *start_stormers(struct storm *s, unsigned int nr,
				      void (*act)(struct stormer *me),
				      long (*fn)(void *arg))
{
	struct stormer *first = &s->stormers[s->nr], *each = first;

	MUST(s->nr + nr <= STORMERS);
	for (; nr--; each++) {
		*each = (struct stormer){ .storm = s, .act = act, .nr = s->nr };
		each->rnd = (s->seed + s->nr++ * 0x9e3779b97f4a7c15ull) | 1;
		start_actor(&each->actor, fn, each);
	}
	return first;
}

struct stormer *storm_workers(struct storm *s, unsigned int nr,
			      void (*act)(struct stormer *me))
{
	atomic_fetch_add(&s->working, nr);
	return start_stormers(s, nr, act, work);
}

struct stormer *storm_helpers(struct storm *s, unsigned int nr,
			      void (*act)(struct stormer *me))
{
	return start_stormers(s, nr, act, help);
}

void storm_replace(struct storm *s)
{
	struct stormer *each;

	for (each = s->stormers; each < s->stormers + s->nr; each++)
		if (atomic_exchange(&each->ended, false)) {
			join_actor(&each->actor, PATIENCE_MS);
			each->ends = false;
			start_actor(&each->actor, help, each);
		}
}

void storm_takes(struct stormer *me)
{
	struct storm *s = me->storm;
	struct ukevent ev[8];
	int ret, i;

	ret = s->q.size ? next_event(&s->q, ev, 1) :
			  get_events(s->q.fd, 1, ARRAY_SIZE(ev), 1, ev);
	/* What a wait promised may be another consumer's. */
	for (i = 0; i < ret; i++)
		storm_account(s, &ev[i]);
}

void storm_run(struct storm *s, void (*act)(struct storm *s))
{
	struct ukevent ev;
	bool first = true;
	unsigned int i;

	for (; first || storm_on(s) || atomic_load(&s->working); first = false) {
		for (i = 0; s->account && i < AT_ONCE &&
		     next_event(&s->q, &ev, 1) == 1; i++)
			storm_account(s, &ev);
		if (act && (first || storm_on(s)))
			act(s);
		else if (!s->account)
			sched_yield();
	}
}

void storm_end(struct storm *s, void (*act)(struct storm *s))
{
	uint64_t start = now_ns();
	struct stormer *each;

	atomic_store(&s->stop, true);
	for (each = s->stormers; each < s->stormers + s->nr; each++) {
		while (act && !actor_ended(&each->actor) &&
		       patient(start, 2 * PATIENCE_MS))
			act(s);
		join_actor(&each->actor, PATIENCE_MS);
	}
}

void storm_drain(struct storm *s)
{
	struct ukevent ev;

	while (next_event(&s->q, &ev, 0) == 1)
		storm_account(s, &ev);
}

void storm_close(struct storm *s, long watches)
{
	CHECK_EQ(s->wrong, 0);
	CHECK_EQ(fdinfo(s->q.fd, "kevent-watches"), watches);
	close_queue(&s->q);
}
