// SPDX-License-Identifier: GPL-2.0
/*
 * What the suites of nesting share
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sets.h"

/* Sets */

void open_set(struct set *s, bool is_queue)
{
	s->is_queue = is_queue;
	if (is_queue) {
		open_queue(&s->q, 0);
		return;
	}
	s->q = (struct queue){ .fd = epoll_create1(EPOLL_CLOEXEC) };
	MUST(s->q.fd >= 0);
}

void close_set(struct set *s)
{
	if (s->is_queue)
		close_queue(&s->q);
	else
		close(s->q.fd);
}

int set_add(struct set *s, int fd, uint32_t flags, uint64_t user)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = user };

	if (s->is_queue)
		return add_poll(s->q.fd, fd, KEVENT_POLL_POLLIN,
				flags | KEVENT_REQ_WAKEUP_ALL, user);
	return epoll_ctl(s->q.fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int set_remove(struct set *s, int fd)
{
	if (s->is_queue)
		return remove_file(s->q.fd, KEVENT_POLL, fd);
	return epoll_ctl(s->q.fd, EPOLL_CTL_DEL, fd, NULL) ? -errno : 0;
}

/* poll() */

int poll_now(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLRDNORM };

	return poll(&pfd, 1, 0) ? pfd.revents : 0;
}

long poll_forever(void *fd)
{
	struct pollfd pfd = { .fd = *(int *)fd, .events = POLLIN };

	return poll(&pfd, 1, -1) == 1 ? pfd.revents : -1;
}

/* io_uring */

int open_uring(struct io_uring_params *p)
{
	memset(p, 0, sizeof(*p));
	return syscall(__NR_io_uring_setup, 4, p);
}

void map_uring(struct uring *u)
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

void close_uring(struct uring *u)
{
	close(u->fd);
}

static uint32_t *uring_word(struct uring *u, uint32_t offset)
{
	return (uint32_t *)(u->rings + offset);
}

static void uring_submit(struct uring *u)
{
	uint32_t *tail = uring_word(u, u->p.sq_off.tail);
	uint32_t mask = *uring_word(u, u->p.sq_off.ring_mask);

	uring_word(u, u->p.sq_off.array)[*tail & mask] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	MUST_EQ(syscall(__NR_io_uring_enter, u->fd, 1, 0, 0, NULL, 0), 1);
}

void submit_poll(struct uring *u, int fd, bool multishot)
{
	memset(&u->sqes[0], 0, sizeof(u->sqes[0]));
	u->sqes[0].opcode = IORING_OP_POLL_ADD;
	u->sqes[0].fd = fd;
	u->sqes[0].poll32_events = POLLIN;
	u->sqes[0].len = multishot ? IORING_POLL_ADD_MULTI : 0;
	uring_submit(u);
}

void submit_nop(struct uring *u)
{
	memset(&u->sqes[0], 0, sizeof(u->sqes[0]));
	u->sqes[0].opcode = IORING_OP_NOP;
	uring_submit(u);
}

void enter_uring(struct uring *u)
{
	MUST_EQ(syscall(__NR_io_uring_enter, u->fd, 0, 0,
			IORING_ENTER_GETEVENTS, NULL, 0), 0);
}

static uint32_t unread(struct uring *u)
{
	return __atomic_load_n(uring_word(u, u->p.cq_off.tail),
			       __ATOMIC_ACQUIRE) -
	       *uring_word(u, u->p.cq_off.head);
}

bool completed(struct uring *u)
{
	return unread(u);
}

unsigned int take_completions(struct uring *u, int *res)
{
	uint32_t *head = uring_word(u, u->p.cq_off.head), nr = unread(u);
	uint32_t mask = *uring_word(u, u->p.cq_off.ring_mask);
	struct io_uring_cqe *cqes =
		(struct io_uring_cqe *)(u->rings + u->p.cq_off.cqes);

	if (nr && res)
		*res = cqes[(*head + nr - 1) & mask].res;
	__atomic_store_n(head, *head + nr, __ATOMIC_RELEASE);
	return nr;
}
