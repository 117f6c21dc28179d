// SPDX-License-Identifier: GPL-2.0
/*
 * The watches of a file, and how the module learns that a descriptor was closed
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
 * The callback must not sleep. What removes a watch takes spinlocks only, but for INODE, whose
 * marks have a mutex: such a watch is killed, and buried on the way to user mode, with a
 * reference to its file.
 *
 * The watches of a file hang on a &struct host_watched, found by the address of the file in a
 * hash that grows, and takes a new seed if a chain becomes long. The objects are at most as
 * many as there are watches, and each watch is charged with one, see HOST_FILE_BYTES.
 */

#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/ftrace.h>
#include <linux/llist.h>
#include <linux/rhashtable.h>
#include <linux/task_work.h>

#include "../kevent/core/remove.h"
#include "../kevent/core/types.h"

/* Watches */

/**
 * struct host_watched - a file with watches
 * @node:	in watched
 * @file:	I: the file; its end comes after that of the object
 * @first:	F: its watches
 * @nr:		F: places taken on that list
 * @rcu:	for the freeing
 *
 * F: &file.f_lock
 */
struct host_watched {
	struct rhash_head	node;
	struct file		*file;
	struct kevent_file	*first;
	unsigned int		nr;
	struct rcu_head		rcu;
};

/* A multiplier that nobody knows: each close() of the system comes here. */
static u32 watched_hash(const void *data, u32 len, u32 seed)
{
	unsigned long file = (unsigned long)*(struct file *const *)data;
	u64 odd = ((u64)seed << 32 | ~seed) * 0x9e3779b97f4a7c15ULL | 1;

	return (file * odd) >> 32;
}

static int watched_cmp(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct host_watched *w = obj;

	return w->file != *(struct file *const *)arg->key;
}

static const struct rhashtable_params watched_params = {
	.key_len		= sizeof(struct file *),
	.key_offset		= offsetof(struct host_watched, file),
	.head_offset		= offsetof(struct host_watched, node),
	.hashfn			= watched_hash,
	.obj_cmpfn		= watched_cmp,
	.automatic_shrinking	= true,
};

static struct rhashtable watched;
static struct kmem_cache *watched_cache;
static struct kevent_file *no_watches;

static void watched_free(struct rcu_head *rcu)
{
	kmem_cache_free(watched_cache, container_of(rcu, struct host_watched, rcu));
}

static_assert(sizeof(struct host_watched) <= HOST_FILE_BYTES);

static struct host_watched *watched_find(struct file *file)
{
	return rhashtable_lookup(&watched, &file, watched_params);
}

struct kevent_file **host_watches(struct file *file)
{
	struct host_watched *w;

	rcu_read_lock();
	w = watched_find(file);
	rcu_read_unlock();
	return w ? &w->first : &no_watches;
}

/* Takes a place in what is there, or in @made. */
static int watched_take(struct file *file, struct host_watched *made)
{
	struct host_watched *w;
	int err = -ENOENT;

	spin_lock(&file->f_lock);
	rcu_read_lock();
	w = watched_find(file);
	rcu_read_unlock();
	if (w) {
		w->nr++;
		err = -EEXIST;
	} else if (made) {
		err = rhashtable_insert_fast(&watched, &made->node,
					     watched_params);
	}
	spin_unlock(&file->f_lock);
	return err;
}

int host_watches_get(struct file *file)
{
	struct host_watched *made;
	int err = watched_take(file, NULL);

	if (err == -EEXIST)
		return 0;
	made = kmem_cache_zalloc(watched_cache, GFP_KERNEL);
	if (!made)
		return -ENOMEM;
	made->file = file;
	made->nr = 1;
	err = watched_take(file, made);
	if (err)
		kmem_cache_free(watched_cache, made);
	return !err || err == -EEXIST ? 0 : -ENOMEM;
}

void host_watches_put(struct file *file)
{
	struct host_watched *w;

	lockdep_assert_held(&file->f_lock);

	rcu_read_lock();
	w = watched_find(file);
	rcu_read_unlock();
	if (WARN_ON_ONCE(!w) || --w->nr)
		return;
	rhashtable_remove_fast(&watched, &w->node, watched_params);
	call_rcu(&w->rcu, watched_free);
}

/* Burying where a task may sleep */

static LLIST_HEAD(graves);

/* The file of a watch is pinned, and so is the module. */
static void bury(struct kevent *ke)
{
	kevent_bury(ke, true);
	host_unpin();
}

/* @head is the rcu member of a watch that waits for its end. */
static void bury_task_work(struct callback_head *head)
{
	bury(container_of(head, struct kevent, rcu));
}

static void bury_work(struct work_struct *work)
{
	struct llist_node *node, *next;

	llist_for_each_safe(node, next, llist_del_all(&graves))
		bury(container_of((struct callback_head *)node, struct kevent,
				  rcu));
}

static DECLARE_WORK(graves_work, bury_work);

bool host_bury_later(struct kevent *ke, struct file *file)
{
	if (ke->type != KEVENT_INODE)
		return false;
	get_file(file);
	host_pin();
	init_task_work(&ke->rcu, bury_task_work);
	if (!(current->flags & PF_KTHREAD) &&
	    !task_work_add(current, &ke->rcu, TWA_RESUME))
		return true;
	llist_add((struct llist_node *)&ke->rcu, &graves);
	host_queue_work(&graves_work);
	return true;
}

/* The hook */

#define CLOSE_FUNCTION	"locks_remove_posix"
#define END_FUNCTION	"locks_remove_file"

static void close_hook(unsigned long ip, unsigned long parent,
		       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct file *file = (void *)compat_ftrace_arg(fregs, 0);
	bool has;

	rcu_read_lock();
	has = watched_find(file);
	rcu_read_unlock();
	if (unlikely(has))
		__kevent_flush(file, (fl_owner_t)compat_ftrace_arg(fregs, 1));
}

static void end_hook(unsigned long ip, unsigned long parent,
		     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct file *file = (void *)compat_ftrace_arg(fregs, 0);

	rcu_read_lock();
	WARN_ONCE(watched_find(file), "kevent: a file ends with a watch\n");
	rcu_read_unlock();
}

/* CLOCK_REALTIME was set, or the system was resumed. */
static void clock_hook(unsigned long ip, unsigned long parent,
		       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	kevent_clock_was_set();
}

/**
 * struct hook - a function whose calls the module hears of
 * @ops:	for ftrace
 * @where:	names of functions
 * @on:		it is registered; under hooks_lock
 */
struct hook {
	struct ftrace_ops	ops;
	const char		*where[2];
	bool			on;
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
	fd_install(fd, file);
	close_fd(fd);
	WRITE_ONCE(test_file, NULL);
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

/* Prepare all, and see that the hook works. -errno: the log says why it does not. */
int host_close_start(void)
{
	int err;

	watched_cache = host_cache("watched", sizeof(struct host_watched), 0,
				   false);
	if (!watched_cache)
		return -ENOMEM;
	err = rhashtable_init(&watched, &watched_params);
	if (err)
		return err;
	err = hook_filter(&at_close) ?: hook_filter(&at_clock) ?:
	      hook_filter(&at_end) ?: hook_test();
	if (!err)
		return 0;
	pr_err("kevent: closing a descriptor does not lead to %s(), which ftrace watches: %d\n",
	       CLOSE_FUNCTION, err);
	rhashtable_destroy(&watched);
	return err;
}

/* No queue is left, nor will be. Returns when no task is in a hook. */
void host_close_stop(void)
{
	hook_off(&at_end);
	hook_off(&at_clock);
	hook_off(&at_close);
	/* One that entered before may be on its way out. */
	synchronize_rcu_tasks();
}

/* No file is watched, and nobody looks. */
void host_close_free(void)
{
	rhashtable_destroy(&watched);
}
