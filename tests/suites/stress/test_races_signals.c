// SPDX-License-Identifier: GPL-2.0
/*
 * A generator of races of signals: none is delivered twice, and none is lost
 *
 *	receiver	a process with two queues whose SIGNAL watches consume. Threads collect
 *			in the roles below; in each scene they block other signals
 *	changer		its first thread: adds, modifies and removes watches, closes the second
 *			queue, forks, at the same time as
 *	senders		a thread of the receiver, and another process
 *	stranger	a child of the receiver that collects from both queues
 *
 * A real-time signal has a number as its value. All numbers that were sent must get to one place
 * each: to one event at most of each queue, or to the handler, or to who reads a signalfd or
 * takes what is pending. In each round some are sent, then nothing happens before all have come:
 * a signal that is held back stays so, and is found. Where watches and queues with events end, and
 * where the receiver does, numbers that were sent before may be gone. The receiver may also end
 * by an exec: the new program takes what is pending.
 *
 * Tasks are delayed in windows of the kernel at random, see races.h; the words for
 * KEVENT_RACES are in kinds[]. KEVENT_STORM_SECONDS sets the budget.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "races.h"
#include "signals.h"

#define NUMBERED	2		/* signals */
#define PLAIN		SIGUSR2		/* a standard one, without a number */
#define SIGNALS		(NUMBERED + 1)
#define QUEUES		2
#define COLLECTORS	4
#define NUMBERS		(1 << 14)	/* of a signal in one world */
#define WORLD_NS	400000000ull

/* What KEVENT_RACES selects */
enum kind {
	THREADS, MASKS, SECOND, MODIFY, MODES, REMOVE, CLOSE, FORK, SIGNALFD, OUTSIDE, EXEC,
	EXIT, KILL, NR_KINDS,
};

static const char *const kinds[NR_KINDS] = {
	[THREADS] = "threads", [MASKS] = "masks", [SECOND] = "second",
	[MODIFY] = "modify", [MODES] = "modes", [REMOVE] = "remove", [CLOSE] = "close",
	[FORK] = "fork", [SIGNALFD] = "signalfd", [OUTSIDE] = "outside", [EXEC] = "exec",
	[EXIT] = "exit", [KILL] = "kill",
};

enum role {
	ABSENT,		/* does nothing */
	WAITS,		/* for the ring */
	WAITS_BUFFER,
	POLLS,		/* the queue, and calls when it is readable */
	CALLS,		/* again and again, and does not wait */
	READS,		/* a signalfd */
	NR_ROLES,
};

struct number {
	_Atomic unsigned char	sent, done;
	_Atomic unsigned char	handled;	/* by the handler */
	_Atomic unsigned char	read;		/* from a signalfd, or by sigtimedwait() */
	_Atomic unsigned char	consumed[QUEUES], observed[QUEUES];
};

/* What senders are to do, and have done */
struct orders {
	_Atomic unsigned int	order, obeyed;
	_Atomic unsigned int	times;
};

/* In memory that all processes share, also the program after an exec */
struct board {
	_Atomic pid_t		receiver;
	_Atomic pid_t		target[COLLECTORS];	/* threads that take signals of theirs */
	_Atomic bool		over;			/* senders and strangers end */
	_Atomic bool		gone;			/* the receiver has begun to end */
	_Atomic bool		on_purpose;		/* it was killed or ended */
	struct orders		inside, outside;
	_Atomic unsigned int	next[NUMBERED];		/* numbers that were given out */
	_Atomic unsigned int	forgiven[NUMBERED];	/* those below may be gone */
	_Atomic unsigned int	again[QUEUES];		/* watches to arm, a bit for each signal */
	_Atomic unsigned long	plain_sent, plain_taken;
	_Atomic int		odd;			/* a line that nothing explains */
	_Atomic int		stuck;			/* where the receiver waited in vain */
	_Atomic unsigned int	rounds, execs;
	uint64_t		seed;
	struct number		number[NUMBERED][NUMBERS];
};

struct collector {
	struct actor		actor;
	struct game		*g;
	unsigned int		nr;
	int			role;
	unsigned int		queue;
	unsigned int		open;		/* signals it does not block, a bit for each */
	_Atomic unsigned int	go, over;	/* scenes */
};

/* The receiver */
struct game {
	uint64_t		rnd;
	bool			kind[NR_KINDS];
	struct board		*b;
	int			memfd;
	struct queue		q[QUEUES];
	int			sigfd;
	struct collector	c[COLLECTORS];
	struct actor		sender;
	_Atomic unsigned int	scene;		/* that is over */
	_Atomic bool		stop;
	bool			rough;		/* watches that have events may end */
	bool			modes;		/* in this world */
	bool			two;		/* the second queue has watches */
	bool			closing;	/* it is closed, and only the changer collects there */
};

/* There is one in each process: for handlers. */
static struct board *board;

#define ODD()	atomic_store(&board->odd, __LINE__)

static unsigned int below(struct game *g, unsigned int nr)
{
	return next_random(&g->rnd) % nr;
}

static bool chance(struct game *g, enum kind kind, unsigned int one_in)
{
	return g->kind[kind] && !below(g, one_in);
}

static int sig_of(unsigned int s)
{
	return s < NUMBERED ? RT + (int)s : PLAIN;
}

static int index_of(int sig)
{
	if (sig == PLAIN)
		return NUMBERED;
	return sig >= RT && sig < RT + NUMBERED ? sig - RT : -1;
}

static void our_signals(sigset_t *set)
{
	unsigned int s;

	sigemptyset(set);
	for (s = 0; s < SIGNALS; s++)
		sigaddset(set, sig_of(s));
}

/* Where a signal gets to. By the handler, too */

static struct number *number_of(int sig, int value)
{
	int s = index_of(sig);

	if (s < 0 || s == NUMBERED || value < 0 || value >= NUMBERS) {
		ODD();
		return NULL;
	}
	return &board->number[s][value];
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int err = errno;
	struct number *n;

	(void)context;
	if (sig == PLAIN) {
		atomic_fetch_add(&board->plain_taken, 1);
		return;
	}
	n = number_of(sig, info->si_value.sival_int);
	if (n) {
		atomic_fetch_add(&n->handled, 1);
		atomic_store(&n->done, 1);
	}
	errno = err;
}

static void was_read(int sig, int value)
{
	struct number *n;

	if (sig == PLAIN) {
		atomic_fetch_add(&board->plain_taken, 1);
		return;
	}
	n = number_of(sig, value);
	if (!n)
		return;
	atomic_fetch_add(&n->read, 1);
	atomic_store(&n->done, 1);
}

static void account(unsigned int q, const struct ukevent *ev)
{
	bool consumed = ev->id.raw_u64 & NOMASK;
	int sig = ev->id.raw[0];
	struct number *n;
	int s = index_of(sig);

	if (ev->type != KEVENT_SIGNAL || s < 0) {
		ODD();
		return;
	}
	/* Before the number: who has seen that it is done finds this. */
	atomic_fetch_or(&board->again[q], 1u << s);
	if (sig == PLAIN) {
		atomic_fetch_add(&board->plain_taken, consumed);
		return;
	}
	n = number_of(sig, ev->ret_data[1]);
	if (!n)
		return;
	atomic_fetch_add(consumed ? &n->consumed[q] : &n->observed[q], 1);
	if (consumed)
		atomic_store(&n->done, 1);
}

/* Senders */

static int send_to(const siginfo_t *info, int sig, pid_t tid)
{
	pid_t pid = atomic_load(&board->receiver);
	int ret;

	ret = tid ? syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, info) :
		    syscall(SYS_rt_sigqueueinfo, pid, sig, info);
	return ret ? -errno : 0;
}

static void send_one(uint64_t *rnd)
{
	unsigned int s = next_random(rnd) % SIGNALS, nr = 0;
	siginfo_t info = { .si_code = SI_QUEUE, .si_pid = getpid(), .si_uid = getuid() };
	pid_t tid = 0;

	if (next_random(rnd) % 3 == 0)
		tid = atomic_load(&board->target[next_random(rnd) % COLLECTORS]);
	if (s == NUMBERED) {
		if (tid ? !syscall(SYS_tgkill, atomic_load(&board->receiver), tid, PLAIN) :
			  !kill(atomic_load(&board->receiver), PLAIN))
			atomic_fetch_add(&board->plain_sent, 1);
		return;
	}
	if (atomic_load(&board->next[s]) >= NUMBERS - 8)
		return;
	nr = atomic_fetch_add(&board->next[s], 1);
	info.si_value.sival_int = nr;
	info.si_signo = sig_of(s);
	/* The receiver may be at the limit, or gone. */
	if (!send_to(&info, sig_of(s), tid))
		atomic_store(&board->number[s][nr].sent, 1);
}

static void send_as_ordered(struct orders *o, bool (*over)(void *arg), void *arg,
			    uint64_t rnd)
{
	unsigned int order, times;

	while (!over(arg)) {
		order = atomic_load(&o->order);
		if (order == atomic_load(&o->obeyed)) {
			pause_us(20);
			continue;
		}
		for (times = atomic_load(&o->times); times; times--)
			send_one(&rnd);
		atomic_store(&o->obeyed, order);
	}
}

static bool game_over(void *arg)
{
	return atomic_load(&((struct game *)arg)->stop);
}

static long run_sender(void *arg)
{
	struct game *g = arg;

	send_as_ordered(&g->b->inside, game_over, g, g->b->seed ^ 0x1234567);
	return 0;
}

static bool board_over(void *arg)
{
	(void)arg;
	return atomic_load(&board->over);
}

static int run_outside(void *arg)
{
	(void)arg;
	send_as_ordered(&board->outside, board_over, NULL, board->seed ^ 0x7654321);
	return 0;
}

/* Has not the rights to change the watches. */
static int run_stranger(void *arg)
{
	struct game *g = arg;
	struct ukevent ev[4];
	unsigned int q = 0;
	int i, ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != atomic_load(&board->receiver))
		return 0;
	while (!atomic_load(&board->over) && !atomic_load(&board->gone)) {
		q = (q + 1) % QUEUES;
		ret = get_events(g->q[q].fd, 1, 1 + below(g, 4), 5, ev);
		for (i = 0; i < ret; i++)
			account(q, &ev[i]);
	}
	return 0;
}

/* Watches */

/* Nothing that a watch keeps may be dropped by ONESHOT: only a new one begins with it. */
static int set_watch(struct game *g, unsigned int q, unsigned int s, int consume,
		     uint32_t mode)
{
	unsigned int tries = 0;
	int ret;

	do {
		ret = add_signal(g->q[q].fd, sig_of(s), consume, mode);
		if (ret == -EEXIST)
			ret = change_signal(g->q[q].fd, KEVENT_CTL_MODIFY, sig_of(s), consume,
					    mode & ~KEVENT_REQ_ONESHOT);
	} while (ret == -ENOENT && tries++ < 1000);
	if (ret)
		ODD();
	return ret;
}

static uint32_t armed_mode(struct game *g, uint64_t *rnd)
{
	static const uint32_t modes[] = {
		0, 0, KEVENT_REQ_DISPATCH, KEVENT_REQ_ONESHOT, KEVENT_REQ_WAKEUP_ALL,
	};

	return g->modes ? modes[next_random(rnd) % ARRAY_SIZE(modes)] : 0;
}

static void arm(struct game *g, unsigned int q, unsigned int what, uint64_t *rnd)
{
	unsigned int s;

	for (s = 0; s < SIGNALS; s++)
		if (what & 1u << s && (!q || g->two))
			set_watch(g, q, s, CONSUME, armed_mode(g, rnd));
}

/* After an event: the watch may be disarmed, or gone. */
static void arm_again(struct game *g, unsigned int q, uint64_t *rnd)
{
	unsigned int what = atomic_exchange(&g->b->again[q], 0);

	if (g->modes && what)
		arm(g, q, what, rnd);
}

static void forgive(struct board *b)
{
	unsigned int s;

	for (s = 0; s < NUMBERED; s++)
		atomic_store(&b->forgiven[s], atomic_load(&b->next[s]));
}

/* Collectors */

static bool scene_over(struct collector *c)
{
	return atomic_load(&c->g->scene) == atomic_load(&c->go);
}

static void took(struct collector *c, const struct ukevent *ev, int nr, uint64_t *rnd)
{
	int i;

	for (i = 0; i < nr; i++)
		account(c->queue, &ev[i]);
	if (nr > 0)
		arm_again(c->g, c->queue, rnd);
	if (nr < 0 && nr != -EINTR)
		ODD();
}

static void play_ring(struct collector *c, struct queue *q, uint64_t *rnd)
{
	struct ukevent ev;
	uint64_t kidx;
	int ret;

	while (!scene_over(c)) {
		kidx = __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
		if (kevent_ring_next(q->ring, q->size, &ev)) {
			took(c, &ev, 1, rnd);
			continue;
		}
		ret = kevent_wait(q->fd, q->size, (uint32_t)kidx, NULL, 0, NULL);
		if (ret < 0 && ret != -EINTR)
			ODD();
	}
	/* What is in the ring is no use to one with a buffer. */
	while (kevent_ring_next(q->ring, q->size, &ev))
		took(c, &ev, 1, rnd);
}

static void play_calls(struct collector *c, struct queue *q, uint64_t *rnd)
{
	struct pollfd pfd = { .fd = q->fd, .events = POLLIN };
	int64_t ms = c->role == WAITS_BUFFER ? -1 : 0;
	struct ukevent ev[40];

	while (!scene_over(c)) {
		if (c->role == POLLS && poll(&pfd, 1, -1) != 1)
			continue;
		took(c, ev, get_events(q->fd, 1, 1 + next_random(rnd) % 40, ms, ev), rnd);
		if (c->role != WAITS_BUFFER)
			sched_yield();
	}
}

static void play_reads(struct collector *c)
{
	struct pollfd pfd = { .fd = c->g->sigfd, .events = POLLIN };
	struct signalfd_siginfo si;

	while (!scene_over(c))
		if (poll(&pfd, 1, -1) == 1 && read(c->g->sigfd, &si, sizeof(si)) == sizeof(si))
			was_read(si.ssi_signo, si.ssi_int);
}

static void block_all_but(unsigned int open)
{
	unsigned int s;
	sigset_t set;

	our_signals(&set);
	for (s = 0; s < SIGNALS; s++)
		if (open & 1u << s)
			sigdelset(&set, sig_of(s));
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}

/* What is left to the caller when nobody sends any more */
static void take_pending(void)
{
	const struct timespec zero = {};
	siginfo_t si;
	sigset_t set;
	int sig;

	our_signals(&set);
	while ((sig = sigtimedwait(&set, &si, &zero)) > 0)
		was_read(sig, si.si_value.sival_int);
}

static long run_collector(void *arg)
{
	struct collector *c = arg;
	uint64_t rnd = c->g->b->seed ^ (c->nr + 1) << 20;

	while (!atomic_load(&c->g->stop)) {
		if (atomic_load(&c->over) == atomic_load(&c->go)) {
			pause_us(20);
			continue;
		}
		block_all_but(c->open);
		if (c->role == WAITS)
			play_ring(c, &c->g->q[c->queue], &rnd);
		else if (c->role == READS)
			play_reads(c);
		else if (c->role != ABSENT)
			play_calls(c, &c->g->q[c->queue], &rnd);
		else
			while (!scene_over(c))
				pause_us(100);
		block_all_but(0);
		atomic_store(&c->over, atomic_load(&c->go));
	}
	take_pending();
	return 0;
}

/* Scenes. Each queue has a collector that can take whatever there is. */

static void cast_role(struct game *g, struct collector *c, bool quiet)
{
	bool anchor = !c->nr || (c->nr == 1 && g->two);

	c->queue = anchor ? c->nr : g->two ? below(g, QUEUES) : 0;
	if (g->closing)
		c->queue = 0;
	do
		c->role = below(g, NR_ROLES);
	while ((anchor && (c->role == ABSENT || c->role == CALLS || c->role == READS)) ||
	       (c->role == READS && (quiet || !g->kind[SIGNALFD])));
	if (c->role == WAITS && !g->q[c->queue].size)
		c->role = WAITS_BUFFER;
	c->open = !quiet && chance(g, MASKS, 2) ? below(g, 1 << SIGNALS) : 0;
	atomic_store(&g->b->target[c->nr], 0);
	if (quiet || c->role == ABSENT || (c->role != READS && c->queue) ||
	    !chance(g, THREADS, 2))
		return;
	atomic_store(&g->b->target[c->nr], c->actor.tid);
}

static void begin_scene(struct game *g, bool quiet)
{
	unsigned int i;

	for (i = 0; i < COLLECTORS; i++) {
		cast_role(g, &g->c[i], quiet);
		atomic_store(&g->c[i].go, atomic_load(&g->scene) + 1);
	}
}

static bool stuck(struct game *g, int line)
{
	atomic_store(&g->b->stuck, line);
	return false;
}

static bool end_scene(struct game *g)
{
	unsigned int scene = atomic_load(&g->scene) + 1, i;
	uint64_t start = now_ns();

	atomic_store(&g->scene, scene);
	for (i = 0; i < COLLECTORS; i++)
		while (atomic_load(&g->c[i].over) != scene) {
			syscall(SYS_tgkill, getpid(), g->c[i].actor.tid, SIGUSR1);
			if (!patient(start, 2 * PATIENCE_MS))
				return stuck(g, __LINE__);
			pause_us(100);
		}
	return true;
}

static void order(struct orders *o, unsigned int times)
{
	atomic_store(&o->times, times);
	atomic_fetch_add(&o->order, 1);
}

static bool obeyed(struct game *g, struct orders *o)
{
	uint64_t start = now_ns();

	while (atomic_load(&o->obeyed) != atomic_load(&o->order))
		if (!patient(start, PATIENCE_MS))
			return stuck(g, __LINE__);
	return true;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The second queue. Nobody else uses it now. */
static void close_second(struct game *g)
{
	close_queue(&g->q[1]);
	forgive(g->b);
	open_queue(&g->q[1], below(g, 2) * 8);
	arm(g, 1, ~0u, &g->rnd);
}

static void change_one(struct game *g)
{
	static const uint32_t modes[] = { 0, 0, KEVENT_REQ_DISPATCH, KEVENT_REQ_DISABLED };
	unsigned int q = g->two ? below(g, QUEUES) : 0, s = below(g, SIGNALS);
	int status;
	pid_t pid;

	if (g->rough && chance(g, REMOVE, 3)) {
		remove_signal(g->q[q].fd, sig_of(s));
		forgive(g->b);
	} else if (g->closing && !below(g, 4)) {
		close_second(g);
	} else if (chance(g, FORK, 16)) {
		pid = start_child(nothing, NULL);
		while (waitpid(pid, &status, 0) < 0)
			;
	} else if (g->kind[MODIFY]) {
		set_watch(g, q, s, below(g, 3) ? CONSUME : OBSERVE,
			  g->modes ? modes[below(g, ARRAY_SIZE(modes))] : 0);
	}
}

/* Have all numbers come, but those that may be gone? @from: those below have. */
static bool all_came(struct game *g, unsigned int from[NUMBERED])
{
	const struct number *n;
	unsigned int s;

	for (s = 0; s < NUMBERED; s++)
		for (; from[s] < atomic_load(&g->b->next[s]); from[s]++) {
			n = &g->b->number[s][from[s]];
			if (atomic_load(&n->sent) && !atomic_load(&n->done) &&
			    from[s] >= atomic_load(&g->b->forgiven[s]))
				return false;
		}
	return true;
}

static const char *const roles[] = {
	"absent", "waits", "waits for a buffer", "polls", "calls", "reads a signalfd",
};

static void say_pending(const char *who, const char *path)
{
	char text[4096], pending[32] = "?", shared[32] = "?";
	const char *at;

	read_file(path, text, sizeof(text));
	at = strstr(text, "SigPnd:");
	if (at)
		sscanf(at, "SigPnd: %31s ShdPnd: %31s", pending, shared);
	note("%s: pending %s, of the process %s", who, pending, shared);
}

static void say_scene(struct game *g)
{
	const struct collector *c;
	char path[64], who[128];
	unsigned int i, q;

	for (i = 0; i < COLLECTORS; i++) {
		c = &g->c[i];
		snprintf(who, sizeof(who), "collector %u, queue %u, %s, open %x, a target %d", i,
			 c->queue, roles[c->role], c->open, g->b->target[i] != 0);
		snprintf(path, sizeof(path), "/proc/self/task/%d/status", c->actor.tid);
		say_pending(who, path);
	}
	for (q = 0; q < QUEUES; q++)
		note("queue %u, ring of %u: %lld watches, %lld ready, %lld waiting", q,
		     g->q[q].size, fdinfo(g->q[q].fd, "kevent-watches"),
		     fdinfo(g->q[q].fd, "kevent-ready"), fdinfo(g->q[q].fd, "kevent-waiting"));
	note("rough %d, modes %d, two %d, pending plain %d", g->rough, g->modes, g->two,
	     is_pending(PLAIN));
}

static void empty(struct game *g, unsigned int q)
{
	struct ukevent ev;

	while (next_event(&g->q[q], &ev, 0) == 1)
		account(q, &ev);
}

static bool settle(struct game *g, unsigned int from[NUMBERED])
{
	uint64_t start = now_ns();
	unsigned int q;

	while (!all_came(g, from) || is_pending(PLAIN)) {
		for (q = 0; q < QUEUES; q++)
			arm_again(g, q, &g->rnd);
		if (g->closing)
			empty(g, 1);
		if (patient(start, PATIENCE_MS))
			continue;
		say_scene(g);
		return stuck(g, __LINE__);
	}
	return true;
}

static bool play_round(struct game *g, unsigned int from[NUMBERED])
{
	unsigned int times = 1 + below(g, below(g, 4) ? 6 : 60), changes = below(g, 8);
	struct board *b = g->b;
	unsigned int q;

	atomic_fetch_add(&b->rounds, 1);
	order(&b->inside, below(g, times + 1));
	order(&b->outside, times);
	while (changes--)
		change_one(g);
	if (!obeyed(g, &b->inside) || !obeyed(g, &b->outside))
		return false;
	for (q = 0; q < QUEUES; q++)
		arm(g, q, ~0u, &g->rnd);
	return settle(g, from);
}

/* At rest. What no number needs any more. */
static void tidy_up(struct game *g)
{
	unsigned int q, s;

	for (q = 0; q < QUEUES; q++) {
		empty(g, q);
		for (s = 0; s < SIGNALS; s++)
			if (chance(g, REMOVE, 6))
				remove_signal(g->q[q].fd, sig_of(s));
		arm(g, q, ~0u, &g->rnd);
	}
}

static bool play_scene(struct game *g, unsigned int from[NUMBERED])
{
	unsigned int rounds = 2 + below(g, 5);

	g->rough = below(g, 2);
	g->closing = g->rough && g->two && chance(g, CLOSE, 3);
	begin_scene(g, false);
	while (rounds--)
		if (!play_round(g, from))
			return false;
	if (!end_scene(g))
		return false;
	tidy_up(g);
	return true;
}

/* Ends of the receiver */

static long exec_it(void *arg)
{
	struct game *g = arg;
	char fd[12];

	snprintf(fd, sizeof(fd), "%d", g->memfd);
	execl("/proc/self/exe", "kevent-tests", "--races-after-exec", fd, NULL);
	ODD();
	_exit(1);
}

/* The new program: signals that it blocks are pending, as before. */
int races_after_exec(int argc, char **argv)
{
	uint64_t start = now_ns();

	if (argc < 3)
		return 1;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[2]), 0);
	if (board == MAP_FAILED)
		return 1;
	if (atomic_load(&board->on_purpose))
		forgive(board);
	while (atomic_load(&board->outside.obeyed) != atomic_load(&board->outside.order))
		if (!patient(start, PATIENCE_MS))
			return 1;
	take_pending();
	atomic_fetch_add(&board->execs, 1);
	return 0;
}

/* Watches that consume may keep signals. Those that observe keep none that is not pending. */
static int end_by_exec(struct game *g)
{
	bool rough = below(g, 2);
	unsigned int q, s;
	struct actor a;

	atomic_store(&g->b->on_purpose, rough);
	for (q = 0; q < QUEUES; q++)
		for (s = 0; s < SIGNALS && !rough && (!q || g->two); s++)
			change_signal(g->q[q].fd, KEVENT_CTL_MODIFY, sig_of(s), OBSERVE, 0);
	g->modes &= rough;
	g->closing = false;
	begin_scene(g, true);
	order(&g->b->inside, 50);
	order(&g->b->outside, 100);
	pause_us(below(g, 2000));
	if (below(g, 2))
		exec_it(g);
	start_actor(&a, exec_it, g);
	pthread_join(a.thread, NULL);
	return 1;
}

static int end_by_death(struct game *g, bool killed)
{
	atomic_store(&g->b->on_purpose, true);
	begin_scene(g, false);
	order(&g->b->inside, 50);
	order(&g->b->outside, 100);
	pause_us(below(g, 2000));
	if (killed)
		kill(getpid(), SIGKILL);
	_exit(0);
}

/* Nothing is kept where a watch has observed since it was read. */
static void end_in_peace(struct game *g, pid_t stranger)
{
	unsigned int q, s, i;

	for (q = 0; q < QUEUES; q++)
		for (s = 0; s < SIGNALS; s++)
			change_signal(g->q[q].fd, KEVENT_CTL_MODIFY, sig_of(s), OBSERVE, 0);
	atomic_store(&g->b->gone, true);
	if (stranger)
		while (waitpid(stranger, NULL, 0) < 0)
			;
	atomic_store(&g->stop, true);
	for (i = 0; i < COLLECTORS; i++)
		pthread_join(g->c[i].actor.thread, NULL);
	pthread_join(g->sender.thread, NULL);
	for (q = 0; q < QUEUES; q++) {
		empty(g, q);
		close_queue(&g->q[q]);
	}
	take_pending();
}

static void open_game(struct game *g)
{
	static const uint32_t sizes[] = { 0, 0, 2, 8, 64 };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	unsigned int s, q;
	sigset_t set;

	atomic_store(&g->b->receiver, getpid());
	block_all_but(0);
	for (s = 0; s < SIGNALS; s++)
		sigaction(sig_of(s), &sa, NULL);
	catch_signal(SIGUSR1);
	our_signals(&set);
	g->sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	g->two = chance(g, SECOND, 2);
	g->modes = chance(g, MODES, 2);
	for (q = 0; q < QUEUES; q++) {
		open_queue(&g->q[q], sizes[below(g, ARRAY_SIZE(sizes))]);
		arm(g, q, ~0u, &g->rnd);
	}
}

static int run_receiver(void *arg)
{
	struct game *g = arg;
	unsigned int i, from[NUMBERED] = {};
	uint64_t until;
	pid_t stranger = 0;

	open_game(g);
	if (chance(g, OUTSIDE, 2)) {
		stranger = start_child(run_stranger, g);
		g->kind[CLOSE] = false;		/* it has the queue, too */
	}
	for (i = 0; i < COLLECTORS; i++) {
		g->c[i].g = g;
		g->c[i].nr = i;
		start_actor(&g->c[i].actor, run_collector, &g->c[i]);
	}
	start_actor(&g->sender, run_sender, g);
	until = now_ns() + WORLD_NS;
	do
		if (!play_scene(g, from))
			return 1;
	while (now_ns() < until);
	if (chance(g, EXEC, 3))
		return end_by_exec(g);
	if (chance(g, KILL, 6))
		return end_by_death(g, true);
	if (chance(g, EXIT, 6))
		return end_by_death(g, false);
	end_in_peace(g, stranger);
	return 0;
}

/* The test */

static bool is_doubled(const struct number *n)
{
	unsigned int places = n->handled + n->read, q;
	bool consumed = false;

	for (q = 0; q < QUEUES; q++) {
		if (n->consumed[q] > 1 || n->observed[q] > 1)
			return true;
		consumed |= n->consumed[q];
	}
	return places + consumed > 1;
}

static void say_number(const char *what, unsigned int s, unsigned int nr)
{
	const struct number *n = &board->number[s][nr];

	note("%s: number %u of signal %u, of %u, forgiven below %u: handled %u, read %u, "
	     "consumed %u and %u, observed %u and %u", what, nr, s, board->next[s],
	     board->forgiven[s], n->handled, n->read, n->consumed[0], n->consumed[1],
	     n->observed[0], n->observed[1]);
}

/* Returns how many were sent. */
static unsigned long check_numbers(bool dead)
{
	unsigned int s, i, doubled = 0, lost = 0;
	unsigned long sent = 0;
	const struct number *n;

	for (s = 0; s < NUMBERED; s++)
		for (i = 0; i < board->next[s]; i++) {
			n = &board->number[s][i];
			sent += n->sent;
			if (is_doubled(n) && !doubled++)
				say_number("twice", s, i);
			if (n->sent && !n->done && !dead && i >= board->forgiven[s] && !lost++)
				say_number("lost", s, i);
		}
	CHECK_EQ(doubled, 0);
	CHECK_EQ(lost, 0);
	CHECK_EQ(board->odd, 0);
	CHECK_EQ(board->stuck, 0);
	CHECK(board->plain_taken <= QUEUES * board->plain_sent + QUEUES);
	return sent;
}

struct sums {
	unsigned long	worlds, rounds, execs, deaths, sent;
	uint64_t	slowest;	/* ns of a world */
};

static bool play_world(struct game *g, struct sums *sums)
{
	pid_t receiver, outside;
	uint64_t start = now_ns();
	bool dead, ok;
	int status;

	g->memfd = memfd_create("board", 0);
	MUST_EQ(ftruncate(g->memfd, sizeof(*board)), 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
	MUST(board != MAP_FAILED);
	g->b = board;
	board->seed = next_random(&g->rnd);
	outside = start_child(run_outside, NULL);
	receiver = start_child(run_receiver, g);
	status = join_child(receiver, 8 * PATIENCE_MS);
	dead = board->on_purpose && !board->execs;
	ok = CHECK(status == 0 || (dead && status == -SIGKILL));
	atomic_store(&board->over, true);
	ok &= CHECK_EQ(join_child(outside, PATIENCE_MS), 0);
	sums->sent += check_numbers(dead);
	ok &= !board->odd && !board->stuck;
	start = now_ns() - start;
	sums->slowest = start > sums->slowest ? start : sums->slowest;
	sums->worlds++;
	sums->rounds += board->rounds;
	sums->execs += board->execs;
	sums->deaths += dead;
	munmap(board, sizeof(*board));
	close(g->memfd);
	return ok;
}

static bool pays_for(long long bytes)
{
	uint64_t start = now_ns();
	bool ok;
	int kq;

	do {
		kq = kevent_init(NULL, 0, 0);
		ok = fdinfo(kq, "kevent-user-bytes") == bytes;
		close(kq);
	} while (!ok && patient(start, PATIENCE_MS));
	return ok;
}

static void no_signal_is_lost_or_doubled(void)
{
	uint64_t start = now_ns();
	struct game g = { .rnd = test_seed() };
	struct sums sums = {};
	unsigned int i;
	long long bytes;
	int kq;

	kernel_complains();
	kq = kevent_init(NULL, 0, 0);
	bytes = fdinfo(kq, "kevent-user-bytes");
	close(kq);
	for (i = 0; i < NR_KINDS; i++)
		g.kind[i] = race_kind(kinds[i]);
	do {
		delay_at_random(&g.rnd);
		MUST(play_world(&g, &sums));
		delay_no_more();
		MUST(pays_for(bytes));
		MUST(!kernel_complains());
	} while (storm_goes_on(start, sums.worlds >= 2));
	note("%lu worlds, %lu rounds, %lu numbers; %lu ended by exec, %lu by death; the slowest took %.1f s",
	     sums.worlds, sums.rounds, sums.sent, sums.execs, sums.deaths, sums.slowest / 1e9);
	say_delays();
}

static const struct test_case cases[] = {
	TEST_LIMIT(no_signal_is_lost_or_doubled, 60),
	{}
};

const struct test_suite races_signals_suite = { .name = "races_signals", .cases = cases };
