// SPDX-License-Identifier: GPL-2.0
/*
 * Events by the billion: none is lost, none comes twice
 *
 * One thread marks the USER watches of a group, writes to its eventfds and to its
 * pipe; another one takes events from the ring and sleeps when there are none. A group
 * has its next lap when each of its events has come. A lost event fails the test within
 * seconds: nothing else happens to its group.
 *
 *	marks		wait on the ready list		a call collects them
 *	writes		go to the ring			unless the taker sleeps
 *
 * KEVENT_EVENTS in the environment makes that many events, within the time of a storm.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "helpers.h"

#define GROUPS		8
#define MARKS		32		/* of a group in a lap, one for each watch */
#define WRITES		32		/* likewise, of eventfds */
#define WATCHES		(MARKS + WRITES + 1)	/* of a group; the last is of a pipe */
#define RING		1024
#define NAPS		1000		/* after the time in which a lap must be over */

/**
 * struct soak - what the two threads share
 * @q:		the queue
 * @eventfd:	of each group
 * @pipe:	of each group
 * @laps:	of each group, begun
 * @came:	of each group, marks, writes and bytes that came; written by the taker
 * @seen:	of each watch; the taker's until it has ended
 * @events:	taken
 * @wrong:	events that nothing was done for
 * @stop:	the taker shall end
 */
struct soak {
	struct queue		q;
	int			eventfd[GROUPS][WRITES];
	int			pipe[GROUPS][2];
	uint64_t		laps[GROUPS];
	_Atomic uint64_t	came[GROUPS];
	uint64_t		seen[GROUPS][WATCHES];
	uint64_t		events;
	uint64_t		wrong;
	_Atomic bool		stop;
};

/* Taking */

/* How many marks, writes or bytes an event is about */
static unsigned int amount(struct soak *s, const struct ukevent *ev)
{
	switch (ev->type) {
	case KEVENT_USER:
		return ev->ret_data[1];
	case KEVENT_PIPE:
		return take_bytes(s->pipe[ev->ptr / WATCHES][0]);
	default:
		return ev->ret_data[0] == KEVENT_POLL_POLLIN;
	}
}

static void count_event(struct soak *s, const struct ukevent *ev)
{
	uint64_t group = ev->ptr / WATCHES;
	unsigned int nr;

	s->events++;
	if (group >= GROUPS) {
		s->wrong++;
		return;
	}
	nr = amount(s, ev);
	s->wrong += !nr;
	s->seen[group][ev->ptr % WATCHES] += nr;
	atomic_fetch_add(&s->came[group], nr);
}

static long taker(void *arg)
{
	struct soak *s = arg;
	struct ukevent ev[64];
	uint32_t i, nr;
	int ret = 0;

	while (ret >= 0 && !atomic_load(&s->stop)) {
		nr = kevent_ring_pop(s->q.ring, RING, ev, 64);
		for (i = 0; i < nr; i++)
			count_event(s, &ev[i]);
		if (nr)
			continue;
		ret = next_event(&s->q, &ev[0], 20);
		if (ret == 1)
			count_event(s, &ev[0]);
	}
	return ret < 0 ? ret : 0;
}

/* Making */

/* Time goes on while the host has the machine stand still, but naps do not. */
static bool still_patient(uint64_t start, unsigned int *naps)
{
	if (patient(start, PATIENCE_MS))
		return true;
	usleep(1000);
	return ++*naps < NAPS;
}

static bool lap_is_over(struct soak *s, unsigned int group)
{
	uint64_t start, want = s->laps[group] * WATCHES;
	unsigned int naps = 0;

	if (atomic_load(&s->came[group]) == want)
		return true;
	start = now_ns();
	while (atomic_load(&s->came[group]) < want &&
	       still_patient(start, &naps))
		;
	return atomic_load(&s->came[group]) == want;
}

static bool mark_group(struct soak *s, unsigned int group)
{
	struct ukevent ev[MARKS];
	uint32_t i;

	for (i = 0; i < MARKS; i++)
		kevent_set_user(&ev[i], group * WATCHES + i, 1, 0, 0);
	return kevent_ctl(s->q.fd, KEVENT_CTL_READY, MARKS, ev) == MARKS;
}

static bool write_eventfds(struct soak *s, unsigned int group)
{
	struct kevent_call call[WRITES];
	uint64_t one = 1;
	uint32_t i;

	for (i = 0; i < WRITES; i++)
		call[i] = (struct kevent_call){
			.nr = SYS_write, .on_value = 1,
			.args = { (uint32_t)s->eventfd[group][i],
				  (uintptr_t)&one, sizeof(one) },
		};
	return kevent_call(-1, call, WRITES, 0, 0) == WRITES - 1;
}

static bool begin_lap(struct soak *s, unsigned int group)
{
	s->laps[group]++;
	put_byte(s->pipe[group][1]);
	return write_eventfds(s, group) && mark_group(s, group);
}

static bool make_events(struct soak *s, uint64_t most)
{
	uint64_t made = 0, until = now_ns() + storm_ns();
	unsigned int group;

	while ((!most || made < most) && now_ns() < until) {
		for (group = 0; group < GROUPS; group++)
			if (!lap_is_over(s, group) || !begin_lap(s, group))
				return false;
		made += GROUPS * WATCHES;
	}
	for (group = 0; group < GROUPS; group++)
		if (!lap_is_over(s, group))
			return false;
	return true;
}

/* The test */

static void open_group(struct soak *s, unsigned int group)
{
	uint64_t user = group * WATCHES;
	unsigned int i;
	int *fd;

	for (i = 0; i < MARKS; i++, user++)
		MUST_EQ(add_user(s->q.fd, user, 1, KEVENT_REQ_ET, user), 0);
	for (i = 0; i < WRITES; i++, user++) {
		fd = &s->eventfd[group][i];
		MUST((*fd = eventfd(0, EFD_NONBLOCK)) >= 0);
		MUST_EQ(add_poll(s->q.fd, *fd, KEVENT_POLL_POLLIN,
				 KEVENT_REQ_ET, user), 0);
	}
	open_pipe(s->pipe[group]);
	MUST_EQ(add_pipe(s->q.fd, s->pipe[group][0], KEVENT_SOCKET_RECV,
			 KEVENT_REQ_ET, user), 0);
}

static void close_group(struct soak *s, unsigned int group)
{
	unsigned int i;

	for (i = 0; i < WRITES; i++)
		close(s->eventfd[group][i]);
	close(s->pipe[group][0]);
	close(s->pipe[group][1]);
}

static void check_group(struct soak *s, unsigned int group)
{
	unsigned int i;

	for (i = 0; i < WATCHES; i++)
		CHECK_EQ(s->seen[group][i], s->laps[group]);
	CHECK_EQ(s->came[group], s->laps[group] * WATCHES);
}

static void each_event_comes_once(void)
{
	uint64_t most = strtoull(getenv("KEVENT_EVENTS") ?: "0", NULL, 0);
	static struct soak s;
	struct actor actor;
	unsigned int i;

	open_queue(&s.q, RING);
	for (i = 0; i < GROUPS; i++)
		open_group(&s, i);
	start_actor(&actor, taker, &s);
	CHECK(make_events(&s, most));
	atomic_store(&s.stop, true);
	join_actor(&actor, PATIENCE_MS);
	CHECK_EQ(actor.ret, 0);
	CHECK_EQ(s.wrong, 0);
	for (i = 0; i < GROUPS; i++)
		check_group(&s, i);
	CHECK_EQ(s.events, s.laps[0] * WATCHES * GROUPS);
	CHECK_NO_EVENT(&s.q);
	note("%llu events", (unsigned long long)s.events);
	close_queue(&s.q);
	for (i = 0; i < GROUPS; i++)
		close_group(&s, i);
}

static const struct test_case cases[] = {
	TEST_LIMIT(each_event_comes_once, 30),
	{}
};

const struct test_suite soak_suite = {
	.name = "soak", .cases = cases,
};
