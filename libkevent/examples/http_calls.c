// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An HTTP server on kevent that makes many calls in one: see http.h, http_kevent.h and
 * kevent_chain(3)
 *
 * A turn takes a system call that changes watches and waits, and one for each file that is
 * ready: the chain of the listener accepts clients and receives from them, that of a
 * client receives. One more chain answers and closes, for all of them. Calls that are rare
 * are made on their own.
 */
#define _GNU_SOURCE 1
#include <sys/syscall.h>

#define NEW	64			/* clients that a chain accepts */
#define ROUNDS	4			/* of accepting in a turn */
#define RING	256
#define EVENTS	RING			/* all of them are taken before the next wait */
#define BUSY	(EVENTS + NEW)		/* clients that a chain answers */
/* Each client has at most two new watches in a turn. */
#define CHANGES	(2 * EVENTS + (ROUNDS + 1) * NEW + 1)

#include "http_kevent.h"

/* Entries for each client: accept4, recvfrom; sendto, close */
#define ENTRIES_NEW	2
#define ENTRIES_ANSWER	2

/*
 * A socket that has sent nothing takes an answer of so many bytes whole, or not at all:
 * that is less than the least net.ipv4.tcp_wmem. A chain may close it then.
 */
#define WHOLE	2048

static struct kevent_call arrivals[ENTRIES_NEW * NEW];
static struct kevent_chain accepting;
static char requests[NEW][HTTP_REQUEST];	/* of new clients */

/* The chain of each client that is watched: recvfrom */
static struct kevent_call inputs[HTTP_CLIENTS];

static struct kevent_call output[ENTRIES_ANSWER * BUSY];
static struct {
	__u32	nr;
	int	fd[BUSY];
} lists[2], *to_send = lists;

/* --- chains: built once, each turn changes some arguments ----------------- */

static void make_arrivals(int listener)
{
	struct kevent_chain *c = &accepting;
	struct kevent_call *fd;
	__u32 i;

	kevent_chain_init(c, arrivals, ENTRIES_NEW * NEW);
	for (i = 0; i < NEW; i++) {
		fd = kevent_chain_call(c, SYS_accept4, listener, 0, 0,
				       SOCK_NONBLOCK | SOCK_CLOEXEC);
		kevent_chain_call(c, SYS_recvfrom, 0, requests[i], HTTP_REQUEST);
		kevent_chain_pass(c, fd, 0);
		kevent_chain_jump(c, KEVENT_ON_ANY, i);
		kevent_chain_label(c, i);
	}
	if (kevent_chain_end(c))
		http_die("arrivals");
}

static void make_output(void)
{
	struct kevent_chain c;
	__u32 i;

	kevent_chain_init(&c, output, ENTRIES_ANSWER * BUSY);
	for (i = 0; i < BUSY; i++) {
		kevent_chain_call(&c, SYS_sendto, 0, 0, 0, MSG_NOSIGNAL);
		kevent_chain_jump(&c, KEVENT_ON_ERROR, i);
		kevent_chain_call(&c, SYS_close);
		kevent_chain_jump(&c, KEVENT_ON_ANY, i);
		kevent_chain_label(&c, i);
	}
	if (kevent_chain_end(&c))
		http_die("output");
}

/* Returns how far a chain went. */
static int must_end(int ret)
{
	if (ret >= 0 && !((__u32)ret & KEVENT_CALL_REFUSED))
		return ret;
	fprintf(stderr, "chain: %d\n", ret);
	exit(1);
}

/* The same for one of a watch; -EAGAIN: its first call had nothing to do */
static int finish(const struct kevent_chain *c, const struct ukevent *ev)
{
	int ret = HTTP_CALL(kevent_chain_finish(c, ev));

	return ret == -EAGAIN ? ret : must_end(ret);
}

/* Of what a turn makes there is no more than what it takes can make. */
static void must_fit(__u32 nr, __u32 max)
{
	if (nr < max)
		return;
	fprintf(stderr, "too much in a turn\n");
	exit(1);
}

/* --- what a client waits for ---------------------------------------------- */

static void attach(int fd)
{
	struct kevent_change *change = &changes[nr_changes];
	struct http_client *c = &http_clients[fd];
	const __u64 cookie = kevent_cookie((__u32)fd, c->gen);

	must_fit(nr_changes++, CHANGES);
	inputs[fd] = (struct kevent_call){
		.nr = SYS_recvfrom, .args = { (__u64)fd },
	};
	change->cmd = KEVENT_CTL_ADD;
	kevent_set_poll(&change->uk, fd, KEVENT_POLL_POLLIN, KEVENT_REQ_ET,
			cookie);
	c->attached = 1;
}

/* Before each wait: where the next input of a client goes */
static void aim(int fd)
{
	struct http_client *c = &http_clients[fd];

	inputs[fd].args[1] = KEVENT_ARG(c->request + c->have);
	inputs[fd].args[2] = http_room(c);
}

static void await(int fd, enum http_next next)
{
	if (next == HTTP_WAIT_ROOM)
		watch(fd, KEVENT_SOCKET_SEND);
	else if (!http_clients[fd].attached)
		attach(fd);
	aim(fd);
}

static void go_on(int fd, enum http_next next)
{
	if (next == HTTP_RECV || next == HTTP_END)
		next = http_serve(fd, next);
	if (next == HTTP_SEND) {
		must_fit(to_send->nr, BUSY);
		http_clients[fd].listed = 1;
		to_send->fd[to_send->nr++] = fd;
	} else if (next == HTTP_CLOSE) {
		hang_up(fd);
	} else {
		await(fd, next);
	}
}

/* --- answers -------------------------------------------------------------- */

static void prepare_answer(struct kevent_call *call, int fd)
{
	const struct http_client *c = &http_clients[fd];
	int closing = !c->answered && !c->keep && !c->failed && !c->have &&
		      c->left <= WHOLE;

	call[0].args[0] = (__u64)fd;
	call[0].args[1] = KEVENT_ARG(c->rest);
	call[0].args[2] = c->left;
	call[0].on_value = closing ? 1 : call[0].on_error;
	call[1].args[0] = (__u64)fd;
}

static void take_answer(const struct kevent_call *call, int fd)
{
	struct http_client *c = &http_clients[fd];
	int closed = call->result > 0 && call->on_value == 1;

	c->listed = 0;
	c->answered = 1;
	if (!closed)
		go_on(fd, http_sent(c, (long)call->result));
}

static void answer(void)
{
	const __u32 nr = to_send->nr;
	const int *fd = to_send->fd;
	__u32 i;

	for (i = 0; i < nr; i++)
		prepare_answer(&output[ENTRIES_ANSWER * i], fd[i]);
	must_end(HTTP_CALL(kevent_call(-1, output, ENTRIES_ANSWER * nr, 0, 0)));
	to_send->nr = 0;
	to_send = &lists[to_send == lists];
	for (i = 0; i < nr; i++)
		take_answer(&output[ENTRIES_ANSWER * i], fd[i]);
}

/* --- events --------------------------------------------------------------- */

/* Take the results of an accept4() and of the recvfrom() behind it. */
static int take_new(const struct kevent_call *accepted, const char *request)
{
	int fd = (int)accepted[0].result;
	long got = (long)accepted[1].result;
	struct http_client *c;

	if (fd < 0)
		return http_accept_again((long)accepted[0].result);
	c = http_open(fd);
	if (got > 0)
		memcpy(c->request, request, (size_t)got);
	go_on(fd, http_received(c, got, HTTP_REQUEST));
	return 1;
}

/* The chain went to entry @last. Returns whether there may be more clients. */
static int take_arrivals(int last)
{
	int i, more = last >= 0;

	for (i = 0; i < NEW && ENTRIES_NEW * i <= last && more; i++)
		more = take_new(&arrivals[ENTRIES_NEW * i], requests[i]);
	return more;
}

/* Input that came while an answer goes out: it stays for later. */
static void keep_input(struct http_client *c, long got, size_t room)
{
	c->drained = got < (long)room;
	if (got > 0)
		c->have += (size_t)got;
	else if (room)
		c->ended = 1;
}

static void take_input(const struct ukevent *ev, int fd)
{
	const struct kevent_chain chain = { .calls = &inputs[fd], .nr = 1 };
	struct http_client *c = &http_clients[fd];
	size_t room = (size_t)inputs[fd].args[2];

	if (finish(&chain, ev) < 0)
		return;
	if (!c->left) {
		go_on(fd, http_received(c, (long)inputs[fd].result, room));
	} else {
		keep_input(c, (long)inputs[fd].result, room);
		aim(fd);
	}
}

/* Returns whether there may be more clients. */
static int take_event(const struct ukevent *ev, int listener)
{
	int fd = client_of(ev);

	if (fd < 0)
		return 0;
	if (fd == listener)
		return take_arrivals(finish(&accepting, ev));
	if (ev->type != KEVENT_SOCKET)
		take_input(ev, fd);
	else if (http_clients[fd].left && !http_clients[fd].listed)
		go_on(fd, HTTP_SEND);
	return 0;
}

/* Returns whether there may be more clients than a turn takes. */
static int turn(int more)
{
	int rounds = ROUNDS;

	for (;;) {
		if (to_send->nr)
			answer();
		else if (more && rounds--)
			more = take_arrivals(must_end(
				HTTP_CALL(kevent_chain_run(&accepting))));
		else
			return more;
	}
}

static void watch_listener(int fd)
{
	int ret = kevent_chain_watch(queue, &accepting, fd, KEVENT_POLL_POLLIN,
				     KEVENT_REQ_ET,
				     kevent_cookie((__u32)fd, 0));

	if (ret < 0) {
		fprintf(stderr, "kevent_chain_watch: %s\n", kevent_strerror(ret));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const struct timespec retry = { .tv_nsec = HTTP_RETRY_MS * 1000000L };
	int listener = http_start(argc, argv), more = 0;
	struct ukevent ev[EVENTS];
	__u32 seen = 0, nr, i;

	make_arrivals(listener);
	make_output();
	make_queue();
	watch_listener(listener);
	for (;;) {
		enter(seen, more ? &at_once : http_starved ? &retry : NULL);
		seen = stored();
		nr = kevent_ring_pop(&ring.ring, RING, ev, EVENTS);
		more |= http_starved;
		http_starved = 0;
		for (i = 0; i < nr; i++)
			more |= take_event(&ev[i], listener);
		more = turn(more);
	}
}
