"""When seeds wait: two marks, so that the gate opens and closes rarely.

The rule it keeps: pending work is a few minutes' worth. Less starves the crawl when the source stutters; more is memory
spent on nothing, and URLs that go stale in the queue.
"""

from __future__ import annotations

AUTO_WORK_S = 180.0
"""Three minutes of measured work; halving it lets a source that pauses for two minutes starve the crawl."""
AUTO_MIN = 500
AUTO_MAX = 20_000
"""Bounds of the automatic cap: it must feed many domains from the start, and 20,000 waiting seeds are a minute at 300/s."""


class Watermarks:
    """Open below the low mark, closed from the high mark on.

    Args:
        cap: The high mark; None sizes it to `AUTO_WORK_S` of measured work.
    """

    __slots__ = ("_cap", "closed", "high")

    def __init__(self, *, cap: int | None) -> None:
        self._cap = cap
        self.high = cap if cap is not None else AUTO_MIN
        self.closed = False

    @property
    def low(self) -> int:
        """The gate opens when pending has fallen to this (below the high mark in any case)."""
        return min(self.high - 1, self.high * 3 // 4)

    def learn(self, pages_per_s: float) -> None:
        """Size an automatic cap by what the crawl does now."""
        if self._cap is None:
            self.high = int(min(AUTO_MAX, max(AUTO_MIN, pages_per_s * AUTO_WORK_S)))

    def is_open(self, pending: int) -> bool:
        """May one more seed come in while *pending* wait?"""
        self.closed = pending > self.low if self.closed else pending >= self.high
        return not self.closed
