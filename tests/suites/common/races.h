/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the generators of races share: kinds of input, delays in the kernel, reports
 */
#ifndef RACES_H
#define RACES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * May a test make this kind of input? KEVENT_RACES in the environment has the words for
 * those that are wanted, or, each with a "-" in front, for those that are not. Without it
 * all are.
 */
bool race_kind(const char *name);

/*
 * Has the kernel delay tasks in windows at random, or, by KEVENT_RACES_DELAYS, in those
 * it names: "name:permille:microseconds" and spaces. Nothing happens in a kernel without
 * windows.
 */
void delay_at_random(uint64_t *rnd);
void delay_no_more(void);
/* Adds to the report how many tasks were delayed in which windows. */
void say_delays(void);

/* Has the kernel reported anything since the first call? */
bool kernel_complains(void);

#endif /* RACES_H */
