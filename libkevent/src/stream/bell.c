// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams: what there is to do, said to the program and to the peer
 *
 * A bell is a byte through the socket, as for lanes with KEVENT_LANE_SOCKET.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "api/raw_syscall.h"
#include "stream.h"

int kevent_stream_watch_out(const struct kevent_stream *s, __u32 cmd)
{
	struct ukevent ev;

	if (!s->set->q)
		return 0;
	kevent_set_poll(&ev, s->sock, POLLOUT, KEVENT_REQ_ONESHOT, s->user);
	return kevent_ctl_one(s->set->q->fd, cmd, &ev);
}

void kevent_stream_await_out(struct kevent_stream *s)
{
	if (s->awaits_out)
		return;
	/* Without memory for it the program is asked to try again. */
	s->awaits_out = !s->set->q || kevent_stream_watch_out(s, KEVENT_CTL_ADD) >= 0;
	if (!s->set->q || !s->awaits_out)
		kevent_stream_queue(s);
}

void kevent_stream_queue(struct kevent_stream *s)
{
	struct kevent_streams *set = s->set;

	if (s->queued)
		return;
	s->queued = true;
	s->next_ready = NULL;
	if (set->last)
		set->last->next_ready = s;
	else
		set->first = s;
	set->last = s;
}

static long ring(const struct kevent_stream *s)
{
	const unsigned char bell = STREAM_BELL;

	return kevent_call6(SYS_sendto, s->sock, (long)&bell, 1,
			    MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

/*
 * Its subject was stored before. Pairs with take_ready() of the peer, which clears the bit and
 * looks at the stream afterwards, and with kevent_streams_arm(). A peer that has closed the stream
 * hears nothing by its socket, which a child may keep open. It says so before it sleeps again: who
 * sees that sleep sees this, too. Pairs with say_closed() of the peer.
 */
bool kevent_stream_notify(struct kevent_stream *s)
{
	__u64 asleep;
	long ret;

	__atomic_fetch_or(s->ready, s->bit, __ATOMIC_RELEASE);
	lane_full_barrier();
	asleep = lane_load(s->asleep);
	if (!s->out.announce && (!asleep || asleep == *s->rung))
		return true;
	if (lane_load(&s->peer->gone))
		return true;
	ret = ring(s);
	/*
	 * A socket that has ended, or is full, does not count: the next stream rings by its own.
	 * In a full one is something that the peer has not read, and will, or takes before it
	 * sleeps for room.
	 */
	if (ret == 1) {
		s->out.announce = false;
		if (asleep)
			*s->rung = asleep;
	}
	return ret != -ENOMEM && ret != -ENOBUFS && ret != -EAGAIN;
}
