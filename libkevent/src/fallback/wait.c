// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Waiting: kevent_wait(), kevent_get_events(), kevent_commit()
 *
 * All calls of a queue sleep in epoll. A call that takes an event stores it; so a
 * sleeper is woken for an event of its own, by a kick, or not at all. A call takes the
 * events that are there under the lock, and sleeps if there are none: so only a call
 * that was woken has taken events that other calls do not see yet.
 *
 * A call that takes several events stores entries that others were woken for, or would
 * have been. Each entry ends one call, as in the kernel. A call that returns for entries
 * kicks once if that leaves any, and so does the one that this wakes. The kick wakes the
 * newest sleeper. If the entries are not enough for that one, or it has seen them, or
 * another one waits for several and has them, all look.
 */
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <linux/time_types.h>

#include "api/process.h"
#include "count.h"
#include "deadline.h"
#include "fallback.h"
#include "ops.h"
#include "sys.h"

/* Headers before Linux 5.11 do not know it. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2	(KEVENT_NR_BASE + 441)
#endif

/**
 * enum fb_outcome - of a look at epoll, a sleep, or a wait
 * @FB_NOTHING:	epoll has nothing, or the call may not sleep now
 * @FB_TAKEN:	what epoll had is taken
 * @FB_MORE:	likewise, as much as there was room for
 * @FB_ENOUGH:	the call has what it waits for
 * @FB_TIMED_OUT: the time is over
 * @FB_REQUESTED: it was asked to return
 * @FB_INTERRUPTED: a signal came
 * @FB_FAILED:	epoll has refused the call
 *
 * The first three do not end the wait. With the last one the error is in &fb_wait.err.
 */
enum fb_outcome {
	FB_NOTHING,
	FB_TAKEN,
	FB_MORE,
	FB_ENOUGH,
	FB_TIMED_OUT,
	FB_REQUESTED,
	FB_INTERRUPTED,
	FB_FAILED,
};

/**
 * struct fb_wait - a call that collects
 * @q:		the queue
 * @fd:		its descriptor
 * @err:	see &enum fb_outcome
 * @buf:	where the next entry goes; NULL: to the ring
 * @num:	most entries of the ring that a collection may store
 * @max:	most entries to store from now on
 * @got:	entries stored in @buf so far
 * @old_kidx:	of the ring, as the caller has seen it
 * @min:	entries that are enough
 * @call:	its number
 * @round:	of the herd, when it last looked
 * @herded:	a herd was woken since then: it has to poll level watches again
 * @slept:	it has slept before
 * @requested:	it has taken a request to return
 * @again:	see &struct fb_dest
 * @mask:	signal mask during the call, or NULL
 * @until:	when to give up
 */
struct fb_wait {
	struct fb_queue		*q;
	int			fd;
	int			err;
	struct ukevent		*buf;
	__u32			num;
	__u32			max;
	__u32			got;
	__u32			old_kidx;
	__u32			min;
	__u32			call;
	__u32			round;
	bool			herded;
	bool			slept;
	bool			requested;
	bool			again;
	const void		*mask;
	struct fb_deadline	until;
};

static void fb_wait_dest(struct fb_wait *c, struct fb_dest *d)
{
	if (c->buf)
		fb_dest_buffer(d, c->buf, c->max);
	else
		fb_dest_ring(&c->q->ring, d, c->max);
}

/* Entries are stored. The queue is locked. */
static void fb_wait_stored(struct fb_wait *c, const struct fb_dest *d)
{
	__u32 nr;

	if (c->buf) {
		nr = (__u32)d->kidx;
		c->buf += nr;
		c->got += nr;
	} else {
		nr = (__u32)(d->kidx - c->q->ring.kidx);
		fb_dest_publish(&c->q->ring, d);
		if (fb_has_sleepers(c->q))
			c->q->sleepers.left += nr;
	}
	c->max -= nr;
	c->again |= d->again;
}

static __u32 fb_stored(const struct fb_wait *c)
{
	return (__u32)__atomic_load_n(&c->q->ring.kidx, __ATOMIC_ACQUIRE) -
	       c->old_kidx;
}

/* Is that what the caller waits for? A full ring is, with anything new in it. */
static bool fb_wait_content(const struct fb_wait *c)
{
	__u32 stored;

	if (c->buf)
		return c->got >= c->min;
	stored = fb_stored(c);
	return stored >= c->min || (stored && fb_unread(&c->q->ring) >= c->q->ring.size);
}

/* Lists */

/*
 * Level watches that are polled here, and not by epoll, may fill the room in each call. So
 * they give way to what epoll has each second time.
 */
static bool fb_recheck_gives_way(struct fb_queue *q, const struct fb_dest *d)
{
	if (!d->room || q->lists[FB_RECHECK].nr < d->room)
		return false;
	q->gave_way = !q->gave_way;
	return q->gave_way;
}

/*
 * Store what waits here, and poll level watches if the call is to repeat them. Returns
 * whether it is to do so when it has asked epoll, if it @may.
 */
static bool fb_wait_lists(struct fb_wait *c, bool relist, bool may)
{
	struct fb_queue *q = c->q;
	struct fb_dest d;
	bool later;

	FB_HOLD_QUEUE(q, c->fd);
	fb_wait_dest(c, &d);
	fb_deliver(q, &d);
	later = relist && may && fb_recheck_gives_way(q, &d);
	if (relist && !later)
		fb_recheck(q, &d, c->call);
	fb_wait_stored(c, &d);
	return later;
}

/* Epoll */

static int fb_wait_max(const struct fb_wait *c, bool sleep)
{
	__u32 room = c->max, free;

	free = c->buf ? room : c->q->ring.size - fb_unread(&c->q->ring);
	if (free < room)
		room = free;
	if (room > FB_BATCH || (!room && sleep))
		room = FB_BATCH;
	return (int)room;
}

/* The queue is locked. */
static void fb_wait_process(struct fb_wait *c, struct epoll_event *events, int nr)
{
	struct fb_queue *q = c->q;
	struct fb_dest d;
	__u32 round = q->sleepers.round;

	fb_wait_dest(c, &d);
	fb_collected(q, events, nr, &d, c->call);
	if (q->lists[FB_READY].nr)
		fb_deliver(q, &d);
	fb_wait_stored(c, &d);
	/* The caller is none of the herd that it wakes. */
	if (c->round == round)
		c->round = q->sleepers.round;
}

/* The outcome of a call of epoll that was asked for at most @max events */
static enum fb_outcome fb_wait_had(struct fb_wait *c, int nr, int max)
{
	__atomic_store_n(&c->q->idle, nr < max, __ATOMIC_RELAXED);
	if (nr > 0)
		return nr == max ? FB_MORE : FB_TAKEN;
	c->err = nr;
	return !nr ? FB_NOTHING : nr == -EINTR ? FB_INTERRUPTED : FB_FAILED;
}

/* Take what is there. No other call sees the queue without it. */
static enum fb_outcome fb_wait_poll_once(struct fb_wait *c)
{
	struct epoll_event events[FB_BATCH];
	int nr, max;

	FB_HOLD_QUEUE(c->q, c->fd);
	max = fb_wait_max(c, false);
	if (!max)
		return FB_NOTHING;
	nr = (int)fb_sys(SYS_epoll_pwait, c->fd, events, max, 0, NULL, (size_t)8);
	if (nr > 0)
		fb_wait_process(c, events, nr);
	return fb_wait_had(c, nr, max);
}

/*
 * The same, until there is no more, or all that is left is of this call. Epoll may repeat
 * for ever what is of nobody: then the caller looks at the time.
 */
static enum fb_outcome fb_wait_poll(struct fb_wait *c)
{
	enum fb_outcome outcome, found = FB_NOTHING;
	__u32 max, rounds = FB_BATCH;

	do {
		max = c->max;
		outcome = fb_wait_poll_once(c);
		if (outcome != FB_NOTHING)
			found = outcome;
	} while (outcome == FB_MORE && !c->again &&
		 (c->max < max || (!fb_wait_content(c) && --rounds)));
	return found;
}

static bool fb_no_pwait2;

/* Is @ret of the call itself? A filter may return any other error, and not only ENOSYS. */
static bool fb_pwait2_said(long ret)
{
	return ret >= 0 || ret == -EINTR || ret == -EINVAL || ret == -EBADF ||
	       ret == -EFAULT;
}

static int fb_epoll_wait(const struct fb_wait *c, struct epoll_event *events, int max,
			 __s64 left)
{
	struct __kernel_timespec ts = { left / FB_NSEC_PER_SEC, left % FB_NSEC_PER_SEC };
	bool endless = left == FB_TIME_MAX;
	long ret = -ENOSYS;

	if (!endless && !__atomic_load_n(&fb_no_pwait2, __ATOMIC_RELAXED))
		ret = fb_sys(SYS_epoll_pwait2, c->fd, events, max, &ts, c->mask, (size_t)8);
	if (fb_pwait2_said(ret))
		return (int)ret;
	if (!endless)
		__atomic_store_n(&fb_no_pwait2, true, __ATOMIC_RELAXED);
	return (int)fb_sys(SYS_epoll_pwait, c->fd, events, max,
			   fb_time_ms(left), c->mask, (size_t)8);
}

/* Sleeping */

/* May one of those who sleep be content? The queue is locked. */
static bool fb_is_for_sleepers(const struct fb_queue *q)
{
	return fb_has_sleepers(q) &&
	       (q->ring.kidx >= q->sleepers.soonest || fb_unread(&q->ring) >= q->ring.size);
}

/* The queue is locked. Has a herd been woken since the call last looked? */
static bool fb_wait_note_herd(struct fb_wait *c)
{
	if (c->round == c->q->sleepers.round)
		return false;
	c->round = c->q->sleepers.round;
	c->herded = true;
	return true;
}

/*
 * The queue is locked. The caller, who is to sleep, has no use for the entries, nor for what
 * waits for room in the ring: who brings a buffer has that. If that is the caller, another
 * one may have taken the kick since it looked.
 */
static bool fb_wait_pass_on(struct fb_wait *c)
{
	struct fb_queue *q = c->q;
	bool others = (q->sleepers.left && fb_is_for_sleepers(q)) ||
		      (q->lists[FB_READY].nr && q->sleepers.buffers);

	if (c->buf && q->lists[FB_READY].nr)
		return true;
	if (others)
		fb_kick_all(q);
	/* The caller is none of the herd that it wakes. */
	c->round = q->sleepers.round;
	q->sleepers.left = 0;
	return others;
}

/* The queue is locked. Note at which position of the ring the caller has enough entries. */
static void fb_wait_expect(struct fb_wait *c)
{
	struct fb_queue *q = c->q;
	__u64 end = c->buf ? ~0ULL : q->ring.kidx + c->min - fb_stored(c);
	bool first = !fb_has_sleepers(q);

	if (first || end < q->sleepers.soonest)
		q->sleepers.soonest = end;
	if (c->min == 1)
		end = ~0ULL;
	if (first || end < q->sleepers.several)
		q->sleepers.several = end;
}

/*
 * Epoll does not wake the caller for what was delivered, but says what is ready.
 * A herd that is woken from now on counts the caller, and so do entries that are stored
 * from now on. Of what was before, nobody tells the caller, who may not sleep then. Nor
 * may one that has woken others: it gives way to them first. Nor one whose time may have
 * changed before the queue heard of steps of the clock.
 */
static bool fb_wait_begin_sleep(struct fb_wait *c)
{
	struct fb_queue *q = c->q;

	FB_HOLD_QUEUE(q, c->fd);
	if (fb_wait_note_herd(c) || fb_wait_content(c) || fb_wait_pass_on(c) ||
	    q->sleepers.ended || (fb_deadline_steps(&c->until) && fb_hear_steps(q)))
		return false;
	/* Both may have begun before either slept. */
	if (fb_has_sleepers(q))
		fb_use_edges(q);
	fb_hide(q);
	fb_wait_expect(c);
	fb_count_add(&q->sleepers.nr, 1);
	q->sleepers.buffers += c->buf != NULL;
	return true;
}

/* The queue is locked. Is the caller, or one of those who sleep, asked to return? */
static void fb_wait_take_request(struct fb_wait *c)
{
	struct fb_queue *q = c->q;

	if (!q->sleepers.wakes || c->requested)
		return;
	__atomic_store_n(&q->sleepers.wakes, q->sleepers.wakes - 1, __ATOMIC_RELAXED);
	c->requested = true;
}

/*
 * The queue may have been closed while the call slept, and its number may be that of another one.
 * Nothing is done by such a number, as it would be done to that.
 */
static void fb_wait_look_whose(struct fb_wait *c)
{
	struct fb_number *n = fb_number(c->fd);

	if (!n || __atomic_load_n(&n->named, __ATOMIC_ACQUIRE) == c->q)
		return;
	c->fd = -1;
	FB_HOLD_QUEUE(c->q, -1);
	__atomic_store_n(&c->q->fd, -1, __ATOMIC_RELAXED);
}

/*
 * Each of a herd was counted once, and is subtracted here. A request is taken with the same
 * hold of the lock: as long as it is there, and the caller is not among those who sleep, it
 * would stand for a request to another one.
 */
static void fb_wait_end_sleep(struct fb_wait *c, struct epoll_event *events, int nr)
{
	struct fb_queue *q = c->q;

	FB_HOLD_QUEUE(q, c->fd);
	fb_count_add(&q->sleepers.nr, -1U);
	q->sleepers.buffers -= c->buf != NULL;
	if (fb_wait_note_herd(c))
		__atomic_store_n(&q->sleepers.herd, q->sleepers.herd - 1, __ATOMIC_RELAXED);
	if (nr > 0)
		fb_wait_process(c, events, nr);
	if (!fb_wait_content(c))
		fb_wait_take_request(c);
}

/* Sleep, unless something has happened since the call looked. Nothing was there then. */
static enum fb_outcome fb_wait_sleep(struct fb_wait *c, __s64 left)
{
	struct epoll_event events[FB_BATCH];
	int max = fb_wait_max(c, true), nr;
	enum fb_outcome outcome;

	if (!fb_wait_begin_sleep(c))
		return FB_NOTHING;
	nr = fb_epoll_wait(c, events, max, left);
	fb_wait_look_whose(c);
	fb_wait_end_sleep(c, events, nr);
	outcome = fb_wait_had(c, nr, max);
	/* The rest, if not all may have fitted */
	return outcome == FB_MORE && !c->again ? fb_wait_poll(c) : outcome;
}

/*
 * The call slept before and took a kick that was for one of a herd. Let that one
 * be quicker, even if it has less priority or a tracer has stopped it.
 */
static enum fb_outcome fb_wait_give_way(struct fb_wait *c)
{
	static const long nap[2] = { 0, 50000 };
	bool slept = c->slept;
	long ret;

	c->slept = true;
	if (!slept || !__atomic_load_n(&c->q->sleepers.herd, __ATOMIC_RELAXED))
		return FB_NOTHING;
	ret = fb_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, nap, NULL);
	fb_wait_look_whose(c);
	return ret == -EINTR ? FB_INTERRUPTED : FB_NOTHING;
}

/* Epoll repeats what the call has: not from now on. */
static void fb_wait_hide(struct fb_wait *c)
{
	FB_HOLD_QUEUE(c->q, c->fd);
	fb_use_edges(c->q);
	fb_hide(c->q);
	c->again = false;
}

/* The loop */

static bool fb_wait_has_work(const struct fb_wait *c)
{
	return __atomic_load_n(&c->q->work, __ATOMIC_ACQUIRE);
}

/* Is the call to return? Then it has done as it was asked. */
static bool fb_wait_requested(struct fb_wait *c)
{
	bool ret;

	if (!c->requested && __atomic_load_n(&c->q->sleepers.wakes, __ATOMIC_RELAXED)) {
		FB_HOLD_QUEUE(c->q, c->fd);
		fb_wait_take_request(c);
	}
	ret = c->requested;
	c->requested = false;
	return ret;
}

/* A call that WAKE_ALL woke has checked the queue once more before it comes here. */
static bool fb_wait_is_over(struct fb_wait *c)
{
	return !fb_deadline_left(&c->until) ||
	       __atomic_load_n(&c->q->sleepers.ended, __ATOMIC_ACQUIRE);
}

/*
 * Collect until there is enough, or something else ends the wait: what the lists of the queue
 * have, then what epoll has, and if that was nothing, what wakes the call. One that has taken
 * anything looks at the lists before it sleeps: that may have been a kick.
 */
static enum fb_outcome fb_wait_loop(struct fb_wait *c)
{
	bool content, later = false, relist = true;
	enum fb_outcome outcome;
	__s64 left;

	for (;;) {
		if (!c->buf && !later)
			c->max = c->num;
		later = fb_wait_has_work(c) && fb_wait_lists(c, relist, !later);
		content = fb_wait_content(c);
		if (!content && fb_wait_requested(c))
			return FB_REQUESTED;
		outcome = content || later ? FB_NOTHING : fb_wait_give_way(c);
		if (outcome == FB_NOTHING)
			outcome = fb_wait_poll(c);
		if (!content && !later && (outcome == FB_NOTHING || c->again) &&
		    (left = fb_deadline_left(&c->until))) {
			if (c->again)
				fb_wait_hide(c);
			else
				outcome = fb_wait_sleep(c, left);
		}
		relist = later;
		if (later && outcome <= FB_MORE)
			continue;
		if (c->herded)
			relist = !c->got;
		c->herded = false;
		content = content || fb_wait_content(c);
		/* The signal may be an event of the queue. */
		if (outcome == FB_INTERRUPTED && !content) {
			fb_wait_poll(c);
			content = fb_wait_content(c);
		}
		if (content)
			return FB_ENOUGH;
		if (outcome > FB_MORE)
			return outcome;
		if (relist)
			continue;
		if (fb_wait_requested(c))
			return FB_REQUESTED;
		if (fb_wait_is_over(c)) {
			if (!fb_deadline_put_off(&c->until))
				return FB_TIMED_OUT;
			c->min = 1;
		}
	}
}

/* Calls */

/* Two threads in calls of a queue must not get a level event both. */
static void fb_wait_enter(struct fb_wait *c)
{
	struct fb_queue *q = c->q;

	c->call = fb_count_add(&q->call, 1);
	/* Before the look at q->work. Pairs with fb_kick_all(). */
	c->round = __atomic_load_n(&q->sleepers.round, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&q->sleepers.nr, __ATOMIC_RELAXED) &&
	    !__atomic_load_n(&q->edges, __ATOMIC_RELAXED)) {
		FB_HOLD_QUEUE(q, c->fd);
		fb_use_edges(q);
	}
}

/*
 * The queue is locked. Of the entries one is for the caller, if it @has any, and those that
 * nobody has taken are for others. For a call that waits for several, entries count that other
 * calls take, too.
 */
static void fb_wait_share(struct fb_wait *c, bool has)
{
	struct fb_queue *q = c->q;
	__u32 unread = fb_unread(&q->ring);

	q->sleepers.left -= has;
	if (!fb_is_for_sleepers(q))
		q->sleepers.left = 0;
	else if (q->ring.kidx >= q->sleepers.several)
		fb_kick_all(q);
	else if (q->sleepers.left > unread)
		q->sleepers.left = unread;
}

/*
 * Others may want what the caller leaves, as a request if it returns for something else: let
 * one of them, or poll(), know.
 */
static void fb_wait_leave(struct fb_wait *c, bool has)
{
	struct fb_queue *q = c->q;

	if (!c->requested && !fb_wait_has_work(c))
		return;
	FB_HOLD_QUEUE(q, c->fd);
	if (q->sleepers.left)
		fb_wait_share(c, has);
	if (c->requested)
		__atomic_store_n(&q->sleepers.wakes, q->sleepers.wakes + 1, __ATOMIC_RELAXED);
	if (!fb_has_sleepers(q))
		fb_show(q);
	fb_kick_if_needed(q);
}

/*
 * Is the number the queue's, in this process? 0, or what the call says. Whether it has come to be
 * another file costs as much to find out as a wait that finds nothing. So without changes, the
 * number that was used last is believed.
 */
static inline int fb_wait_check(struct fb_queue *q, int fd, bool changes)
{
	if (!q)
		return KEVENT_FB_PASS;
	if (!kevent_process_is(q->process))
		return fb_queue_abroad(q, fd);
	if (!changes && __atomic_load_n(&q->fd, __ATOMIC_RELAXED) == fd)
		return 0;
	return fb_queue_check(q, fd) ? fb_not_this(fd, q) : 0;
}

/* Epoll may say that the descriptor is not, or no more, the queue's. */
static int fb_wait_error(const struct fb_wait *c, enum fb_outcome outcome)
{
	if (outcome == FB_INTERRUPTED)
		return -EINTR;
	return c->err == -EBADF || c->err == -EINVAL ? fb_not_this(c->fd, c->q) : c->err;
}

int kevent_fb_get_events(int fd, __u32 min_nr, __u32 max_nr,
			 const struct timespec *timeout, struct ukevent *buf,
			 __u32 flags)
{
	struct fb_queue *q FB_PUT = fb_get(fd);
	struct fb_wait c = {
		.q = q, .fd = fd, .buf = buf, .max = max_nr, .min = min_nr ? min_nr : 1,
	};
	enum fb_outcome outcome;
	int err = fb_wait_check(q, fd, false);

	if (err)
		return err;
	if (flags & ~KEVENT_FLAGS_ABSTIME || !max_nr ||
	    max_nr > INT_MAX / sizeof(*buf) || min_nr > max_nr)
		return -EINVAL;
	err = fb_deadline_init(&c.until, CLOCK_MONOTONIC,
			       flags & KEVENT_FLAGS_ABSTIME, timeout);
	if (err)
		return err;
	if (!buf)
		return -EFAULT;
	fb_wait_enter(&c);
	outcome = fb_wait_loop(&c);
	fb_wait_leave(&c, false);
	return c.got || outcome < FB_INTERRUPTED ? (int)c.got : fb_wait_error(&c, outcome);
}

static int fb_check_arg(const struct kevent_wait_arg *arg)
{
	const char *bytes = (const char *)arg;
	__u32 i;

	if (!arg)
		return -EFAULT;
	if (arg->size < sizeof(*arg))
		return -EINVAL;
	if (arg->size > 4096)
		return -E2BIG;
	for (i = sizeof(*arg); i < arg->size; i++)
		if (bytes[i])
			return -E2BIG;
	if (!fb_clock_known(arg->clockid) ||
	    arg->nr_changes > KEVENT_CTL_MAX)
		return -EINVAL;
	return arg->sigmask && arg->sigsetsize != 8 ? -EINVAL : 0;
}

static int fb_wait_arg(struct fb_wait *c, const struct kevent_wait_arg *arg)
{
	int ret;

	c->mask = (const void *)(uintptr_t)arg->sigmask;
	c->min = arg->min_nr;
	if (!arg->nr_changes)
		return 0;
	ret = fb_wait_check(c->q, c->fd, true);
	if (!ret)
		ret = fb_make_changes(c->q, c->fd, (struct kevent_change *)
				      (uintptr_t)arg->changes, arg->nr_changes);
	if (ret > 0)
		c->until.at = 0;
	return ret < 0 ? ret : 0;
}

static int fb_wait_result(const struct fb_wait *c, enum fb_outcome outcome)
{
	__u32 stored = fb_stored(c);

	if (outcome == FB_REQUESTED)
		return 0;
	if (outcome == FB_INTERRUPTED && !fb_unread(&c->q->ring))
		return -EINTR;
	if (stored > INT_MAX)
		return -EINVAL;
	return stored || outcome < FB_INTERRUPTED ? (int)stored : fb_wait_error(c, outcome);
}

int kevent_fb_wait(int fd, __u32 num, __u32 old_kidx,
		   const struct timespec *timeout, __u32 flags,
		   const struct kevent_wait_arg *arg)
{
	struct fb_queue *q FB_PUT = fb_get(fd);
	struct fb_wait c = {
		.q = q, .fd = fd, .num = num, .old_kidx = old_kidx, .min = 1,
	};
	bool more = flags & KEVENT_FLAGS_ARG;
	enum fb_outcome outcome;
	int ret = fb_wait_check(q, fd, flags & KEVENT_FLAGS_SERVE);

	if (ret)
		return ret;
	if (flags & KEVENT_FLAGS_SERVE)
		return old_kidx || arg ? -EINVAL :
		       fb_serve(q, fd, num, timeout, flags);
	if (!q->ring.mem || !num || flags & ~(KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_ARG))
		return -EINVAL;
	ret = more ? fb_check_arg(arg) : 0;
	if (!ret)
		ret = fb_deadline_init(&c.until, more ? arg->clockid :
				       CLOCK_MONOTONIC,
				       flags & KEVENT_FLAGS_ABSTIME, timeout);
	if (ret)
		return ret;
	fb_wait_enter(&c);
	if (more)
		ret = fb_wait_arg(&c, arg);
	if (ret)
		return ret;
	c.min = !c.min ? 1 : c.min > q->ring.size ? q->ring.size : c.min;
	if (c.min > 1)
		fb_deadline_bring_forward(&c.until, arg->min_wait_ns);
	outcome = fb_wait_loop(&c);
	fb_wait_leave(&c, outcome != FB_REQUESTED && fb_stored(&c));
	return fb_wait_result(&c, outcome);
}

int kevent_fb_commit(int fd, __u64 uidx)
{
	struct fb_queue *q FB_PUT = fb_get(fd);
	struct fb_wait c = { .q = q, .fd = fd, .min = 1 };
	enum fb_outcome outcome;
	int freed, ret = fb_wait_check(q, fd, false);

	if (ret)
		return ret;
	if (!q->ring.mem)
		return -EINVAL;
	fb_wait_enter(&c);
	{
		FB_HOLD_QUEUE(q, fd);
		freed = fb_ring_commit(&q->ring, uidx);
		c.old_kidx = (__u32)q->ring.kidx;
	}
	if (freed < 0)
		return freed;
	c.max = q->ring.size;
	if (fb_wait_has_work(&c))
		fb_wait_lists(&c, true, true);
	outcome = fb_wait_poll(&c);
	/* The caller did not ask for events: they are for those who did. */
	fb_wait_leave(&c, false);
	return outcome == FB_FAILED && (c.err == -EBADF || c.err == -EINVAL) ?
	       fb_not_this(fd, q) : freed;
}

/* For kevent_queue_pop() */
bool kevent_fb_idle(int fd)
{
	struct fb_queue *q FB_PUT = fb_get(fd);
	bool idle;

	if (!q)
		return false;
	idle = __atomic_load_n(&q->idle, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&q->work, __ATOMIC_ACQUIRE);
	if (idle)
		__atomic_store_n(&q->idle, false, __ATOMIC_RELAXED);
	return idle;
}
