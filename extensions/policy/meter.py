"""How many requests were accepted since when: the only honest measure of a rate limit."""

from __future__ import annotations

_BINS = 32
_FIRST_WIDTH_S = 0.05


class Meter:
    """Counts accepted requests by the time they left, in at most 32 bins of growing width.

    A token bucket of rate r and burst b accepts at most b + r t requests in any time t, and just
    r t between two moments at which it was empty. So a cycle from empty to empty *is* the limit,
    and every stretch of it gives a lower bound.
    """

    __slots__ = ("_counts", "_starts", "_width_s", "total")

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._counts: list[int] = []
        self._width_s = _FIRST_WIDTH_S
        self.total = 0

    @property
    def since_due(self) -> float | None:
        """Start of the cycle, or None before its first request."""
        return self._starts[0] if self._starts else None

    def restart(self, start_due: float) -> None:
        """Begin a new cycle at *start_due*."""
        self._starts = [start_due]
        self._counts = [0]
        self._width_s = _FIRST_WIDTH_S
        self.total = 0

    def accept(self, sent_due: float) -> None:
        """Count a request that was sent at *sent_due*; those from before the cycle do not count."""
        starts = self._starts
        if not starts:
            self.restart(sent_due)
            starts = self._starts
        if sent_due < starts[0]:
            return
        self.total += 1
        at = len(starts) - 1
        if sent_due >= starts[at] + self._width_s:
            if at + 1 == _BINS:
                self._halve()
                at = len(starts) - 1
            starts.append(sent_due)
            self._counts.append(1)
            return
        while sent_due < starts[at]:
            at -= 1
        self._counts[at] += 1

    def _halve(self) -> None:
        counts = self._counts
        del self._starts[1::2]
        self._counts = [a + b for a, b in zip(counts[::2], counts[1::2], strict=True)]
        self._width_s *= 2.0

    def accepted_rate(self, until_due: float, *, over_s: float) -> float:
        """Accepted requests a second over about the last *over_s* seconds before *until_due*."""
        count = 0
        for start, n in zip(reversed(self._starts), reversed(self._counts), strict=True):
            count += n
            if until_due - start >= over_s:
                return count / (until_due - start)
        since = self._starts[0] if self._starts else until_due
        return count / max(over_s, until_due - since)

    def best_stretch(self, until_due: float, *, burst: float) -> tuple[float, int, float]:
        """The best lower bound on the rate of a bucket of *burst* that was empty at *until_due*.

        The maximum of (accepted - burst) / time over all stretches of the cycle that end then:
        exact if the bucket was full at any moment of the cycle.

        Returns:
            That rate, and how many were accepted in how many seconds to give it.
        """
        best, count = (0.0, 0, 0.0), 0
        for start, n in zip(reversed(self._starts), reversed(self._counts), strict=True):
            count += n
            if count > burst and until_due > start:
                best = max(best, ((count - burst) / (until_due - start), count, until_due - start))
        return best

    def excess(self, until_due: float, *, rate: float) -> float:
        """The most that was accepted over *rate* in any stretch that ends at *until_due*."""
        best, count = 0.0, 0
        for start, n in zip(reversed(self._starts), reversed(self._counts), strict=True):
            count += n
            best = max(best, count - rate * (until_due - start))
        return best
