// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of chains as far as they do not block
 *
 * A program that submits a chain must not wait, and must not get another answer because of
 * where a call was made. So each call is made as the program wrote it, or not at all:
 * KEVENT_CALL_ELSEWHERE, and nothing has happened, though the time of access may be newer.
 * "Blocks" means: waits for another task, a device or the network. Locks that are held for
 * a short time, and faults of the caller's memory, do not count.
 *
 * - A read that finds a part of what a waiting read would find is not made: it leaves the
 *   position, and stores nothing but what the second attempt stores again. A read that is
 *   made passes the checks of vfs_read() in the same order, and is accounted and reported
 *   to fsnotify like it.
 * - The lock of a position is tried, for lseek() too: a thread that reads holds it as long
 *   as its memory is late.
 * - A read of a character device is not tried: its data is gone from the device, so it
 *   could not be repeated, and /dev/zero fills as much as there is time for.
 * - recv() with MSG_WAITALL or SO_RCVLOWAT is not tried, nor is a send on a stream or of
 *   packets in sequence: they could do a part. (AF_UNIX sends such a packet whole, AF_ALG
 *   and vsocks do not.)
 * - A file is opened if its name is in the cache (LOOKUP_CACHED) and kevent_opens()
 *   agrees. do_open() calls that with LOOKUP_KEVENT, after the walk of the name and before
 *   the file's own open method. An open of a FIFO waits for its other end, and that end
 *   would see an open with O_NONBLOCK in its place.
 *
 * Another thread may put another file in the place of one that was checked here. Then the
 * call may block in the caller, and that is the process's own doing.
 */

#include <linux/cleanup.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/filelock.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/in.h>
#include <linux/kevent.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/namei.h>
#include <linux/net.h>
#include <linux/sched/xacct.h>
#include <linux/shmem_fs.h>
#include <linux/socket.h>
#include <linux/uio.h>

#include <net/sock.h>

#include "../../../fs/internal.h"

#include "../core/lookup.h"
#include "dispatch.h"

/* Files */

/* Are the inodes of a filesystem kept up to date without asking somebody? */
static bool nowait_is_local(const struct super_block *sb)
{
	switch (sb->s_magic) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
		return true;
	case FUSE_SUPER_MAGIC:
		return false;
	default:
		return sb->s_type->fs_flags & FS_REQUIRES_DEV;
	}
}

/* Has somebody asked to be waited for at each open or read of a file there? */
static bool nowait_asks_permission(struct super_block *sb)
{
	return fsnotify_sb_has_priority_watchers(sb, FSNOTIFY_PRIO_CONTENT);
}

/* Reading */

/*
 * Reads less than a read that waits would, of a file with data of its own: then nothing was
 * read. The data that was stored is that which will be stored again.
 */
static bool nowait_read_is_short(const struct file *file, loff_t pos,
				 size_t want, ssize_t got)
{
	const struct inode *inode = file_inode(file);

	if (S_ISBLK(inode->i_mode))
		inode = file->f_mapping->host;
	else if (!S_ISREG(inode->i_mode))
		return false;
	return got < want && pos + got < i_size_read(inode);
}

/* RWF_NOWAIT; 0: all is in memory; or KEVENT_CALL_ELSEWHERE */
static long nowait_read_flags(const struct file *file)
{
	struct inode *inode = file_inode(file);

	/*
	 * A direct read waits for the device, whatever it was asked. A character device
	 * decides what is read, and that is gone then: of /dev/zero a read that does not
	 * wait gets what there is time for.
	 */
	if (!file->f_op->read_iter || !(file->f_mode & FMODE_READ) ||
	    file->f_flags & O_DIRECT || nowait_asks_permission(inode->i_sb) ||
	    S_ISCHR(inode->i_mode))
		return KEVENT_CALL_ELSEWHERE;
	if (file->f_mode & FMODE_NOWAIT)
		return (__force int)RWF_NOWAIT;
	/* Is all data of a file in shared memory there, or a hole? */
	return inode->i_sb->s_magic == TMPFS_MAGIC && shmem_mapping(inode->i_mapping) &&
	       !READ_ONCE(SHMEM_I(inode)->swapped) ? 0 : KEVENT_CALL_ELSEWHERE;
}

static ssize_t nowait_read_iter(struct file *file, char __user *buf, size_t len,
				loff_t *pos, int flags)
{
	struct kiocb kiocb;
	struct iov_iter iter;
	ssize_t ret;

	init_sync_kiocb(&kiocb, file);
	ret = kiocb_set_rw_flags(&kiocb, (__force rwf_t)flags, READ);
	if (ret)
		return ret;
	kiocb.ki_pos = *pos;
	iov_iter_ubuf(&iter, ITER_DEST, buf, len);
	ret = file->f_op->read_iter(&kiocb, &iter);
	*pos = kiocb.ki_pos;
	return ret;
}

/* As vfs_read(): the same checks, counters and notifications */
static long nowait_read_at(struct file *file, char __user *buf, size_t len,
			   loff_t *pos)
{
	long ret, flags = nowait_read_flags(file);
	loff_t at = pos ? *pos : 0;

	if (flags < 0)
		return flags;
	if (!access_ok(buf, len))
		return -EFAULT;
	ret = rw_verify_area(READ, file, pos, len);
	if (ret)
		return ret;
	len = min_t(size_t, len, MAX_RW_COUNT);
	ret = nowait_read_iter(file, buf, len, &at, flags);
	if (ret == -EAGAIN || ret == -EOPNOTSUPP ||
	    (ret >= 0 && nowait_read_is_short(file, pos ? *pos : 0, len, ret)))
		return KEVENT_CALL_ELSEWHERE;
	if (ret > 0) {
		fsnotify_access(file);
		add_rchar(current, ret);
	}
	inc_syscr(current);
	if (pos)
		*pos = at;
	return ret;
}

/* Another thread may read the file for long, and hold the lock of its position. */
static bool nowait_lock_pos(struct file *file)
{
	return !(file->f_mode & FMODE_ATOMIC_POS) ||
	       mutex_trylock(&file->f_pos_lock);
}

static void nowait_unlock_pos(struct file *file)
{
	if (file->f_mode & FMODE_ATOMIC_POS)
		mutex_unlock(&file->f_pos_lock);
}

static long nowait_read(struct file *file, const struct pt_regs *regs)
{
	char __user *buf = (char __user *)regs->KEVENT_CALL_ARG1;
	size_t len = regs->KEVENT_CALL_ARG2;
	loff_t pos;
	long ret;

	if (file->f_mode & FMODE_STREAM)
		return nowait_read_at(file, buf, len, NULL);
	if (!nowait_lock_pos(file))
		return KEVENT_CALL_ELSEWHERE;
	pos = file->f_pos;
	ret = nowait_read_at(file, buf, len, &pos);
	if (ret >= 0)
		file->f_pos = pos;
	nowait_unlock_pos(file);
	return ret;
}

static long nowait_pread(struct file *file, const struct pt_regs *regs)
{
	loff_t pos = regs->KEVENT_CALL_ARG3;

	if (pos < 0 || !(file->f_mode & FMODE_PREAD))
		return KEVENT_CALL_ELSEWHERE;
	return nowait_read_at(file, (char __user *)regs->KEVENT_CALL_ARG1,
			      regs->KEVENT_CALL_ARG2, &pos);
}

/* Sockets */

/*
 * Is what a socket is made of surely there? For another family or protocol the kernel may ask
 * for a module, and wait for modprobe.
 */
static bool nowait_has_family(const struct pt_regs *regs)
{
	const int type = regs->KEVENT_CALL_ARG1 & SOCK_TYPE_MASK;
	const int protocol = regs->KEVENT_CALL_ARG2;

	switch ((int)regs->KEVENT_CALL_ARG0) {
	case AF_UNIX:
		return true;
	case AF_INET6:
		if (!IS_BUILTIN(CONFIG_IPV6))
			return false;
		fallthrough;
	case AF_INET:
		return (type == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP)) ||
		       (type == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP));
	default:
		return false;
	}
}

/*
 * Could a call that does not wait do a part of what it is asked for, where one that waits
 * does all? Sockets of AF_ALG, and those of a vsock, take a part of a packet. Or does the
 * call wait all the same? A request by netlink is answered by its sender, under locks that
 * others hold for long.
 */
static bool nowait_splits(struct file *file, u32 nr)
{
	struct socket *sock = kevent_socket(file);

	if (!sock)
		return false;
	switch (nr) {
	case __NR_read:
	case __NR_recvfrom:
	case __NR_recvmsg:
		return sock->sk && READ_ONCE(sock->sk->sk_rcvlowat) > 1;
	case __NR_sendto:
	case __NR_sendmsg:
		return sock->type == SOCK_STREAM ||
		       sock->type == SOCK_SEQPACKET ||
		       (sock->sk && sock->sk->sk_family == AF_NETLINK);
	default:
		return false;
	}
}

/* A call that has flags of its own: what they say is not known to the program. */
static long nowait_with_flag(struct pt_regs *regs, u32 nr, unsigned long *flags)
{
	unsigned long before = *flags;
	long ret;

	if (before & MSG_DONTWAIT)
		return kevent_call_dispatch(regs, nr);
	/* It would return less than it was asked to wait for. */
	if (before & MSG_WAITALL)
		return KEVENT_CALL_ELSEWHERE;
	*flags |= MSG_DONTWAIT;
	ret = kevent_call_dispatch(regs, nr);
	*flags = before;
	return ret == -EAGAIN ? KEVENT_CALL_ELSEWHERE : ret;
}

/* The result of a call that makes @file, or has failed, for a descriptor that was taken */
static long nowait_install(int fd, struct file *file)
{
	if (!IS_ERR(file)) {
		fd_install(fd, file);
		return fd;
	}
	put_unused_fd(fd);
	return PTR_ERR(file) == -EAGAIN ? KEVENT_CALL_ELSEWHERE : PTR_ERR(file);
}

static long nowait_accept(struct file *file, const struct pt_regs *regs,
			  int flags)
{
	struct proto_accept_arg arg = { .flags = O_NONBLOCK };
	int fd;

	if (!kevent_socket(file) || flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return KEVENT_CALL_ELSEWHERE;
	fd = get_unused_fd_flags(flags);
	if (fd < 0)
		return fd;
	return nowait_install(fd, do_accept(file, &arg,
					    (struct sockaddr __user *)regs->KEVENT_CALL_ARG1,
					    (int __user *)regs->KEVENT_CALL_ARG2, flags));
}

/* Names */

/*
 * May a file that exists be opened without waiting for anybody? Asked for an open with
 * LOOKUP_KEVENT, before the file's own open method is called.
 */
bool kevent_opens(const struct path *path)
{
	struct inode *inode = d_backing_inode(path->dentry);
	struct file_lock_context *leases = locks_inode_context(inode);

	return (S_ISREG(inode->i_mode) || S_ISDIR(inode->i_mode)) &&
	       nowait_is_local(inode->i_sb) && !nowait_asks_permission(inode->i_sb) &&
	       !(leases && !list_empty_careful(&leases->flc_lease));
}

#define NOWAIT_OPEN_FLAGS						\
	(O_ACCMODE | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_DIRECTORY |	\
	 O_NOATIME | O_NOCTTY | O_LARGEFILE | O_NOFOLLOW)

static long nowait_openat(const struct pt_regs *regs)
{
	const int large = force_o_largefile() ? O_LARGEFILE : 0;
	int flags = regs->KEVENT_CALL_ARG2, fd, err;
	struct open_how how = build_open_how(flags | large, 0);
	struct filename *name;
	struct open_flags op;
	long ret;

	if (flags & ~NOWAIT_OPEN_FLAGS)
		return KEVENT_CALL_ELSEWHERE;
	/* Names that are known, of files that exist */
	how.resolve = RESOLVE_CACHED;
	err = build_open_flags(&how, &op);
	if (err)
		return err;
	op.lookup_flags |= LOOKUP_KEVENT;
	name = getname((const char __user *)regs->KEVENT_CALL_ARG1);
	if (IS_ERR(name))
		return PTR_ERR(name);
	fd = get_unused_fd_flags(flags);
	ret = fd < 0 ? fd : nowait_install(fd, do_filp_open(regs->KEVENT_CALL_ARG0,
							    name, &op));
	putname(name);
	return ret;
}

/* Descriptors */

/* Does the end of a file wait for nobody? */
static bool nowait_ends(struct file *file)
{
	const struct inode *inode = file_inode(file);
	struct socket *sock;

	if (file->f_op->flush)
		return false;
	if (S_ISREG(inode->i_mode))
		return nowait_is_local(inode->i_sb) && inode->i_nlink;
	if (S_ISDIR(inode->i_mode))
		return nowait_is_local(inode->i_sb);
	sock = kevent_socket(file);
	if (sock)
		return sock->sk && !sock_flag(sock->sk, SOCK_LINGER);
	return S_ISFIFO(inode->i_mode);
}

static long nowait_close(struct pt_regs *regs)
{
	unsigned int fd = regs->KEVENT_CALL_ARG0;
	bool ends;

	/* No reference is taken: close() would not be the one that drops the last. */
	scoped_guard(spinlock, &current->files->file_lock) {
		struct file *file = files_lookup_fd_locked(current->files, fd);

		ends = !file || nowait_ends(file);
	}
	return ends ? kevent_call_dispatch(regs, __NR_close) :
		      KEVENT_CALL_ELSEWHERE;
}

static long nowait_lseek(struct file *file, const struct pt_regs *regs)
{
	const struct inode *inode = file_inode(file);
	unsigned int whence = regs->KEVENT_CALL_ARG2;
	long ret;

	if (whence > SEEK_END || !S_ISREG(inode->i_mode) ||
	    !nowait_is_local(inode->i_sb) || !nowait_lock_pos(file))
		return KEVENT_CALL_ELSEWHERE;
	ret = vfs_llseek(file, regs->KEVENT_CALL_ARG1, whence);
	nowait_unlock_pos(file);
	return ret;
}

/* Calls */

/*
 * Calls that wait for nobody; those of a file that were written for one that does not
 * block; and others that fail at once without a file. 0: another call
 */
enum { NEVER_WAITS = 1, IO, NEEDS_FILE };

static const u8 nowait_kind[NR_syscalls] = {
	[__NR_getpid] = NEVER_WAITS, [__NR_getppid] = NEVER_WAITS,
	[__NR_clock_gettime] = NEVER_WAITS, [__NR_clock_getres] = NEVER_WAITS,
	[__NR_pipe2] = NEVER_WAITS, [__NR_listen] = NEVER_WAITS,
	[__NR_shutdown] = NEVER_WAITS, [__NR_getsockname] = NEVER_WAITS,
	[__NR_getpeername] = NEVER_WAITS, [__NR_getsockopt] = NEVER_WAITS,
	[__NR_setsockopt] = NEVER_WAITS,
	[__NR_read] = IO, [__NR_write] = IO, [__NR_readv] = IO, [__NR_writev] = IO,
	[__NR_connect] = IO, [__NR_accept] = IO, [__NR_accept4] = IO,
	[__NR_sendto] = IO, [__NR_recvfrom] = IO,
	[__NR_sendmsg] = IO, [__NR_recvmsg] = IO,
	[__NR_pread64] = NEEDS_FILE, [__NR_fstat] = NEEDS_FILE,
	[__NR_lseek] = NEEDS_FILE,
};

static long nowait_of_file(struct file *file, struct pt_regs *regs, u32 nr)
{
	const struct inode *inode = file_inode(file);

	/* The program expects -EAGAIN of such a file. */
	if (nowait_kind[nr] == IO && file->f_flags & O_NONBLOCK &&
	    (S_ISSOCK(inode->i_mode) || S_ISFIFO(inode->i_mode)))
		return kevent_call_dispatch(regs, nr);
	if (nowait_splits(file, nr))
		return KEVENT_CALL_ELSEWHERE;
	switch (nr) {
	case __NR_read:
		return nowait_read(file, regs);
	case __NR_pread64:
		return nowait_pread(file, regs);
	case __NR_accept:
		return nowait_accept(file, regs, 0);
	case __NR_accept4:
		return nowait_accept(file, regs, regs->KEVENT_CALL_ARG3);
	case __NR_recvfrom:
	case __NR_sendto:
		return nowait_with_flag(regs, nr, (void *)&regs->KEVENT_CALL_ARG3);
	case __NR_recvmsg:
	case __NR_sendmsg:
		return nowait_with_flag(regs, nr, (void *)&regs->KEVENT_CALL_ARG2);
	case __NR_fstat:
		return !inode->i_op->getattr || nowait_is_local(inode->i_sb) ?
		       kevent_call_dispatch(regs, nr) : KEVENT_CALL_ELSEWHERE;
	case __NR_lseek:
		return nowait_lseek(file, regs);
	default:
		return KEVENT_CALL_ELSEWHERE;
	}
}

/* Make a call of the table of chains if it does not block, or KEVENT_CALL_ELSEWHERE. */
long kevent_call_nowait(struct pt_regs *regs, u32 nr)
{
	if (nowait_kind[nr] == NEVER_WAITS)
		return kevent_call_dispatch(regs, nr);
	if (nr == __NR_socket || nr == __NR_socketpair)
		return nowait_has_family(regs) ? kevent_call_dispatch(regs, nr) :
						 KEVENT_CALL_ELSEWHERE;
	if (nr == __NR_openat)
		return nowait_openat(regs);
	if (nr == __NR_close)
		return nowait_close(regs);
	/* A call that closes the descriptor runs only behind this one. */
	CLASS(fd, f)(regs->KEVENT_CALL_ARG0);
	if (!fd_file(f))
		return nowait_kind[nr] ? kevent_call_dispatch(regs, nr) :
					 KEVENT_CALL_ELSEWHERE;
	return nowait_of_file(fd_file(f), regs, nr);
}
