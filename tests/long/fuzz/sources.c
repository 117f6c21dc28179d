// SPDX-License-Identifier: GPL-2.0
/*
 * The model of sources that have no file to look at: each occurrence, or what has
 * merged, is reported once
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

/* USER */

static int user_mark(struct watch *w, const struct ukevent *uk)
{
	uint32_t mask = uk->event ? uk->event : w->event;
	bool each = w->flags & KEVENT_REQ_KEEP_EACH;
	struct kept *k;

	if (w->event)
		mask &= w->event;
	if (w->event && !mask)
		return -EINVAL;
	k = w->nr_kept ? &w->kept[w->nr_kept - 1] : NULL;
	if (each || !k || k->each) {
		if (w->nr_kept == MAX_KEPT)
			fail("more marks than the model has room for");
		k = &w->kept[w->nr_kept++];
		*k = (struct kept){ .each = each };
	}
	k->bits |= mask;
	if (each)
		memcpy(k->data, uk->ret_data, sizeof(k->data));
	else
		k->data[1]++;
	return 0;
}

static int user_ctl(struct fqueue *q, const struct op *op, struct watch *w,
		    const struct ukevent *uk)
{
	(void)q;
	if (op->cmd == KEVENT_CTL_REMOVE)
		return 0;
	if (op->cmd == KEVENT_CTL_READY)
		return user_mark(w, uk);
	w->event = op->event;
	w->flags = op->flags;
	if (op->flags & KEVENT_REQ_READY)
		user_mark(w, uk);
	return 0;
}

static void user_made(struct watch *w, const struct ukevent *uk)
{
	struct kept *k = w->kept;
	uint32_t bits = k->each ? k->data[0] : k->bits;

	if (!w->nr_kept)
		fail("an entry of USER %#llx without a mark",
		     (unsigned long long)w->user);
	if (uk->ret_data[0] != bits || uk->ret_data[1] != k->data[1])
		fail("an entry of USER %#llx has %#x %#x instead of %#x %#x",
		     (unsigned long long)w->user, uk->ret_data[0],
		     uk->ret_data[1], bits, k->data[1]);
	if (k->each != !!(uk->req_flags & KEVENT_REQ_KEEP_EACH))
		fail("an entry of USER %#llx has the wrong mode",
		     (unsigned long long)w->user);
	w->nr_kept--;
	memmove(k, k + 1, w->nr_kept * sizeof(*k));
}

/* INODE: what has changed since the last entry */

static int inode_ctl(struct fqueue *q, const struct op *op, struct watch *w,
		     const struct ukevent *uk)
{
	(void)q;
	(void)uk;
	switch (op->cmd) {
	case KEVENT_CTL_ADD:
		if (!W.end[w->end].name)
			w->pending[0] = op->event & KEVENT_INODE_REMOVE;
		break;
	case KEVENT_CTL_MODIFY:
		w->pending[0] &= op->event;
		w->may &= op->event;
		/* Whether it is reported depends on what the watch saw before. It waits then. */
		if (!W.end[w->end].name)
			w->may |= op->event & ~w->event & KEVENT_INODE_REMOVE;
		break;
	case KEVENT_CTL_READY:
		if (op->event && !(op->event & w->event))
			return -EINVAL;
		w->pending[0] |= op->event ? op->event & w->event : w->event;
		return 0;
	default:
		return 0;
	}
	if (op->flags & KEVENT_REQ_READY)
		w->pending[0] |= op->event;
	return 0;
}

static void inode_made(const struct fqueue *q, struct watch *w,
		       const struct ukevent *uk)
{
	/* inotify comes after marks, and knows an inode once in a queue. */
	if (W.fallback) {
		w->pending[0] &= ~uk->ret_data[0];
		return;
	}
	if (((uk->ret_data[0] ^ w->pending[0]) & ~w->may) || uk->ret_data[1] ||
	    !(uk->ret_data[0] & ~covered(q, w)))
		fail("an entry of INODE %#llx has %#x instead of %#x",
		     (unsigned long long)w->user, uk->ret_data[0],
		     w->pending[0]);
	w->pending[0] = 0;
	w->may = 0;
}

void source_changed(int end, uint32_t bits)
{
	unsigned int i, n;
	struct watch *w;

	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++) {
			w = &W.q[i].w[n];
			if (w->used && w->type == KEVENT_INODE &&
			    w->end == end)
				w->pending[0] |= bits & w->event;
		}
}

/* SIGNAL */

static int signal_ctl(const struct op *op, struct watch *w,
		      const struct ukevent *uk)
{
	if (op->cmd != KEVENT_CTL_ADD && op->child)
		return -EPERM;
	if (op->cmd == KEVENT_CTL_REMOVE)
		return 0;
	w->id = uk->id.raw_u64;
	w->event = op->event;
	w->flags = op->flags;
	return 0;
}

static bool takes_signal(const struct watch *w, unsigned int x)
{
	if (!w->used || w->type != KEVENT_SIGNAL || w->key != x || !w->armed)
		return false;
	return !w->nr_kept ||
	       !(w->flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH));
}

static void keep_signal(struct watch *w, int x, uint32_t value)
{
	struct kept *k = &w->kept[w->nr_kept];

	if (w->nr_kept && !is_realtime(x))
		return;
	if (w->nr_kept++ == MAX_KEPT)
		fail("more signals than the model has room for");
	*k = (struct kept){
		.data = { (uint32_t)SI_QUEUE, value }, .pid = getpid(),
		.each = w->id & KEVENT_SIGNAL_NOMASK,
	};
}

bool source_signal(int x, uint32_t value)
{
	bool consumed = false;
	unsigned int i, n;
	struct watch *w;

	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++) {
			w = &W.q[i].w[n];
			if (!takes_signal(w, x))
				continue;
			keep_signal(w, x, value);
			consumed |= !!(w->id & KEVENT_SIGNAL_NOMASK);
		}
	return consumed;
}

static void signal_made(struct watch *w, const struct ukevent *uk)
{
	const struct kept *k = w->kept;
	uint64_t id = signal_of(w->key) | (uint64_t)k->pid << 32;

	if (!w->nr_kept)
		fail("an entry of signal %d, which was not sent",
		     signal_of(w->key));
	if (k->each)
		id |= KEVENT_SIGNAL_NOMASK;
	if (uk->id.raw_u64 != id || uk->ret_data[0] != k->data[0] ||
	    uk->ret_data[1] != k->data[1])
		fail("an entry of signal %d has id %#llx, %d, %u instead of %#llx, %d, %u",
		     signal_of(w->key), (unsigned long long)uk->id.raw_u64,
		     uk->ret_data[0], uk->ret_data[1],
		     (unsigned long long)id, k->data[0], k->data[1]);
	w->nr_kept--;
	memmove(w->kept, w->kept + 1, w->nr_kept * sizeof(*k));
}

/* PROC */

static int proc_ctl(const struct op *op, struct watch *w)
{
	if (op->cmd == KEVENT_CTL_READY)
		return -EINVAL;
	if (op->cmd == KEVENT_CTL_ADD && W.process[op->x].ended)
		w->pending[0] = 1;
	return 0;
}

struct process *find_process(pid_t pid)
{
	unsigned int i;

	for (i = 0; i < NR_IDS; i++)
		if (W.process[i].pid == pid)
			return &W.process[i];
	return NULL;
}

void source_ended(pid_t pid)
{
	unsigned int i;
	struct watch *w;

	for (i = 0; i < NR_QUEUES; i++) {
		w = find_watch(&W.q[i], KEVENT_PROC, pid);
		if (w)
			w->pending[0] = 1;
	}
}

static void proc_made(struct watch *w, const struct ukevent *uk)
{
	const struct process *p = find_process(w->key);

	if (!w->pending[0])
		fail("an entry of a process that has not ended");
	w->pending[0] = 0;
	/* The library looks at the status when it finds the exit. */
	if (W.fallback && !uk->ret_data[1])
		return;
	if (p && (uk->ret_data[0] != p->status || uk->ret_data[1] != 1))
		fail("an entry of a process has status %#x, %u instead of %#x",
		     uk->ret_data[0], uk->ret_data[1], p->status);
}

/* FUTEX: @stamp is the place among the waiters, @pending[1] that a wake-up was spent */

static void futex_fires(struct watch *w, bool spent)
{
	w->pending[0] = KEVENT_FUTEX_WAKE;
	if (spent)
		w->pending[1] = 1;
	w->stamp = 0;
}

static void futex_arm(struct watch *w, const struct op *op)
{
	if (w->pending[1] || op->flags & KEVENT_REQ_DISABLED)
		return;
	if ((op->n & 3) != *futex_word(op->x))
		futex_fires(w, false);
	else
		w->stamp = ++W.stamps;
}

/* What had made it ready before the wake-up is dropped as well. */
static void futex_disabled(struct watch *w)
{
	if (w->pending[1])
		w->pending[0] = 0;
	futex_gone(w);
}

static int futex_ctl(const struct op *op, struct watch *w)
{
	if (op->cmd != KEVENT_CTL_ADD && op->child)
		return -EPERM;
	switch (op->cmd) {
	case KEVENT_CTL_REMOVE:
		futex_gone(w);
		return 0;
	case KEVENT_CTL_READY:
		w->pending[0] = KEVENT_FUTEX_WAKE;
		return 0;
	case KEVENT_CTL_MODIFY:
		w->stamp = 0;
		if (op->flags & KEVENT_REQ_DISABLED)
			futex_disabled(w);
	}
	futex_arm(w, op);
	if (op->flags & KEVENT_REQ_READY)
		w->pending[0] = KEVENT_FUTEX_WAKE;
	return 0;
}

static struct watch *first_waiter(unsigned int x)
{
	struct watch *w, *first = NULL;
	unsigned int i, n;

	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++) {
			w = &W.q[i].w[n];
			if (w->used && w->type == KEVENT_FUTEX &&
			    w->key == x && w->stamp &&
			    (!first || w->stamp < first->stamp))
				first = w;
		}
	return first;
}

int source_woken(int x, int nr)
{
	struct watch *w;
	int woken = 0;

	while (woken < nr && (w = first_waiter(x))) {
		futex_fires(w, true);
		woken++;
	}
	return woken;
}

/* A wake-up that was spent on it goes to the next waiter. */
void futex_gone(struct watch *w)
{
	bool spent = w->pending[1];

	w->stamp = 0;
	w->pending[1] = 0;
	if (spent)
		source_woken(w->key, 1);
}

static void futex_made(struct watch *w, const struct ukevent *uk)
{
	if (!w->pending[0] || uk->ret_data[0] != KEVENT_FUTEX_WAKE)
		fail("an entry of word %u that was not woken", w->key);
	w->pending[0] = w->pending[1] = 0;
}

/* All */

int source_ctl(struct fqueue *q, const struct op *op, struct watch *w,
	       const struct ukevent *uk)
{
	switch (op->type) {
	case KEVENT_USER:
		return user_ctl(q, op, w, uk);
	case KEVENT_INODE:
		return inode_ctl(q, op, w, uk);
	case KEVENT_SIGNAL:
		return signal_ctl(op, w, uk);
	case KEVENT_PROC:
		return proc_ctl(op, w);
	case KEVENT_FUTEX:
		return futex_ctl(op, w);
	case KEVENT_TIMER:
		return timer_ctl(op, w);
	case KEVENT_POSIX_TIMER:
		return posix_timer_ctl(op, w);
	default:
		fail("no model of type %u", op->type);
	}
}

void source_made(struct fqueue *q, struct watch *w, const struct ukevent *uk)
{
	if (uk->id.raw_u64 != w->id && w->type != KEVENT_SIGNAL)
		fail("an entry of watch %#llx has id %#llx",
		     (unsigned long long)w->user,
		     (unsigned long long)uk->id.raw_u64);
	if (w->type == KEVENT_USER)
		user_made(w, uk);
	else if (w->type == KEVENT_INODE)
		inode_made(q, w, uk);
	else if (w->type == KEVENT_SIGNAL)
		signal_made(w, uk);
	else if (w->type == KEVENT_PROC)
		proc_made(w, uk);
	else if (w->type == KEVENT_FUTEX)
		futex_made(w, uk);
	else
		timer_made(w, uk);
}

bool source_owes(const struct fqueue *q, const struct watch *w)
{
	return w->armed && (w->nr_kept || w->pending[0] & ~covered(q, w));
}

/* What an unread entry says already has been dropped. */
void source_collected(const struct fqueue *q, struct watch *w)
{
	w->pending[0] &= W.fallback ? ~covered(q, w) : 0;
	w->may = 0;
}
