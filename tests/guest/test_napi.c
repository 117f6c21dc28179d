// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters of busy polling: the same ioctls as on an epoll file
 */
#define _GNU_SOURCE
#include <errno.h>
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

static int try_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

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
}

/* No device is known here: whoever sleeps is woken as ever. */
static void waiters_sleep_and_wake_with_busy_polling_on(void)
{
	struct epoll_params p = { 100, 8, 1, 0 };
	struct waiter w;
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(try_ioctl(q.fd, EPIOCSPARAMS, &p), 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 3), 0);
	start_waiter(&w, &q, 8);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&w), 1);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(parameters_are_those_of_epoll),
	TEST(other_ioctls_are_refused),
	TEST(waiters_sleep_and_wake_with_busy_polling_on),
	{}
};

const struct test_suite napi_suite = { .name = "napi", .cases = cases };
