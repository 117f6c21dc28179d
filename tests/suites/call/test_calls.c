// SPDX-License-Identifier: GPL-2.0
/*
 * kevent_call(): chains, jumps, results as arguments, refusals, faults, signals
 *
 * raw() is the system call, run() that of the library, which makes calls the kernel
 * refuses. A child under a seccomp filter gets all of its calls made that way.
 */
#ifdef __LP64__	/* elsewhere the library makes all calls */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "aio.h"
#include "helpers.h"
#include "sets.h"

static long raw5(int fd, void *chain, uint32_t nr, uint32_t flags,
		 uint64_t cookie)
{
	long ret = raw_kevent(__NR_kevent_call, fd, chain, nr, flags, cookie);

	return ret < 0 ? -errno : ret;
}

static long raw(struct kevent_call *chain, uint32_t nr)
{
	return raw5(-1, chain, nr, 0, 0);
}

static long run(struct kevent_call *chain, uint32_t nr)
{
	return kevent_call(-1, chain, nr, 0, 0);
}

static struct kevent_call getppid_entry(void)
{
	return ENTRY(SYS_getppid, 0, 0, 0);
}

/* Chains */

static void result_becomes_an_argument(void)
{
	char buf[8] = "";
	struct kevent_call c[] = {
		ENTRY(SYS_openat, AT_FDCWD, "/proc/version", O_RDONLY),
		BACK(SYS_read, 1, buf, 5),
		BACK(SYS_close, 2, 0, 0),
	};

	MUST_EQ(raw(c, 3), 2);
	CHECK(c[0].result > 2);
	CHECK_EQ(c[1].result, 5);
	CHECK(!memcmp(buf, "Linux", 5));
	CHECK_EQ(c[2].result, 0);
	CHECK_EQ(fcntl((int)c[0].result, F_GETFD), -1);
	/* The entry is as it was. */
	CHECK_EQ(c[1].args[0], 1);
	CHECK_EQ(c[2].flags, KEVENT_CALL_BACK(0));
}

/* copy_file_range() has six: two descriptors, a length and flags are results. */
static void any_argument_may_be_a_result(void)
{
	int pipe[2], zero = open("/dev/zero", O_RDONLY);
	char buf[8], seen[8] = "";
	struct kevent_call c[] = {
		ENTRY(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR),
		ENTRY(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR),
		ENTRY(SYS_read, zero, buf, 0),
		BACK(SYS_pwrite64, 3, "abcdefg", 7),
		ENTRY(SYS_read, 0, buf, 4),
		ENTRY(SYS_copy_file_range, 5, 0, 4),
	};

	open_pipe(pipe);
	c[0].args[3] = c[1].args[3] = 0600;
	put_byte(pipe[1]);
	put_byte(pipe[1]);
	c[4].args[0] = (uint64_t)pipe[0];
	c[5].args[4] = 1;
	c[5].args[5] = 3;
	c[5].flags = KEVENT_CALL_BACK(0) | KEVENT_CALL_BACK(2) |
		     KEVENT_CALL_BACK(4) | KEVENT_CALL_BACK(5);
	MUST_EQ(raw(c, 6), 5);
	CHECK_EQ(c[5].result, 2);
	CHECK_EQ(pread((int)c[1].result, seen, sizeof(seen), 0), 2);
	CHECK(!memcmp(seen, "ab", 3));
	close((int)c[0].result);
	close((int)c[1].result);
	close_pair(pipe);
	close(zero);
}

/* A call has the number of what is not in front of it: its entry ends the chain. */
static void results_come_from_entries_in_front(void)
{
	/* With the last ones, an offset in bytes would be 0 or 64. */
	static const uint64_t bad[] = {
		0, 3, 4, 1 << 10, 1ull << 32, 1ull << 63, ~0ull, ~0ull - 1,
		1ull << 58, (1ull << 58) + 1,
	};
	struct kevent_call c[4];
	unsigned int i, arg;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		/* One that the call has, and one that it has not */
		for (arg = 0; arg < 6; arg += 5) {
			c[0] = c[1] = c[3] = getppid_entry();
			c[2] = getppid_entry();
			c[2].flags = (uint8_t)KEVENT_CALL_BACK(arg);
			c[2].args[arg] = bad[i];
			CHECK_EQ(raw(c, 4), 2 | REFUSED);
			CHECK_EQ(c[2].result, -EINVAL);
			CHECK_EQ(c[3].result, UNMADE);
			CHECK_EQ(run(c, 4), 2 | REFUSED);
			CHECK_EQ(c[2].result, -EINVAL);
			c[2].args[arg] = 2;
			CHECK_EQ(raw(c, 4), 3);
			CHECK_EQ(c[2].result, getppid());
		}
	}
	/* Nothing is in front of the first one, though memory is. */
	c[1].flags = KEVENT_CALL_BACK(0);
	c[1].args[0] = 1;
	CHECK_EQ(raw(c + 1, 2), REFUSED);
	CHECK_EQ(c[1].result, -EINVAL);
}

/* An error becomes the result, and the way of the chain is that after the error. */
static void error_is_no_argument(void)
{
	struct kevent_call c[4] = {
		ENTRY(SYS_openat, AT_FDCWD, "/none", O_RDONLY),
		BACK(SYS_close, 1, 0, 0),
		getppid_entry(),
		BACK(SYS_close, 2, 0, 0),
	};

	c[1].on_error = 2;
	CHECK_EQ(raw(c, 4), 3);
	CHECK_EQ(c[0].result, -ENOENT);
	CHECK_EQ(c[1].result, -ENOENT);
	CHECK_EQ(c[2].result, -ECANCELED);
	/* That of an entry which was left out, and which an entry passes on */
	CHECK_EQ(c[3].result, -ENOENT);
	c[3].args[0] = 1;
	CHECK_EQ(raw(c, 4), 3);
	CHECK_EQ(c[3].result, -ECANCELED);
	c[1].on_error = 0;
	CHECK_EQ(raw(c, 4), 1);
	/* The first argument in question counts. */
	c[1].on_error = 1;
	c[1].flags = KEVENT_CALL_BACK(0) | KEVENT_CALL_BACK(1);
	CHECK_EQ(raw(c, 4), 3);
	CHECK_EQ(c[1].result, -ENOENT);
	c[1].args[0] = 0;
	c[1].args[1] = 1;
	CHECK_EQ(raw(c, 4), 1 | REFUSED);
	CHECK_EQ(c[1].result, -EINVAL);
}

/* A call that is not in the list, or is bound, has no such arguments. */
static void results_are_for_calls_of_the_list(void)
{
	static const uint32_t nr[] = { SYS_kill, KEVENT_CALL_BOUND, ~0u };
	struct kevent_call c[2];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nr); i++) {
		c[0] = getppid_entry();
		c[1] = BACK(nr[i], 1, 0, 0);
		CHECK_EQ(raw(c, 2), 1 | REFUSED);
		CHECK_EQ(c[1].result, -EINVAL);
		CHECK_EQ(run(c, 2), 1 | REFUSED);
		CHECK_EQ(c[1].result, -EINVAL);
	}
}

/* Entries that are left out are marked, and no others. */
static void entries_between_are_cancelled(void)
{
	static struct kevent_call c[300];
	unsigned int i;

	for (i = 0; i < 300; i++)
		c[i] = getppid_entry();
	c[0].on_value = 255;
	c[256].on_value = 2;
	c[258].on_value = 42;
	CHECK_EQ(raw(c, 300), 258);
	for (i = 0; i < 300; i++)
		CHECK_EQ(c[i].result, i && i < 255 ? -ECANCELED :
				      i == 257 ? -ECANCELED :
				      i > 258 ? UNMADE : getppid());
}

/* Entry 0 has a result of one sign; each entry is reached by one jump only. */
static void check_jump(struct kevent_call first, unsigned int lands)
{
	struct kevent_call c[6];
	unsigned int i;

	for (i = 0; i < 6; i++) {
		c[i] = i ? getppid_entry() : first;
		if (i)
			c[i].on_value = 0;
	}
	c[0].on_error = 1;
	c[0].on_zero = 2;
	c[0].on_value = 4;
	CHECK_EQ(raw(c, 6), lands);
	for (i = 1; i < 6; i++)
		CHECK_EQ(c[i].result, i == lands ? getppid() :
				      i < lands ? -ECANCELED : UNMADE);
}

static void jumps_follow_the_sign_of_the_result(void)
{
	char buf[4];
	int fd = open("/dev/zero", O_RDONLY);

	check_jump(ENTRY(SYS_close, -1, 0, 0), 1);
	check_jump(ENTRY(SYS_read, fd, buf, 0), 2);
	check_jump(ENTRY(SYS_read, fd, buf, 4), 4);
	close(fd);
}

static void jump_past_the_end_ends_the_chain(void)
{
	static struct kevent_call c[300];
	unsigned int i;

	for (i = 0; i < 300; i++)
		c[i] = getppid_entry();
	c[0].on_value = 255;
	c[255].on_value = 45;
	CHECK_EQ(raw(c, 300), 255);
	c[255].on_value = 44;
	CHECK_EQ(raw(c, 300), 299);
	CHECK_EQ(c[299].result, getppid());
	c[0].on_value = 0;
	CHECK_EQ(raw(c, 300), 0);
}

static void work_is_bounded(void)
{
	static struct kevent_call c[KEVENT_CALL_MAX + 1];
	unsigned int i;

	for (i = 0; i <= KEVENT_CALL_MAX; i++)
		c[i] = getppid_entry();
	CHECK_EQ(raw(c, KEVENT_CALL_MAX + 1), -EINVAL);
	CHECK_EQ(c[0].result, UNMADE);
	CHECK_EQ(raw(c, KEVENT_CALL_MAX), KEVENT_CALL_MAX - 1);
	for (i = 0; i < KEVENT_CALL_MAX; i++)
		CHECK_EQ(c[i].result, getppid());
	CHECK_EQ(c[KEVENT_CALL_MAX].result, UNMADE);
}

/* Arguments */

static void bad_arguments_are_refused(void)
{
	struct kevent_call c[2] = { getppid_entry(), getppid_entry() };

	CHECK_EQ(raw5(0, c, 1, 0, 0), -EINVAL);
	CHECK_EQ(raw5(-2, c, 1, 0, 0), -EINVAL);
	CHECK_EQ(raw5(-1, c, 1, 2, 0), -EINVAL);
	CHECK_EQ(raw5(-1, c, 1, 1u << 31, 0), -EINVAL);
	CHECK_EQ(raw5(-1, c, 1, 0, 1), -EINVAL);
	CHECK_EQ(raw5(-1, c, 1, 0, 1ull << 63), -EINVAL);
	CHECK_EQ(raw5(-1, c, 0, 0, 0), -EINVAL);
	CHECK_EQ(raw5(-1, c, ~0u, 0, 0), -EINVAL);
	CHECK_EQ(raw5(-1, (char *)c + 4, 1, 0, 0), -EINVAL);
	CHECK_EQ(raw5(-1, NULL, 1, 0, 0), -EFAULT);
	CHECK_EQ(raw5(-1, (void *)-PAGE, 1, 0, 0), -EFAULT);
	CHECK_EQ(c[0].result, UNMADE);
	CHECK_EQ(kevent_call(0, c, 1, 0, 0), -EINVAL);
	CHECK_EQ(kevent_call(-1, c, 1, 2, 0), -EINVAL);
	CHECK_EQ(kevent_call(-1, c, 1, 0, 1), -EINVAL);
	CHECK_EQ(kevent_call(-1, c, 0, 0, 0), -EINVAL);
	CHECK_EQ(kevent_call(-1, c, KEVENT_CALL_MAX + 1, 0, 0), -EINVAL);
	CHECK_EQ(c[0].result, UNMADE);
}

static void flags_of_an_entry_are_refused(void)
{
	struct kevent_call c[3];
	unsigned int bit;

	for (bit = 0; bit < 8; bit++) {
		c[0] = getppid_entry();
		c[1] = getppid_entry();
		c[1].flags = 1u << bit;
		c[2] = getppid_entry();
		CHECK_EQ(raw(c, 3), 1 | REFUSED);
		CHECK_EQ(c[0].result, getppid());
		CHECK_EQ(c[1].result, -EINVAL);
		CHECK_EQ(c[2].result, UNMADE);
		CHECK_EQ(run(c, 3), 1 | REFUSED);
	}
}

enum { NRS = 600 };

static int allow_all(void)
{
	struct sock_filter f = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &f };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static struct kevent_call bad_call(uint32_t nr)
{
	struct kevent_call c = { .nr = nr, .result = UNMADE };

	memset(c.args, 0xff, sizeof(c.args));
	return c;
}

static int emulate_all(void *arg)
{
	int64_t *want = arg;
	unsigned int i;

	want[SYS_getpid] = getpid();
	want[SYS_getppid] = getppid();
	CHILD_MUST(!allow_all());
	for (i = 0; i < NRS; i++) {
		struct kevent_call c = bad_call(i);
		bool refused = run(&c, 1) == REFUSED;

		if (c.result == want[i] && refused == (c.result == -ENOSYS))
			continue;
		note("call %u: kernel %lld, library %lld", i,
		     (long long)want[i], (long long)c.result);
		return 1;
	}
	return 0;
}

/* The library allows what the kernel allows. */
static void calls_outside_the_list_are_refused(void)
{
	static const int never[] = {
		SYS_clone, SYS_execve, SYS_exit, SYS_exit_group, SYS_ptrace,
		SYS_setuid, SYS_rt_sigreturn, SYS_prctl, SYS_seccomp, SYS_mmap,
		SYS_mprotect, SYS_unshare, SYS_setns, SYS_ioctl, SYS_ppoll,
		SYS_futex, SYS_kill, SYS_io_uring_enter, __NR_kevent_init,
		__NR_kevent_wait, __NR_kevent_call,
	};
	static int64_t seen[NRS];
	unsigned int i, made = 0;
	struct kevent_call c;
	long ret;

	for (i = 0; i < NRS; i++) {
		c = bad_call(i);
		ret = raw(&c, 1);
		CHECK_EQ(ret, c.result == -ENOSYS ? REFUSED : 0);
		seen[i] = c.result;
		made += c.result != -ENOSYS;
	}
	CHECK_EQ(made, 61);
	for (i = 0; i < ARRAY_SIZE(never); i++)
		CHECK_EQ(seen[never[i]], -ENOSYS);
	c = bad_call(~0u);
	CHECK_EQ(raw(&c, 1), REFUSED);
	CHECK_EQ(join_child(start_child(emulate_all, seen), PATIENCE_MS), 0);
}

/* on_error is for errors of calls that were made. */
static void refusal_ends_the_chain(void)
{
	struct kevent_call c[2] = {
		ENTRY(SYS_kill, 0, 0, 0),
		getppid_entry(),
	};

	c[0].on_error = 1;
	CHECK_EQ(raw(c, 2), REFUSED);
	CHECK_EQ(c[0].result, -ENOSYS);
	CHECK_EQ(c[1].result, UNMADE);

	c[0] = getppid_entry();
	c[0].on_error = 1;
	c[0].flags = 1;
	CHECK_EQ(raw(c, 2), REFUSED);
	CHECK_EQ(c[0].result, -EINVAL);
	CHECK_EQ(c[1].result, UNMADE);
}

/* A refusal is not the same as an error that the call itself returns. */
static void errors_of_a_call_are_no_refusals(void)
{
	int sock[2];
	struct kevent_call c[2] = {
		ENTRY(SYS_accept, -1, 0, 0),
		getppid_entry(),
	};

	MUST_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, sock), 0);
	c[0].args[0] = (uint64_t)sock[0];
	c[0].on_error = 0;
	CHECK_EQ(raw(c, 2), 0);
	CHECK_EQ(c[0].result, -EOPNOTSUPP);
	CHECK_EQ(run(c, 2), 0);
	CHECK_EQ(c[0].result, -EOPNOTSUPP);
	c[0].on_error = 1;
	CHECK_EQ(run(c, 2), 1);
	CHECK_EQ(c[1].result, getppid());
	close(sock[0]);
	close(sock[1]);
}

/* A position that looks like a code of the kernel does not have the call made for ever. */
static void result_may_look_like_a_code(void)
{
	/* Four codes for a restart, and two numbers that are none */
	static const int codes[] = { 512, 513, 514, 516 }, others[] = { 515, 600 };
	int fd = open("/proc/self/mem", O_RDONLY);
	struct kevent_call c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(codes); i++) {
		c = ENTRY(SYS_lseek, fd, -codes[i], SEEK_SET);
		CHECK_EQ(raw(&c, 1), 0);
		CHECK_EQ(c.result, -EINTR);
	}
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		c = ENTRY(SYS_lseek, fd, -others[i], SEEK_SET);
		CHECK_EQ(raw(&c, 1), 0);
		CHECK_EQ(c.result, -others[i]);
	}
	close(fd);
}

/* Faults */

/* Two pages; the second one can go away. */
static char *two_pages(void)
{
	char *mem = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(mem != MAP_FAILED);
	return mem;
}

static void entry_that_cannot_be_read_is_efault(void)
{
	char *mem = two_pages();
	struct kevent_call *c = (void *)(mem + PAGE - 2 * sizeof(*c));

	c[0] = getppid_entry();
	c[1] = getppid_entry();
	MUST_EQ(munmap(mem + PAGE, PAGE), 0);
	CHECK_EQ(raw(c, 3), -EFAULT);
	CHECK_EQ(c[0].result, getppid());
	CHECK_EQ(c[1].result, getppid());
	c[1].on_value = 0;
	CHECK_EQ(raw(c, 3), 1);
	munmap(mem, PAGE);
}

/* It is read word by word: whichever of the call is missing, the call is not made. */
static void entry_that_is_cut_is_efault(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	struct kevent_call c = ENTRY(SYS_pwrite64, fd, "a", 1);
	char *mem = two_pages();
	size_t there;

	MUST(fd >= 0);
	MUST_EQ(munmap(mem + PAGE, PAGE), 0);
	for (there = 8; there < offsetof(struct kevent_call, args[4]); there += 8) {
		memcpy(mem + PAGE - there, &c, there);
		CHECK_EQ(raw((void *)(mem + PAGE - there), 1), -EFAULT);
	}
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	memcpy(mem, &c, sizeof(c));
	CHECK_EQ(raw((void *)mem, 1), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 1);
	munmap(mem, PAGE);
	close(fd);
}

static void result_that_cannot_be_written_is_efault(void)
{
	char *mem = two_pages();
	struct kevent_call *c = (void *)(mem + PAGE - sizeof(*c));
	int pipe[2];

	open_pipe(pipe);
	c[0] = ENTRY(SYS_write, pipe[1], "ab", 2);
	c[1] = ENTRY(SYS_write, pipe[1], "c", 1);
	c[2] = ENTRY(SYS_write, pipe[1], "d", 1);
	MUST_EQ(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
	CHECK_EQ(raw(c, 3), -EFAULT);
	CHECK_EQ(c[0].result, 2);
	CHECK_EQ(c[1].result, UNMADE);
	CHECK_EQ(take_bytes(pipe[0]), 3);
	munmap(mem, 2 * PAGE);
	close(pipe[0]);
	close(pipe[1]);
}

/* Another thread */

struct blocked {
	struct kevent_call	*c;
	int			pipe[2];
	char			buf[4];
	struct actor		actor;
	long (*fn)(struct kevent_call *chain, uint32_t nr);
};

static long run_blocked(void *arg)
{
	struct blocked *b = arg;

	return b->fn(b->c, 3);
}

/* A thread whose chain sleeps in its entry 0, which reads a pipe */
static void block_in_chain(struct blocked *b, struct kevent_call *c,
			   long (*fn)(struct kevent_call *, uint32_t))
{
	*b = (struct blocked){ .c = c, .fn = fn };
	MUST_EQ(pipe(b->pipe), 0);
	c[0] = ENTRY(SYS_read, b->pipe[0], b->buf, 4);
	c[1] = getppid_entry();
	c[2] = getppid_entry();
	start_actor(&b->actor, run_blocked, b);
	MUST(sleeps_in(b->actor.tid, __NR_kevent_call));
}

static void unblock(struct blocked *b)
{
	join_actor(&b->actor, PATIENCE_MS);
	close(b->pipe[0]);
	close(b->pipe[1]);
}

/* What has begun goes on as it was read; what comes later is read later. */
static void entries_change_until_their_turn(void)
{
	struct kevent_call c[3];
	struct blocked b;

	block_in_chain(&b, c, raw);
	c[0].on_value = 0;
	c[0].nr = SYS_exit_group;
	c[1].nr = SYS_getpid;
	put_byte(b.pipe[1]);
	unblock(&b);
	CHECK_EQ(b.actor.ret, 2);
	CHECK_EQ(c[0].result, 1);
	CHECK_EQ(c[1].result, getpid());
	block_in_chain(&b, c, raw);
	c[1].nr = SYS_exit_group;
	put_byte(b.pipe[1]);
	unblock(&b);
	CHECK_EQ(b.actor.ret, 1 | REFUSED);
	CHECK_EQ(c[1].result, -ENOSYS);
}

static long run_three(void *arg)
{
	return raw(arg, 3);
}

/* Another thread may write what an entry takes, as it may write the entry. */
static void result_is_read_when_the_turn_comes(void)
{
	static const int64_t there[] = { 3, 0, -EXDEV, INT64_MIN };
	int pipe[2][2];
	struct actor actor;
	struct kevent_call c[3];
	unsigned int i;
	char buf[8];

	for (i = 0; i < ARRAY_SIZE(there); i++) {
		const bool good = there[i] >= 0;

		open_pipe(pipe[0]);
		open_pipe(pipe[1]);
		MUST_EQ(fcntl(pipe[0][0], F_SETFL, 0), 0);
		c[0] = getppid_entry();
		c[1] = ENTRY(SYS_read, pipe[0][0], buf, 8);
		c[2] = ENTRY(SYS_write, pipe[1][1], "abcd", 2);
		c[2].flags = KEVENT_CALL_BACK(2);
		start_actor(&actor, run_three, c);
		MUST(sleeps_in(actor.tid, __NR_kevent_call));
		CHECK_EQ(c[0].result, getppid());
		c[0].result = there[i];
		put_byte(pipe[0][1]);
		join_actor(&actor, PATIENCE_MS);
		CHECK_EQ(actor.ret, 2);
		CHECK_EQ(c[2].result, there[i]);
		CHECK_EQ(take_bytes(pipe[1][0]), good ? there[i] : 0);
		close_pair(pipe[0]);
		close_pair(pipe[1]);
	}
}

static void memory_may_go_away_during_a_call(void)
{
	char *mem = two_pages();
	struct blocked b;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct kevent_call *c = (void *)(mem + PAGE - i * sizeof(*c));

		block_in_chain(&b, c, raw);
		MUST_EQ(munmap(mem + PAGE, PAGE), 0);
		put_byte(b.pipe[1]);
		unblock(&b);
		CHECK_EQ(b.actor.ret, -EFAULT);
		if (i)
			CHECK_EQ(c[0].result, 1);
		MUST(mmap(mem + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			  MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	}
	munmap(mem, 2 * PAGE);
}

/* Signals */

static volatile sig_atomic_t handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static void interrupt(struct blocked *b, int flags)
{
	struct sigaction sa = { .sa_handler = count, .sa_flags = flags };

	handled = 0;
	MUST_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	MUST_EQ(pthread_kill(b->actor.thread, SIGUSR1), 0);
	unblock(b);
	CHECK_EQ(handled, 1);
}

static void signal_ends_the_chain(void)
{
	const int flags[] = { 0, SA_RESTART };
	struct kevent_call c[3];
	struct blocked b;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		block_in_chain(&b, c, raw);
		interrupt(&b, flags[i]);
		CHECK_EQ(b.actor.ret, 1 | REFUSED);
		CHECK_EQ(c[0].result, -EINTR);
		CHECK_EQ(c[1].result, -EINTR);
		CHECK_EQ(c[2].result, UNMADE);
	}
}

static void library_goes_on_after_a_signal(void)
{
	struct kevent_call c[3];
	struct blocked b;

	block_in_chain(&b, c, run);
	interrupt(&b, 0);
	CHECK_EQ(b.actor.ret, 2);
	CHECK_EQ(c[0].result, -EINTR);
	CHECK_EQ(c[1].result, getppid());
	CHECK_EQ(c[2].result, getppid());
}

/* A thread with an io_uring, which has work for it while a call of its chain sleeps */
struct worker {
	struct actor		actor;
	struct kevent_call	c;
	struct uring		u;
	int			kq;
	int			wait[2], work[2];
	char			buf[4];
};

static long reads_beside_work(void *arg)
{
	struct worker *w = arg;

	map_uring(&w->u);
	submit_poll(&w->u, w->work[0], false);
	return raw5(w->kq, &w->c, 1, 0, 0);
}

static void check_work(int kq, bool bound)
{
	static struct worker w;
	struct kevent_call read;
	uint64_t start = now_ns();
	struct ukevent ev;

	w = (struct worker){ .kq = kq };
	open_pipe(w.wait);
	open_pipe(w.work);
	MUST_EQ(fcntl(w.wait[0], F_SETFL, 0), 0);
	read = ENTRY(SYS_read, w.wait[0], w.buf, 4);
	w.c = bound ? ENTRY(KEVENT_CALL_BOUND, 1, 0, 0) : read;
	kevent_set_bound(&ev, 1, &read);
	if (bound)
		MUST_EQ(kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev), 0);
	start_actor(&w.actor, reads_beside_work, &w);
	MUST(sleeps_in(w.actor.tid, __NR_kevent_call));
	put_byte(w.work[1]);
	while (!completed(&w.u) && patient(start, PATIENCE_MS))
		;
	CHECK(completed(&w.u));
	MUST(sleeps_in(w.actor.tid, __NR_kevent_call));
	put_byte(w.wait[1]);
	join_actor(&w.actor, PATIENCE_MS);
	CHECK_EQ(w.actor.ret, 0);
	CHECK_EQ(w.c.result, 1);
	close_uring(&w.u);
	close(w.work[0]);
	close(w.work[1]);
	close(w.wait[0]);
	close(w.wait[1]);
}

/* Work of the task is done, and the call made once more. No program sees that. */
static void work_of_io_uring_ends_no_call(void)
{
	struct queue q;

	open_queue(&q, 0);
	check_work(-1, false);
	check_work(q.fd, true);
	close_queue(&q);
}

static int sleep_in_a_chain(void *arg)
{
	struct kevent_call c = *(struct kevent_call *)arg;

	raw(&c, 1);
	return 1;
}

static void sigkill_ends_a_chain_at_once(void)
{
	struct kevent_call c;
	int fd[2], status;
	char buf[4];
	pid_t pid;

	MUST_EQ(pipe(fd), 0);
	c = ENTRY(SYS_read, fd[0], buf, 4);
	pid = start_child(sleep_in_a_chain, &c);
	CHECK(sleeps_in(pid, __NR_kevent_call));
	kill(pid, SIGKILL);
	MUST_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(fd[0]);
	close(fd[1]);
}

/*
 * A descriptor on its way through a socket goes with that socket, by task work. After
 * close() as an ordinary call the next call finds it gone.
 */
static void files_are_gone_before_the_next_call(void)
{
	char buf[4];
	int sock[2], pipe[2];
	struct kevent_call c[2];

	open_pipe(pipe);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	send_fd(sock[0], pipe[1]);
	close(pipe[1]);
	c[0] = ENTRY(SYS_close, sock[1], 0, 0);
	c[1] = ENTRY(SYS_read, pipe[0], buf, 4);
	CHECK_EQ(raw(c, 2), 1);
	CHECK_EQ(c[0].result, 0);
	CHECK_EQ(c[1].result, 0);
	close(sock[0]);
	close(pipe[0]);
}

/* Landlock restricts calls, and not who may make them, so a chain is no other way. */

/* Two folders with a file each. Reading is allowed below the first one only. */
struct folders {
	char	name[2][40];
	char	file[2][48];
};

static void make_folders(struct folders *f)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		strcpy(f->name[i], "/tmp/kevent-landlock.XXXXXX");
		MUST(mkdtemp(f->name[i]));
		snprintf(f->file[i], sizeof(f->file[i]), "%s/file", f->name[i]);
		close(open(f->file[i], O_WRONLY | O_CREAT, 0600));
		write_file(f->file[i], "text");
	}
}

static void remove_folders(const struct folders *f)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		CHECK_EQ(unlink(f->file[i]), 0);
		CHECK_EQ(rmdir(f->name[i]), 0);
	}
}

static int allow_reading_below(const char *folder)
{
	const uint64_t right = LANDLOCK_ACCESS_FS_READ_FILE;
	struct landlock_ruleset_attr rules = { .handled_access_fs = right };
	struct landlock_path_beneath_attr below = { .allowed_access = right };
	int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	below.parent_fd = open(folder, O_PATH | O_CLOEXEC);
	if (fd < 0 || below.parent_fd < 0 ||
	    syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH,
		    &below, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_landlock_restrict_self, fd, 0);
}

/* The errno of an open by an ordinary call */
static int why_not(const char *file, int flags)
{
	int fd = open(file, flags | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Opens each file in a chain: the kernel makes all calls, with the results @want. */
static bool opens(const struct folders *f, int flags, const int want[2])
{
	char buf[4];
	struct kevent_call c[] = {
		ENTRY(SYS_openat, AT_FDCWD, f->file[1], flags | O_CLOEXEC),
		ENTRY(SYS_openat, AT_FDCWD, f->file[0], flags | O_CLOEXEC),
		BACK(SYS_pread64, 1, buf, 4),
	};
	unsigned int i;

	if (raw(c, 3) != 2)
		return false;
	for (i = 0; i < 2; i++) {
		const int64_t ret = c[1 - i].result;

		if (want[i] ? ret != want[i] : ret < 0)
			return false;
		if (why_not(f->file[i], flags) != want[i])
			return false;
		if (ret >= 0)
			close((int)ret);
	}
	return flags != O_RDONLY || !memcmp(buf, "text", 4);
}

static int under_landlock(void *arg)
{
	const int all[] = { 0, 0 }, first[] = { 0, -EACCES };
	const struct folders *f = arg;

	CHILD_MUST(opens(f, O_RDONLY, all));
	CHILD_MUST(!allow_reading_below(f->name[0]));
	CHILD_MUST(opens(f, O_RDONLY, first));
	CHILD_MUST(opens(f, O_WRONLY, all));
	return 0;
}

static void landlock_counts(void)
{
	struct folders f;

	make_folders(&f);
	CHECK_EQ(join_child(start_child(under_landlock, &f), PATIENCE_MS), 0);
	remove_folders(&f);
}

static const struct test_case cases[] = {
	TEST(result_becomes_an_argument),
	TEST(any_argument_may_be_a_result),
	TEST(results_come_from_entries_in_front),
	TEST(error_is_no_argument),
	TEST(results_are_for_calls_of_the_list),
	TEST(entries_between_are_cancelled),
	TEST(jumps_follow_the_sign_of_the_result),
	TEST(jump_past_the_end_ends_the_chain),
	TEST(work_is_bounded),
	TEST(bad_arguments_are_refused),
	TEST(flags_of_an_entry_are_refused),
	TEST(calls_outside_the_list_are_refused),
	TEST(refusal_ends_the_chain),
	TEST(errors_of_a_call_are_no_refusals),
	TEST(result_may_look_like_a_code),
	TEST(entry_that_cannot_be_read_is_efault),
	TEST(entry_that_is_cut_is_efault),
	TEST(result_that_cannot_be_written_is_efault),
	TEST(entries_change_until_their_turn),
	TEST(result_is_read_when_the_turn_comes),
	TEST(memory_may_go_away_during_a_call),
	TEST(signal_ends_the_chain),
	TEST(work_of_io_uring_ends_no_call),
	TEST(library_goes_on_after_a_signal),
	TEST(sigkill_ends_a_chain_at_once),
	TEST(files_are_gone_before_the_next_call),
	TEST(landlock_counts),
	{ }
};

const struct test_suite calls_suite = {
	.name = "calls",
	.cases = cases,
};

#endif
