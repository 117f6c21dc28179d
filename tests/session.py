# SPDX-License-Identifier: GPL-2.0
"""Commands whose time is limited, and of which nothing is left."""

import contextlib
import os
import signal
import subprocess


@contextlib.contextmanager
def session(command, seconds, **options):
    """A process in a session of its own, all of which is killed when its time is over, and
    when we are interrupted."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        def kill(*_):
            with contextlib.suppress(ProcessLookupError):	# it has just ended
                os.killpg(process.pid, signal.SIGKILL)

        signal.signal(signal.SIGALRM, kill)
        signal.alarm(seconds)
        try:
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
