// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: connections, from candidate to stream and back
 */
#include <stdio.h>

#include "lane.h"

#define CHUNK		65536
#define READS		64	/* in one step; a peer may write byte by byte */

struct conns lane_conns = LIST_HEAD_INITIALIZER(lane_conns);
struct lane_stats lane_stats;

/* Where stdio of libc may be used, which calls nothing of this object, it is a plain socket. */
void lane_conn_new(int fd, enum state state)
{
	struct conn *c;

	if (fd <= STDERR_FILENO)
		return;
	lane_lock();
	c = lane_new(CONN, sizeof(*c));
	if (c) {
		c->state = state;
		c->offers = state == NEW;
		LIST_INIT(&c->interests);
		LIST_INSERT_HEAD(&lane_conns, c, all);
		if (!lane_table_set(fd, &c->o))
			lane_put(&c->o);
	}
	lane_unlock();
}

static void close_stream(struct conn *c)
{
	int sock;

	if (!c->s)
		return;
	sock = kevent_stream_fd(c->s);
	lane_hub_unwatch(c);
	/* First: another thread may have the number as soon as it is free. */
	lane_table_set(sock, NULL);
	kevent_stream_close(c->s);
	c->s = NULL;
}

static void open_stream(struct conn *c, int fd)
{
	struct kevent_streams *set = lane_set();
	int sock, ret;

	c->state = PLAIN;
	if (!set || lane_rest_is_shared(c))
		return;
	/* The program may close its own, and leave copies. */
	sock = lane_private_copy(fd, c);
	if (sock < 0)
		return;
	c->user = c->o.serial << 32 | (__u32)sock;
	ret = kevent_stream_open(set, sock, c->offers ? KEVENT_STREAM_OFFER : 0, c->user,
				 &c->s);
	if (ret) {
		lane_table_set(sock, NULL);
		lane_call(SYS_close, sock);
		c->s = NULL;
		return;
	}
	if (!lane_hub_watch(c)) {
		close_stream(c);
		return;
	}
	c->state = STREAM;
	lane_stats.streams++;
	lane_wake_all();
}

void lane_conn_end(struct conn *c)
{
	lane_drop_interests(c);
	close_stream(c);
	lane_rest_free(c);
	LIST_REMOVE(c, all);
	lane_wake_all();
}

/* --- waiting for one connection ------------------------------------------ */

/* The bytes of one call stay together: another thread waits for room for the rest of its own. */
bool lane_is_others_turn(const struct conn *c)
{
	return c->state == STREAM && c->writer && c->writer != pthread_self();
}

int lane_conn_poll(struct conn *c, int fd, int events)
{
	struct pollfd real_fd = { .fd = fd, .events = (short)events };
	int got = 0;

	if (c->state == LOST)
		return POLLERR | events;	/* the call says why */
	events &= ~c->leaves;
	if (lane_has_rest(c))
		got = POLLIN & events;
	if (lane_is_others_turn(c))
		events &= ~POLLOUT;
	if (c->state == STREAM)
		return got | kevent_stream_poll(c->s, events);
	if (lane_poll_now(&real_fd, 1, NULL) == 1)
		got |= real_fd.revents;
	return got;
}

/* 0: look again. -EINTR: a handler ran whose calls do not go on. -EAGAIN: it is over. */
int lane_conn_wait(struct conn *c, int fd, int events, int64_t deadline)
{
	struct pollfd fds[2];
	struct hold h;
	int ret = 0;

	lane_hold(&h, &c->o);
	lane_dispatch();
	while (!ret && c->state == STREAM && !lane_conn_poll(c, fd, events)) {
		if (lane_is_over(deadline)) {
			ret = -EAGAIN;
			break;
		}
		ret = lane_sleep(fds, 2, deadline, NULL);
		if (ret == -EINTR && !(lane_interrupted & NO_RESTART) && deadline < 0)
			ret = 0;
	}
	lane_release(&h);
	return ret;
}

/* --- bytes that keep it in memory ---------------------------------------- */

void lane_count_in(int memory, ssize_t nr)
{
	if (memory & KEVENT_STREAM_RECEIVES)
		lane_stats.in_memory += (__u64)nr;
	else
		lane_stats.in_socket += (__u64)nr;
}

/*
 * Takes the bytes that keep a connection from leaving the memory: those in it, and those of
 * the socket before it. Later reads have them first. Those of the socket behind it may carry
 * descriptors: they stay there.
 */
static int take_bytes(struct conn *c, bool of_memory)
{
	static unsigned char bytes[CHUNK];
	int memory, ret = 0, left = READS;
	ssize_t nr;

	while (!ret && left--) {
		/* A read goes on in the socket behind the last byte of memory; this sees that. */
		if (of_memory)
			kevent_stream_poll(c->s, 0);
		memory = kevent_stream_memory(c->s);
		if (!memory || lane_rest_is_large(c, of_memory) ||
		    (!of_memory && (memory & KEVENT_STREAM_RECEIVES)))
			break;
		nr = kevent_stream_read(c->s, bytes, sizeof(bytes));
		if (nr <= 0)
			return nr == -EAGAIN ? 0 : (int)nr;
		lane_count_in(memory, nr);
		ret = lane_rest_add(c, bytes, (size_t)nr);
	}
	return ret;
}

/*
 * While a stream is between the socket and memory, it may have bytes in both. Those in front are
 * kept, so that a peek sees the others, too. False: it is not between them.
 */
bool lane_conn_keep(struct conn *c)
{
	int memory = c->state == STREAM ? kevent_stream_memory(c->s) : 0;

	if (memory != KEVENT_STREAM_SENDS && memory != KEVENT_STREAM_RECEIVES)
		return false;
	/* The last bell may be there. A program that only peeks takes no events otherwise. */
	lane_take_events();
	return !take_bytes(c, memory == KEVENT_STREAM_RECEIVES);
}

/* --- back to the socket -------------------------------------------------- */

/* A call on what a parent or a child has in memory */
int lane_is_lost(struct conn *c, int fd)
{
	if (!c->said)
		lane_say("another process has it in memory", fd);
	c->said = true;
	return -EIO;
}

void lane_say(const char *what, int fd)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "kevent-lane: %s: descriptor %d of process %d\n",
			   what, fd, (int)getpid());

	/* It is called with the lock. */
	if (!lane_find_kind(2, CONN) && lane_call(SYS_write, 2, line, (size_t)len) < 0)
		return;
}

/* What the socket still has behind bytes of memory is no byte of the stream. */
static void drop_bells(int fd)
{
	char bytes[256];

	while (lane_call(SYS_recvfrom, fd, bytes, sizeof(bytes), MSG_DONTWAIT, NULL, NULL) > 0)
		;
}

/* Back on the socket, which does not say yet that the peer has ended its direction */
static int await_end(struct conn *c)
{
	struct pollfd fd = { .fd = kevent_stream_fd(c->s), .events = POLLRDHUP };

	if (!(kevent_stream_poll(c->s, POLLRDHUP) & POLLRDHUP))
		return 0;
	return lane_poll_now(&fd, 1, NULL) == 0 ? -EAGAIN : 0;
}

/*
 * A peer that has gone does not follow any more, and need not if all its bytes were taken: up to
 * the end, as bytes may be in the socket behind the last bell. The socket says the rest, to a
 * call that reads as to one that writes.
 */
static int leave_step(struct conn *c)
{
	int ret = kevent_stream_leave(c->s), error;
	char byte;

	if (!ret)
		return await_end(c);
	if (ret != -EAGAIN && ret != -EPIPE)
		return ret;
	error = take_bytes(c, true);
	if (error)
		return error;
	ret = kevent_stream_leave(c->s);
	if (!ret)
		return await_end(c);
	if ((ret != -EAGAIN && ret != -EPIPE) || !(kevent_stream_poll(c->s, 0) & POLLHUP))
		return ret;
	error = take_bytes(c, true);
	if (error || !(kevent_stream_memory(c->s) & KEVENT_STREAM_RECEIVES))
		return error;
	if (kevent_stream_peek(c->s, &byte, 1))
		return -EAGAIN;
	/* A peer that has only ended the stream, too, may still ring: not into a read of the socket. */
	real()->shutdown(kevent_stream_fd(c->s), SHUT_RDWR);
	drop_bells(kevent_stream_fd(c->s));
	return 0;
}

static void become_plain(struct conn *c)
{
	c->state = PLAIN;
	c->leaves = 0;
	close_stream(c);
	lane_settle_interests(c);
	lane_wake_all();
}

/* Of this side or the peer; until then it is used as ever. */
static void quit(struct conn *c)
{
	if (!kevent_stream_leave(c->s) && !await_end(c))
		become_plain(c);
}

/* A socket of which nothing is here any more, and no listener: its calls need not come here. */
static bool is_of_kernel(const struct conn *c)
{
	return c->state == PLAIN && !c->bound && (c->offers || c->begun) && !lane_has_rest(c) &&
	       LIST_EMPTY(&c->interests);
}

static void forget(struct conn *c)
{
	int fd = 0;

	lane_rest_free(c);
	while ((fd = lane_number_of(&c->o, fd)) >= 0)
		lane_table_set(fd, NULL);
}

/* The connection @fd, if the call is to be made here: not if it is a plain socket again */
struct conn *lane_conn(int fd, bool reads)
{
	struct conn *c = lane_find_kind(fd, CONN);

	if (c && c->state == CANDIDATE)
		open_stream(c, fd);
	if (c && c->state == STREAM && (c->quits || lane_is_crowded()))
		quit(c);
	if (c && is_of_kernel(c)) {
		forget(c);
		return NULL;
	}
	if (!c || c->state == NEW || (c->state == PLAIN && !(reads && lane_has_rest(c))))
		return NULL;
	return c;
}

/* lane_conn() may forget it: it is held. */
static void enter_early(struct conn *c, int fd)
{
	struct hold h;

	lane_hold(&h, &c->o);
	if (!lane_conn(fd, false))
		become_plain(c);
	lane_conn_ready(c);
	lane_release(&h);
}

void lane_conn_connected(int fd, bool listed)
{
	struct conn *c;

	lane_lock();
	c = lane_find_kind(fd, CONN);
	if (c && c->state == NEW && !listed) {
		become_plain(c);
		lane_table_set(fd, NULL);
	} else if (c && c->state == NEW) {
		c->state = CANDIDATE;
		if (!LIST_EMPTY(&c->interests))
			enter_early(c, fd);
		lane_wake_all();
	}
	lane_unlock();
}

void lane_conn_listens(int fd)
{
	struct conn *c;

	lane_lock();
	c = lane_find_kind(fd, CONN);
	if (c && c->state == NEW) {
		become_plain(c);
		if (!c->bound)
			lane_table_set(fd, NULL);
	}
	lane_unlock();
}

/* Does not sleep: -EAGAIN when the peer has not followed. */
int lane_conn_try_leave(struct conn *c)
{
	int ret = c->state == LOST ? -EIO : c->state == STREAM ? leave_step(c) : 0;

	if (!ret && c->state != PLAIN)
		become_plain(c);
	return ret;
}

/*
 * A peer that leaves the memory waits until this side has read what came before it, and a
 * call of this side until the peer has followed.
 */
void lane_conn_serve(struct conn *c)
{
	int ret = take_bytes(c, false);

	if (ret == -ENOMEM)
		lane_say("lacks memory to follow a peer", kevent_stream_fd(c->s));
	if (c->leaves)
		ret = leave_step(c);
	if (c->leaves && !ret)
		become_plain(c);
	else if (ret != -EAGAIN)
		c->leaves = 0;
	if (c->s)
		lane_hub_watch(c);
	lane_conn_ready(c);
}

/*
 * Leaves the memory for good. Meanwhile the other streams are served: two sides that leave
 * different ones do not wait for each other. 0: all further bytes go through the socket,
 * but for the rest. -EAGAIN: the peer has not followed until @deadline; call again.
 */
int lane_conn_leave(struct conn *c, int64_t deadline)
{
	struct pollfd fds[2];
	struct hold h;
	int ret = 0;

	lane_hold(&h, &c->o);
	while (!ret) {
		ret = lane_conn_try_leave(c);
		if (ret != -EAGAIN || lane_is_over(deadline))
			break;
		ret = lane_sleep(fds, 2, deadline, NULL);
		if (ret == -EINTR && (deadline > 0 || !(lane_interrupted & NO_RESTART)))
			ret = 0;
	}
	lane_release(&h);
	return ret;
}

/*
 * Before both directions end: the peer is not waited for. It sees the end of the stream, and
 * what is in the socket after its end is no byte of the stream if that was in memory.
 */
int lane_conn_cut(struct conn *c, int fd)
{
	bool bells;
	int ret;

	/* The last bell may be there, and bytes of the stream behind it. */
	lane_take_events();
	ret = take_bytes(c, true);
	if (ret)
		return ret;
	bells = kevent_stream_memory(c->s) & KEVENT_STREAM_RECEIVES;
	become_plain(c);
	ret = real()->shutdown(fd, SHUT_RDWR);
	ret = ret ? -errno : 0;
	if (bells)
		drop_bells(fd);
	return ret;
}

static int leave(int fd, enum use use, bool again)
{
	struct conn *c;
	struct hold h;
	int ret = 0;

	lane_lock();
	c = lane_find_kind(fd, CONN);
	if (c) {
		lane_hold(&h, &c->o);
		ret = lane_conn_leave(c, again ? 0 : FOREVER);
		if (ret == -EAGAIN) {
			c->leaves |= use == WRITES ? POLLOUT : POLLIN;
			lane_glance();
		}
		if (!ret && use == READS && lane_has_rest(c)) {
			lane_say("bytes from memory cannot go to this call", fd);
			ret = -EIO;
		}
		lane_release(&h);
	}
	lane_unlock();
	if (ret)
		errno = -ret;
	return ret ? -1 : 0;
}

int lane_leave(int fd, bool reads)
{
	return leave(fd, reads ? READS : WRITES, false);
}

int lane_leave_to_call(int fd, enum use use, int flags)
{
	return leave(fd, use, lane_is_nonblocking(fd, flags));
}

/* In a child: what its parent has in memory is not the child's. */
void lane_forget_parent(void)
{
	struct conn *c;

	lane_threads_forget();
	lane_hub_forget();
	lane_stats = (struct lane_stats){ .streams = 0 };
	LIST_FOREACH(c, &lane_conns, all)
		if (c->state == STREAM || (c->state == CANDIDATE && lane_settings.forks_alone))
			c->state = LOST;
	/* Last: a handler of the child may use them now. */
	lane_unlock_in_child();
}
