/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kevent-lane: what the files of the preloaded object share
 *
 * All state is under one lock, lane_lock(), but the table of descriptors, which is read
 * without it. malloc() and free() are those of memory.c, which need it, too. No thread sleeps with
 * the lock, or calls a function there in which it may be cancelled: see lane_call().
 */
#ifndef LANE_H
#define LANE_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <libkevent.h>

#include "real.h"

#define EXPORT		__attribute__((visibility("default")))
/* Another name by which libc exports a function. clang has no copy(), and misses none. */
#if __has_attribute(copy)
#define ALIAS(name, of)	EXPORT __typeof__(of) name __attribute__((alias(#of), copy(of)))
#else
#define ALIAS(name, of)	EXPORT __typeof__(of) name __attribute__((alias(#of)))
#endif
#define FOREVER		(-1)
#define FOREVER_FROM	1000000000	/* s; some more would not be a number of ns */
#define NOT_OURS	(-4096)	/* no errno: to be done by the socket */
#define LANE_EVENTS	64
#define LANE_BEAT	32	/* calls that do not look at all files, for one that does */
#define LANE_OWN	2	/* entries of an array for poll() that lane_sleep() uses */

enum kind { CONN, EPOLL, PRIVATE };

struct object {
	enum kind	kind;
	int		refs;
	__u64		serial;		/* of all objects */
};

/*
 * Shared by parents and children: what was in memory when a connection left it. Of a candidate:
 * how many processes have not closed it; one that uses it as a socket counts for ever.
 */
struct rest {
	unsigned int	holders;
	size_t		size;
	size_t		at;
	unsigned char	bytes[];
};

enum state { NEW, CANDIDATE, STREAM, PLAIN, LOST };

struct interest {
	TAILQ_ENTRY(interest)	ready;
	LIST_ENTRY(interest)	of_conn, of_epoll;
	struct conn		*conn;
	struct epoll		*epoll;
	struct epoll_event	ev;
	int			fd;
	bool			listed;
	bool			off;	/* EPOLLONESHOT has reported it */
};

/*
 * A socket: NEW until it is connected or listens, a CANDIDATE if that is on a listed path until
 * it is used. LOST: another process, which has a copy, uses it.
 */
struct conn {
	struct object		o;
	enum state		state;
	bool			bound;		/* to a listed path */
	bool			offers;
	bool			begun;		/* bytes were read: no offer of the peer follows */
	bool			joined;		/* it was in memory */
	bool			asked;		/* bytes were written since the last read */
	unsigned char		alone;		/* answers of a peer that has not accepted */
	bool			quits;		/* for good, as soon as nothing is in memory */
	bool			said;		/* that it is lost */
	int			leaves;		/* events, not before it is a socket */
	pthread_t		writer;		/* 0, or waits to write the rest of a call */
	struct kevent_stream	*s;
	__u64			user;		/* of the events of @s */
	int			watched;	/* events, by the hub */
	struct rest		*rest;
	LIST_HEAD(, interest)	interests;
	struct interest		one;		/* of them, if it has a conn */
	LIST_ENTRY(conn)	all;
};

/* The descriptor that a stream has for itself */
struct private {
	struct object	o;
	struct conn	*conn;
};

struct epoll {
	struct object		o;
	LIST_HEAD(, interest)	interests;
	TAILQ_HEAD(, interest)	ready;
	unsigned int		nr_ready, beat;
	bool			nested;		/* watched: the kernel has all */
	bool			stale;		/* the kernel may have events, and says so once */
	int			inner_fd;	/* of the hub */
};

struct lane_settings {
	const char	*paths;		/* one a line */
	__u32		looks;
	bool		forks_alone;	/* children use no connections */
	int64_t		fork_limit;	/* ns, for the peers to follow before a fork or an exec */
	unsigned char	fill;		/* of memory that is freed, or 0 */
	pid_t		stats;		/* 0, or the first program that says them */
};

extern struct lane_settings lane_settings;
extern LIST_HEAD(conns, conn) lane_conns;
extern struct lane_stats {
	__u64	streams, sleeps, in_memory, in_socket, out_memory, out_socket;
} lane_stats;

/* table.c */
#define PAGE_SLOTS	1024U
#define PAGES		1024U

/*
 * The address of the object, and its kind in the lowest bits: without the lock, the object
 * may be freed at any time.
 */
#define KIND_BITS	3UL

extern uintptr_t *lane_table[PAGES];

static inline uintptr_t lane_slot(int fd)
{
	unsigned int nr = (unsigned int)fd;
	uintptr_t *page;

	if (nr >= PAGES * PAGE_SLOTS)
		return 0;
	page = __atomic_load_n(&lane_table[nr / PAGE_SLOTS], __ATOMIC_ACQUIRE);
	return page ? __atomic_load_n(&page[nr % PAGE_SLOTS], __ATOMIC_ACQUIRE) : 0;
}

static inline struct object *lane_find(int fd)
{
	return (struct object *)(lane_slot(fd) & ~KIND_BITS);
}

static inline void *lane_find_kind(int fd, enum kind kind)
{
	uintptr_t slot = lane_slot(fd);

	return (slot & KIND_BITS) == kind ? (void *)(slot & ~KIND_BITS) : NULL;
}

/* Do waits for it have to look here? */
static inline bool lane_is_waited(int fd)
{
	return lane_find_kind(fd, CONN) || lane_find_kind(fd, EPOLL);
}

/* With one reference, and the lock. NULL: there is no memory. */
void *lane_new(enum kind kind, size_t size);

/* Takes over a reference; what was there loses its own. False: there is no memory. */
bool lane_table_set(int fd, struct object *o);
int lane_number_of(const struct object *o, int first);
void lane_put(struct object *o);

/* Under the lock: so many sleeps were put off since lane_lock(), by something to do. */
extern unsigned int lane_awake;
void lane_lock(void);
void lane_unlock(void);
void lane_unlock_only(void);
void lane_unlock_in_child(void);
bool lane_is_inside(void);

/* signals.c */
/* Of handlers that ran in the last sleep */
#define RESTART		1
#define NO_RESTART	2

extern __thread volatile sig_atomic_t lane_interrupted, lane_put_off
	__attribute__((tls_model("initial-exec")));
/* Handlers that were put off in this process */
void lane_signals_again(void);

/* hub.c */
int lane_private_copy(int fd, struct conn *c);
struct kevent_streams *lane_set(void);
void lane_dispatch(void);
void lane_settle(void);
void lane_take_events(void);
void lane_glance(void);
void lane_take_these(const struct epoll_event *ev, int nr);
bool lane_may_sleep(bool looks, const struct timespec *timeout);
bool lane_hub_watch(struct conn *c);
void lane_hub_unwatch(struct conn *c);
bool lane_hub_has(struct epoll *ep, int epfd);
void lane_hub_lose(const struct epoll *ep);
int lane_hub_fd(void);
int lane_hub_wake_fd(void);
void lane_hub_forget(void);

/* sleep.c */
/* An object that the thread uses when it goes on after a sleep; the last one goes first. */
struct hold {
	struct hold	*outer;
	struct object	*o;		/* NULL: lost in the sleep */
	__u64		serial;
};

void lane_hold(struct hold *h, struct object *o);
void lane_release(struct hold *h);
int lane_sleep(struct pollfd *fds, nfds_t nr, int64_t deadline, const sigset_t *mask);
bool lane_can_sleep_in_hub(void);
bool lane_another_sleeps_in_hub(void);
void lane_wake_in_hub(void);
int lane_sleep_in_hub(int64_t deadline, const sigset_t *mask);
bool lane_has_sleepers(void);
bool lane_is_crowded(void);
void lane_wake(const struct conn *c);
void lane_wake_all(void);
void lane_wake_one(void);
void lane_have_watcher(void);
struct sleep *lane_before_handler(void);
void lane_after_handler(struct sleep *s);
void lane_threads_forget(void);
int64_t lane_deadline(int64_t span);
int lane_await_socket(int fd, int events, int64_t deadline);
bool lane_is_over(int64_t deadline);

/* conn.c */
struct conn *lane_conn(int fd, bool reads);
void lane_conn_new(int fd, enum state state);
void lane_conn_connected(int fd, bool listed);
void lane_conn_listens(int fd);
void lane_conn_end(struct conn *c);
void lane_conn_serve(struct conn *c);
bool lane_is_others_turn(const struct conn *c);
int lane_conn_poll(struct conn *c, int fd, int events);
int lane_conn_wait(struct conn *c, int fd, int events, int64_t deadline);
int lane_conn_try_leave(struct conn *c);
int lane_conn_leave(struct conn *c, int64_t deadline);
int lane_conn_cut(struct conn *c, int fd);
void lane_count_in(int memory, ssize_t nr);
bool lane_conn_keep(struct conn *c);
void lane_forget_parent(void);
/* READS: the call cannot have the rest; READS_REST: it can. */
enum use { WRITES, READS, READS_REST };

/*
 * Before a call that is not covered: 0, or -1 and errno. The second one is for a call that
 * moves bytes: it does not wait where that call would not, but fails with EAGAIN.
 */
int lane_leave(int fd, bool reads);
int lane_leave_to_call(int fd, enum use use, int flags);
void lane_say(const char *what, int fd);
int lane_is_lost(struct conn *c, int fd);

/* rest.c */
bool lane_has_rest(const struct conn *c);
size_t lane_rest_size(const struct conn *c);
bool lane_rest_is_large(const struct conn *c, bool of_memory);
ssize_t lane_rest_read(struct conn *c, const struct iovec *iov, int nr, bool peek);
int lane_rest_add(struct conn *c, const void *data, size_t len);
bool lane_rest_share(struct conn *c);
bool lane_rest_is_shared(const struct conn *c);
void lane_rest_free(struct conn *c);

/* epoll.c */
void lane_conn_ready(struct conn *c);
void lane_settle_interests(struct conn *c);
void lane_drop_interests(struct conn *c);
void lane_epoll_end(struct epoll *ep);
int lane_epoll_leave(struct epoll *ep);
bool lane_epoll_is_ready(struct epoll *ep);

/* polls.c */
bool lane_is_span(const struct timespec *t);
int64_t lane_span(const struct timespec *t);

/* paths.c */
bool lane_is_listed(const struct sockaddr *addr, socklen_t len);

/* transfer.c; false: the caller makes the call on the socket. */
bool lane_is_nonblocking(int fd, int flags);
bool lane_recv(int fd, const struct iovec *iov, int nr, int flags, ssize_t *got);
int lane_count(struct conn *c, int fd);
void lane_end_turn(struct conn *c);
bool lane_send(int fd, const struct iovec *iov, int nr, int flags, ssize_t *sent);

#endif /* LANE_H */
