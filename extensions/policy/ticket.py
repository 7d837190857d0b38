"""What is remembered of a request between its sending and its answer."""

from __future__ import annotations


class Ticket:
    """When and under what belief a request was sent; opaque to the caller, who keeps it.

    An answer is judged by the belief that its request was sent under: a refusal of a request that
    left before the last cut is old news.
    """

    __slots__ = ("above", "alone", "cut", "level", "number", "pace", "probe", "sent_due")

    def __init__(
        self,
        *,
        sent_due: float,
        cut: int,
        level: int,
        pace: float,
        number: int,
        above: bool,
        alone: bool,
        probe: bool,
    ) -> None:
        self.sent_due = sent_due
        self.cut = cut  # number of cuts of the pace, and ...
        self.level = level  # ... of the concurrency, before it was sent
        self.pace = pace  # requests a second at which it was sent; inf without a pace
        self.number = number  # how many left before it, and itself
        self.above = above  # sent while looking for more than the mark
        self.alone = alone
        self.probe = probe
