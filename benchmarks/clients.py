"""The clients that are compared, each as a command line, and how one run of one is measured."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.peaks import peak_bytes

if TYPE_CHECKING:
    import resource
    from collections.abc import Callable, Mapping, Sequence

    from tests.sites.site import Received

ROOT = Path(__file__).resolve().parents[1]
ENDED = {3, 4}
"""Exit codes of Sluice for a crawl that lost pages or was stopped: figures, not faults."""
STOCK = Path(__file__).with_name("stock_spider.py")


class Crawler(Protocol):
    """Whatever can be run as a command and fetches the URLs of a file."""

    @property
    def name(self) -> str:
        """As the tables show it."""

    def command(self, folder: Path, *, seeds: Path | None, url: str | None) -> list[str]:
        """The command line."""

    def environment(self) -> dict[str, str]:
        """The environment that it runs in."""


class Server(Protocol):
    """Whatever is crawled and has a log of it: the scripted site is one."""

    @property
    def hosts(self) -> Sequence[object]:
        """One entry for each host."""

    def forget(self) -> None:
        """Begin a new log."""

    def log(self, host: int = 0) -> list[Received]:
        """Every request that a host received."""


@dataclass(frozen=True, slots=True)
class Client:
    """A crawler with settings of its own.

    Attributes:
        name: As the tables show it.
        sluice: The project, else Scrapy alone.
        settings: Beside those of the scenario.
        jobdir: Keep the crawl's state on disk.
    """

    name: str
    sluice: bool
    settings: Mapping[str, object] = field(default_factory=dict)
    jobdir: bool = False

    def command(self, folder: Path, *, seeds: Path | None, url: str | None) -> list[str]:
        """The command line; *seeds* or *url* says what is fetched."""
        words = (
            ["crawl", "site" if seeds is None else "pages"]
            if self.sluice
            else ["runspider", str(STOCK)]
        )
        words += ["-a", f"url={url}" if seeds is None else f"seeds={seeds}"]
        settings = {"LOG_LEVEL": "INFO", **self.settings}
        if self.jobdir:
            settings["JOBDIR"] = str(folder / "job")
        for name, value in settings.items():
            words += ["-s", f"{name}={value}"]
        return [sys.executable, "-m", "scrapy", *words]

    def environment(self) -> dict[str, str]:
        """Only the project's client sees the project."""
        environment = {**os.environ}
        environment.pop("SCRAPY_SETTINGS_MODULE", None)
        environment.pop("PYTHONPATH", None)
        if self.sluice:
            environment["PYTHONPATH"] = str(ROOT)
            environment["SCRAPY_SETTINGS_MODULE"] = "project.settings"
        return environment


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run: whole process for time and memory, the site's own log for pages.

    Attributes:
        seconds: From the start of the process to its end (or to where it was cut).
        cpu_s: User and system time of the process.
        peak_mb: Largest resident set, in units of 10^6 bytes.
        first_page_s: From the start of the process to the first page that the site was asked for.
        crawl_s: From the first page asked for to the last.
        pages: Distinct URLs that the site answered with 200.
        answers: Answers that the site gave, and how many of them the limiter refused.
        refused: Answers that refused.
    """

    seconds: float
    cpu_s: float
    peak_mb: float
    first_page_s: float
    crawl_s: float
    pages: int
    answers: int
    refused: int


def measure(
    client: Crawler,
    site: Server,
    *,
    seeds: list[str] | None = None,
    url: str | None = None,
    during: Callable[[float], bool] | None = None,
    timeout_s: float = 600.0,
) -> Run:
    """Run a client once.

    Args:
        client: Whom.
        site: What it crawls; its counters begin anew.
        seeds: The URLs to fetch ...
        url: ... or the page whose links are followed.
        during: Called ten times a second with the seconds since the start; True cuts the run.
        timeout_s: When to cut it in any case.
    """
    site.forget()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        folder = Path(name)
        file = None
        if seeds is not None:
            file = folder / "seeds.txt"
            file.write_text("".join(f"{seed}\n" for seed in seeds), encoding="utf-8")
        with (folder / "log").open("wb") as log:
            started_at = time.time()
            process = subprocess.Popen(
                client.command(folder, seeds=file, url=url),
                cwd=folder,
                env=client.environment(),
                stdout=log,
                stderr=log,
            )
            usage, status, peak = _wait(process, started_at, during, timeout_s)
        ended_at = time.time()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode > 0 and process.returncode not in ENDED:
            tail = (folder / "log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{client.name} ended with {process.returncode}:\n{tail}")
    return _run(site, usage, peak, started_at, ended_at)


def _wait(
    process: subprocess.Popen[bytes],
    started_at: float,
    during: Callable[[float], bool] | None,
    timeout_s: float,
) -> tuple[resource.struct_rusage, int, int]:
    """Wait for the end, or cut the run; what it used, how it ended, and its largest resident set in bytes."""
    peak = 0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            return usage, status, peak
        peak = max(peak, peak_bytes(process.pid))
        passed_s = time.time() - started_at
        if passed_s > timeout_s or (during is not None and during(passed_s)):
            process.send_signal(signal.SIGKILL)
            _, status, usage = os.wait4(process.pid, 0)
            return usage, status, peak
        time.sleep(0.1 if during is not None else 0.02)


def _run(
    site: Server, usage: resource.struct_rusage, peak: int, started_at: float, ended_at: float
) -> Run:
    pages: set[tuple[int, str]] = set()
    times: list[float] = []
    answers = refused = 0
    for host in range(len(site.hosts)):
        for received in site.log(host):
            if received.target == "/robots.txt":
                continue
            times.append(received.at)
            answers += 1
            refused += received.refused
            if received.status == 200:
                pages.add((host, received.target))
    return Run(
        seconds=ended_at - started_at,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=peak / 1e6,
        first_page_s=min(times, default=ended_at) - started_at,
        crawl_s=max(times, default=0.0) - min(times, default=0.0),
        pages=len(pages),
        answers=answers,
        refused=refused,
    )
