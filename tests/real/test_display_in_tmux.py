"""The live display on real terminals: no log line is torn, lost or out of order."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT
from tests.needs import needs

pytestmark = needs("tmux", found=shutil.which("tmux"))
LINES = 1500
PER_S = 700


def tmux(socket: str, *words: str) -> str:
    done = subprocess.run(
        ["tmux", "-L", socket, *words], capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 50), (56, 12)])
def test_every_line_is_whole_and_in_order(width: int, height: int) -> None:
    """Hundreds of lines a second above the display, on a terminal whose size changes all the time."""
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
    tmux(
        socket,
        "new-window",
        "-t",
        "a:5",
        f"cd {ROOT}; {sys.executable} -m tests.real.chatter {LINES} {PER_S} on; sleep 30",
    )
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
