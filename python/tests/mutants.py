#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Break the package in each known way; a test must notice.

usage: mutants.py [--kernel] [NAME]...

Each mutant is a copy of the package in which one piece of text is replaced. Prints
what noticed it. The last line is "N passed, N failed". With --kernel also those
run that only a queue of the kernel shows.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

PACKAGE = os.path.abspath(f"{__file__}/../..")
KERNEL_ONLY = {"close-leaves-watches", "fair-is-forgotten", "no-amount",
               "selector-is-stale"}
# Name, file, text, what takes its place
MUTANTS = [
    ("types-of-another-version", "__init__.pyi", "private: bool = True", "shared: bool = False"),
    ("types-of-a-wait-are-any", "__init__.pyi", "timeout: float | None = None) -> list[Any]",
     "timeout: Any = None) -> list[Any]"),
    ("closed-stream-is-read", "_streams.py",
     "        if self._stream is None:\n"
     "            raise ValueError(\"the stream is closed\")\n", ""),
    ("closed-set-keeps-streams", "_streams.py",
     "            stream._stream = None\n", "            pass\n"),
    ("closed-set-is-freed-again", "_streams.py", "streams, self._set = self._set, None",
     "streams = self._set"),
    ("interrupted-stream-stays", "_streams.py", "            if new[0]:\n",
     "            if False:\n"),
    ("stream-offers-nothing", "_streams.py", "STREAM_OFFER if offer else 0", "0"),
    ("no-bytes-are-an-error", "_streams.py",
     "        if result == -errno.EAGAIN:\n            return None\n"
     "        return ffi.buffer", "        return ffi.buffer"),
    ("join-forgets-counts", "_streams.py", "self._check(), sent, received",
     "self._check(), 0, 0"),
    ("sleeper-does-not-say-so", "_streams.py",
     "not _lib.check(lib.kevent_streams_arm(self._check()))", "True"),
    ("writing-peer-keeps-the-set", "_streams.py",
     "            if stream in ready:\n                break\n", ""),
    ("interrupted-wait-of-streams-ends", "_streams.py", "if nr != -errno.EINTR:", "if True:"),
    ("stream-socket-offers-nothing", "_stream_sockets.py", "not sock.getsockname()",
     "False"),
    ("stream-sets-do-not-sleep", "_stream_sockets.py",
     "lib.kevent_streams_get(self.streams._check(),", "lib.kevent_queue_get(self._q,"),
    ("closed-queue-keeps-stream-sockets", "_stream_sockets.py",
     "            sock._detach()\n", "            pass\n"),
    ("registered-stream-is-not-seen", "_stream_sockets.py",
     "        self._listed[stream] = None\n        return stream\n",
     "        return stream\n"),
    ("modified-stream-is-not-seen", "_stream_sockets.py",
     "self._selector._listed[self] = None", "pass"),
    ("events-of-streams-are-lost", "_stream_sockets.py",
     "self.queue.streams._event(event) or super()._other(entry)", "True"),
    ("streams-report-all", "_stream_sockets.py", "key.events & stream.ready if key",
     "stream.ready if key"),
    ("ready-stream-does-not-end-a-wait", "_stream_sockets.py",
     "0 if self._collect() else timeout", "timeout"),
    ("stream-that-ends-a-wait-is-late", "_stream_sockets.py",
     "return files + self._collect()", "return files"),
    ("stream-is-closed-in-any-thread", "_stream_sockets.py",
     "if self._selecting or self._thread != threading.get_ident():", "if self._selecting:"),
    ("stream-is-closed-within-select", "_stream_sockets.py",
     "if self._selecting or self._thread", "if self._thread"),
    ("collected-stream-is-closed-late", "_stream_sockets.py", "self.queue.wake()", "pass"),
    ("closed-stream-is-ready", "_streams.py", "self._pointers.get(stream)",
     "self._streams[lib.kevent_stream_user(stream)]"),
    ("closed-stream-has-events", "_streams.py", "if pointer is not None:", "if True:"),
    ("stream-has-copies", "_stream_sockets.py",
     "raise OSError(errno.EOPNOTSUPP, \"no copy", "return (\"no copy"),
    ("closed-stream-keeps-descriptor", "_stream_sockets.py",
     "        self._sock.detach()\n", ""),
    ("reader-goes-on-after-shutdown", "_stream_sockets.py",
     "if how == socket.SHUT_RDWR:", "if False:"),
    ("stream-without-bytes-stays-ready", "_stream_sockets.py",
     "            self.ready &= ~direction\n", "            pass\n"),
    ("stream-that-is-empty-stays-ready", "_stream_sockets.py",
     "                self.ready &= ~READ\n", "                pass\n"),
    ("early-error-is-lost", "_stream_sockets.py", "self._late = more", "pass"),
    ("sendfile-passes-the-memory", "_loop.py",
     "isinstance(transport._sock, StreamSocket)", "False"),
    ("policy-forgets-streams", "_policy.py", "EventLoop(streams=self._streams)",
     "EventLoop()"),
    ("closed-queue-is-used", "_queue.py", "        if self._closed:\n"
     "            self._leave()\n            self._check()\n", ""),
    ("close-wakes-nobody", "_queue.py",
     "if self._closed and self._open and len(self._users) > 1:", "if False:"),
    ("close-at-once", "_queue.py", "if self._closed and not self._users:",
     "if self._closed:"),
    ("fair-is-forgotten", "_queue.py",
     " | (_lib.INIT_FAIR if fair else 0)", ""),
    ("close-leaves-watches", "_queue.py",
     "lib.kevent_ctl(q.fd, _lib.CTL_REMOVE, len(part), entries)", "pass"),
    ("close-leaves-descriptor", "_queue.py",
     "        lib.kevent_queue_close(q)\n", ""),
    ("closed-watches-stay-active", "_queue.py",
     "        for watch in list(self._watches.values()):\n"
     "            watch.queue = None\n", ""),
    ("wait-ignores-close", "_queue.py",
     "                if self._closed:\n                    self._check()\n",
     ""),
    ("child-keeps-queue", "_queue.py",
     "os.register_at_fork(after_in_child=_abandon_all)", ""),
    ("child-keeps-descriptors", "_queue.py",
     "            lib.kevent_queue_close(self._q)\n", ""),
    ("no-warning", "_queue.py", "warnings.warn(", "str("),
    ("forgotten-queue-stays-open", "_queue.py",
     "source=self)\n            self.close()", "source=self)"),
    ("ring-is-not-a-power-of-two", "_queue.py",
     "1 << (int(size) - 1).bit_length()", "int(size)"),
    ("removed-watch-is-reported", "_queue.py",
     "        self._watches.pop(watch._handle, None)\n", ""),
    ("handles-are-used-again", "_queue.py",
     "handle = watch._handle = next(self._handles)",
     "handle = watch._handle = (1 << 32) + len(self._watches)"),
    ("old-watch-stays-active", "_queue.py",
     "if isinstance(old, _watches.FileWatch) and not in_ring:", "if False:"),
    ("last-event-of-an-inode-is-lost", "_queue.py", " and not in_ring:", ":"),
    ("old-watch-removes-new-one", "_queue.py",
     "            if self._names(watch):\n", "            if True:\n"),
    ("old-watch-changes-new-one", "_watches.py",
     "if not self.queue._names(self):", "if False:"),
    ("failed-add-stays", "_queue.py",
     "            self._forget(watch)\n            raise\n",
     "            raise\n"),
    ("interrupted-add-stays", "_queue.py",
     "                self._request(_lib.CTL_REMOVE, entry)\n", "                pass\n"),
    ("add-that-was-not-made-removes", "_queue.py",
     "        entry.ret_flags = _lib.RET_BROKEN	# the call clears it\n", ""),
    ("refused-add-removes", "_queue.py",
     "not entry.ret_flags & _lib.RET_BROKEN", "True"),
    ("interrupted-remove-is-forgotten", "_queue.py",
     "        try:\n            if self._names(watch):\n",
     "        try:\n            watch.queue = None\n            if self._names(watch):\n"),
    ("watch-without-a-key-has-gone", "_queue.py",
     "self._keys.get(watch._key(), watch) is watch",
     "self._keys.get(watch._key()) is watch"),
    ("failed-modify-stays", "_watches.py",
     "            self.__dict__.update(old)\n", ""),
    ("oneshot-stays", "_watches.py",
     "return req_flags & _lib.REQ_ONESHOT", "return False"),
    ("stale-entries-end-a-wait", "_queue.py",
     "if events or not taken:", "if True:"),
    ("unknown-watch-prolongs-a-wait", "_queue.py",
     "if stale > self._size and _is_over(deadline):", "if False:"),
    ("ring-of-stale-entries-ends-a-wait", "_queue.py",
     "if stale > self._size and _is_over(deadline):", "if _is_over(deadline):"),
    ("interrupted-wait-ends", "_queue.py", "if nr != -errno.EINTR:",
     "if True:"),
    ("negative-timeout", "_queue.py", "math.isnan(timeout) or timeout < 0",
     "False"),
    ("long-timeout", "_queue.py", "if timeout > FOREVER:", "if False:"),
    ("timeout-is-too-short", "_queue.py", "max(deadline - time.monotonic_ns(), 0)",
     "max(deadline - time.monotonic_ns() - 2000000, 0)"),
    ("last-buffer-is-shared", "_queue.py",
     "            try:\n                buffer = self._buffers.pop()\n"
     "            except IndexError:\n                buffer =",
     "            buffer = self._buffers.pop() if self._buffers else \\\n               "),
    ("wake-does-nothing", "_queue.py",
     "_lib.check(lib.kevent_ctl(self._q.fd, _lib.CTL_READY, 0, ffi.NULL))",
     "pass"),
    ("wake-all-is-for-one", "_queue.py",
     "self._q.fd, _lib.CTL_WAKE_ALL, 0", "self._q.fd, _lib.CTL_READY, 0"),
    ("iteration-does-not-end", "_queue.py", "if ended and not events:", "if False:"),
    ("iteration-raises", "_queue.py", "                if self._closed:\n"
     "                    return\n                raise\n",
     "                raise\n"),
    ("star-imports-policies", "__init__.py", "if sys.version_info >= (3, 14):", "if False:"),
    ("library-of-the-package-is-left", "_lib.py", "OWN if os.path.exists(OWN) else LIBRARY",
     "LIBRARY"),
    ("error-without-class", "_lib.py", "CLASSES.get(-number, Error)", "Error"),
    ("error-text-of-libc", "_lib.py",
     "ffi.string(lib.kevent_strerror(number)).decode(errors=\"replace\")",
     "__import__('os').strerror(-number)"),
    ("flags-are-lost", "_watches.py", "flags_of(flags, self._flags)",
     "flags_of(flags)"),
    ("edge-is-level", "_watches.py", '"edge": _lib.REQ_ET',
     '"edge": _lib.REQ_WAKEUP_ALL'),
    ("disabled-is-not", "_watches.py", '"disabled": _lib.REQ_DISABLED',
     '"disabled": _lib.REQ_WAKEUP_ALL'),
    ("get-takes-one", "_queue.py", "taken = self._take(max, deadline)",
     "taken = self._take(1, deadline)"),
    ("get-returns-nothing", "_queue.py",
     "            if events or not taken:\n                return events\n",
     "            if events or not taken:\n                return []\n"),
    ("time-is-rounded-down", "_watches.py",
     "math.ceil(seconds * 1000000000)", "int(seconds * 1000) * 1000000"),
    ("clock-is-ignored", "_watches.py", "_events.Clock(clock) |",
     "_events.Clock(0) |"),
    ("timer-stays", "_watches.py",
     "flags[\"oneshot\"] = not flags.get(\"dispatch\")", "pass"),
    ("timer-with-a-new-interval-ends", "_watches.py",
     "not interval and not flags.get(", "not flags.get("),
    ("new-interval-ignores-oneshot", "_watches.py",
     "not interval and \"oneshot\" not in flags", "not interval"),
    ("timer-goes-on-for-good", "_watches.py", "self._ends_itself = ends",
     "self._ends_itself = ends and not interval"),
    ("pidfd-names-the-watch", "_queue.py", "_watches.process_of(fd), fd,",
     "fd, fd,"),
    ("pidfd-is-kept", "_queue.py", "        watch._pidfd = None\n", ""),
    ("futex-word-is-freed", "_watches.py",
     "self._memory = ffi.from_buffer(word, require_writable=True)",
     "self._memory = ffi.from_buffer(bytearray(word), require_writable=True)"),
    ("no-amount", "_events.py", "return 0 if self.error else self._words[1]",
     "return 0"),
    ("signal-value-is-unsigned", "_events.py",
     "return number - (1 << 32) if number >> 31 else number", "return number"),
    ("high-word-is-lost", "_events.py",
     "return self._words[1] << 32 | self._words[0]", "return self._words[0]"),
    ("marks-look-kept", "_events.py",
     "return bool(self._req_flags & _lib.REQ_KEEP_EACH)", "return True"),
    ("status-of-others", "_events.py", "return None if status is None else "
     "os.waitstatus_to_exitcode(status)", "return status"),
    ("selector-is-stale", "_selector.py", "_watches.FLAGS[\"last_check\"] | ",
     ""),
    ("selector-reads-flags", "_selector.py", "entry[4] & _lib.RET_BROKEN",
     "entry[4]"),
    ("selector-ignores-hang-up", "_selector.py", "if bits & NEITHER_READ",
     "if bits & Poll.OUT"),
    ("selector-stops-at-a-ring", "_selector.py",
     "if len(taken) == size and len(ready) > before:", "if False:"),
    ("unknown-watch-prolongs-a-selection", "_selector.py", "_is_over(deadline)",
     "deadline == 0"),
    ("watch-without-a-selector-key-stays", "_selector.py",
     "                watch.remove()\n", ""),
    ("selector-reports-all-bits", "_selector.py",
     "(events | old) & key.events", "events"),
    ("selector-ignores-hang-up-of-readers", "_selector.py",
     "if bits & NEITHER_WRITE", "if bits & Poll.IN"),
    ("failed-modify-stays-registered", "_selector.py",
     "                self.unregister(fileobj)\n                raise\n",
     "                raise\n"),
    ("failed-register-stays", "_selector.py",
     "            super().unregister(fileobj)\n            raise\n",
     "            raise\n"),
    ("other-events-are-lost", "_selector.py", "self.on_event(event)", "pass"),
    ("selector-leaves-queue-open", "_selector.py",
     "        self.queue.close()\n", ""),
    ("callback-stays", "_loop.py",
     "            event.watch._callback = None\n", "            pass\n"),
    ("callback-without-arguments", "_loop.py",
     "context.run(callback, event, *args)", "context.run(callback, event)"),
    ("callback-in-another-context", "_loop.py", "context.run(callback, event, *args)",
     "callback(event, *args)"),
    ("removed-callback-is-called", "_queue.py", "        watch._callback = None\n", ""),
    ("callback-of-a-closed-file-is-called", "_queue.py",
     "            old._callback = None\n", ""),
    ("last-callback-cannot-be-removed", "_loop.py",
     "        watch.remove()\n        watch._callback = None\n", "        watch.remove()\n"),
    ("loop-needs-policies", "__init__.py", "        from ._loop import EventLoop\n",
     "        from ._policy import EventLoop\n"),
    ("policy-makes-the-old-loop", "_policy.py", "def _loop_factory", "def _other"),
]


def noticed(name, file, text, instead, kernel):
    """Run the tests on a mutant; returns the tests that failed, or None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = f"{folder}/python"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = f"{copy}/kevent/{file}"
        with open(path, encoding="utf-8") as source:
            old = source.read()
        if old.count(text) != 1:
            return None, f"{old.count(text)} places in {file} to break"
        with open(path, "w", encoding="utf-8") as source:
            source.write(old.replace(text, instead))
        # A child that a test has left may keep a pipe open
        with open(f"{folder}/output", "w+", encoding="utf-8",
                  errors="replace") as output:
            done = subprocess.run(
                [sys.executable, f"{copy}/tests/run.py", "--seconds", "20",
                 *["--kernel"] * kernel], stdout=output, stderr=output)
            output.seek(0)
            lines = output.read()
    tests = re.findall(r"^(?:FAIL|ERROR): (\w+)", lines, re.M)
    if done.returncode == -signal.SIGALRM:
        tests += ["a time limit"]
    elif done.returncode not in (0, 1):
        tests += [f"status {done.returncode}"]
    return (tests or None) if done.returncode else None, "no test noticed"


def main(*arguments):
    words = list(arguments)
    kernel = "--kernel" in words
    names = [word for word in words if word != "--kernel"]
    known = [mutant[0] for mutant in MUTANTS]
    if set(names) - set(known):
        sys.exit(f"usage: mutants.py [--kernel] [NAME]...; there are: "
                 f"{' '.join(known)}")
    passed = failed = 0
    for name, *change in MUTANTS:
        if names and name not in names:
            continue
        if not names and not kernel and name in KERNEL_ONLY:
            continue
        tests, problem = noticed(name, *change, kernel)
        print(f"{'ok    ' if tests else 'FAILED'} {name}: "
              f"{' '.join(sorted(set(tests))) if tests else problem}", flush=True)
        passed += bool(tests)
        failed += not tests
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
