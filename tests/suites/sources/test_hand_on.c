// SPDX-License-Identifier: GPL-2.0
/*
 * One watch of several is notified of an event. When it is removed, or loses the
 * interest, the event is handed on to another watch that asked for it.
 *
 *	A and B want data, A is notified	A goes, or wants none -> B
 *	C in front of B wants no data		-> B nevertheless
 *	A is notified of data and room		B wants data, C room: both get it
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers.h"
#include "pairs.h"

/* Queues that watch one end of a stream, and the other end */
struct group {
	struct queue	q[4];
	unsigned int	nr;
	int		fd, peer;
};

static void open_group(struct group *g)
{
	int fd[2];

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	*g = (struct group){ .fd = fd[0], .peer = fd[1] };
}

static void close_group(struct group *g)
{
	while (g->nr)
		close_queue(&g->q[--g->nr]);
	close(g->fd);
	close(g->peer);
}

/* Other watches than POLL report the room of the socket at once. */
static unsigned int join_group(struct group *g, uint32_t type, uint32_t event,
			       uint32_t flags)
{
	unsigned int i = g->nr++;
	struct ukevent ev;

	open_queue(&g->q[i], 0);
	kevent_set_poll(&ev, g->fd, event, flags, i);
	ev.type = type;
	MUST(kevent_ctl_one(g->q[i].fd, KEVENT_CTL_ADD, &ev) >= 0);
	get_events(g->q[i].fd, 1, 1, 0, &ev);
	return i;
}

/* A queue with pending events is the last to be notified. */
static void keep_busy(struct group *g, unsigned int i)
{
	MUST_EQ(add_user(g->q[i].fd, 1, 1, KEVENT_REQ_READY, 99), 0);
}

/* What the watch of a queue reports apart from the pending mark; 0: nothing */
static uint32_t reported(struct group *g, unsigned int i)
{
	struct ukevent ev[2];
	int j, nr = get_events(g->q[i].fd, 1, 2, 0, ev);

	MUST(nr >= 0);
	for (j = 0; j < nr; j++)
		if (ev[j].ptr == i)
			return ev[j].ret_data[0];
	return 0;
}

static void change(struct group *g, unsigned int i, uint32_t event,
		   uint32_t flags)
{
	struct ukevent ev;

	kevent_set_socket(&ev, g->fd, event, flags, i);
	MUST_EQ(kevent_ctl_one(g->q[i].fd, KEVENT_CTL_MODIFY, &ev), 0);
}

/* Ways in which a watch gives up an event */

static void is_removed(struct group *g, unsigned int i)
{
	CHECK_EQ(remove_file(g->q[i].fd, KEVENT_SOCKET, g->fd), 0);
}

static void is_closed(struct group *g, unsigned int i)
{
	close_queue(&g->q[i]);
	open_queue(&g->q[i], 0);
}

static void is_disabled(struct group *g, unsigned int i)
{
	change(g, i, RECV, ET | DISABLED);
}

static void wants_no_data(struct group *g, unsigned int i)
{
	change(g, i, SEND, ET);
}

static void (*const ways[])(struct group *g, unsigned int i) = {
	is_removed, is_closed, is_disabled, wants_no_data,
};

/* A is notified, then disarmed before its consumer collects: B is notified. */
static void check_way(void (*way)(struct group *g, unsigned int i),
		      uint32_t flags, bool collected)
{
	unsigned int a, b;
	struct group g;

	open_group(&g);
	a = join_group(&g, KEVENT_SOCKET, RECV, flags);
	b = join_group(&g, KEVENT_SOCKET, RECV, flags);
	keep_busy(&g, b);
	put_byte(g.peer);
	if (collected)
		CHECK_EQ(reported(&g, a), RECV);
	way(&g, a);
	CHECK_EQ(reported(&g, b), RECV);
	if (way != is_removed && way != is_closed)
		CHECK_EQ(reported(&g, a) & RECV, 0);
	close_group(&g);
}

static void watch_that_goes_or_is_disarmed_hands_on(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		check_way(ways[i], ET, false);
		check_way(ways[i], 0, false);
	}
}

/* A consumer may have taken the event and done nothing. */
static void what_was_collected_is_handed_on_too(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++)
		check_way(ways[i], ET, true);
}

/* The data has been read, so there is nothing to report to others. */
static void nothing_is_reported_when_it_was_read(void)
{
	unsigned int i, a, b;
	struct group g;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		open_group(&g);
		a = join_group(&g, KEVENT_SOCKET, RECV, ET);
		b = join_group(&g, KEVENT_SOCKET, RECV, ET);
		keep_busy(&g, b);
		put_byte(g.peer);
		CHECK_EQ(reported(&g, a), RECV);
		CHECK_EQ(take_bytes(g.fd), 1);
		ways[i](&g, a);
		CHECK_EQ(reported(&g, b), 0);
		close_group(&g);
	}
}

/* A MODIFY that keeps the interest keeps the event. */
static void modify_keeps_what_it_still_wants(void)
{
	static const uint32_t flags[] = { 0, ET, KEVENT_REQ_DISPATCH };
	unsigned int i, a, b;
	struct group g;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		open_group(&g);
		a = join_group(&g, KEVENT_SOCKET, RECV, flags[i]);
		b = join_group(&g, KEVENT_SOCKET, RECV, flags[i]);
		keep_busy(&g, b);
		put_byte(g.peer);
		change(&g, a, RECV, flags[i]);
		CHECK_EQ(reported(&g, a), RECV);
		change(&g, a, RECV, flags[i]);
		CHECK_EQ(reported(&g, a), RECV);
		CHECK_EQ(reported(&g, b), 0);
		close_group(&g);
	}
}

/* A watch with another interest is in front of the one that wants data. */
static void check_other_interest(void (*way)(struct group *g, unsigned int i),
				 uint32_t type, uint32_t event)
{
	unsigned int a, b, c;
	struct group g;

	open_group(&g);
	a = join_group(&g, KEVENT_SOCKET, RECV, ET);
	b = join_group(&g, KEVENT_SOCKET, RECV, ET);
	c = join_group(&g, type, event, ET);
	keep_busy(&g, b);
	put_byte(g.peer);
	way(&g, a);
	if (!CHECK_EQ(reported(&g, b), RECV))
		note("third watch: type %u, event %#x", type, event);
	CHECK_EQ(reported(&g, c) & RECV, 0);
	close_group(&g);
}

static void other_interests_do_not_swallow_it(void)
{
	static const struct {
		uint32_t type, event;
	} other[] = {
		{ KEVENT_SOCKET, SEND },
		{ KEVENT_POLL, KEVENT_POLL_POLLOUT },
		{ KEVENT_POLL, KEVENT_POLL_POLLRDHUP },
		{ KEVENT_POLL, KEVENT_POLL_POLLHUP },
		{ KEVENT_POLL, KEVENT_POLL_POLLPRI },
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(other); i++)
		for (j = 0; j < ARRAY_SIZE(ways); j++)
			check_other_interest(ways[j], other[i].type,
					     other[i].event);
}

/* A buffer this small has room again only when all of it has been read. */
static void fill_small(int fd)
{
	int size = 1;

	MUST_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	fill(fd);
}

/*
 * The watch that goes was notified of data and of room; the two others want one
 * of these each. It is notified because a thread waits for its queue and takes
 * no events: it wants more of them.
 */
static void each_notification_is_handed_on(void)
{
	unsigned int a, b, c;
	struct waiter w;
	struct group g;

	open_group(&g);
	fill_small(g.fd);
	a = join_group(&g, KEVENT_SOCKET, RECV | SEND, ET);
	b = join_group(&g, KEVENT_SOCKET, RECV, ET);
	c = join_group(&g, KEVENT_SOCKET, SEND, ET);
	keep_busy(&g, b);
	keep_busy(&g, c);
	start_waiter_for(&w, &g.q[a], 16, 16, -1);
	take_bytes(g.peer);
	MUST(sleeps_in(w.actor.tid, __NR_kevent_get_events));
	put_byte(g.peer);
	MUST(sleeps_in(w.actor.tid, __NR_kevent_get_events));
	CHECK_EQ(fdinfo(g.q[b].fd, "kevent-ready"), 1);
	CHECK_EQ(fdinfo(g.q[c].fd, "kevent-ready"), 1);
	is_removed(&g, a);
	CHECK_EQ(reported(&g, b), RECV);
	CHECK_EQ(reported(&g, c), SEND);
	kevent_ctl(g.q[a].fd, KEVENT_CTL_READY, 0, NULL);
	CHECK(join_waiter(&w) >= 2);
	close_group(&g);
}

/* The queue that has more than the pending mark */
static int who_is_notified(struct group *g)
{
	unsigned int i;

	for (i = 0; i < g->nr; i++)
		if (fdinfo(g->q[i].fd, "kevent-ready") > (i ? 1 : 0))
			return i;
	return -1;
}

static void it_is_handed_on_again_and_again(void)
{
	struct group g;
	unsigned int i;
	int notified;

	open_group(&g);
	for (i = 0; i < 4; i++)
		join_group(&g, KEVENT_SOCKET, RECV, ET);
	for (i = 1; i < 4; i++)
		keep_busy(&g, i);
	put_byte(g.peer);
	for (i = 0; i < 3; i++) {
		notified = who_is_notified(&g);
		MUST(notified >= 0);
		ways[i](&g, notified);
	}
	notified = who_is_notified(&g);
	MUST(notified >= 0);
	CHECK_EQ(reported(&g, notified), RECV);
	close_group(&g);
}

/* Two descriptors of a pipe in one queue: both are notified, one is removed. */
static void notified_queue_is_not_notified_again(void)
{
	struct ukevent ev[3];
	unsigned int other;
	struct queue q[2];
	int fd[2], copy;

	for (other = 0; other < 2; other++) {
		open_pipe(fd);
		copy = dup(fd[0]);
		MUST(copy >= 0);
		open_queue(&q[0], 0);
		open_queue(&q[1], 0);
		MUST_EQ(add_pipe(q[0].fd, fd[0], RECV, ET, 1), 0);
		MUST_EQ(add_pipe(q[0].fd, copy, RECV, ET, 2), 0);
		if (other)
			MUST_EQ(add_pipe(q[1].fd, fd[0], RECV, ET | DISABLED,
					 3), 0);
		put_byte(fd[1]);
		CHECK_EQ(get_events(q[0].fd, 1, 3, 0, ev), 2);
		CHECK_EQ(remove_file(q[0].fd, KEVENT_PIPE, copy), 0);
		CHECK_EQ(get_events(q[0].fd, 1, 3, 0, ev), 0);
		MUST_EQ(add_pipe(q[0].fd, copy, RECV, HAND_BACK | ET, 2), 1);
		CHECK_EQ(close(copy), 0);
		CHECK_EQ(get_events(q[0].fd, 1, 3, 0, ev), 0);
		close_queue(&q[0]);
		close_queue(&q[1]);
	}
}

/*
 * Two watches have the same event and one goes: the other one still hands it
 * on.
 */
static void last_watch_of_a_queue_hands_on(void)
{
	struct ukevent ev[2];
	struct queue q[2];
	int fd[2], copy;

	open_pipe(fd);
	copy = dup(fd[0]);
	MUST(copy >= 0);
	open_queue(&q[0], 0);
	open_queue(&q[1], 0);
	MUST_EQ(add_pipe(q[0].fd, fd[0], RECV, ET, 1), 0);
	MUST_EQ(add_pipe(q[0].fd, copy, RECV, ET, 2), 0);
	MUST_EQ(add_pipe(q[1].fd, fd[0], RECV, ET, 3), 0);
	MUST_EQ(add_user(q[1].fd, 1, 1, KEVENT_REQ_READY, 9), 0);
	put_byte(fd[1]);
	CHECK_EQ(fdinfo(q[0].fd, "kevent-ready"), 2);
	CHECK_EQ(remove_file(q[0].fd, KEVENT_PIPE, copy), 0);
	CHECK_EQ(fdinfo(q[1].fd, "kevent-ready"), 1);
	CHECK_EQ(remove_file(q[0].fd, KEVENT_PIPE, fd[0]), 0);
	CHECK_EQ(get_events(q[1].fd, 1, 2, 0, ev), 2);
	close_queue(&q[0]);
	close_queue(&q[1]);
}

/*
 * The chosen watch is disarmed before it is notified: another one is notified.
 */
static long write_byte(void *arg)
{
	return write(*(int *)arg, "", 1);
}

static void check_window(void (*way)(struct group *g, unsigned int i))
{
	struct actor writer;
	unsigned int a, b;
	struct group g;

	open_group(&g);
	a = join_group(&g, KEVENT_SOCKET, RECV, ET);
	b = join_group(&g, KEVENT_SOCKET, RECV, ET);
	keep_busy(&g, b);
	CHECK(start_in_window(&writer, "turn", write_byte, &g.peer));
	way(&g, a);
	window_release();
	join_actor(&writer, PATIENCE_MS);
	CHECK_EQ(writer.ret, 1);
	CHECK_EQ(reported(&g, b), RECV);
	CHECK_EQ(reported(&g, a) & RECV, 0);
	close_group(&g);
}

static void watch_disarmed_in_its_turn_is_passed_over(void)
{
	check_window(is_disabled);
	check_window(wants_no_data);
}

static long collect_mask(void *arg)
{
	struct ukevent ev;
	int ret = get_events(*(int *)arg, 1, 1, 0, &ev);

	return ret == 1 ? (long)ev.ret_data[0] : -1;
}

/* The watch is notified after its consumer has looked up what it reports. */
static void watch_about_to_be_disarmed_tells_others_too(void)
{
	static const uint32_t flags[] = {
		KEVENT_REQ_DISPATCH, KEVENT_REQ_ONESHOT,
	};
	struct actor consumer;
	unsigned int a, b, i;
	struct group g;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		open_group(&g);
		a = join_group(&g, KEVENT_SOCKET, RECV | SEND, ET | DISABLED);
		change(&g, a, RECV | SEND, flags[i]);
		b = join_group(&g, KEVENT_SOCKET, RECV, ET);
		keep_busy(&g, b);
		CHECK(start_in_window(&consumer, "verified", collect_mask, &g.q[a].fd));
		put_byte(g.peer);
		window_release();
		join_actor(&consumer, PATIENCE_MS);
		CHECK_EQ(consumer.ret, SEND);
		CHECK_EQ(reported(&g, b), RECV);
		close_group(&g);
	}
}

static long becomes_oneshot_of_room(void *arg)
{
	change(arg, 0, SEND, KEVENT_REQ_ONESHOT);
	return 0;
}

/*
 * A MODIFY has withdrawn the interest in data, and not handed on yet. Meanwhile the watch is
 * delivered, with room, for good.
 */
static void watch_delivered_for_good_hands_on_what_it_lost(void)
{
	struct actor modifier;
	unsigned int a, b;
	struct group g;

	open_group(&g);
	a = join_group(&g, KEVENT_SOCKET, RECV, ET);
	b = join_group(&g, KEVENT_SOCKET, RECV, ET);
	keep_busy(&g, b);
	put_byte(g.peer);
	CHECK(start_in_window(&modifier, "hand_on", becomes_oneshot_of_room, &g));
	CHECK_EQ(reported(&g, a), SEND);
	window_release();
	join_actor(&modifier, PATIENCE_MS);
	CHECK_EQ(remove_file(g.q[a].fd, KEVENT_SOCKET, g.fd), -ENOENT);
	CHECK_EQ(reported(&g, b), RECV);
	close_group(&g);
}

/* A watch of a FIFO that is open for both is in two wait queues. */
static void watch_in_two_wait_queues_hands_on(void)
{
	static const char name[] = "/tmp/hand-on";
	struct ukevent ev[2];
	struct queue q[2];
	int fd, i;

	MUST_EQ(mkfifo(name, 0600), 0);
	fd = open(name, O_RDWR | O_NONBLOCK);
	MUST(fd >= 0);
	for (i = 0; i < 2; i++) {
		open_queue(&q[i], 0);
		MUST_EQ(add_pipe(q[i].fd, fd, RECV, ET, i), 0);
	}
	MUST_EQ(add_user(q[1].fd, 1, 1, KEVENT_REQ_READY, 99), 0);
	put_byte(fd);
	CHECK_EQ(fdinfo(q[0].fd, "kevent-ready"), 1);
	CHECK_EQ(fdinfo(q[1].fd, "kevent-ready"), 1);
	kevent_set_pipe(&ev[0], fd, RECV, ET | DISABLED, 0);
	MUST_EQ(kevent_ctl_one(q[0].fd, KEVENT_CTL_MODIFY, &ev[0]), 0);
	CHECK_EQ(get_events(q[1].fd, 1, 2, 0, ev), 2);
	CHECK_EQ(ev[1].ptr, 1);
	for (i = 0; i < 2; i++)
		close_queue(&q[i]);
	close(fd);
	unlink(name);
}

static const struct test_case cases[] = {
	TEST(watch_that_goes_or_is_disarmed_hands_on),
	TEST(what_was_collected_is_handed_on_too),
	TEST(nothing_is_reported_when_it_was_read),
	TEST(modify_keeps_what_it_still_wants),
	TEST(other_interests_do_not_swallow_it),
	TEST(each_notification_is_handed_on),
	TEST(it_is_handed_on_again_and_again),
	TEST(notified_queue_is_not_notified_again),
	TEST(last_watch_of_a_queue_hands_on),
	TEST(watch_in_two_wait_queues_hands_on),
	TEST(watch_disarmed_in_its_turn_is_passed_over),
	TEST(watch_about_to_be_disarmed_tells_others_too),
	TEST(watch_delivered_for_good_hands_on_what_it_lost),
	{}
};

const struct test_suite hand_on_suite = { .name = "hand_on", .cases = cases };
