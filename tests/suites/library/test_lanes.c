// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes of libkevent between processes
 *
 *	the test          lane          a child
 *	receives    <=================  sends         one lane for each child
 *	its queue   <----- bell ------                when the test sleeps
 *	            ------ bell ----->  its queue     when there is room
 *
 * All waits have a limit: a wake-up that is lost fails the test. What both sides of
 * a lane do step by step is in libkevent/test/lane.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "helpers.h"

#define RING		64
#define SENDERS		8
#define LONG		3000
#define BUF		4096
#define END		1000		/* cookies below are lanes */

#define FEW		3000		/* messages of one child */
#define RACE_NS		2000000000ull	/* of a race, whatever the machine */

static const struct kevent_lane_options to_child = {
	.send_slots = 16, .recv_slots = 16,
};

struct end {
	struct kevent_lane	lane;
	struct kevent_queue	q;
	struct kevent_lanes	set;
	union {
		struct kevent_ring ring;
		unsigned char	bytes[KEVENT_RING_BYTES(RING)];
	} mem __attribute__((aligned(64)));
};

static struct timespec patience(void)
{
	return ms_to_timespec(PATIENCE_MS * slowness);
}

/* The queue of one process, and a set for its lanes */
static int open_end(struct end *e, uint32_t looks)
{
	kevent_lanes_init(&e->set, looks);
	return kevent_queue_init(&e->q, &e->mem.ring, RING, 0);
}

/* A lane that a child will attach by the socket that is returned */
static int make_lane(struct kevent_lane *l, const struct kevent_lane_options *o)
{
	int sock[2];

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	MUST_EQ(kevent_lane_create(l, o), 0);
	MUST_EQ(kevent_lane_pass(l, sock[0]), 0);
	return sock[1];
}

/* In a child: its side, watched by a queue of its own */
static int join_lane(struct end *e, int sock)
{
	int ret = open_end(e, 0);

	if (!ret)
		ret = kevent_lane_attach(&e->lane, sock, 0, 0);
	if (!ret)
		ret = kevent_lane_watch(&e->lane, e->q.fd, 0);
	if (!ret)
		kevent_lanes_add(&e->set, &e->lane);
	return ret;
}

/* Waits for an event of the only lane: 1, 0 after the limit, or -errno. */
static int await_event(struct end *e)
{
	struct timespec limit = patience();
	struct ukevent ev;
	int ret = kevent_queue_get(&e->q, &ev, 1, &limit);

	if (ret == 1)
		kevent_lane_event(&e->lane, &ev);
	return ret;
}

/* Sends; if the lane is full, when there is room. -ETIME: nobody said so. */
static int send_when_room(struct end *e, const void *data, uint32_t len)
{
	int ret;

	while ((ret = kevent_lane_send(&e->lane, data, len)) == -EAGAIN)
		if (await_event(e) != 1)
			return -ETIME;
	return ret;
}

/* Takes the next message of the only lane, and sleeps as often as it can. */
static int recv_asleep(struct end *e, void *buf, uint32_t size)
{
	int ret;

	while ((ret = kevent_lane_recv(&e->lane, buf, size)) == -EAGAIN) {
		if (kevent_lane_arm(&e->lane))
			continue;
		if (await_event(e) != 1)
			return -ETIME;
	}
	return ret;
}

/* --- many senders -------------------------------------------------------- */

struct message {
	uint64_t	nr;
	uint32_t	from;
	uint32_t	len;
	unsigned char	data[LONG];
};

static uint32_t length_of(uint64_t nr)
{
	return nr % 5 ? nr % 33 : nr * 7 % LONG;
}

static void fill_message(struct message *m, uint32_t from, uint64_t nr)
{
	m->from = from;
	m->nr = nr;
	m->len = length_of(nr);
	memset(m->data, (int)(nr + from), m->len);
}

struct sender {
	int		sock;
	uint32_t	from;
	uint64_t	nr;
};

static int sender(void *arg)
{
	static struct message m;
	static struct end e;
	struct sender *s = arg;
	uint64_t i;

	CHILD_MUST(join_lane(&e, s->sock) == 0);
	for (i = 0; i < s->nr; i++) {
		fill_message(&m, s->from, i);
		CHILD_MUST(send_when_room(&e, &m, offsetof(struct message, data) +
					  m.len) == 0);
	}
	kevent_lane_close(&e.lane);
	return 0;
}

struct senders {
	struct end		e;
	struct kevent_lane	lane[SENDERS];
	pid_t			pid[SENDERS];
	uint64_t		nr[SENDERS];
	unsigned int		left;
};

static void start_senders(struct senders *s, uint32_t looks)
{
	static const struct kevent_lane_options options = {
		.recv_slots = 8, .recv_arena = 8192,
	};
	struct sender one = { .nr = FEW };
	unsigned int i;

	*s = (struct senders){};
	MUST_EQ(open_end(&s->e, looks), 0);
	for (i = 0; i < SENDERS; i++) {
		one.sock = make_lane(&s->lane[i], &options);
		one.from = i;
		MUST_EQ(kevent_lane_watch(&s->lane[i], s->e.q.fd, i), 0);
		kevent_lanes_add(&s->e.set, &s->lane[i]);
		s->pid[i] = start_child(sender, &one);
		close(one.sock);
		s->left++;
	}
}

static void check_message(struct senders *s, const struct kevent_lane *from,
			  const struct message *m, int len)
{
	static struct message want;
	uint32_t i = from - s->lane;

	fill_message(&want, i, s->nr[i]++);
	MUST_EQ(len, offsetof(struct message, data) + want.len);
	MUST(!memcmp(m, &want, len));
}

/* Takes one message, or the end of a lane; false: there is none. */
static bool take_message(struct senders *s)
{
	static struct message m;
	struct kevent_lane *from;
	int ret = kevent_lanes_recv(&s->e.set, &from, &m, sizeof(m));

	if (ret == -EAGAIN)
		return false;
	if (ret < 0) {
		MUST_EQ(ret, -EPIPE);
		MUST_EQ(s->nr[from - s->lane], FEW);
		kevent_lane_close(from);
		s->left--;
		return true;
	}
	check_message(s, from, &m, ret);
	return true;
}

static void take_events(struct senders *s)
{
	struct timespec limit = patience();
	uint64_t start = now_ns();
	struct ukevent ev[4];
	int ret, i;

	ret = kevent_lanes_get(&s->e.set, &s->e.q, ev, 4, &limit);
	MUST(ret >= 0);
	for (i = 0; i < ret; i++)
		if (ev[i].ptr < SENDERS)
			kevent_lane_event(&s->lane[ev[i].ptr], &ev[i]);
	if (!ret)
		MUST(now_ns() - start < PATIENCE_MS * slowness * 1000000ull);
}

static void many_senders(uint32_t looks)
{
	static struct senders s;
	unsigned int i;

	start_senders(&s, looks);
	while (s.left)
		if (!take_message(&s))
			take_events(&s);
	for (i = 0; i < SENDERS; i++)
		CHECK_EQ(join_child(s.pid[i], PATIENCE_MS), 0);
}

static void each_sender_keeps_its_order(void)
{
	many_senders(0);
}

static void receiver_may_look_for_a_while(void)
{
	many_senders(200);
}

static void receiver_may_learn_to_look(void)
{
	many_senders(KEVENT_LOOKS_LEARNED);
}

/* --- wake-ups ------------------------------------------------------------ */

static int echo_messages(void *arg)
{
	static struct end e;
	uint64_t nr;
	int ret;

	CHILD_MUST(join_lane(&e, *(int *)arg) == 0);
	do {
		ret = recv_asleep(&e, &nr, sizeof(nr));
		if (ret == sizeof(nr))
			ret = kevent_lane_send(&e.lane, &nr, sizeof(nr));
	} while (!ret);
	CHILD_MUST(ret == -EPIPE);
	return 0;
}

static void start_pair(struct end *e, const struct kevent_lane_options *o,
		       int (*fn)(void *arg), pid_t *pid)
{
	int sock = make_lane(&e->lane, o);

	MUST_EQ(open_end(e, 0), 0);
	MUST_EQ(kevent_lane_watch(&e->lane, e->q.fd, 0), 0);
	*pid = start_child(fn, &sock);
	close(sock);
}

/* Both sleep before each message, unless it is there already. */
static void ping_pong(uint32_t flags)
{
	struct kevent_lane_options o = to_child;
	uint64_t i, nr, start = now_ns();
	static struct end e;
	pid_t pid;

	o.flags = flags;
	start_pair(&e, &o, echo_messages, &pid);
	for (i = 0; now_ns() - start < RACE_NS / 2; i++) {
		MUST_EQ(kevent_lane_send(&e.lane, &i, sizeof(i)), 0);
		MUST_EQ(recv_asleep(&e, &nr, sizeof(nr)), sizeof(nr));
		MUST_EQ(nr, i);
	}
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

/* All lanes between two processes, each with one set for them */
struct family {
	struct end		e;
	struct kevent_lane	lane[SENDERS];
	int			listener;
};

static int watch_all(struct family *f)
{
	int i, ret = 0;

	for (i = 0; i < SENDERS && !ret; i++) {
		ret = kevent_lane_watch(&f->lane[i], f->e.q.fd, i);
		if (!ret)
			kevent_lanes_add(&f->e.set, &f->lane[i]);
	}
	return ret;
}

/* -ETIME: a wait was not woken. */
static int recv_from_any(struct family *f, struct kevent_lane **from, uint64_t *nr)
{
	struct timespec limit = patience();
	struct ukevent ev[4];
	uint64_t start;
	int ret, got, i;

	while ((ret = kevent_lanes_recv(&f->e.set, from, nr, sizeof(*nr))) == -EAGAIN) {
		start = now_ns();
		got = kevent_lanes_get(&f->e.set, &f->e.q, ev, 4, &limit);
		for (i = 0; i < got; i++)
			kevent_lane_event(&f->lane[ev[i].ptr], &ev[i]);
		if (got < 0 || now_ns() - start >= PATIENCE_MS * slowness * 1000000ull)
			return -ETIME;
	}
	return ret;
}

/* Answers each message by all lanes. */
static int answer_by_all(void *arg)
{
	static struct family f;
	struct kevent_lane *from;
	uint64_t nr;
	int i, ret;

	CHILD_MUST(open_end(&f.e, 0) == 0);
	for (i = 0; i < SENDERS; i++)
		CHILD_MUST(kevent_lane_attach(&f.lane[i], accept(*(int *)arg, NULL, NULL),
					      0, 0) == 0);
	CHILD_MUST(watch_all(&f) == 0);
	while ((ret = recv_from_any(&f, &from, &nr)) == sizeof(nr))
		for (i = 0; i < SENDERS; i++)
			CHILD_MUST(kevent_lane_send(&f.lane[(nr + i) % SENDERS], &nr,
						    sizeof(nr)) == 0);
	CHILD_MUST(ret == -EPIPE);
	return 0;
}

/* Sockets with a name, so that both know which process the other one is */
static void pass_by_name(struct family *f)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);
	int i, sock;

	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST_EQ(bind(f->listener, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	MUST_EQ(getsockname(f->listener, (struct sockaddr *)&name, &len), 0);
	MUST_EQ(listen(f->listener, SENDERS), 0);
	for (i = 0; i < SENDERS; i++) {
		sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		MUST_EQ(connect(sock, (struct sockaddr *)&name, len), 0);
		MUST_EQ(kevent_lane_create(&f->lane[i], &to_child), 0);
		MUST_EQ(kevent_lane_pass(&f->lane[i], sock), 0);
	}
}

static void set_loses_no_wake_up(void)
{
	uint64_t i, nr, from_each[SENDERS], start = now_ns();
	static struct family f;
	struct kevent_lane *from;
	pid_t pid;
	int left;

	pass_by_name(&f);
	pid = start_child(answer_by_all, &f.listener);
	close(f.listener);
	MUST_EQ(open_end(&f.e, 0), 0);
	MUST_EQ(watch_all(&f), 0);
	for (i = 0; now_ns() - start < RACE_NS / 2; i++) {
		MUST_EQ(kevent_lane_send(&f.lane[i % SENDERS], &i, sizeof(i)), 0);
		memset(from_each, 0, sizeof(from_each));
		for (left = SENDERS; left; left--) {
			MUST_EQ(recv_from_any(&f, &from, &nr), sizeof(nr));
			MUST_EQ(nr, i);
			MUST_EQ(from_each[from - f.lane]++, 0);
		}
	}
	for (i = 0; i < SENDERS; i++)
		kevent_lane_close(&f.lane[i]);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static void eventfd_loses_no_wake_up(void)
{
	ping_pong(0);
}

static void socket_loses_no_wake_up(void)
{
	ping_pong(KEVENT_LANE_SOCKET);
}

/* Sends, waits and receives. Without an event it must not have waited. */
static int send_and_recv(struct end *e, uint64_t *nr)
{
	struct timespec limit = patience();
	uint64_t start = now_ns();
	struct ukevent ev;
	int ret;

	ret = kevent_lane_send_get(&e->lane, nr, sizeof(*nr), &e->q, &ev, 1,
				   &limit);
	if (ret < 0)
		return ret;
	if (!ret)
		return now_ns() - start < PATIENCE_MS * 1000000ull ?
			kevent_lane_recv(&e->lane, nr, sizeof(*nr)) : -ETIME;
	kevent_lane_event(&e->lane, &ev);
	return recv_asleep(e, nr, sizeof(*nr));
}

static int answer_in_the_wait(void *arg)
{
	static struct end e;
	uint64_t nr;
	int ret;

	CHILD_MUST(join_lane(&e, *(int *)arg) == 0);
	ret = recv_asleep(&e, &nr, sizeof(nr));
	while (ret == sizeof(nr))
		ret = send_and_recv(&e, &nr);
	CHILD_MUST(ret == -EPIPE);
	return 0;
}

static void calls_of_the_peer(uint32_t flags)
{
	struct kevent_lane_options o = to_child;
	uint64_t i, nr, start = now_ns();
	static struct end e;
	pid_t pid;

	o.flags = flags;
	start_pair(&e, &o, answer_in_the_wait, &pid);
	for (i = 0; now_ns() - start < RACE_NS / 2; i++) {
		nr = i;
		MUST_EQ(send_and_recv(&e, &nr), sizeof(nr));
		MUST_EQ(nr, i);
	}
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static void send_and_wait_lose_no_wake_up(void)
{
	calls_of_the_peer(0);
	calls_of_the_peer(KEVENT_LANE_SOCKET);
}

/* Sends for a while, at a pace that sweeps over what the receiver does. */
static int paced(void *arg)
{
	static struct end e;
	uint64_t i, start = now_ns(), seed = start | 1;
	volatile unsigned int wait;

	CHILD_MUST(join_lane(&e, *(int *)arg) == 0);
	for (i = 0; now_ns() - start < RACE_NS; i++) {
		CHILD_MUST(send_when_room(&e, &i, sizeof(i)) == 0);
		for (wait = next_random(&seed) % 3000; wait; wait--)
			;
	}
	kevent_lane_close(&e.lane);
	return 0;
}

/* Looks for the next message without a sleep, which would be too late. */
static int recv_awake(struct end *e, uint64_t *nr)
{
	uint64_t end = now_ns() + PATIENCE_MS * slowness * 1000000ull;
	unsigned int looks;
	int ret;

	for (looks = 1; ; looks++) {
		ret = kevent_lane_recv(&e->lane, nr, sizeof(*nr));
		if (ret != -EAGAIN)
			return ret;
		if (looks % 1000)
			continue;
		if (now_ns() > end)
			return -ETIME;
		sched_yield();
	}
}

/*
 * A child falls asleep after each message. The next one comes when it is about to,
 * and no later one would wake it.
 */
static void message_meets_a_sleeper(void)
{
	uint64_t i, nr, seed = test_seed(), start = now_ns();
	volatile unsigned int wait;
	static struct end e;
	pid_t pid;

	start_pair(&e, &to_child, echo_messages, &pid);
	for (i = 0; now_ns() - start < RACE_NS; i++) {
		for (wait = next_random(&seed) % 256; wait; wait--)
			;
		MUST_EQ(kevent_lane_send(&e.lane, &i, sizeof(i)), 0);
		MUST_EQ(recv_awake(&e, &nr), sizeof(nr));
		MUST_EQ(nr, i);
	}
	note("%llu messages", (unsigned long long)i);
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

/* With two slots the sender waits for room after two messages. */
static void room_meets_a_waiter(void)
{
	static const struct kevent_lane_options small = { .recv_slots = 2 };
	static struct end e;
	uint64_t i = 0, nr;
	pid_t pid;
	int ret;

	start_pair(&e, &small, paced, &pid);
	while ((ret = recv_asleep(&e, &nr, sizeof(nr))) == sizeof(nr))
		MUST_EQ(nr, i++);
	MUST_EQ(ret, -EPIPE);
	note("%llu messages", (unsigned long long)i);
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

/* --- other events, other loops, no calls --------------------------------- */

static void other_events_come_beside(void)
{
	unsigned int ticks = 0, bytes = 0;
	uint64_t start = now_ns(), nr;
	struct ukevent ev;
	struct timespec no_time = {};
	static struct end e;
	int fd[2], ret;
	pid_t pid;

	start_pair(&e, &to_child, echo_messages, &pid);
	kevent_lanes_add(&e.set, &e.lane);
	open_pipe(fd);
	MUST_EQ(add_pipe(e.q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, END), 0);
	kevent_set_timer(&ev, 1000000, 1000000, 0, 0, END + 1);
	MUST_EQ(kevent_ctl_one(e.q.fd, KEVENT_CTL_ADD, &ev), 0);
	put_byte(fd[1]);
	MUST_EQ(kevent_lane_send(&e.lane, &nr, sizeof(nr)), 0);
	while ((ticks < 3 || !bytes) && patient(start, PATIENCE_MS)) {
		ret = kevent_lane_recv(&e.lane, &nr, sizeof(nr));
		if (ret > 0)
			MUST_EQ(kevent_lane_send(&e.lane, &nr, sizeof(nr)), 0);
		ret = kevent_lanes_get(&e.set, &e.q, &ev, 1, &no_time);
		MUST(ret >= 0);
		if (ret && ev.ptr == END)
			bytes += take_bytes(fd[0]);
		else if (ret && ev.ptr == END + 1)
			ticks += kevent_expirations(&ev);
		else if (ret)
			kevent_lane_event(&e.lane, &ev);
	}
	CHECK(ticks >= 3);
	CHECK_EQ(bytes, 1);
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static int get_by_set(struct end *e, struct ukevent *ev)
{
	return kevent_lanes_get(&e->set, &e->q, ev, 1, NULL);
}

static int get_by_send(struct end *e, struct ukevent *ev)
{
	uint64_t nr = 0;

	return kevent_lane_send_get(&e->lane, &nr, sizeof(nr), &e->q, ev, 1, NULL);
}

/* There is a message before each wait, and the pipe is readable all the time. */
static unsigned int level_events(int (*get)(struct end *e, struct ukevent *ev))
{
	unsigned int events = 0, i;
	static struct end e, peer;
	struct kevent_lane *from;
	struct ukevent ev;
	uint64_t nr = 0;
	int fd[2], ret;

	MUST_EQ(open_end(&e, 0), 0);
	MUST_EQ(join_lane(&peer, make_lane(&e.lane, &to_child)), 0);
	MUST_EQ(kevent_lane_watch(&e.lane, e.q.fd, 0), 0);
	kevent_lanes_add(&e.set, &e.lane);
	open_pipe(fd);
	MUST_EQ(add_pipe(e.q.fd, fd[0], KEVENT_SOCKET_RECV, 0, END), 0);
	put_byte(fd[1]);
	for (i = 0; i < 1000; i++) {
		MUST_EQ(kevent_lane_send(&peer.lane, &nr, sizeof(nr)), 0);
		ret = get(&e, &ev);
		MUST(ret >= 0);
		events += ret == 1 && ev.ptr == END;
		MUST_EQ(kevent_lanes_recv(&e.set, &from, &nr, 8), 8);
		kevent_lane_recv(&peer.lane, &nr, 8);
	}
	kevent_lane_close(&e.lane);
	kevent_lane_close(&peer.lane);
	kevent_queue_close(&e.q);
	kevent_queue_close(&peer.q);
	note("%u events beside %u messages", events, i);
	return events;
}

static void level_watches_come_beside_messages(void)
{
	CHECK(level_events(get_by_set) > 10);
	CHECK(level_events(get_by_send) > 10);
}

/* As in libev or libevent: the loop watches the descriptor of the queue. */
static int loop_takes_one(struct end *e, int loop, uint64_t *nr)
{
	struct timespec no_time = {};
	struct epoll_event none;
	struct kevent_lane *from;
	struct ukevent ev;
	int ret;

	while ((ret = kevent_lanes_recv(&e->set, &from, nr, 8)) == -EAGAIN) {
		if (kevent_lanes_arm(&e->set))
			continue;
		if (epoll_wait(loop, &none, 1, PATIENCE_MS * slowness) != 1)
			return -ETIME;
		while (kevent_lanes_get(&e->set, &e->q, &ev, 1, &no_time) == 1)
			kevent_lane_event(&e->lane, &ev);
	}
	return ret;
}

static void other_loops_wait_for_the_queue(void)
{
	struct epoll_event want = { .events = EPOLLIN };
	int loop = epoll_create1(EPOLL_CLOEXEC);
	static struct end e;
	uint64_t i, nr;
	pid_t pid;

	start_pair(&e, &to_child, echo_messages, &pid);
	kevent_lanes_add(&e.set, &e.lane);
	MUST_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, e.q.fd, &want), 0);
	for (i = 0; i < FEW / 10; i++) {
		MUST_EQ(kevent_lane_send(&e.lane, &i, sizeof(i)), 0);
		MUST_EQ(loop_takes_one(&e, loop, &nr), sizeof(nr));
		MUST_EQ(nr, i);
	}
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static int deny_all(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filters = {
		.len	= ARRAY_SIZE(filter),
		.filter	= filter,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filters);
}

/* The only call that is not deadly is the one at the end. */
static int without_calls(void *arg)
{
	static struct kevent_lane mine;
	static struct end e;
	uint64_t i, nr;
	int sock[2];

	(void)arg;
	CHILD_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
	CHILD_MUST(kevent_lane_create(&mine, &to_child) == 0);
	CHILD_MUST(kevent_lane_pass(&mine, sock[0]) == 0);
	CHILD_MUST(join_lane(&e, sock[1]) == 0);
	CHILD_MUST(deny_all() == 0);
	for (i = 0; i < 10 * FEW; i++) {
		if (kevent_lane_send(&mine, &i, sizeof(i)) ||
		    kevent_lane_recv(&e.lane, &nr, 8) != 8 || nr != i ||
		    kevent_lane_send(&e.lane, &i, sizeof(i)) ||
		    kevent_lane_recv(&mine, &nr, 8) != 8 || nr != i ||
		    kevent_lane_recv(&mine, &nr, 8) != -EAGAIN)
			syscall(SYS_exit_group, 1);
	}
	syscall(SYS_exit_group, 0);
	return 1;
}

static void awake_sides_make_no_call(void)
{
	CHECK_EQ(join_child(start_child(without_calls, NULL), PATIENCE_MS), 0);
}

/* --- ends ---------------------------------------------------------------- */

/* How often the tests kill: KEVENT_LANE_KILLS, or a few times */
static unsigned int kills(void)
{
	const char *given = getenv("KEVENT_LANE_KILLS");

	return given ? atoi(given) : 100;
}

/* What a child has done, for those who survive it */
static _Atomic uint64_t *published;

static void share_count(void)
{
	published = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(published != MAP_FAILED);
}

static int sends_until_killed(void *arg)
{
	static struct message m;
	static struct end e;
	uint64_t i;

	CHILD_MUST(join_lane(&e, *(int *)arg) == 0);
	for (i = 0; ; i++) {
		fill_message(&m, 0, i);
		CHILD_MUST(send_when_room(&e, &m, offsetof(struct message, data) +
					  m.len) == 0);
		*published = i + 1;
	}
}

static int takes_until_killed(void *arg)
{
	static struct message m;
	static struct end e;
	int ret;

	CHILD_MUST(join_lane(&e, *(int *)arg) == 0);
	while ((ret = recv_asleep(&e, &m, sizeof(m))) >= 0)
		++*published;
	CHILD_MUST(ret == -EPIPE);
	return 0;
}

/* Kills @pid within some 2 ms: before, while or after it does something. */
static int killer(void *arg)
{
	uint64_t start = now_ns(), seed = start | 1;
	uint64_t end = start + next_random(&seed) % 2000000;

	while (now_ns() < end)
		;
	return kill(*(pid_t *)arg, SIGKILL);
}

static void reap_killed(pid_t pid)
{
	int status;

	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* What a killed process has published arrives once, and then its end. */
static void kill_sender(const struct kevent_lane_options *o)
{
	static struct message m, want;
	static struct end e;
	pid_t pid, reaper;
	uint64_t nr = 0;
	int ret;

	*published = 0;
	start_pair(&e, o, sends_until_killed, &pid);
	reaper = start_child(killer, &pid);
	while ((ret = recv_asleep(&e, &m, sizeof(m))) >= 0) {
		fill_message(&want, 0, nr++);
		MUST_EQ(ret, offsetof(struct message, data) + want.len);
		MUST(!memcmp(&m, &want, ret));
	}
	MUST_EQ(ret, -ECONNRESET);
	/* One more may have been published than the child has counted. */
	MUST(nr == *published || nr == *published + 1);
	MUST_EQ(kevent_lane_send(&e.lane, &nr, sizeof(nr)), -EPIPE);
	kevent_lane_close(&e.lane);
	kevent_queue_close(&e.q);
	reap_killed(pid);
	CHECK_EQ(join_child(reaper, PATIENCE_MS), 0);
}

/* Sends until the end of the receiver is reported: not after the limit. */
static void kill_receiver(const struct kevent_lane_options *o)
{
	static struct message m;
	static struct end e;
	pid_t pid, reaper;
	uint64_t nr = 0;
	int ret;

	*published = 0;
	start_pair(&e, o, takes_until_killed, &pid);
	reaper = start_child(killer, &pid);
	do {
		fill_message(&m, 0, nr++);
		ret = send_when_room(&e, &m, offsetof(struct message, data) + m.len);
	} while (!ret);
	MUST_EQ(ret, -EPIPE);
	MUST(*published < nr);
	MUST_EQ(kevent_lane_recv(&e.lane, &m, sizeof(m)), -ECONNRESET);
	kevent_lane_close(&e.lane);
	kevent_queue_close(&e.q);
	reap_killed(pid);
	CHECK_EQ(join_child(reaper, PATIENCE_MS), 0);
}

static void killed_sides(void (*kill_side)(const struct kevent_lane_options *o))
{
	struct kevent_lane_options o = {
		.send_slots = 8, .send_arena = 4096,
		.recv_slots = 8, .recv_arena = 4096,
	};
	unsigned int i;

	share_count();
	for (i = 0; i < kills(); i++) {
		o.flags = i & 1 ? KEVENT_LANE_SOCKET : 0;
		kill_side(&o);
	}
	note("killed %u times", i);
}

static void killed_sender_has_sent_what_it_published(void)
{
	killed_sides(kill_sender);
}

static void killed_receiver_is_an_event(void)
{
	killed_sides(kill_receiver);
}

/* The descriptors of a lane do not survive an exec. */
static int sends_and_execs(void *arg)
{
	static struct end e;
	uint64_t nr = 1;
	int null = open("/dev/null", O_RDWR);

	CHILD_MUST(join_lane(&e, *(int *)arg) == 0);
	CHILD_MUST(kevent_lane_send(&e.lane, &nr, sizeof(nr)) == 0);
	dup2(null, STDOUT_FILENO);
	execl("/proc/self/exe", "kevent-tests", "--list", NULL);
	return 1;
}

static void exec_ends_a_lane(void)
{
	static struct end e;
	uint64_t nr;
	pid_t pid;

	start_pair(&e, &to_child, sends_and_execs, &pid);
	MUST_EQ(recv_asleep(&e, &nr, sizeof(nr)), sizeof(nr));
	MUST_EQ(recv_asleep(&e, &nr, sizeof(nr)), -ECONNRESET);
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

/* A child of the sender may not send, and does not end the lane. */
static int sends_beside_a_child(void *arg)
{
	static struct end e;
	uint64_t nr = 1;
	pid_t pid;

	CHILD_MUST(join_lane(&e, *(int *)arg) == 0);
	CHILD_MUST(kevent_lane_send(&e.lane, &nr, sizeof(nr)) == 0);
	pid = fork();
	if (!pid) {
		if (kevent_lane_send(&e.lane, &nr, sizeof(nr)) != -EXDEV)
			_exit(1);
		kevent_lane_close(&e.lane);
		_exit(0);
	}
	CHILD_MUST(join_child(pid, PATIENCE_MS) == 0);
	nr = 2;
	CHILD_MUST(kevent_lane_send(&e.lane, &nr, sizeof(nr)) == 0);
	kevent_lane_close(&e.lane);
	return 0;
}

static void child_of_a_sender_changes_nothing(void)
{
	static struct end e;
	uint64_t nr;
	pid_t pid;

	start_pair(&e, &to_child, sends_beside_a_child, &pid);
	MUST_EQ(recv_asleep(&e, &nr, sizeof(nr)), sizeof(nr));
	MUST_EQ(nr, 1);
	MUST_EQ(recv_asleep(&e, &nr, sizeof(nr)), sizeof(nr));
	MUST_EQ(nr, 2);
	MUST_EQ(recv_asleep(&e, &nr, sizeof(nr)), -EPIPE);
	kevent_lane_close(&e.lane);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static const struct test_case cases[] = {
	TEST(each_sender_keeps_its_order),
	TEST(receiver_may_look_for_a_while),
	TEST(receiver_may_learn_to_look),
	TEST(set_loses_no_wake_up),
	TEST(eventfd_loses_no_wake_up),
	TEST(socket_loses_no_wake_up),
	TEST(send_and_wait_lose_no_wake_up),
	TEST(message_meets_a_sleeper),
	TEST(room_meets_a_waiter),
	TEST(other_events_come_beside),
	TEST(level_watches_come_beside_messages),
	TEST(other_loops_wait_for_the_queue),
	TEST(awake_sides_make_no_call),
	TEST_LIMIT(killed_sender_has_sent_what_it_published, 900),
	TEST_LIMIT(killed_receiver_is_an_event, 900),
	TEST(exec_ends_a_lane),
	TEST(child_of_a_sender_changes_nothing),
	{}
};

const struct test_suite lanes_suite = {
	.name = "lanes",
	.cases = cases,
};
