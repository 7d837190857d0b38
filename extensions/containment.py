"""Keeps what is no `Exception` from escaping out of what users write: callbacks, pipelines, middlewares, handlers.

The rule it keeps: whatever user code raises ends the request or the item that it worked on, by name. Scrapy catches only
`Exception`: a request whose callback raises `GeneratorExit` or `asyncio.CancelledError` (an awaited task was cancelled)
would run for ever, and an item would be gone without a word. `SystemExit` and `KeyboardInterrupt`, which would leave the
loop without its threads and files being closed, ask for the end of the crawl; their page stays pending.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import CloseSpider, DownloadFailedError, DropItem
from scrapy.http import Response

from . import compat

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy import Request, Spider

    from .control import Control

    _Call = Callable[..., Coroutine[Any, Any, Any]]
    _Told = Callable[[BaseException, asyncio.Task[Any] | None], BaseException]

_EXITS = {SystemExit: "sys.exit", KeyboardInterrupt: "KeyboardInterrupt"}
"""What asks for the end of the crawl, and the reason with which it is closed then."""


class Escaped(Exception):
    """User code raised something that is no `Exception`."""


def task_at_work() -> asyncio.Task[Any] | None:
    """The task in which this runs; None outside of a loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def contained(error: BaseException, task: asyncio.Task[Any] | None) -> BaseException:
    """What to raise in the place of *error*: itself, unless it would escape from those who wait for the end.

    Args:
        error: What user code raised.
        task: The task in which that code was begun.
    """
    if isinstance(error, Exception) or _is_from_outside(error, task):
        return error
    told: Exception
    for kind, reason in _EXITS.items():
        if isinstance(error, kind):
            told = CloseSpider(reason)
            break
    else:
        told = Escaped(f"raised {error!r}")
    told.__cause__ = error
    return told


def _is_from_outside(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Was the code that *error* came out of asked to end by somebody else, and must it?"""
    now_in = task_at_work()
    if isinstance(error, GeneratorExit):
        return now_in is not task  # it is thrown away half-way, after its task
    if isinstance(error, asyncio.CancelledError):
        return now_in is None or now_in.cancelling() > 0  # by a stopping engine
    return False


def contain(control: Control) -> None:
    """Contain what users write in the crawl of *control*."""
    containment = _Containment(control)
    compat.wrap_user_code(
        control.engine,
        spider=containment.around_spider,
        scrape=containment.around_call,
        output=containment.around_output,
        item=containment.around_pipelines,
        middleware=containment.around_call,
        download=_around_handler,
    )


class _Containment:
    """The wrappers around the calls through which Scrapy runs what users write."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def around_call(self, call: _Call) -> _Call:
        """Around what runs in the task of its caller."""
        return _around(call, self._told)

    def around_spider(self, call: _Call) -> _Call:
        """Around callbacks and errbacks: a coroutine of theirs becomes a task, and is contained within that."""

        async def contained_spider(result: Any, request: Request) -> Any:
            if isinstance(result, Response):
                owner, name = result.request or request, "callback"
            else:
                owner, name = request, "errback"
            stand_in = self._stand_in(owner, name)
            try:
                return await call(result, request)
            finally:
                if stand_in is not None and getattr(owner, name) is stand_in:  # it was not called
                    setattr(owner, name, stand_in.inner)

        return _around(contained_spider, self._told)

    def around_output(self, call: _Call) -> _Call:
        """Around what takes the output of callbacks and errbacks, after all spider middlewares."""

        async def contained_output(output: Any, *arguments: Any) -> Any:
            if isinstance(output, AsyncIterator):
                output = _contained_async(output, self._told)
            elif isinstance(output, Iterable):
                output = _contained_iterable(output, self._told)
            return await call(output, *arguments)

        return contained_output

    def around_pipelines(self, call: _Call) -> _Call:
        """Around item pipelines; an item that is cut short by the end of the crawl comes again, with its page."""
        return _around(call, self._told_of_item)

    def _stand_in(self, owner: Request, name: str) -> _StandIn | None:
        inner = getattr(owner, name)
        if inner is None and name == "errback":
            return None
        if inspect.isgeneratorfunction(inner):
            return None  # it makes no task, and Scrapy looks at its source
        stand_in = _StandIn(owner, name, self._control.spider, self._told)
        setattr(owner, name, stand_in)
        return stand_in

    def _told(self, error: BaseException, task: asyncio.Task[Any] | None) -> BaseException:
        """`contained`; a page in whose work the end of the crawl is asked for stays pending."""
        told = contained(error, task)
        if told is not error and isinstance(told, CloseSpider):
            lease = self._control.lease_at_work()
            where = "outside of any request's work"
            if lease is not None:
                lease.cut = True
                where = f"in the work of {lease.request}, which stays pending"
            self._control.close_spider(told.reason, f"{error!r} was raised {where}")
        return told

    def _told_of_item(self, error: BaseException, task: asyncio.Task[Any] | None) -> BaseException:
        told = self._told(error, task)
        if told is error or not isinstance(told, CloseSpider):
            return told
        kind = Escaped if self._control.lease_at_work() is None else DropItem
        instead = kind(f"raised {error!r}, which ends the crawl")
        instead.__cause__ = error
        return instead


class _StandIn:
    """Stands in for a request's callback or errback until it is called."""

    def __init__(self, owner: Request, name: str, spider: Spider, told_as: _Told) -> None:
        self.inner = getattr(owner, name)
        self._owner = owner
        self._name = name
        self._call = self.inner or compat.default_callback(spider)
        self._told_as = told_as

    def __call__(self, result: Any, **arguments: Any) -> Any:
        """Put the user's own back, and do what it does."""
        setattr(self._owner, self._name, self.inner)
        output = self._call(result, **arguments)
        return self._contained(output) if inspect.iscoroutine(output) else output

    async def _contained(self, output: Coroutine[Any, Any, Any]) -> Any:
        task = task_at_work()
        try:
            return await output
        except BaseException as error:  # noqa: BLE001 - told as what it is
            raise self._told_as(error, task)  # noqa: B904 - it names its cause


def _around(call: _Call, told_as: _Told) -> _Call:
    async def contained_call(*arguments: Any) -> Any:
        task = task_at_work()
        try:
            return await call(*arguments)
        except BaseException as error:  # noqa: BLE001 - told as what it is
            raise told_as(error, task)  # noqa: B904 - it names its cause

    return contained_call


def _around_handler(call: _Call) -> _Call:
    """A download handler that raises so has got no answer, and may get one when it is tried again."""

    async def contained_download(*arguments: Any) -> Any:
        task = task_at_work()
        try:
            return await call(*arguments)
        except BaseException as error:
            told = contained(error, task)
            if isinstance(told, Escaped):
                raise DownloadFailedError(f"the download handler {told}") from error
            raise

    return contained_download


def _contained_iterable(output: Iterable[Any], told_as: _Told) -> Iterable[Any]:
    iterator = iter(output)
    task = task_at_work()
    while True:
        try:
            value = next(iterator)
        except StopIteration:
            return
        except BaseException as error:  # noqa: BLE001 - told as what it is
            raise told_as(error, task)  # noqa: B904
        yield value


async def _contained_async(output: AsyncIterator[Any], told_as: _Told) -> AsyncIterator[Any]:
    while True:
        task = task_at_work()
        try:
            value = await anext(output)
        except StopAsyncIteration:
            return
        except BaseException as error:  # noqa: BLE001 - told as what it is
            raise told_as(error, task)  # noqa: B904
        yield value
