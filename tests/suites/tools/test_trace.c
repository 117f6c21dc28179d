// SPDX-License-Identifier: GPL-2.0
/* kevent-trace: what it prints of programs that it starts, and of one that runs */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"
#include "tool.h"

#define OUTPUT	"/tmp/trace"

static char trace[1 << 16];

static const char *read_trace(void)
{
	int fd = open(OUTPUT, O_RDONLY);
	ssize_t len = fd < 0 ? 0 : read(fd, trace, sizeof(trace) - 1);

	trace[len > 0 ? len : 0] = 0;
	close(fd);
	return trace;
}

/* How many lines match a pattern of the shell? */
static unsigned int matches(const char *pattern)
{
	char *copy = strdup(read_trace()), *rest = copy, *line;
	unsigned int nr = 0;

	while ((line = strsep(&rest, "\n")))
		nr += fnmatch(pattern, line, 0) == 0;
	free(copy);
	return nr;
}

static void check_line(const char *pattern)
{
	if (!CHECK(matches(pattern) > 0))
		note("no line \"%s\" in:\n%s", pattern, trace);
}

static int trace_example(void *name)
{
	char *program = strdup(example(name));

	unlink(OUTPUT);
	execl(example("kevent-trace"), "kevent-trace", "-o", OUTPUT, program,
	      NULL);
	return 127;
}

static void run_traced(const char *name)
{
	CHECK_EQ(join_child(start_child(trace_example, (void *)name),
			    4 * PATIENCE_MS), 0);
}

static void requests_have_words(void)
{
	run_traced("two_pipes");
	check_line("* kevent_init(0x*, 8, 0) = *");
	check_line("* kevent_ctl(*, ADD, 2, [[]{PIPE * RECV ET user 0x61}, {PIPE * RECV ET user 0x62}]) = 0");
	run_traced("timer");
	check_line("*{TIMER 10000000 ns FIRED|INTERVAL 10000000 ns 0 user 0}*");
	check_line("* kevent_wait(*, 8, *, NULL, 0) = *");
}

static void events_have_words(void)
{
	run_traced("proc");
	check_line("* kevent_ctl(*, ADD, 1, [[]{PROC * EXIT 0 user 0}]) = 0");
	check_line("* kevent_get_events(*, 1, 1, NULL, 0) = 1 [[]{PROC *: 0x2a00 0x1 user 0}]");
	run_traced("inode");
	check_line("* = 1 [[]{INODE *: MODIFY user 0}]");
}

#ifdef __LP64__
/* A tracer sees the calls, so the kernel makes none of the chain. */
static void chains_have_calls(void)
{
	run_traced("chain");
	check_line("* kevent_call(-1, [[]*(*), *(^1, *), *(^2, *)], 3) = 0 refused: -EOPNOTSUPP");
}
#endif

/* The marks come from another thread, whose lines have its id. */
static void threads_are_traced(void)
{
	const char *mark;
	int first, second;

	run_traced("user");
	CHECK_EQ(matches("*READY, 1, [[]{USER 0x1 0x1}]) = 1"), 99);
	CHECK_EQ(matches("*READY, 1, [[]{USER 0x1 0x2}]) = 1"), 1);
	MUST_EQ(sscanf(strstr(trace, "\n") + 1, "%d", &first), 1);
	for (mark = strstr(trace, ", READY, "); mark[-1] != '\n'; mark--)
		;
	MUST_EQ(sscanf(mark, "%d", &second), 1);
	CHECK(first != second);
}

static int fail_in_two_ways(void *arg)
{
	struct ukevent ev[10];
	int kq, i;

	(void)arg;
	kevent_init(NULL, 3, 0);
	kq = kevent_init(NULL, 0, KEVENT_INIT_REFUSE(KEVENT_INODE));
	for (i = 0; i < 10; i++)
		kevent_set_pipe(&ev[i], 900, KEVENT_SOCKET_RECV, 0, i);
	kevent_ctl(kq, KEVENT_CTL_ADD, 10, ev);
	kevent_ctl(kq, KEVENT_CTL_ADD, 3, (void *)8);
	kevent_ctl(kq, 77, 1, ev);
	pause();
	return 0;
}

static int go[2];

static int wait_and_fail(void *arg)
{
	char byte;

	return read(go[0], &byte, 1) == 1 ? fail_in_two_ways(arg) : 1;
}

static int trace_pid(void *pid)
{
	char number[20];

	unlink(OUTPUT);
	snprintf(number, sizeof(number), "%d", *(pid_t *)pid);
	execl(example("kevent-trace"), "kevent-trace", "-o", OUTPUT, "-p",
	      number, NULL);
	return 127;
}

static void running_process_is_traced_and_errors_have_names(void)
{
	uint64_t start = now_ns();
	pid_t pid, tracer;

	MUST_EQ(pipe(go), 0);
	pid = start_child(wait_and_fail, NULL);
	tracer = start_child(trace_pid, &pid);
	/* It waits for the first stop: each thread was told to stop before. */
	MUST(sleeps_in(tracer, SYS_wait4));
	MUST_EQ(write(go[1], "", 1), 1);
	while (!matches("*kevent_ctl(*, 77, 1, *) = -EINVAL"))
		MUST(patient(start, 2 * PATIENCE_MS));
	check_line("*kevent_init(0, 3, 0) = -EINVAL");
	check_line("*kevent_init(0, 0, 0|REFUSE(INODE)) = *");
	check_line("*ADD, 10, [[]{PIPE 900 RECV 0 user 0}, *, ...]) = 10 [[]{PIPE 900: Bad file descriptor user *, ...]");
	check_line("*ADD, 3, [[], ...]) = -EFAULT");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(join_child(tracer, PATIENCE_MS) >= 0);
}

static void *fail_as_thread(void *arg)
{
	wait_and_fail(arg);
	return NULL;
}

static int fail_without_leader(void *arg)
{
	pthread_t thread;

	CHILD_MUST(!pthread_create(&thread, NULL, fail_as_thread, arg));
	syscall(SYS_exit, 0);
	return 1;
}

static void process_without_its_first_thread_is_traced(void)
{
	uint64_t start = now_ns();
	pid_t pid, tracer;

	MUST_EQ(pipe(go), 0);
	pid = start_child(fail_without_leader, NULL);
	while (task_state(pid) != 'Z')
		MUST(patient(start, PATIENCE_MS));
	tracer = start_child(trace_pid, &pid);
	MUST(sleeps_in(tracer, SYS_wait4));
	MUST_EQ(write(go[1], "", 1), 1);
	while (!matches("*kevent_ctl(*, 77, 1, *) = -EINVAL"))
		MUST(patient(start, 2 * PATIENCE_MS));
	kill(pid, SIGKILL);
	CHECK_EQ(join_child(tracer, PATIENCE_MS), 0);
	waitpid(pid, NULL, 0);
}

static struct tool tool;

static void run_trace(const char *const args[MAX_ARGS])
{
	tool = (struct tool){ .name = "kevent-trace" };
	memcpy(tool.args, args, sizeof(tool.args));
	run_tool(&tool);
}

#define RUN_TRACE(...)	run_trace((const char *const[MAX_ARGS]){ __VA_ARGS__ })

static int wait_for_ever(void *arg)
{
	(void)arg;
	pause();
	return 0;
}

static void process_that_is_traced_is_refused(void)
{
	pid_t pid = start_child(wait_for_ever, NULL), tracer = start_child(trace_pid, &pid);
	char number[20];

	MUST(sleeps_in(tracer, SYS_wait4));
	snprintf(number, sizeof(number), "%d", pid);
	RUN_TRACE("-p", number);
	CHECK_EQ(tool.status, 1);
	check_said(&tool, "kevent-trace: /proc/%d/task: Operation not permitted", pid);
	kill(pid, SIGKILL);
	CHECK(join_child(tracer, PATIENCE_MS) >= 0);
	waitpid(pid, NULL, 0);
}

static void numbers_that_make_no_sense_are_refused(void)
{
	static const char *const wrong[] = { "0", "-1", "x", "", "12x" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		RUN_TRACE("-p", wrong[i]);
		if (!CHECK_EQ(tool.status, 2))
			note("-p %s", wrong[i]);
		check_said(&tool, "usage: kevent-trace *");
	}
}

/* It writes a byte when it runs. */
static int trace_for_ever(void *out)
{
	static char program[4096];

	if (setpgid(0, 0) || dup2(*(int *)out, STDOUT_FILENO) < 0 ||
	    readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return 126;
	execl(example("kevent-trace"), "kevent-trace", "-o", OUTPUT, program, "--run", NULL);
	return 127;
}

/* As a terminal sends it: to both */
static void interrupt_is_left_to_the_command(void)
{
	pid_t tracer;
	int out[2];
	char byte;

	MUST_EQ(pipe(out), 0);
	tracer = start_child(trace_for_ever, &out[1]);
	close(out[1]);
	MUST_EQ(read(out[0], &byte, 1), 1);
	kill(-tracer, SIGINT);
	CHECK_EQ(join_child(tracer, PATIENCE_MS), 128 + SIGINT);
}

static void lost_lines_are_said(void)
{
	RUN_TRACE("-o", "/dev/full", strdup(example("two_pipes")));
	CHECK_EQ(tool.status, 1);
	check_said(&tool, "kevent-trace: not all lines could be written");
}

static const struct test_case cases[] = {
	TEST(requests_have_words),
	TEST(events_have_words),
#ifdef __LP64__	/* elsewhere the library does not ask the kernel */
	TEST(chains_have_calls),
#endif
	TEST(threads_are_traced),
	TEST(running_process_is_traced_and_errors_have_names),
	TEST(process_without_its_first_thread_is_traced),
	TEST(process_that_is_traced_is_refused),
	TEST(numbers_that_make_no_sense_are_refused),
	TEST(interrupt_is_left_to_the_command),
	TEST(lost_lines_are_said),
	{}
};

const struct test_suite trace_suite = {
	.name = "trace",
	.cases = cases,
};
