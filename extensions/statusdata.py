"""What the status page and the report are made of, as plain JSON values.

The rule it keeps: an answer costs the same however large the crawl is: counts, and the first rows.
"""

from __future__ import annotations

import heapq
import math
import socket
from typing import TYPE_CHECKING, Any

from .policy.bottleneck import LEVELS, Code
from .policy.sentences import NAMES
from .stores.deadletter_rows import REPLAYABLE
from .version import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .book import Book
    from .domainrow import DomainRow
    from .policy.paceline import PaceLine
    from .policy.shown import Span
    from .sampler import Sampler
    from .snapshot import Snapshot
    from .stores.deadletter_rows import Row

MAX_ROWS = 200
MAX_SPANS = 400
MAX_REASONS = 30
MAX_URL = 2000
_STATE_ORDER = (
    "down", "parked", "waiting", "probing", "paused", "robots", "ready", "limit", "growing", "done",
)  # fmt: skip
_RANK = {state: number for number, state in enumerate(reversed(_STATE_ORDER))}
_UNKNOWN_S = 1e12


def _by_end(row: DomainRow) -> float:
    """Unknown first, then what ends last: trouble is on top without a second rule."""
    left_s = row.left_s
    if left_s is None:
        return _UNKNOWN_S + row.pending + row.delayed + row.in_flight
    return left_s


SORTS: dict[str, Callable[[DomainRow], Any]] = {
    "left_s": _by_end,
    "domain": lambda row: row.name,
    "state": lambda row: (_RANK.get(row.state, 0), row.left),
    "pace": lambda row: (row.pace or 0.0, row.got),
    "in_flight": lambda row: (row.in_flight, row.limit),
    "pages": lambda row: row.got,
    "pending": lambda row: row.left,
    "refused_share": lambda row: (row.refused_share, row.refused),
    "median_ms": lambda row: row.median_s or 0.0,
    "dead_letters": lambda row: (row.dead, row.left),
}


def domain_json(row: DomainRow) -> dict[str, Any]:
    """One domain, under its stable names."""
    return {
        "domain": row.name,
        "state": row.state,
        "why": row.why,
        "note": row.note,
        "next_at": None if row.next_at is None else round(row.next_at, 1),
        "pace": None if row.pace is None or not math.isfinite(row.pace) else round(row.pace, 3),
        "in_flight": row.in_flight,
        "limit": row.limit,
        "asked": row.asked,
        "pages": row.got,
        "pending": row.left,
        "skipped": row.skipped,
        "refused_share": round(row.refused_share, 4) if row.answers else None,
        "median_ms": None if row.median_s is None else round(row.median_s * 1000),
        "dead_letters": row.dead,
        "left_s": None if row.left_s is None else _steps(row.left_s),
    }


def _steps(seconds: float) -> int:
    """As exact as it is known and shown, so that not every row changes in every second."""
    step = 1 if seconds < 120 else 10 if seconds < 3600 else 60  # noqa: PLR2004
    return round(seconds / step) * step


def first_rows(
    book: Book,
    *,
    sort: str = "left_s",
    descending: bool = True,
    state: str = "",
    find: str = "",
    limit: int = 15,
) -> tuple[list[DomainRow], int]:
    """The first *limit* domains by *sort*, of those in *state* whose name holds *find*; and how many those are."""
    key = SORTS.get(sort, _by_end)
    rows: Iterable[DomainRow] = book.rows.values()
    if state:
        rows = [row for row in rows if row.state == state]
    if find:
        rows = [row for row in rows if find in row.name]
    pick = heapq.nlargest if descending else heapq.nsmallest
    first = pick(min(max(limit, 1), MAX_ROWS), rows, key=key)
    return first, len(rows) if isinstance(rows, list) else book.domains


def domains_json(book: Book, states: Mapping[str, int], **asked: Any) -> dict[str, Any]:
    """The first domains; *asked*: see `first_rows`."""
    first, matched = first_rows(book, **asked)
    return {
        "total": book.domains,
        "matched": matched,
        "states": dict(states),
        "rows": [domain_json(row) for row in first],
    }


def detail_json(book: Book, row: DomainRow) -> dict[str, Any]:
    """One domain, its pace over time, and how its last requests ended, the newest first."""
    base_at = book.counts_from_at or 0.0
    kept = row.outcomes.newest_first(book.words) if row.outcomes is not None else ()
    return {
        "domain": domain_json(row),
        "line": _line_json(row.line),
        "outcomes": [
            {
                "at": round(base_at + ended.after_s, 1),
                "what": ended.what,
                "outcome": ended.outcome.value,
                "latency_ms": round(ended.latency_s * 1000),
                "held_s": round(ended.held_s, 1),
            }
            for ended in kept
        ],
    }


def _line_json(line: PaceLine | None) -> dict[str, Any] | None:
    if line is None:
        return None
    stretches = line.stretches()
    return {
        "start_at": round(line.start_at, 1),
        "step_s": line.step_s,
        "pages_per_s": [float(f"{each.pages_per_s:.3g}") for each in stretches],
        "pace": [None if each.pace is None else float(f"{each.pace:.3g}") for each in stretches],
    }


def letters_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Dead letters one by one."""
    return [
        {
            "id": row.id,
            "url": row.url[:MAX_URL],
            "kind": row.kind,
            "reason": row.reason,
            "attempts": row.attempts,
            "status": row.status,
            "last_at": round(row.last_at, 1),
            "state": row.state,
            "replayable": row.kind in REPLAYABLE,
        }
        for row in rows
    ]


def spans_json(spans: Iterable[Span], *, since_at: float) -> list[dict[str, Any]]:
    """The ribbon: what was shown from *since_at* on, joined where it is too fine to be seen."""
    found: list[dict[str, Any]] = []
    recent = [span for span in spans if span.end_at > since_at]
    fine_s = (recent[-1].end_at - max(recent[0].start_at, since_at)) / MAX_SPANS if recent else 0.0
    for span in recent:
        if found and (found[-1]["code"] == span.code or span.end_at - span.start_at < fine_s):
            found[-1]["end_at"] = round(span.end_at, 1)
            continue
        found.append({
            "code": str(span.code),
            "name": NAMES[span.code],
            "level": str(LEVELS[span.code]),
            "start_at": round(max(span.start_at, since_at), 1),
            "end_at": round(span.end_at, 1),
        })  # fmt: skip
    return found[-MAX_SPANS:]


def reasons_json(book: Book) -> list[dict[str, Any]]:
    """Dead letters by reason, the most first."""
    ranked = heapq.nlargest(MAX_REASONS, book.reasons.items(), key=lambda item: item[1].count)
    return [
        {
            "reason": name,
            "count": reason.count,
            "domains": len(reason.domains),
            "last_at": round(reason.last_at),
            "example": reason.example,
        }
        for name, reason in ranked
    ]


def status_json(
    sampler: Sampler,
    *,
    actions: bool,
    can_look: bool,
    span_s: float = 3600.0,
    events: int = 30,
) -> dict[str, Any]:
    """All of the page but the domains and the time lines."""
    book, snapshot = sampler.book, sampler.snapshot or sampler.tick()
    status = snapshot.as_json()
    status["bottleneck"]["name"] = NAMES[Code(snapshot.code)]
    recent = list(book.events)[-events:][::-1]
    return status | {
        "spans": spans_json(sampler.bottleneck.spans, since_at=snapshot.at - span_s),
        "dead_reasons": reasons_json(book),
        "dead_total": book.dead + book.dead_items,
        "skips": dict(book.skips),
        "events": [{"at": round(e.at, 1), "domain": e.domain, "text": e.text} for e in recent],
        "replay_command": replay_command(snapshot, book),
        "job_kept": sampler.kept,
        "actions": actions,
        "can_look": can_look,
        "host": socket.gethostname(),
        "versions": versions(),
    }


def replay_command(snapshot: Snapshot, book: Book) -> str:
    """The command that brings back the most frequent kind of dead letter."""
    if not book.reasons:
        lost = book.dead + book.dead_items
        return f"scrapy deadletters replay --spider {snapshot.spider}" if lost else ""
    reason = max(book.reasons.items(), key=lambda item: item[1].count)[0]
    return f"scrapy deadletters replay --spider {snapshot.spider} --reason {_quoted(reason)}"


def _quoted(text: str) -> str:
    return text if text.replace("-", "").replace("_", "").isalnum() else "'" + text + "'"
