/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of sources
 */
#ifndef _KEVENT_SOURCE_H
#define _KEVENT_SOURCE_H

#include <linux/err.h>
#include <linux/nospec.h>
#include <linux/types.h>
#include <linux/ukevent.h>

struct kevent_source_ops;
struct kmem_cache;

#define KEVENT_NR_TYPES		(KEVENT_FUTEX + 1)

extern const struct kevent_source_ops *const kevent_sources[];
extern u32 kevent_source_costs[];
void kevent_sources_init(void);

extern const struct kevent_source_ops kevent_socket_ops;
extern const struct kevent_source_ops kevent_inode_ops;
extern const struct kevent_source_ops kevent_timer_ops;
extern const struct kevent_source_ops kevent_poll_ops;
extern const struct kevent_source_ops kevent_pipe_ops;
extern const struct kevent_source_ops kevent_signal_ops;
extern const struct kevent_source_ops kevent_posix_timer_ops;
extern const struct kevent_source_ops kevent_user_ops;
extern const struct kevent_source_ops kevent_proc_ops;
extern const struct kevent_source_ops kevent_futex_ops;
extern struct kmem_cache *kevent_inode_cache;
extern struct kmem_cache *kevent_timer_cache;
extern struct kmem_cache *kevent_poll_cache;
extern struct kmem_cache *kevent_signal_cache;
extern struct kmem_cache *kevent_posix_timer_cache;
extern struct kmem_cache *kevent_user_cache;
extern struct kmem_cache *kevent_proc_cache;
extern struct kmem_cache *kevent_futex_cache;

/**
 * kevent_source - the source of a type
 * @type: KEVENT_SOCKET and its like; anything a caller may have written
 *
 * Return: its operations, ERR_PTR(-EINVAL) when there is no such type,
 * ERR_PTR(-ENOSYS) when this kernel has no source for it.
 */
static inline const struct kevent_source_ops *kevent_source(u32 type)
{
	const struct kevent_source_ops *ops;

	if (type >= KEVENT_NR_TYPES)
		return ERR_PTR(-EINVAL);
	ops = kevent_sources[array_index_nospec(type, KEVENT_NR_TYPES)];
	return ops ?: ERR_PTR(-ENOSYS);
}

/* Bytes that a watch of a valid type is charged to its owner with */
static inline u32 kevent_source_cost(u32 type)
{
	return kevent_source_costs[type];
}

#endif /* _KEVENT_SOURCE_H */
