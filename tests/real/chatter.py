"""A program that logs line after line above the live display: ``python -m tests.real.chatter LINES PER_S on|off [FILE]``.

It says at its end what it used, on the terminal and in FILE: the seconds of a processor, and the seconds that it took.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import Settings
from scrapy.utils.log import configure_logging

from extensions import sampler as sampling
from extensions import screen
from extensions.book import Book
from extensions.display import Display
from extensions.policy.bottleneck import Cause
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from tests.test_sampler import PlainView

if TYPE_CHECKING:
    from collections.abc import Callable


def _sampler() -> Sampler:
    book = Book()
    names = [f"host-{number}.example" for number in range(30)]
    for name in names:
        book.taken(name)
        for page in range(50):
            book.parsed(name, now=page / 5, now_at=1e9)
    working = {name: DomainNow(cause=Cause.PACE, pending=90) for name in names}
    view = PlainView(working, pending_in_memory=2700)
    return Sampler(view=view, book=book, spider="pages", job="tmux")


async def chatter(lines: int, per_s: float, *, shows: bool) -> str:
    """Log *lines* lines, *per_s* a second; what that took, with the display if it *shows*."""
    configure_logging(Settings({"LOG_FORMAT": "%(message)s"}))
    sampler = _sampler()
    sampler.start()
    display = Display(sampler=sampler)
    if shows:
        display.start()
    log = logging.getLogger("x")
    began, used_s = time.monotonic(), time.process_time()
    for number in range(lines):
        log.info("line %05d [scrapy.core] <GET http://a.example/%s>", number, "y" * 30)
        await asyncio.sleep(max(0.0, began + (number + 1) / per_s - time.monotonic()))
    used_s = time.process_time() - used_s
    took_s = time.monotonic() - began
    display.stop()
    sampler.stop()
    return f"{used_s:.4f} {took_s:.4f}"


def _call_later(delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    """Scrapy's own asks for a reactor."""
    return asyncio.get_running_loop().call_later(delay_s, call)


if __name__ == "__main__":
    screen.call_later = sampling.call_later = _call_later  # type: ignore[assignment]
    words = sys.argv[1:]
    used = asyncio.run(chatter(int(words[0]), float(words[1]), shows=words[2] == "on"))
    if len(words) > 3:
        Path(words[3]).write_text(used, encoding="ascii")
    sys.stderr.write(f"used {used}\nTHE END\n")
