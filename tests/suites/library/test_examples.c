// SPDX-License-Identifier: GPL-2.0
/* The example programs of libkevent, as the build makes them */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples.h"
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

static void run_and_end(const char *name)
{
	CHECK_EQ(join_child(start_child(run_example, (void *)name),
			    PATIENCE_MS), 0);
}

static void timer(void)
{
	run_and_end("timer");
}

static void posix_timer(void)
{
	run_and_end("posix_timer");
}

static void signals(void)
{
	run_and_end("signal");
}

static void inode(void)
{
	run_and_end("inode");
}

static void proc(void)
{
	run_and_end("proc");
}

static void futex(void)
{
	run_and_end("futex");
}

static void user(void)
{
	run_and_end("user");
}

static void kv_lane(void)
{
	run_and_end("kv_lane");
}

static void kv_epoll(void)
{
	run_and_end("kv_epoll");
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

/* Files of a folder, some of them longer than what one chain reads */
static const unsigned int lengths[] = { 0, 1, 32768, 65535, 65536, 65537, 200000 };

#define SUMS	(ARRAY_SIZE(lengths) + 60)

static unsigned int sum_length(unsigned int i)
{
	return i < ARRAY_SIZE(lengths) ? lengths[i] : i;
}

static const char *sum_path(const char *folder, unsigned int i)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%u", folder, i);
	return path;
}

static uint32_t crc(uint32_t crc, unsigned char byte)
{
	int bit;

	crc ^= (uint32_t)byte << 24;
	for (bit = 0; bit < 8; bit++)
		crc = crc << 1 ^ (crc >> 31 ? 0x04c11db7 : 0);
	return crc;
}

/* Makes a file; returns what the program is to say about it. */
static const char *make_sum(const char *folder, unsigned int i)
{
	unsigned int len = sum_length(i), at;
	static unsigned char text[200000];
	static char line[128];
	uint32_t sum = 0;
	int fd;

	for (at = 0; at < len; at++) {
		text[at] = (unsigned char)(at * (i + 1) + (at >> 8));
		sum = crc(sum, text[at]);
	}
	for (at = len; at; at >>= 8)
		sum = crc(sum, (unsigned char)at);
	fd = open(sum_path(folder, i), O_CREAT | O_TRUNC | O_WRONLY, 0600);
	MUST_EQ(write(fd, text, len), len);
	close(fd);
	snprintf(line, sizeof(line), "%u %u %s\n", ~sum, len,
		 sum_path(folder, i));
	return line;
}

struct sums {
	char	folder[32];
	char	*missing;
	int	fd[2];
};

static int run_aio(void *arg)
{
	struct sums *s = arg;

	dup2(s->fd[1], 1);
	execl(example("aio"), "aio", s->folder, s->missing, NULL);
	return 127;
}

/* Returns the status of the program; what it has said is in @said. */
static int say_sums(struct sums *s, char *said, size_t size)
{
	ssize_t got;
	int status;

	open_pipe(s->fd);
	status = join_child(start_child(run_aio, s), PATIENCE_MS);
	got = read(s->fd[0], said, size - 1);
	MUST(got > 0);
	said[got] = 0;
	close(s->fd[0]);
	close(s->fd[1]);
	return status;
}

static void aio(void)
{
	struct sums s = { .folder = "/tmp/aio-XXXXXX" };
	static char said[1 << 14];
	unsigned int i, lines = 0;
	const char *at;

	MUST(mkdtemp(s.folder));
	for (i = 0; i < SUMS; i++)
		make_sum(s.folder, i);
	CHECK_EQ(say_sums(&s, said, sizeof(said)), 0);
	for (at = said; (at = strchr(at, '\n')); at++)
		lines++;
	CHECK_EQ(lines, SUMS);
	for (i = 0; i < SUMS; i++)
		CHECK(strstr(said, make_sum(s.folder, i)));
	s.missing = "/none";
	CHECK_EQ(say_sums(&s, said, sizeof(said)), 1);
	for (i = 0; i < SUMS; i++)
		unlink(sum_path(s.folder, i));
	rmdir(s.folder);
}

/* The program that waits for everything, and its output so far */
struct everything {
	pid_t	pid;
	int	in, out;
	size_t	len;
	char	said[1 << 14];
};

static char watched[] = "/tmp/everything-XXXXXX";

static void start_everything(struct everything *e)
{
	int in[2], out[2], fd = mkstemp(watched);

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
		execl(example("everything"), "everything", watched, NULL);
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
	must_say(e, on_fallback() ? "connection 5 of 0\n" : "connection 5 of 5\n");
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
	fd = open(watched, O_WRONLY);
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
	unlink(watched);
}

/* --- the HTTP servers ----------------------------------------------------- */

struct server {
	const char	*name;
	const char	*page;		/* a file, or NULL */
	rlim_t		files;		/* that it may open; 0: any number */
	int		out[2];
	pid_t		pid;
	int		port;
	unsigned long	requests, calls;
};

#define HTTP_OK		"HTTP/1.1 200 OK\r\n"
#define REQUEST_10	"GET / HTTP/1.0\r\n\r\n"
#define REQUEST_11	"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define REQUEST_CLOSE	"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n"

static int run_server(void *arg)
{
	struct server *s = arg;
	struct rlimit files = { s->files, s->files };

	if (s->files)
		setrlimit(RLIMIT_NOFILE, &files);
	dup2(s->out[1], 1);
	execl(example(s->name), s->name, "0", s->page, NULL);
	return 127;
}

/* A line that the server prints; it prints nothing else then. */
static void read_line(struct server *s, char *line, size_t size)
{
	struct pollfd p = { .fd = s->out[0], .events = POLLIN };
	ssize_t len;

	MUST_EQ(poll(&p, 1, PATIENCE_MS * slowness), 1);
	len = read(s->out[0], line, size - 1);
	MUST(len > 0);
	line[len] = 0;
}

static void start_server(struct server *s)
{
	char line[100];

	MUST_EQ(pipe(s->out), 0);
	s->pid = start_child(run_server, s);
	read_line(s, line, sizeof(line));
	MUST_EQ(sscanf(line, "port %d", &s->port), 1);
}

static void stop_server(struct server *s)
{
	char line[100];

	MUST_EQ(kill(s->pid, SIGTERM), 0);
	read_line(s, line, sizeof(line));
	MUST_EQ(sscanf(line, "%lu requests, %lu system calls", &s->requests,
		       &s->calls), 2);
	CHECK_EQ(join_child(s->pid, PATIENCE_MS), 0);
	close(s->out[0]);
	close(s->out[1]);
}

/* A client whose reads end by themselves if nothing comes */
static int http_client(const struct server *s)
{
	int ms = PATIENCE_MS * slowness, fd = connect_port(s->port);
	struct timeval wait = { .tv_sec = ms / 1000 };

	MUST_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	MUST_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads to the end of the stream and closes it; returns how many bytes came. */
static size_t hear(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;

	do {
		MUST(len < size - 1);
		got = read(fd, text + len, size - 1 - len);
		MUST(got >= 0);
		len += got;
	} while (got);
	text[len] = 0;
	close(fd);
	return len;
}

static unsigned int count_answers(const char *text, const char *status)
{
	unsigned int nr = 0;

	for (; (text = strstr(text, status)); text++)
		nr++;
	return nr;
}

/* Requests on a connection get so many answers with the page, and then its end. */
static void check_answers(const struct server *s, const char *requests,
			  unsigned int nr)
{
	static char text[1 << 16];
	int fd = http_client(s);

	say(fd, requests);
	hear(fd, text, sizeof(text));
	CHECK_EQ(count_answers(text, HTTP_OK), nr);
	CHECK_EQ(count_answers(text, "<p>Hello\n"), nr);
}

static void check_refused(const struct server *s, const char *request,
			  const char *status)
{
	static char text[1 << 12];
	int fd = http_client(s);

	say(fd, request);
	hear(fd, text, sizeof(text));
	if (strncmp(text, "HTTP/1.1 ", 9) || strncmp(text + 9, status, 3))
		note("%.40s: %.40s", request, text);
	CHECK_EQ(atoi(text + 9), atoi(status));
	CHECK(strstr(text, "Connection: close\r\n") != NULL);
}

static void each_server(void (*fn)(struct server *s), struct server like)
{
	static const char *const names[] = {
		"http_epoll", "http_kevent", "http_calls",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct server s = like;

		s.name = names[i];
		note("%s", s.name);
		start_server(&s);
		fn(&s);
		stop_server(&s);
	}
}

/* One connection for each request, and one for several, sent at once or in turn */
static void serve_page(struct server *s)
{
	char text[1000];
	unsigned int i;
	int fd;

	for (i = 0; i < 100 / slowness; i++) {
		check_answers(s, REQUEST_10, 1);
		check_answers(s, REQUEST_CLOSE, 1);
	}
	check_answers(s, REQUEST_11 REQUEST_11 REQUEST_11 REQUEST_CLOSE, 4);
	check_answers(s, REQUEST_11 REQUEST_10 REQUEST_11, 2);
	fd = http_client(s);
	for (i = 0; i < 100 / slowness; i++) {
		say(fd, REQUEST_11);
		MUST(read(fd, text, sizeof(text)) > 0);
		CHECK(!strncmp(text, HTTP_OK, strlen(HTTP_OK)));
	}
	say(fd, "HEAD / HTTP/1.0\r\n\r\n");
	hear(fd, text, sizeof(text));
	CHECK_EQ(count_answers(text, HTTP_OK), 1);
	CHECK_EQ(count_answers(text, "<p>Hello\n"), 0);
}

static void http_servers_serve_a_page(void)
{
	each_server(serve_page, (struct server){});
}

static void serve_pieces(struct server *s)
{
	const char *request = REQUEST_11 REQUEST_CLOSE;
	int fd = http_client(s), on = 1;
	char text[1000];

	MUST_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	for (; *request; request++)
		MUST_EQ(send(fd, request, 1, MSG_NOSIGNAL), 1);
	hear(fd, text, sizeof(text));
	CHECK_EQ(count_answers(text, HTTP_OK), 2);
}

static void http_servers_take_pieces(void)
{
	each_server(serve_pieces, (struct server){});
}

static void serve_nonsense(struct server *s)
{
	static char much[100000];

	check_refused(s, "GET /\r\n\r\n", "400");
	check_refused(s, "GET / HTTP/2.0\r\n\r\n", "400");
	check_refused(s, "GET / HTTP/1.1\r\n\r\n", "400");
	check_refused(s, "GET / HTTP/1.0\r\nno header\r\n\r\n", "400");
	check_refused(s, "GET / HTTP/1.0\r\nA: b\nC: d\r\n\r\n", "400");
	check_refused(s, "PUT / HTTP/1.0\r\n\r\n", "501");
	check_refused(s, "GET / HTTP/1.0\r\nContent-Length: 9\r\n\r\n", "413");
	check_refused(s, "GET /other HTTP/1.0\r\n\r\n", "404");
	memset(much, 'x', sizeof(much) - 1);
	memcpy(much, "GET / HTTP/1.0\r\nA: ", 19);
	check_refused(s, much, "413");
	check_answers(s, REQUEST_10, 1);
}

static void http_servers_refuse_bad_requests(void)
{
	each_server(serve_nonsense, (struct server){});
}

/* The end of the client's stream comes with the request, or just after it. */
static void serve_to_the_end(struct server *s)
{
	char text[1000];
	unsigned int i;
	int fd;

	for (i = 0; i < 300 / slowness; i++) {
		fd = http_client(s);
		say(fd, REQUEST_11);
		MUST_EQ(shutdown(fd, SHUT_WR), 0);
		hear(fd, text, sizeof(text));
		CHECK_EQ(count_answers(text, HTTP_OK), 1);
	}
}

static void http_servers_see_the_end(void)
{
	each_server(serve_to_the_end, (struct server){});
}

#define LARGE	8000000		/* more than a socket takes */

static char large[3 * LARGE + 1000];

/* Answers that no buffer holds, to a client that is late to read them */
static void serve_large(struct server *s)
{
	int fd = http_client(s);
	size_t len;

	say(fd, "GET /large HTTP/1.0\r\n\r\n");
	len = hear(fd, large, sizeof(large));
	CHECK(len > LARGE && len < LARGE + 200);
	fd = http_client(s);
	say(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
	    "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
	    "GET /large HTTP/1.0\r\n\r\n");
	len = hear(fd, large, sizeof(large));
	CHECK(len > 3 * LARGE && len < 3 * (LARGE + 200));
	CHECK_EQ(count_answers(large, HTTP_OK), 3);
}

static void serve_large_page(void (*fn)(struct server *s))
{
	char folder[] = "/tmp/http-XXXXXX", page[64];
	int fd;

	MUST(mkdtemp(folder));
	snprintf(page, sizeof(page), "%s/large", folder);
	fd = open(page, O_CREAT | O_WRONLY, 0600);
	memset(large, 'x', LARGE);
	MUST_EQ(write(fd, large, LARGE), LARGE);
	close(fd);
	each_server(fn, (struct server){ .page = page });
	unlink(page);
	rmdir(folder);
}

static void http_servers_serve_large_pages(void)
{
	serve_large_page(serve_large);
}

#define CROWD	64

/* All send their request before the server runs, if it stops for them. */
static void serve_crowd(struct server *s, bool stop)
{
	int fd[CROWD], i;
	char text[1000];

	if (stop)
		MUST_EQ(kill(s->pid, SIGSTOP), 0);
	for (i = 0; i < CROWD; i++) {
		fd[i] = http_client(s);
		say(fd[i], REQUEST_10);
	}
	if (stop)
		MUST_EQ(kill(s->pid, SIGCONT), 0);
	for (i = 0; i < CROWD; i++) {
		hear(fd[i], text, sizeof(text));
		CHECK_EQ(count_answers(text, HTTP_OK), 1);
	}
}

static void serve_in_few_files(struct server *s)
{
	serve_crowd(s, false);
	serve_crowd(s, true);
}

static void http_servers_wait_for_descriptors(void)
{
	each_server(serve_in_few_files, (struct server){ .files = 20 });
}

/*
 * A client that a busy host stops between its connection and its request costs the server a
 * turn more: some time none is stopped.
 */
static bool makes_at_most(void (*serve)(struct server *s), unsigned long requests,
			  unsigned long calls)
{
	uint64_t start = now_ns();
	struct server s;

	do {
		s = (struct server){ .name = "http_calls" };
		start_server(&s);
		serve(&s);
		stop_server(&s);
		MUST_EQ(s.requests, requests);
	} while (s.calls > calls && patient(start, PATIENCE_MS));
	note("%lu requests, %lu system calls", s.requests, s.calls);
	return s.calls <= calls;
}

/* A crowd is served in one turn: a wait, a chain that accepts and receives, and one that answers */
static void serve_crowds(struct server *s)
{
	int i;

	for (i = 0; i < 10; i++)
		serve_crowd(s, true);
}

static void http_calls_makes_few_calls(void)
{
	CHECK(makes_at_most(serve_crowds, 10 * CROWD, 10 * CROWD / 8));
}

/* For clients that come one by one: a wait, a chain that receives, and one that answers */
static void serve_one_by_one(struct server *s)
{
	char text[1000];
	int fd, i;

	for (i = 0; i < 50; i++)
		check_answers(s, REQUEST_10, 1);
	fd = http_client(s);
	for (i = 0; i < 50; i++) {
		say(fd, REQUEST_11);
		MUST(read(fd, text, sizeof(text)) > 0);
	}
	close(fd);
}

static void http_calls_makes_three_calls_for_a_request(void)
{
	CHECK(makes_at_most(serve_one_by_one, 100, 3 * 100 + 10));
}

/* Requests that come while an answer waits for room are answered later, all of them. */
static void serve_impatient(struct server *s)
{
	static const char request[] = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
	int fd = http_client(s), i;
	size_t len;

	/* The server waits for input, and then for room. */
	say(fd, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
	MUST(read(fd, large, sizeof(large)) > 0);
	say(fd, request);
	MUST_EQ(recv(fd, large, 1, MSG_PEEK), 1);
	for (i = 0; i < 200; i++)
		say(fd, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
	say(fd, REQUEST_10);
	len = hear(fd, large, sizeof(large));
	CHECK(len > 2 * LARGE);
	CHECK_EQ(count_answers(large, "HTTP/1.1 404 "), 200);
	CHECK_EQ(count_answers(large, HTTP_OK), 2);
}

static void http_servers_keep_what_comes_early(void)
{
	serve_large_page(serve_impatient);
}

/* --- search and du -------------------------------------------------------- */

/* A program of the examples, its exit status, and what it prints */
struct program {
	const char	*args[8];
	int		out[2];
	int		status;
	char		said[200];
};

static int run_program(void *arg)
{
	struct program *p = arg;

	dup2(p->out[1], 1);
	if (p->status)
		close(2);
	execv(example(p->args[0]), (char **)p->args);
	return 127;
}

/* Prints nothing on standard error that a reader should see if it has to fail. */
static void check_program(struct program *p, int status, const char *said)
{
	ssize_t len;

	open_pipe(p->out);
	p->status = status;
	CHECK_EQ(join_child(start_child(run_program, p), PATIENCE_MS), status);
	close(p->out[1]);
	len = read(p->out[0], p->said, sizeof(p->said) - 1);
	p->said[len > 0 ? len : 0] = 0;
	close(p->out[0]);
	if (strcmp(p->said, said))
		note("%s, not %s", p->said, said);
	CHECK(!strcmp(p->said, said));
}

static void make_file(const char *folder, const char *name, size_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	MUST(fd >= 0);
	for (; size; size--)
		MUST_EQ(write(fd, "x", 1), 1);
	close(fd);
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void search(void)
{
	char a[] = "/tmp/search-XXXXXX", b[] = "/tmp/search-XXXXXX", said[64];
	static char name[300];
	struct program p;

	MUST(mkdtemp(a) && mkdtemp(b));
	make_file(b, "one", 1);
	snprintf(said, sizeof(said), "%s/one\n", b);
	p = (struct program){ .args = { "search", "one", a, "/tmp/none", b, NULL } };
	check_program(&p, 0, said);
	make_file(a, "one", 1);
	snprintf(said, sizeof(said), "%s/one\n", a);
	check_program(&p, 0, said);
	p = (struct program){ .args = { "search", "two", a, "/tmp/none", b, NULL } };
	check_program(&p, 1, "");
	/* A name that is too long is no file that is missing. */
	memset(name, 'x', sizeof(name) - 1);
	p = (struct program){ .args = { "search", name, a, NULL } };
	check_program(&p, 2, "");
	MUST_EQ(nftw(a, forget, 30, FTW_PHYS | FTW_DEPTH), 0);
	MUST_EQ(nftw(b, forget, 30, FTW_PHYS | FTW_DEPTH), 0);
}

static long long in_bytes, in_blocks;

static int add_size(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	/* The second name of a file */
	if (strcmp(path + strlen(path) - 4, "/two")) {
		in_bytes += st->st_size;
		in_blocks += st->st_blocks;
	}
	return 0;
}

/* What du -s says, if there is one */
static long long size_by_du(const char *folder)
{
	long long size = -1;
	char line[100];
	FILE *du;

	snprintf(line, sizeof(line), "du -s -k %s 2>/dev/null", folder);
	du = popen(line, "r");
	if (du && fscanf(du, "%lld", &size) != 1)
		size = -1;
	if (du)
		pclose(du);
	return size;
}

static void compare_sizes(const char *folder, long long by_du)
{
	struct program blocks = { .args = { "du", folder, NULL } };
	struct program bytes = { .args = { "du", "-b", folder, NULL } };
	char said[100];

	in_bytes = 0;
	in_blocks = 0;
	MUST_EQ(nftw(folder, add_size, 30, FTW_PHYS), 0);
	snprintf(said, sizeof(said), "%lld\t%s\n", in_bytes, folder);
	check_program(&bytes, 0, said);
	snprintf(said, sizeof(said), "%lld\t%s\n", (in_blocks + 1) / 2, folder);
	check_program(&blocks, 0, said);
	note("du -s: %lld", by_du);
	if (by_du >= 0)
		CHECK_EQ(atoll(blocks.said), by_du);
}

/* 1000 files, and folders in folders: more than there are descriptors for */
static void make_tree(const char *folder)
{
	char path[128];
	int i;

	for (i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "a-name-that-is-so-long-that-two-"
			 "readings-do-not-get-all-of-them-%d", i);
		make_file(folder, path, i % 7);
	}
	MUST_EQ(chdir(folder), 0);
	make_file(".", "one", 5000);
	MUST_EQ(link("one", "two"), 0);
	MUST_EQ(symlink("/", "link"), 0);
	for (i = 0; i < 200; i++) {
		MUST(mkdir("d", 0700) == 0 && mkdir("e", 0700) == 0);
		make_file("e", "file", 100);
		MUST_EQ(chdir("d"), 0);
	}
	MUST_EQ(chdir("/"), 0);
}

static void du(void)
{
	struct program none = { .args = { "du", "/tmp/none", NULL } };
	char folder[] = "/tmp/du-XXXXXX";
	struct rlimit files, few;
	long long by_du;

	MUST(mkdtemp(folder));
	compare_sizes(folder, size_by_du(folder));
	make_tree(folder);
	MUST_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
	few = files;
	few.rlim_cur = 100;
	/* The other du may need more. */
	by_du = size_by_du(folder);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	compare_sizes(folder, by_du);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	MUST_EQ(nftw(folder, forget, 30, FTW_PHYS | FTW_DEPTH), 0);
	check_program(&none, 1, "");
}

/* No server listens on a port that nobody has named. */
static void wrong_ports_are_refused(void)
{
	static const char *const servers[] = {
		"echo", "http_epoll", "http_kevent", "http_calls",
	};
	static const char *const ports[] = { "--help", "", "8080x", "65536" };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(servers); i++)
		for (j = 0; j < ARRAY_SIZE(ports); j++) {
			struct program p = { .args = { servers[i], ports[j], NULL } };

			check_program(&p, 2, "");
		}
	for (j = 0; j < ARRAY_SIZE(ports); j++) {
		struct program chat = { .args = { "chat", "/tmp/none", ports[j], NULL } };
		struct program pool = { .args = { "pool", "1", ports[j], NULL } };
		struct program none = { .args = { "pool", ports[j], NULL } };

		check_program(&chat, 2, "");
		check_program(&pool, 2, "");
		check_program(&none, 2, "");
	}
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
	TEST(aio),
	TEST(everything),
	TEST(backend_says_the_host),
	TEST(two_pipes),
	TEST(stream),
	TEST(one_loop),
	TEST(echo_servers),
	TEST(chat),
	TEST(pool),
	TEST(search),
	TEST(du),
	TEST(wrong_ports_are_refused),
	TEST(http_servers_serve_a_page),
	TEST(http_servers_take_pieces),
	TEST(http_servers_refuse_bad_requests),
	TEST(http_servers_see_the_end),
	TEST(http_servers_serve_large_pages),
	TEST(http_servers_wait_for_descriptors),
	TEST(http_servers_keep_what_comes_early),
	TEST(http_calls_makes_few_calls),
	TEST(http_calls_makes_three_calls_for_a_request),
	{}
};

const struct test_suite examples_suite = {
	.name = "examples",
	.cases = cases,
};
