// SPDX-License-Identifier: GPL-2.0
/*
 * Queues that watch sets: other queues, epolls, io_urings
 *
 *	kevent --> kevent, epoll, io_uring	each mode
 *	chains of queues and epolls		up to 5 sets: MAX_CHAIN
 *	loops, longer chains, too many paths	refused, whoever closes them
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "sets.h"

#define USER		7

/* Sources */

enum kind {
	PLAIN_QUEUE,
	RING_QUEUE,
	URING,
	EPOLL,
};

static const char *const kind_names[] = {
	"queue", "queue with a ring", "io_uring", "epoll"
};

struct source {
	enum kind	kind;
	struct queue	q;
	struct uring	u;
	int		fd;
	int		leaf;		/* an eventfd, but for an io_uring */
};

static void open_source(struct source *s, enum kind kind)
{
	struct epoll_event ev = { .events = EPOLLIN };

	s->kind = kind;
	s->leaf = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (kind == URING) {
		map_uring(&s->u);
		s->fd = s->u.fd;
	} else if (kind == EPOLL) {
		s->fd = epoll_create1(EPOLL_CLOEXEC);
		MUST_EQ(epoll_ctl(s->fd, EPOLL_CTL_ADD, s->leaf, &ev), 0);
	} else {
		open_queue(&s->q, kind == RING_QUEUE ? 8 : 0);
		s->fd = s->q.fd;
		MUST_EQ(add_poll(s->fd, s->leaf, IN, ET, 1), 0);
	}
}

static void close_source(struct source *s)
{
	close(s->leaf);
	if (s->kind == PLAIN_QUEUE || s->kind == RING_QUEUE)
		close_queue(&s->q);
	else
		close(s->fd);
}

static void make_ready(struct source *s)
{
	if (s->kind == URING)
		submit_nop(&s->u);
	else
		MUST_EQ(eventfd_write(s->leaf, 1), 0);
}

/* An entry that a wake-up has stored is taken without a call. */
static void make_idle(struct source *s)
{
	struct ukevent ev;
	eventfd_t value;

	if (s->kind == URING) {
		MUST_EQ(take_completions(&s->u, NULL), 1);
		return;
	}
	if (s->kind == RING_QUEUE)
		MUST(kevent_ring_next(s->q.ring, s->q.size, &ev));
	else if (s->kind == PLAIN_QUEUE)
		MUST_EQ(next_event(&s->q, &ev, 0), 1);
	MUST_EQ(eventfd_read(s->leaf, &value), 0);
}

/* Modes */

static void must_report(struct queue *q)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ptr, USER);
	CHECK_EQ(ev.ret_data[0], IN);
	CHECK(!(ev.ret_flags & KEVENT_RET_BROKEN));
}

/* A source becomes ready while a consumer sleeps. */
static void must_wake(struct queue *q, struct source *s)
{
	struct waiter w;

	start_waiter(&w, q, 1);
	make_ready(s);
	CHECK_EQ(join_waiter(&w), 1);
	if (!q->size)
		CHECK_EQ(w.ev[0].ptr, USER);
	else
		must_report(q);
}

static void level_repeats(struct queue *q, struct source *s)
{
	int i;

	MUST_EQ(add_poll(q->fd, s->fd, IN, 0, USER), 0);
	for (i = 0; i < 3; i++) {
		CHECK_NO_EVENT(q);
		must_wake(q, s);
		must_report(q);
		must_report(q);
		make_idle(s);
		CHECK_NO_EVENT(q);
	}
}

static void edge_reports_once(struct queue *q, struct source *s)
{
	int i;

	MUST_EQ(add_poll(q->fd, s->fd, IN, ET, USER), 0);
	for (i = 0; i < 3; i++) {
		CHECK_NO_EVENT(q);
		must_wake(q, s);
		CHECK_NO_EVENT(q);
		make_idle(s);
	}
	/* What is over when the consumer comes is not reported. */
	make_ready(s);
	make_idle(s);
	CHECK_NO_EVENT(q);
}

static void oneshot_ends(struct queue *q, struct source *s)
{
	int i;

	for (i = 0; i < 2; i++) {
		MUST_EQ(add_poll(q->fd, s->fd, IN, ONESHOT, USER), 0);
		must_wake(q, s);
		CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
		make_idle(s);
		make_ready(s);
		CHECK_NO_EVENT(q);
		make_idle(s);
	}
}

static void dispatch_waits_for_modify(struct queue *q, struct source *s)
{
	struct ukevent ev;

	MUST_EQ(add_poll(q->fd, s->fd, IN, DISPATCH, USER), 0);
	must_wake(q, s);
	CHECK_NO_EVENT(q);
	make_idle(s);
	make_ready(s);
	CHECK_NO_EVENT(q);
	kevent_set_poll(&ev, s->fd, IN, DISPATCH, USER);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &ev), 0);
	must_report(q);
	make_idle(s);
}

static void with_source(struct queue *q, enum kind kind,
			void (*fn)(struct queue *q, struct source *s))
{
	struct source s;

	note("%s", kind_names[kind]);
	open_source(&s, kind);
	fn(q, &s);
	close_source(&s);
	/* The watch goes with the descriptor of the source. */
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_NO_EVENT(q);
}

/* But for epolls, which the module refuses */
static void each_source(struct queue *q,
			void (*fn)(struct queue *q, struct source *s))
{
	enum kind kind;

	for (kind = 0; kind < EPOLL; kind++)
		with_source(q, kind, fn);
}

static void level_watch_of_each_source_repeats(struct queue *q)
{
	each_source(q, level_repeats);
}

static void edge_watch_of_each_source_reports_once(struct queue *q)
{
	each_source(q, edge_reports_once);
}

static void oneshot_watch_of_each_source_ends(struct queue *q)
{
	each_source(q, oneshot_ends);
}

static void dispatch_watch_of_each_source_waits(struct queue *q)
{
	each_source(q, dispatch_waits_for_modify);
}

/* EPOLLRDNORM alone: epoll and io_uring wake up with EPOLLIN only. */
static void other_name_of_data(struct queue *q, struct source *s)
{
	struct ukevent ev;
	struct waiter w;

	MUST_EQ(add_poll(q->fd, s->fd, KEVENT_POLL_POLLRDNORM, 0, USER), 0);
	start_waiter(&w, q, 1);
	make_ready(s);
	CHECK_EQ(join_waiter(&w), 1);
	make_idle(s);
	next_event(q, &ev, 0);
}

static void other_name_of_data_wakes_too(struct queue *q)
{
	each_source(q, other_name_of_data);
}

static void source_that_is_ready_at_add(struct queue *q, struct source *s)
{
	make_ready(s);
	CHECK_EQ(add_poll(q->fd, s->fd, IN, KEVENT_REQ_HAND_BACK, USER), 1);
	MUST_EQ(remove_file(q->fd, KEVENT_POLL, s->fd), 0);
	MUST_EQ(add_poll(q->fd, s->fd, IN, 0, USER), 0);
	must_report(q);
	make_idle(s);
}

static void source_may_be_ready_at_add(struct queue *q)
{
	each_source(q, source_that_is_ready_at_add);
}

/* Several queues on one set take turns, as on any file. */
static void take_turns(struct queue *q, struct source *s)
{
	struct ukevent ev;
	struct queue other;
	int i, here = 0;

	open_queue(&other, 0);
	MUST_EQ(add_poll(q->fd, s->fd, IN, ET, USER), 0);
	MUST_EQ(add_poll(other.fd, s->fd, IN, ET, USER), 0);
	for (i = 0; i < 4; i++) {
		make_ready(s);
		if (next_event(q, &ev, 0) == 1)
			here++;
		else
			MUST_EVENT(&other, &ev);
		CHECK_NO_EVENT(&other);
		make_idle(s);
	}
	/* The kernel may take a ring that was read for unread. */
	CHECK(here == 2 || q->size);
	close_queue(&other);
}

static void queues_take_turns_with_a_set(struct queue *q)
{
	each_source(q, take_turns);
}

/* Types that a set is not of */
static void set_is_neither_socket_nor_pipe(struct queue *q, struct source *s)
{
	CHECK_EQ(add_socket(q->fd, s->fd, 1, 0, 0), -ENOTSOCK);
	CHECK_EQ(add_pipe(q->fd, s->fd, 1, 0, 0), -EINVAL);
}

static void other_types_refuse_sets(struct queue *q)
{
	each_source(q, set_is_neither_socket_nor_pipe);
	with_source(q, EPOLL, set_is_neither_socket_nor_pipe);
}

static void epoll_in_each_mode(struct queue *q)
{
	with_source(q, EPOLL, level_repeats);
	with_source(q, EPOLL, edge_reports_once);
	with_source(q, EPOLL, oneshot_ends);
	with_source(q, EPOLL, dispatch_waits_for_modify);
	with_source(q, EPOLL, other_name_of_data);
	with_source(q, EPOLL, source_that_is_ready_at_add);
	with_source(q, EPOLL, take_turns);
}

/* Chains */

/* Does a queue of the chain watch an epoll? Queues are where @kinds has a bit. */
static bool epoll_is_watched(unsigned int kinds)
{
	return kinds & (kinds + 1);
}

/* Opens @nr sets, queues where @kinds has a bit. */
static void open_sets(struct set *s, unsigned int nr, unsigned int kinds)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		open_set(&s[i], kinds >> i & 1);
}

static void close_sets(struct set *s, unsigned int nr)
{
	while (nr--)
		close_set(&s[nr]);
}

/* A chain in which each set but the first watches the one before */
static void link_chain(struct set *s, unsigned int nr, bool downwards)
{
	unsigned int i, at;

	for (i = 1; i < nr; i++) {
		at = downwards ? nr - i : i;
		MUST_EQ(set_add(&s[at], s[at - 1].q.fd, 0, 0), 0);
	}
}

static void drain_sets(struct set *s, unsigned int nr)
{
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < nr; i++)
		while (s[i].is_queue && next_event(&s[i].q, &ev, 0) == 1)
			;
}

static void check_chain(unsigned int kinds)
{
	struct set s[MAX_CHAIN];
	struct actor a;
	unsigned int i;
	eventfd_t value;
	int leaf;

	leaf = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	open_sets(s, MAX_CHAIN, kinds);
	MUST_EQ(set_add(&s[0], leaf, 0, 0), 0);
	link_chain(s, MAX_CHAIN, kinds & 1);
	start_actor(&a, poll_forever, &s[MAX_CHAIN - 1].q.fd);
	MUST(sleeps_in(a.tid, NR_POLL));
	MUST_EQ(eventfd_write(leaf, 1), 0);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, POLLIN);
	for (i = 0; i < MAX_CHAIN; i++)
		CHECK_EQ(poll_now(s[i].q.fd) & POLLIN, POLLIN);
	MUST_EQ(eventfd_read(leaf, &value), 0);
	drain_sets(s, MAX_CHAIN);
	for (i = 0; i < MAX_CHAIN; i++)
		CHECK_EQ(poll_now(s[i].q.fd), 0);
	close(leaf);
	close_sets(s, MAX_CHAIN);
}

static void event_wakes_chains_of_queues_below_epolls(void)
{
	unsigned int kinds;

	for (kinds = 0; kinds < 1 << MAX_CHAIN; kinds++)
		if (!epoll_is_watched(kinds))
			check_chain(kinds);
}

static void event_wakes_each_mixed_chain(void)
{
	unsigned int kinds;

	for (kinds = 0; kinds < 1 << MAX_CHAIN; kinds++)
		if (epoll_is_watched(kinds))
			check_chain(kinds);
}

/* Loops */

static void check_loop(unsigned int nr, unsigned int kinds, bool downwards)
{
	struct set s[MAX_CHAIN];
	bool itself = nr == 1 && !(kinds & 1);

	open_sets(s, nr, kinds);
	link_chain(s, nr, downwards);
	CHECK_EQ(set_add(&s[0], s[nr - 1].q.fd, 0, 0),
		 itself ? -EINVAL : -ELOOP);
	if (nr > 1) {
		/* Whatever opens it again makes room. */
		MUST_EQ(set_remove(&s[1], s[0].q.fd), 0);
		CHECK_EQ(set_add(&s[0], s[nr - 1].q.fd, 0, 0), 0);
		CHECK_EQ(set_add(&s[1], s[0].q.fd, 0, 0), -ELOOP);
	}
	close_sets(s, nr);
}

static void loop_of_queues_is_refused(void)
{
	unsigned int nr;

	for (nr = 1; nr <= MAX_CHAIN; nr++) {
		check_loop(nr, (1u << nr) - 1, false);
		check_loop(nr, (1u << nr) - 1, true);
	}
}

static void loop_of_any_kinds_is_refused(void)
{
	unsigned int nr, kinds;

	for (nr = 1; nr <= MAX_CHAIN; nr++)
		for (kinds = 0; kinds < (1u << nr) - 1; kinds++) {
			check_loop(nr, kinds, false);
			check_loop(nr, kinds, true);
		}
}

static void refused_watch_leaves_nothing(void)
{
	struct set s[2];
	long long bytes;

	open_sets(s, 2, 3);
	bytes = fdinfo(s[0].q.fd, "kevent-user-bytes");
	MUST_EQ(set_add(&s[1], s[0].q.fd, 0, 0), 0);
	CHECK_EQ(set_add(&s[0], s[1].q.fd, 0, 0), -ELOOP);
	CHECK_EQ(fdinfo(s[0].q.fd, "kevent-watches"), 0);
	CHECK_EQ(set_remove(&s[0], s[1].q.fd), -ENOENT);
	/* A watch of a set is charged with more than others. */
	CHECK(fdinfo(s[0].q.fd, "kevent-user-bytes") > bytes + 500);
	MUST_EQ(set_remove(&s[1], s[0].q.fd), 0);
	CHECK_EQ(fdinfo(s[0].q.fd, "kevent-user-bytes"), bytes);
	close_sets(s, 2);
}

/* The same file, under other descriptors */
static void loop_through_another_descriptor(unsigned int kinds)
{
	struct set s[2];
	int sock[2], got, copy;

	open_sets(s, 2, kinds);
	MUST_EQ(set_add(&s[1], s[0].q.fd, 0, 0), 0);
	copy = dup(s[1].q.fd);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	send_fd(sock[0], s[1].q.fd);
	got = receive_fd(sock[1]);
	MUST(got >= 0 && copy >= 0);
	CHECK_EQ(set_add(&s[0], got, 0, 0), -ELOOP);
	CHECK_EQ(set_add(&s[0], copy, 0, 0), -ELOOP);
	close_sets(s, 2);
	/* Now only the copies are left, and watched nobody. */
	close(got);
	close(copy);
}

static void loop_through_another_descriptor_is_refused(void)
{
	loop_through_another_descriptor(3);
	/* An epoll watches the queue. */
	loop_through_another_descriptor(1);
}

static void loop_of_an_epoll_through_another_descriptor_is_refused(void)
{
	loop_through_another_descriptor(2);
}

/* A set in its own socket: watches hold no references, so all of it goes. */
static void queue_in_a_socket_that_it_watches_goes(void)
{
	struct set s[2];
	int sock[2], i;

	for (i = 0; i < 50; i++) {
		open_sets(s, 2, 3);
		MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				   sock), 0);
		MUST_EQ(set_add(&s[0], sock[1], 0, 0), 0);
		MUST_EQ(set_add(&s[1], s[0].q.fd, 0, 0), 0);
		send_fd(sock[0], s[0].q.fd);
		send_fd(sock[0], s[1].q.fd);
		CHECK_EQ(poll_now(s[1].q.fd) & POLLIN, POLLIN);
		close(sock[1]);
		CHECK_EQ(fdinfo(s[0].q.fd, "kevent-watches"), 0);
		close_sets(s, 2);
		close(sock[0]);
	}
	open_set(&s[0], true);
	CHECK_EQ(fdinfo(s[0].q.fd, "kevent-user-bytes"), 0);
	close_set(&s[0]);
}

/* Limits */

/* The watch at @last closes a chain of one more set than there may be. */
static void check_too_long(unsigned int kinds, unsigned int last)
{
	struct set s[MAX_CHAIN + 1];
	unsigned int i;

	open_sets(s, MAX_CHAIN + 1, kinds);
	for (i = 1; i <= MAX_CHAIN; i++)
		if (i != last)
			MUST_EQ(set_add(&s[i], s[i - 1].q.fd, 0, 0), 0);
	CHECK_EQ(set_add(&s[last], s[last - 1].q.fd, 0, 0), -ELOOP);
	/* One link less anywhere, and it fits. */
	i = last == 1 ? 2 : 1;
	MUST_EQ(set_remove(&s[i], s[i - 1].q.fd), 0);
	CHECK_EQ(set_add(&s[last], s[last - 1].q.fd, 0, 0), 0);
	close_sets(s, MAX_CHAIN + 1);
}

#define ALL_QUEUES	((1 << (MAX_CHAIN + 1)) - 1)

static void chain_of_queues_has_five_sets(void)
{
	unsigned int last;

	for (last = 1; last <= MAX_CHAIN; last++)
		check_too_long(ALL_QUEUES, last);
}

static void chain_of_any_kinds_has_five_sets(void)
{
	unsigned int kinds, last;

	for (kinds = 0; kinds < ALL_QUEUES; kinds++)
		for (last = 1; last <= MAX_CHAIN; last++)
			check_too_long(kinds, last);
}

/*
 * From the set at the bottom there are 1, 4, 16, 64 paths upwards over layers of 4. The
 * limits of epoll for 2, 3, 4 sets on the way are 500, 100, 50.
 */
static void check_paths(unsigned int kinds, bool top)
{
	struct set bottom, layer[3][4], last;
	unsigned int i, j, k;

	open_set(&bottom, true);
	open_set(&last, top);
	for (i = 0; i < 3; i++)
		open_sets(layer[i], 4, kinds);
	for (j = 0; j < 4; j++)
		MUST_EQ(set_add(&layer[0][j], bottom.q.fd, 0, 0), 0);
	for (i = 1; i < 3; i++)
		for (j = 0; j < 4; j++)
			for (k = 0; k < 4; k++)
				MUST_EQ(set_add(&layer[i][j],
						layer[i - 1][k].q.fd, 0, 0),
					0);
	for (j = 0; j < 4; j++)
		CHECK_EQ(set_add(&last, layer[2][j].q.fd, 0, 0),
			 j < 3 ? 0 : top ? -ENOSPC : -EINVAL);
	close_set(&last);
	for (i = 0; i < 3; i++)
		close_sets(layer[i], 4);
	close_set(&bottom);
}

static void number_of_paths_of_queues_is_limited(void)
{
	check_paths(0xf, true);
}

static void number_of_paths_is_limited(void)
{
	check_paths(0x5, true);
	check_paths(0x5, false);
}

#define MANY	4200

/* A check follows 4096 links of queues. */
static void width_of_a_checked_queue_is_limited(void)
{
	struct set wide, top, below;
	unsigned int i;

	open_fds(MANY + 100);
	open_set(&wide, true);
	open_set(&top, true);
	for (i = 0; i < 4096; i++) {
		open_set(&below, true);
		MUST_EQ(set_add(&wide, below.q.fd, 0, 0), 0);
	}
	CHECK_EQ(set_add(&top, wide.q.fd, 0, 0), 0);
	MUST_EQ(set_remove(&top, wide.q.fd), 0);
	open_set(&below, true);
	MUST_EQ(set_add(&wide, below.q.fd, 0, 0), 0);
	CHECK_EQ(set_add(&top, wide.q.fd, 0, 0), -ELOOP);
	close_set(&below);
	CHECK_EQ(set_add(&top, wide.q.fd, 0, 0), 0);
	close_set(&top);
	close_set(&wide);
}

/* io_uring */

/* The ring is a file of the queue, and polls it: each wake-up leads to the next. */
static void check_circle(uint32_t flags, bool multishot, bool through_epoll)
{
	struct set s, middle;
	struct uring u;
	unsigned int i, nr = 0;
	int leaf;

	leaf = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	map_uring(&u);
	open_set(&s, true);
	open_set(&middle, !through_epoll);
	MUST_EQ(set_add(&s, leaf, 0, 0), 0);
	MUST_EQ(set_add(&s, u.fd, flags, 0), 0);
	MUST_EQ(set_add(&middle, s.q.fd, flags, 0), 0);
	submit_poll(&u, middle.q.fd, multishot);
	MUST_EQ(eventfd_write(leaf, 1), 0);
	for (i = 0; i < 50; i++) {
		enter_uring(&u);
		nr += take_completions(&u, NULL);
	}
	/* The one of the eventfd, and one of what that led to. */
	CHECK(nr >= 1);
	CHECK(nr <= 2);
	close_uring(&u);
	close(leaf);
	close_set(&middle);
	close_set(&s);
}

static void circle_through_io_uring_ends(void)
{
	static const uint32_t flags[] = { 0, ET, DISPATCH };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		check_circle(flags[i], false, false);
		check_circle(flags[i], true, false);
		check_circle(flags[i], true, true);
	}
}

/* The ring's own eventfd is a file of the queue that the ring polls. */
static void circle_through_the_eventfd_of_io_uring_ends(void)
{
	struct uring u;
	struct set s;
	unsigned int i, nr = 0;
	int leaf, own;

	leaf = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	own = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	map_uring(&u);
	MUST_EQ(syscall(__NR_io_uring_register, u.fd, IORING_REGISTER_EVENTFD,
			&own, 1), 0);
	open_set(&s, true);
	MUST_EQ(set_add(&s, leaf, ET, 0), 0);
	MUST_EQ(set_add(&s, own, ET, 0), 0);
	submit_poll(&u, s.q.fd, true);
	MUST_EQ(eventfd_write(leaf, 1), 0);
	for (i = 0; i < 50; i++) {
		enter_uring(&u);
		nr += take_completions(&u, NULL);
	}
	CHECK(nr >= 1);
	CHECK(nr <= 2);
	close_uring(&u);
	close_set(&s);
}

static const struct test_case cases[] = {
	TEST_EACH(level_watch_of_each_source_repeats),
	TEST_EACH(edge_watch_of_each_source_reports_once),
	TEST_EACH(oneshot_watch_of_each_source_ends),
	TEST_EACH(dispatch_watch_of_each_source_waits),
	TEST_EACH(other_name_of_data_wakes_too),
	TEST_EACH(source_may_be_ready_at_add),
	TEST_EACH(other_types_refuse_sets),
	TEST_EACH(queues_take_turns_with_a_set),
	TEST_EACH(epoll_in_each_mode),
	TEST(event_wakes_chains_of_queues_below_epolls),
	TEST(event_wakes_each_mixed_chain),
	TEST(loop_of_queues_is_refused),
	TEST(loop_of_any_kinds_is_refused),
	TEST(refused_watch_leaves_nothing),
	TEST(loop_through_another_descriptor_is_refused),
	TEST(loop_of_an_epoll_through_another_descriptor_is_refused),
	TEST(queue_in_a_socket_that_it_watches_goes),
	TEST(chain_of_queues_has_five_sets),
	TEST(chain_of_any_kinds_has_five_sets),
	TEST(number_of_paths_of_queues_is_limited),
	TEST(number_of_paths_is_limited),
	TEST_LIMIT(width_of_a_checked_queue_is_limited, 60),
	TEST(circle_through_io_uring_ends),
	TEST(circle_through_the_eventfd_of_io_uring_ends),
	{}
};

const struct test_suite nested_suite = { .name = "nested", .cases = cases };
