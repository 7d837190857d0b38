"""Who is at work on dead letters: the crawl behind a run, and whether it lives.

The rule it keeps: a process of this host is asked for at the kernel; one of another host counts as alive while it says so.
"""

from __future__ import annotations

import json
import time
from typing import Final

from .joblock import Holder

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
