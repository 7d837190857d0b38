"""Whether a host's answers queue: their latency against the best that the host showed.

A queue multiplies the latency; so logarithms are compared, and their means, which behave whatever
the latencies look like: heavy tails, two hosts behind one name. How much one answer proves depends
on how far answers scatter, which is measured too.
"""

from __future__ import annotations

import math

from .law import LAW, Law

_LEAST_S = 1e-4
_EXACT = 6.0  # the base is known well enough to this part of the rise that is looked for


class Queue:
    """Tells a rise of the latency by `slow_ratio` from its scatter.

    A CUSUM of log-likelihood ratios: with b the base, d = ln(slow_ratio) and v the variance, an
    answer of log-latency x adds (x - b - d/2) d / v, never below zero.

    Source: E. S. Page, "Continuous Inspection Schemes", Biometrika 41 (1954).
    """

    __slots__ = ("_base", "_law", "_logs", "_score", "_seen", "_variance")

    def __init__(self, *, law: Law = LAW) -> None:
        self._law = law
        self._logs: list[float] = []  # of this window
        self._base = 0.0
        self._seen = 0.0  # answers behind the base; 0 while it is unknown
        self._variance = 0.0  # of one answer's logarithm
        self._score = 0.0

    def restart(self) -> None:
        """The load has changed: what was seen of the window says nothing more."""
        self._logs.clear()
        self._score = 0.0

    def slow(self, latency_s: float) -> bool:
        """Note an answer; True if it shows a queue."""
        law, x = self._law, math.log(max(latency_s, _LEAST_S))
        self._logs.append(x)
        if not self._seen:
            return False
        rise = math.log(law.slow_ratio)
        variance = max(self._variance, 0.25 * rise * rise)  # clocks and loops scatter too
        over = x - self._low(rise) - self._doubt(self._seen) - 0.5 * rise
        most = (1.0 - law.quarter) * law.score
        self._score = max(0.0, self._score + min(over * rise / variance, most))
        return self._score >= law.score

    def calm(self, *, alone: bool) -> bool:
        """Close the window; True if it shows no rise that could be the beginning of a queue.

        *alone*: no request had company, so that its latency is the host's own.
        """
        logs, law = self._logs, self._law
        n = len(logs)
        if n <= 1:
            return True
        mean = math.fsum(logs) / n
        scatter = math.fsum((x - mean) ** 2 for x in logs) / (n - 1)
        logs.clear()
        if not self._seen:
            self._base, self._seen, self._variance = mean, float(n), scatter
            return True
        self._variance += (scatter - self._variance) * n / (n + min(self._seen, law.suspect_within))
        error, doubt = self._doubt(n), self._doubt(self._seen)
        over = mean - self._base
        rise = math.log(law.slow_ratio)
        if -2.0 * (error + doubt) <= over <= error + doubt:  # as ever: know it better
            self._base += over * n / (self._seen + n)
            enough = max(law.max_window, self._variance * (_EXACT / rise) ** 2)
            self._seen = min(self._seen + n, enough)
        elif alone:  # a host that became slower by itself
            self._base, self._seen = mean, float(n)
        elif over < 0.0:
            self._base += 0.5 * (over + error)
        return mean - error - doubt < self._low(rise) + rise + math.log(law.quarter)

    def _low(self, rise: float) -> float:
        """The base, but no lower than lets what is calm in any case pass for calm."""
        return max(self._base, math.log(self._law.calm_latency_s) - 0.5 * rise)

    def _doubt(self, n: float) -> float:
        """Standard error of a mean of *n* answers."""
        return math.sqrt(self._variance / n)
