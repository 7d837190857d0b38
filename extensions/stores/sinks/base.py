"""What a sink promises: rows in order, a durable mark back, and one of three kinds of failure.

The rule it keeps: a mark is handed back only for what would survive a power cut, and writing rows
again that the sink already has changes nothing. With a mark that is kept in the job store this
makes "exactly once" out of "at least once".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[int, str]
"""Id of a result (growing within a job, never used twice), and the item: strict JSON, one line."""


@dataclass(frozen=True, slots=True)
class PoisonRow:
    """A row that the sink will never take; the rest of its batch is stored."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Written:
    """How a batch ended: all of it is durable except the poison rows."""

    mark: str
    poison: Sequence[PoisonRow] = ()


class Sink(Protocol):
    """One place that results go to. All calls come from one thread, `open` first; they may block.

    Attributes:
        name: Tells the sink from others and stays the same over restarts. Holds no credentials: it
            is logged.
    """

    name: str

    def open(self, mark: str | None) -> None:
        """Get ready to write what follows *mark*, or all when this job never wrote here.

        Raises:
            SinkDown, SinkGone: it cannot be used now, or never as it is configured.
        """

    def write(self, rows: Sequence[Row]) -> Written:
        """Store *rows*. They continue those before, or repeat a tail of them after a failure.

        Raises:
            SinkDown: nothing or all of it may have been stored; write the same rows again later.
            SinkGone: as `SinkDown`, but no retry will help.
        """

    def close(self) -> None:
        """Release all. Everything that was written stays. Never raises; may be called twice."""


class SinkError(Exception):
    """A sink could not do it. The message names the sink and the remedy, never a credential."""


class SinkDown(SinkError):
    """It may work again later: no room, no connection, a lock held by another."""


class SinkGone(SinkError):
    """It will not work until a person does something: no rights, no such database."""
