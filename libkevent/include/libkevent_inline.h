/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: how the functions of the headers are defined
 *
 * They are inline. libkevent-ffi has them as symbols for other languages: it is
 * built from the headers with another KEVENT_INLINE.
 */
#ifndef LIBKEVENT_INLINE_H
#define LIBKEVENT_INLINE_H

#ifdef __cplusplus
#if __cplusplus < 201103L
#error "libkevent needs C++11 or later"
#endif
#elif (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L) && \
	(!defined(__GNUC__) || defined(__STRICT_ANSI__))
#error "libkevent needs C11 or later, or a dialect of GNU C: -std=gnu11"
#endif

/* The macro static_assert of C11 is not there in each dialect of GNU C. */
#ifdef __cplusplus
#define KEVENT_STATIC_ASSERT	static_assert
#else
#define KEVENT_STATIC_ASSERT	_Static_assert
#endif

#ifndef KEVENT_INLINE
#define KEVENT_INLINE	static inline
#endif

#endif /* LIBKEVENT_INLINE_H */
