// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: poll and select
 *
 * Streams are looked at here, in the kernel are the other files and the hub.
 */
#include <string.h>
#include <time.h>

#include "lane.h"

#define IN_BITS	(POLLIN | POLLRDNORM)
#define OUT_BITS (POLLOUT | POLLWRNORM | POLLWRBAND)

void __chk_fail(void) __attribute__((noreturn));

static short poll_stream(struct conn *c, int fd, short want)
{
	int got = lane_conn_poll(c, fd, (want & IN_BITS ? POLLIN : 0) |
				 (want & OUT_BITS ? POLLOUT : 0) | (want & POLLRDHUP));

	return (short)((got & POLLIN ? want & IN_BITS : 0) |
		       (got & POLLOUT ? want & OUT_BITS : 0) |
		       (got & want & POLLRDHUP) | (got & (POLLHUP | POLLERR)));
}

/*
 * Looks at the streams of @fds; @all gets what the kernel looks at, @others says whether that is
 * anything. Returns how many are ready.
 */
static int look(struct pollfd *fds, nfds_t nr, struct pollfd *all, bool *others)
{
	int ready = 0;
	nfds_t i;

	*others = false;
	for (i = 0; i < nr; i++) {
		struct epoll *ep = lane_find_kind(fds[i].fd, EPOLL);
		/* Of a socket, only the bytes that came by memory are not in the kernel. */
		struct conn *c = lane_conn(fds[i].fd, fds[i].events & IN_BITS);

		fds[i].revents = 0;
		all[i] = fds[i];
		if (c) {
			all[i].fd = -1;
			fds[i].revents = poll_stream(c, fds[i].fd, fds[i].events);
		} else if (ep && lane_epoll_is_ready(ep)) {
			fds[i].revents = fds[i].events & IN_BITS;
		}
		ready += fds[i].revents != 0;
		*others |= all[i].fd >= 0;
	}
	return ready;
}

static int add_real(struct pollfd *fds, nfds_t nr, const struct pollfd *all)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < nr; i++) {
		if (all[i].fd >= 0)
			fds[i].revents |= all[i].revents;
		ready += fds[i].revents != 0;
	}
	return ready;
}

static int add_others(struct pollfd *fds, nfds_t nr, struct pollfd *all, bool others,
		      const sigset_t *mask)
{
	/* A signal may wait for @mask. */
	if ((others || mask) && lane_poll_now(all, nr, mask) < 0)
		return -errno;
	return add_real(fds, nr, all);
}

static int poll_here(struct pollfd *fds, nfds_t nr, struct pollfd *all, int64_t deadline,
		     const sigset_t *mask)
{
	bool ready, over, others, found = false;
	struct pollfd *beside = all + LANE_OWN;
	int ret;

	lane_glance();
	for (;;) {
		lane_dispatch();
		ready = look(fds, nr, beside, &others);
		over = !ready && lane_is_over(deadline);
		if (ready || over || found) {
			ret = add_others(fds, nr, beside, others, over ? mask : NULL);
			if (ret || over)
				return ret;
		}
		ret = lane_sleep(all, others ? nr + LANE_OWN : LANE_OWN, deadline, mask);
		if (ret)
			return ret;
		found = others && add_real(fds, nr, beside);
	}
}

static bool is_here(struct pollfd *fds, nfds_t nr)
{
	nfds_t i;

	for (i = 0; i < nr; i++)
		if (lane_is_waited(fds[i].fd))
			return true;
	return false;
}

/* With the lock */
static int poll_locked(struct pollfd *fds, nfds_t nr, int64_t span, const sigset_t *mask)
{
	struct pollfd few[64], *all = few;
	int ret;

	if (nr + LANE_OWN > 64)
		all = malloc((nr + LANE_OWN) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	ret = poll_here(fds, nr, all, lane_deadline(span), mask);
	if (all != few)
		free(all);
	return ret;
}

static int result(int ret)
{
	if (ret < 0)
		errno = -ret;
	return ret < 0 ? -1 : ret;
}

static int poll_streams(struct pollfd *fds, nfds_t nr, int64_t span, const sigset_t *mask)
{
	int ret;

	lane_lock();
	ret = poll_locked(fds, nr, span, mask);
	lane_unlock();
	return result(ret);
}

int64_t lane_span(const struct timespec *t)
{
	return t && t->tv_sec < FOREVER_FROM ? t->tv_sec * 1000000000LL + t->tv_nsec : FOREVER;
}

/* The kernel refuses another one. */
bool lane_is_span(const struct timespec *t)
{
	return !t || (t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000);
}

EXPORT int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	return is_here(fds, nr) ? poll_streams(fds, nr, timeout * 1000000LL, NULL) :
	       real()->poll(fds, nr, timeout);
}

ALIAS(__poll, poll);

EXPORT int ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask)
{
	return lane_is_span(timeout) && is_here(fds, nr) ?
	       poll_streams(fds, nr, lane_span(timeout), mask) :
	       real()->ppoll(fds, nr, timeout, mask);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout, size_t room)
{
	if (room / sizeof(*fds) < nr)
		__chk_fail();
	return poll(fds, nr, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < nr)
		__chk_fail();
	return ppoll(fds, nr, timeout, mask);
}

/* --- select -------------------------------------------------------------- */

struct sets {
	fd_set	*in, *out, *except;
};

static bool has(const fd_set *set, int fd)
{
	return set && (set->fds_bits[fd / NFDBITS] >> fd % NFDBITS & 1);
}

static short events_of(const struct sets *s, int fd)
{
	return (short)((has(s->in, fd) ? POLLIN : 0) | (has(s->out, fd) ? POLLOUT : 0) |
		       (has(s->except, fd) ? POLLPRI : 0));
}

/* All sets have as many bytes as the kernel reads of them: a program may have larger ones. */
static nfds_t fill(const struct sets *s, int nr, struct pollfd *fds)
{
	nfds_t used = 0;
	int fd;

	for (fd = 0; fd < nr; fd++)
		if (events_of(s, fd))
			fds[used++] = (struct pollfd){ .fd = fd, .events = events_of(s, fd) };
	return used;
}

static int put_set(fd_set *set, int nr, const struct pollfd *fds, nfds_t used, short asked,
		   short bits)
{
	int ready = 0;
	nfds_t i;

	if (!set)
		return 0;
	memset(set, 0, (size_t)(nr + NFDBITS - 1) / NFDBITS * sizeof(fd_mask));
	for (i = 0; i < used; i++) {
		if (!(fds[i].events & asked) || !(fds[i].revents & bits))
			continue;
		set->fds_bits[fds[i].fd / NFDBITS] |= (fd_mask)1 << fds[i].fd % NFDBITS;
		ready++;
	}
	return ready;
}

/* As poll, of those in the sets. Only a descriptor that is not open makes it fail. */
static int select_locked(struct sets *s, int nr, int64_t span, const sigset_t *mask)
{
	struct pollfd *fds = calloc((size_t)nr + 1, sizeof(*fds));
	nfds_t used, i;
	int ret;

	if (!fds)
		return -ENOMEM;
	used = fill(s, nr, fds);
	ret = poll_locked(fds, used, span, mask);
	for (i = 0; ret > 0 && i < used; i++)
		if (fds[i].revents & POLLNVAL)
			ret = -EBADF;
	if (ret >= 0)
		ret = put_set(s->in, nr, fds, used, POLLIN, POLLIN | POLLHUP | POLLERR) +
		      put_set(s->out, nr, fds, used, POLLOUT, POLLOUT | POLLERR) +
		      put_set(s->except, nr, fds, used, POLLPRI, POLLPRI);
	free(fds);
	return ret;
}

static int select_streams(struct sets *s, int nr, int64_t span, const sigset_t *mask)
{
	int ret;

	lane_lock();
	ret = select_locked(s, nr, span, mask);
	lane_unlock();
	return result(ret);
}

static bool is_selected_here(const struct sets *s, int nr)
{
	int fd;

	for (fd = 0; fd < nr; fd++)
		if (events_of(s, fd) && lane_is_waited(fd))
			return true;
	return false;
}

EXPORT int select(int nr, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct sets s = { in, out, except };
	int64_t span = FOREVER, left;
	int ret;

	if ((timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) || !is_selected_here(&s, nr))
		return real()->select(nr, in, out, except, timeout);
	if (timeout && timeout->tv_sec + timeout->tv_usec / 1000000 < FOREVER_FROM)
		span = timeout->tv_sec * 1000000000LL + timeout->tv_usec * 1000LL;
	left = lane_deadline(span);
	ret = select_streams(&s, nr, span, NULL);
	if (timeout && span > 0) {
		left -= lane_deadline(1);
		left = left > 0 ? left : 0;
		timeout->tv_sec = left / 1000000000;
		timeout->tv_usec = left % 1000000000 / 1000;
	}
	return ret;
}

ALIAS(__select, select);

EXPORT int pselect(int nr, fd_set *in, fd_set *out, fd_set *except,
		   const struct timespec *timeout, const sigset_t *mask)
{
	struct sets s = { in, out, except };

	return lane_is_span(timeout) && is_selected_here(&s, nr) ?
	       select_streams(&s, nr, lane_span(timeout), mask) :
	       real()->pselect(nr, in, out, except, timeout, mask);
}
