/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The exceptions of the module: tests that fail there, and why
 */
#ifndef MODULE_H
#define MODULE_H

/**
 * module_exception() - must a test fail on the module?
 * @suite: its suite
 * @test: its name in the suite
 *
 * Return: what the module lacks, or NULL if the test must pass.
 */
const char *module_exception(const char *suite, const char *test);

/**
 * kernel_is_too_old() - does a test fail with any queues, as the kernel has a fault?
 * @suite: its suite
 * @test: its name in the suite
 *
 * Return: whether it is to be left out on epoll.
 */
bool kernel_is_too_old(const char *suite, const char *test);

/**
 * module_may_pass() - may such a test pass on the module, as luck has it?
 * @suite: its suite
 * @test: its name in the suite
 *
 * Return: whether it is to be left out always.
 */
bool module_may_pass(const char *suite, const char *test);

/**
 * module_exception_of_nothing() - names in the list that no test has
 * @known: is there a suite, or a suite.test, of this name?
 *
 * Return: the first of them, or NULL.
 */
const char *module_exception_of_nothing(bool (*known)(const char *name));

#endif /* MODULE_H */
