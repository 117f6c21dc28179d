// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous chains: what is made in the caller, serving threads, cancellation, the
 * end of a process, of a queue and of memory
 *
 * All of it by raw system calls. libkevent's own tests have the same on epoll.
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
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
#include "uffd.h"

/* Nothing is made in the caller. */
static int add_chain(int kq, struct kevent_call *chain, uint32_t nr,
		     uint64_t cookie)
{
	struct ukevent uk;

	set_chain(&uk, chain, nr, cookie);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &uk);
}

struct server {
	struct actor	actor;
	int		kq;
	uint32_t	limit;
};

static long serve_on(void *arg)
{
	struct server *s = arg;

	return serve(s->kq, s->limit, -1);
}

/* Returns when it sleeps. */
static void start_server(struct server *s, int kq, uint32_t limit)
{
	s->kq = kq;
	s->limit = limit;
	start_actor(&s->actor, serve_on, s);
	MUST(sleeps_in(s->actor.tid, __NR_kevent_wait));
}

/* A server leaves when the descriptor that it came through is closed. */
static void end_servers(struct queue *q, struct server *s, unsigned int nr)
{
	int fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	unsigned int i;

	MUST(fd >= 0);
	close(q->fd);
	q->fd = fd;
	for (i = 0; i < nr; i++)
		join_actor(&s[i].actor, PATIENCE_MS);
}

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

static int remove_chain(int kq, uint64_t cookie)
{
	struct ukevent ev;

	set_chain(&ev, NULL, 1, cookie);
	return kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &ev);
}

static void chain_that_waits_is_cancelled(struct queue *q)
{
	struct kevent_call c[2];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd[0], buf, 8);
	CHECK_EQ(submit(q->fd, c, 2, COOKIE), SUBMITTED);
	CHECK_EQ(remove_chain(q->fd, COOKIE + 1), -ENOENT);
	CHECK_EQ(remove_chain(q->fd, COOKIE), 0);
	CHECK_EQ(remove_chain(q->fd, COOKIE), -EALREADY);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	CHECK_EQ(serve(q->fd, 1, 0), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1 | REFUSED, -ECANCELED);
	CHECK_EQ(remove_chain(q->fd, COOKIE), -ENOENT);
	CHECK_EQ(c[1].result, UNMADE);
	CHECK_NO_EVENT(q);
	close_pair(fd);
}

/* The result of the first entry says that a thread has begun with the chain. */
static bool has_begun(const struct kevent_call *c)
{
	return __atomic_load_n(&c->result, __ATOMIC_SEQ_CST) != UNMADE;
}

static void await_begun(const struct kevent_call *c)
{
	uint64_t start = now_ns();

	while (!has_begun(c))
		MUST(patient(start, PATIENCE_MS));
}

/* A server has begun with a chain that reads 8 bytes at last. */
static void start_read(struct queue *q, struct server *s, struct kevent_call *c,
		       int fd, void *buf)
{
	start_server(s, q->fd, 1);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd, buf, 8);
	MUST_EQ(add_chain(q->fd, c, 2, COOKIE), 0);
	await_begun(c);
}

/* It has the last reference when it waits for another chain. */
static void file_that_a_server_used_last_is_closed(struct queue *q)
{
	struct pollfd end = {};
	struct server s = {};
	struct kevent_call c[2];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	start_read(q, &s, c, fd[0], buf);
	MUST(sleeps_in(s.actor.tid, __NR_kevent_wait));
	close(fd[0]);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1, 4);
	end.fd = fd[1];
	CHECK_EQ(poll(&end, 1, PATIENCE_MS), 1);
	CHECK(end.revents & POLLERR);
	close(fd[1]);
	end_servers(q, &s, 1);
}

/* Its close waits until the peer has the bytes, and the peer reads none. */
static void fill_and_linger(int fd)
{
	const struct linger wait = { .l_onoff = 1, .l_linger = 4 * PATIENCE_MS / 1000 };
	static char page[4096];

	MUST_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)), 0);
	while (send(fd, page, sizeof(page), MSG_DONTWAIT) > 0)
		;
	MUST_EQ(errno, EAGAIN);
	MUST_EQ(fcntl(fd, F_SETFL, 0), 0);
}

static void thread_that_blocks_in_what_calls_have_left_makes_room(struct queue *q)
{
	struct server s[2] = {};
	struct kevent_call c[2], other = GETPPID;
	struct ukevent ev;
	char buf[8];
	int fd[2];

	tcp_pair(fd);
	fill_and_linger(fd[0]);
	start_read(q, &s[0], c, fd[0], buf);
	start_server(&s[1], q->fd, 1);
	MUST(sleeps_in(s[0].actor.tid, __NR_kevent_wait));
	/* Not the last reference */
	close(fd[0]);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	/* From here on it has not blocked but in the close. */
	await_begun(&c[1]);
	MUST_EQ(add_chain(q->fd, &other, 1, COOKIE + 1), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE + 1, 0, getppid());
	/* The peer goes, and the close ends. */
	close(fd[1]);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1, 4);
	end_servers(q, s, 2);
}

static void chain_that_runs_is_not_cancelled(struct queue *q)
{
	struct server s = {};
	struct kevent_call c[2];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	start_read(q, &s, c, fd[0], buf);
	CHECK_EQ(remove_chain(q->fd, COOKIE), -EALREADY);
	CHECK_NO_EVENT(q);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1, 4);
	close_pair(fd);
	end_servers(q, &s, 1);
}

/* A server was let go for a chain that is cancelled before it begins: it waits for the next. */
static void chain_is_cancelled_until_it_is_begun(struct queue *q)
{
	struct server s = { .kq = q->fd, .limit = 1 };
	struct kevent_call c[2] = { GETPPID, GETPPID };
	struct ukevent ev;

	CHECK(start_in_window(&s.actor, "idle", serve_on, &s));
	MUST_EQ(add_chain(q->fd, &c[0], 1, COOKIE), 0);
	CHECK_EQ(remove_chain(q->fd, COOKIE), 0);
	window_release();
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, REFUSED, -ECANCELED);
	CHECK_EQ(c[0].result, UNMADE);
	CHECK(sleeps_in(s.actor.tid, __NR_kevent_wait));
	MUST_EQ(add_chain(q->fd, &c[1], 1, COOKIE), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
	end_servers(q, &s, 1);
	CHECK_EQ(s.actor.ret, 1);
}

static void chain_is_neither_modified_nor_marked(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;

	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	set_chain(&ev, &c, 1, COOKIE);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &ev), -EPERM);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev), -EPERM);
	CHECK_NO_EVENT(q);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
}

static void thread_that_blocks_makes_room_for_another(struct queue *q)
{
	struct server s[2] = {};
	struct kevent_call c[2];
	struct ukevent ev;
	int fd[2][2];
	char buf[8];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		open_blocking_pipe(fd[i]);
		start_server(&s[i], q->fd, 1);
		c[i] = ENTRY(SYS_read, fd[i][0], buf, 8);
	}
	/* The first one blocks until the second one has ended. */
	for (i = 0; i < 2; i++)
		MUST_EQ(submit(q->fd, &c[i], 1, COOKIE + i), SUBMITTED);
	MUST_EQ(write(fd[1][1], "ab", 2), 2);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE + 1, 0, 2);
	CHECK_NO_EVENT(q);
	MUST_EQ(write(fd[0][1], "abc", 3), 3);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, 3);
	for (i = 0; i < 2; i++)
		close_pair(fd[i]);
	end_servers(q, s, 2);
}

#define OVERLAPS	500	/* calls between the two looks of a chain */

/*
 * Sets a flag in a file, makes calls, and clears it; at its begin it looks at the other's.
 * The calls take about as long as a busy host lets a virtual CPU wait.
 */
static void build_overlap(struct kevent_call *c, int own, int other,
			  uint64_t *seen, int zero)
{
	static const uint64_t set = 1, clear;
	static char page[4096];
	unsigned int i;

	c[0] = ENTRY(SYS_pwrite64, own, &set, 8);
	c[1] = ENTRY(SYS_pread64, other, seen, 8);
	for (i = 2; i < OVERLAPS; i++)
		c[i] = ENTRY(SYS_read, zero, page, sizeof(page));
	c[OVERLAPS] = ENTRY(SYS_pwrite64, own, &clear, 8);
}

/* Do two chains that do not block run at the same time? */
static bool overlap(struct queue *q, const int flag[2], int zero)
{
	static struct kevent_call c[2][OVERLAPS + 1];
	static uint64_t seen[2];
	struct ukevent ev;
	unsigned int k;

	for (k = 0; k < 2; k++) {
		seen[k] = 0;
		build_overlap(c[k], flag[k], flag[!k], &seen[k], zero);
		MUST_EQ(add_chain(q->fd, c[k], OVERLAPS + 1, k), 0);
	}
	for (k = 0; k < 2; k++)
		MUST_EVENT(q, &ev);
	return seen[0] || seen[1];
}

static void limit_holds(struct queue *q)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), flag[2];
	struct server s[2] = {};
	unsigned int i, nr = 0;
	uint64_t start;

	MUST(zero >= 0);
	for (i = 0; i < 2; i++) {
		cpu_set_t cpu;

		flag[i] = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		MUST(flag[i] >= 0);

		start_server(&s[i], q->fd, 1);
		CPU_ZERO(&cpu);
		CPU_SET(i, &cpu);
		MUST_EQ(sched_setaffinity(s[i].actor.tid, sizeof(cpu), &cpu), 0);
	}
	for (i = 0; i < 300; i++)
		nr += overlap(q, flag, zero);
	CHECK_EQ(nr, 0);
	/* A later call changes the limit, so sooner or later two run on two CPUs. */
	CHECK_EQ(serve(q->fd, 2, 0), 0);
	start = now_ns();
	while (!overlap(q, flag, zero))
		MUST(patient(start, PATIENCE_MS));
	end_servers(q, s, 2);
	close(zero);
}

/* The end of waits */

static void servers_leave_when_their_descriptor_is_closed(struct queue *q)
{
	struct server s[4] = {};
	struct kevent_call c;
	struct ukevent ev;
	struct queue other = *q;
	unsigned int i;
	char buf[8];
	int fd[2];

	other.fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	for (i = 0; i < 4; i++)
		start_server(&s[i], i % 2 ? q->fd : other.fd, 2);
	close(q->fd);
	for (i = 1; i < 4; i += 2) {
		join_actor(&s[i].actor, PATIENCE_MS);
		CHECK_EQ(s[i].actor.ret, -EBADF);
	}
	q->fd = other.fd;
	open_blocking_pipe(fd);
	c = ENTRY(SYS_read, fd[0], buf, 8);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), SUBMITTED);
	MUST_EQ(write(fd[1], "ab", 2), 2);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, 2);
	q->fd = fcntl(other.fd, F_DUPFD_CLOEXEC, 0);
	close(other.fd);
	for (i = 0; i < 4; i += 2)
		join_actor(&s[i].actor, PATIENCE_MS);
	CHECK_EQ(s[0].actor.ret + s[2].actor.ret, 1 - EBADF);
	close_pair(fd);
}

/* Another file, and another queue */
static void servers_leave_when_it_is_another_file(struct queue *q)
{
	struct queue other;
	int files[2], fd;
	unsigned int i;

	open_queue(&other, 0);
	files[0] = STDOUT_FILENO;
	files[1] = other.fd;
	for (i = 0; i < 2; i++) {
		struct server s = {};

		fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
		MUST(fd >= 0);
		start_server(&s, fd, 1);
		MUST_EQ(dup2(files[i], fd), fd);
		join_actor(&s.actor, PATIENCE_MS);
		CHECK_EQ(s.actor.ret, -EBADF);
		close(fd);
	}
	close_queue(&other);
}

/* The first server of a queue, and one that comes when others have served */
static void close_before_a_server_sleeps_is_seen(struct queue *q)
{
	int i, fd;

	for (i = 0; i < 2; i++) {
		struct server s = { .kq = q->fd, .limit = 1 };

		CHECK(start_in_window(&s.actor, "serve", serve_on, &s));
		fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
		MUST(fd >= 0);
		close(q->fd);
		window_release();
		join_actor(&s.actor, PATIENCE_MS);
		CHECK_EQ(s.actor.ret, -EBADF);
		q->fd = fd;
	}
}

static void chain_may_close_its_queue(struct queue *q)
{
	struct kevent_call c[2];
	struct queue own;

	open_queue(&own, q->size);
	c[0] = ENTRY(SYS_close, own.fd, 0, 0);
	c[1] = GETPPID;
	MUST_EQ(add_chain(own.fd, c, 2, COOKIE), 0);
	CHECK_EQ(serve(own.fd, 1, -1), 1);
	CHECK_EQ(c[1].result, getppid());
	CHECK_EQ(fcntl(own.fd, F_GETFD), -1);
	if (own.ring)
		munmap(own.ring, own.bytes);
}

static void signal_ends_the_wait_of_a_server(struct queue *q)
{
	struct server s = {};

	catch_signal(SIGUSR1);
	start_server(&s, q->fd, 1);
	MUST_EQ(pthread_kill(s.actor.thread, SIGUSR1), 0);
	join_actor(&s.actor, PATIENCE_MS);
	CHECK_EQ(s.actor.ret, -EINTR);
}

static void signal_ends_a_chain_and_its_event_says_so(struct queue *q)
{
	struct server s = {};
	struct kevent_call c[3];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	catch_signal(SIGUSR1);
	open_blocking_pipe(fd);
	start_server(&s, q->fd, 1);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd[0], buf, 8);
	c[2] = GETPPID;
	MUST_EQ(add_chain(q->fd, c, 3, COOKIE), 0);
	await_begun(c);
	MUST(sleeps_in(s.actor.tid, __NR_kevent_wait));
	MUST_EQ(pthread_kill(s.actor.thread, SIGUSR1), 0);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.id.raw_u64 & ~(uint64_t)3, REFUSED);
	CHECK_EQ(result_of(&ev), -EINTR);
	join_actor(&s.actor, PATIENCE_MS);
	CHECK_EQ(s.actor.ret, 1);
	close_pair(fd);
}

/* The chain is given to a server that comes to run when it has a signal. */
static void signal_leaves_a_chain_to_another_server(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct server s[2] = {};
	struct ukevent ev;

	catch_signal(SIGUSR1);
	share_cpu();
	start_server(&s[0], q->fd, 1);
	start_server(&s[1], q->fd, 1);
	go_first();
	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	MUST_EQ(pthread_kill(s[0].actor.thread, SIGUSR1), 0);
	go_as_others();
	leave_cpu();
	join_actor(&s[0].actor, PATIENCE_MS);
	CHECK_EQ(s[0].actor.ret, -EINTR);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
	end_servers(q, &s[1], 1);
	CHECK_EQ(s[1].actor.ret, 1);
}

static void server_counts_until_its_timeout(struct queue *q)
{
	struct kevent_call c = GETPPID;
	uint64_t start = now_ns();
	struct ukevent ev;

	CHECK_EQ(serve(q->fd, 1, 20), 0);
	CHECK(now_ns() - start >= 20000000);
	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(serve(q->fd, 1, 1), 1);
	MUST_EVENT(q, &ev);
}

/* Memory, processes */

static void chain_without_memory_is_broken(struct queue *q)
{
	struct kevent_call *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ukevent ev;

	MUST(c != MAP_FAILED);
	c[0] = GETPPID;
	MUST_EQ(add_chain(q->fd, c, 1, COOKIE), 0);
	munmap(c, 4096);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE | KEVENT_RET_BROKEN);
	CHECK_EQ((int)ev.ret_data[1], -EFAULT);
	CHECK_EQ(ev.ptr, COOKIE);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static int submits_and_ends(void *arg)
{
	struct queue *q = arg;
	struct kevent_call c[2] = { GETPPID, GETPPID };

	CHILD_MUST(!add_chain(q->fd, &c[0], 1, 1));
	CHILD_MUST(!add_chain(q->fd, &c[1], 1, 2));
	if (!q->size)
		return 0;
	CHILD_MUST(!fcntl(q->fd, F_SETFD, 0));
	exec_and_end();
	return 0;
}

/* Queues are for exit when they have no ring, and for exec when they have one. */
static void process_that_ends_drops_its_chains(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;
	unsigned int i;

	CHECK_EQ(join_child(start_child(submits_and_ends, q), PATIENCE_MS), 0);
	for (i = 1; i <= 2; i++) {
		MUST_EVENT(q, &ev);
		check_done(&ev, i, REFUSED, -ECANCELED);
	}
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	MUST_EQ(add_chain(q->fd, &c, 1, 1), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, 1, 0, getppid());
}

static int is_refused(void *arg)
{
	struct queue *q = arg;
	struct kevent_call c[2] = { GETPPID, GETPPID };

	CHILD_MUST(add_chain(q->fd, c, 1, 7) == -EXDEV);
	CHILD_MUST(serve(q->fd, 1, 0) == -EXDEV);
	c[1].nr = SYS_fsync;
	CHILD_MUST(submit(q->fd, c, 2, 7) == (1 | REFUSED));
	CHILD_MUST(c[1].result == -EXDEV);
	return 0;
}

static void chains_are_those_of_one_process(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;

	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(join_child(start_child(is_refused, q), PATIENCE_MS), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
}

static int may_not_remove(void *arg)
{
	struct queue *q = arg;

	CHILD_MUST(remove_chain(q->fd, COOKIE) == -EPERM);
	return 0;
}

static void another_process_cancels_nothing(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;

	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(join_child(start_child(may_not_remove, q), PATIENCE_MS), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
}

static int is_killed(void *arg)
{
	struct queue *q = arg;
	struct kevent_call c[2];
	struct server s = { .kq = q->fd, .limit = 1 };
	char buf[8];
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return 1;
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd[0], buf, 8);
	CHILD_MUST(!add_chain(q->fd, c, 2, 1));
	CHILD_MUST(!add_chain(q->fd, c, 2, 2));
	start_actor(&s.actor, serve_on, &s);
	while (!has_begun(c))
		sched_yield();
	kill(getpid(), SIGKILL);
	return 2;
}

static void sigkill_ends_what_runs_and_what_waits(struct queue *q)
{
	struct ukevent ev[2];
	unsigned int i;

	CHECK_EQ(join_child(start_child(is_killed, q), PATIENCE_MS), -SIGKILL);
	for (i = 0; i < 2; i++) {
		MUST_EVENT(q, &ev[i]);
		CHECK(result_of(&ev[i]) == -EINTR ||
		      result_of(&ev[i]) == -ECANCELED);
	}
	CHECK_EQ(ev[0].ptr + ev[1].ptr, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
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
	TEST_EACH(chain_that_waits_is_cancelled),
	TEST_EACH(file_that_a_server_used_last_is_closed),
	TEST_EACH(thread_that_blocks_in_what_calls_have_left_makes_room),
	TEST_EACH(chain_that_runs_is_not_cancelled),
	TEST_EACH(chain_is_cancelled_until_it_is_begun),
	TEST_EACH(chain_is_neither_modified_nor_marked),
	TEST_EACH(thread_that_blocks_makes_room_for_another),
	TEST_EACH(limit_holds),
	TEST_EACH(servers_leave_when_their_descriptor_is_closed),
	TEST_EACH(servers_leave_when_it_is_another_file),
	TEST_EACH(close_before_a_server_sleeps_is_seen),
	TEST_EACH(chain_may_close_its_queue),
	TEST_EACH(signal_ends_the_wait_of_a_server),
	TEST_EACH(signal_ends_a_chain_and_its_event_says_so),
	TEST_EACH(signal_leaves_a_chain_to_another_server),
	TEST_EACH(server_counts_until_its_timeout),
	TEST_EACH(chain_without_memory_is_broken),
	TEST_EACH(process_that_ends_drops_its_chains),
	TEST_EACH(chains_are_those_of_one_process),
	TEST_EACH(another_process_cancels_nothing),
	TEST_EACH(sigkill_ends_what_runs_and_what_waits),
	{ }
};

const struct test_suite aio_calls_suite = {
	.name = "aio_calls",
	.cases = cases,
};
#endif
