// SPDX-License-Identifier: GPL-2.0
/*
 * Chains of system calls
 *
 * The chain stays in the caller's memory. A step is read once, when the result of the one
 * in front of it is written, and only that copy is used, so another thread that changes
 * steps disturbs nobody but its own process. Jumps go forward, so a chain makes at most
 * KEVENT_CALL_MAX calls. It gives the CPU away between two of them when the scheduler or RCU
 * wants it, and a signal ends it there. No lock is held between calls, and nothing is
 * allocated, so nothing is left when the task exits or a page of the chain goes away.
 *
 * An argument may be the result of a step in front: a flag of the step names the argument,
 * and its word says how many steps back. The result is read from the caller's memory, so a
 * serving thread finds those of the calls that the caller has made. Another thread can only
 * write there what it could have written as an argument. A result that is an error is no
 * argument: it becomes the result of the step, whose call is not made, and the chain goes
 * on as after that error. A step that a jump leaves out has -ECANCELED as its result: a
 * chain that runs again could otherwise close a descriptor of the last time.
 *
 * A call goes through the table of system calls with registers made for it, as after an
 * entry from user mode. Calls are in the list of chains if they need nothing but their
 * arguments. Calls that replace the registers, the memory or the credentials of the task
 * are not, nor calls that start other tasks. ppoll() and its like are not, because they
 * leave a signal mask to be restored on the way to user mode, and a second one would
 * overwrite it. An index_nospec bounds the number.
 *
 * The kernel does some work for a task on its way to user mode. A chain does that work
 * between two calls, since a serving thread may never return to user mode. It is task work,
 * so the last reference to a file that was passed through a socket is gone when the next call
 * begins. It is also the update of rseq's CPU, and the delays of memory.high and of block
 * I/O. Signals and a new offset of the stack wait for the end of the chain. TIF_NOTIFY_SIGNAL
 * is no signal: its task work is done and the call is made again. Nor is the mark of the
 * freezer, for a suspend or a cgroup of version 1: the task is frozen between two calls.
 *
 * Observers are found by the flags that the entry of system calls reads. So anything that
 * wants to see a call, also in later kernels, has a flag there, and a chain needs to know
 * none of them by name. Under a seccomp filter the kernel could run calls that the filter
 * always allows, which seccomp caches in a bitmap. It does not, because that bitmap is
 * private to seccomp, and a filter would then see some calls and not others. A thread that
 * is observed could have another one make its calls: of a chain that it adds none is made.
 *
 * A refusal has a bit of its own in the return value. -EOPNOTSUPP in a step's result
 * could also be what accept() of a datagram socket says, and a library that repeated that
 * call would make it twice.
 *
 * A chain that is submitted runs as far as no call blocks. Nothing of it is kept but its
 * address, its length, and the step to go on with.
 */

#include <linux/compat.h>
#include <linux/errno.h>
#include <linux/kevent.h>
#include <linux/nospec.h>
#include <linux/ptrace.h>
#include <linux/restart_block.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>
#include <linux/ukevent.h>

#ifdef CONFIG_GENERIC_ENTRY
#include <linux/entry-common.h>
#endif

#include "../core/deadline.h"
#include "chain.h"
#include "dispatch.h"
#include "fixed.h"

#if defined(CONFIG_X86_64) || defined(CONFIG_ARM64)

/* The arguments that are read for a call, as bits */
enum { ONE = 0x01, FEW = 0x07, FOUR = 0x0f, MANY = 0x3f };

#define TAKES(name, bits)						\
	[__NR_##name] = bits
#define ONE(name)	TAKES(name, ONE)
#define FEW(name)	TAKES(name, FEW)
#define FOUR(name)	TAKES(name, FOUR)
#define MANY(name)	TAKES(name, MANY)

/*
 * Calls that may be in a chain: I/O, files, sockets and clocks. None of them
 * looks at current_pt_regs(), changes the task, or leaves a saved signal mask
 * for the way back to user mode, as ppoll() and epoll_pwait() do.
 */
static const u8 kevent_call_table[NR_syscalls] = {
	ONE(close), ONE(fsync), ONE(fdatasync), ONE(getpid), ONE(getppid),
	FEW(read), FEW(write), FEW(readv), FEW(writev), FEW(lseek), FEW(ftruncate),
	FEW(getdents64), FEW(fstat), FEW(fstatfs), FEW(statfs), FEW(faccessat),
	FEW(mkdirat), FEW(unlinkat), FEW(symlinkat), FEW(pipe2), FEW(socket), FEW(bind),
	FEW(listen), FEW(connect), FEW(accept), FEW(sendmsg), FEW(recvmsg),
	FEW(shutdown), FEW(getsockname), FEW(getpeername), FEW(clock_gettime),
	FEW(clock_getres),
	FOUR(pread64), FOUR(pwrite64), FOUR(fallocate), FOUR(fadvise64), FOUR(sendfile),
	FOUR(tee), FOUR(newfstatat), FOUR(openat), FOUR(openat2), FOUR(faccessat2),
	FOUR(readlinkat), FOUR(utimensat), FOUR(socketpair), FOUR(accept4),
	FOUR(sendmmsg),
	MANY(preadv), MANY(pwritev), MANY(preadv2), MANY(pwritev2), MANY(splice),
	MANY(copy_file_range), MANY(statx), MANY(renameat2), MANY(linkat), MANY(sendto),
	MANY(recvfrom), MANY(recvmmsg), MANY(getsockopt), MANY(setsockopt),
};

/*
 * Whether somebody has to see each system call of the current task. Tracers, filters and
 * auditors come at any time: look each time.
 */
bool kevent_call_observed(void)
{
#ifdef CONFIG_GENERIC_ENTRY
	return READ_ONCE(current_thread_info()->syscall_work) &
	       (SYSCALL_WORK_ENTER | SYSCALL_WORK_EXIT);
#else
	return read_thread_flags() & _TIF_SYSCALL_WORK;
#endif
}

/* Thread flags of work that the kernel does on the way to user mode */
#define KEVENT_CALL_WORK						\
	(_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL | _TIF_NOTIFY_RESUME |	\
	 _TIF_NEED_RESCHED)

/**
 * struct kevent_step - the step of a chain whose turn it is, and what the next one needs of it
 * @call:	as the program wrote it, without its arguments. @call.flags is 0 once
 *		its references were followed
 * @regs:	its arguments, where calls look for them, and behind them old ones. The
 *		rest is not set. No call of the table reads that, or changes anything
 * @run:	the chain
 * @passed:	with @call.flags, an error that a reference leads to; 0: none
 * @known:	numbers below it are those of the table: none for a 32-bit program, or if
 *		somebody had to see the calls of who submitted the chain
 * @refused:	the call was not made; on_error is 0 then
 */
struct kevent_step {
	struct kevent_call	call;
	struct pt_regs		regs;
	const struct kevent_run	*run;
	long			passed;
	u32			known;
	bool			refused;
};

/* Where the arguments of a call are in its registers */
#define ARG(n)	offsetof(struct pt_regs, KEVENT_CALL_ARG##n)
static const u8 kevent_call_args[] = { ARG(0), ARG(1), ARG(2), ARG(3), ARG(4), ARG(5) };

/*
 * The arguments of the call of @s, as bits; 0: it is none of the table. In line, as all that
 * runs while user memory can be accessed.
 */
static __always_inline int kevent_step_kind(struct kevent_step *s)
{
	if (s->call.nr >= s->known)
		return 0;
	s->call.nr = array_index_nospec(s->call.nr, NR_syscalls);
	return kevent_call_table[s->call.nr];
}

/* Make arguments of results in front of the step @at. As kevent_step_read(), and in line. */
static __always_inline int
kevent_step_refer(struct kevent_step *s,
		  const struct kevent_call __user *at, int kind)
{
	const unsigned long index = at - s->run->chain;
	unsigned long bits = s->call.flags, *arg, back;
	long value = 0;

	if (!kind || bits > MANY)
		goto stop;
	do {
		arg = (void *)&s->regs + kevent_call_args[__ffs(bits)];
		back = *arg - 1;
		if (back >= index)
			goto stop;
		back = array_index_nospec(back, index);
		unsafe_get_user(value, &at[-1 - (long)back].result, fault);
		if (value < 0)
			goto stop;
		*arg = value;
		bits &= bits - 1;
	} while (bits);
	s->call.flags = 0;
	return kind;
stop:
	s->passed = min(value, 0L);
	return 0;
fault:
	return -EFAULT;
}

/*
 * Read the step @at, word by word to where they are used: 64 bytes are too few for a copy
 * routine. Returns the arguments of a call that can be made, 0: there is more to be looked
 * at, or -EFAULT. In line, as kevent_step_kind().
 */
static __always_inline int
kevent_step_read(struct kevent_step *s,
		 const struct kevent_call __user *at)
{
	int kind, bits;

	unsafe_get_user(*(u64 *)&s->call, (const u64 __user *)at, fault);
	unsafe_get_user(s->regs.KEVENT_CALL_ARG0, &at->args[0], fault);
	kind = kevent_step_kind(s);
	bits = kind | s->call.flags;
	if (bits > ONE) {
		unsafe_get_user(s->regs.KEVENT_CALL_ARG1, &at->args[1], fault);
		unsafe_get_user(s->regs.KEVENT_CALL_ARG2, &at->args[2], fault);
	}
	if (bits > FEW)
		unsafe_get_user(s->regs.KEVENT_CALL_ARG3, &at->args[3], fault);
	if (bits > FOUR) {
		unsafe_get_user(s->regs.KEVENT_CALL_ARG4, &at->args[4], fault);
		unsafe_get_user(s->regs.KEVENT_CALL_ARG5, &at->args[5], fault);
	}
	return likely(!s->call.flags) ? kind : kevent_step_refer(s, at, kind);
fault:
	return -EFAULT;
}

/*
 * Store the result of the step @at, if that is in front of the step @next, and read the
 * latter. Steps between the two are not made. A reference to one of them finds
 * -ECANCELED, and no older result.
 */
static int kevent_step_next(struct kevent_step *s,
			    struct kevent_call __user *at,
			    struct kevent_call __user *next, s64 ret)
{
	int kind;

	if (!user_access_begin(next, sizeof(*next)))
		return -EFAULT;
	if (likely(at < next))
		unsafe_put_user(ret, &at->result, fault);
	while (unlikely(++at < next))
		unsafe_put_user(-ECANCELED, &at->result, fault);
	kind = kevent_step_read(s, next);
	user_access_end();
	return kind;
fault:
	user_access_end();
	return -EFAULT;
}

/*
 * Do what user mode would see done before its next call: the last fput()s of
 * the call before, for example. No lock is held, nor credentials of others.
 */
static void kevent_call_work(void)
{
	if (test_thread_flag(TIF_NOTIFY_SIGNAL))
		clear_notify_signal();
	/* It clears TIF_NOTIFY_RESUME, which each switch sets where a thread has rseq. */
	resume_user_mode_work(NULL);
	cond_resched();
}

/*
 * Has a signal come? The freezer sets the same mark: then the task is frozen here, and has
 * none when it is thawed. No locks held.
 */
static bool kevent_call_has_signal(void)
{
	if (likely(!task_sigpending(current)))
		return false;
	do {
		kevent_freeze();
	} while (signal_pending(current) && !kevent_is_interrupted());
	return task_sigpending(current);
}

/*
 * Whether only task work or the freezer interrupted a call, which then is made once more.
 * Without a mark the number is no code: lseek() of some files returns any number.
 */
static bool kevent_call_again(long ret)
{
	return (ret == -ERESTARTSYS || ret == -ERESTARTNOINTR ||
		ret == -ERESTARTNOHAND) && signal_pending(current) &&
	       !kevent_call_has_signal();
}

/* A signal handler runs after the chain, so no call of it is restarted. */
static long kevent_call_no_restart(long ret)
{
	switch (ret) {
	case -ERESTART_RESTARTBLOCK:
		current->restart_block.fn = do_no_restart_syscall;
		fallthrough;
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
		return -EINTR;
	default:
		return ret;
	}
}

/* Why the call of @s is not made now, or 0 */
static long kevent_step_refusal(struct kevent_step *s)
{
	if (unlikely(read_thread_flags() & KEVENT_CALL_WORK)) {
		kevent_call_work();
		if (kevent_call_has_signal())
			return -EINTR;
	}
	if (!s->known)
		return -EOPNOTSUPP;
	if (s->call.flags)
		return s->passed ? 0 : -EINVAL;
	if (s->call.nr != KEVENT_CALL_BOUND && !kevent_step_kind(s))
		return -ENOSYS;
	return kevent_call_observed() ? -EOPNOTSUPP : 0;
}

/* A refusal ends the chain. */
static long kevent_step_refuse(struct kevent_step *s, long err)
{
	s->refused = true;
	s->call.on_error = 0;
	return err;
}

/* As kevent_call_dispatch(), or KEVENT_CALL_ELSEWHERE. */
static long kevent_step_make(struct kevent_step *s, u32 nr, bool nowait)
{
	return nowait && IS_ENABLED(CONFIG_KEVENT_AIO) ?
	       kevent_call_nowait(&s->regs, nr) :
	       kevent_call_dispatch(&s->regs, nr);
}

/* Make the call of @s, whatever it is. */
static long kevent_step_run_any(struct kevent_step *s, bool nowait)
{
	const u64 slot = s->regs.KEVENT_CALL_ARG0;
	u32 nr = s->call.nr;
	long ret;

	do {
		ret = kevent_step_refusal(s);
		if (ret)
			return kevent_step_refuse(s, ret);
		if (s->call.flags)
			return s->passed;
		/* Each attempt looks the slot up: task work may have closed its descriptor. */
		if (s->call.nr == KEVENT_CALL_BOUND) {
			ret = IS_ENABLED(CONFIG_KEVENT_AIO) ?
			      kevent_bound_unfold(s->run->queue, slot, &s->regs) : -ENOSYS;
			if (ret < 0)
				return ret == -EBADF ? ret :
						       kevent_step_refuse(s, ret);
			nr = ret;
		}
		ret = kevent_step_make(s, nr, nowait);
	} while (ret < 0 && kevent_call_again(ret));
	return kevent_call_no_restart(ret);
}

/* Make the call of @s; @kind: see kevent_step_read() */
static long kevent_step_run(struct kevent_step *s, int kind, bool nowait)
{
	long ret;

	if (unlikely(!kind || read_thread_flags() & KEVENT_CALL_WORK ||
		     kevent_call_observed()))
		return kevent_step_run_any(s, nowait);
	ret = kevent_step_make(s, s->call.nr, nowait);
	if (likely(ret >= 0))
		return ret;
	if (unlikely(kevent_call_again(ret)))
		return kevent_step_run_any(s, nowait);
	return kevent_call_no_restart(ret);
}

/*
 * Run a chain in the current thread, from the step @run->at on; @run receives how far it
 * came. Returns 0, -EFAULT when the step @run->at could not be read, or a result not
 * written, or with @nowait -EAGAIN: the call of that step would block.
 */
int kevent_run_chain(struct kevent_run *run, bool nowait)
{
	struct kevent_call __user *at = &run->chain[run->at], *next = at;
	struct kevent_call __user *end = &run->chain[run->nr];
	struct kevent_step s __uninitialized;
	long ret = 0;
	int kind;

	if (!access_ok(run->chain, run->nr * sizeof(*at)))
		return -EFAULT;
	s.run = run;
	s.known = in_compat_syscall() || run->observed ? 0 : NR_syscalls;
	s.refused = false;
	while ((kind = kevent_step_next(&s, at, next, ret)) >= 0) {
		at = next;
		ret = kevent_step_run(&s, kind, nowait);
		if (nowait && ret == KEVENT_CALL_ELSEWHERE) {
			kind = -EAGAIN;
			break;
		}
		if (ret < 0)
			next = at + s.call.on_error;
		else
			next = at + (ret ? s.call.on_value : s.call.on_zero);
		if (next == at || next >= end) {
			kind = put_user(ret, &at->result);
			break;
		}
	}
	run->at = at - run->chain;
	run->result = ret;
	run->refused = s.refused;
	return min(kind, 0);
}

/*
 * Do what a chain has left for the way to user mode. The thread that has run it may sleep
 * next, for long: a socket whose last reference went in a call is to be closed first.
 */
void kevent_run_settle(void)
{
	if (read_thread_flags() & KEVENT_CALL_WORK)
		kevent_call_work();
}

#else

int kevent_run_chain(struct kevent_run *run, bool nowait)
{
	return -EOPNOTSUPP;
}

void kevent_run_settle(void) {}

bool kevent_call_observed(void)
{
	return false;
}

#endif
