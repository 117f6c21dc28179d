// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-search: the search, or one input after the other
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "search.h"

static const char usage[] =
"usage: kevent-search --seed N (--seconds S | --rounds R) [SOURCE]...\n"
"       kevent-search --replay [--half] FILE...\n"
"\n"
"Looks for the inputs that cost most, with instructions of the guest as the cost. A\n"
"round is an input for each source. Prints the worst one of each source and each kind of\n"
"cost. --replay runs inputs, --half also with all steps half as often.\n";

static void print_cost(const char *name, const char *what,
		       const struct cost *cost)
{
	enum metric m;

	printf("cost %s %s", name, what);
	for (m = 0; m < NR_METRICS; m++)
		printf(" %llu", (unsigned long long)cost->value[m]);
	printf("%s\n", cost->failed ? " FAILED" : "");
	fflush(stdout);
}

static int replay(const char *path, bool half)
{
	FILE *from = fopen(path, "r");
	struct input in;
	struct cost cost;
	unsigned int i;

	if (!from || !read_input(from, &in)) {
		fprintf(stderr, "kevent-search: no input in %s\n", path);
		return 1;
	}
	fclose(from);
	run_input(&in, &cost);
	print_cost(path, "full", &cost);
	if (!half)
		return 0;
	for (i = 0; i < in.nr; i++)
		in.step[i].times -= in.step[i].times / 2;
	run_input(&in, &cost);
	print_cost(path, "half", &cost);
	return 0;
}

static uint32_t source_bit(const char *name)
{
	enum source source;

	for (source = 0; source < NR_SOURCES; source++)
		if (!strcmp(source_names[source], name))
			return 1u << source;
	fprintf(stderr, "kevent-search: no source %s\n", name);
	exit(2);
}

struct options {
	uint64_t	seed;
	unsigned int	seconds, rounds;
	bool		replay, half;
};

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "rounds", required_argument, NULL, 'n' },
		{ "replay", no_argument, NULL, 'r' },
		{ "half", no_argument, NULL, 'h' },
		{}
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 's') {
			o->seed = strtoull(optarg, NULL, 0);
		} else if (c == 't') {
			o->seconds = strtoul(optarg, NULL, 0);
		} else if (c == 'n') {
			o->rounds = strtoul(optarg, NULL, 0);
		} else if (c == 'r') {
			o->replay = true;
		} else if (c == 'h') {
			o->half = true;
		} else {
			fputs(usage, stderr);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct options o = { .seed = 1 };
	uint32_t sources = 0;
	int ret = 0;

	parse(argc, argv, &o);
	umask(0);
	measure_open();
	if (o.replay) {
		measure_places();
		while (optind < argc)
			ret |= replay(argv[optind++], o.half);
		return ret;
	}
	while (optind < argc)
		sources |= source_bit(argv[optind++]);
	printf("search --seed %llu\n", (unsigned long long)o.seed);
	climb(o.seed, o.seconds, o.rounds, sources ? sources : ~0u);
	return 0;
}
