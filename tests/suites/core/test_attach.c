// SPDX-License-Identifier: GPL-2.0
/*
 * A ring in shared memory, used by several processes
 *
 *	not attached	kevent_wait() -EXDEV
 *	attached	waits, pops, commits; each event goes to one process
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"

#define SIZE	16
#define BYTES	4096
#define EVENTS	1000

/* What the processes of a test share apart from the ring */
struct shared {
	struct queue	q;
	_Atomic int	ready, stop, ended;
	int		fd;			/* a pipe to write to, or 0 */
	_Atomic int	got[EVENTS];
};

static struct shared *open_shared(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(s != MAP_FAILED);
	s->q.size = SIZE;
	s->q.bytes = BYTES;
	s->q.ring = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(s->q.ring != MAP_FAILED);
	s->q.fd = kevent_init(s->q.ring, SIZE, init_flags);
	MUST(s->q.fd >= 0);
	return s;
}

static int attach(int kq, uint32_t size, void *ring)
{
	return kevent_ctl(kq, KEVENT_CTL_ATTACH, size, ring);
}

static int attach_and_use(void *arg)
{
	struct shared *s = arg;
	struct ukevent ev;

	CHILD_MUST(wait_ring(&s->q, SIZE, 0) == -EXDEV);
	CHILD_MUST(kevent_commit(s->q.fd, 0, 0) == -EXDEV);
	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	CHILD_MUST(wait_ring(&s->q, SIZE, 0) == 1);
	CHILD_MUST(kevent_commit(s->q.fd, 0, 0) == 0);
	CHILD_MUST(next_event(&s->q, &ev, 0) == 1);
	CHILD_MUST(ev.ptr == 7);
	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	return 0;
}

static void attached_process_uses_the_ring(void)
{
	struct shared *s = open_shared();

	MUST_EQ(add_user(s->q.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	CHECK_EQ(join_child(start_child(attach_and_use, s), PATIENCE_MS), 0);
	CHECK_EQ(s->q.ring->ring_kidx, 1);
	CHECK_EQ(s->q.ring->ring_uidx, 1);
	MUST_EQ(mark_user(s->q.fd, 1, 1), 1);
	CHECK_EQ(wait_ring(&s->q, SIZE, 0), 1);
}

static int wait_attached(void *arg)
{
	struct shared *s = arg;
	struct ukevent ev;

	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	CHILD_MUST(next_event(&s->q, &ev, -1) == 1);
	return ev.ptr;
}

static void event_wakes_an_attached_process(void)
{
	struct shared *s = open_shared();
	pid_t pid;

	MUST_EQ(add_user(s->q.fd, 1, 1, 0, 9), 0);
	pid = start_child(wait_attached, s);
	MUST(sleeps_in(pid, __NR_kevent_wait));
	MUST_EQ(mark_user(s->q.fd, 1, 1), 1);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 9);
}

static int wait_in_the_parents_ring(void *arg)
{
	struct shared *s = arg;

	return mark_user(s->q.fd, 1, 1) == 1 ? 0 : 1;
}

/* The process that causes the wake-up does not have the ring. */
static void unattached_process_wakes_the_owner(void)
{
	struct shared *s = open_shared();
	struct waiter w;

	MUST_EQ(add_user(s->q.fd, 1, 1, 0, 9), 0);
	start_waiter(&w, &s->q, SIZE);
	CHECK_EQ(join_child(start_child(wait_in_the_parents_ring, s),
			    PATIENCE_MS), 0);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(s->q.ring->event[0].ptr, 9);
}

/* A process has the ring at @at, and the kernel knows it there last. */
struct elsewhere {
	struct shared	*s;
	void		*at;
};

static int uses_the_ring_elsewhere(void *arg)
{
	struct elsewhere *e = arg;
	struct queue q = e->s->q;

	q.ring = mremap(q.ring, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
			e->at);
	CHILD_MUST(q.ring == e->at);
	CHILD_MUST(attach(q.fd, SIZE, q.ring) == 0);
	CHILD_MUST(wait_ring(&q, SIZE, 0) == 0);
	return 0;
}

/*
 * The event of a third process is stored where the sleeper has the ring, and not where
 * another process has it: there the sleeper has other memory, which is writable.
 */
static void sleeper_finds_its_own_ring(void)
{
	struct elsewhere e = { .s = open_shared() };
	static const char none[BYTES];
	struct ukevent ev;
	struct waiter w;
	int fd[2];

	e.at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(e.at != MAP_FAILED);
	memset(e.at, 0, BYTES);
	open_pipe(fd);
	MUST_EQ(add_pipe(e.s->q.fd, fd[0], RECV, ET, 9), 0);
	start_waiter(&w, &e.s->q, SIZE);
	CHECK_EQ(join_child(start_child(uses_the_ring_elsewhere, &e),
			    PATIENCE_MS), 0);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(kevent_ring_next(e.s->q.ring, SIZE, &ev));
	CHECK_EQ(ev.ptr, 9);
	CHECK(!memcmp(e.at, none, BYTES));
}

static int attaches_and_ends(void *arg)
{
	struct shared *s = arg;

	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	return 0;
}

/* What the queue keeps of the address space of a dead process is charged. */
static void address_space_that_attached_is_charged(void)
{
	struct shared *s = open_shared();
	long long before = fdinfo(s->q.fd, "kevent-user-bytes");

	CHECK_EQ(join_child(start_child(attaches_and_ends, s), PATIENCE_MS),
		 0);
	CHECK(fdinfo(s->q.fd, "kevent-user-bytes") > before + 4096);
	CHECK_EQ(join_child(start_child(attaches_and_ends, s), PATIENCE_MS),
		 0);
	/* The second one takes the place of the first, which has ended. */
	CHECK(fdinfo(s->q.fd, "kevent-user-bytes") < before + 2 * 16384);
}

static void ring_is_attached_again_at_the_limit(void)
{
	struct shared *s = open_shared();
	char old[32], value[32];
	int again;

	MUST_EQ(add_user(s->q.fd, 1, 1, 0, 0), 0);
	read_file(MAX_BYTES, old, sizeof(old));
	snprintf(value, sizeof(value), "%lld",
		 fdinfo(s->q.fd, "kevent-user-bytes"));
	write_file(MAX_BYTES, value);
	again = attach(s->q.fd, SIZE, s->q.ring);
	write_file(MAX_BYTES, old);
	CHECK_EQ(again, 0);
}

static int pops_after_fork(void *arg)
{
	struct kevent_queue *lib = arg;
	struct ukevent ev;

	CHILD_MUST(kevent_queue_pop(lib, &ev, 1) == -EXDEV);
	CHILD_MUST(kevent_queue_wait(lib, NULL) == -EXDEV);
	return 0;
}

/* The child has a copy of the ring and of the entry in it. */
static void copy_of_a_private_ring_is_void(void)
{
	static KEVENT_RING_STORAGE(8) mem;
	struct kevent_queue lib;
	struct ukevent ev;

	MUST_EQ(kevent_queue_init(&lib, &mem.ring, 8, 0), 0);
	MUST_EQ(add_user(lib.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	MUST_EQ(kevent_queue_wait(&lib, NULL), 1);
	CHECK_EQ(join_child(start_child(pops_after_fork, &lib), PATIENCE_MS),
		 0);
	MUST_EQ(kevent_queue_pop(&lib, &ev, 1), 1);
	CHECK_EQ(ev.ptr, 7);
	kevent_queue_close(&lib);
}

static int pops_after_attach(void *arg)
{
	struct kevent_queue *lib = arg;
	struct ukevent ev;

	CHILD_MUST(kevent_queue_pop(lib, &ev, 1) == -EXDEV);
	CHILD_MUST(kevent_queue_attach(lib) == 0);
	CHILD_MUST(kevent_queue_pop(lib, &ev, 1) == 1);
	CHILD_MUST(ev.ptr == 7);
	return 0;
}

static void child_that_attaches_a_shared_ring_pops(void)
{
	struct shared *s = open_shared();
	struct kevent_queue lib;
	struct ukevent ev;

	MUST_EQ(kevent_queue_init(&lib, s->q.ring, SIZE, 0), 0);
	MUST_EQ(add_user(lib.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	MUST_EQ(kevent_queue_wait(&lib, NULL), 1);
	CHECK_EQ(join_child(start_child(pops_after_attach, &lib), PATIENCE_MS),
		 0);
	CHECK_EQ(kevent_queue_pop(&lib, &ev, 1), 0);
	kevent_queue_close(&lib);
}

static int is_killed_before_it_pops(void *arg)
{
	struct shared *s = arg;

	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	CHILD_MUST(wait_ring(&s->q, SIZE, -1) == 1);
	atomic_store(&s->stop, 1);
	for (;;)
		pause();
}

/* The wake-up went to a process that ended before it took the event. */
static void event_of_a_killed_process_is_for_another(void)
{
	struct shared *s = open_shared();
	struct waiter w;
	struct ukevent ev;
	uint64_t start;
	pid_t pid;

	MUST_EQ(add_user(s->q.fd, 1, 1, 0, 9), 0);
	pid = start_child(is_killed_before_it_pops, s);
	MUST(sleeps_in(pid, __NR_kevent_wait));
	start_waiter(&w, &s->q, SIZE);
	MUST_EQ(mark_user(s->q.fd, 1, 1), 1);
	for (start = now_ns(); !atomic_load(&s->stop); )
		MUST(patient(start, PATIENCE_MS));
	CHECK(waiter_asleep(&w));
	MUST_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(kevent_ring_next(s->q.ring, SIZE, &ev));
	CHECK_EQ(ev.ptr, 9);
	waitpid(pid, NULL, 0);
}

/* The thread that is woken does not run before its process is another program. */
static int exec_kills_the_one_that_was_woken(void *arg)
{
	struct shared *s = arg;
	struct waiter w;
	uint64_t start;

	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	CHILD_MUST(fcntl(s->q.fd, F_SETFD, 0) == 0);
	CHILD_MUST(dup2(open("/dev/null", O_WRONLY), 1) == 1);
	share_cpu();
	start_waiter(&w, &s->q, SIZE);
	atomic_store(&s->ready, 1);
	for (start = now_ns(); !atomic_load(&s->stop); )
		CHILD_MUST(patient(start, PATIENCE_MS));
	go_first();
	CHILD_MUST(s->fd ? write(s->fd, "", 1) == 1 :
			   mark_user(s->q.fd, 1, 1) == 1);
	exec_and_run();
	return 50;
}

static void exec_kills_beside_an_event(struct shared *s)
{
	struct waiter w;
	uint64_t start;
	pid_t pid;

	pid = start_child(exec_kills_the_one_that_was_woken, s);
	for (start = now_ns(); !atomic_load(&s->ready); )
		MUST(patient(start, PATIENCE_MS));
	start_waiter(&w, &s->q, SIZE);
	atomic_store(&s->stop, 1);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	waitpid(pid, NULL, 0);
}

/* It was woken for an event in the kernel, or for one that is in the ring already. */
static void event_of_a_thread_that_exec_kills_is_for_another(void)
{
	struct shared *s = open_shared();
	int fd[2];

	MUST_EQ(add_user(s->q.fd, 1, 1, 0, 9), 0);
	exec_kills_beside_an_event(s);
	s = open_shared();
	open_pipe(fd);
	MUST_EQ(add_pipe(s->q.fd, fd[0], RECV, ET, 9), 0);
	s->fd = fd[1];
	exec_kills_beside_an_event(s);
}

static int takes_a_level_event(void *arg)
{
	struct shared *s = arg;
	struct ukevent ev;

	CHILD_MUST(get_events(s->q.fd, 1, 1, -1, &ev) == 1);
	atomic_store(&s->stop, 1);
	for (;;)
		pause();
}

/* The same without a ring, for a file that stays ready */
static void level_event_of_a_killed_process_is_for_another(void)
{
	struct shared *s = open_shared();
	struct waiter w;
	struct queue q;
	uint64_t start;
	pid_t pid;
	int fd[2];

	open_queue(&q, 0);
	s->q.fd = q.fd;
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, 0, 9), 0);
	pid = start_child(takes_a_level_event, s);
	MUST(sleeps_in(pid, __NR_kevent_get_events));
	start_waiter(&w, &q, 1);
	put_byte(fd[1]);
	for (start = now_ns(); !atomic_load(&s->stop); )
		MUST(patient(start, PATIENCE_MS));
	CHECK(waiter_asleep(&w));
	MUST_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(w.ev[0].ptr, 9);
	waitpid(pid, NULL, 0);
	close_queue(&q);
}

/* In kevent_wait() with a ring that no other process reads, or in kevent_get_events() */
static int sleeps_until_it_is_killed(void *arg)
{
	struct shared *s = arg;
	/* Written, so that the kernel can store there without a fault. */
	struct ukevent ev = {};

	if (!s->q.size)
		return get_events(s->q.fd, 1, 1, -1, &ev);
	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	return wait_ring(&s->q, SIZE, -1);
}

static void dies_before_it_runs(struct shared *s, bool before)
{
	struct queue others = { .fd = s->q.fd };
	struct waiter w;
	int fd[2];
	pid_t pid;

	open_pipe(fd);
	MUST_EQ(add_pipe(others.fd, fd[0], RECV, ET, 9), 0);
	share_cpu();
	pid = start_child(sleeps_until_it_is_killed, s);
	MUST(sleeps_in(pid, s->q.size ? __NR_kevent_wait :
					__NR_kevent_get_events));
	/* The queue is fair: it wakes the child, which slept first. */
	start_waiter(&w, &others, 1);
	/* The ring is the child's: a close leaves it, so nothing is stored from here. */
	close(dup(others.fd));
	go_first();
	if (before)
		MUST_EQ(kill(pid, SIGKILL), 0);
	put_byte(fd[1]);
	MUST_EQ(kill(pid, SIGKILL), 0);
	go_as_others();
	leave_cpu();
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(w.ev[0].ptr, 9);
	waitpid(pid, NULL, 0);
	close(fd[0]);
	close(fd[1]);
}

/* It is woken for the event, or wakes as it is killed and the event is for it. */
static void killed_waiter_takes_no_event(void)
{
	struct shared *s = open_shared();
	struct queue q;

	dies_before_it_runs(s, false);
	dies_before_it_runs(s, true);
	open_queue(&q, 0);
	s->q = q;
	dies_before_it_runs(s, false);
	dies_before_it_runs(s, true);
	close_queue(&q);
}

/*
 * The older of two waiters is killed, and has not run when a request is made, or runs for it. On a
 * machine that is held up it may have returned before the kill.
 */
static bool request_meets_a_kill(struct shared *s, bool before)
{
	struct queue others = { .fd = s->q.fd };
	struct waiter w;
	int status;
	pid_t pid;

	share_cpu();
	pid = start_child(sleeps_until_it_is_killed, s);
	MUST(sleeps_in(pid, s->q.size ? __NR_kevent_wait :
					__NR_kevent_get_events));
	start_waiter(&w, &others, 1);
	go_first();
	if (before)
		MUST_EQ(kill(pid, SIGKILL), 0);
	MUST_EQ(kevent_ctl(others.fd, KEVENT_CTL_READY, 0, NULL), 0);
	MUST_EQ(kill(pid, SIGKILL), 0);
	go_as_others();
	leave_cpu();
	MUST_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status))
		MUST_EQ(kevent_ctl(others.fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(join_waiter(&w), 0);
	return WIFSIGNALED(status);
}

static void request_outlives_who_is_killed(struct shared *s)
{
	unsigned int tries = 0;

	while (!request_meets_a_kill(s, false))
		MUST(++tries < 100);
	while (!request_meets_a_kill(s, true))
		MUST(++tries < 100);
}

static void killed_waiter_takes_no_request(void)
{
	struct shared *s = open_shared();
	struct queue q;

	request_outlives_who_is_killed(s);
	open_queue(&q, 0);
	s->q = q;
	request_outlives_who_is_killed(s);
	close_queue(&q);
}

static int waits_to_be_stopped(void *arg)
{
	struct shared *s = arg;

	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	wait_ring(&s->q, SIZE, -1);
	return 0;
}

/* It is woken for an entry, and stopped before it runs: the next one takes the entry. */
static void stopped_waiter_keeps_no_entry(void)
{
	struct shared *s = open_shared();
	struct waiter w;
	int fd[2];
	pid_t pid;

	open_pipe(fd);
	MUST_EQ(add_pipe(s->q.fd, fd[0], RECV, ET, 9), 0);
	share_cpu();
	pid = start_child(waits_to_be_stopped, s);
	MUST(sleeps_in(pid, __NR_kevent_wait));
	/* The queue is fair: it wakes the child, which slept first. */
	start_waiter(&w, &s->q, SIZE);
	go_first();
	put_byte(fd[1]);
	MUST_EQ(kill(pid, SIGSTOP), 0);
	go_as_others();
	leave_cpu();
	CHECK_EQ(join_waiter(&w), 1);
	MUST_EQ(kill(pid, SIGKILL), 0);
	waitpid(pid, NULL, 0);
	close(fd[0]);
	close(fd[1]);
}

static int consumes_on_request(void *arg)
{
	struct shared *s = arg;
	struct ukevent ev[4];

	if (s->q.size)
		CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	atomic_store(&s->ready, 1);
	while (!atomic_load(&s->stop))
		sched_yield();
	if (s->q.size)
		return wait_ring(&s->q, SIZE, -1);
	return get_events(s->q.fd, 1, 4, -1, ev);
}

/* Three watches that are reported once; a consumer is killed while it looks at the second. */
static void dies_while_it_looks(struct shared *s, uint32_t mode)
{
	int fd[3], i, got, all = 0;
	struct ukevent ev[4];
	uint64_t start;
	pid_t pid;

	for (i = 0; i < 3; i++) {
		fd[i] = open_expired_timer();
		MUST_EQ(add_poll(s->q.fd, fd[i], POLLIN, mode, i), 0);
	}
	s->ready = 0;
	s->stop = 0;
	pid = start_child(consumes_on_request, s);
	for (start = now_ns(); !atomic_load(&s->ready); )
		MUST(patient(start, PATIENCE_MS));
	window_arm("verified");
	atomic_store(&s->stop, 1);
	CHECK(window_entered());
	MUST_EQ(kill(pid, SIGKILL), 0);
	window_release();
	waitpid(pid, NULL, 0);
	for (start = now_ns(); all != 7 && patient(start, PATIENCE_MS); )
		for (got = get_events(s->q.fd, 1, 4, 0, ev); got-- > 0; )
			all |= 1 << ev[got].ptr;
	CHECK_EQ(all, 7);
	for (i = 0; i < 3; i++)
		close(fd[i]);
}

static void consumer_killed_while_it_looks_takes_nothing(void)
{
	const uint32_t modes[] = {
		KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH, ET | KEVENT_REQ_LAST_CHECK, 0,
	};
	struct shared *s;
	struct queue q;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		s = open_shared();
		dies_while_it_looks(s, modes[i]);
		close(s->q.fd);
		open_queue(&q, 0);
		s->q = q;
		dies_while_it_looks(s, modes[i]);
		close_queue(&q);
	}
}

static int consume(void *arg)
{
	struct shared *s = arg;
	struct ukevent ev;
	int ret;

	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	atomic_fetch_add(&s->ready, 1);
	while (!atomic_load(&s->stop)) {
		ret = next_event(&s->q, &ev, -1);
		CHILD_MUST(ret == 1 || ret == 0 || ret == -EPROTO);
		if (ret == 1)
			atomic_fetch_add(&s->got[ev.ptr], 1);
	}
	atomic_fetch_add(&s->ended, 1);
	return 0;
}

static void wait_for(_Atomic int *value, int wanted)
{
	uint64_t start = now_ns();

	while (atomic_load(value) < wanted && patient(start, PATIENCE_MS))
		;
	MUST(atomic_load(value) >= wanted);
}

/* Requests that are made while nobody sleeps end one wait, not one each. */
static void stop_consumers(struct shared *s, const pid_t *pid, unsigned int nr)
{
	uint64_t start = now_ns();
	unsigned int i;

	atomic_store(&s->stop, 1);
	do
		kevent_ctl(s->q.fd, KEVENT_CTL_READY, 0, NULL);
	while (atomic_load(&s->ended) < (int)nr && patient(start, PATIENCE_MS));
	for (i = 0; i < nr; i++)
		CHECK_EQ(join_child(pid[i], PATIENCE_MS), 0);
}

/* Four processes take 1000 events through 16 slots. */
static void each_event_goes_to_one_process(void)
{
	struct shared *s = open_shared();
	pid_t pid[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		pid[i] = start_child(consume, s);
	wait_for(&s->ready, 4);
	for (i = 0; i < EVENTS; i++)
		MUST_EQ(add_user(s->q.fd, i, 1,
				 KEVENT_REQ_READY | KEVENT_REQ_ONESHOT, i), 0);
	for (i = 0; i < EVENTS; i++) {
		wait_for(&s->got[i], 1);
		CHECK_EQ(s->got[i], 1);
	}
	stop_consumers(s, pid, 4);
	CHECK_EQ(fdinfo(s->q.fd, "kevent-watches"), 0);
}

static void bad_mappings_are_refused(void)
{
	struct shared *s = open_shared();
	char *other = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *gone = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	void *kernel = (void *)(UINTPTR_MAX & ~4095ul);
	struct queue bare;

	open_queue(&bare, 0);
	CHECK_EQ(attach(bare.fd, 0, NULL), -EINVAL);
	CHECK_EQ(attach(bare.fd, SIZE, s->q.ring), -EINVAL);
	CHECK_EQ(attach(s->q.fd, SIZE / 2, s->q.ring), -EINVAL);
	CHECK_EQ(attach(s->q.fd, 0, s->q.ring), -EINVAL);
	CHECK_EQ(attach(s->q.fd, SIZE, (char *)s->q.ring + 4), -EINVAL);
	CHECK_EQ(attach(s->q.fd, SIZE, kernel), -EFAULT);
	CHECK_EQ(attach(s->q.fd, SIZE, gone), -EFAULT);
	CHECK_EQ(attach(s->q.fd, SIZE, NULL), -EFAULT);
	/* Memory whose header is not that of the ring */
	MUST_EQ(add_user(s->q.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	CHECK_EQ(wait_ring(&s->q, SIZE, 0), 1);
	CHECK_EQ(attach(s->q.fd, SIZE, other), -EINVAL);
	MUST_EQ(mark_user(s->q.fd, 1, 1), 1);
	CHECK_EQ(wait_ring(&s->q, SIZE, 0), 1);
	close_queue(&bare);
}

/* mremap() in the creator, and then in an attached process */
static int move_the_ring(void *arg)
{
	struct shared *s = arg;
	struct kevent_ring *there;
	struct queue moved = s->q;
	struct ukevent ev;

	CHILD_MUST(attach(s->q.fd, SIZE, s->q.ring) == 0);
	there = mremap(s->q.ring, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
		       mmap(NULL, BYTES, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	CHILD_MUST(there != MAP_FAILED);
	moved.ring = there;
	CHILD_MUST(mark_user(s->q.fd, 1, 1) == 1);
	CHILD_MUST(wait_ring(&moved, SIZE, 0) == -EFAULT);
	CHILD_MUST(attach(s->q.fd, SIZE, there) == 0);
	CHILD_MUST(next_event(&moved, &ev, 0) == 1);
	CHILD_MUST(ev.ptr == 7);
	return 0;
}

static void ring_can_be_moved(void)
{
	struct shared *s = open_shared();

	MUST_EQ(add_user(s->q.fd, 1, 1, 0, 7), 0);
	CHECK_EQ(join_child(start_child(move_the_ring, s), PATIENCE_MS), 0);
	CHECK_EQ(move_the_ring(s), 0);
}

/* The close of another descriptor has ended the stores where the ring was. */
static void ring_that_moves_after_a_close_is_used(void)
{
	struct shared *s = open_shared();
	struct queue *q = &s->q;
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET, 7), 0);
	close(dup(q->fd));
	MUST_EQ(attach(q->fd, SIZE, q->ring), 0);
	put_byte(fd[1]);
	CHECK_EQ(kevent_ring_count(q->ring, SIZE), 1);
	MUST_EVENT(q, &ev);
	close(dup(q->fd));
	put_byte(fd[1]);
	CHECK_EQ(kevent_ring_count(q->ring, SIZE), 0);
	MUST_EQ(attach(q->fd, SIZE, q->ring), 0);
	CHECK(q->ring->ring_flags & KEVENT_RING_MORE);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ptr, 7);
}

static int attach_and_stay(void *arg)
{
	struct shared *s = arg;
	int err = attach(s->q.fd, SIZE, s->q.ring);

	atomic_fetch_add(&s->ready, 1);
	if (err)
		return -err;
	for (;;)
		pause();
}

static int attach_once(void *arg)
{
	struct shared *s = arg;

	return -attach(s->q.fd, SIZE, s->q.ring);
}

/* Processes that have ended do not count. */
static void number_of_processes_is_limited(void)
{
	struct shared *s = open_shared();
	pid_t pid[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pid); i++)
		pid[i] = start_child(attach_and_stay, s);
	wait_for(&s->ready, ARRAY_SIZE(pid));
	CHECK_EQ(join_child(start_child(attach_once, s), PATIENCE_MS), ENOSPC);
	CHECK_EQ(attach(s->q.fd, SIZE, s->q.ring), 0);
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		kill(pid[i], SIGKILL);
		CHECK_EQ(join_child(pid[i], PATIENCE_MS), -SIGKILL);
	}
	for (i = 0; i < 3 * ARRAY_SIZE(pid); i++)
		CHECK_EQ(join_child(start_child(attach_once, s), PATIENCE_MS),
			 0);
}

static int attach_and_exec(void *arg)
{
	struct shared *s = arg;
	char kq[12];
	int fd = dup(s->q.fd);

	CHILD_MUST(attach(fd, SIZE, s->q.ring) == 0);
	CHILD_MUST(wait_ring(&s->q, SIZE, 0) == 0);
	snprintf(kq, sizeof(kq), "%d", fd);
	execl("/proc/self/exe", "kevent-tests", "--after-exec-attached", kq,
	      NULL);
	return 50;
}

int after_exec_attached(int argc, char **argv)
{
	struct timespec zero = {};

	if (argc < 3)
		return 100;
	return -kevent_wait(atoi(argv[2]), 1, 0, &zero, 0, NULL);
}

static void exec_detaches(void)
{
	struct shared *s = open_shared();

	CHECK_EQ(join_child(start_child(attach_and_exec, s), PATIENCE_MS),
		 EXDEV);
}

static const struct test_case cases[] = {
	TEST(attached_process_uses_the_ring),
	TEST(event_wakes_an_attached_process),
	TEST(unattached_process_wakes_the_owner),
	TEST(sleeper_finds_its_own_ring),
	TEST(address_space_that_attached_is_charged),
	TEST(copy_of_a_private_ring_is_void),
	TEST(child_that_attaches_a_shared_ring_pops),
	TEST(event_of_a_killed_process_is_for_another),
	TEST(event_of_a_thread_that_exec_kills_is_for_another),
	TEST(level_event_of_a_killed_process_is_for_another),
	TEST(killed_waiter_takes_no_event),
	TEST(killed_waiter_takes_no_request),
	TEST(stopped_waiter_keeps_no_entry),
	TEST(consumer_killed_while_it_looks_takes_nothing),
	TEST(ring_is_attached_again_at_the_limit),
	TEST(each_event_goes_to_one_process),
	TEST(bad_mappings_are_refused),
	TEST(ring_can_be_moved),
	TEST(ring_that_moves_after_a_close_is_used),
	TEST(number_of_processes_is_limited),
	TEST(exec_detaches),
	{}
};

const struct test_suite attach_suite = {
	.name = "attach",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
