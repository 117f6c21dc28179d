// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: epoll
 *
 * Interests in streams are kept here, and other ones in the kernel. An instance has a list of
 * those that may be ready; each is looked at once in a call, so they take turns. What is
 * not ready leaves the list, and comes back when the set of streams has its stream.
 */
#include <sys/single_threaded.h>
#include <time.h>

#include "lane.h"

#define IN_BITS		(EPOLLIN | EPOLLRDNORM)
#define OUT_BITS	(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND)

static void list(struct interest *i)
{
	if (i->listed)
		return;
	i->listed = true;
	i->epoll->nr_ready++;
	TAILQ_INSERT_TAIL(&i->epoll->ready, i, ready);
}

static void unlist(struct interest *i)
{
	if (!i->listed)
		return;
	i->listed = false;
	i->epoll->nr_ready--;
	TAILQ_REMOVE(&i->epoll->ready, i, ready);
}

static void drop(struct interest *i)
{
	unlist(i);
	LIST_REMOVE(i, of_conn);
	LIST_REMOVE(i, of_epoll);
	if (i == &i->conn->one)
		i->conn = NULL;
	else
		free(i);
}

void lane_conn_ready(struct conn *c)
{
	struct interest *i;

	LIST_FOREACH(i, &c->interests, of_conn)
		list(i);
}

void lane_drop_interests(struct conn *c)
{
	while (!LIST_EMPTY(&c->interests))
		drop(LIST_FIRST(&c->interests));
}

void lane_epoll_end(struct epoll *ep)
{
	lane_hub_lose(ep);
	while (!LIST_EMPTY(&ep->interests))
		drop(LIST_FIRST(&ep->interests));
}

/* --- back to the kernel -------------------------------------------------- */

/* A child that has read the rest before has added it: they share the instance. */
static void to_kernel(struct interest *i)
{
	int epfd = lane_number_of(&i->epoll->o, 0), fd = i->fd;

	if (i->off)
		i->ev.events = EPOLLONESHOT;
	if (lane_find(fd) != &i->conn->o)
		fd = lane_number_of(&i->conn->o, 0);
	/* Either may be closed, and only be used by a call that has not ended. */
	if (epfd >= 0 && fd >= 0 && real()->epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &i->ev) &&
	    real()->epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &i->ev))
		lane_say("epoll lacks memory for a connection", fd);
	drop(i);
}

/*
 * Of a connection that is a socket again. Only here is it known that there is a rest, and that the
 * program has not asked again after EPOLLONESHOT: the kernel would report an end to it.
 */
void lane_settle_interests(struct conn *c)
{
	struct interest *i = LIST_FIRST(&c->interests), *next;

	for (; i && c->state == PLAIN; i = next) {
		next = LIST_NEXT(i, of_conn);
		if (i->off && !i->epoll->nested)
			continue;
		if ((i->ev.events & IN_BITS) && lane_has_rest(c))
			list(i);
		else
			to_kernel(i);
	}
}

/* Another thread may close any of them meanwhile. */
int lane_epoll_leave(struct epoll *ep)
{
	struct hold instance, conn;
	int ret = 0;

	ep->nested = true;
	lane_hold(&instance, &ep->o);
	while (!ret && !LIST_EMPTY(&ep->interests)) {
		struct conn *c = LIST_FIRST(&ep->interests)->conn;

		lane_hold(&conn, &c->o);
		ret = lane_conn_leave(c, FOREVER);
		if (!ret && c->o.refs > 1 && lane_has_rest(c))
			ret = -EIO;
		else if (!ret)
			lane_settle_interests(c);
		lane_release(&conn);
	}
	lane_release(&instance);
	return ret;
}

/* --- epoll_ctl ----------------------------------------------------------- */

static struct interest *find_interest(struct conn *c, const struct epoll *ep, int fd)
{
	struct interest *i;

	LIST_FOREACH(i, &c->interests, of_conn)
		if (i->epoll == ep && i->fd == fd)
			break;
	return i;
}

static int add(struct conn *c, struct epoll *ep, int fd, const struct epoll_event *ev)
{
	struct interest *i = c->one.conn ? malloc(sizeof(*i)) : &c->one;

	if (!i)
		return -ENOMEM;
	i->listed = false;
	i->off = false;
	i->conn = c;
	i->epoll = ep;
	i->fd = fd;
	i->ev = *ev;
	LIST_INSERT_HEAD(&c->interests, i, of_conn);
	LIST_INSERT_HEAD(&ep->interests, i, of_epoll);
	list(i);
	return 0;
}

/* Of a connection with a rest: the interest is here if the kernel cannot report it. */
static int change_plain(struct conn *c, struct epoll *ep, int epfd, int op, int fd,
			struct epoll_event *ev)
{
	if (real()->epoll_ctl(epfd, op, fd, ev))
		return -errno;
	if (op == EPOLL_CTL_DEL || !(ev->events & IN_BITS))
		return 0;
	real()->epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
	return add(c, ep, fd, ev);
}

static int change(struct conn *c, struct epoll *ep, int epfd, int op, int fd,
		  const struct epoll_event *ev)
{
	struct interest *i = find_interest(c, ep, fd);
	int ret = 0;

	if (c->state == LOST)
		return -EIO;
	if (op == EPOLL_CTL_ADD) {
		ret = i ? -EEXIST : add(c, ep, fd, ev);
	} else if (!i) {
		return -ENOENT;
	} else if (op == EPOLL_CTL_DEL) {
		drop(i);
		if (c->state == PLAIN)
			real()->epoll_ctl(epfd, op, fd, NULL);
	} else {
		i->ev = *ev;
		i->off = false;
		list(i);
	}
	lane_settle_interests(c);
	lane_wake_all();
	return ret;
}

static struct conn *conn_of(const struct epoll *ep, int fd)
{
	struct conn *c = lane_find_kind(fd, CONN);

	if (c && (c->state == NEW || (c->state == PLAIN && find_interest(c, ep, fd))))
		return c;
	return lane_conn(fd, true);
}

/* Another instance watches one of them, or both are to be in the kernel. It may sleep. */
static int leave_to_kernel(int epfd, int fd)
{
	struct epoll *ep = lane_find_kind(epfd, EPOLL), *inner = lane_find_kind(fd, EPOLL);
	struct conn *c = conn_of(ep, fd);

	if (inner)
		return lane_epoll_leave(inner);
	return c && (!ep || ep->nested) ? lane_conn_leave(c, FOREVER) : 0;
}

/* False: for the kernel */
static bool change_here(int epfd, int op, int fd, struct epoll_event *ev, int *ret)
{
	struct epoll *ep = lane_find_kind(epfd, EPOLL);
	struct conn *c = conn_of(ep, fd);

	if (!c || !ep || ep->nested) {
		*ret = leave_to_kernel(epfd, fd);
		ep = lane_find_kind(epfd, EPOLL);
		c = conn_of(ep, fd);
		if (!c || !ep || *ret || (ep->nested && op == EPOLL_CTL_DEL))
			return *ret;
	}
	if (ep->nested)
		*ret = -EIO;
	else if (op < EPOLL_CTL_ADD || op > EPOLL_CTL_MOD)
		*ret = -EINVAL;
	else if (op != EPOLL_CTL_DEL && !ev)
		*ret = -EFAULT;
	else if (c->state == PLAIN && !find_interest(c, ep, fd))
		*ret = change_plain(c, ep, epfd, op, fd, ev);
	else
		*ret = change(c, ep, epfd, op, fd, ev);
	return true;
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	bool here;
	int ret;

	if (!lane_is_waited(fd))
		return real()->epoll_ctl(epfd, op, fd, ev);
	lane_lock();
	here = change_here(epfd, op, fd, ev, &ret);
	lane_unlock();
	if (!here)
		return real()->epoll_ctl(epfd, op, fd, ev);
	if (ret)
		errno = -ret;
	return ret ? -1 : 0;
}

/* --- epoll_wait ---------------------------------------------------------- */

static __u32 poll_interest(const struct interest *i)
{
	__u32 want = i->ev.events, got;
	int ask = (want & IN_BITS ? POLLIN : 0) | (want & OUT_BITS ? POLLOUT : 0) |
		  (want & EPOLLRDHUP ? POLLRDHUP : 0);

	/* Ends neither; those need not be wanted otherwise. */
	if (i->off)
		return 0;
	got = (__u32)lane_conn_poll(i->conn, i->fd, ask);
	return (got & POLLIN ? want & IN_BITS : 0) | (got & POLLOUT ? want & OUT_BITS : 0) |
	       (got & POLLRDHUP ? want & EPOLLRDHUP : 0) | (got & (POLLHUP | POLLERR));
}

static int collect(struct epoll *ep, struct epoll_event *ev, int max)
{
	unsigned int left = ep->nr_ready;
	struct interest *i;
	__u32 got;
	int nr = 0;

	for (; left && nr < max; left--) {
		i = TAILQ_FIRST(&ep->ready);
		unlist(i);
		got = poll_interest(i);
		if (!got)
			continue;
		ev[nr].events = got;
		ev[nr++].data = i->ev.data;
		if (i->ev.events & EPOLLONESHOT)
			i->off = true;
		else if (!(i->ev.events & EPOLLET))
			list(i);
		else if (i->conn->state == PLAIN)
			to_kernel(i);	/* has the edges of the socket behind the rest */
	}
	return nr;
}

bool lane_epoll_is_ready(struct epoll *ep)
{
	const struct interest *i;

	TAILQ_FOREACH(i, &ep->ready, ready)
		if (poll_interest(i))
			return true;
	return false;
}

/* What the kernel has; all has come when that is nothing. */
static int take_real(struct epoll *ep, int epfd, struct epoll_event *ev, int max)
{
	int nr = lane_epoll_now(epfd, ev, max);

	if (!nr)
		ep->stale = false;
	return nr < 0 ? -errno : nr;
}

/* Streams that are ready; each so often other files first, as both may fill @ev */
static int take(struct epoll *ep, int epfd, struct epoll_event *ev, int max)
{
	int nr = 0;

	if (ep->nr_ready && !(++ep->beat % LANE_BEAT)) {
		lane_take_events();
		ep->stale = true;
	}
	/* Both may be ready all the time, and there be room for one. */
	if (ep->stale && (max > 1 || !ep->nr_ready || ep->beat % 2))
		nr = take_real(ep, epfd, ev, ep->nr_ready && max > 1 ? max / 2 : max);
	lane_dispatch();
	return nr < 0 ? nr : nr + collect(ep, ev + nr, max - nr);
}

static int sleep_for(struct epoll *ep, int epfd, int64_t deadline, const sigset_t *mask)
{
	struct pollfd fds[3];
	int ret;

	if (lane_can_sleep_in_hub() && lane_hub_has(ep, epfd))
		return lane_sleep_in_hub(deadline, mask);
	/* It may not sleep at all: then nothing is known of @epfd. */
	fds[2] = (struct pollfd){ .fd = epfd, .events = POLLIN, .revents = POLLIN };
	ret = lane_sleep(fds, 3, deadline, mask);
	if (!ret && fds[2].revents)
		ep->stale = true;
	return ret;
}

static int wait_here(struct epoll *ep, int epfd, struct epoll_event *ev, int max,
		     int64_t deadline, const sigset_t *mask)
{
	bool over = false;
	int ret;

	for (;;) {
		ret = take(ep, epfd, ev, max);
		if (ret || over)
			return ret;
		/* It was the turn of streams, and no edge comes again. */
		if (ep->stale)
			continue;
		ret = sleep_for(ep, epfd, deadline, mask);
		if (ret)
			return ret;
		over = lane_is_over(deadline);
	}
}

static bool wait_streams(int epfd, struct epoll_event *ev, int max, int64_t span,
			 const sigset_t *mask, int *ret)
{
	struct epoll *ep;
	struct hold h;

	lane_lock();
	ep = lane_find_kind(epfd, EPOLL);
	if (ep && max > 0) {
		lane_hold(&h, &ep->o);
		*ret = wait_here(ep, epfd, ev, max, lane_deadline(span), mask);
		lane_release(&h);
	}
	lane_unlock();
	if (!ep || max <= 0)
		return false;
	if (*ret < 0) {
		errno = -*ret;
		*ret = -1;
	}
	return true;
}

/* Without interests here the kernel has all; another thread may add one at any time. */
static bool is_here(int epfd)
{
	const struct epoll *ep = lane_find_kind(epfd, EPOLL);

	return ep && (!__libc_single_threaded || !LIST_EMPTY(&ep->interests));
}

EXPORT int epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout)
{
	int ret;

	if (is_here(epfd) && wait_streams(epfd, ev, max, timeout * 1000000LL, NULL, &ret))
		return ret;
	return real()->epoll_wait(epfd, ev, max, timeout);
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *ev, int max, int timeout,
		       const sigset_t *mask)
{
	int ret;

	if (is_here(epfd) && wait_streams(epfd, ev, max, timeout * 1000000LL, mask, &ret))
		return ret;
	return real()->epoll_pwait(epfd, ev, max, timeout, mask);
}

EXPORT int epoll_pwait2(int epfd, struct epoll_event *ev, int max,
			const struct timespec *timeout, const sigset_t *mask)
{
	int ret;

	if (lane_is_span(timeout) && is_here(epfd) &&
	    wait_streams(epfd, ev, max, lane_span(timeout), mask, &ret))
		return ret;
	return real()->epoll_pwait2(epfd, ev, max, timeout, mask);
}

/* --- instances ----------------------------------------------------------- */

static int enter(int epfd)
{
	struct epoll *ep;

	if (epfd < 0 || !lane_settings.paths)
		return epfd;
	lane_lock();
	ep = lane_new(EPOLL, sizeof(*ep));
	if (ep) {
		TAILQ_INIT(&ep->ready);
		if (!lane_table_set(epfd, &ep->o))
			lane_put(&ep->o);
	}
	lane_unlock();
	return epfd;
}

EXPORT int epoll_create(int size)
{
	return enter(real()->epoll_create(size));
}

EXPORT int epoll_create1(int flags)
{
	return enter(real()->epoll_create1(flags));
}
