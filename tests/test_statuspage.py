"""The status page's server: nobody gets in, nothing gets stuck, everything is text."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from scrapy.utils.defer import deferred_f_from_coro_f

from extensions import statuspage
from extensions.book import Book
from extensions.pagefiles import chart_library
from extensions.policy.bottleneck import Cause
from extensions.policy.outcome import Outcome
from extensions.policy.outcomes import KEPT
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from extensions.statusdata import domains_json
from extensions.statuspage import MAX_CONNECTIONS, StatusPage
from extensions.stores.deadletter_filters import LetterFilter
from extensions.stores.deadletters import DeadLetterError, DeadLetterFile
from tests.letters import letter
from tests.test_sampler import PlainView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from extensions.stores.deadletters import Row

TOKEN = "let-me-in"  # noqa: S105 - of a page that lives for one test
HOSTILE = "http://a.example/<script>alert(1)</script>\x00\x1b[31m" + "x" * 100_000


class Done:
    """Actions that only remember what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    async def replay_one(self, id_: int) -> str:
        self.asked.append(("replay_one", id_))
        return "asked for again"

    def __getattr__(self, name: str) -> Any:
        def act(*values: Any) -> str:
            self.asked.append((name, *values))
            return name

        return act


def sampler() -> Sampler:
    book = Book()
    book.taken("a.example")
    book.buried("a.example", "timeout", url=HOSTILE, now_at=1e9)
    view = PlainView({"a.example": DomainNow(cause=Cause.PACE, pending=6)})
    made = Sampler(view=view, book=book, spider="<b>spider", job="one")
    made.tick()
    return made


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    page = StatusPage(sampler=options.pop("sampler", None) or sampler(), **options)
    url = await page.start()
    assert url is not None
    try:
        async with aiohttp.ClientSession() as session:
            yield url, session
    finally:
        await page.stop()


@deferred_f_from_coro_f
async def test_the_page_and_its_parts_are_served_with_a_strict_policy() -> None:
    """HTML, styles, scripts, JSON and history; nothing inline, nothing from elsewhere."""
    async with served() as (url, session):
        page = await (await session.get(url)).text()
        names = [part.split('"')[0] for part in page.split('="static/')[1:]]
        assert {"page.css", "page.js", "domains.js"} <= set(names)
        for path in [
            "",
            "status.json",
            "domains.json",
            "history.f32",
            *(f"static/{n}" for n in names),
        ]:
            answer = await session.get(url + path)
            assert answer.status == 200
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "style=" not in page
        assert "http:" not in page
        assert (await session.get(url + "static/../statuspage.py")).status == 404


@deferred_f_from_coro_f
async def test_hostile_text_is_strict_json_and_bounded() -> None:
    """Markup, control characters and 100 kB of URL come as one harmless, short string."""
    async with served() as (url, session):
        body = await (await session.get(url + "status.json")).read()
    assert len(body) < 20_000
    assert body.isascii()
    assert json.loads(body)["dead_reasons"][0]["example"].startswith("http://a.example/<script>")


@deferred_f_from_coro_f
async def test_a_foreign_host_or_origin_gets_nothing() -> None:
    """A web page that somebody visits can neither look in (DNS rebinding) nor act."""
    actions = Done()
    async with served(token=TOKEN, actions=actions) as (url, session):
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await session.get(url, headers={"Host": "evil.example"})).status == 403
        for headers, status in [
            ({**right, "Origin": "http://evil.example"}, 403),
            ({**right, "Host": "evil.example"}, 403),
            ({**right, "Sec-Fetch-Site": "cross-site"}, 403),
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
        ]:
            answer = await session.post(url + "action/pause", json={}, headers=headers)
            assert answer.status == status
        assert (await session.get(url + "action/pause", headers=right)).status == 405
        plain = await session.post(url + "action/pause", data="x", headers=right)
        assert plain.status == 415
        assert actions.asked == []
        assert (await session.post(url + "action/pause", json={}, headers=right)).status == 200
    assert actions.asked == [("pause", "through the status page")]


@deferred_f_from_coro_f
async def test_without_a_token_nobody_can_act() -> None:
    """Read-only is the default, and an empty token is none."""
    actions = Done()
    for token in (None, ""):
        async with served(token=token, actions=actions) as (url, session):
            answer = await session.post(
                url + "action/stop", json={}, headers={"Authorization": "Bearer "}
            )
            assert answer.status == 403
            status = await (await session.get(url + "status.json")).json()
            assert status["actions"] is False
    assert actions.asked == []


@deferred_f_from_coro_f
async def test_a_taken_port_means_the_next_one_and_none_means_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The crawl goes on in both cases."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        async with served(port=taken) as (url, session):
            assert f":{taken}/" not in url
            assert (await session.get(url)).status == 200
    with caplog.at_level(logging.WARNING):
        nowhere = StatusPage(sampler=sampler(), host="192.0.2.1")
        assert await nowhere.start() is None
        await nowhere.stop()
    assert "the crawl goes on without" in caplog.text


@deferred_f_from_coro_f
async def test_silent_clients_and_a_huge_request_line_hold_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fifty clients that say nothing, one that says ten megabytes: the page still answers."""
    monkeypatch.setattr(statuspage, "SILENT_S", 0.2)
    async with served() as (url, session):
        port = int(url.rsplit(":", 1)[1].strip("/"))
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        assert (await session.get(url + "status.json")).status == 200
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /" + b"a" * 10_000_000)
        answer = b""
        with suppress(ConnectionError):
            await writer.drain()
            answer = await asyncio.wait_for(reader.read(100), 5)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
        writer.close()
        for quiet, out in silent:
            assert await asyncio.wait_for(quiet.read(), 5) == b""
            out.close()
        assert (await session.get(url + "status.json")).status == 200


@deferred_f_from_coro_f
async def test_connections_are_bounded() -> None:
    """One too many is closed at once."""
    async with served() as (url, _):
        port = int(url.rsplit(":", 1)[1].strip("/"))
        many = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_CONNECTIONS)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        for _, out in [*many, (reader, writer)]:
            out.close()


@deferred_f_from_coro_f
async def test_stopping_closes_the_sockets_even_in_the_middle_of_a_request() -> None:
    """After the end nothing listens."""
    page = StatusPage(sampler=sampler())
    url = await page.start()
    assert url is not None
    port = int(url.rsplit(":", 1)[1].strip("/"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /status.json HTTP/1.1\r\nHost: 127")
    await writer.drain()
    await page.stop()
    with suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    await page.stop()


@deferred_f_from_coro_f
async def test_a_poll_gets_the_rows_that_changed() -> None:
    """All rows at first; then those that changed and the order of all; all again for who missed too much."""
    book = Book()
    view = PlainView({f"{n}.example": DomainNow(cause=Cause.PACE, pending=n + 1) for n in range(9)})
    for name in view.domains:
        book.taken(name)
    made = Sampler(view=view, book=book, spider="site", job="")
    made.tick()
    async with served(sampler=made) as (url, session):

        async def poll(since: int | None, **query: str) -> dict[str, Any]:
            query |= {"sort": "domain", "dir": "asc", "limit": "5"}
            query |= {} if since is None else {"since": str(since)}
            answer: dict[str, Any] = await (
                await session.get(url + "domains.json", params=query)
            ).json()
            return answer

        first = await poll(None)
        assert first["whole"]
        assert [row["domain"] for row in first["rows"]] == [f"{n}.example" for n in range(5)]
        assert (await poll(first["seq"]))["rows"] == []
        book.parsed("3.example", now=1.0, now_at=1e9)
        view.domains["7.example"] = DomainNow(cause=Cause.PARK, pending=1)  # not among the five
        made.tick()
        later = await poll(first["seq"])
        assert not later["whole"]
        assert later["order"] == [f"{n}.example" for n in range(5)]
        assert [(row["domain"], row["pages"]) for row in later["rows"]] == [("3.example", 1)]
        assert later["states"] == {"limit": 8, "parked": 1}
        # a row that comes among the first is sent, though it has not changed
        book.rows["5.example"].name = "0.a.example"
        made.tick()
        assert [row["domain"] for row in (await poll(later["seq"]))["rows"]] == ["0.a.example"]
        for _ in range(20):
            made.tick()
            await poll(None)
        assert (await poll(first["seq"]))["whole"]
        assert (await poll(first["seq"], find="4."))["rows"][0]["domain"] == "4.example"


@deferred_f_from_coro_f
async def test_a_domain_tells_how_its_last_requests_ended() -> None:
    """The newest first, fifty at the most, with what a refusal said and how long it made us wait."""
    made = sampler()
    for n in range(3 * KEPT):
        made.book.answered("a.example", Outcome.SUCCESS, latency_s=0.25, what="200", now_at=1e9 + n)
    made.book.answered(
        "a.example", Outcome.REFUSED, latency_s=0.05, what="429, Retry-After 40 s",
        now_at=1e9 + 200, held_s=40.0,
    )  # fmt: skip
    async with served(sampler=made) as (url, session):
        answer = await (await session.get(url + "domain.json?name=a.example")).json()
        assert answer["outcomes"][0] == {
            "at": 1e9 + 200, "what": "429, Retry-After 40 s", "outcome": "refused",
            "latency_ms": 50, "held_s": 40.0,
        }  # fmt: skip
        assert len(answer["outcomes"]) == KEPT
        assert answer["outcomes"][-1]["what"] == "200"
        assert answer["domain"]["refused_share"] > 0
        assert (await session.get(url + "domain.json?name=b.example")).status == 404


@deferred_f_from_coro_f
async def test_a_domain_tells_its_pace_over_time() -> None:
    """From the first answer on; a domain that nobody was asked of has none."""
    made = sampler()
    async with served(sampler=made) as (url, session):
        before = await (await session.get(url + "domain.json?name=a.example")).json()
        assert before["line"] is None
        made.book.answered("a.example", Outcome.SUCCESS, latency_s=0.1, now_at=1e9)
        line = made.book.rows["a.example"].line
        assert line is not None
        for second in range(21):
            line.mark(1e9 + second, 3 * second, 4.5 if second > 10 else None)
        after = (await (await session.get(url + "domain.json?name=a.example")).json())["line"]
    assert after["start_at"] == 1e9
    assert after["step_s"] == 2.0
    assert after["pages_per_s"][-5:] == [3.0] * 5
    assert (after["pace"][0], after["pace"][-1]) == (None, 4.5)


@deferred_f_from_coro_f
async def test_a_domains_dead_letters_are_told_one_by_one(tmp_path: Path) -> None:
    """URL, reason and when, the newest first, as text; a place that fails is said, and one can be asked for again."""
    failing, actions = False, Done()

    async def letters(domain: str, limit: int) -> list[Row]:
        if failing:
            raise DeadLetterError("the disk is gone")
        with DeadLetterFile(tmp_path / "dead.sqlite") as place:
            return list(place.rows(LetterFilter(domain=domain), limit=limit))

    with DeadLetterFile(tmp_path / "dead.sqlite") as place:
        place.open_run(job="one", spider="pages", arguments={})
        place.put_many(
            [
                letter(1, url=HOSTILE, domain="a.example", reason="timeout", last_at=10.0),
                letter(2, url="http://a.example/2", domain="a.example", reason="404", last_at=20.0),
                letter(3, url="http://b.example/3", domain="b.example"),
            ]
        )
    async with served(letters=letters, token=TOKEN, actions=actions) as (url, session):
        asked = url + "letters.json?domain=a.example"
        body = await (await session.get(asked)).read()
        found = json.loads(body)["letters"]
        assert [(each["reason"], each["last_at"]) for each in found] == [
            ("404", 20.0),
            ("timeout", 10.0),
        ]
        assert found[0]["url"] == "http://a.example/2"
        assert found[0]["replayable"]
        assert found[1]["url"] == HOSTILE[:2000]
        assert len(body) < 5000
        right = {"Authorization": f"Bearer {TOKEN}"}
        answer = await session.post(
            url + "action/letter/replay", json={"id": found[0]["id"]}, headers=right
        )
        assert answer.status == 200
        assert actions.asked == [("replay_one", found[0]["id"])]
        failing = True
        assert (await session.get(asked)).status == 503
    async with served() as (url, session):
        assert (await session.get(url + "letters.json?domain=a.example")).status == 404


@deferred_f_from_coro_f
async def test_two_days_of_minutes_are_there_after_a_reload() -> None:
    """The means of minutes, with the moment of the last of them; and a ribbon as long."""
    made = sampler()
    for _ in range(150):
        made.tick()
    async with served(sampler=made) as (url, session):
        answer = await session.get(url + "history.f32?step=60&since=0")
        body = await answer.read()
        width = len(answer.headers["X-Series"].split(","))
        assert (len(body) // 4, answer.headers["X-Step"]) == (2 * width, "60")
        fine = await session.get(url + "history.f32")
        late_s = float(fine.headers["X-Last-At"]) - float(answer.headers["X-Last-At"])
        assert late_s == pytest.approx(151 % 60)
        status = await (await session.get(url + "status.json?span=172800")).json()
        assert status["spans"]


def test_the_chart_library_is_the_known_one() -> None:
    """Both files are byte for byte those of npm's uPlot 1.6.31."""
    assert set(chart_library()) == {"uplot.js", "uplot.css"}


def test_twenty_thousand_domains_are_answered_in_a_moment() -> None:
    """The first rows and the counts: a tenth of a second at the most, on any machine."""
    book = Book()
    domains = {f"{n}.example": DomainNow(cause=Cause.PACE, pending=50) for n in range(20_000)}
    for name in domains:
        book.taken(name)
    made = Sampler(view=PlainView(domains), book=book, spider="site", job="")
    for _ in range(82):
        made.tick()
    assert made.snapshot is not None
    for sort in ("left_s", "domain", "pages", "state"):
        began = time.process_time()
        answer = domains_json(book, made.snapshot.states, sort=sort, limit=100)
        assert time.process_time() - began < 0.1
        assert len(answer["rows"]) == 100
        assert answer["total"] == 20_000
    found = domains_json(book, made.snapshot.states, find="199.example")
    assert found["matched"] == 20
