"""Looks for what is worth a look: gathers the facts of a crawl for `policy.findings`.

The rule it keeps: one pass over the domains, every ten seconds: two milliseconds for twenty thousand.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .policy.findings import Facts, findings

if TYPE_CHECKING:
    from .book import Book
    from .policy.findings import Finding
    from .snapshot import Snapshot

EVERY_TICKS = 10


def worth_a_look(
    snapshot: Snapshot, book: Book, *, here_s: float, time_limit_s: float
) -> tuple[Finding, ...]:
    """What is worth a look now.

    Args:
        snapshot: The crawl.
        book: Its counters.
        here_s: Seconds that it has run in this process.
        time_limit_s: CLOSESPIDER_TIMEOUT; 0: none.
    """
    s, known = snapshot, snapshot.times_known
    last = book.rows.get(s.times.last) if s.times.last is not None else None
    facts = Facts(
        difference=s.account.difference,
        closed=s.finish_reason is not None,
        running_s=s.running_s,
        here_s=here_s,
        time_limit_s=time_limit_s,
        needs_s=s.times.all_s if known else None,
        most_s=s.times.most_s if known else None,
        slowest=s.times.last,
        slowest_per_s=last.goodput.per_s(time.monotonic() - book.held_s) if last else None,
        asked=s.account.asked,
        pages=s.account.got,
        seconds=s.seconds,
        sink=s.gauges.sink,
        gives_results=s.gauges.results_bound > 0,
        results=book.results,
        lost_items=book.dead_items,
        skips=book.skips,
        bugs=book.bugs,
        max_in_flight=s.gauges.max_in_flight,
        proxies=s.gauges.proxies,
        healthy_proxies=s.gauges.healthy_proxies,
    )
    return findings(facts, book.rows.values())
