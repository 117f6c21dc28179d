// SPDX-License-Identifier: GPL-2.0
/*
 * The ring's memory goes away and comes back while wake-ups store events there
 *
 *	two threads	write to pipes: hits while the memory is there
 *	a process	writes to pipes: misses
 *	main		consumes. At random it takes the memory away, waits until
 *			each pipe has a pending event, brings the memory back
 *			and takes these events
 *
 * A byte is written after the previous one has been read, so each is one event.
 * The test counts them: an event without a byte came twice, and for a byte without
 * an event the event was lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "helpers.h"

#define SLOTS		128	/* 5248 bytes: one entry is on both pages */
#define BYTES		8192
#define WRITERS		2
#define PER_WRITER	8
#define INSIDE		(WRITERS * PER_WRITER)
#define NR		(INSIDE + 4)

/* Shared with the process that writes */
struct board {
	_Atomic uint64_t	sent[NR];	/* bytes, whose write() returned */
	_Atomic uint64_t	seen[NR];	/* events, whose byte was read */
	_Atomic uint32_t	idle[WRITERS + 1];	/* futexes */
	_Atomic bool		stop;
	_Atomic long		wrong;
};

struct away {
	const struct away_case	*c;
	/* What must have happened, if there is anything: the storm goes on until then. */
	bool			(*enough)(const struct away *a);
	struct queue		q;
	struct board		*board;
	int			memfd;
	int			fd[NR][2];
	uint64_t		rnd;
	uint64_t		taken;
	uint64_t		lost;
	unsigned int		times;
	uint64_t		popped;		/* before the file was cut */
	unsigned int		broken;
	struct kevent_ring	*home;		/* where the kernel has it */
	char			*elsewhere;
	int			uffd, hangup[2];
};

/*
 * @go:		take the memory away
 * @look:	check what calls return; then every pipe has an event
 * @back:	bring it back
 */
struct away_case {
	void	(*go)(struct away *a);
	void	(*look)(struct away *a);
	void	(*back)(struct away *a);
};

struct writer {
	struct actor	actor;
	struct away	*a;
	unsigned int	first, nr;
};

/* Writers */

static bool write_some(struct writer *w, uint64_t *sent)
{
	struct board *b = w->a->board;
	bool some = false;
	unsigned int i;

	for (i = w->first; i < w->first + w->nr; i++) {
		if (sent[i] != atomic_load(&b->seen[i]))
			continue;
		some = true;
		if (write(w->a->fd[i][1], "", 1) != 1)
			atomic_fetch_add(&b->wrong, 1);
		atomic_store(&b->sent[i], ++sent[i]);
	}
	return some;
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	syscall(__NR_futex, word, op, value, NULL, NULL, 0);
}

static long run_writer(void *arg)
{
	struct writer *w = arg;
	_Atomic uint32_t *idle = &w->a->board->idle[w->first / PER_WRITER];
	uint64_t sent[NR] = {};

	while (!atomic_load(&w->a->board->stop)) {
		atomic_store(idle, 1);
		if (write_some(w, sent))
			atomic_store(idle, 0);
		else
			futex(idle, FUTEX_WAIT, 1);
	}
	return 0;
}

static void rouse(struct board *b, unsigned int writer)
{
	if (atomic_exchange(&b->idle[writer], 0))
		futex(&b->idle[writer], FUTEX_WAKE, 1);
}

static int write_outside(void *arg)
{
	return run_writer(arg);
}

/* The event of each pipe is in the ring or in the kernel. */
static bool all_under_way(struct board *b)
{
	unsigned int i;

	for (i = 0; i < NR; i++)
		if (atomic_load(&b->sent[i]) != atomic_load(&b->seen[i]) + 1)
			return false;
	return true;
}

static bool await_all_under_way(struct board *b)
{
	uint64_t start = now_ns();

	/* Once writers stop, some events may not come. */
	while (!all_under_way(b) && !atomic_load(&b->stop)) {
		if (now_ns() - start > PATIENCE_MS * slowness * 1000000ull)
			return false;
		sched_yield();
	}
	return true;
}

/* Consumer */

static bool read_noted(struct away *a, unsigned int i)
{
	char buf[16];

	if (read(a->fd[i][0], buf, sizeof(buf)) != 1)
		return false;
	atomic_fetch_add(&a->board->seen[i], 1);
	rouse(a->board, i / PER_WRITER);
	return true;
}

static void take_event(struct away *a, const struct ukevent *ev)
{
	a->taken++;
	if (ev->ptr >= NR || ev->id.raw[0] != (uint32_t)a->fd[ev->ptr][0] ||
	    ev->ret_data[0] != RECV || ev->ret_flags != KEVENT_RET_DONE ||
	    !read_noted(a, ev->ptr))
		atomic_fetch_add(&a->board->wrong, 1);
}

static void take_some(struct away *a, unsigned int nr)
{
	struct ukevent ev;

	while (nr--) {
		MUST_EVENT(&a->q, &ev);
		take_event(a, &ev);
	}
}

static unsigned int still_under_way(struct away *a, const uint64_t *want)
{
	unsigned int i, nr = 0;

	for (i = 0; i < NR; i++)
		nr += atomic_load(&a->board->seen[i]) < want[i];
	return nr;
}

/*
 * Takes the events that are pending, whatever else happens, except for @gone
 * lost events. Their bytes are read without an event.
 */
static void take_but(struct away *a, uint64_t gone)
{
	unsigned int i, limit = 100 * NR;
	uint64_t want[NR];

	for (i = 0; i < NR; i++)
		want[i] = atomic_load(&a->board->sent[i]);
	while (still_under_way(a, want) > gone) {
		MUST(limit--);
		take_some(a, 1);
	}
	CHECK_EQ(still_under_way(a, want), gone);
	for (i = 0; i < NR; i++) {
		if (atomic_load(&a->board->seen[i]) >= want[i])
			continue;
		CHECK(read_noted(a, i));
		a->lost++;
	}
}

/* A buffer replaces the ring's memory. */
static void take_by_buffer(struct away *a)
{
	struct ukevent ev[4];
	int i, nr;

	nr = get_events(a->q.fd, 1, ARRAY_SIZE(ev), 0, ev);
	MUST(nr >= 0);
	for (i = 0; i < nr; i++)
		take_event(a, &ev[i]);
}

/*
 * The program cannot read the ring, so it uses the position the kernel knows.
 */
static long wait_blindly(struct away *a)
{
	const struct timespec zero = {};

	return kevent_wait(a->q.fd, SLOTS, fdinfo(a->q.fd, "kevent-ring-kidx"),
			   &zero, 0, NULL);
}

static void *map_at(struct away *a, void *at)
{
	return mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED |
		    (at ? MAP_FIXED_NOREPLACE : 0), a->memfd, 0);
}

static void open_away(struct away *a)
{
	unsigned int i;

	a->board = mmap(NULL, sizeof(*a->board), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(a->board != MAP_FAILED);
	a->memfd = memfd_create("ring", MFD_CLOEXEC);
	MUST_EQ(ftruncate(a->memfd, BYTES), 0);
	a->q = (struct queue){ .size = SLOTS, .bytes = BYTES };
	a->home = map_at(a, NULL);
	MUST(a->home != MAP_FAILED);
	a->q.ring = a->home;
	a->q.fd = kevent_init(a->q.ring, SLOTS, 0);
	MUST(a->q.fd >= 0);
	for (i = 0; i < NR; i++) {
		open_pipe(a->fd[i]);
		MUST_EQ(add_pipe(a->q.fd, a->fd[i][0], RECV, KEVENT_REQ_ET, i),
			0);
	}
}

static void go_and_come_back(struct away *a)
{
	a->times++;
	a->c->go(a);
	a->c->look(a);
	if (next_random(&a->rnd) % 4 == 0)
		take_by_buffer(a);
	a->c->back(a);
	take_but(a, 0);
	take_some(a, next_random(&a->rnd) % 100);
}

static void check_all_came(struct away *a)
{
	uint64_t sent = 0;
	struct ukevent ev;
	unsigned int i;

	while (next_event(&a->q, &ev, 0) == 1)
		take_event(a, &ev);
	CHECK_EQ(a->board->wrong, 0);
	for (i = 0; i < NR; i++) {
		CHECK_EQ(a->board->seen[i], a->board->sent[i]);
		sent += a->board->sent[i];
	}
	CHECK_EQ(a->taken + a->lost, sent);
	CHECK_EQ(fdinfo(a->q.fd, "kevent-delivered"), sent);
	CHECK_EQ(fdinfo(a->q.fd, "kevent-ready"), 0);
	CHECK_EQ(a->q.ring->ring_flags, 0);
	CHECK(a->times > 0);
	note("%llu events, away %u times", (unsigned long long)sent, a->times);
}

static void run_away(struct away *a)
{
	struct writer w[WRITERS + 1];
	unsigned int i;
	uint64_t start;
	pid_t pid;

	a->rnd = test_seed();
	for (i = 0; i <= WRITERS; i++) {
		w[i].a = a;
		w[i].first = i * PER_WRITER;
		w[i].nr = i < WRITERS ? PER_WRITER : NR - INSIDE;
	}
	pid = start_child(write_outside, &w[WRITERS]);
	for (i = 0; i < WRITERS; i++)
		start_actor(&w[i].actor, run_writer, &w[i]);
	start = now_ns();
	while (storm_goes_on(start, a->times && (!a->enough || a->enough(a))))
		go_and_come_back(a);
	atomic_store(&a->board->stop, true);
	for (i = 0; i <= WRITERS; i++)
		rouse(a->board, i);
	for (i = 0; i < WRITERS; i++)
		join_actor(&w[i].actor, PATIENCE_MS);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	check_all_came(a);
}

static void check_away(const struct away_case *c)
{
	struct away a = { .c = c };

	open_away(&a);
	run_away(&a);
	close_queue(&a.q);
}

/* The address space drops its pages. */

static void drop_pages(struct away *a)
{
	MUST_EQ(madvise(a->q.ring, BYTES, MADV_DONTNEED), 0);
}

static void let_all_write(struct away *a)
{
	MUST(await_all_under_way(a->board));
}

static void do_nothing(struct away *a)
{
	(void)a;
}

static void pages_dropped(void)
{
	static const struct away_case c = {
		drop_pages, let_all_write, do_nothing,
	};

	check_away(&c);
}

/* The ring is read-only. An event that is not stored stays ready. */

static void make_read_only(struct away *a)
{
	MUST_EQ(mprotect(a->q.ring, BYTES, PROT_READ), 0);
}

static void make_writable(struct away *a)
{
	MUST_EQ(mprotect(a->q.ring, BYTES, PROT_READ | PROT_WRITE), 0);
}

static void look_read_only(struct away *a)
{
	uint32_t flags = a->q.ring->ring_flags;

	let_all_write(a);
	CHECK_EQ(wait_blindly(a),
		 fdinfo(a->q.fd, "kevent-ready") ? -EFAULT : 0);
	CHECK_EQ(a->q.ring->ring_flags, flags);
}

static void read_only(void)
{
	static const struct away_case c = {
		make_read_only, look_read_only, make_writable,
	};

	check_away(&c);
}

/* Only the slots on the second page are: the header is writable. */

static void make_slots_read_only(struct away *a)
{
	MUST_EQ(mprotect((char *)a->q.ring + PAGE, PAGE, PROT_READ), 0);
}

static void look_slots_read_only(struct away *a)
{
	long ret;

	let_all_write(a);
	ret = wait_blindly(a);
	if (ret != -EFAULT) {
		CHECK(ret >= 0);
		return;
	}
	CHECK(a->q.ring->ring_flags & KEVENT_RING_BROKEN);
	CHECK(fdinfo(a->q.fd, "kevent-ready") > 0);
	a->broken++;
}

static bool was_broken(const struct away *a)
{
	return a->broken > 0;
}

static void slots_read_only(void)
{
	static const struct away_case c = {
		make_slots_read_only, look_slots_read_only, make_writable,
	};
	struct away a = { .c = &c, .enough = was_broken };

	open_away(&a);
	run_away(&a);
	CHECK(was_broken(&a));
	note("%u times broken", a.broken);
	close_queue(&a.q);
}

/* The ring is unmapped, or moved. */

static void unmap(struct away *a)
{
	if (next_random(&a->rnd) % 2) {
		MUST_EQ(munmap(a->home, BYTES), 0);
		a->q.ring = NULL;
		return;
	}
	MUST(mremap(a->home, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
		    a->elsewhere) == a->elsewhere);
	a->q.ring = (struct kevent_ring *)a->elsewhere;
}

static void look_gone(struct away *a)
{
	let_all_write(a);
	CHECK_EQ(wait_blindly(a),
		 fdinfo(a->q.fd, "kevent-ready") ? -EFAULT : 0);
}

static void map_again(struct away *a)
{
	void *at = a->home;

	if (a->q.ring)
		at = mremap(a->q.ring, BYTES, BYTES,
			    MREMAP_MAYMOVE | MREMAP_FIXED, at);
	else
		at = map_at(a, at);
	MUST(at == a->home);
	a->q.ring = a->home;
}

static void unmapped_and_moved(void)
{
	static const struct away_case c = { unmap, look_gone, map_again };
	struct away a = { .c = &c };

	open_away(&a);
	a.elsewhere = map_at(&a, NULL);
	MUST(a.elsewhere != MAP_FAILED);
	run_away(&a);
	close_queue(&a.q);
}

/* A pager answers when all have written; until then the consumer is blocked. */

static void register_pager(struct away *a)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_MINOR_SHMEM,
	};
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)a->home, .len = BYTES },
		.mode = UFFDIO_REGISTER_MODE_MINOR,
	};

	a->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	MUST(a->uffd >= 0);
	MUST_EQ(ioctl(a->uffd, UFFDIO_API, &api), 0);
	MUST_EQ(ioctl(a->uffd, UFFDIO_REGISTER, &reg), 0);
}

static bool serve_pager(struct away *a)
{
	struct uffdio_continue go = { .range.len = PAGE };
	struct uffd_msg msg;

	if (read(a->uffd, &msg, sizeof(msg)) != sizeof(msg))
		return errno == EAGAIN;
	if (msg.event != UFFD_EVENT_PAGEFAULT || !await_all_under_way(a->board)) {
		note("pager: event %u, all under way %d", msg.event,
		     all_under_way(a->board));
		return false;
	}
	go.range.start = msg.arg.pagefault.address & ~(PAGE - 1ull);
	if (!ioctl(a->uffd, UFFDIO_CONTINUE, &go) || errno == EEXIST)
		return true;
	note("pager: UFFDIO_CONTINUE: %s", strerror(errno));
	return false;
}

static long run_pager(void *arg)
{
	struct away *a = arg;
	struct pollfd pfd[] = {
		{ .fd = a->uffd, .events = POLLIN },
		{ .fd = a->hangup[0], .events = POLLIN },
	};
	long served = 0;

	while (poll(pfd, ARRAY_SIZE(pfd), -1) > 0 && !pfd[1].revents) {
		if (!serve_pager(a))
			return -1;
		served++;
	}
	return served;
}

static void look_late(struct away *a)
{
	CHECK(wait_blindly(a) >= 0);
	let_all_write(a);
}

static void pager_answers_late(void)
{
	static const struct away_case c = {
		drop_pages, look_late, do_nothing,
	};
	struct away a = { .c = &c };
	struct actor pager;

	open_away(&a);
	register_pager(&a);
	open_pipe(a.hangup);
	start_actor(&pager, run_pager, &a);
	run_away(&a);
	put_byte(a.hangup[1]);
	join_actor(&pager, PATIENCE_MS);
	CHECK(pager.ret >= (long)a.times);
	note("%ld faults served", pager.ret);
	close_queue(&a.q);
}

/*
 * The file under the ring is truncated and grows again. Events in the ring are
 * lost, events in the kernel are not. The program stores the kernel's position
 * in both words of the header, and looks at all pipes whose event does not
 * come.
 */

static void cut(struct away *a)
{
	a->popped = a->home->ring_uidx;
	MUST_EQ(ftruncate(a->memfd, 0), 0);
}

static void grow(struct away *a)
{
	const uint64_t kidx = fdinfo(a->q.fd, "kevent-ring-kidx");
	const uint64_t header[] = { [0] = kidx, [8] = kidx };

	MUST_EQ(ftruncate(a->memfd, BYTES), 0);
	MUST_EQ(pwrite(a->memfd, header, sizeof(header), 0), sizeof(header));
	take_but(a, kidx - a->popped);
}

static bool has_lost(const struct away *a)
{
	return a->lost > 0;
}

static void file_cut_and_grown(void)
{
	static const struct away_case c = { cut, look_gone, grow };
	struct away a = { .c = &c, .enough = has_lost };

	open_away(&a);
	run_away(&a);
	CHECK(has_lost(&a));
	note("%llu lost with the file's contents", (unsigned long long)a.lost);
	close_queue(&a.q);
}

static const struct test_case cases[] = {
	TEST_LIMIT(pages_dropped, 30),
	TEST_LIMIT(read_only, 30),
	TEST_LIMIT(slots_read_only, 30),
	TEST_LIMIT(unmapped_and_moved, 30),
	TEST_LIMIT(pager_answers_late, 30),
	TEST_LIMIT(file_cut_and_grown, 30),
	{}
};

const struct test_suite hit_faults_suite = {
	.name = "hit_faults",
	.cases = cases,
};
