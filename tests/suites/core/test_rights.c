// SPDX-License-Identifier: GPL-2.0
/*
 * Whose rights allow the kernel to write user memory; it writes only events
 *
 *	buffer, ring	on a stack that grows for them, within its limit
 *	memory faulted in	keeps its contents
 *	ATTACH, init	need all of the ring to be writable by the caller
 *	a thread		without the protection key of the ring causes no
 *			store there; another thread gets the event
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "helpers.h"

#define SIZE	128		/* 5248 bytes: slots on two pages */
#define BYTES	(2 * PAGE)

/* A stack that the kernel extends */

/* The address where the mapping of the main thread's stack begins */
static char *stack_start(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start = 0;
	char line[256];

	MUST(maps);
	while (!start && fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]"))
			start = strtoul(line, NULL, 16);
	fclose(maps);
	MUST(start);
	return (char *)start;
}

/* The kernel must not print a warning either; tests/vm/run looks for that. */
static void buffer_on_a_stack_that_has_not_grown(void)
{
	const unsigned int below[] = { 1, 8, 15, 64, 200 };
	struct ukevent *ev;
	struct queue q;
	unsigned int i;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	for (i = 0; i < ARRAY_SIZE(below); i++) {
		ev = (void *)(stack_start() - below[i] * PAGE - 64);
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		if (!CHECK_EQ(get_events(q.fd, 1, 16, 0, ev), 1))
			note("%u pages below the stack", below[i]);
		else
			CHECK_EQ(ev->ptr, 7);
	}
	close_queue(&q);
}

static void stack_grows_up_to_its_limit_only(void)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };
	struct ukevent *ev, got;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST_EQ(setrlimit(RLIMIT_STACK, &limit), 0);
	ev = (void *)(stack_start() - (2 << 20));
	CHECK_EQ(get_events(q.fd, 1, 1, 0, ev), -EFAULT);
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &got), 1);
	close_queue(&q);
}

static void ring_on_a_stack_that_has_not_grown(void)
{
	unsigned int counts[8] = {};
	struct queue q = { .size = SIZE };
	int fd[2];

	q.ring = (void *)(stack_start() - 100 * PAGE);
	q.fd = kevent_init(q.ring, q.size, 0);
	MUST(q.fd >= 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, KEVENT_REQ_ET, 7), 0);
	put_byte(fd[1]);
	put_byte_from_outside(fd[1]);
	/* One event of the wake-up, and one that waited for a call */
	CHECK_EQ(drain(&q, counts, 8), 2);
	CHECK_EQ(counts[7], 2);
	close(q.fd);
}

/* Contents of memory */

static char *map_file(int fd, size_t bytes, char *at)
{
	char *mem = mmap(at, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);

	MUST(mem != MAP_FAILED);
	return mem;
}

static unsigned int changed(const char *mem, size_t from, size_t to)
{
	unsigned int nr = 0;

	for (; from < to; from++)
		nr += mem[from] != 0x5a;
	return nr;
}

/* There is room for sixteen entries on both pages; one event is there. */
static void faulting_in_a_buffer_changes_nothing(void)
{
	const size_t at = PAGE - 2 * sizeof(struct ukevent);
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	struct queue q;
	char *mem;

	MUST_EQ(ftruncate(fd, BYTES), 0);
	mem = map_file(fd, BYTES, NULL);
	memset(mem, 0x5a, BYTES);
	map_file(fd, BYTES, mem);
	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	CHECK_EQ(get_events(q.fd, 1, 16, 0, (void *)(mem + at)), 1);
	CHECK_EQ(((struct ukevent *)(mem + at))->ptr, 7);
	CHECK_EQ(changed(mem, 0, at), 0);
	CHECK_EQ(changed(mem, at + sizeof(struct ukevent), BYTES), 0);
	close_queue(&q);
}

/* The buffer of a call need not be aligned. */
static void faulting_in_an_unaligned_buffer(void)
{
	char *mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ukevent ev;
	unsigned int i;
	struct queue q;

	MUST(mem != MAP_FAILED);
	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	for (i = 1; i < sizeof(ev) + 4; i++) {
		MUST_EQ(madvise(mem, BYTES, MADV_DONTNEED), 0);
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		CHECK_EQ(get_events(q.fd, 1, 1, 0, (void *)(mem + PAGE - i)),
			 1);
		memcpy(&ev, mem + PAGE - i, sizeof(ev));
		CHECK_EQ(ev.ptr, 7);
	}
	close_queue(&q);
}

/* Slots that were read, and positions, on pages that are mapped again */
static void faulting_in_a_ring_changes_nothing(void)
{
	struct queue q = { .size = SIZE, .bytes = BYTES };
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct ukevent ev;
	char *mem;

	MUST_EQ(ftruncate(fd, BYTES), 0);
	mem = map_file(fd, BYTES, NULL);
	memset(mem, 0x5a, BYTES);
	q.ring = (void *)mem;
	q.fd = kevent_init(q.ring, q.size, 0);
	MUST(q.fd >= 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, 7), 0);
	CHECK_EQ(wait_ring(&q, SIZE, 0), 1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	map_file(fd, BYTES, mem);
	CHECK_EQ(kevent_wait(q.fd, SIZE, 1, NULL, 0, NULL), 1);
	CHECK_EQ(q.ring->ring_kidx, 2);
	CHECK_EQ(q.ring->ring_uidx, 0);
	CHECK_EQ(changed(mem, KEVENT_RING_BYTES(2), BYTES), 0);
	map_file(fd, BYTES, mem);
	CHECK_EQ(kevent_commit(q.fd, 1, 0), 1);
	CHECK_EQ(q.ring->ring_uidx, 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(changed(mem, KEVENT_RING_BYTES(2), BYTES), 0);
	close(q.fd);
}

/* ATTACH */

static void open_shared(struct queue *q)
{
	q->size = SIZE;
	q->bytes = BYTES;
	q->ring = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q->ring != MAP_FAILED);
	q->fd = kevent_init(q->ring, SIZE, 0);
	MUST(q->fd >= 0);
}

static int attach_read_only(void *arg)
{
	struct queue *q = arg;
	char *ring = (char *)q->ring;

	CHILD_MUST(mprotect(ring, BYTES, PROT_READ) == 0);
	CHILD_MUST(attach_ring(q) == -EFAULT);
	CHILD_MUST(wait_ring(q, 1, 0) == -EXDEV);
	CHILD_MUST(mprotect(ring, PAGE, PROT_READ | PROT_WRITE) == 0);
	CHILD_MUST(attach_ring(q) == -EFAULT);
	CHILD_MUST(mprotect(ring, PAGE, PROT_READ) == 0);
	CHILD_MUST(mprotect(ring + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
	CHILD_MUST(attach_ring(q) == -EFAULT);
	CHILD_MUST(mprotect(ring, BYTES, PROT_READ | PROT_WRITE) == 0);
	CHILD_MUST(attach_ring(q) == 0);
	CHILD_MUST(wait_ring(q, 1, 0) == 0);
	return 0;
}

static void attach_needs_a_writable_mapping(void)
{
	struct queue q;

	open_shared(&q);
	CHECK_EQ(join_child(start_child(attach_read_only, &q), PATIENCE_MS),
		 0);
	close_queue(&q);
}

static int attach_a_file_open_for_reading(void *arg)
{
	struct queue *q = arg;
	struct queue moved = *q;
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%zu", q->bytes);
	fd = open(path, O_RDONLY);
	CHILD_MUST(fd >= 0);
	moved.ring = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CHILD_MUST(moved.ring != MAP_FAILED);
	CHILD_MUST(mprotect(moved.ring, BYTES, PROT_READ | PROT_WRITE) == -1);
	/* The reason is not that the page is missing. */
	CHILD_MUST(moved.ring->ring_kidx == 0);
	CHILD_MUST(attach_ring(&moved) == -EFAULT);
	return 0;
}

/*
 * A process that got the ring for reading does not get the right to write it.
 */
static void attach_needs_a_file_open_for_writing(void)
{
	struct queue q = { .size = SIZE };
	int fd = memfd_create("ring", MFD_CLOEXEC);

	MUST_EQ(ftruncate(fd, BYTES), 0);
	q.ring = (void *)map_file(fd, BYTES, NULL);
	q.fd = kevent_init(q.ring, SIZE, 0);
	MUST(q.fd >= 0);
	q.bytes = fd;
	CHECK_EQ(join_child(start_child(attach_a_file_open_for_reading, &q),
			    PATIENCE_MS), 0);
	close(q.fd);
}

/* Protection keys */

static int key;

/*
 * Returns false without hardware or kernel support: arm64, and some KVM hosts.
 */
static bool have_keys(void)
{
	key = pkey_alloc(0, 0);
	if (key >= 0 && !pkey_set(key, 0))
		return true;
	note("no protection keys: %s", strerrorname_np(errno));
	CHECK(errno == ENOSPC || errno == ENOSYS || errno == EINVAL);
	return false;
}

static int lock_pages(void *mem, size_t bytes)
{
	return pkey_mprotect(mem, bytes, PROT_READ | PROT_WRITE, key);
}

static int attach_without_the_key(void *arg)
{
	struct queue *q = arg;
	char *page = (char *)q->ring;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		CHILD_MUST(lock_pages(page + i * PAGE, PAGE) == 0);
		CHILD_MUST(pkey_set(key, PKEY_DISABLE_WRITE) == 0);
		CHILD_MUST(attach_ring(q) == -EFAULT);
		CHILD_MUST(pkey_set(key, PKEY_DISABLE_ACCESS) == 0);
		CHILD_MUST(attach_ring(q) == -EFAULT);
		CHILD_MUST(kevent_init(q->ring, SIZE, 0) == -EFAULT);
		CHILD_MUST(pkey_set(key, 0) == 0);
		CHILD_MUST(pkey_mprotect(page, BYTES, PROT_READ | PROT_WRITE,
					 0) == 0);
	}
	CHILD_MUST(lock_pages(page, BYTES) == 0);
	CHILD_MUST(attach_ring(q) == 0);
	return 0;
}

static void attach_needs_the_callers_key(void)
{
	struct queue q;

	if (!have_keys())
		return;
	open_shared(&q);
	CHECK_EQ(join_child(start_child(attach_without_the_key, &q),
			    PATIENCE_MS), 0);
	close_queue(&q);
}

static int init_without_the_key(void *arg)
{
	struct queue *q = arg;
	char *page = (char *)q->ring;

	CHILD_MUST(lock_pages(page + PAGE, PAGE) == 0);
	CHILD_MUST(pkey_set(key, PKEY_DISABLE_WRITE) == 0);
	CHILD_MUST(kevent_init(q->ring, SIZE, 0) == -EFAULT);
	CHILD_MUST(pkey_set(key, 0) == 0);
	CHILD_MUST(kevent_init(q->ring, SIZE, 0) >= 0);
	return 0;
}

static void init_needs_the_callers_key(void)
{
	struct queue q;

	if (!have_keys())
		return;
	open_shared(&q);
	CHECK_EQ(join_child(start_child(init_without_the_key, &q),
			    PATIENCE_MS), 0);
	close_queue(&q);
}

struct locked {
	struct queue	q;
	int		fd[2], other[2];
	long		wait, commit, get;
};

/* Everything that a thread may try while it must not write the memory */
static long act_without_the_key(void *arg)
{
	struct locked *l = arg;

	if (pkey_set(key, PKEY_DISABLE_WRITE))
		return -errno;
	if (write(l->fd[1], "", 1) != 1)
		return -errno;
	mark_user(l->q.fd, 1, 1);
	l->wait = kevent_wait(l->q.fd, SIZE, 0, NULL, 0, NULL);
	l->commit = kevent_commit(l->q.fd, 1, 0);
	l->get = get_events(l->q.fd, 1, 1, 0, &l->q.ring->event[0]);
	return 0;
}

static void check_nothing_written(struct locked *l, uint64_t kidx)
{
	CHECK_EQ(l->q.ring->ring_kidx, kidx);
	CHECK_EQ(l->q.ring->ring_uidx, 0);
	CHECK_EQ(l->q.ring->event[kidx].ptr, 0);
	CHECK_EQ(l->q.ring->event[0].ptr, kidx ? 8 : 0);
}

/* With @first, the entry at 0 is there already. */
static void act_and_take(struct locked *l, bool first)
{
	unsigned int counts[10] = {};
	struct actor a;

	if (first)
		put_byte(l->other[1]);
	start_actor(&a, act_without_the_key, l);
	join_actor(&a, PATIENCE_MS);
	MUST_EQ(a.ret, 0);
	CHECK_EQ(l->wait, first ? 1 : -EFAULT);
	CHECK_EQ(l->commit, first ? -EFAULT : -EINVAL);
	CHECK_EQ(l->get, -EFAULT);
	check_nothing_written(l, first);
	/* A thread that may write gets all events. */
	CHECK_EQ(drain(&l->q, counts, 10), 2 + first);
	CHECK_EQ(counts[7], 1);
	CHECK_EQ(counts[8], first);
	CHECK_EQ(counts[9], 1);
	/* And its ring gets hits again. */
	take_bytes(l->fd[0]);
	put_byte(l->fd[1]);
	CHECK_EQ(l->q.ring->ring_kidx, 3 + first);
}

static void with_the_header_locked(bool first)
{
	struct locked l;

	open_queue(&l.q, SIZE);
	open_pipe(l.fd);
	open_pipe(l.other);
	MUST_EQ(add_pipe(l.q.fd, l.fd[0], RECV, KEVENT_REQ_ET, 7), 0);
	MUST_EQ(add_pipe(l.q.fd, l.other[0], RECV, KEVENT_REQ_ET, 8), 0);
	MUST_EQ(add_user(l.q.fd, 1, 1, 0, 9), 0);
	memset(l.q.ring->event, 0, l.q.bytes - sizeof(*l.q.ring));
	MUST_EQ(lock_pages(l.q.ring, PAGE), 0);
	act_and_take(&l, first);
	MUST_EQ(pkey_mprotect(l.q.ring, l.q.bytes, PROT_READ | PROT_WRITE, 0),
		0);
	close_queue(&l.q);
}

/*
 * The wake-up runs in a thread that may read the ring but not write it. No
 * event is stored until a thread that may write it makes a call. Calls of the
 * first thread fail.
 */
static void thread_without_the_key_writes_nothing(void)
{
	if (!have_keys())
		return;
	with_the_header_locked(false);
	with_the_header_locked(true);
}

static const struct test_case cases[] = {
	TEST(buffer_on_a_stack_that_has_not_grown),
	TEST(stack_grows_up_to_its_limit_only),
	TEST(ring_on_a_stack_that_has_not_grown),
	TEST(faulting_in_a_buffer_changes_nothing),
	TEST(faulting_in_an_unaligned_buffer),
	TEST(faulting_in_a_ring_changes_nothing),
	TEST(attach_needs_a_writable_mapping),
	TEST(attach_needs_a_file_open_for_writing),
	TEST(attach_needs_the_callers_key),
	TEST(init_needs_the_callers_key),
	TEST(thread_without_the_key_writes_nothing),
	{}
};

const struct test_suite rights_suite = { .name = "rights", .cases = cases };
