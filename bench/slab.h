/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of the kernel's objects
 */
#ifndef BENCH_SLAB_H
#define BENCH_SLAB_H

#include "bench.h"

struct slabs;

/**
 * slabs_settled() - what all caches hold, once that does not change any more
 *
 * Objects that were freed go back to their cache some time later.
 *
 * Return: the state, for slabs_grown().
 */
struct slabs *slabs_settled(void);

/**
 * slabs_grown() - how much the caches have grown
 * @before: state to compare with, is freed
 * @nr: number of watches that were added
 * @c: who added them; named with the caches on the standard error
 *
 * Return: bytes of objects per watch, NAN if the kernel does not report them.
 */
double slabs_grown(struct slabs *before, unsigned int nr,
		   const struct bench_contestant *c);

#endif /* BENCH_SLAB_H */
