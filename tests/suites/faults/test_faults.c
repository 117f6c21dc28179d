// SPDX-License-Identifier: GPL-2.0
/*
 * A call of one thread is blocked in a page fault that nobody serves
 *
 *	T1	kevent_wait() ...	faults on a userfaultfd page, sleeps
 *	main	close of a watched fd, of the queue, of another queue of
 *		the same file, REMOVE, fork, exit of a thread, a new event: each
 *		ends within a second
 *	main	serves the fault after 5 seconds
 *	T1	returns; every event has arrived once
 *
 * and, with T1 blocked in the same place, exit and SIGKILL end the process
 * within a second. The page holds the ring, the buffer, the array or the
 * timeout of the call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"
#include "uffd.h"

#define NR		8
#define HOLD_NS		5000000000ull

/* What happens to which watch while the call is blocked */
#define REMOVED		1
#define CLOSED		2
#define LATE		3

struct fault {
	const struct fault_case	*c;
	struct queue		q;
	int			kq;		/* of the stuck call */
	int			uffd;
	char			*page;		/* the one that is missing */
	char			saved[PAGE];	/* its contents */
	int			fd[NR][2];
	unsigned int		counts[NR];
	struct actor		stuck;
};

/*
 * @prepare:	set up queue and watches, fire, choose f->page
 * @call:	the call that blocks
 * @check:	its result
 */
struct fault_case {
	void	(*prepare)(struct fault *f);
	long	(*call)(struct fault *f);
	void	(*check)(struct fault *f);
};

/* From here on only the blocked call may touch the page. */
static void take_page_away(struct fault *f)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)f->page, .len = PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	f->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	MUST(f->uffd >= 0);
	MUST_EQ(ioctl(f->uffd, UFFDIO_API, &api), 0);
	memcpy(f->saved, f->page, PAGE);
	MUST_EQ(madvise(f->page, PAGE, MADV_DONTNEED), 0);
	MUST_EQ(ioctl(f->uffd, UFFDIO_REGISTER, &reg), 0);
}

static void await_page_fault(struct fault *f)
{
	struct uffd_msg msg;

	poll_fault(f->uffd);
	MUST_EQ(read(f->uffd, &msg, sizeof(msg)), sizeof(msg));
	MUST_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
	MUST_EQ(msg.arg.pagefault.address & ~(PAGE - 1), (uintptr_t)f->page);
}

static void copy_page(struct fault *f)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)f->page,
		.src = (uintptr_t)f->saved,
		.len = PAGE,
	};

	MUST_EQ(ioctl(f->uffd, UFFDIO_COPY, &copy), 0);
}

static long run_call(void *arg)
{
	struct fault *f = arg;

	return f->c->call(f);
}

/* Returns while a thread is blocked in the fault. */
static void get_stuck(struct fault *f, const struct fault_case *c)
{
	unsigned int i;

	*f = (struct fault){ .c = c };
	for (i = 0; i < NR; i++)
		open_pipe(f->fd[i]);
	c->prepare(f);
	f->kq = f->q.fd;
	take_page_away(f);
	start_actor(&f->stuck, run_call, f);
	await_page_fault(f);
}

/* Watches and events of the pipes from @first on, except the late one */
/* Events are queued; the writes do not store them. */
static void watch_pipes(struct fault *f, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		MUST_EQ(add_pipe(f->q.fd, f->fd[i][0], KEVENT_SOCKET_RECV,
				 ET | KEVENT_REQ_LAST_CHECK, i), 0);
		if (i != LATE)
			put_byte(f->fd[i][1]);
	}
}

/* What other threads and processes do while the call is blocked */

static void close_watched(struct fault *f)
{
	MUST_EQ(close(f->fd[CLOSED][0]), 0);
}

static void remove_watch(struct fault *f)
{
	MUST_EQ(remove_file(f->q.fd, KEVENT_PIPE, f->fd[REMOVED][0]), 0);
}

static void fork_and_exit(struct fault *f)
{
	pid_t pid = fork();

	(void)f;
	if (!pid)
		_exit(0);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
}

static long do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void end_a_thread(struct fault *f)
{
	struct actor a;

	(void)f;
	start_actor(&a, do_nothing, NULL);
	join_actor(&a, PATIENCE_MS);
}

static void late_event(struct fault *f)
{
	put_byte(f->fd[LATE][1]);
}

static void close_other_queue(struct fault *f)
{
	struct queue other;

	open_queue(&other, 0);
	MUST_EQ(add_pipe(other.fd, f->fd[LATE][0], KEVENT_SOCKET_RECV,
			 HAND_BACK | ET, 0), 1);
	close_queue(&other);
}

static void close_this_queue(struct fault *f)
{
	f->q.fd = dup(f->kq);
	MUST(f->q.fd >= 0);
	MUST_EQ(close(f->kq), 0);
}

/* The fault lasts until the test ends it: what waited for that would never return. */
static void has_ended(const char *what, uint64_t start)
{
	note("%s: %llu us", what, (unsigned long long)(now_ns() - start) / 1000);
}

static void check_others(struct fault *f)
{
	static const struct {
		const char *name;
		void (*act)(struct fault *f);
	} others[] = {
		{ "close of a watched descriptor", close_watched },
		{ "REMOVE", remove_watch },
		{ "fork", fork_and_exit },
		{ "exit of a thread", end_a_thread },
		{ "an event", late_event },
		{ "close of another queue", close_other_queue },
		{ "close of the queue", close_this_queue },
	};
	uint64_t start;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		start = now_ns();
		others[i].act(f);
		has_ended(others[i].name, start);
	}
}

static void check_hold(const struct fault_case *c)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct fault f;
	uint64_t start;
	unsigned int i;

	get_stuck(&f, c);
	start = now_ns();
	check_others(&f);
	while (now_ns() - start < HOLD_NS)
		nanosleep(&nap, NULL);
	CHECK(!actor_ended(&f.stuck));
	copy_page(&f);
	join_actor(&f.stuck, PATIENCE_MS);
	c->check(&f);
	drain(&f.q, f.counts, NR);
	for (i = 0; i < NR; i++) {
		/* These two may have begun before. */
		if (i == REMOVED || i == CLOSED)
			CHECK(f.counts[i] <= 1);
		else
			CHECK_EQ(f.counts[i], 1);
	}
	CHECK_EQ(fdinfo(f.q.fd, "kevent-watches"), NR - 2);
	CHECK_EQ(fdinfo(f.q.fd, "kevent-ready"), 0);
}

/*
 * The blocked process passes its userfaultfd to the test, so that its own end
 * does not serve the fault.
 */
static int be_stuck(const struct fault_case *c, int sock, int sig)
{
	struct fault f;

	get_stuck(&f, c);
	send_fd(sock, f.uffd);
	while (sig)
		pause();
	return 0;
}

static void check_stuck_end(const struct fault_case *c, int sig)
{
	int sock[2], uffd, ret;
	uint64_t start;
	pid_t pid;

	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	pid = fork();
	if (!pid)
		_exit(be_stuck(c, sock[0], sig));
	close(sock[0]);
	uffd = receive_fd(sock[1]);
	start = now_ns();
	MUST(uffd >= 0);
	if (sig)
		MUST_EQ(kill(pid, sig), 0);
	ret = join_child(pid, PATIENCE_MS);
	has_ended(sig ? "SIGKILL" : "exit", start);
	CHECK_EQ(ret, -sig);
	close(uffd);
	close(sock[1]);
}

static void check_fault(const struct fault_case *c)
{
	check_stuck_end(c, 0);
	check_stuck_end(c, SIGKILL);
	check_hold(c);
}

/* The header of the ring, with its first slots */

static void prepare_header(struct fault *f)
{
	open_queue(&f->q, 16);
	watch_pipes(f, NR);
	f->page = (char *)f->q.ring;
}

static long call_wait(struct fault *f)
{
	return kevent_wait(f->kq, NR, 0, NULL, 0, NULL);
}

static void check_some(struct fault *f)
{
	CHECK(f->stuck.ret > 0);
	CHECK(f->stuck.ret <= NR);
}

static void ring_header_in_wait(void)
{
	static const struct fault_case c = {
		prepare_header, call_wait, check_some,
	};

	check_fault(&c);
}

/* Slots: 98 fit on the first page, slot 99 is on both. */

static void prepare_slots(struct fault *f)
{
	struct ukevent ev;
	unsigned int i;

	open_queue(&f->q, 256);
	MUST_EQ(add_user(f->q.fd, 1, 1, 0, 0), 0);
	for (i = 0; i < 98; i++) {
		MUST_EQ(mark_user(f->q.fd, 1, 1), 1);
		MUST_EQ(next_event(&f->q, &ev, 0), 1);
	}
	kevent_set_user(&ev, 1, 0, 0, 0);
	MUST_EQ(kevent_ctl_one(f->q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	watch_pipes(f, NR);
	f->page = (char *)f->q.ring + PAGE;
}

static long call_wait_past_98(struct fault *f)
{
	return kevent_wait(f->kq, NR, 98, NULL, 0, NULL);
}

static void ring_slots_in_wait(void)
{
	static const struct fault_case c = {
		prepare_slots, call_wait_past_98, check_some,
	};

	check_fault(&c);
}

/* A full ring whose consumer commits */

static void prepare_full_ring(struct fault *f)
{
	struct ukevent ev;
	unsigned int i;

	open_queue(&f->q, 16);
	for (i = 0; i < 16; i++)
		MUST_EQ(add_user(f->q.fd, i, 1, 0, 0), 0);
	for (i = 0; i < 16; i++)
		MUST_EQ(mark_user(f->q.fd, i, 1), 1);
	MUST_EQ(wait_ring(&f->q, 16, 0), 16);
	for (i = 0; i < 16; i++) {
		kevent_set_user(&ev, i, 0, 0, 0);
		MUST_EQ(kevent_ctl_one(f->q.fd, KEVENT_CTL_REMOVE, &ev), 0);
	}
	watch_pipes(f, NR);
	f->page = (char *)f->q.ring;
}

static long call_commit(struct fault *f)
{
	return kevent_commit(f->kq, 16, 0);
}

static void check_commit(struct fault *f)
{
	CHECK_EQ(f->stuck.ret, 16);
}

static void ring_in_commit(void)
{
	static const struct fault_case c = {
		prepare_full_ring, call_commit, check_commit,
	};

	check_fault(&c);
}

/* The buffer of get_events() */

static void prepare_buffer(struct fault *f)
{
	open_queue(&f->q, 0);
	watch_pipes(f, NR);
	f->page = map_page();
}

static long call_get_events(struct fault *f)
{
	return kevent_get_events(f->kq, 1, NR, NULL,
				 (struct ukevent *)f->page, 0);
}

static void check_buffer(struct fault *f)
{
	const struct ukevent *ev = (struct ukevent *)f->page;
	long i;

	CHECK(f->stuck.ret > 0);
	for (i = 0; i < f->stuck.ret; i++) {
		MUST(ev[i].ptr < NR);
		f->counts[ev[i].ptr]++;
	}
}

static void buffer_in_get_events(void)
{
	static const struct fault_case c = {
		prepare_buffer, call_get_events, check_buffer,
	};

	check_fault(&c);
}

/* The array of kevent_ctl(): it adds the second half of the pipes. */

static void prepare_array(struct fault *f)
{
	struct ukevent *ev;
	unsigned int i;

	open_queue(&f->q, 16);
	watch_pipes(f, NR / 2);
	f->page = map_page();
	ev = (struct ukevent *)f->page;
	for (i = NR / 2; i < NR; i++)
		kevent_set_pipe(ev++, f->fd[i][0], KEVENT_SOCKET_RECV, ET, i);
}

static long call_add(struct fault *f)
{
	return kevent_ctl(f->kq, KEVENT_CTL_ADD, NR / 2,
			  (struct ukevent *)f->page);
}

static void check_add(struct fault *f)
{
	unsigned int i;

	CHECK_EQ(f->stuck.ret, 0);
	for (i = NR / 2; i < NR; i++)
		put_byte(f->fd[i][1]);
}

static void array_in_add(void)
{
	static const struct fault_case c = {
		prepare_array, call_add, check_add,
	};

	check_fault(&c);
}

/* The array again: the call removes watches that do not exist. */

static void prepare_remove(struct fault *f)
{
	struct ukevent *ev;

	open_queue(&f->q, 16);
	watch_pipes(f, NR);
	f->page = map_page();
	ev = (struct ukevent *)f->page;
	kevent_set_user(&ev[0], 1, 0, 0, 0);
	kevent_set_user(&ev[1], 2, 0, 0, 0);
}

static long call_remove(struct fault *f)
{
	return kevent_ctl(f->kq, KEVENT_CTL_REMOVE, 2,
			  (struct ukevent *)f->page);
}

static void check_remove(struct fault *f)
{
	CHECK_EQ(f->stuck.ret, 2);
}

static void array_in_remove(void)
{
	static const struct fault_case c = {
		prepare_remove, call_remove, check_remove,
	};

	check_fault(&c);
}

/* The timeout is zero, so the call returns when it has read it. */

static void prepare_timeout(struct fault *f)
{
	open_queue(&f->q, 16);
	watch_pipes(f, NR);
	f->page = map_page();
}

/* The queue may have been closed before the call used it. */
static void check_timeout(struct fault *f)
{
	CHECK(f->stuck.ret > 0 || f->stuck.ret == -EBADF);
}

static long call_wait_timeout(struct fault *f)
{
	return kevent_wait(f->kq, NR, 0, (struct timespec *)f->page, 0, NULL);
}

static void timeout_in_wait(void)
{
	static const struct fault_case c = {
		prepare_timeout, call_wait_timeout, check_timeout,
	};

	check_fault(&c);
}

static long call_get_timeout(struct fault *f)
{
	struct ukevent ev[NR];
	long ret, i;

	ret = kevent_get_events(f->kq, 1, NR, (struct timespec *)f->page, ev,
				0);
	for (i = 0; i < ret; i++)
		if (ev[i].ptr < NR)
			f->counts[ev[i].ptr]++;
	return ret;
}

static void timeout_in_get_events(void)
{
	static const struct fault_case c = {
		prepare_timeout, call_get_timeout, check_timeout,
	};

	check_fault(&c);
}

/*
 * One thread is blocked on its own buffer. Another thread still gets the events
 * that come later.
 */
static void consumer_stuck_in_a_fault_blocks_no_other(void)
{
	static const struct fault_case c = {
		prepare_buffer, call_get_events, check_buffer,
	};
	struct ukevent ev;
	struct fault f;
	unsigned int i;

	get_stuck(&f, &c);
	put_byte(f.fd[LATE][1]);
	do {
		MUST_EQ(get_events(f.q.fd, 1, 1, 0, &ev), 1);
		MUST(ev.ptr < NR);
		f.counts[ev.ptr]++;
	} while (ev.ptr != LATE);
	copy_page(&f);
	CHECK_EQ(kevent_ctl(f.q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	join_actor(&f.stuck, PATIENCE_MS);
	CHECK(f.stuck.ret >= 0);
	if (f.stuck.ret)
		check_buffer(&f);
	drain(&f.q, f.counts, NR);
	for (i = 0; i < NR; i++)
		CHECK_EQ(f.counts[i], 1);
	close_queue(&f.q);
}

static const struct test_case cases[] = {
	TEST_LIMIT(ring_header_in_wait, 30),
	TEST_LIMIT(ring_slots_in_wait, 30),
	TEST_LIMIT(ring_in_commit, 30),
	TEST_LIMIT(buffer_in_get_events, 30),
	TEST_LIMIT(array_in_add, 30),
	TEST_LIMIT(array_in_remove, 30),
	TEST_LIMIT(timeout_in_wait, 30),
	TEST_LIMIT(timeout_in_get_events, 30),
	TEST_LIMIT(consumer_stuck_in_a_fault_blocks_no_other, 30),
	{}
};

const struct test_suite faults_suite = {
	.name = "faults",
	.cases = cases,
	.jobs = 4,
};
