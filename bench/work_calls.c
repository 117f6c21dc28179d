// SPDX-License-Identifier: GPL-2.0
/*
 * calls: what a system call costs in a chain, and on its own
 *
 * limit makes ordinary calls. kevent has a chain of so many calls as a batch has, which
 * it keeps, and gives it new arguments where they differ. io_uring has requests for some.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <libkevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define SIZE	600		/* of a file */
#define MOST	64		/* files, or calls, in a batch */
#define ENTRIES	(3 * MOST)

/* Chains that are submitted end in the caller, since all is in memory. */
enum kind { PLAIN, BOUND, ASYNC };

/**
 * struct work - a source
 * @name: its name
 * @call: make it once, for the file with the number
 * @add: add it to the chain
 * @file: give it another file: the entry that @add returned
 * @request: ask io_uring for it, in place @i of a batch; NULL: it has none
 * @kind: of its chains
 */
struct work {
	const char	*name;
	long (*call)(unsigned int file);
	struct kevent_call *(*add)(struct kevent_chain *c, unsigned int i);
	void (*file)(struct kevent_call *call, unsigned int file);
	void (*request)(struct io_uring *ring, unsigned int i,
			unsigned int file);
	enum kind kind;
};

static char folder[32], (*paths)[48];
static unsigned int nr_files;
static struct stat found[MOST];
static struct statx foundx[MOST];
static char data[MOST][4096];
static int null_fd, file_fd, queue_fd;

/* Calls without a file of their own */

static long call_getppid(unsigned int file)
{
	(void)file;
	return syscall(SYS_getppid);
}

static struct kevent_call *add_getppid(struct kevent_chain *c, unsigned int i)
{
	(void)i;
	return kevent_chain_call(c, SYS_getppid);
}

static long call_lseek(unsigned int file)
{
	(void)file;
	return syscall(SYS_lseek, file_fd, 0l, SEEK_SET);
}

static struct kevent_call *add_lseek(struct kevent_chain *c, unsigned int i)
{
	(void)i;
	return kevent_chain_call(c, SYS_lseek, file_fd, 0, SEEK_SET);
}

static long call_fstat(unsigned int file)
{
	(void)file;
	return syscall(SYS_fstat, file_fd, &found[0]);
}

static struct kevent_call *add_fstat(struct kevent_chain *c, unsigned int i)
{
	return kevent_chain_call(c, SYS_fstat, file_fd, &found[i]);
}

static long call_read(unsigned int file)
{
	(void)file;
	return syscall(SYS_read, null_fd, data[0], sizeof(data[0]));
}

static struct kevent_call *add_read(struct kevent_chain *c, unsigned int i)
{
	return kevent_chain_call(c, SYS_read, null_fd, data[i],
				 sizeof(data[i]));
}

static void request_read(struct io_uring *ring, unsigned int i,
			 unsigned int file)
{
	(void)file;
	io_uring_prep_read(io_uring_get_sqe(ring), null_fd, data[i],
			   sizeof(data[i]), 0);
}

/* The same, bound to slot @i of the queue by the first of the runs */
static struct kevent_call *add_bound(struct kevent_chain *c, unsigned int i)
{
	static struct kevent_call reads[MOST];
	int slot;

	reads[i] = (struct kevent_call){
		.nr = SYS_read, .args = { (__u64)null_fd, KEVENT_ARG(data[i]),
					  sizeof(data[i]) },
	};
	slot = kevent_bind(queue_fd, i, &reads[i]);
	if (slot < 0 && slot != -EEXIST)
		bench_die("bound: %s", kevent_strerror(slot));
	return kevent_chain_bound(c, (int)i, &reads[i]);
}

/* stat() of one file after the other */

static long call_statx(unsigned int file)
{
	return syscall(SYS_statx, AT_FDCWD, paths[file], 0, STATX_BASIC_STATS,
		       &foundx[0]);
}

static struct kevent_call *add_statx(struct kevent_chain *c, unsigned int i)
{
	return kevent_chain_call(c, SYS_statx, AT_FDCWD, paths[i], 0,
				 STATX_BASIC_STATS, &foundx[i]);
}

static void file_of_name(struct kevent_call *call, unsigned int file)
{
	call->args[1] = KEVENT_ARG(paths[file]);
}

static void request_statx(struct io_uring *ring, unsigned int i,
			  unsigned int file)
{
	io_uring_prep_statx(io_uring_get_sqe(ring), AT_FDCWD, paths[file], 0,
			    STATX_BASIC_STATS, &foundx[i]);
}

/* Open a small file, read it, close it */

static long call_open(unsigned int file)
{
	long fd = syscall(SYS_openat, AT_FDCWD, paths[file], O_RDONLY);

	if (fd < 0 || syscall(SYS_read, fd, data[0], sizeof(data[0])) != SIZE)
		return -1;
	return syscall(SYS_close, fd);
}

static struct kevent_call *add_open(struct kevent_chain *c, unsigned int i)
{
	struct kevent_call *file;

	file = kevent_chain_call(c, SYS_openat, AT_FDCWD, paths[i], O_RDONLY);
	kevent_chain_call(c, SYS_read, 0, data[i], sizeof(data[i]));
	kevent_chain_pass(c, file, 0);
	kevent_chain_call(c, SYS_close, 0);
	kevent_chain_pass(c, file, 0);
	return file;
}

/* Linked, and without a descriptor */
static void request_open(struct io_uring *ring, unsigned int i,
			 unsigned int file)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_openat_direct(sqe, AT_FDCWD, paths[file], O_RDONLY, 0, i);
	io_uring_sqe_set_flags(sqe, IOSQE_IO_LINK);
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_read(sqe, (int)i, data[i], sizeof(data[i]), 0);
	/* A short read breaks other links. */
	io_uring_sqe_set_flags(sqe, IOSQE_IO_HARDLINK | IOSQE_FIXED_FILE);
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_close_direct(sqe, i);
}

static const struct work works[] = {
	{ "getppid", call_getppid, add_getppid, NULL, NULL, PLAIN },
	{ "lseek", call_lseek, add_lseek, NULL, NULL, PLAIN },
	{ "fstat", call_fstat, add_fstat, NULL, NULL, PLAIN },
	{ "read", call_read, add_read, NULL, request_read, PLAIN },
	{ "bound", call_read, add_bound, NULL, request_read, BOUND },
	{ "stat", call_statx, add_statx, file_of_name, request_statx, PLAIN },
	{ "open", call_open, add_open, file_of_name, request_open, PLAIN },
	{ "async", call_open, add_open, file_of_name, request_open, ASYNC },
};

static const struct work *work_of(const struct bench_point *p)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(works); i++)
		if (!strcmp(works[i].name, p->source))
			return &works[i];
	bench_die("calls has no source %s", p->source);
}

/* Files */

static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, SIZE) != SIZE)
		bench_die("%s: %s", path, strerror(errno));
	return fd;
}

static void calls_setup(const struct bench_point *p)
{
	unsigned int i;

	if (p->batch > MOST || p->batch > p->watches)
		bench_die("calls: a batch of %u files, of %u, and at most %u",
			  p->batch, p->watches, MOST);
	nr_files = p->watches / p->batch * p->batch;
	paths = bench_alloc(nr_files, sizeof(*paths));
	strcpy(folder, "/tmp/kevent-bench.XXXXXX");
	if (!mkdtemp(folder))
		bench_die("%s: %s", folder, strerror(errno));
	for (i = 0; i < nr_files; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%u", folder, i);
		close(make_file(paths[i]));
	}
	file_fd = open(paths[0], O_RDONLY | O_CLOEXEC);
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	queue_fd = kevent_init(NULL, 0, 0);
	if (file_fd < 0 || null_fd < 0)
		bench_die("/dev/null: %s", strerror(errno));
}

static void calls_teardown(const struct bench_point *p)
{
	unsigned int i;

	(void)p;
	close(null_fd);
	close(file_fd);
	close(queue_fd);
	for (i = 0; i < nr_files; i++)
		unlink(paths[i]);
	if (rmdir(folder))
		bench_die("%s: %s", folder, strerror(errno));
	free(paths);
}

/* Contestants */

static double by_calls(const struct work *w, unsigned int events)
{
	uint64_t start = bench_now();
	unsigned int i, file = 0;

	for (i = 0; i < events; i++) {
		if (w->call(file) < 0)
			bench_die("%s: %s", w->name, strerror(errno));
		if (++file == nr_files)
			file = 0;
	}
	return (double)(bench_now() - start) / events;
}

static void run_chain(const struct work *w, const struct kevent_chain *c)
{
	int ret = w->kind == ASYNC ? kevent_chain_submit(queue_fd, c, 0) :
		  kevent_chain_run_in(w->kind == BOUND ? queue_fd : -1, c);

	if (ret != (int)c->nr - 1)
		bench_die("%s: a chain of %u ends at %d: %lld", w->name, c->nr,
			  ret, ret < 0 ? 0ll : (long long)
			  c->calls[ret & (MOST - 1)].result);
}

static double by_chains(const struct work *w, unsigned int events,
			unsigned int batch)
{
	static struct kevent_call calls[ENTRIES], *first[MOST];
	unsigned int i, n, file = 0;
	struct kevent_chain c;
	uint64_t start;

	kevent_chain_init(&c, calls, ENTRIES);
	for (i = 0; i < batch; i++)
		first[i] = w->add(&c, i);
	if (kevent_chain_end(&c))
		bench_die("%s: no chain", w->name);
	start = bench_now();
	for (n = 0; n < events; n += batch) {
		for (i = 0; w->file && i < batch; i++)
			w->file(first[i], file + i);
		run_chain(w, &c);
		file = file + batch == nr_files ? 0 : file + batch;
	}
	return (double)(bench_now() - start) / n;
}

static unsigned int reap(const struct work *w, struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned int head, nr = 0;

	io_uring_for_each_cqe(ring, head, cqe) {
		if (cqe->res < 0)
			bench_die("%s: %s", w->name, strerror(-cqe->res));
		nr++;
	}
	io_uring_cq_advance(ring, nr);
	return nr;
}

static double by_requests(const struct work *w, unsigned int events,
			  unsigned int batch)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
	};
	unsigned int i, n, want, file = 0;
	struct io_uring ring;
	uint64_t start;

	if (io_uring_queue_init_params(4 * MOST, &ring, &params) ||
	    io_uring_register_files_sparse(&ring, MOST) ||
	    io_uring_register_ring_fd(&ring) < 0)
		bench_die("no io_uring");
	start = bench_now();
	for (n = 0; n < events; n += batch) {
		for (i = 0; i < batch; i++)
			w->request(&ring, i, file + i);
		want = io_uring_sq_ready(&ring);
		while (want) {
			if (io_uring_submit_and_wait(&ring, want) < 0)
				bench_die("io_uring_submit_and_wait");
			want -= reap(w, &ring);
		}
		file = file + batch == nr_files ? 0 : file + batch;
	}
	io_uring_queue_exit(&ring);
	return (double)(bench_now() - start) / n;
}

static bool is(const struct bench_contestant *c, const char *backend,
	       const char *mode)
{
	return !strcmp(c->backend->name, backend) && !strcmp(c->mode, mode);
}

static bool calls_accepts(const struct bench_contestant *c,
			  const struct bench_point *p)
{
	if (is(c, "uring", "defer"))
		return work_of(p)->request;
	return c->backend->blind || is(c, "kevent", "et");
}

static void calls_measure(const struct bench_point *p,
			  const struct bench_contestant *c, double *value)
{
	const struct work *w = work_of(p);

	if (c->backend->blind)
		value[0] = by_calls(w, p->events);
	else if (is(c, "kevent", "et"))
		value[0] = by_chains(w, p->events, p->batch);
	else
		value[0] = by_requests(w, p->events, p->batch);
}

static const struct bench_metric metrics[] = {
	{ .name = "cost", .unit = "ns/call" },
};

const struct bench_workload work_calls = {
	.name		= "calls",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("getppid", "lseek", "fstat", "read",
				      "bound", "stat", "open", "async"),
	.batches	= BENCH_NUMBERS(1, 16, 50),
	.watches	= BENCH_NUMBERS(1000),
	.threads	= BENCH_NUMBERS(1),
	.events		= 8000,
	.runs		= 3,
	.accepts	= calls_accepts,
	.setup		= calls_setup,
	.measure	= calls_measure,
	.teardown	= calls_teardown,
};
