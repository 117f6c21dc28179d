// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * libkevent-ffi: the functions of the headers as symbols, for other languages
 */
#define KEVENT_INLINE
#include "libkevent.h"
