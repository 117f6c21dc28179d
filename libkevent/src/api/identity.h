/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Which inode a descriptor is of
 */
#ifndef LIBKEVENT_IDENTITY_H
#define LIBKEVENT_IDENTITY_H

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <linux/types.h>

#include "raw_syscall.h"

/* As struct statx, which older headers lack */
struct kevent_identity {
	__u32	__unused0[4];
	__u32	nlink;
	__u32	__unused1[2];
	__u16	mode;
	__u16	__unused2;
	__u64	ino;
	__u64	__unused3[12];
	__u32	dev[2];
	__u64	__unused4[14];
};

static_assert(sizeof(struct kevent_identity) == 256, "as struct statx");

/* Where a filter does not know statx(): the file system may be asked. */
static inline bool kevent_identify_by_fstat(int fd, struct kevent_identity *id)
{
	int saved = errno;
	struct stat st;
	bool found = !fstat(fd, &st);

	errno = saved;
	if (!found)
		return false;
	id->nlink = (__u32)st.st_nlink;
	id->mode = (__u16)st.st_mode;
	id->ino = st.st_ino;
	id->dev[0] = major(st.st_dev);
	id->dev[1] = minor(st.st_dev);
	return true;
}

/*
 * Asks no file system, which may be one that does not answer: what the kernel knows. The
 * flags are AT_STATX_DONT_SYNC, and STATX_TYPE, STATX_NLINK and STATX_INO.
 */
static inline bool kevent_identify(int fd, struct kevent_identity *id)
{
	long ret = kevent_call6(SYS_statx, fd, (long)"", AT_EMPTY_PATH | 0x4000, 0x105,
				(long)id, 0);

	return !ret || (ret != -EBADF && kevent_identify_by_fstat(fd, id));
}

#endif /* LIBKEVENT_IDENTITY_H */
