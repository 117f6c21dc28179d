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

#include "storm.h"

static int ctl_lock(int kq, unsigned int cmd, uint32_t *word,
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
	_Atomic unsigned int begun;	/* threads: they have to meet */
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
	int ret = ctl_lock(me->q.fd, KEVENT_CTL_MODIFY, word, 0);

	me->armed++;
	if (ret == -ENOENT)
		ret = ctl_lock(me->q.fd, KEVENT_CTL_ADD, word, 0);
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

	atomic_fetch_add(&l->begun, 1);
	while (atomic_load(&l->begun) < LOCKERS)
		sched_yield();
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

struct churner {
	struct queue	q;
	_Atomic unsigned long events;
	unsigned long	removed;
};

struct wakes {
	uint32_t	word;
	struct queue	sinks[SINKS];
	unsigned long	wakes, sunk;
	struct churner	churners[CHURNERS];
};

static int churner_arm(struct churner *c, uint32_t *word, uint64_t *rnd)
{
	int ret = ctl_lock(c->q.fd, KEVENT_CTL_MODIFY, word, 0);
	uint32_t pause = next_random(rnd) % 65536;

	if (ret == -ENOENT)
		ret = ctl_lock(c->q.fd, KEVENT_CTL_ADD, word,
			       next_random(rnd) % 4 ? 0 : KEVENT_REQ_ONESHOT);
	spin(pause);
	return ret;
}

static int churner_take(struct churner *c)
{
	struct ukevent ev;
	int ret = next_event(&c->q, &ev, 0);

	if (ret > 0)
		c->events++;
	return ret < 0 ? ret : 0;
}

static int churner_remove(struct churner *c, uint32_t *word)
{
	int ret = ctl_lock(c->q.fd, KEVENT_CTL_REMOVE, word, 0);

	c->removed += !ret;
	return ret == -ENOENT ? 0 : ret;
}

static int churner_disable(struct churner *c, uint32_t *word)
{
	int ret = ctl_lock(c->q.fd, KEVENT_CTL_MODIFY, word,
			   KEVENT_REQ_DISABLED);

	return ret == -ENOENT ? 0 : ret;
}

static int churner_close(struct churner *c)
{
	close(c->q.fd);
	c->q.fd = kevent_init(NULL, 0, 0);
	return c->q.fd < 0 ? c->q.fd : 0;
}

static void churn(struct stormer *me)
{
	struct wakes *w = me->storm->world;
	struct churner *c = &w->churners[me->nr];
	int ret;

	switch (next_random(&me->rnd) % 9) {
	case 0 ... 2:
		ret = churner_arm(c, &w->word, &me->rnd);
		break;
	case 3 ... 5:
		ret = churner_take(c);
		break;
	case 6:
		ret = churner_remove(c, &w->word);
		break;
	case 7:
		ret = churner_disable(c, &w->word);
		break;
	default:
		ret = churner_close(c);
	}
	storm_expect(me->storm, !ret);
}

/*
 * Takes the events that have arrived and arms the sinks again, behind the
 * churners.
 */
static void empty_sinks(struct wakes *w)
{
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < SINKS; i++) {
		w->sunk += next_event(&w->sinks[i], &ev, 0) == 1;
		MUST_EQ(ctl_lock(w->sinks[i].fd, KEVENT_CTL_MODIFY, &w->word,
				 0), 0);
	}
}

/*
 * A churner holds at most one wake-up, so some sinks are always armed: each
 * wake-up finds a waiter, and so does one that is passed on.
 */
static void wake_some(struct storm *s)
{
	struct wakes *w = s->world;
	unsigned int i;

	for (i = 0; i < SINKS - 2 * CHURNERS; i++) {
		MUST_EQ(syscall(__NR_futex, &w->word, FUTEX_WAKE_PRIVATE, 1), 1);
		w->wakes++;
	}
	empty_sinks(w);
}

static bool churner_has_events(const struct storm *s)
{
	struct wakes *w = s->world;
	unsigned int i;

	for (i = 0; i < CHURNERS; i++)
		if (w->churners[i].events)
			return true;
	return false;
}

static void each_wake_is_delivered_once_in_a_storm(void)
{
	struct wakes w = { .word = 2 };
	struct storm s = { .world = &w, .enough = churner_has_events };
	unsigned long events = 0, removed = 0;
	unsigned int i;

	for (i = 0; i < SINKS; i++) {
		open_queue(&w.sinks[i], 0);
		MUST_EQ(ctl_lock(w.sinks[i].fd, KEVENT_CTL_ADD, &w.word, 0),
			0);
	}
	for (i = 0; i < CHURNERS; i++)
		open_queue(&w.churners[i].q, 0);
	storm_begin(&s);
	storm_workers(&s, CHURNERS, churn);
	storm_run(&s, wake_some);
	storm_end(&s, NULL);
	CHECK_EQ(s.wrong, 0);
	for (i = 0; i < CHURNERS; i++) {
		CHECK_EQ(churner_remove(&w.churners[i], &w.word), 0);
		events += w.churners[i].events;
		removed += w.churners[i].removed;
		close_queue(&w.churners[i].q);
	}
	/*
	 * Twice: the first call takes what was left, and the second finds all
	 * armed.
	 */
	empty_sinks(&w);
	empty_sinks(&w);
	CHECK_EQ(events + w.sunk, w.wakes);
	CHECK(events > 0);
	CHECK_EQ(syscall(__NR_futex, &w.word, FUTEX_WAKE_PRIVATE, INT_MAX),
		 SINKS);
	note("%lu wakes, %lu events of churners, %lu removed", w.wakes, events,
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
