/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: lanes, which carry messages between two processes through memory
 *
 * "Between processes" in Documentation/lanes.rst has the protocol and its memory
 * ordering. Included by libkevent.h.
 */
#ifndef LIBKEVENT_LANE_H
#define LIBKEVENT_LANE_H

#include <stddef.h>
#include <linux/ukevent.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kevent_queue;
struct timespec;

/* Bytes that fit into a slot; longer messages go through the arena. */
#define KEVENT_LANE_INLINE	48U
#define KEVENT_LANE_SLOTS_MIN	2U
#define KEVENT_LANE_SLOTS_MAX	65536U
#define KEVENT_LANE_ARENA_MIN	64U
#define KEVENT_LANE_ARENA_MAX	(1U << 30)
#define KEVENT_LANE_MAGIC	0x656e616c766b0001ULL
/* Bytes of memory before the first slot */
#define KEVENT_LANE_HEAD	512U

/*
 * A flag of kevent_lane_create() and kevent_lane_attach(): ring by a byte through
 * the socket, not by an eventfd. A peer can make a write to an eventfd block, and
 * cannot do that to a send: for peers that are not trusted.
 */
#define KEVENT_LANE_SOCKET	0x1U

/**
 * struct kevent_lane_slot - a message in shared memory
 * @seq: number of the message, from 1; stored last, with release
 * @len: its length
 * @off: where it is in the arena, if @len exceeds %KEVENT_LANE_INLINE
 * @data: the message, if it does not
 */
struct kevent_lane_slot {
	__aligned_u64	seq;
	__u32		len;
	__u32		off;
	__u8		data[48];
};

/**
 * struct kevent_lane_side - what one side says; only that side writes it
 * @taken: number of messages it has taken; what they occupied is free
 * @__pad0: 0; the other side reads what follows more often
 * @asleep: 0: it looks at its messages; else the number of this sleep, never used
 *	before; with the highest bit that of all lanes of a set
 * @room: 0, or the number of its wait for room
 * @closed: 0: open; else one more than the number of messages it has sent in all
 * @__pad1: 0
 */
struct kevent_lane_side {
	__aligned_u64	taken;
	__aligned_u64	__pad0[7];
	__aligned_u64	asleep;
	__aligned_u64	room;
	__aligned_u64	closed;
	__aligned_u64	__pad1[5];
};

/**
 * struct kevent_lane_memory - the start of the memory of a lane
 * @magic: %KEVENT_LANE_MAGIC
 * @slots: slots for messages of the creator, and of the other side
 * @arena: bytes of the arena of each
 * @__pad0: 0
 * @side: the creator, and the other side
 *
 * The slots of the creator follow at %KEVENT_LANE_HEAD, then those of the other
 * side, then the arenas in the same order. Each side reads @slots and @arena once,
 * when it attaches.
 */
struct kevent_lane_memory {
	__aligned_u64			magic;
	__u32				slots[2];
	__u32				arena[2];
	__aligned_u64			__pad0[5];
	struct kevent_lane_side		side[2];
};

/**
 * struct kevent_lane_options - how large a lane is
 * @send_slots: messages that its creator can have under way, a power of two from
 *	%KEVENT_LANE_SLOTS_MIN to %KEVENT_LANE_SLOTS_MAX; 0: it does not send
 * @send_arena: bytes for those above %KEVENT_LANE_INLINE, and the longest message:
 *	a power of two from %KEVENT_LANE_ARENA_MIN to %KEVENT_LANE_ARENA_MAX; 0: none
 * @recv_slots: the same for messages to the creator
 * @recv_arena: the same for messages to the creator
 * @flags: 0 or %KEVENT_LANE_SOCKET
 * @__pad0: 0
 */
struct kevent_lane_options {
	__u32	send_slots;
	__u32	send_arena;
	__u32	recv_slots;
	__u32	recv_arena;
	__u32	flags;
	__u32	__pad0;
};

/**
 * struct kevent_lane_out - the private half of what one side sends
 * @slot: shared
 * @arena: shared
 * @ends: where the part of the arena ends that messages up to this slot use
 * @pos: messages published
 * @taken: of them, as the peer has said last
 * @end: where the next message may begin in the arena, counted without wrapping
 * @freed: up to where the peer has taken the arena
 * @begin: where the reserved message begins in the arena
 * @room: waits for room so far
 * @rung: the sleep of the peer that was rung for
 * @size: number of slots
 * @bytes: size of the arena
 * @reserved: bytes of the message that is reserved, plus 1; 0: none
 * @hold: whether kevent_lane_send_get() rings for it later, and has to
 */
struct kevent_lane_out {
	struct kevent_lane_slot	*slot;
	unsigned char		*arena;
	__u64			*ends;
	__u64			pos;
	__u64			taken;
	__u64			end;
	__u64			freed;
	__u64			begin;
	__u64			room;
	__u64			rung;
	__u32			size;
	__u32			bytes;
	__u32			reserved;
	__u32			hold;
};

/**
 * struct kevent_lane_in - the private half of what one side receives
 * @slot: shared
 * @arena: shared
 * @pos: messages taken
 * @told: messages taken when the peer was last looked at for a wait for room
 * @sleep: sleeps so far
 * @rung: the wait for room of the peer that was rung for
 * @size: number of slots
 * @bytes: size of the arena
 * @empty: looks in a row that found nothing
 * @armed: whether this side says that it sleeps, and whether its set does
 */
struct kevent_lane_in {
	const struct kevent_lane_slot	*slot;
	const unsigned char		*arena;
	__u64				pos;
	__u64				told;
	__u64				sleep;
	__u64				rung;
	__u32				size;
	__u32				bytes;
	__u32				empty;
	__u32				armed;
};

/**
 * struct kevent_lane - one side of a lane; the members are for the library only
 * @mem: the shared memory, which may change at any time
 * @out: what this side sends
 * @in: what it receives
 * @me: what this side says, in @mem
 * @peer: what the other one says, in @mem
 * @set: where kevent_lanes_add() has put it
 * @next: in the list of lanes that are looked at
 * @prev: in that list
 * @bytes: of @mem
 * @fd: of @mem, until it was passed on; -1: it was
 * @sock: socket to the peer, -1: none yet
 * @bell: eventfd that the peer rings, -1: the socket
 * @peer_bell: eventfd that the peer waits for, -1: the socket
 * @queue: which watches @bell and @sock, -1: none
 * @number: 0: the creator, 1: the other side
 * @process: as in struct kevent_queue
 * @state: 0, or the error that ended it
 * @gone: whether the socket has said that the peer has ended
 * @stopped: whether @state or @gone is set
 * @skipped: how often kevent_lane_send_get() did not wait, as there was a message
 * @origin: the process behind @sock; 0: not known
 * @spare: for later versions
 */
struct kevent_lane {
	struct kevent_lane_memory	*mem;
	struct kevent_lane_out		out;
	struct kevent_lane_in		in;
	struct kevent_lane_side		*me;
	const struct kevent_lane_side	*peer;
	struct kevent_lanes		*set;
	struct kevent_lane		*next;
	struct kevent_lane		*prev;
	size_t				bytes;
	int				fd;
	int				sock;
	int				bell;
	int				peer_bell;
	int				queue;
	__u32				number;
	__u32				process;
	int				state;
	int				gone;
	int				stopped;
	__u32				skipped;
	__u32				origin;
	__u32				spare[4];
};

/* A lane that is not open, which kevent_lane_close() takes: struct kevent_lane lane = ... */
#ifdef __cplusplus
#define KEVENT_LANE_NONE	{}
#else
#define KEVENT_LANE_NONE	{ 0 }
#endif

/*
 * In place of a number of looks before a sleep: as long as looks have paid lately, and never
 * longer than a wake-up takes
 */
#define KEVENT_LOOKS_LEARNED	0xffffffffU

/**
 * struct kevent_look - what a set has learned of its looks; for the library only
 * @debt: what they have cost above what they have saved
 * @need: nanoseconds that the successful ones took lately; 0: not known
 * @rest: waits without a look after the last debt that was too much
 * @left: of these, still to come
 */
struct kevent_look {
	__u16	debt;
	__u16	need;
	__u16	rest;
	__u16	left;
};

/**
 * struct kevent_lanes - lanes that one thread receives from
 * @hot: those that are looked at: the next one of a circle
 * @nr_hot: their number
 * @turn: messages in a row from the same lane
 * @looks: how often kevent_lanes_get() looks before it sleeps
 * @skipped: how often that did not wait, as there was a message
 * @look: what @looks has learned
 * @spare: for later versions
 */
struct kevent_lanes {
	struct kevent_lane	*hot;
	__u32			nr_hot;
	__u32			turn;
	__u32			looks;
	__u32			skipped;
	struct kevent_look	look;
	__u32			spare[4];
};

/**
 * kevent_lane_create() - make a lane
 * @l: to be filled in
 * @o: how large it is
 *
 * Makes the memory, which nobody can make shorter or longer, and fills it: it is
 * charged to the caller.
 *
 * Return: 0, or
 * -EINVAL for a size that is not allowed, an unknown flag, or no slots at all;
 * -EMFILE, -ENFILE, -ENOMEM when out of descriptors, files or memory;
 * -ENOSYS when the kernel has no memfd_create().
 */
int kevent_lane_create(struct kevent_lane *l,
		       const struct kevent_lane_options *o);

/**
 * kevent_lane_pass() - give a lane to another process
 * @l: as kevent_lane_create() has filled it in
 * @sock: a connected stream socket of AF_UNIX, which belongs to @l afterwards:
 *	nothing else may go through it, and kevent_lane_close() closes it
 *
 * Return: 0, or
 * -EAGAIN when the socket is full;
 * -EALREADY when @l was passed on before;
 * -EINVAL when @sock is no stream socket of AF_UNIX;
 * -EXDEV in a child of the process that made @l;
 * or an errno of sendmsg(2). After a failure @sock is the caller's.
 */
int kevent_lane_pass(struct kevent_lane *l, int sock);

/**
 * kevent_lane_attach() - take a lane that another process passes
 * @l: to be filled in
 * @sock: a connected stream socket of AF_UNIX, see kevent_lane_pass()
 * @max_bytes: most memory that is accepted; 0: 64 MiB. A peer that is not trusted can have this
 *	process pay for it, so a server with many passes what their lanes need.
 * @flags: 0; %KEVENT_LANE_SOCKET: accept no lane without it
 *
 * Does not wait, but for close(2) of what the peer has passed in place of a lane, as
 * kevent_lane_event() and kevent_lane_close() may at any time: see kevent_lane(3). Data that the
 * peer has sent is checked and then never read again.
 *
 * Return: 0, or
 * -EAGAIN when nothing has arrived yet;
 * -ECONNRESET when the peer has closed the socket;
 * -EMFILE, -ENFILE when out of descriptors or files: the lane that had arrived is lost;
 * -EPROTO when what has arrived is no lane, or its memory has holes;
 * -EFBIG when it takes more than @max_bytes;
 * -EPERM when it lacks %KEVENT_LANE_SOCKET and @flags has that;
 * -EINVAL for an unknown flag, or when @sock is no stream socket of AF_UNIX;
 * or an errno of recvmsg(2) or mmap(2). After a failure @sock is the caller's.
 */
int kevent_lane_attach(struct kevent_lane *l, int sock, size_t max_bytes,
		       __u32 flags);

/**
 * kevent_lane_close() - end one side of a lane
 * @l: a lane that no thread uses any more; may be closed already, and never made if it is
 *	zeros
 *
 * The peer receives all that was sent, and then -EPIPE. In a child of the process
 * that made @l the lane goes on, and only the child's descriptors are closed.
 */
void kevent_lane_close(struct kevent_lane *l);

/**
 * kevent_lane_send() - send a message
 * @l: a lane
 * @data: the message
 * @len: its length: up to %KEVENT_LANE_INLINE, or the size of the arena
 *
 * Enters the kernel only if the peer sleeps. One thread sends at a time. Never
 * waits. After -EAGAIN the queue that watches the lane has an event when the peer
 * has taken half of the slots, or all messages.
 *
 * Return: 0: the message is published, or
 * -EAGAIN when there is no room;
 * -EMSGSIZE when @len is too large;
 * -EPIPE when the peer has closed the lane, or has ended;
 * -EPROTO when the peer has broken the lane;
 * -EOPNOTSUPP when the lane has no slots in this direction;
 * -EXDEV in a child of the process that made @l.
 */
int kevent_lane_send(struct kevent_lane *l, const void *data, __u32 len);

/**
 * kevent_lane_send_get() - send a message, and wait for what comes
 * @l: a lane that @q watches; no other thread uses it meanwhile
 * @data: the message
 * @len: its length
 * @q: the queue of the caller
 * @ev: where to copy events to
 * @max: at most so many, not 0
 * @timeout: as for kevent_queue_get()
 *
 * Does what kevent_lane_send(), kevent_lane_arm() and kevent_queue_get() do. If the
 * peer sleeps, the call of the kernel that waits also wakes it, and asks the
 * scheduler to run it on this CPU: for a request whose answer the caller waits for.
 * With a bell that is the socket, and on the fallback, these are two calls.
 *
 * Return: number of events copied; 0 when the lane has a message, or after
 * @timeout or a wake-up without an event. If nothing was sent,
 * -EINVAL when @max is 0, @timeout is no time, or @q does not watch @l;
 * -EXDEV also when @q is one of the caller's parent;
 * an error of kevent_lane_send().
 * If the message was sent, -EINTR or another error of kevent_queue_get().
 */
int kevent_lane_send_get(struct kevent_lane *l, const void *data, __u32 len,
			 struct kevent_queue *q, struct ukevent *ev, __u32 max,
			 const struct timespec *timeout);

/**
 * kevent_lane_reserve() - make room for a message
 * @l: a lane
 * @len: its length at most
 * @data: set to where the message goes, in the shared memory
 *
 * For messages that are made in place. Another call takes the place of this one, also
 * one that fails, and so does kevent_lane_send().
 *
 * Return: 0, or an errno of kevent_lane_send().
 */
int kevent_lane_reserve(struct kevent_lane *l, __u32 len, void **data);

/**
 * kevent_lane_publish() - send the message that was made in place
 * @l: a lane
 * @len: its length, up to what was reserved
 *
 * Return: 0, -EINVAL when not so much was reserved, or -EXDEV.
 */
int kevent_lane_publish(struct kevent_lane *l, __u32 len);

/**
 * kevent_lane_recv() - take the next message
 * @l: a lane
 * @buf: where it is copied to
 * @size: room in @buf
 *
 * Never waits, and enters the kernel only if the peer waits for room. One thread
 * receives at a time. One call looks at one slot at most twice, and copies one
 * message.
 *
 * Return: its length, or
 * -EAGAIN when there is none;
 * -EMSGSIZE when it is longer than @size: it stays;
 * -EPIPE when the peer has closed the lane, and all it has sent was taken;
 * -ECONNRESET when the peer has ended without that, and all it has published was
 * taken;
 * -EPROTO when the peer has broken the lane;
 * -EOPNOTSUPP when the lane has no slots in this direction, and the peer has not ended;
 * -EXDEV in a child of the process that made @l.
 */
int kevent_lane_recv(struct kevent_lane *l, void *buf, __u32 size);

/**
 * kevent_lane_watch() - have a queue watch a lane
 * @l: a lane that was passed or attached
 * @fd: a queue
 * @user: of the events
 *
 * An event means that there are messages, or room, or that the peer has ended:
 * give it to kevent_lane_event().
 *
 * Return: 0, -EINVAL when the lane has no socket yet, -EEXIST when a queue watches
 * it, -EXDEV, or an errno of kevent_ctl().
 */
int kevent_lane_watch(struct kevent_lane *l, int fd, __u64 user);

/**
 * kevent_lane_event() - act on an event of a lane
 * @l: the lane
 * @ev: an event with the user value of kevent_lane_watch()
 *
 * The peer is told that this side is awake. Afterwards receive until -EAGAIN.
 *
 * Return: 1 when the peer has ended, 0, or -EXDEV.
 */
int kevent_lane_event(struct kevent_lane *l, const struct ukevent *ev);

/**
 * kevent_lane_arm() - say that this side will sleep
 * @l: a lane
 *
 * Before a wait for the queue, unless kevent_lanes_get() does it.
 *
 * Return: 0: wait; an event will come. 1: there is a message or the end of the
 * peer, so this side has not said that it sleeps. -EXDEV.
 */
int kevent_lane_arm(struct kevent_lane *l);

/**
 * kevent_lanes_init() - make a set of lanes
 * @set: to be filled in
 * @looks: how often kevent_lanes_get() looks for messages before it sleeps; 0: it sleeps
 *	at once; %KEVENT_LOOKS_LEARNED: for as long as that has paid lately
 *
 * For a thread that receives from many lanes. It looks at those that had messages
 * lately. The others say that this side sleeps, and come back with an event.
 */
void kevent_lanes_init(struct kevent_lanes *set, __u32 looks);

/**
 * kevent_lanes_add() - put a lane into a set
 * @set: the set
 * @l: a lane of no set, which a queue watches
 */
void kevent_lanes_add(struct kevent_lanes *set, struct kevent_lane *l);

/**
 * kevent_lanes_remove() - take a lane from its set
 * @l: a lane; kevent_lane_close() does this
 */
void kevent_lanes_remove(struct kevent_lane *l);

/**
 * kevent_lanes_recv() - take the next message of any lane
 * @set: the set
 * @from: set to the lane
 * @buf: where the message is copied to
 * @size: room in @buf
 *
 * Lanes take turns, after 64 messages at the latest. One call looks once at each
 * lane that had messages lately, and copies one message.
 *
 * Return: its length, -EAGAIN when there is none, or another errno of
 * kevent_lane_recv() for the lane @from, to be closed or removed.
 */
int kevent_lanes_recv(struct kevent_lanes *set, struct kevent_lane **from,
		      void *buf, __u32 size);

/**
 * kevent_lanes_arm() - say to all peers that this side will sleep
 * @set: the set
 *
 * Return: 0: wait. 1: there is a message: no peer that was awake is told.
 */
int kevent_lanes_arm(struct kevent_lanes *set);

/**
 * kevent_lanes_get() - wait for messages and events
 * @set: a set
 * @q: the queue that watches its lanes
 * @ev: where the events go
 * @max: room in @ev
 * @timeout: as for kevent_queue_get()
 *
 * Give events of lanes to kevent_lane_event(). If there are messages, it does not
 * wait, and mostly takes only what the ring has: level watches are looked at each
 * 64th time, and whenever it waits. A program whose lanes never become empty calls it
 * now and then for its other events.
 *
 * Return: the number of events; 0 when there is a message, after @timeout or when
 * %KEVENT_CTL_READY with no entries woke the caller; or an errno of
 * kevent_queue_get().
 */
int kevent_lanes_get(struct kevent_lanes *set, struct kevent_queue *q,
		     struct ukevent *ev, __u32 max,
		     const struct timespec *timeout);

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_LANE_H */
