// SPDX-License-Identifier: GPL-2.0
/*
 * Random graphs of queues, or of queues and epolls, checked against a model
 *
 * The model knows who watches whom, and the files below. It predicts what each
 * addition returns: a loop, too long a path, too many paths, or success; and who is
 * readable after a file was: those that reach it.
 *
 * KEVENT_NESTINGS in the environment: how many sets are added to sets, 3000 if not
 * given. The time limit of the test is for a few ten thousand: KEVENT_STORM_SECONDS
 * lengthens it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "sets.h"

#define SETS		14
#define LEAVES		4

/* Paths of 1 to 5 sets upwards from a file; the first number is without limit. */
static const unsigned int path_limits[] = { ~0u, 500, 100, 50, 10 };

struct graph {
	uint64_t	rnd;
	bool		epolls;
	struct set	set[SETS];
	int		leaf[LEAVES];
	/* What the first watches: the flags of the watch + 1, or 0 */
	unsigned int	on[SETS][SETS];
	bool		on_leaf[SETS][LEAVES];
	unsigned int	added, loops, long_paths, many_paths, wakes;
};

static unsigned int any(struct graph *g, unsigned int nr)
{
	return next_random(&g->rnd) % nr;
}

/* Model */

static bool reaches(const struct graph *g, unsigned int from, unsigned int to)
{
	unsigned int i;

	if (from == to)
		return true;
	for (i = 0; i < SETS; i++)
		if (g->on[from][i] && reaches(g, i, to))
			return true;
	return false;
}

static bool reaches_leaf(const struct graph *g, unsigned int from,
			 unsigned int leaf)
{
	unsigned int i;

	for (i = 0; i < SETS; i++)
		if (g->on_leaf[i][leaf] && reaches(g, from, i))
			return true;
	return false;
}

static unsigned int height(const struct graph *g, unsigned int i, bool up)
{
	unsigned int j, most = 0, h;

	for (j = 0; j < SETS; j++) {
		if (!(up ? g->on[j][i] : g->on[i][j]))
			continue;
		h = 1 + height(g, j, up);
		most = h > most ? h : most;
	}
	return most;
}

static bool is_watched(const struct graph *g, unsigned int i)
{
	unsigned int j;

	for (j = 0; j < SETS; j++)
		if (g->on[j][i])
			return true;
	return false;
}

/* Counts the paths upwards that go on from a set; false if there are too many. */
static bool count_paths(const struct graph *g, unsigned int i,
			unsigned int depth, unsigned int *count)
{
	unsigned int j;

	if (!is_watched(g, i))
		return ++count[depth] <= path_limits[depth];
	for (j = 0; j < SETS; j++)
		if (g->on[j][i] && !count_paths(g, j, depth + 1, count))
			return false;
	return true;
}

static bool paths_of_queue_fit(const struct graph *g, unsigned int i)
{
	unsigned int j, count[MAX_CHAIN] = { 0 };

	for (j = 0; j < SETS; j++)
		if (g->on[j][i] && !count_paths(g, j, 0, count))
			return false;
	return true;
}

/* The paths that begin with an epoll: a watch of a queue is one of many. */
static bool paths_of_leaf_fit(const struct graph *g, unsigned int leaf)
{
	unsigned int i, count[MAX_CHAIN] = { 0 };

	for (i = 0; i < SETS; i++)
		if (!g->set[i].is_queue && g->on_leaf[i][leaf] &&
		    !count_paths(g, i, 0, count))
			return false;
	return true;
}

/* Those from all that a set reaches, as a new link above it changes them */
static bool paths_fit(const struct graph *g, unsigned int below)
{
	unsigned int i, leaf;

	for (i = 0; i < SETS; i++) {
		if (!reaches(g, below, i))
			continue;
		if (g->set[i].is_queue) {
			if (!paths_of_queue_fit(g, i))
				return false;
			continue;
		}
		for (leaf = 0; leaf < LEAVES; leaf++)
			if (g->on_leaf[i][leaf] && !paths_of_leaf_fit(g, leaf))
				return false;
	}
	return true;
}

/* What adding a set to a set returns; if that is 0, the link is in the model. */
static int predict(struct graph *g, unsigned int above, unsigned int below,
		   unsigned int flags)
{
	bool is_queue = g->set[above].is_queue;

	if (above == below)
		return is_queue ? -ELOOP : -EINVAL;
	if (g->on[above][below])
		return -EEXIST;
	if (reaches(g, below, above)) {
		g->loops++;
		return -ELOOP;
	}
	if (height(g, below, false) + 1 + height(g, above, true) > MAX_LINKS) {
		g->long_paths++;
		return -ELOOP;
	}
	g->on[above][below] = flags + 1;
	if (paths_fit(g, below))
		return 0;
	g->on[above][below] = 0;
	g->many_paths++;
	return is_queue ? -ENOSPC : -EINVAL;
}

/* Changes */

static void add_any_set(struct graph *g)
{
	static const unsigned int modes[] = { 0, ET, ONESHOT, DISPATCH };
	unsigned int above = any(g, SETS), below = any(g, SETS);
	unsigned int flags = modes[any(g, ARRAY_SIZE(modes))];
	int want;

	if (!g->set[above].is_queue)
		flags = 0;
	want = predict(g, above, below, flags);
	g->added++;
	MUST_EQ(set_add(&g->set[above], g->set[below].q.fd, flags, below),
		want);
}

static void remove_any_set(struct graph *g)
{
	unsigned int above = any(g, SETS), below = any(g, SETS);
	int want = g->on[above][below] ? 0 : -ENOENT;

	/* epoll has another error for itself. */
	if (above == below)
		return;
	g->on[above][below] = 0;
	MUST_EQ(set_remove(&g->set[above], g->set[below].q.fd), want);
}

static void close_any_set(struct graph *g)
{
	unsigned int i = any(g, SETS), j;

	close_set(&g->set[i]);
	for (j = 0; j < SETS; j++)
		g->on[i][j] = g->on[j][i] = 0;
	memset(g->on_leaf[i], 0, sizeof(g->on_leaf[i]));
	open_set(&g->set[i], !g->epolls || any(g, 2));
}

/* epoll counts paths for a file that is added to a nested epoll; queues do not. */
static void add_or_remove_leaf(struct graph *g)
{
	unsigned int i = any(g, SETS), leaf = any(g, LEAVES);
	bool *on = &g->on_leaf[i][leaf];
	int want = 0;

	if (*on) {
		*on = false;
		MUST_EQ(set_remove(&g->set[i], g->leaf[leaf]), 0);
		return;
	}
	*on = true;
	if (!g->set[i].is_queue && is_watched(g, i) &&
	    !paths_of_leaf_fit(g, leaf)) {
		*on = false;
		want = -EINVAL;
	}
	MUST_EQ(set_add(&g->set[i], g->leaf[leaf], 0, SETS), want);
}

/* Events */

/* A watch that was delivered and is gone, or disarmed */
static void settle(struct graph *g, unsigned int i, const struct ukevent *ev)
{
	struct ukevent again;
	unsigned int below = ev->ptr;

	if (below == SETS)
		return;
	MUST(below < SETS && g->on[i][below]);
	if (ev->req_flags & ONESHOT)
		g->on[i][below] = 0;
	if (!(ev->req_flags & DISPATCH))
		return;
	kevent_set_poll(&again, ev->id.raw[0], KEVENT_POLL_POLLIN,
			DISPATCH | KEVENT_REQ_WAKEUP_ALL, below);
	MUST_EQ(kevent_ctl_one(g->set[i].q.fd, KEVENT_CTL_MODIFY, &again), 0);
}

/*
 * Nothing is ready any more, but queues do not know it yet: those at the bottom learn
 * it first. DISPATCH makes a queue look once more.
 */
static void drain_graph(struct graph *g)
{
	unsigned int i, round;
	struct ukevent ev;

	for (round = 0; round < 2 * MAX_CHAIN; round++)
		for (i = 0; i < SETS; i++)
			while (g->set[i].is_queue &&
			       next_event(&g->set[i].q, &ev, 0) == 1) {
				settle(g, i, &ev);
				if (ev.req_flags & DISPATCH ||
				    !(ev.req_flags & (ET | ONESHOT)))
					break;
			}
}

static void wake_any_leaf(struct graph *g)
{
	unsigned int leaf = any(g, LEAVES), i;
	eventfd_t value;

	g->wakes++;
	MUST_EQ(eventfd_write(g->leaf[leaf], 1), 0);
	for (i = 0; i < SETS; i++)
		MUST_EQ(poll_now(g->set[i].q.fd),
			reaches_leaf(g, i, leaf) ? POLLIN | POLLRDNORM : 0);
	MUST_EQ(eventfd_read(g->leaf[leaf], &value), 0);
	drain_graph(g);
	for (i = 0; i < SETS; i++)
		MUST_EQ(poll_now(g->set[i].q.fd), 0);
}

static void change_graph(struct graph *g)
{
	unsigned int what = any(g, 100);

	if (what < 68)
		add_any_set(g);
	else if (what < 84)
		remove_any_set(g);
	else if (what < 86)
		close_any_set(g);
	else if (what < 94)
		add_or_remove_leaf(g);
	else
		wake_any_leaf(g);
}

static void nest_at_random(bool epolls)
{
	const char *given = getenv("KEVENT_NESTINGS");
	unsigned int i, want = given ? strtoul(given, NULL, 0) : 3000;
	struct graph g = { .rnd = test_seed(), .epolls = epolls };

	for (i = 0; i < SETS; i++)
		open_set(&g.set[i], !epolls || i % 2);
	for (i = 0; i < LEAVES; i++)
		g.leaf[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	while (g.added < want)
		change_graph(&g);
	note("%u nestings: %u loops, %u paths too long, %u too many paths, %u wake-ups",
	     g.added, g.loops, g.long_paths, g.many_paths, g.wakes);
	for (i = 0; i < SETS; i++)
		close_set(&g.set[i]);
	/* With another seed or number these may be missing. */
	CHECK(given || (g.loops && g.long_paths && g.wakes));
}

static void random_nesting_of_queues_does_as_the_model_says(void)
{
	nest_at_random(false);
}

static void random_nesting_does_as_the_model_says(void)
{
	nest_at_random(true);
}

/* Two threads, each of which adds one half of a loop at the same time */

struct half {
	struct set	set[2];
	_Atomic unsigned int	round, done;
	_Atomic bool	over;
	int		ret;
};

/* The second thread: links the first set to the second one. */
static long close_loop(void *arg)
{
	struct half *h = arg;
	unsigned int round = 0;

	while (!atomic_load(&h->over)) {
		if (atomic_load(&h->round) == round)
			continue;
		h->ret = set_add(&h->set[0], h->set[1].q.fd, ET, 0);
		atomic_store(&h->done, ++round);
	}
	return 0;
}

/* Returns true when the first thread was the one that made its link. */
static bool race_for_a_link(struct half *h, unsigned int round, bool queue,
			    unsigned int pause)
{
	volatile unsigned int i;
	int ret;

	open_set(&h->set[0], queue);
	open_set(&h->set[1], true);
	atomic_store(&h->round, round);
	for (i = 0; i < pause; i++)
		;
	ret = set_add(&h->set[1], h->set[0].q.fd, ET, 0);
	while (atomic_load(&h->done) != round)
		;
	MUST((ret == 0 && h->ret == -ELOOP) || (ret == -ELOOP && !h->ret));
	close_set(&h->set[1]);
	close_set(&h->set[0]);
	return !ret;
}

static void race_for_links(bool epolls)
{
	uint64_t rnd = test_seed(), start = now_ns();
	struct half h = { 0 };
	unsigned int nr = 0, first = 0;
	struct actor a;

	start_actor(&a, close_loop, &h);
	while (storm_goes_on(start, nr)) {
		nr++;
		first += race_for_a_link(&h, nr, !epolls,
					 next_random(&rnd) % 4000);
	}
	atomic_store(&h.over, true);
	join_actor(&a, PATIENCE_MS);
	note("%u races, %u won by the first thread", nr, first);
	CHECK(nr > 0);
}

static void threads_close_no_loop_of_queues_together(void)
{
	race_for_links(false);
}

static void threads_close_no_loop_together(void)
{
	race_for_links(true);
}

static const struct test_case cases[] = {
	TEST_LIMIT(random_nesting_of_queues_does_as_the_model_says, 60),
	TEST_LIMIT(random_nesting_does_as_the_model_says, 60),
	TEST(threads_close_no_loop_of_queues_together),
	TEST(threads_close_no_loop_together),
	{}
};

const struct test_suite nested_random_suite = {
	.name = "nested_random", .cases = cases
};
