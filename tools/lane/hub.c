// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the queue, and sleeping
 *
 * A process has one queue and one set of streams. Of the threads that sleep, the leader
 * watches the queue. All have an eventfd, by which a thread that has taken something from
 * the set, or has ended the sleep of the leader, wakes them to look again.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <sys/single_threaded.h>
#include <time.h>

#include "lane.h"

#define RING_SIZE	64U

struct hub {
	struct kevent_queue		q;
	struct kevent_streams		*set;
	KEVENT_RING_STORAGE(RING_SIZE)	mem;
};

struct sleeper {
	LIST_ENTRY(sleeper)	all;
	int			fd;
};

static struct hub *hub;
static LIST_HEAD(, sleeper) sleepers = LIST_HEAD_INITIALIZER(sleepers);
static const struct sleeper *leader;
static __thread bool leading __attribute__((tls_model("initial-exec")));
static const struct timespec no_time;

/* The program shall not close it. */
bool lane_make_private(int fd, struct conn *c)
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

static bool make_hub(void)
{
	struct hub *h;

	h = aligned_alloc(64, (sizeof(*h) + 63) & ~63UL);
	if (!h)
		return false;
	memset(h, 0, sizeof(*h));
	if (kevent_queue_init(&h->q, &h->mem.ring, RING_SIZE, 0)) {
		free(h);
		return false;
	}
	if (kevent_streams_new(&h->set, &h->q, lane_settings.looks)) {
		kevent_queue_close(&h->q);
		free(h);
		return false;
	}
	hub = h;
	lane_make_private(h->q.fd, NULL);
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

void lane_wake_all(void)
{
	const __u64 one = 1;
	const struct sleeper *s;

	LIST_FOREACH(s, &sleepers, all)
		if (s->fd >= 0 && real()->write(s->fd, &one, sizeof(one)) < 0)
			continue;
}

/* If the leader sleeps, its peers are told so again. */
void lane_dispatch(void)
{
	struct kevent_stream *s;
	bool any = false;

	if (!hub)
		return;
	do {
		while ((s = kevent_streams_next(hub->set))) {
			struct conn *c = conn_of(kevent_stream_user(s));

			if (c)
				lane_conn_serve(c);
			any = true;
		}
	} while (leader && kevent_streams_arm(hub->set) == 1);
	if (any)
		lane_wake_all();
}

static bool see_events(const struct ukevent *ev, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		struct conn *c = conn_of(ev[i].ptr);

		if (c && c->s)
			kevent_stream_event(c->s, &ev[i]);
	}
	return nr > 0;
}

void lane_take_events(void)
{
	struct ukevent ev[RING_SIZE];

	if (hub)
		see_events(ev, kevent_queue_get(&hub->q, ev, RING_SIZE, &no_time));
}

/* --- sleeping ------------------------------------------------------------ */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t lane_deadline(int64_t span)
{
	return span < 0 ? FOREVER : span ? now_ns() + span : 0;
}

bool lane_is_over(int64_t deadline)
{
	return deadline >= 0 && (!deadline || now_ns() >= deadline);
}

static int real_sleep(struct pollfd *fds, nfds_t nr, int64_t deadline, const sigset_t *mask)
{
	int64_t left = deadline < 0 ? 0 : deadline ? deadline - now_ns() : 0;
	struct timespec span;

	if (left < 0)
		left = 0;
	span.tv_sec = left / 1000000000;
	span.tv_nsec = left % 1000000000;
	return real()->ppoll(fds, nr, deadline < 0 ? NULL : &span, mask) < 0 ? -errno : 0;
}

/* Before the sleep: as often as the user has asked for */
static bool look(void)
{
	struct ukevent ev[RING_SIZE];

	if (!lane_settings.looks)
		return false;
	return see_events(ev, kevent_streams_get(hub->set, ev, RING_SIZE, &no_time));
}

/* @outer: the sleep of this thread that a signal handler, which sleeps, has interrupted */
static void wake_up(struct sleeper *me, const struct sleeper *outer)
{
	LIST_REMOVE(me, all);
	if (me->fd >= 0)
		real()->close(me->fd);
	if (leader != me)
		return;
	leader = outer;
	leading = outer;
	lane_take_events();
	lane_dispatch();
	lane_wake_all();
}

/*
 * Sleeps until there may be something to do, or one of @fds from the third on is ready:
 * the first two are used here. What was ready before is to be looked at before, in the same
 * section of the lock. Return: 0, -EINTR or another error.
 */
int lane_sleep(struct pollfd *fds, nfds_t nr, int64_t deadline, const sigset_t *mask)
{
	const struct sleeper *outer = leading ? leader : NULL;
	struct sleeper me = { .fd = -1 };
	int ret;

	fds[0] = (struct pollfd){ .fd = -1 };
	fds[1] = (struct pollfd){ .fd = -1 };
	if (hub && (!leader || leading)) {
		if (look() || kevent_streams_arm(hub->set) == 1) {
			lane_dispatch();
			return 0;
		}
		leader = &me;
		leading = true;
		fds[0] = (struct pollfd){ .fd = hub->q.fd, .events = POLLIN };
	}
	if (!__libc_single_threaded) {
		me.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (me.fd < 0 && leader != &me)
			return -errno;
		fds[1] = (struct pollfd){ .fd = me.fd, .events = POLLIN };
	}
	LIST_INSERT_HEAD(&sleepers, &me, all);
	lane_stats.sleeps++;
	lane_interrupted = 0;
	lane_unlock();
	/* A handler that was put off has run now. */
	ret = lane_interrupted ? -EINTR : real_sleep(fds, nr, deadline, mask);
	lane_lock();
	wake_up(&me, outer);
	return ret;
}

/* In a child: the parent goes on with its own. */
void lane_hub_forget(void)
{
	LIST_INIT(&sleepers);
	leader = NULL;
	leading = false;
	if (!hub)
		return;
	lane_table_set(hub->q.fd, NULL);
	kevent_queue_close(&hub->q);
	hub = NULL;
}
