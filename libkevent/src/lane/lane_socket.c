// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Lanes: what goes through the socket, and the descriptors with it
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "api/syscall.h"
#include "lane.h"

union control {
	struct cmsghdr	head;
	char		bytes[CMSG_SPACE(LANE_MAX_FDS * sizeof(int))];
};

int kevent_lane_send_fds(int sock, struct iovec *iov, const int *fds, size_t nr)
{
	union control c;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 1,
			      .msg_control = &c };
	struct cmsghdr *head;

	memset(&c, 0, sizeof(c));
	msg.msg_controllen = (socklen_t)CMSG_SPACE(nr * sizeof(int));
	head = CMSG_FIRSTHDR(&msg);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = (socklen_t)CMSG_LEN(nr * sizeof(int));
	memcpy(CMSG_DATA(head), fds, nr * sizeof(int));
	return (int)kevent_call6(SYS_sendmsg, sock, (long)&msg,
				 MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0);
}

/* The descriptors of @msg, at most @max: it has no room for more. */
static int take_fds(const struct msghdr *msg, int *fds, size_t max)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(msg);
	size_t nr;

	if (!head || head->cmsg_level != SOL_SOCKET ||
	    head->cmsg_type != SCM_RIGHTS)
		return 0;
	nr = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (nr > max)
		nr = max;
	memcpy(fds, CMSG_DATA(head), nr * sizeof(int));
	return (int)nr;
}

int kevent_lane_receive_fds(int sock, int flags, struct iovec *iov, int *fds,
			    size_t max, int *nr)
{
	union control c;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 1,
			      .msg_control = &c };
	long ret;

	/* CMSG_SPACE() would leave room for one more. */
	msg.msg_controllen = max ? (socklen_t)CMSG_LEN(max * sizeof(int)) : 0;
	ret = kevent_call6(SYS_recvmsg, sock, (long)&msg,
			   flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0, 0);
	if (ret <= 0)
		return (int)ret;
	*nr = take_fds(&msg, fds, max);
	if (msg.msg_flags & MSG_CTRUNC)
		*nr = -1;
	return (int)ret;
}

/* As struct statx, STATX_INO and AT_STATX_DONT_SYNC, which older headers lack */
struct identity {
	__u64	__unused0[4];
	__u64	ino;
	__u64	__unused1[12];
	__u32	dev[2];
	__u64	__unused2[14];
};

static_assert(sizeof(struct identity) == 256, "as struct statx");

#define ONLY_INO	0x100
#define DONT_SYNC	0x4000

/* Asks no file system, which may be one that does not answer. */
static bool identify(int fd, struct identity *id)
{
	return !kevent_call6(SYS_statx, fd, (long)"", AT_EMPTY_PATH | DONT_SYNC,
			     ONLY_INO, (long)id, 0);
}

static void close_local(int fd)
{
	kevent_call6(SYS_close, fd, 0, 0, 0, 0, 0);
}

bool kevent_lane_is_anonymous(int fd)
{
	int probe = eventfd(0, EFD_CLOEXEC);
	struct identity id, own;
	bool same;

	same = probe >= 0 && identify(probe, &own) && identify(fd, &id) &&
	       id.ino == own.ino && id.dev[0] == own.dev[0] &&
	       id.dev[1] == own.dev[1];
	if (probe >= 0)
		close_local(probe);
	return same;
}

int kevent_lane_pass_bell(const struct kevent_lane *l, int bell)
{
	/* It also wakes, as any byte does. */
	char byte = 1;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };

	return kevent_lane_send_fds(l->sock, &iov, &bell, 1);
}

static bool put_fd(int *to, int fd)
{
	int none = -1;

	return __atomic_compare_exchange_n(to, &none, fd, 0, __ATOMIC_RELEASE,
					   __ATOMIC_RELAXED);
}

static bool has_fd(const int *fd)
{
	return __atomic_load_n(fd, __ATOMIC_RELAXED) >= 0;
}

/*
 * The first descriptor that comes after the hello is the bell, which two threads may find.
 * Other files are not closed before the lane: that may wait for who has made them.
 */
int kevent_lane_read(struct kevent_lane *l, int flags)
{
	char bytes[256];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	bool wanted = !has_fd(&l->peer_bell) && !has_fd(&l->fd);
	int fd = -1, nr, saved = errno;
	int ret = kevent_lane_receive_fds(l->sock, flags, &iov, &fd, wanted, &nr);

	if (fd >= 0 && !(kevent_lane_is_anonymous(fd) && put_fd(&l->peer_bell, fd)))
		put_fd(&l->fd, fd);
	errno = saved;
	return ret;
}
