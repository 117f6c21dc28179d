// SPDX-License-Identifier: GPL-2.0
/*
 * Events of other subsystems, which arrive by a descriptor
 *
 *	/proc/self/mounts	PRI: the table of mounts has changed
 *	eventfd of an aio read	IN: it is done
 *	netlink socket		RECV: a link went down
 *	message queue		IN: a message
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
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"

static void changed_mounts_are_pri(void)
{
	int fd = open("/proc/self/mounts", O_RDONLY);
	struct ukevent ev;
	struct queue q;

	MUST(fd >= 0);
	open_queue(&q, 4);
	mkdir("/tmp/mounted", 0700);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLPRI, KEVENT_REQ_ET, 5), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(mount("none", "/tmp/mounted", "tmpfs", 0, NULL), 0);
	MUST_EVENT(&q, &ev);
	CHECK(ev.ret_data[0] & KEVENT_POLL_POLLPRI);
	MUST_EQ(umount("/tmp/mounted"), 0);
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
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	struct ukevent ev;
	char buf[4096];
	struct queue q;

	MUST(fd >= 0);
	MUST_EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	open_queue(&q, 4);
	MUST_EQ(add_socket(q.fd, fd, KEVENT_SOCKET_RECV, 0, 7), 0);
	CHECK_NO_EVENT(&q);
	set_link("lo", false);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 7);
	while (recv(fd, buf, sizeof(buf), 0) > 0)
		;
	CHECK_NO_EVENT(&q);
	set_link("lo", true);
	MUST_EVENT(&q, &ev);
	close_queue(&q);
}

static void message_in_a_queue_is_in(void)
{
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 8 };
	mqd_t mq = mq_open("/kevent-test", O_RDWR | O_CREAT | O_NONBLOCK,
			   0600, &attr);
	struct ukevent ev;
	struct queue q;
	char buf[8];

	MUST(mq != (mqd_t)-1);
	mq_unlink("/kevent-test");
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

static const struct test_case cases[] = {
	TEST(changed_mounts_are_pri),
	TEST(finished_aio_is_an_event),
	TEST(aio_does_not_signal_from_the_wake_up),
	TEST(state_of_a_link_comes_by_netlink),
	TEST(message_in_a_queue_is_in),
	{}
};

const struct test_suite bridges_suite = { .name = "bridges", .cases = cases };
