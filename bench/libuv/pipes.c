// SPDX-License-Identifier: GPL-2.0
/*
 * usage: pipes MODE CONNECTIONS SECONDS SERVER CLIENT
 *
 * Requests and answers of 64 bytes between two processes, over pipes of libuv, on the CPUs
 * SERVER and CLIENT. Each connection sends when it has received. MODE is "sockets", "memory",
 * or "offered": only the client would use memory. Prints the requests of a second, and the
 * nanoseconds of CPU time of both processes for each.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define BYTES	64

#define MUST(call)							\
	do {								\
		int ret_ = (call);					\
									\
		if (ret_ < 0) {						\
			fprintf(stderr, "%s: %s\n", #call, uv_strerror(ret_));	\
			exit(1);					\
		}							\
	} while (0)

struct side {
	uv_pipe_t	pipe;
	uv_connect_t	connect;
	char		in[BYTES], out[BYTES];
	unsigned int	got;
};

static char name[64];
static int nr_connected, connections;
static const char *mode;
static unsigned long long answers;
static struct side *sides;
static uv_pipe_t listener;
static uv_timer_t timer;
static unsigned int seconds;

static void alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct side *side = handle->data;

	(void)size;
	*buf = uv_buf_init(side->in + side->got, BYTES - side->got);
}

static void send_one(struct side *side)
{
	uv_buf_t buf = uv_buf_init(side->out, BYTES);
	int ret = uv_try_write((uv_stream_t *)&side->pipe, &buf, 1);

	if (ret != BYTES) {
		fprintf(stderr, "uv_try_write: %d\n", ret);
		exit(1);
	}
}

/* A request is answered, an answer makes a request. */
static void on_read(uv_stream_t *stream, ssize_t nr, const uv_buf_t *buf)
{
	struct side *side = stream->data;

	(void)buf;
	if (nr < 0)
		uv_close((uv_handle_t *)stream, NULL);
	if (nr <= 0)
		return;
	side->got += nr;
	if (side->got < BYTES)
		return;
	side->got = 0;
	answers++;
	send_one(side);
}

static void read_from(struct side *side)
{
	side->pipe.data = side;
	MUST(uv_read_start((uv_stream_t *)&side->pipe, alloc, on_read));
}

static void on_connection(uv_stream_t *server, int status)
{
	struct side *side = calloc(1, sizeof(*side));

	MUST(status);
	MUST(uv_pipe_init(server->loop, &side->pipe, 0));
	MUST(uv_accept(server, (uv_stream_t *)&side->pipe));
	read_from(side);
}

static long long cpu_ns(int who)
{
	struct rusage use;

	getrusage(who, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000LL +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000LL;
}

static void on_end(uv_timer_t *t)
{
	unsigned long long nr = answers;
	long long ns = cpu_ns(RUSAGE_SELF);
	int status;

	(void)t;
	if (!uv_pipe_shm(&sides[0].pipe) != !!strcmp(mode, "memory")) {
		fprintf(stderr, "%s: memory is used for %d\n", mode,
			uv_pipe_shm(&sides[0].pipe));
		exit(1);
	}
	unlink(name);
	kill(0, SIGUSR1);
	while (wait(&status) == -1)
		;
	ns += cpu_ns(RUSAGE_CHILDREN);
	printf("%.0f %.0f\n", (double)nr / seconds, (double)ns / nr);
	exit(0);
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct side *side = connect->data;

	MUST(status);
	read_from(side);
	if (++nr_connected < connections)
		return;
	for (side = sides; side < sides + connections; side++)
		send_one(side);
	MUST(uv_timer_start(&timer, on_end, seconds * 1000ULL, 0));
}

static void serve(uv_loop_t *loop, int ready)
{
	signal(SIGUSR1, SIG_DFL);
	MUST(uv_pipe_init(loop, &listener, 0));
	MUST(uv_pipe_bind(&listener, name));
	MUST(uv_listen((uv_stream_t *)&listener, 1024, on_connection));
	if (write(ready, "", 1) != 1)
		exit(1);
	uv_run(loop, UV_RUN_DEFAULT);
}

static uv_loop_t *make_loop(int uses_memory, const char *cpu)
{
	uv_loop_t *loop = uv_default_loop();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(atoi(cpu), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus)) {
		perror("sched_setaffinity");
		exit(1);
	}
	if (uses_memory)
		MUST(uv_loop_configure(loop, UV_LOOP_USE_PIPE_SHM));
	return loop;
}

static void connect_all(uv_loop_t *loop)
{
	struct side *side;

	sides = calloc(connections, sizeof(*sides));
	for (side = sides; side < sides + connections; side++) {
		side->connect.data = side;
		MUST(uv_pipe_init(loop, &side->pipe, 0));
		uv_pipe_connect(&side->connect, &side->pipe, name, on_connect);
	}
}

int main(int argc, char **argv)
{
	uv_loop_t *loop;
	int ready[2];
	char byte;

	if (argc != 6 || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
		fprintf(stderr, "usage: pipes MODE CONNECTIONS SECONDS SERVER CLIENT\n");
		return 2;
	}
	mode = argv[1];
	connections = atoi(argv[2]);
	seconds = atoi(argv[3]);
	setpgid(0, 0);
	signal(SIGUSR1, SIG_IGN);
	snprintf(name, sizeof(name), "/tmp/libuv-pipes.%d", (int)getpid());
	if (pipe(ready))
		return 1;
	if (!fork()) {
		serve(make_loop(!strcmp(mode, "memory"), argv[4]), ready[1]);
		return 1;
	}
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	loop = make_loop(strcmp(mode, "sockets"), argv[5]);
	MUST(uv_timer_init(loop, &timer));
	connect_all(loop);
	uv_run(loop, UV_RUN_DEFAULT);
	return 1;
}
