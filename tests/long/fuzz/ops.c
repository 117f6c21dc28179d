// SPDX-License-Identifier: GPL-2.0
/*
 * One operation: made, compared with what the model says it returns, and followed by
 * a look at all files, rings and queues
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fuzz.h"

/* The value of @fn comes over a page, because an exit status is too small. */
int in_child(int (*fn)(void *arg), void *arg)
{
	static int *value;
	int status;
	pid_t pid;

	if (!value)
		value = mmap(NULL, sizeof(*value), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid) {
		*value = fn(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		fail("a child failed");
	return *value;
}

/* Files */

static void do_open(const struct op *op)
{
	world_open(op->x, op->n, op->q);
}

static void forget_slot(int x)
{
	unsigned int i, n;
	struct watch *w;

	for (i = 0; i < NR_QUEUES; i++)
		for (n = 0; n < W.q[i].nr; n++) {
			w = &W.q[i].w[n];
			if (w->used && w->end >= 0 && w->key == (uint32_t)x)
				drop_watch(w);
		}
}

static int alive_peer(int x)
{
	int peer = W.end[W.slot[x].end].peer;

	return peer >= 0 && W.end[peer].slots ? peer : -1;
}

static uint32_t rising(int end)
{
	return W.end[end].now & ~W.end[end].before;
}

/* The last descriptor of an open file wakes the other end. */
void do_close(const struct op *op)
{
	int peer = -1;

	if (W.slot[op->x].end < 0)
		return;
	if (W.end[W.slot[op->x].end].slots == 1 &&
	    !W.end[W.slot[op->x].end].held)
		peer = alive_peer(op->x);
	forget_slot(op->x);
	emit("CHECK_EQ(close(fd[%d]), 0);", op->x);
	if (close(W.slot[op->x].fd))
		fail("close() fails");
	put_end(op->x);
	if (peer >= 0)
		W.end[peer].ending = true;
	tcp_arrive(peer, END_BITS | KEVENT_POLL_POLLRDHUP, -1);
	look_at_files();
	if (peer >= 0)
		file_activity(peer, rising(peer), W.end[peer].now, true);
}

static void do_again(const struct op *op)
{
	const struct end *e;
	unsigned int name;

	if (W.slot[op->x].end < 0)
		return;
	e = &W.end[W.slot[op->x].end];
	name = e->name;
	if (e->slots > 1 || e->held || !name)
		return;
	do_close(op);
	world_open_again(op->x, name);
}

static void do_dup(const struct op *op)
{
	struct slot *from = &W.slot[op->x], *to = &W.slot[op->y];

	if (from->end < 0 || op->x == op->y || W.fallback)
		return;
	if (to->end == from->end) {
		emit("CHECK_EQ(dup3(fd[%d], fd[%d], O_CLOEXEC), fd[%d]);",
		     op->x, op->y, op->y);
		if (dup3(from->fd, to->fd, 0) != to->fd)
			fail("dup3() fails");
		return;
	}
	if (to->end >= 0)
		do_close(&(struct op){ .x = op->y });
	emit("fd[%d] = dup(fd[%d]);", op->y, op->x);
	to->fd = dup(from->fd);
	if (to->fd < 0)
		fail("dup() fails");
	to->end = from->end;
	W.end[to->end].slots++;
}

struct transfer {
	int		fd;
	bool		eventfd;
	bool		write;
	uint32_t	nr;
};

static long move_bytes(int fd, bool out, uint32_t nr)
{
	static char buf[1 << 16];

	return out ? write(fd, buf, nr) : read(fd, buf, nr);
}

/* Returns how much was written or read, at least. */
static int transfer(void *arg)
{
	const struct transfer *t = arg;
	uint64_t one = 1;
	bool moved = false;
	long nr;

	if (t->eventfd)
		return t->write ? write(t->fd, &one, 8) == 8 :
				  read(t->fd, &one, 8) == 8;
	if (t->nr) {
		nr = move_bytes(t->fd, t->write, t->nr);
		return nr < 0 ? 0 : nr;
	}
	while (move_bytes(t->fd, t->write, 1 << 16) > 0)
		moved = true;
	while (t->write && move_bytes(t->fd, true, 1) > 0)
		moved = true;
	return moved;
}

/* What a transfer of @end says to the watches of both ends */
static void transferred(const struct transfer *t, int end, bool moved)
{
	int to = W.end[end].kind == KIND_EVENTFD ? end : W.end[end].peer;
	uint32_t bits = t->write ? DATA_BITS : ROOM_BITS;

	if (to >= 0 && W.end[to].slots)
		file_activity(to, rising(to) | (moved && t->write ? bits : 0),
			      bits, false);
	if (to != end && rising(end))
		file_activity(end, rising(end), rising(end), true);
}

/* The second of several activities may be reported after an entry of the first. */
static void transferred_again(const struct transfer *t, int end)
{
	unsigned int i;

	for (i = 0; i < NR_QUEUES; i++)
		see_entries(&W.q[i]);
	W.end[end].before = W.end[end].now;
	if (W.end[end].peer >= 0)
		W.end[W.end[end].peer].before = W.end[W.end[end].peer].now;
	transferred(t, end, false);
}

static bool may_transfer(const struct op *op, const struct end *e)
{
	if (e->kind == KIND_EVENTFD || e->kind == KIND_SOCKET)
		return true;
	return e->kind == (op->code == OP_WRITE ? KIND_PIPE_WRITE :
						  KIND_PIPE_READ);
}

/* A TCP socket that was closed answers a write with a reset. */
static void wait_for_transfer(const struct transfer *t, int end, int moved,
			      long unread)
{
	int peer = W.end[end].peer;

	if (!W.end[end].tcp || !t->write || !moved)
		return;
	if (peer < 0)
		tcp_arrive(end, END_BITS, -1);
	else
		tcp_arrive(peer, END_BITS, unread + moved);
}

static void do_transfer(const struct op *op)
{
	struct slot *s = &W.slot[op->x];
	struct transfer t = {
		.fd = s->fd, .write = op->code == OP_WRITE, .nr = op->n,
	};
	long unread;
	int moved;

	if (s->end < 0 || !may_transfer(op, &W.end[s->end]))
		return;
	if (W.end[s->end].tcp && t.write && !t.nr)
		t.nr = 100;
	unread = tcp_unread(W.end[s->end].peer);
	t.eventfd = W.end[s->end].kind == KIND_EVENTFD;
	emit("%s(%s, fd[%d], %u);", t.write ? "put" : "take",
	     op->child ? "true" : "false", op->x, t.eventfd ? 8 : t.nr);
	moved = op->child ? in_child(transfer, &t) : transfer(&t);
	wait_for_transfer(&t, s->end, moved, unread);
	look_at_files();
	transferred(&t, s->end, moved);
	/* A read of several messages of AF_UNIX frees the room of each. */
	if (!t.nr || (!t.write && moved > 1))
		transferred_again(&t, s->end);
}

static void do_shutdown(const struct op *op)
{
	int end = W.slot[op->x].end, peer;

	if (end < 0 || W.end[end].kind != KIND_SOCKET)
		return;
	if (shutdown(W.slot[op->x].fd, SHUT_WR))
		return;
	emit("CHECK_EQ(shutdown(fd[%d], SHUT_WR), 0);", op->x);
	peer = alive_peer(op->x);
	W.end[end].ending = true;
	if (peer >= 0)
		W.end[peer].ending = true;
	tcp_arrive(peer, END_BITS | KEVENT_POLL_POLLRDHUP, -1);
	look_at_files();
	if (peer >= 0)
		file_activity(peer, rising(peer), W.end[peer].now, true);
	file_activity(end, rising(end), W.end[end].now, true);
}

static uint32_t rename_file(struct end *e)
{
	unsigned int name = ++W.names;

	if (!e->name)
		return 0;
	emit("CHECK_EQ(rename(\"/tmp/fuzzed-%u\", \"/tmp/fuzzed-%u\"), 0);",
	     e->name, name);
	if (rename(file_name(e->name), file_name(name)))
		fail("rename() fails");
	e->name = name;
	return KEVENT_INODE_RENAME;
}

static uint32_t unlink_file(struct end *e)
{
	if (!e->name)
		return 0;
	emit("CHECK_EQ(unlink(\"/tmp/fuzzed-%u\"), 0);", e->name);
	if (unlink(file_name(e->name)))
		fail("unlink() fails");
	e->name = 0;
	return KEVENT_INODE_ATTRIB | KEVENT_INODE_REMOVE;
}

static uint32_t change_file(int x, struct end *e, unsigned int how)
{
	switch (how) {
	case 0:
		return rename_file(e);
	case 1:
		return unlink_file(e);
	case 2:
		emit("CHECK_EQ(fchmod(fd[%d], 0600), 0);", x);
		if (fchmod(W.slot[x].fd, 0600))
			fail("fchmod() fails");
		return KEVENT_INODE_ATTRIB;
	default:
		emit("put(false, fd[%d], 1);", x);
		if (write(W.slot[x].fd, "", 1) != 1)
			fail("write() to a file fails");
		return KEVENT_INODE_MODIFY;
	}
}

static void do_change(const struct op *op)
{
	int end = W.slot[op->x].end;

	if (end >= 0 && W.end[end].kind == KIND_FILE)
		source_changed(end, change_file(op->x, &W.end[end], op->n));
}

/* Many files at once */

static void do_many_add(const struct op *op)
{
	struct ukevent uk;
	int i;

	if (W.q[op->q].fd < 0 || !many_open())
		return;
	look_at_many();
	emit("many_add(many, q[%d].fd, %u);", op->q, op->flags);
	for (i = 0; i < NR_MANY; i++) {
		struct watch *w = new_watch(&W.q[op->q]);

		kevent_set_poll(&uk, W.many[i], DATA_BITS & 1, op->flags,
				++W.users);
		if (kevent_ctl_one(W.q[op->q].fd, KEVENT_CTL_ADD, &uk))
			fail("ADD of one of many fails");
		w->type = KEVENT_POLL;
		w->key = NR_SLOTS + i;
		w->end = NR_ENDS + i;
		w->id = W.many[i];
		w->event = uk.event;
		w->flags = uk.req_flags;
		w->user = uk.ptr;
		w->armed = true;
	}
}

static void do_many(const struct op *op)
{
	char buf[4096];
	uint64_t one = 1;
	long some = 0;
	int i;

	if (!W.has_many)
		return;
	for (i = 0; i < NR_MANY; i++) {
		if (op->code == OP_MANY_WRITE)
			some += write(W.many_in[i], &one, 8);
		else if (i < (int)op->n)
			some += read(W.many[i], buf, sizeof(buf));
	}
	if (op->code == OP_MANY_WRITE)
		emit("many_write(many);");
	else
		emit("many_read(many, %u);", op->n);
	if (some < 0)
		some = 0;
	look_at_many();
	for (i = NR_ENDS; i < NR_ENDS + NR_MANY; i++)
		file_activity(i, op->code == OP_MANY_WRITE ? DATA_BITS & 1 :
			      rising(i), 0, false);
}

/* Requests */

static uint64_t id_of(const struct op *op)
{
	switch (op->type) {
	case KEVENT_USER:
		return 0x100 + op->x;
	case KEVENT_SIGNAL:
		return signal_of(op->x) |
		       (op->n & 1 ? KEVENT_SIGNAL_NOMASK : 0);
	case KEVENT_PROC:
		return W.process[op->x].pid;
	case KEVENT_FUTEX:
		return (uintptr_t)futex_word(op->x);
	case KEVENT_TIMER:
		return timer_first(op);
	case KEVENT_POSIX_TIMER:
		return (uint32_t)W.timer[op->x].id;
	default:
		return (uint32_t)W.slot[op->x].fd;
	}
}

static void make_request(const struct op *op, struct ukevent *uk)
{
	*uk = (struct ukevent){
		.id.raw_u64 = id_of(op),
		.type = op->type,
		.event = op->event,
		.req_flags = op->flags,
		.ret_data = { op->n, ~op->n },
		.ptr = ++W.users,
	};
	if (op->type == KEVENT_FUTEX) {
		uk->ret_data[0] = op->n & 3;
		uk->ret_data[1] = 0;
	} else if (op->type == KEVENT_TIMER) {
		uk->ret_data[0] = timer_interval(op);
		uk->ret_data[1] = 0;
		uk->ptr = TIMER_USER + op->x;
	}
}

struct request {
	int		fd;
	uint32_t	cmd;
	struct ukevent	uk;
};

static int request(void *arg)
{
	struct request *r = arg;

	return kevent_ctl_one(r->fd, r->cmd, &r->uk);
}

static const char *const cmd_names[] = {
	"KEVENT_CTL_ADD", "KEVENT_CTL_REMOVE", "KEVENT_CTL_MODIFY",
	"KEVENT_CTL_READY",
};

static void emit_request(const struct op *op, const struct ukevent *uk,
			 int want)
{
	char id[60];

	if (op->type == KEVENT_PROC)
		snprintf(id, sizeof(id), "process[%d].pid", op->x);
	else if (op->type == KEVENT_FUTEX)
		snprintf(id, sizeof(id), "(uintptr_t)&word[%d]", op->x);
	else if (op->type == KEVENT_POSIX_TIMER)
		snprintf(id, sizeof(id), "timer[%d]", op->x);
	else if (op->type > KEVENT_PIPE || op->type == KEVENT_TIMER)
		snprintf(id, sizeof(id), "%#llxull",
			 (unsigned long long)uk->id.raw_u64);
	else
		snprintf(id, sizeof(id), "fd[%d]", op->x);
	emit("CHECK_EQ(ctl(%s, q[%d].fd, %s, %u, %s, %#x, %#x, %u, %u, %llu), %d);",
	     op->child ? "true" : "false", op->q, cmd_names[op->cmd],
	     op->type, id, op->event, op->flags, uk->ret_data[0],
	     uk->ret_data[1],
	     (unsigned long long)uk->ptr, want);
}

/* ADD hands back what holds when it looks, which a timer may change. */
static bool is_unknown(const struct op *op)
{
	return op->cmd == KEVENT_CTL_ADD && op->flags & KEVENT_REQ_HAND_BACK &&
	       is_file(op->type) && W.slot[op->x].end >= 0 &&
	       nest_soon(&W.end[W.slot[op->x].end]);
}

static void do_ctl(const struct op *op)
{
	struct request r = { .fd = W.q[op->q].fd, .cmd = op->cmd };
	struct ukevent asked;
	bool handed;
	int ret, want;

	if (r.fd < 0 || (op->type == KEVENT_PROC && !W.process[op->x].pid) ||
	    (op->type == KEVENT_POSIX_TIMER && !W.timer[op->x].made) ||
	    (op->type == KEVENT_USER && model_is_full(op->type, op->x)) ||
	    is_unknown(op))
		return;
	W.begin_ns = now_ns();
	make_request(op, &r.uk);
	asked = r.uk;
	ret = op->child ? in_child(request, &r) : request(&r);
	want = model_ctl(op, &asked, &handed);
	emit_request(op, &asked, want);
	if (ret != want)
		fail("%s of type %u, key %u returns %d instead of %d",
		     cmd_names[op->cmd], op->type, op->x, ret, want);
	W.handed = handed;
	W.call = true;
	if (handed && !op->child)
		model_made(&W.q[op->q], &r.uk, 0);
	W.call = false;
}

static void do_wake_all(const struct op *op)
{
	int fd = W.q[op->q].fd, ret;

	if (fd < 0)
		return;
	emit("CHECK_EQ(kevent_wake_all(q[%d].fd), 0);", op->q);
	ret = kevent_wake_all(fd);
	if (ret)
		fail("kevent_wake_all() of queue %d returns %d", op->q, ret);
}

static bool has_number(int fd)
{
	int i;

	for (i = 0; i < NR_SLOTS; i++)
		if (W.slot[i].end >= 0 && W.slot[i].fd == fd)
			return true;
	for (i = 0; W.has_many && i < NR_MANY; i++)
		if (W.many[i] == fd)
			return true;
	return false;
}

/* A program that closes first and removes then; the number may be the library's. */
static void do_stale(const struct op *op)
{
	struct request r = {
		.fd = W.q[op->q].fd,
		.cmd = op->cmd == KEVENT_CTL_ADD ? KEVENT_CTL_REMOVE : op->cmd,
		.uk = {
			.id.raw = { (uint32_t)W.slot[op->x].was },
			.type = op->type,
			.event = op->event,
			.req_flags = op->flags,
		},
	};
	int ret;

	if (r.fd < 0 || W.slot[op->x].end >= 0 || W.slot[op->x].was < 0 ||
	    has_number(W.slot[op->x].was))
		return;
	emit("CHECK(ctl(false, q[%d].fd, %s, %u, fd[%d], %#x, %#x, 0, 0, 0) < 0);",
	     op->q, cmd_names[r.cmd], op->type, op->x, op->event, op->flags);
	ret = request(&r);
	if (ret >= 0)
		fail("%s of type %u of a closed descriptor returns %d",
		     cmd_names[r.cmd], op->type, ret);
}

/* Queues */

static void open_queue(int i, uint32_t size)
{
	struct fqueue *q = &W.q[i];
	size_t bytes = KEVENT_RING_BYTES(size);

	q->size = size;
	q->kidx = q->uidx = 0;
	if (size && !q->ring)
		q->ring = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1,
			       0);
	if (size)
		memset(q->ring, 0, bytes);
	emit("open_queue(&q[%d], %u);", i, size);
	q->fd = kevent_init(size ? q->ring : NULL, size, 0);
	if (q->fd < 0)
		fail("kevent_init() fails");
}

static void close_queue(struct fqueue *q)
{
	nest_close(q - W.q);
	emit("close_queue(&q[%d]);", (int)(q - W.q));
	close(q->fd);
	model_queue_gone(q);
	q->fd = -1;
}

static void do_reopen(const struct op *op)
{
	if (W.q[op->q].fd >= 0)
		close_queue(&W.q[op->q]);
	open_queue(op->q, op->n);
}

static bool is_queue(int x)
{
	return W.slot[x].end >= 0 && W.end[W.slot[x].end].kind == KIND_QUEUE;
}

/* It has files open, but no queue. */
static void hold_files(int ready)
{
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < NR_QUEUES; i++)
		close(W.q[i].fd);
	for (i = 0; i < NR_SLOTS; i++)
		if (is_queue(i))
			close(W.slot[i].fd);
	if (write(ready, "", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static unsigned int queue_slots(void)
{
	unsigned int i, bits = 0;

	for (i = 0; i < NR_SLOTS; i++)
		if (is_queue(i))
			bits |= 1u << i;
	return bits;
}

static void do_hold(const struct op *op)
{
	int ready[2], i;
	char c;

	(void)op;
	if (W.holder || W.fallback)
		return;
	emit("hold = hold_files(q, fd, %#x);", queue_slots());
	if (pipe(ready))
		fail("no pipe");
	W.holder = fork();
	if (!W.holder)
		hold_files(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		fail("no child");
	close(ready[0]);
	close(ready[1]);
	for (i = 0; i < NR_ENDS; i++)
		W.end[i].held = W.end[i].slots > 0 &&
				W.end[i].kind != KIND_QUEUE;
}

/* Returns the other end of a file that only the child had open, or -1. */
static int released(int end)
{
	struct end *e = &W.end[end];
	int peer = e->peer;

	e->held = false;
	if (e->slots)
		return -1;
	if (peer >= 0 && W.end[peer].peer == end)
		W.end[peer].peer = -1;
	e->kind = KIND_NONE;
	return peer;
}

static void do_release(const struct op *op)
{
	bool alone[NR_ENDS] = {};
	int i, peer;

	(void)op;
	if (!W.holder)
		return;
	emit("kill(hold, SIGKILL);");
	emit("waitpid(hold, NULL, 0);");
	kill(W.holder, SIGKILL);
	waitpid(W.holder, NULL, 0);
	W.holder = 0;
	for (i = 0; i < NR_ENDS; i++) {
		peer = W.end[i].held ? released(i) : -1;
		if (peer < 0)
			continue;
		alone[peer] = true;
		W.end[peer].ending = true;
		tcp_arrive(peer, END_BITS | KEVENT_POLL_POLLRDHUP, -1);
	}
	look_at_files();
	for (i = 0; i < NR_ENDS; i++)
		if (W.end[i].slots && W.end[i].kind != KIND_QUEUE &&
		    (alone[i] || rising(i)))
			file_activity(i, rising(i), W.end[i].now, true);
}

void open_world(bool fallback)
{
	static struct watch watches[NR_QUEUES][NR_WATCHES];
	int i;

	world_init();
	W.fallback = fallback;
	for (i = 0; i < NR_QUEUES; i++) {
		W.q[i].w = watches[i];
		open_queue(i, i ? 4u << i : 0);
	}
}

static void (*const makers[NR_OPS])(const struct op *op) = {
	[OP_OPEN] = do_open, [OP_CLOSE] = do_close, [OP_AGAIN] = do_again,
	[OP_STALE] = do_stale, [OP_DUP] = do_dup,
	[OP_WRITE] = do_transfer, [OP_READ] = do_transfer,
	[OP_SHUTDOWN] = do_shutdown, [OP_CHANGE] = do_change,
	[OP_CTL] = do_ctl, [OP_POP] = do_consume, [OP_COMMIT] = do_consume,
	[OP_COLLECT] = do_consume, [OP_WAKE_ALL] = do_wake_all, [OP_REOPEN] = do_reopen,
	[OP_HOLD] = do_hold, [OP_RELEASE] = do_release,
	[OP_MANY_ADD] = do_many_add, [OP_MANY_WRITE] = do_many,
	[OP_MANY_READ] = do_many,
};

/* Timers expire between the model's look and the operation. */
static void nap(void)
{
	uint64_t state = now_ns();
	struct timespec ts = {};

	if (next_random(&state) % 2)
		return;
	ts.tv_nsec = next_random(&state) % 1000000;
	nanosleep(&ts, NULL);
}

void do_op(const struct op *op)
{
	look_at_files();
	if (naps)
		nap();
	W.begin_ns = now_ns();
	if (op->code < NR_OPS && makers[op->code])
		makers[op->code](op);
	else
		do_id_op(op);
	look_at_files();
	W.handed = false;
	check_queues();
}
