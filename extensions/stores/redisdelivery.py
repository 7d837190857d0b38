"""Results and dead letters on their way from a worker of a shared job to their places.

The rule it keeps: they wait in a local file that may be lost at any time, since a request's end goes to Redis only after they
have arrived. A result's key is the same whichever worker made it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from .base import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .base import DeadLetter, StagedItem
    from .sqlite import SqliteJobStore


class Delivery:
    """One for each worker.

    Args:
        local: The file; opened and closed by its owner.
        delivered: Told of each arrival: the last result that every sink has, and whether no dead letter waits.
    """

    def __init__(self, *, local: SqliteJobStore, delivered: Callable[[int, bool], None]) -> None:
        self.items = True  # are there sinks that a request's end must wait for?
        self.letters = True  # is there a place for dead letters?
        self.maker = ""  # job and number of the worker
        self.job = ""
        self._local = local
        self._told = delivered
        self._keys: dict[int, int] = {}  # of results on their way
        self._last = 0  # the last result that every sink has

    def take(self, batch: Batch) -> tuple[int, int]:
        """Keep what is in *batch*. Returns the row of the last result and the number of dead letters to wait for."""
        letters = len(batch.dead) if self.letters else 0
        if not (batch.items or batch.dead or batch.facts):
            return 0, letters
        self._local.commit(Batch(items=batch.items, dead=batch.dead, facts=batch.facts))
        if not (batch.items and self.items):
            return 0, letters
        last = self._local.last_item
        self._name(batch.items, last - len(batch.items))
        return last, letters

    def _name(self, items: Sequence[StagedItem], before: int) -> None:
        """Give each result a key that it would have from any worker: its request, and its place there."""
        counts: dict[int, int] = {}
        for row, item in enumerate(items, before + 1):
            if item.request_id is None:
                name = f"{self.maker}:{row}"
            else:
                origin = item.request_id if item.origin is None else item.origin
                nth = counts[origin] = counts.get(origin, 0) + 1
                name = f"{self.job}:{origin}:{nth}"
            self._keys[row] = key_of(name)

    def outbox(self, after: int, limit: int) -> list[tuple[int, StagedItem]]:
        """Committed items with an id over *after*, in order."""
        rows = self._local.outbox(after, limit)
        for row, item in rows:
            item.key = self._keys.get(row) or key_of(f"{self.maker}:{row}")
        return rows

    def forget_items(self, up_to: int) -> None:
        """Every sink has these: the ends of their requests may go."""
        self._local.forget_items(up_to)
        for row in [row for row in self._keys if row <= up_to]:
            del self._keys[row]
        self._last = max(self._last, up_to)
        self._tell()

    def dead_outbox(self, limit: int) -> list[tuple[int, DeadLetter]]:
        """Committed dead letters that are not yet where they belong, in order."""
        return self._local.dead_outbox(limit)

    def forget_dead(self, ids: Iterable[int]) -> None:
        """These are where they belong: the ends of their requests may go."""
        self._local.forget_dead(ids)
        self._tell()

    def _tell(self) -> None:
        self._told(self._last, not self._local.counts().dead)


def key_of(name: str) -> int:
    """63 bits that stand for *name* in a database's key."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
