// SPDX-License-Identifier: GPL-2.0
/*
 * The model of watches: requests, entries and collections, for all sources
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"

#define POLL_EVENTS	0x27df
#define REQ_ALL		0xff

bool is_file(uint8_t type)
{
	return type == KEVENT_SOCKET || type == KEVENT_PIPE ||
	       type == KEVENT_POLL;
}

static bool has_slot(uint8_t type)
{
	return is_file(type) || type == KEVENT_INODE;
}

bool is_unread(const struct fqueue *q, const struct watch *w)
{
	return q->size && w->stored > q->uidx;
}

uint32_t covered(const struct fqueue *q, const struct watch *w)
{
	return is_unread(q, w) ? w->reported : 0;
}

/* The key of a file's watch is its type, its descriptor and the open file. */
struct watch *find_watch(struct fqueue *q, uint8_t type, unsigned int key)
{
	unsigned int i;

	for (i = 0; i < q->nr; i++)
		if (q->w[i].used && q->w[i].type == type &&
		    q->w[i].key == key)
			return &q->w[i];
	return NULL;
}

static uint32_t key_of(const struct op *op)
{
	return op->type == KEVENT_PROC ? (uint32_t)W.process[op->x].pid :
					 op->x;
}

struct watch *new_watch(struct fqueue *q)
{
	unsigned int i;

	for (i = 0; i < q->nr; i++)
		if (!q->w[i].used)
			break;
	if (i == NR_WATCHES)
		fail("more watches than the model has room for");
	if (i == q->nr)
		q->nr++;
	memset(&q->w[i], 0, sizeof(q->w[i]));
	q->w[i].used = true;
	q->w[i].end = -1;
	return &q->w[i];
}

void drop_watch(struct watch *w)
{
	turn_leaves(w);
	w->used = false;
	w->armed = false;
	if (w->type == KEVENT_FUTEX)
		futex_gone(w);
}

void model_queue_gone(struct fqueue *q)
{
	unsigned int i;

	for (i = 0; i < q->nr; i++)
		if (q->w[i].used)
			drop_watch(&q->w[i]);
	q->nr = 0;
}

/* Requests */

static int check_file(const struct op *op)
{
	enum kind kind = W.end[W.slot[op->x].end].kind;

	switch (op->type) {
	case KEVENT_SOCKET:
		if (op->event & ~7u)
			return -EINVAL;
		return kind == KIND_SOCKET ? 0 : -ENOTSOCK;
	case KEVENT_PIPE:
		if (op->event & ~5u)
			return -EINVAL;
		return kind == KIND_PIPE_READ || kind == KIND_PIPE_WRITE ?
		       0 : -EINVAL;
	case KEVENT_INODE:
		if (!op->event || op->event & ~31u || kind != KIND_FILE)
			return -EINVAL;
		return 0;
	default:
		return op->event & ~POLL_EVENTS ? -EINVAL : 0;
	}
}

static int check_request(const struct op *op)
{
	uint32_t flags = REQ_ALL;

	if (op->type == KEVENT_USER)
		flags |= KEVENT_REQ_KEEP_EACH;
	if (op->flags & ~flags)
		return -EINVAL;
	if (has_slot(op->type))
		return check_file(op);
	if (op->type == KEVENT_POSIX_TIMER && op->cmd == KEVENT_CTL_ADD)
		return -EINVAL;
	if (op->type == KEVENT_USER && op->flags & KEVENT_REQ_KEEP_EACH &&
	    op->flags & KEVENT_REQ_READY)
		return -EINVAL;
	return 0;
}

static void set_watch(struct watch *w, const struct op *op,
		      const struct ukevent *uk)
{
	if (w->type == KEVENT_TIMER)
		w->id = uk->id.raw_u64;
	w->event = op->event;
	w->flags = op->flags;
	w->user = uk->ptr;
	w->armed = !(op->flags & KEVENT_REQ_DISABLED);
}

static bool hands_back(const struct op *op)
{
	return (op->flags & (KEVENT_REQ_HAND_BACK | KEVENT_REQ_READY |
			     KEVENT_REQ_DISABLED)) == KEVENT_REQ_HAND_BACK;
}

static int model_add(struct fqueue *q, const struct op *op,
		     const struct ukevent *uk, bool *handed)
{
	struct watch *w;
	int err = check_request(op);

	if (err)
		return err;
	w = find_watch(q, op->type, key_of(op));
	/* The kernel looks for the process first, the library for the watch. */
	if (op->type == KEVENT_PROC && W.process[op->x].reaped &&
	    !(w && W.fallback))
		return -ESRCH;
	if (w)
		return -EEXIST;
	if (has_slot(op->type) && nest_check(op))
		return nest_check(op);
	w = new_watch(q);
	w->type = op->type;
	w->key = key_of(op);
	w->child = op->child;
	if (has_slot(op->type))
		w->end = W.slot[op->x].end;
	w->id = uk->id.raw_u64;
	set_watch(w, op, uk);
	if (!is_file(w->type)) {
		err = source_ctl(q, op, w, uk);
		*handed = !err && hands_back(op) && w->pending[0];
		return err ? err : *handed;
	}
	if (w->armed)
		file_look(q, w);
	*handed = hands_back(op) && file_holds(w);
	return *handed;
}

static int model_modify(struct fqueue *q, const struct op *op,
			const struct ukevent *uk)
{
	struct watch *w;
	int err = check_request(op);

	if (err)
		return err;
	w = find_watch(q, op->type, key_of(op));
	if (!w)
		return -ENOENT;
	if (!is_file(w->type)) {
		err = source_ctl(q, op, w, uk);
		if (err)
			return err;
		set_watch(w, op, uk);
		w->stored = 0;
		return 0;
	}
	turn_modified(w, op->event, op->flags & KEVENT_REQ_DISABLED);
	set_watch(w, op, uk);
	w->stored = 0;
	w->must = w->may = w->reasons = 0;
	w->listed = w->perhaps = false;
	if (w->armed)
		file_look(q, w);
	return 0;
}

static int model_remove(struct fqueue *q, const struct op *op,
			const struct ukevent *uk)
{
	struct watch *w = find_watch(q, op->type, key_of(op));
	int err = 0;

	if (!w)
		return -ENOENT;
	if (!is_file(w->type))
		err = source_ctl(q, op, w, uk);
	if (!err)
		drop_watch(w);
	return err;
}

static int model_mark(struct fqueue *q, const struct op *op,
		      const struct ukevent *uk)
{
	struct watch *w = find_watch(q, op->type, key_of(op));
	int err = 0;

	if (!w)
		return -ENOENT;
	if (!is_file(w->type))
		err = source_ctl(q, op, w, uk);
	else if (w->armed)
		file_look(q, w);
	return err ? err : 1;
}

/* Is there no room for one more mark or signal of a watch? */
bool model_is_full(uint8_t type, uint32_t key)
{
	const struct watch *w;
	unsigned int i;

	for (i = 0; i < NR_QUEUES; i++) {
		w = find_watch(&W.q[i], type, key);
		if (w && w->nr_kept >= MAX_KEPT)
			return true;
	}
	return false;
}

int model_ctl(const struct op *op, struct ukevent *uk, bool *handed)
{
	struct fqueue *q = &W.q[op->q];

	*handed = false;
	if (has_slot(op->type) && W.slot[op->x].end < 0)
		return -EBADF;
	/* A process finds no POSIX timer but its own. */
	if (op->type == KEVENT_POSIX_TIMER && op->child)
		return -ENOENT;
	switch (op->cmd) {
	case KEVENT_CTL_ADD:
		return model_add(q, op, uk, handed);
	case KEVENT_CTL_MODIFY:
		return model_modify(q, op, uk);
	case KEVENT_CTL_REMOVE:
		return model_remove(q, op, uk);
	default:
		return model_mark(q, op, uk);
	}
}

/* Entries */

static struct watch *watch_of(struct fqueue *q, const struct ukevent *uk)
{
	unsigned int i;

	for (i = 0; i < q->nr; i++)
		if (q->w[i].used && q->w[i].user == uk->ptr)
			return &q->w[i];
	fail("an entry of type %u, user %#llx, of no watch", uk->type,
	     (unsigned long long)uk->ptr);
}

static void check_entry(const struct watch *w, const struct ukevent *uk)
{
	if (!w->armed)
		fail("an entry of watch %#llx, which is disarmed",
		     (unsigned long long)w->user);
	if (uk->type != w->type)
		fail("an entry of watch %#llx has type %u instead of %u",
		     (unsigned long long)w->user, uk->type, w->type);
	if (uk->ret_flags != KEVENT_RET_DONE)
		fail("an entry of watch %#llx has ret_flags %#x",
		     (unsigned long long)w->user, uk->ret_flags);
	if (!is_file(w->type))
		return;
	if (uk->id.raw_u64 != w->id || uk->event != w->event ||
	    uk->req_flags != w->flags)
		fail("an entry of watch %#llx has id %#llx, event %#x, flags %#x",
		     (unsigned long long)w->user,
		     (unsigned long long)uk->id.raw_u64, uk->event,
		     uk->req_flags);
}

void model_made(struct fqueue *q, const struct ukevent *uk, uint64_t end)
{
	struct watch *w = watch_of(q, uk);

	W.entries++;
	check_entry(w, uk);
	w->made = true;
	if (is_file(w->type))
		file_made(q, w, uk);
	else
		source_made(q, w, uk);
	if (end) {
		w->stored = end;
		w->reported = uk->ret_data[0];
	}
	if (w->flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH) ||
	    w->type == KEVENT_PROC) {
		if (is_file(w->type))
			turn_spent(w);
		w->armed = false;
		w->listed = false;
		w->must = 0;
	}
	if (w->flags & KEVENT_REQ_ONESHOT || w->type == KEVENT_PROC)
		w->used = false;
}

/* Collections */

static bool owes(const struct fqueue *q, const struct watch *w)
{
	if (!w->used)
		return false;
	return is_file(w->type) ? file_owes(q, w) : source_owes(q, w);
}

void model_begin(struct fqueue *q)
{
	unsigned int i;

	for (i = 0; i < q->nr; i++) {
		q->w[i].owing = owes(q, &q->w[i]);
		q->w[i].made = false;
	}
}

unsigned int model_owing(const struct fqueue *q)
{
	unsigned int i, sum = 0;

	for (i = 0; i < q->nr; i++)
		sum += q->w[i].owing;
	return sum;
}

/* Is there a watch of POLL that a collection may have to look at, and was there no entry? */
bool model_leaves_a_poll(const struct fqueue *q)
{
	const struct watch *w;
	unsigned int i;

	for (i = 0; i < q->nr; i++) {
		w = &q->w[i];
		if (w->type != KEVENT_POLL || w->made)
			continue;
		if (w->owing || (w->used && w->armed &&
				 (w->reasons || w->listed || w->perhaps)))
			return true;
	}
	return false;
}

static void check_owed(struct fqueue *q, struct watch *w)
{
	if (w->owing && !w->made)
		fail("no entry of watch %#llx (type %u, key %u) in queue %d, which owes %#x",
		     (unsigned long long)w->user, w->type, w->key,
		     (int)(q - W.q), is_file(w->type) ? file_holds(w) : 0);
	if (!w->used || !w->armed)
		return;
	if (!is_file(w->type)) {
		if (source_owes(q, w) && !(W.fallback && w->made))
			fail("watch %#llx (type %u) has more to report",
			     (unsigned long long)w->user, w->type);
		source_collected(q, w);
		return;
	}
	if (w->made && w->must & file_holds(w))
		fail("an entry of watch %#llx does not say %#x",
		     (unsigned long long)w->user, w->must & file_holds(w));
	file_collected(q, w);
}

void model_end(struct fqueue *q, bool all)
{
	unsigned int i;

	for (i = 0; !all && i < q->nr; i++)
		if (q->w[i].used && is_file(q->w[i].type))
			file_looked_at(q, &q->w[i]);
	if (!all)
		return;
	for (i = 0; i < q->nr; i++)
		if (q->w[i].used || q->w[i].owing)
			check_owed(q, &q->w[i]);
	turn_collected(q);
}

void model_dropped(struct fqueue *q)
{
	unsigned int i;

	for (i = 0; i < q->nr; i++)
		if (q->w[i].used && q->w[i].type == KEVENT_INODE)
			source_collected(q, &q->w[i]);
}

bool model_waits(const struct fqueue *q)
{
	const struct watch *w;
	unsigned int i;

	for (i = 0; i < q->nr; i++) {
		w = &q->w[i];
		if (owes(q, w) && !(is_file(w->type) && !(w->must &
							  file_holds(w))))
			return true;
	}
	return false;
}
