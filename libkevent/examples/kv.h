/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * A store of keys and values, and what its clients ask for: the same for kv_lane.c
 * and kv_epoll.c, which differ in how requests and answers travel
 */
#ifndef KV_H
#define KV_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>

#define KV_CLIENTS	4
#define KV_ROUNDS	200
#define KV_KEYS		256
#define KV_VALUE	500

enum { KV_GET, KV_PUT };

/* A request, and an answer; of the value only the bytes that are used are sent. */
struct kv_message {
	unsigned int	op;		/* in answers: 0, or 1 when there is no key */
	unsigned int	len;
	char		key[16];
	char		value[KV_VALUE];
};

#define KV_HEAD		offsetof(struct kv_message, value)

static inline unsigned int kv_bytes(const struct kv_message *m)
{
	return (unsigned int)(KV_HEAD + m->len);
}

static inline struct kv_message *kv_find(const char *key, int make)
{
	static struct kv_message table[KV_KEYS];
	int i;

	for (i = 0; i < KV_KEYS && *table[i].key; i++)
		if (!strncmp(table[i].key, key, sizeof(table[i].key)))
			return &table[i];
	if (i == KV_KEYS || !make)
		return NULL;
	memcpy(table[i].key, key, sizeof(table[i].key));
	return &table[i];
}

/* Answers a request of @bytes in place; 0: it is none. */
static inline int kv_serve(struct kv_message *m, size_t bytes)
{
	struct kv_message *found;

	if (bytes < KV_HEAD || m->len > KV_VALUE || bytes != kv_bytes(m) ||
	    m->op > KV_PUT || !*m->key)
		return 0;
	found = kv_find(m->key, m->op == KV_PUT);
	if (found && m->op == KV_PUT) {
		memcpy(found->value, m->value, m->len);
		found->len = m->len;
	}
	m->op = !found;
	m->len = found ? found->len : 0;
	if (found)
		memcpy(m->value, found->value, found->len);
	return 1;
}

/* One request of a client, and whether the answer to the one before is right */
static inline int kv_ask(struct kv_message *m, int client, int round)
{
	unsigned int len = (unsigned int)(client * 100 + round) % KV_VALUE, i;

	memset(m->key, 0, sizeof(m->key));
	snprintf(m->key, sizeof(m->key), "%d.%d", client, round / 2 % 20);
	if (round % 2 == 0) {
		m->op = KV_PUT;
		m->len = len;
		memset(m->value, round, len);
		return 1;
	}
	/* The answer to PUT has the value, and GET will have it again. */
	for (i = 0; i < m->len; i++)
		if (m->value[i] != (char)(round - 1))
			return 0;
	m->op = KV_GET;
	m->len = 0;
	return 1;
}

/* An address without a file, for this process and its children */
static inline void kv_address(struct sockaddr_un *addr, const char *name, int pid)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "%s.%d", name,
		 pid);
}

static inline int kv_listen(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;

	kv_address(&addr, name, getpid());
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(fd, KV_CLIENTS))
		return -1;
	return fd;
}

static inline int kv_connect(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;

	kv_address(&addr, name, getppid());
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -1;
	return fd;
}

#endif /* KV_H */
