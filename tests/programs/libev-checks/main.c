// SPDX-License-Identifier: GPL-2.0
/*
 * For root in a VM of its own: it changes settings of the kernel.
 *
 * usage: libev-checks kevent|epoll	all checks on this backend
 *        libev-checks ENOSYS|EPERM	where kevent_init() fails like this: the
 *					default, and what asking for it gives
 *        libev-checks list		their number
 *
 * One line for each: "ok BACKEND NAME" or "not ok BACKEND NAME: reason".
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ukevent.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SECONDS		60	/* of a check, before it counts as hanging */
#define NR_kevent_init	480
#define NR_kevent_wait	483

unsigned int check_backend;
unsigned long check_waits;
unsigned long check_inits;

/* Queues are those of the module. */
bool check_module(void)
{
	return access("/proc/sys/kernel/kevent_disabled", F_OK);
}

/* libev calls these functions instead of the C library's. Calls of the module are ioctls. */
int ioctl(int fd, unsigned long request, ...)
{
	static int (*real)(int fd, unsigned long request, void *arg);
	va_list ap;
	void *arg;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	check_waits += request == KEVENT_IOC_WAIT;
	check_inits += request == KEVENT_IOC_INIT;
	return real(fd, request, arg);
}

long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long a[6];
	va_list ap;
	int i;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	check_waits += number == NR_kevent_wait;
	check_inits += number == NR_kevent_init;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void check_fail(const char *file, int line, const char *condition)
{
	printf("%s:%d: %s (errno %d)\n", file, line, condition, errno);
	fflush(stdout);
	_exit(1);
}

static unsigned long delivered_by(const char *fd)
{
	char path[64], line[128];
	unsigned long n, sum = 0;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.20s", fd);
	info = fopen(path, "r");
	want(info);
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "kevent-delivered: %lu", &n) == 1)
			sum += n;
	fclose(info);
	return sum;
}

unsigned long check_delivered(int *queues)
{
	DIR *dir = opendir("/proc/self/fd");
	char link[64], target[64];
	unsigned long sum = 0;
	struct dirent *entry;
	ssize_t len;

	want(dir);
	*queues = 0;
	while ((entry = readdir(dir))) {
		snprintf(link, sizeof(link), "/proc/self/fd/%.20s",
			 entry->d_name);
		len = readlink(link, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		if (strcmp(target, "anon_inode:[kevent]"))
			continue;
		++*queues;
		sum += delivered_by(entry->d_name);
	}
	closedir(dir);
	return sum;
}

static void count(struct ev_loop *loop, ev_io *io, int revents)
{
	struct counter *c = (struct counter *)io;
	char buf[4096];

	(void)loop;
	c->calls++;
	c->revents = revents;
	if (c->drain)
		want(read(io->fd, buf, sizeof(buf)) >= 0);
}

void counter_start(struct ev_loop *loop, struct counter *c, int fd, int events)
{
	c->calls = 0;
	c->revents = 0;
	ev_io_init(&c->io, count, fd, events);
	ev_io_start(loop, &c->io);
}

static void time_is_over(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)revents;
	*(int *)timer->data = 1;
	ev_break(loop, EVBREAK_ONE);
}

void run_for(struct ev_loop *loop, double seconds)
{
	ev_timer timer;
	int over = 0;

	ev_now_update(loop);
	ev_timer_init(&timer, time_is_over, seconds, 0);
	timer.data = &over;
	ev_timer_start(loop, &timer);
	while (!over)
		ev_run(loop, 0);
}

void run_until(struct ev_loop *loop, const int *value, int least)
{
	ev_timer timer;
	int over = 0;

	ev_now_update(loop);
	ev_timer_init(&timer, time_is_over, 10, 0);
	timer.data = &over;
	ev_timer_start(loop, &timer);
	while (*value < least) {
		want(!over);
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &timer);
}

void make_pipe(int fd[2])
{
	want(!pipe2(fd, O_NONBLOCK | O_CLOEXEC));
}

void put(int fd)
{
	want(write(fd, "x", 1) == 1);
}

void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	want(fd >= 0);
	want(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

void read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);

	want(fd >= 0);
	want(read(fd, text, size) > 0);
	close(fd);
}

/* A check that did not run on its backend has shown nothing. */
static void gate(struct ev_loop *loop, const struct check *check)
{
	bool epoll = check->ends_on_epoll ||
		     (check->ends_on_epoll_with_module && check_module());
	unsigned int backend = epoll ? EVBACKEND_EPOLL : check_backend;
	unsigned long delivered;
	int queues;

	want(ev_backend(loop) == backend);
	delivered = check_delivered(&queues);
	if (backend == EVBACKEND_KEVENT) {
		want(queues >= 1);
		want(delivered >= 1);
	} else {
		want(!queues);
	}
	if (check_backend == EVBACKEND_KEVENT)
		want(check_waits >= 1);
}

static void run_in_child(const struct check *check)
{
	struct ev_loop *loop = ev_default_loop(0);

	alarm(SECONDS);
	want(loop);
	want(ev_backend(loop) == check_backend);
	check->run(loop);
	gate(loop, check);
	_exit(0);
}

/* The output of a failed check is the reason in the report. */
static int run_check(const char *backend, const struct check *check)
{
	char said[256] = "";
	int fd[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (check->not_with_module && check_module()) {
		printf("ok %s %s: left out with the module\n", backend, check->name);
		return 0;
	}
	want(!pipe(fd));
	pid = fork();
	want(pid >= 0);
	if (!pid) {
		dup2(fd[1], STDOUT_FILENO);
		close(fd[0]);
		close(fd[1]);
		run_in_child(check);
	}
	close(fd[1]);
	while (len < sizeof(said) - 1 &&
	       (n = read(fd[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += n;
	close(fd[0]);
	want(waitpid(pid, &status, 0) == pid);
	said[strcspn(said, "\n")] = '\0';
	if (!status)
		printf("ok %s %s\n", backend, check->name);
	else
		printf("not ok %s %s: %s (status %#x)\n", backend, check->name,
		       said, status);
	fflush(stdout);
	return status ? 1 : 0;
}

static int run_all(const char *backend, const struct check *check)
{
	int failed = 0;

	for (; check->name; check++)
		failed += run_check(backend, check);
	return failed;
}

static int number_of(const struct check *check)
{
	int n = 0;

	for (; check->name; check++)
		n++;
	return n;
}

/* --- without kevent ------------------------------------------------------ */

static int expected_error;

static void no_kevent(struct ev_loop *loop)
{
	struct counter c = { .drain = 1 };
	int fd[2];

	want(syscall(NR_kevent_init, NULL, 0, 0) == -1);
	want(errno == expected_error);
	make_pipe(fd);
	put(fd[1]);
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
	want(ev_supported_backends() & EVBACKEND_KEVENT);
	want(!ev_loop_new(EVBACKEND_KEVENT));
	setenv("LIBEV_FLAGS", "256", 1);
	ev_loop_destroy(loop);
	want(!ev_default_loop(0));
	unsetenv("LIBEV_FLAGS");
	want(ev_default_loop(0));
}

static const struct check fallback_checks[] = {
	{ "default_is_epoll_and_kevent_alone_fails", no_kevent },
	{ NULL }
};

int main(int argc, char **argv)
{
	char flags[16];

	if (argc == 2 && !strcmp(argv[1], "list")) {
		printf("%d\n", number_of(io_checks) + number_of(life_checks));
		return 0;
	}
	check_backend = EVBACKEND_EPOLL;
	if (argc == 2 && argv[1][0] == 'E') {
		expected_error = !strcmp(argv[1], "EPERM") ? EPERM : ENOSYS;
		unsetenv("LIBEV_FLAGS");
		return !!run_all(argv[1], fallback_checks);
	}
	if (argc == 2 && !strcmp(argv[1], "kevent")) {
		check_backend = EVBACKEND_KEVENT;
	} else if (argc != 2 || strcmp(argv[1], "epoll")) {
		fprintf(stderr, "usage: libev-checks kevent|epoll|EPERM|ENOSYS|list\n");
		return 2;
	}
	snprintf(flags, sizeof(flags), "%u", check_backend);
	setenv("LIBEV_FLAGS", flags, 1);
	return run_all(argv[1], io_checks) + run_all(argv[1], life_checks) > 0;
}
