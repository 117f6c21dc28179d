/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The longest stretch with interrupts off: for each source the worst input that an
 * unprivileged user can make, up to the limits
 *
 * tests/long/worst runs these suites, with a plugin of QEMU that measures: tests/vm/irqsoff.c.
 * Each test does the same thing twice: without a watch, which shows the cost of
 * the kernel without kevent, and with as many watches as possible. A line in its
 * report has its name and the number of watches. tests/long/worst judges the figures.
 */
#ifndef WORST_H
#define WORST_H

#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "timers.h"

#define FILES		100000	/* descriptors of the user */
#define USER		1000
#define SLEEPERS	200
#define QUEUES		3000
#define SECONDS		600
#define WORST(fn)	TEST_LIMIT(fn, SECONDS)

struct worst {
	const char	*name;
	unsigned int	watches;
	struct queue	*queues;	/* the newest one is the last */
	unsigned int	nr_queues;
};

void become(uid_t uid);
void settle(void);
void without(void (*trigger)(void *arg), void *arg);
void with(void (*trigger)(void *arg), void *arg);
void start(struct worst *w, const char *name);
void finish(struct worst *w);
struct queue *new_queue(struct worst *w, uint32_t size);
struct queue *last_queue(struct worst *w);
bool is_full(int err);
bool added(struct worst *w, int err);
void start_thread(void *(*fn)(void *arg), void *arg);
void sleep_in_queues(struct worst *w);
void poll_in_threads(int *fd);
void write_byte(void *arg);
void watch_directory(struct worst *w, const char *path, bool in_queues);
int open_directory(const char *path);
void wait_until(void *arg);
struct timespec later(clockid_t clock, int seconds);
void add_timers(struct worst *w, const struct timespec *at,
		uint32_t event, bool in_queues, unsigned int most);
void poll_by_epolls(int fd, unsigned int nr);
int wait_for_ever(void *arg);
void end_process(void *arg);

#endif /* WORST_H */
