// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Where the library has descriptors that the program does not know
 */
#include "own.h"

int kevent_own_from;
