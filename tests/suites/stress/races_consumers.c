// SPDX-License-Identifier: GPL-2.0
/* Consumers of the generator of races: threads and processes, each with a role in a scene */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "fuse.h"
#include "helpers.h"
#include "races.h"
#include "races_world.h"

static void complain(struct consumer *c, int where, int err)
{
	atomic_store(&c->where, where);
	atomic_store(&c->err, err);
}

static void handle_event(struct world *w, const struct ukevent *ev)
{
	struct board *b = w->b;
	unsigned int i = ev->ptr;
	unsigned long sum;

	if (ev->ptr == NOISE)
		return;
	if (i >= THINGS || ev->ret_flags & KEVENT_RET_BROKEN) {
		atomic_fetch_add(&b->odd, 1);
		return;
	}
	sum = take_given(w, &w->t[i]);
	if (w->t[i].mode & KEVENT_REQ_ONESHOT)
		atomic_store(&b->again[i], 1);
	if (w->t[i].mode & KEVENT_REQ_DISPATCH &&
	    change(w, KEVENT_CTL_MODIFY, i, w->t[i].event))
		atomic_fetch_add(&b->odd, 1);
	/* Last: what has been taken is in nobody's hands. */
	atomic_fetch_add(&b->taken[i], sum);
}

bool over(struct consumer *c)
{
	return atomic_load(&world->b->scene) != atomic_load(&c->go) ||
	       atomic_load(&world->b->ends);
}

static bool take_from_ring(struct world *w, struct consumer *c)
{
	struct ukevent ev;
	bool some = false;

	atomic_store(&c->holding, SOME);
	while (kevent_ring_next(w->q.ring, w->q.size, &ev)) {
		handle_event(w, &ev);
		some = true;
	}
	atomic_store(&c->holding, NOTHING);
	return some;
}

static uint64_t ring_position(struct world *w)
{
	return __atomic_load_n(&w->q.ring->ring_kidx, __ATOMIC_ACQUIRE);
}

/* Any errno of a wait that its page has, and that this can be */
static void check_wait(struct consumer *c, int ret)
{
	if (ret >= 0 || ret == -EINTR)
		return;
	if (ret == -EFAULT && (atomic_load(&world->b->fragile) ||
			       atomic_load(&c->role) == READS_ONLY))
		sched_yield();
	else
		complain(c, __NR_kevent_wait, ret);
}

unsigned int several(const struct consumer *c)
{
	return 2 + c->nr % 3;
}

static int wait_for(struct world *w, uint64_t kidx, int64_t ms,
		    const struct kevent_wait_arg *arg)
{
	const struct timespec ts = ms_to_timespec(ms);

	return kevent_wait(w->q.fd, w->q.size, (uint32_t)kidx,
			   ms < 0 ? NULL : &ts, arg ? KEVENT_FLAGS_ARG : 0, arg);
}

static void play_waits(struct world *w, struct consumer *c,
		       const struct kevent_wait_arg *arg)
{
	uint64_t kidx;

	while (!over(c)) {
		kidx = ring_position(w);
		if (take_from_ring(w, c))
			continue;
		atomic_store(&c->begun, atomic_load(&c->go));
		check_wait(c, wait_for(w, kidx, -1, arg));
	}
}

static void play_limited(struct world *w, struct consumer *c, int role)
{
	struct kevent_wait_arg arg;

	kevent_wait_arg_init(&arg);
	if (role == WAITS_MANY)
		arg.min_nr = 1000;
	else if (role == WAITS_SEVERAL)
		arg.min_nr = several(c);
	else
		arg.max_running = 1 + c->nr % 2;
	play_waits(w, c, &arg);
	/* It is no member any more. */
	wait_for(w, ring_position(w), 1, NULL);
	take_from_ring(w, c);
}

static void play_buffer(struct world *w, struct consumer *c, uint32_t min, uint32_t max,
			int64_t ms)
{
	struct ukevent ev[4];
	int i, ret;

	while (!over(c)) {
		atomic_store(&c->holding, MAYBE);
		atomic_store(&c->begun, atomic_load(&c->go));
		ret = get_events(w->q.fd, min, max, ms, ev);
		if (ret > 0)
			atomic_store(&c->holding, SOME);
		for (i = 0; i < ret; i++)
			handle_event(w, &ev[i]);
		atomic_store(&c->holding, NOTHING);
		if (ret < 0 && ret != -EINTR)
			complain(c, __NR_kevent_get_events, ret);
	}
}

/* Calls when it finds the ring empty, and does not sleep. */
static void play_looks(struct world *w, struct consumer *c)
{
	while (!over(c)) {
		if (take_from_ring(w, c))
			continue;
		check_wait(c, wait_for(w, ring_position(w), 0, NULL));
		atomic_store(&c->begun, atomic_load(&c->go));
		sched_yield();
	}
}

static void play_blocks(struct world *w, struct consumer *c)
{
	char byte;

	while (wait_for(w, ring_position(w), 0, NULL) > 0)
		take_from_ring(w, c);
	take_from_ring(w, c);
	while (!over(c)) {
		atomic_store(&c->begun, atomic_load(&c->go));
		if (read(w->block[0], &byte, 1) == 1)
			complain(c, SYS_read, 1);
	}
}

static void play_reads_only(struct world *w, struct consumer *c)
{
	int ret;

	mprotect(w->q.ring, w->q.bytes, PROT_READ);
	do {
		atomic_store(&c->begun, atomic_load(&c->go));
		ret = wait_for(w, ring_position(w), -1, NULL);
		check_wait(c, ret);
		/* The events are for others. */
		while (ret != -EINTR && !over(c))
			futex_wait(&w->b->scene, atomic_load(&c->go));
	} while (!over(c));
	mprotect(w->q.ring, w->q.bytes, PROT_READ | PROT_WRITE);
}

static void play(struct world *w, struct consumer *c)
{
	int role = atomic_load(&c->role);

	switch (role) {
	case WAITS:
		play_waits(w, c, NULL);
		break;
	case WAITS_LIMITED:
	case WAITS_MANY:
	case WAITS_SEVERAL:
		play_limited(w, c, role);
		break;
	case WAITS_BUFFER:
	case CALLS:
		play_buffer(w, c, 1, 1 + c->nr % 3, role == CALLS ? 0 : -1);
		break;
	case BUFFER_SEVERAL:
		play_buffer(w, c, several(c), 4, -1);
		break;
	case LOOKS:
		play_looks(w, c);
		break;
	case BLOCKS:
		play_blocks(w, c);
		break;
	case READS_ONLY:
		play_reads_only(w, c);
		break;
	default:
		atomic_store(&c->begun, atomic_load(&c->go));
		while (!over(c))
			futex_wait(&w->b->scene, atomic_load(&c->go));
	}
}

long run_consumer(void *arg)
{
	struct consumer *c = arg;
	struct world *w = world;
	unsigned int at;

	atomic_store(&c->pid, getpid());
	atomic_store(&c->tid, gettid());
	while (!atomic_load(&w->b->ends)) {
		at = atomic_load(&c->go);
		if (at == atomic_load(&c->over)) {
			futex_wait(&c->go, at);
			continue;
		}
		play(w, c);
		atomic_store(&c->over, at);
	}
	return 0;
}

static int run_process(struct consumer *c)
{
	struct world *w = world;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (kevent_ctl(w->q.fd, KEVENT_CTL_ATTACH, w->q.size,
		       (struct ukevent *)w->q.ring))
		return 1;
	return run_consumer(c);
}

void start_process(struct consumer *c)
{
	pid_t pid;

	atomic_store(&c->holding, NOTHING);
	atomic_store(&c->over, atomic_load(&c->go));
	atomic_store(&c->tid, 0);
	pthread_mutex_lock(&world->memory);
	pid = fork();
	if (!pid)
		_exit(run_process(c));
	pthread_mutex_unlock(&world->memory);
	MUST(pid > 0);
	atomic_store(&c->pid, pid);
}
