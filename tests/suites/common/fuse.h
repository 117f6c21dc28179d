/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file system with one file, whose daemon is the test: a ->poll() that takes as long as
 * the test wants
 */
#ifndef FUSE_H
#define FUSE_H

#include <stdbool.h>
#include <stdint.h>

struct daemon {
	int	dev;
	char	dir[32];
	int	sock[2];	/* [0] is the victim's end */
	uint64_t poll_unique;	/* of the last POLL request that was read */
	uint64_t poll_kh;	/* the file's name in notifications, likewise */
	bool	flushes;	/* a close waits for the daemon */
	bool	no_poll;	/* files are always ready */
};

void mount_fuse(struct daemon *d);
/* Ends everything that still waits for an answer. */
void unmount_fuse(struct daemon *d);

/* Opens the file, while another thread or process serves. Returns -1 on failure. */
int open_fuse_file(const struct daemon *d);

/* Waits for a request, but does not read it. */
void await_request(struct daemon *d);

/*
 * Reads a request and returns its opcode, or 0 if who asked was killed. POLL is left to
 * answer_poll(), others are answered as the simplest daemon would.
 */
uint32_t serve_one(struct daemon *d);
/* Answers all requests up to the first @opcode, which is answered too. */
void serve_until(struct daemon *d, uint32_t opcode);

void answer_poll(struct daemon *d, uint32_t revents);
/* Wakes who waits in the wait queue of the file that was last polled. */
void wake_pollers(struct daemon *d);

#endif /* FUSE_H */
