// SPDX-License-Identifier: GPL-2.0
/*
 * usage: kevent-top [-bHj] [-d SECONDS] [-n TIMES] [-o KEY]
 *
 * Shows all queues that may be seen, one line each, what they do in a second, and what they
 * did in the seconds before.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>

#include "json.h"
#include "queues.h"
#include "version.h"

/* A look at all queues may cost a CPU one part in so many of its time. */
#define SHARE		10
#define SECOND_NS	1000000000ull

#define MOST_BARS	60
#define LEAST_BARS	10
#define COLUMNS		80		/* of what is no terminal */
#define COLUMNS_ROW	44		/* up to RATE */
#define COLUMNS_DETAILS	32
#define COLUMNS_PEAK	10

const char *program = "kevent-top";

/**
 * struct row - a queue
 * @ino: its number
 * @pid: the process with the lowest id that has it
 * @fd: the descriptor there
 * @others: how many more processes have it
 * @watches: how many it has
 * @ready: of them queued, so a call has to fetch their events
 * @unread: events in the ring
 * @delivered: events so far
 * @hits: of them stored by wake-ups
 * @misses: times a watch was queued
 * @waiting: threads asleep
 * @known: it was there at the look before, so there are rates
 * @rate: of @delivered in a second
 * @hit_rate: of @hits
 * @miss_rate: of @misses
 * @past: @rate at this look and those before, the latest one at the end
 * @nr_past: entries of @past
 * @command: of @pid
 */
struct row {
	__u64		ino;
	pid_t		pid;
	int		fd;
	unsigned int	others;
	__u64		watches;
	__u64		ready;
	__u64		unread;
	__u64		delivered;
	__u64		hits;
	__u64		misses;
	__u64		waiting;
	bool		known;
	double		rate;
	double		hit_rate;
	double		miss_rate;
	double		past[MOST_BARS];
	unsigned int	nr_past;
	char		command[COMMAND_SIZE];
};

/* A look at all queues, by number until it is sorted for display */
struct look {
	struct row	*row;
	size_t		nr;
	unsigned int	hidden;
	__u64		at;	/* when it was */
	__u64		since;	/* so long after the look before; 0: there was none */
	__u64		took;
};

static bool batch, json, screen, changed;
static bool details = true;		/* the columns between RATE and PEAK */
static __u64 interval = 2 * SECOND_NS;
static unsigned long times;		/* 0: until the user ends it */
static volatile sig_atomic_t ended, stopped;
static bool entered;			/* the other screen */
static bool failed;			/* to write */
static struct termios before;
/* Signals come while it waits, and not between a look at what they set and that. */
static sigset_t unblocked;

static __u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * SECOND_NS + (__u64)ts.tv_nsec;
}

/* --- order ------------------------------------------------------------ */

static double hit_share(const struct row *r)
{
	double all = r->hit_rate + r->miss_rate;

	return all > 0 ? 100 * r->hit_rate / all : -1;
}

static double by_pid(const struct row *r) { return -r->pid; }
static double by_watches(const struct row *r) { return (double)r->watches; }
static double by_rate(const struct row *r) { return r->rate; }
static double by_hits(const struct row *r) { return r->hit_rate; }
static double by_misses(const struct row *r) { return r->miss_rate; }
static double by_waiting(const struct row *r) { return (double)r->waiting; }

static const struct key {
	const char	*name;
	double		(*of)(const struct row *r);
} keys[] = {
	{ "rate", by_rate }, { "hits", by_hits }, { "misses", by_misses },
	{ "hit", hit_share }, { "watches", by_watches },
	{ "waiting", by_waiting }, { "pid", by_pid },
};

#define NR_KEYS	(sizeof(keys) / sizeof(keys[0]))

static const struct key *key = keys;

/* Queues that are alike stay in the order of their numbers: lines do not jump. */
static int compare_rows(const void *one, const void *two)
{
	const struct row *a = one, *b = two;
	double x = key->of(a), y = key->of(b);

	if (x != y)
		return x > y ? -1 : 1;
	return a->ino < b->ino ? -1 : a->ino > b->ino;
}

static int compare_numbers(const void *one, const void *two)
{
	const struct row *a = one, *b = two;

	return a->ino < b->ino ? -1 : a->ino > b->ino;
}

/* --- looking ---------------------------------------------------------- */

static double per_second(__u64 new, __u64 old, __u64 ns)
{
	return (double)(new - old) * 1e9 / (double)ns;
}

static void add_to_past(struct row *r, const struct row *old)
{
	const unsigned int drop = old->nr_past == MOST_BARS;

	r->nr_past = old->nr_past - drop;
	memcpy(r->past, old->past + drop, r->nr_past * sizeof(*r->past));
	r->past[r->nr_past++] = r->rate;
}

static void set_rates(struct row *r, const struct look *last, __u64 ns)
{
	const struct row *old = last->nr ?
		bsearch(r, last->row, last->nr, sizeof(*r), compare_numbers) :
		NULL;

	/* The number of a queue that is gone may be given to a new one. */
	r->known = old && ns && r->delivered >= old->delivered &&
		   r->hits >= old->hits && r->misses >= old->misses;
	if (!r->known)
		return;
	r->rate = per_second(r->delivered, old->delivered, ns);
	r->hit_rate = per_second(r->hits, old->hits, ns);
	r->miss_rate = per_second(r->misses, old->misses, ns);
	add_to_past(r, old);
}

static bool read_row(struct row *r, const struct holder *h)
{
	struct queue q;

	if (!read_queue(&q, h, false))
		return false;
	*r = (struct row){
		.ino = q.ino, .pid = h->pid, .fd = h->fd,
		.watches = q.nr_watches, .ready = q.ready,
		.unread = q.ring_kidx - q.ring_uidx, .delivered = q.delivered,
		.hits = q.hits, .misses = q.misses, .waiting = q.waiting,
	};
	return read_command(h->pid, r->command);
}

/* Adds the queue of some holders, by the first of them that still has it. */
static size_t add_row(struct look *look, const struct holder *h, size_t nr)
{
	struct row r = { .ino = 0 };
	pid_t last = 0;
	size_t i;

	for (i = 0; i < nr && h[i].ino == h->ino; i++) {
		if (h[i].pid == last)
			continue;
		last = h[i].pid;
		if (r.ino)
			r.others++;
		else if (!read_row(&r, &h[i]))
			r.ino = 0;
	}
	if (r.ino)
		look->row[look->nr++] = r;
	return i;
}

static void take_look(struct look *look, const struct look *last)
{
	static struct holders all;
	size_t i;

	look->at = now();
	look->since = last->at ? look->at - last->at : 0;
	find_all_queues(&all);
	look->hidden = all.hidden;
	look->nr = 0;
	look->row = resize(look->row, (all.nr + 1) * sizeof(*look->row));
	for (i = 0; i < all.nr; )
		i += add_row(look, all.at + i, all.nr - i);
	for (i = 0; i < look->nr; i++)
		set_rates(&look->row[i], last, look->since);
	look->took = now() - look->at;
}

/* --- showing ---------------------------------------------------------- */

/* Behind the last column a terminal would erase that: a line is erased before it is written. */
static void end_line(void)
{
	fputs(screen ? "\n\033[K" : "\n", stdout);
}

/* How many bars there is room for behind the other columns, 0 if too few to be of use */
static unsigned int bars_shown(void)
{
	const int others = COLUMNS_ROW + (details ? COLUMNS_DETAILS : 0) + COLUMNS_PEAK;
	struct winsize size;
	int room = COLUMNS;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		room = size.ws_col;
	room -= others;
	if (room < LEAST_BARS)
		return 0;
	return room < MOST_BARS ? (unsigned int)room : MOST_BARS;
}

/* What the environment says of the terminal; the locale itself need not be there. */
static bool knows_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *locale = NULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !(locale && *locale); i++)
		locale = getenv(names[i]);
	return locale && (strcasestr(locale, "UTF-8") || strcasestr(locale, "UTF8"));
}

/* The first one is for no events, the last one for the peak. */
static const char *bar(double rate, double peak)
{
	static const char *const utf8[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
	static const char *const *bars;

	if (!bars)
		bars = knows_utf8() ? utf8 : ascii;
	return bars[rate > 0 ? 1 + (int)(rate / peak * 6) : 0];
}

static void say_rate(bool known, double rate)
{
	if (!known)
		printf(" %8s", "-");
	else if (rate < 1000)
		printf(" %8.1f", rate);
	else if (rate < 1e7)
		printf(" %8.0f", rate);
	else
		printf(" %7.0fk", rate / 1000);
}

/* The peak of the bars, which are of its height or lower, and the bars */
static void print_past(const struct row *r)
{
	unsigned int i, bars = bars_shown(), shown = r->nr_past < bars ? r->nr_past : bars;
	const double *past = r->past + r->nr_past - shown;
	double peak = 0;

	if (!bars)
		return;
	for (i = 0; i < shown; i++)
		peak = past[i] > peak ? past[i] : peak;
	say_rate(shown, peak);
	printf(" %*s", (int)(bars - shown), "");
	for (i = 0; i < shown; i++)
		fputs(bar(past[i], peak), stdout);
}

static void print_details(const struct row *r)
{
	say_rate(r->known, r->hit_rate);
	say_rate(r->known, r->miss_rate);
	if (r->known && hit_share(r) >= 0)
		printf(" %5.1f", hit_share(r));
	else
		printf(" %5s", "-");
	printf(" %7llu", (unsigned long long)r->waiting);
}

static void print_row(const struct row *r)
{
	char command[COMMAND_SIZE + 16];

	strcpy(command, r->command);
	if (r->others)
		snprintf(command, sizeof(command), "%.10s+%u", r->command,
			 r->others);
	make_printable(command);
	printf("%7d %-14.14s %4d %7llu", r->pid, command, r->fd,
	       (unsigned long long)r->watches);
	say_rate(r->known, r->rate);
	if (details)
		print_details(r);
	print_past(r);
	end_line();
}

static void print_summary(const struct look *look)
{
	__u64 watches = 0, waiting = 0;
	time_t seconds = time(NULL);
	char clock[16];
	double rate = 0;
	size_t i;

	for (i = 0; i < look->nr; i++) {
		watches += look->row[i].watches;
		waiting += look->row[i].waiting;
		rate += look->row[i].rate;
	}
	strftime(clock, sizeof(clock), "%T", localtime(&seconds));
	printf("kevent-top %s queues: %zu, watches: %llu, events/s: %.1f, waiting: %llu",
	       clock, look->nr, (unsigned long long)watches, rate,
	       (unsigned long long)waiting);
	end_line();
	if (look->hidden)
		printf("%u processes that may not be traced are left out; root sees all",
		       look->hidden);
	end_line();
	printf("%7s %-14s %4s %7s %8s", "PID", "COMMAND", "FD", "WATCHES", "RATE");
	if (details)
		printf(" %8s %8s %5s %7s", "HITS/s", "MISSES/s", "HIT%", "WAITING");
	if (bars_shown())
		printf(" %8s HISTORY", "PEAK");
	end_line();
}

/* How many queues are shown: all, or as many as there are lines */
static size_t rows_shown(const struct look *look)
{
	struct winsize size;
	size_t rows;

	if (!screen || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
		return look->nr;
	rows = size.ws_row > 4 ? size.ws_row - 4u : 1;
	return rows < look->nr ? rows : look->nr;
}

static void print_table(const struct look *look, const struct row *sorted)
{
	size_t i, nr = rows_shown(look);

	if (screen)
		fputs("\033[H\033[K", stdout);
	print_summary(look);
	for (i = 0; i < nr; i++)
		print_row(&sorted[i]);
	if (screen)
		printf("\033[Jsorted by %s; s: next key, h: %s history, q: quit", key->name,
		       details ? "more" : "less");
	else
		putchar('\n');
}

static void json_row(const struct row *r)
{
	json_begin(NULL, '{');
	json_number("pid", (unsigned int)r->pid);
	json_string("command", r->command);
	json_number("fd", (unsigned int)r->fd);
	json_number("queue", r->ino);
	json_number("processes", r->others + 1);
	json_number("watches", r->watches);
	json_number("ready", r->ready);
	json_number("unread", r->unread);
	json_number("waiting", r->waiting);
	json_number("delivered", r->delivered);
	json_number("hits", r->hits);
	json_number("misses", r->misses);
	if (r->known) {
		json_fraction("rate", r->rate);
		json_fraction("hit_rate", r->hit_rate);
		json_fraction("miss_rate", r->miss_rate);
	}
	json_end('}');
}

static void print_json(const struct look *look, const struct row *sorted)
{
	struct timespec ts;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &ts);
	json_begin(NULL, '{');
	json_fraction("time", (double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
	if (look->since)
		json_fraction("seconds", (double)look->since / 1e9);
	json_number("hidden", look->hidden);
	json_begin("queues", '[');
	for (i = 0; i < look->nr; i++)
		json_row(&sorted[i]);
	json_end(']');
	json_end('}');
	json_end_line();
}

static void display(const struct look *look)
{
	struct row *sorted = resize(NULL, (look->nr + 1) * sizeof(*sorted));

	memcpy(sorted, look->row, look->nr * sizeof(*sorted));
	qsort(sorted, look->nr, sizeof(*sorted), compare_rows);
	if (json)
		print_json(look, sorted);
	else
		print_table(look, sorted);
	if (!flush_output()) {
		failed = true;
		ended = 1;
	}
	free(sorted);
}

/* --- the terminal ----------------------------------------------------- */

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

static void leave_screen(void)
{
	if (!entered)
		return;
	entered = false;
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	fputs("\033[?25h\033[?7h\033[?1049l", stdout);
	fflush(stdout);
}

/* Another screen, without a cursor, which cuts long lines off, and keys as they are pressed */
static void enter_screen(void)
{
	struct termios raw = before;

	entered = true;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?7l\033[?25l", stdout);
}

static bool has_screen(void)
{
	const char *term = getenv("TERM");

	return !batch && !json && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") &&
	       !tcgetattr(STDIN_FILENO, &before);
}

/* As SIGTSTP does by default: nothing, where nobody could continue it. The shell gets its screen. */
static void stop(void)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL }, ours;
	sigset_t blocked;

	stopped = 0;
	leave_screen();
	sigaction(SIGTSTP, &by_default, &ours);
	raise(SIGTSTP);
	sigprocmask(SIG_SETMASK, &unblocked, &blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigaction(SIGTSTP, &ours, NULL);
	/* In the background, as after "kill %1", it would stop again. */
	if (!ended)
		enter_screen();
}

static void press(char c)
{
	if (c == 'q')
		ended = 1;
	else if (c == 's')
		key = key == keys + NR_KEYS - 1 ? keys : key + 1;
	else if (c == 'h')
		details = !details;
	changed = c == 's' || c == 'h';
}

/* Until it is time to look again, or there is something to show */
static void wait_until(__u64 until)
{
	struct pollfd in = { .fd = screen ? STDIN_FILENO : -1,
			     .events = POLLIN };
	struct timespec ts;
	__u64 at;
	char c;
	int ret;

	while (!ended && !changed && (at = now()) < until) {
		ts.tv_sec = (time_t)((until - at) / SECOND_NS);
		ts.tv_nsec = (long)((until - at) % SECOND_NS);
		ret = ppoll(&in, 1, &ts, &unblocked);
		if (stopped)
			stop();
		if (ret < 0)
			changed = screen;		/* it has another size, or is ours again */
		else if (ret && read(STDIN_FILENO, &c, 1) == 1)
			press(c);
		else if (ret)
			ended = 1;			/* the terminal is gone */
	}
}

/* --- the program ------------------------------------------------------ */

static __u64 pause_after(const struct look *look)
{
	__u64 least = (SHARE - 1) * look->took;

	return look->took + (interval > least ? interval : least);
}

static void run(void)
{
	struct look looks[2] = { { .nr = 0 }, { .nr = 0 } };
	unsigned long nr = 0;
	__u64 until;

	while (!ended) {
		struct look *look = &looks[nr % 2];

		take_look(look, &looks[!(nr % 2)]);
		until = look->at + pause_after(look);
		display(look);
		if (++nr == times)
			break;
		while (changed = false, wait_until(until), changed && !ended)
			display(look);
	}
	free(looks[0].row);
	free(looks[1].row);
}

static __attribute__((noreturn)) void usage(int status)
{
	size_t i;

	fprintf(status ? stderr : stdout,
		"usage: kevent-top [-bHj] [-d SECONDS] [-n TIMES] [-o KEY]\n"
		"  -b          lines one after the other, for a file or pipe\n"
		"  -d          time between two looks, at least 0.1 (2)\n"
		"  -H          more of the history, without HITS/s to WAITING\n"
		"  -j, --json  as JSON, a line for each look\n"
		"  -n          end after so many looks\n"
		"  -o          order:");
	for (i = 0; i < NR_KEYS; i++)
		fprintf(status ? stderr : stdout, " %s", keys[i].name);
	fputs(" (rate)\n  --version\n", status ? stderr : stdout);
	exit(status);
}

static void set_interval(const char *word)
{
	char *end;
	double seconds = strtod(word, &end);

	if (*end || !(seconds >= 0.1 && seconds <= 86400))
		usage(2);
	interval = (__u64)(seconds * 1e9);
}

static void set_times(const char *word)
{
	char *end;

	errno = 0;
	times = strtoul(word, &end, 10);
	if (*end || !times || errno || *word == '-')
		usage(2);
}

static void set_key(const char *word)
{
	for (key = keys; key < keys + NR_KEYS; key++)
		if (!strcmp(key->name, word))
			return;
	usage(2);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "version", no_argument, NULL, 'v' },
		{}
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "bd:Hjn:o:", options, NULL)) != -1) {
		if (opt == 'b')
			batch = true;
		else if (opt == 'd')
			set_interval(optarg);
		else if (opt == 'H')
			details = false;
		else if (opt == 'j')
			json = true;
		else if (opt == 'n')
			set_times(optarg);
		else if (opt == 'o')
			set_key(optarg);
		else if (opt == 'v')
			show_version("kevent-top");
		else
			usage(opt == 'h' ? 0 : 2);
	}
	if (optind != argc)
		usage(2);
}

static void on_size(int sig)
{
	(void)sig;
}

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* If it is ignored it stays so, as a shell or nohup(1) may want it. */
static void catch_signal(sigset_t *caught, int sig, void (*handler)(int))
{
	struct sigaction old, new = { .sa_handler = handler };

	sigaction(sig, NULL, &old);
	if (old.sa_handler == SIG_IGN)
		return;
	sigaddset(caught, sig);
	sigaction(sig, &new, NULL);
}

static void catch_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t blocked;
	size_t i;

	sigemptyset(&blocked);
	catch_signal(&blocked, SIGWINCH, on_size);
	if (screen)
		catch_signal(&blocked, SIGTSTP, on_stop);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		catch_signal(&blocked, ends[i], on_signal);
	sigprocmask(SIG_BLOCK, &blocked, &unblocked);
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	need_kevent();
	screen = has_screen();
	catch_signals();
	if (screen) {
		atexit(leave_screen);
		enter_screen();
	}
	run();
	return failed;
}
