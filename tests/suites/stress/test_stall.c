// SPDX-License-Identifier: GPL-2.0
/*
 * The longest time in which a real-time task does not run: for what users can make large together,
 * as much as the limits allow
 *
 * tests/long/worst runs this, on one CPU whose clock counts instructions. A thread with a real-time
 * priority sleeps until the next 100 us, again and again. How late it is at worst is what
 * interrupts, softirqs and tasks that are not preempted take from it. Each input is made by several
 * users, twice as large each time until a limit stops it, and once without a watch. A line in the
 * report has its name, its size, and how late the thread was. tests/long/worst judges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

#define USER		2000	/* the first of them */
#define FILES		300000	/* descriptors */
#define SECONDS		1800
#define PERIOD_NS	100000

/**
 * struct input - what is made large
 * @name:	in the report
 * @first:	its smallest size
 * @most:	a size where it ends if no limit is found
 * @build:	makes it as large as that, or as a limit allows; returns how large
 * @trigger:	what may take long
 */
struct input {
	const char	*name;
	unsigned int	first, most;
	unsigned int	(*build)(unsigned int size);
	void		(*trigger)(void);
};

/* What a child has found */
struct found {
	unsigned int	size;
	uint64_t	late;
};

/* The task that wants to run */

static atomic_bool watching, over;
static uint64_t late;

static void *run_real_time(void *arg)
{
	const struct sched_param first = { .sched_priority = 50 };
	uint64_t now, at;
	struct timespec ts;

	(void)arg;
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first))
		abort();
	for (at = now_ns(); !over;) {
		at += PERIOD_NS;
		ts = (struct timespec){ .tv_sec = at / 1000000000,
					.tv_nsec = at % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		now = now_ns();
		if (watching && now - at > late)
			late = now - at;
		at = now - now % PERIOD_NS;
	}
	return NULL;
}

/* What RCU, workers and the way to user mode have left is done meanwhile. */
static void settle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
}

static void measure(const struct input *input, unsigned int size,
		    struct found *found)
{
	pthread_t thread;

	found->size = input->build(size);
	if (pthread_create(&thread, NULL, run_real_time, NULL))
		abort();
	settle();
	watching = true;
	input->trigger();
	settle();
	over = true;
	pthread_join(thread, NULL);
	found->late = late;
}

/* Each size in a child, whose end takes all of it away */
static void measure_in_child(const struct input *input, unsigned int size,
			     struct found *found)
{
	pid_t pid = fork();

	*found = (struct found){};
	if (!pid) {
		measure(input, size, found);
		_exit(0);
	}
	MUST(pid > 0);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
	CHECK(found->late > 0);
	settle();
}

static void run_input(const struct input *input)
{
	const struct rlimit files = { 2 * FILES, 2 * FILES };
	struct found *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int size;

	MUST(found != MAP_FAILED);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	measure_in_child(input, 0, found);
	note("stall\t%s\t0\t%llu", input->name,
	     (unsigned long long)found->late / 1000);
	for (size = input->first; size <= input->most; size *= 2) {
		measure_in_child(input, size, found);
		note("stall\t%s\t%u\t%llu", input->name, found->size,
		     (unsigned long long)found->late / 1000);
		if (found->size < size)
			return;
	}
}

/* Users: many in one process. Their queues stay theirs. */

static void become(uid_t uid)
{
	if (syscall(SYS_setresuid, -1, 0, -1) ||
	    syscall(SYS_setresuid, uid, uid, 0))
		abort();
}

static int queue_of(unsigned int user)
{
	int kq;

	become(USER + user);
	kq = kevent_init(NULL, 0, 0);
	become(0);
	if (kq < 0)
		abort();
	return kq;
}

/* One open file, which users share */

static int shared, copy, other_end;

static void share_file(void)
{
	shared = open("/tmp/stall", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	copy = dup(shared);
	if (shared < 0 || copy < 0)
		abort();
}

static void share_pipe(void)
{
	int fd[2];

	open_pipe(fd);
	shared = fd[0];
	other_end = fd[1];
}

/* Watches of @fd, @each of a user, from user @user on. Returns how many there are. */
static unsigned int watch_as_users(int fd, uint32_t flags, unsigned int user,
				   unsigned int each, unsigned int size)
{
	unsigned int nr;
	int kq, err;

	for (nr = 0; nr < size; nr++) {
		kq = queue_of(user + nr / each);
		become(USER + user + nr / each);
		err = add_poll(kq, fd, KEVENT_POLL_POLLIN, flags, nr);
		become(0);
		if (err < 0)
			break;
	}
	return nr;
}

/* The oldest watches go, which are at the end of the list of the file. */
static unsigned int build_close(unsigned int size)
{
	const uint32_t flags = KEVENT_REQ_DISABLED;
	unsigned int nr;

	share_file();
	nr = watch_as_users(shared, flags, 0, 1000, size / 4);
	return nr + watch_as_users(copy, flags, 1 + size / 4000, 1000, size - nr);
}

static void close_shared(void)
{
	close(shared);
}

/* Each that goes hands on what it was told, to one that goes next. */
static unsigned int build_close_notified(unsigned int size)
{
	share_pipe();
	return watch_as_users(shared, KEVENT_REQ_ET, 0, 192, size);
}

static void write_and_close_shared(void)
{
	if (write(other_end, "", 1) != 1)
		abort();
	close(shared);
}

/* Signals that watches have kept */

#define OF_SIGNAL	16	/* watches of a signal to a process */

static struct queue keepers[OF_SIGNAL];
static int go[2];
static pid_t child;

/* The kernel keeps none of them: they are ignored. */
static unsigned int keep_signals(unsigned int size)
{
	const struct rlimit most = { 2 * FILES, 2 * FILES };
	unsigned int i, each = size / OF_SIGNAL;
	struct ukevent ev;

	signal(SIGRTMIN, SIG_IGN);
	if (setrlimit(RLIMIT_SIGPENDING, &most))
		abort();
	for (i = 0; i < OF_SIGNAL; i++) {
		keepers[i].fd = queue_of(i);
		kevent_set_signal(&ev, SIGRTMIN, 0, 0, i);
		if (kevent_ctl_one(keepers[i].fd, KEVENT_CTL_ADD, &ev))
			abort();
	}
	for (i = 0; i < each; i++)
		if (sigqueue(getpid(), SIGRTMIN, (union sigval){}))
			break;
	return i * OF_SIGNAL;
}

static unsigned int build_signals_exit(unsigned int size)
{
	unsigned int nr;
	int up[2];
	char byte;

	if (pipe(go) || pipe(up))
		abort();
	child = fork();
	if (!child) {
		nr = size ? keep_signals(size) : 0;
		if (write(up[1], &nr, sizeof(nr)) != sizeof(nr) ||
		    read(go[0], &byte, 1) != 1)
			abort();
		_exit(0);
	}
	if (child < 0 || read(up[0], &nr, sizeof(nr)) != sizeof(nr))
		abort();
	return nr;
}

static void end_child(void)
{
	if (write(go[1], "", 1) != 1 || waitpid(child, NULL, 0) != child)
		abort();
}

static unsigned int build_signals_remove(unsigned int size)
{
	return size ? keep_signals(size) : 0;
}

static void remove_signals(void)
{
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < OF_SIGNAL; i++) {
		kevent_set_signal(&ev, SIGRTMIN, 0, 0, i);
		kevent_ctl_one(keepers[i].fd, KEVENT_CTL_REMOVE, &ev);
	}
}

/* Timers of many queues at one instant */

#define OF_QUEUE	128	/* timers */

static uint64_t instant;

/* Time to add as many, and then some */
static void set_instant(unsigned int nr)
{
	instant = now_ns() + 1000000000 + nr * 12000ull;
}

static bool add_timers_at(int kq, uint64_t at, unsigned int nr)
{
	static struct ukevent ev[OF_QUEUE];
	unsigned int i;

	for (i = 0; i < nr; i++)
		kevent_set_timer(&ev[i], at, 0, KEVENT_TIMER_ABSTIME, 0, i);
	return !kevent_ctl(kq, KEVENT_CTL_ADD, (int)nr, ev);
}

static unsigned int build_timers(unsigned int size)
{
	unsigned int nr;

	set_instant(size * OF_QUEUE);
	for (nr = 0; nr < size; nr++)
		if (!add_timers_at(queue_of(nr / 500), instant, OF_QUEUE))
			break;
	return nr;
}

static unsigned int build_timers_one_each(unsigned int size)
{
	unsigned int nr;

	set_instant(10 * size);
	for (nr = 0; nr < size; nr++)
		if (!add_timers_at(queue_of(nr / 500), instant, 1))
			break;
	return nr;
}

static unsigned int build_timerfds(unsigned int size)
{
	struct itimerspec its = {};
	unsigned int nr;
	int fd;

	set_instant(10 * size);
	its.it_value.tv_sec = instant / 1000000000;
	its.it_value.tv_nsec = instant % 1000000000;
	for (nr = 0; nr < size; nr++) {
		fd = timerfd_create(CLOCK_MONOTONIC, 0);
		if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, NULL))
			break;
	}
	return nr;
}

static void be_past_it(void)
{
	if (now_ns() > instant)
		abort();
	while (now_ns() < instant + 1000000000)
		settle();
}

/* Wake-ups of what many users watch: 192 of each in a wait queue, 64 of a process */

static unsigned int build_pipe(unsigned int size)
{
	share_pipe();
	return watch_as_users(shared, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, 0,
			      192, size);
}

static unsigned int build_pipe_turns(unsigned int size)
{
	share_pipe();
	return watch_as_users(shared, KEVENT_REQ_ET, 0, 192, size);
}

static unsigned int build_fifo(unsigned int size)
{
	unsigned int nr;
	int kq, fd, err;

	unlink("/tmp/stall-fifo");
	if (mkfifo("/tmp/stall-fifo", 0600))
		abort();
	other_end = open("/tmp/stall-fifo", O_RDWR | O_NONBLOCK);
	for (nr = 0; nr < size; nr++) {
		kq = queue_of(nr / 192);
		fd = open("/tmp/stall-fifo", O_RDONLY | O_NONBLOCK);
		become(USER + nr / 192);
		err = add_pipe(kq, fd, KEVENT_SOCKET_RECV, KEVENT_REQ_ET, nr);
		become(0);
		if (err)
			break;
	}
	return nr;
}

static void write_shared(void)
{
	if (write(other_end, "", 1) != 1)
		abort();
}

/* A child that waits for one of its own, which does nothing. Returns the latter. */
static pid_t start_grandchild(void)
{
	int up[2], ret;
	pid_t pid;
	char byte;

	if (pipe(go) || pipe(up))
		abort();
	child = fork();
	if (!child) {
		pid = fork();
		if (!pid)
			_exit(read(go[0], &byte, 1) != 1);
		ret = write(up[1], &pid, sizeof(pid)) != sizeof(pid);
		_exit(ret || waitpid(pid, NULL, 0) != pid);
	}
	if (read(up[0], &pid, sizeof(pid)) != sizeof(pid))
		abort();
	return pid;
}

static unsigned int build_exit(unsigned int size)
{
	pid_t pid = start_grandchild();
	struct ukevent ev;
	unsigned int nr;

	for (nr = 0; nr < size; nr++) {
		kevent_set_proc(&ev, pid, 0, nr);
		if (kevent_ctl_one(queue_of(nr / 64), KEVENT_CTL_ADD, &ev))
			break;
	}
	return nr;
}

static unsigned int build_inode(unsigned int size)
{
	struct ukevent ev;
	unsigned int nr;
	int kq, fd;

	unlink("/tmp/stall-inode");
	other_end = open("/tmp/stall-inode", O_RDWR | O_CREAT, 0666);
	for (nr = 0; nr < size; nr++) {
		kq = queue_of(nr / 128);
		fd = open("/tmp/stall-inode", O_RDONLY);
		kevent_set_inode(&ev, fd, KEVENT_INODE_MODIFY, KEVENT_REQ_ET, nr);
		if (kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev))
			break;
	}
	return nr;
}

/* What RCU frees after a grace period */
static unsigned int build_many(unsigned int size)
{
	unsigned int nr;

	keepers[0].fd = queue_of(0);
	for (nr = 0; nr < size; nr++)
		if (add_user(keepers[0].fd, nr, 1, 0, nr))
			break;
	return nr;
}

static void close_queue_of_many(void)
{
	close(keepers[0].fd);
}

/* Inputs */

static void shared_file_is_closed(void)
{
	run_input(&(struct input){ "close, one file", 500, 16000, build_close,
				   close_shared });
}

static void shared_pipe_is_closed(void)
{
	run_input(&(struct input){ "close, one pipe, told", 240, 7680,
				   build_close_notified, write_and_close_shared });
}

static void kept_signals_end(void)
{
	run_input(&(struct input){ "SIGNAL, exit", 32768, 262144,
				   build_signals_exit, end_child });
}

static void kept_signals_are_removed(void)
{
	run_input(&(struct input){ "SIGNAL, REMOVE", 32768, 262144,
				   build_signals_remove, remove_signals });
}

static void timers_expire(void)
{
	run_input(&(struct input){ "TIMER, 128 in each queue", 500, 4000,
				   build_timers, be_past_it });
}

static void timers_of_queues_expire(void)
{
	run_input(&(struct input){ "TIMER, one in each queue", 1000, 16000,
				   build_timers_one_each, be_past_it });
}

/* What the kernel takes for as many of its own */
static void timerfds_expire(void)
{
	run_input(&(struct input){ "timerfds", 1000, 16000, build_timerfds,
				   be_past_it });
}

static void pipe_of_users_is_written(void)
{
	run_input(&(struct input){ "pipe, all are told", 192, 6144, build_pipe,
				   write_shared });
}

static void pipe_of_users_takes_turns(void)
{
	run_input(&(struct input){ "pipe, turns", 192, 6144, build_pipe_turns,
				   write_shared });
}

static void fifo_of_users_is_written(void)
{
	run_input(&(struct input){ "FIFO, many files", 192, 12288, build_fifo,
				   write_shared });
}

static void process_of_users_ends(void)
{
	run_input(&(struct input){ "PROC, exit", 64, 4096, build_exit, end_child });
}

static void inode_of_users_changes(void)
{
	run_input(&(struct input){ "INODE, write", 128, 4096, build_inode,
				   write_shared });
}

static void queue_of_many_is_closed(void)
{
	run_input(&(struct input){ "close of a queue", 25000, 400000, build_many,
				   close_queue_of_many });
}

#define STALL(fn)	TEST_LIMIT(fn, SECONDS)

static const struct test_case cases[] = {
	STALL(shared_file_is_closed),
	STALL(shared_pipe_is_closed),
	STALL(kept_signals_end),
	STALL(kept_signals_are_removed),
	STALL(pipe_of_users_is_written),
	STALL(pipe_of_users_takes_turns),
	STALL(fifo_of_users_is_written),
	STALL(process_of_users_ends),
	STALL(inode_of_users_changes),
	STALL(queue_of_many_is_closed),
	STALL(timers_expire),
	STALL(timers_of_queues_expire),
	STALL(timerfds_expire),
	{}
};

const struct test_suite stall_suite = {
	.name = "stall",
	.cases = cases,
	.only_by_name = true,
};
