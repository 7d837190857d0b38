"""The live display on real terminals: no log line is torn, lost or out of order."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.needs import needs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs("tmux", found=shutil.which("tmux"))
LINES = 1500
PROGRAM = f"""
import asyncio, logging, sys, time
sys.path.insert(0, {str(ROOT)!r})
from scrapy.utils.log import configure_logging
from scrapy.settings import Settings
from extensions.book import Book
from extensions.policy.bottleneck import Cause
from extensions.display import Display
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from tests.test_sampler import PlainView

async def main():
    configure_logging(Settings({{"LOG_FORMAT": "%(message)s"}}))
    book = Book()
    names = [f"host-{{n}}.example" for n in range(30)]
    for name in names:
        book.taken(name)
        for page in range(50):
            book.parsed(name, now=page / 5, now_at=1e9)
    view = PlainView({{n: DomainNow(cause=Cause.PACE, pending=90) for n in names}}, pending_in_memory=2700)
    sampler = Sampler(view=view, book=book, spider="pages", job="tmux")
    sampler.start()
    display = Display(sampler=sampler)
    display.start()
    used = time.process_time()
    for n in range({LINES}):
        logging.getLogger("x").info("line %05d [scrapy.core] <GET http://a.example/%s>", n, "y" * 30)
        await asyncio.sleep(0.0012)
    used = time.process_time() - used
    display.stop()
    sampler.stop()
    sys.stderr.write(f"used {{used:.3f}} s\\nTHE END\\n")
    await asyncio.sleep(30)

import extensions.screen as screen, extensions.sampler as sampling
later = lambda delay, call: asyncio.get_running_loop().call_later(delay, call)
screen.call_later = sampling.call_later = later
asyncio.run(main())
"""


def tmux(socket: str, *words: str) -> str:
    done = subprocess.run(
        ["tmux", "-L", socket, *words], capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 50), (56, 12)])
def test_every_line_is_whole_and_in_order(tmp_path: Path, width: int, height: int) -> None:
    """Hundreds of lines a second above the display, on a terminal whose size changes all the time."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    socket = f"sluice-test-{width}"
    tmux(
        socket,
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-x",
        "99",
        "-y",
        "30",
        "-s",
        "a",
        "sleep 60",
    )
    tmux(socket, "set-option", "-g", "history-limit", "50000")
    tmux(socket, "new-window", "-t", "a:5", f"{sys.executable} {program}")
    tmux(socket, "resize-window", "-t", "a:5", "-x", str(width), "-y", str(height))
    try:
        deadline = time.monotonic() + 60
        seen = ""
        shown = False
        sizes = itertools.cycle(
            [(width + 17, height + 5), (max(40, width - 20), height), (width, height)]
        )
        while "THE END" not in seen and time.monotonic() < deadline:
            time.sleep(0.4)
            columns, rows = next(sizes)
            tmux(socket, "resize-window", "-t", "a:5", "-x", str(columns), "-y", str(rows))
            shown = shown or "Sites set the pace" in tmux(socket, "capture-pane", "-p", "-t", "a:5")
            seen = tmux(socket, "capture-pane", "-p", "-J", "-S", "-50000", "-t", "a:5")
        numbers = [
            int(n)
            for n in re.findall(r"^line (\d{5}) \[scrapy.core\] <GET \S+y{30}>", seen, re.MULTILINE)
        ]
        assert numbers == list(range(LINES))
        assert shown, seen[-3000:]
        assert "Ctrl-C stops" not in seen.partition("THE END")[0].rpartition("line 0")[2]
    finally:
        tmux(socket, "kill-server")
