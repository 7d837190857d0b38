"""The end of a crawl, step by step: last commit, sinks, dead letters, what was learned, the store's file.

The rule it keeps: a step that fails is told, and the next ones are taken all the same; a crawl whose last results did not
get into the store does not end as complete.
"""

from __future__ import annotations

import contextlib
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import run_in_thread

from . import names
from .stores.base import StoreError
from .stores.sinks import SinkError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from .control import Control
    from .ledger import Ledger
    from .writer import ResultsWriter

logger = logging.getLogger(__name__)

CLOSE_WRITER_S = 30.0
"""How long the end of a crawl waits for its sinks; what is left goes with the next start of a job with JOBDIR."""


class Closing:
    """The end of one crawl."""

    def __init__(self, *, control: Control, ledger: Ledger) -> None:
        self._control = control
        self._ledger = ledger
        self._failed = False  # the store did not take the last of it

    async def close(self, last_flush: Callable[[], Awaitable[None]]) -> None:
        """Take all steps; *last_flush* settles and commits what has ended."""
        control = self._control
        with self._told():
            await last_flush()
            control.keep_learned()
        with self._told():
            control.given_back = self._ledger.give_back()
            left = control.pending + control.given_back
            control.stats.set_value(names.STAT_PENDING_LEFT, left)
            self._ledger.commit()
        with self._told():
            await self._close_writer()
        with self._told():
            if control.post is not None:
                await control.post.close()
        if self._failed:  # the crawl must not end as complete
            control.stats.inc_value(names.STAT_RESULTS_LEFT, self._ledger.uncommitted_items)
        await run_in_thread(control.learned.save, control.now_at())
        with self._told():
            await run_in_thread(self._ledger.store.checkpoint)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """One step of the end. If it fails, that is said, once, and the next ones are taken all the same."""
        try:
            yield
        except StoreError as error:
            if not self._failed:
                logger.error("The last commit failed: %s", error)  # noqa: TRY400 - the message says it
            self._failed = True
        except Exception:
            logger.exception("The last commit failed; what is committed is kept")
            self._failed = True

    async def _close_writer(self) -> None:
        writer = self._control.writer
        if writer is None:
            return
        left = await writer.close(0.0 if self._failed else CLOSE_WRITER_S)
        self._control.stats.set_value(names.STAT_RESULTS_LEFT, left)
        self._ledger.commit()
        writer.committed()
        if left and not self._ledger.durable:
            await self._save_left(writer)

    async def _save_left(self, writer: ResultsWriter) -> None:
        """Without JOBDIR the job's store goes with the process: results that no sink took must not."""
        name = self._control.spider.name.replace("/", "_")
        path = Path(f"results/{name}.left-{time.strftime('%Y%m%d-%H%M%S')}.jsonl")
        try:
            count = await writer.save_left(path)
        except SinkError as error:
            logger.error("Results are lost, since there is no JOBDIR: %s", error)  # noqa: TRY400
            return
        logger.warning("%d results that did not reach their sink are in %s", count, path)
