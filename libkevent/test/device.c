// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of the module, by a stand-in for its device
 *
 * The library keeps what it has found, so each test runs in a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/time_types.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test.h"

/* The device: what open() says, or 0; types that the module has; the next answer */
static struct {
	int	error;
	__u64	types;
	long	answer;
	bool	stranger;	/* the number of the device is another file's */
} module;

/* Calls of the library */
static unsigned int opened, inits, calls, seeks;
static int device;
static struct fake_call last;

/* The argument of the last ioctl, by its command */
static union {
	struct kevent_dev_init		init;
	struct kevent_dev_ctl		ctl;
	struct kevent_dev_get		get;
	struct kevent_dev_wait		wait;
	struct kevent_dev_commit	commit;
} arg;
static struct kevent_dev_init arg_of_init;

static long new_file(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* The library asks each type of a queue. */
static long answer_types(const struct kevent_dev_ctl *ctl)
{
	struct ukevent *uk = (void *)(unsigned long)ctl->arg;
	__u32 i;

	for (i = 0; i < ctl->num; i++) {
		uk[i].ret_flags = KEVENT_RET_DONE | KEVENT_RET_BROKEN;
		uk[i].ret_data[1] = (__u32)(module.types >> uk[i].type & 1 ? -EINVAL :
								    -ENOSYS);
	}
	return ctl->num;
}

static long device_ioctl(const struct fake_call *call)
{
	unsigned int request = (unsigned int)call->arg[1];

	if (request == KEVENT_IOC_TYPES) {
		if (module.stranger || (int)call->arg[0] != device)
			return -ENOTTY;
		*(__u64 *)call->arg[2] = module.types;
		return 0;
	}
	memcpy(&arg, (void *)call->arg[2], _IOC_SIZE(request));
	if (request == KEVENT_IOC_INIT) {
		arg_of_init = arg.init;
		CHECK_EQ((int)call->arg[0], device);
		inits++;
		return module.answer ? module.answer : new_file();
	}
	calls++;
	if (request == KEVENT_IOC_CTL && arg.ctl.num > 1 && !module.answer)
		return answer_types(&arg.ctl);
	return module.answer;
}

static long answer_device(const struct fake_call *call)
{
	last = *call;
	if (call->nr == SYS_lseek) {
		seeks++;
		return module.answer;
	}
	if (call->nr == SYS_ioctl)
		return device_ioctl(call);
	opened++;
	CHECK(call->arg[2] & O_CLOEXEC);
	if (module.error)
		return module.error;
	device = (int)new_file();
	return device;
}

static unsigned int syscalls;

static long count_syscalls(const struct fake_call *call)
{
	syscalls += call->nr >= 480 && call->nr <= 485;
	switch (call->nr) {
	case SYS_fcntl:
		if (call->arg[1] == F_DUPFD_CLOEXEC)
			return device = fcntl((int)call->arg[0], F_DUPFD_CLOEXEC,
					      (int)call->arg[2]);
		return fcntl((int)call->arg[0], (int)call->arg[1]);
	case SYS_close:
		return close((int)call->arg[0]);
	case 449:	/* futex_waitv() of nothing */
		return -EINVAL;
	default:
		/* There is no fallback here: its first call says so. */
		return -EIO;
	}
}

static void in_child(void (*fn)(void))
{
	int status = 1;

	fflush(stdout);
	if (!fork()) {
		fake_kernel = count_syscalls;
		fake_device = answer_device;
		fake_proc.sysctl = false;
		module.types = 0x6cf;
		fn();
		fflush(stdout);
		_exit(test_failed());
	}
	wait(&status);
	CHECK_EQ(status, 0);
}

/* --- who is asked ----------------------------------------------------------- */

static KEVENT_RING_STORAGE(8) mem;

static void makes_one(void)
{
	int fd;

	fd = kevent_init(&mem.ring, 8, KEVENT_INIT_NOCLOEXEC | KEVENT_INIT_NO_FALLBACK);
	CHECK(fd >= 0);
	CHECK_EQ(arg.init.ring, (__u64)(unsigned long)&mem.ring);
	CHECK_EQ(arg.init.ring_size, 8);
	CHECK_EQ(arg.init.flags, KEVENT_INIT_NOCLOEXEC);
	CHECK(!strcmp(kevent_backend(fd), "module"));
	CHECK_EQ(kevent_supported(), 0);
	CHECK_EQ(syscalls, 0);
}

static void module_is_used_without_the_sysctl(void)
{
	in_child(makes_one);
}

/* The kernel has system calls, and returns queues. */
static long kernel_init(const struct fake_call *call)
{
	return call->nr == 480 ? new_file() : count_syscalls(call);
}

static void has_calls(void)
{
	fake_kernel = kernel_init;
	fake_proc.sysctl = true;
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(kevent_supported(), 0);
	CHECK_EQ(opened, 0);
}

static void device_is_not_asked_where_there_are_calls(void)
{
	in_child(has_calls);
}

static void has_both(void)
{
	fake_kernel = kernel_init;
	fake_proc.sysctl = true;
	fake_proc.device = true;
	CHECK_EQ(kevent_ctl(9, KEVENT_CTL_ADD, 0, NULL), 0);
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(inits, 1);
	CHECK_EQ(kevent_ctl(9, KEVENT_CTL_ADD, 0, NULL), 0);
	CHECK_EQ(calls, 2);
}

static void sysctl_may_be_of_the_module(void)
{
	in_child(has_both);
}

static void calls_are_filtered(void)
{
	fake_proc.sysctl = true;
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(syscalls, 1);
	/* The module has answered: this kernel has no such calls. */
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(kevent_ctl(3, KEVENT_CTL_ADD, 0, NULL), 0);
	CHECK_EQ(syscalls, 1);
}

static void no_call_is_made_once_the_module_has_answered(void)
{
	in_child(calls_are_filtered);
}

static void only_the_module(void)
{
	setenv("KEVENT_BACKEND", "module", 1);
	fake_kernel = kernel_init;
	fake_proc.sysctl = true;
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(inits, 1);
	module.error = -ENOENT;
	module.stranger = true;
	CHECK_EQ(kevent_init(NULL, 0, 0), -ENOSYS);
	/* Flags decide. */
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_FALLBACK_ONLY), -EIO);
}

static void environment_asks_for_the_module(void)
{
	in_child(only_the_module);
}

static void only_epoll(void)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(kevent_init(NULL, 0, 0), -EIO);
	CHECK_EQ(opened, 0);
	CHECK(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK) >= 0);
}

static void environment_leaves_the_module_alone(void)
{
	in_child(only_epoll);
}

static const int absent[] = { -ENOENT, -ENOTDIR, -ENXIO, -ENODEV };
static const int refused[] = { -EACCES, -EPERM };
static const int final[] = { -EMFILE, -ENFILE, -ENOMEM, -EINTR };

static void open_fails(void)
{
	size_t i;

	unsetenv("KEVENT_BACKEND");
	for (i = 0; i < ARRAY_SIZE(absent); i++) {
		module.error = absent[i];
		CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), -ENOSYS);
		CHECK_EQ(kevent_supported(), -ENOSYS);
		CHECK_EQ(kevent_init(NULL, 0, 0), -EIO);
	}
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		module.error = refused[i];
		CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), refused[i]);
		CHECK_EQ(kevent_supported(), refused[i]);
		CHECK_EQ(kevent_init(NULL, 0, 0), -EIO);
	}
	for (i = 0; i < ARRAY_SIZE(final); i++) {
		module.error = final[i];
		CHECK_EQ(kevent_init(NULL, 0, 0), final[i]);
	}
	CHECK_EQ(inits, 0);
}

static void device_that_cannot_be_opened_asks_the_fallback(void)
{
	in_child(open_fails);
}

/* The error of the kernel says more than that there is no module. */
static long forbidden(const struct fake_call *call)
{
	return call->nr == 480 ? -EPERM : count_syscalls(call);
}

static void calls_are_forbidden(void)
{
	fake_kernel = forbidden;
	fake_proc.sysctl = true;
	module.error = -ENOENT;
	CHECK_EQ(kevent_init(NULL, 0, 0), -EPERM);
	CHECK_EQ(kevent_supported(), -EPERM);
}

static void missing_device_hides_no_error(void)
{
	in_child(calls_are_forbidden);
}

static void init_is_refused(void)
{
	unsetenv("KEVENT_BACKEND");
	module.answer = -EPERM;
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK), -EPERM);
	CHECK_EQ(kevent_init(NULL, 0, 0), -EIO);
	module.answer = -EMFILE;
	CHECK_EQ(kevent_init(NULL, 0, 0), -EMFILE);
}

static void refusals_of_the_module_ask_the_fallback(void)
{
	in_child(init_is_refused);
}

/* --- the descriptor of the device ------------------------------------------- */

static void stays(void)
{
	int first;

	CHECK(kevent_init(NULL, 0, 0) >= 0);
	first = device;
	module.error = -EACCES;
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(opened, 1);
	/* It was closed, and may be anything. */
	module.stranger = true;
	CHECK_EQ(kevent_init(NULL, 0, 0), -EACCES);
	CHECK_EQ(fcntl(first, F_GETFD), FD_CLOEXEC);
	module.stranger = false;
	module.error = 0;
	device = -1;
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(opened, 3);
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK_EQ(opened, 3);
}

static void device_stays_open(void)
{
	in_child(stays);
}

static void another_file(void)
{
	int before = dup(1);

	close(before);
	module.stranger = true;
	CHECK_EQ(kevent_init(NULL, 0, 0), -ENOSYS);
	CHECK_EQ(inits, 0);
	/* It is closed: nobody else can have it. */
	CHECK_EQ(dup(1), before);
}

static void file_in_the_place_of_the_device_is_closed(void)
{
	in_child(another_file);
}

static void daemon_opens(void)
{
	close(0);
	CHECK(kevent_init(NULL, 0, 0) >= 0);
	CHECK(device > 2);
	CHECK_EQ(fcntl(device, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(2, F_GETFD), 0);
}

static void device_is_no_standard_descriptor(void)
{
	in_child(daemon_opens);
}

/* --- calls ------------------------------------------------------------------ */

static void calls_of_a_queue(void)
{
	const struct timespec ts = { 3, 4 };
	const struct kevent_wait_arg more = { .size = sizeof(more) };
	const struct __kernel_timespec *got;
	struct ukevent ev = { .type = KEVENT_USER };

	CHECK(kevent_init(NULL, 0, 0) >= 0);
	module.answer = 5;
	CHECK_EQ(kevent_ctl(9, KEVENT_CTL_MODIFY, 1, &ev), 5);
	CHECK_EQ((int)last.arg[0], 9);
	CHECK_EQ(arg.ctl.cmd, KEVENT_CTL_MODIFY);
	CHECK_EQ(arg.ctl.num, 1);
	CHECK_EQ(arg.ctl.arg, (__u64)(unsigned long)&ev);
	CHECK_EQ(kevent_get_events(9, 1, 2, &ts, &ev, KEVENT_FLAGS_ABSTIME), 5);
	CHECK_EQ(arg.get.min_nr, 1);
	CHECK_EQ(arg.get.max_nr, 2);
	CHECK_EQ(arg.get.buf, (__u64)(unsigned long)&ev);
	CHECK_EQ(arg.get.flags, KEVENT_FLAGS_ABSTIME);
	CHECK_EQ(arg.get.reserved, 0);
	got = (const void *)(unsigned long)arg.get.timeout;
	CHECK(got->tv_sec == 3 && got->tv_nsec == 4);
	CHECK_EQ(kevent_wait(9, 6, 7, &ts, KEVENT_FLAGS_ARG, &more), 5);
	CHECK_EQ(arg.wait.num, 6);
	CHECK_EQ(arg.wait.old_kidx, 7);
	CHECK_EQ(arg.wait.timeout, (__u64)(unsigned long)&ts);
	CHECK_EQ(arg.wait.flags, KEVENT_FLAGS_ARG);
	CHECK_EQ(arg.wait.reserved, 0);
	CHECK_EQ(arg.wait.arg, (__u64)(unsigned long)&more);
	CHECK_EQ(kevent_commit(9, 0x80000001, 2), 5);
	CHECK_EQ(arg.commit.uidx, 0x280000001);
	CHECK_EQ(syscalls, 0);
	CHECK_EQ(calls, 4);
}

static void calls_are_ioctls(void)
{
	in_child(calls_of_a_queue);
}

static void errors_of_calls(void)
{
	struct ukevent ev;

	CHECK(kevent_init(NULL, 0, 0) >= 0);
	errno = 1234;
	module.answer = -EBADF;
	CHECK_EQ(kevent_ctl(9, KEVENT_CTL_ADD, 1, &ev), -EBADF);
	module.answer = -ENOTTY;
	CHECK_EQ(kevent_ctl(9, KEVENT_CTL_ADD, 1, &ev), -EINVAL);
	CHECK(!kevent_backend(9));
	CHECK_EQ(kevent_types(9), 0);
	module.answer = -ESPIPE;
	CHECK_EQ(kevent_wait(9, 1, 0, NULL, 0, NULL), -EINVAL);
	/* As an eventfd, an epoll or /dev/null: queues never say so. */
	module.answer = 0;
	CHECK_EQ(kevent_wait(9, 1, 0, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_wait(9, 1, 0, &(struct timespec){ 0 }, 0, NULL), -EINVAL);
	CHECK_EQ(errno, 1234);
}

static void other_files_are_no_queues(void)
{
	in_child(errors_of_calls);
}

static const struct timespec no_time, a_time = { .tv_nsec = 1 }, a_second = { 1, 0 };

static void check_seek(__u32 num, const struct timespec *timeout, int whence)
{
	unsigned int before = seeks;

	CHECK_EQ(kevent_wait(9, num, 0x89abcdef, timeout, 0, NULL), 5);
	CHECK_EQ(seeks, before + 1);
	CHECK_EQ((int)last.arg[0], 9);
	CHECK_EQ(last.arg[1], (long)KEVENT_SEEK(num < KEVENT_RING_MAX ? num : KEVENT_RING_MAX,
						0x89abcdef));
	CHECK(last.arg[1] < 0);
	CHECK_EQ((int)last.arg[2], whence);
}

static void waits_by_seeks(void)
{
	const struct kevent_wait_arg more = { .size = sizeof(more) };

	CHECK(kevent_init(NULL, 0, 0) >= 0);
	module.answer = 5;
	check_seek(8, NULL, SEEK_CUR);
	check_seek(8, &no_time, SEEK_SET);
	check_seek(-1U, NULL, SEEK_CUR);
	seeks = 0;
	CHECK_EQ(kevent_wait(9, 1, 2, &a_time, 0, NULL), 5);
	CHECK_EQ(kevent_wait(9, 1, 2, &a_second, 0, NULL), 5);
	CHECK_EQ(kevent_wait(9, 1, 2, &no_time, KEVENT_FLAGS_ABSTIME, NULL), 5);
	CHECK_EQ(kevent_wait(9, 1, 2, NULL, KEVENT_FLAGS_ARG, &more), 5);
	CHECK_EQ(kevent_wait(9, 1, 2, NULL, 0, &more), 5);
	CHECK_EQ(calls, 5);
	CHECK_EQ(seeks, 0);
}

static void waits_without_a_span_are_seeks(void)
{
	in_child(waits_by_seeks);
}

static void loop_seeks(void)
{
	struct kevent_queue q;
	struct ukevent ev;

	CHECK_EQ(kevent_queue_init(&q, &mem.ring, 8, 0), 0);
	module.answer = -EAGAIN;
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &no_time), 0);
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, NULL), 0);
	CHECK_EQ(seeks, 2);
	module.answer = 0;
	CHECK_EQ(kevent_queue_get(&q, &ev, 1, &a_second), 0);
	CHECK_EQ(seeks, 2);
}

static void library_waits_by_seeks(void)
{
	in_child(loop_seeks);
}

/* --- queues of other processes ---------------------------------------------- */

/* This process may not open the device. */
static void from_elsewhere(void)
{
	module.error = -EACCES;
	CHECK_EQ(kevent_wait(9, 1, 2, NULL, 0, NULL), 0);
	CHECK_EQ(calls, 1);
	CHECK_EQ(seeks, 0);
	module.answer = -EAGAIN;
	CHECK_EQ(kevent_wait(9, 1, 2, NULL, 0, NULL), 0);
	CHECK_EQ(seeks, 1);
	module.answer = 0;
	CHECK(!strcmp(kevent_backend(9), "module"));
	CHECK_EQ(kevent_types(9), module.types);
	CHECK_EQ(opened, 0);
}

static void queue_from_elsewhere_is_known(void)
{
	in_child(from_elsewhere);
}

/* A file must not move before anything says that there are queues of the module. */
static void no_queue_at_all(void)
{
	struct ukevent ev;

	fake_device = NULL;
	CHECK_EQ(kevent_wait(9, 1, 2, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_get_events(9, 1, 1, NULL, &ev, 0), -EINVAL);
	CHECK_EQ(kevent_ctl(9, KEVENT_CTL_ADD, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_commit(9, 0, 0), -EINVAL);
	CHECK_EQ(seeks, 0);
	CHECK(!kevent_backend(9));
}

static void nothing_moves_before_the_module_has_answered(void)
{
	in_child(no_queue_at_all);
}

/* --- types ------------------------------------------------------------------ */

#define NEED(type)	KEVENT_INIT_ONLY(KEVENT_TYPE(type))

static void types_of_a_queue(void)
{
	int next, fd = kevent_init(NULL, 0, 0);

	CHECK(fd >= 0);
	CHECK_EQ(kevent_types(fd), 0x6cf);
	next = dup(1);
	close(next);
	/* It has them: no other is asked. */
	fd = kevent_init(NULL, 0, NEED(KEVENT_SOCKET));
	CHECK_EQ(fd, next);
	CHECK_EQ(arg.ctl.cmd, KEVENT_CTL_ADD);
	close(fd);
	/* It has not: there is the fallback, or nothing. */
	CHECK_EQ(kevent_init(NULL, 0, NEED(KEVENT_FUTEX) | KEVENT_INIT_NO_FALLBACK),
		 -EOPNOTSUPP);
	CHECK_EQ(dup(1), next);
}

static void queue_without_a_type_is_not_taken(void)
{
	in_child(types_of_a_queue);
}

static void types_of_none(void)
{
	unsetenv("KEVENT_BACKEND");
	CHECK_EQ(kevent_init(NULL, 0, NEED(KEVENT_FUTEX)), -EIO);
	CHECK(kevent_init(NULL, 0, NEED(KEVENT_SOCKET)) >= 0);
	CHECK(kevent_init(NULL, 0, 0) >= 0);
}

static void fallback_is_asked_for_a_type(void)
{
	in_child(types_of_none);
}

static void flags_of_types(void)
{
	CHECK_EQ(NEED(KEVENT_SOCKET), 0x1ffe2000U);
	CHECK_EQ(NEED(KEVENT_FUTEX), 0x17ff2000U);
	CHECK_EQ(NEED(KEVENT_BOUND), 0x0fff2000U);
	kevent_init(NULL, 0, NEED(KEVENT_SOCKET));
	CHECK_EQ(arg_of_init.flags, 0x1ffe0000U);
	CHECK_EQ(inits, 1);
	/* Without refusals, all that there are */
	module.types = 0x1fef;
	CHECK(kevent_init(NULL, 0, KEVENT_INIT_ALL_TYPES) >= 0);
	module.types = 0xfef;
	CHECK_EQ(kevent_init(NULL, 0, KEVENT_INIT_ALL_TYPES), -EOPNOTSUPP);
	CHECK(kevent_init(NULL, 0, KEVENT_INIT_ALL_TYPES | KEVENT_INIT_REFUSE_LATER) >= 0);
}

static void types_are_those_not_refused(void)
{
	in_child(flags_of_types);
}

const struct test_case device_tests[] = {
	{ "module_is_used_without_the_sysctl", module_is_used_without_the_sysctl },
	{ "device_is_not_asked_where_there_are_calls",
	  device_is_not_asked_where_there_are_calls },
	{ "sysctl_may_be_of_the_module", sysctl_may_be_of_the_module },
	{ "no_call_is_made_once_the_module_has_answered",
	  no_call_is_made_once_the_module_has_answered },
	{ "environment_asks_for_the_module", environment_asks_for_the_module },
	{ "environment_leaves_the_module_alone", environment_leaves_the_module_alone },
	{ "device_that_cannot_be_opened_asks_the_fallback",
	  device_that_cannot_be_opened_asks_the_fallback },
	{ "missing_device_hides_no_error", missing_device_hides_no_error },
	{ "refusals_of_the_module_ask_the_fallback",
	  refusals_of_the_module_ask_the_fallback },
	{ "device_stays_open", device_stays_open },
	{ "file_in_the_place_of_the_device_is_closed",
	  file_in_the_place_of_the_device_is_closed },
	{ "device_is_no_standard_descriptor", device_is_no_standard_descriptor },
	{ "calls_are_ioctls", calls_are_ioctls },
	{ "other_files_are_no_queues", other_files_are_no_queues },
	{ "waits_without_a_span_are_seeks", waits_without_a_span_are_seeks },
	{ "library_waits_by_seeks", library_waits_by_seeks },
	{ "queue_from_elsewhere_is_known", queue_from_elsewhere_is_known },
	{ "nothing_moves_before_the_module_has_answered",
	  nothing_moves_before_the_module_has_answered },
	{ "queue_without_a_type_is_not_taken", queue_without_a_type_is_not_taken },
	{ "fallback_is_asked_for_a_type", fallback_is_asked_for_a_type },
	{ "types_are_those_not_refused", types_are_those_not_refused },
	{ NULL, NULL },
};
