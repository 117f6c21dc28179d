// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A store of keys and values whose clients are other processes: requests and answers
 * go through lanes. kv_epoll.c does the same over sockets
 *
 * A client makes its lane, so that the memory is charged to it.
 */
#include <errno.h>
#include <libkevent.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kv.h"

#define LISTENER	1000		/* cookies below are clients */

static struct kevent_queue q;
static KEVENT_RING_STORAGE(32) mem;

/* --- a client ------------------------------------------------------------ */

static int call(struct kevent_lane *l, struct kv_message *m)
{
	struct ukevent ev;
	int len, nr;

	if (kevent_lane_send(l, m, kv_bytes(m)))
		return -1;
	while ((len = kevent_lane_recv(l, m, sizeof(*m))) == -EAGAIN) {
		if (kevent_lane_arm(l))
			continue;
		nr = kevent_queue_get(&q, &ev, 1, NULL);
		if (nr < 0 && nr != -EINTR)
			return -1;
		if (nr == 1)
			kevent_lane_event(l, &ev);
	}
	return len;
}

static int client(int nr)
{
	static const struct kevent_lane_options options = {
		.send_slots = 4, .send_arena = 4096,
		.recv_slots = 4, .recv_arena = 4096,
		.flags = KEVENT_LANE_SOCKET,
	};
	static struct kv_message m;
	struct kevent_lane l;
	int i;

	if (kevent_queue_init(&q, &mem.ring, 32, 0) ||
	    kevent_lane_create(&l, &options) ||
	    kevent_lane_pass(&l, kv_connect("kv_lane")) ||
	    kevent_lane_watch(&l, q.fd, 0))
		return 1;
	for (i = 0; i < KV_ROUNDS; i++)
		if (!kv_ask(&m, nr, i) || call(&l, &m) < 0 || m.op)
			return 1;
	kevent_lane_close(&l);
	return 0;
}

/* --- the server ---------------------------------------------------------- */

static struct kevent_lanes lanes;
static struct kevent_lane clients[KV_CLIENTS];
static int sock[KV_CLIENTS], nr_clients, gone, served;

static int watch(int fd, __u32 event, __u32 flags, __u64 user)
{
	struct ukevent ev;

	kevent_set_socket(&ev, fd, event, flags, user);
	return kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev);
}

/* The lane comes as the first thing through the socket. */
static void accept_client(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		return;
	if (nr_clients == KV_CLIENTS) {
		close(fd);
		return;
	}
	sock[nr_clients] = fd;
	watch(fd, KEVENT_SOCKET_RECV, KEVENT_REQ_ONESHOT, (__u64)nr_clients++);
}

/* Entries of a lane that was closed may still be in the ring. */
static void leave(int nr)
{
	kevent_lane_close(&clients[nr]);
	sock[nr] = -1;
	gone++;
}

static void act_client(const struct ukevent *ev, int nr)
{
	struct kevent_lane *l = &clients[nr];

	if (sock[nr] < 0)
		return;
	if (l->mem) {
		kevent_lane_event(l, ev);
	} else if (kevent_lane_attach(l, sock[nr], 1 << 20, KEVENT_LANE_SOCKET)) {
		/* It is not the lane's. */
		close(sock[nr]);
		leave(nr);
	} else if (kevent_lane_watch(l, q.fd, ev->ptr)) {
		leave(nr);
	} else {
		kevent_lanes_add(&lanes, l);
	}
}

static void act(const struct ukevent *ev, int listener)
{
	if (ev->ptr == LISTENER)
		accept_client(listener);
	else
		act_client(ev, (int)ev->ptr);
}

static void serve(struct kevent_lane *l, struct kv_message *m, int len)
{
	/* A client that does not take its answers is no client. */
	if (len >= 0 && kv_serve(m, (size_t)len) &&
	    !kevent_lane_send(l, m, kv_bytes(m)))
		served++;
	else
		leave((int)(l - clients));
}

static int server(int listener)
{
	static struct kv_message m;
	struct kevent_lane *l;
	struct ukevent ev[8];
	int len, nr, i;

	kevent_lanes_init(&lanes, 0);
	while (gone < KV_CLIENTS) {
		while ((len = kevent_lanes_recv(&lanes, &l, &m, sizeof(m))) !=
		       -EAGAIN)
			serve(l, &m, len);
		if (gone == KV_CLIENTS)
			break;
		nr = kevent_lanes_get(&lanes, &q, ev, 8, NULL);
		if (nr < 0 && nr != -EINTR)
			return 1;
		for (i = 0; i < nr; i++)
			act(&ev[i], listener);
	}
	printf("%d requests served\n", served);
	return served != KV_CLIENTS * KV_ROUNDS;
}

int main(void)
{
	int listener = kv_listen("kv_lane"), i, status, bad = 0;
	pid_t child;

	for (i = 0; i < KV_CLIENTS; i++) {
		child = fork();
		if (child < 0)
			return 1;
		if (!child)
			_exit(client(i));
	}
	if (listener < 0 || kevent_queue_init(&q, &mem.ring, 32, 0) ||
	    watch(listener, KEVENT_SOCKET_ACCEPT, 0, LISTENER))
		return 1;
	if (server(listener))
		return 1;
	while (wait(&status) > 0)
		bad |= status;
	return !!bad;
}
