// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-fuzz: sequences from seeds, one after the other
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "fuzz.h"

static const char usage[] =
"usage: kevent-fuzz [--seed N] [--steps M] [--seconds S] [--naps]\n"
"                   [--print | --emit]\n"
"       kevent-fuzz --storm [--seed N] [--seconds S]\n"
"\n"
"Runs sequences of M operations (200), from the seeds N, N + 1 and so on, for S\n"
"seconds (10); without --seconds and with a seed that one sequence only.\n"
"A sequence that differs from the model is minimised, printed as a C test, and ends\n"
"the program with status 1. --print prints the operations of the seed, --emit runs them\n"
"and prints the C test. --naps sleeps before operations, so that timers expire after the\n"
"model has looked. --storm runs threads and a process in phases instead, which a\n"
"seed does not repeat exactly.\n";

struct options {
	uint64_t	seed;
	bool		seeded;
	unsigned int	steps;
	unsigned int	seconds;
	bool		print;
	bool		emit;
	bool		storm;
};

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "print", no_argument, NULL, 'p' },
		{ "storm", no_argument, NULL, 'm' },
		{ "emit", no_argument, NULL, 'e' },
		{ "naps", no_argument, NULL, 'w' },
		{}
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 's') {
			o->seed = strtoull(optarg, NULL, 0);
			o->seeded = true;
		} else if (c == 'n') {
			o->steps = strtoul(optarg, NULL, 0);
		} else if (c == 't') {
			o->seconds = strtoul(optarg, NULL, 0);
		} else if (c == 'p') {
			o->print = true;
		} else if (c == 'm') {
			o->storm = true;
		} else if (c == 'e') {
			o->emit = true;
		} else if (c == 'w') {
			naps = true;
		} else {
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (!o->seeded && !o->seconds)
		o->seconds = 10;
	if (!o->seeded && getrandom(&o->seed, 4, 0) != 4)
		exit(2);
	if (!o->steps || o->steps > MAX_OPS - 20)
		o->steps = 200;
}

void print_op(FILE *to, const struct op *op)
{
	fprintf(to, "%s q %u%s x %u y %u n %u", op_name(op->code), op->q,
		op->child ? " child" : "", op->x, op->y, op->n);
	if (op->code == OP_CTL || op->code == OP_STALE || op->code == OP_MANY_ADD)
		fprintf(to, " cmd %u type %u event %#x flags %#x", op->cmd,
			op->type, op->event, op->flags);
	fputc('\n', to);
}

static bool on_fallback(void)
{
	return !strcmp(getenv("KEVENT_BACKEND") ?: "", "epoll") ||
	       kevent_supported();
}

static void print_test(const struct sequence *s, const char *line)
{
	struct outcome out;

	fflush(stdout);
	emit_begin(stdout, line);
	run_sequence(s, &out);
	emit_to = NULL;
}

static void report(const struct options *o, uint64_t seed,
		   struct sequence *s, struct outcome *out)
{
	unsigned int was = s->nr, i;
	char line[100];

	snprintf(line, sizeof(line), "kevent-fuzz %s--seed %llu --steps %u",
		 naps ? "--naps " : "", (unsigned long long)seed, o->steps);
	printf("FAILED %s\n", line);
	printf("step %u: %s\n", out->step, out->text);
	fflush(stdout);
	minimise(s, out);
	printf("%u operations are left of %u: %s\n", s->nr, was, out->text);
	for (i = 0; i < s->nr; i++)
		print_op(stdout, &s->op[i]);
	puts("---");
	print_test(s, line);
}

static unsigned int print(const struct sequence *s)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		print_op(stdout, &s->op[i]);
	return 0;
}

static unsigned int run_all(const struct options *o)
{
	static struct sequence s;
	uint64_t start = now_ns(), nr = 0, steps = 0, entries = 0;
	struct outcome out;
	uint64_t seed;
	bool failed;

	for (seed = o->seed; ; seed++) {
		generate(&s, seed, o->steps, on_fallback());
		if (o->print)
			return print(&s);
		if (o->emit) {
			print_test(&s, "kevent-fuzz --emit");
			return 0;
		}
		run_sequence(&s, &out);
		failed = out.failed;
		if (failed)
			printf("after %.1f s, %llu sequences\n",
			       (now_ns() - start) / 1e9,
			       (unsigned long long)nr);
		if (failed)
			report(o, seed, &s, &out);
		if (failed)
			return 1;
		nr++;
		steps += s.nr;
		entries += out.entries;
		if ((now_ns() - start) / 1000000000 >= o->seconds)
			break;
	}
	printf("%llu sequences, %llu operations, %llu entries, as the model says\n",
	       (unsigned long long)nr, (unsigned long long)steps,
	       (unsigned long long)entries);
	return 0;
}

static int run_storms(const struct options *o)
{
	uint64_t start = now_ns(), nr = 0, entries = 0;
	struct outcome out;
	uint64_t seed;

	for (seed = o->seed; ; seed++) {
		run_storm(seed, &out);
		if (out.failed)
			break;
		nr++;
		entries += out.entries;
		if ((now_ns() - start) / 1000000000 >= o->seconds)
			break;
	}
	if (out.failed)
		printf("after %.1f s, %llu storms\nFAILED kevent-fuzz --storm --seed %llu\nstep 0: %s\n",
		       (now_ns() - start) / 1e9, (unsigned long long)nr,
		       (unsigned long long)seed, out.text);
	else
		printf("%llu storms, %llu entries, as the model says\n",
		       (unsigned long long)nr, (unsigned long long)entries);
	return out.failed;
}

int main(int argc, char **argv)
{
	const struct rlimit limit = { .rlim_cur = 4096, .rlim_max = 4096 };
	struct options o = {};

	parse(argc, argv, &o);
	setrlimit(RLIMIT_NOFILE, &limit);
	if (!o.emit)
		printf("kevent-fuzz %s--seed %llu --steps %u, %s\n",
		       o.storm ? "--storm " : naps ? "--naps " : "",
		       (unsigned long long)o.seed, o.steps,
		       on_fallback() ? "on the fallback" : "on the kernel");
	fflush(stdout);
	return o.storm ? run_storms(&o) : (int)run_all(&o);
}
