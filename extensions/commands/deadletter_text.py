"""Dead letters for eyes and for programs."""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..stores.deadletters import Row

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]")


def summary(row: Row) -> dict[str, Any]:
    """What a list shows of one, times as ISO 8601."""
    return {
        "id": row.id,
        "state": row.state,
        "kind": row.kind,
        "spider": row.spider,
        "domain": row.domain,
        "url": row.url,
        "reason": row.reason,
        "status": row.status,
        "attempts": row.attempts,
        "replays": row.replays,
        "first_at": _iso(row.first_at),
        "last_at": _iso(row.last_at),
    }


def everything(row: Row) -> dict[str, Any]:
    """All of one. The payload is what it holds if it is JSON, else base64."""
    return {
        **summary(row),
        "exception": row.exception,
        "detail": row.detail,
        "arguments": arguments(row.arguments),
        **_payload(row),
    }


def arguments(stored: str) -> dict[str, str]:
    """Spider arguments as they are stored; none if they cannot be read."""
    try:
        value = json.loads(stored)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def print_array(values: Iterable[dict[str, Any]]) -> None:
    """A JSON array, one element a line."""
    separator = "[\n"
    for value in values:
        print(separator + json.dumps(value), end="")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def print_lines(values: Iterable[dict[str, Any]], out: TextIO) -> int:
    """JSON Lines; how many."""
    count = 0
    for value in values:
        out.write(json.dumps(value) + "\n")
        count += 1
    return count


def print_table(rows: Sequence[Row]) -> None:
    """One line each, aligned; what a site sent cannot move the cursor."""
    if not rows:
        print("no dead letters")
        return
    lines = [("ID", "STATE", "REASON", "TRIES", "LAST", "SPIDER", "URL")]
    lines += [
        (
            str(row.id),
            row.state if row.replays == 0 else f"{row.state} (replayed {row.replays})",
            _plain(row.reason),
            str(row.attempts),
            _age(time.time() - row.last_at),
            _plain(row.spider),
            _plain(row.url) or f"({row.kind})",
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line[:6], widths, strict=True)]
        print("  ".join([*cells, line[6]]))


def print_record(row: Row) -> None:
    """All of one, a field a line."""
    for name, value in everything(row).items():
        if value is None or value == {}:
            continue
        shown = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        lines = [_plain(line) for line in shown.splitlines()] or [""]
        print(f"{name + ':':<12}" + ("\n" + " " * 12).join(lines))
    print()
    sys.stdout.flush()


def _payload(row: Row) -> dict[str, Any]:
    name = "request" if row.kind in {"request", "seed"} else "item"
    try:
        return {name: json.loads(row.payload)}
    except (ValueError, RecursionError):
        return {"payload_base64": base64.b64encode(row.payload).decode()}


def _plain(text: str) -> str:
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"
