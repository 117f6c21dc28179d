// SPDX-License-Identifier: GPL-2.0
/*
 * The stock of bytes that the memory cgroup was charged in advance
 *
 * A cgroup is charged for pages, and objects take bytes of them. When the stock is
 * smaller than the objects of an event, their allocation charges a page and their
 * free uncharges it. If nothing else is allocated, that happens for each event and
 * costs some 330 instructions. It depends on what was allocated before.
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
