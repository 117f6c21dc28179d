// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Lanes with both sides in one process, step by step: each word that a peer may
 * write, each limit, each way to end
 *
 * The tests with two processes are the suite lanes of kevent-tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "api/process.h"
#include "lane/rung.h"
#include "../processes.h"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD	76
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	0x8U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC	0x20
#endif

#define SIZE		16U
#define SLOTS		4U
#define ARENA		1024U
#define USER		7
#define FDS		64		/* descriptors where there are few */

static const struct timespec no_time, a_while = { .tv_sec = 5 };

/* A lane from @a to @b with an arena, and back without one */
static const struct kevent_lane_options usual = {
	.send_slots = SLOTS, .send_arena = ARENA, .recv_slots = SLOTS,
};
static const struct kevent_lane_options by_socket = {
	.send_slots = SLOTS, .send_arena = ARENA, .recv_slots = SLOTS,
	.flags = KEVENT_LANE_SOCKET,
};

static struct kevent_lane a, b;
static unsigned char buf[ARENA + 1];

static void open_lane(const struct kevent_lane_options *o)
{
	int sock[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_lane_create(&a, o), 0);
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, 0), -EAGAIN);
	CHECK_EQ(kevent_lane_pass(&a, sock[0]), 0);
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, 0), 0);
}

static void open_usual(void)
{
	open_lane(&usual);
}

static void close_lane(void)
{
	kevent_lane_close(&a);
	kevent_lane_close(&b);
}

/* The slot at @pos in the direction from a to b, as a sees it */
static struct kevent_lane_slot *slot(__u64 pos)
{
	return &a.out.slot[pos & (SLOTS - 1)];
}

static int send_nr(struct kevent_lane *l, __u64 nr)
{
	return kevent_lane_send(l, &nr, sizeof(nr));
}

static void expect_nr(struct kevent_lane *l, __u64 nr)
{
	__u64 got = 0;

	CHECK_EQ(kevent_lane_recv(l, &got, sizeof(got)), sizeof(got));
	CHECK_EQ(got, nr);
}

static KEVENT_RING_STORAGE(SIZE) mem_a, mem_b;
static struct kevent_queue qa, qb;

static void open_queues(void)
{
	CHECK_EQ(kevent_queue_init(&qa, &mem_a.ring, SIZE, 0), 0);
	CHECK_EQ(kevent_queue_init(&qb, &mem_b.ring, SIZE, 0), 0);
	CHECK_EQ(kevent_lane_watch(&a, qa.fd, USER), 0);
	CHECK_EQ(kevent_lane_watch(&b, qb.fd, USER), 0);
	CHECK_EQ(kevent_lane_watch(&b, qb.fd, USER), -EEXIST);
}

/* An event of the lane comes, and says whether the peer has ended. */
static void expect_event(struct kevent_queue *q, struct kevent_lane *l, int end)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(q, &ev, 1, &a_while), 1);
	CHECK_EQ(ev.ptr, USER);
	CHECK_EQ(kevent_lane_event(l, &ev), end);
}

/* The end may come before or after other events of the lane. */
static void await_end(struct kevent_queue *q, struct kevent_lane *l)
{
	struct ukevent ev;

	do {
		CHECK_EQ(kevent_queue_get(q, &ev, 1, &a_while), 1);
	} while (!failed && !kevent_lane_event(l, &ev));
}

static void expect_no_event(struct kevent_queue *q)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 0);
}

static int nr_open(void)
{
	int fd, nr = 0;

	for (fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

static void messages_keep_their_order(void)
{
	__u64 i;

	open_usual();
	CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), -EAGAIN);
	for (i = 0; i < 3 * SLOTS; i++) {
		CHECK_EQ(send_nr(&a, i), 0);
		CHECK_EQ(send_nr(&a, ~i), 0);
		CHECK_EQ(send_nr(&b, i), 0);
		expect_nr(&b, i);
		expect_nr(&b, ~i);
		expect_nr(&a, i);
	}
	CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), -EAGAIN);
	CHECK_EQ(kevent_lane_recv(&a, buf, sizeof(buf)), -EAGAIN);
	close_lane();
}

static void full_lane_has_no_room(void)
{
	__u64 i;

	open_usual();
	for (i = 0; i < SLOTS; i++)
		CHECK_EQ(send_nr(&a, i), 0);
	CHECK_EQ(send_nr(&a, SLOTS), -EAGAIN);
	expect_nr(&b, 0);
	CHECK_EQ(send_nr(&a, SLOTS), 0);
	CHECK_EQ(send_nr(&a, SLOTS), -EAGAIN);
	for (i = 1; i <= SLOTS; i++)
		expect_nr(&b, i);
	close_lane();
}

/* A message of @len bytes, of a value of its own */
static void pass_long(__u32 len)
{
	unsigned char want[ARENA];

	memset(want, (int)len % 251, sizeof(want));
	CHECK_EQ(kevent_lane_send(&a, want, len), 0);
	memset(buf, 0xee, sizeof(buf));
	CHECK_EQ(kevent_lane_recv(&b, buf, ARENA), len);
	CHECK(!memcmp(buf, want, len));
	CHECK_EQ(buf[len], 0xee);
}

static void each_length_arrives(void)
{
	__u32 len;

	open_usual();
	for (len = 0; len <= ARENA; len++)
		pass_long(len);
	CHECK_EQ(kevent_lane_send(&a, buf, ARENA + 1), -EMSGSIZE);
	CHECK_EQ(kevent_lane_send(&b, buf, KEVENT_LANE_INLINE), 0);
	CHECK_EQ(kevent_lane_send(&b, buf, KEVENT_LANE_INLINE + 1), -EMSGSIZE);
	close_lane();
}

/* Messages of all lengths, up to three under way: none overwrites another. */
static void arena_is_used_in_a_circle(void)
{
	unsigned char want[ARENA];
	__u32 first = 0, last = 0, len;

	open_usual();
	while (first < 4000) {
		len = last * 37 % 500;
		memset(want, (int)last, sizeof(want));
		if (last - first < 3 && !kevent_lane_send(&a, want, len)) {
			last++;
			continue;
		}
		CHECK(last > first);
		if (last == first)
			break;
		len = first * 37 % 500;
		memset(want, (int)first++, sizeof(want));
		CHECK_EQ(kevent_lane_recv(&b, buf, ARENA), len);
		CHECK(!memcmp(buf, want, len));
	}
	close_lane();
}

/* After a short one behind a long one there is room for the longest again. */
static void longest_fits_when_all_is_taken(void)
{
	void *at;

	open_usual();
	pass_long(100);
	CHECK_EQ(kevent_lane_send(&a, buf, 8), 0);
	CHECK_EQ(kevent_lane_reserve(&a, ARENA, &at), 0);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), 8);
	pass_long(ARENA);
	pass_long(1);
	pass_long(ARENA);
	close_lane();
}

/* Short messages that are under way take no part of it, and give none back. */
static void arena_is_not_given_back_twice(void)
{
	void *at;
	int i;

	open_usual();
	pass_long(60);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(send_nr(&a, 1), 0);
		if (i == 1)
			CHECK_EQ(kevent_lane_reserve(&a, ARENA, &at), 0);
	}
	CHECK_EQ(kevent_lane_reserve(&a, ARENA, &at), -EAGAIN);
	expect_nr(&b, 1);
	CHECK_EQ(kevent_lane_reserve(&a, ARENA, &at), 0);
	close_lane();
}

static void message_is_made_in_place(void)
{
	void *at;

	open_usual();
	CHECK_EQ(kevent_lane_publish(&a, 0), -EINVAL);
	CHECK_EQ(kevent_lane_reserve(&a, 200, &at), 0);
	memset(at, 5, 200);
	CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), -EAGAIN);
	CHECK_EQ(kevent_lane_publish(&a, 201), -EINVAL);
	CHECK_EQ(kevent_lane_publish(&a, 150), 0);
	CHECK_EQ(kevent_lane_publish(&a, 150), -EINVAL);
	CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), 150);
	CHECK_EQ(buf[149], 5);
	/* Shorter than a slot after all */
	CHECK_EQ(kevent_lane_reserve(&a, 200, &at), 0);
	memset(at, 6, 200);
	CHECK_EQ(kevent_lane_publish(&a, 10), 0);
	CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), 10);
	CHECK_EQ(buf[9], 6);
	close_lane();
}

/* One that there is no room for takes the place of the one before, too. */
static void message_in_place_is_the_last_one(void)
{
	void *at;

	open_usual();
	CHECK_EQ(kevent_lane_send(&a, buf, 512), 0);
	CHECK_EQ(kevent_lane_reserve(&a, 400, &at), 0);
	CHECK_EQ(kevent_lane_reserve(&a, 800, &at), -EAGAIN);
	CHECK_EQ(kevent_lane_publish(&a, 400), -EINVAL);
	CHECK_EQ(kevent_lane_reserve(&a, 400, &at), 0);
	CHECK_EQ(kevent_lane_send(&a, buf, ARENA + 1), -EMSGSIZE);
	CHECK_EQ(kevent_lane_publish(&a, 400), -EINVAL);
	CHECK_EQ(kevent_lane_reserve(&a, 400, &at), 0);
	CHECK_EQ(kevent_lane_publish(&a, 400), 0);
	CHECK_EQ(kevent_lane_recv(&b, buf, ARENA), 512);
	CHECK_EQ(kevent_lane_recv(&b, buf, ARENA), 400);
	close_lane();
}

static void long_message_waits_for_a_buffer(void)
{
	open_usual();
	CHECK_EQ(kevent_lane_send(&a, buf, 40), 0);
	CHECK_EQ(kevent_lane_recv(&b, buf, 39), -EMSGSIZE);
	CHECK_EQ(kevent_lane_recv(&b, buf, 40), 40);
	CHECK_EQ(kevent_lane_send(&a, buf, 400), 0);
	CHECK_EQ(kevent_lane_recv(&b, buf, 399), -EMSGSIZE);
	CHECK_EQ(kevent_lane_recv(&b, buf, 400), 400);
	close_lane();
}

/* --- sleeping ------------------------------------------------------------ */

static void sleeper_is_rung_for(const struct kevent_lane_options *o)
{
	int i;

	open_lane(o);
	open_queues();
	for (i = 0; i < 3; i++) {
		CHECK_EQ(kevent_lane_arm(&b), 0);
		expect_no_event(&qb);
		CHECK_EQ(send_nr(&a, 1), 0);
		CHECK_EQ(send_nr(&a, 2), 0);
		expect_event(&qb, &b, 0);
		expect_no_event(&qb);
		expect_nr(&b, 1);
		expect_nr(&b, 2);
		/* It is awake now. */
		CHECK_EQ(send_nr(&a, 3), 0);
		expect_no_event(&qb);
		CHECK_EQ(kevent_lane_arm(&b), 1);
		expect_nr(&b, 3);
	}
	close_lane();
}

/* Once for each sleep: a sender that goes on sending makes no more calls. */
static void sleeper_is_rung_for_once(void)
{
	struct ukevent ev;

	open_usual();
	open_queues();
	CHECK_EQ(kevent_lane_arm(&b), 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	CHECK_EQ(kevent_queue_get(&qb, &ev, 1, &a_while), 1);
	CHECK_EQ(send_nr(&a, 2), 0);
	expect_no_event(&qb);
	close_lane();
}

static void eventfd_wakes_a_sleeper(void)
{
	sleeper_is_rung_for(&usual);
}

static void socket_wakes_a_sleeper(void)
{
	sleeper_is_rung_for(&by_socket);
}

static int send_get(struct kevent_lane *l, struct kevent_queue *q, __u64 nr)
{
	struct ukevent ev;
	int ret = kevent_lane_send_get(l, &nr, sizeof(nr), q, &ev, 1, &no_time);

	if (ret == 1)
		kevent_lane_event(l, &ev);
	return ret;
}

/* The peer is rung for by the wait; if there is none, and by a socket, before it. */
static void wait_rings_for_a_sleeper(const struct kevent_lane_options *o)
{
	open_lane(o);
	open_queues();
	CHECK_EQ(kevent_lane_arm(&b), 0);
	CHECK_EQ(send_get(&a, &qa, 1), 0);
	expect_event(&qb, &b, 0);
	expect_nr(&b, 1);
	/* It is awake, and has said that it waits: so it is rung for. */
	CHECK_EQ(send_get(&b, &qb, 2), 0);
	expect_event(&qa, &a, 0);
	expect_nr(&a, 2);
	/* A message is there: no wait. */
	CHECK_EQ(kevent_lane_arm(&a), 0);
	CHECK_EQ(send_nr(&b, 3), 0);
	CHECK_EQ(kevent_lane_arm(&b), 0);
	if (!send_get(&a, &qa, 4))
		expect_event(&qa, &a, 0);
	expect_event(&qb, &b, 0);
	expect_nr(&b, 4);
	expect_nr(&a, 3);
	close_lane();
}

static void wait_rings_an_eventfd(void)
{
	wait_rings_for_a_sleeper(&usual);
}

static void wait_rings_by_the_socket(void)
{
	wait_rings_for_a_sleeper(&by_socket);
}

static void filter_calls(struct sock_filter *code, size_t nr)
{
	struct sock_fprog filter = { .len = (unsigned short)nr, .filter = code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/* From now on the kernel has no memory for a call @nr with the descriptor @fd. */
static void run_short(long nr, int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)fd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_calls(code, ARRAY_SIZE(code));
}

/* The send and wait of @a, whose descriptor @bell is, finds no memory to ring. */
static void late_ring_is_tried_again(long nr, int *bell)
{
	CHECK_EQ(kevent_lane_arm(&b), 0);
	/* A message is there, so there is no wait that rings. */
	CHECK_EQ(kevent_lane_send(&b, buf, 1), 0);
	run_short(nr, *bell);
	CHECK_EQ(send_get(&a, &qa, 1), 0);
	expect_no_event(&qb);
	*bell = dup(*bell);
	CHECK_EQ(send_nr(&a, 2), 0);
	expect_event(&qb, &b, 0);
	close_lane();
}

static void eventfd_is_written_to_again(void)
{
	open_usual();
	open_queues();
	late_ring_is_tried_again(SYS_write, &a.peer_bell);
}

static void socket_is_written_to_again(void)
{
	open_lane(&by_socket);
	open_queues();
	late_ring_is_tried_again(SYS_sendto, &a.sock);
}

/* The receiver finds no memory to say that there is room, and tries again. */
static void room_is_rung_for_again(void)
{
	__u64 nr;

	open_lane(&by_socket);
	open_queues();
	for (nr = 0; nr < SLOTS; nr++)
		CHECK_EQ(send_nr(&a, nr), 0);
	CHECK_EQ(send_nr(&a, nr), -EAGAIN);
	run_short(SYS_sendto, b.sock);
	for (nr = 0; nr < SLOTS; nr++)
		expect_nr(&b, nr);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EAGAIN);
	expect_no_event(&qa);
	b.sock = dup(b.sock);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EAGAIN);
	expect_event(&qa, &a, 0);
	CHECK_EQ(send_nr(&a, nr), 0);
	close_lane();
}

/* Bad arguments of the wait are refused before the message is sent. */
static void send_and_wait_is_checked(void)
{
	const struct timespec bad = { .tv_nsec = -1 };
	struct ukevent ev;
	__u64 nr = 1;

	open_usual();
	CHECK_EQ(send_get(&a, &qa, nr), -EINVAL);
	open_queues();
	CHECK_EQ(send_get(&a, &qb, nr), -EINVAL);
	CHECK_EQ(kevent_lane_send_get(&a, &nr, 8, &qa, &ev, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_lane_send_get(&a, &nr, 8, &qa, &ev, 1, &bad), -EINVAL);
	CHECK_EQ(kevent_lane_send_get(&a, buf, sizeof(buf), &qa, &ev, 1, NULL),
		 -EMSGSIZE);
	CHECK_EQ(kevent_lane_recv(&b, &nr, sizeof(nr)), -EAGAIN);
	kevent_lane_close(&b);
	CHECK_EQ(send_get(&a, &qa, nr), -EPIPE);
	kevent_lane_close(&a);
}

/* The event of a first full lane comes with half of the slots, each time. */
static void room_is_reported(void)
{
	__u64 sent = 0, taken = 0;
	int i;

	open_usual();
	open_queues();
	for (i = 0; i < 5; i++) {
		while (!send_nr(&a, sent))
			sent++;
		CHECK_EQ(sent - taken, SLOTS);
		expect_no_event(&qa);
		while (taken < sent - SLOTS / 2)
			expect_nr(&b, taken++);
		expect_event(&qa, &a, 0);
		expect_no_event(&qa);
	}
	close_lane();
}

/* A full arena has room when all is taken, though no half of the slots was. */
static void room_in_the_arena_is_reported(void)
{
	open_usual();
	open_queues();
	CHECK_EQ(kevent_lane_send(&a, buf, ARENA), 0);
	CHECK_EQ(kevent_lane_send(&a, buf, 100), -EAGAIN);
	CHECK_EQ(kevent_lane_recv(&b, buf, ARENA), ARENA);
	CHECK_EQ(kevent_lane_recv(&b, buf, ARENA), -EAGAIN);
	expect_event(&qa, &a, 0);
	CHECK_EQ(kevent_lane_send(&a, buf, 100), 0);
	close_lane();
}

static void set_looks_at_all_lanes(void)
{
	struct kevent_lane *from;
	struct kevent_lanes set;
	struct ukevent ev;
	__u64 nr;
	int i;

	open_usual();
	open_queues();
	kevent_lanes_init(&set, 3);
	kevent_lanes_add(&set, &b);
	CHECK_EQ(kevent_lanes_recv(&set, &from, &nr, 8), -EAGAIN);
	CHECK_EQ(kevent_lanes_get(&set, &qb, &ev, 1, &no_time), 0);
	CHECK_EQ(send_nr(&a, 5), 0);
	/* There is a message, so it does not wait. */
	CHECK_EQ(kevent_lanes_get(&set, &qb, &ev, 1, NULL), 0);
	CHECK_EQ(kevent_lanes_recv(&set, &from, &nr, 8), 8);
	CHECK_EQ(nr, 5);
	CHECK(from == &b);
	/* A lane that is idle goes to sleep, and comes back with an event. */
	for (i = 0; i < 100; i++)
		CHECK_EQ(kevent_lanes_recv(&set, &from, &nr, 8), -EAGAIN);
	CHECK_EQ(set.nr_hot, 0);
	CHECK_EQ(send_nr(&a, 6), 0);
	CHECK_EQ(kevent_lanes_recv(&set, &from, &nr, 8), -EAGAIN);
	CHECK_EQ(kevent_lanes_get(&set, &qb, &ev, 1, &a_while), 1);
	CHECK_EQ(kevent_lane_event(&b, &ev), 0);
	CHECK_EQ(kevent_lanes_recv(&set, &from, &nr, 8), 8);
	CHECK_EQ(nr, 6);
	close_lane();
	CHECK_EQ(set.nr_hot, 0);
}

/* --- the sleep of a set -------------------------------------------------- */

static struct kevent_lane a2, b2;	/* another lane, from @a2 to @b2 */
static struct kevent_lanes family;

static void connect_by_name(int *sock)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(bind(fd, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	CHECK_EQ(listen(fd, 1), 0);
	sock[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(connect(sock[0], (struct sockaddr *)&name, len), 0);
	sock[1] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	close(fd);
}

static void open_one_of(struct kevent_lane *from, struct kevent_lane *to,
			const struct kevent_lane_options *o, bool named)
{
	int sock[2];

	if (named)
		connect_by_name(sock);
	else
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_lane_create(from, o), 0);
	CHECK_EQ(kevent_lane_pass(from, sock[0]), 0);
	CHECK_EQ(kevent_lane_attach(to, sock[1], 0, 0), 0);
	CHECK_EQ(kevent_lane_watch(to, qb.fd, to == &b ? USER : USER + 1), 0);
	kevent_lanes_add(&family, to);
}

/* Two lanes to one set */
static void open_family(const struct kevent_lane_options *o, bool named)
{
	CHECK_EQ(kevent_queue_init(&qb, &mem_b.ring, SIZE, 0), 0);
	kevent_lanes_init(&family, 0);
	open_one_of(&a, &b, o, named);
	open_one_of(&a2, &b2, o, named);
}

static void close_family(void)
{
	close_lane();
	kevent_lane_close(&a2);
	kevent_lane_close(&b2);
	kevent_queue_close(&qb);
}

/* How many bells are rung for a message through each lane while the set sleeps? */
static void expect_bells(int want)
{
	struct kevent_lane *from;
	struct ukevent ev[8];
	__u64 nr;
	int i, got;

	CHECK_EQ(kevent_lanes_arm(&family), 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	CHECK_EQ(send_nr(&a2, 1), 0);
	CHECK_EQ(send_nr(&a, 2), 0);
	got = kevent_queue_get(&qb, ev, 8, &a_while);
	CHECK_EQ(got, want);
	for (i = 0; i < got; i++)
		kevent_lane_event(ev[i].ptr == USER ? &b : &b2, &ev[i]);
	for (i = 0; i < 3; i++)
		CHECK_EQ(kevent_lanes_recv(&family, &from, &nr, sizeof(nr)), sizeof(nr));
	CHECK_EQ(kevent_queue_get(&qb, ev, 8, &no_time), 0);
}

static void expect_other_event(void)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(&qb, &ev, 1, &a_while), 1);
	CHECK_EQ(ev.ptr, USER + 1);
	CHECK_EQ(kevent_lane_event(&b2, &ev), 0);
}

static void set_is_rung_for_once(void)
{
	int i;

	open_family(&usual, true);
	for (i = 0; i < 200; i++)
		expect_bells(1);
	close_family();
}

/* The library does not know which process is behind a socket without a name. */
static void lanes_without_a_name_are_rung_for(void)
{
	open_family(&usual, false);
	expect_bells(2);
	expect_bells(2);
	close_family();
	/* A lane that is closed cannot pass on a byte. */
	open_family(&by_socket, true);
	expect_bells(2);
	expect_bells(2);
	close_family();
}

/* A process that writes the number of another one's sleep has that not woken. */
static void number_of_another_process_is_rung_for(void)
{
	open_family(&usual, true);
	CHECK_EQ(a.origin, getpid());
	CHECK_EQ(b.origin, getpid());
	a2.origin++;
	expect_bells(2);
	expect_bells(2);
	close_family();
}

/* The bell has not rung if there was no memory for it. */
static void bell_that_is_lost_rings_by_another_lane(void)
{
	open_family(&usual, true);
	CHECK_EQ(kevent_lanes_arm(&family), 0);
	run_short(SYS_write, a.peer_bell);
	CHECK_EQ(send_nr(&a, 1), 0);
	expect_no_event(&qb);
	CHECK_EQ(send_nr(&a2, 1), 0);
	expect_other_event();
	close_family();
}

/* The peer has rung by the lane that is closed, and does not ring by the other one. */
static void closed_lane_passes_the_bell_on(void)
{
	struct ukevent ev;

	open_family(&usual, true);
	CHECK_EQ(kevent_lanes_arm(&family), 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	kevent_lane_close(&b);
	CHECK_EQ(send_nr(&a2, 2), 0);
	expect_other_event();
	expect_nr(&b2, 2);
	/* There is nothing to pass on when the set is awake. */
	kevent_lane_close(&a);
	open_one_of(&a, &b, &usual, true);
	CHECK_EQ(kevent_lanes_get(&family, &qb, &ev, 1, &no_time), 0);
	kevent_lane_close(&b);
	expect_no_event(&qb);
	close_family();
}

/* The next lane in the set has a peer that has filled its bell, and the event of that was taken. */
static void closed_lane_passes_the_bell_beyond_a_full_one(void)
{
	static struct kevent_lane a3, b3;
	const __u64 most = ~0ULL - 1;
	struct ukevent ev;

	open_family(&usual, true);
	open_one_of(&a3, &b3, &usual, true);
	CHECK(b.next == &b2 && b2.next == &b3);
	CHECK_EQ(write(a2.peer_bell, &most, sizeof(most)), sizeof(most));
	CHECK_EQ(kevent_queue_get(&qb, &ev, 1, &a_while), 1);
	CHECK_EQ(kevent_lane_event(&b2, &ev), 0);
	CHECK_EQ(kevent_lanes_arm(&family), 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	kevent_lane_close(&b);
	CHECK_EQ(send_nr(&a3, 3), 0);
	CHECK_EQ(kevent_queue_get(&qb, &ev, 1, &a_while), 1);
	CHECK_EQ(kevent_lane_event(&b3, &ev), 0);
	expect_nr(&b3, 3);
	kevent_lane_close(&a3);
	kevent_lane_close(&b3);
	close_family();
}

/* A lane that was left alone sleeps for itself, whatever its set does. */
static void lane_that_is_left_alone_is_rung_for(void)
{
	struct kevent_lane *from;
	__u64 nr, i;

	open_family(&usual, true);
	for (i = 0; i < 300 && family.nr_hot > 1; i++) {
		CHECK_EQ(send_nr(&a, i), 0);
		CHECK_EQ(kevent_lanes_recv(&family, &from, &nr, sizeof(nr)), sizeof(nr));
		CHECK_EQ(kevent_lanes_recv(&family, &from, &nr, sizeof(nr)), -EAGAIN);
	}
	CHECK_EQ(family.nr_hot, 1);
	expect_bells(2);
	close_family();
}

static int child_sleeps_apart(void)
{
	static __u64 mine;
	__u64 next = kevent_rung_sleep(kevent_process_mark());

	CHECK(next != *(volatile __u64 *)buf);
	mine = kevent_rung_sleep(kevent_process_mark());
	CHECK_EQ(mine, next + 1);
	return failed;
}

static int status_of_child(int (*fn)(void));

/* A child may be behind the same name as its parent. */
static void child_has_other_numbers(void)
{
	*(__u64 *)buf = kevent_rung_sleep(kevent_process_mark()) + 1;
	CHECK_EQ(status_of_child(child_sleeps_apart), 0);
	CHECK_EQ(kevent_rung_sleep(kevent_process_mark()), *(__u64 *)buf);
}

/* --- ends ---------------------------------------------------------------- */

static void orderly_end_comes_last(const struct kevent_lane_options *o)
{
	open_lane(o);
	open_queues();
	CHECK_EQ(kevent_lane_arm(&b), 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	CHECK_EQ(send_nr(&a, 2), 0);
	kevent_lane_close(&a);
	await_end(&qb, &b);
	expect_nr(&b, 1);
	CHECK_EQ(send_nr(&b, 1), -EPIPE);
	expect_nr(&b, 2);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EPIPE);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EPIPE);
	CHECK_EQ(send_nr(&b, 1), -EPIPE);
	CHECK_EQ(kevent_lane_arm(&b), 1);
	close_lane();
	CHECK_EQ(send_nr(&b, 1), -EPIPE);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EPIPE);
}

static void close_is_an_event(void)
{
	orderly_end_comes_last(&usual);
}

static void close_is_an_event_of_the_socket(void)
{
	orderly_end_comes_last(&by_socket);
}

/* The socket ends, and nothing says that the lane does. */
static void sudden_end_is_an_event(void)
{
	struct ukevent ev;

	open_usual();
	open_queues();
	CHECK_EQ(send_nr(&a, 1), 0);
	CHECK_EQ(shutdown(a.sock, SHUT_RDWR), 0);
	CHECK_EQ(kevent_queue_get(&qb, &ev, 1, &a_while), 1);
	CHECK_EQ(kevent_lane_event(&b, &ev), 1);
	/* The watch of the socket is gone, so it does not repeat. */
	expect_no_event(&qb);
	CHECK_EQ(send_get(&b, &qb, 1), -EPIPE);
	expect_nr(&b, 1);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -ECONNRESET);
	CHECK_EQ(send_nr(&b, 1), -EPIPE);
	CHECK_EQ(send_get(&b, &qb, 1), -EPIPE);
	close_lane();
}

/*
 * The set names a lane whose peer has ended, once it has taken all: also one that has
 * no slots to receive from, which the peer decides. Else the receiver never sleeps, and
 * never closes the lane.
 */
static void set_names_an_end(const struct kevent_lane_options *o, int error)
{
	struct kevent_lane *from = NULL;
	struct kevent_lanes set;
	struct ukevent ev;
	__u64 nr;

	open_lane(o);
	open_queues();
	kevent_lanes_init(&set, 0);
	kevent_lanes_add(&set, &b);
	CHECK_EQ(kevent_lanes_recv(&set, &from, &nr, 8), -EAGAIN);
	if (error == -EPIPE)
		kevent_lane_close(&a);
	else
		CHECK_EQ(shutdown(a.sock, SHUT_RDWR), 0);
	if (kevent_lanes_get(&set, &qb, &ev, 1, &a_while) == 1)
		kevent_lane_event(&b, &ev);
	CHECK_EQ(kevent_lanes_recv(&set, &from, &nr, 8), error);
	CHECK(from == &b);
	CHECK_EQ(send_nr(&b, 1), -EPIPE);
	close_lane();
	CHECK_EQ(kevent_lanes_get(&set, &qb, &ev, 1, &no_time), 0);
	kevent_queue_close(&qa);
	kevent_queue_close(&qb);
}

static void set_names_ended_lanes(void)
{
	static const struct kevent_lane_options to_creator = { .recv_slots = 2 };

	set_names_an_end(&usual, -EPIPE);
	set_names_an_end(&usual, -ECONNRESET);
	set_names_an_end(&to_creator, -EPIPE);
	set_names_an_end(&to_creator, -ECONNRESET);
}

/* --- what a hostile peer writes ------------------------------------------ */

static void receiver_refuses_lengths(void)
{
	static const __u32 bad[][2] = {
		{ ARENA + 1, 0 }, { ARENA, 1 }, { 49, ARENA - 48 },
		{ 0xffffffff, 0 }, { 64, 0xffffffff }, { 64, 0xffffffe0 },
		{ 0x80000000, 0x80000000 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		open_usual();
		CHECK_EQ(send_nr(&a, 1), 0);
		slot(0)->len = bad[i][0];
		slot(0)->off = bad[i][1];
		CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), -EPROTO);
		CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), -EPROTO);
		CHECK_EQ(send_nr(&b, 1), -EPROTO);
		close_lane();
	}
}

static void receiver_takes_next_numbers_only(void)
{
	static const __u64 bad[] = { 0, 2, 1 + SLOTS, ~0ULL, 1ULL << 32 | 1 };
	size_t i;

	open_usual();
	CHECK_EQ(send_nr(&a, 1), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		slot(0)->seq = bad[i];
		CHECK_EQ(kevent_lane_recv(&b, buf, sizeof(buf)), -EAGAIN);
	}
	slot(0)->seq = 1;
	expect_nr(&b, 1);
	close_lane();
}

static void sender_refuses_positions(void)
{
	static const __u64 bad[] = { 0, 2, 5, 6, ~0ULL, 1ULL << 32 };
	size_t i;
	__u64 nr;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		open_usual();
		for (nr = 0; nr < SLOTS; nr++)
			CHECK_EQ(send_nr(&a, nr), 0);
		expect_nr(&b, 0);
		expect_nr(&b, 1);
		expect_nr(&b, 2);
		CHECK_EQ(send_nr(&a, nr++), 0);
		CHECK_EQ(send_nr(&a, nr++), 0);
		CHECK_EQ(send_nr(&a, nr++), 0);
		/* 3 are known to be taken, and 7 were sent. */
		b.me->taken = bad[i];
		CHECK_EQ(send_nr(&a, nr),
			 bad[i] == 5 || bad[i] == 6 ? 0 : -EPROTO);
		close_lane();
	}
}

static void false_end_breaks_the_lane(void)
{
	open_usual();
	CHECK_EQ(send_nr(&a, 1), 0);
	a.me->closed = 9;
	expect_nr(&b, 1);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EPROTO);
	close_lane();
}

/* --- making and taking lanes --------------------------------------------- */

static void sizes_are_checked(void)
{
	static const struct kevent_lane_options bad[] = {
		{}, { .send_arena = 64 }, { .send_slots = 1 },
		{ .send_slots = 3 }, { .recv_slots = 131072 },
		{ .send_slots = 2, .send_arena = 32 },
		{ .send_slots = 2, .send_arena = 96 },
		{ .send_slots = 2, .recv_arena = 1U << 31 },
		{ .send_slots = 2, .flags = 2 }, { .send_slots = 2, .__pad0 = 1 },
	};
	struct kevent_lane_options good = { .send_slots = 2 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(kevent_lane_create(&a, &bad[i]), -EINVAL);
	kevent_lane_close(&a);
	CHECK_EQ(kevent_lane_pass(&a, 0), -EPIPE);
	open_lane(&good);
	CHECK_EQ(send_nr(&b, 1), -EOPNOTSUPP);
	CHECK_EQ(kevent_lane_recv(&a, buf, 8), -EOPNOTSUPP);
	CHECK_EQ(kevent_lane_pass(&a, a.sock), -EALREADY);
	close_lane();
}

/* A message that a hostile process may send in place of a lane */
struct parcel {
	__u64	magic;
	__u32	flags;
	__u32	pad;
	int	fd[4];
	int	nr;
};

static int parcel_is(const struct parcel *p)
{
	union {
		struct cmsghdr	head;
		char		bytes[CMSG_SPACE(sizeof(p->fd))];
	} c = {};
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = 16 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int sock[2], ret;

	if (p->nr) {
		msg.msg_control = &c;
		msg.msg_controllen = CMSG_SPACE((size_t)p->nr * sizeof(int));
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN((size_t)p->nr * sizeof(int));
		memcpy(CMSG_DATA(&c.head), p->fd, (size_t)p->nr * sizeof(int));
	}
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	CHECK_EQ(sendmsg(sock[0], &msg, 0), 16);
	ret = kevent_lane_attach(&b, sock[1], 0, 0);
	kevent_lane_close(&b);
	close(sock[0]);
	close(sock[1]);
	return ret;
}

static int make_memory(const struct kevent_lane_memory *head, off_t size, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	CHECK_EQ(ftruncate(fd, size), 0);
	if (size <= 1 << 20)
		CHECK_EQ(fallocate(fd, 0, 0, size), 0);
	CHECK_EQ(pwrite(fd, head, sizeof(*head), 0), sizeof(*head));
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* The one that attaches would pay for what has cost its peer nothing. */
static void memory_has_no_holes(void)
{
	const struct kevent_lane_memory head = {
		.magic = KEVENT_LANE_MAGIC, .slots = { 2, 2 }, .arena = { 1 << 16, 0 },
	};
	const off_t size = KEVENT_LANE_HEAD + 4 * 64 + (1 << 16);
	int bell = eventfd(0, EFD_NONBLOCK);
	struct parcel p = { KEVENT_LANE_MAGIC, 0, 0, { -1, bell, bell }, 3 };

	p.fd[0] = make_memory(&head, size, F_SEAL_SHRINK);
	CHECK_EQ(parcel_is(&p), 0);
	CHECK_EQ(fallocate(p.fd[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 14, 1 << 14),
		 0);
	CHECK_EQ(parcel_is(&p), -EPROTO);
	CHECK_EQ(fallocate(p.fd[0], 0, 0, size), 0);
	CHECK_EQ(parcel_is(&p), 0);
}

/* Its peer makes this memory longer, as soon as the library has seen how long it is. */
static int growing = -1;

/* Before 2.33 glibc has fstat() in its headers, and that calls this. */
#ifdef _STAT_VER
int __fxstat(int version, int fd, struct stat *st)
#else
int fstat(int fd, struct stat *st)
#endif
{
	const struct kevent_lane_memory head = {
		.magic = KEVENT_LANE_MAGIC, .slots = { 2, 0 },
		.arena = { 1 << 26, 0 },
	};
	int ret = (int)syscall(SYS_fstat, fd, st);

	if (growing < 0)
		return ret;
	CHECK_EQ(fallocate(growing, 0, 0, 65 << 20), 0);
	CHECK_EQ(pwrite(growing, &head, sizeof(head), 0), sizeof(head));
	growing = -1;
	return ret;
}

static void memory_grows_above_no_limit(void)
{
	const struct kevent_lane_memory head = {};
	int bell = eventfd(0, EFD_NONBLOCK);
	struct parcel p = { KEVENT_LANE_MAGIC, 0, 0, { -1, bell, bell }, 3 };

	p.fd[0] = make_memory(&head, 4096, F_SEAL_SHRINK);
	growing = p.fd[0];
	CHECK_EQ(parcel_is(&p), -EPROTO);
	CHECK_EQ(growing, -1);
}

static void parcels_are_checked(void)
{
	struct kevent_lane_memory head = {
		.magic = KEVENT_LANE_MAGIC, .slots = { 2, 0 },
	};
	off_t size = KEVENT_LANE_HEAD + 2 * 64;
	int good = make_memory(&head, size, F_SEAL_SHRINK);
	int bell = eventfd(0, EFD_NONBLOCK), pipes[2], before;
	struct parcel p = { KEVENT_LANE_MAGIC, 0, 0, { good, bell, bell }, 3 };

	CHECK_EQ(pipe(pipes), 0);
	CHECK_EQ(parcel_is(&p), 0);
	before = nr_open();
	p.fd[1] = pipes[1];
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.fd[1] = bell;
	p.fd[2] = open("/dev/null", O_RDWR);
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.fd[2] = bell;
	p.fd[0] = bell;
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.fd[0] = open("/dev/zero", O_RDWR);
	CHECK_EQ(parcel_is(&p), -EPROTO);
	/* It could become shorter under the receiver. */
	p.fd[0] = make_memory(&head, size, 0);
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.fd[0] = make_memory(&head, size - 1, F_SEAL_SHRINK);
	CHECK_EQ(parcel_is(&p), -EPROTO);
	head.slots[1] = 3;
	p.fd[0] = make_memory(&head, 1 << 20, F_SEAL_SHRINK);
	CHECK_EQ(parcel_is(&p), -EPROTO);
	head.slots[1] = 0;
	p.fd[0] = make_memory(&head, 65 << 20, F_SEAL_SHRINK);
	CHECK_EQ(parcel_is(&p), -EFBIG);
	p.fd[0] = make_memory(&head, size, F_SEAL_SHRINK | F_SEAL_WRITE);
	CHECK_EQ(parcel_is(&p), -EPERM);
	p.fd[0] = good;
	p.flags = KEVENT_LANE_SOCKET;
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.nr = 1;
	CHECK_EQ(parcel_is(&p), 0);
	p.flags = 2;
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.flags = 0;
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.nr = 0;
	CHECK_EQ(parcel_is(&p), -EPROTO);
	/* One too many: it is closed. */
	p.nr = 4;
	p.fd[3] = bell;
	CHECK_EQ(parcel_is(&p), -EPROTO);
	p.nr = 3;
	CHECK_EQ(parcel_is(&p), 0);
	p.magic++;
	CHECK_EQ(parcel_is(&p), -EPROTO);
	/* Only the descriptors that were opened above, and none that came with a parcel */
	CHECK_EQ(nr_open() - before, 7);
}

/* So many descriptors are @left to the one that attaches. */
static void attach_with(const struct kevent_lane_options *o, int left, int want)
{
	int sock[2], fd, last = 0, before;

	for (fd = 3; fd < FDS; fd++)
		close(fd);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_lane_create(&a, o), 0);
	CHECK_EQ(kevent_lane_pass(&a, sock[0]), 0);
	while ((fd = dup(1)) >= 0)
		last = fd;
	for (fd = 0; fd < left; fd++)
		close(last - fd);
	before = nr_open();
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, 0), want);
	if (want)
		CHECK_EQ(nr_open(), before);
}

/* Memory and two eventfds arrive, and one more is made to compare these with. */
static void lack_of_descriptors_is_no_bad_lane(void)
{
	const struct rlimit limit = { FDS, FDS };

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	attach_with(&usual, 0, -EMFILE);
	attach_with(&usual, 2, -EMFILE);
	attach_with(&usual, 3, -EMFILE);
	attach_with(&usual, 4, 0);
	attach_with(&by_socket, 0, -EMFILE);
	attach_with(&by_socket, 1, 0);
}

static void socket_is_checked(void)
{
	int sock[2], fd[2];

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(kevent_lane_create(&a, &usual), 0);
	CHECK_EQ(kevent_lane_pass(&a, fd[1]), -EINVAL);
	CHECK_EQ(kevent_lane_pass(&a, -1), -EINVAL);
	CHECK_EQ(kevent_lane_attach(&b, fd[0], 0, 0), -EINVAL);
	CHECK_EQ(kevent_lane_watch(&a, fd[0], 0), -EINVAL);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, 2), -EINVAL);
	CHECK_EQ(kevent_lane_pass(&a, sock[0]), 0);
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, KEVENT_LANE_SOCKET), -EPERM);
	kevent_lane_close(&a);
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, 0), -ECONNRESET);
}

/* The program has asked for more than descriptors with each message: a lane comes too. */
static void credentials_may_come_beside(void)
{
	int before = nr_open(), one = 1, sock[2];
	__u64 nr = 0;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(setsockopt(sock[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)), 0);
	/* Not of each kernel */
	setsockopt(sock[1], SOL_SOCKET, SO_PASSSEC, &one, sizeof(one));
	setsockopt(sock[1], SOL_SOCKET, SO_PASSPIDFD, &one, sizeof(one));
	CHECK_EQ(kevent_lane_create(&a, &usual), 0);
	CHECK_EQ(kevent_lane_pass(&a, sock[0]), 0);
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, 0), 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	CHECK_EQ(kevent_lane_recv(&b, &nr, 8), 8);
	close_lane();
	CHECK_EQ(nr_open(), before);
}

/* Nobody can take memory from under the peer. */
static void memory_is_sealed(void)
{
	CHECK_EQ(kevent_lane_create(&a, &usual), 0);
	CHECK_EQ(ftruncate(a.fd, 0), -1);
	CHECK_EQ(ftruncate(a.fd, 1 << 20), -1);
	/* Where there is one against execution, that, too */
	CHECK_EQ(fcntl(a.fd, F_GET_SEALS) & ~F_SEAL_EXEC,
		 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	kevent_lane_close(&a);
}

/* Memory that may be executed, or memory that may not, is refused with @error from now on. */
static void refuse_memory(bool executable, __u32 error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MFD_NOEXEC_SEAL,
			 executable, !executable),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_calls(code, ARRAY_SIZE(code));
}

/* As with vm.memfd_noexec=2 */
static void memory_need_not_be_executable(void)
{
	refuse_memory(true, EACCES);
	open_usual();
	close_lane();
}

/* As before Linux 6.3 */
static void old_kernels_make_memory(void)
{
	refuse_memory(false, EINVAL);
	open_usual();
	close_lane();
}

/* A program cleans up what it has not made yet. */
static void zeros_are_a_closed_lane(void)
{
	static struct kevent_lane lane;
	__u64 nr;

	CHECK_EQ(dup2(open("/dev/null", O_RDONLY), STDIN_FILENO), STDIN_FILENO);
	kevent_lane_close(&lane);
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	CHECK_EQ(kevent_lane_send(&lane, "", 1), -EPIPE);
	CHECK_EQ(kevent_lane_recv(&lane, &nr, 8), -EPIPE);
	kevent_lane_close(&lane);
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

static void nothing_is_left_open(void)
{
	int before = nr_open();

	open_usual();
	close_lane();
	open_lane(&by_socket);
	close_lane();
	CHECK_EQ(nr_open(), before);
}

/* Where a thread that shall end has come */
static int steps;

/* Each call that opens, closes or reads descriptors, with a cancellation under way */
static void *calls_to_the_end(void *none)
{
	const __u32 flags = KEVENT_INIT_FALLBACK_ONLY | KEVENT_INIT_ALL_TYPES;
	int stray;

	pthread_cancel(pthread_self());
	open_usual();
	steps++;
	open_queues();
	steps++;
	kevent_supported();
	kevent_types(qa.fd);
	steps++;
	CHECK_EQ(kevent_lane_arm(&b), 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	close_lane();
	steps++;
	CHECK_EQ(kevent_init(NULL, 0, flags), -EOPNOTSUPP);
	steps++;
	stray = qa.fd;
	kevent_queue_close(&qa);
	qa.fd = stray;
	errno = 1234;
	kevent_queue_close(&qa);
	CHECK_EQ(errno, 1234);
	kevent_queue_close(&qb);
	steps++;
	pthread_testcancel();
	steps++;
	return none;
}

static void no_call_is_a_cancellation_point(void)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, calls_to_the_end, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(steps, 6);
}

static int in_child(void)
{
	struct kevent_lane *from;
	struct ukevent ev = {};
	void *at;

	CHECK_EQ(send_nr(&a, 1), -EXDEV);
	CHECK_EQ(kevent_lane_reserve(&a, 1, &at), -EXDEV);
	CHECK_EQ(kevent_lane_publish(&a, 0), -EXDEV);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EXDEV);
	CHECK_EQ(kevent_lane_arm(&b), -EXDEV);
	CHECK_EQ(kevent_lane_event(&b, &ev), -EXDEV);
	CHECK_EQ(kevent_lane_watch(&b, 0, 0), -EXDEV);
	CHECK_EQ(kevent_lanes_recv(&family, &from, buf, 8), -EXDEV);
	close_lane();
	CHECK_EQ(kevent_lanes_recv(&family, &from, buf, 8), -EAGAIN);
	return failed;
}

static int status_of_child(int (*fn)(void))
{
	int status = 1;

	fflush(stdout);
	if (!fork()) {
		status = fn();
		fflush(stdout);
		_exit(status);
	}
	wait(&status);
	return status;
}

/* The kernel has a queue of the parent watch a lane of the child. */
static int sends_and_waits_in_child(void)
{
	open_usual();
	a.queue = qa.fd;
	CHECK_EQ(send_get(&a, &qa, 1), -EXDEV);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EAGAIN);
	return failed;
}

static void queue_of_a_parent_is_refused_before_the_send(void)
{
	CHECK_EQ(kevent_queue_init(&qa, &mem_a.ring, SIZE, 0), 0);
	CHECK_EQ(status_of_child(sends_and_waits_in_child), 0);
	kevent_queue_close(&qa);
}

static void child_has_no_lane(void)
{
	open_usual();
	kevent_lanes_init(&family, 0);
	kevent_lanes_add(&family, &b);
	CHECK_EQ(send_nr(&a, 1), 0);
	CHECK_EQ(status_of_child(in_child), 0);
	expect_nr(&b, 1);
	CHECK_EQ(send_nr(&a, 2), 0);
	expect_nr(&b, 2);
	CHECK_EQ(kevent_lane_recv(&b, buf, 8), -EAGAIN);
	close_lane();
}

/* It has a copy of a set that sleeps, and of one that is awake. */
static int sleeps_in_child(void)
{
	struct ukevent ev;

	CHECK_EQ(kevent_lanes_arm(&family), 1);
	CHECK_EQ(kevent_lanes_get(&family, &qb, &ev, 1, &no_time), -EXDEV);
	return failed;
}

static void child_wakes_and_sends_nobody_to_sleep(void)
{
	open_usual();
	open_queues();
	kevent_lanes_init(&family, 0);
	kevent_lanes_add(&family, &b);
	CHECK_EQ(status_of_child(sleeps_in_child), 0);
	CHECK_EQ(b.me->asleep, 0);
	CHECK_EQ(send_nr(&a, 1), 0);
	expect_no_event(&qb);
	expect_nr(&b, 1);
	CHECK_EQ(kevent_lanes_arm(&family), 0);
	CHECK_EQ(status_of_child(sleeps_in_child), 0);
	CHECK_EQ(send_nr(&a, 2), 0);
	expect_event(&qb, &b, 0);
	expect_nr(&b, 2);
	close_lane();
}

static const struct test tests[] = {
	TEST(messages_keep_their_order),
	TEST(full_lane_has_no_room),
	TEST(each_length_arrives),
	TEST(arena_is_used_in_a_circle),
	TEST(longest_fits_when_all_is_taken),
	TEST(arena_is_not_given_back_twice),
	TEST(message_is_made_in_place),
	TEST(message_in_place_is_the_last_one),
	TEST(long_message_waits_for_a_buffer),
	TEST(sleeper_is_rung_for_once),
	TEST(eventfd_wakes_a_sleeper),
	TEST(socket_wakes_a_sleeper),
	TEST(wait_rings_an_eventfd),
	TEST(wait_rings_by_the_socket),
	TEST(eventfd_is_written_to_again),
	TEST(socket_is_written_to_again),
	TEST(room_is_rung_for_again),
	TEST(send_and_wait_is_checked),
	TEST(room_is_reported),
	TEST(room_in_the_arena_is_reported),
	TEST(set_looks_at_all_lanes),
	TEST(set_is_rung_for_once),
	TEST(lanes_without_a_name_are_rung_for),
	TEST(number_of_another_process_is_rung_for),
	TEST(bell_that_is_lost_rings_by_another_lane),
	TEST(closed_lane_passes_the_bell_on),
	TEST(closed_lane_passes_the_bell_beyond_a_full_one),
	TEST(lane_that_is_left_alone_is_rung_for),
	TEST(child_has_other_numbers),
	TEST(close_is_an_event),
	TEST(close_is_an_event_of_the_socket),
	TEST(sudden_end_is_an_event),
	TEST(set_names_ended_lanes),
	TEST(receiver_refuses_lengths),
	TEST(receiver_takes_next_numbers_only),
	TEST(sender_refuses_positions),
	TEST(false_end_breaks_the_lane),
	TEST(sizes_are_checked),
	TEST(memory_grows_above_no_limit),
	TEST(parcels_are_checked),
	TEST(memory_has_no_holes),
	TEST(lack_of_descriptors_is_no_bad_lane),
	TEST(socket_is_checked),
	TEST(credentials_may_come_beside),
	TEST(memory_is_sealed),
	TEST(memory_need_not_be_executable),
	TEST(old_kernels_make_memory),
	TEST(zeros_are_a_closed_lane),
	TEST(nothing_is_left_open),
	TEST(no_call_is_a_cancellation_point),
	TEST(queue_of_a_parent_is_refused_before_the_send),
	TEST(child_has_no_lane),
	TEST(child_wakes_and_sends_nobody_to_sleep),
};

int main(void)
{
	return run_tests("lane", tests, ARRAY_SIZE(tests));
}
