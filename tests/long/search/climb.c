// SPDX-License-Identifier: GPL-2.0
/*
 * Hill climbing: of each source, the worst input so far for each kind of cost. An input
 * that costs more after a change takes the place of the other.
 */
#include <string.h>

#include "search.h"

#define RANDOM_INPUTS	3	/* before the first change */

struct best {
	struct input	input;
	uint64_t	value;
	unsigned int	step;
	unsigned int	round;
};

static struct best best[NR_SOURCES][NR_METRICS];

struct search {
	uint64_t	state;
	unsigned int	round;
};

static uint32_t below(struct search *s, uint32_t n)
{
	return next_random(&s->state) % n;
}

static bool fits(const struct input *in)
{
	unsigned int i, work = 0;

	for (i = 0; i < in->nr; i++)
		work += in->step[i].times * (in->step[i].op.child ? 2 : 1);
	return in->nr && work <= MAX_WORK;
}

/* An operation of the fuzzer */
static void random_step(struct search *s, enum source source, struct step *to)
{
	static const uint8_t more[] = {
		STEP_SLEEP, STEP_EPOLL, STEP_DROP, STEP_CLOSE_QUEUE, STEP_NEST,
		STEP_FIFO, STEP_SAME, OP_SETTLE,
	};
	static struct sequence all;

	generate(&all, next_random(&s->state), 30, false);
	*to = (struct step){
		.op = all.op[below(s, all.nr)],
		.times = 1u << below(s, 12),
		.dq = below(s, 2), .dx = below(s, 2), .batch = below(s, 2),
	};
	if (!below(s, 5))
		to->op.code = more[below(s, ARRAY_SIZE(more))];
	fit(source, to, &s->state);
}

static void random_input(struct search *s, enum source source,
			 struct input *in)
{
	do {
		in->nr = 0;
		while (in->nr < 16)
			random_step(s, source, &in->step[in->nr++]);
	} while (!fits(in));
}

static void change_step(struct search *s, enum source source, struct step *at)
{
	struct step other;

	random_step(s, source, &other);
	switch (below(s, 9)) {
	case 0:
	case 1:
		at->times = at->times * 2 < MAX_TIMES ? at->times * 2 :
							MAX_TIMES;
		break;
	case 2:
		at->times = other.times;
		break;
	case 3:
		at->dq = !at->dq;
		break;
	case 4:
		at->dx = !at->dx;
		break;
	case 5:
		at->op.q = other.op.q;
		at->op.x = other.op.x;
		break;
	case 6:
		at->op.flags ^= 1u << below(s, 9);
		break;
	case 7:
		at->op.n = other.op.n;
		at->batch = !at->batch;
		break;
	default:
		*at = other;
	}
}

static void insert(struct input *in, unsigned int at, const struct step *step)
{
	if (in->nr == MAX_STEPS)
		return;
	memmove(&in->step[at + 1], &in->step[at],
		(in->nr - at) * sizeof(*step));
	in->step[at] = *step;
	in->nr++;
}

static void leave_out(struct input *in, unsigned int at)
{
	if (in->nr < 2)
		return;
	in->nr--;
	memmove(&in->step[at], &in->step[at + 1],
		(in->nr - at) * sizeof(in->step[0]));
}

static void change_once(struct search *s, enum source source, struct input *in)
{
	unsigned int at = below(s, in->nr);
	struct step step;

	switch (below(s, 8)) {
	case 0:
		random_step(s, source, &step);
		insert(in, at, &step);
		break;
	case 1:
		step = in->step[below(s, in->nr)];
		insert(in, at, &step);
		break;
	case 2:
		leave_out(in, at);
		break;
	case 3:
		step = in->step[at];
		in->step[at] = in->step[0];
		in->step[0] = step;
		break;
	default:
		change_step(s, source, &in->step[at]);
	}
}

static void change(struct search *s, enum source source, struct input *in)
{
	const struct input was = *in;
	unsigned int n;

	do {
		*in = was;
		for (n = 1 + below(s, 3); n; n--)
			change_once(s, source, in);
	} while (!fits(in));
}

/* One of the costs that the source has at all; stretches and bytes most often */
static enum metric pick_metric(struct search *s, enum source source)
{
	enum metric m;

	do {
		m = below(s, NR_METRICS + 6);
		if (m >= NR_METRICS)
			m = m % 3 ? STRETCH : BYTES;
	} while (!best[source][m].value && best[source][STRETCH].value);
	return m;
}

static void make_input(struct search *s, enum source source, unsigned int nth,
		       struct input *in)
{
	const struct input *from;

	if (nth < 2) {
		(nth ? seed_large : seed_input)(source, in);
		return;
	}
	from = &best[source][pick_metric(s, source)].input;
	if (nth < 2 + RANDOM_INPUTS || !from->nr) {
		random_input(s, source, in);
		return;
	}
	*in = *from;
	change(s, source, in);
}

/* Noise of interrupts is no progress. */
static bool is_worse(uint64_t value, uint64_t than)
{
	return value > than + than / 200;
}

static void keep(const struct search *s, enum source source,
		 const struct input *in, const struct cost *cost)
{
	struct best *b = best[source];
	enum metric m;

	for (m = 0; m < NR_METRICS; m++) {
		if (!is_worse(cost->value[m], b[m].value))
			continue;
		b[m] = (struct best){
			*in, cost->value[m], cost->step[m], s->round,
		};
	}
}

static void print_best(enum source source, enum metric m)
{
	const struct best *b = &best[source][m];

	if (!b->value)
		return;
	printf("best %s %s %llu step %u round %u\n", source_names[source],
	       metric_names[m], (unsigned long long)b->value, b->step,
	       b->round);
	print_input(stdout, &b->input);
}

void climb(uint64_t seed, unsigned int seconds, unsigned int rounds,
	   uint32_t sources)
{
	struct search s = { .state = seed * 0x9e3779b97f4a7c15ull | 1 };
	uint64_t begin = host_seconds();
	unsigned int nr[NR_SOURCES] = {}, failed = 0;
	struct input in;
	struct cost cost;
	enum source source;
	enum metric m;

	for (s.round = 0; rounds ? s.round < rounds :
	     host_seconds() - begin < seconds; s.round++) {
		for (source = 0; source < NR_SOURCES; source++) {
			if (!(sources & 1u << source))
				continue;
			make_input(&s, source, nr[source]++, &in);
			run_input(&in, &cost);
			failed += cost.failed;
			keep(&s, source, &in, &cost);
		}
	}
	for (source = 0; source < NR_SOURCES; source++)
		for (m = 0; m < NR_METRICS; m++)
			print_best(source, m);
	printf("end of %u rounds, %u inputs did not end\n", s.round, failed);
}
