"""What a trace shows, as the numbers of the lab's table."""

from __future__ import annotations

import bisect
import dataclasses
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .servers import Server
    from .simulation import Trace


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """A stretch of a run: shares of 1, of the capacity and of the answers."""

    goodput: float
    refused: float
    failed: float


def between(times: Sequence[float], since: float, until: float) -> int:
    """How many of the sorted *times* lie in [since, until)."""
    return bisect.bisect_left(times, until) - bisect.bisect_left(times, since)


def share(trace: Trace, server: Server, since: float, until: float, *, best: float) -> Share:
    """Goodput and losses from *since* to *until*.

    Args:
        trace: What happened.
        server: Knows its capacity.
        since: Virtual seconds at which the stretch begins.
        until: ... and ends.
        best: Requests a second that the client could get at all; bounds the capacity.
    """
    accepted = between(trace.accepted, since, until)
    refused = between(trace.refused, since, until)
    failed = between(trace.failed, since, until)
    capacity = min(server.capacity(since, until), best * (until - since))
    answers = max(1, accepted + refused + failed)
    return Share(accepted / max(capacity, 1e-9), refused / answers, failed / answers)


def reached_after_s(
    trace: Trace, server: Server, since: float, until: float, *, best: float, part: float = 0.9
) -> float:
    """Seconds from *since* until the accepted rate first reached *part* of the capacity.

    Measured over windows of two seconds or twenty requests at the capacity, whichever is longer;
    inf if it never did before *until*. Refusals must be under a tenth of the answers then.
    """
    rate = min(server.capacity(since, until) / (until - since), best)
    window_s = max(2.0, 20.0 / rate)
    at = since
    while at + window_s <= until:
        got = share(trace, server, at, at + window_s, best=best)
        if got.goodput >= part and got.refused <= 0.1:
            return at - since
        at += window_s / 20.0
    return math.inf
