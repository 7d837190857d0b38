"""What a worker has to tell Redis, gathered between two exchanges.

The rule it keeps: what belongs together leaves together, in order: first the rows, then what became of rows, and an end
never before the rows that its request made. A request's end waits here until its results are with their sinks and its dead
letters in their file, since what is in this process's hands dies with it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .base import State
from .redisrows import priority_of, rank_of

if TYPE_CHECKING:
    from .base import Batch, StoredRequest

    Argument = bytes | str | int | float

MAX_ROWS = 1000
"""Rows of one exchange: some 20 ms of a script, in which the server answers nobody else."""


@dataclass(slots=True)
class Waiting:
    """Ends, with the rows that must become true with them, of one commit whose results are on their way."""

    item: int  # the last result of the commit
    letter: int  # its last dead letter
    done: list[int] = field(default_factory=list)
    rows: list[StoredRequest] = field(default_factory=list)


@dataclass(slots=True)
class Parcel:
    """What goes out in one exchange, and goes again as it is if the answer does not come."""

    number: int
    rows: list[StoredRequest]
    seen: list[bytes]
    moves: dict[int, tuple[State, float]]
    done: list[int]

    def arguments(self) -> list[Argument]:
        """For `apply.lua`, from its rows on."""
        out: list[Argument] = [len(self.rows)]
        for row in self.rows:
            extra: Argument = ""
            if row.state is State.DELAYED:
                extra = repr(row.due_at or 0.0)
            elif row.state is State.HELD:
                extra = row.parent or 0
            out += (
                row.id,
                row.domain,
                priority_of(row),
                rank_of(row),
                row.crashes,
                int(row.state),
                extra,
                row.fingerprint or b"",
                row.payload,
            )
        out.append(len(self.seen))
        out += self.seen
        out.append(len(self.moves))
        for id_, (state, due) in self.moves.items():
            out += (id_, int(state), repr(due))
        out.append(len(self.done))
        out += self.done
        return out


class Outgoing:
    """The buffer. One for each store."""

    def __init__(self) -> None:
        self._rows: dict[int, StoredRequest] = {}
        self._seen: list[bytes] = []
        self._moves: dict[int, tuple[State, float]] = {}
        self._done: dict[int, None] = {}
        self._waiting: deque[Waiting] = deque()
        self._number = 0
        self.parcel: Parcel | None = None  # sent, and not answered yet

    def __len__(self) -> int:
        """Rows and ends that have not arrived."""
        parcel = self.parcel
        sent = 0 if parcel is None else len(parcel.rows) + len(parcel.done)
        return len(self._rows) + len(self._done) + sent + sum(len(w.rows) for w in self._waiting)

    @property
    def is_empty(self) -> bool:
        """Has all that may go gone, and arrived?"""
        return self.parcel is None and not (self._rows or self._seen or self._moves or self._done)

    @property
    def is_clear(self) -> bool:
        """Is there nothing at all to tell, now or when results have arrived?"""
        return self.is_empty and not self._waiting

    def unsent(self, id_: int) -> StoredRequest | None:
        """The row *id_*, if it has not gone yet."""
        return self._rows.get(id_)

    def take(self, batch: Batch, *, item: int = 0, letter: int = 0) -> None:
        """Take in one commit, whose last result and dead letter (0: it has none) must be delivered first."""
        own = {row.fingerprint for row in batch.inserts if row.fingerprint}
        self._seen += [fingerprint for fingerprint in batch.seen if fingerprint not in own]
        held: set[int] = set()
        if letter:
            held = set(batch.done)
        elif item:
            held = {i.request_id for i in batch.items if i.request_id is not None}
            held &= set(batch.done)
        waiting = Waiting(item, letter)
        for row in batch.inserts:
            if row.fingerprint is None and row.parent in held and row.state is not State.HELD:
                waiting.rows.append(row)
            else:
                self._rows[row.id] = row
        for state, id_ in batch.moved:
            self._move(id_, state, 0.0)
        for due_at, id_ in batch.delayed:
            self._move(id_, State.DELAYED, due_at)
        for id_ in batch.done:
            if id_ in held:
                waiting.done.append(id_)
            else:
                self._end(id_)
        if held or waiting.rows:
            self._waiting.append(waiting)

    def _move(self, id_: int, state: State, due: float) -> None:
        row = self._rows.get(id_)
        if row is not None:
            row.state, row.due_at = state, due
        else:
            self._moves[id_] = state, due

    def _end(self, id_: int) -> None:
        row = self._rows.pop(id_, None)
        if row is not None and row.fingerprint:
            self._seen.append(row.fingerprint)
        self._moves.pop(id_, None)
        if row is None or any(
            r.parent == id_ and r.state is State.HELD for r in self._rows.values()
        ):
            self._done[id_] = None

    def delivered(self, *, item: int, letters: bool) -> None:
        """Results up to row *item* are with their sinks; *letters*: no dead letter waits."""
        while self._waiting:
            first = self._waiting[0]
            if first.item > item or (first.letter and not letters):
                return
            self._waiting.popleft()
            for row in first.rows:
                self._rows[row.id] = row
            for id_ in first.done:
                self._end(id_)

    def pack(self) -> Parcel | None:
        """The next parcel; the last one again, if it was not answered; None where there is nothing to tell."""
        if self.parcel is not None or self.is_empty:
            return self.parcel
        self._number += 1
        rows = list(self._rows.values())[:MAX_ROWS]
        for row in rows:
            del self._rows[row.id]
        self.parcel = Parcel(self._number, rows, self._seen, {}, [])
        self._seen = []
        if not self._rows:  # ends and moves never overtake rows
            self.parcel.moves, self._moves = self._moves, {}
            self.parcel.done, self._done = list(self._done), {}
        return self.parcel

    def unpack(self) -> None:
        """The last parcel did not go, for certain: what it holds is unsent again."""
        parcel, self.parcel = self.parcel, None
        if parcel is None:
            return
        self._rows = {row.id: row for row in parcel.rows} | self._rows
        self._seen = parcel.seen + self._seen
        self._moves = parcel.moves | self._moves
        self._done = dict.fromkeys(parcel.done) | self._done

    def pack_relief(self) -> Parcel | None:
        """For a server that is full: the ends of requests that made nothing which is still to be stored."""
        parents = {row.parent for row in self._rows.values()}
        done = [id_ for id_ in self._done if id_ not in parents]
        if not done:
            return None
        for id_ in done:
            del self._done[id_]
            self._moves.pop(id_, None)
        self._number += 1
        self.parcel = Parcel(self._number, [], [], {}, done)
        return self.parcel

    def drop_ends(self) -> tuple[int, list[int]]:
        """This worker is no longer what it was: what it says of rows counts no more.

        Nor do children that only the end of their request makes true: whoever has that now yields them again.

        Returns:
            How many ends, and the ids of those children.
        """
        self.unpack()
        ends = len(self._done) + sum(len(waiting.done) for waiting in self._waiting)
        orphans = [id_ for id_, row in self._rows.items() if is_child(row)]
        for id_ in orphans:
            del self._rows[id_]
        self._moves.clear()
        self._done.clear()
        for waiting in self._waiting:
            orphans += [row.id for row in waiting.rows]
            waiting.done.clear()
            waiting.rows.clear()
        return ends, orphans


def is_child(row: StoredRequest) -> bool:
    """Is *row* made true by its parent's end alone? Others are known by their fingerprint, whoever brings them."""
    return row.fingerprint is None and row.parent is not None
