"""What each host of the trial does: the closing table compares the crawl with these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialHost:
    """One host.

    Attributes:
        name: Shown in the table.
        story: What it does, in a few words.
        pages: How many pages it has, those that always fail included.
        latency_s: Seconds that a page takes.
        rate, burst: Requests a second that it accepts, and how many at once; the others get 429.
        retry_after: Does a 429 say how long to wait?
        workers: So many requests are worked on at once; the others wait in line.
        timeout_s: The client waits no longer for a page of this host.
        fails_first: Every so many pages, the first answer is a 503.
        always: Pages (by number) that always answer with this status.
    """

    name: str
    story: str
    pages: int
    latency_s: float = 0.01
    rate: float | None = None
    burst: int = 10
    retry_after: bool = False
    workers: int | None = None
    timeout_s: float = 10.0
    fails_first: int | None = None
    always: dict[int, int] = field(default_factory=dict)

    @property
    def true_pace(self) -> float | None:
        """Pages a second that it can give; None if it sets no limit."""
        if self.rate is not None:
            return self.rate
        return self.workers / self.latency_s if self.workers else None

    @property
    def good_pages(self) -> int:
        """Pages that can be got."""
        return self.pages - len(self.always)


HOSTS: Sequence[TrialHost] = (
    TrialHost(name="slow", story="every page takes 2 s", pages=60, latency_s=2.0),
    TrialHost(name="fast", story="no limit", pages=300, latency_s=0.02),
    TrialHost(name="limited", story="20 a second, else 429", pages=460, rate=20.0),
    TrialHost(
        name="limited-tells",
        story="10 a second, else 429 with Retry-After",
        pages=230,
        rate=10.0,
        retry_after=True,
    ),
    TrialHost(
        name="overloaded",
        story="2 workers, 0.3 s a page, clients give up after 1 s",
        pages=140,
        latency_s=0.3,
        workers=2,
        timeout_s=1.0,
    ),
    TrialHost(name="flaky", story="each 10th page fails once", pages=200, fails_first=10),
    TrialHost(
        name="broken",
        story="5 pages always fail",
        pages=60,
        always={7: 500, 8: 404, 23: 500, 24: 404, 41: 500},
    ),
)


def scaled(share: float) -> list[TrialHost]:
    """The same hosts with that share of their pages, for a shorter trial; failing pages stay."""
    return [
        replace(host, pages=max(round(host.pages * share), 2 + max(host.always, default=0)))
        for host in HOSTS
    ]
