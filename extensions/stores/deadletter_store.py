"""What a place for dead letters promises, whether it is a file or a Redis that many workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from .base import DeadLetter
    from .deadletter_filters import LetterFilter
    from .deadletter_rows import Claim, Requested, Row


class DeadLetters(Protocol):
    """Calls block: a crawl makes them in a thread, one at a time. All raise `DeadLetterError`."""

    @property
    def place(self) -> str:
        """Where it is, for messages; without credentials."""

    def open(self, *, create: bool = True) -> Self:
        """Open it; usable with ``with`` too."""

    def close(self) -> None:
        """End this run, if there is one, and close. May be called twice."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def open_run(
        self,
        *,
        job: str,
        spider: str,
        arguments: Mapping[str, Any],
        folder: Path | str | None = None,
        last_claim: int = 0,
    ) -> None:
        """Say who puts and claims from now on."""

    def put_many(self, letters: Iterable[DeadLetter]) -> None:
        """Store *letters*; one that was put before changes nothing."""

    def claim(self, limit: int) -> Claim:
        """Take requested rows of this run's spider and arguments for this job alone."""

    def settle(self, ids: Iterable[int]) -> None:
        """These replays have ended well: their rows go."""

    def give_back(self, ids: Iterable[int]) -> None:
        """These rows, claimed by this job, are not in its job store: they are requested again."""

    def recover(self) -> int:
        """Request again what is replaying in no job that lives or can be resumed; how many."""

    def rows(
        self,
        where: LetterFilter | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        newest_first: bool = True,
    ) -> Iterator[Row]:
        """The rows that *where* lets through."""

    def count(self, where: LetterFilter | None = None) -> int:
        """How many rows *where* lets through."""

    def request_replay(self, where: LetterFilter | None = None) -> Requested:
        """Mark the dead rows that *where* lets through as requested."""

    def purge(self, where: LetterFilter | None = None) -> int:
        """Delete the rows that *where* lets through, except those being replayed; how many."""

    def running(self, spider: str, arguments: str) -> bool:
        """Is a crawl of this spider at work, made so? It takes what is requested."""
