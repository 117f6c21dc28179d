// SPDX-License-Identifier: GPL-2.0
/*
 * Open, read and close many small files: by calls one after the other, by chains of calls
 * that are submitted to a queue, and by linked requests of io_uring
 *
 * usage: files calls|chains|uring FOLDER NUMBER DEPTH
 *
 * FOLDER has the files 0 to NUMBER - 1, which are read in an order that is random, and
 * always the same. Chains and requests are DEPTH at once; as many threads serve chains,
 * and at most one for each CPU runs. Prints how many nanoseconds it took.
 */
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <libkevent.h>
#include <liburing.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define SIZE	600		/* of a file */
#define MOST	64		/* files at once */

static const char *folder;
static unsigned int number, depth, *order;
static char buf[MOST][4096], path[MOST][256];

static void shuffle(void)
{
	unsigned int i, j, other;
	uint64_t seed = 1;

	order = calloc(number, sizeof(*order));
	if (!order)
		error(1, ENOMEM, "%u files", number);
	for (i = 0; i < number; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		j = (unsigned int)(seed >> 33) % (i + 1);
		other = order[j];
		order[j] = i;
		order[i] = other;
	}
}

static const char *name(unsigned int slot, unsigned int file)
{
	snprintf(path[slot], sizeof(path[slot]), "%s/%u", folder, order[file]);
	return path[slot];
}

static void by_calls(void)
{
	unsigned int i;
	ssize_t got;
	int fd;

	for (i = 0; i < number; i++) {
		fd = open(name(0, i), O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			error(1, errno, "%s", path[0]);
		got = read(fd, buf[0], sizeof(buf[0]));
		if (got != SIZE)
			error(1, got < 0 ? errno : 0, "%s: read", path[0]);
		close(fd);
	}
}

/* Chains */

struct job {
	struct kevent_call	calls[3], *open, *read;
	struct kevent_chain	chain;
};

static struct kevent_queue q;
static struct job jobs[MOST];

static void build(struct job *job, const char *file, char *to)
{
	struct kevent_chain *c = &job->chain;

	kevent_chain_init(c, job->calls, 3);
	job->open = kevent_chain_call(c, SYS_openat, AT_FDCWD, file,
				      O_RDONLY | O_CLOEXEC);
	job->read = kevent_chain_call(c, SYS_read, 0, to, sizeof(buf[0]));
	kevent_chain_pass(c, job->open, 0);
	kevent_chain_call(c, SYS_close, 0);
	kevent_chain_pass(c, job->open, 0);
	if (kevent_chain_end(c))
		error(1, 0, "no chain");
}

static void check(const struct job *job, int ret)
{
	if (ret != 2 || job->read->result != SIZE)
		error(1, 0, "a chain ended at %d: open %lld, read %lld", ret,
		      (long long)job->open->result,
		      (long long)job->read->result);
}

/* Submit one file after the other until one is left to a thread; false: no more files. */
static bool submit(unsigned int slot, unsigned int *next)
{
	struct job *job = &jobs[slot];
	int ret;

	while (*next < number) {
		build(job, name(slot, (*next)++), buf[slot]);
		ret = kevent_chain_submit(q.fd, &job->chain, slot);
		if (ret == (int)KEVENT_CALL_SUBMITTED)
			return true;
		check(job, ret);
	}
	return false;
}

static void *serve(void *arg)
{
	unsigned int limit = (unsigned int)get_nprocs();

	while (kevent_chain_serve(q.fd, limit, NULL) >= 0)
		;
	return arg;
}

static void by_chains(void)
{
	unsigned int i, next = 0, left = 0;
	struct ukevent ev;
	int ret;

	for (i = 0; i < depth; i++)
		left += submit(i, &next);
	while (left) {
		ret = kevent_queue_get(&q, &ev, 1, NULL);
		if (ret < 0)
			error(1, -ret, "kevent_queue_get");
		if (!ret)
			continue;
		left--;
		i = (unsigned int)ev.ptr;
		check(&jobs[i], kevent_chain_finish(&jobs[i].chain, &ev));
		left += submit(i, &next);
	}
}

static void start_threads(void)
{
	static KEVENT_RING_STORAGE(MOST) mem;
	pthread_t thread;
	unsigned int i;
	int ret = kevent_queue_init(&q, &mem.ring, MOST, 0);

	if (ret)
		error(1, -ret, "kevent_queue_init");
	for (i = 0; i < depth; i++)
		if (pthread_create(&thread, NULL, serve, NULL))
			error(1, 0, "no threads");
}

/* io_uring */

static struct io_uring ring;

/* Linked, and without a descriptor: three requests for a file */
static void request(unsigned int slot, unsigned int file)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_openat_direct(sqe, AT_FDCWD, name(slot, file), O_RDONLY,
				    0, slot);
	io_uring_sqe_set_flags(sqe, IOSQE_IO_LINK);
	sqe->user_data = MOST;
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read(sqe, (int)slot, buf[slot], sizeof(buf[slot]), 0);
	/* A short read breaks other links. */
	io_uring_sqe_set_flags(sqe, IOSQE_IO_HARDLINK | IOSQE_FIXED_FILE);
	sqe->user_data = 2 * MOST;
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_close_direct(sqe, slot);
	sqe->user_data = slot;
}

/* Returns the slot of a file that has ended, or MOST. */
static unsigned int ended(const struct io_uring_cqe *cqe)
{
	if (cqe->res < 0)
		error(1, -cqe->res, "a request");
	if (cqe->user_data == 2 * MOST && cqe->res != SIZE)
		error(1, 0, "read %d", cqe->res);
	return cqe->user_data < MOST ? (unsigned int)cqe->user_data : MOST;
}

static void by_requests(void)
{
	unsigned int next, head, nr, slot, left = number;
	struct io_uring_cqe *cqe;

	for (next = 0; next < depth && next < number; next++)
		request(next, next);
	while (left) {
		if (io_uring_submit_and_wait(&ring, 1) < 0)
			error(1, 0, "io_uring_submit_and_wait");
		nr = 0;
		io_uring_for_each_cqe(&ring, head, cqe) {
			nr++;
			slot = ended(cqe);
			if (slot == MOST)
				continue;
			left--;
			if (next < number)
				request(slot, next++);
		}
		io_uring_cq_advance(&ring, nr);
	}
}

static void open_ring(void)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
	};

	if (io_uring_queue_init_params(4 * MOST, &ring, &params) ||
	    io_uring_register_files_sparse(&ring, MOST))
		error(1, 0, "no io_uring");
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static const struct way {
	const char	*name;
	void		(*prepare)(void);
	void		(*read)(void);
} ways[] = {
	{ "calls", NULL, by_calls },
	{ "chains", start_threads, by_chains },
	{ "uring", open_ring, by_requests },
};

int main(int argc, char **argv)
{
	const struct way *w = ways;
	uint64_t start;

	if (argc != 5)
		error(2, 0, "usage: files calls|chains|uring FOLDER NUMBER DEPTH");
	while (strcmp(w->name, argv[1]))
		if (++w == ways + sizeof(ways) / sizeof(ways[0]))
			error(2, 0, "%s: no such way", argv[1]);
	folder = argv[2];
	number = (unsigned int)strtoul(argv[3], NULL, 10);
	depth = (unsigned int)strtoul(argv[4], NULL, 10);
	if (!number || !depth || depth > MOST)
		error(2, 0, "1 or more files, 1 to %u at once", MOST);
	shuffle();
	if (w->prepare)
		w->prepare();
	start = now();
	w->read();
	printf("%llu\n", (unsigned long long)(now() - start));
	return 0;
}
