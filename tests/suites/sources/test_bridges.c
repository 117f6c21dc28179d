// SPDX-License-Identifier: GPL-2.0
/*
 * Events of other subsystems, which arrive by a descriptor
 *
 *	/proc/self/mounts	PRI: the table of mounts has changed
 *	eventfd of an aio read	IN: it is done
 *	netlink socket		RECV: a link went up or down
 *	message queue		IN: a message
 *	PSI file		PRI: tasks have waited for memory
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <linux/aio_abi.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"

static void changed_mounts_are_pri(void)
{
	struct ukevent ev;
	struct queue q;
	int fd;

	enter_tmpfs();
	fd = open("/proc/self/mounts", O_RDONLY);
	MUST(fd >= 0);
	open_queue(&q, 4);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLPRI, KEVENT_REQ_ET, 5), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
	MUST_EVENT(&q, &ev);
	CHECK(ev.ret_data[0] & KEVENT_POLL_POLLPRI);
	MUST_EQ(umount("/tmp"), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 5);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void finished_aio_is_an_event(void)
{
	int fd = open("/proc/self/exe", O_RDONLY), efd = eventfd(0, 0);
	aio_context_t ctx = 0;
	char buf[64];
	struct iocb cb = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = fd,
		.aio_buf = (uintptr_t)buf,
		.aio_nbytes = sizeof(buf),
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = efd,
	}, *list = &cb;
	struct ukevent ev;
	struct queue q;

	MUST(fd >= 0 && efd >= 0);
	open_queue(&q, 4);
	MUST_EQ(add_poll(q.fd, efd, KEVENT_POLL_POLLIN, 0, 6), 0);
	MUST_EQ(syscall(SYS_io_setup, 1, &ctx), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(syscall(SYS_io_submit, ctx, 1, &list), 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 6);
	CHECK_EQ(syscall(SYS_io_destroy, ctx), 0);
	CHECK(!memcmp(buf, "\177ELF", 4));
	close_queue(&q);
}

/*
 * pipe --> queue --> aio poll of the queue --> eventfd --> queue
 *
 * The wait queue of the queue is locked when aio is called from it. If aio signalled the
 * eventfd there, the queue would want that lock again.
 */
static void aio_does_not_signal_from_the_wake_up(void)
{
	int efd = eventfd(0, EFD_NONBLOCK), fd[2], seen = 0;
	aio_context_t ctx = 0;
	struct iocb cb = {
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = efd,
	}, *list = &cb;
	struct ukevent ev;
	struct queue q;

	MUST(efd >= 0);
	open_queue(&q, 4);
	open_pipe(fd);
	cb.aio_fildes = q.fd;
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 1), 0);
	MUST_EQ(add_poll(q.fd, efd, KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 2), 0);
	MUST_EQ(syscall(SYS_io_setup, 1, &ctx), 0);
	MUST_EQ(syscall(SYS_io_submit, ctx, 1, &list), 1);
	put_byte(fd[1]);
	while (seen != 3) {
		MUST_EVENT(&q, &ev);
		seen |= ev.ptr;
	}
	CHECK_EQ(syscall(SYS_io_destroy, ctx), 0);
	close_queue(&q);
}

static void set_link(const char *name, bool up)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq req = {};

	MUST(fd >= 0);
	strcpy(req.ifr_name, name);
	MUST_EQ(ioctl(fd, SIOCGIFFLAGS, &req), 0);
	req.ifr_flags = (req.ifr_flags & ~IFF_UP) | (up ? IFF_UP : 0);
	MUST_EQ(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
}

static void state_of_a_link_comes_by_netlink(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK,
	};
	struct ukevent ev;
	char buf[4096];
	struct queue q;
	int fd;

	/* With a link of its own, which is down */
	MUST_EQ(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	MUST(fd >= 0);
	MUST_EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	open_queue(&q, 4);
	MUST_EQ(add_socket(q.fd, fd, KEVENT_SOCKET_RECV, 0, 7), 0);
	CHECK_NO_EVENT(&q);
	set_link("lo", true);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 7);
	while (recv(fd, buf, sizeof(buf), 0) > 0)
		;
	CHECK_NO_EVENT(&q);
	set_link("lo", false);
	MUST_EVENT(&q, &ev);
	close_queue(&q);
}

static void message_in_a_queue_is_in(void)
{
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 8 };
	char name[40], buf[8];
	struct ukevent ev;
	struct queue q;
	mqd_t mq;

	snprintf(name, sizeof(name), "/kevent-test-%d", getpid());
	mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attr);
	MUST(mq != (mqd_t)-1);
	mq_unlink(name);
	open_queue(&q, 4);
	MUST_EQ(add_poll(q.fd, mq, KEVENT_POLL_POLLIN, 0, 8), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(mq_send(mq, "hello", 5, 0), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 8);
	MUST_EQ(mq_receive(mq, buf, sizeof(buf), NULL), 5);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
	mq_close(mq);
}

/*
 * 1 ms of waiting within 5 s. There is one event in 5 s at most, and none in the first
 * 5 s after boot.
 */
#define PRESSURE_TRIGGER	"some 1000 5000000"
#define PRESSURE_MS		(3 * PATIENCE_MS)

/* A memory cgroup, and a process in it that wants more than the group may have */
struct pressed {
	char	path[64];
	pid_t	pid;
};

static void write_group(const struct pressed *group, const char *name,
			const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", group->path, name);
	write_file(path, text);
}

static void make_group(struct pressed *group)
{
	strcpy(group->path, "/sys/fs/cgroup/pressed-XXXXXX");
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	MUST(mkdtemp(group->path));
	write_group(group, "memory.high", "2M");
}

static int touches_memory(void *arg)
{
	const size_t size = 64 << 20;
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	CHILD_MUST(mem != MAP_FAILED);
	CHILD_MUST(raise(SIGSTOP) == 0);
	for (;;)
		memset(mem, 1, size);
}

static void press(struct pressed *group)
{
	char pid[16];
	int status;

	group->pid = start_child(touches_memory, NULL);
	MUST_EQ(waitpid(group->pid, &status, WUNTRACED), group->pid);
	MUST(WIFSTOPPED(status));
	snprintf(pid, sizeof(pid), "%d", group->pid);
	write_group(group, "cgroup.procs", pid);
	MUST_EQ(kill(group->pid, SIGCONT), 0);
}

static void remove_group(struct pressed *group)
{
	kill(group->pid, SIGKILL);
	CHECK_EQ(waitpid(group->pid, NULL, 0), group->pid);
	CHECK_EQ(rmdir(group->path), 0);
}

static int open_pressure(const char *path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK);

	MUST(fd >= 0);
	return fd;
}

static void set_trigger(int fd)
{
	MUST_EQ(write(fd, PRESSURE_TRIGGER, sizeof(PRESSURE_TRIGGER)),
		sizeof(PRESSURE_TRIGGER));
}

static void memory_pressure_is_pri(void)
{
	int fd = open_pressure("/proc/pressure/memory");
	struct pressed group;
	struct ukevent ev;
	struct queue q;

	set_trigger(fd);
	make_group(&group);
	open_queue(&q, 4);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLPRI, 0, 9), 0);
	press(&group);
	MUST_EQ(next_event(&q, &ev, PRESSURE_MS * slowness), 1);
	CHECK_EQ(ev.ret_data[0], KEVENT_POLL_POLLPRI);
	CHECK_EQ(ev.ptr, 9);
	CHECK_NO_EVENT(&q);
	remove_group(&group);
	close(fd);
	close_queue(&q);
}

/* A file of a cgroup outlives the trigger, which goes with the group. */
static void pressure_of_a_group_ends_with_it(void)
{
	struct pressed group;
	char path[128];
	struct ukevent ev;
	struct queue q;
	int fd;

	make_group(&group);
	snprintf(path, sizeof(path), "%s/memory.pressure", group.path);
	fd = open_pressure(path);
	set_trigger(fd);
	open_queue(&q, 4);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLPRI, KEVENT_REQ_ET, 10), 0);
	CHECK_NO_EVENT(&q);
	press(&group);
	MUST_EQ(next_event(&q, &ev, PRESSURE_MS * slowness), 1);
	CHECK_EQ(ev.ret_data[0], KEVENT_POLL_POLLPRI);
	CHECK_NO_EVENT(&q);
	remove_group(&group);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ret_data[0], KEVENT_POLL_POLLPRI | KEVENT_POLL_POLLERR);
	CHECK_EQ(remove_file(q.fd, KEVENT_POLL, fd), 0);
	close(fd);
	close_queue(&q);
}

static void pressure_without_a_trigger_is_err(void)
{
	struct pollfd pfd = { .events = POLLPRI };
	struct ukevent ev;
	struct queue q;

	pfd.fd = open_pressure("/proc/pressure/memory");
	open_queue(&q, 4);
	MUST_EQ(add_poll(q.fd, pfd.fd, KEVENT_POLL_POLLPRI, 0, 11), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ret_data[0], KEVENT_POLL_POLLPRI | KEVENT_POLL_POLLERR);
	CHECK_EQ(poll(&pfd, 1, 0), 1);
	CHECK_EQ(pfd.revents, POLLPRI | POLLERR);
	close(pfd.fd);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(changed_mounts_are_pri),
	TEST(finished_aio_is_an_event),
	TEST(aio_does_not_signal_from_the_wake_up),
	TEST(state_of_a_link_comes_by_netlink),
	TEST(message_in_a_queue_is_in),
	TEST_LIMIT(memory_pressure_is_pri, 25),
	TEST_LIMIT(pressure_of_a_group_ends_with_it, 25),
	TEST(pressure_without_a_trigger_is_err),
	{}
};

const struct test_suite bridges_suite = { .name = "bridges", .cases = cases };
