"""Where every request is: the sum that must come out at each sample and at the end.

The rule it keeps: asked = got + dead letters + skipped + pending + delayed + in flight. Nothing is
counted twice and nothing vanishes; a difference other than zero is a bug, and is shown as one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The requests of a job, each in exactly one place.

    Attributes:
        asked: Distinct requests taken on; a retry or a redirect goes on with the same one.
        got: Answered and passed through the spider.
        dead: Given up, kept as dead letters.
        skipped: Left out on purpose: robots.txt, off site, filtered.
        pending: Known, not handed out.
        delayed: Due later.
        in_flight: At a site, or in the spider, now.
        unread: Estimate of the seeds that are not read yet; None if nothing says how many.
    """

    asked: int = 0
    got: int = 0
    dead: int = 0
    skipped: int = 0
    pending: int = 0
    delayed: int = 0
    in_flight: int = 0
    unread: int | None = 0

    @property
    def difference(self) -> int:
        """What is missing (above zero) or counted twice (under zero). Zero, always."""
        return self.asked - self.ended - self.left

    @property
    def ended(self) -> int:
        """Requests that will not change any more."""
        return self.got + self.dead + self.skipped

    @property
    def left(self) -> int:
        """Requests that are still to come."""
        return self.pending + self.delayed + self.in_flight

    @property
    def known(self) -> int:
        """All that is known to come, with the seeds not read yet."""
        return self.asked + (self.unread or 0)

    @property
    def done_share(self) -> float:
        """The ended part of what is known, in 0..1; 0 before anything is."""
        return min(1.0, self.ended / self.known) if self.known > 0 else 0.0
