// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A chat server: chat CONFIG [PORT]
 *
 * A line of a client goes to all. "/run NAME" runs a command; its output and its end go to all,
 * too. The file CONFIG has lines
 *
 *	greeting TEXT
 *	idle SECONDS			who says nothing for so long has to leave
 *	command NAME PROGRAM [ARG]...
 *
 * and is read again when it changes, by a write or by rename(), and after SIGHUP. SIGTERM and
 * SIGINT end the server.
 *
 * An event may arrive for a client or a command that is gone: its handle finds nothing then.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libkevent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING_SIZE	256
#define PEERS		64
#define ARGS		8
#define LINE		512
#define READS		1024		/* for what a command has left in its pipe */
#define SECOND		1000000000ull	/* in nanoseconds */

enum { LISTENER, CONFIG, SIGNAL };	/* user values that are no handles */

/* A client, or a command that runs */
struct peer {
	__u64 handle;		/* of all its watches */
	char name[LINE];
	int fd;			/* its socket, or the pipe from its process; -1: at its end */
	size_t len;		/* bytes of a line that has no end yet */
	char line[LINE];
	pid_t pid;		/* of a command, 0: a client */
	__u64 heard;		/* when a client has said something */
	const char *gone;	/* why a client has to leave */
};

static struct kevent_queue queue;
static struct kevent_handle slots[PEERS];
static struct kevent_handles handles;
static struct peer *peers[PEERS];
static const char *config_name;
static char config[4096];	/* each line behind a '\n' */
static int config_dir, config_fd = -1, listener;
static __u64 idle;		/* in nanoseconds */

static void die(const char *what, int err)
{
	fprintf(stderr, "chat: %s: %s\n", what, kevent_strerror(err));
	exit(1);
}

static int add(struct ukevent *ev)
{
	return kevent_ctl_one(queue.fd, KEVENT_CTL_ADD, ev);
}

static __u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return kevent_ns(&ts);
}

/* The rest of the line that begins with @key, or NULL */
static char *setting(const char *text, const char *key)
{
	static char value[LINE];
	char begin[2 * LINE + 3];
	const char *at;

	snprintf(begin, sizeof(begin), "\n%s ", key);
	at = strstr(text, begin);
	if (!at)
		return NULL;
	at += strlen(begin);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\n"), at);
	return value;
}

/* Say a line to a client, or to all and to the log. Sockets keep what is not read yet. */
__attribute__((format(printf, 2, 3)))
static void say(const struct peer *to, const char *format, ...)
{
	char line[3 * LINE];
	va_list args;
	ssize_t len;
	int i;

	va_start(args, format);
	vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	len = (ssize_t)strlen(strcat(line, "\n"));
	if (!to)
		fputs(line, stdout);
	for (i = 0; i < PEERS; i++) {
		struct peer *p = peers[i];

		if (p && !p->pid && !p->gone && (!to || p == to) &&
		    send(p->fd, line, (size_t)len, MSG_NOSIGNAL) != len)
			p->gone = "does not read";
	}
}

/* Returns NULL, and closes @fd, if there are too many. */
static struct peer *new_peer(int fd)
{
	struct peer *p = NULL;
	int i;

	for (i = 0; i < PEERS && peers[i]; i++)
		;
	if (i < PEERS)
		p = peers[i] = calloc(1, sizeof(*p));
	if (!p) {
		close(fd);
		return NULL;
	}
	p->fd = fd;
	p->heard = now();
	p->handle = kevent_handle_new(&handles, p);
	return p;
}

static void free_peer(struct peer *p)
{
	struct ukevent ev;
	int i;

	for (i = 0; peers[i] != p; i++)
		;
	peers[i] = NULL;
	/* Watches of the descriptor go with it, a timer does not. */
	kevent_set_timer(&ev, 0, 0, 0, 0, p->handle);
	kevent_ctl_one(queue.fd, KEVENT_CTL_REMOVE, &ev);
	kevent_handle_release(&handles, p->handle);
	if (p->fd >= 0)
		kevent_close(queue.fd, p->fd);
	free(p);
}

/* Reads once, and passes on whole lines; 0 at the end of the file, or when it has failed. */
static int read_lines(struct peer *p, void (*take)(struct peer *p, const char *line))
{
	ssize_t got = read(p->fd, p->line + p->len, LINE - 1 - p->len);
	char *line = p->line, *end;

	if (got <= 0)
		return got < 0 && errno == EAGAIN ? -1 : 0;
	for (; got; got--, p->len++)	/* Nothing but text for the terminals of others */
		if ((unsigned char)p->line[p->len] < ' ' && p->line[p->len] != '\n')
			p->line[p->len] = ' ';
	p->line[p->len] = 0;
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		take(p, line);
	}
	if (line == p->line && p->len == LINE - 1) {
		take(p, line);
		line += p->len;
	}
	p->len -= (size_t)(line - p->line);
	memmove(p->line, line, p->len + 1);
	return 1;
}

/* --- commands --------------------------------------------------------------- */

static pid_t start(char *words, int out)
{
	char *args[ARGS + 1] = { NULL };
	pid_t pid = fork();
	int i;

	if (pid)
		return pid;
	for (i = 0; i < ARGS && words; i++)
		args[i] = strsep(&words, " ");
	close(0);
	if (open("/dev/null", O_RDONLY) == 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2)
		execv(args[0], args);
	perror(args[0]);
	_exit(127);
}

static void kill_job(struct peer *job)
{
	kill(job->pid, SIGKILL);
	waitpid(job->pid, NULL, 0);
	free_peer(job);
}

static void run(const struct peer *c, const char *name, char *words)
{
	struct ukevent ev[2];
	struct peer *job;
	int fd[2];

	if (pipe2(fd, O_CLOEXEC)) {
		say(c, "%s: %s", name, strerror(errno));
		return;
	}
	job = new_peer(fd[0]);
	if (job) {
		fcntl(fd[0], F_SETFL, O_NONBLOCK);
		snprintf(job->name, LINE, "%s", name);
		job->pid = start(words, fd[1]);
	}
	close(fd[1]);
	if (!job || job->pid < 0) {
		say(c, "%s: there are too many", name);
		if (job)
			free_peer(job);
		return;
	}
	/* It may have ended by now: that is reported all the same. */
	kevent_set_pipe(&ev[0], fd[0], KEVENT_SOCKET_RECV, 0, job->handle);
	kevent_set_proc(&ev[1], job->pid, 0, job->handle);
	if (kevent_ctl(queue.fd, KEVENT_CTL_ADD, 2, ev)) {
		say(c, "%s: %s", name, kevent_strerror(kevent_error(ev)));
		kill_job(job);
		return;
	}
	say(NULL, "%s runs %s", c->name, name);
}

static void say_output(struct peer *job, const char *line)
{
	say(NULL, "%s: %s", job->name, line);
}

/* Its output may end before its process does, or be kept open by others. */
static void take_output(struct peer *job)
{
	if (read_lines(job, say_output))
		return;
	kevent_close(queue.fd, job->fd);
	job->fd = -1;
}

static void end_job(struct peer *job)
{
	int status = 0, i;

	for (i = 0; i < READS && job->fd >= 0 && read_lines(job, say_output) > 0; i++)
		;
	if (job->len)
		say_output(job, job->line);
	waitpid(job->pid, &status, 0);
	if (WIFEXITED(status))
		say(NULL, "%s exited with %d", job->name, WEXITSTATUS(status));
	else
		say(NULL, "%s was killed by signal %d", job->name, WTERMSIG(status));
	free_peer(job);
}

/* --- clients ---------------------------------------------------------------- */

/* Lines that come later do not move the timer: see expire(). */
static int set_timer(const struct peer *c)
{
	struct ukevent ev;

	kevent_set_timer(&ev, c->heard + idle, 0, KEVENT_TIMER_ABSTIME, 0, c->handle);
	return kevent_add_or_modify(queue.fd, &ev);
}

static void expire(struct peer *c)
{
	if (now() >= c->heard + idle)
		c->gone = "idle";
	else if (set_timer(c))
		c->gone = "no timer";
}

static void hear(struct peer *c, const char *line)
{
	char key[2 * LINE], *words;
	const char *name;

	c->heard = now();
	if (strncmp(line, "/run ", 5)) {
		say(NULL, "%s: %s", c->name, line);
		return;
	}
	name = line + 5;
	snprintf(key, sizeof(key), "command %s", name);
	words = setting(config, key);
	if (words && !strchr(name, ' '))
		run(c, name, words);
	else
		say(c, "there is no command %s", name);
}

static void join(int fd)
{
	struct peer *c = new_peer(fd);
	static unsigned int count;
	struct ukevent ev;

	if (!c)
		return;
	snprintf(c->name, LINE, "guest%u", ++count);
	say(NULL, "%s joined", c->name);
	say(c, "%s", setting(config, "greeting"));
	kevent_set_socket(&ev, fd, KEVENT_SOCKET_RECV, 0, c->handle);
	if (add(&ev) || set_timer(c))
		c->gone = "no watch";
}

/* The listener has edges: with no descriptor for a client, a level would stay. */
static void accept_all(void)
{
	struct ukevent ev;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		join(fd);
	if (errno == EAGAIN)
		return;
	kevent_set_timer(&ev, SECOND / 10, 0, 0, KEVENT_REQ_ONESHOT, LISTENER);
	kevent_add_or_modify(queue.fd, &ev);
}

/* The line that a peer left may make another peer leave: begin anew after each one. */
static void remove_gone(void)
{
	int i;

	for (i = 0; i < PEERS; i++)
		if (peers[i] && peers[i]->gone) {
			say(NULL, "%s left: %s", peers[i]->name, peers[i]->gone);
			free_peer(peers[i]);
			i = -1;
		}
}

/* --- configuration ---------------------------------------------------------- */

/* Watch the file that has the name now: a watch is one of a file, not of a name. */
static int watch_config(void)
{
	int fd = openat(config_dir, config_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;
	struct stat new, old;
	struct ukevent ev;

	if (fd < 0)
		return -errno;
	if (config_fd >= 0 && !fstat(fd, &new) && !fstat(config_fd, &old) &&
	    new.st_ino == old.st_ino && new.st_dev == old.st_dev) {
		close(fd);
		return 0;
	}
	kevent_set_inode(&ev, fd, KEVENT_INODE_MODIFY, 0, CONFIG);
	ret = add(&ev);
	if (!ret && config_fd >= 0)
		kevent_close(queue.fd, config_fd);
	if (ret)
		close(fd);
	else
		config_fd = fd;
	return ret;
}

/*
 * Watch, then read: what changes after that is an event. A file that lacks something, as one
 * that is not written to its end yet, changes nothing. Returns NULL, or what is wrong.
 */
static const char *read_config(int asked)
{
	char new[sizeof(config)] = "\n";
	int i, seconds = 0, ret = watch_config();
	ssize_t len = 0;

	if (ret)
		return kevent_strerror(ret);
	len = pread(config_fd, new + 1, sizeof(new) - 2, 0);
	if (setting(new, "idle"))
		seconds = atoi(setting(new, "idle"));
	if (len <= 0 || len == sizeof(new) - 2 || new[len] != '\n' || seconds <= 0 ||
	    !setting(new, "greeting"))
		return "lines with a greeting and with seconds of idle, in less than 4 KB, are needed";
	if (!asked && !strcmp(new, config))
		return NULL;
	strcpy(config, new);
	idle = (__u64)seconds * SECOND;
	say(NULL, "configured: idle %d, %s", seconds, setting(config, "greeting"));
	for (i = 0; i < PEERS; i++)
		if (peers[i] && !peers[i]->pid && set_timer(peers[i]))
			peers[i]->gone = "no timer";
	return NULL;
}

static int read_config_now(void)
{
	const char *wrong = read_config(1);

	if (wrong)
		fprintf(stderr, "chat: %s: %s\n", config_name, wrong);
	return !wrong;
}

static void open_config(char *path)
{
	char *slash = strrchr(path, '/');
	struct ukevent ev;
	int ret;

	config_name = slash ? slash + 1 : path;
	if (slash)
		*slash = 0;
	config_dir = open(!slash ? "." : *path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (config_dir < 0)
		die(path, -errno);
	kevent_set_inode(&ev, config_dir, KEVENT_INODE_CREATE | KEVENT_INODE_RENAME, 0, CONFIG);
	ret = add(&ev);
	if (ret)
		die(path, ret);
	if (!read_config_now())
		exit(1);
}

/* --- the server ------------------------------------------------------------- */

static void watch_signals(void)
{
	static const int signals[] = { SIGHUP, SIGTERM, SIGINT };
	struct ukevent ev[3];
	int i;

	for (i = 0; i < 3; i++)
		kevent_set_signal(&ev[i], signals[i], KEVENT_SIGNAL_CONSUME, 0, SIGNAL);
	if (kevent_ctl(queue.fd, KEVENT_CTL_ADD, 3, ev))
		die("ADD of signals", kevent_error(ev));
}

static void listen_on(in_port_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(sin);
	struct ukevent ev;
	int on = 1, ret;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&sin, len) || listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&sin, &len))
		die("listen", -errno);
	kevent_set_socket(&ev, listener, KEVENT_SOCKET_ACCEPT, KEVENT_REQ_ET, LISTENER);
	ret = add(&ev);
	if (ret)
		die("ADD of the listener", ret);
	printf("port %u\n", ntohs(sin.sin_port));
}

static void handle_peer(const struct ukevent *ev)
{
	struct peer *p = kevent_handle_object(&handles, ev->ptr);

	if (!p)
		return;
	if (ev->type == KEVENT_PIPE)
		take_output(p);
	else if (ev->type == KEVENT_PROC)
		end_job(p);
	else if (ev->type == KEVENT_TIMER)
		expire(p);
	else if (!read_lines(p, hear))
		p->gone = "bye";
}

/* Returns 0 when the server shall end. */
static int handle(const struct ukevent *ev)
{
	if (ev->ptr == LISTENER)
		accept_all();
	else if (ev->ptr == CONFIG)
		read_config(0);
	else if (ev->ptr != SIGNAL)
		handle_peer(ev);
	else if (kevent_signal_number(ev) == SIGHUP)
		read_config_now();
	else
		return 0;
	remove_gone();
	return 1;
}

static void end_all(void)
{
	int i;

	say(NULL, "the server ends");
	for (i = 0; i < PEERS; i++) {
		if (peers[i] && peers[i]->pid)
			kill_job(peers[i]);
		else if (peers[i])
			free_peer(peers[i]);
	}
	kevent_queue_close(&queue);
}

int main(int argc, char **argv)
{
	static KEVENT_RING_STORAGE(RING_SIZE) mem;
	char *end = NULL;
	unsigned long port = argc == 3 ? strtoul(argv[2], &end, 10) : 7777;
	struct ukevent ev;
	int ret;

	if (argc < 2 || argc > 3 || (end && (*end || end == argv[2])) || port > 65535) {
		fprintf(stderr, "usage: chat CONFIG [PORT]\n");
		return 2;
	}
	setlinebuf(stdout);
	kevent_handles_init(&handles, slots, PEERS);
	ret = kevent_queue_init(&queue, &mem.ring, RING_SIZE, 0);
	if (ret)
		die("kevent_queue_init", ret);
	watch_signals();
	open_config(argv[1]);
	listen_on((in_port_t)port);
	do
		ret = kevent_queue_get(&queue, &ev, 1, NULL);
	while (ret == -EINTR || (ret == 1 && handle(&ev)));
	if (ret < 0)
		die("kevent_queue_get", ret);
	end_all();
	return 0;
}
