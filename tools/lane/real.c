// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the functions of libc, and what the command has set
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lane.h"

#define FORK_MS	100	/* if tests do not give them more time */

struct real_calls real_calls;
struct lane_settings lane_settings;

/*
 * Programs write titles of their processes over their environment. malloc() may be the
 * program's, and call functions of this object.
 */
static const char *keep(const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;
	void *copy;

	if (!text)
		return NULL;
	copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return copy == MAP_FAILED ? NULL : memcpy(copy, text, size);
}

/* Nobody may have this object read a program that has more rights than its user. */
static void read_settings(void)
{
	const char *children = secure_getenv("KEVENT_LANE_CHILDREN");
	const char *stats = secure_getenv("KEVENT_LANE_STATS");
	const char *fork_ms = secure_getenv("KEVENT_LANE_FORK_MS");
	const char *fill = secure_getenv("MALLOC_PERTURB_");

	lane_settings.looks = secure_getenv("KEVENT_LANE_NO_LOOKS") ? 0 : KEVENT_LOOKS_LEARNED;
	lane_settings.forks_alone = children && !strcmp(children, "none");
	lane_settings.stats = stats ? atoi(stats) : 0;
	lane_settings.fork_limit = (fork_ms ? atoi(fork_ms) : FORK_MS) * 1000000LL;
	lane_settings.fill = fill ? (unsigned char)atoi(fill) : 0;
	lane_settings.paths = keep(secure_getenv("KEVENT_LANE_PATHS"));
}

void real_find(void)
{
	struct real_calls found;

#define X(name) found.name = (__typeof__(found.name))dlsym(RTLD_NEXT, #name);
	REAL_CALLS(X)
#undef X
	memcpy(&real_calls, &found, sizeof(found));
	read_settings();
}

__attribute__((destructor)) static void say_stats(void)
{
	const struct lane_stats *s = &lane_stats;

	if (lane_settings.stats && (s->streams || getpid() == lane_settings.stats))
		dprintf(2, "kevent-lane: %s: %llu streams, in %llu bytes by memory and %llu by "
			"socket, out %llu and %llu, %llu sleeps\n",
			program_invocation_short_name, s->streams, s->in_memory, s->in_socket,
			s->out_memory, s->out_socket, s->sleeps);
}
