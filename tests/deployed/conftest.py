"""Scrapyd with the settings of deploy/scrapyd, on a port of its own, and a checkout that is deployed to it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PASSWORD = "not a good one"  # noqa: S105
START_S, JOB_S = 30, 60


@dataclass
class Scrapyd:
    """A running server, and the folder that it works in."""

    folder: Path
    url: str
    auth: tuple[str, str] = field(default=("deploy", PASSWORD))

    def get(self, what: str, **values: Any) -> dict:
        """What Scrapyd tells."""
        answer = requests.get(f"{self.url}/{what}.json", values, auth=self.auth, timeout=60)
        return answer.json()

    def post(self, what: str, **values: Any) -> dict:
        """What Scrapyd makes of a command."""
        answer = requests.post(f"{self.url}/{what}.json", values, auth=self.auth, timeout=60)
        return answer.json()

    def schedule(self, job: str, *, settings: tuple[str, ...] = (), **arguments: Any) -> None:
        """Have spider `pages` run as *job*."""
        known = {"project": "sluice", "spider": "pages", "jobid": job, "setting": list(settings)}
        assert self.post("schedule", **known, **arguments) | {"node_name": ""} == {
            "node_name": "",
            "status": "ok",
            "jobid": job,
        }

    def state(self, job: str) -> str | None:
        """Pending, running or finished."""
        return self.get("status", project="sluice", job=job)["currstate"]

    def pid(self, job: str) -> int:
        """Process id of a running job."""
        (pid,) = (
            row["pid"]
            for row in self.get("listjobs", project="sluice")["running"]
            if row["id"] == job
        )
        return pid

    def log(self, job: str) -> str:
        """The job's log."""
        return (self.folder / "logs" / "sluice" / "pages" / f"{job}.log").read_text()

    def results(self, job: str) -> list[str]:
        """The lines that the job has written so far."""
        path = self.folder / "results" / "pages" / f"{job}.jsonl"
        return path.read_text().splitlines() if path.exists() else []


def wait_for(what: Callable[[], Any], within_s: float, told: Callable[[], str] = str) -> Any:
    """Wait until *what* gives something true."""
    deadline = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def scrapyd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """Scrapyd in an empty folder, with the settings that are in deploy/ and a password."""
    folder = tmp_path_factory.mktemp("scrapyd")
    shutil.copy(ROOT / "deploy" / "scrapyd" / "scrapyd.conf", folder)
    port = free_port()
    hidden = ("PYTHONPATH", "SCRAPY_SETTINGS_MODULE", "CI")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    more = {"SCRAPYD_HTTP_PORT": str(port), "SCRAPYD_PASSWORD": PASSWORD, "HOME": str(folder)}
    with (folder / "scrapyd.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapyd", "--pidfile="],
            cwd=folder, env={**environment, **more}, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    server = Scrapyd(folder, f"http://127.0.0.1:{port}")

    def answers() -> bool:
        assert process.poll() is None, (folder / "scrapyd.log").read_text()
        try:
            return requests.get(server.url, timeout=5).status_code == requests.codes.unauthorized
        except requests.ConnectionError:
            return False

    try:
        wait_for(answers, START_S, (folder / "scrapyd.log").read_text)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=30)


@dataclass
class Checkout:
    """A copy of the project, which a test may change, and the helper that deploys it."""

    folder: Path
    server: Scrapyd

    def deploy(self, *words: str, target: str = "default", **environment: str):
        """Run deploy/scrapyd/deploy.py."""
        return subprocess.run(
            [sys.executable, "deploy/scrapyd/deploy.py", target, *words],
            cwd=self.folder,
            env={**os.environ, "SCRAPYD_PASSWORD": PASSWORD, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def deployed(self, *words: str) -> str:
        """Deploy, and return the version that runs."""
        done = self.deploy(*words)
        assert done.returncode == 0, done.stderr
        project, version, *_ = done.stdout.split()
        assert project == "sluice"
        return version


@pytest.fixture
def checkout(scrapyd: Scrapyd, tmp_path: Path) -> Checkout:
    """A copy of this project whose scrapy.cfg names the server."""
    for name in ("extensions", "project", "spiders", "deploy"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copy(ROOT / "setup.py", tmp_path)
    ours = (ROOT / "scrapy.cfg").read_text()
    assert "http://127.0.0.1:6800/" in ours
    (tmp_path / "scrapy.cfg").write_text(
        ours.replace("http://127.0.0.1:6800", scrapyd.url) + "[deploy:second]\nproject = second\n"
    )
    return Checkout(tmp_path, scrapyd)
