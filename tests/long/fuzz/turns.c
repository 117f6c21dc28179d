// SPDX-License-Identifier: GPL-2.0
/*
 * The model of several queues on one file
 *
 * One queue is notified of data, and one of room. That is a debt of the file: as long as
 * the condition holds, one of the watches that asked for it must have reported it, and
 * still be there, or be one-shot and delivered, or DISPATCH and delivered. The debt is
 * looked at when each of the queues has been asked since the activity, and since a
 * watch last left.
 */
#include "fuzz.h"

uint32_t class_bits(unsigned int class)
{
	return class ? ROOM_BITS : DATA_BITS;
}

static uint32_t class_events(const struct watch *w, unsigned int class)
{
	if (w->type == KEVENT_POLL)
		return class_bits(class);
	return class ? KEVENT_SOCKET_SEND :
		       KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT;
}

static bool is_candidate(const struct watch *w, int end, unsigned int class)
{
	return w->used && w->armed && w->end == end && is_file(w->type) &&
	       w->event & class_events(w, class);
}

static bool takes_turns(const struct watch *w, int end, unsigned int class)
{
	return is_candidate(w, end, class) &&
	       !(w->flags & KEVENT_REQ_WAKEUP_ALL);
}

/* One that took its turn before MODIFY gave it WAKEUP_ALL still owes that. */
static bool may_owe(const struct watch *w, int end, unsigned int class)
{
	return is_candidate(w, end, class) &&
	       (!(w->flags & KEVENT_REQ_WAKEUP_ALL) || w->in_turn[class]);
}

static unsigned int queues_of(int end, unsigned int class,
			      bool (*fn)(const struct watch *w, int end,
					 unsigned int class))
{
	unsigned int i, n, bits = 0;

	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++)
			if (fn(&W.q[i].w[n], end, class))
				bits |= 1u << i;
	return bits;
}

bool turn_begins(int end, unsigned int class)
{
	unsigned int queues = queues_of(end, class, takes_turns);
	bool several = !W.fallback && queues & (queues - 1);

	/* One queue alone must report it itself. */
	W.end[end].open_debt[class] = several;
	W.end[end].collected[class] = 0;
	return several;
}

void turn_told(struct watch *w, uint32_t mask)
{
	unsigned int class;

	for (class = 0; class < 2; class++)
		if (mask & class_events(w, class))
			w->told[class] = true;
}

static void hand_on(struct watch *from, unsigned int class)
{
	unsigned int i, n;
	struct watch *w;

	from->notified[class] = from->in_turn[class] = false;
	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++) {
			w = &W.q[i].w[n];
			if (w != from && takes_turns(w, from->end, class))
				file_handed_on(w, class);
		}
}

static void leave_class(struct watch *w, unsigned int class)
{
	if (w->notified[class])
		hand_on(w, class);
	w->told[class] = false;
	W.end[w->end].collected[class] = 0;
}

void turn_leaves(struct watch *w)
{
	if (w->end < 0 || !is_file(w->type))
		return;
	leave_class(w, 0);
	leave_class(w, 1);
}

/* MODIFY has come, and the watch is as before. It owes on what it still wants. */
void turn_modified(struct watch *w, uint32_t event, bool disabled)
{
	unsigned int class;

	for (class = 0; class < 2; class++)
		if (disabled || !(event & class_events(w, class)))
			leave_class(w, class);
}

/* Its queue looks at the file again, at the next collection. */
void turn_asked(const struct fqueue *q, const struct watch *w)
{
	W.end[w->end].collected[0] &= ~(1u << (q - W.q));
	W.end[w->end].collected[1] &= ~(1u << (q - W.q));
}

/* A one-shot watch that was delivered owes nothing, DISPATCH hands nothing on. */
void turn_spent(struct watch *w)
{
	unsigned int class;

	for (class = 0; class < 2; class++)
		if (w->told[class])
			W.end[w->end].open_debt[class] = false;
}

void turn_looked(struct end *e)
{
	unsigned int class;

	for (class = 0; class < 2; class++)
		if (!(e->now & class_bits(class)))
			e->open_debt[class] = false;
}

static void check_debt(int end, unsigned int class)
{
	struct end *e = &W.end[end];
	unsigned int i, n, queues = queues_of(end, class, may_owe);

	if (!queues || queues & ~e->collected[class])
		return;
	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++)
			if (may_owe(&W.q[i].w[n], end, class) &&
			    W.q[i].w[n].told[class])
				return;
	fail("%s of open file %d: no queue of several has reported it",
	     class ? "room" : "data", end);
}

/* A collection of the queue has found nothing more. */
void turn_collected(struct fqueue *q)
{
	unsigned int class, i;

	for (i = 0; i < ARRAY_SIZE(W.end); i++)
		for (class = 0; class < 2; class++) {
			if (!W.end[i].slots || !W.end[i].open_debt[class])
				continue;
			W.end[i].collected[class] |= 1u << (q - W.q);
			check_debt(i, class);
		}
}
