"""Carries dead letters from the job store to their place, a file or Redis, and brings back what is replayed.

The rule it keeps: a letter is forgotten by the job only after the place has it for good, and a row
that is brought back is named in the same commit as the request made of it. So a crash at any point
repeats a letter, which changes nothing, and a row is there or in the job, never in neither.

A place that fails stops nothing: letters wait in the job store, and it is tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from .stores.base import StoreError
from .stores.deadletter_db import DeadLetterError
from .stores.deadletter_filters import LetterFilter
from .worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .stores.base import DeadLetter
    from .stores.deadletter_rows import Row
    from .stores.deadletter_store import DeadLetters

logger = logging.getLogger(__name__)

CLAIM_FACT = "dead_letter_claim"
"""Under which the number of the last committed claim is kept in the job store."""

_BATCH = 200
POLL_S = 1.0
"""How often it is looked for what a person has requested."""
WATCHED_POLL_S = 60.0
"""The same where somebody else looks (`look`): only to say that this run is alive."""
_RETRY_S = 5.0
_CLOSE_S = 5.0


class DeadOutbox(Protocol):
    """What is needed of a job store; see `JobStore` for each."""

    def dead_outbox(self, limit: int) -> list[tuple[int, DeadLetter]]:
        """Committed letters that are not yet in their place."""

    def forget_dead(self, ids: Iterable[int]) -> None:
        """Drop letters that it has."""

    def fact(self, name: str) -> str | None:
        """A small named value."""


@dataclass(frozen=True, slots=True)
class PostHooks:
    """What the post asks of its owner, on the event loop.

    Attributes:
        record: Put a named fact into the next batch.
        revive: Make requests of these rows, in the same batch: attempts reset, not filtered as
            duplicates, each with its row's id as the letter's `dead_letter_id`.
        wants: May rows be brought back now? Not while the crawl ends.
    """

    record: Callable[[str, str], None]
    revive: Callable[[Sequence[Row]], None]
    wants: Callable[[], bool] = lambda: True


class DeadLetterPost:
    """Letters out, replays in; one thread for the place."""

    def __init__(
        self,
        *,
        place: DeadLetters,
        store: DeadOutbox,
        hooks: PostHooks,
        job: str,
        spider: str,
        arguments: Mapping[str, Any],
        folder: str | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        """No I/O. *folder* is that of a job that can be resumed."""
        self._place = place
        self._poll_s = poll_s
        self._spider = spider
        self._store = store
        self._hooks = hooks
        self._open_run = partial(
            place.open_run, job=job, spider=spider, arguments=arguments, folder=folder
        )
        self._worker = Worker("dead letters")
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._more = False
        self._failing = False

    async def open(self) -> None:
        """Open the place and bring back what is requested now.

        Raises:
            DeadLetterError: it cannot be used.
        """
        fact = self._store.fact(CLAIM_FACT)
        last_claim = 0 if fact is None else int(json.loads(fact))
        await self._worker.call(self._open, last_claim)
        await self._bring_back()
        self._task = asyncio.get_running_loop().create_task(self._work(), name="dead letters")
        self._news.set()

    @property
    def has_more(self) -> bool:
        """Is more requested than was brought back so far? Then the crawl is not at its end."""
        return self._more

    async def letters(self, *, domain: str, limit: int) -> list[Row]:
        """This spider's letters of *domain*, the newest first.

        Raises:
            DeadLetterError: the place cannot be used.
        """

        def read() -> list[Row]:
            rows = self._place.rows(LetterFilter(spider=self._spider, domain=domain))
            return list(islice((row for row in rows if row.domain == domain), limit))

        return await self._worker.call(read)

    async def request(self, *, domain: str | None = None, ids: tuple[int, ...] = ()) -> int:
        """Have this spider's letters of *domain*, or those with *ids*, brought back; how many.

        Raises:
            DeadLetterError: it cannot be used.
        """
        where = LetterFilter(spider=self._spider, domain=domain, ids=ids)
        requested = await self._worker.call(self._place.request_replay, where)
        self._news.set()
        return sum(requested.groups.values())

    def look(self) -> None:
        """Something was requested."""
        self._news.set()

    def committed(self) -> None:
        """A batch that holds letters was committed."""
        self._news.set()

    async def close(self) -> int:
        """Carry what is left, within a bound, and close; how many letters it has not got."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            await asyncio.wait([asyncio.ensure_future(self._carry_last())], timeout=_CLOSE_S)
        await asyncio.wait([self._worker.call(self._place.close)], timeout=_CLOSE_S)
        self._worker.stop()
        return len(self._store.dead_outbox(_BATCH))

    def _open(self, last_claim: int) -> None:
        self._place.open()
        self._open_run(last_claim=last_claim)

    async def _work(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`: in Python 3.11 it swallows a cancellation that meets the news.
                async with asyncio.timeout(self._poll_s):
                    await self._news.wait()
            self._news.clear()
            try:
                await self._carry()
                await self._bring_back()
            except (DeadLetterError, StoreError) as error:
                await self._wait_after(error)
            except Exception as error:
                logger.exception("Carrying dead letters failed; it is tried again")
                await self._wait_after(error)
            else:
                self._failing = False

    async def _wait_after(self, error: Exception) -> None:
        if not self._failing:
            logger.warning("Dead letters wait in the job store: %s", error)
        self._failing = True
        await asyncio.sleep(_RETRY_S)

    async def _carry(self) -> None:
        while letters := self._store.dead_outbox(_BATCH):
            await self._worker.call(self._place.put_many, [letter for _, letter in letters])
            self._store.forget_dead([id_ for id_, _ in letters])

    async def _carry_last(self) -> None:
        try:
            await self._carry()
        except (DeadLetterError, StoreError) as error:
            logger.error("Dead letters stay in the job store: %s", error)  # noqa: TRY400

    async def _bring_back(self) -> None:
        if not self._hooks.wants():
            self._more = False
            return
        claim = await self._worker.call(self._place.claim, _BATCH)
        self._more = len(claim.rows) == _BATCH
        if claim.rows:
            self._hooks.record(CLAIM_FACT, json.dumps(claim.number))
            self._hooks.revive(claim.rows)
        if self._more:
            self._news.set()
