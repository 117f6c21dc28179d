// SPDX-License-Identifier: GPL-2.0
/* Threads that serve asynchronous chains */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "serving.h"

long serve_on(void *arg)
{
	struct server *s = arg;

	return serve(s->kq, s->limit, -1);
}

/* Returns when it sleeps. */
void start_server(struct server *s, int kq, uint32_t limit)
{
	s->kq = kq;
	s->limit = limit;
	start_actor(&s->actor, serve_on, s);
	MUST(sleeps_in(s->actor.tid, __NR_kevent_wait));
}

/* A server leaves when the descriptor that it came through is closed. */
void end_servers(struct queue *q, struct server *s, unsigned int nr)
{
	int fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	unsigned int i;

	MUST(fd >= 0);
	close(q->fd);
	q->fd = fd;
	for (i = 0; i < nr; i++)
		join_actor(&s[i].actor, PATIENCE_MS);
}

#endif /* __LP64__ */
