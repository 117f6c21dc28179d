// SPDX-License-Identifier: GPL-2.0
/*
 * kevent_call() in tasks whose system calls somebody filters or watches
 *
 * The kernel makes no call of their chains, so seccomp, tracers and user dispatch miss
 * none. The library makes them one by one.
 */
#ifdef __LP64__	/* elsewhere the library makes all calls */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#endif

/* Two entries; those that a filter is about come second. */
static void make_chain(struct kevent_call *c)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		c[i] = (struct kevent_call){
			.nr = i ? SYS_getppid : SYS_getpid,
			.on_error = 1, .on_value = 1, .result = 0x5a5a,
		};
}

static long raw(struct kevent_call *c, uint32_t nr)
{
	long ret = raw_kevent(__NR_kevent_call, -1, c, nr, 0, 0l);

	return ret < 0 ? -errno : ret;
}

/* The kernel refuses the first entry; the library makes both. */
static bool is_refused(void)
{
	struct kevent_call c[2];

	make_chain(c);
	return raw(c, 2) == REFUSED && c[0].result == -EOPNOTSUPP &&
	       c[1].result == 0x5a5a;
}

static int64_t second_result(void)
{
	struct kevent_call c[2];

	make_chain(c);
	if (kevent_call(-1, c, 2, 0, 0) != 1 || c[0].result != getpid())
		return 0;
	return c[1].result;
}

/* Filters */

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(value)	BPF_STMT(BPF_RET | BPF_K, value)

/* Returns the descriptor for notifications, or 0, or -1. */
static int filter(uint32_t nr, uint32_t action, unsigned int flags)
{
	struct sock_filter f[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		RETURN(action),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(f), .filter = f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags,
			    &program);
}

static int under_a_filter_that_allows(void *arg)
{
	(void)arg;
	CHILD_MUST(filter(SYS_getppid, SECCOMP_RET_ALLOW, 0) == 0);
	CHILD_MUST(is_refused());
	CHILD_MUST(second_result() == getppid());
	return 0;
}

static int under_a_filter_that_denies(void *arg)
{
	(void)arg;
	CHILD_MUST(filter(SYS_getppid, SECCOMP_RET_ERRNO | EACCES, 0) == 0);
	CHILD_MUST(is_refused());
	CHILD_MUST(second_result() == -EACCES);
	return 0;
}

static int under_a_filter_without_chains(void *arg)
{
	struct kevent_call c[2];
	const int err = *(int *)arg;

	CHILD_MUST(filter(__NR_kevent_call, SECCOMP_RET_ERRNO | (unsigned int)err,
			  0) == 0);
	make_chain(c);
	CHILD_MUST(raw(c, 2) == -err);
	CHILD_MUST(second_result() == getppid());
	return 0;
}

static void filters_see_each_call(void)
{
	int err[] = { ENOSYS, EPERM };
	unsigned int i;

	CHECK_EQ(join_child(start_child(under_a_filter_that_allows, NULL),
			    PATIENCE_MS), 0);
	CHECK_EQ(join_child(start_child(under_a_filter_that_denies, NULL),
			    PATIENCE_MS), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(join_child(start_child(under_a_filter_without_chains,
						&err[i]), PATIENCE_MS), 0);
}

static int signal_of(pid_t pid)
{
	int status;

	MUST_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int under_a_filter_that_kills(void *arg)
{
	(void)arg;
	CHILD_MUST(filter(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0) == 0);
	CHILD_MUST(is_refused());
	kill(getpid(), second_result() ? SIGUSR1 : SIGUSR2);
	return 0;
}

static int in_strict_mode(void *arg)
{
	struct kevent_call c[2];

	(void)arg;
	make_chain(c);
	CHILD_MUST(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	raw(c, 2);
	return 0;
}

static void filters_kill_for_a_call(void)
{
	CHECK_EQ(signal_of(start_child(under_a_filter_that_kills, NULL)), SIGSYS);
	CHECK_EQ(signal_of(start_child(in_strict_mode, NULL)), SIGKILL);
}

/* A thread answers what the filter asks about; the answer becomes the result. */
static long answer_filter(void *arg)
{
	struct seccomp_notif_resp resp = { .val = 4711 };
	struct seccomp_notif ask = { 0 };
	int fd = *(int *)arg;

	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &ask))
		return -errno;
	resp.id = ask.id;
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp))
		return -errno;
	return ask.data.nr;
}

static int under_a_filter_that_asks(void *arg)
{
	struct actor a;
	int fd;

	(void)arg;
	fd = filter(SYS_getppid, SECCOMP_RET_USER_NOTIF,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER);
	CHILD_MUST(fd > 0);
	start_actor(&a, answer_filter, &fd);
	CHILD_MUST(is_refused());
	CHILD_MUST(second_result() == 4711);
	join_actor(&a, PATIENCE_MS);
	CHILD_MUST(a.ret == SYS_getppid);
	return 0;
}

static void filters_may_ask_about_a_call(void)
{
	CHECK_EQ(join_child(start_child(under_a_filter_that_asks, NULL),
			    PATIENCE_MS), 0);
}

/* Filters come while a chain sleeps, from another thread. */

struct sleeper {
	struct kevent_call	c[2];
	int			pipe[2];
};

static long sleep_in_a_chain(void *arg)
{
	struct sleeper *s = arg;

	return raw(s->c, 2);
}

/* A chain that sleeps in its first call until there is a byte in its pipe */
static int open_sleeper(struct sleeper *s)
{
	static char byte;

	make_chain(s->c);
	if (pipe(s->pipe))
		return -1;
	s->c[0].nr = SYS_read;
	s->c[0].args[0] = (uint64_t)s->pipe[0];
	s->c[0].args[1] = (uintptr_t)&byte;
	s->c[0].args[2] = 1;
	return 0;
}

static int filter_for_all_threads(void *arg)
{
	struct sleeper s;
	struct actor a;

	(void)arg;
	CHILD_MUST(!open_sleeper(&s));
	start_actor(&a, sleep_in_a_chain, &s);
	CHILD_MUST(sleeps_in(a.tid, __NR_kevent_call));
	CHILD_MUST(filter(SYS_getppid, SECCOMP_RET_KILL_PROCESS,
			  SECCOMP_FILTER_FLAG_TSYNC) == 0);
	CHILD_MUST(write(s.pipe[1], "", 1) == 1);
	join_actor(&a, PATIENCE_MS);
	CHILD_MUST(a.ret == (1 | REFUSED));
	CHILD_MUST(s.c[0].result == 1 && s.c[1].result == -EOPNOTSUPP);
	return 0;
}

static void filter_counts_from_the_next_entry_on(void)
{
	CHECK_EQ(join_child(start_child(filter_for_all_threads, NULL),
			    PATIENCE_MS), 0);
}

static long serve(void *arg)
{
	return raw_kevent(__NR_kevent_wait, *(int *)arg, 1, 0, NULL,
			  KEVENT_FLAGS_SERVE, NULL);
}

/* All threads get a filter behind ADD of a chain, or the one that adds it alone, before that. */
static int filter_while_a_server_sleeps(void *arg)
{
	int kq = (int)raw_kevent(__NR_kevent_init, NULL, 0, 0);
	const bool all = *(bool *)arg;
	struct sleeper s;
	struct ukevent ev = {
		.id.raw_u64 = KEVENT_ARG(s.c), .type = KEVENT_AIO,
		.event = KEVENT_AIO_DONE, .ret_data = { 2 },
	};
	struct actor a;

	CHILD_MUST(!open_sleeper(&s));
	start_actor(&a, serve, &kq);
	CHILD_MUST(sleeps_in(a.tid, __NR_kevent_wait));
	if (all)
		CHILD_MUST(kevent_ctl(kq, KEVENT_CTL_ADD, 1, &ev) == 0);
	CHILD_MUST(filter(SYS_getppid, SECCOMP_RET_KILL_PROCESS,
			  all ? SECCOMP_FILTER_FLAG_TSYNC : 0) == 0);
	if (!all)
		CHILD_MUST(kevent_ctl(kq, KEVENT_CTL_ADD, 1, &ev) == 0);
	CHILD_MUST(write(s.pipe[1], "", 1) == 1);
	CHILD_MUST(get_events(kq, 1, 1, PATIENCE_MS * slowness, &ev) == 1);
	CHILD_MUST(ev.id.raw_u64 & REFUSED);
	CHILD_MUST((int)ev.ret_data[0] == -EOPNOTSUPP);
	CHILD_MUST(s.c[1].result == (ev.id.raw_u64 & 1 ? -EOPNOTSUPP : 0x5a5a));
	return 0;
}

static void filter_in_a_child(bool all)
{
	CHECK_EQ(join_child(start_child(filter_while_a_server_sleeps, &all), PATIENCE_MS), 0);
}

/* A thread that serves gets a filter: the next call is refused. */
static void filter_counts_in_serving_threads(void)
{
	filter_in_a_child(true);
}

/* No other thread makes the calls of one that has a filter. */
static void filter_counts_for_what_its_thread_adds(void)
{
	filter_in_a_child(false);
}

/* Tracers */

static int traced(void *arg)
{
	(void)arg;
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	return !is_refused() || second_result() != getppid();
}

/* Counts the stops at entries and exits of getppid(); returns the exit status. */
static int trace(pid_t pid, unsigned int *stops)
{
	struct __ptrace_syscall_info info;
	int status;

	*stops = 0;
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST(WIFSTOPPED(status));
	MUST_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD |
		       PTRACE_O_EXITKILL)), 0);
	for (;;) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		MUST_EQ(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		MUST(ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info),
			    &info) > 0);
		*stops += info.op == PTRACE_SYSCALL_INFO_ENTRY &&
			  info.entry.nr == SYS_getppid;
	}
}

/* One getppid() of the chain, and one of the child to compare with */
static void tracer_sees_each_call(void)
{
	unsigned int stops;

	CHECK_EQ(trace(start_child(traced, NULL), &stops), 0);
	CHECK_EQ(stops, 2);
}

/* User dispatch */

static volatile char selector;
static volatile sig_atomic_t dispatched;

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	selector = 0;
	dispatched = info->si_syscall;
}

static int under_user_dispatch(void *arg)
{
	struct sigaction sa = { .sa_sigaction = on_sigsys,
				.sa_flags = SA_SIGINFO };
	struct kevent_call c[2];

	(void)arg;
	make_chain(c);
	CHILD_MUST(!sigaction(SIGSYS, &sa, NULL));
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector))
		return errno == EINVAL ? 77 : 1;
	CHILD_MUST(is_refused());
	CHILD_MUST(second_result() == getppid());
	selector = 1;
	raw(c, 2);
	CHILD_MUST(dispatched == __NR_kevent_call && c[0].result == 0x5a5a);
	return 0;
}

static void user_dispatch_sees_each_call(void)
{
	int ret = join_child(start_child(under_user_dispatch, NULL), PATIENCE_MS);

#ifdef __x86_64__
	CHECK_EQ(ret, 0);
#else
	CHECK(ret == 0 || ret == 77);
#endif
}

static const struct test_case cases[] = {
	TEST(filters_see_each_call),
	TEST(filters_kill_for_a_call),
	TEST(filters_may_ask_about_a_call),
	TEST(filter_counts_from_the_next_entry_on),
	TEST(filter_counts_in_serving_threads),
	TEST(filter_counts_for_what_its_thread_adds),
	TEST(tracer_sees_each_call),
	TEST(user_dispatch_sees_each_call),
	{ }
};

const struct test_suite calls_observed_suite = {
	.name = "calls_observed",
	.cases = cases,
};

#endif
