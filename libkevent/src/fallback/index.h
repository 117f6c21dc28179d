/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Watches, and how a queue finds them: by key, and by what epoll hands back
 */
#ifndef LIBKEVENT_FB_INDEX_H
#define LIBKEVENT_FB_INDEX_H

#include <assert.h>

#include "libkevent.h"
#include "list.h"

#pragma GCC visibility push(hidden)

/* Lists of a queue. A watch is on one of them, or nowhere. */
enum fb_list_nr {
	FB_NOWHERE,
	FB_SHOWN,		/* level watches that epoll repeats until a call is to sleep */
	FB_RECHECK,		/* level watches that the next call polls */
	FB_READY,		/* something is to be delivered */
	FB_NR_LISTS,
};

/* The work under way for a watch */
enum fb_stage {
	FB_IDLE,	/* nothing */
	FB_WAITS,	/* it waits for what happens */
	FB_RUNS,	/* a thread does that without the lock: the watch stays until it reports */
	FB_OWES,	/* that was for it alone, and is not delivered yet: detach() gives it away */
};

/* States of a watch */
#define FB_DISARMED	0x01U	/* reports nothing until MODIFY */
#define FB_FIRED	0x02U	/* has something to report after MODIFY */
#define FB_BROKEN	0x04U	/* its source cannot deliver */
#define FB_SECOND	0x08U	/* registered in the second instance */
#define FB_ALWAYS	0x10U	/* a file that epoll refuses: always ready */
#define FB_REPEATED	0x20U	/* epoll reports it again while it is ready */
#define FB_TAKES	0x40U	/* who polls its file takes what there is */

/**
 * struct fb_watch - a watch
 * @hash_next:	next one in its chain of &fb_index.hash
 * @link:	on @list
 * @id:		as in entries, and part of the key unless the source has another
 * @key:	by which it is found, with @type
 * @user:	of the last ADD or MODIFY, as are @event and @req_flags
 * @token:	what epoll hands back for it; 0: not registered
 * @ready:	conditions not yet delivered
 * @reported:	conditions of the newest entry in the ring
 * @stored:	position after that; 0: it makes no other one redundant
 * @call:	the call that took it last; in a shadow: its number in the module
 * @state:	FB_DISARMED and its like
 * @list:	&enum fb_list_nr
 * @stage:	&enum fb_stage, of sources that serve the module, too
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
	__u16		list;
	__u16		stage;
};

/**
 * struct fb_index - the watches of a queue
 * @hash:	by type and key; its size is a power of two
 * @nr_hash:	that size, of which @shift is 64 less the logarithm
 * @nr:		how many there are. The program decides how many; memory limits it
 * @tokens:	the number of the newest token
 */
struct fb_index {
	struct fb_watch	**hash;
	__u32		nr_hash;
	__u32		shift;
	__u32		nr;
	__u64		tokens;
};

/* All watches. The body may end the one that it has. */
#define fb_for_each_watch(index, i, w, next)				\
	for (i = 0; i < (index)->nr_hash; i++)				\
		for (w = (index)->hash[i]; w && (next = w->hash_next, true); w = next)

/* Empty: 0 or -ENOMEM. Then, too, it is to be freed. */
int fb_index_init(struct fb_index *index);
void fb_index_free(struct fb_index *index);
struct fb_watch *fb_find(struct fb_index *index, __u32 type, __u64 key);
void fb_watch_link(struct fb_index *index, struct fb_watch *w);
void fb_watch_unlink(struct fb_index *index, struct fb_watch *w);

static inline struct fb_watch **fb_chain(const struct fb_index *index, __u64 type_and_key)
{
	return &index->hash[type_and_key * 0x9e3779b97f4a7c15ULL >> index->shift];
}

/* The token has the type and the key of the watch, and a number that an earlier one had not. */
#define FB_TOKEN_NR	36
#define FB_TOKEN_FIRST	(1ULL << FB_TOKEN_NR)

static_assert(KEVENT_BOUND < 1U << (FB_TOKEN_NR - 32), "types have room in a token");

static inline void fb_token_get(struct fb_index *index, struct fb_watch *w)
{
	index->tokens += FB_TOKEN_FIRST;
	if (!index->tokens)
		index->tokens = FB_TOKEN_FIRST;
	w->token = index->tokens | (__u64)w->type << 32 | (__u32)w->key;
}

/* Of one whose key has 32 bits. NULL: it has gone */
static inline struct fb_watch *fb_by_token(const struct fb_index *index, __u64 token)
{
	struct fb_watch *w = *fb_chain(index, token % FB_TOKEN_FIRST);

	while (w && w->token != token)
		w = w->hash_next;
	return w;
}

#pragma GCC visibility pop

#endif /* LIBKEVENT_FB_INDEX_H */
