"""The live display on a terminal: a few lines at the bottom, the log above it.

The rule it keeps: no log line is torn, lost or reordered by the display, and the display costs next
to nothing. Lines are gathered for a tenth of a second and printed at once above it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, ClassVar, TextIO

from rich.console import Console
from rich.text import Text
from scrapy.utils.asyncio import call_later
from scrapy.utils.log import get_scrapy_root_handler

from .policy.wording import DASH, clock, count, duration, middle, share, short_rate
from .progress import times_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .book import DomainRow
    from .sampler import Sampler
    from .snapshot import Snapshot

GATHER_S = 0.1
MAX_GATHERED = 2000
_BARS = " ▁▂▃▄▅▆▇█"


def wants_display(
    stream: TextIO, environment: Mapping[str, str], *, wanted: bool, log_file: str | None
) -> bool:
    """Is there somebody at a terminal who would see a live display on *stream*?"""
    if not wanted or environment.get("CI") or environment.get("TERM", "") in {"", "dumb"}:
        return False
    return log_file is None and stream.isatty()


class Frame:
    """Draws the newest snapshot to the console's size: never more than half of its height."""

    def __init__(self, sampler: Sampler, *, plain: bool) -> None:
        self._sampler = sampler
        self._plain = plain

    def lines(self, s: Snapshot, width: int, height: int) -> list[Text]:
        """What is shown in *width* columns and half of *height* lines."""
        tone = {"ok": "bold", "warn": "bold yellow", "bad": "bold red"}[str(s.level)]
        sentence = _cut(Text(s.sentence.text, style=tone), width)
        bar = self._bar(s, width)
        if width < 60 or height < 14:
            return [sentence, bar]
        room = max(2, height // 2)
        lines = [
            self._rule(s, width),
            sentence,
            bar,
            self._pages(s, width),
            *self._queues(s, width),
        ]
        rest = room - len(lines)
        return (lines + self._domains(rest, width))[:room]

    def _rule(self, s: Snapshot, width: int) -> Text:
        dash = "-" if self._plain else "─"
        job = f" · {middle(s.job, 24)}" if s.job else ""
        head = f"{dash * 2} {middle(s.spider, 20)}{job} · {duration(s.running_s)} "
        tail = f" Ctrl-C stops{', twice at once' if width >= 100 else ''} {dash * 2}"
        return _cut(Text(head + dash * max(0, width - len(head) - len(tail)) + tail, "dim"), width)

    def _bar(self, s: Snapshot, width: int) -> Text:
        done = f" {share(s.account.done_share)}"
        words = f"{done}  {times_in_words(s, about='~' if self._plain else '≈')}"
        words = words if len(words) < width - 10 else done
        a, room = s.account, max(4, width - len(words))
        known = max(1, a.known)
        signs = "#x:-. " if self._plain else "██▓▒░ "
        parts = (
            (a.got, signs[0], "blue"), (a.dead, signs[1], "red"), (a.skipped, signs[2], "dim"),
            (a.left, signs[3], "blue"), (a.unread or 0, signs[4], "dim"),
        )  # fmt: skip
        text, used, through = Text(), 0, 0
        for number, sign, style in parts:
            through += number
            until = room * through // known
            if number and until == used and sign == signs[1] and used < room:
                until += 1  # what is lost is seen, however little it is
            text.append(sign * max(0, min(until, room) - used), style)
            used = max(used, min(until, room))
        text.append(" " * (room - used))
        text.append(words)
        return _cut(text, width)

    def _pages(self, s: Snapshot, width: int) -> Text:
        text = Text()
        unread = "≈" if s.account.unread else ""
        text.append("pages ", "dim").append(count(s.account.got), "bold")
        text.append(f" of {unread}{count(s.account.known)}    ", "dim")
        text.append(short_rate(s.pages_per_s), "bold")
        span_s = 600 if width < 100 else 3600
        room = min(40, width - len(text) - 12)
        if room > 8 and not self._plain:
            text.append("  " + self._spark(room, span_s), "blue")
            text.append("  10 min" if span_s == 600 else "  last hour", "dim")
        return _cut(text, width)

    def _spark(self, room: int, span_s: int) -> str:
        values = self._sampler.history.fine.column(0, span_s)
        if not values:
            return ""
        each = max(1, -(-len(values) // room))
        means = [
            sum(p) / len(p) for p in (values[i : i + each] for i in range(0, len(values), each))
        ]
        top = max(means) or 1.0
        return "".join(_BARS[min(8, max(1, round(8 * mean / top)))] for mean in means[-room:])

    def _queues(self, s: Snapshot, width: int) -> list[Text]:
        g = s.gauges
        wide = width >= 100
        cap = f" of {count(g.pending_high)}" if g.pending_high else ""
        disk = f", {count(g.pending_on_disk)} on disk" if wide and g.pending_on_disk else ""
        first = _pairs(
            ("pending", count(s.pending), f" {count(g.pending_in_memory)}{cap} in memory{disk}"),
            ("in flight", count(g.in_flight), f" of {count(g.max_in_flight)}"),
            ("delayed", count(g.delayed), ""),
            *(
                [("proxies", count(g.healthy_proxies), f" of {count(g.proxies)}")]
                if g.proxies
                else []
            ),
        )
        if g.proxies and g.healthy_proxies < g.proxies:
            first.highlight_regex(
                r"(?<=proxies )[\d,]+", "bold red" if not g.healthy_proxies else "bold yellow"
            )
        refused = DASH if s.refused_share is None else share(s.refused_share)
        pairs = [
            ("results", count(g.results_waiting), f" of {count(g.results_bound)}"),
            ("refused", refused, ""),
            ("dead", count(s.account.dead), ""),
            ("memory", f"{round(s.rss_bytes / 2**20)} MiB", ""),
        ]
        if wide:
            back = f" put off, {short_rate(s.retries_in_per_s)} back"
            pairs.insert(2, ("retries", short_rate(s.retries_out_per_s), back))
        second = _pairs(*pairs)
        if s.account.dead:
            second.highlight_regex(r"(?<=dead )[\d,]+", "bold red")
        return [_cut(first, width), _cut(second, width)]

    def _domains(self, room: int, width: int) -> list[Text]:
        """The domains that end last, then those that are held."""
        if room <= 0:
            return []
        rows = [row for row in self._sampler.book.rows.values() if row.left] if room else []
        held = [r for r in rows if r.state in {"down", "parked", "waiting", "probing", "paused"}]
        slow = (
            [r for r in rows if r.left_s is not None and r not in held] if len(rows) < 2000 else []
        )
        for_held = min(len(held), max(1, room // 3))
        slow.sort(key=lambda r: -(r.left_s or 0))
        held.sort(key=lambda r: -r.left)
        lines = []
        for number, row in enumerate(slow[: room - for_held]):
            pace = f"{row.why or row.state}"
            end = duration(row.left_s)
            lines.append(_row("slowest" if not number else "", row, pace, end, width))
        now_at = self._sampler.history_at
        for number, row in enumerate(held[:for_held]):
            due = clock(row.next_at, now_at=now_at, seconds=True) if row.next_at else "on answer"
            why = f"{row.state}, {row.why}" if row.why else row.state
            lines.append(_row("held" if not number else "", row, why, due, width))
        return lines


def _row(label: str, row: DomainRow, why: str, end: str, width: int) -> Text:
    name_room = 24 if width < 100 else 34
    why_room = max(8, width - 8 - name_room - 1 - 10 - 12)
    text = Text(f"{label:<8}", "dim")
    text.append(f"{middle(row.name, name_room):<{name_room}} ")
    text.append(f"{middle(why, why_room):<{why_room}}", "dim")
    text.append(f"{count(row.left):>10}").append(f"{end:>12}", "bold")
    return _cut(text, width)


def _pairs(*pairs: tuple[str, str, str]) -> Text:
    text = Text()
    for number, (word, value, note) in enumerate(pairs):
        text.append(("   " if number else "") + word + " ", "dim")
        text.append(value, "bold").append(note, "dim")
    return text


def _cut(text: Text, width: int) -> Text:
    text.truncate(width)
    text.no_wrap = True
    return text


class Screen:
    """A terminal with log lines above and a frame of a few lines at its bottom.

    The frame's text is kept, so that printing lines above it costs one write and no drawing.

    Args:
        stream: The terminal.
        frame: Draws the frame's lines.
        sampler: Where the newest snapshot is.
    """

    def __init__(self, *, stream: TextIO, frame: Frame, sampler: Sampler) -> None:
        # COLUMNS and LINES would fix a size that the terminal no longer has.
        environment = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES"}}
        self._console = Console(
            file=stream, force_terminal=True, highlight=False, emoji=False, _environ=environment
        )
        self._stream, self._frame, self._sampler = stream, frame, sampler
        self._text = ""
        self._lengths: list[int] = []

    def draw(self) -> None:
        """Draw the newest snapshot over the old frame."""
        erase = self._erase()  # for the terminal's size now: a smaller one has broken the old frame
        snapshot = self._sampler.snapshot
        if snapshot is not None:
            width, height = self._console.size
            lines = self._frame.lines(snapshot, width, height)
            with self._console.capture() as drawn:
                self._console.print(Text("\n").join(lines), end="", soft_wrap=True)
            self._text, self._lengths = drawn.get(), [line.cell_len for line in lines]
        self._write(erase + self._text)

    def put(self, lines: list[str]) -> None:
        """Print *lines* above the frame."""
        self._write(self._erase() + "\n".join(lines) + "\n" + self._text)

    def close(self) -> None:
        """Take the frame away."""
        erase = self._erase()
        self._text, self._lengths = "", []
        self._write(erase + _SHOW_CURSOR)

    def _erase(self) -> str:
        if not self._lengths:
            return _HIDE_CURSOR
        width = max(1, self._console.size.width)
        rows = sum(max(1, -(-length // width)) for length in self._lengths)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a terminal that is gone ends no crawl
            self._stream.write(text)
            self._stream.flush()


_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class GatheringHandler(logging.Handler):
    """Prints log lines above the frame, those of a tenth of a second at once.

    A line of a warning or worse, and the last ones, are printed at once, and as they are: nothing
    in them is taken for markup, and no URL is broken at the terminal's width.
    """

    def __init__(self, *, screen: Screen) -> None:
        super().__init__()
        self._screen = screen
        self._lines: list[str] = []
        self._due = False
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Gather, and see to it that it is printed soon."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 - a handler must not raise into the crawl
            self.handleError(record)
            return
        with self._guard:
            self._lines.append(line)
            full = len(self._lines) >= MAX_GATHERED
        if full or record.levelno >= logging.WARNING:
            self.flush()
        elif not self._due and threading.current_thread() is threading.main_thread():
            self._due = True
            try:
                call_later(GATHER_S, self._flush_due)
            except RuntimeError:  # the loop has ended: nothing will come later
                self._due = False
                self.flush()

    def _flush_due(self) -> None:
        self._due = False
        self.flush()

    def flush(self) -> None:
        """Print what was gathered."""
        with self._guard:
            lines, self._lines = self._lines, []
            if lines:
                self._screen.put(lines)


class Display:
    """The live display of a crawl.

    Args:
        sampler: What is shown.
        stream: Where the terminal is.
    """

    shown: ClassVar[bool] = False

    def __init__(self, *, sampler: Sampler, stream: TextIO | None = None) -> None:
        stream = stream or sys.stderr
        plain = "utf" not in (getattr(stream, "encoding", "") or "").lower()
        frame = Frame(sampler, plain=plain)
        self._screen = Screen(stream=stream, frame=frame, sampler=sampler)
        self._sampler = sampler
        self._shows = False
        self._handler: GatheringHandler | None = None
        self._replaced: logging.Handler | None = None

    def start(self) -> None:
        """Take the place of Scrapy's log handler, and draw; one crawl of a process does."""
        if Display.shown:
            return
        Display.shown = self._shows = True
        old = get_scrapy_root_handler()
        if old is not None and isinstance(old, logging.StreamHandler):
            handler = GatheringHandler(screen=self._screen)
            handler.setLevel(old.level)
            handler.setFormatter(old.formatter)
            for each in old.filters:
                handler.addFilter(each)
            root = logging.getLogger()
            root.removeHandler(old)
            root.addHandler(handler)
            self._handler, self._replaced = handler, old
        self._screen.draw()
        self._sampler.listeners.append(self._refresh)
        with contextlib.suppress(*_NO_SIGNALS):
            # At once: until the next snapshot the old frame would stand broken.
            asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, self._screen.draw)

    def _refresh(self, _: Snapshot) -> None:
        self._screen.draw()

    def stop(self) -> None:
        """Take the display away, and put Scrapy's log handler back."""
        if not self._shows:
            return
        Display.shown = self._shows = False
        if self._refresh in self._sampler.listeners:
            self._sampler.listeners.remove(self._refresh)
        with contextlib.suppress(*_NO_SIGNALS):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGWINCH)
        handler, old = self._handler, self._replaced
        self._handler = self._replaced = None
        if handler is not None:
            handler.flush()
        self._screen.close()
        if handler is not None and old is not None:
            root = logging.getLogger()
            root.removeHandler(handler)
            root.addHandler(old)


_NO_SIGNALS = (RuntimeError, ValueError, AttributeError, NotImplementedError)
