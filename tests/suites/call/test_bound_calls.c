// SPDX-License-Identifier: GPL-2.0
/*
 * Bound calls: the same results as ordinary calls, descriptors that are closed or are
 * other files, processes, slots, limits, and who filters calls
 *
 * By raw system calls, but for what the library makes of refusals.
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"

#define NONE	(-12345)	/* a result that no call has */
#define BAD	((void *)0x1000)

static struct kevent_call call4(uint32_t nr, uint64_t a, uint64_t b, uint64_t c,
				uint64_t d)
{
	return (struct kevent_call){ .nr = nr, .args = { a, b, c, d } };
}

#define CALL(nr, fd, b, c, d) \
	call4(nr, (uint64_t)(fd), KEVENT_ARG(b), KEVENT_ARG(c), KEVENT_ARG(d))

static struct kevent_call bound_entry(uint64_t slot)
{
	return (struct kevent_call){
		.nr = KEVENT_CALL_BOUND, .on_error = 1, .on_zero = 1,
		.on_value = 1, .result = NONE, .args = { slot },
	};
}

static long raw_on(int kq, struct kevent_call *chain, uint32_t nr, uint32_t flags)
{
	long ret = raw_kevent(__NR_kevent_call, kq, chain, nr, flags, 0l);

	return ret < 0 ? -errno : ret;
}

static struct kevent_call null_call;
static char null_buf[4];

static int bind_slot(int kq, uint32_t slot, const struct kevent_call *call)
{
	struct ukevent uk;

	kevent_set_bound(&uk, slot, call);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &uk);
}

static int unbind(int kq, uint32_t slot, int fd)
{
	struct kevent_call call = { .args = { (uint64_t)fd } };
	struct ukevent uk;

	kevent_set_bound(&uk, slot, &call);
	return kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &uk);
}

/* The result of a slot, or NONE if its entry was refused */
static int64_t made(int kq, uint32_t slot)
{
	struct kevent_call c = bound_entry(slot);

	return raw_on(kq, &c, 1, 0) ? NONE : c.result;
}

/* Why the entry of a slot is refused, or NONE */
static int64_t refusal(int kq, uint64_t slot)
{
	struct kevent_call c = bound_entry(slot);

	return raw_on(kq, &c, 1, 0) == REFUSED ? c.result : NONE;
}

static int64_t bind_and_make(int kq, struct kevent_call call)
{
	int err = bind_slot(kq, 0, &call);
	int64_t ret;

	if (err)
		return err;
	ret = made(kq, 0);
	CHECK_EQ(unbind(kq, 0, (int)call.args[0]), 0);
	return ret;
}

static int64_t ordinary(const struct kevent_call *c)
{
	const __u64 *a = c->args;
	long ret = syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);

	return ret < 0 ? -errno : ret;
}

static int open_text(const char *text, int flags)
{
	char path[] = "/tmp/bound_calls.XXXXXX";
	int fd, file = mkstemp(path);
	ssize_t len = (ssize_t)strlen(text);

	MUST(file >= 0);
	MUST_EQ(write(file, text, (size_t)len), len);
	close(file);
	fd = open(path, flags | O_CLOEXEC);
	unlink(path);
	MUST(fd >= 0);
	return fd;
}

/* Results */

static void reads_move_the_position(struct queue *q)
{
	int fd = open_text("abcdefgh", O_RDWR), other;
	char buf[4] = "";
	struct kevent_call c[4] = {
		bound_entry(3), bound_entry(3), bound_entry(3), bound_entry(3),
	};
	struct kevent_call call = CALL(SYS_read, fd, buf, 3, 0);

	MUST_EQ(bind_slot(q->fd, 3, &call), 0);
	CHECK_EQ(raw_on(q->fd, c, 4, 0), 3);
	CHECK_EQ(c[0].result, 3);
	CHECK_EQ(c[1].result, 3);
	CHECK_EQ(c[2].result, 2);
	CHECK_EQ(c[3].result, 0);
	CHECK(!memcmp(buf, "ghf", 3));
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 8);
	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	other = dup(fd);
	CHECK_EQ(made(q->fd, 3), 3);
	CHECK(!memcmp(buf, "bcd", 3));
	CHECK_EQ(lseek(other, 0, SEEK_CUR), 4);
	close(other);
	close(fd);
	CHECK_NO_EVENT(q);
}

static void offsets_do_not_move_it(struct queue *q)
{
	int fd = open_text("abcdefgh", O_RDWR), pipe[2];
	char buf[8] = "";

	open_pipe(pipe);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_pread64, fd, buf, 4, 6)), 2);
	CHECK(!memcmp(buf, "gh", 2));
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_pwrite64, fd, "xy", 2, 8)), 2);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 10);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_pread64, fd, buf, 4, 10)), 0);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_pread64, pipe[0], buf, 4, 0)),
		 -ESPIPE);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_pwrite64, pipe[1], buf, 4, 0)),
		 -ESPIPE);
	close(pipe[0]);
	close(pipe[1]);
	close(fd);
}

static void writes_append(struct queue *q)
{
	int fd = open_text("abc", O_RDWR | O_APPEND);
	char buf[16] = "";

	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_write, fd, "de", 2, 0)), 2);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_write, fd, "fg", 2, 0)), 2);
	CHECK_EQ(pread(fd, buf, sizeof(buf), 0), 7);
	CHECK(!strcmp(buf, "abcdefg"));
	/* The flag counts at the call. */
	MUST_EQ(fcntl(fd, F_SETFL, 0), 0);
	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_write, fd, "X", 1, 0)), 1);
	CHECK_EQ(pread(fd, buf, sizeof(buf), 0), 7);
	CHECK(!strcmp(buf, "aXcdefg"));
	close(fd);
}

static void pipes_and_sockets_carry_data(struct queue *q)
{
	int pipe[2], sock[2];
	char buf[8] = "";

	open_pipe(pipe);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sock), 0);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_read, pipe[0], buf, 8, 0)),
		 -EAGAIN);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_write, pipe[1], "ab", 2, 0)), 2);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_read, pipe[0], buf, 8, 0)), 2);
	CHECK(!memcmp(buf, "ab", 2));
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_sendto, sock[0], "cde", 3, 0)),
		 3);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_recvfrom, sock[1], buf, 2,
					   MSG_PEEK)), 2);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_recvfrom, sock[1], buf, 8, 0)),
		 3);
	CHECK(!memcmp(buf, "cde", 3));
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_recvfrom, sock[1], buf, 8, 0)),
		 -EAGAIN);
	close(pipe[1]);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_read, pipe[0], buf, 8, 0)), 0);
	close(pipe[0]);
	close(sock[0]);
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_read, sock[1], buf, 8, 0)), 0);
	close(sock[1]);
}

static void connections_are_accepted(struct queue *q)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	}, from;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	struct kevent_call call = CALL(SYS_accept4, listener, &from, &len,
				       SOCK_CLOEXEC);
	int64_t conn;

	MUST_EQ(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	MUST_EQ(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	MUST_EQ(listen(listener, 8), 0);
	CHECK_EQ(bind_and_make(q->fd, call), -EAGAIN);
	MUST_EQ(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	conn = bind_and_make(q->fd, call);
	MUST(conn >= 0);
	CHECK_EQ(len, sizeof(from));
	CHECK_EQ(from.sin_addr.s_addr, at.sin_addr.s_addr);
	CHECK_EQ(fcntl((int)conn, F_GETFD), FD_CLOEXEC);
	close((int)conn);
	close(client);
	close(listener);
}

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

static void broken_pipes_send_sigpipe(struct queue *q)
{
	struct sigaction action = { .sa_handler = count_signal }, old;
	int pipe[2];

	open_pipe(pipe);
	close(pipe[0]);
	MUST_EQ(sigaction(SIGPIPE, &action, &old), 0);
	signals = 0;
	CHECK_EQ(bind_and_make(q->fd, CALL(SYS_write, pipe[1], "a", 1, 0)),
		 -EPIPE);
	CHECK_EQ(signals, 1);
	sigaction(SIGPIPE, &old, NULL);
	close(pipe[1]);
}

/* Memory may come and go after the call was bound. */
static void addresses_are_looked_up_by_the_call(struct queue *q)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_text("abc", O_RDWR), pipe[2];
	struct kevent_call read = CALL(SYS_read, fd, page, 3, 0);
	struct kevent_call write = CALL(SYS_write, 0, page, 3, 0);

	MUST(page != MAP_FAILED);
	open_pipe(pipe);
	write.args[0] = (uint64_t)pipe[1];
	MUST_EQ(bind_slot(q->fd, 0, &read), 0);
	MUST_EQ(bind_slot(q->fd, 1, &write), 0);
	munmap(page, 4096);
	CHECK_EQ(made(q->fd, 0), -EFAULT);
	CHECK_EQ(made(q->fd, 1), -EFAULT);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
	MUST(mmap(page, 4096, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
	CHECK_EQ(made(q->fd, 0), 3);
	CHECK(!memcmp(page, "abc", 3));
	munmap(page, 4096);
	close(pipe[0]);
	close(pipe[1]);
	close(fd);
}

/* All kinds of files, the same calls twice: the results are equal. */
static void results_are_those_of_ordinary_calls(struct queue *q)
{
	static const char *const paths[] = {
		"/dev/null", "/dev/zero", "/proc/self/stat", "/", "/proc/self/fd",
		"/tmp",
	};
	static const uint32_t nrs[] = {
		SYS_read, SYS_pread64, SYS_recvfrom, SYS_accept4,
	};
	char buf[16];
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		MUST(fd >= 0);
		for (n = 0; n < ARRAY_SIZE(nrs); n++) {
			struct kevent_call call = CALL(nrs[n], fd, buf,
						       sizeof(buf), 0);

			CHECK_EQ(bind_and_make(q->fd, call), ordinary(&call));
		}
		close(fd);
	}
}

/* Of a file whose method is called without what other files need */
static void errors_are_those_of_ordinary_calls(struct queue *q)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct kevent_call call = CALL(SYS_read, fd, null_buf, 4, 0);

	MUST(fd >= 0);
	CHECK_EQ(bind_and_make(q->fd, call), -EAGAIN);
	MUST(inotify_add_watch(fd, "/tmp", IN_OPEN) >= 0);
	close(open("/tmp", O_RDONLY));
	CHECK_EQ(bind_and_make(q->fd, call), -EINVAL);
	close(fd);
}

/* Descriptors */

static void close_ends_bound_calls(struct queue *q)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), other;
	char buf[4];
	struct kevent_call call[2] = {
		CALL(SYS_read, fd, buf, 4, 0), CALL(SYS_write, fd, buf, 4, 0),
	};

	MUST_EQ(bind_slot(q->fd, 0, &call[0]), 0);
	MUST_EQ(bind_slot(q->fd, 20, &call[1]), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 2);
	CHECK_EQ(made(q->fd, 20), 4);
	other = dup(fd);
	close(fd);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_EQ(made(q->fd, 0), -EBADF);
	CHECK_EQ(made(q->fd, 20), -EBADF);
	/* It is the file again, and was closed. */
	MUST_EQ(dup2(other, fd), fd);
	CHECK_EQ(made(q->fd, 0), -EBADF);
	MUST_EQ(bind_slot(q->fd, 0, &call[0]), 0);
	CHECK_EQ(made(q->fd, 0), 0);
	MUST_EQ(dup2(q->fd, fd), fd);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	close(fd);
	close(other);
}

/* An error of the call is one like others: the chain goes on as the entry says. */
static void chain_goes_on_without_the_descriptor(struct queue *q)
{
	struct kevent_call c[2] = { bound_entry(5), bound_entry(5) };

	CHECK_EQ(raw_on(q->fd, c, 2, 0), 1);
	CHECK_EQ(c[0].result, -EBADF);
	CHECK_EQ(c[1].result, -EBADF);
}

static int in_another_table(void *arg)
{
	struct queue *q = arg;
	int fd = open("/dev/zero", O_RDONLY);
	char buf[4] = "abcd";

	/* vfork()'s child has this memory, and a file table of its own. */
	struct kevent_call call = CALL(SYS_read, fd, buf, 4, 0);
	volatile int64_t same = 0, other = 0, nowait = 0;
	struct kevent_call c = bound_entry(0);
	int status;
	pid_t pid;

	CHILD_MUST(!bind_slot(q->fd, 0, &call));
	pid = vfork();
	if (!pid) {
		same = made(q->fd, 0);
		dup2(q->fd, fd);
		other = made(q->fd, 0);
		nowait = raw_on(q->fd, &c, 1, KEVENT_CALL_ASYNC) ?: c.result;
		_exit(0);
	}
	CHILD_MUST(waitpid(pid, &status, 0) == pid && !status);
	CHILD_MUST(same == 4 && !buf[0]);
	CHILD_MUST(other == -EBADF);
	CHILD_MUST(nowait == -EBADF);
	CHILD_MUST(made(q->fd, 0) == 4);
	return 0;
}

static void descriptor_must_be_the_file(struct queue *q)
{
	CHECK_EQ(join_child(start_child(in_another_table, q), PATIENCE_MS), 0);
}

/* Processes */

static int bind_null(int kq, uint32_t slot)
{
	int fd = open("/dev/null", O_RDWR);

	null_call = CALL(SYS_write, fd, null_buf, 4, 0);
	return fd < 0 ? -errno : bind_slot(kq, slot, &null_call);
}

static int child_is_refused(void *arg)
{
	struct queue *q = arg;
	struct kevent_call bound = null_call, c[2] = { bound_entry(1), bound_entry(1) };

	CHILD_MUST(refusal(q->fd, 1) == -EXDEV);
	/* The child may have the descriptor of a slot that is empty. */
	CHILD_MUST(refusal(q->fd, 2) == -EXDEV);
	CHILD_MUST(bind_slot(q->fd, 1, &null_call) == -EXDEV);
	CHILD_MUST(bind_null(q->fd, 2) == -EXDEV);
	/* The library makes the ordinary call. */
	c[0].args[1] = c[1].args[1] = KEVENT_ARG(&bound);
	CHILD_MUST(kevent_call(q->fd, c, 2, 0, 0) == 1);
	CHILD_MUST(c[0].result == 4 && c[1].result == 4);
	return 0;
}

static void calls_are_those_of_one_process(struct queue *q)
{
	MUST_EQ(bind_null(q->fd, 1), 0);
	CHECK_EQ(join_child(start_child(child_is_refused, q), PATIENCE_MS), 0);
	CHECK_EQ(made(q->fd, 1), 4);
	CHECK_EQ(unbind(q->fd, 1, (int)null_call.args[0]), 0);
	close((int)null_call.args[0]);
}

static int child_binds(void *arg)
{
	struct queue *q = arg;

	CHILD_MUST(bind_null(q->fd, 40) == 0);
	CHILD_MUST(made(q->fd, 40) == 4);
	return 0;
}

static void process_that_ends_leaves_the_slots(struct queue *q)
{
	CHECK_EQ(join_child(start_child(child_binds, q), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	MUST_EQ(bind_null(q->fd, 1), 0);
	CHECK_EQ(made(q->fd, 1), 4);
	close((int)null_call.args[0]);
	/* It has no slot any more, and the child takes the table. */
	CHECK_EQ(join_child(start_child(child_binds, q), PATIENCE_MS), 0);
}

/* Does the program bind the file that it has inherited, or one that it opens? */
static bool binds_inherited;

static int binds_and_executes(void *arg)
{
	struct queue *q = arg;
	char kq[16], fd[16];
	char *const argv[] = { "kevent-tests", "--bound", kq, fd,
			       binds_inherited ? "inherited" : "opened", NULL };

	CHILD_MUST(bind_null(q->fd, 1) == 0);
	CHILD_MUST(!fcntl(q->fd, F_SETFD, 0));
	snprintf(kq, sizeof(kq), "%d", q->fd);
	snprintf(fd, sizeof(fd), "%d", (int)null_call.args[0]);
	execv("/proc/self/exe", argv);
	return 2;
}

/* The program that the child executes: the slots were those of the one before. */
int bound_after_exec(int argc, char **argv)
{
	bool inherited;
	int kq, fd;

	if (argc != 5 || sscanf(argv[2], "%d", &kq) != 1 ||
	    sscanf(argv[3], "%d", &fd) != 1)
		return 3;
	inherited = !strcmp(argv[4], "inherited");
	CHILD_MUST(fdinfo(kq, "kevent-watches") == 1);
	CHILD_MUST(refusal(kq, 1) == -EXDEV);
	null_call = CALL(SYS_write, fd, null_buf, 4, 0);
	CHILD_MUST((inherited ? bind_slot(kq, 1, &null_call) : bind_null(kq, 1)) == 0);
	CHILD_MUST(made(kq, 1) == 4);
	/* The first one that it binds ends them. */
	CHILD_MUST(fdinfo(kq, "kevent-watches") == 1);
	if (inherited)
		return 0;
	CHILD_MUST(unbind(kq, 1, fd) == -ENOENT);
	CHILD_MUST(made(kq, 1) == 4);
	return 0;
}

static void exec_ends_them(struct queue *q)
{
	binds_inherited = false;
	CHECK_EQ(join_child(start_child(binds_and_executes, q), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

/* The same descriptor and slot, which the call of the program before has */
static void exec_may_bind_the_same(struct queue *q)
{
	binds_inherited = true;
	CHECK_EQ(join_child(start_child(binds_and_executes, q), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static int has_received(void *arg)
{
	int kq = receive_fd(*(int *)arg);

	CHILD_MUST(kq >= 0);
	CHILD_MUST(refusal(kq, 1) == -EXDEV);
	return 0;
}

static void queue_may_be_sent(struct queue *q)
{
	struct queue sent;
	int sock[2];
	pid_t child;

	(void)q;
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	child = start_child(has_received, &sock[1]);
	open_queue(&sent, 0);
	MUST_EQ(bind_null(sent.fd, 1), 0);
	send_fd(sock[0], sent.fd);
	CHECK_EQ(join_child(child, PATIENCE_MS), 0);
	CHECK_EQ(made(sent.fd, 1), 4);
	close_queue(&sent);
	close((int)null_call.args[0]);
	close(sock[0]);
	close(sock[1]);
}

/* Slots and requests */

static void slots_are_checked(struct queue *q)
{
	int fd;

	CHECK_EQ(made(q->fd, 0), -EBADF);
	MUST_EQ(bind_null(q->fd, 1), 0);
	fd = (int)null_call.args[0];
	CHECK_EQ(made(q->fd, 0), -EBADF);
	CHECK_EQ(made(q->fd, 16), -EBADF);
	CHECK_EQ(made(q->fd, KEVENT_BOUND_MAX - 1), -EBADF);
	CHECK_EQ(refusal(q->fd, KEVENT_BOUND_MAX), -EINVAL);
	CHECK_EQ(refusal(q->fd, 1ull << 32 | 1), -EINVAL);
	CHECK_EQ(refusal(q->fd, ~0ull), -EINVAL);
	CHECK_EQ(refusal(-1, 1), -EINVAL);
	CHECK_EQ(bind_slot(q->fd, 1, &null_call), -EEXIST);
	CHECK_EQ(bind_slot(q->fd, KEVENT_BOUND_MAX, &null_call), -EINVAL);
	CHECK_EQ(bind_slot(q->fd, KEVENT_BOUND_MAX - 1, &null_call), 0);
	CHECK_EQ(made(q->fd, KEVENT_BOUND_MAX - 1), 4);
	CHECK_EQ(made(q->fd, 1), 4);
	CHECK_EQ(unbind(q->fd, 2, fd), -ENOENT);
	CHECK_EQ(unbind(q->fd, 1, fd), 0);
	CHECK_EQ(made(q->fd, 1), -EBADF);
	CHECK_EQ(unbind(q->fd, 1, fd), -ENOENT);
	CHECK_EQ(bind_slot(q->fd, 1, &null_call), 0);
	CHECK_EQ(made(q->fd, 1), 4);
	close(fd);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

/* What is wrong with an entry is said whatever is in its slot. */
static void entries_are_checked_before_slots(struct queue *q)
{
	struct kevent_call empty = bound_entry(0);

	empty.flags = 1;
	empty.on_error = 1;
	CHECK_EQ(raw_on(q->fd, &empty, 1, 0), REFUSED);
	CHECK_EQ(empty.result, -EINVAL);
}

/* Their watches are links between sets, whose number and depth have limits. */
static void sets_of_files_are_refused(struct queue *q)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC), kq = kevent_init(NULL, 0, 0);
	struct kevent_call call = CALL(SYS_read, epfd, null_buf, 4, 0);

	MUST(epfd >= 0 && kq >= 0);
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EINVAL);
	call.nr = SYS_write;
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EINVAL);
	call.args[0] = (__u64)kq;
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EINVAL);
	call.nr = SYS_pread64;
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EINVAL);
	close(epfd);
	close(kq);
}

static void other_descriptors_of_a_slot_exist(struct queue *q)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct kevent_call zero = CALL(SYS_read, fd, null_buf, 4, 0);

	MUST_EQ(bind_null(q->fd, 1), 0);
	CHECK_EQ(bind_slot(q->fd, 1, &zero), -EEXIST);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	CHECK_EQ(made(q->fd, 1), 4);
	close((int)null_call.args[0]);
	CHECK_EQ(bind_slot(q->fd, 1, &zero), 0);
	close(fd);
}

/* A file has as many as watches, and they go with any of its descriptors. */
static void slots_of_a_file_are_many(struct queue *q)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), copy = dup(fd);
	struct kevent_call call = CALL(SYS_read, fd, null_buf, 4, 0);
	const uint32_t nr = 1000;
	uint32_t i;

	MUST(copy >= 0);
	for (i = 0; i < nr; i++) {
		call.args[0] = (uint64_t)(i % 3 ? fd : copy);
		MUST_EQ(bind_slot(q->fd, i, &call), 0);
	}
	CHECK_EQ(bind_slot(q->fd, nr, &call), -ENOSPC);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), nr);
	/* The first ones, the last ones, and some of those between */
	for (i = 0; i < nr; i += i == 10 ? 900 : 1)
		CHECK_EQ(unbind(q->fd, i, i % 3 ? fd : copy), 0);
	for (i = 0; i < nr; i += i == 10 ? 900 : 1)
		CHECK_EQ(made(q->fd, i), -EBADF);
	CHECK_EQ(made(q->fd, 800), 4);
	CHECK_EQ(made(q->fd, 801), 4);
	close(fd);
	CHECK_EQ(made(q->fd, 800), -EBADF);
	CHECK_EQ(made(q->fd, 801), 4);
	close(copy);
	CHECK_EQ(made(q->fd, 801), -EBADF);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static int add_copy(int kq, const struct ukevent *uk)
{
	struct ukevent ev = *uk;

	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

static void requests_are_checked(struct queue *q)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), sock[2];
	struct kevent_call call = CALL(SYS_read, fd, null_buf, 4, 0);
	struct ukevent uk, bad;

	kevent_set_bound(&uk, 0, &call);
	bad = uk;
	bad.ptr++;
	CHECK_EQ(add_copy(q->fd, &bad), -EINVAL);
	bad = uk;
	bad.ptr = KEVENT_ARG(BAD);
	CHECK_EQ(add_copy(q->fd, &bad), -EFAULT);
	bad = uk;
	bad.req_flags = KEVENT_REQ_ONESHOT;
	CHECK_EQ(add_copy(q->fd, &bad), -EINVAL);
	bad = uk;
	bad.id.raw[1] = 1;
	CHECK_EQ(add_copy(q->fd, &bad), -EINVAL);
	bad = uk;
	bad.id.raw[0]++;
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	CHECK_EQ(add_copy(q->fd, &bad), -EINVAL);
	close(sock[0]);
	close(sock[1]);
	CHECK_EQ(add_copy(q->fd, &bad), -EBADF);
	MUST_EQ(add_copy(q->fd, &uk), 0);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &uk), -EPERM);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &uk), -EINVAL);
	CHECK_NO_EVENT(q);
	CHECK_EQ(made(q->fd, 0), 0);
	close(fd);
}

static void calls_are_checked(struct queue *q)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), sock[2];
	const uint64_t far = 1ull << 63;
	struct kevent_call call;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
#define SAYS(...) bind_and_make(q->fd, CALL(__VA_ARGS__))
	CHECK_EQ(SAYS(SYS_readv, null, null_buf, 4, 0), -ENOSYS);
	CHECK_EQ(SAYS(KEVENT_CALL_BOUND, null, null_buf, 4, 0), -ENOSYS);
	CHECK_EQ(SAYS(SYS_close, null, 0, 0, 0), -ENOSYS);
	CHECK_EQ(SAYS(SYS_write, null, null_buf, 4, 0), -EBADF);
	CHECK_EQ(SAYS(SYS_read, null, far, 4, 0), -EFAULT);
	call = CALL(SYS_read, null, far, 4, 0);
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EFAULT);
	CHECK_EQ(SAYS(SYS_read, null, null_buf, far, 0), -EINVAL);
	CHECK_EQ(SAYS(SYS_pread64, null, null_buf, 4, far), -EINVAL);
	CHECK_EQ(SAYS(SYS_pwrite64, null, null_buf, 4, far), -EINVAL);
	/* More than read() takes at once */
	CHECK_EQ(SAYS(SYS_read, null, null_buf, 1ull << 31, 0), 0);
	CHECK_EQ(SAYS(SYS_recvfrom, null, null_buf, 4, 0), -ENOTSOCK);
	CHECK_EQ(SAYS(SYS_accept4, null, 0, 0, 0), -ENOTSOCK);
	CHECK_EQ(SAYS(SYS_recvfrom, sock[0], far, 4, 0), -EFAULT);
#undef SAYS
	call = CALL(SYS_recvfrom, sock[0], null_buf, 4, MSG_DONTWAIT);
	call.args[4] = KEVENT_ARG(null_buf);
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EINVAL);
	call.args[4] = 0;
	call.args[5] = 1;
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EINVAL);
	call.args[5] = 0;
	call.flags = 1;
	CHECK_EQ(bind_slot(q->fd, 0, &call), -EINVAL);
	call.flags = 0;
	CHECK_EQ(bind_slot(q->fd, 0, &call), 0);
	CHECK_EQ(made(q->fd, 0), -EAGAIN);
	close(null);
	close(sock[0]);
	close(sock[1]);
}

static void entries_are_checked(struct queue *q)
{
	struct kevent_call c = bound_entry(1);

	MUST_EQ(bind_null(q->fd, 1), 0);
	c.flags = 1;
	CHECK_EQ(raw_on(q->fd, &c, 1, 0), REFUSED);
	CHECK_EQ(c.result, -EINVAL);
	c.flags = 0;
	CHECK_EQ(raw_on(q->fd, &c, 1, 0), 0);
	CHECK_EQ(c.result, 4);
	CHECK_EQ(raw_on((int)null_call.args[0], &c, 1, 0), -EINVAL);
	CHECK_EQ(raw_on(-2, &c, 1, 0), -EINVAL);
	CHECK_EQ(raw_kevent(__NR_kevent_call, q->fd, &c, 1, 0, 1l), -1);
	CHECK_EQ(errno, EINVAL);
	close((int)null_call.args[0]);
}

static void entry_that_is_cut_is_efault(struct queue *q)
{
	char *mem = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct kevent_call c = bound_entry(1);
	struct kevent_call *first;
	size_t there;

	MUST(mem != MAP_FAILED);
	MUST_EQ(munmap(mem + 4096, 4096), 0);
	MUST_EQ(bind_null(q->fd, 1), 0);
	for (there = 0; there <= 16; there += 8) {
		first = (void *)(mem + 4096 - there - sizeof(c));
		memcpy(first, &c, sizeof(c));
		memcpy(first + 1, &c, there);
		CHECK_EQ(raw_on(q->fd, first, 2, 0), -EFAULT);
		CHECK_EQ(first->result, 4);
	}
	munmap(mem, 4096);
	close((int)null_call.args[0]);
}

/* Asynchronous chains */

static void what_would_block_is_served(struct queue *q)
{
	struct kevent_call c[2] = { bound_entry(0), bound_entry(1) };
	struct timespec now = { 0 };
	int mem = memfd_create("bound_calls", MFD_CLOEXEC), pipe[2];
	struct kevent_call call = CALL(SYS_pread64, mem, null_buf, 4, 0);
	struct ukevent ev;

	MUST_EQ(write(mem, "abcd", 4), 4);
	MUST_EQ(pipe2(pipe, O_CLOEXEC), 0);
	MUST_EQ(bind_slot(q->fd, 0, &call), 0);
	call = CALL(SYS_read, pipe[0], null_buf, 4, 0);
	MUST_EQ(bind_slot(q->fd, 1, &call), 0);
	CHECK_EQ(raw_on(q->fd, c, 2, KEVENT_CALL_ASYNC), KEVENT_CALL_SUBMITTED);
	CHECK_EQ(c[0].result, 4);
	CHECK_EQ(c[1].result, NONE);
	put_byte(pipe[1]);
	CHECK_EQ(raw_kevent(__NR_kevent_wait, q->fd, 1, 0, &now,
			    KEVENT_FLAGS_SERVE, NULL), 1);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.type, KEVENT_AIO);
	CHECK_EQ(ev.id.raw_u64, 1);
	CHECK_EQ(c[1].result, 1);
	put_byte(pipe[1]);
	CHECK_EQ(raw_on(q->fd, c, 2, KEVENT_CALL_ASYNC), 1);
	CHECK_EQ(c[0].result, 4);
	CHECK_EQ(c[1].result, 1);
	close(pipe[0]);
	c[1].result = NONE;
	CHECK_EQ(raw_on(q->fd, &c[1], 1, KEVENT_CALL_ASYNC), 0);
	CHECK_EQ(c[1].result, -EBADF);
	CHECK_EQ(refusal(q->fd, KEVENT_BOUND_MAX), -EINVAL);
	c[1] = bound_entry(KEVENT_BOUND_MAX);
	CHECK_EQ(raw_on(q->fd, &c[1], 1, KEVENT_CALL_ASYNC), REFUSED);
	CHECK_EQ(c[1].result, -EINVAL);
	close(pipe[1]);
	close(mem);
}

/* Limits */

/* A table of slots, and at least two pages of a page table */
#define TABLE_BYTES	(1024 * 8)
#define SPACE_BYTES	(2 * 4096)

static void slots_are_charged(struct queue *q)
{
	long long before = fdinfo(q->fd, "kevent-user-bytes"), bytes;
	struct queue other;

	open_queue(&other, 0);
	MUST_EQ(bind_null(other.fd, KEVENT_BOUND_MAX - 1), 0);
	close((int)null_call.args[0]);
	/* The queue keeps a table and an address space, and then another table. */
	bytes = fdinfo(q->fd, "kevent-user-bytes") - before;
	CHECK(bytes >= TABLE_BYTES + SPACE_BYTES);
	CHECK(bytes <= TABLE_BYTES + 2 * SPACE_BYTES);
	MUST_EQ(bind_null(other.fd, 1), 0);
	close((int)null_call.args[0]);
	CHECK_EQ(fdinfo(q->fd, "kevent-user-bytes") - before,
		 bytes + TABLE_BYTES);
	close_queue(&other);
	CHECK_EQ(fdinfo(q->fd, "kevent-user-bytes"), before);
}

static int binds_over_the_limit(void *arg)
{
	struct queue q;
	uint32_t nr = 0;
	int err;

	CHILD_MUST(!setuid(4244));
	open_queue(&q, 0);
	while (!(err = bind_null(q.fd, nr)))
		nr++;
	CHILD_MUST(err == -ENOSPC);
	if (arg) {
		CHILD_MUST(nr >= 1 && nr < 128);
		CHILD_MUST(made(q.fd, nr - 1) == 4);
	} else {
		CHILD_MUST(nr == 0);
		CHILD_MUST(fdinfo(q.fd, "kevent-user-bytes") == 0);
	}
	return 0;
}

static void limit_holds(void)
{
	char old[64];
	int none, some;

	read_file(MAX_BYTES, old, sizeof(old));
	MUST(old[0]);
	write_file(MAX_BYTES, "4096");
	none = join_child(start_child(binds_over_the_limit, NULL), PATIENCE_MS);
	write_file(MAX_BYTES, "32768");
	some = join_child(start_child(binds_over_the_limit, old), PATIENCE_MS);
	old[strcspn(old, "\n")] = '\0';
	write_file(MAX_BYTES, old);
	CHECK_EQ(none, 0);
	CHECK_EQ(some, 0);
}

static void queue_may_refuse_them(void)
{
	int kq = kevent_init(NULL, 0, KEVENT_INIT_REFUSE_LATER);

	MUST(kq >= 0);
	CHECK_EQ(bind_null(kq, 1), -EPERM);
	close((int)null_call.args[0]);
	close(kq);
}

/* Filters */

static int under_a_filter(void *arg)
{
	struct queue *q = arg;
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(f), .filter = f };
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct kevent_call read = CALL(SYS_read, zero, null_buf, 4, 0);
	struct kevent_call c[2] = { bound_entry(1), bound_entry(1) };

	CHILD_MUST(bind_null(q->fd, 1) == 0);
	CHILD_MUST(bind_slot(q->fd, 2, &read) == 0);
	CHILD_MUST(made(q->fd, 1) == 4);
	CHILD_MUST(made(q->fd, 2) == 4);
	CHILD_MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHILD_MUST(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	CHILD_MUST(refusal(q->fd, 1) == -EOPNOTSUPP);
	CHILD_MUST(refusal(q->fd, 2) == -EOPNOTSUPP);
	c[0].args[1] = c[1].args[1] = KEVENT_ARG(&null_call);
	CHILD_MUST(kevent_call(q->fd, c, 2, 0, 0) == 1);
	CHILD_MUST(c[0].result == -EACCES && c[1].result == -EACCES);
	return 0;
}

static void filters_see_bound_calls(struct queue *q)
{
	CHECK_EQ(join_child(start_child(under_a_filter, q), PATIENCE_MS), 0);
}

/* Races */

struct race {
	int		kq, file;
	_Atomic int	fd, stop;
	_Atomic long	made, wrong;
};

/* Reads zeros from /dev/zero, nothing from /dev/null, or has no descriptor. */
static long makes_calls(void *arg)
{
	struct race *r = arg;
	struct kevent_call c[8];
	unsigned int i;

	while (!atomic_load(&r->stop)) {
		for (i = 0; i < ARRAY_SIZE(c); i++)
			c[i] = bound_entry(i % 2);
		if (raw_on(r->kq, c, ARRAY_SIZE(c), 0) != ARRAY_SIZE(c) - 1)
			atomic_fetch_add(&r->wrong, 1);
		for (i = 0; i < ARRAY_SIZE(c); i++) {
			if (c[i].result == 4)
				atomic_fetch_add(&r->made, 1);
			else if (c[i].result != -EBADF)
				atomic_fetch_add(&r->wrong, 1);
		}
	}
	return 0;
}

static void close_races_calls(struct queue *q)
{
	static struct race r;
	static char buf[4];
	/* With a ring, and without */
	uint64_t until = now_ns() + storm_ns() / 2;
	struct actor actor;
	unsigned int i;

	memset(&r, 0, sizeof(r));
	r.kq = q->fd;
	start_actor(&actor, makes_calls, &r);
	for (i = 0; now_ns() < until || !atomic_load(&r.made); i++) {
		int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
		struct kevent_call read = CALL(SYS_read, fd, buf, 4, 0);
		struct kevent_call write = CALL(SYS_write, fd, buf, 4, 0);

		if (fd < 0 || bind_slot(q->fd, 0, &read) ||
		    bind_slot(q->fd, 1, &write))
			atomic_fetch_add(&r.wrong, 1);
		if (i % 2)
			sched_yield();
		if (i % 3 == 0 && unbind(q->fd, 0, fd))
			atomic_fetch_add(&r.wrong, 1);
		close(fd);
	}
	atomic_store(&r.stop, 1);
	join_actor(&actor, PATIENCE_MS);
	CHECK_EQ(r.wrong, 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	note("%u times bound, %ld calls", i, (long)r.made);
}

static const struct test_case cases[] = {
	TEST_EACH(reads_move_the_position),
	TEST_EACH(offsets_do_not_move_it),
	TEST_EACH(writes_append),
	TEST_EACH(pipes_and_sockets_carry_data),
	TEST_EACH(connections_are_accepted),
	TEST_EACH(broken_pipes_send_sigpipe),
	TEST_EACH(addresses_are_looked_up_by_the_call),
	TEST_EACH(results_are_those_of_ordinary_calls),
	TEST_EACH(errors_are_those_of_ordinary_calls),
	TEST_EACH(close_ends_bound_calls),
	TEST_EACH(chain_goes_on_without_the_descriptor),
	TEST_EACH(descriptor_must_be_the_file),
	TEST_EACH(calls_are_those_of_one_process),
	TEST_EACH(process_that_ends_leaves_the_slots),
	TEST_EACH(exec_ends_them),
	TEST_EACH(exec_may_bind_the_same),
	TEST_EACH(queue_may_be_sent),
	TEST_EACH(slots_are_checked),
	TEST_EACH(entries_are_checked_before_slots),
	TEST_EACH(sets_of_files_are_refused),
	TEST_EACH(slots_of_a_file_are_many),
	TEST_EACH(other_descriptors_of_a_slot_exist),
	TEST_EACH(requests_are_checked),
	TEST_EACH(calls_are_checked),
	TEST_EACH(entries_are_checked),
	TEST_EACH(entry_that_is_cut_is_efault),
	TEST_EACH(what_would_block_is_served),
	TEST_EACH(slots_are_charged),
	TEST(limit_holds),
	TEST(queue_may_refuse_them),
	TEST_EACH(filters_see_bound_calls),
	TEST_EACH(close_races_calls),
	{ }
};

const struct test_suite bound_calls_suite = {
	.name = "bound_calls",
	.cases = cases,
};
#endif
