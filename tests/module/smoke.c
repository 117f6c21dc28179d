// SPDX-License-Identifier: GPL-2.0
/*
 * The device of the module, from its header alone: a queue, a watch, entries in the ring without a
 * call, waits by ioctl() and lseek(), and what close() does
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ukevent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS	64
#define CLOSES	20000

static int dev, q, failed, done;
static struct { struct kevent_ring ring; struct ukevent entry[SLOTS]; } mem
	__attribute__((aligned(4096)));

static void check(int ok, const char *what)
{
	printf("%s %s\n", ok ? "ok  " : "FAIL", what);
	failed += !ok;
	done++;
}

static int ctl(uint32_t cmd, struct ukevent *uk)
{
	struct kevent_dev_ctl c = { cmd, 1, (uintptr_t)uk };

	return ioctl(q, KEVENT_IOC_CTL, &c);
}

static struct ukevent watch(int fd)
{
	struct ukevent uk = {
		.type = KEVENT_PIPE, .event = KEVENT_SOCKET_RECV,
		.req_flags = KEVENT_REQ_ET, .ptr = 7, .id.raw = { fd },
	};

	return uk;
}

static uint64_t position(void)
{
	return __atomic_load_n((uint64_t *)&mem.ring.ring_kidx, __ATOMIC_ACQUIRE);
}

static int look(uint64_t seen, int whence)
{
	return lseek(q, KEVENT_SEEK(SLOTS, seen), whence);
}

static void *write_later(void *arg)
{
	usleep(50000);
	return (void *)write(*(int *)arg, "x", 1);
}

static void *storm(void *arg)
{
	struct ukevent uk;
	int p[2], i;

	for (i = 0; i < CLOSES; i++) {
		if (pipe(p))
			return (void *)1;
		uk = watch(p[0]);
		if (ctl(KEVENT_CTL_ADD, &uk))
			return (void *)2;
		if (i & 1 && write(p[1], "x", 1) != 1)
			return (void *)3;
		close(p[i & 2 ? 1 : 0]);
		close(p[i & 2 ? 0 : 1]);
	}
	return NULL;
}

static long watches(void)
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

static void commit(void)
{
	struct kevent_dev_commit c = { position() };

	ioctl(q, KEVENT_IOC_COMMIT, &c);
}

int main(void)
{
	struct kevent_dev_init init = { (uintptr_t)&mem, SLOTS, 0 };
	struct kevent_dev_wait wait = { SLOTS, 0, 0, 0, 0, 0 };
	pthread_t t[2];
	uint64_t types = 0, seen;
	struct ukevent uk;
	void *ret[2];
	int p[2];

	setbuf(stdout, NULL);
	dev = open(KEVENT_DEVICE, O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return perror(KEVENT_DEVICE), 1;
	check(!ioctl(dev, KEVENT_IOC_TYPES, &types), "types");
	printf("types: %llx\n", (unsigned long long)types);
	q = ioctl(dev, KEVENT_IOC_INIT, &init);
	check(q >= 0, "a queue");
	if (pipe(p))
		return 1;
	uk = watch(p[0]);
	check(!ctl(KEVENT_CTL_ADD, &uk), "a watch");
	check(write(p[1], "x", 1) == 1 && position() == 1 && mem.entry[0].ptr == 7,
	      "an entry without a call");
	check(look(0, SEEK_SET) == 1, "lseek() says so");
	check(!look(1, SEEK_SET), "lseek() says there is no more");
	wait.old_kidx = 0;
	check(ioctl(q, KEVENT_IOC_WAIT, &wait) == 1, "ioctl() says so");
	seen = position();
	commit();
	pthread_create(&t[0], NULL, write_later, &p[1]);
	check(look(seen, SEEK_CUR) == 1, "lseek() waits");
	pthread_join(t[0], NULL);
	commit();
	close(p[0]);
	check(!watches(), "close() removes a watch");
	pthread_create(&t[0], NULL, storm, NULL);
	pthread_create(&t[1], NULL, storm, NULL);
	pthread_join(t[0], &ret[0]);
	pthread_join(t[1], &ret[1]);
	printf("storm: %p %p\n", ret[0], ret[1]);
	check(!ret[0] && !ret[1] && !watches(), "a storm of closes");
	if (!fork()) {
		if (!pipe(p)) {
			uk = watch(p[0]);
			ctl(KEVENT_CTL_ADD, &uk);
		}
		_exit(0);
	}
	waitpid(-1, NULL, 0);
	check(!watches(), "an exit removes a watch");
	printf("%d passed, %d failed\n", done - failed, failed);
	return failed;
}
