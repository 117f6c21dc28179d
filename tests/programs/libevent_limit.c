// SPDX-License-Identifier: GPL-2.0
/*
 * usage: libevent_limit
 *
 * Ask for an event base where no descriptor can be opened. libevent says why there is none.
 */
#include <event2/event.h>
#include <sys/resource.h>

int main(void)
{
	static const struct rlimit none;

	return setrlimit(RLIMIT_NOFILE, &none) || !event_base_new();
}
