// SPDX-License-Identifier: GPL-2.0
/*
 * The n-th allocation, or copy from or to user memory, of a call fails
 *
 *	n = 1, 2, ...	a new queue, on which an event waits
 *			the call, whose n-th allocation or copy fails
 *			it said a documented errno and changed nothing, or succeeded
 *			the call again, now without a fault: succeeds
 *			what was asked for works; the event that waited comes, once
 *			the queue is closed: descriptors and charges are as before
 *	until the call has fewer than n
 *
 * /proc/self/fail-nth says which one, for this thread alone. Leaks are for kmemleak.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"
#include "proc.h"
#include "signals.h"
#include "timers.h"

#define SIZE		64		/* of the ring */
#define MANY		150		/* more than two blocks of the index hold */
#define MOST_FAULTS	500
#define TEXT		(1 << 15)
#define ID		77		/* of the watch of USER */

/* User values: of the event that waits, and of the watch the call is about */
enum { WAITED, NEW, VALUES };

struct source;
struct path;

struct scene {
	struct queue		q;
	const struct source	*source;
	const struct path	*path;
	bool			given;		/* SCM: the call has succeeded */
	bool			hit;		/* the fault has come */
	int			waits[2];	/* a pipe that has data */
	int			fd[2];
	int			other;		/* what the call made: a descriptor, a timer */
	struct child		child;
	uint32_t		word;
	struct ukevent		ev[MANY];
	struct kevent_wait_arg	arg;
	struct kevent_change	change;
	sigset_t		mask;
	char			before[TEXT], after[TEXT];
	unsigned int		fds;
	uint64_t		free_fds;
	long long		bytes;
};

/**
 * struct path - a call that is to fail
 * @name:	for the report
 * @errors:	what it may say then, other than ENOMEM
 * @prepare:	makes what it needs on the new queue
 * @call:	the call: -errno, or it was successful
 * @changes:	failed, it may have changed the queue: @again does not look
 * @fire:	makes events: returns how many of the watch NEW must come
 * @end:	releases what @prepare made
 */
struct path {
	const char	*name;
	int		errors[2];
	void		(*prepare)(struct scene *s);
	int		(*call)(struct scene *s);
	bool		changes;
	unsigned int	(*fire)(struct scene *s);
	void		(*end)(struct scene *s);
};

/**
 * struct source - how a watch of it is made
 * @name:	for the report
 * @open:	makes what is watched
 * @set:	fills in an entry, with the user value NEW and ET if it has that
 * @fire:	makes an event
 * @close:	undoes @open
 * @marks:	READY is for it: it makes an event
 */
struct source {
	const char	*name;
	void		(*open)(struct scene *s);
	void		(*set)(struct scene *s, struct ukevent *ev);
	void		(*fire)(struct scene *s);
	void		(*close)(struct scene *s);
	bool		marks;
};

/* Of a user who has no other queue while a test runs: charges are his alone. */
static int observer = -1;
static int nth_file = -1;

/* Faults */

static void set_failures(const char *kind)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait",
		 kind);
	if (!access(path, F_OK))
		write_file(path, "N");
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", kind);
	write_file(path, "0");
}

static void allow_failures(void)
{
	set_failures("failslab");
	set_failures("fail_page_alloc");
	set_failures("fail_usercopy");
	write_file("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	nth_file = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	MUST(nth_file >= 0);
	observer = kevent_init(NULL, 0, 0);
	MUST(observer >= 0);
}

/* The fault that a call had not may hit this write, but then not the second one. */
static void set_nth(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth_file, text, len, 0) != len)
		MUST_EQ(pwrite(nth_file, text, len, 0), len);
}

/* Did the fault happen? Reading is a copy, too: it fails if it is the n-th. */
static bool was_hit(void)
{
	char text[16] = "";
	ssize_t len = pread(nth_file, text, sizeof(text) - 1, 0);

	return len > 0 && !strtoul(text, NULL, 10);
}

/* States */

/* The numbers that are free. One that is reserved, without a file, is not. */
static uint64_t free_fds(void)
{
	uint64_t mask = 0;
	int i, fd;

	for (i = 0; i < 64; i++) {
		fd = fcntl(0, F_DUPFD_CLOEXEC, i);
		MUST(fd >= 0);
		if (fd == i)
			mask |= 1ull << i;
		close(fd);
	}
	return mask;
}

/* All that fdinfo says, but for times that pass */
static void take_state(struct scene *s, char *text)
{
	char path[40], *line;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", s->q.fd);
	read_file(path, text, TEXT);
	line = strstr(text, "kevent-misses:");
	if (line)
		memset(line, ' ', strcspn(line, "\n"));
}

static void open_scene(struct scene *s)
{
	s->fds = count_fds();
	s->free_fds = free_fds();
	s->bytes = fdinfo(observer, "kevent-user-bytes");
	s->given = false;
	s->other = -1;
	s->fd[0] = s->fd[1] = -1;
	open_queue(&s->q, SIZE);
	open_pipe(s->waits);
	/* A wake-up does not store the event of such a watch: it waits. */
	MUST_EQ(add_pipe(s->q.fd, s->waits[0], KEVENT_SOCKET_RECV,
			 ET | KEVENT_REQ_LAST_CHECK, WAITED), 0);
	put_byte(s->waits[1]);
	if (s->path->prepare)
		s->path->prepare(s);
}

static void close_all(int *fd, unsigned int nr)
{
	for (; nr--; fd++)
		if (*fd >= 0)
			close(*fd);
}

static void close_scene(struct scene *s)
{
	uint64_t start = now_ns();

	if (s->path->end)
		s->path->end(s);
	close_all(s->fd, 2);
	close_all(s->waits, 2);
	close_queue(&s->q);
	CHECK_EQ(count_fds(), s->fds);
	CHECK_EQ(free_fds(), s->free_fds);
	while (fdinfo(observer, "kevent-user-bytes") != s->bytes)
		if (!patient(start, PATIENCE_MS))
			break;
	CHECK_EQ(fdinfo(observer, "kevent-user-bytes"), s->bytes);
}

/* The event that waited and @want of the watch NEW come, each once. */
static void check_events(struct scene *s, unsigned int want)
{
	unsigned int counts[VALUES] = {};
	uint64_t start = now_ns();

	do
		drain(&s->q, counts, VALUES);
	while ((counts[WAITED] < 1 || counts[NEW] < want) &&
	       patient(start, PATIENCE_MS));
	drain(&s->q, counts, VALUES);
	CHECK_EQ(counts[WAITED], 1);
	CHECK_EQ(counts[NEW], want);
}

static bool is_documented(const struct path *p, int err)
{
	/* The module copies the arguments of each call: they are in a structure. */
	if (on_module() && err == -EFAULT)
		return true;
	return err == -ENOMEM || err == p->errors[0] || err == p->errors[1];
}

static void check_failed(struct scene *s, int err)
{
	CHECK(is_documented(s->path, err));
	if (s->path->changes)
		return;
	take_state(s, s->after);
	if (!CHECK(!strcmp(s->before, s->after)))
		note("before: %s\nafter: %s", s->before, s->after);
	CHECK(s->path->call(s) >= 0);
}

/* Returns false when the call had fewer than @n allocations and copies. */
static bool fail_once(struct scene *s, unsigned int n)
{
	unsigned int failed = CU_get_number_of_failures();
	bool hit;
	int ret;

	open_scene(s);
	take_state(s, s->before);
	set_nth(n);
	ret = s->path->call(s);
	hit = was_hit();
	s->hit = hit;
	set_nth(0);
	if (ret < 0)
		check_failed(s, ret);
	CHECK(hit || ret >= 0);
	check_events(s, s->path->fire ? s->path->fire(s) : 0);
	close_scene(s);
	if (CU_get_number_of_failures() > failed)
		note("%s %s: %u, returned %d", s->path->name,
		     s->source ? s->source->name : "", n, ret);
	return hit;
}

static void fail_each(const struct path *p, const struct source *source,
		      unsigned int least)
{
	static struct scene s;
	unsigned int n = 1;

	if (nth_file < 0)
		allow_failures();
	s.path = p;
	s.source = source;
	while (n < MOST_FAULTS && fail_once(&s, n))
		n++;
	CHECK(n - 1 >= least);
	CHECK(n < MOST_FAULTS);
	note("%s %s: %u", p->name, source ? source->name : "", n - 1);
}

/* Sources */

static void set_id(struct scene *s, struct ukevent *ev)
{
	(void)s;
	kevent_set_user(ev, ID, 1, ET, NEW);
}

static void mark_it(struct scene *s)
{
	MUST_EQ(mark_user(s->q.fd, ID, 1), 1);
}

static void open_two(struct scene *s)
{
	open_pipe(s->fd);
}

static void set_two(struct scene *s, struct ukevent *ev)
{
	kevent_set_pipe(ev, s->fd[0], KEVENT_SOCKET_RECV, ET, NEW);
}

static void write_two(struct scene *s)
{
	put_byte(s->fd[1]);
}

static void open_stream(struct scene *s)
{
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s->fd), 0);
}

static void set_stream(struct scene *s, struct ukevent *ev)
{
	kevent_set_socket(ev, s->fd[0], KEVENT_SOCKET_RECV, ET, NEW);
}

static void open_counter(struct scene *s)
{
	s->fd[0] = eventfd(0, EFD_CLOEXEC);
	MUST(s->fd[0] >= 0);
}

static void set_input(struct scene *s, struct ukevent *ev)
{
	kevent_set_poll(ev, s->fd[0], KEVENT_POLL_POLLIN, ET, NEW);
}

static void add_to_counter(struct scene *s)
{
	const uint64_t one = 1;

	MUST_EQ(write(s->fd[0], &one, sizeof(one)), sizeof(one));
}

/* Its ->poll() uses two wait queues. */
static void open_fifo(struct scene *s)
{
	char name[] = "/tmp/fail-nth";

	unlink(name);
	MUST_EQ(mkfifo(name, 0600), 0);
	s->fd[0] = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	s->fd[1] = open(name, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	MUST(s->fd[0] >= 0 && s->fd[1] >= 0);
	unlink(name);
}

/* A queue that watches a pipe */
static void open_inner(struct scene *s)
{
	open_pipe(s->fd);
	s->other = kevent_init(NULL, 0, 0);
	MUST(s->other >= 0);
	MUST_EQ(add_pipe(s->other, s->fd[0], KEVENT_SOCKET_RECV, ET, 0), 0);
}

static void open_epoll(struct scene *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	open_pipe(s->fd);
	s->other = epoll_create1(EPOLL_CLOEXEC);
	MUST(s->other >= 0);
	MUST_EQ(epoll_ctl(s->other, EPOLL_CTL_ADD, s->fd[0], &ev), 0);
}

static void set_other(struct scene *s, struct ukevent *ev)
{
	kevent_set_poll(ev, s->other, KEVENT_POLL_POLLIN, ET, NEW);
}

static void close_other(struct scene *s)
{
	close_all(&s->other, 1);
}

static void set_expiry(struct scene *s, struct ukevent *ev)
{
	(void)s;
	kevent_set_timer(ev, 1000000, 0, KEVENT_TIMER_FIRED,
			 KEVENT_REQ_ONESHOT | KEVENT_REQ_DISABLED, NEW);
	ev->event &= ~KEVENT_TIMER_INTERVAL;
}

static void arm_timer(struct scene *s)
{
	struct ukevent ev;

	set_expiry(s, &ev);
	ev.req_flags &= ~KEVENT_REQ_DISABLED;
	MUST_EQ(kevent_ctl_one(s->q.fd, KEVENT_CTL_MODIFY, &ev), 0);
}

static void set_sigusr1(struct scene *s, struct ukevent *ev)
{
	(void)s;
	kevent_set_signal(ev, SIGUSR1, KEVENT_SIGNAL_CONSUME, 0, NEW);
}

static void send_sigusr1(struct scene *s)
{
	(void)s;
	MUST_EQ(kill(getpid(), SIGUSR1), 0);
}

static void open_child(struct scene *s)
{
	spawn(&s->child, 0);
}

static void set_child(struct scene *s, struct ukevent *ev)
{
	kevent_set_proc(ev, s->child.pid, 0, NEW);
}

static void end_child(struct scene *s)
{
	let_go(&s->child);
	s->child.gate[1] = -1;
}

static void close_child(struct scene *s)
{
	kill(s->child.pid, SIGKILL);
	reap(&s->child);
	close_all(&s->child.gate[1], 1);
}

static void set_word(struct scene *s, struct ukevent *ev)
{
	kevent_set_futex(ev, &s->word, 0, KEVENT_FUTEX_PRIVATE, 0, NEW);
}

static void wake_word(struct scene *s)
{
	MUST_EQ(syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
			0), 1);
}

static void open_tmpfile(struct scene *s)
{
	s->fd[0] = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	MUST(s->fd[0] >= 0);
}

static void set_file(struct scene *s, struct ukevent *ev)
{
	kevent_set_inode(ev, s->fd[0], KEVENT_INODE_MODIFY, 0, NEW);
}

static void write_to_file(struct scene *s)
{
	put_byte(s->fd[0]);
}

#ifdef __LP64__	/* a chain of a 32-bit program is refused */

/* A chain that takes a byte */
static struct kevent_call *taking(struct scene *s)
{
	static struct kevent_call c;
	static char byte;

	c = (struct kevent_call){
		.nr = SYS_read,
		.args = { (uint64_t)s->fd[0], KEVENT_ARG(&byte), 1 },
	};
	return &c;
}

#endif

static const struct source sources[] = {
	{ "USER", NULL, set_id, mark_it, NULL, true },
	{ "PIPE", open_two, set_two, write_two, NULL, false },
	{ "SOCKET", open_stream, set_stream, write_two, NULL, false },
	{ "POLL of an eventfd", open_counter, set_input, add_to_counter, NULL,
	  false },
	{ "POLL of two wait queues", open_fifo, set_input, write_two, NULL,
	  false },
	{ "POLL of a queue", open_inner, set_other, write_two, close_other,
	  false },
	{ "POLL of an epoll", open_epoll, set_other, write_two, close_other,
	  false },
	{ "TIMER", NULL, set_expiry, arm_timer, NULL, false },
	{ "SIGNAL", NULL, set_sigusr1, send_sigusr1, NULL, false },
	{ "PROC", open_child, set_child, end_child, close_child, false },
	{ "FUTEX", NULL, set_word, wake_word, NULL, false },
	{ "INODE", open_tmpfile, set_file, write_to_file, NULL, false },
};

static int control_it(struct scene *s, uint32_t cmd)
{
	s->source->set(s, &s->ev[0]);
	return kevent_ctl_one(s->q.fd, cmd, &s->ev[0]);
}

static void open_source(struct scene *s)
{
	if (s->source->open)
		s->source->open(s);
}

static void open_watch(struct scene *s)
{
	open_source(s);
	MUST_EQ(control_it(s, KEVENT_CTL_ADD), 0);
}

static unsigned int fire_it(struct scene *s)
{
	s->source->fire(s);
	return 1;
}

static void end_source(struct scene *s)
{
	if (s->source->close)
		s->source->close(s);
}

static int add_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_ADD);
}

static int modify_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_MODIFY);
}

static int remove_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_REMOVE);
}

static int ready_it(struct scene *s)
{
	return control_it(s, KEVENT_CTL_READY);
}

static unsigned int no_event(struct scene *s)
{
	CHECK_EQ(fdinfo(s->q.fd, "kevent-watches"), 1);
	return 0;
}

static unsigned int one_event(struct scene *s)
{
	(void)s;
	return 1;
}

static void fail_each_source(const struct path *p, bool marks, unsigned int least)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (!marks || sources[i].marks)
			fail_each(p, &sources[i], least);
}

/* The entry is read, and memory allocated for the watch. */
static void add_of_each_source(void)
{
	static const struct path add = {
		.name = "ADD", .errors = { -EFAULT }, .prepare = open_source,
		.call = add_it, .fire = fire_it, .end = end_source,
	};
	unsigned int i;

	/* An allocation that is not made each time moves the numbers of those behind it. */
	for (i = 0; i < 3; i++)
		fail_each_source(&add, false, 2);
}

static void modify_of_each_source(void)
{
	static const struct path modify = {
		.name = "MODIFY", .errors = { -EFAULT }, .prepare = open_watch,
		.call = modify_it, .fire = fire_it, .end = end_source,
	};

	fail_each_source(&modify, false, 1);
}

static void remove_of_each_source(void)
{
	static const struct path remove = {
		.name = "REMOVE", .errors = { -EFAULT }, .prepare = open_watch,
		.call = remove_it, .fire = no_event, .end = end_source,
	};

	fail_each_source(&remove, false, 1);
}

static void ready_of_a_mark(void)
{
	static const struct path ready = {
		.name = "READY", .errors = { -EFAULT }, .prepare = open_watch,
		.call = ready_it, .fire = one_event,
	};

	fail_each_source(&ready, true, 1);
}

/* READY with data: a second mark that is not delivered takes memory. */

static int mark_data(struct scene *s)
{
	kevent_set_mark(&s->ev[0], ID, 1, 7);
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_READY, &s->ev[0]);
}

static void open_marked(struct scene *s)
{
	MUST_EQ(add_user(s->q.fd, ID, 1, KEEP, NEW), 0);
	/* The older event waits, so this one does. */
	MUST_EQ(mark_data(s), 1);
}

static unsigned int two_events(struct scene *s)
{
	(void)s;
	return 2;
}

static void ready_that_keeps_each_mark(void)
{
	static const struct path ready = {
		.name = "READY with data", .errors = { -EFAULT },
		.prepare = open_marked, .call = mark_data, .fire = two_events,
	};

	fail_each(&ready, NULL, 2);
}

/*
 * ADD of something that is ready: the event cannot be handed back. Then it is queued
 * and the call fails, if it was the first entry.
 */

static void open_written(struct scene *s)
{
	open_pipe(s->fd);
	put_byte(s->fd[1]);
}

static int add_handed_back(struct scene *s)
{
	int ret;

	kevent_set_pipe(&s->ev[0], s->fd[0], KEVENT_SOCKET_RECV, ET | HAND_BACK,
			NEW);
	ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]);
	s->given = ret == 1 && s->ev[0].ret_flags & KEVENT_RET_DONE;
	return ret;
}

static unsigned int unless_given(struct scene *s)
{
	return !s->given && fdinfo(s->q.fd, "kevent-watches") == 2;
}

static void event_that_is_handed_back(void)
{
	static const struct path add = {
		.name = "ADD, handed back", .errors = { -EFAULT },
		.prepare = open_written, .call = add_handed_back,
		.changes = true, .fire = unless_given,
	};

	fail_each(&add, NULL, 3);
}

/* A duplicate comes back, to the place of an entry that was added. */

static int add_duplicate(struct scene *s)
{
	unsigned int i;
	int ret;

	for (i = 0; i < 3; i++)
		kevent_set_user(&s->ev[i], ID + i % 2, 1, ET, NEW);
	s->ev[0].ret_flags = 0;
	ret = kevent_ctl(s->q.fd, KEVENT_CTL_ADD, 3, s->ev);
	CHECK(ret <= 0 || s->ev[0].ret_flags & KEVENT_RET_BROKEN);
	return ret;
}

/* A fault when it is put there: it is not counted, and where it was. */
static unsigned int mark_duplicate(struct scene *s)
{
	if (fdinfo(s->q.fd, "kevent-watches") == 1)
		return 0;
	mark_it(s);
	return 1;
}

static void duplicate_that_is_handed_back(void)
{
	static const struct path add = {
		.name = "ADD of a duplicate", .errors = { -EFAULT },
		.call = add_duplicate, .changes = true, .fire = mark_duplicate,
	};

	fail_each(&add, NULL, 5);
}

/* Many entries: each fails for itself, and what failed comes back, with its errno. */

static int add_many(struct scene *s)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		kevent_set_user(&s->ev[i], i, 1, ET, NEW);
	return kevent_ctl(s->q.fd, KEVENT_CTL_ADD, MANY, s->ev);
}

static bool is_added(struct scene *s, unsigned int id)
{
	struct ukevent ev;

	kevent_set_user(&ev, id, 1, 0, 0);
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_REMOVE, &ev) == 0;
}

/*
 * Of those that were read, exactly those that did not come back are there. One that
 * can't be read ends the call.
 */
static unsigned int remove_many(struct scene *s)
{
	unsigned int i, read, failed = 0;
	bool added[MANY], back[MANY] = {};

	while (failed < MANY && s->ev[failed].ret_flags & KEVENT_RET_BROKEN) {
		CHECK_EQ(kevent_error(&s->ev[failed]), -ENOMEM);
		MUST(s->ev[failed].id.raw_u64 < MANY);
		back[s->ev[failed++].id.raw_u64] = true;
	}
	for (i = 0; i < MANY; i++)
		added[i] = is_added(s, i);
	for (read = MANY; read && !added[read - 1] && !back[read - 1]; )
		read--;
	CHECK(read == MANY || s->hit);
	for (i = 0; i < read; i++)
		CHECK_EQ(added[i] + back[i], 1);
	return 0;
}

static void add_of_many(void)
{
	static const struct path add = {
		.name = "ADD of many", .errors = { -EFAULT }, .call = add_many,
		.changes = true, .fire = remove_many,
	};

	fail_each(&add, NULL, 10);
}

/* kevent_init() */

static int init_plain(struct scene *s)
{
	s->other = kevent_init(NULL, 0, 0);
	return s->other;
}

static int init_ring(struct scene *s)
{
	static KEVENT_RING_STORAGE(8) mem;

	s->other = kevent_init(&mem.ring, 8, 0);
	return s->other;
}

static void new_queue(void)
{
	static const struct path plain = {
		.name = "kevent_init()", .call = init_plain, .end = close_other,
	};
	static const struct path ring = {
		.name = "kevent_init(), a ring", .call = init_ring,
		.end = close_other,
	};

	fail_each(&plain, NULL, 3);
	fail_each(&ring, NULL, 3);
}

/* A POSIX timer; timer_create() says EAGAIN when it finds no memory. */

static int create_timer(struct scene *s)
{
	s->other = create(s->q.fd, CLOCK_MONOTONIC, NEW);
	return s->other;
}

static unsigned int expire(struct scene *s)
{
	MUST_EQ(settime(s->other, 0, MS, 0), 0);
	return 1;
}

static void delete_timer(struct scene *s)
{
	CHECK_EQ(delete(s->other), 0);
}

static void timer_of_a_queue(void)
{
	static const struct path timer = {
		.name = "timer_create()", .errors = { -EFAULT, -EAGAIN },
		.call = create_timer, .fire = expire, .end = delete_timer,
	};

	fail_each(&timer, NULL, 4);
}

/* Waiting: nothing is taken by a call that fails. */

static int wait_a_moment(struct scene *s)
{
	static const struct timespec zero;

	return kevent_get_events(s->q.fd, 1, 1, &zero, s->ev, 0);
}

static int wait_for_ring(struct scene *s)
{
	static const struct timespec zero;

	return kevent_wait(s->q.fd, SIZE, 0, &zero, 0, NULL);
}

/* A change, a signal mask and a time limit */
static int wait_for_all(struct scene *s)
{
	static const struct timespec zero;

	kevent_wait_arg_init(&s->arg);
	sigemptyset(&s->mask);
	s->arg.sigmask = (uintptr_t)&s->mask;
	s->arg.sigsetsize = 8;
	s->arg.changes = (uintptr_t)&s->change;
	s->arg.nr_changes = 1;
	memset(&s->change, 0, sizeof(s->change));
	kevent_set_user(&s->change.uk, ID, 1, ET | KEVENT_REQ_READY, NEW);
	s->change.cmd = KEVENT_CTL_ADD;
	return kevent_wait(s->q.fd, SIZE, 0, &zero, KEVENT_FLAGS_ARG, &s->arg);
}

/* The thread becomes a member of the queue's group. */
static int wait_with_limit(struct scene *s)
{
	static const struct timespec zero;

	kevent_wait_arg_init(&s->arg);
	s->arg.max_running = 1;
	return kevent_wait(s->q.fd, SIZE, 0, &zero, KEVENT_FLAGS_ARG, &s->arg);
}

/* A change that failed says so; then a second call makes it. */
static unsigned int change_was_made(struct scene *s)
{
	if (s->change.result == -ENOMEM) {
		CHECK_EQ(fdinfo(s->q.fd, "kevent-watches"), 1);
		CHECK(wait_for_all(s) >= 0);
	}
	CHECK_EQ(s->change.result, 0);
	return 1;
}

/* What get_events() took is in the buffer. */
static unsigned int put_back(struct scene *s)
{
	CHECK_EQ(s->ev[0].ptr, WAITED);
	put_byte(s->waits[1]);
	return 0;
}

static void calls_that_wait(void)
{
	static const struct path get = {
		.name = "kevent_get_events()", .errors = { -EFAULT },
		.call = wait_a_moment, .fire = put_back,
	};
	static const struct path ring = {
		.name = "kevent_wait()", .errors = { -EFAULT },
		.call = wait_for_ring,
	};
	static const struct path all = {
		.name = "kevent_wait() with a change", .errors = { -EFAULT },
		.call = wait_for_all, .fire = change_was_made,
	};
	static const struct path limited = {
		.name = "kevent_wait() with a limit",
		.errors = { -EFAULT, -ENOMEM }, .call = wait_with_limit,
	};

	fail_each(&get, NULL, 1);
	fail_each(&ring, NULL, 1);
	fail_each(&all, NULL, 5);
	fail_each(&limited, NULL, 4);
}

/* Others who use a queue */

static int poll_it(struct scene *s)
{
	struct pollfd pfd = { .fd = s->q.fd, .events = POLLIN };

	return poll(&pfd, 1, 0) < 0 ? -errno : 0;
}

static int epoll_it(struct scene *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(s->fd[0], EPOLL_CTL_ADD, s->q.fd, &ev) ? -errno : 0;
}

static void open_set_of_it(struct scene *s)
{
	s->fd[0] = epoll_create1(EPOLL_CLOEXEC);
	MUST(s->fd[0] >= 0);
}

static unsigned int epoll_sees_it(struct scene *s)
{
	struct epoll_event ev;

	CHECK_EQ(epoll_wait(s->fd[0], &ev, 1, 0), 1);
	return 0;
}

/* A thread that polls, by the parameters of epoll */
static int set_params(struct scene *s)
{
	const uint64_t usecs = 100;

	return ioctl(s->q.fd, _IOW(0x8A, 1, uint64_t), &usecs) ? -errno : 0;
}

static int get_params(struct scene *s)
{
	uint64_t usecs;

	return ioctl(s->q.fd, _IOR(0x8A, 2, uint64_t), &usecs) ? -errno : 0;
}

static void files_of_files(void)
{
	static const struct path polled = {
		.name = "poll() of a queue", .errors = { -EFAULT },
		.call = poll_it,
	};
	static const struct path watched = {
		.name = "epoll_ctl() of a queue", .errors = { -EFAULT },
		.prepare = open_set_of_it, .call = epoll_it,
		.fire = epoll_sees_it,
	};
	static const struct path set = {
		.name = "EPIOCSPARAMS", .errors = { -EFAULT },
		.call = set_params,
	};
	static const struct path get = {
		.name = "EPIOCGPARAMS", .errors = { -EFAULT },
		.call = get_params,
	};

	fail_each(&polled, NULL, 1);
	fail_each(&watched, NULL, 3);
	fail_each(&set, NULL, 1);
	fail_each(&get, NULL, 1);
}

/*
 * The first watch that holds off a suspend makes the wakeup source of the queue, which
 * stays, and is charged, even if there is then no memory for the watch.
 */

static int add_awake(struct scene *s)
{
	kevent_set_user(&s->ev[0], ID, 1, ET | KEVENT_REQ_STAY_AWAKE, NEW);
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]);
}

static unsigned int add_and_mark(struct scene *s)
{
	if (fdinfo(s->q.fd, "kevent-watches") == 1)
		CHECK_EQ(add_awake(s), 0);
	mark_it(s);
	return 1;
}

static void watch_that_stays_awake(void)
{
	static const struct path awake = {
		.name = "ADD, STAY_AWAKE", .errors = { -EFAULT },
		.call = add_awake, .changes = true, .fire = add_and_mark,
	};

	fail_each(&awake, NULL, 5);
}

/*
 * Signals: kill() of a standard signal needs no memory to be kept. A queued one that
 * cannot be kept fails, as it does without a watch.
 */

static int send_standard(struct scene *s)
{
	(void)s;
	return kill(getpid(), SIGUSR1) ? -errno : 0;
}

static int send_queued(struct scene *s)
{
	(void)s;
	return queue_value(RT, 5);
}

static void watch_signal(struct scene *s, int sig)
{
	kevent_set_signal(&s->ev[0], sig, KEVENT_SIGNAL_CONSUME, 0, NEW);
	MUST_EQ(kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]), 0);
}

static void watch_standard(struct scene *s)
{
	watch_signal(s, SIGUSR1);
}

static void watch_queued(struct scene *s)
{
	watch_signal(s, RT);
	/* What comes with the watch is taken. */
	MUST_EQ(queue_value(RT, 4), 0);
}

static void signals_that_are_consumed(void)
{
	static const struct path standard = {
		.name = "kill()", .prepare = watch_standard,
		.call = send_standard, .fire = one_event,
	};
	static const struct path queued = {
		.name = "sigqueue()", .errors = { -EAGAIN, -EFAULT },
		.prepare = watch_queued, .call = send_queued,
		.fire = two_events,
	};

	fail_each(&standard, NULL, 0);
	fail_each(&queued, NULL, 2);
}

/* The queue of another process, to which this one and its memory are new */

/* Memory of both processes, and the socket that the queue comes over */
static struct kevent_ring *shared_ring;
static int handing[2];

static int make_queue(struct child *c)
{
	int kq = kevent_init(shared_ring, SIZE, 0);

	if (kq < 0)
		return 1;
	send_fd(handing[1], kq);
	close(kq);
	pass_gate(c);
	return 0;
}

static void open_foreign(struct scene *s)
{
	shared_ring = mmap(NULL, KEVENT_RING_BYTES(SIZE), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared_ring != MAP_FAILED);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, handing), 0);
	s->child.fn = make_queue;
	spawn(&s->child, 0);
	s->other = receive_fd(handing[0]);
	MUST(s->other >= 0);
	close_all(handing, 2);
}

static void close_foreign(struct scene *s)
{
	close_child(s);
	close_other(s);
	s->child.fn = NULL;
	munmap(shared_ring, KEVENT_RING_BYTES(SIZE));
}

static int attach_it(struct scene *s)
{
	return kevent_ctl(s->other, KEVENT_CTL_ATTACH, SIZE,
			  (struct ukevent *)shared_ring);
}

/* Attached, it takes an event from the ring. */
static unsigned int use_foreign(struct scene *s)
{
	struct queue q = { .fd = s->other, .size = SIZE, .ring = shared_ring };
	struct ukevent ev;

	MUST_EQ(add_user(q.fd, ID, 1, KEVENT_REQ_READY, NEW), 0);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, NEW);
	return 0;
}

static int watch_word(struct scene *s)
{
	set_word(s, &s->ev[0]);
	return kevent_ctl_one(s->other, KEVENT_CTL_ADD, &s->ev[0]);
}

static unsigned int wake_foreign(struct scene *s)
{
	wake_word(s);
	CHECK_EQ(get_events(s->other, 1, 1, 0, s->ev), 1);
	CHECK_EQ(s->ev[0].ptr, NEW);
	return 0;
}

static void queue_of_another_process(void)
{
	static const struct path ring = {
		.name = "ATTACH", .prepare = open_foreign, .call = attach_it,
		.fire = use_foreign, .end = close_foreign,
	};
	static const struct path word = {
		.name = "ADD of a word", .errors = { -EFAULT },
		.prepare = open_foreign, .call = watch_word,
		.fire = wake_foreign, .end = close_foreign,
	};

	fail_each(&ring, NULL, 1);
	fail_each(&word, NULL, 4);
}

#ifdef __LP64__

/* Chains for serving threads, and calls that are checked once */

static void open_quiet(struct scene *s)
{
	MUST_EQ(pipe2(s->fd, O_CLOEXEC), 0);
}

/* 0: the byte is not there, and a thread is to serve the chain. */
static int submit_read(struct scene *s)
{
	struct kevent_call *c = taking(s);
	long ret = raw_kevent(__NR_kevent_call, s->q.fd, c, 1, KEVENT_CALL_ASYNC,
			      (uint64_t)NEW);

	if (ret < 0)
		return -errno;
	return ret == KEVENT_CALL_SUBMITTED ? 0 : (int)c->result;
}

static int serve_now(struct scene *s)
{
	static const struct timespec zero;

	return kevent_wait(s->q.fd, 1, 0, &zero, KEVENT_FLAGS_SERVE, NULL);
}

static unsigned int serve_read(struct scene *s)
{
	write_two(s);
	MUST_EQ(serve_now(s), 1);
	return 1;
}

static int bind_read(struct scene *s)
{
	kevent_set_bound(&s->ev[0], 0, taking(s));
	return kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &s->ev[0]);
}

static unsigned int make_bound_read(struct scene *s)
{
	struct kevent_call c = { .nr = KEVENT_CALL_BOUND };

	write_two(s);
	CHECK_EQ(raw_kevent(__NR_kevent_call, s->q.fd, &c, 1, 0, 0ul), 0);
	CHECK_EQ(c.result, 1);
	return 0;
}

static void chains_and_bound_calls(void)
{
	static const struct path submit = {
		.name = "kevent_call() that submits", .errors = { -EFAULT },
		.prepare = open_quiet, .call = submit_read, .fire = serve_read,
	};
	static const struct path serve = {
		.name = "kevent_wait() that serves", .errors = { -EFAULT },
		.call = serve_now,
	};
	static const struct path bind = {
		.name = "ADD of a bound call", .errors = { -EFAULT },
		.prepare = open_two, .call = bind_read,
		.fire = make_bound_read,
	};

	fail_each(&submit, NULL, 2);
	fail_each(&serve, NULL, 1);
	fail_each(&bind, NULL, 4);
}

#endif

static const struct test_case cases[] = {
	TEST_LIMIT(new_queue, 60),
	TEST_LIMIT(add_of_each_source, 360),
	TEST_LIMIT(modify_of_each_source, 60),
	TEST_LIMIT(remove_of_each_source, 60),
	TEST(ready_of_a_mark),
	TEST(ready_that_keeps_each_mark),
	TEST(event_that_is_handed_back),
	TEST(duplicate_that_is_handed_back),
	TEST_LIMIT(add_of_many, 60),
	TEST(timer_of_a_queue),
	TEST(calls_that_wait),
	TEST(files_of_files),
	TEST_LIMIT(watch_that_stays_awake, 60),
	TEST(signals_that_are_consumed),
	TEST(queue_of_another_process),
#ifdef __LP64__
	TEST(chains_and_bound_calls),
#endif
	{}
};

const struct test_suite fail_nth_suite = {
	.name = "fail_nth", .cases = cases
};
