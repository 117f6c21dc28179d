// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what the module lacks
 *
 * Each is left out under the name of a reason.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helpers.h"
#include "module.h"

struct reason {
	const char	*name;
	const char	*why;
	/* Types without which it is one, KEVENT_TYPE() each; 0: it always is */
	uint32_t	types;
	const char	*tests;		/* suites, or suite.test, between spaces */
};

static const struct reason reasons[] = {
	{ "posix_timer", "there is no SIGEV_KEVENT", KEVENT_TYPE(KEVENT_POSIX_TIMER),
	  " posix_timer storm_posix_timer refuse.posix_timers_can_be_refused"
	  " examples.posix_timer refuse.each_type_can_be_refused"
	  " refuse.types_without_a_bit_can_be_refused"
	  " limits.watches_of_every_type_are_limited show.other_watches_have_words"
	  " nested.level_watch_of_each_source_repeats"
	  " nested.edge_watch_of_each_source_reports_once"
	  " nested.oneshot_watch_of_each_source_ends"
	  " nested.dispatch_watch_of_each_source_waits"
	  " nested.source_may_be_ready_at_add " },
	{ "futex", "there are no futexes", KEVENT_TYPE(KEVENT_FUTEX),
	  " futex futex_lock limits.address_spaces_are_charged examples.futex " },
	{ "signal", "there are no signals", KEVENT_TYPE(KEVENT_SIGNAL),
	  " trace.requests_have_words trace.events_have_words signal signal_life signal_queued storm_signal examples.signals"
	  " examples.everything " },
	{ "call", "calls of a chain are made one by one", KEVENT_TYPE(KEVENT_AIO),
	  " calls calls_observed calls_audited calls_random aio_calls nowait storm_aio"
	  " limits.switch_off_is_for_chains_of_open_queues_too trace.chains_have_calls"
	  " fuse.chains_leave_its_files_to_servers confined.held_thread_takes_no_chain " },
	{ "bound", "no call is bound", KEVENT_TYPE(KEVENT_BOUND),
	  " bound_calls limits.watches_per_file_are_limited_for_all_users " },
	{ "status", "the status of an exit is for the parent, and for root", 0,
	  " proc_tasks.status_is_for_those_who_may_know " },
	{ "nested", "a queue watches neither queues nor epoll", 0,
	  " nested nested_random races_promises.each_call_reports_what_is_ready " },
	{ "max_running", "nobody tells a module that a thread blocks", 0,
	  " max_running storm_max_running confined.held_thread_keeps_no_place " },
	{ "handoff", "a woken thread runs where the scheduler likes", 0,
	  " handoff.waker_and_woken_share_a_cpu " },
	{ "empty", "TCP does not tell a module of acknowledgements", 0,
	  " empty.tcp_stream_is_empty_when_all_is_acknowledged"
	  " empty.tcp_level_holds_while_empty empty.lost_data_is_sent_again"
	  " empty.full_stream_becomes_empty empty.modified_watch_becomes_empty"
	  " empty.end_of_the_stream_is_acknowledged_too empty.reset_is_not_empty"
	  " empty.listener_is_never_empty empty.epoll_is_left_alone " },
	{ "filter", "a filter of system calls sees ioctls of a queue", 0,
	  " refuse.seccomp_filter_can_demand_refusals"
	  " refuse.seccomp_filter_can_deny_all_changes " },
	{ "switch", "who may make a queue is the mode of the device", 0,
	  " limits.switch_off_has_three_positions"
	  " limits.switch_off_leaves_open_queues_alone " },
	{ "numbers", "there are no numbers of system calls", 0,
	  " abi.compat_calls_share_the_layout " },
	{ "faults", "it asks for types, calls and limits that are absent", 0,
	  " fail_nth.add_of_each_source fail_nth.modify_of_each_source"
	  " fail_nth.remove_of_each_source fail_nth.timer_of_a_queue"
	  " fail_nth.calls_that_wait fail_nth.signals_that_are_consumed"
	  " fail_nth.queue_of_another_process fail_nth.chains_and_bound_calls " },
	{ "windows", "there is no /sys/kernel/debug/kevent/testpoint", 0,
	  " looks show.watch_that_is_looked_at_is_busy"
	  " ring.flag_that_faults_is_one_piece_of_work"
	  " modes.modify_counts_although_a_consumer_has_looked"
	  " hits.level_entry_may_be_taken_during_the_hit"
	  " hits.one_shot_handed_back_is_not_queued"
	  " hand_on.watch_disarmed_in_its_turn_is_passed_over"
	  " hand_on.watch_about_to_be_disarmed_tells_others_too"
	  " awake.event_that_is_over_before_a_look_is_released"
	  " proc_tasks.exec_beside_an_add_is_no_exit " },
};

/* What a queue has, asked once: a test may not be able to */
static uint32_t types_there(void)
{
	static uint32_t types;
	int kq;

	if (!types) {
		kq = kevent_init(NULL, 0, KEVENT_INIT_NO_FALLBACK);
		types = kevent_types(kq);
		close(kq);
	}
	return types;
}

static bool applies(const struct reason *r)
{
	/* A module for tests has them. */
	if (!strcmp(r->name, "windows"))
		return access("/sys/kernel/debug/kevent/testpoint", F_OK);
	return !r->types || r->types & ~types_there();
}

const char *left_out_on_module(const char *suite, const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++)
		if ((is_among(reasons[i].tests, suite) ||
		     is_among(reasons[i].tests, name)) && applies(&reasons[i]))
			return reasons[i].name;
	return NULL;
}

const char *why_left_out_on_module(const char *reason)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++)
		if (!strcmp(reasons[i].name, reason))
			return reasons[i].why;
	return NULL;
}
