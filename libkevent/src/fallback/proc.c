// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * PROC, by pidfds
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ops.h"
#include "sys.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	(KEVENT_NR_BASE + 434)
#endif
#ifndef P_PIDFD
#define P_PIDFD		3
#endif

/**
 * struct fb_proc - a watch of a process
 * @w:		the watch
 * @pidfd:	of the process
 * @status:	as of waitpid(), if it is @known
 */
struct fb_proc {
	struct fb_watch	w;
	int		pidfd;
	__u32		status;
	bool		known;
};

#define to_proc(watch)	fb_container(watch, struct fb_proc, w)

/* The process id of a pidfd, as the caller sees it, or -errno */
static int fb_proc_pid(int pidfd)
{
	char path[48], text[512], *at;

	if (fb_call(fcntl(pidfd, F_GETFD)) < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pidfd);
	fb_read_file(path, text, sizeof(text));
	at = strstr(text, "\nPid:");
	if (!at)
		return -EBADF;
	return atoi(at + 5) > 0 ? atoi(at + 5) : -ESRCH;
}

/* Filters of sandboxes may refuse it, by any error. This one the call gives itself. */
static bool fb_proc_there(void)
{
	return fb_sys(SYS_pidfd_open, -1, 0) == -EINVAL;
}

static int fb_proc_check(const struct ukevent *uk)
{
	return uk->id.raw[1] || !(uk->event & KEVENT_PROC_EXIT) ? -EINVAL : 0;
}

/* No process has the id 0. */
static __u64 fb_proc_key(const struct ukevent *uk)
{
	int pid;

	if (!(uk->event & KEVENT_PROC_PIDFD))
		return uk->id.raw_u64;
	pid = uk->id.raw[1] ? -EINVAL : fb_proc_pid((int)uk->id.raw[0]);
	return pid > 0 ? (__u64)pid : 0;
}

/*
 * Of a process, not of a thread. The process id may be given away at any time, unless
 * @id is a pidfd that still has it afterwards.
 */
static int fb_proc_open(struct fb_queue *q, struct fb_proc *proc,
			const struct ukevent *uk)
{
	bool by_fd = uk->event & KEVENT_PROC_PIDFD;
	int id = (int)uk->id.raw[0];
	int pid = by_fd ? fb_proc_pid(id) : id, err;
	long fd;

	if (pid <= 0)
		return pid < 0 && by_fd ? pid : -ESRCH;
	fd = fb_sys(SYS_pidfd_open, pid, 0);
	/* Kernels differ in what they say of a thread. */
	if (fd == -ENOENT)
		return -EINVAL;
	proc->w.id = (__u32)pid;
	err = fb_own(q, &proc->pidfd, fd, "pidfd");
	if (!err && by_fd &&
	    (fb_proc_pid(proc->pidfd) != pid || fb_proc_pid(id) != pid))
		return -ESRCH;
	return err;
}

/* The parent may ask, and leaves the zombie as it is. */
static bool fb_proc_wait(struct fb_proc *proc)
{
	siginfo_t info = { .si_pid = 0 };
	__u32 status;

	if (fb_sys(SYS_waitid, P_PIDFD, proc->pidfd, &info,
		   WEXITED | WNOHANG | WNOWAIT, NULL) || !info.si_pid)
		return false;
	status = (__u32)info.si_status;
	if (info.si_code == CLD_EXITED)
		status = (status & 0xff) << 8;
	else if (info.si_code == CLD_DUMPED)
		status |= 0x80;
	proc->status = status;
	return true;
}

/*
 * May the caller read what only a tracer may? An end leaves no namespace of mounts, so
 * then the link says either that, or that it is not for the caller.
 */
static bool fb_proc_readable(const struct fb_proc *proc)
{
	char path[48], c;
	long ret;

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", (__u32)proc->w.id);
	ret = fb_sys(SYS_readlinkat, AT_FDCWD, path, &c, (size_t)1);
	return ret >= 0 || ret == -ENOENT;
}

/*
 * Others may know if they may read it: it is the last number. To those who may not, the
 * kernel says 0. It is asked first: later the process may be no more. By then the number
 * may be that of another one, unless the pidfd still has it.
 */
static bool fb_proc_stat(struct fb_proc *proc)
{
	char path[48], text[1024], *at;

	if (!fb_proc_readable(proc))
		return false;
	snprintf(path, sizeof(path), "/proc/%u/stat", (__u32)proc->w.id);
	fb_read_file(path, text, sizeof(text));
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || (at[2] != 'Z' && at[2] != 'X'))
		return false;
	at = strrchr(at, ' ');
	proc->status = (__u32)strtoul(at + 1, NULL, 10);
	return fb_proc_pid(proc->pidfd) == (int)proc->w.id;
}

/* A new instance of epoll reports the end once more, when the parent may have asked. */
static void fb_proc_find_status(struct fb_proc *proc)
{
	proc->known = proc->known || fb_proc_wait(proc) || fb_proc_stat(proc);
}

static void fb_proc_ended(struct fb_queue *q, struct fb_watch *w)
{
	fb_proc_find_status(to_proc(w));
	fb_report(q, w, KEVENT_PROC_EXIT);
}

/* One report: the exit stays an exit. */
static int fb_proc_register(struct fb_queue *q, struct fb_watch *w)
{
	return fb_register_own(q, to_proc(w)->pidfd, EPOLLIN | EPOLLONESHOT,
			       w->token);
}

static int fb_proc_attach(struct fb_queue *q, struct fb_watch *w,
			  const struct ukevent *uk)
{
	struct fb_proc *proc = to_proc(w);
	int err;

	proc->pidfd = -1;
	err = fb_proc_open(q, proc, uk);
	if (err)
		return err;
	fb_token_get(&q->index, w);
	if (!(fb_poll(proc->pidfd, POLLIN) & POLLIN))
		return fb_proc_register(q, w);
	fb_proc_find_status(proc);
	return KEVENT_PROC_EXIT;
}

static void fb_proc_detach(struct fb_queue *q, struct fb_watch *w)
{
	fb_own_check(&to_proc(w)->pidfd, -1);
	fb_close_fd(&to_proc(w)->pidfd);
}

static void fb_proc_fill(struct fb_queue *q, struct fb_watch *w,
			 struct ukevent *uk)
{
	struct fb_proc *proc = to_proc(w);

	uk->ret_data[0] = proc->known ? proc->status : 0;
	uk->ret_data[1] = proc->known ? KEVENT_PROC_STATUS : 0;
}

const struct fb_ops fb_proc_ops = {
	.size		= sizeof(struct fb_proc),
	.once		= true,
	.events		= KEVENT_PROC_EXIT | KEVENT_PROC_PIDFD,
	.there		= fb_proc_there,
	.check		= fb_proc_check,
	.key		= fb_proc_key,
	.attach		= fb_proc_attach,
	.detach		= fb_proc_detach,
	.fill		= fb_proc_fill,
	.found		= fb_proc_ended,
	.register_one	= fb_proc_register,
};
