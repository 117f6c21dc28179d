/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Streams: the shared memory, and what their files share
 *
 * Words of the shared memory are loaded and stored by lane_load() and lane_store(), once
 * each: the peer may change any of them at any time.
 */
#ifndef LIBKEVENT_STREAM_PRIVATE_H
#define LIBKEVENT_STREAM_PRIVATE_H

#include <sys/un.h>
#include <sys/uio.h>

#include "lane/lane.h"

#define STREAM_MAGIC	0x656e616c766b5301ULL
#define PAIR_MAGIC	0x656e616c766b5001ULL
#define STREAM_HEAD	4096U
#define STREAM_RING	65536U	/* of each direction, as far as it is touched */
#define STREAM_WHOLE	(STREAM_RING / 2)	/* a write of so much has room for all, or none */
#define STREAM_STEP	16384U	/* in which it is */
#define STREAM_START	4096U	/* of it from the start */
#define STREAM_BYTES	(STREAM_HEAD + 2 * STREAM_RING)
#define PAIR_SLOTS	8U
#define PAIR_WORDS	8U
#define PAIR_INDEXES	(PAIR_WORDS * 64U)
#define STREAM_BELL	0	/* bytes through the socket while a direction has left it */
#define STREAM_BACK	1	/* the last of them: bytes follow */
#define LINE		__attribute__((aligned(64)))

/* --- shared -------------------------------------------------------------- */

/*
 * Where two processes sleep. The one that connects makes it; each set of streams that
 * accepts from it takes a slot. A bit of ready is a stream with something to do: the
 * sender sets it, the receiver clears all that it finds.
 */
struct pair_slot {
	__u64	owner LINE;		/* 0: free */
	__u64	asleep;			/* 0, or the number of this sleep */
	__u64	ready[PAIR_WORDS] LINE;
};

struct pair_page {
	__u64			magic LINE;
	__u64			asleep LINE;	/* the same, of the one that made it */
	__u64			ready[PAIR_WORDS] LINE;
	struct pair_slot	slot[PAIR_SLOTS];
};

/* The words of one side of a stream; only that side writes them. */
struct stream_side {
	__u64	head LINE;	/* bytes it has published in all */
	__u64	base;		/* the position that is the start of the ring */
	__u64	closed;		/* 0, or one more than head will ever be */
	__u64	gone;		/* it reads no more, either */
	__u64	taken LINE;	/* bytes it has read of the other side's ring */
	__u64	room;		/* 0, or the number of its wait for room */
	__u64	joined LINE;	/* the turn in which its bytes go through memory */
	__u64	raw;		/* bytes that went through the socket before */
	__u64	leaving;	/* the turn of which it knows that it ends */
};

/*
 * @phase is the turn, times 4, and one of the states below. Both sides change it, by
 * compare and exchange.
 */
struct stream_memory {
	__u64			magic;
	__u64			index;	/* of the bit that means this stream */
	__u64			slot;	/* 0: @own is used, or 1 + that in the page */
	__u64			phase LINE;
	struct stream_side	side[2];
	struct pair_page	own;
};

enum { STREAM_OFFER0, STREAM_OFFER1, STREAM_MEMORY, STREAM_SOCKET };

/* --- private ------------------------------------------------------------- */

struct stream_key {
	struct ucred		cred;
	socklen_t		len;
	struct sockaddr_un	name;
};

/*
 * A page that this set uses with a peer; @chain has the streams of each index. The page is
 * that of one stream if @map is NULL.
 */
struct pair {
	struct pair		*next;
	struct kevent_streams	*set;
	struct pair_page	*page;
	void			*map;
	struct kevent_stream	**chain;
	__u64			rung[PAIR_SLOTS];	/* sleeps that were rung for */
	__u32			mask;	/* of indexes in @chain */
	__u32			refs;
	__u32			side;	/* 0: made it */
	__u32			slot;	/* taken, of side 1 */
	__u32			last;	/* index that was given, of side 0 */
	int			fd;	/* to be passed on, of side 0 */
	bool			full;	/* side 0: not for new streams */
	bool			listed;
	__u64			ino;	/* side 1: which memory it is */
	__u32			dev[2];
	struct stream_key	key;	/* side 0: for whom */
};

struct kevent_streams {
	struct kevent_queue	*q;		/* NULL: the program watches the sockets */
	struct pair		*pairs;
	struct kevent_stream	*all;
	struct kevent_stream	*first, *last;	/* with something to do */
	__u64			sleep;
	__u64			round;		/* of kevent_streams_next() */
	__u32			process;
	__u32			looks;
	struct kevent_look	look;
	__u32			skipped;
	bool			in_round;
	bool			armed;
};

struct stream_out {
	unsigned char	*ring;
	__u64		head, base, taken, raw, turn, room;
	__u64		reach;		/* bytes of the ring that may be touched */
	bool		mem;		/* bytes go through memory */
	bool		shut;
	bool		announce;	/* ring once, whether the peer sleeps or not */
};

struct stream_in {
	const unsigned char	*ring;
	__u64			tail, told, raw, turn, rung;
	unsigned char		*kept;		/* from the socket, to be read first */
	size_t			kept_at, kept_end;
	bool			mem;
	bool			last;	/* the last byte before those of the socket has come */
	bool			end;
};

struct kevent_stream {
	struct kevent_streams	*set;
	struct stream_memory	*mem;
	struct stream_side	*me;
	const struct stream_side *peer;
	struct stream_out	out;
	struct stream_in	in;
	__u64			phase;		/* as this side has seen it last */
	bool			settled;	/* nothing is to be done until it changes */
	bool			offers, asks;	/* with the next bytes */
	bool			hold;		/* kevent_stream_leave() */
	bool			sock_end;	/* the peer has gone: nothing more comes there */
	bool			queued;
	__u64			round;		/* in which it has come last */
	bool			awaits_out;	/* POLLOUT is watched */
	int			error;
	int			sock;
	int			fd;		/* of the memory, to be offered */
	__u32			side;
	__u64			user;
	/* Of the pair, once it is known */
	struct pair		*pair;
	struct pair		*page;		/* offered with it */
	__u64			*ready;
	const __u64		*asleep;
	__u64			*rung;
	__u64			bit;
	__u32			index;
	struct pair		own;
	struct kevent_stream	*only;		/* chain of @own */
	struct kevent_stream	*same;		/* in a chain */
	struct kevent_stream	*next_ready;
	struct kevent_stream	*next, **prev;	/* all of the set */
};

/* Of the side that has @p */
static inline __u64 *pair_asleep(const struct pair *p)
{
	return p->side ? &p->page->slot[p->slot].asleep : &p->page->asleep;
}

static inline __u64 phase_of(__u64 turn, __u64 state)
{
	return turn << 2 | state;
}

static inline __u64 turn_of(__u64 phase)
{
	return phase >> 2;
}

static inline __u64 state_of(__u64 phase)
{
	return phase & 3;
}

static inline bool stream_swap(__u64 *word, __u64 from, __u64 to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static inline int stream_break(struct kevent_stream *s)
{
	s->error = -EPROTO;
	return -EPROTO;
}

static inline bool stream_has_kept(const struct kevent_stream *s)
{
	return s->in.kept_at < s->in.kept_end;
}

static inline bool stream_is_here(const struct kevent_stream *s)
{
	return kevent_process_is(s->set->process);
}

/* bell.c */
/* Gives it to kevent_streams_next(). */
void kevent_stream_queue(struct kevent_stream *s);
/*
 * Says to the peer that there is something to do, and wakes it. False: there was no memory
 * for the bell, or no room, so the next call tries again.
 */
bool kevent_stream_notify(struct kevent_stream *s);
/* Has the queue, or the program, say when the socket takes bytes. */
void kevent_stream_await_out(struct kevent_stream *s);
int kevent_stream_watch_out(const struct kevent_stream *s, __u32 cmd);

/* pair.c */
struct pair *kevent_pair_for(struct kevent_streams *set, int sock);
struct pair *kevent_pair_from(struct kevent_streams *set, int fd);
void kevent_pair_own(struct kevent_stream *s);
void kevent_pair_enter(struct kevent_stream *s, struct pair *p, __u32 slot);
void kevent_pair_leave(struct kevent_stream *s);
void kevent_pair_put(struct pair *p);
void kevent_pairs_free(struct kevent_streams *set);

/* stream.c */
int kevent_stream_await_room(struct kevent_stream *s);

/* memory.c */
size_t kevent_stream_room(struct kevent_stream *s, size_t want);
long kevent_stream_offer(struct kevent_stream *s, const struct iovec *iov, size_t nr);
long kevent_stream_accept(struct kevent_stream *s, const struct iovec *iov, size_t nr);
void kevent_stream_unmap(struct kevent_stream *s);

/* phase.c */
int kevent_stream_catch_up(struct kevent_stream *s, __u64 phase);
int kevent_stream_drain(struct kevent_stream *s, bool ends);
/* Asks the kernel for all bits, and notes a peer that has gone. */
int kevent_stream_poll_socket(struct kevent_stream *s);
bool kevent_stream_withdraw(struct kevent_stream *s);

/* Follows what the peer has done to the phase, and does what is due. */
static inline int stream_follow(struct kevent_stream *s)
{
	__u64 phase;

	if (s->error || !s->mem)
		return s->error;
	phase = lane_load(&s->mem->phase);
	return phase == s->phase && s->settled ? 0 : kevent_stream_catch_up(s, phase);
}

#endif /* LIBKEVENT_STREAM_PRIVATE_H */
