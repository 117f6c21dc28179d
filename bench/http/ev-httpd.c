// SPDX-License-Identifier: GPL-2.0
/*
 * usage: ev-httpd PORT FILE
 *
 * A small HTTP server on libev: one process, which has FILE in memory and serves it
 * under its name on 127.0.0.1, anything else is 404. Connections are kept when
 * HTTP/1.1 or "Connection: keep-alive" says so; pipelined requests are answered in
 * turn. libev picks the backend by LIBEV_FLAGS.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#define REQUEST_MAX	4096
#define BODY_MAX	65536
#define BACKLOG		65535	/* the kernel has its own limit */

struct text {
	size_t	len;
	char	at[BODY_MAX + 200];
};

struct client {
	ev_io		io;
	const char	*rest;		/* of the answer, to be sent */
	size_t		left, have;	/* bytes at rest, and in request */
	int		keep;
	char		request[REQUEST_MAX + 1];
};

static struct text answers[2][2];	/* whether it exists, whether to keep */
static const char *name;

static void die(const char *what)
{
	fprintf(stderr, "ev-httpd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make_answer(int found, int keep, const char *body, size_t len)
{
	struct text *text = &answers[found][keep];

	text->len = sprintf(text->at, "HTTP/1.1 %s\r\nServer: ev-httpd\r\n"
			    "Content-Type: text/html\r\nContent-Length: %zu\r\n"
			    "Connection: %s\r\n\r\n",
			    found ? "200 OK" : "404 Not Found", len,
			    keep ? "keep-alive" : "close");
	memcpy(text->at + text->len, body, len);
	text->len += len;
}

static void make_answers(const char *path)
{
	static char body[BODY_MAX];
	FILE *file = fopen(path, "r");
	size_t len;
	int keep;

	if (!file)
		die(path);
	len = fread(body, 1, sizeof(body), file);
	fclose(file);
	for (keep = 0; keep < 2; keep++) {
		make_answer(1, keep, body, len);
		make_answer(0, keep, "", 0);
	}
}

/* With 0 events it frees c */
static void wait_for(struct ev_loop *loop, struct client *c, int events)
{
	if ((c->io.events & (EV_READ | EV_WRITE)) == events)
		return;
	ev_io_stop(loop, &c->io);
	if (events) {
		ev_io_set(&c->io, c->io.fd, events);
		ev_io_start(loop, &c->io);
		return;
	}
	close(c->io.fd);
	free(c);
}

/* Takes a request; returns false if there is no complete one */
static int take_request(struct client *c)
{
	char *end, *version;
	int found = 0;

	c->request[c->have] = 0;
	end = strstr(c->request, "\r\n\r\n");
	if (!end)
		return 0;
	end[3] = 0;
	c->keep = strcasestr(c->request, "\nConnection: keep-alive") ||
		  (strstr(c->request, " HTTP/1.1\r\n") &&
		   !strcasestr(c->request, "\nConnection: close"));
	version = strstr(c->request, " HTTP/1.");
	if (version && !strncmp(c->request, "GET /", 5)) {
		*version = 0;
		found = !strcmp(c->request + 5, name);
	}
	c->rest = answers[found][c->keep].at;
	c->left = answers[found][c->keep].len;
	c->have -= end + 4 - c->request;
	memmove(c->request, end + 4, c->have);
	return 1;
}

/* Returns 1 when all is sent, 0 when there is no room, -1 when c has to end */
static int send_rest(struct client *c)
{
	ssize_t sent = send(c->io.fd, c->rest, c->left, MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	c->rest += sent;
	c->left -= sent;
	return c->left ? 0 : c->keep ? 1 : -1;
}

/* Returns 1 when there may be a request, 0 when not, -1 when c has to end */
static int receive(struct client *c)
{
	ssize_t got = recv(c->io.fd, c->request + c->have,
			   REQUEST_MAX - c->have, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	c->have += got > 0 ? got : 0;
	return got > 0 ? 1 : -1;
}

static void serve(struct ev_loop *loop, ev_io *io, int revents)
{
	struct client *c = (struct client *)io;
	int fine = revents & EV_READ ? receive(c) : 1;

	while (fine > 0 && (c->left || take_request(c)))
		fine = send_rest(c);
	if (c->have == REQUEST_MAX)
		fine = -1;
	wait_for(loop, c, fine < 0 ? 0 : c->left ? EV_WRITE : EV_READ);
}

static void take_clients(struct ev_loop *loop, ev_io *io, int revents)
{
	struct client *c;
	int fd;

	(void)revents;
	while ((fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		c = calloc(1, sizeof(*c));
		if (!c)
			die("calloc");
		ev_io_init(&c->io, serve, fd, EV_READ);
		ev_io_start(loop, &c->io);
	}
	if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		die("accept");
}

static int listener(int port)
{
	struct sockaddr_in addr = { AF_INET, htons(port),
				    { htonl(INADDR_LOOPBACK) }, "" };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(fd, BACKLOG))
		die("listen");
	return fd;
}

int main(int argc, char **argv)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_io accepting;

	if (argc != 3 || atoi(argv[1]) < 1 || atoi(argv[1]) > 65535 || !loop) {
		fprintf(stderr, loop ? "usage: ev-httpd PORT FILE\n" :
			"ev-httpd: libev has no such backend\n");
		return 2;
	}
	name = strrchr(argv[2], '/') ? strrchr(argv[2], '/') + 1 : argv[2];
	make_answers(argv[2]);
	ev_io_init(&accepting, take_clients, listener(atoi(argv[1])), EV_READ);
	ev_io_start(loop, &accepting);
	ev_run(loop, 0);
	return 0;
}
