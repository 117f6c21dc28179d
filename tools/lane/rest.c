// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: bytes that were in memory when their connection went back to the socket
 *
 * Later reads take them first. They are in memory that children of fork() share: who
 * moves @at has the bytes.
 */
#include <string.h>
#include <sys/mman.h>

#include "lane.h"

#define LARGE	(512 << 10)	/* more than a socket has by default */

bool lane_has_rest(const struct conn *c)
{
	return c->rest && __atomic_load_n(&c->rest->at, __ATOMIC_ACQUIRE) < c->rest->size;
}

size_t lane_rest_size(const struct conn *c)
{
	return lane_has_rest(c) ? c->rest->size - c->rest->at : 0;
}

/* A peer that breaks the rules could send without end. One that keeps them follows before that. */
bool lane_rest_is_large(const struct conn *c, bool of_memory)
{
	return lane_rest_size(c) >= (of_memory ? 2 * LARGE : LARGE);
}

static size_t copy_out(const struct rest *r, size_t at, const struct iovec *iov, int nr)
{
	size_t done = 0, len;

	for (; nr && at + done < r->size; nr--, iov++) {
		len = r->size - at - done;
		if (len > iov->iov_len)
			len = iov->iov_len;
		memcpy(iov->iov_base, r->bytes + at + done, len);
		done += len;
	}
	return done;
}

ssize_t lane_rest_read(struct conn *c, const struct iovec *iov, int nr, bool peek)
{
	struct rest *r = c->rest;
	size_t at = __atomic_load_n(&r->at, __ATOMIC_ACQUIRE), done;

	do {
		done = copy_out(r, at, iov, nr);
	} while (!peek && !__atomic_compare_exchange_n(&r->at, &at, at + done, false,
						      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	if (!lane_has_rest(c))
		lane_settle_interests(c);
	return (ssize_t)done;
}

/* Before another process has it: while the connection goes back to the socket. */
int lane_rest_add(struct conn *c, const void *data, size_t len)
{
	size_t old = lane_rest_size(c);
	struct rest *r = mmap(NULL, sizeof(*r) + old + len, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (r == MAP_FAILED)
		return -ENOMEM;
	r->size = old + len;
	if (old)
		memcpy(r->bytes, c->rest->bytes + c->rest->at, old);
	memcpy(r->bytes + old, data, len);
	lane_rest_free(c);
	c->rest = r;
	return 0;
}

/* Before fork(), of a candidate: the child will have it, too. */
bool lane_rest_share(struct conn *c)
{
	if (!c->rest) {
		if (lane_rest_add(c, NULL, 0))
			return false;
		c->rest->holders = 1;
	}
	__atomic_add_fetch(&c->rest->holders, 1, __ATOMIC_RELAXED);
	return true;
}

bool lane_rest_is_shared(const struct conn *c)
{
	return c->rest && __atomic_load_n(&c->rest->holders, __ATOMIC_ACQUIRE) > 1;
}

void lane_rest_free(struct conn *c)
{
	if (c->rest && c->state == CANDIDATE)
		__atomic_sub_fetch(&c->rest->holders, 1, __ATOMIC_RELEASE);
	if (c->rest)
		munmap(c->rest, sizeof(*c->rest) + c->rest->size);
	c->rest = NULL;
}
