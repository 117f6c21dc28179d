// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Lanes: sending and receiving
 *
 * A word that the peer writes is loaded once, into a local variable, and checked there. The private
 * half of struct kevent_lane is never made of it without that check.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "api/raw_syscall.h"
#include "lane.h"
#include "rung.h"

/* Messages in the arena begin at multiples of this. */
#define ARENA_UNIT	64U

#define likely(condition)	__builtin_expect(!!(condition), 1)

bool kevent_lane_ring(const struct kevent_lane *l)
{
	const __u64 one = 1;
	long ret;

	if (l->peer_bell >= 0)
		ret = kevent_call6(SYS_write, l->peer_bell, (long)&one,
				   sizeof(one), 0, 0, 0);
	else
		ret = kevent_call6(SYS_sendto, l->sock, (long)&one, 1,
				   MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
	return ret != -ENOMEM && ret != -ENOBUFS;
}

/* Nothing is wrong with the lane; what it is else, the long way finds out. */
static inline bool is_open(const struct kevent_lane *l)
{
	return !__atomic_load_n(&l->stopped, __ATOMIC_ACQUIRE) && l->process &&
	       kevent_process_is(l->process);
}

/*
 * A message that fits into a slot, by a few moves of which two may overlap: a call of memcpy() for
 * a length that varies costs as much as the rest.
 */
static inline void copy_short(void *to, const void *from, __u32 len)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (len >= 16) {
		if (len > 32)
			memcpy(t + 16, f + 16, 16);
		memcpy(t, f, 16);
		memcpy(t + len - 16, f + len - 16, 16);
	} else if (len >= 8) {
		memcpy(t, f, 8);
		memcpy(t + len - 8, f + len - 8, 8);
	} else {
		while (len--)
			t[len] = f[len];
	}
}

/* Not backwards: arena_find() may have skipped a part that was free. */
static void free_up_to(struct kevent_lane_out *out, __u64 end)
{
	if ((__s64)(end - out->freed) > 0)
		out->freed = end;
}

/*
 * How far is the peer? Pairs with the store of "taken" in received(): the peer has
 * read what the slots and the arena had up to there.
 */
static int read_taken(struct kevent_lane *l)
{
	struct kevent_lane_out *out = &l->out;
	__u64 taken = lane_load(&l->peer->taken);

	if (taken - out->taken > out->pos - out->taken)
		return lane_break(l, -EPROTO);
	if (taken == out->pos)
		out->freed = out->end;
	else if (taken != out->taken && out->ends)
		free_up_to(out, out->ends[(taken - 1) & (out->size - 1)]);
	out->taken = taken;
	return 0;
}

/* Where do @len bytes begin in the arena? False: nowhere. */
static bool arena_find(struct kevent_lane_out *out, __u32 len)
{
	__u64 rest, end = out->end;

	if (len <= KEVENT_LANE_INLINE)
		return true;
	rest = out->bytes - (end & (out->bytes - 1));
	if (out->freed == end) {
		/* It is empty, so the message may begin at its start. */
		end += rest & (out->bytes - 1);
		out->freed = end;
		out->end = end;
	} else if (rest < len) {
		end += rest;
	}
	out->begin = end;
	return end + len - out->freed <= out->bytes;
}

static bool has_room(struct kevent_lane_out *out, __u32 len)
{
	return out->pos - out->taken < out->size && arena_find(out, len);
}

/*
 * Says that this side waits for room, and looks once more. Pairs with
 * peer_wants_room() and say_closed() of the peer, which do the opposite.
 */
static int await_room(struct kevent_lane *l, __u32 len)
{
	int ret;

	lane_store(&l->me->room, ++l->out.room);
	lane_full_barrier();
	if (lane_load(&l->peer->closed))
		return -EPIPE;
	ret = read_taken(l);
	if (ret)
		return ret;
	if (!has_room(&l->out, len))
		return -EAGAIN;
	lane_store(&l->me->room, 0);
	return 0;
}

static int make_room(struct kevent_lane *l, __u32 len)
{
	int ret = read_taken(l);

	if (ret)
		return ret;
	return has_room(&l->out, len) ? 0 : await_room(l, len);
}

static int may_send(const struct kevent_lane *l, __u32 len)
{
	const struct kevent_lane_out *out = &l->out;
	int ret = lane_state(l);

	if (ret)
		return ret == -ECONNRESET ? -EPIPE : ret;
	if (!out->size)
		return -EOPNOTSUPP;
	if (len > KEVENT_LANE_INLINE && len > out->bytes)
		return -EMSGSIZE;
	if (lane_gone(l) || lane_load(&l->peer->closed))
		return -EPIPE;
	return 0;
}

int kevent_lane_reserve(struct kevent_lane *l, __u32 len, void **data)
{
	struct kevent_lane_out *out = &l->out;
	int ret = may_send(l, len);

	/* Its place in the arena is that of this one, whether or not there is room. */
	out->reserved = 0;
	if (!ret && !has_room(out, len))
		ret = make_room(l, len);
	if (ret)
		return ret;
	out->reserved = len + 1;
	if (len <= KEVENT_LANE_INLINE)
		*data = out->slot[out->pos & (out->size - 1)].data;
	else
		*data = out->arena + (out->begin & (out->bytes - 1));
	return 0;
}

static __attribute__((noinline)) void ring_sleeper(struct kevent_lane *l,
						   __u64 asleep)
{
	if (!kevent_rung_for(l, asleep)) {
		if (l->out.hold)
			l->out.hold = LANE_RING_DUE;
		else if (!kevent_lane_ring(l))
			return;
		else
			kevent_rung_note(l, asleep);
	}
	l->out.rung = asleep;
}

/* Pairs with kevent_lane_arm() and kevent_lanes_arm() of the peer. */
static inline void wake_sleeper(struct kevent_lane *l)
{
	__u64 asleep;

	lane_full_barrier();
	asleep = lane_load(&l->peer->asleep);
	if (asleep && asleep != l->out.rung)
		ring_sleeper(l, asleep);
}

/* The last step: the message is there with the store of its number. */
static inline void publish(struct kevent_lane *l, struct kevent_lane_slot *slot,
			   __u32 len)
{
	struct kevent_lane_out *out = &l->out;

	if (out->ends)
		out->ends[out->pos & (out->size - 1)] = out->end;
	out->reserved = 0;
	slot->len = len;
	lane_store(&slot->seq, ++out->pos);
	wake_sleeper(l);
}

int kevent_lane_publish(struct kevent_lane *l, __u32 len)
{
	struct kevent_lane_out *out = &l->out;
	struct kevent_lane_slot *slot;
	bool apart = out->reserved > KEVENT_LANE_INLINE + 1;

	if (!kevent_process_is(l->process))
		return -EXDEV;
	if (len >= out->reserved)
		return -EINVAL;
	slot = &out->slot[out->pos & (out->size - 1)];
	if (apart) {
		/* Short after all: what decides is its length. */
		if (len <= KEVENT_LANE_INLINE)
			memcpy(slot->data, out->arena +
			       (out->begin & (out->bytes - 1)), len);
		else
			out->end = out->begin + ((len + ARENA_UNIT - 1) &
						 ~(ARENA_UNIT - 1));
		slot->off = (__u32)out->begin & (out->bytes - 1);
	}
	publish(l, slot, len);
	return 0;
}

static __attribute__((noinline)) int send_any(struct kevent_lane *l,
					      const void *data, __u32 len)
{
	void *to;
	int ret = kevent_lane_reserve(l, len, &to);

	if (ret)
		return ret;
	memcpy(to, data, len);
	return kevent_lane_publish(l, len);
}

int kevent_lane_send(struct kevent_lane *l, const void *data, __u32 len)
{
	struct kevent_lane_out *out = &l->out;
	struct kevent_lane_slot *slot;

	if (!likely(len <= KEVENT_LANE_INLINE &&
		    out->pos - out->taken < out->size && is_open(l) &&
		    !lane_load(&l->peer->closed)))
		return send_any(l, data, len);
	slot = &out->slot[out->pos & (out->size - 1)];
	copy_short(slot->data, data, len);
	publish(l, slot, len);
	return 0;
}

/* Does the peer wait for room that is there now? Pairs with await_room(). */
static __attribute__((noinline)) void peer_wants_room(struct kevent_lane *l)
{
	struct kevent_lane_in *in = &l->in;
	__u64 room;

	if (in->told == in->pos)
		return;
	lane_full_barrier();
	room = lane_load(&l->peer->room);
	if (room && room != in->rung) {
		if (!kevent_lane_ring(l))
			return;
		in->rung = room;
	}
	in->told = in->pos;
}

/*
 * There was no message. Is that all there ever will be? All that the peer has published before it
 * closed the lane or ended is there now.
 */
static int none_left(struct kevent_lane *l)
{
	/* First: a peer that has closed the lane has said so before the socket ended. */
	bool gone = lane_gone(l);
	__u64 closed = lane_load(&l->peer->closed);

	peer_wants_room(l);
	if (!closed && !gone)
		return -EAGAIN;
	if (lane_has_message(l))
		return 0;
	if (!closed)
		return lane_break(l, -ECONNRESET);
	return lane_break(l, closed == l->in.pos + 1 ? -EPIPE : -EPROTO);
}

/* The slot is free again as soon as the peer can see this. */
static inline void received(struct kevent_lane *l)
{
	struct kevent_lane_in *in = &l->in;

	in->empty = 0;
	lane_store(&l->me->taken, ++in->pos);
	if (!(in->pos & (in->size / 2 - 1)))
		peer_wants_room(l);
}

static int copy_long(struct kevent_lane *l, const struct kevent_lane_slot *slot,
		     __u32 len, void *buf, __u32 size)
{
	struct kevent_lane_in *in = &l->in;
	__u32 off = __atomic_load_n(&slot->off, __ATOMIC_RELAXED);

	if (len > in->bytes || off > in->bytes - len)
		return lane_break(l, -EPROTO);
	if (len > size)
		return -EMSGSIZE;
	memcpy(buf, in->arena + off, len);
	return (int)len;
}

static inline int copy_message(struct kevent_lane *l, void *buf, __u32 size)
{
	struct kevent_lane_in *in = &l->in;
	const struct kevent_lane_slot *slot = &in->slot[in->pos & (in->size - 1)];
	__u32 len = __atomic_load_n(&slot->len, __ATOMIC_RELAXED);

	if (!likely(len <= KEVENT_LANE_INLINE))
		return copy_long(l, slot, len, buf, size);
	if (len > size)
		return -EMSGSIZE;
	copy_short(buf, slot->data, len);
	return (int)len;
}

static inline int recv_there(struct kevent_lane *l, void *buf, __u32 size)
{
	int ret = copy_message(l, buf, size);

	if (likely(ret >= 0))
		received(l);
	return ret;
}

static __attribute__((noinline)) int recv_any(struct kevent_lane *l, void *buf,
					      __u32 size)
{
	int ret = lane_state(l);

	if (ret)
		return ret;
	if (!lane_has_message(l)) {
		ret = none_left(l);
		if (ret == -EAGAIN && !l->in.size)
			return -EOPNOTSUPP;
		if (ret)
			return ret;
	}
	return recv_there(l, buf, size);
}

int kevent_lane_recv(struct kevent_lane *l, void *buf, __u32 size)
{
	if (likely(is_open(l) && lane_has_message(l)))
		return recv_there(l, buf, size);
	return recv_any(l, buf, size);
}
