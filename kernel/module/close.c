// SPDX-License-Identifier: GPL-2.0
/*
 * How the module learns that a descriptor was closed
 *
 * Each descriptor that leaves a file table comes to locks_remove_posix(), by filp_flush() or
 * filp_close(), with the arguments of kevent_flush() in patches/linux, and before its
 * reference to the file is dropped. ftrace calls close_hook() at its entry. If that was ever missed
 * a file would end with a watch, whose wait queue is gone: Documentation/module.rst says what is
 * done against that.
 *
 * fcntl() calls the function too, and a close that is refused: a watch is dropped only if the slot
 * of its descriptor in the table has another file, see core/fd_close.c.
 *
 * The callback must not wait for others: but for later.c, what removes a watch takes spinlocks
 * only.
 */

#include <linux/file.h>
#include <linux/ftrace.h>

#define CLOSE_FUNCTION	"locks_remove_posix"
/* Has the same arguments, and calls ->flush() before that. */
#if compat_before(6, 12)
#define FLUSH_FUNCTION	"filp_close"
#else
#define FLUSH_FUNCTION	"filp_flush"
#endif

static void notrace close_hook(unsigned long ip, unsigned long parent,
			       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct file *file = (void *)compat_ftrace_arg(fregs, 0);

	/*
	 * ADD puts the watch there, and then checks the descriptor again under file_lock. The close
	 * cleared the descriptor under that lock before this.
	 */
	if (unlikely(!hlist_bl_empty(host_tag_place(file))))
		__kevent_flush(file, (fl_owner_t)compat_ftrace_arg(fregs, 1));
}

static void end_hook(unsigned long ip, unsigned long parent,
		     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	guard(rcu)();
	WARN_ONCE(host_watches((void *)compat_ftrace_arg(fregs, 0)),
		  "kevent: a file ends with a watch\n");
}

/* CLOCK_REALTIME was set, or the system was resumed. */
static void clock_hook(unsigned long ip, unsigned long parent,
		       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	kevent_clock_was_set();
}

/*
 * exit_files() of the current task, or do_close_on_exec() of its table. The one comes after the
 * last thread was counted out, the other when no other thread is left.
 */
static void leave_hook(unsigned long ip, unsigned long parent,
		       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	void *arg = (void *)compat_ftrace_arg(fregs, 0);
	bool watched;

	if (arg != current->files &&
	    (arg != current || atomic_read(&current->signal->live)))
		return;
	scoped_guard(rcu)
		watched = host_signals(current->signal);
	if (watched)
		__kevent_drop_signals();
}

static bool check_ends;
module_param_named(check, check_ends, bool, 0444);
MODULE_PARM_DESC(check, "Warn when a file ends with a watch. For tests: each file's end pays for it.");

#define HOOK(function, name)						\
	{ .ops = { .func = function, .flags = FTRACE_OPS_FL_PERMANENT },	\
	  .where = name }

/* Functions whose calls the module hears of: all depends on the first, the last is for tests. */
static struct hook {
	struct ftrace_ops	ops;
	char			where[24];
} hooks[] = {
	HOOK(close_hook, CLOSE_FUNCTION),
	HOOK(clock_hook, "timerfd_clock_was_set"),
	HOOK(clock_hook, "timerfd_resume_work"),
	HOOK(leave_hook, "exit_files"),
	HOOK(leave_hook, "do_close_on_exec"),
	HOOK(end_hook, "locks_remove_file"),
};

/*
 * Where ->flush() may wait, a watch must not report meanwhile: others get the number of its
 * descriptor. Files have that method from the first such watch on.
 */
static struct hook flush_hook = HOOK(close_hook, FLUSH_FUNCTION);

static DEFINE_MUTEX(hooks_lock);
/* All hooks are there, for good, or that of ->flush() is; written under hooks_lock. */
static bool hooked, flush_hooked;

static bool is_on(const struct hook *hook)
{
	return hook->ops.flags & FTRACE_OPS_FL_ENABLED;
}

/* Why there is no hook: of 0 nothing is said. */
static void say_why(const char *where, int err)
{
	if (err == -EBUSY)
		pr_err_ratelimited("kevent: ftrace is switched off, by which a close is heard of: sysctl kernel.ftrace_enabled=1 switches it on\n");
	else if (err)
		pr_err_ratelimited("kevent: ftrace does not tell of calls of %s(): %d\n",
				   where, err);
}

/*
 * Take a hook away. ftrace does not if it has failed before, anywhere: then the code that it calls
 * must stay, for good, and so do the module and its rmmod.
 */
static void hook_off(struct hook *hook)
{
	bool said = false;
	int err;

	while (is_on(hook)) {
		err = unregister_ftrace_function(&hook->ops);
		if (err && !said)
			pr_err("kevent: ftrace goes on to call the module from %s(): %d. It cannot be unloaded before the next boot.\n",
			       hook->where, err);
		said = err;
		if (err)
			schedule_timeout_idle(10 * HZ);
	}
}

static int hook_on(struct hook *hook)
{
	return ftrace_set_filter(&hook->ops, hook->where, strlen(hook->where), true) ?:
	       register_ftrace_function(&hook->ops);
}

/* A file with ->flush() is about to be watched. The watch is as safe without this hook. */
static void flush_needed(void)
{
	int err;

	/* Pairs with the store below. */
	if (likely(smp_load_acquire(&flush_hooked)))
		return;
	mutex_lock(&hooks_lock);
	err = flush_hooked ? 0 : hook_on(&flush_hook);
	/* Pairs with the load above. */
	smp_store_release(&flush_hooked, true);
	mutex_unlock(&hooks_lock);
	if (err)
		pr_warn("kevent: no call of %s() is heard of: a close that waits in ->flush() ends watches after that: %d\n",
			FLUSH_FUNCTION, err);
}

/* A queue is about to be made. 0, or -errno if it must not be. */
int host_close_needed(void)
{
	int i, err;

	/* Pairs with the store below. */
	if (likely(smp_load_acquire(&hooked)))
		return 0;
	mutex_lock(&hooks_lock);
	host_flush_needed = flush_needed;
	err = host_tags_start();
	for (i = 0; i < ARRAY_SIZE(hooks) - !check_ends && !err; i++) {
		err = is_on(&hooks[i]) ? 0 : register_ftrace_function(&hooks[i].ops);
		say_why(hooks[i].where, err);
	}
	if (!err && !hooked)
		err = host_signals_start();
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

static int test_close(void)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	/* It ends when the task may find no module any more, if this load fails. */
	file = anon_inode_getfile("[kevent-test]", &generic_ro_fops, NULL, O_RDONLY);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	WRITE_ONCE(test_file, file);
	fd_install(fd, file);
	close_fd(fd);
	WRITE_ONCE(test_file, NULL);
	return test_owner == current->files ? 0 : -EOPNOTSUPP;
}

/* See that the hook works. If not, the log says so. */
int host_close_start(void)
{
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(hooks) && !err; i++)
		err = ftrace_set_filter(&hooks[i].ops, hooks[i].where,
					strlen(hooks[i].where), true);
	hooks[0].ops.func = test_hook;
	err = err ?: register_ftrace_function(&hooks[0].ops);
	say_why(CLOSE_FUNCTION, err);
	if (err)
		return err;
	err = test_close();
	if (err)
		pr_err("kevent: a close does not lead to %s(), which ftrace watches: %d\n",
		       CLOSE_FUNCTION, err);
	hook_off(&hooks[0]);
	hooks[0].ops.func = close_hook;
	return err;
}

/* No queue is left, nor will be. Returns when no task is in a hook. */
void host_close_stop(void)
{
	int i;

	if (hooked)
		host_signals_stop();
	hook_off(&flush_hook);
	ftrace_free_filter(&flush_hook.ops);
	for (i = ARRAY_SIZE(hooks); i--;) {
		hook_off(&hooks[i]);
		/* Memory of ftrace's */
		ftrace_free_filter(&hooks[i].ops);
	}
	/* One that entered before may be on its way out. */
	synchronize_rcu_tasks();
}
