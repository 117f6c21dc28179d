// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A client and its server, two processes whose bytes go through memory instead of the socket
 *
 * The first bytes of the client offer the memory, beside what they say. The server's queue also
 * has the exit of the client.
 */
#define _GNU_SOURCE 1
#include <ctype.h>
#include <libkevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS	100

enum { STREAM, CHILD };		/* user values */

/* One side: a process makes its own, after fork(). */
static struct kevent_queue queue;
static struct kevent_streams *set;
static struct kevent_stream *stream;

static void die(const char *what, int error)
{
	fprintf(stderr, "stream: %s: %s\n", what, kevent_strerror(error));
	exit(1);
}

static void open_stream(int sock, __u32 flags)
{
	static KEVENT_RING_STORAGE(16) memory;
	int ret = kevent_queue_init(&queue, &memory.ring, 16, 0);

	if (!ret)
		ret = kevent_streams_new(&set, &queue, KEVENT_LOOKS_LEARNED);
	if (!ret)
		ret = kevent_stream_open(set, sock, flags, STREAM, &stream);
	if (ret)
		die("the stream", ret);
}

static void close_stream(void)
{
	kevent_stream_close(stream);
	kevent_streams_free(set);
	kevent_queue_close(&queue);
}

/* Sleeps unless the stream has something to do. Returns 1 if an event was another's. */
static int wait_event(struct ukevent *ev)
{
	int ret = kevent_streams_get(set, ev, 1, NULL);

	if (ret < 0 && ret != -EINTR)
		die("kevent_streams_get", ret);
	if (ret == 1 && ev->ptr == STREAM)
		kevent_stream_event(stream, ev);
	return ret == 1 && ev->ptr != STREAM;
}

/* --- the client ----------------------------------------------------------- */

static ssize_t ask(const char *text, char *answer, size_t size)
{
	ssize_t len = kevent_stream_write(stream, text, strlen(text));
	struct ukevent ev;

	if (len < 0)
		die("kevent_stream_write", (int)len);
	while ((len = kevent_stream_read(stream, answer, size)) == -EAGAIN)
		while (!kevent_streams_next(set))
			wait_event(&ev);
	return len;
}

static int client(int sock)
{
	char text[16], answer[16];
	int i, memory;

	open_stream(sock, KEVENT_STREAM_OFFER);
	for (i = 0; i < ROUNDS; i++) {
		memset(answer, 0, sizeof(answer));
		snprintf(text, sizeof(text), "round %d", i);
		if (ask(text, answer, sizeof(answer) - 1) < 0 || *answer != 'R' ||
		    strcmp(text + 1, answer + 1))
			return 1;
	}
	memory = kevent_stream_memory(stream);
	printf("%d answers, at last through %s\n", i,
	       memory == (KEVENT_STREAM_SENDS | KEVENT_STREAM_RECEIVES) ? "memory" : "the socket");
	close_stream();
	return 0;
}

/* --- the server ----------------------------------------------------------- */

/* Answers have room: a client waits for each. */
static void answer_all(void)
{
	char text[256];
	ssize_t len;

	while ((len = kevent_stream_read(stream, text, sizeof(text))) > 0) {
		text[0] = (char)toupper(text[0]);
		kevent_stream_write(stream, text, (size_t)len);
	}
}

static int server(int sock, pid_t pid)
{
	struct ukevent ev;
	int status = 0, ret;

	open_stream(sock, 0);
	kevent_set_proc(&ev, pid, 0, CHILD);
	ret = kevent_ctl_one(queue.fd, KEVENT_CTL_ADD, &ev);
	if (ret)
		die("ADD of the child", ret);
	do {
		while (kevent_streams_next(set))
			answer_all();
	} while (!wait_event(&ev));
	waitpid(pid, &status, 0);
	close_stream();
	printf("the client ended with %d\n", WEXITSTATUS(status));
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

int main(void)
{
	int sock[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		die("socketpair", -errno);
	pid = fork();
	close(sock[!!pid]);
	if (pid < 0)
		die("fork", -errno);
	return pid ? server(sock[0], pid) : client(sock[1]);
}
