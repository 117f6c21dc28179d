// SPDX-License-Identifier: GPL-2.0
/*
 * usage: libev-bench WATCHERS ACTIVE WRITES RUNS
 *
 * The measure that libev and libevent are known by. WATCHERS pairs of sockets are
 * watched. A run stops all watchers and starts them again, and lets the loop see that:
 * the metric "setup", per watcher. Then it writes a byte to ACTIVE pairs and has the
 * loop read them; each of the first WRITES bytes read is answered by one to the next
 * pair: "loop", per byte. "loop only" is the same when the watchers were started but
 * once. Prints a line of JSON for each backend and metric; a backend that dies, or is
 * not there, is named on stderr. With KEVENT_ICOUNT=1 in the environment, nanoseconds
 * are called instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#define RUNS_MAX	100
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct backend {
	const char	*name;
	const char	*mode;
	unsigned int	flag;
};

static const struct backend backends[] = {
	{ "kevent", "level", EVBACKEND_KEVENT },
	{ "epoll", "lt", EVBACKEND_EPOLL },
	{ "uring", "oneshot", EVBACKEND_IOURING },
};

static int watchers, active, writes, runs;
static int (*pair)[2];
static ev_io *io;
static int left, sent, seen;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void send_byte(int at)
{
	if (write(pair[at][1], "x", 1) != 1)
		die("write");
	sent++;
}

static void read_byte(struct ev_loop *loop, ev_io *w, int revents)
{
	int at = w - io;
	char byte;

	(void)loop;
	(void)revents;
	if (read(w->fd, &byte, 1) != 1)
		die("read");
	seen++;
	if (left) {
		left--;
		send_byte((at + 1) % watchers);
	}
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void set_up(struct ev_loop *loop)
{
	int i;

	for (i = 0; i < watchers; i++) {
		ev_io_stop(loop, &io[i]);
		ev_io_init(&io[i], read_byte, pair[i][0], EV_READ);
		ev_io_start(loop, &io[i]);
	}
	ev_run(loop, EVRUN_NOWAIT);
}

static void exchange(struct ev_loop *loop)
{
	int i;

	left = writes;
	sent = 0;
	seen = 0;
	for (i = 0; i < active; i++)
		send_byte((int)((long)i * watchers / active));
	while (seen < sent)
		ev_run(loop, EVRUN_ONCE);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_values(const double *value)
{
	double sorted[RUNS_MAX];
	int i;

	memcpy(sorted, value, runs * sizeof(*value));
	qsort(sorted, runs, sizeof(*sorted), compare);
	printf("\"value\": %.6g, \"runs\": %d, \"min\": %.6g, \"max\": %.6g, ",
	       (sorted[runs / 2] + sorted[(runs - 1) / 2]) / 2, runs,
	       sorted[0], sorted[runs - 1]);
	for (i = 0; i < runs; i++)
		printf("%s%.6g", i ? ", " : "\"values\": [", value[i]);
	printf("], ");
}

static void print(const struct backend *b, const char *metric, const char *per,
		  const double *value)
{
	const char *icount = getenv("KEVENT_ICOUNT");
	int counted = icount && !strcmp(icount, "1");
	struct utsname uts;

	uname(&uts);
	printf("{\"workload\": \"libev\", \"backend\": \"%s\", ", b->name);
	printf("\"mode\": \"%s\", \"source\": \"pairs\", ", b->mode);
	printf("\"batch\": %d, \"watches\": %d, \"writes\": %d, ", active,
	       watchers, writes);
	printf("\"threads\": 1, \"cpus\": %ld, \"icount\": %s, ",
	       sysconf(_SC_NPROCESSORS_ONLN), counted ? "true" : "false");
	printf("\"metric\": \"%s\", \"unit\": \"%s/%s\", ", metric,
	       counted ? "instructions" : "ns", per);
	print_values(value);
	printf("\"kernel\": \"%s\"}\n", uts.release);
	fflush(stdout);
}

/* The first of the runs is not counted: it allocates. */
static void measure(const struct backend *b, int restart)
{
	struct ev_loop *loop = ev_loop_new(b->flag | EVFLAG_NOENV);
	double setup[RUNS_MAX], each[RUNS_MAX], start, middle;
	int i;

	if (!loop) {
		fprintf(stderr, "libev-bench: %s is not available\n", b->name);
		exit(1);
	}
	for (i = -1; i < runs; i++) {
		start = now_ns();
		if (i < 0 || restart)
			set_up(loop);
		middle = now_ns();
		exchange(loop);
		if (i < 0)
			continue;
		setup[i] = (middle - start) / watchers;
		each[i] = (now_ns() - middle) / seen;
	}
	if (ev_backend(loop) != b->flag) {
		fprintf(stderr, "libev-bench: %s was given up\n", b->name);
		exit(1);
	}
	if (restart)
		print(b, "setup", "watcher", setup);
	print(b, restart ? "loop" : "loop only", "byte", each);
}

static void measure_in_child(const struct backend *b, int restart)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid) {
		measure(b, restart);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	if (WIFSIGNALED(status))
		fprintf(stderr, "libev-bench: %s%s was ended by signal %d\n",
			b->name, restart ? "" : ", loop only", WTERMSIG(status));
}

static void make_pairs(void)
{
	rlim_t files = 2UL * watchers + 100;
	struct rlimit limit = { files, files };
	int i;

	pair = calloc(watchers, sizeof(*pair));
	io = calloc(watchers, sizeof(*io));
	if (!pair || !io || setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit");
	for (i = 0; i < watchers; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]))
			die("socketpair");
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc == 5) {
		watchers = atoi(argv[1]);
		active = atoi(argv[2]);
		writes = atoi(argv[3]);
		runs = atoi(argv[4]);
	}
	if (watchers < 1 || active < 1 || active > watchers || writes < 0 ||
	    runs < 1 || runs > RUNS_MAX) {
		fprintf(stderr,
			"usage: libev-bench WATCHERS ACTIVE WRITES RUNS\n");
		return 2;
	}
	make_pairs();
	for (i = 0; i < ARRAY_SIZE(backends); i++)
		measure_in_child(&backends[i], 1);
	for (i = 0; i < ARRAY_SIZE(backends); i++)
		measure_in_child(&backends[i], 0);
	return 0;
}
