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
#elif !defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L
#error "libkevent needs C11 or later: -std=gnu11"
#endif

#ifndef KEVENT_INLINE
#define KEVENT_INLINE	static inline
#endif

#endif /* LIBKEVENT_INLINE_H */
