"""Bad rows of an old job do not stop it: the good ones are crawled, the bad ones are kept apart.

Source: apify/apify-sdk-python#952, scrapy PR#5130 (a callback that is gone raises in the engine).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pytest_twisted import ensureDeferred
from scrapy import Request, Spider

from extensions.codec import RequestCodec
from extensions.stores.base import Batch, StoredRequest
from extensions.stores.deadletters import DeadLetterFile
from extensions.stores.sqlite import SqliteJobStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy.http import Response

    from tests.sites import Site

PENDING = 20


class Shop(Spider):
    """The next version: `parse_item` has become `parse_product`."""

    name = "shop"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parsed: list[str] = []

    async def start(self) -> Any:
        for _ in ():
            yield

    def parse_product(self, response: Response) -> None:
        self.parsed.append(response.url)


class ShopBefore(Spider):
    name = "shop"

    def parse_item(self, response: Response) -> None: ...

    def parse_product(self, response: Response) -> None: ...


def payloads(site: Site) -> list[bytes]:
    spider = ShopBefore()
    codec = RequestCodec(spider=spider)
    good = [codec.encode(Request(url, spider.parse_product)) for url in site.urls(PENDING)]
    good[3] = codec.encode(Request(site.url("/page/3"), spider.parse_item))
    good[5] = good[5][:20]
    good[7] = good[7].replace(b'{"url"', b'{"format":2,"url"')
    good[9] = good[9].replace(b'{"url"', b'{"class":"gone.module:Request","url"')
    good[11] = b"\x00\xff not even text"
    good[13] = good[13].replace(b'{"url"', b'{"class":"os:system","url"')
    return good


def stopped_job(folder: Path, site: Site) -> list[bytes]:
    store = SqliteJobStore(path=folder / "job.sqlite")
    store.open()
    rows = payloads(site)
    domain = site.domain()
    store.commit(
        Batch(inserts=[StoredRequest(i + 1, domain, 0, i, rows[i]) for i in range(PENDING)])
    )
    store.close()
    return rows


@ensureDeferred
async def test_good_rows_are_crawled_and_bad_ones_are_quarantined_with_their_bytes(
    crawl: Callable[..., Any], site: Site, tmp_path: Path
) -> None:
    rows = stopped_job(tmp_path / "job", site)
    bad = {3, 5, 7, 9, 11, 13}
    done = await crawl(Shop, {"JOBDIR": str(tmp_path / "job")})
    assert done.reason == "finished"
    expected = {site.url(f"/page/{i}") for i in range(PENDING) if i not in bad}
    assert set(done.crawler.spider.parsed) == expected
    assert done.stats["sluice/unreadable"] == len(bad)
    with DeadLetterFile(tmp_path / "deadletters" / "shop.sqlite") as file:
        letters = list(file.rows())
    assert {letter.reason for letter in letters} == {"unreadable"}
    assert {letter.payload for letter in letters} == {rows[i] for i in bad}
    assert any("parse_item" in letter.detail for letter in letters)


@ensureDeferred
async def test_a_newer_job_is_refused_with_a_plain_message_and_left_as_it_was(
    crawl: Callable[..., Any], site: Site, tmp_path: Path
) -> None:
    stopped_job(tmp_path / "job", site)
    path = tmp_path / "job" / "job.sqlite"
    with closing(sqlite3.connect(path)) as con:
        con.execute("PRAGMA user_version = 1000")
    before = path.read_bytes()
    done = await crawl(Shop, {"JOBDIR": str(tmp_path / "job")})
    assert done.reason != "finished"
    assert any("written by a newer version" in text for text in done.messages())
    assert path.read_bytes() == before
    assert site.stats().received == 0
