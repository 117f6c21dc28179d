// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The five system calls, and two ioctls
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <linux/time_types.h>

#include "libkevent.h"
#include "fallback/fallback.h"
#include "kernel.h"
#include "syscall.h"

/*
 * The kernel's type has 64-bit members on every machine. The C library's is the same
 * where a long has 64 bits; elsewhere it may have a 32-bit tv_nsec next to padding.
 */
#ifdef __LP64__
#define KERNEL_TIMESPEC(ts)	(ts)
#else
#define KERNEL_TIMESPEC(ts)						\
	((ts) ? &(struct __kernel_timespec){ (ts)->tv_sec, (ts)->tv_nsec } : NULL)
#endif

/* A queue, or an error that says nothing of the kernel: it stands. */
static bool is_final(int ret)
{
	return ret >= 0 || ret == -EMFILE || ret == -ENFILE ||
	       ret == -ENOMEM || ret == -EINTR;
}

/*
 * The fallback checks the arguments, too: what it does not refuse, the kernel has
 * refused for a reason of its own, or a filter has.
 */
int kevent_init(struct kevent_ring *ring, __u32 ring_size, __u32 flags)
{
	const __u32 choices = KEVENT_INIT_NO_FALLBACK |
			      KEVENT_INIT_FALLBACK_ONLY;
	enum kevent_fb_choice choice = kevent_fb_choose(flags);
	int ret = -ENOSYS;

	if ((flags & choices) == choices)
		return -EINVAL;
	flags &= ~choices;
	if (choice != KEVENT_FB_ALWAYS)
		ret = kevent_kernel_init(ring, ring_size, flags);
	if (ret >= 0)
		kevent_fb_lost(ret);
	if (choice == KEVENT_FB_NEVER || is_final(ret))
		return ret;
	return kevent_fb_init(ring, ring_size, flags);
}

/*
 * Each call in the kernel, if that has kevent, and if there are queues of the fallback,
 * there first. The latter is a function of its own: it would cost the former registers.
 */

static int kernel_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	return kevent_syscall(__NR_kevent_ctl, fd, cmd, num, arg, 0, 0);
}

static __attribute__((noinline)) int any_ctl(int fd, __u32 cmd, __u32 num,
					     struct ukevent *arg)
{
	int ret = kevent_fb_ctl(fd, cmd, num, arg);

	return ret == KEVENT_FB_PASS ? kernel_ctl(fd, cmd, num, arg) : ret;
}

int kevent_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	if (kevent_only_kernel())
		return kernel_ctl(fd, cmd, num, arg);
	return any_ctl(fd, cmd, num, arg);
}

static int kernel_get_events(int fd, __u32 min_nr, __u32 max_nr,
			     const struct timespec *timeout,
			     struct ukevent *buf, __u32 flags)
{
	return kevent_syscall(__NR_kevent_get_events, fd, min_nr, max_nr,
			   KERNEL_TIMESPEC(timeout), buf, flags);
}

static __attribute__((noinline)) int
any_get_events(int fd, __u32 min_nr, __u32 max_nr, const struct timespec *timeout,
	       struct ukevent *buf, __u32 flags)
{
	int ret = kevent_fb_get_events(fd, min_nr, max_nr, timeout, buf, flags);

	if (ret != KEVENT_FB_PASS)
		return ret;
	return kernel_get_events(fd, min_nr, max_nr, timeout, buf, flags);
}

int kevent_get_events(int fd, __u32 min_nr, __u32 max_nr,
		      const struct timespec *timeout, struct ukevent *buf,
		      __u32 flags)
{
	if (kevent_only_kernel())
		return kernel_get_events(fd, min_nr, max_nr, timeout, buf, flags);
	return any_get_events(fd, min_nr, max_nr, timeout, buf, flags);
}

static int kernel_wait(int fd, __u32 num, __u32 old_kidx,
		       const struct timespec *timeout, __u32 flags,
		       const struct kevent_wait_arg *arg)
{
	return kevent_syscall(__NR_kevent_wait, fd, num, old_kidx,
			   KERNEL_TIMESPEC(timeout), flags, arg);
}

static __attribute__((noinline)) int
any_wait(int fd, __u32 num, __u32 old_kidx, const struct timespec *timeout,
	 __u32 flags, const struct kevent_wait_arg *arg)
{
	int ret = kevent_fb_wait(fd, num, old_kidx, timeout, flags, arg);

	if (ret != KEVENT_FB_PASS)
		return ret;
	return kernel_wait(fd, num, old_kidx, timeout, flags, arg);
}

int kevent_wait(int fd, __u32 num, __u32 old_kidx,
		const struct timespec *timeout, __u32 flags,
		const struct kevent_wait_arg *arg)
{
	if (kevent_only_kernel())
		return kernel_wait(fd, num, old_kidx, timeout, flags, arg);
	return any_wait(fd, num, old_kidx, timeout, flags, arg);
}

int kevent_commit(int fd, __u32 new_uidx, __u32 over)
{
	int ret = KEVENT_FB_PASS;

	if (!kevent_only_kernel())
		ret = kevent_fb_commit(fd, (__u64)over << 32 | new_uidx);
	if (ret != KEVENT_FB_PASS)
		return ret;
	return kevent_syscall(__NR_kevent_commit, fd, new_uidx, over, 0, 0, 0);
}

int kevent_supported(void)
{
	int fd = kevent_kernel_init(NULL, 0, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* A wait without room for an event is refused by queues of the kernel only. */
const char *kevent_backend(int fd)
{
	if (kevent_fb_has(fd))
		return "epoll";
	if (!kevent_kernel_there() || kernel_ctl(fd, KEVENT_CTL_ADD, 0, NULL))
		return NULL;
	return "kevent";
}

/* As struct epoll_params and EPIOCSPARAMS, which older headers lack */
struct busy_poll_params {
	__u32	usecs;
	__u16	budget;
	__u8	prefer;
	__u8	pad;
};

#define BUSY_POLL_SET	_IOW(0x8A, 0x01, struct busy_poll_params)

/* What ioctl() has returned, as an error number; errno is what it was. */
static int ioctl_said(int ret, int saved)
{
	if (ret)
		ret = -errno;
	errno = saved;
	return ret;
}

/* The type of ioctl()'s second argument is the C library's own; a constant fits each. */

int kevent_busy_poll(int fd, __u32 usecs)
{
	struct busy_poll_params params = { .usecs = usecs };
	int saved = errno;

	return ioctl_said(ioctl(fd, BUSY_POLL_SET, &params), saved);
}

/* EINVAL is what the kernel says of the time, and epoll of an ioctl that it lacks. */
int kevent_set_delay(int fd, __u32 ns)
{
	int saved = errno;
	int ret = ioctl_said(ioctl(fd, KEVENT_IOC_SET_DELAY, &ns), saved);
	const char *backend;

	if (ret != -EINVAL)
		return ret;
	backend = kevent_backend(fd);
	return backend && !strcmp(backend, "kevent") ? -EINVAL : -ENOTTY;
}
