// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams: the memory, and how it comes to the other side
 *
 * Its descriptor goes with the first bytes of the side that has connected. A peer that uses
 * no streams reads the bytes, and the kernel drops the descriptor.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "api/raw_syscall.h"
#include "lane/parcel.h"
#include "stream.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

static_assert(sizeof(struct stream_memory) <= STREAM_HEAD, "the rings begin behind it");

/*
 * Touches memory where lack of it is an error, and no signal. Linux 5.10 does not know how
 * to: there it is touched when it is used.
 */
static bool touch(void *at, size_t bytes)
{
	long ret = kevent_call6(SYS_madvise, (long)at, (long)bytes, MADV_POPULATE_WRITE,
				0, 0, 0);

	return !ret || ret == -EINVAL;
}

/* How far may the ring of this side be written to, if it is to be @end? */
static __u64 extend(struct stream_out *out, __u64 end)
{
	__u64 more = (end + STREAM_STEP - 1) & ~(__u64)(STREAM_STEP - 1);

	if (end > out->reach &&
	    touch(out->ring + out->reach, (size_t)(more - out->reach)))
		out->reach = more;
	return end < out->reach ? end : out->reach;
}

size_t kevent_stream_room(struct kevent_stream *s, size_t want)
{
	struct stream_out *out = &s->out;
	__u64 at, room = STREAM_RING - (out->head - out->taken);

	/* Empty: from the start again, so that few pages are used. */
	if (out->taken == out->head && out->base != out->head) {
		out->base = out->head;
		lane_store(&s->me->base, out->base);
	}
	at = (out->head - out->base) & (STREAM_RING - 1);
	if (room > STREAM_RING - at)
		room = STREAM_RING - at;
	if (room > want)
		room = want;
	return (size_t)(extend(out, at + room) - at);
}

static void lay_out(struct kevent_stream *s, void *mem, __u32 side)
{
	unsigned char *rings = (unsigned char *)mem + STREAM_HEAD;

	s->mem = mem;
	s->side = side;
	s->me = &s->mem->side[side];
	s->peer = &s->mem->side[!side];
	s->out.ring = rings + side * STREAM_RING;
	s->out.reach = STREAM_START;
	s->in.ring = rings + !side * STREAM_RING;
	kevent_pair_own(s);
}

static void *map_stream(int fd)
{
	void *mem = mmap(NULL, STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED)
		return NULL;
	/* The pages that all streams use; so none of these is found to be missing later. */
	if (touch(mem, STREAM_HEAD + STREAM_START) &&
	    touch((char *)mem + STREAM_HEAD + STREAM_RING, STREAM_START))
		return mem;
	munmap(mem, STREAM_BYTES);
	return NULL;
}

void kevent_stream_unmap(struct kevent_stream *s)
{
	kevent_pair_leave(s);
	if (s->mem)
		munmap(s->mem, STREAM_BYTES);
	s->mem = NULL;
	if (s->fd >= 0)
		kevent_close_fd(s->fd);
	s->fd = -1;
}

/* --- the side that offers ------------------------------------------------ */

static bool make(struct kevent_stream *s)
{
	void *mem;

	s->fd = kevent_parcel_memory("kevent-stream", STREAM_BYTES);
	if (s->fd < 0)
		return false;
	mem = map_stream(s->fd);
	if (!mem)
		return false;
	lay_out(s, mem, 0);
	s->page = kevent_pair_for(s->set, s->sock);
	if (s->page)
		s->index = s->page->last++ % PAIR_INDEXES;
	s->mem->magic = STREAM_MAGIC;
	s->mem->index = s->index;
	s->phase = phase_of(1, STREAM_OFFER0);
	s->settled = true;
	lane_store(&s->mem->phase, s->phase);
	return true;
}

long kevent_stream_offer(struct kevent_stream *s, const struct iovec *iov, size_t nr)
{
	int saved = errno, fds[2];
	long ret;

	if (!s->mem && !make(s)) {
		kevent_stream_unmap(s);
		s->offers = false;
		errno = saved;
		return 0;
	}
	errno = saved;
	fds[0] = s->fd;
	fds[1] = s->page ? s->page->fd : -1;
	ret = kevent_parcel_send(s->sock, iov, nr, fds, s->page ? 2 : 1);
	if (ret == -EAGAIN || ret == -EINTR)
		return ret;
	s->offers = false;
	if (ret < 0) {
		/* So many may be under way, or a filter refuses them: the bytes go alone. */
		kevent_stream_unmap(s);
		return 0;
	}
	kevent_close_fd(s->fd);
	s->fd = -1;
	return ret;
}

/* --- the side that accepts ----------------------------------------------- */

/* Accepts the memory @fd, and the page @page if that is one. */
static bool take(struct kevent_stream *s, int fd, int page)
{
	size_t bytes;
	void *mem;

	if (kevent_parcel_check(fd, STREAM_BYTES, STREAM_BYTES, &bytes))
		return false;
	mem = map_stream(fd);
	if (!mem)
		return false;
	lay_out(s, mem, 1);
	if (lane_load(&s->mem->magic) != STREAM_MAGIC)
		return false;
	if (page >= 0)
		s->page = kevent_pair_from(s->set, page);
	s->index = s->page ? lane_load(&s->mem->index) % PAIR_INDEXES : 0;
	lane_store(&s->mem->slot, s->page ? s->page->slot + 1 : 0);
	s->phase = phase_of(1, STREAM_MEMORY);
	s->settled = false;
	/* Not if the peer has gone back on it. */
	if (!stream_swap(&s->mem->phase, phase_of(1, STREAM_OFFER0), s->phase))
		return false;
	s->out.announce = true;
	kevent_pair_enter(s, s->page ? s->page : &s->own, 0);
	return true;
}

long kevent_stream_accept(struct kevent_stream *s, const struct iovec *iov, size_t nr)
{
	struct kevent_parcel p;
	long ret = kevent_parcel_recv(s->sock, iov, nr, &p);
	int saved = errno;

	if (ret <= 0)
		return ret;
	s->asks = false;
	if (p.nr >= 1 && p.nr <= 2 && !p.cut && !take(s, p.fds[0], p.fds[1]))
		kevent_stream_unmap(s);
	kevent_parcel_drop(&p);
	errno = saved;
	return ret;
}
