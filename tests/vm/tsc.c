// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how often this machine's TSC counts in a millisecond, in which QEMU counts that of a
 * guest that it emulates.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define NSEC_PER_MSEC	1000000ULL
#define TRIES		100

struct reading {
	uint64_t	ns;
	uint64_t	tsc;
};

/* Both at the same time: of some readings the one that took the least time */
static struct reading read_both(void)
{
	struct reading best = {};
	uint64_t took = UINT64_MAX, before, after;
	struct timespec at;
	int i;

	for (i = 0; i < TRIES; i++) {
		before = __rdtsc();
		clock_gettime(CLOCK_MONOTONIC, &at);
		after = __rdtsc();
		if (after - before >= took)
			continue;
		took = after - before;
		best.tsc = before + took / 2;
		best.ns = (uint64_t)at.tv_sec * 1000 * NSEC_PER_MSEC + (uint64_t)at.tv_nsec;
	}
	return best;
}

int main(void)
{
	const struct timespec span = { .tv_nsec = 100 * NSEC_PER_MSEC };
	struct reading from = read_both(), to;

	nanosleep(&span, NULL);
	to = read_both();
	printf("%.0f\n", (double)(to.tsc - from.tsc) * NSEC_PER_MSEC / (double)(to.ns - from.ns));
	return 0;
}
