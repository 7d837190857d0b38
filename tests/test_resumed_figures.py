"""What a resumed job shows of itself at once: no page twice, and no guess from two pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_twisted import ensureDeferred

from extensions.book import Book
from extensions.overview import Overview
from spiders.pages import PagesSpider

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from extensions.snapshot import Snapshot
    from tests.sites import Site

SEEDS = 400


class Watched(PagesSpider):
    """Keeps what is shown in each second."""

    name = "pages"
    shown: list[Snapshot]

    def parse(self, response: Any) -> Any:
        """Look, and yield as ever."""
        sampler = self.crawler.get_extension(Overview).sampler
        assert sampler is not None
        if not self.shown:
            sampler.tick()
            self.shown.append(sampler.snapshot)
        yield from super().parse(response)


@ensureDeferred
async def test_a_resumed_job_knows_no_more_pages_than_there_are(
    crawl: Callable[..., Any], site: Site, tmp_path: Path
) -> None:
    """Its `start()` yields again what is known; that is no page more."""
    (tmp_path / "seeds.txt").write_text("\n".join(site.urls(SEEDS)))
    settings = {"JOBDIR": "job", "SLUICE_MAX_PENDING": 50, "CONCURRENT_REQUESTS": 4}
    known, times = [], []
    for most in (60, 120, 0):
        Watched.shown = []
        await crawl(Watched, {**settings, "CLOSESPIDER_PAGECOUNT": most}, seeds="seeds.txt")
        known.append([shown.account.known for shown in Watched.shown])
        times.append(Watched.shown[0].times_known)
    assert [abs(each[0] - SEEDS) <= SEEDS // 10 for each in known] == [True] * 3, known
    assert times == [False] * 3


def test_seeds_that_come_again_are_not_unread() -> None:
    """Until the first new one comes, what earlier processes took on is taken from what is left."""
    before = Book()
    before.seeds = 100
    book = Book()
    book.restore(before.totals())
    assert book.unread(400) == 300
    book.seeds_again += 60
    assert book.unread(340) == 300
    book.seeds_again += 40
    assert book.unread(300) == 300
    book.seeds += 1
    assert book.unread(299) == 299


def test_another_list_of_seeds_is_all_unread() -> None:
    """As soon as one of it is new."""
    book = Book()
    book.restore({"seeds": 100})
    book.seeds += 1
    assert book.unread(50) == 50
