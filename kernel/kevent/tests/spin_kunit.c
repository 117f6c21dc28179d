// SPDX-License-Identifier: GPL-2.0
/*
 * What spinning learns from wake-ups
 */

#include <kunit/test.h>

#include "../spin.h"

#define WAKE_UPS	1000

static void the_first_wake_up_counts_whole(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kevent_spin_wake_ns(0, 7000), 7000);
	KUNIT_EXPECT_EQ(test, kevent_spin_wake_ns(0, 0), 1);
	/* The clock of another CPU may be ahead. */
	KUNIT_EXPECT_EQ(test, kevent_spin_wake_ns(0, -7000), 1);
	KUNIT_EXPECT_EQ(test, kevent_spin_wake_ns(0, S64_MAX), U32_MAX);
}

/* Three of four wait for a CPU. */
static void a_wake_up_that_waits_counts_little(struct kunit *test)
{
	u32 ns = 0;
	int i;

	for (i = 0; i < WAKE_UPS; i++)
		ns = kevent_spin_wake_ns(ns, i % 4 ? 200000 : 20000);
	KUNIT_EXPECT_GE(test, ns, 20000);
	KUNIT_EXPECT_LE(test, ns, 100000);
}

/* All take longer, on a processor that runs at another frequency. */
static void wake_ups_that_all_wait_are_learned(struct kunit *test)
{
	u32 ns = 20000;
	int i;

	for (i = 0; i < WAKE_UPS; i++)
		ns = kevent_spin_wake_ns(ns, 40000);
	KUNIT_EXPECT_GE(test, ns, 39000);
	KUNIT_EXPECT_LE(test, ns, 40000);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(the_first_wake_up_counts_whole),
	KUNIT_CASE(a_wake_up_that_waits_counts_little),
	KUNIT_CASE(wake_ups_that_all_wait_are_learned),
	{}
};

static struct kunit_suite suite = {
	.name		= "kevent-spin",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of spinning");
MODULE_LICENSE("GPL");
