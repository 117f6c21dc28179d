// SPDX-License-Identifier: GPL-2.0
/*
 * An input runs in a child that is an ordinary user
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "search.h"

#define SECONDS		20	/* by the clock of the guest */

/* Root and the user. Only this thread: in others calls would be interrupted. */
void become(unsigned int uid)
{
	if (syscall(SYS_setresuid, -1, 0, -1) ||
	    syscall(SYS_setresuid, uid, uid, 0))
		abort();
}

/* What others have left to do, such as after a grace period, is done first. */
void settle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 40000000 }, NULL);
}

static void child(const struct input *in, struct cost *cost)
{
	const struct rlimit most = { 8192, 8192 };
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	alarm(SECONDS);
	signal(SIGPIPE, SIG_IGN);
	block_signals();
	setrlimit(RLIMIT_NOFILE, &most);
	become(1000);
	world_begin();
	measure_begin(cost);
	for (i = 0; i < in->nr; i++) {
		open_queues(&in->step[i]);
		step_begins(&in->step[i]);
		do_step(&in->step[i]);
		step_ends(i);
	}
	_exit(0);
}

void run_input(const struct input *in, struct cost *cost)
{
	static struct cost *result;
	int status;
	pid_t pid;

	if (!result)
		result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(result, 0, sizeof(*result));
	settle();
	fflush(NULL);
	pid = fork();
	if (!pid)
		child(in, result);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		result->failed = true;
	kill(-pid, SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	*cost = *result;
}
