/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of the suite examples that are in another file: servers to which clients talk in turns
 */
#ifndef EXAMPLES_H
#define EXAMPLES_H

void backend_says_the_host(void);
void two_pipes(void);
void stream(void);
void one_loop(void);
void echo_servers(void);
void chat(void);
void pool(void);

#endif /* EXAMPLES_H */
