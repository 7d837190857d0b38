"""The report of a crawl while it runs and at its end, and the copy of it that lies in JOBDIR.

The rule it keeps: a copy is made every half minute in a thread, and one at the end; one that cannot be written is a
warning. What an earlier process of the job has left is gone on from.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import run_in_thread

from . import report
from .policy.ending import fail_on

if TYPE_CHECKING:
    from pathlib import Path

    from .config import Config
    from .control import Control
    from .sampler import Sampler

logger = logging.getLogger("sluice.report")

SAVE_S = 30.0


class KeptReport:
    """Makes the report of one crawl, and keeps it.

    Args:
        sampler: What is told.
        control: The crawl.
        config: Sluice's settings.
        folder: JOBDIR, or None.
    """

    def __init__(
        self, *, sampler: Sampler, control: Control, config: Config, folder: Path | None
    ) -> None:
        self._sampler, self._control, self._config = sampler, control, config
        self._folder = folder
        self._final: dict[str, Any] | None = None
        self._due = time.monotonic()  # the first look is kept, so that a young crawl can be told of
        self._saving: asyncio.Task[None] | None = None

    @property
    def own_folder(self) -> Path | None:
        """JOBDIR if this process has the job open: what lies there is another's if it was refused."""
        return self._folder if self._control.is_open else None

    def recall(self) -> None:
        """Go on from what an earlier process of this job has shown."""
        folder, sampler = self.own_folder, self._sampler
        if folder is None:
            return
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            status = report.load(folder)["status"]
            sampler.bottleneck.restore(status["bottleneck"]["seconds"])
            sampler.earlier_s = float(status["running_s"])
            sampler.started_at = float(status["started_at"])

    def data(self) -> dict[str, Any]:
        """The report now; once the crawl has ended, that of its end."""
        if self._final is not None:
            return self._final
        writer = self._control.writer
        results = [] if writer is None else [state.name for state in writer.states]
        return report.report_data(
            self._sampler,
            job_dir=str(self._folder) if self._folder is not None else None,
            results=", ".join(results),
            fail_on=", ".join(str(condition) for condition in fail_on(self._config.fail_on)),
        )

    def keep_now_and_then(self, now: float) -> None:
        """Begin to save, if it is time."""
        if self.own_folder is not None and now >= self._due and self._saving is None:
            self._due = now + SAVE_S
            self._saving = asyncio.ensure_future(self._save())

    def end(self) -> dict[str, Any]:
        """The crawl has ended: the report is what it is now."""
        self._final = self.data()
        return self._final

    async def close(self) -> None:
        """Save it for the last time."""
        if self._saving is not None:
            await asyncio.wait([self._saving])
        await self._save()

    async def _save(self) -> None:
        folder = self.own_folder
        if folder is not None:
            try:
                await run_in_thread(report.save, self.data(), folder)
            except OSError as error:
                logger.warning("The report could not be kept in %s: %s", folder, error)
        self._saving = None
