// SPDX-License-Identifier: GPL-2.0
/*
 * The exceptions of the module: tests that fail there, and why
 *
 * They run as others do. One that passes is an error of this list.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "helpers.h"
#include "module.h"

#define ALL	""

struct exception {
	const char	*kernel;	/* its version without the last number */
	const char	*why;		/* a row of kevent_fallback(7), or words of our own;
					 * NULL: they pass, although a row below has their suite
					 */
	const char	*tests;		/* suites, or suite.test, between spaces */
};

#define TESTPOINT	"/sys/kernel/debug/kevent/testpoint"

/* A module for tests has them. */
static const char no_windows[] = "there is no " TESTPOINT;
/* A thread is there in time, or not: so these tests may pass. */
static const char by_a_thread[] = "thread";

/* The first row that has a test counts. */
static const struct exception exceptions[] = {
	{ ALL, NULL,
	  " bound_calls.queue_may_refuse_them looks.each_call_of_a_pool_reports_the_watch"
	  " looks.modify_or_the_wake_up_of_a_pipe_sees_the_other"
	  " looks.modify_or_the_wake_up_of_an_eventfd_sees_the_other"
	  " looks.modify_or_the_wake_up_of_a_socket_sees_the_other"
	  " storm_max_running.ends_race_everything"
	  " calls_random.random_chains_do_as_calls_one_by_one " },
	/* Rows of kevent_fallback(7): tests/check hosts */
	{ ALL, "process",
	  " proc_tasks.status_is_for_those_who_may_know " },
	{ ALL, "wait",
	  " handoff.waker_and_woken_share_a_cpu " },
	{ ALL, "amount",
	  " empty.tcp_stream_is_empty_when_all_is_acknowledged"
	  " empty.tcp_level_holds_while_empty empty.lost_data_is_sent_again"
	  " empty.full_stream_becomes_empty empty.modified_watch_becomes_empty"
	  " empty.end_of_the_stream_is_acknowledged_too empty.reset_is_not_empty"
	  " empty.listener_is_never_empty empty.epoll_is_left_alone " },
	{ ALL, "signal",
	  " signal.blocked_signals_are_consumed_and_not_pending"
	  " signal.tracer_sees_no_consumed_signal"
	  " signal.consumed_signals_do_not_interrupt"
	  " signal.signal_a_tracer_requeues_is_observed_once"
	  " signal_queued.sender_gets_eagain_at_the_limit"
	  " signal_queued.signal_that_failed_is_nowhere"
	  " signal_queued.limit_holds_for_all_that_are_kept"
	  " signal_queued.remove_drops_what_is_not_delivered"
	  " signal_queued.queued_signals_are_charged_in_bytes"
	  " signal_queued.owner_of_the_queue_limits_them"
	  " signal_queued.expiries_in_a_row_merge"
	  " signal_queued.consumed_expiries_are_overruns_later"
	  " signal_queued.timers_need_no_room_at_the_limit"
	  " signal_life.child_being_forked_gets_what_is_consumed"
	  " fail_nth_calls.signals_that_are_consumed " },
	{ ALL, by_a_thread,
	  " futex.wake_is_one_event futex.modify_arms_again"
	  " futex.oneshot_goes_with_its_wake futex.disabled_watch_is_no_waiter"
	  " futex.mark_is_an_event_too futex.wake_wakes_a_waiter"
	  " futex.waiters_are_woken_oldest_first futex.requeue_moves_the_watch"
	  " futex.lock_of_another_kind_is_refused futex.remove_passes_the_wake_on"
	  " futex.shared_word_is_woken_by_another_process futex.close_passes_the_wake_on"
	  " futex.delivered_wake_is_not_passed_on"
	  " futex.event_that_cannot_be_handed_back_is_queued"
	  " futex.watch_of_a_process_that_is_gone futex.exit_passes_the_wake_on"
	  " futex.watch_stays_out_of_the_memory_of_others"
	  " futex.disabling_passes_the_wake_on futex.wake_of_some_bits_is_passed_on"
	  " futex.failed_modify_disarms futex.fault_at_add_holds_up_nobody"
	  " futex.fault_at_modify_holds_up_nobody"
	  " futex_lock.each_wake_is_delivered_once_in_a_storm"
	  " posix_timer.intervals_agree_with_the_clock"
	  " posix_timer.overrun_counts_what_nobody_took"
	  " posix_timer.expiry_before_the_clock_stepped_back_is_delivered"
	  " posix_timer.expiry_of_a_thread_that_ended_is_delivered"
	  " posix_timer.clocks_of_the_cpu posix_timer.modify_changes_the_mode"
	  " posix_timer.proc_names_the_way_of_notification"
	  " posix_timer.invalid_requests_are_refused posix_timer.compat_call"
	  " posix_timer.many_intervals_agree_with_the_clock"
	  " posix_timer.timers_end_at_exec posix_timer.timers_end_with_their_process"
	  " storm_posix_timer.control_calls_race_expiries"
	  " storm_posix_timer.exits_race_collections"
	  " limits.futex_watches_are_as_few_as_threads"
	  " futex.address_spaces_of_a_queue_are_limited limits.address_spaces_are_charged"
	  " fail_nth.add_of_each_source fail_nth.modify_of_each_source"
	  " fail_nth.remove_of_each_source fail_nth_calls.timer_of_a_queue"
	  " fail_nth_calls.calls_that_wait fail_nth_calls.queue_of_another_process " },
	{ ALL, "chain",
	  " calls calls_observed calls_audited calls_random aio_calls aio_servers"
	  " nowait storm_aio"
	  " limits.switch_off_is_for_chains_of_open_queues_too trace.chains_have_calls"
	  " confined.held_thread_takes_no_chain confined.held_thread_goes_on_with_its_call"
	  " confined.held_thread_goes_on_behind_its_call"
	  " bound_calls limits.watches_per_file_are_limited_for_all_users max_running"
	  " max_running_members"
	  " storm_max_running confined.held_thread_keeps_no_place"
	  " fail_nth_calls.chains_and_bound_calls " },
	{ ALL, "nested",
	  " nested.epoll_in_each_mode nested.event_wakes_each_mixed_chain"
	  " nested.loop_of_any_kinds_is_refused nested.chain_of_any_kinds_has_five_sets"
	  " nested.loop_of_an_epoll_through_another_descriptor_is_refused"
	  " nested.number_of_paths_is_limited"
	  " nested_random.random_nesting_does_as_the_model_says " },
	{ ALL, "limit",
	  " refuse.seccomp_filter_can_demand_refusals"
	  " refuse.seccomp_filter_can_deny_all_changes"
	  " limits.switch_off_has_three_positions"
	  " limits.switch_off_leaves_open_queues_alone abi.compat_calls_share_the_layout"
	  " abi.compat_chains_are_refused " },
	/* No difference of the module: what a kernel lacks, or a module that is not for tests */
	{ "7.3", "nobody can switch ftrace off",
	  " module.module_is_not_loaded_where_ftrace_is_off"
	  " module.no_queue_is_made_where_ftrace_is_off " },
	{ "6.1", "io_uring does not say that it is behind its eventfd",
	  " nested.circle_through_the_eventfd_of_io_uring_ends " },
	{ "6.1", "a multishot poll of io_uring goes on in a circle, through epoll, too",
	  " nested.circle_through_io_uring_ends " },
	{ ALL, no_windows,
	  " looks show.watch_that_is_looked_at_is_busy"
	  " attach.consumer_killed_while_it_looks_takes_nothing"
	  " modes.modify_counts_although_a_consumer_has_looked"
	  " hits.level_entry_may_be_taken_during_the_hit"
	  " hits.one_shot_handed_back_is_not_queued"
	  " hand_on.watch_disarmed_in_its_turn_is_passed_over"
	  " hand_on.watch_about_to_be_disarmed_tells_others_too"
	  " hand_on.watch_delivered_for_good_hands_on_what_it_lost"
	  " awake.event_that_is_over_before_a_look_is_released"
	  " timer.clock_that_waits_for_its_turn_is_started_again"
	  " signal.signal_of_a_thread_is_found_beside_an_add"
	  " inode.modify_beside_an_add_decides"
	  " proc_tasks.exec_beside_an_add_is_no_exit " },
	{ "6.1", "the kernel drops the marks of an open file with its last name",
	  " inode.last_link_of_another_name inode.name_lost_again_while_nobody_asks " },
	{ "6.1", "epoll has no EPIOCSPARAMS to compare with",
	  " busy_poll.parameters_are_those_of_epoll " },
};

static bool is_for(const struct exception *e, const char *release)
{
	size_t len = strlen(e->kernel);

	if (e->why == no_windows && !access(TESTPOINT, F_OK))
		return false;
	return !len || (!strncmp(release, e->kernel, len) && release[len] == '.');
}

static const struct exception *find_exception(const char *suite, const char *test)
{
	struct utsname here;
	char name[128];
	size_t i;

	uname(&here);
	snprintf(name, sizeof(name), "%s.%s", suite, test);
	for (i = 0; i < ARRAY_SIZE(exceptions); i++)
		if (is_for(&exceptions[i], here.release) &&
		    (is_among(exceptions[i].tests, suite) ||
		     is_among(exceptions[i].tests, name)))
			return &exceptions[i];
	return NULL;
}

const char *module_exception(const char *suite, const char *test)
{
	const struct exception *e = find_exception(suite, test);

	return e ? e->why : NULL;
}

bool kernel_is_too_old(const char *suite, const char *test)
{
	const struct exception *e = find_exception(suite, test);

	return e && *e->kernel;
}

bool module_may_pass(const char *suite, const char *test)
{
	const struct exception *e = find_exception(suite, test);

	return e && e->why == by_a_thread;
}

const char *module_exception_of_nothing(bool (*known)(const char *name))
{
	static char name[128];
	const char *at;
	int len = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(exceptions); i++)
		for (at = exceptions[i].tests; sscanf(at, " %127s%n", name, &len) == 1;
		     at += len)
			if (!known(name))
				return name;
	return NULL;
}
