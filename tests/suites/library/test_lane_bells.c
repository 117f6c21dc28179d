// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes whose receiver is woken by the bell of its queue
 *
 *	a ======> b	both in the test, or b in a child
 *	a <------ b	the bell of b's queue, once, over the socket
 *
 * A wait that the bell ends returns 0, and so does one that nothing ends: the time says
 * which. What lanes do else is in the suite lanes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "helpers.h"

#define RING		16
#define LOOKS		200		/* after which a lane without messages is idle */
#define RACE_NS		2000000000ull

/* Of the static library only */
void kevent_lane_unwatch(struct kevent_lane *l);

static const struct kevent_lane_options both_ways = {
	.send_slots = 4, .recv_slots = 4,
};
static const struct kevent_lane_options by_socket = {
	.send_slots = 4, .recv_slots = 4, .flags = KEVENT_LANE_SOCKET,
};

struct end {
	struct kevent_lane	lane;
	struct kevent_queue	q;
	union {
		struct kevent_ring ring;
		unsigned char	bytes[KEVENT_RING_BYTES(RING)];
	} mem __attribute__((aligned(64)));
};

static struct end a, b;

/* Both watched, without bells */
static void open_both(const struct kevent_lane_options *o)
{
	int sock[2];

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(kevent_lane_create(&a.lane, o), 0);
	MUST_EQ(kevent_lane_pass(&a.lane, sock[0]), 0);
	MUST_EQ(kevent_lane_attach(&b.lane, sock[1], 0, 0), 0);
	MUST_EQ(kevent_queue_init(&a.q, &a.mem.ring, RING, 0), 0);
	MUST_EQ(kevent_queue_init(&b.q, &b.mem.ring, RING, 0), 0);
	MUST_EQ(kevent_lane_watch(&a.lane, a.q.fd, 1), 0);
	MUST_EQ(kevent_lane_watch(&b.lane, b.q.fd, 2), 0);
}

static void close_end(struct end *e)
{
	kevent_lane_close(&e->lane);
	kevent_queue_close(&e->q);
}

static void close_both(void)
{
	close_end(&a);
	close_end(&b);
}

/* Takes what has come: 1 for an event, 0 for a bell, -ETIME for neither, or -errno. */
static int await(struct end *e)
{
	struct timespec limit = ms_to_timespec(PATIENCE_MS * slowness);
	uint64_t start = now_ns();
	struct ukevent ev;
	int ret = kevent_queue_get(&e->q, &ev, 1, &limit);

	if (ret == 1)
		kevent_lane_event(&e->lane, &ev);
	else if (!ret && now_ns() - start >= PATIENCE_MS * slowness * 1000000ull)
		return -ETIME;
	return ret;
}

/* A message of @a finds @b asleep. Returns what ended the sleep, as await(). */
static int wake_b(void)
{
	uint64_t nr = 5;
	int ret;

	MUST_EQ(kevent_lane_arm(&b.lane), 0);
	MUST_EQ(kevent_lane_send(&a.lane, &nr, sizeof(nr)), 0);
	ret = await(&b);
	nr = 0;
	MUST_EQ(kevent_lane_recv(&b.lane, &nr, sizeof(nr)), sizeof(nr));
	MUST_EQ(nr, 5);
	return ret;
}

/* --- step by step -------------------------------------------------------- */

static void message_rings(const struct kevent_lane_options *o)
{
	open_both(o);
	CHECK_EQ(wake_b(), 1);
	CHECK_EQ(kevent_lane_bell(&b.lane), 0);
	CHECK_EQ(kevent_lane_bell(&b.lane), -EALREADY);
	CHECK_EQ(wake_b(), 0);
	CHECK_EQ(wake_b(), 0);
	close_both();
}

/* A thread that only sends finds the bell in the socket. */
static void message_is_no_event(void)
{
	message_rings(&both_ways);
	message_rings(&by_socket);
}

/* What was sent to wake it is still there. */
static void sender_takes_no_byte(void)
{
	open_both(&by_socket);
	MUST_EQ(kevent_lane_bell(&b.lane), 0);
	CHECK_EQ(wake_b(), 0);
	CHECK_EQ(await(&a), 1);
	close_both();
}

static void bell_is_taken_with_an_event(void)
{
	open_both(&both_ways);
	MUST_EQ(kevent_lane_bell(&b.lane), 0);
	CHECK_EQ(await(&a), 1);
	CHECK_EQ(wake_b(), 0);
	close_both();
}

/* The lane goes on with events. */
static void queue_may_refuse_bells(void)
{
	open_both(&both_ways);
	kevent_lane_unwatch(&b.lane);
	CHECK_EQ(kevent_lane_bell(&b.lane), -EINVAL);
	kevent_queue_close(&b.q);
	MUST_EQ(kevent_queue_init(&b.q, &b.mem.ring, RING,
				  KEVENT_INIT_REFUSE_READY), 0);
	MUST_EQ(kevent_lane_watch(&b.lane, b.q.fd, 2), 0);
	CHECK_EQ(kevent_lane_bell(&b.lane), -EPERM);
	CHECK_EQ(wake_b(), 1);
	close_both();
	CHECK_EQ(kevent_lane_bell(&b.lane), -EINVAL);
}

/* Only the sender knows what has room: it gets an event. */
static void room_is_an_event(void)
{
	uint64_t nr = 0;

	open_both(&both_ways);
	MUST_EQ(kevent_lane_bell(&a.lane), 0);
	MUST_EQ(await(&b), 1);
	while (!kevent_lane_send(&a.lane, &nr, sizeof(nr)))
		nr++;
	MUST_EQ(nr, 4);
	MUST_EQ(kevent_lane_arm(&a.lane), 0);
	while (kevent_lane_recv(&b.lane, &nr, sizeof(nr)) > 0)
		;
	CHECK_EQ(await(&a), 1);
	CHECK_EQ(kevent_lane_send(&a.lane, &nr, sizeof(nr)), 0);
	close_both();
}

static void end_is_an_event(void)
{
	uint64_t nr;

	open_both(&both_ways);
	MUST_EQ(kevent_lane_bell(&b.lane), 0);
	MUST_EQ(kevent_lane_arm(&b.lane), 0);
	kevent_lane_close(&a.lane);
	CHECK_EQ(await(&b), 1);
	CHECK_EQ(kevent_lane_recv(&b.lane, &nr, sizeof(nr)), -EPIPE);
	close_both();
}

/* --- queues that change, and peers that lie ------------------------------ */

/* @b gets another queue; the peer has the bell of the one before. */
static void change_queue(void)
{
	open_both(&both_ways);
	MUST_EQ(kevent_lane_bell(&b.lane), 0);
	CHECK_EQ(wake_b(), 0);
	kevent_lane_unwatch(&b.lane);
	kevent_queue_close(&b.q);
	MUST_EQ(kevent_queue_init(&b.q, &b.mem.ring, RING, 0), 0);
	MUST_EQ(kevent_lane_watch(&b.lane, b.q.fd, 2), 0);
}

static void later_queue_has_events(void)
{
	change_queue();
	CHECK_EQ(kevent_lane_bell(&b.lane), -EALREADY);
	CHECK_EQ(wake_b(), 1);
	close_both();
}

/* As if this side did not know that its bell is of no use */
static void silent_bell_is_replaced_by_an_event(void)
{
	const struct timespec soon = { .tv_nsec = 1 };
	uint64_t nr = 1;
	struct ukevent ev;

	change_queue();
	b.lane.bell = 1;
	CHECK_EQ(wake_b(), 1);
	/* What had come with the bell */
	MUST_EQ(await(&a), 1);
	MUST_EQ(kevent_lane_arm(&b.lane), 0);
	CHECK_EQ(kevent_lane_send_get(&a.lane, &nr, sizeof(nr), &a.q, &ev, 1,
				      &soon), 0);
	CHECK_EQ(await(&b), 1);
	close_both();
}

/* @fd in the place of a bell: it is not written to, and the receiver has an event. */
static void pass_instead(int fd)
{
	open_both(&both_ways);
	send_fd(b.lane.sock, fd);
	b.lane.bell = 1;
	CHECK_EQ(wake_b(), 1);
	CHECK_EQ(await(&a), 1);
	CHECK_EQ(wake_b(), 1);
	close_both();
}

static void other_files_are_no_bells(void)
{
	int fd[2], full = eventfd(0, EFD_CLOEXEC);
	uint64_t nr = ~1ull, got;

	open_pipe(fd);
	pass_instead(fd[1]);
	CHECK_EQ(take_bytes(fd[0]), 0);
	/* A write would wait. */
	MUST_EQ(write(full, &nr, sizeof(nr)), sizeof(nr));
	pass_instead(full);
	MUST_EQ(read(full, &got, sizeof(got)), sizeof(got));
	CHECK_EQ(got, nr);
	close(full);
	close(fd[0]);
	close(fd[1]);
}

/* More descriptors are not taken. */
static void one_bell_is_taken(void)
{
	int i, nr, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	open_both(&both_ways);
	MUST_EQ(kevent_lane_bell(&b.lane), 0);
	CHECK_EQ(await(&a), 1);
	nr = dup(fd);
	close(nr);
	for (i = 0; i < 8; i++) {
		send_fd(b.lane.sock, fd);
		CHECK_EQ(await(&a), 1);
	}
	CHECK_EQ(dup(fd), nr);
	close(nr);
	CHECK_EQ(wake_b(), 0);
	close(fd);
	close_both();
}

/* --- sets ---------------------------------------------------------------- */

/* Nobody looks at an idle lane after a bell, so it has an event; the others have none. */
static void idle_lane_comes_with_an_event(void)
{
	struct timespec limit = ms_to_timespec(PATIENCE_MS * slowness);
	struct kevent_lanes set;
	struct kevent_lane *from;
	struct ukevent ev;
	uint64_t nr = 1;
	int i;

	open_both(&both_ways);
	MUST_EQ(kevent_lane_bell(&b.lane), 0);
	MUST_EQ(await(&a), 1);
	kevent_lanes_init(&set, 0);
	kevent_lanes_add(&set, &b.lane);
	for (i = 0; i < LOOKS; i++)
		MUST_EQ(kevent_lanes_recv(&set, &from, &nr, sizeof(nr)), -EAGAIN);
	MUST_EQ(kevent_lane_send(&a.lane, &nr, sizeof(nr)), 0);
	MUST_EQ(kevent_lanes_get(&set, &b.q, &ev, 1, &limit), 1);
	MUST_EQ(kevent_lane_event(&b.lane, &ev), 0);
	MUST_EQ(kevent_lanes_recv(&set, &from, &nr, sizeof(nr)), sizeof(nr));
	MUST_EQ(kevent_lanes_arm(&set), 0);
	MUST_EQ(kevent_lane_send(&a.lane, &nr, sizeof(nr)), 0);
	CHECK_EQ(kevent_queue_get(&b.q, &ev, 1, &limit), 0);
	MUST_EQ(kevent_lanes_recv(&set, &from, &nr, sizeof(nr)), sizeof(nr));
	close_both();
}

/* --- races --------------------------------------------------------------- */

static int join_lane(int sock)
{
	int ret = kevent_queue_init(&b.q, &b.mem.ring, RING, 0);

	if (!ret)
		ret = kevent_lane_attach(&b.lane, sock, 0, 0);
	if (!ret)
		ret = kevent_lane_watch(&b.lane, b.q.fd, 2);
	return ret ?: kevent_lane_bell(&b.lane);
}

static void start_pair(const struct kevent_lane_options *o, int (*fn)(void *arg),
		       pid_t *pid)
{
	int sock[2];

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(kevent_queue_init(&a.q, &a.mem.ring, RING, 0), 0);
	MUST_EQ(kevent_lane_create(&a.lane, o), 0);
	MUST_EQ(kevent_lane_pass(&a.lane, sock[0]), 0);
	MUST_EQ(kevent_lane_watch(&a.lane, a.q.fd, 1), 0);
	*pid = start_child(fn, &sock[1]);
	close(sock[1]);
	MUST_EQ(kevent_lane_bell(&a.lane), 0);
}

/* Takes the next message, and sleeps as often as it can. */
static int recv_asleep(struct end *e, uint64_t *nr)
{
	int ret;

	while ((ret = kevent_lane_recv(&e->lane, nr, sizeof(*nr))) == -EAGAIN) {
		if (kevent_lane_arm(&e->lane))
			continue;
		ret = await(e);
		if (ret < 0)
			return ret;
	}
	return ret;
}

static int echo(void *sock)
{
	uint64_t nr;
	int ret;

	CHILD_MUST(join_lane(*(int *)sock) == 0);
	while ((ret = recv_asleep(&b, &nr)) == sizeof(nr))
		CHILD_MUST(kevent_lane_send(&b.lane, &nr, sizeof(nr)) == 0);
	CHILD_MUST(ret == -EPIPE);
	return 0;
}

/* A child falls asleep after each message, when the next one comes. */
static void message_meets_a_sleeper(void)
{
	uint64_t i, nr, seed = test_seed(), start = now_ns();
	volatile unsigned int wait;
	pid_t pid;

	start_pair(&both_ways, echo, &pid);
	for (i = 0; now_ns() - start < RACE_NS; i++) {
		for (wait = next_random(&seed) % 3000; wait; wait--)
			;
		MUST_EQ(kevent_lane_send(&a.lane, &i, sizeof(i)), 0);
		MUST_EQ(recv_asleep(&a, &nr), sizeof(nr));
		MUST_EQ(nr, i);
	}
	note("%llu messages", (unsigned long long)i);
	kevent_lane_close(&a.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

/* Sends, and takes the message that comes next. */
static int call(struct end *e, uint64_t *nr)
{
	struct timespec limit = ms_to_timespec(PATIENCE_MS * slowness);
	struct ukevent ev;
	int ret = kevent_lane_send_get(&e->lane, nr, sizeof(*nr), &e->q, &ev, 1,
				       &limit);

	if (ret == 1)
		kevent_lane_event(&e->lane, &ev);
	return ret < 0 ? ret : recv_asleep(e, nr);
}

static int echo_by_calls(void *sock)
{
	uint64_t nr;
	int ret;

	CHILD_MUST(join_lane(*(int *)sock) == 0);
	ret = recv_asleep(&b, &nr);
	while (ret == sizeof(nr))
		ret = call(&b, &nr);
	CHILD_MUST(ret == -EPIPE);
	return 0;
}

static void call_and_answer(const struct kevent_lane_options *o)
{
	uint64_t i, nr, start = now_ns();
	pid_t pid;

	start_pair(o, echo_by_calls, &pid);
	for (i = 0; now_ns() - start < RACE_NS / 2; i++) {
		nr = i;
		MUST_EQ(call(&a, &nr), sizeof(nr));
		MUST_EQ(nr, i);
	}
	note("%llu calls", (unsigned long long)i);
	kevent_lane_close(&a.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static void send_and_wait_lose_no_wake_up(void)
{
	call_and_answer(&both_ways);
	call_and_answer(&by_socket);
}

static const struct test_case cases[] = {
	TEST(message_is_no_event),
	TEST(sender_takes_no_byte),
	TEST(bell_is_taken_with_an_event),
	TEST(queue_may_refuse_bells),
	TEST(room_is_an_event),
	TEST(end_is_an_event),
	TEST(silent_bell_is_replaced_by_an_event),
	TEST(later_queue_has_events),
	TEST(other_files_are_no_bells),
	TEST(one_bell_is_taken),
	TEST(idle_lane_comes_with_an_event),
	TEST(message_meets_a_sleeper),
	TEST(send_and_wait_lose_no_wake_up),
	{}
};

const struct test_suite lane_bells_suite = {
	.name = "lane_bells",
	.cases = cases,
};
