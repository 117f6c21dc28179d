// SPDX-License-Identifier: GPL-2.0
/*
 * usage: libuv_checks
 *
 * What libuv's own tests cannot see of its event loop, each in a process of its own.
 * Prints lines as those do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/ukevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			printf("# line %d: %s\n", __LINE__, #condition);	\
			exit(1);					\
		}							\
	} while (0)

static int writer = -1, events;

static void write_once(void)
{
	if (writer == -1)
		return;
	CHECK(write(writer, "x", 1) == 1);
	writer = -1;
}

/* Stands before that of libkevent: what is added becomes ready before the next call. */
int kevent_ctl(int fd, __u32 cmd, __u32 nr, struct ukevent *ev)
{
	int (*next)(int, __u32, __u32, struct ukevent *) =
		dlsym(RTLD_NEXT, "kevent_ctl");
	int ret = next(fd, cmd, nr, ev);

	if (cmd == KEVENT_CTL_ADD)
		write_once();
	return ret;
}

static void on_data(uv_poll_t *poll, int status, int what)
{
	CHECK(status == 0 && what == UV_READABLE);
	events++;
	uv_poll_stop(poll);
}

static void on_idle(uv_idle_t *idle)
{
	uv_idle_stop(idle);
}

/* The descriptor is beyond those that the loop has a place for. */
static void a_file_that_is_ready_in_uv_poll_init(void)
{
	uv_poll_t poll;
	uv_idle_t idle;
	uv_loop_t loop;
	int p[2], fd;

	CHECK(!uv_loop_init(&loop) && !pipe(p));
	fd = fcntl(p[0], F_DUPFD, 500);
	CHECK(fd >= 500);
	CHECK(!uv_idle_init(&loop, &idle) && !uv_idle_start(&idle, on_idle));
	writer = p[1];
	CHECK(!uv_poll_init(&loop, &poll, fd));
	write_once();
	uv_run(&loop, UV_RUN_NOWAIT);
	CHECK(!uv_poll_start(&poll, UV_READABLE, on_data));
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK(events == 1);
}

/* Not the first one: libkevent keeps the device of the module. */
static void a_loop_leaves_no_descriptor(void)
{
	uv_loop_t loop;
	int first, fd;

	CHECK(!uv_loop_init(&loop) && !uv_loop_close(&loop));
	first = dup(0);
	close(first);
	CHECK(!uv_loop_init(&loop) && !uv_loop_close(&loop));
	uv_library_shutdown();
	for (fd = first; fd < first + 64; fd++)
		CHECK(fcntl(fd, F_GETFD) == -1);
}

/* libkevent then uses epoll. */
static void a_loop_on_the_fallback_leaves_no_descriptor(void)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	a_loop_leaves_no_descriptor();
}

static int passes(void (*test)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		test();
		exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

#define TEST(name) { #name, name }

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		TEST(a_file_that_is_ready_in_uv_poll_init),
		TEST(a_loop_leaves_no_descriptor),
		TEST(a_loop_on_the_fallback_leaves_no_descriptor),
	};
	unsigned int i;
	int failed = 0;

	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		int ok = passes(tests[i].run);

		printf("%sok %u - %s\n", ok ? "" : "not ", i + 1, tests[i].name);
		failed |= !ok;
	}
	return failed;
}
