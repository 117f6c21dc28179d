/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: streams, which carry bytes between two processes through memory
 *
 * "Between processes" in Documentation/lanes.rst has the protocol and its memory
 * ordering. Included by libkevent.h.
 */
#ifndef LIBKEVENT_STREAM_H
#define LIBKEVENT_STREAM_H

#include <stddef.h>
#include <sys/types.h>
#include <linux/ukevent.h>

#ifdef __cplusplus
extern "C" {
#endif

struct iovec;
struct kevent_queue;
struct kevent_stream;
struct kevent_streams;
struct timespec;

/* A flag of kevent_stream_open(): the first bytes of this side offer memory. */
#define KEVENT_STREAM_OFFER	0x1U

/* Results of kevent_stream_memory() */
#define KEVENT_STREAM_SENDS	0x1
#define KEVENT_STREAM_RECEIVES	0x2

/**
 * kevent_streams_new() - make a set of streams
 * @set: set to the new one
 * @q: the queue that watches them, which stays open and in its place until
 *	kevent_streams_free(); NULL: the program watches them, see kevent_stream_events()
 * @looks: 0: kevent_streams_get() sleeps at once; %KEVENT_LOOKS_LEARNED: it looks before
 *	that, for as long as that has paid lately
 *
 * One thread at a time uses a set, its queue and its streams: a server with several
 * threads has a set for each.
 *
 * Return: 0, -EINVAL for another value of @looks, or -ENOMEM.
 */
int kevent_streams_new(struct kevent_streams **set, struct kevent_queue *q,
		       __u32 looks);

/**
 * kevent_streams_free() - end a set
 * @set: a set, or NULL; its streams are closed
 */
void kevent_streams_free(struct kevent_streams *set);

/**
 * kevent_stream_open() - make a stream of a socket
 * @set: the set
 * @sock: a connected stream socket of AF_UNIX, which belongs to the stream afterwards
 * @flags: 0, or %KEVENT_STREAM_OFFER: of the side that has connected
 * @user: of the events of the queue
 * @s: set to the new stream
 *
 * The bytes go through the socket until both sides know of the memory. A peer that
 * does not use streams reads and writes its socket as ever. Descriptors that a peer passes
 * with bytes are closed. An event of the queue with @user is for kevent_stream_event().
 *
 * Return: 0, or
 * -EINVAL for an unknown flag, or when @sock is no stream socket of AF_UNIX;
 * -ENOMEM;
 * -EXDEV in a child of the process that made @set;
 * or an errno of kevent_ctl(). After a failure @sock is the caller's.
 */
int kevent_stream_open(struct kevent_streams *set, int sock, __u32 flags, __u64 user,
		       struct kevent_stream **s);

/**
 * kevent_stream_close() - end a stream, and close its socket
 * @s: a stream, or NULL
 *
 * The peer reads all that was written, and then the end. In a child of the process that
 * made @s the stream goes on, and only the child's descriptors are closed.
 */
void kevent_stream_close(struct kevent_stream *s);

/**
 * kevent_stream_read() - read bytes
 * @s: a stream
 * @buf: where they go
 * @size: at most so many
 *
 * Never waits. After -EAGAIN kevent_streams_next() has the stream when there is more.
 *
 * Return: the number of bytes; 0: the peer has ended this direction, or has gone; or
 * -EAGAIN when there are none;
 * -EPROTO when the peer has broken the stream;
 * -EXDEV in a child of the process that made @s;
 * or an errno of recvmsg(2) while the bytes come through the socket.
 */
ssize_t kevent_stream_read(struct kevent_stream *s, void *buf, size_t size);

/**
 * kevent_stream_readv() - read bytes into several buffers
 * @s: a stream
 * @iov: the buffers
 * @nr: how many, up to 1024
 *
 * Return: as kevent_stream_read(); -EINVAL when @nr is too large.
 */
ssize_t kevent_stream_readv(struct kevent_stream *s, const struct iovec *iov,
			    unsigned int nr);

/**
 * kevent_stream_peek() - read bytes that stay
 * @s: a stream
 * @buf: where they go
 * @size: at most so many
 *
 * Return: as kevent_stream_read().
 */
ssize_t kevent_stream_peek(struct kevent_stream *s, void *buf, size_t size);

/**
 * kevent_stream_write() - write bytes
 * @s: a stream
 * @data: the bytes
 * @len: how many
 *
 * Never waits, and sends no SIGPIPE. Up to 32 KiB are written as a whole, or not, unless
 * memory is lacking; of more as much as there is room for. After -EAGAIN, and after fewer bytes than @len and then
 * -EAGAIN, kevent_streams_next() has the stream when there is room.
 *
 * Return: the number of bytes that were written, or
 * -EAGAIN when there is no room;
 * -EPIPE when the peer has gone, or after kevent_stream_shutdown();
 * -EPROTO when the peer has broken the stream;
 * -EXDEV in a child of the process that made @s;
 * or an errno of sendmsg(2) while the bytes go through the socket.
 */
ssize_t kevent_stream_write(struct kevent_stream *s, const void *data, size_t len);

/**
 * kevent_stream_writev() - write bytes from several buffers
 * @s: a stream
 * @iov: the buffers
 * @nr: how many, up to 1024
 *
 * Return: as kevent_stream_write(); -EINVAL when @nr is too large.
 */
ssize_t kevent_stream_writev(struct kevent_stream *s, const struct iovec *iov,
			     unsigned int nr);

/**
 * kevent_stream_poll() - what poll(2) would say of the socket
 * @s: a stream
 * @events: any of %POLLIN, %POLLOUT and %POLLRDHUP
 *
 * It asks the kernel only about a direction that does not go through memory. In memory,
 * %POLLOUT means room for 32 KiB. Where it is in @events and not in the result,
 * kevent_streams_next() has the stream when there is room.
 *
 * Return: those of @events that are true, and %POLLHUP and %POLLERR; or -EXDEV.
 */
int kevent_stream_poll(struct kevent_stream *s, int events);

/**
 * kevent_stream_shutdown() - end the direction of this side
 * @s: a stream
 *
 * The peer reads all that was written, and then the end; it can go on writing.
 *
 * Return: 0, or an errno of kevent_stream_write() but -EAGAIN.
 */
int kevent_stream_shutdown(struct kevent_stream *s);

/**
 * kevent_stream_leave() - go back to the socket
 * @s: a stream
 *
 * For all that memory cannot do: to pass descriptors, to give the socket to a child or
 * another program, sendfile(2). Bytes keep their order. The peer follows as soon as it
 * uses the stream; it needs no call for this. Until then, and until all bytes that are
 * in the memory were read, the result is -EAGAIN: read, and call again when
 * kevent_streams_next() has the stream.
 * A peer that has gone cannot follow: after kevent_stream_read() has returned 0, the result
 * is -EPIPE.
 *
 * Return: 0: all bytes of both directions go through kevent_stream_fd() from now on; or
 * -EAGAIN, -EPIPE, -EPROTO or -EXDEV.
 */
int kevent_stream_leave(struct kevent_stream *s);

/**
 * kevent_stream_join() - use memory again after kevent_stream_leave()
 * @s: a stream that was left
 * @sent: bytes that the program has sent through the socket itself meanwhile
 * @received: bytes that it has received there itself
 *
 * The peer accepts as soon as it uses the stream, unless it has called
 * kevent_stream_leave(), too: then it has to call this.
 *
 * Return: 0, -EAGAIN when kevent_stream_leave() has not returned 0 yet, -EPIPE after
 * kevent_stream_shutdown(), -EPROTO or -EXDEV.
 */
int kevent_stream_join(struct kevent_stream *s, __u64 sent, __u64 received);

/**
 * kevent_stream_fd() - the socket of a stream
 * @s: a stream
 *
 * Return: the descriptor. The program may use it after kevent_stream_leave() only.
 */
int kevent_stream_fd(const struct kevent_stream *s);

/**
 * kevent_stream_user() - the user value of a stream
 * @s: a stream
 *
 * Return: @user of kevent_stream_open().
 */
__u64 kevent_stream_user(const struct kevent_stream *s);

/**
 * kevent_stream_memory() - which directions go through memory now
 * @s: a stream
 *
 * Return: 0, %KEVENT_STREAM_SENDS, %KEVENT_STREAM_RECEIVES, or both.
 */
int kevent_stream_memory(const struct kevent_stream *s);

/**
 * kevent_stream_event() - act on an event of a stream
 * @s: the stream
 * @ev: an event with the user value of @s
 *
 * kevent_streams_next() has the stream if there is something to do.
 *
 * Return: 0, or -EXDEV.
 */
int kevent_stream_event(struct kevent_stream *s, const struct ukevent *ev);

/**
 * kevent_stream_events() - what to watch the socket of a stream for
 * @s: a stream of a set without a queue
 *
 * For programs that have a loop of their own. It watches kevent_stream_fd() for edges
 * (%EPOLLET), from kevent_stream_open() until kevent_stream_close(). The result changes
 * only in calls for the set, and kevent_streams_next() has the stream then.
 *
 * Return: %POLLIN and %POLLRDHUP, and %POLLOUT while bytes wait for room in the socket.
 */
int kevent_stream_events(const struct kevent_stream *s);

/**
 * kevent_stream_ready() - act on what the program's loop says of a socket
 * @s: a stream of a set without a queue
 * @events: what has happened, of %POLLIN, %POLLOUT, %POLLRDHUP, %POLLHUP and %POLLERR
 *
 * kevent_streams_next() has the stream if there is something to do.
 *
 * Return: 0, or -EXDEV.
 */
int kevent_stream_ready(struct kevent_stream *s, int events);

/**
 * kevent_streams_next() - the next stream with something to do
 * @set: the set
 *
 * Read it until -EAGAIN, and write what had no room. A stream comes again when there is
 * more, or when its direction or its peer ends. It comes once for bytes and an end that
 * this side has seen together.
 *
 * Streams come in rounds, and each comes once in a round. So a loop until NULL ends, whatever
 * a peer does. NULL, kevent_streams_look(), kevent_streams_arm() and kevent_streams_get() end
 * a round. A stream for which something comes after the first call of a round may be left to
 * the next one: the wait before it does not sleep then.
 *
 * Return: the stream, or NULL.
 */
struct kevent_stream *kevent_streams_next(struct kevent_streams *set);

/**
 * kevent_streams_look() - look for something to do, as kevent_streams_get() does first
 * @set: the set
 * @timeout: how long the caller would sleep at most; NULL: no limit
 *
 * For programs that wait for the descriptor of the queue, or for the sockets, in another
 * loop, before kevent_streams_arm(). It returns at once unless the set learns how long to look.
 *
 * Return: 1: a stream has something to do, or the queue's ring has an event. 0: nothing
 * has. -EXDEV.
 */
int kevent_streams_look(struct kevent_streams *set, const struct timespec *timeout);

/**
 * kevent_streams_arm() - say to all peers that this side will sleep
 * @set: the set
 *
 * For programs that wait for the descriptor of the queue, or for the sockets, in another
 * loop. When they run again, they call kevent_streams_next(), which says that this side is awake.
 *
 * Return: 0: wait. 1: a stream has something to do. -EXDEV.
 */
int kevent_streams_arm(struct kevent_streams *set);

/**
 * kevent_streams_get() - wait for streams and events
 * @set: the set
 * @ev: where the events go
 * @max: room in @ev
 * @timeout: as for kevent_queue_get()
 *
 * If a stream has something to do, it does not wait, and mostly takes only what the ring
 * has: see kevent_lanes_get().
 *
 * Return: the number of events; 0 when a stream has something to do, after @timeout, or
 * when %KEVENT_CTL_READY with no entries woke the caller; -EXDEV; -EINVAL for a set
 * without a queue; or an errno of kevent_queue_get().
 */
int kevent_streams_get(struct kevent_streams *set, struct ukevent *ev, __u32 max,
		       const struct timespec *timeout);

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_STREAM_H */
