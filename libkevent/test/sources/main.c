// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Sources and clocks of the fallback, on the real kernel
 *
 * Each test runs in a process of its own, which an alarm ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "fallback/fallback.h"
#include "libkevent.h"
#include "../processes.h"

#define SIZE		8U
#define DONT_SYNC	0x4000		/* AT_STATX_DONT_SYNC */
#define MS		1000000LL
#define HOUR		3600

#ifndef SYS_futex_waitv
#define SYS_futex_waitv	449
#endif

static const struct timespec no_time;

static KEVENT_RING_STORAGE(SIZE) mem;

static void open_queue(struct kevent_queue *q)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(kevent_queue_init(q, &mem.ring, SIZE, 0), 0);
}

static void must_be_silent(struct kevent_queue *q)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 0);
}

/* Clocks */

/* The second look at a clock that can be set, and later ones, find it so far off. */
static time_t step;
static unsigned int looks;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, now);

	if (!ret && (clock == CLOCK_REALTIME || clock == CLOCK_TAI) &&
	    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED))
		now->tv_sec += __atomic_load_n(&step, __ATOMIC_RELAXED);
	return ret;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* Waits for two events, and has one; the clock is set meanwhile. The time it took */
static long long wait_for_two(clockid_t clock, time_t by, __u32 flags,
			      const struct timespec *timeout, long long min_wait)
{
	struct kevent_wait_arg arg;
	struct kevent_queue q;
	struct ukevent ev;
	long long start;

	open_queue(&q);
	kevent_set_user(&ev, 1, 1, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	kevent_set_mark(&ev, 1, 1, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), 1);
	kevent_wait_arg_init(&arg);
	arg.clockid = clock;
	arg.min_nr = 2;
	arg.min_wait_ns = (__u64)min_wait;
	looks = 0;
	step = by;
	start = now_ns();
	CHECK_EQ(kevent_wait(q.fd, SIZE, 0, timeout, flags | KEVENT_FLAGS_ARG,
			     &arg), 1);
	kevent_queue_close(&q);
	return now_ns() - start;
}

static const clockid_t settable[] = { CLOCK_REALTIME, CLOCK_TAI };

static void span_of_time_ignores_steps_of_its_clock(void)
{
	static const struct timespec timeout = { .tv_nsec = 100 * MS };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		CHECK(wait_for_two(settable[i], HOUR, 0, &timeout, 0) >=
		      100 * MS);
		/* The alarm ends one that became an hour. */
		CHECK(wait_for_two(settable[i], -HOUR, 0, &timeout, 0) >=
		      100 * MS);
	}
}

static void min_wait_ignores_steps_of_the_clock(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		CHECK(wait_for_two(settable[i], HOUR, 0, NULL, 100 * MS) >=
		      100 * MS);
		CHECK(wait_for_two(settable[i], -HOUR, 0, NULL, 100 * MS) >=
		      100 * MS);
	}
}

static void point_of_time_follows_its_clock(void)
{
	struct timespec at;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		CHECK_EQ(syscall(SYS_clock_gettime, settable[i], &at), 0);
		at.tv_sec += HOUR;
		/* The alarm ends one that does not. */
		wait_for_two(settable[i], 2 * HOUR, KEVENT_FLAGS_ABSTIME, &at, 0);
		wait_for_two(settable[i], 2 * HOUR, KEVENT_FLAGS_ABSTIME, &at,
			     2 * HOUR * 1000 * MS);
	}
}

/* A clock that cannot be set here: the next timerfd that is programmed says that it was. */
static bool clock_was_set;
/* Or nobody says it, as that is the first one. */
static time_t first_step;
static int cancellable;

int timerfd_settime(int fd, int flags, const struct itimerspec *to,
		    struct itimerspec *old)
{
	int ret = (int)syscall(SYS_timerfd_settime, fd, flags, to, old);

	if (!(flags & TFD_TIMER_CANCEL_ON_SET))
		return ret;
	if (!cancellable++)
		__atomic_store_n(&step, first_step, __ATOMIC_RELAXED);
	if (!clock_was_set)
		return ret;
	clock_was_set = false;
	errno = ECANCELED;
	return -1;
}

static void add_cancelled(struct kevent_queue *q, __u64 at, __u64 user)
{
	struct ukevent ev;

	kevent_set_timer(&ev, at, 0, KEVENT_TIMER_ABSTIME |
			 KEVENT_TIMER_REALTIME | KEVENT_TIMER_CANCEL_ON_SET, 0,
			 user);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
}

static void timer_that_never_expires_is_cancelled(void)
{
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	add_cancelled(&q, ~0ULL >> 1, 1);
	CHECK_EQ(cancellable, 1);
	clock_was_set = true;
	add_cancelled(&q, ~0ULL >> 2, 2);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(ev.ptr, 1);
	CHECK_EQ((int)ev.ret_data[1], -ECANCELED);
	kevent_queue_close(&q);
}

static void *wait_an_hour(void *arg)
{
	const struct kevent_queue *q = arg;
	struct kevent_wait_arg more;
	struct timespec at;

	kevent_wait_arg_init(&more);
	more.clockid = CLOCK_TAI;
	CHECK_EQ(syscall(SYS_clock_gettime, CLOCK_TAI, &at), 0);
	at.tv_sec += HOUR;
	CHECK(kevent_wait(q->fd, SIZE, 0, &at, KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_ARG,
			  &more) >= 0);
	return NULL;
}

/* The alarm ends those that sleep on. The event, which is one, would end one of them. */
static void step_ends_each_sleep(void)
{
	struct kevent_queue q;
	pthread_t thread[3];
	size_t i;

	open_queue(&q);
	looks = 1;
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_an_hour, &q), 0);
	while (kevent_fb_info(q.fd, "kevent-waiting") != ARRAY_SIZE(thread))
		sched_yield();
	CHECK_EQ(cancellable, 1);
	__atomic_store_n(&step, 2 * HOUR, __ATOMIC_RELAXED);
	clock_was_set = true;
	add_cancelled(&q, ~0ULL >> 2, 1);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	kevent_queue_close(&q);
}

static void step_before_the_queue_hears_of_it_ends_the_sleep(void)
{
	struct kevent_queue q;

	open_queue(&q);
	looks = 1;
	first_step = 2 * HOUR;
	wait_an_hour(&q);
	CHECK_EQ(cancellable, 1);
	kevent_queue_close(&q);
}

/* INODE, when inotify drops reports because there are too many */

static char folder[] = "/tmp/kevent-XXXXXX";

static int make_file(const char *name)
{
	return open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void enter_folder(void)
{
	CHECK(mkdtemp(folder) != NULL);
	CHECK_EQ(chdir(folder), 0);
}

static void leave_folder(void)
{
	CHECK_EQ(chdir("/"), 0);
	CHECK_EQ(rmdir(folder), 0);
}

static void add_inode(struct kevent_queue *q, int fd, __u32 event)
{
	struct ukevent ev;

	kevent_set_inode(&ev, fd, event, 0, (__u64)fd);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
}

/* Two files in turn: the same one again would be one report. */
static void fill_inotify(const int fd[2])
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	unsigned int nr = 0, i;

	CHECK(file && fscanf(file, "%u", &nr) == 1);
	if (file)
		fclose(file);
	for (i = 0; i <= nr; i++)
		if (pwrite(fd[i % 2], "", 1, 0) != 1)
			FAIL("written");
}

/* Takes all there is; the conditions of the watch of @fd */
static __u32 conditions_of(struct kevent_queue *q, int fd)
{
	struct ukevent ev;
	__u32 events = 0;

	while (kevent_queue_get(q, &ev, 1, &no_time) == 1)
		if (ev.ptr == (__u64)fd)
			events |= ev.ret_data[0];
	return events;
}

static void change_behind_an_overflow_is_reported(void)
{
	int fd[2], late, dir;
	struct kevent_queue q;

	enter_folder();
	open_queue(&q);
	fd[0] = make_file("a");
	fd[1] = make_file("b");
	late = make_file("late");
	dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	add_inode(&q, fd[0], KEVENT_INODE_MODIFY);
	add_inode(&q, fd[1], KEVENT_INODE_MODIFY);
	add_inode(&q, late, KEVENT_INODE_MODIFY | KEVENT_INODE_REMOVE);
	add_inode(&q, dir, KEVENT_INODE_CREATE);
	fill_inotify(fd);
	CHECK_EQ(pwrite(late, "", 1, 0), 1);
	CHECK_EQ(conditions_of(&q, late), KEVENT_INODE_MODIFY);
	fill_inotify(fd);
	CHECK_EQ(close(make_file("new")), 0);
	CHECK_EQ(conditions_of(&q, dir), KEVENT_INODE_CREATE);
	/* That inotify forgets a file is a report, too. */
	fill_inotify(fd);
	CHECK_EQ(unlink("late"), 0);
	CHECK(conditions_of(&q, late) & KEVENT_INODE_REMOVE);
	CHECK_EQ(pwrite(late, "", 1, 0), 1);
	CHECK_EQ(conditions_of(&q, late), KEVENT_INODE_MODIFY);
	CHECK_EQ(unlink("a") | unlink("b") | unlink("new"), 0);
	leave_folder();
	kevent_queue_close(&q);
}

/* Inotify says it of the count of links, and of the last of its directory entries. */
static void last_name_goes_once(void)
{
	struct kevent_queue q;
	int fd, other;

	enter_folder();
	open_queue(&q);
	fd = make_file("a");
	CHECK_EQ(link("a", "b"), 0);
	other = make_file("b");
	add_inode(&q, fd, KEVENT_INODE_REMOVE | KEVENT_INODE_MODIFY);
	CHECK_EQ(unlink("a") | unlink("b"), 0);
	CHECK_EQ(conditions_of(&q, fd), KEVENT_INODE_REMOVE);
	CHECK_EQ(close(other), 0);
	CHECK_EQ(conditions_of(&q, fd), 0);
	/* Inotify has forgotten the file, and is asked again. */
	CHECK_EQ(pwrite(fd, "", 1, 0), 1);
	CHECK_EQ(conditions_of(&q, fd), KEVENT_INODE_MODIFY);
	leave_folder();
	kevent_queue_close(&q);
}

/* There may be too many watches of inotify. */
static bool no_watches;

int inotify_add_watch(int fd, const char *path, __u32 mask)
{
	if (!no_watches)
		return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
	errno = ENOSPC;
	return -1;
}

static void broken_watch_can_be_modified(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd;

	enter_folder();
	open_queue(&q);
	fd = make_file("a");
	CHECK_EQ(link("a", "b"), 0);
	add_inode(&q, fd, KEVENT_INODE_ATTRIB);
	no_watches = true;
	CHECK_EQ(unlink("a") | unlink("b"), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(kevent_error(&ev), -EIDRM);
	no_watches = false;
	kevent_set_inode(&ev, fd, KEVENT_INODE_MODIFY, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	CHECK_EQ(pwrite(fd, "", 1, 0), 1);
	must_be_silent(&q);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	add_inode(&q, fd, KEVENT_INODE_MODIFY);
	CHECK_EQ(pwrite(fd, "", 1, 0), 1);
	CHECK_EQ(conditions_of(&q, fd), KEVENT_INODE_MODIFY);
	leave_folder();
	kevent_queue_close(&q);
}

static void watch_that_broke_while_disabled_says_so(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd;

	enter_folder();
	open_queue(&q);
	fd = make_file("a");
	CHECK_EQ(link("a", "b"), 0);
	kevent_set_inode(&ev, fd, KEVENT_INODE_ATTRIB, KEVENT_REQ_DISABLED, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	no_watches = true;
	CHECK_EQ(unlink("a") | unlink("b"), 0);
	must_be_silent(&q);
	no_watches = false;
	kevent_set_inode(&ev, fd, KEVENT_INODE_MODIFY, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(kevent_error(&ev), -EIDRM);
	leave_folder();
	kevent_queue_close(&q);
}

/* Changes before a MODIFY that fails are events of the watch as it was. */
static void failed_modify_loses_no_change(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd;

	enter_folder();
	open_queue(&q);
	fd = make_file("a");
	add_inode(&q, fd, KEVENT_INODE_MODIFY);
	CHECK_EQ(pwrite(fd, "", 1, 0), 1);
	CHECK_EQ(fchmod(fd, 0600), 0);
	no_watches = true;
	kevent_set_inode(&ev, fd, KEVENT_INODE_ATTRIB, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -ENOSPC);
	no_watches = false;
	CHECK_EQ(conditions_of(&q, fd), KEVENT_INODE_MODIFY);
	must_be_silent(&q);
	CHECK_EQ(unlink("a"), 0);
	leave_folder();
	kevent_queue_close(&q);
}

/* Two watches of an inode, and a change before the second, which no call has collected */
static void change_before_a_watch_is_for_the_first(void)
{
	struct kevent_queue q;
	struct ukevent ev[2];
	int fd[2];

	enter_folder();
	open_queue(&q);
	fd[0] = make_file("a");
	fd[1] = open("a", O_RDWR | O_CLOEXEC);
	add_inode(&q, fd[0], KEVENT_INODE_MODIFY);
	CHECK_EQ(pwrite(fd[0], "", 1, 0), 1);
	add_inode(&q, fd[1], KEVENT_INODE_MODIFY);
	CHECK_EQ(kevent_queue_get(&q, ev, 2, &no_time), 1);
	CHECK_EQ(ev[0].ptr, fd[0]);
	CHECK_EQ(pwrite(fd[0], "", 1, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, ev, 2, &no_time), 2);
	CHECK_EQ(unlink("a"), 0);
	leave_folder();
	kevent_queue_close(&q);
}

/* From now on a file system that is asked about a file fails. */
static void refuse_to_ask(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstat, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, DONT_SYNC, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = ARRAY_SIZE(code), .filter = code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/* It may be one of a program that does not answer. */
static void file_system_is_not_asked(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd;

	enter_folder();
	open_queue(&q);
	fd = make_file("a");
	refuse_to_ask();
	add_inode(&q, fd, KEVENT_INODE_MODIFY | KEVENT_INODE_REMOVE);
	CHECK_EQ(pwrite(fd, "", 1, 0), 1);
	CHECK_EQ(conditions_of(&q, fd), KEVENT_INODE_MODIFY);
	kevent_set_inode(&ev, fd, KEVENT_INODE_REMOVE, 0, (__u64)fd);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	CHECK_EQ(unlink("a"), 0);
	CHECK_EQ(conditions_of(&q, fd), KEVENT_INODE_REMOVE);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	leave_folder();
	kevent_queue_close(&q);
}

static int busy[2];
static unsigned int changes;
static bool enough;

static void *change_on(void *none)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		if (pwrite(busy[0], "", 1, 0) != 1 || pwrite(busy[1], "", 1, 0) != 1)
			FAIL("written");
		__atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);
	}
	return none;
}

/* They come faster than the queue takes them, which has many watches of each file. */
static void changes_without_end_hold_up_no_call(void)
{
	pthread_t thread;
	struct kevent_queue q;
	struct ukevent ev;
	int i;

	enter_folder();
	open_queue(&q);
	busy[0] = make_file("a");
	busy[1] = make_file("b");
	for (i = 0; i < 128; i++)
		add_inode(&q, dup(busy[i % 2]), KEVENT_INODE_MODIFY);
	CHECK_EQ(pthread_create(&thread, NULL, change_on, NULL), 0);
	while (__atomic_load_n(&changes, __ATOMIC_RELAXED) < 100)
		sched_yield();
	/* The alarm ends one that does not return. */
	for (i = 0; i < 16;)
		i += kevent_queue_get(&q, &ev, 1, &no_time);
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(unlink("a") | unlink("b"), 0);
	leave_folder();
	kevent_queue_close(&q);
}

/* POLL of a file whose poll method takes the event */

#define PRI	KEVENT_POLL_POLLPRI

/* A mount table of its own, of which nobody else sees anything */
static bool enter_namespace(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) {
		printf("# no namespace of users here\n");
		return false;
	}
	CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	return true;
}

/* An event of the table */
static void change_mounts(void)
{
	CHECK_EQ(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
	CHECK_EQ(umount("/tmp"), 0);
}

static int ctl_mounts(struct kevent_queue *q, __u32 cmd, int fd,
		      __u32 req_flags, struct ukevent *ev)
{
	kevent_set_poll(ev, fd, PRI, req_flags, 5);
	return kevent_ctl_one(q->fd, cmd, ev);
}

static void check_mounts(struct kevent_queue *q)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 1);
	CHECK_EQ(ev.ptr, 5);
	CHECK(ev.ret_data[0] & PRI);
	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 0);
}

/* Requests lose neither earlier events, nor the ones that they find. */
static void requests_take_no_event_away(struct kevent_queue *q, int fd,
					__u32 mode)
{
	struct ukevent ev;

	change_mounts();
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_ADD, fd,
			    mode | KEVENT_REQ_HAND_BACK, &ev), 1);
	CHECK(ev.ret_data[0] & PRI);
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_REMOVE, fd, 0, &ev), 0);
	change_mounts();
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_ADD, fd, mode, &ev), 0);
	check_mounts(q);
	change_mounts();
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_MODIFY, fd, mode, &ev), 0);
	check_mounts(q);
	change_mounts();
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_READY, fd, mode, &ev), 1);
	check_mounts(q);
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_MODIFY, fd,
			    mode | KEVENT_REQ_DISABLED, &ev), 0);
	change_mounts();
	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 0);
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_MODIFY, fd, mode, &ev), 0);
	check_mounts(q);
}

/* Each call may have to look at the file. */
static void calls_take_no_event_away(struct kevent_queue *q, int fd, int other,
				     __u32 mode)
{
	struct ukevent ev;
	int i;

	for (i = 0; i < 3; i++) {
		change_mounts();
		check_mounts(q);
	}
	/* It has to wait for room. */
	kevent_set_poll(&ev, other, PRI, mode, 6);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(kevent_get_events(q->fd, 1, 1, &no_time, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 6);
	change_mounts();
	CHECK_EQ(kevent_get_events(q->fd, 1, 1, &no_time, &ev, 0), 1);
	i = (int)ev.ptr;
	CHECK_EQ(kevent_get_events(q->fd, 1, 1, &no_time, &ev, 0), 1);
	CHECK_EQ(ev.ptr + (__u64)i, 11);
	CHECK_EQ(kevent_get_events(q->fd, 1, 1, &no_time, &ev, 0), 0);
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_REMOVE, fd, 0, &ev), 0);
	CHECK_EQ(ctl_mounts(q, KEVENT_CTL_REMOVE, other, 0, &ev), 0);
}

static void event_that_a_look_takes_is_kept(void)
{
	int fd = -1, other = -1;
	struct kevent_queue q;

	if (!enter_namespace())
		return;
	fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	other = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	open_queue(&q);
	requests_take_no_event_away(&q, fd, KEVENT_REQ_ET);
	calls_take_no_event_away(&q, fd, other, KEVENT_REQ_ET);
	requests_take_no_event_away(&q, fd, 0);
	calls_take_no_event_away(&q, fd, other, 0);
	kevent_queue_close(&q);
}

/* Such a file may also be ready all the time. */
static void level_of_such_a_file_is_repeated(void)
{
	int fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC), i;
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	kevent_set_poll(&ev, fd, KEVENT_POLL_POLLIN, 0, 5);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
		CHECK(ev.ret_data[0] & KEVENT_POLL_POLLIN);
	}
	kevent_queue_close(&q);
}

/* SIGNAL: a handler takes what some thread does not block, a signalfd the rest. */

#define RT		(SIGRTMIN + 3)

static int ctl_signal(struct kevent_queue *q, __u32 cmd, int signal,
		      __u32 req_flags)
{
	struct ukevent ev;

	kevent_set_signal(&ev, signal, KEVENT_SIGNAL_CONSUME, req_flags,
			  (__u64)signal);
	return kevent_ctl_one(q->fd, cmd, &ev);
}

static void check_signal(struct kevent_queue *q, int signal)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 1);
	CHECK_EQ(ev.type, KEVENT_SIGNAL);
	CHECK_EQ(kevent_signal_number(&ev), signal);
	CHECK(ev.id.raw_u64 & KEVENT_SIGNAL_NOMASK);
}

static void mask_signal(int how, int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static bool is_masked(int signal)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, signal);
}

static volatile sig_atomic_t handled;

static void count_handled(int signal)
{
	(void)signal;
	handled++;
}

/* A thread that does what the test says, step by step */
struct partner {
	pthread_t	thread;
	int		steps[2], done[2];
	int		masks;		/* how, at the next step */
	int		signal;
	pid_t		tid;
};

static void *follow(void *arg)
{
	struct partner *p = arg;
	char byte;

	p->tid = (pid_t)syscall(SYS_gettid);
	do {
		mask_signal(p->masks, p->signal);
		CHECK_EQ(write(p->done[1], "", 1), 1);
		/* A signal that is handled may end it. */
		while (read(p->steps[0], &byte, 1) < 0)
			CHECK_EQ(errno, EINTR);
	} while (p->masks >= 0);
	return NULL;
}

static void await_step(struct partner *p)
{
	char byte;

	CHECK_EQ(read(p->done[0], &byte, 1), 1);
}

static void next_step(struct partner *p, int masks)
{
	p->masks = masks;
	CHECK_EQ(write(p->steps[1], "", 1), 1);
	if (masks >= 0)
		await_step(p);
	else
		pthread_join(p->thread, NULL);
}

static void start_partner(struct partner *p, int masks, int signal)
{
	p->masks = masks;
	p->signal = signal;
	CHECK_EQ(pipe(p->steps) | pipe(p->done), 0);
	CHECK_EQ(pthread_create(&p->thread, NULL, follow, p), 0);
	await_step(p);
}

static void signal_is_consumed_whoever_blocks_it(void)
{
	struct kevent_queue q;
	struct partner p;
	int i;

	if (SIGNALS_ARE_HELD)
		return;
	open_queue(&q);
	start_partner(&p, SIG_UNBLOCK, SIGTERM);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	CHECK(!is_masked(SIGTERM));
	/* None of them, this one, both, the other one */
	for (i = 0; i < 4; i++) {
		mask_signal(i == 1 || i == 2 ? SIG_BLOCK : SIG_UNBLOCK, SIGTERM);
		next_step(&p, i < 2 ? SIG_UNBLOCK : SIG_BLOCK);
		CHECK_EQ(kill(getpid(), SIGTERM), 0);
		check_signal(&q, SIGTERM);
	}
	/* One that is sent to a thread which blocks it has to wait. */
	CHECK_EQ(syscall(SYS_tgkill, getpid(), p.tid, SIGTERM), 0);
	must_be_silent(&q);
	next_step(&p, SIG_UNBLOCK);
	check_signal(&q, SIGTERM);
	must_be_silent(&q);
	next_step(&p, -1);
	kevent_queue_close(&q);
}

static void each_queue_gets_the_signal(void)
{
	static KEVENT_RING_STORAGE(SIZE) more;
	struct kevent_queue q, other;
	int i;

	open_queue(&q);
	CHECK_EQ(kevent_queue_init(&other, &more.ring, SIZE, 0), 0);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	CHECK_EQ(ctl_signal(&other, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	for (i = 0; i < 4; i++) {
		mask_signal(i % 2 ? SIG_BLOCK : SIG_UNBLOCK, SIGTERM);
		CHECK_EQ(kill(getpid(), SIGTERM), 0);
		check_signal(i < 2 ? &q : &other, SIGTERM);
		check_signal(i < 2 ? &other : &q, SIGTERM);
		must_be_silent(&q);
		must_be_silent(&other);
	}
	kevent_queue_close(&other);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	check_signal(&q, SIGTERM);
	kevent_queue_close(&q);
}

/* Without a child, -1 would stand for all processes. */
static int kill_child(pid_t pid, int sig)
{
	return pid > 0 ? kill(pid, sig) : -1;
}

static int status_of(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	return status;
}

/* Neither a mask nor the handler is for children. */
static void children_have_no_part_in_it(void)
{
	char *const words[] = { (char *)"sleep", (char *)"60", NULL };
	struct kevent_queue q;
	pid_t pid = -1;
	int status;

	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTSTP, 0), 0);
	CHECK_EQ(posix_spawnp(&pid, "sleep", NULL, NULL, words, environ), 0);
	CHECK_EQ(kill_child(pid, SIGTERM), 0);
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	pid = fork();
	if (!pid)
		alarm(SECONDS);
	while (!pid)
		pause();
	/* SIGTSTP stops nobody in a process group without a parent outside. */
	CHECK_EQ(setpgid(pid, pid), 0);
	CHECK_EQ(kill_child(pid, SIGTSTP), 0);
	status = status_of(pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
	CHECK_EQ(kill_child(pid, SIGTERM) | kill_child(pid, SIGCONT), 0);
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	must_be_silent(&q);
	/* A child may have watches of its own. */
	pid = fork();
	if (!pid) {
		alarm(SECONDS);
		CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), 0);
		CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
		CHECK_EQ(kill(getpid(), SIGTERM), 0);
		check_signal(&q, SIGTERM);
		CHECK_EQ(ctl_signal(&q, KEVENT_CTL_REMOVE, SIGTERM, 0), 0);
		fflush(stdout);
		kill(getpid(), failed ? SIGKILL : SIGTERM);
	}
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	must_be_silent(&q);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	check_signal(&q, SIGTERM);
	kevent_queue_close(&q);
}

/* The handler that the program sets is the program's. */
static void disposition_comes_back(void)
{
	struct kevent_queue q;

	open_queue(&q);
	signal(SIGTERM, count_handled);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	check_signal(&q, SIGTERM);
	CHECK_EQ(handled, 0);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_REMOVE, SIGTERM, 0), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handled, 1);
	signal(SIGTERM, SIG_DFL);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	signal(SIGTERM, count_handled);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handled, 2);
	must_be_silent(&q);
	/* MODIFY takes it again. */
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_MODIFY, SIGTERM, 0), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	check_signal(&q, SIGTERM);
	signal(SIGTERM, SIG_IGN);
	kevent_queue_close(&q);
	CHECK(signal(SIGTERM, SIG_DFL) == SIG_IGN);
	CHECK_EQ(handled, 2);
}

static sigjmp_buf after_fault;

static void leave_fault(int signal)
{
	(void)signal;
	handled++;
	siglongjmp(after_fault, 1);
}

static void fault_is_delivered_as_well(void)
{
	static volatile char *volatile nowhere;
	struct kevent_queue q;
	struct ukevent ev;
	pid_t pid;

	open_queue(&q);
	signal(SIGSEGV, leave_fault);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGSEGV, 0), 0);
	if (!sigsetjmp(after_fault, 1)) {
		*nowhere = 1;
		FAIL("fault");
	}
	CHECK_EQ(handled, 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(ev.id.raw_u64, SIGSEGV);
	CHECK_EQ(ev.ret_data[0], SEGV_MAPERR);
	CHECK_EQ(kill(getpid(), SIGSEGV), 0);
	check_signal(&q, SIGSEGV);
	CHECK_EQ(handled, 1);
	kevent_queue_close(&q);
	signal(SIGSEGV, SIG_DFL);
	pid = fork();
	if (!pid) {
		open_queue(&q);
		CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGSEGV, 0), 0);
		*nowhere = 1;
		_exit(0);
	}
	CHECK_EQ(WTERMSIG(status_of(pid)), SIGSEGV);
}

/* A program that closes what it does not know has other files there. */
static void handler_leaves_other_files_alone(void)
{
	static KEVENT_RING_STORAGE(SIZE) more;
	struct kevent_queue q, other;
	char text[64];
	int fd, file;

	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	/* Behind the queue are the descriptors of the library. */
	file = memfd_create("other", 0);
	for (fd = q.fd + 1; fd < file; fd++)
		CHECK_EQ(dup2(file, fd), fd);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(pread(file, text, sizeof(text), 0), 0);
	/* A new queue has what it needs. */
	CHECK_EQ(kevent_queue_init(&other, &more.ring, SIZE, 0), 0);
	CHECK_EQ(ctl_signal(&other, KEVENT_CTL_ADD, SIGUSR1, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	check_signal(&other, SIGUSR1);
	mask_signal(SIG_BLOCK, SIGUSR1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	check_signal(&other, SIGUSR1);
	CHECK_EQ(pread(file, text, sizeof(text), 0), 0);
	for (fd = q.fd + 1; fd < file; fd++)
		CHECK_EQ(fcntl(fd, F_GETFD), 0);
}

/* The next look of the library at whether it has a file, -1: any, meets something. */
static void (*volatile at_look)(void);
static int look_at = -1;

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	void (*meet_it)(void) = at_look;

	if (meet_it && (look_at < 0 || look_at == fd)) {
		at_look = NULL;
		meet_it();
	}
	return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

static void raise_alarm(void)
{
	raise(SIGALRM);
}

static void handler_is_not_left_by_a_jump(void)
{
	struct kevent_queue q;

	if (SIGNALS_ARE_HELD)
		return;
	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	signal(SIGALRM, leave_fault);
	if (!sigsetjmp(after_fault, 1)) {
		at_look = raise_alarm;
		kill(getpid(), SIGTERM);
		FAIL("alarm");
	}
	CHECK(!at_look);
	CHECK_EQ(handled, 1);
	signal(SIGALRM, SIG_DFL);
	check_signal(&q, SIGTERM);
	kevent_queue_close(&q);
}

/* The alarm waits for the end of a handler. */
static void *end_what_hangs(void *arg)
{
	poll(NULL, 0, SECONDS * 500);
	printf("# it hangs\n");
	fflush(stdout);
	(void)arg;
	_exit(1);
}

static void raise_rt(void)
{
	raise(RT);
}

/* A thread that looks whether it has the bell, to ring it for another queue, is interrupted. */
static void handler_needs_nothing_of_its_thread(void)
{
	static KEVENT_RING_STORAGE(SIZE) more;
	struct kevent_queue q, other;
	pthread_t thread;

	if (SIGNALS_ARE_HELD)
		return;
	CHECK_EQ(pthread_create(&thread, NULL, end_what_hangs, NULL), 0);
	open_queue(&q);
	CHECK_EQ(kevent_queue_init(&other, &more.ring, SIZE, 0), 0);
	/* Behind an epoll instance that has it */
	look_at = dup(0) + 1;
	close(look_at - 1);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, RT, 0), 0);
	CHECK_EQ(ctl_signal(&other, KEVENT_CTL_ADD, RT, 0), 0);
	raise(RT);
	at_look = raise_rt;
	check_signal(&q, RT);
	CHECK(!at_look);
	check_signal(&q, RT);
	check_signal(&other, RT);
	check_signal(&other, RT);
	must_be_silent(&q);
	kevent_queue_close(&other);
	kevent_queue_close(&q);
}

/* One is for the handler, and one for the signalfd. */
static void send_two(void)
{
	mask_signal(SIG_UNBLOCK, RT);
	raise(RT);
	mask_signal(SIG_BLOCK, RT);
	kill(getpid(), RT);
}

static void *remove_once(void *arg)
{
	struct kevent_queue *q = arg;

	CHECK_EQ(ctl_signal(q, KEVENT_CTL_ADD, RT, KEVENT_REQ_ONESHOT), 0);
	/* The descriptors are in this order: queue, kick, epoll, eventfd, signalfd. */
	look_at = q->fd + 4;
	at_look = send_two;
	CHECK_EQ(ctl_signal(q, KEVENT_CTL_REMOVE, RT, 0), 0);
	CHECK(!at_look);
	must_be_silent(q);
	CHECK_EQ(handled, 0);
	mask_signal(SIG_UNBLOCK, RT);
	CHECK_EQ(handled, 1);
	return NULL;
}

/* It has its effect; nothing but the first thread may send it as it was. */
static void signal_that_is_one_too_many_comes_back(void)
{
	struct kevent_queue q;
	pthread_t thread;

	if (SIGNALS_ARE_HELD)
		return;
	signal(RT, count_handled);
	mask_signal(SIG_BLOCK, RT);
	open_queue(&q);
	CHECK_EQ(pthread_create(&thread, NULL, remove_once, &q), 0);
	pthread_join(thread, NULL);
	kevent_queue_close(&q);
	CHECK_EQ(handled, 1);
}

static void check_mask(int signal)
{
	__u64 all = 0;

	count_handled(signal);
	CHECK(is_masked(signal) && is_masked(SIGUSR2) && is_masked(SIGHUP));
	CHECK(!is_masked(SIGALRM));
	/* A signal of the C library is not blocked either. */
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &all, sizeof(all));
	CHECK_EQ(all >> 31 & 1, 0);
}

static void handler_of_the_program_has_its_mask(void)
{
	struct sigaction action = { .sa_handler = check_mask };
	struct kevent_queue q;

	sigaddset(&action.sa_mask, SIGUSR2);
	mask_signal(SIG_BLOCK, SIGHUP);
	sigaction(SIGTERM, &action, NULL);
	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM,
			    KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handled, 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handled, 1);
	kevent_queue_close(&q);
}

static struct sigaction library;
static volatile sig_atomic_t handed_on;

static void hand_on(int signal, siginfo_t *info, void *context)
{
	if (++handed_on > 10)
		_exit(1);
	library.sa_sigaction(signal, info, context);
}

/* The handler that the program's own has found is that of the library. */
static void handlers_hand_on_without_end(void)
{
	struct sigaction action = { .sa_sigaction = hand_on,
				    .sa_flags = SA_SIGINFO };
	struct kevent_queue q;
	pid_t pid;
	int i;

	if (SIGNALS_ARE_HELD)
		return;
	signal(SIGTERM, count_handled);
	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM,
			    KEVENT_REQ_DISPATCH), 0);
	sigaction(SIGTERM, &action, &library);
	CHECK(library.sa_flags & SA_SIGINFO);
	/* The program's own is first, or that of the library. */
	for (i = 0; i < 2; i++) {
		CHECK_EQ(kill(getpid(), SIGTERM), 0);
		check_signal(&q, SIGTERM);
		CHECK_EQ(handed_on, 1 + i);
		CHECK_EQ(handled, i);
		CHECK_EQ(kill(getpid(), SIGTERM), 0);
		CHECK_EQ(handed_on, 2 + i);
		CHECK_EQ(handled, 1 + i);
		CHECK_EQ(ctl_signal(&q, KEVENT_CTL_MODIFY, SIGTERM,
				    KEVENT_REQ_DISPATCH), 0);
	}
	pid = fork();
	if (!pid) {
		kill(getpid(), SIGTERM);
		_exit(handled == 3 ? 0 : 2);
	}
	CHECK_EQ(status_of(pid), 0);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_REMOVE, SIGTERM, 0), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handed_on, 4);
	CHECK_EQ(handled, 3);
	/* And once more, with the program's own in place */
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	check_signal(&q, SIGTERM);
	kevent_queue_close(&q);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	CHECK_EQ(handed_on, 5);
	CHECK_EQ(handled, 4);
}

static void end_after_many(int signal)
{
	count_handled(signal);
	if (handled == 100)
		_exit(3);
}

static void count_unmasked(int signal)
{
	count_handled(signal);
	CHECK(!is_masked(signal));
}

static void flags_of_the_program_hold(void)
{
	struct itimerval often = { { 0, 10000 }, { 0, 10000 } }, none = { 0 };
	struct sigaction action = { .sa_handler = count_unmasked,
				    .sa_flags = (int)SA_RESETHAND | SA_NODEFER };
	struct kevent_queue q;
	int fd[2];
	char byte;
	pid_t pid;

	if (SIGNALS_ARE_HELD)
		return;
	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = end_after_many;
	action.sa_flags = 0;
	sigaction(SIGALRM, &action, NULL);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGUSR1,
			    KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGALRM, 0), 0);
	/* A child has none of it: without SA_RESTART, the read ends. */
	pid = fork();
	if (!pid) {
		setitimer(ITIMER_REAL, &often, NULL);
		CHECK_EQ(read(fd[0], &byte, 1), -1);
		CHECK_EQ(errno, EINTR);
		setitimer(ITIMER_REAL, &none, NULL);
		fflush(stdout);
		_exit(failed);
	}
	CHECK_EQ(status_of(pid), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(handled, 1);
		fflush(stdout);
		kill(getpid(), failed ? SIGKILL : SIGUSR1);
		_exit(0);
	}
	CHECK_EQ(WTERMSIG(status_of(pid)), SIGUSR1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	check_signal(&q, SIGUSR1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	/* SA_RESETHAND has set the default, and the end of the queue restores that. */
	kevent_queue_close(&q);
	CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
}

static int setters;
static bool racing;

#if !SIGNALS_ARE_HELD
/*
 * Two threads set the default in the place of a handler, and then the one that has found
 * the handler is the first to set it again.
 */
static int restored;

extern int __sigaction(int signal, const struct sigaction *action,
		       struct sigaction *old);

static void meet(int nr)
{
	__atomic_add_fetch(&setters, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&setters, __ATOMIC_SEQ_CST) < nr)
		sched_yield();
}

int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	static __thread bool mine;
	bool first = racing && action && action->sa_handler == SIG_DFL && !mine;
	int ret;

	if (first) {
		mine = true;
		meet(2);
	}
	ret = __sigaction(signal, action, old);
	if (first)
		meet(4);
	if (racing && action && action->sa_handler != SIG_DFL)
		__atomic_store_n(&restored, 1, __ATOMIC_SEQ_CST);
	while (first && old->sa_handler == SIG_DFL &&
	       !__atomic_load_n(&restored, __ATOMIC_SEQ_CST))
		sched_yield();
	return ret;
}
#endif

static void *stop_here(void *arg)
{
	(void)arg;
	pthread_kill(pthread_self(), SIGTSTP);
	return NULL;
}

static void threads_that_stop_leave_the_handler(void)
{
	pthread_t thread[2];
	struct kevent_queue q;
	struct sigaction now;
	int i;

	if (SIGNALS_ARE_HELD)
		return;
	/* SIGTSTP stops nobody in a process group without a parent outside. */
	CHECK(setsid() > 0);
	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTSTP,
			    KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(kill(getpid(), SIGTSTP), 0);
	/* Nobody wants the next one. */
	racing = true;
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, stop_here, NULL), 0);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	racing = false;
	CHECK_EQ(setters, 4);
	sigaction(SIGTSTP, NULL, &now);
	CHECK(now.sa_handler != SIG_DFL);
	check_signal(&q, SIGTSTP);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_MODIFY, SIGTSTP, 0), 0);
	CHECK_EQ(kill(getpid(), SIGTSTP), 0);
	check_signal(&q, SIGTSTP);
	kevent_queue_close(&q);
}

static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Files of the kinds that the library has had by these numbers */
static void check_own_files(int nr)
{
	static KEVENT_RING_STORAGE(SIZE) more;
	struct epoll_event event = { .events = EPOLLIN };
	struct signalfd_siginfo info;
	int epoll, bell, fd, i;
	struct kevent_queue q;
	sigset_t set;
	__u64 value;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	mask_signal(SIG_BLOCK, SIGUSR2);
	for (i = 0; i < nr; i++)
		CHECK(epoll_create1(EPOLL_CLOEXEC) >= 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	bell = eventfd(0, EFD_NONBLOCK);
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, bell, &event), 0);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	nr = count_files();
	CHECK_EQ(kevent_queue_init(&q, &more.ring, SIZE, 0), 0);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	check_signal(&q, SIGTERM);
	CHECK_EQ(read(bell, &value, sizeof(value)), -1);
	CHECK_EQ(kill(getpid(), SIGUSR2), 0);
	CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
	kevent_queue_close(&q);
	CHECK_EQ(count_files(), nr);
	CHECK_EQ(fcntl(epoll, F_GETFD), FD_CLOEXEC);
}

static void descriptors_of_signals_go_with_the_last_queue(void)
{
	static KEVENT_RING_STORAGE(SIZE) more;
	int nr = count_files(), with_one;
	struct kevent_queue q, other;
	pid_t pid;

	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	with_one = count_files();
	CHECK_EQ(with_one, nr + 5);
	CHECK_EQ(kevent_queue_init(&other, &more.ring, SIZE, 0), 0);
	CHECK_EQ(ctl_signal(&other, KEVENT_CTL_ADD, SIGTERM, 0), 0);
	kevent_queue_close(&other);
	CHECK_EQ(count_files(), with_one);
	pid = fork();
	if (!pid) {
		/* The child closes only its own copies. */
		alarm(SECONDS);
		kevent_queue_close(&q);
		CHECK_EQ(count_files(), nr);
		check_own_files(2);
		fflush(stdout);
		_exit(failed);
	}
	CHECK_EQ(status_of(pid), 0);
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	check_signal(&q, SIGTERM);
	kevent_queue_close(&q);
	CHECK_EQ(count_files(), nr);
	check_own_files(2);
}

#define CAUGHT	65536

/* Signals without a place merge, and are not lost. */
static void handler_never_waits_for_room(void)
{
	union sigval value = { .sival_int = 0 };
	struct kevent_queue q;
	struct ukevent ev;
	int round, i;

	if (SIGNALS_ARE_HELD)
		return;
	open_queue(&q);
	CHECK_EQ(ctl_signal(&q, KEVENT_CTL_ADD, RT, 0), 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < CAUGHT + 10; i++) {
			value.sival_int = i;
			if (sigqueue(getpid(), RT, value))
				FAIL("queued");
		}
		for (i = 0; i < CAUGHT; i++) {
			if (kevent_queue_get(&q, &ev, 1, &no_time) != 1 ||
			    kevent_signal_value(&ev) != i)
				CHECK_EQ(kevent_signal_value(&ev), i);
			if (failed)
				return;
		}
		must_be_silent(&q);
	}
	kevent_queue_close(&q);
}

/* FUTEX */

static __u32 word;

static long futex(int op, __u32 value)
{
	return syscall(SYS_futex, &word, op | FUTEX_PRIVATE_FLAG, value, NULL,
		       NULL, 0);
}

static void *wait_for_word(void *arg)
{
	(void)arg;
	futex(FUTEX_WAIT, 0);
	return NULL;
}

/* A user whom the kernel does not tell how the process of another one ended */
static bool become_nobody(void)
{
	if (getuid())
		return !unshare(CLONE_NEWUSER);
	return !setgid(65534) && !setuid(65534);
}

static void watch_an_end(int pid, int start, bool nobody, __u32 status)
{
	struct kevent_queue q;
	struct ukevent ev;

	if (nobody && !become_nobody())
		return;
	open_queue(&q);
	kevent_set_proc(&ev, pid, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(write(start, "", 1), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, NULL), 1);
	CHECK_EQ(ev.ret_data[1], nobody ? 0 : KEVENT_PROC_STATUS);
	CHECK_EQ(ev.ret_data[0], nobody ? 0 : status);
}

/* The process that watches is not the parent. */
static void end_seen_by_another(bool nobody, int code)
{
	int start[2], pid, watcher, status = 1;
	char c;

	CHECK_EQ(pipe(start), 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(read(start[0], &c, 1) == 1 ? code : 99);
	watcher = fork();
	if (!watcher) {
		alarm(SECONDS);
		watch_an_end(pid, start[1], nobody, (__u32)code << 8);
		fflush(stdout);
		_exit(failed);
	}
	waitpid(watcher, &status, 0);
	CHECK_EQ(status, 0);
	kill_child(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void status_is_for_those_who_may_read_it(void)
{
	end_seen_by_another(false, 7);
	end_seen_by_another(false, 0);
	end_seen_by_another(true, 7);
	end_seen_by_another(true, 0);
}

/* A child that ends with @code after a byte, by that number if it is not 0; -1: not for us */
static pid_t child_by_number(pid_t number, int start, int code)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = number ? (__u64)(uintptr_t)&number : 0,
		.set_tid_size = number != 0,
	};
	pid_t pid;
	char c;

	fflush(stdout);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		_exit(read(start, &c, 1) < 0 ? 99 : code);
	return pid;
}

/* The process was reaped, and another one with its number has ended. */
static void status_is_not_that_of_another_process(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	siginfo_t info;
	pid_t pid, other;
	int start[2];

	open_queue(&q);
	CHECK_EQ(pipe(start), 0);
	pid = child_by_number(0, start[0], 7);
	kevent_set_proc(&ev, pid, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(write(start[1], "", 1), 1);
	CHECK_EQ(status_of(pid), 7 << 8);
	CHECK_EQ(write(start[1], "", 1), 1);
	other = child_by_number(pid, start[0], 9);
	CHECK(other == pid || (other < 0 && errno == EPERM));
	if (other == pid)
		CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, NULL), 1);
	CHECK_EQ(ev.ret_data[1], 0);
	CHECK_EQ(ev.ret_data[0], 0);
	kevent_queue_close(&q);
}

/* Waits until so many threads of this process sleep in a system call. */
static void await_sleepers(int call, int nr)
{
	char path[64], text[64];
	struct dirent *entry;
	int found, fd;
	DIR *dir;

	do {
		found = 0;
		dir = opendir("/proc/self/task");
		while (dir && (entry = readdir(dir))) {
			snprintf(path, sizeof(path), "/proc/self/task/%.20s/syscall",
				 entry->d_name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			memset(text, 0, sizeof(text));
			if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
				found += atoi(text) == call;
			close(fd);
		}
		if (dir)
			closedir(dir);
	} while (found < nr);
}

/* The thread of the library may still wait for the word of a watch that has gone. */
static void removed_watch_takes_no_wake_up_away(void)
{
	struct kevent_queue q;
	pthread_t thread;
	struct ukevent ev;
	int i;

	open_queue(&q);
	for (i = 0; i < 2; i++) {
		kevent_set_futex(&ev, &word, 0, KEVENT_FUTEX_PRIVATE, 0, 5);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
		await_sleepers(SYS_futex_waitv, 1);
		CHECK_EQ(pthread_create(&thread, NULL, wait_for_word, NULL), 0);
		await_sleepers(SYS_futex, 1);
		if (i) {
			kevent_set_futex(&ev, &word, 0, KEVENT_FUTEX_PRIVATE,
					 KEVENT_REQ_DISABLED, 5);
			CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
		} else {
			CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
		}
		/* The alarm ends the test if it is lost. */
		CHECK_EQ(futex(FUTEX_WAKE, 1), 1);
		pthread_join(thread, NULL);
		must_be_silent(&q);
	}
	kevent_queue_close(&q);
}

/* Calls that are not of a source: */

/* Which is within each limit */
static void no_event_of_this_queue_waits(void)
{
	struct kevent_queue q;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	open_queue(&q);
	CHECK_EQ(kevent_set_delay(q.fd, 0), 0);
	CHECK_EQ(kevent_set_delay(q.fd, KEVENT_DELAY_MAX), 0);
	CHECK_EQ(kevent_set_delay(q.fd, KEVENT_DELAY_MAX + 1), -EINVAL);
	CHECK(kevent_set_delay(epoll, 100) != 0);
	CHECK_EQ(kevent_set_delay(-1, 100), -EBADF);
	kevent_queue_close(&q);
}

static const struct test tests[] = {
	TEST(span_of_time_ignores_steps_of_its_clock),
	TEST(min_wait_ignores_steps_of_the_clock),
	TEST(point_of_time_follows_its_clock),
	TEST(timer_that_never_expires_is_cancelled),
	TEST(step_ends_each_sleep),
	TEST(step_before_the_queue_hears_of_it_ends_the_sleep),
	TEST(change_behind_an_overflow_is_reported),
	TEST(last_name_goes_once),
	TEST(broken_watch_can_be_modified),
	TEST(watch_that_broke_while_disabled_says_so),
	TEST(failed_modify_loses_no_change),
	TEST(change_before_a_watch_is_for_the_first),
	TEST(file_system_is_not_asked),
	TEST(changes_without_end_hold_up_no_call),
	TEST(event_that_a_look_takes_is_kept),
	TEST(level_of_such_a_file_is_repeated),
	TEST(signal_is_consumed_whoever_blocks_it),
	TEST(each_queue_gets_the_signal),
	TEST(children_have_no_part_in_it),
	TEST(disposition_comes_back),
	TEST(fault_is_delivered_as_well),
	TEST(handler_never_waits_for_room),
	TEST(handler_is_not_left_by_a_jump),
	TEST(handler_needs_nothing_of_its_thread),
	TEST(signal_that_is_one_too_many_comes_back),
	TEST(handler_of_the_program_has_its_mask),
	TEST(handlers_hand_on_without_end),
	TEST(flags_of_the_program_hold),
	TEST(threads_that_stop_leave_the_handler),
	TEST(handler_leaves_other_files_alone),
	TEST(descriptors_of_signals_go_with_the_last_queue),
	TEST(removed_watch_takes_no_wake_up_away),
	TEST(status_is_for_those_who_may_read_it),
	TEST(status_is_not_that_of_another_process),
	TEST(no_event_of_this_queue_waits),
};

int main(void)
{
	return run_tests("sources", tests, ARRAY_SIZE(tests));
}
