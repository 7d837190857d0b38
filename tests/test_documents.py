"""What the documents say is what the code has."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import chain

import pytest

from extensions.config import PREFIX, Config
from spiders.demo import DemoSpider
from spiders.pages import PagesSpider
from spiders.site import SiteSpider
from spiders.sitemap import SitemapSpider
from tests.documents import DOCUMENTS, ROOT, metrics_table, renewed

CODE = [
    path
    for folder in ("extensions", "spiders", "project")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
STAT = re.compile(r"""["']((?:sluice)/[a-zA-Z0-9_/%{}.]+)["']""")


def named(path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_settings_tables_are_those_of_the_code(path):
    """Renew them with: python -m tests.documents."""
    text = path.read_text(encoding="utf-8")
    assert renewed(text) == text


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_setting_that_is_named_exists(path):
    known = {PREFIX + field.name.upper() for field in fields(Config)}
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"\bSLUICE_[A-Z0-9_]+", text)) <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_file_that_is_linked_exists(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (path.parent / target).exists(), target


def test_the_readme_leads_to_every_document():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in DOCUMENTS[1:]:
        assert f"(docs/{path.name})" in text, path.name


def test_stats_are_those_of_the_code():
    """Each in the code is in docs/stats.md, and each there is in the code."""
    text = (ROOT / "docs" / "stats.md").read_text(encoding="utf-8")
    said = {
        re.sub(r"<\w+>", "<>", name)
        for name in re.findall(r"^\| `(sluice/[^`]+)`", text, re.MULTILINE)
    }
    found = chain.from_iterable(STAT.findall(path.read_text(encoding="utf-8")) for path in CODE)
    used = {re.sub(r"%s|\{\w*\}", "<>", name) for name in found}
    assert said == used


def test_metrics_are_those_of_the_code():
    """The table is made from the code, and not empty; each label in it is explained."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = metrics_table()
    assert table in text
    assert table.count("| counter |") > 10
    rows = [row.split("|") for row in table.splitlines()[2:]]
    used = {label for row in rows for label in re.findall(r"`(\w+)`", row[3])}
    said = re.findall(r"^\|([^|]+)\|", text.partition("## Labels")[2], re.MULTILINE)
    assert used == {label for cell in said for label in re.findall(r"`(\w+)`", cell)}


def test_boards_and_rules_are_made_of_documented_metrics():
    table = metrics_table()
    for path in (ROOT / "deploy").rglob("*"):
        if path.suffix in {".json", ".yml", ".yaml"}:
            for name in re.findall(r"\bsluice_\w+", path.read_text(encoding="utf-8")):
                plain = re.sub(r"_(bucket|sum|count)$", "", name)
                assert f"`{name}`" in table or f"`{plain}`" in table, (path.name, name)


def test_every_command_of_the_readme_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in set(re.findall(r"^ *\|?.*?`?scrapy ([a-z][a-z-]*)", text, re.MULTILINE)) - {
        "project"
    }:
        ours = (ROOT / "extensions" / "commands" / f"{command}.py").exists()
        assert ours or command in {"list", "shell", "parse", "fetch"}, command


@pytest.mark.parametrize("spider", [PagesSpider, SiteSpider, SitemapSpider, DemoSpider])
def test_every_argument_of_a_spider_is_documented(spider):
    text = (ROOT / "docs" / "spiders.md").read_text(encoding="utf-8")
    words = [f"scrapy crawl {spider.name}"]
    words += [f"-a {a}={f}" for a, f in getattr(spider, "required_arguments", {}).items()]
    words += [f"[-a {a}={f}]" for a, f in getattr(spider, "optional_arguments", {}).items()]
    assert f"    {' '.join(words)}\n" in text


def test_every_option_that_the_readme_shows_exists(scrapy_cli):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("deadletters", "job"):
        shown = " ".join(re.findall(rf"scrapy {command} (.*)", text))
        options = set(re.findall(r"--[a-z-]+", shown))
        done = scrapy_cli(command, "-h")
        assert done.code == 0
        assert options <= set(re.findall(r"--[a-z-]+", done.out)), command
        for action in re.findall(rf"scrapy {command} ([a-z]+)", text):
            assert action in done.out
