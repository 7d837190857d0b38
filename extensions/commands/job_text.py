"""A job for eyes and for programs."""

from __future__ import annotations

import base64
import json
import re
import time
from typing import TYPE_CHECKING, Any, TextIO

from ..names import FACT_ACCOUNT
from ..stores.sqlitereader import STATE_NAMES
from ..whereabouts import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..stores.base import StoredRequest
    from ..stores.sqlitereader import JobSummary

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]")


def as_dict(summary: JobSummary) -> dict[str, Any]:
    """All of it; `pending` counts what is in a running crawl's memory too."""
    tally, holder = summary.tally, summary.holder
    return {
        "running": holder is not None,
        "holder": None if holder is None else {"pid": holder.pid, "host": holder.host},
        "spider": None if holder is None else holder.spider or None,
        "pending": tally.pending + tally.window,
        "in_memory": tally.window,
        "leased": tally.leased,
        "delayed": tally.delayed,
        "next_due_at": _iso(summary.next_due_at),
        "held": tally.held,
        "done": done(summary),
        "seen": tally.seen,
        "results": tally.last_item,
        "written": tally.last_item - tally.outbox,
        "staged": tally.outbox,
        "dead": tally.last_dead,
        "dead_staged": tally.dead,
        "last_commit_at": _iso(summary.clock_at or None),
        "finish_reason": _fact(summary, "finish_reason"),
        "job": _fact(summary, "job"),
        "busiest": [{"domain": d, "pending": n} for d, n in summary.busiest],
        "file_bytes": summary.file_bytes,
        "log_bytes": summary.log_bytes,
        "free_bytes": summary.free_bytes,
    }


def done(summary: JobSummary) -> int:
    """Requests that came to an end: got, given up or skipped. A retry or a redirect goes on as the same one."""
    account = _fact(summary, FACT_ACCOUNT)
    if not isinstance(account, dict):
        return summary.tally.done
    return int(sum(account.get(place, 0) for place in ("got", "dead", "skipped")))


def as_json(summary: JobSummary) -> str:
    """One JSON object."""
    return json.dumps(as_dict(summary), indent=2)


def as_text(folder: str, summary: JobSummary) -> str:
    """A dozen lines."""
    tally, holder = summary.tally, summary.holder
    pending = tally.pending + tally.window
    lines = [f"{folder}: {_who(summary)}"]
    lines += [
        f"  pending    {pending:>12,}",
        f"  in flight  {tally.leased:>12,}" + ("" if holder or not tally.leased else _KILLED),
        f"  delayed    {tally.delayed:>12,}{_next(summary)}",
        f"  held       {tally.held:>12,}",
        f"  done       {done(summary):>12,}",
        f"  seen       {tally.seen:>12,}",
        f"  results    {tally.last_item:>12,}   {tally.outbox:,} not yet written everywhere",
        f"  dead       {tally.last_dead:>12,}   {tally.dead:,} not yet in their file",
        f"  on disk    {_mib(summary.file_bytes):>12}   {_parts(summary)}",
    ]
    if summary.busiest:
        lines.append("  most pending on disk:")
        lines += [f"    {_clean(domain):40} {count:>9,}" for domain, count in summary.busiest]
    return "\n".join(lines)


_KILLED = "   left by a process that died; pending again at the next start"


def _who(summary: JobSummary) -> str:
    if summary.holder is not None:
        return _clean(str(summary.holder))
    last = _iso(summary.clock_at or None)
    reason = _fact(summary, "finish_reason")
    how = f", last ended as {_clean(str(reason))!r}" if reason else ""
    return f"nobody works on it{how}, last commit {last}"


def _next(summary: JobSummary) -> str:
    return f"   the next at {_iso(summary.next_due_at)}" if summary.next_due_at else ""


def _parts(summary: JobSummary) -> str:
    return f"log {_mib(summary.log_bytes)}, unused {_mib(summary.free_bytes)}"


def places(url: str, found: Sequence[dict[str, Any]]) -> str:
    """Where a URL is, a line for each place."""
    if not found:
        return f"{_clean(url)}: not in this job: nobody asked for it"
    return "\n".join(f"{_clean(url)}: {in_words(place)}" for place in found)


def print_requests(rows: Iterable[StoredRequest], out: TextIO) -> int:
    """JSON Lines; returns how many. A payload that is no JSON comes as base64."""
    count = 0
    for row in rows:
        line: dict[str, Any] = {
            "id": row.id,
            "state": STATE_NAMES[row.state],
            "domain": row.domain,
            "priority": row.priority,
            "due_at": _iso(row.due_at),
            "crashes": row.crashes,
        }
        try:
            line["request"] = json.loads(row.payload)
        except ValueError:
            line["raw_base64"] = base64.b64encode(row.payload).decode("ascii")
        out.write(json.dumps(line) + "\n")
        count += 1
    return count


def _fact(summary: JobSummary, name: str) -> Any:
    try:
        return json.loads(summary.facts[name])
    except (KeyError, ValueError):
        return None


def _iso(at: float | None) -> str | None:
    if at is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _mib(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"


def _clean(value: str) -> str:
    """Without what could move a terminal's cursor."""
    return _CONTROL.sub("?", value)
