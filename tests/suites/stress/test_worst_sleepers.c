// SPDX-License-Identifier: GPL-2.0
/* The longest stretch with interrupts off: threads that sleep on a queue: see worst.h */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "timers.h"
#include "worst.h"

#define MANY_SLEEPERS	3200	/* that need not be woken */
#define EPOLLS		2000

static struct ukevent batch[4096];

static void request_wake_up(void *arg)
{
	MUST(kevent_ctl(((struct queue *)arg)->fd, KEVENT_CTL_READY, 0,
			NULL) >= 0);
}

static void wake_up_is_requested(void)
{
	struct worst w;
	unsigned int i;
	struct queue *q;

	start(&w, "READY, many sleepers");
	q = new_queue(&w, 8);
	without(request_wake_up, q);
	wait_ring(q, 8, 0);
	for (i = 1; i < SLEEPERS; i++)
		w.queues[w.nr_queues++] = *q;
	w.watches = SLEEPERS;
	sleep_in_queues(&w);
	with(request_wake_up, q);
	finish(&w);
}

static void mark_it(void *arg)
{
	MUST(mark_user(((struct queue *)arg)->fd, 1, 1) >= 0);
}

/* Many sleep in one queue, and what happens is for none or for one of them. */

static void *run_reader(void *arg)
{
	struct ukevent ev;

	get_events(((struct queue *)arg)->fd, 1, 1, -1, &ev);
	return NULL;
}

static void *run_collector(void *arg)
{
	struct queue *q = arg;
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC,
		.min_nr = q->size,
	};

	kevent_wait(q->fd, q->size, 0, NULL, KEVENT_FLAGS_ARG, &wait);
	return NULL;
}

static void *run_waiter_for_room(void *arg)
{
	struct queue *q = arg;

	kevent_wait(q->fd, q->size, q->size, NULL, 0, NULL);
	return NULL;
}

static void sleep_in_one_queue(struct worst *w, void *(*fn)(void *arg),
			       unsigned int nr)
{
	struct queue *q = last_queue(w);
	long long before = fdinfo(q->fd, "kevent-waiting");
	unsigned int i;

	for (i = 0; i < nr; i++)
		start_thread(fn, q);
	while (fdinfo(q->fd, "kevent-waiting") < before + nr)
		settle();
	w->watches = (unsigned int)before + nr;
}

/* Each of those that are woken wakes more. */
static void mark_wakes_all(void)
{
	struct worst w;
	struct queue *q;
	int fd;

	start(&w, "WAKEUP_ALL, many sleepers");
	fd = eventfd(0, EFD_NONBLOCK);
	poll_in_threads(&fd);
	without(write_byte, &fd);
	q = new_queue(&w, 8);
	MUST_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_WAKEUP_ALL, 1), 0);
	sleep_in_one_queue(&w, run_reader, MANY_SLEEPERS);
	with(mark_it, q);
	finish(&w);
}

/* The oldest one has the ring, so the event goes there. */
static void write_among(const char *name, void *(*fn)(void *arg))
{
	struct queue *q;
	struct worst w;
	int fd[2];

	start(&w, name);
	open_pipe(fd);
	without(write_byte, &fd[1]);
	take_bytes(fd[0]);
	q = new_queue(&w, 8);
	MUST_EQ(add_pipe(q->fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 1), 0);
	sleep_in_one_queue(&w, run_collector, 1);
	sleep_in_one_queue(&w, fn, MANY_SLEEPERS);
	with(write_byte, &fd[1]);
	finish(&w);
}

static void sleepers_want_several(void)
{
	write_among("sleepers that want several", run_collector);
}

/* Runs when they expire, so that the ring is at hand. */
static void be_there(void *arg)
{
	struct timespec at = *(struct timespec *)arg;
	uint64_t end = kevent_ns(&at) + 20000000;

	wait_until(&at);
	while (now_ns() < end)
		;
}

/* Their events go to the ring, whose memory is there. */
static void sleepers_want_more_timers(void)
{
	struct timespec at;
	unsigned int i;
	struct queue *q;
	struct worst w;

	start(&w, "sleepers that want more timers");
	at = later(CLOCK_MONOTONIC, 1);
	without(be_there, &at);
	q = new_queue(&w, 4096);
	memset(q->ring->event, 0, q->size * sizeof(*q->ring->event));
	sleep_in_one_queue(&w, run_collector, MANY_SLEEPERS);
	at = later(CLOCK_MONOTONIC, 5);
	at.tv_nsec = 10000000;
	for (i = 0; i < ARRAY_SIZE(batch); i++)
		kevent_set_timer(&batch[i], kevent_ns(&at), 0,
				 KEVENT_TIMER_ABSTIME, KEVENT_REQ_ONESHOT, i);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_ADD, 1000, batch), 0);
	CHECK(later(CLOCK_MONOTONIC, 0).tv_sec < at.tv_sec);
	at.tv_nsec = 0;
	with(be_there, &at);
	finish(&w);
}

static void sleepers_have_buffers(void)
{
	write_among("sleepers with buffers", run_reader);
}

/* By marks of the watches of @batch, and the watch of mark_it() has none. */
static void fill_ring(struct queue *q)
{
	int i, nr = (int)q->size;

	for (i = 0; i < nr; i++)
		kevent_set_user(&batch[i], i + 2, 1, KEVENT_REQ_READY, i);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_ADD, nr, batch), 0);
	MUST_EQ(kevent_wait(q->fd, nr, 0, NULL, 0, NULL), nr);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
}

/* The first of them is woken for each mark, and has none. */
static void sleepers_want_room(void)
{
	struct queue *q;
	struct worst w;

	start(&w, "sleepers that want room");
	q = new_queue(&w, 8);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
	without(mark_it, q);
	q = new_queue(&w, 8);
	fill_ring(q);
	sleep_in_one_queue(&w, run_waiter_for_room, MANY_SLEEPERS);
	with(mark_it, q);
	finish(&w);
}

static void commit_all(void *arg)
{
	struct queue *q = arg;

	MUST_EQ(kevent_commit(q->fd, q->size, 0), (int)q->size);
}

/* What waits in the kernel is enough for each of them. */
static void sleepers_get_room(void)
{
	struct queue *q;
	struct worst w;

	start(&w, "sleepers that get room");
	q = new_queue(&w, 4096);
	fill_ring(q);
	without(commit_all, q);
	q = new_queue(&w, 4096);
	fill_ring(q);
	sleep_in_one_queue(&w, run_waiter_for_room, MANY_SLEEPERS);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, q->size, batch),
		(int)q->size);
	settle();
	with(commit_all, q);
	finish(&w);
}

static void queue_is_polled(void)
{
	struct worst w;
	struct queue *q;
	int fd;

	start(&w, "poll of a queue by many epolls");
	fd = eventfd(0, EFD_NONBLOCK);
	poll_by_epolls(fd, EPOLLS);
	without(write_byte, &fd);
	q = new_queue(&w, 0);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
	poll_by_epolls(q->fd, EPOLLS);
	w.watches = EPOLLS;
	with(mark_it, q);
	finish(&w);
}

/*
 * A signalfd uses the wait queue of the process that polls it, and that wait
 * queue ends with the process. A child shares the descriptors, so they stay
 * open.
 */
static pid_t start_sharing_files(int (*fn)(void *arg), void *arg)
{
	pid_t pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		_exit(fn(arg));
	MUST(pid > 0);
	return pid;
}

struct doomed {
	struct worst	w;
	int		fd, step[2];
};

static int watch_and_wait(void *arg)
{
	struct doomed *d = arg;
	unsigned int i;
	int err;

	for (i = 0; i < d->w.nr_queues; i++) {
		err = add_poll(d->w.queues[i].fd, d->fd, KEVENT_POLL_POLLIN,
			       KEVENT_REQ_ET, i);
		if (err)
			break;
		d->w.watches++;
	}
	if (write(d->step[1], "", 1) != 1)
		return 1;
	return wait_for_ever(NULL);
}

static void wait_queue_dies(void)
{
	struct doomed *d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char byte;
	pid_t pid;

	MUST(d != MAP_FAILED);
	start(&d->w, "POLL, wait queue dies");
	MUST_EQ(pipe(d->step), 0);
	d->fd = signalfd(-1, &(sigset_t){}, 0);
	MUST(d->fd >= 0);
	pid = start_sharing_files(watch_and_wait, d);
	MUST_EQ(read(d->step[0], &byte, 1), 1);
	without(end_process, &pid);
	while (d->w.nr_queues < QUEUES)
		new_queue(&d->w, 8);
	pid = start_sharing_files(watch_and_wait, d);
	MUST_EQ(read(d->step[0], &byte, 1), 1);
	with(end_process, &pid);
	finish(&d->w);
}

static const struct test_case cases[] = {
	WORST(wait_queue_dies),
	WORST(mark_wakes_all),
	WORST(sleepers_want_several),
	WORST(sleepers_want_more_timers),
	WORST(sleepers_have_buffers),
	WORST(sleepers_want_room),
	WORST(sleepers_get_room),
	WORST(queue_is_polled),
	WORST(wake_up_is_requested),
	{}
};

const struct test_suite worst_sleepers_suite = {
	.name = "worst_sleepers",
	.cases = cases,
	.only_by_name = true,
};
