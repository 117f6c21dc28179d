/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests that are left out on the module
 */
#ifndef MODULE_H
#define MODULE_H

/**
 * left_out_on_module() - is a test left out on the module?
 * @suite: its suite
 * @name: SUITE.TEST
 *
 * Return: the name of the reason, or NULL when the test is run.
 */
const char *left_out_on_module(const char *suite, const char *name);

/**
 * why_left_out_on_module() - what the module lacks
 * @reason: of left_out_on_module()
 *
 * Return: a line for the report.
 */
const char *why_left_out_on_module(const char *reason);

#endif /* MODULE_H */
