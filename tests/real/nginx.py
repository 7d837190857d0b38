"""nginx before a folder of HTML or another server, with its own limits: started on a free port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

CONFIG = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
    types {{ text/html html; text/css css; application/javascript js; text/plain txt py; }}
    default_type application/octet-stream;
    log_format timed '$msec $request_time $status $request_uri';
    access_log {folder}/access.log timed;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {zone}
    server {{
        listen 127.0.0.1:{port};
        {source}
        {limit}
    }}
}}
"""


class Entry(NamedTuple):
    """One request: when it came (wall-clock seconds), what for, and the answer."""

    at: float
    path: str
    status: int


class Nginx:
    """`with Nginx(root, folder=tmp_path, rate=40, burst=10) as nginx:`; the log is read back with `log`.

    Args:
        root: The folder that is served, or the ``http://`` origin that is asked for each page.
        folder: For its configuration, logs and temporary files.
        rate, burst: `limit_req` with status 429: requests a second, and how many may come early.
        connections: `limit_conn` in its place: requests at once, what is over them gets 503.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        folder: Path,
        rate: int = 0,
        burst: int = 0,
        connections: int = 0,
    ) -> None:
        is_folder = not isinstance(root, str)
        self._source = f"root {root};" if is_folder else f"location / {{ proxy_pass {root}; }}"
        self._folder = folder
        if connections:
            self._zone = "limit_conn_zone $binary_remote_addr zone=one:1m;"
            self._limit = f"limit_conn one {connections};"
        else:
            self._zone = f"limit_req_zone $binary_remote_addr zone=one:1m rate={rate}r/s;"
            self._limit = f"limit_req zone=one burst={burst} nodelay; limit_req_status 429;"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def url(self, path: str) -> str:
        """A URL on this server."""
        return f"http://127.0.0.1:{self.port}/{path}"

    def __enter__(self) -> Self:
        for _ in range(5):  # somebody may take the free port before nginx does
            self.port = _free_port()
            if self._start():
                return self
        raise RuntimeError((self._folder / "error.log").read_text(errors="replace"))

    def _start(self) -> bool:
        config = self._folder / "nginx.conf"
        text = CONFIG.format(
            folder=self._folder,
            port=self.port,
            source=self._source,
            zone=self._zone,
            limit=self._limit,
        )
        if os.geteuid() == 0:
            text = "user root;\n" + text
        config.write_text(text, encoding="utf-8")
        self._process = subprocess.Popen(
            [executable(), "-c", str(config), "-p", str(self._folder)],
            stderr=subprocess.DEVNULL,
        )
        for _ in range(100):
            if self._process.poll() is not None:
                return False
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.05)
        return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=10)

    def entries(self) -> list[Entry]:
        """Every request, in the order of the answers."""
        found = []
        for line in (self._folder / "access.log").read_text(encoding="utf-8").splitlines():
            ended_at, took_s, status, path = line.split(" ", 3)
            found.append(Entry(float(ended_at) - float(took_s), path, int(status)))
        return found

    def log(self) -> list[tuple[str, int]]:
        """Path and status of every request, in order."""
        return [(entry.path, entry.status) for entry in self.entries()]

    def forget(self) -> None:
        """Begin a new log."""
        os.truncate(self._folder / "access.log", 0)


def executable() -> str:
    """Path of nginx; empty where it is not installed."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
