// SPDX-License-Identifier: GPL-2.0
/*
 * What the storms of TIMER and POSIX_TIMER share
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "timer_storm.h"

void open_clockwork(struct clockwork *c)
{
	*c = (struct clockwork){ .first = now_ns() };
	c->seen = mmap(NULL, SHOTS, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(c->seen != MAP_FAILED);
}

long next_shot(struct clockwork *c)
{
	long nr = atomic_load(&c->shots);

	do {
		if (nr >= SHOTS)
			return -1;
	} while (!atomic_compare_exchange_weak(&c->shots, &nr, nr + 1));
	return nr;
}

bool account_expiry(struct storm *s, const struct ukevent *ev, long nr)
{
	struct clockwork *c = s->world;

	if (ev->ptr < STABLE) {
		atomic_fetch_add(&c->sum[ev->ptr], nr);
	} else if (ev->ptr - SHOT_USER < SHOTS) {
		__atomic_fetch_add(&c->seen[ev->ptr - SHOT_USER], 1,
				   __ATOMIC_RELAXED);
		return true;
	} else {
		storm_expect(s, ev->ptr - CHURN_USER < CHURNED);
	}
	return false;
}

void race_expiries(struct storm *s, void (*churn)(struct stormer *me))
{
	storm_begin(s);
	storm_workers(s, 3, churn);
	storm_helpers(s, 2, storm_takes);
	storm_run(s, NULL);
	storm_end(s, NULL);
}

void check_stable(struct storm *s)
{
	struct clockwork *c = s->world;
	int64_t before, after;
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < STABLE; i++) {
		do {
			before = now_ns();
			MUST_EVENT(&s->q, &ev);
			after = now_ns();
			storm_account(s, &ev);
		} while (ev.ptr != i);
		CHECK(c->sum[i] >= due(before, c->first, stable_period(i)));
		CHECK(c->sum[i] <= due(after, c->first, stable_period(i)));
	}
}

void check_shots(struct storm *s)
{
	struct clockwork *c = s->world;
	uint64_t start = now_ns();
	long i, missing = 0;

	do {
		storm_drain(s);
	} while (fdinfo(s->q.fd, "kevent-watches") &&
		 patient(start, PATIENCE_MS));
	for (i = 0; i < c->shots; i++)
		missing += c->seen[i] != 1;
	CHECK_EQ(missing, 0);
	note("%ld events, %ld one-shot timers", s->taken, c->shots);
	storm_close(s, 0);
}
