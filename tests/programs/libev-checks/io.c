// SPDX-License-Identifier: GPL-2.0
/*
 * Files of all kinds, readable and writable
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void readable_until_read(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2], i;

	make_pipe(fd);
	counter_start(loop, &c, fd[0], EV_READ);
	ev_run(loop, EVRUN_NOWAIT);
	want(!c.calls);
	put(fd[1]);
	for (i = 0; i < 3; i++)
		ev_run(loop, EVRUN_ONCE);
	want(c.calls == 3);
	want(c.revents == EV_READ);
	c.drain = 1;
	ev_run(loop, EVRUN_ONCE);
	want(c.calls == 4);
	run_for(loop, 0.05);
	want(c.calls == 4);
}

static void writable_while_there_is_room(struct ev_loop *loop)
{
	struct counter c = {};
	char buf[4096] = "";
	int fd[2];

	want(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	while (write(fd[0], buf, sizeof(buf)) > 0)
		;
	want(errno == EAGAIN);
	counter_start(loop, &c, fd[0], EV_WRITE);
	run_for(loop, 0.05);
	want(!c.calls);
	while (read(fd[1], buf, sizeof(buf)) > 0)
		;
	run_until(loop, &c.calls, 1);
	want(c.revents == EV_WRITE);
}

static void both_at_once_for_two_watchers(struct ev_loop *loop)
{
	struct counter r = {}, w = {}, both = {};
	int fd[2];

	want(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	put(fd[1]);
	counter_start(loop, &r, fd[0], EV_READ);
	counter_start(loop, &w, fd[0], EV_WRITE);
	counter_start(loop, &both, fd[0], EV_READ | EV_WRITE);
	ev_run(loop, EVRUN_ONCE);
	want(r.revents == EV_READ);
	want(w.revents == EV_WRITE);
	want(both.revents == (EV_READ | EV_WRITE));
}

static void hang_up_is_readable(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2];
	char byte;

	make_pipe(fd);
	counter_start(loop, &c, fd[0], EV_READ);
	run_for(loop, 0.01);
	want(!c.calls);
	close(fd[1]);
	run_until(loop, &c.calls, 2);
	want(c.revents == EV_READ);
	want(!read(fd[0], &byte, 1));
}

/* A file that epoll refuses with EPERM */
static void regular_file_is_always_ready(struct ev_loop *loop)
{
	char path[] = "/tmp/libev-checks.XXXXXX";
	struct counter c = {}, pipe = { .drain = 1 };
	int fd = mkstemp(path), other[2];

	want(fd >= 0);
	want(!unlink(path));
	make_pipe(other);
	counter_start(loop, &pipe, other[0], EV_READ);
	counter_start(loop, &c, fd, EV_READ | EV_WRITE);
	run_until(loop, &c.calls, 3);
	want(c.revents == (EV_READ | EV_WRITE));
	want(!pipe.calls);
	put(other[1]);
	run_until(loop, &pipe.calls, 1);
	ev_io_stop(loop, &c.io);
	c.calls = 0;
	run_for(loop, 0.02);
	want(!c.calls);
}

static void device_is_always_ready(struct ev_loop *loop)
{
	struct counter zero = {}, pipe = { .drain = 1 };
	int fd, other[2];

	want(!mknod("/tmp/libev-zero", S_IFCHR | 0600, makedev(1, 5)) ||
	     errno == EEXIST);
	fd = open("/tmp/libev-zero", O_RDONLY);
	want(fd >= 0);
	counter_start(loop, &zero, fd, EV_READ);
	run_until(loop, &zero.calls, 3);
	ev_io_stop(loop, &zero.io);
	make_pipe(other);
	counter_start(loop, &pipe, other[0], EV_READ);
	put(other[1]);
	run_until(loop, &pipe.calls, 1);
}

struct server {
	ev_io	listener;
	int	accepted;
	int	echoed;
};

static struct server server;

static void echo(struct ev_loop *loop, ev_io *io, int revents)
{
	char buf[16];
	ssize_t n;

	want(revents == EV_READ);
	n = read(io->fd, buf, sizeof(buf));
	if (n > 0) {
		want(write(io->fd, buf, n) == n);
		server.echoed += n;
		return;
	}
	ev_io_stop(loop, io);
	close(io->fd);
	free(io);
}

static void accept_one(struct ev_loop *loop, ev_io *io, int revents)
{
	ev_io *client = calloc(1, sizeof(*client));
	int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK);

	(void)revents;
	want(client && fd >= 0);
	server.accepted++;
	ev_io_init(client, echo, fd, EV_READ);
	ev_io_start(loop, client);
}

static int listen_tcp(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	*at = (struct sockaddr_in) {
		.sin_family	 = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	want(fd >= 0 && !bind(fd, (struct sockaddr *)at, sizeof(*at)));
	want(!listen(fd, 64));
	want(!getsockname(fd, (struct sockaddr *)at, &len));
	return fd;
}

/* Each connection gets the descriptor of the previous one. */
static void tcp_server_reuses_descriptors(struct ev_loop *loop)
{
	struct sockaddr_in at;
	char byte;
	int i, fd;

	ev_io_init(&server.listener, accept_one, listen_tcp(&at), EV_READ);
	ev_io_start(loop, &server.listener);
	for (i = 1; i <= 100; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		want(fd >= 0);
		want(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
		run_until(loop, &server.accepted, i);
		put(fd);
		run_until(loop, &server.echoed, i);
		want(read(fd, &byte, 1) == 1);
		close(fd);
		ev_run(loop, EVRUN_ONCE);
	}
}

static int sum_of(const struct counter *c, int nr)
{
	int sum = 0;

	while (nr--)
		sum += c[nr].calls;
	return sum;
}

static void watch_pipes(struct ev_loop *loop, int nr)
{
	struct rlimit limit = { 2 * nr + 100, 2 * nr + 100 };
	struct counter *c = calloc(nr, sizeof(*c));
	int (*fd)[2] = calloc(nr, sizeof(*fd));
	int i, round, before;

	want(c && fd && !setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < nr; i++) {
		make_pipe(fd[i]);
		c[i].drain = 1;
		counter_start(loop, &c[i], fd[i][0], EV_READ);
	}
	put(fd[nr - 1][1]);
	ev_run(loop, EVRUN_NOWAIT);
	want(sum_of(c, nr) == 1);
	c[nr - 1].calls = 0;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < nr; i += 1 + round)
			put(fd[i][1]);
		before = sum_of(c, nr);
		while (sum_of(c, nr) - before < (nr + round) / (1 + round))
			ev_run(loop, EVRUN_ONCE);
		ev_run(loop, EVRUN_NOWAIT);
		want(sum_of(c, nr) - before == (nr + round) / (1 + round));
	}
	for (i = 0; i < nr; i++)
		want(c[i].calls == 1 + !(i % 2) + !(i % 3));
}

static void a_thousand_pipes(struct ev_loop *loop)
{
	watch_pipes(loop, 1000);
}

static void ten_thousand_pipes(struct ev_loop *loop)
{
	watch_pipes(loop, 10000);
}

#define IN_TURN	8

static int turns[IN_TURN];		/* descriptors, as their callbacks came */
static int nr_turns;

static void take_turn(struct ev_loop *loop, ev_io *io, int revents)
{
	(void)revents;
	want(nr_turns < IN_TURN);
	turns[nr_turns++] = io->fd;
	ev_io_stop(loop, io);
}

/* libev invokes what its backend has told last first. On epoll that is the reverse. */
static void callbacks_come_in_the_order_of_events(struct ev_loop *loop)
{
	ev_io io[IN_TURN];
	int fd[IN_TURN][2], i, j;

	for (i = 0; i < IN_TURN; i++) {
		make_pipe(fd[i]);
		ev_io_init(&io[i], take_turn, fd[i][0], EV_READ);
		ev_io_start(loop, &io[i]);
	}
	ev_run(loop, EVRUN_NOWAIT);
	want(!nr_turns);
	for (i = 0; i < IN_TURN; i++)
		put(fd[3 * i % IN_TURN][1]);
	ev_run(loop, EVRUN_ONCE);
	want(nr_turns == IN_TURN);
	for (i = 0; i < IN_TURN; i++) {
		j = check_backend == EVBACKEND_KEVENT ? i : IN_TURN - 1 - i;
		want(turns[j] == fd[3 * i % IN_TURN][0]);
	}
}

struct ticker {
	ev_timer	timer;
	double		due;		/* monotonic */
	int		calls;
	int		fd;
	int		puts;
	struct counter	*reader;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* The clock of libev is a double: allow it a microsecond. */
static void tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct ticker *t = (struct ticker *)timer;

	(void)revents;
	want(now() >= t->due - 1e-6);
	/*
	 * Only after the last byte has been read. Where wake-ups fill a ring, a
	 * byte that is read together with another one would also be reported,
	 * too late.
	 */
	if (t->reader->calls == t->puts) {
		put(t->fd);
		t->puts++;
	}
	if (++t->calls == 20)
		ev_timer_stop(loop, timer);
	t->due += timer->repeat;
}

/* Loops that wake too early, or do not sleep, need many more iterations. */
static void timers_are_never_early(struct ev_loop *loop)
{
	struct counter c = { .drain = 1 };
	struct ticker t = { .reader = &c };
	unsigned int before;
	int fd[2];

	make_pipe(fd);
	t.fd = fd[1];
	counter_start(loop, &c, fd[0], EV_READ);
	ev_now_update(loop);
	t.due = now() - (ev_time() - ev_now(loop)) + 0.005;
	ev_timer_init((ev_timer *)&t, tick, 0.005, 0.005);
	before = ev_iteration(loop);
	ev_timer_start(loop, &t.timer);
	run_until(loop, &c.calls, 1);
	run_until(loop, &t.calls, 20);
	run_for(loop, 0.01);
	want(ev_iteration(loop) - before <= 60);
	want(c.calls >= 1 && c.calls == t.puts);
}

static void timer_alone_does_not_spin(struct ev_loop *loop)
{
	unsigned int before = ev_iteration(loop);
	struct counter c = { .drain = 1 };
	int fd[2], i;

	for (i = 0; i < 20; i++)
		run_for(loop, 0.0007);
	want(ev_iteration(loop) - before <= 60);
	make_pipe(fd);
	put(fd[1]);
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
}

const struct check io_checks[] = {
	{ "readable_until_read", readable_until_read },
	{ "writable_while_there_is_room", writable_while_there_is_room },
	{ "both_at_once_for_two_watchers", both_at_once_for_two_watchers },
	{ "hang_up_is_readable", hang_up_is_readable },
	{ "regular_file_is_always_ready", regular_file_is_always_ready },
	{ "device_is_always_ready", device_is_always_ready },
	{ "tcp_server_reuses_descriptors", tcp_server_reuses_descriptors },
	{ "a_thousand_pipes", a_thousand_pipes },
	{ "ten_thousand_pipes", ten_thousand_pipes },
	{ "callbacks_come_in_the_order_of_events",
	  callbacks_come_in_the_order_of_events },
	{ "timers_are_never_early", timers_are_never_early },
	{ "timer_alone_does_not_spin", timer_alone_does_not_spin },
	{ NULL }
};
