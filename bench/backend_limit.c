// SPDX-License-Identifier: GPL-2.0
/*
 * No notification: what the I/O alone costs
 */
#include <stddef.h>

#include "bench.h"

static const char *const modes[] = { "none", NULL };

const struct bench_backend backend_limit = {
	.name	= "limit",
	.modes	= modes,
	.blind	= true,
};
