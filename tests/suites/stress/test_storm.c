// SPDX-License-Identifier: GPL-2.0
/*
 * Races with a time budget: two or more threads make all kinds of calls on the
 * same watches. Others are stable, and the test counts what they report:
 *
 *	stable	marked by READY all the time	sum of ret_data[1] == marks
 *	churned	ADD, REMOVE, MODIFY, close,	events carry a value that was
 *		write, dup2 at random		given to a watch
 *
 * KEVENT_STORM_SECONDS in the environment sets the budget of each test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "helpers.h"

#define STABLE		8
#define CHURNED		8
#define ACTORS		4
#define CHURN_USER	1000		/* user values of churned watches */
#define RECV		KEVENT_SOCKET_RECV
#define ET		KEVENT_REQ_ET

struct storm {
	struct queue	q;
	uint64_t	seed;
	uint64_t	until;
	int		fd[CHURNED][2];		/* churned descriptors */
	_Atomic long	marked[STABLE];
	long		taken[STABLE];
	_Atomic long	wrong;
};

struct stormer {
	struct actor	actor;
	struct storm	*storm;
	unsigned int	nr;
};

static bool storm_on(struct storm *s)
{
	return now_ns() < s->until;
}

static void mark_stable(struct storm *s, unsigned int i)
{
	if (mark_user(s->q.fd, i, 1) == 1)
		atomic_fetch_add(&s->marked[i], 1);
	else
		atomic_fetch_add(&s->wrong, 1);
}

/* Replaces a watched file by a new pipe, or by the next one. */
static void replace(struct storm *s, unsigned int i, bool new)
{
	int fd[2];

	if (!new) {
		dup2(s->fd[(i + 1) % CHURNED][0], s->fd[i][0]);
	} else if (!pipe2(fd, O_CLOEXEC | O_NONBLOCK)) {
		dup2(fd[0], s->fd[i][0]);
		dup2(fd[1], s->fd[i][1]);
		close(fd[0]);
		close(fd[1]);
	}
}

/* Makes one random call on the churned watches. */
static void churn(struct storm *s, uint64_t *rnd)
{
	static const uint32_t modes[] = {
		0, ET, KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH, ET | 0x2,
		KEVENT_REQ_LAST_CHECK, KEVENT_REQ_HAND_BACK | ET,
		KEVENT_REQ_DISABLED,
	};
	unsigned int i = next_random(rnd) % CHURNED;
	uint32_t mode = modes[next_random(rnd) % ARRAY_SIZE(modes)];
	struct ukevent ev;

	kevent_set_pipe(&ev, s->fd[i][0], RECV, mode, CHURN_USER + i);
	switch (next_random(rnd) % 10) {
	case 0 ... 2:
		kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &ev);
		break;
	case 3:
		kevent_ctl_one(s->q.fd, KEVENT_CTL_REMOVE, &ev);
		break;
	case 4:
		kevent_ctl_one(s->q.fd, KEVENT_CTL_MODIFY, &ev);
		break;
	case 5:
		kevent_ctl_one(s->q.fd, KEVENT_CTL_READY, &ev);
		break;
	case 6:
		replace(s, i, next_random(rnd) % 4);
		break;
	case 7:
		take_bytes(s->fd[i][0]);
		break;
	default:
		/* EAGAIN and EPIPE count as success. */
		if (write(s->fd[i][1], "", 1) < 0)
			break;
	}
}

static long churner(void *arg)
{
	struct stormer *me = arg;
	struct storm *s = me->storm;
	uint64_t rnd = s->seed + me->nr * 0x9e3779b97f4a7c15ull;

	rnd |= 1;
	while (storm_on(s)) {
		churn(s, &rnd);
		if (next_random(&rnd) % 4 == 0)
			mark_stable(s, next_random(&rnd) % STABLE);
	}
	return 0;
}

static void account(struct storm *s, const struct ukevent *ev)
{
	if (ev->ptr < STABLE && ev->type == KEVENT_USER &&
	    ev->id.raw_u64 == ev->ptr && ev->ret_data[0] == 1)
		s->taken[ev->ptr] += ev->ret_data[1];
	else if (ev->type != KEVENT_PIPE || ev->ptr < CHURN_USER ||
		 ev->ptr >= CHURN_USER + CHURNED)
		atomic_fetch_add(&s->wrong, 1);
}

static void consume_until_quiet(struct storm *s)
{
	struct ukevent ev;
	unsigned int i;

	while (storm_on(s))
		if (next_event(&s->q, &ev, 1) == 1)
			account(s, &ev);
	/* Level watches report again and again until they are removed. */
	for (i = 0; i < CHURNED; i++)
		remove_file(s->q.fd, KEVENT_PIPE, s->fd[i][0]);
	for (i = 0; i < 4 * (STABLE + CHURNED); i++)
		if (next_event(&s->q, &ev, 0) == 1)
			account(s, &ev);
}

static void run_storm(uint32_t size)
{
	struct stormer stormers[ACTORS];
	struct storm s = { .seed = test_seed() };
	long marks = 0;
	unsigned int i;

	open_queue(&s.q, size);
	for (i = 0; i < STABLE; i++)
		MUST_EQ(add_user(s.q.fd, i, 1, 0, i), 0);
	for (i = 0; i < CHURNED; i++)
		open_pipe(s.fd[i]);
	signal(SIGPIPE, SIG_IGN);
	s.until = now_ns() + storm_ns();
	for (i = 0; i < ACTORS; i++) {
		stormers[i].storm = &s;
		stormers[i].nr = i;
		start_actor(&stormers[i].actor, churner, &stormers[i]);
	}
	while (storm_on(&s))
		consume_until_quiet(&s);
	for (i = 0; i < ACTORS; i++)
		join_actor(&stormers[i].actor, PATIENCE_MS);
	consume_until_quiet(&s);
	CHECK_EQ(s.wrong, 0);
	for (i = 0; i < STABLE; i++) {
		CHECK_EQ(s.taken[i], s.marked[i]);
		marks += s.marked[i];
	}
	note("%ld marks, %lld events", marks,
	     fdinfo(s.q.fd, "kevent-delivered"));
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), STABLE);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-ready"), 0);
	close_queue(&s.q);
}

/*
 * Pairs of calls that must not touch freed memory: A makes one call again and
 * again, B another one. The second one finds the object gone.
 */
struct pair {
	_Atomic int	kq;
	_Atomic int	fd[2];
	_Atomic bool	stop;
	unsigned int	rounds;
};

static long closer_of_files(void *arg)
{
	struct pair *p = arg;

	while (!atomic_load(&p->stop)) {
		int fd[2] = { atomic_exchange(&p->fd[0], -1), -1 };

		if (fd[0] >= 0) {
			close(fd[0]);
			close(atomic_exchange(&p->fd[1], -1));
			p->rounds++;
		}
	}
	return 0;
}

/* The last close of a watched file against REMOVE and close of the queue */
static void check_pair(bool close_queue_too)
{
	uint64_t rnd = test_seed(), until = now_ns() + storm_ns();
	struct pair p = { .fd = { -1, -1 } };
	struct actor a;
	int fd[2], kq;

	start_actor(&a, closer_of_files, &p);
	kq = kevent_init(NULL, 0, 0);
	while (now_ns() < until) {
		unsigned int pause = next_random(&rnd) % 400;

		open_pipe(fd);
		MUST_EQ(add_pipe(kq, fd[0], RECV, 0, 0), 0);
		put_byte(fd[1]);
		atomic_store(&p.fd[1], fd[1]);
		atomic_store(&p.fd[0], fd[0]);
		while (pause--)
			atomic_signal_fence(memory_order_seq_cst);
		if (close_queue_too) {
			close(kq);
			kq = kevent_init(NULL, 0, 0);
			MUST(kq >= 0);
		} else {
			remove_file(kq, KEVENT_PIPE, fd[0]);
		}
		while (atomic_load(&p.fd[1]) >= 0)
			;
	}
	atomic_store(&p.stop, true);
	join_actor(&a, PATIENCE_MS);
	note("%u rounds", p.rounds);
	CHECK(p.rounds > 10);
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 0);
	close(kq);
}

static void last_close_races_remove(void)
{
	check_pair(false);
}

static void last_close_races_close_of_the_queue(void)
{
	check_pair(true);
}

/* A collector against the close of the files it collects */
static long collector(void *arg)
{
	struct pair *p = arg;
	struct ukevent ev[4];

	while (!atomic_load(&p->stop)) {
		int ret = get_events(atomic_load(&p->kq), 1, 4, 1, ev);

		if (ret < 0)
			return ret;
		p->rounds += ret;
	}
	return 0;
}

static void collection_races_close(void)
{
	uint64_t until = now_ns() + storm_ns();
	struct pair p = { .kq = kevent_init(NULL, 0, 0) };
	struct actor a[2];
	int fd[2], i;

	MUST(p.kq >= 0);
	for (i = 0; i < 2; i++)
		start_actor(&a[i], collector, &p);
	while (now_ns() < until) {
		open_pipe(fd);
		MUST_EQ(add_pipe(p.kq, fd[0], RECV, 0, 0), 0);
		put_byte(fd[1]);
		close(fd[0]);
		close(fd[1]);
	}
	atomic_store(&p.stop, true);
	for (i = 0; i < 2; i++) {
		join_actor(&a[i], PATIENCE_MS);
		CHECK_EQ(a[i].ret, 0);
	}
	note("%u events", p.rounds);
	CHECK_EQ(fdinfo(p.kq, "kevent-watches"), 0);
	close(p.kq);
}

/* ADD fails late, on a source that fires all the time. */
static long fire(void *arg)
{
	struct pair *p = arg;

	while (!atomic_load(&p->stop))
		if (eventfd_write(atomic_load(&p->fd[0]), 1))
			return -errno;
	return 0;
}

static void refused_add_races_events(void)
{
	uint64_t until = now_ns() + storm_ns();
	struct pair p = { .kq = kevent_init(NULL, 0, 0) };
	int fd = eventfd(0, EFD_NONBLOCK);
	struct ukevent ev;
	struct actor a;

	atomic_store(&p.fd[0], fd);
	MUST_EQ(add_poll(p.kq, fd, KEVENT_POLL_POLLIN, ET, 1), 0);
	start_actor(&a, fire, &p);
	while (now_ns() < until) {
		MUST_EQ(add_poll(p.kq, fd, KEVENT_POLL_POLLIN, ET, 2),
			-EEXIST);
		MUST(get_events(p.kq, 1, 1, 0, &ev) >= 0);
	}
	atomic_store(&p.stop, true);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	CHECK_EQ(fdinfo(p.kq, "kevent-watches"), 1);
	close(p.kq);
}

/*
 * A program writes arbitrary words into the ring's header while the ring is in
 * use.
 */
static long poke(void *arg)
{
	struct storm *s = arg;
	uint64_t rnd = s->seed;
	uint64_t *words = (uint64_t *)s->q.ring;

	while (storm_on(s)) {
		static const uint64_t values[] = {
			0, 1, 7, 8, 9, 1u << 31, 0xffffffff, 1ull << 63, ~0ull,
		};
		unsigned int i = next_random(&rnd) % 16;
		uint64_t value = values[next_random(&rnd) %
					ARRAY_SIZE(values)];

		__atomic_store_n(&words[i], value, __ATOMIC_RELAXED);
	}
	return 0;
}

static void wild_stores_to_the_header_harm_nobody_else(void)
{
	const struct timespec zero = {};
	struct storm s = { .seed = test_seed() };
	struct ukevent ev[8];
	unsigned char *mem;
	unsigned int i, dirty = 0;
	struct actor a;
	int ret;

	open_queue(&s.q, 8);
	mem = (unsigned char *)s.q.ring;
	memset(mem + KEVENT_RING_BYTES(8), 0x5a,
	       s.q.bytes - KEVENT_RING_BYTES(8));
	for (i = 0; i < STABLE; i++)
		MUST_EQ(add_user(s.q.fd, i, 1, 0, i), 0);
	s.until = now_ns() + storm_ns();
	start_actor(&a, poke, &s);
	while (storm_on(&s)) {
		for (i = 0; i < STABLE; i++)
			MUST_EQ(mark_user(s.q.fd, i, 1), 1);
		/*
		 * A position read from the header may be ahead of the kernel's.
		 */
		ret = kevent_wait(s.q.fd, 8, s.q.ring->ring_kidx, &zero, 0,
				  NULL);
		MUST(ret >= 0 || ret == -EINVAL);
		kevent_commit(s.q.fd, s.q.ring->ring_uidx, 0);
	}
	join_actor(&a, PATIENCE_MS);
	for (i = KEVENT_RING_BYTES(8); i < s.q.bytes; i++)
		dirty += mem[i] != 0x5a;
	CHECK_EQ(dirty, 0);
	/*
	 * The kernel's own state is correct: get_events() still returns events.
	 */
	while (get_events(s.q.fd, 1, 8, 0, ev) > 0)
		;
	MUST_EQ(mark_user(s.q.fd, 3, 1), 1);
	CHECK_EQ(get_events(s.q.fd, 1, 8, 0, ev), 1);
	CHECK_EQ(ev[0].ptr, 3);
	close_queue(&s.q);
}

/*
 * A thread changes the array while kevent_ctl() reads it: the kernel uses one
 * copy.
 */
static long flip(void *arg)
{
	struct storm *s = arg;
	struct ukevent *ev = (struct ukevent *)(s->q.ring + 1);
	uint32_t type = 0;

	while (storm_on(s)) {
		__atomic_store_n(&ev->type, type ^= KEVENT_USER,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&ev->req_flags, type << 8, __ATOMIC_RELAXED);
	}
	return 0;
}

static void array_that_changes_is_read_once(void)
{
	struct storm s = { .seed = 1 };
	struct actor a;
	long ret, watches = 0;
	struct ukevent *ev;
	uint64_t id = 0;

	open_queue(&s.q, 8);
	ev = (struct ukevent *)(s.q.ring + 1);
	s.until = now_ns() + storm_ns();
	start_actor(&a, flip, &s);
	while (storm_on(&s) && id < 50000) {
		kevent_set_user(ev, id++ << 32 | 0xffffffff, 1, 0, 0);
		ret = kevent_ctl(s.q.fd, KEVENT_CTL_ADD, 1, ev);
		MUST(ret == 0 || ret == 1);
		watches += !ret;
	}
	/* 50000 rounds may be over before the time is. */
	__atomic_store_n(&s.until, 0, __ATOMIC_RELAXED);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), watches);
	note("%ld of %llu added", watches, (unsigned long long)id);
	close_queue(&s.q);
}

static const struct test_case cases[] = {
	TEST_SIZE(control_calls_race_events, run_storm, 0, 30),
	TEST_SIZE(control_calls_race_events_on_a_ring, run_storm, 8, 30),
	TEST_LIMIT(last_close_races_remove, 30),
	TEST_LIMIT(last_close_races_close_of_the_queue, 30),
	TEST_LIMIT(collection_races_close, 30),
	TEST_LIMIT(refused_add_races_events, 30),
	TEST_LIMIT(wild_stores_to_the_header_harm_nobody_else, 30),
	TEST_LIMIT(array_that_changes_is_read_once, 30),
	{}
};

const struct test_suite storm_suite = { .name = "storm", .cases = cases };
