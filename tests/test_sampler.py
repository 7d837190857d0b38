"""The snapshot: one moment's numbers from a crawl's plain counters."""

from __future__ import annotations

import json
import time

import pytest

from extensions.book import Book
from extensions.policy.bottleneck import Cause
from extensions.policy.outcome import Outcome
from extensions.rounds import SLICE
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow, Gauges


class PlainView:
    """A crawl as plain values, in place of a real one."""

    def __init__(self, domains: dict[str, DomainNow], **gauges: object) -> None:
        self.domains = domains
        self.values = gauges

    def gauges(self, now_at: float) -> Gauges:
        return Gauges(**self.values)  # type: ignore[arg-type]

    def working(self) -> list[str]:
        return list(self.domains)

    def domain(self, name: str, now: float) -> DomainNow | None:
        return self.domains.get(name)

    def held_back(self) -> str:
        return ""

    def in_flight(self) -> int:
        return 0

    def backed_out(self) -> bool:
        return False

    def gate_waits(self) -> bool:
        return False


def test_one_moment_adds_up_and_is_strict_json() -> None:
    """The account's sum comes out, the states are counted, and nothing is NaN."""
    book = Book()
    for _ in range(10):
        book.taken("a.example")
        book.taken("b.example")
    for second in range(4):
        book.parsed("a.example", now=float(second), now_at=1e9)
        book.answered("a.example", Outcome.SUCCESS, latency_s=0.2)
    book.buried("b.example", "timeout", url="http://b.example/<script>", now_at=1e9)
    view = PlainView(
        {
            "a.example": DomainNow(cause=Cause.PACE, pending=6),
            "b.example": DomainNow(cause=Cause.PARK, pending=8, delayed=1, wait_s=40.0),
        },
        pending_in_memory=14,
        delayed=1,
        seeds_done=True,
        max_in_flight=16,
    )
    sampler = Sampler(view=view, book=book, spider="pages", job="one")
    snapshot = sampler.tick()
    assert snapshot.account.difference == 0
    assert snapshot.states == {"limit": 1, "parked": 1}
    assert snapshot.times.unknown == 1
    assert book.rows["a.example"].median_s == pytest.approx(0.2)
    json.dumps(snapshot.as_json(), allow_nan=False)
    assert sampler.history.fine.seq == 1


def test_states_move_and_end() -> None:
    """A domain that leaves the work is done; each change is told once."""
    moves: list[tuple[str, str, str]] = []
    book = Book()
    view = PlainView({"a.example": DomainNow(cause=Cause.HOLD, pending=1, wait_s=9.0)})
    sampler = Sampler(
        view=view,
        book=book,
        spider="pages",
        job="",
        moved=lambda row, before, _: moves.append((row.name, before, row.state)),
    )
    sampler.tick()
    view.domains["a.example"] = DomainNow(cause=Cause.PACE, pending=1)
    sampler.tick()
    sampler.tick()
    view.domains.clear()
    snapshot = sampler.tick()
    assert moves == [
        ("a.example", "ready", "waiting"),
        ("a.example", "waiting", "limit"),
        ("a.example", "limit", "done"),
    ]
    assert snapshot.states == {"done": 1}


def test_a_look_at_twenty_thousand_domains_is_short() -> None:
    """However many domains, a look takes a slice of them."""
    book = Book()
    domains = {
        f"{n}.example": DomainNow(cause=Cause.PACE, pending=50, pace=1.0) for n in range(20_000)
    }
    for name in domains:
        book.taken(name)
    sampler = Sampler(view=PlainView(domains), book=book, spider="site", job="")
    spent = []
    for _ in range(2 * len(domains) // SLICE + 2):
        began = time.perf_counter()
        snapshot = sampler.tick()
        spent.append(time.perf_counter() - began)
    assert snapshot.states == {"limit": 20_000}
    assert min(spent) < 0.1
