// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Sleeps of sets of lanes, and which of them were rung for
 *
 * All lanes of a set sleep with one number, which no other sleep has. A process that has rung for
 * it by one lane need not do so by another. A peer can write any number, also that of another
 * process. So a sleep is known by the number and by the process behind the socket, as the kernel
 * says it. For a pair of sockets without a name it is the process that has made the pair.
 */
#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "rung.h"

#define OF_SET		(1ULL << 63)	/* lanes count their own sleeps from 1 */
#define PID_BITS	22		/* of the kernel's PID_MAX_LIMIT */
#define NUMBERS		((1ULL << (64 - PID_BITS)) - 1)
#define RUNG		64U		/* sleeps that are remembered */

/* Each is one word, so that threads see all of it or nothing. */
static __u64 rung[RUNG];

/* Processes behind one name have numbers that are far from each other. */
static __u64 first_sleep(void)
{
	struct timespec now;
	__u64 seed;

	clock_gettime(CLOCK_MONOTONIC, &now);
	seed = kevent_ns(&now) * 0x9e3779b97f4a7c15ULL;
	seed ^= (__u64)getpid() * 0xbf58476d1ce4e5b9ULL;
	return seed ^ seed >> 31;
}

__u64 kevent_rung_sleep(__u32 process)
{
	static __u64 next;
	static __u32 seeded;
	__u64 old = __atomic_load_n(&next, __ATOMIC_RELAXED);

	if (!process)
		return 0;
	/* Of several threads one sets it: a number that was taken already stays taken. */
	if (__atomic_load_n(&seeded, __ATOMIC_ACQUIRE) != process &&
	    __atomic_compare_exchange_n(&next, &old, first_sleep(), false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_store_n(&seeded, process, __ATOMIC_RELEASE);
	return OF_SET | (__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) & NUMBERS);
}

static bool has_name(int sock, int (*get)(int, struct sockaddr *restrict, socklen_t *restrict))
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);

	return !get(sock, (struct sockaddr *)&name, &len) &&
	       len > offsetof(struct sockaddr_un, sun_path);
}

__u32 kevent_rung_origin(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.pid <= 0 ||
	    (!has_name(sock, getsockname) && !has_name(sock, getpeername)))
		return 0;
	return (__u32)cred.pid;
}

static __u64 key_of(const struct kevent_lane *l, __u64 sleep)
{
	return sleep << PID_BITS | l->origin;
}

bool kevent_rung_for(const struct kevent_lane *l, __u64 sleep)
{
	return (sleep & OF_SET) && l->origin &&
	       __atomic_load_n(&rung[sleep % RUNG], __ATOMIC_ACQUIRE) == key_of(l, sleep);
}

/* The bell rings before another thread can see this. */
void kevent_rung_note(const struct kevent_lane *l, __u64 sleep)
{
	if ((sleep & OF_SET) && l->origin)
		__atomic_store_n(&rung[sleep % RUNG], key_of(l, sleep), __ATOMIC_RELEASE);
}
