// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of the kernel: TIMER of kevent, timerfd with epoll
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libkevent.h>

#include "bench.h"
#include "timers.h"

#define NSEC_PER_SEC	1000000000ull
#define RING_SIZE	4096

static struct timespec time_of(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(ns % NSEC_PER_SEC) };

	return ts;
}

/* --- kevent ------------------------------------------------------------- */

static struct kevent_queue queue;
static KEVENT_RING_STORAGE(RING_SIZE) ring_mem;

static void kevent_open(unsigned int nr)
{
	int ret = kevent_queue_init(&queue, &ring_mem.ring, RING_SIZE, 0);

	(void)nr;
	if (ret)
		bench_die("kevent_init: %s", strerror(-ret));
}

static void change_batch(__u32 cmd, const uint32_t *ids, const uint64_t *due,
			 unsigned int nr)
{
	struct ukevent ev[TIMERS_BATCH];
	unsigned int i;
	int ret;

	for (i = 0; i < nr; i++)
		kevent_set_timer(&ev[i], due ? due[ids[i]] : 0, 0,
				 KEVENT_TIMER_ABSTIME, KEVENT_REQ_ONESHOT,
				 ids[i]);
	ret = kevent_ctl(queue.fd, cmd, nr, ev);
	if (ret)
		bench_die("kevent_ctl %u of timers: %s", cmd,
			  strerror(ret < 0 ? -ret : -kevent_error(ev)));
}

static void change(__u32 cmd, const uint32_t *ids, const uint64_t *due,
		   unsigned int nr)
{
	for (; nr > TIMERS_BATCH; nr -= TIMERS_BATCH, ids += TIMERS_BATCH)
		change_batch(cmd, ids, due, TIMERS_BATCH);
	change_batch(cmd, ids, due, nr);
}

static void kevent_arm(const uint32_t *ids, const uint64_t *due,
		       unsigned int nr)
{
	change(KEVENT_CTL_ADD, ids, due, nr);
}

static void kevent_rearm(const uint32_t *ids, const uint64_t *due,
			 unsigned int nr)
{
	change(KEVENT_CTL_MODIFY, ids, due, nr);
}

static void kevent_cancel(const uint32_t *ids, unsigned int nr)
{
	change(KEVENT_CTL_REMOVE, ids, NULL, nr);
}

static unsigned int kevent_collect(uint32_t *ids, unsigned int max)
{
	struct ukevent ev[TIMERS_BATCH];
	int i, nr;

	nr = kevent_queue_wait(&queue, NULL);
	if (nr > 0)
		nr = kevent_queue_pop(&queue, ev,
				      max < TIMERS_BATCH ? max : TIMERS_BATCH);
	if (nr < 0)
		bench_die("kevent_wait: %s", strerror(-nr));
	for (i = 0; i < nr; i++) {
		if (ev[i].ret_data[0] != 1 || ev[i].ret_data[1])
			bench_die("kevent timer %llu: %u expirations",
				  (unsigned long long)ev[i].ptr,
				  ev[i].ret_data[0]);
		ids[i] = (uint32_t)ev[i].ptr;
	}
	return (unsigned int)nr;
}

static void kevent_timers_close(void)
{
	kevent_queue_close(&queue);
}

const struct timer_peer timers_kevent = {
	kevent_open, kevent_arm, kevent_rearm, kevent_cancel,
	kevent_collect, kevent_timers_close
};

/* --- timerfd with epoll -------------------------------------------------- */

static int epfd, *fds;
static unsigned int nr_fds;

static void epoll_open(unsigned int nr)
{
	unsigned int i;

	epfd = epoll_create1(EPOLL_CLOEXEC);
	if (epfd < 0)
		bench_die("epoll_create1: %s", strerror(errno));
	fds = bench_alloc(nr, sizeof(*fds));
	nr_fds = nr;
	for (i = 0; i < nr; i++)
		fds[i] = -1;
}

static void settime(int fd, uint64_t due)
{
	struct itimerspec when = { .it_value = time_of(due) };

	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL))
		bench_die("timerfd_settime: %s", strerror(errno));
}

static void epoll_rearm(const uint32_t *ids, const uint64_t *due,
			unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		settime(fds[ids[i]], due[ids[i]]);
}

static int make_timer(uint32_t id)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u64 = id };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0)
		bench_die("timerfd_create: %s", strerror(errno));
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev))
		bench_die("epoll_ctl: %s", strerror(errno));
	return fd;
}

static void epoll_arm(const uint32_t *ids, const uint64_t *due,
		      unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (fds[ids[i]] < 0)
			fds[ids[i]] = make_timer(ids[i]);
		settime(fds[ids[i]], due[ids[i]]);
	}
}

static void epoll_cancel(const uint32_t *ids, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		close(fds[ids[i]]);
		fds[ids[i]] = -1;
	}
}

/* The descriptor stays open, for the next time */
static unsigned int epoll_collect(uint32_t *ids, unsigned int max)
{
	struct epoll_event ev[TIMERS_BATCH];
	uint64_t expirations;
	int i, nr;

	nr = epoll_wait(epfd, ev, max < TIMERS_BATCH ? (int)max : TIMERS_BATCH,
			-1);
	if (nr < 0)
		bench_die("epoll_wait: %s", strerror(errno));
	for (i = 0; i < nr; i++) {
		ids[i] = (uint32_t)ev[i].data.u64;
		if (read(fds[ids[i]], &expirations, 8) != 8 || expirations != 1)
			bench_die("timerfd %u has not expired once", ids[i]);
	}
	return (unsigned int)nr;
}

static void epoll_close(void)
{
	unsigned int i;

	for (i = 0; i < nr_fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(epfd);
	free(fds);
}

const struct timer_peer timers_epoll = {
	epoll_open, epoll_arm, epoll_rearm, epoll_cancel,
	epoll_collect, epoll_close
};
