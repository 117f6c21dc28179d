// SPDX-License-Identifier: GPL-2.0
/*
 * The part of host.h that is not inline
 */

#include <linux/init.h>
#include <linux/rcupdate.h>

#include "../kevent/core/source_ops.h"

uint host_busy_poll_usecs;
module_param_named(busy_poll, host_busy_poll_usecs, uint, 0644);
MODULE_PARM_DESC(busy_poll, "As net.core.busy_poll, for queues: microseconds");

/* Are there bytes that wake the reader? -EAGAIN: who knows */
static int tcp_readable(const struct sock *sk)
{
	if (READ_ONCE(tcp_sk(sk)->rcv_nxt) == READ_ONCE(tcp_sk(sk)->copied_seq))
		return false;
	if (READ_ONCE(tcp_sk(sk)->urg_data) || READ_ONCE(sk->sk_rcvlowat) > 1)
		return -EAGAIN;
	return true;
}

static int stream_readable(const struct socket *sock)
{
	const struct sock *sk = sock->sk;

	/* TLS and espintcp have another one. */
	if (READ_ONCE(sock->ops)->poll == tcp_poll)
		return tcp_readable(sk);
	if (sk->sk_family != AF_UNIX || sk->sk_type != SOCK_STREAM)
		return -EAGAIN;
	return !skb_queue_empty_lockless(&sk->sk_receive_queue);
}

#define PEEK_STATES	(TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)

/* Of streams that have no error, and whose peer has not closed them */
int host_sock_peek(const struct socket *sock)
{
	const struct sock *sk = sock->sk;
	int ret;

	/* As inet_sk_state_load() */
	if (!sk || !(1 << smp_load_acquire(&sk->sk_state) & PEEK_STATES) ||
	    READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN || READ_ONCE(sk->sk_err) ||
	    READ_ONCE(sk->sk_prot)->sock_is_readable ||
	    !skb_queue_empty_lockless(&sk->sk_error_queue))
		return -EAGAIN;
	ret = stream_readable(sock);
	return ret > 0 ? (__force int)(EPOLLIN | EPOLLRDNORM) : ret;
}

/* As set_user_sigmask(). Sets of 32 and 64 bits are of one size, and of one order on x86. */
int host_sigmask_set(void __user *mask, size_t size)
{
	sigset_t set;

	if (!mask)
		return 0;
	if (size != sizeof(set))
		return -EINVAL;
	if (copy_from_user(&set, mask, sizeof(set)))
		return -EFAULT;
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
	/* It may be before the boot, or more than the clock of the host will ever say. */
	at = at < offset ? 0 : ktime_sub(at, offset);
	if (at < 0)
		at = KTIME_MAX;
#endif
	return at;
}

/* With a reference. Of a thread's pidfd, too. */
struct pid *host_pidfd_pid(unsigned int fd)
{
	CLASS(fd, f)(fd);
	struct pid *pid = NULL;

	if (fd_file(f))
		pid = get_pid(compat_pidfd_pid(fd_file(f)));
	return pid ?: ERR_PTR(-EBADF);
}

/* Signals: what is not exported */

/* As __lock_task_sighand() */
struct sighand_struct *host_sighand_lock(struct task_struct *t,
					 unsigned long *flags)
{
	struct sighand_struct *sighand;

	while ((sighand = rcu_dereference(t->sighand))) {
		spin_lock_irqsave(&sighand->siglock, *flags);
		/* For sparse it is the caller who takes the lock. */
		if (sighand == rcu_access_pointer(t->sighand)) {
			__release(&sighand->siglock);
			break;
		}
		spin_unlock_irqrestore(&sighand->siglock, *flags);
	}
	return sighand;
}

/* As siginfo_layout(), of what has a sender, a child or a value */
enum siginfo_layout host_siginfo_layout(int sig, int code)
{
	if (code == SI_TIMER)
		return SIL_TIMER;
	if (code < 0)
		return code == SI_SIGIO ? SIL_POLL : SIL_RT;
	if (code == SI_USER || code >= SI_KERNEL)
		return SIL_KILL;
	return sig == SIGCHLD ? SIL_CHLD : SIL_FAULT;
}

/* Things that end with the module */

struct workqueue_struct *host_works __ro_after_init;
static struct ctl_table_header *settings;

struct kmem_cache *host_cache(const char *what, unsigned int size,
			      unsigned int align)
{
	char name[32];

	snprintf(name, sizeof(name), "kevent_%s", what);
	return kmem_cache_create(name, size, align, SLAB_ACCOUNT, NULL);
}

/*
 * Without them all have their first values. Programs take those of "kernel" as a sign that the
 * kernel has the system calls; here the mode of the device does what they are for.
 */
void host_sysctl(const char *path, struct ctl_table *table, size_t nr)
{
	/* Before 6.6 an empty entry ends a table. */
	static struct ctl_table copy[2];

	if (!strcmp(path, "kernel") || WARN_ON(nr >= ARRAY_SIZE(copy)))
		return;
	memcpy(copy, table, nr * sizeof(*table));
	settings = register_sysctl_sz(path, copy, nr);
}

#if compat_before(6, 12)
/*
 * As anon_inode_create_getfile(), which comes later: each queue has a number. Where anonymous
 * files are is learnt from one.
 */
struct file *host_queue_file(const struct file_operations *fops, void *q,
			     int flags)
{
	struct file *file, *other = anon_inode_getfile("[]", &generic_ro_fops, NULL, O_RDONLY);
	struct inode *inode;

	if (IS_ERR(other))
		return other;
	inode = alloc_anon_inode(file_inode(other)->i_sb);
	if (IS_ERR(inode)) {
		fput(other);
		return ERR_CAST(inode);
	}
	file = alloc_file_pseudo(inode, other->f_path.mnt, "[kevent]",
				 flags & (O_ACCMODE | O_NONBLOCK), fops);
	fput(other);
	if (IS_ERR(file)) {
		iput(inode);
		return file;
	}
	/* The caller is in an ioctl of the device. */
	__module_get(fops->owner);
	file->private_data = q;
	return file;
}
#endif

int __init host_start(void)
{
	host_works = alloc_workqueue("kevent", WQ_UNBOUND, 0);
	return host_works ? 0 : -ENOMEM;
}

void host_stop(void)
{
	if (host_works)
		destroy_workqueue(host_works);
	unregister_sysctl_table(settings);
	/* Of watches, and of what they hung on */
	rcu_barrier();
	host_tags_stop();
}
