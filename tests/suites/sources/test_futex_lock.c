// SPDX-License-Identifier: GPL-2.0
/*
 * A lock whose waiters are watches of KEVENT_FUTEX, and one thread in FUTEX_WAIT
 *
 * If one wake-up is lost, the test stops. If two threads have the lock, the count
 * inside is wrong.
 *
 * In the storm, watches are removed and disabled, and queues closed, with and without
 * a wake-up in them. Each FUTEX_WAKE is delivered exactly once, by one of these
 * watches or by a stable one.
 * KEVENT_STORM_SECONDS in the environment sets its budget.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "helpers.h"

static int ctl_futex(int kq, unsigned int cmd, uint32_t *word,
		     uint32_t flags)
{
	struct ukevent ev;

	kevent_set_futex(&ev, word, 2, KEVENT_FUTEX_PRIVATE, flags, 0);
	return kevent_ctl_one(kq, cmd, &ev);
}

/* Locks: 0 free, 1 taken, 2 taken with waiters */

#define LOCKERS		6
#define ROUNDS		3000

struct lock {
	uint32_t	word;
	unsigned long	inside;		/* protected by the lock */
};

struct locker {
	struct actor	actor;
	struct lock	*lock;
	unsigned int	nr;
	uint64_t	rnd;
	struct queue	q;
	unsigned long	rounds, armed, events;
};

static int locker_arm(struct locker *me)
{
	uint32_t *word = &me->lock->word;
	int ret = ctl_futex(me->q.fd, KEVENT_CTL_MODIFY, word, 0);

	me->armed++;
	if (ret == -ENOENT)
		ret = ctl_futex(me->q.fd, KEVENT_CTL_ADD, word, 0);
	return ret;
}

static long locker_wait_by_queue(struct locker *me)
{
	struct ukevent ev;
	int ret = locker_arm(me);

	if (ret == 1) {
		me->events++;
		return 0;
	}
	if (!ret)
		ret = next_event(&me->q, &ev, -1);
	me->events += ret == 1;
	return ret == 1 ? 0 : ret ?: -EPROTO;
}

static long locker_wait(struct locker *me)
{
	if (me->nr == 0)
		return syscall(__NR_futex, &me->lock->word, FUTEX_WAIT_PRIVATE,
			       2, NULL) && errno != EAGAIN ? -errno : 0;
	return locker_wait_by_queue(me);
}

static long take_lock(struct locker *me)
{
	uint32_t *word = &me->lock->word, was = 0;
	long ret = 0;

	if (__atomic_compare_exchange_n(word, &was, 1, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return 0;
	while (!ret && __atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE))
		ret = locker_wait(me);
	return ret;
}

static void drop_lock(struct locker *me)
{
	uint32_t *word = &me->lock->word;

	if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
		syscall(__NR_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

static long use_lock(void *arg)
{
	struct locker *me = arg;
	const struct timespec nap = { .tv_nsec = 10000 };
	struct lock *l = me->lock;
	long ret;

	while (me->rounds < ROUNDS) {
		ret = take_lock(me);
		if (ret)
			return ret;
		l->inside++;
		/* Let the others run into the lock. */
		if (next_random(&me->rnd) % 16 == 0)
			nanosleep(&nap, NULL);
		me->rounds++;
		drop_lock(me);
		if (next_random(&me->rnd) % 4 == 0)
			sched_yield();
	}
	return 0;
}

static void locks_on_several_queues_lose_no_wake(void)
{
	uint64_t seed = test_seed();
	struct lock l = {};
	unsigned long rounds = 0, armed = 0, events = 0;
	struct locker lockers[LOCKERS];
	unsigned int i;

	for (i = 0; i < LOCKERS; i++) {
		lockers[i] = (struct locker){
			.lock = &l, .nr = i, .rnd = (seed + i) | 1,
		};
		open_queue(&lockers[i].q, i % 2 ? 4 : 0);
		start_actor(&lockers[i].actor, use_lock, &lockers[i]);
	}
	for (i = 0; i < LOCKERS; i++) {
		join_actor(&lockers[i].actor, 4 * PATIENCE_MS);
		CHECK_EQ(lockers[i].actor.ret, 0);
		CHECK(lockers[i].events <= lockers[i].armed);
		rounds += lockers[i].rounds;
		armed += lockers[i].armed;
		events += lockers[i].events;
		close_queue(&lockers[i].q);
	}
	CHECK_EQ(l.inside, rounds);
	CHECK(l.word == 0);
	CHECK(events > 0);
	note("%lu rounds, armed %lu times, %lu events", rounds, armed, events);
}

/* The storm */

#define CHURNERS	3
#define SINKS		8

struct storm {
	uint32_t	word;
	uint64_t	until;
	struct queue	sinks[SINKS];
	unsigned long	wakes, sunk;
};

struct churner {
	struct actor	actor;
	struct storm	*storm;
	struct queue	q;
	uint64_t	rnd;
	unsigned long	events, removed;
};

static int churner_arm(struct churner *me)
{
	uint32_t *word = &me->storm->word;
	int ret = ctl_futex(me->q.fd, KEVENT_CTL_MODIFY, word, 0);
	uint32_t pause = next_random(&me->rnd) % 65536;

	if (ret == -ENOENT)
		ret = ctl_futex(me->q.fd, KEVENT_CTL_ADD, word,
				next_random(&me->rnd) % 4 ? 0 :
				KEVENT_REQ_ONESHOT);
	while (pause--)
		atomic_signal_fence(memory_order_seq_cst);
	return ret;
}

static int churner_take(struct churner *me)
{
	struct ukevent ev;
	int ret = next_event(&me->q, &ev, 0);

	if (ret > 0)
		me->events++;
	return ret < 0 ? ret : 0;
}

static int churner_remove(struct churner *me)
{
	int ret = ctl_futex(me->q.fd, KEVENT_CTL_REMOVE, &me->storm->word, 0);

	me->removed += !ret;
	return ret == -ENOENT ? 0 : ret;
}

static int churner_disable(struct churner *me)
{
	int ret = ctl_futex(me->q.fd, KEVENT_CTL_MODIFY, &me->storm->word,
			    KEVENT_REQ_DISABLED);

	return ret == -ENOENT ? 0 : ret;
}

static int churner_close(struct churner *me)
{
	close(me->q.fd);
	me->q.fd = kevent_init(NULL, 0, 0);
	return me->q.fd < 0 ? me->q.fd : 0;
}

static long churn(void *arg)
{
	static int (*const deeds[])(struct churner *me) = {
		churner_arm, churner_arm, churner_arm, churner_take,
		churner_take, churner_take, churner_remove, churner_disable,
		churner_close,
	};
	struct churner *me = arg;
	int ret = 0;

	while (!ret && now_ns() < me->storm->until)
		ret = deeds[next_random(&me->rnd) % ARRAY_SIZE(deeds)](me);
	return ret ?: churner_remove(me);
}

/*
 * Takes the events that have arrived and arms the sinks again, behind the
 * churners.
 */
static void empty_sinks(struct storm *s)
{
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < SINKS; i++) {
		s->sunk += next_event(&s->sinks[i], &ev, 0) == 1;
		MUST_EQ(ctl_futex(s->sinks[i].fd, KEVENT_CTL_MODIFY, &s->word,
				  0), 0);
	}
}

/*
 * A churner holds at most one wake-up, so some sinks are always armed: each
 * wake-up finds a waiter, and so does one that is passed on.
 */
static void make_storm(struct storm *s)
{
	unsigned int i;

	while (now_ns() < s->until) {
		for (i = 0; i < SINKS - 2 * CHURNERS; i++) {
			MUST_EQ(syscall(__NR_futex, &s->word,
					FUTEX_WAKE_PRIVATE, 1), 1);
			s->wakes++;
		}
		empty_sinks(s);
	}
}

static void each_wake_is_delivered_once_in_a_storm(void)
{
	unsigned long events = 0, removed = 0;
	struct storm s = { .word = 2 };
	struct churner c[CHURNERS];
	uint64_t seed = test_seed();
	unsigned int i;

	for (i = 0; i < SINKS; i++) {
		open_queue(&s.sinks[i], 0);
		MUST_EQ(ctl_futex(s.sinks[i].fd, KEVENT_CTL_ADD, &s.word, 0),
			0);
	}
	s.until = now_ns() + storm_ns();
	for (i = 0; i < CHURNERS; i++) {
		c[i] = (struct churner){ .storm = &s, .rnd = (seed + i) | 1 };
		open_queue(&c[i].q, 0);
		start_actor(&c[i].actor, churn, &c[i]);
	}
	make_storm(&s);
	for (i = 0; i < CHURNERS; i++) {
		join_actor(&c[i].actor, PATIENCE_MS);
		CHECK_EQ(c[i].actor.ret, 0);
		events += c[i].events;
		removed += c[i].removed;
		close_queue(&c[i].q);
	}
	/*
	 * Twice: the first call takes what was left, and the second finds all
	 * armed.
	 */
	empty_sinks(&s);
	empty_sinks(&s);
	CHECK_EQ(events + s.sunk, s.wakes);
	CHECK(events > 0);
	CHECK_EQ(syscall(__NR_futex, &s.word, FUTEX_WAKE_PRIVATE, INT_MAX),
		 SINKS);
	note("%lu wakes, %lu events of churners, %lu removed", s.wakes, events,
	     removed);
}

static const struct test_case cases[] = {
	TEST_LIMIT(locks_on_several_queues_lose_no_wake, 40),
	TEST_LIMIT(each_wake_is_delivered_once_in_a_storm, 120),
	{}
};

const struct test_suite futex_lock_suite = {
	.name = "futex_lock", .cases = cases
};
