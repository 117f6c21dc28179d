/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of core/watch_memory.c to the memory cgroup; a part of host.h
 */
#ifndef _KEVENT_HOST_PAYER_H
#define _KEVENT_HOST_PAYER_H

#include <linux/memcontrol.h>
#include <linux/types.h>

/* The memory cgroup: who pays for the watches of a queue */

#ifdef CONFIG_MEMCG
static inline struct obj_cgroup *host_payer_get(void)
{
	return get_obj_cgroup_from_current();
}

static inline int host_payer_charge(struct obj_cgroup *payer, size_t bytes)
{
	return payer ? obj_cgroup_charge(payer, GFP_KERNEL, bytes) : 0;
}

static inline void host_payer_uncharge(struct obj_cgroup *payer, size_t bytes)
{
	if (payer && bytes)
		obj_cgroup_uncharge(payer, bytes);
}

static inline void host_payer_put(struct obj_cgroup *payer)
{
	if (payer)
		obj_cgroup_put(payer);
}

static inline struct obj_cgroup *host_payer_get_again(struct obj_cgroup *payer)
{
	if (payer)
		obj_cgroup_get(payer);
	return payer;
}
#else
static inline struct obj_cgroup *host_payer_get(void)
{
	return NULL;
}

static inline int host_payer_charge(struct obj_cgroup *payer, size_t bytes)
{
	return 0;
}

static inline void host_payer_uncharge(struct obj_cgroup *payer, size_t bytes) {}
static inline void host_payer_put(struct obj_cgroup *payer) {}

static inline struct obj_cgroup *host_payer_get_again(struct obj_cgroup *payer)
{
	return NULL;
}
#endif

#endif /* _KEVENT_HOST_PAYER_H */
