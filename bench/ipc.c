// SPDX-License-Identifier: GPL-2.0
/*
 * Messages between two processes: by a lane, or by a file that is watched
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc.h"

#define SLOTS		256
#define MQ_MESSAGES	10		/* of an ordinary user */
#define MQ_NAME		"/kevent-bench"

/* --- opening ------------------------------------------------------------- */

static void open_lane(struct ipc_side side[2])
{
	static const struct kevent_lane_options options = {
		.send_slots = SLOTS, .recv_slots = SLOTS,
	};
	int sock[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		bench_die("socketpair: %s", strerror(errno));
	ret = kevent_lane_create(&side[0].lane, &options);
	if (!ret)
		ret = kevent_lane_pass(&side[0].lane, sock[0]);
	if (!ret)
		side[1].rd = sock[1];
	else
		bench_die("cannot make a lane: %s", strerror(-ret));
}

static void open_unix(struct ipc_side side[2])
{
	int sock[2], i;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		bench_die("socketpair: %s", strerror(errno));
	for (i = 0; i < 2; i++)
		side[i].rd = side[i].wr = sock[i];
}

static void open_pipes(struct ipc_side side[2])
{
	int fd[2], i;

	for (i = 0; i < 2; i++) {
		if (pipe2(fd, O_CLOEXEC))
			bench_die("pipe2: %s", strerror(errno));
		side[i].rd = fd[0];
		side[!i].wr = fd[1];
	}
}

static void open_mqueues(struct ipc_side side[2])
{
	struct mq_attr attr = { .mq_maxmsg = MQ_MESSAGES,
				.mq_msgsize = IPC_BYTES };
	int i;

	for (i = 0; i < 2; i++) {
		side[i].rd = mq_open(MQ_NAME, O_RDWR | O_CREAT | O_EXCL, 0600,
				     &attr);
		if (side[i].rd < 0)
			bench_die("mq_open: %s", strerror(errno));
		mq_unlink(MQ_NAME);
		side[!i].wr = side[i].rd;
		side[i].packets = true;
	}
}

void ipc_open(const char *source, const struct bench_contestant *c,
	      struct ipc_side side[2])
{
	memset(side, 0, 2 * sizeof(*side));
	side[0].c = c;
	side[1].c = c;
	side[0].is_lane = !strcmp(c->backend->name, "kevent");
	side[1].is_lane = side[0].is_lane;
	if (side[0].is_lane)
		open_lane(side);
	else if (!strcmp(source, "unix"))
		open_unix(side);
	else if (!strcmp(source, "pipe"))
		open_pipes(side);
	else if (!strcmp(source, "mqueue"))
		open_mqueues(side);
	else
		bench_die("no such source: %s", source);
}

/* The other end of a lane attaches here: it may be in another process. */
static void watch_lane(struct ipc_side *s)
{
	int ret = 0;

	if (s->rd)
		ret = kevent_lane_attach(&s->lane, s->rd, 0, 0);
	if (!ret)
		ret = kevent_queue_init(&s->q, &s->ring.ring, IPC_RING, 0);
	if (!ret)
		ret = kevent_lane_watch(&s->lane, s->q.fd, 0);
	if (ret)
		bench_die("cannot watch a lane: %s", strerror(-ret));
}

void ipc_watch(struct ipc_side *s)
{
	struct bench_watch w = { .fd = s->rd, .events = POLLIN };

	if (s->is_lane) {
		watch_lane(s);
		return;
	}
	if (s->c->backend->blind)
		return;
	w.kind = s->packets ? BENCH_FILE :
		 s->rd == s->wr ? BENCH_SOCKET : BENCH_PIPE;
	s->queue = s->c->backend->open(s->c->mode, 1, 1);
	s->c->backend->add(s->queue, &w, 1);
}

void ipc_close(struct ipc_side *s)
{
	if (s->is_lane) {
		kevent_lane_close(&s->lane);
		kevent_queue_close(&s->q);
		return;
	}
	if (s->queue)
		s->c->backend->close(s->queue);
	close(s->rd);
	if (s->wr != s->rd)
		close(s->wr);
}

/* --- messages ------------------------------------------------------------ */

static void await_lane(struct ipc_side *s)
{
	struct ukevent ev;

	if (kevent_queue_get(&s->q, &ev, 1, NULL) != 1 ||
	    kevent_lane_event(&s->lane, &ev))
		bench_die("the other end of a lane has gone");
}

static void send_by_lane(struct ipc_side *s, const struct ipc_message *m)
{
	int ret;

	while ((ret = kevent_lane_send(&s->lane, m, sizeof(*m))) == -EAGAIN)
		await_lane(s);
	if (ret)
		bench_die("cannot send through a lane: %s", strerror(-ret));
}

/* The message, and the wait for the answer in one call of the kernel */
static void call_by_lane(struct ipc_side *s, const struct ipc_message *m)
{
	struct ukevent ev;
	int ret = kevent_lane_send_get(&s->lane, m, sizeof(*m), &s->q, &ev, 1,
				       NULL);

	if (ret < 0 || (ret && kevent_lane_event(&s->lane, &ev)))
		bench_die("cannot send through a lane");
}

void ipc_send_last(struct ipc_side *s, const struct ipc_message *m)
{
	if (s->is_lane && !s->two_calls)
		call_by_lane(s, m);
	else
		ipc_send(s, m);
}

void ipc_send(struct ipc_side *s, const struct ipc_message *m)
{
	if (s->is_lane)
		send_by_lane(s, m);
	else if (s->packets ? mq_send(s->wr, (const char *)m, sizeof(*m), 0) :
		 write(s->wr, m, sizeof(*m)) != sizeof(*m))
		bench_die("cannot send: %s", strerror(errno));
}

static void refill(struct ipc_side *s)
{
	ssize_t len;

	if (s->packets)
		len = mq_receive(s->rd, (char *)s->buffer, sizeof(*s->buffer),
				 NULL);
	else
		len = read(s->rd, s->buffer, sizeof(s->buffer));
	if (len <= 0 || len % IPC_BYTES)
		bench_die("cannot receive: %s", strerror(errno));
	s->have = (unsigned int)len / IPC_BYTES;
	s->next = 0;
}

static void take(struct ipc_side *s, struct ipc_message *m)
{
	if (!s->have)
		refill(s);
	s->have--;
	*m = s->buffer[s->next++];
}

static void receive_by_lane(struct ipc_side *s, struct ipc_message *m)
{
	unsigned int looks = s->looks;
	int ret;

	while ((ret = kevent_lane_recv(&s->lane, m, sizeof(*m))) == -EAGAIN) {
		if (looks && looks--)
			continue;
		looks = s->looks;
		if (!kevent_lane_arm(&s->lane))
			await_lane(s);
	}
	if (ret != sizeof(*m))
		bench_die("cannot receive from a lane: %s", strerror(-ret));
}

void ipc_receive(struct ipc_side *s, struct ipc_message *m)
{
	uint64_t cookie;

	if (s->is_lane) {
		receive_by_lane(s, m);
		return;
	}
	if (!s->have && s->queue &&
	    s->c->backend->wait(s->queue, &cookie, 1, -1) != 1)
		bench_die("a wait without a limit returned nothing");
	take(s, m);
}

static void pass_by_lane(struct ipc_side side[2], unsigned int nr)
{
	struct ipc_message m = {}, got;

	for (m.nr = 0; m.nr < nr; m.nr++)
		if (kevent_lane_send(&side[0].lane, &m, sizeof(m)) ||
		    kevent_lane_recv(&side[1].lane, &got, sizeof(got)) !=
		    sizeof(got) || got.nr != m.nr)
			bench_die("a message was lost");
}

void ipc_pass(struct ipc_side side[2], unsigned int nr)
{
	struct ipc_message m = {}, got;

	if (side[0].is_lane) {
		pass_by_lane(side, nr);
		return;
	}
	for (m.nr = 0; m.nr < nr; m.nr++) {
		ipc_send(&side[0], &m);
		take(&side[1], &got);
		if (got.nr != m.nr)
			bench_die("a message was lost");
	}
}
