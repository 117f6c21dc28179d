/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that serve asynchronous chains */
#ifndef SERVING_H
#define SERVING_H

#include "aio.h"

struct server {
	struct actor	actor;
	int		kq;
	uint32_t	limit;
};

long serve_on(void *arg);
void start_server(struct server *s, int kq, uint32_t limit);
void end_servers(struct queue *q, struct server *s, unsigned int nr);

#endif /* SERVING_H */
