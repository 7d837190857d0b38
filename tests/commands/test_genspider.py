"""`scrapy genspider -t sluice` and `scrapy fixture`: what they write passes `scrapy check`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import scrapy_environment
from tests.sites import Answer, Host, Route, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def scrapy_there(tmp_path: Path) -> Callable:
    """`scrapy` with an empty package `myspiders` as the place for spiders."""
    (tmp_path / "myspiders").mkdir()
    (tmp_path / "myspiders" / "__init__.py").write_text("")
    where = ["-s", "SPIDER_MODULES=myspiders", "-s", "NEWSPIDER_MODULE=myspiders"]

    def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "scrapy", command, *arguments, *where],
            cwd=tmp_path,
            env=scrapy_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("name", "address", "module"),
    [
        ("shop", "shop.example", "shop"),
        ("my-shop.2", "http://127.0.0.1:8000/x?a=1", "my_shop_2"),
    ],
)
def test_as_generated_it_passes_its_check_and_the_linters(
    scrapy_there, tmp_path, name, address, module
):
    done = scrapy_there("genspider", "-t", "sluice", name, address)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "myspiders"
    assert (folder / "fixtures" / f"{module}.html").is_file()
    check = scrapy_there("check", name)
    assert check.returncode == 0, check.stderr
    assert "Ran 5 contracts" in check.stderr
    lint = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=100",
         "--select=ALL", "--ignore=D,INP,COM,CPY", folder],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert lint.returncode == 0, lint.stdout
    again = scrapy_there("genspider", "-t", "sluice", name, address)
    assert again.returncode == 1
    assert "exists" in again.stderr
    assert scrapy_there("genspider", "-t", "sluice", "--force", name, address).returncode == 0


def test_names_and_addresses_that_cannot_be(scrapy_there):
    for name, address in [("a b", "x.example"), ("a", 'http://x/"; import os'), ("a", "ftp://x")]:
        done = scrapy_there("genspider", "-t", "sluice", name, address)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1


def test_scrapys_own_templates_are_still_there(scrapy_there, tmp_path):
    assert "sluice" in scrapy_there("genspider", "-l").stdout
    assert "basic" in scrapy_there("genspider", "-l").stdout
    assert "@fixture" in scrapy_there("genspider", "-d", "sluice").stdout
    assert scrapy_there("genspider", "plain", "shop.example").returncode == 0
    assert (tmp_path / "myspiders" / "plain.py").is_file()


def test_a_recorded_page_answers_a_check(scrapy_there, tmp_path):
    page = Answer(
        200,
        (("Content-Type", "text/html; charset=iso-8859-1"), ("Set-Cookie", "secret=1")),
        "<title>Caf\u00e9</title><a href=/y>y</a>",
    )
    with Site(
        Host(routes=(Route("/x", (page,)), Route("/gone", (Answer(404, body="no"),))))
    ) as site:
        scrapy_there("genspider", "-t", "sluice", "shop", site.url("/x"))
        done = scrapy_there("fixture", site.url("/x"), "-o", "shop.html")
        assert done.returncode == 2
        assert "--force" in done.stderr
        done = scrapy_there("fixture", site.url("/x"), "-o", "shop.html", "--force")
        assert done.returncode == 0, done.stderr
        assert f"@url {site.url('/x')}\n    @fixture shop.html\n" in done.stdout
        done = scrapy_there("fixture", site.url("/gone"))
        assert "@fixture gone.html 404" in done.stdout, done.stderr
        site.close()
        failed = scrapy_there("fixture", site.url("/off"))
        assert failed.returncode == 1
        assert "Refused" in failed.stderr
    fixtures = tmp_path / "myspiders" / "fixtures"
    assert "Caf\u00e9".encode() in (fixtures / "shop.html").read_bytes()
    headers = (fixtures / "shop.html.headers").read_text()
    assert "iso-8859-1" in headers
    assert "secret" not in headers
    assert scrapy_there("check", "shop").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["myspiders"]
