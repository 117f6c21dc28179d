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
	struct kevent_chain c = begin(3);
	char buf[5] = "";

	file = kevent_chain_call(&c, SYS_openat, AT_FDCWD, "/proc/version",
				 O_RDONLY);
	got = kevent_chain_call(&c, SYS_read, -1, buf, 5);
	kevent_chain_pass(&c, file, 0);
	end = kevent_chain_call(&c, SYS_close, -1);
	kevent_chain_pass(&c, file, 0);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 2);
	CHECK(file->result >= 0);
	CHECK_EQ(got->result, 5);
	CHECK(!memcmp(buf, "Linux", 5));
	CHECK_EQ(end->result, 0);
	CHECK_EQ(fcntl((int)file->result, F_GETFD), -1);
	/* It may run again. */
	CHECK_EQ(kevent_chain_run(&c), 2);
	CHECK_EQ(got->result, 5);
}

/* Two arguments of one entry, and one of the entry in front */
static void results_are_passed_to_any_argument(void)
{
	struct kevent_call *from, *to, *got, *put;
	struct kevent_chain c = begin(4);
	char buf[8] = "", seen[8] = "";
	int fd[2];

	MUST_EQ(pipe(fd), 0);
	MUST_EQ(write(fd[1], "abc", 3), 3);
	from = kevent_chain_call(&c, SYS_openat, AT_FDCWD, "/proc/version",
				 O_RDONLY);
	to = kevent_chain_call(&c, SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR,
			       0600);
	got = kevent_chain_call(&c, SYS_read, fd[0], buf, sizeof(buf));
	put = kevent_chain_call(&c, SYS_pwrite64, -1, buf, -1, 2);
	kevent_chain_pass(&c, to, 0);
	kevent_chain_pass(&c, got, 2);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 3);
	CHECK_EQ(put->result, 3);
	CHECK_EQ(pread((int)to->result, seen, sizeof(seen), 2), 3);
	CHECK(!memcmp(seen, "abc", 3));
	close((int)from->result);
	close((int)to->result);
	close(fd[0]);
	close(fd[1]);
}

/* The chain opens what is not there, and closes it: so do the calls behind the error. */
static void error_is_passed_on(void)
{
	struct kevent_chain c = begin(3);
	struct kevent_call *file;

	file = kevent_chain_call(&c, SYS_openat, AT_FDCWD, "/none", O_RDONLY);
	kevent_chain_jump(&c, KEVENT_ON_ANY, FIRST);
	kevent_chain_call(&c, SYS_read, -1, NULL, 0);
	kevent_chain_label(&c, FIRST);
	kevent_chain_call(&c, SYS_close, -1);
	kevent_chain_pass(&c, file, 0);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 2);
	CHECK_EQ(calls[1].result, -ECANCELED);
	CHECK_EQ(calls[2].result, -ENOENT);
}

/* A chain that runs again, and leaves an entry out, has no result of it. */
static void result_of_the_last_time_is_none(void)
{
	struct kevent_chain c = begin(3);
	struct kevent_call *file;
	int zero = open("/dev/zero", O_RDONLY);
	char buf;

	kevent_chain_call(&c, SYS_read, zero, &buf, 1);
	kevent_chain_jump(&c, KEVENT_ON_ZERO, FIRST);
	file = kevent_chain_call(&c, SYS_openat, AT_FDCWD, "/proc/version",
				 O_RDONLY);
	kevent_chain_label(&c, FIRST);
	kevent_chain_call(&c, SYS_close, -1);
	kevent_chain_pass(&c, file, 0);
	MUST_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_run(&c), 2);
	CHECK(file->result >= 0);
	CHECK_EQ(calls[2].result, 0);
	calls[0].args[2] = 0;
	CHECK_EQ(kevent_chain_run(&c), 2);
	CHECK_EQ(calls[2].result, -ECANCELED);
	close(zero);
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

static int pass(const struct kevent_call *from, unsigned int arg, __u32 nr)
{
	struct kevent_chain c = begin(3);

	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_call(&c, nr);
	kevent_chain_pass(&c, from, arg);
	return kevent_chain_end(&c);
}

static void results_come_from_entries_in_front(void)
{
	struct kevent_chain c = begin(1);

	CHECK_EQ(pass(calls, 5, SYS_getpid), 0);
	CHECK_EQ(calls[1].flags, KEVENT_CALL_BACK(5));
	CHECK_EQ(calls[1].args[5], 1);
	CHECK_EQ(pass(calls, 6, SYS_getpid), -EINVAL);
	CHECK_EQ(pass(calls + 1, 0, SYS_getpid), -EINVAL);
	CHECK_EQ(pass(calls + 2, 0, SYS_getpid), -EINVAL);
	CHECK_EQ(pass(NULL, 0, SYS_getpid), -EINVAL);
	CHECK_EQ(pass(calls, 0, KEVENT_CALL_BOUND), -EINVAL);
	kevent_chain_pass(&c, calls, 0);
	CHECK_EQ(kevent_chain_end(&c), -EINVAL);
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
	TEST(results_are_passed_to_any_argument),
	TEST(error_is_passed_on),
	TEST(result_of_the_last_time_is_none),
	TEST(jumps_go_to_names),
	TEST(error_ends_the_chain),
	TEST(call_that_is_not_allowed_is_refused),
	TEST(room_is_needed),
	TEST(bad_names_are_refused),
	TEST(results_come_from_entries_in_front),
	TEST(jumps_go_forward),
	TEST(jumps_have_a_length),
	{}
};

const struct test_suite chain_suite = {
	.name = "chain",
	.cases = cases,
};
