// SPDX-License-Identifier: GPL-2.0
/* Calls whose n-th allocation or copy fails */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "nth_fault.h"

#define MOST_FAULTS	500

/* Of a user who has no other queue while a test runs: charges are his alone. */
static int observer = -1;

static int nth_file = -1;

/* Faults */

void set_failures(const char *kind)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait",
		 kind);
	if (!access(path, F_OK))
		write_file(path, "N");
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", kind);
	write_file(path, "0");
}

void allow_failures(void)
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
void set_nth(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth_file, text, len, 0) != len)
		MUST_EQ(pwrite(nth_file, text, len, 0), len);
}

/* Did the fault happen? Reading is a copy, too: it fails if it is the n-th. */
bool was_hit(void)
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

void close_all(int *fd, unsigned int nr)
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

void fail_each(const struct path *p, const struct source *source,
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

void open_two(struct scene *s)
{
	open_pipe(s->fd);
}

void write_two(struct scene *s)
{
	put_byte(s->fd[1]);
}

void close_other(struct scene *s)
{
	close_all(&s->other, 1);
}

void close_child(struct scene *s)
{
	kill(s->child.pid, SIGKILL);
	reap(&s->child);
	close_all(&s->child.gate[1], 1);
}

void set_word(struct scene *s, struct ukevent *ev)
{
	kevent_set_futex(ev, &s->word, 0, KEVENT_FUTEX_PRIVATE, 0, NEW);
}

void wake_word(struct scene *s)
{
	MUST_EQ(syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
			0), 1);
}

unsigned int one_event(struct scene *s)
{
	(void)s;
	return 1;
}

unsigned int two_events(struct scene *s)
{
	(void)s;
	return 2;
}
