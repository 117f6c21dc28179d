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
	pid_t pid;

	if (queue < 0)
		return 1;
	pid = fork();
	if (!pid)
		_exit(42);
	/* It may have ended by now: then ALWAYS_QUEUE reports it all the same. */
	kevent_set_proc(&ev, pid, KEVENT_REQ_ALWAYS_QUEUE, 0);
	if (kevent_ctl_one(queue, KEVENT_CTL_ADD, &ev) ||
	    kevent_get_events(queue, 1, 1, NULL, &ev, 0) != 1)
		return 1;
	if (!(ev.ret_data[1] & KEVENT_PROC_STATUS) ||
	    !WIFEXITED(ev.ret_data[0]))
		return 1;
	printf("process %u exited with %d\n", ev.id.raw[0],
	       WEXITSTATUS(ev.ret_data[0]));
	waitpid(pid, NULL, 0);
	return WEXITSTATUS(ev.ret_data[0]) != 42;
}
