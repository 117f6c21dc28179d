// SPDX-License-Identifier: GPL-2.0
/*
 * A thread goes, or is held up, without what it was woken for
 *
 *	W sleeps	request, event		W returns 0, MORE is set
 *	W sleeps	event, the ring is full	W sleeps on, MORE is set
 *	W sleeps	event			W is stuck in a fault, MORE is set
 *	V W sleep	event, V is stuck	W takes it, if it has the ring elsewhere
 *	V B W sleep	entry, V leaves it	W returns, and B sleeps on
 *	W X sleep	W runs; two requests	both return
 *	W sleeps	level watch, request	W returns its event, the next call 0
 *
 * The main thread goes first on the CPU of the others: who it wakes runs after all that it
 * does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "helpers.h"
#include "uffd.h"

static void request(struct queue *q)
{
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL), 0);
}

/* Watches whose events always wait in the kernel first */
static void add_marks(struct queue *q, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		MUST_EQ(add_user(q->fd, i, 1, KEVENT_REQ_ONESHOT, i), 0);
}

static void event_beside_a_request_is_delivered(void)
{
	struct waiter w;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	add_marks(&q, 1);
	share_cpu();
	start_waiter(&w, &q, 8);
	go_first();
	request(&q);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	go_as_others();
	CHECK_EQ(join_waiter(&w), 0);
	CHECK(has_more(&q));
	MUST_EVENT(&q, &ev);
	CHECK(!has_more(&q));
	leave_cpu();
	close_queue(&q);
}

/* The first waiter runs, as it has a signal, and is the oldest one until it looks. */
static long request_beside_a_signal(struct queue *q)
{
	struct waiter w[2];
	long ret;
	int i;

	for (i = 0; i < 2; i++)
		start_waiter(&w[i], q, 1);
	go_first();
	MUST_EQ(pthread_kill(w[0].actor.thread, SIGUSR1), 0);
	for (i = 0; i < 2; i++)
		request(q);
	go_as_others();
	ret = join_waiter(&w[0]);
	CHECK_EQ(join_waiter(&w[1]), 0);
	return ret;
}

/* On a machine that is held up, others run beside a thread that goes first. */
static void each_request_ends_a_wait(struct queue *q)
{
	unsigned int tries = 0;
	struct ukevent ev;
	long ret;

	catch_signal(SIGUSR1);
	share_cpu();
	while ((ret = request_beside_a_signal(q)) == -EINTR) {
		CHECK_EQ(next_event(q, &ev, PATIENCE_MS), 0);
		MUST(++tries < 100);
	}
	CHECK_EQ(ret, 0);
	leave_cpu();
}

/*
 * A close in this process wakes one that looks at level watches again: others may have gone
 * without their events. The request is for the next one that would sleep.
 */
static void level_watch_is_looked_at_before_a_request(void)
{
	struct waiter w[2];
	struct ukevent ev;
	struct queue q;
	int i, fd[2];
	char byte;

	open_queue(&q, 0);
	MUST_EQ(pipe(fd), 0);
	MUST_EQ(add_poll(q.fd, fd[0], POLLIN, 0, 7), 0);
	share_cpu();
	for (i = 0; i < 2; i++)
		start_waiter(&w[i], &q, 1);
	MUST_EQ(write(fd[1], "x", 1), 1);
	CHECK_EQ(join_waiter(&w[0]), 1);
	go_first();
	MUST_EQ(close(dup(q.fd)), 0);
	request(&q);
	go_as_others();
	CHECK_EQ(join_waiter(&w[1]), 1);
	MUST_EQ(read(fd[0], &byte, 1), 1);
	CHECK_EQ(get_events(q.fd, 1, 1, PATIENCE_MS, &ev), 0);
	leave_cpu();
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

/* Nobody else waits: only a call after a look at the ring would take the event. */
static void event_for_a_sleeper_on_a_full_ring_is_delivered(void)
{
	struct waiter w;
	struct queue q;
	unsigned int i;

	open_queue(&q, 2);
	for (i = 0; i < 3; i++)
		MUST_EQ(add_user(q.fd, i, 1, 0, i), 0);
	for (i = 0; i < 2; i++)
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	MUST_EQ(kevent_wait(q.fd, 2, 0, NULL, 0, NULL), 2);
	start_waiter(&w, &q, 2);
	CHECK(!has_more(&q));
	MUST_EQ(mark_user(q.fd, 2, 1), 1);
	await_more(&q);
	request(&q);
	CHECK_EQ(join_waiter(&w), 0);
	close_queue(&q);
}

/* A buffer in a page that comes when the test says so */
struct stuck {
	struct actor	actor;
	struct queue	*q;
	int		uffd;
	char		*page;
};

static void open_stuck(struct stuck *s, struct queue *q)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.mode = UFFDIO_REGISTER_MODE_MISSING, .range.len = PAGE,
	};

	s->q = q;
	s->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(s->page != MAP_FAILED);
	reg.range.start = (uintptr_t)s->page;
	s->uffd = (int)syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	MUST(s->uffd >= 0);
	MUST_EQ(ioctl(s->uffd, UFFDIO_API, &api), 0);
	MUST_EQ(ioctl(s->uffd, UFFDIO_REGISTER, &reg), 0);
}

static void close_stuck(struct stuck *s)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)s->page, .len = PAGE },
	};

	MUST_EQ(ioctl(s->uffd, UFFDIO_ZEROPAGE, &zero), 0);
	request(s->q);
	join_actor(&s->actor, PATIENCE_MS);
	CHECK_EQ(s->actor.ret, 0);
	close(s->uffd);
	munmap(s->page, PAGE);
}

static long get_into_the_page(void *arg)
{
	struct stuck *s = arg;

	return kevent_get_events(s->q->fd, 1, 1, NULL, (void *)s->page, 0);
}

/* It is there for others: the one that was woken cannot take it yet. */
static void event_for_one_stuck_in_a_fault_is_delivered(void)
{
	struct ukevent ev;
	struct stuck s;
	struct queue q;

	open_queue(&q, 8);
	add_marks(&q, 1);
	open_stuck(&s, &q);
	start_actor(&s.actor, get_into_the_page, &s);
	MUST(sleeps_in(s.actor.tid, __NR_kevent_get_events));
	CHECK(!has_more(&q));
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	poll_fault(s.uffd);
	CHECK(has_more(&q));
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 0);
	close_stuck(&s);
	close_queue(&q);
}

/*
 * Two threads are woken for entries that nobody takes. One that wants its event in a buffer
 * could do nothing about them, and sleeps longer than those that could.
 */
static void entries_left_are_for_those_who_wait_for_them(void)
{
	struct waiter gone[2], plain, others[2];
	struct queue q, bare;
	int fd[2][2], i;

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	for (i = 0; i < 2; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], KEVENT_SOCKET_RECV,
				 KEVENT_REQ_ET, i), 0);
		start_waiter(&gone[i], &q, 1);
	}
	start_waiter(&plain, &bare, 1);
	for (i = 0; i < 2; i++)
		start_waiter(&others[i], &q, 1);
	for (i = 0; i < 2; i++) {
		put_byte(fd[i][1]);
		CHECK(join_waiter(&gone[i]) > 0);
	}
	MUST_EQ(kevent_ring_count(q.ring, q.size), 2);
	CHECK(waiter_asleep(&others[0]) && waiter_asleep(&others[1]));
	MUST_EQ(close(dup(q.fd)), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(join_waiter(&others[i]), 2);
	CHECK(waiter_asleep(&plain));
	request(&q);
	CHECK_EQ(join_waiter(&plain), 0);
	close_queue(&q);
}

/*
 * A ring in memory that a child has at the same address, a pipe in the queue, and one whose
 * end tells a child to end
 */
struct ours {
	struct queue	q;
	int		fd[2], end[2];
};

static void open_ours(struct ours *o)
{
	o->q = (struct queue){ .size = 8, .bytes = PAGE };
	o->q.ring = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(o->q.ring != MAP_FAILED);
	o->q.fd = kevent_init(o->q.ring, 8, init_flags);
	MUST(o->q.fd >= 0);
	open_pipe(o->fd);
	MUST_EQ(add_pipe(o->q.fd, o->fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET,
			 7), 0);
	MUST_EQ(pipe2(o->end, O_CLOEXEC), 0);
}

/* Its end would have another thread look, so it waits for that of the test. */
static int put_byte_and_stay(void *arg)
{
	struct ours *o = arg;
	char byte;

	close(o->end[1]);
	put_byte(o->fd[1]);
	CHILD_MUST(read(o->end[0], &byte, 1) == 0);
	return 0;
}

static int attach_and_take(void *arg)
{
	struct ours *o = arg;
	struct ukevent ev;

	CHILD_MUST(kevent_ctl(o->q.fd, KEVENT_CTL_ATTACH, 8,
			      (void *)o->q.ring) == 0);
	CHILD_MUST(next_event(&o->q, &ev, -1) == 1);
	CHILD_MUST(ev.ptr == 7);
	return 0;
}

/* The older one cannot write its mapping, and the younger one can. */
static void event_is_for_who_can_write_the_ring(void)
{
	pid_t taker, writer;
	struct waiter w;
	struct ours o;

	open_ours(&o);
	start_waiter(&w, &o.q, 8);
	taker = start_child(attach_and_take, &o);
	MUST(sleeps_in(taker, __NR_kevent_wait));
	MUST_EQ(mprotect(o.q.ring, PAGE, PROT_READ), 0);
	writer = start_child(put_byte_and_stay, &o);
	CHECK_EQ(join_child(taker, PATIENCE_MS), 0);
	close(o.end[1]);
	CHECK_EQ(join_child(writer, PATIENCE_MS), 0);
	/* It has failed, and the other may have been faster to store the entry. */
	CHECK(join_waiter(&w) == -EFAULT || w.actor.ret == 1);
	MUST_EQ(mprotect(o.q.ring, PAGE, PROT_READ | PROT_WRITE), 0);
	close_queue(&o.q);
}

static const struct test_case cases[] = {
	TEST(event_beside_a_request_is_delivered),
	TEST_EACH(each_request_ends_a_wait),
	TEST(level_watch_is_looked_at_before_a_request),
	TEST(event_for_a_sleeper_on_a_full_ring_is_delivered),
	TEST(event_for_one_stuck_in_a_fault_is_delivered),
	TEST(entries_left_are_for_those_who_wait_for_them),
	TEST(event_is_for_who_can_write_the_ring),
	{}
};

const struct test_suite left_suite = {
	.name = "left",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
