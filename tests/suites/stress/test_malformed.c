// SPDX-License-Identifier: GPL-2.0
/*
 * Calls with arguments at random: each fails with an errno of its manual page or does
 * what it says, and nothing is left behind
 *
 * Arguments are valid, at a limit, or nonsense, so that calls get to each check. No call
 * can sleep. KEVENT_CALLS in the environment makes that many calls instead of those of
 * the time of a storm.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "helpers.h"

#define THREADS		2
#define QUEUES		4
#define FDS		12
#define CALLS		1000	/* between two looks at the clock */

enum call { INIT, CTL, GET_EVENTS, WAIT, COMMIT, CALL, NR_CALLS };

#define ENTRIES		6	/* of a chain, at most */
#define CHANGES		5	/* of a wait, at most; others are what was there before */

/*
 * A third page cannot be accessed, and a second one cannot be written. The first one may
 * have rings, in which other threads store, and timers that fire. So entries have three
 * such pages of their own, and chains other memory, of which those that serving threads
 * may run have another part.
 */
struct caller {
	struct actor	actor;
	uint64_t	rnd;
	uint64_t	start;
	uint64_t	calls;
	uint64_t	most;
	uint64_t	refused;
	char		*pages;
	char		*entries;
	struct kevent_call chain[ENTRIES];
	struct kevent_call async[ENTRIES];
	bool		submitted;
	int		fd[FDS];
	int		queue[QUEUES];
	char		wrong[160];
};

/* What the manual pages say, in their order; errnos of entries are apart. */
static const int call_errnos[NR_CALLS][12] = {
	[INIT]		= { EFAULT, EINVAL, ENOMEM },
	[CTL]		= { EBADF, EFAULT, EINVAL, ENOMEM, ENOSPC, EPERM },
	[GET_EVENTS]	= { EBADF, EFAULT, EINVAL },
	[WAIT]		= { E2BIG, EBADF, EFAULT, EINVAL, EXDEV },
	[COMMIT]	= { EBADF, EFAULT, EINVAL, EXDEV },
	[CALL]		= { EBADF, EFAULT, EINVAL, ENOSYS, EOPNOTSUPP, EPERM },
};

static const int entry_errnos[] = {
	EACCES, EAGAIN, EALREADY, EBADF, EBUSY, EEXIST, EFAULT, EINVAL, ELOOP, ENOENT,
	ENOMEM, ENOSPC, ENOSYS, ENOTSOCK, EOPNOTSUPP, EPERM, ESRCH,
};

/* Why the call of an entry of a chain was not made */
static const int refusals[] = {
	EEXIST, EINVAL, ENOMEM, ENOSPC, ENOSYS, EOPNOTSUPP, EXDEV,
};

static const char *const call_names[NR_CALLS] = {
	"kevent_init", "kevent_ctl", "kevent_get_events", "kevent_wait",
	"kevent_commit", "kevent_call",
};

static bool contains(const int *list, size_t nr, int err)
{
	while (nr--)
		if (list[nr] == err)
			return true;
	return false;
}

/* A call has about 50 of these, which must not cost more than the call. */
static inline uint32_t anything(struct caller *c)
{
	c->rnd = c->rnd * 6364136223846793005ull + 1442695040888963407ull;
	return c->rnd >> 32;
}

static inline uint32_t any(struct caller *c, uint32_t nr)
{
	return ((uint64_t)anything(c) * nr) >> 32;
}

/* A few bits, or a limit, or anything */
static uint32_t any_number(struct caller *c)
{
	switch (any(c, 6)) {
	case 0:
		return 0;
	case 1:
		return 1U << any(c, 32);
	case 2:
		return (1U << any(c, 32)) - 1;
	case 3:
		return anything(c);
	default:
		return any(c, 16);
	}
}

static int any_fd(struct caller *c)
{
	switch (any(c, 16)) {
	case 0:
		return -1;
	case 1:
		return (int)any_number(c) | 0x10000;
	case 2 ... 4:
		return c->queue[any(c, QUEUES)];
	default:
		return c->fd[any(c, FDS)];
	}
}

static int any_queue(struct caller *c)
{
	return any(c, 16) ? c->queue[any(c, QUEUES)] : any_fd(c);
}

/* An address for @size bytes, which are set up by the caller if it is the page */
static uintptr_t any_address(struct caller *c, size_t size)
{
	uintptr_t page = (uintptr_t)c->pages;

	switch (any(c, 16)) {
	case 0:
		return 0;
	case 1:
		return page + PAGE;		/* read-only */
	case 2:
		return page + 2 * PAGE;		/* none */
	case 3:
		return page + 2 * PAGE - 8 * any(c, 8);
	case 4:
		return page + any(c, 64);	/* any alignment */
	case 5:
		return ~(uintptr_t)0 - any(c, 4 * PAGE);
	default:
		return size <= PAGE ? page : page + 2 * PAGE;
	}
}

/* Entries */

static uint64_t any_id(struct caller *c, uint32_t type)
{
	switch (type) {
	case KEVENT_TIMER:
		return any(c, 4) ? any_number(c) + 1000000ULL :
		       (uint64_t)any_number(c) << any(c, 33);
	case KEVENT_SIGNAL:
		return any(c, 66) | (any(c, 2) ? KEVENT_SIGNAL_NOMASK : 0);
	case KEVENT_PROC:
		return any(c, 3) ? (uint32_t)any_fd(c) : any(c, 3000);
	case KEVENT_FUTEX:
		return any_address(c, 4);
	case KEVENT_USER:
	case KEVENT_POSIX_TIMER:
		return any(c, 8);
	default:
		return (uint32_t)any_fd(c) |
		       (any(c, 32) ? 0 : (uint64_t)any_number(c) << 32);
	}
}

static void make_entry(struct caller *c, struct ukevent *uk)
{
	uint32_t type = any(c, 20) ? any(c, 13) : any_number(c);

	memset(uk, 0, sizeof(*uk));
	uk->type = type;
	uk->id.raw_u64 = any_id(c, type);
	uk->event = any(c, 2) ? 1 : any(c, 2) ? 1U << any(c, 8) : any_number(c);
	uk->req_flags = any(c, 3) ? 1U << any(c, 10) : any(c, 0x400);
	if (!any(c, 20))
		uk->req_flags = any_number(c);
	if (!any(c, 4))
		uk->ret_data[any(c, 2)] = any_number(c);
	uk->ret_flags = any(c, 4);
	uk->ptr = any_number(c);
}

static uint32_t make_entries(struct caller *c, char *at)
{
	uint32_t i, nr = any(c, 64) ? any(c, 5) : any(c, 80);

	for (i = 0; i < nr; i++)
		make_entry(c, (struct ukevent *)at + i);
	return any(c, 32) ? nr : any_number(c);
}

/* Calls. None of them may sleep: a timeout is zero, past, or wrong. */

static uintptr_t any_timeout(struct caller *c)
{
	/* The kernel's structure, in which both members have 64 bits */
	int64_t *ts = (int64_t *)(c->pages + PAGE - 64);

	ts[0] = any(c, 8) ? 0 : -1;
	ts[1] = any(c, 8) ? 0 : 1000000000;
	return any(c, 16) ? (uintptr_t)ts : (uintptr_t)c->pages + 2 * PAGE;
}

static long init_at_random(struct caller *c)
{
	uint32_t size = any(c, 4) ? 1U << any(c, 6) : any_number(c);
	uint32_t flags = any(c, 4) ? 0 : any_number(c);
	unsigned int i = any(c, QUEUES);
	bool ring = any(c, 3);
	long fd;

	memset(c->pages, 0, sizeof(struct kevent_ring));
	fd = raw_kevent(__NR_kevent_init,
			ring ? any_address(c, KEVENT_RING_BYTES((size_t)size)) : 0,
			ring ? size : any(c, 16) ? 0 : size, flags);
	if (fd >= 0) {
		close(c->queue[i]);
		c->queue[i] = (int)fd;
	}
	return fd;
}

static void check_entries(struct caller *c, uint32_t cmd, uint32_t nr)
{
	struct ukevent *uk = (struct ukevent *)c->entries;
	uint32_t i, most = 2 * PAGE / sizeof(*uk);
	int err;

	/* The kernel stops where memory ends. */
	for (i = 0; i < nr && i < most && !*c->wrong; i++) {
		err = -(int)uk[i].ret_data[1];
		if (uk[i].ret_flags & KEVENT_RET_BROKEN && err &&
		    !contains(entry_errnos, ARRAY_SIZE(entry_errnos), err))
			snprintf(c->wrong, sizeof(c->wrong),
				 "command %u of type %u id %#llx event %#x flags %#x: errno %d",
				 cmd, uk[i].type,
				 (unsigned long long)uk[i].id.raw_u64,
				 uk[i].event, uk[i].req_flags, err);
	}
}

static long ctl_at_random(struct caller *c)
{
	uint32_t cmd = any(c, 20) ? any(c, 5) : any_number(c);
	uint32_t nr = make_entries(c, c->entries);
	uintptr_t at = any_address(c, nr * sizeof(struct ukevent));
	long ret;

	/* At odd addresses, or as a ring */
	memcpy(c->pages, c->entries, 4 * sizeof(struct ukevent));
	if (at == (uintptr_t)c->pages && cmd <= KEVENT_CTL_MODIFY)
		at = (uintptr_t)c->entries;
	if (cmd == KEVENT_CTL_ATTACH && any(c, 2))
		nr = 1U << any(c, 6);
	ret = raw_kevent(__NR_kevent_ctl, any_queue(c), cmd, nr, at);
	if (ret > 0 && cmd <= KEVENT_CTL_MODIFY && at == (uintptr_t)c->entries)
		check_entries(c, cmd, cmd == KEVENT_CTL_ADD ?
			      (uint32_t)ret : nr);
	return ret;
}

static long get_events_at_random(struct caller *c)
{
	uint32_t max = any(c, 4) ? any(c, 80) : any_number(c);

	return raw_kevent(__NR_kevent_get_events, any_queue(c),
			  any(c, 4) ? 0 : any_number(c), max, any_timeout(c),
			  any_address(c, max * sizeof(struct ukevent)),
			  any(c, 4) ? 0 : any_number(c));
}

static void make_wait_arg(struct caller *c, struct kevent_wait_arg *arg)
{
	struct kevent_change *change = (void *)(c->pages + PAGE / 2);
	uint32_t i;

	memset(arg, 0, sizeof(*arg) + 16);
	arg->size = any(c, 4) ? sizeof(*arg) : any_number(c);
	arg->min_nr = any(c, 3);
	if (!any(c, 4))
		arg->min_wait_ns = any_number(c);
	if (!any(c, 8))
		arg->clockid = any(c, 14);
	if (!any(c, 16))
		((uint32_t *)arg)[any(c, sizeof(*arg) / 4 + 2)] = any_number(c);
	if (any(c, 2))
		return;
	arg->nr_changes = any(c, 16) ? any(c, CHANGES) : any_number(c);
	arg->changes = any(c, 8) ? (uintptr_t)change : any_address(c, 64);
	for (i = 0; i < arg->nr_changes && i < CHANGES; i++) {
		make_entry(c, &change[i].uk);
		change[i].cmd = any(c, 5);
		change[i].result = (int)any(c, 2);
	}
}

static long wait_at_random(struct caller *c)
{
	uint32_t flags = any(c, 3) ? any(c, 4) : any_number(c);

	make_wait_arg(c, (struct kevent_wait_arg *)c->pages);
	return raw_kevent(__NR_kevent_wait, any_queue(c), any(c, 20) ? any(c, 80) :
			  any_number(c), any_number(c), any_timeout(c), flags,
			  any_address(c, sizeof(struct kevent_wait_arg)));
}

static long commit_at_random(struct caller *c)
{
	return raw_kevent(__NR_kevent_commit, any_queue(c), any_number(c),
			  any(c, 4) ? 0 : any_number(c));
}

/*
 * Calls that do no harm whatever their arguments are, and calls that are refused. They
 * write to the pages, so an entry stays what it is.
 */
static void make_call(struct caller *c, struct kevent_call *call)
{
	static const uint32_t nrs[] = {
		SYS_getppid, SYS_lseek, SYS_fstat, SYS_read, SYS_clock_gettime,
		KEVENT_CALL_BOUND, SYS_exit, SYS_execve, __NR_kevent_call, 0x40000000,
	};
	uint64_t fd = (uint32_t)any_fd(c);
	unsigned int i;

	memset(call, 0, sizeof(*call));
	call->nr = nrs[any(c, ARRAY_SIZE(nrs))];
	call->on_error = any(c, 4);
	call->on_zero = any(c, 4);
	call->on_value = any(c, 4);
	call->flags = any(c, 3) ? 0 : any(c, 16) ? 1u << any(c, 6) : any_number(c);
	call->args[0] = call->nr == KEVENT_CALL_BOUND ? any_number(c) : fd;
	call->args[1] = any_address(c, 256) + PAGE / 2;
	call->args[2] = any(c, 12);
	for (i = 0; i < 6; i++)
		if (call->flags >> i & 1 && any(c, 8))
			call->args[i] = any(c, ENTRIES + 1);
}

static void check_chain(struct caller *c, const struct kevent_call *chain,
			long ret)
{
	long at = ret & ~(long)KEVENT_CALL_REFUSED;
	long long why = at < ENTRIES ? chain[at].result : 0;

	if (why < 0 && contains(refusals, ARRAY_SIZE(refusals), (int)-why))
		return;
	snprintf(c->wrong, sizeof(c->wrong), "chain: %#lx, result %lld", ret,
		 why);
}

/* The result of an entry says nothing if a serving thread may have run it since. */
static void look_at_chain(struct caller *c, const struct kevent_call *chain,
			  long ret)
{
	if (ret == KEVENT_CALL_SUBMITTED)
		c->submitted = true;
	else if (ret & KEVENT_CALL_REFUSED &&
		 !(chain == c->async && c->submitted))
		check_chain(c, chain, ret);
}

static long chain_at_random(struct caller *c)
{
	uint32_t flags = any(c, 4) ? 0 : any_number(c);
	uint32_t i, nr = 1 + any(c, ENTRIES);
	struct kevent_call *chain = flags ? c->async : c->chain;
	uint64_t cookie = flags ? any_number(c) : 0;
	uintptr_t page = (uintptr_t)c->pages;
	uintptr_t at = any_address(c, nr * sizeof(struct kevent_call));
	long ret;

	/* In the middle of an entry there may be the number of any call. */
	if (at - page < PAGE && at % 8 == 0)
		at = (uintptr_t)chain;
	for (i = 0; i < nr; i++)
		make_call(c, &chain[i]);
	ret = raw_kevent(__NR_kevent_call, any(c, 2) ? -1 : any_queue(c), at,
			 any(c, 32) ? nr : 0, flags,
			 any(c, 32) ? cookie : any_number(c));
	if (ret >= 0 && at == (uintptr_t)chain)
		look_at_chain(c, chain, ret);
	return ret;
}

static long call_at_random(struct caller *c, enum call call)
{
	switch (call) {
	case INIT:
		return init_at_random(c);
	case CTL:
		return ctl_at_random(c);
	case GET_EVENTS:
		return get_events_at_random(c);
	case WAIT:
		return wait_at_random(c);
	case CALL:
		return chain_at_random(c);
	default:
		return commit_at_random(c);
	}
}

static void call_and_check(struct caller *c)
{
	/* Half of the calls change something. */
	enum call call = any(c, 2) ? CTL : any(c, NR_CALLS);
	uint64_t rnd = c->rnd;
	long ret = call_at_random(c, call);

	c->calls++;
	if (ret >= 0)
		return;
	c->refused++;
	if (!contains(call_errnos[call], ARRAY_SIZE(call_errnos[0]), errno))
		snprintf(c->wrong, sizeof(c->wrong), "%s: errno %d, random state %#llx",
			 call_names[call], errno, (unsigned long long)rnd);
}

static long make_calls(void *arg)
{
	struct caller *c = arg;
	unsigned int i;

	while (!*c->wrong && (c->most ? c->calls < c->most :
			      storm_goes_on(c->start, c->refused && c->refused < c->calls)))
		for (i = 0; i < CALLS && !*c->wrong; i++)
			call_and_check(c);
	return 0;
}

/* Setting up */

static void open_files(struct caller *c)
{
	int fd[FDS];
	unsigned int i;

	MUST_EQ(pipe2(&fd[0], O_NONBLOCK), 0);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, &fd[2]), 0);
	fd[4] = eventfd(1, EFD_NONBLOCK);
	fd[5] = epoll_create1(0);
	fd[6] = open("/tmp", O_RDONLY);
	fd[7] = open("/proc/self/exe", O_RDONLY);
	fd[8] = open("/", O_PATH);
	fd[9] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	fd[10] = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	fd[11] = open("/tmp", O_TMPFILE | O_WRONLY, 0600);
	for (i = 0; i < FDS; i++) {
		MUST(fd[i] >= 0);
		c->fd[i] = fd[i];
	}
	for (i = 0; i < QUEUES; i++)
		MUST((c->queue[i] = kevent_init(NULL, 0, 0)) >= 0);
}

static char *map_pages(void)
{
	char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(pages != MAP_FAILED);
	MUST_EQ(mprotect(pages + PAGE, PAGE, PROT_READ), 0);
	MUST_EQ(mprotect(pages + 2 * PAGE, PAGE, PROT_NONE), 0);
	return pages;
}

static void open_caller(struct caller *c, uint64_t seed)
{
	memset(c, 0, sizeof(*c));
	c->rnd = seed | 1;
	c->start = now_ns();
	c->most = strtoull(getenv("KEVENT_CALLS") ?: "0", NULL, 0) / THREADS;
	c->pages = map_pages();
	c->entries = map_pages();
	open_files(c);
}

static void close_caller(struct caller *c)
{
	unsigned int i;

	for (i = 0; i < FDS; i++)
		close(c->fd[i]);
	for (i = 0; i < QUEUES; i++)
		close(c->queue[i]);
	munmap(c->pages, 3 * PAGE);
	munmap(c->entries, 3 * PAGE);
}

static void nothing_is_left(struct queue *q, long long bytes)
{
	uint64_t start = now_ns();

	while (fdinfo(q->fd, "kevent-user-bytes") > bytes &&
	       patient(start, PATIENCE_MS))
		;
	CHECK_EQ(fdinfo(q->fd, "kevent-user-bytes"), bytes);
}

/* A queue beside them that has nothing to do with it */
static void bystander_gets_its_event(struct queue *q, int fd[2])
{
	struct ukevent ev;

	put_byte(fd[1]);
	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ptr, 77);
	CHECK_NO_EVENT(q);
}

static void calls_fail_as_documented(void)
{
	struct caller caller[THREADS];
	uint64_t seed = test_seed();
	struct queue q;
	unsigned int i;
	long long bytes;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 77), 0);
	bytes = fdinfo(q.fd, "kevent-user-bytes");
	for (i = 0; i < THREADS; i++) {
		open_caller(&caller[i], seed + i * 0x9e3779b97f4a7c15ull);
		start_actor(&caller[i].actor, make_calls, &caller[i]);
	}
	for (i = 0; i < THREADS; i++) {
		join_actor(&caller[i].actor, 24 * 3600 * 1000);
		CHECK_EQ(strcmp(caller[i].wrong, ""), 0);
		note("%llu calls, %llu refused %s",
		     (unsigned long long)caller[i].calls,
		     (unsigned long long)caller[i].refused, caller[i].wrong);
		CHECK(caller[i].refused > 0);
		CHECK(caller[i].refused < caller[i].calls);
		close_caller(&caller[i]);
	}
	bystander_gets_its_event(&q, fd);
	nothing_is_left(&q, bytes);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_LIMIT(calls_fail_as_documented, 30),
	{}
};

const struct test_suite malformed_suite = {
	.name = "malformed", .cases = cases,
};
