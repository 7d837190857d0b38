"""Where a crawl's time goes that is looked at: the samples of a profiler, which the machine's other work does not move."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.sites import Site

from .clients import Client
from .scenarios import Table
from .sight import ALL_OF_IT, FULL_SPEED_PAGES, SETTLES_S, crawl, wait_for_a_page

PY_SPY = shutil.which("py-spy")
PROFILED_S = 25
PLACES = {
    "the display": ("extensions/display.py", "extensions/screen.py", "rich/"),
    "the page, its polls, scrapes": ("aiohttp/", "extensions/metrics.py", "prometheus_client/"),
    "the sampler": ("extensions/sampler.py",),
    "counters": ("extensions/book.py",),
}
"""The first that a sample's frames are in is the one that it counts for."""


def seen_samples(_: int) -> Table:
    """At full speed with everything on: the part of the samples that are in what shows."""
    title = "Seeing a crawl at full speed: a profiler's samples"
    if PY_SPY is None:
        return Table(f"{title}: needs py-spy", ("not measured",), [])
    client = Client("on", sluice=True, settings=ALL_OF_IT)
    with Site() as site, tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        file = Path(folder) / "samples"
        with crawl(client, site, site.urls(FULL_SPEED_PAGES)) as process:
            wait_for_a_page(process, site)
            time.sleep(SETTLES_S)
            command = [PY_SPY, "record", "-d", str(PROFILED_S), "-f", "raw", "-o", str(file)]
            subprocess.run([*command, "-p", str(process.pid)], capture_output=True, check=True)
        found = _counted(file)
    whole = found.pop("all")
    rows = [(name, f"{found[name] / whole:.1%}") for name in PLACES]
    rows.append(("together", f"{found.total() / whole:.1%}"))
    return Table(f"{title}, {whole} in {PROFILED_S} s", ("where", "of the samples"), rows)


def _counted(file: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in file.read_text(encoding="utf-8").splitlines():
        frames, _, number = line.rpartition(" ")
        found["all"] += int(number)
        for name, marks in PLACES.items():
            if any(mark in frames for mark in marks):
                found[name] += int(number)
                break
    return found
