// SPDX-License-Identifier: GPL-2.0
/*
 * Looks at files: what happens while a consumer, or MODIFY, looks
 *
 * A consumer that only ->poll() can answer takes the watch off the queue, looks, and puts
 * it back. Nobody else may notice: the watch is reported by the calls that others make
 * meanwhile, poll() of the queue does not deny it, and close() is close().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"
#include "pairs.h"

static bool is_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* A level watch that stays ready, and that only ->poll() knows of */
static int add_expired_timer(struct queue *q)
{
	int fd = open_expired_timer();

	MUST_EQ(add_poll(q->fd, fd, POLLIN, 0, 7), 0);
	return fd;
}

struct taker {
	struct actor	actor;
	struct queue	*q;
	int64_t		ms;
	struct ukevent	ev[200];
};

struct consumer {
	struct actor	actor;
	struct queue	*q;
	int64_t		ms;
	struct ukevent	ev;
};

/* What is in the ring stays there, since two may come for one entry. */
static long consumes_one(void *arg)
{
	struct consumer *c = arg;

	return c->q->size ? wait_ring(c->q, 1, c->ms) :
			    get_events(c->q->fd, 1, 1, c->ms, &c->ev);
}

static long call_of(const struct consumer *c)
{
	return c->q->size ? __NR_kevent_wait : __NR_kevent_get_events;
}

/* Look, while another consumer looks at the only watch: it is told of it, too. */
static void look_beside_another(struct queue *q, int64_t ms)
{
	struct consumer first = { .q = q }, second = { .q = q, .ms = ms };
	int fd = add_expired_timer(q);

	CHECK(start_in_window(&first.actor, "verified", consumes_one, &first));
	CHECK(is_readable(q->fd));
	start_actor(&second.actor, consumes_one, &second);
	CHECK(sleeps_in(second.actor.tid, call_of(&second)));
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	join_actor(&second.actor, PATIENCE_MS);
	CHECK_EQ(first.actor.ret, 1);
	CHECK_EQ(second.actor.ret, 1);
	close(fd);
}

static void call_beside_a_look_reports_the_watch(struct queue *q)
{
	look_beside_another(q, 0);
}

static void wait_beside_a_look_reports_the_watch(struct queue *q)
{
	look_beside_another(q, -1);
}

/* More than are woken under one hold of the lock */
static void many_calls_beside_a_look_are_notified(struct queue *q)
{
	struct consumer first = { .q = q }, c[40];
	int fd = add_expired_timer(q);
	size_t i;

	CHECK(start_in_window(&first.actor, "verified", consumes_one, &first));
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = (struct consumer){ .q = q, .ms = -1 };
		start_actor(&c[i].actor, consumes_one, &c[i]);
		CHECK(sleeps_in(c[i].actor.tid, call_of(&c[i])));
	}
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		join_actor(&c[i].actor, PATIENCE_MS);
		CHECK_EQ(c[i].actor.ret, 1);
	}
	close(fd);
}

/* It may turn out that nothing is ready. Then a call that may not wait says so. */
static void call_beside_a_look_ends_with_it(struct queue *q)
{
	struct consumer first = { .q = q }, second = { .q = q };
	int fd = add_expired_timer(q);
	uint64_t ticks;

	MUST_EQ(read(fd, &ticks, sizeof(ticks)), sizeof(ticks));
	CHECK(start_in_window(&first.actor, "verified", consumes_one, &first));
	start_actor(&second.actor, consumes_one, &second);
	CHECK(sleeps_in(second.actor.tid, call_of(&second)));
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	join_actor(&second.actor, PATIENCE_MS);
	CHECK_EQ(first.actor.ret, 0);
	CHECK_EQ(second.actor.ret, 0);
	close(fd);
}

/* A look that does not end, as in a file system that does not answer, holds up nobody else. */
static void call_beside_a_look_without_end_gives_up(struct queue *q)
{
	struct consumer first = { .q = q }, second = { .q = q };
	int fd = add_expired_timer(q);

	CHECK(start_in_window(&first.actor, "verified", consumes_one, &first));
	start_actor(&second.actor, consumes_one, &second);
	join_actor(&second.actor, PATIENCE_MS);
	CHECK_EQ(second.actor.ret, 0);
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	CHECK_EQ(first.actor.ret, 1);
	close(fd);
}

/* It does not touch the ring itself. */
static long waits_at_0(void *arg)
{
	struct queue *q = arg;

	return kevent_wait(q->fd, q->size, 0, NULL, 0, NULL);
}

/*
 * A waiter is woken with all others, and the memory of the ring is away for a moment, in which
 * another call takes the event of the level watch: the waiter is told of it all the same.
 */
static void waiter_that_faults_is_notified_of_the_watch(void)
{
	struct actor waiter;
	struct ukevent ev;
	struct queue q;
	int fd[2], mem;

	open_queue(&q, 8);
	mem = memfd_create("ring", MFD_CLOEXEC);
	MUST(mem >= 0);
	MUST_EQ(ftruncate(mem, q.bytes), 0);
	MUST(mmap(q.ring, q.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mem,
		  0) == q.ring);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, KEVENT_REQ_WAKEUP_ALL, 7), 0);
	start_actor(&waiter, waits_at_0, &q);
	MUST(sleeps_in(waiter.tid, __NR_kevent_wait));
	window_arm("fault");
	put_byte_from_outside(fd[1]);
	CHECK(window_entered());
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
	window_release();
	join_actor(&waiter, PATIENCE_MS);
	CHECK_EQ(waiter.ret, 1);
	close(fd[0]);
	close(fd[1]);
	close(mem);
	close_queue(&q);
}

static long takes_all(void *arg)
{
	struct taker *t = arg;

	return get_events(t->q->fd, 1, 16, t->ms, t->ev);
}

/*
 * Four files wait to be looked at, and the first look does not end: the other three are
 * reported meanwhile, and one that is closed ends.
 */
static void look_without_end_takes_no_other_file(void)
{
	static struct taker first;
	int fd[3], sock[2], i;
	struct ukevent ev[16];
	struct queue q;

	open_queue(&q, 0);
	first = (struct taker){ .q = &q, .ms = -1 };
	for (i = 0; i < 3; i++)
		fd[i] = add_expired_timer(&q);
	MUST_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(write(sock[1], "x", 1), 1);
	MUST_EQ(add_poll(q.fd, sock[0], POLLIN | POLLPRI, 0, 8), 0);
	CHECK(start_in_window(&first.actor, "taken", takes_all, &first));
	CHECK_EQ(get_events(q.fd, 1, 16, 0, ev), 3);
	close(sock[0]);
	errno = 0;
	CHECK_EQ(send(sock[1], "x", 1, MSG_NOSIGNAL), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	CHECK_EQ(first.actor.ret, 1);
	for (i = 0; i < 3; i++)
		close(fd[i]);
	close(sock[1]);
	close_queue(&q);
}

/*
 * A look may not end. A call that has an event that is reported once returns with it, and
 * leaves the look to the next call.
 */
static void call_with_an_edge_does_not_look(void)
{
	static struct taker first;
	struct ukevent ev[16];
	struct queue q;
	int fd[2], tfd;

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 9), 0);
	put_byte(fd[1]);
	tfd = add_expired_timer(&q);
	CHECK_EQ(get_events(q.fd, 1, 16, 0, ev), 1);
	CHECK_EQ(ev[0].ptr, 9);
	first = (struct taker){ .q = &q, .ms = -1 };
	CHECK(start_in_window(&first.actor, "taken", takes_all, &first));
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	CHECK_EQ(first.actor.ret, 1);
	CHECK_EQ(first.ev[0].ptr, 7);
	close(tfd);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

/* An inotify descriptor tells its wait queue of an event, and not that it means POLLIN. */
static void wake_in_vain(int fd)
{
	char events[4096];

	close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	MUST(read(fd, events, sizeof(events)) > 0);
}

/*
 * A call gives up after a time that is the same however often others look at other watches
 * meanwhile, and find nothing.
 */
static void looks_beside_a_look_without_end_do_not_prolong_it(struct queue *q)
{
	struct consumer first = { .q = q }, second = { .q = q, .ms = -1 };
	struct consumer third = { .q = q };
	int fd = add_expired_timer(q), notify, rounds = 0;
	uint64_t start;

	notify = inotify_init1(IN_CLOEXEC);
	MUST(notify >= 0);
	MUST(inotify_add_watch(notify, "/dev/null", IN_OPEN) >= 0);
	MUST_EQ(add_poll(q->fd, notify, POLLPRI, 0, 9), 0);
	CHECK(start_in_window(&first.actor, "verified", consumes_one, &first));
	start_actor(&second.actor, consumes_one, &second);
	CHECK(sleeps_in(second.actor.tid, call_of(&second)));
	start = now_ns();
	start_actor(&third.actor, consumes_one, &third);
	/* Less often than a call may ask, and much more often than it gives up */
	while (!actor_ended(&third.actor) && patient(start, PATIENCE_MS)) {
		wake_in_vain(notify);
		poll(NULL, 0, 100);
		rounds++;
	}
	CHECK(actor_ended(&third.actor));
	note("%d rounds", rounds);
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	join_actor(&second.actor, PATIENCE_MS);
	join_actor(&third.actor, PATIENCE_MS);
	CHECK_EQ(third.actor.ret, 0);
	close(notify);
	close(fd);
}

/* An event of another watch does not wait for the look. */
static void event_beside_a_look_ends_the_wait(struct queue *q)
{
	struct consumer first = { .q = q }, second = { .q = q, .ms = -1 };
	int fd = add_expired_timer(q);

	MUST_EQ(add_user(q->fd, 1, 1, 0, 8), 0);
	CHECK(start_in_window(&first.actor, "verified", consumes_one, &first));
	start_actor(&second.actor, consumes_one, &second);
	CHECK(sleeps_in(second.actor.tid, call_of(&second)));
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	join_actor(&second.actor, PATIENCE_MS);
	CHECK_EQ(second.actor.ret, 1);
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	CHECK(first.actor.ret >= 1);
	close(fd);
}

/* Two threads that look all the time: each call reports the watch. */
struct pool {
	struct queue	*q;
	_Atomic bool	over;
};

static long take_until_over(void *arg)
{
	struct pool *pool = arg;
	struct ukevent ev;
	long missed = 0;

	while (!atomic_load(&pool->over))
		missed += get_events(pool->q->fd, 1, 1, 0, &ev) != 1;
	return missed;
}

static void each_call_of_a_pool_reports_the_watch(struct queue *q)
{
	uint64_t end = now_ns() + storm_ns() / 4;
	struct pool pool = { .q = q };
	unsigned int calls = 0, denied = 0, missed = 0;
	int fd = add_expired_timer(q);
	struct actor other;
	struct ukevent ev;

	start_actor(&other, take_until_over, &pool);
	for (; now_ns() < end; calls++) {
		missed += get_events(q->fd, 1, 1, 0, &ev) != 1;
		denied += !is_readable(q->fd);
	}
	atomic_store(&pool.over, true);
	join_actor(&other, PATIENCE_MS);
	note("%u calls", calls);
	CHECK_EQ(other.ret, 0);
	CHECK_EQ(missed, 0);
	CHECK_EQ(denied, 0);
	close(fd);
}

/* The last reference to a file is that of a consumer that looks at it, and then sleeps. */
static void file_closed_under_a_look_ends(struct queue *q)
{
	struct consumer c = { .q = q, .ms = -1 };
	struct pollfd peer = {};
	int fd[2];

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
			   fd), 0);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 8), 0);
	MUST_EQ(add_socket(q->fd, fd[0], SEND, 0, 7), 0);
	fill(fd[0]);
	CHECK(start_in_window(&c.actor, "verified", consumes_one, &c));
	close(fd[0]);
	window_release();
	CHECK(sleeps_in(c.actor.tid, call_of(&c)));
	peer.fd = fd[1];
	CHECK_EQ(poll(&peer, 1, PATIENCE_MS * slowness), 1);
	CHECK(peer.revents & POLLHUP);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	join_actor(&c.actor, PATIENCE_MS);
	CHECK_EQ(c.actor.ret, 1);
	close(fd[1]);
}

/*
 * MODIFY asks for data while data comes. One of the two sees the other: the wake-up
 * sees that data is wanted, or MODIFY sees the data.
 */
#define SPINS	400

struct race {
	_Atomic unsigned int	begun;	/* rounds, by MODIFY */
	_Atomic unsigned int	ended;	/* by the writer */
	_Atomic bool		over;
	int			fd;
};

static void spin_some(uint64_t *seed)
{
	unsigned int left = next_random(seed) % SPINS;

	while (left--)
		__asm__ volatile("" ::: "memory");
}

static long write_in_rounds(void *arg)
{
	const uint64_t one = 1;
	uint64_t seed = now_ns();
	struct race *r = arg;
	unsigned int round = 0;

	while (!atomic_load(&r->over)) {
		if (atomic_load(&r->begun) == round)
			continue;
		spin_some(&seed);
		if (write(r->fd, &one, sizeof(one)) != sizeof(one))
			return -1;
		atomic_store(&r->ended, ++round);
	}
	return 0;
}

static void modify_in_rounds(struct race *r, int kq, const struct ukevent *to,
			     int fd)
{
	uint64_t seed = test_seed(), end = now_ns() + storm_ns() / 4, data;
	unsigned int round, silent = 0;
	struct ukevent off, on, got;

	for (round = 1; now_ns() < end && !silent; round++) {
		off = *to;
		off.event = 0;
		MUST_EQ(kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &off), 0);
		on = *to;
		atomic_store(&r->begun, round);
		spin_some(&seed);
		MUST_EQ(kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &on), 0);
		while (atomic_load(&r->ended) != round)
			sched_yield();
		silent += get_events(kq, 1, 1, 0, &got) != 1;
		MUST_EQ(read(fd, &data, sizeof(data)), sizeof(data));
	}
	note("%u rounds", round);
	CHECK_EQ(silent, 0);
}

static void race_modify(struct ukevent *on, int from, int to)
{
	struct race r = { .fd = to };
	struct actor writer;
	struct ukevent add = *on;
	struct queue q;

	if (!two_cpus())
		return;
	open_queue(&q, 0);
	MUST_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &add), 0);
	start_actor(&writer, write_in_rounds, &r);
	modify_in_rounds(&r, q.fd, on, from);
	atomic_store(&r.over, true);
	join_actor(&writer, PATIENCE_MS);
	CHECK_EQ(writer.ret, 0);
	close(from);
	if (to != from)
		close(to);
	close_queue(&q);
}

static void modify_or_the_wake_up_of_a_pipe_sees_the_other(void)
{
	struct ukevent on;
	int fd[2];

	open_pipe(fd);
	kevent_set_pipe(&on, fd[0], RECV, 0, 1);
	race_modify(&on, fd[0], fd[1]);
}

static void modify_or_the_wake_up_of_an_eventfd_sees_the_other(void)
{
	struct ukevent on;
	int fd = eventfd(0, EFD_CLOEXEC);

	MUST(fd >= 0);
	kevent_set_poll(&on, fd, POLLIN, 0, 1);
	race_modify(&on, fd, fd);
}

static void modify_or_the_wake_up_of_a_socket_sees_the_other(void)
{
	struct ukevent on;
	int fd[2];

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	kevent_set_socket(&on, fd[0], RECV, 0, 1);
	race_modify(&on, fd[0], fd[1]);
}

/* Those that only read the ring have nothing else that says that there is more. */
static void event_beside_a_look_is_flagged(void)
{
	int tfd, fd[3][2], i;
	struct consumer first;
	struct queue q;

	open_queue(&q, 16);
	first = (struct consumer) { .q = &q };
	tfd = add_expired_timer(&q);
	for (i = 0; i < 3; i++) {
		open_pipe(fd[i]);
		if (i < 2)
			put_byte(fd[i][1]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, i < 2 ? 0 : ET, i), 0);
	}
	MUST_EQ(wait_ring(&q, 16, 0), 3);
	__atomic_store_n(&q.ring->ring_uidx, q.ring->ring_kidx, __ATOMIC_SEQ_CST);
	CHECK(!has_more(&q));
	CHECK(start_in_window(&first.actor, "verified", consumes_one, &first));
	put_byte(fd[2][1]);
	CHECK(has_more(&q) || q.ring->ring_kidx != q.ring->ring_uidx);
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	close(tfd);
	close_queue(&q);
}

static long takes_many(void *arg)
{
	struct taker *t = arg;

	return get_events(t->q->fd, 1, 200, -1, t->ev);
}

/* A call could go on for as long as others make events. */
static void signal_ends_a_call_that_has_events(void)
{
	static struct taker t;
	struct queue q;
	int i;

	open_queue(&q, 0);
	t = (struct taker){ .q = &q };
	for (i = 0; i < 200; i++) {
		MUST_EQ(add_user(q.fd, i, 1, ET, i), 0);
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	}
	catch_signal(SIGUSR1);
	CHECK(start_in_window(&t.actor, "again", takes_many, &t));
	MUST_EQ(syscall(SYS_tgkill, getpid(), t.actor.tid, SIGUSR1), 0);
	window_release();
	join_actor(&t.actor, PATIENCE_MS);
	CHECK(t.actor.ret > 0 && t.actor.ret < 200);
	CHECK_EQ(get_events(q.fd, 1, 200, 0, t.ev), 200 - t.actor.ret);
	close_queue(&q);
}

static long adds_once_more(void *arg)
{
	struct queue *q = arg;

	return add_user(q->fd, 1, 1, ONESHOT, 9);
}

/* Its entry can be read some instructions before the watch is gone. */
static void delivered_one_shot_watch_is_added_again(void)
{
	struct consumer first;
	struct actor again;
	struct queue q;

	open_queue(&q, 16);
	first = (struct consumer) { .q = &q };
	MUST_EQ(add_user(q.fd, 1, 1, ONESHOT, 8), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK(start_in_window(&first.actor, "settle", consumes_one, &first));
	CHECK_EQ(q.ring->ring_kidx, 1);
	start_actor(&again, adds_once_more, &q);
	/* It comes to its answer meanwhile, if it does not wait for the consumer. */
	pause_us(100000);
	window_release();
	join_actor(&first.actor, PATIENCE_MS);
	join_actor(&again, PATIENCE_MS);
	CHECK_EQ(again.ret, 0);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(waiter_that_faults_is_notified_of_the_watch),
	TEST(event_beside_a_look_is_flagged),
	TEST(look_without_end_takes_no_other_file),
	TEST(call_with_an_edge_does_not_look),
	TEST(signal_ends_a_call_that_has_events),
	TEST(delivered_one_shot_watch_is_added_again),
	TEST_EACH(call_beside_a_look_reports_the_watch),
	TEST_EACH(wait_beside_a_look_reports_the_watch),
	TEST_EACH(many_calls_beside_a_look_are_notified),
	TEST_EACH(call_beside_a_look_ends_with_it),
	TEST_EACH(call_beside_a_look_without_end_gives_up),
	TEST_EACH(looks_beside_a_look_without_end_do_not_prolong_it),
	TEST_EACH(event_beside_a_look_ends_the_wait),
	TEST_EACH(each_call_of_a_pool_reports_the_watch),
	TEST_EACH(file_closed_under_a_look_ends),
	TEST(modify_or_the_wake_up_of_a_pipe_sees_the_other),
	TEST(modify_or_the_wake_up_of_an_eventfd_sees_the_other),
	TEST(modify_or_the_wake_up_of_a_socket_sees_the_other),
	{}
};

const struct test_suite looks_suite = {
	.name = "looks",
	.cases = cases,
};
