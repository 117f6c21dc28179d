// SPDX-License-Identifier: GPL-2.0
/*
 * Chains of system calls
 *
 * The chain stays in the caller's memory. An entry is read once, right before its call,
 * and only that copy is used, so another thread that changes entries disturbs nobody but
 * its own process. Jumps go forward, so a chain makes at most KEVENT_CALL_MAX calls, with
 * a cond_resched() after 64 or as soon as the CPU is wanted, and a signal ends it between
 * two of them. No lock is held between calls, and nothing is allocated, so nothing is left
 * when the task exits or a page of the chain goes away.
 *
 * A call goes through the table of system calls with registers made for it, as after an
 * entry from user mode. Calls are in the list of chains if they need nothing but their
 * arguments. Calls that replace the registers, the memory or the credentials of the task
 * are not, nor calls that start other tasks. ppoll() and its like are not, because they
 * leave a signal mask to be restored on the way to user mode, and a second one would
 * overwrite it. An index_nospec bounds the number.
 *
 * The work that the way to user mode would do for a call is done before the next one: task
 * work, so the last reference to a file that was passed through a socket is gone when the
 * next call begins. Things that only user mode can notice wait for the end of the chain:
 * signals, rseq, a new offset of the stack, and the delay of memory.high.
 * TIF_NOTIFY_SIGNAL is no signal: its task work is done and the call is made again.
 *
 * Observers are found by the flags that the entry of system calls reads. So anything that
 * wants to see a call, also in later kernels, has a flag there, and a chain needs to know
 * none of them by name. Under a seccomp filter the kernel could run calls that the filter
 * always allows, which seccomp caches in a bitmap. It does not, because that bitmap is
 * private to seccomp, and a filter would then see some calls and not others. Threads of
 * the kernel, and those of io_uring that run requests of a task, are refused: they have no
 * registers of user mode.
 *
 * A refusal has a bit of its own in the return value. -EOPNOTSUPP in an entry's result
 * could also be what accept() of a datagram socket says, and a library that repeated that
 * call would make it twice.
 *
 * A chain that is submitted runs as far as no call blocks. Nothing of it is kept but its
 * address, its length, and the entry to go on with.
 */

#include <linux/compat.h>
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/kevent.h>
#include <linux/nospec.h>
#include <linux/ptrace.h>
#include <linux/restart_block.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>
#include <linux/ukevent.h>

#ifdef CONFIG_GENERIC_ENTRY
#include <linux/entry-common.h>
#endif

#include "chain.h"
#include "dispatch.h"

#if defined(CONFIG_X86_64) || defined(CONFIG_ARM64)

/* Calls with up to three arguments, and with more */
#define FEW	1
#define MANY	2

/*
 * Calls that may be in a chain: I/O, files, sockets and clocks. None of them
 * looks at current_pt_regs(), changes the task, or leaves a saved signal mask
 * for the way back to user mode, as ppoll() and epoll_pwait() do.
 */
static const u8 kevent_call_table[NR_syscalls] = {
	[__NR_read] = FEW, [__NR_write] = FEW,
	[__NR_readv] = FEW, [__NR_writev] = FEW,
	[__NR_pread64] = MANY, [__NR_pwrite64] = MANY,
	[__NR_preadv] = MANY, [__NR_pwritev] = MANY,
	[__NR_preadv2] = MANY, [__NR_pwritev2] = MANY,
	[__NR_lseek] = FEW, [__NR_close] = FEW,
	[__NR_fsync] = FEW, [__NR_fdatasync] = FEW,
	[__NR_ftruncate] = FEW, [__NR_fallocate] = MANY,
	[__NR_fadvise64] = MANY, [__NR_sendfile] = MANY,
	[__NR_splice] = MANY, [__NR_tee] = MANY,
	[__NR_copy_file_range] = MANY, [__NR_getdents64] = FEW,
	[__NR_fstat] = FEW, [__NR_fstatfs] = FEW, [__NR_statfs] = FEW,
	[__NR_statx] = MANY, [__NR_newfstatat] = MANY,
	[__NR_openat] = MANY, [__NR_openat2] = MANY,
	[__NR_faccessat] = FEW, [__NR_faccessat2] = MANY,
	[__NR_readlinkat] = MANY, [__NR_mkdirat] = FEW,
	[__NR_unlinkat] = FEW, [__NR_renameat2] = MANY,
	[__NR_linkat] = MANY, [__NR_symlinkat] = FEW,
	[__NR_utimensat] = MANY, [__NR_pipe2] = FEW,
	[__NR_socket] = FEW, [__NR_socketpair] = MANY,
	[__NR_bind] = FEW, [__NR_listen] = FEW, [__NR_connect] = FEW,
	[__NR_accept] = FEW, [__NR_accept4] = MANY,
	[__NR_sendto] = MANY, [__NR_recvfrom] = MANY,
	[__NR_sendmsg] = FEW, [__NR_recvmsg] = FEW,
	[__NR_sendmmsg] = MANY, [__NR_recvmmsg] = MANY,
	[__NR_shutdown] = FEW, [__NR_getsockname] = FEW,
	[__NR_getpeername] = FEW, [__NR_getsockopt] = MANY,
	[__NR_setsockopt] = MANY,
	[__NR_clock_gettime] = FEW, [__NR_clock_getres] = FEW,
	[__NR_getpid] = FEW, [__NR_getppid] = FEW,
};

/*
 * 0: no call of a chain. Safe for a number that was not checked. In line: no function is
 * called while user memory can be accessed.
 */
static __always_inline u8 kevent_call_kind(u32 nr)
{
	if (nr >= NR_syscalls)
		return 0;
	return kevent_call_table[array_index_nospec(nr, NR_syscalls)];
}

/* Whether somebody has to see each system call of the current task */
static bool kevent_call_observed(void)
{
#ifdef CONFIG_GENERIC_ENTRY
	return READ_ONCE(current_thread_info()->syscall_work) &
	       (SYSCALL_WORK_ENTER | SYSCALL_WORK_EXIT);
#else
	return read_thread_flags() & _TIF_SYSCALL_WORK;
#endif
}

/* What the way to user mode would look at before the next call */
#define KEVENT_CALL_WORK						\
	(_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL | _TIF_NOTIFY_RESUME |	\
	 _TIF_NEED_RESCHED)

/* Entries between two looks at what RCU waits for */
#define KEVENT_CALL_SLICE	64U

/**
 * struct kevent_call_state - what a chain keeps from one call to the next
 * @queue:	whose bound calls it may make, or NULL
 * @call:	the entry whose turn it is, without its arguments
 * @regs:	its arguments, where calls look for them, and behind them old ones. The
 *		rest is 0. No call of the table reads that, or changes anything
 * @kind:	of the call, or 0: see kevent_call_kind()
 * @refused:	the call was not made; on_error is 0 then
 * @compat:	the caller is a 32-bit program, and no call is made
 */
struct kevent_call_state {
	struct kevent_queue	*queue;
	struct kevent_call	call;
	struct pt_regs		regs;
	u8			kind;
	bool			refused;
	bool			compat;
};

/*
 * Word by word to where they are used: 64 bytes are too few for a copy routine. A copy
 * and a bound call have up to three arguments.
 */
static int kevent_call_read(struct kevent_call_state *c,
			    const struct kevent_call __user *from)
{
	if (can_do_masked_user_access())
		from = masked_user_access_begin(from);
	else if (!user_read_access_begin(from, sizeof(*from)))
		return -EFAULT;
	unsafe_get_user(*(u64 *)&c->call, (const u64 __user *)from, fault);
	unsafe_get_user(c->regs.KEVENT_CALL_ARG0, &from->args[0], fault);
	unsafe_get_user(c->regs.KEVENT_CALL_ARG1, &from->args[1], fault);
	unsafe_get_user(c->regs.KEVENT_CALL_ARG2, &from->args[2], fault);
	c->kind = kevent_call_kind(c->call.nr);
	if (c->kind == MANY) {
		unsafe_get_user(c->regs.KEVENT_CALL_ARG3, &from->args[3], fault);
		unsafe_get_user(c->regs.KEVENT_CALL_ARG4, &from->args[4], fault);
		unsafe_get_user(c->regs.KEVENT_CALL_ARG5, &from->args[5], fault);
	}
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
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
	if (task_work_pending(current))
		task_work_run();
	cond_resched();
}

/*
 * Whether only task work interrupted a call, which then is made once more. Without such
 * work the number is no code: lseek() of some files returns any number.
 */
static bool kevent_call_again(long ret)
{
	return (ret == -ERESTARTSYS || ret == -ERESTARTNOINTR ||
		ret == -ERESTARTNOHAND) && !task_sigpending(current) &&
	       test_thread_flag(TIF_NOTIFY_SIGNAL);
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

static long kevent_call_copy(const struct pt_regs *regs)
{
	void __user *to = (void __user *)regs->KEVENT_CALL_ARG0;
	void __user *from = (void __user *)regs->KEVENT_CALL_ARG1;
	u64 bytes, nr = regs->KEVENT_CALL_ARG2;

	if (!nr || nr > sizeof(bytes))
		return -EINVAL;
	if (nr < sizeof(bytes))
		return copy_from_user(&bytes, from, nr) ||
		       copy_to_user(to, &bytes, nr) ? -EFAULT : nr;
	return get_user(bytes, (u64 __user *)from) ||
	       put_user(bytes, (u64 __user *)to) ? -EFAULT : nr;
}

/* Why no entry is looked at now, or that of @c is none, or 0 */
static long kevent_call_stops(const struct kevent_call_state *c)
{
	if (unlikely(read_thread_flags() & KEVENT_CALL_WORK)) {
		kevent_call_work();
		if (task_sigpending(current))
			return -EINTR;
	}
	return c->call.flags ? -EINVAL : 0;
}

/* Tracers, filters and auditors come at any time: look each time. */
static long kevent_call_hidden(const struct kevent_call_state *c)
{
	return c->compat || kevent_call_observed() ? -EOPNOTSUPP : 0;
}

/* Why the call of @c is not made now, or 0 */
static long kevent_call_refusal(const struct kevent_call_state *c)
{
	long err = kevent_call_stops(c);

	if (err || c->call.nr == KEVENT_CALL_COPY)
		return err;
	return c->kind || c->call.nr == KEVENT_CALL_BOUND ?
	       kevent_call_hidden(c) : -ENOSYS;
}

/* A refusal ends the chain. */
static long kevent_call_refuse(struct kevent_call_state *c, long err)
{
	c->refused = true;
	c->call.on_error = 0;
	return err;
}

/* As kevent_call_dispatch(), or KEVENT_CALL_ELSEWHERE. */
static long kevent_call_make(struct kevent_call_state *c, u32 nr, bool nowait)
{
	nr = array_index_nospec(nr, NR_syscalls);
	return nowait && IS_ENABLED(CONFIG_KEVENT_AIO) ?
	       kevent_call_nowait(&c->regs, nr) :
	       kevent_call_dispatch(&c->regs, nr);
}

/* Make the call of @c, whatever it is. */
static long kevent_call_run_any(struct kevent_call_state *c, bool nowait)
{
	const u64 slot = c->regs.KEVENT_CALL_ARG0;
	u32 nr = c->call.nr;
	long ret;

	do {
		ret = kevent_call_refusal(c);
		if (ret)
			return kevent_call_refuse(c, ret);
		if (nr == KEVENT_CALL_COPY)
			return kevent_call_copy(&c->regs);
		/* Each attempt looks the slot up: task work may have closed its descriptor. */
		if (c->call.nr == KEVENT_CALL_BOUND) {
			ret = IS_ENABLED(CONFIG_KEVENT_AIO) ?
			      kevent_bound_unfold(c->queue, slot, &c->regs) : -ENOSYS;
			if (ret < 0)
				return ret == -EBADF ? ret :
						       kevent_call_refuse(c, ret);
			nr = ret;
		}
		ret = kevent_call_make(c, nr, nowait);
	} while (ret < 0 && kevent_call_again(ret));
	return kevent_call_no_restart(ret);
}

/* Is it one of the table, and nothing to be done before it? */
static bool kevent_call_is_plain(const struct kevent_call_state *c)
{
	return c->kind && !c->call.flags &&
	       !(read_thread_flags() & KEVENT_CALL_WORK) &&
	       !kevent_call_hidden(c);
}

/* Make the call of @c. */
static long kevent_call_run(struct kevent_call_state *c, bool nowait)
{
	long ret;

	if (unlikely(!kevent_call_is_plain(c)))
		return kevent_call_run_any(c, nowait);
	ret = kevent_call_make(c, c->call.nr, nowait);
	if (likely(ret >= 0))
		return ret;
	if (unlikely(kevent_call_again(ret)))
		return kevent_call_run_any(c, nowait);
	return kevent_call_no_restart(ret);
}

static u32 kevent_call_jump(const struct kevent_call *call, long ret)
{
	if (ret < 0)
		return call->on_error;
	return ret ? call->on_value : call->on_zero;
}

/* put_user() in line */
static int kevent_call_put(struct kevent_call __user *to, s64 ret)
{
	if (can_do_masked_user_access())
		to = masked_user_access_begin(to);
	else if (!user_write_access_begin(to, sizeof(*to)))
		return -EFAULT;
	unsafe_put_user(ret, &to->result, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

/*
 * Run a chain in the current thread, from the entry @run->at on; @run receives how far it
 * came. Returns 0, -EFAULT when the entry @run->at could not be read, or its result not
 * written, or with @nowait -EAGAIN: the call of that entry would block.
 */
int kevent_run_chain(struct kevent_run *run, bool nowait)
{
	struct kevent_call_state c = {
		.queue		= run->queue,
		.compat		= in_compat_syscall(),
	};
	struct kevent_call __user *entry = &run->chain[run->at];
	u32 left = run->nr - run->at, jump;
	int err = -EFAULT;
	long ret = 0;

	while (!kevent_call_read(&c, entry)) {
		ret = kevent_call_run(&c, nowait);
		if (nowait && ret == KEVENT_CALL_ELSEWHERE) {
			err = -EAGAIN;
			break;
		}
		if (kevent_call_put(entry, ret))
			break;
		jump = kevent_call_jump(&c.call, ret);
		if (!jump || jump >= left) {
			err = 0;
			break;
		}
		entry += jump;
		left -= jump;
		/* It has passed a multiple of the slice. */
		if (left / KEVENT_CALL_SLICE !=
		    (left + jump) / KEVENT_CALL_SLICE)
			cond_resched();
	}
	run->at = run->nr - left;
	run->result = ret;
	run->refused = c.refused;
	return err;
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

#endif
