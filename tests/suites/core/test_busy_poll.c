// SPDX-License-Identifier: GPL-2.0
/*
 * Busy polling: the ioctls of an epoll file, and what they do on a queue
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "helpers.h"

#ifndef EPIOCSPARAMS
struct epoll_params {
	uint32_t	busy_poll_usecs;
	uint16_t	busy_poll_budget;
	uint8_t		prefer_busy_poll;
	uint8_t		__pad;
};

#define EPIOCSPARAMS	_IOW(0x8A, 0x01, struct epoll_params)
#define EPIOCGPARAMS	_IOR(0x8A, 0x02, struct epoll_params)
#endif

static void check_same(int kq, int ep, struct epoll_params p, int want)
{
	struct epoll_params got = {}, other = {};

	CHECK_EQ(try_ioctl(kq, EPIOCSPARAMS, &p), want);
	CHECK_EQ(try_ioctl(ep, EPIOCSPARAMS, &p), want);
	CHECK_EQ(try_ioctl(kq, EPIOCGPARAMS, &got), 0);
	CHECK_EQ(try_ioctl(ep, EPIOCGPARAMS, &other), 0);
	CHECK_EQ(got.busy_poll_usecs, other.busy_poll_usecs);
	CHECK_EQ(got.busy_poll_budget, other.busy_poll_budget);
	CHECK_EQ(got.prefer_busy_poll, other.prefer_busy_poll);
	CHECK_EQ(got.__pad, 0);
}

static void parameters_are_those_of_epoll(void)
{
	int kq = kevent_init(NULL, 0, 0), ep = epoll_create1(0);

	MUST(kq >= 0 && ep >= 0);
	check_same(kq, ep, (struct epoll_params){}, 0);
	check_same(kq, ep, (struct epoll_params){ 200, 16, 1, 0 }, 0);
	check_same(kq, ep, (struct epoll_params){ 200, 16, 2, 0 }, -EINVAL);
	check_same(kq, ep, (struct epoll_params){ 200, 16, 1, 1 }, -EINVAL);
	check_same(kq, ep, (struct epoll_params){ 1u << 31, 16, 1, 0 },
		   -EINVAL);
	check_same(kq, ep, (struct epoll_params){ 1, 1000, 0, 0 }, 0);
	MUST_EQ(seteuid(1000), 0);
	check_same(kq, ep, (struct epoll_params){ 1, 64, 0, 0 }, 0);
	check_same(kq, ep, (struct epoll_params){ 1, 65, 0, 0 }, -EPERM);
}

static void other_ioctls_are_refused(void)
{
	int kq = kevent_init(NULL, 0, 0);

	CHECK_EQ(try_ioctl(kq, EPIOCSPARAMS, (void *)8), -EFAULT);
	CHECK_EQ(try_ioctl(kq, EPIOCGPARAMS, (void *)8), -EFAULT);
	CHECK_EQ(try_ioctl(kq, _IO(0x8A, 0x03), NULL), -ENOTTY);
	CHECK_EQ(try_ioctl(kq, FIONREAD, NULL), -ENOTTY);
	CHECK_EQ(kevent_busy_poll(kq, 1u << 31), -EINVAL);
	CHECK_EQ(kevent_busy_poll(-1, 1), -EBADF);
}

static void set_usecs(struct queue *q, uint32_t usecs)
{
	MUST_EQ(kevent_busy_poll(q->fd, usecs), 0);
}

/* No device is known here: a sleeping thread is woken as usual. */
static void waiters_sleep_and_wake_with_busy_polling_on(void)
{
	struct waiter w;
	struct queue q;

	open_queue(&q, 8);
	set_usecs(&q, 100);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 3), 0);
	start_waiter(&w, &q, 8);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&w), 1);
	close_queue(&q);
}

#define LONG_USECS	(1000 * 1000 * 1000)

/* A thread in a kevent_wait() that looks for events instead of sleeping */
struct poller {
	struct actor		actor;
	struct queue		*q;
	uint32_t		min;
	_Atomic long long	sleeps;	/* before the call; -1: not there yet */
	long long		slept;	/* during the call */
};

static long poll_for_event(void *arg)
{
	struct poller *p = arg;
	struct kevent_wait_arg wait;
	pid_t tid = gettid();
	long ret;

	kevent_wait_arg_init(&wait);
	wait.min_nr = p->min;
	p->sleeps = sleeps_so_far(tid);
	ret = kevent_wait(p->q->fd, p->min, 0, NULL, KEVENT_FLAGS_ARG, &wait);
	p->slept = sleeps_so_far(tid) - p->sleeps;
	return ret;
}

static uint64_t cpu_ns(pthread_t thread)
{
	struct timespec ts;
	clockid_t clock;

	MUST_EQ(pthread_getcpuclockid(thread, &clock), 0);
	MUST_EQ(clock_gettime(clock, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns when the thread has used its CPU for a while; a sleeper does not. */
static void see_polling(struct poller *p)
{
	uint64_t start = now_ns(), used = cpu_ns(p->actor.thread);

	while (cpu_ns(p->actor.thread) - used < 20 * 1000 * 1000)
		MUST(patient(start, PATIENCE_MS));
}

/* Starts a poller that waits for @min events. */
static void start_poller(struct poller *p, struct queue *q, uint32_t min)
{
	uint64_t start = now_ns();

	*p = (struct poller){ .q = q, .min = min, .sleeps = -1 };
	set_usecs(q, LONG_USECS);
	start_actor(&p->actor, poll_for_event, p);
	while (p->sleeps < 0)
		MUST(patient(start, PATIENCE_MS));
	see_polling(p);
}

static void event_ends_busy_polling_without_a_sleep(void)
{
	struct poller p;
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 3), 0);
	start_poller(&p, &q, 1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	join_actor(&p.actor, PATIENCE_MS);
	CHECK_EQ(p.actor.ret, 1);
	CHECK_EQ(p.slept, 0);
	close_queue(&q);
}

/* The first event is in the ring, but two are wanted. */
static void busy_polling_goes_on_until_there_is_enough(void)
{
	struct poller p;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0), 0);
	start_poller(&p, &q, 2);
	put_byte(fd[1]);
	see_polling(&p);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 1);
	MUST_EQ(kevent_ring_take(q.ring, 0, 1), 1);
	put_byte(fd[1]);
	join_actor(&p.actor, PATIENCE_MS);
	CHECK_EQ(p.actor.ret, 2);
	CHECK_EQ(p.slept, 0);
	close_queue(&q);
}

/* The consumer sleeps. If it polled, the ring would get its event. */
static void consumer_of_a_buffer_gets_its_event(void)
{
	struct queue q, without_ring;
	struct waiter w;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	set_usecs(&q, LONG_USECS);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 7), 0);
	without_ring = q;
	without_ring.size = 0;
	start_waiter(&w, &without_ring, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(w.ev[0].ptr, 7);
	close_queue(&q);
}

static void request_ends_busy_polling(void)
{
	struct poller p;
	struct queue q;

	open_queue(&q, 8);
	start_poller(&p, &q, 1);
	MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	join_actor(&p.actor, PATIENCE_MS);
	CHECK_EQ(p.actor.ret, 0);
	close_queue(&q);
}

static void note_signal(int sig)
{
	(void)sig;
}

static void signal_ends_busy_polling(void)
{
	struct sigaction sa = { .sa_handler = note_signal };
	struct poller p;
	struct queue q;

	MUST_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	open_queue(&q, 8);
	start_poller(&p, &q, 1);
	MUST_EQ(pthread_kill(p.actor.thread, SIGUSR1), 0);
	join_actor(&p.actor, PATIENCE_MS);
	CHECK_EQ(p.actor.ret, -EINTR);
	close_queue(&q);
}

static void busy_polling_ends_with_the_timeout(void)
{
	uint64_t start;
	struct queue q;

	open_queue(&q, 8);
	set_usecs(&q, LONG_USECS);
	start = now_ns();
	CHECK_EQ(wait_ring(&q, 1, 20), 0);
	CHECK(now_ns() - start >= 20 * 1000 * 1000);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(parameters_are_those_of_epoll),
	TEST(other_ioctls_are_refused),
	TEST(waiters_sleep_and_wake_with_busy_polling_on),
	TEST(event_ends_busy_polling_without_a_sleep),
	TEST(busy_polling_goes_on_until_there_is_enough),
	TEST(consumer_of_a_buffer_gets_its_event),
	TEST(request_ends_busy_polling),
	TEST(signal_ends_busy_polling),
	TEST(busy_polling_ends_with_the_timeout),
	{}
};

const struct test_suite busy_poll_suite = { .name = "busy_poll", .cases = cases };
