// SPDX-License-Identifier: GPL-2.0
/*
 * Events are taken, and each entry is compared with the model when it is made: entries
 * that appear in a ring are seen after the operation that made them.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <string.h>

#include "fuzz.h"

static uint64_t ring_kidx(const struct fqueue *q)
{
	return __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
}

/* Entries of a ring that the model has not seen */
void see_entries(struct fqueue *q)
{
	uint64_t kidx;

	if (q->fd < 0 || !q->size)
		return;
	kidx = ring_kidx(q);
	if (kidx < q->kidx || kidx - q->uidx > q->size)
		fail("position %llu of the kernel in a ring of %u that was read up to %llu",
		     (unsigned long long)kidx, q->size,
		     (unsigned long long)q->uidx);
	if (W.fallback && kidx != q->kidx && !W.call)
		fail("the library has stored an entry without a call");
	while (q->kidx < kidx) {
		const struct ukevent *uk =
			&q->ring->event[q->kidx & (q->size - 1)];

		q->kidx++;
		model_made(q, uk, q->kidx);
	}
}

static void check_readable(struct fqueue *q)
{
	struct pollfd p = { .fd = q->fd, .events = POLLIN };
	bool want = model_waits(q);

	if (q->size && !W.fallback && q->kidx != q->uidx)
		want = true;
	if (want && poll(&p, 1, 0) != 1)
		fail("queue %d has events, and is not readable",
		     (int)(q - W.q));
}

/* After each operation */
void check_queues(void)
{
	unsigned int i;

	for (i = 0; i < NR_QUEUES; i++)
		see_entries(&W.q[i]);
	for (i = 0; i < NR_QUEUES; i++) {
		if (W.q[i].fd < 0)
			continue;
		check_readable(&W.q[i]);
	}
}

/* Returns how many entries a call may make. */
static uint32_t room(const struct fqueue *q, uint32_t max)
{
	uint32_t left = q->size - (uint32_t)(q->kidx - q->uidx);

	if (!q->size)
		return max;
	return max < left ? max : left;
}

/*
 * @copied: to a buffer. With an event there that is not reported again the kernel asks no file of
 * POLL, and leaves it and what is behind it to the next call, as if that were the limit.
 */
static void judge(struct fqueue *q, uint32_t made, uint32_t limit, bool copied)
{
	uint32_t least = model_owing(q);
	bool left = copied && made && !W.fallback && model_leaves_a_poll(q);

	if (made > limit)
		fail("a call for %u events has made %u", limit, made);
	/* The library looks at so many files, and drops what repeats. */
	if (W.fallback && limit < q->nr + 4) {
		model_dropped(q);
		return;
	}
	if (made < (least < limit ? least : limit) && !left)
		fail("queue %d: a call for %u events has made %u of %u that are due",
		     (int)(q - W.q), limit, made, least);
	model_end(q, made < limit && !left);
}

/* What a test that is printed wants of the call: what it has made, or what is due */
static int wanted(const struct fqueue *q, int made, uint32_t limit)
{
	uint32_t least = model_owing(q);

	if (least > limit)
		least = limit;
	return made < (int)least ? (int)least : made;
}

static void collect_ring(struct fqueue *q, uint32_t max)
{
	static const struct timespec zero;
	uint32_t limit = room(q, max);
	uint64_t kidx = q->kidx;
	int ret;

	ret = kevent_wait(q->fd, max, (uint32_t)kidx, &zero, 0, NULL);
	emit("CHECK_EQ(wait_ring(&q[%d], %u, 0), %d);", (int)(q - W.q), max,
	     wanted(q, ret, limit));
	see_entries(q);
	if (ret != (int)(q->kidx - kidx))
		fail("kevent_wait() of queue %d returns %d for %llu entries",
		     (int)(q - W.q), ret,
		     (unsigned long long)(q->kidx - kidx));
	judge(q, q->kidx - kidx, limit, false);
}

static void collect_buffer(struct fqueue *q, uint32_t max)
{
	static const struct timespec zero;
	static struct ukevent ev[4096];
	int ret, i;

	ret = kevent_get_events(q->fd, 0, max, &zero, ev, 0);
	emit("CHECK_EQ(get_events(q[%d].fd, 0, %u, 0, ev), %d);",
	     (int)(q - W.q), max, wanted(q, ret, max));
	if (ret < 0)
		fail("kevent_get_events() of queue %d returns %d",
		     (int)(q - W.q), ret);
	for (i = 0; i < ret; i++)
		model_made(q, &ev[i], 0);
	judge(q, ret, max, true);
}

static void do_pop(struct fqueue *q, uint32_t nr)
{
	uint64_t left = q->kidx - q->uidx;

	q->uidx += nr < left ? nr : left;
	__atomic_store_n(&q->ring->ring_uidx, q->uidx, __ATOMIC_RELEASE);
	emit("__atomic_store_n(&q[%d].ring->ring_uidx, %llu, __ATOMIC_RELEASE);",
	     (int)(q - W.q), (unsigned long long)q->uidx);
}

static void do_commit(struct fqueue *q, uint32_t nr)
{
	uint64_t left = q->kidx - q->uidx, kidx = q->kidx;
	uint32_t freed = nr < left ? nr : left;
	int ret;

	q->uidx += freed;
	emit("CHECK_EQ(kevent_commit(q[%d].fd, %u, 0), %u);", (int)(q - W.q),
	     (uint32_t)q->uidx, freed);
	ret = kevent_commit(q->fd, (uint32_t)q->uidx, q->uidx >> 32);
	if (ret != (int)freed)
		fail("kevent_commit() returns %d instead of %u", ret, freed);
	see_entries(q);
	judge(q, q->kidx - kidx, q->size - (uint32_t)(kidx - q->uidx), false);
}

void do_consume(const struct op *op)
{
	struct fqueue *q = &W.q[op->q];
	uint32_t nr = op->n ? op->n : 4096;

	if (q->fd < 0 || (op->code != OP_COLLECT && !q->size))
		return;
	W.call = true;
	if (op->code == OP_POP) {
		do_pop(q, nr);
	} else {
		model_begin(q);
		if (op->code == OP_COMMIT)
			do_commit(q, nr);
		else if (q->size)
			collect_ring(q, nr);
		else
			collect_buffer(q, nr);
	}
	W.call = false;
}
