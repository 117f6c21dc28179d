// SPDX-License-Identifier: GPL-2.0
/*
 * How long a wait looks before it sleeps: the policy, given the history of the waits, and
 * looks whose peers answer while this side yields
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <sys/syscall.h>

#include "../src/api/look.h"
#include "test.h"

#define COST	1000U		/* of a wake-up */
#define DEBT	8U		/* wake-ups */
#define REST	64U		/* waits of the first rest */
#define MANY	1000000U

static struct kevent_look l;

static void begin(void)
{
	memset(&l, 0, sizeof(l));
}

/* A wait in which something comes after @ns */
static bool find_after(__u32 ns)
{
	__u32 bound = kevent_look_bound(&l, COST);

	CHECK(bound <= COST);
	if (bound)
		kevent_look_learn(&l, COST, ns < bound ? ns : bound, ns <= bound);
	return bound && ns <= bound;
}

/* A wait in which nothing comes: how long it looks */
static __u32 look_in_vain(void)
{
	__u32 bound = kevent_look_bound(&l, COST);

	if (bound)
		kevent_look_learn(&l, COST, bound, false);
	return bound;
}

static void rest(unsigned int waits)
{
	while (waits--)
		CHECK_EQ(look_in_vain(), 0);
}

static void looks_in_vain_end(void)
{
	unsigned int i;

	begin();
	for (i = 0; i < DEBT; i++)
		CHECK_EQ(look_in_vain(), COST);
	rest(REST);
	CHECK_EQ(look_in_vain(), COST);
	rest(2 * REST);
	CHECK_EQ(look_in_vain(), COST);
}

/* 10 rests until the longest one, and then one look in 32768 waits */
static void trials_become_rare(void)
{
	unsigned int i, looks = 0;

	begin();
	for (i = 0; i < MANY; i++)
		looks += look_in_vain() > 0;
	CHECK(looks > DEBT + 10);
	CHECK(looks <= DEBT + 10 + MANY / 32768);
}

static void trial_that_finds_brings_looks_back(void)
{
	unsigned int i;

	begin();
	for (i = 0; i < DEBT; i++)
		look_in_vain();
	rest(REST);
	CHECK(find_after(COST));
	begin();
	for (i = 0; i < DEBT; i++)
		look_in_vain();
	rest(REST);
	for (i = 0; i < 1000; i++)
		CHECK(find_after(10));
}

static void bound_follows_the_longest_look(void)
{
	unsigned int i;

	begin();
	CHECK(find_after(300));
	CHECK_EQ(look_in_vain(), 600);
	CHECK(find_after(10));
	/* One that is seldom long stays found. */
	CHECK(look_in_vain() > 590);
	for (i = 0; i < 5000; i++)
		CHECK(find_after(10));
	CHECK(look_in_vain() < 600);
	CHECK(find_after(400));
	CHECK_EQ(look_in_vain(), 800);
	CHECK(find_after(700));
	CHECK_EQ(look_in_vain(), COST);
}

/* A look that is short costs little, and what comes a bit later is found, too. */
static void bound_is_an_eighth_at_least(void)
{
	begin();
	CHECK(find_after(0));
	CHECK_EQ(look_in_vain(), COST / 8);
	CHECK(find_after(COST / 8));
}

static void looks_that_pay_go_on(void)
{
	unsigned int i;

	begin();
	for (i = 0; i < MANY; i++)
		CHECK(i % 4 ? look_in_vain() : find_after(100));
}

/* Each second one finds something, but as late as a wake-up would have come. */
static void looks_that_save_nothing_end(void)
{
	unsigned int i, looks = 0;

	begin();
	for (i = 0; i < MANY; i++)
		looks += i % 2 ? look_in_vain() > 0 : find_after(COST);
	CHECK(looks < MANY / 100);
}

static void success_shortens_the_next_rest(void)
{
	unsigned int i;

	begin();
	for (i = 0; i < MANY; i++)
		look_in_vain();
	while (!find_after(10))
		;
	for (i = 0; i < 5000; i++)
		CHECK(find_after(10));
	for (i = 0; look_in_vain() && i < MANY; i++)
		;
	CHECK(i <= DEBT * 8 + 1);
	rest(REST - 1);
	CHECK(look_in_vain() > 0);
}

/* Somebody else had the CPU for long. */
static void whole_debt_ends_looks_at_once(void)
{
	unsigned int i;

	begin();
	for (i = 0; i < 1000; i++)
		CHECK(find_after(10));
	CHECK(kevent_look_bound(&l, COST) > 0);
	kevent_look_learn(&l, COST, DEBT * COST, false);
	rest(REST);
	CHECK(look_in_vain() > 0);
}

/* For any series of waits, looks cost little more time than they save. */
static void debt_is_limited(void)
{
	long long spent = 0, most = 0;
	unsigned int i, bound;
	__u32 seed = 1, ns;

	begin();
	for (i = 0; i < MANY; i++) {
		seed = seed * 1664525 + 1013904223;
		ns = (seed >> 16) % (i / 1000 % 3 * COST + 2);
		bound = kevent_look_bound(&l, COST);
		if (!bound)
			continue;
		kevent_look_learn(&l, COST, ns < bound ? ns : bound, ns <= bound);
		spent += ns <= bound ? (long long)ns - COST : bound;
		if (spent < 0)
			spent = 0;
		if (spent > most)
			most = spent;
	}
	/* Each trial after a rest is on top of it. */
	CHECK(most >= DEBT * COST);
	CHECK(most <= (DEBT + MANY / 1000) * COST);
}

/* --- looking ------------------------------------------------------------- */

static unsigned int nr_looks, nr_yields, nr_reads;
static __u64 yield_ns;		/* that others have this CPU */
static __u64 look_ns;		/* that a look takes */
static bool answers;

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return kevent_ns(&now);
}

/* A timer is 50 us late, so that a wake-up costs the most there is. */
static long late_kernel(const struct fake_call *call)
{
	__u64 start = now_ns();

	if (call->nr == SYS_sched_yield)
		for (nr_yields++; now_ns() - start < yield_ns;)
			;
	if (call->nr == SYS_read)
		for (nr_reads++; now_ns() - start < 70000;)
			;
	return 0;
}

static bool count_looks(const void *set)
{
	__u64 start = now_ns();

	(void)set;
	for (nr_looks++; now_ns() - start < look_ns;)
		;
	return answers && nr_yields;
}

static bool look(__u32 looks, long timeout)
{
	const struct timespec ts = { .tv_nsec = timeout };

	fake_kernel = late_kernel;
	begin();
	errno = 99;
	nr_looks = 0;
	nr_yields = 0;
	return kevent_look(&l, looks, timeout < 0 ? NULL : &ts, count_looks, NULL);
}

static void number_of_looks_is_kept(void)
{
	answers = false;
	CHECK(!look(5, -1));
	CHECK_EQ(nr_looks, 5);
	CHECK_EQ(nr_yields, 0);
	CHECK_EQ(nr_reads, 0);
	CHECK(!look(0, -1));
	CHECK_EQ(nr_looks, 0);
}

/* The first yield may come too late, if something else has this CPU meanwhile. */
static void peer_answers_while_this_side_yields(void)
{
	unsigned int i;

	answers = true;
	for (i = 0; i < 100 && !look(KEVENT_LOOKS_LEARNED, -1); i++)
		;
	CHECK(i < 100);
	CHECK_EQ(nr_yields, 1);
	CHECK_EQ(errno, 99);
	answers = false;
	CHECK(!look(KEVENT_LOOKS_LEARNED, -1));
	CHECK(l.debt > 0);
	CHECK(!look(KEVENT_LOOKS_LEARNED, 999999999));
	CHECK(l.debt > 0);
	/* The cost of a wake-up was measured once. */
	CHECK_EQ(nr_reads, 5);
}

static void yield_for_long(void)
{
	unsigned int i;

	yield_ns = 600000;
	nr_yields = 0;
	for (i = 0; i < 100 && !nr_yields; i++)
		look(KEVENT_LOOKS_LEARNED, -1);
	yield_ns = 0;
	CHECK_EQ(nr_yields, 1);
	CHECK_EQ(l.left, REST);
}

/* A program that computes has had the CPU, whether or not the peer has answered meanwhile. */
static void long_yield_is_a_whole_debt(void)
{
	answers = false;
	yield_for_long();
	answers = true;
	yield_for_long();
}

/* A wake-up costs 50 us here. One look comes before the time counts. */
static void large_set_is_looked_at_less_often(void)
{
	answers = false;
	look_ns = 10000;
	CHECK(!look(KEVENT_LOOKS_LEARNED, -1));
	CHECK(nr_looks <= 1 + 5);
	look_ns = 0;
}

static void short_wait_does_not_look(void)
{
	answers = false;
	CHECK(!look(KEVENT_LOOKS_LEARNED, 0));
	CHECK_EQ(nr_looks, 1);
	CHECK(!look(KEVENT_LOOKS_LEARNED, 49999));
	CHECK_EQ(nr_looks, 1);
	CHECK_EQ(nr_yields, 0);
	CHECK_EQ(l.debt, 0);
}

const struct test_case look_tests[] = {
	{ "looks_in_vain_end", looks_in_vain_end },
	{ "trials_become_rare", trials_become_rare },
	{ "trial_that_finds_brings_looks_back", trial_that_finds_brings_looks_back },
	{ "bound_follows_the_longest_look", bound_follows_the_longest_look },
	{ "bound_is_an_eighth_at_least", bound_is_an_eighth_at_least },
	{ "looks_that_pay_go_on", looks_that_pay_go_on },
	{ "looks_that_save_nothing_end", looks_that_save_nothing_end },
	{ "success_shortens_the_next_rest", success_shortens_the_next_rest },
	{ "whole_debt_ends_looks_at_once", whole_debt_ends_looks_at_once },
	{ "debt_is_limited", debt_is_limited },
	{ "number_of_looks_is_kept", number_of_looks_is_kept },
	{ "peer_answers_while_this_side_yields", peer_answers_while_this_side_yields },
	{ "long_yield_is_a_whole_debt", long_yield_is_a_whole_debt },
	{ "large_set_is_looked_at_less_often", large_set_is_looked_at_less_often },
	{ "short_wait_does_not_look", short_wait_does_not_look },
	{ }
};
