// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The size of a tree of files, as du -s prints it: two chains of calls for most folders
 *
 * usage: du [-b] [PATH]
 *
 * Prints the disk space in units of 1024 bytes, or with -b the sizes in bytes. A file
 * with several names counts once, and a symbolic link counts as itself. A file that can't
 * be read is named and left out, and the exit status is 1.
 *
 * The first chain opens a folder in its parent and reads its names, the second asks for
 * the status of each and closes a folder that has no other in it. A tree may be deeper
 * than there are descriptors: of folders that are far up only the identity is kept, and
 * ".." leads back.
 */
#define _GNU_SOURCE 1
#include <libkevent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMES		32768		/* bytes of them in a call */
#define FILES		250		/* in a chain */
#define OPEN_LEVELS	64
#define MASK		0x3ff		/* type to size, and blocks: of statx() */
#define MASK_BLOCKS	0x400
#define TYPE		0170000
#define FOLDER		0040000
#define DT_FOLDER	4
#define DT_NOT_KNOWN	0

/* As getdents64() stores them */
struct entry {
	__u64		ino;
	__s64		off;
	unsigned short	len;
	unsigned char	type;
	char		name[];
};

/* As statx() stores it; not all C libraries have that structure. */
struct status {
	__u32		mask, blksize;
	__u64		attributes;
	__u32		nlink, uid, gid;
	unsigned short	mode, spare;
	__u64		ino, size, blocks, attributes_mask;
	__u64		times[8];
	__u32		rdev_major, rdev_minor, dev_major, dev_minor;
	__u64		rest[14];
};

struct id {
	__u64	ino, dev;
};

/* A folder between the root and the current one, and what is left to do in it */
struct level {
	int		fd;		/* -1: not open now */
	struct id	id;		/* if it was closed */
	char		*names;		/* of folders in it, each with its 0 */
	size_t		len, room;
};

static struct kevent_call open_calls[8], *opened, *first, *second;
static struct kevent_call stat_calls[FILES + 1];
static struct kevent_chain open_chain, stat_chain;
static struct status found[FILES];
static _Alignas(struct entry) char names[2][NAMES];
static struct level *levels;
static size_t nr_levels, room_levels;
static struct id *links;		/* files with several names: a hash table */
static size_t nr_links, room_links;
static int in_bytes, failed;
static unsigned long long sum;

static void *must(void *memory)
{
	if (!memory) {
		perror("du");
		exit(2);
	}
	return memory;
}

static void complain(const char *name, long error)
{
	fprintf(stderr, "du: %s: %s\n", name, strerror((int)-error));
	failed = 1;
}

static void run(struct kevent_call *calls, __u32 nr)
{
	int ret = kevent_call(-1, calls, nr, 0, 0);

	if (ret >= 0 && !((__u32)ret & KEVENT_CALL_REFUSED))
		return;
	fprintf(stderr, "du: kevent_call: %d\n", ret);
	exit(2);
}

/* --- chains: built once --------------------------------------------------- */

enum { END };

/* The second reading finds the end, if the first has found all names. */
static void make_open_chain(void)
{
	kevent_chain_init(&open_chain, open_calls, 8);
	opened = kevent_chain_call(&open_chain, SYS_openat, 0, 0,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	first = kevent_chain_call(&open_chain, SYS_getdents64, 0, names[0], NAMES);
	kevent_chain_pass(&open_chain, opened, 0);
	kevent_chain_jump(&open_chain, KEVENT_ON_ZERO, END);
	second = kevent_chain_call(&open_chain, SYS_getdents64, 0, names[1], NAMES);
	kevent_chain_pass(&open_chain, opened, 0);
	kevent_chain_label(&open_chain, END);
}

/* Runs from its middle: the last entries are used, and close() if that is wanted. */
static void make_stat_chain(void)
{
	__u32 i;

	kevent_chain_init(&stat_chain, stat_calls, FILES + 1);
	for (i = 0; i < FILES; i++) {
		kevent_chain_call(&stat_chain, SYS_statx, 0, 0, AT_SYMLINK_NOFOLLOW,
				  MASK | MASK_BLOCKS, &found[i]);
		kevent_chain_jump(&stat_chain, KEVENT_ON_ANY, i);
		kevent_chain_label(&stat_chain, i);
	}
	kevent_chain_call(&stat_chain, SYS_close);
}

/* --- counting ------------------------------------------------------------- */

static struct id id_of(const struct status *s)
{
	struct id id = { s->ino, (__u64)s->dev_major << 32 | s->dev_minor };

	return id;
}

static int same(struct id a, struct id b)
{
	return a.ino == b.ino && a.dev == b.dev;
}

/* Its place, or where it belongs; inode 0 is no file. */
static struct id *find_link(struct id id)
{
	size_t i = (size_t)((id.ino ^ id.dev) * 0x9e3779b97f4a7c15u >> 20);

	for (i &= room_links - 1; links[i].ino && !same(links[i], id);)
		i = (i + 1) & (room_links - 1);
	return &links[i];
}

static void grow_links(void)
{
	struct id *old = links;
	size_t i, nr = room_links;

	room_links = nr ? 2 * nr : 1024;
	links = must(calloc(room_links, sizeof(*links)));
	for (i = 0; i < nr; i++)
		if (old[i].ino)
			*find_link(old[i]) = old[i];
	free(old);
}

static int counted_before(const struct status *s)
{
	struct id *place;

	if (s->nlink < 2 || (s->mode & TYPE) == FOLDER)
		return 0;
	if (2 * nr_links >= room_links)
		grow_links();
	place = find_link(id_of(s));
	if (place->ino)
		return 1;
	*place = id_of(s);
	nr_links++;
	return 0;
}

static void count(const struct status *s)
{
	if (!counted_before(s))
		sum += in_bytes ? s->size : s->blocks;
}

/* --- levels --------------------------------------------------------------- */

static struct level *top(void)
{
	return &levels[nr_levels - 1];
}

static void add_folder(struct level *l, const char *name)
{
	size_t len = strlen(name) + 1;

	if (l->len + len > l->room) {
		l->room = 2 * l->room + len;
		l->names = must(realloc(l->names, l->room));
	}
	memcpy(l->names + l->len, name, len);
	l->len += len;
}

/* Takes the last folder's name. */
static const char *take_folder(struct level *l)
{
	size_t at = l->len - 1;

	while (at && l->names[at - 1])
		at--;
	l->len = at;
	return l->names + at;
}

static int look(int fd, const char *name, int flags, struct status *s)
{
	return syscall(SYS_statx, fd, name, flags, MASK | MASK_BLOCKS, s) ? -errno : 0;
}

/* Keeps no more than its identity. */
static void shut(struct level *l)
{
	struct status s;

	if (l->fd < 0)
		return;
	if (look(l->fd, "", AT_EMPTY_PATH, &s))
		s.ino = 0;
	l->id = id_of(&s);
	close(l->fd);
	l->fd = -1;
}

static void push(int fd)
{
	struct level *l;

	if (nr_levels == room_levels) {
		room_levels = 2 * room_levels + 16;
		levels = must(realloc(levels, room_levels * sizeof(*levels)));
		memset(&levels[nr_levels], 0,
		       (room_levels - nr_levels) * sizeof(*levels));
	}
	l = &levels[nr_levels++];
	l->fd = fd;
	l->len = 0;
	if (nr_levels > OPEN_LEVELS)
		shut(l - OPEN_LEVELS);
}

/* Opens it again from a folder in it. */
static void reopen(struct level *l, int from)
{
	struct status s;

	l->fd = openat(from, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->fd >= 0 && !look(l->fd, "", AT_EMPTY_PATH, &s) &&
	    same(id_of(&s), l->id))
		return;
	complain("no way back to a folder", l->fd < 0 ? -errno : -ENOENT);
	l->len = 0;
}

static void pop(void)
{
	int fd = top()->fd;

	nr_levels--;
	if (nr_levels && top()->fd < 0)
		reopen(top(), fd);
	if (fd >= 0)
		close(fd);
}

/* --- a folder ------------------------------------------------------------- */

/*
 * Asks for the last @nr files of the chain, whose names are set, and closes the folder if
 * @leaf.
 */
static void ask(struct level *l, __u32 nr, int leaf)
{
	struct kevent_call *call = &stat_calls[FILES - nr];
	__u32 i;

	stat_calls[FILES].args[0] = (__u64)l->fd;
	if (nr || leaf)
		run(call, nr + (leaf ? 1 : 0));
	if (leaf)
		l->fd = -1;
	for (i = FILES - nr; i < FILES; i++, call++) {
		const char *name = (const char *)(uintptr_t)call->args[1];

		if (call->result) {
			complain(name, (long)call->result);
			continue;
		}
		count(&found[i]);
		if ((found[i].mode & TYPE) == FOLDER)
			add_folder(l, name);
	}
}

static int is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* The entries of a reading. @last: they end the folder, which is closed if it can be. */
static void take_names(struct level *l, char *from, long len, int last)
{
	struct kevent_call *call = &stat_calls[FILES];
	int leaf = last && !l->len;
	struct entry *e;
	__u32 nr = 0;
	long at;

	for (at = 0; at < len; at += e->len) {
		e = (struct entry *)(void *)&from[at];
		if (is_dot(e->name))
			continue;
		if (e->type == DT_FOLDER || e->type == DT_NOT_KNOWN)
			leaf = 0;
		if (nr == FILES) {
			ask(l, nr, 0);
			call = &stat_calls[FILES];
			nr = 0;
		}
		nr++;
		call--;
		call->args[0] = (__u64)l->fd;
		call->args[1] = KEVENT_ARG(e->name);
	}
	ask(l, nr, leaf && !l->len);
}

/* The rest of a folder with more names than two readings found */
static long take_rest(struct level *l)
{
	long got;

	do {
		got = syscall(SYS_getdents64, l->fd, names[0], NAMES);
		if (got > 0)
			take_names(l, names[0], got, 0);
	} while (got > 0);
	return got ? -errno : 0;
}

/* Opens a folder in the one at @parent, and counts what is in it. */
static void enter(int parent, const char *name)
{
	long got;

	opened->args[0] = (__u64)parent;
	opened->args[1] = KEVENT_ARG(name);
	second->result = 0;
	run(open_calls, open_chain.nr);
	if (opened->result < 0) {
		complain(name, (long)opened->result);
		return;
	}
	push((int)opened->result);
	got = (long)first->result;
	if (got > 0) {
		take_names(top(), names[0], got, !second->result);
		got = (long)second->result;
	}
	if (got > 0) {
		take_names(top(), names[1], got, 0);
		got = take_rest(top());
	}
	if (got < 0)
		complain(name, got);
}

int main(int argc, char **argv)
{
	const char *path;
	struct status s;
	int ret;

	in_bytes = argc > 1 && !strcmp(argv[1], "-b");
	path = argc > 1 + in_bytes ? argv[1 + in_bytes] : ".";
	make_open_chain();
	make_stat_chain();
	if (kevent_chain_end(&open_chain) || kevent_chain_end(&stat_chain))
		return 2;
	ret = look(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &s);
	if (ret) {
		complain(path, ret);
		return 1;
	}
	count(&s);
	if ((s.mode & TYPE) == FOLDER)
		enter(AT_FDCWD, path);
	while (nr_levels) {
		if (top()->len && top()->fd >= 0)
			enter(top()->fd, take_folder(top()));
		else
			pop();
	}
	printf("%llu\t%s\n", in_bytes ? sum : (sum + 1) / 2, path);
	return failed;
}
