/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Operations of the sources of the fallback, and the table of sources
 */
#ifndef LIBKEVENT_FB_OPS_H
#define LIBKEVENT_FB_OPS_H

#include "queue.h"

#pragma GCC visibility push(hidden)

/**
 * struct fb_ops - what a source does; all but free_all() and let_go() under the lock of the
 *	queue
 * @size:	of its watches, which begin with a &struct fb_watch
 * @flags:	request flags above 0xff that it knows
 * @events:	conditions and options that a request may have; 0: check() looks
 * @marks:	conditions that %KEVENT_CTL_READY may report, without mark()
 * @error:	-errno in the entry of a broken watch
 * @file:	the id has a descriptor that epoll watches, or always ready
 * @fd:		the id is a descriptor: an unread entry that says as much makes another one
 *		redundant, as its consumer has yet to look at the file
 * @silent:	a mark alone is no event
 * @once:	watches end with their event
 * @fixed:	nothing changes a watch
 * @driven:	it serves the module, too: it keeps &fb_watch.stage
 * @there:	does the kernel have what the source takes, and may it be called? Optional: yes.
 *		Asked by fb_has_type()
 * @check:	pure validation of a request: 0 or -errno. Optional: 0
 * @object:	may what the request names be watched? 0 or -errno, as attach(). Optional
 * @by_user:	the key of a request is what the program has returned with the event
 * @key:	the key of a request. Optional: its id
 * @attach:	arm a new watch. The conditions that hold already, or -errno. Optional: 0
 * @detach:	disarm, free memory and close descriptors; after attach() has returned, whatever
 *		it said. Optional
 * @modify:	arm anew, after the watch was changed to what the request says. The
 *		conditions that hold already, or -errno: then the watch is what it
 *		was, or goes if it is one of @file. @old is a copy of that. Optional: 0
 * @remove:	%KEVENT_CTL_REMOVE: 0 or -errno, and says whether the watch goes. Optional:
 *		it does
 * @current:	does the watch still mean what the request does? 0, or -errno when it
 *		does not: the watch goes
 * @count:	occurrences not yet delivered. Optional: one
 * @fill:	put what the source knows of the oldest occurrence into an entry. Optional
 * @delivered:	the oldest occurrence was stored. Optional
 * @mark:	%KEVENT_CTL_READY: 0 or -errno. Adds to &fb_watch.ready. Optional
 *
 * Of watches that epoll knows by their token:
 *
 * @repoll:	of @file: poll it again. Reports what it finds, or has epoll do so; while
 *		calls sleep, @alone, epoll must not. -errno: its file, or the number
 *		of the queue, has gone
 * @use_edge:	of @file: epoll repeats it, and is to report edges of it
 * @found:	of others: epoll reports it
 * @register_one: register it in a new instance: 0 or -errno
 *
 * Of all that a queue has of the source, if it has anything. Each is optional:
 *
 * @readable:	its descriptor is, for which epoll hands back @nr
 * @register_all: register descriptors that are not in &fb_queue.own in a new instance: 0 or
 *		-errno
 * @free_all:	nobody else uses the queue, which has no watches any more, and is not
 *		locked
 * @let_go:	in a child: close descriptors that are not in the record of the queue, and
 *		look at nothing else, as it may be half done
 */
struct fb_ops {
	size_t		size;
	__u32		flags;
	__u32		events;
	__u32		marks;
	int		error;
	bool		file;
	bool		fd;
	bool		silent;
	bool		once;
	bool		fixed;
	bool		driven;
	bool		by_user;
	bool (*there)(void);
	int (*check)(const struct ukevent *uk);
	int (*object)(const struct ukevent *uk);
	__u64 (*key)(const struct ukevent *uk);
	int (*attach)(struct fb_queue *q, struct fb_watch *w,
		      const struct ukevent *uk);
	void (*detach)(struct fb_queue *q, struct fb_watch *w);
	int (*modify)(struct fb_queue *q, struct fb_watch *w,
		      const struct ukevent *uk, const struct fb_watch *old);
	int (*remove)(struct fb_queue *q, struct fb_watch *w);
	int (*current)(struct fb_queue *q, struct fb_watch *w);
	__u32 (*count)(struct fb_watch *w);
	void (*fill)(struct fb_queue *q, struct fb_watch *w, struct ukevent *uk);
	void (*delivered)(struct fb_queue *q, struct fb_watch *w);
	int (*mark)(struct fb_queue *q, struct fb_watch *w,
		    const struct ukevent *uk);
	int (*repoll)(struct fb_queue *q, struct fb_watch *w, bool alone);
	void (*use_edge)(struct fb_queue *q, struct fb_watch *w);
	void (*found)(struct fb_queue *q, struct fb_watch *w);
	int (*register_one)(struct fb_queue *q, struct fb_watch *w);
	void (*readable)(struct fb_queue *q, __u32 nr);
	int (*register_all)(struct fb_queue *q);
	void (*free_all)(struct fb_queue *q);
	void (*let_go)(struct fb_queue *q);
};

extern const struct fb_ops fb_socket_ops, fb_pipe_ops, fb_poll_ops,
			   fb_user_ops, fb_timer_ops, fb_signal_ops,
			   fb_proc_ops, fb_inode_ops, fb_futex_ops,
			   fb_posix_timer_ops, fb_aio_ops;

/* By type; NULL: no source. Declared here, and defined above all of them: sources.c */
extern const struct fb_ops *const fb_sources[];
#define FB_NR_TYPES	(KEVENT_BOUND + 1U)

static inline const struct fb_ops *fb_ops_of(const struct fb_watch *w)
{
	return fb_sources[w->type];
}

/* Of a source whose ids are descriptors */
static inline int fb_fd_of(const struct fb_watch *w)
{
	return (int)(__u32)w->id;
}

/* Is a condition that holds what the watch reports, not something that happened? */
static inline bool fb_is_checked(const struct fb_watch *w)
{
	return fb_ops_of(w)->file && !(w->state & FB_TAKES) &&
	       (w->req_flags & (KEVENT_REQ_ET | KEVENT_REQ_LAST_CHECK)) !=
	       KEVENT_REQ_ET;
}

static inline bool fb_is_level(const struct fb_watch *w)
{
	return fb_ops_of(w)->file && !(w->req_flags & KEVENT_REQ_ET);
}

#define FB_READABLE	(KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT)
#define FB_POLL_ALWAYS	(KEVENT_POLL_POLLERR | KEVENT_POLL_POLLHUP)

/* Conditions of a watch of a file, from a mask of epoll */
static inline __u32 fb_file_events(const struct fb_watch *w, __u32 mask)
{
	__u32 events = 0;

	if (w->type == KEVENT_POLL)
		return mask & (w->event | FB_POLL_ALWAYS);
	if (mask & (EPOLLIN | EPOLLRDNORM))
		events = FB_READABLE;
	if (mask & (EPOLLOUT | EPOLLWRNORM))
		events |= KEVENT_SOCKET_SEND;
	events &= w->event;
	if (events || mask & FB_POLL_ALWAYS)
		events |= mask & (FB_POLL_ALWAYS | EPOLLRDHUP);
	return events;
}

#pragma GCC visibility pop

#endif /* LIBKEVENT_FB_OPS_H */
