// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A TCP echo server on one ring: echo [PORT]
 *
 * A connection is watched for input, or for room to write while some of its
 * answer is left. An event may arrive for a connection that was closed before: its
 * handle finds nothing then, even if the descriptor is in use again.
 *
 * The listener is watched for edges: with no descriptor left for a client, a level would
 * keep the loop busy. It tries again after a while.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <libkevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_SIZE	1024
#define MAX		1024		/* connections, and the listener */
#define RETRY_MS	100		/* until a descriptor may be free */

struct connection {
	__u64 handle;
	int fd;
	size_t len;		/* bytes of buf to be sent yet */
	char buf[4096];
};

static struct kevent_queue queue;
static struct kevent_handle slots[MAX];
static struct kevent_handles handles;
static int starved;		/* accept4() has failed */

static void die(const char *what, int err)
{
	fprintf(stderr, "echo: %s: %s\n", what, kevent_strerror(err));
	exit(1);
}

static int watch(__u32 cmd, const struct connection *c, __u32 event)
{
	__u32 flags = event == KEVENT_SOCKET_ACCEPT ? KEVENT_REQ_ET : 0;
	struct ukevent ev;

	kevent_set_socket(&ev, c->fd, event, flags, c->handle);
	return kevent_ctl_one(queue.fd, cmd, &ev);
}

/* Its socket is closed when there is no room or memory. */
static struct connection *new_connection(int fd, __u32 event)
{
	struct connection *c = malloc(sizeof(*c));

	if (c) {
		c->fd = fd;
		c->len = 0;
		c->handle = kevent_handle_new(&handles, c);
		if (c->handle && !watch(KEVENT_CTL_ADD, c, event))
			return c;
		kevent_handle_release(&handles, c->handle);
	}
	free(c);
	close(fd);
	return NULL;
}

static void hang_up(struct connection *c)
{
	kevent_handle_release(&handles, c->handle);
	kevent_close(queue.fd, c->fd);
	free(c);
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		new_connection(fd, KEVENT_SOCKET_RECV);
	starved = errno != EAGAIN;
}

/* Send what there is; 0 when the connection is gone */
static int answer(struct connection *c)
{
	ssize_t sent = send(c->fd, c->buf, c->len, MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN;
	c->len -= (size_t)sent;
	memmove(c->buf, c->buf + sent, c->len);
	return 1;
}

static int receive(struct connection *c)
{
	ssize_t got = recv(c->fd, c->buf, sizeof(c->buf), 0);

	if (got <= 0)
		return got < 0 && errno == EAGAIN;
	c->len = (size_t)got;
	return answer(c);
}

static void serve(struct connection *c)
{
	size_t had = c->len;
	__u32 event;

	if (!(had ? answer(c) : receive(c))) {
		hang_up(c);
		return;
	}
	event = c->len ? KEVENT_SOCKET_SEND : KEVENT_SOCKET_RECV;
	if (!had != !c->len && watch(KEVENT_CTL_MODIFY, c, event))
		hang_up(c);
}

static void handle(const struct ukevent *ev, const struct connection *listener)
{
	struct connection *c = kevent_handle_object(&handles, ev->ptr);

	if (c == listener)
		accept_all(c->fd);
	else if (c)
		serve(c);
}

static int listen_on(in_port_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(sin);
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sin, len) || listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)&sin, &len))
		die("listen", -errno);
	printf("port %u\n", ntohs(sin.sin_port));
	fflush(stdout);
	return fd;
}

static in_port_t port_of(const char *word)
{
	char *end;
	unsigned long port = strtoul(word, &end, 10);

	if (*end || end == word || port > 65535) {
		fprintf(stderr, "usage: echo [PORT]\n");
		exit(2);
	}
	return (in_port_t)port;
}

int main(int argc, char **argv)
{
	static const struct timespec retry = { .tv_nsec = RETRY_MS * 1000000L };
	static KEVENT_RING_STORAGE(RING_SIZE) mem;
	int fd = listen_on(port_of(argc > 1 ? argv[1] : "7777"));
	struct connection *listener;
	struct ukevent ev[64];
	int i, nr;

	kevent_handles_init(&handles, slots, MAX);
	nr = kevent_queue_init(&queue, &mem.ring, RING_SIZE, 0);
	if (nr)
		die("kevent_queue_init", nr);
	listener = new_connection(fd, KEVENT_SOCKET_ACCEPT);
	if (!listener)
		die("ADD of the listener", -ENOMEM);
	for (;;) {
		nr = kevent_queue_get(&queue, ev, 64, starved ? &retry : NULL);
		if (nr < 0 && nr != -EINTR)
			die("kevent_queue_get", nr);
		if (starved)
			accept_all(fd);
		for (i = 0; i < nr; i++)
			handle(&ev[i], listener);
	}
}
