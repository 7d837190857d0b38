"""May one more seed come in? The watermarks over what is pending, with mercy for the seeds of other domains.

The rule it keeps: a number that the user gave is kept to the letter. The automatic cap counts a domain that cannot send now
with its share only, so that one slow or held domain, listed first, does not keep the others' seeds out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .watermarks import Watermarks

if TYPE_CHECKING:
    from .frontier import Frontier
    from .turns import Turns

FORGIVEN = 3
"""Automatic caps that blocked domains' seeds may take beyond the cap: they wait on disk, at some 500 bytes each."""
EXCESS_S = 0.25
"""How long a sum over all domains holds: it costs some 100 microseconds for a thousand."""


class SeedGate:
    """Open or closed, by what the frontier holds.

    Args:
        cap: The high mark; None for the automatic one.
        frontier, turns: The crawl's; read, never changed.
    """

    __slots__ = ("_cap", "_excess", "_excess_due", "_frontier", "_marks", "_turns")

    def __init__(self, *, cap: int | None, frontier: Frontier, turns: Turns) -> None:
        self._cap = cap
        self._marks = Watermarks(cap=cap)
        self._frontier = frontier
        self._turns = turns
        self._excess = 0
        self._excess_due = 0.0

    @property
    def high(self) -> int:
        """Seeds wait from here on."""
        return self._marks.high

    @property
    def low(self) -> int:
        """Seeds come again at this or less."""
        return self._marks.low

    @property
    def closed(self) -> bool:
        """What the last question was answered with."""
        return self._marks.closed

    def learn(self, pages_per_s: float) -> None:
        """Size an automatic cap by what the crawl does now."""
        self._marks.learn(pages_per_s)

    def is_open(self, now: float, pending: int, *, forgiving: bool = True) -> bool:
        """May one more seed come in at *now* (monotonic seconds) while *pending* wait?"""
        if forgiving and self._cap is None and pending > self._marks.low:
            pending -= self._forgiven(now)
        return self._marks.is_open(pending)

    def _forgiven(self, now: float) -> int:
        if now >= self._excess_due:
            self._excess_due = now + EXCESS_S
            share = self._marks.high // 4
            excess = sum(
                len(queue) - share
                for name, queue in self._frontier.domains()
                if len(queue) > share and not self._turns.is_ready(name)
            )
            self._excess = min(excess, FORGIVEN * self._marks.high)
        return self._excess
