// SPDX-License-Identifier: GPL-2.0
/*
 * usage: libuv_checks
 *
 * What libuv's own tests cannot see of its event loop, each in a process of its own.
 * Prints lines as those do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <libkevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			printf("# line %d: %s\n", __LINE__, #condition);	\
			exit(1);					\
		}							\
	} while (0)

#define SKIPPED 77

static int writer = -1, events;

static void write_once(void)
{
	if (writer == -1)
		return;
	CHECK(write(writer, "x", 1) == 1);
	writer = -1;
}

/* Stands before that of libkevent: what is added becomes ready before the next call. */
int kevent_ctl(int fd, __u32 cmd, __u32 nr, struct ukevent *ev)
{
	int (*next)(int, __u32, __u32, struct ukevent *) =
		dlsym(RTLD_NEXT, "kevent_ctl");
	int ret = next(fd, cmd, nr, ev);

	if (cmd == KEVENT_CTL_ADD)
		write_once();
	return ret;
}

static const struct kevent_queue *queue;
static int stream_events;

int kevent_queue_init(struct kevent_queue *q, struct kevent_ring *ring, __u32 size, __u32 flags)
{
	int (*next)(struct kevent_queue *, struct kevent_ring *, __u32, __u32) =
		dlsym(RTLD_NEXT, "kevent_queue_init");

	queue = q;
	return next(q, ring, size, flags);
}

/* It reads the socket, so the entry of the event must have been taken. */
int kevent_stream_event(struct kevent_stream *s, const struct ukevent *ev)
{
	int (*next)(struct kevent_stream *, const struct ukevent *) =
		dlsym(RTLD_NEXT, "kevent_stream_event");
	const struct kevent_ring *ring = queue->ring;
	__u64 pos;

	for (pos = ring->ring_uidx; pos != ring->ring_kidx; pos++)
		CHECK(kevent_ring_entry(ring, queue->size, pos)->ptr != ev->ptr);
	stream_events++;
	return next(s, ev);
}

static void on_data(uv_poll_t *poll, int status, int what)
{
	CHECK(status == 0 && what == UV_READABLE);
	events++;
	uv_poll_stop(poll);
}

static void on_idle(uv_idle_t *idle)
{
	uv_idle_stop(idle);
}

/* The descriptor is beyond those that the loop has a place for. */
static void a_file_that_is_ready_in_uv_poll_init(void)
{
	uv_poll_t poll;
	uv_idle_t idle;
	uv_loop_t loop;
	int p[2], fd;

	CHECK(!uv_loop_init(&loop) && !pipe(p));
	fd = fcntl(p[0], F_DUPFD, 500);
	CHECK(fd >= 500);
	CHECK(!uv_idle_init(&loop, &idle) && !uv_idle_start(&idle, on_idle));
	writer = p[1];
	CHECK(!uv_poll_init(&loop, &poll, fd));
	write_once();
	uv_run(&loop, UV_RUN_NOWAIT);
	CHECK(!uv_poll_start(&poll, UV_READABLE, on_data));
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK(events == 1);
}

static int uv_poll_init_of(const char *name)
{
	uv_poll_t poll;
	uv_loop_t loop;
	int fd = open(name, O_RDONLY);

	CHECK(fd >= 0 && !uv_loop_init(&loop));
	return uv_poll_init(&loop, &poll, fd);
}

/* The last one is a regular file that can be polled. */
static void uv_poll_init_refuses_what_epoll_refuses(void)
{
	CHECK(uv_poll_init_of("/dev/null") == UV_EPERM);
	CHECK(uv_poll_init_of("/dev/zero") == UV_EPERM);
	CHECK(uv_poll_init_of("/proc/self/exe") == UV_EPERM);
	CHECK(uv_poll_init_of("/") == UV_EPERM);
	CHECK(uv_poll_init_of("/proc/self/mounts") == 0);
}

/* Once for each process. */
static void on_data_that_stays(uv_poll_t *poll, int status, int what)
{
	CHECK(status == 0 && what == UV_READABLE);
	events = 1;
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	static char bytes[64];

	*buf = uv_buf_init(bytes, sizeof(bytes));
}

static void on_read(uv_stream_t *stream, ssize_t nr, const uv_buf_t *buf)
{
	CHECK(nr == 1);
	events++;
}

/* So many iterations that what is ready is reported. */
static void iterate(uv_loop_t *loop)
{
	int i;

	for (i = 0; i < 10; i++)
		uv_run(loop, UV_RUN_NOWAIT);
}

/* A stream that was read and stopped; its watch stays. */
static void read_and_stop(uv_loop_t *loop, uv_pipe_t *stream, const int p[2])
{
	CHECK(!uv_loop_init(loop) && !uv_pipe_init(loop, stream, 0));
	CHECK(!uv_pipe_open(stream, p[0]));
	CHECK(!uv_read_start((uv_stream_t *)stream, on_alloc, on_read));
	CHECK(write(p[1], "x", 1) == 1);
	iterate(loop);
	CHECK(events == 1);
	CHECK(!uv_read_stop((uv_stream_t *)stream));
}

static void on_read_again(uv_stream_t *stream, ssize_t nr, const uv_buf_t *buf)
{
	CHECK(!uv_read_stop(stream));
	CHECK(!uv_read_start(stream, on_alloc, on_read_again));
	on_read(stream, nr, buf);
}

/* One event for each byte, and none for nothing */
static void a_stream_that_is_stopped_and_started(void)
{
	uv_pipe_t stream;
	uv_loop_t loop;
	int p[2], i;

	CHECK(!pipe(p));
	read_and_stop(&loop, &stream, p);
	CHECK(!uv_read_start((uv_stream_t *)&stream, on_alloc, on_read_again));
	for (i = 0; i < 5; i++) {
		CHECK(write(p[1], "x", 1) == 1);
		iterate(&loop);
	}
	CHECK(events == 6);
}

/* dup2() ends the watch. */
static void a_stopped_stream_whose_descriptor_means_another_file(void)
{
	uv_pipe_t stream;
	uv_loop_t loop;
	int p[2], q[2];

	CHECK(!pipe(p) && !pipe2(q, O_NONBLOCK));
	read_and_stop(&loop, &stream, p);
	CHECK(dup2(q[0], p[0]) == p[0]);
	CHECK(!uv_read_start((uv_stream_t *)&stream, on_alloc, on_read));
	CHECK(write(q[1], "x", 1) == 1);
	iterate(&loop);
	CHECK(events == 2);
}

/* close() ends the watch, and the next file has the number. */
static void a_descriptor_of_a_stopped_stream_that_another_one_gets(void)
{
	uv_pipe_t stream, other;
	uv_loop_t loop;
	int p[2], q[2];

	CHECK(!pipe(p));
	read_and_stop(&loop, &stream, p);
	close(p[0]);
	CHECK(!pipe(q) && q[0] == p[0]);
	CHECK(!uv_pipe_init(&loop, &other, 0) && !uv_pipe_open(&other, q[0]));
	CHECK(!uv_read_start((uv_stream_t *)&other, on_alloc, on_read));
	CHECK(write(q[1], "x", 1) == 1);
	iterate(&loop);
	CHECK(events == 2);
}

static void on_connect(uv_connect_t *request, int status)
{
	CHECK(!status);
}

static uv_pipe_t accepted;

static void on_connection(uv_stream_t *listener, int status)
{
	CHECK(!status && !uv_pipe_init(listener->loop, &accepted, 0));
	CHECK(!uv_accept(listener, (uv_stream_t *)&accepted));
	CHECK(!uv_read_start((uv_stream_t *)&accepted, on_alloc, on_read));
}

/* A pipe of each side in memory, or the test is left out */
static void connect_in_memory(uv_loop_t *loop, uv_pipe_t *listener, uv_pipe_t *pipe)
{
	static uv_connect_t request;
	char name[64];

	CHECK(!uv_loop_init(loop));
	if (uv_loop_configure(loop, UV_LOOP_USE_PIPE_SHM) == UV_ENOSYS)
		exit(SKIPPED);
	snprintf(name, sizeof(name), "/tmp/libuv-checks.%d", (int)getpid());
	CHECK(!uv_pipe_init(loop, listener, 0) && !uv_pipe_init(loop, pipe, 0));
	CHECK(!uv_pipe_bind(listener, name));
	CHECK(!uv_listen((uv_stream_t *)listener, 1, on_connection));
	uv_pipe_connect(&request, pipe, name, on_connect);
	iterate(loop);
	unlink(name);
}

static void pipe_shm_takes_an_event_before_it_reads_the_socket(void)
{
	uv_buf_t buf = uv_buf_init("x", 1);
	uv_pipe_t listener, pipe;
	uv_loop_t loop;

	connect_in_memory(&loop, &listener, &pipe);
	CHECK(uv_try_write((uv_stream_t *)&pipe, &buf, 1) == 1);
	iterate(&loop);
	CHECK(events == 1 && stream_events > 0);
}

/*
 * Without uv_loop_fork(), as after daemon(). If the parent has polled before, the child closes one
 * of the descriptors.
 */
static void a_loop_in_a_child(int polled)
{
	uv_poll_t poll, other;
	uv_loop_t loop;
	int p[2], q[2], status;
	pid_t pid;

	CHECK(!uv_loop_init(&loop) && !pipe(p) && !pipe(q));
	CHECK(!uv_poll_init(&loop, &poll, p[0]));
	CHECK(!uv_poll_start(&poll, UV_READABLE, on_data_that_stays));
	CHECK(!uv_poll_init(&loop, &other, q[0]));
	CHECK(!uv_poll_start(&other, UV_READABLE, on_data_that_stays));
	if (polled)
		uv_run(&loop, UV_RUN_NOWAIT);
	CHECK(write(p[1], "x", 1) == 1);
	pid = fork();
	if (!pid && polled)
		close(q[0]);
	if (pid)
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	iterate(&loop);
	CHECK(events == 1);
	if (!pid)
		exit(0);
}

static void a_child_that_makes_the_changes_of_its_parent(void)
{
	a_loop_in_a_child(0);
}

static void a_child_that_has_the_watches_of_its_parent(void)
{
	a_loop_in_a_child(1);
}

/* Runs in a child that gets no descriptor any more. */
static void at_the_limit(uv_loop_t *loop, int fd, void (*test)(uv_loop_t *loop, int fd))
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	if (!pid) {
		CHECK(!setrlimit(RLIMIT_NOFILE, &none));
		test(loop, fd);
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
}

/* Epoll has it in the instance of the parent. */
static void may_refuse_a_file(uv_loop_t *loop, int fd)
{
	uv_poll_t poll;
	int err = uv_poll_init(loop, &poll, fd);

	CHECK(!err || err == UV_EMFILE);
}

static void a_child_that_gets_no_queue(void)
{
	uv_loop_t loop;
	int p[2];

	CHECK(!uv_loop_init(&loop) && !pipe(p));
	at_the_limit(&loop, p[0], may_refuse_a_file);
}

static uv_pipe_t connected;

static void close_a_pipe(uv_loop_t *loop, int fd)
{
	uv_poll_t poll;

	CHECK(uv_loop_fork(loop) == UV_EMFILE);
	CHECK(uv_poll_init(loop, &poll, fd) == UV_EMFILE);
	uv_close((uv_handle_t *)&connected, NULL);
}

static void pipe_shm_in_a_child_whose_uv_loop_fork_fails(void)
{
	uv_pipe_t listener;
	uv_loop_t loop;
	int p[2];

	connect_in_memory(&loop, &listener, &connected);
	CHECK(!pipe(p));
	at_the_limit(&loop, p[0], close_a_pipe);
}

/* Not the first one: libkevent keeps the device of the module. */
static void a_loop_leaves_no_descriptor(void)
{
	uv_loop_t loop;
	int first, fd;

	CHECK(!uv_loop_init(&loop) && !uv_loop_close(&loop));
	first = dup(0);
	close(first);
	CHECK(!uv_loop_init(&loop) && !uv_loop_close(&loop));
	uv_library_shutdown();
	for (fd = first; fd < first + 64; fd++)
		CHECK(fcntl(fd, F_GETFD) == -1);
}

/* libkevent then uses epoll. */
static void a_loop_on_the_fallback_leaves_no_descriptor(void)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	a_loop_leaves_no_descriptor();
}

/* Its status, or -1 if a signal has ended it */
static int run(void (*test)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		test();
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define TEST(name) { #name, name }

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		TEST(a_file_that_is_ready_in_uv_poll_init),
		TEST(uv_poll_init_refuses_what_epoll_refuses),
		TEST(a_stream_that_is_stopped_and_started),
		TEST(a_stopped_stream_whose_descriptor_means_another_file),
		TEST(a_descriptor_of_a_stopped_stream_that_another_one_gets),
		TEST(pipe_shm_takes_an_event_before_it_reads_the_socket),
		TEST(a_child_that_makes_the_changes_of_its_parent),
		TEST(a_child_that_has_the_watches_of_its_parent),
		TEST(a_child_that_gets_no_queue),
		TEST(pipe_shm_in_a_child_whose_uv_loop_fork_fails),
		TEST(a_loop_leaves_no_descriptor),
		TEST(a_loop_on_the_fallback_leaves_no_descriptor),
	};
	unsigned int i;
	int failed = 0;

	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		int status = run(tests[i].run), ok = !status || status == SKIPPED;

		printf("%sok %u - %s%s\n", ok ? "" : "not ", i + 1, tests[i].name,
		       status == SKIPPED ? " # SKIP" : "");
		failed |= !ok;
	}
	return failed;
}
