// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: calls on one descriptor
 */
#include <limits.h>
#include <string.h>
#include <sys/un.h>
#include <linux/sockios.h>

#include "lane.h"

/* For an offer, with the credentials and the label of its sender in front of it */
#define CONTROL_ROOM	(CMSG_SPACE(3 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)) + \
			 CMSG_SPACE(sizeof(int)) + CMSG_SPACE(256))

void __chk_fail(void) __attribute__((noreturn));

static inline bool is_conn(int fd)
{
	return __builtin_expect(lane_find_kind(fd, CONN) != NULL, 0);
}

static bool recv_one(int fd, void *buf, size_t size, int flags, ssize_t *ret)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };

	return is_conn(fd) && lane_recv(fd, &iov, 1, flags, ret);
}

static bool send_one(int fd, const void *buf, size_t len, int flags, ssize_t *ret)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return is_conn(fd) && lane_send(fd, &iov, 1, flags, ret);
}

/* --- reading ------------------------------------------------------------- */

/* For no bytes, read() and readv() do not wait: recv() does. */
EXPORT ssize_t read(int fd, void *buf, size_t size)
{
	ssize_t ret;

	return size && recv_one(fd, buf, size, 0, &ret) ? ret : real()->read(fd, buf, size);
}

ALIAS(__read, read);

EXPORT ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	if (size > room)
		__chk_fail();
	return read(fd, buf, size);
}

static bool has_room(const struct iovec *iov, int nr)
{
	int i = 0;

	while (i < nr && i < IOV_MAX && !iov[i].iov_len)
		i++;
	return i < nr && i < IOV_MAX;
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int nr)
{
	ssize_t ret;

	return is_conn(fd) && has_room(iov, nr) && lane_recv(fd, iov, nr, 0, &ret) ? ret :
	       real()->readv(fd, iov, nr);
}

EXPORT ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	ssize_t ret;

	return recv_one(fd, buf, size, flags, &ret) ? ret : real()->recv(fd, buf, size, flags);
}

EXPORT ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags)
{
	if (size > room)
		__chk_fail();
	return recv(fd, buf, size, flags);
}

/* A peer without a name has none, and not an empty one. */
static void put_name(int fd, struct sockaddr *addr, socklen_t *len)
{
	if (getpeername(fd, addr, len) || *len <= sizeof(sa_family_t))
		*len = 0;
}

EXPORT ssize_t recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *addr,
			socklen_t *len)
{
	ssize_t ret;

	if (!recv_one(fd, buf, size, flags, &ret))
		return real()->recvfrom(fd, buf, size, flags, addr, len);
	if (ret >= 0 && addr && len)
		put_name(fd, addr, len);
	return ret;
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
			      struct sockaddr *addr, socklen_t *len)
{
	if (size > room)
		__chk_fail();
	return recvfrom(fd, buf, size, flags, addr, len);
}

static bool is_offer(int fd)
{
	char name[64], link[32];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, name, sizeof(name));
	return len > 14 && !memcmp(name, "/memfd:kevent-", 14);
}

static void close_passed(struct cmsghdr *c)
{
	char *at;
	int fd;

	for (at = (char *)CMSG_DATA(c); at + sizeof(fd) <= (char *)c + c->cmsg_len;
	     at += sizeof(fd)) {
		memcpy(&fd, at, sizeof(fd));
		real()->close(fd);
	}
}

static struct cmsghdr *find_passed(struct msghdr *msg)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		    c->cmsg_len >= CMSG_LEN(sizeof(int)))
			return c;
	return NULL;
}

/* A peer has offered memory with its first bytes. The program has not asked for it. */
static void drop_offer(struct msghdr *msg)
{
	struct cmsghdr *c = find_passed(msg);
	size_t left, len;
	int fd;

	if (!c)
		return;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (!is_offer(fd))
		return;
	close_passed(c);
	left = (size_t)((char *)msg->msg_control + msg->msg_controllen - (char *)c);
	len = CMSG_ALIGN(c->cmsg_len) < left ? CMSG_ALIGN(c->cmsg_len) : left;
	memmove(c, (char *)c + len, left - len);
	msg->msg_controllen -= len;
	msg->msg_flags &= ~MSG_CTRUNC;
}

/*
 * Do the next bytes of the socket carry an offer? The kernel copies what they carry to this
 * process. It waits for bytes as the call of the program would. Below 0: that call has failed.
 */
static int has_offer(int fd, int flags)
{
	union {
		struct cmsghdr	align;
		char		bytes[CONTROL_ROOM];
	} control;
	struct iovec none = { .iov_len = 0 };
	struct msghdr msg = {
		.msg_iov = &none, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	bool offer;
	int passed;

	flags &= MSG_DONTWAIT;
	if (real()->recvmsg(fd, &msg, flags | MSG_PEEK | MSG_CMSG_CLOEXEC) < 0)
		return -1;
	c = find_passed(&msg);
	if (!c)
		return false;
	memcpy(&passed, CMSG_DATA(c), sizeof(passed));
	offer = is_offer(passed);
	close_passed(c);
	return offer;
}

/* Where an offer does not fit, the kernel says that control data of the peer are lost. */
static ssize_t recv_socket(int fd, struct msghdr *msg, int flags)
{
	int offer = is_conn(fd) && msg->msg_controllen < CONTROL_ROOM ? has_offer(fd, flags) : 0;
	ssize_t ret;

	/* The socket says an error once. */
	if (offer < 0)
		return -1;
	ret = real()->recvmsg(fd, msg, flags);
	if (ret <= 0)
		return ret;
	drop_offer(msg);
	if (offer)
		msg->msg_flags &= ~MSG_CTRUNC;
	return ret;
}

static ssize_t recv_msg(int fd, struct msghdr *msg, int flags)
{
	ssize_t ret;

	if (!lane_recv(fd, msg->msg_iov, (int)msg->msg_iovlen, flags, &ret))
		return recv_socket(fd, msg, flags);
	if (ret < 0)
		return ret;
	if (msg->msg_name)
		put_name(fd, msg->msg_name, &msg->msg_namelen);
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	return ret;
}

/* Control data come through the socket only; the bytes of memory are in front of them. */
EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (!is_conn(fd))
		return real()->recvmsg(fd, msg, flags);
	if (msg->msg_controllen && lane_leave_to_call(fd, READS_REST, flags))
		return -1;
	return recv_msg(fd, msg, flags);
}

/* --- writing ------------------------------------------------------------- */

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	ssize_t ret;

	return send_one(fd, buf, len, 0, &ret) ? ret : real()->write(fd, buf, len);
}

ALIAS(__write, write);

EXPORT ssize_t writev(int fd, const struct iovec *iov, int nr)
{
	ssize_t ret;

	return is_conn(fd) && lane_send(fd, iov, nr, 0, &ret) ? ret :
	       real()->writev(fd, iov, nr);
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	ssize_t ret;

	return send_one(fd, buf, len, flags, &ret) ? ret : real()->send(fd, buf, len, flags);
}

ALIAS(__send, send);

/* With an address the socket has the error; one without bytes is none. */
EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
		      const struct sockaddr *addr, socklen_t addr_len)
{
	ssize_t ret;

	return (!addr || !addr_len) && send_one(fd, buf, len, flags, &ret) ? ret :
	       real()->sendto(fd, buf, len, flags, addr, addr_len);
}

/* A descriptor that goes to another process takes its connection out of memory. */
static int leave_passed(const struct msghdr *msg)
{
	struct cmsghdr *c;
	size_t i, nr;
	int ret = 0, fd;

	for (c = CMSG_FIRSTHDR(msg); c && !ret; c = CMSG_NXTHDR((struct msghdr *)msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		/* The kernel refuses it. */
		if (c->cmsg_len < CMSG_LEN(0) ||
		    c->cmsg_len > (size_t)((char *)msg->msg_control + msg->msg_controllen -
					   (char *)c))
			return 0;
		nr = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < nr && !ret; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			ret = lane_find(fd) ? lane_leave(fd, true) : 0;
		}
	}
	return ret;
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t ret;

	if (lane_settings.paths && msg->msg_controllen && leave_passed(msg))
		return -1;
	if (!is_conn(fd) || (msg->msg_name && msg->msg_namelen))
		return real()->sendmsg(fd, msg, flags);
	if (msg->msg_controllen && lane_leave_to_call(fd, WRITES, flags))
		return -1;
	return lane_send(fd, msg->msg_iov, (int)msg->msg_iovlen, flags, &ret) ? ret :
	       real()->sendmsg(fd, msg, flags);
}

/* --- calls that are made on the socket, after the memory is left --------- */

#define LEAVES(type, name, fd, use, params, args) \
	EXPORT type name params \
	{ \
		if (is_conn(fd) && lane_leave_to_call(fd, use, 0)) \
			return (type)-1; \
		return real()->name args; \
	}

LEAVES(ssize_t, preadv2, fd, READS, (int fd, const struct iovec *iov, int nr, off_t at, int flags),
       (fd, iov, nr, at, flags))
LEAVES(ssize_t, pwritev2, fd, WRITES,
       (int fd, const struct iovec *iov, int nr, off_t at, int flags), (fd, iov, nr, at, flags))
ALIAS(preadv64v2, preadv2);
ALIAS(pwritev64v2, pwritev2);
LEAVES(ssize_t, sendfile, fd, WRITES, (int fd, int in, off_t *at, size_t nr), (fd, in, at, nr))
LEAVES(ssize_t, sendfile64, fd, WRITES, (int fd, int in, off64_t *at, size_t nr),
       (fd, in, at, nr))
LEAVES(int, vdprintf, fd, WRITES, (int fd, const char *format, va_list ap), (fd, format, ap))
LEAVES(int, __vdprintf_chk, fd, WRITES, (int fd, int flag, const char *format, va_list ap),
       (fd, flag, format, ap))
LEAVES(int, aio_read, cb->aio_fildes, READS, (struct aiocb *cb), (cb))
LEAVES(int, aio_read64, cb->aio_fildes, READS, (struct aiocb64 *cb), (cb))
LEAVES(int, aio_write, cb->aio_fildes, WRITES, (struct aiocb *cb), (cb))
LEAVES(int, aio_write64, cb->aio_fildes, WRITES, (struct aiocb64 *cb), (cb))

EXPORT int dprintf(int fd, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = vdprintf(fd, format, ap);
	va_end(ap);
	return ret;
}

EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = __vdprintf_chk(fd, flag, format, ap);
	va_end(ap);
	return ret;
}

EXPORT int recvmmsg(int fd, struct mmsghdr *vec, unsigned int nr, int flags,
		    struct timespec *timeout)
{
	int i, ret;

	if (is_conn(fd) && lane_leave_to_call(fd, READS, flags))
		return -1;
	ret = real()->recvmmsg(fd, vec, nr, flags, timeout);
	for (i = 0; i < ret && is_conn(fd); i++)
		drop_offer(&vec[i].msg_hdr);
	return ret;
}

EXPORT int sendmmsg(int fd, struct mmsghdr *vec, unsigned int nr, int flags)
{
	unsigned int i;

	for (i = 0; lane_settings.paths && i < nr; i++)
		if (vec[i].msg_hdr.msg_controllen && leave_passed(&vec[i].msg_hdr))
			return -1;
	if (is_conn(fd) && lane_leave_to_call(fd, WRITES, flags))
		return -1;
	return real()->sendmmsg(fd, vec, nr, flags);
}

EXPORT ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t nr,
		      unsigned int flags)
{
	if ((is_conn(in) && lane_leave_to_call(in, READS, 0)) ||
	    (is_conn(out) && lane_leave_to_call(out, WRITES, 0)))
		return -1;
	return real()->splice(in, in_at, out, out_at, nr, flags);
}

#define LISTS(name, type) \
	EXPORT int name(int mode, struct type *const list[], int nr, struct sigevent *event) \
	{ \
		int i; \
		\
		for (i = 0; i < nr; i++) \
			if (list[i] && is_conn(list[i]->aio_fildes) && \
			    lane_leave(list[i]->aio_fildes, \
				       list[i]->aio_lio_opcode == LIO_READ)) \
				return -1; \
		return real()->name(mode, list, nr, event); \
	}

LISTS(lio_listio, aiocb)
LISTS(lio_listio64, aiocb64)

/* stdio of libc calls nothing of this object. A socket may be connected afterwards. */
EXPORT FILE *fdopen(int fd, const char *mode)
{
	if (is_conn(fd) && lane_leave(fd, true))
		return NULL;
	return real()->fdopen(fd, mode);
}

ALIAS(_IO_fdopen, fdopen);

/* --- the socket ---------------------------------------------------------- */

static int shut_down(int fd, int how)
{
	struct conn *c = lane_conn(fd, false);
	int ret = 0;

	if (!c)
		return NOT_OURS;
	if (c->state == LOST)
		return -EIO;
	if (how == SHUT_WR) {
		ret = kevent_stream_shutdown(c->s);
		lane_conn_ready(c);
		lane_wake_all();
		return ret;
	}
	ret = how == SHUT_RD ? lane_conn_leave(c, FOREVER) : lane_conn_cut(c, fd);
	return ret ? ret : NOT_OURS;
}

EXPORT int shutdown(int fd, int how)
{
	int ret;

	if (!is_conn(fd) || how < SHUT_RD || how > SHUT_RDWR)
		return real()->shutdown(fd, how);
	lane_lock();
	ret = shut_down(fd, how);
	lane_unlock();
	if (ret == NOT_OURS)
		return real()->shutdown(fd, how);
	if (ret)
		errno = -ret;
	return ret ? -1 : 0;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == SOL_SOCKET &&
	    (name == SO_PEEK_OFF || name == SO_PASSCRED || name == SO_RCVLOWAT) &&
	    is_conn(fd) && lane_leave(fd, false))
		return -1;
	return real()->setsockopt(fd, level, name, value, len);
}

/* FIONREAD: bytes that can be read */
static int count_bytes(int fd, int *nr)
{
	struct conn *c = lane_conn(fd, true);

	if (!c)
		return NOT_OURS;
	lane_glance();
	if (c->state == STREAM) {
		*nr = lane_count(c, fd);
		return 0;
	}
	if (real()->ioctl(fd, FIONREAD, nr))
		*nr = 0;
	*nr += (int)lane_rest_size(c);
	return 0;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	int ret = NOT_OURS;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!is_conn(fd))
		return real()->ioctl(fd, request, arg);
	if (request == FIONREAD) {
		lane_lock();
		ret = count_bytes(fd, arg);
		lane_unlock();
	} else if ((request == SIOCOUTQ || request == FIOASYNC) && lane_leave(fd, false)) {
		return -1;
	}
	return ret == NOT_OURS ? real()->ioctl(fd, request, arg) : ret;
}

/* --- new connections ----------------------------------------------------- */

EXPORT int socket(int domain, int type, int protocol)
{
	int fd = real()->socket(domain, type, protocol);

	if (fd >= 0 && domain == AF_UNIX && lane_settings.paths &&
	    (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM)
		lane_conn_new(fd, NEW);
	return fd;
}

EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	int ret = real()->bind(fd, addr, len);
	struct conn *c;

	if (ret || !is_conn(fd))
		return ret;
	lane_lock();
	c = lane_find_kind(fd, CONN);
	if (c)
		c->bound = lane_is_listed(addr, len);
	lane_unlock();
	return 0;
}

EXPORT int listen(int fd, int backlog)
{
	int ret = real()->listen(fd, backlog);

	if (!ret && is_conn(fd))
		lane_conn_listens(fd);
	return ret;
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int ret = real()->connect(fd, addr, len);

	if (!ret && is_conn(fd))
		lane_conn_connected(fd, lane_is_listed(addr, len));
	return ret;
}

ALIAS(__connect, connect);

/* Before the call: when it returns, another thread may have closed the listener. */
static bool takes_streams(int listener)
{
	const struct conn *c;
	bool takes;

	if (!is_conn(listener))
		return false;
	lane_lock();
	c = lane_find_kind(listener, CONN);
	takes = c && c->bound;
	lane_unlock_only();
	return takes;
}

static int accepted(int fd, bool is_stream)
{
	if (fd >= 0 && is_stream)
		lane_conn_new(fd, CANDIDATE);
	return fd;
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	bool is_stream = takes_streams(fd);

	return accepted(real()->accept(fd, addr, len), is_stream);
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	bool is_stream = takes_streams(fd);

	return accepted(real()->accept4(fd, addr, len, flags), is_stream);
}
