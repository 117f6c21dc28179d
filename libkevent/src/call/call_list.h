/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Calls that may be in a chain, written by scripts/call-list. Some machines have other
 * names for them, or none. Included where ALLOW() is defined.
 */
#ifdef __NR_close
ALLOW(close)
#endif
#ifdef __NR_fsync
ALLOW(fsync)
#endif
#ifdef __NR_fdatasync
ALLOW(fdatasync)
#endif
#ifdef __NR_getpid
ALLOW(getpid)
#endif
#ifdef __NR_getppid
ALLOW(getppid)
#endif
#ifdef __NR_read
ALLOW(read)
#endif
#ifdef __NR_write
ALLOW(write)
#endif
#ifdef __NR_readv
ALLOW(readv)
#endif
#ifdef __NR_writev
ALLOW(writev)
#endif
#ifdef __NR_lseek
ALLOW(lseek)
#endif
#ifdef __NR_ftruncate
ALLOW(ftruncate)
#endif
#ifdef __NR_getdents64
ALLOW(getdents64)
#endif
#ifdef __NR_fstat
ALLOW(fstat)
#endif
#ifdef __NR_fstatfs
ALLOW(fstatfs)
#endif
#ifdef __NR_statfs
ALLOW(statfs)
#endif
#ifdef __NR_faccessat
ALLOW(faccessat)
#endif
#ifdef __NR_mkdirat
ALLOW(mkdirat)
#endif
#ifdef __NR_unlinkat
ALLOW(unlinkat)
#endif
#ifdef __NR_symlinkat
ALLOW(symlinkat)
#endif
#ifdef __NR_pipe2
ALLOW(pipe2)
#endif
#ifdef __NR_socket
ALLOW(socket)
#endif
#ifdef __NR_bind
ALLOW(bind)
#endif
#ifdef __NR_listen
ALLOW(listen)
#endif
#ifdef __NR_connect
ALLOW(connect)
#endif
#ifdef __NR_accept
ALLOW(accept)
#endif
#ifdef __NR_sendmsg
ALLOW(sendmsg)
#endif
#ifdef __NR_recvmsg
ALLOW(recvmsg)
#endif
#ifdef __NR_shutdown
ALLOW(shutdown)
#endif
#ifdef __NR_getsockname
ALLOW(getsockname)
#endif
#ifdef __NR_getpeername
ALLOW(getpeername)
#endif
#ifdef __NR_clock_gettime
ALLOW(clock_gettime)
#endif
#ifdef __NR_clock_getres
ALLOW(clock_getres)
#endif
#ifdef __NR_pread64
ALLOW(pread64)
#endif
#ifdef __NR_pwrite64
ALLOW(pwrite64)
#endif
#ifdef __NR_fallocate
ALLOW(fallocate)
#endif
#ifdef __NR_fadvise64
ALLOW(fadvise64)
#endif
#ifdef __NR_sendfile
ALLOW(sendfile)
#endif
#ifdef __NR_tee
ALLOW(tee)
#endif
#ifdef __NR_newfstatat
ALLOW(newfstatat)
#endif
#ifdef __NR_openat
ALLOW(openat)
#endif
#ifdef __NR_openat2
ALLOW(openat2)
#endif
#ifdef __NR_faccessat2
ALLOW(faccessat2)
#endif
#ifdef __NR_readlinkat
ALLOW(readlinkat)
#endif
#ifdef __NR_utimensat
ALLOW(utimensat)
#endif
#ifdef __NR_socketpair
ALLOW(socketpair)
#endif
#ifdef __NR_accept4
ALLOW(accept4)
#endif
#ifdef __NR_sendmmsg
ALLOW(sendmmsg)
#endif
#ifdef __NR_preadv
ALLOW(preadv)
#endif
#ifdef __NR_pwritev
ALLOW(pwritev)
#endif
#ifdef __NR_preadv2
ALLOW(preadv2)
#endif
#ifdef __NR_pwritev2
ALLOW(pwritev2)
#endif
#ifdef __NR_splice
ALLOW(splice)
#endif
#ifdef __NR_copy_file_range
ALLOW(copy_file_range)
#endif
#ifdef __NR_statx
ALLOW(statx)
#endif
#ifdef __NR_renameat2
ALLOW(renameat2)
#endif
#ifdef __NR_linkat
ALLOW(linkat)
#endif
#ifdef __NR_sendto
ALLOW(sendto)
#endif
#ifdef __NR_recvfrom
ALLOW(recvfrom)
#endif
#ifdef __NR_recvmmsg
ALLOW(recvmmsg)
#endif
#ifdef __NR_getsockopt
ALLOW(getsockopt)
#endif
#ifdef __NR_setsockopt
ALLOW(setsockopt)
#endif
