// SPDX-License-Identifier: GPL-2.0
/*
 * Races of the wake-up that stores an event, with a time budget
 *
 *	consumers	that pop while it decides whether to store
 *	control calls	on the watch that was woken, and on others
 *	close		of the queue
 *	processes	that attach the ring, exit and exec
 *
 * In all but the first, a writer writes a byte into a pipe, or a socket, when that
 * is empty. So an event without a byte came twice, and the event of a byte that
 * stays was lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "storm.h"

#define SPIN		2000

static bool is_empty(int fd)
{
	int nr = 1;

	return !ioctl(fd, FIONREAD, &nr) && !nr;
}

/* Files to write to at [1] and to read from at [0] */
static int make_pair(uint32_t type, int fd[2], int flags)
{
	if (type == KEVENT_PIPE)
		return pipe2(fd, O_CLOEXEC | flags);
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
			  (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0), 0, fd);
}

static int add_pair(int kq, uint32_t type, int fd, uint32_t flags,
		    uint64_t user)
{
	if (type == KEVENT_PIPE)
		return add_pipe(kq, fd, RECV, flags, user);
	return add_socket(kq, fd, RECV, flags, user);
}

/*
 * Pop and store. Of two bytes, the second comes while the consumer handles the
 * event of the first, or right after it has read that byte. When the ring is
 * empty, every byte must have been read whose write() had returned before.
 */

struct duel {
	struct queue		q;
	int			fd[2];
	uint64_t		rnd, pause;	/* of the writer, the consumer */
	_Atomic unsigned long	bytes;		/* whose write() has returned */
	_Atomic unsigned long	read;
	_Atomic bool		stop;
};

static bool duel_put(struct duel *d)
{
	if (write(d->fd[1], "", 1) != 1)
		return false;
	atomic_fetch_add(&d->bytes, 1);
	return true;
}

static void await_read(struct duel *d, unsigned long bytes)
{
	while (atomic_load(&d->read) < bytes && !atomic_load(&d->stop))
		sched_yield();
}

static long duel_writer(void *arg)
{
	struct duel *d = arg;
	unsigned long written;

	for (written = 0; !atomic_load(&d->stop); written += 2) {
		await_read(d, written);
		if (!duel_put(d))
			return -errno;
		if (next_random(&d->rnd) % 4)
			spin(next_random(&d->rnd) % SPIN);
		else
			await_read(d, written + 1);
		if (!duel_put(d))
			return -errno;
	}
	return 0;
}

static bool pop_and_look(struct duel *d)
{
	struct ukevent ev;

	if (!kevent_ring_next(d->q.ring, d->q.size, &ev))
		return false;
	spin(next_random(&d->pause) % SPIN);
	atomic_fetch_add(&d->read, take_bytes(d->fd[0]));
	return true;
}

/* The wrong order of a consumer: the second byte comes in between. */
static bool look_and_pop(struct duel *d)
{
	struct ukevent ev;
	unsigned long read;

	if (!kevent_ring_count(d->q.ring, d->q.size))
		return false;
	atomic_fetch_add(&d->read, take_bytes(d->fd[0]));
	read = atomic_load(&d->read);
	while (read % 2 && atomic_load(&d->bytes) <= read)
		sched_yield();
	return kevent_ring_next(d->q.ring, d->q.size, &ev);
}

/*
 * Runs until an event is lost, if one @must be, or the time is over; returns the number of
 * good rounds.
 */
static unsigned long consume_duel(struct duel *d, bool (*consume)(struct duel *d),
				  bool must, bool *lost)
{
	const uint64_t start = now_ns();
	unsigned long bytes;

	*lost = false;
	while (storm_goes_on(start, !must && atomic_load(&d->read) > 1) && !*lost) {
		bytes = atomic_load(&d->bytes);
		if (consume(d))
			continue;
		/*
		 * An event that was not stored for lack of memory is not lost.
		 */
		*lost = atomic_load(&d->read) < bytes &&
			!wait_ring(&d->q, d->q.size, 0) && !consume(d);
	}
	return atomic_load(&d->read) / 2;
}

static unsigned long run_duel(bool (*consume)(struct duel *d), bool must, bool *lost)
{
	const uint64_t seed = test_seed();
	struct duel d = { .rnd = seed, .pause = ~seed | 1 };
	struct actor a;
	unsigned long rounds;

	open_queue(&d.q, 8);
	open_pipe(d.fd);
	MUST_EQ(add_pipe(d.q.fd, d.fd[0], RECV, ET, 0), 0);
	start_actor(&a, duel_writer, &d);
	rounds = consume_duel(&d, consume, must, lost);
	atomic_store(&d.stop, true);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	note("%lu rounds", rounds);
	close_queue(&d.q);
	return rounds;
}

static void no_event_is_lost_between_pop_and_store(void)
{
	bool lost;

	CHECK(run_duel(pop_and_look, false, &lost) > 0);
	CHECK(!lost);
}

/* Proves that the test above can fail. */
static void event_is_lost_by_looking_before_popping(void)
{
	bool lost;

	run_duel(look_and_pop, true, &lost);
	CHECK(lost);
}

/*
 * Control calls. The calls on each kind of watch, and what the test expects:
 *
 *	stable		nothing		each byte is one event
 *	changed		MODIFY, REMOVE	each byte is at least one event
 *			and ADD
 *	churned		that, and	events carry a value of a watch
 *			close, dup2
 */

#define STABLE		6
#define CHANGED		4
#define COUNTED		(STABLE + CHANGED)
#define CHURNED		4
#define PIPES		(COUNTED + CHURNED)
#define WRITERS		2
#define CONSUMERS	2

struct pairs {
	uint32_t	type;
	int		fd[PIPES][2];
	_Atomic long	repeated;
};

static void write_where_empty(struct stormer *me)
{
	struct pairs *p = me->storm->world;
	unsigned int i;

	for (i = me->nr; i < COUNTED; i += WRITERS)
		if (is_empty(p->fd[i][0]))
			storm_expect(me->storm, write(p->fd[i][1], "", 1) == 1);
	sched_yield();
}

static void account(struct storm *s, const struct ukevent *ev)
{
	struct pairs *p = s->world;
	char buf[16];
	long len;

	if (ev->ptr >= PIPES || ev->type != p->type ||
	    !(ev->ret_flags & KEVENT_RET_DONE)) {
		storm_expect(s, false);
		return;
	}
	/* An empty socket is filled again while a thread asks for more data. */
	len = read(p->fd[ev->ptr][0], buf,
		   ev->ptr < COUNTED ? 1 : sizeof(buf));
	if (ev->ptr < STABLE)
		storm_expect(s, len == 1);
	else if (ev->ptr < COUNTED && len != 1)
		atomic_fetch_add(&p->repeated, 1);
}

static void control_pair(struct storm *s, uint32_t cmd, unsigned int i,
			 uint32_t flags)
{
	struct pairs *p = s->world;
	struct ukevent ev;

	kevent_set_pipe(&ev, p->fd[i][0], RECV, flags, i);
	ev.type = p->type;
	if (kevent_ctl_one(s->q.fd, cmd, &ev) == 1 && cmd == KEVENT_CTL_ADD)
		storm_account(s, &ev);
}

static uint32_t some_mode(uint64_t *rnd)
{
	static const uint32_t modes[] = {
		0, ET, ET | KEVENT_REQ_DISPATCH, KEVENT_REQ_DISPATCH,
		KEVENT_REQ_LAST_CHECK, ET | KEVENT_REQ_WAKEUP_ALL,
		KEVENT_REQ_DISABLED, ET | KEVENT_REQ_DISABLED,
	};

	return modes[next_random(rnd) % ARRAY_SIZE(modes)];
}

static void change(struct stormer *me)
{
	unsigned int i = STABLE + next_random(&me->rnd) % CHANGED;

	if (next_random(&me->rnd) % 4) {
		control_pair(me->storm, KEVENT_CTL_MODIFY, i, some_mode(&me->rnd));
		return;
	}
	control_pair(me->storm, KEVENT_CTL_REMOVE, i, 0);
	control_pair(me->storm, KEVENT_CTL_ADD, i, some_mode(&me->rnd));
}

/* Replaces a watched pair by a new one. */
static void replace(struct pairs *p, unsigned int i)
{
	int fd[2];

	if (make_pair(p->type, fd, O_NONBLOCK))
		return;
	dup2(fd[0], p->fd[i][0]);
	dup2(fd[1], p->fd[i][1]);
	close(fd[0]);
	close(fd[1]);
}

static void churn(struct stormer *me)
{
	unsigned int i = COUNTED + next_random(&me->rnd) % CHURNED;
	struct pairs *p = me->storm->world;

	switch (next_random(&me->rnd) % 8) {
	case 0:
		replace(p, i);
		break;
	case 1:
		control_pair(me->storm, KEVENT_CTL_REMOVE, i, 0);
		break;
	case 2:
		control_pair(me->storm, KEVENT_CTL_MODIFY, i, some_mode(&me->rnd));
		break;
	case 3 ... 4:
		control_pair(me->storm, KEVENT_CTL_ADD, i, some_mode(&me->rnd) |
			     (i & 1 ? KEVENT_REQ_ONESHOT : 0));
		break;
	default:
		/* EAGAIN and EPIPE count as success. */
		if (write(p->fd[i][1], "", 1) < 0)
			break;
	}
}

static void open_pairs(struct pairs *p, struct storm *s)
{
	unsigned int i;

	signal(SIGPIPE, SIG_IGN);
	open_queue(&s->q, 8);
	for (i = 0; i < PIPES; i++) {
		MUST_EQ(make_pair(p->type, p->fd[i], O_NONBLOCK), 0);
		MUST_EQ(add_pair(s->q.fd, p->type, p->fd[i][0], ET, i), 0);
	}
}

static void race_control_calls(uint32_t type)
{
	struct pairs p = { .type = type };
	struct storm s = { .world = &p, .account = account };
	struct stormer *changer;
	unsigned int i;

	open_pairs(&p, &s);
	storm_begin(&s);
	storm_workers(&s, WRITERS, write_where_empty);
	changer = storm_workers(&s, 1, change);
	storm_workers(&s, 1, churn);
	storm_helpers(&s, CONSUMERS, storm_takes);
	storm_run(&s, NULL);
	for (i = STABLE; i < COUNTED; i++)
		control_pair(&s, KEVENT_CTL_MODIFY, i, ET);
	for (i = COUNTED; i < PIPES; i++)
		control_pair(&s, KEVENT_CTL_REMOVE, i, 0);
	storm_end(&s, NULL);
	storm_drain(&s);
	for (i = 0; i < COUNTED; i++)
		CHECK(is_empty(p.fd[i][0]));
	CHECK_EQ(fdinfo(s.q.fd, "kevent-ready"), 0);
	note("%ld events, %ld of them repeated, %lu changes", s.taken,
	     p.repeated, changer->acts);
	storm_close(&s, COUNTED);
}

static void control_calls_race_hits(void)
{
	race_control_calls(KEVENT_PIPE);
}

static void control_calls_race_hits_of_sockets(void)
{
	race_control_calls(KEVENT_SOCKET);
}

/*
 * Close of the queue: writers continue, and nothing is stored after close() has
 * returned.
 */

struct closing {
	struct queue		q;
	uint32_t		type;
	int			fd[WRITERS][2];
	_Atomic unsigned long	rounds[WRITERS];
	uint64_t		round, events;
};

static void write_and_read(struct stormer *me)
{
	struct closing *c = me->storm->world;
	char byte;

	storm_expect(me->storm, write(c->fd[me->nr][1], "", 1) == 1 &&
				read(c->fd[me->nr][0], &byte, 1) == 1);
	atomic_fetch_add(&c->rounds[me->nr], 1);
}

static void await_rounds(struct closing *c)
{
	unsigned long was[WRITERS];
	uint64_t start = now_ns();
	unsigned int i;

	for (i = 0; i < WRITERS; i++)
		was[i] = atomic_load(&c->rounds[i]);
	for (i = 0; i < WRITERS; i++)
		while (atomic_load(&c->rounds[i]) < was[i] + 2)
			MUST(now_ns() - start <
			     PATIENCE_MS * slowness * 1000000ull);
}

static void open_and_close(struct storm *s)
{
	struct closing *c = s->world;
	unsigned int i, taken, nr = next_random(&s->seed) % 30;
	struct ukevent ev;
	uint64_t kidx;

	open_queue(&c->q, 8);
	for (i = 0; i < WRITERS; i++)
		MUST(add_pair(c->q.fd, c->type, c->fd[i][0], ET,
			      c->round + i) == 0);
	for (taken = 0; taken < nr; taken++) {
		MUST_EVENT(&c->q, &ev);
		MUST(ev.ptr - c->round < WRITERS);
	}
	CHECK_EQ(close(c->q.fd), 0);
	kidx = c->q.ring->ring_kidx;
	CHECK(kidx - taken <= c->q.size);
	await_rounds(c);
	CHECK_EQ(c->q.ring->ring_kidx, kidx);
	munmap(c->q.ring, c->q.bytes);
	c->events += kidx;
	c->round += WRITERS;
}

static void race_close(uint32_t type)
{
	struct closing c = { .type = type };
	struct storm s = { .world = &c };
	unsigned int i;

	for (i = 0; i < WRITERS; i++)
		MUST_EQ(make_pair(type, c.fd[i], 0), 0);
	storm_begin(&s);
	storm_helpers(&s, WRITERS, write_and_read);
	storm_run(&s, open_and_close);
	storm_end(&s, NULL);
	CHECK_EQ(s.wrong, 0);
	note("%llu queues, %llu events", (unsigned long long)c.round / WRITERS,
	     (unsigned long long)c.events);
}

static void close_of_the_queue_races_hits(void)
{
	race_close(KEVENT_PIPE);
}

static void close_of_the_queue_races_hits_of_sockets(void)
{
	race_close(KEVENT_SOCKET);
}

/*
 * Processes that attach the ring, write and consume, and exit or exec while
 * another of their threads writes
 */

#define OURS	4		/* pipes to which the first process writes */
#define ALL	8

struct guests {
	struct queue	q;
	int		memfd;
	int		fd[ALL][2];
	uint64_t	rnd;
	_Atomic bool	stop;
	_Atomic long	wrong, taken, by_guests;
};

static void *write_pipes(struct guests *g, unsigned int first, unsigned int end)
{
	unsigned int i;

	while (!atomic_load(&g->stop)) {
		for (i = first; i < end; i++)
			if (is_empty(g->fd[i][0]) &&
			    write(g->fd[i][1], "", 1) != 1)
				atomic_fetch_add(&g->wrong, 1);
		sched_yield();
	}
	return NULL;
}

static long write_ours(void *arg)
{
	write_pipes(arg, 0, OURS);
	return 0;
}

static void *write_theirs(void *arg)
{
	return write_pipes(arg, OURS, ALL);
}

static bool guest_takes(struct guests *g, struct queue *q)
{
	struct ukevent ev;
	char buf[16];

	if (next_event(q, &ev, 1) != 1)
		return false;
	if (ev.ptr >= ALL || read(g->fd[ev.ptr][0], buf, sizeof(buf)) != 1)
		atomic_fetch_add(&g->wrong, 1);
	atomic_fetch_add(&g->taken, 1);
	return true;
}

static int leave(struct guests *g, bool exec)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (!exec)
		return 0;
	dup2(fd, STDOUT_FILENO);
	execl("/proc/self/exe", "kevent-tests", "--list", NULL);
	atomic_fetch_add(&g->wrong, 1);
	return 1;
}

static int be_guest(void *arg)
{
	struct guests *g = arg;
	struct queue q = g->q;
	unsigned int left = next_random(&g->rnd) % 200;
	bool exec = next_random(&g->rnd) % 2;
	pthread_t thread;

	q.ring = mmap(NULL, q.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      g->memfd, 0);
	CHILD_MUST(q.ring != MAP_FAILED && q.ring != g->q.ring);
	CHILD_MUST(!pthread_create(&thread, NULL, write_theirs, g));
	CHILD_MUST(!attach_ring(&q));
	while (left) {
		if (!guest_takes(g, &q))
			continue;
		atomic_fetch_add(&g->by_guests, 1);
		left--;
	}
	return leave(g, exec);
}

static struct guests *open_guests(void)
{
	struct guests *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	MUST(g != MAP_FAILED);
	g->rnd = test_seed();
	g->q = (struct queue){ .size = 16, .bytes = 4096 };
	g->memfd = memfd_create("ring", MFD_CLOEXEC);
	MUST_EQ(ftruncate(g->memfd, g->q.bytes), 0);
	g->q.ring = mmap(NULL, g->q.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 g->memfd, 0);
	MUST(g->q.ring != MAP_FAILED);
	g->q.fd = kevent_init(g->q.ring, g->q.size, 0);
	MUST(g->q.fd >= 0);
	for (i = 0; i < ALL; i++) {
		open_pipe(g->fd[i]);
		MUST_EQ(add_pipe(g->q.fd, g->fd[i][0], RECV, ET, i), 0);
	}
	return g;
}

static void have_a_guest(struct guests *g)
{
	uint64_t start = now_ns();
	pid_t pid;
	int status;

	next_random(&g->rnd);
	pid = start_child(be_guest, g);
	while (!waitpid(pid, &status, WNOHANG)) {
		guest_takes(g, &g->q);
		MUST(now_ns() - start < PATIENCE_MS * slowness * 1000000ull);
	}
	MUST_EQ(status, 0);
}

static void attached_processes_come_and_go(void)
{
	struct guests *g = open_guests();
	uint64_t start = now_ns();
	unsigned int i, nr = 0;
	struct actor a;

	start_actor(&a, write_ours, g);
	for (; storm_goes_on(start, g->by_guests); nr++)
		have_a_guest(g);
	atomic_store(&g->stop, true);
	join_actor(&a, PATIENCE_MS);
	while (guest_takes(g, &g->q))
		;
	CHECK_EQ(g->wrong, 0);
	for (i = 0; i < ALL; i++)
		CHECK(is_empty(g->fd[i][0]));
	CHECK_EQ(fdinfo(g->q.fd, "kevent-delivered"), g->taken);
	CHECK_EQ(fdinfo(g->q.fd, "kevent-ready"), 0);
	CHECK(g->by_guests > 0);
	note("%u processes, %ld of %ld events", nr, g->by_guests, g->taken);
	close_queue(&g->q);
}

static const struct test_case cases[] = {
	TEST_LIMIT(no_event_is_lost_between_pop_and_store, 30),
	TEST_LIMIT(event_is_lost_by_looking_before_popping, 30),
	TEST_LIMIT(control_calls_race_hits, 30),
	TEST_LIMIT(control_calls_race_hits_of_sockets, 30),
	TEST_LIMIT(close_of_the_queue_races_hits, 30),
	TEST_LIMIT(close_of_the_queue_races_hits_of_sockets, 30),
	TEST_LIMIT(attached_processes_come_and_go, 30),
	{}
};

const struct test_suite storm_hits_suite = {
	.name = "storm_hits",
	.cases = cases,
};
