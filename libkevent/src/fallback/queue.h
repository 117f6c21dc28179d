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
#include "list.h"

#pragma GCC visibility push(hidden)

/* Events that one epoll_wait() takes at most */
#define FB_BATCH	64

/* What epoll hands back. Tokens of watches have a generation, so they are larger. */
enum fb_token {
	FB_TOKEN_KICK,
	FB_TOKEN_SECOND,
	FB_TOKEN_SOURCE = 256,	/* from here on by type: so many of each source */
};

static inline __u64 fb_source_token(__u32 type, __u32 nr)
{
	return (__u64)FB_TOKEN_SOURCE * (type + 1) + nr;
}

/* States of a watch */
#define FB_READY	0x01U	/* on the ready list */
#define FB_RECHECK	0x02U	/* on the recheck list */
#define FB_DISARMED	0x04U	/* reports nothing until MODIFY */
#define FB_FIRED	0x08U	/* has something to report after MODIFY */
#define FB_BROKEN	0x10U	/* its source cannot deliver */
#define FB_SECOND	0x20U	/* registered in the second instance */
#define FB_ALWAYS	0x40U	/* a file that epoll refuses: always ready */
#define FB_REPEATED	0x80U	/* epoll reports it again while it is ready */
#define FB_TAKES	0x100U	/* who polls its file takes what there is */
#define FB_SHOWN	0x200U	/* on the list of those that epoll is to repeat */

struct fb_queue;
struct fb_signals;
struct fb_inodes;
struct fb_timers;
struct fb_futexes;

/**
 * struct fb_watch - a watch
 * @hash_next:	next one in its chain of fb_queue.hash
 * @link:	on a list of the queue, see @state
 * @id:		as in entries, and part of the key unless the source has another
 * @key:	by which it is found, with @type
 * @user:	of the last ADD or MODIFY, as are @event and @req_flags
 * @token:	what epoll hands back for it; 0: not registered
 * @ready:	conditions not yet delivered
 * @reported:	conditions of the newest entry in the ring
 * @stored:	position after that; 0: it makes no other one redundant
 * @call:	the call that took it last; in a shadow: its number in the module
 * @state:	FB_READY and its like
 */
struct fb_watch {
	struct fb_watch	*hash_next;
	struct fb_list	link;
	__u64		id;
	__u64		key;
	__u64		user;
	__u64		token;
	__u64		stored;
	__u32		type;
	__u32		event;
	__u32		req_flags;
	__u32		ready;
	__u32		reported;
	__u32		call;
	__u32		state;
};

/**
 * struct fb_slot - what a token stands for
 * @watch: NULL: nothing; @next is the next slot without a watch
 * @gen: generation, to recognise events of an earlier watch
 */
struct fb_slot {
	struct fb_watch	*watch;
	__u32		gen;
	__u32		next;
};

/**
 * struct fb_dest - where entries go
 * @slots: the ring, or a buffer; NULL: nothing is stored
 * @mask: of positions, so that they are indexes
 * @kidx: position of the next entry
 * @uidx: position of the oldest unread entry; of a buffer 0
 * @room: entries that may be stored
 * @ring: it is the ring
 * @again: epoll repeats what the call has; it cannot sleep like that
 */
struct fb_dest {
	struct ukevent	*slots;
	__u64		mask;
	__u64		kidx;
	__u64		uidx;
	__u32		room;
	bool		ring;
	bool		again;
};

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
 * struct fb_queue - a queue of the fallback
 * @lock:	protects all that follows but for what says otherwise
 * @fd:		a descriptor of the epoll instance: the one that was used last
 * @shadow:	it has what a queue of the module lacks, whose descriptor @fd is: driven.c
 * @second:	another instance, in the first, or -1
 * @kick:	an eventfd, edge-triggered in epoll: something has become ready here
 * @process:	of kevent_process_mark(): the process it works in
 * @ring:	the ring, or NULL; @size its slots
 * @kidx:	position after the newest entry of the ring
 * @refuses:	%KEVENT_INIT_REFUSE_ALL
 * @call:	counts calls, to tell what was taken before from what was taken since; of a
 *		shadow: queues that had the number. Read without the lock
 * @edges:	level watches are registered as edges and polled by each call
 *		while a call sleeps, because epoll would repeat them to a thread that
 *		must sleep. Set once and for all; read without the lock
 * @work:	a call must look at the lists before it asks epoll. Read without
 *		the lock: a call that misses it gets a kick
 * @idle:	the last collection left nothing; read and written without the lock
 * @kicked:	epoll has a kick that no call has seen
 * @counted:	@kick has a count: each look of epoll is a kick
 * @wakes:	calls that READY without entries is to end
 * @ended:	by WAKE_ALL: no call sleeps any more. Set once and for all; read without the lock
 * @herd:	of @sleepers, those that are still to be woken for a watch with
 *		WAKEUP_ALL. While there are any, there is a kick: each call that
 *		collects it kicks again. Read without the lock
 * @round:	changes when a herd is woken, behind @work; a call begins to read it without
 *		the lock
 * @sleepers:	calls that may sleep, an atomic count; changed under the lock
 * @buffers:	of @sleepers, those with a buffer
 * @gave_way:	the last time that level watches on @recheck could fill the room, a call has
 *		asked epoll first
 * @left:	entries of the ring that were stored beside @sleepers, each of which is to
 *		end a call. While there are any, there is a kick
 * @soonest:	no sleeper has what it waits for in the ring before this position
 * @several:	the same of those that wait for several entries
 * @ready:	watches with something to deliver
 * @recheck:	level watches that the next call polls
 * @shown:	with @edges: level watches that epoll repeats until a call is to sleep
 * @nr_ready:	length of @ready, @nr_recheck of @recheck
 * @hash:	watches by type and key; its size is a power of two
 * @nr_hash:	that size; @nr_watches: how many there are. The program decides how
 *		many; memory limits it
 * @slots:	by index in the token; @nr_slots, and the first @free_slot
 * @timers:	and the others belong to their sources, NULL until they are used
 * @serving:	chains and serving threads
 * @stray:	token of no watch that epoll has reported, @strays times again
 * @strays_other: others since then
 * @delivered:	entries handed to user memory
 * @users:	calls in progress, and free, live, dying: without a name, or dead: being
 *		freed, by who dropped them to 0. One atomic word, see registry.c
 * @names:	descriptors of the table that mean this queue; under the table's lock
 * @next:	list of all queues ever made; they are used again, not freed
 */
struct fb_queue {
	pthread_mutex_t		lock;
	int			fd;
	int			second;
	int			kick;
	bool			shadow;
	__u32			process;
	struct kevent_ring	*ring;
	__u32			size;
	__u64			kidx;
	__u32			refuses;
	__u32			call;
	bool			edges;
	bool			work;
	bool			idle;
	bool			kicked;
	bool			counted;
	bool			gave_way;
	bool			ended;
	__u32			wakes;
	__u32			herd;
	__u32			round;
	__u32			sleepers;
	__u32			buffers;
	__u32			left;
	__u64			soonest;
	__u64			several;
	struct fb_list		ready;
	struct fb_list		recheck;
	struct fb_list		shown;
	__u32			nr_ready;
	__u32			nr_recheck;
	struct fb_watch		**hash;
	__u32			nr_hash;
	__u32			nr_watches;
	struct fb_slot		*slots;
	__u32			nr_slots;
	__u32			free_slot;
	struct fb_timers	*timers;
	struct fb_signals	*signals;
	struct fb_inodes	*inodes;
	struct fb_futexes	*futexes;
	struct fb_serving	serving;
	__u64			stray;
	__u32			strays;
	__u32			strays_other;
	__u64			delivered;
	__u32			users;
	__u32			names;
	struct fb_queue		*next;
};

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
/* Wake threads that serve. The queue need not be locked. */
void fb_wake_servers(struct fb_serving *s, int nr);

static inline bool fb_has_sleepers(const struct fb_queue *q)
{
	return __atomic_load_n(&q->sleepers, __ATOMIC_SEQ_CST);
}

/* setup.c */
/* What needs no epoll: 0 or -errno */
int fb_queue_clear(struct fb_queue *q);
int fb_queue_setup(struct fb_queue *q, int fd, struct kevent_ring *ring,
		   __u32 size, __u32 flags);
void fb_queue_teardown(struct fb_queue *q);
/* The same in a child of the process that made it */
void fb_queue_let_go(struct fb_queue *q);
/* A call returns: see to it that there is a kick if others need it. */
void fb_leave(struct fb_queue *q);

/*
 * own.c: descriptors that a queue keeps. A number is -1 before it is opened and after it
 * was closed. fb_own() takes what a system call has returned, for a queue, or for the hub if
 * @q is NULL; @kind is a word in the name of the file. Returns 0 or -errno.
 */
int fb_own(const struct fb_queue *q, int *at, long fd, const char *kind);
void fb_close_fd(int *at);
/* The same without closing it. Returns what it was. */
int fb_disown(int *at);
/*
 * Is it another file by now? Then the number becomes -1. @epoll is an instance that
 * should have it, or -1.
 */
void fb_own_check(int *at, int epoll);
/* In a child: close all that a queue of the parent has, unless they are other files. */
void fb_own_let_go(const struct fb_queue *q, int epoll);
/* The program has it now. The lock of the process is held. */
void fb_own_lost(int fd);

/*
 * The open file that a number means, among those that it has meant; 0: that cannot be told.
 * It is marked, if need be.
 */
__u32 fb_opened(int fd);
/* Does the number mean that one still, as far as can be told? */
bool fb_opened_is(int fd, __u32 nr);

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
/* The descriptor does not mean the queue any more. */
void fb_forget(int fd, struct fb_queue *q);
/* Does the queue have a name still? */
bool fb_is_live(struct fb_queue *q);
int fb_publish(int fd, struct fb_queue *q);
/* A queue that nobody else knows, with a reference; without a name */
struct fb_queue *fb_queue_alloc(void);
/* In place of fb_put(), for a queue that got no name */
void fb_abandon(struct fb_queue *q);
/* KEVENT_FB_PASS, for a number that was the queue's, which it is no more */
int fb_not_this(int fd, struct fb_queue *q);
/* What a call says in a child: -EXDEV, unless the number has come to mean something else */
int fb_queue_abroad(struct fb_queue *q, int fd);

/* ring.c */
int fb_ring_check(struct kevent_ring *ring, __u32 size);
void fb_ring_clear(struct kevent_ring *ring);
void fb_dest_ring(struct fb_queue *q, struct fb_dest *d, __u32 max);
void fb_dest_buffer(struct fb_dest *d, struct ukevent *buf, __u32 max);

/* Consumers that are late read the slot while it changes: see libkevent_ring.h. */
static inline void fb_store(struct fb_dest *d, const struct ukevent *uk)
{
	const kevent_ring_word *from = (const kevent_ring_word *)uk;
	kevent_ring_word *to;
	size_t i;

	to = (kevent_ring_word *)&d->slots[d->kidx++ & d->mask];
	for (i = 0; i < sizeof(*uk) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
	d->room--;
}

/* Entries of the ring that nobody has taken */
__u32 fb_unread(const struct fb_queue *q);
void fb_dest_publish(struct fb_queue *q, const struct fb_dest *d);
int fb_ring_commit(struct fb_queue *q, __u64 uidx);

/* state.c */
struct fb_watch *fb_find(struct fb_queue *q, __u32 type, __u64 key);
void fb_watch_link(struct fb_queue *q, struct fb_watch *w);
int fb_token_get(struct fb_queue *q, struct fb_watch *w);
void fb_token_put(struct fb_queue *q, struct fb_watch *w);
/*
 * The number has come to be that of another file, the one of @of or, if that is NULL, of the
 * library: its watches are gone. Nothing is freed, and epoll is not asked.
 */
void fb_number_changed(struct fb_queue *q, int fd, const struct fb_watch *of);
/* Register a descriptor of the library in the instance of the queue: 0 or -errno. */
int fb_register_own(struct fb_queue *q, int fd, __u32 events, __u64 token);
void fb_enqueue(struct fb_queue *q, struct fb_watch *w);
void fb_dequeue(struct fb_queue *q, struct fb_watch *w);
/* A level watch was seen by a thread that must not get it. */
void fb_use_edges(struct fb_queue *q);
void fb_kill(struct fb_queue *q, struct fb_watch *w);
void fb_kill_all(struct fb_queue *q);

/* deliver.c */
void fb_report(struct fb_queue *q, struct fb_watch *w, __u32 mask);
void fb_fill(struct fb_queue *q, struct fb_watch *w, struct ukevent *uk);
void fb_delivered(struct fb_queue *q, struct fb_watch *w);
void fb_handed_back(struct fb_queue *q, struct fb_watch *w);
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

/* rebuild.c: epoll has an event for no watch */
void fb_stray(struct fb_queue *q, __u64 token);

/* watch.c */
int fb_check_request(const struct ukevent *uk);
/* A new watch of a request, which is linked, or NULL */
struct fb_watch *fb_watch_new(struct fb_queue *q, const struct ukevent *uk, __u64 key);
int fb_add(struct fb_queue *q, struct ukevent *uk);
int fb_modify(struct fb_queue *q, const struct ukevent *uk);
int fb_remove(struct fb_queue *q, const struct ukevent *uk);
int fb_mark(struct fb_queue *q, const struct ukevent *uk);

/* NULL: it has gone */
static inline struct fb_watch *fb_by_token(const struct fb_queue *q, __u64 token)
{
	__u32 index = (__u32)token;

	if (index >= q->nr_slots || q->slots[index].gen != token >> 32)
		return NULL;
	return q->slots[index].watch;
}

/*
 * timer.c: a step of CLOCK_REALTIME wakes all who sleep. True: from now on; false: as
 * before, or there is no descriptor for it
 */
bool fb_hear_steps(struct fb_queue *q);

/* aio.c: kevent_wait() with KEVENT_FLAGS_SERVE */
int fb_serve(struct fb_queue *q, int fd, __u32 limit,
	     const struct timespec *timeout, __u32 flags);

/* driven.c: something has happened to a watch, which may be gone after this */
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
