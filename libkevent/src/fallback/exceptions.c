// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * What the fallback does not do as the kernel
 *
 * kevent_fallback(7) prints this table, and a test compares the two. Each has a test of
 * its name in test/exceptions, which shows it. Tests of the kernel that the fallback
 * cannot pass are left out, one by one, under one of these names.
 */
#include <stddef.h>

#include "fallback.h"

const struct kevent_fb_exception kevent_fb_exceptions[] = {
	{ "hit", "no entry is stored without a call; KEVENT_RING_MORE is always set",
	  "nothing runs in the library when a file becomes ready" },
	{ "address", "a bad address is SIGSEGV or SIGBUS, and EFAULT only if it is NULL or a ring of kevent_init(); a ring that goes away is lost with its entries",
	  "a library reads and writes memory as the program does" },
	{ "process", "in a child of the process that made the queue all calls fail with EXDEV, ATTACH with EOPNOTSUPP, and in other processes and after exec the descriptor is no queue",
	  "the watches are in the memory of one process" },
	{ "close", "close of a descriptor ends its watch if nobody else has the file open, else events go on until REMOVE, or ADD with the same number; edges may come again then, a queue inside another epoll instance must be added to it again, and a copy of its descriptor that no call has used must not be used; of a queue with two descriptors such a file, while it stays ready, keeps a wait awake; a number that means the same open file again has its watch still, and what a call of another thread found before the close may come after it",
	  "epoll knows files, and the library sees no close()" },
	{ "readable", "the queue is not readable for unread entries in the ring, nor, while a call sleeps, for a level watch that was reported; what wakes a call is not seen by others until that call has stored it",
	  "the program takes entries without a call that could clear the state; what makes epoll readable wakes its sleepers, and who is woken has the event" },
	{ "order", "waiters are woken newest first; entries of files come in the order of epoll, and before or after those of other sources; signals come by number",
	  "epoll has the waiters, and lists of its own" },
	{ "turn", "each queue that watches a file is notified, nothing is handed on",
	  "queues do not know of each other" },
	{ "edge", "an ET entry has all conditions that hold when a call finds it",
	  "epoll does not pass on what a wake-up said" },
	{ "amount", "ret_data[1] of SOCKET is 0, and RDHUP comes with RECV or ACCEPT only",
	  "an amount takes a system call for each event; epoll would repeat RDHUP" },
	{ "empty", "KEVENT_SOCKET_EMPTY fails with EOPNOTSUPP",
	  "no poll mask has it" },
	{ "awake", "KEVENT_REQ_STAY_AWAKE fails with EINVAL",
	  "EPOLLWAKEUP ends with the next epoll_wait(), whatever was processed" },
	{ "handoff", "who is woken with KEVENT_REQ_HANDOFF runs where the scheduler likes",
	  "no call of epoll or eventfd has the wish" },
	{ "busy_poll", "kevent_busy_poll() sets what epoll has: it polls devices only",
	  "the loop that looks at the queue is in the kernel" },
	{ "delay", "kevent_set_delay() fails with ENOTTY: no event waits for others",
	  "epoll wakes a thread for each event" },
	{ "nested", "a queue watches queues and epoll as far as an epoll instance does, and no io_uring; ELOOP, depth and width are those of epoll, too many paths are ELOOP; POLLRDNORM alone wakes nobody",
	  "a queue is an epoll instance" },
	{ "limit", "no limits of kevent, its sysctls or memory cgroups; those of epoll, inotify and RLIMIT_NOFILE hold, a queue whose number would be 1048576 or more is EMFILE, and a PROC watch takes a descriptor",
	  "there is nobody to charge" },
	{ "fdinfo", "fdinfo shows the epoll instance; kevent-trace, kevent-show, kevent-top and tracepoints show nothing",
	  "the kernel does not know the watches" },
	{ "poll", "of a regular file with a poll method, as /proc/self/mounts, a queue has one watch, and an event is lost if the file or the queue is polled, the latter also in another epoll instance, before a call collects it, or at the moment of ADD, MODIFY or READY",
	  "such a method takes the event, and epoll looks again" },
	{ "clock", "a step of CLOCK_REALTIME or CLOCK_TAI does not change a wait that sleeps; absolute times have no time namespace of their own",
	  "epoll_pwait2() takes a span of time" },
	{ "observe", "SIGNAL without KEVENT_SIGNAL_NOMASK fails with EOPNOTSUPP",
	  "a signal that all threads block is seen by who takes it" },
	{ "signal", "a signal is taken by a handler of the library, which ends calls that are not restarted and stands in the place of what sigaction(2) has set, until the program sets it anew, and by a signalfd while all threads block it: then it is pending until a call collects it, also one from before ADD, counts against RLIMIT_SIGPENDING, and its timer stands still; one sent to a thread that blocks it waits until that thread does not, or collects; tracers, sigwait(3) and other signalfds may see it; expiries of a timer do not merge; those that several threads take may swap; what was ignored has the default in children that are executed; of 65536 real-time signals that came to the handler and wait, those that follow merge; after close(2) of a queue, in place of kevent_queue_close(), its watches take signals until kevent_init() makes a later one",
	  "a library sees a signal when the process does" },
	{ "posix_timer", "there is no SIGEV_KEVENT: kevent_timer_create() has a thread that counts an expiry and starts the timer again when it comes, not when the entry is made; timer_getoverrun(2) and /proc/<pid>/timers know of no queue, and timer_delete(2), in place of kevent_timer_delete(), leaves the watch",
	  "timer_create() is a call of the kernel" },
	{ "status", "the status of a process is known if it is not reaped when a call collects its exit, and if the caller may read it then",
	  "the library looks at the exit later" },
	{ "futex", "127 FUTEX watches in a queue, by a thread, which joins the waiters anew after ADD, MODIFY and each wake-up: one that leaves the word as it is may be lost meanwhile, FUTEX_WAKE may not count a watch, the order of waiters is another one, and a requeue may be undone; exit and close(2) pass no wake-up on; a page of a word that is served late holds up the calls of the queue; needs Linux 5.16",
	  "futex_waitv() names one word and leaves the others" },
	{ "inode", "two watches of an inode in one queue share a report of what happened before the second; behind max_queued_events of inotify that no call has collected, each watch reports all that may have happened; ADD and MODIFY may wait for the file system, and so may a call behind such reports or the loss of a last name; a file of memfd_create(2) is refused with EOPNOTSUPP",
	  "inotify knows an inode once, drops reports, asks whether the file may be read, and hears nothing of who writes to a memfd since Linux 6.14" },
	{ "call", "the calls of a chain are made one by one, and none is bound",
	  "a library enters the kernel for each call" },
	{ "serve", "all calls of a chain are left to serving threads, and one that blocks counts as running; a signal ends kevent_chain_serve() only while it waits for a chain, close(2) within half a second, or when its chain has ended",
	  "nobody tells a library that a thread blocks or a descriptor is closed" },
	{ "max_running", "kevent_wait_arg.max_running is taken, and does not limit anything",
	  "nobody tells a library that a thread blocks" },
	{ "kernel", "ENOSYS while the process has made no queue",
	  "until then, nothing says that there is to be a fallback" },
	{ NULL, NULL, NULL },
};
