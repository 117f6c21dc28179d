/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: which version this is
 */
#ifndef LIBKEVENT_VERSION_H
#define LIBKEVENT_VERSION_H

#define KEVENT_VERSION_MAJOR	2
#define KEVENT_VERSION_MINOR	0
#define KEVENT_VERSION_PATCH	0

/**
 * KEVENT_VERSION_NUMBER() - a version as one number, for comparisons
 * @major: grows with what a program may have to be changed for; the soname says whether it
 *	has to be built anew, and is that of 1.0.0
 * @minor: grows when functions are new
 * @patch: grows when nothing but mistakes were corrected
 */
#define KEVENT_VERSION_NUMBER(major, minor, patch) \
	((major) << 16 | (minor) << 8 | (patch))

/* The version of these headers; kevent_version() is that of the library. */
#define KEVENT_VERSION KEVENT_VERSION_NUMBER(KEVENT_VERSION_MAJOR, \
					     KEVENT_VERSION_MINOR, \
					     KEVENT_VERSION_PATCH)

#endif /* LIBKEVENT_VERSION_H */
