// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Opens a file in the first folder that has it, as a program does that looks for its
 * configuration: one chain of calls for up to 128 folders, which ends when one succeeds
 *
 * usage: search NAME FOLDER...
 *
 * Prints the path. Exits with 1 if there is none, and with 2 after another error.
 */
#include <libkevent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDERS	128

enum { FOUND };	/* other places have the number of their folder */

static struct kevent_call calls[FOLDERS];
static char paths[FOLDERS][PATH_MAX];

/* The chain's last call is the one that succeeded. Returns the error of building it. */
static int make_chain(struct kevent_chain *c, char **folders, int nr, const char *name)
{
	unsigned int i;

	kevent_chain_init(c, calls, FOLDERS);
	for (i = 0; i < (unsigned int)nr; i++) {
		if (snprintf(paths[i], PATH_MAX, "%s/%s", folders[i], name) >= PATH_MAX)
			return -ENAMETOOLONG;
		if (i) {
			kevent_chain_jump(c, KEVENT_ON_ERROR, i);
			kevent_chain_label(c, i);
		}
		kevent_chain_call(c, SYS_openat, AT_FDCWD, paths[i],
				  O_RDONLY | O_CLOEXEC);
		kevent_chain_jump(c, KEVENT_ON_ZERO | KEVENT_ON_VALUE, FOUND);
	}
	kevent_chain_label(c, FOUND);
	return kevent_chain_end(c);
}

/* Says why files that are there can't be opened. */
static int complain(const struct kevent_chain *c)
{
	int bad = 0;
	__u32 i;

	for (i = 0; i < c->nr; i++) {
		if (calls[i].result == -ENOENT || calls[i].result == -ENOTDIR)
			continue;
		fprintf(stderr, "search: %s: %s\n", paths[i],
			strerror((int)-calls[i].result));
		bad = 1;
	}
	return bad;
}

int main(int argc, char **argv)
{
	int at, nr, ret, bad = 0;
	struct kevent_chain c;

	if (argc < 3) {
		fprintf(stderr, "usage: search NAME FOLDER...\n");
		return 2;
	}
	for (at = 2; at < argc; at += nr) {
		nr = argc - at < FOLDERS ? argc - at : FOLDERS;
		ret = make_chain(&c, &argv[at], nr, argv[1]);
		if (!ret)
			ret = kevent_chain_run(&c);
		if (ret < 0) {
			fprintf(stderr, "search: %s\n", kevent_strerror(ret));
			return 2;
		}
		if (calls[ret].result >= 0) {
			printf("%s\n", paths[ret]);
			close((int)calls[ret].result);
			return 0;
		}
		bad |= complain(&c);
	}
	return bad ? 2 : 1;
}
