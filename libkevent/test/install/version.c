// SPDX-License-Identifier: GPL-2.0
/*
 * Is the version of the headers, and of the library, that of the argument?
 */
#include <libkevent.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	char text[40];

	snprintf(text, sizeof(text), "%d.%d.%d", KEVENT_VERSION_MAJOR,
		 KEVENT_VERSION_MINOR, KEVENT_VERSION_PATCH);
	puts(text);
	return argc != 2 || strcmp(text, argv[1]) != 0 ||
	       kevent_version() != KEVENT_VERSION;
}
