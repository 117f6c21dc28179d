// SPDX-License-Identifier: GPL-2.0
/*
 * poll: the kernel looks at each watch in each call
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/**
 * struct bench_queue - an array for poll()
 * @nr: its length
 * @fds: by cookie; the descriptor is negative where there is no watch
 */
struct bench_queue {
	unsigned int	nr;
	struct pollfd	*fds;
};

static struct bench_queue *poll_open(const char *mode, unsigned int watches,
				     unsigned int ready)
{
	struct bench_queue *q = bench_alloc(1, sizeof(*q));
	unsigned int i;

	(void)mode;
	(void)ready;
	q->nr = watches;
	q->fds = bench_alloc(watches, sizeof(*q->fds));
	for (i = 0; i < watches; i++)
		q->fds[i].fd = -1;
	return q;
}

static void poll_close(struct bench_queue *q)
{
	free(q->fds);
	free(q);
}

static void poll_set(struct bench_queue *q, const struct bench_watch *w,
		     unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		q->fds[w[i].cookie].fd = w[i].fd;
		q->fds[w[i].cookie].events = w[i].events;
	}
}

static void poll_remove(struct bench_queue *q, const struct bench_watch *w,
			unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		q->fds[w[i].cookie].fd = -1;
}

static unsigned int poll_wait(struct bench_queue *q, uint64_t *cookies,
			      unsigned int max, int timeout)
{
	unsigned int i, nr = 0;
	int left;

	do {
		left = poll(q->fds, q->nr, timeout);
	} while (left < 0 && errno == EINTR);
	if (left < 0)
		bench_die("poll: %s", strerror(errno));
	for (i = 0; left && nr < max; i++) {
		if (!q->fds[i].revents)
			continue;
		cookies[nr++] = i;
		left--;
	}
	return nr;
}

static void *poll_native(struct bench_queue *q)
{
	return q->fds;
}

static const char *const modes[] = { "level", NULL };

const struct bench_backend backend_poll = {
	.name	= "poll",
	.modes	= modes,
	.linear	= true,
	.open	= poll_open,
	.close	= poll_close,
	.add	= poll_set,
	.modify	= poll_set,
	.remove	= poll_remove,
	.wait	= poll_wait,
	.native	= poll_native,
};
