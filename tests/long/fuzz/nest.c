// SPDX-License-Identifier: GPL-2.0
/*
 * The model of queues that are watched by queues
 *
 * poll(2) says of a queue, as of other files, what holds. When it becomes readable its
 * watches are woken; while it is readable each operation may wake them.
 */
#include <errno.h>
#include <unistd.h>

#include "fuzz.h"

static bool is_of(const struct end *e, int q)
{
	return e->slots && e->kind == KIND_QUEUE && e->queue == q;
}

/* All descriptors of a queue are of one open file. */
bool nest_open(int x, int q)
{
	int i;

	if (W.fallback || W.q[q].fd < 0)
		return false;
	emit("fd[%d] = dup(q[%d].fd);", x, q);
	for (i = 0; i < NR_ENDS && !is_of(&W.end[i], q); i++)
		;
	if (i < NR_ENDS) {
		W.slot[x] = (struct slot){ .fd = dup(W.q[q].fd), .end = i, .was = -1 };
		W.end[i].slots++;
		return true;
	}
	fill_slot(x, dup(W.q[q].fd), KIND_QUEUE);
	W.end[W.slot[x].end].queue = q;
	return true;
}

/* Does a wake-up of queue @q come to queue @from? */
static bool reaches(int q, int from)
{
	const struct watch *w;
	unsigned int n;

	if (q == from)
		return true;
	for (n = 0; n < W.q[q].nr; n++) {
		w = &W.q[q].w[n];
		if (w->used && w->end >= 0 &&
		    W.end[w->end].kind == KIND_QUEUE &&
		    reaches(W.end[w->end].queue, from))
			return true;
	}
	return false;
}

int nest_check(const struct op *op)
{
	const struct end *e = &W.end[W.slot[op->x].end];

	return e->kind == KIND_QUEUE && reaches(e->queue, op->q) ? -ELOOP : 0;
}

/* A queue of the model goes. So that it is gone, nobody may have it open. */
void nest_close(int q)
{
	int x;

	for (x = 0; x < NR_SLOTS; x++)
		if (W.slot[x].end >= 0 && is_of(&W.end[W.slot[x].end], q))
			do_close(&(struct op){ .x = x });
}

/* May queue @q, or one below it, become readable while nothing is done to it? */
static bool has_timer(int q)
{
	const struct watch *w;
	unsigned int n;

	for (n = 0; n < W.q[q].nr; n++) {
		w = &W.q[q].w[n];
		if (!w->used)
			continue;
		if (w->type == KEVENT_TIMER || w->type == KEVENT_POSIX_TIMER)
			return true;
		if (w->end >= 0 && W.end[w->end].kind == KIND_QUEUE &&
		    has_timer(W.end[w->end].queue))
			return true;
	}
	return false;
}

/* What of poll(2) may hold of @e when a call looks, though it did not a moment ago */
uint32_t nest_soon(const struct end *e)
{
	if (!e->slots || e->kind != KIND_QUEUE || !has_timer(e->queue))
		return 0;
	return KEVENT_POLL_POLLIN | KEVENT_POLL_POLLRDNORM;
}

/*
 * All open files were looked at. A level watch that ADD has handed back makes its queue
 * readable, and wakes nobody. A timer may do so between this and the next call.
 */
void nest_looked(void)
{
	uint32_t rising, may;
	struct end *e;
	int i;

	for (i = 0; i < NR_ENDS; i++) {
		e = &W.end[i];
		rising = W.handed ? 0 : e->now & ~e->before;
		if (!e->slots || e->kind != KIND_QUEUE)
			continue;
		may = e->now | nest_soon(e);
		if (may)
			file_activity(i, rising, may, false);
	}
}
