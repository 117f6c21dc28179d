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

#include "storm.h"

#define STABLE		8
#define CHURNED		8
#define ACTORS		4
#define CHURN_USER	1000		/* user values of churned watches */

struct pipes {
	int		fd[CHURNED][2];
	_Atomic long	marked[STABLE];
	_Atomic long	taken[STABLE];
};

static void mark_stable(struct storm *s, unsigned int i)
{
	struct pipes *p = s->world;
	int ret = mark_user(s->q.fd, i, 1);

	storm_expect(s, ret == 1);
	if (ret == 1)
		atomic_fetch_add(&p->marked[i], 1);
}

/* Replaces a watched file by a new pipe, or by the next one. */
static void replace(struct pipes *p, unsigned int i, bool new)
{
	int fd[2];

	if (!new) {
		dup2(p->fd[(i + 1) % CHURNED][0], p->fd[i][0]);
	} else if (!pipe2(fd, O_CLOEXEC | O_NONBLOCK)) {
		dup2(fd[0], p->fd[i][0]);
		dup2(fd[1], p->fd[i][1]);
		close(fd[0]);
		close(fd[1]);
	}
}

/* Makes one random call on the churned watches. */
static void churn(struct stormer *me)
{
	static const uint32_t modes[] = {
		0, ET, KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH, ET | 0x2,
		KEVENT_REQ_LAST_CHECK, KEVENT_REQ_HAND_BACK | ET,
		KEVENT_REQ_DISABLED,
	};
	unsigned int i = next_random(&me->rnd) % CHURNED;
	uint32_t mode = modes[next_random(&me->rnd) % ARRAY_SIZE(modes)];
	struct pipes *p = me->storm->world;
	int kq = me->storm->q.fd;
	struct ukevent ev;

	kevent_set_pipe(&ev, p->fd[i][0], RECV, mode, CHURN_USER + i);
	switch (next_random(&me->rnd) % 10) {
	case 0 ... 2:
		kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
		break;
	case 3:
		kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &ev);
		break;
	case 4:
		kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev);
		break;
	case 5:
		kevent_ctl_one(kq, KEVENT_CTL_READY, &ev);
		break;
	case 6:
		replace(p, i, next_random(&me->rnd) % 4);
		break;
	case 7:
		take_bytes(p->fd[i][0]);
		break;
	default:
		/* EAGAIN and EPIPE count as success. */
		if (write(p->fd[i][1], "", 1) < 0)
			break;
	}
	if (next_random(&me->rnd) % 4 == 0)
		mark_stable(me->storm, next_random(&me->rnd) % STABLE);
}

static void account(struct storm *s, const struct ukevent *ev)
{
	struct pipes *p = s->world;

	if (ev->ptr < STABLE && ev->type == KEVENT_USER &&
	    ev->id.raw_u64 == ev->ptr && ev->ret_data[0] == 1)
		p->taken[ev->ptr] += ev->ret_data[1];
	else
		storm_expect(s, ev->type == KEVENT_PIPE &&
				ev->ptr - CHURN_USER < CHURNED);
}

static void control_calls_race(uint32_t size)
{
	struct pipes p = {};
	struct storm s = { .world = &p, .account = account };
	long marks = 0;
	unsigned int i;

	open_queue(&s.q, size);
	for (i = 0; i < STABLE; i++)
		MUST_EQ(add_user(s.q.fd, i, 1, 0, i), 0);
	for (i = 0; i < CHURNED; i++)
		open_pipe(p.fd[i]);
	signal(SIGPIPE, SIG_IGN);
	storm_begin(&s);
	storm_workers(&s, ACTORS, churn);
	storm_run(&s, NULL);
	storm_end(&s, NULL);
	/* Level watches report again and again until they are removed. */
	for (i = 0; i < CHURNED; i++)
		remove_file(s.q.fd, KEVENT_PIPE, p.fd[i][0]);
	storm_drain(&s);
	for (i = 0; i < STABLE; i++) {
		CHECK_EQ(p.taken[i], p.marked[i]);
		marks += p.marked[i];
	}
	note("%ld marks, %ld events", marks, s.taken);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-ready"), 0);
	storm_close(&s, STABLE);
}

/*
 * Pairs of calls that must not touch freed memory: A makes one call again and
 * again, B another one. The second one finds the object gone.
 */
struct pair {
	_Atomic int	fd[2];
	bool		close_queue_too;
};

static void close_files(struct stormer *me)
{
	struct pair *p = me->storm->world;
	int fd = atomic_exchange(&p->fd[0], -1);

	if (fd >= 0) {
		close(fd);
		close(atomic_exchange(&p->fd[1], -1));
		atomic_fetch_add(&me->storm->taken, 1);
	}
}

/* The last close of a watched file against REMOVE and close of the queue */
static void watch_and_end(struct storm *s)
{
	struct pair *p = s->world;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(s->q.fd, fd[0], RECV, 0, 0), 0);
	put_byte(fd[1]);
	atomic_store(&p->fd[1], fd[1]);
	atomic_store(&p->fd[0], fd[0]);
	spin(next_random(&s->seed) % 400);
	if (p->close_queue_too) {
		close_queue(&s->q);
		open_queue(&s->q, 0);
	} else {
		remove_file(s->q.fd, KEVENT_PIPE, fd[0]);
	}
	while (atomic_load(&p->fd[1]) >= 0)
		;
}

static bool ten_rounds(const struct storm *s)
{
	return s->taken > 10;
}

static void check_pair(bool close_queue_too)
{
	struct pair p = { .fd = { -1, -1 }, .close_queue_too = close_queue_too };
	struct storm s = { .world = &p, .enough = ten_rounds };

	open_queue(&s.q, 0);
	storm_begin(&s);
	storm_helpers(&s, 1, close_files);
	storm_run(&s, watch_and_end);
	storm_end(&s, NULL);
	note("%ld rounds", s.taken);
	CHECK(ten_rounds(&s));
	storm_close(&s, 0);
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
static void collect(struct stormer *me)
{
	struct ukevent ev[4];
	int ret = get_events(me->storm->q.fd, 1, 4, 1, ev);

	storm_expect(me->storm, ret >= 0);
	atomic_fetch_add(&me->storm->taken, ret);
}

static void watch_and_close(struct storm *s)
{
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(s->q.fd, fd[0], RECV, 0, 0), 0);
	put_byte(fd[1]);
	close(fd[0]);
	close(fd[1]);
}

static void collection_races_close(void)
{
	struct storm s = {};

	open_queue(&s.q, 0);
	storm_begin(&s);
	storm_helpers(&s, 2, collect);
	storm_run(&s, watch_and_close);
	storm_end(&s, NULL);
	note("%ld events", s.taken);
	storm_close(&s, 0);
}

/* ADD fails late, on a source that fires all the time. */
static void fire(struct stormer *me)
{
	storm_expect(me->storm, !eventfd_write(*(int *)me->storm->world, 1));
}

static void add_again(struct storm *s)
{
	struct ukevent ev;

	MUST_EQ(add_poll(s->q.fd, *(int *)s->world, KEVENT_POLL_POLLIN, ET, 2),
		-EEXIST);
	MUST(get_events(s->q.fd, 1, 1, 0, &ev) >= 0);
}

static void refused_add_races_events(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct storm s = { .world = &fd };

	open_queue(&s.q, 0);
	MUST_EQ(add_poll(s.q.fd, fd, KEVENT_POLL_POLLIN, ET, 1), 0);
	storm_begin(&s);
	storm_helpers(&s, 1, fire);
	storm_run(&s, add_again);
	storm_end(&s, NULL);
	storm_close(&s, 1);
}

/*
 * A program writes arbitrary words into the ring's header while the ring is in
 * use.
 */
static void poke(struct stormer *me)
{
	static const uint64_t values[] = {
		0, 1, 7, 8, 9, 1u << 31, 0xffffffff, 1ull << 63, ~0ull,
	};
	uint64_t *words = (uint64_t *)me->storm->q.ring;
	unsigned int i = next_random(&me->rnd) % 16;

	__atomic_store_n(&words[i],
			 values[next_random(&me->rnd) % ARRAY_SIZE(values)],
			 __ATOMIC_RELAXED);
}

static void mark_and_wait(struct storm *s)
{
	const struct timespec zero = {};
	unsigned int i;
	int ret;

	for (i = 0; i < STABLE; i++)
		MUST_EQ(mark_user(s->q.fd, i, 1), 1);
	/* A position read from the header may be ahead of the kernel's. */
	ret = kevent_wait(s->q.fd, 8, s->q.ring->ring_kidx, &zero, 0, NULL);
	MUST(ret >= 0 || ret == -EINVAL);
	kevent_commit(s->q.fd, s->q.ring->ring_uidx, 0);
}

static void wild_stores_to_the_header_harm_nobody_else(void)
{
	unsigned int i, dirty = 0;
	struct storm s = {};
	struct ukevent ev[8];
	unsigned char *mem;

	open_queue(&s.q, 8);
	mem = (unsigned char *)s.q.ring;
	memset(mem + KEVENT_RING_BYTES(8), 0x5a,
	       s.q.bytes - KEVENT_RING_BYTES(8));
	for (i = 0; i < STABLE; i++)
		MUST_EQ(add_user(s.q.fd, i, 1, 0, i), 0);
	storm_begin(&s);
	storm_helpers(&s, 1, poke);
	storm_run(&s, mark_and_wait);
	storm_end(&s, NULL);
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
static void flip(struct stormer *me)
{
	struct ukevent *ev = (struct ukevent *)(me->storm->q.ring + 1);
	uint32_t type = me->acts % 2 ? KEVENT_USER : 0;

	__atomic_store_n(&ev->type, type, __ATOMIC_RELAXED);
	__atomic_store_n(&ev->req_flags, type << 8, __ATOMIC_RELAXED);
}

static void array_that_changes_is_read_once(void)
{
	struct storm s = {};
	long ret, watches = 0;
	struct ukevent *ev;
	uint64_t id = 0;

	open_queue(&s.q, 8);
	ev = (struct ukevent *)(s.q.ring + 1);
	storm_begin(&s);
	storm_helpers(&s, 1, flip);
	while (storm_on(&s) && id < 50000) {
		kevent_set_user(ev, id++ << 32 | 0xffffffff, 1, 0, 0);
		ret = kevent_ctl(s.q.fd, KEVENT_CTL_ADD, 1, ev);
		MUST(ret == 0 || ret == 1);
		watches += !ret;
	}
	storm_end(&s, NULL);
	note("%ld of %llu added", watches, (unsigned long long)id);
	storm_close(&s, watches);
}

static const struct test_case cases[] = {
	TEST_SIZE(control_calls_race_events, control_calls_race, 0, 30),
	TEST_SIZE(control_calls_race_events_on_a_ring, control_calls_race, 8, 30),
	TEST_LIMIT(last_close_races_remove, 30),
	TEST_LIMIT(last_close_races_close_of_the_queue, 30),
	TEST_LIMIT(collection_races_close, 30),
	TEST_LIMIT(refused_add_races_events, 30),
	TEST_LIMIT(wild_stores_to_the_header_harm_nobody_else, 30),
	TEST_LIMIT(array_that_changes_is_read_once, 30),
	{}
};

const struct test_suite storm_suite = { .name = "storm", .cases = cases };
