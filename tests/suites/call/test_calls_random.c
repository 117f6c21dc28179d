// SPDX-License-Identifier: GPL-2.0
/*
 * Random chains next to the same calls made one by one
 *
 * Two children get the same descriptors and folders that look the same. They draw
 * the same chains. One of them runs each by kevent_call(), the other one runs it here,
 * entry by entry. Results of all entries and what came into memory are compared.
 */
#ifdef __LP64__	/* elsewhere the library makes all calls */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "helpers.h"

#define ENTRIES	16
#define ROUNDS	1500
#define BYTES	(1u << 17)	/* more than a file or a pipe ever has */
#define FD_MAX	40
#define NOT_MADE (-(1ll << 40))	/* a result that nobody has written */

struct outcome {
	int64_t		ret;
	uint64_t	memory;
	int64_t		result[ENTRIES];
	uint32_t	nr[ENTRIES];
	bool		made[ENTRIES];
};

/* What calls read and write; only what is the same in both children is compared. */
static char data[BYTES], own[BYTES];
static const char *const names[] = { "a", "b", "c", "d/e", "d", "." };
static struct kevent_call chain[ENTRIES];
static uint64_t seed;

static uint32_t below(uint32_t n)
{
	return next_random(&seed) % n;
}

static uint64_t any_fd(void)
{
	return below(20) ? below(12) : below(FD_MAX + 1) - 1ull;
}

static uint64_t any_memory(char *mem)
{
	static const uint64_t bad[] = { 0, 8, -8ull };

	if (!below(30))
		return bad[below(ARRAY_SIZE(bad))];
	return (uintptr_t)mem + below(64);
}

static uint64_t any_name(void)
{
	return below(30) ? (uintptr_t)names[below(ARRAY_SIZE(names))] : 0;
}

static void set(struct kevent_call *c, uint32_t nr, uint64_t a, uint64_t b,
		uint64_t d, uint64_t e)
{
	c->nr = nr;
	c->args[0] = a;
	c->args[1] = b;
	c->args[2] = d;
	c->args[3] = e;
}

static void draw_data(struct kevent_call *c)
{
	static const uint32_t nr[] = {
		SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_sendto,
		SYS_recvfrom,
	};
	uint32_t n = nr[below(ARRAY_SIZE(nr))];
	bool sock = n == SYS_sendto || n == SYS_recvfrom;

	set(c, n, any_fd(), any_memory(data), below(3000),
	    sock ? MSG_DONTWAIT | MSG_NOSIGNAL : below(5000));
}

static void draw_file(struct kevent_call *c)
{
	switch (below(7)) {
	case 0:
		return set(c, SYS_lseek, any_fd(), below(5000) - 9ull, below(4),
			   0);
	case 1:
		return set(c, SYS_ftruncate, any_fd(), below(60000), 0, 0);
	case 2:
		return set(c, SYS_fstat, any_fd(), any_memory(own), 0, 0);
	case 3:
		return set(c, SYS_newfstatat, AT_FDCWD, any_name(),
			   any_memory(own), 0);
	case 4:
		return set(c, SYS_getdents64, any_fd(), any_memory(own),
			   below(500), 0);
	case 5:
		return set(c, SYS_fsync, any_fd(), 0, 0, 0);
	default:
		return set(c, SYS_getppid, 0, 0, 0, 0);
	}
}

static void draw_name(struct kevent_call *c)
{
	switch (below(6)) {
	case 0:
		return set(c, SYS_mkdirat, AT_FDCWD, any_name(), 0700, 0);
	case 1:
		return set(c, SYS_unlinkat, AT_FDCWD, any_name(),
			   below(3) ? 0 : AT_REMOVEDIR, 0);
	case 2:
		return set(c, SYS_symlinkat, any_name(), AT_FDCWD, any_name(),
			   0);
	case 3:
		return set(c, SYS_readlinkat, AT_FDCWD, any_name(),
			   any_memory(data), 1 + below(9));
	default:
		return set(c, SYS_openat, AT_FDCWD, any_name(),
			   O_RDWR | O_NONBLOCK | (below(2) ? O_CREAT : 0),
			   0600);
	}
}

static void draw_descriptor(struct kevent_call *c)
{
	switch (below(4)) {
	case 0:
		return set(c, SYS_pipe2, any_memory(data), O_NONBLOCK, 0, 0);
	case 1:
		return set(c, SYS_socketpair, AF_UNIX,
			   SOCK_STREAM | SOCK_NONBLOCK, 0, any_memory(data));
	case 2:
		return set(c, SYS_close, any_fd(), 0, 0, 0);
	default:
		return set(c, SYS_openat, AT_FDCWD, any_name(),
			   O_RDWR | O_NONBLOCK | O_CREAT, 0600);
	}
}

/* A result of an entry in front becomes a descriptor or a length, and seldom another argument. */
static void draw_back(struct kevent_call *c, unsigned int at)
{
	unsigned int n = below(10) ? below(2) * 2 : below(6);

	/* An address must be the same in both. */
	if (n == 1 || n == 3)
		n = 4;
	c->flags |= (uint8_t)KEVENT_CALL_BACK(n);
	c->args[n] = below(40) ? 1 + below(at) : at + below(3);
}

static void draw_odd(struct kevent_call *c)
{
	static const uint32_t odd[] = {
		SYS_getuid, SYS_dup, SYS_exit_group, 485, 0x80000001, 100000,
	};

	set(c, odd[below(ARRAY_SIZE(odd))], 0, 0, 0, 0);
	if (below(2)) {
		c->nr = SYS_getppid;
		c->flags = 1u << below(8);
	}
}

static void draw_entry(unsigned int at)
{
	struct kevent_call *c = &chain[at];
	uint32_t kind = below(100);

	memset(c, 0, sizeof(*c));
	c->result = NOT_MADE;
	if (kind < 40)
		draw_data(c);
	else if (kind < 55)
		draw_file(c);
	else if (kind < 70)
		draw_name(c);
	else if (kind < 96)
		draw_descriptor(c);
	else
		draw_odd(c);
	while (at && !below(5))
		draw_back(c, at);
	c->on_error = below(8) ? 1 + below(3) : below(256);
	c->on_zero = below(8) ? 1 + below(2) : below(4);
	c->on_value = below(8) ? 1 : below(4);
}

static bool is_odd(uint32_t nr)
{
	return nr == SYS_getuid || nr == SYS_dup || nr == SYS_exit_group ||
	       nr >= 485;
}

/* Puts results of entries in front of @at into arguments. */
static int64_t follow(struct kevent_call *c, unsigned int at, bool *refused)
{
	unsigned int n;

	for (n = 0; n < 6; n++) {
		if (!(c->flags >> n & 1))
			continue;
		*refused = c->args[n] < 1 || c->args[n] > at;
		if (*refused)
			return -EINVAL;
		c->args[n] = (uint64_t)chain[at - c->args[n]].result;
		if ((int64_t)c->args[n] < 0)
			return (int64_t)c->args[n];
	}
	return 0;
}

static int64_t call_here(struct kevent_call *c, unsigned int at, bool *refused)
{
	const __u64 *a = c->args;
	int64_t err;
	long ret;

	*refused = c->flags && (is_odd(c->nr) || c->flags & 0xc0);
	if (*refused)
		return -EINVAL;
	err = follow(c, at, refused);
	if (err)
		return err;
	*refused = is_odd(c->nr);
	if (*refused)
		return -ENOSYS;
	ret = syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	return ret < 0 ? -errno : ret;
}

static int run_here(unsigned int nr)
{
	unsigned int i = 0, jump;
	bool refused;

	for (;;) {
		struct kevent_call c = chain[i];
		int64_t ret = call_here(&c, i, &refused);

		chain[i].result = ret;
		if (refused)
			return (int)(i | KEVENT_CALL_REFUSED);
		jump = ret < 0 ? c.on_error : ret ? c.on_value : c.on_zero;
		if (!jump || i + jump >= nr)
			return (int)i;
		while (--jump)
			chain[++i].result = -ECANCELED;
		i++;
	}
}

static uint64_t hash(const char *p, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	while (len--)
		h = (h ^ (unsigned char)*p++) * 0x100000001b3;
	return h;
}

struct job {
	struct outcome	*out;
	const char	*folder;
	bool		here;
	uint64_t	seed;
};

static int run_all(void *arg)
{
	const struct rlimit limit = { FD_MAX, FD_MAX };
	struct job *job = arg;
	unsigned int r, i, nr;

	CHILD_MUST(!mkdir(job->folder, 0700) && !chdir(job->folder));
	signal(SIGPIPE, SIG_IGN);
	CHILD_MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	memset(data, 'x', sizeof(data));
	seed = job->seed;
	close_range(0, ~0u, 0);
	for (r = 0; r < ROUNDS; r++) {
		struct outcome *o = &job->out[r];

		nr = 1 + below(ENTRIES);
		for (i = 0; i < nr; i++)
			draw_entry(i);
		for (i = 0; i < nr; i++)
			o->nr[i] = chain[i].nr;
		o->ret = job->here ? run_here(nr)
				   : kevent_call(-1, chain, nr, 0, 0);
		for (i = 0; i < nr; i++) {
			o->result[i] = chain[i].result;
			o->made[i] = o->result[i] != NOT_MADE;
		}
		o->memory = hash(data, 4096);
	}
	return 0;
}

static bool same(unsigned int round, const struct outcome *a,
		 const struct outcome *b)
{
	unsigned int i;

	for (i = 0; i < ENTRIES; i++) {
		if (a->result[i] == b->result[i])
			continue;
		note("round %u, entry %u, call %#x: %lld, one by one %lld",
		     round, i, a->nr[i], (long long)a->result[i],
		     (long long)b->result[i]);
	}
	return CHECK_EQ(a->ret, b->ret) & CHECK_EQ(a->memory, b->memory) &
	       CHECK(!memcmp(a->result, b->result, sizeof(a->result)));
}

/* If most calls failed, the chains would show little. */
static void count_good(const struct outcome *o)
{
	unsigned int r, i, good = 0, bad = 0;

	for (r = 0; r < ROUNDS; r++) {
		for (i = 0; i < ENTRIES; i++) {
			bad += o[r].made[i] && o[r].result[i] < 0;
			good += o[r].made[i] && o[r].result[i] >= 0;
		}
	}
	CHECK(good > ROUNDS / 2);
	note("%u results of calls, %u errors", good, bad);
}

static void random_chains_do_as_calls_one_by_one(void)
{
	struct outcome *out = mmap(NULL, 2 * ROUNDS * sizeof(*out),
				   PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char top[] = "/tmp/calls-XXXXXX";
	const uint64_t start = test_seed();
	struct job jobs[] = {
		{ .out = out, .folder = "kernel", .seed = start },
		{ .out = out + ROUNDS, .folder = "here", .here = true,
		  .seed = start },
	};
	unsigned int i;

	MUST(out != MAP_FAILED && mkdtemp(top) && !chdir(top));
	for (i = 0; i < ARRAY_SIZE(jobs); i++)
		MUST_EQ(join_child(start_child(run_all, &jobs[i]),
				   4 * PATIENCE_MS), 0);
	for (i = 0; i < ROUNDS; i++) {
		if (!same(i, &out[i], &out[ROUNDS + i]))
			break;
	}
	count_good(out);
}

static const struct test_case cases[] = {
	TEST_LIMIT(random_chains_do_as_calls_one_by_one, 60),
	{ }
};

const struct test_suite calls_random_suite = {
	.name = "calls_random",
	.cases = cases,
};

#endif
