// SPDX-License-Identifier: GPL-2.0
/*
 * A process without the ring has other memory at the address of the ring, which is
 * writable and present. The kernel must not write there, and the event must reach
 * the process that has the ring.
 *
 * Memory that fork() has made read-only does not test that: a store there faults,
 * and the event is queued even if the kernel takes the memory for the ring.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers.h"

#define SIZE	8
#define FILL	0xa5	/* a position of a ring beyond the newest entry */

enum memory { ANONYMOUS, ANOTHER_FILE, NR_MEMORY };

/* Maps writable memory of the caller over the ring. */
static bool cover(struct queue *q, enum memory kind)
{
	int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;

	if (kind == ANOTHER_FILE) {
		flags = MAP_FIXED | MAP_SHARED;
		fd = memfd_create("other", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, q->bytes))
			return false;
	}
	if (mmap(q->ring, q->bytes, PROT_READ | PROT_WRITE, flags, fd, 0) !=
	    (void *)q->ring)
		return false;
	memset(q->ring, FILL, q->bytes);
	return true;
}

static bool untouched(const void *from, size_t bytes)
{
	const unsigned char *p = from;

	while (bytes--)
		if (*p++ != FILL)
			return false;
	return true;
}

/* Files whose wake-ups store events */

static void open_pipe_pair(int fd[2])
{
	open_pipe(fd);
}

static void open_unix_pair(int fd[2])
{
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}

static int open_listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST_EQ(listen(fd, 8), 0);
	return fd;
}

/* A new connection, or -1 */
static int try_connect(int listener)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to;
	socklen_t len = sizeof(to);

	getsockname(listener, (struct sockaddr *)&to, &len);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(fd, (struct sockaddr *)&to, sizeof(to)) ? -1 : fd;
}

/* A soft interrupt delivers the data; it runs in the sender. */
static void open_inet_pair(int fd[2])
{
	int listener = open_listener();

	fd[1] = try_connect(listener);
	MUST(fd[1] >= 0);
	fd[0] = accept(listener, NULL, NULL);
	MUST(fd[0] >= 0);
	close(listener);
}

static const struct kind {
	void		(*open)(int fd[2]);
	int		(*add)(int kq, int fd, uint32_t event, uint32_t flags,
			       uint64_t user);
	uint32_t	flags;
} kinds[] = {
	{ open_pipe_pair, add_pipe, ET },
	{ open_pipe_pair, add_pipe, 0 },
	{ open_pipe_pair, add_pipe, ET | KEVENT_REQ_DISPATCH },
	{ open_pipe_pair, add_pipe, KEVENT_REQ_DISPATCH },
	{ open_pipe_pair, add_pipe, ET | KEVENT_REQ_WAKEUP_ALL },
	{ open_unix_pair, add_socket, ET },
	{ open_unix_pair, add_socket, 0 },
	{ open_inet_pair, add_socket, ET },
	{ open_inet_pair, add_socket, 0 },
};

struct outsider {
	struct queue	*q;
	int		fd;
	enum memory	memory;
};

static int write_with_own_memory(void *arg)
{
	struct outsider *o = arg;

	CHILD_MUST(cover(o->q, o->memory));
	CHILD_MUST(write(o->fd, "", 1) == 1);
	CHILD_MUST(untouched(o->q->ring, o->q->bytes));
	return 0;
}

static void must_report(struct queue *q, uint64_t user)
{
	struct ukevent ev;

	CHECK_EQ(next_event(q, &ev, PATIENCE_MS), 1);
	CHECK_EQ(ev.ptr, user);
	CHECK_NO_EVENT(q);
}

/*
 * @hit: the queue has stored an event before, so it knows the ring's address.
 */
static void check_write(const struct kind *kind, enum memory memory, bool hit)
{
	struct outsider o;
	struct queue q;
	int fd[2];

	open_queue(&q, SIZE);
	kind->open(fd);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, 5), 0);
	if (hit)
		must_report(&q, 5);
	else
		CHECK_EQ(remove_file(q.fd, KEVENT_USER, 1), 0);
	MUST_EQ(kind->add(q.fd, fd[0], RECV, kind->flags, 7), 0);
	o = (struct outsider){ &q, fd[1], memory };
	CHECK_EQ(join_child(start_child(write_with_own_memory, &o),
			    PATIENCE_MS), 0);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 0);
	if (!(kind->flags & (ET | KEVENT_REQ_DISPATCH)))
		CHECK_EQ(wait_ring(&q, SIZE, 0), 1);
	else
		must_report(&q, 7);
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

static void wake_up_leaves_own_memory_alone(void)
{
	enum memory memory;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		for (memory = 0; memory < NR_MEMORY; memory++) {
			check_write(&kinds[i], memory, false);
			check_write(&kinds[i], memory, true);
		}
}

/* What a child has that attaches the ring at an address of its own */
struct attached {
	struct queue	q;	/* the parent's ring */
	struct queue	there;	/* the child's; other memory of the parent */
	int		fd[2];
	int		step[2];
};

/* Turns: the child's end is step[1], the parent's is step[0]. */
static bool pass_turn(int fd)
{
	return write(fd, "", 1) == 1;
}

static bool await_turn(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static void open_attached(struct attached *a)
{
	a->q = (struct queue){ .size = SIZE, .bytes = 4096 };
	a->q.ring = mmap(NULL, a->q.bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST((void *)a->q.ring != MAP_FAILED);
	a->q.fd = kevent_init(a->q.ring, SIZE, 0);
	MUST(a->q.fd >= 0);
	open_pipe(a->fd);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a->step), 0);
	a->there = a->q;
	a->there.ring = mmap(NULL, a->q.bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(cover(&a->there, ANONYMOUS));
}

/* Moves the child's mapping of the ring and puts other memory in its place. */
static bool move_ring(struct attached *a)
{
	return mremap(a->q.ring, a->q.bytes, a->q.bytes,
		      MREMAP_MAYMOVE | MREMAP_FIXED,
		      a->there.ring) == (void *)a->there.ring &&
	       cover(&a->q, ANONYMOUS) && !attach_ring(&a->there);
}

/* The parent makes its other memory writable again after fork(). */
static pid_t start_attached(int (*fn)(void *arg), struct attached *a)
{
	pid_t pid = start_child(fn, a);

	MUST(await_turn(a->step[0]));
	MUST(cover(&a->there, ANONYMOUS));
	return pid;
}

/* A write of the child stores an event at the child's address of the ring. */
static int hit(struct attached *a, struct queue *q)
{
	struct ukevent ev;

	touch_ring(q);
	CHILD_MUST(write(a->fd[1], "", 1) == 1);
	CHILD_MUST(kevent_ring_next(q->ring, SIZE, &ev));
	CHILD_MUST(ev.ptr == 7);
	return 0;
}

/* Parent and child take turns: each time the other one used the ring last. */
static int use_ring_elsewhere(void *arg)
{
	struct attached *a = arg;
	struct ukevent ev;
	int i;

	CHILD_MUST(move_ring(a));
	for (i = 0; i < 3; i++) {
		CHILD_MUST(pass_turn(a->step[1]) && await_turn(a->step[1]));
		/* A hit after one of the parent */
		CHILD_MUST(hit(a, &a->there) == 0);
		CHILD_MUST(untouched(a->q.ring, a->q.bytes));
		CHILD_MUST(pass_turn(a->step[1]) && await_turn(a->step[1]));
		/* A call after one of the parent */
		CHILD_MUST(mark_user(a->q.fd, 1, 1) == 1);
		CHILD_MUST(next_event(&a->there, &ev, 0) == 1);
		CHILD_MUST(ev.ptr == 9);
		CHILD_MUST(untouched(a->q.ring, a->q.bytes));
	}
	return 0;
}

static void ring_is_stored_where_each_process_has_it(void)
{
	struct attached a;
	struct ukevent ev;
	pid_t pid;
	int i;

	open_attached(&a);
	MUST_EQ(add_pipe(a.q.fd, a.fd[0], RECV, ET, 7), 0);
	MUST_EQ(add_user(a.q.fd, 1, 1, 0, 9), 0);
	pid = start_attached(use_ring_elsewhere, &a);
	close(a.step[1]);
	for (i = 0; i < 6; i++) {
		if (i)
			MUST(await_turn(a.step[0]));
		put_byte(a.fd[1]);
		MUST(kevent_ring_next(a.q.ring, SIZE, &ev));
		CHECK_EQ(ev.ptr, 7);
		MUST_EQ(mark_user(a.q.fd, 1, 1), 1);
		MUST_EQ(next_event(&a.q, &ev, 0), 1);
		CHECK_EQ(ev.ptr, 9);
		CHECK(untouched(a.there.ring, a.there.bytes));
		MUST(pass_turn(a.step[0]));
	}
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	close_queue(&a.q);
}

/* The kernel remembers an old address. The program gives the new one. */
static int move_and_write(void *arg)
{
	struct attached *a = arg;

	CHILD_MUST(attach_ring(&a->q) == 0);
	CHILD_MUST(hit(a, &a->q) == 0);
	CHILD_MUST(move_ring(a));
	CHILD_MUST(hit(a, &a->there) == 0);
	CHILD_MUST(untouched(a->q.ring, a->q.bytes));
	return 0;
}

static void moved_ring_leaves_the_old_place_alone(void)
{
	struct attached a;

	open_attached(&a);
	MUST_EQ(add_pipe(a.q.fd, a.fd[0], RECV, ET, 7), 0);
	CHECK_EQ(join_child(start_child(move_and_write, &a), PATIENCE_MS), 0);
	close_queue(&a.q);
}

/* The memory of a ring whose descriptor is closed, while others have the queue */

static int receive_ready(int sock, struct ukevent *ev)
{
	int fd = receive_fd(sock), ret = get_events(fd, 1, 1, 0, ev);

	close(fd);
	return ret;
}

/*
 * The program is done with the ring, and has other data there, before it closes the queue.
 * @waits: an event waits in the kernel.
 */
static void check_freed_first(const struct kind *kind, bool waits)
{
	struct queue q;
	int fd[2];

	open_queue(&q, SIZE);
	kind->open(fd);
	MUST_EQ(kind->add(q.fd, fd[0], RECV, kind->flags, 7), 0);
	if (waits)
		put_byte_from_outside(fd[1]);
	memset(q.ring, FILL, q.bytes);
	close(q.fd);
	CHECK(untouched(q.ring, q.bytes));
	munmap(q.ring, q.bytes);
	close(fd[0]);
	close(fd[1]);
}

static void ring_may_be_freed_before_the_close(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		note("kind %zu", i);
		check_freed_first(&kinds[i], false);
		check_freed_first(&kinds[i], true);
	}
}

/* A message has the queue when its only descriptor is closed. */
static void check_closed(const struct kind *kind)
{
	int fd[2], sock[2];
	struct ukevent ev;
	struct queue q;

	open_queue(&q, SIZE);
	kind->open(fd);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY | KEVENT_REQ_ONESHOT, 5), 0);
	must_report(&q, 5);
	MUST_EQ(kind->add(q.fd, fd[0], RECV, kind->flags, 7), 0);
	send_fd(sock[0], q.fd);
	memset(q.ring, FILL, q.bytes);
	close(q.fd);
	put_byte(fd[1]);
	CHECK(untouched(q.ring, q.bytes));
	CHECK_EQ(receive_ready(sock[1], &ev), 1);
	CHECK_EQ(ev.ptr, 7);
	CHECK(untouched(q.ring, q.bytes));
	munmap(q.ring, q.bytes);
	close(fd[0]);
	close(fd[1]);
	close(sock[0]);
	close(sock[1]);
}

static void closed_queue_leaves_memory_alone(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		check_closed(&kinds[i]);
}

/* The first event waits in the kernel; after a call all is as before. */
static void closed_copy_costs_a_call(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, SIZE);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 7), 0);
	put_byte(fd[1]);
	must_report(&q, 7);
	close(dup(q.fd));
	put_byte(fd[1]);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 0);
	must_report(&q, 7);
	put_byte(fd[1]);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 1);
	MUST_EVENT(&q, &ev);
	close(dup(q.fd));
	CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	put_byte(fd[1]);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 1);
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

/* A wait that began before another descriptor was closed gets its event. */
static void closed_copy_ends_no_wait(void)
{
	struct waiter w;
	struct queue q;
	int fd[2], copy;

	open_queue(&q, SIZE);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 7), 0);
	copy = dup(q.fd);
	start_waiter(&w, &q, SIZE);
	close(copy);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 1);
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

/*
 * A wait goes on when the last descriptor is closed. Its end is an error, as it has no ring any
 * more, and the event is for others.
 */
static void wait_outlives_the_descriptor(void)
{
	struct ukevent ev;
	int fd[2], sock[2];
	struct waiter w;
	struct queue q;

	open_queue(&q, SIZE);
	open_pipe(fd);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 7), 0);
	send_fd(sock[0], q.fd);
	start_waiter(&w, &q, SIZE);
	close(q.fd);
	memset(q.ring, FILL, q.bytes);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w), -EFAULT);
	put_byte(fd[1]);
	CHECK(untouched(q.ring, q.bytes));
	CHECK_EQ(receive_ready(sock[1], &ev), 1);
	CHECK_EQ(ev.ptr, 7);
	munmap(q.ring, q.bytes);
	close(fd[0]);
	close(fd[1]);
	close(sock[0]);
	close(sock[1]);
}

/* A process that had the ring closes its descriptor, and uses the address for something else. */
static int leave_and_write(void *arg)
{
	struct attached *a = arg;
	int other = dup(a->q.fd);

	CHILD_MUST(attach_ring(&a->q) == 0);
	CHILD_MUST(hit(a, &a->q) == 0);
	CHILD_MUST(kevent_commit(a->q.fd, 1, 0) == 0);
	close(other);
	close(a->q.fd);
	CHILD_MUST(cover(&a->q, ANONYMOUS));
	CHILD_MUST(write(a->fd[1], "", 1) == 1);
	CHILD_MUST(untouched(a->q.ring, a->q.bytes));
	return 0;
}

static void process_that_left_keeps_its_memory(void)
{
	struct attached a;

	open_attached(&a);
	MUST_EQ(add_pipe(a.q.fd, a.fd[0], RECV, ET, 7), 0);
	CHECK_EQ(join_child(start_child(leave_and_write, &a), PATIENCE_MS), 0);
	must_report(&a.q, 7);
	close_queue(&a.q);
}

/* The child made the last call with the ring before the event comes. */
static int wake_the_parent(void *arg)
{
	struct attached *a = arg;

	CHILD_MUST(move_ring(a));
	CHILD_MUST(pass_turn(a->step[1]) && await_turn(a->step[1]));
	CHILD_MUST(kevent_commit(a->q.fd, 0, 0) == 0);
	CHILD_MUST(mark_user(a->q.fd, 1, 1) == 1);
	CHILD_MUST(untouched(a->q.ring, a->q.bytes));
	return 0;
}

static void sleeper_finds_its_own_ring(void)
{
	struct attached a;
	struct ukevent ev;
	struct waiter w;
	pid_t pid;

	open_attached(&a);
	MUST_EQ(add_user(a.q.fd, 1, 1, 0, 9), 0);
	pid = start_attached(wake_the_parent, &a);
	start_waiter(&w, &a.q, SIZE);
	MUST(pass_turn(a.step[0]));
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK(untouched(a.there.ring, a.there.bytes));
	CHECK(kevent_ring_next(a.q.ring, SIZE, &ev));
	CHECK_EQ(ev.ptr, 9);
	close_queue(&a.q);
}

static int attach_and_leave_the_turn(void *arg)
{
	struct attached *a = arg;

	CHILD_MUST(move_ring(a));
	CHILD_MUST(hit(a, &a->there) == 0);
	CHILD_MUST(pass_turn(a->step[1]) && await_turn(a->step[1]));
	return 0;
}

/* Other memory at the ring's address in one process, and at that in another */
static int write_between(void *arg)
{
	struct attached *a = arg;

	CHILD_MUST(cover(&a->q, ANONYMOUS) && cover(&a->there, ANONYMOUS));
	CHILD_MUST(write(a->fd[1], "", 1) == 1);
	CHILD_MUST(wait_ring(&a->q, SIZE, 0) == -EXDEV);
	CHILD_MUST(wait_ring(&a->there, SIZE, 0) == -EXDEV);
	CHILD_MUST(untouched(a->q.ring, a->q.bytes));
	CHILD_MUST(untouched(a->there.ring, a->there.bytes));
	return 0;
}

static void one_that_attaches_does_not_do_so_for_others(void)
{
	struct attached a;
	pid_t pid;

	open_attached(&a);
	MUST_EQ(add_pipe(a.q.fd, a.fd[0], RECV, ET, 7), 0);
	pid = start_attached(attach_and_leave_the_turn, &a);
	CHECK_EQ(join_child(start_child(write_between, &a), PATIENCE_MS), 0);
	MUST(pass_turn(a.step[0]));
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	must_report(&a.q, 7);
	close_queue(&a.q);
}

/*
 * Connects until the task itself has stored the event. ksoftirqd, which may do the work of a
 * connection, leaves the event in the kernel: that connection does not count.
 */
static bool connect_for_entry(int listener, struct queue *q, struct ukevent *ev)
{
	uint64_t start = now_ns();

	while (try_connect(listener) >= 0) {
		if (kevent_ring_next(q->ring, SIZE, ev))
			return true;
		if (next_event(q, ev, PATIENCE_MS) != 1 || !patient(start, PATIENCE_MS) ||
		    close(accept(listener, NULL, NULL)))
			break;
	}
	return false;
}

/* An event has its amount, at whichever address it is stored. */
static int connect_and_look(void *arg)
{
	struct attached *a = arg;
	struct ukevent ev;

	CHILD_MUST(move_ring(a));
	touch_ring(&a->there);
	CHILD_MUST(connect_for_entry(a->fd[0], &a->there, &ev));
	CHILD_MUST(ev.ret_data[0] == KEVENT_SOCKET_ACCEPT);
	CHILD_MUST(ev.ret_data[1] == 2);
	return 0;
}

static void amount_is_reported_where_the_ring_is(void)
{
	struct attached a;
	struct ukevent ev;

	open_attached(&a);
	a.fd[0] = open_listener();
	MUST_EQ(add_socket(a.q.fd, a.fd[0], KEVENT_SOCKET_ACCEPT, ET, 7), 0);
	MUST(connect_for_entry(a.fd[0], &a.q, &ev));
	CHECK_EQ(ev.ret_data[1], 1);
	CHECK_EQ(join_child(start_child(connect_and_look, &a), PATIENCE_MS),
		 0);
	close_queue(&a.q);
}

/* Calls of a process that has the descriptor but not the ring */
static int call_with_own_memory(void *arg)
{
	struct outsider *o = arg;
	struct ukevent ev;
	int err;

	CHILD_MUST(cover(o->q, o->memory));
	CHILD_MUST(wait_ring(o->q, SIZE, 0) == -EXDEV);
	CHILD_MUST(kevent_commit(o->q->fd, 1, 0) == -EXDEV);
	CHILD_MUST(untouched(o->q->ring, o->q->bytes));
	/*
	 * The memory looks like the header of the ring: the position is right.
	 */
	memset(o->q->ring, 0, o->q->bytes);
	CHILD_MUST(wait_ring(o->q, SIZE, 0) == -EXDEV);
	CHILD_MUST(kevent_commit(o->q->fd, 0, 0) == -EXDEV);
	memset(o->q->ring, FILL, o->q->bytes);
	/* One of two events: a call with the ring would set RING_MORE there. */
	CHILD_MUST(get_events(o->q->fd, 1, 1, 0, &ev) == 1);
	CHILD_MUST(untouched(o->q->ring, o->q->bytes));
	err = kevent_get_events(o->q->fd, 1, 1, NULL, (struct ukevent *)8, 0);
	CHILD_MUST(err == -EFAULT);
	CHILD_MUST(untouched(o->q->ring, o->q->bytes));
	/* The last event: a call with the ring would clear RING_MORE there. */
	CHILD_MUST(get_events(o->q->fd, 1, 1, 0, &ev) == 1);
	CHILD_MUST(untouched(o->q->ring, o->q->bytes));
	return 0;
}

static void calls_leave_own_memory_alone(void)
{
	struct outsider o;
	struct ukevent ev;
	struct queue q;
	int i;

	for (o.memory = 0; o.memory < NR_MEMORY; o.memory++) {
		open_queue(&q, SIZE);
		o.q = &q;
		for (i = 0; i < 2; i++)
			MUST_EQ(add_user(q.fd, i, 1, KEVENT_REQ_READY, i), 0);
		CHECK_EQ(join_child(start_child(call_with_own_memory, &o),
				    PATIENCE_MS), 0);
		CHECK_NO_EVENT(&q);
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		MUST_EVENT(&q, &ev);
		CHECK_EQ(ev.ptr, 1);
		close_queue(&q);
	}
}

/* The child's memory says that all entries have been read. */
static int poll_with_own_memory(void *arg)
{
	struct outsider *o = arg;
	struct pollfd pfd = { .fd = o->q->fd, .events = POLLIN };

	CHILD_MUST(cover(o->q, o->memory));
	o->q->ring->ring_kidx = 2;
	o->q->ring->ring_uidx = 2;
	CHILD_MUST(poll(&pfd, 1, 0) == 1);
	CHILD_MUST(write(o->fd, "", 1) == 1);
	CHILD_MUST(poll(&pfd, 1, 0) == 1);
	return 0;
}

/* With a position read there, the kernel would overwrite unread entries. */
static void position_is_not_read_from_own_memory(void)
{
	struct outsider o = {};
	struct ukevent ev;
	struct queue q;
	int fd[2][2], i;

	open_queue(&q, 2);
	for (i = 0; i < 2; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, ET, i), 0);
		put_byte(fd[i][1]);
	}
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 2);
	o.q = &q;
	o.fd = fd[0][1];
	CHECK_EQ(join_child(start_child(poll_with_own_memory, &o),
			    PATIENCE_MS), 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, 2), 0);
	CHECK_EQ(wait_ring(&q, 2, 0), 0);
	for (i = 0; i < 2; i++) {
		MUST(kevent_ring_next(q.ring, q.size, &ev));
		CHECK_EQ(ev.ptr, i);
	}
	close_queue(&q);
}

static int writes(void *arg)
{
	return write(*(const int *)arg, "", 1) != 1;
}

/* What is in the ring, and nobody has read, is not stored a second time. */
static void unread_event_is_not_repeated(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2], i;

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 3), 0);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(join_child(start_child(writes, &fd[1]), PATIENCE_MS), 0);
		CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 1);
		CHECK_EQ(wait_ring(&q, 8, 0), !i);
		CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 0);
		CHECK_EQ(fdinfo(q.fd, "kevent-ring-kidx"), 1);
	}
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 3);
	CHECK_NO_EVENT(&q);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

/* A call brings an event of another process although the ring has one already. */
static void ready_event_comes_beside_level_watches(void)
{
	int hit[2], miss[2];
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	open_pipe(hit);
	open_pipe(miss);
	MUST_EQ(add_pipe(q.fd, hit[0], KEVENT_SOCKET_RECV, 0, 1), 0);
	MUST_EQ(add_pipe(q.fd, miss[0], KEVENT_SOCKET_RECV, 0, 2), 0);
	put_byte(hit[1]);
	CHECK_EQ(join_child(start_child(writes, &miss[1]), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-ring-kidx"), 1);
	/* For an entry past position 0 it need not wait. */
	CHECK_EQ(kevent_wait(q.fd, 8, 0, NULL, 0, NULL), 2);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 2);
	close(hit[0]);
	close(hit[1]);
	close(miss[0]);
	close(miss[1]);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(wake_up_leaves_own_memory_alone),
	TEST(ring_is_stored_where_each_process_has_it),
	TEST(moved_ring_leaves_the_old_place_alone),
	TEST(closed_queue_leaves_memory_alone),
	TEST(ring_may_be_freed_before_the_close),
	TEST(closed_copy_costs_a_call),
	TEST(closed_copy_ends_no_wait),
	TEST(wait_outlives_the_descriptor),
	TEST(process_that_left_keeps_its_memory),
	TEST(sleeper_finds_its_own_ring),
	TEST(one_that_attaches_does_not_do_so_for_others),
	TEST(amount_is_reported_where_the_ring_is),
	TEST(calls_leave_own_memory_alone),
	TEST(unread_event_is_not_repeated),
	TEST(ready_event_comes_beside_level_watches),
	TEST(position_is_not_read_from_own_memory),
	{}
};

const struct test_suite foreign_suite = { .name = "foreign", .cases = cases };
