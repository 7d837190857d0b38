"""The status page in a real browser, during a real crawl of a real site."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.utils.defer import deferred_f_from_coro_f

from tests.browser import CHROMIUM, Browser
from tests.conftest import scrapy_environment
from tests.needs import needs
from tests.sites import Answer, Bucket, Host, Route, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs("chromium", found=CHROMIUM)
TOKEN = "open-sesame"  # noqa: S105 - of a page that lives for one test
SHOTS = os.environ.get("SLUICE_TEST_SHOTS")  # a folder in which pictures are kept


@contextmanager
def crawling(folder: Path) -> Iterator[tuple[Site, str]]:
    """A crawl of two hosts that lasts longer than the test, and its page's address."""
    hosts = [
        Host(limit=Bucket(rate=10, burst=5), robots="User-agent: *\nDisallow: /secret\n"),
        Host(limit=Bucket(rate=10, burst=5), routes=(Route("/lost/*", (Answer(status=404),)),)),
    ]
    with Site(*hosts) as site:
        urls = [*site.urls(2000, 0), *site.urls(2000, 1)]
        urls[3:3] = [site.url(f"/lost/%3Cscript%3Ealert(1)%3C/script%3E{'x' * 1500}", 1)]
        urls[5:5] = [site.url("/secret/1", 0)]
        (folder / "seeds.txt").write_text("\n".join(urls))
        command = [sys.executable, "-m", "scrapy", "crawl", "pages", "-a", "seeds=seeds.txt"]
        for setting in (
            "JOBDIR=job", "SLUICE_STATUS_PORT=0", f"SLUICE_STATUS_TOKEN={TOKEN}", "RETRY_TIMES=1",
        ):  # fmt: skip
            command += ["-s", setting]
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen(command, cwd=folder, env=scrapy_environment(), stderr=log) as running,
        ):
            try:
                yield site, address(folder)
            finally:
                running.kill()


def address(folder: Path) -> str:
    import time  # noqa: PLC0415

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        path = folder / "job/status.url"
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(0.1)
    raise AssertionError((folder / "log").read_text()[-3000:])


async def pausing_stops_one_domain(browser: Browser, site: Site, domain: str) -> None:
    """A pause through the page stops this domain and only this; a resume releases it."""
    await browser.js("document.querySelector('#domains td.dom button').click()")
    await act(browser, "Pause")
    await browser.until(f"{state_of(domain)} === 'paused'")
    await asyncio.sleep(1)
    before, other = site.stats(1).received, site.stats(0).received
    await asyncio.sleep(3)
    assert site.stats(1).received - before <= 1
    assert site.stats(0).received > other + 2
    if SHOTS:
        await browser.shot(Path(SHOTS) / "real-1280.png")
    await browser.js("document.querySelector('#domains td.dom button').click()")
    await act(browser, "Resume")
    await browser.until(f"{state_of(domain)} !== 'paused'")
    before = site.stats(1).received
    for _ in range(150):
        if site.stats(1).received > before + 5:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("a resumed domain is not asked again")


async def keys_are_enough(browser: Browser, domain: str) -> None:
    """Everything has a name for a screen reader; Tab goes round, Enter opens a domain, Escape closes it."""
    met = await browser.named()
    asks = {"button", "link", "textbox", "searchbox", "spinbutton", "image", "dialog", "table"}
    nameless = [
        role for role, name in met if role in asks - {"table", "dialog"} and not name.strip()
    ]
    assert nameless == []
    headings = [name for role, name in met if role == "heading"]
    assert "pages" in headings
    assert {"Domains", "Dead letters", "What changed"} <= set(headings)
    assert {role for role, _ in met} >= {"main", "banner", "contentinfo", "columnheader", "region"}
    assert await browser.js("document.documentElement.lang") == "en"
    assert await browser.js("document.querySelectorAll('h1').length") == 1
    assert await browser.js("!!document.querySelector('[aria-live=polite]').textContent")
    focused = "document.activeElement.textContent || document.activeElement.id"
    seen: list[str] = []
    for _ in range(60):
        await browser.press("Tab")
        seen.append(await browser.js(focused))
        if seen[-1] == domain:
            break
    assert seen[-1] == domain, seen
    assert {"Pause", "Stop…", "1 h", "find"} <= set(seen)
    assert await browser.js("getComputedStyle(document.activeElement).outlineStyle") != "none"
    await asyncio.sleep(1.5)  # a poll redraws the table
    assert await browser.js(focused) == domain
    await browser.press("Enter")
    await browser.until("document.querySelectorAll('#dialog[open] .past tbody tr').length > 5")
    past = await browser.js("document.querySelector('#dialog .past tbody').textContent")
    assert "200" in past
    assert domain in await browser.js("document.querySelector('#dialog-title').textContent")
    if SHOTS:
        await browser.shot(Path(SHOTS) / "real-domain-1280.png")
    await browser.press("Escape")
    await browser.until("!document.querySelector('#dialog[open]')")


async def hostile_text_is_text(browser: Browser) -> None:
    """A URL with markup in it is shown, and makes no element."""
    dead = await browser.until("document.querySelector('#dead .url')?.textContent")
    assert "script" in dead
    assert await browser.js("document.querySelectorAll('#dead script').length") == 0
    skipped = await browser.js("document.querySelector('#account').textContent")
    assert "1skipped" in skipped


async def one_dead_letter_is_replayed(browser: Browser, domain: str) -> None:
    """The domain's own dead letters are listed, its pace is drawn, and one letter is asked for again."""
    opens = f"document.querySelector('#domains button[data-domain=\"{domain}\"]')"
    await browser.until(f"!!{opens}")
    await browser.js(f"{opens}.click()")
    text = "document.querySelector('#dialog .letters').textContent"
    await browser.until(f"{text}.includes('404')")
    assert "/lost/%3Cscript%3E" in await browser.js(text)
    await browser.until("document.querySelectorAll('#dialog .line canvas').length === 1")
    assert "Pace: now" in await browser.js("document.querySelector('#dialog .plot').ariaLabel")
    if SHOTS:
        await browser.shot(Path(SHOTS) / "real-lost-1280.png")
    await browser.js("document.querySelector('#dialog .letters button').click()")
    await give_token(browser)
    await browser.until(f"document.querySelector('#dialog-title').textContent === '{domain}'")
    await browser.until(f"{text}.includes('on its way')")
    await browser.until("document.querySelector('#log').textContent.includes('asked for again')")
    await browser.press("Escape")
    await browser.until("!document.querySelector('#dialog[open]')")


async def act(browser: Browser, button: str) -> None:
    """Click a button of the dialog, and give the token if it is asked for."""
    find = (
        "[...document.querySelectorAll('#dialog-buttons button')].find(b => b.textContent === {})"
    )
    await browser.until(f"!!{find.format(repr(button))}")
    await browser.js(find.format(repr(button)) + ".click()")
    await give_token(browser)


async def give_token(browser: Browser) -> None:
    """Give it, if it is asked for."""
    await asyncio.sleep(0.3)
    if await browser.js("!!document.querySelector('#dialog[open] input.secret')"):
        await browser.js(
            f"document.querySelector('#dialog input.secret').value = '{TOKEN}';"
            "[...document.querySelectorAll('#dialog-buttons button')].find(b => b.textContent === 'Go on').click()"
        )


def state_of(domain: str) -> str:
    return (
        "[...document.querySelectorAll('#domains tbody tr')]"
        f".find(r => r.textContent.includes('{domain}'))?.querySelector('.stc')?.textContent"
    )


@deferred_f_from_coro_f
async def test_a_person_at_the_page(tmp_path: Path) -> None:
    """Numbers move, the table sorts and filters, a pause holds, a reload loses nothing."""
    with crawling(tmp_path) as (site, url):
        async with Browser() as browser:
            await browser.look(1280, 900)
            await browser.go(url)
            await browser.until("document.querySelectorAll('#domains tbody td.dom').length === 2")
            pages = "parseInt(document.querySelector('#progress').textContent.replace(/,/g, ''))"
            first = await browser.until(f"{pages} > 5 && {pages}")
            await browser.until(f"{pages} > {first + 5}")
            await browser.until("document.querySelectorAll('#charts canvas').length === 8")

            await hostile_text_is_text(browser)
            await keys_are_enough(browser, site.domain(0))

            await one_dead_letter_is_replayed(browser, site.domain(1))

            # sorting and filtering
            names = "[...document.querySelectorAll('#domains td.dom')].map(d => d.textContent)"
            await browser.js("document.querySelector('#domains th[scope] button').click()")
            await browser.until(f"JSON.stringify({names}) === JSON.stringify({names}.sort())")
            one = site.domain(1)
            await browser.js(
                f"const f = document.querySelector('#find'); f.value = '{one}';"
                "f.dispatchEvent(new Event('input'))"
            )
            await browser.until(f"JSON.stringify({names}) === JSON.stringify(['{one}'])")

            await pausing_stops_one_domain(browser, site, one)

            # a reload keeps the time lines
            points = "window.Sluice && document.querySelectorAll('#charts canvas').length === 8"
            await browser.js("location.reload()")
            await asyncio.sleep(0.5)
            await browser.until(points)
            label = await browser.js("document.querySelector('#charts .plot').ariaLabel")
            assert "highest" in label

            # the last ten minutes, by a click
            await browser.js("[...document.querySelectorAll('#spans button')][0].click()")
            title = "document.querySelector('#held-title').textContent"
            await browser.until(f"{title} === 'What held it back, last 10 minutes'")

            # dark, and a phone: nothing is wider than the window
            await browser.look(1280, 900, dark=True)
            await asyncio.sleep(1.5)
            if SHOTS:
                await browser.shot(Path(SHOTS) / "real-1280-dark.png")
            await browser.look(390, 800)
            await asyncio.sleep(1.5)
            assert await browser.js("document.documentElement.scrollWidth") <= 390
            if SHOTS:
                await browser.shot(Path(SHOTS) / "real-390.png")

            assert browser.complaints() == []
            assert {urlsplit(u).netloc for u in browser.requested()} == {urlsplit(url).netloc}

            # a stop through the page ends the crawl, and the page says so
            await browser.js("document.querySelector('#stop').click()")
            await act(browser, "Stop")
            await browser.until("document.body.classList.contains('stale') || "
                                "document.querySelector('#age').textContent.startsWith('ended')", 60)  # fmt: skip
