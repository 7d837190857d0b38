"""The report: verdict first, in eighty columns, from plain values, also as HTML and Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from extensions import report
from extensions.book import Book
from extensions.policy.bottleneck import Cause
from extensions.reporthtml import html
from extensions.reportmarkdown import markdown_report
from extensions.reporttext import text_report
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from tests.test_sampler import PlainView

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "http://a.example/</script><script>alert(1)</script>|`x`\x07" + "y" * 5000


def data(
    *, lost: int = 0, finish: tuple[str, bool] | None = None, domains: int = 3
) -> dict[str, Any]:
    book = Book()
    working = {}
    for number in range(domains):
        name = f"host-with-quite-a-long-name-{number}.example"
        working[name] = DomainNow(cause=Cause.PACE, pending=0 if finish else 10)
        for page in range(100):
            book.taken(name)
            book.parsed(name, now=float(page), now_at=1e9)
    for number in range(lost):
        book.taken("lost.example")
        book.buried("lost.example", f"reason {number % 12}", url=HOSTILE, now_at=1e9)
    book.failed_in_spider("KeyError at spiders/pages.py:41")
    view = PlainView(working, pending_in_memory=0 if finish else 10 * domains)
    sampler = Sampler(view=view, book=book, spider="pages", job="nightly")
    for _ in range(70):
        sampler.tick()
    sampler.finish = finish
    sampler.tick()
    return report.report_data(sampler, job_dir="jobs/nightly", results="x.jsonl", fail_on="lost")


def test_a_complete_crawl_says_so_first() -> None:
    """The verdict is the first thing after the title."""
    text = text_report(data(finish=("finished", True)))
    assert text.split("\n\n")[1].startswith("COMPLETE: 300 pages in ")
    assert report.is_complete(data(finish=("finished", True)))


def test_an_incomplete_crawl_names_number_and_place() -> None:
    """How much is lost, and where most of it."""
    text = text_report(data(lost=40, finish=("finished", False)))
    verdict = " ".join(text.split("\n\n")[1].split("\n"))
    assert verdict == "INCOMPLETE: 40 of 340 pages lost, all on lost.example."
    assert "scrapy deadletters replay --spider pages" in text


def test_lost_items_are_no_pages() -> None:
    """Each kind is counted as what it is."""
    lost = data(lost=1, finish=("finished", False))
    lost["status"]["dead_total"] += 4
    assert report.verdict(lost).startswith("INCOMPLETE: 1 of 301 pages and 4 items lost, all on ")
    assert "dead letters, and 4 items" in text_report(lost)
    items = data(finish=("finished", False))
    items["status"]["dead_total"] = 1
    assert report.verdict(items) == "INCOMPLETE: 1 item lost."


def test_what_an_earlier_process_lost_is_put_on_no_other_domain() -> None:
    """The totals of a resumed job go on; its reasons and rows are those of this process."""
    resumed = data(lost=3, domains=1, finish=("finished", False))
    assert "on other domains" not in text_report(resumed)
    resumed["status"]["dead_total"] = resumed["status"]["account"]["dead_letters"] = 5
    lines = text_report(resumed).splitlines()
    assert "  and 2 more" in lines
    assert "        2  others, see scrapy deadletters list" in lines


def test_a_stopped_crawl_says_what_is_left() -> None:
    """A stop is not a loss."""
    stopped = data(finish=("shutdown", False))
    assert report.verdict(stopped) == "STOPPED (shutdown): 0 of 300 pages left and kept."
    stopped["status"]["job_kept"] = False
    assert "left and forgotten (no JOBDIR)" in report.verdict(stopped)


def test_a_running_crawl_says_what_holds_it_back() -> None:
    """The report of a job that still runs."""
    assert report.verdict(data()).startswith("RUNNING: ")


@pytest.mark.parametrize("finish", [None, ("finished", True), ("finished", False)])
def test_it_fits_eighty_columns_and_forty_five_lines(finish: tuple[str, bool] | None) -> None:
    """Whatever the names are."""
    lines = text_report(data(lost=500, finish=finish, domains=50)).splitlines()
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= 45
    assert all(line.isprintable() for line in lines)


def test_it_survives_its_file(tmp_path: Path) -> None:
    """What is read back is what was written; another version's file is refused by name."""
    made = data(lost=3)
    report.save(made, tmp_path)
    assert report.load(tmp_path) == json.loads(json.dumps(made))
    (tmp_path / report.FILE).write_text('{"version": 99}')
    with pytest.raises(ValueError, match="another version"):
        report.load(tmp_path)


def test_hostile_text_stays_text_in_html_and_markdown() -> None:
    """No site can put markup into a report."""
    made = data(lost=3, finish=("finished", False))
    page = html(made)
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "default-src 'none'" in page
    summary = markdown_report(made)
    assert "<script>" not in summary
    assert all(line.isprintable() for line in summary.splitlines())
