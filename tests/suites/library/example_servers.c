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
