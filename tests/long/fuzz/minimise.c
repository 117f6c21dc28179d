// SPDX-License-Identifier: GPL-2.0
/*
 * Delta debugging: blocks of operations are left out, half as long each time, as long
 * as the rest still fails
 */
#include <string.h>

#include "fuzz.h"

static void leave_out(struct sequence *to, const struct sequence *from,
		      unsigned int first, unsigned int nr)
{
	unsigned int rest = from->nr - first - nr;

	memcpy(to->op, from->op, first * sizeof(to->op[0]));
	memcpy(to->op + first, from->op + first + nr,
	       rest * sizeof(to->op[0]));
	to->nr = first + rest;
}

/* Returns whether anything could be left out. */
static bool minimise_by(struct sequence *s, struct outcome *out,
			unsigned int block)
{
	static struct sequence less;
	unsigned int first = 0;
	struct outcome now;
	bool some = false;

	while (first < s->nr) {
		unsigned int nr = block < s->nr - first ? block :
							  s->nr - first;

		leave_out(&less, s, first, nr);
		run_sequence(&less, &now);
		if (!now.failed) {
			first += nr;
			continue;
		}
		*s = less;
		*out = now;
		if (now.step + 1 < s->nr)
			s->nr = now.step + 1;
		some = true;
	}
	return some;
}

void minimise(struct sequence *s, struct outcome *out)
{
	unsigned int block;
	bool some;

	if (out->step + 1 < s->nr)
		s->nr = out->step + 1;
	do {
		some = false;
		for (block = (s->nr + 1) / 2; block; block /= 2)
			some |= minimise_by(s, out, block);
	} while (some);
}
