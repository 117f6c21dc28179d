// SPDX-License-Identifier: GPL-2.0
/* kevent-show, and what it reads: fdinfo of queues */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "tool.h"

static struct tool show;

/* Runs kevent-show on @pid, with an option or NULL. */
static void run_show(const char *option, pid_t pid, int (*before)(void))
{
	static char number[20];

	snprintf(number, sizeof(number), "%d", pid);
	show = (struct tool){
		.name = "kevent-show",
		.args = { option ?: number, option ? number : NULL },
		.before = before,
	};
	run_tool(&show);
}

static void show_me(const char *option)
{
	run_show(option, getpid(), NULL);
	CHECK_EQ(show.status, 0);
}

static void must_add(const struct queue *q, struct ukevent ev)
{
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
}

static void wake_one(const struct queue *q)
{
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL), 0);
}

/* --- what it says ------------------------------------------------------ */

static void watches_of_files_have_words(void)
{
	int fd[2], in[2], dir = open("/tmp", O_RDONLY | O_CLOEXEC);
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	open_pipe(fd);
	open_pipe(in);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, KEVENT_REQ_ET, 0x61), 0);
	MUST_EQ(add_pipe(q.fd, fd[1], KEVENT_SOCKET_SEND,
			 KEVENT_REQ_DISPATCH | KEVENT_REQ_DISABLED, 1), 0);
	MUST_EQ(add_poll(q.fd, in[0], KEVENT_POLL_POLLIN, 0, 2), 0);
	kevent_set_inode(&ev, dir, KEVENT_INODE_CREATE | KEVENT_INODE_REMOVE,
			 KEVENT_REQ_ONESHOT, ~0ull);
	must_add(&q, ev);
	show_me(NULL);
	check_said(&show, "  idle       edge      PIPE %d RECV ET user 0x61",
		   fd[0]);
	check_said(&show, "  disabled   dispatch  PIPE %d SEND DISPATCH|DISABLED user 0x1",
		   fd[1]);
	check_said(&show, "  idle       level     POLL %d POLLIN 0 user 0x2",
		   in[0]);
	check_said(&show, "  idle       oneshot   INODE %d CREATE|REMOVE ONESHOT user 0xffffffffffffffff",
		   dir);
	check_said(&show, "  watches   4: 2 PIPE, 1 POLL, 1 INODE");
	close_queue(&q);
}

static void other_watches_have_words(void)
{
	const uint64_t hour = 3600000000000ull;
	static uint32_t word = 7;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	kevent_set_timer(&ev, hour, hour, 0, 0, 3);
	must_add(&q, ev);
	kevent_set_signal(&ev, SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, 4);
	must_add(&q, ev);
	kevent_set_proc(&ev, getppid(), 0, 5);
	must_add(&q, ev);
	kevent_set_futex(&ev, &word, 7, KEVENT_FUTEX_WAKE,
			 KEVENT_REQ_ONESHOT, 6);
	must_add(&q, ev);
	MUST_EQ(add_user(q.fd, 0x123456789abull, 3, KEVENT_REQ_KEEP_EACH, 7),
		0);
	show_me(NULL);
	check_said(&show, "  idle       each      TIMER %llu ns FIRED|INTERVAL 0 user 0x3",
		   (unsigned long long)hour);
	check_said(&show, "  idle       each      SIGNAL %d DELIVERY 0 user 0x4",
		   SIGUSR1);
	check_said(&show, "  idle       oneshot   PROC %d EXIT ONESHOT user 0x5",
		   getppid());
	check_said(&show, "  idle       oneshot   FUTEX %#llx WAKE* ONESHOT user 0x6",
		   (unsigned long long)(uintptr_t)&word);
	check_said(&show, "  idle       each      USER 0x123456789ab 0x3 KEEP_EACH user 0x7");
	close_queue(&q);
}

/* A level watch has been delivered, an edge is queued. */
static void states_follow_events(void)
{
	struct ukevent ev;
	struct queue q;
	int a[2], b[2];

	open_queue(&q, 0);
	open_pipe(a);
	open_pipe(b);
	MUST_EQ(add_pipe(q.fd, a[0], RECV, 0, 1), 0);
	MUST_EQ(add_pipe(q.fd, b[0], RECV, KEVENT_REQ_ET, 2), 0);
	put_byte(a[1]);
	MUST_EVENT(&q, &ev);
	put_byte(b[1]);
	show_me(NULL);
	check_said(&show, "  delivered  level     PIPE %d RECV 0 user 0x1*",
		   a[0]);
	check_said(&show, "  queued     edge      PIPE %d RECV ET user 0x2 ready RECV",
		   b[0]);
	check_said(&show, "  queued    2");
	check_said(&show, "  ring      none");
	check_said(&show, "  events    1 delivered, 0 hits, * misses, 0.0 %% hits");
	close_queue(&q);
}

/* A step of the clock cancels the timer. */
static void watch_that_was_cancelled_is_broken(void)
{
	const uint32_t flags = KEVENT_TIMER_REALTIME | KEVENT_TIMER_ABSTIME |
			       KEVENT_TIMER_CANCEL_ON_SET;
	struct timespec now;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += 3600;
	kevent_set_timer(&ev, kevent_ns(&now), 0, flags, 0, 1);
	must_add(&q, ev);
	clock_gettime(CLOCK_REALTIME, &now);
	MUST_EQ(clock_settime(CLOCK_REALTIME, &now), 0);
	MUST_EVENT(&q, &ev);
	CHECK(ev.ret_flags & KEVENT_RET_BROKEN);
	show_me(NULL);
	check_said(&show, "  broken     each      TIMER * user 0x1*");
	close_queue(&q);
}

/* A consumer has looked at the pipe, and has not reported what it saw. */
static void watch_that_is_looked_at_is_busy(void)
{
	struct actor consumer;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[1], KEVENT_SOCKET_SEND, 0, 1), 0);
	CHECK(start_in_window(&consumer, "verified", collect_one, &q.fd));
	show_me(NULL);
	window_release();
	check_said(&show, "  busy       level     PIPE %d SEND 0 user 0x1*",
		   fd[1]);
	join_actor(&consumer, PATIENCE_MS);
	CHECK_EQ(consumer.ret, 1);
	close_queue(&q);
}

static void ring_and_counts_are_said(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, KEVENT_REQ_ET, 1), 0);
	CHECK_NO_EVENT(&q);
	put_byte(fd[1]);
	show_me("--brief");
	check_said(&show, "%d *: 1 queue", getpid());
	check_said(&show, "descriptor %d: queue %lld", q.fd,
		   fdinfo(q.fd, "ino"));
	check_said(&show, "  ring      8 slots, 1 unread, in 1 process, flags 0");
	check_said(&show, "  flags     0");
	check_said(&show, "  events    1 delivered, 1 hits, 0 misses, 100.0 %% hits");
	check_said(&show, "  queued    0");
	check_said(&show, "  waiting   0");
	check_said(&show, "  memory    %lld of [1-9]* bytes, in all queues of the owner",
		   fdinfo(q.fd, "kevent-user-bytes"));
	check_unsaid(&show, "*PIPE %d*", fd[0]);
	MUST_EVENT(&q, &ev);
	show_me("-b");
	check_said(&show, "  ring      8 slots, * unread, in 1 process, flags 0");
	close_queue(&q);
	show_me(NULL);
	check_said(&show, "%d *: 0 queues", getpid());
}

static void flags_of_the_queue_have_words(void)
{
	int kq = kevent_init(NULL, 0, KEVENT_INIT_NOCLOEXEC |
			     KEVENT_INIT_REFUSE(KEVENT_INODE) |
			     KEVENT_INIT_REFUSE_ATTACH);

	MUST(kq >= 0);
	show_me("-b");
	check_said(&show, "  flags     NOCLOEXEC|REFUSE_ATTACH|REFUSE(INODE)");
	close(kq);
}

/* --- who has it, and who waits ----------------------------------------- */

static int have_the_queue(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "holder");
	raise(SIGSTOP);
	return 0;
}

static pid_t start_stopped(int (*fn)(void *arg), void *arg)
{
	pid_t pid = start_child(fn, arg);
	int status;

	MUST_EQ(waitpid(pid, &status, WUNTRACED), pid);
	MUST(WIFSTOPPED(status));
	return pid;
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
}

static void other_processes_are_named(void)
{
	struct queue q, alone;
	pid_t pid;

	open_queue(&q, 8);
	pid = start_stopped(have_the_queue, NULL);
	open_queue(&alone, 0);
	show_me("-b");
	check_said(&show, "  also in   %d holder, descriptor %d", pid, q.fd);
	CHECK_EQ(said_lines(&show, "  also in *"), 1);
	kill_child(pid);
	show_me("-b");
	check_unsaid(&show, "  also in *");
	close_queue(&alone);
	close_queue(&q);
}

static int attach_and_stop(void *arg)
{
	CHILD_MUST(!attach_ring(arg));
	raise(SIGSTOP);
	return 0;
}

static void processes_with_the_ring_are_counted(void)
{
	struct queue q = { .size = 8, .bytes = 4096 };
	pid_t pid;

	q.ring = mmap(NULL, q.bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q.ring != MAP_FAILED);
	q.fd = kevent_init(q.ring, q.size, 0);
	MUST(q.fd >= 0);
	pid = start_stopped(attach_and_stop, &q);
	show_me("-b");
	check_said(&show, "  ring      8 slots, 0 unread, in 2 processes, flags 0");
	kill_child(pid);
	show_me("-b");
	check_said(&show, "  ring      8 slots, 0 unread, in 1 process, flags 0");
	close_queue(&q);
}

static int wait_elsewhere(void *arg)
{
	struct ukevent ev;

	prctl(PR_SET_NAME, "elsewhere");
	return get_events(*(int *)arg, 1, 1, -1, &ev) != 1;
}

static void waiters_are_named(void)
{
	struct waiter w;
	struct queue q;
	pid_t pid;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 0);
	start_waiter(&w, &q, 1);
	pid = start_child(wait_elsewhere, &q.fd);
	MUST(sleeps_in(pid, __NR_kevent_get_events));
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 2);
	show_me("-b");
	check_said(&show, "  waiting   2: %d * of %d, %d elsewhere",
		   w.actor.tid, getpid(), pid);
	kill_child(pid);
	show_me("-b");
	check_said(&show, "  waiting   1: %d * of %d", w.actor.tid, getpid());
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST_EQ(join_waiter(&w), 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 0);
	show_me("-b");
	check_said(&show, "  waiting   0");
	close_queue(&q);
}

/* A wait that ends by a time-out or a signal leaves nothing behind. */
static void waits_that_end_are_not_counted(struct queue *q)
{
	struct waiter w;
	int fd[2];

	CHECK_EQ(q->size ? wait_ring(q, 1, 1) :
		 get_events(q->fd, 1, 1, 1, &(struct ukevent){}), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-waiting"), 0);
	start_waiter(&w, q, 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-waiting"), 1);
	wake_one(q);
	MUST_EQ(join_waiter(&w), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-waiting"), 0);

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, KEVENT_REQ_ET, 1), 0);
	start_waiter(&w, q, 1);
	put_byte(fd[1]);
	MUST_EQ(join_waiter(&w), 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-waiting"), 0);
}

#define MANY	70	/* 64 are named */

static void many_waiters_are_counted(void)
{
	static struct waiter w[MANY];
	struct queue q;
	unsigned int i;

	open_queue(&q, 0);
	for (i = 0; i < MANY; i++)
		start_waiter(&w[i], &q, 1);
	show_me("-b");
	check_said(&show, "  waiting   %d: %d *, %d * of %d, %d more", MANY,
		   w[0].actor.tid, w[63].actor.tid, getpid(), MANY - 64);
	check_unsaid(&show, "  waiting * %d *", w[64].actor.tid);
	for (i = 0; i < MANY; i++)
		wake_one(&q);
	for (i = 0; i < MANY; i++)
		MUST_EQ(join_waiter(&w[i]), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 0);
	close_queue(&q);
}

/* The list of waiters in fdinfo of a queue, as a process of that procfs reads it */
static const char *waiters_in(const char *proc, int kq)
{
	static char text[4096];
	char path[64], *at;

	snprintf(path, sizeof(path), "%s/self/fdinfo/%d", proc, kq);
	read_file(path, text, sizeof(text));
	at = strstr(text, "\nkevent-waiters:");
	if (!at)
		return "none";
	at += strlen("\nkevent-waiters:");
	at[strcspn(at, "\n")] = 0;
	return at;
}

static int look_from_inside(void *arg)
{
	struct queue *q = arg;
	struct waiter w;
	char want[40];

	CHILD_MUST(getpid() == 1);
	CHILD_MUST(!mount("proc", "/proc", "proc", 0, NULL));
	start_waiter(&w, q, 1);
	snprintf(want, sizeof(want), "\t%d", w.actor.tid);
	CHILD_MUST(!strcmp(waiters_in("/proc", q->fd), want));
	CHILD_MUST(fdinfo(q->fd, "kevent-waiting") == 2);
	return 0;
}

/* Who reads sees only the ids that its procfs has, and how many wait in all. */
static void waiters_outside_have_no_id(void)
{
	struct waiter w;
	struct queue q;
	char want[40];
	pid_t child;

	open_queue(&q, 0);
	start_waiter(&w, &q, 1);
	snprintf(want, sizeof(want), "\t%d", w.actor.tid);
	CHECK(!strcmp(waiters_in("/proc", q.fd), want));
	MUST_EQ(unshare(CLONE_NEWPID | CLONE_NEWNS), 0);
	MUST_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	child = start_child(look_from_inside, &q);
	CHECK_EQ(join_child(child, 3 * PATIENCE_MS), 0);
	wake_one(&q);
	MUST_EQ(join_waiter(&w), 0);
	close_queue(&q);
}

/* --- JSON --------------------------------------------------------------- */

static void check_has(const char *what)
{
	if (!CHECK(strstr(show.said, what)))
		note("no %s in:\n%s", what, show.said);
}

static void json_has_its_shape(void)
{
	struct queue q, other;
	struct waiter w;
	char want[128];
	pid_t pid;
	int fd[2];

	MUST_EQ(prctl(PR_SET_NAME, "a\"b\\c\n\x80"), 0);
	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, KEVENT_REQ_ET, ~0ull), 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 9), 0);
	start_waiter(&w, &q, 1);
	pid = start_stopped(have_the_queue, NULL);
	open_queue(&other, 0);
	show_me("--json");
	if (!CHECK(is_json(show.said)))
		note("no JSON: %s", show.said);
	check_has("\"command\":\"a\\\"b\\\\c\\u000a\\u0080\"");
	check_has("\"ring\":{\"size\":8,\"kidx\":0,\"uidx\":0,\"processes\":1,\"flags\":\"0\"}");
	check_has("\"watches\":2,\"watches_by_type\":{\"PIPE\":1,\"USER\":1}");
	snprintf(want, sizeof(want), "{\"type\":\"PIPE\",\"id\":%d,\"text\":\"PIPE %d\",\"events\":\"RECV\",\"flags\":\"ET\",\"mode\":\"edge\",\"user\":18446744073709551615,",
		 fd[0], fd[0]);
	check_has(want);
	snprintf(want, sizeof(want), "\"waiting\":1,\"waiters\":[{\"tid\":%d,\"pid\":%d,",
		 w.actor.tid, getpid());
	check_has(want);
	snprintf(want, sizeof(want), "\"others\":[{\"pid\":%d,\"fd\":%d,\"command\":\"holder\"}]",
		 pid, q.fd);
	check_has(want);
	show_me("-bj");
	CHECK(is_json(show.said));
	CHECK(!strstr(show.said, "\"list\""));
	kill_child(pid);
	wake_one(&q);
	MUST_EQ(join_waiter(&w), 0);
}

/* The test of the test: what it must not take for JSON */
static void json_is_distinguished_from_other_text(void)
{
	static const char *const wrong[] = {
		"", "[", "[1,]", "[1 2]", "{\"a\":}", "{a:1}", "{\"a\":1,}",
		"[01]", "[1.]", "[.5]", "[1,5.]", "[\"\\x\"]", "[\"\n\"]", "[1]]", "[\"\x80\"]",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		if (!CHECK(!is_json(wrong[i])))
			note("%s", wrong[i]);
	CHECK(is_json("[{\"a\":[],\"b\":{\"c\":0}},\"\\u000a\\\"\",17,0.25]\n"));
}

/* --- what is not there -------------------------------------------------- */

static void name_does_not_reach_the_terminal(void)
{
	struct queue q;

	MUST_EQ(prctl(PR_SET_NAME, "\033[2J\x9b"), 0);
	open_queue(&q, 0);
	show_me("-b");
	check_said(&show, "%d [?][[]2J[?]: 1 queue", getpid());
	CHECK(!strchr(show.said, '\033') && !strchr(show.said, '\x9b'));
	close_queue(&q);
}

/*
 * The first of two processes has more to show than the pipe holds. The second one
 * ends while kevent-show waits for room.
 */
static void process_may_end_while_it_is_looked_at(void)
{
	char me[20], other[20];
	struct tool *t = &show;
	unsigned int i;
	struct queue q;
	pid_t pid;

	open_queue(&q, 0);
	for (i = 0; i < 500; i++)
		MUST_EQ(add_user(q.fd, i + 1, 1, 0, 0), 0);
	pid = start_stopped(have_the_queue, NULL);
	snprintf(me, sizeof(me), "%d", getpid());
	snprintf(other, sizeof(other), "%d", pid);
	*t = (struct tool){ .name = "kevent-show", .args = { me, other } };
	start_tool(t);
	MUST(fcntl(t->out, F_SETPIPE_SZ, 4096) == 4096);
	MUST(sleeps_in(t->pid, SYS_write));
	kill_child(pid);
	end_tool(t);
	CHECK_EQ(t->status, 0);
	check_said(t, "%d (ended): 0 queues", pid);
	CHECK_EQ(said_lines(t, "*USER 0x*"), 500);
	close_queue(&q);
}

static void what_is_not_there_is_said(void)
{
	run_show(NULL, 99999999, NULL);
	CHECK_EQ(show.status, 1);
	check_said(&show, "kevent-show: 99999999: no such process");
	run_show("-x", getpid(), NULL);
	CHECK_EQ(show.status, 2);
	check_said(&show, "usage: *");
	show = (struct tool){ .name = "kevent-show", .args = { "12x" } };
	run_tool(&show);
	CHECK_EQ(show.status, 2);
}

static void other_users_are_left_out(void)
{
	struct queue q;

	open_queue(&q, 8);
	run_show(NULL, getpid(), become_nobody);
	CHECK_EQ(show.status, 1);
	CHECK_EQ(said_lines(&show, "?*"), 1);
	check_said(&show, "kevent-show: %d: its descriptors may not be seen; run kevent-show as its user or as root",
		   getpid());
	close_queue(&q);
}

/* Its owner may list its descriptors, and see none. */
static int have_more_rights(void *arg)
{
	CHILD_MUST(!prctl(PR_SET_KEEPCAPS, 1) && !become_nobody() && !prctl(PR_SET_DUMPABLE, 1));
	return have_the_queue(arg);
}

static void process_with_more_rights_may_not_be_seen(void)
{
	struct queue q;
	pid_t pid;

	open_queue(&q, 8);
	pid = start_stopped(have_more_rights, NULL);
	run_show(NULL, pid, become_nobody);
	CHECK_EQ(show.status, 1);
	CHECK_EQ(said_lines(&show, "?*"), 1);
	check_said(&show, "kevent-show: %d: its descriptors may not be seen; *", pid);
	kill_child(pid);
	close_queue(&q);
}

static void output_that_is_lost_is_said(void)
{
	static const char *const options[] = { NULL, "-j" };
	struct queue q;
	unsigned int i;

	/* There is more than the buffer of stdio holds. */
	open_queue(&q, 0);
	for (i = 0; i < 500; i++)
		MUST_EQ(add_user(q.fd, i + 1, 1, 0, 0), 0);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		run_show(options[i], getpid(), fill_output);
		CHECK_EQ(show.status, 1);
		CHECK_EQ(said_lines(&show, "?*"), 1);
		check_said(&show, "kevent-show: standard output: *");
	}
	close_queue(&q);
}

static void kernel_without_kevent_is_said(void)
{
	run_show(NULL, getpid(), hide_kevent);
	CHECK_EQ(show.status, 1);
	CHECK_EQ(said_lines(&show, "?*"), 1);
	check_said(&show, "kevent-show: this kernel has no kevent; load the module*");
}

static const struct test_case cases[] = {
	TEST(watches_of_files_have_words),
	TEST(other_watches_have_words),
	TEST(states_follow_events),
	TEST(watch_that_was_cancelled_is_broken),
	TEST(watch_that_is_looked_at_is_busy),
	TEST(ring_and_counts_are_said),
	TEST(flags_of_the_queue_have_words),
	TEST(other_processes_are_named),
	TEST(processes_with_the_ring_are_counted),
	TEST(waiters_are_named),
	TEST_EACH(waits_that_end_are_not_counted),
	TEST(many_waiters_are_counted),
	TEST(waiters_outside_have_no_id),
	TEST(json_has_its_shape),
	TEST(json_is_distinguished_from_other_text),
	TEST(name_does_not_reach_the_terminal),
	TEST(process_may_end_while_it_is_looked_at),
	TEST(what_is_not_there_is_said),
	TEST(other_users_are_left_out),
	TEST(process_with_more_rights_may_not_be_seen),
	TEST(output_that_is_lost_is_said),
	TEST(kernel_without_kevent_is_said),
	{}
};

const struct test_suite show_suite = { .name = "show", .cases = cases };
