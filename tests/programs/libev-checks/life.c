// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors and loops that come, go and are shared
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Without an event in between, so that the kernel still has the watch */
static void start_and_stop(struct ev_loop *loop, struct counter *c, int fd[2])
{
	want(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	counter_start(loop, c, fd[0], EV_READ);
	run_for(loop, 0.01);
	ev_io_stop(loop, &c->io);
	run_for(loop, 0.01);
}

static void started_again(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2];

	start_and_stop(loop, &c, fd);
	ev_io_start(loop, &c.io);
	put(fd[1]);
	run_until(loop, &c.calls, 1);
	ev_io_stop(loop, &c.io);
	ev_io_start(loop, &c.io);
	run_until(loop, &c.calls, 2);
	want(check_inits == (check_backend == EVBACKEND_KEVENT));
}

static void started_again_with_other_events(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2];

	start_and_stop(loop, &c, fd);
	counter_start(loop, &c, fd[0], EV_WRITE);
	run_until(loop, &c.calls, 1);
	ev_io_stop(loop, &c.io);
	ev_io_modify(&c.io, EV_READ);
	ev_io_start(loop, &c.io);
	c.calls = 0;
	run_for(loop, 0.01);
	want(!c.calls);
	put(fd[1]);
	run_until(loop, &c.calls, 1);
	want(c.revents == EV_READ);
	want(check_inits == (check_backend == EVBACKEND_KEVENT));
}

/*
 * libev does not see that the descriptor is no longer watched before its event.
 */
static void stopped_but_open_does_not_spin(struct ev_loop *loop)
{
	struct counter c = {};
	unsigned int before;
	int fd[2];

	make_pipe(fd);
	put(fd[1]);
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
	ev_io_stop(loop, &c.io);
	before = ev_iteration(loop);
	run_for(loop, 0.05);
	want(ev_iteration(loop) - before <= 5);
	want(c.calls == 1);
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
}

static void closed_and_reused(struct ev_loop *loop)
{
	struct counter c = {}, other = {};
	int fd[2], new[2], alive;

	make_pipe(fd);
	make_pipe(new);
	alive = fcntl(fd[0], F_DUPFD, 50);
	counter_start(loop, &c, fd[0], EV_READ);
	run_for(loop, 0.01);
	ev_io_stop(loop, &c.io);
	close(fd[0]);
	want(dup(new[0]) == fd[0]);
	counter_start(loop, &other, fd[0], EV_READ);
	put(fd[1]);
	run_for(loop, 0.05);
	want(!c.calls && !other.calls);
	put(new[1]);
	run_until(loop, &other.calls, 1);
	want(!c.calls);
	close(alive);
}

static void closed_while_watched(struct ev_loop *loop)
{
	struct counter c = {};
	unsigned int before;
	int fd[2], new[2];

	make_pipe(fd);
	make_pipe(new);
	counter_start(loop, &c, fd[0], EV_READ);
	run_for(loop, 0.01);
	close(fd[0]);
	before = ev_iteration(loop);
	run_for(loop, 0.02);
	want(!c.calls);
	want(ev_iteration(loop) - before <= 5);
	want(dup(new[0]) == fd[0]);
	ev_io_stop(loop, &c.io);
	counter_start(loop, &c, fd[0], EV_READ);
	put(new[1]);
	run_until(loop, &c.calls, 1);
}

static void dup_is_another_descriptor(struct ev_loop *loop)
{
	struct counter a = {}, b = {};
	int fd[2], copy;

	make_pipe(fd);
	copy = dup(fd[0]);
	counter_start(loop, &a, fd[0], EV_READ);
	counter_start(loop, &b, copy, EV_READ);
	put(fd[1]);
	run_until(loop, &a.calls, 1);
	run_until(loop, &b.calls, 1);
	ev_io_stop(loop, &a.io);
	close(fd[0]);
	a.calls = 0;
	b.calls = 0;
	run_until(loop, &b.calls, 3);
	want(!a.calls);
}

static void dup2_over_a_watched_one(struct ev_loop *loop)
{
	struct counter c = {};
	int old[2], new[2];

	make_pipe(old);
	make_pipe(new);
	counter_start(loop, &c, old[0], EV_READ);
	run_for(loop, 0.01);
	want(dup2(new[0], old[0]) == old[0]);
	ev_io_stop(loop, &c.io);
	counter_start(loop, &c, old[0], EV_READ);
	run_for(loop, 0.01);
	want(!c.calls);
	put(new[1]);
	run_until(loop, &c.calls, 1);
	want(dup2(new[1], old[0]) == old[0]);
	ev_io_stop(loop, &c.io);
	counter_start(loop, &c, old[0], EV_READ | EV_WRITE);
	run_until(loop, &c.calls, 1);
	want(c.revents == EV_WRITE);
}

static int sleep_for_ever(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	return 0;
}

/* Its file is still open in the table that we leave, so its events continue. */
static void in_an_unshared_table(struct ev_loop *loop, int reuse)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct counter c = {}, other = {};
	unsigned int before;
	int fd[2], new[2];
	pid_t pid;

	make_pipe(fd);
	make_pipe(new);
	counter_start(loop, &c, fd[0], EV_READ);
	run_for(loop, 0.01);
	pid = clone(sleep_for_ever, stack + sizeof(stack),
		    CLONE_FILES | SIGCHLD, NULL);
	want(pid > 0);
	want(!unshare(CLONE_FILES));
	ev_io_stop(loop, &c.io);
	close(fd[0]);
	if (reuse)
		want(dup(new[0]) == fd[0]);
	put(fd[1]);
	counter_start(loop, &other, reuse ? fd[0] : new[0], EV_READ);
	before = ev_iteration(loop);
	run_for(loop, 0.05);
	want(ev_iteration(loop) - before <= 10);
	want(!c.calls && !other.calls);
	put(new[1]);
	run_until(loop, &other.calls, 1);
	kill(pid, SIGKILL);
}

static void closed_in_an_unshared_table(struct ev_loop *loop)
{
	in_an_unshared_table(loop, 0);
}

static void reused_in_an_unshared_table(struct ev_loop *loop)
{
	in_an_unshared_table(loop, 1);
}

static void two_loops_are_both_notified(struct ev_loop *loop)
{
	struct ev_loop *second = ev_loop_new(0);
	struct counter a = {}, b = {};
	int fd[2];

	want(second && ev_backend(second) == check_backend);
	make_pipe(fd);
	counter_start(loop, &a, fd[0], EV_READ);
	counter_start(second, &b, fd[0], EV_READ);
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(second, EVRUN_NOWAIT);
	put(fd[1]);
	run_until(second, &b.calls, 1);
	run_until(loop, &a.calls, 1);
	ev_loop_destroy(second);
}

static void wait_for(pid_t pid)
{
	int status;

	want(waitpid(pid, &status, 0) == pid);
	want(!status);
}

/* Both loops have the pipe when it gets a byte. */
static void forked(struct ev_loop *loop, int how)
{
	struct counter c = {};
	int fd[2], go[2];
	pid_t pid;
	char byte;

	make_pipe(fd);
	want(!pipe(go));
	counter_start(loop, &c, fd[0], EV_READ);
	run_for(loop, 0.01);
	pid = fork();
	want(pid >= 0);
	if (!pid) {
		if (how)
			ev_loop_fork(loop);
		run_for(loop, 0.01);
		put(go[1]);
		run_until(loop, &c.calls, 1);
		want(ev_backend(loop) == check_backend);
		_exit(0);
	}
	want(read(go[0], &byte, 1) == 1);
	put(fd[1]);
	wait_for(pid);
	run_until(loop, &c.calls, 1);
}

static void fork_and_loop_fork(struct ev_loop *loop)
{
	forked(loop, 1);
}

/* Changes that the old queue has not got are dropped. */
static void loop_fork_with_changes(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2];

	make_pipe(fd);
	counter_start(loop, &c, fd[0], EV_READ);
	run_for(loop, 0.01);
	ev_io_stop(loop, &c.io);
	put(fd[1]);
	ev_run(loop, EVRUN_NOWAIT);
	ev_loop_fork(loop);
	ev_run(loop, EVRUN_NOWAIT);
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
}

/* The same as daemon() after ev_default_loop() */
static void fork_without_loop_fork(struct ev_loop *loop)
{
	forked(loop, 0);
}

static void fork_is_noticed(struct ev_loop *loop)
{
	ev_loop_destroy(loop);
	want(ev_default_loop(EVFLAG_FORKCHECK) == loop);
	forked(loop, 0);
}

static void embedded(struct ev_loop *loop, unsigned int outer_backend)
{
	struct ev_loop *outer = ev_loop_new(outer_backend | EVFLAG_NOENV);
	struct counter inner = { .drain = 1 }, own = { .drain = 1 };
	unsigned int before;
	ev_embed embed;
	int fd[2], other[2], i;

	want(outer && ev_backend(outer) == outer_backend);
	want(ev_embeddable_backends() & check_backend);
	make_pipe(fd);
	make_pipe(other);
	ev_embed_init(&embed, NULL, loop);
	ev_embed_start(outer, &embed);
	counter_start(loop, &inner, fd[0], EV_READ);
	counter_start(outer, &own, other[0], EV_READ);
	for (i = 1; i <= 10; i++) {
		put(fd[1]);
		run_until(outer, &inner.calls, i);
		put(other[1]);
		run_until(outer, &own.calls, i);
	}
	before = ev_iteration(outer);
	run_for(outer, 0.05);
	want(ev_iteration(outer) - before <= 6);
	want(inner.calls == 10 && own.calls == 10);
	ev_embed_stop(outer, &embed);
}

static void embedded_in_select(struct ev_loop *loop)
{
	embedded(loop, EVBACKEND_SELECT);
}

static void embedded_in_poll(struct ev_loop *loop)
{
	embedded(loop, EVBACKEND_POLL);
}

static void embedded_in_epoll(struct ev_loop *loop)
{
	embedded(loop, EVBACKEND_EPOLL);
}

/* An epoll file is watched like any other. A loop whose queue cannot changes to epoll. */
static void watched_epoll(struct ev_loop *loop)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct counter a = { .drain = 1 }, b = {};
	int epoll = epoll_create1(0), fd[2], other[2];

	make_pipe(fd);
	make_pipe(other);
	counter_start(loop, &a, other[0], EV_READ);
	put(other[1]);
	run_until(loop, &a.calls, 1);
	want(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd[0], &ev));
	counter_start(loop, &b, epoll, EV_READ);
	run_for(loop, 0.01);
	want(!b.calls);
	put(fd[1]);
	run_until(loop, &b.calls, 1);
	put(other[1]);
	run_until(loop, &a.calls, 2);
}

/* Signals that come while the loop does not wait need no wake-up. */
static void one_event(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2];

	make_pipe(fd);
	put(fd[1]);
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
	ev_io_stop(loop, &c.io);
}

static void ring_bell(struct ev_loop *loop, ev_async *async, int revents)
{
	(void)loop;
	(void)revents;
	++*(int *)async->data;
}

static void *send_async(void *arg)
{
	void **at = arg;

	ev_async_send(at[0], at[1]);
	return NULL;
}

static void async_from_a_thread(struct ev_loop *loop)
{
	int i, calls = 0;
	ev_async async;
	void *arg[2] = { loop, &async };
	pthread_t thread;

	ev_async_init(&async, ring_bell);
	async.data = &calls;
	ev_async_start(loop, &async);
	for (i = 1; i <= 20; i++) {
		want(!pthread_create(&thread, NULL, send_async, arg));
		run_until(loop, &calls, i);
		want(!pthread_join(thread, NULL));
	}
	one_event(loop);
}

static void ended(struct ev_loop *loop, ev_child *child, int revents)
{
	(void)loop;
	(void)revents;
	want(WEXITSTATUS(child->rstatus) == 3);
	++*(int *)child->data;
}

static void signalled(struct ev_loop *loop, ev_signal *sig, int revents)
{
	(void)loop;
	(void)revents;
	++*(int *)sig->data;
}

static void signals_and_children(struct ev_loop *loop)
{
	int signals = 0, children = 0;
	ev_signal sig;
	ev_child child;
	pid_t pid;

	ev_signal_init(&sig, signalled, SIGUSR1);
	sig.data = &signals;
	ev_signal_start(loop, &sig);
	run_for(loop, 0.01);
	pid = fork();
	want(pid >= 0);
	if (!pid) {
		kill(getppid(), SIGUSR1);
		_exit(3);
	}
	ev_child_init(&child, ended, pid, 0);
	child.data = &children;
	ev_child_start(loop, &child);
	run_until(loop, &signals, 1);
	run_until(loop, &children, 1);
	one_event(loop);
}

static void destroyed_and_made_again(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2], i;

	make_pipe(fd);
	put(fd[1]);
	for (i = 0; i < 3; i++) {
		counter_start(loop, &c, fd[0], EV_READ);
		run_until(loop, &c.calls, 1);
		ev_io_stop(loop, &c.io);
		ev_loop_destroy(loop);
		want(ev_default_loop(0) == loop);
	}
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
}


/* On epoll it has to wait for another event */
static void error_at_the_limit_of_watches(struct ev_loop *loop)
{
	const char *path = check_backend == EVBACKEND_KEVENT ?
		"/proc/sys/fs/kevent/max_user_bytes" :
		"/proc/sys/fs/epoll/max_user_watches";
	struct counter c = {}, other = {};
	int fd[2], more[2];
	char old[32] = "";

	make_pipe(fd);
	make_pipe(more);
	counter_start(loop, &c, fd[0], EV_READ);
	ev_run(loop, EVRUN_NOWAIT);
	read_file(path, old, sizeof(old) - 1);
	write_file(path, "1");
	counter_start(loop, &other, more[0], EV_READ);
	if (check_backend == EVBACKEND_EPOLL)
		put(fd[1]);
	ev_run(loop, EVRUN_ONCE);
	write_file(path, old);
	want(other.calls == 1 && other.revents & EV_ERROR);
	want(!ev_is_active(&other.io));
	put(fd[1]);
	run_until(loop, &c.calls, 3);
}

/* A hundred new watchers, then none: one call per iteration */
static void changes_take_no_calls(struct ev_loop *loop)
{
	struct counter c[100] = {};
	unsigned long before;
	int fd[2], i;

	make_pipe(fd);
	put(fd[1]);
	counter_start(loop, &c[0], fd[0], EV_READ);
	run_until(loop, &c[0].calls, 1);
	before = check_waits;
	for (i = 1; i < 100; i++) {
		make_pipe(fd);
		counter_start(loop, &c[i], fd[0], EV_READ);
	}
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	for (i = 1; i < 100; i += 2) {
		ev_io_stop(loop, &c[i].io);
		close(c[i].io.fd);
	}
	ev_run(loop, EVRUN_NOWAIT);
	want(check_waits - before ==
	     (check_backend == EVBACKEND_KEVENT ? 3 : 0));
}

/* kevent may be disabled while there are events: the loop changes to epoll. */
static void disabled_before_loop_fork(struct ev_loop *loop)
{
	struct counter c = {};
	int fd[2];

	make_pipe(fd);
	put(fd[1]);
	counter_start(loop, &c, fd[0], EV_READ);
	run_until(loop, &c.calls, 1);
	write_file("/proc/sys/kernel/kevent_disabled", "2");
	ev_loop_fork(loop);
	c.calls = 0;
	ev_run(loop, EVRUN_ONCE);
	write_file("/proc/sys/kernel/kevent_disabled", "0");
	run_until(loop, &c.calls, 2);
}

const struct check life_checks[] = {
	{ "started_again", started_again },
	{ "started_again_with_other_events", started_again_with_other_events },
	{ "stopped_but_open_does_not_spin", stopped_but_open_does_not_spin },
	{ "closed_and_reused", closed_and_reused },
	{ "closed_while_watched", closed_while_watched },
	{ "dup_is_another_descriptor", dup_is_another_descriptor },
	{ "dup2_over_a_watched_one", dup2_over_a_watched_one },
	{ "closed_in_an_unshared_table", closed_in_an_unshared_table },
	{ "reused_in_an_unshared_table", reused_in_an_unshared_table },
	{ "two_loops_are_both_notified", two_loops_are_both_notified },
	{ "fork_and_loop_fork", fork_and_loop_fork },
	{ "loop_fork_with_changes", loop_fork_with_changes },
	{ "fork_without_loop_fork", fork_without_loop_fork },
	{ "fork_is_noticed", fork_is_noticed },
	{ "embedded_in_select", embedded_in_select },
	{ "embedded_in_poll", embedded_in_poll },
	{ "embedded_in_epoll", embedded_in_epoll },
	{ "watched_epoll", watched_epoll, .ends_on_epoll_with_module = true },
	{ "async_from_a_thread", async_from_a_thread },
	{ "signals_and_children", signals_and_children },
	{ "destroyed_and_made_again", destroyed_and_made_again },
	{ "changes_take_no_calls", changes_take_no_calls },
	{ "error_at_the_limit_of_watches", error_at_the_limit_of_watches },
	{ "disabled_before_loop_fork", disabled_before_loop_fork, .ends_on_epoll = true,
	  .not_with_module = true },
	{ NULL }
};
