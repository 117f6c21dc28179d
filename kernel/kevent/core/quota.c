// SPDX-License-Identifier: GPL-2.0
/*
 * Sysctls, the settings of the administrator: who may use kevent, and how much memory a user may
 * have the kernel keep
 */

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sysctl.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "../host.h"
#include "quota.h"

long kevent_max_user_bytes __read_mostly;
static const long kevent_bytes_max = LONG_MAX;
static int kevent_disabled __read_mostly;
static int kevent_group __read_mostly = -1;

/* May the current task create a queue? */
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

/*
 * To whom what the current task has the kernel keep is charged. One account may have thousands of
 * user ids in a user namespace that it makes, by newuidmap: all of them count as its own, as with
 * ucounts. Where root has made the namespace each of its users counts.
 */
kuid_t kevent_owner_uid(void)
{
	struct user_namespace *ns;
	kuid_t uid = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/* May the current task run chains? */
bool kevent_call_allowed(void)
{
	return kevent_allowed() &&
	       !(current->flags & (PF_KTHREAD | PF_USER_WORKER | PF_IO_WORKER));
}

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

/* A user may spend a twenty-fifth of low memory on watches. */
void __init kevent_quota_init(void)
{
	struct sysinfo si;

	si_meminfo(&si);
	kevent_max_user_bytes = ((si.totalram - si.totalhigh) / 25) <<
				PAGE_SHIFT;
	host_sysctl("kernel", kevent_kernel_table,
		    ARRAY_SIZE(kevent_kernel_table));
	host_sysctl("fs/kevent", kevent_fs_table, ARRAY_SIZE(kevent_fs_table));
}
