// SPDX-License-Identifier: GPL-2.0
/*
 * The model of SOCKET, PIPE and POLL
 *
 * A level entry has the conditions that hold. An ET entry needs an activity, and
 * has what the activity was, unless the kernel had to look.
 */
#include "fuzz.h"

#define CHECKED	KEVENT_REQ_LAST_CHECK

/* What bits of poll(2) mean to a watch */
static uint32_t to_conditions(const struct watch *w, uint32_t bits)
{
	uint32_t mask = 0;

	if (w->type == KEVENT_POLL)
		return bits & (w->event | END_BITS);
	if (bits & DATA_BITS)
		mask |= w->event & (KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT);
	if (bits & ROOM_BITS)
		mask |= w->event & KEVENT_SOCKET_SEND;
	mask |= bits & END_BITS;
	if (w->type == KEVENT_SOCKET && mask &&
	    (!W.fallback || w->event & (KEVENT_SOCKET_RECV |
					KEVENT_SOCKET_ACCEPT)))
		mask |= bits & KEVENT_POLL_POLLRDHUP;
	return mask;
}

uint32_t file_holds(const struct watch *w)
{
	return to_conditions(w, W.end[w->end].now);
}

bool reports_level(const struct watch *w)
{
	return !(w->flags & KEVENT_REQ_ET);
}

/* ADD, MODIFY and READY make the kernel look at the file. */
void file_look(struct fqueue *q, struct watch *w)
{
	uint32_t holds = file_holds(w);

	w->look = true;
	w->may |= holds;
	w->reasons++;
	w->must |= holds & ~covered(q, w);
	turn_asked(q, w);
}

/* The last acknowledgements of a TCP connection wake up when they come. */
static bool is_ending(const struct watch *w)
{
	return W.end[w->end].tcp && W.end[w->end].ending;
}

static void check_level(const struct watch *w, uint32_t mask)
{
	uint32_t holds = file_holds(w);
	uint32_t most = holds | to_conditions(w, nest_soon(&W.end[w->end]));

	/* A wake-up stores what it says, which need not be so. */
	if (!W.call && reports_level(w) && mask == (mask & (holds | w->may)))
		return;
	if (mask & ~most || (reports_level(w) && holds & ~mask))
		fail("an entry of watch %#llx says %#x where %#x holds",
		     (unsigned long long)w->user, mask, holds);
}

static void check_edge(const struct fqueue *q, const struct watch *w,
		       uint32_t mask)
{
	uint32_t allowed = w->may | covered(q, w);

	if (w->look || W.fallback || is_ending(w))
		allowed |= file_holds(w) |
			   to_conditions(w, nest_soon(&W.end[w->end]));
	if (mask & ~allowed)
		fail("an ET entry of watch %#llx says %#x where %#x may be said",
		     (unsigned long long)w->user, mask, allowed);
}

void file_made(struct fqueue *q, struct watch *w, const struct ukevent *uk)
{
	uint32_t mask = uk->ret_data[0];

	if (!mask)
		fail("an entry of watch %#llx says nothing",
		     (unsigned long long)w->user);
	if (!w->reasons && !w->listed && !w->perhaps && !is_ending(w))
		fail("an entry of watch %#llx (%#x) without a reason",
		     (unsigned long long)w->user, mask);
	if (is_unread(q, w) && !(mask & ~w->reported))
		fail("an entry of watch %#llx (%#x) repeats an unread one",
		     (unsigned long long)w->user, mask);
	if (!W.call && W.end[w->end].kind == KIND_QUEUE)
		fail("a wake-up stores an entry of watch %#llx, which is of a queue",
		     (unsigned long long)w->user);
	if (!W.call && w->flags & CHECKED)
		fail("a wake-up stores an entry of watch %#llx, which has LAST_CHECK",
		     (unsigned long long)w->user);
	if (reports_level(w) || w->flags & CHECKED)
		check_level(w, mask);
	else
		check_edge(q, w, mask);
	w->must &= ~mask;
	w->may = W.fallback && w->reasons > 1 ? file_holds(w) : 0;
	w->look = false;
	/* The library need not merge what it finds with what epoll has. */
	w->reasons = W.fallback && w->reasons ? w->reasons - 1 : 0;
	w->listed = reports_level(w);
	w->perhaps = false;
	turn_told(w, mask);
}

/* Must the next collection that has room make an entry? */
bool file_owes(const struct fqueue *q, const struct watch *w)
{
	uint32_t holds = file_holds(w);

	if (!w->armed)
		return false;
	if (w->must & holds & ~covered(q, w))
		return true;
	return reports_level(w) && w->listed && holds && !is_unread(q, w);
}

/*
 * A collection has found nothing more. A level watch whose entry is unread is not
 * looked at, unless something else has happened to it.
 */
void file_collected(const struct fqueue *q, struct watch *w)
{
	bool looked = w->reasons, unread = is_unread(q, w);

	w->may = 0;
	w->look = false;
	w->reasons = 0;
	w->must = 0;
	if (!unread)
		w->perhaps = false;
	if (!w->listed || file_holds(w) || (unread && !looked))
		return;
	w->listed = false;
	w->perhaps = unread;
}

/*
 * A collection had no room for all: it may have looked at a watch, and forgotten what did
 * not hold.
 */
void file_looked_at(const struct fqueue *q, struct watch *w)
{
	w->must &= file_holds(w);
	if (!w->listed || file_holds(w) || (is_unread(q, w) && !w->reasons))
		return;
	w->listed = false;
	w->perhaps = true;
}

static void happened(struct fqueue *q, struct watch *w, uint32_t must,
		     uint32_t may, bool look)
{
	if (!w->armed)
		return;
	/* Such a wake-up does not say what for. */
	w->look |= look;
	if (!(may | must))
		return;
	w->may |= may | must;
	/* Epoll says all that holds, and the library may ask now and have no room till later. */
	if (W.fallback)
		w->may |= file_holds(w);
	w->reasons++;
	w->must |= must & ~covered(q, w);
}

/* A watch that goes may hand something on to this one, which looks at the file. */
void file_handed_on(struct watch *w, unsigned int class)
{
	w->look = true;
	w->may |= to_conditions(w, W.end[w->end].now & class_bits(class));
	w->reasons++;
	w->notified[class] = w->in_turn[class] = true;
}

static void tell(struct fqueue *q, struct watch *w, uint32_t certain,
		 uint32_t may, bool look, const bool *turns)
{
	uint32_t bits = certain;
	unsigned int class;

	for (class = 0; class < 2; class++) {
		uint32_t mask = to_conditions(w, certain & class_bits(class));

		if (w->armed && to_conditions(w, may & class_bits(class))) {
			w->in_turn[class] =
				!(w->flags & KEVENT_REQ_WAKEUP_ALL);
			w->notified[class] |= w->in_turn[class];
		}
		if (!mask)
			continue;
		w->told[class] = !(mask & ~covered(q, w));
		if (turns[class] && !(w->flags & KEVENT_REQ_WAKEUP_ALL))
			bits &= ~class_bits(class);
	}
	happened(q, w, to_conditions(w, bits),
		 to_conditions(w, certain | may), look);
}

/*
 * Something was done to an open file: @certain wakes its watches whatever they are
 * doing, @may is what they may be woken for.
 */
void file_activity(int end, uint32_t certain, uint32_t may, bool look)
{
	bool turns[2] = {};
	unsigned int i, n;

	may |= certain;
	for (i = 0; i < 2; i++)
		if (certain & class_bits(i) && !look)
			turns[i] = turn_begins(end, i);
	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++)
			if (W.q[i].w[n].used && W.q[i].w[n].end == end &&
			    is_file(W.q[i].w[n].type))
				tell(&W.q[i], &W.q[i].w[n], certain, may, look,
				     turns);
}
