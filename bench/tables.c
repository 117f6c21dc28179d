// SPDX-License-Identifier: GPL-2.0
/*
 * The backends, in the order they take turns, and the workloads
 */
#include <stddef.h>

#include "bench.h"

extern const struct bench_backend backend_limit, backend_kevent, backend_epoll;
extern const struct bench_backend backend_uring, backend_poll, backend_raw;
extern const struct bench_workload work_notify, work_idle, work_ctl;
extern const struct bench_workload work_dumazet, work_herd, work_timers;
extern const struct bench_workload work_wake, work_round, work_ipc, work_requests;
extern const struct bench_workload work_calls, work_marks, work_signal, work_futex;
extern const struct bench_workload work_posix_timer, work_units;

const struct bench_backend *const bench_backends[] = {
	&backend_limit,
	&backend_kevent,
	&backend_epoll,
	&backend_uring,
	&backend_poll,
	&backend_raw,
	NULL
};

const struct bench_workload *const bench_workloads[] = {
	&work_notify,
	&work_idle,
	&work_ctl,
	&work_dumazet,
	&work_herd,
	&work_timers,
	&work_wake,
	&work_round,
	&work_ipc,
	&work_requests,
	&work_calls,
	&work_marks,
	&work_signal,
	&work_futex,
	&work_posix_timer,
	&work_units,
	NULL
};
