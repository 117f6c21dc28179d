// SPDX-License-Identifier: GPL-2.0
/*
 * How the module learns that a descriptor was closed
 *
 * Each descriptor that leaves a file table comes to locks_remove_posix(), by filp_flush() or
 * filp_close(), with the arguments of kevent_flush() in patches/linux, and before its
 * reference to the file is dropped. ftrace calls close_hook() at its entry. If that was ever missed
 * a file would end with a watch, whose wait queue is gone. So:
 *
 * - FTRACE_OPS_FL_PERMANENT: kernel.ftrace_enabled=0 fails while the hook is there, and
 *   other tracers of the function call it beside their own.
 * - The module is not loaded where the hook does not hear of a close that it makes itself
 *   (hook_test()), nor built for a kernel with LTO, where the function may be inlined.
 * - The hook comes with the first queue, and stays until the module goes, which no queue, no
 *   watch that is on its way out and no callback may outlive: see main.c.
 * - With the parameter "check" a second hook at the end of each file warns when a watch is left.
 *
 * fcntl() calls the function too, and a close that is refused: a watch is dropped only if the slot
 * of its descriptor in the table has another file, see core/close.c.
 *
 * The callback must not sleep: what removes a watch takes spinlocks only, but for later.c.
 */

#include <linux/file.h>
#include <linux/ftrace.h>

#define CLOSE_FUNCTION	"locks_remove_posix"
#define END_FUNCTION	"locks_remove_file"

/* Not in line: the hook of most files needs no stack. */
static noinline void close_of_some(struct file *file, fl_owner_t table)
{
	if (host_is_watched(file))
		__kevent_flush(file, table);
}

static void notrace close_hook(unsigned long ip, unsigned long parent,
			       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct file *file = (void *)compat_ftrace_arg(fregs, 0);

	if (unlikely(atomic_read(host_watched_count(file))))
		close_of_some(file, (fl_owner_t)compat_ftrace_arg(fregs, 1));
}

static void end_hook(unsigned long ip, unsigned long parent,
		     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	WARN_ONCE(host_is_watched((void *)compat_ftrace_arg(fregs, 0)),
		  "kevent: a file ends with a watch\n");
}

/* CLOCK_REALTIME was set, or the system was resumed. */
static void clock_hook(unsigned long ip, unsigned long parent,
		       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	kevent_clock_was_set();
}

/* Functions whose calls the module hears of */
struct hook {
	struct ftrace_ops	ops;
	const char		*where[2];
	bool			on;		/* registered; under hooks_lock */
};

static struct hook at_close = {
	.ops	= { .func = close_hook, .flags = FTRACE_OPS_FL_PERMANENT },
	.where	= { CLOSE_FUNCTION },
};

static struct hook at_end = {
	.ops	= { .func = end_hook, .flags = FTRACE_OPS_FL_PERMANENT },
	.where	= { END_FUNCTION },
};

static struct hook at_clock = {
	.ops	= { .func = clock_hook, .flags = FTRACE_OPS_FL_PERMANENT },
	.where	= { "timerfd_clock_was_set", "timerfd_resume_work" },
};

static bool check_ends;
module_param_named(check, check_ends, bool, 0444);
MODULE_PARM_DESC(check, "Warn when a file ends with a watch. For tests: each file's end pays for it.");

static DEFINE_MUTEX(hooks_lock);
/* All hooks are there, for good; written under hooks_lock. */
static bool hooked;

static int hook_filter(struct hook *hook)
{
	char name[32];
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(hook->where) && hook->where[i] && !err; i++) {
		strscpy(name, hook->where[i], sizeof(name));
		err = ftrace_set_filter(&hook->ops, name, strlen(name), !i);
	}
	return err;
}

static int hook_on(struct hook *hook)
{
	int err = hook->on ? 0 : register_ftrace_function(&hook->ops);

	if (!err)
		hook->on = true;
	return err;
}

static void hook_off(struct hook *hook)
{
	if (hook->on)
		unregister_ftrace_function(&hook->ops);
	hook->on = false;
}

/* A queue is about to be made. 0, or -errno if it must not be. */
int host_close_needed(void)
{
	int err;

	/* Pairs with the store below. */
	if (likely(smp_load_acquire(&hooked)))
		return 0;
	mutex_lock(&hooks_lock);
	err = hook_on(&at_close) ?: hook_on(&at_clock);
	if (!err && check_ends)
		err = hook_on(&at_end);
	if (!err)
		/* Pairs with the load above. */
		smp_store_release(&hooked, true);
	mutex_unlock(&hooks_lock);
	return err;
}

/* Whether the hook works */

static struct file *test_file;
static fl_owner_t test_owner;

static void test_hook(unsigned long ip, unsigned long parent,
		      struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	if ((void *)compat_ftrace_arg(fregs, 0) == READ_ONCE(test_file))
		test_owner = (fl_owner_t)compat_ftrace_arg(fregs, 1);
}

static const struct file_operations test_fops = {
	.owner	= THIS_MODULE,
};

static int test_close(void)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[kevent-test]", &test_fops, NULL, O_RDWR);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	WRITE_ONCE(test_file, file);
	fd_install(fd, get_file(file));
	close_fd(fd);
	WRITE_ONCE(test_file, NULL);
	/* Here, not on the way to user mode: if the load fails its operations are gone then. */
	host_fput(file);
	return test_owner == current->files ? 0 : -EOPNOTSUPP;
}

static int hook_test(void)
{
	int err;

	at_close.ops.func = test_hook;
	err = hook_on(&at_close) ?: test_close();
	hook_off(&at_close);
	at_close.ops.func = close_hook;
	return err;
}

/* See that the hook works. If not, the log says so. */
int host_close_start(void)
{
	int err = hook_filter(&at_close) ?: hook_filter(&at_clock) ?:
		  hook_filter(&at_end) ?: hook_test();

	if (err)
		pr_err("kevent: a close does not lead to %s(), which ftrace watches: %d\n",
		       CLOSE_FUNCTION, err);
	return err;
}

/* Once and for all. What it filters by is memory of ftrace's. */
static void hook_end(struct hook *hook)
{
	hook_off(hook);
	ftrace_free_filter(&hook->ops);
}

/* No queue is left, nor will be. Returns when no task is in a hook. */
void host_close_stop(void)
{
	hook_end(&at_end);
	hook_end(&at_clock);
	hook_end(&at_close);
	/* One that entered before may be on its way out. */
	synchronize_rcu_tasks();
}
