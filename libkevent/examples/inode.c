// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Learn that a directory has got a new entry and that a file was written to
 */
#include <fcntl.h>
#include <libkevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Waits for one event; its conditions, or 0 */
static __u32 wait_for(int queue, int fd)
{
	struct ukevent ev;

	if (kevent_get_events(queue, 1, 1, NULL, &ev, 0) != 1)
		return 0;
	return kevent_fd(&ev) == fd ? kevent_conditions(&ev) : 0;
}

int main(void)
{
	char path[] = "/tmp/kevent-XXXXXX";
	int queue = kevent_init(NULL, 0, 0), dir, file, ok;
	struct ukevent ev;

	if (queue < 0) {
		fprintf(stderr, "inode: %s\n", kevent_strerror(queue));
		return 1;
	}
	if (!mkdtemp(path))
		return 1;
	dir = open(path, O_RDONLY | O_DIRECTORY);
	kevent_set_inode(&ev, dir, KEVENT_INODE_CREATE, 0, 0);
	if (kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev))
		return 1;
	file = openat(dir, "file", O_CREAT | O_RDWR, 0600);
	ok = wait_for(queue, dir) == KEVENT_INODE_CREATE;

	kevent_set_inode(&ev, file, KEVENT_INODE_MODIFY | KEVENT_INODE_REMOVE,
			 0, 0);
	if (kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev))
		return 1;
	ok = write(file, "x", 1) == 1 && ok;
	ok = wait_for(queue, file) == KEVENT_INODE_MODIFY && ok;
	unlinkat(dir, "file", 0);
	ok = wait_for(queue, file) == KEVENT_INODE_REMOVE && ok;
	rmdir(path);
	puts(ok ? "created, modified, removed" : "events are missing");
	return !ok;
}
