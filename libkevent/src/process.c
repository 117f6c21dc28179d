// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Which process a queue was opened in
 *
 * After fork() the child has a copy of a private ring, with the entries that the
 * parent has not taken yet. A page that fork() empties tells the two apart.
 */
#include <stddef.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

#include "process.h"

const volatile __u32 *kevent_process_word;

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

__u32 kevent_process_mark(void)
{
	__u32 *word = (__u32 *)__atomic_load_n(&kevent_process_word,
					       __ATOMIC_ACQUIRE);
	__u32 mark = 0;

	if (!word)
		word = map_word();
	if (!word)
		return 0;
	__atomic_compare_exchange_n(word, &mark, new_mark(), 0,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
