"""What the cases share: spiders that keep a diary, and the files that a crawl leaves."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class ListSpider(Spider):
    """Fetches `urls`, yields one item a page, and keeps the time of each."""

    name = "list"
    urls: tuple[str, ...] = ()
    meta: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parsed: list[str] = []
        self.parsed_due: list[float] = []
        self.drawn = 0

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            self.drawn += 1
            yield Request(url, meta=dict(self.meta))

    def parse(self, response: Response) -> Iterator[Any]:
        self.parsed.append(response.url)
        self.parsed_due.append(time.monotonic())
        yield {"url": response.url, "status": response.status}


def letters(folder: Path | str = ".") -> list[dict[str, Any]]:
    """Every dead letter below *folder*, as dictionaries."""
    rows: list[dict[str, Any]] = []
    for path in sorted(Path(folder).glob("deadletters/*.sqlite")):
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            rows += [dict(row) for row in connection.execute("SELECT * FROM letters ORDER BY id")]
    return rows


def results(folder: Path | str = ".") -> list[dict[str, Any]]:
    """Every result below *folder*, in order."""
    return [
        json.loads(line)
        for path in sorted(Path(folder).glob("results/*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def skipped(stats: dict[str, Any]) -> dict[str, int]:
    """Requests that were left out on purpose, by reason: Sluice's own counts and Scrapy's."""
    prefix = "sluice/skipped/"
    own = {name[len(prefix) :]: n for name, n in stats.items() if name.startswith(prefix)}
    scrapys = ("offsite/filtered", "urllength/request_ignored_count", "dupefilter/filtered")
    return own | {name: stats[name] for name in scrapys if name in stats}
