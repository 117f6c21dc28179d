// SPDX-License-Identifier: GPL-2.0
/*
 * Programs of libkevent/examples, and what each says, line by line: the same on all hosts
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "examples.h"
#include "helpers.h"

/* A program's output, or a connection to it */
struct line_reader {
	const char	*name;
	int		fd;
	size_t		len;
	char		text[4096];
};

struct program {
	const char		*args[4];
	int			out[2];
	pid_t			pid;
	struct line_reader	said;
};

static bool read_more(struct line_reader *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	ssize_t got;

	MUST(r->len < sizeof(r->text) - 1);
	if (poll(&p, 1, PATIENCE_MS * slowness) != 1)
		note("%s says no more", r->name);
	MUST(p.revents);
	got = read(r->fd, r->text + r->len, sizeof(r->text) - 1 - r->len);
	r->len += got > 0 ? got : 0;
	r->text[r->len] = 0;
	return got > 0;
}

/* Takes the next line without its end, or "" at the end of all. */
static const char *next_line(struct line_reader *r)
{
	static char line[4096];
	char *end;

	while (!(end = memchr(r->text, '\n', r->len)))
		if (!read_more(r))
			return "";
	*end++ = 0;
	strcpy(line, r->text);
	r->len -= end - r->text;
	memmove(r->text, end, r->len + 1);
	return line;
}

static void must_hear(struct line_reader *r, const char *line)
{
	const char *said = next_line(r);
	bool same = !strcmp(said, line);

	if (!same)
		note("%s: \"%s\", not \"%s\"", r->name, said, line);
	MUST(same);
}

static void must_end(struct line_reader *r)
{
	must_hear(r, "");
	MUST_EQ(r->len, 0);
	close(r->fd);
}

static int run_program(void *arg)
{
	struct program *p = arg;

	dup2(p->out[1], 1);
	close(p->out[0]);
	close(p->out[1]);
	execv(example(p->args[0]), (char **)p->args);
	return 127;
}

static void start_program(struct program *p)
{
	MUST_EQ(pipe(p->out), 0);
	p->pid = start_child(run_program, p);
	close(p->out[1]);
	p->said = (struct line_reader){ .name = p->args[0], .fd = p->out[0] };
}

static int port_of(struct program *p)
{
	const char *line = next_line(&p->said);
	int port = atoi(line + strcspn(line, "0123456789"));

	MUST(port > 0);
	return port;
}

static void must_end_program(struct program *p)
{
	must_end(&p->said);
	CHECK_EQ(join_child(p->pid, PATIENCE_MS), 0);
}

static struct line_reader connect_to(int port, const char *name)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct line_reader r = { .name = name };

	r.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST_EQ(connect(r.fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return r;
}

static void say(struct line_reader *r, const char *text)
{
	MUST_EQ(send(r->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* --- programs without input ------------------------------------------------- */

static const char *backend_line(void)
{
	return on_fallback() ? "backend: epoll" :
		on_module() ? "backend: module" : "backend: kevent";
}

void backend_says_the_host(void)
{
	struct program p = { .args = { "backend" } };

	start_program(&p);
	must_hear(&p.said, backend_line());
	must_end_program(&p);
}

void two_pipes(void)
{
	struct program p = { .args = { "two_pipes" } };

	start_program(&p);
	must_hear(&p.said, "pipe a: 1");
	must_hear(&p.said, "pipe b: 2");
	must_hear(&p.said, backend_line());
	must_end_program(&p);
}

/* Its client and its server end for themselves. */
void stream(void)
{
	struct program p = { .args = { "stream" } };

	start_program(&p);
	must_hear(&p.said, "100 answers, at last through memory");
	must_hear(&p.said, "the client ended with 0");
	must_end_program(&p);
}

/* --- one_loop --------------------------------------------------------------- */

static void ask_time(int port)
{
	struct line_reader c = connect_to(port, "client");
	long before = time(NULL), said = atol(next_line(&c));

	CHECK(said >= before && said <= time(NULL));
	must_end(&c);
}

/* Children and seconds come in any order. */
void one_loop(void)
{
	struct program p = { .args = { "one_loop" } };
	int children = 0, seconds = 0, number, port;
	const char *line;

	start_program(&p);
	port = port_of(&p);
	ask_time(port);
	ask_time(port);
	while (children < 2 || seconds < 2) {
		line = next_line(&p.said);
		number = atoi(line + strcspn(line, "0123456789"));
		MUST(number > seconds);
		if (!strncmp(line, "child ", 6))
			children++;
		else
			seconds = number;
	}
	MUST_EQ(kill(p.pid, SIGINT), 0);
	while (*(line = next_line(&p.said)))
		MUST(atoi(line) > seconds);
	must_end_program(&p);
}

/* --- echo, and those of the porting guide ----------------------------------- */

static void talk_to_echo(struct program *p)
{
	int port = port_of(p), i;
	struct line_reader a = connect_to(port, "a"), b = connect_to(port, "b");
	char line[16];

	for (i = 0; i < 20; i++) {
		snprintf(line, sizeof(line), "round %d", i);
		say(&a, line);
		say(&b, line);
		say(&a, "\n");
		say(&b, "\n");
		must_hear(&a, line);
		must_hear(&b, line);
	}
	shutdown(a.fd, SHUT_WR);
	must_end(&a);
	say(&b, "still there\n");
	must_hear(&b, "still there");
	close(b.fd);
}

/* Those of the porting guide are not in the kernel's selftests, one needs liburing. */
void echo_servers(void)
{
	static const char *const names[] = {
		 "echo", "echo_kevent", "echo_epoll", "echo_uring",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct program p = { .args = { names[i], i ? NULL : "0" } };

		if (i && access(example(names[i]), F_OK))
			continue;
		start_program(&p);
		talk_to_echo(&p);
		kill(p.pid, SIGKILL);
		must_end(&p.said);
		join_child(p.pid, PATIENCE_MS);
	}
}

/* --- chat ------------------------------------------------------------------- */

static char folder[] = "/tmp/chat-XXXXXX", config[64];

/* Rewrites the file in place, or puts another in its place. */
static void configure(const char *greeting, int idle, bool rename_it)
{
	char text[2000], signal[800], echo[800], other[sizeof(config) + 8];
	FILE *file;

	strcpy(signal, example("signal"));
	strcpy(echo, example("echo"));
	snprintf(other, sizeof(other), "%s.new", config);
	snprintf(text, sizeof(text), "greeting %s\nidle %d\ncommand signal %s\n"
		 "command wait %s 0\ncommand none /none\n", greeting, idle, signal, echo);
	file = fopen(rename_it ? other : config, "w");
	MUST(file);
	MUST(fputs(text, file) >= 0);
	MUST_EQ(fclose(file), 0);
	MUST(!rename_it || rename(other, config) == 0);
}

/* In turns: what comes next is said when all have heard what was before. */
static void all_hear(struct line_reader *const *all, const char *line)
{
	for (; *all; all++)
		must_hear(*all, line);
}

static void talk_in_room(struct program *p, int port)
{
	struct line_reader a, b, *const room[] = { &p->said, &a, &b, NULL };
	struct line_reader *const two[] = { &p->said, &a, NULL };
	char long_line[600];

	a = connect_to(port, "a");
	must_hear(&p->said, "guest1 joined");
	must_hear(&a, "guest1 joined");
	must_hear(&a, "Welcome");
	b = connect_to(port, "b");
	all_hear(room, "guest2 joined");
	must_hear(&b, "Welcome");
	say(&a, "hel");
	say(&b, "hello\r\n");
	all_hear(room, "guest2: hello ");
	say(&a, "lo\n");
	all_hear(room, "guest1: hello");
	memset(long_line, 'x', sizeof(long_line));
	long_line[511] = 0;
	say(&a, long_line);
	memmove(long_line + 8, long_line, 512);
	memcpy(long_line, "guest1: ", 8);
	all_hear(room, long_line);

	say(&b, "/run signal\n");
	all_hear(room, "guest2 runs signal");
	all_hear(room, "signal: values 123, then SIGTERM");
	all_hear(room, "signal exited with 0");
	say(&a, "/run none\n");
	all_hear(room, "guest1 runs none");
	all_hear(room, "none: /none: No such file or directory");
	all_hear(room, "none exited with 127");
	say(&a, "/run no\n/run none /none\n");
	must_hear(&a, "there is no command no");
	must_hear(&a, "there is no command none /none");

	configure("Hi", 3600, true);
	all_hear(room, "configured: idle 3600, Hi");
	MUST_EQ(kill(p->pid, SIGHUP), 0);
	all_hear(room, "configured: idle 3600, Hi");
	close(b.fd);
	all_hear(two, "guest2 left: bye");
	configure("Hi", 1, false);
	all_hear(two, "configured: idle 1, Hi");
	must_hear(&p->said, "guest1 left: idle");
	must_end(&a);
}

void chat(void)
{
	struct program p = { .args = { "chat", config, "0" } };
	struct line_reader c, *const room[] = { &p.said, &c, NULL };
	int port, i;

	MUST(mkdtemp(folder));
	snprintf(config, sizeof(config), "%s/config", folder);
	configure("Welcome", 3600, false);
	start_program(&p);
	must_hear(&p.said, "configured: idle 3600, Welcome");
	port = port_of(&p);
	talk_in_room(&p, port);
	/* The file that came by rename() is watched, too, and so is the next one. */
	configure("Again", 3600, true);
	must_hear(&p.said, "configured: idle 3600, Again");
	c = connect_to(port, "c");
	all_hear(room, "guest3 joined");
	must_hear(&c, "Again");
	say(&c, "/run wait\n");
	all_hear(room, "guest3 runs wait");
	for (i = 0; i < 2; i++)
		MUST(!strncmp(next_line(room[i]), "wait: port ", 11));
	MUST_EQ(kill(p.pid, SIGTERM), 0);
	all_hear(room, "the server ends");
	must_end(&c);
	must_end_program(&p);
	unlink(config);
	rmdir(folder);
}

/* --- pool ------------------------------------------------------------------- */

#define CONNECTIONS	12

static void ask_pool(struct line_reader *c, int port)
{
	int i;

	for (i = 0; i < CONNECTIONS; i++)
		c[i] = connect_to(port, "connection");
	for (i = 0; i < CONNECTIONS; i++)
		say(&c[i], "360\n999999999989\n0\n9");
	for (i = 0; i < CONNECTIONS; i++) {
		must_hear(&c[i], "360: 2 2 2 3 3 5");
		must_hear(&c[i], "999999999989: 999999999989");
		must_hear(&c[i], "no number from 1 to 1000000000000");
	}
	for (i = 0; i < CONNECTIONS; i++)
		say(&c[i], "1\n");
	for (i = 0; i < CONNECTIONS; i++)
		must_hear(&c[i], "91: 7 13");
}

/* Half of the connections end before the server does. */
static void run_pool(const char *threads)
{
	static struct line_reader c[CONNECTIONS];
	struct program p = { .args = { "pool", threads, "0" } };
	char line[64];
	int i;

	start_program(&p);
	ask_pool(c, port_of(&p));
	for (i = 0; i < CONNECTIONS / 2; i++) {
		shutdown(c[i].fd, SHUT_WR);
		must_end(&c[i]);
	}
	MUST_EQ(kill(p.pid, SIGTERM), 0);
	snprintf(line, sizeof(line), "%s threads have ended, %d connections", threads,
		 CONNECTIONS);
	must_hear(&p.said, line);
	must_end_program(&p);
	for (; i < CONNECTIONS; i++)
		must_end(&c[i]);
}

void pool(void)
{
	run_pool("1");
	run_pool("2");
	run_pool("4");
	run_pool("64");
}
