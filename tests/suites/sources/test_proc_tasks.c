// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_PROC: who sees whose status, and what is not an exit
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"
#include "proc.h"

/* Who may see the status */

/* The child reports the id of its own child, for whose exit it waits. */
static int have_child(struct child *c)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		pass_gate(c);
		_exit(c->code);
	}
	close(c->gate[1]);
	if (write(c->sig, &pid, sizeof(pid)) != sizeof(pid))
		return 1;
	return waitpid(pid, &status, 0) != pid;
}

static void root_knows_the_status_of_a_grandchild(void)
{
	struct child c = { .fn = have_child };
	struct ukevent ev;
	struct queue q;
	int fd[2];
	pid_t pid;

	open_queue(&q, 8);
	MUST_EQ(pipe(fd), 0);
	c.sig = fd[1];
	spawn(&c, 6);
	MUST_EQ(read(fd[0], &pid, sizeof(pid)), sizeof(pid));
	MUST_EQ(add_proc(q.fd, pid, 0, 3), 0);
	let_go(&c);
	MUST_EVENT(&q, &ev);
	check_exit(&ev, pid, 6 << 8, 3);
	CHECK_EQ(reap(&c), 0);
	close_queue(&q);
}

static int become_dumpable(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY) ||
	       prctl(PR_SET_DUMPABLE, 1);
}

static int nobody_passes_gate(struct child *c)
{
	if (become_dumpable())
		return 1;
	if (write(c->sig, "", 1) != 1)
		return 1;
	pass_gate(c);
	return c->code;
}

/* A program of root exits with 1, because it does not know the option. */
static int nobody_execs_setuid(struct child *c)
{
	if (become_dumpable() || write(c->sig, "", 1) != 1)
		return 99;
	pass_gate(c);
	close(1);
	close(2);
	execl("/tmp/setuid", "setuid", "--nonsense", NULL);
	return 98;
}

/* What a process that is not the parent of @arg sees of its exit */
static int root_watches(void *arg)
{
	struct child *c = arg;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	CHILD_MUST(add_proc(q.fd, c->pid, 0, 3) == 0);
	let_go(c);
	CHILD_MUST(next_event(&q, &ev, PATIENCE_MS * slowness) == 1);
	CHILD_MUST(ev.id.raw[0] == (uint32_t)c->pid && ev.ptr == 3);
	if (!ev.ret_data[1])
		return ev.ret_data[0] ? 1 : 100;
	return ev.ret_data[0] >> 8;
}

static int nobody_watches(void *arg)
{
	CHILD_MUST(!become_dumpable());
	return root_watches(arg);
}

/* What a process that is not the parent of @c sees by @watches() */
static int seen_by(int (*watches)(void *arg), struct child *c, int code)
{
	int ready[2];
	pid_t pid;
	char byte;

	MUST_EQ(pipe(ready), 0);
	c->sig = c->fn ? ready[1] : 0;
	spawn(c, code);
	if (c->fn)
		MUST_EQ(read(ready[0], &byte, 1), 1);
	pid = start_child(watches, c);
	let_go(c);
	return join_child(pid, 2 * PATIENCE_MS);
}

static int seen_by_nobody(struct child *c, int code)
{
	return seen_by(nobody_watches, c, code);
}

static void status_is_for_those_who_may_know(void)
{
	struct child roots = {}, own = { .fn = nobody_passes_gate };

	CHECK_EQ(seen_by_nobody(&roots, 5), 100);
	CHECK_EQ(reap(&roots), 5 << 8);
	CHECK_EQ(seen_by_nobody(&own, 5), 5);
	CHECK_EQ(reap(&own), 5 << 8);
}

/* After ADD the process decides that nobody looks at it. */
static int nobody_hides(struct child *c)
{
	if (become_dumpable() || write(c->sig, "", 1) != 1)
		return 99;
	pass_gate(c);
	return prctl(PR_SET_DUMPABLE, 0) ? 98 : c->code;
}

static void status_is_withheld_from_those_who_may_not_look_at_the_end(void)
{
	struct child c[2] = {
		{ .fn = nobody_hides }, { .fn = nobody_hides },
	};

	CHECK_EQ(seen_by_nobody(&c[0], 5), 100);
	CHECK_EQ(reap(&c[0]), 5 << 8);
	/* CAP_SYS_PTRACE */
	CHECK_EQ(seen_by(root_watches, &c[1], 5), 5);
	CHECK_EQ(reap(&c[1]), 5 << 8);
}

static void copy_program(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY), out;

	out = open(to, O_WRONLY | O_CREAT, 0755);
	MUST(in >= 0 && out >= 0);
	while (sendfile(out, in, NULL, 1 << 20) > 0)
		;
	MUST_EQ(fchmod(out, 04755), 0);
	close(in);
	close(out);
}

/* After ADD the watcher loses the right to look at the process. */
static void status_is_withheld_after_a_setuid_exec(void)
{
	struct child c = { .fn = nobody_execs_setuid };

	enter_tmpfs();
	copy_program("/tmp/setuid");
	CHECK_EQ(seen_by_nobody(&c, 0), 100);
	CHECK_EQ(reap(&c), 1 << 8);
}

static int execs_plain(struct child *c)
{
	if (c->code && become_dumpable())
		return 99;
	if (write(c->sig, "", 1) != 1)
		return 99;
	pass_gate(c);
	close(1);
	close(2);
	execl("/tmp/plain", "plain", "--nonsense", NULL);
	return 98;
}

/*
 * An exec may move the process to another security domain with the same ids.
 * Its parent sees its status nevertheless.
 */
static void status_is_withheld_after_any_exec(void)
{
	struct child c[2] = {
		{ .fn = execs_plain }, { .fn = execs_plain },
	};

	enter_tmpfs();
	copy_program("/tmp/plain");
	MUST_EQ(chmod("/tmp/plain", 0755), 0);
	CHECK_EQ(seen_by_nobody(&c[0], NOBODY), 100);
	CHECK_EQ(reap(&c[0]), 1 << 8);
	CHECK_EQ(seen_by(root_watches, &c[1], 0), 100);
	CHECK_EQ(reap(&c[1]), 1 << 8);
}

static int changes_credentials(struct child *c)
{
	const gid_t group = 1;

	if (write(c->sig, "", 1) != 1)
		return 99;
	pass_gate(c);
	return setgroups(1, &group) ? 98 : c->code;
}

static int keeps_credentials(struct child *c)
{
	if (write(c->sig, "", 1) != 1)
		return 99;
	pass_gate(c);
	return c->code;
}

static void status_is_withheld_after_a_change_of_credentials(void)
{
	struct child changed = { .fn = changes_credentials };
	struct child kept = { .fn = keeps_credentials };

	CHECK_EQ(seen_by(root_watches, &changed, 7), 100);
	CHECK_EQ(reap(&changed), 7 << 8);
	CHECK_EQ(seen_by(root_watches, &kept, 7), 7);
	CHECK_EQ(reap(&kept), 7 << 8);
}

/* How many watches a process may have */

#define LIMIT	64

/* Adds watches of @arg, in as many queues as necessary. */
static int watches_to_the_limit(void *arg)
{
	struct child *c = arg;
	struct ukevent ev;
	int kq[LIMIT + 1], i;

	CHILD_MUST(!setresuid(c->code, c->code, c->code));
	for (i = 0; i <= LIMIT; i++) {
		kq[i] = kevent_init(NULL, 0, 0);
		CHILD_MUST(kq[i] >= 0);
		CHILD_MUST(add_proc(kq[i], c->pid, 0, 3) ==
			   (i < LIMIT ? 0 : -ENOSPC));
	}
	/* Another queue can use a place that is free. */
	close(kq[0]);
	CHILD_MUST(add_proc(kq[LIMIT], c->pid, 0, 3) == 0);
	CHILD_MUST(write(c->sig, "", 1) == 1);
	let_go(c);
	for (i = 1; i <= LIMIT; i++)
		CHILD_MUST(get_events(kq[i], 1, 1, -1, &ev) == 1);
	return 0;
}

/* The callbacks of all watches run with interrupts off. */
static void watches_of_a_process_are_limited_for_each_user(void)
{
	struct child c = {};
	int ready[2], i;
	pid_t pid[2];
	char byte;

	spawn(&c, 0);
	for (i = 0; i < 2; i++) {
		MUST_EQ(pipe(ready), 0);
		c.sig = ready[1];
		c.code = 4242 + i;
		pid[i] = start_child(watches_to_the_limit, &c);
		close(ready[1]);
		CHECK_EQ(read(ready[0], &byte, 1), 1);
	}
	let_go(&c);
	for (i = 0; i < 2; i++)
		CHECK_EQ(join_child(pid[i], 2 * PATIENCE_MS), 0);
	CHECK_EQ(reap(&c), 0);
}

struct stranger {
	pid_t	pid;
	uid_t	uid;
	int	ready, go;
};

/* Watches a process, and says how often it could. */
static int watches_a_stranger(void *arg)
{
	const struct stranger *s = arg;
	uint32_t nr = 0;
	char byte;

	CHILD_MUST(!setresuid(s->uid, s->uid, s->uid));
	while (nr < LIMIT && !add_proc(kevent_init(NULL, 0, 0), s->pid, 0, 3))
		nr++;
	CHILD_MUST(write(s->ready, &nr, sizeof(nr)) == sizeof(nr));
	CHILD_MUST(read(s->go, &byte, 1) == 1);
	return 0;
}

/* The parent, no root either: has a child, and watches it when it is told to. */
static int has_a_child(void *arg)
{
	struct stranger *s = arg;
	pid_t pid;
	char byte;

	CHILD_MUST(!setresuid(s->uid, s->uid, s->uid));
	pid = fork();
	if (!pid)
		while (pause())
			;
	CHILD_MUST(write(s->ready, &pid, sizeof(pid)) == sizeof(pid));
	CHILD_MUST(read(s->go, &byte, 1) == 1);
	CHILD_MUST(add_proc(kevent_init(NULL, 0, 0), pid, 0, 3) == 0);
	CHILD_MUST(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	return 0;
}

/* Under the lock of all tasks. Those who wait for a child may watch it all the same. */
static void watches_of_a_process_are_limited_for_all_users(void)
{
	int ready[2], go[2], tell[2], i;
	struct stranger s, parent;
	pid_t pid[5], of_parent;
	struct queue q;
	uint32_t nr;

	MUST_EQ(pipe(ready), 0);
	MUST_EQ(pipe(go), 0);
	MUST_EQ(pipe(tell), 0);
	parent = (struct stranger){ 0, 4300, ready[1], tell[0] };
	of_parent = start_child(has_a_child, &parent);
	s = (struct stranger){ 0, 4242, ready[1], go[0] };
	MUST_EQ(read(ready[0], &s.pid, sizeof(s.pid)), sizeof(s.pid));
	for (i = 0; i < 5; i++, s.uid++) {
		pid[i] = start_child(watches_a_stranger, &s);
		MUST_EQ(read(ready[0], &nr, sizeof(nr)), sizeof(nr));
		CHECK_EQ(nr, i < 4 ? LIMIT : 0);
	}
	open_queue(&q, 0);
	CHECK_EQ(add_proc(q.fd, s.pid, 0, 3), 0);
	close_queue(&q);
	MUST_EQ(write(tell[1], "", 1), 1);
	CHECK_EQ(join_child(of_parent, PATIENCE_MS), 0);
	MUST_EQ(write(go[1], "abcde", 5), 5);
	for (i = 0; i < 5; i++)
		CHECK_EQ(join_child(pid[i], PATIENCE_MS), 0);
}

/* Watches its child in queues of six users, as often as it may. */
static int watches_in_queues_of_others(void *arg)
{
	uint32_t nr = 0;
	pid_t pid = fork();
	uid_t uid;

	(void)arg;
	if (!pid)
		while (pause())
			;
	do {
		uid = 4242 + nr / LIMIT;
		CHILD_MUST(!setresuid(-1, 0, -1) && !setresuid(uid, uid, 0));
	} while (!add_proc(kevent_init(NULL, 0, 0), pid, 0, 3) && ++nr < 6 * LIMIT);
	CHILD_MUST(!setresuid(-1, 0, -1));
	CHILD_MUST(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	CHILD_MUST(nr == 4 * LIMIT);
	return 0;
}

/* A parent may have queues of other users, and each user has a limit of its own. */
static void watches_of_a_parent_are_limited_for_all_users(void)
{
	CHECK_EQ(join_child(start_child(watches_in_queues_of_others, NULL), PATIENCE_MS), 0);
}

/* Threads */

/* Only system calls: the C library must not end the process. */
static void *thread_passes_gate(void *arg)
{
	struct child *c = arg;

	pass_gate(c);
	if (c->sig)
		syscall(SYS_exit, c->code);
	syscall(SYS_exit_group, c->code);
	return NULL;
}

static int leader_exits_first(struct child *c)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_passes_gate, c))
		return 99;
	syscall(SYS_exit, 1);
	return 98;
}

static char state_of(pid_t pid)
{
	char path[40], text[512], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_file(path, text, sizeof(text));
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '?';
}

/* @single: the last thread ends alone; otherwise it ends the process. */
static void check_leader(struct queue *q, bool single, bool late)
{
	struct child c = { .fn = leader_exits_first, .sig = single };
	uint64_t start = now_ns();

	spawn(&c, 6);
	if (!late)
		MUST_EQ(add_proc(q->fd, c.pid, 0, 3), 0);
	while (state_of(c.pid) != 'Z')
		MUST(patient(start, PATIENCE_MS));
	if (late)
		MUST_EQ(add_proc(q->fd, c.pid, 0, 3), 0);
	CHECK_NO_EVENT(q);
	let_go(&c);
	check_end(q, &c, 3);
}

static void last_thread_ends_the_process(struct queue *q)
{
	check_leader(q, false, false);
	check_leader(q, false, true);
	check_leader(q, true, false);
	check_leader(q, true, true);
}

static void *nothing(void *arg)
{
	return arg;
}

static int thread_comes_and_goes(struct child *c)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) ||
	    pthread_join(thread, NULL) || write(c->sig, "", 1) != 1)
		return 99;
	pass_gate(c);
	return c->code;
}

static void exit_of_a_thread_is_none(void)
{
	struct child c = { .fn = thread_comes_and_goes };
	struct queue q;
	int ready[2];
	char byte;

	open_queue(&q, 8);
	MUST_EQ(pipe(ready), 0);
	c.sig = ready[1];
	spawn(&c, 6);
	MUST_EQ(add_proc(q.fd, c.pid, 0, 3), 0);
	MUST_EQ(read(ready[0], &byte, 1), 1);
	CHECK_NO_EVENT(&q);
	let_go(&c);
	check_end(&q, &c, 3);
	close_queue(&q);
}

/* The program exits with 1, because it does not know the option. */
static void *thread_execs(void *arg)
{
	struct child *c = arg;

	pass_gate(c);
	close(1);
	close(2);
	execl("/proc/self/exe", "exec", "--nonsense", NULL);
	return NULL;
}

static int exec_in_a_thread(struct child *c)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_execs, c))
		return 99;
	for (;;)
		pause();
}

static int exec_plain(struct child *c)
{
	thread_execs(c);
	return 99;
}

static void exec_is_no_exit(void)
{
	struct child c[2] = {
		{ .fn = exec_in_a_thread }, { .fn = exec_plain },
	};
	struct ukevent ev;
	struct queue q;
	int i;

	open_queue(&q, 8);
	for (i = 0; i < 2; i++) {
		spawn(&c[i], 0);
		MUST_EQ(add_proc(q.fd, c[i].pid, 0, 3), 0);
		let_go(&c[i]);
		MUST_EVENT(&q, &ev);
		check_exit(&ev, c[i].pid, 1 << 8, 3);
		CHECK_EQ(reap(&c[i]), 1 << 8);
		CHECK_NO_EVENT(&q);
	}
	close_queue(&q);
}

static void *thread_execs_and_runs(void *arg)
{
	struct child *c = arg;

	pass_gate(c);
	dup2(c->sig, STDOUT_FILENO);
	exec_and_run();
	return NULL;
}

static int runs_on_after_exec(struct child *c)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_execs_and_runs, c))
		return 99;
	for (;;)
		pause();
}

struct added {
	int	kq;
	pid_t	pid;
};

static long adds_proc(void *arg)
{
	struct added *a = arg;

	return add_proc(a->kq, a->pid, 0, 3);
}

/* Children stay away from the CPU of who is in a window. */
static void stay_on_first_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	MUST_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

/*
 * A thread becomes the leader in an exec. ADD of the module has found the old one, which goes.
 * Elsewhere ADD holds the exec off, so it is over before that.
 */
static void exec_beside_an_add_is_no_exit(void)
{
	struct child c = { .fn = runs_on_after_exec };
	struct actor actor;
	struct added a;
	struct queue q;
	int running[2];
	char byte;

	open_queue(&q, 8);
	MUST_EQ(pipe(running), 0);
	stay_on_first_cpu();
	c.sig = running[1];
	spawn(&c, 0);
	a = (struct added) { q.fd, c.pid };
	if (on_module())
		MUST(start_in_window(&actor, "proc", adds_proc, &a));
	else
		CHECK_EQ(adds_proc(&a), 0);
	let_go(&c);
	MUST_EQ(read(running[0], &byte, 1), 1);
	if (on_module()) {
		window_release();
		join_actor(&actor, 1000);
		CHECK_EQ(actor.ret, 0);
	}
	CHECK_NO_EVENT(&q);
	MUST_EQ(kill(c.pid, SIGKILL), 0);
	CHECK_EQ(reap(&c), SIGKILL);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(root_knows_the_status_of_a_grandchild),
	TEST(status_is_for_those_who_may_know),
	TEST(status_is_withheld_from_those_who_may_not_look_at_the_end),
	TEST(status_is_withheld_after_a_setuid_exec),
	TEST(status_is_withheld_after_any_exec),
	TEST(status_is_withheld_after_a_change_of_credentials),
	TEST(watches_of_a_process_are_limited_for_each_user),
	TEST(watches_of_a_process_are_limited_for_all_users),
	TEST(watches_of_a_parent_are_limited_for_all_users),
	TEST_EACH(last_thread_ends_the_process),
	TEST(exit_of_a_thread_is_none),
	TEST(exec_is_no_exit),
	TEST(exec_beside_an_add_is_no_exit),
	{}
};

const struct test_suite proc_tasks_suite = {
	.name = "proc_tasks", .cases = cases,
};
