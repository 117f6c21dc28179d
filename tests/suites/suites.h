/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The suites of kevent-tests; main.c is the registry
 */
#ifndef SUITES_H
#define SUITES_H

#include <stdbool.h>
#include <stdint.h>

struct queue;

/**
 * struct test_case - one test, with one of three kinds of body
 * @name:	the behaviour it shows
 * @run:	a body that opens the queues it needs
 * @run_each:	a body that runs twice: on a queue without a ring, then on one
 *		with a ring
 * @run_size:	a body that opens queues with a ring of @size entries
 * @size:	see @run_size; 0: no ring
 * @seconds:	time limit on the plain kernel, 0: the default
 *
 * Each test runs in a process of its own.
 */
struct test_case {
	const char	*name;
	void		(*run)(void);
	void		(*run_each)(struct queue *q);
	void		(*run_size)(uint32_t size);
	uint32_t	size;
	unsigned int	seconds;
};

#define TEST(fn)		{ .name = #fn, .run = fn }
#define TEST_LIMIT(fn, s)	{ .name = #fn, .run = fn, .seconds = (s) }
#define TEST_EACH(fn)		{ .name = #fn, .run_each = fn }
/* A test without a function of its name: @body with a ring of @nr entries */
#define TEST_SIZE(test, body, nr, s)	\
	{ .name = #test, .run_size = body, .size = (nr), .seconds = (s) }

/**
 * struct test_suite - tests of one contract or source
 * @name:	first part of the name of each test
 * @cases:	ends with an entry without a name
 * @jobs:	tests that may run at once; 0 and 1: one after the other
 * @init_flags:	of the queues that open_queue() makes
 * @only_by_name: needs much time or memory, one CPU, or words on the kernel's command line
 */
struct test_suite {
	const char		*name;
	const struct test_case	*cases;
	unsigned int		jobs;
	unsigned int		init_flags;
	bool			only_by_name;
};

extern const struct test_suite abi_suite;
extern const struct test_suite attach_suite;
extern const struct test_suite chain_suite;
extern const struct test_suite which_host_suite;
extern const struct test_suite wrappers_suite;
extern const struct test_suite driven_suite;
extern const struct test_suite drives_suite;
extern const struct test_suite calls_suite;
extern const struct test_suite aio_calls_suite;
extern const struct test_suite aio_servers_suite;
extern const struct test_suite nowait_suite;
extern const struct test_suite storm_aio_suite;
extern const struct test_suite bound_calls_suite;
extern const struct test_suite chain_watch_suite;
extern const struct test_suite calls_random_suite;
extern const struct test_suite calls_observed_suite;
extern const struct test_suite calls_audited_suite;
extern const struct test_suite lanes_suite;
extern const struct test_suite storm_lanes_suite;
extern const struct test_suite streams_suite;
extern const struct test_suite storm_streams_suite;
extern const struct test_suite awake_suite;
extern const struct test_suite tracepoints_suite;
extern const struct test_suite empty_suite;
extern const struct test_suite bridges_suite;
extern const struct test_suite confined_suite;
extern const struct test_suite errors_suite;
extern const struct test_suite examples_suite;
extern const struct test_suite trace_suite;
extern const struct test_suite show_suite;
extern const struct test_suite top_suite;
extern const struct test_suite device_suite;
extern const struct test_suite module_suite;
extern const struct test_suite faults_suite;
extern const struct test_suite fail_nth_suite;
extern const struct test_suite fail_nth_calls_suite;
extern const struct test_suite fuse_suite;
extern const struct test_suite foreign_suite;
extern const struct test_suite futex_suite;
extern const struct test_suite futex_lock_suite;
extern const struct test_suite hand_on_suite;
extern const struct test_suite handover_suite;
extern const struct test_suite handoff_suite;
extern const struct test_suite suspend_suite;
extern const struct test_suite huge_suite;
extern const struct test_suite inode_suite;
extern const struct test_suite inode_deeds_suite;
extern const struct test_suite inode_limits_suite;
extern const struct test_suite lifetime_suite;
extern const struct test_suite numbers_suite;
extern const struct test_suite left_suite;
extern const struct test_suite looks_suite;
extern const struct test_suite limits_suite;
extern const struct test_suite malformed_suite;
extern const struct test_suite modes_suite;
extern const struct test_suite busy_poll_suite;
extern const struct test_suite coalesce_suite;
extern const struct test_suite nested_suite;
extern const struct test_suite nested_random_suite;
extern const struct test_suite nesting_suite;
extern const struct test_suite pipe_suite;
extern const struct test_suite poll_suite;
extern const struct test_suite posix_timer_suite;
extern const struct test_suite proc_suite;
extern const struct test_suite proc_tasks_suite;
extern const struct test_suite refuse_suite;
extern const struct test_suite races_suite;
extern const struct test_suite races_promises_suite;
extern const struct test_suite races_signals_suite;
extern const struct test_suite rights_suite;
extern const struct test_suite ring_suite;
extern const struct test_suite scale_suite;
extern const struct test_suite signal_suite;
extern const struct test_suite signal_life_suite;
extern const struct test_suite signal_queued_suite;
extern const struct test_suite socket_suite;
extern const struct test_suite stall_suite;
extern const struct test_suite storm_suite;
extern const struct test_suite storm_hits_suite;
extern const struct test_suite storm_inode_suite;
extern const struct test_suite storm_posix_timer_suite;
extern const struct test_suite storm_proc_suite;
extern const struct test_suite storm_signal_suite;
extern const struct test_suite soak_suite;
extern const struct test_suite storm_timer_suite;
extern const struct test_suite timer_set_suite;
extern const struct test_suite timer_suite;
extern const struct test_suite turns_suite;
extern const struct test_suite user_suite;
extern const struct test_suite wait_arg_suite;
extern const struct test_suite max_running_suite;
extern const struct test_suite max_running_members_suite;
extern const struct test_suite storm_max_running_suite;
extern const struct test_suite wake_suite;
extern const struct test_suite wait_ends_suite;
extern const struct test_suite sleepers_suite;
extern const struct test_suite wake_order_suite;
extern const struct test_suite wake_all_suite;
extern const struct test_suite worst_files_suite;
extern const struct test_suite worst_sources_suite;
extern const struct test_suite worst_calls_suite;
extern const struct test_suite worst_sleepers_suite;
extern const struct test_suite hit_faults_suite;
extern const struct test_suite hits_suite;

#endif /* SUITES_H */
