/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of nesting share: sets of files, which are queues and epolls, and
 * small io_urings
 */
#ifndef SETS_H
#define SETS_H

#include <poll.h>
#include <sys/syscall.h>
#include <linux/io_uring.h>

#include "helpers.h"

/* Links of the longest path, and sets in it */
#define MAX_LINKS	4
#define MAX_CHAIN	(MAX_LINKS + 1)

struct set {
	bool		is_queue;
	struct queue	q;	/* its fd is that of an epoll, too */
};

void open_set(struct set *s, bool is_queue);
void close_set(struct set *s);
/* Adds a level watch, for all queues in a queue, of input. 0 or -errno */
int set_add(struct set *s, int fd, uint32_t flags, uint64_t user);
int set_remove(struct set *s, int fd);

/* POLLIN, POLLRDNORM and what comes unasked, as far as poll() finds them */
int poll_now(int fd);
/* Sleeps in poll(); for start_actor(), with a pointer to a descriptor */
long poll_forever(void *fd);

/*
 * The system calls of poll() and epoll_wait(); newer architectures lack the old
 * ones.
 */
#ifdef __NR_poll
#define NR_POLL		__NR_poll
#define NR_EPOLL_WAIT	__NR_epoll_wait
#else
#define NR_POLL		__NR_ppoll
#define NR_EPOLL_WAIT	__NR_epoll_pwait
#endif

/* The smallest io_uring: one request at a time */
struct uring {
	struct io_uring_params	p;
	char			*rings;
	struct io_uring_sqe	*sqes;
	int			fd;
};

int open_uring(struct io_uring_params *p);
void map_uring(struct uring *u);
void close_uring(struct uring *u);
void submit_poll(struct uring *u, int fd, bool multishot);
void submit_nop(struct uring *u);
/* Does the work that is due, without waiting. */
void enter_uring(struct uring *u);
bool completed(struct uring *u);
/* Takes all completions; @res gets the newest result. Returns how many. */
unsigned int take_completions(struct uring *u, int *res);

#endif /* SETS_H */
