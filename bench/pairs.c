// SPDX-License-Identifier: GPL-2.0
/*
 * Pipes and sockets to write to and to read from
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define BACKLOG	128

static int listen_loopback(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(addr, 0, sizeof(*addr));
	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, len) ||
	    listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		bench_die("cannot listen on loopback: %s", strerror(errno));
	return fd;
}

/* Each write of one byte is a segment of its own */
static void inet_pair(int listener, const struct sockaddr_in *addr,
		      struct bench_pair *pair)
{
	int one = 1;

	pair->wr = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pair->wr < 0 ||
	    connect(pair->wr, (const struct sockaddr *)addr, sizeof(*addr)) ||
	    setsockopt(pair->wr, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    fcntl(pair->wr, F_SETFL, O_NONBLOCK))
		bench_die("cannot connect to loopback: %s", strerror(errno));
	pair->rd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (pair->rd < 0)
		bench_die("accept4: %s", strerror(errno));
}

static void inet_pairs(struct bench_pair *pairs, unsigned int nr)
{
	struct sockaddr_in addr;
	int listener = listen_loopback(&addr);
	unsigned int i;

	for (i = 0; i < nr; i++)
		inet_pair(listener, &addr, &pairs[i]);
	close(listener);
}

static void local_pair(const char *source, struct bench_pair *pair)
{
	int fd[2], error;

	if (!strcmp(source, "pipe"))
		error = pipe2(fd, O_NONBLOCK | O_CLOEXEC);
	else
		error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
				   SOCK_CLOEXEC, 0, fd);
	if (error)
		bench_die("cannot make a %s pair: %s", source, strerror(errno));
	pair->rd = fd[0];
	pair->wr = fd[1];
}

struct bench_pair *bench_pairs_open(const char *source, unsigned int nr)
{
	struct bench_pair *pairs = bench_alloc(nr, sizeof(*pairs));
	unsigned int i;

	if (!strcmp(source, "inet"))
		inet_pairs(pairs, nr);
	else
		for (i = 0; i < nr; i++)
			local_pair(source, &pairs[i]);
	return pairs;
}

void bench_pairs_close(struct bench_pair *pairs, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		close(pairs[i].wr);
		close(pairs[i].rd);
	}
	free(pairs);
}

struct bench_watch *bench_watches(const char *source,
				  const struct bench_pair *pairs,
				  unsigned int nr)
{
	struct bench_watch *w = bench_alloc(nr, sizeof(*w));
	unsigned int i;

	for (i = 0; i < nr; i++) {
		w[i].fd = pairs[i].rd;
		w[i].events = POLLIN;
		w[i].kind = bench_kind_of(source);
		w[i].cookie = i;
	}
	return w;
}

enum bench_kind bench_kind_of(const char *source)
{
	return strcmp(source, "pipe") ? BENCH_SOCKET : BENCH_PIPE;
}

void bench_put(int fd)
{
	if (write(fd, "x", 1) != 1)
		bench_die("write of one byte: %s", strerror(errno));
}

void bench_get(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		bench_die("an event, but nothing to read: %s", strerror(errno));
}
