// SPDX-License-Identifier: GPL-2.0
/*
 * The module comes and goes, and hears of each close while it is there
 *
 * The tests unload the module and load it again from the file that init of tests/vm loaded, so
 * nothing else may have a queue. Each test leaves the module loaded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"
#include "inode.h"
#include "signals.h"

#define MODULE		"/vm/kevent.ko"
#define TRACING		"/sys/kernel/tracing/"
#define FTRACE		"/proc/sys/kernel/ftrace_enabled"
#define SETTING		"/proc/sys/fs/kevent/max_user_bytes"
#define RELOADS		8
#define RELOAD_SECONDS	600	/* for 100 of them, on a busy host */
#define FILES		200
#define CLOSES		2000
#define MANY_OF_A_FILE	70
#define WATCHED		4000
#define WATCHED_SECONDS	300	/* for all rounds, on a busy host with KASAN */

/* 0 or -errno */
static int try_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* The module */

static int unload(void)
{
	close_device();
	return syscall(SYS_delete_module, "kevent", O_NONBLOCK) ? -errno : 0;
}

/* fsnotify lets its marks go a little later, and a process its files. */
static int unload_at_last(void)
{
	uint64_t start = now_ns();
	int err;

	do
		err = unload();
	while (err == -EWOULDBLOCK && patient(start, PATIENCE_MS));
	return err;
}

static int load(const char *words)
{
	int fd = open(MODULE, O_RDONLY | O_CLOEXEC), err = 0;

	MUST(fd >= 0);
	if (syscall(SYS_finit_module, fd, words, 0))
		err = -errno;
	close(fd);
	return err;
}

/* As init of the guest does */
static void open_to_all(void)
{
	MUST_EQ(chmod(KEVENT_DEVICE, 0666), 0);
}

/* Is there anything of the module? */
static bool module_is_there(void)
{
	static char slabs[1 << 16];

	read_file("/proc/slabinfo", slabs, sizeof(slabs));
	return !access(KEVENT_DEVICE, F_OK) || !access(SETTING, F_OK) ||
	       !access("/sys/module/kevent", F_OK) || strstr(slabs, "kevent");
}

static bool kernel_has_warned(void)
{
	char tainted[32];

	read_file("/proc/sys/kernel/tainted", tainted, sizeof(tainted));
	return atol(tainted) & 1 << 9;
}

#define SYSLOG_READ_ALL	3
#define SYSLOG_CLEAR	5

static bool log_says(const char *what)
{
	static char log[1 << 18];
	long len = syscall(SYS_syslog, SYSLOG_READ_ALL, log, sizeof(log) - 1);

	MUST(len >= 0);
	log[len] = 0;
	return strstr(log, what);
}

/* Closes: each leaves no watch behind. */

static long long watches(const struct queue *q)
{
	return fdinfo(q->fd, "kevent-watches");
}

static void watch_all_sources(struct queue *q, int fd[4])
{
	int sock[2];

	open_pipe(fd);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	fd[2] = sock[0];
	close(sock[1]);
	fd[3] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST_EQ(add_pipe(q->fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0), 0);
	MUST_EQ(add_socket(q->fd, fd[2], KEVENT_SOCKET_SEND, KEVENT_REQ_ET, 0), 0);
	MUST_EQ(add_inode(q->fd, fd[3], KEVENT_INODE_CREATE, 0, 0), 0);
	MUST_EQ(watches(q), 3);
}

static void check_close(struct queue *q)
{
	int fd[4], i;

	watch_all_sources(q, fd);
	for (i = 0; i < 4; i++)
		close(fd[i]);
	CHECK_EQ(watches(q), 0);
}

static void each_way_to_close_is_heard_of(void)
{
	int fd[4], null = open("/dev/null", O_RDWR | O_CLOEXEC), i;
	struct queue q;

	open_queue(&q, 0);
	check_close(&q);
	watch_all_sources(&q, fd);
	for (i = 0; i < 4; i++)
		MUST_EQ(dup2(null, fd[i]), fd[i]);
	CHECK_EQ(watches(&q), 0);
	watch_all_sources(&q, fd);
	for (i = 0; i < 4; i++)
		MUST_EQ(syscall(SYS_close_range, fd[i], fd[i], 0), 0);
	CHECK_EQ(watches(&q), 0);
	close_queue(&q);
}

static void other_descriptors_of_a_file_are_left_alone(void)
{
	struct queue q;
	int fd[4], twin;

	open_queue(&q, 0);
	watch_all_sources(&q, fd);
	twin = dup(fd[0]);
	close(twin);
	CHECK_EQ(watches(&q), 3);
	twin = dup(fd[0]);
	close(fd[0]);
	CHECK_EQ(watches(&q), 2);
	close(twin);
	close_queue(&q);
}

/* By exit() and by exec(), with the queue in another process */
static void processes_that_end_are_heard_of(void)
{
	char *const words[] = { "/proc/self/exe", "--end", NULL };
	struct queue q;
	int fd[4], i;
	pid_t pid;

	open_queue(&q, 0);
	for (i = 0; i < 2; i++) {
		pid = fork();
		if (!pid) {
			watch_all_sources(&q, fd);
			if (i)
				execv(words[0], words);
			_exit(watches(&q) != 3);
		}
		MUST_EQ(waitpid(pid, NULL, 0), pid);
		CHECK_EQ(watches(&q), 0);
	}
	close_queue(&q);
}

static long close_many(void *arg)
{
	struct queue *q = arg;
	int fd[2], i;

	for (i = 0; i < CLOSES; i++) {
		if (pipe2(fd, O_CLOEXEC))
			return -errno;
		if (add_pipe(q->fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0))
			return -EIO;
		if (i & 1 && write(fd[1], "", 1) != 1)
			return -EPIPE;
		close(fd[!(i & 2)]);
		close(fd[!!(i & 2)]);
	}
	return 0;
}

static void many_closes_at_once_are_heard_of(void)
{
	struct actor a, b;
	struct queue q;

	open_queue(&q, 0);
	start_actor(&a, close_many, &q);
	start_actor(&b, close_many, &q);
	join_actor(&a, 4 * PATIENCE_MS);
	join_actor(&b, 4 * PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	CHECK_EQ(b.ret, 0);
	CHECK_EQ(watches(&q), 0);
	close_queue(&q);
}

/* The file is found by its first watch, then by the next one. */
static void close_is_heard_of_without_the_first_watch(void)
{
	struct queue q[3];
	int fd[2], i;

	open_pipe(fd);
	for (i = 0; i < 3; i++) {
		open_queue(&q[i], 0);
		MUST_EQ(add_pipe(q[i].fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0), 0);
	}
	CHECK_EQ(remove_file(q[0].fd, KEVENT_PIPE, fd[0]), 0);
	CHECK_EQ(remove_file(q[2].fd, KEVENT_PIPE, fd[0]), 0);
	close(fd[0]);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(watches(&q[i]), 0);
		close_queue(&q[i]);
	}
	close(fd[1]);
}

static uint64_t add_some(const struct queue *q, int (*fd)[2])
{
	uint64_t start = now_ns();
	int i;

	for (i = 0; i < WATCHED / 8; i++)
		MUST_EQ(add_pipe(q->fd, fd[i][0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, i), 0);
	return now_ns() - start;
}

/* Does the last eighth take as long as two of the first one? The host may run others meanwhile. */
static bool last_are_slow(const struct queue *q, int (*fd)[2])
{
	uint64_t first, last = 0;
	int i;

	first = add_some(q, fd);
	for (i = 1; i < 8; i++)
		last = add_some(q, fd + i * WATCHED / 8);
	return last > 2 * first;
}

static void many_watched_files_make_no_add_slower(void)
{
	static int fd[WATCHED][2];
	uint64_t start = now_ns();
	struct queue q;
	bool slow;
	int i;

	open_fds(2 * WATCHED + 64);
	for (i = 0; i < WATCHED; i++)
		open_pipe(fd[i]);
	do {
		open_queue(&q, 0);
		slow = last_are_slow(&q, fd);
		CHECK_EQ(watches(&q), WATCHED);
		close_queue(&q);
	} while (slow && patient(start, PATIENCE_MS));
	CHECK(!slow);
	for (i = 0; i < WATCHED; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
}

/* The hook */

static void tracing_is_mounted(void)
{
	if (mount("tracefs", TRACING, "tracefs", 0, NULL))
		MUST_EQ(errno, EBUSY);
}

/* ftrace takes one name of a write, and leaves the others. */
static void trace_only(const char *const *names)
{
	int fd = open(TRACING "set_ftrace_filter", O_WRONLY | O_TRUNC | O_CLOEXEC);

	MUST(fd >= 0);
	for (; *names; names++) {
		MUST_EQ(write(fd, *names, strlen(*names)), (ssize_t)strlen(*names));
		MUST_EQ(write(fd, " ", 1), 1);
	}
	close(fd);
}

static void hook_cannot_be_switched_off(void)
{
	struct queue q;
	int err;

	open_queue(&q, 0);
	err = try_write(FTRACE, "0");
	/* 7.3 refuses it in any case. */
	CHECK(err == -EBUSY || err == -EOPNOTSUPP);
	check_close(&q);
	close_queue(&q);
}

/* More watches of a file than die at once */
static void check_many_of_a_file(void)
{
	struct queue q[MANY_OF_A_FILE];
	int fd[2], i;

	open_pipe(fd);
	for (i = 0; i < MANY_OF_A_FILE; i++) {
		open_queue(&q[i], 0);
		MUST_EQ(add_pipe(q[i].fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0), 0);
	}
	close(fd[0]);
	for (i = 0; i < MANY_OF_A_FILE; i++) {
		CHECK_EQ(watches(&q[i]), 0);
		close_queue(&q[i]);
	}
	close(fd[1]);
}

static int keep_signals(void *arg)
{
	const struct queue *q = arg;
	struct ukevent ev;
	int i;

	signal(SIGRTMIN, SIG_IGN);
	kevent_set_signal(&ev, SIGRTMIN, 0, 0, 0);
	CHILD_MUST(!kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev));
	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	CHILD_MUST(!kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev));
	for (i = 0; i < 10; i++)
		CHILD_MUST(!sigqueue(getpid(), SIGRTMIN, (union sigval){}));
	return 0;
}

static int keep_signals_and_exec(void *arg)
{
	if (!keep_signals(arg))
		exec_and_end();
	return 1;
}

/* What watches have kept goes with them. */
static void check_signals(const struct queue *q)
{
	long long before = fdinfo(q->fd, "kevent-user-bytes");

	CHECK_EQ(join_child(start_child(keep_signals, (void *)q), PATIENCE_MS), 0);
	CHECK_EQ(watches(q), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-user-bytes"), before);
	CHECK_EQ(join_child(start_child(keep_signals_and_exec, (void *)q), PATIENCE_MS), 0);
	CHECK_EQ(watches(q), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-user-bytes"), before);
}

static void check_ends(struct queue *q)
{
	check_close(q);
	check_many_of_a_file();
	check_signals(q);
}

/* A hook has preemption off where another tracer is on its function: then removals come later. */
static void tracer_of_the_functions_stands_beside_them(void)
{
	struct queue q;

	tracing_is_mounted();
	open_queue(&q, 0);
	trace_only((const char *const []){
		"locks_remove_posix", "exit_files", "do_close_on_exec", NULL });
	MUST_EQ(try_write(TRACING "current_tracer", "function"), 0);
	check_ends(&q);
	MUST_EQ(try_write(TRACING "current_tracer", "nop"), 0);
	check_ends(&q);
	MUST_EQ(try_write(TRACING "set_ftrace_filter", "\n"), 0);
	close_queue(&q);
}

static void kprobe_of_the_function_stands_beside_it(void)
{
	struct queue q;

	tracing_is_mounted();
	open_queue(&q, 0);
	MUST_EQ(try_write(TRACING "kprobe_events", "p:other locks_remove_posix"), 0);
	MUST_EQ(try_write(TRACING "events/kprobes/other/enable", "1"), 0);
	check_close(&q);
	MUST_EQ(try_write(TRACING "events/kprobes/other/enable", "0"), 0);
	MUST_EQ(try_write(TRACING "kprobe_events", "\n"), 0);
	check_close(&q);
	close_queue(&q);
}

/* Signals */

/* A child that has the queue can't take signals of its parent, which then takes them. */
static int takes_nothing(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;
	int i;

	for (i = 0; i < 3; i++)
		CHILD_MUST(next_event(q, &ev, 0) == 0);
	return 0;
}

static int waits_for_marks(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	CHILD_MUST(get_events(q->fd, 1, 1, -1, &ev) == 1);
	CHILD_MUST(ev.type == KEVENT_USER);
	return 0;
}

static void consumer_of_another_process_leaves_a_signal(void)
{
	struct queue q;
	struct waiter w;
	pid_t pid;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 1), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(join_child(start_child(takes_nothing, &q), PATIENCE_MS), 0);
	must_signal(&q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_NO_EVENT(&q);
	/* Who slept last is woken first: that is the child. */
	start_waiter(&w, &q, 1);
	pid = start_child(waits_for_marks, &q);
	MUST(sleeps_in(pid, __NR_kevent_get_events));
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK(!is_pending(SIGUSR1));
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&q);
}

static int polls_on(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	for (;;)
		CHILD_MUST(get_events(q->fd, 1, 1, 0, &ev) == 0);
	return 0;
}

/* A stranger that polls comes between a wake-up and the look of who was woken. */
static void stranger_that_polls_holds_up_nobody(void)
{
	struct waiter w;
	struct queue q;
	pid_t pid;
	int i;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	pid = start_child(polls_on, &q);
	for (i = 0; i < 200; i++) {
		start_waiter(&w, &q, 1);
		MUST_EQ(kill(getpid(), SIGUSR1), 0);
		MUST_EQ(join_waiter(&w), 1);
	}
	kill(pid, SIGKILL);
	CHECK_EQ(join_child(pid, PATIENCE_MS), -SIGKILL);
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&q);
}

/* One that waits for readiness sees it once, and the process that has the signal sees it. */
static int sees_it_once(void *arg)
{
	struct pollfd pfd = { .fd = ((struct queue *)arg)->fd, .events = POLLIN };
	struct ukevent ev;

	poll(&pfd, 1, 0);
	CHILD_MUST(get_events(pfd.fd, 1, 1, 0, &ev) == 0);
	CHILD_MUST(poll(&pfd, 1, 0) == 0);
	return 0;
}

static void stranger_is_not_notified_again(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct queue q;

	open_queue(&q, 0);
	pfd.fd = q.fd;
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(join_child(start_child(sees_it_once, &q), PATIENCE_MS), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 1);
	must_signal(&q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&q);
}

static int takes_no_event(void *arg)
{
	struct ukevent ev;

	CHILD_MUST(get_events(((struct queue *)arg)->fd, 1, 1, 0, &ev) == 0);
	return 0;
}

/* The entry of the first signal is unread when a stranger looks for the second. */
static void unread_entry_withholds_no_signal(void)
{
	struct queue q;

	open_queue(&q, 8);
	block(RT, SIG_BLOCK);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	CHECK_EQ(queue_value(RT, 1), 0);
	MUST_EQ(wait_ring(&q, 8, 0), 1);
	CHECK_EQ(queue_value(RT, 2), 0);
	CHECK_EQ(join_child(start_child(takes_no_event, &q), PATIENCE_MS), 0);
	CHECK_EQ(kevent_wait(q.fd, 8, 1, &(struct timespec){}, 0, NULL), 1);
	must_signal(&q, RT, true, getpid(), SI_QUEUE, 1);
	must_signal(&q, RT, true, getpid(), SI_QUEUE, 2);
	CHECK_NO_EVENT(&q);
	block(RT, SIG_UNBLOCK);
	close_queue(&q);
}

static int takes_the_pipe(void *arg)
{
	struct ukevent ev[8];

	CHILD_MUST(get_events(((struct queue *)arg)->fd, 1, 8, 0, ev) == 1);
	CHILD_MUST(ev[0].type == KEVENT_PIPE);
	return 0;
}

/* A queue that always has other events takes the signal that a stranger left. */
static void busy_queue_takes_what_a_stranger_left(void)
{
	struct ukevent ev[8];
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	put_byte(fd[1]);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, 0, 0), 0);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(join_child(start_child(takes_the_pipe, &q), PATIENCE_MS), 0);
	CHECK_EQ(get_events(q.fd, 1, 8, 0, ev), 2);
	CHECK(!is_pending(SIGUSR1));
	block(SIGUSR1, SIG_UNBLOCK);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

/* A signal to one thread waits for that thread, whoever looks first. */
static void signal_to_a_thread_is_for_that_thread(void)
{
	struct waiter w, other;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 1), 0);
	start_waiter(&w, &q, 1);
	/* Who slept last is woken first, and finds nothing. */
	start_waiter(&other, &q, 1);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), w.actor.tid, SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(sleeps_in(other.actor.tid, __NR_kevent_get_events));
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&other), 1);
	start_waiter(&w, &q, 1);
	/* It looks, and finds nothing; so does a call of this thread. */
	CHECK_EQ(syscall(SYS_tgkill, getpid(), w.actor.tid, SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), 1);
	start_waiter(&w, &q, 1);
	CHECK_EQ(kill_thread(SIGUSR1), 0);
	MUST(sleeps_in(w.actor.tid, __NR_kevent_get_events));
	must_signal(&q, SIGUSR1, true, getpid(), SI_TKILL, 0);
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &ev), 0);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), w.actor.tid, SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), 1);
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&q);
}

struct poster {
	_Atomic bool	stop;
	int		dev;
};

static long posts_on(void *arg)
{
	struct ukevent ev = { .type = KEVENT_SIGNAL, .id.raw_u64 = RT };
	struct poster *p = arg;

	while (!p->stop)
		if (ioctl(p->dev, KEVENT_IOC_POST, &ev) && errno != ENOENT)
			return -errno;
	return 0;
}

/* What was reserved for a signal is given back if the watch is changed before it has it. */
static void posts_race_changes(void)
{
	struct poster p = { .dev = open(KEVENT_DEVICE, O_RDWR | O_CLOEXEC) };
	uint64_t start = now_ns();
	long long before;
	struct actor a;
	struct queue q, other;

	open_queue(&q, 0);
	open_queue(&other, 0);
	before = fdinfo(other.fd, "kevent-user-bytes");
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	start_actor(&a, posts_on, &p);
	while (now_ns() - start < 500000000) {
		MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, RT, CONSUME, KEVENT_REQ_DISABLED),
			0);
		MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, RT, CONSUME, 0), 0);
	}
	p.stop = true;
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	close_queue(&q);
	CHECK_EQ(fdinfo(other.fd, "kevent-user-bytes"), before);
	close_queue(&other);
	close(p.dev);
}

/* A program closes what it has not opened, and may not open the device any more. */
static int loses_the_device(void *arg)
{
	struct ukevent ev;
	struct queue q;
	int fd;

	(void)arg;
	open_queue(&q, 0);
	CHILD_MUST(add_signal(q.fd, SIGUSR1, CONSUME, 0) == 0);
	for (fd = 3; fd < 100; fd++)
		if (fd != q.fd)
			close(fd);
	CHILD_MUST(chmod(KEVENT_DEVICE, 0600) == 0);
	CHILD_MUST(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	CHILD_MUST(open(KEVENT_DEVICE, O_RDWR) < 0);
	CHILD_MUST(kill(getpid(), SIGUSR1) == 0);
	CHILD_MUST(next_event(&q, &ev, 0) == 1 && ev.id.raw[0] == SIGUSR1);
	return 0;
}

static void signal_is_consumed_without_the_device(void)
{
	CHECK_EQ(join_child(start_child(loses_the_device, NULL), PATIENCE_MS), 0);
	open_to_all();
}

/* Changes of a wait, which the library makes again */
static void changes_that_wait_for_a_handler(void)
{
	struct {
		struct kevent_wait_arg	arg;
		uint64_t		more;
	} big = { .arg = { .size = sizeof(big), .clockid = CLOCK_MONOTONIC, .nr_changes = 1 } };
	const struct timespec none = {};
	struct kevent_change *at, c = { .cmd = KEVENT_CTL_ADD };
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct queue q;

	open_queue(&q, 8);
	big.arg.changes = (uintptr_t)&c;
	kevent_set_signal(&c.uk, SIGUSR1, CONSUME, 0, SIGUSR1 + 100);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, &none, KEVENT_FLAGS_ARG, &big.arg), 0);
	CHECK_EQ(c.result, 0);
	CHECK_EQ(c.uk.id.raw_u64, NOMASK | SIGUSR1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(&q, SIGUSR1, true, getpid(), SI_USER, 0);
	/* The result is that of the second time. */
	CHECK_EQ(kevent_wait(q.fd, 8, 1, &none, KEVENT_FLAGS_ARG, &big.arg), 0);
	CHECK_EQ(c.result, -EEXIST);
	CHECK_EQ(kevent_error(&c.uk), -EEXIST);
	/* The second change begins where memory ends. */
	at = (struct kevent_change *)(page + PAGE) - 1;
	MUST_EQ(munmap(page + PAGE, PAGE), 0);
	*at = (struct kevent_change){ .cmd = KEVENT_CTL_ADD };
	kevent_set_signal(&at->uk, SIGUSR2, CONSUME, 0, SIGUSR2 + 100);
	big.arg.changes = (uintptr_t)at;
	big.arg.nr_changes = 2;
	CHECK_EQ(kevent_wait(q.fd, 8, 1, &none, KEVENT_FLAGS_ARG, &big.arg), 0);
	CHECK_EQ(at->result, 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 2);
	munmap(page, PAGE);
	close_queue(&q);
}

/* Unloading and loading */

static void module_stays_as_long_as_a_queue(void)
{
	struct queue q;
	int twin;

	open_queue(&q, 0);
	CHECK_EQ(unload(), -EWOULDBLOCK);
	twin = dup(q.fd);
	close_queue(&q);
	CHECK_EQ(unload(), -EWOULDBLOCK);
	close(twin);
	CHECK_EQ(unload_at_last(), 0);
	CHECK(!module_is_there());
	CHECK_EQ(load(""), 0);
	open_to_all();
}

static long open_f(void *arg)
{
	int fd = open("f", O_RDONLY | O_CLOEXEC);

	(void)arg;
	close(fd);
	return fd < 0 ? -errno : 0;
}

/* A listener of fanotify that does not answer holds each mark that the event has met. */
static void module_stays_as_long_as_a_mark(void)
{
	const uint64_t mask = FAN_OPEN_PERM;
	struct fanotify_event_metadata event;
	struct fanotify_response answer;
	struct actor a;
	struct queue q;
	int fan, fd;

	enter_tmpfs();
	open_queue(&q, 0);
	fd = open_file("f");
	MUST_EQ(add_inode(q.fd, fd, MODIFY, 0, 0), 0);
	fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
	MUST(fan >= 0);
	MUST_EQ(fanotify_mark(fan, FAN_MARK_ADD | FAN_MARK_MOUNT, mask, AT_FDCWD, "."), 0);
	start_actor(&a, open_f, NULL);
	MUST_EQ(read(fan, &event, sizeof(event)), sizeof(event));
	close(fd);
	close_queue(&q);
	CHECK_EQ(unload(), -EWOULDBLOCK);
	answer = (struct fanotify_response){ .fd = event.fd, .response = FAN_ALLOW };
	MUST_EQ(write(fan, &answer, sizeof(answer)), sizeof(answer));
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	close(event.fd);
	close(fan);
	CHECK_EQ(unload_at_last(), 0);
	CHECK_EQ(load(""), 0);
	open_to_all();
}

/* A thread that waits for the ring of a queue last, and then blocks elsewhere */
#define FAULTS	60		/* while the module starts */
#define MANY	1000000		/* more than a load has */

/* Loads the module, whose @n-th allocation fails; how many were left then. */
static int load_with_fault(int nth, int n, int *err)
{
	char text[16] = "";

	snprintf(text, sizeof(text), "%d", n);
	MUST(pwrite(nth, text, strlen(text), 0) > 0);
	*err = load("");
	memset(text, 0, sizeof(text));
	/* These are copies: they may have the fault. */
	if (pread(nth, text, sizeof(text) - 1, 0) < 0 || pwrite(nth, "0", 1, 0) < 0)
		return 0;
	return atoi(text);
}

/*
 * The last allocations of a load fail, one each time: all of the module is there, or nothing is
 * left of it. Those before are not of the module: the kernel warns of one that fails.
 */
static void load_that_fails_leaves_nothing(void)
{
	int nth = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC), faults = 0, i, all, err;

	if (nth < 0) {
		CHECK_EQ(errno, ENOENT);
		note("this kernel has no faults");
		return;
	}
	write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	write_file("/sys/kernel/debug/failslab/verbose", "0");
	write_file("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	write_file("/sys/kernel/debug/fail_usercopy/verbose", "0");
	MUST_EQ(unload_at_last(), 0);
	all = MANY - load_with_fault(nth, MANY, &err);
	MUST_EQ(err, 0);
	for (i = 0; i < FAULTS; i++) {
		MUST_EQ(unload_at_last(), 0);
		load_with_fault(nth, all - i, &err);
		CHECK_EQ(!err, !access(KEVENT_DEVICE, F_OK));
		faults += !!err;
		if (err)
			MUST_EQ(load(""), 0);
	}
	close(nth);
	open_to_all();
	CHECK(faults > 0);
}

/* Watches that are on their way out, some by close() and others with their queue */
static void unload_waits_for_what_has_just_ended(void)
{
	int fd[FILES], i;
	char name[32];
	struct queue q;

	enter_tmpfs();
	open_queue(&q, 0);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%d", i);
		fd[i] = open_file(name);
		MUST_EQ(add_inode(q.fd, fd[i], MODIFY, 0, 0), 0);
	}
	for (i = 0; i < FILES / 2; i++)
		close(fd[i]);
	close_queue(&q);
	CHECK_EQ(unload_at_last(), 0);
	for (; i < FILES; i++)
		put_byte(fd[i]);
	CHECK_EQ(load(""), 0);
	open_to_all();
	CHECK(!kernel_has_warned());
}

/* With and without the hook at the end of files, and with and without a queue between */
static void module_is_loaded_again_and_again(void)
{
	const char *given = getenv("KEVENT_MODULE_RELOADS");
	int rounds = given ? atoi(given) : RELOADS, i, err = 0;
	struct queue q;

	for (i = 0; i < rounds && !err; i++) {
		err = unload_at_last() ?: load(i % 2 ? "check=1" : "");
		if (err || i % 4 == 3)
			continue;
		open_queue(&q, 0);
		check_close(&q);
		close_queue(&q);
	}
	CHECK_EQ(err, 0);
	CHECK_EQ(unload_at_last(), 0);
	CHECK_EQ(load(""), 0);
	open_to_all();
	CHECK(!kernel_has_warned());
}

static void device_is_for_root_at_first(void)
{
	struct stat st;

	MUST_EQ(unload_at_last(), 0);
	CHECK_EQ(load(""), 0);
	MUST_EQ(stat(KEVENT_DEVICE, &st), 0);
	CHECK_EQ(st.st_mode, S_IFCHR | 0660);
	CHECK_EQ(st.st_uid, 0);
	open_to_all();
}

/* Loads that fail */

static void module_is_not_loaded_where_ftrace_is_off(void)
{
	int off, err;

	MUST_EQ(unload_at_last(), 0);
	off = try_write(FTRACE, "0");
	syscall(SYS_syslog, SYSLOG_CLEAR, NULL, 0);
	err = load("");
	CHECK(off || log_says("sysctl kernel.ftrace_enabled=1"));
	MUST_EQ(off ?: try_write(FTRACE, "1"), off);
	CHECK(!err || !module_is_there());
	CHECK_EQ(err ? load("") : 0, 0);
	open_to_all();
	CHECK_EQ(off, 0);
	CHECK(err < 0);
}

/* The hook comes with the first queue. */
static void no_queue_is_made_where_ftrace_is_off(void)
{
	int off, kq;

	MUST_EQ(unload_at_last(), 0);
	MUST_EQ(load(""), 0);
	open_to_all();
	off = try_write(FTRACE, "0");
	syscall(SYS_syslog, SYSLOG_CLEAR, NULL, 0);
	kq = kevent_init(NULL, 0, 0);
	MUST_EQ(off ?: try_write(FTRACE, "1"), off);
	CHECK_EQ(kq, -EBUSY);
	CHECK(log_says("sysctl kernel.ftrace_enabled=1"));
	kq = kevent_init(NULL, 0, 0);
	CHECK(kq >= 0);
	close(kq);
	CHECK_EQ(off, 0);
}

/* It closes a descriptor of its own, to see that it hears of that. */
static void load_that_cannot_try_a_close_leaves_nothing(void)
{
	struct rlimit all, none;
	int fd, err;

	MUST_EQ(unload_at_last(), 0);
	fd = open(MODULE, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	MUST_EQ(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = all.rlim_max };
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &all), 0);
	close(fd);
	CHECK_EQ(err, -EMFILE);
	CHECK(!err || !module_is_there());
	CHECK_EQ(err ? load("") : 0, 0);
	open_to_all();
	CHECK(!kernel_has_warned());
}

/* The watch holds the file for a while, and puts the last reference. */
static void file_of_a_watch_ends_with_its_close(void)
{
	unsigned int i;
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	for (i = 0; i < FILES; i++) {
		fd = open("f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		MUST(fd >= 0);
		CHECK_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
		MUST_EQ(add_inode(q.fd, fd, KEVENT_INODE_MODIFY, 0, 1), 0);
		close(fd);
	}
	close_queue(&q);
}

/* The module has no limit of threads that run. */
static void refused_limit_leaves_changes_undone(void)
{
	struct kevent_change c = { .cmd = KEVENT_CTL_ADD };
	const struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.changes = (uintptr_t)&c, .nr_changes = 1, .max_running = 1,
	};
	const struct timespec none = {};
	struct queue q;

	open_queue(&q, 8);
	kevent_set_user(&c.uk, 1, 1, 0, 0);
	CHECK_EQ(kevent_wait(q.fd, q.size, 0, &none, KEVENT_FLAGS_ARG, &arg), -EINVAL);
	CHECK_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(each_way_to_close_is_heard_of),
	TEST(other_descriptors_of_a_file_are_left_alone),
	TEST(processes_that_end_are_heard_of),
	TEST_LIMIT(many_closes_at_once_are_heard_of, 60),
	TEST(close_is_heard_of_without_the_first_watch),
	TEST_LIMIT(many_watched_files_make_no_add_slower, WATCHED_SECONDS),
	TEST(hook_cannot_be_switched_off),
	TEST(tracer_of_the_functions_stands_beside_them),
	TEST(kprobe_of_the_function_stands_beside_it),
	TEST(consumer_of_another_process_leaves_a_signal),
	TEST(stranger_that_polls_holds_up_nobody),
	TEST(stranger_is_not_notified_again),
	TEST(unread_entry_withholds_no_signal),
	TEST(busy_queue_takes_what_a_stranger_left),
	TEST(signal_to_a_thread_is_for_that_thread),
	TEST(posts_race_changes),
	TEST(signal_is_consumed_without_the_device),
	TEST(changes_that_wait_for_a_handler),
	TEST(module_stays_as_long_as_a_queue),
	TEST(module_stays_as_long_as_a_mark),
	TEST(unload_waits_for_what_has_just_ended),
	TEST_LIMIT(module_is_loaded_again_and_again, RELOAD_SECONDS),
	TEST(device_is_for_root_at_first),
	TEST(refused_limit_leaves_changes_undone),
	TEST(file_of_a_watch_ends_with_its_close),
	TEST(module_is_not_loaded_where_ftrace_is_off),
	TEST(no_queue_is_made_where_ftrace_is_off),
	TEST(load_that_cannot_try_a_close_leaves_nothing),
	TEST_LIMIT(load_that_fails_leaves_nothing, 120),
	{}
};

const struct test_suite module_suite = { .name = "module", .cases = cases };
