// SPDX-License-Identifier: GPL-2.0
/*
 * Chains that run when a file is ready: a watch of the library, whose event has
 * kevent_chain_finish() run the chain
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <libkevent.h>

#include "helpers.h"
#include "suites.h"

#define PIECE	3u		/* what a chain receives at most */
#define MINE	7		/* the cookie of watches */

enum { NEXT };

/* A chain that receives, and then asks for the process */
struct scene {
	struct queue		*q;
	int			sv[2];
	struct kevent_call	calls[2];
	struct kevent_chain	chain;
	char			buffer[16];
	struct ukevent		ev;
};

static void put(int fd, unsigned int nr)
{
	MUST_EQ(write(fd, "abcdefghijklmnop", nr), nr);
}

/* Bytes that nobody has received */
static int left(int fd)
{
	int nr = -1;

	MUST_EQ(ioctl(fd, FIONREAD, &nr), 0);
	return nr;
}

static void open_scene(struct scene *s, struct queue *q)
{
	struct kevent_chain *c = &s->chain;

	s->q = q;
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			   0, s->sv), 0);
	kevent_chain_init(c, s->calls, ARRAY_SIZE(s->calls));
	kevent_chain_call(c, SYS_recvfrom, s->sv[0], s->buffer, PIECE);
	kevent_chain_jump(c, KEVENT_ON_ERROR, NEXT);
	kevent_chain_label(c, NEXT);
	kevent_chain_call(c, SYS_getppid);
	MUST_EQ(kevent_chain_end(c), 0);
}

static void close_scene(struct scene *s)
{
	close(s->sv[0]);
	close(s->sv[1]);
}

static int watch_chain(struct scene *s, uint32_t flags)
{
	return kevent_chain_watch(s->q->fd, &s->chain, s->sv[0],
				  KEVENT_POLL_POLLIN, flags, MINE);
}

static int modify_chain(struct scene *s, uint32_t flags)
{
	struct ukevent uk;

	kevent_set_poll(&uk, s->sv[0], KEVENT_POLL_POLLIN,
			flags | KEVENT_REQ_LAST_CHECK, MINE);
	return kevent_ctl_one(s->q->fd, KEVENT_CTL_MODIFY, &uk);
}

static void must_event(struct scene *s, struct ukevent *ev)
{
	MUST_EVENT(s->q, ev);
	CHECK_EQ(ev->type, KEVENT_POLL);
	CHECK_EQ(kevent_fd(ev), s->sv[0]);
	CHECK_EQ(ev->ptr, MINE);
}

/* An event, whose chain receives @nr bytes */
static void must_receive(struct scene *s, int64_t nr)
{
	struct ukevent ev;

	must_event(s, &ev);
	s->calls[1].result = -1;
	CHECK_EQ(kevent_chain_finish(&s->chain, &ev), 1);
	CHECK_EQ(s->calls[0].result, nr);
	CHECK_EQ(s->calls[1].result, getppid());
}

/* Modes */

static void level_runs_until_drained(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	put(s.sv[1], 8);
	MUST_EQ(watch_chain(&s, 0), 0);
	must_receive(&s, 3);
	must_receive(&s, 3);
	must_receive(&s, 2);
	CHECK_NO_EVENT(q);
	put(s.sv[1], 1);
	must_receive(&s, 1);
	CHECK_NO_EVENT(q);
	close_scene(&s);
}

static void edge_runs_for_each_wake_up(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, KEVENT_REQ_ET), 0);
	CHECK_NO_EVENT(q);
	put(s.sv[1], 8);
	must_receive(&s, 3);
	CHECK_NO_EVENT(q);
	put(s.sv[1], 8);
	must_receive(&s, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(left(s.sv[0]), 10);
	/* What there is more, the program asks for. */
	CHECK_EQ(kevent_chain_run(&s.chain), 1);
	CHECK_EQ(s.calls[0].result, 3);
	close_scene(&s);
}

static void oneshot_is_gone(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, KEVENT_REQ_ONESHOT), 0);
	put(s.sv[1], 8);
	must_receive(&s, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_file(q->fd, KEVENT_POLL, s.sv[0]), -ENOENT);
	close_scene(&s);
}

static void dispatch_waits_for_modify(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, KEVENT_REQ_DISPATCH), 0);
	put(s.sv[1], 8);
	must_receive(&s, 3);
	CHECK_NO_EVENT(q);
	MUST_EQ(modify_chain(&s, KEVENT_REQ_DISPATCH), 0);
	must_receive(&s, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(left(s.sv[0]), 2);
	close_scene(&s);
}

static void removed_watch_is_silent(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, 0), 0);
	CHECK_EQ(watch_chain(&s, 0), -EEXIST);
	put(s.sv[1], 1);
	CHECK_EQ(remove_file(q->fd, KEVENT_POLL, s.sv[0]), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(left(s.sv[0]), 1);
	close_scene(&s);
}

static void queue_can_refuse_them(void)
{
	static const struct {
		uint32_t	flags;
		int		ret;
	} queues[] = {
		{ KEVENT_INIT_REFUSE(KEVENT_POLL), -EPERM },
		{ KEVENT_INIT_REFUSE_LATER | KEVENT_INIT_REFUSE_CHANGE, 0 },
	};
	struct scene s;
	struct queue q = { .size = 0 };
	unsigned int i;

	open_scene(&s, &q);
	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		q.fd = kevent_init(NULL, 0, queues[i].flags);
		MUST(q.fd >= 0);
		CHECK_EQ(watch_chain(&s, 0), queues[i].ret);
		close(q.fd);
	}
	close_scene(&s);
}

/* Runs */

static int connect_unix(const struct sockaddr_un *sa, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0);
	MUST_EQ(connect(fd, (const void *)sa, len), 0);
	return fd;
}

static void accepts_and_receives(struct queue *q)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct kevent_call calls[2], *conn, *got;
	socklen_t len = sizeof(sa);
	struct kevent_chain c;
	struct ukevent ev;
	char buffer[16];
	int i, peer;

	MUST(fd >= 0);
	MUST_EQ(bind(fd, (void *)&sa, sizeof(sa.sun_family)), 0);
	MUST_EQ(listen(fd, 8), 0);
	MUST_EQ(getsockname(fd, (void *)&sa, &len), 0);
	kevent_chain_init(&c, calls, ARRAY_SIZE(calls));
	conn = kevent_chain_call(&c, SYS_accept4, fd, 0, 0, SOCK_CLOEXEC);
	got = kevent_chain_call(&c, SYS_recvfrom, 0, buffer, sizeof(buffer));
	kevent_chain_pass(&c, conn, 0);
	MUST_EQ(kevent_chain_end(&c), 0);
	MUST_EQ(kevent_chain_watch(q->fd, &c, fd, KEVENT_POLL_POLLIN, 0, MINE), 0);
	for (i = 1; i <= 3; i++) {
		CHECK_NO_EVENT(q);
		peer = connect_unix(&sa, len);
		put(peer, (unsigned int)i);
		MUST_EVENT(q, &ev);
		CHECK_EQ(kevent_chain_finish(&c, &ev), 1);
		CHECK_EQ(got->result, i);
		CHECK_EQ(close((int)conn->result), 0);
		close(peer);
	}
	close(fd);
}

/* Somebody has the input before the event, which is none then, or after it. */
static void another_is_faster(struct queue *q)
{
	struct ukevent ev;
	struct scene s;
	char c;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, KEVENT_REQ_ET), 0);
	put(s.sv[1], 1);
	MUST_EQ(read(s.sv[0], &c, 1), 1);
	CHECK_NO_EVENT(q);
	put(s.sv[1], 1);
	must_event(&s, &ev);
	MUST_EQ(read(s.sv[0], &c, 1), 1);
	s.calls[1].result = -1;
	/* Wherever an error would jump */
	CHECK_EQ(kevent_chain_finish(&s.chain, &ev), -EAGAIN);
	CHECK_EQ(s.calls[1].result, -1);
	put(s.sv[1], 2);
	must_receive(&s, 2);
	close_scene(&s);
}

static void ends_are_results(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, KEVENT_REQ_ONESHOT), 0);
	close(s.sv[1]);
	must_receive(&s, 0);
	close(s.sv[0]);
}

static void errors_jump(struct queue *q)
{
	struct ukevent ev;
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, KEVENT_REQ_ONESHOT), 0);
	put(s.sv[1], 1);
	must_event(&s, &ev);
	s.calls[0].args[0] = (uint64_t)-1;
	CHECK_EQ(kevent_chain_finish(&s.chain, &ev), 1);
	CHECK_EQ(s.calls[0].result, -EBADF);
	CHECK_EQ(s.calls[1].result, getppid());
	close_scene(&s);
}

static void calls_of_other_kinds_are_refused(struct queue *q)
{
	struct ukevent ev;
	struct scene s;

	open_scene(&s, q);
	s.calls[1].nr = SYS_exit;
	MUST_EQ(watch_chain(&s, 0), 0);
	put(s.sv[1], 1);
	must_event(&s, &ev);
	CHECK_EQ(kevent_chain_finish(&s.chain, &ev), 1 | KEVENT_CALL_REFUSED);
	CHECK_EQ(s.calls[0].result, 1);
	CHECK_EQ(s.calls[1].result, -ENOSYS);
	close_scene(&s);
}

/* Nobody says in which queue it is. */
static void bound_calls_are_made(struct queue *q)
{
	struct kevent_call calls[1], call;
	struct kevent_chain c;
	struct ukevent ev;
	struct scene s;

	open_scene(&s, q);
	call = s.calls[0];
	kevent_chain_init(&c, calls, 1);
	kevent_chain_bound(&c, kevent_bind(q->fd, 5, &call), &call);
	MUST_EQ(kevent_chain_end(&c), 0);
	MUST_EQ(kevent_chain_watch(q->fd, &c, s.sv[0], KEVENT_POLL_POLLIN, 0,
				   MINE), 0);
	put(s.sv[1], 4);
	must_event(&s, &ev);
	CHECK_EQ(kevent_chain_finish(&c, &ev), 0);
	CHECK_EQ(calls[0].result, 3);
	close_scene(&s);
}

static int under_a_filter(void *arg)
{
	struct scene *s = arg;
	struct sock_filter f[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(f), .filter = f };

	CHILD_MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHILD_MUST(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	CHILD_MUST(kevent_chain_finish(&s->chain, &s->ev) == 1);
	CHILD_MUST(s->calls[0].result == 3);
	CHILD_MUST(s->calls[1].result == getppid());
	return 0;
}

/* A child has the event and the chain from its parent, and a filter: all calls are made. */
static void filters_do_not_end_the_chain(struct queue *q)
{
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, 0), 0);
	put(s.sv[1], 3);
	must_event(&s, &s.ev);
	CHECK_EQ(join_child(start_child(under_a_filter, &s), PATIENCE_MS), 0);
	CHECK_EQ(left(s.sv[0]), 0);
	close_scene(&s);
}

static volatile sig_atomic_t handled;

static void count_signal(int sig)
{
	(void)sig;
	handled++;
}

/* Not to the parent that it may have later */
static int sends_signals(void *arg)
{
	while (!kill(*(pid_t *)arg, SIGUSR1))
		usleep(100);
	return 1;
}

/* Handlers run, and each chain ends. */
static void signals_end_no_chain(struct queue *q)
{
	struct sigaction act = { .sa_handler = count_signal, .sa_flags = SA_RESTART };
	unsigned int runs = 0;
	pid_t child, parent = getpid();
	struct scene s;

	open_scene(&s, q);
	MUST_EQ(watch_chain(&s, KEVENT_REQ_ET), 0);
	MUST_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	child = start_child(sends_signals, &parent);
	while (runs < 200 || !handled) {
		put(s.sv[1], 1);
		must_receive(&s, 1);
		runs++;
	}
	MUST_EQ(kill(child, SIGKILL), 0);
	MUST_EQ(waitpid(child, NULL, 0), child);
	close_scene(&s);
}

static const struct test_case cases[] = {
	TEST_EACH(level_runs_until_drained),
	TEST_EACH(edge_runs_for_each_wake_up),
	TEST_EACH(oneshot_is_gone),
	TEST_EACH(dispatch_waits_for_modify),
	TEST_EACH(removed_watch_is_silent),
	TEST(queue_can_refuse_them),
	TEST_EACH(accepts_and_receives),
	TEST_EACH(another_is_faster),
	TEST_EACH(ends_are_results),
	TEST_EACH(errors_jump),
	TEST_EACH(calls_of_other_kinds_are_refused),
	TEST_EACH(bound_calls_are_made),
	TEST_EACH(filters_do_not_end_the_chain),
	TEST_EACH(signals_end_no_chain),
	{ }
};

const struct test_suite chain_watch_suite = {
	.name = "chain_watch",
	.cases = cases,
};
