"""The closing table: what the crawl got and found out, beside what the hosts counted and are."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hosts import TrialHost
    from .site import Seen

_HEAD = (
    "host", "pages", "refused", "retries", "dead", "pages/s", "pace found", "true pace",
)  # fmt: skip


@dataclass(slots=True)
class HostResult:
    """What the crawl knows of one host.

    Attributes:
        pages: Pages that reached the callback.
        dead: Requests that were given up.
        first_at, last_at: Seconds of the first and the last page, on any one clock.
        paces: The pace that the crawler held, noted at each page; None where it held none.
        at_once: How many requests at a time it allowed, noted at each page.
    """

    pages: int = 0
    dead: int = 0
    first_at: float | None = None
    last_at: float = 0.0
    paces: list[float | None] = field(default_factory=list)
    at_once: list[int] = field(default_factory=list)

    def note_page(self, at: float, pace: float | None, at_once: int | None) -> None:
        """One more page, and what the crawler allowed at that moment."""
        self.pages += 1
        self.first_at = at if self.first_at is None else self.first_at
        self.last_at = at
        self.paces.append(pace)
        if at_once is not None:
            self.at_once.append(at_once)

    @property
    def pages_per_s(self) -> float | None:
        """Pages a second between the first and the last; None if that is no time."""
        if self.first_at is None or self.last_at <= self.first_at:
            return None
        return (self.pages - 1) / (self.last_at - self.first_at)

    @property
    def pace(self) -> float | None:
        """The pace found: the median over the second half of the pages, None if it was free."""
        later = [pace for pace in self.paces[len(self.paces) // 2 :] if pace is not None]
        return median(later) if later and len(later) * 4 >= len(self.paces) else None


def report(
    hosts: Sequence[TrialHost],
    results: Sequence[HostResult],
    seen: Sequence[Seen],
    *,
    took_s: float,
) -> str:
    """The table as plain text of at most 80 columns, and one sentence under it."""
    rows = [_HEAD, *map(_row, hosts, results, seen)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(_cells(row, widths)).rstrip() for row in rows]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join([*lines, "", _verdict(hosts, results, seen, took_s)])


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = row
    first_width, *other_widths = widths
    return [first.ljust(first_width), *map(str.rjust, others, other_widths)]


def _row(host: TrialHost, result: HostResult, seen: Seen) -> tuple[str, ...]:
    return (
        host.name,
        f"{result.pages}",
        f"{seen.refused}",
        f"{seen.repeated}",
        f"{result.dead}",
        "-" if result.pages_per_s is None else f"{result.pages_per_s:.1f}",
        _pace_found(host, result),
        "no limit" if host.true_pace is None else f"{host.true_pace:.1f}/s",
    )


def _pace_found(host: TrialHost, result: HostResult) -> str:
    if result.pace is not None:
        return f"{result.pace:.1f}/s"
    if host.workers and result.at_once:
        return f"{median(result.at_once[len(result.at_once) // 2 :]):.0f} at once"
    return "free" if result.at_once else "unknown"


def _verdict(
    hosts: Sequence[TrialHost], results: Sequence[HostResult], seen: Sequence[Seen], took_s: float
) -> str:
    good = sum(host.good_pages for host in hosts)
    failing = sum(len(host.always) for host in hosts)
    got, dead = sum(r.pages for r in results), sum(r.dead for r in results)
    asked, refused = sum(s.hits.total() for s in seen), sum(s.refused for s in seen)
    share = 100 * refused / asked if asked else 0.0
    return (
        f"{got:,} of the {good:,} pages that can be got, in {took_s:.0f} s.\n"
        f"{refused:,} of {asked:,} requests were refused ({share:.1f}%).\n"
        f"{dead:,} requests were given up; {failing:,} pages always fail."
    )
