// SPDX-License-Identifier: GPL-2.0
/*
 * kevent_chain_*(): building of chains, and what the library makes of them
 *
 * All of this is the same where the kernel runs no chains.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "helpers.h"

#define ROOM	320
#define ON_GOOD	(KEVENT_ON_ZERO | KEVENT_ON_VALUE)

enum { FIRST, SECOND, THIRD };

static struct kevent_call calls[ROOM];

static struct kevent_chain begin(unsigned int max)
{
	struct kevent_chain c;

	memset(calls, 0x5a, sizeof(calls));
	kevent_chain_init(&c, calls, max);
	return c;
}

static void result_is_passed_to_the_next_call(void)
{
	struct kevent_call *file, *got, *end;
	struct kevent_chain c = begin(5);
	char buf[5] = "";

	file = kevent_chain_call(&c, SYS_openat, AT_FDCWD, "/proc/version",
				 O_RDONLY);
	kevent_chain_pass(&c, file, 0);
	got = kevent_chain_call(&c, SYS_read, -1, buf, 5);
	kevent_chain_pass(&c, file, 0);
	end = kevent_chain_call(&c, SYS_close, -1);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 4);
	CHECK(file->result >= 0);
	CHECK_EQ(got->result, 5);
	CHECK(!memcmp(buf, "Linux", 5));
	CHECK_EQ(end->result, 0);
	CHECK_EQ(fcntl((int)file->result, F_GETFD), -1);
	/* It may run again. */
	CHECK_EQ(kevent_chain_run(&c), 4);
	CHECK_EQ(got->result, 5);
}

/* The first of several names that opens; its entry ends the chain. */
static void jumps_go_to_names(void)
{
	static const char *const name[] = { "/none", "/proc/version", "/proc" };
	struct kevent_chain c = begin(4);
	struct kevent_call *found;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(name); i++) {
		kevent_chain_label(&c, FIRST + i);
		found = kevent_chain_call(&c, SYS_openat, AT_FDCWD, name[i],
					  O_RDONLY);
		kevent_chain_jump(&c, KEVENT_ON_ERROR, FIRST + i + 1);
		kevent_chain_jump(&c, ON_GOOD, 7);
	}
	kevent_chain_label(&c, FIRST + i);
	kevent_chain_call(&c, SYS_getppid);
	kevent_chain_label(&c, 7);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(found->on_value, 2);
	CHECK_EQ(kevent_chain_run(&c), 1);
	CHECK_EQ(calls[0].result, -ENOENT);
	CHECK_EQ(calls[2].result, 0);
	CHECK_EQ(close((int)calls[1].result), 0);
}

static void error_ends_the_chain(void)
{
	struct kevent_chain c = begin(2);

	kevent_chain_call(&c, SYS_close, -1);
	kevent_chain_call(&c, SYS_getppid);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 0);
	CHECK_EQ(calls[0].result, -EBADF);
	CHECK_EQ(calls[1].result, 0);
}

static void copies_take_one_to_eight_bytes(void)
{
	uint64_t from = 0x8877665544332211, to = 0;
	struct kevent_chain c = begin(1);

	kevent_chain_copy(&c, &to, &from, 3);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 0);
	CHECK_EQ(calls[0].result, 3);
	CHECK_EQ(to & 0xff, from & 0xff);
	c = begin(1);
	CHECK(!kevent_chain_copy(&c, &to, &from, 0));
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
	c = begin(1);
	CHECK(!kevent_chain_copy(&c, &to, &from, 9));
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
}

static void call_that_is_not_allowed_is_refused(void)
{
	struct kevent_chain c = begin(2);

	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_call(&c, SYS_exit_group, 1);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 1 | KEVENT_CALL_REFUSED);
	CHECK_EQ(calls[0].result, getpid());
	CHECK_EQ(calls[1].result, -ENOSYS);
}

/* Mistakes of the program */

static void room_is_needed(void)
{
	struct kevent_chain c = begin(1);
	struct kevent_call *first;

	first = kevent_chain_call(&c, SYS_getpid);
	CHECK(first == calls);
	/* A pass needs room for the call whose argument it is, too. */
	CHECK(!kevent_chain_pass(&c, first, 0));
	CHECK(!kevent_chain_call(&c, SYS_getpid));
	CHECK_EQ(kevent_chain_end(&c), -ENOSPC);
	CHECK_EQ(calls[1].nr, 0x5a5a5a5a);
	c = begin(0);
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
	kevent_chain_init(&c, NULL, 1);
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
}

static void bad_names_are_refused(void)
{
	struct kevent_chain c = begin(2);

	kevent_chain_jump(&c, KEVENT_ON_ANY, FIRST);
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
	c = begin(2);
	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_jump(&c, 0, FIRST);
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
	c = begin(2);
	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_jump(&c, KEVENT_ON_ANY, KEVENT_CHAIN_NAMES);
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
	c = begin(2);
	kevent_chain_label(&c, FIRST);
	kevent_chain_label(&c, SECOND);
	CHECK_EQ(kevent_chain_end(&c), -EEXIST);
}

/* A name in front of the jump, or at the jump itself, is not further on. */
static void jumps_go_forward(void)
{
	struct kevent_chain c = begin(2);

	kevent_chain_label(&c, FIRST);
	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_jump(&c, KEVENT_ON_VALUE, FIRST);
	CHECK_EQ(kevent_chain_end(&c), -ENOENT);
	c = begin(2);
	kevent_chain_label(&c, FIRST);
	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_jump(&c, KEVENT_ON_VALUE, FIRST);
	CHECK_EQ(kevent_chain_end(&c), -ENOENT);
}

static int jump_over(unsigned int nr)
{
	struct kevent_chain c = begin(ROOM);

	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_jump(&c, KEVENT_ON_ANY, THIRD);
	while (nr--)
		kevent_chain_call(&c, SYS_close, -1);
	kevent_chain_label(&c, THIRD);
	kevent_chain_call(&c, SYS_getppid);
	return kevent_chain_end(&c) ?: kevent_chain_run(&c);
}

static void jumps_have_a_length(void)
{
	CHECK_EQ(jump_over(254), 255);
	CHECK_EQ(jump_over(255), -ERANGE);
}

static const struct test_case cases[] = {
	TEST(result_is_passed_to_the_next_call),
	TEST(jumps_go_to_names),
	TEST(error_ends_the_chain),
	TEST(copies_take_one_to_eight_bytes),
	TEST(call_that_is_not_allowed_is_refused),
	TEST(room_is_needed),
	TEST(bad_names_are_refused),
	TEST(jumps_go_forward),
	TEST(jumps_have_a_length),
	{}
};

const struct test_suite chain_suite = {
	.name = "chain",
	.cases = cases,
};
