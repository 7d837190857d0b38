"""CPU instructions of a program: unlike its seconds they do not depend on what the machine does beside it.

They are counted by valgrind, under which a program runs some 12 times slower; the kernel's are not among them.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

VALGRIND = shutil.which("valgrind")
STEADY = {"PYTHONHASHSEED": "0"}
"""Environment in which Python does the same each time."""


def under_count(command: list[str], file: Path) -> list[str]:
    """The command line that runs *command* and leaves its count in *file*."""
    options = ("--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={file}")
    return [VALGRIND or "valgrind", "-q", *options, *command]


def count_in(file: Path) -> int:
    """What was counted."""
    found = re.search(r"^summary: (\d+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"valgrind left no count in {file}")
    return int(found[1])


class Line(NamedTuple):
    """One run: how many pages in how many seconds took how many instructions."""

    pages: int
    seconds: float
    instructions: int


class Parts(NamedTuple):
    """What a program's instructions are made of."""

    start: float
    a_second: float
    a_page: float


def parts(slow: Line, fast: Line, more: Line) -> Parts:
    """Solve ``start + seconds * a_second + pages * a_page`` for three runs.

    Args:
        slow: Few pages in a long time.
        fast: As many in a short time.
        more: More pages, in about the time of the first.
    """
    a_second = (slow.instructions - fast.instructions) / (slow.seconds - fast.seconds)
    rest = more.instructions - slow.instructions - a_second * (more.seconds - slow.seconds)
    a_page = rest / (more.pages - slow.pages)
    start = slow.instructions - a_second * slow.seconds - a_page * slow.pages
    return Parts(start, a_second, a_page)
