// SPDX-License-Identifier: GPL-2.0
/* The longest stretch with interrupts off: a file, or a folder, is watched: see worst.h */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers.h"
#include "timers.h"
#include "worst.h"

#define FIFO_FILES	20000	/* of one FIFO */

/* Adds as many as possible: one per queue, then several by their types. */
static void watch_in_queues(struct worst *w, int fd, bool pipe, uint32_t flags)
{
	unsigned int i;

	for (i = 0; i < QUEUES; i++) {
		struct queue *q = new_queue(w, 8);
		int err = pipe ? add_pipe(q->fd, fd, KEVENT_SOCKET_RECV, flags, i) :
				 add_poll(q->fd, fd, KEVENT_POLL_POLLIN, flags, i);

		if (!added(w, err))
			return;
		if (pipe && !added(w, add_poll(q->fd, fd, KEVENT_POLL_POLLIN,
					       flags, i)))
			return;
	}
}

/* By a fault a wake-up finds out that the memory of a ring is gone. */
static void drop_rings(struct worst *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_queues; i++)
		MUST_EQ(madvise(w->queues[i].ring, w->queues[i].bytes,
				MADV_DONTNEED), 0);
}

/* One file, many watches */

enum pipe_case { PLAIN, SLEEPERS_TOO, NO_MEMORY };

static void one_pipe(struct worst *w, uint32_t flags, enum pipe_case what)
{
	int fd[2];

	open_pipe(fd);
	if (what == SLEEPERS_TOO)
		poll_in_threads(&fd[0]);
	without(write_byte, &fd[1]);
	take_bytes(fd[0]);
	watch_in_queues(w, fd[0], true, flags);
	if (what == SLEEPERS_TOO)
		sleep_in_queues(w);
	if (what == NO_MEMORY)
		drop_rings(w);
	with(write_byte, &fd[1]);
	finish(w);
}

static void pipe_wakes_all(void)
{
	struct worst w;

	start(&w, "pipe, all are told");
	one_pipe(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, PLAIN);
}

static void pipe_wakes_all_without_memory(void)
{
	struct worst w;

	start(&w, "pipe, all are told, rings are gone");
	one_pipe(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, NO_MEMORY);
}

static void pipe_wakes_all_sleepers(void)
{
	struct worst w;

	start(&w, "pipe, all are told, sleepers");
	one_pipe(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, SLEEPERS_TOO);
}

static void pipe_takes_turns(void)
{
	struct worst w;

	start(&w, "pipe, turns");
	one_pipe(&w, KEVENT_REQ_ET, PLAIN);
}

static void socket_wakes_all(void)
{
	struct worst w;
	int fd[2];

	start(&w, "socket, all are told");
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	without(write_byte, &fd[1]);
	take_bytes(fd[0]);
	watch_in_queues(&w, fd[0], false,
			KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL);
	with(write_byte, &fd[1]);
	finish(&w);
}

static void eventfd_wakes_all(void)
{
	struct worst w;
	int fd;

	start(&w, "eventfd, all are told");
	fd = eventfd(0, EFD_NONBLOCK);
	without(write_byte, &fd);
	take_bytes(fd);
	watch_in_queues(&w, fd, false, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL);
	with(write_byte, &fd);
	finish(&w);
}

/* A FIFO is opened again and again: many files, but one wait queue. */
static int open_fifo(const char *path)
{
	int fd;

	unlink(path);
	MUST_EQ(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_NONBLOCK);
	MUST(fd >= 0);
	return fd;
}

static void one_fifo(struct worst *w, uint32_t flags, bool memory)
{
	const char *path = "/tmp/worst";
	int fd = open_fifo(path), more;
	unsigned int i;

	without(write_byte, &fd);
	take_bytes(fd);
	for (i = 0; i < FIFO_FILES; i++) {
		/* A queue can have each file only once. */
		if (i % 64 == 0 && w->nr_queues < 500)
			new_queue(w, 8);
		more = open(path, O_RDONLY | O_NONBLOCK);
		if (more < 0 ||
		    !added(w, add_pipe(last_queue(w)->fd, more,
				       KEVENT_SOCKET_RECV, flags, i)))
			break;
	}
	if (!memory)
		drop_rings(w);
	with(write_byte, &fd);
	finish(w);
	unlink(path);
}

static void fifo_with_many_files(void)
{
	struct worst w;

	start(&w, "FIFO, many files");
	one_fifo(&w, KEVENT_REQ_ET, true);
}

static void fifo_with_many_files_wakes_all(void)
{
	struct worst w;

	start(&w, "FIFO, all are told");
	one_fifo(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, true);
}

static void fifo_with_many_files_without_memory(void)
{
	struct worst w;

	start(&w, "FIFO, all are told, rings are gone");
	one_fifo(&w, KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL, false);
}

/* Changes of files */

static void create_file(void *arg)
{
	close(openat(*(int *)arg, "file", O_CREAT | O_WRONLY, 0600));
	unlinkat(*(int *)arg, "file", 0);
}

static void inode_in_one_queue(void)
{
	struct worst w;
	int fd;

	start(&w, "INODE, one directory");
	fd = open_directory("/tmp/worst-dir");
	without(create_file, &fd);
	watch_directory(&w, "/tmp/worst-dir", false);
	with(create_file, &fd);
	finish(&w);
}

static void inode_in_many_queues(void)
{
	struct worst w;
	int fd;

	start(&w, "INODE, one directory, many queues");
	fd = open_directory("/tmp/worst-dirs");
	without(create_file, &fd);
	watch_directory(&w, "/tmp/worst-dirs", true);
	with(create_file, &fd);
	finish(&w);
}

static const struct test_case cases[] = {
	WORST(pipe_wakes_all),
	WORST(pipe_wakes_all_sleepers),
	WORST(pipe_wakes_all_without_memory),
	WORST(pipe_takes_turns),
	WORST(socket_wakes_all),
	WORST(eventfd_wakes_all),
	WORST(fifo_with_many_files),
	WORST(fifo_with_many_files_wakes_all),
	WORST(fifo_with_many_files_without_memory),
	WORST(inode_in_one_queue),
	WORST(inode_in_many_queues),
	{}
};

const struct test_suite worst_files_suite = {
	.name = "worst_files",
	.cases = cases,
	.only_by_name = true,
};
