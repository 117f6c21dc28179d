// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: connections, from candidate to stream and back, and sleeping
 *
 * A process has one queue and one set of streams. Of the threads that sleep, the leader
 * watches the queue. All have an eventfd, by which a thread that has taken something from
 * the set, or has ended the sleep of the leader, wakes them to look again.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <time.h>

#include "lane.h"

#define RING_SIZE	64U
#define PRIVATE_FROM	2048	/* at most: above what select() takes */
#define CHUNK		65536

struct hub {
	struct kevent_queue		q;
	struct kevent_streams		*set;
	KEVENT_RING_STORAGE(RING_SIZE)	mem;
};

struct sleeper {
	LIST_ENTRY(sleeper)	all;
	int			fd;
};

struct conns lane_conns = LIST_HEAD_INITIALIZER(lane_conns);
struct lane_stats lane_stats;

static struct hub *hub;
static LIST_HEAD(, sleeper) sleepers = LIST_HEAD_INITIALIZER(sleepers);
static const struct sleeper *leader;
static __thread bool leading __attribute__((tls_model("initial-exec")));
static __u32 serial;
static const struct timespec no_time;

/* The program shall not close it. */
static bool make_private(int fd, struct conn *c)
{
	struct private *p = calloc(1, sizeof(*p));

	if (!p)
		return false;
	p->o.kind = PRIVATE;
	p->o.refs = 1;
	p->conn = c;
	if (!lane_table_set(fd, &p->o)) {
		free(p);
		return false;
	}
	return true;
}

static bool have_hub(void)
{
	struct hub *h = hub;

	if (h)
		return true;
	h = aligned_alloc(64, (sizeof(*h) + 63) & ~63UL);
	if (!h)
		return false;
	memset(h, 0, sizeof(*h));
	if (kevent_queue_init(&h->q, &h->mem.ring, RING_SIZE, 0)) {
		free(h);
		return false;
	}
	if (kevent_streams_new(&h->set, &h->q, lane_settings.looks)) {
		kevent_queue_close(&h->q);
		free(h);
		return false;
	}
	hub = h;
	make_private(h->q.fd, NULL);
	return true;
}

/* --- what there is to do ------------------------------------------------- */

/* By the number and the serial: the event may be older than the stream. */
static struct conn *conn_of(__u64 user)
{
	const struct private *p = lane_find_kind((int)(user & 0xffffffffU), PRIVATE);

	return p && p->conn && p->conn->user == user ? p->conn : NULL;
}

void lane_wake_all(void)
{
	const __u64 one = 1;
	const struct sleeper *s;

	LIST_FOREACH(s, &sleepers, all)
		if (s->fd >= 0 && real()->write(s->fd, &one, sizeof(one)) < 0)
			continue;
}

void lane_count_in(int memory, ssize_t nr)
{
	if (memory & KEVENT_STREAM_RECEIVES)
		lane_stats.in_memory += (__u64)nr;
	else
		lane_stats.in_socket += (__u64)nr;
}

/*
 * Takes the bytes that keep a connection from leaving the memory: those in it, and those of
 * the socket before it. Later reads have them first.
 */
static int take_bytes(struct conn *c, bool of_memory)
{
	static unsigned char bytes[CHUNK];
	int memory, ret = 0;
	ssize_t nr;

	while (!ret) {
		memory = kevent_stream_memory(c->s);
		if (!memory || (!of_memory && ((memory & KEVENT_STREAM_RECEIVES) ||
					       lane_rest_is_large(c))))
			break;
		nr = kevent_stream_read(c->s, bytes, sizeof(bytes));
		if (nr <= 0)
			return nr == -EAGAIN ? 0 : (int)nr;
		lane_count_in(memory, nr);
		ret = lane_rest_add(c, bytes, (size_t)nr);
	}
	return ret;
}

/* A peer that leaves the memory waits until this side has read what came before it. */
static void serve(struct conn *c)
{
	if (take_bytes(c, false) == -ENOMEM)
		lane_say("lacks memory to follow a peer", kevent_stream_fd(c->s));
	lane_conn_ready(c);
}

/* If the leader sleeps, its peers are told so again. */
void lane_dispatch(void)
{
	struct kevent_stream *s;
	bool any = false;

	if (!hub)
		return;
	do {
		while ((s = kevent_streams_next(hub->set))) {
			struct conn *c = conn_of(kevent_stream_user(s));

			if (c)
				serve(c);
			any = true;
		}
	} while (leader && kevent_streams_arm(hub->set) == 1);
	if (any)
		lane_wake_all();
}

static bool see_events(const struct ukevent *ev, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		struct conn *c = conn_of(ev[i].ptr);

		if (c && c->s)
			kevent_stream_event(c->s, &ev[i]);
	}
	return nr > 0;
}

void lane_take_events(void)
{
	struct ukevent ev[RING_SIZE];

	if (hub)
		see_events(ev, kevent_queue_get(&hub->q, ev, RING_SIZE, &no_time));
}

/* --- sleeping ------------------------------------------------------------ */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t lane_deadline(int64_t span)
{
	return span < 0 ? FOREVER : span ? now_ns() + span : 0;
}

bool lane_is_over(int64_t deadline)
{
	return deadline >= 0 && (!deadline || now_ns() >= deadline);
}

static int real_sleep(struct pollfd *fds, nfds_t nr, int64_t deadline, const sigset_t *mask)
{
	int64_t left = deadline < 0 ? 0 : deadline ? deadline - now_ns() : 0;
	struct timespec span;

	if (left < 0)
		left = 0;
	span.tv_sec = left / 1000000000;
	span.tv_nsec = left % 1000000000;
	return real()->ppoll(fds, nr, deadline < 0 ? NULL : &span, mask) < 0 ? -errno : 0;
}

/* Before the sleep: as often as the user has asked for */
static bool look(void)
{
	struct ukevent ev[RING_SIZE];

	if (!lane_settings.looks)
		return false;
	return see_events(ev, kevent_streams_get(hub->set, ev, RING_SIZE, &no_time));
}

/* @outer: the sleep of this thread that a signal handler, which sleeps, has interrupted */
static void wake_up(struct sleeper *me, const struct sleeper *outer)
{
	LIST_REMOVE(me, all);
	if (me->fd >= 0)
		real()->close(me->fd);
	if (leader != me)
		return;
	leader = outer;
	leading = outer;
	lane_take_events();
	lane_dispatch();
	lane_wake_all();
}

/*
 * Sleeps until there may be something to do, or one of @fds from the third on is ready:
 * the first two are used here. What was ready before is to be looked at before, in the same
 * section of the lock. Return: 0, -EINTR or another error.
 */
int lane_sleep(struct pollfd *fds, nfds_t nr, int64_t deadline, const sigset_t *mask)
{
	const struct sleeper *outer = leading ? leader : NULL;
	struct sleeper me = { .fd = -1 };
	int ret;

	fds[0] = (struct pollfd){ .fd = -1 };
	fds[1] = (struct pollfd){ .fd = -1 };
	if (hub && (!leader || leading)) {
		if (look() || kevent_streams_arm(hub->set) == 1) {
			lane_dispatch();
			return 0;
		}
		leader = &me;
		leading = true;
		fds[0] = (struct pollfd){ .fd = hub->q.fd, .events = POLLIN };
	}
	if (!__libc_single_threaded) {
		me.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (me.fd < 0 && leader != &me)
			return -errno;
		fds[1] = (struct pollfd){ .fd = me.fd, .events = POLLIN };
	}
	LIST_INSERT_HEAD(&sleepers, &me, all);
	lane_stats.sleeps++;
	lane_interrupted = 0;
	lane_unlock();
	/* A handler that was put off has run now. */
	ret = lane_interrupted ? -EINTR : real_sleep(fds, nr, deadline, mask);
	lane_lock();
	wake_up(&me, outer);
	return ret;
}

/* --- connections --------------------------------------------------------- */

void lane_conn_new(int fd, bool offers)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	c->o.kind = CONN;
	c->o.refs = 1;
	c->offers = offers;
	LIST_INIT(&c->interests);
	lane_lock();
	LIST_INSERT_HEAD(&lane_conns, c, all);
	if (!lane_table_set(fd, &c->o))
		lane_put(&c->o);
	lane_unlock();
}

/* A descriptor of its own: the program may close its own, and leave copies. */
static int private_copy(int fd, struct conn *c)
{
	struct rlimit most;
	int sock, from = PRIVATE_FROM;

	if (!getrlimit(RLIMIT_NOFILE, &most) && most.rlim_cur / 2 < PRIVATE_FROM)
		from = (int)(most.rlim_cur / 2);
	sock = real()->fcntl(fd, F_DUPFD_CLOEXEC, from);
	if (sock >= 0 && make_private(sock, c))
		return sock;
	if (sock >= 0)
		real()->close(sock);
	return -1;
}

static void open_stream(struct conn *c, int fd)
{
	int sock, ret;
	pid_t owner;

	owner = lane_rest_claim(c, getpid());
	c->state = owner == EVERYBODY || owner == getpid() ? PLAIN : LOST;
	if (owner != getpid() || !have_hub())
		return;
	sock = private_copy(fd, c);
	if (sock < 0)
		return;
	c->user = (__u64)++serial << 32 | (__u32)sock;
	ret = kevent_stream_open(hub->set, sock, c->offers ? KEVENT_STREAM_OFFER : 0, c->user,
				 &c->s);
	if (ret) {
		lane_table_set(sock, NULL);
		real()->close(sock);
		c->s = NULL;
		return;
	}
	c->state = STREAM;
	lane_stats.streams++;
	lane_wake_all();
}

/* The connection @fd, if the call is to be made here: not if it is a plain socket again */
struct conn *lane_conn(int fd, bool reads)
{
	struct conn *c = lane_find_kind(fd, CONN);

	if (c && c->state == CANDIDATE)
		open_stream(c, fd);
	if (!c || (c->state == PLAIN && !(reads && lane_has_rest(c))))
		return NULL;
	return c;
}

static void close_stream(struct conn *c)
{
	int sock;

	if (!c->s)
		return;
	sock = kevent_stream_fd(c->s);
	kevent_stream_close(c->s);
	c->s = NULL;
	lane_table_set(sock, NULL);
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

int lane_conn_poll(struct conn *c, int fd, int events)
{
	struct pollfd real_fd = { .fd = fd, .events = (short)events };
	int got = 0;

	if (c->state == LOST)
		return POLLERR | events;	/* the call says why */
	if (lane_has_rest(c))
		got = POLLIN & events;
	if (c->state == STREAM)
		return got | kevent_stream_poll(c->s, events);
	if (real()->poll(&real_fd, 1, 0) == 1)
		got |= real_fd.revents;
	return got;
}

/* 0: look again. -EINTR: a handler ran whose calls do not go on. -EAGAIN: it is over. */
int lane_conn_wait(struct conn *c, int fd, int events, int64_t deadline)
{
	struct pollfd fds[2];
	int ret = 0;

	c->o.refs++;
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
	lane_put(&c->o);
	return ret;
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
	if (!lane_find_kind(2, CONN) && real()->write(2, line, (size_t)len) < 0)
		return;
}

static int leave_step(struct conn *c)
{
	int ret = kevent_stream_leave(c->s), error;

	if (ret != -EAGAIN)
		return ret;
	error = take_bytes(c, true);
	if (error)
		return error;
	ret = kevent_stream_leave(c->s);
	/* A peer that has gone does not follow any more. */
	if (ret == -EAGAIN && (kevent_stream_poll(c->s, 0) & POLLHUP))
		ret = -EPIPE;
	return ret;
}

static void become_plain(struct conn *c)
{
	c->state = PLAIN;
	close_stream(c);
	lane_settle_interests(c);
	lane_wake_all();
}

/*
 * Leaves the memory for good. Meanwhile the other streams are served: two sides that leave
 * different ones do not wait for each other. 0: all further bytes go through the socket,
 * but for the rest. -EAGAIN: the peer has not followed until @deadline; call again.
 */
int lane_conn_leave(struct conn *c, int64_t deadline)
{
	struct pollfd fds[2];
	int ret = 0;

	if (c->state == CANDIDATE)
		c->state = lane_rest_claim(c, EVERYBODY) == EVERYBODY ? PLAIN : LOST;
	if (c->state == LOST)
		return -EIO;
	c->o.refs++;
	while (c->state == STREAM) {
		ret = leave_step(c);
		if (ret != -EAGAIN)
			break;
		if (lane_is_over(deadline))
			break;
		lane_sleep(fds, 2, deadline, NULL);
	}
	if (!ret && c->state == STREAM)
		become_plain(c);
	lane_put(&c->o);
	return ret;
}

/*
 * Before both directions end: the peer is not waited for. It sees the end of the stream, and
 * what is in the socket after its end is no byte of the stream if that was in memory.
 */
int lane_conn_cut(struct conn *c, int fd)
{
	bool bells = kevent_stream_memory(c->s) & KEVENT_STREAM_RECEIVES;
	char bytes[256];
	int ret = take_bytes(c, true);

	if (ret)
		return ret;
	become_plain(c);
	ret = real()->shutdown(fd, SHUT_RDWR);
	while (bells && real()->recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return ret ? -errno : 0;
}

int lane_leave(int fd, bool reads)
{
	struct conn *c;
	int ret = 0;

	lane_lock();
	c = lane_find_kind(fd, CONN);
	if (c) {
		c->o.refs++;
		ret = lane_conn_leave(c, FOREVER);
		if (!ret && reads && lane_has_rest(c)) {
			lane_say("bytes from memory cannot go to this call", fd);
			ret = -EIO;
		}
		lane_put(&c->o);
	}
	lane_unlock();
	if (ret)
		errno = -ret;
	return ret ? -1 : 0;
}

/* In a child: what its parent has in memory is not the child's. */
void lane_forget_parent(void)
{
	struct conn *c;

	lane_lock_in_child();
	LIST_INIT(&sleepers);
	leader = NULL;
	leading = false;
	if (hub) {
		lane_table_set(hub->q.fd, NULL);
		kevent_queue_close(&hub->q);
	}
	hub = NULL;
	LIST_FOREACH(c, &lane_conns, all)
		if (c->state == STREAM)
			c->state = LOST;
}
