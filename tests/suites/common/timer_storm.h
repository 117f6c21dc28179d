/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the storms of TIMER and POSIX_TIMER share
 *
 *	stable		no calls		expirations agree with the clock
 *	one-shot	added all the time	each comes once
 *	churned		any call at random	no event of others
 */
#ifndef TIMER_STORM_H
#define TIMER_STORM_H

#include "storm.h"
#include "timers.h"

#define STABLE		4
#define CHURNED		8
#define CHURN_USER	1000
#define SHOT_USER	1000000
#define SHOTS		4000000

/* The world of such a storm */
struct clockwork {
	int64_t		first;			/* expiry of the stable timers */
	_Atomic long	sum[STABLE];		/* expirations */
	_Atomic long	shots;			/* one-shot timers begun */
	unsigned char	*seen;			/* per shot */
};

static inline int64_t stable_period(unsigned int i)
{
	return (i + 1) * 100 * US;
}

void open_clockwork(struct clockwork *c);
/* The number of the next one-shot timer, -1 when there were enough */
long next_shot(struct clockwork *c);
/* Accounts for an event of @nr expirations; returns true if it is a shot's. */
bool account_expiry(struct storm *s, const struct ukevent *ev, long nr);
/* Makes @churn in three threads, while two others take events. */
void race_expiries(struct storm *s, void (*churn)(struct stormer *me));
/* Takes one more event of each stable timer: they are exact at any time. */
void check_stable(struct storm *s);
/* Every one-shot timer comes once, and no watch is left. */
void check_shots(struct storm *s);

#endif /* TIMER_STORM_H */
