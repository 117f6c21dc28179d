/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connected files: made, filled, and what a watch of one of them reports
 */
#ifndef PAIRS_H
#define PAIRS_H

#include <netinet/in.h>

#include "helpers.h"

/* A stream of AF_UNIX, both ends non-blocking */
void unix_pair(int fd[2]);
/* A non-blocking listener on some port of the loopback interface */
int tcp_listener(struct sockaddr_in *addr);
int tcp_connect(const struct sockaddr_in *addr);
/* Waits for a connection that has been made; it is non-blocking. */
int tcp_accept(int listener);
/* fd[0]: accepted, non-blocking; fd[1]: connected */
void tcp_pair(int fd[2]);
void close_pair(const int fd[2]);

/* Makes the file non-blocking and writes to it until it takes no more. */
void fill(int fd);
/* Its close waits until the peer has the bytes, and the peer reads none. */
void fill_and_linger(int fd);
/* An actor: what read() returns for a byte of *@fd */
long read_byte(void *fd);
/* Of the next event, which is of a socket. They may be late: the network has threads. */
uint32_t next_mask(struct queue *q);

#endif /* PAIRS_H */
