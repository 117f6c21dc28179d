/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Tests that run in a process each, which has its time
 *
 * A program defines its tests with TEST(), and calls run_tests() once.
 */
#ifndef TEST_PROCESSES_H
#define TEST_PROCESSES_H

#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define SECONDS		20U	/* that a test, or a round of one, may take */

struct test {
	const char	*name;
	void		(*run)(void);
};

#define TEST(fn)	{ #fn, fn }

/* ThreadSanitizer has signals wait for a call that it knows, and ends faults by itself. */
#ifdef __SANITIZE_THREAD__
#define SIGNALS_ARE_HELD	1
#else
#define SIGNALS_ARE_HELD	0
#endif

static int failed;

static void check_eq(long long got, long long want, const char *what, int line)
{
	if (got == want)
		return;
	printf("# line %d: %s: got %lld, want %lld\n", line, what, got, want);
	failed = 1;
}

#define CHECK_EQ(got, want) \
	check_eq((long long)(got), (long long)(want), #got, __LINE__)
#define CHECK(cond)	CHECK_EQ(!!(cond), 1)
#define FAIL(what)	check_eq(0, 1, what, __LINE__)

/* The time begins anew. A test of many rounds is no matter of how fast a machine is. */
static inline void next_round(void)
{
	alarm(SECONDS);
}

/*
 * While another thread has to do something. Where more threads run than there are CPUs, one that
 * yields again and again does not run for seconds, also when it is its turn.
 */
static inline void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

static int run_test(const struct test *test)
{
	int status = 1;

	fflush(stdout);
	if (!fork()) {
		alarm(SECONDS);
		test->run();
		fflush(stdout);
		_exit(failed);
	}
	wait(&status);
	return status;
}

/* Run the tests. Returns the result of main(); names of results begin with @name. */
static int run_tests(const char *name, const struct test *tests, size_t nr)
{
	int bad, result = 0;
	size_t i;

	printf("KTAP version 1\n1..%zu\n", nr);
	for (i = 0; i < nr; i++) {
		bad = run_test(&tests[i]) != 0;
		printf("%sok %zu - %s.%s\n", bad ? "not " : "", i + 1, name,
		       tests[i].name);
		result |= bad;
	}
	return result;
}

#endif /* TEST_PROCESSES_H */
