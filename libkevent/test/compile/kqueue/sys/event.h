/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of kqueue(2) that echo_kqueue.c needs, to compile it where there is none
 */
#ifndef SYS_EVENT_H
#define SYS_EVENT_H

#include <stdint.h>
#include <time.h>

struct kevent {
	uintptr_t	ident;
	short		filter;
	unsigned short	flags;
	unsigned int	fflags;
	int64_t		data;
	void		*udata;
};

#define EVFILT_READ	(-1)
#define EV_ADD		0x1

#define EV_SET(kev, i, fi, fl, ff, da, ud)			\
	(*(kev) = (struct kevent){				\
		.ident = (i), .filter = (fi), .flags = (fl),	\
		.fflags = (ff), .data = (da), .udata = (ud),	\
	})

int kqueue(void);
int kevent(int kq, const struct kevent *changes, int nr_changes,
	   struct kevent *events, int nr_events, const struct timespec *timeout);

#endif /* SYS_EVENT_H */
