// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Exceptions of the fallback from what the kernel does: each one of kevent_fallback(7) has
 * a test of its name here, which shows it
 *
 * Each runs in a process of its own, which an alarm ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "fallback/fallback.h"
#include "libkevent.h"
#include "../processes.h"

#define SIZE		8U
#define MS		1000000LL
#define RT		(SIGRTMIN + 3)

static const struct timespec no_time;

static KEVENT_RING_STORAGE(SIZE) mem, more;

static void open_queue(struct kevent_queue *q)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(kevent_queue_init(q, &mem.ring, SIZE, 0), 0);
}

static void open_other(struct kevent_queue *q)
{
	CHECK_EQ(kevent_queue_init(q, &more.ring, SIZE, 0), 0);
}

static int get(struct kevent_queue *q, struct ukevent *ev)
{
	return kevent_get_events(q->fd, 1, 1, &no_time, ev, 0);
}

static void check_silent(struct kevent_queue *q)
{
	struct ukevent ev;

	CHECK_EQ(get(q, &ev), 0);
}

static int add(struct kevent_queue *q, struct ukevent *ev)
{
	return kevent_ctl_one(q->fd, KEVENT_CTL_ADD, ev);
}

static int add_pipe(struct kevent_queue *q, int fd, __u32 req_flags)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, fd, KEVENT_SOCKET_RECV, req_flags, 1);
	return add(q, &ev);
}

static int add_mark(struct kevent_queue *q)
{
	struct ukevent ev;

	kevent_set_user(&ev, 1, 1, 0, 1);
	return add(q, &ev);
}

static int mark(struct kevent_queue *q)
{
	struct ukevent ev;

	kevent_set_mark(&ev, 1, 1, 0);
	return kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev);
}

static int readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0);
}

/* The way that a child ends */
static int status_of(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void hit(void)
{
	struct kevent_queue q;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(&q, fd[0], 0), 0);
	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(mem.ring.ring_kidx, 0);
	CHECK(mem.ring.ring_flags & KEVENT_RING_MORE);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, 0, NULL), 1);
	CHECK_EQ(mem.ring.ring_kidx, 1);
	CHECK(mem.ring.ring_flags & KEVENT_RING_MORE);
}

static void address(void)
{
	struct kevent_queue q;
	int status;
	pid_t pid;

	if (SIGNALS_ARE_HELD)
		return;
	open_queue(&q);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &no_time, NULL, 0), -EFAULT);
	CHECK_EQ(kevent_init((void *)8, SIZE, 0), -EFAULT);
	pid = fork();
	if (!pid) {
		open_other(&q);
		CHECK_EQ(add_mark(&q), 0);
		CHECK_EQ(mark(&q), 1);
		_exit(kevent_get_events(q.fd, 1, 1, &no_time, (void *)64, 0));
	}
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void process(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	pid_t pid;

	open_queue(&q);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_ATTACH, SIZE, (void *)&more), -EOPNOTSUPP);
	pid = fork();
	if (!pid)
		_exit(add_mark(&q) != -EXDEV || get(&q, &ev) != -EXDEV);
	CHECK_EQ(status_of(pid), 0);
}

static void close_of_a_copy(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2], copy;

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(&q, fd[0], KEVENT_REQ_ET), 0);
	copy = dup(fd[0]);
	CHECK_EQ(close(fd[0]), 0);
	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(get(&q, &ev), 1);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -EBADF);
	CHECK_EQ(write(fd[1], "", 1), 1);
	check_silent(&q);
	CHECK_EQ(dup2(copy, fd[0]), fd[0]);
	CHECK_EQ(add_pipe(&q, fd[0], KEVENT_REQ_ET), 0);
	CHECK_EQ(get(&q, &ev), 1);
	CHECK_EQ(close(fd[0]), 0);
	CHECK_EQ(dup2(copy, fd[0]), fd[0]);
	CHECK_EQ(add_pipe(&q, fd[0], KEVENT_REQ_ET), -EEXIST);
	CHECK_EQ(kevent_close(q.fd, fd[0]), 0);
	check_silent(&q);
	CHECK_EQ(close(copy), 0);
}

static long long now_ns(clockid_t clock)
{
	struct timespec now;

	CHECK_EQ(syscall(SYS_clock_gettime, clock, &now), 0);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

static unsigned int returned;

static void *take_one(void *arg)
{
	const struct kevent_queue *q = arg;
	struct ukevent ev;

	CHECK_EQ(kevent_get_events(q->fd, 1, 1, NULL, &ev, 0), 1);
	__atomic_add_fetch(&returned, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Two calls sleep, and one returns with a level event. Each other call has it, too. */
static void not_readable_while_a_call_sleeps(void)
{
	struct kevent_queue q;
	pthread_t thread[2];
	struct ukevent ev;
	int i, fd[2];

	open_other(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(&q, fd[0], 0), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, take_one, &q), 0);
	while (kevent_fb_info(q.fd, "kevent-waiting") != 2)
		sched_yield();
	CHECK_EQ(write(fd[1], "", 1), 1);
	while (!__atomic_load_n(&returned, __ATOMIC_ACQUIRE))
		sched_yield();
	CHECK_EQ(get(&q, &ev), 1);
	CHECK_EQ(readable(q.fd), 0);
	CHECK_EQ(write(fd[1], "", 1), 1);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(readable(q.fd), 1);
}

static bool held, go;

/* Not for ever: the thread may have the lock of the queue. */
static void hold(int signal)
{
	long long until = now_ns(CLOCK_MONOTONIC) + 50 * MS;

	(void)signal;
	__atomic_store_n(&held, true, __ATOMIC_SEQ_CST);
	while (now_ns(CLOCK_MONOTONIC) < until &&
	       !__atomic_load_n(&go, __ATOMIC_SEQ_CST))
		sched_yield();
}

/* Returns whether a thread that was woken was held before it stored the event. */
static bool woken_and_held(void)
{
	struct kevent_queue q;
	pthread_t thread;
	struct ukevent ev;
	bool unseen;
	int fd[2];

	held = go = false;
	returned = 0;
	open_other(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(&q, fd[0], 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, take_one, &q), 0);
	while (kevent_fb_info(q.fd, "kevent-waiting") != 1)
		sched_yield();
	check_silent(&q);
	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	while (!__atomic_load_n(&held, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(&returned, __ATOMIC_ACQUIRE))
		sched_yield();
	unseen = !get(&q, &ev);
	__atomic_store_n(&go, true, __ATOMIC_SEQ_CST);
	/* It may be about to sleep, without the event. */
	CHECK_EQ(write(fd[1], "", 1), 1);
	pthread_join(thread, NULL);
	kevent_queue_close(&q);
	close(fd[0]);
	close(fd[1]);
	return unseen;
}

static void not_seen_by_others_before_it_is_stored(void)
{
	signal(SIGUSR1, hold);
	while (!SIGNALS_ARE_HELD && !woken_and_held())
		;
}

static void readable_queue(void)
{
	struct kevent_queue q;

	not_readable_while_a_call_sleeps();
	not_seen_by_others_before_it_is_stored();
	open_queue(&q);
	CHECK_EQ(add_mark(&q), 0);
	CHECK_EQ(mark(&q), 1);
	CHECK_EQ(readable(q.fd), 1);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, 0, NULL), 1);
	CHECK_EQ(kevent_ring_count(&mem.ring, SIZE), 1);
	CHECK_EQ(readable(q.fd), 0);
}

static int add_signal(struct kevent_queue *q, int signal)
{
	struct ukevent ev;

	kevent_set_signal(&ev, signal, KEVENT_SIGNAL_CONSUME, 0, 0);
	return add(q, &ev);
}

static void block(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

static void order(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int i;

	open_queue(&q);
	for (i = 0; i < 2; i++) {
		block(RT + i);
		CHECK_EQ(add_signal(&q, RT + i), 0);
	}
	CHECK_EQ(kill(getpid(), RT + 1) | kill(getpid(), RT), 0);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(get(&q, &ev), 1);
		CHECK_EQ(kevent_signal_number(&ev), RT + i);
	}
}

static void turn(void)
{
	struct kevent_queue q, other;
	int fd[2];

	open_queue(&q);
	open_other(&other);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(&q, fd[0], 0) | add_pipe(&other, fd[0], 0), 0);
	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(readable(q.fd), 1);
	CHECK_EQ(readable(other.fd), 1);
}

static int add_socket(struct kevent_queue *q, int fd, __u32 event,
		      __u32 req_flags)
{
	struct ukevent ev;

	kevent_set_socket(&ev, fd, event, req_flags, 1);
	return add(q, &ev);
}

static void edge(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	CHECK_EQ(add_socket(&q, fd[0], KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND,
			    KEVENT_REQ_ET), 0);
	CHECK_EQ(get(&q, &ev), 1);
	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(get(&q, &ev), 1);
	CHECK_EQ(ev.ret_data[0], KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND);
}

static void amount(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer[2];
	socklen_t len = sizeof(name);
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	CHECK_EQ(bind(fd, (void *)&name, sizeof(name.sun_family)), 0);
	CHECK_EQ(listen(fd, 1) | getsockname(fd, (void *)&name, &len), 0);
	CHECK_EQ(add_socket(&q, fd, KEVENT_SOCKET_ACCEPT, KEVENT_REQ_ET), 0);
	peer[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(connect(peer[0], (void *)&name, len), 0);
	CHECK_EQ(get(&q, &ev), 1);
	CHECK_EQ(ev.ret_data[1], 0);
	/* The peer has shut down, and that alone is no event. */
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, peer), 0);
	CHECK_EQ(add_socket(&q, peer[0], 0, 0), 0);
	CHECK_EQ(shutdown(peer[1], SHUT_WR), 0);
	check_silent(&q);
}

static void empty(void)
{
	struct kevent_queue q;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	CHECK_EQ(add_socket(&q, fd[0], KEVENT_SOCKET_EMPTY, 0), -EOPNOTSUPP);
}

static void awake(void)
{
	struct kevent_queue q;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(&q, fd[0], KEVENT_REQ_STAY_AWAKE), -EINVAL);
}

/* The mark is made; who runs next cannot be seen. */
static void handoff(void)
{
	struct kevent_change change = { .cmd = KEVENT_CTL_READY };
	struct kevent_queue q, other;
	struct kevent_wait_arg arg;
	struct ukevent ev;

	open_queue(&q);
	open_other(&other);
	CHECK_EQ(add_mark(&other), 0);
	kevent_set_mark(&change.uk, 1, 1, 0);
	change.uk.req_flags = KEVENT_REQ_HANDOFF;
	change.result = other.fd;
	kevent_wait_arg_init(&arg);
	arg.changes = (uintptr_t)&change;
	arg.nr_changes = 1;
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, KEVENT_FLAGS_ARG, &arg), 0);
	CHECK_EQ(change.result, 0);
	CHECK_EQ(get(&other, &ev), 1);
}

/* As struct epoll_params and EPIOCGPARAMS */
struct params {
	__u32	usecs;
	__u16	budget;
	__u8	prefer;
	__u8	pad;
};

static void busy_poll(void)
{
	struct params params = { .usecs = 0 };
	struct kevent_queue q;
	int ret;

	open_queue(&q);
	ret = kevent_busy_poll(q.fd, 100);
	/* Before Linux 6.9 epoll has no such call. */
	if (ret == -ENOTTY || ret == -EOPNOTSUPP)
		return;
	CHECK_EQ(ret, 0);
	CHECK_EQ(ioctl(q.fd, _IOR(0x8A, 0x02, struct params), &params), 0);
	CHECK_EQ(params.usecs, 100);
}

/* Four queues watch each of those below, where there was one at first. */
static int add_layers(void)
{
	int below[4] = { kevent_init(NULL, 0, 0) }, here[4] = { 0 };
	int nr, i, j, err = 0;
	struct ukevent ev;

	for (nr = 1, i = 0; i < 3; i++, nr = 4) {
		for (j = 0; j < 4 * nr && !err; j++) {
			if (j < 4)
				here[j] = kevent_init(NULL, 0, 0);
			kevent_set_poll(&ev, below[j / 4], KEVENT_POLL_POLLIN, 0, 0);
			err = kevent_ctl_one(here[j % 4], KEVENT_CTL_ADD, &ev);
		}
		memcpy(below, here, sizeof(here));
	}
	return err;
}

static void nested(void)
{
	struct kevent_queue q, other;
	struct ukevent ev;

	open_queue(&q);
	open_other(&other);
	CHECK_EQ(add_mark(&other), 0);
	kevent_set_poll(&ev, other.fd, KEVENT_POLL_POLLRDNORM, KEVENT_REQ_ET, 1);
	CHECK_EQ(add(&q, &ev), 0);
	CHECK_EQ(mark(&other), 1);
	check_silent(&q);
	CHECK_EQ(add_layers(), -ELOOP);
}

#define QUEUES	65

/* The kernel has 64 watches of a process for each user. */
static void limit(void)
{
	struct ukevent ev;
	int i, fd;

	setenv("KEVENT_BACKEND", "epoll", 1);
	for (i = 0; i < QUEUES; i++) {
		fd = kevent_init(NULL, 0, 0);
		kevent_set_proc(&ev, getpid(), 0, 0);
		CHECK_EQ(kevent_ctl_one(fd, KEVENT_CTL_ADD, &ev), 0);
	}
}

static void fdinfo(void)
{
	char path[40], text[1024] = "";
	struct kevent_queue q;
	int fd;

	open_queue(&q);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", q.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	CHECK(strstr(text, "\ntfd:") != NULL);
	CHECK(strstr(text, "kevent") == NULL);
}

/* A mount table of its own, of which nobody else sees anything */
static void change_mounts(void)
{
	CHECK_EQ(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
	CHECK_EQ(umount("/tmp"), 0);
}

static void poll_first(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) {
		printf("# no namespace of users here\n");
		return;
	}
	CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	open_queue(&q);
	kevent_set_poll(&ev, fd, KEVENT_POLL_POLLPRI, KEVENT_REQ_ET, 1);
	CHECK_EQ(add(&q, &ev), 0);
	change_mounts();
	CHECK_EQ(get(&q, &ev), 1);
	change_mounts();
	CHECK_EQ(readable(q.fd), 1);
	check_silent(&q);
}

/* The clock is an hour late for who has looked at it once. */
static time_t step;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, now);

	if (!ret && clock == CLOCK_TAI) {
		now->tv_sec += step;
		step = 3600;
	}
	return ret;
}

static void wait_until(struct kevent_queue *q, long long at)
{
	struct timespec until = { at / (1000 * MS), at % (1000 * MS) };
	struct kevent_wait_arg arg;

	kevent_wait_arg_init(&arg);
	arg.clockid = CLOCK_TAI;
	CHECK_EQ(kevent_wait(q->fd, 1, 0, &until, KEVENT_FLAGS_ABSTIME |
			     KEVENT_FLAGS_ARG, &arg), 0);
}

static void clock_step(void)
{
	struct kevent_queue q;
	long long at, start;

	open_queue(&q);
	/* The first wait that sleeps looks twice. */
	wait_until(&q, now_ns(CLOCK_TAI) + MS);
	at = now_ns(CLOCK_TAI) + 100 * MS;
	start = now_ns(CLOCK_MONOTONIC);
	step = 0;
	wait_until(&q, at);
	/* It slept for what it saw at first, less what it took to get there. */
	CHECK(now_ns(CLOCK_TAI) >= at || now_ns(CLOCK_MONOTONIC) > start + 99 * MS);
}

static void observe(void)
{
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	CHECK_EQ(add(&q, &ev), -EOPNOTSUPP);
}

static volatile sig_atomic_t handled;

static void count_handled(int signal)
{
	(void)signal;
	handled++;
}

static void signal_of_closed_queue(void)
{
	struct kevent_queue q, other;

	signal(SIGTERM, count_handled);
	open_queue(&q);
	CHECK_EQ(add_signal(&q, SIGTERM), 0);
	close(q.fd);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handled, 0);
	open_other(&other);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handled, 1);
	kevent_queue_close(&other);
}

static void signal_of_all(void)
{
	struct kevent_queue q;
	struct sigaction now;
	struct ukevent ev;
	sigset_t pending;

	open_queue(&q);
	block(SIGUSR1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(add_signal(&q, SIGUSR1), 0);
	CHECK_EQ(sigpending(&pending), 0);
	CHECK(sigismember(&pending, SIGUSR1));
	CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
	CHECK(now.sa_handler != SIG_DFL);
	CHECK_EQ(get(&q, &ev), 1);
	CHECK_EQ(sigpending(&pending), 0);
	CHECK(!sigismember(&pending, SIGUSR1));
	kevent_queue_close(&q);
	signal_of_closed_queue();
}

static void posix_timer(void)
{
	struct sigevent to = { .sigev_notify = 8 };	/* SIGEV_KEVENT */
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };
	struct kevent_queue q;
	struct ukevent ev;
	int id;

	open_queue(&q);
	to.sigev_signo = q.fd;
	CHECK_EQ(syscall(SYS_timer_create, CLOCK_MONOTONIC, &to, &id), -1);
	kevent_set_posix_timer(&ev, 0, 0, 0);
	CHECK_EQ(add(&q, &ev), -EINVAL);
	id = kevent_timer_create(q.fd, CLOCK_MONOTONIC, 7);
	CHECK(id >= 0);
	CHECK_EQ(kevent_timer_settime(id, 0, &soon, NULL), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, NULL), 1);
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(syscall(SYS_timer_delete, id), 0);
	kevent_set_posix_timer(&ev, (__u32)id, 0, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
}

static void status(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int status = 0, fd[2];
	char letter;
	pid_t pid;

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	pid = fork();
	if (!pid)
		_exit(read(fd[0], &letter, 1) == 1 ? 3 : 4);
	kevent_set_proc(&ev, pid, 0, 0);
	CHECK_EQ(add(&q, &ev), 0);
	CHECK_EQ(write(fd[1], "a", 1), 1);
	CHECK_EQ(status_of(pid), 3 << 8);
	CHECK_EQ(get(&q, &ev), 1);
	CHECK(!kevent_wait_status(&ev, &status));
}

#define WORDS	127

static void futex(void)
{
	static __u32 words[WORDS + 1];
	struct kevent_queue q;
	struct ukevent ev;
	int i;

	open_queue(&q);
	for (i = 0; i <= WORDS; i++) {
		kevent_set_futex(&ev, &words[i], 0, KEVENT_FUTEX_PRIVATE, 0, 0);
		CHECK_EQ(add(&q, &ev), i < WORDS ? 0 : -ENOSPC);
	}
}

/* If inotify has dropped events, each watch reports all its conditions. */
static void inode(void)
{
	const __u32 both = KEVENT_INODE_MODIFY | KEVENT_INODE_ATTRIB;
	char name[] = "/tmp/kevent-a-XXXXXX", other[] = "/tmp/kevent-b-XXXXXX";
	int fd[2] = { mkstemp(name), mkstemp(other) };
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	unsigned int nr = 0, i;
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	for (i = 0; i < 2; i++) {
		kevent_set_inode(&ev, fd[i], both, 0, 0);
		CHECK_EQ(add(&q, &ev), 0);
	}
	CHECK(file && fscanf(file, "%u", &nr) == 1);
	for (i = 0; i <= nr; i++)
		CHECK_EQ(pwrite(fd[i % 2], "", 1, 0), 1);
	CHECK_EQ(unlink(name) | unlink(other), 0);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(get(&q, &ev), 1);
		CHECK_EQ(ev.ret_data[0], both);
	}
	kevent_set_inode(&ev, memfd_create("a", MFD_CLOEXEC), both, 0, 0);
	CHECK_EQ(add(&q, &ev), -EOPNOTSUPP);
	/* One that has a file system of its own goes on without a name, too. */
	kevent_set_inode(&ev, fd[0], KEVENT_INODE_MODIFY, 0, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	CHECK_EQ(add(&q, &ev), 0);
}

static int late[2];

static void write_late(int sig)
{
	CHECK_EQ(write(late[1], "", sig != 0), 1);
}

/* A handler makes the pipe readable while a call of a chain waits for it. */
static void call_goes_on_after_a_handler(int fd)
{
	struct sigaction restart = { .sa_handler = write_late, .sa_flags = SA_RESTART };
	struct sigevent to = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const struct itimerspec soon = { .it_value.tv_nsec = 20000000 };
	struct kevent_call calls[1];
	struct kevent_chain c;
	timer_t id;
	char byte;

	CHECK_EQ(pipe(late), 0);
	CHECK_EQ(sigaction(SIGUSR1, &restart, NULL), 0);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &to, &id), 0);
	CHECK_EQ(timer_settime(id, 0, &soon, NULL), 0);
	kevent_chain_init(&c, calls, ARRAY_SIZE(calls));
	kevent_chain_call(&c, SYS_read, late[0], &byte, 1);
	CHECK_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_call(fd, calls, 1, 0, 0), 0);
	CHECK_EQ(calls[0].result, 1);
}

static void call(void)
{
	struct kevent_call calls[1];
	struct kevent_queue q;
	struct kevent_chain c;

	open_queue(&q);
	call_goes_on_after_a_handler(q.fd);
	kevent_chain_init(&c, calls, ARRAY_SIZE(calls));
	kevent_chain_call(&c, SYS_read, 0, NULL, 0);
	CHECK_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_bind(q.fd, 0, calls), -ENOSYS);
}

static void serve(void)
{
	struct kevent_call calls[1];
	struct kevent_queue q;
	struct kevent_chain c;
	struct ukevent ev;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
	kevent_chain_init(&c, calls, ARRAY_SIZE(calls));
	kevent_chain_call(&c, SYS_write, fd[1], "a", 1);
	CHECK_EQ(kevent_chain_end(&c), 0);
	/* A write to a pipe with room would not block. */
	CHECK_EQ(kevent_chain_submit(q.fd, &c, 1), KEVENT_CALL_SUBMITTED);
	CHECK_EQ(readable(fd[0]), 0);
	CHECK_EQ(kevent_chain_serve(q.fd, 1, &no_time), 1);
	CHECK_EQ(readable(fd[0]), 1);
	CHECK_EQ(get(&q, &ev), 1);
}

static bool came;

static void *wait_within_the_limit(void *arg)
{
	struct kevent_queue *q = arg;
	struct kevent_wait_arg more_args;

	kevent_wait_arg_init(&more_args);
	more_args.max_running = 1;
	CHECK_EQ(kevent_wait(q->fd, 1, 0, NULL, KEVENT_FLAGS_ARG, &more_args), 1);
	__atomic_store_n(&came, true, __ATOMIC_RELEASE);
	return NULL;
}

/* This thread runs all the time, and the other one does as well. */
static void max_running(void)
{
	struct kevent_wait_arg arg;
	struct kevent_queue q;
	pthread_t thread;

	open_queue(&q);
	CHECK_EQ(add_mark(&q), 0);
	kevent_wait_arg_init(&arg);
	arg.max_running = 1;
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, KEVENT_FLAGS_ARG, &arg), 0);
	CHECK_EQ(pthread_create(&thread, NULL, wait_within_the_limit, &q), 0);
	CHECK_EQ(mark(&q), 1);
	while (!__atomic_load_n(&came, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_join(thread, NULL);
}

/* Each name begins with that of a row of kevent_fallback(7): tests/check hosts. */
static const struct test tests[] = {
	{ "stored_hit", hit },
	{ "stored_readable", readable_queue },
	{ "stored_edge", edge },
	{ "stored_poll", poll_first },
	{ "address", address },
	{ "process", process },
	{ "process_status", status },
	{ "close_of_a_copy", close_of_a_copy },
	{ "order", order },
	{ "order_turn", turn },
	{ "wait_awake", awake },
	{ "wait_handoff", handoff },
	{ "wait_busy_poll", busy_poll },
	{ "wait_clock", clock_step },
	{ "amount", amount },
	{ "amount_empty", empty },
	{ "signal_observe", observe },
	{ "signal", signal_of_all },
	{ "thread_posix_timer", posix_timer },
	{ "thread_futex", futex },
	{ "chain_call", call },
	{ "chain_serve", serve },
	{ "chain_max_running", max_running },
	{ "nested", nested },
	{ "limit", limit },
	{ "limit_fdinfo", fdinfo },
	{ "limit_inode", inode },
};

int main(void)
{
	return run_tests("exceptions", tests, ARRAY_SIZE(tests));
}
