// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of the administrator, and what is done once at boot
 */

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/init.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/sysctl.h>
#include <linux/uidgid.h>
#include <linux/ukevent.h>
#include <linux/user_namespace.h>

#include "charge.h"
#include "ops.h"
#include "settings.h"

long kevent_max_user_bytes __read_mostly;
static int kevent_disabled __read_mostly;
static int kevent_group __read_mostly = -1;

/**
 * kevent_allowed - may the current task create a queue?
 */
bool kevent_allowed(void)
{
	kgid_t group;

	switch (READ_ONCE(kevent_disabled)) {
	case 0:
		return true;
	case 1:
		if (capable(CAP_SYS_ADMIN))
			return true;
		group = make_kgid(&init_user_ns, READ_ONCE(kevent_group));
		return gid_valid(group) && in_group_p(group);
	default:
		return false;
	}
}

static const long kevent_bytes_max = LONG_MAX;

static struct ctl_table kevent_kernel_table[] = {
	{
		.procname	= "kevent_disabled",
		.data		= &kevent_disabled,
		.maxlen		= sizeof(kevent_disabled),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_TWO,
	},
	{
		.procname	= "kevent_group",
		.data		= &kevent_group,
		.maxlen		= sizeof(kevent_group),
		.mode		= 0644,
		.proc_handler	= proc_dointvec,
	},
};

static struct ctl_table kevent_fs_table[] = {
	{
		.procname	= "max_user_bytes",
		.data		= &kevent_max_user_bytes,
		.maxlen		= sizeof(kevent_max_user_bytes),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
		.extra1		= SYSCTL_LONG_ZERO,
		.extra2		= (void *)&kevent_bytes_max,
	},
};

/* Offsets and sizes that user space relies on */
static void __init kevent_check_abi(void)
{
	BUILD_BUG_ON(sizeof(struct kevent_id) != 8);
	BUILD_BUG_ON(sizeof(struct ukevent) != 40);
	BUILD_BUG_ON(offsetof(struct ukevent, type) != 8);
	BUILD_BUG_ON(offsetof(struct ukevent, event) != 12);
	BUILD_BUG_ON(offsetof(struct ukevent, req_flags) != 16);
	BUILD_BUG_ON(offsetof(struct ukevent, ret_flags) != 20);
	BUILD_BUG_ON(offsetof(struct ukevent, ret_data) != 24);
	BUILD_BUG_ON(offsetof(struct ukevent, ptr) != 32);
	BUILD_BUG_ON(sizeof(struct kevent_ring) != 128);
	BUILD_BUG_ON(offsetof(struct kevent_ring, ring_flags) != 8);
	BUILD_BUG_ON(offsetof(struct kevent_ring, ring_uidx) != 64);
	BUILD_BUG_ON(offsetof(struct kevent_ring, event) != 128);
	BUILD_BUG_ON(sizeof(struct kevent_change) != 48);
	BUILD_BUG_ON(offsetof(struct kevent_change, cmd) != 40);
	BUILD_BUG_ON(offsetof(struct kevent_change, result) != 44);
	BUILD_BUG_ON(sizeof(struct kevent_wait_arg) != 48);
	BUILD_BUG_ON(offsetof(struct kevent_wait_arg, sigmask) != 16);
	BUILD_BUG_ON(offsetof(struct kevent_wait_arg, min_wait_ns) != 24);
	BUILD_BUG_ON(offsetof(struct kevent_wait_arg, changes) != 32);
	BUILD_BUG_ON(offsetof(struct kevent_wait_arg, nr_changes) != 40);
	/* kevent_put_result() writes them at once. */
	BUILD_BUG_ON(offsetof(struct ukevent, ret_data) !=
		     offsetofend(struct ukevent, ret_flags));
}

/* A user may spend a twenty-fifth of low memory on watches. */
static int __init kevent_sysinit(void)
{
	struct sysinfo si;

	kevent_check_abi();
	kevent_sources_init();
	si_meminfo(&si);
	kevent_max_user_bytes = ((si.totalram - si.totalhigh) / 25) <<
				PAGE_SHIFT;
	register_sysctl_init("kernel", kevent_kernel_table);
	register_sysctl_init("fs/kevent", kevent_fs_table);
	return 0;
}
fs_initcall(kevent_sysinit);
