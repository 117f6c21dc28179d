/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * What functions were called in the glibc of x86-64 before 2.32
 *
 * A later one has these names beside its new ones. So the library of a wheel, which is compiled
 * with this file in front, runs on both, whichever of them the machine has that compiles it.
 */
#ifndef KEVENT_OLD_GLIBC_H
#define KEVENT_OLD_GLIBC_H

#include <sys/stat.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

/* The name, and what a source or a header calls it that is compiled with a later glibc */
#define OLD(name, called) __asm__(".symver " #called ", " #name "@GLIBC_2.2.5")

OLD(__fxstat, kevent_fxstat);		/* fstat(), 2.33 */
OLD(pthread_create, pthread_create);	/* 2.34 */
OLD(pthread_detach, pthread_detach);	/* 2.34 */
OLD(pthread_join, pthread_join);	/* 2.34 */
OLD(pthread_sigmask, pthread_sigmask);	/* 2.32 */
OLD(strtol, __isoc23_strtol);		/* 2.38 */
OLD(strtoul, __isoc23_strtoul);		/* 2.38 */
#undef OLD

/* Of 2.32: the library counts as if there were threads, as it does with an older glibc */
#define __libc_single_threaded 0

int kevent_fxstat(int version, int fd, struct stat *st);

#define fstat(fd, st) kevent_fxstat(1, fd, st)

#endif
