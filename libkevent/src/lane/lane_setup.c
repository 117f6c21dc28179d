// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Lanes: the memory, and how two processes come to share it
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <linux/magic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "api/identity.h"
#include "api/syscall.h"
#include "lane.h"

#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MAX_FDS		3
#define LABEL		256	/* of a process, for a security module */
#define DEFAULT_BYTES	((size_t)64 << 20)

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	0x8U
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD	0x04
#endif

/* What goes through the socket, with the memory and, without SOCKET, two eventfds */
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

/* What kevent_lane_close() leaves answers that it was closed. */
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

/* A system may allow no other memory than what cannot be executed; old kernels know no flag. */
static int new_memory(void)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("kevent-lane", flags | MFD_NOEXEC_SEAL);

	return fd < 0 ? memfd_create("kevent-lane", flags) : fd;
}

static int make_memory(struct kevent_lane *l, const struct shape *s)
{
	l->fd = new_memory();
	if (l->fd < 0 || ftruncate(l->fd, (off_t)s->bytes) ||
	    fcntl(l->fd, F_ADD_SEALS, SEALS))
		return -errno;
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

static bool is_unix_stream(int sock)
{
	socklen_t len = sizeof(int);
	int domain, type;

	return !getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
	       !getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       domain == AF_UNIX && type == SOCK_STREAM;
}

/* Has room for what SO_PASSCRED, SO_PASSPIDFD and SO_PASSSEC of the program add, too. */
union control {
	struct cmsghdr	head;
	char		bytes[CMSG_SPACE(MAX_FDS * sizeof(int)) +
			      CMSG_SPACE(sizeof(struct ucred)) +
			      CMSG_SPACE(sizeof(int)) + CMSG_SPACE(LABEL)];
};

static int send_hello(const struct kevent_lane *l, int sock)
{
	/* The bell of one is the peer_bell of the other. */
	int fds[MAX_FDS] = { l->fd, l->peer_bell, l->bell };
	int nr = l->bell < 0 ? 1 : MAX_FDS;
	struct hello hello = { .magic = KEVENT_LANE_MAGIC,
			       .flags = l->bell < 0 ? KEVENT_LANE_SOCKET : 0 };
	struct iovec iov = { .iov_base = &hello, .iov_len = sizeof(hello) };
	union control c;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = &c };
	struct cmsghdr *head;
	long ret;

	memset(&c, 0, sizeof(c));
	msg.msg_controllen = (socklen_t)CMSG_SPACE((size_t)nr * sizeof(int));
	head = CMSG_FIRSTHDR(&msg);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = (socklen_t)CMSG_LEN((size_t)nr * sizeof(int));
	memcpy(CMSG_DATA(head), fds, (size_t)nr * sizeof(int));
	ret = kevent_call6(SYS_sendmsg, sock, (long)&msg,
			   MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0);
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
	ret = is_unix_stream(sock) ? send_hello(l, sock) : -EINVAL;
	if (!ret) {
		close_fd(&l->fd);
		l->sock = sock;
	}
	errno = saved;
	return ret;
}

/* --- the other side ------------------------------------------------------ */

/* Takes the descriptors of @head, after @nr others, and closes those that are not wanted. */
static int take_part(struct cmsghdr *head, int *fds, int nr)
{
	size_t left = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	const unsigned char *data = CMSG_DATA(head);
	int fd;

	if (head->cmsg_level != SOL_SOCKET ||
	    (head->cmsg_type != SCM_RIGHTS && head->cmsg_type != SCM_PIDFD))
		return nr;
	for (; left; left--, data += sizeof(fd)) {
		memcpy(&fd, data, sizeof(fd));
		if (head->cmsg_type == SCM_RIGHTS && nr++ < MAX_FDS)
			fds[nr - 1] = fd;
		else
			close_fd(&fd);
	}
	return nr;
}

/*
 * Returns how many are in the @len bytes of @c; there is room for MAX_FDS in @fds.
 * CMSG_NXTHDR() of musl has conversions that the compiler warns of.
 */
static int take_fds(union control *c, size_t len, int *fds)
{
	struct cmsghdr *head;
	size_t at = 0;
	int nr = 0;

	while (at + sizeof(*head) <= len) {
		head = (struct cmsghdr *)(void *)(c->bytes + at);
		nr = take_part(head, fds, nr);
		at += CMSG_SPACE(head->cmsg_len - CMSG_LEN(0));
	}
	return nr;
}

static int receive_hello(struct kevent_lane *l, int sock, struct hello *hello)
{
	int fds[MAX_FDS] = { -1, -1, -1 }, nr;
	struct iovec iov = { .iov_base = hello, .iov_len = sizeof(*hello) };
	union control c;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = &c, .msg_controllen = sizeof(c) };
	long ret;

	ret = kevent_call6(SYS_recvmsg, sock, (long)&msg,
			   MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0, 0);
	if (ret <= 0)
		return ret ? (int)ret : -ECONNRESET;
	nr = take_fds(&c, msg.msg_controllen, fds);
	l->fd = fds[0];
	l->bell = fds[1];
	l->peer_bell = fds[2];
	if (ret != sizeof(*hello) || hello->magic != KEVENT_LANE_MAGIC ||
	    hello->__pad0 || (hello->flags & ~KEVENT_LANE_SOCKET))
		return -EPROTO;
	/* This process can have no more descriptors, or there were too many for a lane. */
	if (msg.msg_flags & MSG_CTRUNC)
		return nr < MAX_FDS ? -EMFILE : -EPROTO;
	return nr == (hello->flags & KEVENT_LANE_SOCKET ? 1 : MAX_FDS) ?
	       0 : -EPROTO;
}

/*
 * Memory of tmpfs that can't become shorter: no access to it is SIGBUS, unless memory is
 * not overcommitted, and no access to it waits for another process.
 */
static int check_memory(int fd, size_t max_bytes, size_t *bytes)
{
	struct statfs fs;
	struct stat st;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
	    fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC || fstat(fd, &st))
		return -EPROTO;
	if (st.st_size < (off_t)KEVENT_LANE_HEAD)
		return -EPROTO;
	*bytes = (size_t)st.st_size;
	return (__u64)st.st_size > max_bytes ? -EFBIG : 0;
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
		ret = check_memory(l->fd, max_bytes, &bytes);
	if (!ret)
		ret = read_shape(l->fd, bytes, &s);
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
	if (!(flags & ~KEVENT_LANE_SOCKET) && is_unix_stream(sock))
		ret = attach(l, sock, max_bytes ? max_bytes : DEFAULT_BYTES,
			     flags);
	if (ret)
		forget(l);
	else
		close_fd(&l->fd);
	if (!ret)
		l->sock = sock;
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
