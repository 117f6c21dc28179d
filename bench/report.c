// SPDX-License-Identifier: GPL-2.0
/*
 * Figures as lines of JSON
 *
 * The names and units of the workloads have no characters that JSON would want
 * escaped. With KEVENT_ICOUNT=1 in the environment, nanoseconds are called
 * instructions. The runner adds what only the host knows of the machine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"
#include "report.h"

bool report_counts_instructions(void)
{
	const char *value = getenv("KEVENT_ICOUNT");

	return value && !strcmp(value, "1");
}

static void print_point(const struct bench_workload *w,
			const struct bench_point *p,
			const struct bench_contestant *c)
{
	printf("{\"workload\": \"%s\", \"backend\": \"%s\", \"mode\": \"%s\", ",
	       w->name, c->backend->name, c->mode);
	printf("\"source\": \"%s\", \"batch\": %u, \"watches\": %u, ",
	       p->source, p->batch, p->watches);
	printf("\"threads\": %u, \"cpus\": %ld, \"icount\": %s, ", p->threads,
	       sysconf(_SC_NPROCESSORS_ONLN),
	       report_counts_instructions() ? "true" : "false");
}

static double median(const double *value, unsigned int nr)
{
	double sorted[BENCH_RUNS];

	memcpy(sorted, value, nr * sizeof(*value));
	bench_sort(sorted, nr);
	return (sorted[nr / 2] + sorted[(nr - 1) / 2]) / 2;
}

static void print_runs(const double *value, unsigned int nr)
{
	double min = value[0], max = value[0];
	unsigned int i;

	for (i = 1; i < nr; i++) {
		min = fmin(min, value[i]);
		max = fmax(max, value[i]);
	}
	printf("\"runs\": %u, \"min\": %.6g, \"max\": %.6g, \"values\": [", nr,
	       min, max);
	for (i = 0; i < nr; i++)
		printf("%s%.6g", i ? ", " : "", value[i]);
	printf("], ");
}

static void print_figure(const char *name, const char *suffix,
			 const char *unit, const double *value,
			 unsigned int nr)
{
	bool ns = report_counts_instructions() && !strncmp(unit, "ns", 2);
	struct utsname uts;

	uname(&uts);
	printf("\"metric\": \"%s%s\", \"value\": %.6g, \"unit\": \"%s%s\", ",
	       name, suffix, median(value, nr),
	       ns ? "instructions" : "", ns ? unit + 2 : unit);
	print_runs(value, nr);
	printf("\"kernel\": \"%s\"}\n", uts.release);
}

/* The blind contestant, NULL if none takes part or has the metric */
static const struct figures *bare(const struct figures *figures,
				  unsigned int nr, unsigned int metric)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (figures[i].contestant->backend->blind && figures[i].runs &&
		    !isnan(figures[i].value[metric][0]))
			return &figures[i];
	return NULL;
}

/* Contestants take turns: runs of one number follow each other */
static void report_above(const struct bench_workload *w,
			 const struct bench_point *p, const struct figures *f,
			 const struct figures *less, unsigned int k)
{
	const struct bench_metric *m = &w->metrics[k];
	double above[BENCH_RUNS];
	unsigned int i;

	for (i = 0; i < f->runs; i++)
		above[i] = f->value[k][i] - less->value[k][i];
	print_point(w, p, f->contestant);
	print_figure(m->name, " above bare", m->unit, above, f->runs);
}

static void report_one(const struct bench_workload *w,
		       const struct bench_point *p, const struct figures *f,
		       unsigned int k, const struct figures *less)
{
	const struct bench_metric *m = &w->metrics[k];

	if (isnan(f->value[k][0]))
		return;
	print_point(w, p, f->contestant);
	print_figure(m->name, "", m->unit, f->value[k], f->runs);
	if (m->above && less && f != less)
		report_above(w, p, f, less, k);
}

/* Contestants take turns, so that their runs of one number are a pair */
static void report_ratio(const struct bench_workload *w,
			 const struct bench_point *p, const struct figures *f,
			 const struct figures *other, unsigned int k)
{
	double ratio[BENCH_RUNS];
	char suffix[64];
	unsigned int i;

	if (isnan(f->value[k][0]) || isnan(other->value[k][0]))
		return;
	for (i = 0; i < f->runs; i++)
		ratio[i] = f->value[k][i] / other->value[k][i];
	snprintf(suffix, sizeof(suffix), " over %s %s",
		 other->contestant->backend->name, other->contestant->mode);
	print_point(w, p, f->contestant);
	print_figure(w->metrics[k].name, suffix, "ratio", ratio, f->runs);
}

static bool is_kevent(const struct figures *f)
{
	return !strcmp(f->contestant->backend->name, "kevent");
}

static void report_ratios(const struct bench_workload *w,
			  const struct bench_point *p,
			  const struct figures *figures, unsigned int nr,
			  unsigned int k)
{
	unsigned int i, j;

	for (i = 0; i < nr; i++)
		for (j = 0; j < nr; j++)
			if (is_kevent(&figures[i]) && !is_kevent(&figures[j]) &&
			    figures[i].runs && figures[j].runs)
				report_ratio(w, p, &figures[i], &figures[j], k);
}

void report(const struct bench_workload *w, const struct bench_point *p,
	    const struct figures *figures, unsigned int nr)
{
	unsigned int i, k;

	for (k = 0; k < w->nr_metrics; k++)
		if (w->metrics[k].pairs)
			report_ratios(w, p, figures, nr, k);
	for (k = 0; k < w->nr_metrics; k++)
		for (i = 0; i < nr; i++)
			if (figures[i].runs)
				report_one(w, p, &figures[i], k,
					   bare(figures, nr, k));
	fflush(stdout);
}
