"""What a sampler gathers between two snapshots: looks at the crawl, marks of its totals, CPU time.

The rule it keeps: each is bounded, in number and in time.
"""

from __future__ import annotations

import resource
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .book import Book
    from .snapshot import CrawlView, Gauges

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


class Tape:
    """The crawl's running totals, second by second for ten minutes."""

    SECONDS = 600

    def __init__(self) -> None:
        self._marks: deque[Marks] = deque(maxlen=self.SECONDS + 1)

    def mark(self, now: float, book: Book, gauges: Gauges) -> None:
        """Write down the totals of this moment."""
        self._marks.append(
            Marks(
                now, book.got, book.refused, book.answers, book.retries_out, book.retries_in,
                gauges.results_written, gauges.links_found, gauges.seeds_read,
            )
        )  # fmt: skip

    def rate(self, name: str, span_s: int = 10) -> float:
        """Events a second over the last *span_s* samples."""
        if len(self._marks) < 2:
            return 0.0
        last, first = self._marks[-1], self._marks[max(0, len(self._marks) - 1 - span_s)]
        passed_s = last.now - first.now
        return (getattr(last, name) - getattr(first, name)) / passed_s if passed_s > 0 else 0.0

    def refused_share(self) -> float | None:
        """The share of refusals among the answers of the last ten minutes; None without an answer."""
        first, last = self._marks[0], self._marks[-1]
        answers, refused = last.answers, last.refused
        if len(self._marks) > self.SECONDS:
            answers, refused = answers - first.answers, refused - first.refused
        return refused / answers if answers > 0 else None


class CpuTime:
    """Which part of one core this process used in the last ten seconds."""

    def __init__(self) -> None:
        self._spent_s = time.process_time()
        self._shares: deque[float] = deque(maxlen=10)

    def mark(self, elapsed_s: float) -> None:
        """So many seconds have passed since the last mark."""
        if elapsed_s >= LOOK_S:
            spent_s = time.process_time()
            self._shares.append((spent_s - self._spent_s) / elapsed_s)
            self._spent_s = spent_s

    @property
    def share(self) -> float:
        """In 0..1, or above where threads work too."""
        return sum(self._shares) / len(self._shares) if self._shares else 0.0


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

    def held_share(self, why: str) -> float:
        """How often the scheduler's last answer was that."""
        return self.held.count(why) / len(self.held) if self.held else 0.0

    def backed_out_share(self) -> float:
        """How often answers waited for callbacks."""
        return sum(self.backed_out) / len(self.backed_out) if self.backed_out else 0.0

    def gate_waits_share(self) -> float:
        """How often the crawl waited for the spider's `start()`."""
        return sum(self.gate_waits) / len(self.gate_waits) if self.gate_waits else 0.0

    def mean_in_flight(self) -> float:
        """Requests at a site."""
        return sum(self.in_flight) / len(self.in_flight) if self.in_flight else 0.0

    def lag_p99_s(self) -> float:
        """99th percentile of the event loop's lateness."""
        return sorted(self.lag_s)[(len(self.lag_s) * 99) // 100 - 1] if self.lag_s else 0.0


_PAGE_BYTES = resource.getpagesize()
_STATM = Path("/proc/self/statm")


def rss_bytes() -> int:
    """Memory of this process; its peak where the system does not tell the current one."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
