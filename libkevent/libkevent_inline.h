/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: how the functions of the headers are defined
 *
 * They are inline. libkevent-ffi has them as symbols for other languages: it is
 * built from the headers with another KEVENT_INLINE.
 */
#ifndef LIBKEVENT_INLINE_H
#define LIBKEVENT_INLINE_H

#ifndef KEVENT_INLINE
#define KEVENT_INLINE	static inline
#endif

#endif /* LIBKEVENT_INLINE_H */
