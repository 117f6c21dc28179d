// SPDX-License-Identifier: GPL-2.0
/*
 * The hook of the module: who cannot take it away, who may stand beside it, when it comes and
 * goes, and what keeps the module
 *
 * usage: hook MODULE ROUNDS, as root, with the module loaded and its file MODULE
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ukevent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING	"/sys/kernel/tracing/"
#define FAULTS	60		/* while the module starts */
#define MANY	1000000		/* more than a load has */

static int failed, done;

static void check(int ok, const char *what)
{
	printf("%s %s\n", ok ? "ok  " : "FAIL", what);
	failed += !ok;
	done++;
}

/* 0 or errno */
static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC), ret = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = errno;
	close(fd);
	return ret;
}

static int new_queue_with(struct kevent_ring *ring, unsigned int size)
{
	struct kevent_dev_init init = { .ring = (uintptr_t)ring, .ring_size = size };
	int q, dev = open(KEVENT_DEVICE, O_RDWR | O_CLOEXEC);

	if (dev < 0)
		return -1;
	q = ioctl(dev, KEVENT_IOC_INIT, &init);
	close(dev);
	return q;
}

static int new_queue(void)
{
	return new_queue_with(NULL, 0);
}

static long watches(int q)
{
	char name[64], line[200];
	long nr = -1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", q);
	f = fopen(name, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "kevent-watches: %ld", &nr);
	if (f)
		fclose(f);
	return nr;
}

/* Does close() remove watches of a pipe and of a directory? */
static int closes(int q)
{
	struct ukevent uk[2] = {
		{ .type = KEVENT_PIPE, .event = KEVENT_SOCKET_RECV },
		{ .type = KEVENT_INODE, .event = KEVENT_INODE_CREATE },
	};
	struct kevent_dev_ctl c = { KEVENT_CTL_ADD, 2, (uintptr_t)uk };
	int p[2], dir = open("/", O_RDONLY | O_DIRECTORY);

	if (dir < 0 || pipe(p))
		return 0;
	uk[0].id.raw[0] = p[0];
	uk[1].id.raw[0] = dir;
	if (ioctl(q, KEVENT_IOC_CTL, &c) || watches(q) != 2)
		return 0;
	close(p[0]);
	close(dir);
	close(p[1]);
	return !watches(q);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "kevent", O_NONBLOCK) ? errno : 0;
}

/* fsnotify lets its marks go a little later. */
static int unload_at_last(void)
{
	int i, ret = unload();

	for (i = 0; i < 10000 && ret == EWOULDBLOCK; i++) {
		usleep(1000);
		ret = unload();
	}
	return ret;
}

static int load(const char *file, const char *args)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), ret;

	ret = syscall(SYS_finit_module, fd, args, 0) ? errno : 0;
	close(fd);
	return ret;
}

static void beside_others(int q)
{
	check(!put(TRACING "set_ftrace_filter", "locks_remove_posix") &&
	      !put(TRACING "current_tracer", "function"), "a tracer of the function");
	check(closes(q), "close() beside the tracer");
	check(!put(TRACING "current_tracer", "nop"), "no tracer");
	check(closes(q), "close() after the tracer");
	if (put(TRACING "kprobe_events", "p:other locks_remove_posix"))
		return;
	check(!put(TRACING "events/kprobes/other/enable", "1"), "a kprobe there");
	check(closes(q), "close() beside the kprobe");
	put(TRACING "events/kprobes/other/enable", "0");
	put(TRACING "kprobe_events", "");
}

/* Who waits for the ring last: it blocks elsewhere. */
static int late_queue, late_event[2], late_end[2];
static pthread_barrier_t late_start;

static void *late_consumer(void *unused)
{
	static struct { struct kevent_ring ring; struct ukevent entry[8]; } mem;
	struct ukevent uk = { .type = KEVENT_PIPE, .event = KEVENT_SOCKET_RECV };
	struct kevent_dev_ctl c = { KEVENT_CTL_ADD, 1, (uintptr_t)&uk };
	char byte;

	(void)unused;
	late_queue = new_queue_with(&mem.ring, 8);
	uk.id.raw[0] = late_event[0];
	if (ioctl(late_queue, KEVENT_IOC_CTL, &c))
		perror("ADD");
	pthread_barrier_wait(&late_start);
	return (void *)read(late_end[0], &byte, 1);
}

/* An event from where the ring is not has that thread set a flag on its way to user mode. */
static void late_miss(void)
{
	pthread_t thread;
	pid_t child;

	if (pipe(late_event) || pipe(late_end) || pthread_barrier_init(&late_start, NULL, 2) ||
	    pthread_create(&thread, NULL, late_consumer, NULL))
		perror("late");
	pthread_barrier_wait(&late_start);
	child = fork();
	if (!child)
		_exit(write(late_event[1], "", 1) != 1);
	waitpid(child, NULL, 0);
	close(late_queue);
	close(late_event[0]);
	close(late_event[1]);
	check(unload() == EWOULDBLOCK, "no unload while a thread has work of a queue");
	check(write(late_end[1], "", 1) == 1, "the thread goes on");
	pthread_join(thread, NULL);
}

/* Loads the module, whose @n-th allocation fails; how many were left then. */
static int load_with_fault(const char *file, int nth, int n, int *err)
{
	char text[16] = "";

	snprintf(text, sizeof(text), "%d", n);
	if (pwrite(nth, text, strlen(text), 0) < 0)
		perror("fail-nth");
	*err = load(file, "");
	memset(text, 0, sizeof(text));
	/* These are copies: they may have the fault. */
	if (pread(nth, text, sizeof(text) - 1, 0) < 0 || pwrite(nth, "0", 1, 0) < 0)
		return 0;
	return atoi(text);
}

/*
 * The last allocations of a load fail, one each time: all of the module is there, or nothing is
 * left of it. Those before are not of the module: the kernel warns of one that fails.
 */
static void load_with_faults(const char *file)
{
	int nth = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC), faults = 0, i, all, err, wrong;

	if (nth < 0)
		return;
	put("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	put("/sys/kernel/debug/failslab/verbose", "0");
	put("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	put("/sys/kernel/debug/fail_usercopy/verbose", "0");
	wrong = unload_at_last();
	all = MANY - load_with_fault(file, nth, MANY, &err);
	for (i = 0; i < FAULTS && !wrong; i++) {
		wrong = unload_at_last();
		load_with_fault(file, nth, all - i, &err);
		wrong |= !err != !access(KEVENT_DEVICE, F_OK);
		faults += !!err;
		if (err)
			wrong |= load(file, "");
	}
	close(nth);
	printf("%d of the last %d of %d allocations made a load fail\n", faults, i, all);
	check(!wrong && faults, "loads that fail");
}

static void reload(const char *file, int rounds)
{
	int i, q, wrong = 0;

	for (i = 0; i < rounds && !wrong; i++) {
		wrong = unload_at_last() || load(file, i % 2 ? "check=1" : "");
		if (i % 4)
			continue;
		q = new_queue();
		wrong |= q < 0 || !closes(q);
		close(q);
	}
	printf("%d rounds\n", i);
	check(!wrong, "loaded again and again");
}

int main(int argc, char **argv)
{
	int q;

	setbuf(stdout, NULL);
	if (argc != 3)
		return 2;
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	q = new_queue();
	check(q >= 0, "a queue");
	check(closes(q), "close()");
	check(put("/proc/sys/kernel/ftrace_enabled", "0") == EBUSY, "ftrace cannot be disabled");
	check(unload() == EWOULDBLOCK, "no unload while there is a queue");
	beside_others(q);
	check(closes(q), "close() after all that");
	close(q);
	late_miss();
	load_with_faults(argv[1]);
	reload(argv[1], atoi(argv[2]));
	check(!unload_at_last(), "unloaded");
	check(access(KEVENT_DEVICE, F_OK), "no device");
	printf("%d passed, %d failed\n", done - failed, failed);
	return failed;
}
