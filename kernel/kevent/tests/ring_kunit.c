// SPDX-License-Identifier: GPL-2.0
/*
 * The ring: arithmetic of positions, and stores to user memory
 */

#include <kunit/test.h>
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "../core/ring.h"

/* Positions around these show every carry that matters. */
static const u64 bases[] = { 0, U32_MAX - 3ULL, 5ULL << 32, S64_MAX - 3ULL };

static void uidx_takes_progress_only(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		const u64 at = bases[i];
		struct kring ring = { .size = 16, .uidx = at, .kidx = at + 9 };

		KUNIT_EXPECT_EQ(test, kring_valid_uidx(&ring, at), at);
		KUNIT_EXPECT_EQ(test, kring_valid_uidx(&ring, at + 4), at + 4);
		KUNIT_EXPECT_EQ(test, kring_valid_uidx(&ring, at + 9), at + 9);
		KUNIT_EXPECT_EQ(test, kring_valid_uidx(&ring, at + 10), at);
		KUNIT_EXPECT_EQ(test, kring_valid_uidx(&ring, at - 1), at);
		KUNIT_EXPECT_EQ(test, kring_valid_uidx(&ring, U64_MAX), at);
	}
}

static void free_slots_are_counted_across_wraps(struct kunit *test)
{
	unsigned int i, used;

	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		for (used = 0; used <= 16; used++) {
			struct kring ring = {
				.size = 16,
				.uidx = bases[i],
				.kidx = bases[i] + used,
			};

			KUNIT_EXPECT_EQ(test, kring_free_slots(&ring),
					16 - used);
		}
	}
}

static void slots_wrap_in_a_ring_only(struct kunit *test)
{
	struct kevent_ring __user *user = (void __user *)8;
	struct kring ring = { .user = user, .size = 16 };
	struct kring buffer = { .size = 100 };

	KUNIT_EXPECT_EQ(test, kring_slot(&ring, 15), 15);
	KUNIT_EXPECT_EQ(test, kring_slot(&ring, 16), 0);
	KUNIT_EXPECT_EQ(test, kring_slot(&ring, (1ULL << 32) + 3), 3);
	KUNIT_EXPECT_EQ(test, kring_slot(&buffer, 99), 99);
}

static void an_entry_is_unread_until_passed(struct kunit *test)
{
	struct kring ring = { .size = 16, .uidx = 7, .kidx = 9 };

	KUNIT_EXPECT_FALSE(test, kring_is_unread(&ring, 0));
	KUNIT_EXPECT_FALSE(test, kring_is_unread(&ring, 7));
	KUNIT_EXPECT_TRUE(test, kring_is_unread(&ring, 8));
	KUNIT_EXPECT_TRUE(test, kring_is_unread(&ring, 9));
}

static struct kevent_ring __user *map(struct kunit *test, u32 size)
{
	unsigned long at = kunit_vm_mmap(test, NULL, 0, kring_bytes(size),
					 PROT_READ | PROT_WRITE,
					 MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, at, 0);
	return (struct kevent_ring __user *)at;
}

static u64 load(struct kunit *test, u64 __user *from)
{
	u64 value = 0;

	KUNIT_ASSERT_EQ(test, get_user(value, from), 0);
	return value;
}

static void init_rejects_bad_rings(struct kunit *test)
{
	struct kevent_ring __user *user = map(test, 16);
	struct kring ring;

	KUNIT_EXPECT_EQ(test, kring_init(&ring, user, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kring_init(&ring, user, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, kring_init(&ring, user, 12), -EINVAL);
	KUNIT_EXPECT_EQ(test, kring_init(&ring, user, 1U << 21), -EINVAL);
	KUNIT_EXPECT_EQ(test, kring_init(&ring, (void __user *)user + 4, 16),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, kring_init(&ring, (void __user *)TASK_SIZE_MAX,
					 16), -EFAULT);
	KUNIT_EXPECT_EQ(test, kring_init(&ring, user, 16), 0);
}

static u32 store(struct kring *ring, const struct ukevent *uk, u32 nr)
{
	u32 i = 0;

	while (i < nr && kring_store(ring, &uk[i]))
		i++;
	return i;
}

static void store_publishes_entries_in_order(struct kunit *test)
{
	struct kevent_ring __user *user = map(test, 4);
	struct ukevent uk[3] = {
		{ .ptr = 1 }, { .ptr = 2 }, { .ptr = 3 },
	};
	struct kring ring;

	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, 4), 0);
	KUNIT_ASSERT_EQ(test, kring_fault_in(&ring), 0);
	KUNIT_EXPECT_EQ(test, store(&ring, uk, 3), 3);
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 3);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[1].ptr), 2);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 2), 2);
	KUNIT_EXPECT_EQ(test, store(&ring, uk, 3), 3);
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 6);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[2].ptr), 3);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[3].ptr), 1);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[1].ptr), 3);
}

/* A page nobody has touched: the store fails, says so, and works later. */
static void store_never_faults_a_page_in(struct kunit *test)
{
	const u32 size = 2 * PAGE_SIZE / sizeof(struct ukevent);
	struct kevent_ring __user *user;
	struct ukevent uk = { .ptr = 7 };
	struct kring ring;

	user = map(test, roundup_pow_of_two(size));
	KUNIT_ASSERT_EQ(test, kring_init(&ring, user,
					 roundup_pow_of_two(size)), 0);
	ring.kidx = PAGE_SIZE / sizeof(struct ukevent) + 1;
	ring.uidx = ring.kidx;
	KUNIT_EXPECT_FALSE(test, kring_store(&ring, &uk));
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 0);
	KUNIT_EXPECT_EQ(test, kring_fault_in(&ring), 0);
	KUNIT_EXPECT_TRUE(test, kring_store(&ring, &uk));
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), ring.kidx);
}

static void commit_is_late_exact_or_refused(struct kunit *test)
{
	struct kevent_ring __user *user = map(test, 4);
	struct ukevent uk[4] = {};
	struct kring ring;

	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, 4), 0);
	KUNIT_ASSERT_EQ(test, store(&ring, uk, 4), 4);
	KUNIT_EXPECT_EQ(test, kring_free_slots(&ring), 0);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 5), -EINVAL);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 1), 1);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 1), 0);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 0), 0);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 4), 3);
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_uidx), 4);
	KUNIT_EXPECT_EQ(test, kring_free_slots(&ring), 4);
}

static void commit_sees_what_consumers_stored(struct kunit *test)
{
	struct kevent_ring __user *user = map(test, 4);
	struct ukevent uk[4] = {};
	struct kring ring;

	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, 4), 0);
	KUNIT_ASSERT_EQ(test, store(&ring, uk, 4), 4);
	KUNIT_ASSERT_EQ(test, put_user(3ULL, &user->ring_uidx), 0);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 2), 0);
	KUNIT_EXPECT_EQ(test, kring_free_slots(&ring), 3);
	KUNIT_ASSERT_EQ(test, put_user(~0ULL, &user->ring_uidx), 0);
	KUNIT_EXPECT_EQ(test, kring_sync(&ring), 0);
	KUNIT_EXPECT_EQ(test, kring_free_slots(&ring), 3);
	KUNIT_EXPECT_EQ(test, kring_commit(&ring, 4), 1);
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_uidx), 4);
}

static bool push(struct kring *ring, u64 user, u32 says, u64 last, u16 said)
{
	struct ukevent uk = { .ptr = user, .ret_data = { says } };

	return kring_push(ring, &uk, &last, &said);
}

static void push_stores_until_the_ring_is_full(struct kunit *test)
{
	struct kevent_ring __user *user = map(test, 2);
	struct kring ring;

	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, 2), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 1, 0, 0));
	KUNIT_EXPECT_TRUE(test, push(&ring, 2, 1, 0, 0));
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 2);
	KUNIT_EXPECT_FALSE(test, push(&ring, 3, 1, 0, 0));
	KUNIT_EXPECT_EQ(test, ring.kidx, 2);
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 2);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[0].ptr), 1);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[1].ptr), 2);
	KUNIT_ASSERT_EQ(test, put_user(1ULL, &user->ring_uidx), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 3, 1, 0, 0));
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 3);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[0].ptr), 3);
}

static void push_does_not_repeat_an_unread_entry(struct kunit *test)
{
	struct kevent_ring __user *user = map(test, 2);
	struct kring ring;

	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, 2), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 5, 0, 0));
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 4, 1, 5));
	KUNIT_EXPECT_EQ(test, ring.kidx, 1);
	/* Redundant comes before full. */
	KUNIT_EXPECT_TRUE(test, push(&ring, 2, 5, 0, 0));
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 5, 1, 5));
	KUNIT_EXPECT_EQ(test, ring.kidx, 2);
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 2);
	KUNIT_ASSERT_EQ(test, put_user(1ULL, &user->ring_uidx), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 4, 1, 5));
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 3);
}

/* An entry that says more says all; one whose forerunner is read does not. */
static void push_says_what_an_unread_entry_says(struct kunit *test)
{
	struct kevent_ring __user *user = map(test, 4);
	struct ukevent uk = { .ret_data = { 2 } };
	struct kring ring;
	u64 last = 1;
	u16 said = 1;
	u32 says;

	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, 4), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 1, 0, 0));
	KUNIT_EXPECT_TRUE(test, kring_push(&ring, &uk, &last, &said));
	KUNIT_EXPECT_EQ(test, last, 2);
	KUNIT_EXPECT_EQ(test, said, 3);
	KUNIT_ASSERT_EQ(test, get_user(says, &user->event[1].ret_data[0]), 0);
	KUNIT_EXPECT_EQ(test, says, 3);
	KUNIT_ASSERT_EQ(test, put_user(2ULL, &user->ring_uidx), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 4, 2, 3));
	KUNIT_ASSERT_EQ(test, get_user(says, &user->event[2].ret_data[0]), 0);
	KUNIT_EXPECT_EQ(test, says, 4);
}

static void push_takes_no_uidx_but_progress(struct kunit *test)
{
	static const u64 wild[] = { 0, 3, 1ULL << 32, S64_MAX, U64_MAX };
	struct kevent_ring __user *user = map(test, 2);
	struct kring ring;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, 2), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 1, 0, 0));
	KUNIT_ASSERT_EQ(test, put_user(1ULL, &user->ring_uidx), 0);
	KUNIT_ASSERT_EQ(test, kring_sync(&ring), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 2, 1, 0, 0));
	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		KUNIT_ASSERT_EQ(test, put_user(wild[i], &user->ring_uidx), 0);
		KUNIT_EXPECT_TRUE(test, push(&ring, 2, 1, 2, 1));
		KUNIT_EXPECT_EQ(test, ring.kidx, 2);
		KUNIT_EXPECT_EQ(test, ring.uidx, 1);
	}
	KUNIT_EXPECT_TRUE(test, push(&ring, 3, 1, 0, 0));
	KUNIT_EXPECT_FALSE(test, push(&ring, 4, 1, 0, 0));
	KUNIT_EXPECT_EQ(test, load(test, &user->event[1].ptr), 2);
	KUNIT_EXPECT_EQ(test, load(test, &user->event[0].ptr), 3);
}

/* Neither the header's page nor that of a slot is faulted in. */
static void push_never_faults_a_page_in(struct kunit *test)
{
	const u32 size = roundup_pow_of_two(2 * PAGE_SIZE /
					    sizeof(struct ukevent));
	struct kevent_ring __user *user = map(test, size);
	struct kring ring;

	KUNIT_ASSERT_EQ(test, kring_check(&ring, user, size), 0);
	KUNIT_EXPECT_FALSE(test, push(&ring, 1, 1, 0, 0));
	KUNIT_ASSERT_EQ(test, kring_init(&ring, user, size), 0);
	ring.kidx = PAGE_SIZE / sizeof(struct ukevent) + 1;
	ring.uidx = ring.kidx;
	KUNIT_EXPECT_FALSE(test, push(&ring, 1, 1, 0, 0));
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), 0);
	KUNIT_EXPECT_EQ(test, kring_fault_in(&ring), 0);
	KUNIT_EXPECT_TRUE(test, push(&ring, 1, 1, 0, 0));
	KUNIT_EXPECT_EQ(test, load(test, &user->ring_kidx), ring.kidx);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(uidx_takes_progress_only),
	KUNIT_CASE(free_slots_are_counted_across_wraps),
	KUNIT_CASE(slots_wrap_in_a_ring_only),
	KUNIT_CASE(an_entry_is_unread_until_passed),
	KUNIT_CASE(init_rejects_bad_rings),
	KUNIT_CASE(store_publishes_entries_in_order),
	KUNIT_CASE(store_never_faults_a_page_in),
	KUNIT_CASE(commit_is_late_exact_or_refused),
	KUNIT_CASE(commit_sees_what_consumers_stored),
	KUNIT_CASE(push_stores_until_the_ring_is_full),
	KUNIT_CASE(push_does_not_repeat_an_unread_entry),
	KUNIT_CASE(push_says_what_an_unread_entry_says),
	KUNIT_CASE(push_takes_no_uidx_but_progress),
	KUNIT_CASE(push_never_faults_a_page_in),
	{}
};

static struct kunit_suite suite = {
	.name		= "kevent-ring",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of the kevent ring");
MODULE_LICENSE("GPL");
