// SPDX-License-Identifier: GPL-2.0
/* The example programs of libkevent, as the build makes them */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "helpers.h"

/* They are in a folder next to this program. */
const char *example(const char *name)
{
	static char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 100);

	if (len < 0)
		return "";
	path[len] = 0;
	strcpy(strrchr(path, '/') + 1, EXAMPLES);
	return strcat(path, name);
}

bool have_example(const char *name)
{
	return access(example(name), F_OK) == 0;
}

static int run_example(void *name)
{
	execl(example(name), name, NULL);
	return 127;
}

static void run(const char *name)
{
	CHECK_EQ(join_child(start_child(run_example, (void *)name),
			    PATIENCE_MS), 0);
}

static void timer(void)
{
	run("timer");
}

static void posix_timer(void)
{
	run("posix_timer");
}

static void signals(void)
{
	run("signal");
}

static void inode(void)
{
	run("inode");
}

static void proc(void)
{
	run("proc");
}

static void futex(void)
{
	run("futex");
}

static void user(void)
{
	run("user");
}

static void kv_lane(void)
{
	run("kv_lane");
}

static void kv_epoll(void)
{
	run("kv_epoll");
}

/* 300 files take several chains; a folder is no file. */
static void make_sizes(const char *folder)
{
	char path[64];
	int i, fd;

	for (i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		fd = open(path, O_CREAT | O_WRONLY, 0600);
		MUST_EQ(ftruncate(fd, i), 0);
		close(fd);
	}
	snprintf(path, sizeof(path), "%s/d", folder);
	MUST_EQ(mkdir(path, 0700), 0);
}

static void remove_sizes(const char *folder)
{
	char path[64];
	int i;

	for (i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/d", folder);
	rmdir(path);
	rmdir(folder);
}

struct sizes {
	char	folder[32];
	int	fd[2];
};

static int run_chain(void *arg)
{
	struct sizes *s = arg;

	dup2(s->fd[1], 1);
	execl(example("chain"), "chain", s->folder, NULL);
	return 127;
}

static void chain(void)
{
	struct sizes s = { .folder = "/tmp/chain-XXXXXX" };
	char said[32] = "";

	MUST(mkdtemp(s.folder));
	make_sizes(s.folder);
	open_pipe(s.fd);
	CHECK_EQ(join_child(start_child(run_chain, &s), PATIENCE_MS), 0);
	remove_sizes(s.folder);
	MUST(read(s.fd[0], said, sizeof(said) - 1) > 0);
	CHECK(!strcmp(said, "44850 bytes\n"));
	close(s.fd[0]);
	close(s.fd[1]);
}

/* The program that waits for everything, and its output so far */
struct everything {
	pid_t	pid;
	int	in, out;
	size_t	len;
	char	said[1 << 14];
};

#define WATCHED	"/tmp/everything"

static void start_everything(struct everything *e)
{
	int in[2], out[2], fd = open(WATCHED, O_CREAT | O_WRONLY, 0600);

	MUST(fd >= 0);
	close(fd);
	*e = (struct everything){};
	MUST(pipe(in) == 0 && pipe(out) == 0);
	e->pid = fork();
	MUST(e->pid >= 0);
	if (!e->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl(example("everything"), "everything", WATCHED, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	e->in = in[1];
	e->out = out[0];
}

/* Reads until a line starts with @text; returns what follows, or NULL. */
static const char *wait_line(struct everything *e, const char *text)
{
	uint64_t start = now_ns();
	char *line;
	ssize_t got;

	do {
		struct pollfd p = { .fd = e->out, .events = POLLIN };

		for (line = e->said; line && *line;
		     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
			if (!strncmp(line, text, strlen(text)) &&
			    strchr(line, '\n'))
				return line + strlen(text);
		if (poll(&p, 1, 100) != 1)
			continue;
		got = read(e->out, e->said + e->len,
			   sizeof(e->said) - 1 - e->len);
		if (got <= 0)
			return NULL;
		e->len += got;
	} while (patient(start, PATIENCE_MS));
	return NULL;
}

static void must_say(struct everything *e, const char *text)
{
	bool said = wait_line(e, text);

	if (!said)
		note("no line \"%s\" in:\n%s", text, e->said);
	MUST(said);
}

static unsigned int count_lines(const struct everything *e, const char *text)
{
	const char *at = e->said;
	unsigned int nr = 0;

	for (; (at = strstr(at, text)); at++)
		nr += at == e->said || at[-1] == '\n';
	return nr;
}

static int connect_port(int port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd >= 0);
	MUST_EQ(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void talk(struct everything *e, int port)
{
	int fd = connect_port(port);
	char buf[16];

	must_say(e, "accepted\n");
	MUST_EQ(write(fd, "hello", 5), 5);
	must_say(e, "connection 5 of 5\n");
	MUST_EQ(read(fd, buf, sizeof(buf)), 5);
	CHECK(!memcmp(buf, "hello", 5));
	close(fd);
	must_say(e, "connection closed\n");
}

static void send_values(struct everything *e)
{
	char line[60];
	int i;

	for (i = 41; i < 44; i++)
		MUST_EQ(sigqueue(e->pid, SIGRTMIN,
				 (union sigval){ .sival_int = i }), 0);
	for (i = 41; i < 44; i++) {
		snprintf(line, sizeof(line), "value %d from %d\n", i,
			 getpid());
		must_say(e, line);
	}
}

static void stop_everything(struct everything *e)
{
	unsigned long ticks = 0, expirations = 0;
	const char *end;

	MUST_EQ(kill(e->pid, SIGINT), 0);
	end = wait_line(e, "ticks ");
	MUST(end != NULL);
	CHECK_EQ(sscanf(end, "%lu, expirations %lu", &ticks, &expirations), 2);
	/* By the time of the second timer, 50 ms, three have expired. */
	CHECK(ticks >= 2);
	CHECK(expirations >= 2);
	CHECK_EQ(join_child(e->pid, PATIENCE_MS), 0);
}

static void everything(void)
{
	static struct everything e;
	int fd;

	start_everything(&e);
	must_say(&e, "port ");
	must_say(&e, "mark\n");
	must_say(&e, "child status 7\n");
	must_say(&e, "once\n");
	talk(&e, atoi(wait_line(&e, "port ")));
	MUST_EQ(write(e.in, "abc", 3), 3);
	must_say(&e, "input 3\n");
	send_values(&e);
	fd = open(WATCHED, O_WRONLY);
	MUST_EQ(write(fd, "x", 1), 1);
	must_say(&e, "file 0x4\n");
	MUST_EQ(fchmod(fd, 0600), 0);
	must_say(&e, "file 0x8\n");
	stop_everything(&e);
	CHECK_EQ(count_lines(&e, "mark\n"), 1);
	CHECK_EQ(count_lines(&e, "child status"), 1);
	CHECK_EQ(count_lines(&e, "once\n"), 1);
	CHECK_EQ(count_lines(&e, "accepted\n"), 1);
	CHECK_EQ(count_lines(&e, "connection closed\n"), 1);
	CHECK_EQ(count_lines(&e, "input "), 1);
	CHECK_EQ(count_lines(&e, "value "), 3);
	CHECK_EQ(count_lines(&e, "file "), 2);
	unlink(WATCHED);
}

static const struct test_case cases[] = {
	TEST(timer),
	TEST(posix_timer),
	TEST(signals),
	TEST(inode),
	TEST(proc),
	TEST(futex),
	TEST(user),
	TEST(kv_lane),
	TEST(kv_epoll),
	TEST(chain),
	TEST(everything),
	{}
};

const struct test_suite examples_suite = {
	.name = "examples",
	.cases = cases,
};
