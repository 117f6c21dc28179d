// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the kernel's objects, by /proc/slabinfo
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slab.h"

#define CACHES		512
#define NAME		64
/* The kernel frees objects up to five seconds after RCU allows it */
#define SETTLE_SECONDS	6
#define SETTLE_TRIES	20
#define SETTLE_BYTES	4096

/**
 * struct slabs - what all caches hold
 * @nr: number of caches; 0 if the kernel does not report them
 * @cache: name, and bytes of the objects in use
 */
struct slabs {
	unsigned int	nr;
	struct {
		char	name[NAME];
		double	bytes;
	} cache[CACHES];
};

static struct slabs *slabs_read(void)
{
	struct slabs *s = bench_alloc(1, sizeof(*s));
	FILE *file = fopen("/proc/slabinfo", "r");
	unsigned long active, all, size;
	char line[512];

	while (file && s->nr < CACHES && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %lu %lu %lu", s->cache[s->nr].name,
			   &active, &all, &size) == 4)
			s->cache[s->nr++].bytes = (double)active * (double)size;
	}
	if (file)
		fclose(file);
	return s;
}

static double total(const struct slabs *s)
{
	double bytes = 0;
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		bytes += s->cache[i].bytes;
	return bytes;
}

struct slabs *slabs_settled(void)
{
	const struct timespec pause = { .tv_sec = SETTLE_SECONDS };
	struct slabs *old = slabs_read(), *new;
	unsigned int i;
	double change;

	for (i = 0; i < SETTLE_TRIES; i++) {
		nanosleep(&pause, NULL);
		new = slabs_read();
		change = fabs(total(new) - total(old));
		free(old);
		if (change <= SETTLE_BYTES)
			return new;
		old = new;
	}
	bench_die("the memory in use does not come to rest");
}

static double bytes_of(const struct slabs *s, const char *name)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		if (!strcmp(s->cache[i].name, name))
			return s->cache[i].bytes;
	return 0;
}

double slabs_grown(struct slabs *before, unsigned int nr,
		   const struct bench_contestant *c)
{
	struct slabs *after = slabs_read();
	double grown, sum = total(after) - total(before);
	unsigned int i;

	fprintf(stderr, "memory of a watch, %s %s, %u watches:",
		c->backend->name, c->mode, nr);
	for (i = 0; i < after->nr; i++) {
		grown = after->cache[i].bytes -
			bytes_of(before, after->cache[i].name);
		if (grown / nr >= 1)
			fprintf(stderr, " %s %.1f", after->cache[i].name,
				grown / nr);
	}
	fprintf(stderr, "\n");
	if (!after->nr)
		sum = NAN;
	free(after);
	free(before);
	return sum / nr;
}
