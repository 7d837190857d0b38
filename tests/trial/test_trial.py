"""The trial's hosts do what they say, and the table says what they counted."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from scrapy.utils.defer import deferred_f_from_coro_f

from extensions.trial import HOSTS, HostResult, TrialHost, report, scaled
from extensions.trial.site import Seen, TrialSite


async def statuses(site: TrialSite, place: int, numbers) -> list[int]:
    async def fetch(session, number):
        async with session.get(site.url(place, number)) as answer:
            await answer.read()
            return answer.status, answer.headers.get("Retry-After")

    async with aiohttp.ClientSession() as session:
        return await asyncio.gather(*(fetch(session, number) for number in numbers))


@deferred_f_from_coro_f
async def test_each_host_does_what_it_says_and_counts_it():
    hosts = [
        TrialHost(name="limited", story="", pages=30, rate=0.01, burst=5, retry_after=True),
        TrialHost(name="flaky", story="", pages=30, fails_first=10, always={1: 404}),
        TrialHost(name="silent", story="", pages=30, rate=0.01, burst=5),
    ]
    site = TrialSite(hosts)
    await site.open()
    try:
        got = await statuses(site, 0, range(8))
        assert sorted(status for status, _ in got) == [200] * 5 + [429] * 3
        assert {wait for status, wait in got if status == 429} == {"100"}
        assert (site.seen(0).refused, site.seen(0).good) == (3, 5)
        flaky = [status for status, _ in await statuses(site, 1, [1, 9, 10, 10, 1])]
        assert sorted(flaky) == [200, 200, 404, 404, 503]
        assert site.seen(1).repeated == 2
        assert {w for _, w in await statuses(site, 2, range(8))} == {None}
        assert len({site.domain(place) for place in range(3)}) == 3
    finally:
        await site.close()


def test_a_shorter_trial_keeps_what_fails():
    assert all(0 <= n < host.pages for host in scaled(0.01) for n in host.always)
    assert [host.pages for host in scaled(1)] == [host.pages for host in HOSTS]
    assert {host.name: host.true_pace for host in HOSTS}["overloaded"] == pytest.approx(
        6.67, abs=0.01
    )


def test_the_table_is_plain_narrow_and_only_says_what_was_counted():
    hosts = [
        TrialHost(name="a", story="", pages=100, rate=20),
        TrialHost(name="b", story="", pages=10, workers=2, latency_s=0.5, always={3: 500}),
        TrialHost(name="c", story="", pages=2),
    ]
    results = [HostResult(dead=1), HostResult(), HostResult()]
    for n in range(99):
        results[0].note_page(n / 19, 18.5 if n > 20 else None, 3)
    for n in range(9):
        results[1].note_page(float(n), None, 2)
    seen = [Seen(refused=4, good=99), Seen(), Seen()]
    seen[0].hits.update([*range(100), 1, 2])
    text = report(hosts, results, seen, took_s=12.3)
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert rows["a"] == ["99", "4", "2", "1", "19.0", "18.5/s", "20.0/s"]
    assert rows["b"] == ["9", "0", "0", "0", "1.0", "2", "at", "once", "4.0/s"]
    assert rows["c"] == ["0", "0", "0", "0", "-", "unknown", "no", "limit"]
    assert "108 of the 111 pages that can be got, in 12 s" in text
    assert "4 of 102 requests were refused (3.9%)" in text
    assert max(map(len, text.splitlines())) <= 80
