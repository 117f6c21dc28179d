/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads of a workload: where and in which order they run
 */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_ANY_CPU	(~0u)
#define BENCH_LOST_MS	20000	/* an event that takes longer was lost */

/**
 * bench_one_cpu() - whether threads can only take turns
 *
 * Return: true if the machine has one CPU.
 */
bool bench_one_cpu(void);

/**
 * bench_patience() - how long to wait for what must happen at once
 *
 * For loops that do not sleep. On one CPU it has happened already, when the
 * thread that waits is the one of lowest priority.
 *
 * Return: a time in ns.
 */
uint64_t bench_patience(void);

/**
 * bench_await_seen() - wait, without sleep, until another side has seen all that was sent
 * @seen: how many messages it has seen
 * @nr: how many were sent
 */
void bench_await_seen(const unsigned int *seen, unsigned int nr);

/**
 * bench_pin() - keep the calling thread on a CPU
 * @cpu: the CPU, modulo the number there is, or BENCH_ANY_CPU
 */
void bench_pin(unsigned int cpu);

/**
 * bench_realtime() - have the calling thread run by strict priority
 * @priority: of SCHED_FIFO; 0: as ordinary threads do
 *
 * Threads of one priority run until they sleep or yield, so that on one CPU
 * the order is the same in each run.
 */
void bench_realtime(int priority);

/**
 * bench_thread() - start a thread
 * @run: its function
 * @arg: handed to @run
 *
 * Return: the thread, for bench_join().
 */
pthread_t bench_thread(void *(*run)(void *arg), void *arg);

/**
 * bench_join() - wait for the end of a thread
 * @thread: as bench_thread() returned it
 */
void bench_join(pthread_t thread);

/**
 * bench_blocking() - choose whether I/O on a descriptor blocks
 * @fd: the descriptor
 * @on: it does
 */
void bench_blocking(int fd, bool on);

#endif /* BENCH_THREADS_H */
