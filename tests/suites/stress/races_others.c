// SPDX-License-Identifier: GPL-2.0
/*
 * Whatever else the generator of races has: writers, strangers, a daemon, hands that take
 * memory away, and the fates of consumers
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/fuse.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fuse.h"
#include "helpers.h"
#include "races.h"
#include "races_world.h"

#define FIRST_USER	5001		/* of the strangers */
#define FREEZER		"/tmp/races-freezer"
#define ALL		"/sys/fs/cgroup"
#define THROTTLED	ALL "/races"

/* Writers */

long run_writer(void *arg)
{
	struct world *w = arg;
	unsigned int order;

	while (!atomic_load(&w->stop)) {
		order = atomic_load(&w->order);
		if (order == atomic_load(&w->obeyed)) {
			futex_wait(&w->order, order);
			continue;
		}
		give_all(w, atomic_load(&w->what), atomic_load(&w->times));
		atomic_store(&w->obeyed, order);
	}
	return 0;
}

/* This process has neither the ring nor threads. */
int run_outsider(void *arg)
{
	struct world *w = arg;
	struct board *b = w->b;
	unsigned int order;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&b->ends)) {
		order = atomic_load(&b->order);
		if (order == atomic_load(&b->obeyed)) {
			futex_wait(&b->order, order);
			continue;
		}
		give_all(w, atomic_load(&b->what), atomic_load(&b->times));
		atomic_store(&b->obeyed, order);
	}
	return 0;
}

/* What the user is charged with; the queue that is asked is in it. */
long long user_bytes(void)
{
	int kq = kevent_init(NULL, 0, 0);
	long long bytes = fdinfo(kq, "kevent-user-bytes");

	close(kq);
	return bytes;
}

bool pays_for(long long bytes)
{
	uint64_t start = now_ns();

	while (user_bytes() != bytes)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

/* A user's queue of the same files. It is told of each event beside another queue. */
static int watch_as_stranger(struct world *w)
{
	static const uint32_t modes[] = {
		0, KEVENT_REQ_ET, KEVENT_REQ_ONESHOT, KEVENT_REQ_LAST_CHECK,
	};
	int kq = kevent_init(NULL, 0, 0);
	unsigned int i;

	CHILD_MUST(kq >= 0);
	for (i = 0; i < THINGS; i++)
		if (below(w, 4) && !is_driven(&w->t[i]))
			CHILD_MUST(change_in(kq, &w->t[i], KEVENT_CTL_ADD, w->t[i].event,
					     KEVENT_REQ_WAKEUP_ALL | modes[below(w, 4)],
					     i) == 0);
	return kq;
}

/* A user of its own: nobody else is charged for what it does. */
int run_stranger(void *arg)
{
	struct world *w = arg;
	uid_t uid = FIRST_USER + w->stranger;
	struct ukevent ev[THINGS];
	long long bytes;
	int kq;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHILD_MUST(!setresuid(uid, uid, uid));
	w->rnd ^= (uint64_t)uid << 40;
	bytes = user_bytes();
	while (!atomic_load(&w->b->ends)) {
		kq = watch_as_stranger(w);
		CHILD_MUST(get_events(kq, 1, 1 + below(w, THINGS), below(w, 20), ev) >= 0);
		pause_us(below(w, 20000));
		close(kq);
	}
	CHILD_MUST(pays_for(bytes));
	return 0;
}

/* The file of the daemon is not ready, or is so now and then; its name is told to nobody. */
long run_daemon(void *arg)
{
	struct world *w = arg;
	struct daemon *d = &w->daemon;
	struct pollfd pfd = { .fd = d->dev, .events = POLLIN };
	uint64_t rnd = w->rnd | 1;
	bool was_silent = false;

	while (!atomic_load(&w->served_enough)) {
		if (atomic_load(&w->silent)) {
			/* The next look does not end. */
			if (!was_silent && d->poll_kh)
				wake_pollers(d);
			was_silent = true;
			pause_us(100);
			continue;
		}
		was_silent = false;
		if (poll(&pfd, 1, 1) == 1) {
			if (serve_one(d) != FUSE_POLL)
				continue;
			pause_us(next_random(&rnd) % 300);
			answer_poll(d, next_random(&rnd) % 2 ? POLLIN : 0);
		} else if (d->poll_kh && next_random(&rnd) % 4 == 0) {
			wake_pollers(d);
		}
	}
	return 0;
}

void order(struct world *w, unsigned int what, unsigned int times,
	   bool outside)
{
	_Atomic unsigned int *number = outside ? &w->b->order : &w->order;

	atomic_store(outside ? &w->b->what : &w->what, what);
	atomic_store(outside ? &w->b->times : &w->times, times);
	atomic_fetch_add(number, 1);
	futex_wake(number);
}

void wait_for_writers(struct world *w)
{
	uint64_t start = now_ns();

	while (atomic_load(&w->order) != atomic_load(&w->obeyed) ||
	       atomic_load(&w->b->order) != atomic_load(&w->b->obeyed))
		MUST(patient(start, PATIENCE_MS));
}

/* Hands */

static void *ring_page(struct world *w, uint64_t *rnd)
{
	return (char *)w->q.ring + next_random(rnd) % (w->q.bytes / 4096) * 4096;
}

static void take_memory(struct world *w, uint64_t *rnd)
{
	char *page = ring_page(w, rnd);
	size_t at = page - (char *)w->q.ring;

	pthread_mutex_lock(&w->memory);
	switch (next_random(rnd) % 4) {
	case 0:
		mprotect(page, 4096, PROT_NONE);
		pause_us(next_random(rnd) % 500);
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		break;
	case 1:
		mprotect(page, 4096, PROT_READ);
		pause_us(next_random(rnd) % 500);
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		break;
	case 2:
		if (w->memfd < 0)
			break;
		mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		     w->memfd, at);
		break;
	default:
		/* What is in private memory would be lost. */
		madvise(page, 4096, w->memfd < 0 ? MADV_PAGEOUT : MADV_DONTNEED);
	}
	pthread_mutex_unlock(&w->memory);
}

/*
 * A page table is copied, and each private page becomes one to copy. The end of the child
 * may wake consumers.
 */
static void fork_once(struct world *w)
{
	pid_t pid;

	pthread_mutex_lock(&w->memory);
	if (!w->no_fork) {
		pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	pthread_mutex_unlock(&w->memory);
}

/* A file that is watched, ready, and closed while somebody may look at it */
static void make_noise(struct world *w, uint64_t *rnd)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return;
	if (!add_poll(w->q.fd, fd[0], KEVENT_POLL_POLLIN, 0, NOISE) &&
	    write(fd[1], "", 1) != 1)
		atomic_fetch_add(&w->b->odd, 1);
	pause_us(next_random(rnd) % 200);
	if (next_random(rnd) % 2)
		dup2(w->block[1], fd[0]);
	close(fd[0]);
	close(fd[1]);
}

long run_hand(void *arg)
{
	struct world *w = arg;
	uint64_t rnd = w->rnd ^ 0x9e3779b97f4a7c15ull;

	rnd |= 1;
	while (!atomic_load(&w->stop)) {
		if (atomic_load(&w->b->fragile) && w->kind[MEMORY])
			take_memory(w, &rnd);
		if (w->kind[FORK] && next_random(&rnd) % 4 == 0)
			fork_once(w);
		if (w->kind[CLOSE] && w->idle_queue < 0 && next_random(&rnd) % 2)
			make_noise(w, &rnd);
		pause_us(next_random(&rnd) % 300);
	}
	return 0;
}

/* Fates */

static bool try_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* One that is being killed need not go there. */
static void move(const struct consumer *c, const char *group)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	snprintf(text, sizeof(text), "%d", atomic_load(&c->pid));
	MUST(try_write(path, text));
}

void freeze(bool on)
{
	uint64_t start = now_ns();
	const char *want = on ? "FROZEN\n" : "THAWED\n";
	char state[16];

	write_file(FREEZER "/races/freezer.state", on ? "FROZEN" : "THAWED");
	do {
		MUST(patient(start, PATIENCE_MS));
		read_file(FREEZER "/races/freezer.state", state, sizeof(state));
	} while (strcmp(state, want));
}

/* Who is frozen can't be killed: when the test has ended in a hurry, thaws. */
static void start_guardian(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (fork())
		return;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGUSR2);
	sigwait(&set, &sig);
	_exit(!try_write(FREEZER "/races/freezer.state", "THAWED"));
}

void open_groups(struct world *w)
{
	mkdir(FREEZER, 0700);
	w->freezer = w->kind[FREEZE] &&
		     (!mount("none", FREEZER, "cgroup", 0, "freezer") ||
		      errno == EBUSY);
	if (w->freezer) {
		mkdir(FREEZER "/races", 0700);
		start_guardian();
	}
	mkdir(THROTTLED, 0700);
	w->throttle = w->kind[THROTTLE] &&
		      try_write(ALL "/cgroup.subtree_control", "+cpu") &&
		      try_write(THROTTLED "/cpu.max", "1000 100000");
	if (!w->freezer || !w->throttle)
		note("nobody is%s%s", w->freezer ? "" : " frozen",
		     w->throttle ? "" : " throttled");
}

/* The process plays its role, and maybe sleeps. */
void meet_fate(const struct consumer *c)
{
	switch (c->fate) {
	case FROZEN:
		move(c, FREEZER "/races");
		freeze(true);
		break;
	case STOPPED:
		/* Until it has stopped it may take an event, and keep it. */
		kill(atomic_load(&c->pid), SIGSTOP);
		MUST_EQ(waitpid(atomic_load(&c->pid), NULL, WUNTRACED),
			atomic_load(&c->pid));
		break;
	case THROTTLES:
		move(c, THROTTLED);
		break;
	}
}

void end_fate(struct consumer *c)
{
	switch (c->fate) {
	case DEAD:
		start_process(c);
		break;
	case FROZEN:
		freeze(false);
		move(c, FREEZER);
		break;
	case STOPPED:
		kill(atomic_load(&c->pid), SIGCONT);
		break;
	case THROTTLES:
		move(c, ALL);
		break;
	}
	c->fate = LEFT_ALONE;
}
