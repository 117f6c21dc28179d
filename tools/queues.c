// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of other processes, as procfs shows them
 *
 * A process may end, and a descriptor be closed, at any time: then there is less to see,
 * and that is no error.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <sys/stat.h>

#include "decode.h"
#include "queues.h"

#define LINK		"anon_inode:[kevent]"
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* Ends the program where there is nothing to see, with a line that says why. */
void need_kevent(void)
{
	if (access("/proc/self/fdinfo", X_OK)) {
		fprintf(stderr, "%s: no /proc; mount it: mount -t proc proc /proc\n",
			program);
		exit(1);
	}
	if (access("/proc/sys/kernel/kevent_disabled", F_OK) &&
	    access(KEVENT_DEVICE, F_OK)) {
		fprintf(stderr, "%s: this kernel has no kevent; load the module, or start one built with CONFIG_KEVENT=y, as \"make deb\" of kevent builds it\n",
			program);
		exit(1);
	}
}

void *resize(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	if (!p) {
		fprintf(stderr, "%s: out of memory\n", program);
		exit(1);
	}
	return p;
}

/* Writes what is left; false, with a line that says why, if something could not be written. */
bool flush_output(void)
{
	const int err = fflush(stdout) ? errno : 0;

	if (!err && !ferror(stdout))
		return true;
	fprintf(stderr, "%s: standard output: %s\n", program,
		err ? strerror(err) : "a part of it is lost");
	return false;
}

static void add_holder(struct holders *found, struct holder h)
{
	if (found->nr == found->room) {
		found->room = found->room ? 2 * found->room : 64;
		found->at = resize(found->at, found->room * sizeof(h));
	}
	found->at[found->nr++] = h;
}

/*
 * Is an entry of /proc/PID/fd a queue? *ino is its number. Returns -EACCES when it may not be
 * seen: the owner of a process can list its descriptors, also if it has more rights. Meanwhile
 * the number may be that of a file whose server never answers: it is not asked.
 */
static int is_queue(int dir, const char *name, __u64 *ino)
{
	char link[sizeof(LINK)];
	ssize_t len = readlinkat(dir, name, link, sizeof(link));
	struct stat st;

	if (len < 0 && (errno == EACCES || errno == EPERM))
		return -EACCES;
	if (len != sizeof(LINK) - 1 || memcmp(link, LINK, sizeof(LINK) - 1) ||
	    fstatat(dir, name, &st, AT_STATX_DONT_SYNC))
		return 0;
	*ino = st.st_ino;
	return 1;
}

/*
 * Adds the queues of a process. Returns 0, -EACCES when they may not be seen, or
 * -ENOENT when there is no such process.
 */
int find_queues(struct holders *found, pid_t pid)
{
	struct holder h = { .pid = pid };
	struct dirent *entry;
	char path[40];
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return errno == EACCES || errno == EPERM ? -EACCES : -ENOENT;
	while (ret >= 0 && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		h.fd = atoi(entry->d_name);
		ret = is_queue(dirfd(dir), entry->d_name, &h.ino);
		if (ret > 0)
			add_holder(found, h);
	}
	closedir(dir);
	return ret < 0 ? ret : 0;
}

static int compare_holders(const void *one, const void *two)
{
	const struct holder *a = one, *b = two;

	if (a->ino != b->ino)
		return a->ino < b->ino ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->fd < b->fd ? -1 : a->fd > b->fd;
}

/* Fills @found anew. */
void find_all_queues(struct holders *found)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t pid;

	found->nr = 0;
	found->hidden = 0;
	while (dir && (entry = readdir(dir))) {
		pid = atoi(entry->d_name);
		if (pid > 0 && find_queues(found, pid) == -EACCES)
			found->hidden++;
	}
	if (dir)
		closedir(dir);
	if (found->nr)
		qsort(found->at, found->nr, sizeof(*found->at),
		      compare_holders);
}

/* The type of a name of fdinfo, which has it in small letters */
static __u32 type_of(const char *name)
{
	char word[16];
	__u32 type;

	for (type = 0; type < 32; type++) {
		struct text t = { .at = word, .room = sizeof(word) };

		say_type(&t, type);
		if (!strcasecmp(word, name))
			return type;
	}
	return ~0u;
}

static void add_watch(struct queue *q, const char *line)
{
	unsigned long long id, user;
	struct watch w = { .type = 0 };
	char *c;

	if (sscanf(line, "kevent: type:%15s id:%llx event:%x flags:%x user:%llx ready:%x state:%15s",
		   w.name, &id, &w.event, &w.flags, &user, &w.ready,
		   w.state) < 5)
		return;
	w.id = id;
	w.user = user;
	w.type = type_of(w.name);
	for (c = w.name; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	if (!(q->nr & (q->nr - 1)))
		q->watch = resize(q->watch, (q->nr ? 2 * q->nr : 1) *
				  sizeof(w));
	q->watch[q->nr++] = w;
}

static void add_waiters(struct queue *q, char *list)
{
	char *word, *rest = list;
	pid_t tid;

	while ((word = strsep(&rest, " \n")) && q->nr_tids < MAX_WAITERS) {
		tid = atoi(word);
		if (tid > 0)
			q->tid[q->nr_tids++] = tid;
	}
}

static void read_line(struct queue *q, char *line)
{
	const struct {
		const char	*key;
		__u64		*to;
		int		base;
	} keys[] = {
		{ "flags", &q->flags, 8 }, { "ino", &q->ino, 10 },
		{ "kevent-watches", &q->nr_watches, 10 },
		{ "kevent-ready", &q->ready, 10 },
		{ "kevent-delivered", &q->delivered, 10 },
		{ "kevent-ring-size", &q->ring_size, 10 },
		{ "kevent-ring-kidx", &q->ring_kidx, 10 },
		{ "kevent-ring-uidx", &q->ring_uidx, 10 },
		{ "kevent-ring-flags", &q->ring_flags, 16 },
		{ "kevent-ring-spaces", &q->ring_spaces, 10 },
		{ "kevent-hits", &q->hits, 10 },
		{ "kevent-misses", &q->misses, 10 },
		{ "kevent-waiting", &q->waiting, 10 },
		{ "kevent-user-bytes", &q->user_bytes, 10 },
		{ "kevent-refuses", &q->refuses, 16 },
	};
	char *value = strchr(line, ':');
	size_t i;

	if (!value)
		return;
	*value++ = 0;
	value += *value == '\t';
	if (!strcmp(line, "kevent-waiters"))
		add_waiters(q, value);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(line, keys[i].key))
			*keys[i].to = strtoull(value, NULL, keys[i].base);
}

/* Returns false when the descriptor is not that queue any more. */
bool read_queue(struct queue *q, const struct holder *h, bool watches)
{
	char path[40], *line = NULL;
	size_t size = 0;
	FILE *file;

	*q = (struct queue){ .flags = 0 };
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", h->pid, h->fd);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (getline(&line, &size, file) > 0) {
		if (strncmp(line, "kevent: ", 8))
			read_line(q, line);
		else if (watches)
			add_watch(q, line);
		else
			break;
	}
	free(line);
	fclose(file);
	return q->ino == h->ino;
}

void free_queue(struct queue *q)
{
	free(q->watch);
	q->watch = NULL;
}

/* A program chooses its name, which must not reach the terminal as it is. */
void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* The name of a thread or process as it is; false when there is none. */
bool read_command(pid_t pid, char command[COMMAND_SIZE])
{
	char path[40];
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	len = file ? fread(command, 1, COMMAND_SIZE - 1, file) : 0;
	if (file)
		fclose(file);
	if (len && command[len - 1] == '\n')
		len--;
	command[len] = 0;
	return file && len;
}

/* The process of a thread; 0 when it has ended. */
pid_t process_of(pid_t tid)
{
	char path[40], *line = NULL;
	pid_t pid = 0;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!pid && getline(&line, &size, file) > 0)
		if (sscanf(line, "Tgid: %d", &pid) != 1)
			pid = 0;
	free(line);
	fclose(file);
	return pid;
}
