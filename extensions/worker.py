"""One thread that runs blocking calls in order, for one owner.

The rule it keeps: a call that never returns holds nobody up. The thread is a daemon, so that a
process whose database hangs can still end; a pool of the standard library would wait for it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Worker:
    """A named daemon thread. Calls run one after the other, in the order they were made."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Run ``function(*args)`` in the thread; the future belongs to the running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = function(*args)
            except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
                _tell(loop, _fail, future, error)
            else:
                _tell(loop, _succeed, future, result)

        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put(job)
        return future

    def stop(self) -> None:
        """Let the thread end after what it was given. Does not wait."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
