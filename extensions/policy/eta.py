"""When it will be done: two times, because the slowest domain sets the end.

The rule it keeps: a time is worked out domain by domain from that domain's own goodput, and what is
not known is counted as unknown, not averaged away. Pending divided by the overall rate is wrong for
crawls: the fast domains end first, and with them the rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple


class Goodput:
    """Accepted pages a second of one domain, over the longer of 60 seconds and 20 pages.

    Constant memory: two marks, the older of which starts the window; when the younger is old enough
    it becomes the older, so the window is between one and two times the wanted length.
    """

    MIN_S, MIN_PAGES = 60.0, 20
    __slots__ = ("_new_due", "_new_pages", "_old_due", "_old_pages", "pages")

    def __init__(self) -> None:
        self.pages = 0
        self._old_due = self._new_due = math.nan
        self._old_pages = self._new_pages = 0

    def count(self, now: float) -> None:
        """One more page. *now*: monotonic seconds that stand still while we hold the crawl."""
        if math.isnan(self._old_due):
            self._old_due = self._new_due = now
        elif now - self._new_due >= self.MIN_S and self.pages - self._new_pages >= self.MIN_PAGES:
            self._old_due, self._old_pages = self._new_due, self._new_pages
            self._new_due, self._new_pages = now, self.pages
        self.pages += 1

    def per_s(self, now: float) -> float | None:
        """Pages a second, or None before there is a second page to measure from."""
        counted = self.pages - self._old_pages - 1
        if counted < 1 or not now > self._old_due:
            return None
        return counted / (now - self._old_due)


class Times(NamedTuple):
    """When most and when all is done, in seconds from now.

    Attributes:
        most_s: Until 98% of all that is known is done; None if unknown.
        all_s: Until the last domain of those with a known time is done; None if there is none.
        last: The domain that is last.
        unknown: Domains with work whose time is not known.
    """

    most_s: float | None
    all_s: float | None
    last: str | None
    unknown: int


@dataclass(slots=True)
class _Bucket:
    left: float = 0.0
    slope: float = 0.0
    end_s: float = 0.0


class Horizon:
    """Takes the domains one by one, in any order and in slices, and says when it all ends.

    Domains are gathered in buckets 2% wide in time, so that 20,000 of them cost no sort.
    """

    MOST = 0.98
    _LOG = math.log(1.02)

    def __init__(self) -> None:
        self._buckets: dict[int, _Bucket] = {}
        self._unknown = 0
        self._unknown_left = 0.0
        self._last: str | None = None
        self._all_s = 0.0

    def add(self, domain: str, *, left: float, per_s: float | None, hold_s: float = 0.0) -> None:
        """Count a domain in.

        Args:
            domain: Its name.
            left: Requests to come, with its part of the seeds not read yet.
            per_s: Its goodput; None or 0 if unknown.
            hold_s: Seconds until it may be asked again.
        """
        if left <= 0:
            return
        if not per_s or not math.isfinite(hold_s):
            self._unknown += 1
            self._unknown_left += left
            return
        end_s = max(hold_s, 0.0) + left / per_s
        bucket = self._buckets.setdefault(int(math.log1p(end_s) / self._LOG), _Bucket())
        bucket.left += left
        bucket.slope += left / end_s
        bucket.end_s = max(bucket.end_s, end_s)
        if end_s > self._all_s:
            self._all_s, self._last = end_s, domain

    def times(self, *, ended: float) -> Times:
        """The two times, where *ended* requests are done already."""
        left = sum(bucket.left for bucket in self._buckets.values())
        total = ended + left + self._unknown_left
        wanted = self.MOST * total - ended
        return Times(
            self._reach(wanted) if left else None,
            self._all_s if self._last is not None else None,
            self._last,
            self._unknown,
        )

    def _reach(self, wanted: float) -> float | None:
        """Seconds until *wanted* requests are done; each domain is taken to advance evenly."""
        if wanted <= 0:
            return 0.0
        finished, slope = 0.0, sum(bucket.slope for bucket in self._buckets.values())
        for key in sorted(self._buckets):
            bucket = self._buckets[key]
            if finished + slope * bucket.end_s >= wanted:
                return (wanted - finished) / slope
            finished += bucket.left
            slope -= bucket.slope
        return None if wanted - finished > 1e-6 * wanted else self._all_s
