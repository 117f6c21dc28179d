// SPDX-License-Identifier: GPL-2.0
/* The longest stretch with interrupts off: calls on a large queue: see worst.h */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "timers.h"
#include "worst.h"

static struct ukevent *room;
static struct ukevent batch[4096];

static void get_all(void *arg)
{
	struct queue *q = arg;

	while (get_events(q->fd, 1, FILES, 0, room) > 0)
		if (room[0].type != KEVENT_USER)
			return;
}

static void get_none(void *arg)
{
	get_events(((struct queue *)arg)->fd, 1, 1, 0, room);
}

static void make_room(void)
{
	room = calloc(FILES, sizeof(*room));
	MUST(room);
}

static void marks_are_collected(void)
{
	struct ukevent ev;
	struct worst w;
	unsigned int i;

	start(&w, "USER, kept marks");
	make_room();
	without(get_none, new_queue(&w, 0));
	for (i = 0; i < 64; i++) {
		kevent_set_user(&ev, i, 1, KEVENT_REQ_KEEP_EACH, i);
		MUST_EQ(kevent_ctl_one(w.queues[0].fd, KEVENT_CTL_ADD, &ev), 0);
		while (w.watches < FILES) {
			kevent_set_mark(&ev, i, 1, i);
			if (kevent_ctl_one(w.queues[0].fd, KEVENT_CTL_READY,
					   &ev) < 0)
				break;
			w.watches++;
		}
	}
	with(get_all, &w.queues[0]);
	finish(&w);
}

/* Ready level watches: reported again and again */
static void watch_ready_files(struct worst *w, struct queue *q)
{
	unsigned int i;
	int fd;

	for (i = 0; i < FILES; i++) {
		fd = eventfd(1, EFD_NONBLOCK);
		if (fd < 0 ||
		    !added(w, add_poll(q->fd, fd, KEVENT_POLL_POLLIN,
				       0, i)))
			return;
	}
}

static void level_watches_are_collected(void)
{
	struct worst w;

	start(&w, "level watches, get_events");
	make_room();
	without(get_none, new_queue(&w, 0));
	watch_ready_files(&w, &w.queues[0]);
	with(get_all, &w.queues[0]);
	finish(&w);
}

static void level_watches_are_collected_again(void)
{
	struct worst w;

	start(&w, "level watches, looked at again");
	make_room();
	without(get_none, new_queue(&w, 0));
	watch_ready_files(&w, &w.queues[0]);
	get_all(&w.queues[0]);
	with(get_all, &w.queues[0]);
	finish(&w);
}

static void call_with_full_ring(void *arg)
{
	struct queue *q = arg;
	int i;

	for (i = 0; i < 3; i++)
		wait_ring(q, 8, 0);
}

/*
 * All watches were delivered once, to a buffer: they are on the list of level
 * watches.
 */
static void full_ring_with_level_watches(void)
{
	struct worst w;

	start(&w, "level watches, full ring");
	make_room();
	without(call_with_full_ring, new_queue(&w, 8));
	watch_ready_files(&w, &w.queues[0]);
	wait_ring(&w.queues[0], 8, 0);
	get_all(&w.queues[0]);
	with(call_with_full_ring, &w.queues[0]);
	finish(&w);
}

static void close_it(void *arg)
{
	close(((struct queue *)arg)->fd);
	/* The work after a grace period counts as well. */
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
}

static void fill_with_marks(struct worst *w, struct queue *q)
{
	unsigned int i;

	for (i = 0; i < 4 * FILES; i++)
		if (!added(w, add_user(q->fd, i, 1, KEVENT_REQ_READY, i)))
			return;
}

static void closing_a_queue_of_marks(void)
{
	struct worst w;

	start(&w, "close, USER");
	without(close_it, new_queue(&w, 0));
	fill_with_marks(&w, new_queue(&w, 0));
	with(close_it, last_queue(&w));
	finish(&w);
}

static void closing_a_queue_of_files(void)
{
	struct worst w;

	start(&w, "close, files");
	without(close_it, new_queue(&w, 0));
	watch_ready_files(&w, new_queue(&w, 0));
	with(close_it, last_queue(&w));
	finish(&w);
}

static void closing_a_queue_of_timers(void)
{
	struct timespec at;
	struct worst w;

	start(&w, "close, TIMER");
	at = later(CLOCK_MONOTONIC, 100000);
	without(close_it, new_queue(&w, 0));
	new_queue(&w, 0);
	add_timers(&w, &at, 0, false, FILES);
	with(close_it, last_queue(&w));
	finish(&w);
}

static void closing_a_queue_of_inodes(void)
{
	struct worst w;

	start(&w, "close, INODE");
	close(open_directory("/tmp/worst-close"));
	without(close_it, new_queue(&w, 0));
	new_queue(&w, 0);
	watch_directory(&w, "/tmp/worst-close", false);
	with(close_it, last_queue(&w));
	finish(&w);
}

static void read_fdinfo(void *arg)
{
	CHECK(fdinfo(((struct queue *)arg)->fd, "kevent-watches") >= 0);
}

static void fdinfo_of_a_large_queue(void)
{
	struct worst w;

	start(&w, "fdinfo");
	without(read_fdinfo, new_queue(&w, 0));
	fill_with_marks(&w, &w.queues[0]);
	with(read_fdinfo, &w.queues[0]);
	finish(&w);
}

static void fdinfo_with_many_sleepers(void)
{
	struct worst w;
	struct queue *q;
	unsigned int i;

	start(&w, "fdinfo, many sleepers");
	q = new_queue(&w, 8);
	without(read_fdinfo, q);
	for (i = 1; i < SLEEPERS; i++)
		w.queues[w.nr_queues++] = *q;
	w.watches = SLEEPERS;
	sleep_in_queues(&w);
	with(read_fdinfo, q);
	finish(&w);
}

static void add_batch(void *arg)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(batch); i++)
		kevent_set_user(&batch[i], i, 1, KEVENT_REQ_READY, i);
	kevent_ctl(((struct queue *)arg)->fd, KEVENT_CTL_ADD, ARRAY_SIZE(batch),
		   batch);
}

static void remove_batch(void *arg)
{
	kevent_ctl(((struct queue *)arg)->fd, KEVENT_CTL_REMOVE,
		   ARRAY_SIZE(batch), batch);
}

#ifdef __LP64__

/* Files that many users have */

#define MANY_USERS	40
#define OF_USER		1000

/* Each user watches descriptors of one file, which are those of all. */
static void watch_as_users(struct worst *w, const int *copies)
{
	struct kevent_call call = { .nr = SYS_read };
	struct ukevent ev;
	unsigned int i, k;

	for (i = 0; i < MANY_USERS; i++) {
		become(0);
		become(USER + i);
		new_queue(w, 0);
		for (k = 0; k < OF_USER; k++) {
			call.args[0] = (uint64_t)copies[k];
			kevent_set_bound(&ev, k, &call);
			if (!added(w, kevent_ctl_one(last_queue(w)->fd,
						     KEVENT_CTL_ADD, &ev)))
				break;
		}
	}
	become(0);
}

struct shared {
	int	kq, fd, copy;
};

static void add_and_remove(void *arg)
{
	struct shared *s = arg;

	MUST_EQ(add_pipe(s->kq, s->fd, KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0), 0);
	MUST_EQ(remove_file(s->kq, KEVENT_PIPE, s->fd), 0);
}

static void close_a_copy(void *arg)
{
	struct shared *s = arg;

	close(s->copy);
}

static void shared_file(struct worst *w, void (*trigger)(void *arg))
{
	struct epoll_event other = { .events = EPOLLIN };
	int fd[2], copies[OF_USER], epfd = epoll_create1(0);
	struct shared s;
	unsigned int i;

	open_pipe(fd);
	MUST_EQ(epoll_ctl(epfd, EPOLL_CTL_ADD, fd[0], &other), 0);
	for (i = 0; i < OF_USER; i++) {
		copies[i] = dup(fd[0]);
		MUST(copies[i] >= 0);
	}
	become(0);
	s = (struct shared){ new_queue(w, 0)->fd, fd[0], dup(fd[0]) };
	without(trigger, &s);
	s.copy = dup(fd[0]);
	watch_as_users(w, copies);
	with(trigger, &s);
	finish(w);
}

static void added_to_a_shared_file(void)
{
	struct worst w;

	start(&w, "one file, 40 users, ADD");
	shared_file(&w, add_and_remove);
}

static void shared_file_is_closed(void)
{
	struct worst w;

	start(&w, "one file, 40 users, close");
	shared_file(&w, close_a_copy);
}

#endif

static void batches(void)
{
	struct worst w;

	start(&w, "ADD and REMOVE of 4096");
	w.watches = ARRAY_SIZE(batch);
	without(add_batch, new_queue(&w, 0));
	with(remove_batch, &w.queues[0]);
	finish(&w);
}

static const struct test_case cases[] = {
	WORST(marks_are_collected),
	WORST(level_watches_are_collected),
	WORST(level_watches_are_collected_again),
	WORST(full_ring_with_level_watches),
	WORST(closing_a_queue_of_marks),
	WORST(closing_a_queue_of_files),
	WORST(closing_a_queue_of_timers),
	WORST(closing_a_queue_of_inodes),
	WORST(fdinfo_of_a_large_queue),
	WORST(fdinfo_with_many_sleepers),
#ifdef __LP64__
	WORST(added_to_a_shared_file),
	WORST(shared_file_is_closed),
#endif
	WORST(batches),
	{}
};

const struct test_suite worst_calls_suite = {
	.name = "worst_calls",
	.cases = cases,
	.only_by_name = true,
};
