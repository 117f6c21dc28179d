// SPDX-License-Identifier: GPL-2.0
/*
 * kevent as a module: its device, whose ioctls are the system calls, and what ../kevent needs
 * of a kernel that has no hooks for it
 *
 * A queue is an anonymous file as ever, and holds the module. The module goes when no queue
 * is left: it cannot outlive a mark of fsnotify that somebody still holds, nor a watch that is buried
 * by a task on its way to user mode (host_pin()), and its end waits for work items, callbacks of
 * RCU, and tasks in a hook.
 */

#include <linux/fdtable.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/ukevent.h>

#include "../kevent/core/deadline.h"
#include "../kevent/core/source_ops.h"
#include "../kevent/core/waiter.h"
#include "../kevent/ctl.h"
#include "../kevent/entry.h"

/* Calls of a queue */

static long do_call(struct file *file, unsigned int cmd, void *arg)
{
	struct kevent_dev_ctl *c = arg;
	struct kevent_dev_get *g = arg;
	struct kevent_dev_wait *w = arg;
	struct kevent_dev_commit *m = arg;

	switch (cmd) {
	case KEVENT_IOC_WAIT:
		return w->reserved ? -EINVAL :
		       kevent_do_wait(file, w->num, w->old_kidx,
				      u64_to_user_ptr(w->timeout), w->flags,
				      u64_to_user_ptr(w->arg));
	case KEVENT_IOC_CTL:
		return kevent_do_ctl(file, c->cmd, c->num,
				     u64_to_user_ptr(c->arg));
	case KEVENT_IOC_GET_EVENTS:
		return g->reserved ? -EINVAL :
		       kevent_do_get_events(file, g->min_nr, g->max_nr,
					    u64_to_user_ptr(g->timeout),
					    u64_to_user_ptr(g->buf), g->flags);
	case KEVENT_IOC_COMMIT:
		return kevent_do_commit(file, m->uidx);
	default:
		return -ENOIOCTLCMD;
	}
}

/* Those of ../kevent/file.c have been tried. */
long host_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	union {
		struct kevent_dev_ctl		ctl;
		struct kevent_dev_get		get;
		struct kevent_dev_wait		wait;
		struct kevent_dev_commit	commit;
	} call;

	if (_IOC_TYPE(cmd) != _IOC_TYPE(KEVENT_IOC_CTL) ||
	    _IOC_SIZE(cmd) > sizeof(call))
		return -ENOIOCTLCMD;
	if (copy_from_user(&call, (void __user *)arg, _IOC_SIZE(cmd)))
		return -EFAULT;
	return do_call(file, cmd, &call);
}

/*
 * The cheapest way into a file: no security module is asked. SEEK_SET does not wait, SEEK_CUR
 * waits without a limit. @pos is of KEVENT_SEEK().
 */
loff_t host_llseek(struct file *file, loff_t pos, int whence)
{
	struct kevent_news news = { .old_kidx = (u32)pos, .min_nr = 1 };
	struct kevent_deadline until = { .clock = CLOCK_MONOTONIC };
	u32 num = pos >> 32 & S32_MAX;
	int err;

	if (whence != SEEK_SET && whence != SEEK_CUR)
		return -EINVAL;
	err = kevent_check_ring(file);
	if (err)
		return err;
	if (pos >= 0 || !num)
		return -EINVAL;
	kevent_deadline_get(&until, false, NULL);
	until.nowait = whence == SEEK_SET;
	return kevent_wait_ring(file->private_data, num, &news, 0, &until);
}

/* The device */

static long dev_init(void __user *arg)
{
	struct kevent_dev_init i;
	int err;

	if (copy_from_user(&i, arg, sizeof(i)))
		return -EFAULT;
	err = host_close_needed();
	if (err)
		return err;
	return kevent_do_init(u64_to_user_ptr(i.ring), i.ring_size, i.flags);
}

static long dev_types(u64 __user *arg)
{
	u64 types = 0;
	u32 type;

	for (type = 0; type < KEVENT_NR_TYPES; type++)
		if (kevent_sources[type])
			types |= BIT_ULL(type);
	return put_user(types, arg);
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case KEVENT_IOC_INIT:
		return dev_init((void __user *)arg);
	case KEVENT_IOC_TYPES:
		return dev_types((u64 __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations dev_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= device_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
};

static struct miscdevice dev = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "kevent",
	.fops	= &dev_fops,
	.mode	= 0660,
};

/* What host.h does not do in line */

const struct file_operations *host_pipe_fops __ro_after_init;

uint host_busy_poll_usecs;
module_param_named(busy_poll, host_busy_poll_usecs, uint, 0644);
MODULE_PARM_DESC(busy_poll, "As net.core.busy_poll, for queues: microseconds");

static int stream_peek(const struct sock *sk, u8 state, u8 shutdown,
		       bool readable)
{
	__poll_t mask = 0;

	/* Pairs with smp_wmb() in tcp_done_with_error() */
	smp_rmb();
	if (READ_ONCE(sk->sk_err) || READ_ONCE(sk->sk_prot)->sock_is_readable ||
	    !skb_queue_empty_lockless(&sk->sk_error_queue))
		return -EAGAIN;
	if (readable)
		mask |= EPOLLIN | EPOLLRDNORM;
	if (shutdown == SHUTDOWN_MASK || state == TCP_CLOSE)
		mask |= EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	return (__force int)mask;
}

/* States in which tcp_poll() looks for data as in an established connection */
#define PEEK_STATES	(TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 |	\
			 TCPF_CLOSE_WAIT | TCPF_CLOSE)

static int tcp_peek(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	int state = inet_sk_state_load(sk);
	u8 shutdown = READ_ONCE(sk->sk_shutdown);
	bool readable;

	if (state == TCP_LISTEN)
		return (__force int)inet_csk_listen_poll(sk);
	if (!((1 << state) & PEEK_STATES))
		return -EAGAIN;
	readable = READ_ONCE(tp->rcv_nxt) != READ_ONCE(tp->copied_seq);
	if (readable && (READ_ONCE(tp->urg_data) ||
			 READ_ONCE(sk->sk_rcvlowat) > 1))
		return -EAGAIN;
	return stream_peek(sk, state, shutdown, readable);
}

/* TLS and espintcp have a ->poll() of their own. */
int host_sock_peek(const struct socket *sock)
{
	const struct sock *sk = sock->sk;
	u8 shutdown;

	if (!sk)
		return -EAGAIN;
	if (READ_ONCE(sock->ops)->poll == tcp_poll)
		return tcp_peek(sk);
	if (sk->sk_family != AF_UNIX || sk->sk_type != SOCK_STREAM)
		return -EAGAIN;
	shutdown = READ_ONCE(sk->sk_shutdown);
	if (READ_ONCE(sk->sk_state) != TCP_ESTABLISHED)
		return -EAGAIN;
	return stream_peek(sk, TCP_ESTABLISHED, shutdown,
			   !skb_queue_empty_lockless(&sk->sk_receive_queue));
}

static int sigmask_get(sigset_t *set, void __user *mask, size_t size)
{
#ifdef CONFIG_COMPAT
	if (in_compat_syscall())
		return size != sizeof(compat_sigset_t) ? -EINVAL :
		       get_compat_sigset(set, mask);
#endif
	if (size != sizeof(*set))
		return -EINVAL;
	return copy_from_user(set, mask, sizeof(*set)) ? -EFAULT : 0;
}

/* As set_user_sigmask() */
int host_sigmask_set(void __user *mask, size_t size)
{
	sigset_t set;
	int err;

	if (!mask)
		return 0;
	err = sigmask_get(&set, mask, size);
	if (err)
		return err;
	sigdelsetmask(&set, sigmask(SIGKILL) | sigmask(SIGSTOP));
	set_restore_sigmask();
	return sigprocmask(SIG_SETMASK, &set, &current->saved_sigmask);
}

void host_sigmask_restore(bool interrupted)
{
	if (!interrupted && test_and_clear_restore_sigmask())
		sigprocmask(SIG_SETMASK, &current->saved_sigmask, NULL);
}

/* As timens_ktime_to_host() */
ktime_t host_timens(clockid_t clock, ktime_t at)
{
#ifdef CONFIG_TIME_NS
	const struct timens_offsets *offsets = &current->nsproxy->time_ns->offsets;
	ktime_t offset = 0;

	if (clock == CLOCK_MONOTONIC)
		offset = timespec64_to_ktime(offsets->monotonic);
	else if (clock == CLOCK_BOOTTIME)
		offset = timespec64_to_ktime(offsets->boottime);
	if (!offset)
		return at;
	/* At boot, or before */
	if (at < offset)
		return 0;
	return min_t(ktime_t, ktime_sub(at, offset), KTIME_MAX);
#else
	return at;
#endif
}

/* With a reference. Of a thread's pidfd, too. */
struct pid *host_pidfd_pid(unsigned int fd)
{
	struct file *file = fget(fd);
	struct pid *pid;

	if (!file)
		return ERR_PTR(-EBADF);
	pid = get_pid(compat_pidfd_pid(file));
	fput(file);
	return pid ?: ERR_PTR(-EBADF);
}

/* What ends with the module */

static struct workqueue_struct *works;
static struct kmem_cache *caches[KEVENT_NR_TYPES + 4];
static struct ctl_table_header *settings[4];

void host_queue_work(struct work_struct *work)
{
	queue_work(works, work);
}

struct kmem_cache *host_cache(const char *what, unsigned int size,
			      unsigned int align, bool paid)
{
	char *name = kasprintf(GFP_KERNEL, "kevent_%s", what);
	int i = 0;

	if (!name)
		return NULL;
	while (caches[i])
		i++;
	if (!WARN_ON(i == ARRAY_SIZE(caches)))
		caches[i] = kmem_cache_create(name, size, align, SLAB_ACCOUNT,
					      NULL);
	kfree(name);
	return i < ARRAY_SIZE(caches) ? caches[i] : NULL;
}

/*
 * Without them all have their first values. Programs take those of "kernel" as a sign that the
 * kernel has the system calls; here the mode of the device does what they are for.
 */
void host_sysctl(const char *path, struct ctl_table *table, size_t nr)
{
	int i = 0;

	if (!strcmp(path, "kernel"))
		return;
	while (settings[i])
		i++;
	settings[i] = compat_sysctl(path, table, nr);
}

static void free_all(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(settings) && settings[i]; i++)
		compat_sysctl_end(settings[i]);
	/* Of watches, and of what they hung on */
	rcu_barrier();
	for (i = 0; i < ARRAY_SIZE(caches) && caches[i]; i++)
		kmem_cache_destroy(caches[i]);
	destroy_workqueue(works);
}

/* The operations of a FIFO are not exported, but are those of a new inode. */
static int __init find_pipe_fops(void)
{
	struct inode *inode = kzalloc(sizeof(*inode), GFP_KERNEL);

	if (!inode)
		return -ENOMEM;
	init_special_inode(inode, S_IFIFO | 0600, 0);
	host_pipe_fops = inode->i_fop;
	kfree(inode);
	return 0;
}

static int __init start(void)
{
	int err = find_pipe_fops() ?: kevent_start() ?: host_close_start();

	if (err)
		return err;
	err = misc_register(&dev);
	if (err)
		host_close_free();
	return err;
}

static int __init kevent_module_init(void)
{
	int err;

	works = alloc_workqueue("kevent", WQ_UNBOUND, 0);
	if (!works)
		return -ENOMEM;
	err = start();
	if (err)
		free_all();
	return err;
}
module_init(kevent_module_init);

static void __exit kevent_module_exit(void)
{
	misc_deregister(&dev);
	host_close_stop();
	flush_workqueue(works);
	/* The worker of fsnotify has left ev_inode_free_mark(). */
	fsnotify_wait_marks_destroyed();
	rcu_barrier();
	host_close_free();
	free_all();
}
module_exit(kevent_module_exit);

MODULE_DESCRIPTION("One event queue for sockets, pipes, files, timers, processes and marks");
MODULE_LICENSE("GPL");
