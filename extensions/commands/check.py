"""`scrapy check` that cannot pass by not having checked.

Scrapy's own exits with 0 when no contract was found and when a request was dropped on its way. Here
every method with contracts must have been answered, and a spider that could not start is named.
Nothing is stored: no job, no results, no cache.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import TestCase, TestResult, TextTestRunner

from scrapy.commands.check import Command as _CheckCommand
from scrapy.commands.check import TextTestResult
from scrapy.contracts import ContractsManager
from scrapy.exceptions import UsageError
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object, set_environ
from twisted.internet.defer import Deferred

from ..contracts import add_contracts, prepare_check

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable

    from scrapy import Request, Spider
    from twisted.python.failure import Failure


class Command(_CheckCommand):
    """Check spider contracts; 1 if one fails, could not be checked, or none was found."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Add Sluice's contracts, and settings under which a check leaves nothing behind."""
        super().process_options(args, opts)
        assert self.settings is not None
        self._job = self.settings.get("JOBDIR")
        add_contracts(self.settings)
        prepare_check(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Check the spiders named in *args*, or all."""
        assert self.crawler_process is not None
        loader = self.crawler_process.spider_loader
        if unknown := [name for name in args if name not in loader.list()]:
            raise UsageError(f"no spider {unknown[0]!r}; scrapy list names them")
        if opts.list:
            with set_environ(SCRAPY_CHECK="true"):
                super().run(args, opts)
            return
        runner = TextTestRunner(verbosity=2 if opts.verbose else 1)
        result = TextTestResult(runner.stream, runner.descriptions, runner.verbosity)
        with set_environ(SCRAPY_CHECK="true"):
            tally = _Tally(self._contract_classes(), result)
            for name in args or loader.list():
                self._check(loader.load(name), tally, opts.spargs)
            began = time.monotonic()
            self.crawler_process.start()
        if fault := _job_fault(self._job):
            tally.report(f"[check] JOBDIR={self._job}", fault)
        tally.close()
        result.printErrors()
        result.printSummary(began, time.monotonic())
        self.exitcode = int(not result.wasSuccessful() or self.crawler_process.bootstrap_failed)

    def _contract_classes(self) -> list[Any]:
        assert self.settings is not None
        classes = self.settings.get_component_priority_dict_with_base("SPIDER_CONTRACTS")
        return [load_object(c) for c in build_component_list(classes)]

    def _check(self, spidercls: type[Spider], tally: _Tally, arguments: dict[str, str]) -> None:
        if not tally.expect(spidercls):
            return

        async def start(self: Spider) -> AsyncIterator[Any]:
            for request in tally.from_spider(self, tally.result):
                if request is not None:
                    yield request

        spidercls.start = start  # type: ignore[method-assign]
        assert self.crawler_process is not None
        _on_error(
            self.crawler_process.crawl(spidercls, **arguments),
            lambda error: tally.could_not_start(spidercls.name, error),
        )


class _Tally(ContractsManager):
    """Knows which methods carry contracts, and which of them were really answered."""

    def __init__(self, contracts: list[Any], result: TestResult) -> None:
        super().__init__(contracts)
        self.result = result
        self._open: dict[str, set[str]] = defaultdict(set)
        self._expected = 0

    def expect(self, spidercls: type[Spider]) -> int:
        """Remember the methods of *spidercls* that carry contracts; how many there are."""
        methods = self.tested_methods_from_spidercls(spidercls)
        self._open[spidercls.name].update(methods)
        self._expected += len(methods)
        return len(methods)

    def from_method(self, method: Callable[..., Any], results: TestResult) -> Request | None:
        """The sample request of *method*, which crosses the method off when it is answered."""
        spider, name = method.__self__.name, method.__name__  # type: ignore[attr-defined]
        try:
            request = super().from_method(method, results)
        except Exception:
            self._open[spider].discard(name)  # the caller reports it
            raise
        if request is not None:
            self._note_answer(request, spider, name)
        return request

    def _note_answer(self, request: Request, spider: str, name: str) -> None:
        callback, errback = request.callback, request.errback

        def answered(response: Any, **kwargs: Any) -> Any:
            self._open[spider].discard(name)
            return callback(response, **kwargs)  # type: ignore[misc]

        def failed(failure: Failure) -> Any:
            self._open[spider].discard(name)
            response = getattr(failure.value, "response", None)
            if response is not None and failure.value is not None:
                failure.value.add_note(repr(response))
            return errback(failure)  # type: ignore[misc]

        request.callback, request.errback = answered, failed

    def could_not_start(self, spider: str, error: BaseException) -> None:
        """Report that *spider* was not checked at all."""
        self._open.pop(spider, None)
        self.report(f"[{spider}] could not start", error)

    def close(self) -> None:
        """Report what was never answered, or that there was nothing to check."""
        for spider, methods in self._open.items():
            for method in sorted(methods):
                why = "was not checked: it has no @url, or its request was dropped on the way"
                self.report(f"[{spider}] {method}", AssertionError(f"{method} {why}"))
        if not self._expected:
            self.report("[check] contracts", AssertionError("nothing to check: no contract found"))

    def report(self, title: str, error: BaseException) -> None:
        """Count *error* under the name *title*."""
        info: Any = (type(error), error, error.__traceback__)
        self.result.addError(_NamedCase(title), info)


class _NamedCase(TestCase):
    """A result without a test of its own."""

    def __init__(self, title: str) -> None:
        super().__init__("run")
        self._title = title

    def __str__(self) -> str:
        return self._title


def _job_fault(job: str | None) -> OSError | None:
    """Why a crawl could not keep its job in *job*; nothing is made to find out."""
    if not job:
        return None
    folder = Path(job).absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    return None


def _on_error(crawl: Awaitable[None], tell: Callable[[BaseException], None]) -> None:
    def ended(future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            tell(error)

    def failed(failure: Failure) -> None:
        if failure.value is not None:
            tell(failure.value)

    if isinstance(crawl, asyncio.Future):
        crawl.add_done_callback(ended)
    elif isinstance(crawl, Deferred):
        crawl.addErrback(failed)
