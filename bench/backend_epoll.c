// SPDX-License-Identifier: GPL-2.0
/*
 * epoll, level (lt) and edge triggered (et)
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench.h"

/**
 * struct bench_queue - an epoll file
 * @fd: its descriptor
 * @flags: EPOLLET or 0, for each watch
 */
struct bench_queue {
	int		fd;
	uint32_t	flags;
};

/* Events of one epoll_wait(); as many as the workloads ask for at once */
#define WAIT_MAX	256

static struct bench_queue *epoll_open(const char *mode, unsigned int watches,
				      unsigned int ready)
{
	struct bench_queue *q = bench_alloc(1, sizeof(*q));

	(void)watches;
	(void)ready;
	q->fd = epoll_create1(EPOLL_CLOEXEC);
	if (q->fd < 0)
		bench_die("epoll_create1: %s", strerror(errno));
	q->flags = strcmp(mode, "et") ? 0 : EPOLLET;
	return q;
}

static void epoll_close(struct bench_queue *q)
{
	close(q->fd);
	free(q);
}

/* The bits of poll() are those of epoll */
static void control(struct bench_queue *q, int op, const struct bench_watch *w,
		    unsigned int nr)
{
	struct epoll_event ev;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		ev.events = (uint32_t)w[i].events | q->flags;
		ev.data.u64 = w[i].cookie;
		if (epoll_ctl(q->fd, op, w[i].fd, &ev))
			bench_die("epoll_ctl %d: %s", op, strerror(errno));
	}
}

static void epoll_add(struct bench_queue *q, const struct bench_watch *w,
		      unsigned int nr)
{
	control(q, EPOLL_CTL_ADD, w, nr);
}

static void epoll_modify(struct bench_queue *q, const struct bench_watch *w,
			 unsigned int nr)
{
	control(q, EPOLL_CTL_MOD, w, nr);
}

static void epoll_remove(struct bench_queue *q, const struct bench_watch *w,
			 unsigned int nr)
{
	control(q, EPOLL_CTL_DEL, w, nr);
}

static unsigned int epoll_wait_for(struct bench_queue *q, uint64_t *cookies,
				   unsigned int max, int timeout)
{
	struct epoll_event ev[WAIT_MAX];
	int nr, i;

	do {
		nr = epoll_wait(q->fd, ev, max < WAIT_MAX ? (int)max : WAIT_MAX,
				timeout);
	} while (nr < 0 && errno == EINTR);
	if (nr < 0)
		bench_die("epoll_wait: %s", strerror(errno));
	for (i = 0; i < nr; i++)
		cookies[i] = ev[i].data.u64;
	return (unsigned int)nr;
}

static void *epoll_native(struct bench_queue *q)
{
	return &q->fd;
}

static int epoll_probe(const char *mode)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	(void)mode;
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static const char *const modes[] = { "lt", "et", NULL };

const struct bench_backend backend_epoll = {
	.name	= "epoll",
	.modes	= modes,
	.closes	= true,
	.probe	= epoll_probe,
	.open	= epoll_open,
	.close	= epoll_close,
	.add	= epoll_add,
	.modify	= epoll_modify,
	.remove	= epoll_remove,
	.wait	= epoll_wait_for,
	.native	= epoll_native,
};
