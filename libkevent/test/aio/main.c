// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Chains that threads run, on queues that the library makes of epoll
 *
 * Each test runs in a process of its own, which an alarm ends. A call that blocks
 * reads from a pipe, so that the test decides when it goes on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fallback/fallback.h"
#include "libkevent.h"
#include "../processes.h"

#define SIZE		8U
#define REFUSED		KEVENT_CALL_REFUSED
#define SUBMITTED	KEVENT_CALL_SUBMITTED
#define COOKIE		0x8000000000000005ULL

static const struct timespec no_time;

/* Queues and chains */

static KEVENT_RING_STORAGE(SIZE) mem;
static struct kevent_queue q;

static void open_queue(void)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), 0);
}

/* Chains say here that a call is made, and wait here. */
static int said[2], gate[2];

static void open_pipes(void)
{
	CHECK_EQ(pipe2(said, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK_EQ(pipe2(gate, O_CLOEXEC), 0);
}

struct work {
	struct kevent_call	calls[3];
	struct kevent_chain	chain;
	char			letter, got;
};

/* A chain that says a letter, and then waits for one if it is to block */
static void make_work(struct work *w, char letter, bool block)
{
	w->letter = letter;
	kevent_chain_init(&w->chain, w->calls, ARRAY_SIZE(w->calls));
	kevent_chain_call(&w->chain, SYS_write, said[1], &w->letter, 1);
	if (block)
		kevent_chain_call(&w->chain, SYS_read, gate[0], &w->got, 1);
	CHECK_EQ(kevent_chain_end(&w->chain), 0);
}

static int submit(const struct work *w)
{
	return kevent_chain_submit(q.fd, &w->chain, (__u64)w->letter);
}

/* The letters that chains have written so far */
static const char *all_said(void)
{
	static char text[64];
	ssize_t len = read(said[0], text, sizeof(text) - 1);

	text[len > 0 ? len : 0] = 0;
	return text;
}

/* Wait until a chain says something. */
static char next_said(void)
{
	char letter;

	while (read(said[0], &letter, 1) != 1)
		sched_yield();
	return letter;
}

static void let_go(void)
{
	CHECK_EQ(write(gate[1], "g", 1), 1);
}

/* The next event, which is of a chain; returns its cookie. */
static __u64 next_event(struct ukevent *ev)
{
	memset(ev, 0xff, sizeof(*ev));
	CHECK_EQ(kevent_queue_get(&q, ev, 1, NULL), 1);
	CHECK_EQ(ev->type, KEVENT_AIO);
	CHECK_EQ(ev->event, KEVENT_AIO_DONE);
	CHECK_EQ(ev->ret_flags, KEVENT_RET_DONE);
	return ev->ptr;
}

static __s64 result_of(const struct ukevent *ev)
{
	return (__s64)((__u64)ev->ret_data[1] << 32 | ev->ret_data[0]);
}

static int no_events(void)
{
	struct ukevent ev;

	return kevent_queue_get(&q, &ev, 1, &no_time);
}

/* Threads */

struct server {
	pthread_t	thread;
	int		queue;
	__u32		limit;
	int		seconds;	/* 0: without end */
	int		ret;
	bool		done;
};

static void *serve(void *arg)
{
	struct server *s = arg;
	struct timespec timeout = { .tv_sec = s->seconds };

	s->ret = kevent_chain_serve(s->queue, s->limit,
				    s->seconds ? &timeout : NULL);
	__atomic_store_n(&s->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void wait_asleep(int nr)
{
	while (kevent_fb_info(q.fd, "kevent-servers-asleep") < nr)
		sched_yield();
}

static bool sleeps(const char *thread)
{
	char name[300], text[300], *end;
	ssize_t len;
	int fd;

	snprintf(name, sizeof(name), "/proc/self/task/%s/stat", thread);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = 0;
	end = strrchr(text, ')');
	return end && end[2] == 'S';
}

/* Wait until all threads but this one sleep in a call. */
static void wait_still(void)
{
	struct dirent *entry;
	bool awake;
	DIR *dir;

	do {
		awake = false;
		dir = opendir("/proc/self/task");
		while ((entry = readdir(dir)))
			if (*entry->d_name != '.' &&
			    atoi(entry->d_name) != getpid())
				awake |= !sleeps(entry->d_name);
		closedir(dir);
	} while (awake);
}

static void start(struct server *s, __u32 limit)
{
	*s = (struct server){
		.queue = q.fd, .limit = limit, .seconds = s->seconds,
	};
	CHECK_EQ(pthread_create(&s->thread, NULL, serve, s), 0);
}

static int join(struct server *s)
{
	pthread_join(s->thread, NULL);
	return s->ret;
}

static int serve_now(__u32 limit)
{
	return kevent_chain_serve(q.fd, limit, &no_time);
}

/* Chains and their events */

static void chain_ends_with_an_event(void)
{
	struct work w;
	struct ukevent ev;

	open_queue();
	open_pipes();
	make_work(&w, 'a', false);
	CHECK_EQ(kevent_chain_submit(q.fd, &w.chain, COOKIE), SUBMITTED);
	CHECK_EQ(no_events(), 0);
	CHECK(!strcmp(all_said(), ""));
	CHECK_EQ(serve_now(1), 1);
	CHECK(!strcmp(all_said(), "a"));
	CHECK_EQ(next_event(&ev), COOKIE);
	CHECK_EQ(ev.id.raw_u64, 0);
	CHECK_EQ(result_of(&ev), 1);
	CHECK_EQ(ev.req_flags, KEVENT_REQ_ONESHOT);
	CHECK_EQ(kevent_chain_finish(&w.chain, &ev), 0);
	CHECK_EQ(no_events(), 0);
	CHECK_EQ(serve_now(1), 0);
}

static void queue_without_a_ring_will_do(void)
{
	struct ukevent ev;
	struct work w;

	setenv("KEVENT_BACKEND", "epoll", 1);
	q.fd = kevent_init(NULL, 0, 0);
	open_pipes();
	make_work(&w, 'a', false);
	CHECK_EQ(submit(&w), SUBMITTED);
	CHECK_EQ(serve_now(1), 1);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &no_time, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 'a');
	CHECK_EQ(ev.ret_data[0], 1);
}

static void chains_are_run_in_order(void)
{
	struct work w[4];
	struct ukevent ev;
	char i;

	open_queue();
	open_pipes();
	for (i = 0; i < 4; i++) {
		make_work(&w[(int)i], (char)('a' + i), false);
		CHECK_EQ(submit(&w[(int)i]), SUBMITTED);
	}
	CHECK_EQ(serve_now(1), 4);
	CHECK(!strcmp(all_said(), "abcd"));
	for (i = 0; i < 4; i++)
		CHECK_EQ(next_event(&ev), 'a' + i);
}

/* A result has 64 bits, and its sign. */
static void event_says_how_the_chain_ended(void)
{
	struct kevent_call calls[4];
	struct kevent_chain c;
	struct ukevent ev;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	open_queue();
	kevent_chain_init(&c, calls, 4);
	kevent_chain_call(&c, SYS_getpid);
	kevent_chain_call(&c, SYS_read, -1, NULL, 1);
	kevent_chain_call(&c, SYS_getppid);
	CHECK_EQ(kevent_chain_end(&c), 0);
	CHECK_EQ(kevent_chain_submit(q.fd, &c, 1), SUBMITTED);
	CHECK_EQ(serve_now(1), 1);
	next_event(&ev);
	CHECK_EQ(ev.id.raw_u64, 1);
	CHECK_EQ(result_of(&ev), -EBADF);
	CHECK_EQ(kevent_chain_finish(&c, &ev), 1);
	CHECK_EQ(calls[0].result, getpid());
	CHECK_EQ(calls[1].result, -EBADF);
	CHECK_EQ(calls[2].result, 0);
	kevent_chain_init(&c, calls, 4);
	kevent_chain_call(&c, SYS_lseek, fd, 0, SEEK_CUR);
	kevent_chain_call(&c, SYS_exit, 9);
	CHECK_EQ(kevent_chain_end(&c), 0);
	calls[0].on_zero = 1;
	CHECK_EQ(kevent_chain_submit(q.fd, &c, 1), SUBMITTED);
	CHECK_EQ(serve_now(1), 1);
	next_event(&ev);
	CHECK_EQ(ev.id.raw_u64, 1 | REFUSED);
	CHECK_EQ(result_of(&ev), -ENOSYS);
	CHECK_EQ(kevent_chain_finish(&c, &ev), 1 | REFUSED);
}

static int add(struct ukevent *ev)
{
	return kevent_ctl_one(q.fd, KEVENT_CTL_ADD, ev);
}

static void chain_begins_at_the_given_entry(void)
{
	struct work w;
	struct ukevent ev;

	open_queue();
	open_pipes();
	make_work(&w, 'a', true);
	kevent_set_aio(&ev, w.calls, 2, 1, KEVENT_REQ_WAKEUP_ALL, COOKIE);
	CHECK_EQ(add(&ev), 0);
	let_go();
	CHECK_EQ(serve_now(1), 1);
	CHECK(!strcmp(all_said(), ""));
	CHECK_EQ(w.got, 'g');
	CHECK_EQ(next_event(&ev), COOKIE);
	CHECK_EQ(ev.id.raw_u64, 1);
	CHECK_EQ(ev.req_flags, KEVENT_REQ_ONESHOT | KEVENT_REQ_WAKEUP_ALL);
}

static void changes_of_a_wait_submit(void)
{
	struct kevent_change change = { .cmd = KEVENT_CTL_ADD };
	struct kevent_wait_arg arg;
	struct work w;
	struct ukevent ev;

	open_queue();
	open_pipes();
	make_work(&w, 'a', false);
	kevent_set_aio(&change.uk, w.calls, 1, 0, 0, COOKIE);
	kevent_wait_arg_init(&arg);
	arg.changes = (__u64)(unsigned long)&change;
	arg.nr_changes = 1;
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, KEVENT_FLAGS_ARG, &arg), 0);
	CHECK_EQ(change.result, 0);
	CHECK_EQ(serve_now(1), 1);
	CHECK_EQ(next_event(&ev), COOKIE);
	change.cmd = KEVENT_CTL_REMOVE;
	CHECK_EQ(kevent_wait(q.fd, 1, (__u32)mem.ring.ring_kidx, &no_time,
			     KEVENT_FLAGS_ARG, &arg), 0);
	CHECK_EQ(change.result, -ENOENT);
}

/* Until its event is delivered */
static void cookie_is_taken_once(void)
{
	struct work w, other;
	struct ukevent ev;

	open_queue();
	open_pipes();
	make_work(&w, 'a', false);
	make_work(&other, 'a', false);
	CHECK_EQ(submit(&w), SUBMITTED);
	CHECK_EQ(submit(&other), REFUSED);
	CHECK_EQ(other.calls[0].result, -EEXIST);
	kevent_set_aio(&ev, other.calls, 1, 0, 0, 'a');
	CHECK_EQ(add(&ev), -EEXIST);
	CHECK_EQ(serve_now(1), 1);
	CHECK_EQ(submit(&other), REFUSED);
	CHECK_EQ(next_event(&ev), 'a');
	CHECK_EQ(submit(&other), SUBMITTED);
	CHECK_EQ(serve_now(1), 1);
	CHECK_EQ(next_event(&ev), 'a');
	CHECK(!strcmp(all_said(), "aa"));
}

static void requests_are_checked(void)
{
	struct ukevent ev, good;
	struct work w;
	int refusing;
	__u32 bit;

	open_queue();
	open_pipes();
	make_work(&w, 'a', true);
	kevent_set_aio(&good, w.calls, 2, 0, 0, COOKIE);
	ev = good;
	ev.id.raw_u64 += 4;
	CHECK_EQ(add(&ev), -EINVAL);
	ev = good;
	ev.ret_data[0] = 0;
	CHECK_EQ(add(&ev), -EINVAL);
	ev = good;
	ev.ret_data[0] = KEVENT_CALL_MAX + 1;
	CHECK_EQ(add(&ev), -EINVAL);
	ev = good;
	ev.ret_data[1] = 2;
	CHECK_EQ(add(&ev), -EINVAL);
	ev = good;
	ev.event = 0;
	CHECK_EQ(add(&ev), -EINVAL);
	ev.event = KEVENT_AIO_DONE | 2;
	CHECK_EQ(add(&ev), -EINVAL);
	for (bit = KEVENT_REQ_LAST_CHECK; bit; bit <<= 1) {
		ev = good;
		ev.req_flags = bit;
		CHECK_EQ(add(&ev), -EINVAL);
	}
	ev = good;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -ENOENT);
	ev = good;
	ev.req_flags = KEVENT_REQ_ET;
	CHECK_EQ(add(&ev), 0);
	ev = good;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -EPERM);
	ev = good;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), -EPERM);
	CHECK_EQ(kevent_chain_submit(-1, &w.chain, 1), -EBADF);
	CHECK_EQ(kevent_chain_submit(said[0], &w.chain, 1), -EINVAL);
	setenv("KEVENT_BACKEND", "epoll", 1);
	refusing = kevent_init(NULL, 0, KEVENT_INIT_REFUSE(KEVENT_AIO));
	CHECK_EQ(kevent_chain_submit(refusing, &w.chain, 1), -EPERM);
	CHECK_EQ(kevent_chain_cancel(refusing, 1), -EPERM);
}

/* Cancelling */

static void cancelled_chain_is_not_run(void)
{
	struct work w[2];
	struct ukevent ev;

	open_queue();
	open_pipes();
	make_work(&w[0], 'a', false);
	make_work(&w[1], 'b', false);
	CHECK_EQ(kevent_chain_cancel(q.fd, 'a'), -ENOENT);
	CHECK_EQ(submit(&w[0]), SUBMITTED);
	CHECK_EQ(submit(&w[1]), SUBMITTED);
	CHECK_EQ(kevent_chain_cancel(q.fd, 'a'), 0);
	CHECK_EQ(kevent_chain_cancel(q.fd, 'a'), -EALREADY);
	CHECK_EQ(next_event(&ev), 'a');
	CHECK_EQ(ev.id.raw_u64, REFUSED);
	CHECK_EQ(result_of(&ev), -ECANCELED);
	CHECK_EQ(kevent_chain_finish(&w[0].chain, &ev), -ECANCELED);
	CHECK_EQ(kevent_chain_cancel(q.fd, 'a'), -ENOENT);
	CHECK_EQ(serve_now(1), 1);
	CHECK(!strcmp(all_said(), "b"));
	kevent_set_aio(&ev, w[0].calls, 2, 1, 0, 'a');
	CHECK_EQ(add(&ev), 0);
	CHECK_EQ(kevent_chain_cancel(q.fd, 'a'), 0);
	CHECK_EQ(next_event(&ev), 'b');
	CHECK_EQ(next_event(&ev), 'a');
	CHECK_EQ(ev.id.raw_u64, 1 | REFUSED);
}

static void chain_that_runs_is_not_cancelled(void)
{
	struct server s = { .limit = 1 };
	struct ukevent ev;
	struct work w;

	open_queue();
	open_pipes();
	make_work(&w, 'a', true);
	CHECK_EQ(submit(&w), SUBMITTED);
	start(&s, 1);
	CHECK_EQ(next_said(), 'a');
	CHECK_EQ(kevent_chain_cancel(q.fd, 'a'), -EALREADY);
	CHECK_EQ(no_events(), 0);
	let_go();
	CHECK_EQ(next_event(&ev), 'a');
	CHECK_EQ(ev.id.raw_u64, 1);
	kevent_queue_close(&q);
	CHECK_EQ(join(&s), 1);
}

/* An event wakes who waits for it, and comes from another thread. */
static void *cancel(void *arg)
{
	(void)arg;
	CHECK_EQ(kevent_chain_cancel(q.fd, 'a'), 0);
	return NULL;
}

static void cancelling_wakes_who_waits(void)
{
	struct ukevent ev;
	pthread_t thread;
	struct work w;

	open_queue();
	open_pipes();
	make_work(&w, 'a', false);
	CHECK_EQ(submit(&w), SUBMITTED);
	CHECK_EQ(pthread_create(&thread, NULL, cancel, NULL), 0);
	CHECK_EQ(next_event(&ev), 'a');
	pthread_join(thread, NULL);
}

/* Serving */

static void serving_is_checked(void)
{
	const struct timespec bad = { 0, 1000000000 };
	struct kevent_wait_arg arg;
	int fd[2];

	open_queue();
	kevent_wait_arg_init(&arg);
	CHECK_EQ(kevent_chain_serve(q.fd, 0, &no_time), -EINVAL);
	CHECK_EQ(kevent_chain_serve(q.fd, 1, &bad), -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 0, 0, &no_time, KEVENT_FLAGS_SERVE, NULL),
		 -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &bad, KEVENT_FLAGS_SERVE, NULL),
		 -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time,
			     KEVENT_FLAGS_SERVE | KEVENT_FLAGS_ARG, &arg),
		 -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, KEVENT_FLAGS_SERVE, &arg),
		 -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 1, 1, &no_time, KEVENT_FLAGS_SERVE, NULL),
		 -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, KEVENT_FLAGS_SERVE, NULL),
		 0);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(serve_now(1), -EBADF);
	open_queue();
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(fd[0], q.fd);
	CHECK_EQ(serve_now(1), -EINVAL);
}

static __s64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Longer than it looks whether the queue was closed */
static void serving_ends_in_time(void)
{
	static const long spans[] = { 1000000, 700000000 };
	struct timespec ts;
	unsigned int i;
	__s64 from;

	open_queue();
	for (i = 0; i < ARRAY_SIZE(spans); i++) {
		ts = (struct timespec){ .tv_nsec = spans[i] };
		from = now_ns();
		CHECK_EQ(kevent_chain_serve(q.fd, 1, &ts), 0);
		CHECK(now_ns() - from >= spans[i]);
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &ts,
			     KEVENT_FLAGS_SERVE | KEVENT_FLAGS_ABSTIME, NULL),
		 0);
}

static void sleeper_is_woken(void)
{
	struct server s = { .limit = 1 };
	struct ukevent ev;
	struct work w;
	int i;

	open_queue();
	open_pipes();
	start(&s, 1);
	for (i = 0; i < 100; i++) {
		wait_asleep(1);
		make_work(&w, 'a', false);
		CHECK_EQ(submit(&w), SUBMITTED);
		CHECK_EQ(next_event(&ev), 'a');
	}
	kevent_queue_close(&q);
	CHECK_EQ(join(&s), 100);
}

/* The latest call says how many may run. */
static void limit_counts_all_that_run(void)
{
	struct server s = { .limit = 1 };
	struct work w[3];
	struct ukevent ev;
	char i;

	open_queue();
	open_pipes();
	for (i = 0; i < 3; i++) {
		make_work(&w[(int)i], (char)('a' + i), !i);
		CHECK_EQ(submit(&w[(int)i]), SUBMITTED);
	}
	start(&s, 1);
	CHECK_EQ(next_said(), 'a');
	CHECK_EQ(serve_now(1), 0);
	CHECK_EQ(serve_now(2), 2);
	CHECK_EQ(serve_now(1), 0);
	CHECK_EQ(next_event(&ev), 'b');
	CHECK_EQ(next_event(&ev), 'c');
	let_go();
	CHECK_EQ(next_event(&ev), 'a');
	kevent_queue_close(&q);
	CHECK_EQ(join(&s), 1);
}

/* One that sleeps is woken when a call allows more of them. */
static void higher_limit_counts_for_all(void)
{
	struct server s[3] = {};
	struct work w[3];
	struct ukevent ev;
	char i, said_now[3];

	open_queue();
	open_pipes();
	for (i = 0; i < 3; i++)
		make_work(&w[(int)i], (char)('a' + i), true);
	start(&s[0], 1);
	CHECK_EQ(submit(&w[0]), SUBMITTED);
	said_now[0] = next_said();
	start(&s[1], 1);
	wait_asleep(1);
	CHECK_EQ(submit(&w[1]), SUBMITTED);
	CHECK_EQ(submit(&w[2]), SUBMITTED);
	start(&s[2], 3);
	said_now[1] = next_said();
	said_now[2] = next_said();
	CHECK_EQ(said_now[0], 'a');
	CHECK_EQ(said_now[1] + said_now[2], 'b' + 'c');
	for (i = 0; i < 3; i++) {
		let_go();
		next_event(&ev);
	}
	kevent_queue_close(&q);
	for (i = 0; i < 3; i++)
		CHECK_EQ(join(&s[(int)i]), 1);
}

static int other_fd;

static void *serve_other(void *arg)
{
	(void)arg;
	CHECK_EQ(kevent_chain_serve(other_fd, 1, NULL), 1);
	return NULL;
}

/* A thread that finds its descriptor closed was woken for a chain. */
static void thread_that_leaves_wakes_another(void)
{
	struct server leaves = { .limit = 1 };
	pthread_t stays;
	struct ukevent ev;
	struct work w;

	/* The other one must be woken: it does not look by itself. */
	kevent_fb_serve_look *= 2 * SECONDS;
	open_queue();
	open_pipes();
	other_fd = dup(q.fd);
	make_work(&w, 'a', false);
	start(&leaves, 1);
	wait_asleep(1);
	wait_still();
	CHECK_EQ(pthread_create(&stays, NULL, serve_other, NULL), 0);
	wait_asleep(2);
	wait_still();
	close(q.fd);
	q.fd = other_fd;
	CHECK_EQ(submit(&w), SUBMITTED);
	CHECK_EQ(next_event(&ev), 'a');
	CHECK_EQ(join(&leaves), -EBADF);
	kevent_queue_close(&q);
	pthread_join(stays, NULL);
}

static void handler(int sig)
{
	(void)sig;
}

/* Handlers of both kinds end it. */
static void signal_ends_serving(void)
{
	static const int flags[] = { 0, SA_RESTART };
	struct sigaction act = { .sa_handler = handler };
	struct server s = { .limit = 1 };
	struct ukevent ev;
	struct work w;
	unsigned int i;

	open_queue();
	open_pipes();
	make_work(&w, 'a', false);
	for (i = 0; i < 3; i++) {
		act.sa_flags = flags[i % 2];
		sigaction(SIGUSR1, &act, NULL);
		start(&s, 1);
		if (i == 2) {
			CHECK_EQ(submit(&w), SUBMITTED);
			CHECK_EQ(next_event(&ev), 'a');
		}
		wait_asleep(1);
		while (!__atomic_load_n(&s.done, __ATOMIC_SEQ_CST)) {
			pthread_kill(s.thread, SIGUSR1);
			sched_yield();
		}
		CHECK_EQ(join(&s), i == 2 ? 1 : -EINTR);
	}
}

/* Closing */

/* A thread that calls while the queue is closed finds a descriptor without a queue. */
static void close_ends_serving(void)
{
	struct server s[3] = {};
	unsigned int i, round;
	int ret;

	for (round = 0; round < 50; round++) {
		open_queue();
		for (i = 0; i < ARRAY_SIZE(s); i++)
			start(&s[i], 1);
		if (round % 2)
			wait_asleep(ARRAY_SIZE(s));
		else
			wait_asleep(1);
		kevent_queue_close(&q);
		for (i = 0; i < ARRAY_SIZE(s); i++) {
			ret = join(&s[i]);
			if (round % 2 || ret != -EINVAL)
				CHECK_EQ(ret, -EBADF);
		}
	}
}

/* The library does not see close(). */
static void plain_close_ends_serving(void)
{
	struct server s = { .limit = 1 };

	open_queue();
	start(&s, 1);
	wait_asleep(1);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(join(&s), -EBADF);
	open_queue();
	start(&s, 1);
	wait_asleep(1);
	/* The number is that of another file at once. */
	CHECK_EQ(dup2(0, q.fd), q.fd);
	CHECK_EQ(join(&s), -EBADF);
}

static void close_drops_what_no_thread_has_begun(void)
{
	struct server s = { .limit = 1 };
	struct work w[2];
	unsigned int i;

	open_pipes();
	make_work(&w[0], 'a', true);
	make_work(&w[1], 'b', false);
	for (i = 0; i < 2; i++) {
		open_queue();
		start(&s, 1);
		CHECK_EQ(submit(&w[0]), SUBMITTED);
		CHECK_EQ(submit(&w[1]), SUBMITTED);
		CHECK_EQ(next_said(), 'a');
		if (i)
			CHECK_EQ(close(q.fd), 0);
		else
			kevent_queue_close(&q);
		let_go();
		CHECK_EQ(join(&s), 1);
		CHECK(!strcmp(all_said(), ""));
	}
}

static int child_has_none(const struct work *w, struct work *other)
{
	CHECK_EQ(submit(other), REFUSED);
	CHECK_EQ(other->calls[0].result, -EXDEV);
	CHECK_EQ(kevent_chain_cancel(q.fd, (__u64)w->letter), -EXDEV);
	CHECK_EQ(serve_now(1), -EXDEV);
	kevent_queue_close(&q);
	/* One of its own */
	open_queue();
	CHECK_EQ(serve_now(1), 0);
	CHECK_EQ(submit(other), SUBMITTED);
	CHECK_EQ(serve_now(1), 1);
	fflush(stdout);
	return failed;
}

static void child_has_no_chains(void)
{
	struct work w, other;
	struct ukevent ev;
	int status = 1;

	open_queue();
	open_pipes();
	make_work(&w, 'a', false);
	make_work(&other, 'b', false);
	CHECK_EQ(submit(&w), SUBMITTED);
	fflush(stdout);
	if (!fork())
		_exit(child_has_none(&w, &other));
	wait(&status);
	CHECK_EQ(status, 0);
	CHECK(!strcmp(all_said(), "b"));
	CHECK_EQ(serve_now(1), 1);
	CHECK_EQ(next_event(&ev), 'a');
}

static int open_fds(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void nothing_is_left_open(void)
{
	struct work w;
	int i, before;

	open_pipes();
	make_work(&w, 'a', false);
	before = open_fds();
	for (i = 0; i < 20; i++) {
		open_queue();
		CHECK_EQ(submit(&w), SUBMITTED);
		if (i % 2)
			CHECK_EQ(serve_now(1), 1);
		kevent_queue_close(&q);
	}
	CHECK_EQ(open_fds(), before);
}

/* Many */

#define CHAINS	64U
#define ROUNDS	100U

static struct kevent_call many[CHAINS][2];

static int submit_many(unsigned int i, struct kevent_chain *c)
{
	kevent_chain_init(c, many[i], 2);
	kevent_chain_call(c, SYS_getpid);
	kevent_chain_call(c, SYS_getppid);
	kevent_chain_end(c);
	return kevent_chain_submit(q.fd, c, i);
}

static void run_many(struct kevent_chain *chains)
{
	unsigned int i, left = CHAINS * ROUNDS;
	struct ukevent ev;

	for (i = 0; i < CHAINS; i++)
		CHECK_EQ(submit_many(i, &chains[i]), SUBMITTED);
	while (left--) {
		i = (unsigned int)next_event(&ev);
		CHECK_EQ(kevent_chain_finish(&chains[i], &ev), 1);
		CHECK_EQ(many[i][0].result, getpid());
		if (left >= CHAINS)
			CHECK_EQ(submit_many(i, &chains[i]), SUBMITTED);
	}
}

static void threads_share_the_work(void)
{
	struct kevent_chain chains[CHAINS];
	struct server s[4] = {};
	unsigned int i, ran = 0;

	open_queue();
	for (i = 0; i < ARRAY_SIZE(s); i++)
		start(&s[i], 2 + i / 2);
	run_many(chains);
	CHECK_EQ(no_events(), 0);
	kevent_queue_close(&q);
	for (i = 0; i < ARRAY_SIZE(s); i++) {
		if (join(&s[i]) > 0)
			ran += (unsigned int)s[i].ret;
		else
			CHECK_EQ(s[i].ret, -EBADF);
	}
	CHECK_EQ(ran, CHAINS * ROUNDS);
}

static const struct test tests[] = {
	TEST(chain_ends_with_an_event),
	TEST(queue_without_a_ring_will_do),
	TEST(chains_are_run_in_order),
	TEST(event_says_how_the_chain_ended),
	TEST(chain_begins_at_the_given_entry),
	TEST(changes_of_a_wait_submit),
	TEST(cookie_is_taken_once),
	TEST(requests_are_checked),
	TEST(cancelled_chain_is_not_run),
	TEST(chain_that_runs_is_not_cancelled),
	TEST(cancelling_wakes_who_waits),
	TEST(serving_is_checked),
	TEST(serving_ends_in_time),
	TEST(sleeper_is_woken),
	TEST(limit_counts_all_that_run),
	TEST(higher_limit_counts_for_all),
	TEST(thread_that_leaves_wakes_another),
	TEST(signal_ends_serving),
	TEST(close_ends_serving),
	TEST(plain_close_ends_serving),
	TEST(close_drops_what_no_thread_has_begun),
	TEST(child_has_no_chains),
	TEST(nothing_is_left_open),
	TEST(threads_share_the_work),
};

int main(void)
{
	return run_tests("aio", tests, ARRAY_SIZE(tests));
}
