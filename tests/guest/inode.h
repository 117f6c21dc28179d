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

/* A tmpfs of this test alone, as working directory */
void enter_tmpfs(void);
void touch(const char *path);
int open_file(const char *path);	/* for reading and writing, made if need be */
int open_dir(const char *path);
void write_path(const char *path);

int add_inode(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user);

/*
 * The next event is this one. Changes are told before the system call that makes
 * them returns, so there is nothing to wait for.
 */
void check_event(struct queue *q, int fd, uint32_t bits, uint64_t user);
/* As above, and no further one; 0 bits: there is none at all. */
void check_only(struct queue *q, int fd, uint32_t bits, uint64_t user);

#endif /* INODE_H */
