/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests that are left out on the fallback of the library
 */
#ifndef FALLBACK_H
#define FALLBACK_H

#include <stdbool.h>

/**
 * own_machine() - may tests change the machine?
 *
 * Return: true in a guest of tests/vm/run.
 */
bool own_machine(void);

/**
 * left_out() - is a test left out on the fallback?
 * @suite: its suite
 * @test: its name in the suite
 *
 * Return: the name of the row, or NULL when the test is run.
 */
const char *left_out(const char *suite, const char *test);

/**
 * why_left_out() - what the fallback does instead
 * @row: of left_out()
 *
 * Return: a line for the report.
 */
const char *why_left_out(const char *row);

#endif /* FALLBACK_H */
