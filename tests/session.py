# SPDX-License-Identifier: GPL-2.0
"""Commands whose time is limited, and of which nothing is left."""

import contextlib
import os
import signal
import subprocess

STOPS = (signal.SIGINT, signal.SIGTERM)


def unblock():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def started(command, options):
    """We must not be interrupted before we know whom to kill: STOPS are blocked then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        return subprocess.Popen(command, start_new_session=True, preexec_fn=unblock, **options)
    except OSError:
        unblock()
        raise


@contextlib.contextmanager
def session(command, seconds, **options):
    """A process in a session of its own, all of which is killed when its time is over, and
    when we are interrupted."""
    with started(command, options) as process:
        def kill(*_):
            with contextlib.suppress(ProcessLookupError):	# it has just ended
                os.killpg(process.pid, signal.SIGKILL)
            # What is left may hold the pipe, with a session of its own: read what there is
            if process.stdout:
                os.set_blocking(process.stdout.fileno(), False)

        try:
            signal.signal(signal.SIGALRM, kill)
            signal.alarm(seconds)
            unblock()
            yield process
        except BaseException:
            kill()
            raise
        finally:
            signal.alarm(0)


def status_of(process, seconds, log):
    """Its exit status. The log says if its time was over."""
    status = process.wait()
    if not signal.alarm(0):
        print(f"no end within {seconds} s", file=log)
    return status
