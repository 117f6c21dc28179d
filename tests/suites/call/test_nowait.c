// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous chains, call by call: what is made in the caller, and what is left to a
 * serving thread
 *
 *	check_made()	the call is over when kevent_call() returns
 *	check_left()	nothing has happened then; a server makes the call, whose
 *			result is that of the ordinary call
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "aio.h"
#include "uffd.h"

#define SHM	"/dev/shm"	/* a tmpfs */

static struct kevent_call entry4(uint32_t nr, uint64_t a, uint64_t b,
				 uint64_t c, uint64_t d)
{
	struct kevent_call call = entry(nr, a, b, c);

	call.args[3] = d;
	return call;
}

#define ENTRY4(nr, a, b, c, d)						\
	entry4(nr, KEVENT_ARG(a), KEVENT_ARG(b), KEVENT_ARG(c),		\
	       KEVENT_ARG(d))

/* Returns the result. */
static int64_t make(struct queue *q, struct kevent_call c)
{
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	return c.result;
}

static int64_t leave(struct queue *q, struct kevent_call c)
{
	struct ukevent ev;

	MUST_EQ(submit(q->fd, &c, 1, COOKIE), SUBMITTED);
	CHECK_EQ(c.result, UNMADE);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, c.result);
	return c.result;
}

#define check_made(q, call, want)	CHECK_EQ(make(q, call), want)
#define check_left(q, call, want)	CHECK_EQ(leave(q, call), want)

/* A file of 10 bytes without a name */
static int open_digits(const char *dir, int flags)
{
	int fd = open(dir, O_TMPFILE | O_CLOEXEC | flags, 0600);

	MUST(fd >= 0);
	MUST_EQ(write(fd, "0123456789", 10), 10);
	MUST_EQ(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* The lowest descriptor that is free */
static int free_descriptor(void)
{
	int fd = dup(STDOUT_FILENO);

	MUST(fd >= 0);
	close(fd);
	return fd;
}

/* From now on none is free. Returns the limit until then. */
static struct rlimit use_up_descriptors(void)
{
	struct rlimit none, old;

	MUST_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ (rlim_t)free_descriptor(), old.rlim_max };
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	return old;
}

static void free_descriptors(struct rlimit old)
{
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
}

/* Files */

static void memory_file_is_read_at_its_position(struct queue *q)
{
	int fd = open_digits(SHM, O_RDWR);
	char buf[10];

	check_made(q, ENTRY(SYS_read, fd, buf, 4), 4);
	check_made(q, ENTRY(SYS_read, fd, buf + 4, 10), 6);
	CHECK(!memcmp(buf, "0123456789", 10));
	check_made(q, ENTRY(SYS_read, fd, buf, 4), 0);
	check_made(q, ENTRY4(SYS_pread64, fd, buf, 3, 5), 3);
	CHECK(!memcmp(buf, "567", 3));
	check_made(q, ENTRY(SYS_lseek, fd, -2, SEEK_CUR), 8);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 8);
	close(fd);
}

/* A part of it, as a read that waits for the rest would not return. */
static void read_that_ends_early_is_left(struct queue *q)
{
	char *mem = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_digits(SHM, O_RDWR);

	MUST(mem != MAP_FAILED);
	MUST_EQ(munmap(mem + PAGE, PAGE), 0);
	check_left(q, ENTRY(SYS_read, fd, mem + PAGE - 4, 8), 4);
	CHECK(!memcmp(mem + PAGE - 4, "0123", 4));
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
	munmap(mem, PAGE);
	close(fd);
}

static void bad_reads_fail_as_ever(struct queue *q)
{
	int fd = open_digits(SHM, O_WRONLY), pipe[2], notify;
	char buf[4];

	check_left(q, ENTRY(SYS_read, fd, buf, 4), -EBADF);
	check_left(q, ENTRY4(SYS_pread64, fd, buf, 4, 0), -EBADF);
	close(fd);
	fd = open_digits(SHM, O_RDWR);
	check_made(q, ENTRY(SYS_read, fd, -PAGE, 4), -EFAULT);
	check_left(q, ENTRY4(SYS_pread64, fd, buf, 4, -1), -EINVAL);
	open_blocking_pipe(pipe);
	check_left(q, ENTRY4(SYS_pread64, pipe[0], buf, 4, 0), -ESPIPE);
	/* It has a method that knows nothing of not waiting. */
	notify = inotify_init1(IN_CLOEXEC);
	MUST(notify >= 0);
	check_blocks(q, ENTRY(SYS_read, notify, buf, 4));
	close(notify);
	close_pair(pipe);
	close(fd);
}

struct device_reader {
	struct actor	actor;
	atomic_int	stop;
};

static long wants_the_cpu(void *arg)
{
	struct device_reader *other = arg;

	while (!atomic_load(&other->stop))
		;
	return 0;
}

#define DEVICE_BYTES	(64u << 20)

/* A read of a device has as much as one that waits, though others want the CPU. */
static void no_part_of_a_device_is_read(struct queue *q)
{
	char *to = mmap(NULL, DEVICE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct kevent_call c = ENTRY(SYS_read, fd, to, DEVICE_BYTES);
	struct device_reader other = {};
	cpu_set_t old, one;
	struct ukevent ev;

	MUST(to != MAP_FAILED && fd >= 0);
	MUST_EQ(sched_getaffinity(0, sizeof(old), &old), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	MUST_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	start_actor(&other.actor, wants_the_cpu, &other);
	if (submit(q->fd, &c, 1, COOKIE) == SUBMITTED) {
		CHECK_EQ(serve(q->fd, 1, 0), 1);
		MUST_EVENT(q, &ev);
	}
	CHECK_EQ(c.result, DEVICE_BYTES);
	atomic_store(&other.stop, 1);
	join_actor(&other.actor, PATIENCE_MS);
	MUST_EQ(sched_setaffinity(0, sizeof(old), &old), 0);
	munmap(to, DEVICE_BYTES);
	close(fd);
}

/* What is read is made up then, which may take long. */
static void files_of_proc_are_read_by_servers(struct queue *q)
{
	int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
	char buf[6];

	MUST(fd >= 0);
	check_left(q, ENTRY(SYS_read, fd, buf, 5), 5);
	CHECK(!memcmp(buf, "Linux", 5));
	check_left(q, ENTRY4(SYS_pread64, fd, buf, 5, 1), 5);
	CHECK(!memcmp(buf, "inux ", 5));
	close(fd);
}

struct reader {
	struct actor	actor;
	int		fd;
	char		*page;
};

static long read_into_page(void *arg)
{
	struct reader *r = arg;

	return read(r->fd, r->page, 4);
}

/* A thread reads into a page that does not come, and has the lock of the position. */
static int start_stuck_reader(struct reader *r, int fd)
{
	int uffd;

	r->fd = fd;
	r->page = map_page();
	uffd = open_uffd(r->page);
	MUST(uffd >= 0);
	start_actor(&r->actor, read_into_page, r);
	await_fault(uffd);
	return uffd;
}

static void nobody_waits_for_a_position(struct queue *q)
{
	int fd = open_digits(SHM, O_RDWR), uffd;
	struct reader r = {};
	char buf[4];

	uffd = start_stuck_reader(&r, fd);
	check_blocks(q, ENTRY(SYS_read, fd, buf, 4));
	check_made(q, ENTRY4(SYS_pread64, fd, buf, 4, 2), 4);
	serve_fault(uffd, r.page);
	join_actor(&r.actor, PATIENCE_MS);
	CHECK_EQ(r.actor.ret, 4);
	check_made(q, ENTRY(SYS_read, fd, buf, 4), 4);
	CHECK(!memcmp(buf, "4567", 4));
	munmap(r.page, PAGE);
	close(uffd);
	close(fd);
}

/* What fstat() and lseek() look at may be elsewhere. */
static void facts_are_asked_for_where_they_are(struct queue *q)
{
	int fd = open_digits(SHM, O_RDWR), pipe[2], task;
	struct stat st = {};

	check_made(q, ENTRY(SYS_fstat, fd, &st, 0), 0);
	CHECK_EQ(st.st_size, 10);
	check_made(q, ENTRY(SYS_lseek, fd, 0, SEEK_END), 10);
	check_left(q, ENTRY(SYS_lseek, fd, 3, SEEK_DATA), 3);
	check_left(q, ENTRY(SYS_lseek, fd, 3, 77), -EINVAL);
	open_blocking_pipe(pipe);
	check_made(q, ENTRY(SYS_fstat, pipe[0], &st, 0), 0);
	CHECK(S_ISFIFO(st.st_mode));
	check_left(q, ENTRY(SYS_lseek, pipe[0], 0, SEEK_SET), -ESPIPE);
	/* Of these a filesystem that is not local makes up what it says. */
	task = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(task >= 0);
	check_left(q, ENTRY(SYS_fstat, task, &st, 0), 0);
	CHECK(S_ISDIR(st.st_mode));
	close(task);
	task = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	MUST(task >= 0);
	check_left(q, ENTRY(SYS_lseek, task, 1, SEEK_SET), 1);
	close(task);
	close_pair(pipe);
	close(fd);
}

static void calls_without_a_file_fail_at_once(struct queue *q)
{
	static const int at_once[] = {
		SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_connect,
		SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_sendmsg,
		SYS_recvmsg, SYS_pread64, SYS_fstat, SYS_lseek, SYS_close,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(at_once); i++)
		check_made(q, ENTRY(at_once[i], -1, 0, 0), -EBADF);
	check_left(q, ENTRY(SYS_fsync, -1, 0, 0), -EBADF);
	check_left(q, ENTRY(SYS_pwrite64, -1, 0, 0), -EBADF);
}

static void streams_are_written_by_servers(struct queue *q)
{
	int pipe[2], fd = open_digits(SHM, O_RDWR | O_NONBLOCK);

	open_blocking_pipe(pipe);
	check_left(q, ENTRY(SYS_write, pipe[1], "ab", 2), 2);
	CHECK_EQ(fcntl(pipe[1], F_SETFL, O_NONBLOCK), 0);
	check_made(q, ENTRY(SYS_write, pipe[1], "ab", 2), 2);
	/* The flag means nothing for a file like this. */
	check_left(q, ENTRY(SYS_write, fd, "ab", 2), 2);
	close_pair(pipe);
	close(fd);
}

/* The end of a descriptor */

static int linger(int fd)
{
	struct linger l = { 1, 1 };

	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

static void closes_that_wait_for_nobody_are_made(struct queue *q)
{
	int pipe[2], fd, sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(sock >= 0);
	check_made(q, ENTRY(SYS_close, sock, 0, 0), 0);
	CHECK_EQ(fcntl(sock, F_GETFD), -1);
	open_blocking_pipe(pipe);
	check_made(q, ENTRY(SYS_close, pipe[0], 0, 0), 0);
	check_made(q, ENTRY(SYS_close, pipe[1], 0, 0), 0);
	fd = open(SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fd >= 0);
	check_made(q, ENTRY(SYS_close, fd, 0, 0), 0);
	fd = open(SHM "/nowait", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(fd >= 0);
	check_made(q, ENTRY(SYS_close, fd, 0, 0), 0);
	CHECK_EQ(unlink(SHM "/nowait"), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

static void closes_that_may_wait_are_left(struct queue *q)
{
	int fd = open_digits(SHM, O_RDWR), sock;
	struct queue other;

	/* Its data goes with it. */
	check_left(q, ENTRY(SYS_close, fd, 0, 0), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
	fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fd >= 0);
	check_left(q, ENTRY(SYS_close, fd, 0, 0), 0);
	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	check_left(q, ENTRY(SYS_close, fd, 0, 0), 0);
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(sock >= 0);
	MUST_EQ(linger(sock), 0);
	check_left(q, ENTRY(SYS_close, sock, 0, 0), 0);
	fd = eventfd(0, EFD_CLOEXEC);
	MUST(fd >= 0);
	check_left(q, ENTRY(SYS_close, fd, 0, 0), 0);
	/* It has work to do at each close. */
	open_queue(&other, 0);
	check_left(q, ENTRY(SYS_close, other.fd, 0, 0), 0);
	CHECK_EQ(fcntl(other.fd, F_GETFD), -1);
}

/* Sockets */

static void sockets_say_at_once_what_they_can(struct queue *q)
{
	struct iovec iov = { .iov_len = 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int sock[2], pipe[2];
	char buf[8] = "";

	iov.iov_base = buf;
	MUST_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sock), 0);
	check_made(q, ENTRY4(SYS_recvfrom, sock[0], buf, 8, MSG_DONTWAIT),
		   -EAGAIN);
	check_blocks(q, ENTRY(SYS_recvmsg, sock[0], &msg, 0));
	check_made(q, ENTRY(SYS_sendto, sock[1], "abc", 3), 3);
	check_made(q, ENTRY(SYS_recvmsg, sock[0], &msg, 0), 3);
	CHECK(!memcmp(buf, "abc", 3));
	check_made(q, ENTRY4(SYS_sendto, sock[1], "de", 2, MSG_DONTWAIT), 2);
	check_made(q, ENTRY(SYS_recvfrom, sock[0], buf, 8), 2);
	open_blocking_pipe(pipe);
	check_made(q, ENTRY(SYS_recvfrom, pipe[0], buf, 8), -ENOTSOCK);
	check_made(q, ENTRY(SYS_sendto, pipe[1], buf, 8), -ENOTSOCK);
	check_left(q, ENTRY(SYS_accept, pipe[1], 0, 0), -ENOTSOCK);
	close_pair(pipe);
	close_pair(sock);
}

/* A family or a protocol that is not there may be a module, which is asked for. */
static void sockets_that_need_a_module_are_left(struct queue *q)
{
	int sock[2];

	close((int)make(q, ENTRY(SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0)));
	close((int)make(q, ENTRY(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
	close((int)make(q, ENTRY(SYS_socket, AF_INET6, SOCK_DGRAM, IPPROTO_UDP)));
	check_made(q, ENTRY4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, sock), 0);
	close_pair(sock);
	check_left(q, ENTRY(SYS_socket, AF_X25, SOCK_SEQPACKET, 0), -EAFNOSUPPORT);
	check_left(q, ENTRY(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP), -EPROTONOSUPPORT);
	check_left(q, ENTRY(SYS_socket, AF_INET, SOCK_SEQPACKET, 0), -ESOCKTNOSUPPORT);
	check_left(q, ENTRY4(SYS_socketpair, AF_X25, SOCK_SEQPACKET, 0, sock), -EAFNOSUPPORT);
}

/* The sender waits for locks that whoever changes the network has for long. */
static void requests_by_netlink_are_left(struct queue *q)
{
	struct {
		struct nlmsghdr	head;
		struct rtgenmsg	body;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct iovec iov = { &ask, sizeof(ask) };
	struct msghdr msg = { .msg_name = &kernel, .msg_namelen = sizeof(kernel),
			      .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	MUST(fd >= 0);
	check_left(q, ENTRY(SYS_sendmsg, fd, &msg, 0), sizeof(ask));
	close(fd);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	MUST(fd >= 0);
	check_left(q, ENTRY4(SYS_sendto, fd, &ask, sizeof(ask), MSG_DONTWAIT), sizeof(ask));
	close(fd);
}

static void no_part_of_a_message_is_sent(struct queue *q)
{
	int sock[2], sent = 0;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	check_left(q, ENTRY(SYS_sendto, sock[0], "abc", 3), 3);
	close_pair(sock);
	MUST_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sock), 0);
	while (send(sock[0], "abc", 3, MSG_DONTWAIT) == 3)
		sent++;
	CHECK_EQ(errno, EAGAIN);
	check_blocks(q, ENTRY(SYS_sendto, sock[0], "abc", 3));
	for (; sent; sent--)
		MUST_EQ(recv(sock[1], (char [3]){}, 3, MSG_DONTWAIT), 3);
	CHECK_EQ(recv(sock[1], (char [3]){}, 3, MSG_DONTWAIT), -1);
	check_made(q, ENTRY(SYS_sendto, sock[0], "abc", 3), 3);
	close_pair(sock);
}

/* One that waits */
static int open_listener(struct sockaddr_in *at)
{
	int fd = tcp_listener(at);

	MUST_EQ(fcntl(fd, F_SETFL, 0), 0);
	return fd;
}

/* Connections that wait for accept() */
static void connect_all(const struct sockaddr_in *at, int *fd, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		fd[i] = tcp_connect(at);
}

static void connections_that_wait_are_accepted(struct queue *q)
{
	struct sockaddr_in at, from = {};
	int listener = open_listener(&at), fd[3], conn[2], flags, next;
	socklen_t len = sizeof(from);
	struct rlimit limit;

	connect_all(&at, fd, 3);
	conn[0] = (int)make(q, ENTRY(SYS_accept, listener, &from, &len));
	CHECK_EQ(from.sin_family, AF_INET);
	CHECK_EQ(len, sizeof(from));
	CHECK_EQ(fcntl(conn[0], F_GETFD), 0);
	flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	conn[1] = (int)make(q, ENTRY4(SYS_accept4, listener, 0, 0, flags));
	CHECK_EQ(fcntl(conn[1], F_GETFD), FD_CLOEXEC);
	CHECK(fcntl(conn[1], F_GETFL) & O_NONBLOCK);
	check_left(q, ENTRY4(SYS_accept4, listener, 0, 0, 1), -EINVAL);
	limit = use_up_descriptors();
	check_made(q, ENTRY(SYS_accept, listener, 0, 0), -EMFILE);
	free_descriptors(limit);
	/* The one of which there was no descriptor is still there. */
	conn[1] = (int)make(q, ENTRY(SYS_accept, listener, 0, 0));
	CHECK_EQ(fcntl(conn[1], F_GETFD), 0);
	/* A call that fails keeps no descriptor. */
	next = free_descriptor();
	check_made(q, ENTRY(SYS_accept, fd[0], 0, 0), -EINVAL);
	check_blocks(q, ENTRY(SYS_accept, listener, 0, 0));
	CHECK_EQ(free_descriptor(), next);
	close_pair(conn);
	close(listener);
}

static void connects_are_left(struct queue *q)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at;
	int listener = open_listener(&at);

	check_left(q, ENTRY(SYS_connect, fd, &at, sizeof(at)), 0);
	close(fd);
	close(listener);
}

/* Names */

static void bad_names_fail_as_ever(struct queue *q)
{
	static char path[PATH_MAX + 1];
	struct rlimit limit;

	check_made(q, ENTRY(SYS_openat, AT_FDCWD, 8, O_RDONLY), -EFAULT);
	memset(path, '/', PATH_MAX);
	check_made(q, ENTRY(SYS_openat, AT_FDCWD, path, O_RDONLY),
		   -ENAMETOOLONG);
	limit = use_up_descriptors();
	check_made(q, ENTRY(SYS_openat, AT_FDCWD, "/", O_RDONLY), -EMFILE);
	free_descriptors(limit);
}

static void files_that_do_not_exist_are_made_by_servers(struct queue *q)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), SHM "/nowait.%d", getpid());
	fd = (int)leave(q, ENTRY4(SYS_openat, AT_FDCWD, path,
				  O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(unlink(path), 0);
	close(fd);
}

/* A change of any mount makes a look at the cache fail now and then. */
static int make_open(struct queue *q, const char *path, int flags)
{
	struct kevent_call c;
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		c = ENTRY(SYS_openat, AT_FDCWD, path, flags);
		if (submit(q->fd, &c, 1, COOKIE) == 0)
			return (int)c.result;
		MUST_EQ(serve(q->fd, 1, 0), 1);
		MUST_EVENT(q, &ev);
		close((int)c.result);
	}
	return -EAGAIN;
}

/* The flags go where open() would have them. */
static void local_directories_are_opened(struct queue *q)
{
	int fd = make_open(q, SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	MUST(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	CHECK_EQ(make_open(q, SHM, O_WRONLY), -EISDIR);
}

/* A lock is nothing that an open waits for, as it does for a lease. */
static void locked_files_are_opened(struct queue *q)
{
	int fd = open(SHM "/locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600), other;

	MUST(fd >= 0);
	MUST_EQ(flock(fd, LOCK_EX), 0);
	other = make_open(q, SHM "/locked", O_RDONLY | O_CLOEXEC);
	CHECK(other >= 0);
	close(other);
	CHECK_EQ(unlink(SHM "/locked"), 0);
	close(fd);
}

/* It is not known what the files of such a filesystem wait for when they are opened. */
static void files_of_debugfs_are_opened_by_servers(struct queue *q)
{
	int dir = open("/sys/kernel/debug", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	MUST(dir >= 0);
	/* From now on the name is cached. */
	fd = openat(dir, "kevent", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	close(fd);
	CHECK_EQ(leave(q, ENTRY(SYS_openat, dir, "kevent", O_RDONLY)), fd);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	close(fd);
	close(dir);
}

/* Permission */

static int ask_permission(void)
{
	int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);

	if (fd < 0 && errno == ENOSYS)
		note("the kernel has no fanotify");
	else
		MUST(fd >= 0);
	return fd;
}

static void nobody_waits_for_permission(struct queue *q)
{
	uint64_t mask = FAN_OPEN_PERM | FAN_ACCESS_PERM;
	int fd = open_digits(SHM, O_RDWR), fan = ask_permission();
	char buf[4];

	if (fan < 0)
		return;
	/* Of another directory: who may ask about one file may ask about all. */
	MUST_EQ(mkdir(SHM "/asked", 0700), 0);
	MUST_EQ(fanotify_mark(fan, FAN_MARK_ADD, mask, AT_FDCWD, SHM "/asked"), 0);
	check_left(q, ENTRY(SYS_read, fd, buf, 4), 4);
	check_left(q, ENTRY4(SYS_pread64, fd, buf, 4, 0), 4);
	close((int)leave(q, ENTRY(SYS_openat, AT_FDCWD, SHM, O_RDONLY)));
	close(fan);
	check_made(q, ENTRY(SYS_read, fd, buf, 4), 4);
	CHECK_EQ(rmdir(SHM "/asked"), 0);
	close(fd);
}

static const struct test_case cases[] = {
	TEST_EACH(memory_file_is_read_at_its_position),
	TEST_EACH(read_that_ends_early_is_left),
	TEST_EACH(bad_reads_fail_as_ever),
	TEST_EACH(no_part_of_a_device_is_read),
	TEST_EACH(files_of_proc_are_read_by_servers),
	TEST_EACH(nobody_waits_for_a_position),
	TEST_EACH(facts_are_asked_for_where_they_are),
	TEST_EACH(calls_without_a_file_fail_at_once),
	TEST_EACH(streams_are_written_by_servers),
	TEST_EACH(closes_that_wait_for_nobody_are_made),
	TEST_EACH(closes_that_may_wait_are_left),
	TEST_EACH(sockets_say_at_once_what_they_can),
	TEST_EACH(sockets_that_need_a_module_are_left),
	TEST_EACH(requests_by_netlink_are_left),
	TEST_EACH(no_part_of_a_message_is_sent),
	TEST_EACH(connections_that_wait_are_accepted),
	TEST_EACH(connects_are_left),
	TEST_EACH(bad_names_fail_as_ever),
	TEST_EACH(files_that_do_not_exist_are_made_by_servers),
	TEST_EACH(local_directories_are_opened),
	TEST_EACH(locked_files_are_opened),
	TEST_EACH(files_of_debugfs_are_opened_by_servers),
	TEST_EACH(nobody_waits_for_permission),
	{ }
};

const struct test_suite nowait_suite = {
	.name = "nowait",
	.cases = cases,
};
#endif
