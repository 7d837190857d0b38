"""What a sampler gathers between two snapshots: looks at the crawl, marks of its totals, a round.

The rule it keeps: each is bounded, in number and in time.
"""

from __future__ import annotations

import resource
from collections import Counter, deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .policy.eta import Horizon

if TYPE_CHECKING:
    from .book import DomainRow
    from .policy.bottleneck import Cause
    from .snapshot import CrawlView

LOOKS_PER_TICK = 10
LOOK_S = 0.1


class Marks(NamedTuple):
    """Running totals at one moment: a rate is the difference of two."""

    now: float
    got: int
    refused: int
    answers: int
    retries_out: int
    retries_in: int
    written: int
    links: int
    seeds: int


class Looks:
    """What was seen ten times a second in the last ten seconds."""

    def __init__(self) -> None:
        size = 10 * LOOKS_PER_TICK
        self.held: deque[str] = deque(maxlen=size)
        self.backed_out: deque[bool] = deque(maxlen=size)
        self.in_flight: deque[int] = deque(maxlen=size)
        self.gate_waits: deque[bool] = deque(maxlen=size)
        self.lag_s: deque[float] = deque(maxlen=size)

    def add(self, view: CrawlView, lag_s: float) -> None:
        """One look."""
        self.held.append(view.held_back())
        self.backed_out.append(view.backed_out())
        self.in_flight.append(view.in_flight())
        self.gate_waits.append(view.gate_waits())
        self.lag_s.append(lag_s)

    def lag_p99_s(self) -> float:
        """99th percentile of the event loop's lateness."""
        return sorted(self.lag_s)[(len(self.lag_s) * 99) // 100 - 1] if self.lag_s else 0.0


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


_PAGE_BYTES = resource.getpagesize()
_STATM = Path("/proc/self/statm")


def rss_bytes() -> int:
    """Memory of this process; its peak where the system does not tell the current one."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
