// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_INODE: what watches of one inode cost, and who pays
 *
 *	a user has 128 watches of an inode in all queues, then ENOSPC
 *	another user has as many, whatever the first one does
 *	the end of a watch takes as long among 10,000 watches as among 2500
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers.h"
#include "inode.h"

#define LIMIT		128
#define QUEUES		40
#define FDS		512
#define FIRST_USER	4242
#define SECOND_USER	4243

static int become(uid_t uid)
{
	return setgroups(0, NULL) || setresgid(uid, uid, uid) ||
	       setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1);
}

/* The directory "d", which every user may change */
static void make_directory(void)
{
	enter_tmpfs();
	MUST_EQ(chmod(".", 0755), 0);
	MUST_EQ(mkdir("d", 0777), 0);
	MUST_EQ(chmod("d", 0777), 0);
}

static int open_d(void)
{
	return open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int create_and_unlink(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 || close(fd) || unlink(path);
}

/* The shortest time of several creates and unlinks */
static uint64_t create_ns(const char *path)
{
	uint64_t best = UINT64_MAX, start, ns;
	int i;

	for (i = 0; i < 50; i++) {
		start = now_ns();
		if (create_and_unlink(path))
			return 0;
		ns = now_ns() - start;
		if (ns < best)
			best = ns;
	}
	return best;
}

/* What the first user holds, and the pipes by which it and the test wait */
struct hoard {
	int	kq[QUEUES];
	int	fd[FDS];
	int	ready[2], done[2];
};

/* Tries to watch the directory by each queue through each descriptor. */
static int hoard_watches(struct hoard *h)
{
	int nr = 0, i, j, ret;

	for (j = 0; j < FDS; j++)
		CHILD_MUST((h->fd[j] = open_d()) >= 0);
	for (i = 0; i < QUEUES; i++) {
		h->kq[i] = kevent_init(NULL, 0, 0);
		CHILD_MUST(h->kq[i] >= 0);
		/* Without a limit on watches this would take long. */
		for (j = 0; j < FDS && nr < 20 * LIMIT; j++) {
			ret = add_inode(h->kq[i], h->fd[j], CREATE, 0, j);
			nr += !ret;
			CHILD_MUST(ret == 0 || ret == -ENOSPC);
		}
	}
	note("%d of %d watches", nr, QUEUES * FDS);
	CHILD_MUST(nr == LIMIT);
	return 0;
}

/* All of the first user's watches are in its first queue. */
static int first_user(void *arg)
{
	struct hoard *h = arg;
	struct ukevent ev[LIMIT + 1];
	char byte;

	CHILD_MUST(!become(FIRST_USER));
	CHILD_MUST(!hoard_watches(h));
	CHILD_MUST(write(h->ready[1], "", 1) == 1);
	CHILD_MUST(read(h->done[0], &byte, 1) == 1);
	CHILD_MUST(get_events(h->kq[0], 1, LIMIT + 1, 0, ev) == LIMIT);
	/* Every queue can use a place that is free. */
	CHILD_MUST(!remove_file(h->kq[0], KEVENT_INODE, h->fd[3]));
	CHILD_MUST(add_inode(h->kq[7], h->fd[9], REMOVE, 0, 0) == 0);
	CHILD_MUST(add_inode(h->kq[7], h->fd[3], REMOVE, 0, 0) == -ENOSPC);
	close(h->kq[0]);
	CHILD_MUST(add_inode(h->kq[7], h->fd[3], REMOVE, 0, 0) == 0);
	return 0;
}

static int second_user(void *arg)
{
	struct hoard *h = arg;
	struct ukevent ev[LIMIT + 1];
	uint64_t before;
	int kq, i;

	(void)h;
	CHILD_MUST(!become(SECOND_USER));
	before = create_ns("d/second");
	kq = kevent_init(NULL, 0, 0);
	for (i = 0; i < LIMIT; i++)
		CHILD_MUST(add_inode(kq, open_d(), CREATE, 0, 0) == 0);
	CHILD_MUST(add_inode(kq, open_d(), CREATE, 0, 0) == -ENOSPC);
	CHILD_MUST(!create_and_unlink("d/second"));
	CHILD_MUST(get_events(kq, 1, LIMIT + 1, 0, ev) == LIMIT);
	note("create and unlink: %llu ns, then %llu ns",
	     (unsigned long long)before,
	     (unsigned long long)create_ns("d/second"));
	return 0;
}

static void users_do_not_pay_for_one_another(void)
{
	struct hoard h;
	char byte;
	pid_t pid;

	make_directory();
	open_fds(2 * FDS);
	MUST_EQ(pipe2(h.ready, O_CLOEXEC), 0);
	MUST_EQ(pipe2(h.done, O_CLOEXEC), 0);
	note("create and unlink without watches: %llu ns",
	     (unsigned long long)create_ns("d/root"));
	pid = start_child(first_user, &h);
	close(h.ready[1]);
	if (read(h.ready[0], &byte, 1) == 1) {
		CHECK_EQ(join_child(start_child(second_user, &h),
				    2 * PATIENCE_MS), 0);
		MUST_EQ(write(h.done[1], "", 1), 1);
	}
	CHECK_EQ(join_child(pid, 2 * PATIENCE_MS), 0);
}

/* A user whose mark of the directory comes and goes */
static int comes_and_goes(void *arg)
{
	uid_t uid = *(uid_t *)arg;
	uint64_t until = now_ns() + storm_ns() / 2;
	unsigned int rounds = 0;
	struct ukevent ev;
	char path[20];
	int kq, fd;

	CHILD_MUST(!become(uid));
	snprintf(path, sizeof(path), "d/%d", getpid());
	while (now_ns() < until) {
		kq = kevent_init(NULL, 0, 0);
		fd = open_d();
		CHILD_MUST(add_inode(kq, fd, CREATE, 0, 0) == 0);
		CHILD_MUST(!create_and_unlink(path));
		CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 1);
		if (rounds++ & 1)
			CHILD_MUST(!remove_file(kq, KEVENT_INODE, fd));
		close(kq);
		close(fd);
	}
	note("%u rounds", rounds);
	return 0;
}

static void users_come_and_go(void)
{
	uid_t uid[2] = { FIRST_USER, SECOND_USER };
	pid_t pid[4];
	unsigned int i;

	make_directory();
	for (i = 0; i < ARRAY_SIZE(pid); i++)
		pid[i] = start_child(comes_and_goes, &uid[i % 2]);
	for (i = 0; i < ARRAY_SIZE(pid); i++)
		CHECK_EQ(join_child(pid[i], storm_ns() / 1000000 +
				    2 * PATIENCE_MS), 0);
}

/* The mark that several queues share has the interests of all of them. */

static int modify_inode(int kq, int fd, uint32_t event)
{
	struct ukevent ev;

	kevent_set_inode(&ev, fd, event, 0, 0);
	return kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev);
}

static void each_watch_reports_its_interest(void)
{
	struct queue q[3];
	int fd, i;

	enter_tmpfs();
	fd = open_file("f");
	for (i = 0; i < 3; i++)
		open_queue(&q[i], i ? 8 : 0);
	MUST_EQ(add_inode(q[0].fd, fd, MODIFY, 0, 0), 0);
	MUST_EQ(add_inode(q[1].fd, fd, RENAME, 0, 0), 0);
	put_byte(fd);
	MUST_EQ(fchmod(fd, 0640), 0);
	check_only(&q[0], fd, MODIFY, 0);
	CHECK_NO_EVENT(&q[1]);
	/* One watch asks for more, and another one comes and goes. */
	MUST_EQ(modify_inode(q[1].fd, fd, ATTRIB), 0);
	MUST_EQ(add_inode(q[2].fd, fd, ALL, 0, 0), 0);
	MUST_EQ(rename("f", "g"), 0);
	MUST_EQ(fchmod(fd, 0600), 0);
	CHECK_NO_EVENT(&q[0]);
	check_only(&q[1], fd, ATTRIB, 0);
	check_only(&q[2], fd, ATTRIB | RENAME, 0);
	close_queue(&q[2]);
	MUST_EQ(fchmod(fd, 0640), 0);
	put_byte(fd);
	check_only(&q[1], fd, ATTRIB, 0);
	check_only(&q[0], fd, MODIFY, 0);
	MUST_EQ(remove_file(q[1].fd, KEVENT_INODE, fd), 0);
	MUST_EQ(modify_inode(q[0].fd, fd, ATTRIB), 0);
	MUST_EQ(fchmod(fd, 0600), 0);
	check_only(&q[0], fd, ATTRIB, 0);
}

static void name_lost_while_nobody_asked_is_reported_by_modify(void)
{
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open_file("f");
	MUST_EQ(add_inode(q.fd, fd, MODIFY, 0, 0), 0);
	MUST_EQ(unlink("f"), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(modify_inode(q.fd, fd, REMOVE), 0);
	check_only(&q, fd, REMOVE, 0);
	MUST_EQ(modify_inode(q.fd, fd, REMOVE | ATTRIB), 0);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* The end of watches */

#define FILES	10000
#define CHUNK	100

static int files[FILES];

static void ctl_files(int kq, uint32_t cmd, unsigned int first)
{
	struct ukevent ev[CHUNK];
	unsigned int i;

	for (i = 0; i < CHUNK; i++)
		kevent_set_inode(&ev[i], files[first + i], MODIFY, 0, 0);
	MUST_EQ(kevent_ctl(kq, cmd, CHUNK, ev), 0);
}

/*
 * How long it takes to remove 100 of @nr watches: the shortest of some times.
 * Interrupts do not disturb each of such short times.
 */
static uint64_t removal_ns(unsigned int nr)
{
	uint64_t best = UINT64_MAX, ns;
	unsigned int i;
	struct queue q;

	open_queue(&q, 0);
	for (i = 0; i < nr; i += CHUNK)
		ctl_files(q.fd, KEVENT_CTL_ADD, i);
	for (i = 0; i < nr / 5; i += CHUNK) {
		ns = now_ns();
		ctl_files(q.fd, KEVENT_CTL_REMOVE, i);
		ns = now_ns() - ns;
		if (ns < best)
			best = ns;
	}
	close_queue(&q);
	return best;
}

static void keep_least(uint64_t *least, uint64_t ns)
{
	if (!*least || ns < *least)
		*least = ns;
}

/* 50 watches of each inode, removed in the order in which they came */
static void removal_takes_as_long_among_many(void)
{
	const unsigned int nr = FILES / (slowness > 1 ? 5 : 1);
	uint64_t few = 0, many = 0, start = now_ns();
	unsigned int i;
	char name[20];

	enter_tmpfs();
	open_fds(nr + 100);
	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%u", i / 50);
		files[i] = open_file(name);
	}
	do {
		keep_least(&few, removal_ns(nr / 4));
		keep_least(&many, removal_ns(nr));
	} while (many > 2 * few && patient(start, 2 * PATIENCE_MS));
	note("100 of %u: %llu ns, of %u: %llu ns", nr / 4,
	     (unsigned long long)few, nr, (unsigned long long)many);
	CHECK(many <= 2 * few);
}

static const struct test_case cases[] = {
	TEST_LIMIT(users_do_not_pay_for_one_another, 60),
	TEST_LIMIT(users_come_and_go, 60),
	TEST(each_watch_reports_its_interest),
	TEST(name_lost_while_nobody_asked_is_reported_by_modify),
	TEST_LIMIT(removal_takes_as_long_among_many, 60),
	{}
};

const struct test_suite inode_limits_suite = {
	.name = "inode_limits", .cases = cases,
};
