/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Storms: threads that make calls at random until a time is over, while the test takes
 * events and accounts for each of them
 *
 *	workers		act until the time is over
 *	helpers		act until storm_end(): consumers, servers
 *	the test	takes events, and acts itself, in storm_run()
 */
#ifndef STORM_H
#define STORM_H

#include "helpers.h"

#define STORMERS	8

struct storm;

/* A thread of a storm. Each is given to the same act again and again. */
struct stormer {
	struct actor	actor;
	struct storm	*storm;
	void		(*act)(struct stormer *me);
	unsigned int	nr;		/* in the order of the start */
	uint64_t	rnd;		/* of next_random() */
	unsigned long	acts;		/* so far */
	bool		ends;		/* the act of a helper says so, see storm_replace() */
	_Atomic bool	ended;
};

struct storm {
	struct queue	q;		/* opened by the test, if it has one */
	void		*world;		/* of the test */
	/* Called by whoever took an event; without it storm_run() takes none. */
	void		(*account)(struct storm *s, const struct ukevent *ev);
	/* What must have happened: the storm goes on until then, see storm_goes_on(). */
	bool		(*enough)(const struct storm *s);
	uint64_t	seed;
	uint64_t	start, until;
	_Atomic long	taken;		/* events */
	_Atomic long	wrong;		/* what must not be */
	_Atomic bool	stop;		/* helpers end */
	_Atomic int	working;	/* workers */
	unsigned int	nr;
	struct stormer	stormers[STORMERS];
};

/* Begins the time, storm_ns(); starts nobody. */
void storm_begin(struct storm *s);
/* The first of @nr threads; each makes @act again and again, once at least. */
struct stormer *storm_workers(struct storm *s, unsigned int nr,
			      void (*act)(struct stormer *me));
struct stormer *storm_helpers(struct storm *s, unsigned int nr,
			      void (*act)(struct stormer *me));
/* Starts a new thread in the place of each helper that has ended before the storm. */
void storm_replace(struct storm *s);
/* An act: takes events */
void storm_takes(struct stormer *me);
/*
 * Takes events, and makes @act in between if there is one, once at least, until the time is
 * over and the workers have ended.
 */
void storm_run(struct storm *s, void (*act)(struct storm *s));
/* Ends the helpers, and makes @act until they have ended. */
void storm_end(struct storm *s, void (*act)(struct storm *s));
/* Takes what there is. */
void storm_drain(struct storm *s);
/* Nothing was wrong, and no watch but @watches is left. */
void storm_close(struct storm *s, long watches);

static inline bool storm_on(const struct storm *s)
{
	return now_ns() < s->until ||
	       (s->enough && storm_goes_on(s->start, s->enough(s)));
}

static inline void storm_expect(struct storm *s, bool ok)
{
	if (!ok)
		atomic_fetch_add(&s->wrong, 1);
}

static inline void storm_account(struct storm *s, const struct ukevent *ev)
{
	atomic_fetch_add(&s->taken, 1);
	s->account(s, ev);
}

/* For less time than a call takes */
static inline void spin(unsigned int rounds)
{
	while (rounds--)
		atomic_signal_fence(memory_order_seq_cst);
}

#endif /* STORM_H */
