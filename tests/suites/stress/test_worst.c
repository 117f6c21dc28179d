// SPDX-License-Identifier: GPL-2.0
/*
 * The longest stretch with interrupts off: for each source the worst input that an
 * unprivileged user can make, up to the limits
 *
 * tests/long/worst runs this, with a plugin of QEMU that measures: tests/vm/irqsoff.c.
 * Each test does the same thing twice: without a watch, which shows the cost of
 * the kernel without kevent, and with as many watches as possible. A line in its
 * report has its name and the number of watches. tests/long/worst judges the figures.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "timers.h"

#define FILES		100000	/* descriptors of the user */
#define FIFO_FILES	20000	/* of one FIFO */
#define USER		1000
#define SLEEPERS	200
#define MANY_SLEEPERS	3200	/* that need not be woken */
#define EPOLLS		2000
#define QUEUES		3000
#define SECONDS		600

struct worst {
	const char	*name;
	unsigned int	watches;
	struct queue	*queues;	/* the newest one is the last */
	unsigned int	nr_queues;
};

/* Root and the user. Only this thread: in others calls would be interrupted. */

static void become(uid_t uid)
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
static void settle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
}

static void without(void (*trigger)(void *arg), void *arg)
{
	settle();
	MARK("B");
	trigger(arg);
	MARK("E");
}

static void with(void (*trigger)(void *arg), void *arg)
{
	settle();
	MARK("C");
	trigger(arg);
	MARK("E");
}

static void start(struct worst *w, const char *name)
{
	const struct rlimit most = { 4 * FILES, 4 * FILES };

	*w = (struct worst){ .name = name };
	w->queues = calloc(QUEUES, sizeof(*w->queues));
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
	become(USER);
}

static void finish(struct worst *w)
{
	become(0);
	note("worst\t%s\t%u", w->name, w->watches);
	CHECK(w->watches > 0);
}

/* Queues */

static struct queue *new_queue(struct worst *w, uint32_t size)
{
	struct queue *q = &w->queues[w->nr_queues];

	MUST(w->nr_queues < QUEUES);
	open_queue(q, size);
	w->nr_queues++;
	return q;
}

static struct queue *last_queue(struct worst *w)
{
	return w->nr_queues ? &w->queues[w->nr_queues - 1] : new_queue(w, 0);
}

static bool is_full(int err)
{
	return err == -ENOSPC || err == -EAGAIN || err == -EMFILE ||
	       err == -ENOMEM;
}

/* Counts a watch; returns false when the limit is reached. */
static bool added(struct worst *w, int err)
{
	if (is_full(err))
		return false;
	MUST(err >= 0);
	w->watches++;
	return true;
}

/* Adds as many as possible: one per queue, then several by their types. */
static void watch_in_queues(struct worst *w, int fd, bool pipe, uint32_t flags)
{
	unsigned int i;

	for (i = 0; i < QUEUES; i++) {
		struct queue *q = new_queue(w, 8);
		int err = pipe ? add_pipe(q->fd, fd, KEVENT_SOCKET_RECV, flags, i) :
				 add_poll(q->fd, fd, KEVENT_POLL_POLLIN, flags, i);

		if (!added(w, err))
			return;
		if (pipe && !added(w, add_poll(q->fd, fd, KEVENT_POLL_POLLIN,
					       flags, i)))
			return;
	}
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

static void start_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	MUST_EQ(pthread_create(&thread, &small, fn, arg), 0);
}

static void sleep_in_queues(struct worst *w)
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

static void poll_in_threads(int *fd)
{
	unsigned int i;

	for (i = 0; i < SLEEPERS; i++)
		start_thread(run_poller, fd);
}

/* By a fault a wake-up finds out that the memory of a ring is gone. */
static void drop_rings(struct worst *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_queues; i++)
		MUST_EQ(madvise(w->queues[i].ring, w->queues[i].bytes,
				MADV_DONTNEED), 0);
}

/* One file, many watches */

enum pipe_case { PLAIN, SLEEPERS_TOO, NO_MEMORY };

static void write_byte(void *arg)
{
	MUST_EQ(write(*(int *)arg, "\1\0\0\0\0\0\0", 8), 8);
}

static void one_pipe(struct worst *w, uint32_t flags, enum pipe_case what)
{
	int fd[2];

	open_pipe(fd);
	if (what == SLEEPERS_TOO)
		poll_in_threads(&fd[0]);
	without(write_byte, &fd[1]);
	take_bytes(fd[0]);
	watch_in_queues(w, fd[0], true, flags);
	if (what == SLEEPERS_TOO)
		sleep_in_queues(w);
	if (what == NO_MEMORY)
		drop_rings(w);
	with(write_byte, &fd[1]);
	finish(w);
}

static void pipe_wakes_all(void)
{
	struct worst w;

	start(&w, "pipe, all are told");
	one_pipe(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, PLAIN);
}

static void pipe_wakes_all_without_memory(void)
{
	struct worst w;

	start(&w, "pipe, all are told, rings are gone");
	one_pipe(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, NO_MEMORY);
}

static void pipe_wakes_all_sleepers(void)
{
	struct worst w;

	start(&w, "pipe, all are told, sleepers");
	one_pipe(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, SLEEPERS_TOO);
}

static void pipe_takes_turns(void)
{
	struct worst w;

	start(&w, "pipe, turns");
	one_pipe(&w, KEVENT_REQ_ET, PLAIN);
}

static void socket_wakes_all(void)
{
	struct worst w;
	int fd[2];

	start(&w, "socket, all are told");
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	without(write_byte, &fd[1]);
	take_bytes(fd[0]);
	watch_in_queues(&w, fd[0], false,
			KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL);
	with(write_byte, &fd[1]);
	finish(&w);
}

static void eventfd_wakes_all(void)
{
	struct worst w;
	int fd;

	start(&w, "eventfd, all are told");
	fd = eventfd(0, EFD_NONBLOCK);
	without(write_byte, &fd);
	take_bytes(fd);
	watch_in_queues(&w, fd, false, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL);
	with(write_byte, &fd);
	finish(&w);
}

/* A FIFO is opened again and again: many files, but one wait queue. */
static int open_fifo(const char *path)
{
	int fd;

	unlink(path);
	MUST_EQ(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_NONBLOCK);
	MUST(fd >= 0);
	return fd;
}

static void one_fifo(struct worst *w, uint32_t flags, bool memory)
{
	const char *path = "/tmp/worst";
	int fd = open_fifo(path), more;
	unsigned int i;

	without(write_byte, &fd);
	take_bytes(fd);
	for (i = 0; i < FIFO_FILES; i++) {
		/* A queue can have each file only once. */
		if (i % 64 == 0 && w->nr_queues < 500)
			new_queue(w, 8);
		more = open(path, O_RDONLY | O_NONBLOCK);
		if (more < 0 ||
		    !added(w, add_pipe(last_queue(w)->fd, more,
				       KEVENT_SOCKET_RECV, flags, i)))
			break;
	}
	if (!memory)
		drop_rings(w);
	with(write_byte, &fd);
	finish(w);
	unlink(path);
}

static void fifo_with_many_files(void)
{
	struct worst w;

	start(&w, "FIFO, many files");
	one_fifo(&w, KEVENT_REQ_ET, true);
}

static void fifo_with_many_files_wakes_all(void)
{
	struct worst w;

	start(&w, "FIFO, all are told");
	one_fifo(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, true);
}

static void fifo_with_many_files_without_memory(void)
{
	struct worst w;

	start(&w, "FIFO, all are told, rings are gone");
	one_fifo(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, false);
}

/* Changes of files */

static void create_file(void *arg)
{
	close(openat(*(int *)arg, "file", O_CREAT | O_WRONLY, 0600));
	unlinkat(*(int *)arg, "file", 0);
}

static int add_inode(int kq, int fd, uint64_t user)
{
	struct ukevent ev;

	kevent_set_inode(&ev, fd, KEVENT_INODE_CREATE | KEVENT_INODE_REMOVE, 0, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

static void watch_directory(struct worst *w, const char *path, bool in_queues)
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

static int open_directory(const char *path)
{
	int fd;

	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	MUST(fd >= 0);
	return fd;
}

static void inode_in_one_queue(void)
{
	struct worst w;
	int fd;

	start(&w, "INODE, one directory");
	fd = open_directory("/tmp/worst-dir");
	without(create_file, &fd);
	watch_directory(&w, "/tmp/worst-dir", false);
	with(create_file, &fd);
	finish(&w);
}

static void inode_in_many_queues(void)
{
	struct worst w;
	int fd;

	start(&w, "INODE, one directory, many queues");
	fd = open_directory("/tmp/worst-dirs");
	without(create_file, &fd);
	watch_directory(&w, "/tmp/worst-dirs", true);
	with(create_file, &fd);
	finish(&w);
}

/* Timers */

static void wait_until(void *arg)
{
	struct timespec *at = arg;

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL))
		;
}

/* Seconds from now: enough time to add the timers, and some more */
static struct timespec later(clockid_t clock, int seconds)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_sec += seconds;
	return at;
}

static void add_timers(struct worst *w, const struct timespec *at,
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

static void timers_at_once(struct worst *w, bool in_queues, bool sleepers)
{
	struct timespec at = later(CLOCK_MONOTONIC, 1);

	without(wait_until, &at);
	at = later(CLOCK_MONOTONIC, 20);
	add_timers(w, &at, 0, in_queues, FILES);
	/* Two of each queue */
	if (sleepers) {
		sleep_in_queues(w);
		sleep_in_queues(w);
	}
	CHECK(later(CLOCK_MONOTONIC, 0).tv_sec < at.tv_sec);
	at.tv_nsec += 500000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	with(wait_until, &at);
	finish(w);
}

static void timers_of_one_queue_at_once(void)
{
	struct worst w;

	start(&w, "TIMER, one instant");
	timers_at_once(&w, false, false);
}

static void timers_of_many_queues_at_once(void)
{
	struct worst w;

	start(&w, "TIMER, one instant, many queues");
	timers_at_once(&w, true, false);
}

static void timers_of_many_queues_wake_sleepers(void)
{
	struct worst w;

	start(&w, "TIMER, one instant, sleepers");
	timers_at_once(&w, true, true);
}

static void set_the_clock(void *arg)
{
	struct timespec now = later(CLOCK_REALTIME, *(int *)arg);

	become(0);
	MUST_EQ(clock_settime(CLOCK_REALTIME, &now), 0);
	become(USER);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
}

static void timers_cancelled_at_once(void)
{
	struct timespec at;
	struct worst w;
	int step = 5;

	start(&w, "TIMER, clock is set");
	without(set_the_clock, &step);
	at = later(CLOCK_REALTIME, 100000);
	add_timers(&w, &at, KEVENT_TIMER_REALTIME | KEVENT_TIMER_CANCEL_ON_SET,
		   false, FILES);
	with(set_the_clock, &step);
	finish(&w);
}

/* Signals */

static void arm_timer(timer_t timer)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 20000000 };

	MUST_EQ(timer_settime(timer, 0, &soon, NULL), 0);
}

static void expire_signal_timer(void *arg)
{
	arm_timer(*(timer_t *)arg);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

static void watch_signal(struct worst *w, int sig, int consume)
{
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < QUEUES - 1; i++) {
		kevent_set_signal(&ev, sig, consume, 0,
				  i);
		new_queue(w, 8);
		if (!added(w, kevent_ctl_one(last_queue(w)->fd, KEVENT_CTL_ADD,
					     &ev)))
			return;
	}
}

static void one_signal(struct worst *w, int sig, int consume)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = sig,
	};
	timer_t timer;

	signal(sig, SIG_IGN);
	MUST_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	without(expire_signal_timer, &timer);
	watch_signal(w, sig, consume);
	with(expire_signal_timer, &timer);
	finish(w);
}

static void signal_observed(void)
{
	struct worst w;

	start(&w, "SIGNAL, observed");
	one_signal(&w, SIGUSR1, 0);
}

static void signal_consumed(void)
{
	struct worst w;

	start(&w, "SIGNAL, consumed");
	one_signal(&w, SIGRTMIN + 3, 1);
}

/* The wake-ups of a queue notify its pollers, as those of an eventfd do. */
static void poll_by_epolls(int fd, unsigned int nr)
{
	struct epoll_event event = { .events = EPOLLIN };
	unsigned int i;

	for (i = 0; i < nr; i++)
		MUST_EQ(epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, &event),
			0);
}

/* POSIX timers */

#define POSIX_TIMERS	10000

static int posix_timers[POSIX_TIMERS];

/* RLIMIT_SIGPENDING limits the timers. */
static bool arm_posix_timer(unsigned int nth, int id, const struct timespec *at)
{
	const struct itimerspec when = { .it_value = *at };

	if (is_full(id))
		return false;
	MUST(id >= 0);
	posix_timers[nth] = id;
	MUST_EQ(syscall(SYS_timer_settime, id, TIMER_ABSTIME, &when, NULL), 0);
	return true;
}

static unsigned int arm_kevent_timers(int kq, const struct timespec *at)
{
	unsigned int i;

	for (i = 0; i < POSIX_TIMERS; i++)
		if (!arm_posix_timer(i, create(kq, CLOCK_MONOTONIC, i), at))
			break;
	return i;
}

/* Blocked signals are queued, one for each timer. */
static unsigned int arm_signal_timers(const struct timespec *at)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN + 5,
	};
	unsigned int i;
	sigset_t set;
	int id;

	sigemptyset(&set);
	sigaddset(&set, event.sigev_signo);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < POSIX_TIMERS; i++) {
		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id))
			id = -errno;
		if (!arm_posix_timer(i, id, at))
			break;
	}
	return i;
}

/*
 * Without kevent the same number of timers queue signals, which takes time too.
 */
static void posix_timers_and_epolls(const char *name, unsigned int epolls)
{
	struct timespec at;
	struct worst w;
	unsigned int i, nr;
	int fd;

	start(&w, name);
	at = later(CLOCK_MONOTONIC, 10);
	nr = arm_signal_timers(&at);
	at.tv_sec++;
	without(wait_until, &at);
	signal(SIGRTMIN + 5, SIG_IGN);	/* drops the queued signals */
	for (i = 0; i < nr; i++)
		syscall(SYS_timer_delete, posix_timers[i]);
	at = later(CLOCK_MONOTONIC, 10);
	fd = new_queue(&w, 0)->fd;
	poll_by_epolls(fd, epolls);
	w.watches = arm_kevent_timers(fd, &at);
	at.tv_sec++;
	with(wait_until, &at);
	finish(&w);
}

static void posix_timers_at_once(void)
{
	posix_timers_and_epolls("POSIX_TIMER, one instant", 0);
}

/* The epolls are woken once, in an interrupt of their own. */
static void posix_timers_at_once_polled(void)
{
	posix_timers_and_epolls("POSIX_TIMER, one instant, epolls", 100);
}

/* Processes */

static int wait_for_ever(void *arg)
{
	(void)arg;
	while (pause())
		;
	return 0;
}

static void end_process(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	MUST_EQ(kill(pid, SIGKILL), 0);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
}

static void process_ends(void)
{
	struct ukevent ev;
	unsigned int i;
	struct worst w;
	pid_t pid;

	start(&w, "PROC, one process");
	pid = start_child(wait_for_ever, NULL);
	without(end_process, &pid);
	pid = start_child(wait_for_ever, NULL);
	for (i = 0; i < QUEUES - 1; i++) {
		kevent_set_proc(&ev, pid, 0, i);
		if (!added(&w, kevent_ctl_one(new_queue(&w, 8)->fd,
					      KEVENT_CTL_ADD, &ev)))
			break;
	}
	with(end_process, &pid);
	finish(&w);
}

/* Futexes */

static void wake_futex(void *arg)
{
	MUST(syscall(SYS_futex, arg, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) >= 0);
}

static void futex_is_woken(void)
{
	static uint32_t word;
	struct ukevent ev;
	unsigned int i;
	struct worst w;

	start(&w, "FUTEX, one word");
	without(wake_futex, &word);
	for (i = 0; i < QUEUES - 1; i++) {
		kevent_set_futex(&ev, &word, 0, 0, 0, i);
		if (!added(&w, kevent_ctl_one(new_queue(&w, 8)->fd,
					      KEVENT_CTL_ADD, &ev)))
			break;
	}
	with(wake_futex, &word);
	finish(&w);
}

/* Calls on a queue with many watches */

static struct ukevent *room;

static void get_all(void *arg)
{
	struct queue *q = arg;

	while (get_events(q->fd, 1, FILES, 0, room) > 0)
		if (room[0].type != KEVENT_USER)
			return;
}

static void get_none(void *arg)
{
	get_events(((struct queue *)arg)->fd, 1, 1, 0, room);
}

static void make_room(void)
{
	room = calloc(FILES, sizeof(*room));
	MUST(room);
}

static void marks_are_collected(void)
{
	struct ukevent ev;
	struct worst w;
	unsigned int i;

	start(&w, "USER, kept marks");
	make_room();
	without(get_none, new_queue(&w, 0));
	for (i = 0; i < 64; i++) {
		kevent_set_user(&ev, i, 1, KEVENT_REQ_KEEP_EACH, i);
		MUST_EQ(kevent_ctl_one(w.queues[0].fd, KEVENT_CTL_ADD, &ev), 0);
		while (w.watches < FILES) {
			kevent_set_mark(&ev, i, 1, i);
			if (kevent_ctl_one(w.queues[0].fd, KEVENT_CTL_READY,
					   &ev) < 0)
				break;
			w.watches++;
		}
	}
	with(get_all, &w.queues[0]);
	finish(&w);
}

/* Ready level watches: reported again and again */
static void watch_ready_files(struct worst *w, struct queue *q)
{
	unsigned int i;
	int fd;

	for (i = 0; i < FILES; i++) {
		fd = eventfd(1, EFD_NONBLOCK);
		if (fd < 0 ||
		    !added(w, add_poll(q->fd, fd, KEVENT_POLL_POLLIN,
				       0, i)))
			return;
	}
}

static void level_watches_are_collected(void)
{
	struct worst w;

	start(&w, "level watches, get_events");
	make_room();
	without(get_none, new_queue(&w, 0));
	watch_ready_files(&w, &w.queues[0]);
	with(get_all, &w.queues[0]);
	finish(&w);
}

static void level_watches_are_collected_again(void)
{
	struct worst w;

	start(&w, "level watches, looked at again");
	make_room();
	without(get_none, new_queue(&w, 0));
	watch_ready_files(&w, &w.queues[0]);
	get_all(&w.queues[0]);
	with(get_all, &w.queues[0]);
	finish(&w);
}

static void call_with_full_ring(void *arg)
{
	struct queue *q = arg;
	int i;

	for (i = 0; i < 3; i++)
		wait_ring(q, 8, 0);
}

/*
 * All watches were delivered once, to a buffer: they are on the list of level
 * watches.
 */
static void full_ring_with_level_watches(void)
{
	struct worst w;

	start(&w, "level watches, full ring");
	make_room();
	without(call_with_full_ring, new_queue(&w, 8));
	watch_ready_files(&w, &w.queues[0]);
	wait_ring(&w.queues[0], 8, 0);
	get_all(&w.queues[0]);
	with(call_with_full_ring, &w.queues[0]);
	finish(&w);
}

static void close_it(void *arg)
{
	close(((struct queue *)arg)->fd);
	/* The work after a grace period counts as well. */
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
}

static void fill_with_marks(struct worst *w, struct queue *q)
{
	unsigned int i;

	for (i = 0; i < 4 * FILES; i++)
		if (!added(w, add_user(q->fd, i, 1, KEVENT_REQ_READY, i)))
			return;
}

static void closing_a_queue_of_marks(void)
{
	struct worst w;

	start(&w, "close, USER");
	without(close_it, new_queue(&w, 0));
	fill_with_marks(&w, new_queue(&w, 0));
	with(close_it, last_queue(&w));
	finish(&w);
}

static void closing_a_queue_of_files(void)
{
	struct worst w;

	start(&w, "close, files");
	without(close_it, new_queue(&w, 0));
	watch_ready_files(&w, new_queue(&w, 0));
	with(close_it, last_queue(&w));
	finish(&w);
}

static void closing_a_queue_of_timers(void)
{
	struct timespec at;
	struct worst w;

	start(&w, "close, TIMER");
	at = later(CLOCK_MONOTONIC, 100000);
	without(close_it, new_queue(&w, 0));
	new_queue(&w, 0);
	add_timers(&w, &at, 0, false, FILES);
	with(close_it, last_queue(&w));
	finish(&w);
}

static void closing_a_queue_of_inodes(void)
{
	struct worst w;

	start(&w, "close, INODE");
	close(open_directory("/tmp/worst-close"));
	without(close_it, new_queue(&w, 0));
	new_queue(&w, 0);
	watch_directory(&w, "/tmp/worst-close", false);
	with(close_it, last_queue(&w));
	finish(&w);
}

static void read_fdinfo(void *arg)
{
	CHECK(fdinfo(((struct queue *)arg)->fd, "kevent-watches") >= 0);
}

static void fdinfo_of_a_large_queue(void)
{
	struct worst w;

	start(&w, "fdinfo");
	without(read_fdinfo, new_queue(&w, 0));
	fill_with_marks(&w, &w.queues[0]);
	with(read_fdinfo, &w.queues[0]);
	finish(&w);
}

static void fdinfo_with_many_sleepers(void)
{
	struct worst w;
	struct queue *q;
	unsigned int i;

	start(&w, "fdinfo, many sleepers");
	q = new_queue(&w, 8);
	without(read_fdinfo, q);
	for (i = 1; i < SLEEPERS; i++)
		w.queues[w.nr_queues++] = *q;
	w.watches = SLEEPERS;
	sleep_in_queues(&w);
	with(read_fdinfo, q);
	finish(&w);
}

static struct ukevent batch[4096];

static void add_batch(void *arg)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(batch); i++)
		kevent_set_user(&batch[i], i, 1, KEVENT_REQ_READY, i);
	kevent_ctl(((struct queue *)arg)->fd, KEVENT_CTL_ADD, ARRAY_SIZE(batch),
		   batch);
}

static void remove_batch(void *arg)
{
	kevent_ctl(((struct queue *)arg)->fd, KEVENT_CTL_REMOVE,
		   ARRAY_SIZE(batch), batch);
}

/* Files that many users have */

#ifdef __LP64__
#define MANY_USERS	40
#define OF_USER		1000

/* Each user watches descriptors of one file, which are those of all. */
static void watch_as_users(struct worst *w, const int *copies)
{
	struct kevent_call call = { .nr = SYS_read };
	struct ukevent ev;
	unsigned int i, k;

	for (i = 0; i < MANY_USERS; i++) {
		become(0);
		become(USER + i);
		new_queue(w, 0);
		for (k = 0; k < OF_USER; k++) {
			call.args[0] = (uint64_t)copies[k];
			kevent_set_bound(&ev, k, &call);
			if (!added(w, kevent_ctl_one(last_queue(w)->fd,
						     KEVENT_CTL_ADD, &ev)))
				break;
		}
	}
	become(0);
}

struct shared {
	int	kq, fd, copy;
};

static void add_and_remove(void *arg)
{
	struct shared *s = arg;

	MUST_EQ(add_pipe(s->kq, s->fd, KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0), 0);
	MUST_EQ(remove_file(s->kq, KEVENT_PIPE, s->fd), 0);
}

static void close_a_copy(void *arg)
{
	struct shared *s = arg;

	close(s->copy);
}

static void shared_file(struct worst *w, void (*trigger)(void *arg))
{
	struct epoll_event other = { .events = EPOLLIN };
	int fd[2], copies[OF_USER], epfd = epoll_create1(0);
	struct shared s;
	unsigned int i;

	open_pipe(fd);
	MUST_EQ(epoll_ctl(epfd, EPOLL_CTL_ADD, fd[0], &other), 0);
	for (i = 0; i < OF_USER; i++) {
		copies[i] = dup(fd[0]);
		MUST(copies[i] >= 0);
	}
	become(0);
	s = (struct shared){ new_queue(w, 0)->fd, fd[0], dup(fd[0]) };
	without(trigger, &s);
	s.copy = dup(fd[0]);
	watch_as_users(w, copies);
	with(trigger, &s);
	finish(w);
}

static void added_to_a_shared_file(void)
{
	struct worst w;

	start(&w, "one file, 40 users, ADD");
	shared_file(&w, add_and_remove);
}

static void shared_file_is_closed(void)
{
	struct worst w;

	start(&w, "one file, 40 users, close");
	shared_file(&w, close_a_copy);
}
#endif

static void batches(void)
{
	struct worst w;

	start(&w, "ADD and REMOVE of 4096");
	w.watches = ARRAY_SIZE(batch);
	without(add_batch, new_queue(&w, 0));
	with(remove_batch, &w.queues[0]);
	finish(&w);
}

static void request_wake_up(void *arg)
{
	MUST(kevent_ctl(((struct queue *)arg)->fd, KEVENT_CTL_READY, 0,
			NULL) >= 0);
}

static void wake_up_is_requested(void)
{
	struct worst w;
	unsigned int i;
	struct queue *q;

	start(&w, "READY, many sleepers");
	q = new_queue(&w, 8);
	without(request_wake_up, q);
	wait_ring(q, 8, 0);
	for (i = 1; i < SLEEPERS; i++)
		w.queues[w.nr_queues++] = *q;
	w.watches = SLEEPERS;
	sleep_in_queues(&w);
	with(request_wake_up, q);
	finish(&w);
}

static void mark_it(void *arg)
{
	MUST(mark_user(((struct queue *)arg)->fd, 1, 1) >= 0);
}

/* Many sleep in one queue, and what happens is for none or for one of them. */

static void *run_reader(void *arg)
{
	struct ukevent ev;

	get_events(((struct queue *)arg)->fd, 1, 1, -1, &ev);
	return NULL;
}

static void *run_collector(void *arg)
{
	struct queue *q = arg;
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC,
		.min_nr = q->size,
	};

	kevent_wait(q->fd, q->size, 0, NULL, KEVENT_FLAGS_ARG, &wait);
	return NULL;
}

static void *run_waiter_for_room(void *arg)
{
	struct queue *q = arg;

	kevent_wait(q->fd, q->size, q->size, NULL, 0, NULL);
	return NULL;
}

static void sleep_in_one_queue(struct worst *w, void *(*fn)(void *arg),
			       unsigned int nr)
{
	struct queue *q = last_queue(w);
	long long before = fdinfo(q->fd, "kevent-waiting");
	unsigned int i;

	for (i = 0; i < nr; i++)
		start_thread(fn, q);
	while (fdinfo(q->fd, "kevent-waiting") < before + nr)
		settle();
	w->watches = (unsigned int)before + nr;
}

/* Each of those that are woken wakes more. */
static void mark_wakes_all(void)
{
	struct worst w;
	struct queue *q;
	int fd;

	start(&w, "WAKEUP_ALL, many sleepers");
	fd = eventfd(0, EFD_NONBLOCK);
	poll_in_threads(&fd);
	without(write_byte, &fd);
	q = new_queue(&w, 8);
	MUST_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_WAKEUP_ALL, 1), 0);
	sleep_in_one_queue(&w, run_reader, MANY_SLEEPERS);
	with(mark_it, q);
	finish(&w);
}

/* The oldest one has the ring, so the event goes there. */
static void write_among(const char *name, void *(*fn)(void *arg))
{
	struct queue *q;
	struct worst w;
	int fd[2];

	start(&w, name);
	open_pipe(fd);
	without(write_byte, &fd[1]);
	take_bytes(fd[0]);
	q = new_queue(&w, 8);
	MUST_EQ(add_pipe(q->fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 1), 0);
	sleep_in_one_queue(&w, run_collector, 1);
	sleep_in_one_queue(&w, fn, MANY_SLEEPERS);
	with(write_byte, &fd[1]);
	finish(&w);
}

static void sleepers_want_several(void)
{
	write_among("sleepers that want several", run_collector);
}

/* Runs when they expire, so that the ring is at hand. */
static void be_there(void *arg)
{
	struct timespec at = *(struct timespec *)arg;
	uint64_t end = kevent_ns(&at) + 20000000;

	wait_until(&at);
	while (now_ns() < end)
		;
}

/* Their events go to the ring, whose memory is there. */
static void sleepers_want_more_timers(void)
{
	struct timespec at;
	unsigned int i;
	struct queue *q;
	struct worst w;

	start(&w, "sleepers that want more timers");
	at = later(CLOCK_MONOTONIC, 1);
	without(be_there, &at);
	q = new_queue(&w, 4096);
	memset(q->ring->event, 0, q->size * sizeof(*q->ring->event));
	sleep_in_one_queue(&w, run_collector, MANY_SLEEPERS);
	at = later(CLOCK_MONOTONIC, 5);
	at.tv_nsec = 10000000;
	for (i = 0; i < ARRAY_SIZE(batch); i++)
		kevent_set_timer(&batch[i], kevent_ns(&at), 0,
				 KEVENT_TIMER_ABSTIME, KEVENT_REQ_ONESHOT, i);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_ADD, 1000, batch), 0);
	CHECK(later(CLOCK_MONOTONIC, 0).tv_sec < at.tv_sec);
	at.tv_nsec = 0;
	with(be_there, &at);
	finish(&w);
}

static void sleepers_have_buffers(void)
{
	write_among("sleepers with buffers", run_reader);
}

/* By marks of the watches of @batch, and the watch of mark_it() has none. */
static void fill_ring(struct queue *q)
{
	int i, nr = (int)q->size;

	for (i = 0; i < nr; i++)
		kevent_set_user(&batch[i], i + 2, 1, KEVENT_REQ_READY, i);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_ADD, nr, batch), 0);
	MUST_EQ(kevent_wait(q->fd, nr, 0, NULL, 0, NULL), nr);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
}

/* The first of them is woken for each mark, and has none. */
static void sleepers_want_room(void)
{
	struct queue *q;
	struct worst w;

	start(&w, "sleepers that want room");
	q = new_queue(&w, 8);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
	without(mark_it, q);
	q = new_queue(&w, 8);
	fill_ring(q);
	sleep_in_one_queue(&w, run_waiter_for_room, MANY_SLEEPERS);
	with(mark_it, q);
	finish(&w);
}

static void commit_all(void *arg)
{
	struct queue *q = arg;

	MUST_EQ(kevent_commit(q->fd, q->size, 0), (int)q->size);
}

/* What waits in the kernel is enough for each of them. */
static void sleepers_get_room(void)
{
	struct queue *q;
	struct worst w;

	start(&w, "sleepers that get room");
	q = new_queue(&w, 4096);
	fill_ring(q);
	without(commit_all, q);
	q = new_queue(&w, 4096);
	fill_ring(q);
	sleep_in_one_queue(&w, run_waiter_for_room, MANY_SLEEPERS);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, q->size, batch),
		(int)q->size);
	settle();
	with(commit_all, q);
	finish(&w);
}

static void queue_is_polled(void)
{
	struct worst w;
	struct queue *q;
	int fd;

	start(&w, "poll of a queue by many epolls");
	fd = eventfd(0, EFD_NONBLOCK);
	poll_by_epolls(fd, EPOLLS);
	without(write_byte, &fd);
	q = new_queue(&w, 0);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
	poll_by_epolls(q->fd, EPOLLS);
	w.watches = EPOLLS;
	with(mark_it, q);
	finish(&w);
}

/*
 * A signalfd uses the wait queue of the process that polls it, and that wait
 * queue ends with the process. A child shares the descriptors, so they stay
 * open.
 */
static pid_t start_sharing_files(int (*fn)(void *arg), void *arg)
{
	pid_t pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		_exit(fn(arg));
	MUST(pid > 0);
	return pid;
}

struct doomed {
	struct worst	w;
	int		fd, step[2];
};

static int watch_and_wait(void *arg)
{
	struct doomed *d = arg;
	unsigned int i;
	int err;

	for (i = 0; i < d->w.nr_queues; i++) {
		err = add_poll(d->w.queues[i].fd, d->fd, KEVENT_POLL_POLLIN,
			       KEVENT_REQ_ET, i);
		if (err)
			break;
		d->w.watches++;
	}
	if (write(d->step[1], "", 1) != 1)
		return 1;
	return wait_for_ever(NULL);
}

static void wait_queue_dies(void)
{
	struct doomed *d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char byte;
	pid_t pid;

	MUST(d != MAP_FAILED);
	start(&d->w, "POLL, wait queue dies");
	MUST_EQ(pipe(d->step), 0);
	d->fd = signalfd(-1, &(sigset_t){}, 0);
	MUST(d->fd >= 0);
	pid = start_sharing_files(watch_and_wait, d);
	MUST_EQ(read(d->step[0], &byte, 1), 1);
	without(end_process, &pid);
	while (d->w.nr_queues < QUEUES)
		new_queue(&d->w, 8);
	pid = start_sharing_files(watch_and_wait, d);
	MUST_EQ(read(d->step[0], &byte, 1), 1);
	with(end_process, &pid);
	finish(&d->w);
}

#define WORST(fn)	TEST_LIMIT(fn, SECONDS)

static const struct test_case cases[] = {
	WORST(pipe_wakes_all),
	WORST(pipe_wakes_all_sleepers),
	WORST(pipe_wakes_all_without_memory),
	WORST(pipe_takes_turns),
	WORST(socket_wakes_all),
	WORST(eventfd_wakes_all),
	WORST(fifo_with_many_files),
	WORST(fifo_with_many_files_wakes_all),
	WORST(fifo_with_many_files_without_memory),
	WORST(wait_queue_dies),
	WORST(inode_in_one_queue),
	WORST(inode_in_many_queues),
	WORST(timers_of_one_queue_at_once),
	WORST(timers_of_many_queues_at_once),
	WORST(timers_of_many_queues_wake_sleepers),
	WORST(timers_cancelled_at_once),
	WORST(signal_observed),
	WORST(signal_consumed),
	WORST(posix_timers_at_once),
	WORST(posix_timers_at_once_polled),
	WORST(process_ends),
	WORST(futex_is_woken),
	WORST(marks_are_collected),
	WORST(mark_wakes_all),
	WORST(sleepers_want_several),
	WORST(sleepers_want_more_timers),
	WORST(sleepers_have_buffers),
	WORST(sleepers_want_room),
	WORST(sleepers_get_room),
	WORST(queue_is_polled),
	WORST(wake_up_is_requested),
	WORST(level_watches_are_collected),
	WORST(level_watches_are_collected_again),
	WORST(full_ring_with_level_watches),
	WORST(closing_a_queue_of_marks),
	WORST(closing_a_queue_of_files),
	WORST(closing_a_queue_of_timers),
	WORST(closing_a_queue_of_inodes),
	WORST(fdinfo_of_a_large_queue),
	WORST(fdinfo_with_many_sleepers),
#ifdef __LP64__
	WORST(added_to_a_shared_file),
	WORST(shared_file_is_closed),
#endif
	WORST(batches),
	{}
};

const struct test_suite worst_suite = { .name = "worst", .cases = cases };
