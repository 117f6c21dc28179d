// SPDX-License-Identifier: GPL-2.0
/*
 * usage: hiredis_checks SOCKET
 *
 * A server that says for ever that there is something to do, and does nothing or goes on writing.
 * Redis does not, so functions here stand before those of libkevent. SOCKET is made. Prints lines
 * as hiredis's own tests do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <hiredis.h>
#include <libkevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *name;
static struct kevent_stream *stream;
static int writes;

int kevent_stream_open(struct kevent_streams *set, int sock, __u32 flags, __u64 user,
		       struct kevent_stream **s)
{
	int (*next)(struct kevent_streams *, int, __u32, __u64, struct kevent_stream **) =
		dlsym(RTLD_NEXT, "kevent_stream_open");
	int ret = next(set, sock, flags, user, s);

	stream = *s;
	return ret;
}

struct kevent_stream *kevent_streams_next(struct kevent_streams *set)
{
	(void)set;
	return stream;
}

ssize_t kevent_stream_read(struct kevent_stream *s, void *buf, size_t size)
{
	(void)s;
	(void)size;
	*(char *)buf = '+';
	return writes ? 1 : -EAGAIN;
}

ssize_t kevent_stream_write(struct kevent_stream *s, const void *data, size_t len)
{
	(void)s;
	(void)data;
	(void)len;
	return -EAGAIN;
}

int kevent_stream_leave(struct kevent_stream *s)
{
	(void)s;
	return -EAGAIN;
}

static void listen_here(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16)) {
		perror(name);
		exit(1);
	}
}

/* Its waits have a timeout. */
static redisContext *connect_in_memory(void)
{
	const struct timeval timeout = { .tv_usec = 100000 };
	redisContext *c = redisConnectUnix(name);

	if (!c || c->err || redisEnableShm(c) || redisSetTimeout(c, timeout)) {
		fprintf(stderr, "%s\n", c ? c->errstr : "no memory");
		exit(1);
	}
	return c;
}

static int a_read_ends(void)
{
	return redisBufferRead(connect_in_memory()) == REDIS_ERR && errno == EAGAIN;
}

static int a_write_ends(void)
{
	redisContext *c = connect_in_memory();
	int done;

	redisAppendCommand(c, "PING");
	return redisBufferWrite(c, &done) == REDIS_ERR && errno == EAGAIN;
}

static int a_context_is_freed(void)
{
	return redisFreeKeepFd(connect_in_memory()) == -1;
}

static int a_context_of_a_server_that_writes_is_freed(void)
{
	writes = 1;
	return a_context_is_freed();
}

/* In a process that ends in any case */
static int passes(int (*test)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(!test());
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

#define TEST(name) { #name, name }

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} tests[] = {
		TEST(a_read_ends),
		TEST(a_write_ends),
		TEST(a_context_is_freed),
		TEST(a_context_of_a_server_that_writes_is_freed),
	};
	unsigned int i, failed = 0;
	int good;

	if (argc != 2)
		return 2;
	name = argv[1];
	listen_here();
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		good = passes(tests[i].run);
		printf("#%02u %s: %s\n", i + 1, tests[i].name, good ? "PASSED" : "FAILED");
		failed += !good;
	}
	return failed;
}
