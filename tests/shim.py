"""A TCP connection in the middle: slow, cut after the server has worked, or moved to another server."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Self


class Shim:
    """Passes bytes on, in a thread of its own.

    Attributes:
        delay_s: Every answer comes so much later.
        cut_answers: So many answers are swallowed, with their connections: the server has worked, its client never knows.
        target: Port of the server; open connections to the one before are cut by `move`.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.delay_s = 0.0
        self.cut_answers = 0
        self.cuts = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def move(self, target: int) -> None:
        self.target = target
        self._call(self._cut_all())

    def _call(self, coroutine) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._cut_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _cut_all(self) -> None:
        for writer in list(self._writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, up_writer}
        down = asyncio.ensure_future(self._answers(up_reader, writer))
        try:
            while data := await reader.read(65536):
                up_writer.write(data)
                await up_writer.drain()
        except OSError:
            pass
        finally:
            down.cancel()
            for end in (writer, up_writer):
                self._writers.discard(end)
                end.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if self.cut_answers > 0 and len(data) > 200:
                    self.cut_answers -= 1
                    self.cuts += 1
                    break
                writer.write(data)
                await writer.drain()
        writer.close()
