// SPDX-License-Identifier: GPL-2.0
/*
 * Operations. They may fail: the search is for costs.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "search.h"

#define MAX_SLEEPERS	32
#define MAX_EPOLLS	64
#define MAX_PROCESSES	64
#define POSIX_TIMERS	2048
#define INSTANT_NS	500000000	/* until timers are due together */

static uint32_t words[NR_FILES];
static pid_t processes[MAX_PROCESSES];
static int timers[POSIX_TIMERS];
static bool has_timer[POSIX_TIMERS];
static unsigned int sleepers, epolls;
static uint64_t instant;
static const struct timespec zero;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Many timers are due at the same time. */
static uint64_t the_instant(void)
{
	if (instant < now())
		instant = now() + INSTANT_NS;
	return instant;
}

/* Files */

static void move_bytes(const struct op *op, unsigned int x)
{
	static char buf[4096];
	struct wslot *s = &slots[x % NR_FILES];
	uint64_t one = 1;
	size_t nr = op->n && op->n < sizeof(buf) ? op->n : sizeof(buf);
	long done;

	if (s->fd < 0 || s->kind == KIND_FILE)
		return;
	if (s->kind == KIND_EVENTFD)
		done = op->code == OP_WRITE ? write(s->fd, &one, 8) :
					      read(s->fd, &one, 8);
	else
		done = op->code == OP_WRITE ? write(s->fd, buf, nr) :
					      read(s->fd, buf, nr);
	(void)done;
}

static void change_file(const struct op *op, unsigned int x)
{
	int fd = slots[x % NR_FILES].fd;

	if (fd < 0 || slots[x % NR_FILES].kind != KIND_FILE)
		return;
	if (op->n & 1)
		fchmod(fd, 0666);
	else if (write(fd, "", 1) != 1)
		ftruncate(fd, 0);
}

static void dup_slot(unsigned int x, unsigned int y)
{
	if (slots[x % NR_FILES].fd >= 0)
		fill(y, dup(slots[x % NR_FILES].fd), slots[x % NR_FILES].kind);
}

/* Requests */

static uint64_t id_of(const struct op *op, unsigned int x)
{
	switch (op->type) {
	case KEVENT_USER:
		return 0x100 + x;
	case KEVENT_SIGNAL:
		return signal_of(x % NR_IDS) |
		       (op->n & 1 ? KEVENT_SIGNAL_NOMASK : 0);
	case KEVENT_PROC:
		return processes[x % MAX_PROCESSES];
	case KEVENT_FUTEX:
		return (uintptr_t)&words[x % NR_FILES];
	case KEVENT_TIMER:
		return op->event & KEVENT_TIMER_ABSTIME ? the_instant() :
		       op->n % 1000 * 1000 + 1000;
	case KEVENT_POSIX_TIMER:
		return timers[x % POSIX_TIMERS];
	default:
		return (uint32_t)slots[x % NR_FILES].fd;
	}
}

static void make_request(const struct op *op, unsigned int x,
			 struct ukevent *uk)
{
	*uk = (struct ukevent){
		.id.raw_u64 = id_of(op, x), .type = op->type,
		.event = op->event, .req_flags = op->flags,
		.ret_data = { op->n, 0 }, .ptr = x,
	};
	if (op->type == KEVENT_FUTEX)
		uk->ret_data[0] = 0;
	else if (op->type == KEVENT_TIMER)
		uk->ret_data[0] = 100000;
}

static const enum metric metric_of[] = { ADD, REMOVE, MODIFY, READY };

static int added_by(const struct ukevent *uk, unsigned int nr)
{
	int good = 0;

	while (nr--)
		good += !(uk[nr].ret_flags & KEVENT_RET_BROKEN);
	return good;
}

static void request(const struct op *op, struct wqueue *q, struct ukevent *uk,
		    unsigned int nr)
{
	uint64_t began = call_begins();

	kevent_ctl(q->fd, op->cmd, nr, uk);
	call_ends(metric_of[op->cmd & 3], began, nr);
	if (op->cmd == KEVENT_CTL_ADD)
		q->added += added_by(uk, nr);
}

static void request_all(const struct step *s)
{
	static struct ukevent uk[MAX_TIMES];
	struct wqueue *q = queue_of(s->op.q, s->op.cmd == KEVENT_CTL_ADD);
	unsigned int i;

	for (i = 0; i < s->times; i++)
		make_request(&s->op, s->op.x + i * s->dx, &uk[i]);
	if (q)
		request(&s->op, q, uk, s->times);
}

static void request_one(const struct op *op, unsigned int q, unsigned int x)
{
	struct wqueue *wq = queue_of(q, op->cmd == KEVENT_CTL_ADD);
	struct ukevent uk;

	make_request(op, x, &uk);
	if (wq)
		request(op, wq, &uk, 1);
}

/* Consumers */

static void collect(const struct op *op, struct wqueue *q)
{
	static struct ukevent ev[1024];
	unsigned int nr = op->n ? op->n : 1024;
	uint64_t began;
	int ret;

	if (nr > 1024)
		nr = 1024;
	began = call_begins();
	if (q->size) {
		ret = kevent_wait(q->fd, nr, (uint32_t)q->ring->ring_kidx,
				  &zero, 0, NULL);
		call_ends(WAIT, began, ret);
	} else {
		ret = kevent_get_events(q->fd, 0, nr, &zero, ev, 0);
		call_ends(GET, began, ret);
	}
}

static void commit(struct wqueue *q)
{
	uint64_t kidx = q->ring->ring_kidx, began;
	int freed = kidx - q->ring->ring_uidx;

	began = call_begins();
	kevent_commit(q->fd, (uint32_t)kidx, kidx >> 32);
	call_ends(COMMIT, began, freed);
}

static void *sleep_in(void *arg)
{
	struct wqueue *q = arg;
	struct ukevent ev;

	if (q->size)
		kevent_wait(q->fd, q->size, (uint32_t)q->ring->ring_kidx, NULL,
			    0, NULL);
	else
		kevent_get_events(q->fd, 1, 1, NULL, &ev, 0);
	return NULL;
}

static void add_sleeper(struct wqueue *q)
{
	pthread_attr_t small;
	pthread_t thread;

	if (sleepers++ >= MAX_SLEEPERS)
		return;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_create(&thread, &small, sleep_in, q);
	sched_yield();
}

static void add_epoll(struct wqueue *q)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epolls++ < MAX_EPOLLS)
		epoll_ctl(epoll_create1(EPOLL_CLOEXEC), EPOLL_CTL_ADD, q->fd,
			  &event);
}

static void do_queue(const struct op *op, unsigned int at)
{
	struct wqueue *q = queue_of(at, op->code == OP_COLLECT ||
				    op->code == STEP_SLEEP ||
				    op->code == STEP_EPOLL);

	if (op->code == OP_REOPEN) {
		queue_close(&queues[at % NR_OPENED]);
		queue_open(&queues[at % NR_OPENED], op->n);
	}
	if (!q)
		return;
	if (op->code == OP_POP && q->size)
		q->ring->ring_uidx = q->ring->ring_kidx;
	else if (op->code == OP_COMMIT && q->size)
		commit(q);
	else if (op->code == OP_COLLECT)
		collect(op, q);
	else if (op->code == STEP_SLEEP)
		add_sleeper(q);
	else if (op->code == STEP_EPOLL)
		add_epoll(q);
	else if (op->code == STEP_DROP && q->size)
		madvise(q->ring, 1 << 16, MADV_REMOVE);
	else if (op->code == STEP_CLOSE_QUEUE)
		queue_close(q);
}

/* Processes, signals, timers */

static void start_process(unsigned int x)
{
	pid_t *pid = &processes[x % MAX_PROCESSES];

	if (*pid > 0)
		return;
	*pid = fork();
	if (*pid)
		return;
	close_range(3, ~0u, 0);
	for (;;)
		pause();
}

static void end_process(unsigned int x)
{
	pid_t *pid = &processes[x % MAX_PROCESSES];

	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

static void set_timer(const struct op *op, unsigned int q, unsigned int x)
{
	struct sigevent sev = { .sigev_notify = SIGEV_KEVENT };
	struct wqueue *wq = queue_of(q, true);
	struct itimerspec when = {};
	uint64_t at = the_instant();

	x %= POSIX_TIMERS;
	sev.sigev_value.sival_int = x;
	sev._sigev_un._tid = wq->fd;
	if (!has_timer[x]) {
		has_timer[x] = !syscall(SYS_timer_create, CLOCK_MONOTONIC, &sev,
					&timers[x]);
		wq->added += has_timer[x];
	}
	if (op->n & 1)
		when.it_interval.tv_nsec = 100000;
	when.it_value.tv_sec = at / 1000000000;
	when.it_value.tv_nsec = at % 1000000000;
	syscall(SYS_timer_settime, timers[x], TIMER_ABSTIME, &when, NULL);
}

static void send_signal(const struct op *op, unsigned int x)
{
	sigqueue(getpid(), signal_of(x % NR_IDS),
		 (union sigval){ .sival_int = op->n });
}

static void wait_for_instant(void)
{
	const struct timespec at = {
		.tv_sec = (instant + 5000000) / 1000000000,
		.tv_nsec = (instant + 5000000) % 1000000000,
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void do_id(const struct op *op, unsigned int q, unsigned int x)
{
	switch (op->code) {
	case OP_KILL:
		send_signal(op, x);
		break;
	case OP_SPAWN:
		start_process(x);
		break;
	case OP_END:
		end_process(x);
		break;
	case OP_SET:
		words[x % NR_FILES] = op->n & 3;
		break;
	case OP_WAKE:
		syscall(SYS_futex, &words[x % NR_FILES], FUTEX_WAKE_PRIVATE,
			INT_MAX, NULL, NULL, 0);
		break;
	case OP_SETTIME:
		set_timer(op, q, x);
		break;
	case OP_NAP:
		nanosleep(&(struct timespec){ .tv_nsec = op->n % 2000 * 1000 },
			  NULL);
		break;
	case OP_SETTLE:
		wait_for_instant();
		break;
	}
}

static void do_file(const struct op *op, unsigned int x)
{
	switch (op->code) {
	case OP_OPEN:
		open_slot(x, op->n);
		break;
	case OP_CLOSE:
		close_slot(x);
		break;
	case OP_WRITE:
	case OP_READ:
		move_bytes(op, x);
		break;
	case OP_SHUTDOWN:
		shutdown(slots[x % NR_FILES].fd, SHUT_WR);
		break;
	case OP_CHANGE:
		change_file(op, x);
		break;
	case OP_DUP:
		dup_slot(op->x, op->y + x - op->x);
		break;
	case STEP_NEST:
		fill(x, dup(queue_of(op->n, true)->fd), KIND_NONE);
		break;
	case STEP_FIFO:
		open_fifo(x, op->n);
		break;
	case STEP_SAME:
		open_same(x, op->n);
		break;
	}
}

static bool is_pair(const struct op *op)
{
	return op->code == OP_OPEN && op->n != KIND_EVENTFD &&
	       op->n != KIND_FILE;
}

static void repeat(const struct step *s)
{
	unsigned int i, q, x;

	for (i = 0; i < s->times; i++) {
		q = s->op.q + i * s->dq;
		x = s->op.x + i * s->dx * (is_pair(&s->op) ? 2 : 1);
		if (s->op.code == OP_CTL)
			request_one(&s->op, q, x);
		else
			do_file(&s->op, x);
		do_queue(&s->op, q);
		do_id(&s->op, q, x);
	}
}

/* Queues are opened before the step is measured. */
void open_queues(const struct step *s)
{
	unsigned int i;

	if (s->op.code == OP_SETTIME ||
	    (s->op.code == OP_CTL && s->op.cmd == KEVENT_CTL_ADD))
		for (i = 0; i < (s->dq ? s->times : 1); i++)
			queue_of(s->op.q + i * s->dq, true);
}

void do_step(const struct step *s)
{
	pid_t pid = 0;

	if (s->op.child) {
		pid = fork();
		if (pid) {
			waitpid(pid, NULL, 0);
			return;
		}
	}
	if (s->op.code == OP_CTL && s->batch)
		request_all(s);
	else
		repeat(s);
	if (s->op.child)
		_exit(0);
}
