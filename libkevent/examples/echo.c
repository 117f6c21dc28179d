// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A TCP echo server on one ring: echo [PORT]
 *
 * A connection is watched for input, or for room to write while some of its
 * answer is left. Its cookie holds its descriptor and a generation: entries of
 * a connection that was closed may still be in the ring when the descriptor is
 * used again, and are skipped.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libkevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_SIZE	1024
#define MAX_FDS		1024

static struct connection {
	__u32 gen;
	size_t len;		/* bytes of buf to be sent yet */
	char buf[4096];
} connections[MAX_FDS];

static struct kevent_queue queue;

static void die(const char *what, int err)
{
	fprintf(stderr, "echo: %s: %s\n", what, strerror(-err));
	exit(1);
}

static int watch(__u32 cmd, int fd, __u32 event)
{
	struct ukevent ev;

	kevent_set_socket(&ev, fd, event, KEVENT_REQ_ALWAYS_QUEUE,
			  kevent_cookie((__u32)fd, connections[fd].gen));
	return kevent_ctl_one(queue.fd, cmd, &ev);
}

static void hang_up(int fd)
{
	connections[fd].gen++;
	connections[fd].len = 0;
	close(fd);
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (fd >= MAX_FDS)
			close(fd);
		else if (watch(KEVENT_CTL_ADD, fd, KEVENT_SOCKET_RECV))
			hang_up(fd);
	}
}

/* Send what there is; 0 when the connection is gone */
static int answer(int fd, struct connection *c)
{
	ssize_t sent = send(fd, c->buf, c->len, MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN;
	c->len -= (size_t)sent;
	memmove(c->buf, c->buf + sent, c->len);
	return 1;
}

static int receive(int fd, struct connection *c)
{
	ssize_t got = recv(fd, c->buf, sizeof(c->buf), 0);

	if (got <= 0)
		return got < 0 && errno == EAGAIN;
	c->len = (size_t)got;
	return answer(fd, c);
}

static void serve(int fd)
{
	struct connection *c = &connections[fd];
	size_t had = c->len;
	__u32 event;

	if (!(had ? answer(fd, c) : receive(fd, c))) {
		hang_up(fd);
		return;
	}
	event = c->len ? KEVENT_SOCKET_SEND : KEVENT_SOCKET_RECV;
	if (!had != !c->len && watch(KEVENT_CTL_MODIFY, fd, event))
		hang_up(fd);
}

static void handle(const struct ukevent *ev, int listener)
{
	int fd = (int)kevent_cookie_index(ev);

	if (fd == listener)
		accept_all(listener);
	else if (kevent_cookie_gen(ev) == connections[fd].gen)
		serve(fd);
}

static int listen_on(in_port_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(fd, 128))
		die("listen", -errno);
	return fd;
}

int main(int argc, char **argv)
{
	static KEVENT_RING_STORAGE(RING_SIZE) mem;
	int listener = listen_on((in_port_t)atoi(argc > 1 ? argv[1] : "7777"));
	struct ukevent ev[64];
	int i, nr;

	nr = kevent_queue_init(&queue, &mem.ring, RING_SIZE, 0);
	if (nr == 0)
		nr = watch(KEVENT_CTL_ADD, listener, KEVENT_SOCKET_ACCEPT);
	if (nr < 0)
		die("kevent", nr);
	for (;;) {
		nr = kevent_queue_wait(&queue, NULL);
		if (nr < 0 && nr != -EINTR)
			die("kevent_queue_wait", nr);
		while ((nr = kevent_queue_pop(&queue, ev, 64)) > 0)
			for (i = 0; i < nr; i++)
				handle(&ev[i], listener);
	}
}
