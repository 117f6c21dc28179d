// SPDX-License-Identifier: GPL-2.0
/* The world of the generator of races: chance, and the watches that it makes ready */
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "races_world.h"

/* There is one in each process. */
struct world *world;

unsigned int below(struct world *w, unsigned int nr)
{
	return next_random(&w->rnd) % nr;
}

bool chance(struct world *w, enum kind kind, unsigned int one_in)
{
	return w->kind[kind] && !below(w, one_in);
}

bool is_process(const struct consumer *c)
{
	return c->nr >= THREADS;
}

unsigned int nr_consumers(const struct world *w)
{
	return w->memfd < 0 ? THREADS : CONSUMERS;
}

void futex_wait(_Atomic unsigned int *word, unsigned int value)
{
	const struct timespec ts = { .tv_nsec = 50000000 };

	syscall(__NR_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

void futex_wake(_Atomic unsigned int *word)
{
	syscall(__NR_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The ring is away, and comes back. */
void on_fault(int sig __attribute__((unused)))
{
	sched_yield();
}

/* Things */

#define DRIVEN_ID	64
#define NUMBER		7

bool is_driven(const struct thing *t)
{
	return t->fd[0] < 0;
}

static int post(struct world *w)
{
	struct ukevent ev = {
		.id.raw_u64 = DRIVEN_ID, .type = KEVENT_FUTEX, .event = KEVENT_FUTEX_WAKE,
		.ret_flags = NUMBER,
	};

	return ioctl(w->q.fd, KEVENT_IOC_DRIVE, &ev);
}

static int change_driven(struct world *w, uint32_t cmd, uint32_t mode, uint64_t user)
{
	struct ukevent ev = {
		.id.raw_u64 = DRIVEN_ID, .type = KEVENT_FUTEX, .event = KEVENT_FUTEX_WAKE,
		.req_flags = mode | KEVENT_REQ_DRIVEN, .ret_flags = NUMBER, .ptr = user,
	};
	struct kevent_dev_ctl a = { .cmd = cmd, .num = 1, .arg = (uintptr_t)&ev };
	int ret = ioctl(w->q.fd, KEVENT_IOC_CTL, &a);

	/* What was posted while there was no watch */
	if (!ret && cmd != KEVENT_CTL_REMOVE && atomic_load(&w->b->posted))
		MUST_EQ(post(w), 0);
	return ret <= 0 ? ret : kevent_error(&ev);
}

int change_in(int kq, const struct thing *t, uint32_t cmd, uint32_t event,
	      uint32_t flags, uint64_t user)
{
	struct ukevent ev;

	kevent_set_poll(&ev, t->fd[0], event, flags, user);
	ev.type = t->type;
	return kevent_ctl_one(kq, cmd, &ev);
}

int change(struct world *w, uint32_t cmd, unsigned int i, uint32_t event)
{
	if (is_driven(&w->t[i]))
		return change_driven(w, cmd, w->t[i].mode, i);
	return change_in(w->q.fd, &w->t[i], cmd, event, w->t[i].mode, i);
}

/* Without a watch, for a moment, who adds it again posts what there is. */
static unsigned long give_posted(struct world *w)
{
	if (getpid() != w->pid)
		return 0;
	atomic_fetch_add(&w->b->posted, 1);
	post(w);
	return 1;
}

static unsigned long give(struct world *w, const struct thing *t)
{
	const uint64_t one = 1;

	if (is_driven(t))
		return give_posted(w);
	return write(t->fd[1], &one, sizeof(one)) == sizeof(one);
}

/* How much was given since the last time */
unsigned long take_given(struct world *w, const struct thing *t)
{
	unsigned long sum = 0;
	uint64_t value;

	if (is_driven(t))
		return atomic_exchange(&w->b->posted, 0);
	while (read(t->fd[0], &value, sizeof(value)) == sizeof(value))
		sum += value;
	return sum;
}

/* Whoever takes some goes on at the same time. */
void give_all(struct world *w, unsigned int what, unsigned int times)
{
	unsigned int i;

	while (times--) {
		for (i = 0; i < THINGS; i++)
			if (what & 1u << i)
				atomic_fetch_add(&w->b->sent[i], give(w, &w->t[i]));
		if (times)
			sched_yield();
	}
}
