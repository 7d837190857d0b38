"""When a failed request comes back: later, jittered, and within a budget of the domain's traffic."""

from __future__ import annotations

MIN_RETRIES_PER_S = 1.0
"""What a domain may always retry: without it the last few retries of a finished domain would wait for traffic that never
comes. Source: Finagle's RetryBudget, minRetriesPerSec, scaled down from ten to one domain of a crawl."""
RESERVE = 10.0
"""Retries saved up at the most: a short burst of failures comes back at once."""


def delay_s(attempt: int, *, base_s: float, cap_s: float, u: float) -> float:
    """Seconds to wait before retry *attempt*: exponential, with full jitter.

    Args:
        attempt: Failures so far, 1 for the first retry.
        base_s: First delay in seconds; 0 <= base_s <= cap_s.
        cap_s: Largest delay in seconds.
        u: A uniform draw from [0, 1), supplied by the caller.

    Returns:
        A delay in [0, min(cap_s, base_s * 2 ** (attempt - 1))).

    Raises:
        ValueError: attempt < 1.

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, the full-jitter variant.
    """
    if attempt < 1:
        raise ValueError(f"attempt={attempt}: the first retry is attempt 1")
    # 2 ** 60 is past any cap; an attempt number out of a tampered row must not make a number of a thousand digits.
    return u * min(cap_s, base_s * 2.0 ** min(attempt - 1, 60))


class RetryBudget:
    """How soon one domain may send its next retry, so that retries stay a share of its traffic.

    `balance` grows by *ratio* with each fresh request and by `MIN_RETRIES_PER_S` with time; a retry takes one. A retry over
    the budget is postponed to the time at which the balance will have grown to it: never dropped.

    Args:
        ratio: Retries a fresh request pays for, 0 to 1.
        now: Monotonic seconds.

    Source: Finagle's RetryBudget.
    """

    __slots__ = ("_at", "_balance", "_ratio")

    def __init__(self, *, ratio: float, now: float) -> None:
        self._ratio = ratio
        self._balance = RESERVE
        self._at = now

    def fresh(self) -> None:
        """A request was sent that is no retry."""
        self._balance = min(RESERVE, self._balance + self._ratio)

    def reserve(self, now: float) -> float:
        """Take one retry. Returns the seconds, 0 or more, that it must be put off for."""
        self._balance = min(RESERVE, self._balance + max(0.0, now - self._at) * MIN_RETRIES_PER_S)
        self._at = now
        self._balance -= 1.0
        return max(0.0, -self._balance / MIN_RETRIES_PER_S)
