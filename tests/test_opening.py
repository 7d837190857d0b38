"""A job that cannot be opened ends the crawl before its first request, in one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from twisted.internet.threads import deferToThread

from extensions.stores.joblock import holder_of
from extensions.stores.sqlite import SqliteJobStore
from tests.cases.tools import ListSpider

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sites import Site


class One(Spider):
    name = "one"
    url = ""

    async def start(self) -> Any:
        yield Request(self.url)

    def parse(self, response: Any) -> None: ...


def damage(folder: Path, how: str) -> None:
    store = SqliteJobStore(path=folder / "job.sqlite")
    store.open()
    store.close()
    if how == "no database":
        store.path.write_bytes(b"not a database " * 100)
    else:
        store.path.write_bytes(store.path.read_bytes()[:8192])


@pytest.mark.parametrize("how", ["no database", "cut short"])
@ensureDeferred
async def test_a_broken_job_is_named_and_nothing_is_fetched(
    crawl: Callable[..., Any], site: Site, tmp_path: Path, how: str
) -> None:
    folder = tmp_path / "job"
    damage(folder, how)
    done = await crawl(One, {"JOBDIR": str(folder)}, url=site.url("/page/1"))
    assert done.reason == "store_failed"
    assert done.stats["sluice/exit_code"] != 0
    errors = [r for r in done.logs if r.levelname == "ERROR" and r.name.startswith("extensions")]
    assert [str(folder) in record.getMessage() for record in errors] == [True]
    assert errors[0].exc_info is None
    assert site.stats().received == 0


@ensureDeferred
async def test_a_second_process_is_refused_and_learns_who_works_on_the_job(
    scrapy_cli: Callable[..., Any], site: Site, tmp_path: Path
) -> None:
    store = SqliteJobStore(path=tmp_path / "job" / "job.sqlite", spider="first")
    store.open()
    try:
        done = await deferToThread(
            scrapy_cli,
            *("crawl", "site", "-a", f"url={site.url('/page/1')}", "-s", "JOBDIR=job"),
        )
    finally:
        store.close()
    assert done.code not in {0, 1, 2}
    assert "(spider first), since 20" in done.err
    assert "Traceback" not in done.err
    assert site.stats().received == 0


@ensureDeferred
async def test_results_that_can_go_nowhere_end_it_too_and_free_the_job(
    crawl: Callable[..., Any], site: Site, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    target = str(tmp_path / "file" / "results.jsonl")
    overrides = {"JOBDIR": str(tmp_path / "job"), "SLUICE_RESULTS": target}
    done = await crawl(One, overrides, url=site.url("/page/1"))
    assert done.reason == "sink_gone"
    assert site.stats().received == 0
    assert holder_of(tmp_path / "job" / "job.lock") is None


@ensureDeferred
async def test_a_results_file_can_be_named_after_the_job(crawl, site):
    """After JOBDIR's folder; without one each run has a file of its own."""
    pattern = {"SLUICE_RESULTS": "out/%(spider)s-%(job)s.jsonl"}
    await crawl(ListSpider, {**pattern, "JOBDIR": "jobs/monday"}, urls=site.urls(1))
    assert [path.name for path in Path("out").glob("*.jsonl")] == ["list-monday.jsonl"]
    for _ in range(2):
        await crawl(ListSpider, pattern, urls=site.urls(1))
    assert len(list(Path("out").glob("list-*.jsonl"))) == 3


@ensureDeferred
async def test_a_job_of_stock_scrapys_is_refused_and_left_as_it_is(crawl, site):
    """Taken over in silence it would begin anew."""
    job = {"JOBDIR": "job"}
    await crawl(
        ListSpider, {**job, "SLUICE_ENABLED": False, "CLOSESPIDER_PAGECOUNT": 1}, urls=site.urls(40)
    )
    left = {path: path.read_bytes() for path in Path("job").rglob("*") if path.is_file()}
    assert any("requests.queue" in path.parts for path in left)
    refused = await crawl(ListSpider, job, urls=site.urls(40))
    assert (refused.reason, refused.items) == ("store_failed", [])
    assert any("finish it with SLUICE_ENABLED=False" in text for text in refused.messages())
    assert {path: path.read_bytes() for path in left} == left
    assert not Path("job", "job.sqlite").exists()
    finished = await crawl(ListSpider, {**job, "SLUICE_ENABLED": False}, urls=site.urls(40))
    assert finished.reason == "finished"
