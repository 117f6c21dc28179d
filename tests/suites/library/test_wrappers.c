// SPDX-License-Identifier: GPL-2.0
/*
 * What the headers of libkevent add to the calls, and what a server with a pool of threads
 * rests on
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "helpers.h"

#define MS	1000000		/* in nanoseconds */

/* A timer that has expired for the last time is gone; one that runs is there. */
static void timer_is_started_again(struct queue *q)
{
	struct ukevent ev;
	int i;

	for (i = 0; i < 3; i++) {
		kevent_set_timer(&ev, 1 * MS, 0, 0, ONESHOT, 7);
		CHECK_EQ(kevent_add_or_modify(q->fd, &ev), 0);
		MUST_EQ(next_event(q, &ev, PATIENCE_MS), 1);
		CHECK_EQ(ev.ptr, 7);
		CHECK_EQ(kevent_expirations(&ev), 1);
	}
	kevent_set_timer(&ev, 3600ull * 1000 * MS, 0, 0, ONESHOT, 7);
	CHECK_EQ(kevent_add_or_modify(q->fd, &ev), 0);
	kevent_set_timer(&ev, 1 * MS, 0, 0, ONESHOT, 7);
	CHECK_EQ(kevent_add_or_modify(q->fd, &ev), 0);
	MUST_EQ(next_event(q, &ev, PATIENCE_MS), 1);
	CHECK_EQ(ev.ptr, 7);
	CHECK_NO_EVENT(q);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	kevent_set_timer(&ev, 1 * MS, 0, 0x80000000u, 0, 7);
	CHECK_EQ(kevent_add_or_modify(q->fd, &ev), -EINVAL);
	CHECK_EQ(kevent_add_or_modify(-1, &ev), -EBADF);
}

/* ADD hands an event back; a change does not. */
static void watch_is_added_or_changed(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	put_byte(fd[1]);
	kevent_set_pipe(&ev, fd[0], RECV, ET | HAND_BACK, 1);
	CHECK_EQ(kevent_add_or_modify(q.fd, &ev), 1);
	CHECK_EQ(ev.ptr, 1);
	CHECK_EQ(ev.ret_data[0] & RECV, RECV);
	kevent_set_pipe(&ev, fd[0], RECV, 0, 2);
	CHECK_EQ(kevent_add_or_modify(q.fd, &ev), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 2);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

/* The words of poll(2) are those of pipes as well. */
static void pipe_takes_words_of_poll(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	CHECK_EQ(POLLIN, KEVENT_SOCKET_RECV);
	CHECK_EQ(POLLOUT, KEVENT_SOCKET_SEND);
	CHECK_EQ(POLLIN, KEVENT_POLL_POLLIN);
	CHECK_EQ(POLLOUT, KEVENT_POLL_POLLOUT);
	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], POLLIN, 0, 1), 0);
	MUST_EQ(add_pipe(q.fd, fd[1], POLLOUT, ONESHOT, 2), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 2);
	CHECK_EQ(ev.ret_data[0] & POLLOUT, POLLOUT);
	put_byte(fd[1]);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 1);
	CHECK_EQ(ev.ret_data[0] & POLLIN, POLLIN);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

/* A pool: DISPATCH gives an object to one thread at a time, which may free it. */

#define THREADS	4
#define OBJECTS	32
#define BYTES	20

struct object {
	int		fd[2];
	int		left;		/* bytes to come */
	_Atomic int	users;		/* threads that have its event */
};

struct pool {
	struct queue	q;
	_Atomic bool	stop;
	_Atomic int	alive, early, late, twice;
};

static int arm(struct pool *p, uint32_t cmd, struct object *o)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, o->fd[0], POLLIN, DISPATCH, kevent_from_pointer(o));
	return kevent_ctl_one(p->q.fd, cmd, &ev);
}

/* Nobody else has an event of the object, in a queue or in hand. */
static void free_object(struct pool *p, struct object *o)
{
	p->late += !!arm(p, KEVENT_CTL_REMOVE, o);
	close(o->fd[0]);
	close(o->fd[1]);
	free(o);
	p->alive--;
}

static void serve(struct pool *p, struct object *o)
{
	char c;

	p->twice += !!o->users++;
	p->early += read(o->fd[0], &c, 1) != 1;
	o->left--;
	o->users--;
	if (!o->left)
		free_object(p, o);
	else
		p->late += !!arm(p, KEVENT_CTL_MODIFY, o);
}

/* As next_event(), beside others */
static int next_of_pool(struct pool *p, struct ukevent *ev)
{
	struct kevent_queue q = { .fd = p->q.fd, .size = p->q.size, .ring = p->q.ring };

	return p->q.size ? kevent_queue_get(&q, ev, 1, NULL) :
			   get_events(p->q.fd, 1, 1, -1, ev);
}

/* A thread that ends hands the request on: another one may have been about to wait. */
static long pool_thread(void *arg)
{
	struct pool *p = arg;
	struct ukevent ev;
	long served = 0;
	int ret;

	while (!p->stop) {
		ret = next_of_pool(p, &ev);
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		serve(p, kevent_pointer(&ev));
		served++;
	}
	return kevent_wake(p->q.fd) ? -EIO : served;
}

static void run_pool(uint32_t size)
{
	static struct pool p;
	struct actor a[THREADS];
	struct object *o;
	uint64_t start;
	long served = 0;
	int i;

	p = (struct pool){ .alive = OBJECTS };
	open_queue(&p.q, size);
	for (i = 0; i < THREADS; i++)
		start_actor(&a[i], pool_thread, &p);
	for (i = 0; i < OBJECTS; i++) {
		o = calloc(1, sizeof(*o));
		MUST(o != NULL);
		open_pipe(o->fd);
		o->left = BYTES;
		MUST_EQ(write(o->fd[1], "....................", BYTES), BYTES);
		MUST_EQ(arm(&p, KEVENT_CTL_ADD, o), 0);
	}
	for (start = now_ns(); p.alive && patient(start, 2 * PATIENCE_MS); )
		pause_us(1000);
	CHECK_EQ(p.alive, 0);
	p.stop = true;
	CHECK_EQ(kevent_wake(p.q.fd), 0);
	for (i = 0; i < THREADS; i++) {
		join_actor(&a[i], PATIENCE_MS);
		CHECK(a[i].ret >= 0);
		served += a[i].ret;
	}
	CHECK_EQ(served, OBJECTS * BYTES);
	CHECK_EQ(p.twice, 0);
	CHECK_EQ(p.early, 0);
	CHECK_EQ(p.late, 0);
	close_queue(&p.q);
}

static void object_is_freed_by_who_has_its_event(void)
{
	run_pool(0);
	run_pool(8);
	run_pool(64);
}

static void wake_ends_a_wait_of_a_queue(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	CHECK_EQ(kevent_wake(fd[0]), -EINVAL);
	CHECK_EQ(kevent_wake(-1), -EBADF);
	/* The next wait takes the request, as many as there were. */
	CHECK_EQ(kevent_wake(q.fd), 0);
	CHECK_EQ(kevent_wake(q.fd), 0);
	CHECK_EQ(get_events(q.fd, 1, 1, -1, &(struct ukevent){}), 0);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(timer_is_started_again),
	TEST(watch_is_added_or_changed),
	TEST(pipe_takes_words_of_poll),
	TEST(object_is_freed_by_who_has_its_event),
	TEST(wake_ends_a_wait_of_a_queue),
	{}
};

const struct test_suite wrappers_suite = { .name = "wrappers", .cases = cases };
