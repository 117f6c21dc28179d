// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams: from the socket to memory, and back
 *
 * Each direction changes by itself, when both sides have agreed. To memory: its sender says
 * how many bytes went through the socket; what comes there later are bells. To the socket: the
 * last bell is STREAM_BACK. A receiver reads bells in bulk, so it must know before that one
 * may come: the sender waits until the receiver has said that it is leaving.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "api/raw_syscall.h"
#include "stream.h"

#define MAX_READS	1024	/* of bells; a peer that plays by the rules has fewer */

/* Both directions have gone through the memory of this turn, and are back. */
static bool is_back(const struct kevent_stream *s)
{
	__u64 turn = turn_of(s->phase);

	return !s->out.mem && !s->in.mem && s->out.turn == turn && s->in.turn == turn;
}

/* --- bells --------------------------------------------------------------- */

/* One read: 1: there may be more, 0: there are none, -EPROTO: that was no bell. */
static int read_bells(struct kevent_stream *s, bool one, bool ends)
{
	unsigned char bytes[256];
	long i, nr = kevent_call6(SYS_recvfrom, s->sock, (long)bytes,
				  one ? 1 : (long)sizeof(bytes), MSG_DONTWAIT, 0, 0);

	if (nr == -EAGAIN || nr == -ENOMEM)
		return 0;
	if (nr <= 0 && nr != -EINTR) {
		/* All that the peer has published before can be seen after this. */
		s->sock_end = true;
		return 0;
	}
	for (i = 0; i < nr; i++) {
		if (one && bytes[i] == STREAM_BACK) {
			s->in.last = true;
			return 0;
		}
		if (bytes[i] != STREAM_BELL)
			return stream_break(s);
	}
	return one || ends || nr < 0 || nr == (long)sizeof(bytes);
}

/*
 * Reads all bells: edges are watched, and so what is left there would never be reported.
 * @ends: an end may be behind them, too, which has no edge of its own any more.
 */
int kevent_stream_drain(struct kevent_stream *s, bool ends)
{
	bool one = state_of(s->phase) == STREAM_SOCKET;
	int i, ret = 1;

	for (i = 0; ret > 0 && !s->in.last && !s->sock_end; i++) {
		if (i == MAX_READS)
			return stream_break(s);
		ret = read_bells(s, one, ends);
	}
	return ret < 0 ? ret : 0;
}

/*
 * A peer that has ended both directions of the socket has gone: it publishes no more. The bells
 * are read first, as the last one of them may be there, with bytes behind it.
 */
int kevent_stream_poll_socket(struct kevent_stream *s)
{
	struct pollfd fd = { .fd = s->sock, .events = POLLIN | POLLOUT | POLLRDHUP };
	struct timespec none = { .tv_sec = 0 };

	if (kevent_call6(SYS_ppoll, (long)&fd, 1, (long)&none, 0, 0, 0) != 1)
		return 0;
	if ((fd.revents & POLLHUP) && s->in.mem)
		kevent_stream_drain(s, true);
	s->sock_end |= fd.revents & POLLHUP;
	return fd.revents;
}

/* --- to memory ----------------------------------------------------------- */

/* The offer was accepted: which page has the peer chosen? */
static int find_pair(struct kevent_stream *s)
{
	__u64 slot = lane_load(&s->mem->slot);

	if (slot > PAIR_SLOTS || (slot && !s->page))
		return stream_break(s);
	if (!slot) {
		/* Nothing is known of the slots of the page; the next streams have another. */
		if (s->page)
			s->page->full = true;
		kevent_pair_enter(s, &s->own, 0);
	} else {
		kevent_pair_enter(s, s->page, (__u32)slot - 1);
	}
	return 0;
}

static int join_out(struct kevent_stream *s)
{
	int ret = s->pair ? 0 : find_pair(s);

	if (ret)
		return ret;
	s->out.mem = true;
	s->out.turn = turn_of(s->phase);
	lane_store(&s->me->raw, s->out.raw);
	lane_store(&s->me->joined, s->out.turn);
	/* The peer cannot leave before it knows. */
	if (state_of(s->phase) == STREAM_SOCKET)
		kevent_stream_notify(s);
	return 0;
}

/* All that went through the socket was read: what is there now are bells. */
static int join_in(struct kevent_stream *s)
{
	__u64 raw;

	if (lane_load(&s->peer->joined) != turn_of(s->phase))
		return 0;
	raw = lane_load(&s->peer->raw);
	if (s->in.raw > raw)
		return stream_break(s);
	if (s->in.raw < raw)
		return 0;
	s->in.mem = true;
	s->in.turn = turn_of(s->phase);
	s->in.last = false;
	/* Its edges may be gone, so it is read here; the program may be writing only. */
	kevent_stream_queue(s);
	return kevent_stream_drain(s, true);
}

/* --- to the socket ------------------------------------------------------- */

/*
 * A side that has said that it is leaving reads bells one by one. It does not say so
 * before it reads bells at all. Both say so and then look: one of them sees the other, and
 * the bell of that one wakes the other.
 */
static void leave_out(struct kevent_stream *s)
{
	const unsigned char last = STREAM_BACK;
	long ret;

	if (s->in.turn != turn_of(s->phase))
		return;
	lane_store(&s->me->leaving, turn_of(s->phase));
	lane_full_barrier();
	if (lane_load(&s->peer->leaving) != turn_of(s->phase))
		return;
	ret = kevent_call6(SYS_sendto, s->sock, (long)&last, 1,
			   MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
	if (ret == -EAGAIN || ret == -ENOMEM || ret == -ENOBUFS || ret == -EINTR) {
		kevent_stream_await_out(s);
		return;
	}
	s->out.mem = false;
	if (s->out.shut)
		kevent_call6(SYS_shutdown, s->sock, SHUT_WR, 0, 0, 0, 0);
}

static void leave_in(struct kevent_stream *s)
{
	__u64 closed = lane_load(&s->peer->closed);

	if (lane_load(&s->peer->head) != s->in.tail || stream_has_kept(s))
		return;
	s->in.mem = false;
	s->in.end = closed == s->in.tail + 1;
	kevent_stream_queue(s);
}

/* --- the phase ----------------------------------------------------------- */

/* Accepts the offer of the peer, unless it has gone back on it. */
static void accept_again(struct kevent_stream *s, __u64 phase)
{
	__u64 agreed = phase_of(turn_of(phase), STREAM_MEMORY);

	if (s->hold || s->out.shut || !is_back(s) || stream_has_kept(s) ||
	    !stream_swap(&s->mem->phase, phase, agreed))
		return;
	s->phase = agreed;
	s->out.announce = true;
}

static int see_phase(struct kevent_stream *s, __u64 phase)
{
	__u64 turn = turn_of(s->phase), state = state_of(s->phase);
	bool mine = state == STREAM_OFFER0 + s->side;

	if ((phase == phase_of(turn, STREAM_MEMORY) && mine) ||
	    (phase == phase_of(turn, STREAM_SOCKET) && (mine || state == STREAM_MEMORY)))
		s->phase = phase;
	else if (state == STREAM_SOCKET &&
		 phase == phase_of(turn + 1, STREAM_OFFER0 + !s->side))
		accept_again(s, phase);
	else if (phase != s->phase)
		return stream_break(s);
	return 0;
}

static bool is_settled(const struct kevent_stream *s)
{
	if (state_of(s->phase) == STREAM_MEMORY)
		return s->out.mem && s->in.mem;
	return state_of(s->phase) != STREAM_SOCKET || is_back(s);
}

int kevent_stream_catch_up(struct kevent_stream *s, __u64 phase)
{
	int ret = see_phase(s, phase);
	bool agreed = state_of(s->phase) == STREAM_MEMORY ||
		      state_of(s->phase) == STREAM_SOCKET;

	if (!ret && agreed && s->out.turn != turn_of(s->phase))
		ret = join_out(s);
	if (!ret && agreed && s->in.turn != turn_of(s->phase))
		ret = join_in(s);
	if (!ret && s->out.mem && state_of(s->phase) == STREAM_SOCKET)
		leave_out(s);
	if (!ret && s->in.mem && s->in.last)
		leave_in(s);
	s->settled = is_settled(s);
	return ret;
}

/* Goes back on an offer. False: it was accepted. */
bool kevent_stream_withdraw(struct kevent_stream *s)
{
	__u64 turn = turn_of(s->phase);
	bool first = turn == 1;

	if (!stream_swap(&s->mem->phase, s->phase,
			 phase_of(first ? turn : turn - 1, STREAM_SOCKET)))
		return false;
	if (first) {
		s->out.turn = turn;
		s->in.turn = turn;
	}
	s->phase = phase_of(first ? turn : turn - 1, STREAM_SOCKET);
	return true;
}

/*
 * Has the peer gone before it has left? Its bytes were read up to the end. The last bell may be
 * there, too: it is read first.
 */
static bool has_gone(struct kevent_stream *s)
{
	bool gone;

	if (!s->in.end || stream_has_kept(s) || is_back(s))
		return false;
	gone = lane_load(&s->peer->gone);
	kevent_stream_poll_socket(s);
	if (gone && s->in.mem)
		kevent_stream_drain(s, true);
	return gone || s->sock_end;
}

/* The peer may do the same at this time. */
static void end_memory(struct kevent_stream *s)
{
	if (stream_swap(&s->mem->phase, s->phase,
			phase_of(turn_of(s->phase), STREAM_SOCKET)))
		kevent_stream_notify(s);
}

int kevent_stream_leave(struct kevent_stream *s)
{
	bool gone;
	int ret;

	if (!stream_is_here(s))
		return -EXDEV;
	s->hold = true;
	s->asks = false;
	s->offers = false;
	if (s->fd >= 0)
		kevent_stream_unmap(s);
	ret = stream_follow(s);
	if (ret || !s->mem)
		return ret;
	if (state_of(s->phase) == STREAM_OFFER0 + s->side && kevent_stream_withdraw(s))
		return 0;
	gone = has_gone(s);
	ret = stream_follow(s);
	if (!ret && state_of(s->phase) == STREAM_MEMORY)
		end_memory(s);
	if (!ret)
		ret = stream_follow(s);
	if (ret)
		return ret;
	/* Kept bytes would come behind those of the socket. */
	if (is_back(s) && !stream_has_kept(s))
		return 0;
	return gone ? -EPIPE : -EAGAIN;
}

int kevent_stream_join(struct kevent_stream *s, __u64 sent, __u64 received)
{
	__u64 phase;

	if (!stream_is_here(s))
		return -EXDEV;
	if (s->error)
		return s->error;
	if (s->out.shut)
		return -EPIPE;
	if (s->hold && s->mem && !is_back(s))
		return -EAGAIN;
	s->out.raw += sent;
	s->in.raw += received;
	s->hold = false;
	if (!s->mem || state_of(s->phase) != STREAM_SOCKET || !is_back(s))
		return 0;
	phase = phase_of(turn_of(s->phase) + 1, STREAM_OFFER0 + s->side);
	/* The peer has offered before, if it fails. */
	if (stream_swap(&s->mem->phase, s->phase, phase))
		s->phase = phase;
	return stream_follow(s);
}
