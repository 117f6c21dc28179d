/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of KEVENT_INODE share; defined in test_inode.c
 */
#ifndef INODE_H
#define INODE_H

#include <stdint.h>

#include "helpers.h"

#define CREATE	KEVENT_INODE_CREATE
#define REMOVE	KEVENT_INODE_REMOVE
#define MODIFY	KEVENT_INODE_MODIFY
#define ATTRIB	KEVENT_INODE_ATTRIB
#define RENAME	KEVENT_INODE_RENAME
#define ALL	(CREATE | REMOVE | MODIFY | ATTRIB | RENAME)

void touch(const char *path);
int open_file(const char *path);	/* O_RDWR | O_CREAT */
int open_dir(const char *path);
void write_path(const char *path);

int add_inode(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user);

/*
 * Expects this event next. A change is reported before the system call that
 * makes it returns, so there is nothing to wait for.
 */
void check_event(struct queue *q, int fd, uint32_t bits, uint64_t user);
/* The same, and no event after it; with 0 bits no event at all */
void check_only(struct queue *q, int fd, uint32_t bits, uint64_t user);

#endif /* INODE_H */
