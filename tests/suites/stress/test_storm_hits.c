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
	int			fd[2];
	bool			(*consume)(struct storm *s);
	bool			must, lost;	/* an event */
	_Atomic unsigned long	bytes;		/* whose write() has returned */
	_Atomic unsigned long	read;
};

static void duel_put(struct storm *s)
{
	struct duel *d = s->world;

	storm_expect(s, write(d->fd[1], "", 1) == 1);
	atomic_fetch_add(&d->bytes, 1);
}

static void await_read(struct storm *s, unsigned long bytes)
{
	struct duel *d = s->world;

	while (atomic_load(&d->read) < bytes && !atomic_load(&s->stop))
		sched_yield();
}

static void write_two(struct stormer *me)
{
	await_read(me->storm, 2 * me->acts);
	duel_put(me->storm);
	if (next_random(&me->rnd) % 4)
		spin(next_random(&me->rnd) % SPIN);
	else
		await_read(me->storm, 2 * me->acts + 1);
	duel_put(me->storm);
}

static bool pop_and_look(struct storm *s)
{
	struct duel *d = s->world;
	struct ukevent ev;

	if (!kevent_ring_next(s->q.ring, s->q.size, &ev))
		return false;
	spin(next_random(&s->seed) % SPIN);
	atomic_fetch_add(&d->read, take_bytes(d->fd[0]));
	return true;
}

/* The wrong order of a consumer: the second byte comes in between. */
static bool look_and_pop(struct storm *s)
{
	struct duel *d = s->world;
	struct ukevent ev;
	unsigned long read;

	if (!kevent_ring_count(s->q.ring, s->q.size))
		return false;
	atomic_fetch_add(&d->read, take_bytes(d->fd[0]));
	read = atomic_load(&d->read);
	while (read % 2 && atomic_load(&d->bytes) <= read)
		sched_yield();
	return kevent_ring_next(s->q.ring, s->q.size, &ev);
}

/* The time is over when an event is lost. */
static void consume_one(struct storm *s)
{
	struct duel *d = s->world;
	unsigned long bytes = atomic_load(&d->bytes);

	if (d->lost || d->consume(s))
		return;
	/* An event that was not stored for lack of memory is not lost. */
	d->lost = atomic_load(&d->read) < bytes && !wait_ring(&s->q, s->q.size, 0) &&
		  !d->consume(s);
	if (d->lost)
		s->until = 0;
}

/* An event is lost, if one must be, or there was a round. */
static bool has_seen_it(const struct storm *s)
{
	const struct duel *d = s->world;

	return d->lost || (!d->must && atomic_load(&d->read) > 1);
}

static void run_duel(bool (*consume)(struct storm *s), bool must)
{
	struct duel d = { .consume = consume, .must = must };
	struct storm s = { .world = &d, .enough = has_seen_it };

	open_queue(&s.q, 8);
	open_pipe(d.fd);
	MUST_EQ(add_pipe(s.q.fd, d.fd[0], RECV, ET, 0), 0);
	storm_begin(&s);
	storm_helpers(&s, 1, write_two);
	storm_run(&s, consume_one);
	storm_end(&s, NULL);
	note("%lu rounds", atomic_load(&d.read) / 2);
	CHECK(has_seen_it(&s));
	CHECK_EQ(d.lost, must);
	storm_close(&s, 1);
}

static void no_event_is_lost_between_pop_and_store(void)
{
	run_duel(pop_and_look, false);
}

/* Proves that the test above can fail. */
static void event_is_lost_by_looking_before_popping(void)
{
	run_duel(look_and_pop, true);
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

/* In memory that they share */
struct guests {
	struct storm	storm;
	int		memfd;
	int		fd[ALL][2];
	unsigned int	nr;
	_Atomic long	by_guests;
};

static void write_pipes(struct guests *g, unsigned int first, unsigned int end)
{
	unsigned int i;

	for (i = first; i < end; i++)
		if (is_empty(g->fd[i][0]))
			storm_expect(&g->storm, write(g->fd[i][1], "", 1) == 1);
	sched_yield();
}

static void write_ours(struct stormer *me)
{
	write_pipes(me->storm->world, 0, OURS);
}

static void *write_theirs(void *arg)
{
	for (;;)
		write_pipes(arg, OURS, ALL);
	return NULL;
}

static bool guest_takes(struct guests *g, struct queue *q)
{
	struct ukevent ev;
	char buf[16];

	if (next_event(q, &ev, 1) != 1)
		return false;
	storm_expect(&g->storm, ev.ptr < ALL && read(g->fd[ev.ptr][0], buf, sizeof(buf)) == 1);
	atomic_fetch_add(&g->storm.taken, 1);
	return true;
}

static int leave(struct guests *g, bool exec)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (!exec)
		return 0;
	dup2(fd, STDOUT_FILENO);
	execl("/proc/self/exe", "kevent-tests", "--list", NULL);
	storm_expect(&g->storm, false);
	return 1;
}

static int be_guest(void *arg)
{
	struct guests *g = arg;
	struct queue q = g->storm.q;
	unsigned int left = next_random(&g->storm.seed) % 200;
	bool exec = next_random(&g->storm.seed) % 2;
	pthread_t thread;

	q.ring = mmap(NULL, q.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      g->memfd, 0);
	CHILD_MUST(q.ring != MAP_FAILED && q.ring != g->storm.q.ring);
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

static bool guests_took(const struct storm *s)
{
	const struct guests *g = s->world;

	return g->by_guests;
}

static struct guests *open_guests(void)
{
	struct guests *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct queue *q = &g->storm.q;
	unsigned int i;

	MUST(g != MAP_FAILED);
	g->storm.world = g;
	g->storm.enough = guests_took;
	*q = (struct queue){ .size = 16, .bytes = 4096 };
	g->memfd = memfd_create("ring", MFD_CLOEXEC);
	MUST_EQ(ftruncate(g->memfd, q->bytes), 0);
	q->ring = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
	MUST(q->ring != MAP_FAILED);
	q->fd = kevent_init(q->ring, q->size, 0);
	MUST(q->fd >= 0);
	for (i = 0; i < ALL; i++) {
		open_pipe(g->fd[i]);
		MUST_EQ(add_pipe(q->fd, g->fd[i][0], RECV, ET, i), 0);
	}
	return g;
}

static void have_a_guest(struct storm *s)
{
	struct guests *g = s->world;
	uint64_t start = now_ns();
	pid_t pid;
	int status;

	next_random(&s->seed);
	pid = start_child(be_guest, g);
	while (!waitpid(pid, &status, WNOHANG)) {
		guest_takes(g, &s->q);
		MUST(now_ns() - start < PATIENCE_MS * slowness * 1000000ull);
	}
	MUST_EQ(status, 0);
	g->nr++;
}

static void attached_processes_come_and_go(void)
{
	struct guests *g = open_guests();
	struct storm *s = &g->storm;
	unsigned int i;

	storm_begin(s);
	storm_helpers(s, 1, write_ours);
	storm_run(s, have_a_guest);
	storm_end(s, NULL);
	while (guest_takes(g, &s->q))
		;
	for (i = 0; i < ALL; i++)
		CHECK(is_empty(g->fd[i][0]));
	CHECK_EQ(fdinfo(s->q.fd, "kevent-delivered"), s->taken);
	CHECK_EQ(fdinfo(s->q.fd, "kevent-ready"), 0);
	CHECK(guests_took(s));
	note("%u processes, %ld of %ld events", g->nr, g->by_guests, s->taken);
	storm_close(s, ALL);
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
