"""A full disk holds a crawl up and loses nothing; a store that goes away closes it, with a reason."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from twisted.internet import task

from extensions import opening
from extensions.stores.base import StoreError
from extensions.stores.sqlite import SqliteJobStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest
    from scrapy.http import Response

    from tests.sites import Site

PAGES = 200


class TightStore(SqliteJobStore):
    """A store whose device is full for a while: SQLite itself says so."""

    made: list[TightStore] = []

    def open(self) -> Any:
        recovered = super().open()
        self.made.append(self)
        return recovered

    def set_room(self, *, full: bool) -> None:
        pages = self._connection().execute("PRAGMA page_count").fetchone()[0]
        self._connection().execute(f"PRAGMA max_page_count={pages if full else 1 << 30}")


class LateTrouble(SqliteJobStore):
    """A store that takes nothing any more once it is told so."""

    gone = False

    def commit(self, batch: Any) -> None:
        if self.gone:
            raise StoreError("the device is gone")
        super().commit(batch)

    def checkpoint(self) -> None:
        if self.gone:
            raise StoreError("the device is gone")
        super().checkpoint()


class Links(Spider):
    name = "links"
    url = ""

    async def start(self) -> Any:
        yield Request(self.url)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "filler": "x" * 2000}
        yield from response.follow_all(css="a")


@ensureDeferred
async def test_the_crawl_waits_while_the_disk_is_full_and_then_ends_as_if_nothing_was(
    crawl: Callable[..., Any], site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twisted.internet import reactor  # noqa: PLC0415

    TightStore.made.clear()
    monkeypatch.setattr(opening, "SqliteJobStore", TightStore)
    running = crawl(Links, {"JOBDIR": str(tmp_path / "job")}, url=site.url(f"/links/{PAGES}"))
    while not TightStore.made or site.stats().received < 10:
        await task.deferLater(reactor, 0.02)
    store = TightStore.made[0]
    store.set_room(full=True)
    received = -1
    while received != site.stats().received:  # until nothing is fetched any more
        received = site.stats().received
        await task.deferLater(reactor, 1.5)
    assert received <= PAGES
    store.set_room(full=False)
    done = await running
    assert done.reason == "finished"
    assert any("no room left" in text for text in done.messages())
    with closing(sqlite3.connect(tmp_path / "job" / "job.sqlite")) as con:
        assert con.execute("SELECT count(*) FROM request").fetchone() == (0,)
    lines = (tmp_path / "results" / "links.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines)) == PAGES + 1


@ensureDeferred
async def test_a_store_that_vanishes_closes_the_crawl_with_a_reason(
    crawl: Callable[..., Any], site: Site, tmp_path: Path
) -> None:
    from twisted.internet import reactor  # noqa: PLC0415

    overrides = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS_PER_DOMAIN": 2}
    running = crawl(Links, overrides, url=site.url(f"/links/{PAGES * 10}"))
    while site.stats().received < 10:
        await task.deferLater(reactor, 0.02)
    for path in (tmp_path / "job").glob("job.sqlite*"):
        path.unlink()
    done = await running
    assert done.reason == "store_failed"
    assert done.stats["sluice/exit_code"] != 0
    assert any("vanished" in str(record.exc_info) for record in done.logs if record.exc_info)


@ensureDeferred
async def test_a_store_that_fails_at_the_very_end_leaves_nothing_open(
    crawl: Callable[..., Any], site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sinks, the dead letters and the lock are let go, and one line says what failed."""

    class LastMoment(Links):
        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}
            LateTrouble.gone = True

    monkeypatch.setattr(LateTrouble, "gone", False)
    monkeypatch.setattr(opening, "SqliteJobStore", LateTrouble)
    job = {"JOBDIR": str(tmp_path / "job"), "LOG_LEVEL": "INFO"}
    done = await crawl(LastMoment, job, url=site.url("/page/1"), timeout_s=60)
    assert done.stats["sluice/exit_code"] == 75
    said = done.messages()
    assert len([text for text in said if text.startswith("The last commit failed")]) == 1
    assert not [text for text in said if "close failure" in text]
    assert not (tmp_path / "job" / "job.lock").exists()
    monkeypatch.setattr(LateTrouble, "gone", False)
    again = await crawl(Links, job, url=site.url("/page/1"), timeout_s=60)
    assert (again.reason, again.stats["sluice/parsed"]) == ("finished", 1)
    assert len((tmp_path / "results" / "links.jsonl").read_text().splitlines()) == 1
