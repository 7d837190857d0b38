"""Workers as processes of their own, as they are in earnest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.conftest import scrapy_environment

if TYPE_CHECKING:
    from pathlib import Path


WORKERS: list[Worker] = []
"""Those of this test, so that none outlives it, however it ends."""


class Worker:
    """One `scrapy crawl`."""

    def __init__(self, folder: Path, spider: str, *arguments: str, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "scrapy", "crawl", spider]
        for argument in arguments:
            words += ["-a", argument]
        for name, value in {
            "SLUICE_PROGRESS": "False",
            "ROBOTSTXT_OBEY": "False",
            **settings,
        }.items():
            words += ["-s", f"{name}={value}"]
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                words, cwd=folder, env=scrapy_environment(), stdout=log, stderr=log
            )
        WORKERS.append(self)

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGINT)

    def wait(self, within_s: float = 60) -> int:
        return self.process.wait(within_s)

    def text(self) -> str:
        return self.log.read_text(errors="replace")
