/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: chains of system calls, which kevent_call() makes in one
 *
 * Included by libkevent.h.
 */
#ifndef LIBKEVENT_CALL_H
#define LIBKEVENT_CALL_H

#include <stdint.h>
#include <linux/ukevent.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In C++ the function hides the constructor of the structure of the same name. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/**
 * kevent_call() - run a chain of system calls
 * @fd: -1
 * @chain: its entries, each with the number of a system call of this machine
 * @nr: how many there are, 1 to %KEVENT_CALL_MAX
 * @flags: 0
 * @cookie: 0
 *
 * Entries the kernel does not run are run here by ordinary system calls: where the
 * kernel lacks the call or it is disabled, and where somebody sees or filters the
 * calls of the process. A signal does not end the chain, unless a call of it returns
 * -EINTR.
 *
 * Return: the index of the entry that ended the chain, plus %KEVENT_CALL_REFUSED if
 * its call was not made, or -errno.
 */
int kevent_call(int fd, struct kevent_call *chain, __u32 nr, __u32 flags,
		__u64 cookie);

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* Results that a jump is for */
#define KEVENT_ON_ERROR	0x1U
#define KEVENT_ON_ZERO	0x2U
#define KEVENT_ON_VALUE	0x4U
#define KEVENT_ON_ANY	(KEVENT_ON_ERROR | KEVENT_ON_ZERO | KEVENT_ON_VALUE)

/* Names of places in a chain are numbers up to this, of an enum for example. */
#define KEVENT_CHAIN_NAMES	0xfffeU

/**
 * struct kevent_chain - a chain that is being built
 * @calls: its entries
 * @nr: how many there are
 * @max: how many @calls has room for
 * @label: one more than the name of the place after the last entry, or 0
 * @error: of the first function that failed, or 0
 */
struct kevent_chain {
	struct kevent_call	*calls;
	__u32			nr;
	__u32			max;
	__u32			label;
	int			error;
};

/**
 * kevent_chain_init() - begin to build a chain
 * @c: the chain
 * @calls: room for its entries
 * @max: for how many
 *
 * Functions that fail leave a note in the chain; kevent_chain_end() returns it.
 */
void kevent_chain_init(struct kevent_chain *c, struct kevent_call *calls,
		       __u32 max);

/**
 * kevent_chain_add() - add a call
 * @c: the chain
 * @nr: its number
 * @a: its first argument
 * @b: its second
 * @d: its third
 * @e: its fourth
 * @f: its fifth
 * @g: its sixth
 *
 * The next entry follows it, but an error ends the chain.
 *
 * Return: the entry, or NULL.
 */
struct kevent_call *kevent_chain_add(struct kevent_chain *c, __u32 nr, __u64 a,
				     __u64 b, __u64 d, __u64 e, __u64 f, __u64 g);

/* An integer of any type, or a pointer, as an argument of a call */
#define KEVENT_ARG(x)	((__u64)(intptr_t)(x))

/*
 * kevent_chain_call(c, SYS_read, fd, buf, size): kevent_chain_add() with up to six
 * arguments
 */
#define kevent_chain_call(c, ...) \
	kevent_chain_call_(c, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define kevent_chain_call_(c, nr, a, b, d, e, f, g, ...)		\
	kevent_chain_add((c), (__u32)(nr), KEVENT_ARG(a), KEVENT_ARG(b), \
			 KEVENT_ARG(d), KEVENT_ARG(e), KEVENT_ARG(f),	\
			 KEVENT_ARG(g))

/**
 * kevent_chain_copy() - add an entry that copies
 * @c: the chain
 * @to: where to
 * @from: where from
 * @bytes: how many, 1 to 8
 *
 * Return: the entry, or NULL.
 */
struct kevent_call *kevent_chain_copy(struct kevent_chain *c, void *to,
				      const void *from, unsigned int bytes);

/**
 * kevent_chain_pass() - add an entry that makes a result an argument
 * @c: the chain
 * @from: the entry whose result it is
 * @arg: which argument of the entry after this one, from 0
 *
 * Return: the entry, or NULL.
 */
struct kevent_call *kevent_chain_pass(struct kevent_chain *c,
				      const struct kevent_call *from,
				      unsigned int arg);

/**
 * kevent_chain_jump() - say what follows the entry that was added last
 * @c: the chain
 * @on: after which results, %KEVENT_ON_ERROR and others
 * @name: of a place further on
 */
void kevent_chain_jump(struct kevent_chain *c, unsigned int on,
		       unsigned int name);

/**
 * kevent_chain_label() - name the place of the next entry, or the chain's end
 * @c: the chain
 * @name: its name
 */
void kevent_chain_label(struct kevent_chain *c, unsigned int name);

/**
 * kevent_chain_end() - end the building of a chain
 * @c: the chain, which may run any number of times from here on
 *
 * Return: 0, -ENOSPC: there was no room for an entry, -EINVAL: a function got a bad
 * argument, -EEXIST: a place got two names, -ENOENT: a jump to a name that
 * is not further on, -ERANGE: a jump over more than 254 entries.
 */
int kevent_chain_end(struct kevent_chain *c);

/**
 * kevent_chain_run() - run a chain
 * @c: the chain, after kevent_chain_end()
 *
 * Return: see kevent_call().
 */
static inline int kevent_chain_run(const struct kevent_chain *c)
{
	return kevent_call(-1, c->calls, c->nr, 0, 0);
}

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_CALL_H */
