// SPDX-License-Identifier: GPL-2.0
/*
 * The five system calls as a program without a library sees them: layout,
 * numbers, and the exact errno of each malformed argument.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "helpers.h"

/* Evaluates the arguments once; returns -errno as the library does. */
static long result(long ret)
{
	return ret < 0 ? -errno : ret;
}

/* Of the kernel, or of the library in its place */
static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	if (!on_fallback())
		return result(raw_kevent(nr, a, b, c, d, e, f));
	switch (nr) {
	case __NR_kevent_init:
		return kevent_init((void *)a, b, c);
	case __NR_kevent_ctl:
		return kevent_ctl(a, b, c, (void *)d);
	case __NR_kevent_get_events:
		return kevent_get_events(a, b, c, (void *)d, (void *)e, f);
	case __NR_kevent_wait:
		return kevent_wait(a, b, c, (void *)d, e, (void *)f);
	default:
		return kevent_commit(a, b, c);
	}
}

#define raw_init(ring, size, flags) \
	call(480, (long)(ring), size, flags, 0, 0, 0)
#define raw_ctl(fd, cmd, num, arg) \
	call(481, fd, cmd, num, (long)(arg), 0, 0)
#define raw_get(fd, min, max, timeout, buf, flags) \
	call(482, fd, min, max, (long)(timeout), (long)(buf), flags)
#define raw_wait(fd, num, kidx, timeout, flags, arg) \
	call(483, fd, num, kidx, (long)(timeout), flags, (long)(arg))
#define raw_commit(fd, uidx, over)	call(484, fd, uidx, over, 0, 0, 0)

static const struct timespec zero;

static void *map_pages(unsigned int nr, int prot)
{
	void *p = mmap(NULL, nr * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	MUST(p != MAP_FAILED);
	return p;
}

static void *unmapped_page(void)
{
	void *p = map_pages(1, PROT_READ);

	MUST_EQ(munmap(p, PAGE), 0);
	return p;
}

static void layout_is_fixed(void)
{
	CHECK_EQ(sizeof(struct kevent_id), 8);
	CHECK_EQ(sizeof(struct ukevent), 40);
	CHECK_EQ(offsetof(struct ukevent, id), 0);
	CHECK_EQ(offsetof(struct ukevent, type), 8);
	CHECK_EQ(offsetof(struct ukevent, event), 12);
	CHECK_EQ(offsetof(struct ukevent, req_flags), 16);
	CHECK_EQ(offsetof(struct ukevent, ret_flags), 20);
	CHECK_EQ(offsetof(struct ukevent, ret_data), 24);
	CHECK_EQ(offsetof(struct ukevent, user), 32);
	CHECK_EQ(offsetof(struct ukevent, ptr), 32);
	CHECK_EQ(offsetof(struct kevent_ring, ring_kidx), 0);
	CHECK_EQ(offsetof(struct kevent_ring, ring_flags), 8);
	CHECK_EQ(offsetof(struct kevent_ring, ring_uidx), 64);
	CHECK_EQ(offsetof(struct kevent_ring, event), 128);
	CHECK_EQ(sizeof(struct kevent_ring), 128);
	CHECK_EQ(sizeof(struct kevent_change), 48);
	CHECK_EQ(offsetof(struct kevent_change, cmd), 40);
	CHECK_EQ(offsetof(struct kevent_change, result), 44);
	CHECK_EQ(sizeof(struct kevent_wait_arg), 48);
	CHECK_EQ(offsetof(struct kevent_wait_arg, clockid), 4);
	CHECK_EQ(offsetof(struct kevent_wait_arg, min_nr), 8);
	CHECK_EQ(offsetof(struct kevent_wait_arg, sigsetsize), 12);
	CHECK_EQ(offsetof(struct kevent_wait_arg, sigmask), 16);
	CHECK_EQ(offsetof(struct kevent_wait_arg, min_wait_ns), 24);
	CHECK_EQ(offsetof(struct kevent_wait_arg, changes), 32);
	CHECK_EQ(offsetof(struct kevent_wait_arg, nr_changes), 40);
}

static void init_needs_both_ring_and_size(void)
{
	void *ring = map_pages(1, PROT_READ | PROT_WRITE);

	CHECK_EQ(raw_init(ring, 0, 0), -EINVAL);
	CHECK_EQ(raw_init(NULL, 8, 0), -EINVAL);
}

static void init_refuses_each_unknown_flag(void)
{
	const uint32_t of_the_library = KEVENT_INIT_NO_FALLBACK |
		KEVENT_INIT_FALLBACK_ONLY | KEVENT_INIT_ALL_TYPES;
	void *ring = map_pages(1, PROT_READ | PROT_WRITE);
	unsigned int bit;

	for (bit = 2; bit < 16; bit++) {
		if (on_fallback() && of_the_library & 1u << bit)
			continue;
		CHECK_EQ(raw_init(ring, 8, 1u << bit), -EINVAL);
		CHECK_EQ(raw_init(NULL, 0, 1u << bit | 1), -EINVAL);
	}
}

static void init_takes_powers_of_two_only(void)
{
	size_t bytes = KEVENT_RING_BYTES(1ul << 20);
	void *ring = map_pages(bytes / PAGE + 1, PROT_READ | PROT_WRITE);
	unsigned int bit;
	long fd;

	CHECK_EQ(raw_init(ring, 1, 0), -EINVAL);
	for (bit = 1; bit < 32; bit++) {
		uint32_t size = 1u << bit;

		fd = raw_init(ring, size, 0);
		if (size <= KEVENT_RING_MAX) {
			CHECK(fd >= 0);
			CHECK_EQ(close(fd), 0);
		} else {
			CHECK_EQ(fd, -EINVAL);
		}
		CHECK_EQ(raw_init(ring, size + 1, 0), -EINVAL);
		if (bit > 1)
			CHECK_EQ(raw_init(ring, size - 1, 0), -EINVAL);
	}
	CHECK_EQ(raw_init(ring, UINT_MAX, 0), -EINVAL);
}

static void init_refuses_unaligned_ring(void)
{
	char *ring = map_pages(1, PROT_READ | PROT_WRITE);
	unsigned int i;
	long fd;

	for (i = 1; i < 8; i++)
		CHECK_EQ(raw_init(ring + i, 8, 0), -EINVAL);
	fd = raw_init(ring + 8, 8, 0);
	MUST(fd >= 0);
	close(fd);
}

static void init_needs_a_writable_header(void)
{
	CHECK_EQ(raw_init(map_pages(1, PROT_READ), 8, 0), -EFAULT);
	CHECK_EQ(raw_init(map_pages(1, PROT_NONE), 8, 0), -EFAULT);
	CHECK_EQ(raw_init(unmapped_page(), 8, 0), -EFAULT);
	CHECK_EQ(raw_init(8ul, 8, 0), -EFAULT);
}

/* One of the four pages with slots is not writable, or not mapped. */
static void init_needs_a_writable_ring(void)
{
	const uint32_t size = 256;
	unsigned int i;
	char *ring;
	long fd;

	for (i = 1; i <= size * sizeof(struct ukevent) / PAGE; i++) {
		ring = map_pages(4, PROT_READ | PROT_WRITE);
		MUST_EQ(mprotect(ring + i * PAGE, PAGE, PROT_READ), 0);
		CHECK_EQ(raw_init(ring, size, 0), -EFAULT);
		MUST_EQ(mprotect(ring + i * PAGE, PAGE, PROT_NONE), 0);
		CHECK_EQ(raw_init(ring, size, 0), -EFAULT);
		MUST_EQ(munmap(ring + i * PAGE, PAGE), 0);
		CHECK_EQ(raw_init(ring, size, 0), -EFAULT);
	}
	/* The page after the last slot does not matter. */
	ring = map_pages(4, PROT_READ | PROT_WRITE);
	MUST_EQ(munmap(ring + 3 * PAGE, PAGE), 0);
	fd = raw_init(ring, size, 0);
	CHECK(fd >= 0);
	close(fd);
}

/*
 * No 32-bit address is in kernel memory; the ring ends after the last address.
 */
static void init_refuses_kernel_memory(void)
{
#ifdef __LP64__
	CHECK_EQ(raw_init(0xffff888000000000ul, 8, 0), -EFAULT);
	CHECK_EQ(raw_init(0xffffffff80000000ul, 8, 0), -EFAULT);
	CHECK_EQ(raw_init(0x8000000000000000ul, 8, 0), -EFAULT);
	/* The header is in user memory, the last slot is not. */
	CHECK_EQ(raw_init(0x7fffffffe000ul, 1u << 20, 0), -EFAULT);
#endif
	CHECK_EQ(raw_init(-4096l, 8, 0), -EFAULT);
	CHECK_EQ(raw_init(-128l, 8, 0), -EFAULT);
}

static void init_clears_the_header_only(void)
{
	unsigned char *mem = map_pages(1, PROT_READ | PROT_WRITE);
	unsigned int i, dirty = 0;
	long fd;

	memset(mem, 0x5a, PAGE);
	fd = raw_init(mem, 8, 0);
	MUST(fd >= 0);
	for (i = 0; i < sizeof(struct kevent_ring); i++)
		dirty += mem[i] != 0;
	CHECK_EQ(dirty, 0);
	for (; i < PAGE; i++)
		dirty += mem[i] != 0x5a;
	CHECK_EQ(dirty, 0);
	close(fd);
}

static void init_failure_leaves_no_descriptor(void)
{
	int next = dup(0);

	MUST(next >= 0);
	close(next);
	CHECK_EQ(raw_init(unmapped_page(), 8, 0), -EFAULT);
	CHECK_EQ(dup(0), next);
}

static void init_closes_on_exec_by_default(void)
{
	long fd = raw_init(NULL, 0, 0);

	MUST(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	fd = raw_init(NULL, 0, KEVENT_INIT_NOCLOEXEC);
	MUST(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	close(fd);
}

static void init_out_of_descriptors(void)
{
	struct rlimit limit = { .rlim_cur = 0, .rlim_max = 4096 };

	MUST_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_EQ(raw_init(NULL, 0, 0), -EMFILE);
}

/* Each call on @fd gives @want. */
static void check_calls(int fd, int want)
{
	struct ukevent ev = {};

	CHECK_EQ(raw_ctl(fd, KEVENT_CTL_ADD, 1, &ev), want);
	CHECK_EQ(raw_ctl(fd, KEVENT_CTL_ADD, 0, NULL), want);
	CHECK_EQ(raw_get(fd, 1, 1, &zero, &ev, 0), want);
	CHECK_EQ(raw_wait(fd, 1, 0, &zero, 0, NULL), want);
	CHECK_EQ(raw_commit(fd, 0, 0), want);
}

static void calls_need_an_open_descriptor(void)
{
	int fd = dup(0);

	MUST(fd >= 0);
	close(fd);
	check_calls(fd, -EBADF);
	check_calls(-1, -EBADF);
	check_calls(INT_MAX, -EBADF);
}

static void calls_need_a_queue(void)
{
	int fd[2];

	open_pipe(fd);
	check_calls(fd[0], -EINVAL);
	check_calls(fd[1], -EINVAL);
}

/* It has got the number of a queue that was closed. */
static void wait_leaves_another_file_where_it_is(void)
{
	int kq = kevent_init(NULL, 0, 0), fd = memfd_create("file", MFD_CLOEXEC);
	static const struct timespec now;

	MUST(kq >= 0 && fd >= 0);
	MUST_EQ(lseek(fd, 5, SEEK_SET), 5);
	CHECK_EQ(kevent_wait(fd, 1, 0, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_wait(fd, 1, 0, &now, 0, NULL), -EINVAL);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
}

static void calls_refuse_o_path(void)
{
	int fd = open("/", O_PATH);

	MUST(fd >= 0);
	check_calls(fd, -EBADF);
}

static void ctl_refuses_unknown_commands(void)
{
	long kq = raw_init(NULL, 0, 0);
	struct ukevent ev = {};
	unsigned int bit;

	for (bit = 2; bit < 32; bit++) {
		CHECK_EQ(raw_ctl(kq, 1u << bit, 1, &ev), -EINVAL);
		CHECK_EQ(raw_ctl(kq, 1u << bit, 0, NULL), -EINVAL);
	}
	CHECK_EQ(raw_ctl(kq, UINT_MAX, 1, &ev), -EINVAL);
}

static void ctl_with_no_entries_is_fine(void)
{
	long kq = raw_init(NULL, 0, 0);
	void *bad = unmapped_page();
	uint32_t cmd;

	for (cmd = KEVENT_CTL_ADD; cmd <= KEVENT_CTL_READY; cmd++) {
		CHECK_EQ(raw_ctl(kq, cmd, 0, NULL), 0);
		CHECK_EQ(raw_ctl(kq, cmd, 0, bad), 0);
	}
}

static void ctl_bounds_the_number_of_entries(void)
{
	static struct ukevent ev[KEVENT_CTL_MAX + 1];
	long kq = raw_init(NULL, 0, 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ev); i++)
		kevent_set_user(&ev[i], i, 1, 0, i);
	CHECK_EQ(raw_ctl(kq, KEVENT_CTL_ADD, KEVENT_CTL_MAX + 1, ev), -EINVAL);
	CHECK_EQ(raw_ctl(kq, KEVENT_CTL_ADD, 1u << 31, ev), -EINVAL);
	CHECK_EQ(raw_ctl(kq, KEVENT_CTL_ADD, UINT_MAX, ev), -EINVAL);
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 0);
	CHECK_EQ(raw_ctl(kq, KEVENT_CTL_ADD, KEVENT_CTL_MAX, ev), 0);
	CHECK_EQ(fdinfo(kq, "kevent-watches"), KEVENT_CTL_MAX);
	CHECK_EQ(raw_ctl(kq, KEVENT_CTL_REMOVE, UINT_MAX, ev), -EINVAL);
	CHECK_EQ(raw_ctl(kq, KEVENT_CTL_REMOVE, KEVENT_CTL_MAX, ev), 0);
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 0);
}

static void ctl_faults_on_bad_memory(void)
{
	long kq = raw_init(NULL, 0, 0);
	void *bad[] = {
		NULL, (void *)8, unmapped_page(), map_pages(1, PROT_NONE),
		(void *)-4096l, (void *)-40l,
#ifdef __LP64__
		(void *)0xffff888000000000ul,
#endif
	};
	unsigned int i;
	uint32_t cmd;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		for (cmd = KEVENT_CTL_ADD; cmd <= KEVENT_CTL_READY; cmd++)
			CHECK_EQ(raw_ctl(kq, cmd, 1, bad[i]), -EFAULT);
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 0);
}

/*
 * Result of ADD for one entry: 0, or the errno in the entry; checks its flags
 */
static int add_raw(int kq, struct ukevent *ev)
{
	long ret = raw_ctl(kq, KEVENT_CTL_ADD, 1, ev);

	if (ret <= 0)
		return ret;
	CHECK_EQ(ret, 1);
	if (!(ev->ret_flags & KEVENT_RET_BROKEN))
		return 1;
	CHECK_EQ(ev->ret_flags, KEVENT_RET_BROKEN | KEVENT_RET_DONE);
	return (int)ev->ret_data[1];
}

static void types_are_known_reserved_or_refused(void)
{
	static const int reserved[] = { KEVENT_NAIO };
	long kq = raw_init(NULL, 0, 0);
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(reserved); i++) {
		kevent_set_user(&ev, 0, 1, 0, 0);
		ev.type = reserved[i];
		CHECK_EQ(add_raw(kq, &ev), -ENOSYS);
	}
	kevent_set_user(&ev, 0, 1, 0, 0);
	ev.type = KEVENT_BOUND + 1;
	CHECK_EQ(add_raw(kq, &ev), -EINVAL);
	for (i = 4; i < 32; i++) {
		kevent_set_user(&ev, 0, 1, 0, 0);
		ev.type |= 1u << i;
		CHECK_EQ(add_raw(kq, &ev), -EINVAL);
	}
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 0);
}

/*
 * For each type a valid entry, and its event bits. Every other bit of event,
 * every unknown bit of req_flags and, for files, every bit of id.raw[1] is
 * refused.
 */
static void check_bits(int kq, struct ukevent valid, uint32_t events)
{
	uint32_t flags = 0xff | KEVENT_REQ_STAY_AWAKE;
	struct ukevent ev;
	unsigned int bit;

	if (valid.type == KEVENT_USER)
		flags |= KEVENT_REQ_KEEP_EACH;
	for (bit = 0; bit < 32; bit++) {
		ev = valid;
		ev.event = 1u << bit;
		if (!(events & ev.event))
			CHECK_EQ(add_raw(kq, &ev), -EINVAL);
		ev = valid;
		ev.req_flags |= 1u << bit;
		if (ev.req_flags & ~flags)
			CHECK_EQ(add_raw(kq, &ev), -EINVAL);
		ev = valid;
		ev.id.raw[1] = 1u << bit;
		if (ev.type != KEVENT_USER)
			CHECK_EQ(add_raw(kq, &ev), -EINVAL);
	}
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 0);
	ev = valid;
	ev.event = events;
	CHECK_EQ(add_raw(kq, &ev), 0);
	CHECK_EQ(fdinfo(kq, "kevent-watches"), 1);
	ev = valid;
	CHECK_EQ(raw_ctl(kq, KEVENT_CTL_REMOVE, 1, &ev), 0);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
}

static void each_unknown_bit_is_refused(void)
{
	long kq = raw_init(NULL, 0, 0);
	struct ukevent ev;
	int fd[2], sock;

	open_pipe(fd);
	sock = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(sock >= 0);
	kevent_set_pipe(&ev, fd[0], KEVENT_SOCKET_RECV, 0, 0);
	check_bits(kq, ev, KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND);
	kevent_set_socket(&ev, sock, KEVENT_SOCKET_RECV, 0, 0);
	check_bits(kq, ev, KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT |
			   KEVENT_SOCKET_SEND | KEVENT_SOCKET_EMPTY);
	kevent_set_poll(&ev, fd[0], KEVENT_POLL_POLLIN, 0, 0);
	check_bits(kq, ev, 0x27df);
	kevent_set_user(&ev, ~0ull, 1, 0, 0);
	check_bits(kq, ev, ~0u);
}

/* MODIFY refuses the same bits and leaves the watch as it was. */
static void modify_refuses_unknown_bits(void)
{
	long kq = raw_init(NULL, 0, 0);
	struct ukevent ev;
	unsigned int bit;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(kq, fd[0], KEVENT_SOCKET_RECV, 0, 7), 0);
	for (bit = 0; bit < 32; bit++) {
		kevent_set_pipe(&ev, fd[0], 1u << bit, 0, 8);
		if ((1u << bit) & ~(KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND))
			CHECK_EQ(kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev),
				 -EINVAL);
		kevent_set_pipe(&ev, fd[0], 1, 1u << bit, 8);
		if ((1u << bit) & ~(0xffu | KEVENT_REQ_STAY_AWAKE))
			CHECK_EQ(kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev),
				 -EINVAL);
	}
	put_byte(fd[1]);
	MUST_EQ(get_events(kq, 1, 1, 0, &ev), 1);
	CHECK_EQ(ev.ptr, 7);
}

static void get_events_checks_its_arguments(void)
{
	long kq = raw_init(NULL, 0, 0);
	struct ukevent ev[2];
	unsigned int bit;

	CHECK_EQ(raw_get(kq, 0, 0, &zero, ev, 0), -EINVAL);
	CHECK_EQ(raw_get(kq, 1, 0, &zero, ev, 0), -EINVAL);
	CHECK_EQ(raw_get(kq, 2, 1, &zero, ev, 0), -EINVAL);
	CHECK_EQ(raw_get(kq, UINT_MAX, 1, &zero, ev, 0), -EINVAL);
	for (bit = 1; bit < 32; bit++)
		CHECK_EQ(raw_get(kq, 1, 1, &zero, ev, 1u << bit), -EINVAL);
	CHECK_EQ(raw_get(kq, 0, 1, &zero, ev, 0), 0);
	CHECK_EQ(raw_get(kq, 2, 2, &zero, ev, 0), 0);
	/* No address space has room for so many. */
	CHECK_EQ(raw_get(kq, 1, UINT_MAX, &zero, ev, 0), -EINVAL);
	CHECK_EQ(raw_get(kq, UINT_MAX, UINT_MAX, &zero, ev, 0), -EINVAL);
}

static void wait_checks_its_arguments(void)
{
	struct queue q;
	unsigned int bit;

	open_queue(&q, 8);
	CHECK_EQ(raw_wait(q.fd, 0, 0, &zero, 0, NULL), -EINVAL);
	for (bit = 3; bit < 32; bit++)
		CHECK_EQ(raw_wait(q.fd, 1, 0, &zero, 1u << bit, NULL),
			 -EINVAL);
	CHECK_EQ(raw_wait(q.fd, 8, 0, &zero, 0, NULL), 0);
	CHECK_EQ(raw_wait(q.fd, 9, 0, &zero, 0, NULL), 0);
	CHECK_EQ(raw_wait(q.fd, UINT_MAX, 0, &zero, 0, NULL), 0);
	close_queue(&q);
}

/* Without its flag the kernel does not read the extensible argument. */
static void wait_ignores_arg_without_its_flag(void)
{
	struct queue q;

	open_queue(&q, 8);
	CHECK_EQ(raw_wait(q.fd, 1, 0, &zero, 0, (void *)8), 0);
	close_queue(&q);
}

static void ring_calls_need_a_ring(void)
{
	long kq = raw_init(NULL, 0, 0);

	CHECK_EQ(raw_wait(kq, 1, 0, &zero, 0, NULL), -EINVAL);
	CHECK_EQ(raw_commit(kq, 0, 0), -EINVAL);
}

static void malformed_timeouts_are_refused(void)
{
	static const struct timespec bad[] = {
		{ 0, 1000000000 }, { 0, -1 }, { 0, LONG_MAX }, { 0, LONG_MIN },
		{ -1, 0 }, { INT64_MIN, 0 }, { -1, 999999999 },
	};
	struct ukevent ev;
	struct queue q;
	unsigned int i;
	uint32_t flags;

	open_queue(&q, 8);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		for (flags = 0; flags <= KEVENT_FLAGS_ABSTIME; flags++) {
			CHECK_EQ(raw_get(q.fd, 1, 1, &bad[i], &ev, flags),
				 -EINVAL);
			CHECK_EQ(raw_wait(q.fd, 1, 0, &bad[i], flags, NULL),
				 -EINVAL);
		}
	}
	CHECK_EQ(raw_get(q.fd, 1, 1, unmapped_page(), &ev, 0), -EFAULT);
	CHECK_EQ(raw_wait(q.fd, 1, 0, unmapped_page(), 0, NULL), -EFAULT);
	close_queue(&q);
}

/* A 32-bit program has padding there, which it need not clear. */
static void upper_half_of_tv_nsec_counts_for_64_bits_only(void)
{
	const struct {
		int64_t sec;
		uint64_t nsec;
	} upper = { 0, 1ull << 32 };
	const struct timespec *timeout = (const struct timespec *)&upper;
	int expected = sizeof(long) == 4 ? 0 : -EINVAL;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	CHECK_EQ(raw_get(q.fd, 0, 1, timeout, &ev, 0), expected);
	CHECK_EQ(raw_wait(q.fd, 1, 0, timeout, 0, NULL), expected);
	close_queue(&q);
}

/* A refused call consumes no event. */
static void bad_calls_lose_nothing(void)
{
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 42), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(raw_get(q.fd, 2, 1, &zero, &ev, 0), -EINVAL);
	CHECK_EQ(raw_get(q.fd, 1, 1, &zero, unmapped_page(), 0), -EFAULT);
	CHECK_EQ(raw_get(q.fd, 1, 1, unmapped_page(), &ev, 0), -EFAULT);
	CHECK_EQ(raw_wait(q.fd, 0, 0, &zero, 0, NULL), -EINVAL);
	CHECK_EQ(raw_wait(q.fd, 1, 0, &zero, 8, NULL), -EINVAL);
	CHECK_EQ(raw_wait(q.fd, 1, 0, unmapped_page(), 0, NULL), -EFAULT);
	CHECK_EQ(raw_ctl(q.fd, KEVENT_CTL_READY, 1, NULL), -EFAULT);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 42);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

#ifdef __x86_64__
/*
 * A call of the 32-bit table; pointers are in the low 4 GiB. The sixth
 * argument, ebp, is 0. The code does not use the stack where the compiler may.
 */
static long compat(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	asm volatile("lea -128(%%rsp), %%rsp\n\t"
		     "push %%rbp\n\t"
		     "xor %%ebp, %%ebp\n\t"
		     "int $0x80\n\t"
		     "pop %%rbp\n\t"
		     "lea 128(%%rsp), %%rsp"
		     : "=a" (ret)
		     : "0" (nr), "b" (a), "c" (b), "d" (c), "S" (d), "D" (e)
		     : "memory", "cc", "r8", "r9", "r10", "r11");
	return (int)ret;
}

static void compat_calls_share_the_layout(void)
{
	struct kevent_ring *ring;
	struct ukevent *ev;
	long low, kq;

	low = (long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	MUST(low > 0 && low < INT_MAX);
	ring = (void *)low;
	ev = (void *)(low + 2048);
	kq = compat(480, low, 8, 0, 0, 0);
	MUST(kq >= 0);
	kevent_set_user(ev, 0x1122334455667788ull, 3, 0, ~0x77ull);
	CHECK_EQ(compat(481, kq, KEVENT_CTL_ADD, 1, (long)ev, 0), 0);
	CHECK_EQ(compat(481, kq, KEVENT_CTL_READY, 1, (long)ev, 0), 1);
	CHECK_EQ(compat(483, kq, 8, 0, 0, 0), 1);
	CHECK_EQ(ring->ring_kidx, 1);
	CHECK_EQ(ring->event[0].id.raw_u64, 0x1122334455667788ull);
	CHECK_EQ(ring->event[0].ret_data[0], 3);
	CHECK_EQ(ring->event[0].ptr, ~0x77ull);
	CHECK_EQ(compat(484, kq, 1, 0, 0, 0), 1);
	memset(ev, 0, sizeof(*ev));
	memset(ev + 1, 0, sizeof(struct timespec));
	CHECK_EQ(compat(482, kq, 1, 1, (long)(ev + 1), (long)ev), 0);
	close(kq);
}

/* Whatever its entries say: their numbers are those of another table. */
static void compat_chains_are_refused(void)
{
	const uint8_t flags[] = { 0, KEVENT_CALL_BACK(0), 0x80 };
	char *low = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct kevent_ring *ring = (void *)low;
	struct ukevent *ev = (void *)(low + 1024);
	struct timespec *no_time = (void *)(low + 1536);
	struct kevent_call *c = (void *)(low + 2048);
	unsigned int i;
	long kq;

	MUST(low != MAP_FAILED);
	kq = compat(480, (long)ring, 8, 0, 0, 0);
	MUST(kq >= 0);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		c[0] = (struct kevent_call){ .result = 1 };
		c[1] = (struct kevent_call){
			.nr = SYS_getppid, .flags = flags[i], .args = { 1 },
		};
		*ev = (struct ukevent){
			.id.raw_u64 = KEVENT_ARG(c), .type = KEVENT_AIO,
			.event = KEVENT_AIO_DONE, .ret_data = { 2, 1 },
		};
		CHECK_EQ(compat(481, kq, KEVENT_CTL_ADD, 1, (long)ev, 0), 0);
		CHECK_EQ(compat(483, kq, 1, 0, (long)no_time, KEVENT_FLAGS_SERVE), 1);
		CHECK_EQ(compat(483, kq, 8, i, (long)no_time, 0), 1);
		CHECK_EQ(ring->event[i].id.raw_u64, 1 | REFUSED);
		CHECK_EQ((int)ring->event[i].ret_data[0], -EOPNOTSUPP);
		CHECK_EQ(compat(484, kq, i + 1, 0, 0, 0), 1);
	}
	close((int)kq);
	munmap(low, PAGE);
}
#endif

static const struct test_case cases[] = {
	TEST(layout_is_fixed),
	TEST(init_needs_both_ring_and_size),
	TEST(init_refuses_each_unknown_flag),
	TEST(init_takes_powers_of_two_only),
	TEST(init_refuses_unaligned_ring),
	TEST(init_needs_a_writable_header),
	TEST(init_needs_a_writable_ring),
	TEST(init_refuses_kernel_memory),
	TEST(init_clears_the_header_only),
	TEST(init_failure_leaves_no_descriptor),
	TEST(init_closes_on_exec_by_default),
	TEST(init_out_of_descriptors),
	TEST(calls_need_an_open_descriptor),
	TEST(calls_need_a_queue),
	TEST(wait_leaves_another_file_where_it_is),
	TEST(calls_refuse_o_path),
	TEST(ctl_refuses_unknown_commands),
	TEST(ctl_with_no_entries_is_fine),
	TEST(ctl_bounds_the_number_of_entries),
	TEST(ctl_faults_on_bad_memory),
	TEST(types_are_known_reserved_or_refused),
	TEST(each_unknown_bit_is_refused),
	TEST(modify_refuses_unknown_bits),
	TEST(get_events_checks_its_arguments),
	TEST(wait_checks_its_arguments),
	TEST(wait_ignores_arg_without_its_flag),
	TEST(ring_calls_need_a_ring),
	TEST(malformed_timeouts_are_refused),
	TEST(upper_half_of_tv_nsec_counts_for_64_bits_only),
	TEST(bad_calls_lose_nothing),
#ifdef __x86_64__
	TEST(compat_calls_share_the_layout),
	TEST(compat_chains_are_refused),
#endif
	{}
};

const struct test_suite abi_suite = { .name = "abi", .cases = cases };
