// SPDX-License-Identifier: GPL-2.0
/*
 * How the library finds out whether the kernel has kevent
 *
 * What it has found stays, so each test runs in a process that has not asked before:
 * this suite is the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test.h"

static long answer;
static unsigned int inits, others;

/* The kernel's part: kevent_init() has an answer, other calls of kevent fail. */
static long count_calls(const struct fake_call *call)
{
	inits += call->nr == 480;
	others += call->nr > 480 && call->nr <= 485;
	if (call->nr == SYS_fcntl)
		return fcntl((int)call->arg[0], (int)call->arg[1]);
	return call->nr == 480 ? answer : -EIO;
}

static void in_child(void (*fn)(void))
{
	int status = 1;

	fflush(stdout);
	if (!fork()) {
		fake_kernel = count_calls;
		inits = 0;
		others = 0;
		fn();
		fflush(stdout);
		_exit(test_failed());
	}
	wait(&status);
	CHECK_EQ(status, 0);
}

static void nothing_is_called(void)
{
	struct ukevent ev = { .id.raw_u64 = 0 };
	struct kevent_call call[2] = { { .nr = SYS_getpid, .on_value = 1 } };

	fake_proc.sysctl = false;
	answer = 0;
	CHECK_EQ(kevent_supported(), -ENOSYS);
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), -ENOSYS);
	CHECK_EQ(kevent_ctl(1, KEVENT_CTL_ADD, 1, &ev), -ENOSYS);
	CHECK_EQ(kevent_get_events(1, 1, 1, NULL, &ev, 0), -ENOSYS);
	CHECK_EQ(kevent_wait(1, 1, 0, NULL, 0, NULL), -ENOSYS);
	CHECK_EQ(kevent_commit(1, 0, 0), -ENOSYS);
	CHECK(!kevent_backend(1));
	kevent_call(-1, call, 2, 0, 0);
	kevent_call(1, call, 2, KEVENT_CALL_ASYNC, 1);
	CHECK_EQ(inits, 0);
	CHECK_EQ(others, 0);
}

static void no_call_is_made_without_the_sysctl(void)
{
	in_child(nothing_is_called);
}

static void nothing_is_proved(void)
{
	fake_proc.links = false;
	CHECK_EQ(kevent_supported(), -ENOSYS);
	CHECK_EQ(inits, 0);
}

static void no_call_is_made_without_links_of_descriptors(void)
{
	in_child(nothing_is_proved);
}

static void proc_comes_later(void)
{
	fake_proc.sysctl = false;
	CHECK_EQ(kevent_supported(), -ENOSYS);
	fake_proc.sysctl = true;
	answer = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(kevent_supported(), 0);
	CHECK_EQ(inits, 1);
}

static void sysctl_may_appear(void)
{
	in_child(proc_comes_later);
}

static void stranger(void)
{
	answer = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_proc.link = "/dev/null";
	CHECK_EQ(kevent_supported(), -ENOSYS);
	/* It may be anybody's. */
	CHECK_EQ(fcntl((int)answer, F_GETFD), FD_CLOEXEC);
	/* And whoever answered is asked nothing any more. */
	CHECK_EQ(kevent_init(NULL, 0, 0), -ENOSYS);
	CHECK_EQ(kevent_ctl(1, KEVENT_CTL_ADD, 0, NULL), -ENOSYS);
	CHECK_EQ(inits, 1);
	CHECK_EQ(others, 0);
}

static void other_descriptor_is_left_open(void)
{
	in_child(stranger);
}

static void like_a_queue(void)
{
	answer = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_proc.link = "anon_inode:[kevent]2";
	CHECK_EQ(kevent_supported(), -ENOSYS);
}

static void only_the_whole_name_proves(void)
{
	in_child(like_a_queue);
}

static void proc_goes(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	answer = dup(fd);
	CHECK_EQ(kevent_supported(), 0);
	fake_proc.link = NULL;
	answer = fd;
	CHECK_EQ(kevent_init(NULL, 0, 0), fd);
	close(fd);
	CHECK_EQ(kevent_init(NULL, 0, 0), -ENOSYS);
}

static void number_that_was_proved_stays(void)
{
	in_child(proc_goes);
}

static void nobody_proves(void)
{
	answer = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_proc.link = NULL;
	CHECK_EQ(kevent_supported(), -ENOSYS);
	CHECK_EQ(fcntl((int)answer, F_GETFD), FD_CLOEXEC);
}

static void number_that_was_not_proved_does_not(void)
{
	in_child(nobody_proves);
}

static const int strange_errors[] = {
	-ENOSYS, -EPERM, -EACCES, -EINVAL, -EFAULT, -EBADF, -ENOTSUP, -EIO,
};

static void filters(void)
{
	static const int final[] = { -EMFILE, -ENFILE, -ENOMEM, -EINTR };
	size_t i;

	unsetenv("KEVENT_BACKEND");
	for (i = 0; i < ARRAY_SIZE(final); i++) {
		answer = final[i];
		CHECK_EQ(kevent_init(NULL, 0, 0), answer);
	}
	for (i = 0; i < ARRAY_SIZE(strange_errors); i++) {
		answer = strange_errors[i];
		CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), answer);
		CHECK_EQ(kevent_supported(), answer);
		/* There is no fallback here: its first call says so. */
		CHECK_EQ(kevent_init(NULL, 0, 0), -EIO);
		/* The arguments are wrong for it, too. */
		CHECK_EQ(kevent_init(NULL, 4, 0), -EINVAL);
	}
}

static void refusals_of_the_kernel_ask_the_fallback(void)
{
	in_child(filters);
}

static void only_the_fallback(void)
{
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY), -EIO);
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY |
			     KEVENT_INIT_NO_FALLBACK), -EINVAL);
	CHECK_EQ(inits, 0);
}

static void flag_leaves_the_kernel_alone(void)
{
	in_child(only_the_fallback);
}

const struct test_case kernel_tests[] = {
	{ "no_call_is_made_without_the_sysctl",
	  no_call_is_made_without_the_sysctl },
	{ "no_call_is_made_without_links_of_descriptors",
	  no_call_is_made_without_links_of_descriptors },
	{ "sysctl_may_appear", sysctl_may_appear },
	{ "other_descriptor_is_left_open", other_descriptor_is_left_open },
	{ "only_the_whole_name_proves", only_the_whole_name_proves },
	{ "number_that_was_proved_stays", number_that_was_proved_stays },
	{ "number_that_was_not_proved_does_not",
	  number_that_was_not_proved_does_not },
	{ "refusals_of_the_kernel_ask_the_fallback",
	  refusals_of_the_kernel_ask_the_fallback },
	{ "flag_leaves_the_kernel_alone", flag_leaves_the_kernel_alone },
	{ NULL, NULL },
};
