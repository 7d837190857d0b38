"""What it costs to be seen: a crawl with everything on beside one with everything off.

On means: the live display on a terminal of 120x40, the status page polled each second as a browser does it, metrics
scraped each 5 s. A busy machine's pages a second differ by more than what is looked for, so there are other ways to know:

- `sight`: at full speed, in turns: the pages a second themselves, with all their scatter;
- `seen`: at a steady pace, in turns: processor time beside that of a crawl that nobody sees, as a part of a core. That
  is the part of its pages a second that a crawl at full speed loses;
- `seen_samples` (in `profiled`): at full speed, the part of a profiler's samples that are in what shows;
- `seen_instructions`: in CPU instructions, which no other program changes: what a second of being seen costs, in pages.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.sites import Host, Site

from .clients import ENDED, Client
from .instructions import STEADY, VALGRIND, Line, Parts, count_in, parts, under_count
from .scenarios import BOTH, Table
from .watching import Terminal, Viewer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sites import Received

HOSTS = 12
SETTLES_S = 3.0
WINDOW_S = 10.0
FULL_SPEED_PAGES = 25_000
PACE_PER_S = 24
"""Pages a second of a steady crawl. It is many times what sites allow, and leaves most of a core idle."""
NONE_OF_IT = {**BOTH, "SLUICE_PROGRESS": False}
ALL_OF_IT = {**BOTH, "SLUICE_STATUS_PORT": 0}
SHOWN = {"off": NONE_OF_IT, "on": ALL_OF_IT}


class Window(NamedTuple):
    """Some seconds out of the middle of a crawl: neither its start nor its end.

    Attributes:
        per_s: Pages a second.
        cpu_share: Processor time of the crawl's process, in parts of a core.
        cpu_us: The same, in microseconds a page.
    """

    per_s: float
    cpu_share: float
    cpu_us: float


def sight(rounds: int) -> Table:
    """At full speed: the pages a second."""
    with Site() as site:
        runs = _in_turns(site, site.urls(FULL_SPEED_PAGES), rounds)
    rows = [
        (
            name,
            f"{statistics.median(run.per_s for run in seen):.0f}",
            _ratios([run.per_s for run in seen], [run.per_s for run in runs["off"]]),
            f"{statistics.median(run.cpu_us for run in seen):.0f}",
            _ratios([run.cpu_us for run in seen], [run.cpu_us for run in runs["off"]]),
        )
        for name, seen in runs.items()
    ]
    columns = ("all that shows", "pages/s", "x off", "CPU us/page", "x off")
    return Table("Seeing a crawl at full speed: pages of 1 kB, 32 concurrent", columns, rows)


def seen(rounds: int) -> Table:
    """At a steady pace: the part of a core that it takes to be seen."""
    with Site(*[Host() for _ in range(HOSTS)]) as site:
        runs = _in_turns(site, _seeds(site, 2000), 2 * rounds, _steady(PACE_PER_S))
    rows = [
        (
            name,
            f"{statistics.median(run.per_s for run in each):.1f}",
            _percents([run.cpu_share for run in each]),
        )
        for name, each in runs.items()
    ]
    pairs = zip(runs["on"], runs["off"], strict=True)
    rows.append(
        ("the difference", "", _percents([on.cpu_share - off.cpu_share for on, off in pairs]))
    )
    columns = ("all that shows", "pages/s", "of a core: median (lowest to highest)")
    title = f"Seeing a crawl at a steady pace: {2 * rounds} pairs of {WINDOW_S:.0f} s"
    return Table(title, columns, rows)


def seen_instructions(_: int) -> Table:
    """In CPU instructions, of which each page and each second has its part."""
    if VALGRIND is None:
        return Table("Seeing a crawl, in CPU instructions: needs valgrind", ("not measured",), [])
    with Site(*[Host() for _ in range(HOSTS)]) as site:
        found = {name: _parts(site, name) for name in SHOWN}
    page = found["off"].a_page
    rows = [
        (
            name,
            f"{of.a_page / 1e6:.3f}",
            f"{of.a_page / page:.3f}",
            f"{of.a_second / 1e6:.2f}",
            f"{of.a_second / page:.1f}",
        )
        for name, of in found.items()
    ]  # fmt: skip
    a_second, a_page = (on - off for on, off in zip(found["on"][1:], found["off"][1:], strict=True))
    rows.append(
        (
            "the difference",
            f"{a_page / 1e6:.3f}",
            "",
            f"{a_second / 1e6:.2f}",
            f"{a_second / page:.1f}",
        )
    )
    columns = ("all that shows", "million a page", "x off", "million a second", "in pages")
    return Table("Seeing a crawl, in CPU instructions", columns, rows)


# -- runs ----------------------------------------------------------------------------------------------


def _seeds(site: Site, count: int) -> list[str]:
    return [site.url(f"/page/{n}", n % HOSTS) for n in range(count)]


def _steady(per_s: float) -> dict[str, object]:
    return {"DOWNLOAD_DELAY": HOSTS / per_s, "RANDOMIZE_DOWNLOAD_DELAY": False}


def _in_turns(
    site: Site, seeds: list[str], rounds: int, settings: dict[str, object] | None = None
) -> dict[str, list[Window]]:
    """Off and on, then on and off, and so forth."""
    runs: dict[str, list[Window]] = {name: [] for name in SHOWN}
    for number in range(rounds):
        for name in SHOWN if number % 2 == 0 else reversed(SHOWN):
            runs[name].append(_window(name, site, seeds, settings or {}))
    return runs


def _window(name: str, site: Site, seeds: list[str], settings: dict[str, object]) -> Window:
    """Watch a crawl for a while, and end it."""
    client = Client(name, sluice=True, settings={**SHOWN[name], **settings})
    with crawl(client, site, seeds) as process:
        wait_for_a_page(process, site)
        time.sleep(SETTLES_S)
        began_at, used_s = time.time(), _used_s(process.pid)
        time.sleep(WINDOW_S)
        used_s = _used_s(process.pid) - used_s
        ended_at = time.time()
        process.kill()
        process.wait()
    pages = sum(began_at <= received.at < ended_at for received in _pages(site))
    took_s = ended_at - began_at
    return Window(pages / took_s, used_s / took_s, 1e6 * used_s / pages)


def _parts(site: Site, name: str) -> Parts:
    slow, fast, more = (
        _counted(site, name, pages, per_s)
        for pages, per_s in ((200, 5.0), (200, 15.0), (600, 15.0))
    )
    return parts(slow, fast, more)


def _counted(site: Site, name: str, count: int, per_s: float) -> Line:
    client = Client(name, sluice=True, settings={**SHOWN[name], **_steady(per_s)})
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        file = Path(folder) / "count"
        with crawl(client, site, _seeds(site, count), count_into=file) as process:
            code = process.wait()
        if code > 0 and code not in ENDED:
            raise RuntimeError(f"the crawl with all {name} ended with {code}")
        times = [received.at for received in _pages(site)]
        return Line(len(times), max(times) - min(times), count_in(file))


@contextmanager
def crawl(
    client: Client, site: Site, seeds: list[str], *, count_into: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl on a terminal, looked at if it shows a page."""
    site.forget()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        (folder / "seeds.txt").write_text("\n".join(seeds), encoding="utf-8")
        terminal = Terminal()
        stack.callback(terminal.close)
        environment = {**client.environment(), **STEADY, "TERM": "xterm-256color"}
        environment.pop("CI", None)
        command = client.command(folder, seeds=folder / "seeds.txt", url=None)
        process = subprocess.Popen(
            command if count_into is None else under_count(command, count_into),
            cwd=folder,
            env=environment,
            stdout=terminal.slave,
            stderr=terminal.slave,
        )
        stack.callback(process.kill)
        viewer = Viewer(terminal)
        stack.callback(viewer.stop)
        terminal.start()
        viewer.start()  # of a crawl without a page it sees nothing
        yield process


def _pages(site: Site) -> Iterator[Received]:
    for host in range(len(site.hosts)):
        yield from (received for received in site.log(host) if received.target != "/robots.txt")


def wait_for_a_page(process: subprocess.Popen[bytes], site: Site) -> None:
    """Wait until the site was asked for the first one."""
    while not any(True for _ in _pages(site)):
        if process.poll() is not None:
            raise RuntimeError(f"the crawl ended with {process.returncode} before its first page")
        time.sleep(0.1)


def _used_s(pid: int) -> float:
    """Processor time of another process and its threads, to the nanosecond: Linux's clock of a process."""
    return time.clock_gettime((~pid << 3) | 2)


# -- figures -------------------------------------------------------------------------------------------


def _ratios(values: list[float], to: list[float]) -> str:
    found = [value / other for value, other in zip(values, to, strict=True)]
    return f"{statistics.median(found):.3f} ({min(found):.3f} to {max(found):.3f})"


def _percents(shares: list[float]) -> str:
    return f"{statistics.median(shares):.2%} ({min(shares):.2%} to {max(shares):.2%})"
