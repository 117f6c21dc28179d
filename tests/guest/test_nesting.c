// SPDX-License-Identifier: GPL-2.0
/*
 * A queue as a file: what may watch it, and what it may not watch
 *
 *	poll, epoll, io_uring --> kevent		fine
 *	kevent --> kevent, epoll, io_uring		ELOOP
 *
 * so no cycle can be built:	epoll --> kevent -/-> epoll
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "helpers.h"

#define RECV	KEVENT_SOCKET_RECV
#define ET	KEVENT_REQ_ET

/*
 * The system calls of poll() and epoll_wait(); newer architectures lack the old
 * ones.
 */
#ifdef __NR_poll
#define NR_POLL		__NR_poll
#define NR_EPOLL_WAIT	__NR_epoll_wait
#else
#define NR_POLL		__NR_ppoll
#define NR_EPOLL_WAIT	__NR_epoll_pwait
#endif

static int open_uring(struct io_uring_params *p)
{
	memset(p, 0, sizeof(*p));
	return syscall(__NR_io_uring_setup, 4, p);
}

static void queue_refuses_queue_epoll_and_uring(void)
{
	struct io_uring_params params;
	struct queue q, other;
	unsigned int i;
	int fd[5];

	open_queue(&q, 0);
	open_queue(&other, 8);
	fd[0] = other.fd;
	fd[1] = q.fd;
	fd[2] = epoll_create1(EPOLL_CLOEXEC);
	fd[3] = open_uring(&params);
	fd[4] = dup(q.fd);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		MUST(fd[i] >= 0);
		CHECK_EQ(add_poll(q.fd, fd[i], KEVENT_POLL_POLLIN, 0, 0),
			 -ELOOP);
	}
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static void cycle_by_epoll_cannot_be_built(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct queue q;
	int ep, sock[2], got;

	open_queue(&q, 0);
	ep = epoll_create1(EPOLL_CLOEXEC);
	MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, q.fd, &ev), 0);
	CHECK_EQ(add_poll(q.fd, ep, KEVENT_POLL_POLLIN, 0, 0), -ELOOP);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	send_fd(sock[0], ep);
	got = receive_fd(sock[1]);
	MUST(got >= 0);
	CHECK_EQ(add_poll(q.fd, got, KEVENT_POLL_POLLIN, 0, 0), -ELOOP);
	close_queue(&q);
}

static int poll_now(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLRDNORM };

	return poll(&pfd, 1, 0) ? pfd.revents : 0;
}

static void poll_sees_pending_events(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(poll_now(q->fd), 0);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	CHECK_EQ(poll_now(q->fd), 0);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(poll_now(q->fd), POLLIN | POLLRDNORM);
	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(poll_now(q->fd), 0);
}

static void poll_sees_unread_entries(void)
{
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 4);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST_EQ(wait_ring(&q, 4, 0), 1);
	CHECK_EQ(poll_now(q.fd), POLLIN | POLLRDNORM);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(poll_now(q.fd), 0);
	close_queue(&q);
}

/* A level watch keeps the queue readable until the kernel finds it idle. */
static void poll_sees_level_watches_that_stay_ready(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 0), 0);
	put_byte(fd[1]);
	MUST_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(poll_now(q.fd), POLLIN | POLLRDNORM);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(poll_now(q.fd), 0);
	close_queue(&q);
}

static long poll_forever(void *arg)
{
	struct pollfd pfd = { .fd = *(int *)arg, .events = POLLIN };

	return poll(&pfd, 1, -1) == 1 ? pfd.revents : -1;
}

static void event_wakes_poll(void)
{
	struct actor a;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0), 0);
	start_actor(&a, poll_forever, &q.fd);
	MUST(sleeps_in(a.tid, NR_POLL));
	put_byte(fd[1]);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, POLLIN);
	close_queue(&q);
}

static long epoll_forever(void *arg)
{
	struct epoll_event ev;
	int ep = *(int *)arg;

	return epoll_wait(ep, &ev, 1, -1) == 1 ? (long)ev.events : -1;
}

static void check_epoll(struct queue *q, uint32_t mode)
{
	struct epoll_event ev = { .events = EPOLLIN | mode };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd, i;
	struct ukevent got;
	struct actor a;

	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	MUST_EQ(add_poll(q->fd, fd, KEVENT_POLL_POLLIN, ET, 3), 0);
	MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, q->fd, &ev), 0);
	for (i = 0; i < 5; i++) {
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
		start_actor(&a, epoll_forever, &ep);
		MUST(sleeps_in(a.tid, NR_EPOLL_WAIT));
		MUST_EQ(eventfd_write(fd, 1), 0);
		join_actor(&a, PATIENCE_MS);
		CHECK_EQ(a.ret, EPOLLIN);
		if (!mode)
			CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
		MUST_EQ(next_event(q, &got, 0), 1);
		CHECK_EQ(got.ptr, 3);
		CHECK_NO_EVENT(q);
	}
	close(ep);
	close(fd);
}

static void event_wakes_epoll(struct queue *q)
{
	check_epoll(q, 0);
	check_epoll(q, EPOLLET);
}

/* eventfd --> kevent --> epoll --> epoll --> poll */
static void event_wakes_a_chain_of_epolls(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ukevent got;
	struct actor a;
	struct queue q;
	int ep[3], fd, i;

	open_queue(&q, 8);
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLIN, ET, 3), 0);
	for (i = 0; i < 3; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		MUST_EQ(epoll_ctl(ep[i], EPOLL_CTL_ADD, i ? ep[i - 1] : q.fd,
				  &ev), 0);
	}
	start_actor(&a, poll_forever, &ep[2]);
	MUST(sleeps_in(a.tid, NR_POLL));
	MUST_EQ(eventfd_write(fd, 1), 0);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, POLLIN);
	MUST_EQ(next_event(&q, &got, 0), 1);
	CHECK_EQ(poll_now(ep[2]), 0);
	close_queue(&q);
	CHECK_EQ(poll_now(ep[2]), 0);
}

/* The smallest io_uring: one poll request, then its completion */
struct uring {
	struct io_uring_params	p;
	char			*rings;
	struct io_uring_sqe	*sqes;
	int			fd;
};

static void map_uring(struct uring *u)
{
	size_t bytes;

	u->fd = open_uring(&u->p);
	MUST(u->fd >= 0);
	MUST(u->p.features & IORING_FEAT_SINGLE_MMAP);
	bytes = u->p.cq_off.cqes +
		u->p.cq_entries * sizeof(struct io_uring_cqe);
	if (bytes < u->p.sq_off.array + u->p.sq_entries * 4)
		bytes = u->p.sq_off.array + u->p.sq_entries * 4;
	u->rings = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, u->fd, IORING_OFF_SQ_RING);
	MUST((void *)u->rings != MAP_FAILED);
	u->sqes = mmap(NULL, u->p.sq_entries * sizeof(*u->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		       u->fd, IORING_OFF_SQES);
	MUST((void *)u->sqes != MAP_FAILED);
}

static uint32_t *uring_word(struct uring *u, uint32_t offset)
{
	return (uint32_t *)(u->rings + offset);
}

static void submit_poll(struct uring *u, int fd)
{
	uint32_t *tail = uring_word(u, u->p.sq_off.tail);

	memset(&u->sqes[0], 0, sizeof(u->sqes[0]));
	u->sqes[0].opcode = IORING_OP_POLL_ADD;
	u->sqes[0].fd = fd;
	u->sqes[0].poll32_events = POLLIN;
	uring_word(u, u->p.sq_off.array)[*tail &
		*uring_word(u, u->p.sq_off.ring_mask)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	MUST_EQ(syscall(__NR_io_uring_enter, u->fd, 1, 0, 0, NULL, 0), 1);
}

static bool completed(struct uring *u)
{
	return *uring_word(u, u->p.cq_off.head) !=
	       __atomic_load_n(uring_word(u, u->p.cq_off.tail),
			       __ATOMIC_ACQUIRE);
}

static void event_completes_a_poll_of_io_uring(void)
{
	struct io_uring_cqe *cqe;
	struct uring u;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0), 0);
	map_uring(&u);
	submit_poll(&u, q.fd);
	CHECK(!completed(&u));
	put_byte(fd[1]);
	MUST_EQ(syscall(__NR_io_uring_enter, u.fd, 0, 1, IORING_ENTER_GETEVENTS,
			NULL, 0), 0);
	MUST(completed(&u));
	cqe = (struct io_uring_cqe *)(u.rings + u.p.cq_off.cqes);
	CHECK_EQ(cqe->res, POLLIN);
	close(u.fd);
	close_queue(&q);
}

static void watched_queue_may_be_closed(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd[2], i;
	struct queue q;

	for (i = 0; i < 20; i++) {
		open_queue(&q, 0);
		open_pipe(fd);
		MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 0), 0);
		MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, q.fd, &ev), 0);
		put_byte(fd[1]);
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
		close_queue(&q);
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
		close(fd[0]);
		close(fd[1]);
	}
}

static const struct test_case cases[] = {
	TEST(queue_refuses_queue_epoll_and_uring),
	TEST(cycle_by_epoll_cannot_be_built),
	TEST_EACH(poll_sees_pending_events),
	TEST(poll_sees_unread_entries),
	TEST(poll_sees_level_watches_that_stay_ready),
	TEST(event_wakes_poll),
	TEST_EACH(event_wakes_epoll),
	TEST(event_wakes_a_chain_of_epolls),
	TEST(event_completes_a_poll_of_io_uring),
	TEST(watched_queue_may_be_closed),
	{}
};

const struct test_suite nesting_suite = { .name = "nesting", .cases = cases };
