"""What the live display takes of a core at 700 log lines a second, in tmux."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from .clients import ROOT
from .instructions import STEADY, VALGRIND, Line, count_in, parts, under_count
from .scenarios import Table

SIZES = ((80, 24), (120, 40), (200, 50), (56, 12))
PER_S = 700
LINES = 7000
COUNTED = ((300, 30.0), (300, 100.0), (1000, 100.0))
"""Lines and lines a second of the runs under valgrind: few enough that it keeps up."""
PATIENCE_S = 120


class Used(NamedTuple):
    """What one run used: seconds of a processor, seconds by the clock, instructions if they were counted."""

    cpu_s: float
    took_s: float
    instructions: int

    @property
    def share(self) -> float:
        """The part of a core."""
        return self.cpu_s / self.took_s


def display(rounds: int) -> Table:
    """Logging below which the display stands, beside logging alone, in turns."""
    rows = [_row(size, rounds) for size in SIZES]
    columns = (
        "terminal", "of a core: log alone", "with the display", "the display: median (lowest to highest)",
        "million instructions a second: log alone", "the display", "of a core",
    )  # fmt: skip
    return Table(
        f"The live display at {PER_S} log lines a second, {2 * rounds} pairs", columns, rows
    )


def _row(size: tuple[int, int], rounds: int) -> tuple[str, ...]:
    runs: dict[str, list[Used]] = {"off": [], "on": []}
    for number in range(2 * rounds):
        for shows in runs if number % 2 == 0 else reversed(runs):
            runs[shows].append(_run(size, LINES, PER_S, shows))
    off, on = ([run.share for run in runs[shows]] for shows in ("off", "on"))
    more = [with_it - without for with_it, without in zip(on, off, strict=True)]
    row = (
        f"{size[0]}x{size[1]}",
        f"{statistics.median(off):.1%}",
        f"{statistics.median(on):.1%}",
        f"{statistics.median(more):.1%} ({min(more):.1%} to {max(more):.1%})",
    )
    if VALGRIND is None:
        return (*row, "needs valgrind", "", "")
    log, both = _instructions_s(size, "off"), _instructions_s(size, "on")
    of_a_core = log / min(off)  # a core's own are counted where it was disturbed least
    return (
        *row,
        f"{log / 1e6:.0f}",
        f"{(both - log) / 1e6:.1f}",
        f"{(both - log) / of_a_core:.1%}",
    )


def _instructions_s(size: tuple[int, int], shows: str) -> float:
    """Instructions of a second with `PER_S` lines."""
    runs = [(lines, _run(size, lines, per_s, shows, counts=True)) for lines, per_s in COUNTED]
    of = parts(*(Line(lines, used.took_s, used.instructions) for lines, used in runs))
    return of.a_second + PER_S * of.a_page


def _run(
    size: tuple[int, int], lines: int, per_s: float, shows: str, *, counts: bool = False
) -> Used:
    """One run in a terminal of its own."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        folder = Path(name)
        told, count = folder / "told", folder / "count"
        command = [
            sys.executable,
            "-m",
            "tests.real.chatter",
            str(lines),
            str(per_s),
            shows,
            str(told),
        ]
        columns, rows = map(str, size)
        tmux = ("tmux", "-L", folder.name, "-f", "/dev/null", "new-session", "-d")
        subprocess.run(
            [
                *tmux,
                "-x",
                columns,
                "-y",
                rows,
                *(under_count(command, count) if counts else command),
            ],
            cwd=ROOT,
            env={**os.environ, **STEADY},
            check=True,
        )
        wanted, mark = (count, "\nsummary:") if counts else (told, " ")
        give_up_due = time.monotonic() + PATIENCE_S
        while not (wanted.exists() and mark in wanted.read_text(encoding="ascii")):
            if time.monotonic() > give_up_due:
                raise RuntimeError(f"no end of {' '.join(command)}")
            time.sleep(0.1)
        cpu_s, took_s = map(float, told.read_text(encoding="ascii").split())
        return Used(cpu_s, took_s, count_in(count) if counts else 0)
