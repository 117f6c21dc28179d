// SPDX-License-Identifier: GPL-2.0
/*
 * What a queue refuses permanently, and a seccomp filter that requires it
 *
 *	kevent_init(..., REFUSE(type))	no request of that type: EPERM
 *	... REFUSE_CHANGE, READY, ATTACH	not these commands: EPERM
 *	filter: third argument has the bits	kevent_init() without: EACCES
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "helpers.h"

#define SIZE	16

static const struct timespec zero;

/* The result of a change by kevent_wait(), which the entry has too */
static int wait_change(struct queue *q, uint32_t cmd, const struct ukevent *uk)
{
	struct kevent_change c = { .uk = *uk, .cmd = cmd };
	struct kevent_wait_arg arg = {
		.size		= sizeof(arg),
		.clockid	= CLOCK_MONOTONIC,
		.changes	= (uintptr_t)&c,
		.nr_changes	= 1,
	};
	uint32_t kidx = q->ring->ring_kidx;

	MUST(kevent_wait(q->fd, SIZE, kidx, &zero, KEVENT_FLAGS_ARG,
			 &arg) >= 0);
	CHECK_EQ(kevent_error(&c.uk), c.result < 0 ? c.result : 0);
	return c.result;
}

/* The same by kevent_ctl() */
static int ctl_change(struct queue *q, uint32_t cmd, const struct ukevent *uk)
{
	struct ukevent ev = *uk;

	return kevent_ctl_one(q->fd, cmd, &ev);
}

static void check_both(struct queue *q, uint32_t cmd, const struct ukevent *uk,
		       int want)
{
	CHECK_EQ(ctl_change(q, cmd, uk), want);
	CHECK_EQ(wait_change(q, cmd, uk), want);
}

/* A valid request of each type that has a source */
struct requests {
	struct ukevent	ev[KEVENT_FUTEX + 1];
	struct kevent_call call;
	uint32_t	word;
	int		fd[2], sock[2], file;
};

static void make_requests(struct requests *r)
{
	struct ukevent *ev = r->ev;

	memset(r, 0, sizeof(*r));
	open_pipe(r->fd);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, r->sock), 0);
	r->file = open("/", O_RDONLY);
	MUST(r->file >= 0);
	kevent_set_socket(&ev[KEVENT_SOCKET], r->sock[0], RECV, 0, 0);
	kevent_set_inode(&ev[KEVENT_INODE], r->file, KEVENT_INODE_MODIFY,
			 0, 0);
	kevent_set_timer(&ev[KEVENT_TIMER], 1000000000, 0, 0, 0, 0);
	kevent_set_poll(&ev[KEVENT_POLL], r->fd[0], KEVENT_POLL_POLLIN, 0,
			0);
	ev[KEVENT_NAIO].type = KEVENT_NAIO;
	kevent_set_aio(&ev[KEVENT_AIO], &r->call, 1, 0, 0, 0);
	kevent_set_pipe(&ev[KEVENT_PIPE], r->fd[0], RECV, 0, 0);
	kevent_set_signal(&ev[KEVENT_SIGNAL], SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, 0);
	kevent_set_posix_timer(&ev[KEVENT_POSIX_TIMER], 0, 0, 0);
	kevent_set_user(&ev[KEVENT_USER], 1, 1, 0, 0);
	kevent_set_proc(&ev[KEVENT_PROC], getpid(), 0, 0);
	kevent_set_futex(&ev[KEVENT_FUTEX], &r->word, 0, 0, 0, 0);
}

static void close_requests(struct requests *r)
{
	int all[] = { r->fd[0], r->fd[1], r->sock[0], r->sock[1], r->file };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		close(all[i]);
}

/* The result of ADD for a type that is not refused */
static int add_says(uint32_t type)
{
	switch (type) {
	case KEVENT_NAIO:
		return -ENOSYS;
	case KEVENT_POSIX_TIMER:
		return -EINVAL;		/* Only timer_create() adds these. */
	default:
		return 0;
	}
}

static void check_others_work(struct queue *q, struct requests *r,
			      uint32_t refused)
{
	uint32_t type;

	for (type = 0; type <= KEVENT_FUTEX; type++) {
		if (type == refused)
			continue;
		if (!CHECK_EQ(ctl_change(q, KEVENT_CTL_ADD, &r->ev[type]),
			      add_says(type)))
			note("type %u", type);
	}
}

static void each_type_can_be_refused(void)
{
	struct requests r;
	struct queue q;
	uint32_t type;

	for (type = 0; type <= KEVENT_FUTEX; type++) {
		make_requests(&r);
		open_refusing(&q, KEVENT_INIT_REFUSE(type));
		check_both(&q, KEVENT_CTL_ADD, &r.ev[type], -EPERM);
		check_both(&q, KEVENT_CTL_MODIFY, &r.ev[type], -EPERM);
		check_both(&q, KEVENT_CTL_REMOVE, &r.ev[type], -EPERM);
		check_both(&q, KEVENT_CTL_READY, &r.ev[type], -EPERM);
		CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
		check_others_work(&q, &r, type);
		close_queue(&q);
		close_requests(&r);
	}
}

static void types_without_a_bit_can_be_refused(void)
{
	struct requests r;
	struct ukevent ev;
	struct queue q;

	make_requests(&r);
	kevent_set_user(&ev, 1, 1, 0, 0);
	open_refusing(&q, 0);
	ev.type = KEVENT_BOUND + 1;
	check_both(&q, KEVENT_CTL_ADD, &ev, -EINVAL);
	close_queue(&q);
	/* Their numbers are those of other bits. */
	open_refusing(&q, KEVENT_INIT_REFUSE_CHANGE);
	check_both(&q, KEVENT_CTL_ADD, &ev, -EINVAL);
	close_queue(&q);
	open_refusing(&q, KEVENT_INIT_REFUSE_LATER);
	check_both(&q, KEVENT_CTL_ADD, &ev, -EPERM);
	ev.type = 16;
	check_both(&q, KEVENT_CTL_ADD, &ev, -EPERM);
	ev.type = 32;
	check_both(&q, KEVENT_CTL_ADD, &ev, -EPERM);
	ev.type = UINT32_MAX;
	check_both(&q, KEVENT_CTL_ADD, &ev, -EPERM);
	check_others_work(&q, &r, UINT32_MAX);
	close_queue(&q);
	close_requests(&r);
}

/* One refused entry does not stop the others. */
static void refusal_is_per_entry(void)
{
	struct requests r;
	struct ukevent ev[3];
	struct queue q;

	make_requests(&r);
	open_refusing(&q, KEVENT_INIT_REFUSE(KEVENT_SIGNAL) |
			  KEVENT_INIT_REFUSE(KEVENT_PROC));
	ev[0] = r.ev[KEVENT_SIGNAL];
	ev[1] = r.ev[KEVENT_USER];
	ev[2] = r.ev[KEVENT_PROC];
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_ADD, 3, ev), 2);
	CHECK_EQ(ev[0].type, KEVENT_SIGNAL);
	CHECK_EQ(kevent_error(&ev[0]), -EPERM);
	CHECK_EQ(ev[1].type, KEVENT_PROC);
	CHECK_EQ(kevent_error(&ev[1]), -EPERM);
	CHECK_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(wait_ring(&q, SIZE, 0), 1);
	close_queue(&q);
	close_requests(&r);
}

static void posix_timers_can_be_refused(void)
{
	struct queue q;

	open_refusing(&q, KEVENT_INIT_REFUSE(KEVENT_POSIX_TIMER));
	CHECK_EQ(create_posix_timer(q.fd), -EPERM);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
	open_refusing(&q, KEVENT_INIT_REFUSE(KEVENT_TIMER) |
			  KEVENT_INIT_REFUSE_CHANGE);
	CHECK_EQ(create_posix_timer(q.fd), 0);
	close_queue(&q);
}

static void commands_can_be_refused(void)
{
	struct ukevent ev;
	struct queue q;

	kevent_set_user(&ev, 1, 1, 0, 7);
	open_refusing(&q, KEVENT_INIT_REFUSE_CHANGE);
	CHECK_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	check_both(&q, KEVENT_CTL_MODIFY, &ev, -EPERM);
	check_both(&q, KEVENT_CTL_REMOVE, &ev, -EPERM);
	CHECK_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(wait_ring(&q, SIZE, 0), 1);
	close_queue(&q);

	open_refusing(&q, KEVENT_INIT_REFUSE_READY);
	CHECK_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	check_both(&q, KEVENT_CTL_READY, &ev, -EPERM);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), -EPERM);
	check_both(&q, KEVENT_CTL_MODIFY, &ev, 0);
	CHECK_EQ(wait_ring(&q, SIZE, 0), 0);
	CHECK_EQ(ctl_change(&q, KEVENT_CTL_REMOVE, &ev), 0);
	close_queue(&q);

	open_refusing(&q, KEVENT_INIT_REFUSE_ATTACH);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_ATTACH, SIZE, (void *)q.ring),
		 -EPERM);
	CHECK_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	CHECK_EQ(wait_ring(&q, SIZE, 0), 1);
	close_queue(&q);
}

/* A process that gets the descriptor is refused as well, and can see why. */
static int use_the_parents_queue(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	CHILD_MUST(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev) == -EPERM);
	CHILD_MUST(add_user(q->fd, 1, 1, 0, 7) == 0);
	return 0;
}

static void refusals_go_with_the_queue(void)
{
	char path[60], text[2048], want[40];
	struct queue q;

	open_refusing(&q, KEVENT_INIT_REFUSE(KEVENT_SIGNAL));
	CHECK_EQ(join_child(start_child(use_the_parents_queue, &q),
			    PATIENCE_MS), 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", q.fd);
	read_file(path, text, sizeof(text));
	snprintf(want, sizeof(want), "kevent-refuses:\t%08x\n",
		 KEVENT_INIT_REFUSE(KEVENT_SIGNAL));
	CHECK(strstr(text, want));
	close_queue(&q);
}

/*
 * A filter as a program installs it before it runs code that it does not trust
 */

#define DEMANDED	(KEVENT_INIT_REFUSE(KEVENT_SIGNAL) |		\
			 KEVENT_INIT_REFUSE(KEVENT_PROC) |		\
			 KEVENT_INIT_REFUSE(KEVENT_INODE) |		\
			 KEVENT_INIT_REFUSE(KEVENT_FUTEX) |		\
			 KEVENT_INIT_REFUSE_LATER)

#if defined(__x86_64__)
#define ARCH	AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define ARCH	AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define ARCH	AUDIT_ARCH_AARCH64
#endif

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(value)	BPF_STMT(BPF_RET | BPF_K, value)

static int demand_refusals(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_kevent_init, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		/* On these machines the low half comes first. */
		LOAD(args[2]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, DEMANDED),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DEMANDED, 1, 0),
		RETURN(SECCOMP_RET_ERRNO | EACCES),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len	= ARRAY_SIZE(filter),
		.filter	= filter,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int run_under_the_filter(void *arg)
{
	struct ukevent ev;
	int kq, pipe[2];

	(void)arg;
	CHILD_MUST(!demand_refusals());
	CHILD_MUST(kevent_init(NULL, 0, 0) == -EACCES);
	CHILD_MUST(kevent_init(NULL, 0, DEMANDED & ~KEVENT_INIT_REFUSE_LATER)
		   == -EACCES);
	kq = kevent_init(NULL, 0, DEMANDED | KEVENT_INIT_NOCLOEXEC);
	CHILD_MUST(kq >= 0);
	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	CHILD_MUST(kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev) == -EPERM);
	kevent_set_proc(&ev, getppid(), 0, 0);
	CHILD_MUST(kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev) == -EPERM);
	/* What the filter is meant to allow works. */
	CHILD_MUST(pipe2(pipe, O_NONBLOCK) == 0);
	CHILD_MUST(add_pipe(kq, pipe[0], RECV, 0, 7) == 0);
	CHILD_MUST(write(pipe[1], "", 1) == 1);
	CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 1 && ev.ptr == 7);
	return 0;
}

static void seccomp_filter_can_demand_refusals(void)
{
	CHECK_EQ(join_child(start_child(run_under_the_filter, NULL),
			    PATIENCE_MS), 0);
}

/* Changes by kevent_wait() need a flag, which such a filter sees. */
static int deny_changes(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_kevent_ctl, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_kevent_wait, 0, 3),
		LOAD(args[4]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, KEVENT_FLAGS_ARG, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | EACCES),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len	= ARRAY_SIZE(filter),
		.filter	= filter,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int consume_only(void *arg)
{
	struct queue *q = arg;
	struct kevent_wait_arg wait = { .size = sizeof(wait) };

	CHILD_MUST(kevent_ctl(q->fd, KEVENT_CTL_ATTACH, SIZE,
			      (void *)q->ring) == 0);
	CHILD_MUST(!deny_changes());
	CHILD_MUST(add_user(q->fd, 2, 1, 0, 0) == -EACCES);
	CHILD_MUST(kevent_wait(q->fd, SIZE, 0, &zero, KEVENT_FLAGS_ARG, &wait)
		   == -EACCES);
	CHILD_MUST(kevent_wait(q->fd, SIZE, 0, &zero, 0, NULL) == 1);
	return 0;
}

static void seccomp_filter_can_deny_all_changes(void)
{
	struct queue q = { .size = SIZE };

	q.ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q.ring != MAP_FAILED);
	q.fd = kevent_init(q.ring, SIZE, 0);
	MUST(q.fd >= 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	CHECK_EQ(join_child(start_child(consume_only, &q), PATIENCE_MS), 0);
	close(q.fd);
}

static const struct test_case cases[] = {
	TEST(each_type_can_be_refused),
	TEST(types_without_a_bit_can_be_refused),
	TEST(refusal_is_per_entry),
	TEST(posix_timers_can_be_refused),
	TEST(commands_can_be_refused),
	TEST(refusals_go_with_the_queue),
	TEST(seccomp_filter_can_demand_refusals),
	TEST(seccomp_filter_can_deny_all_changes),
	{}
};

const struct test_suite refuse_suite = { .name = "refuse", .cases = cases };
