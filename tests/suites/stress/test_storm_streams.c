// SPDX-License-Identifier: GPL-2.0
/*
 * Streams with a hostile peer: a process that writes all of the shared memory while the
 * test reads and writes
 *
 * It uses streams as others do, so that they go to memory and back, and changes words in
 * between: most by little, so that they are nearly right. For each stream that breaks or
 * ends the test makes a new one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "helpers.h"

#define RING		16
#define CALLS		3000	/* with one stream, at most */
#define MOST		70000u	/* bytes of one call */
#define AREAS		4
#define WORDS		512u	/* of the first page: the rest are bytes of the stream */

/* --- the hostile process ------------------------------------------------- */

struct hostile {
	int			sock;	/* by which sockets come */
	int			other;
	uint64_t		seed;
	struct kevent_queue	q;
	struct kevent_streams	*set;
	struct kevent_stream	*s;
	volatile uint64_t	*area[AREAS];
	unsigned int		nr;
	unsigned char		buf[MOST];
};

/* All that is mapped of streams: their memory, and the page of two processes */
static void find_areas(struct hostile *h)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512];
	uintptr_t at;

	h->nr = 0;
	while (file && h->nr < AREAS && fgets(line, sizeof(line), file))
		if (strstr(line, "memfd:kevent-") && sscanf(line, "%" SCNxPTR "-", &at) == 1)
			h->area[h->nr++] = (void *)at;
	if (file)
		fclose(file);
}

static void change_word(struct hostile *h)
{
	uint64_t value = (uint64_t)next_random(&h->seed) << 32 | next_random(&h->seed);
	uint32_t words = next_random(&h->seed) % 2 ? 64 : WORDS;
	volatile uint64_t *word;

	if (!h->nr)
		return;
	word = &h->area[next_random(&h->seed) % h->nr][next_random(&h->seed) % words];
	switch (next_random(&h->seed) % 8) {
	case 0:
		*word = value >> next_random(&h->seed) % 64;
		break;
	case 1:
		*word = 0;
		break;
	case 2:
		*word ^= 1ull << next_random(&h->seed) % 64;
		break;
	default:
		*word += next_random(&h->seed) % 5 - 2;
	}
}

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

/* Until the test has closed its side */
static void disturb(struct hostile *h)
{
	struct pollfd p = { .fd = kevent_stream_fd(h->s) };
	uint32_t i, rate;

	do {
		rate = 1u << next_random(&h->seed) % 12;
		find_areas(h);
		for (i = 0; i < 200; i++) {
			act_honestly(h);
			if (next_random(&h->seed) % rate == 0)
				change_word(h);
		}
	} while (!poll(&p, 1, 0) || !(p.revents & POLLHUP));
}

static int run_hostile(void *arg)
{
	static KEVENT_RING_STORAGE(RING) ring;
	struct hostile *h = arg;
	int sock, i;

	close(h->other);
	CHILD_MUST(kevent_queue_init(&h->q, &ring.ring, RING, 0) == 0);
	CHILD_MUST(kevent_streams_new(&h->set, &h->q, 0) == 0);
	for (i = 0; (sock = receive_fd(h->sock)) >= 0; i++) {
		CHILD_MUST(kevent_stream_open(h->set, sock, i % 2 ? KEVENT_STREAM_OFFER : 0,
					      1, &h->s) == 0);
		disturb(h);
		kevent_stream_close(h->s);
	}
	return 0;
}

/* --- the test ------------------------------------------------------------ */

struct victim {
	struct kevent_queue	q;
	struct kevent_streams	*set;
	struct kevent_stream	*s;
	uint64_t		seed;
	uint64_t		wrote, read, broken;
};

/* Whoever connects offers; the hostile side does so each second time. */
static void open_victim(struct victim *v, int to, bool offers)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), sock[2];

	MUST_EQ(bind(fd, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	MUST_EQ(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	MUST_EQ(listen(fd, 1), 0);
	sock[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST_EQ(connect(sock[0], (struct sockaddr *)&name, len), 0);
	sock[1] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	MUST(sock[1] >= 0);
	close(fd);
	send_fd(to, sock[offers]);
	close(sock[offers]);
	MUST_EQ(kevent_stream_open(v->set, sock[!offers],
				   offers ? KEVENT_STREAM_OFFER : 0, 1, &v->s), 0);
}

static bool may_be(ssize_t ret, size_t size)
{
	return (ret >= 0 && (size_t)ret <= size) || ret == -EAGAIN || ret == -EPROTO ||
	       ret == -EPIPE || ret == -ECONNRESET;
}

/* Room for so many bytes, and no more: a checker of memory sees the next one. */
static ssize_t use_bytes(struct victim *v, uint32_t what)
{
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
	if (ret > 0 && what % 3 < 2)
		*(what % 3 ? &v->read : &v->wrote) += ret;
	return ret;
}

static void take_events(struct victim *v)
{
	struct timespec now = {};
	struct ukevent ev[4];
	int i, nr = kevent_streams_get(v->set, ev, 4, &now);

	MUST(nr >= 0);
	for (i = 0; i < nr; i++)
		kevent_stream_event(v->s, &ev[i]);
	kevent_streams_next(v->set);
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
	default:
		return use_bytes(v, what / 1024);
	}
}

static void all_of_the_memory_may_change(void)
{
	static KEVENT_RING_STORAGE(RING) ring;
	static struct hostile h;
	uint64_t start = now_ns(), streams;
	struct victim v = { .seed = test_seed() };
	int sock[2], i;
	ssize_t ret;
	pid_t pid;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	h.seed = v.seed * 3 | 1;
	h.sock = sock[1];
	h.other = sock[0];
	pid = start_child(run_hostile, &h);
	close(sock[1]);
	MUST_EQ(kevent_queue_init(&v.q, &ring.ring, RING, 0), 0);
	MUST_EQ(kevent_streams_new(&v.set, &v.q, 0), 0);
	for (streams = 0; storm_goes_on(start, v.wrote && v.read && v.broken); streams++) {
		open_victim(&v, sock[0], streams % 2 == 0);
		ret = 0;
		for (i = 0; i < CALLS && ret != -EPROTO; i++)
			ret = use(&v);
		v.broken += ret == -EPROTO;
		kevent_stream_close(v.s);
	}
	note("%llu streams, %llu bytes written, %llu read, %llu broken",
	     (unsigned long long)streams, (unsigned long long)v.wrote,
	     (unsigned long long)v.read, (unsigned long long)v.broken);
	kevent_streams_free(v.set);
	kevent_queue_close(&v.q);
	close(sock[0]);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static const struct test_case cases[] = {
	TEST_LIMIT(all_of_the_memory_may_change, 30),
	{}
};

const struct test_suite storm_streams_suite = {
	.name = "storm_streams",
	.cases = cases,
};
