/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of TIMER and POSIX_TIMER share
 */
#ifndef TIMERS_H
#define TIMERS_H

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "helpers.h"

/* On 32-bit machines the system calls without 64 use 32-bit times. */
#ifndef SYS_timer_settime64
#define SYS_timer_settime64	SYS_timer_settime
#define SYS_timer_gettime64	SYS_timer_gettime
#endif

#define US		1000ll
#define MS		1000000ll
#define SECOND		1000000000ll
#define HOUR		(3600 * SECOND)

static inline struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ ns / SECOND, ns % SECOND };
}

/* Expiries until @now of a timer that began at @first */
static inline int64_t due(int64_t now, int64_t first, int64_t interval)
{
	return now < first ? 0 : 1 + (now - first) / interval;
}

static inline void wait_until_ready(struct queue *q, long long nr)
{
	uint64_t start = now_ns();

	while (fdinfo(q->fd, "kevent-ready") != nr)
		MUST(patient(start, PATIENCE_MS));
}

/* TIMER: 0 or -errno, READY 1 */

#define NONE		-1		/* no interval */
#define ONCE		0
#define ABS		KEVENT_TIMER_ABSTIME
#define REALTIME	KEVENT_TIMER_REALTIME
#define ON_SET		KEVENT_TIMER_CANCEL_ON_SET

static inline int set_timer(int kq, uint32_t cmd, int64_t first,
			    int64_t interval, uint32_t event, uint32_t flags,
			    uint64_t user)
{
	struct ukevent ev;

	kevent_set_timer(&ev, first, interval == NONE ? 0 : interval, event,
			 flags, user);
	if (interval == NONE)
		ev.event &= ~KEVENT_TIMER_INTERVAL;
	return kevent_ctl_one(kq, cmd, &ev);
}

static inline int add_timer(int kq, int64_t first, int64_t interval,
			    uint32_t event, uint32_t flags, uint64_t user)
{
	return set_timer(kq, KEVENT_CTL_ADD, first, interval, event, flags,
			 user);
}

static inline int modify_timer(int kq, int64_t first, int64_t interval,
			       uint32_t event, uint32_t flags, uint64_t user)
{
	return set_timer(kq, KEVENT_CTL_MODIFY, first, interval, event, flags,
			 user);
}

static inline int remove_timer(int kq, uint64_t user)
{
	return set_timer(kq, KEVENT_CTL_REMOVE, 0, NONE, 0, 0, user);
}

static inline uint64_t ticks(const struct ukevent *ev)
{
	return kevent_expirations(ev);
}

static inline void set_clock(int64_t ns)
{
	struct timespec ts = to_timespec(ns);

	MUST_EQ(clock_settime(CLOCK_REALTIME, &ts), 0);
}

/* An event of a timer that the test knows: correct except for its time */
static inline void must_tick(struct queue *q, struct ukevent *ev, uint64_t user)
{
	MUST_EVENT(q, ev);
	CHECK_EQ(ev->type, KEVENT_TIMER);
	CHECK_EQ(ev->ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev->ptr, user);
}

static inline void step_clock(int64_t ns)
{
	set_clock(clock_ns(CLOCK_REALTIME) + ns);
}

/* POSIX_TIMER: -errno on failure */

/* The id of a new timer, by the system call. The C library refuses SIGEV_KEVENT. */
static inline int create_as(clockid_t clock, int notify, int fd, uint64_t user)
{
	struct sigevent sev = { .sigev_notify = notify };
	int id;

	sev.sigev_value.sival_ptr = (void *)(uintptr_t)user;
	sev._sigev_un._tid = fd;
	if (syscall(SYS_timer_create, clock, &sev, &id))
		return -errno;
	return id;
}

static inline int create(int kq, clockid_t clock, uint64_t user)
{
	return kevent_timer_create(kq, clock, user);
}

static inline int settime(int id, int flags, int64_t first, int64_t interval)
{
	struct itimerspec its = {
		.it_value = to_timespec(first),
		.it_interval = to_timespec(interval),
	};

	return kevent_timer_settime(id, flags, &its, NULL);
}

/* Time left, or -errno */
static inline int64_t gettime(int id)
{
	struct itimerspec its;

	if (syscall(SYS_timer_gettime64, id, &its))
		return -errno;
	return its.it_value.tv_sec * SECOND + its.it_value.tv_nsec;
}

static inline int delete(int id)
{
	return kevent_timer_delete(id);
}

static inline int control_posix_timer(int kq, uint32_t cmd, uint32_t id, uint32_t flags,
				      uint64_t user)
{
	struct ukevent ev;

	kevent_set_posix_timer(&ev, id, flags, user);
	return kevent_ctl_one(kq, cmd, &ev);
}

static inline int modify_posix_timer(int kq, uint32_t id, uint32_t flags, uint64_t user)
{
	return control_posix_timer(kq, KEVENT_CTL_MODIFY, id, flags, user);
}

static inline int remove_posix_timer(int kq, uint32_t id)
{
	return control_posix_timer(kq, KEVENT_CTL_REMOVE, id, 0, 0);
}

static inline int64_t overrun(const struct ukevent *ev)
{
	return kevent_expirations(ev);
}

static inline void raise_pending_limit(void)
{
	const struct rlimit limit = { 1 << 20, 1 << 20 };

	MUST_EQ(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
}

#endif /* TIMERS_H */
