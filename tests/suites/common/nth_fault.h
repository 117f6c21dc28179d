/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The n-th allocation, or copy from or to user memory, of a call fails
 *
 *	n = 1, 2, ...	a new queue, on which an event waits
 *			the call, whose n-th allocation or copy fails
 *			it said a documented errno and changed nothing, or succeeded
 *			the call again, now without a fault: succeeds
 *			what was asked for works; the event that waited comes, once
 *			the queue is closed: descriptors and charges are as before
 *	until the call has fewer than n
 *
 * /proc/self/fail-nth says which one, for this thread alone. Leaks are for kmemleak.
 */
#ifndef NTH_FAULT_H
#define NTH_FAULT_H

#include <signal.h>

#include "helpers.h"
#include "proc.h"
#include "signals.h"
#include "timers.h"

#define SIZE		64		/* of the ring */
#define MANY		150		/* more than two blocks of the index hold */
#define TEXT		(1 << 15)
#define ID		77		/* of the watch of USER */

/* User values: of the event that waits, and of the watch the call is about */
enum { WAITED, NEW, VALUES };

struct source;
struct path;

struct scene {
	struct queue		q;
	const struct source	*source;
	const struct path	*path;
	bool			given;		/* SCM: the call has succeeded */
	bool			hit;		/* the fault has come */
	int			waits[2];	/* a pipe that has data */
	int			fd[2];
	int			other;		/* what the call made: a descriptor, a timer */
	struct child		child;
	uint32_t		word;
	struct ukevent		ev[MANY];
	struct kevent_wait_arg	arg;
	struct kevent_change	change;
	sigset_t		mask;
	char			before[TEXT], after[TEXT];
	unsigned int		fds;
	uint64_t		free_fds;
	long long		bytes;
};

/**
 * struct path - a call that is to fail
 * @name:	for the report
 * @errors:	what it may say then, other than ENOMEM
 * @prepare:	makes what it needs on the new queue
 * @call:	the call: -errno, or it was successful
 * @changes:	failed, it may have changed the queue: @again does not look
 * @fire:	makes events: returns how many of the watch NEW must come
 * @end:	releases what @prepare made
 */
struct path {
	const char	*name;
	int		errors[2];
	void		(*prepare)(struct scene *s);
	int		(*call)(struct scene *s);
	bool		changes;
	unsigned int	(*fire)(struct scene *s);
	void		(*end)(struct scene *s);
};

/**
 * struct source - how a watch of it is made
 * @name:	for the report
 * @open:	makes what is watched
 * @set:	fills in an entry, with the user value NEW and ET if it has that
 * @fire:	makes an event
 * @close:	undoes @open
 * @marks:	READY is for it: it makes an event
 */
struct source {
	const char	*name;
	void		(*open)(struct scene *s);
	void		(*set)(struct scene *s, struct ukevent *ev);
	void		(*fire)(struct scene *s);
	void		(*close)(struct scene *s);
	bool		marks;
};

void set_failures(const char *kind);
void allow_failures(void);
void set_nth(unsigned int n);
bool was_hit(void);
void close_all(int *fd, unsigned int nr);
void fail_each(const struct path *p, const struct source *source,
	       unsigned int least);
void open_two(struct scene *s);
void write_two(struct scene *s);
void close_other(struct scene *s);
void close_child(struct scene *s);
void set_word(struct scene *s, struct ukevent *ev);
void wake_word(struct scene *s);
unsigned int one_event(struct scene *s);
unsigned int two_events(struct scene *s);

#endif /* NTH_FAULT_H */
