// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * SOCKET, PIPE and POLL, by epoll
 *
 * To poll a watch is to register it anew: epoll then reports it once more if
 * its file is ready, and says if the descriptor means another file by now.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "ops.h"
#include "sys.h"

#define FB_POLL_ALL	0x27dfU		/* all KEVENT_POLL_* */
/* Conditions that poll(2) returns for a file without a poll method */
#define FB_POLL_REGULAR	(KEVENT_POLL_POLLIN | KEVENT_POLL_POLLOUT | \
			 KEVENT_POLL_POLLRDNORM | KEVENT_POLL_POLLWRNORM)

/**
 * struct fb_file - a watch of a file
 * @w:		the watch
 * @dev:	of a file that epoll refuses, with @ino and @opened: to know it again
 */
struct fb_file {
	struct fb_watch	w;
	dev_t		dev;
	ino_t		ino;
	__u32		opened;
};

#define to_file(watch)	fb_container(watch, struct fb_file, w)

/* Masks of epoll */

static __u32 fb_file_interest(const struct fb_watch *w)
{
	__u32 mask = 0;

	if (w->type == KEVENT_POLL)
		return w->event;
	if (w->event & FB_READABLE)
		mask = EPOLLIN | (w->type == KEVENT_SOCKET ? EPOLLRDHUP : 0);
	if (w->event & KEVENT_SOCKET_SEND)
		mask |= EPOLLOUT;
	return mask;
}

/*
 * A disarmed watch cannot be without errors and hang-up: they come once. If epoll takes what
 * there is when it polls, all of it has to come.
 */
static __u32 fb_file_registration(const struct fb_queue *q, struct fb_watch *w)
{
	__u32 mask = fb_file_interest(w);

	w->state &= ~FB_REPEATED;
	if (w->state & FB_DISARMED)
		return EPOLLONESHOT | (w->state & FB_TAKES ? mask : 0);
	if (w->req_flags & KEVENT_REQ_ET)
		mask |= EPOLLET;
	if (w->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH))
		return mask | EPOLLONESHOT;
	if (w->req_flags & KEVENT_REQ_ET)
		return mask;
	if ((q->edges && w->list != FB_SHOWN) || w->state & FB_TAKES)
		return mask | EPOLLET;
	w->state |= FB_REPEATED;
	return mask;
}

/* Epoll */

static int fb_file_epoll(const struct fb_queue *q, const struct fb_watch *w)
{
	return w->state & FB_SECOND ? q->own[FB_OWN_SECOND] : q->fd;
}

/*
 * Of the watches with a number and a token, each instance has one. So what is asked by the
 * number is done to the watch itself, or, if the number means another file, to nothing.
 */
static int fb_file_ctl(struct fb_queue *q, struct fb_watch *w, int op)
{
	__u32 events = fb_file_registration(q, w);

	return w->token ? fb_epoll_ctl(fb_file_epoll(q, w), op, fb_fd_of(w),
				       events, w->token) : -ENOENT;
}

/* Files that epoll refuses */

static bool fb_file_same(struct fb_watch *w)
{
	struct fb_file *file = to_file(w);
	struct stat st;

	return !fb_call(fstat(fb_fd_of(w), &st)) && st.st_dev == file->dev &&
	       st.st_ino == file->ino && fb_opened_is(fb_fd_of(w), file->opened);
}

static void fb_file_refused(struct fb_watch *w, const struct stat *st)
{
	struct fb_file *file = to_file(w);

	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->opened = fb_opened(fb_fd_of(w));
	w->state |= FB_ALWAYS;
	w->state &= ~(FB_REPEATED | FB_TAKES);
}

/* Files that may be watched */

/* Epoll itself refuses what would be a cycle of queues. */
static int fb_check_nesting(int fd, const struct stat *st)
{
	return !(st->st_mode & S_IFMT) && fb_is_kind(fd, "[io_uring]") > 0 ? -ELOOP : 0;
}

static int fb_file_look(const struct ukevent *uk, struct stat *st)
{
	int fd = (int)uk->id.raw[0];

	if (fb_call(fstat(fd, st)))
		return -EBADF;
	if (uk->type == KEVENT_SOCKET && !S_ISSOCK(st->st_mode))
		return -ENOTSOCK;
	if (uk->type == KEVENT_PIPE && !S_ISFIFO(st->st_mode))
		return -EINVAL;
	return fb_check_nesting(fd, st);
}

static int fb_file_object(const struct ukevent *uk)
{
	struct stat st;

	return fb_file_look(uk, &st);
}

static int fb_socket_check(const struct ukevent *uk)
{
	int err;

	if (!(uk->event & KEVENT_SOCKET_EMPTY))
		return 0;
	/* No poll mask has it. */
	err = fb_file_object(uk);
	return err ? err : -EOPNOTSUPP;
}

/* Watches */

static int fb_file_register(struct fb_queue *q, struct fb_watch *w)
{
	int err = w->state & FB_SECOND ? -EEXIST : fb_file_ctl(q, w, EPOLL_CTL_ADD);

	if (err != -EEXIST)
		return err;
	/* The second watch of a descriptor */
	err = q->own[FB_OWN_SECOND] >= 0 ? 0 :
	      fb_own_watched(q, FB_OWN_SECOND, fb_sys(SYS_epoll_create1, EPOLL_CLOEXEC));
	if (err)
		return err;
	w->state |= FB_SECOND;
	return fb_file_ctl(q, w, EPOLL_CTL_ADD);
}

/* Conditions by poll(2), whose bits are not everywhere those of epoll */
static __u32 fb_file_poll(const struct fb_watch *w)
{
	static const struct {
		short	poll;
		__u32	epoll;
	} bits[] = {
		{ POLLIN, EPOLLIN }, { POLLPRI, EPOLLPRI },
		{ POLLOUT, EPOLLOUT }, { POLLERR, EPOLLERR },
		{ POLLHUP, EPOLLHUP }, { POLLRDNORM, EPOLLRDNORM },
		{ POLLRDBAND, EPOLLRDBAND }, { POLLWRNORM, EPOLLWRNORM },
		{ POLLWRBAND, EPOLLWRBAND }, { POLLMSG, EPOLLMSG },
		{ POLLRDHUP, EPOLLRDHUP },
	};
	short events = 0;
	__u32 mask = 0;
	size_t i;

	if (w->state & FB_ALWAYS)
		return fb_file_events(w, FB_POLL_REGULAR);
	for (i = 0; i < sizeof(bits) / sizeof(*bits); i++)
		if (fb_file_interest(w) & bits[i].epoll)
			events |= bits[i].poll;
	events = fb_poll(fb_fd_of(w), events);
	for (i = 0; i < sizeof(bits) / sizeof(*bits); i++)
		if (events & bits[i].poll)
			mask |= bits[i].epoll;
	return fb_file_events(w, mask);
}

/* Of a file that epoll refuses */
static int fb_file_ready(const struct fb_watch *w)
{
	return w->state & FB_DISARMED ? 0 : (int)fb_file_poll(w);
}

/*
 * Epoll has an edge for a new watch that is ready, and ADD is to hand it back. Events of
 * other watches go to the ready list, or epoll reports them again. So ask epoll until
 * each watch must have had its turn.
 */
static __u32 fb_file_swallow(struct fb_queue *q, struct fb_watch *w)
{
	__u32 rounds = q->index.nr / FB_BATCH + 2;
	struct fb_dest none;
	__u32 ready;

	fb_dest_buffer(&none, NULL, 0);
	while (rounds-- && !w->ready)
		if (fb_collect(q, q->fd, &none) < 1)
			break;
	ready = w->ready;
	fb_dequeue(q, w);
	w->ready = 0;
	return ready;
}

/* The caller wants to know at once. */
static int fb_file_ask(struct fb_queue *q, struct fb_watch *w)
{
	__u32 ready;

	if (!fb_hands_back(w))
		return 0;
	ready = fb_file_poll(w);
	if (ready && !(w->state & FB_REPEATED))
		ready = fb_file_swallow(q, w);
	return (int)ready;
}

/* Epoll polls the file when the watch is registered: what there was, is taken before. */
static __u32 fb_file_take_first(struct fb_watch *w)
{
	return w->state & FB_TAKES ? fb_file_poll(w) : 0;
}

static int fb_file_attach(struct fb_queue *q, struct fb_watch *w,
			  const struct ukevent *uk)
{
	struct stat st;
	int err = fb_file_look(uk, &st);
	__u32 taken;

	if (err)
		return err;
	fb_token_get(&q->index, w);
	/*
	 * Regular files with a poll method say what happened since the last poll, as
	 * /proc/self/mounts does: a second one, by epoll or for a request, finds nothing.
	 * So what a poll finds is kept, and epoll polls when there is something new, once.
	 */
	if (w->type == KEVENT_POLL && S_ISREG(st.st_mode))
		w->state |= FB_TAKES;
	taken = fb_file_take_first(w);
	err = fb_file_register(q, w);
	if (err == -EPERM && w->type == KEVENT_POLL) {
		fb_file_refused(w, &st);
		return fb_file_ready(w);
	}
	/* That is what epoll says of itself. */
	if (err == -EINVAL)
		err = -ELOOP;
	if (err) {
		w->token = 0;
		return err;
	}
	/* Epoll did not have the number: another watch that it has there is of a closed one. */
	fb_number_changed(q, fb_fd_of(w), w);
	return w->state & FB_TAKES ? (int)taken : fb_file_ask(q, w);
}

/* Epoll has not found a watch: why. It says more of a file that cannot be polled. */
static int fb_file_gone(int err)
{
	return err && err != -EBADF ? -ENOENT : err;
}

static int fb_file_unregister(struct fb_queue *q, struct fb_watch *w)
{
	if (!w->token)
		return -ENOENT;
	if (w->state & FB_ALWAYS)
		return fb_file_same(w) ? 0 : -ENOENT;
	return fb_file_gone(fb_call(epoll_ctl(fb_file_epoll(q, w), EPOLL_CTL_DEL,
					      fb_fd_of(w), NULL)));
}

static void fb_file_detach(struct fb_queue *q, struct fb_watch *w)
{
	/* Epoll may keep a file that is open by another descriptor: collect.c. */
	fb_file_unregister(q, w);
}

static int fb_file_remove(struct fb_queue *q, struct fb_watch *w)
{
	int err = fb_file_unregister(q, w);

	w->token = 0;
	fb_kill(q, w);
	return err;
}

static int fb_file_current(struct fb_queue *q, struct fb_watch *w)
{
	int fd = fb_fd_of(w);
	bool same = w->token && (w->state & FB_ALWAYS ? fb_file_same(w) :
				 fb_epoll_has(fb_file_epoll(q, w), fd));

	if (same)
		return 0;
	return fb_call(fcntl(fd, F_GETFD)) < 0 ? -EBADF : -ENOENT;
}

static int fb_file_modify(struct fb_queue *q, struct fb_watch *w,
			  const struct ukevent *uk, const struct fb_watch *old)
{
	__u32 taken = w->state & FB_TAKES ? w->ready : 0;
	int err = 0;

	fb_dequeue(q, w);
	w->ready = 0;
	/* Of another file nothing is taken. */
	if (w->state & (FB_ALWAYS | FB_TAKES))
		err = fb_file_current(q, w);
	if (err)
		return err;
	if (w->state & FB_ALWAYS)
		return fb_file_ready(w);
	taken |= fb_file_take_first(w);
	err = fb_file_gone(fb_file_ctl(q, w, EPOLL_CTL_MOD));
	return err ? err : (int)fb_file_events(w, taken);
}

/*
 * An error: the descriptor means another file. The caller decides on the watch. While calls
 * sleep, epoll would give what it finds to one of them; but of a watch that it reports once, only
 * epoll can do so again.
 */
static int fb_file_repoll(struct fb_queue *q, struct fb_watch *w, bool alone)
{
	bool ours = w->state & (FB_ALWAYS | FB_TAKES);
	__u32 mask;
	int err;

	if (w->state & FB_DISARMED)
		return 0;
	if (!ours && (!alone || w->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH)))
		return fb_file_ctl(q, w, EPOLL_CTL_MOD);
	/* Of another file nothing is taken. */
	err = ours ? fb_file_current(q, w) : 0;
	mask = err ? 0 : fb_file_poll(w);
	/* Afterwards: before, another thread could have the number mean another file since. */
	if (!ours)
		err = fb_file_current(q, w);
	if (!err && mask)
		fb_report(q, w, mask);
	return err;
}

static int fb_file_register_one(struct fb_queue *q, struct fb_watch *w)
{
	__u32 taken;

	if (w->state & FB_ALWAYS)
		return 0;
	taken = fb_file_take_first(w);
	if (taken)
		fb_report(q, w, taken);
	return fb_file_register(q, w);
}

/* READY has the file polled; what epoll finds comes by itself. */
static int fb_file_mark(struct fb_queue *q, struct fb_watch *w,
			const struct ukevent *uk)
{
	int err;

	if (w->list == FB_READY)
		return 0;
	fb_dequeue(q, w);
	err = fb_file_repoll(q, w, false);
	if (q->lists[FB_READY].nr)
		fb_kick(q);
	return err;
}

static void fb_file_use_edge(struct fb_queue *q, struct fb_watch *w)
{
	if (fb_file_ctl(q, w, EPOLL_CTL_MOD))
		w->state &= ~FB_REPEATED;
}

#define FB_FILE_OPS(_name, _events, _check)		\
const struct fb_ops fb_##_name##_ops = {		\
	.size		= sizeof(struct fb_file),	\
	.file		= true,				\
	.fd		= true,				\
	.events		= _events,			\
	.check		= _check,			\
	.object		= fb_file_object,		\
	.attach		= fb_file_attach,		\
	.detach		= fb_file_detach,		\
	.modify		= fb_file_modify,		\
	.remove		= fb_file_remove,		\
	.current	= fb_file_current,		\
	.mark		= fb_file_mark,			\
	.repoll		= fb_file_repoll,		\
	.use_edge	= fb_file_use_edge,		\
	.register_one	= fb_file_register_one,	\
}

FB_FILE_OPS(socket, FB_READABLE | KEVENT_SOCKET_SEND | KEVENT_SOCKET_EMPTY, fb_socket_check);
FB_FILE_OPS(pipe, KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND, NULL);
FB_FILE_OPS(poll, FB_POLL_ALL, NULL);
