// SPDX-License-Identifier: GPL-2.0
/*
 * Attached chains: what a run delivers, modes, results that are kept, who may run them,
 * and what others do while one runs
 *
 * By raw entries. A run is held where the test wants it by memory that is not there: its
 * page is in a userfaultfd.
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "uffd.h"

#define REFUSED	KEVENT_CALL_REFUSED
#define NONE	(-12345)	/* a result that no call has */
#define PIECE	3u		/* what recv_entry() takes at most */

static char buffer[64];

static struct kevent_call entry(uint32_t nr, uint64_t a, uint64_t b, uint64_t c,
				uint64_t d)
{
	return (struct kevent_call){
		.nr = nr, .on_zero = 1, .on_value = 1, .result = NONE,
		.args = { a, b, c, d },
	};
}

#define ENTRY(nr, fd, b, c, d) \
	entry(nr, (uint64_t)(fd), KEVENT_ARG(b), KEVENT_ARG(c), KEVENT_ARG(d))

static struct kevent_call recv_entry(int fd, void *to)
{
	return ENTRY(SYS_recvfrom, fd, to, PIECE, 0);
}

static int change_watch(int kq, uint32_t cmd, int fd, struct kevent_call *c,
			uint32_t nr, uint32_t flags, uint64_t user)
{
	struct ukevent uk;

	kevent_set_chain(&uk, fd, KEVENT_POLL_POLLIN, c, nr, flags, user);
	return kevent_ctl_one(kq, cmd, &uk);
}

static int watch(int kq, int fd, struct kevent_call *c, uint32_t nr,
		 uint32_t flags)
{
	return change_watch(kq, KEVENT_CTL_ADD, fd, c, nr, flags, 7);
}

static int modify(int kq, int fd, struct kevent_call *c, uint32_t nr,
		  uint32_t flags)
{
	return change_watch(kq, KEVENT_CTL_MODIFY, fd, c, nr, flags, 8);
}

static int64_t result_of(const struct ukevent *ev)
{
	return (int64_t)((uint64_t)ev->ret_data[1] << 32 | ev->ret_data[0]);
}

/* The entry that ended the chain, and its result */
static void check_end(const struct ukevent *ev, int fd, uint32_t end, int64_t ret)
{
	CHECK_EQ(ev->type, KEVENT_CHAIN);
	CHECK_EQ(ev->id.raw[0], fd);
	CHECK_EQ(ev->id.raw[1], end);
	CHECK_EQ(result_of(ev), ret);
	CHECK_EQ(ev->ret_flags, KEVENT_RET_DONE);
}

static void must_end(struct queue *q, int fd, uint32_t end, int64_t ret)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	check_end(&ev, fd, end, ret);
}

static void open_pair(int sv[2])
{
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
}

static void put(int fd, unsigned int nr)
{
	MUST_EQ(write(fd, "abcdefghijklmnop", nr), nr);
}

/* Bytes that nobody has received */
static int left(int fd)
{
	int nr = -1;

	MUST_EQ(ioctl(fd, FIONREAD, &nr), 0);
	return nr;
}

static void close_pair(int sv[2])
{
	close(sv[0]);
	close(sv[1]);
}

/* Results */

static int listener(struct sockaddr_un *sa, socklen_t *len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	*len = sizeof(*sa);
	MUST(fd >= 0);
	MUST_EQ(bind(fd, (void *)sa, sizeof(sa->sun_family)), 0);
	MUST_EQ(listen(fd, 8), 0);
	MUST_EQ(getsockname(fd, (void *)sa, len), 0);
	return fd;
}

static int client(const struct sockaddr_un *sa, socklen_t len, unsigned int nr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0);
	MUST_EQ(connect(fd, (const void *)sa, len), 0);
	if (nr)
		put(fd, nr);
	return fd;
}

static void accepts_and_receives(struct queue *q)
{
	struct sockaddr_un sa;
	socklen_t len;
	int fd = listener(&sa, &len), peer[3];
	struct kevent_call c[3] = {
		ENTRY(SYS_accept4, fd, 0, 0, SOCK_CLOEXEC),
		ENTRY(KEVENT_CALL_COPY, &c[2].args[0], &c[0].result, 8, 0),
		ENTRY(SYS_recvfrom, -1, buffer, sizeof(buffer), 0),
	};

	MUST_EQ(watch(q->fd, fd, c, 3, 0), 0);
	CHECK_NO_EVENT(q);
	peer[0] = client(&sa, len, 5);
	peer[1] = client(&sa, len, 0);
	peer[2] = client(&sa, len, 7);
	must_end(q, fd, 2, 5);
	CHECK(!memcmp(buffer, "abcde", 5));
	CHECK_EQ(close((int)c[0].result), 0);
	/* Nothing to receive yet is a result. */
	must_end(q, fd, 2, -EAGAIN);
	CHECK_EQ(close((int)c[0].result), 0);
	must_end(q, fd, 2, 7);
	CHECK_EQ(close((int)c[0].result), 0);
	CHECK_NO_EVENT(q);
	close(peer[0]);
	close(peer[1]);
	close(peer[2]);
	close(fd);
}

static void events_have_all_fields(struct queue *q)
{
	struct kevent_call c;
	struct ukevent ev;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_WAKEUP_ALL), 0);
	put(sv[1], 2);
	MUST_EVENT(q, &ev);
	check_end(&ev, sv[0], 0, 2);
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(ev.event, KEVENT_POLL_POLLIN);
	CHECK_EQ(ev.req_flags, KEVENT_REQ_WAKEUP_ALL | KEVENT_REQ_LAST_CHECK);
	CHECK_EQ(c.result, 2);
	close_pair(sv);
}

static void results_have_64_bits(struct queue *q)
{
	int file = memfd_create("chain", MFD_CLOEXEC), sv[2];
	struct kevent_call c[2];

	MUST(file >= 0);
	open_pair(sv);
	c[0] = recv_entry(sv[0], buffer);
	c[1] = ENTRY(SYS_lseek, file, 0x512345678, SEEK_SET, 0);
	MUST_EQ(watch(q->fd, sv[0], c, 2, 0), 0);
	put(sv[1], 1);
	must_end(q, sv[0], 1, 0x512345678);
	c[1].args[0] = (uint64_t)-1;
	put(sv[1], 1);
	must_end(q, sv[0], 1, -EBADF);
	close_pair(sv);
	close(file);
}

static void calls_that_would_block_fail(struct queue *q)
{
	int sv[2], pipe[2];
	struct kevent_call c[3];

	open_pair(sv);
	MUST_EQ(pipe2(pipe, O_CLOEXEC), 0);
	c[0] = recv_entry(sv[0], buffer);
	c[1] = ENTRY(SYS_read, pipe[0], buffer, 1, 0);
	c[1].on_error = 1;
	c[2] = ENTRY(SYS_getpid, 0, 0, 0, 0);
	MUST_EQ(watch(q->fd, sv[0], c, 3, 0), 0);
	put(sv[1], 1);
	must_end(q, sv[0], 2, getpid());
	CHECK_EQ(c[1].result, -EAGAIN);
	close_pair(sv);
	close_pair(pipe);
}

/* No wake-up would say that it can be made after all. */
static void calls_that_are_not_made_here_are_told(struct queue *q)
{
	int file = open("/tmp/chain_watch", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct kevent_call c[4] = {
		ENTRY(SYS_write, file, "abc", 3, 0),
		ENTRY(SYS_statx, AT_FDCWD, "/tmp", 0, 0),
		ENTRY(SYS_openat, AT_FDCWD, "/tmp/chain_watch", O_RDWR | O_TRUNC, 0),
		ENTRY(SYS_read, -1, buffer, 1, 0),
	};
	int notify = inotify_init1(IN_CLOEXEC), sv[2];
	unsigned int i;

	MUST(file >= 0 && notify >= 0);
	c[3].args[0] = (uint64_t)notify;
	open_pair(sv);
	put(sv[1], 1);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		MUST_EQ(watch(q->fd, sv[0], &c[i], 1, KEVENT_REQ_ONESHOT), 0);
		must_end(q, sv[0], REFUSED, -EOPNOTSUPP);
		CHECK_EQ(c[i].result, -EOPNOTSUPP);
	}
	/* What was made before stays made. */
	c[0].on_error = c[0].on_value = 1;
	c[1] = c[0];
	c[0] = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], c, 2, KEVENT_REQ_ONESHOT), 0);
	must_end(q, sv[0], REFUSED | 1, -EOPNOTSUPP);
	CHECK_EQ(c[0].result, 1);
	CHECK_EQ(lseek(file, 0, SEEK_END), 0);
	unlink("/tmp/chain_watch");
	close_pair(sv);
	close(notify);
	close(file);
}

/* A part of what a call that waits would do is what one that does not wait does. */
static void parts_are_results(struct queue *q)
{
	struct kevent_call c[2];
	int sv[2], nr = 4;

	open_pair(sv);
	c[0] = ENTRY(SYS_recvfrom, sv[0], buffer, sizeof(buffer), MSG_WAITALL);
	c[1] = ENTRY(SYS_sendto, sv[0], "answer", 6, MSG_NOSIGNAL);
	MUST_EQ(watch(q->fd, sv[0], c, 2, 0), 0);
	put(sv[1], 3);
	must_end(q, sv[0], 1, 6);
	CHECK_EQ(c[0].result, 3);
	CHECK_EQ(read(sv[1], buffer, sizeof(buffer)), 6);
	CHECK_NO_EVENT(q);
	MUST_EQ(setsockopt(sv[0], SOL_SOCKET, SO_RCVLOWAT, &nr, sizeof(nr)), 0);
	c[0].args[3] = 0;
	put(sv[1], 2);
	must_end(q, sv[0], 1, 6);
	CHECK_EQ(c[0].result, 2);
	close_pair(sv);
}

static void nothing_is_delivered_for_nothing(struct queue *q)
{
	struct kevent_call c[2];
	int sv[2], other[2];

	open_pair(sv);
	open_pair(other);
	/* Ready, but what the first entry looks at is not. */
	c[0] = recv_entry(other[0], buffer);
	c[0].on_error = 1;
	c[1] = ENTRY(SYS_getpid, 0, 0, 0, 0);
	MUST_EQ(watch(q->fd, sv[0], c, 2, KEVENT_REQ_ONESHOT), 0);
	put(sv[1], 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(c[0].result, NONE);
	CHECK_EQ(c[1].result, NONE);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	/* The next wake-up has another look. */
	put(other[1], 2);
	put(sv[1], 1);
	must_end(q, sv[0], 1, getpid());
	CHECK_EQ(c[0].result, 2);
	close_pair(sv);
	close_pair(other);
}

static int takes_all(void *arg)
{
	CHILD_MUST(read(*(int *)arg, buffer, sizeof(buffer)) == 4);
	return 0;
}

static void another_process_is_faster(struct queue *q)
{
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, 0), 0);
	put(sv[1], 4);
	CHECK_EQ(join_child(start_child(takes_all, &sv[0]), PATIENCE_MS), 0);
	CHECK_NO_EVENT(q);
	put(sv[1], 1);
	must_end(q, sv[0], 0, 1);
	close_pair(sv);
}

/* Its calls are not about the file, so only the look tells. */
static void chain_is_not_run_for_what_was(struct queue *q)
{
	struct kevent_call c = ENTRY(SYS_getpid, 0, 0, 0, 0);
	int sv[2];

	open_pair(sv);
	c.result = NONE;
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_ET), 0);
	put(sv[1], 4);
	must_end(q, sv[0], 0, getpid());
	c.result = NONE;
	/* MODIFY looks, and all is there. */
	MUST_EQ(modify(q->fd, sv[0], &c, 1, KEVENT_REQ_ET), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 1);
	MUST_EQ(read(sv[0], buffer, sizeof(buffer)), 4);
	CHECK_NO_EVENT(q);
	CHECK_EQ(c.result, NONE);
	put(sv[1], 1);
	must_end(q, sv[0], 0, getpid());
	close_pair(sv);
}

/* The same behind files that have nothing any more: a batch of looks may end with them. */
static void chain_behind_others_is_not_run_for_what_was(struct queue *q)
{
	struct kevent_call c = ENTRY(SYS_getpid, 0, 0, 0, 0);
	int sv[2], others[17][2];
	unsigned int nr, i;

	for (i = 0; i < 17; i++)
		open_pair(others[i]);
	open_pair(sv);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_ET), 0);
	for (nr = 0; nr <= 17; nr++) {
		put(sv[1], 4);
		must_end(q, sv[0], 0, getpid());
		MUST_EQ(read(sv[0], buffer, sizeof(buffer)), 4);
		c.result = NONE;
		for (i = 0; i < nr; i++) {
			if (nr == i + 1)
				MUST_EQ(add_poll(q->fd, others[i][0],
						 KEVENT_POLL_POLLIN,
						 KEVENT_REQ_DISPATCH |
						 KEVENT_REQ_LAST_CHECK, i), 0);
			put(others[i][1], 1);
			MUST_EQ(read(others[i][0], buffer, 1), 1);
		}
		put(sv[1], 1);
		MUST_EQ(read(sv[0], buffer, 1), 1);
		CHECK_NO_EVENT(q);
		CHECK_EQ(c.result, NONE);
	}
	close_pair(sv);
	for (i = 0; i < 17; i++)
		close_pair(others[i]);
}

static void ends_and_errors_are_results(struct queue *q)
{
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_ONESHOT), 0);
	close(sv[1]);
	must_end(q, sv[0], 0, 0);
	close(sv[0]);
}

/* Modes */

static void level_runs_until_drained(struct queue *q)
{
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	put(sv[1], 8);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, 0), 0);
	must_end(q, sv[0], 0, 3);
	must_end(q, sv[0], 0, 3);
	must_end(q, sv[0], 0, 2);
	CHECK_NO_EVENT(q);
	put(sv[1], 1);
	must_end(q, sv[0], 0, 1);
	CHECK_NO_EVENT(q);
	close_pair(sv);
}

static void edge_runs_for_each_wake_up(struct queue *q)
{
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_ET), 0);
	put(sv[1], 8);
	must_end(q, sv[0], 0, 3);
	CHECK_NO_EVENT(q);
	put(sv[1], 8);
	must_end(q, sv[0], 0, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(left(sv[0]), 10);
	close_pair(sv);
}

static void oneshot_is_gone(struct queue *q)
{
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_ONESHOT), 0);
	put(sv[1], 8);
	must_end(q, sv[0], 0, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	close_pair(sv);
}

static void dispatch_waits_for_modify(struct queue *q)
{
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_DISPATCH), 0);
	put(sv[1], 8);
	must_end(q, sv[0], 0, 3);
	CHECK_NO_EVENT(q);
	MUST_EQ(modify(q->fd, sv[0], &c, 1, KEVENT_REQ_DISPATCH), 0);
	must_end(q, sv[0], 0, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(left(sv[0]), 2);
	close_pair(sv);
}

static void disabled_runs_nothing(struct queue *q)
{
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	put(sv[1], 1);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_DISABLED), 0);
	CHECK_NO_EVENT(q);
	MUST_EQ(modify(q->fd, sv[0], &c, 1, 0), 0);
	must_end(q, sv[0], 0, 1);
	close_pair(sv);
}

static void modify_sets_another_chain(struct queue *q)
{
	struct kevent_call c[3];
	int sv[2];

	open_pair(sv);
	c[0] = recv_entry(sv[0], buffer);
	c[1] = recv_entry(sv[0], buffer + 8);
	c[2] = ENTRY(SYS_getpid, 0, 0, 0, 0);
	MUST_EQ(watch(q->fd, sv[0], c, 1, 0), 0);
	MUST_EQ(modify(q->fd, sv[0], c + 1, 2, 0), 0);
	put(sv[1], 2);
	must_end(q, sv[0], 1, getpid());
	CHECK_EQ(c[0].result, NONE);
	CHECK_EQ(c[1].result, 2);
	close_pair(sv);
}

static void mark_has_it_looked_at(struct queue *q)
{
	struct ukevent uk = { .type = KEVENT_CHAIN };
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	put(sv[1], 6);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_ET), 0);
	must_end(q, sv[0], 0, 3);
	CHECK_NO_EVENT(q);
	uk.id.raw[0] = (uint32_t)sv[0];
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &uk), 1);
	must_end(q, sv[0], 0, 3);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &uk), 1);
	CHECK_NO_EVENT(q);
	close_pair(sv);
}

static void poll_watch_is_another(struct queue *q)
{
	unsigned int counts[8] = {};
	struct kevent_call c;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(add_poll(q->fd, sv[0], KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 1), 0);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, KEVENT_REQ_ET), 0);
	CHECK_EQ(watch(q->fd, sv[0], &c, 1, 0), -EEXIST);
	put(sv[1], 1);
	drain(q, counts, 8);
	CHECK_EQ(counts[1], 1);
	CHECK_EQ(counts[7], 1);
	close_pair(sv);
}

static void commit_runs_chains(void)
{
	struct kevent_call c;
	struct queue q;
	int sv[2];

	open_queue(&q, 8);
	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q.fd, sv[0], &c, 1, 0), 0);
	put(sv[1], 1);
	CHECK_EQ(c.result, NONE);
	CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	CHECK_EQ(c.result, 1);
	CHECK_EQ(q.ring->ring_kidx, 1);
	must_end(&q, sv[0], 0, 1);
	close_pair(sv);
	close_queue(&q);
}

static void bound_calls_are_made(struct queue *q)
{
	struct kevent_call c = ENTRY(KEVENT_CALL_BOUND, 5, 0, 0, 0), call;
	struct ukevent uk;
	int sv[2];

	open_pair(sv);
	call = ENTRY(SYS_recvfrom, sv[0], buffer, PIECE, 0);
	kevent_set_bound(&uk, 5, &call);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &uk), 0);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, 0), 0);
	put(sv[1], 4);
	must_end(q, sv[0], 0, 3);
	must_end(q, sv[0], 0, 1);
	CHECK_NO_EVENT(q);
	close_pair(sv);
}

/* Requests */

static void bad_requests_are_refused(struct queue *q)
{
	struct kevent_call c;
	struct ukevent good, uk;
	int sv[2];

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	kevent_set_chain(&good, sv[0], KEVENT_POLL_POLLIN, &c, 1, 0, 0);
#define BAD(change) do {						\
		uk = good;						\
		change;							\
		CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &uk), -EINVAL); \
	} while (0)
	BAD(uk.req_flags = 0);
	BAD(uk.req_flags |= KEVENT_REQ_HAND_BACK);
	BAD(uk.req_flags |= KEVENT_REQ_KEEP_EACH);
	BAD(uk.event |= 0x8000);
	BAD(uk.id.raw[1] = 0);
	BAD(uk.id.raw[1] = KEVENT_CALL_MAX + 1);
	BAD(uk.ret_data[0] |= 4);
#undef BAD
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &good), 0);
	good.id.raw[1] = 0;
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &good), -EINVAL);
	good.id.raw[1] = 2 * REFUSED;
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &good), -EINVAL);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &good), -EINVAL);
	/* The id of an event names its watch. */
	good.id.raw[1] = 2 * REFUSED - 1;
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &good), 1);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &good), 0);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &good), -ENOENT);
	close_pair(sv);
}

static void queue_can_refuse_them(void)
{
	static const struct {
		uint32_t	flags;
		int		ret;
	} queues[] = {
		{ KEVENT_INIT_REFUSE_LATER, -EPERM },
		{ KEVENT_INIT_REFUSE_CHANGE, 0 },
		{ KEVENT_INIT_REFUSE(KEVENT_POLL), 0 },
	};
	struct kevent_call c;
	unsigned int i;
	int sv[2], kq;

	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		kq = (int)syscall(__NR_kevent_init, NULL, 0, queues[i].flags);
		MUST(kq >= 0);
		CHECK_EQ(watch(kq, sv[0], &c, 1, 0), queues[i].ret);
		close(kq);
	}
	close_pair(sv);
}

/* Refusals */

static void calls_of_other_kinds_are_refused(struct queue *q)
{
	struct kevent_call c[2];
	int sv[2];

	open_pair(sv);
	c[0] = recv_entry(sv[0], buffer);
	c[1] = ENTRY(SYS_clone, 0, 0, 0, 0);
	MUST_EQ(watch(q->fd, sv[0], c, 2, KEVENT_REQ_DISPATCH), 0);
	put(sv[1], 1);
	must_end(q, sv[0], REFUSED | 1, -ENOSYS);
	CHECK_EQ(c[0].result, 1);
	CHECK_EQ(c[1].result, -ENOSYS);
	put(sv[1], 1);
	MUST_EQ(modify(q->fd, sv[0], c + 1, 1, KEVENT_REQ_DISPATCH), 0);
	must_end(q, sv[0], REFUSED, -ENOSYS);
	CHECK_EQ(left(sv[0]), 1);
	close_pair(sv);
}

struct scene {
	struct queue		*q;
	int			sv[2];
	struct kevent_call	c;
};

static int under_a_filter(void *arg)
{
	struct scene *s = arg;
	struct sock_filter f[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(f), .filter = f };
	struct ukevent ev;

	CHILD_MUST(watch(s->q->fd, s->sv[0], &s->c, 1, 0) == 0);
	CHILD_MUST(write(s->sv[1], "abc", 3) == 3);
	CHILD_MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHILD_MUST(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	CHILD_MUST(get_events(s->q->fd, 1, 1, 0, &ev) == 1);
	CHILD_MUST(ev.id.raw[1] == REFUSED);
	CHILD_MUST(result_of(&ev) == -EOPNOTSUPP);
	CHILD_MUST(s->c.result == -EOPNOTSUPP);
	CHILD_MUST(left(s->sv[0]) == 3);
	return 0;
}

static void open_scene(struct scene *s, struct queue *q)
{
	s->q = q;
	open_pair(s->sv);
	s->c = recv_entry(s->sv[0], buffer);
}

static void filters_see_the_calls(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	CHECK_EQ(join_child(start_child(under_a_filter, &s), PATIENCE_MS), 0);
	close_pair(s.sv);
}

static int collects_a_foreign_chain(void *arg)
{
	struct scene *s = arg;
	struct ukevent ev;
	int ret;

	ret = get_events(s->q->fd, 1, 1, 0, &ev);
	CHILD_MUST(ret == 1);
	CHILD_MUST(ev.type == KEVENT_CHAIN);
	CHILD_MUST(ev.id.raw[1] == REFUSED);
	CHILD_MUST(result_of(&ev) == -EXDEV);
	CHILD_MUST(s->c.result == NONE);
	CHILD_MUST(left(s->sv[0]) == 3);
	/* Nor does it say what the owner is to run. */
	CHILD_MUST(modify(s->q->fd, s->sv[0], &s->c, 1, 0) == -EXDEV);
	return 0;
}

static void chain_is_that_of_one_process(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch(q->fd, s.sv[0], &s.c, 1, 0), 0);
	put(s.sv[1], 3);
	CHECK_EQ(join_child(start_child(collects_a_foreign_chain, &s),
			    PATIENCE_MS), 0);
	/* The owner is told, too. */
	must_end(q, s.sv[0], 0, 3);
	close_pair(s.sv);
}

/* Shares memory, and descriptors if @flags say so. */
static void collect_in_clone(struct queue *q, int flags)
{
	static char stack[65536] __attribute__((aligned(64)));
	struct scene s;
	int status;
	pid_t pid;

	open_scene(&s, q);
	MUST_EQ(watch(q->fd, s.sv[0], &s.c, 1, 0), 0);
	put(s.sv[1], 3);
	pid = clone(collects_a_foreign_chain, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | flags | SIGCHLD, &s);
	MUST(pid > 0);
	MUST_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	must_end(q, s.sv[0], 0, 3);
	close_pair(s.sv);
}

static int adds_a_chain(void *arg)
{
	struct scene *s = arg;

	return watch(s->q->fd, s->sv[0], &s->c, 1, 0);
}

static int clone_status(int (*fn)(void *arg), void *arg)
{
	static char stack[65536] __attribute__((aligned(64)));
	int status = -1;
	pid_t pid = clone(fn, stack + sizeof(stack),
			  CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, arg);

	MUST(pid > 0);
	MUST_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

#define SUCCESSORS	100

/*
 * The process that added it has ended, its memory and descriptors are those of others.
 * One of them may be at its address in the kernel.
 */
static void not_of_one_that_came_later(struct queue *q)
{
	unsigned int i, wrong = 0;
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(clone_status(adds_a_chain, &s), 0);
	put(s.sv[1], 3);
	for (i = 0; i < SUCCESSORS && !wrong; i++)
		wrong = clone_status(collects_a_foreign_chain, &s) != 0;
	CHECK_EQ(wrong, 0);
	close_pair(s.sv);
}

static void not_of_one_with_the_same_memory(struct queue *q)
{
	collect_in_clone(q, CLONE_FILES);
}

static long collects_with_other_descriptors(void *arg)
{
	if (unshare(CLONE_FILES))
		return -1;
	return collects_a_foreign_chain(arg);
}

static void not_of_a_thread_with_other_descriptors(struct queue *q)
{
	struct actor a = {};
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch(q->fd, s.sv[0], &s.c, 1, 0), 0);
	put(s.sv[1], 3);
	start_actor(&a, collects_with_other_descriptors, &s);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	must_end(q, s.sv[0], 0, 3);
	close_pair(s.sv);
}

static int executes(void *arg)
{
	struct scene *s = arg;
	char kq[16], fd[16];
	char *const argv[] = { "kevent-tests", "--chain", kq, fd, NULL };

	CHILD_MUST(watch(s->q->fd, s->sv[0], &s->c, 1, 0) == 0);
	CHILD_MUST(write(s->sv[1], "abc", 3) == 3);
	CHILD_MUST(!fcntl(s->q->fd, F_SETFD, 0));
	CHILD_MUST(!fcntl(s->sv[0], F_SETFD, 0));
	snprintf(kq, sizeof(kq), "%d", s->q->fd);
	snprintf(fd, sizeof(fd), "%d", s->sv[0]);
	execv("/proc/self/exe", argv);
	return 2;
}

/* The program that the child executes: the chain was in the memory of the one before. */
int chain_after_exec(int argc, char **argv)
{
	struct ukevent ev;
	int nr = 0;

	if (argc != 4)
		return 3;
	if (get_events(atoi(argv[2]), 1, 1, 0, &ev) != 1)
		return 4;
	if (ev.id.raw[1] != REFUSED || result_of(&ev) != -EXDEV)
		return 5;
	return !ioctl(atoi(argv[3]), FIONREAD, &nr) && nr == 3 ? 0 : 6;
}

static void chain_is_that_of_one_program(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	CHECK_EQ(join_child(start_child(executes, &s), PATIENCE_MS), 0);
	close_pair(s.sv);
}

static void entries_that_are_not_there(struct queue *q)
{
	struct kevent_call *c = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int sv[2];

	MUST(c != MAP_FAILED);
	c += PAGE / sizeof(*c) - 1;
	open_pair(sv);
	c[0] = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], c, 2, KEVENT_REQ_DISPATCH), 0);
	put(sv[1], 1);
	MUST_EQ(munmap(c + 1, PAGE), 0);
	must_end(q, sv[0], REFUSED | 1, -EFAULT);
	CHECK_EQ(c[0].result, 1);
	put(sv[1], 1);
	MUST_EQ(modify(q->fd, sv[0], c + 1, 1, KEVENT_REQ_DISPATCH), 0);
	must_end(q, sv[0], REFUSED, -EFAULT);
	CHECK_EQ(left(sv[0]), 1);
	close_pair(sv);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void signal_comes_first(struct queue *q)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct kevent_wait_arg arg = { .size = sizeof(arg), .sigsetsize = 8 };
	struct timespec zero = {};
	struct kevent_call c;
	sigset_t set, none;
	struct ukevent ev;
	int sv[2];

	if (!q->size)
		return;
	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, 0), 0);
	put(sv[1], 1);
	sigaction(SIGUSR1, &sa, NULL);
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	arg.sigmask = KEVENT_ARG(&none);
	syscall(__NR_kevent_wait, q->fd, 8, (uint32_t)q->ring->ring_kidx, &zero,
		KEVENT_FLAGS_ARG, &arg);
	MUST_EQ(kevent_ring_next(q->ring, q->size, &ev), 1);
	check_end(&ev, sv[0], REFUSED, -EINTR);
	CHECK_EQ(left(sv[0]), 1);
	must_end(q, sv[0], 0, 1);
	close_pair(sv);
}

/* Room */

static void full_ring_runs_nothing(void)
{
	struct kevent_call c;
	struct queue q;
	int sv[2];

	open_queue(&q, 2);
	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, 1), 0);
	MUST_EQ(add_user(q.fd, 2, 1, KEVENT_REQ_READY, 2), 0);
	MUST_EQ(wait_ring(&q, 2, 0), 2);
	MUST_EQ(watch(q.fd, sv[0], &c, 1, 0), 0);
	put(sv[1], 1);
	CHECK_EQ(wait_ring(&q, 2, 0), 0);
	CHECK_EQ(c.result, NONE);
	CHECK_EQ(left(sv[0]), 1);
	drain(&q, (unsigned int [8]){}, 8);
	CHECK_EQ(c.result, 1);
	close_pair(sv);
	close_queue(&q);
}

/* A ring that can be read, but not written */
static void ring_protect(struct queue *q, int prot)
{
	MUST_EQ(mprotect(q->ring, (q->bytes + PAGE - 1) & ~(PAGE - 1), prot), 0);
}

/* The chain of an open scene has been run, and its event not been stored. */
static void keep_result(struct scene *s, struct queue *q, uint32_t flags)
{
	struct timespec zero = {};

	open_scene(s, q);
	MUST_EQ(watch(q->fd, s->sv[0], &s->c, 1, flags), 0);
	put(s->sv[1], 8);
	ring_protect(q, PROT_READ);
	CHECK(syscall(__NR_kevent_wait, q->fd, q->size, 0, &zero, 0, NULL) <= 0);
	CHECK_EQ(s->c.result, 3);
	CHECK_EQ(left(s->sv[0]), 5);
}

static void kept_result_is_not_run_again(void)
{
	struct timespec zero = {};
	struct queue q;
	struct scene s;

	open_queue(&q, 64);
	keep_result(&s, &q, 0);
	/* A wake-up, after which the watch is looked at again */
	put(s.sv[1], 1);
	CHECK(syscall(__NR_kevent_wait, q.fd, q.size, 0, &zero, 0, NULL) <= 0);
	CHECK_EQ(left(s.sv[0]), 6);
	/* Nor taken away */
	CHECK_EQ(modify(q.fd, s.sv[0], &s.c, 1, 0), -EBUSY);
	CHECK_EQ(remove_file(q.fd, KEVENT_CHAIN, s.sv[0]), -EBUSY);
	ring_protect(&q, PROT_READ | PROT_WRITE);
	must_end(&q, s.sv[0], 0, 3);
	must_end(&q, s.sv[0], 0, 3);
	must_end(&q, s.sv[0], 0, 3);
	CHECK_EQ(modify(q.fd, s.sv[0], &s.c, 1, 0), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(remove_file(q.fd, KEVENT_CHAIN, s.sv[0]), 0);
	close_pair(s.sv);
	close_queue(&q);
}

static void kept_result_goes_to_a_buffer(void)
{
	struct ukevent ev;
	struct queue q;
	struct scene s;

	open_queue(&q, 64);
	keep_result(&s, &q, KEVENT_REQ_ONESHOT);
	MUST_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
	check_end(&ev, s.sv[0], 0, 3);
	CHECK_EQ(left(s.sv[0]), 5);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	ring_protect(&q, PROT_READ | PROT_WRITE);
	close_pair(s.sv);
	close_queue(&q);
}

static void edge_behind_a_kept_result_is_not_lost(void)
{
	struct queue q;
	struct scene s;

	open_queue(&q, 64);
	keep_result(&s, &q, KEVENT_REQ_ET);
	put(s.sv[1], 1);
	ring_protect(&q, PROT_READ | PROT_WRITE);
	must_end(&q, s.sv[0], 0, 3);
	must_end(&q, s.sv[0], 0, 3);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(left(s.sv[0]), 3);
	close_pair(s.sv);
	close_queue(&q);
}

/* What is said of a watch that cannot be changed is no wake-up either. */
static void kept_edge_runs_once_whatever_is_asked(void)
{
	struct queue q;
	struct scene s;

	open_queue(&q, 64);
	keep_result(&s, &q, KEVENT_REQ_ET);
	CHECK_EQ(modify(q.fd, s.sv[0], &s.c, 1, KEVENT_REQ_ET), -EBUSY);
	CHECK_EQ(remove_file(q.fd, KEVENT_CHAIN, s.sv[0]), -EBUSY);
	ring_protect(&q, PROT_READ | PROT_WRITE);
	must_end(&q, s.sv[0], 0, 3);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(left(s.sv[0]), 5);
	put(s.sv[1], 1);
	must_end(&q, s.sv[0], 0, 3);
	close_pair(s.sv);
	close_queue(&q);
}

/* The store faults, and is made again: no other wake-up came. */
static void fault_is_no_wake_up(void)
{
	struct kevent_call c = ENTRY(SYS_getpid, 0, 0, 0, 0);
	struct ukevent *ev, other;
	struct queue q;
	int sv[2];

	open_queue(&q, 0);
	open_pair(sv);
	MUST_EQ(watch(q.fd, sv[0], &c, 1, KEVENT_REQ_ET), 0);
	put(sv[1], 1);
	ev = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(ev != MAP_FAILED);
	MUST_EQ(get_events(q.fd, 1, 1, 0, ev), 1);
	check_end(ev, sv[0], 0, getpid());
	CHECK(get_events(q.fd, 1, 1, 0, &other) <= 0);
	munmap(ev, PAGE);
	close_pair(sv);
	close_queue(&q);
}

static void kept_result_ends_with_the_file(void)
{
	struct queue q;
	struct scene s;

	open_queue(&q, 64);
	keep_result(&s, &q, 0);
	close_pair(s.sv);
	ring_protect(&q, PROT_READ | PROT_WRITE);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static void results_wait_for_their_reader(uint32_t flags)
{
	struct kevent_call c;
	struct ukevent ev;
	struct queue q;
	int sv[2];

	open_queue(&q, 8);
	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q.fd, sv[0], &c, 1, flags), 0);
	put(sv[1], 2);
	MUST_EQ(wait_ring(&q, 8, 0), 1);
	put(sv[1], 3);
	CHECK_EQ(wait_ring(&q, 8, 0), 0);
	CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	CHECK(get_events(q.fd, 1, 1, 0, &ev) <= 0);
	CHECK_EQ(c.result, 2);
	CHECK_EQ(left(sv[0]), 3);
	must_end(&q, sv[0], 0, 2);
	must_end(&q, sv[0], 0, 3);
	CHECK_NO_EVENT(&q);
	close_pair(sv);
	close_queue(&q);
}

static void unread_results_are_not_written_over(void)
{
	results_wait_for_their_reader(0);
	results_wait_for_their_reader(KEVENT_REQ_ET);
}

/* While a chain runs */

struct held {
	struct queue		*q;
	int			sv[2];
	int			uffd;
	char			*page;
	struct kevent_call	c[2];
	struct actor		actor;
	struct ukevent		ev;
};

static void open_held(struct held *h, struct queue *q, uint32_t flags)
{
	memset(h, 0, sizeof(*h));
	h->q = q;
	open_pair(h->sv);
	h->page = map_page();
	h->uffd = open_uffd(h->page);
	MUST(h->uffd >= 0);
	h->c[0] = recv_entry(h->sv[0], h->page);
	h->c[1] = ENTRY(SYS_getpid, 0, 0, 0, 0);
	MUST_EQ(watch(q->fd, h->sv[0], h->c, 2, flags), 0);
}

static long collect_one(void *arg)
{
	struct held *h = arg;

	return next_event(h->q, &h->ev, PATIENCE_MS * slowness);
}

static void start_held(struct held *h, unsigned int bytes)
{
	put(h->sv[1], bytes);
	start_actor(&h->actor, collect_one, h);
	await_fault(h->uffd);
}

static void end_held(struct held *h)
{
	serve_fault(h->uffd, h->page);
	join_actor(&h->actor, 2 * PATIENCE_MS);
}

static void close_held(struct held *h)
{
	close_pair(h->sv);
	close(h->uffd);
	munmap(h->page, PAGE);
}

/* The event behind the chain waits in the kernel, for whoever looks. */
static void event_behind_it_is_told_meanwhile(void)
{
	struct ukevent ev;
	struct queue q;
	struct held h;

	open_queue(&q, 8);
	open_held(&h, &q, KEVENT_REQ_ET);
	MUST_EQ(add_user(q.fd, 9, 1, KEVENT_REQ_ONESHOT, 9), 0);
	share_cpu();
	start_actor(&h.actor, collect_one, &h);
	MUST(sleeps_in(h.actor.tid, __NR_kevent_wait));
	go_first();
	put(h.sv[1], 6);
	MUST_EQ(mark_user(q.fd, 9, 1), 1);
	go_as_others();
	await_fault(h.uffd);
	CHECK(q.ring->ring_flags & KEVENT_RING_MORE);
	end_held(&h);
	CHECK_EQ(h.actor.ret, 1);
	MUST_EVENT(&q, &ev);
	leave_cpu();
	close_held(&h);
	close_queue(&q);
}

static void nobody_takes_it_away_meanwhile(struct queue *q)
{
	struct ukevent uk = { .type = KEVENT_CHAIN };
	struct held h;

	open_held(&h, q, KEVENT_REQ_ET);
	start_held(&h, 6);
	CHECK_EQ(modify(q->fd, h.sv[0], h.c, 1, 0), -EBUSY);
	CHECK_EQ(remove_file(q->fd, KEVENT_CHAIN, h.sv[0]), -EBUSY);
	/* A mark is for the time after. */
	uk.id.raw[0] = (uint32_t)h.sv[0];
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &uk), 1);
	end_held(&h);
	CHECK_EQ(h.actor.ret, 1);
	check_end(&h.ev, h.sv[0], 1, getpid());
	must_end(q, h.sv[0], 1, getpid());
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify(q->fd, h.sv[0], h.c, 1, 0), 0);
	CHECK_EQ(remove_file(q->fd, KEVENT_CHAIN, h.sv[0]), 0);
	close_held(&h);
}

static void wake_up_meanwhile_is_not_lost(struct queue *q)
{
	struct held h;

	open_held(&h, q, KEVENT_REQ_ET);
	start_held(&h, 3);
	put(h.sv[1], 2);
	end_held(&h);
	CHECK_EQ(h.actor.ret, 1);
	must_end(q, h.sv[0], 1, getpid());
	CHECK_EQ(h.c[0].result, 2);
	CHECK_NO_EVENT(q);
	close_held(&h);
}

static long collect_some(void *arg)
{
	struct held *h = arg;
	struct ukevent ev[4];
	int ret = get_events(h->q->fd, 1, 4, PATIENCE_MS * slowness, ev);

	h->ev = ev[0];
	return ret;
}

static void others_go_on_meanwhile(struct queue *q)
{
	struct kevent_call c;
	struct ukevent ev;
	struct held h;
	int sv[2];

	if (q->size)
		return;
	open_held(&h, q, 0);
	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	put(h.sv[1], 1);
	MUST_EQ(watch(q->fd, sv[0], &c, 1, 0), 0);
	put(sv[1], 2);
	start_actor(&h.actor, collect_some, &h);
	await_fault(h.uffd);
	/* It was ready when the first run began. */
	MUST_EQ(get_events(q->fd, 1, 1, PATIENCE_MS, &ev), 1);
	check_end(&ev, sv[0], 0, 2);
	CHECK_EQ(remove_file(q->fd, KEVENT_CHAIN, sv[0]), 0);
	end_held(&h);
	CHECK_EQ(h.actor.ret, 1);
	close_held(&h);
	close_pair(sv);
}

static long fill_ring(void *arg)
{
	struct held *h = arg;

	return wait_ring(h->q, h->q->size, PATIENCE_MS * slowness);
}

/* Two level watches wait for their next look, and a run of the first takes long. */
static void sleepers_go_on_meanwhile(void)
{
	struct waiter w = {};
	struct kevent_call c;
	struct ukevent ev;
	struct queue q;
	struct held h;
	int sv[2];

	open_queue(&q, 8);
	open_held(&h, &q, 0);
	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	put(h.sv[1], 6);
	put(sv[1], 6);
	MUST_EQ(watch(q.fd, sv[0], &c, 1, 0), 0);
	start_actor(&h.actor, fill_ring, &h);
	await_fault(h.uffd);
	end_held(&h);
	CHECK_EQ(h.actor.ret, 2);
	/* Unread entries keep this one from both. */
	start_waiter(&w, &q, 8);
	MUST_EQ(madvise(h.page, PAGE, MADV_DONTNEED), 0);
	MUST_EQ(kevent_ring_next(q.ring, q.size, &ev), 1);
	MUST_EQ(kevent_ring_next(q.ring, q.size, &ev), 1);
	CHECK_EQ(left(sv[0]), 3);
	start_actor(&h.actor, fill_ring, &h);
	await_fault(h.uffd);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(left(sv[0]), 0);
	end_held(&h);
	close_held(&h);
	close_pair(sv);
	close_queue(&q);
}

static void watch_dies_while_its_chain_runs(struct queue *q)
{
	struct held h;
	int fd;

	open_held(&h, q, 0);
	MUST_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_ONESHOT, 1), 0);
	start_held(&h, 3);
	fd = h.sv[0];
	close(fd);
	CHECK_EQ(remove_file(q->fd, KEVENT_CHAIN, fd), -EBADF);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 2);
	serve_fault(h.uffd, h.page);
	/* The collector has nothing, and goes on waiting. */
	MUST_EQ(mark_user(q->fd, 1, 0), 1);
	join_actor(&h.actor, 2 * PATIENCE_MS);
	CHECK_EQ(h.actor.ret, 1);
	CHECK_EQ(h.ev.type, KEVENT_USER);
	CHECK_EQ(h.c[1].result, getpid());
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	close_held(&h);
}

static int runs_for_ever(void *arg)
{
	int sock = *(int *)arg, sv[2], uffd, kq;
	struct timespec forever = { .tv_sec = 1000 };
	struct kevent_call c;
	struct ukevent ev;
	char *page;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uffd = open_uffd(page);
	kq = (int)syscall(__NR_kevent_init, NULL, 0, 0);
	CHILD_MUST(page != MAP_FAILED && uffd >= 0 && kq >= 0);
	CHILD_MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	send_fd(sock, uffd);
	c = recv_entry(sv[0], page);
	CHILD_MUST(watch(kq, sv[0], &c, 1, 0) == 0);
	CHILD_MUST(write(sv[1], "a", 1) == 1);
	syscall(__NR_kevent_get_events, kq, 1, 1, &forever, &ev, 0);
	return 1;
}

static void kill_ends_a_run(void)
{
	int sock[2], uffd;
	pid_t child;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	child = start_child(runs_for_ever, &sock[0]);
	uffd = receive_fd(sock[1]);
	MUST(uffd >= 0);
	await_fault(uffd);
	kill(child, SIGKILL);
	CHECK_EQ(join_child(child, PATIENCE_MS), -SIGKILL);
	close(uffd);
}

static void one_event_is_for_one_thread(void)
{
	struct waiter w[3] = {};
	unsigned int i, with = 0;
	struct kevent_call c;
	uint64_t start;
	struct queue q;
	int sv[2];

	open_queue(&q, 0);
	open_pair(sv);
	c = recv_entry(sv[0], buffer);
	MUST_EQ(watch(q.fd, sv[0], &c, 1, 0), 0);
	for (i = 0; i < 3; i++)
		start_waiter(&w[i], &q, 1);
	for (i = 0; i < 3; i++) {
		put(sv[1], 3);
		start = now_ns();
		do {
			unsigned int k;

			with = 0;
			for (k = 0; k < 3; k++)
				with += actor_ended(&w[k].actor);
		} while (with <= i && patient(start, PATIENCE_MS));
		CHECK_EQ(with, i + 1);
	}
	for (i = 0; i < 3; i++) {
		CHECK_EQ(join_waiter(&w[i]), 1);
		check_end(&w[i].ev[0], sv[0], 0, 3);
	}
	CHECK_EQ(left(sv[0]), 0);
	close_pair(sv);
	close_queue(&q);
}

/* Closing */

static int closes_what_it_watches(void *arg)
{
	struct timespec forever = { .tv_sec = 1000 };
	int *sv = arg, kq = (int)syscall(__NR_kevent_init, NULL, 0, 0);
	struct kevent_call c[2] = {
		recv_entry(sv[0], buffer), ENTRY(SYS_close, sv[0], 0, 0, 0),
	};
	struct ukevent ev;

	CHILD_MUST(kq >= 0);
	CHILD_MUST(!close(sv[1]));
	CHILD_MUST(watch(kq, sv[0], c, 2, 0) == 0);
	/* The watch goes with the descriptor, and nobody comes back from this. */
	syscall(__NR_kevent_get_events, kq, 1, 1, &forever, &ev, 0);
	return 1;
}

/* A close in a chain ends the connection, however long the consumer waits for others. */
static void closed_file_ends_at_once(void)
{
	struct pollfd pfd;
	char byte;
	pid_t child;
	int sv[2];

	open_pair(sv);
	child = start_child(closes_what_it_watches, sv);
	close(sv[0]);
	put(sv[1], 1);
	pfd = (struct pollfd){ .fd = sv[1], .events = POLLIN };
	CHECK_EQ(poll(&pfd, 1, PATIENCE_MS * slowness), 1);
	CHECK_EQ(read(sv[1], &byte, 1), 0);
	kill(child, SIGKILL);
	CHECK_EQ(join_child(child, PATIENCE_MS), -SIGKILL);
	close(sv[1]);
}

/* What it receives has a file, for which it has no room: the kernel lets go of it. */
static int drops_a_file(void *arg)
{
	int *sv = arg, kq;
	struct iovec iov = { buffer, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct timespec ts = ms_to_timespec(PATIENCE_MS * slowness);
	struct ukevent ev[2];
	struct kevent_call c;

	kq = (int)syscall(__NR_kevent_init, NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	close(sv[1]);
	c = ENTRY(SYS_recvmsg, sv[0], &msg, 0, 0);
	CHILD_MUST(watch(kq, sv[0], &c, 1, KEVENT_REQ_ET) == 0);
	/* It waits on, for a second event, which comes when the file is gone. */
	CHILD_MUST(syscall(__NR_kevent_get_events, kq, 2, 2, &ts, ev, 0) == 2);
	return 0;
}

static void dropped_file_ends_at_once(void)
{
	int sv[2], passed[2];
	struct pollfd pfd;
	pid_t child;

	open_pair(sv);
	child = start_child(drops_a_file, sv);
	close(sv[0]);
	open_pair(passed);
	send_fd(sv[1], passed[0]);
	close(passed[0]);
	pfd = (struct pollfd){ .fd = passed[1], .events = POLLIN };
	/* It has the other end from its parent, as long as it waits for a second event. */
	CHECK_EQ(poll(&pfd, 1, PATIENCE_MS * slowness / 2), 1);
	put(sv[1], 1);
	CHECK_EQ(join_child(child, PATIENCE_MS), 0);
	close(passed[1]);
	close(sv[1]);
}

static void queue_is_not_closed(struct queue *q)
{
	struct kevent_call c[2];
	int sv[2];

	open_pair(sv);
	c[0] = recv_entry(sv[0], buffer);
	c[1] = ENTRY(SYS_close, q->fd, 0, 0, 0);
	MUST_EQ(watch(q->fd, sv[0], c, 2, 0), 0);
	put(sv[1], 1);
	must_end(q, sv[0], REFUSED | 1, -EOPNOTSUPP);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	close_pair(sv);
}

/* Memory that is charged */

static int adds_in_a_child(void *arg)
{
	struct scene *s = arg;
	long long before = fdinfo(s->q->fd, "kevent-user-bytes"), more;

	CHILD_MUST(watch(s->q->fd, s->sv[0], &s->c, 1, 0) == 0);
	more = fdinfo(s->q->fd, "kevent-user-bytes") - before;
	/* An address space other than that of the queue */
	CHILD_MUST(more > 8192);
	CHILD_MUST(remove_file(s->q->fd, KEVENT_CHAIN, s->sv[0]) == 0);
	return 0;
}

static void memory_that_is_kept_is_charged(struct queue *q)
{
	long long before = fdinfo(q->fd, "kevent-user-bytes"), more;
	uint64_t start = now_ns();
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch(q->fd, s.sv[0], &s.c, 1, 0), 0);
	more = fdinfo(q->fd, "kevent-user-bytes") - before;
	CHECK(more > 128 && more < 2048);
	MUST_EQ(remove_file(q->fd, KEVENT_CHAIN, s.sv[0]), 0);
	CHECK_EQ(join_child(start_child(adds_in_a_child, &s), PATIENCE_MS), 0);
	while (fdinfo(q->fd, "kevent-user-bytes") != before &&
	       patient(start, PATIENCE_MS))
		;
	CHECK_EQ(fdinfo(q->fd, "kevent-user-bytes"), before);
	close_pair(s.sv);
}

static const struct test_case cases[] = {
	TEST_EACH(accepts_and_receives),
	TEST_EACH(events_have_all_fields),
	TEST_EACH(results_have_64_bits),
	TEST_EACH(calls_that_would_block_fail),
	TEST_EACH(calls_that_are_not_made_here_are_told),
	TEST_EACH(parts_are_results),
	TEST_EACH(nothing_is_delivered_for_nothing),
	TEST_EACH(another_process_is_faster),
	TEST_EACH(chain_is_not_run_for_what_was),
	TEST_EACH(chain_behind_others_is_not_run_for_what_was),
	TEST_EACH(ends_and_errors_are_results),
	TEST_EACH(level_runs_until_drained),
	TEST_EACH(edge_runs_for_each_wake_up),
	TEST_EACH(oneshot_is_gone),
	TEST_EACH(dispatch_waits_for_modify),
	TEST_EACH(disabled_runs_nothing),
	TEST_EACH(modify_sets_another_chain),
	TEST_EACH(mark_has_it_looked_at),
	TEST_EACH(poll_watch_is_another),
	TEST(commit_runs_chains),
	TEST_EACH(bound_calls_are_made),
	TEST_EACH(bad_requests_are_refused),
	TEST(queue_can_refuse_them),
	TEST_EACH(calls_of_other_kinds_are_refused),
	TEST_EACH(filters_see_the_calls),
	TEST_EACH(chain_is_that_of_one_process),
	TEST_EACH(not_of_one_with_the_same_memory),
	TEST_EACH(not_of_one_that_came_later),
	TEST_EACH(not_of_a_thread_with_other_descriptors),
	TEST_EACH(chain_is_that_of_one_program),
	TEST_EACH(entries_that_are_not_there),
	TEST_EACH(signal_comes_first),
	TEST(full_ring_runs_nothing),
	TEST(kept_result_is_not_run_again),
	TEST(kept_result_goes_to_a_buffer),
	TEST(edge_behind_a_kept_result_is_not_lost),
	TEST(kept_edge_runs_once_whatever_is_asked),
	TEST(fault_is_no_wake_up),
	TEST(kept_result_ends_with_the_file),
	TEST(unread_results_are_not_written_over),
	TEST(event_behind_it_is_told_meanwhile),
	TEST_EACH(nobody_takes_it_away_meanwhile),
	TEST_EACH(wake_up_meanwhile_is_not_lost),
	TEST_EACH(others_go_on_meanwhile),
	TEST(sleepers_go_on_meanwhile),
	TEST_EACH(watch_dies_while_its_chain_runs),
	TEST(kill_ends_a_run),
	TEST(one_event_is_for_one_thread),
	TEST(closed_file_ends_at_once),
	TEST(dropped_file_ends_at_once),
	TEST_EACH(queue_is_not_closed),
	TEST_EACH(memory_that_is_kept_is_charged),
	{ }
};

const struct test_suite chain_watch_suite = {
	.name = "chain_watch",
	.cases = cases,
};
#endif
