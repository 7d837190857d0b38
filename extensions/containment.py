"""Keeps what is no `Exception` from escaping out of callbacks, pipelines, middlewares and handlers.

The rule it keeps: whatever user code raises ends the request or the item that it worked on, by name. Scrapy catches only
`Exception`: a request whose callback raises `asyncio.CancelledError` (an awaited task was cancelled) would run for ever, and
an item would be gone without a word. `sys.exit()` in a callback, which would leave the loop without its threads and files
being closed, asks for the end of the crawl as `CloseSpider` does. `KeyboardInterrupt` passes: it is meant for the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import CloseSpider, DownloadFailedError

from . import compat

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.core.engine import ExecutionEngine
    from twisted.python.failure import Failure


class Escaped(Exception):
    """User code raised something that is no `Exception`."""


def contained(error: BaseException) -> BaseException:
    """What to raise in the place of *error*: itself, unless it would escape from those who wait for the end."""
    if isinstance(error, (Exception, KeyboardInterrupt)) or _is_cancelled_from_outside(error):
        return error
    told = Escaped(f"raised {error!r}")
    told.__cause__ = error
    return told


def _contained_in_spider(error: BaseException) -> BaseException:
    """The same for callbacks and errbacks, which may ask for the end of the crawl."""
    if not isinstance(error, SystemExit):
        return contained(error)
    told = CloseSpider("sys.exit")
    told.__cause__ = error
    return told


def contain(engine: ExecutionEngine) -> None:
    """Contain callbacks, errbacks, item pipelines, downloader middlewares and download handlers of *engine*."""
    compat.wrap_user_code(
        engine, spider=_contain_spider, call=_contain_call, download=_contain_download
    )


def _contain_call(
    call: Callable[..., Coroutine[Any, Any, Any]],
    told_as: Callable[[BaseException], BaseException] = contained,
) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def contained_call(*arguments: Any) -> Any:
        try:
            return await call(*arguments)
        except BaseException as error:  # noqa: BLE001 - told as what it is
            raise told_as(error)  # noqa: B904 - it names its cause

    return contained_call


def _contain_download(
    call: Callable[..., Coroutine[Any, Any, Any]],
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A handler that raises so has got no answer, and may get one when it is tried again."""

    async def contained_download(*arguments: Any) -> Any:
        try:
            return await call(*arguments)
        except BaseException as error:
            told = contained(error)
            if isinstance(told, Escaped):
                raise DownloadFailedError(f"the download handler {told}") from error
            raise

    return contained_download


def _contain_spider(
    call: Callable[..., Coroutine[Any, Any, Any]],
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The output of callbacks is contained by `OutputCut`, which sees it after all middlewares; errbacks pass none."""
    contained_call = _contain_call(call, _contained_in_spider)

    async def contained_spider(result: Any, request: Any) -> Any:
        output = await contained_call(result, request)
        return output if _is_response(result) else _contained_output(output)

    return contained_spider


def _is_response(result: object | Failure) -> bool:
    return hasattr(result, "status")


def _contained_output(output: Any) -> Any:
    if isinstance(output, AsyncIterator):
        return contained_async(output)
    return contained_iterable(output) if isinstance(output, Iterable) else output


def contained_iterable(output: Iterable[Any]) -> Iterable[Any]:
    """What *output* yields; what escapes from it is told."""
    iterator = iter(output)
    while True:
        try:
            value = next(iterator)
        except StopIteration:
            return
        except BaseException as error:  # noqa: BLE001 - told as what it is
            raise _contained_in_spider(error)  # noqa: B904
        yield value


async def contained_async(output: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """The same for asynchronous output."""
    while True:
        try:
            value = await anext(output)
        except StopAsyncIteration:
            return
        except BaseException as error:  # noqa: BLE001 - told as what it is
            raise _contained_in_spider(error)  # noqa: B904
        yield value


def _is_cancelled_from_outside(error: BaseException) -> bool:
    """Was the task in which this runs asked to end (by a stopping engine), and must it?"""
    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True  # no task that could wait for ever
    return task is None or task.cancelling() > 0
