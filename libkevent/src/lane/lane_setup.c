// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Lanes: the memory, and how two processes come to share it
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "api/identity.h"
#include "api/raw_syscall.h"
#include "lane.h"
#include "parcel.h"
#include "rung.h"

#define DEFAULT_BYTES	((size_t)64 << 20)

/* The message through the socket, with the memory and, without SOCKET, two eventfds */
struct hello {
	__u64	magic;
	__u32	flags;
	__u32	__pad0;
};

/* The sizes of a lane, of the creator and of the other side */
struct shape {
	__u32	slots[2];
	__u32	arena[2];
	size_t	bytes;
};

static_assert(sizeof(struct kevent_lane_slot) == 64, "a line of a cache");
static_assert(sizeof(struct kevent_lane_side) == 128, "two lines");
static_assert(sizeof(struct kevent_lane_memory) <= KEVENT_LANE_HEAD,
	      "the slots begin behind it");

static bool is_power(__u32 value, __u32 min, __u32 max)
{
	return !value || (!(value & (value - 1)) && value >= min && value <= max);
}

/* Are the sizes allowed? Sets the bytes that they take. */
static bool shape_ok(struct shape *s)
{
	__u64 bytes = KEVENT_LANE_HEAD;
	int i;

	for (i = 0; i < 2; i++) {
		if (!is_power(s->slots[i], KEVENT_LANE_SLOTS_MIN,
			      KEVENT_LANE_SLOTS_MAX) ||
		    !is_power(s->arena[i], KEVENT_LANE_ARENA_MIN,
			      KEVENT_LANE_ARENA_MAX))
			return false;
		bytes += (__u64)s->slots[i] * sizeof(struct kevent_lane_slot);
		bytes += s->arena[i];
	}
	s->bytes = (size_t)bytes;
	return (s->slots[0] || s->slots[1]) && s->bytes == bytes;
}

static void clear(struct kevent_lane *l)
{
	memset(l, 0, sizeof(*l));
	l->fd = -1;
	l->sock = -1;
	l->bell = -1;
	l->peer_bell = -1;
	l->queue = -1;
}

static void close_fd(int *fd)
{
	int old = *fd;

	*fd = -1;
	if (old >= 0)
		kevent_close_fd(old);
}

static void let_go(struct kevent_lane *l)
{
	if (l->out.ends)
		munmap(l->out.ends, l->out.size * sizeof(*l->out.ends));
	if (l->mem)
		munmap(l->mem, l->bytes);
	l->mem = NULL;
	l->out.ends = NULL;
	close_fd(&l->fd);
	close_fd(&l->sock);
	close_fd(&l->bell);
	close_fd(&l->peer_bell);
}

/* The remnant of kevent_lane_close() answers that it was closed. */
static void forget(struct kevent_lane *l)
{
	let_go(l);
	clear(l);
	lane_break(l, -EPIPE);
}

static void lay_out(struct kevent_lane *l, const struct shape *s)
{
	unsigned char *base = (unsigned char *)l->mem + KEVENT_LANE_HEAD;
	struct kevent_lane_slot *slot[2];
	unsigned char *arena[2];
	__u32 me = l->number, it = !me;

	slot[0] = (struct kevent_lane_slot *)(void *)base;
	slot[1] = slot[0] + s->slots[0];
	arena[0] = (unsigned char *)(slot[1] + s->slots[1]);
	arena[1] = arena[0] + s->arena[0];
	l->me = &l->mem->side[me];
	l->peer = &l->mem->side[it];
	l->out.slot = slot[me];
	l->out.arena = arena[me];
	l->out.size = s->slots[me];
	l->out.bytes = s->arena[me];
	l->in.slot = slot[it];
	l->in.arena = arena[it];
	l->in.size = s->slots[it];
	l->in.bytes = s->arena[it];
}

/* Maps the memory @l->fd, and makes what is private. */
static int map_lane(struct kevent_lane *l, const struct shape *s)
{
	size_t ends = s->slots[l->number] * sizeof(*l->out.ends);
	void *mem;

	mem = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_POPULATE, l->fd, 0);
	if (mem == MAP_FAILED)
		return -errno;
	l->mem = mem;
	l->bytes = s->bytes;
	lay_out(l, s);
	l->process = kevent_process_mark();
	if (!l->out.size || !l->out.bytes)
		return 0;
	mem = mmap(NULL, ends, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -errno;
	l->out.ends = mem;
	return 0;
}

/* --- the creator --------------------------------------------------------- */

static int make_memory(struct kevent_lane *l, const struct shape *s)
{
	int fd = kevent_parcel_memory("kevent-lane", s->bytes);

	if (fd < 0)
		return fd;
	l->fd = fd;
	return 0;
}

static int make_bells(struct kevent_lane *l)
{
	l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->peer_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return l->bell < 0 || l->peer_bell < 0 ? -errno : 0;
}

static int make_lane(struct kevent_lane *l, const struct shape *s, __u32 flags)
{
	int ret = make_memory(l, s);

	if (!ret)
		ret = map_lane(l, s);
	if (!ret && !(flags & KEVENT_LANE_SOCKET))
		ret = make_bells(l);
	if (ret)
		return ret;
	memcpy(l->mem->slots, s->slots, sizeof(s->slots));
	memcpy(l->mem->arena, s->arena, sizeof(s->arena));
	l->mem->magic = KEVENT_LANE_MAGIC;
	return 0;
}

int kevent_lane_create(struct kevent_lane *l,
		       const struct kevent_lane_options *o)
{
	struct shape s = { .slots = { o->send_slots, o->recv_slots },
			   .arena = { o->send_arena, o->recv_arena } };
	int saved = errno, ret;

	clear(l);
	if ((o->flags & ~KEVENT_LANE_SOCKET) || o->__pad0 || !shape_ok(&s))
		ret = -EINVAL;
	else
		ret = make_lane(l, &s, o->flags);
	if (ret)
		forget(l);
	errno = saved;
	return ret;
}

static int send_hello(const struct kevent_lane *l, int sock)
{
	/* The bell of one is the peer_bell of the other. */
	int fds[KEVENT_PARCEL_FDS] = { l->fd, l->peer_bell, l->bell };
	int nr = l->bell < 0 ? 1 : KEVENT_PARCEL_FDS;
	struct hello hello = { .magic = KEVENT_LANE_MAGIC,
			       .flags = l->bell < 0 ? KEVENT_LANE_SOCKET : 0 };
	struct iovec iov = { .iov_base = &hello, .iov_len = sizeof(hello) };
	long ret = kevent_parcel_send(sock, &iov, 1, fds, nr);

	if (ret < 0)
		return (int)ret;
	return ret == sizeof(hello) ? 0 : -EAGAIN;
}

int kevent_lane_pass(struct kevent_lane *l, int sock)
{
	int saved = errno, ret = lane_state(l);

	if (ret)
		return ret;
	if (l->sock >= 0)
		return -EALREADY;
	ret = kevent_parcel_socket(sock) ? send_hello(l, sock) : -EINVAL;
	if (!ret) {
		close_fd(&l->fd);
		l->sock = sock;
		l->origin = kevent_rung_origin(sock);
	}
	errno = saved;
	return ret;
}

/* --- the other side ------------------------------------------------------ */

static int receive_hello(struct kevent_lane *l, int sock, struct hello *hello)
{
	struct iovec iov = { .iov_base = hello, .iov_len = sizeof(*hello) };
	struct kevent_parcel p;
	long ret = kevent_parcel_recv(sock, &iov, 1, &p);

	if (ret <= 0)
		return ret ? (int)ret : -ECONNRESET;
	l->fd = p.fds[0];
	l->bell = p.fds[1];
	l->peer_bell = p.fds[2];
	if (ret != sizeof(*hello) || hello->magic != KEVENT_LANE_MAGIC ||
	    hello->__pad0 || (hello->flags & ~KEVENT_LANE_SOCKET))
		return -EPROTO;
	/* This process can have no more descriptors, or there were too many for a lane. */
	if (p.cut)
		return p.nr < KEVENT_PARCEL_FDS ? -EMFILE : -EPROTO;
	return p.nr == (hello->flags & KEVENT_LANE_SOCKET ? 1 : KEVENT_PARCEL_FDS) ?
	       0 : -EPROTO;
}

static bool is_like(int fd, int probe)
{
	struct kevent_identity id, own;

	return kevent_identify(probe, &own) && kevent_identify(fd, &id) &&
	       id.ino == own.ino && id.dev[0] == own.dev[0] &&
	       id.dev[1] == own.dev[1];
}

/* Of the files without an inode of their own: no device, /proc or pipe */
static int check_bells(const struct kevent_lane *l)
{
	int probe = eventfd(0, EFD_CLOEXEC);
	bool good;

	if (probe < 0)
		return -errno;
	good = is_like(l->bell, probe) && is_like(l->peer_bell, probe);
	close_fd(&probe);
	return good ? 0 : -EPROTO;
}

/*
 * The sizes in the memory are read here and never again. It had @bytes when it was
 * checked: the peer may have made it longer since.
 */
static int read_shape(int fd, size_t bytes, struct shape *s)
{
	struct kevent_lane_memory head;
	struct iovec iov = { .iov_base = &head, .iov_len = sizeof(head) };

	/* Two words are the offset, in each ABI. */
	if (kevent_call6(SYS_preadv, fd, (long)&iov, 1, 0, 0, 0) != sizeof(head) ||
	    head.magic != KEVENT_LANE_MAGIC)
		return -EPROTO;
	memcpy(s->slots, head.slots, sizeof(s->slots));
	memcpy(s->arena, head.arena, sizeof(s->arena));
	return shape_ok(s) && s->bytes <= bytes ? 0 : -EPROTO;
}

/*
 * Has the peer paid for all of it? map_lane() has this process pay for holes, at once and for each
 * connection, where they have cost the peer nothing. It can make holes later.
 */
static bool is_whole(int fd, size_t bytes)
{
	struct stat st;

	return !fstat(fd, &st) && (__u64)st.st_blocks * 512 >= bytes;
}

static int attach(struct kevent_lane *l, int sock, size_t max_bytes, __u32 flags)
{
	struct hello hello = { 0 };
	struct shape s;
	size_t bytes;
	int ret = receive_hello(l, sock, &hello);

	if (ret)
		return ret;
	if (flags & ~hello.flags)
		return -EPERM;
	if (l->bell >= 0)
		ret = check_bells(l);
	if (!ret)
		ret = kevent_parcel_check(l->fd, KEVENT_LANE_HEAD, max_bytes, &bytes);
	if (!ret)
		ret = read_shape(l->fd, bytes, &s);
	if (!ret && !is_whole(l->fd, s.bytes))
		ret = -EPROTO;
	if (!ret)
		ret = map_lane(l, &s);
	return ret;
}

int kevent_lane_attach(struct kevent_lane *l, int sock, size_t max_bytes,
		       __u32 flags)
{
	int saved = errno, ret = -EINVAL;

	clear(l);
	l->number = 1;
	if (!(flags & ~KEVENT_LANE_SOCKET) && kevent_parcel_socket(sock))
		ret = attach(l, sock, max_bytes ? max_bytes : DEFAULT_BYTES,
			     flags);
	if (ret) {
		forget(l);
	} else {
		close_fd(&l->fd);
		l->sock = sock;
		l->origin = kevent_rung_origin(sock);
	}
	errno = saved;
	return ret;
}

/* A copy of the socket in another process would hide its end from a sleeper. */
static void say_closed(struct kevent_lane *l)
{
	lane_store(&l->me->closed, l->out.pos + 1);
	lane_full_barrier();
	if (l->sock >= 0 && (lane_load(&l->peer->asleep) ||
			     lane_load(&l->peer->room)))
		kevent_lane_ring(l);
}

void kevent_lane_close(struct kevent_lane *l)
{
	int saved = errno;

	kevent_lanes_remove(l);
	if (!l->mem) {
		/* Zeros are a lane that was never made, and no descriptors. */
		clear(l);
	} else if (lane_state(l) != -EXDEV) {
		kevent_lane_unwatch(l);
		say_closed(l);
	}
	forget(l);
	errno = saved;
}
