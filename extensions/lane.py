"""One sink's way from the outbox: its thread, its mark, and how it is doing.

The rule it keeps: rows go out in order, and one batch is tried until it is durable or the sink is
gone for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import json
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .stores.base import StoreError
from .stores.sinks import SinkDown, SinkGone
from .worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .stores.base import Counts, StagedItem
    from .stores.sinks import Sink, Written

logger = logging.getLogger(__name__)

_BATCH_ROWS = 500
_BATCH_BYTES = 8 * 1024 * 1024
_FIRST_BATCH_ROWS = 50
_RETRY_BASE_S = 0.25
_RETRY_CAP_S = 10.0
_SLOW_WRITE_S = 5.0
_STORE_RETRY_S = 1.0
LINGER_S = 0.2  # a busy crawl commits twenty times a second: a few commits share one write
_CLOSE_S = 5.0
_CLOSE_BUSY_S = 0.5


class Outbox(Protocol):
    """What is needed of a job store; see `JobStore` for each."""

    def outbox(self, after: int, limit: int) -> list[tuple[int, StagedItem]]:
        """Committed items with an id over *after*, in order."""

    def forget_items(self, up_to: int) -> None:
        """Drop items that every sink has."""

    def fact(self, name: str) -> str | None:
        """A small named value."""

    def counts(self) -> Counts:
        """Rows by state."""


class SinkStatus(enum.Enum):
    """How a sink is doing."""

    OK = "ok"
    BEHIND = "behind"  # it works, but more waits for it than it should
    DOWN = "down"  # tried again and again
    GONE = "gone"  # not tried any more


@dataclass(frozen=True, slots=True)
class SinkState:
    """What a person wants to know of one sink."""

    name: str
    status: SinkStatus
    since_at: float
    message: str
    waiting: int


class Lane:
    """One sink's way.

    Attributes:
        name: The sink's name.
        fact_name: Under which its mark is kept in the job store.
        waiting: Committed results that it has not got.
        row: The last row that it has got.
        safe_row: The last row whose mark is committed.
    """

    def __init__(
        self,
        *,
        sink: Sink,
        store: Outbox,
        moved_on: Callable[[Lane, Sequence[tuple[int, StagedItem]], Written], None],
        gone: Callable[[str], None],
        low: int,
        give_up_after_s: float,
        linger_s: float = LINGER_S,
    ) -> None:
        """No I/O.

        Args:
            sink: Not opened.
            store: Where the results wait.
            moved_on: Called after each batch that is durable.
            gone: Called once, with the reason.
            low: Over this many waiting results the sink is called behind.
            give_up_after_s: A sink that is down for so long is gone.
            linger_s: How long a few results wait for more.
        """
        self.name = sink.name
        self.fact_name = f"sink:{sink.name}"
        self.task: asyncio.Task[None] | None = None
        self.waiting = 0
        self.row = 0
        self.safe_row = 0
        self._sink = sink
        self._store = store
        self._moved_on = moved_on
        self._tell_gone = gone
        self._low = low
        self._give_up_after_s = give_up_after_s
        self._worker = Worker(f"sink {sink.name}")
        self._mark: str | None = None
        self._recorded_row = 0  # handed to the owner for the next batch
        self._average_bytes = _BATCH_BYTES / _FIRST_BATCH_ROWS
        self._linger_s = linger_s
        self._news = asyncio.Event()
        self._full = asyncio.Event()  # no more is waited for: a batch is full, or the end has come
        self._finishing = False
        self._closed = False
        self._status = SinkStatus.OK
        self._since_at = time.time()
        self._message = ""
        self._busy_since: float | None = None

    @property
    def state(self) -> SinkState:
        """How the sink is doing now."""
        status, since_at, message = self._status, self._since_at, self._message
        if status is SinkStatus.OK:
            if self._busy_since and (busy_s := time.monotonic() - self._busy_since) > _SLOW_WRITE_S:
                status, since_at = SinkStatus.BEHIND, time.time() - busy_s
                message = f"one write has been going on for {busy_s:.0f} s"
            elif self.waiting > self._low:
                status, message = SinkStatus.BEHIND, f"{self.waiting} results wait for it"
        return SinkState(self.name, status, since_at, message, self.waiting)

    def fact(self) -> str:
        """How far it has come, for the job store's next batch."""
        self._recorded_row = self.row
        return json.dumps({"row": self.row, "mark": self._mark})

    async def open(self) -> None:
        """Open the sink where the last committed mark stands."""
        fact = self._store.fact(self.fact_name)
        if fact is not None:
            value = json.loads(fact)
            self.row = self._recorded_row = self.safe_row = value["row"]
            self._mark = value["mark"]
        await self._worker.call(self._sink.open, self._mark)

    def start(self, waiting: int) -> None:
        """Begin to carry; *waiting* results are in the outbox."""
        self.waiting = waiting
        self.task = asyncio.get_running_loop().create_task(self._run(), name=self.fact_name)

    def committed(self, items: int) -> None:
        """So many more wait, and what `fact` gave is durable."""
        self.safe_row = self._recorded_row
        if items:
            self.waiting += items
            self._news.set()
            if self.waiting >= min(_BATCH_ROWS, self._low):
                self._full.set()  # fetching must not pause for the linger

    def finish(self) -> None:
        """End when nothing waits any more."""
        self._finishing = True
        self._news.set()
        self._full.set()

    async def close(self) -> None:
        """Close the sink; one that hangs is left to its thread."""
        within_s = _CLOSE_S if self._busy_since is None else _CLOSE_BUSY_S
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
        if not self._closed:
            self._closed = True
            closing = self._worker.call(self._sink.close)
            await asyncio.wait([closing], timeout=within_s)
            self._worker.stop()

    async def _run(self) -> None:
        try:
            while not (await self._drain_patiently() and self._finishing):
                await self._news.wait()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._full.wait(), self._linger_s)
                self._news.clear()
                if not self._finishing:
                    self._full.clear()
        except SinkGone as error:
            self._gone(str(error))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logger.exception("The writer to %s failed", self.name)
            self._gone(f"{self.name}: {type(error).__name__}: {error}")

    async def _drain_patiently(self) -> bool:
        """Drain; a job store that cannot be read just now is asked again."""
        while True:
            try:
                return await self._drain()
            except StoreError as error:
                logger.warning("Results wait in the job store: %s", error)
                await asyncio.sleep(_STORE_RETRY_S)

    async def _drain(self) -> bool:
        """Write until nothing waits."""
        while True:
            limit = max(1, min(_BATCH_ROWS, int(_BATCH_BYTES / self._average_bytes)))
            rows = self._store.outbox(self.row, limit)
            if not rows:
                self.waiting = 0
                return True
            written = await self._write(rows)
            self.row, self._mark = rows[-1][0], written.mark
            self.waiting = max(0, self.waiting - len(rows))
            size = sum(len(item.payload) for _, item in rows) / len(rows)
            self._average_bytes = max(1.0, size)
            self._moved_on(self, rows, written)

    async def _write(self, rows: Sequence[tuple[int, StagedItem]]) -> Written:
        """Write one batch, as often as it takes."""
        plain = [(name_of(row, item), item.payload) for row, item in rows]
        failures = 0
        down_since = time.monotonic()
        while True:
            self._busy_since = time.monotonic()
            try:
                written = await self._worker.call(self._sink.write, plain)
            except SinkDown as error:
                failures += 1
                self._down(str(error), failures)
                if time.monotonic() - down_since > self._give_up_after_s:
                    raise SinkGone(f"{error} (for {self._give_up_after_s:.0f} s)") from error
            else:
                if failures:
                    down_s = time.monotonic() - down_since
                    logger.info("%s works again after %.1f s", self.name, down_s)
                    self._set(SinkStatus.OK, "")
                return written
            finally:
                self._busy_since = None
            await asyncio.sleep(min(_RETRY_CAP_S, _RETRY_BASE_S * 2 ** min(failures - 1, 16)))

    def _down(self, message: str, failures: int) -> None:
        if failures == 1:
            logger.warning("Results wait, since a sink is down: %s", message)
            self._set(SinkStatus.DOWN, message)
        self._message = message

    def _gone(self, message: str) -> None:
        logger.error("A sink is gone; what it has not got stays in the job: %s", message)
        self._set(SinkStatus.GONE, message)
        self._tell_gone(message)

    def _set(self, status: SinkStatus, message: str) -> None:
        self._status, self._since_at, self._message = status, time.time(), message


def name_of(row: int, item: StagedItem) -> int:
    """What a result is called in a sink: its own key, or its row."""
    return row if item.key is None else item.key
