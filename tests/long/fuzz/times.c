// SPDX-License-Identifier: GPL-2.0
/*
 * The model of TIMER and POSIX_TIMER
 *
 * A timer was set at some time between the beginning of the call and its end, and an entry
 * was made between the beginning of a call and now: so there are bounds for the number of
 * expirations that all entries together say.
 */
#include <errno.h>

#include "fuzz.h"

uint64_t timer_first(const struct op *op)
{
	return (op->n % 20 + 1) * 100000ull;
}

/* 0: it expires once */
uint64_t timer_interval(const struct op *op)
{
	return op->n & 32 ? 0 : (op->n % 7 + 1) * 70000ull;
}

/* A call that began at W.begin_ns has set it. */
void source_set_time(struct watch *w, uint64_t first, uint64_t interval)
{
	w->first_ns = W.begin_ns + first;
	w->last_ns = now_ns() + first;
	w->interval = interval;
	w->counted = 0;
	w->pending[0] = 0;
}

static uint64_t expirations(uint64_t first, uint64_t interval, uint64_t now)
{
	if (!first || now < first)
		return 0;
	return interval ? (now - first) / interval + 1 : 1;
}

/* READY has an entry made, in which there may be no expiration. */
int timer_ctl(const struct op *op, struct watch *w)
{
	if (op->cmd == KEVENT_CTL_REMOVE)
		return 0;
	if (op->cmd == KEVENT_CTL_READY) {
		if (w->armed)
			w->pending[0] = 1;
		return 0;
	}
	source_set_time(w, timer_first(op), timer_interval(op));
	if (op->flags & KEVENT_REQ_READY && !(op->flags &
					      KEVENT_REQ_DISABLED))
		w->pending[0] = 1;
	return 0;
}

int posix_timer_ctl(const struct op *op, struct watch *w)
{
	(void)op;
	(void)w;
	return 0;
}

void timer_made(struct watch *w, const struct ukevent *uk)
{
	uint64_t nr = (uint64_t)uk->ret_data[1] << 32 | uk->ret_data[0];
	uint64_t least, most;

	if (w->type == KEVENT_POSIX_TIMER)
		nr++;
	else if (!nr && !w->pending[0])
		fail("an entry of timer %u without an expiration", w->key);
	w->counted += nr;
	least = expirations(w->last_ns, w->interval, W.begin_ns);
	/* A mark does not wait for an interrupt that is due. */
	if (w->pending[0])
		least = 0;
	w->pending[0] = 0;
	most = expirations(w->first_ns, w->interval, now_ns());
	if (w->counted > most)
		fail("timer %u has said %llu expirations of at most %llu",
		     w->key, (unsigned long long)w->counted,
		     (unsigned long long)most);
	if (w->counted < least && W.call)
		fail("timer %u has said %llu expirations of at least %llu",
		     w->key, (unsigned long long)w->counted,
		     (unsigned long long)least);
}

struct watch *find_posix_timer(unsigned int x)
{
	unsigned int i;
	struct watch *w;

	for (i = 0; i < NR_QUEUES; i++) {
		w = find_watch(&W.q[i], KEVENT_POSIX_TIMER, x);
		if (w)
			return w;
	}
	return NULL;
}

bool source_is_late(const struct fqueue *q, uint64_t due)
{
	const struct watch *w;
	unsigned int i;

	for (i = 0; i < q->nr; i++) {
		w = &q->w[i];
		if (w->used && w->armed && (w->type == KEVENT_TIMER ||
					    w->type == KEVENT_POSIX_TIMER) &&
		    expirations(w->last_ns, w->interval, due) > w->counted)
			return true;
	}
	return false;
}
