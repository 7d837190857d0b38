"""Where a URL is: pending, delayed, in flight, fetched, given up, or never asked for.

The rule it keeps: everything is read beside the crawl; one question costs the crawl nothing.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.utils.request import fingerprint

from .policy.wording import clock, middle
from .stores.base import StoreError
from .stores.deadletter_filters import LetterFilter
from .stores.deadletters import DeadLetterError, DeadLetterFile
from .stores.sqlitereader import STATE_NAMES, JobReader

if TYPE_CHECKING:
    from collections.abc import Iterable


def places(job: JobReader, url: str, files: Iterable[DeadLetterFile]) -> list[dict[str, Any]]:
    """Everywhere that *url* is, the nearest to its end last.

    Raises:
        ValueError: it is no URL.
        StoreError, DeadLetterError: the job or a file cannot be read.
    """
    request = Request(url)
    start = b'{"url":' + json.dumps(request.url).encode("ascii")
    found: list[dict[str, Any]] = [
        {"place": STATE_NAMES[row.state], "due_at": row.due_at, "crashes": row.crashes}
        for row in job.find(start)
    ]
    if count := job.waiting_results(json.dumps(request.url)):
        found.append({"place": "results", "count": count})
    if job.waiting_letters(request.url):
        found.append({"place": "dead letter", "waits": True})
    found += [
        {"place": "dead letter", "id": row.id, "reason": row.reason}
        for file in files
        for row in _letters_of(file, request.url)
    ]
    if not found and job.was_seen(fingerprint(request)):
        found.append({"place": "done"})
    return found


def letter_files(pattern: str | None) -> list[DeadLetterFile]:
    """The dead-letter files that the setting *pattern* stands for."""
    folder = Path(pattern or "").parent
    name = Path(pattern or "").name.replace("%(spider)s", "*")
    return [DeadLetterFile(str(path)) for path in sorted(folder.glob(name))] if name else []


def answer(folder: Path, url: str, pattern: str | None) -> str:
    """Where *url* is in the job in *folder*, in words."""
    try:
        with JobReader(folder) as job:
            found = places(job, url, letter_files(pattern))
    except ValueError as error:
        return f"This is no URL: {error}"
    except (StoreError, DeadLetterError) as error:
        return f"This cannot be told: {error}"
    return "; ".join(map(in_words, found)) or "Not in this job: nobody asked for it."


def in_words(place: dict[str, Any]) -> str:
    """One of `places`."""
    name = place["place"]
    if name == "done":
        return "done: fetched, or left out with a reason that the crawl's stats count"
    if name == "results":
        return f"fetched: {place['count']:,} results wait for a sink"
    if name == "dead letter":
        if place.get("waits"):
            return "given up: its dead letter is on the way to the file"
        return f"given up: dead letter {place['id']} ({middle(place['reason'], 80)})"
    due = place.get("due_at")
    until = f" until {clock(due, now_at=time.time(), seconds=True)}" if due else ""
    crashes = f", in flight at {place['crashes']} crashes" if place.get("crashes") else ""
    return f"{name}{until}{crashes}"


def _letters_of(file: DeadLetterFile, url: str) -> list[Any]:
    with file:
        return [row for row in file.rows(LetterFilter(url=url)) if row.url == url]
