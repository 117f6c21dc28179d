// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences from seeds. Operations name slots and ids, not descriptors, and do nothing
 * where they are out of place, so each part of a sequence is one, too.
 */
#include "fuzz.h"

/* xorshift64* */
uint32_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545f4914f6cdd1dull) >> 32;
}

/**
 * struct mix - what a sequence is made of
 * @state:	of the generator
 * @fallback:	for queues of the library
 * @slots:	descriptors it uses: few, so that watches share files
 * @queues:	queues it uses
 * @theme:	what it is mostly about
 * @kinds:	what was opened last in each slot
 * @added:	where watches may be: queue, type, slot or id
 * @nr_added:	how many were written there
 * @often:	the source of half of the requests for ids
 * @lazy:	events wait for long
 * @rare:	chance of one in so many that flags beside ET are set
 */
struct mix {
	uint64_t	state;
	bool		fallback;
	enum {
		ANY,
		FILES,		/* watches of files */
		IDS,		/* other sources */
		SHARED,		/* queues that share a file that stays open */
		CLOSES,		/* descriptors that come and go beside all sources */
		THEMES,
	}		theme;
	enum kind	kinds[NR_SLOTS + 1];
	struct op	added[8];
	unsigned int	nr_added;
	bool		lazy;
	uint8_t		often;
	unsigned int	slots, queues, rare;
};

static uint32_t below(struct mix *m, uint32_t n)
{
	return next_random(&m->state) % n;
}

static bool one_in(struct mix *m, uint32_t n)
{
	return !below(m, n);
}

static const struct {
	uint8_t		code;
	uint8_t		weight;
} weights[] = {
	{ OP_OPEN, 6 }, { OP_CLOSE, 2 }, { OP_AGAIN, 2 }, { OP_STALE, 2 },
	{ OP_DUP, 3 },
	{ OP_WRITE, 20 }, { OP_READ, 12 }, { OP_SHUTDOWN, 1 },
	{ OP_CHANGE, 6 }, { OP_CTL, 32 }, { OP_POP, 12 }, { OP_COMMIT, 3 },
	{ OP_COLLECT, 30 }, { OP_WAKE_ALL, 1 }, { OP_REOPEN, 1 }, { OP_HOLD, 1 },
	{ OP_RELEASE, 1 }, { OP_KILL, 6 }, { OP_SPAWN, 2 }, { OP_END, 2 },
	{ OP_REAP, 1 }, { OP_SET, 3 }, { OP_WAKE, 6 }, { OP_SETTIME, 2 },
	{ OP_NAP, 2 }, { OP_SETTLE, 1 },
};

static bool is_out(struct mix *m, uint8_t code)
{
	if (m->lazy && (code == OP_COLLECT || code == OP_COMMIT) &&
	    !one_in(m, 5))
		return true;
	/* A close of one of several descriptors; and a queue of the library is in one process. */
	if (m->fallback && (code == OP_DUP || code == OP_HOLD ||
			    code == OP_KILL || code == OP_WAKE ||
			    code == OP_SETTIME))
		return true;
	if (code >= OP_KILL && m->theme != ANY && m->theme != IDS &&
	    m->theme != CLOSES)
		return true;
	if (m->theme == IDS && (code <= OP_CHANGE || code == OP_HOLD))
		return true;
	return m->theme == SHARED &&
	       (code == OP_CLOSE || code == OP_AGAIN || code == OP_STALE ||
		code == OP_DUP || code == OP_REOPEN || code == OP_SHUTDOWN || code == OP_CHANGE || code == OP_OPEN);
}

static uint8_t pick_code(struct mix *m)
{
	static const uint8_t closes[] = {
		OP_CLOSE, OP_CLOSE, OP_OPEN, OP_OPEN, OP_AGAIN, OP_STALE,
	};
	unsigned int i, sum = 0, at;

	if (m->theme == CLOSES && one_in(m, 3))
		return closes[below(m, ARRAY_SIZE(closes))];
	for (i = 0; i < ARRAY_SIZE(weights); i++)
		sum += weights[i].weight;
	do {
		at = below(m, sum);
		for (i = 0; at >= weights[i].weight; i++)
			at -= weights[i].weight;
	} while (is_out(m, weights[i].code));
	return weights[i].code;
}

static uint32_t pick_flags(struct mix *m)
{
	static const uint32_t flags[] = {
		KEVENT_REQ_ONESHOT, KEVENT_REQ_WAKEUP_ALL,
		KEVENT_REQ_LAST_CHECK, KEVENT_REQ_HAND_BACK,
		KEVENT_REQ_READY, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED,
	};
	uint32_t mask = one_in(m, 2) ? KEVENT_REQ_ET : 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		if (one_in(m, m->rare))
			mask |= flags[i];
	return mask;
}

static bool is_id(uint8_t type)
{
	return type > KEVENT_PIPE || type == KEVENT_TIMER;
}

static uint32_t pick_event(struct mix *m, uint8_t type)
{
	static const uint32_t some[] = {
		KEVENT_SOCKET_RECV, KEVENT_SOCKET_RECV, KEVENT_SOCKET_RECV,
		KEVENT_SOCKET_SEND, KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND,
		0,
	};

	if (type == KEVENT_USER)
		return below(m, 8);
	if (type == KEVENT_INODE)
		return below(m, 32);
	if (type == KEVENT_FUTEX)
		return KEVENT_FUTEX_WAKE | KEVENT_FUTEX_PRIVATE;
	if (type == KEVENT_TIMER)
		return KEVENT_TIMER_FIRED | KEVENT_TIMER_INTERVAL;
	if (is_id(type))
		return 1;
	if (type == KEVENT_SOCKET && one_in(m, 6))
		return KEVENT_SOCKET_ACCEPT;
	if (type == KEVENT_POLL && one_in(m, 6))
		return KEVENT_POLL_POLLIN | KEVENT_POLL_POLLRDHUP;
	return some[below(m, ARRAY_SIZE(some))];
}

/* Mostly a type that fits the file */
static uint8_t file_type(struct mix *m, unsigned int x)
{
	if (one_in(m, 3))
		return KEVENT_POLL;
	switch (m->kinds[x]) {
	case KIND_SOCKET:
	case KIND_TCP:
		return KEVENT_SOCKET;
	case KIND_PIPE_READ:
	case KIND_PIPE_WRITE:
		return KEVENT_PIPE;
	case KIND_FILE:
		return KEVENT_INODE;
	default:
		return KEVENT_POLL;
	}
}

static uint8_t pick_type(struct mix *m, unsigned int x)
{
	static const uint8_t files[] = {
		KEVENT_SOCKET, KEVENT_PIPE, KEVENT_POLL, KEVENT_INODE,
	};
	static const uint8_t ids[] = {
		KEVENT_USER, KEVENT_PROC, KEVENT_TIMER, KEVENT_SIGNAL,
		KEVENT_FUTEX, KEVENT_POSIX_TIMER,
	};

	unsigned int nr_ids = m->fallback ? 4 : ARRAY_SIZE(ids);

	if (m->theme == IDS && one_in(m, 2))
		return ids[m->often % nr_ids];
	if (m->theme == IDS || ((m->theme == ANY || m->theme == CLOSES) && one_in(m, 2)))
		return ids[below(m, nr_ids)];
	if (one_in(m, 8))
		return files[below(m, ARRAY_SIZE(files))];
	return file_type(m, x);
}

static uint8_t pick_cmd(struct mix *m)
{
	static const uint8_t cmds[] = {
		KEVENT_CTL_ADD, KEVENT_CTL_ADD, KEVENT_CTL_ADD,
		KEVENT_CTL_MODIFY, KEVENT_CTL_MODIFY, KEVENT_CTL_REMOVE,
		KEVENT_CTL_READY,
	};

	return cmds[below(m, ARRAY_SIZE(cmds))];
}

static void generate_ctl(struct mix *m, struct op *op)
{
	const struct op *old = &m->added[below(m, ARRAY_SIZE(m->added))];

	op->cmd = pick_cmd(m);
	op->type = pick_type(m, op->x);
	/* Most of the others are about a watch that was added. */
	if (op->cmd != KEVENT_CTL_ADD && !one_in(m, 6) && old->code) {
		op->q = old->q;
		op->type = old->type;
		op->x = old->x;
	}
	if (is_id(op->type))
		op->x %= NR_IDS;
	if (op->type == KEVENT_USER && one_in(m, 2))
		op->cmd = KEVENT_CTL_READY;
	if (op->cmd == KEVENT_CTL_ADD)
		m->added[m->nr_added++ % ARRAY_SIZE(m->added)] = *op;
	op->event = pick_event(m, op->type);
	op->flags = op->cmd == KEVENT_CTL_REMOVE ? 0 : pick_flags(m);
	if (op->type == KEVENT_USER && one_in(m, 3))
		op->flags |= KEVENT_REQ_KEEP_EACH;
	op->n = below(m, 1000);
	/* A mark among signals that wait has no place of its own. */
	if (op->type == KEVENT_SIGNAL) {
		op->n |= m->fallback;	/* the library only consumes */
		op->flags &= ~KEVENT_REQ_READY;
		if (op->cmd == KEVENT_CTL_READY)
			op->cmd = KEVENT_CTL_MODIFY;
	}
	op->child = !m->fallback && one_in(m, 12) &&
		    op->cmd != KEVENT_CTL_ADD;
}

static void generate_stale(struct mix *m, struct op *op)
{
	static const uint8_t cmds[] = {
		KEVENT_CTL_REMOVE, KEVENT_CTL_MODIFY, KEVENT_CTL_READY,
	};

	op->cmd = cmds[below(m, ARRAY_SIZE(cmds))];
	op->type = file_type(m, op->x);
	op->event = pick_event(m, op->type);
	op->flags = op->cmd == KEVENT_CTL_REMOVE ? 0 : pick_flags(m);
}

static void generate_number(struct mix *m, struct op *op)
{
	static const uint8_t kinds[] = {
		KIND_PIPE_READ, KIND_SOCKET, KIND_SOCKET, KIND_EVENTFD,
		KIND_FILE, KIND_TCP, KIND_QUEUE,
	};

	switch (op->code) {
	case OP_OPEN:
		op->n = kinds[below(m, ARRAY_SIZE(kinds))];
		if ((m->theme == SHARED && op->n == KIND_FILE) ||
		    (m->fallback && op->n == KIND_QUEUE))
			op->n = KIND_SOCKET;
		m->kinds[op->x] = op->n;
		if (op->n != KIND_EVENTFD && op->n != KIND_FILE &&
		    op->n != KIND_QUEUE)
			m->kinds[op->x + 1] = op->n;
		break;
	case OP_WRITE:
		op->n = one_in(m, 8) ? 0 : 1 + below(m, 100);
		op->child = one_in(m, 10);
		break;
	case OP_READ:
		op->n = one_in(m, 2) ? 0 : 1 + below(m, 200);
		break;
	case OP_COLLECT:
		op->n = one_in(m, 3) ? 1 + below(m, 3) : 0;
		break;
	case OP_REOPEN:
		op->n = below(m, 2) ? 2u << below(m, 5) : 0;
		break;
	case OP_KILL:
	case OP_WAKE:
	case OP_SPAWN:
	case OP_END:
	case OP_REAP:
	case OP_SET:
	case OP_SETTIME:
		op->x %= NR_IDS;
		op->n = below(m, 100000);
		break;
	case OP_NAP:
		op->n = below(m, 2000);
		break;
	default:
		op->n = below(m, 4);
	}
}

static void generate_op(struct mix *m, struct op *op)
{
	*op = (struct op){
		.code = pick_code(m),
		.q = below(m, m->queues),
		.x = below(m, m->slots),
		.y = below(m, m->slots),
	};
	if (op->code == OP_CTL)
		generate_ctl(m, op);
	else if (op->code == OP_STALE)
		generate_stale(m, op);
	else
		generate_number(m, op);
}

static void generate_many(struct mix *m, struct sequence *s)
{
	s->op[s->nr++] = (struct op){
		.code = OP_MANY_ADD, .q = below(m, m->queues),
		.flags = one_in(m, 4) ? KEVENT_REQ_ET : 0,
	};
	s->op[s->nr++] = (struct op){ .code = OP_MANY_WRITE };
	s->op[s->nr++] = (struct op){
		.code = OP_COLLECT, .q = s->op[s->nr - 3].q,
	};
	s->op[s->nr++] = (struct op){
		.code = OP_MANY_READ, .n = below(m, NR_MANY + 1),
	};
	s->op[s->nr++] = (struct op){
		.code = OP_COLLECT, .q = s->op[s->nr - 5].q,
	};
}

static void generate_collects(struct mix *m, struct sequence *s)
{
	unsigned int i;

	for (i = 0; i < m->queues; i++) {
		s->op[s->nr++] = (struct op){ .code = OP_POP, .q = i };
		s->op[s->nr++] = (struct op){ .code = OP_COLLECT, .q = i };
	}
}

/* Data comes, the watch that was notified may lose its interest, and all look. */
static void generate_loss(struct mix *m, struct sequence *s)
{
	struct op *op;

	generate_collects(m, s);
	s->op[s->nr++] = (struct op){
		.code = OP_WRITE, .x = below(m, m->slots), .n = 1,
	};
	op = &s->op[s->nr++];
	*op = (struct op){
		.code = OP_CTL, .q = below(m, m->queues),
		.x = below(m, m->slots),
	};
	generate_ctl(m, op);
	if (one_in(m, 2))
		op->flags |= KEVENT_REQ_DISABLED;
	generate_collects(m, s);
}

/* Marks that are kept and marks that merge, while others wait, then a consumer */
static void generate_marks(struct mix *m, struct sequence *s)
{
	const struct op mark = {
		.code = OP_CTL, .q = below(m, m->queues), .type = KEVENT_USER,
		.x = below(m, NR_IDS),
	};
	unsigned int n = 4 + below(m, 8);
	struct op *op;

	while (n--) {
		op = &s->op[s->nr++];
		*op = mark;
		op->cmd = one_in(m, 2) ? KEVENT_CTL_READY :
			  one_in(m, 3) ? KEVENT_CTL_ADD : KEVENT_CTL_MODIFY;
		op->event = one_in(m, 2) ? 7 : below(m, 8);
		op->n = below(m, 1000);
		if (one_in(m, 2))
			op->flags = KEVENT_REQ_KEEP_EACH;
	}
	s->op[s->nr++] = (struct op){ .code = OP_POP, .q = mark.q };
	s->op[s->nr++] = (struct op){ .code = OP_COLLECT, .q = mark.q };
}

/* Queues become files, which queues watch. */
static void generate_nests(struct mix *m, struct sequence *s)
{
	unsigned int n = 1 + below(m, 3), x;

	while (n--) {
		x = below(m, m->slots);
		s->op[s->nr++] = (struct op){ .code = OP_CLOSE, .x = x };
		s->op[s->nr++] = (struct op){
			.code = OP_OPEN, .x = x, .n = KIND_QUEUE,
			.q = below(m, m->queues),
		};
		s->op[s->nr++] = (struct op){
			.code = OP_CTL, .cmd = KEVENT_CTL_ADD,
			.type = KEVENT_POLL, .q = below(m, m->queues), .x = x,
			.event = one_in(m, 4) ? KEVENT_POLL_POLLRDNORM :
						KEVENT_POLL_POLLIN,
			.flags = pick_flags(m),
		};
	}
}

static void pick_mix(struct mix *m)
{
	m->theme = below(m, THEMES);
	m->slots = m->theme == SHARED ? 2 : 2 + below(m, NR_SLOTS - 1);
	m->queues = m->theme == SHARED ? NR_QUEUES : 1 + below(m, NR_QUEUES);
	if (m->theme == IDS)
		m->slots = 1 + below(m, NR_IDS);
	m->often = below(m, 60);
	m->lazy = one_in(m, 3);
	m->rare = 4 + below(m, 40);
}

void generate(struct sequence *s, uint64_t seed, unsigned int steps,
	      bool fallback)
{
	struct mix m = {
		.state = seed * 0x9e3779b97f4a7c15ull | 1, .fallback = fallback,
	};
	unsigned int i;

	for (i = 0; i < 8; i++)
		next_random(&m.state);
	pick_mix(&m);
	s->nr = 0;
	for (i = 0; m.theme != IDS && i < m.slots; i += 2) {
		s->op[s->nr] = (struct op){ .code = OP_OPEN, .x = i };
		generate_number(&m, &s->op[s->nr++]);
	}
	while (s->nr < steps && s->nr < MAX_OPS - 20) {
		if (one_in(&m, 400))
			generate_many(&m, s);
		else if (m.theme == SHARED && one_in(&m, 40))
			generate_loss(&m, s);
		else if (!fallback && m.theme == FILES && one_in(&m, 40))
			generate_nests(&m, s);
		else if (m.theme == IDS && one_in(&m, 60))
			generate_marks(&m, s);
		else
			generate_op(&m, &s->op[s->nr++]);
	}
}
