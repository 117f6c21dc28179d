// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams: reading and writing
 *
 * A word that the peer writes is loaded once, into a local variable, and checked there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "api/raw_syscall.h"
#include "stream.h"

#define MAX_IOV		1024U
#define MAX_TURNS	8	/* changes between socket and memory in one call */
#define AGAIN		(-4096)	/* no errno: there was a change */
#define KEPT		(1U << 20)	/* most bytes; sockets with usual limits have fewer */
#define KEPT_STEP	16384U

static size_t length(const struct iovec *iov, unsigned int nr)
{
	size_t len = 0;

	while (nr--)
		len += iov[nr].iov_len;
	return len;
}

/* --- through the socket -------------------------------------------------- */

static long call_msg(const struct kevent_stream *s, long call, const struct iovec *iov,
		     unsigned int nr, int flags)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov };

	/* Its type differs from libc to libc. */
	msg.msg_iovlen = (__typeof__(msg.msg_iovlen))nr;
	return kevent_call6(call, s->sock, (long)&msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL,
			    0, 0, 0);
}

static ssize_t write_socket(struct kevent_stream *s, const struct iovec *iov,
			    unsigned int nr)
{
	long ret = 0;

	if (s->offers)
		ret = kevent_stream_offer(s, iov, nr);
	if (!ret)
		ret = call_msg(s, SYS_sendmsg, iov, nr, 0);
	if (ret > 0)
		s->out.raw += (__u64)ret;
	else if (ret == -EAGAIN)
		kevent_stream_await_out(s);
	return ret;
}

/*
 * How many of the @nr bytes that were read are bytes of the stream? The peer may have
 * joined meanwhile: then bells are behind them.
 */
static ssize_t without_bells(struct kevent_stream *s, long nr, bool peek)
{
	__u64 at = s->in.raw + (__u64)nr, raw;

	if (s->mem && lane_load(&s->peer->joined) == s->in.turn + 1) {
		raw = lane_load(&s->peer->raw);
		if (raw < s->in.raw)
			return stream_break(s);
		if (at > raw)
			at = raw;
	}
	nr = (long)(at - s->in.raw);
	if (!peek)
		s->in.raw = at;
	return nr ? nr : AGAIN;
}

static ssize_t read_socket(struct kevent_stream *s, const struct iovec *iov,
			   unsigned int nr, bool peek)
{
	long ret;
	int error;

	if (s->asks && !peek) {
		ret = kevent_stream_accept(s, iov, nr);
		error = stream_follow(s);
		if (error)
			return error;
	} else {
		ret = call_msg(s, SYS_recvmsg, iov, nr, peek ? MSG_PEEK : 0);
	}
	if (ret > 0)
		return without_bells(s, ret, peek);
	if (ret && ret != -EAGAIN && ret != -ECONNRESET)
		return ret;
	/* There may be more in the memory. */
	error = stream_follow(s);
	if (error)
		return error;
	if (s->in.mem) {
		/* Behind the last byte of the memory it is the end of one direction. */
		s->sock_end |= ret != -EAGAIN && !s->in.last;
		return AGAIN;
	}
	/* A bell that the peer has not read is no byte that it has not read. None rang before. */
	if (ret == -ECONNRESET && s->pair)
		ret = 0;
	s->in.end |= !ret;
	return ret;
}

/* --- kept from the socket ------------------------------------------------ */

static void forget_kept(struct stream_in *in)
{
	free(in->kept);
	in->kept = NULL;
	in->kept_at = 0;
	in->kept_end = 0;
}

/* 1: there may be more, 0: there are none, or there is no memory for them. */
static int keep_some(struct kevent_stream *s)
{
	struct stream_in *in = &s->in;
	struct iovec iov = { .iov_len = KEPT_STEP };
	unsigned char *kept;
	ssize_t ret;

	if (in->kept_end > KEPT - KEPT_STEP)
		return 0;
	kept = realloc(in->kept, in->kept_end + KEPT_STEP);
	if (!kept) {
		/* The program is asked to try again. */
		kevent_stream_queue(s);
		return 0;
	}
	in->kept = kept;
	iov.iov_base = kept + in->kept_end;
	ret = call_msg(s, SYS_recvmsg, &iov, 1, 0);
	if (ret <= 0)
		return 0;
	/* Its edges may be gone. */
	kevent_stream_queue(s);
	ret = without_bells(s, ret, false);
	if (ret < 0)
		return ret == AGAIN ? 0 : (int)ret;
	in->kept_end += (size_t)ret;
	return 1;
}

/*
 * Takes the bytes that are in front of the memory. Bells come behind them: were those not read, the
 * socket would be full of bells one day, and this side sleep for room that nobody can tell it of.
 */
static int keep(struct kevent_stream *s)
{
	int saved = errno, ret = 1;
	unsigned int i;

	if (s->in.mem || !s->out.mem || s->in.end)
		return 0;
	for (i = 0; ret > 0 && i < KEPT / KEPT_STEP; i++)
		ret = keep_some(s);
	if (!stream_has_kept(s))
		forget_kept(&s->in);
	errno = saved;
	return ret < 0 ? ret : 0;
}

static size_t copy_kept(const struct kevent_stream *s, const struct iovec *iov,
			unsigned int nr)
{
	size_t at = s->in.kept_at, len;

	for (; nr && at < s->in.kept_end; nr--, iov++) {
		len = s->in.kept_end - at;
		if (len > iov->iov_len)
			len = iov->iov_len;
		if (len)
			memcpy(iov->iov_base, s->in.kept + at, len);
		at += len;
	}
	return at - s->in.kept_at;
}

static ssize_t read_kept(struct kevent_stream *s, const struct iovec *iov, unsigned int nr)
{
	struct stream_in *in = &s->in;
	size_t done = copy_kept(s, iov, nr);

	in->kept_at += done;
	if (!stream_has_kept(s)) {
		forget_kept(in);
		/* There may be more behind them, of which the program was told when they came. */
		kevent_stream_queue(s);
	}
	return (ssize_t)done;
}

/* --- through memory ------------------------------------------------------ */

/* How far is the peer? It has read what was in the ring up to there. */
static int see_taken(struct kevent_stream *s)
{
	struct stream_out *out = &s->out;
	__u64 taken = lane_load(&s->peer->taken);

	if (taken - out->taken > out->head - out->taken)
		return stream_break(s);
	out->taken = taken;
	return 0;
}

static bool has_room(const struct stream_out *out, size_t len)
{
	return STREAM_RING - (out->head - out->taken) >= len;
}

/*
 * Copies what fits, but a part of a short write only for lack of memory: several writers to one
 * stream may rely on that. It is there when head is stored.
 */
static size_t put(struct kevent_stream *s, const struct iovec *iov, unsigned int nr, size_t all)
{
	struct stream_out *out = &s->out;
	size_t done = 0, skip = 0, len;

	if (all <= STREAM_WHOLE && !has_room(out, all))
		return 0;
	while (nr) {
		if (skip == iov->iov_len) {
			skip = 0;
			iov++;
			nr--;
			continue;
		}
		len = kevent_stream_room(s, iov->iov_len - skip);
		if (!len)
			break;
		memcpy(out->ring + ((out->head - out->base) & (STREAM_RING - 1)),
		       (const char *)iov->iov_base + skip, len);
		out->head += len;
		done += len;
		skip += len;
	}
	return done;
}

/*
 * Says that this side waits for room, and looks once more. That stays said when there is room:
 * another thread may sleep for it. Pairs with say_taken() of the peer, and with all that it does
 * before it notifies this side. Where the peer has found the socket full, it has read more by then.
 */
static int await_room(struct kevent_stream *s)
{
	int ret = 0;

	lane_store(&s->me->room, ++s->out.room);
	lane_full_barrier();
	if (!s->in.mem) {
		kevent_stream_poll_socket(s);
		ret = keep(s);
	}
	if (ret)
		return ret;
	if (s->sock_end || lane_load(&s->peer->gone))
		return -EPIPE;
	if (lane_load(&s->mem->phase) != s->phase)
		return AGAIN;
	return see_taken(s);
}

/* 0: no short write would return -EAGAIN. After -EAGAIN the peer says when there is room. */
int kevent_stream_await_room(struct kevent_stream *s)
{
	int ret;

	if (s->out.shut || s->sock_end || lane_load(&s->peer->gone))
		return 0;
	ret = see_taken(s);
	if (!ret && !has_room(&s->out, STREAM_WHOLE))
		ret = await_room(s);
	if (ret)
		return ret == AGAIN || ret == -EPIPE ? 0 : ret;
	return has_room(&s->out, STREAM_WHOLE) ? 0 : -EAGAIN;
}

static ssize_t write_memory(struct kevent_stream *s, const struct iovec *iov,
			    unsigned int nr, size_t len)
{
	size_t done;
	int ret;

	if (s->sock_end || lane_load(&s->peer->gone))
		return -EPIPE;
	ret = see_taken(s);
	if (ret)
		return ret;
	done = put(s, iov, nr, len);
	if (!done) {
		ret = await_room(s);
		if (ret)
			return ret;
		done = put(s, iov, nr, len);
		if (!done)
			return -EAGAIN;
	}
	lane_store(&s->me->head, s->out.head);
	kevent_stream_notify(s);
	return (ssize_t)done;
}

/* Does the peer wait for room that is there now? Pairs with await_room(). */
static void say_taken(struct kevent_stream *s, bool empty)
{
	struct stream_in *in = &s->in;
	__u64 room;

	if (!empty && in->tail - in->told < STREAM_RING / 2)
		return;
	in->told = in->tail;
	lane_full_barrier();
	room = lane_load(&s->peer->room);
	if (room && room != in->rung && s->out.mem && kevent_stream_notify(s))
		in->rung = room;
}

/* Copies up to @have bytes of the ring. In line, as reads need it more often than peeks. */
static inline size_t get(const struct kevent_stream *s, __u64 have, const struct iovec *iov,
			 unsigned int nr)
{
	__u64 base = lane_load(&s->peer->base), at = s->in.tail - base;
	size_t done = 0, len, first, off;

	for (; nr && have; nr--, iov++) {
		len = iov->iov_len < have ? iov->iov_len : (size_t)have;
		if (!len)
			continue;
		off = (size_t)(at & (STREAM_RING - 1));
		first = len < STREAM_RING - off ? len : STREAM_RING - off;
		memcpy(iov->iov_base, s->in.ring + off, first);
		memcpy((char *)iov->iov_base + first, s->in.ring, len - first);
		at += len;
		have -= len;
		done += len;
	}
	return done;
}

/* The end of the peer's direction, if all before it was read. 0: none. */
static int see_end(struct kevent_stream *s)
{
	/* First: what was published before can be seen then. */
	bool gone = s->sock_end;
	__u64 closed = lane_load(&s->peer->closed), head = lane_load(&s->peer->head);

	if (closed && closed != head + 1)
		return stream_break(s);
	if (head != s->in.tail)
		return AGAIN;
	s->in.end |= closed || gone;
	return s->in.end || s->in.last ? AGAIN : -EAGAIN;
}

static ssize_t peek_memory(struct kevent_stream *s, const struct iovec *iov)
{
	__u64 have = lane_load(&s->peer->head) - s->in.tail;

	if (have > STREAM_RING)
		return stream_break(s);
	return have ? (ssize_t)get(s, have, iov, 1) : see_end(s);
}

static ssize_t read_memory(struct kevent_stream *s, const struct iovec *iov,
			   unsigned int nr)
{
	__u64 have = lane_load(&s->peer->head) - s->in.tail;
	size_t done;

	if (have > STREAM_RING)
		return stream_break(s);
	if (!have)
		return see_end(s);
	done = get(s, have, iov, nr);
	s->in.tail += done;
	lane_store(&s->me->taken, s->in.tail);
	say_taken(s, done == have);
	return (ssize_t)done;
}

/* --- either -------------------------------------------------------------- */

static ssize_t read_parts(struct kevent_stream *s, const struct iovec *iov, unsigned int nr)
{
	if (stream_has_kept(s))
		return read_kept(s, iov, nr);
	return s->in.mem ? read_memory(s, iov, nr) : read_socket(s, iov, nr, false);
}

static ssize_t peek_part(struct kevent_stream *s, struct iovec *rest, bool memory)
{
	ssize_t ret = memory ? peek_memory(s, rest) : read_socket(s, rest, 1, true);

	if (ret > 0) {
		rest->iov_base = (char *)rest->iov_base + ret;
		rest->iov_len -= (size_t)ret;
	}
	return ret;
}

/*
 * Of the socket, the memory and the socket behind that, whatever fits. Else a program that peeks
 * until its header is complete would see the first part of it for ever.
 */
static ssize_t peek_parts(struct kevent_stream *s, const struct iovec *iov)
{
	struct iovec rest = *iov;
	ssize_t ret = keep(s);
	size_t done;

	if (!ret)
		ret = stream_follow(s);
	if (ret)
		return ret;
	done = copy_kept(s, iov, 1);
	rest.iov_base = (char *)iov->iov_base + done;
	rest.iov_len -= done;
	if (rest.iov_len && s->in.mem)
		ret = peek_part(s, &rest, true);
	if (rest.iov_len && !s->in.end && (!s->in.mem || s->in.last))
		ret = peek_part(s, &rest, false);
	done = iov->iov_len - rest.iov_len;
	return done ? (ssize_t)done : ret;
}

static ssize_t read_any(struct kevent_stream *s, const struct iovec *iov, unsigned int nr,
			bool peek)
{
	ssize_t ret = 0;
	int i;

	if (!stream_is_here(s))
		return -EXDEV;
	if (nr > MAX_IOV)
		return -EINVAL;
	if (!length(iov, nr))
		return 0;
	for (i = 0; i < MAX_TURNS; i++) {
		ret = stream_follow(s);
		if (ret || (s->in.end && !stream_has_kept(s)))
			return ret;
		ret = peek ? peek_parts(s, iov) : read_parts(s, iov, nr);
		if (ret != AGAIN)
			return ret;
	}
	/* A peer that changes so often is no honest one, and waits for its turn. */
	kevent_stream_queue(s);
	return -EAGAIN;
}

ssize_t kevent_stream_readv(struct kevent_stream *s, const struct iovec *iov,
			    unsigned int nr)
{
	return read_any(s, iov, nr, false);
}

ssize_t kevent_stream_read(struct kevent_stream *s, void *buf, size_t size)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };

	return read_any(s, &iov, 1, false);
}

ssize_t kevent_stream_peek(struct kevent_stream *s, void *buf, size_t size)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };

	return read_any(s, &iov, 1, true);
}

ssize_t kevent_stream_writev(struct kevent_stream *s, const struct iovec *iov,
			     unsigned int nr)
{
	ssize_t ret = 0;
	size_t len;
	int i;

	if (!stream_is_here(s))
		return -EXDEV;
	if (nr > MAX_IOV)
		return -EINVAL;
	len = length(iov, nr);
	if (!len)
		return 0;
	for (i = 0; i < MAX_TURNS; i++) {
		ret = stream_follow(s);
		if (ret)
			return ret;
		if (s->out.shut)
			return -EPIPE;
		ret = s->out.mem ? write_memory(s, iov, nr, len) :
				   write_socket(s, iov, nr);
		if (ret != AGAIN)
			return ret;
	}
	kevent_stream_queue(s);
	return -EAGAIN;
}

ssize_t kevent_stream_write(struct kevent_stream *s, const void *data, size_t len)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };

	return kevent_stream_writev(s, &iov, 1);
}

int kevent_stream_shutdown(struct kevent_stream *s)
{
	int ret;

	if (!stream_is_here(s))
		return -EXDEV;
	ret = stream_follow(s);
	if (ret || s->out.shut)
		return ret;
	if (s->mem && state_of(s->phase) == STREAM_OFFER0 + s->side &&
	    !kevent_stream_withdraw(s))
		ret = stream_follow(s);
	if (ret)
		return ret;
	/* No bell can go through the socket after its end: no memory from now on. */
	s->out.shut = true;
	s->offers = false;
	s->asks = false;
	if (s->out.mem) {
		lane_store(&s->me->closed, s->out.head + 1);
		kevent_stream_notify(s);
	} else {
		kevent_call6(SYS_shutdown, s->sock, SHUT_WR, 0, 0, 0, 0);
	}
	return 0;
}
