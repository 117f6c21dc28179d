# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""A timer, the output and the exit of a child, and a signal in one queue"""

import os
import signal
import subprocess

from kevent import Queue

child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
with Queue() as queue:
    output = queue.watch(child.stdout)
    end = queue.process(child.pid)
    tick = queue.timer(0.01, 0.01, data=[])
    term = queue.signal(signal.SIGTERM, consume=True)
    for event in queue:
        if event.watch is tick:
            event.data.append(event.expirations)
            if sum(event.data) >= 3:
                print("three ticks")
                tick.remove()
                os.write(child.stdin.fileno(), b"hello")
        elif event.watch is output:
            print("output:", os.read(event.fd, 100).decode())
            output.remove()
            child.stdin.close()
        elif event.watch is end:
            print("child exited with", event.exitcode)
            os.kill(os.getpid(), signal.SIGTERM)
        elif event.watch is term:
            print("signal", event.signum.name)
            queue.close()
child.wait()
child.stdout.close()
