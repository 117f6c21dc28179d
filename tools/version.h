/* SPDX-License-Identifier: GPL-2.0 */
/* The programs have the version of the library they are built with. */
#ifndef KEVENT_TOOLS_VERSION_H
#define KEVENT_TOOLS_VERSION_H

#include <libkevent_version.h>
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((noreturn)) void show_version(const char *name)
{
	printf("%s %d.%d.%d\n", name, KEVENT_VERSION_MAJOR, KEVENT_VERSION_MINOR,
	       KEVENT_VERSION_PATCH);
	exit(fflush(stdout) != 0);
}

#endif /* KEVENT_TOOLS_VERSION_H */
