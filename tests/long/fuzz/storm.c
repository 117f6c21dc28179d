// SPDX-License-Identifier: GPL-2.0
/*
 * Writers, consumers and a thread that changes watches, all at once, in phases. A number
 * that all of them draw orders what they do: at the end of a phase the newest entry of a
 * watch must have been taken after the newest write began.
 *
 * The consumer of a queue is the only reader of the files that only its queue watches.
 * So it knows which level watches its next call must report.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fuzz.h"

#define QUEUES		2
#define FILES		9
#define WRITERS		3	/* the last one is a process */
#define SHARED(c)	((c) % 3 == 2)	/* both queues watch it, nobody reads it */
#define OWNER(c)	((c) % 3)
#define SIZE		16	/* of a ring */
#define WRITES		60	/* of a writer in a phase */
#define SPIN_NS		3000000	/* a consumer looks at memory alone for so long */

/**
 * struct sfile - a file that is written to
 * @rd:		what is watched
 * @wr:		what is written to
 * @eventfd:	both are one
 * @begun:	when the newest write began that did not fail
 * @tries:	writes in this phase, also those that failed
 */
struct sfile {
	int			rd, wr;
	bool			eventfd;
	_Atomic uint64_t	begun;
	_Atomic uint64_t	tries;
};

/**
 * struct swatch - a watch
 * @flags:	0 or ET
 * @taken:	when its newest entry was taken
 * @entries:	how many were, in this phase
 * @listed:	its consumer has taken an entry since a call may have found it idle
 * @looks:	requests that made the kernel look
 */
struct swatch {
	uint32_t		flags;
	bool			listed;
	_Atomic uint64_t	taken;
	_Atomic uint64_t	entries;
	_Atomic uint64_t	looks;
};

struct storm {
	_Atomic uint64_t	clock;
	_Atomic bool		stop;		/* consumers and changes */
	_Atomic bool		over;		/* the writers' process */
	_Atomic unsigned int	phase, done;
	_Atomic uint64_t	entries;
	struct sfile		file[FILES];
	struct swatch		watch[QUEUES][FILES];
	struct kevent_queue	queue[QUEUES];
	uint64_t		seed;
	/* Of the phase: files of a writer, and how long it may rest */
	unsigned int		files, rest;
};

static struct storm *S;

static uint64_t tick(void)
{
	return atomic_fetch_add(&S->clock, 1);
}

static void open_one(struct sfile *f, unsigned int kind)
{
	int fd[2];

	if (kind % 3 == 0 && pipe2(fd, O_NONBLOCK | O_CLOEXEC))
		fail("no pipe");
	if (kind % 3 == 1 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK,
					0, fd))
		fail("no socket");
	f->eventfd = kind % 3 == 2;
	if (f->eventfd)
		fd[0] = fd[1] = eventfd(0, EFD_NONBLOCK);
	f->rd = fd[0];
	f->wr = fd[1];
}

static bool holds(const struct sfile *f)
{
	return poll_now(f->rd) & KEVENT_POLL_POLLIN;
}

/* Reads part of what there is, or all. */
static void read_some(struct sfile *f, bool all)
{
	char buf[4096];

	while (read(f->rd, buf, all || f->eventfd ? sizeof(buf) : 1) > 0)
		if (!all)
			break;
}

static int request_one(unsigned int q, unsigned int c, uint32_t cmd,
		       uint32_t flags)
{
	struct ukevent ev;

	kevent_set_poll(&ev, S->file[c].rd, KEVENT_POLL_POLLIN, flags, c);
	atomic_fetch_add(&S->watch[q][c].looks, 1);
	return kevent_ctl_one(S->queue[q].fd, cmd, &ev);
}

static bool watches(unsigned int q, unsigned int c)
{
	return SHARED(c) || OWNER(c) == q;
}

/* Writers */

static void write_once(uint64_t *random, unsigned int writer)
{
	unsigned int c = writer + WRITERS * (next_random(random) % S->files);
	struct sfile *f = &S->file[c];
	uint64_t one = 1, begun = tick();
	char bytes[3] = {};
	ssize_t ret;

	atomic_fetch_add(&f->tries, 1);
	ret = f->eventfd ? write(f->wr, &one, 8) :
			   write(f->wr, bytes, 1 + next_random(random) % 3);
	if (ret > 0)
		atomic_store(&f->begun, begun);
}

static void write_all(uint64_t *random, unsigned int writer)
{
	unsigned int i;

	for (i = 0; i < WRITES; i++) {
		write_once(random, writer);
		if (next_random(random) % 4 == 0)
			usleep(next_random(random) % S->rest);
	}
}

static void *writer_thread(void *arg)
{
	unsigned int writer = (uintptr_t)arg;
	uint64_t random = S->seed * 77 + writer + atomic_load(&S->phase) * 5 + 1;

	write_all(&random, writer);
	return NULL;
}

static void writer_process(void)
{
	uint64_t random = S->seed * 77 + 99;
	unsigned int seen = 0, phase;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&S->over)) {
		phase = atomic_load(&S->phase);
		if (phase == seen) {
			usleep(100);
			continue;
		}
		seen = phase;
		write_all(&random, WRITERS - 1);
		atomic_store(&S->done, phase);
	}
	_exit(0);
}

/* Consumers */

static void taken(unsigned int q, const struct ukevent *ev)
{
	struct swatch *w = &S->watch[q][ev->ptr];

	if (ev->ptr >= FILES || !(ev->ret_data[0] & KEVENT_POLL_POLLIN))
		fail("queue %u has an entry of file %llu that says %#x", q,
		     (unsigned long long)ev->ptr, ev->ret_data[0]);
	atomic_store(&w->taken, tick());
	w->listed = !w->flags;
	atomic_fetch_add(&w->entries, 1);
	atomic_fetch_add(&S->entries, 1);
}

static bool pop_one(unsigned int q, uint64_t *random)
{
	struct kevent_queue *queue = &S->queue[q];
	struct ukevent ev;

	if (!kevent_ring_next(queue->ring, queue->size, &ev))
		return false;
	taken(q, &ev);
	if (!SHARED(ev.ptr) && random)
		read_some(&S->file[ev.ptr], next_random(random) % 2);
	return true;
}

/*
 * A level watch that was reported, and that no call has found idle since, and whose file
 * is ready. The caller alone reads that. Or -1
 */
static int ready_level(unsigned int q)
{
	unsigned int c;
	int found = -1;

	for (c = 0; c < FILES; c++) {
		struct swatch *w = &S->watch[q][c];

		if (SHARED(c) || OWNER(c) != q || !w->listed)
			continue;
		w->listed = holds(&S->file[c]);
		if (w->listed)
			found = c;
	}
	return found;
}

static bool has_entry(unsigned int q, unsigned int c)
{
	struct kevent_ring *ring = S->queue[q].ring;
	uint64_t at = ring->ring_uidx;
	uint64_t end = __atomic_load_n(&ring->ring_kidx, __ATOMIC_ACQUIRE);

	for (; at < end; at++)
		if (ring->event[at & (SIZE - 1)].ptr == c)
			return true;
	return end - ring->ring_uidx == SIZE;
}

static void call(unsigned int q)
{
	struct kevent_ring *ring = S->queue[q].ring;
	const struct timespec ts = { .tv_nsec = 2000000 }, zero = {};
	int c = ready_level(q), ret;

	ret = kevent_wait(S->queue[q].fd, SIZE, (uint32_t)__atomic_load_n(
				  &ring->ring_kidx, __ATOMIC_ACQUIRE),
			  c < 0 ? &ts : &zero, 0, NULL);
	if (ret < 0)
		fail("kevent_wait() of queue %u returns %d", q, ret);
	/* An entry may have come between the look at the ring and the call. */
	if (c >= 0 && !has_entry(q, c)) {
		if (!ret)
			fail("queue %u: a call does not report file %d, which is ready in level mode",
			     q, c);
	}
}

static void *consumer_thread(void *arg)
{
	unsigned int q = (uintptr_t)arg;
	uint64_t random = S->seed * 31 + q + 7, start;

	while (!atomic_load(&S->stop)) {
		start = now_ns();
		while (!pop_one(q, &random))
			if (atomic_load(&S->stop) ||
			    now_ns() - start > SPIN_NS)
				break;
		call(q);
	}
	return NULL;
}

/* Changes. What queue 0 is notified of and does not want any more is for queue 1. */
static void *change_thread(void *arg)
{
	uint64_t random = S->seed * 13 + 5;
	unsigned int c;

	(void)arg;
	while (!atomic_load(&S->stop)) {
		c = next_random(&random) % FILES;
		if (!SHARED(c))
			request_one(OWNER(c), c, KEVENT_CTL_READY, 0);
		else
			request_one(0, c, KEVENT_CTL_MODIFY,
				    next_random(&random) % 2 ?
				    KEVENT_REQ_DISABLED : KEVENT_REQ_ET);
		usleep(next_random(&random) % 300);
	}
	for (c = 0; c < FILES; c++)
		if (SHARED(c))
			request_one(0, c, KEVENT_CTL_MODIFY,
				    KEVENT_REQ_DISABLED);
	return NULL;
}

/* Phases */

static void begin_phase(uint64_t *random)
{
	unsigned int q, c;

	for (c = 0; c < FILES; c++) {
		read_some(&S->file[c], true);
		atomic_store(&S->file[c].begun, 0);
		atomic_store(&S->file[c].tries, 0);
	}
	for (q = 0; q < QUEUES; q++)
		for (c = 0; c < FILES; c++) {
			struct swatch *w = &S->watch[q][c];

			if (!watches(q, c))
				continue;
			w->flags = next_random(random) % 2 ? KEVENT_REQ_ET : 0;
			if (request_one(q, c, KEVENT_CTL_MODIFY, w->flags))
				fail("MODIFY fails");
			atomic_store(&w->looks, 1);
			w->listed = false;
		}
	for (q = 0; q < QUEUES; q++) {
		while (pop_one(q, NULL))
			;
		for (c = 0; c < FILES; c++) {
			S->watch[q][c].listed = false;
			S->watch[q][c].entries = 0;
		}
	}
	S->files = 1 + next_random(random) % (FILES / WRITERS);
	S->rest = 1 + next_random(random) % 1000;
	atomic_store(&S->stop, false);
	atomic_fetch_add(&S->phase, 1);
}

static void run_phase(void)
{
	pthread_t writer[WRITERS - 1], consumer[QUEUES], change;
	uintptr_t i;

	for (i = 0; i < QUEUES; i++)
		pthread_create(&consumer[i], NULL, consumer_thread, (void *)i);
	pthread_create(&change, NULL, change_thread, NULL);
	for (i = 0; i < WRITERS - 1; i++)
		pthread_create(&writer[i], NULL, writer_thread, (void *)i);
	for (i = 0; i < WRITERS - 1; i++)
		pthread_join(writer[i], NULL);
	while (atomic_load(&S->done) != atomic_load(&S->phase))
		usleep(100);
	atomic_store(&S->stop, true);
	pthread_join(change, NULL);
	for (i = 0; i < QUEUES; i++)
		pthread_join(consumer[i], NULL);
}

static void take_all(unsigned int q)
{
	static const struct timespec zero;
	struct kevent_queue *queue = &S->queue[q];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		while (pop_one(q, NULL))
			;
		kevent_wait(queue->fd, SIZE, (uint32_t)queue->ring->ring_kidx,
			    &zero, 0, NULL);
	}
	while (pop_one(q, NULL))
		;
}

static void check_watch(unsigned int q, unsigned int c)
{
	struct swatch *w = &S->watch[q][c];
	struct sfile *f = &S->file[c];
	uint64_t most;

	if (SHARED(c) && !q)	/* disabled */
		return;
	if (f->begun && holds(f) && w->taken < f->begun)
		fail("queue %u: the newest write to file %u, %llu, is not reported; its newest entry was taken at %llu",
		     q, c, (unsigned long long)f->begun,
		     (unsigned long long)w->taken);
	most = f->tries + w->looks + 1;
	/* What others hand on is looked at. */
	if (SHARED(c))
		most += S->watch[0][c].looks;
	if (w->flags & KEVENT_REQ_ET && w->entries > most)
		fail("queue %u: %llu entries of file %u for %llu activities",
		     q, (unsigned long long)w->entries, c,
		     (unsigned long long)most);
}

static void end_phase(void)
{
	unsigned int q, c;

	for (q = 0; q < QUEUES; q++)
		take_all(q);
	for (q = 0; q < QUEUES; q++)
		for (c = 0; c < FILES; c++)
			if (watches(q, c))
				check_watch(q, c);
}

static void open_storm(uint64_t seed)
{
	unsigned int q, c;

	S = mmap(NULL, sizeof(*S), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	S->seed = seed;
	S->clock = 1;
	for (c = 0; c < FILES; c++)
		open_one(&S->file[c], (seed + c) / 3);
	for (q = 0; q < QUEUES; q++) {
		if (kevent_queue_init(&S->queue[q], calloc(1, KEVENT_RING_BYTES(
						SIZE)), SIZE, 0))
			fail("no queue");
		for (c = 0; c < FILES; c++)
			if (watches(q, c) &&
			    request_one(q, c, KEVENT_CTL_ADD, 0))
				fail("ADD fails");
	}
}

/* Returns how many entries were taken. */
uint64_t storm(uint64_t seed, unsigned int phases)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull | 1;
	pid_t pid;

	open_storm(seed);
	pid = fork();
	if (!pid)
		writer_process();
	while (phases--) {
		begin_phase(&random);
		run_phase();
		end_phase();
	}
	atomic_store(&S->over, true);
	waitpid(pid, NULL, 0);
	return S->entries;
}
