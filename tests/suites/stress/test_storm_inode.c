// SPDX-License-Identifier: GPL-2.0
/*
 * Races of changes of files with control calls, close and unlink
 *
 *	stable	written again only after the	events == writes: none is lost,
 *		event of the last write		none comes twice
 *	churned	all that can be done to a file	events carry a value that was
 *		and its watches at random	given to a watch
 *
 * KEVENT_STORM_SECONDS in the environment sets the budget of each test.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>

#include "helpers.h"
#include "inode.h"

#define STABLE		2
#define CHURNED		6
#define CHURNERS	3
#define CHURN_USER	1000

struct storm {
	struct queue	q;
	uint64_t	seed;
	uint64_t	until;
	int		dir;
	int		stable[STABLE];
	int		churned[CHURNED];
	sem_t		seen[STABLE];
	long		written[STABLE];
	long		reported[STABLE];
	long		wrong;
};

struct stormer {
	struct actor	actor;
	struct storm	*storm;
	unsigned int	nr;
	unsigned int	deeds;
};

/* If an event is lost, the time limit of the test ends this. */
static long write_and_wait(void *arg)
{
	struct stormer *me = arg;
	struct storm *s = me->storm;
	unsigned int i = me->nr;

	while (now_ns() < s->until) {
		s->written[i]++;
		if (pwrite(s->stable[i], "", 1, 0) != 1 ||
		    sem_wait(&s->seen[i]))
			return 1;
	}
	return 0;
}

/* Uses a queue of its own for a while, on files that other threads use. */
static void short_queue(struct storm *s, unsigned int i, bool last)
{
	char path[20];
	int kq = kevent_init(NULL, 0, 0), fd;

	snprintf(path, sizeof(path), "s%u", i % STABLE);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	add_inode(kq, fd, ALL, 0, 0);
	add_inode(kq, s->churned[i], ALL, KEVENT_REQ_ONESHOT, 0);
	if (last)
		close(fd);
	close(kq);
	if (!last)
		close(fd);
}

static void replace(struct storm *s, unsigned int i, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	dup2(fd, s->churned[i]);
	close(fd);
}

static void change_file(struct storm *s, unsigned int i, const char *path,
			unsigned int deed)
{
	switch (deed % 6) {
	case 0:
		unlink(path);
		break;
	case 1:
		rename(path, "c0");
		break;
	case 2:
		fchmod(s->churned[i], 0600);
		break;
	case 3:
		if (link(path, "c1") < 0)
			unlink("c1");
		break;
	default:
		/* A file that does not exist counts as success. */
		if (write(s->churned[i], "", 1) < 0)
			break;
	}
}

static void churn(struct storm *s, uint64_t *rnd)
{
	static const uint32_t modes[] = {
		0, KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH,
		KEVENT_REQ_HAND_BACK, KEVENT_REQ_DISABLED,
		KEVENT_REQ_WAKEUP_ALL,
	};
	unsigned int i = next_random(rnd) % CHURNED;
	unsigned int cmd = next_random(rnd) % 20;
	struct ukevent ev;
	char path[20];

	snprintf(path, sizeof(path), "c%u", i);
	kevent_set_inode(&ev, s->churned[i], next_random(rnd) % ALL + 1,
			 modes[next_random(rnd) % ARRAY_SIZE(modes)],
			 CHURN_USER + i);
	if (cmd < 4)	/* ADD, REMOVE, MODIFY, READY */
		kevent_ctl_one(s->q.fd, cmd, &ev);
	else if (cmd == 4)
		replace(s, i, path);
	else if (cmd == 5)
		short_queue(s, i, next_random(rnd) % 2);
	else
		change_file(s, i, path, next_random(rnd));
}

static long churner(void *arg)
{
	struct stormer *me = arg;
	uint64_t rnd = me->storm->seed + me->nr * 0x9e3779b97f4a7c15ull;

	rnd |= 1;
	while (now_ns() < me->storm->until) {
		churn(me->storm, &rnd);
		me->deeds++;
	}
	return 0;
}

static void account(struct storm *s, const struct ukevent *ev)
{
	if (ev->ptr < STABLE && ev->ret_data[0] == MODIFY &&
	    ev->id.raw[0] == (uint32_t)s->stable[ev->ptr]) {
		s->reported[ev->ptr]++;
		sem_post(&s->seen[ev->ptr]);
		return;
	}
	if (ev->type != KEVENT_INODE || ev->ret_data[0] & ~ALL ||
		 ev->ptr < CHURN_USER || ev->ptr >= CHURN_USER + CHURNED)
		s->wrong++;
}

static bool all_ended(struct stormer *stormers, unsigned int nr)
{
	while (nr--)
		if (!actor_ended(&stormers[nr].actor))
			return false;
	return true;
}

static void start_stormers(struct storm *s, struct stormer *stormers)
{
	unsigned int i;

	for (i = 0; i < STABLE + CHURNERS; i++) {
		stormers[i].storm = s;
		stormers[i].nr = i;
		stormers[i].deeds = 0;
		start_actor(&stormers[i].actor,
			    i < STABLE ? write_and_wait : churner,
			    &stormers[i]);
	}
}

static void open_files(struct storm *s)
{
	char path[20];
	unsigned int i;

	enter_tmpfs();
	for (i = 0; i < STABLE; i++) {
		snprintf(path, sizeof(path), "s%u", i);
		s->stable[i] = open_file(path);
		MUST_EQ(sem_init(&s->seen[i], 0, 0), 0);
		MUST_EQ(add_inode(s->q.fd, s->stable[i], MODIFY, 0, i), 0);
	}
	for (i = 0; i < CHURNED; i++) {
		snprintf(path, sizeof(path), "c%u", i);
		s->churned[i] = open_file(path);
	}
}

static void run_storm(uint32_t size)
{
	struct stormer stormers[STABLE + CHURNERS];
	struct storm s = { .seed = test_seed() };
	unsigned int i, deeds = 0, churned = 0;
	struct ukevent ev;

	open_queue(&s.q, size);
	open_files(&s);
	s.until = now_ns() + storm_ns();
	start_stormers(&s, stormers);
	while (!all_ended(stormers, STABLE + CHURNERS))
		while (next_event(&s.q, &ev, 1) == 1) {
			account(&s, &ev);
			churned += ev.ptr >= CHURN_USER;
		}
	for (i = 0; i < STABLE + CHURNERS; i++) {
		join_actor(&stormers[i].actor, PATIENCE_MS);
		CHECK_EQ(stormers[i].actor.ret, 0);
		deeds += stormers[i].deeds;
	}
	while (next_event(&s.q, &ev, 0) == 1)
		account(&s, &ev);
	CHECK_EQ(s.wrong, 0);
	for (i = 0; i < STABLE; i++) {
		CHECK(s.written[i] > 0);
		CHECK_EQ(s.reported[i], s.written[i]);
		note("%ld writes", s.written[i]);
	}
	note("%u deeds, %u churned events", deeds, churned);
	for (i = 0; i < CHURNED; i++)
		close(s.churned[i]);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), STABLE);
	close_queue(&s.q);
}

static const struct test_case cases[] = {
	TEST_SIZE(changes_race_control_calls, run_storm, 0, 30),
	TEST_SIZE(changes_race_control_calls_on_a_ring, run_storm, 16, 30),
	{}
};

const struct test_suite storm_inode_suite = {
	.name = "storm_inode", .cases = cases,
};
