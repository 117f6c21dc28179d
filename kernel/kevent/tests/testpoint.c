// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: /sys/kernel/debug/kevent/testpoint and delay
 *
 * window: writing a name arms a window, and lets a task that is in one go. So does an empty
 * line, which arms none.
 * Reading yields "idle", "armed" or "entered".
 *
 * delay: writing "NAME PERMILLE MICROSECONDS" delays so many of the tasks that come to a
 * window, for up to so long, until a file that was opened for writing is closed. Reading
 * yields a line for each window: the same, and how many were delayed since then.
 */

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../core/queue.h"
#include "../core/testpoint.h"

/*
 * A task leaves its window after this time, because the test may have died. It is
 * long, because the test's other thread may have to wait for a CPU of the host.
 */
#define KEVENT_TESTPOINT_NS	(10ULL * NSEC_PER_SEC)

/* The longest delays: where a task may hold spinlocks, and where it sleeps */
#define KEVENT_BUSY_MAX_US	1000
#define KEVENT_SLEEP_MAX_US	100000

/**
 * struct kevent_testpoint_info - a window
 * @name:	for the files
 * @sleeps:	a task that comes here holds no spinlock, nor RCU, and its state is
 *		TASK_RUNNING
 * @permille:	how many of the tasks that come here are delayed
 * @us:		for how long at most
 * @delayed:	how many were
 */
struct kevent_testpoint_info {
	const char	*name;
	bool		sleeps;
	u32		permille;
	u32		us;
	atomic_t	delayed;
};

#define KEVENT_IS_TESTPOINT(w, n, s)					\
	[KEVENT_TESTPOINT_##w] = { .name = (n), .sleeps = (s) }

static struct kevent_testpoint_info kevent_testpoints[KEVENT_NR_TESTPOINTS] = {
KEVENT_IS_TESTPOINT(NONE, "", false),
	KEVENT_IS_TESTPOINT(HIT_STORED, "hit_stored", false),
	KEVENT_IS_TESTPOINT(SETTLE, "settle", false),
	KEVENT_IS_TESTPOINT(TURN, "turn", false),
	KEVENT_IS_TESTPOINT(VERIFIED, "verified", true),
	KEVENT_IS_TESTPOINT(SERVE, "serve", true),
	KEVENT_IS_TESTPOINT(TAKEN, "taken", true),
	KEVENT_IS_TESTPOINT(AGAIN, "again", true),
	KEVENT_IS_TESTPOINT(COMMITTED, "committed", true),
	KEVENT_IS_TESTPOINT(STORED, "stored", true),
	KEVENT_IS_TESTPOINT(SLEEP, "sleep", true),
	KEVENT_IS_TESTPOINT(ASLEEP, "asleep", false),
	KEVENT_IS_TESTPOINT(AWOKE, "awoke", false),
	KEVENT_IS_TESTPOINT(PARKED, "parked", false),
	KEVENT_IS_TESTPOINT(UNPARKED, "unparked", false),
	KEVENT_IS_TESTPOINT(GO_ON, "go_on", true),
	KEVENT_IS_TESTPOINT(FAULT, "fault", true),
	KEVENT_IS_TESTPOINT(FAULTED, "faulted", true),
	KEVENT_IS_TESTPOINT(ATTACH, "attach", true),
	KEVENT_IS_TESTPOINT(ATTACHED, "attached", true),
	KEVENT_IS_TESTPOINT(HANDED, "handed", true),
	KEVENT_IS_TESTPOINT(FOUND, "found", false),
	KEVENT_IS_TESTPOINT(MODIFIED, "modified", false),
	KEVENT_IS_TESTPOINT(HAND_ON, "hand_on", false),
	KEVENT_IS_TESTPOINT(REARMED, "rearmed", true),
	KEVENT_IS_TESTPOINT(ROOM, "room", true),
	KEVENT_IS_TESTPOINT(KILLED, "killed", false),
	KEVENT_IS_TESTPOINT(DETACHED, "detached", false),
	KEVENT_IS_TESTPOINT(FIRE, "fire", false),
	KEVENT_IS_TESTPOINT(LEAVE, "leave", false),
	KEVENT_IS_TESTPOINT(POLL, "poll", false),
	KEVENT_IS_TESTPOINT(RELEASED, "released", true),
	KEVENT_IS_TESTPOINT(DUE, "due", false),
	KEVENT_IS_TESTPOINT(SLICE, "slice", false),
	KEVENT_IS_TESTPOINT(PROC, "proc", false),
	KEVENT_IS_TESTPOINT(CLOCK_SET, "clock_set", true),
	KEVENT_IS_TESTPOINT(IDLE, "idle", false),
	KEVENT_IS_TESTPOINT(RAN, "ran", true),
	KEVENT_IS_TESTPOINT(CANCEL, "cancel", false),
	KEVENT_IS_TESTPOINT(DROPPED, "dropped", true),
};

/* Is one armed, or are there delays? */
u8 kevent_testpoints_used;
/*
 * A task takes this from a window to KEVENT_NR_TESTPOINTS, and so is the only one in the
 * window; the test, or the task after a while, takes it to KEVENT_TESTPOINT_NONE.
 */
static enum kevent_testpoint kevent_testpoint_armed;
/* Only queues of this address space have the window. Written while no window is armed. */
static const struct mm_struct *kevent_testpoint_mm;
/* Writers of the files */
static DEFINE_MUTEX(kevent_testpoint_mutex);

static void kevent_testpoint_pass_time(const struct kevent_testpoint_info *info)
{
	if (info->sleeps)
		usleep_range(100, 200);
	else
		cpu_relax();
}

static void kevent_testpoint_hold_up(const struct kevent_testpoint_info *info)
{
	u64 end = ktime_get_mono_fast_ns() + KEVENT_TESTPOINT_NS;

	while (READ_ONCE(kevent_testpoint_armed) == KEVENT_NR_TESTPOINTS &&
	       ktime_get_mono_fast_ns() < end)
		kevent_testpoint_pass_time(info);
	cmpxchg(&kevent_testpoint_armed, KEVENT_NR_TESTPOINTS, KEVENT_TESTPOINT_NONE);
}

/* Random numbers without a lock: a window may be anywhere. */
static u32 kevent_testpoint_random(u32 below)
{
	u64 now = ktime_get_mono_fast_ns() ^ (unsigned long)current;

	return below ? (u32)hash_64(now, 32) % below : 0;
}

static void kevent_testpoint_delay(struct kevent_testpoint_info *info)
{
	u32 us = READ_ONCE(info->us);
	u64 end;

	if (kevent_testpoint_random(1000) >= READ_ONCE(info->permille))
		return;
	atomic_inc(&info->delayed);
	us = kevent_testpoint_random(us) + 1;
	if (info->sleeps) {
		usleep_range(us, us + 1);
		return;
	}
	end = ktime_get_mono_fast_ns() + us * NSEC_PER_USEC;
	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

void kevent_testpoint_enter(const struct kevent_queue *q, enum kevent_testpoint w)
{
	struct kevent_testpoint_info *info = &kevent_testpoints[w];

	might_sleep_if(info->sleeps);
	/* Pairs with kevent_testpoint_arm(): who sees it armed sees whose it is. */
	if (smp_load_acquire(&kevent_testpoint_armed) == w &&
	    q->home.mm == READ_ONCE(kevent_testpoint_mm) &&
	    cmpxchg(&kevent_testpoint_armed, w, KEVENT_NR_TESTPOINTS) == w)
		kevent_testpoint_hold_up(info);
	kevent_testpoint_delay(info);
}

static void kevent_testpoints_use(void)
{
	bool used = READ_ONCE(kevent_testpoint_armed);
	unsigned int w;

	lockdep_assert_held(&kevent_testpoint_mutex);

	for (w = 0; w < KEVENT_NR_TESTPOINTS; w++)
		used |= kevent_testpoints[w].permille;
	WRITE_ONCE(kevent_testpoints_used, used);
}

static int kevent_testpoint_find(const char *name)
{
	unsigned int w;

	for (w = 0; w < KEVENT_NR_TESTPOINTS; w++)
		if (!strcmp(kevent_testpoints[w].name, name))
			return w;
	return -EINVAL;
}

static ssize_t kevent_testpoint_read(struct file *file, char __user *buf,
				     size_t len, loff_t *pos)
{
	enum kevent_testpoint armed = READ_ONCE(kevent_testpoint_armed);
	const char *state = "idle\n";

	if (armed == KEVENT_NR_TESTPOINTS)
		state = "entered\n";
	else if (armed)
		state = "armed\n";
	return simple_read_from_buffer(buf, len, pos, state, strlen(state));
}

static int kevent_testpoint_arm(enum kevent_testpoint w)
{
	guard(mutex)(&kevent_testpoint_mutex);
	if (w != KEVENT_TESTPOINT_NONE) {
		enum kevent_testpoint armed = READ_ONCE(kevent_testpoint_armed);

		/* A task that is in a window goes on to the next one. */
		if (armed && armed != KEVENT_NR_TESTPOINTS)
			return -EBUSY;
		WRITE_ONCE(kevent_testpoint_mm, current->mm);
	}
	/* Pairs with kevent_testpoint_enter(). */
	smp_store_release(&kevent_testpoint_armed, w);
	kevent_testpoints_use();
	return 0;
}

/* Tests that use windows arm them one after the other, by a lock of their own. */
static ssize_t kevent_testpoint_write(struct file *file, const char __user *buf,
				      size_t len, loff_t *pos)
{
	char name[32] = "";
	int w, err;

	if (len >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, buf, len))
		return -EFAULT;
	w = kevent_testpoint_find(strim(name));
	if (w < 0)
		return -EINVAL;
	err = kevent_testpoint_arm(w);
	return err ?: len;
}

static const struct file_operations kevent_testpoint_fops = {
	.owner	= THIS_MODULE,
	.read	= kevent_testpoint_read,
	.write	= kevent_testpoint_write,
};

static int kevent_delay_set(const char *name, u32 permille, u32 us)
{
	int w = kevent_testpoint_find(name);
	struct kevent_testpoint_info *info = &kevent_testpoints[max(w, 0)];

	if (w <= KEVENT_TESTPOINT_NONE || permille > 1000 ||
	    us > (info->sleeps ? KEVENT_SLEEP_MAX_US : KEVENT_BUSY_MAX_US))
		return -EINVAL;
	guard(mutex)(&kevent_testpoint_mutex);
	WRITE_ONCE(info->us, us);
	WRITE_ONCE(info->permille, permille);
	kevent_testpoints_use();
	return 0;
}

static void kevent_delays_end(void)
{
	struct kevent_testpoint_info *info = kevent_testpoints;

	guard(mutex)(&kevent_testpoint_mutex);
	for (; info < &kevent_testpoints[KEVENT_NR_TESTPOINTS]; info++) {
		WRITE_ONCE(info->permille, 0);
		atomic_set(&info->delayed, 0);
	}
	kevent_testpoints_use();
}

static ssize_t kevent_delay_write(struct file *file, const char __user *buf,
				  size_t len, loff_t *pos)
{
	char line[64] = "", name[32];
	u32 permille, us;
	int err;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	if (sscanf(line, "%31s %u %u", name, &permille, &us) != 3)
		return -EINVAL;
	err = kevent_delay_set(name, permille, us);
	return err ?: len;
}

static int kevent_delay_show(struct seq_file *m, void *v)
{
	const struct kevent_testpoint_info *info = kevent_testpoints + 1;

	for (; info < &kevent_testpoints[KEVENT_NR_TESTPOINTS]; info++)
		seq_printf(m, "%s %u %u %d\n", info->name,
			   READ_ONCE(info->permille), READ_ONCE(info->us),
			   atomic_read(&info->delayed));
	return 0;
}

static int kevent_delay_open(struct inode *inode, struct file *file)
{
	return single_open(file, kevent_delay_show, NULL);
}

/* Delays end with the file: the process that has set them may have died. */
static int kevent_delay_release(struct inode *inode, struct file *file)
{
	if (file->f_mode & FMODE_WRITE)
		kevent_delays_end();
	return single_release(inode, file);
}

static const struct file_operations kevent_delay_fops = {
	.owner		= THIS_MODULE,
	.open		= kevent_delay_open,
	.read		= seq_read,
	.write		= kevent_delay_write,
	.llseek		= seq_lseek,
	.release	= kevent_delay_release,
};

static struct dentry *kevent_testpoint_dir;

void __init kevent_testpoints_start(void)
{
	struct dentry *dir = debugfs_create_dir("kevent", NULL);

	debugfs_create_file("testpoint", 0600, dir, NULL, &kevent_testpoint_fops);
	debugfs_create_file("delay", 0600, dir, NULL, &kevent_delay_fops);
	kevent_testpoint_dir = dir;
}

/* Only a module ends. An open file keeps it. */
void kevent_testpoints_stop(void)
{
	debugfs_remove(kevent_testpoint_dir);
}
