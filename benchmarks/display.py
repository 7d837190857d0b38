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
from .instructions import STEADY, VALGRIND, Line, Parts, count_in, parts, under_count
from .scenarios import Table

SIZES = ((80, 24), (120, 40), (200, 50), (56, 12))
PER_S = 700
LINES = 3500
LARGEST = (200, 50)
COUNTED = ((200, 20.0), (200, 80.0), (800, 80.0))
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
    rows = []
    for size in SIZES:
        runs: dict[str, list[Used]] = {"off": [], "on": []}
        for number in range(2 * rounds):
            for shows in runs if number % 2 == 0 else reversed(runs):
                runs[shows].append(_run(size, LINES, PER_S, shows))
        off, on = ([run.share for run in runs[shows]] for shows in ("off", "on"))
        more = [with_it - without for with_it, without in zip(on, off, strict=True)]
        rows.append(
            (
                f"{size[0]}x{size[1]}",
                f"{statistics.median(off):.1%}",
                f"{statistics.median(on):.1%}",
                f"{statistics.median(more):.1%} ({min(more):.1%} to {max(more):.1%})",
            )
        )
    columns = (
        "terminal",
        "of a core: log alone",
        "with the display",
        "the display: median (lowest to highest)",
    )
    return Table(
        f"The live display at {PER_S} log lines a second, {2 * rounds} pairs", columns, rows
    )


def display_instructions(_: int) -> Table:
    """In CPU instructions, of which each line and each second has its part."""
    if VALGRIND is None:
        return Table("The live display, in CPU instructions: needs valgrind", ("not measured",), [])
    found = {shows: _parts(LARGEST, shows) for shows in ("off", "on")}
    rows = [
        (shows, f"{of.a_page / 1e3:.1f}", f"{of.a_second / 1e6:.2f}", f"{_of_700(of) / 1e6:.1f}")
        for shows, of in found.items()
    ]
    more = _of_700(found["on"]) - _of_700(found["off"])
    rows.append(("the difference", "", "", f"{more / 1e6:.1f}"))
    columns = (
        "display",
        "thousand a line",
        "million a second",
        f"million a second at {PER_S} lines",
    )
    size = "x".join(map(str, LARGEST))
    return Table(f"The live display in {size}, in CPU instructions", columns, rows)


def _of_700(of: Parts) -> float:
    return of.a_second + PER_S * of.a_page


def _parts(size: tuple[int, int], shows: str) -> Parts:
    runs = [(lines, _run(size, lines, per_s, shows, counts=True)) for lines, per_s in COUNTED]
    return parts(*(Line(lines, used.took_s, used.instructions) for lines, used in runs))


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
