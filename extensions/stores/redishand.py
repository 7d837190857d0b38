"""What one worker has of a shared job: domains, rows fetched ahead, rows given out, and what it knows to be seen.

The rule it keeps: a row is on the shelf, or in the owner's hands, or not this worker's. Nothing here does I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .base import DomainBacklog, State
from .redisshelf import MOST_ROWS, Shelf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .base import Batch, StoredRequest

KNOWN_SEEN: Final = 65_536
"""Fingerprints remembered here, so that a link to a page's own navigation costs nothing."""


class Hand:
    """One for each worker.

    Args:
        room: Rows that may be fetched ahead.
        most: Rows of one domain that may.
    """

    def __init__(self, *, room: int, most: int = MOST_ROWS) -> None:
        self.shelf = Shelf(room=room, most=most)
        self.own: set[str] = set()  # its domains
        self.rows: dict[int, State] = {}  # given to the owner
        self.known: dict[bytes, None] = {}
        self._children: dict[int, list[int]] = {}  # held ones, by parent

    def __contains__(self, id_: int) -> bool:
        return id_ in self.rows or id_ in self.shelf

    def clear(self) -> None:
        """Nothing is this worker's any more; what was seen still was."""
        for domain in self.shelf.domains():
            self.shelf.clear(domain)
        self.own.clear()
        self.rows.clear()
        self._children.clear()

    def follow(self, batch: Batch) -> None:
        """The owner has moved and ended rows."""
        for state, id_ in batch.moved:
            if id_ in self.rows or self.shelf.drop(id_):
                self._hold(id_, state)
        for id_ in (*(id_ for _, id_ in batch.delayed), *batch.done):
            self.shelf.drop(id_)
            self.rows.pop(id_, None)
        self._follow_children(batch)
        self._remember(batch.seen)

    def _follow_children(self, batch: Batch) -> None:
        for row in batch.inserts:
            if row.state is State.HELD and row.parent is not None:
                self.rows[row.id] = State.HELD
                self._children.setdefault(row.parent, []).append(row.id)
        for parent in self._children.keys() & set(batch.done) if self._children else ():
            for id_ in self._children.pop(parent):
                if self.rows.get(id_) is State.HELD:
                    del self.rows[id_]

    def _hold(self, id_: int, state: State) -> None:
        if state in {State.WINDOW, State.LEASED}:
            self.rows[id_] = state
        else:
            self.rows.pop(id_, None)

    def _remember(self, fingerprints: Iterable[bytes]) -> None:
        known = self.known
        known.update(dict.fromkeys(fingerprints))
        while len(known) > KNOWN_SEEN:
            del known[next(iter(known))]

    def arrived(self, row: StoredRequest) -> None:
        """*row*, new in Redis, is this worker's to fetch, and so is its domain."""
        self.rows[row.id] = State.LEASED if row.state is State.LEASED else State.WINDOW
        self.own.add(row.domain)

    def give(self, domain: str, limit: int) -> list[StoredRequest]:
        """The *limit* first rows of *domain* go into the owner's hands."""
        rows = self.shelf.take(domain, limit)
        for row in rows:
            self.rows[row.id] = State.WINDOW
        return rows

    def new(self, rows: Iterable[StoredRequest]) -> list[StoredRequest]:
        """Those of *rows* that the owner has not got: a failover may bring some again."""
        return [row for row in rows if row.id not in self.rows]

    def backlog(self, domain: str) -> DomainBacklog:
        """The rows of *domain* on the shelf."""
        rows = self.shelf.peek(domain)
        return DomainBacklog(domain, len(rows), rows[0].priority, rows[0].rank)

    def count(self, state: State) -> int:
        """Rows in *state* in the owner's hands."""
        return list(self.rows.values()).count(state)
