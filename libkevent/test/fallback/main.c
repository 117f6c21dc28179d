// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The fallback on the real kernel: what kevent-tests cannot show
 *
 * Each test runs in a process of its own. The argument is the manual page with the
 * table of exceptions.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fallback/fallback.h"
#include "fallback/queue.h"
#include "api/raw_syscall.h"
#include "libkevent.h"
#include "../processes.h"

#define SIZE		8U

/* With the times of this program, which have 64 bits */
#ifdef SYS_timer_settime64
#define SYS_TIMER_SETTIME	SYS_timer_settime64
#else
#define SYS_TIMER_SETTIME	SYS_timer_settime
#endif

/* Long enough for what does not come; and for what comes, on a machine that is busy */
static const struct timespec no_time, a_while = { .tv_nsec = 200000000 },
			     patience = { .tv_sec = 60 };

static KEVENT_RING_STORAGE(SIZE) mem;

static void open_queue(struct kevent_queue *q)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(kevent_queue_init(q, &mem.ring, SIZE, 0), 0);
}

static int add_pipe(int queue, int fd, __u32 req_flags)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, fd, KEVENT_SOCKET_RECV, req_flags, (__u64)fd);
	return kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev);
}

static int add_mark(int queue, __u32 req_flags)
{
	struct ukevent ev;

	kevent_set_user(&ev, 1, 1, req_flags, 1);
	return kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev);
}

static int mark(int queue, __u64 data)
{
	struct ukevent ev;

	kevent_set_mark(&ev, 1, 1, data);
	return kevent_ctl_one(queue, KEVENT_CTL_READY, &ev);
}

static int look(int queue)
{
	struct ukevent ev;

	return kevent_get_events(queue, 1, 1, &no_time, &ev, 0);
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (dir && readdir(dir))
		nr++;
	if (dir)
		closedir(dir);
	return nr;
}

static long long cpu_ms(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000LL +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

/* A program cleans up what it has not opened yet; a queue may have the number 0, too. */
static void zeros_are_a_closed_queue(void)
{
	struct kevent_queue none = KEVENT_QUEUE_NONE;
	struct kevent_queue q;

	CHECK_EQ(dup2(open("/dev/null", O_RDONLY), STDIN_FILENO), STDIN_FILENO);
	memset(&q, 0, sizeof(q));
	kevent_queue_close(&q);
	kevent_queue_close(&q);
	kevent_queue_close(&none);
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	CHECK_EQ(close(STDIN_FILENO), 0);
	open_queue(&q);
	CHECK_EQ(q.fd, STDIN_FILENO);
	kevent_queue_close(&q);
	CHECK_EQ(fcntl(STDIN_FILENO, F_GETFD), -1);
}

static void backend_has_a_name(void)
{
	struct kevent_queue q;

	open_queue(&q);
	CHECK(!strcmp(kevent_backend(q.fd), "epoll"));
	CHECK(!kevent_backend(0));
	CHECK(!kevent_backend(-1));
	kevent_queue_close(&q);
}

static void program_may_refuse(void)
{
	int has = kevent_supported();

	setenv("KEVENT_BACKEND", "epoll", 1);
	if (has)
		CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), has);
	else
		CHECK(!strcmp(kevent_backend(kevent_init(NULL, 0,
				KEVENT_INIT_NO_FALLBACK)), "kevent"));
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	/* The bit below is unknown in either case. */
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_ALL_TYPES / 2), -EINVAL);
}

static void environment_may_refuse(void)
{
	int has = kevent_supported();

	setenv("KEVENT_BACKEND", "kernel", 1);
	CHECK_EQ(kevent_init(NULL, 0, 0) < 0 ? has : 0, has);
	if (has)
		CHECK_EQ(kevent_init(NULL, 0, 0), has);
}

static void program_may_demand(void)
{
	int fd;

	setenv("KEVENT_BACKEND", "kernel", 1);
	fd = kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY);
	CHECK(fd >= 0);
	CHECK(!strcmp(kevent_backend(fd), "epoll"));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	fd = kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY |
			 KEVENT_INIT_NOCLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY |
			     KEVENT_INIT_NO_FALLBACK), -EINVAL);
	CHECK_EQ(kevent_init(NULL, SIZE, KEVENT_INIT_FALLBACK_ONLY), -EINVAL);
}

/* Which no other process should have */
#define GROUP		65533U

/* Of this program, for GROUP to execute with the rights of root; -1: it has none here */
static int copy_program(char *path)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkstemp(path);
	struct statvfs fs;
	off_t len;

	if (from < 0 || to < 0)
		return -1;
	len = lseek(from, 0, SEEK_END);
	if (fstatvfs(to, &fs) || fs.f_flag & (ST_NOSUID | ST_NOEXEC) ||
	    sendfile(to, from, &(off_t){ 0 }, (size_t)len) != len)
		return -1;
	return fchown(to, 0, GROUP) || fchmod(to, 04750) || close(from) || close(to);
}

/* As main() says it. */
static int nobody_says(const char *path, const char *backend)
{
	int status = -1;

	if (!fork()) {
		setenv("KEVENT_BACKEND", backend, 1);
		if (!setgid(GROUP) && !setuid(65534))
			execl(path, path, "--backend", NULL);
		_exit(127);
	}
	wait(&status);
	return WEXITSTATUS(status);
}

static void raised_rights_ignore_the_environment(void)
{
	const char *backend = kevent_supported() ? "kernel" : "epoll";
	char path[] = "/tmp/kevent-fallback-XXXXXX";

	/* Without root, nobody can raise any. */
	if (!geteuid() && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 &&
	    !copy_program(path)) {
		CHECK_EQ(nobody_says(path, backend), !kevent_supported());
		CHECK_EQ(chmod(path, 0755), 0);
		CHECK_EQ(nobody_says(path, backend), !!kevent_supported());
	}
	unlink(path);
}

/* From now on calls of kevent from @first on have this answer. */
static void filter_calls(__u32 first, __u32 answer)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE, first, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT, __NR_kevent_call, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {
		.len = ARRAY_SIZE(filter), .filter = filter,
	};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void all_calls(void)
{
	struct kevent_call call[2] = { { .nr = SYS_getpid, .on_value = 1 },
				       { .nr = SYS_getpid } };
	struct kevent_queue q;
	struct ukevent ev;

	CHECK_EQ(kevent_call(-1, call, 2, 0, 0), 1);
	CHECK(!kevent_backend(0));
	add_mark(0, 0);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE,
				   KEVENT_INIT_FALLBACK_ONLY), 0);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	kevent_call(0, call, 2, KEVENT_CALL_ASYNC, 1);
	kevent_queue_close(&q);
}

/* The numbers are those of other calls then. */
static void kernel_without_kevent_is_not_called(void)
{
	if (!access("/proc/sys/kernel/kevent_disabled", F_OK))
		return;
	filter_calls(__NR_kevent_init, SECCOMP_RET_KILL_PROCESS);
	CHECK_EQ(kevent_supported(), -ENOSYS);
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), -ENOSYS);
	all_calls();
	CHECK(kevent_init(NULL, 0, 0) >= 0);
}

/* It has made no queue, and nobody knows whether it will. */
static void process_without_a_queue_has_descriptors(void)
{
	const int fd[] = { 0, -1, open("/", O_PATH | O_CLOEXEC) };
	struct ukevent ev;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		err = i ? -EBADF : -EINVAL;
		CHECK_EQ(kevent_ctl(fd[i], KEVENT_CTL_ADD, 0, NULL), err);
		CHECK_EQ(kevent_wait(fd[i], 1, 0, &no_time, 0, NULL), err);
		CHECK_EQ(kevent_get_events(fd[i], 1, 1, &no_time, &ev, 0), err);
		CHECK_EQ(kevent_commit(fd[i], 0, 0), err);
	}
}

static void flag_avoids_the_kernel(void)
{
	if (access("/proc/sys/kernel/kevent_disabled", F_OK))
		return;
	filter_calls(__NR_kevent_init, SECCOMP_RET_KILL_PROCESS);
	CHECK(kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY) >= 0);
}

/* No result of kevent_init() by a filter stops the fallback, or has a descriptor closed. */
static void lies(__u32 error)
{
	struct kevent_queue q;
	int ret = error ? -(int)error : -ENOSYS;
	int fds;

	filter_calls(__NR_kevent_init, SECCOMP_RET_ERRNO | error);
	fds = open_fds();
	if (access("/proc/sys/kernel/kevent_disabled", F_OK))
		ret = -ENOSYS;
	CHECK_EQ(kevent_supported(), ret);
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), ret);
	CHECK_EQ(open_fds(), fds);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), 0);
	CHECK(!strcmp(kevent_backend(q.fd), "epoll"));
	kevent_queue_close(&q);
	CHECK_EQ(open_fds(), fds);
}

static void run_lies(__u32 error)
{
	int status = 1;

	fflush(stdout);
	if (!fork()) {
		lies(error);
		fflush(stdout);
		_exit(failed);
	}
	wait(&status);
	CHECK_EQ(status, 0);
}

static void filters_are_not_believed(void)
{
	static const __u32 errors[] = {
		0, EPERM, ENOSYS, EINVAL, EFAULT, EBADF, EACCES, ENOTSUP,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		run_lies(errors[i]);
}

static int child_is_refused(struct kevent_queue *q)
{
	struct ukevent ev;

	CHECK_EQ(add_mark(q->fd, 0), -EXDEV);
	CHECK_EQ(kevent_wait(q->fd, 1, 0, &no_time, 0, NULL), -EXDEV);
	CHECK_EQ(kevent_get_events(q->fd, 1, 1, &no_time, &ev, 0), -EXDEV);
	CHECK_EQ(kevent_commit(q->fd, 0, 0), -EXDEV);
	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), -EXDEV);
	/* This one is the child's, whatever becomes of its copy of the other. */
	kevent_queue_close(q);
	CHECK_EQ(kevent_queue_init(q, &mem.ring, SIZE, 0), 0);
	CHECK_EQ(add_mark(q->fd, 0), 0);
	CHECK_EQ(mark(q->fd, 0), 1);
	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 1);
	return failed;
}

static void child_has_no_queue(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int status = 1;

	open_queue(&q);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	fflush(stdout);
	if (!fork()) {
		status = child_is_refused(&q);
		fflush(stdout);
		_exit(status);
	}
	wait(&status);
	CHECK_EQ(status, 0);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(ev.ptr, 1);
	kevent_queue_close(&q);
}

static void closed_queue_is_none(void)
{
	struct kevent_queue q;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(add_mark(q.fd, 0), -EBADF);
	/* A pipe takes the number. */
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(fd[0], q.fd);
	CHECK_EQ(add_mark(q.fd, 0), -EINVAL);
	CHECK(!kevent_backend(q.fd));
}

static void number_of_a_closed_queue_comes_back(void)
{
	struct kevent_queue q, again;

	open_queue(&q);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	CHECK_EQ(close(q.fd), 0);
	open_queue(&again);
	CHECK_EQ(again.fd, q.fd);
	CHECK_EQ(add_mark(again.fd, 0), 0);
	kevent_queue_close(&again);
}

#define OPENS		20
#define NAPS		20	/* of a call that is to meet another one */

/* Calls of the library come here. Calls of @opener are to meet one of another thread. */
static int opens_end, looking, met;
static pthread_t opener;

static void await_flag(const int *flag)
{
	int i;

	for (i = 0; i < NAPS && !__atomic_load_n(flag, __ATOMIC_SEQ_CST); i++)
		nap();
}

/* Instances other than @roomy have room for so many registrations of @scarce; -1: of no file */
static int scarce = -1, room, roomy[2];
static unsigned int denied;

static bool is_full(int epoll, int op, int fd)
{
	if (op != EPOLL_CTL_ADD || fd != scarce || epoll == roomy[0] || epoll == roomy[1] ||
	    room-- > 0)
		return false;
	denied++;
	return true;
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	bool meets = opener && op == EPOLL_CTL_ADD;
	bool opens = meets && pthread_equal(opener, pthread_self());
	int ret;

	if (is_full(epoll, op, fd)) {
		errno = ENOSPC;
		return -1;
	}
	if (opens)
		await_flag(&looking);
	ret = (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
	if (opens)
		__atomic_store_n(&met, 1, __ATOMIC_SEQ_CST);
	if (meets && !opens && !ret) {
		__atomic_store_n(&looking, 1, __ATOMIC_SEQ_CST);
		await_flag(&met);
	}
	return ret;
}

static void *call_with_the_number(void *arg)
{
	const int *fd = arg;

	while (!__atomic_load_n(&opens_end, __ATOMIC_RELAXED))
		kevent_ctl(*fd, KEVENT_CTL_ADD, 0, NULL);
	return NULL;
}

/* A thread that has missed the end of a queue goes on with its number. */
static void queue_opens_beside_calls_with_its_number(void)
{
	struct kevent_queue q;
	pthread_t thread;
	int i, fd;

	open_queue(&q);
	fd = q.fd;
	kevent_queue_close(&q);
	opener = pthread_self();
	CHECK_EQ(pthread_create(&thread, NULL, call_with_the_number, &fd), 0);
	for (i = 0; i < OPENS && !failed; i++) {
		__atomic_store_n(&looking, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&met, 0, __ATOMIC_SEQ_CST);
		next_round();
		open_queue(&q);
		CHECK_EQ(q.fd, fd);
		kevent_queue_close(&q);
	}
	__atomic_store_n(&opens_end, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* An epoll of the program has the number, and the file that the queue watched. */
static void end_of_a_queue_leaves_other_files_alone(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct kevent_queue q;
	int fd[2], epoll;

	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	CHECK_EQ(close(q.fd), 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(epoll, q.fd);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd[0], &event), 0);
	/* The library finds out that its queue is closed. */
	CHECK_EQ(add_mark(q.fd, 0), -EINVAL);
	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 1);
}

static void close_frees_all_descriptors(void)
{
	struct kevent_queue q;
	struct ukevent ev[3];
	int i, before, fd[2];

	CHECK_EQ(pipe(fd), 0);
	before = open_fds();
	for (i = 0; i < 100; i++) {
		open_queue(&q);
		kevent_set_timer(&ev[0], 1, 0, 0, 0, 2);
		kevent_set_proc(&ev[1], getpid(), 0, 3);
		kevent_set_poll(&ev[2], fd[0], KEVENT_POLL_POLLIN, 0, 4);
		CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_ADD, 3, ev), 0);
		CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
		kevent_queue_close(&q);
	}
	CHECK_EQ(open_fds(), before);
}

/* A user in fb_queue.users, see registry.c */
#define USER		4U

/*
 * The queue was closed, and the call of the timer is the last to have a reference. The other one
 * goes where fb_put() has counted it, and before it looks whether it was the last.
 */
static void call_of_a_timer_ends_its_queue(void)
{
	static const struct itimerspec hour = { .it_value.tv_sec = 3600 };
	struct kevent_queue q;
	struct fb_queue *found;
	int id, before = open_fds();

	open_queue(&q);
	id = kevent_timer_create(q.fd, CLOCK_MONOTONIC, 1);
	CHECK(id >= 0);
	found = fb_get(q.fd);
	fb_forget(q.fd, found);
	__atomic_sub_fetch(&found->users, USER, __ATOMIC_SEQ_CST);
	CHECK_EQ(kevent_timer_settime(id, 0, &hour, NULL), 0);
	CHECK_EQ(kevent_timer_delete(id), 0);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(open_fds(), before);
}

/* --- numbers of descriptors that are no more the library's ------------------ */

/* No more than @more descriptors can be opened from now on. */
static void limit_fds(int more)
{
	struct rlimit limit;
	int next;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	next = dup(0);
	close(next);
	limit.rlim_cur = (rlim_t)(next + more);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void wait_for_child(void)
{
	int status = 1;

	wait(&status);
	CHECK_EQ(status, 0);
}

static void check_open(int fd, int open)
{
	if (fcntl(fd, F_GETFD) < 0 ? open : !open)
		printf("# descriptor %d is%s open\n", fd, open ? " not" : "");
	CHECK_EQ(fcntl(fd, F_GETFD) >= 0, open);
}

static void init_without_descriptors_closes_none(void)
{
	struct kevent_queue q;
	int more;

	setenv("KEVENT_BACKEND", "epoll", 1);
	for (more = 0; more < 2; more++) {
		limit_fds(more);
		CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), -EMFILE);
		CHECK_EQ(q.fd, -1);
		check_open(0, true);
	}
	limit_fds(2);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), 0);
	kevent_queue_close(&q);
	check_open(0, true);
}

/* A limit has to be raised before there are such numbers: nothing is open there. */
static void number_beyond_the_tables_is_emfile(void)
{
	struct kevent_queue q;
	struct fb_queue *found;
	int at;

	open_queue(&q);
	found = fb_get(q.fd);
	CHECK_EQ(fb_own(found, &at, 1 << 20, "[eventfd]"), -EMFILE);
	CHECK_EQ(at, -1);
	CHECK_EQ(fb_publish(1 << 20, found), -EMFILE);
	fb_put(found);
	kevent_queue_close(&q);
}

#define FILES	24

/* Its descriptors are of all kinds that a queue has. */
static void add_all(int queue, const int *fd)
{
	static int folder = -1;
	struct ukevent ev[6];

	folder = open("/tmp", O_RDONLY | O_CLOEXEC);
	kevent_set_timer(&ev[0], 3600000000000, 0, 0, 0, 1);
	kevent_set_proc(&ev[1], getpid(), 0, 2);
	kevent_set_poll(&ev[2], fd[0], KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 3);
	kevent_set_inode(&ev[3], folder, KEVENT_INODE_ATTRIB, 0, 4);
	kevent_set_signal(&ev[4], SIGUSR2, KEVENT_SIGNAL_CONSUME, 0, 5);
	kevent_set_pipe(&ev[5], fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 6);
	CHECK_EQ(kevent_ctl(queue, KEVENT_CTL_ADD, 6, ev), 0);
}

/* Files of the program have all numbers from @from on. */
static void open_files(int *file, int from)
{
	int i;

	for (i = 0; i < FILES; i++)
		file[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(file[0], from);
}

static void check_files(const int *file)
{
	int i;

	for (i = 0; i < FILES; i++)
		check_open(file[i], true);
}

static void failed_init_leaves_old_numbers_alone(void)
{
	struct kevent_queue q;
	int fd[2], file[FILES];

	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	add_all(q.fd, fd);
	kevent_queue_close(&q);
	open_files(file, fd[1] + 1);
	limit_fds(0);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), -EMFILE);
	check_files(file);
	limit_fds(1);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE, 0), -EMFILE);
	check_files(file);
}

/* As programs do that become a service */
static void close_all(void)
{
	int fd;

	for (fd = 3; fd < 100; fd++)
		close(fd);
}

static void check_queue_works(void)
{
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	kevent_set_timer(&ev, 1000000, 0, 0, 0, 7);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &patience), 1);
	CHECK_EQ(ev.ptr, 7);
	kevent_queue_close(&q);
}

static void files_with_numbers_of_the_library_stay_open(void)
{
	struct kevent_queue q;
	int fd[2], file[FILES];

	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	add_all(q.fd, fd);
	close_all();
	open_files(file, 3);
	/* The new queue finds that the old one is closed. */
	check_queue_works();
	CHECK_EQ(add_mark(q.fd, 0), -EINVAL);
	check_files(file);
}

/* Until the library has reported something to the queue, and kicked it */
static void await_event(struct fb_queue *q)
{
	__u32 nr = 0;

	while (!nr) {
		nap();
		fb_queue_lock(q, -1);
		nr = q->lists[FB_READY].nr;
		fb_queue_unlock(q);
	}
}

/* The thread that waits for the word does not know that the queue is closed. */
static void file_with_the_number_of_the_kick_is_not_written(void)
{
	static __u32 word;
	struct fb_queue *found;
	struct kevent_queue q;
	struct ukevent ev;
	struct stat st;
	int i;

	open_queue(&q);
	kevent_set_futex(&ev, &word, 0, KEVENT_FUTEX_PRIVATE, 0, 5);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	found = fb_get(q.fd);
	close_all();
	for (i = 3; i < FILES; i++)
		CHECK_EQ(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), i);
	while (syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1,
		       NULL, NULL, 0) != 1)
		nap();
	await_event(found);
	fb_put(found);
	/* The new queue finds that the old one is closed, and ends its thread. */
	check_queue_works();
	for (i = 3; i < FILES; i++) {
		CHECK_EQ(fstat(i, &st), 0);
		CHECK_EQ(st.st_size, 0);
	}
}

static void open_queue_after(int nr)
{
	struct kevent_queue q;
	struct ukevent ev;
	int i, fds, other, fd[2];

	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(pipe(fd), 0);
	for (i = 0; i < nr; i++)
		add_all(kevent_init(NULL, 0, 0), fd);
	close_all();
	/* So the queue gets the numbers of the first old one. */
	CHECK_EQ(pipe(fd), 0);
	fds = open_fds();
	open_queue(&q);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	kevent_set_timer(&ev, 1000000, 0, 0, 0, 7);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	/* Each finds that others are closed. */
	for (i = 0; i < 6; i++) {
		other = kevent_init(NULL, 0, 0);
		kevent_fb_close(other);
		close(other);
	}
	/* Epoll, kick and timer */
	CHECK_EQ(open_fds(), fds + 3);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &patience), 1);
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(ev.ptr, 1);
}

/* Which of the old ones the library looks at, and when, depends on their number. */
static void new_queue_keeps_the_numbers_of_old_ones(void)
{
	int nr;

	for (nr = 1; nr < 8; nr++) {
		fflush(stdout);
		if (!fork()) {
			open_queue_after(nr);
			fflush(stdout);
			_exit(failed);
		}
		wait_for_child();
	}
}

/*
 * Files of the program have the numbers that the signals of the process had, and the epoll that
 * has one of them watches the others.
 */
static void queue_may_watch_numbers_of_the_hub(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct kevent_queue q;
	struct ukevent ev;
	int queue, home, nr;

	open_queue(&q);
	home = dup(0);
	close(home);
	kevent_set_signal(&ev, SIGUSR2, KEVENT_SIGNAL_CONSUME, 0, 5);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	for (nr = home; nr < home + 3; nr++)
		close(nr);
	CHECK_EQ(epoll_create1(EPOLL_CLOEXEC), home);
	for (nr = home + 1; nr < home + 3; nr++) {
		CHECK_EQ(eventfd(0, EFD_CLOEXEC), nr);
		CHECK_EQ(epoll_ctl(home, EPOLL_CTL_ADD, nr, &event), 0);
	}
	for (nr = home + 1; nr < home + 3; nr++) {
		queue = kevent_init(NULL, 0, 0);
		kevent_set_poll(&ev, nr, KEVENT_POLL_POLLIN, 0, 3);
		CHECK_EQ(kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev), 0);
		kevent_set_signal(&ev, SIGUSR2, KEVENT_SIGNAL_CONSUME, 0, 5);
		CHECK_EQ(kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev), 0);
		CHECK_EQ(raise(SIGUSR2), 0);
		CHECK_EQ(kevent_get_events(queue, 1, 1, &patience, &ev, 0), 1);
		CHECK_EQ(ev.ptr, 5);
	}
	for (nr = home; nr < home + 3; nr++)
		check_open(nr, true);
}

/* An epoll of the program has the number of the queue, and watches those of the others. */
static void epoll_with_numbers_of_the_library_is_left_alone(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct kevent_queue q;
	int i, epoll, fd[2], pipes[FILES][2];

	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	add_all(q.fd, fd);
	close_all();
	for (i = 3; i < q.fd; i++)
		CHECK_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), i);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(epoll, q.fd);
	for (i = 0; i < FILES; i++) {
		CHECK_EQ(pipe(pipes[i]), 0);
		event.data.u64 = 100 + (__u64)i;
		epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[i][0], &event);
		event.data.u64 = 200;
		epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[i][1], &event);
	}
	check_queue_works();
	for (i = 0; i < FILES; i++) {
		CHECK_EQ(write(pipes[i][1], "", 1), 1);
		CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 1);
		CHECK_EQ(event.data.u64, 100 + i);
		CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_DEL, pipes[i][0], NULL), 0);
	}
}

/* Somebody else has the file of the watch, and something to read comes. */
static void refused_request_ends_the_watch(void)
{
	static const __u32 cmds[] = {
		KEVENT_CTL_MODIFY, KEVENT_CTL_REMOVE, KEVENT_CTL_READY,
	};
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2], other[2];
	unsigned int i;

	open_queue(&q);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(pipe(fd), 0);
		kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 1);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
		CHECK(dup(fd[0]) >= 0);
		CHECK_EQ(pipe(other), 0);
		CHECK_EQ(dup2(other[0], fd[0]), fd[0]);
		CHECK_EQ(kevent_ctl_one(q.fd, cmds[i], &ev), -ENOENT);
		CHECK_EQ(write(fd[1], "", 1), 1);
		CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 0);
	}
	kevent_queue_close(&q);
}

static int wait_with_a_mark(int queue)
{
	struct kevent_change change = { .cmd = KEVENT_CTL_READY };
	struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.changes = (__u64)(uintptr_t)&change, .nr_changes = 1,
	};

	kevent_set_mark(&change.uk, 1, 1, 0);
	return kevent_wait(queue, 1, 0, &no_time, KEVENT_FLAGS_ARG, &arg);
}

/* The library has not seen the close(). The epoll has an event, once. */
static void change_with_an_old_number_is_refused(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct kevent_queue q;
	int copy, bell = eventfd(1, EFD_CLOEXEC);
	struct ukevent ev;

	open_queue(&q);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	copy = dup(q.fd);
	/* So both numbers are known, and the copy was used last. */
	CHECK_EQ(kevent_get_events(copy, 1, 1, &no_time, &ev, 0), 0);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(epoll_create1(EPOLL_CLOEXEC), q.fd);
	CHECK_EQ(epoll_ctl(q.fd, EPOLL_CTL_ADD, bell, &event), 0);
	CHECK_EQ(wait_with_a_mark(q.fd), -EINVAL);
	CHECK_EQ(kevent_get_events(copy, 1, 1, &no_time, &ev, 0), 0);
	CHECK_EQ(epoll_wait(q.fd, &event, 1, 0), 1);
	/* The same with the only number there is */
	CHECK_EQ(close(copy), 0);
	CHECK_EQ(epoll_create1(EPOLL_CLOEXEC), copy);
	CHECK_EQ(epoll_ctl(copy, EPOLL_CTL_ADD, bell, &event), 0);
	CHECK_EQ(wait_with_a_mark(copy), -EINVAL);
	CHECK_EQ(epoll_wait(copy, &event, 1, 0), 1);
}

static void call_with_an_older_number_takes_nothing(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct kevent_queue q;
	int copy, bell = eventfd(1, EFD_CLOEXEC);
	struct ukevent ev;

	open_queue(&q);
	copy = dup(q.fd);
	CHECK_EQ(add_mark(copy, 0), 0);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(epoll_create1(EPOLL_CLOEXEC), q.fd);
	CHECK_EQ(epoll_ctl(q.fd, EPOLL_CTL_ADD, bell, &event), 0);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &no_time, &ev, 0), -EINVAL);
	CHECK_EQ(epoll_wait(q.fd, &event, 1, 0), 1);
}

/* Epoll repeats an event that no watch has, but the number is no more the queue's. */
static void epoll_with_an_old_number_is_not_replaced(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77ULL << 32 };
	int bell = eventfd(1, EFD_CLOEXEC);
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(epoll_create1(EPOLL_CLOEXEC), q.fd);
	CHECK_EQ(epoll_ctl(q.fd, EPOLL_CTL_ADD, bell, &event), 0);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &a_while, &ev, 0), 0);
	CHECK_EQ(epoll_ctl(q.fd, EPOLL_CTL_DEL, bell, NULL), 0);
}

#define LOOKS	20000U

static unsigned int believed, barred;

/* Of an epoll of the program, and of descriptors that are a queue's */
static void *look_at_both(void *arg)
{
	const int *fd = arg;
	unsigned int i;

	for (i = 0; i < LOOKS; i++) {
		if (kevent_backend(fd[0]))
			__atomic_add_fetch(&believed, 1, __ATOMIC_RELAXED);
		if (kevent_ctl(fd[1], KEVENT_CTL_ADD, 0, NULL))
			__atomic_add_fetch(&barred, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void threads_look_at_an_epoll_of_the_program(void)
{
	int fd[2] = { epoll_create1(EPOLL_CLOEXEC), -1 }, i;
	pthread_t thread[2];
	struct kevent_queue q;

	open_queue(&q);
	fd[1] = q.fd;
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, look_at_both, fd), 0);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(believed, 0);
	CHECK_EQ(barred, 0);
	kevent_queue_close(&q);
}

/*
 * The number of a closed descriptor comes back as the library's. Nothing is done to that by
 * what was watched, which is @told, and looked at again by the next call.
 */
static void number_of_a_watch_comes_back_here(bool told)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_REQ_LAST_CHECK), 0);
	CHECK_EQ(write(fd[1], "x", 1), 1);
	if (told)
		CHECK_EQ(look(q.fd), 1);
	close(fd[0]);
	kevent_set_timer(&ev, 1, 0, KEVENT_TIMER_FIRED, KEVENT_REQ_ONESHOT, 1000);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK(fcntl(fd[0], F_GETFD) >= 0);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 1);
	if (!told)
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &patience, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 1000);
	CHECK_EQ(look(q.fd), 0);
	close(fd[1]);
	kevent_queue_close(&q);
}

static void number_of_a_watch_comes_back(void)
{
	number_of_a_watch_comes_back_here(true);
	number_of_a_watch_comes_back_here(false);
}

/* Two watches of a number, in one instance of epoll: it has the file of the second. */
static void number_of_a_watch_is_watched_anew(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2], other[2];

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	CHECK_EQ(pipe(other), 0);
	CHECK_EQ(dup2(other[0], fd[0]), fd[0]);
	kevent_set_poll(&ev, fd[0], POLLIN, 0, 1000);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	CHECK_EQ(write(other[1], "x", 1), 1);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &no_time, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 1000);
	kevent_queue_close(&q);
}

static void found_event_ends_with_its_descriptor(void)
{
	int fd[2], other[2], dir = open("/tmp", O_RDONLY | O_CLOEXEC);
	struct kevent_queue q;
	struct ukevent ev;

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(pipe(other), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_REQ_ET), 0);
	kevent_set_inode(&ev, dir, KEVENT_INODE_ATTRIB, KEVENT_REQ_READY, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(write(fd[1], "x", 1), 1);
	CHECK_EQ(write(other[1], "x", 1), 1);
	CHECK_EQ(add_pipe(q.fd, other[0], KEVENT_REQ_ET | KEVENT_REQ_HAND_BACK), 1);
	close(dir);
	close(fd[0]);
	CHECK_EQ(look(q.fd), 0);
	kevent_queue_close(&q);
}

/* A number of the same file, opened again; the program may have set the signal itself. */
static void file_that_is_opened_again(int type, int signal)
{
	const char *name = type == KEVENT_INODE ? "/tmp" : "/dev/null";
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct kevent_queue q;
	struct ukevent ev;
	int other;

	open_queue(&q);
	other = kevent_init(NULL, 0, 0);
	if (signal)
		CHECK_EQ(fcntl(fd, F_SETSIG, signal), 0);
	kevent_set_poll(&ev, fd, type == KEVENT_INODE ? KEVENT_INODE_RENAME : POLLIN, 0, 1);
	ev.type = (__u32)type;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(kevent_ctl_one(other, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(fcntl(fd, F_GETSIG), signal ? signal : SIGIO);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), -EEXIST);
	close(fd);
	CHECK_EQ(open(name, O_RDONLY | O_CLOEXEC), fd);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(kevent_ctl_one(other, KEVENT_CTL_ADD, &ev), 0);
	close(fd);
	close(other);
	kevent_queue_close(&q);
}

static void opened_file_has_a_mark(void)
{
	file_that_is_opened_again(KEVENT_POLL, 0);
	file_that_is_opened_again(KEVENT_POLL, SIGUSR1);
	file_that_is_opened_again(KEVENT_INODE, 0);
	file_that_is_opened_again(KEVENT_INODE, SIGUSR1);
}

/* Requests for which the library asks /proc about a descriptor of the caller */
static void check_sources_by_number(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);
	int bell = eventfd(0, EFD_CLOEXEC), file[2], dir;
	struct kevent_change change = {
		.uk.req_flags = KEVENT_REQ_HANDOFF,
		.cmd = KEVENT_CTL_READY,
		.result = bell,
	};
	struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.changes = (__u64)(uintptr_t)&change, .nr_changes = 1,
	};
	struct kevent_queue q;
	struct ukevent ev[3];

	/* Numbers that no other table has */
	CHECK_EQ(pipe(file), 0);
	dir = open("/tmp", O_RDONLY | O_CLOEXEC);
	open_queue(&q);
	kevent_set_inode(&ev[0], dir, KEVENT_INODE_ATTRIB, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev[0]), 0);
	kevent_set_proc(&ev[0], pidfd, 0, 2);
	ev[0].event |= KEVENT_PROC_PIDFD;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev[0]), 0);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, &no_time, KEVENT_FLAGS_ARG, &arg), 0);
	CHECK_EQ(change.result, 0);
	kevent_queue_close(&q);
}

/* A look of the library at whether a file is an eventfd; behind it the number has another one. */
static int looks_left = -1, number, other_file;

char *strstr(const char *text, const char *word)
{
	size_t len = strlen(word);

	if (looks_left >= 0 && len > 7 && !strncmp(word + 1, "eventfd", 7) && !looks_left--)
		CHECK_EQ(dup2(other_file, number), number);
	for (; strncmp(text, word, len) != 0; text++)
		if (!*text)
			return NULL;
	return (char *)(uintptr_t)text;
}

static int hand_off_to(int queue, int fd)
{
	struct kevent_change change = {
		.uk.req_flags = KEVENT_REQ_HANDOFF,
		.cmd = KEVENT_CTL_READY,
		.result = fd,
	};
	struct kevent_wait_arg arg;

	kevent_wait_arg_init(&arg);
	arg.changes = (__u64)(uintptr_t)&change;
	arg.nr_changes = 1;
	CHECK_EQ(kevent_wait(queue, 1, 0, &no_time, KEVENT_FLAGS_ARG, &arg), 0);
	return change.result;
}

/* Each time another thread has another file by the number, a look later. */
static void hand_off_writes_to_no_other_file(void)
{
	struct kevent_queue q;
	__u64 rings;
	int i, bell;

	open_queue(&q);
	for (i = 0; i < 3; i++) {
		bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		number = dup(bell);
		other_file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		looks_left = i;
		CHECK_EQ(hand_off_to(q.fd, number), i ? 0 : -EINVAL);
		looks_left = -1;
		CHECK_EQ(lseek(other_file, 0, SEEK_END), 0);
		CHECK_EQ(read(bell, &rings, sizeof(rings)), i ? 8 : -1);
		close(bell);
		close(number);
		close(other_file);
	}
	kevent_queue_close(&q);
}

static void hand_off_needs_no_descriptor(void)
{
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct kevent_queue q;
	__u64 rings;

	open_queue(&q);
	limit_fds(0);
	CHECK_EQ(hand_off_to(q.fd, bell), 0);
	CHECK_EQ(read(bell, &rings, sizeof(rings)), 8);
	CHECK_EQ(hand_off_to(q.fd, 999), -EBADF);
}

/* A thread that is to end at the next cancellation point rings an eventfd. */
static void *ring_while_cancelled(void *arg)
{
	struct kevent_change change = {
		.uk.req_flags = KEVENT_REQ_HANDOFF,
		.cmd = KEVENT_CTL_READY,
		.result = eventfd(0, EFD_CLOEXEC),
	};
	struct kevent_wait_arg wait;
	struct kevent_queue *q = arg;

	kevent_wait_arg_init(&wait);
	wait.changes = (__u64)(uintptr_t)&change;
	wait.nr_changes = 1;
	pthread_cancel(pthread_self());
	CHECK_EQ(kevent_wait(q->fd, 1, 0, &no_time, KEVENT_FLAGS_ARG, &wait), 0);
	CHECK_EQ(change.result, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

static void calls_are_no_cancellation_points(void)
{
	struct kevent_queue q;
	pthread_t thread;
	void *ret;

	open_queue(&q);
	CHECK_EQ(pthread_create(&thread, NULL, ring_while_cancelled, &q), 0);
	CHECK_EQ(pthread_join(thread, &ret), 0);
	CHECK(ret == &q);
	kevent_queue_close(&q);
}

static pthread_t first;

static void *outlive_the_first(void *arg)
{
	(void)arg;
	pthread_join(first, NULL);
	/* It closes what it has a little later. */
	while (!access("/proc/self/fd/0", F_OK))
		nap();
	check_sources_by_number();
	fflush(stdout);
	_exit(failed);
}

static void process_goes_on_without_its_first_thread(void)
{
	pthread_t thread;

	first = pthread_self();
	CHECK_EQ(pthread_create(&thread, NULL, outlive_the_first, NULL), 0);
	pthread_exit(NULL);
}

static void *leave_the_table(void *arg)
{
	CHECK_EQ(unshare(CLONE_FILES), 0);
	check_sources_by_number();
	return arg;
}

static void thread_has_its_own_descriptors(void)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, leave_the_table, NULL), 0);
	pthread_join(thread, NULL);
}

/* The library does not see close(), but the next queues. */
static void plain_close_leaves_a_few_descriptors(void)
{
	int i, before = open_fds();
	struct kevent_queue q;

	for (i = 0; i < 100; i++) {
		open_queue(&q);
		close(q.fd);
	}
	CHECK(open_fds() - before < 10);
}

/* Both numbers of each come to be other files, and no call asks for them. */
static void plain_close_of_copies_leaves_a_few_descriptors(void)
{
	struct kevent_queue other, q;
	int i, copy, before;

	open_queue(&other);
	before = open_fds();
	for (i = 0; i < 100; i++) {
		open_queue(&q);
		copy = dup(q.fd);
		CHECK_EQ(look(copy), 0);
		CHECK_EQ(dup2(0, q.fd), q.fd);
		CHECK_EQ(dup2(0, copy), copy);
	}
	CHECK(open_fds() - before - 2 * i < 10);
}

/* Two threads have found that a number is the queue's. */
static void name_that_is_given_twice_is_one(void)
{
	struct kevent_queue q;
	struct fb_queue *found;

	open_queue(&q);
	found = fb_get(q.fd);
	CHECK_EQ(fb_publish(q.fd, found), 0);
	fb_put(found);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	kevent_queue_close(&q);
}

static void copy_of_the_descriptor_is_the_queue(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int copy;

	open_queue(&q);
	copy = dup(q.fd);
	CHECK_EQ(add_mark(copy, 0), 0);
	CHECK_EQ(add_mark(q.fd, 0), -EEXIST);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(mark(copy, 0), 1);
	CHECK_EQ(kevent_get_events(copy, 1, 1, &no_time, &ev, 0), 1);
	kevent_fb_close(copy);
}

/* A level event of a file that only a copy of its descriptor keeps open */
static void lost_file_does_not_keep_a_wait_awake(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2], copy;
	long long cpu;

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	copy = dup(fd[0]);
	close(fd[0]);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -EBADF);
	CHECK_EQ(write(fd[1], "", 1), 1);
	cpu = cpu_ms();
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &a_while), 0);
	CHECK(cpu_ms() - cpu < 20);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &patience), 1);
	CHECK_EQ(ev.ptr, 1);
	close(copy);
	kevent_queue_close(&q);
}

/* A program may only ever pop. */
static void pop_finds_what_came(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2], i, nr;

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_REQ_ET), 0);
	for (i = 0; i < 10; i++) {
		CHECK_EQ(write(fd[1], "", 1), 1);
		nr = kevent_queue_pop(&q, &ev, 1);
		nr += kevent_queue_pop(&q, &ev, 1);
		CHECK_EQ(nr, 1);
	}
	kevent_queue_close(&q);
}

#define MARKS	20000U

static struct kevent_queue shared;

static void *make_marks(void *arg)
{
	__u64 from = (__u64)(unsigned long)arg * MARKS, i;

	for (i = 0; i < MARKS; i++)
		while (mark(shared.fd, from + i) == -EAGAIN)
			nap();
	return NULL;
}

#define KEPT	65536U

/* No walk from the first of them to each: that is 2 billion steps. */
static void kept_marks_are_delivered_one_by_one(void)
{
	struct ukevent *ev = calloc(KEPT, sizeof(*ev));
	struct kevent_queue q;
	long long start;
	__u32 i;

	open_queue(&q);
	CHECK_EQ(add_mark(q.fd, KEVENT_REQ_KEEP_EACH), 0);
	for (i = 0; i < KEPT; i++)
		if (mark(q.fd, i) != 1)
			FAIL("marked");
	start = cpu_ms();
	CHECK_EQ(kevent_get_events(q.fd, KEPT, KEPT, NULL, ev, 0), KEPT);
	CHECK(cpu_ms() - start < 1000);
	for (i = 0; i < KEPT; i++)
		if (kevent_mark_data(&ev[i]) != i)
			CHECK_EQ(kevent_mark_data(&ev[i]), i);
	kevent_queue_close(&q);
	free(ev);
}

static unsigned char seen[2 * MARKS];
static unsigned int taken;

static void *take_marks(void *arg)
{
	struct ukevent ev[4];
	int i, nr;

	(void)arg;
	while (__atomic_load_n(&taken, __ATOMIC_RELAXED) < 2 * MARKS) {
		nr = kevent_queue_get(&shared, ev, 4, &a_while);
		/* It frees nothing, and fills the ring. */
		CHECK_EQ(kevent_commit(shared.fd, 0, 0), 0);
		for (i = 0; i < nr; i++)
			__atomic_add_fetch(&seen[kevent_mark_data(&ev[i])], 1,
					   __ATOMIC_RELAXED);
		if (nr > 0) {
			__atomic_add_fetch(&taken, (unsigned int)nr,
					   __ATOMIC_RELAXED);
			next_round();
		}
	}
	return NULL;
}

static void threads_share_a_queue(void)
{
	pthread_t thread[4];
	unsigned long i;

	open_queue(&shared);
	CHECK_EQ(add_mark(shared.fd, KEVENT_REQ_KEEP_EACH), 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, i < 2 ? make_marks :
					take_marks, (void *)(i % 2)), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 2 * MARKS; i++)
		if (seen[i] != 1)
			CHECK_EQ(seen[i], 1);
	kevent_queue_close(&shared);
}

/* Waits until so many threads sleep in calls of the queue. */
static void await_sleepers(int queue, int nr)
{
	while (kevent_fb_info(queue, "kevent-waiting") != nr)
		nap();
}

static bool in_call(int thread, long call)
{
	char path[48];
	long nr = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &nr) != 1)
		nr = -1;
	if (file)
		fclose(file);
	return nr == call;
}

/* Waits until so many threads of the process sleep in that call. */
static void await_calls(long call, int nr)
{
	struct dirent *thread;
	int found = -1;
	DIR *dir;

	while (found != nr) {
		nap();
		found = 0;
		dir = opendir("/proc/self/task");
		while ((thread = readdir(dir)))
			found += in_call(atoi(thread->d_name), call);
		closedir(dir);
	}
}

/* As await_sleepers(), and they have no need of the descriptor any more. */
static void await_epoll(int nr)
{
	await_calls(SYS_epoll_pwait, nr);
}

static int setter, was_set;

static void *stop_a_timer(void *arg)
{
	static const struct itimerspec never;
	const int *id = arg;

	__atomic_store_n(&setter, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	CHECK_EQ(kevent_timer_settime(*id, 0, &never, NULL), 0);
	__atomic_store_n(&was_set, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Of a call that the thread makes, and not of one to create it */
static bool setter_sleeps(void)
{
	int thread = __atomic_load_n(&setter, __ATOMIC_SEQ_CST);

	return thread && in_call(thread, SYS_futex);
}

/*
 * An expiry is under way where the user may have no more signals. The thread that takes them is at
 * a timer of another queue, which is locked.
 */
static void timer_is_set_behind_its_expiry(void)
{
	static const struct itimerspec soon = { .it_value.tv_nsec = 1 };
	int other, barrier, id;
	struct fb_queue *found;
	struct rlimit limit;
	struct kevent_queue q;
	pthread_t thread;

	open_queue(&q);
	other = kevent_init(NULL, 0, 0);
	barrier = kevent_timer_create(other, CLOCK_MONOTONIC, 1);
	id = kevent_timer_create(q.fd, CLOCK_MONOTONIC, 2);
	CHECK(barrier >= 0 && id >= 0);
	getrlimit(RLIMIT_SIGPENDING, &limit);
	limit.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
	found = fb_get(other);
	fb_queue_lock(found, -1);
	CHECK_EQ(syscall(SYS_TIMER_SETTIME, barrier, 0, &soon, NULL), 0);
	await_calls(SYS_futex, 1);
	CHECK_EQ(kevent_timer_settime(id, 0, &soon, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, stop_a_timer, &id), 0);
	while (!setter_sleeps() && !__atomic_load_n(&was_set, __ATOMIC_SEQ_CST))
		nap();
	CHECK(!__atomic_load_n(&was_set, __ATOMIC_SEQ_CST));
	fb_queue_unlock(found);
	fb_put(found);
	pthread_join(thread, NULL);
	CHECK_EQ(look(q.fd), 0);
	kevent_queue_close(&q);
}

#define ROUNDS	2000U

static unsigned int begun;

/* In each round one */
static void *take_ones(void *arg)
{
	struct ukevent ev;
	unsigned int i;

	(void)arg;
	for (i = 1; i <= ROUNDS; i++) {
		CHECK_EQ(kevent_queue_get(&shared, &ev, 1, NULL), 1);
		__atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) <= i && i < ROUNDS)
			nap();
	}
	return NULL;
}

/*
 * A call that stores both entries takes one of them. If no thread is woken for the other one, the
 * alarm ends the test.
 */
static void each_entry_ends_a_call(void)
{
	pthread_t thread[2];
	struct ukevent ev[2];
	unsigned int i;

	open_queue(&shared);
	for (i = 0; i < 2; i++) {
		kevent_set_user(&ev[i], i, 1, 0, i);
		CHECK_EQ(kevent_ctl_one(shared.fd, KEVENT_CTL_ADD, &ev[i]), 0);
		CHECK_EQ(pthread_create(&thread[i], NULL, take_ones, NULL), 0);
	}
	for (i = 0; i < ROUNDS; i++) {
		next_round();
		__atomic_store_n(&begun, i + 1, __ATOMIC_SEQ_CST);
		if (i % 2)
			await_sleepers(shared.fd, 2);
		CHECK_EQ(kevent_ctl(shared.fd, KEVENT_CTL_READY, 2, ev), 2);
		while (__atomic_load_n(&taken, __ATOMIC_SEQ_CST) < 2 * (i + 1))
			nap();
	}
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	kevent_queue_close(&shared);
}

#define MANY	4
#define ASKED	5000U	/* rounds */

/* In each round one */
static void *take_requests(void *arg)
{
	struct ukevent ev;
	unsigned int i;

	(void)arg;
	for (i = 1; i <= ASKED; i++) {
		CHECK_EQ(kevent_queue_get(&shared, &ev, 1, NULL), 0);
		__atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) <= i && i < ASKED)
			nap();
	}
	return NULL;
}

/*
 * Each request but the first comes as soon as fewer threads sleep. It is for one of those that
 * do, whatever others do; the alarm ends a test where it is for nobody.
 */
static void each_request_ends_a_sleep(void)
{
	pthread_t thread[MANY];
	unsigned int i, looks;
	int left;

	open_queue(&shared);
	for (i = 0; i < MANY; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, take_requests, NULL), 0);
	for (i = 0; i < ASKED; i++) {
		next_round();
		__atomic_store_n(&begun, i + 1, __ATOMIC_SEQ_CST);
		await_sleepers(shared.fd, MANY);
		for (left = MANY; left; left--) {
			CHECK_EQ(kevent_ctl(shared.fd, KEVENT_CTL_READY, 0, NULL), 0);
			for (looks = 0; kevent_fb_info(shared.fd, "kevent-waiting") >= left;)
				if (++looks > 100)
					nap();
		}
		while (__atomic_load_n(&taken, __ATOMIC_SEQ_CST) < MANY * (i + 1))
			nap();
	}
	for (i = 0; i < MANY; i++)
		pthread_join(thread[i], NULL);
	kevent_queue_close(&shared);
}

static void *wait_for_one(void *arg)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(&shared, &ev, 1, NULL), 1);
	(void)arg;
	return NULL;
}

static void *wait_for_none(void *arg)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(&shared, &ev, 1, NULL), 0);
	return arg;
}

/* Also a new queue, which has the memory and the number of the old one, does not end waits. */
static void waits_end_until_the_queue_is_closed(void)
{
	struct pollfd p = { .events = POLLIN };
	pthread_t thread[MANY];
	struct ukevent ev;
	unsigned int i;

	open_queue(&shared);
	p.fd = shared.fd;
	for (i = 0; i < MANY; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_for_none, NULL), 0);
	await_sleepers(shared.fd, MANY);
	CHECK_EQ(kevent_wake_all(shared.fd), 0);
	for (i = 0; i < MANY; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(kevent_wake(shared.fd), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(add_mark(shared.fd, 0), 0);
	CHECK_EQ(mark(shared.fd, 1), 1);
	CHECK_EQ(kevent_queue_get(&shared, &ev, 1, NULL), 1);
	CHECK_EQ(kevent_queue_get(&shared, &ev, 1, NULL), 0);
	kevent_queue_close(&shared);
	open_queue(&shared);
	CHECK_EQ(p.fd, shared.fd);
	CHECK_EQ(add_mark(shared.fd, 0), 0);
	CHECK_EQ(pthread_create(&thread[0], NULL, wait_for_one, NULL), 0);
	await_sleepers(shared.fd, 1);
	CHECK_EQ(mark(shared.fd, 1), 1);
	pthread_join(thread[0], NULL);
	kevent_queue_close(&shared);
}

static void *wait_for_several(void *arg)
{
	struct kevent_wait_arg wait;

	(void)arg;
	kevent_wait_arg_init(&wait);
	wait.min_nr = 2;
	CHECK_EQ(kevent_wait(shared.fd, SIZE, 0, NULL, KEVENT_FLAGS_ARG, &wait),
		 2);
	return NULL;
}

static void too_few_for_one_are_for_another(void)
{
	pthread_t one, several;

	open_queue(&shared);
	CHECK_EQ(add_mark(shared.fd, KEVENT_REQ_KEEP_EACH), 0);
	CHECK_EQ(pthread_create(&one, NULL, wait_for_one, NULL), 0);
	await_sleepers(shared.fd, 1);
	CHECK_EQ(pthread_create(&several, NULL, wait_for_several, NULL), 0);
	await_sleepers(shared.fd, 2);
	CHECK_EQ(mark(shared.fd, 1), 1);
	pthread_join(one, NULL);
	CHECK_EQ(mark(shared.fd, 2), 1);
	pthread_join(several, NULL);
	kevent_queue_close(&shared);
}

/* A newer one takes each of them. */
static void several_are_there_whoever_takes_them(void)
{
	pthread_t one, several;
	__u64 i;

	open_queue(&shared);
	CHECK_EQ(add_mark(shared.fd, KEVENT_REQ_KEEP_EACH), 0);
	CHECK_EQ(pthread_create(&several, NULL, wait_for_several, NULL), 0);
	await_sleepers(shared.fd, 1);
	CHECK_EQ(pthread_create(&one, NULL, wait_for_one, NULL), 0);
	for (i = 1; i < 3; i++) {
		await_sleepers(shared.fd, 2);
		CHECK_EQ(mark(shared.fd, i), 1);
		pthread_join(one, NULL);
		if (i < 2)
			CHECK_EQ(pthread_create(&one, NULL, wait_for_one, NULL), 0);
	}
	pthread_join(several, NULL);
	kevent_queue_close(&shared);
}

#define HERDS	500U

/* A collection is limited to fewer than the caller waits for. */
static void fewer_at_a_time_are_enough(void)
{
	struct kevent_wait_arg wait;
	struct kevent_queue q;

	open_queue(&q);
	CHECK_EQ(add_mark(q.fd, KEVENT_REQ_KEEP_EACH), 0);
	CHECK_EQ(mark(q.fd, 1), 1);
	CHECK_EQ(mark(q.fd, 2), 1);
	kevent_wait_arg_init(&wait);
	wait.min_nr = 2;
	CHECK_EQ(kevent_wait(q.fd, 1, 0, NULL, KEVENT_FLAGS_ARG, &wait), 2);
	kevent_queue_close(&q);
}

static void commit_leaves_wake_requests(void)
{
	struct kevent_queue q;

	open_queue(&q);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	CHECK_EQ(kevent_wait(q.fd, 1, 0, NULL, 0, NULL), 0);
	kevent_queue_close(&q);
}

static void *take_one(void *arg)
{
	const int *queue = arg;
	struct ukevent ev;

	CHECK_EQ(kevent_get_events(*queue, 1, 1, NULL, &ev, 0), 1);
	return NULL;
}

/* The newest sleeper has a buffer: an entry in the ring is nothing to it. */
static void commit_is_for_those_with_the_ring(void)
{
	pthread_t ring, plain[2];
	int fd[2], i;

	open_queue(&shared);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(shared.fd, fd[0], 0), 0);
	CHECK_EQ(pthread_create(&ring, NULL, wait_for_one, NULL), 0);
	for (i = 0; i < 2; i++) {
		await_sleepers(shared.fd, i + 1);
		CHECK_EQ(pthread_create(&plain[i], NULL, take_one,
					&shared.fd), 0);
	}
	await_sleepers(shared.fd, 3);
	/* One of these two takes it, and leaves the pipe as it is. */
	CHECK_EQ(write(fd[1], "", 1), 1);
	await_sleepers(shared.fd, 2);
	CHECK_EQ(kevent_commit(shared.fd, 0, 0), 0);
	pthread_join(ring, NULL);
	CHECK_EQ(write(fd[1], "", 1), 1);
	for (i = 0; i < 2; i++)
		pthread_join(plain[i], NULL);
	kevent_queue_close(&shared);
}

static void *wait_for_room(void *arg)
{
	(void)arg;
	CHECK_EQ(kevent_wait(shared.fd, SIZE, SIZE, NULL, 0, NULL), 0);
	return NULL;
}

/* The newest sleeper finds the ring full. */
static void full_ring_hands_the_event_on(void)
{
	pthread_t plain[2], ring;
	__u64 i;

	open_queue(&shared);
	CHECK_EQ(add_mark(shared.fd, KEVENT_REQ_KEEP_EACH), 0);
	for (i = 0; i < SIZE; i++)
		CHECK_EQ(mark(shared.fd, i), 1);
	CHECK_EQ(kevent_wait(shared.fd, SIZE, 0, &no_time, 0, NULL), SIZE);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(pthread_create(&plain[i], NULL, take_one, &shared.fd), 0);
		await_sleepers(shared.fd, (int)i + 1);
	}
	CHECK_EQ(pthread_create(&ring, NULL, wait_for_room, NULL), 0);
	await_sleepers(shared.fd, 3);
	for (i = 0; i < 2; i++)
		CHECK_EQ(mark(shared.fd, i), 1);
	for (i = 0; i < 2; i++)
		pthread_join(plain[i], NULL);
	CHECK_EQ(kevent_ctl(shared.fd, KEVENT_CTL_READY, 0, NULL), 0);
	pthread_join(ring, NULL);
	kevent_queue_close(&shared);
}

/* --- in a child ------------------------------------------------------------- */

/* Opens queues until each number of the parent's was used. */
static int child_closes(struct kevent_queue *q, int how)
{
	int fds = open_fds();

	failed = 0;
	if (how)
		kevent_queue_close(q);
	else
		close(q->fd);
	check_queue_works();
	check_queue_works();
	/* Epoll, kick, timer, second epoll, inotify, pidfd, and three for signals */
	CHECK_EQ(open_fds(), fds - 9);
	fflush(stdout);
	return failed;
}

static void expect(struct kevent_queue *q, __u64 user)
{
	struct ukevent ev = { .ptr = 0 };

	CHECK_EQ(kevent_queue_get(q, &ev, 1, &patience), 1);
	CHECK_EQ(ev.ptr, user);
}

/* @locked: a thread was in a call when the child was made */
static void child_leaves_watches_alone(int how, bool locked)
{
	struct kevent_queue q;
	struct fb_queue *found;
	int fd[2], file[2], i;
	struct ukevent ev;

	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	add_all(q.fd, fd);
	for (i = 0; i < 2; i++) {
		file[i] = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		kevent_set_inode(&ev, file[i], KEVENT_INODE_MODIFY, 0,
				 10 + (__u64)i);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	}
	kevent_set_signal(&ev, SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, 9);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	/* Nobody has taken it when the child closes its copy. */
	CHECK_EQ(write(file[0], "a", 1), 1);
	found = fb_get(q.fd);
	if (locked)
		fb_queue_lock(found, -1);
	fflush(stdout);
	if (!fork())
		_exit(child_closes(&q, how));
	if (locked)
		fb_queue_unlock(found);
	fb_put(found);
	wait_for_child();
	CHECK_EQ(write(file[1], "a", 1), 1);
	expect(&q, 10);
	expect(&q, 11);
	kill(getpid(), SIGUSR1);
	expect(&q, 9);
	CHECK_EQ(write(fd[1], "a", 1), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &patience), 1);
	CHECK(ev.ptr == 3 || ev.ptr == 6);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &patience), 1);
	CHECK(ev.ptr == 3 || ev.ptr == 6);
	kevent_queue_close(&q);
}

static void child_that_closes_leaves_watches_alone(void)
{
	child_leaves_watches_alone(1, false);
}

static void child_of_a_locked_queue_closes_all_of_it(void)
{
	child_leaves_watches_alone(1, true);
}

static void child_that_uses_the_number_leaves_watches_alone(void)
{
	child_leaves_watches_alone(0, false);
}

/* Threads of the parent are in calls, and its queue has a thread of its own. */
static void child_closes_what_sleepers_have(void)
{
	static __u32 word;
	struct kevent_queue q;
	struct ukevent ev;
	pthread_t thread;
	int fds;

	open_queue(&q);
	kevent_set_futex(&ev, &word, 0, KEVENT_FUTEX_PRIVATE, 0, 5);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, take_one, &q.fd), 0);
	fflush(stdout);
	if (!fork()) {
		fds = open_fds();
		kevent_queue_close(&q);
		CHECK_EQ(open_fds(), fds - 2);
		check_queue_works();
		fflush(stdout);
		_exit(failed);
	}
	wait_for_child();
	CHECK_EQ(mark(q.fd, 0), 1);
	pthread_join(thread, NULL);
	kevent_queue_close(&q);
}

/* The number of the parent's queue is that of a pipe. */
static void child_forgets_numbers(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2];

	open_queue(&q);
	fflush(stdout);
	if (!fork()) {
		CHECK_EQ(add_mark(q.fd, 0), -EXDEV);
		CHECK(!strcmp(kevent_backend(q.fd), "epoll"));
		close(q.fd);
		CHECK_EQ(pipe(fd), 0);
		CHECK_EQ(fd[0], q.fd);
		CHECK(!kevent_backend(q.fd));
		CHECK_EQ(add_mark(q.fd, 0), -EINVAL);
		CHECK_EQ(kevent_get_events(q.fd, 1, 1, &no_time, &ev, 0),
			 -EINVAL);
		check_open(fd[0], true);
		check_open(fd[1], true);
		fflush(stdout);
		_exit(failed);
	}
	wait_for_child();
	CHECK_EQ(add_mark(q.fd, 0), 0);
	kevent_queue_close(&q);
}

/*
 * A thread of the parent frees a watch while another one is in fork(): the child may have the
 * record of its descriptor, and something else in its memory.
 */
static void child_writes_to_no_memory_of_its_parent(void)
{
	const int other = 77;
	struct fb_queue *found;
	struct kevent_queue q;
	int at, fd;

	open_queue(&q);
	found = fb_get(q.fd);
	CHECK_EQ(fb_own(found, &at, eventfd(0, EFD_CLOEXEC), "[eventfd]"), 0);
	fd = at;
	fflush(stdout);
	if (!fork()) {
		at = other;
		/* The number comes back. */
		close(fd);
		kevent_fb_lost(fd);
		CHECK_EQ(at, other);
		fflush(stdout);
		_exit(failed);
	}
	wait_for_child();
	kevent_fb_lost(fd);
	CHECK_EQ(at, -1);
	fb_put(found);
	kevent_queue_close(&q);
	close(fd);
}

#define FORKS	60

static int forks_end;

static void *open_and_close(void *arg)
{
	int queue;

	(void)arg;
	while (!__atomic_load_n(&forks_end, __ATOMIC_RELAXED)) {
		queue = kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY);
		add_mark(queue, 0);
		kevent_fb_close(queue);
		close(queue);
	}
	return NULL;
}

static void *change_watches(void *arg)
{
	const int *queue = arg;
	struct ukevent ev[64];
	__u32 i;

	while (!__atomic_load_n(&forks_end, __ATOMIC_RELAXED)) {
		for (i = 0; i < ARRAY_SIZE(ev); i++)
			kevent_set_user(&ev[i], 100 + i, 1, 0, 1);
		kevent_ctl(*queue, KEVENT_CTL_ADD, ARRAY_SIZE(ev), ev);
		kevent_ctl(*queue, KEVENT_CTL_REMOVE, ARRAY_SIZE(ev), ev);
	}
	return NULL;
}

/* Other threads of the parent may hold any lock at fork(). */
static void child_never_waits_for_its_parent(void)
{
	struct kevent_queue q;
	pthread_t thread[2];
	int i;

	open_queue(&q);
	for (i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, i ? open_and_close :
					change_watches, &q.fd), 0);
	for (i = 0; i < FORKS && !failed; i++) {
		fflush(stdout);
		if (!fork()) {
			alarm(10);
			if (i % 2)
				kevent_queue_close(&q);
			else
				close(q.fd);
			check_queue_works();
			kevent_backend(99);
			fflush(stdout);
			_exit(failed);
		}
		wait_for_child();
	}
	__atomic_store_n(&forks_end, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	kevent_queue_close(&q);
}

/* An entry that needs a descriptor says so, and can be added when there is one. */
static void watch_without_a_descriptor_is_emfile(void)
{
	const struct rlimit none = { 0, 1024 }, some = { 1024, 1024 };
	int folder = open("/tmp", O_RDONLY);
	struct kevent_queue q;
	struct ukevent ev[4], refused;
	int i;

	open_queue(&q);
	kevent_set_proc(&ev[0], getppid(), 0, 1);
	kevent_set_timer(&ev[1], 1000000000, 0, 0, 0, 2);
	kevent_set_signal(&ev[2], SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, 3);
	kevent_set_inode(&ev[3], folder, KEVENT_INODE_MODIFY, 0, 4);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
		refused = ev[i];
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &refused), -EMFILE);
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &some), 0);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev[i]), 0);
	}
	kevent_queue_close(&q);
	close(folder);
}

static void failed_modify_leaves_the_watch(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	__u32 flags;

	open_queue(&q);
	for (flags = 0; flags < 2; flags++) {
		kevent_set_timer(&ev, 100000000, 0, 0, flags ? KEVENT_REQ_DISABLED : 0,
				 1 + flags);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	}
	limit_fds(0);
	for (flags = 0; flags < 2; flags++) {
		kevent_set_timer(&ev, 1, 0,
				 KEVENT_TIMER_REALTIME | KEVENT_TIMER_ABSTIME,
				 flags ? 0 : KEVENT_REQ_DISABLED, 1 + flags);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -EMFILE);
	}
	ev.event = 0;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), 1);
	/* The first is still armed, and the second is not. */
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &patience, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 1);
	CHECK_EQ(look(q.fd), 0);
	kevent_queue_close(&q);
}

/*
 * The file stays ready, so each of them has an event, also one that was woken,
 * found the event taken and is about to sleep again.
 */
static void level_event_for_all_is_for_each(void)
{
	pthread_t thread[4];
	unsigned int n, i;
	int queue, fd[2];

	setenv("KEVENT_BACKEND", "epoll", 1);
	for (n = 0; n < HERDS; n++) {
		next_round();
		queue = kevent_init(NULL, 0, 0);
		CHECK_EQ(pipe(fd), 0);
		CHECK_EQ(add_pipe(queue, fd[0], KEVENT_REQ_WAKEUP_ALL), 0);
		for (i = 0; i < ARRAY_SIZE(thread); i++)
			CHECK_EQ(pthread_create(&thread[i], NULL, take_one,
						&queue), 0);
		CHECK_EQ(write(fd[1], "", 1), 1);
		for (i = 0; i < ARRAY_SIZE(thread); i++)
			pthread_join(thread[i], NULL);
		close(fd[0]);
		close(fd[1]);
		close(queue);
	}
}

static int readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0);
}

#define LEVEL_LOOKS	5000

static void *look_again_and_again(void *arg)
{
	const int *queue = arg;
	int i, missed = 0, unreadable = 0;

	for (i = 0; i < LEVEL_LOOKS; i++) {
		next_round();
		missed += look(*queue) != 1;
		unreadable += readable(*queue) != 1;
		if (i % 2)
			take_one(arg);
	}
	CHECK_EQ(missed, 0);
	CHECK_EQ(unreadable, 0);
	return NULL;
}

/* Other threads that poll the queue, or begin to wait, do not hide the watch. */
static void level_watch_is_seen_by_each_look(void)
{
	struct kevent_queue q;
	pthread_t thread[3];
	unsigned int i;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, look_again_and_again,
					&q.fd), 0);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	kevent_queue_close(&q);
}

/* So the queue has been kicked, and the kick was taken. */
static void open_marked_queue(struct kevent_queue *q)
{
	struct ukevent ev;

	open_queue(q);
	CHECK_EQ(add_mark(q->fd, KEVENT_REQ_ET), 0);
	CHECK_EQ(mark(q->fd, 0), 1);
	CHECK_EQ(kevent_queue_get(q, &ev, 1, &no_time), 1);
	CHECK_EQ(readable(q->fd), 0);
}

static void mark_of_nothing_leaves_no_kick(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2];

	open_marked_queue(&q);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(readable(q.fd), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	kevent_set_mark(&ev, 2, 1, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), -ENOENT);
	CHECK_EQ(readable(q.fd), 0);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, KEVENT_CTL_MAX + 1, &ev), -EINVAL);
	CHECK_EQ(readable(q.fd), 0);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 1);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), 1);
	CHECK_EQ(readable(q.fd), 0);
	kevent_queue_close(&q);
}

static void mark_with_an_old_number_is_refused(void)
{
	struct kevent_queue q;
	int copy;

	open_marked_queue(&q);
	copy = dup(q.fd);
	CHECK_EQ(look(copy), 0);
	CHECK_EQ(close(q.fd), 0);
	CHECK_EQ(epoll_create1(EPOLL_CLOEXEC), q.fd);
	CHECK_EQ(mark(q.fd, 0), -EINVAL);
	CHECK_EQ(look(copy), 0);
	CHECK_EQ(mark(copy, 0), 1);
	CHECK_EQ(look(copy), 1);
	kevent_fb_close(copy);
}

/* The descriptor that was used last is closed; a call sleeps by another one. */
static void kick_needs_no_open_descriptor(void)
{
	static __u32 word;
	struct kevent_queue q;
	struct ukevent ev;
	pthread_t thread;
	int copy;

	open_marked_queue(&q);
	kevent_set_futex(&ev, &word, 0, KEVENT_FUTEX_PRIVATE, 0, 5);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	copy = dup(q.fd);
	CHECK_EQ(pthread_create(&thread, NULL, take_one, &copy), 0);
	while (kevent_fb_info(q.fd, "kevent-waiting") != 1)
		nap();
	CHECK_EQ(close(q.fd), 0);
	/* The thread of the library may not wait for the word yet. */
	while (!syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL,
			NULL, 0))
		nap();
	pthread_join(thread, NULL);
	CHECK_EQ(mark(copy, 0), 1);
	CHECK_EQ(look(copy), 1);
	close(copy);
}

static void close_of_a_copy_leaves_level_watches(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	pthread_t thread;
	int copy, fd[2];

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	copy = dup(q.fd);
	CHECK_EQ(pthread_create(&thread, NULL, take_one, &copy), 0);
	await_epoll(1);
	/* From now on epoll has edges while a call sleeps. */
	CHECK_EQ(look(q.fd), 0);
	CHECK_EQ(close(copy), 0);
	CHECK_EQ(write(fd[1], "", 1), 1);
	pthread_join(thread, NULL);
	CHECK_EQ(look(q.fd), 1);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	kevent_queue_close(&q);
}

static void do_nothing(int signal)
{
	(void)signal;
}

static void *sleep_until_a_signal(void *arg)
{
	const int *queue = arg;
	struct ukevent ev;

	CHECK_EQ(kevent_get_events(*queue, 1, 1, NULL, &ev, 0), -EINTR);
	return NULL;
}

/*
 * A thread sleeps in a queue that is closed, and the new queue has its number. The watch of the
 * old one was delivered to another thread: it is polled when the call ends.
 */
static void sleeper_leaves_a_new_queue_alone(void)
{
	const struct sigaction action = { .sa_handler = do_nothing };
	pthread_t sleeper, other;
	struct kevent_queue q;
	int queue, fd[2];

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	queue = q.fd;
	CHECK_EQ(add_pipe(queue, fd[0], 0), 0);
	CHECK_EQ(pthread_create(&sleeper, NULL, sleep_until_a_signal, &queue), 0);
	await_epoll(1);
	/* The newest sleeper is woken. */
	CHECK_EQ(pthread_create(&other, NULL, take_one, &queue), 0);
	await_epoll(2);
	CHECK_EQ(write(fd[1], "", 1), 1);
	pthread_join(other, NULL);
	await_epoll(1);
	kevent_queue_close(&q);
	open_queue(&q);
	CHECK_EQ(q.fd, queue);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_REQ_ET), 0);
	CHECK_EQ(add_mark(q.fd, 0), 0);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(pthread_kill(sleeper, SIGUSR1), 0);
	pthread_join(sleeper, NULL);
	CHECK_EQ(readable(q.fd), 1);
	CHECK_EQ(look(q.fd), 1);
	CHECK_EQ(look(q.fd), 1);
	CHECK_EQ(mark(q.fd, 0), 1);
	CHECK_EQ(look(q.fd), 1);
	/* The watch of the pipe is still one of edges. */
	CHECK_EQ(look(q.fd), 0);
	kevent_queue_close(&q);
}

/* Two calls sleep, and one of them is woken; looks of others do not wake the other one. */
static void look_beside_a_sleeper(void)
{
	unsigned int i, missed = 0;
	struct kevent_queue q;
	pthread_t thread[2];
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, take_one, &q.fd), 0);
	while (kevent_fb_info(q.fd, "kevent-waiting") != 2)
		nap();
	CHECK_EQ(write(fd[1], "", 1), 1);
	while (kevent_fb_info(q.fd, "kevent-waiting") != 1)
		nap();
	for (i = 0; i < 10; i++)
		missed += look(q.fd) != 1;
	CHECK_EQ(missed, 0);
	CHECK_EQ(kevent_fb_info(q.fd, "kevent-waiting"), 1);
	CHECK_EQ(write(fd[1], "", 1), 1);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	kevent_queue_close(&q);
	close(fd[0]);
	close(fd[1]);
}

static void level_watch_is_seen_beside_a_sleeper(void)
{
	unsigned int i;

	for (i = 0; i < HERDS && !failed; i++) {
		next_round();
		look_beside_a_sleeper();
	}
}

/* Another call came while one slept; now none does. */
/* The program takes two of five entries before it has more stored. */
static void level_watches_take_turns_in_the_ring(void)
{
	unsigned int counts[5] = { 0 }, i, took;
	struct kevent_queue q;
	struct ukevent ev;
	int fd[2];

	open_queue(&q);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		CHECK_EQ(pipe(fd), 0);
		kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, i);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
		CHECK_EQ(write(fd[1], "", 1), 1);
	}
	for (took = 0; took < 30 * ARRAY_SIZE(counts); took++) {
		if (took % 2 == 0)
			kevent_wait(q.fd, SIZE, (__u32)q.ring->ring_kidx, &no_time, 0, NULL);
		CHECK_EQ(kevent_ring_next(q.ring, SIZE, &ev), 1);
		counts[ev.ptr % ARRAY_SIZE(counts)]++;
	}
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		CHECK_EQ(counts[i], 30);
	kevent_queue_close(&q);
}

static void level_watch_shows_after_a_sleep(void)
{
	struct kevent_queue q;
	pthread_t thread;
	int i, fd[2];
	char byte;

	open_queue(&q);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], 0), 0);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, take_one, &q.fd), 0);
		while (kevent_fb_info(q.fd, "kevent-waiting") != 1)
			nap();
		CHECK_EQ(look(q.fd), 0);
		CHECK_EQ(write(fd[1], "", 1), 1);
		pthread_join(thread, NULL);
		CHECK_EQ(readable(q.fd), 1);
		CHECK_EQ(look(q.fd), 1);
		CHECK_EQ(readable(q.fd), 1);
		CHECK_EQ(read(fd[0], &byte, 1), 1);
		CHECK_EQ(readable(q.fd), 0);
		CHECK_EQ(look(q.fd), 0);
	}
	kevent_queue_close(&q);
}

/* Does the epoll instance of the queue have that number? */
static bool epoll_has(int queue, int fd)
{
	char path[40], line[80], want[16];
	bool found = false;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", queue);
	snprintf(want, sizeof(want), "tfd: %8d ", fd);
	info = fopen(path, "r");
	while (info && fgets(line, sizeof(line), info))
		found |= !strncmp(line, want, strlen(want));
	if (info)
		fclose(info);
	return found;
}

/* Changes when a call takes an event of no watch. */
static __u64 strays(int queue)
{
	struct fb_queue *found = fb_get(queue);
	__u64 ret;

	fb_queue_lock(found, -1);
	ret = found->stray.token + found->stray.nr;
	fb_queue_unlock(found);
	fb_put(found);
	return ret;
}

/*
 * The queue gets a new instance, as events of a file come that none of its watches has.
 * So many threads sleep in the old one.
 */
static void lose_a_file(int queue, int sleepers)
{
	int bell = eventfd(0, EFD_CLOEXEC), copy = dup(bell);
	struct ukevent ev;
	__u64 before;

	kevent_set_poll(&ev, bell, KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 0);
	CHECK_EQ(kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev), 0);
	close(bell);
	CHECK_EQ(kevent_ctl_one(queue, KEVENT_CTL_REMOVE, &ev), -EBADF);
	while (epoll_has(queue, bell)) {
		before = strays(queue);
		await_epoll(sleepers);
		CHECK_EQ(write(copy, &(__u64){ 1 }, 8), 8);
		if (!sleepers)
			look(queue);
		while (strays(queue) == before)
			nap();
	}
	close(copy);
}

/* They were asleep in the old one. The alarm ends a test with one that is not woken. */
static void new_instance_is_for_all_sleepers(void)
{
	pthread_t thread[3];
	unsigned int i;

	open_queue(&shared);
	CHECK_EQ(add_mark(shared.fd, KEVENT_REQ_KEEP_EACH), 0);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_for_one, NULL), 0);
	lose_a_file(shared.fd, ARRAY_SIZE(thread));
	await_sleepers(shared.fd, ARRAY_SIZE(thread));
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		CHECK_EQ(mark(shared.fd, i), 1);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	kevent_queue_close(&shared);
}

/* Each of two watches of the pipe has an event. */
static void check_both(int queue, const int *fd)
{
	char byte;

	CHECK_EQ(write(fd[1], "", 1), 1);
	CHECK_EQ(look(queue), 1);
	CHECK_EQ(look(queue), 1);
	CHECK_EQ(look(queue), 0);
	CHECK_EQ(read(fd[0], &byte, 1), 1);
}

/* So many registrations succeed before the limit of the user is reached. */
static void new_instance_is_full(int nr)
{
	int i, fd[2], bell = eventfd(0, EFD_CLOEXEC), copy = dup(bell);
	struct kevent_queue q;
	struct ukevent ev;

	CHECK_EQ(pipe(fd), 0);
	open_queue(&q);
	roomy[0] = q.fd;
	roomy[1] = dup(0);
	close(roomy[1]);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_REQ_ET), 0);
	kevent_set_poll(&ev, fd[0], KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 1000);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	kevent_set_poll(&ev, bell, KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	close(bell);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -EBADF);
	room = nr;
	denied = 0;
	scarce = fd[0];
	for (i = 0; i < 20 && !denied; i++) {
		CHECK_EQ(write(copy, &(__u64){ 1 }, 8), 8);
		CHECK_EQ(look(q.fd), 0);
	}
	scarce = -1;
	CHECK_EQ(denied, 1);
	CHECK(epoll_has(q.fd, bell));
	check_both(q.fd, fd);
	while (epoll_has(q.fd, bell)) {
		CHECK_EQ(write(copy, &(__u64){ 1 }, 8), 8);
		CHECK_EQ(look(q.fd), 0);
	}
	check_both(q.fd, fd);
	kevent_queue_close(&q);
	close(copy);
	close(fd[0]);
	close(fd[1]);
}

static void watches_stay_where_a_new_instance_is_full(void)
{
	int before = open_fds();

	new_instance_is_full(0);
	new_instance_is_full(1);
	CHECK_EQ(open_fds(), before);
}

/* The end was collected, and the parent has asked, before there is another instance. */
static void new_instance_leaves_a_status_known(void)
{
	int status = 0, gate[2];
	struct kevent_queue q;
	struct ukevent ev;
	siginfo_t info;
	pid_t pid;
	char c;

	CHECK_EQ(pipe2(gate, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		close(gate[1]);
		_exit(read(gate[0], &c, 1) ? 1 : 7);
	}
	open_queue(&q);
	kevent_set_proc(&ev, pid, KEVENT_REQ_DISABLED, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	close(gate[1]);
	CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(look(q.fd), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	lose_a_file(q.fd, 0);
	CHECK_EQ(look(q.fd), 0);
	kevent_set_proc(&ev, pid, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	CHECK_EQ(kevent_get_events(q.fd, 1, 1, &no_time, &ev, 0), 1);
	CHECK(kevent_wait_status(&ev, &status));
	CHECK_EQ(status, 7 << 8);
	kevent_queue_close(&q);
}

static void word_that_changes_is_an_event(void)
{
	static __u32 word;
	struct kevent_queue q;
	struct ukevent ev;
	__u32 i;

	open_queue(&q);
	kevent_set_futex(&ev, &word, 0, KEVENT_FUTEX_PRIVATE, 0, 5);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	for (i = 1; i < 100; i++) {
		__atomic_store_n(&word, i, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1,
			NULL, NULL, 0);
		CHECK_EQ(kevent_queue_get(&q, &ev, 1, NULL), 1);
		CHECK_EQ(ev.ptr, 5);
		kevent_set_futex(&ev, &word, i, KEVENT_FUTEX_PRIVATE, 0, 5);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	}
	kevent_queue_close(&q);
}

/* Chains that are watched */

struct letters {
	struct kevent_call	calls[2];
	struct kevent_chain	chain;
	char			letter;
};

/* A chain that reads a letter, and makes one more call if there was one */
static void make_letters(struct letters *l, int fd)
{
	kevent_chain_init(&l->chain, l->calls, 2);
	kevent_chain_call(&l->chain, SYS_read, fd, &l->letter, 1);
	kevent_chain_call(&l->chain, SYS_getpid);
	CHECK_EQ(kevent_chain_end(&l->chain), 0);
}

static int watch_letters(struct letters *l, int queue, int fd, __u32 req_flags)
{
	make_letters(l, fd);
	return kevent_chain_watch(queue, &l->chain, fd, KEVENT_POLL_POLLIN,
				  req_flags, (__u64)fd);
}

static void check_letter(struct kevent_queue *queue, struct letters *l,
			 char letter)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(queue, &ev, 1, &patience), 1);
	CHECK_EQ(ev.type, KEVENT_POLL);
	CHECK_EQ(ev.id.raw_u64, ev.ptr);
	CHECK_EQ(kevent_error(&ev), 0);
	CHECK_EQ(kevent_chain_finish(&l->chain, &ev), 1);
	CHECK_EQ(l->letter, letter);
}

static void check_no_letter(struct kevent_queue *queue)
{
	struct ukevent ev;

	CHECK_EQ(kevent_queue_get(queue, &ev, 1, &no_time), 0);
}

static void watched_chain_runs_while_there_is_input(void)
{
	struct kevent_queue q;
	struct letters l;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
	CHECK_EQ(watch_letters(&l, q.fd, fd[0], 0), 0);
	CHECK_EQ(watch_letters(&l, q.fd, fd[0], 0), -EEXIST);
	check_no_letter(&q);
	CHECK_EQ(write(fd[1], "ab", 2), 2);
	check_letter(&q, &l, 'a');
	check_letter(&q, &l, 'b');
	check_no_letter(&q);
	kevent_queue_close(&q);
}

/* Somebody else was faster. */
static void watched_chain_without_input_is_no_event(void)
{
	struct kevent_queue q;
	struct ukevent ev;
	struct letters l;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
	CHECK_EQ(watch_letters(&l, q.fd, fd[0], KEVENT_REQ_ET), 0);
	CHECK_EQ(write(fd[1], "a", 1), 1);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &patience), 1);
	CHECK_EQ(read(fd[0], &l.letter, 1), 1);
	CHECK_EQ(kevent_chain_finish(&l.chain, &ev), -EAGAIN);
	CHECK_EQ(write(fd[1], "b", 1), 1);
	check_letter(&q, &l, 'b');
	check_no_letter(&q);
	kevent_queue_close(&q);
}

static void watched_chain_is_changed_and_removed(void)
{
	const __u32 in = KEVENT_POLL_POLLIN;
	struct kevent_queue q;
	struct ukevent ev;
	struct letters l;
	int fd[2];

	open_queue(&q);
	CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
	CHECK_EQ(watch_letters(&l, q.fd, fd[0], KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_REQ_ET), 0);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	CHECK_EQ(write(fd[1], "ab", 2), 2);
	check_letter(&q, &l, 'a');
	check_no_letter(&q);
	kevent_set_poll(&ev, fd[0], in,
			KEVENT_REQ_ONESHOT | KEVENT_REQ_LAST_CHECK,
			(__u64)fd[0]);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	check_letter(&q, &l, 'b');
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	CHECK_EQ(watch_letters(&l, q.fd, fd[0], 0), 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	kevent_queue_close(&q);
}

static void watched_chain_can_be_refused(void)
{
	struct kevent_queue q;
	struct letters l;
	int fd[2];

	CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE,
				   KEVENT_INIT_REFUSE(KEVENT_POLL)), 0);
	CHECK_EQ(watch_letters(&l, q.fd, fd[0], 0), -EPERM);
	kevent_queue_close(&q);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, SIZE,
				   KEVENT_INIT_REFUSE_CHANGE), 0);
	CHECK_EQ(watch_letters(&l, q.fd, fd[0], 0), 0);
	kevent_queue_close(&q);
}

static const struct test tests[] = {
	TEST(zeros_are_a_closed_queue),
	TEST(backend_has_a_name),
	TEST(program_may_refuse),
	TEST(environment_may_refuse),
	TEST(program_may_demand),
	TEST(raised_rights_ignore_the_environment),
	TEST(kernel_without_kevent_is_not_called),
	TEST(process_without_a_queue_has_descriptors),
	TEST(flag_avoids_the_kernel),
	TEST(filters_are_not_believed),
	TEST(child_has_no_queue),
	TEST(closed_queue_is_none),
	TEST(number_of_a_closed_queue_comes_back),
	TEST(queue_opens_beside_calls_with_its_number),
	TEST(end_of_a_queue_leaves_other_files_alone),
	TEST(close_frees_all_descriptors),
	TEST(call_of_a_timer_ends_its_queue),
	TEST(timer_is_set_behind_its_expiry),
	TEST(plain_close_leaves_a_few_descriptors),
	TEST(plain_close_of_copies_leaves_a_few_descriptors),
	TEST(init_without_descriptors_closes_none),
	TEST(number_beyond_the_tables_is_emfile),
	TEST(failed_init_leaves_old_numbers_alone),
	TEST(files_with_numbers_of_the_library_stay_open),
	TEST(new_queue_keeps_the_numbers_of_old_ones),
	TEST(queue_may_watch_numbers_of_the_hub),
	TEST(epoll_with_numbers_of_the_library_is_left_alone),
	TEST(file_with_the_number_of_the_kick_is_not_written),
	TEST(refused_request_ends_the_watch),
	TEST(change_with_an_old_number_is_refused),
	TEST(call_with_an_older_number_takes_nothing),
	TEST(epoll_with_an_old_number_is_not_replaced),
	TEST(threads_look_at_an_epoll_of_the_program),
	TEST(number_of_a_watch_comes_back),
	TEST(number_of_a_watch_is_watched_anew),
	TEST(found_event_ends_with_its_descriptor),
	TEST(opened_file_has_a_mark),
	TEST(process_goes_on_without_its_first_thread),
	TEST(thread_has_its_own_descriptors),
	TEST(child_that_closes_leaves_watches_alone),
	TEST(child_that_uses_the_number_leaves_watches_alone),
	TEST(child_of_a_locked_queue_closes_all_of_it),
	TEST(child_closes_what_sleepers_have),
	TEST(child_forgets_numbers),
	TEST(child_writes_to_no_memory_of_its_parent),
	TEST(child_never_waits_for_its_parent),
	TEST(copy_of_the_descriptor_is_the_queue),
	TEST(name_that_is_given_twice_is_one),
	TEST(lost_file_does_not_keep_a_wait_awake),
	TEST(new_instance_is_for_all_sleepers),
	TEST(watches_stay_where_a_new_instance_is_full),
	TEST(new_instance_leaves_a_status_known),
	TEST(pop_finds_what_came),
	TEST(kept_marks_are_delivered_one_by_one),
	TEST(hand_off_writes_to_no_other_file),
	TEST(hand_off_needs_no_descriptor),
	TEST(calls_are_no_cancellation_points),
	TEST(threads_share_a_queue),
	TEST(each_entry_ends_a_call),
	TEST(each_request_ends_a_sleep),
	TEST(waits_end_until_the_queue_is_closed),
	TEST(too_few_for_one_are_for_another),
	TEST(several_are_there_whoever_takes_them),
	TEST(commit_is_for_those_with_the_ring),
	TEST(full_ring_hands_the_event_on),
	TEST(commit_leaves_wake_requests),
	TEST(fewer_at_a_time_are_enough),
	TEST(watch_without_a_descriptor_is_emfile),
	TEST(failed_modify_leaves_the_watch),
	TEST(level_event_for_all_is_for_each),
	TEST(mark_of_nothing_leaves_no_kick),
	TEST(mark_with_an_old_number_is_refused),
	TEST(kick_needs_no_open_descriptor),
	TEST(close_of_a_copy_leaves_level_watches),
	TEST(sleeper_leaves_a_new_queue_alone),
	TEST(level_watch_is_seen_by_each_look),
	TEST(level_watch_is_seen_beside_a_sleeper),
	TEST(level_watches_take_turns_in_the_ring),
	TEST(level_watch_shows_after_a_sleep),
	TEST(word_that_changes_is_an_event),
	TEST(watched_chain_runs_while_there_is_input),
	TEST(watched_chain_without_input_is_no_event),
	TEST(watched_chain_is_changed_and_removed),
	TEST(watched_chain_can_be_refused),
};

/* For nobody_says(): is it epoll? 0 or 1 */
static int say_backend(void)
{
	const char *backend = kevent_backend(kevent_init(NULL, 0, 0));

	return !backend || strcmp(backend, "epoll") != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--backend"))
		return say_backend();
	return run_tests("fallback", tests, ARRAY_SIZE(tests));
}
