// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_POLL: every kind of file that poll(2) takes is made ready and idle again
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "helpers.h"
#include "pairs.h"

#define OUT	KEVENT_POLL_POLLOUT
#define PRI	KEVENT_POLL_POLLPRI

/* A kind of file: fd[0] is watched, and fire() makes it readable. */
struct kind {
	const char	*name;
	void		(*open)(int fd[2]);
	void		(*fire)(int fd[2]);
	void		(*drain)(int fd[2]);
};

static void fire_byte(int fd[2])
{
	put_byte(fd[1]);
}

static void drain_bytes(int fd[2])
{
	CHECK(take_bytes(fd[0]) > 0);
}

static void open_eventfd(int fd[2])
{
	fd[0] = fd[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	MUST(fd[0] >= 0);
}

static void fire_eventfd(int fd[2])
{
	MUST_EQ(eventfd_write(fd[1], 1), 0);
}

static void drain_eventfd(int fd[2])
{
	eventfd_t value;

	CHECK_EQ(eventfd_read(fd[0], &value), 0);
}

static void open_timerfd(int fd[2])
{
	fd[0] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	MUST(fd[0] >= 0);
}

static void fire_timerfd(int fd[2])
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };

	MUST_EQ(timerfd_settime(fd[0], 0, &soon, NULL), 0);
}

static void drain_timerfd(int fd[2])
{
	uint64_t expirations;

	CHECK_EQ(read(fd[0], &expirations, sizeof(expirations)), 8);
}

static void open_signalfd(int fd[2])
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	MUST_EQ(sigprocmask(SIG_BLOCK, &mask, NULL), 0);
	fd[0] = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	MUST(fd[0] >= 0);
}

static void fire_signal(int fd[2])
{
	(void)fd;
	MUST_EQ(kill(getpid(), SIGUSR1), 0);
}

static void open_datagram(int fd[2])
{
	MUST_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   0, fd), 0);
}

static void open_stream(int fd[2])
{
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   0, fd), 0);
}

/* A terminal has a wait queue for each direction. */
static void open_pty(int fd[2])
{
	struct termios raw;

	fd[1] = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	MUST(fd[1] >= 0);
	MUST_EQ(unlockpt(fd[1]), 0);
	fd[0] = open(ptsname(fd[1]),
		     O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	MUST(fd[0] >= 0);
	MUST_EQ(tcgetattr(fd[0], &raw), 0);
	cfmakeraw(&raw);
	MUST_EQ(tcsetattr(fd[0], TCSANOW, &raw), 0);
}

static void open_inotify(int fd[2])
{
	fd[0] = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	MUST(fd[0] >= 0);
	MUST(inotify_add_watch(fd[0], "/tmp", IN_CREATE) > 0);
}

static void fire_inotify(int fd[2])
{
	char path[] = "/tmp/kevent-XXXXXX";
	int file = mkstemp(path);

	(void)fd;
	MUST(file >= 0);
	close(file);
	unlink(path);
}

static const struct kind kinds[] = {
	{ "pipe", open_pipe, fire_byte, drain_bytes },
	{ "eventfd", open_eventfd, fire_eventfd, drain_eventfd },
	{ "timerfd", open_timerfd, fire_timerfd, drain_timerfd },
	{ "signalfd", open_signalfd, fire_signal, drain_bytes },
	{ "unix stream", open_stream, fire_byte, drain_bytes },
	{ "unix datagram", open_datagram, fire_byte, drain_bytes },
	{ "pty", open_pty, fire_byte, drain_bytes },
	{ "inotify", open_inotify, fire_inotify, drain_bytes },
};

static void await_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	MUST_EQ(poll(&pfd, 1, PATIENCE_MS * slowness), 1);
}

/* Some files become ready a little later than fire() returns. */
static void check_kind(struct queue *q, const struct kind *kind,
		       uint32_t flags)
{
	struct ukevent ev;
	int fd[2] = { -1, -1 }, i;

	kind->open(fd);
	if (!CHECK_EQ(add_poll(q->fd, fd[0], IN, flags, 0), 0))
		note("%s", kind->name);
	for (i = 0; i < 3; i++) {
		CHECK_NO_EVENT(q);
		kind->fire(fd);
		MUST_EVENT(q, &ev);
		if (!CHECK_EQ(ev.ret_data[0], IN))
			note("%s", kind->name);
		kind->drain(fd);
	}
	CHECK_EQ(remove_file(q->fd, KEVENT_POLL, fd[0]), 0);
	kind->fire(fd);
	CHECK_NO_EVENT(q);
	await_readable(fd[0]);
	kind->drain(fd);
	close(fd[0]);
	if (fd[1] >= 0 && fd[1] != fd[0])
		close(fd[1]);
}

static void kinds_by(struct queue *q, uint32_t flags)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		check_kind(q, &kinds[i], flags);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void level_works_on_every_kind_of_file(struct queue *q)
{
	kinds_by(q, 0);
}

static void edge_works_on_every_kind_of_file(struct queue *q)
{
	kinds_by(q, ET);
}

static void last_check_works_on_every_kind_of_file(struct queue *q)
{
	kinds_by(q, KEVENT_REQ_LAST_CHECK);
}

static void file_without_poll_is_always_ready(struct queue *q)
{
	static const char *const paths[] = {
		"/proc/self/exe", "/dev/null", "/dev/zero", "/",
	};
	struct ukevent ev;
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		MUST(fd >= 0);
		kevent_set_poll(&ev, fd, IN | OUT, HAND_BACK, 0);
		CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 1);
		CHECK_EQ(ev.ret_data[0], IN | OUT);
		CHECK_EQ(next_event(q, &ev, 0), 1);
		CHECK_EQ(ev.ret_data[0], IN | OUT);
		CHECK_EQ(next_event(q, &ev, 0), 1);
		CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	}
}

/* It has neither an error nor a hang-up. */
static void file_without_poll_and_interest_reports_nothing(struct queue *q)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct ukevent ev;

	MUST(fd >= 0);
	CHECK_EQ(add_poll(q->fd, fd, 0, 0, 1), 0);
	CHECK_NO_EVENT(q);
	kevent_set_poll(&ev, fd, 0, KEVENT_REQ_READY, 1);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev), 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &ev), 0);
	CHECK_NO_EVENT(q);
	close(fd);
}

static void hangup_of_a_terminal_is_hup(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pty(fd);
	CHECK_EQ(add_poll(q->fd, fd[0], IN, 0, 0), 0);
	close(fd[1]);
	MUST_EVENT(q, &ev);
	CHECK(ev.ret_data[0] & HUP);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	close(fd[0]);
}

/* Both directions of a terminal in one watch */
static void terminal_reports_both_directions(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pty(fd);
	CHECK_EQ(add_poll(q.fd, fd[0], IN | OUT, HAND_BACK | ET, 0), 1);
	put_byte(fd[1]);
	MUST_EVENT(&q, &ev);
	CHECK(ev.ret_data[0] & IN);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_EQ(remove_file(q.fd, KEVENT_POLL, fd[0]), 0);
	put_byte(fd[1]);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void urgent_data_is_pri(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	tcp_pair(fd);
	open_queue(&q, 0);
	CHECK_EQ(add_poll(q.fd, fd[0], PRI, ET, 0), 0);
	put_byte(fd[1]);
	CHECK_NO_EVENT(&q);
	MUST_EQ(send(fd[1], "!", 1, MSG_OOB), 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ret_data[0], PRI);
	close_queue(&q);
}

static void mask_has_only_what_was_asked_for(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_stream(fd);
	put_byte(fd[1]);
	kevent_set_poll(&ev, fd[0], KEVENT_POLL_POLLRDNORM, HAND_BACK, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 1);
	CHECK_EQ(ev.ret_data[0], KEVENT_POLL_POLLRDNORM);
	CHECK_EQ(ev.ret_data[1], 0);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ret_data[0], KEVENT_POLL_POLLRDNORM);
	close_queue(&q);
}

static void timer_edge_comes_from_an_interrupt(void)
{
	const struct itimerspec tick = {
		.it_value.tv_nsec = 1000000,
		.it_interval.tv_nsec = 1000000,
	};
	struct ukevent ev;
	struct queue q;
	int fd[2], i;

	open_queue(&q, 8);
	open_timerfd(fd);
	CHECK_EQ(add_poll(q.fd, fd[0], IN, ET, 0), 0);
	MUST_EQ(timerfd_settime(fd[0], 0, &tick, NULL), 0);
	for (i = 0; i < 50; i++) {
		MUST_EVENT(&q, &ev);
		drain_timerfd(fd);
	}
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(level_works_on_every_kind_of_file),
	TEST_EACH(edge_works_on_every_kind_of_file),
	TEST_EACH(last_check_works_on_every_kind_of_file),
	TEST_EACH(file_without_poll_is_always_ready),
	TEST_EACH(file_without_poll_and_interest_reports_nothing),
	TEST_EACH(hangup_of_a_terminal_is_hup),
	TEST(terminal_reports_both_directions),
	TEST(urgent_data_is_pri),
	TEST(mask_has_only_what_was_asked_for),
	TEST(timer_edge_comes_from_an_interrupt),
	{}
};

const struct test_suite poll_suite = { .name = "poll", .cases = cases };
