// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and signals with kevent-lane: cases that Python cannot make
 *
 * usage: lane_threads CASE server|client PATH; without words it prints the names of the
 * cases. What a side prints must not depend on how the bytes go.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define LIMIT	60	/* s, for a whole case */

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

static void begin(pthread_t *thread, void *(*run)(void *), int conn)
{
	check(!pthread_create(thread, NULL, run, (void *)(long)conn), "thread");
}

static atomic_int thread_id;

/* S: it sleeps, T: it is stopped */
static void await_state(pid_t thread, char state)
{
	char name[64], text[256] = "", want[] = { ')', ' ', state, ' ', 0 };
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/stat", thread);
	do {
		sched_yield();
		fd = open(name, O_RDONLY);
		if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
			continue;
		close(fd);
	} while (!strstr(text, want));
}

/* Until the thread that has said its number sleeps: it calls nothing else after that. */
static void await_sleep(void)
{
	while (!thread_id)
		sched_yield();
	await_state(thread_id, 'S');
	thread_id = 0;
}

static pid_t peer_of(int conn)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	check(!getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len), "SO_PEERCRED");
	return peer.pid;
}

/* A thread waits for edges, and another one reads first. */
static int edges;

static void *wait_for_edges(void *conn)
{
	struct epoll_event ev;
	int *pipe = conn;

	for (;;) {
		thread_id = gettid();
		if (epoll_wait(edges, &ev, 1, -1) == 1 && write(pipe[1], "e", 1) != 1)
			return NULL;
	}
}

static void edge_server(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int conn = take(), side[2], i;
	char byte, word[8];
	pthread_t thread;

	edges = epoll_create1(0);
	fcntl(conn, F_SETFL, O_NONBLOCK);
	epoll_ctl(edges, EPOLL_CTL_ADD, conn, &ev);
	check(!pipe(side), "pipe");
	pthread_create(&thread, NULL, wait_for_edges, side);
	for (i = 0; i < 5; i++) {
		do {
			check(read(side[0], &byte, 1) == 1, "edge");
			await_sleep();
		} while (read(conn, word, sizeof(word)) != 4);
		check(read(conn, word, sizeof(word)) < 0 && errno == EAGAIN, "end");
		put(conn, "pong");
	}
}

static void edge_client(void)
{
	int conn = reach(), i;

	for (i = 0; i < 5; i++)
		ask(conn);
	puts("all");
}

/* Threads that cannot have a descriptor of their own */
static void *answer_always(void *conn)
{
	char word[4];
	ssize_t nr;

	thread_id = gettid();
	while ((nr = read((int)(long)conn, word, 4)) == 4)
		put((int)(long)conn, "pong");
	return NULL;
}

static void limit_server(void)
{
	struct rlimit most;
	int one = take(), two = take();
	pthread_t threads[2];

	warm(one, answer);
	warm(two, answer);
	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = 256;
	setrlimit(RLIMIT_NOFILE, &most);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	begin(&threads[0], answer_always, one);
	begin(&threads[1], answer_always, two);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void limit_client(void)
{
	int one = reach(), two = reach(), i;

	warm(one, ask);
	warm(two, ask);
	for (i = 0; i < 300; i++)
		ask(i % 3 ? one : two);
	puts("all");
}

/* The thread that has slept first does something else while the other one sleeps on. */
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;

static void *answer_once(void *conn)
{
	thread_id = gettid();
	answer((int)(long)conn);
	pthread_mutex_lock(&busy);
	pthread_mutex_unlock(&busy);
	return NULL;
}

static void watch_server(void)
{
	int one = take(), two = take(), three;
	pthread_t threads[2];

	warm(one, answer);
	warm(two, answer);
	pthread_mutex_lock(&busy);
	begin(&threads[0], answer_once, one);
	await_sleep();
	begin(&threads[1], answer_once, two);
	await_sleep();
	put(one, "next");
	three = accept(listener, NULL, NULL);
	pthread_mutex_unlock(&busy);
	get(three);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void watch_client(void)
{
	int one = reach(), two = reach();

	warm(one, ask);
	warm(two, ask);
	get(one);
	ask(one);
	ask(two);
	puts("both");
	put(reach(), "done");
}

/* A thread is cancelled while it waits; its stack has another use then. */
static __attribute__((noinline)) void *use_stack(void *unused)
{
	volatile char bytes[200000];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = 'x';
	return unused;
}

static void cancel_server(void)
{
	int one = take(), two = take();
	pthread_t thread;
	char byte;

	warm(one, answer);
	warm(two, answer);
	begin(&thread, answer_always, one);
	await_sleep();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	begin(&thread, use_stack, 0);
	pthread_join(thread, NULL);
	put(two, "next");
	warm(two, answer);
	close(one);
	printf("end %zd\n", read(two, &byte, 1));
}

/* The connection that the thread has used ends. */
static void cancel_client(void)
{
	int one = reach(), two = reach();
	char byte;

	warm(one, ask);
	warm(two, ask);
	get(two);
	warm(two, ask);
	printf("end %zd\n", read(one, &byte, 1));
}

/* A handler leaves the call. */
static sigjmp_buf out;

static void leave(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static void jump_server(void)
{
	int one = take(), two = take(), i;
	volatile int left = 0;
	char byte;

	signal(SIGALRM, leave);
	warm(one, answer);
	warm(two, answer);
	for (i = 0; i < 3; i++) {
		if (sigsetjmp(out, 1)) {
			left++;
			continue;
		}
		ualarm(30000, 0);
		(void)!read(one, &byte, 1);
	}
	printf("left %d\n", left);
	warm(two, answer);
	close(one);
	get(two);
}

static void jump_client(void)
{
	int one = reach(), two = reach();
	char byte;

	warm(one, ask);
	warm(two, ask);
	warm(two, ask);
	printf("end %zd\n", read(one, &byte, 1));
	put(two, "done");
}

/* A handler waits for another connection, or ends the one that the call waits for. */
static int of_handler, of_call;

static void use_other(int sig)
{
	(void)sig;
	ask(of_handler);
	if (sig == SIGUSR1)
		close(of_call);
}

static void handler_client(void)
{
	char byte;

	of_call = reach();
	of_handler = reach();
	warm(of_call, ask);
	warm(of_handler, ask);
	signal(SIGALRM, use_other);
	ualarm(30000, 0);
	ask(of_call);
	signal(SIGUSR1, use_other);
	put(of_handler, "kill");
	printf("%zd\n", read(of_call, &byte, 1));
	printf("%s\n", strerrorname_np(errno));
	put(of_handler, "done");
}

static void handler_server(void)
{
	int one = take(), two = take();
	char byte;

	warm(one, answer);
	warm(two, answer);
	answer(two);
	answer(one);
	get(two);
	await_state(peer_of(one), 'S');
	kill(peer_of(one), SIGUSR1);
	answer(two);
	printf("end %zd\n", read(one, &byte, 1));
	get(two);
}

/* A file for a client that is stopped: the server has others. */
static void stop_server(void)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	int one = take(), two, file = open("/proc/self/exe", O_RDONLY), ep = epoll_create1(0);
	struct pollfd fd = { .fd = one, .events = POLLOUT };
	struct sigaction act = { .sa_handler = ignore };
	off_t at = 0;
	ssize_t nr;

	warm(one, answer);
	two = take();
	warm(two, answer);
	get(two);
	sigaction(SIGALRM, &act, NULL);
	ualarm(30000, 30000);
	nr = sendfile(one, file, &at, 1000);
	check(nr == 1000 || (nr < 0 && errno == EINTR), "sendfile that waits");
	ualarm(0, 0);
	fcntl(one, F_SETFL, O_NONBLOCK);
	epoll_ctl(ep, EPOLL_CTL_ADD, one, &ev);
	epoll_wait(ep, &ev, 1, 0);
	nr = sendfile(one, file, &at, 1000);
	check(nr == 1000 || (nr < 0 && errno == EAGAIN), "sendfile");
	check(poll(&fd, 1, 0) == (nr > 0), "poll");
	answer(two);
	while (at < 5000) {
		check(epoll_wait(ep, &ev, 1, -1) == 1, "epoll_wait");
		nr = sendfile(one, file, &at, (size_t)(5000 - at));
		check(nr > 0 || errno == EAGAIN, "sendfile");
	}
	put(one, "done");
}

static void stopped(void)
{
	int conn = reach(), nr = 0;
	char byte;

	warm(conn, ask);
	raise(SIGSTOP);
	while (read(conn, &byte, 1) == 1)
		nr++;
	printf("%d\n", nr);
}

static void stop_client(void)
{
	pid_t child = fork();
	int conn;

	if (!child) {
		stopped();
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, WUNTRACED);
	conn = reach();
	warm(conn, ask);
	put(conn, "stop");
	ask(conn);
	kill(child, SIGCONT);
	waitpid(child, NULL, 0);
}

/* A program that has its own files at fixed numbers: nothing else writes to them. */
static int take_numbers(int from)
{
	int file = memfd_create("numbers", 0), fd;

	check(file >= 0, "memfd_create");
	for (fd = from; fd < 64; fd++)
		check(fd == file || dup2(file, fd) == fd, "dup2");
	return file;
}

#define MANY	1000000

static void number_server(void)
{
	int one = take(), two, file;
	static char bytes[MANY];
	ssize_t got, nr = 0;

	warm(one, answer);
	file = take_numbers(one + 1);
	warm(one, answer);
	two = take();
	while (nr < MANY) {
		got = read(two, bytes, MANY);
		check(got > 0, "read");
		nr += got;
	}
	put(two, "done");
	get(one);
	printf("%ld\n", (long)lseek(file, 0, SEEK_END));
}

static void number_client(void)
{
	int one = reach(), two, file;
	static char bytes[MANY];

	warm(one, ask);
	file = take_numbers(one + 1);
	warm(one, ask);
	two = reach();
	check(write(two, bytes, MANY) == MANY, "write");
	get(two);
	put(one, "done");
	printf("%ld\n", (long)lseek(file, 0, SEEK_END));
}

/* A thread is cancelled in epoll_wait(), handlers leave it, and one waits for a connection. */
static int epoll_of(int conn)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0);

	epoll_ctl(ep, EPOLL_CTL_ADD, conn, &ev);
	return ep;
}

static void *wait_in_epoll(void *arg)
{
	struct epoll_event ev;

	thread_id = gettid();
	for (;;)
		epoll_wait((int)(long)arg, &ev, 1, -1);
	return arg;
}

static void epoll_server(void)
{
	int one = take(), two = take(), ep = epoll_of(one), i;
	volatile int left = 0;
	struct epoll_event ev;
	pthread_t thread;

	warm(one, answer);
	warm(two, answer);
	begin(&thread, wait_in_epoll, ep);
	await_sleep();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	begin(&thread, use_stack, 0);
	pthread_join(thread, NULL);
	signal(SIGALRM, leave);
	for (i = 0; i < 3; i++) {
		if (sigsetjmp(out, 1)) {
			left++;
			continue;
		}
		ualarm(30000, 0);
		epoll_wait(ep, &ev, 1, i == 2 ? LIMIT * 1000 : -1);
	}
	printf("left %d\n", left);
	of_handler = two;
	signal(SIGALRM, use_other);
	ualarm(30000, 0);
	printf("%d\n", epoll_wait(ep, &ev, 1, -1));
	printf("%s\n", strerrorname_np(errno));
	put(two, "go");
	printf("%d\n", epoll_wait(ep, &ev, 1, -1));
	get(one);
	get(two);
}

static void epoll_client(void)
{
	int one = reach(), two = reach();

	warm(one, ask);
	warm(two, ask);
	answer(two);
	get(two);
	put(one, "event");
	put(two, "done");
}

static void *wait_for_next(void *arg)
{
	thread_id = gettid();
	check(!strcmp(get((int)(long)arg), "next"), "next");
	return arg;
}

/* --- back to sockets: tests/programs/lane reads how many bytes went through memory --------- */

static void many_server(void)
{
	int one = take(), i;

	for (i = 0; i < 1000; i++)
		answer(one);
	get(one);
}

static void many_client(void)
{
	int one = reach(), i;

	for (i = 0; i < 1000; i++)
		ask(one);
	put(one, "done");
}

/* The listener is closed, and its number is another file's, while a thread waits for clients. */
static atomic_int accepted;

static void *take_one(void *unused)
{
	thread_id = gettid();
	accepted = take();
	return unused;
}

static void accept_server(void)
{
	int one = take(), i;
	pthread_t thread;

	begin(&thread, take_one, 0);
	await_sleep();
	check(dup2(STDOUT_FILENO, listener) == listener, "dup2");
	put(one, "next");
	pthread_join(thread, NULL);
	for (i = 0; i < 1000; i++)
		answer(accepted);
	get(accepted);
}

static void accept_client(void)
{
	get(reach());
	many_client();
}

/* A thread waits beside another one that does so all the time. */
static void crowd_server(void)
{
	int two = take();

	warm(two, answer);
	many_server();
	put(two, "next");
	get(two);
	answer(take());
}

/* A wait for the connection is there before the connection. */
static void ask_early(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int conn = socket(AF_UNIX, SOCK_STREAM, 0), ep = epoll_of(conn);
	struct sockaddr_un addr = address();

	check(!connect(conn, (struct sockaddr *)&addr, sizeof(addr)), "connect");
	put(conn, "ping");
	check(epoll_wait(ep, &ev, 1, -1) == 1, "epoll_wait");
	check(!strcmp(get(conn), "pong"), "answer");
}

static void crowd_client(void)
{
	struct timespec soon = { .tv_nsec = 20000 };
	struct pollfd fd = { .events = POLLIN };
	int two = reach(), i;
	pthread_t thread;

	warm(two, ask);
	fd.fd = reach();
	begin(&thread, wait_for_next, two);
	await_sleep();
	for (i = 0; i < 10; i++)
		ask(fd.fd);
	for (i = 0; i < 5000; i++)
		ppoll(&fd, 1, &soon, NULL);
	for (i = 10; i < 1000; i++)
		ask(fd.fd);
	put(fd.fd, "done");
	pthread_join(thread, NULL);
	put(two, "done");
	ask_early();
}

/* Room for one event, while a stream and several other files have some */
static void turns_server(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int conn = take(), ep = epoll_of(conn), pipes[2][2], i, left;
	char byte;

	warm(conn, answer);
	for (i = 0; i < 2; i++) {
		check(!pipe(pipes[i]), "pipe");
		ev.data.fd = pipes[i][0];
		epoll_ctl(ep, EPOLL_CTL_ADD, pipes[i][0], &ev);
	}
	for (i = 0; i < 10; i++) {
		check(write(pipes[0][1], "a", 1) == 1 && write(pipes[1][1], "b", 1) == 1, "write");
		put(conn, "next");
		for (left = 3; left; left--) {
			check(epoll_wait(ep, &ev, 1, -1) == 1, "epoll_wait");
			if (ev.data.fd)
				check(read(ev.data.fd, &byte, 1) == 1, "read");
			else
				get(conn);
		}
	}
	puts("all");
}

static void turns_client(void)
{
	int conn = reach(), i;

	warm(conn, ask);
	for (i = 0; i < 10; i++) {
		get(conn);
		put(conn, "here");
	}
}

/* A thread sleeps in one instance; another one looks at its own, which is always ready. */
static void *use_instance(void *arg)
{
	struct epoll_event ev;

	while (epoll_wait((int)(long)arg, &ev, 1, 0) == 1)
		;
	return NULL;
}

static void *pass_on(void *arg)
{
	struct epoll_event ev;
	int *to = arg;
	char byte;

	while (epoll_wait(edges, &ev, 1, -1) == 1 && read(ev.data.fd, &byte, 1) == 1)
		check(write(to[1], &byte, 1) == 1, "write");
	return NULL;
}

static void instances_server(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int one = take(), two = take(), in[2], out_of[2], i;
	pthread_t threads[2];
	char byte;

	warm(one, answer);
	warm(two, answer);
	edges = epoll_of(one);
	check(!pipe(in) && !pipe(out_of), "pipe");
	ev.data.fd = in[0];
	epoll_ctl(edges, EPOLL_CTL_ADD, in[0], &ev);
	put(two, "next");
	check(poll(&(struct pollfd){ .fd = two, .events = POLLIN }, 1, -1) == 1, "poll");
	begin(&threads[0], use_instance, epoll_of(two));
	pthread_create(&threads[1], NULL, pass_on, out_of);
	for (i = 0; i < 2000; i++)
		check(write(in[1], "x", 1) == 1 && read(out_of[0], &byte, 1) == 1, "pipe");
	puts("all");
	exit(0);
}

static void instances_client(void)
{
	int one = reach(), two = reach();
	char byte;

	warm(one, ask);
	warm(two, ask);
	get(two);
	put(two, "data");
	(void)!read(one, &byte, 1);
}

static void stay_on_one_cpu(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(sched_getcpu(), &first);
	sched_setaffinity(0, sizeof(first), &first);
}

/* A handler leaves epoll_wait() when that has the events already. */
static volatile sig_atomic_t waits;

static void leave_wait(int sig)
{
	(void)sig;
	handled++;
	if (waits)
		siglongjmp(out, 1);
}

static atomic_int rounds;

static void *event_and_signal(void *arg)
{
	int *pipe = arg, i;
	pid_t main_thread = getpid();

	for (i = 0; i < 300; i++) {
		while (rounds != i)
			sched_yield();
		thread_id = main_thread;
		await_sleep();
		check(write(pipe[1], "x", 1) == 1, "write");
		tgkill(main_thread, main_thread, SIGUSR1);
	}
	return NULL;
}

static void taken_server(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int conn = take(), ep = epoll_of(conn), side[2];
	volatile int got;
	pthread_t thread;
	char byte;

	warm(conn, answer);
	stay_on_one_cpu();
	check(!pipe(side), "pipe");
	epoll_ctl(ep, EPOLL_CTL_ADD, side[0], &ev);
	signal(SIGUSR1, leave_wait);
	pthread_create(&thread, NULL, event_and_signal, side);
	while (rounds < 300) {
		got = 0;
		if (!sigsetjmp(out, 1)) {
			waits = 1;
			got = epoll_wait(ep, &ev, 1, -1);
		}
		waits = 0;
		if (got != 1)
			continue;
		check(read(side[0], &byte, 1) == 1, "read");
		while (handled <= rounds)
			sched_yield();
		rounds++;
	}
	puts("all");
}

static void taken_client(void)
{
	int conn = reach();
	char byte;

	warm(conn, ask);
	(void)!read(conn, &byte, 1);
}

/* The same when another thread has woken this one: the next sleep has to be woken, too. */
#define WAKES	50

static void *wake_and_signal(void *conn)
{
	struct epoll_event ev = { .events = EPOLLOUT };
	pid_t main_thread = getpid();
	int i;

	for (i = 0; i < WAKES; i++) {
		while (rounds != 2 * i + 1)
			sched_yield();
		await_state(main_thread, 'S');
		close(socket(AF_UNIX, SOCK_STREAM, 0));
		tgkill(main_thread, main_thread, SIGUSR1);
		while (rounds != 2 * i + 2)
			sched_yield();
		await_state(main_thread, 'S');
		epoll_ctl(edges, EPOLL_CTL_MOD, (int)(long)conn, &ev);
	}
	return NULL;
}

static void woken_server(void)
{
	int one = take(), two = take();
	struct epoll_event ev;
	pthread_t waker, waiter;
	volatile int i;
	char byte;

	warm(one, answer);
	warm(two, answer);
	edges = epoll_of(one);
	signal(SIGUSR1, leave_wait);
	stay_on_one_cpu();
	begin(&waker, wake_and_signal, one);
	for (i = 0; i < WAKES; i++) {
		begin(&waiter, wait_for_next, two);
		await_sleep();
		rounds++;
		if (!sigsetjmp(out, 1)) {
			waits = 1;
			(void)!read(one, &byte, 1);
		}
		waits = 0;
		put(one, "more");
		pthread_join(waiter, NULL);
		rounds++;
		check(epoll_wait(edges, &ev, 1, -1) == 1, "epoll_wait");
		ev.events = EPOLLIN;
		epoll_ctl(edges, EPOLL_CTL_MOD, one, &ev);
	}
	puts("all");
}

static void woken_client(void)
{
	int one = reach(), two = reach(), i;

	warm(one, ask);
	warm(two, ask);
	for (i = 0; i < WAKES; i++) {
		get(one);
		put(two, "next");
	}
}

/* A thread whose handler has left a wait ends: libc must not know of that wait any more. */
static void *jump_and_end(void *conn)
{
	char byte;

	if (!sigsetjmp(out, 1)) {
		thread_id = gettid();
		(void)!read((int)(long)conn, &byte, 1);
	}
	use_stack(NULL);
	pthread_exit(NULL);
}

static void end_server(void)
{
	int conn = take();
	pthread_t thread;

	warm(conn, answer);
	signal(SIGUSR1, leave);
	begin(&thread, jump_and_end, conn);
	await_sleep();
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	puts("joined");
	put(conn, "next");
}

static void end_client(void)
{
	int conn = reach();

	warm(conn, ask);
	get(conn);
}

/* A signal that is blocked but while ppoll() runs */
static void mask_client(void)
{
	const struct timespec now = { .tv_sec = 0 };
	int conn = reach(), pipes[2], i;
	struct pollfd fds[] = { { .fd = conn, .events = POLLIN }, { .events = POLLIN } };
	sigset_t set, none;

	warm(conn, ask);
	check(!pipe(pipes), "pipe");
	fds[1].fd = pipes[0];
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR1, count);
	for (i = 1; i <= 2; i++) {
		raise(SIGUSR1);
		printf("%d ", ppoll(fds, i, &now, &none));
		printf("%s %d\n", strerrorname_np(errno), handled);
	}
	raise(SIGUSR1);
	printf("blocked %d\n", handled);
	put(conn, "done");
}

static void mask_server(void)
{
	first_server();
}

/* A process is stopped while it waits, and goes on. */
static void job_server(void)
{
	int conn = take();

	warm(conn, answer);
	await_state(peer_of(conn), 'S');
	kill(peer_of(conn), SIGSTOP);
	await_state(peer_of(conn), 'T');
	kill(peer_of(conn), SIGCONT);
	put(conn, "next");
	get(conn);
}

static void job_client(void)
{
	struct pollfd fd = { .fd = reach(), .events = POLLIN };

	warm(fd.fd, ask);
	printf("%d\n", poll(&fd, 1, -1));
	get(fd.fd);
	put(fd.fd, "done");
}

/*
 * An allocator that is locked from a handler before fork() to those behind it, or while a signal
 * interrupts it. It counts the calls that would hang, or break it.
 */
static volatile sig_atomic_t is_locked, interrupts, wrong_calls;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size)
{
	wrong_calls += is_locked;
	if (interrupts) {
		interrupts = false;
		is_locked = true;
		raise(SIGUSR1);
		is_locked = false;
	}
	return __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	wrong_calls += is_locked;
	return __libc_calloc(nr, size);
}

void *realloc(void *memory, size_t size)
{
	wrong_calls += is_locked;
	return __libc_realloc(memory, size);
}

void free(void *memory)
{
	wrong_calls += is_locked;
	__libc_free(memory);
}

static void be_interrupted(void (*handler)(int sig))
{
	static void *volatile memory;

	signal(SIGUSR1, handler);
	interrupts = true;
	memory = malloc(100);
	free(memory);
	printf("%d\n", wrong_calls);
}

static void lock(void)
{
	is_locked = true;
}

static void unlock(void)
{
	is_locked = false;
}

static void allocator_client(void)
{
	int conn = reach(), status;
	pid_t child;

	warm(conn, ask);
	pthread_atfork(lock, unlock, unlock);
	child = fork();
	if (!child)
		_exit(wrong_calls);
	waitpid(child, &status, 0);
	printf("%d %d\n", wrong_calls, status);
	put(conn, "done");
}

static void allocator_server(void)
{
	first_server();
}

/* Handlers end a server and a client, and the client uses another connection before. */
static void end_all(int sig)
{
	(void)sig;
	close(listener);
	close(of_handler);
}

static void malloc_server(void)
{
	int one = take();
	char byte;

	warm(one, answer);
	printf("end %zd\n", read(one, &byte, 1));
	of_handler = take();
	warm(of_handler, answer);
	be_interrupted(end_all);
	check(fcntl(listener, F_GETFD) < 0 && fcntl(of_handler, F_GETFD) < 0, "close");
}

static void use_new(int sig)
{
	struct pollfd many[100] = { { .fd = of_handler } };
	struct timeval none = { .tv_sec = 0 };
	fd_set set;
	int ep;

	(void)sig;
	close(of_handler);
	many[0].fd = reach();
	ep = epoll_of(many[0].fd);
	warm(many[0].fd, ask);
	FD_ZERO(&set);
	FD_SET(many[0].fd, &set);
	poll(many, 100, 0);
	select(many[0].fd + 1, &set, NULL, NULL, &none);
	of_handler = many[0].fd;
	close(ep);
}

static void malloc_client(void)
{
	char byte;

	of_handler = reach();
	warm(of_handler, ask);
	be_interrupted(use_new);
	printf("end %zd\n", read(of_handler, &byte, 1));
}

/* A write has sent a part when another thread leaves the memory, and the peer goes. */
static int gate[2];

static void wait_at_gate(int sig)
{
	char byte;

	(void)sig;
	(void)!read(gate[0], &byte, 1);
}

static int of_write;

static void *open_gate(void *conn)
{
	int bytes = 1, two = (int)(long)conn;

	check(!strcmp(get(two), "next"), "next");
	setsockopt(of_write, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
	put(two, "left");
	check(!strcmp(get(two), "next"), "next");
	check(write(gate[1], "x", 1) == 1, "gate");
	return NULL;
}

static void part_client(void)
{
	static char bytes[MANY];
	int two;
	pthread_t thread;

	of_write = reach();
	two = reach();
	warm(of_write, ask);
	warm(two, ask);
	check(!pipe(gate), "pipe");
	signal(SIGUSR1, wait_at_gate);
	signal(SIGPIPE, count);
	begin(&thread, open_gate, two);
	printf("%d", write(of_write, bytes, MANY) > 0);
	printf(" %d\n", handled);
	pthread_join(thread, NULL);
}

static void part_server(void)
{
	int one = take(), two = take();
	struct pollfd fd = { .fd = one, .events = POLLIN };

	warm(one, answer);
	warm(two, answer);
	check(poll(&fd, 1, -1) == 1, "poll");
	await_state(peer_of(one), 'S');
	kill(peer_of(one), SIGUSR1);
	put(two, "next");
	get(two);
	close(one);
	put(two, "next");
}

/* Control data that the kernel refuses */
static void control_client(void)
{
	union {
		struct cmsghdr	head;
		char		bytes[CMSG_SPACE(sizeof(int))];
	} c = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c,
			      .msg_controllen = sizeof(c) };
	const size_t lengths[] = { 0, CMSG_LEN(1 << 30) };
	int conn = reach(), i;

	ask(conn);
	for (i = 0; i < 2; i++) {
		c.head.cmsg_len = lengths[i];
		printf("%zd ", sendmsg(conn, &msg, 0));
		printf("%s\n", strerrorname_np(errno));
	}
	put(conn, "done");
}

static void control_server(void)
{
	int conn = take();

	answer(conn);
	get(conn);
}

/* An event is reported once; what comes next is not, before the program wants it again. */
static void oneshot(bool nested)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	int conn = take(), ep = epoll_create1(0);
	char byte;

	epoll_ctl(ep, EPOLL_CTL_ADD, conn, &ev);
	check(epoll_wait(ep, &ev, 1, -1) == 1, "epoll_wait");
	answer(conn);
	printf("end %zd\n", read(conn, &byte, 1));
	printf("off %d\n", epoll_wait(ep, &ev, 1, 0));
	check(epoll_ctl(ep, EPOLL_CTL_ADD, conn, &ev) && errno == EEXIST, "EPOLL_CTL_ADD");
	if (nested)
		check(!epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, ep, &ev), "nested");
	ev.events = 0;
	check(!epoll_ctl(ep, EPOLL_CTL_MOD, conn, &ev), "EPOLL_CTL_MOD");
	printf("again %d\n", epoll_wait(ep, &ev, 1, 0));
	printf("is %x\n", ev.events);
	check(!epoll_ctl(ep, EPOLL_CTL_DEL, conn, NULL), "EPOLL_CTL_DEL");
}

static void oneshot_server(void)
{
	oneshot(false);
	oneshot(true);
}

static void oneshot_client(void)
{
	int conn = reach();

	ask(conn);
	close(conn);
	ask(reach());
}

/* A child of fork() gets a signal before kevent-lane has forgotten what is its parent's. */
static volatile pid_t armed;
static volatile ssize_t written;
static volatile int write_error;

static void interrupt_child(void)
{
	if (!armed || armed == getpid())
		return;
	armed = 0;
	raise(SIGUSR1);
}

/* kevent-lane closes the descriptors of the parent by it. */
long syscall(long nr, ...)
{
	static long (*next)(long nr, ...);
	long arg[6];
	va_list ap;
	int i;

	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "syscall");
	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_close)
		interrupt_child();
	return next(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static void write_in_child(int sig)
{
	(void)sig;
	handled++;
	written = write(of_handler, "from", 4);
	write_error = errno;
}

static void child_client(void)
{
	pid_t child;

	of_handler = reach();
	warm(of_handler, ask);
	signal(SIGUSR1, write_in_child);
	armed = getpid();
	child = fork();
	if (!child) {
		interrupt_child();
		printf("%d %zd", handled, written);
		printf(" %s\n", written < 0 ? strerrorname_np(write_error) : "");
		exit(0);
	}
	waitpid(child, NULL, 0);
	put(of_handler, "done");
}

static void child_server(void)
{
	int conn = take();
	char byte;

	warm(conn, answer);
	while (read(conn, &byte, 1) == 1)
		;
}

/* All descriptors from a number on are closed, those of connections and those above them. */
static void have_file(int conn)
{
	check(conn < 0 || dup2(conn, 50) == 50, "dup2");
	check(dup2(STDOUT_FILENO, 100) == 100, "dup2");
}

static void say_open(const char *what)
{
	printf("%s: %d %d\n", what, fcntl(50, F_GETFD), fcntl(100, F_GETFD));
}

/* The thread has a table of descriptors of its own after this. */
static void *close_own(void *from)
{
	check(!close_range((unsigned int)(long)from, ~0U, CLOSE_RANGE_UNSHARE), "close_range");
	return from;
}

static void close_in_thread(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_t thread;

	begin(&thread, close_own, fd);
	pthread_join(thread, NULL);
	printf("here %d\n", fcntl(fd, F_GETFD));
}

static void lack_close_range(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	      !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

static void range_client(void)
{
	struct rlimit few = { .rlim_cur = 256, .rlim_max = 256 };

	have_file(-1);
	closefrom(3);
	say_open("no connection, closefrom");
	have_file(-1);
	printf("%d ", close_range(3, ~0U, 0));
	say_open("no connection, close_range");
	have_file(socket(AF_UNIX, SOCK_STREAM, 0));
	closefrom(3);
	say_open("not connected, closefrom");
	have_file(socket(AF_UNIX, SOCK_STREAM, 0));
	printf("%d ", close_range(3, ~0U, 0));
	say_open("not connected, close_range");
	have_file(reach());
	warm(50, ask);
	printf("%d ", close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
	say_open("on exec");
	printf("%d %d ", close_range(3, 49, 0), close_range(51, 99, 0));
	say_open("beside it");
	ask(50);
	printf("%d ", close_range(50, 50, 0));
	say_open("the connection");
	printf("%d ", close_range(3, 2, 0));
	printf("%d ", close_range(100, 100, -1));
	printf("%s\n", strerrorname_np(errno));
	have_file(reach());
	warm(50, ask);
	printf("%d ", close_range(3, ~0U, 0));
	say_open("all");
	have_file(reach());
	warm(50, ask);
	closefrom(3);
	say_open("closefrom");
	close_in_thread();
	check(!setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
	have_file(reach());
	ask(50);
	lack_close_range();
	closefrom(3);
	say_open("no such call");
}

static void range_server(void)
{
	char byte;
	int i, j, conn;

	for (i = 0; i < 4; i++) {
		conn = take();
		for (j = i == 3 ? 3 : i == 0 ? -1 : 0; j < 4; j++)
			answer(conn);
		printf("end %zd\n", read(conn, &byte, 1));
		close(conn);
	}
}

#define CASE(name)	{ #name, name##_server, name##_client }

static const struct {
	const char	*name;
	void		(*server)(void);
	void		(*client)(void);
} cases[] = {
	CASE(first), CASE(fork), CASE(edge), CASE(limit), CASE(cancel), CASE(jump),
	CASE(handler), CASE(stop), CASE(number), CASE(watch), CASE(epoll),
	CASE(many), CASE(crowd), CASE(turns), CASE(instances), CASE(taken), CASE(oneshot),
	CASE(woken), CASE(end), CASE(mask), CASE(job), CASE(allocator), CASE(part), CASE(control),
	CASE(range), CASE(accept), CASE(child), CASE(malloc),
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
