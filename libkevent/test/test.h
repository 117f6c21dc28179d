/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test cases, checks and the stand-in for the kernel
 */
#ifndef LIBKEVENT_TEST_H
#define LIBKEVENT_TEST_H

#include <libkevent.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

struct test_case {
	const char *name;
	void (*run)(void);
};

extern const struct test_case kernel_tests[], device_tests[], call_tests[], async_tests[],
			      watch_tests[], ring_tests[], step_tests[], queue_tests[],
			      event_tests[], look_tests[], cxx_tests[];

/* How many events the tests with threads pass on */
extern unsigned int test_events;

void test_check_eq(long long got, long long want, const char *what,
		   const char *file, int line);

/* Has a check failed in this test? */
int test_failed(void);

#define CHECK_EQ(got, want) \
	test_check_eq((long long)(got), (long long)(want), #got " == " #want, \
		      __FILE__, __LINE__)
#define CHECK(cond)	CHECK_EQ(!!(cond), 1)

/*
 * The tests replace syscall() of the C library. fake_kernel() answers each
 * call, with a negative errno for a failure.
 */
struct fake_call {
	long nr;
	long arg[6];
};

extern long (*fake_kernel)(const struct fake_call *call);

/* Which files there are, which fake_kernel() is not asked: with a link for all descriptors */
struct fake_proc {
	int		sysctl;
	int		device;
	int		links;
	const char	*link;
};

extern struct fake_proc fake_proc;

/*
 * Answers an openat() of /dev/kevent, and all ioctls and lseeks by syscall(). NULL: there is
 * no such device.
 */
extern long (*fake_device)(const struct fake_call *call);

/* The memory that the library has asked to be touched */
struct fake_touched {
	unsigned long	start;
	unsigned long	bytes;
};

extern struct fake_touched fake_touched;

/* An entry all fields of which follow from @nr, and the reverse */
void entry_make(struct ukevent *ev, __u64 nr);
int entry_intact(const struct ukevent *ev);

/* Store an entry as the kernel does; there has to be room. */
void ring_store(struct kevent_ring *ring, __u32 size, __u64 nr);

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_TEST_H */
