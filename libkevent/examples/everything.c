// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * usage: everything FILE
 *
 * One thread, one ring: a TCP server, its connections, standard input,
 * two timers, a POSIX timer, SIGINT and SIGRTMIN, a child, changes of FILE, and
 * a mark set by the child. Prints a line for each event; SIGINT ends it. Without kevent in
 * the kernel the parent sets the mark.
 */
#define _GNU_SOURCE 1
#include <libkevent.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>



#define SIZE		64
#define MS		1000000		/* in nanoseconds */
#define CONNECTION	(1ull << 32)	/* with the descriptor */

enum { LISTENER, INPUT, ONCE, TICK, POSIX, INTERRUPT, VALUE, CHILD, FILE_, USER };

static struct kevent_queue queue;
static KEVENT_RING_STORAGE(SIZE) mem;

static int in_kernel(void)
{
	return !strcmp(kevent_backend(queue.fd), "kevent");
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void die_of(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, kevent_strerror(error));
	exit(1);
}

static void add(struct ukevent *ev)
{
	int ret = kevent_ctl_one(queue.fd, KEVENT_CTL_ADD, ev);

	if (ret)
		die_of("ADD", ret);
}

static int add_listener(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(addr);
	struct ukevent ev;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) ||
	    listen(fd, 16) || getsockname(fd, (struct sockaddr *)&addr, &len))
		die("listen");
	kevent_set_socket(&ev, fd, KEVENT_SOCKET_ACCEPT, 0, LISTENER);
	add(&ev);
	printf("port %d\n", ntohs(addr.sin_port));
	return fd;
}

static void add_posix_timer(void)
{
	const struct itimerspec posix = {
		.it_value.tv_nsec = 10 * MS,
		.it_interval.tv_nsec = 20 * MS,
	};
	int timer = kevent_timer_create(queue.fd, CLOCK_MONOTONIC, POSIX);

	if (timer < 0 || kevent_timer_settime(timer, 0, &posix, NULL))
		die("timer");
}

static void add_timers(void)
{
	struct ukevent ev;

	kevent_set_timer(&ev, 50 * MS, 0, 0, KEVENT_REQ_ONESHOT, ONCE);
	add(&ev);
	kevent_set_timer(&ev, 10 * MS, 20 * MS, KEVENT_TIMER_BOOTTIME, 0,
			 TICK);
	add(&ev);
	add_posix_timer();
}

static int set_mark(void)
{
	struct ukevent ev;

	kevent_set_user(&ev, USER, 1, 0, 0);
	return kevent_ctl_one(queue.fd, KEVENT_CTL_READY, &ev);
}

static void add_child(void)
{
	int shared = in_kernel();
	struct ukevent ev;
	pid_t pid;

	kevent_set_user(&ev, USER, 1, 0, USER);
	add(&ev);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		_exit(shared ? 8 - set_mark() : 7);
	if (!shared)
		set_mark();
	kevent_set_proc(&ev, pid, 0, CHILD);
	add(&ev);
}

static void serve(int fd, const struct ukevent *ev)
{
	char buf[256];
	ssize_t len = read(fd, buf, sizeof(buf));

	if (len > 0 && write(fd, buf, (size_t)len) == len)
		printf("connection %zd of %u\n", len, kevent_amount(ev));
	if (len == 0 && !kevent_close(queue.fd, fd))
		puts("connection closed");
}

static void take(int listener)
{
	struct ukevent ev;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

	if (fd < 0)
		return;
	kevent_set_socket(&ev, fd, KEVENT_SOCKET_RECV, 0, CONNECTION | (__u64)fd);
	add(&ev);
	printf("accepted\n");
}

/* Returns 0 when the program shall end. */
static int handle(const struct ukevent *ev, int listener)
{
	static unsigned long long ticks, expirations;
	int status = 0;
	char buf[256];
	ssize_t len;

	switch (ev->ptr) {
	case LISTENER:
		take(listener);
		break;
	case INPUT:
		len = read(0, buf, sizeof(buf));
		if (len > 0)
			printf("input %zd\n", len);
		else
			close(0);
		break;
	case ONCE:
		puts("once");
		break;
	case TICK:
		ticks += kevent_expirations(ev);
		break;
	case POSIX:
		expirations += 1 + kevent_overrun(ev);
		break;
	case INTERRUPT:
		printf("ticks %llu, expirations %llu\n", ticks, expirations);
		return 0;
	case VALUE:
		printf("value %d from %d\n", kevent_signal_value(ev),
		       kevent_signal_sender(ev));
		break;
	case CHILD:
		if (kevent_wait_status(ev, &status))
			printf("child status %d\n", WEXITSTATUS(status));
		break;
	case FILE_:
		printf("file %#x\n", kevent_conditions(ev));
		break;
	case USER:
		printf("mark\n");
		break;
	default:
		serve((int)(ev->ptr ^ CONNECTION), ev);
	}
	return 1;
}

int main(int argc, char **argv)
{
	int file, listener, on = 1, ret;
	struct ukevent ev;

	if (argc != 2) {
		fprintf(stderr, "usage: everything FILE\n");
		return 1;
	}
	file = open(argv[1], O_RDONLY);
	if (file < 0)
		die(argv[1]);
	ret = kevent_queue_init(&queue, &mem.ring, SIZE, 0);
	if (ret)
		die_of("kevent_queue_init", ret);
	setlinebuf(stdout);
	kevent_set_poll(&ev, 0, POLLIN, 0, INPUT);
	add(&ev);
	kevent_set_signal(&ev, SIGINT, KEVENT_SIGNAL_CONSUME, 0, INTERRUPT);
	add(&ev);
	kevent_set_signal(&ev, SIGRTMIN, KEVENT_SIGNAL_CONSUME, 0, VALUE);
	add(&ev);
	kevent_set_inode(&ev, file, KEVENT_INODE_MODIFY | KEVENT_INODE_ATTRIB,
			 0, FILE_);
	add(&ev);
	add_timers();
	add_child();
	listener = add_listener();
	while (on && kevent_queue_get(&queue, &ev, 1, NULL) == 1)
		on = handle(&ev, listener);
	return on;
}
