// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <CUnit/TestRun.h>

#include "helpers.h"

const char *kconfig = "base";
unsigned int slowness = 1;

/* Checks */

/* After the failure of a helper, say which check of the test came before it. */
bool check_true(bool ok, const char *what, const char *file, int line,
		bool fatal)
{
	static const char *last_file = "start";
	static int last_line;
	char text[500];

	if (strcmp(file, __FILE__)) {
		last_file = file;
		last_line = line;
	} else if (!ok) {
		snprintf(text, sizeof(text), "%s (after %s:%d)", what,
			 last_file, last_line);
		what = text;
	}
	CU_assertImplementation(ok, line, what, file, "", fatal);
	return ok;
}

static const char *number(long long value, char *buf, size_t size)
{
	const char *name = NULL;

	if (value < 0 && value > -4096)
		name = strerrorname_np((int)-value);
	if (name)
		snprintf(buf, size, "-%s", name);
	else
		snprintf(buf, size, "%lld", value);
	return buf;
}

bool check_equal(long long got, long long want, const char *what,
		 const char *file, int line, bool fatal)
{
	char text[400], g[32], w[32];

	if (got == want)
		return check_true(true, what, file, line, fatal);
	snprintf(text, sizeof(text), "%s: got %s, want %s", what,
		 number(got, g, sizeof(g)), number(want, w, sizeof(w)));
	return check_true(false, text, file, line, fatal);
}

uint64_t test_seed(void)
{
	const char *given = getenv("KEVENT_TEST_SEED");
	uint64_t seed;

	if (given)
		seed = strtoull(given, NULL, 0);
	else
		MUST_EQ(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
	note("KEVENT_TEST_SEED=%#llx", (unsigned long long)seed);
	return seed | 1;
}

/* xorshift64* */
uint32_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545f4914f6cdd1dull) >> 32;
}

/* Time */

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

bool preempt_rt(void)
{
	struct utsname name;

	return !uname(&name) && strstr(name.version, "PREEMPT_RT");
}

struct timespec ms_to_timespec(int64_t ms)
{
	return (struct timespec){
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000,
	};
}

bool patient(uint64_t start, unsigned int ms)
{
	const struct timespec nap = { .tv_nsec = 200000 };

	if (now_ns() - start > (uint64_t)ms * slowness * 1000000)
		return false;
	nanosleep(&nap, NULL);
	return true;
}

uint64_t storm_ns(void)
{
	const char *given = getenv("KEVENT_STORM_SECONDS");

	return given ? strtoull(given, NULL, 10) * 1000000000 : 2500000000;
}

bool storm_goes_on(uint64_t start, bool enough)
{
	uint64_t took = now_ns() - start;

	return took < storm_ns() ||
	       (!enough && took < PATIENCE_MS * 1000000ull * slowness);
}

void pause_us(unsigned int us)
{
	const struct timespec ts = { .tv_nsec = us * 1000l };

	nanosleep(&ts, NULL);
}

int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

bool two_cpus(void)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		return true;
	note("only one CPU");
	return false;
}

/* Files */

void open_pipe(int fd[2])
{
	MUST_EQ(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
}

int open_expired_timer(void)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };
	struct pollfd pfd = { .events = POLLIN };

	pfd.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	MUST(pfd.fd >= 0);
	MUST_EQ(timerfd_settime(pfd.fd, 0, &soon, NULL), 0);
	MUST_EQ(poll(&pfd, 1, PATIENCE_MS), 1);
	return pfd.fd;
}

unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int nr = 0;

	MUST(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

void open_fds(unsigned int nr)
{
	const struct rlimit limit = { .rlim_cur = nr, .rlim_max = nr };

	MUST_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void put_byte(int fd)
{
	MUST_EQ(write(fd, "", 1), 1);
}

unsigned int take_bytes(int fd)
{
	unsigned int sum = 0;
	char buf[4096];
	ssize_t len;

	while ((len = read(fd, buf, sizeof(buf))) > 0)
		sum += len;
	return sum;
}

void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		note("cannot write '%s' to %s: %s", text, path,
		     strerrorname_np(errno));
	else
		errno = 0;
	if (fd >= 0)
		close(fd);
	MUST_EQ(errno, 0);
}

void read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[len > 0 ? len : 0] = '\0';
}

void send_fd(int sock, int fd)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(sizeof(int))];
	} ctl = {
		.hdr.cmsg_level = SOL_SOCKET,
		.hdr.cmsg_type = SCM_RIGHTS,
		.hdr.cmsg_len = CMSG_LEN(sizeof(int)),
	};
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &ctl, .msg_controllen = sizeof(ctl),
	};

	memcpy(CMSG_DATA(&ctl.hdr), &fd, sizeof(fd));
	MUST_EQ(sendmsg(sock, &msg, 0), 1);
}

int receive_fd(int sock)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(sizeof(int))];
	} ctl;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &ctl, .msg_controllen = sizeof(ctl),
	};
	int fd = -1;

	if (recvmsg(sock, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(&ctl.hdr), sizeof(fd));
	return fd;
}

/* Queues */

unsigned int init_flags;

void open_queue(struct queue *q, uint32_t size)
{
	*q = (struct queue){ .size = size };
	if (size) {
		q->bytes = (KEVENT_RING_BYTES(size) + 4095) & ~4095ul;
		q->ring = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(q->ring != MAP_FAILED);
	}
	q->fd = kevent_init(q->ring, size, init_flags);
	MUST(q->fd >= 0);
}

void open_refusing(struct queue *q, uint32_t refusals)
{
	open_queue(q, 16);
	close(q->fd);
	q->fd = kevent_init(q->ring, q->size, refusals);
	MUST(q->fd >= 0);
}

void close_queue(struct queue *q)
{
	CHECK_EQ(close(q->fd), 0);
	if (q->ring)
		munmap(q->ring, q->bytes);
}

void each_queue(void (*fn)(struct queue *q))
{
	static const uint32_t sizes[] = { 0, 8 };
	struct queue q;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		open_queue(&q, sizes[i]);
		fn(&q);
		close_queue(&q);
	}
}

int get_events(int kq, uint32_t min_nr, uint32_t max_nr, int64_t ms,
	       struct ukevent *ev)
{
	struct timespec ts = ms_to_timespec(ms);

	return kevent_get_events(kq, min_nr, max_nr, ms < 0 ? NULL : &ts, ev,
				 0);
}

static uint64_t ring_kidx(struct queue *q)
{
	return __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
}

static int wait_past(struct queue *q, uint64_t kidx, uint32_t num, int64_t ms)
{
	struct timespec ts = ms_to_timespec(ms);

	return kevent_wait(q->fd, num, (uint32_t)kidx, ms < 0 ? NULL : &ts, 0,
			   NULL);
}

int wait_ring(struct queue *q, uint32_t num, int64_t ms)
{
	return wait_past(q, ring_kidx(q), num, ms);
}

int next_event(struct queue *q, struct ukevent *ev, int64_t ms)
{
	uint64_t kidx;
	int ret;

	memset(ev, 0x5a, sizeof(*ev));
	if (!q->size)
		return get_events(q->fd, 1, 1, ms, ev);
	/* A wake-up may store an entry right after the ring was found empty. */
	kidx = ring_kidx(q);
	if (kevent_ring_next(q->ring, q->size, ev))
		return 1;
	ret = wait_past(q, kidx, q->size, ms);
	if (ret <= 0)
		return ret;
	return kevent_ring_next(q->ring, q->size, ev) ? 1 : -EPROTO;
}

void take_announced(struct queue *q, struct ukevent *ev)
{
	if (kevent_ring_next(q->ring, q->size, ev))
		return;
	MUST(q->ring->ring_flags & KEVENT_RING_MORE);
	MUST_EQ(next_event(q, ev, 0), 1);
}

long collect_one(void *kq)
{
	struct ukevent ev;

	return get_events(*(int *)kq, 1, 1, 0, &ev);
}

bool has_more(struct queue *q)
{
	return __atomic_load_n(&q->ring->ring_flags, __ATOMIC_RELAXED) &
	       KEVENT_RING_MORE;
}

void await_more(struct queue *q)
{
	uint64_t start = now_ns();

	while (!has_more(q))
		MUST(patient(start, PATIENCE_MS));
}

int attach_ring(struct queue *q)
{
	return kevent_ctl(q->fd, KEVENT_CTL_ATTACH, q->size, (void *)q->ring);
}

void touch_ring(struct queue *q)
{
	__atomic_fetch_add(&q->ring->ring_uidx, 0, __ATOMIC_RELAXED);
}

unsigned int drain(struct queue *q, unsigned int *counts, unsigned int nr)
{
	unsigned int sum = 0;
	struct ukevent ev;
	int ret;

	while ((ret = next_event(q, &ev, 0)) == 1) {
		MUST(ev.ptr < nr);
		counts[ev.ptr]++;
		sum++;
	}
	CHECK_EQ(ret, 0);
	return sum;
}

int add_pipe(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, fd, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

int add_poll(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user)
{
	struct ukevent ev;

	kevent_set_poll(&ev, fd, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

int add_socket(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user)
{
	struct ukevent ev;

	kevent_set_socket(&ev, fd, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

int add_user(int kq, uint64_t id, uint32_t event, uint32_t flags,
	     uint64_t user)
{
	struct ukevent ev;

	kevent_set_user(&ev, id, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

int create_posix_timer(int kq)
{
	int id = kevent_timer_create(kq, CLOCK_MONOTONIC, 0);

	return id < 0 ? id : 0;
}

int try_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

int remove_file(int kq, uint32_t type, int fd)
{
	struct ukevent ev;

	kevent_set_poll(&ev, fd, 0, 0, 0);
	ev.type = type;
	return kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &ev);
}

int mark_user(int kq, uint64_t id, uint32_t event)
{
	struct ukevent ev;

	kevent_set_user(&ev, id, event, 0, 0);
	return kevent_ctl_one(kq, KEVENT_CTL_READY, &ev);
}

void enter_tmpfs(void)
{
	MUST_EQ(unshare(CLONE_NEWNS), 0);
	MUST_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	mkdir("/tmp", 0700);
	MUST_EQ(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
	MUST_EQ(chdir("/tmp"), 0);
}

bool on_fallback(void)
{
	const char *backend = getenv("KEVENT_BACKEND");

	if (backend && *backend)
		return !strcmp(backend, "epoll");
	return kevent_supported() == -ENOSYS;
}

bool is_among(const char *tests, const char *name)
{
	char word[130];

	snprintf(word, sizeof(word), " %s ", name);
	return strstr(tests, word);
}

bool on_module(void)
{
	static int known = -1;
	const char *backend;
	int kq;

	if (known < 0) {
		kq = on_fallback() ? -1 : kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK);
		backend = kevent_backend(kq);
		known = backend && !strcmp(backend, "module");
		close(kq);
	}
	return known;
}

void close_device(void)
{
	uint64_t types;
	int fd;

	for (fd = STDERR_FILENO + 1; fd < 32; fd++)
		if (!ioctl(fd, KEVENT_IOC_TYPES, &types))
			close(fd);
}

static int device_init(long ring, long size, long flags)
{
	struct kevent_dev_init arg = {
		.ring = (uintptr_t)ring,
		.ring_size = (uint32_t)size,
		.flags = (uint32_t)flags,
	};
	int fd = open(KEVENT_DEVICE, O_RDWR | O_CLOEXEC), kq, saved;

	if (fd < 0)
		return fd;
	kq = ioctl(fd, KEVENT_IOC_INIT, &arg);
	saved = errno;
	close(fd);
	errno = saved;
	return kq;
}

static int device_get_events(int kq, long min, long max, long timeout, long buf,
			     long flags)
{
	struct kevent_dev_get arg = {
		.min_nr = (uint32_t)min,
		.max_nr = (uint32_t)max,
		.timeout = (uintptr_t)timeout,
		.buf = (uintptr_t)buf,
		.flags = (uint32_t)flags,
	};

	return ioctl(kq, KEVENT_IOC_GET_EVENTS, &arg);
}

static int device_wait(int kq, long num, long kidx, long timeout, long flags, long more)
{
	struct kevent_dev_wait arg = {
		.num = (uint32_t)num,
		.old_kidx = (uint32_t)kidx,
		.timeout = (uintptr_t)timeout,
		.flags = (uint32_t)flags,
		.arg = (uintptr_t)more,
	};

	return ioctl(kq, KEVENT_IOC_WAIT, &arg);
}

/* What an ioctl of another file says */
static int or_no_queue(int ret)
{
	if (ret < 0 && errno == ENOTTY)
		errno = EINVAL;
	return ret;
}

long raw_kevent6(long nr, long a, long b, long c, long d, long e, long f)
{
	struct kevent_dev_ctl ctl = {
		.cmd = (uint32_t)b, .num = (uint32_t)c, .arg = (uintptr_t)d,
	};
	struct kevent_dev_commit commit = {
		.uidx = (uint64_t)c << 32 | (uint32_t)b,
	};

	if (!on_module())
		return syscall(nr, a, b, c, d, e, f);
	switch (nr) {
	case __NR_kevent_init:
		return device_init(a, b, c);
	case __NR_kevent_ctl:
		return or_no_queue(ioctl((int)a, KEVENT_IOC_CTL, &ctl));
	case __NR_kevent_get_events:
		return or_no_queue(device_get_events((int)a, b, c, d, e, f));
	case __NR_kevent_wait:
		return or_no_queue(device_wait((int)a, b, c, d, e, f));
	case __NR_kevent_commit:
		return or_no_queue(ioctl((int)a, KEVENT_IOC_COMMIT, &commit));
	default:
		errno = ENOSYS;
		return -1;
	}
}

/* Of the library's tests, and with the static library only */
long long kevent_fb_info(int fd, const char *key);

long long fdinfo(int kq, const char *key)
{
	static char text[1 << 16];
	size_t len = strlen(key);
	char path[40], *line;

	if (on_fallback())
		return kevent_fb_info(kq, key);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", kq);
	read_file(path, text, sizeof(text));
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!strncmp(line, key, len) && line[len] == ':')
			return strtoll(line + len + 1, NULL, 10);
	return -1;
}

/* Threads and processes */

char task_state(pid_t tid)
{
	char path[40], text[512], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	read_file(path, text, sizeof(text));
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '?';
}

/* Is it that call, or what the module or the fallback do in its place? */
static bool is_call(long got, long nr)
{
	if (nr < __NR_kevent_init || nr > __NR_kevent_commit)
		return got == nr;
	if (on_fallback())
		return got == SYS_epoll_pwait2 || got == SYS_epoll_pwait;
	if (!on_module())
		return got == nr;
	return got == SYS_ioctl || (nr == __NR_kevent_wait && got == SYS_lseek);
}

bool is_asleep_in(pid_t tid, long nr)
{
	char path[40], text[256], *end;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	read_file(path, text, sizeof(text));
	return is_call(strtol(text, &end, 10), nr) && end != text &&
	       task_state(tid) == 'S';
}

bool sleeps_in(pid_t tid, long nr)
{
	uint64_t start = now_ns();

	while (!is_asleep_in(tid, nr))
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

long long sleeps_so_far(pid_t tid)
{
	const char key[] = "\nvoluntary_ctxt_switches:";
	char path[40], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	read_file(path, text, sizeof(text));
	at = strstr(text, key);
	return at ? strtoll(at + sizeof(key) - 1, NULL, 10) : -1;
}

static void *run_actor(void *arg)
{
	struct actor *a = arg;

	atomic_store(&a->tid, gettid());
	a->ret = a->fn(a->arg);
	return NULL;
}

static void start_actor_with(struct actor *a, const pthread_attr_t *attr,
			     long (*fn)(void *arg), void *arg)
{
	uint64_t start = now_ns();

	a->fn = fn;
	a->arg = arg;
	atomic_store(&a->tid, 0);
	MUST_EQ(pthread_create(&a->thread, attr, run_actor, a), 0);
	while (!atomic_load(&a->tid))
		MUST(patient(start, PATIENCE_MS));
}

void start_actor(struct actor *a, long (*fn)(void *arg), void *arg)
{
	start_actor_with(a, NULL, fn, arg);
}

/* CPUs */

/* Where this thread ran before share_cpu() or start_in_window() */
static cpu_set_t cpus_before;

static cpu_set_t only_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

void share_cpu(void)
{
	cpu_set_t one = only_cpu(0);

	MUST_EQ(sched_getaffinity(0, sizeof(cpus_before), &cpus_before), 0);
	MUST_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

void go_first(void)
{
	struct sched_param first = { .sched_priority = 1 };

	MUST_EQ(sched_setscheduler(0, SCHED_FIFO, &first), 0);
}

void go_as_others(void)
{
	MUST_EQ(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){}), 0);
}

void leave_cpu(void)
{
	MUST_EQ(sched_setaffinity(0, sizeof(cpus_before), &cpus_before), 0);
}

/* Windows */

#define WINDOW	"/sys/kernel/debug/kevent/testpoint"

static void start_actor_on(struct actor *a, int cpu, long (*fn)(void *arg), void *arg)
{
	cpu_set_t set = only_cpu(cpu);
	pthread_attr_t attr;

	MUST_EQ(pthread_attr_init(&attr), 0);
	MUST_EQ(pthread_attr_setaffinity_np(&attr, sizeof(set), &set), 0);
	start_actor_with(a, &attr, fn, arg);
	pthread_attr_destroy(&attr);
}

void window_arm(const char *name)
{
	MUST_EQ(sched_getaffinity(0, sizeof(cpus_before), &cpus_before), 0);
	write_file(WINDOW, name);
}

bool window_entered(void)
{
	uint64_t start = now_ns();
	char state[16];

	do {
		read_file(WINDOW, state, sizeof(state));
		if (!strcmp(state, "entered\n"))
			return true;
	} while (!strcmp(state, "armed\n") && patient(start, PATIENCE_MS));
	return false;
}

/*
 * The actor in the window may have disabled interrupts. Nothing would then move this
 * thread from the actor's CPU to an idle one.
 */
bool start_in_window(struct actor *a, const char *name, long (*fn)(void *arg),
		     void *arg)
{
	cpu_set_t here = only_cpu(0);

	MUST(sysconf(_SC_NPROCESSORS_ONLN) > 1);
	MUST_EQ(sched_getaffinity(0, sizeof(cpus_before), &cpus_before), 0);
	MUST_EQ(sched_setaffinity(0, sizeof(here), &here), 0);
	write_file(WINDOW, name);
	start_actor_on(a, 1, fn, arg);
	return window_entered();
}

bool window_next(const char *name)
{
	write_file(WINDOW, name);
	return window_entered();
}

void window_release(void)
{
	write_file(WINDOW, "\n");
	MUST_EQ(sched_setaffinity(0, sizeof(cpus_before), &cpus_before), 0);
}

static int try_join(struct actor *a, uint64_t until)
{
	const struct timespec ts = {
		.tv_sec = until / 1000000000,
		.tv_nsec = until % 1000000000,
	};

	return pthread_clockjoin_np(a->thread, NULL, CLOCK_MONOTONIC, &ts);
}

void join_actor(struct actor *a, unsigned int ms)
{
	MUST_EQ(try_join(a, now_ns() + (uint64_t)ms * slowness * 1000000), 0);
}

bool actor_ended(struct actor *a)
{
	char path[60];

	snprintf(path, sizeof(path), "/proc/self/task/%d",
		 atomic_load(&a->tid));
	return access(path, F_OK) != 0;
}

static long run_waiter(void *arg)
{
	struct waiter *w = arg;

	if (w->q->size)
		return wait_ring(w->q, w->num, w->ms);
	return get_events(w->q->fd, w->min, w->num, w->ms, w->ev);
}

static long waiter_call(struct waiter *w)
{
	return w->q->size ? __NR_kevent_wait : __NR_kevent_get_events;
}

void start_waiter_for(struct waiter *w, struct queue *q, uint32_t min,
		      uint32_t num, int64_t ms)
{
	*w = (struct waiter){ .q = q, .min = min, .num = num, .ms = ms };
	start_actor(&w->actor, run_waiter, w);
	MUST(sleeps_in(w->actor.tid, waiter_call(w)));
}

void start_waiter(struct waiter *w, struct queue *q, uint32_t num)
{
	start_waiter_for(w, q, 1, num, -1);
}

bool waiter_asleep(struct waiter *w)
{
	return is_asleep_in(w->actor.tid, waiter_call(w));
}

void check_asleep(struct waiter *w, long long sleeps)
{
	CHECK(waiter_asleep(w));
	CHECK_EQ(sleeps_so_far(w->actor.tid), sleeps);
}

long join_waiter(struct waiter *w)
{
	join_actor(&w->actor, PATIENCE_MS);
	return w->actor.ret;
}

void exec_and_end(void)
{
	execl("/proc/self/exe", "kevent-tests", "--end", NULL);
}

void exec_and_run(void)
{
	execl("/proc/self/exe", "kevent-tests", "--run", NULL);
}

static void do_nothing(int sig)
{
	(void)sig;
}

void catch_signal(int sig)
{
	const struct sigaction act = { .sa_handler = do_nothing };

	MUST_EQ(sigaction(sig, &act, NULL), 0);
}

pid_t start_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();

	if (!pid)
		_exit(fn(arg));
	MUST(pid > 0);
	return pid;
}

int join_child(pid_t pid, unsigned int ms)
{
	uint64_t start = now_ns();
	int status;

	/* -1 would be all processes. */
	MUST(pid > 0);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (patient(start, ms))
			continue;
		kill(pid, SIGKILL);
		CHECK(!"child ended in time");
		return -ETIMEDOUT;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void with_setting(const char *path, const char *value, int (*fn)(void *arg),
		  void *arg)
{
	char old[64];
	int ret;

	read_file(path, old, sizeof(old));
	old[strcspn(old, "\n")] = '\0';
	MUST(old[0]);
	write_file(path, value);
	ret = join_child(start_child(fn, arg), 2 * PATIENCE_MS);
	write_file(path, old);
	CHECK_EQ(ret, 0);
}

static int put_byte_and_leave(void *arg)
{
	return write(*(int *)arg, "", 1) != 1;
}

void put_byte_from_outside(int fd)
{
	MUST_EQ(join_child(start_child(put_byte_and_leave, &fd), PATIENCE_MS),
		0);
}
