/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Which process a queue was opened in
 */
#ifndef LIBKEVENT_PROCESS_H
#define LIBKEVENT_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <linux/types.h>

/* Points to a word that fork() sets to 0 in the child; NULL before it is needed */
extern const volatile __u32 *kevent_process_word;

/* A number of this process that is not 0, or 0 without memory for the word */
__u32 kevent_process_mark(void);

/*
 * A lock for what processes have of their own. Nobody holds it in a child of fork(),
 * whatever other threads did in the parent.
 */
pthread_mutex_t *kevent_process_lock(void);

#define KEVENT_PROBES	16U

/*
 * The same, for a look whether an epoll instance has a descriptor: one of a few, by its
 * number. Nothing is locked under it.
 */
pthread_mutex_t *kevent_process_probe(int fd);

/* Was @mark made in this process? One that is 0 says nothing. */
static inline bool kevent_process_is(__u32 mark)
{
	return !mark ||
	       __atomic_load_n(kevent_process_word, __ATOMIC_RELAXED) == mark;
}

#endif /* LIBKEVENT_PROCESS_H */
