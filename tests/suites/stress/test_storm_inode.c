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

#include "inode.h"
#include "storm.h"

#define STABLE		2
#define CHURNED		6
#define CHURNERS	3
#define CHURN_USER	1000

struct files {
	int	stable[STABLE];
	int	churned[CHURNED];
	sem_t	seen[STABLE];
	_Atomic long written[STABLE];
	long	reported[STABLE];
	long	others;		/* events of churned files */
};

/* If an event is lost, the time limit of the test ends this. */
static void write_and_wait(struct stormer *me)
{
	struct files *f = me->storm->world;
	unsigned int i = me->nr;

	f->written[i]++;
	storm_expect(me->storm, pwrite(f->stable[i], "", 1, 0) == 1 &&
				!sem_wait(&f->seen[i]));
}

/* Uses a queue of its own for a while, on files that other threads use. */
static void short_queue(struct files *f, unsigned int i, bool last)
{
	char path[20];
	int kq = kevent_init(NULL, 0, 0), fd;

	snprintf(path, sizeof(path), "s%u", i % STABLE);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	add_inode(kq, fd, ALL, 0, 0);
	add_inode(kq, f->churned[i], ALL, KEVENT_REQ_ONESHOT, 0);
	if (last)
		close(fd);
	close(kq);
	if (!last)
		close(fd);
}

static void replace(struct files *f, unsigned int i, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	dup2(fd, f->churned[i]);
	close(fd);
}

static void change_file(struct files *f, unsigned int i, const char *path,
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
		fchmod(f->churned[i], 0600);
		break;
	case 3:
		if (link(path, "c1") < 0)
			unlink("c1");
		break;
	default:
		/* A file that does not exist counts as success. */
		if (write(f->churned[i], "", 1) < 0)
			break;
	}
}

static void churn(struct stormer *me)
{
	static const uint32_t modes[] = {
		0, KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH,
		KEVENT_REQ_HAND_BACK, KEVENT_REQ_DISABLED,
		KEVENT_REQ_WAKEUP_ALL,
	};
	unsigned int i = next_random(&me->rnd) % CHURNED;
	unsigned int cmd = next_random(&me->rnd) % 20;
	struct files *f = me->storm->world;
	struct ukevent ev;
	char path[20];

	snprintf(path, sizeof(path), "c%u", i);
	kevent_set_inode(&ev, f->churned[i], next_random(&me->rnd) % ALL + 1,
			 modes[next_random(&me->rnd) % ARRAY_SIZE(modes)],
			 CHURN_USER + i);
	if (cmd < 4)	/* ADD, REMOVE, MODIFY, READY */
		kevent_ctl_one(me->storm->q.fd, cmd, &ev);
	else if (cmd == 4)
		replace(f, i, path);
	else if (cmd == 5)
		short_queue(f, i, next_random(&me->rnd) % 2);
	else
		change_file(f, i, path, next_random(&me->rnd));
}

static void account(struct storm *s, const struct ukevent *ev)
{
	struct files *f = s->world;

	if (ev->ptr < STABLE && ev->ret_data[0] == MODIFY &&
	    ev->id.raw[0] == (uint32_t)f->stable[ev->ptr]) {
		f->reported[ev->ptr]++;
		sem_post(&f->seen[ev->ptr]);
		return;
	}
	f->others++;
	storm_expect(s, ev->type == KEVENT_INODE && !(ev->ret_data[0] & ~ALL) &&
			ev->ptr - CHURN_USER < CHURNED);
}

static void open_files(struct files *f, int kq)
{
	char path[20];
	unsigned int i;

	enter_tmpfs();
	for (i = 0; i < STABLE; i++) {
		snprintf(path, sizeof(path), "s%u", i);
		f->stable[i] = open_file(path);
		MUST_EQ(sem_init(&f->seen[i], 0, 0), 0);
		MUST_EQ(add_inode(kq, f->stable[i], MODIFY, 0, i), 0);
	}
	for (i = 0; i < CHURNED; i++) {
		snprintf(path, sizeof(path), "c%u", i);
		f->churned[i] = open_file(path);
	}
}

static bool all_are_written(const struct storm *s)
{
	struct files *f = s->world;
	unsigned int i;

	for (i = 0; i < STABLE; i++)
		if (!f->written[i])
			return false;
	return true;
}

static void control_calls_race(uint32_t size)
{
	struct files f = {};
	struct storm s = { .world = &f, .account = account, .enough = all_are_written };
	unsigned long deeds = 0;
	unsigned int i;

	open_queue(&s.q, size);
	open_files(&f, s.q.fd);
	storm_begin(&s);
	storm_workers(&s, STABLE, write_and_wait);
	storm_workers(&s, CHURNERS, churn);
	storm_run(&s, NULL);
	storm_end(&s, NULL);
	storm_drain(&s);
	CHECK(all_are_written(&s));
	for (i = 0; i < STABLE; i++) {
		CHECK_EQ(f.reported[i], f.written[i]);
		note("%ld writes", f.written[i]);
	}
	for (i = STABLE; i < s.nr; i++)
		deeds += s.stormers[i].acts;
	note("%lu deeds, %ld churned events", deeds, f.others);
	for (i = 0; i < CHURNED; i++)
		close(f.churned[i]);
	storm_close(&s, STABLE);
}

static const struct test_case cases[] = {
	TEST_SIZE(changes_race_control_calls, control_calls_race, 0, 30),
	TEST_SIZE(changes_race_control_calls_on_a_ring, control_calls_race, 16, 30),
	{}
};

const struct test_suite storm_inode_suite = {
	.name = "storm_inode", .cases = cases,
};
