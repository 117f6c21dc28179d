// SPDX-License-Identifier: GPL-2.0
/*
 * Races of KEVENT_SIGNAL with a time budget: a thread and another process send
 * numbered real-time signals, while the watches are added, modified and removed,
 * and their queue is closed. Each number that was sent ends in one place:
 *
 *	handled		by the handler
 *	consumed	in an event that says so
 *	dropped		by REMOVE or close, where the test does that on purpose
 *
 * The event of a handled signal says that it was not consumed. A watch that consumes
 * takes what is pending when it is armed, which it may have observed before, and REMOVE may
 * drop then. The fallback of the library only consumes, so there REMOVE comes where losses
 * are allowed.
 *
 * KEVENT_STORM_SECONDS in the environment sets the budget of each test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "signals.h"

#define SENDERS		2
#define SIG(s)		(RT + (s))
#define NUMBERS		(1 << 21)	/* per sender */
#define LIMIT		300		/* signals that are pending */

struct number {
	_Atomic unsigned char	handled;
	unsigned char		consumed;
	unsigned char		observed;
};

/* Shared with the process that sends */
struct traffic {
	uint64_t	start;
	pid_t		receiver;
	_Atomic bool	done;
	_Atomic bool	enough;		/* of all that must happen did */
	_Atomic long	handled;
	_Atomic long	delivered;	/* to the processes of short life */
	_Atomic int	sent[SENDERS];	/* numbers below have been sent */
	_Atomic int	came[SENDERS];	/* so many were handled or consumed */
	bool		gently;
	struct number	number[SENDERS][NUMBERS];
};

static struct traffic *traffic;

struct totals {
	long	consumed, observed, lost, wrong;
};

static int watch_mode(uint64_t random)
{
	return on_fallback() || random & 1 ? CONSUME : OBSERVE;
}

static bool traffic_on(void)
{
	return storm_goes_on(traffic->start, atomic_load(&traffic->enough));
}

/*
 * The fallback sends a signal that no watch wants any more once again. If the last queue
 * goes while the limit is met, it does that without the number.
 */
static bool has_number(int code)
{
	return !on_fallback() || traffic->gently || code != SI_USER;
}

static void receive(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (!has_number(info->si_code))
		return;
	atomic_fetch_add(&traffic->came[sig - RT], 1);
	atomic_fetch_add(&traffic->handled, 1);
	atomic_fetch_add(&traffic->number[sig - RT][info->si_value.sival_int]
			 .handled, 1);
}

/* The fallback takes signals without a limit, and drops none up to 65536 of them. */
static void await_room(int s, int nr)
{
	while (on_fallback() && traffic->gently && traffic_on() &&
	       nr - atomic_load(&traffic->came[s]) > LIMIT)
		sched_yield();
}

static long send_numbers(int s)
{
	int i;

	for (i = 0; i < NUMBERS && traffic_on(); i++) {
		union sigval value = { .sival_int = i };

		await_room(s, i);
		while (sigqueue(traffic->receiver, SIG(s), value)) {
			if (errno != EAGAIN)
				return -errno;
			if (!traffic_on())
				return 0;
			sched_yield();
		}
		atomic_store(&traffic->sent[s], i + 1);
	}
	return 0;
}

static long sending_thread(void *arg)
{
	(void)arg;
	return send_numbers(0);
}

static int sending_process(void *arg)
{
	(void)arg;
	return -send_numbers(1);
}

/* The only thread that takes events */
static long receiving_thread(void *arg)
{
	sigset_t set;

	(void)arg;
	sigemptyset(&set);
	while (!atomic_load(&traffic->done))
		sigsuspend(&set);
	return 0;
}

static void account(struct totals *t, const struct ukevent *ev)
{
	unsigned int s = ev->id.raw[0] - RT, nr = ev->ret_data[1];
	struct number *n;

	if (!has_number((int)ev->ret_data[0]))
		return;
	if (ev->type != KEVENT_SIGNAL || s >= SENDERS || nr >= NUMBERS ||
	    ev->ret_data[0] != (uint32_t)SI_QUEUE) {
		t->wrong++;
		return;
	}
	n = &traffic->number[s][nr];
	if (!(ev->id.raw_u64 & NOMASK)) {
		n->observed++;
		t->observed++;
		return;
	}
	n->consumed++;
	t->consumed++;
	atomic_fetch_add(&traffic->came[s], 1);
}

static bool take_signals(struct queue *q, struct totals *t, unsigned int max)
{
	struct ukevent ev;

	while (max--) {
		if (next_event(q, &ev, 0) != 1)
			return false;
		account(t, &ev);
	}
	return true;
}

/*
 * REMOVE loses no signal of a watch that no longer consumes and that has been
 * read, since then, as far as it can be behind, with the other watch in
 * between.
 */
static void remove_gently(struct queue *q, struct totals *t, int sig)
{
	if (on_fallback() ||
	    change_signal(q->fd, KEVENT_CTL_MODIFY, sig, OBSERVE, 0))
		return;
	take_signals(q, t, SENDERS * (LIMIT + 1) + 16);
	remove_signal(q->fd, sig);
}

static void churn(struct queue *q, struct totals *t, uint64_t *rnd, bool gently)
{
	static const uint32_t modes[] = {
		0, 0, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED,
		KEVENT_REQ_ONESHOT,
	};
	uint32_t mode = modes[next_random(rnd) %
			      (gently ? 4 : ARRAY_SIZE(modes))];
	int sig = SIG(next_random(rnd) % SENDERS);

	switch (next_random(rnd) % 8) {
	case 0 ... 1:
		add_signal(q->fd, sig, watch_mode(next_random(rnd)), mode);
		break;
	case 2 ... 3:
		change_signal(q->fd, KEVENT_CTL_MODIFY, sig,
			      watch_mode(next_random(rnd)), mode);
		break;
	case 4:
		if (gently)
			remove_gently(q, t, sig);
		else
			remove_signal(q->fd, sig);
		break;
	case 5:
		if (gently || next_random(rnd) % 32)
			break;
		close_queue(q);
		open_queue(q, next_random(rnd) & 1 ? 16 : 0);
		break;
	default:
		take_signals(q, t, 20);
	}
}

static void finish(struct queue *q, struct totals *t)
{
	int s, modified;

	for (s = 0; s < SENDERS; s++) {
		modified = change_signal(q->fd, KEVENT_CTL_MODIFY, SIG(s),
					 watch_mode(0), 0);
		MUST(modified == 0 || modified == -ENOENT);
	}
	while (take_signals(q, t, 1000))
		;
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 0);
}

static void add_up(struct totals *t)
{
	int s, i;

	for (s = 0; s < SENDERS; s++) {
		for (i = 0; i < NUMBERS; i++) {
			struct number *n = &traffic->number[s][i];
			int ends = n->handled + n->consumed;

			t->lost += i < traffic->sent[s] && !ends;
			/* The last one may have been sent but not counted. */
			t->wrong += ends > 1 ||
				    n->observed > 1 ||
				    (ends && i > traffic->sent[s]);
		}
	}
}

static bool all_delivered(void)
{
	int s;

	for (s = 0; s < SENDERS; s++)
		if (is_pending(SIG(s)))
			return false;
	return true;
}

static void prepare(void)
{
	struct sigaction sa = { .sa_sigaction = receive,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	int s;

	traffic = mmap(NULL, sizeof(*traffic), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(traffic != MAP_FAILED);
	traffic->receiver = getpid();
	traffic->start = now_ns();
	set_limit(LIMIT);
	for (s = 0; s < SENDERS; s++) {
		MUST_EQ(sigaction(SIG(s), &sa, NULL), 0);
		block(SIG(s), SIG_BLOCK);
	}
}

static bool saw_each_kind(const struct totals *t, bool gently)
{
	return traffic->handled > 10 && (!gently || (t->consumed > 10 &&
			(on_fallback() || t->observed > 10)));
}

static void race_changes(uint32_t size, bool gently)
{
	uint64_t rnd = test_seed(), start;
	struct actor sender, receiver;
	struct totals t = {};
	long changes = 0;
	struct queue q;
	pid_t pid;

	prepare();
	traffic->gently = gently;
	/* The child must not keep the queue open. */
	pid = start_child(sending_process, NULL);
	open_queue(&q, size);
	start_actor(&receiver, receiving_thread, NULL);
	start_actor(&sender, sending_thread, NULL);
	for (; traffic_on(); changes++) {
		churn(&q, &t, &rnd, gently);
		atomic_store(&traffic->enough, saw_each_kind(&t, gently));
	}
	join_actor(&sender, PATIENCE_MS);
	CHECK_EQ(sender.ret, 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	finish(&q, &t);
	for (start = now_ns(); !all_delivered();)
		MUST(patient(start, PATIENCE_MS));
	atomic_store(&traffic->done, true);
	/* Any signal ends sigsuspend(); this one has no number. */
	if (!on_fallback())
		close_queue(&q);
	traffic->sent[0]++;
	start = now_ns();
	while (!actor_ended(&receiver) && patient(start, PATIENCE_MS))
		sigqueue(getpid(), SIG(0),
			 (union sigval){ .sival_int = NUMBERS - 1 });
	join_actor(&receiver, PATIENCE_MS);
	/* The receiver has handled, for the fallback, what its watches consume. */
	if (on_fallback()) {
		while (take_signals(&q, &t, 1000))
			;
		close_queue(&q);
	}
	traffic->sent[0]--;
	traffic->number[0][NUMBERS - 1] = (struct number){};
	add_up(&t);
	note("%ld changes; %d and %d sent: %ld handled, %ld consumed, %ld observed, %ld dropped",
	     changes, traffic->sent[0], traffic->sent[1], traffic->handled, t.consumed,
	     t.observed, t.lost);
	CHECK_EQ(t.wrong, 0);
	CHECK(saw_each_kind(&t, gently));
	if (gently)
		CHECK_EQ(t.lost, 0);
}

static void signals_race_changes_and_none_is_lost(void)
{
	race_changes(0, true);
}

static void signals_race_changes_of_a_ring_and_none_is_lost(void)
{
	race_changes(16, true);
}

static void signals_race_remove_and_close(void)
{
	race_changes(16, false);
}

/*
 * Processes exit and exec with watches while the queue and the senders
 * continue.
 */
static int short_life(void *arg)
{
	struct queue *q = arg;
	int s;

	for (s = 0; s < SENDERS; s++)
		add_signal(q->fd, SIG(s), CONSUME, 0);
	traffic->receiver = getpid();
	for (s = 0; s < 3000; s++)
		getppid();
	return 0;
}

static long send_to_the_living(void *arg)
{
	int s = 0;

	(void)arg;
	while (!atomic_load(&traffic->done)) {
		pid_t pid = traffic->receiver;

		if (pid != getpid() && !sigqueue(pid, SIG(s++ & 1),
				(union sigval){ .sival_int = 1 }))
			atomic_fetch_add(&traffic->delivered, 1);
	}
	return 0;
}

static long remove_always(void *arg)
{
	struct queue *q = arg;

	while (!atomic_load(&traffic->done)) {
		remove_signal(q->fd, SIG(0));
		close(dup(q->fd));
	}
	return 0;
}

static void exit_races_signals_and_remove(void)
{
	struct actor sender, remover;
	struct ukevent ev[16];
	unsigned int rounds = 0;
	long taken = 0;
	struct queue q;
	pid_t pid;
	int status;

	prepare();
	open_queue(&q, 0);
	start_actor(&sender, send_to_the_living, NULL);
	start_actor(&remover, remove_always, &q);
	for (; traffic_on(); rounds++) {
		atomic_store(&traffic->enough, rounds > 2 && traffic->delivered);
		pid = start_child(short_life, &q);
		while (!waitpid(pid, &status, WNOHANG))
			if (get_events(q.fd, 1, 16, 1, ev) > 0)
				taken++;
		MUST_EQ(status, 0);
	}
	atomic_store(&traffic->done, true);
	join_actor(&sender, PATIENCE_MS);
	join_actor(&remover, PATIENCE_MS);
	note("%u processes, %ld signals, %ld collections", rounds, traffic->delivered, taken);
	CHECK(rounds > 2);
	CHECK(traffic->delivered > 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_LIMIT(signals_race_changes_and_none_is_lost, 30),
	TEST_LIMIT(signals_race_changes_of_a_ring_and_none_is_lost, 30),
	TEST_LIMIT(signals_race_remove_and_close, 30),
	TEST_LIMIT(exit_races_signals_and_remove, 30),
	{}
};

const struct test_suite storm_signal_suite = {
	.name = "storm_signal",
	.cases = cases,
};
