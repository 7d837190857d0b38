"""Goes round the domains with work, in slices, and keeps what the last whole round has found.

The rule it keeps: however many domains there are, one look takes a slice of them; what has no more work is told once.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from .policy.bottleneck import Cause
from .policy.eta import Horizon

if TYPE_CHECKING:
    from collections.abc import Callable

    from .book import Book
    from .domainrow import DomainRow
    from .snapshot import CrawlView, DomainNow

SLICE = 250
"""Domains looked at in one look, ten times a second: under two milliseconds."""
UNKNOWN_END = frozenset({"down", "parked", "paused", "probing"})
_STATES = {
    Cause.NONE: "ready", Cause.PACE: "limit", Cause.CONCURRENCY: "limit", Cause.HOLD: "waiting",
    Cause.PARK: "parked", Cause.PROBE: "probing", Cause.DOWN: "down", Cause.ROBOTS: "robots",
    Cause.CRAWL_DELAY: "limit", Cause.USER_DELAY: "limit", Cause.USER_CEILING: "limit",
    Cause.USER_PAUSE: "paused", Cause.PROXY: "waiting", Cause.POOL: "limit",
}  # fmt: skip


class Round:
    """One pass over the domains with work, in slices."""

    def __init__(self, names: list[str], number: int) -> None:
        self.names = names
        self.number = number
        self.place = 0
        self.blocked: Counter[Cause] = Counter()
        self.states: Counter[str] = Counter()
        self.growing = 0
        self.horizon = Horizon()
        self.slowest: DomainRow | None = None
        self.held: DomainRow | None = None
        self.crawl_delay: tuple[float, str] | None = None

    @property
    def ended(self) -> bool:
        """Was every domain looked at?"""
        return self.place >= len(self.names)


class Rounds:
    """Round after round over a crawl's domains.

    Args:
        view: The crawl.
        book: Its rows are brought up to what is seen.
        moved: Called with a domain's row, its state before and the wall clock, where that changed.
    """

    def __init__(
        self, *, view: CrawlView, book: Book, moved: Callable[[DomainRow, str, float], None]
    ) -> None:
        self._view, self._book, self._moved = view, book, moved
        self._round = Round([], 0)
        self._last = self._round

    @property
    def under_way(self) -> bool:
        """Are domains of this round still to be looked at?"""
        return not self._round.ended

    @property
    def seen(self) -> Round:
        """The last whole round; until there is one, what was seen of the first."""
        return self._last if self._last.number else self._round

    @property
    def last(self) -> Round:
        """The last whole round; its number is 0 until there is one."""
        return self._last

    def go_on(self, now: float, now_at: float, *, unread: int) -> None:
        """Look at the next slice; *unread*: seeds that are not drawn yet."""
        current = self._round
        if current.ended:
            current = self._round = Round(list(self._view.working()), current.number + 1)
        each = unread / self._book.asked if self._book.asked else 0.0
        end = min(len(current.names), current.place + SLICE)
        for name in current.names[current.place : end]:
            seen = self._view.domain(name, now)
            if seen is not None and (seen.pending or seen.delayed or seen.in_flight):
                self._see(self._book.row(name), seen, now, now_at, each=each)
        current.place = end
        if current.ended:
            self._settle(current, now_at)
            self._last = current

    def _see(
        self, row: DomainRow, seen: DomainNow, now: float, now_at: float, *, each: float
    ) -> None:
        current, before = self._round, row.state
        row.pending, row.delayed, row.in_flight = seen.pending, seen.delayed, seen.in_flight
        row.limit, row.pace, row.why, row.growing = seen.limit, seen.pace, seen.why, seen.growing
        row.cause = str(seen.cause)
        state = _STATES[seen.cause]
        if state in {"ready", "limit"} and seen.growing:
            state = "growing"
        row.state = state
        row.seen_pass = current.number
        if row.line is not None:
            row.line.mark(now_at, row.got, row.pace)
        if not math.isfinite(seen.wait_s):
            row.next_at = None
        elif seen.wait_s > 0 or row.next_at is None or row.next_at > now_at:
            row.next_at = now_at + seen.wait_s  # else it was due before, and still is
        held = seen.cause in {Cause.HOLD, Cause.PARK, Cause.DOWN}
        left = row.left + each * row.asked
        per_s = None if state in UNKNOWN_END else row.goodput.per_s(now - self._book.held_s)
        wait_s = seen.wait_s if held else 0.0
        row.left_s = wait_s + left / per_s if per_s and math.isfinite(wait_s) else None
        current.blocked[seen.cause] += 1
        current.states[state] += 1
        current.growing += state == "growing"
        current.horizon.add(row.name, left=left, per_s=per_s, hold_s=wait_s)
        if row.left_s is not None and row.left_s > (
            current.slowest.left_s or 0 if current.slowest else 0
        ):
            current.slowest = row
        if held and (
            current.held is None or (row.next_at or math.inf) < (current.held.next_at or math.inf)
        ):
            current.held = row
        if (
            seen.cause is Cause.CRAWL_DELAY
            and seen.crawl_delay_s > (current.crawl_delay or (0,))[0]
        ):
            current.crawl_delay = (seen.crawl_delay_s, row.name)
        if before != state:
            self._moved(row, before, now_at)

    def _settle(self, current: Round, now_at: float) -> None:
        """What was looked at in the last round and not in this one has no more work."""
        names = set(current.names)
        for name in self._last.names:
            row = None if name in names else self._book.rows.get(name)
            if row is not None and row.state != "done" and row.seen_pass != current.number:
                before, row.state = row.state, "done"
                if row.line is not None:
                    row.line.mark(now_at, row.got, row.pace)
                row.pending = row.delayed = row.in_flight = 0
                row.left_s, row.next_at, row.cause, row.why = 0.0, None, "none", ""
                self._moved(row, before, now_at)
        current.states["done"] = max(0, self._book.domains - sum(current.states.values()))
