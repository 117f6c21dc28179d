// SPDX-License-Identifier: GPL-2.0
/*
 * units: what an instruction, a system call, a locked operation and a switch cost here
 *
 * For bench/native, which makes a model of the first ones and checks it with the others.
 * No interface takes part. What two threads or processes do is a round trip: each is
 * woken by the other, and sleeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

#define WARM_UP		2000
#define PARTS		40	/* of a run, of which the median counts */
#define ACROSS		20	/* what takes another CPU is done less often */
#define COPIED		256	/* bytes */
#define NO_CALL		4000	/* a number that no system call has */
#ifdef __x86_64__
#define ADD		"add %1, %0"
#else
#define ADD		"add %0, %0, %1"
#endif
#define THIS_CPU	0
#define OTHER_CPU	1

/**
 * struct unit - a source
 * @name: its name
 * @run: do it so many times
 * @peer: NULL, or what another thread or process does meanwhile
 * @process: @peer is a process
 * @across: @peer has another CPU
 */
struct unit {
	const char	*name;
	void (*run)(unsigned int nr);
	void (*peer)(unsigned int nr);
	bool		process;
	bool		across;
};

static int null_fd, event_fd, other_fd, epoll_fd, there[2], back[2], sock[2];

/**
 * struct turns - what both sides of a round trip see
 * @turn: whose turn it is: the number of changes so far
 * @futex: of its own, nobody waits there
 */
static struct turns {
	uint32_t	turn;
	uint32_t	futex;
} *shared;

static void check(long result, long wanted, const char *what)
{
	if (result != wanted)
		bench_die("%s: %s", what, strerror(errno));
}

/* --- the processor ------------------------------------------------------- */

/*
 * A thousand additions. Each needs the result of the one before, and takes a cycle. Some
 * processors are faster with a constant.
 */
static void run_kilocycle(unsigned int nr)
{
	unsigned long sum = 0, one = 1;

	while (nr--)
		__asm__ volatile(".rept 1000\n\t" ADD "\n\t.endr"
				 : "+r" (sum) : "r" (one));
}

static void run_locked(unsigned int nr)
{
	static unsigned int word;

	while (nr--)
		__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
}

/* As the kernel copies, where the processor is said to be fast at that */
static void run_copy(unsigned int nr)
{
	static char from[COPIED], to[COPIED];

#ifdef __x86_64__
	while (nr--) {
		const void *source = from;
		void *target = to;
		size_t left = COPIED;

		__asm__ volatile("rep movsb" : "+D" (target), "+S" (source), "+c" (left)
				 : : "memory");
	}
#else
	while (nr--) {
		memcpy(to, from, COPIED);
		__asm__ volatile("" : : : "memory");
	}
#endif
}

/* --- system calls -------------------------------------------------------- */

static void run_none(unsigned int nr)
{
	while (nr--)
		syscall(NO_CALL);
}

static void run_getcpu(unsigned int nr)
{
	while (nr--)
		syscall(SYS_getcpu, NULL, NULL, NULL);
}

/* The same, with two numbers stored in user memory */
static void run_getcpu_stores(unsigned int nr)
{
	unsigned int cpu, node;

	while (nr--)
		syscall(SYS_getcpu, &cpu, &node, NULL);
}

static void run_getppid(unsigned int nr)
{
	while (nr--)
		syscall(SYS_getppid);
}

static void run_fstat(unsigned int nr)
{
	struct stat found;

	while (nr--)
		check(syscall(SYS_fstat, null_fd, &found), 0, "fstat");
}

static void run_read(unsigned int nr)
{
	char data[64];

	while (nr--)
		check(read(null_fd, data, sizeof(data)), 0, "/dev/null");
}

static void run_stat(unsigned int nr)
{
	struct statx found;

	while (nr--)
		check(statx(AT_FDCWD, "/dev/null", 0, STATX_BASIC_STATS, &found), 0,
		      "/dev/null");
}

static void run_open(unsigned int nr)
{
	int fd;

	while (nr--) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		check(close(fd), 0, "/dev/null");
	}
}

static void run_wake(unsigned int nr)
{
	while (nr--)
		check(syscall(SYS_futex, &shared->futex, FUTEX_WAKE, 1, NULL, NULL, 0),
		      0, "futex");
}

static void run_pipe(unsigned int nr)
{
	char byte = 0;

	while (nr--) {
		check(write(there[1], &byte, 1), 1, "pipe");
		check(read(there[0], &byte, 1), 1, "pipe");
	}
}

static void run_unix(unsigned int nr)
{
	char byte = 0;

	while (nr--) {
		check(write(sock[1], &byte, 1), 1, "socket");
		check(read(sock[0], &byte, 1), 1, "socket");
	}
}

static void add_one(int fd)
{
	uint64_t one = 1;

	check(write(fd, &one, sizeof(one)), sizeof(one), "eventfd");
}

static void take_one(int fd)
{
	uint64_t value;

	check(read(fd, &value, sizeof(value)), sizeof(value), "eventfd");
}

static void run_eventfd(unsigned int nr)
{
	while (nr--) {
		add_one(event_fd);
		take_one(event_fd);
	}
}

static void await_epoll(void)
{
	struct epoll_event ev;

	check(epoll_wait(epoll_fd, &ev, 1, -1), 1, "epoll_wait");
}

static void run_epoll(unsigned int nr)
{
	while (nr--) {
		add_one(event_fd);
		await_epoll();
		take_one(event_fd);
	}
}

/* --- round trips --------------------------------------------------------- */

static void futex(int op, uint32_t value)
{
	if (syscall(SYS_futex, &shared->turn, op, value, NULL, NULL, 0) < 0 &&
	    errno != EAGAIN && errno != EINTR)
		bench_die("futex: %s", strerror(errno));
}

static void await_turn(uint32_t turn)
{
	uint32_t now;

	while ((now = __atomic_load_n(&shared->turn, __ATOMIC_ACQUIRE)) != turn)
		futex(FUTEX_WAIT, now);
}

static void give_turn(uint32_t turn)
{
	__atomic_store_n(&shared->turn, turn, __ATOMIC_RELEASE);
	futex(FUTEX_WAKE, 1);
}

static void run_futex(unsigned int nr)
{
	uint32_t turn;

	for (turn = shared->turn; nr--; turn += 2) {
		give_turn(turn + 1);
		await_turn(turn + 2);
	}
}

static void answer_futex(unsigned int nr)
{
	uint32_t turn;

	for (turn = 0; turn != 2 * nr; turn += 2) {
		await_turn(turn + 1);
		give_turn(turn + 2);
	}
}

static void run_echo(unsigned int nr)
{
	char byte = 0;

	while (nr--) {
		check(write(there[1], &byte, 1), 1, "pipe");
		check(read(back[0], &byte, 1), 1, "pipe");
	}
}

static void answer_echo(unsigned int nr)
{
	char byte;

	while (nr--) {
		check(read(there[0], &byte, 1), 1, "pipe");
		check(write(back[1], &byte, 1), 1, "pipe");
	}
}

/* The waiter of epoll is this process, the other one blocks in a read. */
static void run_epoll_echo(unsigned int nr)
{
	while (nr--) {
		add_one(other_fd);
		await_epoll();
		take_one(event_fd);
	}
}

static void answer_epoll_echo(unsigned int nr)
{
	while (nr--) {
		take_one(other_fd);
		add_one(event_fd);
	}
}

static const struct unit units[] = {
	{ .name = "kilocycle", .run = run_kilocycle },
	{ .name = "locked", .run = run_locked },
	{ .name = "copy", .run = run_copy },
	{ .name = "none", .run = run_none },
	{ .name = "getcpu", .run = run_getcpu },
	{ .name = "getcpu+2", .run = run_getcpu_stores },
	{ .name = "getppid", .run = run_getppid },
	{ .name = "fstat", .run = run_fstat },
	{ .name = "read", .run = run_read },
	{ .name = "stat", .run = run_stat },
	{ .name = "open", .run = run_open },
	{ .name = "wake", .run = run_wake },
	{ .name = "pipe", .run = run_pipe },
	{ .name = "unix", .run = run_unix },
	{ .name = "eventfd", .run = run_eventfd },
	{ .name = "epoll", .run = run_epoll },
	{ .name = "futex-thread", .run = run_futex, .peer = answer_futex },
	{ .name = "futex", .run = run_futex, .peer = answer_futex, .process = true },
	{ .name = "echo", .run = run_echo, .peer = answer_echo, .process = true },
	{ .name = "epoll-echo", .run = run_epoll_echo, .peer = answer_epoll_echo,
	  .process = true },
	{ .name = "futex-across", .run = run_futex, .peer = answer_futex,
	  .process = true, .across = true },
	{ .name = "echo-across", .run = run_echo, .peer = answer_echo,
	  .process = true, .across = true },
};

static const struct unit *unit_of(const struct bench_point *p)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(units[i].name, p->source))
			return &units[i];
	bench_die("no such source: %s", p->source);
}

/* --- measuring ----------------------------------------------------------- */

static void units_setup(const struct bench_point *p)
{
	struct epoll_event ev = { .events = EPOLLIN };

	(void)p;
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	event_fd = eventfd(0, EFD_CLOEXEC);
	other_fd = eventfd(0, EFD_CLOEXEC);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (null_fd < 0 || event_fd < 0 || other_fd < 0 || epoll_fd < 0 ||
	    pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &ev))
		bench_die("cannot open files: %s", strerror(errno));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
}

static void units_teardown(const struct bench_point *p)
{
	int i;

	(void)p;
	munmap(shared, sizeof(*shared));
	for (i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
		close(sock[i]);
	}
	close(epoll_fd);
	close(other_fd);
	close(event_fd);
	close(null_fd);
}

/*
 * A task of SCHED_BATCH that is woken waits until the other one sleeps. On another CPU it
 * is to run at once, which only root can have if other programs run there.
 */
static void choose_policy(const struct unit *u)
{
	struct sched_param param = { .sched_priority = u->across };

	if (!u->across || sched_setscheduler(0, SCHED_FIFO, &param)) {
		param.sched_priority = 0;
		check(sched_setscheduler(0, SCHED_BATCH, &param), 0,
		      "sched_setscheduler");
	}
}

/**
 * struct job - what the other side does
 * @unit: the source
 * @nr: how many round trips
 */
struct job {
	const struct unit	*unit;
	unsigned int		nr;
};

static void *peer(void *arg)
{
	const struct job *job = arg;

	bench_pin(job->unit->across ? OTHER_CPU : THIS_CPU);
	job->unit->peer(job->nr);
	return NULL;
}

static pid_t start_process(struct job *job)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid)
		return pid;
	signal(SIGALRM, SIG_DFL);
	peer(job);
	_exit(0);
}

/*
 * Other programs and interrupts take time from some parts only. Each part has as many
 * events, so that all events are done as often as --events says.
 */
static double timed(const struct unit *u, unsigned int events)
{
	unsigned int nr = events / PARTS, i;
	double part[PARTS];
	uint64_t start;

	for (i = 0; i < PARTS; i++) {
		start = bench_now();
		u->run(nr);
		part[i] = (double)(bench_now() - start) / nr;
	}
	bench_sort(part, PARTS);
	return (part[PARTS / 2] + part[PARTS / 2 - 1]) / 2;
}

static double with_peer(const struct unit *u, unsigned int events)
{
	struct job job = { .unit = u, .nr = WARM_UP / ACROSS + events };
	pthread_t thread = 0;
	pid_t pid = 0;
	double each;
	int status;

	shared->turn = 0;
	if (u->process)
		pid = start_process(&job);
	else
		thread = bench_thread(peer, &job);
	u->run(WARM_UP / ACROSS);
	each = timed(u, events);
	if (!u->process)
		bench_join(thread);
	else if (waitpid(pid, &status, 0) != pid || status)
		bench_die("the other process has failed");
	return each;
}

static void units_measure(const struct bench_point *p,
			  const struct bench_contestant *c, double *value)
{
	const struct unit *u = unit_of(p);
	unsigned int events = u->across ? p->events / ACROSS : p->events;

	(void)c;
	if (events % PARTS)
		bench_die("--events: not a multiple of %d", PARTS * ACROSS);
	bench_pin(THIS_CPU);
	choose_policy(u);
	if (u->peer) {
		value[0] = with_peer(u, events);
		return;
	}
	u->run(WARM_UP);
	value[0] = timed(u, events);
}

static bool units_accepts(const struct bench_contestant *c,
			  const struct bench_point *p)
{
	return c->backend->blind && !(bench_one_cpu() && unit_of(p)->across);
}

static const struct bench_metric metrics[] = {
	{ .name = "cost", .unit = "ns" },
};

const struct bench_workload work_units = {
	.name		= "units",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("kilocycle", "locked", "copy", "none",
				      "getcpu", "getcpu+2", "getppid", "fstat",
				      "read", "stat", "open", "wake", "pipe",
				      "unix", "eventfd", "epoll",
				      "futex-thread", "futex", "echo", "epoll-echo",
				      "futex-across", "echo-across"),
	.batches	= BENCH_NUMBERS(1),
	.watches	= BENCH_NUMBERS(1),
	.threads	= BENCH_NUMBERS(1),
	.events		= 6400,
	.runs		= 3,
	.accepts	= units_accepts,
	.setup		= units_setup,
	.measure	= units_measure,
	.teardown	= units_teardown,
};
