// SPDX-License-Identifier: GPL-2.0
/*
 * Queues and files of an input
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "search.h"

#define RING_BYTES	(1 << 16)	/* 1023 slots at most */

struct wqueue queues[NR_OPENED];
struct wslot slots[NR_FILES];

void world_begin(void)
{
	unsigned int i;

	for (i = 0; i < NR_OPENED; i++)
		queues[i] = (struct wqueue){ .fd = -1 };
	for (i = 0; i < NR_FILES; i++)
		slots[i].fd = -1;
}

void queue_open(struct wqueue *q, uint32_t size)
{
	uint64_t began;

	while (KEVENT_RING_BYTES(size) > RING_BYTES)
		size /= 2;
	if (size && !q->ring)
		q->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (size)
		memset(q->ring, 0, KEVENT_RING_BYTES(size));
	q->size = size;
	q->added = 0;
	began = call_begins();
	q->fd = kevent_init(size ? q->ring : NULL, size, 0);
	call_ends(INIT, began, 1);
}

/* Queues are opened as they are used; each third one has no ring. */
struct wqueue *queue_of(unsigned int q, bool open)
{
	struct wqueue *wq = &queues[q % NR_OPENED];

	if (wq->fd < 0 && open)
		queue_open(wq, q % 3 ? 4u << q % 3 : 0);
	return wq->fd < 0 ? NULL : wq;
}

void queue_close(struct wqueue *q)
{
	uint64_t began;

	if (q->fd < 0)
		return;
	began = call_begins();
	close(q->fd);
	call_ends(CLOSE, began, q->added);
	q->fd = -1;
}

void fill(unsigned int x, int fd, enum kind kind)
{
	struct wslot *s = &slots[x % NR_FILES];

	if (s->fd >= 0)
		close(fd);
	else
		*s = (struct wslot){ fd, kind };
}

void close_slot(unsigned int x)
{
	struct wslot *s = &slots[x % NR_FILES];

	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void open_fifo(unsigned int x, unsigned int n)
{
	char path[60];

	snprintf(path, sizeof(path), "/tmp/kevent-search-fifo-%u", n % 4);
	mkfifo(path, 0666);
	fill(x, open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), KIND_PIPE_READ);
}

void open_same(unsigned int x, unsigned int n)
{
	char path[60];

	snprintf(path, sizeof(path), "/tmp/kevent-search-file-%u", n % 4);
	fill(x, open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), KIND_FILE);
}

void open_slot(unsigned int x, enum kind kind)
{
	int fd[2];

	switch (kind) {
	case KIND_SOCKET:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
			return;
		break;
	case KIND_PIPE_READ:
	case KIND_PIPE_WRITE:
		if (pipe2(fd, O_NONBLOCK))
			return;
		break;
	case KIND_FILE:
		open_same(x, x);
		return;
	default:
		fill(x, eventfd(0, EFD_NONBLOCK), KIND_EVENTFD);
		return;
	}
	fill(x, fd[0], kind == KIND_SOCKET ? kind : KIND_PIPE_READ);
	fill(x + 1, fd[1], kind == KIND_SOCKET ? kind : KIND_PIPE_WRITE);
}
