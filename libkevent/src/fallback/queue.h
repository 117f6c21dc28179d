/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Queues and watches of the fallback
 *
 * A queue is an epoll instance, whose descriptor the program has, and what epoll
 * does not know: watches with their modes, events that wait for room, marks,
 * timers. Each watch of a file has a registration of its own in epoll. As epoll
 * knows a descriptor once, the second watch of one is in a second instance, which
 * the first one watches. So activity and polls of watches do not mix.
 *
 * All of a queue is under its lock, but for what says otherwise. The lock is not
 * held while a call sleeps. Nothing is allocated to deliver an event, but for a
 * real-time signal when it is taken.
 */
#ifndef LIBKEVENT_FB_QUEUE_H
#define LIBKEVENT_FB_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "libkevent.h"
#include "guard.h"
#include "index.h"
#include "list.h"
#include "ring.h"

#pragma GCC visibility push(hidden)

/* Events that one epoll_wait() takes at most */
#define FB_BATCH	64

/* FB_CANCELLED is CLOCK_REALTIME, for timers that go when it is set, and calls that look then. */
enum fb_clock_nr {
	FB_MONOTONIC, FB_REALTIME, FB_BOOTTIME, FB_TAI, FB_CANCELLED,
	FB_NR_CLOCKS
};

/*
 * Descriptors that a queue has in its epoll instance. Epoll hands back these numbers for
 * them; tokens of watches have a generation, so they are larger.
 */
enum fb_own_nr {
	FB_OWN_KICK,
	FB_OWN_SECOND,
	FB_OWN_INOTIFY,
	FB_OWN_CLOCK,		/* and the others, by &enum fb_clock_nr */
	FB_NR_OWN = FB_OWN_CLOCK + FB_NR_CLOCKS,
	FB_OWN_SIGNAL = FB_NR_OWN,	/* those of the hub */
};

struct fb_queue;
struct fb_hub;
struct fb_inode;
struct fb_timer;

/**
 * struct fb_serving - the chains of a queue, and the threads that run them
 * @chains:	those that wait, in order
 * @running:	threads that run one, at most @limit of them
 * @asleep:	threads that are to be woken for the next one
 * @limit:	of the thread that came last
 * @wakeups:	a futex: changes with each wake-up. Atomic
 */
struct fb_serving {
	struct fb_list	chains;
	__u32		running;
	__u32		asleep;
	__u32		limit;
	__u32		wakeups;
};

/**
 * struct fb_kick - says to epoll that something has become ready here, by an eventfd
 * @pending:	epoll has a kick that no call has seen
 * @counted:	the eventfd has a count: each look of epoll is a kick
 */
struct fb_kick {
	bool	pending;
	bool	counted;
};

/**
 * struct fb_sleepers - the calls of a queue that may sleep
 * @nr:		how many, an atomic count; changed under the lock
 * @buffers:	of these, those with a buffer
 * @wakes:	calls that READY without entries is to end
 * @ended:	by WAKE_ALL: no call sleeps any more. Set once and for all; read without the lock
 * @herd:	those that are still to be woken for a watch with WAKEUP_ALL. While there are
 *		any, there is a kick: each call that collects it kicks again. Read without
 *		the lock
 * @round:	changes when a herd is woken, behind &fb_queue.work; a call begins to read it
 *		without the lock
 * @left:	entries of the ring that were stored beside sleepers, each of which is to
 *		end a call. While there are any, there is a kick
 * @soonest:	none has what it waits for in the ring before this position
 * @several:	the same of those that wait for several entries
 */
struct fb_sleepers {
	__u32	nr;
	__u32	buffers;
	__u32	wakes;
	bool	ended;
	__u32	herd;
	__u32	round;
	__u32	left;
	__u64	soonest;
	__u64	several;
};

/**
 * struct fb_clock - timers of a clock
 * @nr:		its number
 * @at:		when the timerfd expires; not after the first timer
 * @was_set:	the clock was, and the timers have yet to be cancelled
 * @heap:	binary heap by time, from 1; each timer of the queue has room in it
 * @len:	its length, @room for how many there is memory
 */
struct fb_clock {
	int		nr;
	__s64		at;
	bool		was_set;
	struct fb_timer	**heap;
	__u32		len;
	__u32		room;
};

/**
 * struct fb_timers - the timers of a queue
 * @clocks:	by fb_clock_nr
 * @on_set:	timers that are cancelled when the clock is set
 */
struct fb_timers {
	struct fb_clock	clocks[FB_NR_CLOCKS];
	struct fb_list	on_set;
};

/**
 * struct fb_futexes - the FUTEX watches of a queue
 * @thread:	waits for them, once there is any
 * @armed:	watches it is to wait for
 * @nr:		how many words these are, with its own; 0: there is no thread
 * @word:	its own, which changes when @armed does
 * @stop:	the thread is to end
 */
struct fb_futexes {
	pthread_t	thread;
	struct fb_list	armed;
	__u32		nr;
	__u32		word;
	bool		stop;
};

/* Watches on a list */
struct fb_watches {
	struct fb_list	head;
	__u32		nr;
};

/*
 * An event of epoll for no watch: its @token, and how often it came again, and @others since. A new
 * instance that had no room for all watches has @failed so often since the last one that had.
 */
struct fb_stray {
	__u64	token;
	__u32	nr;
	__u32	others;
	__u32	failed;
};

/**
 * struct fb_queue - a queue of the fallback
 * @lock:	protects all that follows but for what says otherwise
 * @fd:		a descriptor of the epoll instance: the one that was used last
 * @own:	by &enum fb_own_nr, or -1
 * @shadow:	it has what a queue of the module lacks, whose descriptor @fd is: driven.c
 * @process:	of kevent_process_mark(): the process it works in
 * @refuses:	%KEVENT_INIT_REFUSE_ALL
 * @call:	counts calls, to tell what was taken before from what was taken since; of a
 *		shadow: queues that had the number. Read without the lock
 * @edges:	level watches are registered as edges and polled by each call
 *		while a call sleeps, because epoll would repeat them to a thread that
 *		must sleep. Set once and for all; read without the lock
 * @work:	a call must look at the lists before it asks epoll. Read without
 *		the lock: a call that misses it gets a kick
 * @idle:	the last collection left nothing; read and written without the lock
 * @gave_way:	the last time that level watches to poll could fill the room, a call has
 *		asked epoll first
 * @kick:	wakes those who sleep
 * @ring:	its ring
 * @sleepers:	who sleeps, and what for
 * @lists:	by &enum fb_list_nr
 * @index:	all watches
 * @stray:	the latest event of no watch
 * @serving:	chains and serving threads
 * @hub:	of signals, if it has such watches
 * @signals:	which of these watches got some that no call has seen, bit by bit; under the lock
 *		of the hub
 * @timers:	and the others belong to their sources
 * @inodes:	chains by watch descriptor, NULL until there is inotify
 * @delivered:	entries handed to user memory
 * @users:	calls in progress, and free, live, dying: without a name, or dead: being
 *		freed, by who dropped them to 0. One atomic word, see registry.c
 * @names:	descriptors of the table that mean this queue; changes under the table's lock.
 *		Atomic
 * @next:	list of all queues ever made; they are used again, not freed
 */
struct fb_queue {
	pthread_mutex_t		lock;
	int			fd;
	int			own[FB_NR_OWN];
	bool			shadow;
	__u32			process;
	__u32			refuses;
	__u32			call;
	bool			edges;
	bool			work;
	bool			idle;
	bool			gave_way;
	struct fb_kick		kick;
	struct fb_ring		ring;
	struct fb_sleepers	sleepers;
	struct fb_watches	lists[FB_NR_LISTS];
	struct fb_index		index;
	struct fb_stray		stray;
	struct fb_serving	serving;
	struct fb_hub		*hub;
	__u64			signals;
	struct fb_timers	timers;
	struct fb_inode		**inodes;
	struct fb_futexes	futexes;
	__u64			delivered;
	__u32			users;
	__u32			names;
	struct fb_queue		*next;
};

/* The first watch on a list that is not empty */
static inline struct fb_watch *fb_first(const struct fb_queue *q, enum fb_list_nr list)
{
	return fb_container(q->lists[list].head.next, struct fb_watch, link);
}

/* epoll.c: 0 or -errno */
int fb_epoll_ctl(int epoll, int op, int fd, __u32 events, __u64 token);
/* Does an epoll instance watch a file by that number? Changes nothing that it has. */
bool fb_epoll_has(int epoll, int fd);
/*
 * The same without a lock, for handlers of signals. It is true as well while another
 * thread looks at the same, which is possible only if the instance does not have it.
 */
bool fb_epoll_probe(int epoll, int fd);
/* Does the descriptor refer to the epoll instance of the queue? 0, -EBADF or -EINVAL */
int fb_queue_check(struct fb_queue *q, int fd);

/* kick.c */
void fb_queue_lock(struct fb_queue *q, int fd);
void fb_queue_unlock(struct fb_queue *q);

static inline struct fb_queue *fb_queue_locked(struct fb_queue *q, int fd)
{
	fb_queue_lock(q, fd);
	return q;
}

static inline void fb_queue_unlock_at(struct fb_queue **q)
{
	fb_queue_unlock(*q);
}

/* To the end of the block */
#define FB_HOLD_QUEUE(q, fd)						\
	struct fb_queue *__held_queue FB_AT_END(fb_queue_unlock_at) =	\
		fb_queue_locked(q, fd)

/* Make the epoll descriptor readable, and a sleeper look. */
void fb_kick(struct fb_queue *q);
/*
 * As fb_queue_check(), for a call that will kick: it may do so here, before there is
 * something to kick for.
 */
int fb_kick_first(struct fb_queue *q, int fd);
/* If there is something for others, and otherwise have none. */
void fb_kick_if_needed(struct fb_queue *q);
/* The same, until all of the sleepers have woken up. */
void fb_kick_all(struct fb_queue *q);

static inline bool fb_has_sleepers(const struct fb_queue *q)
{
	return __atomic_load_n(&q->sleepers.nr, __ATOMIC_SEQ_CST);
}

/**
 * struct fb_number - what is known of the number of a descriptor
 * @named:	the queue that it means, or did. Read without the lock
 * @queue:	of a number that the library keeps: whose it is; NULL: the hub's
 * @at:		where it is kept; NULL: nobody does
 * @kind:	a word in the name of such files
 * @marks:	open files by that number that were marked
 */
struct fb_number {
	struct fb_queue		*named;
	const struct fb_queue	*queue;
	int			*at;
	const char		*kind;
	__u32			marks;
};

#define FB_CHUNK	1024U
#define FB_NUMBERS	(1024 * FB_CHUNK)

/* own.c: they change under kevent_process_lock(). A chunk, once there, stays. */
extern struct fb_number *fb_numbers[];
/* NULL: too large, or without memory */
struct fb_number *fb_number_make(int fd);

/* NULL: there is none */
static inline struct fb_number *fb_number(int fd)
{
	struct fb_number *chunk = NULL;

	if ((unsigned int)fd < FB_NUMBERS)
		chunk = __atomic_load_n(&fb_numbers[(unsigned int)fd / FB_CHUNK],
					__ATOMIC_ACQUIRE);
	return chunk ? &chunk[(unsigned int)fd % FB_CHUNK] : NULL;
}

/*
 * Descriptors that a queue keeps. A number is -1 before it is opened and after it
 * was closed. fb_own() takes what a system call has returned, for a queue, or for the hub if
 * @q is NULL; @kind is a word in the name of the file. Returns 0 or -errno.
 */
int fb_own(const struct fb_queue *q, int *at, long fd, const char *kind);
void fb_close_fd(int *at);
/* The same without closing it. Returns what it was. */
int fb_disown(int *at);
/* Keep it in another place, which must be there as long. */
void fb_own_move(int *to, int *from);
/*
 * Is it another file by now? Then the number becomes -1. @epoll is an instance that
 * should have it, or -1.
 */
void fb_own_check(int *at, int epoll);
/* In a child: close all that a queue of the parent has, unless they are other files. */
void fb_own_let_go(const struct fb_queue *q, int epoll);
/* Another file has the number now. The lock of the process is held. */
void fb_own_lost(struct fb_number *n);

/*
 * The open file that a number means, among those that it has meant; 0: that cannot be told.
 * It is marked, if need be.
 */
__u32 fb_opened(int fd);
/* Does the number mean that one still, as far as can be told? */
bool fb_opened_is(int fd, __u32 nr);

/* Has it a name that is no path, with this word in it? By /proc: 0, 1 or -errno */
int fb_is_kind(int fd, const char *kind);
/* Events of poll() that a file has now, of these; 0, too, if it fails */
short fb_poll(int fd, short events);
/* The first bytes of a file; an empty string if there is none */
void fb_read_file(const char *path, char *text, size_t size);

/* registry.c: the queue, referenced, or NULL */
struct fb_queue *fb_get(int fd);
void fb_put(struct fb_queue *q);

static inline void fb_put_at(struct fb_queue **q)
{
	if (*q)
		fb_put(*q);
}

/* Of a variable: its reference is given back at the end of the block. */
#define FB_PUT		FB_AT_END(fb_put_at)

/* A reference to one that was found otherwise. False: it goes away */
bool fb_ref(struct fb_queue *q);
/* The descriptor does not mean the queue any more. NULL: it is new, and means nothing of before. */
void fb_forget(int fd, struct fb_queue *q);
/* Does the queue have a name still? */
bool fb_is_live(struct fb_queue *q);
int fb_publish(int fd, struct fb_queue *q);
/* Clear the fields, without epoll: 0 or -errno */
int fb_queue_clear(struct fb_queue *q);
/* A queue that nobody else knows, with a reference; without a name */
struct fb_queue *fb_queue_alloc(void);
/* In place of fb_put(), for a queue that got no name */
void fb_abandon(struct fb_queue *q);
/* KEVENT_FB_PASS, for a number that was the queue's, which it is no more */
int fb_not_this(int fd, struct fb_queue *q);
/* The result of a call in a child: -EXDEV, unless the number has come to mean something else */
int fb_queue_abroad(struct fb_queue *q, int fd);

/* state.c */
/*
 * The number has come to be that of another file, the one of @of or, if that is NULL, of the
 * library: its watches are gone. Nothing is freed, and epoll is not asked.
 */
void fb_number_changed(struct fb_queue *q, int fd, const struct fb_watch *of);
/* Register a descriptor of the library in the instance of the queue: 0 or -errno. */
int fb_register_own(struct fb_queue *q, int fd, __u32 events, __u64 token);
/* Have @fd, which a system call has returned, as one of &fb_queue.own. */
int fb_own_watched(struct fb_queue *q, enum fb_own_nr nr, long fd);
/* Register all but the second instance in a new one. */
int fb_register_all_own(struct fb_queue *q);
void fb_move(struct fb_queue *q, struct fb_watch *w, enum fb_list_nr list);
/* To the ready list */
void fb_enqueue(struct fb_queue *q, struct fb_watch *w);
void fb_dequeue(struct fb_queue *q, struct fb_watch *w);
/* A level watch was seen by a thread that must not get it. */
void fb_use_edges(struct fb_queue *q);
void fb_kill(struct fb_queue *q, struct fb_watch *w);
/* End the watches whose descriptor means another file by now. */
void fb_kill_others(struct fb_queue *q);
void fb_kill_all(struct fb_queue *q);

/* deliver.c */
void fb_report(struct fb_queue *q, struct fb_watch *w, __u32 mask);
void fb_fill(struct fb_queue *q, struct fb_watch *w, struct ukevent *uk);
/* A call has delivered its last event of the watch: its mode may end, disarm or requeue it. */
void fb_delivered(struct fb_queue *q, struct fb_watch *w);
void fb_recheck(struct fb_queue *q, struct fb_dest *d, __u32 call);
/* No call sleeps: have poll() of the queue say what is ready. */
void fb_show(struct fb_queue *q);
/* A call is to sleep, and not to be woken by what others have. */
void fb_hide(struct fb_queue *q);
void fb_deliver(struct fb_queue *q, struct fb_dest *d);
void fb_take(struct fb_queue *q, struct fb_watch *w, __u32 mask,
	     struct fb_dest *d, __u32 call);

/* collect.c */
void fb_collected(struct fb_queue *q, struct epoll_event *events, int nr,
		  struct fb_dest *d, __u32 call);
int fb_collect(struct fb_queue *q, int fd, struct fb_dest *d);

/* watch.c */
/* Is there a source of the type, and what it takes of the kernel? */
bool fb_has_type(__u32 type);
int fb_check_request(const struct ukevent *uk);
/* That the descriptor of a request is not open is said before all else. */
int fb_fd_error(const struct ukevent *uk, int err);
/* The watch of a request, or NULL */
struct fb_watch *fb_find_request(struct fb_queue *q, const struct ukevent *uk);
/* A new one, armed, or NULL. @ret: the conditions that hold, or -errno */
struct fb_watch *fb_watch_new(struct fb_queue *q, const struct ukevent *uk, int *ret);
int fb_add(struct fb_queue *q, struct ukevent *uk);
int fb_modify(struct fb_queue *q, const struct ukevent *uk);
int fb_remove(struct fb_queue *q, const struct ukevent *uk);
int fb_mark(struct fb_queue *q, const struct ukevent *uk);

/*
 * timer.c: a step of CLOCK_REALTIME wakes all who sleep. True: from now on; false: as
 * before, or there is no descriptor for it
 */
bool fb_hear_steps(struct fb_queue *q);

/* aio.c: kevent_wait() with KEVENT_FLAGS_SERVE, for a descriptor that was checked */
int fb_serve(struct fb_queue *q, int fd, __u32 limit,
	     const struct timespec *timeout, __u32 flags);

/* driven.c: as pthread_create(), for a thread of the library */
int fb_start_thread(pthread_t *thread, void *(*function)(void *), void *arg);
/* Something has happened to a watch, which may be gone after this. */
void fb_occurred(struct fb_queue *q, struct fb_watch *w, __u32 mask);
/* Of a queue of the module; NULL without memory */
struct fb_queue *fb_shadow(int fd);
/* Does the queue have the watch still? */
bool fb_is_there(struct fb_queue *q, struct fb_watch *w);
/* Drop what is not delivered; remove the watch */
void fb_take_back(struct fb_queue *q, struct fb_watch *w);
void fb_end_watch(struct fb_queue *q, struct fb_watch *w);

void fb_set_result(struct ukevent *uk, int ret);
/* ctl.c: 0, 1 when a result must be looked at, or -errno */
int fb_make_changes(struct fb_queue *q, int fd, struct kevent_change *changes,
		    __u32 nr);

static inline __u64 fb_sum(const struct ukevent *uk)
{
	return (__u64)uk->ret_data[1] << 32 | uk->ret_data[0];
}

/* Does ADD hand back what is ready at once? */
static inline bool fb_hands_back(const struct fb_watch *w)
{
	return (w->req_flags & (KEVENT_REQ_HAND_BACK | KEVENT_REQ_READY)) ==
	       KEVENT_REQ_HAND_BACK && !(w->state & FB_DISARMED);
}

#pragma GCC visibility pop

#endif /* LIBKEVENT_FB_QUEUE_H */
