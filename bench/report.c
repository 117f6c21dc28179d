// SPDX-License-Identifier: GPL-2.0
/*
 * Figures as lines of JSON
 *
 * The names and units of the workloads, and what the runner passes in the
 * environment, have no characters that JSON would want escaped.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"
#include "report.h"

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static bool counts_instructions(void)
{
	return !strcmp(environment("KEVENT_ICOUNT"), "1");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *sorted, unsigned int nr)
{
	return (sorted[nr / 2] + sorted[(nr - 1) / 2]) / 2;
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
	       counts_instructions() ? "true" : "false");
}

static void print_machine(void)
{
	struct utsname uts;

	uname(&uts);
	printf("\"kernel\": \"%s\", \"config\": \"%s\", \"qemu\": \"%s\"}\n",
	       uts.release, environment("KEVENT_CONFIG_HASH"),
	       environment("KEVENT_QEMU"));
}

static void print_values(const char *name, const char *suffix,
			 const char *unit, const double *sorted,
			 unsigned int nr, double less)
{
	bool ns = counts_instructions() && !strncmp(unit, "ns", 2);

	printf("\"metric\": \"%s%s\", \"value\": %.6g, \"unit\": \"%s%s\", ",
	       name, suffix, median(sorted, nr) - less,
	       ns ? "instructions" : "", ns ? unit + 2 : unit);
	printf("\"runs\": %u, \"min\": %.6g, \"max\": %.6g, ", nr,
	       sorted[0] - less, sorted[nr - 1] - less);
}

/* The median of the blind contestant, NAN if none took part */
static double bare(const struct figures *figures, unsigned int nr,
		   unsigned int metric)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (figures[i].contestant->backend->blind && figures[i].runs)
			return median(figures[i].value[metric],
				      figures[i].runs);
	return NAN;
}

static void report_one(const struct bench_workload *w,
		       const struct bench_point *p, const struct figures *f,
		       unsigned int k, double less)
{
	const struct bench_metric *m = &w->metrics[k];
	const double *sorted = f->value[k];

	if (isnan(sorted[0]))
		return;
	print_point(w, p, f->contestant);
	print_values(m->name, "", m->unit, sorted, f->runs, 0);
	print_machine();
	if (!m->above || isnan(less) || f->contestant->backend->blind)
		return;
	print_point(w, p, f->contestant);
	print_values(m->name, " above bare", m->unit, sorted, f->runs, less);
	print_machine();
}

void report(const struct bench_workload *w, const struct bench_point *p,
	    struct figures *figures, unsigned int nr)
{
	unsigned int i, k;

	for (k = 0; k < w->nr_metrics; k++) {
		for (i = 0; i < nr; i++)
			qsort(figures[i].value[k], figures[i].runs,
			      sizeof(double), compare);
		for (i = 0; i < nr; i++)
			if (figures[i].runs)
				report_one(w, p, &figures[i], k,
					   bare(figures, nr, k));
	}
	fflush(stdout);
}
