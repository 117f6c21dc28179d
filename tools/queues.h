/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queues of other processes, as procfs shows them
 */
#ifndef QUEUES_H
#define QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/ukevent.h>

#define COMMAND_SIZE	65	/* of a kernel thread; of others 16 */
#define MAX_WAITERS	64	/* that fdinfo names */

/**
 * struct holder - a descriptor of a queue
 * @ino: the number of the queue
 * @pid: the process
 * @fd: the descriptor
 */
struct holder {
	__u64	ino;
	pid_t	pid;
	int	fd;
};

/**
 * struct holders - the descriptors of all queues that may be seen
 * @at: by queue, process and descriptor, in this order
 * @nr: how many
 * @room: for how many there is room
 * @hidden: processes whose descriptors may not be read
 */
struct holders {
	struct holder	*at;
	size_t		nr;
	size_t		room;
	unsigned int	hidden;
};

/**
 * struct watch - a watch of a queue
 * @type: KEVENT_*, ~0 for one that is not known here
 * @event: what it is for
 * @flags: KEVENT_REQ_*
 * @ready: what is to be reported
 * @id: what it watches
 * @user: the cookie
 * @name: of @type
 * @state: a word of the kernel
 */
struct watch {
	__u32	type;
	__u32	event;
	__u32	flags;
	__u32	ready;
	__u64	id;
	__u64	user;
	char	name[16];
	char	state[16];
};

/**
 * struct queue - what fdinfo says of a queue
 * @flags: of the descriptor, as open(2) has them
 * @ino: its number
 * @nr_watches: as fdinfo counts them; @watch may have others
 * @ready: watches queued
 * @delivered: events handed out so far
 * @ring_size: slots, 0 without a ring
 * @ring_kidx: position of the kernel
 * @ring_uidx: position of the consumer, as far as known
 * @ring_flags: KEVENT_RING_*
 * @ring_spaces: processes that have the ring
 * @hits: events that a wake-up stored
 * @misses: times a watch was queued
 * @waiting: threads asleep in a call
 * @user_bytes: what the owner is charged with
 * @refuses: KEVENT_INIT_REFUSE_*
 * @nr_tids: entries of @tid
 * @tid: some of @waiting
 * @watch: watches
 * @nr: entries of @watch
 */
struct queue {
	__u64		flags;
	__u64		ino;
	__u64		nr_watches;
	__u64		ready;
	__u64		delivered;
	__u64		ring_size;
	__u64		ring_kidx;
	__u64		ring_uidx;
	__u64		ring_flags;
	__u64		ring_spaces;
	__u64		hits;
	__u64		misses;
	__u64		waiting;
	__u64		user_bytes;
	__u64		refuses;
	unsigned int	nr_tids;
	pid_t		tid[MAX_WAITERS];
	struct watch	*watch;
	size_t		nr;
};

extern const char *program;	/* its name, for messages */

void need_kevent(void);
void *resize(void *p, size_t bytes);
bool flush_output(void);
int find_queues(struct holders *found, pid_t pid);
void find_all_queues(struct holders *found);
bool read_queue(struct queue *q, const struct holder *h, bool watches);
void free_queue(struct queue *q);
bool read_command(pid_t pid, char command[COMMAND_SIZE]);
void make_printable(char *text);
pid_t process_of(pid_t tid);

#endif /* QUEUES_H */
