"""All that is shown of a crawl, put together: page, metrics, display, log lines, report, verdict.

The rule it keeps: showing is never in the way. A part that cannot start is a warning; a part that
fails is logged; the crawl goes on and ends as it would without.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.job import job_dir

from . import names, progress, report, whereabouts
from .actions import PageActions
from .config import Config
from .control import Control
from .keptreport import KeptReport
from .notify import Notifier
from .policy.bottleneck import Code
from .policy.ending import Exit, fail_on
from .reporttext import text_report
from .sampler import Sampler
from .stocktaking import take_stock
from .version import code_version, versions
from .view import ControlView

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from .display import Display
    from .domainrow import DomainRow
    from .snapshot import Snapshot
    from .statuspage import StatusPage
    from .stores.deadletter_rows import Row

logger = logging.getLogger("sluice.report")
progress_log = logging.getLogger("sluice.progress")

URL_FILE = "status.url"
LINE_S = 60.0

EXIT_DECIDED = object()
"""Signal: the crawl has ended, with an exit code. Unlike `engine_stopped` it is sent too when the
engine never started, because the job could not be opened."""


class Overview:
    """The extension that shows a crawl; find it with `crawler.get_extension(Overview)`.

    Args:
        find_control: Finds the crawl's control room, once the crawl has begun.
        config: Sluice's settings.
        folder: JOBDIR, or None.
        rss_limit_bytes: MEMUSAGE_LIMIT_MB in bytes; 0: none.
        time_limit_s: CLOSESPIDER_TIMEOUT; 0: none.
        live: Whether a live display on the terminal is wanted.
    """

    def __init__(
        self,
        *,
        find_control: Callable[[], Control | None],
        config: Config,
        folder: str | None,
        rss_limit_bytes: int,
        time_limit_s: float,
        live: bool,
    ) -> None:
        self._find_control = find_control
        self._found: Control | None = None
        self._config = config
        self._folder = Path(folder) if folder else None
        self._kept = self._folder is not None or config.frontier != "local"
        self._rss_limit_bytes = rss_limit_bytes
        self._time_limit_s = time_limit_s
        self._live = live
        self._sampler: Sampler | None = None
        self._page: StatusPage | None = None
        self._display: Display | None = None
        self._notifier: Notifier | None = None
        self._line_due = 0.0
        self._report: KeptReport | None = None
        self._shown_live = False
        self._has_told = False
        self.exit_code: int | None = None
        self.exit_rule = ""
        self.data: dict[str, Any] | None = None  # the report, once the crawl has ended

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the settings and listen for the crawl's begin and end."""
        settings = crawler.settings
        config = Config.from_settings(settings)
        if not config.enabled or os.environ.get("SCRAPY_CHECK"):
            raise NotConfigured
        limited = settings.getbool("MEMUSAGE_ENABLED")
        overview = cls(
            find_control=lambda: crawler.get_extension(Control),
            config=config,
            folder=job_dir(settings),
            rss_limit_bytes=settings.getint("MEMUSAGE_LIMIT_MB") * 2**20 if limited else 0,
            time_limit_s=settings.getfloat("CLOSESPIDER_TIMEOUT"),
            live=_wants_display(settings, wanted=config.progress),
        )
        connect = crawler.signals.connect
        connect(overview.spider_opened, signals.spider_opened)
        connect(overview.spider_closed, signals.spider_closed)
        connect(overview.engine_stopped, signals.engine_stopped)
        return overview

    @property
    def _control(self) -> Control:
        if self._found is None:
            raise RuntimeError("the crawl has not begun")
        return self._found

    @property
    def sampler(self) -> Sampler | None:
        """The sampler, while and after the crawl runs."""
        return self._sampler

    @property
    def url(self) -> str | None:
        """Address of the status page, where there is one."""
        return self._page.url if self._page is not None else None

    # -- begin -------------------------------------------------------------------------------------

    async def spider_opened(self) -> None:
        """Begin to show."""
        control = self._found = self._find_control()
        if control is None:
            return
        logger.info("%s", versions())
        if (code := code_version()) is not None:
            control.stats.set_value(names.STAT_CODE_VERSION, code)
        job = self._folder.name if self._folder is not None else ""
        sampler = self._sampler = Sampler(
            view=ControlView(
                control=control,
                folder=str(self._folder) if self._folder is not None else None,
            ),
            book=control.book,
            spider=control.spider.name,
            job=job,
            kept=self._kept,
            rss_limit_bytes=self._rss_limit_bytes,
            time_limit_s=self._time_limit_s,
            moved=self._moved,
            bottleneck_changed=self._bottleneck_changed,
        )
        kept = self._report = KeptReport(
            sampler=sampler, control=control, config=self._config, folder=self._folder
        )
        kept.recall()
        sampler.listeners.append(self._every_second)
        self._line_due = time.monotonic() + LINE_S
        self._notifier = Notifier.from_environment()
        if self._notifier is not None:
            sampler.listeners.append(self._notifier.show)
        if self._config.status_port is not None:
            await self._open_page(sampler, kept, self._config.status_port)
        sampler.start()
        if self._live:
            self._shown_live = True
            # Only who looks at a terminal pays for what draws on it.
            from .display import Display  # noqa: PLC0415

            self._display = Display(sampler=sampler)
            self._display.start()

    async def _open_page(self, sampler: Sampler, kept: KeptReport, port: int) -> None:
        # A crawl without the page starts without a web server and a metrics library.
        from .metrics import CrawlMetrics  # noqa: PLC0415
        from .statuspage import StatusPage  # noqa: PLC0415

        self._page = StatusPage(
            sampler=sampler,
            host=self._config.status_host,
            port=port,
            token=self._config.status_token,
            actions=PageActions(self._control),
            where=self._where if self._folder is not None else None,
            letters=self._letters if self._config.dead_letters is not None else None,
            metrics=CrawlMetrics(sampler=sampler).scrape,
            text=lambda: text_report(kept.data()),
        )
        url = await self._page.start()
        if url is None:
            return
        logger.info("Status page: %s", url)
        self._control.stats.set_value(names.STAT_STATUS_URL, url)
        folder = kept.own_folder
        if folder is not None:
            with contextlib.suppress(OSError):
                (folder / URL_FILE).write_text(url + "\n", encoding="ascii")

    async def _where(self, url: str) -> str:
        """Where *url* is, in words."""
        folder = self._folder
        if folder is None:
            return "unknown: this crawl has no JOBDIR"
        return await run_in_thread(whereabouts.answer, folder, url, self._config.dead_letters)

    async def _letters(self, domain: str, limit: int) -> list[Row]:
        """The newest dead letters of *domain*."""
        post = self._control.post
        return [] if post is None else await post.letters(domain=domain, limit=limit)

    # -- while it runs -----------------------------------------------------------------------------

    def _moved(self, row: DomainRow, before: str, now_at: float) -> None:
        self._control.tell.moved(self._control.book, row, before, now_at)

    def _bottleneck_changed(self, snapshot: Snapshot) -> None:
        if snapshot.finish_reason is None and snapshot.code != Code.STARTING:
            line = progress.line(snapshot)
            self._control.tell.bottleneck(self._control.book, snapshot, line)

    def _every_second(self, snapshot: Snapshot) -> None:
        now = time.monotonic()
        self._control.tell.gate(snapshot)
        if now >= self._line_due:
            self._line_due = now + LINE_S
            progress_log.info("%s", progress.line(snapshot), extra={"sluice": snapshot.figures()})
        if self._report is not None:
            self._report.keep_now_and_then(now)

    # -- end ---------------------------------------------------------------------------------------

    async def spider_closed(self, reason: str) -> None:
        """Take stock."""
        sampler, kept = self._sampler, self._report
        if sampler is None or kept is None:
            return
        sampler.stop()
        if self._notifier is not None:
            self._notifier.stopping()
        if self._display is not None:
            self._display.stop()
        self.exit_code, self.exit_rule = take_stock(
            sampler,
            self._control,
            reason,
            kept=self._kept,
            conditions=fail_on(self._config.fail_on),
        )
        self.data = kept.end()
        self._control.crawler.signals.send_catch_log(EXIT_DECIDED, code=self.exit_code)
        await kept.close()
        if self._page is not None:
            await self._page.stop()
            if (folder := kept.own_folder) is not None:
                with contextlib.suppress(OSError):
                    (folder / URL_FILE).unlink()

    def engine_stopped(self) -> None:
        """The verdict is the last line of the log.

        A command calls it too: an engine that never started, because the job could not be opened, does not stop.
        """
        if self.data is None or self._has_told:
            return
        self._has_told = True
        if self._shown_live:
            sys.stderr.write(text_report(self.data))
        verdict, code = report.verdict(self.data), self.exit_code
        level = logging.INFO if code == Exit.COMPLETE else logging.WARNING
        logger.log(level, "%s Exit code %s: %s", verdict, code, self.exit_rule)


def follow_exit(crawler: Crawler, take: Callable[[int], None]) -> None:
    """Have *take* called with the exit code of *crawler* when it has ended, if it got that far."""

    def decided(code: int) -> None:
        take(code)

    crawler.signals.connect(decided, EXIT_DECIDED, weak=False)


def _wants_display(settings: BaseSettings, *, wanted: bool) -> bool:
    log_file = settings.get("LOG_FILE")
    return progress.wants_display(sys.stderr, os.environ, wanted=wanted, log_file=log_file)
