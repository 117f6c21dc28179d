// SPDX-License-Identifier: GPL-2.0
/*
 * What is done once, and what the compiler checks of the ABI
 */

#include <linux/build_bug.h>
#include <linux/init.h>
#include <linux/ukevent.h>

#include "core/quota.h"
#include "core/source_ops.h"
#include "core/testpoint.h"
#include "entry.h"

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

/**
 * kevent_start - what is done once, before the first queue
 *
 * Return: 0 or -ENOMEM.
 */
int __init kevent_start(void)
{
	int err;

	kevent_check_abi();
	err = kevent_sources_init();
	if (err)
		return err;
	kevent_quota_init();
	kevent_testpoints_start();
	return 0;
}
