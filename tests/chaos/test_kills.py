"""A job that is killed again and again ends as if nothing had happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_twisted import ensureDeferred
from twisted.internet.threads import deferToThread

from tests.chaos.lives import IN_FLIGHT, Lives, check, moments
from tests.sites import Host, Site

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 150
POINTS = [
    ("committed", 13),
    ("popped, not leased", 12),
    ("leased, not committed", 14),
    ("before a commit", 9),
    ("half of a batch", 6),
    ("in a refill", 2),
    ("before COMMIT", 9),
    ("half a line", 2),
    ("written, not marked", 2),
    ("marked, not forgotten", 2),
    ("at the end", 1),
]


@ensureDeferred
async def test_kills_at_random_moments_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    def run() -> None:
        with Site(Host(latency_s=0.02)) as site:
            lives = Lives(site, tmp_path, pages=PAGES)
            for seconds in moments(seed=26, count=4, longest_s=0.8):
                lives.die_after(seconds)
            outcome = lives.finish()
        check(outcome, PAGES)
        # What was in flight, and what was handed out within a flush interval of the kill.
        assert outcome.fetched_again <= outcome.kills * 2 * IN_FLIGHT

    await deferToThread(run)


@ensureDeferred
async def test_kills_at_the_worst_points_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    def run() -> None:
        with Site(Host(latency_s=0.005)) as site:
            settings = {"SLUICE_MEMORY_WINDOW": 20}
            lives = Lives(site, tmp_path, pages=PAGES * 3, settings=settings)
            for point, nth in POINTS:
                assert lives.die_at(point, nth), f"the crawl never came to: {point}"
            check(lives.finish(), PAGES * 3)

    await deferToThread(run)
