// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the queue, and the set of streams of the process
 */
#include <string.h>
#include <sys/resource.h>

#include "api/own.h"
#include "lane.h"

#define RING_SIZE	64U
#define PRIVATE_FROM	2048	/* at most */

struct hub {
	struct kevent_queue		q;
	struct kevent_streams		*set;
	KEVENT_RING_STORAGE(RING_SIZE)	mem;
};

static struct hub *hub;
static const struct timespec no_time;

/* The program shall not close it. */
static bool make_private(int fd, struct conn *c)
{
	struct private *p = lane_new(PRIVATE, sizeof(*p));

	if (!p)
		return false;
	p->conn = c;
	if (!lane_table_set(fd, &p->o)) {
		free(p);
		return false;
	}
	return true;
}

static int private_from(void)
{
	struct rlimit most;

	if (!getrlimit(RLIMIT_NOFILE, &most) && most.rlim_cur / 2 < PRIVATE_FROM)
		return (int)(most.rlim_cur / 2);
	return PRIVATE_FROM;
}

/* A copy of @fd above the numbers that programs expect, and that select() takes; or -1 */
int lane_private_copy(int fd, struct conn *c)
{
	int copy = real()->fcntl(fd, F_DUPFD_CLOEXEC, private_from());

	if (copy >= 0 && make_private(copy, c))
		return copy;
	if (copy >= 0)
		real()->close(copy);
	return -1;
}

/* The program may have a use for its number. */
static bool move_queue(struct kevent_queue *q)
{
	struct kevent_queue before = *q;
	struct ukevent ev;
	int fd = lane_private_copy(q->fd, NULL);

	if (fd < 0)
		return false;
	q->fd = fd;
	/* The library knows the queue by both numbers then. */
	kevent_queue_get(q, &ev, 1, &no_time);
	kevent_queue_close(&before);
	return true;
}

static bool make_hub(void)
{
	struct hub *h;

	h = aligned_alloc(64, (sizeof(*h) + 63) & ~63UL);
	if (!h)
		return false;
	memset(h, 0, sizeof(*h));
	kevent_own_from = private_from();
	if (kevent_queue_init(&h->q, &h->mem.ring, RING_SIZE, 0)) {
		free(h);
		return false;
	}
	if (!move_queue(&h->q) || kevent_streams_new(&h->set, &h->q, lane_settings.looks)) {
		lane_table_set(h->q.fd, NULL);
		kevent_queue_close(&h->q);
		free(h);
		return false;
	}
	hub = h;
	return true;
}

/* The set of streams of the process; NULL: there is no memory for one */
struct kevent_streams *lane_set(void)
{
	return hub || make_hub() ? hub->set : NULL;
}

/* --- what there is to do ------------------------------------------------- */

/* By the number and the serial: the event may be older than the stream. */
static struct conn *conn_of(__u64 user)
{
	const struct private *p = lane_find_kind((int)(user & 0xffffffffU), PRIVATE);

	return p && p->conn && p->conn->user == user ? p->conn : NULL;
}

/* If threads sleep, their peers are told so again. */
void lane_dispatch(void)
{
	struct kevent_stream *s;

	if (!hub)
		return;
	do {
		while ((s = kevent_streams_next(hub->set))) {
			struct conn *c = conn_of(kevent_stream_user(s));

			if (!c)
				continue;
			lane_conn_serve(c);
			lane_wake(c);
		}
	} while (lane_has_sleepers() && kevent_streams_arm(hub->set) == 1);
}

/* A step may have left something to do for the threads that sleep. */
void lane_settle(void)
{
	if (!hub || !lane_has_sleepers())
		return;
	if (kevent_streams_look(hub->set, &no_time) == 1)
		lane_dispatch();
	lane_have_watcher();
}

void lane_take_events(void)
{
	struct ukevent ev[RING_SIZE];
	int i, nr;

	nr = hub ? kevent_queue_get(&hub->q, ev, RING_SIZE, &no_time) : 0;
	for (i = 0; i < nr; i++) {
		struct conn *c = conn_of(ev[i].ptr);

		if (c && c->s)
			kevent_stream_event(c->s, &ev[i]);
	}
}

/*
 * Before a sleep of @timeout, NULL: without an end. The number of the queue to be watched, -1
 * if there is none, or -2: do not sleep, there is something to do.
 */
int lane_queue_to_watch(bool looks, const struct timespec *timeout)
{
	if (!hub)
		return -1;
	if ((looks && kevent_streams_look(hub->set, timeout) == 1) ||
	    kevent_streams_arm(hub->set) == 1)
		return -2;
	return hub->q.fd;
}

/* In a child: the parent goes on with its own. */
void lane_hub_forget(void)
{
	int fd;

	for (fd = lane_number_of(NULL, 0); fd >= 0; fd = lane_number_of(NULL, fd + 1)) {
		const struct private *p = lane_find_kind(fd, PRIVATE);

		if (!p || p->conn || (hub && fd == hub->q.fd))
			continue;
		lane_table_set(fd, NULL);
		real()->close(fd);
	}
	if (!hub)
		return;
	lane_table_set(hub->q.fd, NULL);
	kevent_queue_close(&hub->q);
	hub = NULL;
}
