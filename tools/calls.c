// SPDX-License-Identifier: GPL-2.0
/*
 * A system call of kevent in another process, or what the module has for it, as text
 *
 * What the call reads is looked at before the kernel does, what it writes afterwards. Other
 * threads of the process may change either in between.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/time_types.h>

#include "../libkevent/src/api/raw_syscall.h"
#include "calls.h"
#include "errname.h"

#define MOST	8	/* entries of an array that are shown */

enum { INIT, CTL, GET_EVENTS, WAIT, COMMIT, CALL, NR_CALLS };

static const char *const names[NR_CALLS] = {
	[INIT] = "kevent_init", [CTL] = "kevent_ctl",
	[GET_EVENTS] = "kevent_get_events", [WAIT] = "kevent_wait",
	[COMMIT] = "kevent_commit", [CALL] = "kevent_call",
};

/*
 * Copies from the process of a thread; returns whether all of it was there. The file is
 * opened each time, because exec gives the thread other memory.
 */
static bool peek(pid_t tid, __u64 at, void *to, size_t len)
{
	char path[40];
	bool all;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	all = pread(fd, to, len, (off_t)at) == (ssize_t)len;
	close(fd);
	return all;
}

static void say_time(struct call *call, __u64 at)
{
	struct __kernel_timespec ts;

	if (call->at_once)
		say(&call->to, "{0.000000000}");
	else if (!at)
		say(&call->to, "NULL");
	else if (peek(call->tid, at, &ts, sizeof(ts)))
		say(&call->to, "{%lld.%09lld}", (long long)ts.tv_sec,
		    (long long)ts.tv_nsec);
	else
		say(&call->to, "%#llx", (unsigned long long)at);
}

/* An array of entries: requests of command @cmd, or events if @cmd is negative */
static void say_entries(struct call *call, __u64 at, __u64 nr, int cmd)
{
	struct ukevent ev;
	__u64 i;

	say(&call->to, "[");
	for (i = 0; i < nr && i < MOST; i++) {
		if (!peek(call->tid, at + i * sizeof(ev), &ev, sizeof(ev)))
			break;
		if (i)
			say(&call->to, ", ");
		if (cmd < 0)
			say_event(&call->to, &ev);
		else
			say_request(&call->to, (__u32)cmd, &ev);
	}
	say(&call->to, i < nr ? ", ...]" : "]");
}

static void say_changes(struct call *call, const struct kevent_wait_arg *arg)
{
	struct kevent_change change;
	__u32 i;

	say(&call->to, ", changes [");
	for (i = 0; i < arg->nr_changes && i < MOST; i++) {
		if (!peek(call->tid, arg->changes + i * sizeof(change),
			  &change, sizeof(change)))
			break;
		say(&call->to, i ? ", " : "");
		say_command(&call->to, change.cmd);
		say(&call->to, " ");
		say_request(&call->to, change.cmd, &change.uk);
	}
	say(&call->to, i < arg->nr_changes ? ", ...]" : "]");
}

static void say_arg(struct call *call, __u64 at)
{
	struct kevent_wait_arg arg;

	if (!peek(call->tid, at, &arg, sizeof(arg))) {
		say(&call->to, "%#llx", (unsigned long long)at);
		return;
	}
	say(&call->to, "{clock %d, min %u", arg.clockid, arg.min_nr);
	if (arg.min_wait_ns)
		say(&call->to, " for %llu ns",
		    (unsigned long long)arg.min_wait_ns);
	if (arg.sigmask)
		say(&call->to, ", sigmask");
	if (arg.max_running)
		say(&call->to, ", limit %u", arg.max_running);
	if (arg.nr_changes)
		say_changes(call, &arg);
	say(&call->to, "}");
}

static void begin_init(struct call *call)
{
	say(&call->to, "%#llx, %u, ", (unsigned long long)call->arg[0],
	    (__u32)call->arg[1]);
	say_init_flags(&call->to, (__u32)call->arg[2]);
}

static void begin_ctl(struct call *call)
{
	__u32 cmd = (__u32)call->arg[1], nr = (__u32)call->arg[2];

	say(&call->to, "%d, ", (int)call->arg[0]);
	say_command(&call->to, cmd);
	say(&call->to, ", %u, ", nr);
	if (cmd >= KEVENT_CTL_ATTACH)
		say(&call->to, "%#llx", (unsigned long long)call->arg[3]);
	else
		say_entries(call, call->arg[3], nr, (int)cmd);
}

static void begin_get_events(struct call *call)
{
	say(&call->to, "%d, %u, %u, ", (int)call->arg[0], (__u32)call->arg[1],
	    (__u32)call->arg[2]);
	say_time(call, call->arg[3]);
	say(&call->to, ", ");
	say_wait_flags(&call->to, (__u32)call->arg[5]);
}

static void begin_wait(struct call *call)
{
	__u32 flags = (__u32)call->arg[4];

	say(&call->to, "%d, %u, %u, ", (int)call->arg[0], (__u32)call->arg[1],
	    (__u32)call->arg[2]);
	say_time(call, call->arg[3]);
	say(&call->to, ", ");
	say_wait_flags(&call->to, flags);
	if (flags & KEVENT_FLAGS_ARG) {
		say(&call->to, ", ");
		say_arg(call, call->arg[5]);
	}
}

static void begin_commit(struct call *call)
{
	say(&call->to, "%d, %llu", (int)call->arg[0],
	    (unsigned long long)(call->arg[2] << 32 |
				 (__u32)call->arg[1]));
}

/* The first three; ^1 is the result of the entry in front. */
static void say_args(struct call *call, const struct kevent_call *c)
{
	unsigned int n;

	for (n = 0; n < 3; n++) {
		say(&call->to, n ? ", " : "(");
		if (c->flags & KEVENT_CALL_BACK(n))
			say(&call->to, "^%llu", (unsigned long long)c->args[n]);
		else
			say(&call->to, "%#llx", (unsigned long long)c->args[n]);
	}
	say(&call->to, ")");
}

/* The calls of a chain, by their numbers, as they are before the first of them */
static void begin_call(struct call *call)
{
	__u64 i, nr = (__u32)call->arg[2];
	struct kevent_call c;

	say(&call->to, "%d, [", (int)call->arg[0]);
	for (i = 0; i < nr && i < MOST; i++) {
		if (!peek(call->tid, call->arg[1] + i * sizeof(c), &c,
			  sizeof(c)))
			break;
		say(&call->to, i ? ", " : "");
		if (c.nr == KEVENT_CALL_BOUND)
			say(&call->to, "bound");
		else
			say(&call->to, "%u", c.nr);
		say_args(call, &c);
	}
	say(&call->to, i < nr ? ", ...], %u" : "], %u", (__u32)nr);
	if (call->arg[3] & KEVENT_CALL_ASYNC)
		say(&call->to, ", ASYNC, %#llx", (unsigned long long)call->arg[4]);
}

/* Which entry was the last, and why its call was not made */
static void say_end(struct call *call, __s64 ret)
{
	__u64 at = (__u64)ret & ~(__u64)KEVENT_CALL_REFUSED;
	struct kevent_call c;

	if (ret == KEVENT_CALL_SUBMITTED) {
		say(&call->to, " = SUBMITTED");
		return;
	}
	say(&call->to, " = %llu", (unsigned long long)at);
	if (at != (__u64)ret &&
	    peek(call->tid, call->arg[1] + at * sizeof(c), &c, sizeof(c)))
		say(&call->to, " refused: -%s", errname((int)-c.result));
}

/* What an ioctl of the module, or of its queue, reads */
union dev_arg {
	struct kevent_dev_init		init;
	struct kevent_dev_ctl		ctl;
	struct kevent_dev_get		get;
	struct kevent_dev_wait		wait;
	struct kevent_dev_commit	commit;
};

static void set_args(struct call *call, unsigned int nr, __u64 a, __u64 b, __u64 c,
		     __u64 d, __u64 e, __u64 f)
{
	call->nr = nr;
	call->active = true;
	memcpy(call->arg, (__u64[]){ a, b, c, d, e, f }, sizeof(call->arg));
}

/* An ioctl as the system call */
static void from_ioctl(struct call *call, const __u64 arg[6])
{
	const __u32 request = (__u32)arg[1];
	union dev_arg a;

	if (_IOC_TYPE(request) != _IOC_TYPE(KEVENT_IOC_INIT) ||
	    _IOC_SIZE(request) > sizeof(a) ||
	    !peek(call->tid, arg[2], &a, _IOC_SIZE(request)))
		return;
	switch (request) {
	case KEVENT_IOC_INIT:
		set_args(call, INIT, a.init.ring, a.init.ring_size, a.init.flags, 0, 0, 0);
		break;
	case KEVENT_IOC_CTL:
		set_args(call, CTL, arg[0], a.ctl.cmd, a.ctl.num, a.ctl.arg, 0, 0);
		break;
	case KEVENT_IOC_GET_EVENTS:
		set_args(call, GET_EVENTS, arg[0], a.get.min_nr, a.get.max_nr,
			 a.get.timeout, a.get.buf, a.get.flags);
		break;
	case KEVENT_IOC_WAIT:
		set_args(call, WAIT, arg[0], a.wait.num, a.wait.old_kidx,
			 a.wait.timeout, a.wait.flags, a.wait.arg);
		break;
	case KEVENT_IOC_COMMIT:
		set_args(call, COMMIT, arg[0], (__u32)a.commit.uidx,
			 a.commit.uidx >> 32, 0, 0, 0);
		break;
	}
}

static bool is_queue(pid_t tid, int fd)
{
	static const char queue[] = "anon_inode:[kevent]";
	char path[48], name[sizeof(queue)];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	return readlink(path, name, sizeof(name)) == sizeof(queue) - 1 &&
	       !memcmp(name, queue, sizeof(queue) - 1);
}

/* A wait of a queue of the module without a span of time */
static void from_lseek(struct call *call, const __u64 arg[6])
{
	if (!is_queue(call->tid, (int)arg[0]))
		return;
	set_args(call, WAIT, arg[0], arg[1] >> 32 & INT_MAX, (__u32)arg[1], 0, 0, 0);
	call->at_once = (__u32)arg[2] == SEEK_SET;
}

static void find_call_of(struct call *call, __u64 nr, const __u64 arg[6])
{
	call->active = false;
	call->at_once = false;
	if (nr == SYS_ioctl)
		from_ioctl(call, arg);
	else if (nr == SYS_lseek)
		from_lseek(call, arg);
	else if (nr >= __NR_kevent_init && nr - __NR_kevent_init < NR_CALLS)
		set_args(call, (unsigned int)(nr - __NR_kevent_init), arg[0], arg[1],
			 arg[2], arg[3], arg[4], arg[5]);
}

void call_begins(struct call *call, __u64 nr, const __u64 arg[6])
{
	static void (*const begin[NR_CALLS])(struct call *call) = {
		[INIT] = begin_init, [CTL] = begin_ctl,
		[GET_EVENTS] = begin_get_events, [WAIT] = begin_wait,
		[COMMIT] = begin_commit, [CALL] = begin_call,
	};

	find_call_of(call, nr, arg);
	if (!call->active)
		return;
	call->to = (struct text){ call->text, sizeof(call->text) };
	say(&call->to, "%s(", names[call->nr]);
	begin[call->nr](call);
	say(&call->to, ")");
}

void call_ends(struct call *call, __s64 ret)
{
	/* From lseek(), see KEVENT_SEEK(). */
	if (call->nr == WAIT && ret == -EAGAIN)
		ret = 0;
	if (ret < 0)
		say(&call->to, " = -%s", errname((int)-ret));
	else if (call->nr == CALL)
		say_end(call, ret);
	else
		say(&call->to, " = %lld", (long long)ret);
	if (ret <= 0)
		return;
	/* Entries at the front of the array: handed back, or failed */
	if (call->nr == CTL && call->arg[1] < KEVENT_CTL_READY)
		say(&call->to, " ");
	if (call->nr == CTL && call->arg[1] < KEVENT_CTL_READY)
		say_entries(call, call->arg[3], (__u64)ret, -1);
	if (call->nr == GET_EVENTS) {
		say(&call->to, " ");
		say_entries(call, call->arg[4], (__u64)ret, -1);
	}
}
