// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: which socket paths are listed, as programs give them
 */
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "lane.h"

/* '@' stands for the byte 0 of an abstract name, and '*' at the end for the rest. */
static bool is_path(const char *item, size_t len, const char *path, size_t path_len)
{
	if (len && item[len - 1] == '*') {
		len--;
		if (path_len > len)
			path_len = len;
	}
	if (len != path_len)
		return false;
	if (len && item[0] == '@' && !path[0])
		return !memcmp(item + 1, path + 1, len - 1);
	return !memcmp(item, path, len);
}

bool lane_is_listed(const struct sockaddr *addr, socklen_t len)
{
	const size_t start = offsetof(struct sockaddr_un, sun_path);
	const char *path = (const char *)addr + start, *item = lane_settings.paths, *end;
	size_t path_len;

	if (!item || !addr || len <= start || addr->sa_family != AF_UNIX)
		return false;
	path_len = len - start;
	if (path[0])
		path_len = strnlen(path, path_len);
	for (; *item; item = *end ? end + 1 : end) {
		end = strchrnul(item, '\n');
		if (is_path(item, (size_t)(end - item), path, path_len))
			return true;
	}
	return false;
}
