// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-tests: runs each test in a process of its own, with a time limit
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dirent.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>

#include "fallback.h"
#include "helpers.h"
#include "ktap.h"
#include "module.h"

#define DEFAULT_SECONDS	45
#define DEBUG_SLOWNESS	8
#define EXCEPTION_SECONDS 3	/* of a test that must fail, which may wait for what never comes */
#define MAX_JOBS	8
#define MAX_FAILURES	10	/* reported per test */
#define REPORT_SIZE	(1 << 16)

static const struct test_suite *const suites[] = {
	&abi_suite,
	&errors_suite,
	&ring_suite,
	&modes_suite,
	&wake_suite,
	&wait_ends_suite,
	&sleepers_suite,
	&wake_order_suite,
	&wake_all_suite,
	&left_suite,
	&looks_suite,
	&hits_suite,
	&wait_arg_suite,
	&max_running_suite,
	&max_running_members_suite,
	&handover_suite,
	&handoff_suite,
	&suspend_suite,
	&turns_suite,
	&hand_on_suite,
	&attach_suite,
	&foreign_suite,
	&rights_suite,
	&refuse_suite,
	&awake_suite,
	&tracepoints_suite,
	&lifetime_suite,
	&numbers_suite,
	&pipe_suite,
	&socket_suite,
	&empty_suite,
	&poll_suite,
	&bridges_suite,
	&user_suite,
	&inode_suite,
	&inode_deeds_suite,
	&inode_limits_suite,
	&timer_suite,
	&timer_set_suite,
	&posix_timer_suite,
	&signal_suite,
	&signal_queued_suite,
	&signal_life_suite,
	&proc_suite,
	&proc_tasks_suite,
	&futex_suite,
	&futex_lock_suite,
	&nesting_suite,
	&nested_suite,
	&nested_random_suite,
	&busy_poll_suite,
	&coalesce_suite,
	&wrappers_suite,
	&driven_suite,
	&drives_suite,
	&chain_suite,
	&chain_watch_suite,
#ifdef __LP64__
	&calls_suite,
	&aio_calls_suite,
	&aio_servers_suite,
	&nowait_suite,
	&storm_aio_suite,
	&storm_max_running_suite,
	&bound_calls_suite,
	&calls_random_suite,
	&calls_observed_suite,
	&calls_audited_suite,
#endif
	&lanes_suite,
	&storm_lanes_suite,
	&streams_suite,
	&storm_streams_suite,
	&limits_suite,
	&fuse_suite,
	&faults_suite,
	&fail_nth_suite,
	&fail_nth_calls_suite,
	&hit_faults_suite,
	&scale_suite,
	&confined_suite,
	&malformed_suite,
	&races_suite,
	&races_promises_suite,
	&races_signals_suite,
	&storm_suite,
	&storm_hits_suite,
	&storm_inode_suite,
	&soak_suite,
	&storm_timer_suite,
	&storm_posix_timer_suite,
	&storm_signal_suite,
	&storm_proc_suite,
	&worst_files_suite,
	&worst_sources_suite,
	&worst_calls_suite,
	&worst_sleepers_suite,
	&stall_suite,
	&huge_suite,
	&examples_suite,
	&trace_suite,
	&show_suite,
	&which_host_suite,
	&top_suite,
	&device_suite,
	/* The last one: it unloads the module */
	&module_suite,
};

/* What a test reports, shared between its process and the runner */
struct report {
	size_t	len;
	char	text[REPORT_SIZE];
};

struct job {
	const struct test_suite	*suite;
	const struct test_case	*test;
	struct report		*report;
	uint64_t		deadline;
	dev_t			tmp;
	pid_t			pid;
};

/* Upper limit in seconds for every test; 0: only its own limit */
static unsigned int most_seconds;
/* Whether a suite ends with the first test that fails */
static bool first_failure;
/* Suites that a run without names leaves out */
static const char *without[8];
static unsigned int nr_without;

static struct report *current_report;
static const struct test_case *current_test;

static void report_va(struct report *r, const char *fmt, va_list ap)
{
	size_t room = sizeof(r->text) - r->len;
	int len = vsnprintf(r->text + r->len, room, fmt, ap);

	if (len > 0 && (size_t)len + 1 < room) {
		r->len += len;
		r->text[r->len++] = '\n';
	}
	r->text[r->len] = '\0';
}

static void __attribute__((format(printf, 2, 3)))
report_line(struct report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_va(r, fmt, ap);
	va_end(ap);
}

void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_va(current_report, fmt, ap);
	va_end(ap);
}

static void report_failures(struct report *r)
{
	const CU_FailureRecord *f;
	unsigned int nr = 0;

	for (f = CU_get_failure_list(); f; f = f->pNext)
		if (nr++ < MAX_FAILURES)
			report_line(r, "%s:%u: %s", f->strFileName,
				    f->uiLineNumber, f->strCondition);
	if (nr > MAX_FAILURES)
		report_line(r, "and %u more", nr - MAX_FAILURES);
}

static void run_body(void)
{
	const struct test_case *test = current_test;

	if (test->run_each)
		each_queue(test->run_each);
	else if (test->run_size)
		test->run_size(test->size);
	else
		test->run();
}

/* Runs in the test's own process. */
static void run_test(struct job *job)
{
	CU_pSuite suite;
	CU_pTest test;

	setpgid(0, 0);
	/* Who is killed has no time to kill its test. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	current_report = job->report;
	current_test = job->test;
	init_flags = job->suite->init_flags;
	if (CU_initialize_registry() != CUE_SUCCESS)
		_exit(EXIT_FAILURE);
	suite = CU_add_suite(job->suite->name, NULL, NULL);
	test = CU_add_test(suite, job->test->name, run_body);
	CU_run_test(suite, test);
	report_failures(job->report);
	if (!CU_get_number_of_asserts())
		report_line(job->report, "the test checked nothing");
	_exit(CU_get_number_of_failures() || !CU_get_number_of_asserts());
}

/* What the module lacks for the test, or NULL */
static const char *exception_of(const struct test_suite *suite, const struct test_case *test)
{
	return on_module() ? module_exception(suite->name, test->name) : NULL;
}

/* The file system there, which is the same after each test */
static dev_t device_of_tmp(void)
{
	struct stat st;

	return stat("/tmp", &st) ? 0 : st.st_dev;
}

static void start_job(struct job *job, const struct test_suite *suite,
		      const struct test_case *test)
{
	unsigned int seconds = test->seconds ?: DEFAULT_SECONDS;

	if (most_seconds && seconds > most_seconds)
		seconds = most_seconds;
	if (exception_of(suite, test))
		seconds = EXCEPTION_SECONDS;
	if (suite == &module_suite)
		close_device();
	*job = (struct job){
		.suite = suite, .test = test, .tmp = device_of_tmp(),
	};
	job->report = mmap(NULL, sizeof(*job->report), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job->report == MAP_FAILED) {
		printf("Bail out! out of memory for the report of a test\n");
		exit(EXIT_FAILURE);
	}
	ktap_begin(suite->name, test->name);
	job->deadline = now_ns() + seconds * slowness * 1000000000ull +
			storm_ns();
	job->pid = fork();
	if (!job->pid)
		run_test(job);
	setpgid(job->pid, job->pid);
}

static int ms_until(uint64_t deadline)
{
	uint64_t now = now_ns();

	return now < deadline ? (deadline - now) / 1000000 + 1 : 0;
}

/* Reports where each thread of a test that hangs is. */
static void report_threads(struct job *job)
{
	char path[60], name[64], call[256], stack[2048];
	struct dirent *task;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", job->pid);
	dir = opendir(path);
	while (dir && (task = readdir(dir))) {
		if (task->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%.10s/comm", task->d_name);
		read_file(path, name, sizeof(name));
		snprintf(path, sizeof(path), "/proc/%.10s/syscall",
			 task->d_name);
		read_file(path, call, sizeof(call));
		snprintf(path, sizeof(path), "/proc/%.10s/stack",
			 task->d_name);
		read_file(path, stack, sizeof(stack));
		report_line(job->report, "thread %s: %.*s, system call %.*s",
			    task->d_name, (int)strcspn(name, "\n"), name,
			    (int)strcspn(call, "\n"), call);
		report_line(job->report, "%s", stack);
	}
	if (dir)
		closedir(dir);
}

/* Waits for the process of a test; false if it is still running. */
static bool reap(struct job *job, uint64_t deadline, int *status)
{
	int fd = pidfd_open(job->pid, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	poll(&pfd, 1, ms_until(deadline));
	if (fd >= 0)
		close(fd);
	return waitpid(job->pid, status, WNOHANG) == job->pid;
}

/* Reports the result; false if it is not the one that is expected. */
static bool report_result(const struct job *job, bool ok)
{
	const char *suite = job->suite->name, *name = job->test->name;
	const char *why = exception_of(job->suite, job->test);

	if (why && !ok) {
		ktap_exception(suite, name, why, job->report->text);
		return true;
	}
	if (why)
		report_line(job->report, "it passes, and tests/suites/module.c says that it fails: %s",
			    why);
	ktap_result(ok && !why, suite, name, job->report->text);
	return ok && !why;
}

static bool finish_job(struct job *job)
{
	const uint64_t grace = 5000000000ull;
	bool ok = false;
	int status;

	if (job->pid < 0) {
		report_line(job->report, "fork: %s", strerrorname_np(errno));
	} else if (reap(job, job->deadline, &status)) {
		ok = WIFEXITED(status) && !WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			report_line(job->report, "killed by SIG%s",
				    sigabbrev_np(WTERMSIG(status)));
		else if (WEXITSTATUS(status) > 1)
			report_line(job->report, "exit status %d",
				    WEXITSTATUS(status));
	} else {
		report_line(job->report, "not finished in time");
		report_threads(job);
		kill(-job->pid, SIGKILL);
		if (!reap(job, now_ns() + grace * slowness, &status))
			report_line(job->report, "can't be killed");
	}
	if (job->pid > 0)
		kill(-job->pid, SIGKILL);
	if (device_of_tmp() != job->tmp) {
		report_line(job->report, "something is mounted at /tmp, for all to see");
		ok = false;
	}
	ok = report_result(job, ok);
	munmap(job->report, sizeof(*job->report));
	return ok;
}

/* Are the programs that a suite runs next to this one? */
static bool has_programs(const struct test_suite *suite)
{
	if (suite == &examples_suite)
		return have_example("");
	if (suite == &trace_suite)
		return have_example("kevent-trace");
	if (suite == &show_suite)
		return have_example("kevent-show");
	return suite != &top_suite || have_example("kevent-top");
}

static bool is_without(const char *name)
{
	unsigned int i;

	for (i = 0; i < nr_without; i++)
		if (!strcmp(name, without[i]))
			return true;
	return false;
}

/* Selection: no argument, "suite" or "suite.test" */
static bool selected(const struct test_suite *suite,
		     const struct test_case *test, char *const *args)
{
	char name[128];

	if (!*args)
		return !suite->only_by_name && has_programs(suite) &&
		       !is_without(suite->name);
	snprintf(name, sizeof(name), "%s.%s", suite->name, test->name);
	for (; *args; args++)
		if (!strcmp(*args, suite->name) || !strcmp(*args, name))
			return true;
	return false;
}

/* Selected, and not left out */
static bool runs(const struct test_suite *suite, const struct test_case *test,
		 char *const *args)
{
	return selected(suite, test, args) &&
	       !left_out(suite->name, test->name);
}

static void run_suite(const struct test_suite *suite, char *const *args)
{
	unsigned int jobs = suite->jobs ?: 1, running = 0, i;
	const struct test_case *test = suite->cases;
	struct job job[MAX_JOBS];
	bool go_on = true;

	while (test->name && go_on) {
		for (; test->name && running < jobs; test++)
			if (runs(suite, test, args))
				start_job(&job[running++], suite, test);
		for (i = 0; i < running; i++)
			if (!finish_job(&job[i]) && first_failure)
				go_on = false;
		running = 0;
	}
}

/* Counts the selected tests; with @list it also prints their names. */
static unsigned int count_tests(char *const *args, bool list)
{
	const struct test_case *test;
	unsigned int i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (test = suites[i]->cases; test->name; test++) {
			if (!runs(suites[i], test, args))
				continue;
			if (list)
				printf("%s.%s\n", suites[i]->name, test->name);
			nr++;
		}
	}
	return nr;
}

static bool is_known(const char *name)
{
	char *const args[] = { (char *)name, NULL };
	const struct test_case *test;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(suites); i++)
		for (test = suites[i]->cases; test->name; test++)
			if (selected(suites[i], test, args))
				return true;
	return false;
}

static void say_what_is_left_out(char *const *args)
{
	const struct test_case *test;
	const char *reason, *why;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (test = suites[i]->cases; test->name; test++) {
			if (!selected(suites[i], test, args))
				continue;
			reason = left_out(suites[i]->name, test->name);
			if (!reason)
				continue;
			why = exception_of(suites[i], test);
			ktap_left_out(suites[i]->name, test->name, reason,
				      why ?: why_left_out(reason));
		}
	}
}

static void set_slowness(void)
{
	const char *given = getenv("KEVENT_TEST_SLOW");

	if (given)
		slowness = atoi(given);
	else if (!strcmp(kconfig, "debug"))
		slowness = DEBUG_SLOWNESS;
	if (!slowness)
		slowness = 1;
}

static void __attribute__((noreturn)) usage(int status)
{
	printf("usage: kevent-tests [OPTION]... [SUITE[.TEST]]...\n"
	       "  --list          print the names of the tests\n"
	       "  --first-failure end each suite with its first failure\n"
	       "  --without SUITE leave a suite out, if none is named\n"
	       "  --seconds N     no time limit of a test is longer\n"
	       "  --kconfig NAME  the kernel is of this configuration; debug\n"
	       "                  makes time limits %u times longer\n"
	       "In the environment:\n"
	       "  KEVENT_TEST_MACHINE=1   the machine is for these tests, which set\n"
	       "                          its clock and its limits, fill its memory,\n"
	       "                          and so on; tests/vm/init.c says it\n"
	       "  KEVENT_TEST_SLOW=N      time limits are N times longer\n"
	       "  KEVENT_TEST_SEED=N      repeat a random run\n"
	       "  KEVENT_STORM_SECONDS=N  each storm lasts N seconds, and each\n"
	       "                          test may take N seconds longer\n"
	       "  KEVENT_LANE_KILLS=N     kill each side of a lane N times\n"
	       "  KEVENT_RACES=WORDS, KEVENT_RACES_DELAYS=WORDS\n"
	       "                          see tests/suites/common/races.h\n",
	       DEBUG_SLOWNESS);
	exit(status);
}

/*
 * This may be somebody's machine: tests must not set its clock, among other things.
 */
static void give_up_rights(void)
{
	static const int rights[] = {
		CAP_SYS_TIME, CAP_SYS_BOOT, CAP_SYS_MODULE, CAP_SYS_RAWIO,
	};
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	unsigned int i;

	if (syscall(SYS_capget, &hdr, data))
		exit(EXIT_FAILURE);
	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		prctl(PR_CAPBSET_DROP, rights[i], 0, 0, 0);
		data[CAP_TO_INDEX(rights[i])].permitted &=
			~CAP_TO_MASK(rights[i]);
		data[CAP_TO_INDEX(rights[i])].effective &=
			~CAP_TO_MASK(rights[i]);
	}
	if (syscall(SYS_capset, &hdr, data))
		exit(EXIT_FAILURE);
}

static unsigned int run_all(char *const *args)
{
	unsigned int nr = count_tests(args, false), i;
	int ret = on_fallback() ? 0 : kevent_supported();
	const char *nothing = NULL;

	/* With 32 bits there are fewer suites. */
	if (on_module() && sizeof(long) == 8)
		nothing = module_exception_of_nothing(is_known);
	if (nothing) {
		printf("Bail out! tests/suites/module.c has %s, which is no test\n", nothing);
		return 1;
	}
	if (!nr) {
		printf("Bail out! no such test; --list prints all names\n");
		return 1;
	}
	if (ret) {
		printf("Bail out! no kevent here (%s); boot a kernel that has "
		       "it with tests/vm/run\n", strerrorname_np(-ret));
		return 1;
	}
	if (!own_machine() && !on_fallback()) {
		printf("Bail out! this may be somebody's machine, whose clock and limits "
		       "tests change; see KEVENT_TEST_MACHINE in --help\n");
		return 1;
	}
	if (!own_machine())
		give_up_rights();
	ktap_plan(nr);
	say_what_is_left_out(args);
	for (i = 0; i < ARRAY_SIZE(suites); i++)
		run_suite(suites[i], args);
	return ktap_end();
}

/* See exec_and_run(). */
static void run_for_ever(void)
{
	/* No test runs in this process. */
	if (write(STDOUT_FILENO, "", 1) != 1)
		exit(EXIT_FAILURE);
	for (;;)
		;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "list", no_argument, NULL, 'l' },
		{ "first-failure", no_argument, NULL, 'f' },
		{ "without", required_argument, NULL, 'w' },
		{ "seconds", required_argument, NULL, 's' },
		{ "kconfig", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	bool list = false;
	int opt;

	/* Where kevent is, a queue that it refuses must not become one of epoll. */
	if (!on_fallback())
		setenv("KEVENT_BACKEND", "kernel", 1);
	on_module();
	if (argc > 1 && !strcmp(argv[1], "--end"))
		return 0;
	if (argc > 1 && !strcmp(argv[1], "--run"))
		run_for_ever();
	if (argc > 1 && !strcmp(argv[1], "--after-exec"))
		return after_exec(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "--after-exec-attached"))
		return after_exec_attached(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "--signals-after-exec"))
		return signals_after_exec(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "--races-after-exec"))
		return races_after_exec(argc, argv);
#ifdef __LP64__
	if (argc > 1 && !strcmp(argv[1], "--bound"))
		return bound_after_exec(argc, argv);
#endif
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'l')
			list = true;
		else if (opt == 'f')
			first_failure = true;
		else if (opt == 'w' && nr_without < ARRAY_SIZE(without))
			without[nr_without++] = optarg;
		else if (opt == 's')
			most_seconds = atoi(optarg);
		else if (opt == 'k')
			kconfig = optarg;
		else
			usage(opt == 'h' ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	set_slowness();
	if (list)
		return !count_tests(argv + optind, true);
	return run_all(argv + optind) ? EXIT_FAILURE : EXIT_SUCCESS;
}
