"""A terminal with log lines above and a frame below, and the log handler that prints there.

The rule it keeps: no log line is torn, lost or reordered, and printing lines draws nothing anew: they are gathered for a
tenth of a second and written at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text
from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from .frame import Frame
    from .sampler import Sampler

GATHER_S = 0.1
MAX_GATHERED = 2000


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
