/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ways to have many timers at once, for work_timers.c
 */
#ifndef BENCH_TIMERS_H
#define BENCH_TIMERS_H

#include <stdint.h>

/* Timers in one system call, where the interface has batches */
#define TIMERS_BATCH	64

/**
 * struct timer_peer - an interface under test
 * @open: be ready for timers with numbers below @nr
 * @arm: start the @nr timers whose numbers are in @ids. Timer i expires at
 *	@due[i], in nanoseconds of CLOCK_MONOTONIC
 * @rearm: give @nr armed timers other times
 * @cancel: stop @nr armed timers for good
 * @collect: wait until a timer has expired; put up to @max of those that
 *	have into @ids. Returns how many
 * @close: undo @open
 */
struct timer_peer {
	void (*open)(unsigned int nr);
	void (*arm)(const uint32_t *ids, const uint64_t *due, unsigned int nr);
	void (*rearm)(const uint32_t *ids, const uint64_t *due,
		      unsigned int nr);
	void (*cancel)(const uint32_t *ids, unsigned int nr);
	unsigned int (*collect)(uint32_t *ids, unsigned int max);
	void (*close)(void);
};

extern const struct timer_peer timers_kevent, timers_epoll, timers_uring,
	timers_heap;

#endif /* BENCH_TIMERS_H */
