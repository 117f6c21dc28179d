// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Lanes: sleeping, being woken, and sets of lanes
 *
 * The bell is an eventfd, or a byte through the socket. It can't be a mark on the
 * peer's queue: who has a queue can take its events, and queues of the fallback work
 * in one process only. Nobody reads the eventfd: the watch reports edges.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "api/look.h"
#include "api/queue.h"
#include "api/raw_syscall.h"
#include "fallback/fallback.h"
#include "lane.h"
#include "rung.h"

#define TURN		64	/* messages of one lane while others may have some */
#define IDLE		64	/* looks in vain after which a lane sleeps */
#define SKIPS		64	/* waits that a message replaces, up to a call */

/* --- the queue ----------------------------------------------------------- */

static void set_bell(struct ukevent *ev, const struct kevent_lane *l, __u64 user)
{
	kevent_set_poll(ev, l->bell, POLLIN, KEVENT_REQ_ET, user);
}

/* A level watch: the end of the peer may be behind bytes that ring. */
static void set_sock(struct ukevent *ev, const struct kevent_lane *l, __u64 user)
{
	kevent_set_socket(ev, l->sock, KEVENT_SOCKET_RECV, 0, user);
}

int kevent_lane_watch(struct kevent_lane *l, int fd, __u64 user)
{
	struct ukevent ev;
	int ret;

	if (!kevent_process_is(l->process))
		return -EXDEV;
	if (l->sock < 0)
		return -EINVAL;
	if (l->queue >= 0)
		return -EEXIST;
	set_sock(&ev, l, user);
	ret = kevent_ctl_one(fd, KEVENT_CTL_ADD, &ev);
	if (ret < 0)
		return ret;
	l->queue = fd;
	if (l->bell < 0)
		return 0;
	set_bell(&ev, l, user);
	ret = kevent_ctl_one(fd, KEVENT_CTL_ADD, &ev);
	if (ret < 0)
		kevent_lane_unwatch(l);
	return ret;
}

/* Explicitly: the peer has the eventfd open, too. */
void kevent_lane_unwatch(struct kevent_lane *l)
{
	struct ukevent ev;

	if (l->queue < 0)
		return;
	set_sock(&ev, l, 0);
	kevent_ctl_one(l->queue, KEVENT_CTL_REMOVE, &ev);
	if (l->bell >= 0) {
		set_bell(&ev, l, 0);
		kevent_ctl_one(l->queue, KEVENT_CTL_REMOVE, &ev);
	}
	l->queue = -1;
}

/* Bytes that ring say nothing; the end of the socket does. */
static void read_socket(struct kevent_lane *l)
{
	char bytes[256];
	long ret;

	ret = kevent_call6(SYS_recvfrom, l->sock, (long)bytes, sizeof(bytes),
			   MSG_DONTWAIT, 0, 0);
	if (ret > 0 || ret == -EAGAIN || ret == -EINTR || ret == -ENOMEM)
		return;
	/* All that the peer had published before can be seen after this. */
	__atomic_store_n(&l->gone, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&l->stopped, 1, __ATOMIC_RELEASE);
	kevent_lane_unwatch(l);
}

/* --- sleeping ------------------------------------------------------------ */

/* A child has copies of its parent's sets of lanes: there these two do nothing. */

/* @sleep is that of a set, 0: the lane's own. */
static void say_asleep(struct kevent_lane *l, __u64 sleep)
{
	if (!kevent_process_is(l->process))
		return;
	lane_store(&l->me->asleep, sleep ? sleep : ++l->in.sleep);
	l->in.armed = sleep ? LANE_ASLEEP_IN_SET : LANE_ASLEEP;
}

static void say_awake(struct kevent_lane *l)
{
	if (l->in.armed && kevent_process_is(l->process))
		lane_store(&l->me->asleep, 0);
	l->in.armed = LANE_AWAKE;
}

/* Is there something that a sleeper would not be woken for any more? */
static bool is_satisfied(const struct kevent_lane *l)
{
	return lane_has_message(l) || lane_state(l) || lane_gone(l) ||
	       lane_load(&l->peer->closed);
}

int kevent_lane_arm(struct kevent_lane *l)
{
	if (!kevent_process_is(l->process))
		return -EXDEV;
	if (!l->mem)
		return 1;
	say_asleep(l, 0);
	/* Pairs with wake_sleeper() of the peer. */
	lane_full_barrier();
	if (!is_satisfied(l))
		return 0;
	say_awake(l);
	return 1;
}

int kevent_lane_get_beside(__u32 *skipped, struct kevent_queue *q, struct ukevent *ev,
			   __u32 max)
{
	static const struct timespec no_time;

	if (++*skipped % SKIPS)
		return kevent_queue_pop(q, ev, max);
	return kevent_queue_get(q, ev, max, &no_time);
}

/* --- hand-off ------------------------------------------------------------ */

/* Sends, and says whether the peer has to be woken. */
static int send_held(struct kevent_lane *l, const void *data, __u32 len,
		     bool *due)
{
	int ret;

	l->out.hold = LANE_RING_LATER;
	ret = kevent_lane_send(l, data, len);
	*due = l->out.hold == LANE_RING_DUE;
	l->out.hold = LANE_RING_NOW;
	return ret;
}

/* It counts as rung for since send_held(). */
static void ring_late(struct kevent_lane *l)
{
	if (!kevent_lane_ring(l))
		l->out.rung = 0;
}

/*
 * The wait rings, so that the peer runs on this CPU as soon as this side sleeps. A fallback
 * would write to the bell, too, after it has found out what that is.
 */
static int ring_and_get(struct kevent_lane *l, struct kevent_queue *q,
			struct ukevent *ev, __u32 max,
			const struct timespec *timeout)
{
	bool rung = false;
	int ret;

	if (kevent_lane_arm(l))
		ret = kevent_lane_get_beside(&l->skipped, q, ev, max);
	else
		ret = kevent_queue_ring_and_get(q, ev, max, timeout,
						l->peer_bell, &rung);
	if (!rung)
		ring_late(l);
	return ret;
}

int kevent_lane_send_get(struct kevent_lane *l, const void *data, __u32 len,
			 struct kevent_queue *q, struct ukevent *ev, __u32 max,
			 const struct timespec *timeout)
{
	bool due;
	int ret;

	/* The watch has ended with the peer. */
	if (lane_gone(l))
		return kevent_lane_send(l, data, len);
	if (!max || l->queue < 0 || l->queue != q->fd ||
	    (timeout && !kevent_timespec_valid(timeout)))
		return -EINVAL;
	/* The wait would fail when the message was sent. */
	if (!kevent_process_is(q->process))
		return -EXDEV;
	ret = send_held(l, data, len, &due);
	if (ret)
		return ret;
	if (due && l->peer_bell >= 0 && !kevent_fb_names(q->fd))
		return ring_and_get(l, q, ev, max, timeout);
	if (due)
		ring_late(l);
	return kevent_lane_arm(l) ? kevent_lane_get_beside(&l->skipped, q, ev, max) :
				    kevent_queue_get(q, ev, max, timeout);
}

/* --- sets ---------------------------------------------------------------- */

static void set_add_hot(struct kevent_lanes *set, struct kevent_lane *l)
{
	struct kevent_lane *at = set->hot;

	if (!at) {
		l->next = l;
		l->prev = l;
		set->hot = l;
	} else {
		l->next = at;
		l->prev = at->prev;
		at->prev->next = l;
		at->prev = l;
	}
	l->in.empty = 0;
	set->nr_hot++;
}

static void set_drop_hot(struct kevent_lanes *set, struct kevent_lane *l)
{
	if (set->hot == l) {
		set->hot = l->next == l ? NULL : l->next;
		set->turn = 0;
	}
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = NULL;
	l->prev = NULL;
	set->nr_hot--;
}

void kevent_lanes_init(struct kevent_lanes *set, __u32 looks)
{
	*set = (struct kevent_lanes){ .looks = looks };
}

void kevent_lanes_add(struct kevent_lanes *set, struct kevent_lane *l)
{
	l->set = set;
	set_add_hot(set, l);
}

/*
 * A peer may have rung by this lane for all: the queue will not hear of that. The peer of another
 * lane may have filled its bell: that one has no new event, and wakes nobody.
 */
static void pass_bell(const struct kevent_lane *l)
{
	const struct kevent_lane *other;
	const __u64 one = 1;

	if (l->in.armed != LANE_ASLEEP_IN_SET || !kevent_process_is(l->process))
		return;
	for (other = l->next; other != l; other = other->next) {
		if (other->in.armed != LANE_ASLEEP_IN_SET)
			continue;
		if (kevent_call6(SYS_write, other->bell, (long)&one, sizeof(one),
				 0, 0, 0) == sizeof(one))
			return;
	}
}

void kevent_lanes_remove(struct kevent_lane *l)
{
	if (l->set && l->next) {
		pass_bell(l);
		set_drop_hot(l->set, l);
	}
	l->set = NULL;
}

int kevent_lane_event(struct kevent_lane *l, const struct ukevent *ev)
{
	if (!kevent_process_is(l->process))
		return -EXDEV;
	if (ev->type == KEVENT_SOCKET && l->sock >= 0 && !lane_gone(l))
		read_socket(l);
	say_awake(l);
	if (l->set && !l->next)
		set_add_hot(l->set, l);
	return lane_gone(l);
}

static void next_turn(struct kevent_lanes *set)
{
	set->hot = set->hot->next;
	set->turn = 0;
}

/* A lane without messages for long says that this side sleeps, and leaves. */
static void found_empty(struct kevent_lanes *set, struct kevent_lane *l)
{
	next_turn(set);
	if (++l->in.empty > IDLE && !kevent_lane_arm(l))
		set_drop_hot(set, l);
}

int kevent_lanes_recv(struct kevent_lanes *set, struct kevent_lane **from,
		      void *buf, __u32 size)
{
	struct kevent_lane *l;
	__u32 left;
	int ret;

	for (left = set->nr_hot; left; left--) {
		l = set->hot;
		ret = kevent_lane_recv(l, buf, size);
		if (ret == -EAGAIN || ret == -EOPNOTSUPP) {
			found_empty(set, l);
			continue;
		}
		*from = l;
		if (ret < 0 || ++set->turn >= TURN)
			next_turn(set);
		return ret;
	}
	return -EAGAIN;
}

static void set_awake(struct kevent_lanes *set)
{
	struct kevent_lane *l = set->hot;
	__u32 left;

	for (left = set->nr_hot; left; left--, l = l->next)
		say_awake(l);
}

static bool set_is_satisfied(const struct kevent_lanes *set)
{
	const struct kevent_lane *l = set->hot;
	__u32 left;

	for (left = set->nr_hot; left; left--, l = l->next)
		if (is_satisfied(l))
			return true;
	return false;
}

int kevent_lanes_arm(struct kevent_lanes *set)
{
	struct kevent_lane *l = set->hot;
	__u64 sleep = l ? kevent_rung_sleep(l->process) : 0;
	__u32 left;

	/* pass_bell() has no bell that is the socket. */
	for (left = set->nr_hot; left; left--, l = l->next)
		say_asleep(l, l->bell < 0 ? 0 : sleep);
	/* One barrier for all. Pairs with wake_sleeper() of each peer. */
	lane_full_barrier();
	if (!set_is_satisfied(set))
		return 0;
	set_awake(set);
	return 1;
}

/* The aims of a wait: messages, and events that are in the ring */
struct awaited {
	const struct kevent_lanes *set;
	const struct kevent_queue *q;
};

static bool has_come(const void *what)
{
	const struct awaited *w = what;

	return set_is_satisfied(w->set) || kevent_ring_count(w->q->ring, w->q->size);
}

int kevent_lanes_get(struct kevent_lanes *set, struct kevent_queue *q,
		     struct ukevent *ev, __u32 max,
		     const struct timespec *timeout)
{
	const struct awaited w = { .set = set, .q = q };
	int ret;

	if ((set->looks && kevent_look(&set->look, set->looks, timeout, has_come, &w)) ||
	    kevent_lanes_arm(set))
		return kevent_lane_get_beside(&set->skipped, q, ev, max);
	ret = kevent_queue_get(q, ev, max, timeout);
	set_awake(set);
	return ret;
}
