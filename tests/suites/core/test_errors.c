// SPDX-License-Identifier: GPL-2.0
/*
 * Bad entries, bad memory, bad order: the exact errno, and no event is lost
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "helpers.h"

#define NR	8

static int closed_fd(void)
{
	int fd = dup(0);

	MUST(fd >= 0);
	close(fd);
	return fd;
}

static void add_names_what_is_wrong(void)
{
	int fd[2], sock, efd, none;
	struct queue q;

	open_queue(&q, 0);
	open_pipe(fd);
	sock = socket(AF_UNIX, SOCK_DGRAM, 0);
	efd = eventfd(0, 0);
	none = closed_fd();
	CHECK_EQ(add_pipe(q.fd, none, 1, 0, 0), -EBADF);
	CHECK_EQ(add_socket(q.fd, none, 1, 0, 0), -EBADF);
	CHECK_EQ(add_poll(q.fd, none, 1, 0, 0), -EBADF);
	CHECK_EQ(add_poll(q.fd, -1, 1, 0, 0), -EBADF);
	CHECK_EQ(add_pipe(q.fd, sock, 1, 0, 0), -EINVAL);
	CHECK_EQ(add_pipe(q.fd, efd, 1, 0, 0), -EINVAL);
	CHECK_EQ(add_socket(q.fd, fd[0], 1, 0, 0), -ENOTSOCK);
	CHECK_EQ(add_socket(q.fd, efd, 1, 0, 0), -ENOTSOCK);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static void duplicate_watch_is_refused(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	CHECK_EQ(add_pipe(q.fd, fd[0], 1, 0, 5), 0);
	CHECK_EQ(add_pipe(q.fd, fd[0], 1, 0, 6), -EEXIST);
	CHECK_EQ(add_pipe(q.fd, fd[0], 4, KEVENT_REQ_ET, 6), -EEXIST);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	put_byte(fd[1]);
	CHECK_EQ(add_pipe(q.fd, fd[0], 1, 0, 6), -EEXIST);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 5);
	CHECK_EQ(add_user(q.fd, 9, 1, 0, 0), 0);
	CHECK_EQ(add_user(q.fd, 9, 2, 0, 0), -EEXIST);
	close_queue(&q);
}

/* (type, fd, file) is the key. Each of these differs in one part. */
static void other_type_fd_or_file_is_no_duplicate(void)
{
	struct queue q;
	int fd[2], other[2], copy;

	open_queue(&q, 0);
	open_pipe(fd);
	open_pipe(other);
	CHECK_EQ(add_pipe(q.fd, fd[0], 1, 0, 0), 0);
	CHECK_EQ(add_poll(q.fd, fd[0], KEVENT_POLL_POLLIN, 0, 0), 0);
	copy = dup(fd[0]);
	CHECK_EQ(add_pipe(q.fd, copy, 1, 0, 0), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 3);
	CHECK_EQ(dup2(other[0], fd[0]), fd[0]);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	CHECK_EQ(add_pipe(q.fd, fd[0], 1, 0, 0), 0);
	close_queue(&q);
}

static void one_fd_may_have_two_types(void)
{
	unsigned int counts[2] = {};
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], 1, KEVENT_REQ_ET, 0), 0);
	MUST_EQ(add_poll(q.fd, fd[0], KEVENT_POLL_POLLIN, KEVENT_REQ_ET, 1),
		0);
	put_byte(fd[1]);
	CHECK_EQ(drain(&q, counts, 2), 2);
	CHECK_EQ(counts[0], 1);
	CHECK_EQ(counts[1], 1);
	CHECK_EQ(remove_file(q.fd, KEVENT_PIPE, fd[0]), 0);
	put_byte(fd[1]);
	CHECK_EQ(drain(&q, counts, 2), 1);
	CHECK_EQ(counts[1], 2);
	close_queue(&q);
}

static void missing_watch_is_enoent(void)
{
	static const uint32_t cmds[] = {
		KEVENT_CTL_REMOVE, KEVENT_CTL_MODIFY,
	};
	struct ukevent ev;
	struct queue q;
	unsigned int i;
	int fd[2], none;

	open_queue(&q, 0);
	none = closed_fd();
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		kevent_set_pipe(&ev, none, 1, 0, 0);
		CHECK_EQ(kevent_ctl_one(q.fd, cmds[i], &ev), -EBADF);
	}
	open_pipe(fd);
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		kevent_set_pipe(&ev, fd[0], 1, 0, 0);
		CHECK_EQ(kevent_ctl_one(q.fd, cmds[i], &ev), -ENOENT);
		kevent_set_user(&ev, 3, 1, 0, 0);
		CHECK_EQ(kevent_ctl_one(q.fd, cmds[i], &ev), -ENOENT);
	}
	kevent_set_user(&ev, 3, 1, 0, 0);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 1, &ev), 0);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_BROKEN | KEVENT_RET_DONE);
	CHECK_EQ(kevent_error(&ev), -ENOENT);
	MUST_EQ(add_pipe(q.fd, fd[0], 1, 0, 0), 0);
	CHECK_EQ(remove_file(q.fd, KEVENT_PIPE, fd[0]), 0);
	CHECK_EQ(remove_file(q.fd, KEVENT_PIPE, fd[0]), -ENOENT);
	close_queue(&q);
}

/*
 *	entry	0	1	2	3	4	5
 *	is	armed	ready	bad fd	armed	ready	duplicate of 0
 *
 * The four that are handed back come first, the armed two deliver.
 */
static void mixed_entries_are_distinguished(void)
{
	unsigned int counts[6] = {}, back[6] = {};
	struct ukevent ev[6];
	int fd[4][2], i;
	struct queue q;

	open_queue(&q, 0);
	for (i = 0; i < 4; i++)
		open_pipe(fd[i]);
	put_byte(fd[1][1]);
	put_byte(fd[3][1]);
	kevent_set_pipe(&ev[0], fd[0][0], 1, HAND_BACK | ET, 0);
	kevent_set_pipe(&ev[1], fd[1][0], 1, HAND_BACK | ET, 1);
	kevent_set_pipe(&ev[2], -1, 1, HAND_BACK | ET, 2);
	kevent_set_pipe(&ev[3], fd[2][0], 1, HAND_BACK | ET, 3);
	kevent_set_pipe(&ev[4], fd[3][0], 1, HAND_BACK | ET, 4);
	kevent_set_pipe(&ev[5], fd[0][0], 1, HAND_BACK | ET, 5);
	MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_ADD, 6, ev), 4);
	for (i = 0; i < 4; i++) {
		MUST(ev[i].ptr < 6);
		back[ev[i].ptr]++;
		CHECK(ev[i].ret_flags & KEVENT_RET_DONE);
		if (ev[i].ptr == 2)
			CHECK_EQ(kevent_error(&ev[i]), -EBADF);
		else if (ev[i].ptr == 5)
			CHECK_EQ(kevent_error(&ev[i]), -EEXIST);
		else
			CHECK_EQ(ev[i].ret_data[0], KEVENT_SOCKET_RECV);
	}
	CHECK(back[1] == 1 && back[2] == 1 && back[4] == 1 && back[5] == 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 4);
	CHECK_EQ(drain(&q, counts, 6), 0);
	put_byte(fd[0][1]);
	put_byte(fd[2][1]);
	CHECK_EQ(drain(&q, counts, 6), 2);
	CHECK(counts[0] == 1 && counts[3] == 1);
	close_queue(&q);
}

static void remove_counts_the_entries_that_failed(void)
{
	struct ukevent ev[3];
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], 1, 0, 0), 0);
	kevent_set_pipe(&ev[0], fd[1], 1, 0, 0);
	kevent_set_pipe(&ev[1], fd[0], 1, 0, 0);
	kevent_set_pipe(&ev[2], -1, 1, 0, 0);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_REMOVE, 3, ev), 2);
	CHECK_EQ(kevent_error(&ev[0]), -ENOENT);
	CHECK_EQ(ev[1].ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(kevent_error(&ev[2]), -EBADF);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

/*
 * The last two of six entries lie on a page that is not there:
 *
 *	| ev[0] ev[1] ev[2] ev[3] | (unmapped) ev[4] ev[5]
 *
 * Either the call did nothing and says EFAULT, or it says what it did.
 */
static struct ukevent *half_mapped(char **base)
{
	*base = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(*base != MAP_FAILED);
	MUST_EQ(munmap(*base + PAGE, PAGE), 0);
	return (struct ukevent *)(*base + PAGE) - 4;
}

static void half_mapped_array_adds_all_it_reports(void)
{
	unsigned int counts[6] = {}, i;
	struct ukevent *ev;
	struct queue q;
	int fd[4][2];
	long watches;
	char *base;
	int ret;

	open_queue(&q, 0);
	ev = half_mapped(&base);
	for (i = 0; i < 4; i++) {
		open_pipe(fd[i]);
		kevent_set_pipe(&ev[i], fd[i][0], 1, KEVENT_REQ_ET, i);
	}
	ret = kevent_ctl(q.fd, KEVENT_CTL_ADD, 6, ev);
	watches = fdinfo(q.fd, "kevent-watches");
	if (ret == -EFAULT)
		CHECK_EQ(watches, 0);
	else
		CHECK_EQ(ret, 0);
	for (i = 0; i < 4; i++)
		put_byte(fd[i][1]);
	CHECK_EQ(drain(&q, counts, 6), watches);
	/* The same again with memory: watches that exist are duplicates. */
	for (i = 0; i < 4; i++)
		kevent_set_pipe(&ev[i], fd[i][0], 1, KEVENT_REQ_ET, i);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_ADD, 4, ev), 4);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 4);
	close_queue(&q);
}

static void half_mapped_array_removes_all_it_reports(void)
{
	struct ukevent *ev;
	struct queue q;
	unsigned int i;
	long watches;
	char *base;
	int ret;

	open_queue(&q, 0);
	ev = half_mapped(&base);
	for (i = 0; i < 4; i++) {
		MUST_EQ(add_user(q.fd, i, 1, 0, i), 0);
		kevent_set_user(&ev[i], i, 1, 0, i);
	}
	ret = kevent_ctl(q.fd, KEVENT_CTL_REMOVE, 6, ev);
	watches = fdinfo(q.fd, "kevent-watches");
	CHECK_EQ(watches, ret == -EFAULT ? 4 : 0);
	CHECK(ret == -EFAULT || ret == 0);
	close_queue(&q);
}

/* An entry that the kernel cannot hand back stays a watch, which delivers. */
static void read_only_array_loses_nothing(void)
{
	struct ukevent *ev, got;
	struct queue q;
	int fd[2], ret;

	open_queue(&q, 0);
	open_pipe(fd);
	put_byte(fd[1]);
	ev = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(ev != MAP_FAILED);
	kevent_set_pipe(ev, fd[0], 1, HAND_BACK | KEVENT_REQ_ONESHOT, 3);
	MUST_EQ(mprotect(ev, PAGE, PROT_READ), 0);
	ret = kevent_ctl(q.fd, KEVENT_CTL_ADD, 1, ev);
	CHECK(ret == -EFAULT || ret == 0 || ret == 1);
	if (fdinfo(q.fd, "kevent-watches") == 1) {
		CHECK_EQ(next_event(&q, &got, 0), 1);
		CHECK_EQ(got.ptr, 3);
	} else {
		CHECK_EQ(ret, -EFAULT);
		CHECK_EQ(add_pipe(q.fd, fd[0], 1, HAND_BACK, 3), 1);
	}
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* The buffer ends after two of five events; they come out once each. */
static void half_mapped_buffer_gets_what_fits(void)
{
	unsigned int counts[5] = {}, i;
	struct ukevent *ev;
	struct queue q;
	char *base;
	int ret;

	open_queue(&q, 0);
	for (i = 0; i < 5; i++) {
		MUST_EQ(add_user(q.fd, i, 1, KEVENT_REQ_ONESHOT, i), 0);
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	}
	ev = half_mapped(&base) + 2;
	ret = get_events(q.fd, 5, 5, 0, ev);
	CHECK_EQ(ret, 2);
	for (i = 0; (int)i < ret; i++) {
		MUST(ev[i].ptr < 5);
		counts[ev[i].ptr]++;
	}
	CHECK_EQ(get_events(q.fd, 1, 5, 0, (void *)8), -EFAULT);
	CHECK_EQ(drain(&q, counts, 5), 3);
	for (i = 0; i < 5; i++)
		CHECK_EQ(counts[i], 1);
	close_queue(&q);
}

/* What happens to the ring's memory while events arrive */
enum loss { UNMAP, READ_ONLY, NO_ACCESS, LAST_PAGE_ONLY };

static void lose_ring(struct queue *q, enum loss loss)
{
	char *mem = (char *)q->ring;

	if (loss == UNMAP)
		MUST_EQ(munmap(mem, q->bytes), 0);
	else if (loss == READ_ONLY)
		MUST_EQ(mprotect(mem, q->bytes, PROT_READ), 0);
	else if (loss == NO_ACCESS)
		MUST_EQ(mprotect(mem, q->bytes, PROT_NONE), 0);
	else
		MUST_EQ(mprotect(mem + PAGE, q->bytes - PAGE, PROT_NONE), 0);
}

static void restore_ring(struct queue *q, enum loss loss, uint64_t uidx)
{
	if (loss != UNMAP) {
		MUST_EQ(mprotect(q->ring, q->bytes, PROT_READ | PROT_WRITE),
			0);
		return;
	}
	MUST(mmap(q->ring, q->bytes, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == q->ring);
	q->ring->ring_uidx = uidx;
	q->ring->ring_kidx = uidx;
}

/*
 * 120 one-shot marks arrive while the memory of 128 slots is gone. Slots 0 to
 * 98 are on the first page with the header, slot 99 is on both pages.
 */
static void check_ring_loss(enum loss loss, unsigned int before)
{
	unsigned int counts[160] = {}, i;
	struct ukevent ev;
	uint64_t uidx;
	struct queue q;
	int ret;

	open_queue(&q, 128);
	for (i = 0; i < 160; i++)
		MUST_EQ(add_user(q.fd, i, 1, KEVENT_REQ_ONESHOT, i), 0);
	for (i = 0; i < before; i++)
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	CHECK_EQ(drain(&q, counts, 160), before);
	uidx = q.ring->ring_uidx;
	lose_ring(&q, loss);
	for (; i < before + 120; i++)
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	if (loss != LAST_PAGE_ONLY) {
		CHECK_EQ(kevent_wait(q.fd, 128, (uint32_t)uidx, NULL, 0, NULL),
			 -EFAULT);
		/*
		 * The ring is readable, and its header says that nothing is
		 * unread.
		 */
		CHECK_EQ(kevent_commit(q.fd, (uint32_t)uidx + 1, 0),
			 loss == READ_ONLY ? -EINVAL : -EFAULT);
		MUST_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
		MUST(ev.ptr < 160);
		counts[ev.ptr]++;
	} else {
		/* The first page takes what fits, then the call faults. */
		ret = kevent_wait(q.fd, 128, (uint32_t)uidx, NULL, 0, NULL);
		CHECK(ret == -EFAULT || (ret > 0 && ret < 120));
	}
	restore_ring(&q, loss, uidx);
	drain(&q, counts, 160);
	for (i = 0; i < before + 120; i++)
		CHECK_EQ(counts[i], 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 40 - before);
	close_queue(&q);
}

static void unmapped_ring_loses_nothing(void)
{
	check_ring_loss(UNMAP, 0);
	check_ring_loss(UNMAP, 20);
}

static void read_only_ring_loses_nothing(void)
{
	check_ring_loss(READ_ONLY, 0);
	check_ring_loss(READ_ONLY, 20);
}

static void inaccessible_ring_loses_nothing(void)
{
	check_ring_loss(NO_ACCESS, 0);
	check_ring_loss(NO_ACCESS, 20);
}

static void half_mapped_ring_loses_nothing(void)
{
	check_ring_loss(LAST_PAGE_ONLY, 0);
	check_ring_loss(LAST_PAGE_ONLY, 20);
}

static int mark_zero(void *kq)
{
	return mark_user(*(int *)kq, 0, 1) != 1;
}

/*
 * The slots can be written, but not the header before them, which is at the end of
 * another page: an entry that nobody can see does not count.
 */
static void ring_without_its_header_loses_nothing(void)
{
	char *mem = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct queue q = { .size = 8 };
	unsigned int counts[1] = {};

	MUST(mem != MAP_FAILED);
	q.ring = (void *)(mem + PAGE - sizeof(*q.ring));
	q.fd = kevent_init(q.ring, q.size, 0);
	MUST(q.fd >= 0);
	MUST_EQ(add_user(q.fd, 0, 1, 0, 0), 0);
	MUST_EQ(join_child(start_child(mark_zero, &q.fd), PATIENCE_MS), 0);
	/* After the fork a store to the page faults; now it does not. */
	memset(q.ring->event, 0, sizeof(*q.ring->event));
	MUST_EQ(mprotect(mem, PAGE, PROT_READ), 0);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, NULL, 0, NULL), -EFAULT);
	MUST_EQ(mprotect(mem, PAGE, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(q.ring->ring_kidx, 0);
	CHECK_EQ(drain(&q, counts, 1), 1);
	close(q.fd);
	munmap(mem, 2 * PAGE);
}

/*
 * A waiter that sleeps when the memory goes away gets an error with the next
 * event.
 */
static void waiter_hears_of_a_lost_ring(void)
{
	unsigned int counts[1] = {};
	struct waiter w;
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 0, 1, 0, 0), 0);
	start_waiter(&w, &q, 8);
	lose_ring(&q, NO_ACCESS);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	CHECK_EQ(join_waiter(&w), -EFAULT);
	restore_ring(&q, NO_ACCESS, 0);
	CHECK_EQ(drain(&q, counts, 1), 1);
	close_queue(&q);
}

/* A ring moved by mremap() is lost; it can come back to its old place. */
static void moved_ring_faults(void)
{
	unsigned int counts[1] = {};
	struct queue q;
	void *moved;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 0, 1, 0, 0), 0);
	moved = mremap(q.ring, q.bytes, 2 * q.bytes, MREMAP_MAYMOVE);
	if (moved == q.ring)
		moved = mremap(q.ring, q.bytes, q.bytes,
			       MREMAP_MAYMOVE | MREMAP_FIXED,
			       (char *)q.ring + 64 * PAGE);
	MUST(moved != MAP_FAILED);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, NULL, 0, NULL), -EFAULT);
	restore_ring(&q, UNMAP, 0);
	CHECK_EQ(drain(&q, counts, 1), 1);
	close_queue(&q);
}

static void fd_closed_before_its_event(void)
{
	unsigned int counts[2] = {};
	struct queue q;
	int fd[2][2];

	open_queue(&q, 8);
	open_pipe(fd[0]);
	open_pipe(fd[1]);
	MUST_EQ(add_pipe(q.fd, fd[0][0], 1, 0, 0), 0);
	MUST_EQ(add_pipe(q.fd, fd[1][0], 1, KEVENT_REQ_ET, 1), 0);
	put_byte_from_outside(fd[0][1]);
	put_byte_from_outside(fd[1][1]);
	close(fd[0][0]);
	CHECK_EQ(drain(&q, counts, 2), 1);
	CHECK_EQ(counts[1], 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(add_names_what_is_wrong),
	TEST(duplicate_watch_is_refused),
	TEST(other_type_fd_or_file_is_no_duplicate),
	TEST(one_fd_may_have_two_types),
	TEST(missing_watch_is_enoent),
	TEST(mixed_entries_are_distinguished),
	TEST(remove_counts_the_entries_that_failed),
	TEST(half_mapped_array_adds_all_it_reports),
	TEST(half_mapped_array_removes_all_it_reports),
	TEST(read_only_array_loses_nothing),
	TEST(half_mapped_buffer_gets_what_fits),
	TEST(unmapped_ring_loses_nothing),
	TEST(read_only_ring_loses_nothing),
	TEST(inaccessible_ring_loses_nothing),
	TEST(half_mapped_ring_loses_nothing),
	TEST(ring_without_its_header_loses_nothing),
	TEST(waiter_hears_of_a_lost_ring),
	TEST(moved_ring_faults),
	TEST(fd_closed_before_its_event),
	{}
};

const struct test_suite errors_suite = { .name = "errors", .cases = cases };
