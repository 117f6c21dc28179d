// SPDX-License-Identifier: GPL-2.0
/*
 * How the library finds out whether the kernel has kevent
 *
 * The library keeps the answer, so each test runs in a process that has not asked before:
 * this suite is the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
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
	CHECK_EQ(kevent_ctl(1, KEVENT_CTL_ADD, 1, &ev), -EINVAL);
	CHECK_EQ(kevent_get_events(1, 1, 1, NULL, &ev, 0), -EINVAL);
	CHECK_EQ(kevent_wait(1, 1, 0, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_commit(1, 0, 0), -EINVAL);
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
	CHECK_EQ(kevent_ctl(1, KEVENT_CTL_ADD, 0, NULL), -EINVAL);
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
	/* That says nothing of the next one, unless nothing can prove it. */
	fake_proc.link = "anon_inode:[kevent]";
	fake_proc.links = false;
	CHECK_EQ(kevent_init(NULL, 0, 0), -ENOSYS);
	CHECK_EQ(inits, 1);
	fake_proc.links = true;
	CHECK_EQ(kevent_init(NULL, 0, 0), answer);
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

/* --- both kinds of queue in a process --------------------------------------- */

#define NUMBERS	64

/* By number: is it an epoll, and which file does that have? */
static struct {
	bool	epoll;
	int	has;
} number[NUMBERS];
static unsigned int asked, asked_closed;
static bool no_eventfd;

/* The library calls it by its name. */
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	(void)event;
	asked++;
	if (epoll < 0 || fcntl(epoll, F_GETFD) < 0) {
		asked_closed += epoll >= 0;
		errno = EBADF;
		return -1;
	}
	errno = !number[epoll].epoll ? EINVAL :
		op == EPOLL_CTL_ADD && number[epoll].has == fd ? EEXIST : 0;
	if (errno)
		return -1;
	number[epoll].has = op == EPOLL_CTL_ADD ? fd : -1;
	return 0;
}

static long open_any(bool epoll)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	number[fd].epoll = epoll;
	number[fd].has = -1;
	return fd;
}

/* Queues of the kernel have an event; those of the fallback have none. */
static long both_kinds(const struct fake_call *call)
{
	int fd = (int)call->arg[0];

	switch (call->nr) {
	case 480:
	case SYS_eventfd2:
		return no_eventfd && call->nr != 480 ? -EMFILE : open_any(false);
	case SYS_epoll_create1:
		return open_any(true);
	case SYS_close:
		return close(fd);
	case SYS_epoll_pwait:
		return number[fd].epoll ? 0 : -EINVAL;
	case SYS_write:
		return 8;
	default:
		if (call->nr > 484 || call->nr < 481)
			return -ENOSYS;
		return fcntl(fd, F_GETFD) < 0 ? -EBADF :
		       number[fd].epoll ? -EINVAL :
		       call->nr != 481 || call->arg[2];
	}
}

static const struct timespec at_once;

static void check_kernel_queue(int fd)
{
	struct ukevent ev = { .id.raw_u64 = 0 };

	CHECK_EQ(kevent_get_events(fd, 1, 1, &at_once, &ev, 0), 1);
	CHECK_EQ(kevent_wait(fd, 1, 0, &at_once, 0, NULL), 1);
	CHECK_EQ(kevent_ctl(fd, KEVENT_CTL_ADD, 1, &ev), 1);
	CHECK_EQ(kevent_commit(fd, 1, 0), 1);
}

static KEVENT_RING_STORAGE(8) ring;

static int open_fallback(void)
{
	return kevent_init(&ring.ring, 8, KEVENT_INIT_FALLBACK_ONLY);
}

static void number_comes_back_from_the_kernel(void)
{
	int fd;

	fake_kernel = both_kinds;
	fd = open_fallback();
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(kevent_init(NULL, 0, 0), fd);
	asked = 0;
	check_kernel_queue(fd);
	/* The old queue is gone, so nobody has to ask for it. */
	CHECK_EQ(asked, 0);
	CHECK_EQ(ring.ring.ring_uidx, 0);
}

static void old_number_is_a_queue_of_the_kernel(void)
{
	in_child(number_comes_back_from_the_kernel);
}

static void kinds_side_by_side(void)
{
	int fd, i;

	fake_kernel = both_kinds;
	for (i = 0; i < 8; i++)
		CHECK(open_fallback() >= 0);
	fd = kevent_init(NULL, 0, 0);
	asked = 0;
	check_kernel_queue(fd);
	CHECK_EQ(asked, 0);
}

static void queue_of_the_kernel_asks_no_queue_of_the_fallback(void)
{
	in_child(kinds_side_by_side);
}

static void init_fails(void)
{
	fake_kernel = both_kinds;
	no_eventfd = true;
	CHECK_EQ(open_fallback(), -EMFILE);
	CHECK_EQ(asked_closed, 0);
}

static void failed_init_asks_no_closed_number(void)
{
	in_child(init_fails);
}

static int call_get(int fd)
{
	struct ukevent ev;

	return kevent_get_events(fd, 1, 1, &at_once, &ev, 0);
}

static int call_wait(int fd)
{
	return kevent_wait(fd, 1, 0, &at_once, 0, NULL);
}

static int call_serve(int fd)
{
	return kevent_wait(fd, 1, 0, &at_once, KEVENT_FLAGS_SERVE, NULL);
}

static int call_ctl(int fd)
{
	struct ukevent ev = { .id.raw_u64 = 0 };

	return kevent_ctl(fd, KEVENT_CTL_ADD, 1, &ev);
}

static int call_commit(int fd)
{
	return kevent_commit(fd, 0, 0);
}

/* Each is the first call that sees what the number has become. */
static int (*const first_call[])(int fd) = {
	call_get, call_wait, call_serve, call_ctl, call_commit,
};

static void number_comes_back_unseen(void)
{
	int fd, other;
	size_t i;

	fake_kernel = both_kinds;
	close(kevent_init(NULL, 0, 0));
	for (i = 0; i < ARRAY_SIZE(first_call); i++) {
		fd = open_fallback();
		CHECK(fd >= 0);
		close(fd);
		/* As a queue that another process has sent */
		other = (int)open_any(false);
		CHECK_EQ(other, fd);
		CHECK_EQ(first_call[i](fd), 1);
		check_kernel_queue(fd);
		CHECK_EQ(ring.ring.ring_uidx, 0);
		close(fd);
	}
}

static void old_number_is_a_queue_from_elsewhere(void)
{
	in_child(number_comes_back_unseen);
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
	{ "old_number_is_a_queue_of_the_kernel",
	  old_number_is_a_queue_of_the_kernel },
	{ "queue_of_the_kernel_asks_no_queue_of_the_fallback",
	  queue_of_the_kernel_asks_no_queue_of_the_fallback },
	{ "failed_init_asks_no_closed_number", failed_init_asks_no_closed_number },
	{ "old_number_is_a_queue_from_elsewhere",
	  old_number_is_a_queue_from_elsewhere },
	{ NULL, NULL },
};
