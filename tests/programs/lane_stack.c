// SPDX-License-Identifier: GPL-2.0
/*
 * A thread with a small stack reads and writes as many buffers as there may be.
 *
 * usage: kevent-lane run --path PATH lane_stack PATH
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR	1024
#define SIZE	100

static char bytes[NR * SIZE];
static struct iovec iov[NR];
static ssize_t got, sent;

/* What is written needs several steps: the ring has 64 KiB. */
static void *use(void *arg)
{
	int conn = *(int *)arg;

	got = readv(conn, iov, NR);
	sent = writev(conn, iov, NR);
	return NULL;
}

static int client(const struct sockaddr_un *addr)
{
	int conn = socket(AF_UNIX, SOCK_STREAM, 0), i;

	if (connect(conn, (const void *)addr, sizeof(*addr)) || write(conn, "a", 1) != 1 ||
	    read(conn, bytes, 1) != 1 || write(conn, "12345678", 8) != 8)
		return 1;
	for (i = 0; i < NR * SIZE; i++)
		if (read(conn, bytes, 1) != 1)
			return 1;
	return 0;
}

static int serve(int conn)
{
	pthread_attr_t attr;
	pthread_t thread;
	int i;

	for (i = 0; i < NR; i++)
		iov[i] = (struct iovec){ .iov_base = bytes + i * SIZE, .iov_len = SIZE };
	if (read(conn, bytes, 1) != 1 || write(conn, "b", 1) != 1)
		return 1;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	if (pthread_create(&thread, &attr, use, &conn) || pthread_join(thread, NULL))
		return 1;
	printf("%zd %zd\n", got, sent);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), status = 1;

	if (argc != 2)
		return 2;
	alarm(20);
	strncpy(addr.sun_path, argv[1], sizeof(addr.sun_path) - 1);
	if (bind(listener, (void *)&addr, sizeof(addr)) || listen(listener, 1))
		return 1;
	if (!fork())
		_exit(client(&addr));
	if (serve(accept(listener, NULL, NULL)))
		return 1;
	wait(&status);
	return status != 0;
}
