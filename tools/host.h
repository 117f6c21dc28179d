/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a program gets here: the kernel, its module, or epoll
 */
#ifndef HOST_H
#define HOST_H

/* Prints it, and why. Returns a status for exit(). */
int show_host(void);

#endif /* HOST_H */
