// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Memory that goes to another process through a socket
 *
 * A descriptor that a peer passes is checked before it is used, and closed if it was not asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <linux/magic.h>
#include <linux/types.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "api/own.h"
#include "api/raw_syscall.h"
#include "parcel.h"

#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define LABEL		256	/* of a process, for a security module */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	0x8U
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD	0x04
#endif

/* Has room for what SO_PASSCRED, SO_PASSPIDFD and SO_PASSSEC of the program add, too. */
union control {
	struct cmsghdr	head;
	char		bytes[CMSG_SPACE(KEVENT_PARCEL_FDS * sizeof(int)) +
			      CMSG_SPACE(sizeof(struct ucred)) +
			      CMSG_SPACE(sizeof(int)) + CMSG_SPACE(LABEL)];
};

bool kevent_parcel_socket(int sock)
{
	socklen_t len = sizeof(int);
	int domain, type;

	return !getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
	       !getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       domain == AF_UNIX && type == SOCK_STREAM;
}

/* A system may allow no other memory than what cannot be executed; old kernels know no flag. */
static int new_memory(const char *name)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	return fd < 0 ? memfd_create(name, flags) : fd;
}

/* Above RLIMIT_FSIZE ftruncate() sends a signal that ends most programs. */
static bool may_have(size_t bytes)
{
	struct rlimit most;

	return getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur >= bytes;
}

int kevent_parcel_memory(const char *name, size_t bytes)
{
	int fd, ret;

	if (!may_have(bytes))
		return -EFBIG;
	fd = new_memory(name);
	if (fd >= 0)
		fd = kevent_own_place(fd);
	if (fd >= 0 && !ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	ret = -errno;
	if (fd >= 0)
		kevent_close_fd(fd);
	return ret;
}

int kevent_parcel_check(int fd, size_t min, size_t max, size_t *bytes)
{
	struct statfs fs;
	struct stat st;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
	    fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC || fstat(fd, &st))
		return -EPROTO;
	if (st.st_size < (off_t)min)
		return -EPROTO;
	*bytes = (size_t)st.st_size;
	return (__u64)st.st_size > max ? -EFBIG : 0;
}

long kevent_parcel_send(int sock, const struct iovec *iov, size_t nr_iov,
			const int *fds, int nr)
{
	union control c;
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_control = &c };
	struct cmsghdr *head;

	memset(&c, 0, sizeof(c));
	/* Its type differs from libc to libc. */
	msg.msg_iovlen = (__typeof__(msg.msg_iovlen))nr_iov;
	msg.msg_controllen = (socklen_t)CMSG_SPACE((size_t)nr * sizeof(int));
	head = CMSG_FIRSTHDR(&msg);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = (socklen_t)CMSG_LEN((size_t)nr * sizeof(int));
	memcpy(CMSG_DATA(head), fds, (size_t)nr * sizeof(int));
	return kevent_call6(SYS_sendmsg, sock, (long)&msg, MSG_DONTWAIT | MSG_NOSIGNAL,
			    0, 0, 0);
}

/* Takes the descriptors of @head, and closes those that are not wanted. */
static void take_part(struct cmsghdr *head, struct kevent_parcel *p)
{
	size_t left = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	const unsigned char *data = CMSG_DATA(head);
	int fd;

	if (head->cmsg_level != SOL_SOCKET ||
	    (head->cmsg_type != SCM_RIGHTS && head->cmsg_type != SCM_PIDFD))
		return;
	for (; left; left--, data += sizeof(fd)) {
		memcpy(&fd, data, sizeof(fd));
		if (head->cmsg_type == SCM_RIGHTS && p->nr++ < KEVENT_PARCEL_FDS)
			p->fds[p->nr - 1] = fd;
		else if (fd >= 0)
			kevent_close_fd(fd);
	}
}

/* CMSG_NXTHDR() of musl has conversions that the compiler warns of. */
static void take_fds(union control *c, size_t len, struct kevent_parcel *p)
{
	struct cmsghdr *head;
	size_t at = 0;

	while (at + sizeof(*head) <= len) {
		head = (struct cmsghdr *)(void *)(c->bytes + at);
		take_part(head, p);
		at += CMSG_SPACE(head->cmsg_len - CMSG_LEN(0));
	}
}

long kevent_parcel_recv(int sock, const struct iovec *iov, size_t nr_iov,
			struct kevent_parcel *parcel)
{
	union control c;
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_control = &c,
			      .msg_controllen = sizeof(c) };
	long ret;

	*parcel = (struct kevent_parcel){ .fds = { -1, -1, -1 } };
	msg.msg_iovlen = (__typeof__(msg.msg_iovlen))nr_iov;
	ret = kevent_call6(SYS_recvmsg, sock, (long)&msg,
			   MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0, 0);
	if (ret > 0) {
		take_fds(&c, msg.msg_controllen, parcel);
		parcel->cut = msg.msg_flags & MSG_CTRUNC;
	}
	return ret;
}

void kevent_parcel_drop(struct kevent_parcel *parcel)
{
	int i;

	for (i = 0; i < KEVENT_PARCEL_FDS; i++) {
		if (parcel->fds[i] >= 0)
			kevent_close_fd(parcel->fds[i]);
		parcel->fds[i] = -1;
	}
}
