// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The five system calls, and an ioctl
 */
#include <errno.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <linux/time_types.h>

#include "libkevent.h"
#include "fallback/fallback.h"
#include "syscall.h"

/* syscall(), but with the error in the return value and errno untouched */
#define kevent_syscall(...)					\
({								\
	int __saved = errno;					\
	int __ret = (int)syscall(__VA_ARGS__);			\
								\
	if (__ret < 0) {					\
		__ret = -errno;					\
		errno = __saved;				\
	}							\
	__ret;							\
})

/*
 * The kernel's type has 64-bit members on every machine, that of the C library
 * may have a 32-bit tv_nsec next to padding.
 */
static const struct __kernel_timespec *
kernel_timespec(struct __kernel_timespec *to, const struct timespec *from)
{
	if (!from)
		return NULL;
	to->tv_sec = from->tv_sec;
	to->tv_nsec = from->tv_nsec;
	return to;
}

static int kernel_init(struct kevent_ring *ring, __u32 ring_size, __u32 flags)
{
	return kevent_syscall(__NR_kevent_init, ring, ring_size, flags);
}

int kevent_init(struct kevent_ring *ring, __u32 ring_size, __u32 flags)
{
	enum kevent_fb_choice choice = kevent_fb_choose(flags);
	int ret = -ENOSYS;

	flags &= ~KEVENT_INIT_NO_FALLBACK;
	if (choice != KEVENT_FB_ALWAYS)
		ret = kernel_init(ring, ring_size, flags);
	if (choice == KEVENT_FB_NEVER || (ret != -ENOSYS && ret != -EPERM))
		return ret;
	return kevent_fb_init(ring, ring_size, flags);
}

/* Return from the caller what the fallback says, if the queue is one of its own. */
#define RETURN_IF_FALLBACK(call)					\
do {									\
	int __fb = kevent_fb_on() ? (call) : KEVENT_FB_PASS;		\
									\
	if (__fb != KEVENT_FB_PASS)					\
		return __fb;						\
} while (0)

int kevent_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	RETURN_IF_FALLBACK(kevent_fb_ctl(fd, cmd, num, arg));
	return kevent_syscall(__NR_kevent_ctl, fd, cmd, num, arg);
}

int kevent_get_events(int fd, __u32 min_nr, __u32 max_nr,
		      const struct timespec *timeout, struct ukevent *buf,
		      __u32 flags)
{
	struct __kernel_timespec ts;

	RETURN_IF_FALLBACK(kevent_fb_get_events(fd, min_nr, max_nr, timeout,
						buf, flags));
	return kevent_syscall(__NR_kevent_get_events, fd, min_nr, max_nr,
			      kernel_timespec(&ts, timeout), buf, flags);
}

int kevent_wait(int fd, __u32 num, __u32 old_kidx,
		const struct timespec *timeout, __u32 flags,
		const struct kevent_wait_arg *arg)
{
	struct __kernel_timespec ts;

	RETURN_IF_FALLBACK(kevent_fb_wait(fd, num, old_kidx, timeout, flags,
					  arg));
	return kevent_syscall(__NR_kevent_wait, fd, num, old_kidx,
			      kernel_timespec(&ts, timeout), flags, arg);
}

int kevent_commit(int fd, __u32 new_uidx, __u32 over)
{
	RETURN_IF_FALLBACK(kevent_fb_commit(fd, (__u64)over << 32 | new_uidx));
	return kevent_syscall(__NR_kevent_commit, fd, new_uidx, over);
}

int kevent_supported(void)
{
	int fd = kernel_init(NULL, 0, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* A wait without room for an event is refused by queues of the kernel only. */
const char *kevent_backend(int fd)
{
	int ret;

	if (kevent_fb_has(fd))
		return "epoll";
	ret = kevent_syscall(__NR_kevent_ctl, fd, KEVENT_CTL_ADD, 0, NULL);
	return ret ? NULL : "kevent";
}

/* As struct epoll_params and EPIOCSPARAMS, which older headers lack */
struct busy_poll_params {
	__u32	usecs;
	__u16	budget;
	__u8	prefer;
	__u8	pad;
};

#define BUSY_POLL_SET	_IOW(0x8A, 0x01, struct busy_poll_params)

int kevent_busy_poll(int fd, __u32 usecs)
{
	struct busy_poll_params params = { .usecs = usecs };
	int saved = errno, ret = 0;

	if (ioctl(fd, BUSY_POLL_SET, &params)) {
		ret = -errno;
		errno = saved;
	}
	return ret;
}
