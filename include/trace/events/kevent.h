/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kevent

#if !defined(_TRACE_KEVENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_KEVENT_H

#include <linux/tracepoint.h>
#include <linux/types.h>

struct kevent;
struct kevent_queue;

/* The part that all events of a watch share; ready_lock is held, except by kevent_add. */
DECLARE_EVENT_CLASS(kevent_watch,
	TP_PROTO(const struct kevent *ke, u32 ready, u32 nr, bool ring),
	TP_ARGS(ke, ready, nr, ring),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(u64, user)
		__field(u32, type)
		__field(u32, id)
		__field(u32, event)
		__field(u32, req_flags)
		__field(u32, ret_flags)
		__field(u32, ready)
		__field(u32, nr)
		__field(bool, ring)
	),
	TP_fast_assign(
		__entry->queue = ke->queue->ino;
		__entry->user = ke->user;
		__entry->type = ke->type;
		__entry->id = ke->id_low;
		__entry->event = ke->event;
		__entry->req_flags = kevent_req_flags(ke);
		__entry->ret_flags = kevent_is_broken(ke) ? KEVENT_RET_BROKEN : 0;
		__entry->ready = ready;
		__entry->nr = nr;
		__entry->ring = ring;
	),
	TP_printk("queue=%llu type=%u id=%u event=%x req_flags=%x ret_flags=%x ready=%x nr=%u ring=%d user=%llx",
		  __entry->queue, __entry->type, __entry->id, __entry->event,
		  __entry->req_flags, __entry->ret_flags, __entry->ready,
		  __entry->nr, __entry->ring, __entry->user)
);

/* ready: conditions that hold already */
DEFINE_EVENT(kevent_watch, kevent_add,
	TP_PROTO(const struct kevent *ke, u32 ready, u32 nr, bool ring),
	TP_ARGS(ke, ready, nr, ring)
);

/* ring: it went to the ring at once, a hit. Otherwise the watch is queued, a miss. */
DEFINE_EVENT(kevent_watch, kevent_ready,
	TP_PROTO(const struct kevent *ke, u32 ready, u32 nr, bool ring),
	TP_ARGS(ke, ready, nr, ring)
);

/* ring: a call moved it to the ring. Otherwise to a buffer. nr: occurrences */
DEFINE_EVENT(kevent_watch, kevent_deliver,
	TP_PROTO(const struct kevent *ke, u32 ready, u32 nr, bool ring),
	TP_ARGS(ke, ready, nr, ring)
);

/* A consumer has slept, or would have. ret as that of kevent_sleep() */
TRACE_EVENT(kevent_wait,
	TP_PROTO(const struct kevent_queue *q, bool ring, int ret),
	TP_ARGS(q, ring, ret),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(bool, ring)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->queue = q->ino;
		__entry->ring = ring;
		__entry->ret = ret;
	),
	TP_printk("queue=%llu ring=%d ret=%d", __entry->queue, __entry->ring,
		  __entry->ret)
);

#endif /* _TRACE_KEVENT_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
