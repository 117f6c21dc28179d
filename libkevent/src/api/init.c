// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * New queues: the choice of a host, by flags and KEVENT_BACKEND, and which types they have
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libkevent.h"
#include "fallback/driven.h"
#include "fallback/fallback.h"
#include "init.h"
#include "kernel.h"
#include "module.h"
#include "raw_syscall.h"

#define NR_TYPES	(KEVENT_BOUND + 1)
/* Types with a bit of their own in the flags of kevent_init() */
#define NR_OWN		(KEVENT_FUTEX + 1)

#define BY_KERNEL	(KEVENT_HOST_CALLS | KEVENT_HOST_MODULE)
#define BY_ANY		(BY_KERNEL | KEVENT_HOST_EPOLL)

unsigned int kevent_environment;

static unsigned int read_environment(void)
{
	const char *text = secure_getenv("KEVENT_BACKEND");

	if (text && !strcmp(text, "kernel"))
		return BY_KERNEL;
	if (text && !strcmp(text, "module"))
		return KEVENT_HOST_MODULE;
	if (text && !strcmp(text, "epoll"))
		return KEVENT_HOST_EPOLL;
	return BY_ANY;
}

/* The environment is read once. */
unsigned int kevent_hosts(__u32 flags)
{
	unsigned int by = __atomic_load_n(&kevent_environment, __ATOMIC_RELAXED);
	unsigned int wanted = flags & KEVENT_INIT_NO_FALLBACK ? BY_KERNEL :
			      flags & KEVENT_INIT_FALLBACK_ONLY ? KEVENT_HOST_EPOLL :
			      BY_ANY;

	if (!by) {
		by = read_environment();
		__atomic_store_n(&kevent_environment, by, __ATOMIC_RELAXED);
	}
	return by & wanted ? by & wanted : wanted;
}

/* A queue, or an error that says nothing of the kernel: it stands. */
static bool is_final(int ret)
{
	return ret >= 0 || ret == -EMFILE || ret == -ENFILE ||
	       ret == -ENOMEM || ret == -EINTR;
}

/* Types that flags of kevent_init() do not refuse */
static __u32 types_of(__u32 flags)
{
	__u32 later = flags & KEVENT_INIT_REFUSE_LATER ? 0 : -1U << NR_OWN;
	__u32 own = ~(flags / KEVENT_INIT_REFUSE(0)) & ((1U << NR_OWN) - 1);

	return (own | later) & ~KEVENT_TYPE(KEVENT_NAIO) & ((1U << NR_TYPES) - 1);
}

static void close_queue(int fd)
{
	kevent_fb_close(fd);
	kevent_close_fd(fd);
}

/* A queue that another host may make shall not be one that lacks a type. */
static int check_types(int fd, __u32 flags)
{
	if (fd < 0 || !(flags & KEVENT_INIT_ALL_TYPES) ||
	    !(types_of(flags) & ~kevent_types(fd)))
		return fd;
	close_queue(fd);
	return -EOPNOTSUPP;
}

/* @ret is what those before have said; -ENOSYS says nothing. */
static int or_else(int ret, int other)
{
	return other == -ENOSYS ? ret : other;
}

/*
 * The fallback checks the arguments, too: what it does not refuse, the kernel has
 * refused for a reason of its own, or a filter has.
 */
int kevent_init(struct kevent_ring *ring, __u32 ring_size, __u32 flags)
{
	const __u32 choices = KEVENT_INIT_NO_FALLBACK |
			      KEVENT_INIT_FALLBACK_ONLY;
	const __u32 plain = flags & ~(choices | KEVENT_INIT_ALL_TYPES);
	unsigned int hosts = kevent_hosts(flags);
	int ret = -ENOSYS;

	if ((flags & choices) == choices)
		return -EINVAL;
	if (hosts & KEVENT_HOST_CALLS)
		ret = kevent_kernel_init(ring, ring_size, plain);
	if (!is_final(ret) && hosts & KEVENT_HOST_MODULE)
		ret = or_else(ret, kevent_module_init(ring, ring_size, plain));
	if (ret >= 0) {
		kevent_fb_lost(ret);
		ret = check_types(ret, flags);
	}
	if (!(hosts & KEVENT_HOST_EPOLL) || is_final(ret))
		return ret;
	return check_types(kevent_fb_init(ring, ring_size, plain), flags);
}

int kevent_supported(void)
{
	int fd = kevent_kernel_init(NULL, 0, 0);

	if (!is_final(fd))
		fd = or_else(fd, kevent_module_init(NULL, 0, 0));
	if (fd < 0)
		return fd;
	kevent_close_fd(fd);
	return 0;
}

/* A change of nothing is refused by all but queues. */
const char *kevent_backend(int fd)
{
	if (kevent_fb_has(fd))
		return "epoll";
	if (kevent_ctl(fd, KEVENT_CTL_ADD, 0, NULL))
		return NULL;
	return kevent_kernel_there() ? "kevent" : "module";
}

/* The module has these types, for those who drive their watches. */
static bool is_missing(__u32 type)
{
	return (type == KEVENT_FUTEX || type == KEVENT_POSIX_TIMER || type == KEVENT_AIO) &&
	       kevent_driven_lacks(type);
}

/* Requests that none can make: a type that the queue lacks, or refuses, says so first. */
__u32 kevent_types(int fd)
{
	struct ukevent uk[NR_TYPES];
	bool driven = !kevent_kernel_there() && !kevent_fb_has(fd);
	__u32 types = 0, i;

	for (i = 0; i < NR_TYPES; i++)
		uk[i] = (struct ukevent){
			.id.raw[0] = -1U, .type = i, .req_flags = -1U,
		};
	if (kevent_ctl(fd, KEVENT_CTL_ADD, NR_TYPES, uk) != NR_TYPES)
		return 0;
	for (i = 0; i < NR_TYPES; i++) {
		if (kevent_error(&uk[i]) != -ENOSYS && kevent_error(&uk[i]) != -EPERM &&
		    !(driven && is_missing(uk[i].type)))
			types |= KEVENT_TYPE(uk[i].type);
	}
	return types;
}
