// SPDX-License-Identifier: GPL-2.0
/*
 * kevent as a module: its device, whose ioctls are the system calls, and its end
 *
 * Documentation/module.rst says what holds the module (host_pin()), and what its end waits for.
 */

#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/ukevent.h>

#include "../kevent/core/deadline.h"
#include "../kevent/core/watch_memory.h"
#include "../kevent/core/source_ops.h"
#include "../kevent/core/testpoint.h"
#include "../kevent/core/wait.h"
#include "../kevent/core/wakeup_source.h"
#include "../kevent/ctl.h"
#include "../kevent/syscalls.h"

union call {
	struct kevent_dev_ctl		c;
	struct kevent_dev_get		g;
	struct kevent_dev_wait		w;
	struct kevent_dev_commit	m;
};

static struct kevent_timeout timeout(u64 time, u32 flags)
{
	return (struct kevent_timeout){ u64_to_user_ptr(time), flags };
}

static long do_call(struct file *file, unsigned int cmd, const union call *a)
{
	switch (cmd) {
	case KEVENT_IOC_WAIT:
		return a->w.reserved ? -EINVAL :
		       kevent_do_wait(file, a->w.num, a->w.old_kidx,
				      timeout(a->w.timeout, a->w.flags),
				      u64_to_user_ptr(a->w.arg));
	case KEVENT_IOC_CTL:
		return kevent_do_ctl(file, a->c.cmd, a->c.num,
				     u64_to_user_ptr(a->c.arg));
	case KEVENT_IOC_GET_EVENTS:
		return a->g.reserved ? -EINVAL :
		       kevent_do_get_events(file, a->g.min_nr, a->g.max_nr,
					    timeout(a->g.timeout, a->g.flags),
					    u64_to_user_ptr(a->g.buf));
	case KEVENT_IOC_COMMIT:
		return kevent_do_commit(file, a->m.uidx);
	default:
		return -ENOIOCTLCMD;
	}
}

/* The ioctls of ../kevent/file.c have been tried. */
long host_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	union call call;

	/* A handler may find that the program has closed the device. */
	if (cmd == KEVENT_IOC_POST)
		return host_signal_post((const struct ukevent __user *)arg);
	if (cmd == KEVENT_IOC_DRIVE)
		return driven_ioctl(file->private_data, (const struct ukevent __user *)arg);
	if (_IOC_TYPE(cmd) != _IOC_TYPE(KEVENT_IOC_CTL) ||
	    _IOC_SIZE(cmd) > sizeof(call))
		return -ENOIOCTLCMD;
	if (copy_from_user(&call, (void __user *)arg, _IOC_SIZE(cmd)))
		return -EFAULT;
	return do_call(file, cmd, &call);
}

/*
 * The cheapest way into a file: no security module is asked. SEEK_SET does not wait, SEEK_CUR
 * waits without a limit. @pos is of KEVENT_SEEK(). Never 0, as other files answer.
 */
loff_t host_llseek(struct file *file, loff_t pos, int whence)
{
	struct kevent_consumer c __uninitialized;
	int err;

	if (whence != SEEK_SET && whence != SEEK_CUR)
		return -EINVAL;
	err = kevent_check_ring(file);
	if (err)
		return err;
	c.max = pos >> 32 & S32_MAX;
	if (pos >= 0 || !c.max)
		return -EINVAL;
	c.min_nr = 1;
	c.old_kidx = (u32)pos;
	c.member = NULL;
	c.until.clock = CLOCK_MONOTONIC;
	kevent_deadline_get(&c.until, (struct kevent_timeout){});
	c.until.nowait = whence == SEEK_SET;
	kevent_awake_begin(file->private_data);
	return kevent_wait_ring(file->private_data, &c, 0) ?: -EAGAIN;
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
		if (kevent_sources[type] && !(kevent_sources[type]->flags & KEVENT_REQ_DRIVEN))
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
	case KEVENT_IOC_POST:
		return host_signal_post((const struct ukevent __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations dev_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= device_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice dev = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "kevent",
	.fops	= &dev_fops,
	.mode	= 0660,
};

static void stop(void)
{
	u32 type;

	host_close_stop();
	kevent_testpoints_stop();
	if (host_works)
		kevent_timers_exit();
	host_stop();
	for (type = 0; type < KEVENT_NR_TYPES; type++)
		kmem_cache_destroy(kevent_caches[type]);
}

static int __init kevent_module_init(void)
{
	int err = host_start() ?: kevent_start() ?: host_close_start() ?:
		  misc_register(&dev);

	if (err)
		stop();
	return err;
}
module_init(kevent_module_init);

static void __exit kevent_module_exit(void)
{
	misc_deregister(&dev);
	/* The worker of fsnotify has left ev_inode_free_mark(). */
	fsnotify_wait_marks_destroyed();
	stop();
}
module_exit(kevent_module_exit);

MODULE_DESCRIPTION("One event queue for sockets, pipes, files, timers, processes and marks");
MODULE_LICENSE("GPL");
MODULE_VERSION("2.0.0");
