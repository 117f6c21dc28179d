/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of sources/process.c to the kernel; a part of host.h
 */
#ifndef _KEVENT_HOST_PROCESS_H
#define _KEVENT_HOST_PROCESS_H

#include <linux/lockdep.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

/* Processes. Between these two none exits, is reaped or execs. */

static inline void host_tasks_lock(void)
{
	read_lock(&tasklist_lock);
}

static inline void host_tasks_unlock(void)
{
	read_unlock(&tasklist_lock);
}

/* In the wake-up of &pid.wait_pidfd */
static inline void host_tasks_assert(void)
{
	lockdep_assert_held(&tasklist_lock);
}

/* May the current task read @task's /proc/<pid>/stat in full? */
static inline bool host_may_read_stat(struct task_struct *task)
{
	return ptrace_may_access(task, PTRACE_MODE_READ_FSCREDS |
				       PTRACE_MODE_NOAUDIT);
}

/* Could it be looked at, and can it therefore, by those with the same credentials? */
static inline bool host_is_dumpable(struct task_struct *task)
{
	return task->user_dumpable;
}

static inline struct pid *host_pidfd_pid(unsigned int fd)
{
	unsigned int flags;

	return pidfd_get_pid(fd, &flags);
}

#endif /* _KEVENT_HOST_PROCESS_H */
