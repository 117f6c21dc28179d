// SPDX-License-Identifier: GPL-2.0
/*
 * What host.h does not do in line
 */

#include <linux/init.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "../kevent/core/source_ops.h"

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
	/* It may be before the boot. */
	at = at < offset ? 0 : min_t(ktime_t, ktime_sub(at, offset), KTIME_MAX);
#endif
	return at;
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

/* What ends with the module */

struct workqueue_struct *host_works __ro_after_init;
static struct kmem_cache *caches[KEVENT_NR_TYPES + 1];
static unsigned int nr_caches;
static struct ctl_table_header *settings;

struct kmem_cache *host_cache(const char *what, unsigned int size,
			      unsigned int align)
{
	char *name = kasprintf(GFP_KERNEL, "kevent_%s", what);
	struct kmem_cache *cache = NULL;

	if (name && !WARN_ON(nr_caches == ARRAY_SIZE(caches)))
		cache = kmem_cache_create(name, size, align, SLAB_ACCOUNT, NULL);
	if (cache)
		caches[nr_caches++] = cache;
	kfree(name);
	return cache;
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
/* Of anonymous files */
static struct vfsmount *anon_mnt __ro_after_init;

/* As anon_inode_create_getfile(), which comes later: each queue has a number. */
struct file *compat_anon_inode(const char *name, const struct file_operations *fops,
			       void *data, int flags)
{
	struct inode *inode = alloc_anon_inode(anon_mnt->mnt_sb);
	struct file *file;

	if (IS_ERR(inode))
		return ERR_CAST(inode);
	file = alloc_file_pseudo(inode, anon_mnt, name,
				 flags & (O_ACCMODE | O_NONBLOCK), fops);
	if (IS_ERR(file)) {
		iput(inode);
		return file;
	}
	/* The caller is in an ioctl of the device. */
	__module_get(fops->owner);
	file->private_data = data;
	return file;
}

int __init compat_anon_start(void)
{
	static const struct file_operations none;
	struct file *file = anon_inode_getfile("[kevent]", &none, NULL, O_RDWR);

	if (IS_ERR(file))
		return PTR_ERR(file);
	anon_mnt = mntget(file->f_path.mnt);
	host_fput(file);
	return 0;
}

void compat_anon_stop(void)
{
	mntput(anon_mnt);
}
#endif

int __init host_start(void)
{
	host_works = alloc_workqueue("kevent", WQ_UNBOUND, 0);
	return host_works ? compat_anon_start() : -ENOMEM;
}

void host_stop(void)
{
	if (host_works)
		destroy_workqueue(host_works);
	unregister_sysctl_table(settings);
	/* Of watches, and of what they hung on */
	rcu_barrier();
}

void host_free(void)
{
	compat_anon_stop();
	while (nr_caches)
		kmem_cache_destroy(caches[--nr_caches]);
}
