"""Requests on their way to a shared frontier, which alone knows whether somebody had them before.

The rule it keeps: a request is counted as arriving from the moment that it is handed to the store until the store says what
became of it, so that it is never in two places, nor in none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .policy.frontier import Entry


class Arrivals:
    """What is on its way. One for each worker."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._staying: set[int] = set()
        self._counts: dict[str, int] = {}  # of those that are to stay here, by domain

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry, *, stays: bool) -> None:
        """*entry* was handed over; *stays*: to be fetched by this worker, if it is new."""
        self._entries[entry.id] = entry
        if stays:
            self._staying.add(entry.id)
            self._counts[entry.domain] = self._counts.get(entry.domain, 0) + 1

    def of(self, domain: str) -> int:
        """How many of *domain* are on their way that this worker is to fetch."""
        return self._counts.get(domain, 0)

    def take(self, ids: Iterable[int]) -> list[Entry]:
        """The store has said what became of these."""
        entries = []
        for id_ in ids:
            entry = self._entries.pop(id_, None)
            if entry is None:
                continue
            entries.append(entry)
            if id_ in self._staying:
                self._staying.remove(id_)
                self._counts[entry.domain] -= 1
                if not self._counts[entry.domain]:
                    del self._counts[entry.domain]
        return entries
