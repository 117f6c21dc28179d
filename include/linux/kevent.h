/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of kevent in core files
 */
#ifndef _LINUX_KEVENT_H
#define _LINUX_KEVENT_H

#include <linux/compiler.h>
#include <linux/fs.h>

#ifdef CONFIG_KEVENT

bool is_kevent_file(const struct file *file);
void kevent_file_flush(struct file *file, fl_owner_t table);
void kevent_file_release(struct file *file);
void kevent_clock_was_set(void);
void kevent_clock_resumed(void);

/**
 * kevent_flush - a descriptor of @file has left the file table @table
 * @file: the file; the caller holds a reference
 * @table: the &struct files_struct the descriptor was in
 *
 * Drops the watches added through descriptors of @table that no longer refer
 * to @file. The caller has cleared the slot under &files_struct.file_lock: a
 * watch added since has seen that, see kevent_file_is_current().
 */
static inline void kevent_flush(struct file *file, fl_owner_t table)
{
	if (unlikely(READ_ONCE(file->f_kevent)))
		kevent_file_flush(file, table);
}

/**
 * kevent_release - the last reference to @file is gone
 * @file: the file, before its ->release()
 *
 * Drops all watches of @file. Must come before anything @file's wait queues
 * depend on is torn down.
 */
static inline void kevent_release(struct file *file)
{
	if (unlikely(READ_ONCE(file->f_kevent)))
		kevent_file_release(file);
}

#else

static inline void kevent_flush(struct file *file, fl_owner_t table) {}
static inline void kevent_release(struct file *file) {}
static inline void kevent_clock_was_set(void) {}
static inline void kevent_clock_resumed(void) {}

#endif /* CONFIG_KEVENT */

#endif /* _LINUX_KEVENT_H */
