// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A TCP server whose threads wait on one queue: pool THREADS [PORT]
 *
 * It answers each line, a number, with its prime factors. SIGTERM and SIGINT end it.
 *
 * A delivery disarms the watch of a connection, so one thread at a time has the connection.
 * That thread arms the watch again, or removes it and frees the connection: no event can have
 * the pointer then.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <libkevent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_SIZE	256
#define THREADS		64
#define MAX_NUMBER	1000000000000	/* its factors take a million divisions */
#define RETRY_NS	100000000	/* until a descriptor may be free */

struct connection {
	int fd;
	size_t in, out;		/* bytes of line and of answer */
	char line[256], answer[256];
	struct connection *next, **link;	/* under the lock */
};

static struct kevent_queue queue;
static struct connection listener;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection *all;
static atomic_int served, ending, failed;

static void die(const char *what, int err)
{
	fprintf(stderr, "pool: %s: %s\n", what, kevent_strerror(err));
	exit(1);
}

/* --- connections ------------------------------------------------------------ */

/* From here on another thread may have the connection, and free it. */
static int watch(__u32 cmd, const struct connection *c)
{
	__u32 event = c->out ? KEVENT_SOCKET_SEND : KEVENT_SOCKET_RECV;
	struct ukevent ev;

	kevent_set_socket(&ev, c->fd, c == &listener ? KEVENT_SOCKET_ACCEPT : event,
			  KEVENT_REQ_DISPATCH, kevent_from_pointer(c));
	return kevent_ctl_one(queue.fd, cmd, &ev);
}

static void free_connection(struct connection *c)
{
	pthread_mutex_lock(&lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	pthread_mutex_unlock(&lock);
	kevent_close(queue.fd, c->fd);
	free(c);
}

/* The caller has its event, so there is no other one. */
static void hang_up(struct connection *c)
{
	watch(KEVENT_CTL_REMOVE, c);
	free_connection(c);
}

static void add_connection(int fd)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	pthread_mutex_lock(&lock);
	c->next = all;
	c->link = &all;
	if (all)
		all->link = &c->next;
	all = c;
	pthread_mutex_unlock(&lock);
	if (watch(KEVENT_CTL_ADD, c))
		free_connection(c);
}

static void accept_all(void)
{
	struct ukevent ev;
	int fd, ret;

	while ((fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		served++;
		add_connection(fd);
	}
	if (errno == EAGAIN) {
		ret = watch(KEVENT_CTL_MODIFY, &listener);
	} else {	/* Without a descriptor it would be ready at once. */
		kevent_set_timer(&ev, RETRY_NS, 0, 0, KEVENT_REQ_ONESHOT, 0);
		ret = kevent_ctl_one(queue.fd, KEVENT_CTL_ADD, &ev);
	}
	if (ret)
		die("the listener", ret);
}

/* --- numbers ---------------------------------------------------------------- */

static size_t factor(const char *line, char *answer, size_t size)
{
	uint64_t n = strtoull(line, NULL, 10), divisor = 2;
	size_t len = (size_t)snprintf(answer, size, "%" PRIu64 ":", n);

	if (!n || n > MAX_NUMBER)
		return (size_t)snprintf(answer, size, "no number from 1 to %" PRIu64 "\n",
					(uint64_t)MAX_NUMBER);
	for (; divisor * divisor <= n; divisor++)
		for (; n % divisor == 0 && n != divisor; n /= divisor)
			len += (size_t)snprintf(answer + len, size - len, " %" PRIu64, divisor);
	return len + (size_t)snprintf(answer + len, size - len, " %" PRIu64 "\n", n);
}

/* Returns 0 when a line has yet to come. */
static int answer_line(struct connection *c)
{
	char *end = memchr(c->line, '\n', c->in);

	if (!end)
		return 0;
	*end++ = 0;
	c->out = factor(c->line, c->answer, sizeof(c->answer));
	c->in -= (size_t)(end - c->line);
	memmove(c->line, end, c->in);
	return 1;
}

/* Returns 0 when the connection is over. */
static int serve(struct connection *c)
{
	ssize_t len;

	if (!c->out) {
		len = recv(c->fd, c->line + c->in, sizeof(c->line) - c->in, 0);
		if (len <= 0)
			return len < 0 && errno == EAGAIN;
		c->in += (size_t)len;
	}
	while (c->out || answer_line(c)) {
		len = send(c->fd, c->answer, c->out, MSG_NOSIGNAL);
		if (len < 0)
			return errno == EAGAIN;
		c->out -= (size_t)len;
		memmove(c->answer, c->answer + len, c->out);
	}
	return c->in < sizeof(c->line);
}

/* --- threads ---------------------------------------------------------------- */

/* Events come before the end of a wait: the variable has busy threads leave them. */
static void end(int err)
{
	failed = err;
	ending = 1;
	kevent_wake_all(queue.fd);
}

static void handle(const struct ukevent *ev)
{
	struct connection *c = kevent_pointer(ev);

	if (ev->type == KEVENT_SIGNAL)
		end(0);
	else if (ev->type == KEVENT_TIMER || c == &listener)
		accept_all();
	else if (!serve(c) || watch(KEVENT_CTL_MODIFY, c))
		hang_up(c);
}

static void *work(void *arg)
{
	struct ukevent ev;
	int ret;

	while (!ending) {
		ret = kevent_queue_get(&queue, &ev, 1, NULL);
		if (ret == 1)
			handle(&ev);
		else if (ret < 0 && ret != -EINTR)
			end(ret);
	}
	return arg;
}

static unsigned long number(const char *word, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(word, &end, 10);

	if (*end || end == word || n < min || n > max) {
		fprintf(stderr, "usage: pool THREADS [PORT]\n");
		exit(2);
	}
	return n;
}

static void watch_signals(void)
{
	struct ukevent ev[2];

	kevent_set_signal(&ev[0], SIGTERM, KEVENT_SIGNAL_CONSUME, 0, 0);
	kevent_set_signal(&ev[1], SIGINT, KEVENT_SIGNAL_CONSUME, 0, 0);
	if (kevent_ctl(queue.fd, KEVENT_CTL_ADD, 2, ev))
		die("ADD of signals", kevent_error(ev));
}

static void listen_on(in_port_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(sin);
	int on = 1, ret;

	listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener.fd, (struct sockaddr *)&sin, len) || listen(listener.fd, 128) ||
	    getsockname(listener.fd, (struct sockaddr *)&sin, &len))
		die("listen", -errno);
	ret = watch(KEVENT_CTL_ADD, &listener);
	if (ret)
		die("ADD of the listener", ret);
	printf("port %u\n", ntohs(sin.sin_port));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static KEVENT_RING_STORAGE(RING_SIZE) mem;
	unsigned long i, nr = number(argc > 1 ? argv[1] : "", 1, THREADS);
	unsigned long port = number(argc > 2 ? argv[2] : "7777", 0, 65535);
	pthread_t thread[THREADS];
	int ret = kevent_queue_init(&queue, &mem.ring, RING_SIZE, 0);

	if (ret)
		die("kevent_queue_init", ret);
	watch_signals();
	listen_on((in_port_t)port);
	for (i = 0; i < nr; i++) {
		ret = pthread_create(&thread[i], NULL, work, NULL);
		if (ret)
			die("pthread_create", -ret);
	}
	for (i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	while (all)
		free_connection(all);
	kevent_queue_close(&queue);
	if (failed)
		die("kevent_queue_get", failed);
	printf("%lu threads have ended, %d connections\n", nr, served);
	return 0;
}
