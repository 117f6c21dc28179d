// SPDX-License-Identifier: GPL-2.0
/*
 * Tests that make no sense on queues that the library makes of epoll
 *
 * Each is left out by the name of a row of kevent_fallback(7), or because it needs the
 * machine for itself, or because the kernel or the user lacks what it needs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/syscall.h>

#include "fallback.h"
#include "helpers.h"
#include "module.h"

/* No row: the test changes settings of the machine, or needs ours */
#define MACHINE		"machine"
/* Nor this: the user may not do what the test does beside its watches */
#define ROOT		"root"
/* Neither: the kernel is not configured for the test */
#define FAIL_NTH	"fail_nth"
#define LANDLOCK	"landlock"
#define TOO_OLD		"too_old"
/* Nor the system calls, which a filter could see */
#define CALLS	"calls"
/* Nor is there the module, which two suites are about */
#define MODULE		"module"
#define ABSENT	"absent"

struct skip {
	const char	*row;
	const char	*tests;		/* suites, or suite.test, between spaces */
};

/* The words are those of rows of kevent_fallback(7): tests/check hosts. */
static const struct skip skips[] = {
	/* Mounts, links and other users, and real-time priorities */
	{ ROOT,
	  " inode inode_deeds storm_inode bridges.changed_mounts_are_pri"
	  " bridges.state_of_a_link_comes_by_netlink sleepers.sleeper_leaves_the_second_event"
	  " sleepers.full_buffer_hands_the_event_on"
	  " coalesce.consumer_of_real_time_has_each_event_at_once"
	  " proc_tasks.status_is_for_those_who_may_know"
	  " proc_tasks.status_is_withheld_from_those_who_may_not_look_at_the_end"
	  " proc_tasks.status_is_withheld_after_a_setuid_exec"
	  " left.each_request_ends_a_wait fuse.exit_ends_while_add_is_stuck"
	  " fuse.kill_ends_while_add_is_stuck"
	  " fuse.file_that_fires_in_each_poll_keeps_nobody"
	  " fuse.watch_ends_before_the_file_is_flushed"
	  " fuse.chains_leave_its_files_to_servers " },
	/* These pass, although a row below has their suite. */
	{ NULL,
	  " left.each_request_ends_a_wait"
	  " max_running_members.close_of_the_queue_ends_nothing_else"
	  " turns.queue_that_is_behind_is_skipped"
	  " turns.level_watch_stays_while_its_entry_is_unread"
	  " turns.one_is_notified_though_all_are_behind turns.wakeup_all_is_notified_always"
	  " turns.hang_up_is_for_all turns.interest_decides_before_the_turn"
	  " turns.process_that_dies_hands_on turns.disarmed_watch_has_no_turn"
	  " turns.blocked_reader_is_woken_too turns.files_do_not_share_turns"
	  " turns.each_condition_has_its_turn"
	  " hand_on.nothing_is_reported_when_it_was_read"
	  " hand_on.modify_keeps_what_it_still_wants"
	  " hand_on.it_is_handed_on_again_and_again"
	  " hand_on.notified_queue_is_not_notified_again"
	  " attach.copy_of_a_private_ring_is_void foreign.wake_up_leaves_own_memory_alone"
	  " foreign.closed_queue_leaves_memory_alone"
	  " foreign.ring_may_be_freed_before_the_close foreign.closed_copy_ends_no_wait"
	  " foreign.unread_event_is_not_repeated"
	  " rights.buffer_on_a_stack_that_has_not_grown"
	  " rights.faulting_in_a_buffer_changes_nothing"
	  " rights.faulting_in_an_unaligned_buffer"
	  " rights.faulting_in_a_ring_changes_nothing"
	  " empty.refused_where_the_amount_is_unknown"
	  " signal_life.fork_does_not_inherit_watches bound_calls.queue_may_refuse_them"
	  " fuse.exit_ends_while_add_is_stuck fuse.kill_ends_while_add_is_stuck"
	  " fuse.file_that_fires_in_each_poll_keeps_nobody"
	  " fuse.watch_ends_before_the_file_is_flushed"
	  " fuse.chains_leave_its_files_to_servers show.waits_that_end_are_not_counted"
	  " show.json_is_distinguished_from_other_text storm_max_running.ends_race_everything"
	  " storm_proc.exits_race_close_of_the_queue"
	  " storm_hits.no_event_is_lost_between_pop_and_store"
	  " storm_hits.control_calls_race_hits"
	  " storm_hits.control_calls_race_hits_of_sockets"
	  " storm_hits.close_of_the_queue_races_hits"
	  " storm_hits.close_of_the_queue_races_hits_of_sockets " },
	{ "stored",
	  " hits hit_faults storm_hits left abi.init_clears_the_header_only"
	  " coalesce.events_in_short_succession_are_held"
	  " races_promises.wake_up_takes_no_longer_with_sleepers"
	  " ring.entries_come_in_order_of_events ring.wait_moves_at_most_num"
	  " ring.event_that_is_queued_sets_the_flag"
	  " ring.call_that_leaves_events_says_so_after_fork ring.poll_sets_the_flag"
	  " ring.consumer_that_runs_is_not_interrupted"
	  " ring.event_for_a_sleeper_sets_no_flag"
	  " ring.many_unread_level_entries_are_not_repeated"
	  " ring.full_ring_keeps_events_in_the_kernel"
	  " ring.commit_frees_slots_and_refills_them"
	  " ring.wait_notices_a_store_by_the_program"
	  " ring.ring_twice_the_watches_never_fills socket.amount_is_no_news"
	  " lifetime.entry_in_the_ring_outlives_its_watch"
	  " lifetime.closing_the_queue_ends_its_watches"
	  " nested.level_watch_of_each_source_repeats"
	  " nested.edge_watch_of_each_source_reports_once"
	  " nested.oneshot_watch_of_each_source_ends"
	  " nested.dispatch_watch_of_each_source_waits nested.source_may_be_ready_at_add"
	  " nesting.poll_sees_unread_entries " },
	{ "address",
	  " posix_timer.events_that_cannot_be_stored_lose_nothing"
	  " posix_timer.settime_drops_what_is_pending"
	  " posix_timer.delete_drops_what_is_pending faults malformed rights"
	  " abi.ctl_faults_on_bad_memory abi.malformed_timeouts_are_refused"
	  " abi.bad_calls_lose_nothing errors.half_mapped_array_adds_all_it_reports"
	  " errors.half_mapped_array_removes_all_it_reports"
	  " errors.read_only_array_loses_nothing errors.half_mapped_buffer_gets_what_fits"
	  " errors.unmapped_ring_loses_nothing errors.read_only_ring_loses_nothing"
	  " errors.inaccessible_ring_loses_nothing errors.half_mapped_ring_loses_nothing"
	  " errors.ring_without_its_header_loses_nothing"
	  " errors.waiter_hears_of_a_lost_ring errors.moved_ring_faults"
	  " modes.event_that_could_not_be_stored_is_verified_again"
	  " ring.truncated_file_under_the_ring_faults"
	  " timer.event_that_finds_no_room_counts_on"
	  " timer.memory_that_is_not_there_loses_no_tick user.fault_keeps_the_marks"
	  " wait_arg.bad_addresses_are_refused wait_arg.changes_end_where_memory_does"
	  " wake.fault_hands_the_event_on sleepers.event_of_a_sleeper_mends_the_ring"
	  " wait_arg.result_that_cannot_be_written_ends_the_wait"
	  " handover.fault_hands_the_event_on_to_a_buffer"
	  " inode.event_that_cannot_be_handed_back_is_queued"
	  " futex.event_that_cannot_be_handed_back_is_queued"
	  " proc.exit_that_cannot_be_handed_back_is_queued fuse " },
	{ "process",
	  " posix_timer.timers_end_at_exec posix_timer.timers_end_with_their_process"
	  " posix_timer.processes_that_share_a_queue_have_their_own_timers"
	  " wake_order.full_ring_wakes_nobody_in_vain"
	  " wake_order.child_that_took_nothing_wakes_nobody attach confined foreign huge"
	  " races races_signals signal_life abi.compat_calls_share_the_layout"
	  " abi.compat_chains_are_refused futex.word_is_of_the_process_that_added_it"
	  " futex.watch_of_a_process_that_is_gone"
	  " futex.address_spaces_of_a_queue_are_limited"
	  " futex.failed_modify_keeps_the_event signal.tracer_sees_no_consumed_signal"
	  " signal.faults_are_observed_but_not_consumed signal.consumed_sigcont_continues"
	  " lifetime.ring_belongs_to_the_process_that_made_it"
	  " lifetime.watch_added_by_a_child_ends_with_it"
	  " lifetime.killed_child_leaves_the_queue_usable"
	  " lifetime.passed_queue_works_without_its_ring"
	  " lifetime.exec_closes_what_is_close_on_exec"
	  " lifetime.address_space_may_end_before_the_queue"
	  " timer.timers_belong_to_the_queue_not_to_the_process"
	  " user.marks_of_another_process_bring_their_data"
	  " proc.vforked_child_watches_itself proc.ids_are_those_of_the_callers_namespace"
	  " refuse.refusals_go_with_the_queue refuse.seccomp_filter_can_deny_all_changes"
	  " sleepers.sleeper_has_the_mark sleepers.modified_watch_is_looked_at"
	  " coalesce.marks_are_not_held storm_proc proc.event_outlives_the_process"
	  " proc.ignored_children_are_reported"
	  " proc_tasks.root_knows_the_status_of_a_grandchild"
	  " proc_tasks.status_is_withheld_after_any_exec"
	  " proc_tasks.status_is_withheld_after_a_change_of_credentials " },
	{ "order",
	  " wake_order.event_is_for_who_it_is_enough_for"
	  " wake_order.event_that_repeats_an_entry_is_for_a_buffer"
	  " wake.one_event_wakes_the_oldest_waiter_only"
	  " wake.returning_waiter_queues_at_the_end wake.no_waiter_is_woken_for_nothing"
	  " wake.level_event_wakes_one_waiter wake.wakeup_all_wakes_waiters_of_both_kinds"
	  " sleepers.waiters_for_several_wake_when_they_have_them"
	  " wait_ends.wake_request_counts_beside_events_of_others"
	  " wait_ends.wake_requests_stop_threads_that_share_a_ring"
	  " wake.level_left_behind_is_handed_on"
	  " wait_ends.ready_without_entries_wakes_one_waiter"
	  " wait_ends.signal_counts_beside_events_of_others"
	  " wake_order.oldest_waiter_has_its_turn"
	  " wake_order.entry_left_is_for_one_that_has_not_seen_it"
	  " wait_arg.changes_are_made_before_the_wait"
	  " handover.commit_wakes_a_waiter_of_the_ring turns hand_on"
	  " nested.queues_take_turns_with_a_set " },
	{ "wait",
	  " awake handoff.waker_and_woken_share_a_cpu busy_poll " },
	{ "amount",
	  " socket.tcp_stream_says_how_much"
	  " socket.amount_is_handed_back_and_comes_with_edges"
	  " socket.listener_says_how_many socket.unix_listener_says_how_many empty"
	  " abi.each_unknown_bit_is_refused " },
	{ "signal",
	  " signal.observed_signals_are_handled_too signal.ignored_signals_are_observed"
	  " signal.blocked_signals_are_observed_and_stay_pending"
	  " signal.signals_before_add_are_not_reported signal.exit_of_a_child_is_a_signal"
	  " signal.signalfd_gets_what_is_observed_only"
	  " signal.two_queues_get_it_and_one_consumes signal.disabled_watch_takes_nothing"
	  " signal.wrong_requests_are_refused signal.watches_of_one_signal_are_limited"
	  " signal.all_signals_have_their_watches"
	  " signal.signal_a_tracer_requeues_is_observed_once"
	  " signal.background_process_stops_at_the_terminal"
	  " signal_queued.sender_and_value_come_with_each"
	  " signal_queued.signal_that_failed_is_nowhere"
	  " signal_queued.posix_timer_goes_on_when_observed_or_consumed"
	  " signal.blocked_signals_are_consumed_and_not_pending"
	  " signal.signal_of_a_thread_wakes_that_thread"
	  " signal.signal_of_a_thread_wakes_it_among_many"
	  " signal.poll_that_finds_a_signal_ends_others"
	  " signal.consumed_signals_do_not_interrupt"
	  " signal_queued.sender_gets_eagain_at_the_limit"
	  " signal_queued.limit_holds_for_all_that_are_kept"
	  " signal_queued.remove_drops_what_is_not_delivered"
	  " signal_queued.expiries_in_a_row_merge"
	  " signal_queued.consumed_expiries_are_overruns_later"
	  " signal_queued.timers_need_no_room_at_the_limit"
	  " signal_queued.itimer_goes_on_when_observed_or_consumed " },
	{ "thread",
	  " posix_timer.intervals_agree_with_the_clock"
	  " posix_timer.overrun_counts_what_nobody_took"
	  " posix_timer.expiry_before_the_clock_stepped_back_is_delivered"
	  " posix_timer.modify_changes_the_mode"
	  " posix_timer.proc_names_the_way_of_notification"
	  " posix_timer.invalid_requests_are_refused posix_timer.compat_call"
	  " posix_timer.many_intervals_agree_with_the_clock storm_posix_timer"
	  " posix_timer.expiry_of_a_thread_that_ended_is_delivered futex.wake_is_one_event"
	  " futex.modify_arms_again futex.oneshot_goes_with_its_wake"
	  " futex.disabled_watch_is_no_waiter futex.mark_is_an_event_too"
	  " futex.wake_wakes_a_waiter futex.waiters_are_woken_oldest_first"
	  " futex.requeue_moves_the_watch futex.lock_of_another_kind_is_refused"
	  " futex.shared_word_is_woken_by_another_process"
	  " futex.watch_stays_out_of_the_memory_of_others futex.remove_passes_the_wake_on"
	  " futex.close_passes_the_wake_on futex.disabling_passes_the_wake_on"
	  " futex.exit_passes_the_wake_on futex.wake_of_some_bits_is_passed_on"
	  " futex.delivered_wake_is_not_passed_on futex.failed_modify_disarms"
	  " futex.fault_at_add_holds_up_nobody futex.fault_at_modify_holds_up_nobody"
	  " futex_lock.each_wake_is_delivered_once_in_a_storm " },
	{ "chain",
	  " max_running max_running_members storm_max_running calls calls_observed"
	  " calls_audited aio_calls aio_servers nowait storm_aio bound_calls " },
	{ "nested",
	  " nested.other_name_of_data_wakes_too nested.epoll_in_each_mode"
	  " nested.number_of_paths_of_queues_is_limited nested.number_of_paths_is_limited"
	  " nested.width_of_a_checked_queue_is_limited"
	  " nested.circle_through_io_uring_ends"
	  " nested_random.random_nesting_of_queues_does_as_the_model_says"
	  " nested_random.random_nesting_does_as_the_model_says " },
	{ "limit",
	  " limits inode_limits worst_files worst_sources worst_calls worst_sleepers stall"
	  " user.full_memory_group_is_enomem"
	  " inode.watches_of_a_file_are_limited"
	  " timer.timers_at_one_instant_expire_bit_by_bit"
	  " timer.timers_of_many_queues_share_a_softirq timer.timers_outlive_their_cpu"
	  " signal_queued.queued_signals_are_charged_in_bytes"
	  " signal_queued.owner_of_the_queue_limits_them"
	  " timer.who_sets_the_clock_does_not_cancel_timers"
	  " timer.many_timers_expire_once_and_not_early"
	  " proc_tasks.watches_of_a_process_are_limited_for_each_user"
	  " proc_tasks.watches_of_a_process_are_limited_for_all_users"
	  " proc_tasks.watches_of_a_parent_are_limited_for_all_users"
	  " ring.fdinfo_lists_the_watches"
	  " modes.modify_counts_although_a_consumer_has_looked trace looks"
	  " timer.clock_that_waits_for_its_turn_is_started_again"
	  " signal.signal_of_a_thread_is_found_beside_an_add"
	  " inode.modify_beside_an_add_decides"
	  " show top tracepoints"
	  " nested.refused_watch_leaves_nothing"
	  " nested.queue_in_a_socket_that_it_watches_goes " },
	{ CALLS, " refuse.seccomp_filter_can_demand_refusals coalesce.delay_is_what_was_set " },
	{ MACHINE,
	  " posix_timer.each_clock_once bridges.memory_pressure_is_pri"
	  " bridges.pressure_of_a_group_ends_with_it proc.core_dump_is_reported"
	  " wait_arg.setting_the_clock_ends_an_absolute_wait"
	  " wait_arg.setting_the_clock_ends_min_wait"
	  " timer.absolute_times_are_of_the_time_namespace"
	  " timer.latest_times_of_a_time_namespace_do_not_come"
	  " wait_arg.setting_the_clock_does_not_shorten_a_span"
	  " wait_arg.setting_the_clock_does_not_lengthen_a_span"
	  " wait_arg.min_wait_does_not_follow_the_clock"
	  " timer_set.relative_timers_do_not_follow_a_clock"
	  " timer_set.clock_that_is_set_cancels timer_set.cancelled_timer_counts_no_time"
	  " timer_set.clock_that_skips_their_time_cancels"
	  " storm_timer.control_calls_race_expiries storm_timer.close_races_expiries"
	  " scale suspend which_host.it_says_why_not_the_kernel " },
};

const char *why_left_out(const char *row)
{
	if (!strcmp(row, MACHINE))
		return "it needs a machine of its own";
	if (!strcmp(row, ROOT))
		return "it needs CAP_SYS_ADMIN and CAP_SYS_NICE";
	if (!strcmp(row, FAIL_NTH))
		return "the kernel has no /proc/self/fail-nth";
	if (!strcmp(row, LANDLOCK))
		return "the kernel has no Landlock, or lsm= leaves it out";
	if (!strcmp(row, TOO_OLD))
		return "this kernel has a fault, see tests/suites/module.c";
	if (!strcmp(row, CALLS))
		return "no system call of kevent is made";
	if (!strcmp(row, MODULE))
		return "the queues here are not those of the module";
	if (!strcmp(row, ABSENT))
		return "the module lacks it, see tests/suites/module.c";
	return "see kevent_fallback(7)";
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0,
		       LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

/* That there is kevent says nothing: it may be installed on the machine of a user. */
bool own_machine(void)
{
	return getenv("KEVENT_TEST_MACHINE");
}

static bool has_rights(void)
{
	const __u32 rights = CAP_TO_MASK(CAP_SYS_ADMIN) | CAP_TO_MASK(CAP_SYS_NICE);
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	return !syscall(SYS_capget, &hdr, data) && (data[0].effective & rights) == rights;
}

/* With kevent in the kernel: does the kernel lack something else? */
static const char *lacks(const char *name)
{
	if (!strcmp(name, "calls.landlock_counts") && !has_landlock())
		return LANDLOCK;
	return NULL;
}

const char *left_out(const char *suite, const char *test)
{
	const char *why;
	char name[128];
	size_t i;

	if (is_among(" fail_nth fail_nth_calls ", suite) &&
	    (on_fallback() || access("/proc/self/fail-nth", F_OK)))
		return FAIL_NTH;
	if (is_among(" device drives module ", suite) && !on_module())
		return MODULE;
	snprintf(name, sizeof(name), "%s.%s", suite, test);
	if (on_module() && module_exception(suite, test) &&
	    (getenv("KEVENT_LEAVE_OUT") || module_may_pass(suite, test)))
		return ABSENT;
	if (!on_fallback())
		return lacks(name);
	if (kernel_is_too_old(suite, test))
		return TOO_OLD;
	for (i = 0; i < ARRAY_SIZE(skips); i++) {
		why = skips[i].row;
		if (why && ((own_machine() && !strcmp(why, MACHINE)) ||
			    (has_rights() && !strcmp(why, ROOT))))
			continue;
		if (is_among(skips[i].tests, suite) ||
		    is_among(skips[i].tests, name))
			return why;
	}
	return NULL;
}
