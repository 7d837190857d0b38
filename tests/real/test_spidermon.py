"""Spidermon beside Sluice: the example suite of deploy/ runs, passes and fails as it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.sites import Answer, Host, Route, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import ScrapyProcess

SETTINGS = (
    'EXTENSIONS={"spidermon.contrib.scrapy.extensions.Spidermon": 500}',
    "SPIDERMON_ENABLED=True",
    "SPIDERMON_ENGINE_STOP_MONITORS=monitors.CrawlSuite",
    "ROBOTSTXT_OBEY=False",
)


@pytest.mark.parametrize(("lost", "failures"), [(0, 0), (1, 1)])
def test_the_example_suite(
    tmp_path: Path, scrapy_cli: Callable[..., ScrapyProcess], lost: int, failures: int
) -> None:
    """All pass on a complete crawl; on a lossy one just the monitor of completeness fails."""
    with Site(Host(routes=(Route("/lost/*", (Answer(status=404),)),))) as site:
        urls = [*site.urls(5), *(site.url(f"/lost/{n}") for n in range(lost))]
        (tmp_path / "seeds.txt").write_text("\n".join(urls))
        settings = [word for setting in SETTINGS for word in ("-s", setting)]
        done = scrapy_cli(
            "crawl", "pages", "-a", "seeds=seeds.txt", *settings,
            PYTHONPATH=f"{ROOT}:{ROOT / 'deploy/spidermon'}",
        )  # fmt: skip
    assert "[Spidermon]" in done.err
    assert "3 monitors in" in done.err, done.err
    assert ("FAILED (failures=1)" in done.err) is bool(failures)
    assert ("The crawl/is complete... FAIL" in done.err) is bool(failures)
