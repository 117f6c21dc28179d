// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The sum of the sizes of a folder's files: two or more chains of calls, however many
 * files there are, instead of a call for each file
 */
#include <libkevent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES		128
#define TYPE_AND_SIZE	0x201		/* of the mask of statx() */
#define TYPE		0170000
#define REGULAR		0100000

enum { CLOSE = 1 };

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
	__u64		ino, size, rest[26];
};

static struct kevent_call calls[FILES];
static struct status found[FILES];
static char names[1 << 20];

/* Open the folder, read its names, close it. Returns how many bytes of names. */
static long read_names(const char *folder)
{
	struct kevent_call *dir, *got;
	struct kevent_chain c;
	int ret;

	kevent_chain_init(&c, calls, FILES);
	dir = kevent_chain_call(&c, SYS_openat, AT_FDCWD, folder,
				O_RDONLY | O_DIRECTORY);
	got = kevent_chain_call(&c, SYS_getdents64, 0, names, sizeof(names));
	kevent_chain_pass(&c, dir, 0);
	kevent_chain_jump(&c, KEVENT_ON_ANY, CLOSE);
	kevent_chain_label(&c, CLOSE);
	kevent_chain_call(&c, SYS_close, 0);
	kevent_chain_pass(&c, dir, 0);
	ret = kevent_chain_end(&c);
	if (ret)
		return ret;
	ret = kevent_chain_run(&c);
	if (ret < 0)
		return ret;
	return dir->result < 0 ? (long)dir->result : (long)got->result;
}

/* Ask for the sizes of a chain's files. One that has gone ends nothing. */
static long long sizes(const struct kevent_chain *c)
{
	long long sum = 0;
	__u32 i;

	if (!c->nr || kevent_chain_run(c) < 0)
		return 0;
	for (i = 0; i < c->nr; i++)
		if (!calls[i].result && (found[i].mode & TYPE) == REGULAR)
			sum += (long long)found[i].size;
	return sum;
}

int main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : ".";
	long long sum = 0;
	struct kevent_chain c;
	struct entry *e;
	long len, at;

	len = read_names(folder);
	if (len < 0 || chdir(folder)) {
		fprintf(stderr, "chain: %s: %s\n", folder,
			kevent_strerror(len < 0 ? (int)len : -errno));
		return 1;
	}
	if (len > (long)(sizeof(names) - sizeof(struct entry) - 256)) {
		fprintf(stderr, "chain: %s has too many files\n", folder);
		return 1;
	}
	kevent_chain_init(&c, calls, FILES);
	for (at = 0; at < len; at += e->len) {
		e = (struct entry *)&names[at];
		kevent_chain_call(&c, SYS_statx, AT_FDCWD, e->name,
				  AT_SYMLINK_NOFOLLOW, TYPE_AND_SIZE,
				  &found[c.nr]);
		kevent_chain_jump(&c, KEVENT_ON_ANY, c.nr);
		kevent_chain_label(&c, c.nr);
		if (c.nr < FILES)
			continue;
		kevent_chain_end(&c);
		sum += sizes(&c);
		kevent_chain_init(&c, calls, FILES);
	}
	kevent_chain_end(&c);
	sum += sizes(&c);
	printf("%lld bytes\n", sum);
	return 0;
}
