"""Which `scrapy` command this process runs.

The rule it keeps: a command for looking around (`shell`, `fetch`, `parse`, `view`, `bench`) or for checking leaves no trace:
no job, no results, no dead letters, no port. Scrapy tells components nothing of the command, so the command line is read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOKING_AROUND = frozenset({"shell", "fetch", "parse", "view", "bench", "check", "fixture"})


def leaves_no_trace(words: Sequence[str] | None = None) -> bool:
    """Is this process a developer command or a check, not a crawl?

    Args:
        words: The whole command line with the interpreter; Scrapy takes the command out of `sys.argv`.
    """
    if os.environ.get("SCRAPY_CHECK"):
        return True
    return _command(sys.orig_argv if words is None else words) in LOOKING_AROUND


def run_by_scrapyd(words: Sequence[str] | None = None) -> bool:
    """Is this process a job that Scrapyd started?"""
    return "scrapyd.runner" in (sys.orig_argv if words is None else words)[:4]


def _command(words: Sequence[str]) -> str | None:
    for at, word in enumerate(words):
        if Path(word).name in {"scrapy", "scrapy.exe"} and (at == 1 or words[at - 1] == "-m"):
            return next((w for w in words[at + 1 :] if not w.startswith("-")), None)
    return None
