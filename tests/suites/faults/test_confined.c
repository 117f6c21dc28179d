// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that something else holds, kills or confines: both cgroup freezers, SIGSTOP, a
 * memory cgroup, a user namespace
 *
 * Seccomp filters are in suite refuse, namespaces of pids and times in proc and timer,
 * suspend in awake, limits of an unprivileged user in limits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "aio.h"
#include "helpers.h"

#define SOME_USER	4242
#define WAIT_QUEUE_LIMIT 192
#define WATCHES		500

/* A cgroup, and a pipe that this process and one in the group watch by a queue */
struct scene {
	struct queue	q;
	int		fd[2];
	char		group[64];
	pid_t		pid;
	_Atomic int	*interrupted;	/* calls of the consumer */
};

static void write_group(const struct scene *s, const char *name,
			const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", s->group, name);
	write_file(path, text);
}

static void enter_group(struct scene *s)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", s->pid);
	write_group(s, "cgroup.procs", pid);
}

static void open_scene(struct scene *s)
{
	open_queue(&s->q, 0);
	open_pipe(s->fd);
	MUST_EQ(add_pipe(s->q.fd, s->fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET,
			 7), 0);
	s->interrupted = mmap(NULL, sizeof(*s->interrupted),
			      PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(s->interrupted != MAP_FAILED);
	strcpy(s->group, "/sys/fs/cgroup/confined-XXXXXX");
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	MUST(mkdtemp(s->group));
}

static void close_scene(struct scene *s)
{
	uint64_t start = now_ns();

	close_queue(&s->q);
	close(s->fd[0]);
	close(s->fd[1]);
	munmap((void *)s->interrupted, sizeof(*s->interrupted));
	while (rmdir(s->group) && patient(start, PATIENCE_MS))
		;
	CHECK(access(s->group, F_OK));
}

/* Takes one event, however often the call is interrupted. */
static int takes_one(void *arg)
{
	struct scene *s = arg;
	struct ukevent ev;
	int ret;

	while ((ret = get_events(s->q.fd, 1, 1, -1, &ev)) == -EINTR)
		++*s->interrupted;
	return ret == 1 && ev.ptr == 7 ? 0 : 1;
}

static void start_consumer(struct scene *s)
{
	s->pid = start_child(takes_one, s);
	enter_group(s);
	MUST(sleeps_in(s->pid, __NR_kevent_get_events));
}

static void freeze(struct scene *s)
{
	uint64_t start = now_ns();
	char path[128], text[256];

	snprintf(path, sizeof(path), "%s/cgroup.events", s->group);
	write_group(s, "cgroup.freeze", "1");
	do {
		MUST(patient(start, PATIENCE_MS));
		read_file(path, text, sizeof(text));
	} while (!strstr(text, "frozen 1"));
}

static void stop(struct scene *s)
{
	int status;

	MUST_EQ(kill(s->pid, SIGSTOP), 0);
	MUST_EQ(waitpid(s->pid, &status, WUNTRACED), s->pid);
	MUST(WIFSTOPPED(status));
}

/* The same by a tracer, which this process becomes; it may detach only then. */
static void trace(struct scene *s)
{
	int status;

	MUST_EQ(ptrace(PTRACE_SEIZE, s->pid, 0, 0), 0);
	MUST_EQ(ptrace(PTRACE_INTERRUPT, s->pid, 0, 0), 0);
	MUST_EQ(waitpid(s->pid, &status, __WALL), s->pid);
	MUST(WIFSTOPPED(status));
}

/* The consumer cannot run; the next event goes to another. */
static void event_is_for_who_runs(struct scene *s)
{
	struct ukevent ev;

	put_byte(s->fd[1]);
	MUST_EVENT(&s->q, &ev);
	CHECK_EQ(ev.ptr, 7);
	CHECK_NO_EVENT(&s->q);
}

/* The consumer runs again: its call was interrupted, and the next one waits. */
static void consumer_goes_on(struct scene *s)
{
	uint64_t start = now_ns();

	while (!*s->interrupted)
		MUST(patient(start, PATIENCE_MS));
	MUST(sleeps_in(s->pid, __NR_kevent_get_events));
	put_byte(s->fd[1]);
	CHECK_EQ(*s->interrupted, 1);
}

/* Nobody can run: the event waits for the consumer. */
static void event_waits(struct scene *s)
{
	put_byte(s->fd[1]);
	CHECK(fdinfo(s->q.fd, "kevent-ready") == 1);
}

static void consumer_takes_one(struct scene *s)
{
	CHECK_EQ(join_child(s->pid, PATIENCE_MS), 0);
	CHECK_NO_EVENT(&s->q);
}

static void frozen_consumer_leaves_its_events_to_others(void)
{
	struct scene s;

	open_scene(&s);
	start_consumer(&s);
	freeze(&s);
	event_is_for_who_runs(&s);
	write_group(&s, "cgroup.freeze", "0");
	consumer_goes_on(&s);
	consumer_takes_one(&s);
	close_scene(&s);
}

static void event_waits_for_frozen_consumers(void)
{
	struct scene s;

	open_scene(&s);
	start_consumer(&s);
	freeze(&s);
	event_waits(&s);
	write_group(&s, "cgroup.freeze", "0");
	consumer_takes_one(&s);
	close_scene(&s);
}

static void stopped_consumer_leaves_its_events_to_others(void)
{
	struct scene s;

	open_scene(&s);
	start_consumer(&s);
	stop(&s);
	event_is_for_who_runs(&s);
	MUST_EQ(kill(s.pid, SIGCONT), 0);
	consumer_goes_on(&s);
	consumer_takes_one(&s);
	close_scene(&s);
}

static void event_waits_for_stopped_consumers(void)
{
	struct scene s;

	open_scene(&s);
	start_consumer(&s);
	stop(&s);
	event_waits(&s);
	MUST_EQ(kill(s.pid, SIGCONT), 0);
	consumer_takes_one(&s);
	close_scene(&s);
}

static void traced_consumer_leaves_its_events_to_others(void)
{
	struct scene s;

	open_scene(&s);
	start_consumer(&s);
	trace(&s);
	event_is_for_who_runs(&s);
	MUST_EQ(ptrace(PTRACE_DETACH, s.pid, 0, 0), 0);
	consumer_goes_on(&s);
	consumer_takes_one(&s);
	close_scene(&s);
}

static void event_waits_for_traced_consumers(void)
{
	struct scene s;

	open_scene(&s);
	start_consumer(&s);
	trace(&s);
	event_waits(&s);
	MUST_EQ(ptrace(PTRACE_DETACH, s.pid, 0, 0), 0);
	consumer_takes_one(&s);
	close_scene(&s);
}

/*
 * The freezer of cgroup version 1 holds single threads, and sends no signal. A thread that it
 * holds cannot be killed, so nothing may end a test in between.
 */
#define FREEZER		"/tmp/confined-freezer"
#define COLD		FREEZER "/cold"

static void set_cold(const char *state)
{
	uint64_t start = now_ns();
	char text[32];

	write_file(COLD "/freezer.state", state);
	do {
		read_file(COLD "/freezer.state", text, sizeof(text));
	} while (strncmp(text, state, strlen(state)) &&
		 CHECK(patient(start, PATIENCE_MS)));
}

static void hold(const struct actor *a)
{
	char tid[16];

	mkdir(FREEZER, 0700);
	MUST_EQ(mount("kevent", FREEZER, "cgroup", 0, "freezer"), 0);
	MUST_EQ(mkdir(COLD, 0700), 0);
	snprintf(tid, sizeof(tid), "%d", atomic_load(&a->tid));
	write_file(COLD "/tasks", tid);
	set_cold("FROZEN");
}

/* The thread may end at once. */
static void let_go(const struct actor *a)
{
	int tasks = open(FREEZER "/tasks", O_WRONLY | O_CLOEXEC);
	uint64_t start = now_ns();

	set_cold("THAWED");
	dprintf(tasks, "%d", atomic_load(&a->tid));
	close(tasks);
	while (rmdir(COLD) && patient(start, PATIENCE_MS))
		;
	CHECK_EQ(umount(FREEZER), 0);
	CHECK_EQ(rmdir(FREEZER), 0);
}

/* Nothing may end the test here. */
static bool ends_in_time(struct actor *a)
{
	uint64_t start = now_ns();

	while (!actor_ended(a))
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

/* Both sleep, the older one is held; the event is for the other, and the next for it. */
static void held_thread_leaves_its_events_to_others(struct queue *q)
{
	struct waiter held, other;
	struct ukevent ev;
	int fd[2];
	bool came;

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 7), 0);
	start_waiter(&held, q, 1);
	start_waiter(&other, q, 1);
	hold(&held.actor);
	put_byte(fd[1]);
	came = ends_in_time(&other.actor);
	let_go(&held.actor);
	CHECK(came);
	CHECK_EQ(join_waiter(&other), 1);
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	/* Its wait has not ended, but the ring has what it waits for. */
	if (!q->size) {
		CHECK(sleeps_in(held.actor.tid, __NR_kevent_get_events));
		put_byte(fd[1]);
	}
	CHECK_EQ(join_waiter(&held), 1);
	close(fd[0]);
	close(fd[1]);
}

static void event_waits_for_held_threads(struct queue *q)
{
	struct waiter held;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 7), 0);
	start_waiter(&held, q, 1);
	hold(&held.actor);
	CHECK_EQ(fdinfo(q->fd, "kevent-waiting"), 0);
	put_byte(fd[1]);
	let_go(&held.actor);
	CHECK_EQ(join_waiter(&held), 1);
	close(fd[0]);
	close(fd[1]);
}

#ifdef __LP64__
/* A thread for which a limit of one holds */
static long waits_with_a_limit(void *arg)
{
	struct queue *q = arg;
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC,
		.max_running = 1,
	};

	return kevent_wait(q->fd, 1, 0, NULL, KEVENT_FLAGS_ARG, &wait);
}

/* One that runs until it is told to wait without a limit */
struct runner {
	struct actor	actor;
	struct queue	*q;
	_Atomic int	runs, leaves;
};

static long runs_until_asked(void *arg)
{
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC,
		.max_running = 1,
	};
	struct timespec now = { 0 };
	struct runner *r = arg;

	kevent_wait(r->q->fd, 1, 0, &now, KEVENT_FLAGS_ARG, &wait);
	atomic_store(&r->runs, 1);
	while (!atomic_load(&r->leaves))
		sched_yield();
	return wait_ring(r->q, 1, 1);
}

static void start_runner(struct runner *r, struct queue *q)
{
	uint64_t start = now_ns();

	*r = (struct runner){ .q = q };
	start_actor(&r->actor, runs_until_asked, r);
	while (!atomic_load(&r->runs))
		MUST(patient(start, PATIENCE_MS));
}

static void await_parked(struct queue *q, int nr)
{
	uint64_t start = now_ns();

	while (fdinfo(q->fd, "kevent-parked") != nr)
		MUST(patient(start, PATIENCE_MS));
}

/* When the one that runs leaves, the other one that is parked goes on. */
static void held_thread_keeps_no_place(void)
{
	struct actor held, other;
	struct runner r;
	struct queue q;
	bool came;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 1), 0);
	start_runner(&r, &q);
	start_actor(&held, waits_with_a_limit, &q);
	await_parked(&q, 1);
	start_actor(&other, waits_with_a_limit, &q);
	await_parked(&q, 2);
	hold(&held);
	atomic_store(&r.leaves, 1);
	CHECK(ends_in_time(&r.actor));
	CHECK_EQ(mark_user(q.fd, 1, 1), 1);
	came = ends_in_time(&other);
	let_go(&held);
	CHECK(came);
	join_actor(&r.actor, PATIENCE_MS);
	join_actor(&other, PATIENCE_MS);
	join_actor(&held, PATIENCE_MS);
	close_queue(&q);
}

static long serves(void *arg)
{
	struct queue *q = arg;

	return serve(q->fd, 2, -1);
}

/* A chain that cannot be made at once is for a thread that runs. */
static void held_thread_takes_no_chain(void)
{
	struct actor held, other;
	struct kevent_call c;
	struct ukevent ev;
	struct queue q;
	char byte;
	int fd[2], got;

	open_queue(&q, 0);
	open_blocking_pipe(fd);
	start_actor(&held, serves, &q);
	MUST(sleeps_in(held.tid, __NR_kevent_wait));
	start_actor(&other, serves, &q);
	MUST(sleeps_in(other.tid, __NR_kevent_wait));
	hold(&held);
	c = ENTRY(SYS_read, fd[0], &byte, 1);
	CHECK_EQ(submit(q.fd, &c, 1, COOKIE), SUBMITTED);
	put_byte(fd[1]);
	got = get_events(q.fd, 1, 1, PATIENCE_MS, &ev);
	let_go(&held);
	CHECK_EQ(got, 1);
	close_queue(&q);
	join_actor(&other, PATIENCE_MS);
	join_actor(&held, PATIENCE_MS);
	close(fd[0]);
	close(fd[1]);
}

/* A server of @q has begun with a chain, and sleeps in the second step. */
static void start_chain(struct actor *server, struct queue *q, struct kevent_call *c, uint32_t nr)
{
	struct ukevent uk;

	start_actor(server, serves, q);
	MUST(sleeps_in(server->tid, __NR_kevent_wait));
	set_chain(&uk, c, nr, COOKIE);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &uk), 0);
	await_made(c);
	MUST(sleeps_in(server->tid, __NR_kevent_wait));
}

/* No signal has come: the call goes on, and so do those behind it. */
static void held_thread_goes_on_with_its_call(void)
{
	struct kevent_call c[3];
	struct actor server;
	struct ukevent ev;
	struct queue q;
	char byte;
	int fd[2];

	open_queue(&q, 0);
	open_blocking_pipe(fd);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd[0], &byte, 1);
	c[2] = GETPPID;
	start_chain(&server, &q, c, 3);
	hold(&server);
	let_go(&server);
	put_byte(fd[1]);
	MUST_EVENT(&q, &ev);
	check_done(&ev, COOKIE, 2, getppid());
	CHECK_EQ(c[1].result, 1);
	close_queue(&q);
	join_actor(&server, PATIENCE_MS);
	close_pair(fd);
}

/* The close ends early, as outside a chain, and what is behind it is made. */
static void held_thread_goes_on_behind_its_call(void)
{
	struct kevent_call c[3];
	struct actor server;
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	tcp_pair(fd);
	fill_and_linger(fd[0]);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_close, fd[0], 0, 0);
	c[2] = GETPPID;
	start_chain(&server, &q, c, 3);
	hold(&server);
	let_go(&server);
	MUST_EVENT(&q, &ev);
	check_done(&ev, COOKIE, 2, getppid());
	CHECK_EQ(c[1].result, 0);
	close_queue(&q);
	join_actor(&server, PATIENCE_MS);
	close(fd[1]);
}
#endif

/* Adds watches to its own queue, then wants more memory than the group has. */
static int wants_too_much(void *arg)
{
	const size_t size = 64 << 20;
	int kq = kevent_init(NULL, 0, 0), i;
	char *mem;

	(void)arg;
	CHILD_MUST(raise(SIGSTOP) == 0);
	for (i = 0; i < WATCHES; i++)
		CHILD_MUST(add_user(kq, i, 1, 0, 0) == 0);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHILD_MUST(mem != MAP_FAILED);
	for (;;)
		memset(mem, 1, size);
}

static void process_killed_for_memory_leaves_nothing(void)
{
	uint64_t start;
	struct scene s;
	long long bytes;
	int status;

	open_scene(&s);
	bytes = fdinfo(s.q.fd, "kevent-user-bytes");
	write_group(&s, "memory.max", "16M");
	write_group(&s, "memory.oom.group", "1");
	s.pid = start_child(wants_too_much, NULL);
	MUST_EQ(waitpid(s.pid, &status, WUNTRACED), s.pid);
	enter_group(&s);
	MUST_EQ(kill(s.pid, SIGCONT), 0);
	MUST_EQ(waitpid(s.pid, &status, 0), s.pid);
	MUST(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGKILL);
	event_is_for_who_runs(&s);
	start = now_ns();
	while (fdinfo(s.q.fd, "kevent-user-bytes") > bytes &&
	       patient(start, PATIENCE_MS))
		;
	CHECK_EQ(fdinfo(s.q.fd, "kevent-user-bytes"), bytes);
	close_scene(&s);
}

/* Capabilities there are none here. */
static int is_root_of_its_namespace(void *arg)
{
	const int *fd = arg;
	int kq, i, copy;

	CHILD_MUST(!setresuid(SOME_USER, SOME_USER, SOME_USER));
	CHILD_MUST(!unshare(CLONE_NEWUSER));
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	for (i = 0; i < WAIT_QUEUE_LIMIT; i++) {
		copy = dup(*fd);
		CHILD_MUST(copy >= 0);
		CHILD_MUST(add_pipe(kq, copy, 1, KEVENT_REQ_ET, 0) == 0);
	}
	copy = dup(*fd);
	CHILD_MUST(add_pipe(kq, copy, 1, KEVENT_REQ_ET, 0) == -ENOSPC);
	CHILD_MUST(add_user(kq, 1, 1, KEVENT_REQ_STAY_AWAKE, 0) == -EPERM);
	return 0;
}

static void root_of_a_user_namespace_has_the_limits(void)
{
	struct scene s;

	open_scene(&s);
	open_fds(2000);
	CHECK_EQ(join_child(start_child(is_root_of_its_namespace, &s.fd[0]),
			    2 * PATIENCE_MS), 0);
	close_scene(&s);
}

/* An account with many user ids, as newuidmap gives them */
struct account {
	int	fd;		/* what is watched */
	int	outside[2];	/* of the socket to who writes the map */
};

static int has_many_ids(void *arg)
{
	struct account *a = arg;
	int kq, i, nr = 0;
	char byte;

	CHILD_MUST(!setresuid(SOME_USER, SOME_USER, SOME_USER));
	CHILD_MUST(!prctl(PR_SET_DUMPABLE, 1));
	CHILD_MUST(!unshare(CLONE_NEWUSER));
	CHILD_MUST(write(a->outside[1], "", 1) == 1);
	CHILD_MUST(read(a->outside[1], &byte, 1) == 1);
	for (i = 0; i < WAIT_QUEUE_LIMIT + 1; i++) {
		CHILD_MUST(!setresuid(i % 7, i % 7, 0));
		kq = kevent_init(NULL, 0, 0);
		CHILD_MUST(kq >= 0);
		nr += !add_pipe(kq, a->fd, 1, KEVENT_REQ_ET, 0);
		CHILD_MUST(!setresuid(0, 0, 0));
	}
	return nr == WAIT_QUEUE_LIMIT ? 0 : 1 + nr % 100;
}

static void ids_of_a_user_namespace_are_one_user(void)
{
	struct account a;
	struct scene s;
	char path[40], byte;
	pid_t pid;

	open_scene(&s);
	open_fds(2000);
	a.fd = s.fd[0];
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a.outside), 0);
	pid = start_child(has_many_ids, &a);
	MUST_EQ(read(a.outside[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	write_file(path, "0 100000 1000");
	MUST_EQ(write(a.outside[0], "", 1), 1);
	CHECK_EQ(join_child(pid, 2 * PATIENCE_MS), 0);
	close_scene(&s);
}

static const struct test_case cases[] = {
	TEST(frozen_consumer_leaves_its_events_to_others),
	TEST(event_waits_for_frozen_consumers),
	TEST(stopped_consumer_leaves_its_events_to_others),
	TEST(event_waits_for_stopped_consumers),
	TEST(traced_consumer_leaves_its_events_to_others),
	TEST(event_waits_for_traced_consumers),
	TEST_EACH(held_thread_leaves_its_events_to_others),
	TEST_EACH(event_waits_for_held_threads),
#ifdef __LP64__
	TEST(held_thread_keeps_no_place),
	TEST(held_thread_takes_no_chain),
	TEST(held_thread_goes_on_with_its_call),
	TEST(held_thread_goes_on_behind_its_call),
#endif
	TEST(process_killed_for_memory_leaves_nothing),
	TEST(root_of_a_user_namespace_has_the_limits),
	TEST(ids_of_a_user_namespace_are_one_user),
	{}
};

const struct test_suite confined_suite = { .name = "confined", .cases = cases };
