// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Streams with both sides in one process, step by step: each way to memory and back, each
 * word that a peer may write, each way to end
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lane/parcel.h"
#include "pairs.h"

#define BIG		(1 << 20)
#define BOTH		(KEVENT_STREAM_SENDS | KEVENT_STREAM_RECEIVES)

static struct kevent_stream *a, *b;	/* a has connected */
static unsigned char buf[BIG], big[BIG];

static void open_pair(bool named)
{
	struct sockaddr_un name;
	socklen_t len;
	int sock[2], fd;

	if (named) {
		fd = listen_somewhere(&name, &len);
		connect_to(fd, &name, len, sock);
		close(fd);
	} else {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	}
	CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER, &a), 0);
	CHECK_EQ(kevent_stream_open(sb, sock[1], 0, USER, &b), 0);
}

static void expect(struct kevent_stream *s, const char *want)
{
	size_t len = strlen(want);

	memset(buf, 0xee, len + 1);
	CHECK_EQ(kevent_stream_read(s, buf, len), len);
	CHECK(!memcmp(buf, want, len));
}

static void say(struct kevent_stream *s, const char *text)
{
	CHECK_EQ(kevent_stream_write(s, text, strlen(text)), strlen(text));
}

static void expect_none(struct kevent_stream *s)
{
	CHECK_EQ(kevent_stream_read(s, buf, 1), -EAGAIN);
}

static void to_memory(void)
{
	say(a, "1");
	expect(b, "1");
	say(b, "2");
	expect(a, "2");
	say(a, "3");
	expect(b, "3");
	CHECK_EQ(kevent_stream_memory(a), BOTH);
	CHECK_EQ(kevent_stream_memory(b), BOTH);
}

static void open_usual(void)
{
	open_sets();
	open_pair(true);
	to_memory();
}

/* Has the set nothing to do, and its queue no event? */
static void settle(struct kevent_streams *set)
{
	int nr;

	do {
		nr = take_event(set, set->all, &no_time);
		while (kevent_streams_next(set))
			;
	} while (nr > 0);
}

/* Neither in this round nor in the next one */
static void expect_none_ready(struct kevent_streams *set)
{
	CHECK(!kevent_streams_next(set));
	CHECK(!kevent_streams_next(set));
}

/* Sleeps, and comes back with @s. */
static void expect_wake_up(struct kevent_streams *set, struct kevent_stream *s)
{
	CHECK_EQ(take_event(set, s, &a_while), 1);
	CHECK(kevent_streams_next(set) == s);
}

static void expect_no_event(struct kevent_streams *set)
{
	CHECK_EQ(take_event(set, set->all, &no_time), 0);
}

static int nr_open(void)
{
	int fd, nr = 0;

	for (fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* --- to memory ----------------------------------------------------------- */

static void memory_is_used(bool named)
{
	open_sets();
	open_pair(named);
	CHECK_EQ(kevent_stream_memory(a), 0);
	to_memory();
	CHECK_EQ(a->page != NULL, named);
	CHECK_EQ(b->pair != &b->own, named);
	say(a, "there");
	say(b, "back");
	expect(b, "there");
	expect(a, "back");
	expect_none(a);
	expect_none(b);
	close_sets();
}

static void memory_is_used_to_a_listener(void)
{
	memory_is_used(true);
}

static void memory_is_used_between_a_pair(void)
{
	memory_is_used(false);
}

/* The kernel drops the descriptors that it does not ask for. */
static void unaware_peer_reads_its_bytes(void)
{
	struct kevent_stream *s;
	int sock[2], next;

	open_sets();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER, &s), 0);
	next = dup(0);
	say(s, "abc");
	CHECK_EQ(read(sock[1], buf, sizeof(buf)), 3);
	CHECK_EQ(write(sock[1], "def", 3), 3);
	expect(s, "def");
	say(s, "gh");
	CHECK_EQ(read(sock[1], buf, sizeof(buf)), 2);
	CHECK_EQ(kevent_stream_memory(s), 0);
	close(next);
	/* One is the memory's while it is offered. */
	CHECK_EQ(dup(0), next);
	CHECK_EQ(kevent_stream_shutdown(s), 0);
	CHECK_EQ(read(sock[1], buf, sizeof(buf)), 0);
	CHECK_EQ(write(sock[1], "i", 1), 1);
	expect(s, "i");
	close(sock[1]);
	CHECK_EQ(kevent_stream_read(s, buf, 1), 0);
	close_sets();
}

/* Both sides offer, as both of a socketpair() may: they have the socket. */
static void two_offers_are_none(void)
{
	int sock[2];

	open_sets();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER, &a), 0);
	CHECK_EQ(kevent_stream_open(sb, sock[1], KEVENT_STREAM_OFFER, USER, &b), 0);
	say(a, "1");
	say(b, "2");
	expect(b, "1");
	expect(a, "2");
	say(a, "3");
	expect(b, "3");
	CHECK_EQ(kevent_stream_memory(a), 0);
	close_sets();
}

static void accepting_side_may_speak_first(void)
{
	open_sets();
	open_pair(true);
	say(b, "welcome");
	say(a, "x");
	expect(b, "x");
	say(b, " you");
	CHECK_EQ(kevent_stream_memory(b), KEVENT_STREAM_SENDS);
	expect(a, "welcome");
	expect(a, " you");
	CHECK_EQ(kevent_stream_memory(a), BOTH);
	say(a, "y");
	expect(b, "y");
	expect_none(a);
	close_sets();
}

/* Bytes of the socket, a bell behind them, and bytes of the memory, by reads of @len */
static void order_is_kept_by_reads_of(size_t len)
{
	static const char want[] = "0123456789abcdef";
	char got[32] = "";
	size_t nr = 0;
	ssize_t ret;

	open_sets();
	open_pair(true);
	say(a, "x");
	say(b, "01234567");
	expect(b, "x");
	CHECK_EQ(kevent_streams_arm(sa), 0);
	say(b, "89abcdef");
	do {
		ret = kevent_stream_read(a, got + nr, len);
		nr += ret > 0 ? (size_t)ret : 0;
	} while (ret > 0);
	CHECK_EQ(ret, -EAGAIN);
	CHECK(!strcmp(got, want));
	CHECK_EQ(kevent_stream_memory(a), BOTH);
	close_sets();
}

static void order_is_kept_when_memory_begins(void)
{
	order_is_kept_by_reads_of(1);
	order_is_kept_by_reads_of(5);
	order_is_kept_by_reads_of(8);
	order_is_kept_by_reads_of(20);
}

static void peek_takes_nothing(void)
{
	open_sets();
	open_pair(true);
	say(a, "one");
	CHECK_EQ(kevent_stream_peek(b, buf, 10), 3);
	expect(b, "one");
	CHECK_EQ(kevent_stream_memory(b), KEVENT_STREAM_SENDS);
	say(b, "two");
	CHECK_EQ(kevent_stream_peek(a, buf, 10), 3);
	CHECK_EQ(kevent_stream_peek(a, buf, 10), 3);
	CHECK(!memcmp(buf, "two", 3));
	expect(a, "two");
	CHECK_EQ(kevent_stream_peek(a, buf, 10), -EAGAIN);
	close_sets();
}

static void expect_peek(struct kevent_stream *s, const char *want)
{
	memset(buf, 0xee, sizeof(buf));
	CHECK_EQ(kevent_stream_peek(s, buf, 20), strlen(want));
	CHECK(!memcmp(buf, want, strlen(want)));
}

/* A part is in the socket, and the rest in the memory. */
static void peek_goes_on_in_the_memory(void)
{
	open_sets();
	open_pair(true);
	say(a, "01234");
	expect(b, "0");
	say(b, "x");
	expect(a, "x");
	say(a, "56789");
	CHECK_EQ(kevent_stream_memory(a), BOTH);
	expect_peek(b, "123456789");
	CHECK_EQ(kevent_stream_poll(b, POLLIN), POLLIN);
	expect_peek(b, "123456789");
	CHECK_EQ(kevent_stream_read(b, buf, 2), 2);
	expect_peek(b, "3456789");
	expect(b, "34");
	expect_peek(b, "56789");
	expect(b, "56789");
	expect_none(b);
	CHECK_EQ(kevent_stream_peek(b, buf, 20), -EAGAIN);
	close_sets();
}

static void vectors_are_one_stream(void)
{
	struct iovec out[4] = { { .iov_base = "ab", .iov_len = 2 }, { .iov_len = 0 },
				{ .iov_base = "cde", .iov_len = 3 },
				{ .iov_base = "f", .iov_len = 1 } };
	char one[4], two[8];
	struct iovec in[3] = { { .iov_base = one, .iov_len = 4 }, { .iov_len = 0 },
			       { .iov_base = two, .iov_len = 8 } };
	int i;

	open_sets();
	open_pair(true);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(kevent_stream_writev(a, out, 4), 6);
		CHECK_EQ(kevent_stream_readv(b, in, 3), 6);
		CHECK(!memcmp(one, "abcd", 4) && !memcmp(two, "ef", 2));
		say(b, "k");
		expect(a, "k");
	}
	CHECK_EQ(kevent_stream_writev(a, out, 1025), -EINVAL);
	CHECK_EQ(kevent_stream_readv(a, in, 1025), -EINVAL);
	CHECK_EQ(kevent_stream_writev(a, out, 0), 0);
	CHECK_EQ(kevent_stream_readv(a, in, 0), 0);
	close_sets();
}

/* --- poll ---------------------------------------------------------------- */

#define ALL	(POLLIN | POLLOUT | POLLRDHUP)

static int plain[2];	/* what happens to a and b happens to these, too */

static int poll_plain(int i)
{
	struct pollfd fd = { .fd = plain[i], .events = ALL };

	CHECK(poll(&fd, 1, 0) >= 0);
	return fd.revents;
}

static void polls_are_equal(void)
{
	CHECK_EQ(kevent_stream_poll(a, ALL), poll_plain(0));
	CHECK_EQ(kevent_stream_poll(b, ALL), poll_plain(1));
	CHECK_EQ(kevent_stream_poll(a, POLLIN), poll_plain(0) & ~(POLLOUT | POLLRDHUP));
}

static void open_beside_plain(bool memory)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, plain), 0);
	open_sets();
	open_pair(true);
	polls_are_equal();
	if (memory)
		to_memory();
	polls_are_equal();
}

static void poll_follows_bytes_and_ends(bool memory)
{
	open_beside_plain(memory);
	say(a, "ab");
	CHECK_EQ(write(plain[0], "ab", 2), 2);
	polls_are_equal();
	expect(b, "a");
	CHECK_EQ(read(plain[1], buf, 1), 1);
	polls_are_equal();
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(shutdown(plain[0], SHUT_WR), 0);
	polls_are_equal();
	expect(b, "b");
	CHECK_EQ(read(plain[1], buf, 1), 1);
	polls_are_equal();
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	polls_are_equal();
	CHECK_EQ(kevent_stream_shutdown(b), 0);
	CHECK_EQ(shutdown(plain[1], SHUT_WR), 0);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	polls_are_equal();
	close(plain[0]);
	close(plain[1]);
	close_sets();
}

static void poll_is_that_of_a_socket(void)
{
	poll_follows_bytes_and_ends(false);
	poll_follows_bytes_and_ends(true);
}

/* @sudden: as the end of the process */
static void poll_sees_the_close(bool memory, bool sudden)
{
	open_beside_plain(memory);
	settle(sb);
	say(a, "m");
	if (sudden) {
		CHECK_EQ(shutdown(a->sock, SHUT_RDWR), 0);
		settle(sb);
	} else {
		close_stream(a);
	}
	CHECK_EQ(write(plain[0], "m", 1), 1);
	close(plain[0]);
	CHECK_EQ(kevent_stream_poll(b, ALL), poll_plain(1));
	expect(b, "m");
	CHECK_EQ(read(plain[1], buf, 1), 1);
	CHECK_EQ(kevent_stream_poll(b, ALL), poll_plain(1));
	close(plain[1]);
	close_sets();
}

static void poll_sees_that_the_peer_has_gone(void)
{
	poll_sees_the_close(false, false);
	poll_sees_the_close(true, false);
	poll_sees_the_close(true, true);
}

/* Only the poll asks: no write has found that there is none. */
static void fill_up(void)
{
	if (kevent_stream_memory(a)) {
		CHECK_EQ(kevent_stream_write(a, big, BIG), STREAM_RING);
		return;
	}
	while (send(a->sock, big, 1000, MSG_DONTWAIT) > 0)
		;
}

static void poll_asks_for_room(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		open_sets();
		open_pair(true);
		if (i)
			to_memory();
		settle(sa);
		fill_up();
		CHECK_EQ(kevent_stream_poll(a, ALL), 0);
		CHECK(kevent_streams_next(sa) == (own_loops && !i ? a : NULL));
		CHECK_EQ(kevent_streams_arm(sa), 0);
		while (kevent_stream_read(b, buf, BIG) > 0)
			;
		expect_wake_up(sa, a);
		CHECK_EQ(kevent_stream_poll(a, ALL), POLLOUT);
		CHECK_EQ(kevent_stream_write(a, big, 1), 1);
		close_sets();
	}
}

/* --- the ring ------------------------------------------------------------ */

static void fill(void)
{
	size_t i;

	for (i = 0; i < BIG; i++)
		big[i] = (unsigned char)(i * 7 + i / 251);
}

/* Writes of @out bytes and reads of @in, until all is there */
static void pass_big(size_t out, size_t in)
{
	size_t sent = 0, got = 0, len;
	ssize_t ret = 0, ret2 = 0;

	memset(buf, 0, sizeof(buf));
	while (got < BIG && !failed) {
		len = BIG - sent < out ? BIG - sent : out;
		ret = kevent_stream_write(a, big + sent, len);
		sent += ret > 0 ? (size_t)ret : 0;
		len = BIG - got < in ? BIG - got : in;
		ret2 = kevent_stream_read(b, buf + got, len);
		got += ret2 > 0 ? (size_t)ret2 : 0;
		CHECK(ret >= 0 || ret == -EAGAIN);
		CHECK(ret2 > 0);
	}
	CHECK(!memcmp(buf, big, BIG));
}

static void each_size_passes(void)
{
	fill();
	open_usual();
	pass_big(1000, 1000);
	pass_big(3000, 2999);
	pass_big(BIG, 5000);
	pass_big(70000, 64 << 10);
	pass_big(4096, BIG);
	close_sets();
}

static size_t resident(const struct kevent_stream *s)
{
	unsigned char there[STREAM_BYTES / 4096 + 1];
	size_t i, nr = 0;

	CHECK_EQ(mincore(s->mem, STREAM_BYTES, there), 0);
	for (i = 0; i < STREAM_BYTES / 4096; i++)
		nr += there[i] & 1;
	return nr;
}

/* While the reader keeps up, the stream touches only a few pages. */
static void memory_stays_small(void)
{
	int i;

	fill();
	open_usual();
	for (i = 0; i < 1000; i++) {
		CHECK_EQ(kevent_stream_write(a, big, 1000), 1000);
		CHECK_EQ(kevent_stream_write(a, big, 3000), 3000);
		CHECK_EQ(kevent_stream_read(b, buf, 5000), 4000);
		say(b, "k");
		expect(a, "k");
	}
	CHECK(resident(a) * 4096 <= 16 << 10);
	CHECK_EQ(kevent_stream_write(a, big, BIG), STREAM_RING);
	CHECK_EQ(kevent_stream_write(a, big, 1), -EAGAIN);
	CHECK_EQ(resident(a), 2 + STREAM_RING / 4096);
	close_sets();
}

static void room_is_an_event(void)
{
	open_usual();
	settle(sa);
	CHECK_EQ(kevent_stream_write(a, big, BIG), STREAM_RING);
	CHECK_EQ(kevent_stream_write(a, big, 1), -EAGAIN);
	CHECK_EQ(kevent_streams_arm(sa), 0);
	CHECK_EQ(kevent_stream_read(b, buf, 100), 100);
	CHECK_EQ(kevent_stream_read(b, buf, STREAM_RING / 2), STREAM_RING / 2);
	expect_wake_up(sa, a);
	CHECK_EQ(kevent_stream_write(a, big, BIG), STREAM_RING / 2 + 100);
	CHECK_EQ(kevent_stream_write(a, big, 1), -EAGAIN);
	CHECK_EQ(kevent_streams_arm(sa), 0);
	CHECK_EQ(kevent_stream_read(b, buf, BIG), STREAM_RING);
	expect_wake_up(sa, a);
	close_sets();
}

/* As through a socket: all of it, or none */
static void a_short_write_is_whole(void)
{
	struct iovec iov[2] = {
		{ .iov_base = big, .iov_len = 100 },
		{ .iov_base = big, .iov_len = STREAM_WHOLE - 100 },
	};

	open_usual();
	settle(sa);
	CHECK_EQ(kevent_stream_write(a, big, BIG), STREAM_RING);
	CHECK_EQ(kevent_stream_read(b, buf, STREAM_WHOLE - 1), STREAM_WHOLE - 1);
	CHECK_EQ(kevent_stream_writev(a, iov, 2), -EAGAIN);
	CHECK_EQ(kevent_stream_poll(a, POLLOUT), 0);
	CHECK_EQ(kevent_streams_arm(sa), 0);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 1);
	expect_wake_up(sa, a);
	CHECK_EQ(kevent_stream_poll(a, POLLOUT), POLLOUT);
	CHECK_EQ(kevent_stream_writev(a, iov, 2), STREAM_WHOLE);
	CHECK_EQ(kevent_stream_read(b, buf, 100), 100);
	CHECK_EQ(kevent_stream_write(a, big, 101), -EAGAIN);
	CHECK_EQ(kevent_stream_write(a, big, 100), 100);
	CHECK_EQ(kevent_stream_read(b, buf, 100), 100);
	CHECK_EQ(kevent_stream_write(a, big, STREAM_WHOLE + 1), 100);
	close_sets();
}

/* One thread sleeps until there is room, and another one finds some. */
static void a_look_ends_no_wait_for_room(void)
{
	open_usual();
	settle(sa);
	CHECK_EQ(kevent_stream_write(a, big, 30000), 30000);
	CHECK_EQ(kevent_stream_write(a, big, 10000), 10000);
	CHECK_EQ(kevent_stream_write(a, big, 30000), -EAGAIN);
	CHECK_EQ(kevent_stream_read(b, buf, 8000), 8000);
	CHECK_EQ(kevent_stream_poll(a, POLLOUT), POLLOUT);
	CHECK_EQ(kevent_streams_arm(sa), 0);
	CHECK_EQ(kevent_stream_read(b, buf, BIG), 32000);
	expect_wake_up(sa, a);
	close_sets();
}

static void room_in_the_socket_is_an_event(void)
{
	ssize_t nr = 0, got = 0, ret;
	int i;

	open_sets();
	open_pair(true);
	settle(sa);
	for (i = 0; i < 2; i++) {
		while ((ret = kevent_stream_write(a, big, 100000)) > 0)
			nr += ret;
		CHECK_EQ(ret, -EAGAIN);
		settle(sa);
		CHECK_EQ(kevent_streams_arm(sa), 0);
		/* By a program without streams: no memory */
		while ((ret = recv(b->sock, buf, BIG, MSG_DONTWAIT)) > 0)
			got += ret;
		CHECK_EQ(got, nr);
		expect_wake_up(sa, a);
	}
	close_sets();
}

/* Writes what there is room for. */
static void write_all(struct kevent_stream *s)
{
	ssize_t ret;

	do
		ret = kevent_stream_write(s, big, BIG);
	while (ret > 0);
	CHECK_EQ(ret, -EAGAIN);
}

static size_t read_all(struct kevent_stream *s)
{
	size_t got = 0;
	ssize_t ret;

	while ((ret = kevent_stream_read(s, buf + got, BIG - got)) > 0)
		got += (size_t)ret;
	CHECK_EQ(ret, -EAGAIN);
	return got;
}

/* The peer has filled its socket. Most of that is not read, and hides no bell. */
static void room_is_an_event_behind_a_full_socket(void)
{
	ssize_t sent;

	fill();
	open_sets();
	open_pair(true);
	sent = kevent_stream_write(a, big, BIG);
	CHECK(sent > 8192 && sent < BIG);
	CHECK_EQ(kevent_stream_read(b, buf, 4096), 4096);
	CHECK_EQ(kevent_stream_memory(b), KEVENT_STREAM_SENDS);
	write_all(b);
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	CHECK_EQ(read_all(a), STREAM_RING);
	expect_wake_up(sb, b);
	write_all(b);
	/* All that was written through the socket is there, and what follows. */
	CHECK_EQ(kevent_stream_write(a, big + sent, 1000), 1000);
	CHECK_EQ(read_all(b), sent + 1000 - 4096);
	CHECK(!memcmp(buf, big + 4096, (size_t)sent + 1000 - 4096));
	close_sets();
}

/* One byte is not read, and so many bells come behind it that the socket has no room for them. */
static void room_is_an_event_behind_a_byte(void)
{
	const int least = 1;
	int i;

	open_sets();
	open_pair(true);
	CHECK_EQ(setsockopt(a->sock, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	say(a, "12");
	expect(b, "1");
	for (i = 0; i < 50; i++) {
		write_all(b);
		settle(sb);
		CHECK_EQ(kevent_streams_arm(sb), 0);
		CHECK_EQ(read_all(a), STREAM_RING);
		expect_wake_up(sb, b);
	}
	say(a, "3");
	expect(b, "2");
	expect(b, "3");
	expect_none(b);
	close_sets();
}

/* A program may have seen both when it reads fewer bytes than it has asked for. */
static void stream_comes_again_behind_kept_bytes(void)
{
	open_sets();
	open_pair(true);
	say(a, "12");
	expect(b, "1");
	write_all(b);
	say(a, "3");
	settle(sb);
	CHECK_EQ(kevent_stream_read(b, buf, 100), 1);
	CHECK(kevent_streams_next(sb) == b);
	expect(b, "3");
	close_sets();
}

/* The bell has found no room. */
static void room_is_said_again(void)
{
	open_usual();
	settle(sa);
	settle(sb);
	CHECK_EQ(kevent_stream_write(b, big, BIG), STREAM_RING);
	CHECK_EQ(kevent_stream_write(b, big, 1), -EAGAIN);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	while (send(a->sock, "", 1, MSG_DONTWAIT) > 0)
		;
	CHECK_EQ(kevent_stream_read(a, buf, STREAM_RING / 2), STREAM_RING / 2);
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	CHECK_EQ(kevent_stream_read(a, buf, BIG), STREAM_RING / 2);
	expect_wake_up(sb, b);
	close_sets();
}

/* --- sleeping ------------------------------------------------------------ */

#define STREAMS	5

static struct kevent_stream *many[STREAMS][2];
static struct sockaddr_un where;
static socklen_t where_len;
static int listener;

static void open_many(void)
{
	int i, sock[2];

	open_sets();
	listener = listen_somewhere(&where, &where_len);
	for (i = 0; i < STREAMS; i++) {
		connect_to(listener, &where, where_len, sock);
		CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER,
					    &many[i][0]), 0);
		CHECK_EQ(kevent_stream_open(sb, sock[1], 0, USER, &many[i][1]), 0);
		a = many[i][0];
		b = many[i][1];
		to_memory();
	}
}

static size_t nr_bells(int side)
{
	size_t nr = 0;
	int i;

	for (i = 0; i < STREAMS; i++)
		nr += (size_t)recv(many[i][side]->sock, buf, BIG,
				   MSG_PEEK | MSG_DONTWAIT) + 1 > 0 ?
		      (size_t)recv(many[i][side]->sock, buf, BIG,
				   MSG_PEEK | MSG_DONTWAIT) : 0;
	return nr;
}

static void settle_many(void)
{
	int i, j;

	for (j = 0; j < 2; j++) {
		while (take_event(j ? sb : sa, many[0][j], &no_time) > 0)
			;
		for (i = 0; i < STREAMS; i++)
			kevent_stream_ready(many[i][j], POLLIN);
		while (kevent_streams_next(j ? sb : sa))
			;
	}
}

/* For a wait in another loop; a set that learns remembers that it was in vain. */
static void look_before_another_loop(void)
{
	int i;

	open_usual();
	for (i = 0; i < 2; i++) {
		sb->looks = i ? KEVENT_LOOKS_LEARNED : 0;
		settle(sb);
		CHECK_EQ(kevent_streams_look(sb, NULL), 0);
		CHECK_EQ(sb->look.debt > 0, i);
		say(a, "m");
		CHECK_EQ(kevent_streams_look(sb, NULL), 1);
		expect(b, "m");
	}
	close_sets();
}

/* A program may read between kevent_streams_arm() and its sleep. */
static void memory_that_comes_in_a_sleep_is_heard(bool named)
{
	open_sets();
	open_pair(named);
	say(a, "1");
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	expect(b, "1");
	settle(sa);
	expect_no_event(sb);
	say(a, "2");
	expect_wake_up(sb, b);
	expect(b, "2");
	close_sets();
}

static void new_memory_is_heard_in_a_sleep(void)
{
	memory_that_comes_in_a_sleep_is_heard(true);
	memory_that_comes_in_a_sleep_is_heard(false);
}

/* One sleep, one bell, and all streams with something come. */
static void sleeper_is_rung_for_once(int from, struct kevent_streams *to)
{
	struct kevent_stream *s;
	bool seen[STREAMS] = { false };
	int i, j;

	for (j = 0; j < 3; j++) {
		settle_many();
		CHECK_EQ(nr_bells(!from), 0);
		CHECK_EQ(kevent_streams_arm(to), 0);
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < STREAMS; i++)
			say(many[i][from], "m");
		CHECK_EQ(nr_bells(!from), 1);
		CHECK_EQ(kevent_streams_arm(to), 1);
		while ((s = kevent_streams_next(to)))
			for (i = 0; i < STREAMS; i++)
				if (many[i][!from] == s) {
					CHECK(!seen[i]);
					seen[i] = true;
					expect(s, "m");
				}
		for (i = 0; i < STREAMS; i++)
			CHECK(seen[i]);
		/* It is awake. */
		say(many[0][from], "n");
		CHECK_EQ(nr_bells(!from), 1);
		expect(many[0][!from], "n");
	}
}

static void accepting_side_is_rung_for_once(void)
{
	open_many();
	sleeper_is_rung_for_once(0, sb);
	close_sets();
}

static void connecting_side_is_rung_for_once(void)
{
	open_many();
	sleeper_is_rung_for_once(1, sa);
	close_sets();
}

/* A bell to a socket that has ended wakes nobody, and is not one. */
static void bell_that_is_lost_does_not_count(void)
{
	open_many();
	settle_many();
	/* The peer closes it while the other side does not know. */
	shutdown(many[0][1]->sock, SHUT_RDWR);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	say(many[0][0], "m");
	say(many[1][0], "m");
	CHECK(recv(many[1][1]->sock, buf, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
	close_sets();
}

/*
 * A child has a copy of the socket of a stream that was closed: a bell goes there and wakes
 * nobody. @ends: what the peer does with the closed stream
 */
static void bell_to_a_closed_stream_is_none(int side, void (*ends)(struct kevent_stream *s))
{
	struct kevent_streams *sleeps = side ? sb : sa;
	struct kevent_stream *s = many[0][!side];
	int copy;

	settle_many();
	copy = dup(many[0][side]->sock);
	close_stream(many[0][side]);
	CHECK_EQ(kevent_streams_arm(sleeps), 0);
	ends(s);
	say(many[1][!side], "m");
	CHECK(recv(many[1][side]->sock, buf, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
	CHECK(recv(copy, buf, 1, MSG_PEEK | MSG_DONTWAIT) != 1);
	close(copy);
	close_sets();
}

static void read_to_the_end(struct kevent_stream *s)
{
	CHECK_EQ(kevent_stream_read(s, buf, BIG), STREAM_RING);
	CHECK_EQ(kevent_stream_read(s, buf, BIG), 0);
}

static void bell_to_a_closed_stream_does_not_count(void)
{
	int side;

	for (side = 0; side < 2; side++) {
		open_many();
		bell_to_a_closed_stream_is_none(side, close_stream);
		/* There is room again that it had waited for. */
		open_many();
		CHECK_EQ(kevent_stream_write(many[0][side], big, BIG), STREAM_RING);
		CHECK_EQ(kevent_stream_write(many[0][side], big, 1), -EAGAIN);
		bell_to_a_closed_stream_is_none(side, read_to_the_end);
	}
}

static void stream_wakes_a_sleeper(void)
{
	int i;

	open_usual();
	settle(sa);
	settle(sb);
	for (i = 0; i < 500; i++) {
		CHECK_EQ(kevent_streams_arm(sb), 0);
		expect_no_event(sb);
		say(a, "m");
		expect_wake_up(sb, b);
		expect(b, "m");
		CHECK_EQ(kevent_streams_arm(sa), 0);
		say(b, "n");
		expect_wake_up(sa, a);
		expect(a, "n");
	}
	/* Something to do: no sleep. */
	say(a, "m");
	CHECK_EQ(kevent_streams_arm(sb), 1);
	CHECK(kevent_streams_next(sb) == b);
	close_sets();
}

/* The one that has offered does not know yet where it is rung for. */
static void first_answer_wakes(bool named)
{
	open_sets();
	open_pair(named);
	settle(sa);
	say(a, "1");
	settle(sa);
	CHECK_EQ(kevent_streams_arm(sa), 0);
	expect(b, "1");
	say(b, "2");
	expect_wake_up(sa, a);
	expect(a, "2");
	close_sets();
}

static void first_answer_wakes_a_sleeper(void)
{
	first_answer_wakes(true);
	first_answer_wakes(false);
}

/* Also if it goes to memory meanwhile */
static void stream_comes_once(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	expect(b, "1");
	settle(sb);
	say(a, "2");
	CHECK(kevent_streams_next(sb) == b);
	CHECK_EQ(kevent_stream_memory(b), BOTH);
	expect_none_ready(sb);
	expect(b, "2");
	close_sets();
}

static void wait_ends_with_bytes(void)
{
	struct ukevent ev[4];

	open_usual();
	settle(sb);
	CHECK_EQ(kevent_streams_get(sb, ev, 4, &no_time), own_loops ? -EINVAL : 0);
	say(a, "m");
	CHECK_EQ(kevent_streams_get(sb, ev, 4, NULL), own_loops ? -EINVAL : 0);
	CHECK(kevent_streams_next(sb) == b);
	expect(b, "m");
	expect_none_ready(sb);
	close_sets();
}

/* --- ends ---------------------------------------------------------------- */

static void half_closed_stream_goes_on(void)
{
	open_usual();
	settle(sb);
	say(a, "last");
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(kevent_stream_write(a, "x", 1), -EPIPE);
	CHECK(kevent_streams_next(sb) == b);
	expect(b, "last");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_peek(b, buf, 1), 0);
	say(b, "more");
	expect(a, "more");
	CHECK_EQ(kevent_stream_shutdown(b), 0);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	close_sets();
}

static void half_close_wakes_a_sleeper(void)
{
	open_usual();
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	expect_wake_up(sb, b);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	close_sets();
}

/* Before it knows whether it was accepted */
static void half_close_goes_back_on_an_offer(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	expect(b, "1");
	CHECK_EQ(kevent_stream_memory(b), 0);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	say(b, "2");
	expect(a, "2");
	CHECK_EQ(kevent_stream_memory(b), 0);
	close_sets();
}

static void half_close_meets_an_acceptance(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	expect(b, "1");
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(kevent_stream_memory(a), BOTH);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	/* More than fits: a has to ring for room. */
	CHECK_EQ(kevent_stream_write(b, big, BIG), STREAM_RING);
	CHECK_EQ(kevent_stream_write(b, big, 1), -EAGAIN);
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	CHECK_EQ(kevent_stream_read(a, buf, BIG), STREAM_RING);
	expect_wake_up(sb, b);
	close_sets();
}

/* Before it has read anything: it accepts nothing then. */
static void half_closed_side_accepts_nothing(void)
{
	open_sets();
	open_pair(true);
	CHECK_EQ(kevent_stream_shutdown(b), 0);
	say(a, "1");
	expect(b, "1");
	CHECK_EQ(kevent_stream_memory(b), 0);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	say(a, "2");
	expect(b, "2");
	close_sets();
}

static void closed_stream_is_read_to_its_end(void)
{
	open_usual();
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	say(a, "rest");
	close_stream(a);
	expect_wake_up(sb, b);
	expect(b, "rest");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_write(b, "x", 1), -EPIPE);
	close_sets();
}

/* A copy of its socket, as a child may have, hides the end of that. */
static void close_is_seen_beside_a_copy(void)
{
	int copy;

	open_usual();
	settle(sb);
	copy = dup(a->sock);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	close_stream(a);
	expect_wake_up(sb, b);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_write(b, "x", 1), -EPIPE);
	close(copy);
	close_sets();
}

/* As if it had been killed: its socket ends, and nothing else says so. */
static void sudden_end_loses_nothing(void)
{
	open_usual();
	settle(sb);
	say(a, "rest");
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	shutdown(a->sock, SHUT_RDWR);
	expect_wake_up(sb, b);
	expect(b, "rest");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_write(b, "x", 1), -EPIPE);
	close_sets();
}

/* Bytes that the peer has not read, as through a socket; the offer was never accepted. */
static void reset_before_memory_is_an_error(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	close_stream(b);
	CHECK_EQ(kevent_stream_read(a, buf, 1), -ECONNRESET);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	close_sets();
}

/* The peer has read all but the last bell. */
static void bell_that_is_not_read_is_no_reset(void)
{
	open_usual();
	settle(sb);
	CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
	settle(sb);
	settle(sa);
	CHECK_EQ(kevent_stream_leave(a), 0);
	close_stream(b);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	close_sets();
}

/* One edge for both: nothing says the end again. */
static void end_behind_a_bell_is_seen(void)
{
	open_usual();
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	say(a, "m");
	shutdown(a->sock, SHUT_RDWR);
	expect_wake_up(sb, b);
	expect(b, "m");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	close_sets();
}

/* The peer has gone to memory and ended before this side has seen it. */
static void sudden_end_behind_a_change_loses_nothing(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	expect(b, "1");
	say(b, "2");
	say(b, "3");
	shutdown(b->sock, SHUT_RDWR);
	expect(a, "23");
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	close_sets();
}

static void writer_that_waits_for_room_sees_the_end(void)
{
	open_usual();
	settle(sa);
	CHECK_EQ(kevent_stream_write(a, big, BIG), STREAM_RING);
	CHECK_EQ(kevent_stream_write(a, big, 1), -EAGAIN);
	CHECK_EQ(kevent_streams_arm(sa), 0);
	close_stream(b);
	expect_wake_up(sa, a);
	CHECK_EQ(kevent_stream_write(a, big, 1), -EPIPE);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	close_sets();
}

/*
 * A peer that was killed before it has seen the acceptance: its bytes end in the socket, and
 * nobody reads the memory. It may have ended its direction before.
 */
static void writer_sees_a_sudden_end_before_memory(bool half, bool full)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	expect(b, "1");
	CHECK_EQ(kevent_stream_memory(b), KEVENT_STREAM_SENDS);
	settle(sb);
	if (half) {
		shutdown(a->sock, SHUT_WR);
		CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
		CHECK_EQ(kevent_stream_poll(b, ALL), POLLIN | POLLOUT | POLLRDHUP);
		settle(sb);
	}
	if (full) {
		CHECK_EQ(kevent_stream_write(b, big, BIG), STREAM_RING);
		CHECK_EQ(kevent_stream_write(b, big, 1), -EAGAIN);
	}
	CHECK_EQ(kevent_streams_arm(sb), 0);
	shutdown(a->sock, SHUT_RDWR);
	expect_wake_up(sb, b);
	CHECK_EQ(kevent_stream_write(b, big, 1), -EPIPE);
	CHECK_EQ(kevent_stream_poll(b, ALL), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	close_sets();
}

static void sudden_end_before_memory_is_seen(void)
{
	writer_sees_a_sudden_end_before_memory(false, false);
	writer_sees_a_sudden_end_before_memory(false, true);
	writer_sees_a_sudden_end_before_memory(true, false);
	writer_sees_a_sudden_end_before_memory(true, true);
}

/* No event has been taken since: a write without room asks itself, and so does a poll. */
static void sudden_end_before_memory_needs_no_event(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		open_sets();
		open_pair(true);
		say(a, "1");
		expect(b, "1");
		CHECK_EQ(kevent_stream_write(b, big, BIG), STREAM_RING);
		shutdown(a->sock, SHUT_RDWR);
		if (i)
			CHECK_EQ(kevent_stream_poll(b, ALL),
				 POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
		CHECK_EQ(kevent_stream_write(b, big, 1), -EPIPE);
		close_sets();
	}
}

/* --- back to the socket -------------------------------------------------- */

/* Reads and asks to leave until that is done; the peer uses its stream meanwhile. */
static void leave(struct kevent_stream *s, struct kevent_stream *peer)
{
	int i, ret = -EAGAIN;

	for (i = 0; i < 4 && ret == -EAGAIN; i++) {
		ret = kevent_stream_leave(s);
		settle(peer->set);
		settle(s->set);
	}
	CHECK_EQ(ret, 0);
}

static void stream_goes_back_and_forth(void)
{
	int i;

	open_usual();
	settle(sa);
	settle(sb);
	for (i = 0; i < 5; i++) {
		say(a, "memory");
		say(b, "there");
		CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
		settle(sb);
		expect(b, "memory");
		/* Bytes that b has left in the memory are in front. */
		say(b, "socket");
		CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
		expect(a, "there");
		settle(sa);
		expect(a, "socket");
		leave(a, b);
		CHECK_EQ(kevent_stream_memory(a), 0);
		say(a, "raw");
		expect(b, "raw");
		leave(b, a);
		CHECK_EQ(kevent_stream_memory(b), 0);
		CHECK_EQ(kevent_stream_join(b, 0, 0), 0);
		say(b, "1");
		expect(a, "1");
		CHECK_EQ(kevent_stream_memory(a), 0);
		CHECK_EQ(kevent_stream_join(a, 0, 0), 0);
		say(a, "2");
		expect(b, "2");
		say(b, "3");
		expect(a, "3");
		say(a, "4");
		expect(b, "4");
		CHECK_EQ(kevent_stream_memory(a), BOTH);
		CHECK_EQ(kevent_stream_memory(b), BOTH);
		expect_none(a);
		expect_none(b);
	}
	close_sets();
}

/* Both leave the memory to pass a descriptor in its place among the bytes. */
static void descriptors_pass_meanwhile(void)
{
	const int fd = 0;
	struct iovec iov = { .iov_base = "f", .iov_len = 1 };
	struct kevent_parcel p;

	open_usual();
	say(a, "before");
	CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
	expect(b, "before");
	leave(b, a);
	leave(a, b);
	CHECK_EQ(kevent_parcel_send(kevent_stream_fd(a), &iov, 1, &fd, 1), 1);
	CHECK_EQ(kevent_stream_join(a, 1, 0), 0);
	say(a, "after");
	iov.iov_base = buf;
	CHECK_EQ(kevent_parcel_recv(kevent_stream_fd(b), &iov, 1, &p), 1);
	CHECK_EQ(p.nr, 1);
	kevent_parcel_drop(&p);
	CHECK_EQ(kevent_stream_join(b, 0, 1), 0);
	expect(b, "after");
	say(b, "1");
	expect(a, "1");
	say(a, "2");
	expect(b, "2");
	CHECK_EQ(kevent_stream_memory(a), BOTH);
	CHECK_EQ(kevent_stream_memory(b), BOTH);
	close_sets();
}

static void both_may_leave_at_once(void)
{
	int i;

	open_usual();
	settle(sa);
	settle(sb);
	for (i = 0; i < 3; i++) {
		say(a, "1");
		say(b, "2");
		CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
		CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
		expect(a, "2");
		expect(b, "1");
		leave(a, b);
		leave(b, a);
		say(a, "3");
		say(b, "4");
		expect(a, "4");
		expect(b, "3");
		CHECK_EQ(kevent_stream_join(a, 0, 0), 0);
		CHECK_EQ(kevent_stream_join(b, 0, 0), 0);
		say(a, "5");
		expect(b, "5");
		say(b, "6");
		expect(a, "6");
		say(a, "7");
		expect(b, "7");
		CHECK_EQ(kevent_stream_memory(a), BOTH);
	}
	close_sets();
}

/* Each sleeps until the other one has done its part. */
static void leaving_wakes_sleepers(void)
{
	open_usual();
	settle(sa);
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
	CHECK_EQ(kevent_streams_arm(sa), 0);
	expect_wake_up(sb, b);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	expect_wake_up(sa, a);
	CHECK_EQ(kevent_stream_leave(a), 0);
	expect_wake_up(sb, b);
	expect_none(b);
	CHECK_EQ(kevent_stream_leave(b), 0);
	/* Bytes of the socket wake by themselves. */
	say(a, "x");
	expect_wake_up(sb, b);
	expect(b, "x");
	close_sets();
}

/* Bytes of the socket that were taken from it so that bells come through */
static void stream_with_bytes_before_memory_is_left(void)
{
	int i;

	open_sets();
	open_pair(true);
	say(a, "12");
	expect(b, "1");
	write_all(b);
	/* The peer does not know of the memory yet. */
	CHECK_EQ(kevent_stream_poll(b, POLLIN), POLLIN);
	CHECK_EQ(kevent_stream_read(a, buf, BIG), STREAM_RING);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
		settle(sa);
		settle(sb);
	}
	CHECK_EQ(kevent_stream_poll(b, POLLIN), POLLIN);
	expect(b, "2");
	leave(b, a);
	CHECK_EQ(kevent_stream_memory(b), 0);
	say(a, "3");
	expect(b, "3");
	close_sets();
}

static void offer_is_withdrawn(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	CHECK_EQ(kevent_stream_leave(a), 0);
	expect(b, "1");
	CHECK_EQ(kevent_stream_leave(b), 0);
	CHECK_EQ(b->mem, NULL);
	say(b, "2");
	expect(a, "2");
	CHECK_EQ(kevent_stream_memory(a), 0);
	close_sets();
}

static void stream_may_be_left_before_its_first_bytes(void)
{
	open_sets();
	open_pair(true);
	CHECK_EQ(kevent_stream_leave(a), 0);
	CHECK_EQ(kevent_stream_leave(b), 0);
	say(a, "1");
	expect(b, "1");
	say(b, "2");
	expect(a, "2");
	CHECK_EQ(kevent_stream_memory(a), 0);
	close_sets();
}

/* The peer has accepted, and left at once: all its bytes of the socket come in order. */
static void acceptance_and_leave_meet(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	expect(b, "1");
	say(b, "2");
	CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
	say(b, "3");
	say(a, "4");
	expect(a, "23");
	say(a, "5");
	settle(sb);
	expect(b, "45");
	leave(b, a);
	leave(a, b);
	say(a, "6");
	say(b, "7");
	expect(b, "6");
	expect(a, "7");
	close_sets();
}

static void ends_of_both_are_seen_before_bytes(void)
{
	open_usual();
	say(a, "1");
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(kevent_stream_poll(b, POLLIN | POLLOUT), POLLIN | POLLOUT);
	CHECK_EQ(kevent_stream_shutdown(b), 0);
	CHECK_EQ(kevent_stream_poll(b, POLLIN | POLLOUT), POLLIN | POLLOUT | POLLHUP);
	expect(b, "1");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_poll(a, POLLIN | POLLOUT), POLLIN | POLLOUT | POLLHUP);
	close_sets();
}

static void stream_closed_by_both_is_left(void)
{
	open_usual();
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(kevent_stream_shutdown(b), 0);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	leave(a, b);
	close_sets();
}

static void half_closed_stream_is_left(void)
{
	open_usual();
	say(a, "1");
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
	settle(sb);
	expect(b, "1");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	leave(a, b);
	CHECK_EQ(kevent_stream_join(a, 0, 0), -EPIPE);
	say(b, "2");
	expect(a, "2");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	close_sets();
}

/* It follows no more. Its bytes are read first, and then nobody waits for it. */
static void peer_that_has_gone_is_not_left(void)
{
	int how, copy;

	for (how = 0; how < 3; how++) {
		open_usual();
		settle(sa);
		settle(sb);
		say(b, "rest");
		if (how == 2)
			CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
		/* A child may have it, which hides the end of the socket. */
		copy = dup(b->sock);
		if (how)
			shutdown(b->sock, SHUT_RDWR);
		else
			close_stream(b);
		settle(sa);
		CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
		expect(a, "rest");
		CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
		CHECK_EQ(kevent_stream_leave(a), -EPIPE);
		CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
		close(copy);
		close_sets();
	}
}

/* The peer has gone before it has seen the acceptance, and no event says so. */
static void peer_that_goes_before_memory_is_not_left(void)
{
	open_sets();
	open_pair(true);
	say(a, "1");
	expect(b, "1");
	CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
	shutdown(a->sock, SHUT_RDWR);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	CHECK_EQ(kevent_stream_leave(b), -EPIPE);
	close_sets();
}

/* It has left before it has gone, and a child has its socket. */
static void peer_that_has_left_and_gone_is_left(void)
{
	int copy;

	open_usual();
	settle(sa);
	settle(sb);
	CHECK_EQ(kevent_stream_shutdown(b), 0);
	CHECK_EQ(kevent_stream_read(a, buf, 1), 0);
	CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
	CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
	settle(sb);
	CHECK_EQ(kevent_stream_leave(b), 0);
	copy = dup(b->sock);
	close_stream(b);
	CHECK_EQ(kevent_stream_leave(a), 0);
	close(copy);
	close_sets();
}

/* The peer has left, and gone: its last bell and bytes are in the socket behind those of memory. */
static void open_left(void)
{
	open_usual();
	settle(sb);
	say(a, "memory");
	CHECK_EQ(kevent_stream_leave(a), -EAGAIN);
	settle(sb);
	settle(sa);
	CHECK_EQ(kevent_stream_leave(a), 0);
	say(a, "raw");
}

static void left_stream_ends_behind_its_bytes(void)
{
	const int end = POLLIN | POLLRDHUP | POLLHUP;

	open_left();
	close_stream(a);
	settle(sb);
	CHECK_EQ(kevent_stream_poll(b, POLLIN | POLLRDHUP), end);
	expect(b, "memory");
	CHECK_EQ(kevent_stream_poll(b, POLLIN | POLLRDHUP), end);
	expect(b, "raw");
	CHECK_EQ(kevent_stream_poll(b, POLLIN | POLLRDHUP), end);
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	close_sets();
}

static void peek_goes_on_behind_the_memory(void)
{
	open_left();
	settle(sb);
	expect_peek(b, "memoryraw");
	CHECK_EQ(kevent_stream_read(b, buf, 3), 3);
	expect_peek(b, "oryraw");
	expect(b, "ory");
	expect(b, "raw");
	close_sets();
}

/* Without the event of the socket: poll finds the end, and loses nothing in front of it. */
static void poll_sees_the_end_of_a_left_stream(void)
{
	open_left();
	CHECK_EQ(kevent_stream_poll(b, POLLIN | POLLRDHUP), POLLIN);
	CHECK_EQ(kevent_stream_shutdown(a), 0);
	CHECK_EQ(kevent_stream_poll(b, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	close_stream(a);
	CHECK_EQ(kevent_stream_poll(b, 0), POLLHUP);
	CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
	expect(b, "memory");
	expect(b, "raw");
	CHECK_EQ(kevent_stream_read(b, buf, 1), 0);
	close_sets();
}

/* A socket that takes no more: the last bell waits, and no byte passes it. */
static void last_bell_waits_for_room(void)
{
	ssize_t ret;
	int i;

	open_usual();
	settle(sa);
	settle(sb);
	/* Bells that nobody reads, as of a peer that sleeps often */
	while ((ret = send(a->sock, "", 1, MSG_DONTWAIT)) > 0)
		;
	CHECK_EQ(kevent_stream_leave(b), -EAGAIN);
	settle(sa);
	say(a, "in front");
	CHECK_EQ(kevent_stream_memory(a) & KEVENT_STREAM_SENDS, KEVENT_STREAM_SENDS);
	for (i = 0; i < 4; i++) {
		settle(sb);
		settle(sa);
	}
	CHECK_EQ(kevent_stream_memory(a), 0);
	say(a, "behind");
	expect(b, "in front");
	expect(b, "behind");
	CHECK_EQ(kevent_stream_leave(b), 0);
	close_sets();
}

/* --- peers that are not trusted ------------------------------------------ */

static void expect_broken(struct kevent_stream *s)
{
	CHECK_EQ(kevent_stream_read(s, buf, 1), -EPROTO);
	CHECK_EQ(kevent_stream_write(s, buf, 1), -EPROTO);
	CHECK_EQ(kevent_stream_shutdown(s), -EPROTO);
	CHECK_EQ(kevent_stream_leave(s), -EPROTO);
	CHECK_EQ(kevent_stream_join(s, 0, 0), -EPROTO);
	close_sets();
}

static void reader_refuses_positions(void)
{
	open_usual();
	lane_store(&a->me->head, a->out.head + STREAM_RING + 1);
	CHECK_EQ(kevent_stream_read(b, buf, 1), -EPROTO);
	expect_broken(b);
	open_usual();
	lane_store(&a->me->head, a->out.head - 1);
	CHECK_EQ(kevent_stream_read(b, buf, 1), -EPROTO);
	expect_broken(b);
}

static void writer_refuses_positions(void)
{
	open_usual();
	say(a, "abc");
	lane_store(&b->me->taken, a->out.head + 1);
	CHECK_EQ(kevent_stream_write(a, buf, 1), -EPROTO);
	expect_broken(a);
	open_usual();
	say(a, "abc");
	lane_store(&b->me->taken, a->out.taken - 1);
	CHECK_EQ(kevent_stream_write(a, buf, 1), -EPROTO);
	expect_broken(a);
}

static void false_end_breaks_the_stream(void)
{
	open_usual();
	lane_store(&a->me->closed, 1);
	CHECK_EQ(kevent_stream_read(b, buf, 1), -EPROTO);
	expect_broken(b);
}

/* The start of the ring may be anything: what is read is in the ring. */
static void start_of_the_ring_may_be_anywhere(void)
{
	open_usual();
	lane_store(&a->me->base, ~0ULL / 3);
	lane_store(&a->me->head, a->out.head + STREAM_RING);
	CHECK_EQ(kevent_stream_read(b, buf, BIG), STREAM_RING);
	close_sets();
}

static void each_phase_is_checked(void)
{
	__u64 phase, good = phase_of(1, STREAM_SOCKET);

	for (phase = 0; phase < 16; phase++) {
		open_usual();
		if (phase == a->phase || phase == good) {
			close_sets();
			continue;
		}
		lane_store(&a->mem->phase, phase);
		CHECK_EQ(kevent_stream_write(a, buf, 1), -EPROTO);
		expect_broken(a);
	}
}

static void slot_is_checked(void)
{
	__u64 slot;

	for (slot = PAIR_SLOTS - 1; slot < PAIR_SLOTS + 3; slot++) {
		open_sets();
		open_pair(true);
		say(a, "1");
		expect(b, "1");
		lane_store(&b->mem->slot, slot);
		CHECK_EQ(kevent_stream_write(a, "2", 1), slot > PAIR_SLOTS ? -EPROTO : 1);
		close_sets();
	}
	/* Not where there is no page */
	open_sets();
	open_pair(false);
	say(a, "1");
	expect(b, "1");
	lane_store(&b->mem->slot, 1);
	CHECK_EQ(kevent_stream_write(a, "2", 1), -EPROTO);
	expect_broken(a);
}

static void bells_are_checked(void)
{
	struct ukevent ev = { .type = KEVENT_SOCKET };

	open_usual();
	settle(sb);
	/* The last one comes to nobody who has not asked for it. */
	CHECK_EQ(send(a->sock, "\1", 1, 0), 1);
	CHECK_EQ(kevent_stream_event(b, &ev), 0);
	CHECK(kevent_streams_next(sb) == b);
	expect_broken(b);
	open_usual();
	CHECK_EQ(send(a->sock, "x", 1, 0), 1);
	CHECK_EQ(kevent_stream_event(b, &ev), 0);
	expect_broken(b);
}

static void count_of_the_socket_is_checked(void)
{
	open_sets();
	open_pair(true);
	say(a, "123");
	expect(b, "123");
	lane_store(&a->me->raw, 2);
	lane_store(&a->me->joined, 1);
	CHECK_EQ(kevent_stream_read(b, buf, 1), -EPROTO);
	expect_broken(b);
}

static void set_all_bits(const struct kevent_stream *s)
{
	__u32 i;

	for (i = 0; i < PAIR_WORDS; i++)
		lane_store(&s->pair->page->slot[s->pair->slot].ready[i], ~0ULL);
}

/* Of streams that there are not, too */
static void all_bits_may_be_set(void)
{
	open_usual();
	settle(sb);
	set_all_bits(b);
	CHECK(kevent_streams_next(sb) == b);
	expect_none_ready(sb);
	expect_none(b);
	close_sets();
}

/* The peer sets all bits whenever a stream has come. */
static int nr_in_round(void)
{
	int nr = 0;

	for (; nr <= STREAMS && kevent_streams_next(sb); nr++)
		set_all_bits(many[0][1]);
	return nr;
}

static void peer_that_sets_bits_holds_no_loop(void)
{
	struct ukevent ev;
	int i;

	open_many();
	settle_many();
	set_all_bits(many[0][1]);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(nr_in_round(), STREAMS);
		/* No bit is lost. */
		CHECK_EQ(i & 1 ? kevent_streams_look(sb, NULL) : kevent_streams_arm(sb), 1);
	}
	if (!own_loops)
		CHECK_EQ(kevent_streams_get(sb, &ev, 1, NULL), 0);
	CHECK_EQ(nr_in_round(), STREAMS);
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	close(listener);
	close_sets();
}

/* A round has all that was there before it, also behind a stream that comes again. */
static void round_has_all_that_was_there(void)
{
	struct kevent_stream *s;
	int i, nr = 0;

	open_many();
	settle_many();
	kevent_stream_queue(many[2][1]);
	CHECK(kevent_streams_next(sb) == many[2][1]);
	kevent_stream_queue(many[2][1]);
	CHECK(!kevent_streams_next(sb));
	for (i = 0; i < STREAMS; i++)
		say(many[i][0], "m");
	for (; (s = kevent_streams_next(sb)); nr++) {
		expect(s, "m");
		say(many[s == many[3][1] ? 3 : 4][0], "n");
	}
	CHECK_EQ(nr, STREAMS);
	/* A sleep ends a round, too: the first of the two comes again. */
	s = kevent_streams_next(sb);
	say(many[s == many[3][1] ? 3 : 4][0], "o");
	CHECK_EQ(kevent_streams_arm(sb), 1);
	for (nr = 0; kevent_streams_next(sb); nr++)
		;
	CHECK_EQ(nr, 2);
	close(listener);
	close_sets();
}

/* Bytes with these descriptors: they come, and the descriptors are closed. */
static void pass_bytes_with(const int *fds, int nr)
{
	struct iovec iov = { .iov_base = "bytes", .iov_len = 5 };
	int sock[2], before;
	struct kevent_stream *s;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_stream_open(sb, sock[1], 0, USER, &s), 0);
	before = nr_open();
	CHECK_EQ(kevent_parcel_send(sock[0], &iov, 1, fds, nr), 5);
	expect(s, "bytes");
	CHECK_EQ(kevent_stream_memory(s), 0);
	CHECK_EQ(s->mem, NULL);
	CHECK_EQ(nr_open(), before);
	CHECK_EQ(send(sock[0], "more", 4, 0), 4);
	expect(s, "more");
	close_stream(s);
	close(sock[0]);
}

static int memory_of(size_t bytes, __u64 magic, __u64 phase)
{
	int fd = kevent_parcel_memory("test", bytes);

	CHECK_EQ(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	CHECK_EQ(pwrite(fd, &phase, sizeof(phase), offsetof(struct stream_memory, phase)),
		 sizeof(phase));
	return fd;
}

static void parcels_are_checked(void)
{
	const __u64 offer = phase_of(1, STREAM_OFFER0);
	int fds[3] = { 0, 0, 0 }, null = open("/dev/null", O_RDWR), unsealed;

	open_sets();
	unsealed = memfd_create("test", MFD_CLOEXEC);
	CHECK_EQ(ftruncate(unsealed, STREAM_BYTES), 0);
	pass_bytes_with(&null, 1);
	pass_bytes_with(&unsealed, 1);
	fds[0] = memory_of(STREAM_BYTES - 4096, STREAM_MAGIC, offer);
	pass_bytes_with(fds, 1);
	fds[0] = memory_of(STREAM_BYTES + 4096, STREAM_MAGIC, offer);
	pass_bytes_with(fds, 1);
	fds[0] = memory_of(STREAM_BYTES, STREAM_MAGIC + 1, offer);
	pass_bytes_with(fds, 1);
	fds[0] = memory_of(STREAM_BYTES, STREAM_MAGIC, offer + 1);
	pass_bytes_with(fds, 1);
	fds[0] = memory_of(STREAM_BYTES, STREAM_MAGIC, offer);
	pass_bytes_with(fds, 3);
	close_sets();
}

/* Memory is a file, and a process may be forbidden to make one of that size. */
static void limit_of_file_sizes_is_no_signal(void)
{
	struct rlimit before, few;

	open_sets();
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	few = before;
	few.rlim_cur = STREAM_BYTES - 1;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
	CHECK_EQ(kevent_parcel_memory("test", STREAM_BYTES), -EFBIG);
	open_pair(true);
	say(a, "x");
	expect(b, "x");
	say(b, "y");
	expect(a, "y");
	CHECK_EQ(kevent_stream_memory(a), 0);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
	close_sets();
}

/* Memory that is good, with a page that is none: the page in the memory is used. */
static void pages_are_checked(void)
{
	struct iovec iov = { .iov_base = "b", .iov_len = 1 };
	int i, sock[2], fds[2], before;
	struct kevent_stream *s;

	open_sets();
	for (i = 0; i < 4; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
		CHECK_EQ(kevent_stream_open(sb, sock[1], 0, USER, &s), 0);
		fds[0] = memory_of(STREAM_BYTES, STREAM_MAGIC,
				   phase_of(1, STREAM_OFFER0));
		fds[1] = i == 0 ? open("/dev/null", O_RDWR) :
			 memory_of(i == 1 ? 8192 : 4096, PAIR_MAGIC + (i == 2),
				   i == 3 ? 0 : 1);
		before = nr_open();
		CHECK_EQ(kevent_parcel_send(sock[0], &iov, 1, fds, 2), 1);
		expect(s, "b");
		CHECK_EQ(nr_open(), before);
		CHECK_EQ(s->pair == &s->own, i < 3);
		close_stream(s);
	}
	close_sets();
}

/* --- sets ---------------------------------------------------------------- */

static void each_set_has_a_slot(void)
{
	static struct kevent_streams *sets[PAIR_SLOTS + 1];
	static KEVENT_RING_STORAGE(SIZE) rings[PAIR_SLOTS + 1];
	static struct kevent_queue q[PAIR_SLOTS + 1];
	struct kevent_stream *s[PAIR_SLOTS + 1][2];
	struct pair *page = NULL;
	int sock[2];
	__u32 i;

	open_sets();
	listener = listen_somewhere(&where, &where_len);
	for (i = 0; i <= PAIR_SLOTS; i++) {
		CHECK_EQ(kevent_queue_init(&q[i], &rings[i].ring, SIZE, 0), 0);
		CHECK_EQ(kevent_streams_new(&sets[i], own_loops ? NULL : &q[i], 0), 0);
		connect_to(listener, &where, where_len, sock);
		CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER,
					    &s[i][0]), 0);
		CHECK_EQ(kevent_stream_open(sets[i], sock[1], 0, USER, &s[i][1]), 0);
		a = s[i][0];
		b = s[i][1];
		to_memory();
		page = i ? page : a->page;
		CHECK(a->page == page);
		if (i < PAIR_SLOTS)
			CHECK(a->pair == page && b->pair->slot == i);
		else
			CHECK(a->pair == &a->own && b->pair == &b->own);
	}
	/* One slot is free again: the page is that of old streams nevertheless. */
	close_stream(s[3][1]);
	connect_to(listener, &where, where_len, sock);
	CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER, &a), 0);
	CHECK_EQ(kevent_stream_open(sets[3], sock[1], 0, USER, &b), 0);
	to_memory();
	CHECK(a->page != page && a->pair == a->page);
	for (i = 0; i <= PAIR_SLOTS; i++) {
		kevent_streams_free(sets[i]);
		kevent_queue_close(&q[i]);
	}
	close_sets();
}

static void listeners_have_pages_of_their_own(void)
{
	struct kevent_stream *first, *second;
	struct pair *page;
	int sock[2];

	open_sets();
	listener = listen_somewhere(&where, &where_len);
	connect_to(listener, &where, where_len, sock);
	CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER, &first), 0);
	say(first, "1");
	page = first->page;
	connect_to(listener, &where, where_len, sock);
	CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER, &second), 0);
	say(second, "1");
	CHECK(second->page == page);
	CHECK(second->index != first->index);
	listener = listen_somewhere(&where, &where_len);
	connect_to(listener, &where, where_len, sock);
	CHECK_EQ(kevent_stream_open(sa, sock[0], KEVENT_STREAM_OFFER, USER, &second), 0);
	say(second, "1");
	CHECK(second->page && second->page != page);
	close_sets();
}

static void nothing_is_left_open(void)
{
	int before, i;

	open_usual();
	close_sets();
	before = nr_open();
	for (i = 0; i < 3; i++) {
		open_usual();
		say(a, "x");
		if (i == 1)
			close_stream(a);
		close_sets();
	}
	CHECK_EQ(nr_open(), before);
	kevent_stream_close(NULL);
	kevent_streams_free(NULL);
}

static void socket_is_checked(void)
{
	int sock[2], tube[2];

	open_sets();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_stream_open(sa, sock[0], 0, USER, &a), -EINVAL);
	CHECK_EQ(pipe2(tube, O_CLOEXEC), 0);
	CHECK_EQ(kevent_stream_open(sa, tube[0], 0, USER, &a), -EINVAL);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	CHECK_EQ(kevent_stream_open(sa, sock[0], 2, USER, &a), -EINVAL);
	close_sets();
}

static int use_in_child(void)
{
	struct ukevent ev = { .type = KEVENT_SOCKET };
	struct kevent_stream *s;

	failed = 0;
	CHECK_EQ(kevent_stream_read(a, buf, 1), -EXDEV);
	CHECK_EQ(kevent_stream_peek(a, buf, 1), -EXDEV);
	CHECK_EQ(kevent_stream_write(a, buf, 1), -EXDEV);
	CHECK_EQ(kevent_stream_shutdown(a), -EXDEV);
	CHECK_EQ(kevent_stream_leave(a), -EXDEV);
	CHECK_EQ(kevent_stream_join(a, 0, 0), -EXDEV);
	CHECK_EQ(kevent_stream_event(a, &ev), -EXDEV);
	CHECK_EQ(kevent_stream_ready(a, POLLIN), -EXDEV);
	CHECK_EQ(kevent_streams_look(sa, NULL), -EXDEV);
	CHECK_EQ(kevent_streams_arm(sa), -EXDEV);
	CHECK_EQ(kevent_streams_get(sa, &ev, 1, &no_time), own_loops ? -EINVAL : -EXDEV);
	CHECK_EQ(kevent_stream_open(sa, 0, 0, USER, &s), -EXDEV);
	CHECK(!kevent_streams_next(sa));
	kevent_stream_close(b);
	kevent_streams_free(sa);
	kevent_streams_free(sb);
	return failed;
}

static void child_has_no_streams(void)
{
	int status = 1;

	open_usual();
	settle(sa);
	settle(sb);
	CHECK_EQ(kevent_streams_arm(sb), 0);
	fflush(stdout);
	if (!fork())
		_exit(use_in_child());
	wait(&status);
	CHECK_EQ(status, 0);
	say(a, "1");
	expect_wake_up(sb, b);
	expect(b, "1");
	say(b, "2");
	expect(a, "2");
	close_sets();
}

static const struct test tests[] = {
	TEST(memory_is_used_to_a_listener),
	TEST(memory_is_used_between_a_pair),
	TEST(unaware_peer_reads_its_bytes),
	TEST(two_offers_are_none),
	TEST(accepting_side_may_speak_first),
	TEST(order_is_kept_when_memory_begins),
	TEST(peek_takes_nothing),
	TEST(peek_goes_on_in_the_memory),
	TEST(vectors_are_one_stream),
	TEST(poll_is_that_of_a_socket),
	TEST(poll_sees_that_the_peer_has_gone),
	TEST(poll_asks_for_room),
	TEST(each_size_passes),
	TEST(memory_stays_small),
	TEST(room_is_an_event),
	TEST(a_short_write_is_whole),
	TEST(a_look_ends_no_wait_for_room),
	TEST(room_in_the_socket_is_an_event),
	TEST(room_is_an_event_behind_a_full_socket),
	TEST(room_is_an_event_behind_a_byte),
	TEST(stream_comes_again_behind_kept_bytes),
	TEST(room_is_said_again),
	TEST(accepting_side_is_rung_for_once),
	TEST(connecting_side_is_rung_for_once),
	TEST(bell_that_is_lost_does_not_count),
	TEST(bell_to_a_closed_stream_does_not_count),
	TEST(stream_wakes_a_sleeper),
	TEST(first_answer_wakes_a_sleeper),
	TEST(stream_comes_once),
	TEST(look_before_another_loop),
	TEST(new_memory_is_heard_in_a_sleep),
	TEST(wait_ends_with_bytes),
	TEST(half_closed_stream_goes_on),
	TEST(half_close_wakes_a_sleeper),
	TEST(half_close_goes_back_on_an_offer),
	TEST(half_close_meets_an_acceptance),
	TEST(half_closed_side_accepts_nothing),
	TEST(closed_stream_is_read_to_its_end),
	TEST(close_is_seen_beside_a_copy),
	TEST(sudden_end_loses_nothing),
	TEST(reset_before_memory_is_an_error),
	TEST(bell_that_is_not_read_is_no_reset),
	TEST(end_behind_a_bell_is_seen),
	TEST(sudden_end_behind_a_change_loses_nothing),
	TEST(writer_that_waits_for_room_sees_the_end),
	TEST(sudden_end_before_memory_is_seen),
	TEST(sudden_end_before_memory_needs_no_event),
	TEST(stream_goes_back_and_forth),
	TEST(descriptors_pass_meanwhile),
	TEST(both_may_leave_at_once),
	TEST(leaving_wakes_sleepers),
	TEST(stream_with_bytes_before_memory_is_left),
	TEST(offer_is_withdrawn),
	TEST(stream_may_be_left_before_its_first_bytes),
	TEST(acceptance_and_leave_meet),
	TEST(ends_of_both_are_seen_before_bytes),
	TEST(stream_closed_by_both_is_left),
	TEST(half_closed_stream_is_left),
	TEST(peer_that_has_gone_is_not_left),
	TEST(peer_that_goes_before_memory_is_not_left),
	TEST(peer_that_has_left_and_gone_is_left),
	TEST(left_stream_ends_behind_its_bytes),
	TEST(peek_goes_on_behind_the_memory),
	TEST(poll_sees_the_end_of_a_left_stream),
	TEST(last_bell_waits_for_room),
	TEST(reader_refuses_positions),
	TEST(writer_refuses_positions),
	TEST(false_end_breaks_the_stream),
	TEST(start_of_the_ring_may_be_anywhere),
	TEST(each_phase_is_checked),
	TEST(slot_is_checked),
	TEST(bells_are_checked),
	TEST(count_of_the_socket_is_checked),
	TEST(all_bits_may_be_set),
	TEST(peer_that_sets_bits_holds_no_loop),
	TEST(round_has_all_that_was_there),
	TEST(parcels_are_checked),
	TEST(limit_of_file_sizes_is_no_signal),
	TEST(pages_are_checked),
	TEST(each_set_has_a_slot),
	TEST(listeners_have_pages_of_their_own),
	TEST(nothing_is_left_open),
	TEST(socket_is_checked),
	TEST(child_has_no_streams),
};

int main(void)
{
	int ret = run_tests("stream", tests, ARRAY_SIZE(tests));

	own_loops = true;
	return run_tests("stream_loop", tests, ARRAY_SIZE(tests)) || ret;
}
