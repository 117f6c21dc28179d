// SPDX-License-Identifier: GPL-2.0
/* Inputs with the longest stretches with interrupts off: a user, watches, threads */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worst.h"

/* Root and the user. Only this thread: in others calls would be interrupted. */

void become(uid_t uid)
{
	MUST_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
	MUST_EQ(syscall(SYS_setresuid, uid, uid, 0), 0);
}

/*
 * The plugin recognises these instructions, which do nothing; see callback_of()
 * there.
 */
#if defined(__x86_64__) || defined(__i386__)
#define MARK(letter) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, '" letter "', 'V', 'E', 'K'" \
			 ::: "memory")
#else
#define MARK(letter)	do { } while (0)
#endif

/* Work that others have left, such as after a grace period, is done first. */
void settle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
}

void without(void (*trigger)(void *arg), void *arg)
{
	settle();
	MARK("B");
	trigger(arg);
	MARK("E");
}

void with(void (*trigger)(void *arg), void *arg)
{
	settle();
	MARK("C");
	trigger(arg);
	MARK("E");
}

void start(struct worst *w, const char *name)
{
	const struct rlimit most = { 4 * FILES, 4 * FILES };

	*w = (struct worst){ .name = name };
	w->queues = calloc(QUEUES, sizeof(*w->queues));
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
	become(USER);
}

void finish(struct worst *w)
{
	become(0);
	note("worst\t%s\t%u", w->name, w->watches);
	CHECK(w->watches > 0);
}

/* Queues */

struct queue *new_queue(struct worst *w, uint32_t size)
{
	struct queue *q = &w->queues[w->nr_queues];

	MUST(w->nr_queues < QUEUES);
	open_queue(q, size);
	w->nr_queues++;
	return q;
}

struct queue *last_queue(struct worst *w)
{
	return w->nr_queues ? &w->queues[w->nr_queues - 1] : new_queue(w, 0);
}

bool is_full(int err)
{
	return err == -ENOSPC || err == -EAGAIN || err == -EMFILE ||
	       err == -ENOMEM;
}

/* Counts a watch; returns false when the limit is reached. */
bool added(struct worst *w, int err)
{
	if (is_full(err))
		return false;
	MUST(err >= 0);
	w->watches++;
	return true;
}

static long sleep_in_queue(void *arg)
{
	struct queue *q = arg;

	return kevent_wait(q->fd, 8, 0, NULL, 0, NULL);
}

/* Small stacks: there may be many. */
static void *run_sleeper(void *arg)
{
	sleep_in_queue(arg);
	return NULL;
}

void start_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	MUST_EQ(pthread_create(&thread, &small, fn, arg), 0);
}

void sleep_in_queues(struct worst *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_queues && i < SLEEPERS; i++)
		start_thread(run_sleeper, &w->queues[i]);
}

/* A write that wakes many threads takes long without kevent, too. */
static void *run_poller(void *arg)
{
	struct pollfd pfd = { .fd = *(int *)arg, .events = POLLIN };

	poll(&pfd, 1, -1);
	return NULL;
}

void poll_in_threads(int *fd)
{
	unsigned int i;

	for (i = 0; i < SLEEPERS; i++)
		start_thread(run_poller, fd);
}

void write_byte(void *arg)
{
	MUST_EQ(write(*(int *)arg, "\1\0\0\0\0\0\0", 8), 8);
}

static int add_inode(int kq, int fd, uint64_t user)
{
	struct ukevent ev;

	kevent_set_inode(&ev, fd, KEVENT_INODE_CREATE | KEVENT_INODE_REMOVE, 0, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

void watch_directory(struct worst *w, const char *path, bool in_queues)
{
	unsigned int i;
	int fd;

	for (i = 0; i < FILES / 10; i++) {
		if (in_queues && i % 8 == 0 && w->nr_queues < QUEUES - 1)
			new_queue(w, 8);
		fd = open(path, O_RDONLY | O_DIRECTORY);
		if (fd < 0 || !added(w, add_inode(last_queue(w)->fd, fd, i)))
			return;
	}
}

int open_directory(const char *path)
{
	int fd;

	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	MUST(fd >= 0);
	return fd;
}

/* Timers */

void wait_until(void *arg)
{
	struct timespec *at = arg;

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL))
		;
}

/* Seconds from now: enough time to add the timers, and some more */
struct timespec later(clockid_t clock, int seconds)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_sec += seconds;
	return at;
}

void add_timers(struct worst *w, const struct timespec *at,
		uint32_t event, bool in_queues, unsigned int most)
{
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < most; i++) {
		if (in_queues && i % 100 == 0 && w->nr_queues < QUEUES - 1)
			new_queue(w, 8);
		kevent_set_timer(&ev, kevent_ns(at), 0,
				 event | KEVENT_TIMER_ABSTIME, 0, i);
		if (!added(w, kevent_ctl_one(last_queue(w)->fd, KEVENT_CTL_ADD,
					     &ev)))
			return;
	}
}

/* The wake-ups of a queue notify its pollers, as those of an eventfd do. */
void poll_by_epolls(int fd, unsigned int nr)
{
	struct epoll_event event = { .events = EPOLLIN };
	unsigned int i;

	for (i = 0; i < nr; i++)
		MUST_EQ(epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, &event),
			0);
}

/* Processes */

int wait_for_ever(void *arg)
{
	(void)arg;
	while (pause())
		;
	return 0;
}

void end_process(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	MUST_EQ(kill(pid, SIGKILL), 0);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
}
