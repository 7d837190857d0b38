"""Carries committed results from the job store to the sinks, in order; says when to wait.

The rule it keeps: the store is asked on the event loop, only a sink's own calls run in its thread,
and a result is forgotten by the store only after every sink's mark behind it is committed there. So
a crash at any point repeats rows to a sink, which changes nothing there, and never skips one.

Each sink has a lane of its own (thread, mark, state): one that hangs does not hold back another.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .lane import LINGER_S, Lane, SinkState, SinkStatus, name_of
from .stores.base import DeadLetter, StoreError
from .stores.sinks import JsonLinesSink
from .worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .lane import Outbox
    from .stores.base import StagedItem
    from .stores.sinks import PoisonRow, Sink, Written

__all__ = ["ResultsWriter", "SinkState", "SinkStatus", "WriterHooks"]

_HURRY_S = 0.5


@dataclass(frozen=True, slots=True)
class WriterHooks:
    """What the writer asks of its owner. All are called on the event loop.

    Attributes:
        record: Put a named fact into the next batch; `ResultsWriter.committed` follows that commit.
        dead: Put a dead letter (a poison row) into the same batch.
        gone: A sink is gone for good (its message): close the spider with the reason ``sink_gone``.
        room: `too_deep` has become false: hand out again.
    """

    record: Callable[[str, str], None]
    dead: Callable[[DeadLetter], None]
    gone: Callable[[str], None]
    room: Callable[[], None]


class ResultsWriter:
    """Results on their way from the outbox to the sinks."""

    def __init__(
        self,
        *,
        store: Outbox,
        sinks: Sequence[Sink],
        hooks: WriterHooks,
        job: str,
        spider: str,
        bound: int = 5000,
        give_up_after_s: float = 3600.0,
        linger_s: float = LINGER_S,
    ) -> None:
        """No I/O.

        Args:
            store: Opened by the time of `open`.
            sinks: Not opened. May be empty: then results are forgotten as they come.
            hooks: What the owner does for the writer.
            job: Id of the job.
            spider: Name of the spider.
            bound: Results that may wait, those of requests in flight included.
            give_up_after_s: A sink that is down for so long is gone.
            linger_s: How long a few results wait for more; 0 where a crash would lose them.
        """
        self._store = store
        self._hooks = hooks
        self._job = job
        self._spider = spider
        self._bound = bound
        self._deep = False
        self._items_a_request = 1.0
        self._closing = False
        self._in_a_hurry = asyncio.Event()
        self._forgotten = 0
        self._lanes = [
            Lane(
                sink=sink,
                store=store,
                moved_on=self._moved_on,
                gone=hooks.gone,
                low=bound // 2,
                give_up_after_s=give_up_after_s,
                linger_s=linger_s,
            )
            for sink in sinks
        ]

    async def open(self) -> None:
        """Open every sink and start carrying what a run before has left.

        Raises:
            SinkDown, SinkGone: one cannot be used; the others are closed again.
        """
        try:
            for lane in self._lanes:
                await lane.open()
        except BaseException:
            await self._close_lanes()
            raise
        self._forget()
        waiting = self._store.counts().outbox
        for lane in self._lanes:
            lane.start(waiting)
        self._look()

    @property
    def waiting(self) -> int:
        """Committed results that are not yet in every sink."""
        return max((lane.waiting for lane in self._lanes), default=0)

    @property
    def states(self) -> list[SinkState]:
        """One for each sink, in the order of the setting."""
        return [lane.state for lane in self._lanes]

    @property
    def too_deep(self) -> bool:
        """Has the outbox reached its bound? Stays true until half of it has drained."""
        return self._deep

    def room_for(self, in_flight: int, staged: int = 0) -> bool:
        """May one more request go out, so that its results still fit under the bound?

        Args:
            in_flight: Requests handed out and not acknowledged.
            staged: Results of theirs that are not committed yet.
        """
        if self._deep:
            return False
        waiting = self.waiting
        if in_flight == 0 and waiting + staged <= self._bound // 2:
            return True  # one page may hold more than the bound: it goes alone
        page = self._items_a_request
        return waiting + max(staged + page, (in_flight + 1) * page) <= self._bound

    def note_page(self, items: int) -> None:
        """A request has staged so many results by now: others may hold as many."""
        self._items_a_request = max(self._items_a_request, items)

    def committed(self, items: int = 0, requests: int = 0) -> None:
        """A batch with so many new results, of so many ended requests, has been committed.

        To be called after every commit that holds results or what `WriterHooks.record` gave.
        """
        for lane in self._lanes:
            lane.committed(items)
        if requests > 0 and items:
            ratio = items / requests
            faded = self._items_a_request * 0.98 + ratio * 0.02
            self._items_a_request = max(1.0, ratio, faded)
        self._forget()
        self._look()

    async def close(self, within_s: float = 10.0) -> int:
        """Write what waits, within a bound, and close the sinks.

        The marks of the last rows are handed to `WriterHooks.record`: commit once more after this,
        then call `committed`.

        Returns:
            How many results are left for the next start.
        """
        self._closing = True
        for lane in self._lanes:
            lane.finish()
        await self._wait_for_lanes(within_s)
        await self._close_lanes()
        return self.waiting

    def hurry(self) -> None:
        """Somebody does not want to wait: `close` gives the sinks half a second more."""
        self._in_a_hurry.set()

    async def _wait_for_lanes(self, within_s: float) -> None:
        tasks = {lane.task for lane in self._lanes if lane.task is not None}
        if not tasks:
            return
        drained = asyncio.ensure_future(asyncio.wait(tasks))
        hurried = asyncio.ensure_future(self._in_a_hurry.wait())
        both = {drained, hurried}
        await asyncio.wait(both, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if hurried.done():
            await asyncio.wait({drained}, timeout=_HURRY_S)
        for future in both:
            future.cancel()
        await asyncio.wait(both)

    async def save_left(self, path: Path) -> int:
        """Put what a sink has not got into a JSON Lines file: for a job whose store ends with it.

        To be called after `close`; nothing is written if nothing is left.

        Returns:
            How many results the file has got.

        Raises:
            SinkDown, SinkGone: the file cannot be written either.
        """
        row = min((lane.row for lane in self._lanes), default=0)
        sink = JsonLinesSink(path=path, job=self._job)
        worker = Worker("results left")
        count = 0
        try:
            while rows := self._store.outbox(row, 500):
                if not count:
                    await worker.call(sink.open, None)
                await worker.call(sink.write, [(id_, item.payload) for id_, item in rows])
                row, count = rows[-1][0], count + len(rows)
        finally:
            await worker.call(sink.close)
            worker.stop()
        return count

    def _moved_on(
        self, lane: Lane, rows: Sequence[tuple[int, StagedItem]], written: Written
    ) -> None:
        """A lane has written *rows*: its mark and its poison rows go into one batch."""
        texts = {name_of(row, item): item for row, item in rows}
        for poison in written.poison:
            self._hooks.dead(self._letter(lane, poison, texts[poison.row]))
        self._hooks.record(lane.fact_name, lane.fact())
        self._look()
        if not self._deep and not self._closing:
            self._hooks.room()

    def _look(self) -> None:
        """Keep the watermarks."""
        waiting = self.waiting
        self._deep = waiting > self._bound // 2 if self._deep else waiting >= self._bound

    def _forget(self) -> None:
        if not self._lanes:
            self._store.forget_items(2**63 - 1)
            return
        up_to = min(lane.safe_row for lane in self._lanes)
        if up_to > self._forgotten:
            # A store that is full or busy keeps them for now; they are asked for no more.
            with contextlib.suppress(StoreError):
                self._store.forget_items(up_to)
                self._forgotten = up_to

    def _letter(self, lane: Lane, poison: PoisonRow, item: StagedItem) -> DeadLetter:
        now_at = time.time()
        url = _url_of(item.payload)
        payload = item.payload.encode("utf-8", "surrogatepass")
        return DeadLetter(
            uid=f"{self._job}:{lane.fact_name}:{poison.row}",
            kind="item",
            key=hashlib.sha1(payload, usedforsecurity=False).hexdigest(),
            spider=self._spider,
            url=url,
            domain=url.partition("://")[2].partition("/")[0].rpartition("@")[2],
            reason="refused by sink",
            detail=f"{lane.name}: {poison.reason}",
            attempts=1,
            status=None,
            exception=None,
            first_at=now_at,
            last_at=now_at,
            payload=payload,
        )

    async def _close_lanes(self) -> None:
        await asyncio.gather(*(lane.close() for lane in self._lanes))


def _url_of(payload: str) -> str:
    value = json.loads(payload)
    url = value.get("url") if isinstance(value, dict) else None
    return url if isinstance(url, str) else ""
