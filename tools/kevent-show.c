// SPDX-License-Identifier: GPL-2.0
/*
 * usage: kevent-show [-b] [-j] PID...
 *        kevent-show --host
 *
 * Prints the queues of processes: the ring, the watches, what was delivered, who waits,
 * and who else has the queue. Or what a program gets here.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "host.h"
#include "json.h"
#include "queues.h"
#include "version.h"

const char *program = "kevent-show";

static bool brief, json;
/* All that may be seen: other processes may have the same queues. */
static struct holders all;
static __u64 most_bytes;

/* A buffer for one expression of decode.h */
static char words[512];

static struct text new_text(void)
{
	words[0] = 0;
	return (struct text){ .at = words, .room = sizeof(words) };
}

static const char *init_flags(const struct queue *q)
{
	struct text t = new_text();

	say_init_flags(&t, (__u32)q->refuses | (q->flags & O_CLOEXEC ? 0 :
						KEVENT_INIT_NOCLOEXEC));
	return words;
}

static const char *ring_flags(const struct queue *q)
{
	struct text t = new_text();

	say_ring_flags(&t, (__u32)q->ring_flags);
	return words;
}

static const char *mode_of(const struct watch *w)
{
	struct text t = new_text();

	say_mode(&t, w->type, w->flags);
	return words;
}

static const char *events_of(const struct watch *w, __u32 mask)
{
	struct text t = new_text();

	say_events(&t, w->type, mask);
	return words;
}

static const char *req_flags(const struct watch *w)
{
	struct text t = new_text();

	say_req_flags(&t, w->flags);
	return words;
}

static const char *type_and_id(const struct watch *w)
{
	struct ukevent ev = { .type = w->type, .id.raw_u64 = w->id };
	struct text t = new_text();

	if (w->type == ~0u)
		say(&t, "%s %#llx", w->name, (unsigned long long)w->id);
	else
		say_id(&t, &ev);
	return words;
}

#define MOST_TYPES	32	/* a mask of types has so many bits */

/* The watches of a type */
struct type_count {
	const char	*name;
	size_t		nr;
};

/* Counts by type, in the order of the first of each; a last entry has the rest. */
static size_t count_types(const struct queue *q, struct type_count types[MOST_TYPES + 1])
{
	size_t nr = 0, i, j;

	for (i = 0; i < q->nr; i++) {
		const char *name = q->watch[i].name;

		for (j = 0; j < nr && j < MOST_TYPES && strcmp(types[j].name, name); j++)
			;
		if (j == nr)
			types[nr++] = (struct type_count){ j < MOST_TYPES ? name : "OTHER", 0 };
		types[j].nr++;
	}
	return nr;
}

static double percent(__u64 part, __u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* The name of a process or thread, for a terminal */
static const char *command_of(pid_t pid)
{
	static char command[COMMAND_SIZE];

	if (!read_command(pid, command))
		strcpy(command, "(ended)");
	make_printable(command);
	return command;
}

/* --- text ------------------------------------------------------------- */

static void print_ring(const struct queue *q)
{
	if (!q->ring_size) {
		printf("  ring      none\n");
		return;
	}
	printf("  ring      %llu slots, %llu unread, in %llu process%s, flags %s\n",
	       (unsigned long long)q->ring_size,
	       (unsigned long long)(q->ring_kidx - q->ring_uidx),
	       (unsigned long long)q->ring_spaces,
	       q->ring_spaces == 1 ? "" : "es", ring_flags(q));
}

static void print_counts(const struct queue *q)
{
	struct type_count types[MOST_TYPES + 1];
	size_t nr = count_types(q, types), i;

	printf("  watches   %llu", (unsigned long long)q->nr_watches);
	for (i = 0; i < nr; i++)
		printf("%s%zu %s", i ? ", " : ": ", types[i].nr, types[i].name);
	printf("\n  queued    %llu\n", (unsigned long long)q->ready);
	printf("  events    %llu delivered, %llu hits, %llu misses, %.1f %% hits\n",
	       (unsigned long long)q->delivered, (unsigned long long)q->hits,
	       (unsigned long long)q->misses,
	       percent(q->hits, q->hits + q->misses));
	printf("  memory    %llu of %llu bytes, in all queues of the owner\n",
	       (unsigned long long)q->user_bytes,
	       (unsigned long long)most_bytes);
}

static void print_waiters(const struct queue *q)
{
	const char *before = ": ";
	unsigned int i;
	pid_t pid;

	printf("  waiting   %llu", (unsigned long long)q->waiting);
	for (i = 0; i < q->nr_tids; i++) {
		pid = process_of(q->tid[i]);
		printf("%s%d %s", before, q->tid[i], command_of(q->tid[i]));
		if (pid && pid != q->tid[i])
			printf(" of %d", pid);
		before = ", ";
	}
	if (q->waiting > q->nr_tids)
		printf("%s%llu more", q->nr_tids ? ", " : ": ",
		       (unsigned long long)q->waiting - q->nr_tids);
	putchar('\n');
}

static bool is_other(const struct holder *a, const struct holder *b)
{
	return a->ino == b->ino && (a->pid != b->pid || a->fd != b->fd);
}

static void print_others(const struct holder *h)
{
	const char *before = "  also in   ";
	size_t i;

	for (i = 0; i < all.nr; i++) {
		if (!is_other(&all.at[i], h))
			continue;
		printf("%s%d %s, descriptor %d", before, all.at[i].pid,
		       command_of(all.at[i].pid), all.at[i].fd);
		before = "; ";
	}
	if (*before == ';')
		putchar('\n');
}

static void print_watches(const struct queue *q)
{
	const struct watch *w = q->watch;
	size_t i;

	if (q->nr)
		printf("  STATE      MODE      WATCH\n");
	for (i = 0; i < q->nr; i++, w++) {
		printf("  %-10s %-9s ", w->state, mode_of(w));
		printf("%s", type_and_id(w));
		printf(" %s", events_of(w, w->event));
		printf(" %s user %#llx", req_flags(w),
		       (unsigned long long)w->user);
		if (w->ready)
			printf(" ready %s", events_of(w, w->ready));
		putchar('\n');
	}
}

static void print_queue(const struct holder *h, const struct queue *q)
{
	printf("descriptor %d: queue %llu\n", h->fd,
	       (unsigned long long)q->ino);
	print_ring(q);
	printf("  flags     %s\n", init_flags(q));
	print_counts(q);
	print_waiters(q);
	print_others(h);
	if (!brief)
		print_watches(q);
}

/* --- JSON ------------------------------------------------------------- */

static void json_command(pid_t pid)
{
	char command[COMMAND_SIZE];

	if (read_command(pid, command))
		json_string("command", command);
}

static void json_ring(const struct queue *q)
{
	json_begin("ring", '{');
	json_number("size", q->ring_size);
	json_number("kidx", q->ring_kidx);
	json_number("uidx", q->ring_uidx);
	json_number("processes", q->ring_spaces);
	json_string("flags", ring_flags(q));
	json_end('}');
}

static void json_counts(const struct queue *q)
{
	struct type_count types[MOST_TYPES + 1];
	size_t nr = count_types(q, types), i;

	json_number("watches", q->nr_watches);
	json_begin("watches_by_type", '{');
	for (i = 0; i < nr; i++)
		json_number(types[i].name, types[i].nr);
	json_end('}');
	json_number("queued", q->ready);
	json_number("delivered", q->delivered);
	json_number("hits", q->hits);
	json_number("misses", q->misses);
	json_number("user_bytes", q->user_bytes);
	json_number("max_user_bytes", most_bytes);
}

static void json_waiters(const struct queue *q)
{
	unsigned int i;
	pid_t pid;

	json_number("waiting", q->waiting);
	json_begin("waiters", '[');
	for (i = 0; i < q->nr_tids; i++) {
		json_begin(NULL, '{');
		json_number("tid", (unsigned int)q->tid[i]);
		pid = process_of(q->tid[i]);
		if (pid)
			json_number("pid", (unsigned int)pid);
		json_command(q->tid[i]);
		json_end('}');
	}
	json_end(']');
}

static void json_others(const struct holder *h)
{
	size_t i;

	json_begin("others", '[');
	for (i = 0; i < all.nr; i++) {
		if (!is_other(&all.at[i], h))
			continue;
		json_begin(NULL, '{');
		json_number("pid", (unsigned int)all.at[i].pid);
		json_number("fd", (unsigned int)all.at[i].fd);
		json_command(all.at[i].pid);
		json_end('}');
	}
	json_end(']');
}

static void json_watches(const struct queue *q)
{
	const struct watch *w = q->watch;
	size_t i;

	json_begin("list", '[');
	for (i = 0; i < q->nr; i++, w++) {
		json_begin(NULL, '{');
		json_string("type", w->name);
		json_number("id", w->id);
		json_string("text", type_and_id(w));
		json_string("events", events_of(w, w->event));
		json_string("flags", req_flags(w));
		json_string("mode", mode_of(w));
		json_number("user", w->user);
		json_string("ready", events_of(w, w->ready));
		json_string("state", w->state);
		json_end('}');
	}
	json_end(']');
}

static void json_queue(const struct holder *h, const struct queue *q)
{
	json_begin(NULL, '{');
	json_number("fd", (unsigned int)h->fd);
	json_number("queue", q->ino);
	json_ring(q);
	json_string("flags", init_flags(q));
	json_counts(q);
	json_waiters(q);
	json_others(h);
	if (!brief)
		json_watches(q);
	json_end('}');
}

/* --- processes -------------------------------------------------------- */

static void show_queues(const struct holders *of)
{
	struct queue q;
	size_t i;

	for (i = 0; i < of->nr; i++) {
		if (!read_queue(&q, &of->at[i], true))
			;	/* it was closed */
		else if (json)
			json_queue(&of->at[i], &q);
		else
			print_queue(&of->at[i], &q);
		free_queue(&q);
	}
}

static void show_found(pid_t pid, const struct holders *of)
{
	if (json) {
		json_begin(NULL, '{');
		json_number("pid", (unsigned int)pid);
		json_command(pid);
		json_begin("queues", '[');
		show_queues(of);
		json_end(']');
		json_end('}');
	} else {
		printf("%d %s: %zu queue%s\n", pid, command_of(pid), of->nr,
		       of->nr == 1 ? "" : "s");
		show_queues(of);
	}
}

/* Returns whether it could be looked at. One that ends now was there. */
static bool show(pid_t pid)
{
	struct holders of = { .nr = 0 };
	int err = find_queues(&of, pid);

	if (err == -EACCES)
		fprintf(stderr, "%s: %d: its descriptors may not be seen; run %s as its user or as root\n",
			program, pid, program);
	else
		show_found(pid, &of);
	free(of.at);
	return err != -EACCES;
}

static bool is_there(pid_t pid)
{
	char command[COMMAND_SIZE];

	if (read_command(pid, command))
		return true;
	fprintf(stderr, "%s: %d: no such process\n", program, pid);
	return false;
}

static void read_limit(void)
{
	FILE *file = fopen("/proc/sys/fs/kevent/max_user_bytes", "re");
	unsigned long long bytes;

	if (file && fscanf(file, "%llu", &bytes) == 1)
		most_bytes = bytes;
	if (file)
		fclose(file);
}

static __attribute__((noreturn)) void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: kevent-show [-b] [-j] PID...\n"
		"       kevent-show --host\n"
		"  -b, --brief  without the watches\n"
		"  -j, --json   as JSON, in one line\n"
		"  --host       what programs get here: the kernel, its module, or epoll\n"
		"  --version\n");
	exit(status);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "brief", no_argument, NULL, 'b' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "host", no_argument, NULL, 'H' },
		{ "version", no_argument, NULL, 'v' },
		{}
	};
	bool host = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "bj", options, NULL)) != -1) {
		if (opt == 'b')
			brief = true;
		else if (opt == 'j')
			json = true;
		else if (opt == 'H')
			host = true;
		else if (opt == 'v')
			show_version("kevent-show");
		else
			usage(opt == 'h' ? 0 : 2);
	}
	if ((optind == argc) != host || (host && (brief || json)))
		usage(2);
	if (host)
		exit(show_host());
}

static pid_t pid_of(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (*end || pid <= 0 || pid > INT32_MAX)
		usage(2);
	return (pid_t)pid;
}

int main(int argc, char **argv)
{
	bool ok = true;
	int i, nr;

	read_options(argc, argv);
	for (i = optind; i < argc; i++)
		pid_of(argv[i]);
	need_kevent();
	read_limit();
	find_all_queues(&all);
	/* All are looked for first: whatever is printed may take long. */
	for (i = nr = optind; i < argc; i++) {
		if (is_there(pid_of(argv[i])))
			argv[nr++] = argv[i];
		else
			ok = false;
	}
	if (json)
		json_begin(NULL, '[');
	for (i = optind; i < nr; i++)
		ok &= show(pid_of(argv[i]));
	if (json) {
		json_end(']');
		json_end_line();
	}
	free(all.at);
	return !flush_output() || !ok;
}
