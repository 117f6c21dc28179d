// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An HTTP server on kevent whose calls ride in chains: see http.h, http_kevent.h and
 * kevent_call(2)
 *
 * A turn takes at most three system calls, for many clients: one that waits and changes
 * watches; a chain that receives from each client with input, accepts clients and
 * receives from these; and a chain that answers and closes. Calls that are rare are made
 * on their own.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "http_kevent.h"

#define NEW	16			/* clients to accept in a chain */
#define BUSY	(EVENTS + NEW)		/* clients in a turn */

/* Entries for each client: accept4, COPY, recvfrom; sendto, COPY, pread64, close */
#define ENTRIES_NEW	3
#define ENTRIES_ANSWER	4

static struct kevent_call input[BUSY + ENTRIES_NEW * NEW];
static struct kevent_call output[ENTRIES_ANSWER * BUSY];
static char requests[NEW][HTTP_REQUEST];	/* of new clients */

struct list {
	__u32	nr;
	int	fd[BUSY];
};

static struct list to_receive, to_send;

/* --- chains: built once, each turn changes some arguments ----------------- */

static void make_input(int listener)
{
	struct kevent_chain c;
	struct kevent_call *fd;
	__u32 i;

	kevent_chain_init(&c, input, BUSY + ENTRIES_NEW * NEW);
	for (i = 0; i < BUSY; i++) {
		kevent_chain_call(&c, SYS_recvfrom);
		kevent_chain_jump(&c, KEVENT_ON_ANY, i);
		kevent_chain_label(&c, i);
	}
	for (; i < BUSY + NEW; i++) {
		fd = kevent_chain_call(&c, SYS_accept4, listener, 0, 0,
				       SOCK_NONBLOCK | SOCK_CLOEXEC);
		kevent_chain_pass(&c, fd, 0);
		kevent_chain_call(&c, SYS_recvfrom, 0, requests[i - BUSY],
				  HTTP_REQUEST);
		kevent_chain_jump(&c, KEVENT_ON_ANY, i);
		kevent_chain_label(&c, i);
	}
	if (kevent_chain_end(&c))
		http_die("input");
}

/*
 * A file that is as long as the answer: after a whole answer pread64() finds its end, and
 * returns 0. So the chain closes no connection whose answer has not gone out.
 */
static int make_ruler(size_t len)
{
	int fd = memfd_create("answer", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)len))
		http_die("memfd_create");
	return fd;
}

static void make_output(void)
{
	int ruler = make_ruler(http_answers[HTTP_OK][0].len);
	struct kevent_chain c;
	struct kevent_call *sent;
	static char byte;
	__u32 i;

	kevent_chain_init(&c, output, ENTRIES_ANSWER * BUSY);
	for (i = 0; i < BUSY; i++) {
		sent = kevent_chain_call(&c, SYS_sendto, 0, 0, 0, MSG_NOSIGNAL);
		kevent_chain_jump(&c, KEVENT_ON_ERROR, i);
		kevent_chain_pass(&c, sent, 3);
		kevent_chain_call(&c, SYS_pread64, ruler, &byte, 1);
		kevent_chain_jump(&c, KEVENT_ON_ERROR | KEVENT_ON_VALUE, i);
		kevent_chain_call(&c, SYS_close);
		kevent_chain_jump(&c, KEVENT_ON_ANY, i);
		kevent_chain_label(&c, i);
	}
	if (kevent_chain_end(&c))
		http_die("output");
}

/* Returns how far it went, at least @nr if it went to its end. */
static __u32 run(struct kevent_call *calls, __u32 nr)
{
	int ret = HTTP_CALL(kevent_call(-1, calls, nr, 0, 0));

	if (ret >= 0 && !((__u32)ret & KEVENT_CALL_REFUSED))
		return (__u32)ret;
	fprintf(stderr, "kevent_call: %d\n", ret);
	exit(1);
}

/* --- a turn -------------------------------------------------------------- */

static void put(struct list *list, int fd)
{
	http_clients[fd].listed = 1;
	list->fd[list->nr++] = fd;
}

static void go_on(int fd, enum http_next next)
{
	if (next == HTTP_END)
		next = http_serve(fd, next);
	if (next == HTTP_RECV)
		put(&to_receive, fd);
	else if (next == HTTP_SEND)
		put(&to_send, fd);
	else if (next == HTTP_CLOSE)
		hang_up(fd);
	else
		watch(fd, next == HTTP_WAIT ? KEVENT_SOCKET_RECV :
		      KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND);
}

/* What an accept4() and its recvfrom() have brought */
static int take_new(const struct kevent_call *accepted, const char *request)
{
	int fd = (int)accepted[0].result;
	long got = (long)accepted[2].result;
	struct http_client *c;

	if (fd < 0)
		return http_accept_again(accepted[0].result);
	c = http_open(fd);
	if (got > 0)
		memcpy(c->request, request, (size_t)got);
	go_on(fd, http_received(c, got, HTTP_REQUEST));
	return 1;
}

/*
 * Receives from clients with input, and then, if @accepting, from new ones. Entries of the
 * former are just in front of the latter. Returns whether to go on accepting.
 */
static int receive(int accepting)
{
	const struct list from = to_receive;
	struct kevent_call *first = &input[BUSY - from.nr], *accepted = &input[BUSY];
	struct http_client *c;
	__u32 i, nr = from.nr + (accepting ? ENTRIES_NEW * NEW : 0), last;

	if (!nr)
		return 0;
	for (i = 0; i < from.nr; i++) {
		c = &http_clients[from.fd[i]];
		first[i].args[0] = (__u64)from.fd[i];
		first[i].args[1] = KEVENT_ARG(c->request + c->have);
		first[i].args[2] = http_room(c);
	}
	last = run(first, nr);
	to_receive.nr = 0;
	for (i = 0; i < from.nr; i++) {
		c = &http_clients[from.fd[i]];
		c->listed = 0;
		go_on(from.fd[i], http_received(c, (long)first[i].result,
						http_room(c)));
	}
	for (i = 0; accepting && i < NEW && &first[last] >= accepted; i++) {
		accepting = take_new(accepted, requests[i]);
		accepted += ENTRIES_NEW;
	}
	return accepting;
}

static void prepare_answer(struct kevent_call *call, int fd)
{
	const struct http_client *c = &http_clients[fd];
	const struct http_answer *page = &http_answers[HTTP_OK][0];
	int closing = c->rest == page->text && c->left == page->len && !c->have;

	call[0].args[0] = (__u64)fd;
	call[0].args[1] = KEVENT_ARG(c->rest);
	call[0].args[2] = c->left;
	call[0].on_value = closing ? 1 : call[0].on_error;
	call[2].result = -1;
	call[3].args[0] = (__u64)fd;
}

/* Whether the chain has closed the connection, after the whole answer */
static int is_closed(const struct kevent_call *call)
{
	return call[0].result > 0 && call[0].on_value == 1 && !call[2].result;
}

static void answer(void)
{
	const struct list to = to_send;
	struct kevent_call *call;
	struct http_client *c;
	__u32 i;

	if (!to.nr)
		return;
	for (i = 0; i < to.nr; i++)
		prepare_answer(&output[ENTRIES_ANSWER * i], to.fd[i]);
	run(output, ENTRIES_ANSWER * to.nr);
	to_send.nr = 0;
	for (i = 0; i < to.nr; i++) {
		call = &output[ENTRIES_ANSWER * i];
		c = &http_clients[to.fd[i]];
		c->listed = 0;
		if (!is_closed(call))
			go_on(to.fd[i], http_sent(c, (long)call[0].result));
	}
}

static int take_event(const struct ukevent *ev, int listener)
{
	int fd = client_of(ev);
	enum http_next next;

	if (fd < 0 || fd == listener)
		return fd == listener;
	next = next_of(ev, fd);
	/* Two entries of a client may be in the ring. */
	if (!http_clients[fd].listed)
		go_on(fd, next);
	return 0;
}

static void turn(int accepting)
{
	http_starved = 0;
	do {
		if (to_receive.nr > EVENTS)
			receive(0);
		else
			accepting = receive(accepting);
		answer();
	} while (accepting || to_receive.nr || to_send.nr);
}

int main(int argc, char **argv)
{
	int listener = http_start(argc, argv), accepting;
	struct ukevent ev[EVENTS];
	__u32 nr, i;

	make_input(listener);
	make_output();
	watch_listener(listener);
	for (;;) {
		accepting = http_starved;
		nr = next_events(ev);
		for (i = 0; i < nr; i++)
			accepting |= take_event(&ev[i], listener);
		turn(accepting);
	}
}
