// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the guest. It mounts what programs expect, loads the modules in
 * /vm/modules and runs the command in /vm/command with the variables of
 * /vm/environment and KEVENT_TEST_MACHINE, see kevent-tests --help. It copies the output to one
 * virtio port. When no process of the command is left, it reports the exit status
 * on another port. The host acknowledges that when it has all the output; then the
 * guest powers off.
 *
 * Arguments, after "--" on the kernel command line:
 *	cpus=N		fail unless N processors are online
 *	kmemleak	look for leaked memory before the verdict
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_PORT	"/dev/vport0p1"
#define VERDICT_PORT	"/dev/vport0p2"
#define MAX_FILES	1048576
#define MAX_ARGS	4096
#define MAX_TEXT	131072
#define PORT_SECONDS	60
#define KILL_SECONDS	60
#define LEAK_SECONDS	6

static int output = -1, verdict = -1;
static unsigned long long sent;

/* QEMU does not switch a machine off that was suspended to memory. */
static bool was_suspended(void)
{
	int fd = open("/sys/power/suspend_stats/success", O_RDONLY | O_CLOEXEC);
	char times = '0';

	if (fd >= 0 && read(fd, &times, 1) != 1)
		times = '0';
	if (fd >= 0)
		close(fd);
	return times != '0';
}

/* The end: write the last line, wait for the host's answer, power off. */
__attribute__((noreturn, format(printf, 1, 2)))
static void finish(const char *fmt, ...)
{
	int out = verdict < 0 ? STDERR_FILENO : verdict;
	va_list args;
	char answer;

	va_start(args, fmt);
	vdprintf(out, fmt, args);
	va_end(args);
	dprintf(out, "\n%llu\n", sent);
	while (verdict >= 0 && read(verdict, &answer, 1) == 1 && answer != 'q')
		;
	sync();
	/* QEMU ends at a restart, too. */
	reboot(was_suspended() ? RB_AUTOBOOT : RB_POWER_OFF);
	_exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void nap(double length)
{
	struct timespec left = {
		.tv_sec = (time_t)length,
		.tv_nsec = (long)((length - (time_t)length) * 1e9),
	};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		finish("error: %s: %s", path, strerror(errno));
	close(fd);
}

static void mount_all(void)
{
	static const struct {
		const char *type, *target;
	} mounts[] = {
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "devtmpfs", "/dev" },
		{ "devpts", "/dev/pts" },
		{ "tmpfs", "/dev/shm" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "cgroup2", "/sys/fs/cgroup" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i].target, 0755);
		if (mount(mounts[i].type, mounts[i].target, mounts[i].type, 0,
			  NULL))
			finish("error: mount %s: %s", mounts[i].target,
			       strerror(errno));
	}
	/* As systemd has it: a test that mounts for itself has to say so. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL))
		finish("error: mount --make-rshared /: %s", strerror(errno));
	chmod("/dev/shm", 01777);
	if (symlink("/proc/self/fd", "/dev/fd") ||
	    symlink("/proc/self/fd/0", "/dev/stdin") ||
	    symlink("/proc/self/fd/1", "/dev/stdout") ||
	    symlink("/proc/self/fd/2", "/dev/stderr"))
		finish("error: can't make links in /dev");
}

/* The driver finds its ports in a work item, some time after boot. */
static int open_port(const char *path, int flags)
{
	double end = seconds() + PORT_SECONDS;
	int fd;

	for (;;) {
		fd = open(path, flags | O_CLOEXEC);
		if (fd >= 0 || seconds() > end)
			return fd;
		nap(0.001);
	}
}

static void open_ports(void)
{
	verdict = open_port(VERDICT_PORT, O_RDWR);
	output = open_port(OUTPUT_PORT, O_WRONLY);
	if (output < 0)
		finish("error: %s: %s", OUTPUT_PORT, strerror(errno));
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request))
		finish("error: can't bring lo up: %s", strerror(errno));
	close(sock);
}

static void raise_limits(void)
{
	const struct rlimit files = { MAX_FILES, MAX_FILES };

	write_file("/proc/sys/fs/file-max", "4194304");
	write_file("/proc/sys/vm/max_map_count", "1048576");
	write_file("/proc/sys/kernel/pid_max", "262144");
	write_file("/proc/sys/kernel/threads-max", "262144");
	if (setrlimit(RLIMIT_NOFILE, &files))
		finish("error: RLIMIT_NOFILE: %s", strerror(errno));
}

static void check_cpus(long wanted)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (online != wanted)
		finish("error: %ld of %ld processors came up", online, wanted);
}

/* The words of a file, each NUL-terminated; NULL follows the last one. */
static char **read_words(const char *path)
{
	char **words = calloc(MAX_ARGS, sizeof(*words));
	char *text = calloc(1, MAX_TEXT);
	size_t nr = 0;
	ssize_t size;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, text, MAX_TEXT - 1);
	if (size < 0)
		finish("error: %s: %s", path, strerror(errno));
	if (size == MAX_TEXT - 1)
		finish("error: %s: more than %d bytes", path, MAX_TEXT - 2);
	close(fd);
	for (char *word = text; word < text + size; word += strlen(word) + 1) {
		if (nr == MAX_ARGS - 1)
			finish("error: %s: more than %d words", path, MAX_ARGS);
		words[nr++] = word;
	}
	return words;
}

/* In their order. A test that becomes another user opens the device, too. */
static void load_modules(void)
{
	char **paths = read_words("/vm/modules");
	int fd;

	for (; *paths; paths++) {
		fd = open(*paths, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
			finish("error: can't load %s: %s", *paths, strerror(errno));
		close(fd);
	}
	if (chmod("/dev/kevent", 0666) && errno != ENOENT)
		finish("error: /dev/kevent: %s", strerror(errno));
}

__attribute__((noreturn))
static void run_command(int out)
{
	/* The directory of the host comes first. */
	char **argv = read_words("/vm/command");
	char **variables = read_words("/vm/environment");
	char *directory = *argv++;
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	clearenv();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
	       "/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("LANG", "C.UTF-8", 1);
	setenv("TERM", "dumb", 1);
	setenv("KEVENT_TEST_MACHINE", "1", 1);
	while (*variables)
		putenv(*variables++);
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	dup2(out, 1);
	dup2(out, 2);
	if (chdir(directory) == 0)
		execvp(argv[0], argv);
	dprintf(2, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Copies the contents of the pipe. Returns false when it has no writer left. */
static bool copy_output(int in)
{
	static char buf[65536];
	ssize_t size, part, done;

	while ((size = read(in, buf, sizeof(buf))) > 0) {
		for (done = 0; done < size; done += part) {
			part = write(output, buf + done, size - done);
			if (part < 0)
				finish("error: %s: %s", OUTPUT_PORT,
				       strerror(errno));
		}
		sent += size;
	}
	return size != 0;
}

static void on_child(int signal)
{
	(void)signal;
}

/* Returns the wait status of pid; reaps every orphan before that. */
static int wait_command(pid_t pid, int in)
{
	struct pollfd fd = { .fd = in, .events = POLLIN };
	int status;
	sigset_t none;
	pid_t child;

	sigemptyset(&none);
	for (;;) {
		while ((child = waitpid(-1, &status, WNOHANG)) > 0)
			if (child == pid)
				return status;
		if (ppoll(&fd, 1, NULL, &none) > 0 && !copy_output(in))
			fd.fd = -1;
	}
}

/* No process outlives the command; one that cannot be killed is a hang. */
static void kill_rest(void)
{
	double end = seconds() + KILL_SECONDS;

	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		if (seconds() > end) {
			write_file("/proc/sysrq-trigger", "w");
			finish("error: processes left that can't be killed");
		}
		nap(0.01);
	}
}

/*
 * kmemleak reports only memory that is some seconds old, and a second scan is
 * more reliable than the first. The runner finds the report in the console log.
 */
static void find_leaks(void)
{
	static const char path[] = "/sys/kernel/debug/kmemleak";
	int in, log = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);
	char buf[4096];
	ssize_t size;

	if (access(path, F_OK))
		finish("error: this kernel has no kmemleak");
	for (int scan = 0; scan < 2; scan++) {
		nap(LEAK_SECONDS);
		write_file(path, "scan");
	}
	in = open(path, O_RDONLY | O_CLOEXEC);
	while ((size = read(in, buf, sizeof(buf))) > 0)
		if (write(log, buf, size) != size)
			finish("error: /dev/console: %s", strerror(errno));
	if (size < 0)
		finish("error: %s: %s", path, strerror(errno));
	close(in);
	close(log);
}

/*
 * A guest without a clock of its own starts in 1970. The clock may not be set
 * to a time before the boot, so tests could not restore it.
 */
static void set_clock(void)
{
	const struct timespec some_day = { .tv_sec = 1700000000 };

	if (time(NULL) < some_day.tv_sec)
		clock_settime(CLOCK_REALTIME, &some_day);
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_child };
	bool kmemleak = false;
	int pipes[2], status;
	sigset_t child;
	pid_t pid;

	mount_all();
	load_modules();
	set_clock();
	open_ports();
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "cpus=", 5))
			check_cpus(atol(argv[i] + 5));
		kmemleak |= !strcmp(argv[i], "kmemleak");
	}
	loopback_up();
	raise_limits();

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &action, NULL);
	if (pipe2(pipes, O_CLOEXEC))
		finish("error: pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		finish("error: fork: %s", strerror(errno));
	if (pid == 0)
		run_command(pipes[1]);
	close(pipes[1]);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);

	status = wait_command(pid, pipes[0]);
	kill_rest();
	copy_output(pipes[0]);
	if (kmemleak)
		find_leaks();
	finish("exit %d", WIFSIGNALED(status) ? 128 + WTERMSIG(status)
					      : WEXITSTATUS(status));
}
