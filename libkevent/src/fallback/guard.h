/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Locks that are held to the end of a block
 */
#ifndef LIBKEVENT_FB_GUARD_H
#define LIBKEVENT_FB_GUARD_H

#include <pthread.h>

#define FB_AT_END(function)	__attribute__((cleanup(function), unused))

static inline pthread_mutex_t *fb_mutex_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void fb_mutex_unlock(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* A declaration: one in a block */
#define FB_HOLD(mutex)						\
	pthread_mutex_t *__held FB_AT_END(fb_mutex_unlock) = fb_mutex_lock(mutex)

#endif /* LIBKEVENT_FB_GUARD_H */
