/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A page that is missing, and the threads that wait for it
 */
#ifndef UFFD_H
#define UFFD_H

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "helpers.h"

/* From now on the page is missing, and a fault waits. -1 on an error */
static inline int open_uffd(char *page)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)page, .len = PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &reg))
		return -1;
	return fd;
}

/* Returns when a thread is blocked in the fault; the message stays. */
static inline void poll_fault(int uffd)
{
	struct pollfd pfd = { .fd = uffd, .events = POLLIN };

	MUST_EQ(poll(&pfd, 1, PATIENCE_MS * slowness), 1);
}

/* The same, and takes the message */
static inline void await_fault(int uffd)
{
	struct uffd_msg msg;

	poll_fault(uffd);
	MUST_EQ(read(uffd, &msg, sizeof(msg)), sizeof(msg));
	MUST_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
}

static inline void serve_fault(int uffd, char *page)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)page, .len = PAGE },
	};

	MUST_EQ(ioctl(uffd, UFFDIO_ZEROPAGE, &zero), 0);
}

static inline char *map_page(void)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED);
	return page;
}

#endif /* UFFD_H */
