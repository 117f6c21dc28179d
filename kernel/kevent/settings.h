/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings of the administrator
 */
#ifndef _KEVENT_SETTINGS_H
#define _KEVENT_SETTINGS_H

#include <linux/types.h>

bool kevent_allowed(void);

#endif /* _KEVENT_SETTINGS_H */
