"""The report of a crawl as plain values: made, kept, read again; and its verdict.

The rule it keeps: it is made of the same plain values as the status page, so that it can be shown
at the end, of a job that still runs, and of one whose process is gone.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

from .policy.bottleneck import Code
from .policy.wording import count, duration, host, lost_of, middle
from .statusdata import domains_json, status_json

if TYPE_CHECKING:
    from pathlib import Path

    from .sampler import Sampler

FILE = "report.json"
VERSION = 1
MAX_POINTS = 600


def report_data(
    sampler: Sampler, *, job_dir: str | None, results: str, fail_on: str
) -> dict[str, Any]:
    """The report as plain values, as they are kept in the job's folder."""
    status = status_json(sampler, actions=False, can_look=False, span_s=math.inf)
    series, step, rows = _history(sampler)
    return {
        "version": VERSION,
        "status": status | {"results": results, "job_dir": job_dir, "fail_on": fail_on},
        "domains": domains_json(
            sampler.book, status["domains"]["states"], sort="dead_letters", limit=200
        ),
        "bugs": dict(sorted(sampler.book.bugs.items(), key=lambda item: -item[1])[:20]),
        "series": series,
        "step": step,
        "history": rows,
    }


def _history(sampler: Sampler) -> tuple[list[str], int, list[float | None]]:
    """At most `MAX_POINTS` samples of each series, over all of the time that is kept."""
    history = sampler.history
    ring, step = history.fine, 1
    if history.fine.seq > history.SECONDS:
        ring, step = history.mean, history.FOLD
    _, values = ring.since(0)
    width = len(history.series)
    samples = len(values) // width
    fold = max(1, math.ceil(samples / MAX_POINTS))
    rows: list[float | None] = []
    for start in range(samples % fold, samples, fold):
        for column in range(width):
            part = values[start * width + column : (start + fold) * width : width]
            known = [value for value in part if not math.isnan(value)]
            rows.append(round(sum(known) / len(known), 2) if known else None)
    return list(history.series), step * fold, rows


def save(data: dict[str, Any], folder: Path) -> None:
    """Put the report into *folder*, whole or not at all."""
    new = folder / f".{FILE}.{os.getpid()}"
    new.write_text(json.dumps(data, allow_nan=False, separators=(",", ":")), encoding="utf-8")
    new.replace(folder / FILE)


def load(folder: Path) -> dict[str, Any]:
    """The report in *folder*.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it cannot be read, or a later version wrote it.
    """
    data = json.loads((folder / FILE).read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError(f"{folder / FILE} was written by another version of Sluice")
    return data


# -- the verdict -----------------------------------------------------------------------------------


def is_complete(data: dict[str, Any]) -> bool:
    """Is nothing missing?"""
    status = data["status"]
    return status["finish_reason"] is not None and status["bottleneck"]["code"] == Code.FINISHED


def verdict(data: dict[str, Any]) -> str:
    """One line that says how it ended, or that it runs."""
    status = data["status"]
    account = status["account"]
    left = account["pending"] + account["delayed"] + account["in_flight"]
    lost = account["dead_letters"]
    lost_items = status["dead_total"] - lost
    if status["finish_reason"] is None:
        return f"RUNNING: {status['bottleneck']['sentence']}"
    if is_complete(data):
        return f"COMPLETE: {_pages(account['got'])} in {duration(status['running_s'])}."
    if status["finish_reason"] != "finished":
        kept = "kept" if status["job_kept"] else "forgotten (no JOBDIR)"
        more = f"; {lost_of(lost, lost_items, account['asked'])} lost" if lost or lost_items else ""
        return (
            f"STOPPED ({middle(status['finish_reason'], 40)}): {count(left)} of "
            f"{_pages(account['asked'])} left and {kept}{more}."
        )
    if lost or lost_items:
        what = lost_of(lost, lost_items, account["asked"])
        return f"INCOMPLETE: {what} lost{_mainly(data, lost)}."
    return f"INCOMPLETE: {status['bottleneck']['sentence'].partition(': ')[2]}"


def _mainly(data: dict[str, Any], lost: int) -> str:
    """Where most of it was lost, when that is one domain."""
    rows = data["domains"]["rows"]
    if not (lost and rows) or rows[0]["dead_letters"] * 2 < lost or data["domains"]["total"] < 2:
        return ""
    some = rows[0]["dead_letters"]
    return f", {'all' if some >= lost else f'{count(some)} of them'} on {host(rows[0]['domain'])}"


def _pages(number: int) -> str:
    return f"{count(number)} page{'' if number == 1 else 's'}"
