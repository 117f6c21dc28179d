// SPDX-License-Identifier: GPL-2.0
/*
 * Runs every test and prints KTAP. The first argument is the number of events
 * the tests with threads pass on, the second the number of seconds after which
 * a test counts as hanging.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "test.h"

static const struct test_case *const suites[] = {
	kernel_tests, device_tests, call_tests, async_tests, watch_tests, ring_tests,
	step_tests, queue_tests, event_tests, look_tests, cxx_tests,
};

unsigned int test_events = 2000000;
static unsigned int watchdog_seconds = 120;
long (*fake_kernel)(const struct fake_call *call);
struct fake_proc fake_proc = {
	.sysctl = true, .links = true, .link = "anon_inode:[kevent]",
};

long (*fake_device)(const struct fake_call *call);
struct fake_touched fake_touched;

static atomic_bool failed;

void test_check_eq(long long got, long long want, const char *what,
		   const char *file, int line)
{
	if (got == want)
		return;
	printf("# %s:%d: %s: got %lld, want %lld\n", file, line, what, got,
	       want);
	failed = true;
}

int test_failed(void)
{
	return failed;
}

static long find_path(const char *path)
{
	bool there = !strcmp(path, "/proc/sys/kernel/kevent_disabled") ? fake_proc.sysctl :
		     !strcmp(path, KEVENT_DEVICE) ? fake_proc.device : fake_proc.links;

	return there ? 0 : -ENOENT;
}

static long read_link(const struct fake_call *call)
{
	bool fd = strcmp((const char *)call->arg[1], "/proc/thread-self") != 0;
	const char *link = !fake_proc.links ? "" : !fd ? "1/task/1" :
			   fake_proc.link ? fake_proc.link : "";
	size_t len = strlen(link);

	if (len > (size_t)call->arg[3])
		len = (size_t)call->arg[3];
	memcpy((void *)call->arg[2], link, len);
	return len ? (long)len : -ENOENT;
}

static long ask_device(const struct fake_call *call)
{
	if (fake_device)
		return fake_device(call);
	return call->nr == SYS_openat ? -ENOENT : -ENOTTY;
}

static long answer_call(const struct fake_call *call)
{
	switch (call->nr) {
	case SYS_openat:
		if (strcmp((const char *)call->arg[1], KEVENT_DEVICE) != 0)
			return fake_kernel(call);
		/* fallthrough */
	case SYS_ioctl:
	case SYS_lseek:
		return ask_device(call);
	case SYS_madvise:
		if (call->arg[2] != 23)	/* MADV_POPULATE_WRITE */
			return fake_kernel(call);
		fake_touched.start = (unsigned long)call->arg[0];
		fake_touched.bytes = (unsigned long)call->arg[1];
		return 0;
	case SYS_faccessat:
		return find_path((const char *)call->arg[1]);
	case SYS_readlinkat:
		return read_link(call);
	default:
		return fake_kernel(call);
	}
}

long syscall(long nr, ...)
{
	struct fake_call call = { .nr = nr };
	va_list ap;
	long ret;
	int i;

	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		call.arg[i] = va_arg(ap, long);
	va_end(ap);
	ret = answer_call(&call);
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

static __u32 entry_word(__u64 nr, __u32 salt)
{
	return (__u32)((nr + salt) * 0x9e3779b97f4a7c15ULL >> 32);
}

void entry_make(struct ukevent *ev, __u64 nr)
{
	ev->id.raw_u64 = ~nr;
	ev->type = entry_word(nr, 1);
	ev->event = entry_word(nr, 2);
	ev->req_flags = entry_word(nr, 3);
	ev->ret_flags = entry_word(nr, 4);
	ev->ret_data[0] = entry_word(nr, 5);
	ev->ret_data[1] = entry_word(nr, 6);
	ev->ptr = nr;
}

int entry_intact(const struct ukevent *ev)
{
	struct ukevent want;

	entry_make(&want, ev->ptr);
	return !memcmp(&want, ev, sizeof(want));
}

void ring_store(struct kevent_ring *ring, __u32 size, __u64 nr)
{
	__u64 kidx = ring->ring_kidx;
	kevent_ring_word *slot =
		(kevent_ring_word *)&ring->event[kidx & (size - 1)];
	struct ukevent ev;
	size_t i;

	entry_make(&ev, nr);
	for (i = 0; i < sizeof(ev) / sizeof(*slot); i++)
		__atomic_store_n(&slot[i], ((kevent_ring_word *)&ev)[i],
				 __ATOMIC_RELAXED);
	__atomic_store_n(&ring->ring_kidx, kidx + 1, __ATOMIC_RELEASE);
}

static void watchdog(int sig)
{
	static const char text[] =
		"Bail out! a test hangs: a wake-up or an event got lost\n";

	(void)sig;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static int run_suite(const struct test_case *test, int *nr)
{
	int nr_failed = 0;

	for (; test->name; test++) {
		failed = false;
		alarm(watchdog_seconds);
		test->run();
		printf("%s %d - %s\n", failed ? "not ok" : "ok", ++*nr,
		       test->name);
		nr_failed += failed;
	}
	return nr_failed;
}

static int count_tests(void)
{
	const struct test_case *test;
	int nr = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(suites); i++)
		for (test = suites[i]; test->name; test++)
			nr++;
	return nr;
}

int main(int argc, char **argv)
{
	int nr_failed = 0;
	int nr = 0;
	size_t i;

	if (argc > 1)
		test_events = (unsigned int)strtoul(argv[1], NULL, 0);
	if (argc > 2)
		watchdog_seconds = (unsigned int)strtoul(argv[2], NULL, 0);
	/* Errors are those of the calls, and no reason for a fallback. */
	setenv("KEVENT_BACKEND", "kernel", 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, watchdog);
	printf("KTAP version 1\n1..%d\n", count_tests());
	for (i = 0; i < ARRAY_SIZE(suites); i++)
		nr_failed += run_suite(suites[i], &nr);
	printf("# libkevent: %d passed, %d failed\n", nr - nr_failed,
	       nr_failed);
	return nr_failed != 0;
}
