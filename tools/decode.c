// SPDX-License-Identifier: GPL-2.0
/*
 * The words of kevent's binary interface, as text
 *
 * Names are those of linux/ukevent.h, without KEVENT_ and what they have in common.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decode.h"

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

struct bit {
	__u32		mask;
	const char	*name;
};

void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(t->at, t->room, fmt, ap);
	va_end(ap);
	if (len < 0 || !t->room)
		return;
	if ((size_t)len >= t->room)
		len = (int)t->room - 1;
	t->at += len;
	t->room -= (size_t)len;
}

/* The names of the bits, and a number for those without; 0 for none */
static void say_bits(struct text *t, const struct bit *bit, size_t nr,
		     __u32 mask)
{
	const char *between = "";

	if (!mask)
		say(t, "0");
	for (; nr--; bit++) {
		if (!(mask & bit->mask))
			continue;
		say(t, "%s%s", between, bit->name);
		between = "|";
		mask &= ~bit->mask;
	}
	if (mask)
		say(t, "%s%#x", between, mask);
}

static void say_name(struct text *t, const char *const *name, size_t nr,
		     __u32 number)
{
	if (number < nr && name[number])
		say(t, "%s", name[number]);
	else
		say(t, "%u", number);
}

void say_type(struct text *t, __u32 type)
{
	static const char *const names[] = {
		[KEVENT_SOCKET] = "SOCKET", [KEVENT_INODE] = "INODE",
		[KEVENT_TIMER] = "TIMER", [KEVENT_POLL] = "POLL",
		[KEVENT_NAIO] = "NAIO", [KEVENT_AIO] = "AIO",
		[KEVENT_PIPE] = "PIPE", [KEVENT_SIGNAL] = "SIGNAL",
		[KEVENT_POSIX_TIMER] = "POSIX_TIMER", [KEVENT_USER] = "USER",
		[KEVENT_PROC] = "PROC", [KEVENT_FUTEX] = "FUTEX",
		[KEVENT_BOUND] = "BOUND",
	};

	say_name(t, names, ARRAY_SIZE(names), type);
}

void say_command(struct text *t, __u32 cmd)
{
	static const char *const names[] = {
		[KEVENT_CTL_ADD] = "ADD", [KEVENT_CTL_REMOVE] = "REMOVE",
		[KEVENT_CTL_MODIFY] = "MODIFY", [KEVENT_CTL_READY] = "READY",
		[KEVENT_CTL_ATTACH] = "ATTACH", [KEVENT_CTL_WAKE_ALL] = "WAKE_ALL",
	};

	say_name(t, names, ARRAY_SIZE(names), cmd);
}

static const struct bit stream_bits[] = {
	{ KEVENT_SOCKET_RECV, "RECV" }, { KEVENT_SOCKET_ACCEPT, "ACCEPT" },
	{ KEVENT_SOCKET_SEND, "SEND" },
	{ KEVENT_SOCKET_EMPTY, "EMPTY" },
	{ KEVENT_POLL_POLLERR, "POLLERR" }, { KEVENT_POLL_POLLHUP, "POLLHUP" }, { KEVENT_POLL_POLLRDHUP, "POLLRDHUP" },
};

static const struct bit poll_bits[] = {
	{ KEVENT_POLL_POLLIN, "POLLIN" }, { KEVENT_POLL_POLLPRI, "POLLPRI" },
	{ KEVENT_POLL_POLLOUT, "POLLOUT" }, { KEVENT_POLL_POLLERR, "POLLERR" },
	{ KEVENT_POLL_POLLHUP, "POLLHUP" },
	{ KEVENT_POLL_POLLRDNORM, "POLLRDNORM" },
	{ KEVENT_POLL_POLLRDBAND, "POLLRDBAND" },
	{ KEVENT_POLL_POLLWRNORM, "POLLWRNORM" },
	{ KEVENT_POLL_POLLWRBAND, "POLLWRBAND" },
	{ KEVENT_POLL_POLLMSG, "POLLMSG" }, { KEVENT_POLL_POLLRDHUP, "POLLRDHUP" },
};

static const struct bit inode_bits[] = {
	{ KEVENT_INODE_CREATE, "CREATE" }, { KEVENT_INODE_REMOVE, "REMOVE" },
	{ KEVENT_INODE_MODIFY, "MODIFY" }, { KEVENT_INODE_ATTRIB, "ATTRIB" },
	{ KEVENT_INODE_RENAME, "RENAME" },
};

static const struct bit timer_bits[] = {
	{ KEVENT_TIMER_FIRED, "FIRED" }, { KEVENT_TIMER_ABSTIME, "ABSTIME" },
	{ KEVENT_TIMER_INTERVAL, "INTERVAL" },
	{ KEVENT_TIMER_CANCEL_ON_SET, "CANCEL_ON_SET" },
	{ KEVENT_TIMER_REALTIME, "REALTIME" },
	{ KEVENT_TIMER_BOOTTIME, "BOOTTIME" }, { KEVENT_TIMER_TAI, "TAI" },
};

static const struct bit posix_timer_bits[] = {
	{ KEVENT_POSIX_TIMER_FIRED, "FIRED" },
};

static const struct bit signal_bits[] = {
	{ KEVENT_SIGNAL_DELIVERY, "DELIVERY" },
};

static const struct bit proc_bits[] = {
	{ KEVENT_PROC_EXIT, "EXIT" }, { KEVENT_PROC_PIDFD, "PIDFD" },
};

static const struct bit futex_bits[] = {
	{ KEVENT_FUTEX_WAKE, "WAKE" }, { KEVENT_FUTEX_PRIVATE, "PRIVATE" },
};

void say_events(struct text *t, __u32 type, __u32 mask)
{
#define OF(bits)	{ bits, ARRAY_SIZE(bits) }
	static const struct {
		const struct bit	*bit;
		size_t			nr;
	} types[] = {
		[KEVENT_SOCKET] = OF(stream_bits), [KEVENT_PIPE] = OF(stream_bits),
		[KEVENT_POLL] = OF(poll_bits), [KEVENT_INODE] = OF(inode_bits),
		[KEVENT_TIMER] = OF(timer_bits),
		[KEVENT_POSIX_TIMER] = OF(posix_timer_bits),
		[KEVENT_SIGNAL] = OF(signal_bits), [KEVENT_PROC] = OF(proc_bits),
		[KEVENT_FUTEX] = OF(futex_bits), [KEVENT_USER] = { NULL, 0 },
	};

	if (type < ARRAY_SIZE(types))
		say_bits(t, types[type].bit, types[type].nr, mask);
	else
		say(t, "%#x", mask);
}

void say_req_flags(struct text *t, __u32 flags)
{
	static const struct bit bits[] = {
		{ KEVENT_REQ_ONESHOT, "ONESHOT" },
		{ KEVENT_REQ_WAKEUP_ALL, "WAKEUP_ALL" }, { KEVENT_REQ_ET, "ET" },
		{ KEVENT_REQ_LAST_CHECK, "LAST_CHECK" },
		{ KEVENT_REQ_HAND_BACK, "HAND_BACK" },
		{ KEVENT_REQ_READY, "READY" }, { KEVENT_REQ_DISPATCH, "DISPATCH" },
		{ KEVENT_REQ_DISABLED, "DISABLED" },
		{ KEVENT_REQ_KEEP_EACH, "KEEP_EACH" },
		{ KEVENT_REQ_STAY_AWAKE, "STAY_AWAKE" },
		{ KEVENT_REQ_HANDOFF, "HANDOFF" },
	};

	say_bits(t, bits, ARRAY_SIZE(bits), flags);
}

void say_ret_flags(struct text *t, __u32 flags)
{
	static const struct bit bits[] = {
		{ KEVENT_RET_BROKEN, "BROKEN" }, { KEVENT_RET_DONE, "DONE" },
	};

	say_bits(t, bits, ARRAY_SIZE(bits), flags);
}

void say_ring_flags(struct text *t, __u32 flags)
{
	static const struct bit bits[] = {
		{ KEVENT_RING_MORE, "MORE" }, { KEVENT_RING_BROKEN, "BROKEN" },
	};

	say_bits(t, bits, ARRAY_SIZE(bits), flags);
}

/* How a watch reports, as "Modes" in kevent(7) has it */
void say_mode(struct text *t, __u32 type, __u32 flags)
{
	if (flags & KEVENT_REQ_ONESHOT)
		say(t, "oneshot");
	else if (flags & KEVENT_REQ_DISPATCH)
		say(t, "dispatch");
	else if (flags & KEVENT_REQ_ET)
		say(t, "edge");
	else if (type == KEVENT_SOCKET || type == KEVENT_PIPE ||
		 type == KEVENT_POLL)
		say(t, "level");
	else
		say(t, "each");
}

void say_wait_flags(struct text *t, __u32 flags)
{
	static const struct bit bits[] = {
		{ KEVENT_FLAGS_ABSTIME, "ABSTIME" }, { KEVENT_FLAGS_ARG, "ARG" },
		{ KEVENT_FLAGS_SERVE, "SERVE" },
	};

	say_bits(t, bits, ARRAY_SIZE(bits), flags);
}

void say_init_flags(struct text *t, __u32 flags)
{
	static const struct bit bits[] = {
		{ KEVENT_INIT_NOCLOEXEC, "NOCLOEXEC" },
		{ KEVENT_INIT_FAIR, "FAIR" },
		{ KEVENT_INIT_REFUSE_LATER, "REFUSE_LATER" },
		{ KEVENT_INIT_REFUSE_CHANGE, "REFUSE_CHANGE" },
		{ KEVENT_INIT_REFUSE_READY, "REFUSE_READY" },
		{ KEVENT_INIT_REFUSE_ATTACH, "REFUSE_ATTACH" },
	};
	__u32 type, refused = flags & 0x0fff0000u;
	const char *between = "|REFUSE(";

	say_bits(t, bits, ARRAY_SIZE(bits), flags & ~refused);
	for (type = 0; type < 12; type++) {
		if (!(refused & KEVENT_INIT_REFUSE(type)))
			continue;
		say(t, "%s", between);
		say_type(t, type);
		between = ",";
	}
	if (refused)
		say(t, ")");
}

/* What the entry is about, as its type names it */
void say_id(struct text *t, const struct ukevent *ev)
{
	say_type(t, ev->type);
	switch (ev->type) {
	case KEVENT_TIMER:
		say(t, " %llu ns", (unsigned long long)ev->id.raw_u64);
		break;
	case KEVENT_FUTEX:
	case KEVENT_USER:
		say(t, " %#llx", (unsigned long long)ev->id.raw_u64);
		break;
	case KEVENT_SIGNAL:
		say(t, " %u", ev->id.raw[0]);
		if (ev->id.raw_u64 & KEVENT_SIGNAL_NOMASK)
			say(t, "|NOMASK");
		if (ev->id.raw[1] & 0x7fffffffu)
			say(t, " of %u", ev->id.raw[1] & 0x7fffffffu);
		break;
	default:
		say(t, " %d", (int)ev->id.raw[0]);
		if (ev->id.raw[1])
			say(t, ",%#x", ev->id.raw[1]);
	}
}

/* What ret_data of a request is read for */
static void say_value(struct text *t, const struct ukevent *ev)
{
	if (ev->type == KEVENT_TIMER && ev->event & KEVENT_TIMER_INTERVAL)
		say(t, " %llu ns", (unsigned long long)ev->ret_data[1] << 32 |
				   ev->ret_data[0]);
	if (ev->type == KEVENT_FUTEX)
		say(t, " expected %#x", ev->ret_data[0]);
}

void say_request(struct text *t, __u32 cmd, const struct ukevent *ev)
{
	say(t, "{");
	say_id(t, ev);
	if (cmd != KEVENT_CTL_REMOVE) {
		say(t, " ");
		say_events(t, ev->type, ev->event);
	}
	if (cmd == KEVENT_CTL_ADD || cmd == KEVENT_CTL_MODIFY) {
		say_value(t, ev);
		say(t, " ");
		say_req_flags(t, ev->req_flags);
		say(t, " user %#llx", (unsigned long long)ev->ptr);
	}
	say(t, "}");
}

/* What happened, as the type has it in ret_data */
static void say_data(struct text *t, const struct ukevent *ev)
{
	const __u32 *data = ev->ret_data;

	switch (ev->type) {
	case KEVENT_SOCKET:
	case KEVENT_PIPE:
	case KEVENT_POLL:
	case KEVENT_INODE:
		say_events(t, ev->type, data[0]);
		if (data[1])
			say(t, " %u", data[1]);
		break;
	case KEVENT_TIMER:
	case KEVENT_POSIX_TIMER:
		say(t, "%llu", (unsigned long long)data[1] << 32 | data[0]);
		break;
	case KEVENT_AIO:
		say(t, "%lld", (long long)((unsigned long long)data[1] << 32 |
					   data[0]));
		break;
	default:
		say(t, "%#x %#x", data[0], data[1]);
	}
}

void say_event(struct text *t, const struct ukevent *ev)
{
	say(t, "{");
	say_id(t, ev);
	say(t, ": ");
	if (ev->ret_flags & KEVENT_RET_BROKEN)
		say(t, "%s", strerror(-(int)ev->ret_data[1]));
	else
		say_data(t, ev);
	if (ev->ret_flags & ~(KEVENT_RET_BROKEN | KEVENT_RET_DONE))
		say_ret_flags(t, ev->ret_flags);
	say(t, " user %#llx}", (unsigned long long)ev->ptr);
}
