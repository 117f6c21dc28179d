// SPDX-License-Identifier: GPL-2.0
/* kevent-show --host: what a program gets here, and why */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers.h"
#include "tool.h"

static struct tool tool;

static void ask(int (*before)(void))
{
	tool = (struct tool){ .name = "kevent-show", .args = { "--host" }, .before = before };
	run_tool(&tool);
}

static void it_says_what_programs_get(void)
{
	struct queue q;
	__u32 types;

	open_queue(&q, 0);
	types = kevent_types(q.fd);
	ask(NULL);
	CHECK_EQ(tool.status, 0);
	check_said(&tool, "host: %s", kevent_backend(q.fd));
	check_said(&tool, "why: ?*");
	check_said(&tool, "types: SOCKET INODE TIMER POLL *");
	check_said(&tool, types & KEVENT_TYPE(KEVENT_FUTEX) ? "types:* FUTEX*" : "lacks:* FUTEX*");
	check_said(&tool, types & KEVENT_TYPE(KEVENT_BOUND) ? "types:* BOUND" : "lacks:* BOUND");
	close_queue(&q);
}

static int without_a_choice(void)
{
	return unsetenv("KEVENT_BACKEND");
}

static int nobody_without_a_choice(void)
{
	return without_a_choice() || become_nobody();
}

static int hidden_without_a_choice(void)
{
	return without_a_choice() || hide_kevent();
}

/* Where kevent is, but not for this user, or not in this container */
static void it_says_why_not_the_kernel(void)
{
	if (on_module())
		MUST_EQ(chmod(KEVENT_DEVICE, 0660), 0);
	ask(nobody_without_a_choice);
	CHECK_EQ(tool.status, 0);
	/* The others have the module, whatever the tests ask for. */
	if (on_fallback() && !access(KEVENT_DEVICE, F_OK))
		return;
	if (on_module()) {
		MUST_EQ(chmod(KEVENT_DEVICE, 0666), 0);
		check_said(&tool, "host: epoll");
		check_said(&tool, "why: /dev/kevent may not be opened: join the group kevent");
	} else {
		check_said(&tool, "host: kevent");
	}
	ask(hidden_without_a_choice);
	CHECK_EQ(tool.status, 0);
	check_said(&tool, "host: epoll");
	check_said(&tool, "why: the kernel has no kevent, and there is no device /dev/kevent");
	ask(hide_kevent);
	if (on_fallback()) {
		CHECK_EQ(tool.status, 0);
		check_said(&tool, "asked: KEVENT_BACKEND=epoll");
		check_said(&tool, "host: epoll");
		return;
	}
	CHECK_EQ(tool.status, 1);
	check_said(&tool, "asked: KEVENT_BACKEND=kernel");
	check_said(&tool, "kevent-show: programs get no queue: *");
}

static void it_takes_nothing_else(void)
{
	tool = (struct tool){ .name = "kevent-show", .args = { "--host", "1" } };
	run_tool(&tool);
	CHECK_EQ(tool.status, 2);
	tool = (struct tool){ .name = "kevent-show", .args = { "--host", "-j" } };
	run_tool(&tool);
	CHECK_EQ(tool.status, 2);
}

static const struct test_case cases[] = {
	TEST(it_says_what_programs_get),
	TEST(it_says_why_not_the_kernel),
	TEST(it_takes_nothing_else),
	{}
};

const struct test_suite which_host_suite = { .name = "which_host", .cases = cases };
