"""The only back door to what Scrapy does not promise. Each function names what it relies on and has a public fallback.

The rule it keeps: private API may buy speed, never correctness. tests/test_compat.py fails when Scrapy moves.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from scrapy.utils.reactor import is_reactor_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from scrapy import Request, Spider
    from scrapy.core.downloader import Downloader
    from scrapy.core.engine import ExecutionEngine

    _Call = Callable[..., Coroutine[Any, Any, Any]]
    _Wrapper = Callable[[_Call], _Call]


def wake(engine: ExecutionEngine, sentinel: Request) -> None:
    """Have the engine ask the scheduler soon.

    Relies on: `engine._slot.nextcall.schedule()`. Fallback: `engine.crawl(sentinel)`, which does the same, and sends
    `request_scheduled` for the sentinel.
    """
    if not engine.running or engine.scraper.slot is None:
        return  # it is starting or stopping, and looks by itself
    nextcall = getattr(getattr(engine, "_slot", None), "nextcall", None)
    if nextcall is not None:
        nextcall.schedule()
    elif engine.spider is not None:
        engine.crawl(sentinel)


def is_scraping(engine: ExecutionEngine, request: Request) -> bool:
    """Is *request* in the hands of callbacks or pipelines, or waiting for them?

    Relies on: `engine.scraper.slot.active` and `.queue` (public names of undocumented objects). Without them the answer is
    True, so that nothing is acknowledged early; the spider's closing then settles it.
    """
    slot = engine.scraper.slot
    if slot is None:
        return False
    active: Any = getattr(slot, "active", None)
    if active is None:
        return True
    if request in active:
        return True
    queue: Iterable[Any] = getattr(slot, "queue", ())
    return any(waiting[1] is request for waiting in queue)


def scraper_is_behind(engine: ExecutionEngine) -> bool:
    """Do answers wait for callbacks? Relies on `engine.scraper.slot.needs_backout()`; without it the answer is no."""
    slot = engine.scraper.slot
    return bool(slot is not None and slot.needs_backout())


def waiting_answers_bytes(engine: ExecutionEngine) -> int:
    """Size of the answers that wait for callbacks or are with them. Relies on `engine.scraper.slot.active_size`, else 0."""
    return int(getattr(engine.scraper.slot, "active_size", 0))


def is_closing(engine: ExecutionEngine) -> bool:
    """Is the spider being closed? Relies on `engine._slot.closing`; without it the answer is no until all is closed."""
    return getattr(getattr(engine, "_slot", None), "closing", None) is not None


def stop_waiting(engine: ExecutionEngine) -> None:
    """Have a closing engine wait no longer for requests in flight and running callbacks.

    Relies on: `engine._slot.closing`, `engine.scraper.slot.closing`, the Deferreds that closing waits for. Without them the
    closing waits for the last timeout: later, never wrong.
    """
    for slot in (getattr(engine, "_slot", None), engine.scraper.slot):
        closing = getattr(slot, "closing", None)
        if closing is not None and not closing.called:
            closing.callback(engine.spider)


def add_shutdown_trigger(call: Callable[[], object]) -> Any:
    """Have *call* called when the reactor stops, which waits if that returns a Deferred.

    Returns:
        What `remove_shutdown_trigger` takes; None where Scrapy runs without a reactor, in a program's own event loop.
    """
    if not is_reactor_installed():
        return None
    from twisted.internet import reactor  # noqa: PLC0415 - a reactor must be chosen before this import

    add: Any = getattr(reactor, "addSystemEventTrigger")  # noqa: B009 - zope.interface hides it from types
    return add("before", "shutdown", call)


def remove_shutdown_trigger(trigger: Any) -> None:
    """Undo `add_shutdown_trigger`."""
    if trigger is not None:
        from twisted.internet import reactor  # noqa: PLC0415

        with contextlib.suppress(ValueError, KeyError, DeprecationWarning):
            remove: Any = getattr(reactor, "removeSystemEventTrigger")  # noqa: B009 - zope.interface hides it from types
            remove(trigger)


def seeds_are_read(engine: ExecutionEngine) -> bool:
    """Has `Spider.start()` ended? Relies on `engine._start`; without it the answer is no, which only delays a report."""
    return getattr(engine, "_start", engine) is None


def set_slot(downloader: Downloader, key: str, *, concurrency: int) -> None:
    """Say how the downloader's slot for *key* is made: no delay of its own, since the scheduler already waited it out.

    Relies on: `downloader.per_slot_settings`, read when a slot is made. Without it the slot waits DOWNLOAD_DELAY once more:
    slower, never wrong. A slot that the user named in DOWNLOAD_SLOTS keeps its place, less the delay.
    """
    with contextlib.suppress(AttributeError):
        known = downloader.per_slot_settings.get(key, {})
        downloader.per_slot_settings[key] = {
            **known,
            "concurrency": known.get("concurrency", concurrency),
            "delay": 0.0,
            "jitter": 0.0,
        }


def wrap_user_code(
    engine: ExecutionEngine,
    *,
    spider: _Wrapper,
    scrape: _Wrapper,
    output: _Wrapper,
    item: _Wrapper,
    middleware: _Wrapper,
    download: _Wrapper,
) -> None:
    """Put wrappers around the calls through which Scrapy runs what users write. What is missing is left as it is.

    Args:
        engine: Whose calls.
        spider: Around callbacks and errbacks: `scraper.call_spider_async`.
        scrape: Around spider middlewares and the callbacks within: `scraper.spidermw.scrape_response_async`.
        output: Around what takes their output: `scraper.handle_spider_output_async`.
        item: Around item pipelines: `scraper.itemproc.process_item_async`.
        middleware: Around downloader middlewares: `downloader.middleware.download_async`.
        download: Around download handlers: `downloader.handlers.download_request_async`.
    """
    scraper, downloader = engine.scraper, engine.downloader
    for owner, name, wrap in (
        (scraper, "call_spider_async", spider),
        (getattr(scraper, "spidermw", None), "scrape_response_async", scrape),
        (scraper, "handle_spider_output_async", output),
        (getattr(scraper, "itemproc", None), "process_item_async", item),
        (getattr(downloader, "middleware", None), "download_async", middleware),
        (getattr(downloader, "handlers", None), "download_request_async", download),
    ):
        wrapped = getattr(owner, name, None)
        if wrapped is not None:
            setattr(owner, name, wrap(wrapped))


def default_callback(spider: Spider) -> Callable[..., Any]:
    """What takes the answer of a request without a callback: `spider._parse`, else `spider.parse`."""
    callback: Callable[..., Any] = getattr(spider, "_parse", spider.parse)
    return callback


def forget_slot(downloader: Downloader, key: str) -> None:
    """Undo `set_slot`, so that settings of drained domains do not pile up."""
    with contextlib.suppress(AttributeError):
        downloader.per_slot_settings.pop(key, None)
