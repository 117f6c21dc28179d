// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A server, a timer, children and a signal in one loop: a child gives each client the time
 */
#define _GNU_SOURCE 1
#include <libkevent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND	1000000000	/* in nanoseconds */

static void die(const char *what, int error)
{
	fprintf(stderr, "one_loop: %s: %s\n", what, kevent_strerror(error));
	exit(1);
}

static int listen_here(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	setlinebuf(stdout);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(server, (struct sockaddr *)&at, len) || listen(server, 64) ||
	    getsockname(server, (struct sockaddr *)&at, &len))
		die("listen", -errno);
	printf("port %d\n", ntohs(at.sin_port));
	return server;
}

/* Starts a child for the next client, if there is one. Returns its process id, or -1. */
static pid_t answer(int server)
{
	int client = accept(server, NULL, NULL);
	pid_t child;

	if (client < 0)
		return -1;
	child = fork();
	if (!child)
		_exit(dprintf(client, "%ld\n", (long)time(NULL)) < 0);
	close(client);
	return child;
}

int main(void)
{
	static KEVENT_RING_STORAGE(64) memory;
	int server = listen_here(), seconds = 0, ended = 0, ret;
	struct kevent_queue q;
	struct ukevent ev[3];
	pid_t child;

	ret = kevent_queue_init(&q, &memory.ring, 64, 0);
	if (ret)
		die("kevent_queue_init", ret);
	kevent_set_socket(&ev[0], server, KEVENT_SOCKET_ACCEPT, 0, 0);
	kevent_set_timer(&ev[1], SECOND, SECOND, 0, 0, 0);
	kevent_set_signal(&ev[2], SIGINT, KEVENT_SIGNAL_CONSUME, 0, 0);
	if (kevent_ctl(q.fd, KEVENT_CTL_ADD, 3, ev))
		die("kevent_ctl", kevent_error(ev));
	while (!ended) {
		ret = kevent_queue_get(&q, ev, 1, NULL);
		if (ret == -EINTR)
			continue;
		if (ret != 1)
			die("kevent_queue_get", ret);
		switch (ev->type) {
		case KEVENT_SOCKET:
			child = answer(server);
			kevent_set_proc(ev, child, 0, 0);
			if (child > 0 && kevent_ctl_one(q.fd, KEVENT_CTL_ADD, ev))
				die("kevent_ctl_one", kevent_error(ev));
			break;
		case KEVENT_PROC:
			printf("child %d ended\n", waitpid(kevent_pid(ev), NULL, 0));
			break;
		case KEVENT_TIMER:
			printf("%d s\n", seconds += (int)kevent_expirations(ev));
			break;
		case KEVENT_SIGNAL:
			ended = 1;
		}
	}
	kevent_queue_close(&q);
	return 0;
}
