// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: copies and the end of descriptors, children, other programs
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <linux/close_range.h>
#include <sys/resource.h>

#include "lane.h"

/* --- copies -------------------------------------------------------------- */

/* @fd was copied to @copy, with the lock. */
static void copied(int fd, int copy)
{
	struct object *o = lane_find(fd);

	if (o && o->kind != PRIVATE && o != lane_find(copy)) {
		o->refs++;
		if (!lane_table_set(copy, o))
			lane_put(o);
	} else if (!o) {
		lane_table_set(copy, NULL);
	}
}

static bool is_private(int fd)
{
	return lane_find_kind(fd, PRIVATE) != NULL;
}

static bool is_watched(int fd)
{
	return lane_find(fd) != NULL;
}

/* stdio of libc, which calls nothing of this object, may use the standard numbers. */
static int leave_for_stdio(int fd, int copy)
{
	return lane_find_kind(fd, CONN) && copy >= 0 && copy <= STDERR_FILENO ?
	       lane_leave(fd, copy == STDIN_FILENO) : 0;
}

#define COPIES(fd, call) \
	({ \
		int copy_; \
		lane_lock(); \
		copy_ = call; \
		if (copy_ >= 0) \
			copied(fd, copy_); \
		lane_unlock(); \
		copy_; \
	})

/* The kernel chooses the number. */
static int copy_to_any(int fd, int command, void *first)
{
	int copy = COPIES(fd, real()->fcntl(fd, command, first)), error;

	if (!leave_for_stdio(fd, copy))
		return copy;
	error = errno;
	close(copy);
	errno = error;
	return -1;
}

EXPORT int dup(int fd)
{
	return is_watched(fd) ? copy_to_any(fd, F_DUPFD, NULL) : real()->dup(fd);
}

/* Where one is the object's own, or stdio could lose bytes */
static bool may_not_copy(int fd, int to)
{
	if (!is_private(fd) && !is_private(to))
		return leave_for_stdio(fd, to);
	errno = is_private(fd) ? EBADF : EBUSY;
	return true;
}

EXPORT int dup2(int fd, int to)
{
	if (!is_watched(fd) && !is_watched(to))
		return real()->dup2(fd, to);
	return may_not_copy(fd, to) ? -1 : COPIES(fd, real()->dup2(fd, to));
}

ALIAS(__dup2, dup2);

EXPORT int dup3(int fd, int to, int flags)
{
	if (!is_watched(fd) && !is_watched(to))
		return real()->dup3(fd, to, flags);
	return may_not_copy(fd, to) ? -1 : COPIES(fd, real()->dup3(fd, to, flags));
}

static int control(int fd, int command, void *arg)
{
	if (!is_watched(fd))
		return real()->fcntl(fd, command, arg);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return copy_to_any(fd, command, arg);
	if (command == F_SETFL && ((long)arg & O_ASYNC) && lane_leave(fd, false))
		return -1;
	return real()->fcntl(fd, command, arg);
}

EXPORT int fcntl(int fd, int command, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	return control(fd, command, arg);
}

ALIAS(fcntl64, fcntl);
ALIAS(__fcntl, fcntl);

/* --- close --------------------------------------------------------------- */

EXPORT int close(int fd)
{
	if (!is_watched(fd))
		return real()->close(fd);
	if (is_private(fd)) {
		errno = EBADF;
		return -1;
	}
	lane_lock();
	lane_table_set(fd, NULL);
	lane_unlock();
	return real()->close(fd);
}

ALIAS(__close, close);

/*
 * Those in between that are streams' own stay. The table of descriptors is copied before the first
 * one is closed, and once.
 */
EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	int fd;

	if (first > last || first > INT_MAX || (flags & ~(int)CLOSE_RANGE_UNSHARE))
		return real()->close_range(first, last, flags);
	if (flags && unshare(CLONE_FILES))
		return -1;
	for (;;) {
		fd = lane_number_of(NULL, (int)first);
		if (fd < 0 || (unsigned int)fd > last)
			return real()->close_range(first, last, 0);
		if ((unsigned int)fd > first &&
		    real()->close_range(first, (unsigned int)fd - 1, 0))
			return -1;
		if (!is_private(fd))
			close(fd);
		if ((unsigned int)fd == last)
			return 0;
		first = (unsigned int)fd + 1;
	}
}

/* Where the kernel has no close_range(), or a filter refuses it, this closes one by one. */
EXPORT void closefrom(int first)
{
	struct rlimit most;
	rlim_t fd;

	if (first < 0)
		first = 0;
	if (!close_range((unsigned int)first, ~0U, 0) || getrlimit(RLIMIT_NOFILE, &most))
		return;
	for (fd = (rlim_t)first; fd < most.rlim_cur && fd < INT_MAX; fd++)
		close((int)fd);
}

/* --- children ------------------------------------------------------------ */

/* The parent of a child that serves an accepted connection closes it before its first use. */
static bool is_for_child(const struct conn *c)
{
	return c->state == CANDIDATE && !c->offers;
}

/* All peers follow at the same time. False: one has not. */
static bool leave_all(void)
{
	bool all_left = true;
	struct conn *c;

	LIST_FOREACH(c, &lane_conns, all)
		if (!is_for_child(c) && lane_conn_try_leave(c) == -EAGAIN)
			all_left = false;
	return all_left;
}

/* Both may use a connection afterwards: it has to be a socket again. */
static void leave_for_child(void)
{
	struct pollfd fds[2];
	int64_t deadline;

	if (lane_settings.forks_alone || LIST_EMPTY(&lane_conns))
		return;
	deadline = lane_deadline(lane_settings.fork_limit);
	while (!leave_all() && !lane_is_over(deadline))
		lane_sleep(fds, 2, deadline, NULL);
}

/* The thread is in fork() of this object: that has left. */
static __thread bool forks __attribute__((tls_model("initial-exec")));

/* Handlers of the program may have locked its allocator before. */
static void before_fork(void)
{
	struct conn *c;

	lane_lock();
	if (!forks)
		leave_for_child();
	if (lane_settings.forks_alone)
		return;
	LIST_FOREACH(c, &lane_conns, all)
		if (is_for_child(c) && !lane_rest_share(c))
			lane_conn_try_leave(c);
}

static void in_parent(void)
{
	if (forks)
		lane_unlock_only();
	else
		lane_unlock();
}

static void in_child(void)
{
	lane_forget_parent();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* libc calls its own in daemon() and forkpty(). */
EXPORT pid_t fork(void)
{
	pid_t pid;

	lane_lock();
	leave_for_child();
	lane_unlock();
	forks = true;
	pid = real()->fork();
	forks = false;
	return pid;
}

ALIAS(__fork, fork);

/* Its child would change the table of the parent. */
EXPORT pid_t vfork(void)
{
	return fork();
}

ALIAS(__vfork, vfork);
/* It runs none of the functions above. */
ALIAS(_Fork, vfork);

/* --- other programs ------------------------------------------------------ */

/*
 * A program that is begun with a descriptor gets a socket. If the peer does not follow, or
 * bytes from memory are left, it gets no descriptor, and so an error when it uses it.
 */
static void before_exec(void)
{
	struct conn *c;
	struct hold h;
	int fd, flags;
	bool left;

	if (LIST_EMPTY(&lane_conns))
		return;
	lane_lock();
	for (fd = lane_number_of(NULL, 0); fd >= 0; fd = lane_number_of(NULL, fd + 1)) {
		c = lane_find_kind(fd, CONN);
		flags = real()->fcntl(fd, F_GETFD);
		if (!c || flags < 0 || (flags & FD_CLOEXEC))
			continue;
		lane_hold(&h, &c->o);
		left = !lane_conn_leave(c, lane_deadline(lane_settings.fork_limit)) &&
		       !lane_has_rest(c);
		lane_release(&h);
		if (left)
			continue;
		real()->fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
		lane_say("not passed on, its bytes are in memory", fd);
	}
	lane_unlock();
}

#define EXECS(type, name, params, args) \
	EXPORT type name params \
	{ \
		before_exec(); \
		return real()->name args; \
	}

EXECS(int, execve, (const char *path, char *const argv[], char *const envp[]),
      (path, argv, envp))
EXECS(int, execvpe, (const char *file, char *const argv[], char *const envp[]),
      (file, argv, envp))
EXECS(int, fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp))
EXECS(int, execveat,
      (int fd, const char *path, char *const argv[], char *const envp[], int flags),
      (fd, path, argv, envp, flags))
EXECS(int, posix_spawn,
      (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
       const posix_spawnattr_t *attr, char *const argv[], char *const envp[]),
      (pid, path, actions, attr, argv, envp))
EXECS(int, posix_spawnp,
      (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
       const posix_spawnattr_t *attr, char *const argv[], char *const envp[]),
      (pid, file, actions, attr, argv, envp))
EXECS(int, system, (const char *command), (command))
EXECS(FILE *, popen, (const char *command, const char *mode), (command, mode))

ALIAS(_IO_popen, popen);

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The arguments of @ap behind @first, and the environment for execle() */
#define EXEC_LIST(name, call, envp) \
	EXPORT int name(const char *path, const char *first, ...) \
	{ \
		char *const *env = environ; \
		int nr = 1, i; \
		va_list ap; \
		\
		va_start(ap, first); \
		while (nr++ < INT_MAX - 1 && va_arg(ap, char *)) \
			; \
		va_end(ap); \
		char *argv[nr + 1]; \
		va_start(ap, first); \
		argv[0] = (char *)first; \
		for (i = 1; i < nr; i++) \
			argv[i] = va_arg(ap, char *); \
		if (envp) \
			env = va_arg(ap, char *const *); \
		va_end(ap); \
		return call(path, argv, env); \
	}

EXEC_LIST(execl, execve, false)
EXEC_LIST(execlp, execvpe, false)
EXEC_LIST(execle, execve, true)

EXPORT int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int to)
{
	if (lane_find_kind(fd, CONN) && lane_leave(fd, true))
		return errno;
	return real()->posix_spawn_file_actions_adddup2(actions, fd, to);
}
