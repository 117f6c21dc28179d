// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_FUTEX: a watch that waits for a word like a thread in FUTEX_WAIT
 *
 *	word at ADD, MODIFY	ready
 *	not what is expected	at once
 *	as expected		when a FUTEX_WAKE picks the watch, once
 *
 * A FUTEX_WAKE that went to a watch and can no longer be delivered goes to the next
 * waiter.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "helpers.h"

#define PRIVATE		KEVENT_FUTEX_PRIVATE
#define WAKE		KEVENT_FUTEX_WAKE

static long futex(uint32_t *word, int op, uint32_t val, uintptr_t val2,
		  uint32_t *word2, uint32_t val3)
{
	long ret = syscall(__NR_futex, word, op, val, val2, word2, val3);

	return ret < 0 ? -errno : ret;
}

static long wake_private(uint32_t *word, int nr)
{
	return futex(word, FUTEX_WAKE_PRIVATE, nr, 0, NULL, 0);
}

static long wake_shared(uint32_t *word, int nr)
{
	return futex(word, FUTEX_WAKE, nr, 0, NULL, 0);
}

/* With the module, a thread waits for the word: it may not have come to wait yet. */
static void wake_waiter(uint32_t *word)
{
	uint64_t start = now_ns();

	while (wake_private(word, 1) == 0)
		MUST(patient(start, PATIENCE_MS));
}

static int ctl_futex(int kq, unsigned int cmd, uint32_t *word,
		     uint32_t expected, uint32_t event, uint32_t flags)
{
	struct ukevent ev;

	kevent_set_futex(&ev, word, expected, event, flags, 5);
	return kevent_ctl_one(kq, cmd, &ev);
}

static int add_futex(int kq, uint32_t *word, uint32_t expected, uint32_t flags)
{
	return ctl_futex(kq, KEVENT_CTL_ADD, word, expected, PRIVATE, flags);
}

static int modify_futex(int kq, uint32_t *word, uint32_t expected, uint32_t flags)
{
	return ctl_futex(kq, KEVENT_CTL_MODIFY, word, expected, PRIVATE,
			 flags);
}

static int remove_futex(int kq, uint32_t *word)
{
	return ctl_futex(kq, KEVENT_CTL_REMOVE, word, 0, 0, 0);
}

static void check_woken_event(struct queue *q, uint32_t *word)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.type, KEVENT_FUTEX);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK(ev.id.raw_u64 == (uintptr_t)word);
	CHECK_EQ(ev.ret_data[0], WAKE);
	CHECK_EQ(ev.ret_data[1], 0);
	CHECK_EQ(ev.ptr, 5);
}

static uint32_t *shared_word(void)
{
	uint32_t *word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(word != MAP_FAILED);
	return word;
}

static int mark_from_child(void *kq)
{
	return mark_user(*(int *)kq, 1, 1) != 1;
}

static void check_mark(struct queue *q)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.type, KEVENT_USER);
}

/* A thread in FUTEX_WAIT, or FUTEX_WAIT_BITSET */
struct sleeper {
	struct actor	actor;
	uint32_t	*word;
	int		op;
	uint32_t	bits;
};

static long sleep_on(void *arg)
{
	struct sleeper *s = arg;

	return futex(s->word, s->op, *s->word, 0, NULL, s->bits);
}

static void start_sleeper_for(struct sleeper *s, uint32_t *word, uint32_t bits)
{
	s->word = word;
	s->op = FUTEX_WAIT_BITSET_PRIVATE;
	s->bits = bits;
	start_actor(&s->actor, sleep_on, s);
	MUST(sleeps_in(s->actor.tid, __NR_futex));
}

static void start_sleeper(struct sleeper *s, uint32_t *word, int op)
{
	s->word = word;
	s->op = op;
	s->bits = 0;
	start_actor(&s->actor, sleep_on, s);
	MUST(sleeps_in(s->actor.tid, __NR_futex));
}

static bool sleeper_asleep(struct sleeper *s)
{
	return is_asleep_in(s->actor.tid, __NR_futex);
}

static void check_woken(struct sleeper *s)
{
	join_actor(&s->actor, PATIENCE_MS);
	CHECK_EQ(s->actor.ret, 0);
}

/* One watch */

static void other_value_is_ready_at_once(struct queue *q)
{
	struct ukevent ev;
	uint32_t word = 1;

	kevent_set_futex(&ev, &word, 0, PRIVATE, HAND_BACK, 5);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 1);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK(ev.id.raw_u64 == (uintptr_t)&word);
	CHECK_EQ(ev.ret_data[0], WAKE);
	CHECK_NO_EVENT(q);
	CHECK_EQ(wake_private(&word, 1), 0);
	CHECK_EQ(remove_futex(q->fd, &word), 0);
	CHECK_EQ(add_futex(q->fd, &word, 0, 0), 0);
	check_woken_event(q, &word);
	CHECK_NO_EVENT(q);
}

static void wake_is_one_event(struct queue *q)
{
	uint32_t word = 7;

	CHECK_EQ(add_futex(q->fd, &word, 7, 0), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(wake_private(&word + 1, 1), 0);
	CHECK_EQ(wake_shared(&word, 1), 0);
	CHECK_EQ(wake_private(&word, 1), 1);
	CHECK_EQ(wake_private(&word, 1), 0);
	check_woken_event(q, &word);
	CHECK_NO_EVENT(q);
	CHECK_EQ(wake_private(&word, 1), 0);
	CHECK_NO_EVENT(q);
}

static void modify_arms_again(struct queue *q)
{
	uint32_t word = 7;
	int i;

	CHECK_EQ(add_futex(q->fd, &word, 7, 0), 0);
	for (i = 0; i < 20; i++) {
		CHECK_EQ(wake_private(&word, 1), 1);
		check_woken_event(q, &word);
		CHECK_EQ(modify_futex(q->fd, &word, word, 0), 0);
		CHECK_NO_EVENT(q);
	}
	CHECK_EQ(modify_futex(q->fd, &word, 8, 0), 0);
	CHECK_EQ(wake_private(&word, 1), 0);
	check_woken_event(q, &word);
	CHECK_NO_EVENT(q);
	/* A watch that is armed twice is one waiter. */
	CHECK_EQ(modify_futex(q->fd, &word, 7, 0), 0);
	CHECK_EQ(modify_futex(q->fd, &word, 7, 0), 0);
	CHECK_EQ(wake_private(&word, INT_MAX), 1);
	/* An event that waits for delivery is delivered once. */
	CHECK_EQ(modify_futex(q->fd, &word, 7, 0), 0);
	check_woken_event(q, &word);
	CHECK_NO_EVENT(q);
	CHECK_EQ(wake_private(&word, 1), 0);
}

static void oneshot_goes_with_its_wake(struct queue *q)
{
	uint32_t word = 7;

	CHECK_EQ(add_futex(q->fd, &word, 7, KEVENT_REQ_ONESHOT), 0);
	CHECK_EQ(wake_private(&word, 1), 1);
	check_woken_event(q, &word);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_EQ(modify_futex(q->fd, &word, 7, 0), -ENOENT);
	CHECK_EQ(add_futex(q->fd, &word, 8, HAND_BACK | KEVENT_REQ_ONESHOT), 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void disabled_watch_is_no_waiter(struct queue *q)
{
	uint32_t word = 7;

	CHECK_EQ(add_futex(q->fd, &word, 8, KEVENT_REQ_DISABLED), 0);
	CHECK_EQ(wake_private(&word, 1), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_futex(q->fd, &word, 7, KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(wake_private(&word, 1), 1);
	check_woken_event(q, &word);
	CHECK_EQ(modify_futex(q->fd, &word, 7, 0), 0);
	CHECK_EQ(modify_futex(q->fd, &word, 7, KEVENT_REQ_DISABLED), 0);
	CHECK_EQ(wake_private(&word, 1), 0);
	CHECK_NO_EVENT(q);
}

/* A mark leaves the watch armed. If it disarms the watch, a wake-up stays. */
static void mark_is_an_event_too(struct queue *q)
{
	uint32_t word = 7;

	CHECK_EQ(add_futex(q->fd, &word, 7, KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(ctl_futex(q->fd, KEVENT_CTL_READY, &word, 0, 0, 0), 1);
	check_woken_event(q, &word);
	CHECK_EQ(wake_private(&word, 1), 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_futex(q->fd, &word, 7, 0), 0);
	check_woken_event(q, &word);
	CHECK_NO_EVENT(q);
}

static void wake_wakes_a_waiter(void)
{
	uint32_t word = 1;
	struct waiter w;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_futex(q.fd, &word, 1, 0), 0);
	start_waiter(&w, &q, 4);
	CHECK_EQ(wake_private(&word, 1), 1);
	CHECK_EQ(join_waiter(&w), 1);
	close_queue(&q);
}

/* The entry is in read-only memory: the event is queued. */
static void event_that_cannot_be_handed_back_is_queued(void)
{
	struct ukevent *ev = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t word = 1;
	struct queue q;

	open_queue(&q, 0);
	kevent_set_futex(ev, &word, 0, PRIVATE, HAND_BACK, 5);
	MUST_EQ(mprotect(ev, PAGE, PROT_READ), 0);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_ADD, 1, ev), 0);
	check_woken_event(&q, &word);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* Several waiters */

static void waiters_are_woken_oldest_first(void)
{
	uint32_t word = 1;
	struct sleeper s;
	struct queue a, b;

	open_queue(&a, 0);
	open_queue(&b, 8);
	MUST_EQ(add_futex(a.fd, &word, 1, 0), 0);
	start_sleeper(&s, &word, FUTEX_WAIT_PRIVATE);
	MUST_EQ(add_futex(b.fd, &word, 1, 0), 0);
	CHECK_EQ(wake_private(&word, 1), 1);
	check_woken_event(&a, &word);
	CHECK(sleeper_asleep(&s));
	CHECK_NO_EVENT(&b);
	CHECK_EQ(wake_private(&word, 1), 1);
	check_woken(&s);
	CHECK_NO_EVENT(&b);
	MUST_EQ(modify_futex(a.fd, &word, 1, 0), 0);
	CHECK_EQ(wake_private(&word, INT_MAX), 2);
	check_woken_event(&a, &word);
	check_woken_event(&b, &word);
	close_queue(&a);
	close_queue(&b);
}

static void requeue_moves_the_watch(struct queue *q)
{
	uint32_t a = 1, b = 2;

	CHECK_EQ(add_futex(q->fd, &a, 1, 0), 0);
	CHECK_EQ(futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1, &b, 1), 1);
	CHECK_EQ(wake_private(&a, 1), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(wake_private(&b, 1), 1);
	check_woken_event(q, &a);
	CHECK_EQ(modify_futex(q->fd, &a, 1, 0), 0);
	CHECK_EQ(futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &b, 1), 1);
	check_woken_event(q, &a);
	CHECK_EQ(modify_futex(q->fd, &a, 1, 0), 0);
	CHECK_EQ(futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1, &b, 1), 1);
	/* The waiter moves from a to b. */
	CHECK_EQ(modify_futex(q->fd, &a, 1, 0), 0);
	CHECK_EQ(wake_private(&b, 1), 0);
	CHECK_EQ(wake_private(&a, 1), 1);
	check_woken_event(q, &a);
}

/* Priority inheritance needs a thread whose priority it can raise. */
static void lock_of_another_kind_is_refused(void)
{
	uint32_t a = 1, b = 0;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_futex(q.fd, &a, 1, 0), 0);
	CHECK_EQ(futex(&a, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, 1, &b, 1),
		 -EINVAL);
	a = getpid() + 1;
	CHECK(futex(&a, FUTEX_LOCK_PI_PRIVATE, 0, 0, NULL, 0) < 0);
	CHECK_EQ(wake_private(&a, 1), 1);
	check_woken_event(&q, &a);
	close_queue(&q);
}

/* Other processes */

static int wakes_shared(void *arg)
{
	CHILD_MUST(wake_private(arg, 1) == 0);
	CHILD_MUST(wake_shared(arg, 1) == 1);
	return 0;
}

static void shared_word_is_woken_by_another_process(void)
{
	uint32_t *word = shared_word();
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(ctl_futex(q.fd, KEVENT_CTL_ADD, word, 0, 0, 0), 0);
	CHECK_EQ(join_child(start_child(wakes_shared, word), PATIENCE_MS), 0);
	check_woken_event(&q, word);
	close_queue(&q);
}

struct family {
	struct queue	q;
	uint32_t	*word;
};

static int has_another_memory(void *arg)
{
	struct family *f = arg;

	CHILD_MUST(modify_futex(f->q.fd, f->word, 0, 0) == -EPERM);
	CHILD_MUST(remove_futex(f->q.fd, f->word) == -EPERM);
	CHILD_MUST(ctl_futex(f->q.fd, KEVENT_CTL_READY, f->word, 0, 0, 0) ==
		   -EPERM);
	CHILD_MUST(add_futex(f->q.fd, f->word, 0, 0) == -EEXIST);
	CHILD_MUST(wake_private(f->word, 1) == 0);
	return 0;
}

static void word_is_of_the_process_that_added_it(void)
{
	uint32_t word = 0;
	struct family f = { .word = &word };

	open_queue(&f.q, 0);
	MUST_EQ(add_futex(f.q.fd, &word, 0, 0), 0);
	CHECK_EQ(join_child(start_child(has_another_memory, &f), PATIENCE_MS),
		 0);
	wake_waiter(&word);
	check_woken_event(&f.q, &word);
	close_queue(&f.q);
}

static uint32_t own_word;

static int adds_two(void *arg)
{
	struct family *f = arg;

	CHILD_MUST(ctl_futex(f->q.fd, KEVENT_CTL_ADD, f->word, 0, 0, 0) == 0);
	CHILD_MUST(add_futex(f->q.fd, &own_word, 0, 0) == 0);
	return 0;
}

static int wakes_own_word(void *arg)
{
	CHILD_MUST(wake_private(&own_word, 1) == 0);
	return arg ? 1 : 0;
}

/* The queue exists longer than the process that added the watches. */
static void watch_of_a_process_that_is_gone(void)
{
	struct family f = { .word = shared_word() };
	struct ukevent ev;
	int i;

	open_queue(&f.q, 0);
	CHECK_EQ(join_child(start_child(adds_two, &f), PATIENCE_MS), 0);
	/* No mm_struct is allocated at the address of the one that is gone. */
	for (i = 0; i < 16; i++)
		CHECK_EQ(join_child(start_child(wakes_own_word, NULL),
				    PATIENCE_MS), 0);
	CHECK_EQ(get_events(f.q.fd, 1, 1, 0, &ev), 0);
	CHECK_EQ(fdinfo(f.q.fd, "kevent-watches"), 2);
	CHECK_EQ(wake_shared(f.word, 1), 1);
	check_woken_event(&f.q, f.word);
	CHECK_EQ(modify_futex(f.q.fd, f.word, 0, 0), -EXDEV);
	CHECK_EQ(remove_futex(f.q.fd, f.word), 0);
	close_queue(&f.q);
}

/*
 * A requeue by another process to a word of its own memory would leave the watch
 * with a key that says where that was. It is woken instead.
 */
/* Private memory, although the flag says shared */
static int requeues_to_own_word(void *arg)
{
	CHILD_MUST(futex(arg, FUTEX_CMP_REQUEUE, 0, 1, &own_word, 0) == 1);
	CHILD_MUST(wake_shared(&own_word, 1) == 0);
	return 0;
}

static int requeues_to_shared_word(void *arg)
{
	uint32_t *word = arg;

	CHILD_MUST(futex(word, FUTEX_CMP_REQUEUE, 0, 1, word + 1, 0) == 1);
	return 0;
}

static void watch_stays_out_of_the_memory_of_others(void)
{
	uint32_t *word = shared_word();
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(ctl_futex(q.fd, KEVENT_CTL_ADD, word, 0, 0, 0), 0);
	CHECK_EQ(join_child(start_child(requeues_to_own_word, word),
			    PATIENCE_MS), 0);
	check_woken_event(&q, word);
	MUST_EQ(ctl_futex(q.fd, KEVENT_CTL_MODIFY, word, 0, 0, 0), 0);
	CHECK_EQ(join_child(start_child(requeues_to_shared_word, word),
			    PATIENCE_MS), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(wake_shared(word + 1, 1), 1);
	check_woken_event(&q, word);
	close_queue(&q);
}

/* What a queue keeps of processes that have ended */

struct guest {
	struct queue	*q;
	uint32_t	*word;
	int		want;
};

static int adds_one(void *arg)
{
	struct guest *g = arg;

	CHILD_MUST(add_futex(g->q->fd, g->word, 0, 0) == g->want);
	return 0;
}

/* In a process of its own, which has ended when this returns */
static void add_as_guest(struct queue *q, uint32_t *word, int want)
{
	struct guest g = { q, word, want };

	CHECK_EQ(join_child(start_child(adds_one, &g), PATIENCE_MS), 0);
}

static long long charged(const struct queue *q)
{
	return fdinfo(q->fd, "kevent-user-bytes");
}

/* Each watch pays for the address space that it keeps. */
static void address_spaces_of_a_queue_are_limited(void)
{
	uint32_t *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long long before, own, each;
	char old[32], value[32];
	struct queue q;

	open_queue(&q, 0);
	before = charged(&q);
	/* The address space of the queue's own process is not charged. */
	CHECK_EQ(add_futex(q.fd, words, 0, 0), 0);
	own = charged(&q) - before;
	add_as_guest(&q, words + 1, 0);
	each = charged(&q) - before - own;
	CHECK(each > own + 4096);
	read_file(MAX_BYTES, old, sizeof(old));
	snprintf(value, sizeof(value), "%lld", before + own + 2 * each);
	write_file(MAX_BYTES, value);
	add_as_guest(&q, words + 2, 0);
	add_as_guest(&q, words + 3, -ENOSPC);
	CHECK_EQ(charged(&q), before + own + 2 * each);
	CHECK_EQ(remove_futex(q.fd, words + 1), 0);
	add_as_guest(&q, words + 3, 0);
	CHECK_EQ(remove_futex(q.fd, words), 0);
	CHECK_EQ(remove_futex(q.fd, words + 2), 0);
	CHECK_EQ(remove_futex(q.fd, words + 3), 0);
	write_file(MAX_BYTES, old);
	CHECK_EQ(charged(&q), before);
	close_queue(&q);
}

/* Wake-ups that cannot be delivered */

static void remove_it(struct queue *q, uint32_t *word)
{
	CHECK_EQ(remove_futex(q->fd, word), 0);
}

static void close_it(struct queue *q, uint32_t *word)
{
	CHECK_EQ(close(q->fd), 0);
	open_queue(q, 0);
	MUST_EQ(add_futex(q->fd, word, *word, KEVENT_REQ_DISABLED), 0);
}

static void disable_it(struct queue *q, uint32_t *word)
{
	CHECK_EQ(modify_futex(q->fd, word, *word, KEVENT_REQ_DISABLED), 0);
}

static void check_passed_on(void (*give_up)(struct queue *q, uint32_t *word))
{
	uint32_t word = 3;
	struct sleeper s;
	struct queue a, b;

	open_queue(&a, 0);
	open_queue(&b, 0);
	MUST_EQ(add_futex(a.fd, &word, 3, 0), 0);
	start_sleeper(&s, &word, FUTEX_WAIT_PRIVATE);
	MUST_EQ(add_futex(b.fd, &word, 3, 0), 0);
	CHECK_EQ(wake_private(&word, 1), 1);
	CHECK(sleeper_asleep(&s));
	give_up(&a, &word);
	check_woken(&s);
	CHECK_NO_EVENT(&a);
	CHECK_NO_EVENT(&b);
	/*
	 * The wake-up goes to another watch. Nobody waits when that one gives
	 * it up.
	 */
	remove_futex(a.fd, &word);
	MUST_EQ(add_futex(a.fd, &word, 3, 0), 0);
	CHECK_EQ(wake_private(&word, 1), 1);
	give_up(&b, &word);
	check_woken_event(&a, &word);
	CHECK_EQ(wake_private(&word, 1), 0);
	close_queue(&a);
	close_queue(&b);
}

static void remove_passes_the_wake_on(void)
{
	check_passed_on(remove_it);
}

static void close_passes_the_wake_on(void)
{
	check_passed_on(close_it);
}

static void disabling_passes_the_wake_on(void)
{
	check_passed_on(disable_it);
}

struct dying {
	uint32_t	*word;
	int		go[2];
};

static int adds_and_ends(void *arg)
{
	struct dying *d = arg;
	int kq = kevent_init(NULL, 0, 0);
	char byte;

	CHILD_MUST(ctl_futex(kq, KEVENT_CTL_ADD, d->word, 0, 0, 0) == 0);
	put_byte(d->go[1]);
	CHILD_MUST(read(d->go[0], &byte, 1) == 1);
	return 0;
}

static void exit_passes_the_wake_on(void)
{
	struct dying child, d = { .word = shared_word() };
	int to[2], from[2];
	struct sleeper s;
	char byte;
	pid_t pid;

	MUST_EQ(pipe(to), 0);
	MUST_EQ(pipe(from), 0);
	child = (struct dying){ .word = d.word, .go = { to[0], from[1] } };
	pid = start_child(adds_and_ends, &child);
	MUST_EQ(read(from[0], &byte, 1), 1);
	start_sleeper(&s, d.word, FUTEX_WAIT);
	CHECK_EQ(wake_shared(d.word, 1), 1);
	CHECK(sleeper_asleep(&s));
	put_byte(to[1]);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	check_woken(&s);
}

static long wake_bits(uint32_t *word, int nr, uint32_t bits)
{
	return futex(word, FUTEX_WAKE_BITSET_PRIVATE, nr, 0, NULL, bits);
}

/*
 * The bits of the waker are no longer known. So the waiter that it meant is
 * woken, and also the waiters in front of it with other bits. No waiter behind
 * one that accepts any bits is woken.
 */
static void wake_of_some_bits_is_passed_on(void)
{
	struct sleeper first, second, twin, any, last;
	uint32_t word = 3;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_futex(q.fd, &word, 3, 0), 0);
	start_sleeper_for(&first, &word, 1);
	start_sleeper_for(&twin, &word, 1);
	start_sleeper_for(&second, &word, 6);
	start_sleeper(&any, &word, FUTEX_WAIT_PRIVATE);
	start_sleeper_for(&last, &word, 8);
	CHECK_EQ(wake_bits(&word, 1, 2), 1);
	CHECK(sleeper_asleep(&second));
	remove_it(&q, &word);
	check_woken(&second);
	check_woken(&first);
	check_woken(&any);
	CHECK(sleeper_asleep(&twin));
	CHECK(sleeper_asleep(&last));
	CHECK_EQ(wake_private(&word, INT_MAX), 2);
	check_woken(&twin);
	check_woken(&last);
	close_queue(&q);
}

static void delivered_wake_is_not_passed_on(struct queue *q)
{
	uint32_t word = 3;
	struct sleeper s;

	CHECK_EQ(add_futex(q->fd, &word, 3, 0), 0);
	start_sleeper(&s, &word, FUTEX_WAIT_PRIVATE);
	CHECK_EQ(wake_private(&word, 1), 1);
	check_woken_event(q, &word);
	CHECK_EQ(remove_futex(q->fd, &word), 0);
	/* The sleeper still waits, so it gets this wake-up. */
	CHECK_EQ(wake_private(&word, 1), 1);
	check_woken(&s);
}

/* Errors and faults */

static void bad_requests_are_refused(void)
{
	uint32_t word[2] = {}, *hole = shared_word();
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	/* Not unmapped: the stack of a thread may come to be there. */
	MUST_EQ(mprotect(hole, PAGE, PROT_NONE), 0);
	CHECK_EQ(add_futex(q.fd, (void *)((char *)word + 2), 0, 0), -EINVAL);
	CHECK_EQ(ctl_futex(q.fd, KEVENT_CTL_ADD, word, 0, 4, 0), -EINVAL);
	kevent_set_futex(&ev, word, 0, 0, 0, 0);
	ev.event = PRIVATE;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), -EINVAL);
	kevent_set_futex(&ev, word, 0, 0, 0, 0);
	ev.ret_data[1] = 1;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), -EINVAL);
	CHECK_EQ(add_futex(q.fd, hole, 0, 0), -EFAULT);
	CHECK_EQ(ctl_futex(q.fd, KEVENT_CTL_ADD, hole, 0, 0, 0), -EFAULT);
	CHECK_EQ(add_futex(q.fd, (void *)(-2 * PAGE), 0, 0), -EFAULT);
	CHECK_EQ(modify_futex(q.fd, word, 0, 0), -ENOENT);
	CHECK_EQ(remove_futex(q.fd, word), -ENOENT);
	CHECK_EQ(ctl_futex(q.fd, KEVENT_CTL_READY, word, 0, 0, 0), -ENOENT);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	CHECK_EQ(add_futex(q.fd, word, 0, 0), 0);
	CHECK_EQ(add_futex(q.fd, word, 0, 0), -EEXIST);
	CHECK_EQ(ctl_futex(q.fd, KEVENT_CTL_ADD, word, 0, 0, 0), -EEXIST);
	kevent_set_futex(&ev, word, 0, 0, 0, 0);
	ev.event = PRIVATE;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), -EINVAL);
	/* A thread that waits for words may not have come to wait. */
	if (!on_fallback() && !on_module()) {
		CHECK_EQ(wake_private(word, INT_MAX), 1);
		check_woken_event(&q, word);
	}
	close_queue(&q);
}

/* MODIFY with an unmapped word leaves the watch as it was, but disarmed. */
static void failed_modify_disarms(void)
{
	uint32_t *word = shared_word();
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_futex(q.fd, word, 0, 0), 0);
	MUST_EQ(munmap(word, PAGE), 0);
	CHECK_EQ(modify_futex(q.fd, word, 0, 0), -EFAULT);
	MUST(mmap(word, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		  MAP_ANONYMOUS | MAP_FIXED, -1, 0) == word);
	CHECK_EQ(wake_private(word, 1), 0);
	CHECK_EQ(modify_futex(q.fd, word, 0, 0), 0);
	CHECK_EQ(wake_private(word, 1), 1);
	check_woken_event(&q, word);
	close_queue(&q);
}

/* A word whose page is served late */
struct late {
	struct actor	actor;
	struct queue	q;
	uint32_t	*word;
	unsigned int	cmd;
	uint32_t	event;
	int		uffd;
};

static long ctl_late(void *arg)
{
	struct late *l = arg;

	return ctl_futex(l->q.fd, l->cmd, l->word, 0, l->event, 0);
}

static void get_stuck(struct late *l)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)l->word, .len = PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct pollfd pfd = { .events = POLLIN };
	struct uffd_msg msg;

	l->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	MUST(l->uffd >= 0);
	MUST_EQ(ioctl(l->uffd, UFFDIO_API, &api), 0);
	MUST_EQ(madvise(l->word, PAGE, MADV_DONTNEED), 0);
	MUST_EQ(ioctl(l->uffd, UFFDIO_REGISTER, &reg), 0);
	start_actor(&l->actor, ctl_late, l);
	pfd.fd = l->uffd;
	MUST_EQ(poll(&pfd, 1, PATIENCE_MS * slowness), 1);
	MUST_EQ(read(l->uffd, &msg, sizeof(msg)), sizeof(msg));
}

static void get_loose(struct late *l, long want)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)l->word, .len = PAGE },
	};

	MUST_EQ(ioctl(l->uffd, UFFDIO_ZEROPAGE, &zero), 0);
	join_actor(&l->actor, PATIENCE_MS);
	CHECK_EQ(l->actor.ret, want);
	close(l->uffd);
}

static void check_fault(unsigned int cmd, uint32_t event)
{
	struct late l = { .cmd = cmd, .event = event };
	uint32_t other = 0;

	l.word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(l.word != MAP_FAILED);
	open_queue(&l.q, 0);
	if (cmd == KEVENT_CTL_MODIFY)
		MUST_EQ(add_futex(l.q.fd, l.word, 0, 0), 0);
	get_stuck(&l);
	MUST_EQ(add_futex(l.q.fd, &other, 0, 0), 0);
	CHECK_EQ(wake_private(&other, 1), 1);
	check_woken_event(&l.q, &other);
	CHECK_EQ(ctl_futex(l.q.fd, KEVENT_CTL_MODIFY, l.word, 0, event, 0),
		 -EBUSY);
	get_loose(&l, 0);
	CHECK_EQ(event & PRIVATE ? wake_private(l.word, 1) :
		 wake_shared(l.word, 1), 1);
	check_woken_event(&l.q, l.word);
	/* A watch is removed while it is being armed. */
	MUST_EQ(remove_futex(l.q.fd, l.word), 0);
	if (cmd == KEVENT_CTL_MODIFY)
		MUST_EQ(add_futex(l.q.fd, l.word, 0, 0), 0);
	get_stuck(&l);
	CHECK_EQ(remove_futex(l.q.fd, l.word), 0);
	CHECK_EQ(add_futex(l.q.fd, l.word, 0, KEVENT_REQ_DISABLED), 0);
	get_loose(&l, cmd == KEVENT_CTL_ADD ? 0 : -ENOENT);
	CHECK_EQ(wake_private(l.word, 1), 0);
	CHECK_EQ(wake_shared(l.word, 1), 0);
	CHECK_NO_EVENT(&l.q);
	CHECK_EQ(fdinfo(l.q.fd, "kevent-watches"), 2);
	close_queue(&l.q);
}

static void fault_at_add_holds_up_nobody(void)
{
	check_fault(KEVENT_CTL_ADD, PRIVATE);
	check_fault(KEVENT_CTL_ADD, 0);
}

static void fault_at_modify_holds_up_nobody(void)
{
	check_fault(KEVENT_CTL_MODIFY, PRIVATE);
	check_fault(KEVENT_CTL_MODIFY, 0);
}

/* A mark that waits is not lost when the word is gone. */
static void failed_modify_keeps_the_event(struct queue *q)
{
	uint32_t *word = shared_word();

	MUST_EQ(add_futex(q->fd, word, 0, 0), 0);
	/* The older event waits, and so does the mark. */
	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	MUST_EQ(join_child(start_child(mark_from_child, &q->fd), PATIENCE_MS),
		0);
	MUST_EQ(ctl_futex(q->fd, KEVENT_CTL_READY, word, 0, PRIVATE, 0), 1);
	MUST_EQ(munmap(word, PAGE), 0);
	CHECK_EQ(modify_futex(q->fd, word, 0, 0), -EFAULT);
	check_mark(q);
	check_woken_event(q, word);
	CHECK_NO_EVENT(q);
}

static const struct test_case cases[] = {
	TEST_EACH(other_value_is_ready_at_once),
	TEST_EACH(wake_is_one_event),
	TEST_EACH(modify_arms_again),
	TEST_EACH(oneshot_goes_with_its_wake),
	TEST_EACH(disabled_watch_is_no_waiter),
	TEST_EACH(mark_is_an_event_too),
	TEST(wake_wakes_a_waiter),
	TEST(event_that_cannot_be_handed_back_is_queued),
	TEST(waiters_are_woken_oldest_first),
	TEST_EACH(requeue_moves_the_watch),
	TEST(lock_of_another_kind_is_refused),
	TEST(shared_word_is_woken_by_another_process),
	TEST(word_is_of_the_process_that_added_it),
	TEST(watch_of_a_process_that_is_gone),
	TEST(watch_stays_out_of_the_memory_of_others),
	TEST(address_spaces_of_a_queue_are_limited),
	TEST(remove_passes_the_wake_on),
	TEST(close_passes_the_wake_on),
	TEST(disabling_passes_the_wake_on),
	TEST(exit_passes_the_wake_on),
	TEST(wake_of_some_bits_is_passed_on),
	TEST_EACH(delivered_wake_is_not_passed_on),
	TEST(bad_requests_are_refused),
	TEST(failed_modify_disarms),
	TEST_EACH(failed_modify_keeps_the_event),
	TEST_LIMIT(fault_at_add_holds_up_nobody, 30),
	TEST_LIMIT(fault_at_modify_holds_up_nobody, 30),
	{}
};

const struct test_suite futex_suite = { .name = "futex", .cases = cases };
