// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Learn how a child has ended, without SIGCHLD
 */
#include <libkevent.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int queue = kevent_init(NULL, 0, 0);
	struct ukevent ev;
	int status = 0;
	pid_t pid;

	if (queue < 0) {
		fprintf(stderr, "proc: %s\n", kevent_strerror(queue));
		return 1;
	}
	pid = fork();
	if (!pid)
		_exit(42);
	/* It may have ended by now: that is reported all the same. */
	kevent_set_proc(&ev, pid, 0, 0);
	if (kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev) ||
	    kevent_get_events(queue, 1, 1, NULL, &ev, 0) != 1)
		return 1;
	if (!kevent_wait_status(&ev, &status) || !WIFEXITED(status))
		return 1;
	printf("process %d exited with %d\n", kevent_pid(&ev),
	       WEXITSTATUS(status));
	waitpid(pid, NULL, 0);
	return WEXITSTATUS(status) != 42;
}
