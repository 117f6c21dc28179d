// SPDX-License-Identifier: GPL-2.0
/*
 * A sequence runs in a child with a time limit: a wake-up that is lost, a crash and a
 * difference are failures alike.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fuzz.h"

#define SECONDS	60	/* of a sequence */
#define PHASES	10	/* of a storm */

bool naps;

static struct outcome *shared;

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void fail(const char *fmt, ...)
{
	char text[sizeof(shared->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	emit_end(text);
	if (!shared) {
		fprintf(stderr, "%s\n", text);
		_exit(2);
	}
	shared->failed = true;
	shared->step = W.step;
	strcpy(shared->text, text);
	_exit(1);
}

static void run_here(const struct sequence *s)
{
	open_world(!strcmp(getenv("KEVENT_BACKEND") ?: "", "epoll") ||
		   kevent_supported());
	for (W.step = 0; W.step < s->nr; W.step++) {
		shared->step = W.step;
		do_op(&s->op[W.step]);
		shared->names = W.names;
	}
	shared->entries = W.entries;
}

static void replay(const void *arg)
{
	signal(SIGPIPE, SIG_IGN);
	block_signals();
	run_here(arg);
	emit_end("no difference");
}

static void run_storm_here(const void *arg)
{
	shared->entries = storm(*(const uint64_t *)arg, PHASES);
}

static void child(void (*fn)(const void *arg), const void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	alarm(SECONDS);
	fn(arg);
	_exit(0);
}

static void run_child(void (*fn)(const void *arg), const void *arg,
		      struct outcome *out)
{
	int status = 0;
	pid_t pid;

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(shared, 0, sizeof(*shared));
	fflush(NULL);
	pid = fork();
	if (!pid)
		child(fn, arg);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		shared->failed = true;
	/* Children of a sequence that failed */
	kill(-pid, SIGKILL);
	if (shared->names)
		remove_files(pid);
	if (status && !shared->failed) {
		shared->failed = true;
		snprintf(shared->text, sizeof(shared->text),
			 WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ?
			 "it does not end" : "it dies with status %#x",
			 status);
	}
	*out = *shared;
}

void run_sequence(const struct sequence *s, struct outcome *out)
{
	run_child(replay, s, out);
}

void run_storm(uint64_t seed, struct outcome *out)
{
	run_child(run_storm_here, &seed, out);
}
