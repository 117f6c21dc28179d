/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Results in KTAP version 1, one line per test
 */
#ifndef KTAP_H
#define KTAP_H

#include <stdbool.h>
#include <stddef.h>

/**
 * ktap_plan() - begin a report
 * @nr: number of results that will follow
 */
void ktap_plan(unsigned int nr);

/**
 * ktap_begin() - say which test runs, so that the log of a crash has it
 * @suite: its suite
 * @name: its name
 */
void ktap_begin(const char *suite, const char *name);

/**
 * ktap_result() - report the result of one test
 * @ok: whether it passed
 * @suite: its suite
 * @name: its name
 * @diagnostics: any number of lines, or ""
 */
void ktap_result(bool ok, const char *suite, const char *name,
		 const char *diagnostics);

/**
 * ktap_exception() - report a test that failed, as it must
 * @suite: its suite
 * @name: its name
 * @why: what is missing
 * @diagnostics: any number of lines, or ""
 */
void ktap_exception(const char *suite, const char *name, const char *why,
		    const char *diagnostics);

/**
 * ktap_left_out() - say that a test is not part of the run
 * @suite: its suite
 * @name: its name
 * @reason: a word
 * @text: what it means
 *
 * It is no result, and the plan does not count it.
 */
void ktap_left_out(const char *suite, const char *name, const char *reason,
		   const char *text);

/**
 * ktap_end() - end the report
 *
 * Return: the number of tests that failed.
 */
unsigned int ktap_end(void);

#endif /* KTAP_H */
