// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-bench: measure workloads with several interfaces in turn
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "report.h"

#define LIST_MAX	32	/* values of an option, and contestants */
#define HANG_SECONDS	300	/* after which a run counts as hanging */
/* The kernel collects for five seconds what RCU is to free */
#define REST_SECONDS	6

static const char usage[] =
"usage: kevent-bench --workload NAME [OPTION]...\n"
"       kevent-bench --list\n"
"\n"
"Prints one line of JSON per figure. Options take lists, a,b,c:\n"
"\n"
"--backend NAMES   interfaces that take part (all)\n"
"--mode NAMES      their modes (all)\n"
"--source NAMES    pipe, unix, inet\n"
"--batch LIST      events at once\n"
"--watches LIST    number of watches\n"
"--threads LIST    number of threads\n"
"--events N        events per run\n"
"--seconds S       length of a run, for workloads that have one\n"
"--runs N          runs, of which the median is reported\n"
"--skip-missing    go on without an interface the kernel lacks\n";

/**
 * struct options - the command line
 * @workload: what to measure
 * @backends: names, NULL: all
 * @modes: names, NULL: all
 * @sources: up to NULL
 * @batches: up to 0
 * @watches: up to 0
 * @threads: up to 0
 * @point: number of events and length of a run
 * @runs: of which the median is reported
 * @skip_missing: an interface may be missing in the kernel
 */
struct options {
	const struct bench_workload	*workload;
	char				*backends;
	char				*modes;
	const char			*sources[LIST_MAX + 1];
	unsigned int			batches[LIST_MAX + 1];
	unsigned int			watches[LIST_MAX + 1];
	unsigned int			threads[LIST_MAX + 1];
	struct bench_point		point;
	unsigned int			runs;
	bool				skip_missing;
};

static struct bench_contestant contestants[LIST_MAX];
static unsigned int nr_contestants;

void bench_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("kevent-bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *bench_alloc(size_t nr, size_t size)
{
	void *mem = calloc(nr ? nr : 1, size);

	if (!mem)
		bench_die("out of memory for %zu times %zu bytes", nr, size);
	return mem;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void bench_sort(double *figures, unsigned int nr)
{
	qsort(figures, nr, sizeof(*figures), compare);
}

void bench_expect_nothing(const struct bench_contestant *c,
			  struct bench_queue *q)
{
	uint64_t cookie;

	if (c->backend->wait(q, &cookie, 1, 0))
		bench_die("%s %s: an event that nobody caused",
			  c->backend->name, c->mode);
}

static void hangs(int sig)
{
	static const char text[] =
		"kevent-bench: a run does not end: an event is missing\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* --- command line ------------------------------------------------------ */

static unsigned int number(const char *option, const char *word)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(word, &end, 10);
	if (errno || *end || word[0] < '0' || word[0] > '9' || !value ||
	    value > INT32_MAX)
		bench_die("--%s: not a number above 0: %s", option, word);
	return (unsigned int)value;
}

static void numbers(const char *option, char *text, unsigned int *list)
{
	unsigned int nr = 0;
	char *word;

	for (word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (nr == LIST_MAX)
			bench_die("--%s: more than %d values", option,
				  LIST_MAX);
		list[nr++] = number(option, word);
	}
	if (!nr)
		bench_die("--%s: no value", option);
	list[nr] = 0;
}

static void words(const char *option, char *text, const char **list)
{
	unsigned int nr = 0;
	char *word;

	for (word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (nr == LIST_MAX)
			bench_die("--%s: more than %d values", option,
				  LIST_MAX);
		list[nr++] = word;
	}
	if (!nr)
		bench_die("--%s: no value", option);
	list[nr] = NULL;
}

static double seconds(const char *word)
{
	char *end;
	double value = strtod(word, &end);

	if (*end || !(value > 0 && value < 3600))
		bench_die("--seconds: not a number from 0 to 3600: %s", word);
	return value;
}

static void copy_numbers(unsigned int *to, const unsigned int *from)
{
	while ((*to++ = *from++))
		;
}

static void copy_words(const char **to, const char *const *from)
{
	while ((*to++ = *from++))
		;
}

static void choose_workload(struct options *o, const char *name)
{
	const struct bench_workload *const *w;

	for (w = bench_workloads; *w && strcmp((*w)->name, name); w++)
		;
	if (!*w)
		bench_die("no workload %s", name);
	o->workload = *w;
	copy_words(o->sources, (*w)->sources);
	copy_numbers(o->batches, (*w)->batches);
	copy_numbers(o->watches, (*w)->watches);
	copy_numbers(o->threads, (*w)->threads);
	o->point.events = (*w)->events;
	o->point.seconds = (*w)->seconds;
	o->runs = (*w)->runs;
}

enum {
	OPT_WORKLOAD, OPT_BACKEND, OPT_MODE, OPT_SOURCE, OPT_BATCH, OPT_WATCHES,
	OPT_THREADS, OPT_EVENTS, OPT_SECONDS, OPT_RUNS, OPT_SKIP, OPT_LIST,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "workload",		required_argument, NULL, OPT_WORKLOAD },
	{ "backend",		required_argument, NULL, OPT_BACKEND },
	{ "mode",		required_argument, NULL, OPT_MODE },
	{ "source",		required_argument, NULL, OPT_SOURCE },
	{ "batch",		required_argument, NULL, OPT_BATCH },
	{ "watches",		required_argument, NULL, OPT_WATCHES },
	{ "threads",		required_argument, NULL, OPT_THREADS },
	{ "events",		required_argument, NULL, OPT_EVENTS },
	{ "seconds",		required_argument, NULL, OPT_SECONDS },
	{ "runs",		required_argument, NULL, OPT_RUNS },
	{ "skip-missing",	no_argument,	   NULL, OPT_SKIP },
	{ "list",		no_argument,	   NULL, OPT_LIST },
	{ "help",		no_argument,	   NULL, OPT_HELP },
	{ NULL,			0,		   NULL, 0 },
};

static void take(struct options *o, int option)
{
	const char *name = long_options[option].name;

	switch (option) {
	case OPT_BACKEND:
		o->backends = optarg;
		break;
	case OPT_MODE:
		o->modes = optarg;
		break;
	case OPT_SOURCE:
		words(name, optarg, o->sources);
		break;
	case OPT_BATCH:
		numbers(name, optarg, o->batches);
		break;
	case OPT_WATCHES:
		numbers(name, optarg, o->watches);
		break;
	case OPT_THREADS:
		numbers(name, optarg, o->threads);
		break;
	case OPT_EVENTS:
		o->point.events = number(name, optarg);
		break;
	case OPT_SECONDS:
		o->point.seconds = seconds(optarg);
		break;
	case OPT_RUNS:
		o->runs = number(name, optarg);
		break;
	case OPT_SKIP:
		o->skip_missing = true;
		break;
	}
}

static void __attribute__((noreturn)) show(int option)
{
	const struct bench_workload *const *w;

	if (option == OPT_HELP)
		fputs(usage, stdout);
	else
		for (w = bench_workloads; *w; w++)
			puts((*w)->name);
	exit(0);
}

/* The workload sets the defaults of the other options, so it comes first */
static void parse(struct options *o, int argc, char **argv)
{
	const char *name = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (option == OPT_WORKLOAD)
			name = optarg;
		else if (option == OPT_LIST || option == OPT_HELP)
			show(option);
		else if (option == '?')
			exit(1);
	if (!name || optind != argc)
		bench_die("%s", name ? "words that are no options"
			  : "no --workload; see --help");
	choose_workload(o, name);
	optind = 1;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		take(o, option);
	if (o->runs > BENCH_RUNS)
		bench_die("--runs: more than %d", BENCH_RUNS);
}

/* --- contestants ------------------------------------------------------- */

/* Is the word in the list? NULL is a list of all words. */
static bool listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (!strncmp(list, word, len) &&
		    (list[len] == ',' || !list[len]))
			return true;
	return false;
}

static bool works(const struct options *o, const struct bench_backend *b,
		  const char *mode)
{
	int error = b->probe ? b->probe(mode) : 0;

	if (error && !o->skip_missing)
		bench_die("this kernel has no %s %s: %s", b->name, mode,
			  strerror(-error));
	if (error)
		fprintf(stderr, "kevent-bench: skipped: %s %s: %s\n", b->name,
			mode, strerror(-error));
	return !error;
}

static void add_contestants(const struct options *o,
			    const struct bench_backend *b)
{
	const char *const *mode;

	if (b->only && strcmp(b->only, o->workload->name))
		return;
	for (mode = b->modes; *mode; mode++) {
		if (o->modes && !b->blind && !listed(o->modes, *mode))
			continue;
		if (!works(o, b, *mode))
			continue;
		if (nr_contestants == LIST_MAX)
			bench_die("more than %d contestants", LIST_MAX);
		contestants[nr_contestants].backend = b;
		contestants[nr_contestants++].mode = *mode;
	}
}

static void check_names(const struct options *o)
{
	const struct bench_backend *const *b;
	char *names = o->backends ? strdup(o->backends) : NULL;
	char *name;

	for (name = names ? strtok(names, ",") : NULL; name;
	     name = strtok(NULL, ",")) {
		for (b = bench_backends; *b && strcmp((*b)->name, name); b++)
			;
		if (!*b)
			bench_die("no backend %s", name);
	}
	free(names);
}

static void choose_contestants(const struct options *o)
{
	const struct bench_backend *const *b;

	check_names(o);
	for (b = bench_backends; *b; b++)
		if (!o->backends || listed(o->backends, (*b)->name))
			add_contestants(o, *b);
	if (!nr_contestants)
		bench_die("no backend is left to measure");
}

/* --- measuring --------------------------------------------------------- */

static struct figures figures[LIST_MAX];

static bool takes_part(const struct options *o, unsigned int i,
		       const struct bench_point *p)
{
	return !o->workload->accepts ||
	       o->workload->accepts(&contestants[i], p);
}

/* Where the clock does not count instructions, other noise is greater */
void bench_rest(void)
{
	const struct timespec time = { .tv_sec = REST_SECONDS };

	if (report_counts_instructions())
		nanosleep(&time, NULL);
}

static void run_all(const struct options *o, const struct bench_point *p,
		    unsigned int run)
{
	double value[BENCH_METRICS];
	unsigned int i, k;

	for (i = 0; i < nr_contestants; i++) {
		if (!takes_part(o, i, p))
			continue;
		bench_rest();
		for (k = 0; k < o->workload->nr_metrics; k++)
			value[k] = NAN;
		alarm(HANG_SECONDS);
		o->workload->measure(p, &contestants[i], value);
		alarm(0);
		for (k = 0; k < o->workload->nr_metrics; k++)
			figures[i].value[k][run] = value[k];
		figures[i].runs = run + 1;
	}
}

static void measure_point(const struct options *o, const struct bench_point *p)
{
	unsigned int i, run;

	for (i = 0; i < nr_contestants; i++) {
		figures[i].contestant = &contestants[i];
		figures[i].runs = 0;
	}
	if (o->workload->setup)
		o->workload->setup(p);
	for (run = 0; run < o->runs; run++)
		run_all(o, p, run);
	if (o->workload->teardown)
		o->workload->teardown(p);
	report(o->workload, p, figures, nr_contestants);
}

static void measure(const struct options *o)
{
	struct bench_point p = o->point;
	unsigned int s, b, w, t;

	for (s = 0; o->sources[s]; s++)
		for (w = 0; o->watches[w]; w++)
			for (t = 0; o->threads[t]; t++)
				for (b = 0; o->batches[b]; b++) {
					p.source = o->sources[s];
					p.watches = o->watches[w];
					p.threads = o->threads[t];
					p.batch = o->batches[b];
					measure_point(o, &p);
				}
}

static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		bench_die("getrlimit: %s", strerror(errno));
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		bench_die("setrlimit: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	static struct options o;

	signal(SIGALRM, hangs);
	signal(SIGPIPE, SIG_IGN);
	parse(&o, argc, argv);
	raise_limits();
	choose_contestants(&o);
	measure(&o);
	return 0;
}
