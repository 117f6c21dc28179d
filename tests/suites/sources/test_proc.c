// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_PROC: exits of processes
 *
 *	end of the child	ret_data[0]	ret_data[1]
 *	_exit(n)		n << 8		STATUS
 *	signal			signal, 0x80	STATUS
 *	of a stranger		0		0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"
#include "proc.h"

#define EXIT	KEVENT_PROC_EXIT
#define PIDFD	KEVENT_PROC_PIDFD
#define CHILDREN 1000

static int ctl_proc(int kq, uint32_t cmd, pid_t pid, uint32_t flags,
		    uint64_t user)
{
	struct ukevent ev;

	kevent_set_proc(&ev, pid, flags, user);
	return kevent_ctl_one(kq, cmd, &ev);
}

int add_proc(int kq, pid_t pid, uint32_t flags, uint64_t user)
{
	return ctl_proc(kq, KEVENT_CTL_ADD, pid, flags, user);
}

int add_pidfd(int kq, int fd, uint32_t flags, uint64_t user)
{
	struct ukevent ev;

	kevent_set_pidfd(&ev, fd, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

static int remove_proc(int kq, pid_t pid)
{
	return ctl_proc(kq, KEVENT_CTL_REMOVE, pid, 0, 0);
}

void pass_gate(struct child *c)
{
	char byte;

	close(c->gate[1]);
	while (read(c->gate[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static int run_child(void *arg)
{
	struct child *c = arg;

	if (c->fn)
		return c->fn(c);
	pass_gate(c);
	if (c->sig)
		raise(c->sig);
	return c->code;
}

void spawn(struct child *c, int code)
{
	c->code = code;
	MUST_EQ(pipe2(c->gate, O_CLOEXEC), 0);
	c->pid = start_child(run_child, c);
	close(c->gate[0]);
}

void let_go(struct child *c)
{
	close(c->gate[1]);
}

int reap(struct child *c)
{
	int status = -1;

	MUST_EQ(waitpid(c->pid, &status, 0), c->pid);
	return status;
}

void await_zombie(struct child *c)
{
	siginfo_t si;

	MUST_EQ(waitid(P_PID, c->pid, &si, WEXITED | WNOWAIT), 0);
}

void check_exit(const struct ukevent *ev, pid_t pid, int status, uint64_t user)
{
	CHECK_EQ(ev->type, KEVENT_PROC);
	CHECK_EQ(ev->id.raw[0], pid);
	CHECK_EQ(ev->id.raw[1], 0);
	CHECK_EQ(ev->ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev->ret_data[0], status);
	CHECK_EQ(ev->ret_data[1], STATUS);
	CHECK_EQ(ev->ptr, user);
}

void check_end(struct queue *q, struct child *c, uint64_t user)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	check_exit(&ev, c->pid, reap(c), user);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_proc(q->fd, c->pid), -ENOENT);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void exit_code_is_reported(struct queue *q)
{
	struct child c = {};
	struct ukevent ev;

	spawn(&c, 7);
	MUST_EQ(add_proc(q->fd, c.pid, 0, 3), 0);
	CHECK_NO_EVENT(q);
	let_go(&c);
	MUST_EVENT(q, &ev);
	check_exit(&ev, c.pid, 7 << 8, 3);
	CHECK_EQ(ev.event, EXIT);
	CHECK_EQ(reap(&c), 7 << 8);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void signal_is_reported(struct queue *q)
{
	struct child c = { .sig = SIGTERM };

	spawn(&c, 0);
	MUST_EQ(add_proc(q->fd, c.pid, 0, 3), 0);
	let_go(&c);
	check_end(q, &c, 3);
	spawn(&c, 0);
	MUST_EQ(add_proc(q->fd, c.pid, 0, 4), 0);
	MUST_EQ(kill(c.pid, SIGKILL), 0);
	check_end(q, &c, 4);
	let_go(&c);
}

static void core_dump_is_reported(void)
{
	const struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct child c = { .sig = SIGABRT };
	struct ukevent ev;
	struct queue q;

	enter_tmpfs();
	MUST_EQ(setrlimit(RLIMIT_CORE, &limit), 0);
	open_queue(&q, 8);
	spawn(&c, 0);
	MUST_EQ(add_proc(q.fd, c.pid, 0, 3), 0);
	let_go(&c);
	MUST_EVENT(&q, &ev);
	check_exit(&ev, c.pid, SIGABRT | 0x80, 3);
	CHECK_EQ(reap(&c), SIGABRT | 0x80);
	close_queue(&q);
}

static void pidfd_names_a_process(struct queue *q)
{
	struct child c = {};
	struct ukevent ev;
	int fd;

	spawn(&c, 9);
	fd = pidfd_open(c.pid, 0);
	MUST_EQ(add_pidfd(q->fd, fd, 0, 3), 0);
	CHECK_EQ(add_pidfd(q->fd, fd, 0, 3), -EEXIST);
	CHECK_EQ(add_proc(q->fd, c.pid, 0, 3), -EEXIST);
	close(fd);
	let_go(&c);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.event, EXIT | PIDFD);
	check_exit(&ev, c.pid, 9 << 8, 3);
	reap(&c);
	CHECK_NO_EVENT(q);
}

/* A process id is also that of a thread, which may end before the process. */

static long outlive_the_leader(void *arg)
{
	char byte;

	_exit(read(*(int *)arg, &byte, 1) == 1 ? 5 : 6);
}

static int end_the_leader(void *arg)
{
	struct actor a;

	start_actor(&a, outlive_the_leader, arg);
	syscall(SYS_exit, 0);
	return 1;
}

static void await_end_of_leader(pid_t pid)
{
	uint64_t start = now_ns();
	char path[40], text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do
		read_file(path, text, sizeof(text));
	while (!strstr(text, ") Z ") && patient(start, PATIENCE_MS));
	MUST(strstr(text, ") Z "));
}

static void pidfd_of_the_first_thread_is_of_the_process(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2], pidfd;
	pid_t pid;

	open_queue(&q, 0);
	MUST_EQ(pipe(fd), 0);
	pid = start_child(end_the_leader, &fd[0]);
	pidfd = pidfd_open(pid, O_EXCL);
	if (pidfd < 0)
		pidfd = pidfd_open(pid, 0);
	MUST_EQ(add_pidfd(q.fd, pidfd, 0, 3), 0);
	await_end_of_leader(pid);
	CHECK_NO_EVENT(&q);
	put_byte(fd[1]);
	MUST_EVENT(&q, &ev);
	check_exit(&ev, pid, 5 << 8, 3);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 5);
	close_queue(&q);
}

static void pidfd_names_a_watch(void)
{
	struct child c = {};
	struct ukevent ev;
	struct queue q;
	int fd;

	open_queue(&q, 8);
	spawn(&c, 0);
	fd = pidfd_open(c.pid, 0);
	MUST_EQ(add_proc(q.fd, c.pid, 0, 3), 0);
	kevent_set_pidfd(&ev, fd, 0, 4);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	kevent_set_pidfd(&ev, fd, 0, 0);
	ev.id.raw[1] = 1;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	ev.id.raw[1] = 0;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	kevent_set_pidfd(&ev, -1, 0, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	let_go(&c);
	await_zombie(&c);
	CHECK_NO_EVENT(&q);
	reap(&c);
	close_queue(&q);
}

/* Before and after the end of the child */

static void zombie_is_handed_back(struct queue *q)
{
	struct child c = {};
	struct ukevent ev;

	spawn(&c, 4);
	let_go(&c);
	await_zombie(&c);
	kevent_set_proc(&ev, c.pid, HAND_BACK, 3);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 1);
	check_exit(&ev, c.pid, 4 << 8, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_EQ(add_proc(q->fd, c.pid, 0, 5), 0);
	/* The event has not been delivered yet. */
	CHECK_EQ(add_proc(q->fd, c.pid, 0, 5), -EEXIST);
	check_end(q, &c, 5);
	CHECK_EQ(add_proc(q->fd, c.pid, 0, 3), -ESRCH);
}

static void exit_is_kept_while_disabled(struct queue *q)
{
	struct child c = {};
	struct ukevent ev;

	spawn(&c, 4);
	MUST_EQ(add_proc(q->fd, c.pid, KEVENT_REQ_DISABLED, 3), 0);
	let_go(&c);
	await_zombie(&c);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_proc(q->fd, c.pid), 0);
	MUST_EQ(add_proc(q->fd, c.pid, KEVENT_REQ_DISABLED, 3), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(ctl_proc(q->fd, KEVENT_CTL_MODIFY, c.pid, 0, 4), 0);
	MUST_EQ(next_event(q, &ev, 0), 1);
	check_exit(&ev, c.pid, reap(&c), 4);
	CHECK_NO_EVENT(q);
}

/* The entry is readable but not writable. */
static void exit_that_cannot_be_handed_back_is_queued(void)
{
	struct child c = {};
	struct ukevent *ev;
	struct queue q;

	open_queue(&q, 8);
	spawn(&c, 4);
	let_go(&c);
	await_zombie(&c);
	ev = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(ev != MAP_FAILED);
	kevent_set_proc(ev, c.pid, HAND_BACK, 3);
	MUST_EQ(mprotect(ev, 4096, PROT_READ), 0);
	kevent_ctl(q.fd, KEVENT_CTL_ADD, 1, ev);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	check_end(&q, &c, 3);
	close_queue(&q);
}

static void reaped_process_is_no_more(void)
{
	struct child c = {};
	struct queue q;
	int fd;

	open_queue(&q, 8);
	spawn(&c, 4);
	fd = pidfd_open(c.pid, 0);
	let_go(&c);
	reap(&c);
	CHECK_EQ(add_pidfd(q.fd, fd, 0, 3), -ESRCH);
	CHECK_EQ(add_proc(q.fd, c.pid, 0, 3), -ESRCH);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static void event_outlives_the_process(void)
{
	struct child c = {};
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	spawn(&c, 4);
	MUST_EQ(add_proc(q.fd, c.pid, 0, 3), 0);
	let_go(&c);
	reap(&c);
	MUST_EQ(next_event(&q, &ev, 0), 1);
	check_exit(&ev, c.pid, 4 << 8, 3);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* Nobody waits for the child, and nobody has to. */
static void ignored_children_are_reported(void)
{
	struct child c = {};
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	signal(SIGCHLD, SIG_IGN);
	spawn(&c, 4);
	MUST_EQ(add_proc(q.fd, c.pid, 0, 3), 0);
	let_go(&c);
	MUST_EVENT(&q, &ev);
	check_exit(&ev, c.pid, 4 << 8, 3);
	CHECK_EQ(waitpid(c.pid, NULL, 0), -1);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static int traceme(struct child *c)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	pass_gate(c);
	return c->code;
}

static void traced_child_is_reported_once(void)
{
	struct child c = { .fn = traceme };
	struct queue q;

	open_queue(&q, 8);
	spawn(&c, 4);
	MUST_EQ(add_proc(q.fd, c.pid, 0, 3), 0);
	let_go(&c);
	check_end(&q, &c, 3);
	close_queue(&q);
}

static void vforked_child_watches_itself(void)
{
	struct ukevent ev;
	struct queue q;
	pid_t pid;

	open_queue(&q, 0);
	pid = vfork();
	if (!pid)
		_exit(add_proc(q.fd, getpid(), 0, 3) + 4);
	MUST_EVENT(&q, &ev);
	check_exit(&ev, pid, 4 << 8, 3);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
	close_queue(&q);
}

/* Queue */

static void removed_watch_reports_nothing(struct queue *q)
{
	struct child c = {};

	spawn(&c, 4);
	MUST_EQ(add_proc(q->fd, c.pid, 0, 3), 0);
	CHECK_EQ(remove_proc(q->fd, c.pid), 0);
	CHECK_EQ(remove_proc(q->fd, c.pid), -ENOENT);
	MUST_EQ(add_proc(q->fd, c.pid, 0, 4), 0);
	CHECK_EQ(remove_proc(q->fd, c.pid), 0);
	let_go(&c);
	await_zombie(&c);
	CHECK_NO_EVENT(q);
	/* The removal drops the event too. */
	MUST_EQ(add_proc(q->fd, c.pid, 0, 4), 0);
	CHECK_EQ(remove_proc(q->fd, c.pid), 0);
	CHECK_NO_EVENT(q);
	reap(&c);
}

static void modified_watch_still_reports_once(struct queue *q)
{
	struct child c = {};

	spawn(&c, 4);
	MUST_EQ(add_proc(q->fd, c.pid, 0, 3), 0);
	CHECK_EQ(ctl_proc(q->fd, KEVENT_CTL_MODIFY, c.pid, 0, 5), 0);
	let_go(&c);
	check_end(q, &c, 5);
}

static void exit_wakes_a_waiter(void)
{
	struct child c = {};
	struct waiter w;
	struct queue q;

	open_queue(&q, 0);
	spawn(&c, 4);
	MUST_EQ(add_proc(q.fd, c.pid, 0, 3), 0);
	start_waiter(&w, &q, 4);
	let_go(&c);
	MUST_EQ(join_waiter(&w), 1);
	check_exit(&w.ev[0], c.pid, reap(&c), 3);
	close_queue(&q);
}

static void two_queues_are_notified(void)
{
	struct child c = {};
	struct queue q[2];
	struct ukevent ev;
	int i;

	spawn(&c, 4);
	for (i = 0; i < 2; i++) {
		open_queue(&q[i], 8);
		MUST_EQ(add_proc(q[i].fd, c.pid, 0, i), 0);
	}
	let_go(&c);
	for (i = 0; i < 2; i++) {
		MUST_EVENT(&q[i], &ev);
		check_exit(&ev, c.pid, 4 << 8, i);
	}
	reap(&c);
}

static void full_ring(void)
{
	unsigned int i, counts[5] = {};
	struct child c[5] = {};
	struct queue q;

	open_queue(&q, 2);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		spawn(&c[i], i);
		MUST_EQ(add_proc(q.fd, c[i].pid, 0, i), 0);
		let_go(&c[i]);
		reap(&c[i]);
	}
	MUST_EQ(wait_ring(&q, 2, 0), 2);
	CHECK_EQ(drain(&q, counts, 5), 5);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		CHECK_EQ(counts[i], 1);
	close_queue(&q);
}

/* All children exit at once when the test closes their gate. */
static void thousand_children(void)
{
	static struct child c[CHILDREN];
	struct ukevent ev;
	struct queue q;
	unsigned int i;
	int gate[2];

	open_queue(&q, 64);
	MUST_EQ(pipe(gate), 0);
	for (i = 0; i < CHILDREN; i++) {
		c[i].gate[0] = gate[0];
		c[i].gate[1] = gate[1];
		c[i].code = i % 251;
		c[i].pid = start_child(run_child, &c[i]);
		MUST_EQ(add_proc(q.fd, c[i].pid, 0, i), 0);
	}
	close(gate[1]);
	for (i = 0; i < CHILDREN; i++) {
		MUST_EVENT(&q, &ev);
		MUST(ev.ptr < CHILDREN && c[ev.ptr].pid);
		check_exit(&ev, c[ev.ptr].pid, ev.ptr % 251 << 8, ev.ptr);
		reap(&c[ev.ptr]);
		c[ev.ptr].pid = 0;
	}
	CHECK_NO_EVENT(&q);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

/* Runs in a pid namespace of its own; @arg is a pidfd of a process outside. */
static int inside(void *arg)
{
	struct child c = {};
	struct ukevent ev;
	struct queue q;

	CHILD_MUST(getpid() == 1);
	open_queue(&q, 8);
	spawn(&c, 8);
	CHILD_MUST(c.pid == 2);
	CHILD_MUST(add_pidfd(q.fd, *(int *)arg, 0, 3) == -ESRCH);
	CHILD_MUST(add_pidfd(q.fd, pidfd_open(2, 0), 0, 3) == 0);
	CHILD_MUST(add_proc(q.fd, 2, 0, 3) == -EEXIST);
	let_go(&c);
	CHILD_MUST(next_event(&q, &ev, PATIENCE_MS * slowness) == 1);
	CHILD_MUST(ev.id.raw[0] == 2 && ev.ret_data[0] == 8 << 8);
	return 0;
}

static void ids_are_those_of_the_callers_namespace(void)
{
	int fd = pidfd_open(getpid(), 0);

	MUST_EQ(unshare(CLONE_NEWPID), 0);
	CHECK_EQ(join_child(start_child(inside, &fd), 2 * PATIENCE_MS), 0);
}

static long sleep_in_pause(void *arg)
{
	pause();
	return !arg;
}

static int add_raw(int kq, uint32_t low, uint32_t high, uint32_t event)
{
	struct ukevent ev;

	kevent_set_proc(&ev, low, 0, 0);
	ev.id.raw[1] = high;
	ev.event = event;
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

static void malformed_requests(void)
{
	struct queue q;
	struct actor a;
	uint32_t bit;
	int fd[2], thread;

	open_queue(&q, 0);
	open_pipe(fd);
	start_actor(&a, sleep_in_pause, NULL);
	/* Linux 6.9 and later */
	thread = pidfd_open(a.tid, O_EXCL);
	if (thread >= 0)
		CHECK_EQ(add_raw(q.fd, thread, 0, EXIT | PIDFD), -EINVAL);
	CHECK_EQ(add_raw(q.fd, getpid(), 0, 0), -EINVAL);
	CHECK_EQ(add_raw(q.fd, getpid(), 0, PIDFD), -EINVAL);
	for (bit = PIDFD << 1; bit; bit <<= 1)
		CHECK_EQ(add_raw(q.fd, getpid(), 0, EXIT | bit), -EINVAL);
	CHECK_EQ(add_raw(q.fd, getpid(), 1, EXIT), -EINVAL);
	CHECK_EQ(add_raw(q.fd, a.tid, 0, EXIT), -EINVAL);
	CHECK_EQ(add_raw(q.fd, 0, 0, EXIT), -ESRCH);
	CHECK_EQ(add_raw(q.fd, -1, 0, EXIT), -ESRCH);
	CHECK_EQ(add_raw(q.fd, INT32_MAX, 0, EXIT), -ESRCH);
	CHECK_EQ(add_raw(q.fd, -1, 0, EXIT | PIDFD), -EBADF);
	CHECK_EQ(add_raw(q.fd, fd[0], 0, EXIT | PIDFD), -EBADF);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	CHECK_EQ(remove_proc(q.fd, getpid()), -ENOENT);
	CHECK_EQ(ctl_proc(q.fd, KEVENT_CTL_MODIFY, getpid(), 0, 0), -ENOENT);
	CHECK_EQ(add_proc(q.fd, getpid(), KEVENT_REQ_READY, 0), 0);
	CHECK_EQ(add_proc(q.fd, getpid(), 0, 0), -EEXIST);
	CHECK_EQ(ctl_proc(q.fd, KEVENT_CTL_READY, getpid(), 0, 0), -EINVAL);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(exit_code_is_reported),
	TEST_EACH(signal_is_reported),
	TEST(core_dump_is_reported),
	TEST_EACH(pidfd_names_a_process),
	TEST(pidfd_of_the_first_thread_is_of_the_process),
	TEST(pidfd_names_a_watch),
	TEST_EACH(zombie_is_handed_back),
	TEST_EACH(exit_is_kept_while_disabled),
	TEST(exit_that_cannot_be_handed_back_is_queued),
	TEST(reaped_process_is_no_more),
	TEST(event_outlives_the_process),
	TEST(ignored_children_are_reported),
	TEST(traced_child_is_reported_once),
	TEST(vforked_child_watches_itself),
	TEST_EACH(removed_watch_reports_nothing),
	TEST_EACH(modified_watch_still_reports_once),
	TEST(exit_wakes_a_waiter),
	TEST(two_queues_are_notified),
	TEST(full_ring),
	TEST_LIMIT(thousand_children, 60),
	TEST(ids_are_those_of_the_callers_namespace),
	TEST(malformed_requests),
	{}
};

const struct test_suite proc_suite = { .name = "proc", .cases = cases };
