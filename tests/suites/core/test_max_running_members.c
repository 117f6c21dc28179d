// SPDX-License-Identifier: GPL-2.0
/*
 * Which threads count for kevent_wait_arg.max_running: how one becomes a member and how it
 * ceases to be one, and threads that wait beside them without a limit
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "team.h"

/* Membership */

static void exit_makes_room(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	mark(t, 2);
	CHECK(parked(t, 1));
	tell(a, ends);
	join_actor(&a->actor, PATIENCE_MS);
	CHECK_EQ(result(b), 2);
	tell(b, ends);
	join_actor(&b->actor, PATIENCE_MS);
	CHECK(running(t, 0));
	runs(t, c, 3);
	end(t, c);
	close_queue(&t->q);
}

static int runs_until_killed(void *arg)
{
	struct team *t = arg;

	CHILD_MUST(kevent_ctl(t->q.fd, KEVENT_CTL_ATTACH, SIZE,
			      (void *)t->q.ring) == 0);
	CHILD_MUST(wait_for_event(&t->q, 1, -1) == 1);
	for (;;)
		;
}

static void killed_process_makes_room(void)
{
	struct team *t = open_team(1, 1);
	pid_t pid;

	pid = start_child(runs_until_killed, t);
	MUST(sleeps_in(pid, __NR_kevent_wait));
	mark(t, 1);
	MUST(running(t, 1));
	mark(t, 2);
	tell(&t->w[0], waits);
	MUST(parked(t, 1));
	CHECK(!is_done(&t->w[0]));
	kill(pid, SIGKILL);
	CHECK_EQ(result(&t->w[0]), 2);
	waitpid(pid, NULL, 0);
	CHECK(running(t, 1));
	close_team(t, 1);
}

static int runs_another_program(void *arg)
{
	struct team *t = arg;

	CHILD_MUST(kevent_ctl(t->q.fd, KEVENT_CTL_ATTACH, SIZE,
			      (void *)t->q.ring) == 0);
	CHILD_MUST(wait_for_event(&t->q, 1, -1) == 1);
	while (!atomic_load(&t->stop))
		;
	CHILD_MUST(dup2(t->w[0].pipe[1], 1) == 1);
	exec_and_run();
	return 1;
}

static void exec_makes_room(void)
{
	struct team *t = open_team(1, 1);
	pid_t pid;

	pid = start_child(runs_another_program, t);
	MUST(sleeps_in(pid, __NR_kevent_wait));
	mark(t, 1);
	MUST(running(t, 1));
	mark(t, 2);
	tell(&t->w[0], waits);
	MUST(parked(t, 1));
	atomic_store(&t->stop, 1);
	CHECK_EQ(result(&t->w[0]), 2);
	/* exec may block, but the program has no place when it runs. */
	tell(&t->w[0], blocks);
	CHECK_EQ(result(&t->w[0]), 1);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	waitpid(pid, NULL, 0);
	close_team(t, 1);
}

static void child_of_a_member_is_none(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	tell(a, forks);
	MUST(result(a) > 0);
	/* fork() may have blocked for a moment. */
	tell(a, blocks);
	CHECK(parked(t, 0));
	CHECK(running(t, 0));
	mark(t, 2);
	CHECK_EQ(result(b), 2);
	CHECK_EQ(kill(a->child, SIGKILL), 0);
	waitpid(a->child, NULL, 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	let_read_return(a);
	close_team(t, 2);
}

static void member_moves_to_another_queue(void)
{
	struct team *t = open_team(2, 1), *u = open_team(0, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	a->q = &u->q;
	runs(u, a, 3);
	CHECK(parked(t, 0));
	CHECK(running(t, 0));
	CHECK_EQ(fdinfo(u->q.fd, "kevent-running"), 1);
	mark(t, 2);
	CHECK_EQ(result(b), 2);
	/* The queue of a member is closed: it is memory only. */
	close_queue(&u->q);
	a->q = &t->q;
	tell(a, waits);
	CHECK(parked(t, 1));
	close_team(t, 2);
}

static void close_of_the_queue_ends_nothing_else(void)
{
	struct team *t = open_team(2, 1), *u = open_team(0, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	runs(t, a, 2);
	close_queue(&t->q);
	tell(a, blocks);
	let_read_return(a);
	CHECK_EQ(result(a), 1);
	tell(a, ends);
	join_actor(&a->actor, PATIENCE_MS);
	b->q = &u->q;
	runs(u, b, 1);
	end(u, b);
	close_queue(&u->q);
}

static void wait_without_a_limit_ends_membership(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	/* A look at what is there does not. */
	a->max = 0;
	a->ms = 0;
	tell(a, waits);
	CHECK_EQ(result(a), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	a->ms = -1;
	sleeps(a);
	mark(t, 2);
	CHECK_EQ(result(a), 2);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 0);
	runs(t, b, 3);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	close_team(t, 2);
}

static void wait_elsewhere_without_a_limit_is_a_block(void)
{
	struct team *t = open_team(2, 1), *u = open_team(0, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	mark(t, 2);
	a->q = &u->q;
	a->max = 0;
	sleeps(a);
	CHECK_EQ(result(b), 2);
	mark(u, 3);
	CHECK_EQ(result(a), 3);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 2);
	close_team(t, 2);
	close_queue(&u->q);
}

static void consumer_without_a_limit_gets_the_event(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	c->max = 0;
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	/* B is woken first, and hands it on. */
	mark(t, 2);
	CHECK_EQ(result(c), 2);
	CHECK(parked(t, 1));
	sleeps(c);
	mark(t, 3);
	CHECK_EQ(result(c), 3);
	CHECK(!is_done(b));
	close_team(t, 3);
}

/* B is woken for an entry in the ring, and hands it on, but not to one with a buffer. */
static void entry_is_for_one_that_waits_for_it(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];
	struct queue bare = { .fd = t->q.fd };
	struct waiter plain;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(t->q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 20),
		0);
	sleeps(a);
	sleeps(b);
	start_waiter(&plain, &bare, 1);
	c->max = 0;
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	put_byte(fd[1]);
	CHECK_EQ(result(c), 20);
	CHECK(parked(t, 1));
	CHECK(!is_done(b) && waiter_asleep(&plain));
	request(t);
	CHECK_EQ(join_waiter(&plain), 0);
	close_team(t, 3);
}

#ifdef __LP64__

static long serves(struct worker *w)
{
	struct timespec ts = { 0 };

	return raw_kevent(__NR_kevent_wait, w->q->fd, 1, 0, &ts,
			  KEVENT_FLAGS_SERVE, NULL);
}

static void one_that_serves_is_no_member(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	mark(t, 2);
	tell(a, serves);
	CHECK_EQ(result(a), 0);
	CHECK_EQ(result(b), 2);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	close_team(t, 2);
}

#endif

static const struct test_case cases[] = {
	TEST(exit_makes_room),
	TEST(killed_process_makes_room),
	TEST(exec_makes_room),
	TEST(child_of_a_member_is_none),
	TEST(member_moves_to_another_queue),
	TEST(close_of_the_queue_ends_nothing_else),
	TEST(wait_without_a_limit_ends_membership),
	TEST(wait_elsewhere_without_a_limit_is_a_block),
	TEST(consumer_without_a_limit_gets_the_event),
	TEST(entry_is_for_one_that_waits_for_it),
#ifdef __LP64__
	TEST(one_that_serves_is_no_member),
#endif
	{}
};

const struct test_suite max_running_members_suite = {
	.name = "max_running_members",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
