// SPDX-License-Identifier: GPL-2.0
/*
 * usage: deliveries FILE PROGRAM [ARGUMENT]...
 *
 * Run a program and count what kevent has delivered to it and its children: at
 * each close() of a queue, and at exit, kevent-delivered of its fdinfo is added.
 * "QUEUES EVENTS" goes to FILE. A queue that processes share counts for each.
 *
 * A filter stops the program at close() only, so that it runs at full speed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS	(PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXIT |		\
		 PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |		\
		 PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |		\
		 PTRACE_O_EXITKILL)

static unsigned long long queues, events;

static void die(const char *what)
{
	perror(what);
	exit(125);
}

/* Stop at close() */
static void install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len	= sizeof(code) / sizeof(*code),
		.filter	= code,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("seccomp");
}

/* Find "@name: number" in a file of /proc; false if it is not there. */
static bool read_field(const char *path, const char *name,
		       unsigned long long *value)
{
	size_t len = strlen(name);
	bool found = false;
	char line[256];
	FILE *file;

	file = fopen(path, "r");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = !strncmp(line, name, len) &&
			sscanf(line + len, ": %llu", value) == 1;
	fclose(file);
	return found;
}

static void count_fd(pid_t pid, const char *fd)
{
	unsigned long long delivered;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.20s", (int)pid, fd);
	if (!read_field(path, "kevent-delivered", &delivered))
		return;
	queues++;
	events += delivered;
}

static void count_close(pid_t pid)
{
	struct __ptrace_syscall_info info;
	char fd[24];

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_SECCOMP)
		return;
	snprintf(fd, sizeof(fd), "%d", (int)info.seccomp.args[0]);
	count_fd(pid, fd);
}

/* What a process has open when its first thread ends */
static void count_exit(pid_t pid)
{
	unsigned long long tgid;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (!read_field(path, "Tgid", &tgid) || tgid != (unsigned int)pid)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		count_fd(pid, entry->d_name);
	closedir(dir);
}

/* Lets a stopped process continue. */
static void go_on(pid_t pid, int status)
{
	int sig = WSTOPSIG(status);
	enum __ptrace_request how = PTRACE_CONT;

	switch (status >> 16) {
	case 0:
		break;			/* a signal, to be delivered */
	case PTRACE_EVENT_STOP:
		if (sig != SIGTRAP)	/* stopped by a signal */
			how = PTRACE_LISTEN;
		sig = 0;
		break;
	case PTRACE_EVENT_SECCOMP:
		count_close(pid);
		sig = 0;
		break;
	case PTRACE_EVENT_EXIT:
		count_exit(pid);
		sig = 0;
		break;
	default:
		sig = 0;
	}
	/* The process may have been killed in between. */
	ptrace(how, pid, 0, sig);
}

/* Returns the status of @program when all its descendants have ended, too. */
static int trace(pid_t program)
{
	int status, result = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status))
			go_on(pid, status);
		else if (pid == program)
			result = WIFEXITED(status) ? WEXITSTATUS(status) :
						     128 + WTERMSIG(status);
	}
	return result;
}

int main(int argc, char **argv)
{
	int ready[2], status;
	FILE *file;
	pid_t pid;
	char c;

	if (argc < 3) {
		fprintf(stderr, "usage: %s FILE PROGRAM [ARGUMENT]...\n", argv[0]);
		return 125;
	}
	if (pipe(ready))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(ready[1]);
		if (read(ready[0], &c, 1) != 1)
			_exit(125);
		close(ready[0]);
		install_filter();
		execv(argv[2], argv + 2);
		die(argv[2]);
	}
	if (ptrace(PTRACE_SEIZE, pid, 0, OPTIONS))
		die("ptrace");
	close(ready[0]);
	if (write(ready[1], "", 1) != 1)
		die("write");
	close(ready[1]);
	status = trace(pid);
	file = fopen(argv[1], "w");
	if (!file || fprintf(file, "%llu %llu\n", queues, events) < 0 ||
	    fclose(file))
		die(argv[1]);
	return status;
}
