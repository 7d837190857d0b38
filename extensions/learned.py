"""What was found out about domains, kept from run to run: in the job, and in a file of the project's if the user asks.

The rule it keeps: a memory is a hint. It is used for a week, the governor starts below it, and a file that cannot be read
costs a warning and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .domains import Domain

logger = logging.getLogger(__name__)

KEEP_S = 7 * 86_400.0
"""Sites change their limits with their releases; after a week finding out again costs less than believing."""
MAX_DOMAINS = 2000
"""The freshest are kept: some 100 bytes each."""

Snapshot = dict[str, Any]


class Learned:
    """Snapshots of governors by domain, each with the wall-clock time of its learning."""

    def __init__(self, *, file: str | None) -> None:
        self._file = None if file is None else Path(file)
        self._known: dict[str, Snapshot] = {}

    def load(self, fact: str | None, now_at: float) -> None:
        """Take what the job and the project's file know; the fresher of two wins."""
        for text in (self._read_file(), fact):
            for domain, snapshot in _parsed(text).items():
                at = snapshot.get("at")
                if not isinstance(at, (int, float)) or not now_at - KEEP_S < at <= now_at + 60:
                    continue
                if at >= self._known.get(domain, {"at": 0.0})["at"]:
                    self._known[domain] = snapshot

    def recall(self, domain: str) -> Snapshot | None:
        """What is remembered of *domain*."""
        return self._known.get(domain)

    def hear(self, domain: str, text: str, now_at: float) -> Snapshot:
        """Take what another worker found of *domain*, as JSON text. Returns it, empty if it is too old or nothing."""
        kept = _parsed(f'{{"": {text}}}').get("", {})
        at = kept.get("at")
        if not isinstance(at, (int, float)) or at <= now_at - KEEP_S:
            return {}
        if kept.get("mark") is not None:  # of the rest nothing is worth keeping from run to run
            self._known[domain] = {name: kept.get(name) for name in ("mark", "concurrency", "at")}
        return kept

    def note(self, domain: Domain, now: float, now_at: float) -> None:
        """Remember what the governor of *domain* has found, if it has found anything."""
        if not domain.governor.forgettable(now):
            self._known.pop(domain.name, None)  # so that it comes last: the oldest are cut first
            self._known[domain.name] = {**domain.governor.snapshot(), "at": round(now_at)}

    def text(self) -> str:
        """All of it, as JSON."""
        surplus = len(self._known) - MAX_DOMAINS
        for domain in list(self._known)[: max(0, surplus)]:
            del self._known[domain]
        return json.dumps(self._known)

    def save(self, now_at: float) -> None:
        """Merge it into the project's file. Blocks: called in a thread. Two crawls at once keep both their news."""
        if self._file is None:
            return
        try:
            merged = Learned(file=str(self._file))
            merged.load(self.text(), now_at)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._file.parent, prefix=".learned-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as out:
                    out.write(merged.text())
                Path(name).replace(self._file)
            except OSError:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            logger.warning("What was learned of domains was not kept in %s: %s", self._file, error)

    def _read_file(self) -> str | None:
        if self._file is None:
            return None
        try:
            return self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            logger.warning("What was learned before cannot be read from %s: %s", self._file, error)
            return None


def _parsed(text: str | None) -> dict[str, Snapshot]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        logger.warning("What was learned of domains is unreadable; it is learned again")
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        domain: {k: v for k, v in snapshot.items() if v is None or isinstance(v, (int, float))}
        for domain, snapshot in found.items()
        if isinstance(snapshot, dict)
    }
