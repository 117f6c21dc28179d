// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The version of the library
 */
#include "libkevent.h"

unsigned int kevent_version(void)
{
	return KEVENT_VERSION;
}
