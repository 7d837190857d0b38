"""`scrapy runspider` refuses and ends as `scrapy crawl` does."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import ROOT
from tests.sites import Site


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.py"], "File not found: nothing.py"),
        (["notes.txt"], "not a Python source file"),
        (["empty.py"], "No spider found in file: empty.py"),
        (["broken.py"], "Unable to load 'broken.py': No module named 'nowhere'"),
        (["mine.py"], "an argument is missing; add -a seeds=FILE"),
        (["mine.py", "-a", "seeds=nothing"], "seeds=nothing: no such file"),
    ],
)
def test_what_cannot_work_is_one_line_and_exit_code_2(scrapy_cli, tmp_path, arguments, message):
    shutil.copy(ROOT / "spiders" / "pages.py", tmp_path / "mine.py")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.py").write_text("import nowhere\n")
    (tmp_path / "notes.txt").write_text("")
    done = scrapy_cli("runspider", *arguments, "-L", "ERROR")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1, done.err
    assert message in done.err


def test_a_spider_in_a_file_is_crawled(scrapy_cli, tmp_path):
    shutil.copy(ROOT / "spiders" / "pages.py", tmp_path / "mine.py")
    with Site() as site:
        (tmp_path / "seeds.txt").write_text("\n".join(site.urls(5)))
        done = scrapy_cli("runspider", "mine.py", "-a", "seeds=seeds.txt")
        assert done.code == 0, done.err
        (tmp_path / "seeds.txt").write_text(site.url("/status/404"))
        assert scrapy_cli("runspider", "mine.py", "-a", "seeds=seeds.txt").code == 3
    assert len((tmp_path / "results" / "pages.jsonl").read_text().splitlines()) == 5
