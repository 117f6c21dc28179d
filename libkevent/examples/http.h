/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * A small HTTP server for one page: the part that http_epoll.c, http_kevent.c and
 * http_calls.c share. They differ in how they wait for clients, and in how they make the
 * calls that a client needs next. Each has one thread.
 *
 * usage: http_... [PORT [FILE]]
 *
 * Prints the port. SIGTERM ends it; then it prints how many requests it has answered, and
 * how many system calls it has made since it began to listen.
 */
#ifndef HTTP_H
#define HTTP_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HTTP_CLIENTS	65536		/* descriptors, at most */
#define HTTP_REQUEST	4048		/* bytes of a request, at most */
#define HTTP_HEAD	200
#define HTTP_LINGER	1048576		/* bytes that are read in vain */
#define HTTP_RETRY_MS	100		/* until a descriptor may be free */

enum { HTTP_OK, HTTP_NOT_FOUND, HTTP_BAD, HTTP_TOO_LARGE, HTTP_NO_METHOD, HTTP_STATES };

/* The next step of a client */
enum http_next {
	HTTP_RECV,		/* a recv(), whose result http_received() takes */
	HTTP_SEND,		/* a send(), and http_sent() */
	HTTP_END,		/* a shutdown(SHUT_WR), and then HTTP_RECV */
	HTTP_CLOSE,
	HTTP_WAIT,		/* input */
	HTTP_WAIT_ROOM,		/* room for output */
};

struct http_answer {
	char		*text;
	size_t		head, len;	/* of the head, and with the page */
};

/* Its place in http_clients is its descriptor. */
struct http_client {
	const char	*rest;		/* of the answer */
	size_t		left, have;	/* bytes of rest, and of request */
	long		linger;		/* > 0: input is of no interest any more */
	unsigned int	gen;		/* of clients with this descriptor */
	unsigned int	watched;	/* conditions */
	char		keep;		/* the connection after this answer */
	char		failed;		/* the request was no good */
	char		drained;	/* the last recv() was short */
	char		ended;		/* the client sends nothing more */
	char		listed;		/* its next call rides in a chain */
	char		attached;	/* its input rides with events */
	char		answered;	/* something was sent */
	char		request[HTTP_REQUEST];
};

static struct http_client *http_clients;
static struct http_answer http_answers[HTTP_STATES][2];	/* whether to keep */
static char http_name[256] = "index.html";
static unsigned long http_nr_requests, http_nr_calls;
static int http_starved;		/* accept() found no descriptor */

#define HTTP_CALL(call)	(http_nr_calls++, (call))

/* The result as the kernel and chains have it */
#define HTTP_RESULT(call) http_result(HTTP_CALL(call))

static inline long http_result(long ret)
{
	return ret < 0 ? -errno : ret;
}

static inline void http_die(const char *what)
{
	perror(what);
	exit(1);
}

/* --- requests ------------------------------------------------------------ */

static inline void http_answer(struct http_client *c, int state, int head)
{
	const struct http_answer *a = &http_answers[state][(int)c->keep];

	c->rest = a->text;
	c->left = head ? a->head : a->len;
	http_nr_requests++;
}

static inline int http_fail(struct http_client *c, int state)
{
	c->keep = 0;
	c->failed = 1;
	http_answer(c, state, 0);
	return 1;
}

/* "GET /name HTTP/1.1": returns the state, and sets what follows from it. */
static inline int http_first_line(char *line, int *head, int *minor)
{
	char *path = strchr(line, ' ');
	char *version = path ? strchr(path + 1, ' ') : NULL;

	if (!version || strncmp(version, " HTTP/1.", 8) ||
	    (version[8] != '0' && version[8] != '1') || version[9])
		return HTTP_BAD;
	*version = 0;
	*path++ = 0;
	*minor = version[8] - '0';
	*head = !strcmp(line, "HEAD");
	if (!*head && strcmp(line, "GET"))
		return HTTP_NO_METHOD;
	if (*path++ != '/')
		return HTTP_BAD;
	return *path && strcmp(path, http_name) ? HTTP_NOT_FOUND : HTTP_OK;
}

/* The value of @line if its name is @name, which ends with a colon */
static inline const char *http_value(const char *line, const char *name)
{
	size_t len = strlen(name);

	return strncasecmp(line, name, len) ? NULL :
	       line + len + strspn(line + len, " \t");
}

/* Returns the state after the line: this server takes no body. */
static inline int http_line(struct http_client *c, char *line, int *host, int state)
{
	const char *value;

	if (!strchr(line, ':') || *line == ':' || *line == ' ' || *line == '\t')
		return HTTP_BAD;
	if (http_value(line, "host:"))
		*host = 1;
	value = http_value(line, "connection:");
	if (value && strcasestr(value, "close"))
		c->keep = 0;
	else if (value && strcasestr(value, "keep-alive"))
		c->keep = 1;
	value = http_value(line, "content-length:");
	if (http_value(line, "transfer-encoding:") || (value && strcmp(value, "0")))
		return HTTP_TOO_LARGE;
	return state;
}

/* Cuts off a line, returns the next one, or NULL: there is a bare LF or a 0. */
static inline char *http_cut(char *line)
{
	char *end = strchr(line, '\n');

	if (!end || end == line || end[-1] != '\r')
		return NULL;
	end[-1] = 0;
	return end + 1;
}

/* Takes the request whose lines are at @line and after which an empty line follows. */
static inline int http_take(struct http_client *c, char *line)
{
	int head = 0, minor = 0, host = 0;
	char *next = http_cut(line);
	int state = next ? http_first_line(line, &head, &minor) : HTTP_BAD;

	c->keep = (char)minor;
	while (state != HTTP_BAD && strncmp(next, "\r\n", 2)) {
		line = next;
		next = http_cut(line);
		state = next ? http_line(c, line, &host, state) : HTTP_BAD;
	}
	if (state > HTTP_NOT_FOUND || host < minor)
		return http_fail(c, state > HTTP_NOT_FOUND ? state : HTTP_BAD);
	http_answer(c, state, head);
	return 1;
}

/* Takes the next request that is complete; returns 0 if there is none. */
static inline int http_parse(struct http_client *c)
{
	char *end = memmem(c->request, c->have, "\r\n\r\n", 4);
	size_t len;

	if (!end && c->have == HTTP_REQUEST)
		return http_fail(c, HTTP_TOO_LARGE);
	if (!end)
		return 0;
	len = (size_t)(end + 4 - c->request);
	if (memchr(c->request, 0, len))
		return http_fail(c, HTTP_BAD);
	http_take(c, c->request);
	c->have -= len;
	memmove(c->request, end + 4, c->have);
	return 1;
}

/* --- clients ------------------------------------------------------------- */

static inline enum http_next http_go_on(struct http_client *c)
{
	if (http_parse(c))
		return HTTP_SEND;
	if (!c->drained)
		return HTTP_RECV;
	return c->ended ? HTTP_CLOSE : HTTP_WAIT;
}

/* recv() of at most @room bytes to the end of the request returned @got. */
static inline enum http_next http_received(struct http_client *c, long got,
					   size_t room)
{
	if (got == -EINTR)
		return HTTP_RECV;
	if (got == -EAGAIN)
		return HTTP_WAIT;
	if (got <= 0)
		return HTTP_CLOSE;
	if (c->linger) {
		c->linger -= got;
		return c->linger > 0 ? HTTP_RECV : HTTP_CLOSE;
	}
	c->drained = (size_t)got < room;
	c->have += (size_t)got;
	return http_go_on(c);
}

/*
 * send() of what was left returned @sent. A socket that is closed with unread input resets
 * the connection, and the client may miss the answer: read that first.
 */
static inline enum http_next http_sent(struct http_client *c, long sent)
{
	if (sent == -EINTR)
		return HTTP_SEND;
	if (sent == -EAGAIN)
		return HTTP_WAIT_ROOM;
	if (sent < 0)
		return HTTP_CLOSE;
	c->rest += sent;
	c->left -= (size_t)sent;
	if (c->left)
		return HTTP_WAIT_ROOM;
	if (c->keep)
		return http_go_on(c);
	if (!c->failed && !c->have)
		return HTTP_CLOSE;
	c->have = 0;
	c->linger = HTTP_LINGER;
	return HTTP_END;
}

/* An event, which may say that there is input, or that it has ended */
static inline enum http_next http_event(struct http_client *c, int input, int end)
{
	if (input)
		c->drained = 0;
	if (end)
		c->ended = 1;
	return c->left ? HTTP_SEND : HTTP_RECV;
}

static inline size_t http_room(const struct http_client *c)
{
	return HTTP_REQUEST - c->have;
}

/* Serves a client by ordinary calls until it has to wait or to be closed. */
static inline enum http_next http_serve(int fd, enum http_next next)
{
	struct http_client *c = &http_clients[fd];
	size_t room;

	while (next < HTTP_CLOSE) {
		if (next == HTTP_SEND) {
			next = http_sent(c, HTTP_RESULT(send(fd, c->rest, c->left,
							     MSG_NOSIGNAL)));
			continue;
		}
		if (next == HTTP_END)
			HTTP_CALL(shutdown(fd, SHUT_WR));
		room = http_room(c);
		next = http_received(c, HTTP_RESULT(recv(fd, c->request + c->have,
							 room, 0)), room);
	}
	return next;
}

static inline struct http_client *http_open(int fd)
{
	struct http_client *c = &http_clients[fd];
	unsigned int gen = c->gen + 1;

	memset(c, 0, offsetof(struct http_client, request));
	c->gen = gen;
	return c;
}

/* Whether to call accept() again after an error of it */
static inline int http_accept_again(long error)
{
	if (error == -EMFILE || error == -ENFILE || error == -ENOBUFS ||
	    error == -ENOMEM)
		http_starved = 1;
	return error != -EAGAIN && !http_starved;
}

/* --- start and end ------------------------------------------------------- */

static inline void http_make_answer(int state, int keep, const char *line,
				    const char *body, size_t len)
{
	struct http_answer *a = &http_answers[state][keep];
	int head;

	a->text = malloc(HTTP_HEAD + len);
	if (!a->text)
		http_die("malloc");
	head = snprintf(a->text, HTTP_HEAD,
			"HTTP/1.1 %s\r\nContent-Type: text/html\r\n"
			"Content-Length: %zu\r\nConnection: %s\r\n\r\n",
			line, len, keep ? "keep-alive" : "close");
	a->head = (size_t)head;
	a->len = a->head + len;
	memcpy(a->text + head, body, len);
}

static inline void http_make_answers(const char *page, size_t len)
{
	static const char *const lines[HTTP_STATES] = {
		"200 OK", "404 Not Found", "400 Bad Request",
		"413 Content Too Large", "501 Not Implemented",
	};
	int i;

	for (i = 0; i < 2 * HTTP_STATES; i++)
		http_make_answer(i / 2, i % 2, lines[i / 2],
				 i / 2 ? lines[i / 2] : page,
				 i / 2 ? strlen(lines[i / 2]) : len);
}

static inline void http_read_page(const char *path)
{
	FILE *file = fopen(path, "r");
	const char *name = strrchr(path, '/');
	struct stat st;
	char *page;
	size_t len;

	if (!file || fstat(fileno(file), &st))
		http_die(path);
	len = (size_t)st.st_size;
	page = malloc(len + 1);
	if (!page || fread(page, 1, len, file) != len)
		http_die(path);
	fclose(file);
	http_make_answers(page, len);
	free(page);
	snprintf(http_name, sizeof(http_name), "%s", name ? name + 1 : path);
}

static inline void http_make_clients(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max < HTTP_CLIENTS ? files.rlim_max :
			 HTTP_CLIENTS;
	if (setrlimit(RLIMIT_NOFILE, &files))
		http_die("setrlimit");
	http_clients = calloc((size_t)files.rlim_cur, sizeof(*http_clients));
	if (!http_clients)
		http_die("calloc");
}

/* The server uses no function that is not safe in a handler while it can come here. */
static inline void http_report(int sig)
{
	char line[100];
	int len = snprintf(line, sizeof(line), "%lu requests, %lu system calls\n",
			   http_nr_requests, http_nr_calls);

	(void)sig;
	_exit(write(1, line, (size_t)len) != len);
}

/* A listening socket */
static inline int http_listen(in_port_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(sin);
	int on = 1;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* Connections have the first from here, and come when there is a request. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sin, len) || listen(fd, 65535) ||
	    getsockname(fd, (struct sockaddr *)&sin, &len))
		http_die("listen");
	printf("port %d\n", ntohs(sin.sin_port));
	fflush(stdout);
	return fd;
}

static inline in_port_t http_port(const char *word)
{
	char *end;
	unsigned long port = strtoul(word, &end, 10);

	if (*end || end == word || port > 65535) {
		fprintf(stderr, "usage: http_... [PORT [FILE]]\n");
		exit(2);
	}
	return (in_port_t)port;
}

static inline int http_start(int argc, char **argv)
{
	static const char hello[] = "<!DOCTYPE html>\n<title>kevent</title>\n<p>Hello\n";

	in_port_t port = http_port(argc > 1 ? argv[1] : "8080");

	if (argc > 2)
		http_read_page(argv[2]);
	else
		http_make_answers(hello, strlen(hello));
	http_make_clients();
	signal(SIGTERM, http_report);
	return http_listen(port);
}

#endif /* HTTP_H */
