// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes with a hostile peer: a process that writes all of the shared memory while
 * the test sends and receives
 *
 * Half of what it writes is random. The rest is nearly right, so that messages are
 * taken, lengths are at their limits, and positions are close to the true ones. For
 * each lane that breaks, the peer gets a new one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "storm.h"

#define SLOTS		8u
#define ARENA		1024u
#define CALLS		3000	/* with one lane, at most */
#define WORDS		(sizeof(struct kevent_lane_memory) / 8)

static const struct kevent_lane_options options = {
	.send_slots = SLOTS, .send_arena = ARENA,
	.recv_slots = SLOTS, .recv_arena = ARENA,
};

/* --- the hostile process ------------------------------------------------- */

static uint32_t some_length(uint64_t *seed)
{
	static const uint32_t lengths[] = {
		ARENA, ARENA - 1, ARENA + 1, 0x7fffffff, 0x80000000, 0xffffffff,
	};

	if (next_random(seed) % 32)
		return next_random(seed) % 64;
	return lengths[next_random(seed) % ARRAY_SIZE(lengths)];
}

/* The slots that the test receives from, and what it says it has taken */
static void write_slot(struct kevent_lane *l, uint64_t *seed)
{
	uint64_t pos = l->peer->taken + next_random(seed) % SLOTS;
	volatile struct kevent_lane_slot *slot = &l->out.slot[pos & (SLOTS - 1)];

	slot->len = some_length(seed);
	slot->off = some_length(seed);
	slot->seq = pos + (next_random(seed) % 8 ? 1 : next_random(seed) % 3);
}

/* How far it pretends to have received */
static void write_side(struct kevent_lane *l, uint64_t *seed)
{
	volatile struct kevent_lane_side *me = l->me;
	uint64_t pos = l->in.slot[next_random(seed) % SLOTS].seq;

	if (!(next_random(seed) % 64))
		me->taken = pos - next_random(seed) % 4;
	else if (pos > me->taken)
		me->taken = pos;
	me->asleep = next_random(seed) % 4;
	me->room = next_random(seed) % 4;
	if (!(next_random(seed) % 1024))
		me->closed = l->peer->taken + next_random(seed) % 3;
}

static void write_any(struct kevent_lane *l, uint64_t *seed)
{
	volatile uint64_t *word = (uint64_t *)l->mem;
	uint64_t value = (uint64_t)next_random(seed) << 32 | next_random(seed);
	size_t at = next_random(seed) % (l->bytes / 8);

	/* The positions of a side break a lane soon: seldom. */
	if (at < WORDS && next_random(seed) % 1024)
		return;
	word[at] = value >> next_random(seed) % 64;
}

static void scribble(struct kevent_lane *l, uint64_t *seed)
{
	struct pollfd p = { .fd = l->sock };
	unsigned int i;

	while (!poll(&p, 1, 0)) {
		for (i = 0; i < 2000; i++) {
			if (next_random(seed) % 2)
				write_any(l, seed);
			else if (next_random(seed) % 4)
				write_slot(l, seed);
			else
				write_side(l, seed);
		}
	}
}

struct hostile {
	int		sock;
	int		other;
	uint64_t	seed;
};

static int hostile(void *arg)
{
	struct hostile *h = arg;
	struct kevent_lane l;
	int sock;

	close(h->other);
	while ((sock = receive_fd(h->sock)) >= 0) {
		CHILD_MUST(kevent_lane_attach(&l, sock, 0, 0) == 0);
		scribble(&l, &h->seed);
		kevent_lane_close(&l);
	}
	return 0;
}

/* --- the test ------------------------------------------------------------ */

struct victim {
	struct kevent_queue	q;
	struct kevent_lane	lane;
	struct kevent_lanes	set;
	uint64_t		seed;
	uint64_t		lanes, sent, received, broken;
	int			sock;	/* to the hostile process */
	unsigned char		*buf;	/* of exactly ARENA bytes */
};

static void open_victim(struct victim *v)
{
	int sock[2];

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(kevent_lane_create(&v->lane, &options), 0);
	MUST_EQ(kevent_lane_pass(&v->lane, sock[0]), 0);
	send_fd(v->sock, sock[1]);
	close(sock[1]);
	MUST_EQ(kevent_lane_watch(&v->lane, v->q.fd, 0), 0);
	kevent_lanes_add(&v->set, &v->lane);
}

static bool may_send(int ret)
{
	return ret == 0 || ret == -EAGAIN || ret == -EPROTO || ret == -EPIPE;
}

static bool may_receive(int ret)
{
	return (ret >= 0 && ret <= (int)ARENA) || ret == -EAGAIN ||
	       ret == -EMSGSIZE || ret == -EPROTO || ret == -EPIPE ||
	       ret == -ECONNRESET;
}

/* The receiver has room for @size bytes: no byte behind them may change. */
static int receive(struct victim *v)
{
	uint32_t size = next_random(&v->seed) % 4 ? ARENA :
			next_random(&v->seed) % ARENA;
	struct kevent_lane *from;
	uint32_t i;
	int ret;

	memset(v->buf, 0xa5, ARENA);
	if (next_random(&v->seed) % 2)
		ret = kevent_lane_recv(&v->lane, v->buf, size);
	else
		ret = kevent_lanes_recv(&v->set, &from, v->buf, size);
	MUST(may_receive(ret));
	MUST(ret <= (int)size);
	for (i = ret > 0 ? ret : 0; i < ARENA && v->buf[i] == 0xa5; i++)
		;
	MUST_EQ(i, ARENA);
	v->received += ret >= 0;
	return ret;
}

static int send_some(struct victim *v)
{
	uint32_t len = some_length(&v->seed);
	int ret;

	if (len > ARENA)
		len = next_random(&v->seed) % 64;
	ret = kevent_lane_send(&v->lane, v->buf, len);
	MUST(may_send(ret));
	v->sent += !ret;
	return ret;
}

static int look(struct victim *v)
{
	struct timespec no_time = {};
	struct ukevent ev[4];
	int ret, i;

	ret = kevent_lanes_get(&v->set, &v->q, ev, 4, &no_time);
	MUST(ret >= 0);
	for (i = 0; i < ret; i++)
		kevent_lane_event(&v->lane, &ev[i]);
	return 0;
}

static bool is_broken(int ret)
{
	return ret == -EPROTO || ret == -EPIPE || ret == -ECONNRESET;
}

static void use_one_lane(struct victim *v)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < CALLS && !is_broken(ret); i++) {
		switch (next_random(&v->seed) % 8) {
		case 0:
			ret = look(v);
			break;
		case 1 ... 3:
			ret = send_some(v);
			break;
		default:
			ret = receive(v);
		}
	}
	v->broken += is_broken(ret);
}

static bool saw_all(const struct storm *s)
{
	const struct victim *v = s->world;

	return v->sent && v->received && v->broken;
}

static void have_a_lane(struct storm *s)
{
	struct victim *v = s->world;

	open_victim(v);
	use_one_lane(v);
	kevent_lane_close(&v->lane);
	v->lanes++;
}

static void all_of_the_memory_may_change(void)
{
	static KEVENT_RING_STORAGE(16) mem;
	struct victim v = {};
	struct storm s = { .world = &v, .enough = saw_all };
	struct hostile h = {};
	int sock[2];
	pid_t pid;

	storm_begin(&s);
	v.seed = s.seed;
	h.seed = s.seed * 3 | 1;
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	v.sock = sock[0];
	h.sock = sock[1];
	h.other = sock[0];
	pid = start_child(hostile, &h);
	close(sock[1]);
	MUST_EQ(kevent_queue_init(&v.q, &mem.ring, 16, 0), 0);
	kevent_lanes_init(&v.set, 0);
	v.buf = malloc(ARENA);
	storm_run(&s, have_a_lane);
	note("%llu lanes, %llu sent, %llu received, %llu broken",
	     (unsigned long long)v.lanes, (unsigned long long)v.sent,
	     (unsigned long long)v.received, (unsigned long long)v.broken);
	CHECK(saw_all(&s));
	free(v.buf);
	close(sock[0]);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static const struct test_case cases[] = {
	TEST_LIMIT(all_of_the_memory_may_change, 30),
	{}
};

const struct test_suite storm_lanes_suite = {
	.name = "storm_lanes",
	.cases = cases,
};
