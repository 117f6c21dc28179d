// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Checksums of many files, as cksum(1) prints them. Chains open, read and close the
 * files: what is in memory is read at once, and threads wait for the disk. One loop
 * takes the results, with a timer for progress.
 */
#include <libkevent.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS		4
#define JOBS		32		/* files that are read at once */
#define CHUNK		32768
#define TICK		500000000ull	/* in nanoseconds */
#define PROGRESS	JOBS		/* user value; those of jobs are smaller */

enum { CLOSE, MORE };

/* A file that is being read, by one chain or more */
struct job {
	struct kevent_call	calls[8], *open, *read[2];
	struct kevent_chain	chain;
	const char		*name;
	int			fd;		/* -1: the chain opens it */
	__u32			sum;
	unsigned long long	len;
	unsigned char		buf[2][CHUNK];
};

static struct job jobs[JOBS];
static struct kevent_queue q;
static char **names;
static size_t nr_names, next_name, files, bad;
static __u32 table[256];

static void make_table(void)
{
	__u32 i, bit, sum;

	for (i = 0; i < 256; i++) {
		sum = i << 24;
		for (bit = 0; bit < 8; bit++)
			sum = sum << 1 ^ (sum >> 31 ? 0x04c11db7 : 0);
		table[i] = sum;
	}
}

static void add(struct job *job, unsigned int byte)
{
	job->sum = job->sum << 8 ^ table[(job->sum >> 24 ^ byte) & 0xff];
}

static void print(struct job *job)
{
	unsigned long long len;

	for (len = job->len; len; len >>= 8)
		add(job, len & 0xff);
	printf("%u %llu %s\n", (unsigned int)~job->sum, job->len, job->name);
	files++;
}

static void complain(const char *name, long long error)
{
	fprintf(stderr, "aio: %s: %s\n", name, kevent_strerror((int)error));
	bad++;
}

/* Read twice, and close the file unless there is more: a small file takes one chain. */
static void build(struct job *job)
{
	struct kevent_chain *c = &job->chain;
	int i;

	kevent_chain_init(c, job->calls, 8);
	job->open = NULL;
	if (job->fd < 0)
		job->open = kevent_chain_call(c, SYS_openat, AT_FDCWD,
					      job->name, O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 2; i++) {
		job->read[i] = kevent_chain_call(c, SYS_read, job->fd,
						 job->buf[i], CHUNK);
		if (job->open)
			kevent_chain_pass(c, job->open, 0);
		kevent_chain_jump(c, KEVENT_ON_ERROR | KEVENT_ON_ZERO, CLOSE);
	}
	kevent_chain_jump(c, KEVENT_ON_VALUE, MORE);
	kevent_chain_label(c, CLOSE);
	kevent_chain_call(c, SYS_close, job->fd);
	if (job->open)
		kevent_chain_pass(c, job->open, 0);
	kevent_chain_label(c, MORE);
	if (kevent_chain_end(c))
		abort();
}

/* The next file for a job, if there is one */
static int next(struct job *job)
{
	if (next_name == nr_names)
		return 0;
	job->name = names[next_name++];
	job->fd = -1;
	job->sum = 0;
	job->len = 0;
	build(job);
	return 1;
}

/* Behind a reading that ended the file or failed none was made. */
static int take(struct job *job)
{
	long long i, j, got = 0;

	for (i = 0; i < 2; i++) {
		got = job->read[i]->result;
		for (j = 0; j < got; j++)
			add(job, job->buf[i][j]);
		if (got <= 0)
			break;
		job->len += (unsigned long long)got;
	}
	return (int)got;
}

/* The chain has ended. Is there another one to submit? */
static int ended(struct job *job, int ret)
{
	long long error = ret < 0 ? ret : 0;
	int got;

	if (ret > 0 && (unsigned int)ret & KEVENT_CALL_REFUSED)
		error = job->calls[(unsigned int)ret & ~KEVENT_CALL_REFUSED].result;
	if (job->open && job->open->result < 0)
		error = job->open->result;
	else if (job->open && ret >= 0)
		job->fd = (int)job->open->result;
	if (error) {
		if (job->fd >= 0)
			close(job->fd);
		complain(job->name, error);
		return next(job);
	}
	got = take(job);
	if (got > 0) {
		build(job);
		return 1;
	}
	if (got < 0)
		complain(job->name, got);
	else
		print(job);
	return next(job);
}

/* Returns how many of its chains have an event to come: 1 or 0. */
static int submit(struct job *job)
{
	int ret;

	do {
		ret = kevent_chain_submit(q.fd, &job->chain,
					  (__u64)(job - jobs));
		if (ret == (int)KEVENT_CALL_SUBMITTED)
			return 1;
		/* A kernel that leaves nothing to threads: wait here. */
		if (ret == -ENOSYS || ret == -EOPNOTSUPP)
			ret = kevent_chain_run(&job->chain);
	} while (ended(job, ret));
	return 0;
}

static int loop(void)
{
	int left = 0, ret;
	struct ukevent ev;
	struct job *job;
	size_t i;

	for (i = 0; i < JOBS && next(&jobs[i]); i++)
		left += submit(&jobs[i]);
	while (left) {
		ret = kevent_queue_get(&q, &ev, 1, NULL);
		if (ret < 0 && ret != -EINTR)
			return ret;
		if (ret != 1)
			continue;
		if (ev.ptr == PROGRESS) {
			fprintf(stderr, "%zu of %zu files\n", files, nr_names);
			continue;
		}
		left--;
		job = &jobs[ev.ptr];
		if (ended(job, kevent_chain_finish(&job->chain, &ev)))
			left += submit(job);
	}
	return 0;
}

/* Until the queue is closed */
static void *serve(void *arg)
{
	int ret;

	(void)arg;
	do
		ret = kevent_chain_serve(q.fd, THREADS, NULL);
	while (ret >= 0 || ret == -EINTR);
	return NULL;
}

static void add_name(const char *folder, const char *name)
{
	size_t len = strlen(folder) + strlen(name) + 2;
	char *path = malloc(len);

	names = realloc(names, (nr_names + 1) * sizeof(*names));
	if (!path || !names)
		abort();
	snprintf(path, len, "%s%s%s", folder, *folder ? "/" : "", name);
	names[nr_names++] = path;
}

/* A file, or the files of a folder */
static void add_names(const char *name)
{
	DIR *dir = opendir(name);
	struct dirent *entry;

	if (!dir)
		add_name("", name);
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_REG)
			add_name(name, entry->d_name);
	if (dir)
		closedir(dir);
}

int main(int argc, char **argv)
{
	static KEVENT_RING_STORAGE(2 * JOBS) mem;
	pthread_t threads[THREADS];
	struct ukevent ev;
	int i, ret;

	for (i = 1; i < argc; i++)
		add_names(argv[i]);
	make_table();
	ret = kevent_queue_init(&q, &mem.ring, 2 * JOBS, 0);
	kevent_set_timer(&ev, TICK, TICK, 0, 0, PROGRESS);
	if (!ret)
		ret = kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev);
	for (i = 0; !ret && i < THREADS; i++)
		ret = -pthread_create(&threads[i], NULL, serve, NULL);
	if (!ret)
		ret = loop();
	if (ret) {
		fprintf(stderr, "aio: %s\n", kevent_strerror(ret));
		return 1;
	}
	kevent_queue_close(&q);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (nr_names)
		free(names[--nr_names]);
	free(names);
	return bad != 0;
}
