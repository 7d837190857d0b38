"""Who is at work on dead letters: the crawl behind a run, and whether it lives.

The rule it keeps: a process of this host is asked for at the kernel; one of another host counts as alive while it says so.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .joblock import Holder

if TYPE_CHECKING:
    from collections.abc import Mapping

HEARTBEAT_S: Final = 60.0
SILENT_S: Final = 600.0
"""A run on another host, unheard of for so long, is dead."""


def holder_text(spider: str) -> str:
    """This process, as JSON."""
    holder = Holder.myself(spider)
    return json.dumps(
        {"pid": holder.pid, "host": holder.host, "since_at": holder.since_at, "born": holder.born}
    )


def alive(holder: str, seen_at: float) -> bool:
    """Does the process behind *holder*, last heard of at *seen_at*, live?"""
    try:
        process = Holder(**json.loads(holder))
    except (ValueError, TypeError):
        return False
    if process.host != Holder.myself().host:
        return time.time() - seen_at < SILENT_S
    return process.may_live()


def read_runs(found: Mapping[bytes, bytes]) -> dict[str, dict[str, Any]]:
    """Runs as a store without columns keeps them: JSON by name. What cannot be read is left out."""
    runs = {}
    for run, text in found.items():
        with contextlib.suppress(ValueError):
            runs[run.decode()] = dict(json.loads(text))
    return runs


def lives(run: Mapping[str, Any]) -> bool:
    """Is *run* at work?"""
    return run.get("ended_at") is None and alive(str(run.get("holder")), run.get("seen_at") or 0.0)


def may_come_back(run: Mapping[str, Any], job: str) -> bool:
    """Is *job* running as *run*, or can it be resumed?"""
    folder = run.get("folder")
    return run.get("job") == job and bool((folder and Path(folder).exists()) or lives(run))
