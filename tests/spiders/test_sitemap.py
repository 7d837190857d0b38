"""`sitemap`: from a site, its robots.txt, an index or a sitemap to the pages."""

from __future__ import annotations

import pytest
import pytest_twisted

from spiders.sitemap import SitemapSpider
from tests.sites import Answer, Route, Site

XML = (("Content-Type", "application/xml"),)


def urlset(*urls: str) -> str:
    return f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>"


def serve(site: Site, robots: str, files: dict[str, str]) -> None:
    routes = tuple(Route(path, (Answer(200, XML, body),)) for path, body in files.items())
    site.change(0, robots=robots, routes=routes)


@pytest.mark.parametrize("start", ["", "/", "/robots.txt", "/index.xml"])
@pytest_twisted.ensureDeferred
async def test_pages_are_found_from_each_beginning(crawl, site, start):
    index = f"<sitemapindex><sitemap><loc>{site.url('/one.xml')}</loc></sitemap></sitemapindex>"
    pages = [site.url("/page/1"), site.url("/page/2"), "ftp://a/"]
    serve(
        site,
        f"User-agent: *\nDisallow:\nSitemap: {site.url('/index.xml')}\n",
        {"/index.xml": index, "/one.xml": urlset(*pages)},
    )
    result = await crawl(SitemapSpider, url=site.url(start))
    assert sorted(item.url for item in result.items) == pages[:2]
    assert result.stats["sluice/sitemap/skipped"] == 1


@pytest_twisted.ensureDeferred
async def test_without_a_named_sitemap_the_usual_place_is_asked(crawl, site):
    serve(site, "User-agent: *\nDisallow:\n", {"/sitemap.xml": urlset(site.url("/page/1"))})
    assert len((await crawl(SitemapSpider, url=site.url("/"))).items) == 1


@pytest_twisted.ensureDeferred
async def test_what_is_no_sitemap_is_said(crawl, site):
    serve(site, "", {"/sitemap.xml": "<html></html>"})
    result = await crawl(SitemapSpider, url=site.url("/sitemap.xml"))
    assert result.items == []
    assert result.stats["sluice/sitemap/broken"] == 1
    assert any("is no whole sitemap: its root is <html>" in line for line in result.messages())
