/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kevent-fuzz: what the model knows of watches, and of what they must and may report
 */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <libkevent.h>

struct end;
struct op;

/* Queues and watches */

/* A mark or signal that is an event of its own; or several that have merged */
struct kept {
	bool		each;
	uint32_t	bits;
	uint32_t	data[2];
	uint32_t	pid;
};

/**
 * struct watch - what the model knows of a watch
 * @type:	0 is SOCKET, so see @used
 * @key:	slot, id, process id, or one of many
 * @end:	of a file; -1
 * @id:		first word of the id in its entries
 * @event:	interest
 * @flags:	request flags
 * @user:	names the watch and its last change
 * @used:	it exists
 * @armed:	it reports
 * @listed:	level: it was delivered, and has not been found idle since
 * @perhaps:	it may be listed
 * @look:	an entry may have all conditions that hold
 * @made:	an entry was made in this operation
 * @owing:	an entry must be made by the collection under way
 * @must:	conditions that the next entry must have, if they still hold
 * @may:	conditions that it may have
 * @reasons:	how many things happened that may be a reason for an entry
 * @told:	class of conditions: it has reported the newest activity
 * @notified: class of conditions: it may have been notified in place of others
 * @in_turn:	class of conditions: it may have been, of the newest activity
 * @stored:	position after its newest entry
 * @reported:	conditions in that
 * @nr_kept:	events to come, of USER and SIGNAL
 * @kept:	these
 * @pending:	INODE, FUTEX, PROC: what the next entry says
 * @first_ns:	timers: the first expiry is not before
 * @last_ns:	... and not after
 * @interval:	0: it expires once
 * @counted:	expirations reported
 * @stamp:	FUTEX: order among waiters, 0: no waiter
 * @child:	a child added it
 */
struct watch {
	uint8_t		type;
	bool		used, armed, listed, perhaps, look, made, owing, child;
	uint32_t	key;
	int		end;
	uint64_t	id;
	uint32_t	event;
	uint32_t	flags;
	uint64_t	user;
	uint32_t	must;
	uint32_t	may;
	uint32_t	reasons;
	bool		told[2];
	bool		notified[2];
	bool		in_turn[2];
	uint64_t	stored;
	uint32_t	reported;
	unsigned int	nr_kept;
	struct kept	kept[MAX_KEPT];
	uint32_t	pending[2];
	uint64_t	first_ns, last_ns, interval, counted;
	uint64_t	stamp;
};

/**
 * struct fqueue - a queue
 * @fd:		its descriptor
 * @size:	slots of its ring; 0: none
 * @ring:	the ring
 * @kidx:	position up to which the model has seen entries
 * @uidx:	position of the oldest unread one
 * @w:		watches
 * @nr:		how many of them were ever used
 */
struct fqueue {
	int			fd;
	uint32_t		size;
	struct kevent_ring	*ring;
	uint64_t		kidx, uidx;
	struct watch		*w;
	unsigned int		nr;
};

/* model.c */
struct watch *find_watch(struct fqueue *q, uint8_t type, unsigned int key);
struct watch *new_watch(struct fqueue *q);
void drop_watch(struct watch *w);
bool is_file(uint8_t type);
bool is_unread(const struct fqueue *q, const struct watch *w);
/* What a request must return: 0, 1, or -errno; changes the model. */
int model_ctl(const struct op *op, struct ukevent *uk, bool *handed);
/* A call of the library may have dropped what repeats. */
void model_dropped(struct fqueue *q);
bool model_is_full(uint8_t type, uint32_t key);
/* An entry was made, in a ring or a buffer. */
void model_made(struct fqueue *q, const struct ukevent *uk, uint64_t end);
/* Before and after a call of a consumer; @all: it had room for all there was. */
void model_begin(struct fqueue *q);
void model_end(struct fqueue *q, bool all);
/* A lower bound for the entries the call makes */
unsigned int model_owing(const struct fqueue *q);
bool model_leaves_a_poll(const struct fqueue *q);
/* The events in the kernel that were not reported before */
bool model_waits(const struct fqueue *q);
void model_queue_gone(struct fqueue *q);

/* files.c */
uint32_t file_holds(const struct watch *w);
void file_look(struct fqueue *q, struct watch *w);
void file_made(struct fqueue *q, struct watch *w, const struct ukevent *uk);
bool file_owes(const struct fqueue *q, const struct watch *w);
void file_looked_at(const struct fqueue *q, struct watch *w);
void file_collected(const struct fqueue *q, struct watch *w);
bool reports_level(const struct watch *w);
/* @certain and @may are bits of poll(2). */
void file_activity(int end, uint32_t certain, uint32_t may, bool look);

void file_handed_on(struct watch *w, unsigned int class);

/* turns.c */
uint32_t class_bits(unsigned int class);
bool wants(const struct watch *w, uint32_t bits);
/* Is it for one of several queues? Then that is noted as a debt. */
bool turn_begins(int end, unsigned int class);
void turn_told(struct watch *w, uint32_t mask);
/* A watch is gone or not interested any more. */
void turn_leaves(struct watch *w);
void turn_modified(struct watch *w, uint32_t event, bool disabled);
void turn_spent(struct watch *w);
void turn_asked(const struct fqueue *q, const struct watch *w);
void turn_collected(struct fqueue *q);
void turn_looked(struct end *e);

/* sources.c */
int source_ctl(struct fqueue *q, const struct op *op, struct watch *w,
	       const struct ukevent *uk);
void source_made(struct fqueue *q, struct watch *w, const struct ukevent *uk);
bool source_owes(const struct fqueue *q, const struct watch *w);
void source_collected(const struct fqueue *q, struct watch *w);
/* Conditions of an unread entry */
uint32_t covered(const struct fqueue *q, const struct watch *w);
void source_changed(int end, uint32_t bits);

/* Signal @x with a value is sent: is it consumed? */
bool source_signal(int x, uint32_t value);
void source_ended(pid_t pid);
struct process *find_process(pid_t pid);
/* Returns how many of @nr a FUTEX_WAKE wakes. */
int source_woken(int x, int nr);
void futex_gone(struct watch *w);

/* times.c */
int timer_ctl(const struct op *op, struct watch *w);
int posix_timer_ctl(const struct op *op, struct watch *w);
void timer_made(struct watch *w, const struct ukevent *uk);
struct watch *find_posix_timer(unsigned int x);
void source_set_time(struct watch *w, uint64_t first, uint64_t interval);
/* Has a timer not reported an expiry that was due then? */
bool source_is_late(const struct fqueue *q, uint64_t due);
uint64_t timer_first(const struct op *op);
uint64_t timer_interval(const struct op *op);

#endif /* FUZZ_MODEL_H */
