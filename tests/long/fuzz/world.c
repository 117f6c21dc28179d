// SPDX-License-Identifier: GPL-2.0
/*
 * Files: open ones, the descriptors of each, and what poll(2) says of them
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "fuzz.h"

#define ARRIVE_NS	2000000000ull

struct world W;

void world_init(void)
{
	unsigned int i;

	memset(&W, 0, sizeof(W));
	for (i = 0; i < NR_SLOTS; i++)
		W.slot[i] = (struct slot){ .fd = -1, .end = -1, .was = -1 };
	for (i = 0; i < NR_QUEUES; i++)
		W.q[i].fd = -1;
}

uint32_t poll_now(int fd)
{
	struct pollfd p = {
		.fd = fd,
		.events = POLLIN | POLLPRI | POLLOUT | POLLRDNORM | POLLWRNORM |
			  POLLRDHUP,
	};

	if (poll(&p, 1, 0) < 0 || p.revents & POLLNVAL)
		fail("poll() of %d fails", fd);
	return p.revents;
}

static int new_end(enum kind kind)
{
	int i;

	for (i = 0; i < NR_ENDS; i++)
		if (!W.end[i].slots && !W.end[i].held)
			break;
	if (i == NR_ENDS)
		return -1;
	W.end[i] = (struct end){ .kind = kind, .slots = 1, .peer = -1 };
	return i;
}

void fill_slot(int x, int fd, enum kind kind)
{
	W.slot[x].fd = fd;
	W.slot[x].end = new_end(kind);
	if (W.slot[x].end < 0)
		fail("too many open files");
}

static void make_peers(int x)
{
	W.end[W.slot[x].end].peer = W.slot[x + 1].end;
	W.end[W.slot[x + 1].end].peer = W.slot[x].end;
}

/* Small writes are sent at once, so that nothing happens later. */
static int tcp_pair(int *fd)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, i;
	socklen_t size = sizeof(at);
	bool bad;

	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bad = bind(server, (struct sockaddr *)&at, size) || listen(server, 1) ||
	      getsockname(server, (struct sockaddr *)&at, &size) ||
	      connect(fd[0], (struct sockaddr *)&at, size);
	fd[1] = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	close(server);
	for (i = 0; i < 2; i++)
		bad |= fcntl(fd[i], F_SETFL, O_NONBLOCK) ||
		       setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one,
				  sizeof(one));
	return bad;
}

static int open_sockets(int x, enum kind kind, int *fd)
{
	if (kind == KIND_TCP) {
		emit("open_tcp(&fd[%d]);", x);
		return tcp_pair(fd);
	}
	emit("MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, &fd[%d]), 0);",
	     x);
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			  0, fd);
}

static void fill_sockets(int x, enum kind kind, const int *fd)
{
	fill_slot(x, fd[0], KIND_SOCKET);
	fill_slot(x + 1, fd[1], KIND_SOCKET);
	W.end[W.slot[x].end].tcp = kind == KIND_TCP;
	W.end[W.slot[x + 1].end].tcp = kind == KIND_TCP;
}

static bool open_pair(int x, enum kind kind)
{
	int fd[2], err;

	if (x + 1 >= NR_SLOTS || W.slot[x + 1].end >= 0)
		return false;
	if (kind == KIND_SOCKET || kind == KIND_TCP) {
		err = open_sockets(x, kind, fd);
		fill_sockets(x, kind, fd);
	} else {
		err = pipe2(fd, O_CLOEXEC | O_NONBLOCK);
		emit("open_pipe(&fd[%d]);", x);
		fill_slot(x, fd[0], KIND_PIPE_READ);
		fill_slot(x + 1, fd[1], KIND_PIPE_WRITE);
	}
	if (err)
		fail("no pipe or socket");
	make_peers(x);
	return true;
}

char *file_name(unsigned int name)
{
	static char path[2][60];
	static unsigned int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[0]), "/tmp/kevent-fuzz-%d-%u",
		 getpid(), name);
	return path[turn];
}

void remove_files(pid_t pid)
{
	char path[60];
	unsigned int i;

	for (i = 1; i < MAX_OPS; i++) {
		snprintf(path, sizeof(path), "/tmp/kevent-fuzz-%d-%u", pid, i);
		unlink(path);
	}
}

void world_open_again(int x, unsigned int name)
{
	int was = W.slot[x].was;
	int fd = open(file_name(name), O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		fail("a file is not opened again");
	emit("fd[%d] = open(\"/tmp/fuzzed-%u\", O_RDWR | O_CLOEXEC);", x, name);
	if (fd != was && (dup3(fd, was, O_CLOEXEC) != was || close(fd)))
		fail("dup3() fails");
	fill_slot(x, was, KIND_FILE);
	W.end[W.slot[x].end].name = name;
}

static void open_file(int x)
{
	unsigned int name = ++W.names;
	int fd = open(file_name(name), O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		fail("no file in /tmp");
	emit("fd[%d] = open(\"/tmp/fuzzed-%u\", O_CREAT | O_RDWR | O_CLOEXEC, 0600);",
	     x, name);
	fill_slot(x, fd, KIND_FILE);
	W.end[W.slot[x].end].name = name;
}

bool world_open(int x, enum kind kind, int q)
{
	if (W.slot[x].end >= 0)
		return false;
	if (kind == KIND_SOCKET || kind == KIND_PIPE_READ || kind == KIND_TCP)
		return open_pair(x, kind);
	if (kind == KIND_QUEUE)
		return nest_open(x, q);
	if (kind == KIND_FILE) {
		open_file(x);
		return true;
	}
	fill_slot(x, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), KIND_EVENTFD);
	emit("fd[%d] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);", x);
	return W.slot[x].fd >= 0;
}

/* Many pipes, whose ends are behind the others */
bool many_open(void)
{
	int fd[2], i;

	if (W.has_many)
		return false;
	emit("many_open(many);");
	for (i = 0; i < NR_MANY; i++) {
		if (pipe2(fd, O_NONBLOCK | O_CLOEXEC))
			fail("no descriptor for one of many");
		W.many[i] = fd[0];
		W.many_in[i] = fd[1];
		W.end[NR_ENDS + i] = (struct end){
			.kind = KIND_PIPE_READ, .slots = 1, .peer = -1,
		};
	}
	W.has_many = true;
	return true;
}

/* The slot does not refer to its open file any more. */
void put_end(int slot)
{
	struct end *e = &W.end[W.slot[slot].end];
	int i = W.slot[slot].end;

	W.slot[slot] = (struct slot){ .fd = -1, .end = -1, .was = W.slot[slot].fd };
	if (--e->slots || e->held)
		return;
	if (e->peer >= 0 && W.end[e->peer].peer == i)
		W.end[e->peer].peer = -1;
	e->kind = KIND_NONE;
}

static void look_at(int end, int fd)
{
	W.end[end].before = W.end[end].now;
	W.end[end].now = poll_now(fd);
	turn_looked(&W.end[end]);
}

/* TCP, whose segments arrive soon, but not in the call */

static int slot_of(int end)
{
	int x;

	for (x = 0; x < NR_SLOTS; x++)
		if (W.slot[x].end == end)
			return x;
	return -1;
}

long tcp_unread(int end)
{
	int nr, x = end < 0 || !W.end[end].tcp ? -1 : slot_of(end);

	if (x < 0)
		return -1;
	return ioctl(W.slot[x].fd, FIONREAD, &nr) ? -1 : nr;
}

void tcp_arrive(int end, uint32_t bits, long unread)
{
	uint64_t start = now_ns();
	int x = end < 0 || !W.end[end].tcp ? -1 : slot_of(end);

	while (x >= 0 && !(poll_now(W.slot[x].fd) & bits)) {
		if (unread >= 0 && tcp_unread(end) >= unread)
			return;
		if (now_ns() - start > ARRIVE_NS)
			fail("what was done to a TCP socket does not arrive");
		sched_yield();
	}
}

/* Once for each open file, through the first of its descriptors */
void look_at_files(void)
{
	bool seen[NR_ENDS] = {};
	int i;

	for (i = 0; i < NR_SLOTS; i++) {
		if (W.slot[i].end < 0 || seen[W.slot[i].end])
			continue;
		seen[W.slot[i].end] = true;
		look_at(W.slot[i].end, W.slot[i].fd);
	}
	nest_looked();
}

void look_at_many(void)
{
	int i;

	for (i = 0; i < NR_MANY; i++)
		look_at(NR_ENDS + i, W.many[i]);
}
