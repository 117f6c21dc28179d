# SPDX-License-Identifier: GPL-2.0
"""The parts of a run of all tests. Each returns a report.Report."""

import json
import os
import re
import subprocess
import tempfile
import time

from lib import report, tree, vm
from lib.paths import BUILD, LOG, TOP
from session import session, status_of
from tools import cases

GUEST = BUILD / "guest"
STOCK = "stock-6.12"		# Debian's kernel, with the module
SECONDS = {"host": 300, "compilers": 120, "install": 120,
           "base": 600, "stock-6.12": 900, "stock-6.1": 1800, "stock-7.3": 1800,
           "fallback": 120, "asan": 400,
           "huge": 900, "tsan": 480, "fallback-vm": 480, "lowres": 240, "timeless": 480,
           "suspend": 240, "compat": 360,
           "debug": 1800, "rt": 1800, "arm64": 900, "kcsan": 1800, "gcov": 2600,
           "module-debug": 1800, "module-kcsan": 1800, "mutants": 1800,
           "programs": 600, "rust": 600, "worst": 1800, "deb": 3600, "dkms": 5400,
           "check": 1800, "package": 900, "dist": 1800, "systems": 3600,
           "fuzz": 300, "search": 1800, "syzkaller": 300, "races": 900}
STORMS = 50			# tests with a time budget, at most
STORM_SHORT = "1"		# that budget in seconds, unless another is set
BENCH_SOURCES, BENCH_BATCHES = ("pipe", "unix", "inet"), ("1", "16")
HTTP_BACKENDS, HTTP_RUNS = ("kevent", "epoll"), 2
HTTP_POINT = "ab/close/10/0/200"
HTTP_RATE = re.compile(r"figure \S+ \S+ rate requests/s [1-9]")
BENCH_BACKENDS = {"limit": 1, "kevent": 4, "epoll": 2, "uring": 2, "poll": 1, "raw": 1}
WORST = ("pipe_wakes_all", "pipe_wakes_all_sleepers",
         "pipe_wakes_all_without_memory", "pipe_takes_turns",
         "socket_wakes_all", "fifo_with_many_files", "inode_in_one_queue",
         "timers_of_one_queue_at_once", "signal_consumed",
         "posix_timers_at_once", "process_ends", "futex_is_woken",
         "mark_wakes_all", "full_ring_with_level_watches")
# Of what is slow each commit has another share, and make torture has all of it.
SHARES = 24			# of mutants, and of checks that build
HALVES = 2			# of the suites on the debug kernel
STALL = ("shared_file_is_closed", "kept_signals_end", "pipe_of_users_is_written",
         "process_of_users_ends", "timers_of_queues_expire")
# Programs and tools, which other parts run: make torture has them on the debug kernel, too
NOT_ON_DEBUG = ("examples", "top", "show")
# Whose structures 32-bit callers pass. All suites run with 32 bits in make torture.
COMPAT = ("abi", "errors", "ring", "modes", "wait_arg", "attach", "handover",
          "pipe", "socket", "poll", "user", "inode", "timer", "timer_set",
          "posix_timer", "signal", "signal_queued", "proc", "futex", "chain", "chain_watch",
          "coalesce", "limits", "max_running", "max_running_members", "malformed", "rights",
          "calls", "aio_calls", "aio_servers", "bound_calls", "storm")
# Without storm: libtsan of gcc 12 crashes in it, on descriptors closed in use
TSAN = ("ring", "modes", "wake", "wait_ends", "sleepers", "wait_arg", "handover", "user",
        "inode", "timer", "nesting", "nested", "storm_inode")
RACES = ("races", "races_promises", "races_signals")
# Whose tests have a time: without any they still see what they must
STORMS_TIMED = ("storm", "storm_timer", "storm_posix_timer", "storm_proc", "storm_signal",
                "storm_inode", "storm_aio", "storm_lanes", "streams", "storm_streams",
                "storm_hits", "storm_max_running", "hit_faults",
                "nested_random", "futex_lock", "malformed", "soak",
                "races_promises")
PROGRAMS = [("libev", "quick"), ("python", "quick"), ("lane", "quick")]
# These take a minute each.
LARGE_PROGRAMS = [("libevent", "quick"), ("redis", "quick"), ("libuv", "quick"),
                  ("nginx", "quick"), ("hiredis",)]


def run(results, command, seconds, **variables):
    """Run a command; a log and the report get its output line by line."""
    path = LOG / f"test-{results.name}.log"
    print(f"{results.name:11} started, log: {path}", flush=True)
    seconds += 60
    with open(path, "w") as log, tempfile.TemporaryFile("w+") as errors, \
         session(command, seconds, stdout=subprocess.PIPE, stderr=errors, text=True,
                 errors="replace", env={**os.environ, **variables}) as process:
        for text in process.stdout:
            log.write(text)
            log.flush()
            results.line(text.rstrip("\r\n"))
        status = status_of(process, seconds, errors)
        errors.seek(0)
        words = errors.read()
        log.write(words)
    results.end(status, words.splitlines()[-70:])
    return results


def run_host():
    return run(report.Report("host"),
               ["make", "--no-print-directory", "-C",
                str(TOP / "libkevent"), f"BUILD={BUILD}", "check"],
               SECONDS["host"])


def run_library(name):
    """One of the other checks of libkevent's Makefile."""
    return run(report.Report(name),
               ["make", "-s", "--no-print-directory", "-C",
                str(TOP / "libkevent"), f"BUILD={BUILD}", f"check-{name}"],
               SECONDS[name])


def run_fallback():
    """kevent-tests without kevent: on this machine, whatever its kernel is."""
    return run(report.Report("fallback"),
               [str(GUEST / "kevent-tests")], SECONDS["fallback"],
               KEVENT_BACKEND="epoll", KEVENT_STORM_SECONDS=STORM_SHORT)


def run_asan():
    """The same as fallback, with AddressSanitizer and UBSAN."""
    return run(report.Report("asan"),
               [str(GUEST / "kevent-tests-asan")], SECONDS["asan"],
               KEVENT_BACKEND="epoll", KEVENT_STORM_SECONDS=STORM_SHORT)


def run_tsan():
    """Where threads share queues, with ThreadSanitizer."""
    options = "report_thread_leaks=0 halt_on_error=0 suppressions=" + \
        str(TOP / "tests/suites/tsan.suppressions")
    return run(report.Report("tsan"),
               [str(GUEST / "kevent-tests-tsan"), *TSAN], SECONDS["tsan"],
               KEVENT_BACKEND="epoll", KEVENT_STORM_SECONDS=STORM_SHORT,
               TSAN_OPTIONS=options)


def run_lanes(**variables):
    """The same, but only what processes say to each other."""
    return run(report.Report("lanes"),
               [str(GUEST / "kevent-tests"), "lanes"], SECONDS["lanes"],
               KEVENT_BACKEND="epoll", **variables)


def run_streams(seconds):
    """Streams between processes, and one that is hostile, with AddressSanitizer."""
    return run(report.Report("streams"),
               [str(GUEST / "kevent-tests-asan"), "streams", "storm_streams"], 5 * seconds,
               KEVENT_BACKEND="epoll", KEVENT_STORM_SECONDS=str(seconds))


def run_kevent_lane(seconds):
    """Random calls of programs with kevent-lane, next to the same without it."""
    SECONDS["kevent-lane"] = seconds + 300
    return run_counting(report.Report("kevent-lane"), "random",
                        ["env", f"LANE_SECONDS={seconds}", f"SEED={time.time_ns() >> 20}",
                         TOP / "tests/programs/lane", "random"])


def run_fallback_vm():
    """The same on our kernel, where tests may do what they want."""
    return run_guest("fallback-vm", "base", KEVENT_BACKEND="epoll",
                     KEVENT_STORM_SECONDS=STORM_SHORT)


def run_guest(name, config, *options, program="kevent-tests", suites=(),
              **variables):
    storms = variables.get("KEVENT_STORM_SECONDS") or \
        os.environ.get("KEVENT_STORM_SECONDS") or 0
    seconds = SECONDS["debug" if config == "debug" else name] + \
        STORMS * int(storms)
    kind = "debug" if config.removeprefix("plain-") in ("debug", "rt", "kcsan") else "base"
    examples = program.replace("kevent-tests", "examples")
    return run(report.Report(name),
               vm.command([GUEST / program, "--kconfig", kind, *suites],
                          "--config", config, "--timeout", seconds, *options,
                          copies=[GUEST / examples]),
               seconds, **variables)


def run_compat(config="base", suites=COMPAT):
    """The kernel under test is the same as in other parts, so storms are short."""
    return run_guest("compat", config, program="kevent-tests-32", suites=suites,
                     KEVENT_STORM_SECONDS=STORM_SHORT)


def run_lowres():
    """Timers expire at ticks, but must count in nanoseconds."""
    return run_guest("lowres", "base", "--append", "highres=off",
                     suites=("timer", "timer_set", "posix_timer"))


def run_timeless():
    """Storms whose time is over when they begin, as on a machine that is ever so slow."""
    return run_guest("timeless", "base", suites=STORMS_TIMED, KEVENT_STORM_SECONDS="0")


def run_suspend():
    """QEMU does not always wake a second processor that was suspended."""
    return run_guest("suspend", "base", "--cpus", "1", suites=("suspend",))


def run_first():
    """What the first commands of a user install, build and say."""
    return cases.run(report.Report("first"))


def run_hang():
    """What tests/vm/run says when something goes wrong."""
    return cases.run(report.Report("hang"), 4)


def run_arm64():
    return run_guest("arm64", "arm64", "--kunit",
                     program="kevent-tests-arm64")


def run_huge():
    return run_guest("huge", "base", "--mem", "5G", suites=("huge",))


def run_rt():
    return run_guest("rt", "rt", "--kunit")


def run_kcsan():
    return run_guest("kcsan", "kcsan", "--kunit")


def run_gcov():
    return run_counting(report.Report("gcov"), "coverage",
                        [TOP / "tests/long/coverage"])


def run_one(name, test, command, good, *options, copies=()):
    """A program without KTAP passes if good() accepts its lines."""
    done = subprocess.run(vm.command(command, "--timeout", 120, *options, copies=copies),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace")
    lines = done.stdout.splitlines()
    passed = done.returncode == 0 and good(lines)
    results = report.Report(name)
    results.line("1..1")
    results.line(f"{report.RUN}{test}")
    results.diagnostics = [f"exit status {done.returncode}", *lines[-20:],
                           *done.stderr.splitlines()[-20:]]
    results.line(f"{'ok' if passed else 'not ok'} 1 {test}")
    results.end(0, [])
    return results


def add(results, more):
    results.passed += more.passed
    results.failed += more.failed
    results.exceptions += more.exceptions
    results.failures += more.failures


def run_readme(name="readme", backend="kevent", *options):
    """The program of make demo says the same here and on our kernel."""
    program = BUILD / "libkevent/examples/two_pipes"
    here = subprocess.run([program], stdout=subprocess.PIPE, text=True,
                          check=False).stdout.splitlines()
    return run_one(name, "example.two_pipes", [program],
                   lambda lines: lines == ["pipe a: 1", "pipe b: 2",
                                           f"backend: {backend}"] and
                   here == [*lines[:2], "backend: epoll"], *options)


def run_stock(config=STOCK, **variables):
    """The same with the module, on a kernel as Debian has it. What the module lacks is in
    tests/suites/module.c. Without the module nothing may pass."""
    results = run_readme(config, "module", "--config", config)
    add(results, run_guest(config, config, KEVENT_BACKEND="module",
                           KEVENT_STORM_SECONDS=STORM_SHORT, **variables))
    print(f"{config:11} {results.exceptions} exceptions")
    return results


def run_module_debug(**variables):
    """The module on a kernel without kevent that looks for the same as that of debug."""
    return run_guest("module-debug", "plain-debug", "--kmemleak", KEVENT_BACKEND="module",
                     KEVENT_LEAVE_OUT="1", **variables)


def run_module_kcsan():
    return run_guest("module-kcsan", "plain-kcsan", KEVENT_BACKEND="module",
                     KEVENT_LEAVE_OUT="1")


# (two CPUs, batch, backend, mode, instructions): kevent wins with 1 and 2, is 2 % behind
# with 3, and loses by its best mode with 4 and 5. Two CPUs do not count.
LOSSES = (
    (False, 1, "kevent", "et", 100), (False, 1, "epoll", "et", 300),
    (False, 2, "kevent", "et", 100), (False, 2, "kevent", "copy", 300),
    (False, 2, "epoll", "lt", 200),
    (False, 3, "kevent", "et", 102), (False, 3, "epoll", "et", 100),
    (False, 4, "kevent", "et", 150), (False, 4, "kevent", "copy", 400),
    (False, 4, "epoll", "et", 100), (False, 4, "uring", "defer", 120),
    (False, 4, "limit", "none", 10), (False, 5, "raw", "et", 50),
    (False, 5, "kevent", "et", 200), (False, 5, "uring", "defer", 100),
    (True, 1, "kevent", "et", 900), (True, 1, "epoll", "et", 100))


def check_losses(results):
    """bench/losses prints the rows that are lost, and only these, worst first."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        for smp, batch, backend, mode, value in LOSSES:
            print(json.dumps({
                "workload": "notify", "icount": not smp, "source": "pipe",
                "batch": batch, "watches": 1, "threads": 1, "metric": "cost",
                "backend": backend, "mode": mode, "value": value,
                "unit": "instructions/event"}), file=file, flush=True)
        said = subprocess.run([TOP / "bench/losses", file.name], text=True,
                              stdout=subprocess.PIPE, check=False).stdout
    lines = [line.split() for line in said.splitlines()]
    if [line[:1] + line[-5:] for line in lines[:-1]] == [
            ["2.00", "200", "et", "100", "uring", "defer"],
            ["1.50", "150", "et", "100", "epoll", "et"]] and \
       said.endswith(" in 2 of 5 rows\n"):
        results.passed += 1
    else:
        results.fail("bench.losses", said.splitlines())


def run_http():
    """Two runs of a point with each backend say how many requests there were."""
    here, tools = TOP / "bench/http", BUILD / "http"
    programs = [tools / f"http_{name}" for name in HTTP_BACKENDS]
    runs = len(HTTP_BACKENDS) * HTTP_RUNS
    return run_one("bench", "bench.http",
                   [TOP / "bench/guest", here / "measure", "rate", "example",
                    programs[0], tools, HTTP_RUNS, " ".join(HTTP_BACKENDS),
                    HTTP_POINT],
                   lambda lines: sum(bool(HTTP_RATE.match(line))
                                     for line in lines) == runs,
                   copies=[*programs, here / "in-group", here / "measure",
                           here / "backends.sh", TOP / "scripts/server.sh",
                           "/usr/bin/ab"])


# Sources of the workload units in one boot, and what all of them execute in an event
PROFILES = (("none,locked,copy,getcpu+2", {"calls": 2, "locked": 1, "steps": 256,
                                           "windows": 2, "switches": 0, "tables": 0}),
            ("futex", {"calls": 4, "switches": 2, "tables": 2}))
# Interrupts are in the counts, and steps of pages that are cleared
PROFILE_SLACK, PROFILE_SHARE = 0.05, 0.01
PROFILE_MODULE = {"kevent_add", "kevent_remove", "ftrace_trampoline"}
NATIVE = (r"^native: .* GHz, \d+ CPUs, Linux \d", r"^a system call that does nothing +\d",
          r"^a switch, without its instructions +\d", r"^epoll-echo( +[\d.]+){4} +-?\d+%",
          r"^errors: [+-]\d+% to ", r"^marks, this machine: ",
          r"^one way to another CPU, both awake +\d", r"^native: \d+ s, ")


def profile(config, workload, *options):
    """What bench/profile prints, or an empty list, and the words for a failure."""
    done = subprocess.run([TOP / "bench/profile", "--config", config, "--top", "400",
                           workload, "--", *options], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.splitlines()
    return [] if done.returncode else lines, lines[:20]


def check_profile(results):
    """bench/profile counts calls, switches and so on of programs that are known, and knows the
    functions of the module and how close() comes to them."""
    for sources, expected in PROFILES:
        lines, words = profile("base", "units", "--backend", "limit", "--source", sources)
        kinds, row = (lines + ["", ""])[:2]
        kinds = kinds.split()
        cells = dict(zip(kinds, (float(row[n * 9:n * 9 + 9].strip() or 0)
                                 for n in range(len(kinds)))))
        if not row.endswith("  all") or \
           any(abs(cells[kind] - number) > max(PROFILE_SLACK, PROFILE_SHARE * number)
               for kind, number in expected.items()):
            results.fail(f"bench.profile {sources}", words)
        else:
            results.passed += 1
    lines, words = profile(STOCK, "ctl", "--backend", "kevent", "--mode", "et", "--source",
                           "pipe", "--batch", "1")
    missing = PROFILE_MODULE - {line.split()[-1] for line in lines}
    if missing:
        results.fail("bench.profile module", [f"missing: {missing}", *words])
    else:
        results.passed += 1


def check_native(results):
    """bench/native measures each source once, and says how far the model is off."""
    done = subprocess.run([TOP / "bench/native", "--quick"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    missing = [pattern for pattern in NATIVE if not re.search(pattern, done.stdout, re.M)]
    if done.returncode or missing:
        results.fail("bench.native", [f"missing: {missing}", *done.stdout.splitlines()])
    else:
        results.passed += 1


def check_requests(results):
    """A run that has no time counts some requests on both sides all the same."""
    done = subprocess.run([BUILD / "bench/kevent-bench", "--workload", "requests", "--source",
                           "lane,stream", "--seconds", "1e-9", "--runs", "1", "--backend",
                           "kevent,epoll"], text=True, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, env={**os.environ, "KEVENT_BACKEND": "epoll"})
    if done.returncode or not done.stdout or re.search(r"\b(nan|inf)\b", done.stdout):
        results.fail("bench.requests", done.stdout.splitlines())
    else:
        results.passed += 1


def run_bench():
    """The programs themselves check each event; their figures do not matter here."""
    points = len(BENCH_SOURCES) * len(BENCH_BATCHES)
    results = run_one("bench", "bench.notify",
                      [BUILD / "bench/kevent-bench", "--workload", "notify",
                       "--watches", "300", "--events", "2000", "--runs", "1",
                       "--source", ",".join(BENCH_SOURCES),
                       "--batch", ",".join(BENCH_BATCHES)],
                      lambda lines: all(
                          sum(f'"backend": "{name}"' in line and
                              '"metric": "cost"' in line for line in lines)
                          == modes * points
                          for name, modes in BENCH_BACKENDS.items()))
    check_losses(results)
    check_profile(results)
    check_requests(results)
    check_native(results)
    add(results, run_http())
    return results


def run_counting(results, name, command):
    """Run a command that counts its results itself."""
    start = time.monotonic()
    log = LOG / f"{results.name}-{name}.log"
    print(f"{results.name:11} {name}, log: {log}", flush=True)
    status = run_logged(command, log, SECONDS[results.name])
    lines = log.read_text(errors="replace").splitlines()
    passed, failed = report.counts(lines)
    if failed or status or not passed:
        results.fail(name, [f"exit status {status}", *lines[-40:]],
                     failed or 1)
    results.passed += passed
    print(f"{results.name:11} {name:16}{passed:4} passed"
          + f", {failed} failed" * bool(failed)
          + f"  ({time.monotonic() - start:.0f} s)", flush=True)
    return results


def run_programs(programs=(*PROGRAMS, *LARGE_PROGRAMS)):
    results = report.Report("programs")
    for name, *words in programs:
        run_counting(results, name, [TOP / "tests/programs" / name, *words])
    return results


def run_share_of_programs():
    """The small ones, and one of the others."""
    return run_programs((*PROGRAMS, *turn(LARGE_PROGRAMS, len(LARGE_PROGRAMS))))


def run_rust():
    return run_counting(report.Report("rust"), "crate",
                        [TOP / "tests/rust/run"])


def turn(words, shares):
    """Those that it is the turn of: as many commits in a row as there are shares have all."""
    return words[tree.commits() % shares::shares]


def share():
    """Each commit has another one."""
    return f"{tree.commits() % SHARES}/{SHARES}"


def run_share_of_mutants():
    """The log's name of the share repeats the run."""
    print(f"mutants     tests/mutants/run --share {share()}")
    return run_mutants("--share", share())


def run_check():
    """All that takes seconds, and a share of what builds in many configurations."""
    print(f"check       tests/check --share {share()}")
    return run_counting(report.Report("check"), "check",
                        [TOP / "tests/check", "--share", share()])


def run_package():
    return run_counting(report.Report("package"), "package", [TOP / "tests/package"])


def run_dist(*words):
    return run_counting(report.Report("dist"), "dist", [TOP / "tests/dist", *words])


def run_mutants(*names):
    return run_counting(report.Report("mutants"), "mutants",
                        [TOP / "tests/mutants/run", *names])


def run_worst(*names, stall=()):
    """Inputs made by hand, those of many users, and those that the search has found."""
    results = run_counting(report.Report("worst"), "worst",
                           [TOP / "tests/long/worst", *names])
    results = run_counting(results, "stall", [TOP / "tests/long/stall", *stall])
    return run_counting(results, "search", [TOP / "tests/long/search/run", "--replay"])


def run_fuzz(*words):
    """Operations at random, next to a model. The log has the seeds."""
    return run_counting(report.Report("fuzz"), "fuzz",
                        [TOP / "tests/long/fuzz/run", *(words or ("--quick",))])


def run_syzkaller(seconds):
    """Programs from the description for syzkaller. The logs have the seeds."""
    SECONDS["syzkaller"] = seconds + 1200	# with time to minimise
    results = report.Report("syzkaller")
    for config in ("base", "debug"):
        run_counting(results, config, [TOP / "tests/long/syzkaller/run", "--config",
                                       config, "--seconds", str(seconds)])
    return results


def run_races(seconds):
    """Each test for so long, on three kernels and with the module on a fourth. The logs have
    the seeds."""
    results = report.Report("races")
    for config, backend in (("base", ""), ("debug", ""), ("kcsan", ""),
                            ("plain-debug", "module")):
        more = run_guest("races", config, suites=RACES, KEVENT_BACKEND=backend,
                         KEVENT_STORM_SECONDS=str(seconds))
        results.passed += more.passed
        results.failed += more.failed
        results.failures += [(f"{config} {test}", words)
                             for test, words in more.failures]
    return results


def run_deb():
    return run_counting(report.Report("deb"), "deb", [TOP / "tests/long/deb"])


def run_dkms():
    return run_counting(report.Report("dkms"), "dkms", [TOP / "tests/long/dkms"])


def run_systems():
    return run_counting(report.Report("systems"), "systems", [TOP / "tests/long/systems"])


def run_logged(command, log, seconds):
    with open(log, "w") as out, session(command, seconds, stdout=out, stderr=out) as process:
        return status_of(process, seconds, out)


def run_base():
    """Short storms: make torture has longer ones."""
    return run_guest("base", "base", "--kunit",
                     KEVENT_STORM_SECONDS=os.environ.get(
                         "KEVENT_STORM_SECONDS", STORM_SHORT))


def run_audit():
    """The kernel's own audit, which sees all tasks that are made after boot."""
    return run_guest("audit", "debug", "--append", "audit=1",
                     suites=("calls_audited",))


def run_debug(suites=(), **variables):
    variables.setdefault("KEVENT_STORM_SECONDS",
                         os.environ.get("KEVENT_STORM_SECONDS", STORM_SHORT))
    return run_guest("debug", "debug", "--kunit", "--kmemleak", suites=suites, **variables)


def debug_suites():
    done = subprocess.run([GUEST / "kevent-tests", "--list"], text=True,
                          env={**os.environ, "KEVENT_BACKEND": "kernel"},
                          stdout=subprocess.PIPE, check=True)
    names = dict.fromkeys(line.partition(".")[0] for line in done.stdout.splitlines())
    return [name for name in names if name not in NOT_ON_DEBUG]


def run_share_of_debug():
    """Every second suite. The log's name of the share repeats the run."""
    suites = turn(debug_suites(), HALVES)
    print(f"debug       suites {tree.commits() % HALVES}/{HALVES}: {suites[0]} to {suites[-1]}")
    return run_debug(suites)
