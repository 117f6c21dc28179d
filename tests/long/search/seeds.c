// SPDX-License-Identifier: GPL-2.0
/*
 * What the search begins with: watches of one source in many queues, and many watches
 * in one queue; then what makes them ready, and consumers
 */
#include "search.h"

#define QUEUES	256	/* more than may watch one thing */
#define ALL	(KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL)

static const struct about {
	uint8_t		type;
	uint32_t	event;
} about[NR_SOURCES] = {
	[SRC_SOCKET] = { KEVENT_SOCKET, KEVENT_SOCKET_RECV },
	[SRC_PIPE] = { KEVENT_PIPE, KEVENT_SOCKET_RECV },
	[SRC_POLL] = { KEVENT_POLL, KEVENT_POLL_POLLIN },
	[SRC_NESTED] = { KEVENT_POLL, KEVENT_POLL_POLLIN },
	[SRC_INODE] = { KEVENT_INODE, KEVENT_INODE_MODIFY |
			KEVENT_INODE_ATTRIB },
	[SRC_TIMER] = { KEVENT_TIMER, KEVENT_TIMER_FIRED |
			KEVENT_TIMER_ABSTIME },
	[SRC_POSIX_TIMER] = { KEVENT_POSIX_TIMER, KEVENT_POSIX_TIMER_FIRED },
	[SRC_SIGNAL] = { KEVENT_SIGNAL, KEVENT_SIGNAL_DELIVERY },
	[SRC_PROC] = { KEVENT_PROC, KEVENT_PROC_EXIT },
	[SRC_FUTEX] = { KEVENT_FUTEX, KEVENT_FUTEX_WAKE |
			KEVENT_FUTEX_PRIVATE },
	[SRC_USER] = { KEVENT_USER, 1 },
	[SRC_MIXED] = { KEVENT_POLL, KEVENT_POLL_POLLIN },
};

static struct step *next(struct input *in, uint8_t code, uint16_t times)
{
	struct step *s = &in->step[in->nr++];

	*s = (struct step){ .op.code = code, .times = times };
	return s;
}

static struct step *watch(struct input *in, enum source source, uint8_t cmd,
			  uint16_t times)
{
	struct step *s = next(in, OP_CTL, times);

	s->op.cmd = cmd;
	s->op.type = about[source].type;
	s->op.event = about[source].event;
	s->op.flags = cmd == KEVENT_CTL_REMOVE ? 0 : ALL;
	return s;
}

static enum kind kind_of(enum source source)
{
	if (source == SRC_SOCKET)
		return KIND_SOCKET;
	return source == SRC_PIPE ? KIND_PIPE_READ : KIND_EVENTFD;
}

/* Slots or ids 0 and 1, 16 and on */
static void make_objects(struct input *in, enum source source)
{
	struct step *s;

	switch (source) {
	case SRC_NESTED:
		next(in, OP_OPEN, 1)->op.n = KIND_EVENTFD;
		s = next(in, STEP_NEST, 8);
		s->dx = 1;
		s->op.x = 16;
		s->op.n = 200;
		break;
	case SRC_INODE:
		next(in, STEP_SAME, 256)->dx = 1;
		break;
	case SRC_PROC:
		next(in, OP_SPAWN, 2)->dx = 1;
		break;
	default:
		next(in, OP_OPEN, 1)->op.n = kind_of(source);
		s = next(in, OP_OPEN, 512);
		s->op.n = kind_of(source);
		s->op.x = 16;
		s->dx = 1;
	}
}

static void trigger(struct input *in, enum source source)
{
	struct step *s;

	switch (source) {
	case SRC_INODE:
		next(in, OP_CHANGE, 1);
		break;
	case SRC_TIMER:
	case SRC_POSIX_TIMER:
		next(in, OP_SETTLE, 1);
		break;
	case SRC_SIGNAL:
		next(in, OP_KILL, 1);
		break;
	case SRC_PROC:
		next(in, OP_END, 1);
		break;
	case SRC_FUTEX:
		next(in, OP_WAKE, 1);
		break;
	case SRC_USER:
		s = watch(in, source, KEVENT_CTL_READY, 64);
		s->dx = 1;
		break;
	default:
		s = next(in, OP_WRITE, 1);
		s->op.x = kind_of(source) != KIND_EVENTFD;
		s->op.n = 8;
	}
}

void seed_input(enum source source, struct input *in)
{
	struct step *s;

	in->nr = 0;
	make_objects(in, source);
	if (source == SRC_POSIX_TIMER) {
		s = next(in, OP_SETTIME, 512);
		s->dx = 1;
	} else {
		watch(in, source, KEVENT_CTL_ADD, QUEUES)->dq = 1;
		s = watch(in, source, KEVENT_CTL_ADD, 512);
		s->op.x = 16;
		s->dx = 1;
	}
	trigger(in, source);
	next(in, OP_COLLECT, 3);
	next(in, OP_POP, 1);
	next(in, OP_COMMIT, 1);
	s = watch(in, source, KEVENT_CTL_MODIFY, 64);
	s->dx = 1;
	s->batch = 1;
	trigger(in, source);
	watch(in, source, KEVENT_CTL_REMOVE, 32)->dq = 1;
	next(in, STEP_CLOSE_QUEUE, 8)->dq = 1;
}

/* One wait queue for many files */
static void add_fifos(struct input *in)
{
	struct step *s = next(in, STEP_FIFO, MAX_TIMES);

	s->op.x = 16;
	s->dx = 1;
	s = watch(in, SRC_PIPE, KEVENT_CTL_ADD, MAX_TIMES);
	s->op.flags = KEVENT_REQ_ET;
	s->op.x = 16;
	s->dx = 1;
	s = next(in, OP_WRITE, 1);
	s->op.x = 16;
	s->op.n = 8;
}

/* One watch keeps many marks. */
static void keep_marks(struct input *in)
{
	struct step *s = watch(in, SRC_USER, KEVENT_CTL_ADD, 1);

	s->op.flags = KEVENT_REQ_KEEP_EACH;
	s = watch(in, SRC_USER, KEVENT_CTL_READY, MAX_TIMES);
	s->op.flags = 0;
}

/* As many watches as a step can have; but few of each signal, process and inode */
void seed_large(enum source source, struct input *in)
{
	struct step *s;

	in->nr = 0;
	if (source == SRC_PIPE) {
		add_fifos(in);
		return;
	}
	if (source == SRC_USER)
		keep_marks(in);
	make_objects(in, source);
	in->step[in->nr - 1].times = MAX_TIMES;
	s = source == SRC_POSIX_TIMER ? next(in, OP_SETTIME, MAX_TIMES) :
		watch(in, source, KEVENT_CTL_ADD, MAX_TIMES);
	s->op.x = 16;
	s->dx = 1;
	s->dq = source == SRC_SIGNAL || source == SRC_PROC ||
		source == SRC_INODE;
	trigger(in, source);
}

/* A request of another source becomes one of this. */
static void fit_request(enum source source, struct op *op, uint64_t *state)
{
	if (source == SRC_MIXED || op->type == about[source].type)
		return;
	op->type = about[source].type;
	op->event = about[source].event;
	if (next_random(state) % 4 == 0)
		op->event = next_random(state) % 8;
}

/*
 * Makes an operation one of those that can matter to a source. POSIX timers would hide
 * all others: so many expire in one interrupt, with or without kevent.
 */
void fit(enum source source, struct step *s, uint64_t *state)
{
	struct op *op = &s->op;

	if (op->code == OP_SETTIME && source != SRC_POSIX_TIMER)
		op->code = OP_WRITE;
	if (op->code == OP_CTL && source == SRC_POSIX_TIMER &&
	    op->cmd == KEVENT_CTL_ADD)
		op->code = OP_SETTIME;
	if (op->code == OP_CTL)
		fit_request(source, op, state);
	if (op->code == OP_OPEN && source == SRC_NESTED &&
	    next_random(state) % 2)
		op->code = STEP_NEST;
	else if (op->code == OP_OPEN && source == SRC_PIPE &&
		 next_random(state) % 2)
		op->code = STEP_FIFO;
	else if (op->code == OP_OPEN && source == SRC_INODE)
		op->code = STEP_SAME;
}
