// SPDX-License-Identifier: GPL-2.0
/*
 * Exits of processes, by the wait queue that pidfds have
 *
 * A watch holds its struct pid and waits in wait_pidfd, where exit_notify() and
 * do_notify_parent() wake pidfds up with tasklist_lock held for writing. Some kernels of
 * this series wake up for a leader that leaves threads behind, others do not;
 * ev_proc_exited() therefore checks that the leader has exited and has no other threads.
 * The wake-up or ADD, whichever finds the exit first, copies the status, since the task may be
 * released as soon as the lock is. It takes the watch off the wait queue, so that the exit is
 * reported once. ADD joins and checks under tasklist_lock, which holds off exits, reaping, and
 * the swap of leaders by an exec. The order is tasklist_lock > the lock of wait_pidfd >
 * ready_lock.
 *
 * ADD decides who may know the status: in a wake-up the task that exits runs and not the watcher,
 * and a security module compares more than ids. All that it compares is in the credentials of the
 * process, which are never changed in place but replaced. So the watch keeps those until the exit,
 * and reports the status if the process still has the same object. The list of groups that
 * credentials keep is not charged: a process that is alive keeps as much by each of its open files.
 * A parent is not checked: neither is it by wait(), and SIGCHLD carries the status. Dumpability
 * belongs to the address space, which is gone when the wake-up comes. exit_mm() has copied it to
 * task_struct.user_dumpable, which the wake-up reads, as /proc does. ADD has found out whether the
 * watcher has CAP_SYS_PTRACE.
 *
 * The list of wait_pidfd has the watches of all users, and pollers, and an exit walks it.
 * A tally, found by user and struct pid, counts how many are of one user, and another one those of
 * all users. Root does not count there, and a parent, whose queues may be of any user, has a tally
 * of its own: others cannot keep them from watching a child.
 */

#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/pid.h>
#include <linux/rbtree.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "../core/source.h"
#include "../core/testpoint.h"
#include "../host_process.h"

/*
 * Watches of one process, over all queues of a user, and of all users but root. As many again are
 * those of its parents. Their callbacks run with interrupts off, under tasklist_lock. Each may
 * wake a consumer.
 */
#define EV_PROC_MAX		64U
#define EV_PROC_MAX_OF_USERS	(4 * EV_PROC_MAX)

/* For kevent_tally.owner: the parents of the process. The address is that of no user. */
#define EV_PROC_PARENTS		((struct kevent_owner *)&kevent_tallies)

/**
 * struct kevent_tally - the watches of one user of one process
 * @node:	in kevent_tallies
 * @owner:	I: the user, NULL for all users, or %EV_PROC_PARENTS; a pointer to compare, held by
 *		the watches
 * @pid:	I: likewise
 * @nr:		watches, at least 1; under kevent_tally_lock
 *
 * The list of the process mixes the watches of all users and what is not kevent's: to count
 * those of one user there would take as long as there are others.
 */
struct kevent_tally {
	struct rb_node		node;
	struct kevent_owner	*owner;
	struct pid		*pid;
	unsigned int		nr;
};

/* Held for one look into the tree, which has at most two for each watch */
static DEFINE_SPINLOCK(kevent_tally_lock);
static struct rb_root kevent_tallies = RB_ROOT;	/* kevent_tally_lock */

/**
 * struct kevent_proc - a watch of a process
 * @kk:		the watch, found by the process id
 * @pid:	I: the process, with a reference; NULL when there is none
 * @tally:	I: counts the watches of the user and @pid, up to %EV_PROC_MAX
 * @all:	I: likewise those of all users, or of parents, up to %EV_PROC_MAX_OF_USERS;
 *		NULL for root
 * @wait:	W: in &pid.wait_pidfd until the process has exited
 * @cred:	W: the event has the status if the process still has these
 *		credentials, the same object, and may be looked at. NULL: see @trusted,
 *		or the watcher may not know, or the process has exited
 * @trusted:	I: the event has the status in any case
 * @traces:	I: the caller of ADD may look at processes that others may not
 * @known:	W: @status is valid, written before kevent_ready()
 * @status:	W: as of waitpid(), likewise
 */
struct kevent_proc {
	struct kevent_keyed	kk;
	struct pid		*pid;
	struct kevent_tally	*tally;
	struct kevent_tally	*all;
	wait_queue_entry_t	wait;
	const struct cred	*cred;
	bool			trusted;
	bool			traces;
	bool			known;
	int			status;
};

#define to_proc(watch)	container_of(watch, struct kevent_proc, kk.ke)

static int kevent_tally_cmp(struct rb_node *a, const struct rb_node *b)
{
	const struct kevent_tally *x = rb_entry(a, struct kevent_tally, node);
	const struct kevent_tally *y = rb_entry(b, struct kevent_tally, node);

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return 0;
}

/* Before kevent_tally_put() neither @owner nor @pid goes. Fails with -ENOSPC or -ENOMEM. */
static struct kevent_tally *kevent_tally_get(struct kevent_owner *owner,
					     struct pid *pid, unsigned int most)
{
	struct kevent_tally *made, *tally;
	struct rb_node *found;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return ERR_PTR(-ENOMEM);
	made->owner = owner;
	made->pid = pid;
	scoped_guard(spinlock, &kevent_tally_lock) {
		found = rb_find_add(&made->node, &kevent_tallies,
				    kevent_tally_cmp);
		tally = found ? rb_entry(found, struct kevent_tally, node) :
				made;
		if (tally->nr >= most)
			tally = ERR_PTR(-ENOSPC);
		else
			tally->nr++;
	}
	if (found)
		kfree(made);
	return tally;
}

/* A watch has gone. @tally may be an error or NULL. */
static void kevent_tally_put(struct kevent_tally *tally)
{
	if (IS_ERR_OR_NULL(tally))
		return;
	scoped_guard(spinlock, &kevent_tally_lock) {
		if (--tally->nr)
			return;
		rb_erase(&tally->node, &kevent_tallies);
	}
	kfree(tally);
}

static bool ev_proc_is_child(struct task_struct *task)
{
	guard(rcu)();
	return same_thread_group(rcu_dereference(task->real_parent), current);
}

/*
 * A parent may know the status, and so may a task that may read it in /proc/<pid>/stat. The
 * answer holds as long as the process has its credentials, except for dumpability.
 */
static void ev_proc_trust(struct kevent_proc *kp, struct task_struct *task)
{
	const struct cred *cred;

	kp->trusted = ev_proc_is_child(task);
	if (kp->trusted)
		return;
	/* First: if they are not replaced before the check, it is about these. */
	cred = get_task_cred(task);
	kp->traces = ns_capable_noaudit(&init_user_ns, CAP_SYS_PTRACE);
	if (host_may_read_stat(task))
		kp->cred = cred;
	else
		put_cred(cred);
}

/* A leader that exits before other threads is no exit of the process, whatever woke us up. */
static bool ev_proc_exited(struct kevent_proc *kp)
{
	struct task_struct *task = pid_task(kp->pid, PIDTYPE_TGID);
	struct signal_struct *sig;

	lockdep_assert_held(&kp->pid->wait_pidfd.lock);
	host_tasks_assert();

	kevent_testpoint(kp->kk.ke.queue, KEVENT_TESTPOINT_PROC);
	/* ADD of the module may find a leader that an exec replaces: its group is not empty. */
	if (!task || !task->exit_state || !thread_group_empty(task))
		return false;
	sig = task->signal;
	/* The reference to @cred keeps its address from being that of another one. */
	kp->known = kp->trusted ||
		    (kp->cred && rcu_access_pointer(task->real_cred) == kp->cred &&
		     (host_is_dumpable(task) || kp->traces));
	put_cred(kp->cred);
	kp->cred = NULL;
	if (kp->known)
		kp->status = sig->flags & SIGNAL_GROUP_EXIT ?
			     sig->group_exit_code : task->exit_code;
	list_del_init(&kp->wait.entry);
	return true;
}

static int ev_proc_wake(wait_queue_entry_t *wait, unsigned int mode, int sync,
			void *key)
{
	struct kevent_proc *kp = container_of(wait, struct kevent_proc, wait);

	if (ev_proc_exited(kp))
		kevent_ready(&kp->kk.ke, KEVENT_PROC_EXIT);
	return 0;
}

/* Watches */

static int ev_proc_check(const struct ukevent *uk, struct file *file)
{
	if (uk->id.raw[1] || !(uk->event & KEVENT_PROC_EXIT) ||
	    uk->event & ~(KEVENT_PROC_EXIT | KEVENT_PROC_PIDFD))
		return -EINVAL;
	return 0;
}

static struct pid *ev_proc_pid(const struct ukevent *uk)
{
	if (uk->event & KEVENT_PROC_PIDFD)
		return host_pidfd_pid(uk->id.raw[0]);
	return find_get_pid(uk->id.raw[0]) ?: ERR_PTR(-ESRCH);
}

/*
 * Join the queue of the process, and find out who may know. The conditions that hold,
 * -EINVAL for the id of another thread than the leader, or -ESRCH.
 */
static int ev_proc_join(struct kevent_proc *kp)
{
	wait_queue_head_t *head = &kp->pid->wait_pidfd;
	struct task_struct *task;
	int ret = -ESRCH;

	/* While it is held, no process exits, is reaped or execs. */
	host_tasks_lock();
	task = pid_task(kp->pid, PIDTYPE_TGID);
	if (task)
		ev_proc_trust(kp, task);
	spin_lock_irq(&head->lock);
	__add_wait_queue(head, &kp->wait);
	if (ev_proc_exited(kp))
		ret = KEVENT_PROC_EXIT;
	else if (pid_task(kp->pid, PIDTYPE_TGID))
		ret = 0;
	else if (pid_task(kp->pid, PIDTYPE_PID))
		ret = -EINVAL;
	spin_unlock_irq(&head->lock);
	host_tasks_unlock();
	return ret;
}

static void ev_proc_modified(struct kevent *ke, const struct ukevent *uk)
{
	/* There is one exit. */
	WRITE_ONCE(ke->req_flags, ke->req_flags | KEVENT_REQ_ONESHOT);
}

static int ev_proc_count(struct kevent_proc *kp)
{
	struct kevent_owner *owner = kp->kk.ke.queue->owner;
	struct task_struct *task;
	bool child;

	kp->tally = kevent_tally_get(owner, kp->pid, EV_PROC_MAX);
	if (IS_ERR(kp->tally) || host_owner_is_root(owner))
		return PTR_ERR_OR_ZERO(kp->tally);
	scoped_guard(rcu) {
		task = pid_task(kp->pid, PIDTYPE_TGID);
		child = task && ev_proc_is_child(task);
	}
	kp->all = kevent_tally_get(child ? EV_PROC_PARENTS : NULL, kp->pid,
				   EV_PROC_MAX_OF_USERS);
	return PTR_ERR_OR_ZERO(kp->all);
}

static int ev_proc_attach(struct kevent *ke, const struct ukevent *uk,
			  struct file *file)
{
	struct kevent_proc *kp = to_proc(ke);
	struct pid *pid;
	int err;

	memset_after(kp, 0, kk);
	init_waitqueue_func_entry(&kp->wait, ev_proc_wake);
	INIT_LIST_HEAD(&kp->wait.entry);
	pid = ev_proc_pid(uk);
	if (IS_ERR(pid))
		return PTR_ERR(pid);
	kp->pid = pid;
	kp->kk.id = pid_vnr(pid);
	if (!kp->kk.id)
		return -ESRCH;
	ke->id_low = kp->kk.id;
	ev_proc_modified(ke, uk);
	err = kevent_key_link(&kp->kk);
	if (err)
		return err;
	return ev_proc_count(kp) ?: ev_proc_join(kp);
}

static void ev_proc_detach(struct kevent *ke)
{
	struct kevent_proc *kp = to_proc(ke);

	if (kp->pid)
		remove_wait_queue(&kp->pid->wait_pidfd, &kp->wait);
}

static void ev_proc_destroy(struct kevent *ke)
{
	struct kevent_proc *kp = to_proc(ke);

	kevent_tally_put(kp->tally);
	kevent_tally_put(kp->all);
	put_pid(kp->pid);
	put_cred(kp->cred);
}

/* No process has the id 0. */
static u64 ev_proc_key(const struct ukevent *uk)
{
	struct pid *pid;
	u64 id;

	if (!(uk->event & KEVENT_PROC_PIDFD))
		return uk->id.raw_u64;
	pid = uk->id.raw[1] ? ERR_PTR(-EINVAL) : ev_proc_pid(uk);
	if (IS_ERR(pid))
		return 0;
	id = pid_vnr(pid);
	put_pid(pid);
	return id;
}

static void ev_proc_fill(struct kevent *ke, struct ukevent *uk)
{
	struct kevent_proc *kp = to_proc(ke);

	uk->ret_data[0] = kp->status;
	uk->ret_data[1] = kp->known ? KEVENT_PROC_STATUS : 0;
}

/* No command(): an exit cannot be feigned. */
const struct kevent_source_ops kevent_proc_ops = {
	.name		= "proc",
	.size		= sizeof(struct kevent_proc),
	/* As if it were alone to watch its process, which is gone. */
	.pins		= sizeof(struct pid) + sizeof(struct upid) +
			  sizeof(struct cred) + 2 * sizeof(struct kevent_tally),
	.check		= ev_proc_check,
	.key		= ev_proc_key,
	.attach		= ev_proc_attach,
	.detach		= ev_proc_detach,
	.destroy	= ev_proc_destroy,
	.modified	= ev_proc_modified,
	.fill		= ev_proc_fill,
};
