// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and signals with kevent-lane: cases that Python cannot make
 *
 * usage: lane_threads CASE server|client PATH; without words it prints the names of the
 * cases. What a side prints must not depend on how the bytes go.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define LIMIT	8	/* s, for a whole case */

static const char *path;
static int listener;

static void check(bool right, const char *what)
{
	if (right)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_un address(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	return addr;
}

static void listen_here(void)
{
	struct sockaddr_un addr = address();

	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	check(!bind(listener, (struct sockaddr *)&addr, sizeof(addr)), "bind");
	check(!listen(listener, 8), "listen");
}

static int take(void)
{
	int conn = accept(listener, NULL, NULL);

	check(conn >= 0, "accept");
	return conn;
}

static int reach(void)
{
	struct sockaddr_un addr = address();
	int conn = socket(AF_UNIX, SOCK_STREAM, 0);

	while (connect(conn, (struct sockaddr *)&addr, sizeof(addr)))
		check(errno == ENOENT || errno == ECONNREFUSED, "connect");
	return conn;
}

static void put(int conn, const char *word)
{
	check(write(conn, word, 4) == 4, "write");
}

/* The next word; a case ends when the other side has gone. */
static const char *get(int conn)
{
	static __thread char word[5];
	ssize_t nr;
	int done = 0;

	while (done < 4) {
		nr = read(conn, word + done, (size_t)(4 - done));
		if (nr < 0 && errno == EINTR)
			continue;
		check(nr > 0, "read");
		done += (int)nr;
	}
	return word;
}

static void ask(int conn)
{
	put(conn, "ping");
	check(!strcmp(get(conn), "pong"), "answer");
}

static void answer(int conn)
{
	check(!strcmp(get(conn), "ping"), "question");
	put(conn, "pong");
}

/* Both directions go through memory afterwards, if they can. */
static void warm(int conn, void (*step)(int conn))
{
	int i;

	for (i = 0; i < 4; i++)
		step(conn);
}

/* --- the cases ----------------------------------------------------------- */

static void ignore(int sig)
{
	(void)sig;
}

/* Of this object, sigaction() is what the program calls first. */
static void first_client(void)
{
	struct sigaction act = { .sa_handler = ignore };
	char byte;
	int conn;

	sigaction(SIGALRM, &act, NULL);
	conn = reach();
	warm(conn, ask);
	alarm(1);
	printf("%zd", read(conn, &byte, 1));
	printf(" %s\n", strerrorname_np(errno));
	put(conn, "done");
}

static void first_server(void)
{
	int conn = take();

	warm(conn, answer);
	get(conn);
}

static atomic_int handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

/* Children of a program that gets signals all the time: they are the parent's. */
static void fork_client(void)
{
	int conn = reach(), i, status, wrong = 0;
	pid_t parent = getpid(), sender, child;

	signal(SIGUSR1, count);
	warm(conn, ask);
	sender = fork();
	while (!sender)
		if (kill(parent, SIGUSR1) || usleep(100))
			_exit(0);
	for (i = 0; i < 1500; i++) {
		child = fork();
		if (!child) {
			handled = 0;
			close(conn);
			_exit(handled != 0);
		}
		while (waitpid(child, &status, 0) < 0)
			;
		wrong += status != 0;
	}
	kill(sender, SIGKILL);
	printf("%d\n", wrong);
	put(conn, "done");
}

static void fork_server(void)
{
	first_server();
}

#define CASE(name)	{ #name, name##_server, name##_client }

static const struct {
	const char	*name;
	void		(*server)(void);
	void		(*client)(void);
} cases[] = {
	CASE(first), CASE(fork),
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc != 4) {
			puts(cases[i].name);
			continue;
		}
		if (strcmp(cases[i].name, argv[1]))
			continue;
		path = argv[3];
		if (!strcmp(argv[2], "server")) {
			listen_here();
			cases[i].server();
		} else {
			cases[i].client();
		}
	}
	return 0;
}
