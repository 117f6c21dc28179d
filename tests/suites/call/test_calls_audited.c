// SPDX-License-Identifier: GPL-2.0
/*
 * kevent_call() in tasks that are audited; the kernel needs audit=1 on its command line
 *
 * The kernel makes no call of their chains, and the library makes each as an ordinary
 * one, which has its record. The test registers as the audit daemon, so records come to
 * its socket.
 */
#ifdef __LP64__	/* elsewhere the library makes all calls */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "aio.h"
#include "helpers.h"

#define KEY	"kevent"
#define LAST	1121	/* AUDIT_TRUSTED_APP: a record of ours after all others */
#define BACKLOG	8192
#define CALLS	8

/* A message to audit, or one of its records, of which we need the beginning */
struct message {
	struct nlmsghdr	hdr;
	char		data[4096];
};

/* What a record says of a call */
struct record {
	int		nr;
	long long	ret;
};

static int audit = -1;

/* Without an answer in time the test fails. */
static unsigned int receive(struct message *m)
{
	struct pollfd pfd = { .fd = audit, .events = POLLIN };
	ssize_t size;

	MUST_EQ(poll(&pfd, 1, PATIENCE_MS * slowness), 1);
	size = recv(audit, m, sizeof(*m) - 1, 0);
	MUST(size >= (ssize_t)sizeof(m->hdr));
	((char *)m)[size] = '\0';
	return m->hdr.nlmsg_type;
}

static void send_message(unsigned int type, unsigned int flags, const void *data,
			 size_t size)
{
	struct message m = { .hdr = {
		.nlmsg_len = NLMSG_LENGTH(size), .nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
	} };

	memcpy(m.data, data, size);
	MUST_EQ(send(audit, &m, m.hdr.nlmsg_len, 0), m.hdr.nlmsg_len);
}

/* The answer: 0 or -errno. Records that come before it are nobody's. */
static int ask(unsigned int type, const void *data, size_t size)
{
	struct nlmsgerr answer;
	struct message m;

	send_message(type, NLM_F_ACK, data, size);
	while (receive(&m) != NLMSG_ERROR)
		;
	memcpy(&answer, m.data, sizeof(answer));
	return answer.error;
}

static bool is_enabled(void)
{
	struct audit_status status;
	struct message m;

	send_message(AUDIT_GET, 0, "", 0);
	while (receive(&m) != AUDIT_GET)
		;
	memcpy(&status, m.data, offsetof(struct audit_status, failure));
	return status.enabled;
}

static void become_daemon(void)
{
	struct audit_status status = {
		.mask = AUDIT_STATUS_PID | AUDIT_STATUS_BACKLOG_LIMIT,
		.pid = (uint32_t)getpid(), .backlog_limit = BACKLOG,
	};
	bool enabled;

	audit = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
	if (audit < 0)
		note("the kernel has no audit");
	MUST(audit >= 0);
	enabled = is_enabled();
	if (!enabled)
		note("audit is off: boot with audit=1");
	MUST(enabled);
	MUST_EQ(ask(AUDIT_SET, &status, sizeof(status)), 0);
}

static void leave_daemon(void)
{
	struct audit_status status = { .mask = AUDIT_STATUS_PID };

	CHECK_EQ(ask(AUDIT_SET, &status, sizeof(status)), 0);
	close(audit);
}

/* Rules */

struct rule {
	struct audit_rule_data	data;
	char			key[sizeof(KEY)];
};

static void watch_call(struct rule *r, unsigned int nr)
{
	r->data.mask[AUDIT_WORD(nr)] |= AUDIT_BIT(nr);
}

/* What a test that failed has left does not matter. */
static void add_rule(const struct rule *r)
{
	ask(AUDIT_DEL_RULE, r, sizeof(*r));
	MUST_EQ(ask(AUDIT_ADD_RULE, r, sizeof(*r)), 0);
}

static void remove_rule(const struct rule *r)
{
	CHECK_EQ(ask(AUDIT_DEL_RULE, r, sizeof(*r)), 0);
}

/* Chains: shared with a child, which makes them */

struct work {
	struct kevent_call	c[CALLS];
	char			folder[40], file[48], link[48];
	bool			audited;
};

static void make_chain(struct work *w)
{
	const struct kevent_call c[CALLS] = {
		ENTRY(SYS_mkdirat, AT_FDCWD, w->folder, 0700),
		ENTRY(SYS_openat, AT_FDCWD, w->file, O_RDONLY),
		ENTRY(SYS_symlinkat, w->file, AT_FDCWD, w->link),
		ENTRY(SYS_renameat2, AT_FDCWD, w->link, AT_FDCWD),
		ENTRY(SYS_unlinkat, AT_FDCWD, w->link, 0),
		ENTRY(SYS_unlinkat, AT_FDCWD, w->file, 0),
		ENTRY(SYS_faccessat, AT_FDCWD, w->folder, F_OK),
		ENTRY(SYS_unlinkat, AT_FDCWD, w->folder, AT_REMOVEDIR),
	};

	memcpy(w->c, c, sizeof(c));
	w->c[3].args[3] = KEVENT_ARG(w->file);
}

/* The kernel refuses the first entry, or makes them all; then the library runs them. */
static int run_chain(void *arg)
{
	struct work *w = arg;
	long ret;

	make_chain(w);
	ret = raw_kevent(__NR_kevent_call, -1, w->c, CALLS, 0, 0l);
	if (w->audited) {
		CHILD_MUST(ret == REFUSED && w->c[0].result == -EOPNOTSUPP);
		CHILD_MUST(w->c[1].result == UNMADE);
	} else {
		CHILD_MUST(ret == CALLS - 1);
	}
	make_chain(w);
	CHILD_MUST(kevent_call(-1, w->c, CALLS, 0, 0) == CALLS - 1);
	return 0;
}

/* Only the file that is opened before it is there gives an error. */
static void check_results(const struct work *w)
{
	unsigned int i;

	for (i = 0; i < CALLS; i++)
		CHECK_EQ(w->c[i].result, i == 1 || i == 4 ? -ENOENT : 0);
}

/* Records */

static long long number(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* All records of a process that are there now, at most @most; returns their number. */
static unsigned int read_records(pid_t pid, struct record *r, unsigned int most)
{
	unsigned int nr = 0, type;
	struct message m;

	send_message(LAST, 0, KEY, sizeof(KEY));
	while ((type = receive(&m)) != LAST) {
		if (type != AUDIT_SYSCALL || number(m.data, " pid=") != pid ||
		    !strstr(m.data, "key=\"" KEY "\""))
			continue;
		if (nr < most) {
			r[nr].nr = (int)number(m.data, " syscall=");
			r[nr].ret = number(m.data, " exit=");
		}
		nr++;
	}
	return nr;
}

static struct work *new_work(bool audited)
{
	struct work *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(w != MAP_FAILED);
	w->audited = audited;
	snprintf(w->folder, sizeof(w->folder), "/tmp/kevent-audit-%d", getpid());
	snprintf(w->file, sizeof(w->file), "%s/file", w->folder);
	snprintf(w->link, sizeof(w->link), "%s/link", w->folder);
	return w;
}

/* exit,always of all calls of the chain */
static void rule_for(const struct work *w, struct rule *r)
{
	struct work copy = *w;
	unsigned int i;

	*r = (struct rule){ .data = {
		.flags = AUDIT_FILTER_EXIT, .action = AUDIT_ALWAYS,
		.field_count = 1, .fields = { AUDIT_FILTERKEY },
		.fieldflags = { AUDIT_EQUAL }, .values = { strlen(KEY) },
		.buflen = strlen(KEY),
	} };
	memcpy(r->data.buf, KEY, strlen(KEY));
	make_chain(&copy);
	for (i = 0; i < CALLS; i++)
		watch_call(r, copy.c[i].nr);
}

static void each_call_has_a_record(void)
{
	struct work *w = new_work(true);
	struct record r[CALLS] = {};
	struct rule rule;
	unsigned int i;
	pid_t pid;

	become_daemon();
	rule_for(w, &rule);
	add_rule(&rule);
	pid = start_child(run_chain, w);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK_EQ(read_records(pid, r, CALLS), CALLS);
	check_results(w);
	for (i = 0; i < CALLS; i++) {
		CHECK_EQ(r[i].nr, w->c[i].nr);
		CHECK_EQ(r[i].ret, w->c[i].result);
	}
	remove_rule(&rule);
	leave_daemon();
}

static void no_rule_is_needed_to_be_audited(void)
{
	struct work *w = new_work(true);

	become_daemon();
	CHECK_EQ(join_child(start_child(run_chain, w), PATIENCE_MS), 0);
	check_results(w);
	leave_daemon();
}

/* task,never: the tasks made from now on have no records, so chains are run for them. */
static void who_is_not_audited_has_chains(void)
{
	const struct rule never = { .data = {
		.flags = AUDIT_FILTER_TASK, .action = AUDIT_NEVER,
	} };
	struct work *w = new_work(false);
	struct record r[1];
	struct rule rule;
	pid_t pid;

	become_daemon();
	rule_for(w, &rule);
	add_rule(&rule);
	add_rule(&never);
	pid = start_child(run_chain, w);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	remove_rule(&never);
	CHECK_EQ(read_records(pid, r, 1), 0);
	check_results(w);
	remove_rule(&rule);
	leave_daemon();
}

static const struct test_case cases[] = {
	TEST(each_call_has_a_record),
	TEST(no_rule_is_needed_to_be_audited),
	TEST(who_is_not_audited_has_chains),
	{ }
};

const struct test_suite calls_audited_suite = {
	.name = "calls_audited",
	.cases = cases,
	.only_by_name = true,
};

#endif
