// SPDX-License-Identifier: GPL-2.0
/*
 * The device of the module: what it says, ioctls that are refused, and waits by lseek()
 *
 * Other suites make their calls by these ioctls, and their waits by the library.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "helpers.h"
#include "sets.h"
#include "signals.h"

#define SLOTS	16

static int open_device(void)
{
	int dev = open(KEVENT_DEVICE, O_RDWR | O_CLOEXEC);

	MUST(dev >= 0);
	return dev;
}

/* What lseek() returns, or -errno */
static long seek(int fd, int64_t pos, int whence)
{
	long ret = lseek(fd, pos, whence);

	return ret < 0 ? -errno : ret;
}

static long look(struct queue *q, uint32_t seen)
{
	return seek(q->fd, KEVENT_SEEK(SLOTS, seen), SEEK_SET);
}

static void it_names_the_types_that_can_be_watched(void)
{
	uint64_t types = 0, added = 0;
	int dev = open_device(), kq = kevent_init(NULL, 0, 0);
	struct ukevent ev;
	const struct kevent_dev_ctl a = { KEVENT_CTL_ADD, 1, (uintptr_t)&ev };
	uint32_t type;

	MUST_EQ(try_ioctl(dev, KEVENT_IOC_TYPES, &types), 0);
	for (type = 0; type <= KEVENT_BOUND; type++) {
		ev = (struct ukevent){
			.type = type, .event = ~0u, .req_flags = ~KEVENT_REQ_DRIVEN,
		};
		MUST_EQ(ioctl(kq, KEVENT_IOC_CTL, &a), 1);
		if (kevent_error(&ev) != -ENOSYS && !(ev.ret_flags & KEVENT_RET_DRIVE))
			added |= 1ull << type;
	}
	CHECK_EQ(types, added);
	CHECK(types & KEVENT_TYPE(KEVENT_INODE));
	CHECK_EQ(try_ioctl(dev, KEVENT_IOC_TYPES, (void *)1), -EFAULT);
	close(kq);
	close(dev);
}

static int add_raw(int kq, uint64_t id)
{
	struct ukevent ev;
	struct kevent_dev_ctl a = { .cmd = KEVENT_CTL_ADD, .num = 1, .arg = (uintptr_t)&ev };

	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	ev.id.raw_u64 = id;
	MUST(ioctl(kq, KEVENT_IOC_CTL, &a) >= 0);
	return kevent_error(&ev);
}

static int post(int dev, uint32_t type, uint64_t id, uint32_t value)
{
	struct ukevent ev = {
		.type = type, .id.raw_u64 = id, .ret_data = { (uint32_t)SI_QUEUE, value },
	};

	return try_ioctl(dev, KEVENT_IOC_POST, &ev);
}

static int posts_to_its_parent(void *arg)
{
	CHILD_MUST(post(*(int *)arg, KEVENT_SIGNAL, SIGUSR1, 1) == -ENOENT);
	return 0;
}

/* A process says what its handler has got to its own watches, and to nobody else's. */
static void signals_are_posted_by_their_process(void)
{
	int dev = open_device(), i;
	struct queue a, b;

	open_queue(&a, 0);
	open_queue(&b, 8);
	CHECK_EQ(post(dev, KEVENT_SIGNAL, SIGUSR1, 1), -ENOENT);
	CHECK_EQ(add_raw(a.fd, NOMASK | SIGUSR1), -ENOSYS);
	CHECK_EQ(add_raw(a.fd, KEVENT_SIGNAL_POSTED | SIGUSR1), -EINVAL);
	CHECK_EQ(add_raw(a.fd, NOMASK | KEVENT_SIGNAL_POSTED | SIGUSR1), 0);
	MUST_EQ(add_signal(b.fd, SIGUSR1, CONSUME, KEVENT_REQ_ONESHOT), 0);
	CHECK_EQ(join_child(start_child(posts_to_its_parent, &dev), PATIENCE_MS), 0);
	for (i = 1; i <= 2; i++)
		CHECK_EQ(post(dev, KEVENT_SIGNAL, 77ULL << 32 | SIGUSR1, i), 0);
	/* A standard signal merges. */
	MUST_EQ(change_signal(a.fd, KEVENT_CTL_MODIFY, SIGUSR1, CONSUME, 0), 0);
	must_signal(&a, SIGUSR1, true, 77, SI_QUEUE, 1);
	must_signal(&b, SIGUSR1, true, 77, SI_QUEUE, 1);
	CHECK_NO_EVENT(&a);
	CHECK_EQ(fdinfo(b.fd, "kevent-watches"), 0);
	MUST_EQ(change_signal(a.fd, KEVENT_CTL_MODIFY, SIGUSR1, OBSERVE, 0), 0);
	CHECK_EQ(post(dev, KEVENT_SIGNAL, SIGUSR1, 1), -ENOENT);
	CHECK_EQ(post(dev, KEVENT_SIGNAL, 0, 1), -EINVAL);
	CHECK_EQ(post(dev, KEVENT_SIGNAL, 65, 1), -EINVAL);
	CHECK_EQ(post(dev, KEVENT_SIGNAL, -1u, 1), -EINVAL);
	CHECK_EQ(post(dev, KEVENT_USER, 1, 1), -EINVAL);
	CHECK_EQ(post(dev, -1u, 1, 1), -EINVAL);
	CHECK_EQ(post(a.fd, KEVENT_SIGNAL, SIGUSR1, 1), -ENOENT);
	CHECK_EQ(try_ioctl(dev, KEVENT_IOC_POST, (void *)1), -EFAULT);
	CHECK_NO_EVENT(&a);
	close_queue(&b);
	close_queue(&a);
	close(dev);
}

static void ioctls_of_others_are_refused(void)
{
	uint32_t delay;
	struct kevent_dev_commit commit = {};
	struct kevent_dev_init init = {};
	int dev = open_device();
	struct queue q;

	open_queue(&q, SLOTS);
	CHECK_EQ(try_ioctl(dev, KEVENT_IOC_COMMIT, &commit), -ENOTTY);
	CHECK_EQ(try_ioctl(dev, KEVENT_IOC_GET_DELAY, &delay), -ENOTTY);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_INIT, &init), -ENOTTY);
	CHECK_EQ(try_ioctl(q.fd, _IOW(0xBE, 0x14, struct kevent_dev_wait), &init), -ENOTTY);
	CHECK_EQ(try_ioctl(q.fd, _IOW(0xBE, 0x13, char[4096]), &init), -ENOTTY);
	CHECK_EQ(try_ioctl(q.fd, _IOW(0xBF, 0x13, struct kevent_dev_commit), &commit), -ENOTTY);
	CHECK_EQ(try_ioctl(dev, KEVENT_IOC_INIT, (void *)1), -EFAULT);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_COMMIT, (void *)1), -EFAULT);
	close_queue(&q);
	close(dev);
}

static void reserved_members_are_refused(void)
{
	struct kevent_dev_wait wait = { .num = 1 };
	struct kevent_dev_get get = { .max_nr = 1 };
	struct __kernel_timespec none = {};
	struct ukevent ev;
	struct queue q;

	open_queue(&q, SLOTS);
	get.buf = (uintptr_t)&ev;
	get.timeout = (uintptr_t)&none;
	wait.timeout = (uintptr_t)&none;
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_WAIT, &wait), 0);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_GET_EVENTS, &get), 0);
	get.reserved = 1;
	wait.reserved = 1;
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_WAIT, &wait), -EINVAL);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_GET_EVENTS, &get), -EINVAL);
	close_queue(&q);
}

static long seek_for_ever(void *q)
{
	return seek(((struct queue *)q)->fd, KEVENT_SEEK(SLOTS, 0), SEEK_CUR);
}

static void lseek_waits(void)
{
	struct actor a;
	struct queue q;
	int fd[2];

	open_queue(&q, SLOTS);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 7), 0);
	CHECK_EQ(look(&q, 0), -EAGAIN);
	start_actor(&a, seek_for_ever, &q);
	MUST(sleeps_in(a.tid, SYS_lseek));
	put_byte(fd[1]);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 1);
	CHECK_EQ(q.ring->event[0].ptr, 7);
	CHECK_EQ(look(&q, 0), 1);
	CHECK_EQ(look(&q, 1), -EAGAIN);
	close_queue(&q);
}

static void other_positions_are_refused(void)
{
	struct queue q, bare;

	open_queue(&q, SLOTS);
	open_queue(&bare, 0);
	CHECK_EQ(seek(q.fd, 0, SEEK_SET), -EINVAL);
	CHECK_EQ(seek(q.fd, 0, SEEK_CUR), -EINVAL);
	CHECK_EQ(seek(q.fd, (int64_t)SLOTS << 32, SEEK_SET), -EINVAL);
	CHECK_EQ(seek(q.fd, KEVENT_SEEK(0, 0), SEEK_SET), -EINVAL);
	CHECK_EQ(seek(q.fd, KEVENT_SEEK(SLOTS, 0), SEEK_END), -EINVAL);
	CHECK_EQ(seek(q.fd, KEVENT_SEEK(SLOTS, 0), SEEK_DATA), -EINVAL);
	CHECK_EQ(look(&bare, 0), -EINVAL);
	close_queue(&bare);
	close_queue(&q);
}

/* Descriptors are used again: a wait must not move what has taken the queue's place. */
static void position_of_a_wait_moves_no_other_file(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

	MUST(fd >= 0);
	MUST_EQ(lseek(fd, 5, SEEK_SET), 5);
	CHECK_EQ(seek(fd, KEVENT_SEEK(SLOTS, 0), SEEK_SET), -EINVAL);
	CHECK_EQ(seek(fd, KEVENT_SEEK(SLOTS, 3), SEEK_CUR), -EINVAL);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
	close(fd);
}

static void expect_no_queue(int fd)
{
	const struct timespec no_time = {};

	MUST(fd >= 0);
	CHECK_EQ(kevent_wait(fd, SLOTS, 0, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_wait(fd, SLOTS, 0, &no_time, 0, NULL), -EINVAL);
	close(fd);
}

/* Most of them know lseek(), and take it for nothing. */
static void other_files_are_no_queues(void)
{
	sigset_t none;
	struct queue q;
	int fd[2];

	open_queue(&q, SLOTS);
	sigemptyset(&none);
	open_pipe(fd);
	expect_no_queue(fd[0]);
	expect_no_queue(eventfd(0, EFD_CLOEXEC));
	expect_no_queue(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	expect_no_queue(signalfd(-1, &none, SFD_CLOEXEC));
	expect_no_queue(epoll_create1(EPOLL_CLOEXEC));
	expect_no_queue(inotify_init1(IN_CLOEXEC));
	expect_no_queue(socket(AF_UNIX, SOCK_STREAM, 0));
	expect_no_queue(open("/dev/null", O_RDWR | O_CLOEXEC));
	expect_no_queue(open_device());
	close_queue(&q);
}

/* The module cannot see what an epoll watches: be that nothing, or the queue. */
static void epolls_cannot_be_watched(void)
{
	struct set below, above, epoll;

	open_set(&below, true);
	open_set(&above, true);
	open_set(&epoll, false);
	CHECK_EQ(set_add(&below, epoll.q.fd, 0, 0), -ELOOP);
	MUST_EQ(set_add(&above, below.q.fd, 0, 0), 0);
	MUST_EQ(set_add(&epoll, above.q.fd, 0, 0), 0);
	CHECK_EQ(set_add(&below, epoll.q.fd, 0, 0), -ELOOP);
	CHECK_EQ(fdinfo(below.q.fd, "kevent-watches"), 0);
	close_set(&epoll);
	close_set(&above);
	close_set(&below);
}

/* epoll does not count the queues below its own chain, nor do these count that. */
static void longest_chains_of_queues_and_epolls_add_up(void)
{
	struct set s[2 * MAX_CHAIN];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(s); i++)
		open_set(&s[i], i < MAX_CHAIN);
	for (i = 1; i < ARRAY_SIZE(s); i++)
		MUST_EQ(set_add(&s[i], s[i - 1].q.fd, 0, 0), 0);
	CHECK_EQ(poll_now(s[i - 1].q.fd), 0);
	MUST_EQ(add_user(s[0].q.fd, 1, 1, KEVENT_REQ_READY, 0), 0);
	CHECK_EQ(poll_now(s[i - 1].q.fd), POLLIN | POLLRDNORM);
	while (i--)
		close_set(&s[i]);
}

/* The settings of this name say that the kernel has the system calls. */
static void settings_are_those_of_users_only(void)
{
	CHECK(!access("/proc/sys/fs/kevent/max_user_bytes", F_OK));
	CHECK(access("/proc/sys/kernel/kevent_disabled", F_OK));
	CHECK(access("/proc/sys/kernel/kevent_group", F_OK));
}

static const struct test_case cases[] = {
	TEST(it_names_the_types_that_can_be_watched),
	TEST(signals_are_posted_by_their_process),
	TEST(ioctls_of_others_are_refused),
	TEST(reserved_members_are_refused),
	TEST(lseek_waits),
	TEST(other_positions_are_refused),
	TEST(position_of_a_wait_moves_no_other_file),
	TEST(other_files_are_no_queues),
	TEST(epolls_cannot_be_watched),
	TEST(longest_chains_of_queues_and_epolls_add_up),
	TEST(settings_are_those_of_users_only),
	{}
};

const struct test_suite device_suite = { .name = "device", .cases = cases };
