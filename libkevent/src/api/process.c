// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Which process a queue was opened in
 *
 * After fork() the child has a copy of a private ring, with the entries that the
 * parent has not taken yet. A page that fork() empties tells the two apart.
 */
#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

#include "process.h"

/* Zeros are a mutex that nobody holds, as PTHREAD_MUTEX_INITIALIZER is. */
struct process_page {
	__u32		mark;
	pthread_mutex_t	lock[1 + KEVENT_PROBES];
};

const volatile __u32 *kevent_process_word;

/* Locks of the page, or others; NULL before that is chosen, once for all threads */
static pthread_mutex_t *process_locks;

static __u32 *map_word(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const volatile __u32 *none = NULL;

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, size, MADV_WIPEONFORK)) {
		munmap(page, size);
		return NULL;
	}
	if (!__atomic_compare_exchange_n(&kevent_process_word, &none, page, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(page, size);
		return (__u32 *)none;
	}
	return page;
}

/* A process id alone may be that of an ancestor which has ended. */
static __u32 new_mark(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((__u32)getpid() ^ (__u32)now.tv_nsec ^
		(__u32)now.tv_sec << 16) | 1;
}

static __u32 *get_word(void)
{
	__u32 *word = (__u32 *)__atomic_load_n(&kevent_process_word,
					       __ATOMIC_ACQUIRE);

	int saved = errno;

	if (!word)
		word = map_word();
	errno = saved;
	return word;
}

static pthread_mutex_t *get_locks(void)
{
	/* Without such a page, fork() may leave one locked. Zeros, as there. */
	static pthread_mutex_t plain[1 + KEVENT_PROBES];
	pthread_mutex_t *locks, *none = NULL;
	__u32 *word;

	locks = __atomic_load_n(&process_locks, __ATOMIC_ACQUIRE);
	if (locks)
		return locks;
	word = get_word();
	locks = word ? ((struct process_page *)(void *)word)->lock : plain;
	if (__atomic_compare_exchange_n(&process_locks, &none, locks, 0,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return locks;
	return none;
}

pthread_mutex_t *kevent_process_lock(void)
{
	return get_locks();
}

pthread_mutex_t *kevent_process_probe(int fd)
{
	return get_locks() + 1 + (__u32)fd % KEVENT_PROBES;
}

__u32 kevent_process_mark(void)
{
	__u32 *word = get_word();
	__u32 mark = 0;

	if (!word)
		return 0;
	__atomic_compare_exchange_n(word, &mark, new_mark(), 0,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
