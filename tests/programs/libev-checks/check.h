/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of libev, through its public interface
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <ev.h>

#ifndef EVBACKEND_KEVENT
#define EVBACKEND_KEVENT	0x100U
#endif

/* Ends the check unless the condition is true */
#define want(condition)							\
do {									\
	if (!(condition))						\
		check_fail(__FILE__, __LINE__, #condition);		\
} while (0)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct check - a check; it runs in a process of its own
 * @name:	its name
 * @run:	is given a new default loop
 * @ends_on_epoll: the loop has that backend at the end, and not the one it began with
 * @ends_on_epoll_with_module: the same, if the queues are those of the module
 * @not_with_module: the module has no sysctl that disables it, and the check is left out
 */
struct check {
	const char	*name;
	void		(*run)(struct ev_loop *loop);
	bool		ends_on_epoll;
	bool		ends_on_epoll_with_module;
	bool		not_with_module;
};

extern const struct check io_checks[];
extern const struct check life_checks[];

/* Flag of the backend under test */
extern unsigned int check_backend;

/* Calls libev has made in this process: kevent_wait(), kevent_init() */
extern unsigned long check_waits;
extern unsigned long check_inits;

bool check_module(void);
void check_fail(const char *file, int line, const char *condition)
	__attribute__((noreturn));

/* Entries delivered by all queues of the process; the number of queues */
unsigned long check_delivered(int *queues);

/* A watcher that counts its events */
struct counter {
	ev_io	io;
	int	calls;
	int	revents;	/* of the last call */
	int	drain;		/* read what is there */
};

void counter_start(struct ev_loop *loop, struct counter *c, int fd, int events);

/* Lets the loop run for so many seconds */
void run_for(struct ev_loop *loop, double seconds);

/* Runs the loop, up to ten seconds, until *value is at least so large */
void run_until(struct ev_loop *loop, const int *value, int least);

void make_pipe(int fd[2]);
void put(int fd);
void read_file(const char *path, char *text, size_t size);
void write_file(const char *path, const char *text);

#endif /* CHECK_H */
