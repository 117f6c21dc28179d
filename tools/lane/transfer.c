// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: reading and writing, as a socket does it: with waits, and all or some bytes
 */
#include <string.h>
#include <sys/time.h>

#include "lane.h"

#define MAX_IOV		1024
#define PART		16	/* buffers that one further step takes */
#define ANSWERS		8
#define MOST		(256 << 10)	/* bytes that a peek into several buffers sees */
#define UNKNOWN		(-2)	/* deadline: no wait yet */
#define RECV_FLAGS	(MSG_DONTWAIT | MSG_PEEK | MSG_WAITALL | MSG_NOSIGNAL | MSG_TRUNC | \
			 MSG_CMSG_CLOEXEC)
#define SEND_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR)

bool lane_is_nonblocking(int fd, int flags)
{
	return (flags & MSG_DONTWAIT) || (real()->fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* How long a call on the socket would wait, by SO_RCVTIMEO or SO_SNDTIMEO */
static int64_t socket_deadline(int fd, int option)
{
	struct timeval most = { .tv_sec = 0 };
	socklen_t len = sizeof(most);

	if (getsockopt(fd, SOL_SOCKET, option, &most, &len) || (!most.tv_sec && !most.tv_usec))
		return FOREVER;
	return lane_deadline(most.tv_sec * 1000000000LL + most.tv_usec * 1000LL);
}

static size_t length(const struct iovec *iov, int nr)
{
	size_t len = 0;

	while (nr--)
		len += iov[nr].iov_len;
	return len;
}

/* The buffers of a call, as far as they are not used; @skip bytes of the first one are. */
struct vector {
	const struct iovec	*iov;
	int			nr;
	size_t			skip, done;
	struct iovec		part[PART];
};

static void begin(struct vector *v, const struct iovec *iov, int nr)
{
	v->iov = iov;
	v->nr = nr;
	v->skip = 0;
	v->done = 0;
}

static void advance(struct vector *v, size_t done)
{
	v->done += done;
	v->skip += done;
	while (v->nr && v->skip >= v->iov->iov_len) {
		v->skip -= v->iov->iov_len;
		v->iov++;
		v->nr--;
	}
}

/* What the next step takes: all, or a part of few, as a stack may be small */
static const struct iovec *next_part(struct vector *v, int *nr)
{
	*nr = v->nr;
	if (!v->skip)
		return v->iov;
	if (*nr > PART)
		*nr = PART;
	memcpy(v->part, v->iov, (size_t)*nr * sizeof(*v->iov));
	v->part[0].iov_base = (char *)v->part[0].iov_base + v->skip;
	v->part[0].iov_len -= v->skip;
	return v->part;
}

/* The connection has become a socket: the rest of the call */
static void go_on(struct vector *v, int fd, int flags,
		  ssize_t (*call)(int fd, struct msghdr *msg, int flags))
{
	struct msghdr msg = { .msg_iovlen = 0 };
	ssize_t ret;
	int nr;

	do {
		msg.msg_iov = (struct iovec *)next_part(v, &nr);
		msg.msg_iovlen = (size_t)nr;
		ret = call(fd, &msg, flags);
		if (ret > 0)
			advance(v, (size_t)ret);
	} while (ret > 0 && nr == PART && v->nr);
}

/* --- reading ------------------------------------------------------------- */

/*
 * After a read: a peer that has begun without an offer makes none any more, one that has answered
 * several times has dropped the offer of this side, and one that has left does not come back.
 */
static void see_peer(struct conn *c)
{
	if (kevent_stream_memory(c->s))
		c->joined = true;
	else if (c->joined || !c->offers || (c->asked && ++c->alone == ANSWERS))
		c->quits = true;
	c->begun = true;
	c->asked = false;
}

static ssize_t read_stream(struct conn *c, const struct iovec *iov, int nr)
{
	int memory = kevent_stream_memory(c->s);
	ssize_t ret = kevent_stream_readv(c->s, iov, (unsigned int)nr);

	if (ret <= 0)
		return ret;
	lane_count_in(memory, ret);
	see_peer(c);
	return ret;
}

static unsigned char peeked[MOST];

/* What is behind the rest */
static ssize_t peek_next(struct conn *c, int fd, void *buf, size_t size)
{
	long ret;

	if (c->state == STREAM)
		return kevent_stream_peek(c->s, buf, size);
	ret = lane_call(SYS_recvfrom, fd, buf, size, MSG_PEEK | MSG_DONTWAIT, NULL, NULL);
	return ret < 0 ? -errno : ret;
}

/* Copies the first bytes of @peeked behind @skip bytes of the buffers. */
static void scatter(const struct iovec *iov, size_t skip, size_t left)
{
	const unsigned char *from = peeked;
	size_t len;

	for (; left; iov++) {
		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		len = iov->iov_len - skip < left ? iov->iov_len - skip : left;
		memcpy((char *)iov->iov_base + skip, from, len);
		from += len;
		left -= len;
		skip = 0;
	}
}

static ssize_t peek_all(struct conn *c, int fd, const struct iovec *iov, int nr, size_t want)
{
	size_t done = lane_has_rest(c) ? (size_t)lane_rest_read(c, iov, nr, true) : 0;
	ssize_t ret = 0;

	if (done < want && nr == 1) {
		ret = peek_next(c, fd, (char *)iov->iov_base + done, want - done);
	} else if (done < want) {
		ret = peek_next(c, fd, peeked, want - done < MOST ? want - done : MOST);
		scatter(iov, done, ret > 0 ? (size_t)ret : 0);
	}
	return done ? (ssize_t)done + (ret > 0 ? ret : 0) : ret;
}

/* All that a read of several steps would take: a program may peek until it sees enough. */
static ssize_t peek(struct conn *c, int fd, const struct iovec *iov, int nr)
{
	size_t want = length(iov, nr);
	ssize_t ret = peek_all(c, fd, iov, nr, want);

	if (ret > 0 && (size_t)ret < want && lane_conn_keep(c))
		ret = peek_all(c, fd, iov, nr, want);
	return ret;
}

/* How many bytes of a stream can be read */
int lane_count(struct conn *c, int fd)
{
	struct iovec iov = { .iov_base = peeked, .iov_len = MOST };
	ssize_t ret = peek(c, fd, &iov, 1);

	return ret > 0 ? (int)ret : 0;
}

static ssize_t read_once(struct conn *c, int fd, struct vector *v, int flags)
{
	int nr;
	const struct iovec *iov = next_part(v, &nr);

	if (c->state == LOST)
		return lane_is_lost(c, fd);
	if (c->state == PLAIN && !lane_has_rest(c))
		return NOT_OURS;
	if (flags & MSG_PEEK)
		return peek(c, fd, iov, nr);
	if (lane_has_rest(c))
		return lane_rest_read(c, iov, nr, false);
	return read_stream(c, iov, nr);
}

/* A call for no bytes waits for some all the same. */
static ssize_t read_none(struct conn *c, int fd)
{
	if (c->state == LOST)
		return lane_is_lost(c, fd);
	if (c->state == PLAIN && !lane_has_rest(c))
		return NOT_OURS;
	return lane_conn_poll(c, fd, POLLIN) ? 0 : -EAGAIN;
}

/* -EAGAIN: for a call that waits, there may be more now. */
static ssize_t wait_for(struct conn *c, int fd, int flags, int events, int64_t *deadline)
{
	if (lane_is_nonblocking(fd, flags)) {
		lane_glance();
		return -EAGAIN;
	}
	if (*deadline == UNKNOWN)
		*deadline = socket_deadline(fd, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
	return lane_conn_wait(c, fd, events, *deadline);
}

/*
 * One step, and whether another one may have more at once: a read gets what the rest, the socket or
 * memory has. A program may take fewer bytes than it has asked for as a sign that it has all, and
 * wait for the next edge.
 */
static ssize_t read_step(struct conn *c, int fd, struct vector *v, int flags, bool *more)
{
	bool rest = lane_has_rest(c);
	int before = c->state == STREAM ? kevent_stream_memory(c->s) : 0, after;
	ssize_t ret = read_once(c, fd, v, flags);

	*more = false;
	if (ret <= 0)
		return ret;
	advance(v, (size_t)ret);
	if (c->state != STREAM || (flags & MSG_PEEK))
		return ret;
	after = kevent_stream_memory(c->s);
	*more = rest || before != after || after == KEVENT_STREAM_SENDS ||
		after == KEVENT_STREAM_RECEIVES;
	return ret;
}

/* What ends the call: 0, an error, or NOT_OURS if the socket has the rest of it */
static ssize_t read_all(struct conn *c, int fd, struct vector *v, int flags, int64_t *deadline)
{
	bool all = (flags & MSG_WAITALL) && !(flags & MSG_PEEK), more = false;
	size_t want = length(v->iov, v->nr);
	ssize_t ret;

	for (;;) {
		ret = want ? read_step(c, fd, v, flags, &more) : read_none(c, fd);
		if (!ret || (ret > 0 && v->done == want))
			return 0;
		if (v->done && !all && (ret < 0 || !more))
			return 0;
		if (ret == -EAGAIN)
			ret = wait_for(c, fd, flags, POLLIN, deadline);
		if (ret < 0)
			return ret;
	}
}

/* For the caller of the call: false if it has to make it */
static bool result(const struct vector *v, ssize_t ret, ssize_t *got)
{
	if (!v->done && ret == NOT_OURS)
		return false;
	*got = v->done || ret >= 0 ? (ssize_t)v->done : -1;
	if (*got < 0)
		errno = (int)-ret;
	return true;
}

static bool refuse(int error, ssize_t *got)
{
	errno = error;
	*got = -1;
	return true;
}

bool lane_recv(int fd, const struct iovec *iov, int nr, int flags, ssize_t *got)
{
	struct conn *c;
	struct vector v;
	struct hold h;
	int64_t deadline = UNKNOWN;
	ssize_t ret = NOT_OURS;

	if (nr < 0 || nr > MAX_IOV)
		return refuse(EINVAL, got);
	if ((flags & ~RECV_FLAGS) && lane_leave_to_call(fd, READS, flags))
		return refuse(errno, got);
	begin(&v, iov, nr);
	lane_lock();
	c = lane_conn(fd, true);
	if (c) {
		lane_hold(&h, &c->o);
		ret = read_all(c, fd, &v, flags, &deadline);
		lane_release(&h);
	}
	lane_unlock();
	if (ret == NOT_OURS && deadline > 0)
		ret = lane_await_socket(fd, POLLIN, deadline);
	if (ret == NOT_OURS && v.done)
		go_on(&v, fd, flags, real()->recvmsg);
	return result(&v, ret, got);
}

/* --- writing ------------------------------------------------------------- */

static ssize_t write_once(struct conn *c, int fd, struct vector *v)
{
	int memory, nr;
	const struct iovec *iov = next_part(v, &nr);
	ssize_t ret;

	if (c->state == LOST)
		return lane_is_lost(c, fd);
	if (c->state == PLAIN)
		return NOT_OURS;
	/* To a peer that has gone, no turn is waited for. */
	if (lane_is_others_turn(c) && !(kevent_stream_poll(c->s, 0) & POLLHUP))
		return -EAGAIN;
	ret = kevent_stream_writev(c->s, iov, (unsigned int)nr);
	if (ret <= 0)
		return ret;
	c->asked = true;
	memory = kevent_stream_memory(c->s) & KEVENT_STREAM_SENDS;
	if (memory)
		lane_stats.out_memory += (__u64)ret;
	else
		lane_stats.out_socket += (__u64)ret;
	return ret;
}

/* Also of a thread whose call a handler or its end cuts off */
void lane_end_turn(struct conn *c)
{
	if (c->writer != pthread_self())
		return;
	c->writer = 0;
	lane_conn_ready(c);
	lane_wake_all();
}

static ssize_t write_all(struct conn *c, int fd, struct vector *v, int flags, int64_t *deadline)
{
	size_t want = length(v->iov, v->nr);
	ssize_t ret;

	for (;;) {
		ret = write_once(c, fd, v);
		if (ret > 0)
			advance(v, (size_t)ret);
		if (ret >= 0 && v->done == want)
			return 0;
		if (ret > 0)
			c->writer = pthread_self();
		if (ret == -EAGAIN)
			ret = wait_for(c, fd, flags, POLLOUT, deadline);
		if (ret < 0)
			return ret;
	}
}

/* Some bytes are sent: the call does not fail any more, and so there is no SIGPIPE. */
static ssize_t send_msg(int fd, struct msghdr *msg, int flags)
{
	return real()->sendmsg(fd, msg, flags | MSG_NOSIGNAL);
}

bool lane_send(int fd, const struct iovec *iov, int nr, int flags, ssize_t *sent)
{
	struct conn *c;
	struct vector v;
	struct hold h;
	int64_t deadline = UNKNOWN;
	ssize_t ret = NOT_OURS;

	if (nr < 0 || nr > MAX_IOV)
		return refuse(EINVAL, sent);
	if ((flags & ~SEND_FLAGS) && lane_leave_to_call(fd, WRITES, flags))
		return refuse(errno, sent);
	begin(&v, iov, nr);
	lane_lock();
	c = lane_conn(fd, false);
	if (c) {
		lane_hold(&h, &c->o);
		ret = write_all(c, fd, &v, flags, &deadline);
		if (h.o)
			lane_end_turn(c);
		lane_release(&h);
	}
	lane_unlock();
	if (ret == NOT_OURS && deadline > 0)
		ret = lane_await_socket(fd, POLLOUT, deadline);
	if (ret == NOT_OURS && v.done)
		go_on(&v, fd, flags, send_msg);
	if (ret == -EPIPE && !v.done && !(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	return result(&v, ret, sent);
}
