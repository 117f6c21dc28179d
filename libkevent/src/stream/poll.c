// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams: what poll(2) would say of the socket if the bytes went through it
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "stream.h"

/* @sock: of the socket, unless both directions go through memory */
static int poll_in(struct kevent_stream *s, int sock)
{
	ssize_t ret;
	char byte;

	if (s->in.end)
		return POLLIN | POLLRDHUP;
	if (stream_has_kept(s) ||
	    (s->in.mem && lane_load(&s->peer->head) != s->in.tail))
		return POLLIN;
	/* A read would take the error of the socket away. */
	if (!s->in.mem && (!(sock & POLLIN) || (sock & POLLERR)))
		return sock & (POLLIN | POLLRDHUP);
	ret = kevent_stream_peek(s, &byte, 1);
	return (ret == -EAGAIN ? 0 : POLLIN) | (s->in.end ? POLLRDHUP : 0);
}

static int poll_out(struct kevent_stream *s, int sock)
{
	int ret;

	if (s->out.mem) {
		ret = kevent_stream_await_room(s);
		return ret == -EAGAIN ? 0 : POLLOUT;
	}
	if (!(sock & POLLOUT))
		kevent_stream_await_out(s);
	return sock & POLLOUT;
}

/* Of both directions */
static int poll_ends(const struct kevent_stream *s, int sock)
{
	bool gone, ended;

	if (!s->in.mem && !s->out.mem)
		return sock & (POLLHUP | POLLERR | POLLRDHUP);
	/* In a direction through the socket, the peer may have ended only the stream. */
	gone = s->sock_end || (s->in.mem && s->out.mem && lane_load(&s->peer->gone));
	ended = gone || lane_load(&s->peer->closed);
	return (sock & POLLRDHUP) | (ended ? POLLRDHUP : 0) |
	       (gone || ((ended || s->in.end) && s->out.shut) ? POLLHUP : 0);
}

int kevent_stream_poll(struct kevent_stream *s, int events)
{
	int got, sock = 0;

	if (!stream_is_here(s))
		return -EXDEV;
	if (stream_follow(s))
		return POLLERR | POLLHUP | (events & (POLLIN | POLLOUT));
	if (!s->in.mem || !s->out.mem || s->in.last)
		sock = kevent_stream_poll_socket(s);
	/* First: what comes together with an end is there when the end is seen. */
	got = poll_ends(s, sock);
	got |= poll_in(s, sock);
	if (events & POLLOUT)
		got |= poll_out(s, sock);
	return got & (events | POLLERR | POLLHUP);
}
