"""One batch as SQL, and what it does to the counters.

The rule it keeps: nothing here is believed before the commit. A `Changes` works on copies; its
owner takes them over when the transaction went through, and forgets them when it did not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .base import Batch, State
from .sqliterows import INSERT_DEAD, INSERT_REQUEST, Tally, dead_row, request_row

if TYPE_CHECKING:
    import sqlite3

LIVE: Final = frozenset({State.WINDOW, State.LEASED})
"""States of the rows that a process holds, which their number bounds: remembered, not read."""

_MOVE: Final = "UPDATE request SET state = ?, due_at = NULL, parent = NULL WHERE id = ?"
_DELAY: Final = "UPDATE request SET state = 3, due_at = ?, parent = NULL WHERE id = ?"
_FREE_HELD: Final = "UPDATE request SET state = 0, parent = NULL WHERE state = 4 AND parent = ?"


class Changes:
    """What one batch changes, worked out inside its transaction.

    Attributes:
        tally: The counters as they are after it.
    """

    def __init__(self, con: sqlite3.Connection, tally: Tally, live: dict[int, State]) -> None:
        self.tally = replace(tally)
        self._con = con
        self._before = live
        self._after: dict[int, State | None] = {}

    def settle(self) -> None:
        """The commit went through: bring the states of live rows up to date."""
        for id_, state in self._after.items():
            if state is None:
                self._before.pop(id_, None)
            else:
                self._before[id_] = state

    def apply(self, batch: Batch) -> None:
        """Run *batch* (all but its fingerprints) in the open transaction, in the batch's order."""
        self._insert(batch)
        if batch.moved:
            self._count_moves(batch.moved)
            self._con.executemany(_MOVE, batch.moved)
        if batch.delayed:
            self._count_moves([(State.DELAYED, id_) for _, id_ in batch.delayed])
            self._con.executemany(_DELAY, batch.delayed)
        if batch.done:
            self._acknowledge(batch.done)
        self._send(batch)
        if batch.facts:
            self._con.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", batch.facts.items())

    def _insert(self, batch: Batch) -> None:
        if not batch.inserts:
            return
        self._con.executemany(INSERT_REQUEST, [request_row(r) for r in batch.inserts])
        for r in batch.inserts:
            self.tally.add(r.state)
            self._after[r.id] = r.state if r.state in LIVE else None
        self.tally.last_id = max(self.tally.last_id, *(r.id for r in batch.inserts))

    def _send(self, batch: Batch) -> None:
        tally = self.tally
        if batch.items:
            rows = [
                (i, s.request_id, s.payload) for i, s in enumerate(batch.items, tally.last_item + 1)
            ]
            self._con.executemany("INSERT INTO outbox VALUES (?, ?, ?)", rows)
            tally.last_item += len(rows)
            tally.outbox += len(rows)
        if batch.dead:
            letters = [dead_row(i, d) for i, d in enumerate(batch.dead, tally.last_dead + 1)]
            tally.dead += self._con.executemany(INSERT_DEAD, letters).rowcount
            tally.last_dead += len(letters)

    def _acknowledge(self, done: list[int]) -> None:
        for id_ in dict.fromkeys(done):
            state = self._state_of(id_)
            if state is not None:
                self.tally.add(state, -1)
                self.tally.done += 1
            self._after[id_] = None
        ids = [(id_,) for id_ in done]
        self._con.executemany("DELETE FROM request WHERE id = ?", ids)
        if self.tally.held:
            freed = self._con.executemany(_FREE_HELD, ids).rowcount
            self.tally.held -= freed
            self.tally.pending += freed

    def _count_moves(self, moves: list[tuple[State, int]]) -> None:
        passing: dict[int, State] = {}  # states inside this list, which is not yet run
        for state, id_ in moves:
            before = passing[id_] if id_ in passing else self._state_of(id_)
            if before is None:
                continue
            self.tally.add(before, -1)
            self.tally.add(state)
            passing[id_] = state
            self._after[id_] = state if state in LIVE else None

    def _state_of(self, id_: int) -> State | None:
        state = self._after[id_] if id_ in self._after else self._before.get(id_)
        if state is not None:
            return state
        row = self._con.execute("SELECT state FROM request WHERE id = ?", (id_,)).fetchone()
        return None if row is None else State(row[0])
