# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""asyncio.run() with the loop of kevent, by a policy: before Python 3.12"""

import asyncio

import kevent


async def serve(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def main():
    print(type(asyncio.get_running_loop()).__name__)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        print((await reader.readline()).decode().strip())
        writer.close()


asyncio.set_event_loop_policy(kevent.EventLoopPolicy())
asyncio.run(main())
