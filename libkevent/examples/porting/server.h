/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The common part of the echo servers: everything but their event loop
 */
#ifndef SERVER_H
#define SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Each ends the program if it fails, and says why. */
static inline int check(int ret, const char *what)
{
	if (ret < 0) {
		perror(what);
		exit(1);
	}
	return ret;
}

/* A listening socket; prints its port. */
static inline int start_server(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd = check(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
		       "socket");

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(bind(fd, (struct sockaddr *)&sin, len), "bind");
	check(listen(fd, 128), "listen");
	check(getsockname(fd, (struct sockaddr *)&sin, &len), "getsockname");
	printf("%d\n", ntohs(sin.sin_port));
	fflush(stdout);
	return fd;
}

/* A new connection, or -1 when there is none */
static inline int next_connection(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_NONBLOCK);
}

/*
 * Sends back what has come, so far as there is room: this is an example. Returns 0
 * when the connection has ended.
 */
static inline int echo(int fd)
{
	char buf[4096];
	ssize_t len = read(fd, buf, sizeof(buf));

	if (len > 0)
		return send(fd, buf, (size_t)len, MSG_NOSIGNAL) == len;
	return len < 0 && errno == EAGAIN;
}

#endif /* SERVER_H */
