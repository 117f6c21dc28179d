/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Figures of a comparison, and how they are printed
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench.h"

/**
 * struct figures - what one contestant did at one point
 * @contestant: who
 * @runs: how often; 0: it did not take part
 * @value: what each run measured, per metric, in the order of the runs
 */
struct figures {
	const struct bench_contestant	*contestant;
	unsigned int			runs;
	double				value[BENCH_METRICS][BENCH_RUNS];
};

/**
 * report_counts_instructions() - what the clock is
 *
 * Return: whether a nanosecond is an instruction, as the runner says.
 */
bool report_counts_instructions(void);

/**
 * report() - print the figures of a comparison
 * @w: what was measured
 * @p: where
 * @figures: of all contestants
 * @nr: how many contestants
 */
void report(const struct bench_workload *w, const struct bench_point *p,
	    const struct figures *figures, unsigned int nr);

#endif /* BENCH_REPORT_H */
