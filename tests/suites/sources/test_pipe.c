// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_PIPE: what each end of a pipe or FIFO reports
 *
 *	end	state				mask
 *	read	empty				-
 *	read	data				RECV
 *	read	no writer left			HUP (with data: RECV | HUP)
 *	write	room				SEND
 *	write	full				-
 *	write	no reader left			ERR (with room: SEND | ERR)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "helpers.h"
#include "pairs.h"

static void check_mask(struct queue *q, uint32_t mask)
{
	struct ukevent ev;

	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.type, KEVENT_PIPE);
	CHECK_EQ(ev.ret_data[0], mask);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
}

static void data_is_recv(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 0x1122334455667788ull), 0);
	put_byte(fd[1]);
	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.id.raw[0], fd[0]);
	CHECK_EQ(ev.id.raw[1], 0);
	CHECK_EQ(ev.type, KEVENT_PIPE);
	CHECK_EQ(ev.event, RECV);
	CHECK_EQ(ev.req_flags, 0);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.ret_data[0], RECV);
	CHECK(ev.ret_data[1] == 0 || ev.ret_data[1] == 1);
	CHECK_EQ(ev.ptr, 0x1122334455667788ull);
}

static void last_writer_gone_is_hup(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 0), 0);
	put_byte_from_outside(fd[1]);
	close(fd[1]);
	check_mask(q, RECV | HUP);
	CHECK_EQ(take_bytes(fd[0]), 1);
	check_mask(q, HUP);
	check_mask(q, HUP);
}

static void hup_is_reported_once_per_edge(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ET, 0), 0);
	close(fd[1]);
	check_mask(q, HUP);
	CHECK_NO_EVENT(q);
}

/* Reported always, whatever the watch asks for */
static void hup_needs_no_interest(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	CHECK_EQ(add_pipe(q.fd, fd[0], SEND, 0, 0), 0);
	put_byte(fd[1]);
	CHECK_NO_EVENT(&q);
	close(fd[1]);
	check_mask(&q, HUP);
	close_queue(&q);
}

static void room_is_send(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	fill(fd[1]);
	CHECK_EQ(add_pipe(q->fd, fd[1], SEND, 0, 0), 0);
	CHECK_NO_EVENT(q);
	CHECK(take_bytes(fd[0]) > 0);
	check_mask(q, SEND);
	fill(fd[1]);
	CHECK_NO_EVENT(q);
}

static void broken_pipe(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	fill(fd[1]);
	CHECK_EQ(add_pipe(q->fd, fd[1], SEND, 0, 0), 0);
	close(fd[0]);
	check_mask(q, ERR);
}

static void last_reader_gone_is_err(void)
{
	struct queue q;
	int fd[2];

	each_queue(broken_pipe);
	open_queue(&q, 0);
	open_pipe(fd);
	CHECK_EQ(add_pipe(q.fd, fd[1], RECV, 0, 0), 0);
	close(fd[0]);
	check_mask(&q, ERR);
	CHECK_EQ(remove_file(q.fd, KEVENT_PIPE, fd[1]), 0);
	CHECK_EQ(add_pipe(q.fd, fd[1], SEND, 0, 0), 0);
	check_mask(&q, SEND | ERR);
	close_queue(&q);
}

static void state_at_add_is_handed_back(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	put_byte(fd[1]);
	close(fd[1]);
	kevent_set_pipe(&ev, fd[0], RECV, HAND_BACK | ET, 0);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_ADD, 1, &ev), 1);
	CHECK_EQ(ev.ret_data[0], RECV | HUP);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	close_queue(&q);
}

static void accept_is_no_pipe_event(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_ACCEPT, 0, 0), -EINVAL);
	close_queue(&q);
}

/*
 * A FIFO opened for both has a wait queue for readers and one for writers; one
 * watch gets events from both.
 */
static void fifo_for_both_reports_both_ends(void)
{
	char path[] = "/tmp/kevent-fifo-XXXXXX";
	struct ukevent ev;
	unsigned int full;
	struct queue q;
	int fd;

	MUST(mkdtemp(path));
	MUST_EQ(chdir(path), 0);
	MUST_EQ(mkfifo("fifo", 0600), 0);
	fd = open("fifo", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	MUST(fd >= 0);
	open_queue(&q, 0);
	CHECK_EQ(add_pipe(q.fd, fd, RECV | SEND, HAND_BACK | ET, 0), 1);
	put_byte(fd);
	MUST_EVENT(&q, &ev);
	CHECK(ev.ret_data[0] & RECV);
	CHECK_NO_EVENT(&q);
	fill(fd);
	CHECK_EQ(remove_file(q.fd, KEVENT_PIPE, fd), 0);
	CHECK_EQ(add_pipe(q.fd, fd, SEND, KEVENT_REQ_LAST_CHECK, 0), 0);
	CHECK_NO_EVENT(&q);
	full = take_bytes(fd);
	CHECK(full > 4096);
	check_mask(&q, SEND);
	close_queue(&q);
	CHECK_EQ(unlink("fifo"), 0);
	CHECK_EQ(rmdir(path), 0);
}

static void both_ends_in_one_queue(void)
{
	unsigned int counts[2] = {};
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	fill(fd[1]);
	CHECK_EQ(add_pipe(q.fd, fd[0], RECV, HAND_BACK | ET, 0), 1);
	CHECK_EQ(add_pipe(q.fd, fd[1], SEND, ET, 1), 0);
	CHECK(take_bytes(fd[0]) > 0);
	drain(&q, counts, 2);
	CHECK_EQ(counts[0], 0);
	CHECK_EQ(counts[1], 1);
	put_byte(fd[1]);
	drain(&q, counts, 2);
	CHECK_EQ(counts[0], 1);
	CHECK_EQ(counts[1], 1);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(data_is_recv),
	TEST_EACH(last_writer_gone_is_hup),
	TEST_EACH(hup_is_reported_once_per_edge),
	TEST(hup_needs_no_interest),
	TEST_EACH(room_is_send),
	TEST(last_reader_gone_is_err),
	TEST(state_at_add_is_handed_back),
	TEST(accept_is_no_pipe_event),
	TEST(fifo_for_both_reports_both_ends),
	TEST(both_ends_in_one_queue),
	{}
};

const struct test_suite pipe_suite = { .name = "pipe", .cases = cases };
