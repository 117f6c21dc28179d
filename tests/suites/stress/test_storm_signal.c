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
#include "storm.h"

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
	struct storm	storm;
	pid_t		receiver;
	long		rounds;
	long		consumed, observed, lost;
	_Atomic long	handled;
	_Atomic long	delivered;	/* to the processes of short life */
	_Atomic int	sent[SENDERS];	/* numbers below have been sent */
	_Atomic int	came[SENDERS];	/* so many were handled or consumed */
	bool		gently;
	struct number	number[SENDERS][NUMBERS];
};

static struct traffic *traffic;

static int watch_mode(uint64_t random)
{
	return on_fallback() || random & 1 ? CONSUME : OBSERVE;
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
static void await_room(unsigned int s, int nr)
{
	while (on_fallback() && traffic->gently && storm_on(&traffic->storm) &&
	       nr - atomic_load(&traffic->came[s]) > LIMIT)
		sched_yield();
}

static void send_number(unsigned int s)
{
	union sigval value = { .sival_int = atomic_load(&traffic->sent[s]) };

	if (value.sival_int == NUMBERS)
		return;
	await_room(s, value.sival_int);
	while (sigqueue(traffic->receiver, SIG(s), value)) {
		storm_expect(&traffic->storm, errno == EAGAIN);
		if (errno != EAGAIN || !storm_on(&traffic->storm))
			return;
		sched_yield();
	}
	atomic_store(&traffic->sent[s], value.sival_int + 1);
}

static void send_from_thread(struct stormer *me)
{
	(void)me;
	send_number(0);
}

static int sending_process(void *arg)
{
	(void)arg;
	do
		send_number(1);
	while (storm_on(&traffic->storm));
	return 0;
}

/* The only thread that takes signals */
static void wait_for_signal(struct stormer *me)
{
	sigset_t set;

	(void)me;
	sigemptyset(&set);
	sigsuspend(&set);
}

/* Any signal ends sigsuspend(); this one has no number. */
static void send_the_last(struct storm *s)
{
	(void)s;
	sigqueue(getpid(), SIG(0), (union sigval){ .sival_int = NUMBERS - 1 });
}

static void account(struct storm *st, const struct ukevent *ev)
{
	unsigned int s = ev->id.raw[0] - RT, nr = ev->ret_data[1];
	struct number *n;

	if (!has_number((int)ev->ret_data[0]))
		return;
	if (ev->type != KEVENT_SIGNAL || s >= SENDERS || nr >= NUMBERS ||
	    ev->ret_data[0] != (uint32_t)SI_QUEUE) {
		storm_expect(st, false);
		return;
	}
	n = &traffic->number[s][nr];
	if (!(ev->id.raw_u64 & NOMASK)) {
		n->observed++;
		traffic->observed++;
		return;
	}
	n->consumed++;
	traffic->consumed++;
	atomic_fetch_add(&traffic->came[s], 1);
}

static bool take_signals(struct storm *s, unsigned int max)
{
	struct ukevent ev;

	while (max--) {
		if (next_event(&s->q, &ev, 0) != 1)
			return false;
		account(s, &ev);
	}
	return true;
}

/*
 * REMOVE loses no signal of a watch that no longer consumes and that has been
 * read, since then, as far as it can be behind, with the other watch in
 * between.
 */
static void remove_gently(struct storm *s, int sig)
{
	if (on_fallback() ||
	    change_signal(s->q.fd, KEVENT_CTL_MODIFY, sig, OBSERVE, 0))
		return;
	take_signals(s, SENDERS * (LIMIT + 1) + 16);
	remove_signal(s->q.fd, sig);
}

static void churn(struct storm *s)
{
	static const uint32_t modes[] = {
		0, 0, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED,
		KEVENT_REQ_ONESHOT,
	};
	uint64_t *rnd = &s->seed;
	uint32_t mode = modes[next_random(rnd) %
			      (traffic->gently ? 4 : ARRAY_SIZE(modes))];
	int sig = SIG(next_random(rnd) % SENDERS);

	traffic->rounds++;
	switch (next_random(rnd) % 8) {
	case 0 ... 1:
		add_signal(s->q.fd, sig, watch_mode(next_random(rnd)), mode);
		break;
	case 2 ... 3:
		change_signal(s->q.fd, KEVENT_CTL_MODIFY, sig,
			      watch_mode(next_random(rnd)), mode);
		break;
	case 4:
		if (traffic->gently)
			remove_gently(s, sig);
		else
			remove_signal(s->q.fd, sig);
		break;
	case 5:
		if (traffic->gently || next_random(rnd) % 32)
			break;
		close_queue(&s->q);
		open_queue(&s->q, next_random(rnd) & 1 ? 16 : 0);
		break;
	default:
		take_signals(s, 20);
	}
}

static void take_the_rest(struct storm *st)
{
	int s, modified;

	for (s = 0; s < SENDERS; s++) {
		modified = change_signal(st->q.fd, KEVENT_CTL_MODIFY, SIG(s),
					 watch_mode(0), 0);
		MUST(modified == 0 || modified == -ENOENT);
	}
	while (take_signals(st, 1000))
		;
	CHECK_EQ(fdinfo(st->q.fd, "kevent-ready"), 0);
}

static void add_up(struct storm *st)
{
	int s, i;

	for (s = 0; s < SENDERS; s++) {
		for (i = 0; i < NUMBERS; i++) {
			struct number *n = &traffic->number[s][i];
			int ends = n->handled + n->consumed;

			traffic->lost += i < traffic->sent[s] && !ends;
			/* The last one may have been sent but not counted. */
			storm_expect(st, ends <= 1 && n->observed <= 1 &&
					 !(ends && i > traffic->sent[s]));
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

static struct storm *prepare(bool (*enough)(const struct storm *s))
{
	struct sigaction sa = { .sa_sigaction = receive,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	int s;

	traffic = mmap(NULL, sizeof(*traffic), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(traffic != MAP_FAILED);
	traffic->receiver = getpid();
	traffic->storm.enough = enough;
	set_limit(LIMIT);
	for (s = 0; s < SENDERS; s++) {
		MUST_EQ(sigaction(SIG(s), &sa, NULL), 0);
		block(SIG(s), SIG_BLOCK);
	}
	storm_begin(&traffic->storm);
	return &traffic->storm;
}

static bool saw_each_kind(const struct storm *s)
{
	(void)s;
	return traffic->handled > 10 && (!traffic->gently || (traffic->consumed > 10 &&
			(on_fallback() || traffic->observed > 10)));
}

static void race_changes(uint32_t size, bool gently)
{
	struct storm *s = prepare(saw_each_kind);
	uint64_t start;
	pid_t pid;

	traffic->gently = gently;
	/* The child must not keep the queue open. */
	pid = start_child(sending_process, NULL);
	open_queue(&s->q, size);
	storm_helpers(s, 1, wait_for_signal);
	storm_workers(s, 1, send_from_thread);
	storm_run(s, churn);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	take_the_rest(s);
	for (start = now_ns(); !all_delivered();)
		MUST(patient(start, PATIENCE_MS));
	if (!on_fallback())
		close_queue(&s->q);
	traffic->sent[0]++;
	storm_end(s, send_the_last);
	/* The receiver has handled, for the fallback, what its watches consume. */
	if (on_fallback()) {
		while (take_signals(s, 1000))
			;
		close_queue(&s->q);
	}
	traffic->sent[0]--;
	traffic->number[0][NUMBERS - 1] = (struct number){};
	add_up(s);
	note("%ld changes; %d and %d sent: %ld handled, %ld consumed, %ld observed, %ld dropped",
	     traffic->rounds, traffic->sent[0], traffic->sent[1], traffic->handled,
	     traffic->consumed, traffic->observed, traffic->lost);
	CHECK_EQ(s->wrong, 0);
	CHECK(saw_each_kind(s));
	if (gently)
		CHECK_EQ(traffic->lost, 0);
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

static void send_to_the_living(struct stormer *me)
{
	pid_t pid = traffic->receiver;

	if (pid != getpid() &&
	    !sigqueue(pid, SIG(me->acts & 1), (union sigval){ .sival_int = 1 }))
		atomic_fetch_add(&traffic->delivered, 1);
}

static void remove_always(struct stormer *me)
{
	remove_signal(me->storm->q.fd, SIG(0));
	close(dup(me->storm->q.fd));
}

static bool three_lived(const struct storm *s)
{
	(void)s;
	return traffic->rounds > 2 && traffic->delivered;
}

static void live_and_end(struct storm *s)
{
	struct ukevent ev[16];
	pid_t pid = start_child(short_life, &s->q);
	int status;

	while (!waitpid(pid, &status, WNOHANG))
		if (get_events(s->q.fd, 1, 16, 1, ev) > 0)
			s->taken++;
	MUST_EQ(status, 0);
	traffic->rounds++;
}

static void exit_races_signals_and_remove(void)
{
	struct storm *s = prepare(three_lived);

	open_queue(&s->q, 0);
	storm_helpers(s, 1, send_to_the_living);
	storm_helpers(s, 1, remove_always);
	storm_run(s, live_and_end);
	storm_end(s, NULL);
	note("%ld processes, %ld signals, %ld collections", traffic->rounds,
	     traffic->delivered, s->taken);
	CHECK(three_lived(s));
	storm_close(s, 0);
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
