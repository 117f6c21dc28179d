// SPDX-License-Identifier: GPL-2.0
/* kevent-top */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"
#include "tool.h"

static struct tool top;

static void run_top(const char *const args[MAX_ARGS], int (*before)(void))
{
	top = (struct tool){ .name = "kevent-top", .before = before };
	memcpy(top.args, args, sizeof(top.args));
	run_tool(&top);
}

#define RUN_TOP(...) \
	run_top((const char *const[MAX_ARGS]){ __VA_ARGS__ }, NULL)

/* A line of the table */
struct line {
	int		pid;
	int		fd;
	char		command[20];
	unsigned int	watches;
	char		rate[12], hits[12], misses[12], share[12];
	unsigned int	waiting;
};

/* Our line of a queue in the table number @nth, the last one if that is negative */
static bool find_line(const struct queue *q, int nth, struct line *found)
{
	char *copy = strdup(top.said), *rest = copy, *text;
	struct line l;
	int nr = 0;

	while ((text = strsep(&rest, "\n"))) {
		if (sscanf(text, "%d %19s %d %u %11s %11s %11s %11s %u", &l.pid,
			   l.command, &l.fd, &l.watches, l.rate, l.hits,
			   l.misses, l.share, &l.waiting) == 9 &&
		    l.pid == getpid() && l.fd == q->fd &&
		    (nr++ == nth || nth < 0))
			*found = l;
	}
	free(copy);
	return nr > (nth < 0 ? 0 : nth);
}

/* --- the table --------------------------------------------------------- */

struct load {
	struct queue	q;
	int		fd[2];
	atomic_bool	stop;
};

/*
 * One event after the other. They are hits, except for the first one after a fork(),
 * which makes the ring read-only for a while.
 */
static long make_hits(void *arg)
{
	struct load *load = arg;
	struct ukevent ev;

	while (!atomic_load(&load->stop)) {
		if (write(load->fd[1], "", 1) != 1)
			return -1;
		if (next_event(&load->q, &ev, 0) != 1)
			return -2;
		if (read(load->fd[0], &(char){ 0 }, 1) != 1)
			return -3;
	}
	return 0;
}

static void start_load(struct load *load, struct actor *a)
{
	struct ukevent ev;

	*load = (struct load){ .stop = false };
	open_queue(&load->q, 8);
	open_pipe(load->fd);
	MUST_EQ(add_pipe(load->q.fd, load->fd[0], KEVENT_SOCKET_RECV,
			 KEVENT_REQ_ET, 1), 0);
	CHECK_EQ(next_event(&load->q, &ev, 0), 0);
	start_actor(a, make_hits, load);
}

/* Of the time between two looks, in which the threads may not have had a CPU */
static bool is_active(const struct line *line)
{
	return atof(line->rate) > 0 && atof(line->hits) > 0 &&
	       atof(line->misses) < atof(line->hits) &&
	       atof(line->share) > 50 && atof(line->share) <= 100;
}

static void active_queue_has_rates(void)
{
	struct line first, last;
	uint64_t start = now_ns();
	struct load load;
	struct actor a;

	start_load(&load, &a);
	do {
		RUN_TOP("-b", "-n", "2", "-d", "0.2");
	} while (top.status == 0 && find_line(&load.q, 1, &last) && !is_active(&last) &&
		 patient(start, PATIENCE_MS));
	atomic_store(&load.stop, true);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	CHECK_EQ(top.status, 0);
	MUST(find_line(&load.q, 0, &first));
	MUST(find_line(&load.q, 1, &last));
	CHECK(!strcmp(first.rate, "-") && !strcmp(first.share, "-"));
	CHECK_EQ(last.watches, 1);
	if (!CHECK(is_active(&last)))
		note("%s", top.said);
	CHECK_EQ(said_lines(&top, "kevent-top ??:??:?? queues: *, watches: *, events/s: *, waiting: *"),
		 2);
	close_queue(&load.q);
}

static long make_misses(void *arg)
{
	struct load *load = arg;
	struct ukevent ev;

	while (!atomic_load(&load->stop))
		if (mark_user(load->q.fd, 1, 1) != 1 ||
		    get_events(load->q.fd, 1, 1, 0, &ev) != 1)
			return -1;
	return 0;
}

/* Rates are per second: what is counted in the kernel in between is in proportion. */
static bool rate_is_near(struct load *load, struct line *last)
{
	long long before = fdinfo(load->q.fd, "kevent-delivered"), events;
	uint64_t start = now_ns(), took;
	double rate;

	RUN_TOP("-b", "-n", "2", "-d", "1");
	took = now_ns() - start;
	events = fdinfo(load->q.fd, "kevent-delivered") - before;
	MUST(find_line(&load->q, 1, last));
	/* It saw a part of these events, in at least a second. */
	rate = atof(last->rate);
	CHECK(rate <= (double)events);
	return rate > 0 && rate >= (double)events * 1e9 / (double)took / 5;
}

static void rates_are_per_second(void)
{
	struct load load = { .stop = false };
	uint64_t start = now_ns();
	struct line last;
	struct actor a;
	bool near;

	open_queue(&load.q, 0);
	MUST_EQ(add_user(load.q.fd, 1, 1, 0, 0), 0);
	start_actor(&a, make_misses, &load);
	/* Events come evenly some time, if the host is not too busy. */
	do {
		near = rate_is_near(&load, &last);
	} while (!near && patient(start, PATIENCE_MS));
	CHECK(near);
	atomic_store(&load.stop, true);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	CHECK(!strcmp(last.hits, "0.0"));
	CHECK(!strcmp(last.misses, last.rate) || atof(last.misses) > 0);
	CHECK(!strcmp(last.share, "0.0"));
	close_queue(&load.q);
}

static int wait_for_all(void *arg)
{
	struct ukevent ev;

	return get_events(*(int *)arg, 1, 1, -1, &ev) != 1;
}

/* A queue of two processes is one line. */
static void lines_are_queues(void)
{
	struct line line;
	struct waiter w;
	struct queue q;
	pid_t pid;

	MUST_EQ(prctl(PR_SET_NAME, "owner\033[2J"), 0);
	open_queue(&q, 0);
	MUST(fcntl(q.fd, F_DUPFD_CLOEXEC, 0) > q.fd);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	start_waiter(&w, &q, 1);
	pid = start_child(wait_for_all, &q.fd);
	MUST(sleeps_in(pid, __NR_kevent_get_events));
	RUN_TOP("-b", "-n", "1");
	CHECK_EQ(top.status, 0);
	MUST(find_line(&q, -1, &line));
	CHECK(!find_line(&q, 1, &line));
	CHECK_EQ(line.waiting, 2);
	if (!CHECK(!strcmp(line.command, "owner?[2J+1")))
		note("%s", top.said);
	check_unsaid(&top, "*%d *+*", pid);
	CHECK(!strchr(top.said, '\033'));
	kill(pid, SIGKILL);
	CHECK_EQ(join_child(pid, PATIENCE_MS), -SIGKILL);
}

/* Where in what it said the line of a queue begins */
static const char *line_at(const struct queue *q)
{
	char want[60], *at = top.said;
	int pid, fd;

	snprintf(want, sizeof(want), "%7d ", getpid());
	while ((at = strstr(at, want))) {
		if (sscanf(at, "%d %*s %d", &pid, &fd) == 2 && fd == q->fd)
			return at;
		at++;
	}
	MUST(!"a line");
	return NULL;
}

static void lines_are_sorted(void)
{
	struct queue few, many;
	struct stat a, b;
	struct waiter w;
	unsigned int i;

	open_queue(&few, 0);
	open_queue(&many, 0);
	for (i = 0; i < 5; i++)
		MUST_EQ(add_user(many.fd, i, 1, 0, 0), 0);
	start_waiter(&w, &few, 1);
	RUN_TOP("-b", "-n", "1", "-o", "watches");
	CHECK(line_at(&many) < line_at(&few));
	RUN_TOP("-b", "-n", "1", "-o", "waiting");
	CHECK(line_at(&few) < line_at(&many));
	MUST_EQ(mark_user(many.fd, 1, 1), 1);
	/* Those that are alike are in the order of their inodes, which each CPU numbers itself. */
	RUN_TOP("-b", "-n", "1", "-o", "pid");
	MUST_EQ(fstat(few.fd, &a), 0);
	MUST_EQ(fstat(many.fd, &b), 0);
	CHECK_EQ(line_at(&few) < line_at(&many), a.st_ino < b.st_ino);
	RUN_TOP("-o", "colour");
	CHECK_EQ(top.status, 2);
	MUST_EQ(kevent_ctl(few.fd, KEVENT_CTL_READY, 0, NULL), 0);
	MUST_EQ(join_waiter(&w), 0);
}

/* --- the history -------------------------------------------------------- */

/* The last column of the last line of a queue */
static const char *history_of(const struct queue *q)
{
	static char history[256];
	char *copy = strdup(top.said), *rest = copy, *text;
	int pid, fd;

	history[0] = 0;
	while ((text = strsep(&rest, "\n")))
		if (sscanf(text, "%d %*s %d", &pid, &fd) == 2 && pid == getpid() && fd == q->fd)
			snprintf(history, sizeof(history), "%s", strrchr(text, ' ') + 1);
	free(copy);
	return history;
}

/* Has an active queue a bar for each of three looks, and one of them the height of the peak? */
static bool has_bars(const char *history)
{
	return strlen(history) == 3 && strspn(history, ".:-=+*#") == 3 && strchr(history, '#');
}

static void use_ascii(void)
{
	MUST_EQ(unsetenv("LC_ALL") | unsetenv("LC_CTYPE") | unsetenv("LANG"), 0);
}

static int use_utf8(void)
{
	return setenv("LC_ALL", "", 1) || setenv("LANG", "C.UTF-8", 1);
}

static void history_has_a_bar_for_each_look(void)
{
	const char *const few[MAX_ARGS] = { "-b", "-H", "-n", "3", "-d", "0.1" };
	uint64_t start = now_ns();
	struct load load;
	struct queue idle;
	struct actor a;

	open_queue(&idle, 0);
	start_load(&load, &a);
	use_ascii();
	do {
		RUN_TOP("-b", "-H", "-n", "4", "-d", "0.1");
	} while (top.status == 0 && !has_bars(history_of(&load.q)) &&
		 patient(start, PATIENCE_MS));
	CHECK_EQ(top.status, 0);
	if (!CHECK(has_bars(history_of(&load.q))))
		note("%s", top.said);
	CHECK(!strcmp(history_of(&idle), "___"));
	CHECK_EQ(said_lines(&top, "    PID COMMAND          FD WATCHES     RATE     PEAK HISTORY"), 4);
	run_top(few, use_utf8);
	CHECK(!strcmp(history_of(&idle), "▁▁"));
	if (!CHECK(!!strstr(history_of(&load.q), "█")))
		note("%s", top.said);
	atomic_store(&load.stop, true);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	close_queue(&load.q);
	close_queue(&idle);
}

/* 26 bars are behind RATE in 80 columns, in which all other columns leave no room for them. */
static void history_keeps_what_there_is_room_for(void)
{
	struct queue q;

	open_queue(&q, 0);
	use_ascii();
	RUN_TOP("-b", "-H", "-n", "29", "-d", "0.1");
	CHECK_EQ(top.status, 0);
	if (!CHECK(!strcmp(history_of(&q), "__________________________")))
		note("%s", history_of(&q));
	RUN_TOP("-b", "-n", "1");
	check_said(&top, "* HITS/s MISSES/s  HIT%% WAITING");
	check_unsaid(&top, "*HISTORY*");
	close_queue(&q);
}

/* --- JSON --------------------------------------------------------------- */

/* Checks that the look number @nth is JSON, and has a queue with these numbers. */
static void check_look(unsigned int nth, const struct queue *q, const char *numbers)
{
	char *copy = strdup(top.said), *line = copy, *end;
	char want[512];

	while (nth-- && line)
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	MUST(line && (end = strchr(line, '\n')));
	*end = 0;
	snprintf(want, sizeof(want),
		 "{\"pid\":%d,\"command\":\"json\\u0001\",\"fd\":%d,\"queue\":%lld,\"processes\":1,%s}",
		 getpid(), q->fd, fdinfo(q->fd, "ino"), numbers);
	if (!CHECK(is_json(line)) || !CHECK(!!strstr(line, want)))
		note("no %s in:\n%s", want, line);
	free(copy);
}

static void json_has_a_line_for_each_look(void)
{
	struct queue plain, ring;
	char numbers[256];
	int fd[2];

	MUST_EQ(prctl(PR_SET_NAME, "json\1"), 0);
	open_queue(&plain, 0);
	MUST_EQ(add_user(plain.fd, 1, 1, 0, 0), 0);
	MUST_EQ(mark_user(plain.fd, 1, 1), 1);
	open_queue(&ring, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(ring.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 1), 0);
	MUST_EQ(write(fd[1], "", 1), 1);
	RUN_TOP("--json", "-n", "2", "-d", "0.1");
	CHECK_EQ(top.status, 0);
	CHECK_EQ(said_lines(&top, "{\"time\":[1-9]*[0-9].[0-9][0-9][0-9],*\"hidden\":0,\"queues\":[[]*"),
		 2);
	CHECK_EQ(said_lines(&top, "*[0-9],\"seconds\":[0-9]*.[0-9][0-9][0-9],\"hidden\":*"), 1);
	check_look(0, &plain,
		   "\"watches\":1,\"ready\":1,\"unread\":0,\"waiting\":0,\"delivered\":0,\"hits\":0,\"misses\":1");
	check_look(1, &plain,
		   "\"watches\":1,\"ready\":1,\"unread\":0,\"waiting\":0,\"delivered\":0,\"hits\":0,\"misses\":1,\"rate\":0.000,\"hit_rate\":0.000,\"miss_rate\":0.000");
	snprintf(numbers, sizeof(numbers),
		 "\"watches\":1,\"ready\":%lld,\"unread\":%lld,\"waiting\":0,\"delivered\":%lld,\"hits\":%lld,\"misses\":%lld",
		 fdinfo(ring.fd, "kevent-ready"), fdinfo(ring.fd, "kevent-ring-kidx"),
		 fdinfo(ring.fd, "kevent-delivered"), fdinfo(ring.fd, "kevent-hits"),
		 fdinfo(ring.fd, "kevent-misses"));
	CHECK_EQ(fdinfo(ring.fd, "kevent-ring-kidx"), 1);
	check_look(0, &ring, numbers);
	close_queue(&plain);
	close_queue(&ring);
}

/* A signal that a terminal has another size is none to look again. */
static void lines_are_not_repeated(void)
{
	uint64_t start = now_ns();
	long long sleeps;

	top = (struct tool){ .name = "kevent-top", .args = { "-j", "-d", "100" } };
	start_tool(&top);
	MUST(sleeps_in(top.pid, __NR_ppoll));
	sleeps = sleeps_so_far(top.pid);
	kill(top.pid, SIGWINCH);
	while (sleeps_so_far(top.pid) == sleeps && patient(start, PATIENCE_MS))
		;
	kill(top.pid, SIGTERM);
	end_tool(&top);
	CHECK_EQ(top.status, 0);
	CHECK_EQ(said_lines(&top, "{*"), 1);
}

/* --- time --------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct rusage use;

	getrusage(RUSAGE_CHILDREN, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000ull +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000ull;
}

/* A look at 10,000 watches takes long, and 100 ms are less than ten times that. */
static void looks_leave_time_to_others(void)
{
	uint64_t begun, start, cpu, took;
	struct queue q;
	unsigned int i;

	open_queue(&q, 0);
	for (i = 0; i < 10000; i++)
		MUST_EQ(add_user(q.fd, i, 1, 0, 0), 0);
	begun = now_ns();
	do {
		start = now_ns();
		cpu = cpu_ns();
		RUN_TOP("-b", "-n", "4", "-d", "0.1");
		took = now_ns() - start;
		cpu = cpu_ns() - cpu;
		CHECK_EQ(top.status, 0);
		CHECK(took > 300000000ull);
	} while (cpu >= took / 4 && patient(begun, PATIENCE_MS));
	CHECK(cpu < took / 4);
	note("%llu ms of CPU time in %llu ms",
	     (unsigned long long)cpu / 1000000,
	     (unsigned long long)took / 1000000);
	close_queue(&q);
}

static void times_that_make_no_sense_are_refused(void)
{
	static const char *const wrong[][2] = {
		{ "-d", "0" }, { "-d", "0.09" }, { "-d", "-1" },
		{ "-d", "nan" }, { "-d", "1s" }, { "-n", "0" },
		{ "-n", "-1" }, { "-n", "x" }, { "-x", NULL }, { "7", NULL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		RUN_TOP("-b", wrong[i][0], wrong[i][1]);
		if (!CHECK_EQ(top.status, 2))
			note("%s %s", wrong[i][0], wrong[i][1]);
		check_said(&top, "usage: kevent-top *");
	}
}

/* --- a terminal --------------------------------------------------------- */

static int exec_top(void *name)
{
	setenv("TERM", "xterm", 1);
	execl(example("kevent-top"), "kevent-top", "-d", "100", "-o", name,
	      NULL);
	return 127;
}

/* A terminal of 10 lines */
static pid_t start_on_terminal(int *terminal, const char *order, unsigned short columns)
{
	const struct winsize size = { .ws_row = 10, .ws_col = columns };
	int other;
	pid_t pid;

	MUST_EQ(openpty(terminal, &other, NULL, NULL, &size), 0);
	pid = fork();
	if (!pid)
		_exit(login_tty(other) ? 126 : exec_top((void *)order));
	MUST(pid > 0);
	close(other);
	return pid;
}

/* Reads what is on the terminal until there is a text, or the other side is gone. */
static bool read_until(int terminal, const char *text)
{
	struct pollfd in = { .fd = terminal, .events = POLLIN };
	size_t len = 0;
	ssize_t ret;

	top.said[0] = 0;
	while (!strstr(top.said, text)) {
		if (poll(&in, 1, 2 * PATIENCE_MS * slowness) != 1)
			return false;
		ret = read(terminal, top.said + len,
			   sizeof(top.said) - 1 - len);
		if (ret <= 0)
			return false;
		len += ret;
		top.said[len] = 0;
	}
	return true;
}

#define ENTERED	"\033[?1049h\033[?7l\033[?25l"
#define LEFT	"\033[?25h\033[?7h\033[?1049l"

/*
 * Lines are erased before they are written: a terminal keeps the cursor in the last column, and
 * would erase what was written there. Returns how many.
 */
static unsigned int erased_lines(void)
{
	unsigned int nr = 0;
	char *at;

	for (at = top.said; (at = strstr(at, "\033[K")); at++, nr++)
		CHECK(at[-1] == '\n' || at[-1] == 'H');
	return nr;
}

static void keys_are_known(void)
{
	struct queue q[12];
	unsigned int i;
	int terminal;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(q); i++)
		open_queue(&q[i], 0);
	pid = start_on_terminal(&terminal, "rate", 80);
	MUST(read_until(terminal, "sorted by rate; s: next key, h: more history, q: quit"));
	CHECK(!strncmp(top.said, ENTERED, strlen(ENTERED)));
	CHECK_EQ(erased_lines(), 10);
	CHECK(!strstr(top.said, "HISTORY"));
	MUST_EQ(write(terminal, "s", 1), 1);
	MUST(read_until(terminal, "sorted by hits;"));
	MUST_EQ(write(terminal, "h", 1), 1);
	MUST(read_until(terminal, "h: less history"));
	CHECK(strstr(top.said, "     PEAK HISTORY") && !strstr(top.said, "WAITING"));
	MUST_EQ(write(terminal, "h", 1), 1);
	MUST(read_until(terminal, "h: more history"));
	CHECK(!strstr(top.said, "HISTORY") && strstr(top.said, "WAITING"));
	MUST_EQ(write(terminal, "q", 1), 1);
	MUST(read_until(terminal, LEFT));
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	close(terminal);
}

/* Also while it waits for 100 seconds */
static void signal_restores_the_terminal(void)
{
	struct termios now;
	int terminal;
	struct queue q;
	pid_t pid;

	open_queue(&q, 0);
	pid = start_on_terminal(&terminal, "pid", 96);
	MUST(read_until(terminal, "sorted by pid;"));
	/* It is as wide as all columns with the least history. */
	CHECK(!!strstr(top.said, "WAITING     PEAK HISTORY"));
	/* So is the line of the queue. */
	CHECK(erased_lines() > 0);
	MUST_EQ(tcgetattr(terminal, &now), 0);
	CHECK(!(now.c_lflag & (ICANON | ECHO)));
	kill(pid, SIGTERM);
	MUST(read_until(terminal, LEFT));
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	MUST_EQ(tcgetattr(terminal, &now), 0);
	CHECK_EQ(now.c_lflag & (ICANON | ECHO), ICANON | ECHO);
	close(terminal);
}

/* Its group has the terminal. */
static pid_t start_job(int terminal)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	signal(SIGTTOU, SIG_IGN);
	if (setpgid(0, 0) || tcsetpgrp(terminal, getpid()) || dup2(terminal, 0) < 0 ||
	    dup2(terminal, 1) < 0 || dup2(terminal, 2) < 0)
		_exit(126);
	signal(SIGTTOU, SIG_DFL);
	_exit(exec_top("pid"));
}

/* Waits until it stops or ends. */
static bool stops(pid_t pid)
{
	uint64_t start = now_ns();
	int status;

	while (waitpid(pid, &status, WUNTRACED | WNOHANG) == 0)
		if (!patient(start, PATIENCE_MS))
			return false;
	return WIFSTOPPED(status);
}

static bool has_lines(int terminal)
{
	struct termios now;

	return !tcgetattr(terminal, &now) && (now.c_lflag & (ICANON | ECHO)) == (ICANON | ECHO);
}

struct job {
	int	terminal, other;
	pid_t	pid;
};

/* As a shell, whose job it is: Ctrl-Z */
static int stop_job(struct job *job)
{
	const struct winsize size = { .ws_row = 10, .ws_col = 80 };

	CHILD_MUST(!openpty(&job->terminal, &job->other, NULL, NULL, &size));
	CHILD_MUST(setsid() > 0 && !ioctl(job->other, TIOCSCTTY, 0));
	job->pid = start_job(job->other);
	CHILD_MUST(job->pid > 0 && read_until(job->terminal, "sorted by pid;"));
	CHILD_MUST(!has_lines(job->terminal));
	CHILD_MUST(write(job->terminal, "\032", 1) == 1 && read_until(job->terminal, LEFT));
	CHILD_MUST(stops(job->pid) && has_lines(job->terminal));
	return 0;
}

/* And then Ctrl-\ */
static int stop_and_continue(void *arg)
{
	struct job job;

	(void)arg;
	CHILD_MUST(!stop_job(&job));
	CHILD_MUST(!kill(job.pid, SIGCONT) && read_until(job.terminal, "sorted by pid;"));
	CHILD_MUST(!strncmp(top.said, ENTERED, strlen(ENTERED)) && !has_lines(job.terminal));
	CHILD_MUST(write(job.terminal, "\034", 1) == 1 && read_until(job.terminal, LEFT));
	return join_child(job.pid, PATIENCE_MS);
}

static void shell_has_its_screen_while_it_is_stopped(void)
{
	MUST_EQ(join_child(start_child(stop_and_continue, NULL), 4 * PATIENCE_MS), 0);
}

/* The shell has its terminal again, and "kill %1" sends both signals. */
static int stop_and_end(void *arg)
{
	struct job job;

	(void)arg;
	CHILD_MUST(!stop_job(&job));
	CHILD_MUST(signal(SIGTTOU, SIG_IGN) != SIG_ERR && !tcsetpgrp(job.other, getpid()));
	CHILD_MUST(!kill(job.pid, SIGTERM) && !kill(job.pid, SIGCONT));
	CHILD_MUST(!join_child(job.pid, PATIENCE_MS));
	CHILD_MUST(has_lines(job.terminal));
	return 0;
}

static void stopped_job_can_be_ended(void)
{
	MUST_EQ(join_child(start_child(stop_and_end, NULL), 4 * PATIENCE_MS), 0);
}

/* --- what is not there --------------------------------------------------- */

static void other_users_are_left_out(void)
{
	const char *const args[MAX_ARGS] = { "-b", "-n", "1" };
	struct line line;
	struct queue q;

	open_queue(&q, 8);
	run_top(args, become_nobody);
	CHECK_EQ(top.status, 0);
	CHECK(!find_line(&q, -1, &line));
	check_said(&top, "kevent-top ??:??:?? queues: 0, watches: 0, events/s: 0.0, waiting: 0");
	check_said(&top, "[1-9]* processes that may not be traced are left out; root sees all");
	run_top(args, NULL);
	CHECK(find_line(&q, -1, &line));
	check_unsaid(&top, "*left out*");
	close_queue(&q);
}

static void output_that_is_lost_is_said(void)
{
	static const char *const formats[] = { "-b", "-j" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		run_top((const char *const[MAX_ARGS]){ formats[i], "-n", "2" }, fill_output);
		CHECK_EQ(top.status, 1);
		CHECK_EQ(said_lines(&top, "?*"), 1);
		check_said(&top, "kevent-top: standard output: No space left on device");
	}
}

static void kernel_without_kevent_is_said(void)
{
	run_top((const char *const[MAX_ARGS]){ "-b" }, hide_kevent);
	CHECK_EQ(top.status, 1);
	CHECK_EQ(said_lines(&top, "?*"), 1);
	check_said(&top, "kevent-top: this kernel has no kevent; load the module*");
}

static const struct test_case cases[] = {
	TEST(active_queue_has_rates),
	TEST(rates_are_per_second),
	TEST(lines_are_queues),
	TEST(lines_are_sorted),
	TEST(history_has_a_bar_for_each_look),
	TEST(history_keeps_what_there_is_room_for),
	TEST(json_has_a_line_for_each_look),
	TEST(lines_are_not_repeated),
	TEST(looks_leave_time_to_others),
	TEST(times_that_make_no_sense_are_refused),
	TEST(keys_are_known),
	TEST(signal_restores_the_terminal),
	TEST_LIMIT(shell_has_its_screen_while_it_is_stopped, 60),
	TEST_LIMIT(stopped_job_can_be_ended, 60),
	TEST(other_users_are_left_out),
	TEST(output_that_is_lost_is_said),
	TEST(kernel_without_kevent_is_said),
	{}
};

const struct test_suite top_suite = { .name = "top", .cases = cases };
