"""The handle on a running site: where it is, what it saw, and how to change what it does."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .script import Host

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]


class Received(NamedTuple):
    """One request as the site saw it; `at` is wall-clock seconds."""

    at: float
    target: str
    status: int
    refused: bool


@dataclass(frozen=True, slots=True)
class Stats:
    """What one host, or all of them together, counted. `hits` is by target (path and query)."""

    received: int
    refused: int
    statuses: dict[str, int]
    hits: dict[str, int]
    in_flight: int
    max_in_flight: int
    connects: int
    max_connections: int


class Site:
    """A site with one loopback address for each of its hosts, each on a port of its own.

    Args:
        hosts: What each host does; one plain host if none is given.
        first: The first host is 127.0.0.*first*, the next one 127.0.0.*first + 1*.
    """

    def __init__(self, *hosts: Host, first: int = 1) -> None:
        self.hosts = list(hosts or (Host(),))
        self._first = first
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._places: list[tuple[str, int]] = []

    @property
    def pid(self) -> int:
        """Process id of the running site."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sites.server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        script = [
            (_address(self._first + index), host.to_json()) for index, host in enumerate(self.hosts)
        ]
        self._places = [tuple(place) for place in self._ask({"hosts": script})]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def url(self, path: str = "/", host: int = 0) -> str:
        """A URL on the host with that number."""
        return f"http://{self.domain(host)}{path}"

    def urls(self, count: int, host: int = 0, path: str = "/page/{}") -> list[str]:
        """*count* URLs, made from *path* with 0, 1, 2 ..."""
        return [self.url(path.format(index), host) for index in range(count)]

    def domain(self, host: int = 0) -> str:
        """``address:port`` of a host."""
        address, port = self._places[host]
        return f"{address}:{port}"

    def stats(self, host: int = 0) -> Stats:
        """What one host counted since the start or the last `forget`."""
        return Stats(**self._ask({"do": "stats", "host": host})[0])

    def all_stats(self) -> list[Stats]:
        """What every host counted."""
        return [Stats(**stats) for stats in self._ask({"do": "stats"})]

    def log(self, host: int = 0) -> list[Received]:
        """Every request that a host received, in order."""
        return [Received(*row) for row in self._ask({"do": "log", "host": host})[0]]

    def forget(self) -> None:
        """Count anew on all hosts."""
        self._ask({"do": "forget"})

    def change(self, host: int = 0, **changes: Any) -> None:
        """Change what a host does; its limiter, storm and per-URL turns begin anew."""
        self.hosts[host] = replace(self.hosts[host], **changes)
        self._ask({"do": "change", "host": host, "script": self.hosts[host].to_json()})

    def close(self, host: int | None = None) -> None:
        """Let a host (or all) refuse connections, and reset its open ones."""
        self._ask({"do": "close", "host": host})

    def listen(self, host: int | None = None) -> None:
        """Let a closed host (or all) listen again on the port that it had."""
        self._ask({"do": "listen", "host": host})

    def _ask(self, command: dict[str, Any]) -> Any:
        process = self._process
        assert process is not None, "the site is not running"
        assert process.stdin is not None
        assert process.stdout is not None
        with self._lock:
            process.stdin.write(json.dumps(command) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())


def _address(number: int) -> str:
    """127.0.0.1 is the first; after 250 of them comes 127.0.1.1."""
    return f"127.0.{(number - 1) // 250}.{(number - 1) % 250 + 1}"
