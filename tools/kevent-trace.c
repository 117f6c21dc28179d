// SPDX-License-Identifier: GPL-2.0
/*
 * usage: kevent-trace [-o FILE] COMMAND [ARGUMENT]...
 *        kevent-trace [-o FILE] -p PID
 *
 * Runs a command, or looks at a process that runs, with all threads and children, and
 * prints each system call of kevent with its entries, one line each.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <linux/ptrace.h>

#include "calls.h"
#include "version.h"

#define OPTIONS	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |	\
		 PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

/*
 * Threads that are traced, by their id. As many as there are; the array has twice
 * the size when it is full.
 */
static struct call *calls;
static size_t nr_calls, max_calls;
static FILE *out;

static void die(const char *what)
{
	fprintf(stderr, "kevent-trace: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct call *find_call(pid_t tid)
{
	size_t i;

	for (i = 0; i < nr_calls; i++)
		if (calls[i].tid == tid)
			return &calls[i];
	if (nr_calls == max_calls) {
		max_calls = max_calls ? 2 * max_calls : 16;
		calls = realloc(calls, max_calls * sizeof(*calls));
		if (!calls)
			die("memory");
	}
	calls[nr_calls] = (struct call){ .tid = tid };
	return &calls[nr_calls++];
}

static void forget_call(pid_t tid)
{
	*find_call(tid) = calls[nr_calls - 1];
	nr_calls--;
}

static void at_syscall(pid_t tid)
{
	struct ptrace_syscall_info info;
	struct call *call = find_call(tid);

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		call_begins(call, info.entry.nr, info.entry.args);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && call->active) {
		call_ends(call, info.exit.rval);
		fprintf(out, "%d %s\n", tid, call->text);
		fflush(out);
	}
}

/* Returns the signal to deliver: a stop of the tracer's own is none. */
static int stop_signal(int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (sig == (SIGTRAP | 0x80) || event)
		return 0;
	return sig;
}

/* A stop of all threads, as by SIGSTOP, lasts until SIGCONT. */
static bool group_stop(int status)
{
	int sig = WSTOPSIG(status);

	return status >> 16 == PTRACE_EVENT_STOP &&
	       (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN ||
		sig == SIGTTOU);
}

/* Until the last tracee is gone; returns the status of @first. */
static int follow(pid_t first)
{
	int status, result = 0;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		if (tid < 0)
			continue;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (tid == first)
				result = WIFEXITED(status) ?
					 WEXITSTATUS(status) :
					 128 + WTERMSIG(status);
			forget_call(tid);
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			at_syscall(tid);
		if (group_stop(status))
			ptrace(PTRACE_LISTEN, tid, 0, 0);
		else
			ptrace(PTRACE_SYSCALL, tid, 0, stop_signal(status));
	}
	return result;
}

static pid_t start(char **argv)
{
	int go[2];
	char byte;
	pid_t pid;

	if (pipe(go))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(127);
		close(go[0]);
		execvp(argv[0], argv);
		fprintf(stderr, "kevent-trace: %s: %s\n", argv[0],
			strerror(errno));
		_exit(127);
	}
	/* They end the command, if it wants that. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	if (ptrace(PTRACE_SEIZE, pid, 0, OPTIONS | PTRACE_O_EXITKILL))
		die("PTRACE_SEIZE");
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) || write(go[1], "", 1) != 1)
		die("PTRACE_INTERRUPT");
	close(go[0]);
	close(go[1]);
	return pid;
}

/*
 * Seizes the threads of a folder; returns how many, and if none why. EPERM may also mean that a
 * thread has ended, as the first of a process may long before the others, or that it is traced.
 */
static unsigned int seize_threads(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned int nr = 0;
	int tid, err = ESRCH;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		tid = atoi(entry->d_name);
		if (tid <= 0)
			continue;
		if (ptrace(PTRACE_SEIZE, tid, 0, OPTIONS)) {
			err = errno;
			continue;
		}
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		nr++;
	}
	closedir(dir);
	errno = err;
	return nr;
}

/* All threads that there are; those that a seized one makes are traced as well. */
static void attach(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	if (!seize_threads(path))
		die(path);
	/* One may have been made by another that was not seized yet. */
	while (seize_threads(path))
		;
}

static __attribute__((noreturn)) void usage(int status)
{
	fputs("usage: kevent-trace [-o FILE] COMMAND [ARGUMENT]...\n"
	      "       kevent-trace [-o FILE] -p PID\n"
	      "       kevent-trace --version\n", status ? stderr : stdout);
	exit(status);
}

static pid_t pid_of(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (*end || pid <= 0 || pid > INT32_MAX)
		usage(2);
	return (pid_t)pid;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{}
	};
	int opt, status;
	pid_t pid = 0;

	out = stderr;
	while ((opt = getopt_long(argc, argv, "+o:p:", options, NULL)) != -1) {
		if (opt == 'p')
			pid = pid_of(optarg);
		else if (opt == 'o')
			out = fopen(optarg, "we");
		else if (opt == 'v')
			show_version("kevent-trace");
		else
			usage(opt == 'h' ? 0 : 2);
		if (!out)
			die(optarg);
	}
	if ((optind == argc) != (pid > 0))
		usage(2);
	if (pid)
		attach(pid);
	else
		pid = start(argv + optind);
	status = follow(pid);
	if (ferror(out)) {
		fprintf(stderr, "kevent-trace: not all lines could be written\n");
		status = 1;
	}
	return status;
}
