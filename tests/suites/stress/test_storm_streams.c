// SPDX-License-Identifier: GPL-2.0
/*
 * Streams with a hostile peer: a process that writes all of the shared memory while the
 * test reads and writes
 *
 * With half of the streams it uses the library as others do, so that they go to memory and
 * back, and changes words in between: most by little, so that they are nearly right. With the
 * others it has a bare socket: it passes memory that is wrong, and other files, sends what is no
 * byte of a stream, and shortens what is not sealed. For each stream that breaks or ends the test
 * makes a new one. After each set nothing of it may be left, neither a descriptor nor memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "storm.h"

#define RING		16
#define CALLS		3000	/* with one stream, at most */
#define MOST		100000u	/* bytes of one call */
#define AREAS		4
#define WORDS		(PAGE / 8)	/* of the first page: the rest are bytes of the stream */
#define SET		50u	/* streams of one set */
#define FDS		5u	/* more than a stream takes */
#define FD_BYTES	(FDS * sizeof(int))

/* As libkevent/src/stream/stream.h has it: where most of what is passed is nearly right */
#define STREAM_MAGIC	0x656e616c766b5301ull
#define PAIR_MAGIC	0x656e616c766b5001ull
#define STREAM_PHASE	8	/* a word */
#define STREAM_RING	65536u
#define STREAM_BYTES	(PAGE + 2 * STREAM_RING)
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* --- the hostile process ------------------------------------------------- */

struct area {
	volatile uint64_t	*at;
	size_t			bytes;
};

struct hostile {
	int			sock;	/* by which sockets come */
	int			other;
	uint64_t		seed;
	struct kevent_queue	q;
	struct kevent_streams	*set;
	struct kevent_stream	*s;
	int			bare;	/* or this socket */
	int			kept;	/* what was passed first, or -1 */
	int			mem;	/* /proc/self/mem */
	struct area		area[AREAS];
	unsigned int		nr;
	unsigned char		buf[MOST];
};

static uint32_t some(struct hostile *h, uint32_t below)
{
	return next_random(&h->seed) % below;
}

/* Of the stream @nr: has the hostile process a bare socket, and who offers? */
static bool is_bare(unsigned int nr)
{
	return nr / SET % 2;
}

static bool test_offers(unsigned int nr)
{
	return nr % 2 == 0;
}

/* All that is mapped of streams: their memory, and the page of two processes */
static unsigned int find_areas(struct area *area, unsigned int most)
{
	FILE *file = fopen("/proc/self/maps", "r");
	unsigned int nr = 0;
	char line[512];
	uintptr_t at, end;

	while (file && nr < most && fgets(line, sizeof(line), file)) {
		if (!strstr(line, "memfd:kevent-") ||
		    sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &at, &end) != 2)
			continue;
		area[nr++] = (struct area){ (void *)at, end - at };
	}
	if (file)
		fclose(file);
	return nr;
}

/* What a check may forget: the ends of numbers, and of the ring */
static uint64_t limit_of(struct hostile *h, uint64_t old)
{
	const uint64_t limits[] = {
		0, 1, ~0ull, ~0ull - 1, 1ull << 63, ~0ull >> 1, ~0u, STREAM_RING - 1,
		STREAM_RING, STREAM_RING + 1, STREAM_RING / 2, -old, ~old,
		old + STREAM_RING, old + STREAM_RING + 1, old - STREAM_RING,
		old + STREAM_RING / 2, old + (1ull << 63), old + (1ull << 32),
	};

	return limits[some(h, ARRAY_SIZE(limits))];
}

static uint64_t other_value(struct hostile *h, uint64_t old)
{
	switch (some(h, 8)) {
	case 0:
		return ((uint64_t)next_random(&h->seed) << 32 | next_random(&h->seed)) >>
		       some(h, 64);
	case 1:
	case 2:
		return limit_of(h, old);
	case 3:
		return old ^ 1ull << some(h, 64);
	default:
		return old + some(h, 5) - 2;
	}
}

/* Mostly one that a stream has: its index, its slot, the phase, or those of a side */
static uint32_t some_word(struct hostile *h)
{
	static const unsigned char used[] = {
		1, 2, STREAM_PHASE, 16, 17, 18, 19, 24, 25, 32, 33, 34,
		40, 41, 42, 43, 48, 49, 56, 57, 58,
	};

	return some(h, 4) ? used[some(h, ARRAY_SIZE(used))] : some(h, WORDS);
}

/* By the kernel: the library may have unmapped the memory meanwhile. */
static void change_word(struct hostile *h)
{
	uint64_t value;
	off_t at;

	if (!h->nr)
		return;
	at = (off_t)(uintptr_t)&h->area[some(h, h->nr)].at[some_word(h)];
	if (pread(h->mem, &value, sizeof(value), at) != sizeof(value))
		return;
	value = other_value(h, value);
	(void)!pwrite(h->mem, &value, sizeof(value), at);
}

/* The page is all zeros afterwards. */
static void punch_hole(struct hostile *h)
{
	struct area *a = &h->area[some(h, AREAS)];

	if (a < h->area + h->nr)
		madvise((char *)a->at + some(h, a->bytes / PAGE) * PAGE, PAGE, MADV_REMOVE);
}

/* --- with the library ---------------------------------------------------- */

static void act_honestly(struct hostile *h)
{
	size_t len = next_random(&h->seed) % (next_random(&h->seed) % 8 ? 100 : MOST);

	switch (next_random(&h->seed) % 1024) {
	case 0:
		kevent_stream_leave(h->s);
		break;
	case 1 ... 20:
		kevent_stream_join(h->s, 0, 0);
		break;
	case 21 ... 80:
		kevent_streams_arm(h->set);
		break;
	case 81 ... 200:
		while (kevent_streams_next(h->set))
			;
		break;
	case 201:
		send(kevent_stream_fd(h->s), "\0\1x", next_random(&h->seed) % 3 + 1,
		     MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	default:
		if (next_random(&h->seed) % 2)
			kevent_stream_write(h->s, h->buf, len);
		else
			kevent_stream_read(h->s, h->buf, len);
	}
}

static bool is_over(int sock)
{
	struct pollfd p = { .fd = sock };

	return poll(&p, 1, 0) && (p.revents & POLLHUP);
}

/* Acts until the test has closed its side. */
static void disturb(struct hostile *h, int sock, void (*act)(struct hostile *h))
{
	uint32_t i, rate;

	do {
		rate = 1u << some(h, 12);
		h->nr = find_areas(h->area, AREAS);
		for (i = 0; i < 200; i++) {
			act(h);
			if (some(h, rate) == 0)
				change_word(h);
			if (some(h, 16 * rate) == 0)
				punch_hole(h);
		}
	} while (!is_over(sock));
}

static int use_library(struct hostile *h, int sock, bool offers)
{
	CHILD_MUST(kevent_stream_open(h->set, sock, offers ? KEVENT_STREAM_OFFER : 0, 1,
				      &h->s) == 0);
	disturb(h, sock, act_honestly);
	kevent_stream_close(h->s);
	return 0;
}

/* --- with a bare socket -------------------------------------------------- */

static size_t some_bytes(struct hostile *h, size_t right)
{
	const size_t bytes[] = { 0, 1, PAGE - 1, PAGE, PAGE + 1, STREAM_BYTES - 1,
				 STREAM_BYTES, STREAM_BYTES + 1, 1u << 20 };

	return some(h, 8) ? right : bytes[some(h, ARRAY_SIZE(bytes))];
}

static void put_magic(struct hostile *h, int fd, uint64_t magic)
{
	const uint64_t phase = 4 + (some(h, 8) ? 0 : some(h, 8));

	if (!some(h, 8))
		magic = other_value(h, magic);
	if (pwrite(fd, &magic, 8, 0) == 8 && magic == STREAM_MAGIC &&
	    pwrite(fd, &phase, 8, 8 * STREAM_PHASE) != 8)
		note("a hostile process lacks memory");
}

/* Memory as the library makes it, or nearly so */
static int make_memory(struct hostile *h, size_t right, uint64_t magic)
{
	int fd = memfd_create("kevent-hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING), other;
	char path[32];

	if (fd < 0 || ftruncate(fd, (off_t)some_bytes(h, right)))
		return fd;
	put_magic(h, fd, magic);
	fcntl(fd, F_ADD_SEALS, some(h, 2) ? SEALS : (int)some(h, 32));
	if (some(h, 16))
		return fd;
	/* Not to be written to */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return other;
}

static int other_file(struct hostile *h)
{
	int fd[2];

	switch (some(h, 5)) {
	case 0:
		return eventfd(0, EFD_CLOEXEC);
	case 1:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case 2:
		return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	case 3:
		return dup(h->bare);
	default:
		if (pipe2(fd, O_CLOEXEC))
			return -1;
		close(fd[0]);
		return fd[1];
	}
}

/* Mostly the memory of a stream, and a page: what comes first with bytes */
static unsigned int make_files(struct hostile *h, int *fd)
{
	unsigned int i, nr = some(h, 4) ? 2 : some(h, FDS + 1), made = 0;

	for (i = 0; i < nr; i++) {
		if (!some(h, 8))
			fd[made] = other_file(h);
		else if (some(h, 16) ? i == 0 : i == 1)
			fd[made] = make_memory(h, STREAM_BYTES, STREAM_MAGIC);
		else
			fd[made] = make_memory(h, PAGE, PAIR_MAGIC);
		made += fd[made] >= 0;
	}
	return made;
}

static void map_file(struct hostile *h, int fd)
{
	off_t bytes = lseek(fd, 0, SEEK_END);

	if (bytes < (off_t)PAGE || bytes > (off_t)STREAM_BYTES || h->nr == AREAS)
		return;
	if (mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		h->nr = find_areas(h->area, AREAS);
}

/* The first one is what the test may have taken. */
static void keep(struct hostile *h, int fd)
{
	if (h->kept < 0)
		h->kept = fd;
	else
		close(fd);
}

static void unmap_areas(struct hostile *h)
{
	while (h->nr--)
		munmap((void *)h->area[h->nr].at, h->area[h->nr].bytes);
	h->nr = find_areas(h->area, AREAS);
}

static void send_files(struct hostile *h, size_t len)
{
	union {
		struct cmsghdr	head;
		char		bytes[CMSG_SPACE(FD_BYTES)];
	} c = { .bytes = "" };
	struct iovec iov = { h->buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c };
	int fd[FDS];
	unsigned int i, nr = make_files(h, fd);

	msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
	c.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				   .cmsg_len = CMSG_LEN(nr * sizeof(int)) };
	memcpy(CMSG_DATA(&c.head), fd, nr * sizeof(int));
	sendmsg(h->bare, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (i = 0; i < nr; i++) {
		map_file(h, fd[i]);
		keep(h, fd[i]);
	}
}

/* What the test offers is mapped, too. */
static void take_files(struct hostile *h)
{
	union {
		struct cmsghdr	head;
		char		bytes[CMSG_SPACE(FD_BYTES)];
	} c;
	struct iovec iov = { h->buf, some(h, MOST) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c,
			      .msg_controllen = sizeof(c) };
	size_t i, nr;
	int fd;

	if (recvmsg(h->bare, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0 ||
	    !CMSG_FIRSTHDR(&msg))
		return;
	nr = (c.head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (i = 0; i < nr; i++) {
		memcpy(&fd, CMSG_DATA(&c.head) + i * sizeof(int), sizeof(int));
		map_file(h, fd);
		keep(h, fd);
	}
}

/* Bells mostly, as other bytes break a stream that goes through memory */
static void fill_bytes(struct hostile *h, size_t len)
{
	size_t i;

	memset(h->buf, 0, len);
	if (!some(h, 4))
		for (i = 0; i < len; i++)
			h->buf[i] = some(h, 4) ? some(h, 2) : next_random(&h->seed);
}

static void act_bare(struct hostile *h)
{
	size_t len = some(h, some(h, 8) ? 8 : 3000);

	switch (some(h, 128)) {
	case 0 ... 3:
		fill_bytes(h, len);
		send_files(h, len);
		break;
	case 4 ... 11:
		fill_bytes(h, len);
		send(h->bare, h->buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case 12 ... 23:
		take_files(h);
		break;
	case 24 ... 27:
		/* Without the mappings: the process itself would get SIGBUS. */
		unmap_areas(h);
		if (ftruncate(h->kept, (off_t)some_bytes(h, 0)))
			errno = 0;
		break;
	case 28:
		if (!some(h, 64))
			shutdown(h->bare, some(h, 3));
		break;
	}
}

static void use_bare(struct hostile *h, int sock)
{
	h->bare = sock;
	h->kept = -1;
	if (some(h, 8))
		send_files(h, 1 + some(h, 8));
	disturb(h, sock, act_bare);
	if (h->kept >= 0)
		close(h->kept);
	close(sock);
}

static void close_set(struct hostile *h)
{
	kevent_streams_free(h->set);
	h->nr = find_areas(h->area, AREAS);
	while (h->nr)
		unmap_areas(h);
}

/* All streams of a set are used in one of the two ways. */
static int run_hostile(void *arg)
{
	static KEVENT_RING_STORAGE(RING) ring;
	struct hostile *h = arg;
	unsigned int i;
	int sock;

	close(h->other);
	h->mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	CHILD_MUST(h->mem >= 0);
	CHILD_MUST(kevent_queue_init(&h->q, &ring.ring, RING, 0) == 0);
	CHILD_MUST(kevent_streams_new(&h->set, &h->q, 0) == 0);
	for (i = 0; (sock = receive_fd(h->sock)) >= 0; i++) {
		if (i && i % SET == 0) {
			close_set(h);
			CHILD_MUST(kevent_streams_new(&h->set, &h->q, 0) == 0);
		}
		CHILD_MUST(write(h->sock, "", 1) == 1);
		if (is_bare(i))
			use_bare(h, sock);
		else if (use_library(h, sock, !test_offers(i)))
			return 1;
	}
	close_set(h);
	return 0;
}

/* --- the test ------------------------------------------------------------ */

struct victim {
	struct kevent_queue	q;
	struct kevent_streams	*set;
	struct kevent_stream	*s;
	uint64_t		seed;
	uint64_t		wrote, read, broken, taken;
	unsigned int		streams;
	int			sock;	/* to the hostile process */
};

/* Whoever connects offers. */
static void open_victim(struct victim *v, bool offers)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), sock[2];
	char byte;

	MUST_EQ(bind(fd, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	MUST_EQ(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	MUST_EQ(listen(fd, 1), 0);
	sock[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST_EQ(connect(sock[0], (struct sockaddr *)&name, len), 0);
	sock[1] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	MUST(sock[1] >= 0);
	close(fd);
	send_fd(v->sock, sock[offers]);
	close(sock[offers]);
	/* Else the test would have done with a stream before the other side has it. */
	MUST_EQ(read(v->sock, &byte, 1), 1);
	MUST_EQ(kevent_stream_open(v->set, sock[!offers],
				   offers ? KEVENT_STREAM_OFFER : 0, 1, &v->s), 0);
}

static bool may_be(ssize_t ret, size_t size)
{
	return (ret >= 0 && (size_t)ret <= size) || ret == -EAGAIN || ret == -EPROTO ||
	       ret == -EPIPE || ret == -ECONNRESET;
}

/*
 * Room for so many bytes, and no more: a checker of memory sees the next one. One write through
 * memory moves as many as the ring has at most. A read or a peek may have kept more of the socket.
 */
static ssize_t use_bytes(struct victim *v, uint32_t what)
{
	bool memory = kevent_stream_memory(v->s) & KEVENT_STREAM_SENDS;
	size_t size = next_random(&v->seed) % (next_random(&v->seed) % 4 ? 200 : MOST) + 1;
	unsigned char *buf = malloc(size);
	ssize_t ret;

	memset(buf, 0, size);
	if (what % 3 == 0)
		ret = kevent_stream_write(v->s, buf, size);
	else if (what % 3 == 1)
		ret = kevent_stream_read(v->s, buf, size);
	else
		ret = kevent_stream_peek(v->s, buf, size);
	free(buf);
	MUST(may_be(ret, size));
	if (what % 3 == 0 && memory && (kevent_stream_memory(v->s) & KEVENT_STREAM_SENDS))
		MUST(ret <= (ssize_t)STREAM_RING);
	if (ret > 0 && what % 3 < 2)
		*(what % 3 ? &v->read : &v->wrote) += ret;
	return ret;
}

/* A wait of a millisecond may be shorter, and ends. */
static void take_events(struct victim *v)
{
	struct timespec span = ms_to_timespec(next_random(&v->seed) % 16 == 0);
	uint64_t start = now_ns();
	struct ukevent ev[4];
	int i, nr = kevent_streams_get(v->set, ev, 4, &span);

	MUST(nr >= 0 && nr <= 4);
	MUST(now_ns() - start < PATIENCE_MS * slowness * 1000000ull);
	for (i = 0; i < nr; i++)
		kevent_stream_event(v->s, &ev[i]);
	kevent_streams_next(v->set);
}

static void ask_poll(struct victim *v)
{
	int events = (int)next_random(&v->seed) & (POLLIN | POLLOUT | POLLRDHUP);
	int got = kevent_stream_poll(v->s, events);

	MUST_EQ(got & ~(events | POLLHUP | POLLERR), 0);
}

static ssize_t use(struct victim *v)
{
	uint32_t what = next_random(&v->seed);

	switch (what % 1024) {
	case 0:
		return kevent_stream_leave(v->s);
	case 1 ... 20:
		return kevent_stream_join(v->s, 0, 0);
	case 21:
		return next_random(&v->seed) % 8 ? 0 : kevent_stream_shutdown(v->s);
	case 22 ... 120:
		take_events(v);
		return -EAGAIN;
	case 121 ... 220:
		ask_poll(v);
		return -EAGAIN;
	default:
		return use_bytes(v, what / 1024);
	}
}

static void use_stream(struct victim *v, bool bare)
{
	uint32_t calls = next_random(&v->seed) % CALLS;
	bool memory = false;
	ssize_t ret = 0;

	while (calls-- && ret != -EPROTO) {
		ret = use(v);
		memory |= kevent_stream_memory(v->s) != 0;
	}
	v->broken += ret == -EPROTO;
	v->taken += bare && memory;
	kevent_stream_close(v->s);
}

/* As many streams as share a set: nothing is left of it and its queue. */
static void use_set(struct storm *s)
{
	static KEVENT_RING_STORAGE(RING) ring;
	unsigned int fds = count_fds(), end;
	struct victim *v = s->world;
	struct area left;

	memset(&ring, 0, sizeof(ring));
	MUST_EQ(kevent_queue_init(&v->q, &ring.ring, RING, 0), 0);
	MUST_EQ(kevent_streams_new(&v->set, &v->q, 0), 0);
	for (end = v->streams + SET; v->streams < end; v->streams++) {
		open_victim(v, test_offers(v->streams));
		use_stream(v, is_bare(v->streams));
	}
	kevent_streams_free(v->set);
	kevent_queue_close(&v->q);
	MUST_EQ(count_fds(), fds);
	MUST_EQ(find_areas(&left, 1), 0);
}

static bool saw_all(const struct storm *s)
{
	const struct victim *v = s->world;

	return v->wrote && v->read && v->broken && v->taken;
}

static void all_of_the_memory_may_change(void)
{
	static struct hostile h;
	struct victim v = {};
	struct storm s = { .world = &v, .enough = saw_all };
	int sock[2];
	pid_t pid;

	storm_begin(&s);
	v.seed = s.seed;
	h.seed = s.seed * 3 | 1;
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	v.sock = sock[0];
	h.sock = sock[1];
	h.other = sock[0];
	pid = start_child(run_hostile, &h);
	close(sock[1]);
	storm_run(&s, use_set);
	note("%u streams, %llu bytes written, %llu read, %llu broken, %llu took what was passed",
	     v.streams, (unsigned long long)v.wrote, (unsigned long long)v.read,
	     (unsigned long long)v.broken, (unsigned long long)v.taken);
	close(sock[0]);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static const struct test_case cases[] = {
	TEST_LIMIT(all_of_the_memory_may_change, 300),
	{}
};

const struct test_suite storm_streams_suite = {
	.name = "storm_streams",
	.cases = cases,
};
