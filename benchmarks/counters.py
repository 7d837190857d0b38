"""What every crawl pays so that it can be seen, also where nobody looks: counters a page, a sample and looks a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from extensions.book import Book
from extensions.looks import LOOKS_PER_TICK, Looks
from extensions.policy.outcome import Outcome

from .polls import large
from .scenarios import Table

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = 200
BATCHES = 7


def counters(_: int) -> Table:
    """Processor time of each, where the machine disturbed it least."""
    book, looks = Book(), Looks()
    sampler = large(30)

    def a_page() -> None:
        book.taken("a.example")
        book.answered("a.example", Outcome.SUCCESS, latency_s=0.1, what="200", now_at=1e9)
        book.parsed("a.example", now=1.0, now_at=1e9)

    rows = [
        ("counters, a page", f"{_least_us(a_page):.1f}"),
        ("a sample, 30 domains, a second", f"{_least_us(sampler.tick):.0f}"),
        (
            "looks, a second",
            f"{LOOKS_PER_TICK * _least_us(lambda: looks.add(sampler.view, 0.0)):.0f}",
        ),
    ]
    return Table("What is counted also where nobody looks", ("what", "CPU us"), rows)


def _least_us(call: Callable[[], object]) -> float:
    least = float("inf")
    for _ in range(BATCHES):
        began = time.thread_time()
        for _ in range(TIMES):
            call()
        least = min(least, (time.thread_time() - began) / TIMES)
    return least * 1e6
