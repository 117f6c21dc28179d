// SPDX-License-Identifier: GPL-2.0
/*
 * What a program gets here: the kernel, its module, or epoll
 *
 * The library decides, so it is asked: the program is linked with it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libkevent.h>

#include "decode.h"
#include "host.h"
#include "queues.h"

/* Of kevent_supported(), where the library makes queues of epoll */
static const char *why_neither(int error)
{
	switch (error) {
	case 0:
		return "KEVENT_BACKEND asks for it";
	case -ENOSYS:
		return "the kernel has no kevent, and there is no device " KEVENT_DEVICE;
	case -EACCES:
		return KEVENT_DEVICE " may not be opened: join the group kevent";
	case -EPERM:
		return "the kernel forbids kevent here: see the sysctl kernel.kevent_disabled, and "
		       "filters of system calls of the service or container";
	default:
		return kevent_strerror(error);
	}
}

static const char *why(const char *host)
{
	if (!strcmp(host, "kevent"))
		return "the kernel has the system calls";
	if (!strcmp(host, "module"))
		return "the device " KEVENT_DEVICE " can be opened";
	return why_neither(kevent_supported());
}

static void show_types(const char *title, __u32 types)
{
	char words[256] = "";
	struct text t = { .at = words, .room = sizeof(words) };
	__u32 type;

	for (type = 0; type <= KEVENT_BOUND; type++) {
		if (!(types & KEVENT_TYPE(type)) || type == KEVENT_NAIO)
			continue;
		say(&t, " ");
		say_type(&t, type);
	}
	if (*words)
		printf("%s:%s\n", title, words);
}

int show_host(void)
{
	const char *host, *asked = getenv("KEVENT_BACKEND");
	int fd = kevent_init(NULL, 0, 0);
	__u32 types;

	if (asked)
		printf("asked: KEVENT_BACKEND=%s\n", asked);
	if (fd < 0) {
		fflush(stdout);
		fprintf(stderr, "kevent-show: programs get no queue: %s\n", kevent_strerror(fd));
		return 1;
	}
	host = kevent_backend(fd);
	types = kevent_types(fd);
	printf("host: %s\nwhy: %s\n", host, why(host));
	show_types("types", types);
	show_types("lacks", ~types);
	return !flush_output();
}
