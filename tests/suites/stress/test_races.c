// SPDX-License-Identifier: GPL-2.0
/*
 * A generator of races: whatever the consumers of a queue do, no event stays behind
 *
 *	things		files of several kinds that one queue watches in several modes
 *	writers		a thread, and a process without the ring, make things ready
 *	consumers	threads and processes. In each scene each has a role: it waits for
 *			the ring, with or without a limit, or for a buffer, or looks
 *			without sleeping, or blocks elsewhere, or is frozen, stopped or
 *			killed, or may not write the ring
 *	hands		take the ring's memory away and bring it back, fork, watch files
 *			that they close at once
 *	posts		what the process posts for a watch that it drives, where that is the module's
 *	strangers	processes of other users, whose own queues watch the same files
 *	a daemon	serves a file whose ->poll() takes long, or does not end before
 *			consumers have taken all else
 *
 * In each round a few things become ready. Then nothing else does before consumers have
 * taken all of it: an event that is held back stays so, and is found. At least one
 * consumer of each scene is able to take whatever there is. Where the world ends, the
 * ring's memory may be used for something else before the queue is closed.
 *
 * Tasks are delayed in windows of the kernel at random, see races.h; the words for
 * KEVENT_RACES are in kinds[]. KEVENT_STORM_SECONDS sets the budget.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fuse.h"
#include "helpers.h"
#include "races.h"
#include "races_world.h"

#define FILL		0xa5
#define MOST_TIMES	128		/* a thing is given in one go */
#define LEVEL_MODES	4		/* of those in make_thing() */

static const char *const kinds[NR_KINDS] = {
	[MEMORY] = "memory", [FORK] = "fork", [OUTSIDE] = "outside",
	[POLLERS] = "pollers", [BLOCKED] = "blocked", [MIXED] = "mixed",
	[LIMIT] = "limit",
	[KILL] = "kill", [FREEZE] = "freeze", [STOP] = "stop",
	[THROTTLE] = "throttle", [READ_ONLY] = "read-only",
	[MODIFY] = "modify", [CLOSE] = "close", [TURNS] = "turns",
	[SEVERAL] = "several", [FREE] = "free", [USERS] = "users",
	[SILENT] = "silent", [POSTS] = "posts",
};

static const char *const roles[] = {
	"absent", "waits", "waits with a limit", "waits for many",
	"waits for a buffer", "looks", "calls", "blocks", "may not write",
	"waits for several", "waits for a buffer of several",
};

static const char *const fates[] = {
	"left alone", "to be killed", "dead", "frozen", "stopped", "throttled",
};

/* In place of the last thing. It has no level, and is disarmed by its process only. */
static bool make_driven_thing(struct world *w, unsigned int i)
{
	static const uint32_t modes[] = { 0, KEVENT_REQ_WAKEUP_ALL, KEVENT_REQ_ONESHOT };

	if (i != THINGS - 1 || !on_module() || w->level || !chance(w, POSTS, 2))
		return false;
	w->t[i] = (struct thing){
		.fd = { -1, -1 }, .mode = modes[below(w, 3)], .event = KEVENT_FUTEX_WAKE,
	};
	MUST_EQ(change(w, KEVENT_CTL_ADD, i, 0), 0);
	return true;
}

static void make_thing(struct world *w, unsigned int i)
{
	static const uint32_t modes[] = {
		0, 0, KEVENT_REQ_WAKEUP_ALL, KEVENT_REQ_LAST_CHECK,
		KEVENT_REQ_ET, KEVENT_REQ_DISPATCH, KEVENT_REQ_ONESHOT,
		KEVENT_REQ_ET | KEVENT_REQ_DISPATCH,
	};
	struct thing *t = &w->t[i];

	if (make_driven_thing(w, i))
		return;
	*t = (struct thing){
		.mode = modes[below(w, w->level ? LEVEL_MODES : ARRAY_SIZE(modes))],
		.event = RECV,
	};
	switch (i % 4) {
	case 0:
	case 1:
		open_pipe(t->fd);
		t->type = KEVENT_PIPE;
		break;
	case 2:
		t->fd[0] = t->fd[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		t->type = KEVENT_POLL;
		break;
	default:
		MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
				   SOCK_CLOEXEC, 0, t->fd), 0);
		t->type = below(w, 2) ? KEVENT_SOCKET : KEVENT_POLL;
	}
	MUST_EQ(change(w, KEVENT_CTL_ADD, i, t->event), 0);
}

static void drop_thing(struct thing *t)
{
	if (is_driven(t))
		return;
	close(t->fd[0]);
	if (t->fd[1] != t->fd[0])
		close(t->fd[1]);
}

/*
 * Kill it. Returns whether an event may have gone with it: others get what a level watch
 * has reported, if nothing was read.
 */
static bool bury(struct world *w, struct consumer *c)
{
	int held;

	kill(atomic_load(&c->pid), SIGKILL);
	MUST_EQ(waitpid(atomic_load(&c->pid), NULL, 0), atomic_load(&c->pid));
	held = atomic_load(&c->holding);
	c->fate = DEAD;
	w->deaths++;
	return held == SOME || (held == MAYBE && !w->level);
}

/* Scenes */

static void say_what_it_does(const struct consumer *c)
{
	char path[64], call[64], stack[512];
	pid_t pid = atomic_load(&c->pid), tid = atomic_load(&c->tid);

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	read_file(path, call, sizeof(call));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stack", pid, tid);
	read_file(path, stack, sizeof(stack));
	note("%s %u %s, %s%s; system call %.*s", is_process(c) ? "process" : "thread",
	     c->nr, roles[atomic_load(&c->role)], fates[c->fate],
	     atomic_load(&c->holding) == SOME ? ", holds an event" : "",
	     (int)strcspn(call, " \n"), call);
	if (*stack)
		note("%s", stack);
}

/* Consumers sleep, and other things happen to them. */
static int any_role(struct world *w, const struct consumer *c)
{
	switch (below(w, 8)) {
	case 0:
	case 1:
		return WAITS;
	case 2:
	case 3:
		return w->kind[MIXED] ? WAITS_BUFFER : WAITS;
	case 4:
		return w->kind[LIMIT] ? WAITS_LIMITED : ABSENT;
	case 5:
		return w->kind[MIXED] ? WAITS_MANY : ABSENT;
	case 6:
		return is_process(c) && w->kind[READ_ONLY] ? READS_ONLY : ABSENT;
	default:
		return ABSENT;
	}
}

/* Those that look or call keep a CPU busy, so there are few. */
static int role_without_sleep(struct world *w)
{
	switch (below(w, 8)) {
	case 0:
	case 1:
		return w->kind[BLOCKED] ? BLOCKS : ABSENT;
	case 2:
		return w->kind[MIXED] ? CALLS : ABSENT;
	case 3:
		return LOOKS;
	default:
		return ABSENT;
	}
}

static int any_fate(struct world *w, bool *frozen)
{
	if (chance(w, KILL, 3))
		return KILLED;
	if (!*frozen && w->freezer && chance(w, FREEZE, 4)) {
		*frozen = true;
		return FROZEN;
	}
	if (chance(w, STOP, 4))
		return STOPPED;
	return w->throttle && chance(w, THROTTLE, 4) ? THROTTLES : LEFT_ALONE;
}

/* Consumers who wait for one event, where others wait for several */
static void cast_turn(struct world *w, unsigned int anchor)
{
	unsigned int i, nr = nr_consumers(w);
	int role;

	for (i = 0; i < nr; i++) {
		if (i == anchor)
			role = below(w, 2) ? WAITS : WAITS_BUFFER;
		else
			role = below(w, 3) ? below(w, 2) ? WAITS_SEVERAL : BUFFER_SEVERAL :
					     ABSENT;
		atomic_store(&w->b->c[i].role, role);
	}
}

/*
 * @anchor can take all there is: it waits for the ring, or looks at it. While a look may not
 * end there is a second one, as one consumer at most is in it.
 */
static void cast_roles(struct world *w, unsigned int anchor, bool look)
{
	unsigned int i, nr = nr_consumers(w);
	bool frozen = false;
	struct consumer *c;
	int role;

	for (i = 0; i < nr; i++) {
		c = &w->b->c[i];
		if (i == anchor)
			role = look ? LOOKS : WAITS;
		else if (w->one_is_silent && i == (anchor + 1) % nr)
			role = LOOKS;
		else if (look)
			role = role_without_sleep(w);
		else
			role = any_role(w, c);
		atomic_store(&c->role, role);
		if (i != anchor && !look && is_process(c))
			c->fate = any_fate(w, &frozen);
	}
}

static void send_on(struct world *w, struct consumer *c)
{
	unsigned int go = atomic_load(&w->b->scene);
	uint64_t start = now_ns();

	atomic_store(&c->go, go);
	futex_wake(&c->go);
	while (atomic_load(&c->begun) != go) {
		if (!patient(start, PATIENCE_MS)) {
			say_what_it_does(c);
			MUST(!"it plays its role");
		}
		pause_us(20);
	}
}

static void burst(struct world *w, bool outside)
{
	unsigned int what = 1u << below(w, THINGS);

	if (below(w, 2))
		what |= 1u << below(w, THINGS);
	/* Who looks gets little at a time. */
	if (below(w, w->looks ? 3 : 32))
		order(w, what, 1, outside);
	else
		order(w, what, 1 + below(w, MOST_TIMES), outside);
}

static void add_again(struct world *w)
{
	unsigned int i;

	for (i = 0; i < THINGS; i++)
		if (atomic_exchange(&w->b->again[i], 0))
			change(w, KEVENT_CTL_ADD, i, w->t[i].event);
}

static bool all_taken(struct world *w)
{
	unsigned int i;

	add_again(w);
	for (i = 0; i < THINGS; i++)
		if (atomic_load(&w->b->taken[i]) != atomic_load(&w->b->sent[i]))
			return false;
	return true;
}

static void say_when(struct world *w)
{
	note("after %.1f s, %u scenes, %u rounds, %u deaths", (now_ns() - w->began) / 1e9,
	     w->scenes, w->rounds, w->deaths);
}

static void say_where_it_is(struct world *w)
{
	struct ukevent ev[2 * THINGS];
	unsigned int i, nr = nr_consumers(w);

	say_when(w);
	for (i = 0; i < THINGS; i++)
		if (atomic_load(&w->b->taken[i]) != atomic_load(&w->b->sent[i]))
			note("thing %u, mode %#x: %lu given, %lu taken", i,
			     w->t[i].mode, atomic_load(&w->b->sent[i]),
			     atomic_load(&w->b->taken[i]));
	for (i = 0; i < nr; i++)
		say_what_it_does(&w->b->c[i]);
	note("ring: %llu stored, %llu taken, flags %x; %lld ready, %lld wait",
	     (unsigned long long)w->q.ring->ring_kidx,
	     (unsigned long long)w->q.ring->ring_uidx, w->q.ring->ring_flags,
	     fdinfo(w->q.fd, "kevent-ready"), fdinfo(w->q.fd, "kevent-waiting"));
	note("a call takes %d", get_events(w->q.fd, 1, 2 * THINGS, 0, ev));
	delay_no_more();
	say_delays();
	pause_us(1000000);
	note("without delays they come%s", all_taken(w) ? "" : " neither");
	if (w->idle_queue >= 0)
		note("the queue where nobody waits has %d",
		     get_events(w->idle_queue, 1, 2 * THINGS, 0, ev));
}

static void must_be_well(struct world *w)
{
	unsigned int i;

	for (i = 0; i < CONSUMERS; i++)
		if (atomic_load(&w->b->c[i].err))
			note("call %d returned %d", atomic_load(&w->b->c[i].where),
			     atomic_load(&w->b->c[i].err));
	for (i = 0; i < CONSUMERS; i++)
		MUST_EQ(atomic_load(&w->b->c[i].err), 0);
	MUST_EQ(atomic_load(&w->b->odd), 0);
	if (kernel_complains())
		say_when(w);
	MUST(!kernel_complains());
}

static void wait_until_taken(struct world *w)
{
	uint64_t start = now_ns();

	wait_for_writers(w);
	while (!all_taken(w)) {
		if (!patient(start, PATIENCE_MS)) {
			say_where_it_is(w);
			MUST(!"each event is taken");
		}
		pause_us(50);
	}
}

/* In any order. One that is to look only comes last, after something has happened. */
static void begin_scene(struct world *w, unsigned int anchor)
{
	unsigned int i, first = below(w, nr_consumers(w)), nr = nr_consumers(w);
	struct consumer *c;

	atomic_fetch_add(&w->b->scene, 1);
	futex_wake(&w->b->scene);
	for (i = 0; i < nr; i++) {
		c = &w->b->c[(first + i) % nr];
		if (c->nr != anchor)
			send_on(w, c);
	}
	if (w->idle_queue < 0 && chance(w, OUTSIDE, 2)) {
		burst(w, true);
		wait_for_writers(w);
	}
	send_on(w, &w->b->c[anchor]);
	/* Nobody has an event in his hands when he is stopped. */
	wait_until_taken(w);
	for (i = 0; i < nr; i++)
		meet_fate(&w->b->c[i]);
}

/* Signals, until each has left the scene */
static void end_scene(struct world *w)
{
	unsigned int i, nr = nr_consumers(w), scene = atomic_load(&w->b->scene);
	uint64_t start = now_ns();
	struct consumer *c;

	for (i = 0; i < nr; i++)
		end_fate(&w->b->c[i]);
	atomic_fetch_add(&w->b->scene, 1);
	futex_wake(&w->b->scene);
	for (i = 0; i < nr; i++) {
		c = &w->b->c[i];
		while (atomic_load(&c->over) != scene) {
			syscall(SYS_tgkill, atomic_load(&c->pid),
				atomic_load(&c->tid), SIGUSR1);
			if (!patient(start, 2 * PATIENCE_MS)) {
				say_what_it_does(c);
				MUST(!"it ends its role");
			}
			pause_us(200);
		}
	}
}

/* Rounds */

/* What a dead process had in its hands is gone. Nobody else plays any more. */
static void forget(struct world *w)
{
	unsigned int i;

	wait_for_writers(w);
	for (i = 0; i < THINGS; i++) {
		take_given(w, &w->t[i]);
		atomic_store(&w->b->taken[i], atomic_load(&w->b->sent[i]));
		if (w->t[i].mode & KEVENT_REQ_ONESHOT)
			change(w, KEVENT_CTL_ADD, i, w->t[i].event);
		else
			MUST_EQ(change(w, KEVENT_CTL_MODIFY, i, w->t[i].event), 0);
	}
}

/* Kill one that is to be killed. Returns whether it had an event. */
static bool kill_one(struct world *w)
{
	unsigned int i, nr = nr_consumers(w);

	for (i = THREADS; i < nr; i++)
		if (w->b->c[i].fate == KILLED)
			return bury(w, &w->b->c[i]);
	return false;
}

/* MODIFY asks for what comes at the same time. */
static void modify_beside(struct world *w, bool outside)
{
	unsigned int i = below(w, THINGS), pause = below(w, 300);

	if (w->t[i].mode & KEVENT_REQ_ONESHOT || is_driven(&w->t[i]))
		return;
	MUST_EQ(change(w, KEVENT_CTL_MODIFY, i, 0), 0);
	order(w, 1u << i, 1, outside);
	while (pause--)
		atomic_signal_fence(memory_order_seq_cst);
	MUST_EQ(change(w, KEVENT_CTL_MODIFY, i, w->t[i].event), 0);
}

/* Returns false if an event may have gone with who was killed. */
static bool play_round(struct world *w)
{
	unsigned int bursts = 1 + below(w, 3);
	bool lost = false;

	atomic_store(&w->silent, w->one_is_silent);
	if (chance(w, MODIFY, 3))
		modify_beside(w, chance(w, OUTSIDE, 2));
	while (bursts--) {
		wait_for_writers(w);
		burst(w, chance(w, OUTSIDE, 2));
		/* Some die before they have run, others with what they took. */
		if (below(w, 2))
			pause_us(below(w, 100));
		lost |= below(w, 2) && kill_one(w);
	}
	wait_for_writers(w);
	if (!lost)
		wait_until_taken(w);
	atomic_store(&w->silent, false);
	return !lost;
}

/* Whoever is told of one event, or keeps what he takes until there are more, must sleep. */
static bool is_at_rest(const struct consumer *c, bool anchor)
{
	int role = atomic_load(&c->role);

	if (role == WAITS_SEVERAL || (anchor && role == WAITS))
		return is_asleep_in(atomic_load(&c->tid), __NR_kevent_wait);
	if (role == BUFFER_SEVERAL || anchor)
		return is_asleep_in(atomic_load(&c->tid), __NR_kevent_get_events);
	return true;
}

/* All of them at one moment: nobody was woken between the first look and the last. */
static void wait_until_at_rest(struct world *w, unsigned int anchor)
{
	unsigned int i, nr = nr_consumers(w);
	uint64_t start = now_ns();
	long long before, after;

	do {
		before = after = 0;
		for (i = 0; i < nr; i++)
			before += sleeps_so_far(atomic_load(&w->b->c[i].tid));
		for (i = 0; i < nr; i++)
			while (!is_at_rest(&w->b->c[i], i == anchor))
				if (!patient(start, PATIENCE_MS)) {
					say_what_it_does(&w->b->c[i]);
					MUST(!"it sleeps");
				}
		for (i = 0; i < nr; i++)
			after += sleeps_so_far(atomic_load(&w->b->c[i].tid));
	} while (w->no_fork && before != after);
}

/*
 * Only one thing, while consumers sleep: the idle queue must not have it, and one who waits
 * for one event is told of it. No other event and no fault may wake them then.
 */
static bool play_turn(struct world *w, unsigned int anchor)
{
	struct ukevent ev[THINGS];

	wait_until_at_rest(w, anchor);
	get_events(w->idle_queue, 1, THINGS, 0, ev);
	order(w, 1u << below(w, THINGS), 1, chance(w, OUTSIDE, 2));
	wait_until_taken(w);
	return true;
}

static void play_scene(struct world *w)
{
	unsigned int anchor = below(w, nr_consumers(w)), rounds = 4 + below(w, 8);
	bool turns = w->idle_queue >= 0, on = true;

	w->scenes++;
	atomic_store(&w->b->fragile, !turns && chance(w, MEMORY, 2));
	w->looks = !turns && chance(w, POLLERS, 3);
	w->one_is_silent = w->looks && w->served >= 0 && below(w, 2);
	pthread_mutex_lock(&w->memory);
	w->no_fork = turns && chance(w, SEVERAL, 2);
	pthread_mutex_unlock(&w->memory);
	if (w->no_fork)
		cast_turn(w, anchor);
	else
		cast_roles(w, anchor, w->looks);
	begin_scene(w, anchor);
	while (on && rounds--) {
		w->rounds++;
		on = turns ? play_turn(w, anchor) : play_round(w);
		must_be_well(w);
	}
	end_scene(w);
	if (!on)
		forget(w);
}

/* The world */

static void open_ring(struct world *w)
{
	static const uint32_t sizes[] = { 2, 8, 64, 128 };

	w->q.size = sizes[below(w, ARRAY_SIZE(sizes))];
	w->q.bytes = (KEVENT_RING_BYTES(w->q.size) + 4095) & ~4095ul;
	w->memfd = below(w, 4) ? memfd_create("ring", MFD_CLOEXEC) : -1;
	if (w->memfd >= 0)
		MUST_EQ(ftruncate(w->memfd, w->q.bytes), 0);
	w->q.ring = mmap(NULL, w->q.bytes, PROT_READ | PROT_WRITE,
			 w->memfd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
			 w->memfd, 0);
	MUST(w->q.ring != MAP_FAILED);
	w->q.fd = kevent_init(w->q.ring, w->q.size, 0);
	MUST(w->q.fd >= 0);
}

static void catch_signals(void)
{
	struct sigaction fault = { .sa_handler = on_fault };

	catch_signal(SIGUSR1);
	sigaction(SIGSEGV, &fault, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void watch_by_idle_queue(struct world *w)
{
	unsigned int i;

	w->idle_queue = -1;
	if (!chance(w, TURNS, 4))
		return;
	w->idle_queue = kevent_init(NULL, 0, 0);
	MUST(w->idle_queue >= 0);
	for (i = 0; i < THINGS; i++)
		if (!is_driven(&w->t[i]))
			MUST_EQ(change_in(w->idle_queue, &w->t[i], KEVENT_CTL_ADD,
					  w->t[i].event, KEVENT_REQ_ET, i), 0);
}

static void start_strangers(struct world *w)
{
	for (w->stranger = 0; w->stranger < STRANGERS; w->stranger++)
		w->strangers[w->stranger] = start_child(run_stranger, w);
}

/* A file whose ->poll() is asked of the test */
static void serve_a_file(struct world *w)
{
	atomic_store(&w->served_enough, false);
	mount_fuse(&w->daemon);
	start_actor(&w->serving, run_daemon, w);
	w->served = open_fuse_file(&w->daemon);
	MUST(w->served >= 0);
	MUST_EQ(add_poll(w->q.fd, w->served, KEVENT_POLL_POLLIN, 0, NOISE), 0);
}

static void serve_no_more(struct world *w)
{
	close(w->served);
	atomic_store(&w->served_enough, true);
	join_actor(&w->serving, PATIENCE_MS);
	close(w->daemon.sock[0]);
	close(w->daemon.sock[1]);
	unmount_fuse(&w->daemon);
}

static void open_world(struct world *w)
{
	unsigned int i;

	w->b = mmap(NULL, sizeof(*w->b), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(w->b != MAP_FAILED);
	MUST_EQ(pipe2(w->block, O_CLOEXEC), 0);
	w->pid = getpid();
	open_ring(w);
	w->level = below(w, 2);
	for (i = 0; i < THINGS; i++)
		make_thing(w, i);
	watch_by_idle_queue(w);
	w->served = -1;
	if (w->idle_queue < 0 && chance(w, SILENT, 2))
		serve_a_file(w);
	w->strange = w->idle_queue < 0 && chance(w, USERS, 2);
	if (w->strange)
		start_strangers(w);
	for (i = 0; i < CONSUMERS; i++)
		w->b->c[i].nr = i;
	for (i = THREADS; i < nr_consumers(w); i++)
		start_process(&w->b->c[i]);
	w->outsider = start_child(run_outsider, w);
	atomic_store(&w->stop, false);
	for (i = 0; i < THREADS; i++)
		start_actor(&w->threads[i], run_consumer, &w->b->c[i]);
	start_actor(&w->writer, run_writer, w);
	start_actor(&w->hand, run_hand, w);
}

/* What another process does is not stored in the ring. */
static int give_from_outside(void *arg)
{
	give_all(arg, (1u << THINGS) - 1, 1);
	return 0;
}

/* Events wait in the kernel, and other data is where the ring was, when the queue is closed. */
static void free_ring_first(struct world *w)
{
	unsigned char *at = (unsigned char *)w->q.ring;
	unsigned int i;
	size_t byte;

	MUST_EQ(join_child(start_child(give_from_outside, w), PATIENCE_MS), 0);
	MUST(mmap(at, w->q.bytes, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	memset(at, FILL, w->q.bytes);
	close(w->q.fd);
	for (i = 0; i < THINGS; i++)
		drop_thing(&w->t[i]);
	for (byte = 0; byte < w->q.bytes; byte++)
		MUST_EQ(at[byte], FILL);
	munmap(at, w->q.bytes);
}

static void close_world(struct world *w)
{
	unsigned int i;

	atomic_store(&w->b->ends, true);
	atomic_store(&w->stop, true);
	join_actor(&w->hand, PATIENCE_MS);
	join_actor(&w->writer, PATIENCE_MS);
	for (i = 0; i < THREADS; i++)
		join_actor(&w->threads[i], PATIENCE_MS);
	for (i = THREADS; i < nr_consumers(w); i++)
		CHECK_EQ(join_child(atomic_load(&w->b->c[i].pid), PATIENCE_MS), 0);
	CHECK_EQ(join_child(w->outsider, PATIENCE_MS), 0);
	for (i = 0; w->strange && i < STRANGERS; i++)
		CHECK_EQ(join_child(w->strangers[i], PATIENCE_MS), 0);
	if (w->served >= 0)
		serve_no_more(w);
	if (chance(w, FREE, 3)) {
		free_ring_first(w);
	} else {
		for (i = 0; i < THINGS; i++)
			drop_thing(&w->t[i]);
		if (is_driven(&w->t[THINGS - 1]))
			change(w, KEVENT_CTL_REMOVE, THINGS - 1, 0);
		CHECK_EQ(fdinfo(w->q.fd, "kevent-watches"), 0);
		close_queue(&w->q);
	}
	if (w->idle_queue >= 0)
		close(w->idle_queue);
	if (w->memfd >= 0)
		close(w->memfd);
	close(w->block[0]);
	close(w->block[1]);
	munmap(w->b, sizeof(*w->b));
}

static void choose_kinds(struct world *w)
{
	unsigned int i;

	for (i = 0; i < NR_KINDS; i++)
		w->kind[i] = race_kind(kinds[i]);
	/* Nobody tells a module that a thread blocks. */
	w->kind[LIMIT] &= !on_module();
	/*
	 * A freezer of cgroup version 1 changes a static key, and the kernels that the module is
	 * for patch their code then. QEMU 7.2 now and then keeps a translation of the breakpoint
	 * that is there meanwhile, and the kernel dies of it ("Oops: int3").
	 */
	w->kind[FREEZE] &= !on_module();
	w->kind[SILENT] &= !access("/dev/fuse", R_OK | W_OK);
}

static void no_event_stays_behind(void)
{
	uint64_t until = now_ns() + storm_ns(), next;
	struct world w = {
		.rnd = test_seed(), .memory = PTHREAD_MUTEX_INITIALIZER,
		.began = now_ns(),
	};
	long long bytes = user_bytes();

	world = &w;
	kernel_complains();
	choose_kinds(&w);
	open_groups(&w);
	catch_signals();
	do {
		delay_at_random(&w.rnd);
		open_world(&w);
		next = now_ns() + 500000000;
		do
			play_scene(&w);
		while (now_ns() < next && now_ns() < until);
		delay_no_more();
		close_world(&w);
		MUST(pays_for(bytes));
	} while (now_ns() < until);
	say_when(&w);
	say_delays();
	CHECK(w.rounds > 0);
}

static const struct test_case cases[] = {
	TEST_LIMIT(no_event_stays_behind, 60),
	{}
};

const struct test_suite races_suite = { .name = "races", .cases = cases };
