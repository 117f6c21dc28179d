// SPDX-License-Identifier: GPL-2.0
/*
 * The stock of bytes that the memory cgroup was charged in advance
 *
 * A cgroup is charged pages, of which objects take bytes. When the stock is
 * smaller than the objects of an event, their allocation charges a page and
 * their free uncharges it, each time again if nothing else is allocated: some
 * 330 instructions. What was allocated before decides whether that is so.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

void bench_shift_stock(void)
{
	static struct bench_pair *pair;
	static unsigned int nr;
	char bytes[BENCH_SHIFTS];

	if (!pair)
		pair = bench_pairs_open("unix", 1);
	if (nr == BENCH_SHIFTS) {
		if (read(pair->rd, bytes, nr) != nr)
			bench_die("read of %u bytes: %s", nr, strerror(errno));
		nr = 0;
	}
	bench_put(pair->wr);
	nr++;
}
