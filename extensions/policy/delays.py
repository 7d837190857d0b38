"""What must not go before its time: one heap, one next time, a bounded number of live entries.

The rule it keeps: the caller needs one timer, for `next_due`, however much waits. What no longer fits in memory is handed
back for the disk and comes back, in order of time, when `wants_disk` says so.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .frontier import Entry


class Delays:
    """Delayed requests. Times are monotonic seconds.

    Args:
        window: Live entries that memory may hold.
    """

    __slots__ = ("_disk_due", "_heap", "_ids", "_last_due", "_window", "on_disk")

    def __init__(self, *, window: int) -> None:
        self._heap: list[tuple[float, int, Entry]] = []
        self._ids: set[int] = set()  # of what is in the heap
        self._window = window
        self._disk_due = math.inf
        self._last_due = -math.inf
        self.on_disk = 0

    def __len__(self) -> int:
        return len(self._heap) + self.on_disk

    def push(self, entry: Entry, due: float) -> bool:
        """Keep *entry* until *due*. Returns whether it must go to disk instead, since memory is full."""
        if entry.storable and len(self._heap) >= self._window:
            self.note_on_disk(1, due)
            return True
        self._last_due = max(self.last_due, due)
        heapq.heappush(self._heap, (due, entry.id, entry))
        self._ids.add(entry.id)
        return False

    def note_on_disk(self, count: int, due: float) -> None:
        """*count* delayed requests are on disk, the first of them due at *due*."""
        self._last_due = max(self.last_due, due if count == 1 else math.inf)
        self.on_disk += count
        self._disk_due = min(self._disk_due, due)

    @property
    def next_due(self) -> float:
        """When the next one is due; infinity where nothing waits."""
        return min(self._heap[0][0] if self._heap else math.inf, self._disk_due)

    @property
    def last_due(self) -> float:
        """When the last one is due; infinity where that is not known, its negative where nothing waits."""
        return self._last_due if self._heap or self.on_disk else -math.inf

    def take_due(self, now: float) -> list[Entry]:
        """Take the live entries that are due by *now*, in order of time."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        self._ids.difference_update(entry.id for entry in due)
        return due

    def holds(self, id_: int) -> bool:
        """Is the request *id_* among the live ones?"""
        return id_ in self._ids

    def wants_disk(self, now: float) -> bool:
        """Is something on disk due by *now*?"""
        return self.on_disk > 0 and self._disk_due <= now

    def took_from_disk(self, count: int, next_due: float) -> None:
        """*count* rows came back; the next one left is due at *next_due* (infinity: none is left)."""
        self.on_disk = 0 if next_due == math.inf else max(1, self.on_disk - count)
        self._disk_due = next_due
