// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that serve asynchronous chains: cancellation, the limit, and the end of a server, of a
 * process, of a queue and of memory
 *
 * All of it by raw system calls. libkevent's own tests have the same on epoll.
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "aio.h"
#include "serving.h"
#include "uffd.h"

/* Nothing is made in the caller. */
static int add_chain(int kq, struct kevent_call *chain, uint32_t nr,
		     uint64_t cookie)
{
	struct ukevent uk;

	set_chain(&uk, chain, nr, cookie);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &uk);
}

static int remove_chain(int kq, uint64_t cookie)
{
	struct ukevent ev;

	set_chain(&ev, NULL, 1, cookie);
	return kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &ev);
}

static void chain_that_waits_is_cancelled(struct queue *q)
{
	struct kevent_call c[2];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd[0], buf, 8);
	CHECK_EQ(submit(q->fd, c, 2, COOKIE), SUBMITTED);
	CHECK_EQ(remove_chain(q->fd, COOKIE + 1), -ENOENT);
	CHECK_EQ(remove_chain(q->fd, COOKIE), 0);
	CHECK_EQ(remove_chain(q->fd, COOKIE), -EALREADY);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	CHECK_EQ(serve(q->fd, 1, 0), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1 | REFUSED, -ECANCELED);
	CHECK_EQ(remove_chain(q->fd, COOKIE), -ENOENT);
	CHECK_EQ(c[1].result, UNMADE);
	CHECK_NO_EVENT(q);
	close_pair(fd);
}

/* A server has begun with a chain that reads 8 bytes at last. */
static void start_read(struct queue *q, struct server *s, struct kevent_call *c,
		       int fd, void *buf)
{
	start_server(s, q->fd, 1);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd, buf, 8);
	MUST_EQ(add_chain(q->fd, c, 2, COOKIE), 0);
	await_made(c);
}

/* It has the last reference when it waits for another chain. */
static void file_that_a_server_used_last_is_closed(struct queue *q)
{
	struct pollfd end = {};
	struct server s = {};
	struct kevent_call c[2];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	start_read(q, &s, c, fd[0], buf);
	MUST(sleeps_in(s.actor.tid, __NR_kevent_wait));
	close(fd[0]);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1, 4);
	end.fd = fd[1];
	CHECK_EQ(poll(&end, 1, PATIENCE_MS), 1);
	CHECK(end.revents & POLLERR);
	close(fd[1]);
	end_servers(q, &s, 1);
}

static void thread_that_blocks_in_what_calls_have_left_makes_room(struct queue *q)
{
	struct server s[2] = {};
	struct kevent_call c[2], other = GETPPID;
	struct ukevent ev;
	char buf[8];
	int fd[2];

	tcp_pair(fd);
	fill_and_linger(fd[0]);
	start_read(q, &s[0], c, fd[0], buf);
	start_server(&s[1], q->fd, 1);
	MUST(sleeps_in(s[0].actor.tid, __NR_kevent_wait));
	/* Not the last reference */
	close(fd[0]);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	/* From here on it has not blocked but in the close. */
	await_made(&c[1]);
	MUST_EQ(add_chain(q->fd, &other, 1, COOKIE + 1), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE + 1, 0, getppid());
	/* The peer goes, and the close ends. */
	close(fd[1]);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1, 4);
	end_servers(q, s, 2);
}

static void chain_that_runs_is_not_cancelled(struct queue *q)
{
	struct server s = {};
	struct kevent_call c[2];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	open_blocking_pipe(fd);
	start_read(q, &s, c, fd[0], buf);
	CHECK_EQ(remove_chain(q->fd, COOKIE), -EALREADY);
	CHECK_NO_EVENT(q);
	MUST_EQ(write(fd[1], "abcd", 4), 4);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 1, 4);
	close_pair(fd);
	end_servers(q, &s, 1);
}

/* A server was let go for a chain that is cancelled before it begins: it waits for the next. */
static void chain_is_cancelled_until_it_is_begun(struct queue *q)
{
	struct server s = { .kq = q->fd, .limit = 1 };
	struct kevent_call c[2] = { GETPPID, GETPPID };
	struct ukevent ev;

	CHECK(start_in_window(&s.actor, "idle", serve_on, &s));
	MUST_EQ(add_chain(q->fd, &c[0], 1, COOKIE), 0);
	CHECK_EQ(remove_chain(q->fd, COOKIE), 0);
	window_release();
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, REFUSED, -ECANCELED);
	CHECK_EQ(c[0].result, UNMADE);
	CHECK(sleeps_in(s.actor.tid, __NR_kevent_wait));
	MUST_EQ(add_chain(q->fd, &c[1], 1, COOKIE), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
	end_servers(q, &s, 1);
	CHECK_EQ(s.actor.ret, 1);
}

static void chain_is_neither_modified_nor_marked(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;

	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	set_chain(&ev, &c, 1, COOKIE);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &ev), -EPERM);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev), -EPERM);
	CHECK_NO_EVENT(q);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
}

static void thread_that_blocks_makes_room_for_another(struct queue *q)
{
	struct server s[2] = {};
	struct kevent_call c[2];
	struct ukevent ev;
	int fd[2][2];
	char buf[8];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		open_blocking_pipe(fd[i]);
		start_server(&s[i], q->fd, 1);
		c[i] = ENTRY(SYS_read, fd[i][0], buf, 8);
	}
	/* The first one blocks until the second one has ended. */
	for (i = 0; i < 2; i++)
		MUST_EQ(submit(q->fd, &c[i], 1, COOKIE + i), SUBMITTED);
	MUST_EQ(write(fd[1][1], "ab", 2), 2);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE + 1, 0, 2);
	CHECK_NO_EVENT(q);
	MUST_EQ(write(fd[0][1], "abc", 3), 3);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, 3);
	for (i = 0; i < 2; i++)
		close_pair(fd[i]);
	end_servers(q, s, 2);
}

#define OVERLAPS	500	/* calls between the two looks of a chain */

/*
 * Sets a flag in a file, makes calls, and clears it; at its begin it looks at the other's.
 * The calls take about as long as a busy host lets a virtual CPU wait.
 */
static void build_overlap(struct kevent_call *c, int own, int other,
			  uint64_t *seen, int zero)
{
	static const uint64_t set = 1, clear;
	static char page[4096];
	unsigned int i;

	c[0] = ENTRY(SYS_pwrite64, own, &set, 8);
	c[1] = ENTRY(SYS_pread64, other, seen, 8);
	for (i = 2; i < OVERLAPS; i++)
		c[i] = ENTRY(SYS_read, zero, page, sizeof(page));
	c[OVERLAPS] = ENTRY(SYS_pwrite64, own, &clear, 8);
}

/* Do two chains that do not block run at the same time? */
static bool overlap(struct queue *q, const int flag[2], int zero)
{
	static struct kevent_call c[2][OVERLAPS + 1];
	static uint64_t seen[2];
	struct ukevent ev;
	unsigned int k;

	for (k = 0; k < 2; k++) {
		seen[k] = 0;
		build_overlap(c[k], flag[k], flag[!k], &seen[k], zero);
		MUST_EQ(add_chain(q->fd, c[k], OVERLAPS + 1, k), 0);
	}
	for (k = 0; k < 2; k++)
		MUST_EVENT(q, &ev);
	return seen[0] || seen[1];
}

static void limit_holds(struct queue *q)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), flag[2];
	struct server s[2] = {};
	unsigned int i, nr = 0;
	uint64_t start;

	MUST(zero >= 0);
	for (i = 0; i < 2; i++) {
		cpu_set_t cpu;

		flag[i] = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		MUST(flag[i] >= 0);

		start_server(&s[i], q->fd, 1);
		CPU_ZERO(&cpu);
		CPU_SET(i, &cpu);
		MUST_EQ(sched_setaffinity(s[i].actor.tid, sizeof(cpu), &cpu), 0);
	}
	for (i = 0; i < 300; i++)
		nr += overlap(q, flag, zero);
	CHECK_EQ(nr, 0);
	/* A later call changes the limit, so sooner or later two run on two CPUs. */
	CHECK_EQ(serve(q->fd, 2, 0), 0);
	start = now_ns();
	while (!overlap(q, flag, zero))
		MUST(patient(start, PATIENCE_MS));
	end_servers(q, s, 2);
	close(zero);
}

/* The end of waits */

static void servers_leave_when_their_descriptor_is_closed(struct queue *q)
{
	struct server s[4] = {};
	struct kevent_call c;
	struct ukevent ev;
	struct queue other = *q;
	unsigned int i;
	char buf[8];
	int fd[2];

	other.fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	for (i = 0; i < 4; i++)
		start_server(&s[i], i % 2 ? q->fd : other.fd, 2);
	close(q->fd);
	for (i = 1; i < 4; i += 2) {
		join_actor(&s[i].actor, PATIENCE_MS);
		CHECK_EQ(s[i].actor.ret, -EBADF);
	}
	q->fd = other.fd;
	open_blocking_pipe(fd);
	c = ENTRY(SYS_read, fd[0], buf, 8);
	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), SUBMITTED);
	MUST_EQ(write(fd[1], "ab", 2), 2);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, 2);
	q->fd = fcntl(other.fd, F_DUPFD_CLOEXEC, 0);
	close(other.fd);
	for (i = 0; i < 4; i += 2)
		join_actor(&s[i].actor, PATIENCE_MS);
	CHECK_EQ(s[0].actor.ret + s[2].actor.ret, 1 - EBADF);
	close_pair(fd);
}

/* Another file, and another queue */
static void servers_leave_when_it_is_another_file(struct queue *q)
{
	struct queue other;
	int files[2], fd;
	unsigned int i;

	open_queue(&other, 0);
	files[0] = STDOUT_FILENO;
	files[1] = other.fd;
	for (i = 0; i < 2; i++) {
		struct server s = {};

		fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
		MUST(fd >= 0);
		start_server(&s, fd, 1);
		MUST_EQ(dup2(files[i], fd), fd);
		join_actor(&s.actor, PATIENCE_MS);
		CHECK_EQ(s.actor.ret, -EBADF);
		close(fd);
	}
	close_queue(&other);
}

/* The first server of a queue, and one that comes when others have served */
static void close_before_a_server_sleeps_is_seen(struct queue *q)
{
	int i, fd;

	for (i = 0; i < 2; i++) {
		struct server s = { .kq = q->fd, .limit = 1 };

		CHECK(start_in_window(&s.actor, "serve", serve_on, &s));
		fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
		MUST(fd >= 0);
		close(q->fd);
		window_release();
		join_actor(&s.actor, PATIENCE_MS);
		CHECK_EQ(s.actor.ret, -EBADF);
		q->fd = fd;
	}
}

static int just_ends(void *arg)
{
	(void)arg;
	return 0;
}

/* A child has a copy of the descriptor, and closes that only. */
static void end_of_a_child_wakes_no_server(struct queue *q)
{
	struct server s[3] = {};
	long long sleeps[3];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		start_server(&s[i], q->fd, 1);
		sleeps[i] = sleeps_so_far(s[i].actor.tid);
	}
	CHECK_EQ(join_child(start_child(just_ends, NULL), PATIENCE_MS), 0);
	for (i = 0; i < 3; i++) {
		MUST(sleeps_in(s[i].actor.tid, __NR_kevent_wait));
		CHECK_EQ(sleeps_so_far(s[i].actor.tid), sleeps[i]);
	}
	end_servers(q, s, 3);
}

static long serves_with_a_table_of_its_own(void *arg)
{
	struct server *s = arg;

	return unshare(CLONE_FILES) ? -errno : serve_on(s);
}

/* The first server was of another table. */
static void close_in_each_table_is_seen(struct queue *q)
{
	struct server s = { .kq = q->fd, .limit = 1 };
	struct kevent_call c = ENTRY(SYS_close, q->fd, 0, 0);
	struct ukevent ev;

	CHECK_EQ(serve(q->fd, 1, 0), 0);
	start_actor(&s.actor, serves_with_a_table_of_its_own, &s);
	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, 0);
	join_actor(&s.actor, PATIENCE_MS);
	CHECK_EQ(s.actor.ret, 1);
}

static void chain_may_close_its_queue(struct queue *q)
{
	struct kevent_call c[2];
	struct queue own;

	open_queue(&own, q->size);
	c[0] = ENTRY(SYS_close, own.fd, 0, 0);
	c[1] = GETPPID;
	MUST_EQ(add_chain(own.fd, c, 2, COOKIE), 0);
	CHECK_EQ(serve(own.fd, 1, -1), 1);
	CHECK_EQ(c[1].result, getppid());
	CHECK_EQ(fcntl(own.fd, F_GETFD), -1);
	if (own.ring)
		munmap(own.ring, own.bytes);
}

static void signal_ends_the_wait_of_a_server(struct queue *q)
{
	struct server s = {};

	catch_signal(SIGUSR1);
	start_server(&s, q->fd, 1);
	MUST_EQ(pthread_kill(s.actor.thread, SIGUSR1), 0);
	join_actor(&s.actor, PATIENCE_MS);
	CHECK_EQ(s.actor.ret, -EINTR);
}

static void signal_ends_a_chain_and_its_event_says_so(struct queue *q)
{
	struct server s = {};
	struct kevent_call c[3];
	struct ukevent ev;
	char buf[8];
	int fd[2];

	catch_signal(SIGUSR1);
	open_blocking_pipe(fd);
	start_server(&s, q->fd, 1);
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd[0], buf, 8);
	c[2] = GETPPID;
	MUST_EQ(add_chain(q->fd, c, 3, COOKIE), 0);
	await_made(c);
	MUST(sleeps_in(s.actor.tid, __NR_kevent_wait));
	MUST_EQ(pthread_kill(s.actor.thread, SIGUSR1), 0);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.id.raw_u64 & ~(uint64_t)3, REFUSED);
	CHECK_EQ(result_of(&ev), -EINTR);
	join_actor(&s.actor, PATIENCE_MS);
	CHECK_EQ(s.actor.ret, 1);
	close_pair(fd);
}

/* The chain is given to a server that comes to run when it has a signal. */
static void signal_leaves_a_chain_to_another_server(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct server s[2] = {};
	struct ukevent ev;

	catch_signal(SIGUSR1);
	share_cpu();
	start_server(&s[0], q->fd, 1);
	start_server(&s[1], q->fd, 1);
	go_first();
	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	MUST_EQ(pthread_kill(s[0].actor.thread, SIGUSR1), 0);
	go_as_others();
	leave_cpu();
	join_actor(&s[0].actor, PATIENCE_MS);
	CHECK_EQ(s[0].actor.ret, -EINTR);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
	end_servers(q, &s[1], 1);
	CHECK_EQ(s[1].actor.ret, 1);
}

static void server_counts_until_its_timeout(struct queue *q)
{
	struct kevent_call c = GETPPID;
	uint64_t start = now_ns();
	struct ukevent ev;

	CHECK_EQ(serve(q->fd, 1, 20), 0);
	CHECK(now_ns() - start >= 20000000);
	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(serve(q->fd, 1, 1), 1);
	MUST_EVENT(q, &ev);
}

/* Memory, processes */

static void chain_without_memory_is_broken(struct queue *q)
{
	struct kevent_call *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ukevent ev;

	MUST(c != MAP_FAILED);
	c[0] = GETPPID;
	MUST_EQ(add_chain(q->fd, c, 1, COOKIE), 0);
	munmap(c, 4096);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE | KEVENT_RET_BROKEN);
	CHECK_EQ((int)ev.ret_data[1], -EFAULT);
	CHECK_EQ(ev.ptr, COOKIE);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static int submits_and_ends(void *arg)
{
	struct queue *q = arg;
	struct kevent_call c[2] = { GETPPID, GETPPID };

	CHILD_MUST(!add_chain(q->fd, &c[0], 1, 1));
	CHILD_MUST(!add_chain(q->fd, &c[1], 1, 2));
	if (!q->size)
		return 0;
	CHILD_MUST(!fcntl(q->fd, F_SETFD, 0));
	exec_and_end();
	return 0;
}

/* Queues are for exit when they have no ring, and for exec when they have one. */
static void process_that_ends_drops_its_chains(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;
	unsigned int i;

	CHECK_EQ(join_child(start_child(submits_and_ends, q), PATIENCE_MS), 0);
	for (i = 1; i <= 2; i++) {
		MUST_EVENT(q, &ev);
		check_done(&ev, i, REFUSED, -ECANCELED);
	}
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	MUST_EQ(add_chain(q->fd, &c, 1, 1), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, 1, 0, getppid());
}

static int is_refused(void *arg)
{
	struct queue *q = arg;
	struct kevent_call c[2] = { GETPPID, GETPPID };

	CHILD_MUST(add_chain(q->fd, c, 1, 7) == -EXDEV);
	CHILD_MUST(serve(q->fd, 1, 0) == -EXDEV);
	c[1].nr = SYS_fsync;
	CHILD_MUST(submit(q->fd, c, 2, 7) == (1 | REFUSED));
	CHILD_MUST(c[1].result == -EXDEV);
	return 0;
}

static void chains_are_those_of_one_process(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;

	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(join_child(start_child(is_refused, q), PATIENCE_MS), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
}

static int may_not_remove(void *arg)
{
	struct queue *q = arg;

	CHILD_MUST(remove_chain(q->fd, COOKIE) == -EPERM);
	return 0;
}

static void another_process_cancels_nothing(struct queue *q)
{
	struct kevent_call c = GETPPID;
	struct ukevent ev;

	MUST_EQ(add_chain(q->fd, &c, 1, COOKIE), 0);
	CHECK_EQ(join_child(start_child(may_not_remove, q), PATIENCE_MS), 0);
	CHECK_EQ(serve(q->fd, 1, 0), 1);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, 0, getppid());
}

static int is_killed(void *arg)
{
	struct queue *q = arg;
	struct kevent_call c[2];
	struct server s = { .kq = q->fd, .limit = 1 };
	char buf[8];
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return 1;
	c[0] = GETPPID;
	c[1] = ENTRY(SYS_read, fd[0], buf, 8);
	CHILD_MUST(!add_chain(q->fd, c, 2, 1));
	CHILD_MUST(!add_chain(q->fd, c, 2, 2));
	start_actor(&s.actor, serve_on, &s);
	while (!is_made(c))
		sched_yield();
	kill(getpid(), SIGKILL);
	return 2;
}

static void sigkill_ends_what_runs_and_what_waits(struct queue *q)
{
	struct ukevent ev[2];
	unsigned int i;

	CHECK_EQ(join_child(start_child(is_killed, q), PATIENCE_MS), -SIGKILL);
	for (i = 0; i < 2; i++) {
		MUST_EVENT(q, &ev[i]);
		CHECK(result_of(&ev[i]) == -EINTR ||
		      result_of(&ev[i]) == -ECANCELED);
	}
	CHECK_EQ(ev[0].ptr + ev[1].ptr, 3);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static const struct test_case cases[] = {
	TEST_EACH(chain_that_waits_is_cancelled),
	TEST_EACH(file_that_a_server_used_last_is_closed),
	TEST_EACH(thread_that_blocks_in_what_calls_have_left_makes_room),
	TEST_EACH(chain_that_runs_is_not_cancelled),
	TEST_EACH(chain_is_cancelled_until_it_is_begun),
	TEST_EACH(chain_is_neither_modified_nor_marked),
	TEST_EACH(thread_that_blocks_makes_room_for_another),
	TEST_EACH(limit_holds),
	TEST_EACH(servers_leave_when_their_descriptor_is_closed),
	TEST_EACH(servers_leave_when_it_is_another_file),
	TEST_EACH(close_before_a_server_sleeps_is_seen),
	TEST_EACH(end_of_a_child_wakes_no_server),
	TEST_EACH(close_in_each_table_is_seen),
	TEST_EACH(chain_may_close_its_queue),
	TEST_EACH(signal_ends_the_wait_of_a_server),
	TEST_EACH(signal_ends_a_chain_and_its_event_says_so),
	TEST_EACH(signal_leaves_a_chain_to_another_server),
	TEST_EACH(server_counts_until_its_timeout),
	TEST_EACH(chain_without_memory_is_broken),
	TEST_EACH(process_that_ends_drops_its_chains),
	TEST_EACH(chains_are_those_of_one_process),
	TEST_EACH(another_process_cancels_nothing),
	TEST_EACH(sigkill_ends_what_runs_and_what_waits),
	{ }
};

const struct test_suite aio_servers_suite = {
	.name = "aio_servers",
	.cases = cases,
};

#endif /* __LP64__ */
