/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages between two processes: by a lane, or by a file that is watched
 */
#ifndef BENCH_IPC_H
#define BENCH_IPC_H

#include <stdbool.h>
#include <stdint.h>
#include <libkevent.h>

#include "bench.h"

#define IPC_BYTES	32		/* of a message */
#define IPC_RING	64
#define IPC_BUFFER	128		/* messages of one read */

/**
 * struct ipc_message - what is sent
 * @nr: number of the message
 * @rest: the other bytes
 */
struct ipc_message {
	uint64_t	nr;
	uint64_t	rest[IPC_BYTES / 8 - 1];
};

/**
 * struct ipc_side - one of the two ends
 * @c: the contestant
 * @is_lane: it is kevent
 * @lane: the lane
 * @q: the queue that watches @lane
 * @ring: the ring of @q
 * @looks: how often to look into @lane before a sleep
 * @two_calls: a lane sends, and then waits by another call
 * @rd: file to read messages from
 * @wr: file to write messages to
 * @queue: watches @rd; NULL: reads block
 * @packets: a read of @rd returns one message
 * @buffer: what a read has returned
 * @have: messages there that were not taken
 * @next: of them, the first
 */
struct ipc_side {
	const struct bench_contestant	*c;
	bool				is_lane;
	struct kevent_lane		lane;
	struct kevent_queue		q;
	KEVENT_RING_STORAGE(IPC_RING)	ring;
	unsigned int			looks;
	bool				two_calls;
	int				rd, wr;
	struct bench_queue		*queue;
	bool				packets;
	struct ipc_message		buffer[IPC_BUFFER];
	unsigned int			have, next;
};

/**
 * ipc_open() - make both ends
 * @source: unix, pipe or mqueue; for a lane it makes no difference
 * @c: the contestant
 * @side: the ends, each for a process or for one thread
 */
void ipc_open(const char *source, const struct bench_contestant *c,
	      struct ipc_side side[2]);

/**
 * ipc_watch() - get ready to sleep, in the process that will use the end
 * @s: the end
 */
void ipc_watch(struct ipc_side *s);

/**
 * ipc_close() - end the use of an end
 * @s: the end
 */
void ipc_close(struct ipc_side *s);

/**
 * ipc_send() - send a message; wait for room if there is none
 * @s: the end
 * @m: the message
 */
void ipc_send(struct ipc_side *s, const struct ipc_message *m);

/**
 * ipc_send_last() - ipc_send() before a wait for the next message
 * @s: the end; both must have room for a message
 * @m: the message
 *
 * With a lane it waits at once, and hands the CPU to the receiver, but for @two_calls.
 */
void ipc_send_last(struct ipc_side *s, const struct ipc_message *m);

/**
 * ipc_pass() - send messages, and take each at once: both ends are awake
 * @side: the ends
 * @nr: how many messages
 */
void ipc_pass(struct ipc_side side[2], unsigned int nr);

/**
 * ipc_receive() - wait for the next message, and take it
 * @s: the end
 * @m: set to the message
 */
void ipc_receive(struct ipc_side *s, struct ipc_message *m);

#endif /* BENCH_IPC_H */
