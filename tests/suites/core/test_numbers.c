// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors that are closed before their watch is removed, and what gets their numbers
 *
 *	watch of number n; close n; then
 *	  the queue needs a descriptor	its source works, n has no event
 *	  another file is opened	n has its events alone
 *	  REMOVE, MODIFY, READY of n	is refused, and changes nothing else
 *	  a call takes events		n has none, also of what it found before
 *
 * Queues of the kernel need no descriptors. On the others these are the library's, which
 * get the lowest number, as those of all do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "helpers.h"
#include "inode.h"
#include "pairs.h"
#include "proc.h"
#include "signals.h"
#include "timers.h"

#define DEAD	1	/* user value of the watch whose descriptor was closed */
#define OTHER	2
#define LIVE	(SIGUSR1 + 100)
#define NR_DEAD	3	/* of all sources SIGNAL takes most descriptors */

/* Sources for which the library opens descriptors */
enum source { SRC_TIMER, SRC_INODE, SRC_SIGNAL, SRC_PROC, SRC_TWICE, NR_SOURCES };

/* What has become of the event of the watch when its descriptor is closed */
enum before { NO_EVENT, TAKEN, FOUND, NR_BEFORE };

/* What is done by the number of the closed one */
enum deed { JUST_LOOK, DO_REMOVE, DO_MODIFY, DO_READY, NR_DEEDS };

struct scene {
	struct queue	q;
	int		dir;
	int		other[2];
	int		twice[2];
	int		fd[NR_DEAD][2];	/* fd[][0] are watched, and closed */
	struct child	child;
};

static int request(int queue, uint32_t cmd, uint32_t type, int fd, uint64_t user)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, fd, RECV, 0, user);
	ev.type = type;
	return kevent_ctl_one(queue, cmd, &ev);
}

/* What the program has not read yet is its own: entries outlive their watches. */
static void forget_entries(struct queue *q)
{
	struct ukevent ev;

	while (q->size && kevent_ring_next(q->ring, q->size, &ev))
		;
}

/* A call beside a sleeper has the library look at level watches by itself from then on. */
static void share_queue(struct queue *q)
{
	struct waiter w;

	MUST_EQ(add_user(q->fd, 9, 1, ONESHOT, OTHER), 0);
	start_waiter(&w, q, 1);
	CHECK_NO_EVENT(q);
	MUST_EQ(mark_user(q->fd, 9, 1), 1);
	CHECK_EQ(join_waiter(&w), 1);
	forget_entries(q);
}

static void add_dead(struct scene *s, bool ready)
{
	int i;

	for (i = 0; i < NR_DEAD; i++) {
		open_pipe(s->fd[i]);
		MUST_EQ(add_pipe(s->q.fd, s->fd[i][0], RECV, 0, DEAD), 0);
		if (ready)
			put_byte(s->fd[i][1]);
	}
}

/* The pipes are last: no number below that of their read ends is free. */
static void open_scene(struct scene *s, uint32_t size, enum before before, bool shared)
{
	struct ukevent ev;
	int i;

	open_queue(&s->q, size);
	if (shared)
		share_queue(&s->q);
	s->dir = open_dir(".");
	spawn(&s->child, 0);
	open_pipe(s->other);
	open_pipe(s->twice);
	add_dead(s, before != NO_EVENT);
	for (i = 0; before == TAKEN && i < NR_DEAD; i++) {
		MUST_EVENT(&s->q, &ev);
		CHECK_EQ(ev.ptr, DEAD);
	}
	if (before != FOUND)
		return;
	put_byte(s->other[1]);
	MUST_EQ(add_pipe(s->q.fd, s->other[0], RECV, ET | HAND_BACK, OTHER), 1);
}

static void close_dead(struct scene *s)
{
	int i;

	for (i = 0; i < NR_DEAD; i++)
		MUST_EQ(close(s->fd[i][0]), 0);
	forget_entries(&s->q);
}

static void close_scene(struct scene *s, enum source source)
{
	int i;

	if (source != SRC_PROC)
		let_go(&s->child);
	CHECK_EQ(reap(&s->child), 0);
	unlink("new");
	for (i = 0; i < NR_DEAD; i++)
		close(s->fd[i][1]);
	close_pair(s->twice);
	close_pair(s->other);
	close(s->dir);
	close_queue(&s->q);
}

static void add_source(struct scene *s, enum source source)
{
	int kq = s->q.fd;

	switch (source) {
	case SRC_TIMER:
		MUST_EQ(add_timer(kq, MS, NONE, 0, 0, LIVE), 0);
		break;
	case SRC_INODE:
		MUST_EQ(add_inode(kq, s->dir, CREATE, 0, LIVE), 0);
		break;
	case SRC_SIGNAL:
		MUST_EQ(add_signal(kq, SIGUSR1, CONSUME, 0), 0);
		break;
	case SRC_PROC:
		MUST_EQ(add_proc(kq, s->child.pid, 0, LIVE), 0);
		break;
	default:
		MUST_EQ(add_poll(kq, s->twice[0], KEVENT_POLL_POLLPRI, 0, OTHER), 0);
		MUST_EQ(add_pipe(kq, s->twice[0], RECV, 0, LIVE), 0);
	}
}

static void cause_event(struct scene *s, enum source source)
{
	if (source == SRC_INODE)
		touch("new");
	else if (source == SRC_SIGNAL)
		MUST_EQ(kill(getpid(), SIGUSR1), 0);
	else if (source == SRC_PROC)
		let_go(&s->child);
	else if (source == SRC_TWICE)
		put_byte(s->twice[1]);
}

/* The library has the number, or nobody: so no error is the same everywhere. */
static void do_deed(struct scene *s, enum deed deed)
{
	static const uint32_t cmds[] = {
		0, KEVENT_CTL_REMOVE, KEVENT_CTL_MODIFY, KEVENT_CTL_READY
	};

	int i;

	for (i = 0; deed != JUST_LOOK && i < NR_DEAD; i++)
		CHECK(request(s->q.fd, cmds[deed], KEVENT_PIPE, s->fd[i][0], DEAD) < 0);
}

static void try_source(enum source source, uint32_t size, enum before before,
		       enum deed deed, bool shared)
{
	unsigned int i, times = source == SRC_TIMER ? 3 : 1;
	struct ukevent ev;
	struct scene s = {};

	open_scene(&s, size, before, shared);
	close_dead(&s);
	add_source(&s, source);
	CHECK_EQ(fcntl(s.fd[0][0], F_GETFD) >= 0, on_fallback());
	do_deed(&s, deed);
	cause_event(&s, source);
	for (i = 0; i < times; i++) {
		MUST_EVENT(&s.q, &ev);
		CHECK_EQ(ev.ptr, LIVE);
	}
	close_scene(&s, source);
}

static void each_try(enum source source)
{
	unsigned int before, deed;

	enter_tmpfs();
	handle(SIGUSR1, count_signal);
	for (before = 0; before < NR_BEFORE; before++) {
		for (deed = 0; deed < NR_DEEDS; deed++) {
			try_source(source, 0, before, deed, false);
			try_source(source, 0, before, deed, true);
			try_source(source, 8, before, deed, false);
			try_source(source, 8, before, deed, true);
		}
	}
}

static void timer_gets_the_number(void)
{
	each_try(SRC_TIMER);
}

static void inode_gets_the_number(void)
{
	each_try(SRC_INODE);
}

static void signal_gets_the_number(void)
{
	each_try(SRC_SIGNAL);
}

static void process_gets_the_number(void)
{
	each_try(SRC_PROC);
}

static void second_watch_gets_the_number(void)
{
	each_try(SRC_TWICE);
}

/* Two watches of a descriptor end with it; a request about one leaves the new file's alone. */
static void other_type_gets_the_number(void)
{
	static const uint32_t cmds[] = {
		KEVENT_CTL_REMOVE, KEVENT_CTL_MODIFY, KEVENT_CTL_READY
	};
	struct ukevent ev;
	struct queue q;
	unsigned int i;
	int fd[2], sock[2];

	open_queue(&q, 0);
	for (i = 0; i < 2 * ARRAY_SIZE(cmds); i++) {
		open_pipe(fd);
		/* One of them is in the second instance of the library. */
		MUST_EQ(i % 2 ? 0 : add_pipe(q.fd, fd[0], RECV, 0, DEAD), 0);
		MUST_EQ(add_poll(q.fd, fd[0], IN, 0, DEAD), 0);
		MUST_EQ(i % 2 ? add_pipe(q.fd, fd[0], RECV, 0, DEAD) : 0, 0);
		put_byte(fd[1]);
		unix_pair(sock);
		MUST_EQ(dup2(sock[0], fd[0]), fd[0]);
		close(sock[0]);
		MUST_EQ(add_socket(q.fd, fd[0], RECV, 0, LIVE), 0);
		CHECK_EQ(request(q.fd, cmds[i / 2], KEVENT_POLL, fd[0], DEAD), -ENOENT);
		CHECK(request(q.fd, cmds[i / 2], KEVENT_PIPE, fd[0], DEAD) < 0);
		CHECK_NO_EVENT(&q);
		put_byte(sock[1]);
		MUST_EVENT(&q, &ev);
		CHECK_EQ(ev.ptr, LIVE);
		MUST_EQ(remove_file(q.fd, KEVENT_SOCKET, fd[0]), 0);
		close_pair(fd);
		close(sock[1]);
	}
	close_queue(&q);
}

/* Such a file is asked by poll(2) what has happened to it. */
static void file_that_tells_once_loses_the_number(void)
{
	struct ukevent ev;
	struct queue q;
	int fd, pipe[2];

	enter_tmpfs();
	MUST_EQ(mkdir("m", 0700), 0);
	open_queue(&q, 8);
	fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLPRI, 0, DEAD), 0);
	MUST_EQ(mount("none", "m", "tmpfs", 0, NULL), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, DEAD);
	close(fd);
	open_pipe(pipe);
	MUST_EQ(pipe[0], fd);
	close(pipe[1]);		/* its reader has a condition that all watches report */
	CHECK_NO_EVENT(&q);
	MUST_EQ(add_poll(q.fd, pipe[0], KEVENT_POLL_POLLPRI, 0, LIVE), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, LIVE);
	close(pipe[0]);
	close_queue(&q);
}

/* Events that nobody has taken yet when their descriptor is closed */

/* What has left them in the queue */
enum waiting { FOR_NOTHING, FOR_ADD, FOR_A_FULL_RING, FOR_A_SMALL_RING, NR_WAITING };

static const struct kind {
	uint32_t	type;
	uint32_t	flags;
	const char	*path;	/* of the file; NULL: a pipe */
} kinds[] = {
	{ KEVENT_PIPE, 0, NULL },
	{ KEVENT_PIPE, ET, NULL },
	{ KEVENT_PIPE, ONESHOT, NULL },
	{ KEVENT_PIPE, ET | ONESHOT, NULL },
	{ KEVENT_PIPE, ET | DISPATCH, NULL },
	{ KEVENT_PIPE, ET | KEVENT_REQ_LAST_CHECK, NULL },
	{ KEVENT_POLL, 0, "/dev/null" },
	{ KEVENT_POLL, ET, "/dev/null" },
	{ KEVENT_POLL, ET | ONESHOT, "/dev/null" },
	{ KEVENT_POLL, 0, "file" },
	{ KEVENT_POLL, ET, "file" },
	{ KEVENT_POLL, 0, "/proc/self/mounts" },
	{ KEVENT_POLL, ET, "/proc/self/mounts" },
	{ KEVENT_INODE, 0, "file" },
	{ KEVENT_INODE, ONESHOT, "file" },
};

static int open_kind(const struct kind *kind, int *writer)
{
	int fd[2] = { -1, -1 };

	if (!kind->path)
		open_pipe(fd);
	else if (!strcmp(kind->path, "file"))
		fd[0] = open_file("file");
	else
		fd[0] = open(kind->path, O_RDONLY | O_CLOEXEC);
	MUST(fd[0] >= 0);
	*writer = fd[1];
	return fd[0];
}

static int add_kind(int kq, const struct kind *kind, int fd, uint64_t user)
{
	if (kind->type == KEVENT_PIPE)
		return add_pipe(kq, fd, RECV, kind->flags, user);
	if (kind->type == KEVENT_POLL)
		return add_poll(kq, fd, IN, kind->flags, user);
	return add_inode(kq, fd, MODIFY, kind->flags, user);
}

static void make_ready(const struct kind *kind, int writer)
{
	if (kind->type == KEVENT_PIPE)
		put_byte(writer);
	else if (kind->type == KEVENT_INODE)
		write_path("file");
}

/* The kernel may have stored them before. */
static void take_two(struct queue *q)
{
	MUST(wait_ring(q, 2, 0) >= 0);
	MUST_EQ(kevent_ring_count(q->ring, q->size), 2);
}

static void fill_ring(struct queue *q)
{
	int i;

	for (i = 0; i < 2; i++) {
		MUST_EQ(add_user(q->fd, i, 1, ONESHOT, OTHER), 0);
		MUST_EQ(mark_user(q->fd, i, 1), 1);
	}
	take_two(q);
}

static void leave_waiting(struct queue *q, enum waiting waiting, const int other[2])
{
	if (waiting == FOR_ADD) {
		put_byte(other[1]);
		MUST_EQ(add_pipe(q->fd, other[0], RECV, ET | HAND_BACK, OTHER), 1);
	} else if (waiting == FOR_A_FULL_RING) {
		MUST(wait_ring(q, 2, 1) >= 0);
	} else if (waiting == FOR_A_SMALL_RING) {
		take_two(q);
	}
}

static void try_waiting(const struct kind *kind, enum waiting waiting)
{
	int fd[3], writer[3], other[2], i;
	struct queue q;

	open_queue(&q, 2);
	open_pipe(other);
	if (waiting == FOR_A_FULL_RING)
		fill_ring(&q);
	for (i = 0; i < 3; i++) {
		fd[i] = open_kind(kind, &writer[i]);
		MUST_EQ(add_kind(q.fd, kind, fd[i], DEAD), 0);
	}
	for (i = 0; i < 3; i++)
		make_ready(kind, writer[i]);
	leave_waiting(&q, waiting, other);
	for (i = 0; i < 3; i++) {
		close(fd[i]);
		if (writer[i] >= 0)
			close(writer[i]);
	}
	forget_entries(&q);
	CHECK_NO_EVENT(&q);
	close_pair(other);
	close_queue(&q);
}

static void event_waits_no_longer_than_its_descriptor(void)
{
	unsigned int i, waiting;

	enter_tmpfs();
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		for (waiting = 0; waiting < NR_WAITING; waiting++)
			try_waiting(&kinds[i], waiting);
}

/* The same file, opened again */

static void write_to(const struct kind *kind, int fd)
{
	if (kind->type == KEVENT_INODE)
		write_path("file");
	else if (!strcmp(kind->path, "fifo"))
		put_byte(fd);
}

static int open_again(const struct kind *kind, int number)
{
	int fd = open(kind->path, O_RDWR | O_CLOEXEC);

	MUST(fd >= 0);
	if (number >= 0 && fd != number) {
		MUST_EQ(dup2(fd, number), number);
		close(fd);
		fd = number;
	}
	return fd;
}

/* The watch went with the descriptor: it has no event, and no request finds it. */
static void try_again(const struct kind *kind, const uint32_t *cmd, uint32_t size)
{
	struct queue q[2];
	struct ukevent ev;
	int fd, i;

	fd = open_again(kind, -1);
	for (i = 0; i < 2; i++) {
		open_queue(&q[i], size);
		MUST_EQ(add_kind(q[i].fd, kind, fd, DEAD), 0);
	}
	close(fd);
	for (i = 0; i < 2; i++)
		forget_entries(&q[i]);
	MUST_EQ(open_again(kind, fd), fd);
	write_to(kind, fd);
	for (i = 0; i < 2; i++) {
		if (cmd)
			CHECK(request(q[i].fd, *cmd, kind->type, fd, DEAD) < 0);
		else
			CHECK_NO_EVENT(&q[i]);
		CHECK_EQ(add_kind(q[i].fd, kind, fd, LIVE), 0);
		CHECK_EQ(add_kind(q[i].fd, kind, fd, LIVE), -EEXIST);
	}
	write_to(kind, fd);
	for (i = 0; i < 2; i++) {
		MUST_EVENT(&q[i], &ev);
		CHECK_EQ(ev.ptr, LIVE);
	}
	close(fd);
	close_queue(&q[0]);
	close_queue(&q[1]);
}

static void file_that_is_opened_again_is_another(void)
{
	static const struct kind again[] = {
		{ KEVENT_POLL, 0, "/dev/null" },
		{ KEVENT_POLL, ET, "/dev/null" },
		{ KEVENT_POLL, 0, "file" },
		{ KEVENT_POLL, 0, "fifo" },
		{ KEVENT_INODE, 0, "file" },
		{ KEVENT_INODE, ET, "file" },
	};
	static const uint32_t cmds[] = {
		KEVENT_CTL_REMOVE, KEVENT_CTL_MODIFY, KEVENT_CTL_READY
	};
	unsigned int i, cmd;

	enter_tmpfs();
	touch("file");
	MUST_EQ(mkfifo("fifo", 0600), 0);
	for (i = 0; i < ARRAY_SIZE(again); i++) {
		try_again(&again[i], NULL, 0);
		try_again(&again[i], NULL, 8);
		for (cmd = 0; cmd < ARRAY_SIZE(cmds); cmd++)
			try_again(&again[i], &cmds[cmd], 0);
	}
}

/* Another file has the device and the inode number of a watched one, whose tmpfs has gone. */
static void file_of_a_later_file_system_is_another(void)
{
	const struct kind kind = { KEVENT_INODE, 0, "m/file" };
	struct ukevent ev;
	struct queue q;
	int fd, i;

	enter_tmpfs();
	MUST_EQ(mkdir("m", 0700), 0);
	open_queue(&q, 0);
	for (i = 0; i < 3; i++) {
		MUST_EQ(mount("none", "m", "tmpfs", 0, NULL), 0);
		touch("m/file");
		fd = open_again(&kind, -1);
		MUST_EQ(add_kind(q.fd, &kind, fd, i), 0);
		write_path("m/file");
		MUST_EVENT(&q, &ev);
		CHECK_EQ(ev.ptr, i);
		close(fd);
		MUST_EQ(umount("m"), 0);
	}
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(timer_gets_the_number),
	TEST(inode_gets_the_number),
	TEST(signal_gets_the_number),
	TEST(process_gets_the_number),
	TEST(second_watch_gets_the_number),
	TEST(other_type_gets_the_number),
	TEST(file_that_tells_once_loses_the_number),
	TEST(event_waits_no_longer_than_its_descriptor),
	TEST(file_that_is_opened_again_is_another),
	TEST(file_of_a_later_file_system_is_another),
	{}
};

const struct test_suite numbers_suite = {
	.name = "numbers",
	.cases = cases,
};
