/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: chains of system calls, which kevent_call() makes in one
 *
 * Included by libkevent.h.
 */
#ifndef LIBKEVENT_CALL_H
#define LIBKEVENT_CALL_H

#include <stdint.h>
#include <time.h>
#include <linux/ukevent.h>
#include "libkevent_inline.h"

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
 * @fd: -1, or a queue whose bound calls are in the chain; with %KEVENT_CALL_ASYNC any
 *	queue
 * @chain: its steps, each with the number of a system call of this machine
 * @nr: how many there are, 1 to %KEVENT_CALL_MAX
 * @flags: 0 or %KEVENT_CALL_ASYNC
 * @cookie: 0; with %KEVENT_CALL_ASYNC any number that no other chain of the queue
 *	has, returned with the event, in ptr
 *
 * Entries the kernel does not run are run here by ordinary system calls: where the
 * kernel lacks the call or it is disabled, and where somebody sees or filters the
 * calls of the process. A signal does not end the chain, unless a call of it returns
 * -EINTR.
 *
 * For %KEVENT_CALL_ASYNC see kevent_chain_submit(), which is the same.
 *
 * Return: the index of the step that ended the chain, plus %KEVENT_CALL_REFUSED if
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
 * @calls: its steps
 * @nr: how many there are
 * @max: how many @calls has room for
 * @label: one more than the name of the place after the last step, or 0
 * @error: of the first function that failed, or 0
 * @spare: for later versions
 */
struct kevent_chain {
	struct kevent_call	*calls;
	__u32			nr;
	__u32			max;
	__u32			label;
	int			error;
	__u64			spare[2];
};

/**
 * kevent_chain_init() - begin to build a chain
 * @c: the chain
 * @calls: room for its steps
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
 * The next step follows it, but an error ends the chain.
 *
 * Return: the step, or NULL.
 */
struct kevent_call *kevent_chain_add(struct kevent_chain *c, __u32 nr, __u64 a,
				     __u64 b, __u64 d, __u64 e, __u64 f, __u64 g);

/* A pointer, or an integer of at most that size, as an argument of a call */
#define KEVENT_ARG(x)	((__u64)(intptr_t)(x))

/*
 * kevent_chain_call(c, SYS_read, fd, buf, size): kevent_chain_add() with up to six
 * arguments. A seventh one is taken for the function, and does not compile.
 */
#define kevent_chain_call(c, ...)					\
	kevent_chain_eighth_(__VA_ARGS__, kevent_chain_add,		\
			     kevent_chain_add, kevent_chain_add,	\
			     kevent_chain_add, kevent_chain_add,	\
			     kevent_chain_add, kevent_chain_add, 0)	\
	kevent_chain_args_(c, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define kevent_chain_eighth_(nr, a, b, d, e, f, g, function, ...)	\
	(function)
#define kevent_chain_args_(c, nr, a, b, d, e, f, g, ...)		\
	((c), (__u32)(nr), KEVENT_ARG(a), KEVENT_ARG(b), KEVENT_ARG(d),	\
	 KEVENT_ARG(e), KEVENT_ARG(f), KEVENT_ARG(g))

/**
 * kevent_chain_pass() - make a result an argument of the step that was added last
 * @c: the chain
 * @from: the step whose result it is, before that one
 * @arg: which argument, from 0
 *
 * If that result is an error, the call is not made and has the same result. A step that
 * was jumped over has the result -ECANCELED.
 */
void kevent_chain_pass(struct kevent_chain *c, const struct kevent_call *from,
		       unsigned int arg);

/**
 * kevent_chain_jump() - say what follows the step that was added last
 * @c: the chain
 * @on: after which results, %KEVENT_ON_ERROR and others
 * @name: of a place further on
 */
void kevent_chain_jump(struct kevent_chain *c, unsigned int on,
		       unsigned int name);

/**
 * kevent_chain_label() - name the place of the next step, or the chain's end
 * @c: the chain
 * @name: its name
 */
void kevent_chain_label(struct kevent_chain *c, unsigned int name);

/**
 * kevent_chain_end() - end the building of a chain
 * @c: the chain, which may run any number of times from here on. Once only: the jumps take
 *	the place of their names
 *
 * Return: 0, -ENOSPC: there was no room for a step, -EINVAL: a function got a bad
 * argument, -EEXIST: a place got two names, -ENOENT: a jump to a name that
 * is not further on, -ERANGE: a jump over more than 254 steps.
 */
int kevent_chain_end(struct kevent_chain *c);

/**
 * kevent_chain_run() - run a chain
 * @c: the chain, after kevent_chain_end()
 *
 * Return: see kevent_call().
 */
KEVENT_INLINE int kevent_chain_run(const struct kevent_chain *c)
{
	return kevent_call(-1, c->calls, c->nr, 0, 0);
}

/**
 * kevent_bind() - have a call of a file checked once, for chains
 * @fd: a queue
 * @slot: a number less than %KEVENT_BOUND_MAX, for each bound call of the queue another
 *	one. Small numbers take less memory
 * @call: read(), write(), pread64(), pwrite64(), recvfrom() and sendto() without an
 *	address, or accept4(), with all arguments. Its jumps do not count. Chains with
 *	the call may read it as long as they run
 *
 * A close of the descriptor ends it, and so does REMOVE of kevent_set_bound(). It is
 * a call of this process: a child has bound calls of its own queues.
 *
 * Return: @slot, or -errno, in which case kevent_chain_bound() adds the ordinary call:
 * -ENOSYS when the kernel has no bound calls, the queue is one of the library, or the
 * call is another one;
 * -EEXIST when the slot is taken;
 * -EXDEV when the queue has bound calls of another process;
 * -EBADF when a descriptor is not open, or not for that;
 * -EINVAL, -ENOTSOCK, -EFAULT for bad arguments, of the call too;
 * -ENOSPC, -ENOMEM, -EPERM, -EOPNOTSUPP as for kevent_ctl().
 */
int kevent_bind(int fd, __u32 slot, const struct kevent_call *call);

/**
 * kevent_chain_bound() - add a bound call
 * @c: the chain
 * @slot: what kevent_bind() has returned; for an error the step is the ordinary call
 * @call: the call that was bound
 *
 * Return: the step, or NULL.
 */
struct kevent_call *kevent_chain_bound(struct kevent_chain *c, int slot,
				       const struct kevent_call *call);

/**
 * kevent_chain_run_in() - run a chain that has bound calls
 * @fd: the queue that has them
 * @c: the chain, after kevent_chain_end()
 *
 * Calls that the kernel refuses to make as bound ones are made as ordinary ones.
 *
 * Return: see kevent_call().
 */
KEVENT_INLINE int kevent_chain_run_in(int fd, const struct kevent_chain *c)
{
	return kevent_call(fd, c->calls, c->nr, 0, 0);
}

/**
 * kevent_chain_submit() - run a chain beside the caller
 * @fd: a queue
 * @c: the chain, after kevent_chain_end(); it is not the caller's until it has ended
 * @cookie: a number that no other chain of the queue has, returned with the event,
 *	in ptr; see kevent_from_pointer()
 *
 * The kernel makes the calls that do not block at once, and leaves the rest to a
 * thread in kevent_chain_serve(). If it refuses to make a call in the caller, because
 * somebody sees or filters its calls or a signal has come, that call and the rest are
 * left to such a thread, too. So the caller never waits for a call of the chain. A
 * queue of the library leaves all calls to those threads.
 *
 * Return: %KEVENT_CALL_SUBMITTED: one event of %KEVENT_AIO will come, for
 * kevent_chain_finish(). The result of kevent_call(), if the chain has ended: then
 * there is no event. A step that could not be left to a thread ends the chain, and its
 * result is
 * -EEXIST when another chain with @cookie has an event to come.
 * -EXDEV when the chains of the queue are those of another process.
 * -ENOSPC, -ENOMEM when there are too many chains, or memory is short.
 * If no call was made, the result is
 * -EBADF when @fd is not open.
 * -EINVAL when @fd is no queue, or the chain is empty or too long.
 * -EFAULT when the chain can't be accessed.
 * -EPERM when the sysctl kernel.kevent_disabled forbids it, or the queue refuses
 * %KEVENT_AIO.
 * -EOPNOTSUPP when the kernel runs no chains on this architecture.
 * -ENOSYS when the kernel has kevent, but leaves no chains to threads.
 */
int kevent_chain_submit(int fd, const struct kevent_chain *c, __u64 cookie);

/**
 * kevent_chain_watch() - watch a file for a chain
 * @queue: a queue
 * @c: the chain, after kevent_chain_end()
 * @fd: any file poll(2) takes, with O_NONBLOCK
 * @event: %KEVENT_POLL_POLLIN and its like
 * @req_flags: %KEVENT_REQ_ET and its like; not %KEVENT_REQ_HAND_BACK
 * @cookie: returned with each event, in ptr
 *
 * It is a watch of kevent_set_poll() with %KEVENT_REQ_LAST_CHECK, which MODIFY and REMOVE
 * want. At each event kevent_chain_finish() runs the chain. The first call is the check:
 * if it returns -EAGAIN, the rest is not made.
 *
 * Return: 0, or -errno:
 * -EINVAL when the chain has no steps or could not be built, or @req_flags has
 * %KEVENT_REQ_HAND_BACK;
 * -EEXIST when the queue has a watch of %KEVENT_POLL of the descriptor;
 * -EBADF, -EPERM, -EINVAL, -ENOSPC, -ENOMEM, -ELOOP as for kevent_ctl().
 */
int kevent_chain_watch(int queue, const struct kevent_chain *c, int fd,
		       __u32 event, __u32 req_flags, __u64 cookie);

/**
 * kevent_chain_finish() - run the chain of a watch, or find out how one has ended
 * @c: the chain that was submitted, or is that of a watch
 * @ev: its event
 *
 * The chain of a watch is run, in the caller, as kevent_chain_run() runs it; its bound
 * calls are made as ordinary ones.
 *
 * The kernel may refuse to make a call of a submitted chain in the thread that serves.
 * Then its calls are seen or filtered, or the kernel knows fewer of them than the library.
 * This function then makes that call and the rest, by ordinary calls, in the caller.
 * Such a program waits here.
 *
 * Return: what kevent_call() returns;
 * -EAGAIN when the first call of a watch's chain had nothing to do;
 * -ECANCELED when it was cancelled: the event has the index of the first call that was
 * not made in the low 16 bits of id;
 * -EFAULT when the chain's memory went away;
 * the -errno of the event when the watch is broken, see kevent_error();
 * -EINVAL when @ev is no event of such a chain, or the chain could not be built.
 */
int kevent_chain_finish(const struct kevent_chain *c, const struct ukevent *ev);

/**
 * kevent_chain_cancel() - have no more calls of a chain made
 * @fd: the queue it was submitted to
 * @cookie: its number
 *
 * The event of a chain comes whether it was cancelled or not. Its memory is the
 * thread's until then.
 *
 * Return: 0 when it was cancelled: no thread had begun with what was left to one;
 * -EALREADY when a thread runs it, or it has ended;
 * -ENOENT when the queue has no such chain; or an errno of kevent_ctl().
 */
int kevent_chain_cancel(int fd, __u64 cookie);

/**
 * kevent_chain_serve() - run the chains that were left to threads
 * @fd: a queue
 * @limit: from now on at most so many threads of the queue run chains at once, at
 *	least 1. One that blocks does not count; on a queue of the library it does
 * @timeout: how long to wait for chains; NULL: without end
 *
 * The calls are system calls of the calling thread, with its rights and files. The
 * library starts no thread for this: a program starts as many as it likes. A thread
 * takes no events.
 *
 * Return: the number of chains it ran, until @timeout, a signal, or the close of @fd
 * by another thread; if it ran none,
 * -EINTR when a signal handler ran;
 * -EBADF when @fd is not open, or was closed meanwhile;
 * -EINVAL when @fd is no queue, @limit is 0 or @timeout malformed;
 * -EXDEV when the chains of the queue are those of another process;
 * -EPERM when the sysctl kernel.kevent_disabled forbids it;
 * -ENOMEM when out of memory;
 * -ENOSYS when the kernel leaves no chains to threads.
 */
int kevent_chain_serve(int fd, __u32 limit, const struct timespec *timeout);

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_CALL_H */
