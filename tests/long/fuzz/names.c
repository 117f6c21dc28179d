// SPDX-License-Identifier: GPL-2.0
/*
 * Names of operations, and the signals that ids stand for
 */
#define _GNU_SOURCE
#include <signal.h>

#include "fuzz.h"

static const char *const op_names[NR_OPS] = {
	[OP_NONE] = "none", [OP_OPEN] = "open", [OP_CLOSE] = "close",
	[OP_AGAIN] = "again", [OP_STALE] = "stale",
	[OP_DUP] = "dup", [OP_WRITE] = "write", [OP_READ] = "read",
	[OP_SHUTDOWN] = "shutdown", [OP_CHANGE] = "change",
	[OP_CTL] = "ctl", [OP_POP] = "pop", [OP_COMMIT] = "commit",
	[OP_COLLECT] = "collect", [OP_WAKE_ALL] = "wake_all", [OP_REOPEN] = "reopen",
	[OP_HOLD] = "hold", [OP_RELEASE] = "release",
	[OP_MANY_ADD] = "many_add", [OP_MANY_WRITE] = "many_write",
	[OP_MANY_READ] = "many_read", [OP_KILL] = "kill",
	[OP_SPAWN] = "spawn", [OP_END] = "end", [OP_REAP] = "reap",
	[OP_SET] = "set", [OP_WAKE] = "wake", [OP_SETTIME] = "settime",
	[OP_NAP] = "nap", [OP_SETTLE] = "settle",
};

const char *op_name(uint8_t code)
{
	return code < NR_OPS ? op_names[code] : "?";
}

int signal_of(int x)
{
	switch (x) {
	case 0:
		return SIGUSR1;
	case 1:
		return SIGUSR2;
	default:
		return SIGRTMIN + x;
	}
}

bool is_realtime(int x)
{
	return x > 1;
}

/* No signal of ours ends the process. */
void block_signals(void)
{
	sigset_t set;
	int i;

	sigemptyset(&set);
	for (i = 0; i < NR_IDS; i++)
		sigaddset(&set, signal_of(i));
	sigprocmask(SIG_BLOCK, &set, NULL);
}
