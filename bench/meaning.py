# SPDX-License-Identifier: GPL-2.0
"""The words beside a figure: what a workload does, and what its metrics say."""

WORKLOADS = {
    "notify": "One thread writes a byte to each file of a batch, in a random order, takes as many "
              "events, and reads. So does a busy loop: it is never idle.",
    "idle": "Batches of 16 events of 100 pipes, beside up to a million eventfds that are watched "
            "and idle, as connections of a server are.",
    "ctl": "Watches are added, modified and removed, one by one and in batches, and files "
           "that are watched are closed.",
    "dumazet": "One thread writes single bytes to random streams of 2000. Another one takes up to "
               "256 events at once, and reads. The reader is always busy, so nothing is woken.",
    "herd": "1 to 64 threads sleep on one queue, as a pool does. Another thread makes one event, "
            "or 16 at once.",
    "timers": "Timers are armed, moved and cancelled in the order in which they were made, or in "
              "a random one. Then they expire faster than anybody can report.",
    "wake": "One thread writes, another one sleeps until the event wakes it. The time is from "
            "before the write to the return of the wait.",
    "round": "A client writes a byte and sleeps. The server, another process, sleeps until the "
             "event comes, and answers.",
    "ipc": "Messages of 32 bytes. kevent has a lane, which is memory of two processes; epoll has a "
           "socket of AF_UNIX, a pipe or a message queue. On two CPUs the sides are pinned.",
    "calls": "System calls in chains of kevent_call(), against the same calls one by one, and "
             "against linked requests of io_uring.",
    "marks": "A program makes events for its own queue: kevent by watches of its own, the others "
             "by eventfds.",
    "signal": "A real-time signal is blocked and sent. Each taker reads the sender and the value: "
              "kevent from an event, the others from a signalfd.",
    "futex": "Another thread changes a word and wakes. The taker sleeps, reads the word, and is "
             "ready for the next change.",
    "posix_timer": "Timers of POSIX are made, set and deleted; their expiries are events.",
    "requests": "A client has a request of 64 bytes under way in each connection to a server, "
                "another process. kevent has lanes or streams, in memory; epoll has sockets of "
                "AF_UNIX. With \"asleep\" nobody polls before a sleep.",
    "units": "Single operations of this processor and kernel, from which the model is made.",
    "model": "The sum of what a call executes, each kind by its cost here, against its time. "
             "An error says how far such sums are to be trusted.",
    "libev": "libev's own benchmark: bytes go through pairs of sockets that are watched, and each "
             "event leads to the next one.",
}
BARE = "The bare cost is left out: what the same reads and writes cost in a known order, " \
       "without any event interface. So this is the cost of the interface itself."
# By workload and metric, or by metric alone
METRICS = {
    "cost": "The cost of one event with all that belongs to it, such as the write that makes it "
            "and the read that takes its byte.",
    ("calls", "cost"): "The cost of one call.",
    ("units", "cost"): "Medians, with the fastest and the slowest round.",
    ("model", "cycles"): "In cycles of the core at the speed it had.",
    "add": "The cost of one more watch. A server pays it for each connection.",
    "modify": "The cost of changing what a watch is for.",
    "remove": "The cost of removing a watch. Memory is freed late, in part after the measurement: "
              "figures agree within 25 % only.",
    "close": "The cost of closing a file that is watched. Memory is freed late, in part after the "
             "measurement: figures agree within 25 % only.",
    "memory": "The kernel's memory for a watch, without rings: the growth of all its caches.",
    "rate": "Events in a second. More is better.",
    "time": "The time until all threads are about to sleep again, for each event.",
    "wake-ups": "Threads that wake for an event. One is enough; each further one wakes in vain.",
    "arm": "The cost of a timer that is armed an hour ahead.",
    "rearm": "The cost of moving a timer. A server does so with each request.",
    "cancel": "The cost of cancelling a timer.",
    "fire": "The time until the last timer is reported, for each of them.",
    "median lateness": "How late half of the expiries are reported at most.",
    "maximum lateness": "How late the last one of all expiries is reported.",
    "median latency": "Half of the events are there within this.",
    "99th percentile": "99 of 100 events are there within this.",
    "create and delete": "The cost of a timer that is made, and of its end.",
    "set": "The cost of setting a timer.",
    "awake": "A message while one thread has both ends, so nobody sleeps.",
    "looking": "A message to a thread on another CPU that looks for it, and does not sleep.",
    "asleep": "A message to a process that sleeps, with its wake-up.",
    "ping-pong": "A message and its answer; both sides sleep.",
    "stream": "A message of many that are sent one after the other.",
    "unpinned": "A message and its answer, while the scheduler chooses the CPUs.",
    "two calls": "A message and its answer, with a call to send and another one to wait.",
    "two CPUs": "The time between two answers, whatever the connection, each side on its CPU.",
    "one CPU": "The time between two answers, whatever the connection, both sides on one CPU.",
    "two CPUs, CPU time": "The CPU time of both sides for a request, each side on its CPU.",
    "one CPU, CPU time": "The CPU time of both sides for a request, on one CPU.",
    "setup": "The cost of a watcher before the loop begins.",
    "loop": "The cost of a byte that is passed on, with timers that are set again.",
    "loop only": "The cost of a byte that is passed on.",
    "batch": "Events that a wait returned.",
    "read": "Bytes that a read returned.",
    "bytes": "Bytes that were read in a second.",
    "switches": "Changes of the thread that runs.",
    "empty": "Reads that found nothing.",
    "replaced": "Streams that were closed and replaced by new ones.",
}


def of_workload(name):
    return WORKLOADS.get(name, "")


def of_metric(workload, metric, bare):
    """@bare: the end of the names of metrics without the bare cost."""
    plain = metric.removesuffix(bare)
    words = METRICS.get((workload, plain)) or METRICS.get(plain, "")
    return f"{words} {BARE}".strip() if plain != metric else words
