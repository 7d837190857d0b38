"""The report of the job in a folder: the last one that was kept, brought up to the store's numbers.

The rule it keeps: what the store has committed is the truth. A report is kept every half minute and
at the end; a process that was killed could not keep its last one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import names, report
from .book import Book
from .sampler import Sampler
from .snapshot import Gauges
from .stores.sqlitereader import JobReader, JobSummary

if TYPE_CHECKING:
    from pathlib import Path

    from .snapshot import DomainNow

KILLED = "killed"  # shown in place of a finish reason: nothing and nobody closed the crawl


def job_report(folder: Path, *, kept: bool = True) -> dict[str, Any]:
    """The report of the job in *folder*, running, ended or killed.

    Args:
        folder: JOBDIR.
        kept: Begin with the last report that the crawl kept; else, and where there is none, only what the store knows.

    Raises:
        StoreError: there is no job, or it cannot be read.
        Exception: what was kept is damaged, or of another version: its form is not checked.
    """
    with JobReader(folder) as job:
        summary = job.summary(busiest=0)
    totals = _totals(summary)
    try:
        data = report.load(folder) if kept else _bare(summary, totals, folder)
    except FileNotFoundError:
        data = _bare(summary, totals, folder)
    status = data["status"]
    if summary.holder is None and status["finish_reason"] and summary.clock_at <= status["at"] + 1:
        return data
    _bring_up(data, summary, totals)
    return data


def _totals(summary: JobSummary) -> dict[str, int]:
    try:
        totals = json.loads(summary.facts.get(names.FACT_ACCOUNT, "{}"))
    except ValueError:
        return {}
    return totals if isinstance(totals, dict) else {}


def _bring_up(data: dict[str, Any], summary: JobSummary, totals: dict[str, int]) -> None:
    status, tally = data["status"], summary.tally
    account = status["account"]
    for shown, kept in (
        ("asked", "asked"), ("got", "got"), ("dead_letters", "dead"), ("skipped", "skipped")
    ):  # fmt: skip
        account[shown] = totals.get(kept, account[shown])
    account["pending"] = tally.pending + tally.window
    account["delayed"], account["in_flight"] = tally.delayed, tally.leased
    places = ("got", "dead_letters", "skipped", "pending", "delayed", "in_flight")
    account["difference"] = account["asked"] - sum(account[place] for place in places)
    status["dead_total"] = account["dead_letters"] + totals.get("dead_items", 0)
    status["results_written"] = max(0, totals.get("results", 0) - tally.outbox)
    status["results_waiting"] = tally.outbox
    status["exit_code"], status["exit_rule"] = None, ""
    later_s = max(0.0, summary.clock_at - status["at"])
    status["at"] += later_s
    status["running_s"] += later_s
    status["pages_per_s_mean"] = (
        account["got"] / status["running_s"] if status["running_s"] else 0.0
    )
    if summary.holder is None:
        status["finish_reason"] = KILLED
    else:
        status["finish_reason"] = None


def _bare(summary: JobSummary, totals: dict[str, int], folder: Path) -> dict[str, Any]:
    """A report of what the store alone knows."""
    book = Book()
    book.restore(totals)
    spider = summary.holder.spider if summary.holder is not None else ""
    sampler = Sampler(view=_AtRest(), book=book, spider=spider or "crawl", job=folder.name)
    sampler.tick()
    data = report.report_data(sampler, job_dir=str(folder), results="", fail_on="lost")
    status = data["status"]
    status["at"] = status["started_at"] = summary.clock_at
    status["running_s"] = 0.0
    if summary.holder is not None:
        status["started_at"] = min(summary.holder.since_at, summary.clock_at)
        status["running_s"] = status["at"] - status["started_at"]
        status["pid"] = summary.holder.pid
        status["bottleneck"]["sentence"] = "what holds it back is not kept yet."
    return data


class _AtRest:
    """A crawl of which nothing more than its totals is known; see `CrawlView`."""

    def gauges(self, now_at: float) -> Gauges:  # noqa: ARG002 - part of the protocol
        return Gauges()

    def working(self) -> list[str]:
        return []

    def domain(self, name: str, now: float) -> DomainNow | None:  # noqa: ARG002
        return None

    def held_back(self) -> str:
        return ""

    def in_flight(self) -> int:
        return 0

    def backed_out(self) -> bool:
        return False

    def gate_waits(self) -> bool:
        return False
