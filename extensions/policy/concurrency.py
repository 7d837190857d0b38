"""The concurrency: how many requests a host answers at once without failing or queueing.

Doubles a window from two up while it is really used, until the first warning; then adds. Failures
are judged by a score, so that a few random ones move nothing; the latency by another, against the
best that the host showed. A cut for failures is paid for before more is tried.

Source of the two loops' separation and of "grow only while used": Netflix concurrency-limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .handover import number
from .law import LAW, Law
from .queueing import Queue
from .score import Score

if TYPE_CHECKING:
    from .handover import Kept

_START = 2


class Concurrency:
    """The concurrency loop of one domain."""

    __slots__ = (
        "_answered",
        "_ceiling",
        "_failures",
        "_good",
        "_law",
        "_level",
        "_paid",
        "_queue",
        "_score",
        "_seen",
        "_to_pay",
        "_warned",
        "cuts",
        "wanted",
    )

    def __init__(self, *, ceiling: int, law: Law = LAW) -> None:
        self._law = law
        self._ceiling = ceiling
        self._level = float(min(_START, ceiling))
        self._good = self._level
        self._queue = Queue(law=law)
        self._seen = 0
        self._score = Score(noise=law.failure_noise, step=law.failure_step)
        self._warned = False
        self._answered = False
        self._paid = 0
        self._to_pay = 0.0
        self._failures = 0
        self.cuts = 0
        self.wanted = False  # set by whoever was held back by this limit: only then it may grow

    @property
    def limit(self) -> int:
        """Requests that may be in flight, 1 to the ceiling."""
        return max(1, min(int(self._level), self._ceiling))

    def warn(self) -> None:
        """Something was refused: from now on add instead of doubling."""
        self._warned = True

    def set_ceiling(self, ceiling: int) -> None:
        """Never more than *ceiling* at once, at least 1."""
        self._ceiling = ceiling

    def passed(self, latency_s: float | None, level: int) -> None:
        """An answer; *latency_s* is None where its time says nothing of the host's load.

        *level* is the number of cuts before it was sent: what left before the last one tells of a
        queue that the cut has shortened.
        """
        self._answered = True
        self._score.passed()
        self._paid += 1
        self._seen += 1
        law = self._law
        if latency_s is not None and level == self.cuts and self._queue.slow(latency_s):
            self._cut(law.quarter * min(self._level, float(self._ceiling)))
            return
        if self._seen >= min(law.max_window, max(law.min_window, 2.0 * self._level)):
            self._seen = 0
            self._close()

    def failed(self, level: int) -> bool:
        """A timeout, reset or bare 5xx, sent after *level* cuts; True if it convicts."""
        self._paid += 1
        if level < self.cuts:  # old news, but it was lost all the same
            if self._to_pay:
                self._to_pay += 1.0 / self._law.cost_share
            return False
        self._failures += 1
        if self._score.failed() < self._law.score:
            return False
        self._to_pay = self._failures / self._law.cost_share
        self._failures = 0
        self._paid = 0
        now = min(self._level, float(self._ceiling))
        good = self._good if self._good < now else 0.0
        self._cut(max(good, self._law.quarter * now))
        return True

    def _cut(self, level: float) -> None:
        self.cuts += 1
        self._score.clear()
        self._queue.restart()
        self._seen = 0
        self._warned = True
        self._level = self._good = max(1.0, level)

    def start_from(self, level: float) -> None:
        """Take part of an earlier run's level."""
        self._level = min(max(self._level, level), float(self._ceiling))

    def kept(self) -> Kept:
        """What a new holder of the domain needs of it."""
        return {"concurrency": self.limit, "cuts": self.cuts, "warned": int(self._warned)}

    def take(self, kept: Kept) -> None:
        """Go on from a part of another holder's level: less of it where it was found by failures."""
        law, level = self._law, number(kept, "concurrency")
        self._warned = bool(kept.get("warned"))
        if number(kept, "cuts"):
            self._level = self._good = max(1.0, law.quarter * min(level, float(self._ceiling)))
        else:
            self.start_from(0.5 * level)

    def reopen(self, level: int) -> None:
        """The host is back after a silence: come back at most of the *level* it took before."""
        self.cuts += 1
        self._score.clear()
        self._queue.restart()
        self._seen = 0
        if not self._answered:  # it never answered before: nothing was learned
            self._level, self._to_pay, self._warned = float(min(_START, self._ceiling)), 0.0, False
        else:
            self._level = max(1.0, self._law.quarter * min(level, self._ceiling))
        self._good = self._level

    def _close(self) -> None:
        wanted, self.wanted = self.wanted, False
        calm = self._queue.calm(alone=self.limit == 1)
        law = self._law
        self._good = min(self._level, float(self._ceiling))
        if not self._to_pay:
            self._failures = 0
        elif self._paid >= self._to_pay:  # what still failed below the limit is noise
            self._score.learn(max(law.failure_noise, self._failures / self._paid))
            self._to_pay, self._paid, self._failures = 0.0, 0, 0
        if not wanted or self._level >= self._ceiling or not calm or self._paid < self._to_pay:
            return
        if self._warned:
            self._level += 1.0
        else:
            self._level *= 2.0
        self._level = min(self._level, float(self._ceiling))
