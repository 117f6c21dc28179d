/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Memory that goes to another process through a socket
 */
#ifndef LIBKEVENT_PARCEL_H
#define LIBKEVENT_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define KEVENT_PARCEL_FDS	3

/* Descriptors beside bytes; -1 for those that there are not */
struct kevent_parcel {
	int	fds[KEVENT_PARCEL_FDS];
	int	nr;	/* how many had come, also those that were closed as too many */
	bool	cut;	/* the kernel had to leave some out */
};

/* Is it a stream socket of AF_UNIX? */
bool kevent_parcel_socket(int sock);

/*
 * New memory that can become neither shorter nor longer: a descriptor, or a negative errno.
 */
int kevent_parcel_memory(const char *name, size_t bytes);

/*
 * Is it such memory of a peer, of @min to @max bytes? No access to it is SIGBUS, unless
 * memory is not overcommitted, and no access waits for another process. 0, -EPROTO, or
 * -EFBIG; it may become longer than @bytes.
 */
int kevent_parcel_check(int fd, size_t min, size_t max, size_t *bytes);

/* sendmsg() and recvmsg() that do not wait, and return a negative errno */
long kevent_parcel_send(int sock, const struct iovec *iov, size_t nr_iov,
			const int *fds, int nr);
long kevent_parcel_recv(int sock, const struct iovec *iov, size_t nr_iov,
			struct kevent_parcel *parcel);

/* Closes what has come. */
void kevent_parcel_drop(struct kevent_parcel *parcel);

#endif /* LIBKEVENT_PARCEL_H */
