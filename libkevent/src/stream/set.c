// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams: sets of them, and the queue
 *
 * The queue watches edges, so a socket with bytes that the program does not want yet makes no
 * events.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "api/look.h"
#include "api/raw_syscall.h"
#include "lane/parcel.h"
#include "stream.h"

/* --- the queue ----------------------------------------------------------- */

static int change_watch(const struct kevent_stream *s, __u32 cmd)
{
	struct ukevent ev;

	if (!s->set->q)
		return 0;
	kevent_set_socket(&ev, s->sock, KEVENT_SOCKET_RECV, KEVENT_REQ_ET, s->user);
	return kevent_ctl_one(s->set->q->fd, cmd, &ev);
}

/* Explicitly: another process may have copies of the socket. */
static void unwatch(struct kevent_stream *s)
{
	change_watch(s, KEVENT_CTL_REMOVE);
	if (s->awaits_out)
		kevent_stream_watch_out(s, KEVENT_CTL_REMOVE);
}

int kevent_stream_events(const struct kevent_stream *s)
{
	return POLLIN | POLLRDHUP | (s->awaits_out ? POLLOUT : 0);
}

static void see_input(struct kevent_stream *s, bool ends)
{
	if (!s->in.mem && s->out.mem)
		kevent_stream_poll_socket(s);
	if (s->in.mem && !s->in.last) {
		kevent_stream_drain(s, ends);
		if (!s->in.last && !s->sock_end && !s->error)
			return;
	}
	kevent_stream_queue(s);
}

int kevent_stream_ready(struct kevent_stream *s, int events)
{
	int ends = events & (POLLRDHUP | POLLHUP | POLLERR);

	if (!stream_is_here(s))
		return -EXDEV;
	if (events & POLLOUT) {
		s->awaits_out = false;
		kevent_stream_queue(s);
	}
	if (ends || (events & POLLIN))
		see_input(s, ends);
	return 0;
}

/* An event of the queue does not say whether the socket has ended, too. */
int kevent_stream_event(struct kevent_stream *s, const struct ukevent *ev)
{
	return kevent_stream_ready(s, ev->type == KEVENT_POLL ? POLLOUT : POLLIN | POLLRDHUP);
}

/* --- streams with something to do ---------------------------------------- */

static void pop(struct kevent_streams *set)
{
	struct kevent_stream *s = set->first;

	set->first = s->next_ready;
	if (!set->first)
		set->last = NULL;
	s->queued = false;
}

static void unqueue(struct kevent_stream *s)
{
	struct kevent_stream **at = &s->set->first, *last = NULL;

	if (!s->queued)
		return;
	for (; *at != s; at = &(*at)->next_ready)
		last = *at;
	*at = s->next_ready;
	if (s->set->last == s)
		s->set->last = last;
	s->queued = false;
}

static __u64 *ready_of(const struct pair *p)
{
	return p->side ? p->page->slot[p->slot].ready : p->page->ready;
}

static bool has_ready(const struct pair *p)
{
	const __u64 *ready = ready_of(p);
	__u64 all = 0;
	__u32 i;

	for (i = 0; i < PAIR_WORDS; i++)
		all |= lane_load(&ready[i]);
	return all;
}

static bool set_has_ready(const struct kevent_streams *set)
{
	const struct pair *p;

	if (set->first)
		return true;
	for (p = set->pairs; p; p = p->next)
		if (has_ready(p))
			return true;
	return false;
}

static void queue_chain(const struct pair *p, __u32 index)
{
	struct kevent_stream *s = p->chain[index & p->mask];

	for (; s; s = s->same)
		kevent_stream_queue(s);
}

/* Clears the bits, and then looks at the streams: so no later one is lost. */
static void take_ready(const struct pair *p)
{
	__u64 *ready = ready_of(p), bits;
	__u32 i;

	for (i = 0; i < PAIR_WORDS; i++) {
		if (!lane_load(&ready[i]))
			continue;
		bits = __atomic_exchange_n(&ready[i], 0, __ATOMIC_ACQUIRE);
		for (; bits; bits &= bits - 1)
			queue_chain(p, i * 64 + (__u32)__builtin_ctzll(bits));
	}
}

static void begin_round(struct kevent_streams *set)
{
	struct pair *p;

	set->in_round = true;
	set->round++;
	for (p = set->pairs; p; p = p->next)
		take_ready(p);
}

static void say_awake(struct kevent_streams *set)
{
	struct pair *p;

	if (!set->armed)
		return;
	set->armed = false;
	for (p = set->pairs; p; p = p->next)
		lane_store(pair_asleep(p), 0);
}

/*
 * Streams come in rounds. The first call of one takes the bits, the others do not, and no stream
 * comes twice. So a peer that sets bits all the time does not hold a loop until NULL, which ends
 * the round; a look and a sleep end it, too. Bits that are set in a round stay in the page, and
 * streams that come again in the list. There kevent_streams_arm() finds them, and the caller does
 * not sleep.
 */
struct kevent_stream *kevent_streams_next(struct kevent_streams *set)
{
	struct kevent_stream *s;

	if (!kevent_process_is(set->process))
		return NULL;
	say_awake(set);
	if (!set->in_round)
		begin_round(set);
	s = set->first;
	if (!s || s->round == set->round) {
		set->in_round = false;
		return NULL;
	}
	pop(set);
	s->round = set->round;
	/* A peer that leaves memory waits for this, whatever the program does. */
	stream_follow(s);
	unqueue(s);
	return s;
}

/* --- sleeping ------------------------------------------------------------ */

int kevent_streams_arm(struct kevent_streams *set)
{
	struct pair *p;

	if (!kevent_process_is(set->process))
		return -EXDEV;
	set->in_round = false;
	set->sleep++;
	set->armed = true;
	for (p = set->pairs; p; p = p->next)
		lane_store(pair_asleep(p), set->sleep);
	/* One barrier for all. Pairs with kevent_stream_notify() of each peer. */
	lane_full_barrier();
	if (!set_has_ready(set))
		return 0;
	say_awake(set);
	return 1;
}

static bool has_come(const void *what)
{
	const struct kevent_streams *set = what;

	return set_has_ready(set) ||
	       (set->q && kevent_ring_count(set->q->ring, set->q->size));
}

int kevent_streams_look(struct kevent_streams *set, const struct timespec *timeout)
{
	if (!kevent_process_is(set->process))
		return -EXDEV;
	set->in_round = false;
	return set_has_ready(set) ||
	       (set->looks && kevent_look(&set->look, set->looks, timeout, has_come, set));
}

int kevent_streams_get(struct kevent_streams *set, struct ukevent *ev, __u32 max,
		       const struct timespec *timeout)
{
	int ret;

	if (!set->q)
		return -EINVAL;
	ret = kevent_streams_look(set, timeout);
	if (ret < 0)
		return ret;
	if (ret || kevent_streams_arm(set))
		return kevent_lane_get_beside(&set->skipped, set->q, ev, max);
	ret = kevent_queue_get(set->q, ev, max, timeout);
	say_awake(set);
	return ret;
}

/* --- making and ending --------------------------------------------------- */

/*
 * A number of a sleep is not used again, also not by another set that has taken the same slot
 * of a page later: a set does not sleep once in a nanosecond.
 */
static __u64 first_sleep(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return kevent_ns(&now) + 1;
}

int kevent_streams_new(struct kevent_streams **set, struct kevent_queue *q, __u32 looks)
{
	int saved = errno;

	if (looks && looks != KEVENT_LOOKS_LEARNED)
		return -EINVAL;
	*set = calloc(1, sizeof(**set));
	errno = saved;
	if (!*set)
		return -ENOMEM;
	(*set)->q = q;
	(*set)->looks = looks;
	(*set)->sleep = first_sleep();
	(*set)->process = kevent_process_mark();
	return 0;
}

void kevent_streams_free(struct kevent_streams *set)
{
	if (!set)
		return;
	while (set->all)
		kevent_stream_close(set->all);
	kevent_pairs_free(set);
	free(set);
}

static void enter(struct kevent_streams *set, struct kevent_stream *s)
{
	s->next = set->all;
	s->prev = &set->all;
	if (s->next)
		s->next->prev = &s->next;
	set->all = s;
}

int kevent_stream_open(struct kevent_streams *set, int sock, __u32 flags, __u64 user,
		       struct kevent_stream **stream)
{
	struct kevent_stream *s;
	int ret, saved = errno;

	if (!kevent_process_is(set->process))
		return -EXDEV;
	ret = (flags & ~KEVENT_STREAM_OFFER) || !kevent_parcel_socket(sock) ? -EINVAL : 0;
	errno = saved;
	if (ret)
		return ret;
	/* Aligned to lines of a cache by the shared memory only. */
	s = calloc(1, sizeof(*s));
	errno = saved;
	if (!s)
		return -ENOMEM;
	s->set = set;
	s->sock = sock;
	s->fd = -1;
	s->user = user;
	s->offers = flags & KEVENT_STREAM_OFFER;
	s->asks = !s->offers;
	ret = change_watch(s, KEVENT_CTL_ADD);
	if (ret < 0) {
		free(s);
		return ret;
	}
	enter(set, s);
	*stream = s;
	return 0;
}

/*
 * The peer reads what there is, and then the end; and it writes no more. It rings by other streams
 * for later sleeps. Pairs with kevent_stream_notify() of the peer.
 */
static void say_closed(struct kevent_stream *s)
{
	if (!s->mem || s->error || s->fd >= 0 ||
	    (state_of(s->phase) == STREAM_OFFER0 + s->side && kevent_stream_withdraw(s)))
		return;
	stream_follow(s);
	lane_store(&s->me->gone, 1);
	if (!s->out.mem)
		return;
	lane_store(&s->me->closed, s->out.head + 1);
	kevent_stream_notify(s);
}

void kevent_stream_close(struct kevent_stream *s)
{
	int saved = errno;

	if (!s)
		return;
	if (stream_is_here(s)) {
		unwatch(s);
		say_closed(s);
	}
	unqueue(s);
	kevent_stream_unmap(s);
	kevent_close_fd(s->sock);
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	free(s->in.kept);
	free(s);
	errno = saved;
}

int kevent_stream_fd(const struct kevent_stream *s)
{
	return s->sock;
}

__u64 kevent_stream_user(const struct kevent_stream *s)
{
	return s->user;
}

int kevent_stream_memory(const struct kevent_stream *s)
{
	return (s->out.mem ? KEVENT_STREAM_SENDS : 0) |
	       (s->in.mem ? KEVENT_STREAM_RECEIVES : 0);
}
