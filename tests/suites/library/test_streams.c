// SPDX-License-Identifier: GPL-2.0
/*
 * Streams of libkevent between processes, by calls at random
 *
 * Two processes share several streams. The model is what a pair of sockets does: each byte
 * follows from its position, a direction ends behind its last byte, and never before. All
 * waits have a limit: a wake-up that is lost fails the test. What both sides do step by
 * step is in libkevent/test/stream.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "helpers.h"

#define RING		16
#define STREAMS		4
#define MOST		100000u		/* bytes of one call */
#define QUOTA		600000u		/* bytes of one direction, at most */
#define ENDLESS		(1ull << 60)
#define RARELY		400		/* a leave in so many calls */
#define TURN		SIGUSR1		/* before each turn of a process that is stepped */

struct direction {
	_Atomic uint64_t	written, read;
	_Atomic bool		shut;
};

/* In memory that all processes share: [i][0] is from side 0. */
struct world {
	struct direction	dir[STREAMS][2];
	_Atomic uint64_t	joins;	/* times that a stream was left and joined */
};

struct part {
	struct kevent_stream	*s;
	struct direction	*in, *out;
	uint64_t		quota;
	bool			can_read, can_write, in_done, out_done, leaving;
};

struct side {
	struct world		*world;
	int			nr;		/* 0: has connected */
	int			sock[STREAMS][2];
	bool			kills;		/* the other one may be killed */
	bool			small;		/* few bytes: each is some instructions */
	unsigned int		turns;		/* of a process that is stepped, before that */
	uint64_t		seed;
	struct kevent_queue	q;
	struct kevent_streams	*set;
	struct part		part[STREAMS];
	unsigned char		buf[MOST];
};

static unsigned char byte_at(uint64_t pos)
{
	return (unsigned char)(pos * 7 + pos / 251);
}

/* --- calls --------------------------------------------------------------- */

static bool is_right(struct side *me, uint64_t pos, ssize_t len)
{
	ssize_t i;

	for (i = 0; i < len; i++)
		if (me->buf[i] != byte_at(pos + i))
			return false;
	return true;
}

static bool unexpected(const char *call, ssize_t ret)
{
	note("%s: %zd", call, ret);
	return false;
}

/* What a read has returned: false if a socket could not */
static bool account_read(struct side *me, struct part *p, ssize_t ret)
{
	uint64_t pos = p->in->read;

	if (ret > 0) {
		p->in->read = pos + ret;
		return is_right(me, pos, ret);
	}
	if (!ret) {
		p->in_done = true;
		return me->kills || (p->in->shut && p->in->written == pos);
	}
	if (ret == -EAGAIN)
		p->can_read = false;
	return ret == -EAGAIN || (me->kills && ret == -ECONNRESET) ||
	       unexpected("read", ret);
}

static bool account_write(struct side *me, struct part *p, ssize_t ret)
{
	if (ret > 0) {
		p->out->written += ret;
		return true;
	}
	if (ret == -EAGAIN)
		p->can_write = false;
	if (ret == -EPIPE)
		p->out_done = true;
	/* A peer that ends during the call, and has not read all, is ECONNRESET once. */
	return ret == -EAGAIN || (me->kills && (ret == -EPIPE || ret == -ECONNRESET)) ||
	       unexpected("write", ret);
}

static size_t some_size(struct side *me)
{
	static const uint32_t most[] = { 10, 1000, 9000, MOST };

	return next_random(&me->seed) % most[me->small ? 0 : next_random(&me->seed) % 4] + 1;
}

static bool read_some(struct side *me, struct part *p)
{
	size_t size = some_size(me), half = size / 3;
	struct iovec iov[3] = { { me->buf, half }, { NULL, 0 },
				{ me->buf + half, size - half } };
	ssize_t ret;

	if (!(next_random(&me->seed) % 8)) {
		ret = kevent_stream_peek(p->s, me->buf, size);
		if (ret > 0 && !is_right(me, p->in->read, ret))
			return false;
	}
	if (next_random(&me->seed) % 2)
		ret = kevent_stream_readv(p->s, iov, 3);
	else
		ret = kevent_stream_read(p->s, me->buf, size);
	return account_read(me, p, ret);
}

static size_t prepare(struct side *me, struct part *p)
{
	uint64_t pos = p->out->written, left = p->quota - pos;
	size_t i, len = some_size(me);

	if (len > left)
		len = left;
	for (i = 0; i < len; i++)
		me->buf[i] = byte_at(pos + i);
	return len;
}

static bool write_some(struct side *me, struct part *p)
{
	size_t len = prepare(me, p), half = len / 2;
	struct iovec iov[2] = { { me->buf, half }, { me->buf + half, len - half } };

	if (!len) {
		p->out->shut = true;
		p->out_done = true;
		return !kevent_stream_shutdown(p->s) || me->kills;
	}
	if (next_random(&me->seed) % 2)
		return account_write(me, p, kevent_stream_writev(p->s, iov, 2));
	return account_write(me, p, kevent_stream_write(p->s, me->buf, len));
}

/* --- leaving, and children ----------------------------------------------- */

/* The socket is the program's: it writes and reads some, and then joins again. */
static bool use_socket(struct side *me, struct part *p)
{
	uint64_t sent = p->out->written, got = p->in->read;
	int fd = kevent_stream_fd(p->s), ret;
	ssize_t len;

	if (!p->out_done) {
		len = send(fd, me->buf, prepare(me, p), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (len > 0)
			p->out->written += len;
	}
	if (!p->in_done) {
		len = recv(fd, me->buf, some_size(me), MSG_DONTWAIT);
		if (len >= 0 && !account_read(me, p, len))
			return false;
	}
	p->can_read = !p->in_done;
	p->can_write = !p->out_done;
	p->leaving = false;
	me->world->joins++;
	ret = kevent_stream_join(p->s, p->out->written - sent, p->in->read - got);
	return !ret || (ret == -EPIPE && p->out_done);
}

static bool leave_some(struct side *me, struct part *p)
{
	int ret = kevent_stream_leave(p->s);

	p->leaving = true;
	if (ret)
		return ret == -EAGAIN || (ret == -EPIPE && p->in_done);
	return use_socket(me, p);
}

/* A child has no streams, and takes none from its parent. */
static bool fork_some(struct part *p)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		status = kevent_stream_read(p->s, &status, 1) != -EXDEV ||
			 kevent_stream_write(p->s, &status, 1) != -EXDEV;
		kevent_stream_close(p->s);
		_exit(status);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

/* --- a side -------------------------------------------------------------- */

static bool act(struct side *me, struct part *p)
{
	uint32_t what = next_random(&me->seed);

	if (what % RARELY == 0 && !p->leaving)
		return leave_some(me, p);
	if (what % (4 * RARELY) == 1)
		return fork_some(p);
	if (p->can_read && !p->in_done && (what & 4096 || !p->can_write))
		return read_some(me, p);
	if (p->can_write && !p->out_done)
		return write_some(me, p);
	return true;
}

static bool has_work(const struct part *p)
{
	return (p->can_read && !p->in_done) || (p->can_write && !p->out_done);
}

/* Takes what has something to do. */
static bool take_ready(struct side *me)
{
	struct kevent_stream *s;
	struct part *p;

	while ((s = kevent_streams_next(me->set))) {
		p = &me->part[kevent_stream_user(s)];
		p->can_read = true;
		p->can_write = true;
		if (p->leaving && !leave_some(me, p))
			return false;
	}
	return true;
}

static bool await(struct side *me)
{
	struct timespec limit = ms_to_timespec(PATIENCE_MS * slowness);
	uint64_t start = now_ns();
	struct ukevent ev[4];
	int i, nr = kevent_streams_get(me->set, ev, 4, &limit);

	for (i = 0; i < nr; i++)
		kevent_stream_event(me->part[ev[i].ptr].s, &ev[i]);
	return nr >= 0 && now_ns() - start < PATIENCE_MS * slowness * 1000000ull &&
	       take_ready(me);
}

static bool is_done(const struct side *me)
{
	int i;

	for (i = 0; i < STREAMS; i++)
		if (!me->part[i].in_done || (!me->part[i].out_done && !me->kills))
			return false;
	return true;
}

static int open_side(struct side *me)
{
	static KEVENT_RING_STORAGE(RING) ring;
	struct part *p;
	int i, ret = kevent_queue_init(&me->q, &ring.ring, RING, 0);

	if (!ret)
		ret = kevent_streams_new(&me->set, &me->q, next_random(&me->seed) % 2 ?
					 KEVENT_LOOKS_LEARNED : 0);
	for (i = 0; i < STREAMS && !ret; i++) {
		p = &me->part[i];
		close(me->sock[i][!me->nr]);
		ret = kevent_stream_open(me->set, me->sock[i][me->nr],
					 me->nr ? 0 : KEVENT_STREAM_OFFER, i, &p->s);
		p->out = &me->world->dir[i][me->nr];
		p->in = &me->world->dir[i][!me->nr];
		p->quota = me->kills ? ENDLESS : next_random(&me->seed) % QUOTA;
		p->can_read = true;
		p->can_write = true;
	}
	return ret;
}

static struct part *find_work(struct side *me)
{
	uint32_t i, first = next_random(&me->seed);

	for (i = 0; i < STREAMS; i++)
		if (has_work(&me->part[(first + i) % STREAMS]))
			return &me->part[(first + i) % STREAMS];
	return NULL;
}

static bool act_until_done(struct side *me)
{
	struct part *p;

	while (!is_done(me)) {
		p = find_work(me);
		if (p ? !act(me, p) : !await(me))
			return false;
	}
	return true;
}

static int run_side(void *arg)
{
	struct side *me = arg;

	CHILD_MUST(open_side(me) == 0);
	CHILD_MUST(act_until_done(me));
	kevent_streams_free(me->set);
	return 0;
}

/* --- a side that is stepped ---------------------------------------------- */

/* What a process does between two stops, and the test between two of these */
static bool take_turn(struct side *me)
{
	struct part *p = &me->part[next_random(&me->seed) % STREAMS];
	const struct timespec now = {};
	struct ukevent ev[4];
	int i, nr;

	switch (next_random(&me->seed) % 8) {
	case 0:
		return leave_some(me, p);
	case 1:
		nr = kevent_streams_get(me->set, ev, 4, &now);
		for (i = 0; i < nr; i++)
			kevent_stream_event(me->part[ev[i].ptr].s, &ev[i]);
		return nr >= 0 && take_ready(me);
	case 2 ... 4:
		return p->in_done || read_some(me, p);
	default:
		return p->out_done || write_some(me, p);
	}
}

static int run_stepped(void *arg)
{
	struct side *me = arg;
	unsigned int i;

	CHILD_MUST(!ptrace(PTRACE_TRACEME, 0, 0, 0));
	CHILD_MUST(open_side(me) == 0);
	for (i = 0; i <= me->turns; i++) {
		raise(TURN);
		me->small = i == me->turns;
		CHILD_MUST(take_turn(me));
	}
	raise(TURN);
	return 0;
}

/* Returns the signal that it stops for, or 0. */
static int stops_for(pid_t pid)
{
	int status = 0;

	return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

/* Signals of others, as of a shell that stops all its jobs, are dropped. */
static void go_to_turn(pid_t pid)
{
	int sig;

	do {
		MUST_EQ(ptrace(PTRACE_CONT, pid, 0, 0), 0);
		sig = stops_for(pid);
		MUST(sig);
	} while (sig != TURN);
}

/* Makes @steps instructions of the turn. Returns how many there were. */
static unsigned int step(pid_t pid, unsigned int steps)
{
	unsigned int done;
	int sig = SIGTRAP;

	for (done = 0; done < steps && sig != TURN; done++) {
		MUST_EQ(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		sig = stops_for(pid);
		MUST(sig);
	}
	return done;
}

/* --- tests --------------------------------------------------------------- */

/* Some have a listener, and so share a page; the last one has none. */
static void connect_all(struct side *s)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);
	int i, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST_EQ(bind(fd, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	MUST_EQ(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	MUST_EQ(listen(fd, STREAMS), 0);
	for (i = 0; i < STREAMS; i++) {
		if (i == STREAMS - 1) {
			MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
					   s->sock[i]), 0);
			break;
		}
		s->sock[i][0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		MUST_EQ(connect(s->sock[i][0], (struct sockaddr *)&name, len), 0);
		s->sock[i][1] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		MUST(s->sock[i][1] >= 0);
	}
	close(fd);
}

static void start_sides(struct side *s, pid_t *pid)
{
	int i;

	connect_all(s);
	for (i = 0; i < 2; i++) {
		s->nr = i;
		s->seed = s->seed * 3 | 1;
		pid[i] = start_child(run_side, s);
	}
	for (i = 0; i < STREAMS; i++) {
		close(s->sock[i][0]);
		close(s->sock[i][1]);
	}
}

static struct world *new_world(void)
{
	void *mem = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(mem != MAP_FAILED);
	return mem;
}

static void random_calls_are_as_of_sockets(void)
{
	static struct side s;
	uint64_t start = now_ns(), joins = 0, bytes = 0, rounds;
	pid_t pid[2];
	int i;

	s.seed = test_seed();
	for (rounds = 0; storm_goes_on(start, joins); rounds++) {
		s.world = new_world();
		start_sides(&s, pid);
		for (i = 0; i < 2; i++)
			MUST_EQ(join_child(pid[i], 2 * PATIENCE_MS), 0);
		for (i = 0; i < STREAMS; i++) {
			MUST_EQ(s.world->dir[i][0].read, s.world->dir[i][0].written);
			MUST_EQ(s.world->dir[i][1].read, s.world->dir[i][1].written);
			bytes += s.world->dir[i][0].read + s.world->dir[i][1].read;
		}
		joins += s.world->joins;
		munmap(s.world, sizeof(*s.world));
	}
	note("%llu times, %llu MB, %llu joins", (unsigned long long)rounds,
	     (unsigned long long)bytes >> 20, (unsigned long long)joins);
}

static uint64_t all_written(const struct world *w, int side)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < STREAMS; i++)
		sum += w->dir[i][side].written;
	return sum;
}

/* The other side reads all that a write has returned for, and then the end. */
static void killed_side_loses_nothing(void)
{
	static struct side s;
	uint64_t start = now_ns(), kills, goal;
	int i, victim, status;
	pid_t pid[2];

	s.kills = true;
	s.seed = test_seed();
	for (kills = 0; storm_goes_on(start, kills > 4); kills++) {
		s.world = new_world();
		start_sides(&s, pid);
		victim = next_random(&s.seed) % 2;
		goal = next_random(&s.seed) % (next_random(&s.seed) % 2 ? 1000 : 2000000);
		while (all_written(s.world, victim) < goal &&
		       !waitpid(pid[victim], &status, WNOHANG))
			sched_yield();
		MUST_EQ(kill(pid[victim], SIGKILL), 0);
		MUST_EQ(waitpid(pid[victim], &status, 0), pid[victim]);
		MUST(WIFSIGNALED(status));
		MUST_EQ(join_child(pid[!victim], 2 * PATIENCE_MS), 0);
		for (i = 0; i < STREAMS; i++)
			MUST(s.world->dir[i][victim].read >=
			     s.world->dir[i][victim].written);
		munmap(s.world, sizeof(*s.world));
	}
	note("%llu kills", (unsigned long long)kills);
}

/* The test is the other side of a process that it kills at an instruction of its last turn. */
static unsigned int kill_after(struct side *s, unsigned int steps)
{
	static struct side me;
	unsigned int i, done;
	pid_t pid;

	s->world = new_world();
	connect_all(s);
	me = *s;
	me.nr = !s->nr;
	me.kills = true;
	me.seed = s->seed * 3 | 1;
	pid = start_child(run_stepped, s);
	MUST_EQ(stops_for(pid), TURN);
	MUST_EQ(open_side(&me), 0);
	for (i = 0; i < STREAMS; i++)
		close(s->sock[i][s->nr]);
	for (i = 0; i < s->turns; i++) {
		MUST(take_turn(&me));
		go_to_turn(pid);
	}
	done = step(pid, steps);
	MUST_EQ(kill(pid, SIGKILL), 0);
	MUST_EQ(stops_for(pid), 0);
	MUST(act_until_done(&me));
	for (i = 0; i < STREAMS; i++)
		MUST(s->world->dir[i][s->nr].read >= s->world->dir[i][s->nr].written);
	kevent_streams_free(me.set);
	kevent_queue_close(&me.q);
	munmap(s->world, sizeof(*s->world));
	return done;
}

/* After each instruction of a turn: it is the same each time, as its seed is. */
static unsigned int kill_after_each(struct side *s, uint64_t start)
{
	unsigned int steps = 0;

	while (kill_after(s, steps) == steps && storm_goes_on(start, true))
		steps++;
	return steps;
}

/* A turn in so many is stepped through, and the others are killed somewhere. */
#define WHOLE		100

static void killed_at_each_instruction_it_loses_nothing(void)
{
	static struct side s;
	uint64_t start = now_ns(), seed = test_seed();
	unsigned int kills, whole = 0;

	for (kills = 0; storm_goes_on(start, kills > 4);) {
		s.nr = next_random(&seed) % 2;
		s.turns = next_random(&seed) % 30;
		s.seed = next_random(&seed) | 1;
		if (next_random(&seed) % WHOLE == 0) {
			kills += kill_after_each(&s, start);
			whole++;
		} else {
			kill_after(&s, next_random(&seed) % (1u << next_random(&seed) % 14));
			kills++;
		}
	}
	note("%u kills, %u turns were stepped through", kills, whole);
}

static const struct test_case cases[] = {
	TEST_LIMIT(random_calls_are_as_of_sockets, 30),
	TEST_LIMIT(killed_side_loses_nothing, 30),
	TEST_LIMIT(killed_at_each_instruction_it_loses_nothing, 30),
	{}
};

const struct test_suite streams_suite = {
	.name = "streams",
	.cases = cases,
};
