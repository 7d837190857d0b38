"""Says what has changed: as a signal, as a log line, as a line of "What changed".

The rule it keeps: transitions only, each once, each with its end and how long it took; nothing that
a site does is an error; and ten thousand hosts that fail at once make a handful of lines.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from . import signals
from .policy.redact import redact_url
from .policy.wording import clock, duration, middle

if TYPE_CHECKING:
    from scrapy.signalmanager import SignalManager

    from .book import Book
    from .domainrow import DomainRow
    from .snapshot import Snapshot
    from .stores.base import DeadLetter

governor_log = logging.getLogger("sluice.governor")
letters_log = logging.getLogger("sluice.deadletters")
progress_log = logging.getLogger("sluice.progress")

HELD = {"waiting": "Held", "parked": "Parked", "probing": "Probing", "down": "Down:"}
LINES_A_MINUTE = 20
BETWEEN_CHANGES_S = 10.0
LONG_HOLD_S = 5.0
"""Shorter holds are the daily bread of a governor: they are signalled and shown, not logged."""


class Few:
    """Lets a few lines a minute through, and says how many it kept back."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self._log, self._what = log, what
        self._minute = -1
        self._said = self._kept = 0

    def say(self, level: int, message: str, *values: object, extra: dict[str, object]) -> None:
        """Log, unless enough was logged in this minute."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            if self._kept:
                self._log.info("%d more %s in the last minute", self._kept, self._what)
            self._minute, self._said, self._kept = minute, 0, 0
        if self._said >= LINES_A_MINUTE:
            self._kept += 1
            return
        self._said += 1
        self._log.log(level, message, *values, extra=extra)


class Telling:
    """One crawl's voice.

    Args:
        sender: The crawl's signals.
    """

    def __init__(self, sender: SignalManager) -> None:
        self._sender = sender
        self._domains = Few(governor_log, "domains were held or released")
        self._letters = Few(letters_log, "kinds of dead letters came up")
        self._gate_open = True
        self._changed_due = 0.0
        self._behind_since_at: float | None = None

    def _send(self, signal: object, **values: object) -> None:
        self._sender.send_catch_log(signal, **values)

    def refused(self, domain: str, note: str) -> None:
        """A host refused."""
        self._send(signals.refused, domain=domain, note=note)

    def letter(self, letter: DeadLetter) -> None:
        """Something was given up."""
        self._send(signals.dead_lettered, letter=letter)

    def first_letter(self, letter: DeadLetter) -> None:
        """The first dead letter of a kind on a domain."""
        self._letters.say(
            logging.WARNING,
            "Dead letter: %s (%s); more of this kind on this domain are counted, not logged",
            middle(redact_url(letter.url), 300) or letter.kind,
            letter.reason,
            extra={"domain": letter.domain, "reason": letter.reason},
        )

    def moved(self, book: Book, row: DomainRow, before: str, now_at: float) -> None:
        """A domain is in another state."""
        name, state = row.name, row.state
        if state in HELD:
            if before not in HELD:
                row.hold_since_at = now_at
            if before not in HELD or state == "parked":
                self._held(book, row, now_at)
        elif before in HELD:
            since_at, row.hold_since_at = row.hold_since_at, None
            held_s = max(0.0, now_at - (since_at if since_at is not None else now_at))
            self._send(signals.released, domain=name, held_s=held_s)
            if row.hold_told:
                row.hold_told = False
                self._domains.say(
                    logging.INFO,
                    "Released: %s after %s",
                    middle(name, 80),
                    duration(held_s),
                    extra={"domain": name, "held_s": round(held_s)},
                )
            if before in {"parked", "down"}:
                book.changed(now_at, name, f"is asked again after {duration(held_s)}")
        elif state == "done" and row.got >= 100:  # noqa: PLR2004 - a small one is no news
            book.changed(now_at, name, f"done: {row.got:,} pages")

    def _held(self, book: Book, row: DomainRow, now_at: float) -> None:
        name, state = row.name, row.state
        until = f" until {clock(row.next_at, now_at=now_at, seconds=True)}" if row.next_at else ""
        self._send(signals.held, domain=name, state=state, why=row.why, until_at=row.next_at)
        serious = state in {"parked", "down"}
        if not (serious or (row.next_at is not None and row.next_at - now_at >= LONG_HOLD_S)):
            return
        row.hold_told = True
        level = logging.WARNING if serious else logging.INFO
        self._domains.say(
            level,
            "%s %s%s (%s)",
            HELD[state],
            middle(name, 80),
            until,
            row.why,
            extra={"domain": name, "state": state},
        )
        verb = {"waiting": "waits", "parked": "parked", "down": "down", "probing": "probed"}
        book.changed(now_at, name, f"{verb[state]}{until}" + (f" ({row.why})" if row.why else ""))

    def gate(self, snapshot: Snapshot) -> None:
        """The start gate opened or closed."""
        is_open = snapshot.gauges.gate_open
        if is_open != self._gate_open:
            self._gate_open = is_open
            signal = signals.gate_opened if is_open else signals.gate_closed
            self._send(signal, pending=snapshot.pending)

    def bottleneck(self, book: Book, snapshot: Snapshot, line: str) -> None:
        """Something else holds the crawl back."""
        text = snapshot.sentence.text
        self._send(
            signals.bottleneck_changed,
            code=snapshot.code,
            sentence=text,
            level=str(snapshot.level),
        )
        self._writer(book, snapshot)
        if snapshot.level != "ok" or snapshot.code in {"slots_full", "few_domains"}:
            book.changed(snapshot.at, None, text)
        now = time.monotonic()
        if now >= self._changed_due:
            self._changed_due = now + BETWEEN_CHANGES_S
            progress_log.info("%s", line, extra={"sluice": snapshot.figures()})

    def _writer(self, book: Book, snapshot: Snapshot) -> None:
        behind = snapshot.code in {"writer_behind", "sink_down"}
        if behind and self._behind_since_at is None:
            self._behind_since_at = snapshot.at
        elif not behind and self._behind_since_at is not None:
            waited_s = snapshot.at - self._behind_since_at
            self._behind_since_at = None
            text = f"Writer has caught up after {duration(waited_s)}; fetching goes on"
            book.changed(snapshot.at, None, text)
            logging.getLogger("sluice.results").info(text, extra={"waited_s": round(waited_s)})
