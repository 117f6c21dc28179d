/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * How http_kevent.c and http_calls.c wait: one queue with a ring, and changes of watches
 * that are made by the call that waits
 */
#ifndef HTTP_KEVENT_H
#define HTTP_KEVENT_H

#include <libkevent.h>

#include "http.h"

#ifndef RING
#define RING	1024
#define EVENTS	64
#define CHANGES	64
#endif
#define PATIENCE 16			/* turns until changes are made */

static KEVENT_RING_STORAGE(RING) ring;
static int queue;
static struct kevent_change changes[CHANGES];
static __u32 nr_changes;
static const struct timespec at_once;

static inline void hang_up(int fd)
{
	HTTP_CALL(kevent_close(queue, fd));
}

/* The descriptor of an event, or -1: it is of an earlier client. */
static inline int client_of(const struct ukevent *ev)
{
	int fd = (int)kevent_cookie_index(ev);

	return http_clients[fd].gen == kevent_cookie_gen(ev) ? fd : -1;
}

/* Closes connections that can't be watched. */
static inline void check_changes(void)
{
	const struct kevent_change *change;

	for (; nr_changes; nr_changes--) {
		change = &changes[nr_changes - 1];
		if (change->result < 0 && client_of(&change->uk) >= 0)
			hang_up(kevent_fd(&change->uk));
	}
}

static inline __u32 stored(void)
{
	return (__u32)__atomic_load_n(&ring.ring.ring_kidx, __ATOMIC_ACQUIRE);
}

/* Makes the changes; waits if the ring has nothing past @kidx. */
static inline void enter(__u32 kidx, const struct timespec *timeout)
{
	const struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.changes = KEVENT_ARG(changes), .nr_changes = nr_changes,
	};
	int ret = HTTP_CALL(kevent_wait(queue, RING, kidx, timeout,
					nr_changes ? KEVENT_FLAGS_ARG : 0,
					nr_changes ? &arg : NULL));

	if (ret < 0 && ret != -EINTR) {
		fprintf(stderr, "kevent_wait: %s\n", kevent_strerror(ret));
		exit(1);
	}
	check_changes();
}

static inline void watch(int fd, unsigned int events)
{
	struct http_client *c = &http_clients[fd];
	struct kevent_change *change = &changes[nr_changes];

	if (!(events & ~c->watched))
		return;
	kevent_set_socket(&change->uk, fd, events, KEVENT_REQ_ET,
			  kevent_cookie((__u32)fd, c->gen));
	change->cmd = c->watched ? KEVENT_CTL_MODIFY : KEVENT_CTL_ADD;
	c->watched = events;
	if (++nr_changes == CHANGES)
		enter(stored(), &at_once);
}

/*
 * The next events. The ring is looked at first: that is no call. Changes wait until it is
 * empty, but not for ever.
 */
static inline __u32 next_events(struct ukevent *ev)
{
	const struct timespec retry = { .tv_nsec = HTTP_RETRY_MS * 1000000L };
	static unsigned int turns;
	__u32 kidx = stored();
	__u32 nr = kevent_ring_pop(&ring.ring, RING, ev, EVENTS);

	if (nr) {
		if (nr_changes && ++turns % PATIENCE == 0)
			enter(kidx, &at_once);
		return nr;
	}
	enter(kidx, http_starved ? &retry : NULL);
	return kevent_ring_pop(&ring.ring, RING, ev, EVENTS);
}

static inline enum http_next next_of(const struct ukevent *ev, int fd)
{
	__u32 what = kevent_conditions(ev);

	return http_event(&http_clients[fd], what & KEVENT_SOCKET_RECV,
			  what & (KEVENT_POLL_POLLRDHUP | KEVENT_POLL_POLLHUP));
}

static inline void make_queue(void)
{
	queue = kevent_init(&ring.ring, RING, 0);
	if (queue < 0) {
		fprintf(stderr, "kevent_init: %s\n", kevent_strerror(queue));
		exit(1);
	}
}

#endif /* HTTP_KEVENT_H */
