// SPDX-License-Identifier: GPL-2.0
/*
 * Programs at random from a description of system calls, each in a process of its own
 *
 * usage: kevent-describe [--seed N] [--seconds S] [--from P]
 *	  kevent-describe --seed N --program P [--only BITS[,BITS]...] [--times N]
 *	  kevent-describe --seed N --program P --shape
 *
 * Prints its seed, now and then how far it is, and at the end counts: a line for each
 * call and errno with the first program that had it, and one for each kind of entry. With
 * --program it runs one program, and prints its calls unless it runs it several times;
 * --only has a bit for each call of each thread. --shape prints how many calls each
 * thread has, and makes none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/ukevent.h>

#include "execute.h"
#include "raw_syscall.h"

#define THREADS		3
#define MOST_CALLS	40
#define PROGRAM_MS	200
#define QUIET_MS	8	/* then all calls that are left sleep, and are killed */
#define SHOWN_SLOWNESS	250	/* a program that is shown is to get to its end */
#define LINE_SECONDS	5
#define ADD_TIMES	6
#define OURS	6	/* calls of kevent.txt: of 10 */

enum { SEED, SECONDS, FROM, PROGRAM, TIMES, SHAPE, NR_OPTIONS, ONLY };

struct counts *counts;

static struct {
	uint64_t	seed;
	const uint64_t	*only;
	unsigned int	nr_threads;
	unsigned int	begun;
	unsigned int	ended;
	bool		show;
} program;

static unsigned int ours[MAX_CALLS], nr_ours;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

/* splitmix64; never 0 */
static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) | 1;
}

/* Calls */

/* The kernel has errnos that are for itself, and no library has a name for them. */
static const char *errno_name(unsigned int err)
{
	static _Thread_local char number[12];
	const char *name = err ? strerrorname_np(err) : "0";

	if (name)
		return name;
	snprintf(number, sizeof(number), "%u", err);
	return number;
}

static void count_errno(const struct call *call, unsigned int err)
{
	unsigned int i = call - calls;

	if (!__atomic_fetch_add(&counts->errnos[i][err], 1, __ATOMIC_RELAXED))
		counts->first[i][err] = counts->program;
}

static void show_call(struct thread *t, const struct call *call,
		      const uint64_t *args)
{
	char text[256];
	unsigned int i;
	int at;

	at = snprintf(text, sizeof(text), "%u: %s(", t->number, call->name);
	for (i = 0; i < call->nr; i++)
		at += snprintf(text + at, sizeof(text) - at, "%s%s %#llx",
			       i ? ", " : "", call->args[i].name,
			       (unsigned long long)args[i]);
	dprintf(1, "%s)\n", text);
}

static void count_events(const struct call *call, long ret)
{
	if (ret > 0 && (call->number == __NR_kevent_wait ||
			call->number == __NR_kevent_get_events))
		__atomic_fetch_add(&counts->events, 1, __ATOMIC_RELAXED);
}

/* A call that adds one watch tells of what kind the description has made one. */
static void count_added(struct thread *t, const struct call *call,
			const uint64_t *args, long ret)
{
	if (!strcmp(call->name, "kevent_ctl$ADD") && !ret && args[2] == 1 &&
	    args[1] == KEVENT_CTL_ADD)
		__atomic_fetch_add(&counts->added[t->option], 1,
				   __ATOMIC_RELAXED);
}

static void make_call(struct thread *t, const struct call *call)
{
	uint64_t a[MAX_ARGS] = {};
	long ret;
	int err;

	make_args(t, call, a);
	if (t->show)
		show_call(t, call, a);
	ret = syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
	err = ret < 0 ? errno : 0;
	if (t->show)
		dprintf(1, "%u: = %ld %s\n", t->number, ret,
			err ? errno_name(err) : "");
	count_errno(call, err);
	__atomic_fetch_add(&counts->calls, 1, __ATOMIC_RELAXED);
	count_added(t, call, a, ret);
	count_events(call, ret);
	take_results(call, a, ret);
}

static bool makes(const struct call *call, uint32_t own)
{
	unsigned int i, j;

	if (call->own & own)
		return true;
	for (i = 0; i < call->nr; i++) {
		const struct type *type = call->args[i].type;

		if (type->kind != PTR || !type->out)
			continue;
		if (type->elem->kind == RESOURCE && type->elem->own & own)
			return true;
		for (j = 0; type->elem->kind == STRUCT && j < type->elem->nr; j++)
			if (type->elem->members[j].type->own & own)
				return true;
	}
	return false;
}

void make_resource(struct thread *t, uint32_t own)
{
	unsigned int i, from = below(t, nr_calls);

	for (i = 0; i < nr_calls; i++) {
		const struct call *call = &calls[(from + i) % nr_calls];

		if (makes(call, own) && call->number != __NR_dup) {
			make_call(t, call);
			return;
		}
	}
}

static const struct call *any_call(struct thread *t)
{
	if (below(t, 10) < OURS)
		return &calls[ours[below(t, nr_ours)]];
	return &calls[below(t, nr_calls)];
}

/* Programs */

/* From here on, two processes make the calls of a thread. */
static void make_process(void)
{
	pid_t pid = fork();
	unsigned int i;

	for (i = 0; i < nr_calls && pid > 0; i++)
		if (calls[i].number == __NR_getpid)
			add_result(calls[i].bits, pid);
}

static unsigned int threads_of(uint64_t seed)
{
	return 1 + mix(seed, 2000) % THREADS;
}

static unsigned int calls_of(struct thread *t, uint64_t seed)
{
	t->rnd = mix(seed, 1000);
	return 1 + below(t, MOST_CALLS);
}

/* Each call has its own numbers, so leaving one out changes no other. */
static void *run_thread(void *data)
{
	struct thread *t = data;
	uint64_t seed = mix(program.seed, t->number);
	unsigned int nr = calls_of(t, seed), fork_at, i;

	__atomic_fetch_add(&program.begun, 1, __ATOMIC_RELAXED);
	fork_at = t->number || below(t, 3) ? nr : below(t, nr);
	for (i = 0; i < nr; i++) {
		t->rnd = mix(seed, i);
		if (program.only && !(program.only[t->number] & 1ull << i))
			continue;
		if (i == fork_at)
			make_process();
		make_call(t, any_call(t));
	}
	__atomic_fetch_add(&program.ended, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void prepare(void)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	store_reset();
}

/* The end of a program is also an end of calls that sleep. */
static void wait_for_end(void)
{
	const unsigned int slowness = program.show ? SHOWN_SLOWNESS : 1;
	uint64_t now = now_ms(), end = now + PROGRAM_MS * slowness;
	uint64_t changed = now, made = 0;

	while (__atomic_load_n(&program.ended, __ATOMIC_RELAXED) <
	       program.nr_threads && now < end &&
	       now < changed + QUIET_MS * slowness) {
		usleep(500);
		now = now_ms();
		if (made != counts->calls ||
		    __atomic_load_n(&program.begun, __ATOMIC_RELAXED) <
		    program.nr_threads)
			changed = now;
		made = counts->calls;
	}
}

void run_program(uint64_t seed, bool show, const uint64_t *only)
{
	static struct thread threads[THREADS];
	pthread_t thread;
	unsigned int i;

	program.seed = seed;
	program.only = only;
	program.show = show;
	program.nr_threads = threads_of(seed);
	prepare();
	for (i = 0; i < program.nr_threads; i++) {
		threads[i] = (struct thread){ .number = i, .show = show };
		if (pthread_create(&thread, NULL, run_thread, &threads[i]))
			abort();
	}
	wait_for_end();
	_Exit(0);
}

/* Another signal may be one that the program sent, or asked a timer for. */
static bool died_of_itself(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS ||
	       WTERMSIG(status) == SIGABRT;
}

/* What a program has left behind ends before the next one starts. */
static bool run_child(uint64_t seed, bool show, const uint64_t *only)
{
	pid_t pid = fork();
	int status;

	if (pid < 0) {
		fprintf(stderr, "kevent-describe: fork: %s\n", strerror(errno));
		return false;
	}
	if (!pid)
		run_program(seed, show, only);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	counts->programs++;
	counts->died += died_of_itself(status);
	return true;
}

static void show_counts(void)
{
	unsigned int i, e;

	for (i = 0; i < nr_calls; i++)
		for (e = 0; e < MAX_ERRNO; e++)
			if (counts->errnos[i][e])
				printf("errno %s %s %llu %llu\n", calls[i].name,
				       errno_name(e), (unsigned long long)
				       counts->errnos[i][e],
				       (unsigned long long)counts->first[i][e]);
	printf("events %llu\n", (unsigned long long)counts->events);
	printf("died %llu\n", (unsigned long long)counts->died);
	for (i = 0; i < MAX_OPTIONS; i++)
		printf("added %u %llu\n", i,
		       (unsigned long long)counts->added[i]);
}

static void show_progress(uint64_t seed)
{
	printf("seed %llu: %llu programs, %llu calls\n",
	       (unsigned long long)seed, (unsigned long long)counts->programs,
	       (unsigned long long)counts->calls);
	fflush(stdout);
}

/* Has the kernel's log tell which program made a report; it takes one write. */
static void log_program(int log, uint64_t number)
{
	char text[64];
	int size = snprintf(text, sizeof(text),
			    "<6>kevent-describe: program %llu\n",
			    (unsigned long long)number);

	if (log >= 0 && write(log, text, size) < 0)
		perror("kevent-describe: /dev/kmsg");
}

static int run_all(uint64_t seed, uint64_t seconds, uint64_t i)
{
	int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	uint64_t start = now_ms(), line = start;

	show_progress(seed);
	for (; now_ms() < start + seconds * 1000; i++) {
		log_program(log, i);
		counts->program = i;
		if (!run_child(mix(seed, i), false, NULL))
			return 1;
		if (now_ms() < line + LINE_SECONDS * 1000)
			continue;
		line = now_ms();
		show_progress(seed);
	}
	show_progress(seed);
	show_counts();
	return 0;
}

/* Its threads do not do the same each time. */
static int run_one(uint64_t seed, const uint64_t *only, uint64_t times)
{
	uint64_t i;

	for (i = 0; i < times; i++)
		if (!run_child(seed, times == 1, only))
			return 1;
	show_counts();
	return 0;
}

static int show_shape(uint64_t seed)
{
	struct thread t;
	unsigned int i;

	for (i = 0; i < threads_of(seed); i++)
		printf("%u\n", calls_of(&t, mix(seed, i)));
	return 0;
}

/* Watches are what the other calls are about. */
static unsigned int times(const struct call *call)
{
	return strcmp(call->name, "kevent_ctl$ADD") ? 1 : ADD_TIMES;
}

static void find_ours(void)
{
	unsigned int i, n;

	for (i = 0; i < nr_calls; i++)
		for (n = 0; calls[i].ours && n < times(&calls[i]); n++)
			ours[nr_ours++] = i;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: kevent-describe [--seed N] [--seconds S] [--from P]\n"
		"       kevent-describe --seed N --program P [--only BITS[,BITS]...] [--times N]\n"
		"       kevent-describe --seed N --program P --shape\n");
	return 2;
}

/* A thread for which there are no bits makes no call. */
static void read_only(uint64_t *only, char *text)
{
	unsigned int i;

	for (i = 0; i < THREADS && *text; i++) {
		only[i] = strtoull(text, &text, 0);
		text += *text == ',';
	}
}

static bool prepare_folder(void)
{
	return (!mkdir("/tmp", 0777) || errno == EEXIST) && !chdir("/tmp");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, SEED },
		{ "seconds", required_argument, NULL, SECONDS },
		{ "from", required_argument, NULL, FROM },
		{ "program", required_argument, NULL, PROGRAM },
		{ "only", required_argument, NULL, ONLY },
		{ "times", required_argument, NULL, TIMES },
		{ "shape", no_argument, NULL, SHAPE },
		{ NULL }
	};
	uint64_t value[NR_OPTIONS] = { [SEED] = time(NULL), [SECONDS] = 10,
				       [PROGRAM] = -1, [TIMES] = 1 };
	uint64_t bits[THREADS] = {}, *only = NULL, seed;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == '?')
			return usage();
		if (option == ONLY)
			read_only(only = bits, optarg);
		else
			value[option] = optarg ? strtoull(optarg, NULL, 0) : 1;
	}
	seed = mix(value[SEED], value[PROGRAM]);
	if (value[SHAPE])
		return show_shape(seed);
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED || nr_calls > MAX_CALLS || !prepare_folder())
		return 1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	find_ours();
	if (value[PROGRAM] == (uint64_t)-1)
		return run_all(value[SEED], value[SECONDS], value[FROM]);
	counts->program = value[PROGRAM];
	return run_one(seed, only, value[TIMES]);
}
