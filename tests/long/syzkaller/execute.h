/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls as tables, which describe.py writes, and programs that are made from them
 */
#ifndef EXECUTE_H
#define EXECUTE_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_ARGS	6
#define MAX_RESULTS	256
#define MAX_ERRNO	4096	/* and 0, success; those from 512 on are for the kernel */
#define MAX_CALLS	128
#define MAX_OPTIONS	16

/* Memory that pointers go to: few places, so that calls share them */
#define ARENA		0x20000000ul
#define SLOT_BYTES	16384ul
#define NR_SLOTS	16	/* the last two: read-only, and none */

enum kind { CONST, INT, FLAGS, LEN, RESOURCE, PTR, VMA, ARRAY, STRUCT, UNION };

struct type;

/**
 * struct member - of a structure or union, or an argument
 * @name:	in the description
 * @type:	what it is
 * @offset:	in bytes
 */
struct member {
	const char		*name;
	const struct type	*type;
	uint32_t		offset;
};

/**
 * struct type - how a value is made
 * @kind:	which of the members below count
 * @size:	bytes, of an array at its longest
 * @nr:		members, or values
 * @lo:		CONST: the value; INT: the least one; ARRAY: the least length
 * @hi:		the most
 * @values:	FLAGS: one or more of them; RESOURCE: what is no resource
 * @members:	of STRUCT and UNION
 * @elem:	of ARRAY, and what PTR points to
 * @bits:	RESOURCE: bits of this kind and of those that it is one of
 * @own:	RESOURCE: its bit
 * @of:		LEN: the index of the member, or -1 for the structure's bytes
 * @out:	PTR: the call only writes there
 * @optional:	PTR: may be NULL
 */
struct type {
	enum kind		kind;
	uint32_t		size;
	uint32_t		nr;
	uint64_t		lo, hi;
	const uint64_t		*values;
	const struct member	*members;
	const struct type	*elem;
	uint32_t		bits, own;
	int			of;
	bool			out, optional;
};

/**
 * struct call - a call of the description
 * @name:	with its variant
 * @number:	of the system call
 * @nr:		arguments
 * @args:	of them
 * @bits:	kinds of resource that its result is
 * @own:	the most special one of them
 * @ours:	it is in kevent.txt
 */
struct call {
	const char		*name;
	long			number;
	unsigned int		nr;
	const struct member	*args;
	uint32_t		bits, own;
	bool			ours;
};

extern const struct call calls[];
extern const unsigned int nr_calls;

/**
 * struct counts - what happened, in memory that all processes share
 * @programs:	that have ended
 * @died:	programs that ended by a fault or abort()
 * @calls:	that returned
 * @events:	calls of kevent_wait() and kevent_get_events() that reported some
 * @program:	the number of the one that runs
 * @errnos:	how often each call ended with an errno, or with 0
 * @first:	the first program in which it did
 * @added:	watches added by a call for one, per member of the union ukevent
 */
struct counts {
	uint64_t	programs;
	uint64_t	died;
	uint64_t	calls;
	uint64_t	events;
	uint64_t	program;
	uint64_t	errnos[MAX_CALLS][MAX_ERRNO];
	uint64_t	first[MAX_CALLS][MAX_ERRNO];
	uint64_t	added[MAX_OPTIONS];
};

extern struct counts *counts;

/* struct thread - a thread of a program; each has random numbers of its own */
struct thread {
	uint64_t	rnd;
	unsigned int	number;
	unsigned int	option;		/* of the last union that was made */
	bool		show;
};

uint32_t below(struct thread *t, uint32_t n);

/**
 * make_args() - make the arguments of a call, and what they point to
 * @t:		the thread
 * @call:	the call
 * @args:	gets them
 */
void make_args(struct thread *t, const struct call *call, uint64_t *args);

/**
 * take_results() - remember the resources that a call has made
 * @call:	the call
 * @args:	its arguments
 * @ret:	what it returned
 */
void take_results(const struct call *call, const uint64_t *args, long ret);

/* add_result() - remember a resource, of the kinds in @bits */
void add_result(uint32_t bits, uint64_t value);

/* store_reset() - the arena and the resources at the start of a program */
void store_reset(void);

/* load() - copy from the arena, which may not be there; false: it is not */
bool load(void *to, uint64_t from, uint32_t size);

/**
 * make_resource() - make a call whose result is of a kind
 * @t:		the thread
 * @own:	the bit of the kind
 */
void make_resource(struct thread *t, uint32_t own);

/**
 * run_program() - run one program in this process, which it ends
 * @seed:	what all of it depends on
 * @show:	print calls and results
 * @only:	make only these calls of each thread, from the bit 1; NULL: all
 */
__attribute__((noreturn))
void run_program(uint64_t seed, bool show, const uint64_t *only);

#endif /* EXECUTE_H */
