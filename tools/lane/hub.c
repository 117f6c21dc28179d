// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the set of streams of the process, and the instance of epoll for their sockets
 */
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "lane.h"

#define PRIVATE_FROM	2048	/* at most */
#define ROUNDS		8	/* of kevent_streams_next(), in one step */

/* Of events that are of no stream */
enum { OF_WAKE, OF_INNER };

/*
 * The sockets of all streams are watched for edges by @ep. So is @inner: the instance of a
 * program that waits for one only. An edge that another thread takes is kept in its @stale.
 */
static struct {
	int			ep, wake;	/* @wake: of the thread that sleeps in @ep */
	struct kevent_streams	*set;
	struct epoll		*inner;
	bool			many;		/* no @inner any more */
	unsigned int		beat;
} hub = { .ep = -1, .wake = -1 };

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
		lane_call(SYS_close, copy);
	return -1;
}

/* The program may have a use for its number. */
static int moved(int fd)
{
	int copy = fd < 0 ? -1 : lane_private_copy(fd, NULL);

	if (fd >= 0)
		lane_call(SYS_close, fd);
	return copy;
}

static void close_private(int fd)
{
	if (fd < 0)
		return;
	lane_table_set(fd, NULL);
	lane_call(SYS_close, fd);
}

static bool make_hub(void)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = OF_WAKE };

	hub.ep = moved(real()->epoll_create1(EPOLL_CLOEXEC));
	hub.wake = moved(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (hub.ep >= 0 && hub.wake >= 0 &&
	    !real()->epoll_ctl(hub.ep, EPOLL_CTL_ADD, hub.wake, &ev) &&
	    !kevent_streams_new(&hub.set, NULL, lane_settings.looks))
		return true;
	close_private(hub.ep);
	close_private(hub.wake);
	hub.ep = hub.wake = -1;
	return false;
}

/* The set of streams of the process; NULL: there is no memory for one */
struct kevent_streams *lane_set(void)
{
	return hub.set || make_hub() ? hub.set : NULL;
}

/* As long as the stream is open; it watches for more when the socket has no room. */
bool lane_hub_watch(struct conn *c)
{
	int sock = kevent_stream_fd(c->s), events = kevent_stream_events(c->s);
	struct epoll_event ev = { .data.u64 = c->user };

	if (c->watched == events)
		return true;
	ev.events = (__u32)events | EPOLLET;
	if (real()->epoll_ctl(hub.ep, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, sock, &ev))
		return false;
	c->watched = events;
	return true;
}

/* Other descriptors of the socket may stay open. */
void lane_hub_unwatch(struct conn *c)
{
	if (c->watched)
		real()->epoll_ctl(hub.ep, EPOLL_CTL_DEL, kevent_stream_fd(c->s), NULL);
	c->watched = 0;
}

/* --- what there is to do ------------------------------------------------- */

/* By the number and the serial: the event may be older than the stream. */
static struct conn *conn_of(__u64 user)
{
	const struct private *p = lane_find_kind((int)(user & 0xffffffffU), PRIVATE);

	return p && p->conn && p->conn->user == user ? p->conn : NULL;
}

static void serve_round(void)
{
	struct kevent_stream *s;

	while ((s = kevent_streams_next(hub.set))) {
		struct conn *c = conn_of(kevent_stream_user(s));

		if (!c)
			continue;
		lane_conn_serve(c);
		lane_wake(c);
	}
}

/*
 * If threads sleep, their peers are told so again. A peer may say for ever that there is something
 * to do: this thread goes on then, and one that sleeps is woken, and looks in its place.
 */
void lane_dispatch(void)
{
	int i;

	if (!hub.set)
		return;
	for (i = 0; i < ROUNDS; i++) {
		serve_round();
		if (!lane_has_sleepers() || kevent_streams_arm(hub.set) != 1)
			return;
	}
	lane_wake_one();
}

/* A step may have left something to do for the threads that sleep. */
void lane_settle(void)
{
	if (!hub.set || !lane_has_sleepers())
		return;
	if (kevent_streams_look(hub.set, &no_time) == 1)
		lane_dispatch();
	lane_have_watcher();
}

/* --- sleeping ------------------------------------------------------------ */

static void take_event(const struct epoll_event *ev)
{
	struct conn *c;
	__u64 nr;

	if (ev->data.u64 == OF_WAKE) {
		if (!lane_another_sleeps_in_hub())
			lane_call(SYS_read, hub.wake, (long)&nr, sizeof(nr));
	} else if (ev->data.u64 == OF_INNER) {
		if (hub.inner)
			hub.inner->stale = true;
		lane_wake_in_hub();
	} else {
		c = conn_of(ev->data.u64);
		if (c && c->s)
			kevent_stream_ready(c->s, (int)ev->events);
	}
}

void lane_take_these(const struct epoll_event *ev, int nr)
{
	int i;

	for (i = 0; i < nr && ev[i].events; i++)
		take_event(&ev[i]);
}

void lane_take_events(void)
{
	struct epoll_event ev[LANE_EVENTS];

	if (hub.ep >= 0)
		lane_take_these(ev, lane_epoll_now(hub.ep, ev, LANE_EVENTS));
}

/*
 * Of a call that does not sleep. A program that makes only such calls shall see, too, what only
 * the sockets say: that a peer has ended without close().
 */
void lane_glance(void)
{
	if (!(++hub.beat % LANE_BEAT))
		lane_take_events();
}

/* Before a sleep of @timeout, NULL: without an end. False: there is something to do. */
bool lane_may_sleep(bool looks, const struct timespec *timeout)
{
	return !hub.set || ((!looks || kevent_streams_look(hub.set, timeout) != 1) &&
			    kevent_streams_arm(hub.set) != 1);
}

int lane_hub_fd(void)
{
	return hub.ep;
}

int lane_hub_wake_fd(void)
{
	return hub.wake;
}

static void drop_inner(void)
{
	if (hub.inner)
		real()->epoll_ctl(hub.ep, EPOLL_CTL_DEL, hub.inner->inner_fd, NULL);
	hub.inner = NULL;
}

/*
 * May a wait for @ep be one for @hub.ep? Then one call sleeps, and has the events. Threads with
 * instances of their own would wake each other.
 */
bool lane_hub_has(struct epoll *ep, int epfd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u64 = OF_INNER };

	if (hub.many || hub.ep < 0 || hub.inner == ep)
		return hub.inner == ep;
	hub.many = hub.inner || real()->epoll_ctl(hub.ep, EPOLL_CTL_ADD, epfd, &ev);
	if (hub.many) {
		drop_inner();
		return false;
	}
	hub.inner = ep;
	ep->inner_fd = epfd;
	return true;
}

/* Events of an instance that has ended */
void lane_hub_lose(const struct epoll *ep)
{
	if (hub.inner == ep)
		hub.inner = NULL;
}

/* In a child: the parent goes on with its own. */
void lane_hub_forget(void)
{
	int fd;

	for (fd = lane_number_of(NULL, 0); fd >= 0; fd = lane_number_of(NULL, fd + 1)) {
		const struct private *p = lane_find_kind(fd, PRIVATE);

		if (!p || p->conn)
			continue;
		lane_table_set(fd, NULL);
		lane_call(SYS_close, fd);
	}
	memset(&hub, 0, sizeof(hub));
	hub.ep = hub.wake = -1;
}
