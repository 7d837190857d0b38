"""What a request carries survives, or is named; the callback's other output is untouched.

Source: scrapy/scrapy#6119 (what cannot be stored is kept in memory in silence and lost in a crash),
rmax/scrapy-redis#68 (a lambda callback raises and breaks the callback).
"""

from __future__ import annotations

import datetime as dt
import functools
import threading
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from scrapy.http import FormRequest, JsonRequest

from tests.sites import Host, Route, Site
from tests.sites.script import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy.http import Response


@dataclass
class Book:
    title: str
    price: Decimal


class OwnRequest(Request):
    """A subclass with a field of its own."""

    attributes = (*Request.attributes, "shelf")

    def __init__(self, *args: Any, shelf: str = "", **kwargs: Any) -> None:
        self.shelf = shelf
        super().__init__(*args, **kwargs)


class Helper:
    def __init__(self, spider: Carrier) -> None:
        self._spider = spider

    def parse(self, response: Response) -> Any:
        return self._spider.note(response)


VALUES: dict[str, Any] = {
    "moment": dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC),
    "set": {1, 2},
    "bytes": b"\x00\xff",
    "money": Decimal("1.50"),
    "book": Book("Moby", Decimal(9)),
    "tuple": (1, ("two",)),
    "numbers": {1: "one"},
}
LIVING = ("lambda", "nested", "other", "partial", "generator", "lock", "large")


class Carrier(Spider):
    name = "carrier"
    base = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: dict[str, Any] = {}

    async def start(self) -> Any:
        yield Request(f"{self.base}/start", self.parse_start)

    def parse_start(self, response: Response) -> Iterator[Request]:
        def nested(answer: Response) -> Any:
            return self.note(answer)

        def url(name: str) -> str:
            return f"{self.base}/page/{name}"

        tags = ["before"]
        yield Request(url("mutated"), self.parse, cb_kwargs={"tags": tags})
        yield Request(url("lambda"), lambda r: self.note(r))  # noqa: PLW0108
        yield Request(url("nested"), nested)
        yield Request(url("other"), Helper(self).parse)
        yield Request(url("partial"), functools.partial(self.parse))
        yield Request(url("generator"), self.parse, cb_kwargs={"g": (i for i in "ab")})
        yield Request(url("lock"), self.parse, meta={"lock": threading.Lock()})
        yield Request(url("large"), self.parse, meta={"large": "x" * 5_000_000})
        for name, value in VALUES.items():
            yield Request(url(name), self.parse, cb_kwargs={"value": value})
        yield FormRequest(url("form"), self.parse, formdata={"a": "1"})
        yield JsonRequest(url("json"), callback=self.parse, data={"b": [1]})
        yield OwnRequest(url("own"), self.parse, shelf="left")
        yield Request(f"{self.base}/broken", errback=self.failed)
        tags.append("after")

    def parse(self, response: Response, **kwargs: Any) -> Any:
        return self.note(response, **kwargs)

    def failed(self, failure: Any) -> None:
        self.seen["broken"] = failure.value.response.status

    def note(self, response: Response, **kwargs: Any) -> dict[str, str]:
        name = response.url.rpartition("/")[2]
        self.seen[name] = kwargs or response.request
        return {"url": response.url}


@pytest.mark.parametrize("durable", [True, False], ids=["JOBDIR", "no JOBDIR"])
@pytest.mark.parametrize("window", [1000, 1], ids=["in memory", "spilled"])
@ensureDeferred
async def test_everything_arrives_wherever_it_waited(
    crawl: Callable[..., Any], tmp_path: Path, *, durable: bool, window: int
) -> None:
    route = Route("/broken", (Answer(status=404),))
    overrides: dict[str, Any] = {"SLUICE_MEMORY_WINDOW": window}
    if durable:
        overrides["JOBDIR"] = str(tmp_path / "job")
    with Site(Host(routes=(route,))) as site:
        done = await crawl(Carrier, overrides, base=site.url(""))
    seen = done.crawler.spider.seen
    assert done.reason == "finished"
    assert seen.keys() >= {*LIVING, *VALUES, "form", "json", "own", "broken", "mutated"}
    for name, value in VALUES.items():
        assert seen[name] == {"value": value}
        assert type(seen[name]["value"]) is type(value)
    assert seen["form"].body == b"a=1"
    assert seen["form"].method == "POST"
    assert seen["json"].body == b'{"b": [1]}'
    assert (type(seen["own"]), seen["own"].shelf) == (OwnRequest, "left")
    assert seen["broken"] == 404
    assert seen["mutated"] == {"tags": ["before"]}
    assert list(seen["generator"]["g"]) == ["a", "b"]
    if not durable:
        return
    assert done.stats["sluice/memory_only"] == len(LIVING)
    told = [text for text in done.messages() if "cannot be stored" in text]
    assert len(told) == 4
    for field in ("callback", "cb_kwargs['g']", "meta['lock']", "meta['large']"):
        assert sum(f"({field}:" in text for text in told) == 1


@ensureDeferred
async def test_by_a_setting_what_cannot_be_stored_becomes_a_dead_letter(
    crawl: Callable[..., Any], tmp_path: Path
) -> None:
    route = Route("/broken", (Answer(status=404),))
    overrides = {"JOBDIR": str(tmp_path / "job"), "SLUICE_UNSTORABLE": "dead-letter"}
    with Site(Host(routes=(route,))) as site:
        done = await crawl(Carrier, overrides, base=site.url(""))
    seen = done.crawler.spider.seen
    assert not seen.keys() & set(LIVING)
    assert seen.keys() >= {*VALUES, "form", "json", "own", "mutated"}
    assert done.stats["sluice/dead_letters/unstorable"] == len(LIVING)
