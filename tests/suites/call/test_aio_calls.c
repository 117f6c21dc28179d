// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous chains: what is made in the caller, results, requests that are refused
 *
 * All of it by raw system calls. libkevent's own tests have the same on epoll.
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "aio.h"
#include "serving.h"
#include "uffd.h"

/* In the caller */

static void chain_that_does_not_block_ends_in_the_call(struct queue *q)
{
	struct kevent_call c[] = { GETPPID, GETPPID, GETPPID };

	MUST_EQ(submit(q->fd, c, 3, COOKIE), 2);
	CHECK_EQ(c[2].result, getppid());
	c[1].flags = 1;
	CHECK_EQ(submit(q->fd, c, 3, COOKIE), 1 | REFUSED);
	CHECK_EQ(c[1].result, -EINVAL);
	CHECK_NO_EVENT(q);
}

static void what_is_there_is_read_in_the_caller(struct queue *q)
{
	struct kevent_call c[3];
	char buf[8] = "";
	int fd[2];

	open_blocking_pipe(fd);
	MUST_EQ(write(fd[1], "abc", 3), 3);
	c[0] = ENTRY(SYS_read, fd[0], buf, 8);
	c[1] = ENTRY(SYS_close, fd[1], 0, 0);
	c[2] = ENTRY(SYS_read, fd[0], buf + 3, 1);
	CHECK_EQ(submit(q->fd, c, 3, COOKIE), 2);
	CHECK_EQ(c[0].result, 3);
	CHECK_EQ(c[2].result, 0);
	CHECK(!strcmp(buf, "abc"));
	close(fd[0]);
}

static void names_that_are_cached_are_found(struct queue *q)
{
	char path[] = "/tmp/aio_calls.XXXXXX", buf[8] = "";
	int fd = mkstemp(path);
	struct kevent_call c[4];
	unsigned int tries;
	long ret = 0;

	MUST(fd >= 0);
	MUST_EQ(write(fd, "hello", 5), 5);
	close(fd);
	/* A change of any mount makes a look at the cache fail now and then. */
	for (tries = 0; tries < 100 && ret != 3; tries++) {
		struct ukevent ev;

		c[0] = ENTRY(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		c[1] = ENTRY(SYS_pread64, 0, buf, 8);
		c[2] = ENTRY(SYS_fstat, -1, 0, 0);
		c[3] = ENTRY(SYS_close, -1, 0, 0);
		ret = submit(q->fd, c, 1, COOKIE);
		if (ret == SUBMITTED) {
			MUST_EQ(serve(q->fd, 1, 0), 1);
			MUST_EVENT(q, &ev);
		}
		fd = (int)c[0].result;
		MUST(fd >= 0);
		if (ret == SUBMITTED) {
			close(fd);
			continue;
		}
		c[1].args[0] = fd;
		c[3].args[0] = fd;
		c[2] = GETPPID;
		ret = submit(q->fd, c + 1, 3, COOKIE) + 1;
	}
	CHECK_EQ(ret, 3);
	CHECK_EQ(c[1].result, 5);
	CHECK(!strcmp(buf, "hello"));
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
	c[0] = ENTRY(SYS_openat, AT_FDCWD, "/tmp/aio_calls.none", O_RDONLY);
	ret = submit(q->fd, c, 1, COOKIE);
	if (ret == SUBMITTED)
		CHECK_EQ(serve(q->fd, 1, 0), 1);
	CHECK_EQ(c[0].result, -ENOENT);
	unlink(path);
}

/* The open would wait for the holder of a lease, who is told by a signal. */
static void open_of_a_leased_file_waits(struct queue *q)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/tmp/aio_lease.%d", getpid());
	fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	MUST(fd >= 0);
	MUST(signal(SIGIO, SIG_IGN) != SIG_ERR);
	MUST_EQ(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	check_blocks(q, ENTRY(SYS_openat, AT_FDCWD, path, O_RDONLY));
	CHECK_EQ(fcntl(fd, F_GETLEASE), F_WRLCK);
	MUST_EQ(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	close(fd);
	unlink(path);
}

static void nobody_waits_in_the_caller(struct queue *q)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	char path[40], buf[8];
	struct kevent_call c;
	int fd[2], sock[2], listener, direct;

	open_blocking_pipe(fd);
	check_blocks(q, ENTRY(SYS_read, fd[0], buf, 8));
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	check_blocks(q, ENTRY(SYS_read, sock[0], buf, 8));
	check_blocks(q, ENTRY(SYS_recvfrom, sock[0], buf, 8));
	/* Part of it is there, and stays there. */
	MUST_EQ(write(sock[1], "xy", 2), 2);
	c = ENTRY(SYS_recvfrom, sock[0], buf, 8);
	c.args[3] = MSG_WAITALL;
	check_blocks(q, c);
	c = ENTRY(SYS_recvfrom, sock[0], buf, 8);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, 2);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST_EQ(bind(listener, (void *)&any, sizeof(any)), 0);
	MUST_EQ(listen(listener, 1), 0);
	check_blocks(q, ENTRY(SYS_accept, listener, NULL, NULL));
	snprintf(path, sizeof(path), "/tmp/aio_fifo.%d", getpid());
	MUST_EQ(mkfifo(path, 0600), 0);
	check_blocks(q, ENTRY(SYS_openat, AT_FDCWD, path, O_RDONLY));
	check_blocks(q, ENTRY(SYS_openat, AT_FDCWD, path, O_WRONLY));
	unlink(path);
	direct = open("/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
	MUST(direct >= 0);
	check_blocks(q, ENTRY(SYS_read, direct, buf, 8));
	close(direct);
	close(listener);
	close_pair(sock);
	close_pair(fd);
}

static void files_that_do_not_block_say_so_themselves(struct queue *q)
{
	struct kevent_call c;
	int fd[2], listener;
	char buf[8];

	open_pipe(fd);
	c = ENTRY(SYS_read, fd[0], buf, 8);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, -EAGAIN);
	c = ENTRY(SYS_write, fd[1], "x", 1);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, 1);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	MUST_EQ(listen(listener, 1), 0);
	c = ENTRY(SYS_accept, listener, NULL, NULL);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, -EAGAIN);
	close(listener);
	close_pair(fd);
}

/* A stream whose reader waits for more than a byte: what is there stays there. */
static void lowest_number_of_bytes_is_waited_for(struct queue *q)
{
	char buf[8];
	struct iovec iov = { .iov_base = buf, .iov_len = 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct kevent_call c;
	int sock[2], nr = 4;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(setsockopt(sock[0], SOL_SOCKET, SO_RCVLOWAT, &nr, sizeof(nr)), 0);
	MUST_EQ(write(sock[1], "xyz", 3), 3);
	check_blocks(q, ENTRY(SYS_read, sock[0], buf, 8));
	check_blocks(q, ENTRY(SYS_recvfrom, sock[0], buf, 8));
	check_blocks(q, ENTRY(SYS_recvmsg, sock[0], &msg, 0));
	MUST_EQ(write(sock[1], "z", 1), 1);
	c = ENTRY(SYS_read, sock[0], buf, 8);
	if (submit(q->fd, &c, 1, COOKIE) == SUBMITTED)
		CHECK_EQ(serve(q->fd, 1, 0), 1);
	CHECK_EQ(c.result, 4);
	close_pair(sock);
}

/* Part of what is sent would be a result that no call that waits has. */
static void only_whole_messages_are_sent_in_the_caller(struct queue *q)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
	struct iovec iov = { .iov_base = "xyz", .iov_len = 3 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct kevent_call c;
	unsigned int i;
	int sock[2];

	for (i = 0; i < 2; i++) {
		MUST_EQ(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, sock), 0);
		check_blocks(q, ENTRY(SYS_sendto, sock[0], "xyz", 3));
		check_blocks(q, ENTRY(SYS_sendmsg, sock[0], &msg, 0));
		close_pair(sock);
	}
	MUST_EQ(socketpair(AF_UNIX, types[2] | SOCK_CLOEXEC, 0, sock), 0);
	c = ENTRY(SYS_sendto, sock[0], "xyz", 3);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, 3);
	c = ENTRY(SYS_sendmsg, sock[0], &msg, 0);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, 3);
	close_pair(sock);
}

/* What is wrong with a read is said as an ordinary read says it. */
static void results_are_those_of_ordinary_calls(struct queue *q)
{
	int file = memfd_create("aio", MFD_CLOEXEC);
	int event = eventfd(1, EFD_CLOEXEC), pipe[2];
	char buf[8];
	struct kevent_call c[] = {
		ENTRY(SYS_read, file, buf, 1ul << 62),
		ENTRY(SYS_pread64, file, buf, ~0ul),
		ENTRY(SYS_pread64, file, ~0ul, 8),
		ENTRY(SYS_pread64, file, ~0ul, 0),
		ENTRY(SYS_read, file, buf, 0),
		ENTRY(SYS_read, event, buf, 0),
		ENTRY(SYS_read, event, buf, 7),
		ENTRY(SYS_read, event, ~0ul, 8),
		ENTRY(SYS_read, -1, buf, 8),
		ENTRY(SYS_read, 0, buf, 0),
		ENTRY(SYS_read, 0, ~0ul, 0),
	};
	unsigned int i;
	long ret;

	MUST(file >= 0 && event >= 0);
	MUST_EQ(write(file, "hello", 5), 5);
	MUST_EQ(lseek(file, 0, SEEK_SET), 0);
	open_blocking_pipe(pipe);
	c[9].args[0] = (uint64_t)pipe[0];
	c[10].args[0] = (uint64_t)pipe[0];
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		ret = syscall(c[i].nr, c[i].args[0], c[i].args[1], c[i].args[2],
			      c[i].args[3]);
		if (submit(q->fd, &c[i], 1, COOKIE) == SUBMITTED) {
			struct ukevent ev;

			MUST_EQ(serve(q->fd, 1, 0), 1);
			MUST_EVENT(q, &ev);
		}
		CHECK_EQ(c[i].result, ret < 0 ? -errno : ret);
	}
	close_pair(pipe);
	close(event);
	close(file);
}

/* A file that has a name, so that its position has a lock */
static int open_named(char *path, size_t size)
{
	int fd;

	snprintf(path, size, "/tmp/aio_file.%d", getpid());
	fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	MUST(fd >= 0);
	MUST_EQ(write(fd, "hello", 5), 5);
	MUST_EQ(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* Accesses that inotify tells of */
static unsigned int accesses(int in)
{
	struct inotify_event ev;
	unsigned int nr = 0;

	while (read(in, &ev, sizeof(ev)) == sizeof(ev))
		nr++;
	return nr;
}

/* The same chain again and again is one event, so each is read before the next one. */
static void accesses_are_those_of_ordinary_calls(struct queue *q)
{
	int in = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[40], buf[8];
	int fd = open_named(path, sizeof(path));
	struct kevent_call c;

	MUST(in >= 0);
	MUST(inotify_add_watch(in, path, IN_ACCESS) >= 0);
	c = ENTRY(SYS_read, fd, buf, 8);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, 5);
	CHECK_EQ(accesses(in), 1);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, 0);
	CHECK_EQ(accesses(in), 0);
	close(in);
	close(fd);
	unlink(path);
}

/* Position */

struct reader {
	int	fd;
	void	*page;
};

static long read_page(void *arg)
{
	const struct reader *r = arg;

	return read(r->fd, r->page, PAGE);
}

/* Memory that is not there before fault_in() */
static int take_page_away(void *page)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)page, .len = PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	MUST(fd >= 0);
	MUST_EQ(ioctl(fd, UFFDIO_API, &api), 0);
	MUST_EQ(ioctl(fd, UFFDIO_REGISTER, &reg), 0);
	return fd;
}

static void fault_in(int uffd, void *page)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)page, .len = PAGE },
	};

	MUST_EQ(ioctl(uffd, UFFDIO_ZEROPAGE, &zero), 0);
}

/* A thread that reads for long has the position. */
static void position_is_not_waited_for(struct queue *q)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct reader r = { .page = page };
	char path[40], buf[8];
	struct kevent_call c;
	struct actor a;
	int uffd;

	MUST(page != MAP_FAILED);
	r.fd = open_named(path, sizeof(path));
	uffd = take_page_away(page);
	start_actor(&a, read_page, &r);
	poll_fault(uffd);
	check_blocks(q, ENTRY(SYS_read, r.fd, buf, 8));
	check_blocks(q, ENTRY(SYS_lseek, r.fd, 1, SEEK_SET));
	fault_in(uffd, page);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 5);
	c = ENTRY(SYS_lseek, r.fd, 1, SEEK_SET);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(c.result, 1);
	close(uffd);
	close(r.fd);
	unlink(path);
	munmap(page, PAGE);
}

/* Serving */

static void rest_is_made_by_a_serving_thread(struct queue *q)
{
	struct server s = {};
	struct kevent_call c[3];
	struct ukevent ev;
	unsigned int i;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	for (i = 0; i < 2; i++) {
		c[0] = GETPPID;
		c[1] = ENTRY(SYS_read, fd[0], buf, 8);
		c[2] = GETPPID;
		CHECK_EQ(submit(q->fd, c, 3, COOKIE + i), SUBMITTED);
		CHECK_EQ(c[0].result, getppid());
		CHECK_EQ(c[1].result, UNMADE);
		CHECK_NO_EVENT(q);
		/* The second chain finds it asleep. */
		if (!i)
			start_server(&s, q->fd, 1);
		MUST_EQ(write(fd[1], "abcd", 4), 4);
		MUST_EVENT(q, &ev);
		check_done(&ev, COOKIE + i, 2, getppid());
		CHECK_EQ(c[1].result, 4);
		MUST(sleeps_in(s.actor.tid, __NR_kevent_wait));
	}
	CHECK_NO_EVENT(q);
	close_pair(fd);
	end_servers(q, &s, 1);
	CHECK_EQ(s.actor.ret, 2);
}

static void add_submits_too(struct queue *q)
{
	struct kevent_call c[3] = { GETPPID, GETPPID, GETPPID };
	struct ukevent ev;

	set_chain(&ev, c, 3, COOKIE);
	ev.ret_data[1] = 1;
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	CHECK_EQ(c[0].result, UNMADE);
	CHECK_EQ(c[1].result, getppid());
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 2, getppid());
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static int add_bad(int kq, struct kevent_call *c, uint32_t nr, uint32_t first,
		   uint32_t event, uint32_t flags)
{
	struct ukevent ev;

	set_chain(&ev, c, nr, COOKIE);
	ev.ret_data[1] = first;
	ev.event = event;
	ev.req_flags = flags;
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

static void bad_requests_are_refused(struct queue *q)
{
	struct kevent_call c[2] = { GETPPID, GETPPID };
	int done = KEVENT_AIO_DONE;

	CHECK_EQ(add_bad(q->fd, c, 0, 0, done, 0), -EINVAL);
	CHECK_EQ(add_bad(q->fd, c, KEVENT_CALL_MAX + 1, 0, done, 0), -EINVAL);
	CHECK_EQ(add_bad(q->fd, c, 2, 2, done, 0), -EINVAL);
	CHECK_EQ(add_bad(q->fd, (void *)c + 4, 1, 0, done, 0), -EINVAL);
	CHECK_EQ(add_bad(q->fd, c, 2, 0, 0, 0), -EINVAL);
	CHECK_EQ(add_bad(q->fd, c, 2, 0, done | 2, 0), -EINVAL);
	CHECK_EQ(add_bad(q->fd, c, 2, 0, done, KEVENT_REQ_READY), -EINVAL);
	CHECK_EQ(add_bad(q->fd, c, 2, 0, done, KEVENT_REQ_DISABLED), -EINVAL);
	CHECK_EQ(submit(q->fd, c, 0, 0), -EINVAL);
	CHECK_EQ(submit(q->fd, c, KEVENT_CALL_MAX + 1, 0), -EINVAL);
	CHECK_EQ(submit(0, c, 2, 0), -EINVAL);
	CHECK_EQ(submit(-1, c, 2, 0), -EBADF);
	CHECK_EQ(raw_kevent(__NR_kevent_call, q->fd, c, 2, 2, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(serve(q->fd, 0, 0), -EINVAL);
	CHECK_EQ(serve(-1, 1, 0), -EBADF);
	CHECK_EQ(serve(0, 1, 0), -EINVAL);
	CHECK_EQ(raw_kevent(__NR_kevent_wait, q->fd, 1, 1, NULL,
			    KEVENT_FLAGS_SERVE, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(c[0].result, UNMADE);
	CHECK_EQ(serve(q->fd, 1, 0), 0);
	CHECK_NO_EVENT(q);
}

static void queue_may_refuse_chains(void)
{
	struct kevent_call c = GETPPID;
	int kq = (int)raw_kevent(__NR_kevent_init, NULL, 0,
				 KEVENT_INIT_REFUSE(KEVENT_AIO));

	MUST(kq >= 0);
	CHECK_EQ(submit(kq, &c, 1, COOKIE), -EPERM);
	CHECK_EQ(add_bad(kq, &c, 1, 0, KEVENT_AIO_DONE, 0), -EPERM);
	CHECK_EQ(c.result, UNMADE);
	close(kq);
}

static void cookie_names_one_chain(struct queue *q)
{
	struct kevent_call c[2], d[2];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	c[0] = ENTRY(SYS_read, fd[0], buf, 8);
	d[0] = GETPPID;
	d[1] = ENTRY(SYS_read, fd[0], buf, 8);
	CHECK_EQ(submit(q->fd, c, 1, COOKIE), SUBMITTED);
	CHECK_EQ(submit(q->fd, d, 2, COOKIE), 1 | REFUSED);
	CHECK_EQ(d[0].result, getppid());
	CHECK_EQ(d[1].result, -EEXIST);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, 4);
	CHECK_EQ(submit(q->fd, d, 2, COOKIE), SUBMITTED);
	close_pair(fd);
}

/* What the caller has opened is read, and closed, by a server. */
static void results_are_arguments_in_a_server(struct queue *q)
{
	char got[8], statfs[256];
	struct kevent_call c[] = {
		ENTRY(SYS_openat, AT_FDCWD, "/", O_RDONLY),
		ENTRY(SYS_openat, AT_FDCWD, "/", O_RDONLY),
		ENTRY(SYS_read, -1, got, 8),
		BACK(SYS_fstatfs, 2, statfs, 0),
		BACK(SYS_close, 3, 0, 0),
		BACK(SYS_close, 5, 0, 0),
		BACK(SYS_close, 5, 0, 0),
		BACK(SYS_close, 8, 0, 0),
		GETPPID,
	};
	struct ukevent ev;
	int fd[2];

	open_blocking_pipe(fd);
	c[2].args[0] = (uint64_t)fd[0];
	CHECK_EQ(submit(q->fd, c, ARRAY_SIZE(c), COOKIE), SUBMITTED);
	CHECK(c[1].result >= 0);
	CHECK_EQ(c[2].result, UNMADE);
	MUST_EQ(write(fd[1], "abc", 3), 3);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	/* The last one is not in the chain, and ends it. */
	check_done(&ev, COOKIE, 7 | REFUSED, -EINVAL);
	CHECK_EQ(c[3].result, 0);
	CHECK_EQ(c[4].result, 0);
	CHECK_EQ(c[5].result, 0);
	CHECK_EQ(c[6].result, -EBADF);
	CHECK_EQ(c[8].result, UNMADE);
	CHECK_EQ(fcntl((int)c[0].result, F_GETFD), -1);
	CHECK_EQ(fcntl((int)c[1].result, F_GETFD), -1);
	close_pair(fd);
}

/* A chain whose first entries are in the kernel, and the one to begin with is not */
static void chain_that_wraps_is_efault(struct queue *q)
{
	const uint32_t from = 1000;
	struct kevent_call *c = mmap((void *)4096, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS |
				     MAP_FIXED_NOREPLACE, -1, 0);
	struct ukevent ev;

	MUST(c != MAP_FAILED);
	*c = GETPPID;
	set_chain(&ev, NULL, from + 1, COOKIE);
	ev.id.raw_u64 = KEVENT_ARG(c) - from * sizeof(*c);
	ev.ret_data[1] = from;
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	CHECK_EQ(kevent_error(&ev), -EFAULT);
	CHECK_EQ(c->result, UNMADE);
	munmap(c, 4096);
}

/* Made by a server too: an entry behind the one it begins with takes one in front of that. */
static void added_chain_has_results_of_the_program(struct queue *q)
{
	struct kevent_call c[] = {
		{ .result = -ENXIO },
		{ .result = 0 },
		BACK(SYS_lseek, 2, 0, 0),
		GETPPID,
	};
	struct ukevent ev;
	char first;

	c[1].result = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	set_chain(&ev, c, 4, COOKIE);
	ev.ret_data[1] = 2;
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 3, getppid());
	CHECK_EQ(c[2].result, -ENXIO);
	c[2] = BACK(SYS_read, 1, &first, 1);
	set_chain(&ev, c, 4, COOKIE);
	ev.ret_data[1] = 2;
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	CHECK_EQ(c[2].result, 1);
	close((int)c[1].result);
}

/* Why no server can have the chain is a result like another. */
static void refusal_that_cannot_be_written_is_efault(struct queue *q)
{
	struct kevent_call *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[8];
	int fd[2];

	MUST(c != MAP_FAILED);
	open_blocking_pipe(fd);
	*c = ENTRY(SYS_read, fd[0], buf, 8);
	MUST_EQ(mprotect(c, 4096, PROT_READ), 0);
	CHECK_EQ(submit(q->fd, c, 1, COOKIE), SUBMITTED);
	CHECK_EQ(submit(q->fd, c, 1, COOKIE), -EFAULT);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	munmap(c, 4096);
	close_pair(fd);
}

static const struct test_case cases[] = {
	TEST_EACH(chain_that_does_not_block_ends_in_the_call),
	TEST_EACH(what_is_there_is_read_in_the_caller),
	TEST_EACH(names_that_are_cached_are_found),
	TEST_EACH(nobody_waits_in_the_caller),
	TEST_EACH(open_of_a_leased_file_waits),
	TEST_EACH(files_that_do_not_block_say_so_themselves),
	TEST_EACH(lowest_number_of_bytes_is_waited_for),
	TEST_EACH(only_whole_messages_are_sent_in_the_caller),
	TEST_EACH(results_are_those_of_ordinary_calls),
	TEST_EACH(accesses_are_those_of_ordinary_calls),
	TEST_EACH(position_is_not_waited_for),
	TEST_EACH(rest_is_made_by_a_serving_thread),
	TEST_EACH(results_are_arguments_in_a_server),
	TEST_EACH(added_chain_has_results_of_the_program),
	TEST_EACH(chain_that_wraps_is_efault),
	TEST_EACH(add_submits_too),
	TEST_EACH(bad_requests_are_refused),
	TEST(queue_may_refuse_chains),
	TEST_EACH(cookie_names_one_chain),
	TEST_EACH(refusal_that_cannot_be_written_is_efault),
	{ }
};

const struct test_suite aio_calls_suite = {
	.name = "aio_calls",
	.cases = cases,
};

#endif /* __LP64__ */
