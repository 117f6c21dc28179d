// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The library in sandboxes: filters of system calls
 *
 * A container's filter refuses what it does not know, and its error is anything. A call that
 * the library chose itself, and that has an older one, must not be missed. Each test makes
 * all operations on a queue of epoll, under one filter; the argument is the manual page with
 * the list of calls that a filter has to allow.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fallback/fallback.h"
#include "libkevent.h"
#include "../processes.h"

/* Calls that the headers of the machine may not know */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2	441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv		449
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open		434
#endif
#ifndef SYS_statx
#define SYS_statx		332
#endif

#define SIZE	8U

static const struct timespec no_time, soon = { .tv_nsec = 1000000 },
			     a_while = { .tv_sec = 10 };
static const char *man_page;

static struct kevent_queue q;
static KEVENT_RING_STORAGE(SIZE) mem;

/* A type that there is not under the filter; 0: none, as SOCKET never is */
static int lacking;

static bool has(int type)
{
	return kevent_types(q.fd) & KEVENT_TYPE((__u32)type);
}

static int add(const struct ukevent *ev)
{
	struct ukevent uk = *ev;

	return kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &uk);
}

/* The next event is that of the watch with @user; what it says is in @ev. */
static void expect(struct ukevent *ev, __u64 user)
{
	memset(ev, 0, sizeof(*ev));
	CHECK_EQ(kevent_queue_get(&q, ev, 1, &a_while), 1);
	CHECK_EQ(ev->ptr, user);
	CHECK_EQ(kevent_error(ev), 0);
}

/* --- operations ------------------------------------------------------------- */

/* Each kind of time ends a wait that finds nothing. */
static void wait_for_nothing(void)
{
	struct kevent_wait_arg arg;
	struct timespec at;
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &soon), 0);
	CHECK_EQ(kevent_queue_wait(&q, &soon), 0);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &soon, &ev, 0), 0);
	clock_gettime(CLOCK_REALTIME, &at);
	kevent_wait_arg_init(&arg);
	arg.clockid = CLOCK_REALTIME;
	CHECK_EQ(kevent_wait(q.fd, SIZE, (__u32)q.ring->ring_kidx, &at,
			     KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_ARG, &arg), 0);
}

#define SLEEPERS	3

static void *sleep_in_the_queue(void *position)
{
	long ret = kevent_wait(q.fd, SIZE, *(__u32 *)position, &a_while, 0, NULL);

	return (void *)ret;
}

/* All of several sleepers see it. */
static void mark_for_all(void)
{
	__u32 position = (__u32)q.ring->ring_kidx;
	pthread_t thread[SLEEPERS];
	struct ukevent ev;
	void *ret;
	int i;

	kevent_set_user(&ev, 1, 1, KEVENT_REQ_WAKEUP_ALL, 'u');
	CHECK_EQ(add(&ev), 0);
	for (i = 0; i < SLEEPERS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, sleep_in_the_queue,
					&position), 0);
	while (kevent_fb_info(q.fd, "kevent-waiting") < SLEEPERS)
		sched_yield();
	kevent_set_mark(&ev, 1, 1, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), 1);
	for (i = 0; i < SLEEPERS; i++) {
		CHECK_EQ(pthread_join(thread[i], &ret), 0);
		CHECK_EQ((long)ret, 1);
	}
	expect(&ev, 'u');
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
}

/* Level and edge watches; two of one descriptor; a file that epoll refuses */
static void watch_files(void)
{
	int pipes[2], pair[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct ukevent ev;
	char c;

	CHECK_EQ(pipe2(pipes, O_CLOEXEC), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	kevent_set_pipe(&ev, pipes[0], KEVENT_SOCKET_RECV, 0, 'p');
	CHECK_EQ(add(&ev), 0);
	kevent_set_poll(&ev, pipes[0], KEVENT_POLL_POLLPRI, KEVENT_REQ_ET, '-');
	CHECK_EQ(add(&ev), 0);
	kevent_set_socket(&ev, pair[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 's');
	CHECK_EQ(add(&ev), 0);
	CHECK_EQ(write(pipes[1], "", 1), 1);
	expect(&ev, 'p');
	CHECK_EQ(read(pipes[0], &c, 1), 1);
	CHECK_EQ(write(pair[1], "", 1), 1);
	expect(&ev, 's');
	kevent_set_poll(&ev, file, KEVENT_POLL_POLLIN, KEVENT_REQ_ONESHOT, 'f');
	CHECK_EQ(add(&ev), 0);
	expect(&ev, 'f');
	kevent_set_poll(&ev, pipes[1], KEVENT_POLL_POLLOUT,
			KEVENT_REQ_HAND_BACK | KEVENT_REQ_ONESHOT, 'h');
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 1);
	kevent_set_pipe(&ev, pipes[0], 0, 0, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	close(pipes[0]);
	close(pipes[1]);
	close(pair[0]);
	close(pair[1]);
	close(file);
}

static void watch_a_timer(void)
{
	struct ukevent ev;

	kevent_set_timer(&ev, 1000, 0, KEVENT_TIMER_FIRED, KEVENT_REQ_ONESHOT, 't');
	CHECK_EQ(add(&ev), 0);
	expect(&ev, 't');
}

static void watch_a_posix_timer(void)
{
	const struct itimerspec first = { .it_value.tv_nsec = 1 };
	struct ukevent ev;
	int id = kevent_timer_create(q.fd, CLOCK_MONOTONIC, 'P');

	CHECK(id >= 0);
	CHECK_EQ(kevent_timer_settime(id, 0, &first, NULL), 0);
	expect(&ev, 'P');
	CHECK_EQ(kevent_timer_delete(id), 0);
}

static void watch_a_signal(void)
{
	struct ukevent ev;

	kevent_set_signal(&ev, SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, 'S');
	CHECK_EQ(add(&ev), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	expect(&ev, 'S');
	kevent_set_signal(&ev, SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, 'S');
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
}

/* A type that cannot be had is told, by the one error that says so. */
static void watch_a_process(void)
{
	struct ukevent ev;
	int gate[2], pid;
	char c;

	CHECK_EQ(pipe2(gate, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		close(gate[1]);
		_exit(read(gate[0], &c, 1) ? 1 : 7);
	}
	close(gate[0]);
	kevent_set_proc(&ev, pid, 0, 'P');
	CHECK_EQ(add(&ev), lacking == KEVENT_PROC ? -ENOSYS : 0);
	close(gate[1]);
	if (lacking != KEVENT_PROC) {
		expect(&ev, 'P');
		CHECK_EQ(ev.ret_data[1], KEVENT_PROC_STATUS);
		CHECK_EQ(WEXITSTATUS(ev.ret_data[0]), 7);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void watch_an_inode(void)
{
	char name[] = "/tmp/kevent-filters-XXXXXX";
	int fd = mkstemp(name);
	struct ukevent ev;

	CHECK(fd >= 0);
	kevent_set_inode(&ev, fd, KEVENT_INODE_MODIFY | KEVENT_INODE_REMOVE,
			 KEVENT_REQ_ET, 'i');
	CHECK_EQ(add(&ev), 0);
	CHECK_EQ(write(fd, "", 1), 1);
	expect(&ev, 'i');
	CHECK_EQ(ev.ret_data[0], KEVENT_INODE_MODIFY);
	CHECK_EQ(unlink(name), 0);
	expect(&ev, 'i');
	CHECK_EQ(ev.ret_data[0], KEVENT_INODE_REMOVE);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	kevent_set_inode(&ev, fd, 0, 0, 'i');
	CHECK_EQ(add(&ev), -EINVAL);
	close(fd);
}

static __u32 word;

/* The event may come before the thread waits, because the word has changed by then. */
static void watch_a_word(void)
{
	struct ukevent ev;

	kevent_set_futex(&ev, &word, word, KEVENT_FUTEX_WAKE, KEVENT_REQ_ONESHOT,
			 'w');
	CHECK_EQ(add(&ev), lacking == KEVENT_FUTEX ? -ENOSYS : 0);
	if (lacking == KEVENT_FUTEX)
		return;
	__atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
	CHECK(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
	expect(&ev, 'w');
}

static void run_a_chain(void)
{
	struct kevent_call calls[2];
	struct kevent_chain chain;
	struct ukevent ev;

	kevent_chain_init(&chain, calls, 2);
	kevent_chain_call(&chain, SYS_getpid);
	kevent_chain_call(&chain, SYS_getppid);
	CHECK_EQ(kevent_chain_end(&chain), 0);
	CHECK_EQ(kevent_chain_run(&chain), 1);
	CHECK_EQ(calls[1].result, getppid());
	CHECK_EQ(kevent_chain_submit(q.fd, &chain, 'c'), KEVENT_CALL_SUBMITTED);
	CHECK_EQ(kevent_chain_serve(q.fd, 1, &no_time), 1);
	expect(&ev, 'c');
	CHECK_EQ(kevent_chain_finish(&chain, &ev), 1);
}

/* The error of a filter that refuses the memory of a lane; 0: no filter does */
static int no_memory;

static void use_a_lane(void)
{
	static const struct kevent_lane_options options = {
		.send_slots = 4, .recv_slots = 4,
	};
	struct kevent_lane a, b;
	struct kevent_lanes set;
	struct ukevent ev;
	int sock[2], ret;
	char text[4];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	ret = kevent_lane_create(&a, &options);
	CHECK_EQ(ret, -no_memory);
	if (ret) {
		close(sock[0]);
		close(sock[1]);
		return;
	}
	CHECK_EQ(kevent_lane_pass(&a, sock[0]), 0);
	CHECK_EQ(kevent_lane_attach(&b, sock[1], 0, 0), 0);
	CHECK_EQ(kevent_lane_send(&a, "abc", 4), 0);
	CHECK_EQ(kevent_lane_recv(&b, text, 4), 4);
	kevent_lanes_init(&set, KEVENT_LOOKS_LEARNED);
	kevent_lanes_add(&set, &b);
	CHECK_EQ(kevent_lanes_get(&set, &q, &ev, 1, &soon), 0);
	kevent_lane_close(&a);
	kevent_lane_close(&b);
}

static void do_all(void)
{
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, KEVENT_INIT_FALLBACK_ONLY), 0);
	wait_for_nothing();
	mark_for_all();
	watch_files();
	watch_a_timer();
	watch_a_signal();
	watch_a_process();
	watch_an_inode();
	watch_a_word();
	run_a_chain();
	use_a_lane();
	wait_for_nothing();
	kevent_queue_close(&q);
}

/* --- filters ---------------------------------------------------------------- */

/* For all threads, also those that the library has started */
static void install(struct sock_filter *code, size_t nr)
{
	struct sock_fprog filter = { .len = (unsigned short)nr, .filter = code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			 SECCOMP_FILTER_FLAG_TSYNC, &filter), 0);
}

/* From now on the call has this error. */
static void refuse(long nr, __u32 error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(code, ARRAY_SIZE(code));
}

/* Calls that the library does without: all but the first one that it makes of each kind */
static const struct optional {
	const char	*name;
	long		nr;
	int		type;	/* that there is not without it; 0: it takes nothing away */
	bool		memory;	/* of lanes */
} optional[] = {
	{ .name = "epoll_pwait2", .nr = SYS_epoll_pwait2 },
	{ .name = "statx", .nr = SYS_statx },
	{ .name = "madvise", .nr = SYS_madvise },
	{ .name = "clock_nanosleep", .nr = SYS_clock_nanosleep },
	{ .name = "faccessat", .nr = SYS_faccessat },
	{ .name = "readlinkat", .nr = SYS_readlinkat },
	{ .name = "waitid", .nr = SYS_waitid },
	{ .name = "ioctl", .nr = SYS_ioctl },
	{ .name = "pidfd_open", .nr = SYS_pidfd_open, .type = KEVENT_PROC },
	{ .name = "futex_waitv", .nr = SYS_futex_waitv, .type = KEVENT_FUTEX },
	{ .name = "prlimit64", .nr = SYS_prlimit64 },
	{ .name = "memfd_create", .nr = SYS_memfd_create, .memory = true },
};
static const int errors[] = { EPERM, ENOSYS, EACCES, EOPNOTSUPP, EIO };

/* A test of its own process: with the filter from the start, or when all is in use */
static void do_all_without(const struct optional *call, int error, bool late)
{
	if (late)
		do_all();
	refuse(call->nr, (__u32)error);
	no_memory = call->memory ? error : 0;
	errno = 0;
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, KEVENT_INIT_FALLBACK_ONLY), 0);
	CHECK_EQ(errno, 0);
	/* The library asks for a type once. With a late filter, only the request fails. */
	lacking = late ? 0 : call->type;
	if (lacking)
		CHECK(!has(lacking));
	kevent_queue_close(&q);
	if (!call->type || !late)
		do_all();
}

static int in_a_process(const struct optional *call, int error, bool late)
{
	int status = 1;

	fflush(stdout);
	if (!fork()) {
		alarm(SECONDS);
		failed = 0;
		do_all_without(call, error, late);
		fflush(stdout);
		_exit(failed);
	}
	wait(&status);
	if (status)
		printf("# without %s, which is error %d, %s\n", call->name, error,
		       late ? "later" : "from the start");
	return status;
}

static void sweep(bool late)
{
	size_t i, j;

	/* Many processes, each of which has its time */
	alarm(0);
	for (i = 0; i < ARRAY_SIZE(optional); i++)
		for (j = 0; j < ARRAY_SIZE(errors); j++)
			CHECK_EQ(in_a_process(&optional[i], errors[j], late), 0);
}

static void each_optional_call_may_be_refused(void)
{
	sweep(false);
}

static void each_optional_call_may_be_refused_later(void)
{
	sweep(true);
}

/* --- the list of the manual page -------------------------------------------- */

#define ENTRY(name)	{ #name, SYS_##name }

struct entry {
	const char	*name;
	long		nr;
};

/* Calls that the page may name */
static const struct entry known[] = {
	ENTRY(epoll_create1), ENTRY(epoll_ctl), ENTRY(epoll_pwait), ENTRY(epoll_pwait2),
	ENTRY(eventfd2), ENTRY(read), ENTRY(write), ENTRY(close), ENTRY(fcntl), ENTRY(dup3),
	ENTRY(madvise), ENTRY(mmap), ENTRY(munmap), ENTRY(futex), ENTRY(clock_nanosleep),
	ENTRY(faccessat), ENTRY(readlinkat), ENTRY(openat), ENTRY(ioctl), ENTRY(lseek),
	ENTRY(fstat), ENTRY(statx), ENTRY(ppoll), ENTRY(timerfd_create),
	ENTRY(timerfd_settime), ENTRY(timer_create), ENTRY(timer_settime), ENTRY(timer_delete),
	ENTRY(rt_sigtimedwait), ENTRY(signalfd4), ENTRY(rt_sigaction), ENTRY(rt_sigprocmask),
	ENTRY(rt_sigqueueinfo), ENTRY(tgkill), ENTRY(kill), ENTRY(getpid), ENTRY(gettid),
	ENTRY(sched_yield), ENTRY(pidfd_open), ENTRY(waitid), ENTRY(inotify_init1),
	ENTRY(inotify_add_watch), ENTRY(inotify_rm_watch), ENTRY(futex_waitv),
	ENTRY(prlimit64), ENTRY(memfd_create), ENTRY(ftruncate), ENTRY(fstatfs), ENTRY(getsockopt),
	ENTRY(getsockname), ENTRY(getpeername),
	ENTRY(sendmsg), ENTRY(recvmsg), ENTRY(sendto), ENTRY(recvfrom), ENTRY(preadv),
#ifdef SYS_newfstatat
	ENTRY(newfstatat),
#endif
#ifdef SYS_timer_settime64
	ENTRY(timer_settime64),
#endif
};

/* More calls, which threads, processes and this program need; none is for the library. */
static const struct entry of_program[] = {
	ENTRY(exit), ENTRY(exit_group), ENTRY(rt_sigreturn), ENTRY(brk), ENTRY(mprotect),
	ENTRY(clone), ENTRY(set_robust_list), ENTRY(rt_sigaction), ENTRY(rt_sigprocmask),
	ENTRY(wait4), ENTRY(pipe2), ENTRY(socketpair), ENTRY(getppid), ENTRY(munmap), ENTRY(getrandom),
	ENTRY(unlinkat), ENTRY(sched_yield), ENTRY(prctl), ENTRY(clock_gettime),
#ifdef SYS_clone3
	ENTRY(clone3),
#endif
#ifdef SYS_rseq
	ENTRY(rseq),
#endif
#ifdef SYS_unlink
	ENTRY(unlink), ENTRY(open), ENTRY(fork),
#endif
#ifndef __GLIBC__
	/* For fork() and printf() of musl */
	ENTRY(gettid), ENTRY(set_tid_address), ENTRY(writev),
#endif
};

/* Which items of the page each operation needs, beside the first two */
static const struct operation {
	const char	*item;
	void		(*run)(void);
} operations[] = {
	{ "for each queue ", wait_for_nothing },
	{ "for each queue ", mark_for_all },
	{ "for files ", watch_files },
	{ "for TIMER ", watch_a_timer },
	{ "for POSIX_TIMER ", watch_a_posix_timer },
	{ "for SIGNAL ", watch_a_signal },
	{ "for PROC ", watch_a_process },
	{ "for INODE ", watch_an_inode },
	{ "for FUTEX ", watch_a_word },
	{ "for each queue ", run_a_chain },
	{ "for lanes ", use_a_lane },
};

static struct sock_filter allowed[256] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
};
static size_t nr_allowed = 1;

static void allow(long nr)
{
	const struct sock_filter code[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	memcpy(&allowed[nr_allowed], code, sizeof(code));
	nr_allowed += ARRAY_SIZE(code);
}

/* The item of the page that begins so: all calls that it names, up to the next request */
static void allow_item(const char *item)
{
	char text[1024] = "", line[256], *name;
	FILE *file = fopen(man_page, "r");
	bool in = false;
	size_t i;

	while (file && fgets(line, sizeof(line), file)) {
		in = *line != '.' && (in || !strncmp(line, item, strlen(item)));
		if (in)
			strncat(text, line, sizeof(text) - strlen(text) - 1);
	}
	if (file)
		fclose(file);
	CHECK(*text);
	for (name = strtok(text, " ,;.()\n"); name; name = strtok(NULL, " ,;.()\n"))
		for (i = 0; i < ARRAY_SIZE(known); i++)
			if (!strcmp(name, known[i].name))
				allow(known[i].nr);
}

/* Without allocations: the filter is in force. */
static void say_call(int sig, siginfo_t *info, void *context)
{
	char text[] = "# a call that the page does not name: 0000\n";
	int nr = info->si_syscall;
	size_t i;

	(void)sig;
	(void)context;
	for (i = sizeof(text) - 3; nr; nr /= 10)
		text[i--] = (char)('0' + nr % 10);
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static void allow_only(const char *item)
{
	const struct sigaction action = {
		.sa_sigaction = say_call, .sa_flags = SA_SIGINFO,
	};
	size_t i;

	CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(of_program); i++)
		allow(of_program[i].nr);
	allow_item("for each queue ");
	allow_item("to find the kernel ");
	allow_item(item);
	allowed[nr_allowed++] = (struct sock_filter)
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
	install(allowed, nr_allowed);
}

static void do_one(const struct operation *operation)
{
	fflush(stdout);
	allow_only(operation->item);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), 0);
	operation->run();
	kevent_queue_close(&q);
}

static void calls_of_the_page_are_enough(void)
{
	int status;
	size_t i;

	alarm(0);
	setenv("KEVENT_BACKEND", "epoll", 1);
	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		fflush(stdout);
		if (!fork()) {
			alarm(SECONDS);
			failed = 0;
			do_one(&operations[i]);
			fflush(stdout);
			_exit(failed);
		}
		wait(&status);
		if (status)
			printf("# operation %zu, which is one %s\n", i,
			       operations[i].item);
		CHECK_EQ(status, 0);
	}
}

/* The thread that waits for words finds out that it cannot any more, and does not spin. */
static void words_end_when_they_cannot_be_waited_for(void)
{
	struct timespec before, after;
	struct ukevent ev;

	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, KEVENT_INIT_FALLBACK_ONLY), 0);
	if (!has(KEVENT_FUTEX))
		return;
	watch_a_word();
	refuse(SYS_futex_waitv, EPERM);
	kevent_set_futex(&ev, &word, word, KEVENT_FUTEX_WAKE, 0, 'w');
	CHECK_EQ(add(&ev), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &a_while), 1);
	CHECK_EQ(ev.ptr, 'w');
	CHECK_EQ(kevent_error(&ev), -EIDRM);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &(struct timespec){ .tv_sec = 1 }), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000 +
	      (after.tv_nsec - before.tv_nsec) / 1000000 < 500);
	kevent_queue_close(&q);
}

static void make_a_timer_without(long nr, int error)
{
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, KEVENT_INIT_FALLBACK_ONLY), 0);
	refuse(nr, (__u32)error);
	CHECK_EQ(kevent_timer_create(q.fd, CLOCK_MONOTONIC, 0), -ENOSYS);
	kevent_queue_close(&q);
}

/* The thread that takes their signals says so, and nobody waits for it. */
static void timers_are_not_made_without_their_signals(void)
{
	static const long calls[] = { SYS_rt_sigtimedwait, SYS_timer_create };
	int status;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls) * ARRAY_SIZE(errors); i++) {
		fflush(stdout);
		if (!fork()) {
			alarm(SECONDS);
			failed = 0;
			make_a_timer_without(calls[i % 2], errors[i / 2]);
			fflush(stdout);
			_exit(failed);
		}
		wait(&status);
		CHECK_EQ(status, 0);
	}
}

static void timers_of_a_queue(void)
{
	static const struct itimerspec first = { .it_value.tv_nsec = 1 };
	struct kevent_queue other;
	struct ukevent ev;
	int id[2];
	__u64 i;

	CHECK_EQ(kevent_queue_init(&other, &mem.ring, SIZE, KEVENT_INIT_FALLBACK_ONLY), 0);
	for (i = 0; i < 2; i++) {
		id[i] = kevent_timer_create(other.fd, CLOCK_MONOTONIC, i);
		CHECK(id[i] >= 0);
	}
	for (i = 0; i < 2; i++) {
		CHECK_EQ(kevent_timer_settime(id[i], 0, &first, NULL), 0);
		CHECK_EQ(kevent_queue_get(&other, &ev, 1, &a_while), 1);
		CHECK_EQ(ev.ptr, i);
	}
}

/* Nothing tells the process from its child, and each has one thread for its timers. */
static void timers_need_no_madvise(void)
{
	int status = 1;

	refuse(SYS_madvise, EPERM);
	timers_of_a_queue();
	fflush(stdout);
	if (!fork()) {
		alarm(SECONDS);
		timers_of_a_queue();
		fflush(stdout);
		_exit(failed);
	}
	wait(&status);
	CHECK_EQ(status, 0);
}

static const struct test tests[] = {
	TEST(each_optional_call_may_be_refused),
	TEST(each_optional_call_may_be_refused_later),
	TEST(calls_of_the_page_are_enough),
	TEST(words_end_when_they_cannot_be_waited_for),
	TEST(timers_are_not_made_without_their_signals),
	TEST(timers_need_no_madvise),
};

int main(int argc, char **argv)
{
	man_page = argc > 1 ? argv[1] : "";
	return run_tests("filters", tests, ARRAY_SIZE(tests));
}
