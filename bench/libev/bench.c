// SPDX-License-Identifier: GPL-2.0
/*
 * usage: libev-bench WATCHERS ACTIVE WRITES RUNS
 *
 * The measure that libev and libevent are known by. WATCHERS pairs of sockets are
 * watched. A run stops all watchers and starts them anew, and lets the loop see that:
 * the metric "setup", per watcher. Then it writes a byte to ACTIVE pairs and has the
 * loop read them; each of the first WRITES bytes read is answered by one to the next
 * pair: "loop", per byte. "loop only" is the same when the watchers were started but
 * once. Prints a line of JSON for each backend and metric; a backend that dies is
 * named on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#define RUNS_MAX	100
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static const struct {
	const char	*name;
	unsigned int	flag;
} backends[] = {
	{ "epoll", EVBACKEND_EPOLL },
	{ "io_uring", EVBACKEND_IOURING },
	{ "kevent", EVBACKEND_KEVENT },
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

static void print(const char *backend, const char *metric, double *value)
{
	const char *icount = getenv("KEVENT_ICOUNT");

	qsort(value, runs, sizeof(*value), compare);
	printf("{\"workload\": \"libev\", \"backend\": \"%s\", ", backend);
	printf("\"watches\": %d, \"active\": %d, \"writes\": %d, ", watchers,
	       active, writes);
	printf("\"metric\": \"%s\", \"unit\": \"%s\", ", metric,
	       icount && !strcmp(icount, "1") ? "instructions" : "ns");
	printf("\"value\": %.6g, \"min\": %.6g, \"max\": %.6g, \"runs\": %d}\n",
	       (value[runs / 2] + value[(runs - 1) / 2]) / 2, value[0],
	       value[runs - 1], runs);
	fflush(stdout);
}

/* One run more, the first, is not counted: it allocates. */
static void measure(const char *name, unsigned int backend, int restart)
{
	struct ev_loop *loop = ev_loop_new(backend | EVFLAG_NOENV);
	double setup[RUNS_MAX], each[RUNS_MAX], start, middle;
	int i;

	if (!loop) {
		fprintf(stderr, "libev-bench: %s is not available\n", name);
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
	if (ev_backend(loop) != backend) {
		fprintf(stderr, "libev-bench: %s was given up\n", name);
		exit(1);
	}
	if (restart)
		print(name, "setup", setup);
	print(name, restart ? "loop" : "loop only", each);
}

static void measure_in_child(const char *name, unsigned int backend, int restart)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid) {
		measure(name, backend, restart);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	if (WIFSIGNALED(status))
		fprintf(stderr, "libev-bench: %s%s was ended by signal %d\n",
			name, restart ? "" : ", loop only", WTERMSIG(status));
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
		measure_in_child(backends[i].name, backends[i].flag, 1);
	for (i = 0; i < ARRAY_SIZE(backends); i++)
		measure_in_child(backends[i].name, backends[i].flag, 0);
	return 0;
}
