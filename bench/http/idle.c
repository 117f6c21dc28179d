// SPDX-License-Identifier: GPL-2.0
/*
 * usage: idle PORT NUMBER
 *
 * Opens NUMBER connections to PORT of 127.0.0.1, on which nothing is ever sent, prints
 * "ready" and keeps them until it is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void connect_one(int port)
{
	struct sockaddr_in addr = { AF_INET, htons(port),
				    { htonl(INADDR_LOOPBACK) }, "" };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		fprintf(stderr, "idle: %s\n", strerror(errno));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int i;

	if (argc != 3) {
		fprintf(stderr, "usage: idle PORT NUMBER\n");
		return 2;
	}
	for (i = 0; i < atoi(argv[2]); i++)
		connect_one(atoi(argv[1]));
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
