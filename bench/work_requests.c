// SPDX-License-Identifier: GPL-2.0
/*
 * requests: requests of 64 bytes and their answers, over many connections of two processes
 *
 * A client has one request under way in each connection. It and the server are one loop each,
 * which sends as soon as it has received. The watches of a point are its connections.
 *
 *	lane		kevent has a lane for each connection, and learns how long to poll
 *	stream		a stream for each, likewise
 *	lane-asleep	no polling before a sleep
 *	stream-asleep	the same
 *
 * epoll has a socket of AF_UNIX for each, whatever the source. The CPU time is that of both
 * processes.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <libkevent.h>

#include "bench.h"
#include "threads.h"

#define BYTES		64
#define RING		1024
#define EVENTS		64		/* of one wait */
#define MOST		512		/* connections */
#define WARM_UP		10		/* requests of each connection */
#define CHECKED		64		/* requests between two looks at the clock */

enum { CLIENT_CPU, SERVER_CPU };
enum carrier { SOCKETS, LANES, STREAMS };

/**
 * struct end - one process
 * @carrier: what carries the requests
 * @sleeps: no polling before a sleep
 * @offers: it has connected
 * @nr: connections
 * @sock: their sockets
 * @lane: the lanes
 * @stream: the streams
 * @lanes: all lanes
 * @streams: all streams
 * @q: watches lanes or streams
 * @ring: the ring of @q
 * @c: the contestant
 * @queue: watches the sockets
 * @done: requests that have come
 * @over: the peer has ended
 */
struct end {
	enum carrier			carrier;
	bool				sleeps;
	bool				offers;
	unsigned int			nr;
	int				sock[MOST];
	struct kevent_lane		lane[MOST];
	struct kevent_stream		*stream[MOST];
	struct kevent_lanes		lanes;
	struct kevent_streams		*streams;
	struct kevent_queue		q;
	KEVENT_RING_STORAGE(RING)	ring;
	const struct bench_contestant	*c;
	struct bench_queue		*queue;
	uint64_t			done;
	bool				over;
};

/* What the server says: that it is ready, and its CPU time per request */
static struct board {
	int	ready;
	double	cpu;
} *board;

static struct end end;

static void must(int result, const char *what)
{
	if (result < 0)
		bench_die("%s: %s", what, strerror(-result));
}

static double cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* --- lanes --------------------------------------------------------------- */

static void open_lane(struct end *e, unsigned int i)
{
	static const struct kevent_lane_options options = {
		.send_slots = 2, .recv_slots = 2, .send_arena = 256, .recv_arena = 256,
	};
	int ret;

	if (e->offers) {
		must(kevent_lane_create(&e->lane[i], &options), "kevent_lane_create");
		must(kevent_lane_pass(&e->lane[i], e->sock[i]), "kevent_lane_pass");
	} else {
		while ((ret = kevent_lane_attach(&e->lane[i], e->sock[i], 0, 0)) == -EAGAIN)
			poll(&(struct pollfd){ .fd = e->sock[i], .events = POLLIN }, 1, -1);
		must(ret, "kevent_lane_attach");
	}
	must(kevent_lane_watch(&e->lane[i], e->q.fd, i), "kevent_lane_watch");
	kevent_lanes_add(&e->lanes, &e->lane[i]);
}

static void echo_lanes(struct end *e)
{
	struct kevent_lane *from;
	unsigned int left = e->nr;
	char buf[BYTES];
	int ret = 0;

	while (left-- && (ret = kevent_lanes_recv(&e->lanes, &from, buf, BYTES)) == BYTES) {
		ret = kevent_lane_send(from, buf, BYTES);
		if (ret)
			break;
		e->done++;
	}
	e->over = ret < 0 && ret != -EAGAIN;
}

static void wait_for_lanes(struct end *e)
{
	struct ukevent ev[EVENTS];
	int nr, i;

	nr = kevent_lanes_get(&e->lanes, &e->q, ev, EVENTS, NULL);
	must(nr, "kevent_lanes_get");
	for (i = 0; i < nr; i++)
		kevent_lane_event(&e->lane[ev[i].ptr], &ev[i]);
}

/* --- streams ------------------------------------------------------------- */

static void open_stream(struct end *e, unsigned int i)
{
	must(kevent_stream_open(e->streams, e->sock[i], e->offers ? KEVENT_STREAM_OFFER : 0,
				i, &e->stream[i]), "kevent_stream_open");
}

static void echo_streams(struct end *e)
{
	unsigned int left = e->nr;
	struct kevent_stream *s;
	char buf[BYTES];
	ssize_t ret;

	while (!e->over && left-- && (s = kevent_streams_next(e->streams))) {
		ret = kevent_stream_read(s, buf, BYTES);
		if (ret == -EAGAIN)
			continue;
		e->over = ret != BYTES || kevent_stream_write(s, buf, BYTES) != BYTES;
		e->done += !e->over;
	}
}

static void wait_for_streams(struct end *e)
{
	struct ukevent ev[EVENTS];
	int nr, i;

	nr = kevent_streams_get(e->streams, ev, EVENTS, NULL);
	must(nr, "kevent_streams_get");
	for (i = 0; i < nr; i++)
		kevent_stream_event(e->stream[ev[i].ptr], &ev[i]);
}

/* --- sockets ------------------------------------------------------------- */

static void echo_sockets(struct end *e)
{
	uint64_t ready[EVENTS];
	unsigned int nr, i;
	char buf[BYTES];

	nr = e->c->backend->wait(e->queue, ready, EVENTS, -1);
	for (i = 0; i < nr && !e->over; i++) {
		e->over = recv(e->sock[ready[i]], buf, BYTES, 0) != BYTES ||
			  send(e->sock[ready[i]], buf, BYTES, MSG_NOSIGNAL) != BYTES;
		e->done += !e->over;
	}
}

/* --- one process --------------------------------------------------------- */

static void open_queue(struct end *e)
{
	__u32 looks = e->sleeps ? 0 : KEVENT_LOOKS_LEARNED;

	if (e->carrier == SOCKETS) {
		e->queue = e->c->backend->open(e->c->mode, e->nr, e->nr);
		return;
	}
	must(kevent_queue_init(&e->q, &e->ring.ring, RING, 0), "kevent_queue_init");
	kevent_lanes_init(&e->lanes, looks);
	must(kevent_streams_new(&e->streams, &e->q, looks), "kevent_streams_new");
}

static void open_connections(struct end *e)
{
	struct bench_watch w = { .events = POLLIN, .kind = BENCH_SOCKET };
	unsigned int i;

	for (i = 0; i < e->nr; i++) {
		if (e->carrier == LANES) {
			open_lane(e, i);
		} else if (e->carrier == STREAMS) {
			open_stream(e, i);
		} else {
			w.fd = e->sock[i];
			w.cookie = i;
			e->c->backend->add(e->queue, &w, 1);
		}
	}
}

static void close_end(struct end *e)
{
	unsigned int i;

	if (e->carrier == SOCKETS)
		e->c->backend->close(e->queue);
	for (i = 0; i < e->nr; i++) {
		if (e->carrier == LANES)
			kevent_lane_close(&e->lane[i]);
		else if (e->carrier == SOCKETS)
			close(e->sock[i]);
	}
	if (e->carrier == SOCKETS)
		return;
	kevent_streams_free(e->streams);
	kevent_queue_close(&e->q);
}

/* Takes what there is, or waits for more. */
static void step(struct end *e)
{
	uint64_t before = e->done;

	if (e->carrier == SOCKETS) {
		echo_sockets(e);
	} else if (e->carrier == LANES) {
		echo_lanes(e);
		if (e->done == before && !e->over)
			wait_for_lanes(e);
	} else {
		echo_streams(e);
		if (e->done == before && !e->over)
			wait_for_streams(e);
	}
}

static void send_first(struct end *e, unsigned int i)
{
	static const char buf[BYTES];
	ssize_t ret;

	if (e->carrier == LANES)
		ret = kevent_lane_send(&e->lane[i], buf, BYTES) ? 0 : BYTES;
	else if (e->carrier == STREAMS)
		ret = kevent_stream_write(e->stream[i], buf, BYTES);
	else
		ret = write(e->sock[i], buf, BYTES);
	if (ret != BYTES)
		bench_die("cannot send the first request");
}

/* --- both processes ------------------------------------------------------ */

static void serve(struct end *e, int listener, unsigned int cpu)
{
	double start = 0;
	unsigned int i;

	bench_pin(cpu);
	for (i = 0; i < e->nr; i++)
		e->sock[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	open_queue(e);
	open_connections(e);
	__atomic_store_n(&board->ready, 1, __ATOMIC_RELEASE);
	while (!e->over) {
		step(e);
		if (!start && e->done >= WARM_UP * e->nr) {
			start = cpu_time();
			e->done = 0;
		}
	}
	board->cpu = (cpu_time() - start) / (double)e->done;
	_exit(0);
}

/* A listener has a name, by which streams know that they share a page. */
static int listen_somewhere(struct sockaddr_un *name, socklen_t *len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	*len = sizeof(*name);
	if (fd < 0 || bind(fd, (struct sockaddr *)name, sizeof(sa_family_t)) ||
	    getsockname(fd, (struct sockaddr *)name, len) || listen(fd, MOST))
		bench_die("cannot listen: %s", strerror(errno));
	return fd;
}

static pid_t start_both(struct end *e, unsigned int server_cpu)
{
	struct sockaddr_un name;
	socklen_t len;
	unsigned int i;
	int listener = listen_somewhere(&name, &len);
	pid_t pid;

	board->ready = 0;
	pid = fork();
	if (!pid)
		serve(e, listener, server_cpu);
	e->offers = true;
	for (i = 0; i < e->nr; i++) {
		e->sock[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (pid < 0 || connect(e->sock[i], (struct sockaddr *)&name, len))
			bench_die("cannot connect: %s", strerror(errno));
	}
	close(listener);
	open_queue(e);
	open_connections(e);
	while (!__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE))
		usleep(100);
	return pid;
}

/* With a time at least two of each connection, or the server may have none after its warm-up. */
static void run_until(struct end *e, uint64_t done, uint64_t time)
{
	uint64_t next = time ? 2 * e->nr : 0;

	while (e->done < done || time) {
		step(e);
		if (e->over)
			bench_die("the server has ended");
		if (e->done < next)
			continue;
		next = e->done + CHECKED;
		if (time && bench_now() >= time)
			return;
	}
}

/* Sets the time of a request, and the CPU time of both processes for it. */
static void measure(const struct bench_point *p, const struct bench_contestant *c,
		    unsigned int server_cpu, double *value)
{
	struct end *e = &end;
	uint64_t start;
	unsigned int i;
	int status;
	pid_t pid;

	memset(e, 0, sizeof(*e));
	e->c = c;
	e->nr = p->watches;
	e->sleeps = strstr(p->source, "asleep");
	if (!strcmp(c->backend->name, "kevent"))
		e->carrier = *p->source == 'l' ? LANES : STREAMS;
	pid = start_both(e, server_cpu);
	for (i = 0; i < e->nr; i++)
		send_first(e, i);
	run_until(e, WARM_UP * e->nr, 0);
	e->done = 0;
	start = bench_now();
	value[1] = cpu_time();
	run_until(e, 0, start + (uint64_t)(p->seconds * 1e9));
	value[1] = (cpu_time() - value[1]) / (double)e->done;
	value[0] = (double)(bench_now() - start) / (double)e->done;
	close_end(e);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("the server has failed");
	value[1] += board->cpu;
}

/* ------------------------------------------------------------------------- */

static bool requests_accepts(const struct bench_contestant *c, const struct bench_point *p)
{
	(void)p;
	return (!strcmp(c->backend->name, "kevent") && !strcmp(c->mode, "et")) ||
	       (!strcmp(c->backend->name, "epoll") && !strcmp(c->mode, "lt"));
}

static void requests_setup(const struct bench_point *p)
{
	if (p->watches > MOST)
		bench_die("no more than %u connections", MOST);
	if (!board)
		board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
}

static void requests_measure(const struct bench_point *p, const struct bench_contestant *c,
			     double *value)
{
	bench_pin(CLIENT_CPU);
	if (!bench_one_cpu())
		measure(p, c, SERVER_CPU, &value[0]);
	measure(p, c, CLIENT_CPU, &value[2]);
}

static const struct bench_metric metrics[] = {
	{ .name = "two CPUs", .unit = "ns/request", .pairs = true },
	{ .name = "two CPUs, CPU time", .unit = "ns/request", .pairs = true },
	{ .name = "one CPU", .unit = "ns/request", .pairs = true },
	{ .name = "one CPU, CPU time", .unit = "ns/request", .pairs = true },
};

const struct bench_workload work_requests = {
	.name		= "requests",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("lane", "stream", "lane-asleep", "stream-asleep"),
	.batches	= BENCH_NUMBERS(1),
	.watches	= BENCH_NUMBERS(1, 50, 400),
	.threads	= BENCH_NUMBERS(2),
	.seconds	= 0.05,
	.runs		= 7,
	.accepts	= requests_accepts,
	.setup		= requests_setup,
	.measure	= requests_measure,
};
