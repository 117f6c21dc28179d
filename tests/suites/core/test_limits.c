// SPDX-License-Identifier: GPL-2.0
/*
 * Limits: watches per user and per file, memory, and the switch-off
 *
 * The tests change settings of the whole guest for a child with a user id of its
 * own, and restore them when the child has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "helpers.h"

#define SWITCH	"/proc/sys/kernel/kevent_disabled"
#define GROUP		"/proc/sys/kernel/kevent_group"

#define SOME_USER	4242
#define SOME_GROUP	4343

/* What a user is charged for a watch of his own marks */
static long long mark_watch_bytes(void)
{
	long long before;
	struct queue q;

	open_queue(&q, 0);
	before = fdinfo(q.fd, "kevent-user-bytes");
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	before = fdinfo(q.fd, "kevent-user-bytes") - before;
	close_queue(&q);
	MUST(before > 0);
	return before;
}

/* Runs @fn in a child that may have @nr such watches. */
static void with_room_for(unsigned int nr, int (*fn)(void *arg), void *arg)
{
	char value[32];

	snprintf(value, sizeof(value), "%lld", nr * mark_watch_bytes());
	with_setting(MAX_BYTES, value, fn, arg);
}

static int become_user(void)
{
	return setgroups(0, NULL) ||
	       setresgid(SOME_USER, SOME_USER, SOME_USER) ||
	       setresuid(SOME_USER, SOME_USER, SOME_USER) ||
	       prctl(PR_SET_DUMPABLE, 1);
}

static int adds_up_to_the_limit(void *arg)
{
	struct ukevent ev;
	int kq, other, i;

	(void)arg;
	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	for (i = 0; i < 100; i++)
		CHILD_MUST(add_user(kq, i, 1, 0, 0) == 0);
	CHILD_MUST(add_user(kq, 100, 1, 0, 0) == -ENOSPC);
	CHILD_MUST(add_user(kq, 99, 1, 0, 0) == -EEXIST ||
		   add_user(kq, 99, 1, 0, 0) == -ENOSPC);
	kevent_set_user(&ev, 5, 1, 0, 0);
	CHILD_MUST(kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &ev) == 0);
	CHILD_MUST(add_user(kq, 100, 1, 0, 0) == 0);
	CHILD_MUST(add_user(kq, 101, 1, 0, 0) == -ENOSPC);
	/* Watches that exist still work. */
	CHILD_MUST(mark_user(kq, 100, 1) == 1);
	CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 1);
	/* All queues of a user share the limit until they are closed. */
	other = kevent_init(NULL, 0, 0);
	CHILD_MUST(add_user(other, 1, 1, 0, 0) == -ENOSPC);
	CHILD_MUST(close(kq) == 0);
	for (i = 0; i < 100; i++)
		CHILD_MUST(add_user(other, i, 1, 0, 0) == 0);
	CHILD_MUST(add_user(other, 100, 1, 0, 0) == -ENOSPC);
	return 0;
}

static void watches_per_user_are_limited_exactly(void)
{
	with_room_for(100, adds_up_to_the_limit, NULL);
	/* A process that ended with its watches leaves no charge. */
	with_room_for(100, adds_up_to_the_limit, NULL);
}

/* As many marks as fit into the charge of one watch */
static int keeps_marks_up_to_the_limit(void *arg)
{
	long long before, each;
	struct ukevent ev;
	int kq, i, marks;

	(void)arg;
	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(add_user(kq, 1, 1, KEVENT_REQ_KEEP_EACH, 0) == 0);
	before = fdinfo(kq, "kevent-user-bytes");
	for (marks = 0; mark_user(kq, 1, 1) == 1; marks++)
		CHILD_MUST(marks < 65536);
	CHILD_MUST(marks > 1);
	kevent_set_mark(&ev, 1, 1, 0);
	CHILD_MUST(kevent_ctl_one(kq, KEVENT_CTL_READY, &ev) == -ENOSPC);
	each = (fdinfo(kq, "kevent-user-bytes") - before) / marks;
	CHILD_MUST(each >= 24);
	CHILD_MUST(add_user(kq, 2, 1, 0, 0) == -ENOSPC);
	/*
	 * Delivery frees the charge of a mark, and so does the end of the
	 * watch.
	 */
	for (i = 0; i < marks; i++)
		CHILD_MUST(get_events(kq, 1, 1, 0, &ev) == 1);
	CHILD_MUST(fdinfo(kq, "kevent-user-bytes") == before);
	for (i = 0; i < marks; i++)
		CHILD_MUST(mark_user(kq, 1, 1) == 1);
	kevent_set_user(&ev, 1, 1, 0, 0);
	CHILD_MUST(kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &ev) == 0);
	CHILD_MUST(fdinfo(kq, "kevent-user-bytes") == 0);
	return 0;
}

static void kept_marks_are_charged(void)
{
	with_room_for(2, keeps_marks_up_to_the_limit, NULL);
}

static int no_type_is_free(void *arg)
{
	int kq, file = open("/proc/self/exe", O_RDONLY), fd[2], sock[2], i;
	static uint32_t word;
	struct ukevent ev[8];

	(void)arg;
	CHILD_MUST(pipe(fd) == 0 && file >= 0);
	CHILD_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	kevent_set_socket(&ev[0], sock[0], KEVENT_SOCKET_RECV, 0, 0);
	kevent_set_pipe(&ev[1], fd[0], KEVENT_SOCKET_RECV, 0, 0);
	kevent_set_poll(&ev[2], fd[0], KEVENT_POLL_POLLIN, 0, 0);
	kevent_set_inode(&ev[3], file, KEVENT_INODE_MODIFY, 0, 0);
	kevent_set_timer(&ev[4], 1000000000, 0, 0, 0, 0);
	kevent_set_signal(&ev[5], SIGUSR1, 0, 0, 0);
	kevent_set_proc(&ev[6], getpid(), 0, 0);
	kevent_set_futex(&ev[7], &word, 0, 0, 0, 0);
	CHILD_MUST(kevent_ctl(kq, KEVENT_CTL_ADD, 8, ev) == 8);
	for (i = 0; i < 8; i++)
		CHILD_MUST(kevent_error(&ev[i]) == -ENOSPC);
	CHILD_MUST(create_posix_timer(kq) == -ENOSPC);
	CHILD_MUST(add_user(kq, 1, 1, 0, 0) == -ENOSPC);
	return 0;
}

static void watches_of_every_type_are_limited(void)
{
	with_setting(MAX_BYTES, "0", no_type_is_free, NULL);
}

static int add_futex(int kq, uint32_t *word)
{
	struct ukevent ev;

	kevent_set_futex(&ev, word, 0, KEVENT_FUTEX_PRIVATE, 0, 0);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

/* A stack of a thread is 16 KiB, or twice as much on some kernels. */
static int has_as_many_futexes_as_threads(void *arg)
{
	static uint32_t words[65];
	int kq, nr = 0;

	(void)arg;
	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	while (nr < 65 && add_futex(kq, &words[nr]) == 0)
		nr++;
	CHILD_MUST(nr > 16 && nr < 65);
	CHILD_MUST(add_futex(kq, &words[nr]) == -ENOSPC);
	/* Another kind of watch finds room still. */
	CHILD_MUST(add_user(kq, 1, 1, 0, 0) == 0);
	CHILD_MUST(close(kq) == 0);
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(fdinfo(kq, "kevent-user-bytes") == 0);
	return 0;
}

/* Each FUTEX_WAKE of others may walk all that a user has. */
static void futex_watches_are_as_few_as_threads(void)
{
	with_setting(MAX_BYTES, "1048576", has_as_many_futexes_as_threads,
		     NULL);
}

/* What is left of an address space costs more than some watches. */
static int adds_futex_of_another_process(void *arg)
{
	static uint32_t word[2];
	int kq, status;
	pid_t pid;

	(void)arg;
	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	CHILD_MUST(add_futex(kq, &word[0]) == 0);
	pid = fork();
	if (!pid)
		_exit(add_futex(kq, &word[1]) != -ENOSPC);
	CHILD_MUST(waitpid(pid, &status, 0) == pid && status == 0);
	/* Nothing of the charge is left. */
	CHILD_MUST(add_futex(kq, &word[1]) == 0);
	return 0;
}

static void address_spaces_are_charged(void)
{
	static uint32_t word;
	struct queue q;
	char value[32];
	long long each;

	open_queue(&q, 0);
	each = -fdinfo(q.fd, "kevent-user-bytes");
	MUST_EQ(add_futex(q.fd, &word), 0);
	each += fdinfo(q.fd, "kevent-user-bytes");
	close_queue(&q);
	snprintf(value, sizeof(value), "%lld", 2 * each + 4096);
	with_setting(MAX_BYTES, value, adds_futex_of_another_process, NULL);
}

struct race {
	pthread_t	thread;
	int		kq;
	unsigned int	first;
	int		added;
	int		error;
};

static void *add_many(void *arg)
{
	struct race *r = arg;
	unsigned int i;
	int ret;

	for (i = 0; i < 300; i++) {
		ret = add_user(r->kq, r->first + i, 1, 0, 0);
		if (ret == 0)
			r->added++;
		else if (ret != -ENOSPC)
			r->error = ret;
	}
	return NULL;
}

static int adds_from_eight_threads(void *arg)
{
	struct race race[8] = {};
	int i, sum = 0, kq;

	(void)arg;
	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	for (i = 0; i < 8; i++) {
		race[i].kq = kq;
		race[i].first = i * 1000;
		CHILD_MUST(!pthread_create(&race[i].thread, NULL, add_many,
					   &race[i]));
	}
	for (i = 0; i < 8; i++) {
		CHILD_MUST(!pthread_join(race[i].thread, NULL));
		CHILD_MUST(!race[i].error);
		sum += race[i].added;
	}
	CHILD_MUST(sum == 1000);
	CHILD_MUST(fdinfo(kq, "kevent-watches") == 1000);
	return 0;
}

static void limit_is_exact_when_threads_race_for_it(void)
{
	with_room_for(1000, adds_from_eight_threads, NULL);
}

static void watches_per_file_are_limited(void)
{
	struct queue q;
	int fd[2], copy[1001], i;

	open_fds(2000);
	open_queue(&q, 0);
	open_pipe(fd);
	for (i = 0; i < 1001; i++) {
		copy[i] = dup(fd[0]);
		MUST(copy[i] >= 0);
	}
	for (i = 0; i < 1000; i++)
		MUST_EQ(add_pipe(q.fd, copy[i], 1, KEVENT_REQ_ET, i), 0);
	CHECK_EQ(add_pipe(q.fd, copy[1000], 1, KEVENT_REQ_ET, i), -ENOSPC);
	CHECK_EQ(add_poll(q.fd, copy[0], 1, KEVENT_REQ_ET, i), -ENOSPC);
	CHECK_EQ(close(copy[0]), 0);
	CHECK_EQ(add_pipe(q.fd, copy[1000], 1, KEVENT_REQ_ET, 0), 0);
	put_byte(fd[1]);
	for (i = 0; i < 1000; i++) {
		struct ukevent ev;

		MUST_EQ(next_event(&q, &ev, 0), 1);
	}
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* A wait queue that another user has filled with watches */
static int adds_to_a_full_file(void *arg)
{
	int kq, fd = *(int *)arg;

	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	CHILD_MUST(add_pipe(kq, fd, 1, KEVENT_REQ_ET, 0) == 0);
	CHILD_MUST(add_poll(kq, fd, 1, KEVENT_REQ_ET, 0) == 0);
	return 0;
}

static void watches_per_file_are_counted_per_user(void)
{
	struct queue q;
	int fd[2], i;

	open_fds(2000);
	open_queue(&q, 0);
	open_pipe(fd);
	for (i = 0; i < 1000; i++)
		MUST_EQ(add_pipe(q.fd, i ? dup(fd[0]) : fd[0], 1,
				 KEVENT_REQ_ET, i), 0);
	CHECK_EQ(add_poll(q.fd, fd[0], 1, KEVENT_REQ_ET, i), -ENOSPC);
	CHECK_EQ(join_child(start_child(adds_to_a_full_file, &fd[0]),
			    PATIENCE_MS), 0);
	CHECK_EQ(add_poll(q.fd, fd[0], 1, KEVENT_REQ_ET, i), -ENOSPC);
	close_queue(&q);
}

struct sharer {
	uid_t	uid;
	int	fd, ready, go;
};

#ifdef __LP64__	/* a 32-bit program has no bound calls */

/* Wait queues have limits of their own, which bound calls are not in. */
static int bind_read(int kq, int fd)
{
	struct kevent_call call = { .nr = SYS_read, .args = { (uint64_t)fd } };
	struct ukevent ev;

	kevent_set_bound(&ev, (uint32_t)fd, &call);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

/* Watches as often as it may, and stays until it is let go. */
static int fills_a_file(void *arg)
{
	struct sharer *s = arg;
	int kq, copy, nr = 0;
	char byte;

	CHILD_MUST(!setgroups(0, NULL) && !setresuid(s->uid, s->uid, s->uid));
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	do {
		copy = dup(s->fd);
		CHILD_MUST(copy >= 0);
	} while (bind_read(kq, copy) == 0 && ++nr < 1001);
	CHILD_MUST(nr == 1000);
	CHILD_MUST(bind_read(kq, copy) == -ENOSPC);
	CHILD_MUST(write(s->ready, "", 1) == 1);
	CHILD_MUST(read(s->go, &byte, 1) == 1);
	return 0;
}

static int shares_a_full_file(void *arg)
{
	int kq, fd = *(int *)arg;

	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	return add_pipe(kq, fd, 1, KEVENT_REQ_ET, 0) == -ENOSPC ? 2 : 0;
}

/* Whoever has the file walks over what all of them have there. */
static void watches_per_file_are_limited_for_all_users(void)
{
	int fd[2], ready[2], go[2], i;
	struct sharer s[4];
	pid_t child[4];
	struct queue q;
	char byte;

	open_fds(2000);
	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(pipe(ready), 0);
	MUST_EQ(pipe(go), 0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(join_child(start_child(shares_a_full_file, &fd[0]),
				    PATIENCE_MS), 0);
		s[i] = (struct sharer){ SOME_USER + 1 + (uid_t)i, fd[0],
					ready[1], go[0] };
		child[i] = start_child(fills_a_file, &s[i]);
		MUST_EQ(read(ready[0], &byte, 1), 1);
	}
	CHECK_EQ(join_child(start_child(shares_a_full_file, &fd[0]),
			    PATIENCE_MS), 2);
	/* Root has a place that they cannot take. */
	CHECK_EQ(add_pipe(q.fd, fd[0], 1, KEVENT_REQ_ET, 0), 0);
	MUST_EQ(write(go[1], "abcd", 4), 4);
	for (i = 0; i < 4; i++)
		CHECK_EQ(join_child(child[i], PATIENCE_MS), 0);
	CHECK_EQ(join_child(start_child(shares_a_full_file, &fd[0]),
			    PATIENCE_MS), 0);
	close_queue(&q);
}
#endif

#define WAIT_QUEUE_LIMIT 192

/* In each of two queues, watches as many open files of a FIFO as it may. */
static int fills_a_wait_queue(void *arg)
{
	int kq[2], fd, flags = *(int *)arg, i, nr = WAIT_QUEUE_LIMIT;

	CHILD_MUST(!become_user());
	for (i = 0; i < 2; i++) {
		kq[i] = kevent_init(NULL, 0, 0);
		CHILD_MUST(kq[i] >= 0);
	}
	fd = open("/tmp/limits", flags | O_NONBLOCK);
	for (i = 0; i < nr; i++) {
		fd = open("/tmp/limits", flags | O_NONBLOCK);
		CHILD_MUST(fd >= 0);
		CHILD_MUST(add_pipe(kq[i % 2], fd, 1, KEVENT_REQ_ET, 0) == 0);
	}
	CHILD_MUST(add_poll(kq[0], fd, 1, KEVENT_REQ_ET, 0) == -ENOSPC);
	CHILD_MUST(add_pipe(kq[0], fd, 1, KEVENT_REQ_ET, 0) == -ENOSPC);
	CHILD_MUST(fdinfo(kq[0], "kevent-watches") == nr / 2);
	/* A watch that is removed makes room. */
	CHILD_MUST(!remove_file(kq[1], KEVENT_PIPE, fd));
	CHILD_MUST(add_poll(kq[0], fd, 1, KEVENT_REQ_ET, 0) == 0);
	CHILD_MUST(add_pipe(kq[0], fd, 1, KEVENT_REQ_ET, 0) == -ENOSPC);
	return 0;
}

/* A FIFO that is open for both has two wait queues; one watch is in both. */
static void watches_per_wait_queue_are_limited(void)
{
	static const int flags[] = { O_RDONLY, O_RDWR };
	int fd, keep, i, j;
	struct queue q;

	open_fds(2000);
	MUST_EQ(mkfifo("/tmp/limits", 0600), 0);
	MUST_EQ(chmod("/tmp/limits", 0666), 0);
	keep = open("/tmp/limits", O_RDWR | O_NONBLOCK);
	open_queue(&q, 0);
	for (i = 0; i < 2; i++) {
		int mode = flags[i];

		CHECK_EQ(join_child(start_child(fills_a_wait_queue, &mode),
				    2 * PATIENCE_MS), 0);
	}
	/* CAP_SYS_RESOURCE removes the limit of both wait queues. */
	for (j = 0; j < 2 * WAIT_QUEUE_LIMIT; j++) {
		fd = open("/tmp/limits", O_RDWR | O_NONBLOCK);
		MUST(fd >= 0);
		MUST_EQ(add_pipe(q.fd, fd, 1, KEVENT_REQ_ET, j), 0);
	}
	CHECK_EQ(join_child(start_child(fills_a_wait_queue,
					&(int){ O_RDONLY }),
			    2 * PATIENCE_MS), 0);
	close_queue(&q);
	close(keep);
	unlink("/tmp/limits");
}

/* Adds watches of an eventfd, of which the first is behind 4500 items of epolls. */
static int joins_behind_others(void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int kq, ep[5], fd[900], i, j;

	(void)arg;
	CHILD_MUST(!become_user());
	kq = kevent_init(NULL, 0, 0);
	for (i = 0; i < 900; i++)
		fd[i] = i ? dup(fd[0]) : eventfd(0, EFD_NONBLOCK);
	CHILD_MUST(add_poll(kq, fd[0], EPOLLIN, KEVENT_REQ_ET, 0) == 0);
	for (j = 0; j < 5; j++) {
		ep[j] = epoll_create1(0);
		for (i = 0; i < 900; i++)
			CHILD_MUST(!epoll_ctl(ep[j], EPOLL_CTL_ADD, fd[i], &ev));
	}
	for (i = 1; i < WAIT_QUEUE_LIMIT; i++)
		CHILD_MUST(add_poll(kq, fd[i], EPOLLIN, KEVENT_REQ_ET, i) == 0);
	CHILD_MUST(add_poll(kq, fd[i], EPOLLIN, KEVENT_REQ_ET, i) == -ENOSPC);
	return 0;
}

/* A watch joins others of its file, wherever these are. */
static void watches_behind_others_are_limited(void)
{
	open_fds(2000);
	CHECK_EQ(join_child(start_child(joins_behind_others, NULL), 2 * PATIENCE_MS), 0);
}

/* Watches a FIFO until it must not any more, or has as many as it wants. */
static int watches_the_fifo(void *arg)
{
	struct sharer *s = arg;
	int kq, fd, nr, err = 0;
	char byte;

	CHILD_MUST(!setgroups(0, NULL) && !setresuid(s->uid, s->uid, s->uid));
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	for (nr = 0; nr < WAIT_QUEUE_LIMIT && !err; nr++) {
		fd = open("/tmp/limits", O_RDONLY | O_NONBLOCK);
		CHILD_MUST(fd >= 0);
		err = add_pipe(kq, fd, 1, KEVENT_REQ_ET, 0);
	}
	CHILD_MUST(!err || err == -ENOSPC);
	CHILD_MUST(write(s->ready, err ? "f" : "a", 1) == 1);
	CHILD_MUST(read(s->go, &byte, 1) == 1);
	return 0;
}

/* A wake-up calls those of all users. */
static void watches_per_wait_queue_are_limited_for_all_users(void)
{
	int keep, fd, ready[2], go[2], i;
	struct sharer s[5];
	pid_t child[5];
	struct queue q;
	char byte;

	open_fds(2000);
	unlink("/tmp/limits");
	MUST_EQ(mkfifo("/tmp/limits", 0600), 0);
	MUST_EQ(chmod("/tmp/limits", 0666), 0);
	keep = open("/tmp/limits", O_RDWR | O_NONBLOCK);
	MUST_EQ(pipe(ready), 0);
	MUST_EQ(pipe(go), 0);
	for (i = 0; i < 5; i++) {
		s[i] = (struct sharer){ SOME_USER + 1 + (uid_t)i, -1, ready[1], go[0] };
		child[i] = start_child(watches_the_fifo, &s[i]);
		MUST_EQ(read(ready[0], &byte, 1), 1);
		CHECK_EQ(byte, i < 4 ? 'a' : 'f');
	}
	/* Root has a place that they cannot take. */
	open_queue(&q, 0);
	fd = open("/tmp/limits", O_RDONLY | O_NONBLOCK);
	CHECK_EQ(add_pipe(q.fd, fd, 1, KEVENT_REQ_ET, 0), 0);
	close_queue(&q);
	MUST_EQ(write(go[1], "abcde", 5), 5);
	for (i = 0; i < 5; i++)
		CHECK_EQ(join_child(child[i], PATIENCE_MS), 0);
	close(keep);
	unlink("/tmp/limits");
}

static long long fifo_watch_bytes(int kq, int flags)
{
	int fd = open("/tmp/limits", flags | O_NONBLOCK);
	long long before = fdinfo(kq, "kevent-user-bytes"), bytes;

	MUST(fd >= 0);
	MUST_EQ(add_pipe(kq, fd, 1, KEVENT_REQ_ET, 0), 0);
	bytes = fdinfo(kq, "kevent-user-bytes") - before;
	close(fd);
	CHECK_EQ(fdinfo(kq, "kevent-user-bytes"), before);
	return bytes;
}

struct last_room {
	int	kq, fd;
};

static int has_no_room_for_two(void *arg)
{
	struct last_room *b = arg;
	long long before = fdinfo(b->kq, "kevent-user-bytes");

	CHILD_MUST(add_pipe(b->kq, b->fd, 1, KEVENT_REQ_ET, 0) == -ENOSPC);
	CHILD_MUST(fdinfo(b->kq, "kevent-user-bytes") == before);
	return 0;
}

static void second_wait_queue_is_charged(void)
{
	long long one, two;
	struct last_room b;
	struct queue q;
	char value[32];

	MUST_EQ(mkfifo("/tmp/limits", 0600), 0);
	open_queue(&q, 0);
	one = fifo_watch_bytes(q.fd, O_RDONLY);
	two = fifo_watch_bytes(q.fd, O_RDWR);
	/* A wait queue entry of 40 bytes, and what leads to it */
	CHECK(two >= one + 40);
	b = (struct last_room){ q.fd, open("/tmp/limits", O_RDWR) };
	snprintf(value, sizeof(value), "%lld",
		 fdinfo(q.fd, "kevent-user-bytes") + two - 1);
	with_setting(MAX_BYTES, value, has_no_room_for_two, &b);
	close(b.fd);
	close_queue(&q);
	unlink("/tmp/limits");
}

/* The kernel memory that the group of this process is charged with */
static long charged_kernel(const char *group)
{
	char path[128], text[8192], *at;

	snprintf(path, sizeof(path), "%s/memory.stat", group);
	read_file(path, text, sizeof(text));
	at = strstr(text, "\nkernel ");
	return at ? atol(at + strlen("\nkernel ")) : -1;
}

static bool join_memory_group(const char *group)
{
	char procs[128], pid[16];
	int fd;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	snprintf(pid, sizeof(pid), "%d", getpid());
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	return write(fd, pid, strlen(pid)) > 0;
}

static void run_in_a_memory_group(int (*fn)(void *arg))
{
	char group[] = "/sys/fs/cgroup/kevent-XXXXXX";

	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	MUST(mkdtemp(group));
	CHECK_EQ(join_child(start_child(fn, group), 4 * PATIENCE_MS), 0);
	CHECK_EQ(rmdir(group), 0);
}

static int adds_in_a_memory_group(void *arg)
{
	const char *group = arg;
	long before, after;
	uint64_t start;
	int kq, i;

	CHILD_MUST(join_memory_group(group));
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	before = charged_kernel(group);
	CHILD_MUST(before >= 0);
	for (i = 0; i < 20000; i++)
		CHILD_MUST(add_user(kq, i, 1, 0, 0) == 0);
	/* The statistics are late by some pages. */
	for (start = now_ns(); ; ) {
		after = charged_kernel(group);
		if (after - before > 20000 * 64)
			break;
		CHILD_MUST(patient(start, PATIENCE_MS));
	}
	/* Watches are freed after a grace period. */
	close(kq);
	for (start = now_ns(); ; ) {
		after = charged_kernel(group);
		if (after - before < 20000 * 16)
			break;
		CHILD_MUST(patient(start, PATIENCE_MS));
	}
	return 0;
}

static void watches_are_charged_to_the_memory_group(void)
{
	run_in_a_memory_group(adds_in_a_memory_group);
}

#define ENDING		20
#define GROUP_BYTES	(65536 * 4)

/* Processes with many groups, and one that watches them and is not their parent */
struct grouped {
	pid_t	pid[ENDING];
	int	ready[2], end[2], stay[2];
};

static int has_many_groups(void *arg)
{
	static const gid_t groups[65536];
	struct grouped *g = arg;
	char byte;

	close(g->end[1]);
	CHILD_MUST(!setgroups(65536, groups));
	put_byte(g->ready[1]);
	return read(g->end[0], &byte, 1);
}

static int watches_the_grouped(void *arg)
{
	struct grouped *g = arg;
	int kq = kevent_init(NULL, 0, 0), i;
	struct ukevent ev;
	char byte;

	close(g->end[1]);
	close(g->stay[1]);
	for (i = 0; i < ENDING; i++) {
		kevent_set_proc(&ev, g->pid[i], KEVENT_REQ_DISABLED, 0);
		CHILD_MUST(kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev) == 0);
	}
	put_byte(g->ready[1]);
	CHILD_MUST(read(g->stay[0], &byte, 1) == 0);
	CHILD_MUST(fdinfo(kq, "kevent-watches") == ENDING);
	return 0;
}

static bool await_kernel(const char *group, bool more, long than)
{
	uint64_t start = now_ns();

	while ((charged_kernel(group) > than) != more)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

/* Their watches stay. */
static int ends_grouped_processes(void *arg)
{
	const char *group = arg;
	struct grouped g;
	long before;
	pid_t watcher;
	char byte;
	int i;

	CHILD_MUST(join_memory_group(group));
	CHILD_MUST(!pipe(g.ready) && !pipe(g.end) && !pipe(g.stay));
	before = charged_kernel(group);
	for (i = 0; i < ENDING; i++) {
		g.pid[i] = start_child(has_many_groups, &g);
		CHILD_MUST(read(g.ready[0], &byte, 1) == 1);
	}
	CHILD_MUST(await_kernel(group, true, before + ENDING * GROUP_BYTES));
	watcher = start_child(watches_the_grouped, &g);
	CHILD_MUST(read(g.ready[0], &byte, 1) == 1);
	close(g.end[1]);
	for (i = 0; i < ENDING; i++)
		CHILD_MUST(waitpid(g.pid[i], NULL, 0) == g.pid[i]);
	CHILD_MUST(await_kernel(group, false,
				before + ENDING * GROUP_BYTES / 4));
	close(g.stay[1]);
	CHILD_MUST(waitpid(watcher, &i, 0) == watcher && i == 0);
	return 0;
}

static void ended_processes_leave_no_groups(void)
{
	run_in_a_memory_group(ends_grouped_processes);
}

/* Whether root, a user, and a member of kevent_group may make a queue */
struct access {
	int root, user, member;
};

static int tries_to_open(void *arg)
{
	const struct access *want = arg;
	const gid_t group = SOME_GROUP;
	int old = kevent_init(NULL, 0, 0);

	CHILD_MUST((old < 0 ? old : 0) == want->root);
	CHILD_MUST(!setgroups(1, &group));
	CHILD_MUST(!setresgid(SOME_USER, SOME_USER, SOME_USER));
	CHILD_MUST(!setresuid(SOME_USER, SOME_USER, SOME_USER));
	old = kevent_init(NULL, 0, 0);
	CHILD_MUST((old < 0 ? old : 0) == want->member);
	return 0;
}

static int user_tries_to_open(void *arg)
{
	const struct access *want = arg;
	int fd;

	CHILD_MUST(!become_user());
	fd = kevent_init(NULL, 0, 0);
	CHILD_MUST((fd < 0 ? fd : 0) == want->user);
	return 0;
}

static void switch_off_has_three_positions(void)
{
	static const struct {
		const char	*value;
		struct access	want;
	} positions[] = {
		{ "0", { 0, 0, 0 } },
		{ "1", { 0, -EPERM, 0 } },
		{ "2", { -EPERM, -EPERM, -EPERM } },
	};
	struct access want;
	char old[64];
	unsigned int i;

	read_file(GROUP, old, sizeof(old));
	old[strcspn(old, "\n")] = '\0';
	write_file(GROUP, "4343");
	for (i = 0; i < ARRAY_SIZE(positions); i++) {
		want = positions[i].want;
		with_setting(SWITCH, positions[i].value, tries_to_open,
			     &want);
		with_setting(SWITCH, positions[i].value,
			     user_tries_to_open, &want);
	}
	write_file(GROUP, old);
}

static int uses_an_old_queue(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	CHILD_MUST(kevent_init(NULL, 0, 0) == -EPERM);
	CHILD_MUST(add_user(q->fd, 1, 1, 0, 6) == 0);
	CHILD_MUST(mark_user(q->fd, 1, 1) == 1);
	CHILD_MUST(get_events(q->fd, 1, 1, 0, &ev) == 1);
	CHILD_MUST(ev.ptr == 6);
	return 0;
}

#ifdef __LP64__	/* a chain of a 32-bit program is refused */

static int add_in_chain(struct queue *q, struct kevent_call *call)
{
	struct ukevent ev = {
		.id.raw_u64 = KEVENT_ARG(call), .type = KEVENT_AIO,
		.event = KEVENT_AIO_DONE, .ret_data = { 1 }, .ptr = 1,
	};

	return kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev);
}

static int runs_no_chain(void *arg)
{
	struct queue *q = arg;
	char byte;
	int fd[2];
	struct kevent_call call = { .nr = SYS_read };
	struct timespec now = { 0 };
	struct ukevent ev;

	CHILD_MUST(!pipe(fd) && write(fd[1], "", 1) == 1);
	call.args[0] = (uint64_t)fd[0];
	call.args[1] = KEVENT_ARG(&byte);
	call.args[2] = 1;
	CHILD_MUST(add_in_chain(q, &call) == -EPERM);
	kevent_set_bound(&ev, 0, &call);
	CHILD_MUST(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev) == -EPERM);
	CHILD_MUST(raw_kevent(__NR_kevent_call, -1, &call, 1, 0, 0l) == -1);
	CHILD_MUST(errno == EPERM);
	CHILD_MUST(raw_kevent(__NR_kevent_wait, q->fd, 1, 0, &now,
			      KEVENT_FLAGS_SERVE, NULL) == -1);
	CHILD_MUST(errno == EPERM);
	CHILD_MUST(read(fd[0], &byte, 1) == 1);
	return 0;
}

static void switch_off_is_for_chains_of_open_queues_too(void)
{
	struct queue q;

	open_queue(&q, 0);
	with_setting(SWITCH, "2", runs_no_chain, &q);
	close_queue(&q);
}

#endif

static void switch_off_leaves_open_queues_alone(void)
{
	struct queue q;

	open_queue(&q, 0);
	with_setting(SWITCH, "2", uses_an_old_queue, &q);
	close_queue(&q);
}

static int runs_without_privileges(void *arg)
{
	struct ukevent ev;
	struct queue q = { .size = 8 };
	static KEVENT_RING_STORAGE(8) mem;
	int fd[2];

	(void)arg;
	CHILD_MUST(!become_user());
	q.ring = &mem.ring;
	q.fd = kevent_init(q.ring, 8, 0);
	CHILD_MUST(q.fd >= 0);
	CHILD_MUST(!pipe(fd));
	CHILD_MUST(add_pipe(q.fd, fd[0], 1, KEVENT_REQ_ET, 3) == 0);
	CHILD_MUST(write(fd[1], "", 1) == 1);
	CHILD_MUST(next_event(&q, &ev, 0) == 1);
	CHILD_MUST(ev.ptr == 3);
	return 0;
}

static void no_privilege_is_needed(void)
{
	CHECK_EQ(join_child(start_child(runs_without_privileges, NULL),
			    PATIENCE_MS), 0);
}

static const struct test_case cases[] = {
	TEST_LIMIT(watches_per_user_are_limited_exactly, 30),
	TEST(watches_of_every_type_are_limited),
	TEST(kept_marks_are_charged),
	TEST(futex_watches_are_as_few_as_threads),
	TEST(address_spaces_are_charged),
	TEST(limit_is_exact_when_threads_race_for_it),
	TEST(watches_per_file_are_limited),
	TEST(watches_per_file_are_counted_per_user),
#ifdef __LP64__
	TEST(watches_per_file_are_limited_for_all_users),
#endif
	TEST_LIMIT(watches_per_wait_queue_are_limited, 30),
	TEST_LIMIT(watches_behind_others_are_limited, 30),
	TEST_LIMIT(watches_per_wait_queue_are_limited_for_all_users, 30),
	TEST(second_wait_queue_is_charged),
	TEST_LIMIT(watches_are_charged_to_the_memory_group, 30),
	TEST_LIMIT(ended_processes_leave_no_groups, 30),
	TEST(switch_off_has_three_positions),
	TEST(switch_off_leaves_open_queues_alone),
#ifdef __LP64__
	TEST(switch_off_is_for_chains_of_open_queues_too),
#endif
	TEST(no_privilege_is_needed),
	{}
};

const struct test_suite limits_suite = { .name = "limits", .cases = cases };
