// SPDX-License-Identifier: GPL-2.0
/*
 * Fields of events, tables of handles, and texts of errors
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "test.h"

#define SLOTS	4u

static void words_of_events_have_names(void)
{
	struct ukevent ev = {
		.id.raw = { 11, 0x80000000u | 12 },
		.ret_data = { 0xfffffff0u, 0x80000002u },
	};

	CHECK_EQ(kevent_fd(&ev), 11);
	CHECK_EQ(kevent_pid(&ev), 11);
	CHECK_EQ(kevent_signal_number(&ev), 11);
	CHECK_EQ(kevent_signal_sender(&ev), 12);
	CHECK_EQ(kevent_signal_code(&ev), -16);
	CHECK_EQ(kevent_signal_value(&ev), (int)0x80000002u);
	CHECK_EQ(kevent_conditions(&ev), 0xfffffff0u);
	CHECK_EQ(kevent_amount(&ev), 0x80000002u);
	CHECK_EQ(kevent_marks(&ev), 0x80000002u);
	CHECK_EQ(kevent_mark_data(&ev), 0x80000002fffffff0ull);
	CHECK_EQ(kevent_expirations(&ev), 0x80000002fffffff0ull);
	CHECK_EQ(kevent_overrun(&ev), 0x80000002fffffff0ull);
}

static void pointers_come_back(void)
{
	struct ukevent ev;
	__u32 word;

	kevent_set_futex(&ev, &word, 0, 0, 0, kevent_from_pointer(&ev));
	CHECK(kevent_pointer(&ev) == &ev);
	CHECK(kevent_futex_word(&ev) == &word);
}

static void status_is_distinguished_from_none(void)
{
	struct ukevent ev = { .ret_data = { 3 << 8, 0 } };
	int status = -1;

	CHECK_EQ(kevent_wait_status(&ev, &status), 0);
	CHECK_EQ(status, -1);
	ev.ret_data[1] = KEVENT_PROC_STATUS;
	CHECK_EQ(kevent_wait_status(&ev, &status), 1);
	CHECK_EQ(WEXITSTATUS(status), 3);
}

static void handle_finds_its_object_until_it_is_released(void)
{
	struct kevent_handle slots[2 * SLOTS];
	struct kevent_handles t;
	int object[2];
	__u64 a, b;

	kevent_handles_init(&t, slots, SLOTS);
	a = kevent_handle_new(&t, &object[0]);
	CHECK(a >= 1ull << 32);
	CHECK(kevent_handle_object(&t, a) == &object[0]);
	CHECK(kevent_handle_release(&t, a) == &object[0]);
	CHECK(!kevent_handle_object(&t, a));
	CHECK(!kevent_handle_release(&t, a));
	b = kevent_handle_new(&t, &object[1]);
	CHECK_EQ((__u32)a, (__u32)b);
	CHECK(a != b);
	CHECK(!kevent_handle_object(&t, a));
	CHECK(!kevent_handle_release(&t, a));
	CHECK(kevent_handle_object(&t, b) == &object[1]);
}

static void numbers_that_are_no_handles_have_no_object(void)
{
	struct kevent_handle slots[SLOTS];
	struct kevent_handles t;
	__u64 i;

	kevent_handles_init(&t, slots, SLOTS);
	for (i = 0; i < SLOTS; i++)
		CHECK(kevent_handle_new(&t, &t));
	for (i = 0; i < 3 * SLOTS; i++)
		CHECK(!kevent_handle_object(&t, i));
	CHECK(!kevent_handle_object(&t, ~0ull));
	CHECK(!kevent_handle_release(&t, 0));
}

/* Each number that a slot without an object may have in it */
static void handles_that_were_not_given_have_no_object(void)
{
	struct kevent_handle slots[SLOTS];
	struct kevent_handles t;
	unsigned int i;
	__u64 handle;

	kevent_handles_init(&t, slots, SLOTS);
	handle = kevent_handle_new(&t, &t);
	CHECK(kevent_handle_release(&t, handle) == &t);
	for (i = 0; i < SLOTS; i++) {
		handle = 1ull << 32 | i;
		CHECK(!kevent_handle_object(&t, handle));
		CHECK(!kevent_handle_release(&t, handle));
		CHECK(!kevent_handle_object(&t, handle + (1ull << 32)));
		CHECK(!kevent_handle_release(&t, handle + (1ull << 32)));
		CHECK(!kevent_handle_object(&t, slots[i].handle));
		CHECK(!kevent_handle_release(&t, slots[i].handle));
	}
	for (i = 0; i < SLOTS; i++)
		CHECK(kevent_handle_new(&t, &t));
	CHECK_EQ(kevent_handle_new(&t, &t), 0);
}

static void table_that_is_full_grows(void)
{
	struct kevent_handle slots[2 * SLOTS];
	__u64 handle[2 * SLOTS];
	struct kevent_handles t;
	unsigned int i, k;

	kevent_handles_init(&t, slots, SLOTS);
	for (i = 0; i < SLOTS; i++)
		handle[i] = kevent_handle_new(&t, &handle[i]);
	CHECK_EQ(kevent_handle_new(&t, &t), 0);
	kevent_handles_grow(&t, slots, 2 * SLOTS);
	for (; i < 2 * SLOTS; i++)
		handle[i] = kevent_handle_new(&t, &handle[i]);
	CHECK_EQ(kevent_handle_new(&t, &t), 0);
	for (i = 0; i < 2 * SLOTS; i++) {
		CHECK(kevent_handle_object(&t, handle[i]) == &handle[i]);
		for (k = 0; k < i; k++)
			CHECK(handle[i] != handle[k]);
	}
}

/* The number of uses starts again, but not with 0. */
static void handle_that_was_used_up_is_no_small_number(void)
{
	struct kevent_handle slots[1];
	struct kevent_handles t;
	__u64 handle;

	kevent_handles_init(&t, slots, 1);
	slots[0].handle |= 0xffffffffull << 32;
	handle = kevent_handle_new(&t, &t);
	CHECK_EQ(handle, 0xffffffffull << 32);
	CHECK(kevent_handle_release(&t, handle) == &t);
	CHECK_EQ(kevent_handle_new(&t, &t), 1ull << 32);
}

static void errors_say_what_to_do(void)
{
	CHECK(strstr(kevent_strerror(-ENOSYS), "CONFIG_KEVENT"));
	CHECK(strstr(kevent_strerror(-ENOSYS), "kevent_types()"));
	CHECK(strstr(kevent_strerror(-EPERM), "kernel.kevent_disabled"));
	CHECK(strstr(kevent_strerror(-EPERM), "KEVENT_INIT_REFUSE"));
	CHECK(strstr(kevent_strerror(-EINVAL), "power of two"));
	CHECK(strstr(kevent_strerror(-EACCES), "/dev/kevent"));
	CHECK(strstr(kevent_strerror(-EXDEV), "fork"));
	CHECK(!strcmp(kevent_strerror(-EMFILE), strerror(EMFILE)));
}

const struct test_case event_tests[] = {
	{ "words_of_events_have_names", words_of_events_have_names },
	{ "pointers_come_back", pointers_come_back },
	{ "status_is_distinguished_from_none", status_is_distinguished_from_none },
	{ "handle_finds_its_object_until_it_is_released",
	  handle_finds_its_object_until_it_is_released },
	{ "numbers_that_are_no_handles_have_no_object",
	  numbers_that_are_no_handles_have_no_object },
	{ "handles_that_were_not_given_have_no_object",
	  handles_that_were_not_given_have_no_object },
	{ "table_that_is_full_grows", table_that_is_full_grows },
	{ "handle_that_was_used_up_is_no_small_number",
	  handle_that_was_used_up_is_no_small_number },
	{ "errors_say_what_to_do", errors_say_what_to_do },
	{ }
};
