"""The live display on a terminal: a few lines at the bottom, the log above it.

The rule it keeps: the display costs next to nothing, and leaves the terminal and the log as it found them. This module
and what it imports are loaded only where somebody looks: see `progress.wants_display`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from typing import TYPE_CHECKING, ClassVar, TextIO

from scrapy.utils.log import get_scrapy_root_handler

from .frame import Frame
from .screen import GatheringHandler, Screen

if TYPE_CHECKING:
    from .sampler import Sampler
    from .snapshot import Snapshot


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
