// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: /sys/kernel/debug/kevent/window
 *
 * Writing a name arms a window, writing an empty line lets the task in it go.
 * Reading yields "idle", "armed" or "entered".
 */

#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "queue.h"
#include "window.h"

/*
 * A task leaves its window after this time, because the test may have died. It is
 * long, because the test's other thread may have to wait for a CPU of the host.
 */
#define KEVENT_WINDOW_NS	(10ULL * NSEC_PER_SEC)

static const char *const kevent_window_names[] = {
	[KEVENT_WINDOW_NONE]		= "",
	[KEVENT_WINDOW_HIT_STORED]	= "hit_stored",
	[KEVENT_WINDOW_SETTLE]		= "settle",
	[KEVENT_WINDOW_TURN]		= "turn",
	[KEVENT_WINDOW_VERIFIED]	= "verified",
	[KEVENT_WINDOW_MORE_FAULT]	= "more_fault",
	[KEVENT_WINDOW_SERVE]		= "serve",
};

/*
 * A task takes this from a window to KEVENT_NR_WINDOWS, and so is the only one in the
 * window; the test, or the task after a while, takes it to KEVENT_WINDOW_NONE.
 */
enum kevent_window kevent_window_armed;
/* Whose queues; written while no window is armed */
static const struct mm_struct *kevent_window_mm;

void kevent_window_enter(const struct kevent_queue *q, enum kevent_window w)
{
	u64 end;

	if (q->mm != READ_ONCE(kevent_window_mm) ||
	    cmpxchg(&kevent_window_armed, w, KEVENT_NR_WINDOWS) != w)
		return;
	end = ktime_get_mono_fast_ns() + KEVENT_WINDOW_NS;
	while (READ_ONCE(kevent_window_armed) == KEVENT_NR_WINDOWS &&
	       ktime_get_mono_fast_ns() < end)
		cpu_relax();
	cmpxchg(&kevent_window_armed, KEVENT_NR_WINDOWS, KEVENT_WINDOW_NONE);
}

static ssize_t kevent_window_read(struct file *file, char __user *buf,
				  size_t len, loff_t *pos)
{
	enum kevent_window armed = READ_ONCE(kevent_window_armed);
	const char *state = "idle\n";

	if (armed == KEVENT_NR_WINDOWS)
		state = "entered\n";
	else if (armed)
		state = "armed\n";
	return simple_read_from_buffer(buf, len, pos, state, strlen(state));
}

static int kevent_window_arm(enum kevent_window w)
{
	if (w == KEVENT_WINDOW_NONE) {
		WRITE_ONCE(kevent_window_armed, w);
		return 0;
	}
	if (READ_ONCE(kevent_window_armed))
		return -EBUSY;
	WRITE_ONCE(kevent_window_mm, current->mm);
	/* Pairs with the cmpxchg(): a task that sees it armed sees the mm. */
	smp_store_release(&kevent_window_armed, w);
	return 0;
}

/* Tests that use windows arm them one after the other, by a lock of their own. */
static ssize_t kevent_window_write(struct file *file, const char __user *buf,
				   size_t len, loff_t *pos)
{
	char name[32] = "";
	int w, err;

	if (len >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, buf, len))
		return -EFAULT;
	w = match_string(kevent_window_names, KEVENT_NR_WINDOWS, strim(name));
	if (w < 0)
		return -EINVAL;
	err = kevent_window_arm(w);
	return err ?: len;
}

static const struct file_operations kevent_window_fops = {
	.read	= kevent_window_read,
	.write	= kevent_window_write,
};

static int __init kevent_window_init(void)
{
	BUILD_BUG_ON(ARRAY_SIZE(kevent_window_names) != KEVENT_NR_WINDOWS);
	debugfs_create_file("window", 0600, debugfs_create_dir("kevent", NULL),
			    NULL, &kevent_window_fops);
	return 0;
}
late_initcall(kevent_window_init);
