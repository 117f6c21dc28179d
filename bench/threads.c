// SPDX-License-Identifier: GPL-2.0
/*
 * Where and in which order threads run
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

static unsigned int cpus(void)
{
	static long nr;

	if (!nr)
		nr = sysconf(_SC_NPROCESSORS_ONLN);
	return (unsigned int)nr;
}

bool bench_one_cpu(void)
{
	return cpus() == 1;
}

uint64_t bench_patience(void)
{
	return (bench_one_cpu() ? 100 : BENCH_LOST_MS) * 1000000ull;
}

void bench_await_seen(const unsigned int *seen, unsigned int nr)
{
	uint64_t start = bench_now();

	while (__atomic_load_n(seen, __ATOMIC_ACQUIRE) != nr)
		if (bench_now() - start > bench_patience())
			bench_die("an event was lost");
}

void bench_pin(unsigned int cpu)
{
	cpu_set_t set;
	unsigned int i;

	CPU_ZERO(&set);
	for (i = 0; i < cpus(); i++)
		if (cpu == BENCH_ANY_CPU || cpu % cpus() == i)
			CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("sched_setaffinity: %s", strerror(errno));
}

/*
 * Otherwise ordinary threads get a share of each second in the middle of a run
 */
static void unlimit_realtime(void)
{
	static const char name[] = "/proc/sys/kernel/sched_rt_runtime_us";
	int fd = open(name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "-1", 2) != 2)
		bench_die("%s: %s", name, strerror(errno));
	close(fd);
}

void bench_realtime(int priority)
{
	static bool unlimited;
	struct sched_param param = { .sched_priority = priority };

	if (priority && !unlimited) {
		unlimit_realtime();
		unlimited = true;
	}
	if (sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param))
		bench_die("sched_setscheduler: %s", strerror(errno));
}

pthread_t bench_thread(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, arg);

	if (error)
		bench_die("pthread_create: %s", strerror(error));
	return thread;
}

void bench_join(pthread_t thread)
{
	int error = pthread_join(thread, NULL);

	if (error)
		bench_die("pthread_join: %s", strerror(error));
}

void bench_blocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	flags = on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
	if (fcntl(fd, F_SETFL, flags))
		bench_die("fcntl: %s", strerror(errno));
}
