# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The loop by loop_factory, from Python 3.11 on, and a watch that asyncio has no name for"""

import asyncio
import os
import tempfile

import kevent


async def main():
    loop = asyncio.get_running_loop()
    changes = asyncio.Queue()
    with tempfile.TemporaryDirectory() as path:
        folder = os.open(path, os.O_RDONLY)
        watch = loop.queue.inode(folder, kevent.Inode.CREATE)
        loop.add_watch(watch, changes.put_nowait)
        os.mkdir(f"{path}/new")
        event = await changes.get()
        print(type(loop).__name__, event.events.name)
        loop.remove_watch(watch)
        os.close(folder)


with asyncio.Runner(loop_factory=kevent.EventLoop) as runner:
    runner.run(main())
