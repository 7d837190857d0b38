"""`demo`: the whole of Sluice on a hostile site, in short."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_twisted

from extensions.arguments import BadArgument
from extensions.trial import scaled
from spiders.demo import DemoSpider


@pytest_twisted.ensureDeferred
async def test_the_table_agrees_with_the_crawl(crawl, capsys):
    result = await crawl(DemoSpider, scale="0.02")
    hosts = scaled(0.02)
    out = capsys.readouterr().out
    table = out[out.index("host  ") :].splitlines()
    rows = {line.split()[0]: line.split() for line in table[2 : 2 + len(hosts)]}
    for host in hosts:
        assert int(rows[host.name][1]) + int(rows[host.name][4]) == host.pages
    assert sum(int(row[1]) for row in rows.values()) == len(result.items)
    assert rows["broken"][4] == "5"
    assert "5 pages always fail" in out
    assert result.reason == "finished"
    assert result.stats["sluice/dead_letters"] == 5
    assert not Path("deadletters").exists()  # nobody could ever replay them


@pytest.mark.parametrize("scale", ["0", "-1", "much", "nan", "11"])
def test_a_scale_must_be_a_share(scale):
    with pytest.raises(BadArgument, match="give a share of the pages"):
        DemoSpider(scale=scale)


@pytest_twisted.ensureDeferred
async def test_through_its_own_proxies_it_gets_the_same(crawl, capsys):
    result = await crawl(DemoSpider, scale="0.02", proxies="1")
    assert result.stats["sluice/proxies"] == 8
    assert len(result.items) == sum(host.good_pages for host in scaled(0.02))
    assert result.stats["sluice/dead_letters"] == 5
    assert "on the proxies:" in capsys.readouterr().out


def test_it_has_proxies_or_none():
    with pytest.raises(BadArgument, match="give 1"):
        DemoSpider(proxies="many")
